//! Updates: as they come, and as bytes in memory and in the journal.
//!
//! A record is the length of what follows (4 bytes), seconds since 1970 (8), units of 2^-30 s (4), the
//! interval in the same units (8, 0 where it is not known), a kind (1) and the readings: a text, or a
//! kind and 8 bytes for each value. All numbers are little-endian.

use kymo_collectd::Value;
use kymo_rrd::engine::{self, Measurement};
use kymo_rrd::{Time, text::numbers};
use kymo_time::CdTime;
use memchr::memchr;

/// The readings for a database at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Update<'a> {
    /// When. collectd's times are held exactly.
    pub time: Time,
    /// When the next is expected after it, where that is known.
    pub interval: Option<CdTime>,
    /// What was read.
    pub readings: Readings<'a>,
}

/// Readings of all data sources that are measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Readings<'a> {
    /// `TIME:VALUE[:VALUE...]`, as `rrdtool update` takes it.
    Text(&'a [u8]),
    /// Values of collectd.
    Values(&'a [Value]),
}

/// Limit of times in seconds since 1970, exclusive: later ones are beyond those of collectd, and more likely in other
/// units. A database that took it would take none that comes later.
const SECONDS: f64 = (1_u64 << 34) as f64;

impl<'a> Update<'a> {
    /// Parses a text `TIME:VALUE[:VALUE...]`; also returns its time as it was written. `None` where it
    /// does not begin with seconds since 1970, below 2^34, and a colon. The values are looked at when they are
    /// written.
    pub fn from_text(text: &'a [u8]) -> Option<(Self, f64)> {
        let (time, number) = match whole_seconds(text) {
            Some(seconds) => (Time::from_seconds(seconds), seconds as f64),
            None => {
                let colon = memchr(b':', text)?;
                let (number, end) = numbers::prefix(&text[..colon]).ok()?;
                let is_time = end == colon && number < SECONDS;
                (engine::seconds(number).filter(|_| is_time)?, number)
            }
        };
        let update = Self {
            time,
            interval: None,
            readings: Readings::Text(text),
        };
        Some((update, number))
    }

    /// Appends the record.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let (kind, length) = match self.readings {
            Readings::Text(text) => (TEXT, text.len()),
            Readings::Values(values) => (VALUES, values.len() * VALUE),
        };
        out.reserve(4 + HEAD + length);
        // At once, since this is done for each update.
        let mut head = [0; 4 + HEAD];
        // Lines and datagrams are far shorter than this.
        head[..4].copy_from_slice(&((HEAD + length) as u32).to_le_bytes());
        head[4..12].copy_from_slice(&self.time.seconds().to_le_bytes());
        head[12..16].copy_from_slice(&self.time.fraction().to_le_bytes());
        let interval = self.interval.map_or(0, CdTime::ticks);
        head[16..24].copy_from_slice(&interval.to_le_bytes());
        head[24] = kind;
        out.extend_from_slice(&head);
        match self.readings {
            Readings::Text(text) => out.extend_from_slice(text),
            Readings::Values(values) => {
                for value in values {
                    let (kind, bits) = match *value {
                        Value::Counter(count) => (0, count),
                        Value::Gauge(number) => (1, number.to_bits()),
                        Value::Derive(count) => (2, count as u64),
                        Value::Absolute(count) => (3, count),
                    };
                    let mut bytes = [kind; VALUE];
                    bytes[1..].copy_from_slice(&bits.to_le_bytes());
                    out.extend_from_slice(&bytes);
                }
            }
        }
    }
}

/// The number before a colon, if it has at most ten digits and nothing else, as nearly all times do.
fn whole_seconds(text: &[u8]) -> Option<i64> {
    let mut seconds = 0;
    for (place, byte) in text.iter().take(11).enumerate() {
        match byte {
            b'0'..=b'9' => seconds = seconds * 10 + i64::from(byte - b'0'),
            b':' if place > 0 => return Some(seconds),
            _ => return None,
        }
    }
    None
}

/// The bytes of a record before its readings, without its length.
const HEAD: usize = 8 + 4 + 8 + 1;
/// The bytes of a value.
const VALUE: usize = 9;
const TEXT: u8 = 0;
const VALUES: u8 = 1;

/// An update as bytes.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// When.
    pub time: Time,
    /// When the next is expected after it, where that is known.
    pub interval: Option<CdTime>,
    kind: u8,
    readings: &'a [u8],
    /// All of its bytes.
    pub bytes: &'a [u8],
}

/// Returns the first record and the bytes that follow it, or `None` if there is no complete record.
pub(crate) fn first_record(bytes: &[u8]) -> Option<(Record<'_>, &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    let length = u32::from_le_bytes(*length) as usize;
    let (body, rest) = rest.split_at_checked(length)?;
    let (seconds, body) = body.split_first_chunk()?;
    let (fraction, body) = body.split_first_chunk()?;
    let (interval, body) = body.split_first_chunk()?;
    let (&kind, readings) = body.split_first()?;
    let interval = u64::from_le_bytes(*interval);
    let record = Record {
        time: Time::new(i64::from_le_bytes(*seconds), u32::from_le_bytes(*fraction))?,
        interval: (interval > 0).then(|| CdTime::from_ticks(interval)),
        kind,
        readings,
        bytes: &bytes[..4 + length],
    };
    let is_known = kind == TEXT || (kind == VALUES && readings.len().is_multiple_of(VALUE));
    is_known.then_some((record, rest))
}

