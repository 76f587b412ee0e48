//! Paths that are given as bytes, as protocols and command lines have them.

use std::borrow::Cow;
use std::path::Path;

/// The path that some bytes name. Where paths are not bytes, what is not UTF-8 becomes U+FFFD.
pub fn path(name: &[u8]) -> Cow<'_, Path> {
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt;
        Cow::Borrowed(Path::new(std::ffi::OsStr::from_bytes(name)))
    }
    #[cfg(not(unix))]
    {
        match String::from_utf8_lossy(name) {
            Cow::Borrowed(text) => Cow::Borrowed(Path::new(text)),
            Cow::Owned(text) => Cow::Owned(text.into()),
        }
    }
}

/// A name as messages show it.
pub fn shown(name: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(name)
}
