//! Bounds on what the pages of a file become.

use super::Problem;

/// What the rows that are read together may still take.
#[derive(Debug)]
pub(super) struct Budget {
    left: u64,
    whole: u64,
    /// What the pages of the file may still become, one after the other.
    unpacked: u64,
}

impl Budget {
    pub(super) fn new(whole: u64, unpacked: u64) -> Self {
        Self {
            left: whole,
            whole,
            unpacked,
        }
    }

    /// Begins with other rows of the file.
    pub(super) fn begin(&mut self) {
        self.left = self.whole;
    }

    /// Takes what a page, or what is written out of it, becomes.
    pub(super) fn unpack(&mut self, bytes: u64) -> Result<(), Problem> {
        let left = self.unpacked.checked_sub(bytes);
        self.unpacked = left.ok_or("the pages of the file become too many times its size")?;
        self.take(bytes)
    }

    pub(super) fn take(&mut self, bytes: u64) -> Result<(), Problem> {
        self.left = self.left.checked_sub(bytes).ok_or_else(|| {
            format!(
                "the rows that are read together, and their pages, take more than {} bytes",
                self.whole
            )
        })?;
        Ok(())
    }

    pub(super) fn give_back(&mut self, bytes: u64) {
        self.left = self.left.saturating_add(bytes).min(self.whole);
    }
}
