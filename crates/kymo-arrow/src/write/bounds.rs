//! The smallest and largest values of pages and chunks, as statistics and page indexes have them.

use std::cmp::Ordering;

use parquet::basic::Type;
use parquet::data_type::{ByteArray, FixedLenByteArray};
use parquet::errors::ParquetError;
use parquet::file::statistics::{Statistics, ValueStatistics};

/// Values of more bytes are cut.
const LONGEST: usize = 64;

/// How the values of a column are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Signed,
    Unsigned,
    Float,
    /// Byte by byte: texts.
    Text,
    /// The same; a value that is cut need not be a text.
    Bytes,
}

impl Order {
    /// Compares numbers in their little-endian bytes, or texts.
    pub(super) fn compare(self, a: &[u8], b: &[u8]) -> Ordering {
        let (a_bits, b_bits) = (bits(a), bits(b));
        match (self, a.len()) {
            (Self::Text | Self::Bytes, _) => a.cmp(b),
            (Self::Unsigned, _) => a_bits.cmp(&b_bits),
            (Self::Signed, 4) => (a_bits as i32).cmp(&(b_bits as i32)),
            (Self::Signed, _) => (a_bits as i64).cmp(&(b_bits as i64)),
            (Self::Float, 4) => {
                let [a, b] = [a_bits, b_bits].map(|bits| f32::from_bits(bits as u32));
                a.total_cmp(&b)
            }
            (Self::Float, _) => f64::from_bits(a_bits).total_cmp(&f64::from_bits(b_bits)),
        }
    }
}

fn bits(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    let length = bytes.len().min(8);
    word[..length].copy_from_slice(&bytes[..length]);
    u64::from_le_bytes(word)
}

/// The smallest and the largest of values, or what is smaller and larger than them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) min: Vec<u8>,
    pub(super) max: Vec<u8>,
    min_is_exact: bool,
    max_is_exact: bool,
}

impl Bounds {
    pub(super) fn exact(min: Vec<u8>, max: Vec<u8>) -> Self {
        Self {
            min,
            max,
            min_is_exact: true,
            max_is_exact: true,
        }
    }

    /// The same of bytes of any length: long ones are cut.
    pub(super) fn cut(min: &[u8], max: &[u8], order: Order) -> Self {
        let mut bounds = Self::exact(Vec::new(), Vec::new());
        bounds.min = match min.len() > LONGEST {
            true => {
                bounds.min_is_exact = false;
                prefix(min, order).to_vec()
            }
            false => min.to_vec(),
        };
        let larger = (max.len() > LONGEST).then(|| next(prefix(max, order), order));
        bounds.max = match larger.flatten() {
            Some(larger) => {
                bounds.max_is_exact = false;
                larger
            }
            None => max.to_vec(),
        };
        bounds
    }

    /// Widens them by those of other values.
    pub(super) fn add(&mut self, other: &Self, order: Order) {
        if order.compare(&other.min, &self.min).is_lt() {
            self.min.clone_from(&other.min);
            self.min_is_exact = other.min_is_exact;
        }
        if order.compare(&other.max, &self.max).is_gt() {
            self.max.clone_from(&other.max);
            self.max_is_exact = other.max_is_exact;
        }
    }
}

/// The first bytes of a value; of a text, whole characters.
fn prefix(value: &[u8], order: Order) -> &[u8] {
    let mut end = LONGEST;
    // A byte `10xxxxxx` is within a character.
    while order == Order::Text && end > 0 && value[end] & 0xc0 == 0x80 {
        end -= 1;
    }
    &value[..end]
}

/// The smallest value of no more bytes that is larger than all that begin with these.
fn next(prefix: &[u8], order: Order) -> Option<Vec<u8>> {
    if order == Order::Text {
        let mut text = std::str::from_utf8(prefix).ok()?.to_owned();
        while let Some(last) = text.pop() {
            let larger = (u32::from(last) + 1..).map_while(|code| match code {
                // No characters: halves of pairs in UTF-16.
                0xd800..0xe000 => Some('\u{e000}'),
                code => char::from_u32(code),
            });
            let larger = larger
                .take(1)
                .find(|larger| larger.len_utf8() == last.len_utf8());
            if let Some(larger) = larger {
                text.push(larger);
                return Some(text.into_bytes());
            }
        }
        return None;
    }
    let mut bytes = prefix.to_vec();
    while let Some(last) = bytes.pop() {
        if last < u8::MAX {
            bytes.push(last + 1);
            return Some(bytes);
        }
    }
    None
}

