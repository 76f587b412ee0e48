//! The file of a recording's trees.

use std::fmt;
use std::io::{self, Write};

use kymo_io::Bytes;
use kymo_model::Track;

use crate::block::{Block, get_nodes, put_nodes};
use crate::contents::{self, Tree};
use crate::meta::{self, Meta};
use crate::pack::{Reader, put_number};
use crate::tree::{TOP, are_sorted};
use crate::{Node, Row, TreeBuilder};

/// What a file begins with; the last byte is the version.
pub(crate) const MAGIC: [u8; 8] = *b"KYMOIDX\x02";

/// Bytes behind the contents: where they begin, their length, their checksum, and a checksum of these.
const TRAILER: usize = 24;

/// Maximum number of cells that wait in memory to be packed together.
const MOST_WAITING: usize = 1 << 19;

/// Why a file is not an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damaged(pub(crate) &'static str);

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the index is damaged: {}", self.0)
    }
}

impl std::error::Error for Damaged {}

/// Writes the trees of a recording's tracks.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    length: u64,
    trees: Vec<Tree>,
    waiting: usize,
    buffer: Vec<u8>,
    result: io::Result<()>,
}

impl<W: Write> Writer<W> {
    /// A writer without tracks.
    ///
    /// # Errors
    ///
    /// Those of writing.
    pub fn new(mut out: W) -> io::Result<Self> {
        out.write_all(&MAGIC)?;
        Ok(Self {
            out,
            length: MAGIC.len() as u64,
            trees: Vec::new(),
            waiting: 0,
            buffer: Vec::new(),
            result: Ok(()),
        })
    }

    /// A writer that goes on where an index ends.
    ///
    /// # Errors
    ///
    /// Those of writing.
    pub fn extend(mut out: W, index: &Index) -> io::Result<Self> {
        out.write_all(&index.bytes[..index.contents])?;
        let trees = index.trees.iter().cloned();
        let trees = trees.map(|tree| Tree {
            tail: Vec::new(),
            ..tree
        });
        Ok(Self {
            out,
            length: index.contents as u64,
            trees: trees.collect(),
            waiting: 0,
            buffer: Vec::new(),
            result: Ok(()),
        })
    }

    /// Adds a track, and returns its number.
    pub fn add_track(&mut self, track: Track) -> u32 {
        self.trees.push(Tree {
            track,
            blocks: Vec::new(),
            builder: TreeBuilder::default(),
            tail: Vec::new(),
        });
        self.trees.len() as u32 - 1
    }

    /// The tracks so far, in the order of their numbers.
    pub fn tracks(&self) -> impl Iterator<Item = &Track> {
        self.trees.iter().map(|tree| &tree.track)
    }

    /// Whether a row of a track may come next: not earlier than the one before it.
    #[inline]
    pub fn is_next(&self, track: u32, time: i64) -> bool {
        let tree = self.trees.get(track as usize);
        tree.is_some_and(|tree| tree.builder.is_next(time))
    }

    /// Adds a row of a track that may come [next](Self::is_next); others are ignored. What hinders writing,
    /// [`finish`](Self::finish) reports.
    #[inline]
    pub fn push(&mut self, track: u32, row: Row) {
        if self.is_next(track, row.time) {
            self.grow(track, |tree, waiting, full| {
                tree.push(row, waiting, &mut |level, nodes| full.write(level, nodes));
            });
        }
    }

    /// Adds rows of a track of which only times and classes count; there is a class for each time. If not all of them
    /// may come [next](Self::is_next), one after the other, it adds none and returns `false`.
    pub fn push_all(&mut self, track: u32, times: &[i64], classes: &[u32]) -> bool {
        let is_first_next = times.first().is_none_or(|&time| self.is_next(track, time));
        if !is_first_next || !are_sorted(times) || times.len() != classes.len() {
            return false;
        }
        self.grow(track, |tree, waiting, full| {
            let take = &mut |level, nodes: &[Node]| full.write(level, nodes);
            tree.push_all((times, classes), waiting, take);
        });
        true
    }

    /// Adds rows to the tree of a track that there is.
    #[inline]
    fn grow(
        &mut self,
        track: u32,
        add: impl FnOnce(&mut TreeBuilder, &mut usize, &mut Full<'_, W>),
    ) {
        let tree = &mut self.trees[track as usize];
        let mut full = Full {
            out: &mut self.out,
            length: &mut self.length,
            buffer: &mut self.buffer,
            blocks: &mut tree.blocks,
            result: &mut self.result,
        };
        add(&mut tree.builder, &mut self.waiting, &mut full);
        if self.waiting >= MOST_WAITING {
            self.flush();
        }
    }

    /// Writes what waits to be written.
    #[cold]
    fn flush(&mut self) {
        for tree in &mut self.trees {
            let mut full = Full {
                out: &mut self.out,
                length: &mut self.length,
                buffer: &mut self.buffer,
                blocks: &mut tree.blocks,
                result: &mut self.result,
            };
            tree.builder
                .flush(&mut |level, nodes| full.write(level, nodes));
        }
        self.waiting = 0;
    }

    /// Ends the file.
    ///
    /// # Errors
    ///
    /// Those of writing.
    pub fn finish(mut self, meta: &Meta) -> io::Result<W> {
        self.flush();
        self.result?;
        let mut contents = Vec::new();
        meta::put_meta(&mut contents, meta);
        put_number(&mut contents, self.trees.len() as u64);
        for tree in &self.trees {
            contents::put_tree(&mut contents, tree);
        }
        self.out.write_all(&contents)?;
        self.out.write_all(&trailer(self.length, &contents))?;
        Ok(self.out)
    }
}

/// Writes blocks of a track.
struct Full<'w, W> {
    out: &'w mut W,
    length: &'w mut u64,
    buffer: &'w mut Vec<u8>,
    blocks: &'w mut Vec<Block>,
    result: &'w mut io::Result<()>,
}

