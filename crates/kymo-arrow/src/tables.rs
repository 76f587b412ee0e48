//! The tables of recordings, and their columns.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow_array::types::UInt32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, RecordBatch, StringArray, TimestampNanosecondArray, UInt32Array,
    UInt64Array,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use kymo::AnyRecording;
use kymo::convert::ctf::TraceModel;
use kymo::pipeline::Window;
use kymo::timeline::{Batch, Columns, Notice, NoticeKind, Query, RowTracks, Timeline, TrackEntry};
use kymo_ctf::write::EventId;
use kymo_model::batch::{ColumnType, all_columns};
use kymo_model::{Chunk, EntryKind, EventClass, FaultReport, FieldId, Lost, Recording, TrackRule};
use kymo_time::{Origin, Timestamp};

use crate::array::{dictionary, field};
use crate::kinds::{CLASS, RECORDING, described};
use crate::recordings::recordings as recordings_table;
use crate::samples::Samples;
use crate::{Error, array, packet_fields, record_batch};

/// Maximum number of rows of a batch of a table other than those of events.
pub(crate) const ROWS: usize = 1 << 14;

/// A table of recordings.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Table {
    /// The events of one class of one recording.
    Class {
        /// Position of the recording.
        recording: usize,
        /// Position of the class in the recording.
        class: usize,
        /// Name of the class.
        name: Arc<str>,
    },
    /// The values of databases and metrics.
    Samples,
    /// What recorders lost, and damage that was skipped.
    Losses,
    /// The packets of traces.
    Packets,
    /// The recordings, and what they need to be traces again.
    Recordings,
}

/// The type of times: nanoseconds since 1970 in UTC if all of these clocks say so, else since an origin of their own.
pub fn time_type<'a>(recordings: impl IntoIterator<Item = &'a AnyRecording>) -> DataType {
    let is_dated = |recording: &AnyRecording| {
        let mut clocks = recording
            .streams()
            .iter()
            .filter_map(|stream| stream.clock.as_ref());
        clocks.all(|clock| clock.origin == Origin::UnixEpoch)
    };
    let zone = recordings
        .into_iter()
        .all(is_dated)
        .then(|| Arc::from("UTC"));
    DataType::Timestamp(TimeUnit::Nanosecond, zone)
}

/// The name of a class: its number if it has none.
pub fn class_name(class: &EventClass) -> Arc<str> {
    match &class.name {
        Some(name) => Arc::clone(name),
        None => class.id.to_string().into(),
    }
}

/// A schema of kymo's own columns and those of fields.
pub(crate) fn schema(own: &[(&str, DataType)], columns: &[ColumnType]) -> SchemaRef {
    let own = own_fields(own, columns);
    Arc::new(Schema::new(
        own.chain(columns.iter().map(field)).collect::<Vec<_>>(),
    ))
}

/// Kymo's own columns. One begins with `_` if a field has its name.
fn own_fields(own: &[(&str, DataType)], columns: &[ColumnType]) -> impl Iterator<Item = Field> {
    own.iter().map(|(name, data_type)| {
        let mut name = (*name).to_owned();
        while columns.iter().any(|column| *column.name == *name) {
            name.insert(0, '_');
        }
        Field::new(name, data_type.clone(), true)
    })
}

/// The schema of the events of a class: `timestamp`, `ticks`, `stream`, `packet`, `number`, `track`, `recording`, and its
/// fields. The metadata of a field says what it holds beyond its type.
pub fn class_schema(recording: &AnyRecording, class: usize) -> SchemaRef {
    class_schema_with(recording, class, false)
}

/// The same, with texts as bytes if `binary_texts`.
fn class_schema_with(recording: &AnyRecording, class: usize, binary_texts: bool) -> SchemaRef {
    let schema_of = &recording.event_classes()[class].schema;
    let added = match recording {
        AnyRecording::Symbolized(trace) => {
            let recorded = trace.trace().event_classes().get(class);
            recorded.map_or(0, |recorded| recorded.schema.fields().len())
        }
        _ => schema_of.fields().len(),
    };
    let mut columns = all_columns(schema_of);
    if binary_texts {
        let all = columns.iter_mut();
        all.for_each(|wanted| wanted.make_texts_binary(schema_of));
    }
    let names: Vec<_> = columns.iter().map(|column| column.column.clone()).collect();
    let own = [
        ("timestamp", time_type([recording])),
        ("ticks", DataType::UInt64),
        ("stream", DataType::UInt32),
        ("packet", DataType::UInt64),
        ("number", DataType::UInt64),
        ("track", dictionary()),
        ("recording", dictionary()),
    ];
    let own = own_fields(&own, &names);
    let columns = columns
        .iter()
        .map(|column| described(schema_of, column, FieldId(added as u32)));
    Arc::new(Schema::new(own.chain(columns).collect::<Vec<_>>()))
}

