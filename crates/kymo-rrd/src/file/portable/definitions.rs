//! The definitions of a file: its header and its records, which never change.

use crc32c::{crc32c, crc32c_append};

use super::fields::{Fields, PutFields};
use super::layout::{Layout, Ring, places, used_scratch, value_scratch};
use super::{Error, MAGIC, VERSION};
use crate::model::{
    Archive, ArchiveKind, ArchiveLink, Consolidation, DataSource, Reading, Scratch, SourceKind,
};
use crate::rpn::{Node, Operator, Program};
use crate::{Text, Value};

/// Bytes of the header as it is written here.
pub(super) const HEADER: u64 = 64;
/// Where the header has the checksum.
const CHECKSUM_AT: usize = 12;
const DEFINITIONS_AT: u64 = 16;
pub(super) const SLOTS_AT: u64 = 24;
pub(super) const SLOT_SIZE_AT: u64 = 32;
const READING_SIZE_AT: u64 = 40;
const STEP_AT: u64 = 48;

/// Bytes of a record before its content.
const RECORD: usize = 8;
const DATA_SOURCE: u32 = 1;
const ARCHIVE: u32 = 2;
/// The bit of a record's kind that says that readers must know it.
const MUST_KNOW: u32 = 1 << 31;

const COMPUTE: u16 = 6;
const NUMBER: u32 = 0;
const VARIABLE: u32 = 1;
const PREVIOUS_OF: u32 = 36;

/// A record of a kind that this version does not know. It is kept when a file is rewritten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// What it is; neither 1 nor 2, and below 2^31.
    pub kind: u32,
    /// What it says: a multiple of 8 bytes.
    pub content: Vec<u8>,
}

/// What the definitions of a file say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Definitions {
    pub(super) version: u8,
    pub(super) step: u64,
    pub(super) sources: Vec<DataSource>,
    pub(super) archives: Vec<Archive>,
    pub(super) others: Vec<Record>,
    pub(super) layout: Layout,
}

/// What the fixed part of a header says of where the rest is.
pub(super) struct Head {
    pub(super) size: u16,
    pub(super) definitions: u64,
}

/// Reads the first 64 bytes of a file, or what there is of them.
pub(super) fn read_head(bytes: &[u8]) -> Result<Head, Error> {
    if !bytes.starts_with(&MAGIC) {
        let found = bytes[..bytes.len().min(MAGIC.len())].to_vec();
        return Err(Error::NotPortable { found });
    }
    if (bytes.len() as u64) < HEADER {
        let found = format!("{} bytes", bytes.len());
        return Err(Error::wrong("header", 0, found, "64"));
    }
    let mut fields = Fields::new(bytes, 0);
    fields.take(MAGIC.len())?;
    let version = fields.u16()?;
    if version != VERSION {
        return Err(Error::wrong("version", 8, version, VERSION.to_string()));
    }
    let size = fields.u16()?;
    if u64::from(size) < HEADER || !size.is_multiple_of(8) {
        let expected = "a multiple of 8 that is at least 64";
        return Err(Error::wrong("header size", 10, size, expected));
    }
    fields.take(4)?;
    let definitions = fields.u64()?;
    if definitions < size.into() {
        let expected = format!("at least {size}, where the header ends");
        let what = "end of definitions";
        return Err(Error::wrong(what, DEFINITIONS_AT, definitions, expected));
    }
    Ok(Head { size, definitions })
}

/// The checksum of definitions, with that in them as zero.
fn checksum(definitions: &[u8]) -> u32 {
    let before = crc32c(&definitions[..CHECKSUM_AT]);
    let it = crc32c_append(before, &[0; 4]);
    crc32c_append(it, &definitions[CHECKSUM_AT + 4..])
}

impl Definitions {
    /// Reads the definitions, from the beginning of the file to their end.
    pub(super) fn read(head: &Head, bytes: &[u8]) -> Result<Self, Error> {
        let mut fields = Fields::new(bytes, 0);
        fields.take(CHECKSUM_AT)?;
        let found = fields.u32()?;
        let computed = checksum(bytes);
        if found != computed {
            return Err(Error::wrong(
                "checksum of the definitions",
                CHECKSUM_AT as u64,
                format!("{found:08x}"),
                format!("{computed:08x}"),
            ));
        }
        let definitions = fields.u64()?;
        let slots = fields.u64()?;
        let slot_size = fields.u64()?;
        let reading_size = fields.u32()?;
        if reading_size == 0 || !reading_size.is_multiple_of(8) {
            let expected = "a multiple of 8 that is at least 8";
            let what = "reading size";
            return Err(Error::wrong(what, READING_SIZE_AT, reading_size, expected));
        }
        let version = fields.u32()?;
        let version = u8::try_from(version)
            .ok()
            .filter(|version| (1..=5).contains(version))
            .ok_or_else(|| Error::wrong("native version", 44, version, "1 to 5"))?;
        let step = fields.u64()?;
        if step == 0 {
            return Err(Error::wrong("step", STEP_AT, step, "at least 1"));
        }
        let file_size = fields.u64()?;
        fields.take(usize::from(head.size) - HEADER as usize)?;

        let mut this = Self {
            version,
            step,
            sources: Vec::new(),
            archives: Vec::new(),
            others: Vec::new(),
            layout: Layout {
                definitions,
                slots,
                slot_size,
                reading_size,
                file_size,
                sources: 0,
                archives: Vec::new(),
            },
        };
        while fields.left() > 0 {
            this.read_record(&mut fields)?;
        }
        this.check_counts(definitions)?;
        this.layout.sources = this.sources.len() as u64;
        this.layout.check()?;
        Ok(this)
    }

