//! A range of the recordings in another format, for the page to save.

use std::fmt;
use std::sync::Mutex;
use std::sync::TryLockError;

/// What is to be saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saving {
    /// The format, as `kymo convert --to` names it.
    pub format: String,
    /// From when to when, both included, in nanoseconds.
    pub begin: i64,
    /// When it ends.
    pub end: i64,
    /// Which of the events that are shown, if not all.
    pub condition: Option<String>,
    /// What a directory is called within the archive that holds it.
    pub name: String,
}

type Convert = dyn FnMut(&Saving) -> Result<Vec<u8>, String> + Send;

/// Converts what is to be saved, one request after the other.
pub struct Save(Mutex<Box<Convert>>);

impl Save {
    /// With what converts.
    pub fn new(convert: impl FnMut(&Saving) -> Result<Vec<u8>, String> + Send + 'static) -> Self {
        Self(Mutex::new(Box::new(convert)))
    }

    /// The bytes of a file.
    pub(crate) fn bytes(&self, saving: &Saving) -> Result<Vec<u8>, String> {
        match self.0.try_lock() {
            Ok(mut convert) => convert(saving),
            Err(TryLockError::WouldBlock) => {
                Err("something else is being saved: try again when it is done".into())
            }
            Err(TryLockError::Poisoned(_)) => Err("saving has failed".into()),
        }
    }
}

impl Default for Save {
    fn default() -> Self {
        Self::new(|_| Err("this server does not convert".into()))
    }
}

impl fmt::Debug for Save {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Save")
    }
}
