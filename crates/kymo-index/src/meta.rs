//! What a file has beside trees: what it is of, how many events its chunks have, which slices are open where.

use kymo_model::Tally;
use kymo_model::batch::RowId;
use kymo_time::Timestamp;

use crate::Damaged;
use crate::pack::{Reader, put_number, put_signed};

/// What a file says beside the trees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// What it is of; only who writes it knows how to read that.
    pub key: Vec<u8>,
    /// Number of rows.
    pub rows: u64,
    /// Rows without a time, which are on no track.
    pub untimed: u64,
    /// When the recording's own time began as the file was written, if all else is wrong when it begins at another time.
    pub only_at: Option<i64>,
    /// Faults met within chunks.
    pub faults: u64,
    /// How many chunks of each stream are in it.
    pub chunks: Vec<u64>,
    /// How many events there are in chunks, in the order of streams and chunks.
    pub counts: Vec<ChunkCounts>,
    /// Which slices are open at some times, in order of time.
    pub open: Vec<OpenAt>,
}

/// The events of neighbouring chunks of a stream that have no fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkCounts {
    /// Position of the stream.
    pub stream: u32,
    /// The first chunk.
    pub first: u64,
    /// How many chunks.
    pub chunks: u64,
    /// The events of each class that has some, in the order of classes.
    pub classes: Vec<Tally>,
}

impl ChunkCounts {
    /// Number of events.
    pub fn events(&self) -> u64 {
        let events = self.classes.iter().map(|tally| tally.events);
        events.fold(0, u64::saturating_add)
    }

    /// Adds the events of a class.
    pub fn add(&mut self, tally: &Tally) {
        let place = self
            .classes
            .binary_search_by_key(&tally.class, |class| class.class);
        match place {
            Err(place) => self.classes.insert(place, *tally),
            Ok(place) => {
                let known = &mut self.classes[place];
                known.events = known.events.saturating_add(tally.events);
                known.bits = known.bits.saturating_add(tally.bits);
                known.first = [known.first, tally.first].into_iter().flatten().min();
                known.last = known.last.max(tally.last);
            }
        }
    }
}

/// The slices that are open before all rows of a time, and later ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenAt {
    /// When.
    pub time: i64,
    /// The slices, each track's outermost first.
    pub slices: Vec<OpenSlice>,
    /// Numbers of tracks, and how many slices more are open within those: too many to be kept.
    pub dropped: Vec<(u32, u64)>,
}

/// A slice that is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenSlice {
    /// Number of its track.
    pub track: u32,
    /// When it began.
    pub began: i64,
    /// The row that began it.
    pub row: RowId,
}

pub(crate) fn put_meta(out: &mut Vec<u8>, meta: &Meta) {
    put_number(out, meta.key.len() as u64);
    out.extend_from_slice(&meta.key);
    put_number(out, meta.rows);
    put_number(out, meta.untimed);
    put_optional(out, meta.only_at);
    put_number(out, meta.faults);
    put_number(out, meta.chunks.len() as u64);
    meta.chunks.iter().for_each(|&count| put_number(out, count));
    put_number(out, meta.counts.len() as u64);
    for counts in &meta.counts {
        put_number(out, counts.stream.into());
        put_number(out, counts.first);
        put_number(out, counts.chunks);
        put_number(out, counts.classes.len() as u64);
        for tally in &counts.classes {
            put_number(out, tally.class as u64);
            put_number(out, tally.events);
            put_number(out, tally.bits);
            put_optional(out, tally.first.map(Timestamp::as_nanos));
            put_optional(out, tally.last.map(Timestamp::as_nanos));
        }
    }
    put_number(out, meta.open.len() as u64);
    for at in &meta.open {
        put_signed(out, at.time);
        put_number(out, at.slices.len() as u64);
        for slice in &at.slices {
            put_number(out, slice.track.into());
            put_signed(out, slice.began);
            put_number(out, slice.row.stream.into());
            put_number(out, slice.row.chunk);
            put_number(out, slice.row.number);
        }
        put_number(out, at.dropped.len() as u64);
        for &(track, count) in &at.dropped {
            put_number(out, track.into());
            put_number(out, count);
        }
    }
}

fn put_optional(out: &mut Vec<u8>, value: Option<i64>) {
    out.push(value.is_some().into());
    if let Some(value) = value {
        put_signed(out, value);
    }
}

pub(crate) fn meta(reader: &mut Reader<'_>) -> Result<Meta, Damaged> {
    let length = reader.number()?;
    Ok(Meta {
        key: reader.bytes(length)?.to_vec(),
        rows: reader.number()?,
        untimed: reader.number()?,
        only_at: optional(reader)?,
        faults: reader.number()?,
        chunks: list(reader, 1, |reader| reader.number())?,
        counts: list(reader, 4, counts)?,
        open: list(reader, 3, open_at)?,
    })
}

/// A list of things that take at least `least` bytes each.
fn list<T>(
    reader: &mut Reader<'_>,
    least: usize,
    one: impl Fn(&mut Reader<'_>) -> Result<T, Damaged>,
) -> Result<Vec<T>, Damaged> {
    let count = reader.count(least)?;
    (0..count).map(|_| one(reader)).collect()
}

fn optional(reader: &mut Reader<'_>) -> Result<Option<i64>, Damaged> {
    match reader.byte()? {
        0 => Ok(None),
        _ => reader.signed().map(Some),
    }
}

fn counts(reader: &mut Reader<'_>) -> Result<ChunkCounts, Damaged> {
    Ok(ChunkCounts {
        stream: reader.small()?,
        first: reader.number()?,
        chunks: reader.number()?,
        classes: list(reader, 5, |reader| {
            Ok(Tally {
                class: reader.small()? as usize,
                events: reader.number()?,
                bits: reader.number()?,
                first: optional(reader)?.map(Timestamp::from_nanos),
                last: optional(reader)?.map(Timestamp::from_nanos),
            })
        })?,
    })
}

fn open_at(reader: &mut Reader<'_>) -> Result<OpenAt, Damaged> {
    Ok(OpenAt {
        time: reader.signed()?,
        slices: list(reader, 5, |reader| {
            Ok(OpenSlice {
                track: reader.small()?,
                began: reader.signed()?,
                row: RowId {
                    recording: 0,
                    stream: reader.small()?,
                    chunk: reader.number()?,
                    number: reader.number()?,
                },
            })
        })?,
        dropped: list(reader, 2, |reader| Ok((reader.small()?, reader.number()?)))?,
    })
}