/// Texts by their positions in `names`, of which those are kept that are used: there may be many more than rows.
pub(crate) fn texts(keys: Vec<Option<u32>>, names: &[String]) -> Result<ArrayRef, Error> {
    // Of each name, its position among those that are kept, plus one.
    let mut places = vec![0; names.len()];
    let mut kept = Vec::new();
    let mut keep = |key: u32| {
        let place = &mut places[key as usize];
        if *place == 0 {
            kept.push(&names[key as usize]);
            *place = kept.len() as u32;
        }
        *place - 1
    };
    let keys: UInt32Array = match keys.iter().all(Option::is_some) {
        true => {
            let keys = keys.into_iter().map(|key| keep(key.unwrap_or(0)));
            UInt32Array::from(keys.collect::<Vec<_>>())
        }
        false => keys.into_iter().map(|key| key.map(&mut keep)).collect(),
    };
    let names: StringArray = kept.into_iter().map(Some).collect();
    Ok(Arc::new(DictionaryArray::<UInt32Type>::try_new(
        keys,
        Arc::new(names),
    )?))
}

/// One text for all rows.
fn same_text(text: &str, rows: usize) -> Result<ArrayRef, Error> {
    let keys = UInt32Array::from(vec![0; rows]);
    let texts = StringArray::from_iter_values([text]);
    Ok(Arc::new(DictionaryArray::<UInt32Type>::try_new(
        keys,
        Arc::new(texts),
    )?))
}

/// Hands all tables of what a query wants to `take`, in batches; rows of each table come in order of time. What is not
/// an event is among the notices of the batches that `look` gets before they are taken.
///
/// # Errors
///
/// The query is wrong, or `take` fails.
pub fn tables(
    timeline: &Timeline,
    query: &Query,
    take: &mut dyn FnMut(&Table, RecordBatch) -> Result<(), Error>,
    look: &mut dyn FnMut(&Batch),
) -> Result<(), Error> {
    let mut query = query.clone();
    query.columns = Columns::All;
    let mut tracks = RowTracks::new(timeline, &mut query)?;
    let mut maker = Maker::new(timeline, query.binary_texts, take);
    let mut failed = None;
    timeline.for_each_batch(&query, |batch| {
        look(&batch);
        match maker.batch(batch, &mut tracks) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        }
    })?;
    match failed {
        Some(error) => Err(error),
        None => maker.finish(&query),
    }
}

struct Maker<'t, 'f> {
    timeline: &'t Timeline,
    binary_texts: bool,
    take: &'f mut dyn FnMut(&Table, RecordBatch) -> Result<(), Error>,
    /// Paths of the recordings.
    paths: Vec<String>,
    /// The names of the tracks that were met, by recording.
    tracks: Vec<Vec<String>>,
    classes: HashMap<(usize, usize), ClassTable>,
    samples: Samples,
    losses: Losses,
    /// Of each recording that has events what it is as a trace, if it can be one.
    models: Vec<Option<Option<TraceModel>>>,
}

/// A table of a class that has rows.
struct ClassTable {
    table: Table,
    schema: SchemaRef,
    /// If rows are on the tracks of their streams and no others: of each stream, the track, once a row was met.
    stream_tracks: Option<Vec<Option<Option<u32>>>>,
}

impl<'t, 'f> Maker<'t, 'f> {
    fn new(
        timeline: &'t Timeline,
        binary_texts: bool,
        take: &'f mut dyn FnMut(&Table, RecordBatch) -> Result<(), Error>,
    ) -> Self {
        let recordings = timeline.recordings();
        Self {
            timeline,
            binary_texts,
            take,
            paths: paths(timeline),
            tracks: recordings.iter().map(|_| Vec::new()).collect(),
            classes: HashMap::new(),
            samples: Samples::default(),
            losses: Losses::default(),
            models: recordings.iter().map(|_| None).collect(),
        }
    }

