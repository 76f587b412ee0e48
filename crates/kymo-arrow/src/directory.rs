//! Tables as Parquet files in partitioned directories.
//!
//! `class=NAME/part-N.parquet` has the events of one class of one recording; `samples`, `losses` and `packets` have
//! their own directories. Files are encoded by several threads: each table belongs to one of them, so that its rows
//! stay in order.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use crate::write::{Scratch, TableWriter};
use crate::{Error, Table};

/// Maximum number of rows of a row group.
const GROUP_ROWS: usize = 1 << 20;
/// A thread ends its largest row group when all that it has open takes more bytes than this.
const MAX_OPEN: usize = 128 << 20;

/// What a thread may hold.
#[derive(Clone, Copy)]
struct Limits {
    /// A table gets a file of its own before the end if its rows take more bytes than this.
    many: usize,
    /// Maximum bytes of the rows that wait for a file.
    waiting: usize,
    /// Maximum number of open files. A table whose file was closed continues in another file.
    files: usize,
}

const LIMITS: Limits = Limits {
    many: 1 << 20,
    waiting: 48 << 20,
    files: 256,
};

/// Batches that wait for a thread.
const WAITING: usize = 4;
/// Maximum bytes of the name of a directory; file systems allow 255.
const MAX_NAME: usize = 200;

/// A file that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Its path within the directory.
    pub path: PathBuf,
    /// Its rows.
    pub rows: u64,
    /// Its size in bytes.
    pub bytes: u64,
}

/// Writes tables as Parquet files into a directory.
#[derive(Debug)]
pub struct Directory {
    /// Where each table is: the thread that writes it.
    tables: HashMap<Table, usize>,
    /// How many files each directory has.
    parts: HashMap<String, usize>,
    threads: Vec<Thread>,
}

#[derive(Debug)]
struct Thread {
    batches: Option<SyncSender<Work>>,
    handle: Option<JoinHandle<Result<Vec<Written>, Error>>>,
}

enum Work {
    /// A table that begins: its path in the directory.
    Begin(Table, PathBuf),
    Rows(Table, RecordBatch),
}

impl Directory {
    /// Writes into a directory that is there and empty, with a number of threads.
    ///
    /// # Errors
    ///
    /// The system has no thread for it.
    pub fn new(path: &Path, threads: usize) -> io::Result<Self> {
        let threads = (0..threads.max(1)).map(|number| {
            let (batches, work) = sync_channel(WAITING);
            let path = path.to_owned();
            let handle = std::thread::Builder::new()
                .name(format!("parquet {number}"))
                .spawn(move || write_tables(&path, &work))?;
            Ok(Thread {
                batches: Some(batches),
                handle: Some(handle),
            })
        });
        Ok(Self {
            tables: HashMap::new(),
            parts: HashMap::new(),
            threads: threads.collect::<io::Result<_>>()?,
        })
    }

    /// Appends rows to a table.
    ///
    /// # Errors
    ///
    /// A file cannot be written.
    pub fn write(&mut self, table: &Table, batch: RecordBatch) -> Result<(), Error> {
        let thread = match self.tables.get(table) {
            Some(&thread) => thread,
            None => {
                let thread = self.tables.len() % self.threads.len();
                let directory = directory_name(table);
                let part = self.parts.entry(directory.clone()).or_default();
                let path = Path::new(&directory).join(format!("part-{part}.parquet"));
                *part += 1;
                self.tables.insert(table.clone(), thread);
                self.send(thread, Work::Begin(table.clone(), path))?;
                thread
            }
        };
        self.send(thread, Work::Rows(table.clone(), batch))
    }

    fn send(&mut self, thread: usize, work: Work) -> Result<(), Error> {
        let sent = self.threads[thread]
            .batches
            .as_ref()
            .is_some_and(|batches| batches.send(work).is_ok());
        match sent {
            true => Ok(()),
            // It has ended, and says why.
            false => Err(match self.threads[thread].end() {
                Err(error) => error,
                Ok(_) => Error::Output(io::Error::other("a thread that writes has ended")),
            }),
        }
    }

