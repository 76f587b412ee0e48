//! The files of the page.

use std::borrow::Cow;
use std::path::Path;

/// A file of the page.
#[derive(Clone, Copy, Debug)]
pub struct Asset {
    /// Its name.
    pub name: &'static str,
    /// What is in it.
    pub bytes: &'static [u8],
}

macro_rules! assets {
    ($($name:literal),* $(,)?) => {
        &[$(Asset { name: $name, bytes: include_bytes!(concat!("../web/", $name)) }),*]
    };
}

/// All files of the page.
pub const ASSETS: &[Asset] = assets![
    "index.html",
    "view.css",
    "first.js",
    "main.js",
    "act.js",
    "busy.js",
    "state.js",
    "data.js",
    "source.js",
    "wire.js",
    "where.js",
    "embedded.js",
    "embedded-analyses.js",
    "embedded-search.js",
    "embedded-stats.js",
    "keep.js",
    "link.js",
    "picture.js",
    "svg.js",
    "time.js",
    "canvas.js",
    "contents.js",
    "draw.js",
    "series.js",
    "shell.js",
    "ruler.js",
    "labels.js",
    "moves.js",
    "actions.js",
    "panels.js",
    "input.js",
    "fold.js",
    "lens.js",
    "flows.js",
    "table.js",
    "details.js",
    "analyses.js",
    "flame.js",
    "formats.js",
    "compare.js",
    "sql.js",
    "icon.svg",
];

/// The type of a file, by its name.
pub fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

/// The page itself.
pub(crate) const INDEX: &str = "index.html";

/// Whether a path leads to the page itself.
pub(crate) fn is_index(path: &str) -> bool {
    path.is_empty() || path == INDEX
}

/// A file of the page, from a directory if one is given; only names of [`ASSETS`] are looked up there.
pub fn find(path: &str, directory: Option<&Path>) -> Option<(&'static str, Cow<'static, [u8]>)> {
    let path = if is_index(path) { INDEX } else { path };
    let asset = ASSETS.iter().find(|asset| asset.name == path)?;
    let bytes = match directory {
        Some(directory) => Cow::Owned(std::fs::read(directory.join(asset.name)).ok()?),
        None => Cow::Borrowed(asset.bytes),
    };
    Some((asset.name, bytes))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_list_is_the_directory() {
        let directory = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/web"));
        let files = std::fs::read_dir(directory).unwrap();
        let files: BTreeSet<_> = files
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .collect();
        let listed: BTreeSet<_> = ASSETS.iter().map(|asset| asset.name.to_string()).collect();
        assert_eq!(files, listed);
    }

    #[test]
    fn only_what_is_listed_is_read_from_a_directory() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("secret"), "x").unwrap();
        std::fs::write(directory.path().join("main.js"), "new").unwrap();
        assert!(find("secret", Some(directory.path())).is_none());
        assert!(find("../main.js", Some(directory.path())).is_none());
        let (_, bytes) = find("main.js", Some(directory.path())).unwrap();
        assert_eq!(&*bytes, b"new");
    }
}
