//! Tables as recordings.
//!
//! A directory that [`Directory`](crate::Directory) has written has all that its traces were: the tables `recordings`,
//! `packets` and of each event class are put together again, as a trace in CTF 2 in temporary storage. Everything that
//! reads traces reads that. A Parquet file of another program is a trace of one event class, with what its columns hold.
//!
//! Files are read row group by row group and a thousand rows at a time; the temporary storage is bounded by
//! [`SPOOL_LIMIT`](kymo_io::SPOOL_LIMIT).

mod budget;
mod codec;
mod column;
mod decode;
mod footer;
mod groups;
mod head;
mod numbers;
mod order;
mod pages;
mod plain;
mod rows;
mod schema;
#[cfg(test)]
mod tests;
mod thrift;
mod trace;
mod values;

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, Schema};
use kymo::AnyRecording;
use kymo::convert::ctf::{StreamModel, TraceModel};
use kymo::open::{Error as OpenError, FileFormat, OpenedFile, Options};
use kymo_ctf::metadata;
use kymo_ctf::trace::Trace;
use kymo_ctf::write::EventId;
use kymo_io::{Access, Bytes, EntryKind, Tree};

use self::column::Column;
use self::footer::{ENCRYPTED, MAGIC};
use self::groups::Batch;
use self::order::{Heads, Position};
use self::rows::{Columns, Own, Rows, TableFile, Ticks, bytes_of};
use self::trace::{Maker, PacketRow};
use crate::kinds::{CLASS, RECORDING};

/// The table without which a directory is not one of ours.
const RECORDINGS: &str = "recordings";

/// Parquet files, and directories of tables: for [`Options::formats`].
pub static FORMAT: FileFormat = FileFormat {
    endings: &["parquet"],
    probe: |bytes, _| {
        let is_parquet = bytes.starts_with(MAGIC) || bytes.starts_with(ENCRYPTED);
        is_parquet.then_some(100)
    },
    open: open_file,
    open_file: None,
    open_directory: Some(open_directory),
};

/// Formats for [`Options::formats`].
pub static FORMATS: &[FileFormat] = std::slice::from_ref(&FORMAT);

/// Why tables are not a recording.
type Problem = String;

fn refused(path: &Path, message: Problem) -> OpenError {
    OpenError::Added {
        path: path.to_path_buf(),
        message,
        hint: None,
    }
}

/// How many rows a Parquet file says that it has; `None` if it is not one.
pub fn parquet_rows(bytes: Bytes) -> Option<u64> {
    let file = TableFile::new(bytes_of(bytes), true);
    file.ok().map(|file| file.rows())
}

fn open_file(path: &Path, bytes: Bytes, options: &Options) -> OpenedFile {
    match plain::open(path, bytes_of(bytes), options) {
        Ok(trace) => Ok(AnyRecording::Ctf(trace)),
        Err(problem) => Err(refused(path, problem)),
    }
}

/// The files of a table that is a directory.
fn files_of(tree: &Tree, directory: &Path) -> Vec<PathBuf> {
    let entries = tree.list(directory).unwrap_or_default();
    let files = entries.into_iter().filter(|entry| {
        entry.kind == EntryKind::File
            && entry
                .path
                .extension()
                .is_some_and(|extension| extension == "parquet")
    });
    files.map(|entry| entry.path).collect()
}

fn content(tree: &Tree, path: &Path) -> Result<bytes::Bytes, Problem> {
    let bytes = tree.open(path, Access::Sequential);
    let bytes = bytes.map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(bytes_of(bytes))
}

fn file(tree: &Tree, path: &Path) -> Result<TableFile, Problem> {
    TableFile::new(content(tree, path)?, false)
        .map_err(|error| format!("{}: {error}", path.display()))
}