    /// What a recording is as a trace.
    fn model(&mut self, recording: usize) -> Option<&TraceModel> {
        let recordings = self.timeline.recordings();
        let model = &mut self.models[recording];
        let make = || TraceModel::new(recordings, recording).ok();
        model.get_or_insert_with(make).as_ref()
    }

    fn batch(&mut self, batch: Batch, tracks: &mut RowTracks<'_>) -> Result<(), Error> {
        for notice in batch.notices() {
            self.losses.push(self.timeline, notice);
            if self.losses.kinds.len() >= ROWS {
                self.end_losses()?;
            }
        }
        if batch.is_empty() {
            return Ok(());
        }
        let recording = batch.id(0).recording as usize;
        let source = &self.timeline.recordings()[recording];
        let is_sample = source.entry_kind(batch.id(0).stream as usize) == EntryKind::Sample;
        if is_sample {
            for (rows, id) in batch.runs() {
                for row in rows {
                    let time = batch.head(row).time.map(Timestamp::as_nanos);
                    for entry in tracks.of_row(&batch, row, id) {
                        if let &TrackEntry::Value(track, value) = entry {
                            self.samples.push(time, (recording, track), value);
                        }
                    }
                }
            }
            self.samples.name(source, tracks.tracks(recording));
            return match self.samples.len() >= ROWS {
                true => self.end_samples(),
                false => Ok(()),
            };
        }
        let class = batch.classes()[0] as usize;
        if !self.classes.contains_key(&(recording, class)) {
            let info = &source.event_classes()[class];
            let table = Table::Class {
                recording,
                class,
                name: class_name(info),
            };
            let event = self
                .model(recording)
                .and_then(|model| model.events.get(class));
            let mut metadata = HashMap::from([(RECORDING.to_owned(), recording.to_string())]);
            if let Some(EventId {
                stream_class,
                event,
            }) = event
            {
                metadata.insert(CLASS.to_owned(), format!("{stream_class}/{event}"));
            }
            let schema = class_schema_with(source, class, self.binary_texts);
            let schema = Schema::clone(&schema).with_metadata(metadata);
            let is_on_stream = source.track_rule(class) == TrackRule::Stream
                && source.roles(class).counters.is_empty();
            let made = ClassTable {
                table,
                schema: Arc::new(schema),
                stream_tracks: is_on_stream.then(|| vec![None; source.streams().len()]),
            };
            self.classes.insert((recording, class), made);
        }
        let Some(table) = self.classes.get_mut(&(recording, class)) else {
            return Ok(());
        };
        let rows = batch.len();
        let mut streams = Vec::with_capacity(rows);
        let mut packets = Vec::with_capacity(rows);
        let mut numbers = Vec::with_capacity(rows);
        let mut keys = Vec::with_capacity(rows);
        // Where streams alternate, runs are short: their iterator is fast only as a whole.
        batch.runs().for_each(|(run, id)| {
            let known = match &mut table.stream_tracks {
                Some(known) => known.get_mut(id.stream as usize),
                None => None,
            };
            let mut find = |row| {
                let entries = tracks.of_row(&batch, row, id);
                entries.first().map(|entry| entry.track())
            };
            let known = known.map(|known| *known.get_or_insert_with(|| find(run.start)));
            for (row, number) in run.zip(id.number..) {
                keys.push(known.unwrap_or_else(|| find(row)));
                streams.push(id.stream);
                packets.push(id.chunk);
                numbers.push(number);
            }
        });
        let names = &mut self.tracks[recording];
        let known = &tracks.tracks(recording)[names.len()..];
        names.extend(known.iter().map(|track| track.path.to_string()));
        let (times, ticks, mut values) = batch.into_columns();
        let first: Vec<ArrayRef> = vec![
            array(times, table.schema.field(0).data_type())?,
            array(ticks, &DataType::UInt64)?,
            Arc::new(UInt32Array::from(streams)),
            Arc::new(UInt64Array::from(packets)),
            Arc::new(UInt64Array::from(numbers)),
            texts(keys, names)?,
            same_text(&self.paths[recording], rows)?,
        ];
        // Behind those of its fields are columns from which tracks are found.
        values.truncate(table.schema.fields().len() - first.len());
        let batch = record_batch(&table.schema, first, values)?;
        (self.take)(&table.table, batch)
    }

    fn end_samples(&mut self) -> Result<(), Error> {
        match self.samples.batch(self.timeline, &self.paths)? {
            Some(batch) => (self.take)(&Table::Samples, batch),
            None => Ok(()),
        }
    }

