//! The answer to a unit of work, which is kept until it is complete: in memory, or in a temporary file if it is large.

use std::fs::File;
use std::io::{BufReader, Cursor, Read};
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::ipc::reader::StreamReader;
use datafusion::common::{Result, internal_datafusion_err};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::{SpillFile, SpillWriter};

/// An answer that is longer goes to a file, if memory would be left, too.
const SMALL: usize = 4 << 20;

/// The bytes of an Arrow IPC stream.
pub(super) struct Answer {
    runtime: Arc<RuntimeEnv>,
    memory: MemoryReservation,
    small: Vec<u8>,
    file: Option<(Arc<dyn SpillFile>, Box<dyn SpillWriter>)>,
    pub(super) bytes: u64,
    /// Damage that the worker met.
    pub(super) damage: Vec<String>,
}

impl Answer {
    pub(super) fn new(runtime: &Arc<RuntimeEnv>) -> Self {
        let consumer = MemoryConsumer::new("answers of workers").with_can_spill(true);
        Self {
            memory: consumer.register(&runtime.memory_pool),
            runtime: Arc::clone(runtime),
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
            let disk = &self.runtime.disk_manager;
            let file = disk.create_tmp_file("answers of workers")?;
            let mut writer = file.open_writer()?;
            writer.write_all(&std::mem::take(&mut self.small))?;
            self.memory.free();
            self.file = Some((file, writer));
        }
        if let Some((_, writer)) = &mut self.file {
            writer.write_all(data)?;
        }
        Ok(())
    }

    /// Hands over the rows until `take` wants no more.
    ///
    /// # Errors
    ///
    /// The answer is not a stream of rows, or cannot be read.
    pub(super) fn read(mut self, mut take: impl FnMut(RecordBatch) -> bool) -> Result<()> {
        let reader: Box<dyn Read + Send> = match &mut self.file {
            Some((file, writer)) => {
                writer.finish()?;
                let path = file.path();
                let path = path.ok_or_else(|| internal_datafusion_err!("no temporary file"))?;
                Box::new(BufReader::with_capacity(1 << 18, File::open(path)?))
            }
            None => Box::new(Cursor::new(std::mem::take(&mut self.small))),
        };
        for batch in StreamReader::try_new(reader, None)? {
            if !take(batch?) {
                break;
            }
        }
        Ok(())
    }
}
