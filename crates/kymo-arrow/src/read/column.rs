//! Values of columns for some rows, put together by their levels.
//!
//! Each value has a repetition level, how many lists go on with it, and a definition level, how many of the optional and
//! repeated things around it are there: Parquet's README ("Nested Encoding") and the Dremel paper it names.

use std::ops::Range;

use bytes::Bytes;

use super::Problem;
use super::schema::{Content, Node, Shape};

/// A row without a value, in [`Column::places`].
const NULL: u32 = u32::MAX;

/// Values of a leaf, without nulls.
#[derive(Debug)]
pub(super) enum Values {
    Bits(Vec<bool>),
    /// Integers and times; those of 64 bits without a sign are the same bits.
    Numbers(Vec<i64>),
    Floats(Vec<f64>),
    Texts(Texts),
}

/// Texts and bytes, which are where they were read.
#[derive(Debug, Default)]
pub(super) struct Texts {
    pub(super) buffers: Vec<Bytes>,
    pub(super) views: Vec<View>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct View {
    pub(super) buffer: u32,
    pub(super) begin: u32,
    pub(super) length: u32,
}

impl Texts {
    pub(super) fn get(&self, number: usize) -> &[u8] {
        let View {
            buffer,
            begin,
            length,
        } = self.views[number];
        &self.buffers[buffer as usize][begin as usize..][..length as usize]
    }

    /// Adds a buffer that views can be of: its number.
    pub(super) fn add(&mut self, buffer: Bytes) -> u32 {
        self.buffers.push(buffer);
        self.buffers.len() as u32 - 1
    }
}

impl Values {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Bits(values) => values.len(),
            Self::Numbers(values) => values.len(),
            Self::Floats(values) => values.len(),
            Self::Texts(texts) => texts.views.len(),
        }
    }
}

/// The levels of a leaf, and its values.
#[derive(Debug)]
pub(super) struct Read {
    /// Number of values and nulls, those of empty lists among them.
    pub(super) count: usize,
    /// One for each; empty if all of them are 0.
    pub(super) definitions: Vec<u32>,
    pub(super) repetitions: Vec<u32>,
    pub(super) values: Values,
    pub(super) content: Content,
}

impl Read {
    /// The repetition and definition level of each value that is within an element of the list around a node.
    fn levels(&self, node: &Node) -> impl Iterator<Item = (u32, u32)> {
        let level = |levels: &[u32], at: usize| levels.get(at).copied().unwrap_or(0);
        let slot = node.slot;
        (0..self.count)
            .map(move |at| (level(&self.repetitions, at), level(&self.definitions, at)))
            .filter(move |&(_, definition)| definition >= slot)
    }
}

/// A column of some rows, or of elements of lists.
#[derive(Debug)]
pub(super) struct Column {
    /// Where the value of each row is, or that it is null; without it, each is in its own place.
    places: Option<Vec<u32>>,
    data: Data,
}

#[derive(Debug)]
enum Data {
    Leaf(Values, Content),
    Struct(Vec<Column>),
    /// Where the elements of each list begin, and the last ones end.
    List(Vec<u32>, Box<Column>),
}

impl Column {
    /// Puts the column of a node together from what its leaves have.
    pub(super) fn new(node: &Node, leaves: &mut [Option<Read>]) -> Result<Self, Problem> {
        let missing = "a column is there twice";
        if let Shape::Leaf = node.shape {
            let read = leaves.get_mut(node.leaf).and_then(Option::take);
            return Ok(Self::leaf(node, read.ok_or(missing)?));
        }
        let read = leaves.get(node.leaf).and_then(Option::as_ref);
        let read = read.ok_or(missing)?;
        let own = read.levels(node);
        let own = own.filter(|&(repetition, _)| repetition <= node.repetition);
        let places =
            (0..).zip(own).map(
                |(row, (_, definition))| match definition >= node.definition {
                    true => row,
                    false => NULL,
                },
            );
        let places: Vec<u32> = places.collect();
        let rows = places.len();
        let data = match &node.shape {
            Shape::List(item) => {
                let mut offsets = Vec::with_capacity(rows + 1);
                let mut items = 0;
                for (repetition, definition) in read.levels(node) {
                    if repetition <= node.repetition {
                        offsets.push(items);
                    }
                    items += u32::from(definition >= item.slot && repetition <= item.repetition);
                }
                offsets.push(items);
                let item = Self::new(item, leaves)?;
                item.expect(items as usize)?;
                Data::List(offsets, Box::new(item))
            }
            Shape::Struct(nodes) => {
                let members = nodes.iter().map(|node| {
                    let member = Self::new(node, leaves)?;
                    member.expect(rows)?;
                    Ok(member)
                });
                Data::Struct(members.collect::<Result<_, Problem>>()?)
            }
            Shape::Leaf => return Err(missing.to_owned()),
        };
        Ok(Self {
            places: Some(places),
            data,
        })
    }

