//! Files for what does not fit into memory. They have no names, so none is left however the program ends.

use std::fs::File;
use std::io::{self, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use datafusion::common::Result;
use datafusion::execution::{SpillFile, SpillWriter, TempFileFactory};
use futures::Stream;
use kymo_io::{ReadAt, temporary_file, write_temporary};

/// The bytes of the traits, which are of a crate of their own.
type Bytes = <object_store::PutPayload as IntoIterator>::Item;

/// Bytes that are read together.
const PIECE: u64 = 128 << 10;

/// Makes the files, in the directory for temporary files.
pub(crate) struct Spills;

impl TempFileFactory for Spills {
    fn create_temp_file(&self, _: &str) -> Result<Arc<dyn SpillFile>> {
        Ok(Arc::new(Spill(Arc::new(Content {
            file: temporary_file()?,
            length: AtomicU64::new(0),
        }))))
    }
}

struct Spill(Arc<Content>);

struct Content {
    file: File,
    /// Bytes that were written.
    length: AtomicU64,
}

impl Content {
    /// What follows the bytes before `offset`; nothing at the end.
    fn piece(&self, offset: u64) -> io::Result<Option<Vec<u8>>> {
        let left = self.length.load(Ordering::Acquire).saturating_sub(offset);
        if left == 0 {
            return Ok(None);
        }
        let mut piece = vec![0; left.min(PIECE) as usize];
        self.file.read_at(offset, &mut piece)?;
        Ok(Some(piece))
    }
}

impl SpillFile for Spill {
    fn size(&self) -> Option<u64> {
        Some(self.0.length.load(Ordering::Acquire))
    }

    fn read_stream(&self) -> Result<Pin<Box<dyn Stream<Item = Result<Bytes>> + Send>>> {
        let begin = (Arc::clone(&self.0), 0);
        let pieces = futures::stream::try_unfold(begin, |(content, offset)| async move {
            let piece = content.piece(offset)?;
            Ok(piece.map(|piece| {
                let next = offset + piece.len() as u64;
                (Bytes::from(piece), (content, next))
            }))
        });
        Ok(Box::pin(pieces))
    }

    fn open_writer(&self) -> Result<Box<dyn SpillWriter>> {
        Ok(Box::new(Writer(Arc::clone(&self.0))))
    }
}

struct Writer(Arc<Content>);

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        write_temporary(&self.0.file, bytes)?;
        let count = bytes.len() as u64;
        self.0.length.fetch_add(count, Ordering::Release);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl SpillWriter for Writer {
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}
