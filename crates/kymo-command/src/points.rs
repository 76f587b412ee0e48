//! Headers that name the events of Gist logs.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use kymo_cpel::points::{PointDefinitions, PointHeader};

/// Larger headers are not read.
const LARGEST: u64 = 16 << 20;

/// A header, and those that it names.
#[derive(Clone, Debug)]
pub struct PointFile {
    /// Their texts, and the base of the numbers in each.
    texts: Vec<(String, u32)>,
}

impl PointFile {
    /// Reads the header at a path, and those that it names with `pointdefs:`, which are relative to it.
    pub fn parse(path: &str) -> Result<Self, String> {
        let path = Path::new(path);
        let text = read(path)?;
        let headers = PointHeader::all(&text);
        let beside = path.parent().map_or_else(PathBuf::new, Path::to_path_buf);
        let mut texts = Vec::new();
        for PointHeader { base, path } in &headers {
            texts.push((read(&beside.join(path))?, *base));
        }
        if headers.is_empty() {
            texts.push((text, 0));
        }
        let points = Self { texts };
        match points.add_to(&mut PointDefinitions::default()) {
            0 => Err("expected a header with events: `#define NAME 123 /* name: %d */`".to_owned()),
            _ => Ok(points),
        }
    }

    /// Adds the events to others; how many of them are new.
    pub(crate) fn add_to(&self, points: &mut PointDefinitions) -> usize {
        let texts = self.texts.iter();
        texts.map(|(text, base)| points.add(text, *base)).sum()
    }
}

fn read(path: &Path) -> Result<String, String> {
    let cannot = |error: &std::io::Error| kymo::explain::reading(path, error).with_hint();
    let mut bytes = Vec::new();
    // A device has no length that is known before.
    std::fs::File::open(path)
        .and_then(|file| file.take(LARGEST + 1).read_to_end(&mut bytes))
        .map_err(|error| cannot(&error))?;
    if bytes.len() as u64 > LARGEST {
        return Err(format!("`{}` is too large for a header", path.display()));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
