//! Blocks: cells of one level of a track, packed column by column.

use kymo_model::batch::RowId;

use crate::bin::NO_ROW;
use crate::pack::{Reader, SLACK, put_column, put_number};
use crate::tree::{BLOCK, biased, cell_begin};
use crate::{Bin, Damaged, Node, Slices, Values};

/// Cells of one level of a track that lie together in the file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Block {
    pub(crate) level: u8,
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) offset: u64,
    pub(crate) bytes: u32,
    pub(crate) checksum: u32,
}

/// The columns of values and of slices in a block.
const HAS_VALUES: u8 = 1;
const HAS_SLICES: u8 = 2;

/// Packs cells of a level, column by column.
pub(crate) fn put_nodes(out: &mut Vec<u8>, level: u8, nodes: &[Node]) {
    let bins = || nodes.iter().map(|node| &node.bin);
    let has_values = bins().any(|bin| bin.values.is_some());
    let has_slices = bins().any(|bin| bin.slices.is_some());
    put_number(out, nodes.len() as u64);
    out.push((u8::from(has_values) * HAS_VALUES) | (u8::from(has_slices) * HAS_SLICES));
    let gaps = nodes.windows(2).map(|pair| pair[1].key - pair[0].key);
    put_column(out, gaps);
    put_column(out, bins().map(|bin| bin.count));
    let begin = |node: &Node| biased(node.bin.first) - biased(cell_begin(level, node.key));
    put_column(out, nodes.iter().map(begin));
    let length = |bin: &Bin| bin.last.wrapping_sub(bin.first) as u64;
    put_column(out, bins().map(length));
    // Few sets of classes come again and again.
    let mut sets: Vec<u64> = bins().map(|bin| bin.classes).collect();
    sets.sort_unstable();
    sets.dedup();
    put_number(out, sets.len() as u64);
    put_column(out, sets.iter().copied());
    let set = |bin: &Bin| sets.partition_point(|&set| set < bin.classes) as u64;
    let places: Vec<u64> = bins().map(set).collect();
    put_column(out, places.iter().copied());
    if has_values {
        let column = |out: &mut Vec<u8>, number: &dyn Fn(&Bin, &Values) -> u64| {
            let value = |bin: &Bin| bin.values.as_ref().map_or(0, |values| number(bin, values));
            put_column(out, bins().map(value));
        };
        column(out, &|_, values| values.count);
        column(out, &|bin, values| {
            bin.last.wrapping_sub(values.last_time) as u64
        });
        column(out, &|_, values| values.min.to_bits());
        column(out, &|_, values| values.max.to_bits());
        column(out, &|_, values| values.last.to_bits());
        column(out, &|_, values| values.sum.to_bits());
    }
    if has_slices {
        let column = |out: &mut Vec<u8>, number: &dyn Fn(&Slices) -> u64| {
            let value = |bin: &Bin| bin.slices.as_ref().map_or(0, |slices| number(slices));
            put_column(out, bins().map(value));
        };
        column(out, &|slices| slices.count);
        column(out, &|slices| slices.unpaired);
        column(out, &|slices| slices.busy);
        column(out, &|slices| slices.longest);
        // If no slice has ended, there is no row.
        column(out, &|slices| {
            if slices.count > 0 {
                slices.longest_row.stream.into()
            } else {
                0
            }
        });
        column(out, &|slices| {
            if slices.count > 0 {
                slices.longest_row.chunk
            } else {
                0
            }
        });
        column(out, &|slices| {
            if slices.count > 0 {
                slices.longest_row.number
            } else {
                0
            }
        });
    }
    out.extend([0; SLACK]);
}

/// The cells of the bytes of a block, which are of these keys: for tests of what blocks may say.
#[doc(hidden)]
pub fn unpack(bytes: &[u8], level: u8, first: u64, last: u64) -> Result<Vec<Node>, Damaged> {
    let block = Block {
        level,
        first,
        last,
        offset: 0,
        bytes: 0,
        checksum: 0,
    };
    let mut nodes = Vec::new();
    get_nodes(bytes, &block, &mut nodes)?;
    Ok(nodes)
}

/// Unpacks a block.
pub(crate) fn get_nodes(bytes: &[u8], block: &Block, nodes: &mut Vec<Node>) -> Result<(), Damaged> {
    let mut reader = Reader(bytes);
    let count = reader.number()?;
    let count = usize::try_from(count)
        .ok()
        .filter(|count| (1..=BLOCK).contains(count));
    let count = count.ok_or(Damaged("a block of too many cells"))?;
    let flags = reader.byte()?;
    nodes.clear();
    nodes.resize(count, Node::default());
    nodes[0].key = block.first;
    let mut key = block.first;
    reader.column(count - 1, |at, gap| {
        key = key.saturating_add(gap);
        nodes[at + 1].key = key;
    })?;
    if key != block.last {
        return Err(Damaged("other cells than it should have"));
    }
    reader.column(count, |at, value| nodes[at].bin.count = value)?;
    let level = block.level;
    reader.column(count, |at, value| {
        nodes[at].bin.first = cell_begin(level, nodes[at].key).wrapping_add_unsigned(value);
    })?;
    reader.column(count, |at, value| {
        let bin = &mut nodes[at].bin;
        bin.last = bin.first.wrapping_add_unsigned(value);
    })?;
    let set_count = reader.number()?;
    let set_count = usize::try_from(set_count)
        .ok()
        .filter(|&sets| sets <= count);
    let mut sets = vec![0; set_count.ok_or(Damaged("too many sets of classes"))?];
    reader.column(sets.len(), |at, set| sets[at] = set)?;
    reader.column(count, |at, set| {
        let set = usize::try_from(set).ok().and_then(|set| sets.get(set));
        nodes[at].bin.classes = set.copied().unwrap_or(0);
    })?;
    if flags & HAS_VALUES != 0 {
        let [counts, before, min, max, last, sum] = columns(&mut reader, count)?;
        for (at, node) in nodes.iter_mut().enumerate() {
            if counts[at] > 0 {
                node.bin.values = Some(Box::new(Values {
                    count: counts[at],
                    min: f64::from_bits(min[at]),
                    max: f64::from_bits(max[at]),
                    last: f64::from_bits(last[at]),
                    last_time: node.bin.last.wrapping_sub_unsigned(before[at]),
                    sum: f64::from_bits(sum[at]),
                }));
            }
        }
    }
    if flags & HAS_SLICES != 0 {
        let [counts, unpaired, busy, longest, stream, chunk, number] = columns(&mut reader, count)?;
        for (at, node) in nodes.iter_mut().enumerate() {
            if counts[at] > 0 || unpaired[at] > 0 {
                let row = RowId {
                    recording: 0,
                    stream: stream[at] as u32,
                    chunk: chunk[at],
                    number: number[at],
                };
                node.bin.slices = Some(Box::new(Slices {
                    count: counts[at],
                    unpaired: unpaired[at],
                    busy: busy[at],
                    longest: longest[at],
                    longest_row: if counts[at] > 0 { row } else { NO_ROW },
                }));
            }
        }
    }
    Ok(())
}

/// Several columns of the same cells.
fn columns<const N: usize>(
    reader: &mut Reader<'_>,
    count: usize,
) -> Result<[Vec<u64>; N], Damaged> {
    let mut all = std::array::from_fn(|_| vec![0; count]);
    for column in &mut all {
        reader.column(count, |at, value| column[at] = value)?;
    }
    Ok(all)
}