impl<W: Write> Full<'_, W> {
    #[cold]
    fn write(&mut self, level: u8, nodes: &[Node]) {
        let (Some(first), Some(last)) = (nodes.first(), nodes.last()) else {
            return;
        };
        self.buffer.clear();
        put_nodes(self.buffer, level, nodes);
        if self.result.is_ok() {
            *self.result = self.out.write_all(self.buffer);
        }
        self.blocks.push(Block {
            level,
            first: first.key,
            last: last.key,
            offset: *self.length,
            bytes: self.buffer.len() as u32,
            checksum: crc32c::crc32c(self.buffer),
        });
        *self.length += self.buffer.len() as u64;
    }
}

/// The trees of a recording's tracks, in a file that was checked.
#[derive(Debug)]
pub struct Index {
    bytes: Bytes,
    /// Where the blocks end.
    contents: usize,
    meta: Meta,
    pub(crate) trees: Vec<Tree>,
}

impl Index {
    /// Opens a file. Blocks are checked when they are looked at.
    ///
    /// # Errors
    ///
    /// If it is not an index, of another version, or damaged.
    pub fn open(bytes: Bytes) -> Result<Self, Damaged> {
        if !bytes.starts_with(&MAGIC) {
            return Err(Damaged("another format or version"));
        }
        let split = bytes.len().checked_sub(TRAILER);
        let split = split.filter(|&split| split >= MAGIC.len());
        let (before, trailer) = bytes.split_at(split.ok_or(Damaged("cut off"))?);
        let number = |range: std::ops::Range<usize>| {
            let bytes = trailer[range].iter().rev();
            bytes.fold(0, |value, &byte| value << 8 | u64::from(byte))
        };
        let (begin, length) = (number(0..8), number(8..16));
        if number(20..24) != u64::from(crc32c::crc32c(&trailer[..20]))
            || begin < MAGIC.len() as u64
            || begin.checked_add(length) != Some(before.len() as u64)
        {
            return Err(Damaged("a wrong end"));
        }
        let begin = begin as usize;
        if number(16..20) != u64::from(crc32c::crc32c(&before[begin..])) {
            return Err(Damaged("wrong contents"));
        }
        let mut reader = Reader(&before[begin..]);
        let meta = meta::meta(&mut reader)?;
        let count = reader.count(4)?;
        let mut trees = Vec::new();
        for _ in 0..count {
            trees.push(contents::tree(&mut reader, begin as u64)?);
        }
        if !reader.0.is_empty() {
            return Err(Damaged("more than its contents"));
        }
        Ok(Self {
            contents: begin,
            bytes,
            meta,
            trees,
        })
    }

    /// What it says beside the trees.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// The same, and nothing else of it.
    pub fn into_meta(self) -> Meta {
        self.meta
    }

    /// The file.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The tracks, in the order of their numbers.
    pub fn tracks(&self) -> impl ExactSizeIterator<Item = &Track> {
        self.trees.iter().map(|tree| &tree.track)
    }

    /// When the first and the last row were; `None` if there are none.
    pub fn range(&self) -> Option<(i64, i64)> {
        let of_tree = |tree: &Tree| {
            let mut bin = crate::Bin::EMPTY;
            tree.rows().iter().for_each(|row| bin.push(row));
            let all = tree.tail.iter().filter(|(level, _)| *level == TOP);
            all.flat_map(|(_, nodes)| nodes)
                .for_each(|node| bin.add(&node.bin));
            (bin.count > 0).then_some((bin.first, bin.last))
        };
        let ranges = self.trees.iter().filter_map(of_tree);
        ranges.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }

    /// Checks all blocks, for callers that would rather rebuild the index than find damage later.
    ///
    /// # Errors
    ///
    /// If a block is damaged.
    pub fn check(&self) -> Result<(), Damaged> {
        let mut blocks = self.trees.iter().flat_map(|tree| &tree.blocks);
        blocks.try_for_each(|block| self.block(block).map(drop))
    }

    fn block(&self, block: &Block) -> Result<&[u8], Damaged> {
        let begin = block.offset as usize;
        let bytes = self.bytes.get(begin..begin + block.bytes as usize);
        let bytes = bytes.ok_or(Damaged("cut off"))?;
        match crc32c::crc32c(bytes) == block.checksum {
            true => Ok(bytes),
            false => Err(Damaged("a wrong block")),
        }
    }

    /// The cells of a block.
    pub(crate) fn nodes(&self, block: &Block, nodes: &mut Vec<Node>) -> Result<(), Damaged> {
        get_nodes(self.block(block)?, block, nodes)
    }
}

/// A file of these blocks and contents, with the end that they need: for tests of what contents may say.
#[doc(hidden)]
pub fn seal(blocks: &[u8], contents: &[u8]) -> Vec<u8> {
    let mut file = MAGIC.to_vec();
    file.extend(blocks);
    let end = trailer(file.len() as u64, contents);
    file.extend(contents);
    file.extend(end);
    file
}

/// What ends a file.
fn trailer(begin: u64, contents: &[u8]) -> Vec<u8> {
    let mut trailer = Vec::with_capacity(TRAILER);
    trailer.extend(begin.to_le_bytes());
    trailer.extend((contents.len() as u64).to_le_bytes());
    trailer.extend(crc32c::crc32c(contents).to_le_bytes());
    trailer.extend(crc32c::crc32c(&trailer).to_le_bytes());
    trailer
}