    fn check_counts(&self, offset: u64) -> Result<(), Error> {
        for (what, count) in [
            ("data sources", self.sources.len()),
            ("archives", self.archives.len()),
        ] {
            if count == 0 {
                return Err(Error::wrong(what, offset, "none", "at least 1"));
            }
        }
        for (index, source) in self.sources.iter().enumerate() {
            check_program(source, self.sources.len()).map_err(|found| {
                let what = format!("data source that data source {index} is computed from");
                Error::wrong(what, offset, found, "one that there is")
            })?;
        }
        Ok(())
    }

    fn read_record(&mut self, fields: &mut Fields<'_>) -> Result<(), Error> {
        let at = fields.offset();
        let left = fields.left();
        let kind = fields.u32()?;
        let size = fields.u32()?;
        let content = usize::try_from(size)
            .ok()
            .filter(|&size| size >= RECORD && size <= left && size.is_multiple_of(8));
        let Some(content) = content else {
            let expected = format!("a multiple of 8, from 8 to {left}");
            return Err(Error::wrong("size of a record", at + 4, size, expected));
        };
        let begin = fields.offset();
        let bytes = fields.take(content - RECORD)?;
        let mut record = Fields::new(bytes, begin);
        match kind {
            DATA_SOURCE => self.sources.push(read_source(&mut record)?),
            ARCHIVE => {
                let (archive, ring) = read_archive(&mut record)?;
                self.archives.push(archive);
                self.layout.archives.push(ring);
            }
            _ if kind & MUST_KNOW != 0 => {
                let expected = "a record that this version knows, or one that it may skip";
                return Err(Error::wrong("kind of a record", at, kind, expected));
            }
            _ => {
                let content = record.take(record.left())?.to_vec();
                self.others.push(Record { kind, content });
            }
        }
        if record.left() > 0 {
            let found = format!("{} bytes more", record.left());
            return Err(Error::wrong("record", record.offset(), found, "its end"));
        }
        Ok(())
    }

    /// The definitions as bytes.
    pub(super) fn write(&self) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&MAGIC);
        bytes.put_u16(VERSION);
        bytes.put_u16(HEADER as u16);
        bytes.put_u32(0);
        bytes.put_u64(self.layout.definitions);
        bytes.put_u64(self.layout.slots);
        bytes.put_u64(self.layout.slot_size);
        bytes.put_u32(self.layout.reading_size);
        bytes.put_u32(self.version.into());
        bytes.put_u64(self.step);
        bytes.put_u64(self.layout.file_size);
        for (index, source) in self.sources.iter().enumerate() {
            check_program(source, self.sources.len()).map_err(|found| {
                let what = format!("data source that data source {index} is computed from");
                Error::cannot_hold(what, found, "one that there is")
            })?;
            put_record(&mut bytes, DATA_SOURCE, |bytes| put_source(bytes, source))?;
        }
        for (archive, ring) in self.archives.iter().zip(&self.layout.archives) {
            put_record(&mut bytes, ARCHIVE, |bytes| {
                put_archive(bytes, archive, ring);
                Ok(())
            })?;
        }
        for record in &self.others {
            let known = [DATA_SOURCE, ARCHIVE].contains(&record.kind);
            if known || record.kind & MUST_KNOW != 0 || !record.content.len().is_multiple_of(8) {
                let found = format!("kind {} of {} bytes", record.kind, record.content.len());
                let expected = "records of kinds that may be skipped, of a multiple of 8 bytes";
                return Err(Error::cannot_hold("record", found, expected));
            }
            put_record(&mut bytes, record.kind, |bytes| {
                bytes.extend_from_slice(&record.content);
                Ok(())
            })?;
        }
        let checksum = checksum(&bytes);
        bytes[CHECKSUM_AT..CHECKSUM_AT + 4].copy_from_slice(&checksum.to_le_bytes());
        Ok(bytes)
    }
}

