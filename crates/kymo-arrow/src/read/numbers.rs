//! Numbers in few bits, as levels, places in dictionaries, lengths and differences are encoded.
//!
//! Parquet's Encodings.md describes them: "Run Length Encoding / Bit-Packing Hybrid (RLE = 3)" ([`Runs`]), "Bit-packed
//! (Deprecated) (BIT_PACKED = 4)", "Delta Encoding (DELTA_BINARY_PACKED = 5)" ([`Differences`]). What an encoding announces
//! takes no memory before it is asked for.

use bytes::Bytes;

use super::Problem;
use super::thrift::Reader;

/// The widest numbers of runs: levels and places in dictionaries have 32 bits.
const MOST_RUN_BITS: u32 = 32;
/// Differences of a block.
const MOST_BLOCK: u64 = 1 << 24;

/// A number of up to 64 bits that begins at a bit, the lowest bits first; behind the end are zeros.
#[inline]
fn packed(bytes: &[u8], bit: usize, width: u32) -> u64 {
    let rest = bytes.get(bit / 8..).unwrap_or_default();
    let shift = (bit % 8) as u32;
    let low = match rest.first_chunk() {
        Some(first) => u64::from_le_bytes(*first),
        None => last(rest),
    };
    let mut value = low >> shift;
    if shift + width > u64::BITS {
        value |= u64::from(rest.get(8).copied().unwrap_or(0)) << (u64::BITS - shift);
    }
    match width {
        0 => 0,
        _ => value & u64::MAX >> (u64::BITS - width),
    }
}