fn open_directory(tree: &Tree, path: &Path, options: &Options) -> Option<Vec<OpenedFile>> {
    let recordings = files_of(tree, &path.join(RECORDINGS));
    if recordings.is_empty() {
        return None;
    }
    let opened = open_tables(tree, path, &recordings, options);
    let mut opened = opened.unwrap_or_else(|problem| vec![Err(refused(path, problem))]);
    // Values of databases are events of a trace of their own.
    for samples in files_of(tree, &path.join("samples")) {
        opened.push(match tree.open(&samples, Access::Sequential) {
            Ok(bytes) => open_file(&samples, bytes, options),
            Err(error) => Err(OpenError::Unreadable {
                path: samples,
                error,
            }),
        });
    }
    Some(opened)
}

/// A recording that a directory of tables has.
struct Description {
    /// What it was said to be.
    path: String,
    /// Its class model in CTF 2; none if that cannot hold it.
    metadata: Option<String>,
    streams: Vec<StreamModel>,
}

fn open_tables(
    tree: &Tree,
    root: &Path,
    recordings: &[PathBuf],
    options: &Options,
) -> Result<Vec<OpenedFile>, Problem> {
    let mut all = Vec::new();
    for path in recordings {
        descriptions(&file(tree, path)?, &mut all)
            .map_err(|problem| format!("{}: {problem}", path.display()))?;
    }
    let mut files: BTreeMap<usize, Vec<(PathBuf, TableFile)>> = BTreeMap::new();
    let entries = tree.list(root).map_err(|error| error.to_string())?;
    for entry in entries {
        let name = entry.name.to_string_lossy();
        if entry.kind != EntryKind::Directory || !name.starts_with("class=") {
            continue;
        }
        for path in files_of(tree, &entry.path) {
            let file = file(tree, &path)?;
            let number = file.schema().metadata().get(RECORDING);
            let number = number.and_then(|number| number.parse().ok());
            let number = number.filter(|&number: &usize| number < all.len());
            let Some(number) = number else {
                return Err(format!(
                    "{}: its recording is not in `{RECORDINGS}`",
                    path.display()
                ));
            };
            files.entry(number).or_default().push((path, file));
        }
    }
    let mut packets = packets(tree, root, &all)?;
    let is_alone = all
        .iter()
        .filter(|description| description.metadata.is_some())
        .count()
        == 1;
    let mut opened = Vec::new();
    for (number, description) in all.iter().enumerate() {
        let path = match is_alone {
            true => root.to_path_buf(),
            false => root.join(number.to_string()),
        };
        let files = files.remove(&number).unwrap_or_default();
        let packets = packets.remove(&number).unwrap_or_default();
        if description.metadata.is_none() && files.is_empty() {
            continue;
        }
        let trace = put_together(&path, description, &files, packets, options);
        opened.push(match trace {
            Ok(trace) => Ok(AnyRecording::Ctf(trace)),
            Err(problem) => Err(refused(&path, problem)),
        });
    }
    Ok(opened)
}

/// The column of a name.
fn named<'b>(schema: &Schema, batch: &'b Batch, name: &str) -> Result<&'b Column, Problem> {
    let column = schema.index_of(name).ok();
    let column = column.and_then(|position| batch.columns.get(position));
    column.ok_or_else(|| format!("it has no column `{name}`"))
}

/// The members that the structures of a list have.
fn members_of(list: &Field) -> Option<&Fields> {
    match list.data_type() {
        DataType::List(item) => match item.data_type() {
            DataType::Struct(members) => Some(members),
            _ => None,
        },
        _ => None,
    }
}