/// Checks that a program reads only data sources that exist; else returns the one that does not.
fn check_program(source: &DataSource, sources: usize) -> Result<(), u32> {
    let SourceKind::Compute(program) = &source.kind else {
        return Ok(());
    };
    let wrong = program.nodes.iter().find_map(|node| match *node {
        Node::Variable(source) | Node::PreviousOf(source) if source as usize >= sources => {
            Some(source)
        }
        _ => None,
    });
    wrong.map_or(Ok(()), Err)
}

/// Writes a record: its kind, its size, its content, and zeros up to a multiple of 8.
fn put_record(
    bytes: &mut Vec<u8>,
    kind: u32,
    content: impl FnOnce(&mut Vec<u8>) -> Result<(), Error>,
) -> Result<(), Error> {
    let begin = bytes.len();
    bytes.put_u32(kind);
    bytes.put_u32(0);
    content(bytes)?;
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    let size = bytes.len() - begin;
    let size = u32::try_from(size)
        .map_err(|_| Error::cannot_hold("record", format!("{size} bytes"), "4294967288"))?;
    bytes[begin + 4..begin + 8].copy_from_slice(&size.to_le_bytes());
    Ok(())
}

fn read_source(fields: &mut Fields<'_>) -> Result<DataSource, Error> {
    let at = fields.offset();
    let kind = fields.u16()?;
    let name_length = usize::from(fields.u16()?);
    let nodes = fields.u32()?;
    let kind = if kind == COMPUTE {
        // No capacity is set aside: each node that is counted must be there.
        let nodes = (0..nodes).map(|_| read_node(fields));
        let nodes = nodes.collect::<Result<_, _>>()?;
        SourceKind::Compute(Program { nodes })
    } else {
        let reading = Reading::ALL.get(usize::from(kind));
        let reading =
            *reading.ok_or_else(|| Error::wrong("type of a data source", at, kind, "0 to 6"))?;
        SourceKind::Measured {
            reading,
            heartbeat: fields.u64()?,
            min: fields.value()?,
            max: fields.value()?,
        }
    };
    let at = fields.offset();
    let bytes = fields.take(name_length.next_multiple_of(8))?;
    let name = Text::new(&bytes[..name_length]);
    if name.as_bytes().len() != name_length {
        let expected = "bytes that are not zero";
        return Err(Error::wrong(
            "name of a data source",
            at,
            "a zero",
            expected,
        ));
    }
    Ok(DataSource { name, kind })
}

fn put_source(bytes: &mut Vec<u8>, source: &DataSource) -> Result<(), Error> {
    let name = source.name.as_bytes();
    let name_length = u16::try_from(name.len()).map_err(|_| {
        let found = format!("{} bytes", name.len());
        Error::cannot_hold("name of a data source", found, "at most 65535")
    })?;
    match &source.kind {
        SourceKind::Measured {
            reading,
            heartbeat,
            min,
            max,
        } => {
            let kind = Reading::ALL.iter().position(|kind| kind == reading);
            bytes.put_u16(kind.unwrap_or_default() as u16);
            bytes.put_u16(name_length);
            bytes.put_u32(0);
            bytes.put_u64(*heartbeat);
            bytes.put_value(*min);
            bytes.put_value(*max);
        }
        SourceKind::Compute(program) => {
            let nodes = u32::try_from(program.nodes.len()).map_err(|_| {
                let found = format!("{} nodes", program.nodes.len());
                Error::cannot_hold("program of a data source", found, "less than 2^32")
            })?;
            bytes.put_u16(COMPUTE);
            bytes.put_u16(name_length);
            bytes.put_u32(nodes);
            for node in &program.nodes {
                put_node(bytes, node);
            }
        }
    }
    bytes.put_padded(name, name.len().next_multiple_of(8));
    Ok(())
}

fn read_node(fields: &mut Fields<'_>) -> Result<Node, Error> {
    let at = fields.offset();
    let code = fields.u32()?;
    let source = fields.u32()?;
    let constant = fields.value()?;
    Ok(match code {
        NUMBER => Node::Number(constant),
        VARIABLE => Node::Variable(source),
        PREVIOUS_OF => Node::PreviousOf(source),
        _ => {
            let operator = u8::try_from(code).ok().and_then(Operator::from_code);
            let expected = "the number of an operator";
            Node::Operator(operator.ok_or_else(|| Error::wrong("node", at, code, expected))?)
        }
    })
}

fn put_node(bytes: &mut Vec<u8>, node: &Node) {
    let (code, source, constant) = match node {
        Node::Number(constant) => (NUMBER, 0, *constant),
        Node::Variable(source) => (VARIABLE, *source, Value::ZERO),
        Node::PreviousOf(source) => (PREVIOUS_OF, *source, Value::ZERO),
        Node::Operator(operator) => (operator.code().into(), 0, Value::ZERO),
    };
    bytes.put_u32(code);
    bytes.put_u32(source);
    bytes.put_value(constant);
}

