//! Files as output: what keeps them from being written, found before any work is done.

use std::path::Path;

use kymo::explain;

use crate::terminal::Failure;

/// Refuses an output that is a file if it exists, or its directory does not.
pub(crate) fn refuse_file(output: &Path, force: bool) -> Result<(), Failure> {
    let parent = output.parent().filter(|it| !it.as_os_str().is_empty());
    match parent {
        Some(parent) if !parent.is_dir() => Err(missing_directory(output, parent)),
        _ if output.is_dir() => Err(Failure::Usage(format!(
            "error: `{}` is a directory, and the output is a file\nhint: specify the name of a file in it",
            output.display()
        ))),
        _ if output.symlink_metadata().is_ok() && !force => Err(exists(output)),
        _ => Ok(()),
    }
}

/// That the directory of an output does not exist.
fn missing_directory(output: &Path, parent: &Path) -> Failure {
    let explained = explain::no_directory(output, parent);
    Failure::Usage(format!("error: {}", explained.with_hint()))
}

/// That a file is there.
pub(crate) fn exists(path: &Path) -> Failure {
    let path = path.display();
    Failure::Usage(format!(
        "error: `{path}` already exists\nhint: `--force` overwrites it"
    ))
}
