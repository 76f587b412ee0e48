//! The bytes of a row: what is sorted, spooled, and decoded again.
//!
//! A row is its length (4 bytes), its time (8 bytes, [`NO_TIME`] of none), its rank among the rows
//! of that time (8 bytes), and a body of variable-length numbers and texts: class, track, category,
//! flows and the arguments, in the order of the keys of the class.

/// The time of rows that have none: they come first.
pub(crate) const NO_TIME: i64 = i64::MIN;
/// Bytes before the body.
pub(crate) const HEAD: usize = 20;

/// A value of an argument.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value<'a> {
    Uint(u64),
    Sint(i64),
    /// A number that is shown in base 16.
    Pointer(u64),
    Float(f64),
    Bool(bool),
    Text(&'a [u8]),
    /// An array or an object, as JSON.
    Json(&'a [u8]),
    /// A text of the table of shared ones.
    Shared(u32),
}

impl Value<'_> {
    const fn tag(&self) -> u8 {
        match self {
            Self::Uint(_) => 0,
            Self::Sint(_) => 1,
            Self::Pointer(_) => 2,
            Self::Float(_) => 3,
            Self::Bool(false) => 4,
            Self::Bool(true) => 5,
            Self::Text(_) => 6,
            Self::Json(_) => 7,
            Self::Shared(_) => 8,
        }
    }
}

/// When a row is, and what comes first of several at that time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Order {
    pub(crate) time: i64,
    /// 0 of most rows, which keep the order of the file. Whole slices come after them, the longest
    /// first, so that a slice comes before those within it.
    pub(crate) rank: u64,
}

impl Order {
    pub(crate) fn new(time: Option<i64>, duration: Option<u64>) -> Self {
        Self {
            time: time.unwrap_or(NO_TIME),
            rank: duration.map_or(0, |duration| u64::MAX - duration.min(u64::MAX - 1)),
        }
    }

    /// The duration of a whole slice.
    pub(crate) fn duration(self) -> Option<u64> {
        (self.rank > 0).then(|| u64::MAX - self.rank)
    }
}

pub(crate) fn push_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub(crate) fn push_text(text: &[u8], out: &mut Vec<u8>) {
    push_varint(text.len() as u64, out);
    out.extend_from_slice(text);
}

pub(crate) fn push_value(value: Value<'_>, out: &mut Vec<u8>) {
    out.push(value.tag());
    match value {
        Value::Uint(value) | Value::Pointer(value) => push_varint(value, out),
        Value::Sint(value) => push_varint((value << 1 ^ value >> 63) as u64, out),
        Value::Float(value) => out.extend_from_slice(&value.to_bits().to_le_bytes()),
        Value::Bool(_) => {}
        Value::Text(text) | Value::Json(text) => push_text(text, out),
        Value::Shared(number) => push_varint(number.into(), out),
    }
}

/// Begins a row; [`end`] ends it.
pub(crate) fn begin(order: Order, out: &mut Vec<u8>) {
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&order.time.to_le_bytes());
    out.extend_from_slice(&order.rank.to_le_bytes());
}

/// Writes the length of the row that begins at `begin` and ends here.
pub(crate) fn end(begin: usize, out: &mut [u8]) {
    let length = (out.len() - begin) as u32;
    out[begin..begin + 4].copy_from_slice(&length.to_le_bytes());
}

/// The order of a row, and all of its bytes; `None` if there is no whole row.
#[inline]
pub(crate) fn split(bytes: &[u8]) -> Option<(Order, &[u8])> {
    let length = u32::from_le_bytes(*bytes.first_chunk()?) as usize;
    let row = bytes.get(..length)?;
    let time = i64::from_le_bytes(*row.get(4..)?.first_chunk()?);
    let rank = u64::from_le_bytes(*row.get(12..)?.first_chunk()?);
    Some((Order { time, rank }, row))
}

/// Rows that lie behind each other.
pub(crate) fn each(mut bytes: &[u8]) -> impl Iterator<Item = (Order, &[u8])> {
    std::iter::from_fn(move || {
        let (order, row) = split(bytes)?;
        bytes = &bytes[row.len()..];
        Some((order, row))
    })
}

/// Reads the body of a row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Body<'a>(&'a [u8]);

impl<'a> Body<'a> {
    pub(crate) fn new(row: &'a [u8]) -> Self {
        Self(row.get(HEAD..).unwrap_or_default())
    }

    /// How many bytes are left.
    pub(crate) fn left(&self) -> usize {
        self.0.len()
    }

    #[inline]
    pub(crate) fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for place in 0..10 {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << (place * 7);
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    pub(crate) fn text(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.varint()?).ok()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(text)
    }

    pub(crate) fn value(&mut self) -> Option<Value<'a>> {
        let (&tag, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(match tag {
            0 => Value::Uint(self.varint()?),
            1 => {
                let value = self.varint()?;
                Value::Sint((value >> 1) as i64 ^ -((value & 1) as i64))
            }
            2 => Value::Pointer(self.varint()?),
            3 => {
                let (bits, rest) = self.0.split_first_chunk()?;
                self.0 = rest;
                Value::Float(f64::from_bits(u64::from_le_bytes(*bits)))
            }
            4 => Value::Bool(false),
            5 => Value::Bool(true),
            6 => Value::Text(self.text()?),
            7 => Value::Json(self.text()?),
            8 => Value::Shared(self.varint()?.try_into().ok()?),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let values = [
            Value::Uint(u64::MAX),
            Value::Sint(i64::MIN),
            Value::Sint(-1),
            Value::Pointer(0xff),
            Value::Float(-0.5),
            Value::Bool(true),
            Value::Bool(false),
            Value::Text(b"text"),
            Value::Json(b"[]"),
            Value::Shared(300),
        ];
        let mut row = Vec::new();
        let order = Order::new(Some(-5), Some(7));
        begin(order, &mut row);
        values.iter().for_each(|&value| push_value(value, &mut row));
        end(0, &mut row);
        let (found, bytes) = split(&row).unwrap();
        assert_eq!((found, bytes.len()), (order, row.len()));
        assert_eq!(found.duration(), Some(7));
        let mut body = Body::new(bytes);
        for value in values {
            assert_eq!(body.value(), Some(value));
        }
        assert_eq!((body.left(), body.value()), (0, None));
    }

    #[test]
    fn a_slice_comes_before_those_within_it() {
        let order = |duration| Order::new(Some(1), duration);
        assert!(order(None) < order(Some(u64::MAX)));
        assert!(order(Some(9)) < order(Some(8)) && order(Some(8)) < order(Some(0)));
        assert!(Order::new(None, Some(0)) < order(None));
    }
}
