//! What a file has beside blocks: what it is of, its tracks, where their blocks are, the ends of their trees.

use kymo_model::batch::RowId;
use kymo_model::{EntryKind, Track, TrackPart, TrackPath};

use crate::block::Block;
use crate::pack::{Reader, put_number, put_signed, put_text};
use crate::tree::{LEAF, OpenCell, TOP, biased, cell};
use crate::{Bin, Damaged, Node, Row, Slices, TreeBuilder, Values};

/// What is known of a track.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    pub(crate) track: Track,
    /// In the order in which they were written: those of a level in order of time.
    pub(crate) blocks: Vec<Block>,
    /// The end of the tree, to which rows can be added.
    pub(crate) builder: TreeBuilder,
    /// The cells that this end has now.
    pub(crate) tail: Vec<(u8, Vec<Node>)>,
}

impl Tree {
    /// The rows that are in no cell.
    pub(crate) fn rows(&self) -> &[Row] {
        match self.builder.open.is_empty() {
            true => &self.builder.rows,
            false => &[],
        }
    }
}

pub(crate) fn put_tree(out: &mut Vec<u8>, tree: &Tree) {
    let track = &tree.track;
    put_number(out, track.path.parts().len() as u64);
    track
        .path
        .parts()
        .iter()
        .for_each(|part| put_part(out, part));
    put_text(out, &track.name);
    out.push(u8::from(track.kind == EntryKind::Sample) | u8::from(track.unit.is_some()) << 1);
    if let Some(unit) = &track.unit {
        put_text(out, unit);
    }
    put_number(out, tree.blocks.len() as u64);
    let mut end = 0;
    for block in &tree.blocks {
        out.push(block.level);
        put_number(out, block.first);
        put_number(out, block.last - block.first);
        put_number(out, block.offset - end);
        put_number(out, block.bytes.into());
        out.extend(block.checksum.to_le_bytes());
        end = block.offset + u64::from(block.bytes);
    }
    put_number(out, tree.builder.open.len() as u64);
    for open in &tree.builder.open {
        put_bin(out, &open.node.bin);
    }
    put_number(out, tree.builder.rows.len() as u64);
    for row in &tree.builder.rows {
        put_bin(out, &{
            let mut bin = Bin::EMPTY;
            bin.push(row);
            bin
        });
    }
}

pub(crate) fn tree(reader: &mut Reader<'_>, contents: u64) -> Result<Tree, Damaged> {
    let count = reader.count(1)?;
    let parts = (0..count).map(|_| part(reader));
    let path = TrackPath::new(parts.collect::<Result<Vec<_>, _>>()?);
    let name = reader.text()?;
    let flags = reader.byte()?;
    let kind = match flags & 1 {
        0 => EntryKind::Event,
        _ => EntryKind::Sample,
    };
    let mut track = Track::new(path, name, kind);
    if flags & 2 != 0 {
        track.unit = Some(reader.text()?.into());
    }
    let mut blocks: Vec<Block> = Vec::new();
    let mut end = 0_u64;
    for _ in 0..reader.count(9)? {
        let level = reader.byte()?;
        let first = reader.number()?;
        let last = first.checked_add(reader.number()?);
        let offset = end.checked_add(reader.number()?);
        let bytes = reader.small()?;
        let checksum = reader.small_le()?;
        let block = Block {
            level,
            first,
            last: last.ok_or(Damaged("a cell beyond all"))?,
            offset: offset.ok_or(Damaged("a block beyond the end"))?,
            bytes,
            checksum,
        };
        let most = u64::MAX.checked_shr(2 * u32::from(level)).unwrap_or(0);
        end = block.offset.saturating_add(bytes.into());
        if level > TOP || block.last > most || end > contents {
            return Err(Damaged("a block out of place"));
        }
        let before = blocks.iter().rev().find(|block| block.level == level);
        if before.is_some_and(|before| before.last >= first) {
            return Err(Damaged("blocks out of order"));
        }
        blocks.push(block);
    }
    let mut builder = TreeBuilder::default();
    let open = reader.count(2)?;
    if open > usize::from(TOP) + 1 {
        return Err(Damaged("too many open cells"));
    }
    for number in 0..open {
        let bin = bin(reader)?;
        let level = TOP - number as u8;
        let key = cell(level, biased(bin.first));
        if bin.count > 0 && key != cell(level, biased(bin.last)) {
            return Err(Damaged("an open cell out of place"));
        }
        let node = Node { key, bin };
        builder.open.push(OpenCell { level, node });
    }
    let rows = reader.count(4)?;
    // An open cell of the last level has its rows in its bin.
    let is_single = open > usize::from(TOP);
    if rows > LEAF || is_single && rows > 0 {
        return Err(Damaged("too many rows"));
    }
    for _ in 0..rows {
        let bin = bin(reader)?;
        if bin.count != 1 || builder.last.is_some_and(|last| last > bin.first) {
            return Err(Damaged("rows out of order"));
        }
        builder.last = Some(bin.first);
        builder.rows.push(Row {
            time: bin.first,
            value: bin.values.map_or(f64::NAN, |values| values.last),
            slices: bin.slices,
            class: bin.classes.trailing_zeros().min(63) as u8,
        });
    }
    place_open(&mut builder)?;
    let mut tail: Vec<(u8, Vec<Node>)> = Vec::new();
    builder
        .clone()
        .finish(&mut |level, nodes| tail.push((level, nodes.to_vec())));
    Ok(Tree {
        track,
        blocks,
        builder,
        tail,
    })
}

