//! What the page saves: a range of what is shown, converted.

use std::io::{self, Write};
use std::path::Path;

use clap::Parser;
use kymo_view::{Save, Saving};

use crate::args::convert::{Convert, TextForm, To};
use crate::args::view::View;
use crate::args::{Input, Selection};
use crate::terminal::{Failure, Terminal};

/// A file that the page saves may be so large: the browser has all of it in memory.
const MOST_SAVED: usize = 512 << 20;

/// Rows that a database gets at most, each for at least a second.
const MOST_ROWS: u64 = 2000;

/// The arguments of `kymo convert`, made for what the page saves.
#[derive(clap::Parser)]
struct Conversion {
    #[command(flatten)]
    convert: Convert,
}

/// Converts a range of what is shown.
pub(super) fn save(args: &View) -> Save {
    let (input, selection) = (args.input.clone(), args.selection.clone());
    Save::new(move |saving: &Saving| {
        let directory = kymo_io::random::<8>().map_err(|error| error.to_string())?;
        let name = directory.map(|byte| format!("{byte:02x}")).concat();
        let directory = std::env::temp_dir().join(format!("kymo-save-{name}"));
        // For this user alone: others may not read the recordings.
        kymo_io::private_directory(&directory, true).map_err(|error| {
            format!(
                "cannot write `{}`: {}",
                directory.display(),
                kymo_io::reason(&error)
            )
        })?;
        let path = directory.join("saved");
        let mut saved = converted(saving, &input, &selection, &path, false);
        if saved.is_err() && saving.format == "cpel" {
            // Events of other formats are kept as text.
            let as_text = converted(saving, &input, &selection, &path, true);
            saved = as_text.or(saved);
        }
        // What cannot be removed is in a directory for such files.
        let _ = std::fs::remove_dir_all(&directory);
        saved
    })
}

fn converted(
    saving: &Saving,
    input: &Input,
    selection: &Selection,
    path: &Path,
    as_text: bool,
) -> Result<Vec<u8>, String> {
    let words = [
        "convert".into(),
        format!("--to={}", saving.format),
        format!("--begin={}", seconds(saving.begin)),
        format!("--end={}", seconds(saving.end)),
        format!("--output={}", path.display()),
        "-".into(),
    ];
    let Conversion { mut convert } =
        Conversion::try_parse_from(words).map_err(|error| error.to_string())?;
    convert.input = input.clone();
    convert.selection.event = selection.event.clone();
    convert.selection.condition = match (&selection.condition, &saving.condition) {
        (Some(base), Some(other)) => Some(format!("({base}) and ({other})")),
        (base, other) => base.clone().or(other.clone()),
    };
    convert.text = as_text.then_some(TextForm::Shown);
    if convert.to == Some(To::Rrd) {
        let length = saving.end.abs_diff(saving.begin) / 1_000_000_000;
        let step = (length / MOST_ROWS).max(1);
        convert.count = true;
        convert.step = Some(u32::try_from(step).unwrap_or(u32::MAX));
    }
    match crate::convert::run(&convert, &Terminal::new()) {
        Ok(_) => {}
        Err(Failure::Usage(message)) => {
            return Err(message.trim_start_matches("error: ").to_string());
        }
        Err(_) => {
            return Err(
                "the recordings cannot be converted: see the terminal of `kymo view`".into(),
            );
        }
    }
    let mut saved = Bounded(Vec::new());
    let written = match path.is_dir() {
        // Browsers save files: a directory is in an archive, which kymo opens as it is.
        true => kymo_io::write_tar(path, &saving.name, &mut saved),
        false => std::fs::File::open(path)
            .and_then(|mut file| io::copy(&mut file, &mut saved))
            .map(drop),
    };
    match written {
        Ok(()) => Ok(saved.0),
        Err(error) if error.kind() == io::ErrorKind::StorageFull => {
            let most = MOST_SAVED >> 20;
            Err(format!(
                "this is more than {most} MiB, too much for a browser: use `kymo convert`"
            ))
        }
        Err(error) => Err(format!(
            "cannot read what was converted: {}",
            kymo_io::reason(&error)
        )),
    }
}

/// Nanoseconds as seconds, as options take them.
fn seconds(nanos: i64) -> String {
    let (seconds, rest) = (
        nanos.div_euclid(1_000_000_000),
        nanos.rem_euclid(1_000_000_000),
    );
    match nanos < 0 && rest > 0 {
        true => format!("-{}.{:09}", -(seconds + 1), 1_000_000_000 - rest),
        false => format!("{seconds}.{rest:09}"),
    }
}

/// Takes as many bytes as the page may get.
struct Bounded(Vec<u8>);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MOST_SAVED {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn the_page_offers_all_formats() {
        let assets = kymo_view::assets::ASSETS.iter();
        let page: String = assets
            .filter(|asset| asset.name == "formats.js")
            .map(|asset| String::from_utf8_lossy(asset.bytes))
            .collect();
        for format in To::value_variants() {
            let value = format.to_possible_value().unwrap();
            assert!(
                page.contains(&format!("[\"{}\", ", value.get_name())),
                "{value:?}"
            );
        }
    }

    #[test]
    fn times_are_written_as_options_take_them() {
        let texts = [0, -1, 1_500_000_000, -1_500_000_000].map(seconds);
        assert_eq!(
            texts,
            ["0.000000000", "-0.000000001", "1.500000000", "-1.500000000"]
        );
    }
}