/// Statistics of a chunk.
///
/// # Errors
///
/// The bounds are not of this type.
pub(super) fn statistics(
    bounds: Option<Bounds>,
    nulls: u64,
    (physical, order): (Type, Order),
) -> Result<Statistics, ParquetError> {
    let (min, max, exact) = match bounds {
        Some(bounds) => (
            Some(bounds.min),
            Some(bounds.max),
            (bounds.min_is_exact, bounds.max_is_exact),
        ),
        None => (None, None, (false, false)),
    };
    macro_rules! typed {
        ($kind:ident, $value:expr) => {{
            let [min, max] = [min, max].map(|bytes| bytes.map($value));
            let values = ValueStatistics::new(min, max, None, Some(nulls), false)
                .with_backwards_compatible_min_max(matches!(order, Order::Signed | Order::Float))
                .with_min_is_exact(exact.0)
                .with_max_is_exact(exact.1);
            Statistics::$kind(values)
        }};
    }
    Ok(match physical {
        Type::BOOLEAN => typed!(Boolean, |bytes| bits(&bytes) != 0),
        Type::INT32 => typed!(Int32, |bytes| bits(&bytes) as i32),
        Type::INT64 => typed!(Int64, |bytes| bits(&bytes) as i64),
        Type::FLOAT => typed!(Float, |bytes| f32::from_bits(bits(&bytes) as u32)),
        Type::DOUBLE => typed!(Double, |bytes| f64::from_bits(bits(&bytes))),
        Type::BYTE_ARRAY => typed!(ByteArray, ByteArray::from),
        Type::FIXED_LEN_BYTE_ARRAY => typed!(FixedLenByteArray, |bytes| {
            FixedLenByteArray::from(ByteArray::from(bytes))
        }),
        Type::INT96 => return Err(ParquetError::NYI("times of 96 bits".into())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_are_cut_to_bounds() {
        let text = |text: &str| Bounds::cut(text.as_bytes(), text.as_bytes(), Order::Text);
        let short = text("swapper/0");
        assert!(short.min_is_exact && short.max_is_exact && short.max == b"swapper/0");
        // The cut is within a character, and the one before it is the largest of its length.
        let long = text(&format!("{}b\u{7f}äz", "a".repeat(61)));
        assert_eq!(long.min, format!("{}b\u{7f}", "a".repeat(61)).into_bytes());
        assert_eq!(long.max, format!("{}c", "a".repeat(61)).into_bytes());
        assert!(!long.min_is_exact && !long.max_is_exact);
        let last = text(&"\u{10ffff}".repeat(17));
        assert_eq!((last.min.len(), last.max.len()), (64, 68));
        assert!(!last.min_is_exact && last.max_is_exact);
        assert_eq!(
            text(&"\u{d7ff}".repeat(22)).max[60..],
            *"\u{e000}".as_bytes()
        );
        let bytes = Bounds::cut(
            &[0xff; 65],
            &[&[0xfe; 63][..], &[0xff; 2]].concat(),
            Order::Bytes,
        );
        assert_eq!(bytes.max, [&[0xfe; 62][..], &[0xff]].concat());
    }

    #[test]
    fn numbers_are_ordered_by_their_kind() {
        let compare =
            |order: Order, a: u64, b: u64| order.compare(&a.to_le_bytes(), &b.to_le_bytes());
        assert_eq!(compare(Order::Signed, u64::MAX, 1), Ordering::Less);
        assert_eq!(compare(Order::Unsigned, u64::MAX, 1), Ordering::Greater);
        let (minus, plus) = ((-0.0_f64).to_bits(), 0.0_f64.to_bits());
        assert_eq!(compare(Order::Float, minus, plus), Ordering::Less);
        let narrow = |order: Order| order.compare(&u32::MAX.to_le_bytes(), &[1, 0, 0, 0]);
        assert_eq!(narrow(Order::Signed), Ordering::Less);
        assert_eq!(narrow(Order::Unsigned), Ordering::Greater);
    }
}
