//! What the values of a page become, found before they are decoded: how many are in which row, and how many lengths its
//! encodings announce. Decoders make room for what pages say.

/// Values of one batch that a column in lists has at most.
const MOST_VALUES: u64 = 1 << 24;
/// Bytes that the texts of one column may become in a batch, where a page repeats them.
pub(super) const MOST_TEXT_BYTES: u64 = 1 << 30;

/// Counts the rows of a column, and the values of the rows that are decoded together.
#[derive(Debug)]
pub(super) struct RowCounter {
    /// So many rows are decoded at a time.
    batch: u64,
    rows: u64,
    /// Values since the last row at which a batch begins.
    values: u64,
}

impl RowCounter {
    pub(super) fn new(batch: usize) -> Self {
        Self {
            batch: batch.max(1) as u64,
            rows: 0,
            values: 0,
        }
    }

    /// Rows that have begun so far.
    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// Rows of a value each.
    pub(super) fn flat(&mut self, count: u64) {
        if count == 0 {
            return;
        }
        // As many of the last ones as are in their batch.
        let before = self.rows % self.batch;
        self.rows = self.rows.saturating_add(count);
        let in_batch = (self.rows - 1) % self.batch + 1;
        self.values = match before == 0 || count > self.batch - before {
            true => in_batch,
            false => self.values + count,
        };
    }

    fn repeated(&mut self, count: u64) {
        self.values = self.values.saturating_add(count);
    }

    /// Whether a batch would become too much, if a value may take so many bytes.
    ///
    /// # Errors
    ///
    /// It would.
    pub(super) fn check(&self, widest: u64) -> Result<(), String> {
        if self.values > MOST_VALUES {
            return Err(format!(
                "lists of {} rows have more than {MOST_VALUES} values",
                self.batch
            ));
        }
        match self.values.saturating_mul(widest) > MOST_TEXT_BYTES {
            true => Err(format!(
                "a page repeats texts of {widest} bytes {} times: kymo reads up to {MOST_TEXT_BYTES} bytes at a time",
                self.values
            )),
            false => Ok(()),
        }
    }

    /// Takes the repetition levels of a page with so many values, which are numbers of `bits` bits in Parquet's hybrid
    /// of runs and packed groups.
    ///
    /// # Errors
    ///
    /// There are too few of them, or rows become too much; `widest` is what a value may take.
    pub(super) fn repetitions(
        &mut self,
        mut bytes: &[u8],
        bits: u32,
        mut values: u64,
        widest: u64,
    ) -> Result<(), String> {
        let cut = || "the levels of a page are damaged".to_owned();
        while values > 0 {
            let head = varint(&mut bytes).ok_or_else(cut)?;
            let count = head >> 1;
            if count == 0 {
                return Err(cut());
            }
            if head & 1 == 0 {
                let size = bits.div_ceil(8) as usize;
                let (value, rest) = bytes.split_at_checked(size).ok_or_else(cut)?;
                bytes = rest;
                let count = count.min(values);
                match value.iter().all(|&byte| byte == 0) {
                    true => self.flat(count),
                    false => self.repeated(count),
                }
                values -= count;
                self.check(widest)?;
                continue;
            }
            // Groups of eight.
            let size = count.checked_mul(u64::from(bits)).ok_or_else(cut)?;
            let size = usize::try_from(size).map_err(|_| cut())?;
            // The last group may be cut behind its last value.
            let (packed, rest) = bytes.split_at(size.min(bytes.len()));
            bytes = rest;
            let count = count.saturating_mul(8).min(values);
            if (packed.len() as u64).saturating_mul(8) < count * u64::from(bits) {
                return Err(cut());
            }
            for value in 0..count as usize {
                let begin = value * bits as usize;
                let is_zero =
                    (begin..begin + bits as usize).all(|bit| packed[bit / 8] >> (bit % 8) & 1 == 0);
                match is_zero {
                    true => self.flat(1),
                    false => self.repeated(1),
                }
                if value % 1024 == 0 {
                    self.check(widest)?;
                }
            }
            values -= count;
            self.check(widest)?;
        }
        Ok(())
    }
}