    fn end_losses(&mut self) -> Result<(), Error> {
        match self.losses.batch(self.timeline, &self.paths)? {
            Some(batch) => (self.take)(&Table::Losses, batch),
            None => Ok(()),
        }
    }

    fn finish(&mut self, query: &Query) -> Result<(), Error> {
        self.end_samples()?;
        self.end_losses()?;
        let take = &mut *self.take;
        let mut take = |batch| take(&Table::Packets, batch);
        // Damage of packets was met when their events were read.
        packets(self.timeline, query.range, &mut take, &mut |_| {})?;
        let recordings = self.timeline.recordings();
        for (number, recording) in recordings.iter().enumerate() {
            if recording.as_ctf().is_some() {
                self.model(number);
            }
        }
        let models: Vec<_> = self.models.drain(..).map(Option::flatten).collect();
        let batch = recordings_table(recordings, &self.paths, &models)?;
        (self.take)(&Table::Recordings, batch)
    }
}

/// The schema of [`Table::Packets`].
pub fn packets_schema(timeline: &Timeline) -> SchemaRef {
    let time = time_type(timeline.recordings());
    let own = [
        ("begin", time.clone()),
        ("end", time),
        ("recording", dictionary()),
        ("stream", DataType::UInt32),
        ("packet", DataType::UInt64),
        ("bytes", DataType::UInt64),
        ("lost_events", DataType::UInt64),
        ("lost_packets", DataType::UInt64),
        ("begin_ticks", DataType::UInt64),
        ("end_ticks", DataType::UInt64),
        ("fields", DataType::Utf8),
    ];
    schema(&own, &[])
}

/// Hands over the packets of traces that may have rows in a range; no event is decoded. Damage that leaves out some of
/// their fields is handed to `fault`.
///
/// # Errors
///
/// `take` fails.
pub fn packets(
    timeline: &Timeline,
    range: Window,
    take: &mut dyn FnMut(RecordBatch) -> Result<(), Error>,
    fault: &mut dyn FnMut(&FaultReport),
) -> Result<(), Error> {
    let (schema, paths) = (packets_schema(timeline), paths(timeline));
    let time = schema.field(0).data_type();
    for (number, recording) in timeline.recordings().iter().enumerate() {
        if recording.as_ctf().is_none() {
            continue;
        }
        for stream in 0..recording.streams().len() {
            let is_wanted = |chunk: &Chunk| {
                chunk.end_time.is_none_or(|end| end >= range.begin)
                    && chunk.begin_time.is_none_or(|begin| begin <= range.end)
            };
            let mut chunks = recording.chunks(stream).filter(is_wanted).peekable();
            while chunks.peek().is_some() {
                let chunks: Vec<Chunk> = chunks.by_ref().take(ROWS).collect();
                let lost = |chunk: &Chunk| chunk.lost_events.and_then(|lost| lost.count);
                let lost_packets = |chunk: &Chunk| chunk.lost_chunks.and_then(|lost| lost.count);
                let fields: StringArray = chunks
                    .iter()
                    .map(|chunk| packet_fields::fields(recording, chunk, &mut *fault))
                    .collect();
                let column = |value: &dyn Fn(&Chunk) -> Option<u64>| -> ArrayRef {
                    Arc::new(chunks.iter().map(value).collect::<UInt64Array>())
                };
                let columns: Vec<ArrayRef> = vec![
                    times(chunks.iter().map(|chunk| chunk.begin_time), time),
                    times(chunks.iter().map(|chunk| chunk.end_time), time),
                    same_text(&paths[number], chunks.len())?,
                    Arc::new(UInt32Array::from(vec![stream as u32; chunks.len()])),
                    column(&|chunk| Some(chunk.number as u64)),
                    column(&|chunk| Some(chunk.bytes)),
                    column(&lost),
                    column(&lost_packets),
                    column(&|chunk| chunk.begin),
                    column(&|chunk| chunk.end),
                    Arc::new(fields),
                ];
                take(RecordBatch::try_new(Arc::clone(&schema), columns)?)?;
            }
        }
    }
    Ok(())
}

