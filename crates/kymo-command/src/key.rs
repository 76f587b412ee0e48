//! Key files.

use std::io::Read;

use kymo_ctf::secure::Key;

use crate::terminal::Terminal;

/// Bytes of a key file that are looked at: no key is as long.
const LONGEST: u64 = 1 << 10;

/// Why a file that an option names cannot be read, with what to do.
pub(crate) fn unreadable(path: &str, error: &std::io::Error) -> String {
    kymo::explain::reading(path.as_ref(), error).with_hint()
}

/// The key that a file holds.
#[derive(Clone, Debug)]
pub struct KeyFile {
    /// The key.
    pub key: Key,
    path: String,
    /// Whether its bytes are the key, and could be the digits of a shorter one.
    could_be_digits: bool,
}

impl KeyFile {
    /// Reads the file at a path.
    pub fn parse(path: &str) -> Result<Self, String> {
        // No more than a key is read, should it be the name of something large.
        let mut file = Vec::new();
        std::fs::File::open(path)
            .and_then(|opened| opened.take(LONGEST).read_to_end(&mut file))
            .map_err(|error| unreadable(path, &error))?;
        let key = Key::parse(&file).map_err(|error| error.to_string())?;
        Ok(Self {
            // No key has half as many bytes as the others.
            could_be_digits: file.len() == 32 && file.iter().all(u8::is_ascii_hexdigit),
            key,
            path: path.to_owned(),
        })
    }

    /// Tells of files whose key may be another one than was meant.
    pub fn warn<'k>(files: impl IntoIterator<Item = &'k Self>, terminal: &Terminal) {
        for file in files.into_iter().filter(|file| file.could_be_digits) {
            terminal.warning(format_args!(
                "{}: its 32 bytes are the key, of 256 bits, though all of them are hexadecimal digits: \
                 these are a key of 128 bits only with the end of the line behind them",
                file.path
            ));
        }
    }
}