    fn leaf(node: &Node, read: Read) -> Self {
        let is_whole = read.values.len() == read.count;
        let places = (!is_whole).then(|| {
            let mut next = 0..;
            let within = read.definitions.iter().filter(|&&level| level >= node.slot);
            let places = within.map(|&level| match level == node.definition {
                true => next.next().unwrap_or(NULL),
                false => NULL,
            });
            places.collect()
        });
        Self {
            places,
            data: Data::Leaf(read.values, read.content),
        }
    }

    /// How many rows or elements it has.
    pub(super) fn len(&self) -> usize {
        match (&self.places, &self.data) {
            (Some(places), _) => places.len(),
            (None, Data::Leaf(values, _)) => values.len(),
            (None, Data::Struct(_) | Data::List(..)) => 0,
        }
    }

    /// Whether it has this number of rows or elements.
    pub(super) fn expect(&self, rows: usize) -> Result<(), Problem> {
        match self.len() == rows {
            true => Ok(()),
            false => Err(format!(
                "a column within others has {} values, and the one before it {rows}",
                self.len()
            )),
        }
    }

    /// Where the value of a row is; `None` if it is null.
    #[inline]
    fn place(&self, row: usize) -> Option<usize> {
        match &self.places {
            None => Some(row),
            Some(places) => {
                let place = places.get(row).copied().filter(|&place| place != NULL);
                place.map(|place| place as usize)
            }
        }
    }

    pub(super) fn is_null(&self, row: usize) -> bool {
        self.place(row).is_none()
    }

    pub(super) fn bit(&self, row: usize) -> Option<bool> {
        match &self.data {
            Data::Leaf(Values::Bits(values), _) => values.get(self.place(row)?).copied(),
            _ => None,
        }
    }

    /// An integer, or the count of what counts time.
    #[inline]
    fn number(&self, row: usize) -> Option<i64> {
        match &self.data {
            Data::Leaf(Values::Numbers(values), _) => values.get(self.place(row)?).copied(),
            _ => None,
        }
    }

    /// An integer without a sign.
    pub(super) fn unsigned(&self, row: usize) -> Option<u64> {
        self.number(row).map(|number| number as u64)
    }

    /// A signed integer, the count of what counts time, or a time in nanoseconds, if that fits.
    pub(super) fn signed(&self, row: usize) -> Option<i64> {
        match self.data {
            Data::Leaf(_, Content::Time(_)) => self.nanos(row),
            _ => self.number(row),
        }
    }

    /// A time in nanoseconds, if that fits.
    pub(super) fn nanos(&self, row: usize) -> Option<i64> {
        match self.data {
            Data::Leaf(_, Content::Time(unit)) => self.number(row)?.checked_mul(unit),
            _ => None,
        }
    }

    pub(super) fn float(&self, row: usize) -> Option<f64> {
        match &self.data {
            Data::Leaf(Values::Floats(values), _) => values.get(self.place(row)?).copied(),
            _ => None,
        }
    }

    /// The scale of decimals.
    pub(super) fn scale(&self) -> Option<u8> {
        match self.data {
            Data::Leaf(_, Content::Decimal { scale }) => Some(scale),
            _ => None,
        }
    }

    pub(super) fn bytes(&self, row: usize) -> Option<&[u8]> {
        match &self.data {
            Data::Leaf(Values::Texts(texts), _) => Some(texts.get(self.place(row)?)),
            _ => None,
        }
    }

    pub(super) fn text(&self, row: usize) -> Option<&str> {
        std::str::from_utf8(self.bytes(row)?).ok()
    }

    /// The members of a structure.
    pub(super) fn members(&self) -> &[Self] {
        match &self.data {
            Data::Struct(members) => members,
            _ => &[],
        }
    }

    /// The elements of a list, and the column that they are in.
    pub(super) fn list(&self, row: usize) -> Option<(Range<usize>, &Self)> {
        let place = self.place(row)?;
        match &self.data {
            Data::List(offsets, items) => {
                let (begin, end) = (*offsets.get(place)?, *offsets.get(place + 1)?);
                Some((begin as usize..end as usize, items))
            }
            _ => None,
        }
    }
}
