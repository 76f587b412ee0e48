//! Sections that debug information is read from, with a limit of what reading may cost.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

use gimli::{Error, Reader, ReaderOffsetId, Result, RunTimeEndian};
use kymo_io::Bytes;

thread_local! {
    /// Bytes that this thread may still read before all reads fail.
    static BUDGET: Cell<u64> = const { Cell::new(u64::MAX) };
    /// Where the stack was when the limit was set; 0 without one.
    static STACK: Cell<usize> = const { Cell::new(0) };
}

/// Bytes of the stack that reading may take. addr2line calls itself for calls that were inlined within
/// others, as deep as a file says.
const MOST_STACK: usize = 384 << 10;

/// Runs `work` with a limit: after `budget` bytes are read, or `MOST_STACK` bytes of the stack used, all reads fail.
/// Returns what is left of the bytes, too.
pub(crate) fn with_budget<T>(budget: u64, work: impl FnOnce() -> T) -> (T, u64) {
    let before = (BUDGET.replace(budget), STACK.replace(stack_place()));
    let result = work();
    STACK.set(before.1);
    (result, BUDGET.replace(before.0))
}

/// Where in memory the stack has come to, more or less.
#[inline(always)]
fn stack_place() -> usize {
    let here = 0u8;
    std::hint::black_box(&raw const here) as usize
}

/// A part of a section: bytes that are mapped or were decompressed, shared by all parts.
#[derive(Clone)]
pub(crate) struct Section {
    bytes: Arc<Bytes>,
    begin: usize,
    end: usize,
    endian: RunTimeEndian,
}

impl Section {
    /// A range of bytes, which must lie within them.
    pub(crate) fn new(
        bytes: &Arc<Bytes>,
        (begin, end): (usize, usize),
        endian: RunTimeEndian,
    ) -> Self {
        assert!(begin <= end && end <= bytes.len(), "sections lie in files");
        Self {
            bytes: Arc::clone(bytes),
            begin,
            end,
            endian,
        }
    }

    fn slice(&self) -> &[u8] {
        &self.bytes[self.begin..self.end]
    }

    fn eof(&self) -> Error {
        Error::UnexpectedEof(self.offset_id())
    }

    /// Pays for some bytes.
    #[inline]
    fn charge(&self, bytes: usize) -> Result<()> {
        let stack = STACK.get();
        if stack != 0 && stack.abs_diff(stack_place()) > MOST_STACK {
            return Err(self.eof());
        }
        let left = BUDGET.get();
        match left.checked_sub(bytes as u64 + 1) {
            Some(left) => {
                BUDGET.set(left);
                Ok(())
            }
            None => Err(self.eof()),
        }
    }
}

impl fmt::Debug for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Section({}..{})", self.begin, self.end)
    }
}

impl Reader for Section {
    type Endian = RunTimeEndian;
    type Offset = usize;

    #[inline]
    fn endian(&self) -> RunTimeEndian {
        self.endian
    }

    #[inline]
    fn len(&self) -> usize {
        self.end - self.begin
    }

    fn empty(&mut self) {
        self.begin = self.end;
    }

    fn truncate(&mut self, len: usize) -> Result<()> {
        if self.len() < len {
            return Err(self.eof());
        }
        self.end = self.begin + len;
        Ok(())
    }

    fn offset_from(&self, base: &Self) -> usize {
        self.begin.saturating_sub(base.begin)
    }

    fn offset_id(&self) -> ReaderOffsetId {
        ReaderOffsetId(self.slice().as_ptr() as u64)
    }

    fn lookup_offset_id(&self, id: ReaderOffsetId) -> Option<usize> {
        let offset = id.0.checked_sub(self.offset_id().0)?;
        (offset <= self.len() as u64).then_some(offset as usize)
    }

    fn find(&self, byte: u8) -> Result<usize> {
        let found = self.slice().iter().position(|&other| other == byte);
        self.charge(found.unwrap_or(self.len()))?;
        found.ok_or_else(|| self.eof())
    }

    #[inline]
    fn skip(&mut self, len: usize) -> Result<()> {
        if self.len() < len {
            return Err(self.eof());
        }
        self.charge(0)?;
        self.begin += len;
        Ok(())
    }

    #[inline]
    fn split(&mut self, len: usize) -> Result<Self> {
        let mut first = self.clone();
        first.truncate(len)?;
        self.skip(len)?;
        Ok(first)
    }

    fn to_slice(&self) -> Result<Cow<'_, [u8]>> {
        self.charge(self.len())?;
        Ok(self.slice().into())
    }

    fn to_string(&self) -> Result<Cow<'_, str>> {
        self.charge(self.len())?;
        let text = std::str::from_utf8(self.slice());
        text.map(Cow::from).map_err(|_| Error::BadUtf8)
    }

    fn to_string_lossy(&self) -> Result<Cow<'_, str>> {
        self.charge(self.len())?;
        Ok(String::from_utf8_lossy(self.slice()))
    }

    #[inline]
    fn read_slice(&mut self, buf: &mut [u8]) -> Result<()> {
        if self.len() < buf.len() {
            return Err(self.eof());
        }
        self.charge(buf.len())?;
        buf.copy_from_slice(&self.slice()[..buf.len()]);
        self.begin += buf.len();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_end_with_the_budget() {
        let bytes = Arc::new(Bytes::from(vec![7; 100]));
        let whole = Section::new(&bytes, (0, 100), RunTimeEndian::Little);
        let ((), left) = with_budget(20, || {
            let mut section = whole.clone();
            for _ in 0..10 {
                assert_eq!(section.read_u8(), Ok(7));
            }
            assert!(section.read_u8().is_err(), "each costs two");
        });
        assert_eq!(left, 0);
        assert_eq!(whole.clone().read_u8(), Ok(7), "no limit any longer");
        fn deep(section: &Section, depth: u32) -> u32 {
            match section.clone().read_u8() {
                Ok(_) if depth < 1_000_000 => std::hint::black_box(deep(section, depth + 1)),
                _ => depth,
            }
        }
        let (depth, _) = with_budget(u64::MAX, || deep(&whole, 0));
        assert!((100..1_000_000).contains(&depth), "the stack ends before");
        assert_eq!(whole.lookup_offset_id(whole.offset_id()), Some(0));
    }
}