fn read_archive(fields: &mut Fields<'_>) -> Result<(Archive, Ring), Error> {
    let at = fields.offset();
    let function = fields.u8()?;
    let room = fields.u8()?;
    let scratch = fields.u16()?;
    let rows = fields.u32()?;
    let points_per_row = fields.u64()?;
    let offset = fields.u64()?;
    let kind = read_kind(function, at, fields)?;
    if room != places(&kind) {
        let expected = places(&kind).to_string();
        return Err(Error::wrong("places of an archive", at + 1, room, expected));
    }
    let used = used_scratch(&kind);
    if scratch & used != used || scratch >> Scratch::SLOTS != 0 {
        let what = "scratch slots of an archive";
        let expected = format!("all of {used:#x}, and none above slot 9");
        return Err(Error::wrong(
            what,
            at + 2,
            format!("{scratch:#x}"),
            expected,
        ));
    }
    if rows == 0 {
        return Err(Error::wrong(
            "rows of an archive",
            at + 4,
            rows,
            "at least 1",
        ));
    }
    if points_per_row == 0 {
        let what = "points per row of an archive";
        return Err(Error::wrong(what, at + 8, 0, "at least 1"));
    }
    let ring = Ring {
        offset,
        places: room,
        scratch,
        values: value_scratch(&kind),
        rows,
    };
    let archive = Archive {
        kind,
        rows: rows.into(),
        points_per_row,
    };
    Ok((archive, ring))
}

fn read_kind(function: u8, at: u64, fields: &mut Fields<'_>) -> Result<ArchiveKind, Error> {
    Ok(match function {
        0..=3 => ArchiveKind::Consolidated {
            function: Consolidation::ALL[usize::from(function)],
            xff: fields.value()?,
        },
        4 | 5 => ArchiveKind::HwPredict {
            multiplicative: function == 5,
            alpha: fields.value()?,
            beta: fields.value()?,
            period: fields.value()?,
            seasonal: ArchiveLink(fields.i64()?),
        },
        6 | 7 => ArchiveKind::Seasonal {
            deviation: function == 7,
            gamma: fields.value()?,
            smoothing_window: fields.value()?,
            smooth_row: fields.u64()?,
            predictions: ArchiveLink(fields.i64()?),
        },
        8 => ArchiveKind::DevPredict {
            deviations: ArchiveLink(fields.i64()?),
        },
        9 => ArchiveKind::Failures {
            delta_positive: fields.value()?,
            delta_negative: fields.value()?,
            window: fields.u64()?,
            threshold: fields.u64()?,
            deviations: ArchiveLink(fields.i64()?),
        },
        _ => {
            let what = "function of an archive";
            return Err(Error::wrong(what, at, function, "0 to 9"));
        }
    })
}

fn put_archive(bytes: &mut Vec<u8>, archive: &Archive, ring: &Ring) {
    let function = match &archive.kind {
        ArchiveKind::Consolidated { function, .. } => {
            let place = Consolidation::ALL.iter().position(|own| own == function);
            place.unwrap_or_default() as u8
        }
        ArchiveKind::HwPredict { multiplicative, .. } => 4 + u8::from(*multiplicative),
        ArchiveKind::Seasonal { deviation, .. } => 6 + u8::from(*deviation),
        ArchiveKind::DevPredict { .. } => 8,
        ArchiveKind::Failures { .. } => 9,
    };
    bytes.put_u8(function);
    bytes.put_u8(ring.places);
    bytes.put_u16(ring.scratch);
    bytes.put_u32(ring.rows);
    bytes.put_u64(archive.points_per_row);
    bytes.put_u64(ring.offset);
    match &archive.kind {
        ArchiveKind::Consolidated { xff, .. } => bytes.put_value(*xff),
        ArchiveKind::HwPredict {
            alpha,
            beta,
            period,
            seasonal,
            ..
        } => {
            bytes.put_value(*alpha);
            bytes.put_value(*beta);
            bytes.put_value(*period);
            bytes.put_i64(seasonal.0);
        }
        ArchiveKind::Seasonal {
            gamma,
            smoothing_window,
            smooth_row,
            predictions,
            ..
        } => {
            bytes.put_value(*gamma);
            bytes.put_value(*smoothing_window);
            bytes.put_u64(*smooth_row);
            bytes.put_i64(predictions.0);
        }
        ArchiveKind::DevPredict { deviations } => bytes.put_i64(deviations.0),
        ArchiveKind::Failures {
            delta_positive,
            delta_negative,
            window,
            threshold,
            deviations,
        } => {
            bytes.put_value(*delta_positive);
            bytes.put_value(*delta_negative);
            bytes.put_u64(*window);
            bytes.put_u64(*threshold);
            bytes.put_i64(deviations.0);
        }
    }
}