/// Fewer than eight bytes.
#[cold]
fn last(bytes: &[u8]) -> u64 {
    let mut all = [0; 8];
    all[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(all)
}

/// Reads something of Thrift's at a place, and goes behind it: its numbers of variable length are those of encodings.
fn thrift<'a, T>(
    bytes: &'a [u8],
    at: &mut usize,
    read: impl FnOnce(&mut Reader<'a>) -> Option<T>,
) -> Option<T> {
    let mut reader = Reader(bytes.get(*at..)?);
    let value = read(&mut reader);
    *at = bytes.len() - reader.0.len();
    value
}

/// Numbers below a limit, in runs of the same number and in groups of eight.
#[derive(Debug)]
pub(super) struct Runs {
    /// What each number is.
    what: &'static str,
    bytes: Bytes,
    at: usize,
    width: u32,
    limit: u64,
    run: Run,
    /// The number of values of the run that are still to come.
    left: u64,
}

#[derive(Clone, Copy, Debug)]
enum Run {
    Same(u32),
    /// The bit at which the next number begins.
    Packed(usize),
    /// The same where the bits of each byte, and so those of each number, are in reverse order.
    Reversed(usize),
}

impl Runs {
    fn new(what: &'static str, bytes: Bytes, width: u32, limit: u64) -> Result<Self, Problem> {
        if width > MOST_RUN_BITS {
            return Err(format!(
                "numbers in runs have {width} bits, and there are up to {MOST_RUN_BITS}"
            ));
        }
        Ok(Self {
            what,
            bytes,
            at: 0,
            width,
            limit,
            run: Run::Same(0),
            left: 0,
        })
    }

    /// Levels up to a greatest one.
    pub(super) fn levels(bytes: Bytes, most: u32) -> Result<Self, Problem> {
        let width = u32::BITS - most.leading_zeros();
        Self::new("level", bytes, width, u64::from(most) + 1)
    }

    /// Places in a dictionary with a number of values; the first byte is how many bits each has.
    pub(super) fn places(bytes: &Bytes, values: usize) -> Result<Self, Problem> {
        let (width, rest) = match &**bytes {
            [] => (0, Bytes::new()),
            [width, ..] => (u32::from(*width), bytes.slice(1..)),
        };
        Self::new("place in the dictionary", rest, width, values as u64)
    }

    /// A number of levels without runs, each with its highest bit first, at the beginning of bytes: it takes them from there.
    pub(super) fn packed_levels(bytes: &mut Bytes, most: u32, count: u64) -> Result<Self, Problem> {
        let width = u32::BITS - most.leading_zeros();
        let size = count.checked_mul(width.into()).map(|bits| bits.div_ceil(8));
        let size = size.and_then(|size| usize::try_from(size).ok());
        let size = size.filter(|&size| size <= bytes.len());
        let size = size.ok_or("its levels are cut")?;
        let reversed: Vec<u8> = bytes
            .split_to(size)
            .iter()
            .map(|byte| byte.reverse_bits())
            .collect();
        let mut levels = Self::levels(reversed.into(), most)?;
        levels.at = size;
        levels.run = Run::Reversed(0);
        levels.left = count;
        Ok(levels)
    }

    /// Appends the next numbers.
    pub(super) fn read(&mut self, mut count: usize, to: &mut Vec<u32>) -> Result<(), Problem> {
        while count > 0 {
            if self.left == 0 {
                self.next_run()?;
            }
            let here = count.min(usize::try_from(self.left).unwrap_or(usize::MAX));
            let first = to.len();
            match &mut self.run {
                Run::Same(value) => to.resize(first + here, *value),
                Run::Packed(bit) => {
                    let (bytes, width) = (&*self.bytes, self.width);
                    let bits = (0..here).map(|number| *bit + number * width as usize);
                    to.extend(bits.map(|bit| packed(bytes, bit, width) as u32));
                    *bit += here * width as usize;
                }
                Run::Reversed(bit) => {
                    let (bytes, width) = (&*self.bytes, self.width);
                    let bits = (0..here).map(|number| *bit + number * width as usize);
                    let numbers = bits.map(|bit| packed(bytes, bit, width).reverse_bits());
                    to.extend(numbers.map(|number| (number >> (u64::BITS - width)) as u32));
                    *bit += here * width as usize;
                }
            }
            let checked = match self.run {
                Run::Same(_) => first + 1,
                Run::Packed(_) | Run::Reversed(_) => to.len(),
            };
            let found = to[first..checked].iter().max().copied();
            if let Some(found) = found.filter(|&found| u64::from(found) >= self.limit) {
                return Err(format!(
                    "{} {found} is out of range: expected less than {}",
                    self.what, self.limit
                ));
            }
            count -= here;
            self.left -= here as u64;
        }
        Ok(())
    }

    fn next_run(&mut self) -> Result<(), Problem> {
        let cut = "its runs end before the last value";
        let head = thrift(&self.bytes, &mut self.at, Reader::varint).ok_or(cut)?;
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let count = head >> 1;
        if head & 1 == 0 {
            let size = self.width.div_ceil(8) as usize;
            if rest.len() < size {
                return Err(cut.to_owned());
            }
            self.run = Run::Same(packed(rest, 0, 8 * size as u32) as u32);
            self.left = count;
            self.at += size;
        } else {
            self.run = Run::Packed(self.at * 8);
            self.left = count.saturating_mul(8);
            if self.width > 0 {
                // The last group may be cut behind its last value.
                self.left = self.left.min(rest.len() as u64 * 8 / u64::from(self.width));
                let size = count.saturating_mul(self.width.into());
                self.at += rest.len().min(usize::try_from(size).unwrap_or(usize::MAX));
            }
        }
        match self.left {
            0 => Err(cut.to_owned()),
            _ => Ok(()),
        }
    }
}

/// Numbers that are given by their differences, in blocks of parts of the same width.
#[derive(Clone, Debug)]
pub(super) struct Differences {
    bytes: Bytes,
    /// Behind the last part or block that has begun.
    at: usize,
    /// Parts of a block, and differences of a part.
    parts: usize,
    of_part: u64,
    /// The next number, and how many are still to come.
    next: i64,
    left: u64,
    /// What is added to each difference of the block.
    least: i64,
    /// Where the widths of the parts are that are still to come of the block, and how many these are.
    widths: usize,
    parts_left: usize,
    width: u32,
    bit: usize,
    /// Differences that are still to come of the part.
    part_left: u64,
}

impl Differences {
    /// Those that begin at a byte; there are no more than `most`.
    pub(super) fn new(bytes: Bytes, mut at: usize, most: u64) -> Result<Self, Problem> {
        let head = thrift(&bytes, &mut at, |reader| {
            let (block, parts, count) = (reader.varint()?, reader.varint()?, reader.varint()?);
            Some((block, parts, count, reader.signed()?))
        });
        let (block, parts, count, next) = head.ok_or("its differences are cut")?;
        let is_right = block > 0
            && block <= MOST_BLOCK
            && block % 128 == 0
            && (1..=block).contains(&parts)
            && block % parts == 0
            && block / parts % 32 == 0;
        if !is_right {
            return Err(format!(
                "its differences are in {parts} parts of a block of {block}"
            ));
        }
        if count > most {
            return Err(format!("it has {count} differences for {most} values"));
        }
        Ok(Self {
            bytes,
            at,
            parts: parts as usize,
            of_part: block / parts,
            next,
            left: count,
            least: 0,
            widths: 0,
            parts_left: 0,
            width: 0,
            bit: 0,
            part_left: 0,
        })
    }

    /// Gives the next numbers.
    pub(super) fn read(&mut self, count: usize, mut take: impl FnMut(i64)) -> Result<(), Problem> {
        if count as u64 > self.left {
            return Err(format!(
                "it has {} differences where {count} are expected",
                self.left
            ));
        }
        for _ in 0..count {
            take(self.next);
            self.left -= 1;
            if self.left == 0 {
                break;
            }
            if self.part_left == 0 {
                self.next_part()?;
            }
            let difference = packed(&self.bytes, self.bit, self.width) as i64;
            self.bit += self.width as usize;
            self.part_left -= 1;
            self.next = self.next.wrapping_add(self.least).wrapping_add(difference);
        }
        Ok(())
    }

    fn next_part(&mut self) -> Result<(), Problem> {
        let cut = "its differences are cut";
        if self.parts_left == 0 {
            self.least = thrift(&self.bytes, &mut self.at, Reader::signed).ok_or(cut)?;
            self.widths = self.at;
            self.parts_left = self.parts;
            self.at += self.parts;
        }
        self.width = u32::from(*self.bytes.get(self.widths).ok_or(cut)?);
        if self.width > i64::BITS {
            return Err(format!("a difference has {} bits", self.width));
        }
        self.widths += 1;
        self.parts_left -= 1;
        self.bit = self.at * 8;
        self.part_left = self.of_part;
        // The last part may be cut behind its last value.
        let needed = self.of_part.min(self.left) as usize * self.width as usize;
        if self.bit + needed > self.bytes.len() * 8 {
            return Err(cut.to_owned());
        }
        self.at += self.of_part as usize * self.width as usize / 8;
        Ok(())
    }

    /// Where they end.
    pub(super) fn end(&self) -> Result<usize, Problem> {
        let mut rest = self.clone();
        rest.left = rest.left.saturating_sub(1);
        while rest.left > 0 {
            rest.next_part()?;
            rest.left = rest.left.saturating_sub(rest.of_part);
        }
        Ok(rest.at.min(rest.bytes.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(bytes: &'static [u8], width: u32, count: usize) -> Result<Vec<u32>, Problem> {
        let mut to = Vec::new();
        Runs::new("number", Bytes::from_static(bytes), width, 1 << 32)?.read(count, &mut to)?;
        Ok(to)
    }

    #[test]
    fn runs_and_groups_are_single_numbers() {
        // 20 zeros, 5 times 1, and 8 numbers in a group: the example of Encodings.md, 0 to 7 in 3 bits.
        let bytes = &[
            20 << 1,
            0,
            5 << 1,
            1,
            3,
            0b1000_1000,
            0b1100_0110,
            0b1111_1010,
        ];
        let mut expected = [0].repeat(20);
        expected.extend([1].repeat(5));
        expected.extend(0..8);
        for count in 0..=33 {
            assert_eq!(runs(bytes, 3, count).as_deref(), Ok(&expected[..count]));
        }
        assert!(runs(bytes, 3, 34).is_err());
        // The last group is cut behind its fifth number.
        assert_eq!(runs(&bytes[..7], 3, 30).map(|all| all.len()), Ok(30));
        assert!(runs(&bytes[..7], 3, 31).is_err());
        assert!(runs(&[0, 0], 3, 1).is_err());
        assert!(runs(bytes, 33, 1).is_err());
        // A run of 2^62 takes no room.
        let many = &[0xff; 8];
        assert!(runs(many, 1, 57).is_err());
        let many = &[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 1];
        assert_eq!(runs(many, 1, 3).as_deref(), Ok(&[1, 1, 1][..]));
        // Levels up to 2 have two bits.
        let mut levels = Runs::levels(Bytes::from_static(&[2 << 1, 3]), 2).unwrap();
        let problem = levels.read(2, &mut Vec::new()).unwrap_err();
        assert_eq!(problem, "level 3 is out of range: expected less than 3");
    }

    #[test]
    fn older_levels_have_their_highest_bit_first() {
        // 0 to 7 in 3 bits: the example of Encodings.md. A value follows.
        let bytes = &[0b0000_0101, 0b0011_1001, 0b0111_0111, 0xaa];
        let mut rest = Bytes::from_static(bytes);
        let mut levels = Runs::packed_levels(&mut rest, 7, 8).unwrap();
        let mut to = Vec::new();
        levels.read(3, &mut to).unwrap();
        levels.read(5, &mut to).unwrap();
        assert_eq!(to, [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(*rest, [0xaa]);
        assert!(levels.read(1, &mut to).is_err());
        for (most, count) in [(7, 11), (7, u64::MAX), (6, 8)] {
            let mut rest = Bytes::from_static(bytes);
            let levels = Runs::packed_levels(&mut rest, most, count);
            let read = levels.and_then(|mut levels| levels.read(8, &mut Vec::new()));
            assert!(read.is_err(), "{most} {count}");
        }
    }

    fn differences(bytes: &[u8], count: usize) -> Result<(Vec<i64>, usize), Problem> {
        let mut to = Vec::new();
        let mut all = Differences::new(Bytes::copy_from_slice(bytes), 0, 1000)?;
        let end = all.end()?;
        all.read(count, |number| to.push(number))?;
        Ok((to, end))
    }

    #[test]
    fn differences_are_added_up() {
        // Blocks of 128 numbers in 4 parts: 7, 5, 3, 1, 2, 3, 4, 5 of Encodings.md, with -2 as the least difference.
        let mut list = vec![0x80, 1, 4, 8, 14, 3, 2, 0, 0, 0, 0b1100_0000, 0b0011_1111];
        list.extend([0; 6]);
        let expected = vec![7, 5, 3, 1, 2, 3, 4, 5];
        assert_eq!(differences(&list, 8), Ok((expected.clone(), list.len())));
        assert_eq!(differences(&list, 3), Ok((expected[..3].to_vec(), 18)));
        assert!(differences(&list, 9).is_err());
        assert_eq!(differences(&list[..12], 8), Ok((expected, 12)));
        for end in 0..12 {
            assert!(differences(&list[..end], 8).is_err(), "{end}");
        }
        // 65 bits, a block of 100, more than there may be.
        list[6] = 65;
        assert!(differences(&list, 8).is_err());
        assert!(differences(&[100, 4, 8, 14], 8).is_err());
        assert!(differences(&[0x80, 1, 4, 0xe9, 7, 14], 8).is_err());
        // 64 bits that are not at the beginning of a byte.
        assert_eq!(packed(&[0xff; 9], 3, 64), u64::MAX);
        assert_eq!(packed(&[0x80, 0, 0, 0, 0, 0, 0, 0, 1], 7, 58), 1 | 1 << 57);
    }
}