    /// Ends all files.
    ///
    /// # Errors
    ///
    /// A file cannot be written.
    pub fn finish(mut self) -> Result<Vec<Written>, Error> {
        let mut all = Vec::new();
        for thread in &mut self.threads {
            all.extend(thread.end()?);
        }
        all.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(all)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        for thread in &mut self.threads {
            // The failure was reported, or the result is no longer needed.
            let _ = thread.end();
        }
    }
}

impl Thread {
    fn end(&mut self) -> Result<Vec<Written>, Error> {
        self.batches = None;
        match self.handle.take().map(JoinHandle::join) {
            Some(Ok(written)) => written,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Ok(Vec::new()),
        }
    }
}

/// A file that is open.
struct Open {
    path: PathBuf,
    rows: u64,
    writer: TableWriter<Appending>,
    /// The bytes of memory that its row group took when it was last written to.
    held: usize,
    /// Greater than that of all files that were not written to since.
    used: u64,
}

/// A file that is open while it is written to only: there may be more classes than a process can have open files.
struct Appending {
    path: PathBuf,
    /// What is not written yet.
    bytes: Vec<u8>,
}

/// Bytes are written to a file when there are this many of them, and at the end of a row group.
const WRITTEN_AT_ONCE: usize = 1 << 20;

impl io::Write for Appending {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        if self.bytes.len() >= WRITTEN_AT_ONCE {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let bytes = std::mem::take(&mut self.bytes);
        File::options()
            .append(true)
            .open(&self.path)?
            .write_all(&bytes)
    }
}

/// The work of one thread.
fn write_tables(root: &Path, work: &Receiver<Work>) -> Result<Vec<Written>, Error> {
    let mut files = Files::new(root, LIMITS);
    while let Ok(work) = work.recv() {
        match work {
            Work::Begin(table, path) => {
                files.names.insert(table, (path, 0));
            }
            Work::Rows(table, batch) => files.take(table, batch)?,
        }
    }
    files.finish()
}

/// The files of one thread. An open file takes memory whatever is in it, so rows wait until there are many of them.
struct Files<'p> {
    root: &'p Path,
    limits: Limits,
    /// The path of each table's first file, and how many it has.
    names: HashMap<Table, (PathBuf, u32)>,
    /// Rows of tables that have no open file, and their bytes.
    waiting: HashMap<Table, (Vec<RecordBatch>, usize)>,
    waiting_bytes: usize,
    open: HashMap<Table, Open>,
    uses: u64,
    written: Vec<Written>,
    scratch: Scratch,
}

impl<'p> Files<'p> {
    fn new(root: &'p Path, limits: Limits) -> Self {
        Self {
            root,
            limits,
            names: HashMap::new(),
            waiting: HashMap::new(),
            waiting_bytes: 0,
            open: HashMap::new(),
            uses: 0,
            written: Vec::new(),
            scratch: Scratch::default(),
        }
    }

    fn take(&mut self, table: Table, batch: RecordBatch) -> Result<(), Error> {
        if self.open.contains_key(&table) {
            return self.write(&table, &batch);
        }
        let bytes = batch.get_array_memory_size();
        let (batches, held) = self.waiting.entry(table.clone()).or_default();
        batches.push(batch);
        *held += bytes;
        self.waiting_bytes += bytes;
        if *held > self.limits.many {
            return self.open(&table);
        }
        while self.waiting_bytes > self.limits.waiting {
            let largest = self.waiting.iter().max_by_key(|(_, (_, held))| *held);
            let Some(table) = largest.map(|(table, _)| table.clone()) else {
                break;
            };
            self.open(&table)?;
        }
        Ok(())
    }

