//! Words of a command line as paths.

use std::borrow::Cow;
use std::path::Path;

/// The path that a word tells.
pub(crate) fn path(word: &[u8]) -> Cow<'_, Path> {
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt;
        Cow::Borrowed(Path::new(std::ffi::OsStr::from_bytes(word)))
    }
    #[cfg(not(unix))]
    {
        match String::from_utf8_lossy(word) {
            Cow::Borrowed(text) => Cow::Borrowed(Path::new(text)),
            Cow::Owned(text) => Cow::Owned(text.into()),
        }
    }
}

/// A word as it is shown in messages.
pub(crate) fn shown(word: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(word)
}