/// Finds where cells are that were opened and have nothing but what is in the rows below them.
fn place_open(builder: &mut TreeBuilder) -> Result<(), Damaged> {
    let inner = builder
        .open
        .iter()
        .rev()
        .find(|open| open.node.bin.count > 0);
    let inner = inner.map(|inner| inner.node.bin.last);
    let time = builder.rows.last().map(|row| row.time).or(inner);
    let Some(time) = time else {
        return match builder.open.is_empty() {
            true => Ok(()),
            false => Err(Damaged("open cells without rows")),
        };
    };
    if inner.is_some_and(|inner| inner > time) {
        return Err(Damaged("rows out of order"));
    }
    builder.last = Some(time);
    for open in &mut builder.open {
        let key = cell(open.level, biased(time));
        if open.node.bin.count > 0 && open.node.key != key {
            return Err(Damaged("an open cell out of place"));
        }
        open.node.key = key;
    }
    Ok(())
}

/// Parts of paths: a byte that specifies the kind, a number or a text.
fn put_part(out: &mut Vec<u8>, part: &TrackPart) {
    let mut number = |kind: u8, number: u64| {
        out.push(kind);
        put_number(out, number);
    };
    match part {
        TrackPart::Stream { class, id } => {
            number(0, *class);
            put_number(out, *id);
        }
        TrackPart::Cpu(cpu) => number(1, *cpu),
        TrackPart::Process(pid) => number(2, *pid as u64),
        TrackPart::Thread(tid) => number(3, *tid as u64),
        TrackPart::Number(own) => number(4, *own),
        TrackPart::Archive(archive) => number(5, (*archive).into()),
        TrackPart::Source(text) => put_named(out, 6, text),
        TrackPart::Host(text) => put_named(out, 7, text),
        TrackPart::Plugin(text) => put_named(out, 8, text),
        TrackPart::Type(text) => put_named(out, 9, text),
        TrackPart::Value(text) => put_named(out, 10, text),
        TrackPart::Name(text) => put_named(out, 11, text),
        // A kind of part that this version does not know has its name.
        other => put_named(out, 11, &other.to_string()),
    }
}

fn put_named(out: &mut Vec<u8>, kind: u8, text: &str) {
    out.push(kind);
    put_text(out, text);
}

fn part(reader: &mut Reader<'_>) -> Result<TrackPart, Damaged> {
    Ok(match reader.byte()? {
        0 => TrackPart::Stream {
            class: reader.number()?,
            id: reader.number()?,
        },
        1 => TrackPart::Cpu(reader.number()?),
        2 => TrackPart::Process(reader.number()? as i64),
        3 => TrackPart::Thread(reader.number()? as i64),
        4 => TrackPart::Number(reader.number()?),
        5 => TrackPart::Archive(reader.small()?),
        6 => TrackPart::Source(reader.text()?.into()),
        7 => TrackPart::Host(reader.text()?.into()),
        8 => TrackPart::Plugin(reader.text()?.into()),
        9 => TrackPart::Type(reader.text()?.into()),
        10 => TrackPart::Value(reader.text()?.into()),
        11 => TrackPart::Name(reader.text()?.into()),
        _ => return Err(Damaged("an unknown kind of track")),
    })
}

/// A bin on its own, as rows and open cells are written.
fn put_bin(out: &mut Vec<u8>, bin: &Bin) {
    put_number(out, bin.count);
    out.push(u8::from(bin.values.is_some()) | u8::from(bin.slices.is_some()) << 1);
    if bin.count == 0 {
        return;
    }
    put_signed(out, bin.first);
    put_number(out, bin.last.wrapping_sub(bin.first) as u64);
    put_number(out, bin.classes);
    if let Some(values) = &bin.values {
        put_number(out, values.count);
        put_number(out, bin.last.wrapping_sub(values.last_time) as u64);
        for value in [values.min, values.max, values.last, values.sum] {
            out.extend(value.to_bits().to_le_bytes());
        }
    }
    if let Some(slices) = &bin.slices {
        let Slices {
            count,
            unpaired,
            busy,
            longest,
            longest_row: row,
        } = **slices;
        let numbers = [count, unpaired, busy, longest];
        numbers.iter().for_each(|&number| put_number(out, number));
        put_number(out, row.stream.into());
        put_number(out, row.chunk);
        put_number(out, row.number);
    }
}

fn bin(reader: &mut Reader<'_>) -> Result<Bin, Damaged> {
    let mut bin = Bin::EMPTY;
    bin.count = reader.number()?;
    let flags = reader.byte()?;
    if bin.count == 0 {
        return Ok(bin);
    }
    bin.first = reader.signed()?;
    let length = reader.number()?;
    bin.last = bin.first.checked_add_unsigned(length).ok_or(FAR)?;
    bin.classes = reader.number()?;
    if flags & 1 != 0 {
        let count = reader.number()?;
        let last_time = bin.last.checked_sub_unsigned(reader.number()?).ok_or(FAR)?;
        bin.values = Some(Box::new(Values {
            count,
            min: reader.float()?,
            max: reader.float()?,
            last: reader.float()?,
            last_time,
            sum: reader.float()?,
        }));
    }
    if flags & 2 != 0 {
        bin.slices = Some(Box::new(Slices {
            count: reader.number()?,
            unpaired: reader.number()?,
            busy: reader.number()?,
            longest: reader.number()?,
            longest_row: RowId {
                recording: 0,
                stream: reader.small()?,
                chunk: reader.number()?,
                number: reader.number()?,
            },
        }));
    }
    Ok(bin)
}

const FAR: Damaged = Damaged("a time beyond all");

impl Reader<'_> {
    fn small_le(&mut self) -> Result<u32, Damaged> {
        let bytes = self.bytes(4)?.try_into().map_err(|_| Damaged("cut off"))?;
        Ok(u32::from_le_bytes(bytes))
    }
}