    /// Writes the rows of a table that wait into a file of their own, which stays open.
    fn open(&mut self, table: &Table) -> Result<(), Error> {
        let (batches, held) = self.waiting.remove(table).unwrap_or_default();
        self.waiting_bytes -= held;
        let Some(first) = batches.first() else {
            return Ok(());
        };
        if self.open.len() >= self.limits.files {
            let oldest = self.open.iter().min_by_key(|(_, file)| file.used);
            if let Some(oldest) = oldest.map(|(table, _)| table.clone()) {
                self.end(&oldest)?;
            }
        }
        let (path, parts) = self.names.entry(table.clone()).or_default();
        let path = match *parts {
            0 => path.clone(),
            // `part-0.parquet` goes on as `part-0-1.parquet`.
            more => {
                let stem = path.file_stem().unwrap_or_default().to_string_lossy();
                path.with_file_name(format!("{stem}-{more}.parquet"))
            }
        };
        *parts += 1;
        let file = begin(self.root, path, &first.schema())?;
        self.open.insert(table.clone(), file);
        batches
            .iter()
            .try_for_each(|batch| self.write(table, batch))
    }

    fn write(&mut self, table: &Table, batch: &RecordBatch) -> Result<(), Error> {
        let Some(file) = self.open.get_mut(table) else {
            return Ok(());
        };
        self.uses += 1;
        file.used = self.uses;
        file.rows += batch.num_rows() as u64;
        file.writer.write(batch, &mut self.scratch)?;
        file.held = file.writer.bytes();
        if self.open.values().map(|file| file.held).sum::<usize>() > MAX_OPEN
            && let Some(largest) = self.open.values_mut().max_by_key(|file| file.held)
        {
            largest.writer.end_group(&mut self.scratch)?;
            largest.held = largest.writer.bytes();
        }
        Ok(())
    }