/// Hands over what was lost and damaged in what a query wants; of events no more than their times is decoded. Damage is
/// handed to `fault`, too.
///
/// # Errors
///
/// The query is wrong, or `take` fails.
pub fn losses(
    timeline: &Timeline,
    query: &Query,
    take: &mut dyn FnMut(RecordBatch) -> Result<(), Error>,
    fault: &mut dyn FnMut(&FaultReport),
) -> Result<(), Error> {
    let mut query = query.clone();
    query.columns = Columns::None;
    let paths = paths(timeline);
    let mut losses = Losses::default();
    let mut result = Ok(());
    timeline.for_each_batch(&query, |batch| {
        for notice in batch.notices() {
            losses.push(timeline, notice);
            if let NoticeKind::Fault(met) = &notice.kind {
                fault(met);
            }
        }
        if losses.kinds.len() >= ROWS {
            let batch = losses.batch(timeline, &paths);
            result = batch.and_then(|batch| batch.map_or(Ok(()), &mut *take));
        }
        match result {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    })?;
    result?;
    losses.batch(timeline, &paths)?.map_or(Ok(()), take)
}

/// The paths of the recordings.
pub(crate) fn paths(timeline: &Timeline) -> Vec<String> {
    let recordings = timeline.recordings().iter();
    recordings
        .map(|recording| recording.path().to_string_lossy().into_owned())
        .collect()
}

/// Times as an array of a type of times.
pub(crate) fn times(
    times: impl Iterator<Item = Option<Timestamp>>,
    data_type: &DataType,
) -> ArrayRef {
    let nanos = times.map(|time| time.map(Timestamp::as_nanos));
    let array: TimestampNanosecondArray = nanos.collect();
    let zone = match data_type {
        DataType::Timestamp(_, zone) => zone.clone(),
        _ => None,
    };
    Arc::new(array.with_timezone_opt(zone))
}

/// The schema of [`Table::Losses`].
pub fn losses_schema(timeline: &Timeline) -> SchemaRef {
    let time = time_type(timeline.recordings());
    let own = [
        ("begin", time.clone()),
        ("end", time),
        ("recording", dictionary()),
        ("stream", DataType::UInt32),
        ("kind", DataType::Utf8),
        ("count", DataType::UInt64),
        ("message", DataType::Utf8),
    ];
    schema(&own, &[])
}

/// What was lost, and damage.
#[derive(Default)]
struct Losses {
    recordings: Vec<Option<u32>>,
    streams: Vec<u32>,
    kinds: Vec<&'static str>,
    counts: Vec<Option<u64>>,
    begins: Vec<Option<Timestamp>>,
    ends: Vec<Option<Timestamp>>,
    messages: Vec<Option<String>>,
}

impl Losses {
    fn push(&mut self, timeline: &Timeline, notice: &Notice) {
        let recording = &timeline.recordings()[notice.recording as usize];
        let nothing = Lost {
            count: None,
            begin: None,
            end: None,
        };
        let (kind, lost, message) = match &notice.kind {
            NoticeKind::LostEvents(lost) => ("events", *lost, None),
            NoticeKind::LostChunks(lost) => ("packets", *lost, None),
            NoticeKind::Fault(fault) => ("damage", nothing, Some(fault.to_string())),
            _ => return,
        };
        let stream = recording.streams().get(notice.stream as usize);
        let time = |ticks: Option<u64>| stream?.clock.as_ref()?.timestamp(ticks?);
        self.recordings.push(Some(notice.recording));
        self.streams.push(notice.stream);
        self.kinds.push(kind);
        self.counts.push(lost.count);
        self.begins.push(time(lost.begin));
        self.ends.push(time(lost.end));
        self.messages.push(message);
    }

    fn batch(
        &mut self,
        timeline: &Timeline,
        paths: &[String],
    ) -> Result<Option<RecordBatch>, Error> {
        if self.kinds.is_empty() {
            return Ok(None);
        }
        let schema = losses_schema(timeline);
        let time = schema.field(0).data_type();
        let columns: Vec<ArrayRef> = vec![
            times(self.begins.drain(..), time),
            times(self.ends.drain(..), time),
            texts(std::mem::take(&mut self.recordings), paths)?,
            Arc::new(UInt32Array::from(std::mem::take(&mut self.streams))),
            Arc::new(StringArray::from(std::mem::take(&mut self.kinds))),
            Arc::new(UInt64Array::from(std::mem::take(&mut self.counts))),
            Arc::new(StringArray::from(std::mem::take(&mut self.messages))),
        ];
        Ok(Some(RecordBatch::try_new(schema, columns)?))
    }
}