/// Whether values that are differences are no more than a page has; `lists` are so many of them behind each other.
///
/// # Errors
///
/// They are more, or damaged.
pub(super) fn check_differences(mut bytes: &[u8], values: u64, lists: usize) -> Result<(), String> {
    let wrong = || "the differences of a page are damaged".to_owned();
    for list in 0..lists {
        let block = varint(&mut bytes).ok_or_else(wrong)?;
        let parts = varint(&mut bytes).ok_or_else(wrong)?;
        let count = varint(&mut bytes).ok_or_else(wrong)?;
        varint(&mut bytes).ok_or_else(wrong)?;
        let is_right = count <= values
            && block % 128 == 0
            && (1..=block).contains(&parts)
            && block / parts % 32 == 0
            && block <= 1 << 24;
        if !is_right {
            return Err(wrong());
        }
        if list + 1 == lists {
            break;
        }
        // On to the next list.
        let (of_part, mut left) = (block / parts, count.saturating_sub(1));
        while left > 0 {
            varint(&mut bytes).ok_or_else(wrong)?;
            let widths = usize::try_from(parts).map_err(|_| wrong())?;
            let (widths, rest) = bytes.split_at_checked(widths).ok_or_else(wrong)?;
            bytes = rest;
            for &width in widths {
                if left == 0 {
                    break;
                }
                let size = of_part * u64::from(width) / 8;
                let size = usize::try_from(size).map_err(|_| wrong())?;
                bytes = bytes.get(size..).ok_or_else(wrong)?;
                left = left.saturating_sub(of_part);
            }
        }
    }
    Ok(())
}

/// The longest of texts that stand behind their lengths; `None` if they are not so many.
pub(super) fn longest(mut bytes: &[u8], count: u64) -> Option<u64> {
    let mut longest = 0;
    for _ in 0..count {
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        bytes = rest.get(length..)?;
        longest = longest.max(length);
    }
    Some(longest as u64)
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same, a value at a time.
    fn plain(batch: u64, levels: &[u64]) -> (u64, u64) {
        let (mut rows, mut values) = (0, 0);
        for &level in levels {
            if level == 0 {
                if rows % batch == 0 {
                    values = 0;
                }
                rows += 1;
            }
            values += 1;
        }
        (rows, values)
    }

    #[test]
    fn runs_and_groups_are_counted_as_single_values() {
        // Runs of 0, 1 and 0, then 16 values in groups.
        let bytes = [
            20 << 1,
            0,
            5 << 1,
            1,
            9 << 1,
            0,
            2 << 1 | 1,
            0b1010_0110,
            0b0000_0001,
        ];
        let mut levels = [0].repeat(20);
        levels.extend([1].repeat(5));
        levels.extend([0].repeat(9));
        levels.extend([0, 1, 1, 0, 0, 1, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0]);
        for batch in [1, 2, 3, 7, 8, 29, 64] {
            for values in 0..=levels.len() {
                let mut counter = RowCounter::new(batch);
                counter.repetitions(&bytes, 1, values as u64, 0).unwrap();
                let expected = plain(batch as u64, &levels[..values]);
                assert_eq!((counter.rows, counter.values), expected, "{batch} {values}");
            }
        }
        let mut counter = RowCounter::new(8);
        assert!(counter.repetitions(&bytes, 1, 51, 0).is_err());
    }

    #[test]
    fn rows_that_become_too_much_are_refused() {
        // A run of 2^31 repetitions.
        let bytes = [0x80, 0x80, 0x80, 0x80, 0x10, 1];
        let mut counter = RowCounter::new(1024);
        assert!(counter.repetitions(&bytes, 1, 1 << 31, 1).is_err());
        let mut counter = RowCounter::new(1024);
        counter.flat(1 << 31);
        assert_eq!(counter.values, 1024);
        counter.check(1 << 20).unwrap();
        assert!(counter.check((1 << 20) + 1).is_err());
    }

    #[test]
    fn differences_announce_no_more_than_there_are() {
        // Blocks of 128 values in 4 parts; 3 values, the first one 7.
        let list = [0x80, 1, 4, 3, 14, 0, 8, 0, 0, 0];
        let mut both = list.to_vec();
        both.extend([0; 32]);
        both.extend(list);
        both.extend([0; 32]);
        check_differences(&both, 3, 2).unwrap();
        assert!(check_differences(&both, 2, 1).is_err());
        assert!(check_differences(&both[..40], 3, 2).is_err());
        // 2^62 values.
        let many = [
            0x80, 1, 4, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x40, 0,
        ];
        assert!(check_differences(&many, 100, 1).is_err());
    }
}
