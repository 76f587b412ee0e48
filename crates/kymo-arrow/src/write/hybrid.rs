//! Levels and positions in dictionaries: runs of one value, and groups of eight packed ones between them ("RLE/bit-packing
//! hybrid" in [Encodings.md](https://github.com/apache/parquet-format/blob/master/Encodings.md)).

use super::pack::{pack, varint, width_of};

/// Fewer equal values than this remain among packed ones: the headers of a run and of what comes behind it are bytes, too.
const RUN: usize = 16;

/// Appends values of `width` bits each.
pub(super) fn encode<T: Copy + PartialEq + Into<u64>>(values: &[T], width: u32, out: &mut Vec<u8>) {
    // Values before `begin` are written; those up to `at` are to be packed.
    let (mut begin, mut at) = (0, 0);
    while let Some(group) = values.get(at..at + 8) {
        let first = group[0];
        if !group
            .iter()
            .fold(true, |all, &value| all & (value == first))
        {
            at += 8;
            continue;
        }
        let behind = &values[at + 8..];
        let more = behind.iter().position(|&value| value != first);
        let count = 8 + more.unwrap_or(behind.len());
        if count < RUN && at + count < values.len() {
            at += 8;
            continue;
        }
        packed(&values[begin..at], width, out);
        run(first, count, width, out);
        at += count;
        begin = at;
    }
    packed(&values[begin..], width, out);
}

/// Appends a run of one value.
pub(super) fn run<T: Into<u64>>(value: T, count: usize, width: u32, out: &mut Vec<u8>) {
    varint((count as u64) << 1, out);
    let value = value.into().to_le_bytes();
    out.extend_from_slice(&value[..width.div_ceil(8) as usize]);
}

/// Only the last group may have fewer than eight values; zeros fill it.
fn packed<T: Copy + Into<u64>>(values: &[T], width: u32, out: &mut Vec<u8>) {
    if values.is_empty() {
        return;
    }
    let groups = values.len().div_ceil(8);
    varint((groups as u64) << 1 | 1, out);
    let end = out.len() + groups * width as usize;
    pack(values, width, out);
    out.resize(end, 0);
}

/// The levels of a page: mostly one for all values.
#[derive(Debug, Default)]
pub(super) struct Levels {
    largest: u8,
    /// What all levels are, as long as they are the same.
    same: Option<u8>,
    levels: Vec<u8>,
    len: usize,
}

impl Levels {
    pub(super) fn new(largest: u8) -> Self {
        Self {
            largest,
            ..Self::default()
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn bytes(&self) -> usize {
        self.levels.capacity()
    }

    pub(super) fn extend_same(&mut self, level: u8, count: usize) {
        if self.len == 0 || self.same == Some(level) {
            self.same = Some(level);
        } else {
            self.separate();
            self.levels.resize(self.len + count, level);
        }
        self.len += count;
    }

    pub(super) fn extend(&mut self, levels: &[u8]) {
        self.separate();
        self.levels.extend_from_slice(levels);
        self.len += levels.len();
    }

    fn separate(&mut self) {
        if let Some(level) = self.same.take() {
            self.levels.resize(self.len, level);
        }
    }

    /// Appends them to a page, behind their length, and forgets them. Where only one level is possible, there are none.
    pub(super) fn end_page(&mut self, out: &mut Vec<u8>) {
        if self.largest > 0 {
            let width = width_of(u64::from(self.largest));
            let begin = out.len();
            out.extend_from_slice(&[0; 4]);
            match self.same {
                Some(level) => run(level, self.len, width, out),
                None => encode(&self.levels, width, out),
            }
            let length = (out.len() - begin - 4) as u32;
            out[begin..begin + 4].copy_from_slice(&length.to_le_bytes());
        }
        self.levels.clear();
        (self.same, self.len) = (None, 0);
    }
}
