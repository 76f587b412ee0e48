//! Bytes that are read and written at offsets: files, and what stands in for them.

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// Bytes that can be read at any offset: a file, a mapping, a [`Window`] of another source.
///
/// Each call may fail and may be slow, since the bytes may be on the other side of a network.
///
/// ```
/// use kymo_io::{ReadAt, Window};
///
/// let content = Window::new(b"a header, then content".to_vec(), 15..22)?;
/// assert_eq!(content.length()?, 7);
/// assert_eq!(*content.read_range(0..4)?, *b"cont");
/// assert!(content.read_range(5..8).is_err());
/// # Ok::<(), std::io::Error>(())
/// ```
pub trait ReadAt {
    /// Number of bytes.
    ///
    /// # Errors
    ///
    /// Those of asking the operating system.
    fn length(&self) -> io::Result<u64>;

    /// Fills the buffer with the bytes from an offset on.
    ///
    /// # Errors
    ///
    /// Those of reading; `UnexpectedEof` if there are not enough bytes.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;

    /// A range of the bytes: borrowed from sources that are in memory or mapped, else read.
    ///
    /// # Errors
    ///
    /// Those of [`ReadAt::read_at`]; `UnexpectedEof` also where the range ends before it begins.
    fn read_range(&self, range: Range<u64>) -> io::Result<Cow<'_, [u8]>> {
        // No memory is allocated for bytes that do not exist.
        if range.start > range.end || range.end > self.length()? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let length = usize::try_from(range.end - range.start);
        let mut bytes = vec![0; length.map_err(|_| io::ErrorKind::FileTooLarge)?];
        self.read_at(range.start, &mut bytes)?;
        Ok(Cow::Owned(bytes))
    }

    /// Whether these bytes are at an offset, one part after the other.
    ///
    /// # Errors
    ///
    /// Those of [`ReadAt::read_at`].
    fn holds(&self, offset: u64, parts: &[&[u8]]) -> io::Result<bool> {
        let mut there = vec![0; parts.iter().map(|part| part.len()).sum()];
        self.read_at(offset, &mut there)?;
        let mut rest = &there[..];
        Ok(parts.iter().all(|part| {
            let (now, after) = rest.split_at(part.len());
            rest = after;
            now == *part
        }))
    }
}

/// A source of bytes that several threads read.
pub type SharedSource = Arc<dyn ReadAt + Send + Sync>;

/// Bytes that can be changed in place.
///
/// What is written may reach the disk at any time and in any order, in parts too, until
/// [`Storage::sync`] has returned. After an error of a write any part of it may have been
/// done.
pub trait Storage: ReadAt {
    /// Writes at an offset, beyond the end too: between them zeros appear.
    ///
    /// # Errors
    ///
    /// Those of writing.
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Cuts off what is behind a length, or adds zeros up to it.
    ///
    /// # Errors
    ///
    /// Those of changing the length.
    fn set_length(&mut self, length: u64) -> io::Result<()>;

    /// Waits until everything that was written is on the disk.
    ///
    /// # Errors
    ///
    /// Those of writing to the disk. What was written before may then be lost.
    fn sync(&mut self) -> io::Result<()>;
}

impl ReadAt for [u8] {
    fn length(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let bytes = usize::try_from(offset)
            .ok()
            .and_then(|offset| self.get(offset..)?.get(..buffer.len()))
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(bytes);
        Ok(())
    }

    fn read_range(&self, range: Range<u64>) -> io::Result<Cow<'_, [u8]>> {
        let begin = usize::try_from(range.start).ok();
        let range = begin.zip(usize::try_from(range.end).ok());
        let bytes = range.and_then(|(begin, end)| self.get(begin..end));
        Ok(Cow::Borrowed(bytes.ok_or(io::ErrorKind::UnexpectedEof)?))
    }
}

impl ReadAt for Vec<u8> {
    fn length(&self) -> io::Result<u64> {
        self.as_slice().length()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.as_slice().read_at(offset, buffer)
    }

    fn read_range(&self, range: Range<u64>) -> io::Result<Cow<'_, [u8]>> {
        self.as_slice().read_range(range)
    }
}