/// The rows of the table of recordings.
fn descriptions(file: &TableFile, all: &mut Vec<Description>) -> Result<(), Problem> {
    let schema = file.schema();
    for batch in file.read() {
        let batch = batch?;
        let path = named(schema, &batch, "recording")?;
        let metadata = named(schema, &batch, "metadata")?;
        let streams = named(schema, &batch, "streams")?;
        let members = schema.field_with_name("streams").ok().and_then(members_of);
        let members = members.ok_or("`streams` is not a list of structures")?;
        let member = |name: &str| {
            let position = members.find(name).map(|(position, _)| position);
            position.ok_or_else(|| format!("`streams` has no member `{name}`"))
        };
        let [class, id, name] = [member("class")?, member("id")?, member("name")?];
        for row in 0..batch.rows {
            let (items, streams) = streams.list(row).unwrap_or((0..0, streams));
            let streams = items.map(|stream| {
                let member = |position: usize| streams.members().get(position);
                let number = |position: usize| member(position)?.unsigned(stream);
                StreamModel {
                    stream_class: number(class)
                        .and_then(|class| usize::try_from(class).ok())
                        .unwrap_or(usize::MAX),
                    id: number(id),
                    name: member(name)
                        .and_then(|name| name.text(stream))
                        .unwrap_or_default()
                        .to_owned(),
                }
            });
            all.push(Description {
                path: path.text(row).unwrap_or_default().to_owned(),
                metadata: metadata.text(row).map(str::to_owned),
                streams: streams.collect(),
            });
        }
    }
    Ok(())
}

/// The packets of each stream of each recording.
type Packets = BTreeMap<usize, BTreeMap<u32, VecDeque<PacketRow>>>;

fn packets(tree: &Tree, root: &Path, all: &[Description]) -> Result<Packets, Problem> {
    let mut packets = Packets::new();
    for path in files_of(tree, &root.join("packets")) {
        let of_file = |problem: Problem| format!("{}: {problem}", path.display());
        let file = file(tree, &path)?;
        for batch in file.read() {
            let batch = batch.map_err(of_file)?;
            let column = |name: &str| named(file.schema(), &batch, name).map_err(of_file);
            let recordings = column("recording")?;
            let [stream, packet, begin, end, lost_events, lost_packets] = [
                column("stream")?,
                column("packet")?,
                column("begin_ticks")?,
                column("end_ticks")?,
                column("lost_events")?,
                column("lost_packets")?,
            ];
            let fields = column("fields")?;
            // One text for all packets that say the same.
            let mut before: Option<Arc<str>> = None;
            for row in 0..batch.rows {
                let path = recordings.text(row).unwrap_or_default();
                let Some(recording) = all.iter().position(|description| description.path == path)
                else {
                    return Err(of_file(format!("`{path}` is not in `{RECORDINGS}`")));
                };
                let fields = fields.text(row).map(|fields| match &before {
                    Some(before) if **before == *fields => Arc::clone(before),
                    _ => Arc::from(fields),
                });
                before = fields.clone().or(before);
                let stream = stream
                    .unsigned(row)
                    .and_then(|number| u32::try_from(number).ok());
                let of_stream = packets.entry(recording).or_default();
                let of_stream = of_stream.entry(stream.unwrap_or(u32::MAX)).or_default();
                of_stream.push_back(PacketRow {
                    number: packet.unsigned(row).unwrap_or(0),
                    begin: begin.unsigned(row),
                    end: end.unsigned(row),
                    lost_events: lost_events.unsigned(row).unwrap_or(0),
                    lost_packets: lost_packets.unsigned(row).unwrap_or(0),
                    fields,
                });
            }
        }
    }
    Ok(packets)
}

