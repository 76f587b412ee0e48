//! The answer to a unit of work, which is kept until it is complete: in memory, or in a temporary file if it is large.

use std::fs::File;
use std::io::{BufReader, Cursor, Read, Seek};
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::ipc::reader::StreamReader;
use datafusion::common::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::runtime_env::RuntimeEnv;
use kymo_io::{temporary_file, write_temporary};

/// An answer that is longer goes to a file, if memory would be left, too.
const SMALL: usize = 4 << 20;

/// The bytes of an Arrow IPC stream.
pub(super) struct Answer {
    memory: MemoryReservation,
    small: Vec<u8>,
    file: Option<File>,
    pub(super) bytes: u64,
    /// Damage that the worker met.
    pub(super) damage: Vec<String>,
}

impl Answer {
    pub(super) fn new(runtime: &Arc<RuntimeEnv>) -> Self {
        let consumer = MemoryConsumer::new("answers of workers").with_can_spill(true);
        Self {
            memory: consumer.register(&runtime.memory_pool),
            small: Vec::new(),
            file: None,
            bytes: 0,
            damage: Vec::new(),
        }
    }

    /// Adds what came next. It may have to be written to a file.
    ///
    /// # Errors
    ///
    /// What hinders writing.
    pub(super) fn add(&mut self, data: &[u8]) -> Result<()> {
        self.bytes += data.len() as u64;
        if self.file.is_none() {
            let fits =
                self.small.len() + data.len() <= SMALL && self.memory.try_grow(data.len()).is_ok();
            if fits {
                self.small.extend_from_slice(data);
                return Ok(());
            }
            let file = temporary_file()?;
            write_temporary(&file, &std::mem::take(&mut self.small))?;
            self.memory.free();
            self.file = Some(file);
        }
        if let Some(file) = &self.file {
            write_temporary(file, data)?;
        }
        Ok(())
    }

    /// Hands over the rows until `take` wants no more.
    ///
    /// # Errors
    ///
    /// The answer is not a stream of rows, or cannot be read.
    pub(super) fn read(self, mut take: impl FnMut(RecordBatch) -> bool) -> Result<()> {
        let reader: Box<dyn Read + Send> = match self.file {
            Some(mut file) => {
                file.rewind()?;
                Box::new(BufReader::with_capacity(1 << 18, file))
            }
            None => Box::new(Cursor::new(self.small)),
        };
        for batch in StreamReader::try_new(reader, None)? {
            if !take(batch?) {
                break;
            }
        }
        Ok(())
    }
}