/// A file in memory. There is no disk to wait for.
impl Storage for Vec<u8> {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let begin = usize::try_from(offset).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let end = begin
            .checked_add(bytes.len())
            .ok_or(io::ErrorKind::FileTooLarge)?;
        if self.len() < end {
            self.resize(end, 0);
        }
        self[begin..end].copy_from_slice(bytes);
        Ok(())
    }

    fn set_length(&mut self, length: u64) -> io::Result<()> {
        let length = usize::try_from(length).map_err(|_| io::ErrorKind::FileTooLarge)?;
        if self.is_empty() {
            // The system gives memory that is zero already.
            *self = vec![0; length];
        } else {
            self.resize(length, 0);
        }
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A part of a source, which is a source of its own.
#[derive(Clone, Debug)]
pub struct Window<S> {
    source: S,
    range: Range<u64>,
}

impl<S: ReadAt> Window<S> {
    /// The bytes of a range.
    ///
    /// # Errors
    ///
    /// `UnexpectedEof` if the source does not have them all.
    pub fn new(source: S, range: Range<u64>) -> io::Result<Self> {
        if range.start > range.end || range.end > source.length()? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(Self { source, range })
    }

    /// Where a range of the window lies in the source.
    fn inner(&self, begin: u64, end: Option<u64>) -> io::Result<Range<u64>> {
        let begin = self.range.start.checked_add(begin);
        let end = end.and_then(|end| self.range.start.checked_add(end));
        match begin.zip(end) {
            Some((begin, end)) if end <= self.range.end => Ok(begin..end),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

impl<S: ReadAt> ReadAt for Window<S> {
    fn length(&self) -> io::Result<u64> {
        Ok(self.range.end - self.range.start)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let range = self.inner(offset, offset.checked_add(buffer.len() as u64))?;
        self.source.read_at(range.start, buffer)
    }

    fn read_range(&self, range: Range<u64>) -> io::Result<Cow<'_, [u8]>> {
        self.source
            .read_range(self.inner(range.start, Some(range.end))?)
    }
}

impl ReadAt for File {
    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    #[cfg(unix)]
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(self, buffer, offset)
    }

    #[cfg(not(unix))]
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        use std::io::{Read, Seek};
        let mut file = self;
        file.seek(io::SeekFrom::Start(offset))?;
        file.read_exact(buffer)
    }
}

impl Storage for File {
    #[cfg(unix)]
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        std::os::unix::fs::FileExt::write_all_at(self, bytes, offset)
    }

    #[cfg(not(unix))]
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        use std::io::{Seek, Write};
        self.seek(io::SeekFrom::Start(offset))?;
        self.write_all(bytes)
    }

    fn set_length(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn sync(&mut self) -> io::Result<()> {
        // The length is synced too; only times and the like are not.
        self.sync_data()
    }
}

impl<S: ReadAt + ?Sized> ReadAt for &mut S {
    fn length(&self) -> io::Result<u64> {
        (**self).length()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        (**self).read_at(offset, buffer)
    }

    fn read_range(&self, range: Range<u64>) -> io::Result<Cow<'_, [u8]>> {
        (**self).read_range(range)
    }

    fn holds(&self, offset: u64, parts: &[&[u8]]) -> io::Result<bool> {
        (**self).holds(offset, parts)
    }
}

impl<S: Storage + ?Sized> Storage for &mut S {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        (**self).write_at(offset, bytes)
    }

    fn set_length(&mut self, length: u64) -> io::Result<()> {
        (**self).set_length(length)
    }

    fn sync(&mut self) -> io::Result<()> {
        (**self).sync()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What every storage does.
    fn behaves(storage: &mut dyn Storage) {
        let mut two = [0; 2];
        storage.write_at(3, b"abc").unwrap();
        assert_eq!(storage.length().unwrap(), 6);
        storage.read_at(2, &mut two).unwrap();
        assert_eq!(two, [0, b'a']);
        storage.write_at(4, b"B").unwrap();
        storage.read_at(4, &mut two).unwrap();
        assert_eq!(two, *b"Bc");
        assert!(storage.holds(3, &[b"aBc"]).unwrap());
        assert!(storage.holds(3, &[b"a", b"", b"Bc"]).unwrap());
        assert!(!storage.holds(3, &[b"a", b"bc"]).unwrap());
        assert!(storage.holds(4, &[b"B", b"cd"]).is_err());
        storage.sync().unwrap();

        for offset in [5, 6, 7, 1 << 40] {
            let error = storage.read_at(offset, &mut two).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        }
        storage.set_length(4).unwrap();
        storage.set_length(5).unwrap();
        storage.read_at(3, &mut two).unwrap();
        assert_eq!(two, [b'a', 0]);
    }

    #[test]
    fn a_window_ends_where_its_range_does() {
        let (memory, mut file) = (b"0123456789".to_vec(), tempfile::tempfile().unwrap());
        file.write_at(0, &memory).unwrap();
        let mut pipe = file.try_clone().unwrap();
        let sources: [&mut dyn Storage; 2] = [&mut memory.clone(), &mut pipe];
        for source in sources {
            let window = Window::new(Window::new(source, 1..9).unwrap(), 1..5).unwrap();
            assert_eq!(window.length().unwrap(), 4);
            assert_eq!(*window.read_range(0..4).unwrap(), *b"2345");
            assert_eq!(*window.read_range(4..4).unwrap(), *b"");
            let mut two = [0; 2];
            window.read_at(2, &mut two).unwrap();
            assert_eq!(two, *b"45");
            assert!(window.read_at(3, &mut two).is_err());
            assert!(window.read_at(u64::MAX, &mut two).is_err());
            assert!(window.read_range(0..5).is_err());
            assert!(window.read_range(Range { start: 3, end: 2 }).is_err());
        }
        let borrowed = |bytes| matches!(bytes, Cow::Borrowed(_));
        assert!(borrowed(memory.read_range(2..3).unwrap()));
        assert!(!borrowed(file.read_range(2..3).unwrap()));
        assert!(file.read_range(0..1 << 60).is_err());
        assert!(Window::new(memory, 3..11).is_err());
    }

    #[test]
    fn memory_and_files_are_the_same() {
        behaves(&mut Vec::new());
        behaves(&mut &mut Vec::new());
        behaves(&mut tempfile::tempfile().unwrap());
        let error = Vec::new().write_at(u64::MAX, b"x").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    }
}