/// Makes a trace of the rows of a recording.
fn put_together(
    path: &Path,
    description: &Description,
    files: &[(PathBuf, TableFile)],
    packets: BTreeMap<u32, VecDeque<PacketRow>>,
    options: &Options,
) -> Result<Trace, Problem> {
    let Some(text) = &description.metadata else {
        return Err(format!("`{}` cannot be a trace in CTF 2", description.path));
    };
    let class = metadata::parse(
        text.as_bytes(),
        &format!("{RECORDINGS}: metadata of `{}`", description.path),
    );
    let class = class.map_err(|error| error.to_string())?.class;
    let mut classes = Vec::with_capacity(files.len());
    for (path, file) in files {
        let of_file = |problem: Problem| format!("{}: {problem}", path.display());
        let event = file.schema().metadata().get(CLASS);
        let event = event.and_then(|event| {
            let (stream_class, event) = event.split_once('/')?;
            Some(EventId {
                stream_class: stream_class.parse().ok()?,
                event: event.parse().ok()?,
            })
        });
        let event = event.ok_or_else(|| of_file(format!("it has no `{CLASS}`")))?;
        let columns = Columns::new(file.schema(), &class, event).map_err(of_file)?;
        let own = own(file, &class, event).map_err(of_file)?;
        let name = class.streams[event.stream_class].events[event.event]
            .name
            .as_deref();
        let groups = match (
            own.timestamp,
            options.hint.has_event(name.unwrap_or_default()),
        ) {
            (_, false) => Vec::new(),
            (Some(time), true) => file.groups_within(time, options.hint.window),
            (None, true) => (0..file.groups()).collect(),
        };
        classes.push((columns, own, groups));
    }
    // When the recording begins and ends is known where nothing of it is wanted.
    let has_none = classes.iter().all(|(_, _, groups)| groups.is_empty());
    let mut readers = Vec::with_capacity(files.len());
    for ((_, file), (columns, own, groups)) in files.iter().zip(classes) {
        let groups = match has_none {
            true => file.ends(),
            false => groups,
        };
        readers.push(Rows::new(file, groups, columns, own));
    }
    let model = TraceModel {
        class,
        streams: description.streams.clone(),
        events: Vec::new(),
    };
    let mut maker = Maker::new(&model, packets).map_err(|error| error.to_string())?;
    let mut heads = Heads::default();
    for (number, rows) in readers.iter_mut().enumerate() {
        let next = rows.next();
        let next = next.map_err(|error| format!("{}: {error}", files[number].0.display()))?;
        if let Some((time, position)) = next {
            heads.put(number, time, position);
        }
    }
    let mut before = None;
    while let Some(number) = heads.take(before) {
        let rows = &mut readers[number];
        let of_file = |problem: String| format!("{}: {problem}", files[number].0.display());
        // As long as no other file can have a row in between.
        let mut position: Position = heads.position(number);
        loop {
            let stream = position.stream as usize;
            let known = model
                .streams
                .get(stream)
                .filter(|_| stream < maker.streams());
            if known.is_none_or(|known| known.stream_class != rows.event().stream_class) {
                return Err(of_file(format!(
                    "a row is of stream {stream}, which has no such event class"
                )));
            }
            let event = rows.event();
            maker
                .event((stream, position.packet), event, rows.ticks(), |to| {
                    rows.give(to)
                })
                .map_err(|error| of_file(error.to_string()))?;
            before = Some(position);
            let Some((time, next)) = rows.next().map_err(of_file)? else {
                break;
            };
            if !position.is_just_before(next) {
                heads.put(number, time, next);
                break;
            }
            position = next;
        }
    }
    maker
        .open(path, &options.trace)
        .map_err(|error| error.to_string())
}

/// Where the columns of every row are: in front of those of the class.
fn own(
    file: &TableFile,
    class: &kymo_ctf::class::TraceClass,
    event: EventId,
) -> Result<Own, Problem> {
    let schema = file.schema();
    // Such a column begins with `_` if a field has its name, and more than once if that is one, too.
    let find = |name: &str| {
        let position = schema.fields().iter().position(|field| {
            field.metadata().is_empty() && field.name().trim_start_matches('_') == name
        });
        position.ok_or_else(|| format!("it has no column `{name}`"))
    };
    let clock = class
        .streams
        .get(event.stream_class)
        .and_then(|stream| stream.clock);
    let timestamp = find("timestamp")?;
    Ok(Own {
        timestamp: Some(timestamp),
        ticks: match clock {
            Some(_) => Ticks::Column(find("ticks")?),
            None => Ticks::Since(0),
        },
        position: Some([find("stream")?, find("packet")?, find("number")?]),
    })
}