    /// Ends the file of a table.
    fn end(&mut self, table: &Table) -> Result<(), Error> {
        if let Some(mut file) = self.open.remove(table) {
            file.writer.finish(&mut self.scratch)?;
            self.written.push(Written {
                bytes: file.writer.bytes_written() as u64,
                path: file.path,
                rows: file.rows,
            });
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Vec<Written>, Error> {
        for table in self.open.keys().cloned().collect::<Vec<_>>() {
            self.end(&table)?;
        }
        for table in self.waiting.keys().cloned().collect::<Vec<_>>() {
            self.open(&table)?;
            self.end(&table)?;
        }
        Ok(self.written)
    }
}

fn begin(root: &Path, path: PathBuf, schema: &SchemaRef) -> Result<Open, Error> {
    let whole = root.join(&path);
    if let Some(parent) = whole.parent() {
        // Not the root: who has removed that wants no more files.
        match std::fs::create_dir(parent) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => made?,
        }
    }
    File::create_new(&whole)?;
    let file = Appending {
        path: whole,
        bytes: Vec::new(),
    };
    Ok(Open {
        path,
        rows: 0,
        writer: TableWriter::new(file, schema, GROUP_ROWS)?,
        held: 0,
        used: 0,
    })
}

/// The directory of a table.
fn directory_name(table: &Table) -> String {
    match table {
        Table::Class { name, class, .. } => {
            let mut encoded = encode(name);
            if encoded.len() > MAX_NAME {
                let mut end = MAX_NAME;
                // Not within `%41`.
                while encoded[..end].ends_with('%') || encoded[..end - 1].ends_with('%') {
                    end -= 1;
                }
                encoded.truncate(end);
                encoded.push_str(&format!("~{class}"));
            }
            format!("class={encoded}")
        }
        Table::Samples => "samples".to_owned(),
        Table::Losses => "losses".to_owned(),
        Table::Packets => "packets".to_owned(),
        Table::Recordings => "recordings".to_owned(),
    }
}

/// What readers of partitioned directories take for null.
const NULL_PARTITION: &str = "__HIVE_DEFAULT_PARTITION__";

/// A name as readers of partitioned directories decode it: what is not a letter, a digit, `_`, `-` or `.` is
/// percent-encoded, and so is a dot that begins it, and the first letter of what stands for null there.
fn encode(name: &str) -> String {
    let mut encoded = String::with_capacity(name.len());
    for (position, byte) in name.bytes().enumerate() {
        match byte {
            b'.' if position == 0 => encoded.push_str("%2E"),
            b'_' if position == 0 && name == NULL_PARTITION => encoded.push_str("%5F"),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' | b'.' => {
                encoded.push(char::from(byte));
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(name: &str) -> Table {
        Table::Class {
            recording: 0,
            class: 7,
            name: name.into(),
        }
    }

    #[test]
    fn values_that_all_differ_are_written_as_differences() {
        use arrow_array::{ArrayRef, Int64Array, StringArray, UInt64Array};
        use std::sync::Arc;

        let rows = 100_000_u64;
        let numbers: ArrayRef =
            Arc::new(UInt64Array::from_iter_values((0..rows).map(|row| row * 3)));
        let few: ArrayRef = Arc::new(Int64Array::from_iter_values(
            (0..rows).map(|row| (row % 7) as i64),
        ));
        let texts: ArrayRef = Arc::new(StringArray::from_iter_values(
            (0..rows).map(|_| "swapper/0"),
        ));
        let batch =
            RecordBatch::try_from_iter([("seq", numbers), ("cpu", few), ("comm", texts)]).unwrap();
        let place = tempfile::tempdir().unwrap();
        let mut directory = Directory::new(place.path(), 1).unwrap();
        directory.write(&class("a"), batch).unwrap();
        let written = directory.finish().unwrap();
        // 8 bytes in 64 KiB of different numbers, then some bits; others have 3 bits and none.
        assert!(written[0].bytes < 200_000, "{}", written[0].bytes);
    }

    #[test]
    fn tables_go_on_in_further_files() {
        use arrow_array::UInt64Array;
        use std::sync::Arc;

        let place = tempfile::tempdir().unwrap();
        let limits = Limits {
            many: 1,
            waiting: 1,
            files: 2,
        };
        let mut files = Files::new(place.path(), limits);
        let tables: Vec<_> = ["a", "b", "c"].into_iter().map(class).collect();
        for table in &tables {
            let path = Path::new(&directory_name(table)).join("part-0.parquet");
            files.names.insert(table.clone(), (path, 0));
        }
        for round in 0..3_u64 {
            for table in &tables {
                let column: arrow_array::ArrayRef = Arc::new(UInt64Array::from(vec![round]));
                let batch = RecordBatch::try_from_iter([("x", column)]).unwrap();
                files.take(table.clone(), batch).unwrap();
                assert!(files.open.len() <= 2);
            }
        }
        let written = files.finish().unwrap();
        assert_eq!(written.iter().map(|file| file.rows).sum::<u64>(), 9);
        let has = |path: &str| written.iter().any(|file| file.path == Path::new(path));
        assert!(has("class=a/part-0.parquet") && has("class=a/part-0-1.parquet"));
        assert!(
            written
                .iter()
                .all(|file| place.path().join(&file.path).is_file())
        );
    }

    #[test]
    fn names_of_directories_are_encoded_and_bounded() {
        for (name, expected) in [
            ("sched_switch", "class=sched_switch"),
            ("lttng_ust:event", "class=lttng_ust%3Aevent"),
            ("../../etc", "class=%2E.%2F..%2Fetc"),
            ("", "class="),
            ("ö", "class=%C3%B6"),
            (
                "__HIVE_DEFAULT_PARTITION__",
                "class=%5F_HIVE_DEFAULT_PARTITION__",
            ),
        ] {
            assert_eq!(directory_name(&class(name)), expected);
        }
        for long in [
            "a".repeat(300),
            "/".repeat(300),
            format!("a{}", "/".repeat(300)),
        ] {
            let found = directory_name(&class(&long));
            assert!(found.len() <= 220 && found.ends_with("~7"), "{found}");
            let whole = found.trim_start_matches("class=").trim_end_matches("~7");
            let percents = whole.matches("%2F").count();
            assert_eq!(whole.matches('%').count(), percents, "{found}");
        }
    }
}