/// All records of bytes that hold nothing else.
pub(crate) fn records(mut bytes: &[u8]) -> impl Iterator<Item = Record<'_>> {
    std::iter::from_fn(move || {
        let (record, rest) = first_record(bytes)?;
        bytes = rest;
        Some(record)
    })
}

impl<'a> Record<'a> {
    /// Appends the readings as the engine takes them.
    pub fn measure(&self, measured: &mut Vec<Measurement<'a>>) {
        if self.kind == TEXT {
            let values = memchr(b':', self.readings).map_or(0, |colon| colon + 1);
            let values = self.readings[values..].split(|byte| *byte == b':');
            measured.extend(values.map(Measurement::Text));
            return;
        }
        measured.extend(self.values().map(|value| match value {
            Value::Counter(count) | Value::Absolute(count) => Measurement::Unsigned(count),
            Value::Gauge(number) => Measurement::Float(number),
            Value::Derive(count) => Measurement::Signed(count),
        }));
    }

    /// The readings, where `values` are [its values](Self::values).
    pub(crate) fn readings<'r>(&self, values: &'r [Value]) -> Readings<'r>
    where
        'a: 'r,
    {
        match self.kind {
            TEXT => Readings::Text(self.readings),
            _ => Readings::Values(values),
        }
    }

    /// Values of collectd. If the readings are a text, they mean nothing.
    pub(crate) fn values(&self) -> impl Iterator<Item = Value> + 'a {
        self.readings.chunks_exact(VALUE).filter_map(|value| {
            let (kind, bits) = value.split_first()?;
            let bits = u64::from_le_bytes(*bits.first_chunk()?);
            Some(match kind {
                0 => Value::Counter(bits),
                1 => Value::Gauge(f64::from_bits(bits)),
                2 => Value::Derive(bits as i64),
                _ => Value::Absolute(bits),
            })
        })
    }

    /// `TIME:VALUE[:VALUE...]`: as it came, or collectd's time with all its digits.
    pub fn text(&self) -> Vec<u8> {
        if self.kind == TEXT {
            return self.readings.to_vec();
        }
        let mut text = match self.time.to_cdtime() {
            Some(ticks) => CdTime::from_ticks(ticks).lossless(),
            None => self.time.seconds().to_string(),
        };
        for value in self.values() {
            text += &match value {
                Value::Gauge(number) if number.is_nan() => ":U".to_owned(),
                Value::Gauge(number) => format!(":{number}"),
                Value::Counter(count) | Value::Absolute(count) => format!(":{count}"),
                Value::Derive(count) => format!(":{count}"),
            };
        }
        text.into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_begin_with_a_time() {
        for (text, seconds, fraction) in [
            ("1000000010:1:2", 1_000_000_010, 0),
            ("1000000010.5:", 1_000_000_010, 1 << 29),
            ("1e9:U", 1_000_000_000, 0),
            ("-10:1", -10, 0),
            ("17179869183.5:1", (1 << 34) - 1, 1 << 29),
        ] {
            let (update, _) = Update::from_text(text.as_bytes()).unwrap();
            assert_eq!(Time::new(seconds, fraction), Some(update.time), "{text}");
        }
        for text in [
            "",
            "1000000010",
            "N:1",
            ":1",
            "0x10:1",
            "inf:1",
            "nan:1",
            "1 :2",
            "1e300:1",
            "17179869184:1",
            "1500000000000:1",
        ] {
            assert_eq!(Update::from_text(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn records_hold_all_of_an_update() {
        let interval = CdTime::from_seconds(10).unwrap();
        let values = [
            Value::Gauge(0.1),
            Value::Counter(u64::MAX),
            Value::Derive(-5),
            Value::Gauge(f64::NAN),
        ];
        let (text, _) = Update::from_text(b"1000000010.5:1:U").unwrap();
        let typed = Update {
            time: Time::new(1_000_000_011, 1).unwrap(),
            interval: Some(interval),
            readings: Readings::Values(&values),
        };
        let mut bytes = Vec::new();
        text.encode(&mut bytes);
        typed.encode(&mut bytes);
        let read: Vec<_> = records(&bytes).collect();
        assert_eq!(read.len(), 2);
        assert_eq!((read[0].time, read[0].interval), (text.time, None));
        assert_eq!(
            (read[1].time, read[1].interval),
            (typed.time, Some(interval))
        );
        assert_eq!(read[0].text(), b"1000000010.5:1:U");
        let reported = String::from_utf8(read[1].text()).unwrap();
        assert_eq!(
            reported,
            "1000000011.0000000010:0.1:18446744073709551615:-5:U"
        );
        let mut measured = Vec::new();
        read.iter().for_each(|record| record.measure(&mut measured));
        assert_eq!(
            measured[..5],
            [
                Measurement::Text(b"1"),
                Measurement::Text(b"U"),
                Measurement::Float(0.1),
                Measurement::Unsigned(u64::MAX),
                Measurement::Signed(-5),
            ]
        );
        // A truncated record is not a record.
        for end in 0..bytes.len() {
            let whole = records(&bytes[..end]).count();
            assert_eq!(whole, usize::from(end >= read[0].bytes.len()), "{end}");
        }
    }
}
