//! What is sent, as bytes between the thread that makes it and the one that sends it.

use kymo_collectd::{Kind, Severity, Value};
use kymo_model::Value as Carry;
use kymo_text::Line;
use kymo_time::CdTime;

use crate::carried::{self, Carried};

/// Something to be sent.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry<'a> {
    /// A list of values.
    Values {
        /// Its name.
        id: &'a str,
        /// When.
        time: CdTime,
        /// From one list to the next; 0 where it is not known.
        interval: CdTime,
        /// The values.
        values: Vec<Value>,
    },
    /// A message.
    Notification {
        /// How bad it is.
        severity: Severity,
        /// When.
        time: CdTime,
        /// What it is about.
        id: &'a str,
        /// What people read.
        message: &'a str,
    },
}

fn put(value: Carry<'_>, out: &mut Line) {
    carried::put(value, usize::MAX, out);
}

/// Appends a list of values.
pub(super) fn put_list(out: &mut Line, id: &[u8], time: CdTime, interval: u64, values: &[Value]) {
    put(Carry::Bool(false), out);
    put(Carry::Uint(time.ticks()), out);
    put(Carry::Uint(interval), out);
    put(Carry::Text(id), out);
    put(Carry::Uint(values.len() as u64), out);
    for value in values {
        let (code, bytes) = value.to_wire();
        put(Carry::Uint(code.into()), out);
        put(Carry::Uint(u64::from_be_bytes(bytes)), out);
    }
}

/// Appends a message: its severity, its name and its text.
pub(super) fn put_message(out: &mut Line, time: CdTime, texts: [&[u8]; 3]) {
    put(Carry::Bool(true), out);
    put(Carry::Uint(time.ticks()), out);
    for text in texts {
        put(Carry::Text(text), out);
    }
}

/// The entries in what [`Lists`](super::Lists) have made.
pub fn entries(text: &[u8]) -> impl Iterator<Item = Entry<'_>> {
    let mut carried = Carried::new(text);
    std::iter::from_fn(move || {
        let is_message = match carried.next() {
            Carry::Bool(is_message) => is_message,
            _ => return None,
        };
        let mut number = || match carried.next() {
            Carry::Uint(value) => value,
            _ => 0,
        };
        let time = CdTime::from_ticks(number());
        if is_message {
            let severity = Severity::from_name(self::text(carried.next()))?;
            return Some(Entry::Notification {
                severity,
                time,
                id: self::text(carried.next()),
                message: self::text(carried.next()),
            });
        }
        let interval = CdTime::from_ticks(number());
        let id = self::text(carried.next());
        let mut number = || match carried.next() {
            Carry::Uint(value) => value,
            _ => 0,
        };
        let values = (0..number()).map(|_| {
            let kind = match number() {
                0 => Kind::Counter,
                1 => Kind::Gauge,
                2 => Kind::Derive,
                _ => Kind::Absolute,
            };
            Value::from_wire(kind, number().to_be_bytes())
        });
        Some(Entry::Values {
            id,
            time,
            interval,
            values: values.collect(),
        })
    })
}

fn text(value: Carry<'_>) -> &str {
    match value {
        Carry::Text(text) => std::str::from_utf8(text).unwrap_or_default(),
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back() {
        let mut line = Line::new();
        let values = [
            Value::Gauge(-0.5),
            Value::Derive(-1),
            Value::Counter(u64::MAX),
            Value::Absolute(7),
        ];
        put_list(&mut line, b"h/p/t", CdTime::from_ticks(9), 3, &values);
        let expected = Entry::Values {
            id: "h/p/t",
            time: CdTime::from_ticks(9),
            interval: CdTime::from_ticks(3),
            values: values.to_vec(),
        };
        put_message(
            &mut line,
            CdTime::from_ticks(8),
            [b"WARNING", b"h/p/t", b"hot"],
        );
        let message = Entry::Notification {
            severity: Severity::Warning,
            time: CdTime::from_ticks(8),
            id: "h/p/t",
            message: "hot",
        };
        put_list(&mut line, b"h/p/t", CdTime::from_ticks(9), 3, &values);
        let found: Vec<_> = entries(line.as_bytes()).collect();
        assert_eq!(found, [expected.clone(), message, expected]);
    }
}
