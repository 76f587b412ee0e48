//! Files as output: what keeps them from being written, found before any work is done.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use kymo::explain::{no_directory, path_text};
use kymo_io::{Replace, replace};

use crate::terminal::Failure;

/// Refuses an output that is a file if it exists, or its directory does not.
pub(crate) fn refuse_file(output: &Path, force: bool) -> Result<(), Failure> {
    let parent = output.parent().filter(|it| !it.as_os_str().is_empty());
    match parent {
        Some(parent) if !parent.is_dir() => Err(missing_directory(output, parent)),
        _ if output.is_dir() => Err(Failure::Usage(format!(
            "error: `{}` is a directory, and the output is a file\nhint: specify the name of a file in it",
            path_text(output)
        ))),
        _ if output.symlink_metadata().is_ok() && !force => Err(exists(output)),
        _ => Ok(()),
    }
}

/// That the directory of an output does not exist.
fn missing_directory(output: &Path, parent: &Path) -> Failure {
    let explained = no_directory(output, parent);
    Failure::Usage(format!("error: {}", explained.with_hint()))
}

/// That a file is there.
pub(crate) fn exists(path: &Path) -> Failure {
    let path = path_text(path);
    Failure::Usage(format!(
        "error: `{path}` already exists\nhint: `--force` overwrites it"
    ))
}

/// Writes a file as a whole. One that is there is overwritten only with `force`.
pub(crate) fn write_file(
    path: &Path,
    force: bool,
    mut write: impl FnMut(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    let write = |file: &mut File| {
        let mut out = io::BufWriter::new(file);
        write(&mut out)?;
        out.flush()
    };
    let how = Replace {
        keep: !force,
        ..Replace::NEW
    };
    replace(path, how, write).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => exists(path),
        _ => Failure::Usage(format!(
            "error: cannot write `{}`: {}",
            path_text(path),
            kymo_io::reason(&error)
        )),
    })
}
