//! Files that people write: options, passwords, types.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Bytes that such a file may have: more than anybody writes.
const LARGEST: u64 = 16 << 20;

/// The content of a file that is small: [`std::fs::read`] with a bound, which devices have, too.
///
/// # Errors
///
/// Those of opening and reading; `FileTooLarge` above 16 MiB.
pub fn read_small(path: &Path) -> io::Result<Vec<u8>> {
    take_small(&mut File::open(path)?)
}

/// The same as text.
///
/// # Errors
///
/// Those of [`read_small`]; that it is not UTF-8.
pub fn read_small_text(path: &Path) -> io::Result<String> {
    text_of(read_small(path)?)
}

/// What is left of a source, such as standard input, as text, within the same bound.
///
/// # Errors
///
/// Those of reading; `FileTooLarge` above 16 MiB; that it is not UTF-8.
pub fn take_small_text(source: &mut dyn Read) -> io::Result<String> {
    text_of(take_small(source)?)
}

fn take_small(source: &mut dyn Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(LARGEST + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > LARGEST {
        true => Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            "the file is larger than 16 MiB",
        )),
        false => Ok(bytes),
    }
}

fn text_of(bytes: Vec<u8>) -> io::Result<String> {
    // As the standard library says it.
    let not_text = "stream did not contain valid UTF-8";
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, not_text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn larger_files_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, "text").unwrap();
        assert_eq!(read_small_text(&path).unwrap(), "text");
        let file = File::options().write(true).open(&path).unwrap();
        file.set_len(LARGEST).unwrap();
        assert_eq!(read_small(&path).unwrap().len() as u64, LARGEST);
        file.set_len(LARGEST + 1).unwrap();
        let error = read_small(&path).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        std::fs::write(&path, b"\xff").unwrap();
        let error = read_small_text(&path).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
