//! Key files.

use std::io::Read;

use kymo_ctf::secure::Key;
use zeroize::Zeroizing;

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
    /// Whether everybody on this machine can read or write it.
    is_public: bool,
}

impl KeyFile {
    /// Reads the file at a path.
    pub fn parse(path: &str) -> Result<Self, String> {
        // No more than a key is read, should it be the name of something large.
        let mut file = Zeroizing::new(Vec::with_capacity(LONGEST as usize));
        let opened = std::fs::File::open(path).map_err(|error| unreadable(path, &error))?;
        let is_public = is_public(&opened);
        opened
            .take(LONGEST)
            .read_to_end(&mut file)
            .map_err(|error| unreadable(path, &error))?;
        let key = Key::parse(&file).map_err(|error| error.to_string())?;
        Ok(Self {
            // No key has half as many bytes as the others.
            could_be_digits: file.len() == 32 && file.iter().all(u8::is_ascii_hexdigit),
            key,
            path: path.to_owned(),
            is_public,
        })
    }

    /// Warns about files that may hold the wrong key, or that other users can access.
    pub fn warn<'k>(files: impl IntoIterator<Item = &'k Self>, terminal: &Terminal) {
        let files: Vec<&Self> = files.into_iter().collect();
        for file in files.iter().filter(|file| file.is_public) {
            terminal.warning(format_args!(
                "{}: everybody on this machine can read or write the key file",
                file.path
            ));
            terminal.hint(format_args!("chmod 600 {}", file.path));
        }
        for file in files.iter().filter(|file| file.could_be_digits) {
            terminal.warning(format_args!(
                "{}: its 32 bytes are the key, of 256 bits, though all of them are hexadecimal digits: \
                 these are a key of 128 bits only with the end of the line behind them",
                file.path
            ));
        }
    }
}

/// Whether others than its owner and group may read or write a file.
#[cfg(unix)]
fn is_public(file: &std::fs::File) -> bool {
    use std::os::unix::fs::PermissionsExt;

    let metadata = file.metadata().ok();
    metadata
        .is_some_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o006 != 0)
}

/// Permissions of other systems are not known here.
#[cfg(not(unix))]
fn is_public(_file: &std::fs::File) -> bool {
    false
}
