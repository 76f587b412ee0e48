//! Graphite's plaintext protocol: lines `PATH VALUE TIME`, where a path may have tags, `PATH;TAG=VALUE`.

use crate::{Fault, Key, Kind, Number, Problem, Sink, float, lines, nanoseconds};

const EXPECTED: &str = "`PATH VALUE TIME`";

/// Parses lines; the last one needs no end.
pub fn parse(text: &[u8], sink: &mut impl Sink) {
    for (offset, line) in lines(text) {
        if let Err(problem) = parse_line(line, sink) {
            sink.fault(Fault::new(offset, problem, line));
        }
    }
}

/// Parses a line without its end. A time of `N` or -1 is now, as with carbon.
///
/// # Errors
///
/// What is wrong with it.
pub fn parse_line(line: &[u8], sink: &mut impl Sink) -> Result<(), Problem> {
    let mut words = line
        .split(|byte| matches!(byte, b' ' | b'\t'))
        .filter(|word| !word.is_empty());
    let expected = Problem::Syntax(EXPECTED);
    let (Some(path), Some(value), Some(time), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(expected);
    };
    let value = float(value).ok_or(Problem::Number)?;
    let time = match time {
        b"N" | b"-1" => None,
        time => Some(nanoseconds(time, 1_000_000_000).ok_or(Problem::Time)?),
    };
    let series = match sink.find(path) {
        Some(series) => series,
        None => {
            let mut key = Key::new();
            read_path(path, &mut key)?;
            sink.series(path, &key, Kind::Gauge)
        }
    };
    sink.sample(series, time, Number::Float(value));
    Ok(())
}

/// Takes a path apart. Points at its ends and beside each other count once.
pub(crate) fn read_path(path: &[u8], key: &mut Key) -> Result<(), Problem> {
    let mut parts = path.split(|byte| *byte == b';');
    let name = parts.next().unwrap_or_default();
    key.begin(b"");
    let nodes = name.split(|byte| *byte == b'.');
    for (place, node) in nodes.filter(|node| !node.is_empty()).enumerate() {
        if place > 0 {
            key.append_to_name(b".");
        }
        key.append_to_name(node);
    }
    for tag in parts.filter(|tag| !tag.is_empty()) {
        let equal = memchr::memchr(b'=', tag).ok_or(Problem::Syntax("`;TAG=VALUE`"))?;
        key.sanitized_label(&tag[..equal], &tag[equal + 1..]);
    }
    key.finish().map_err(Problem::Name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_sink::Collected;

    #[test]
    fn lines_are_samples() {
        let text = b"web1.load 0.5 1600000000\r\n.a..b. -1e3 1600000000.5\n\
            a;dc=x;rack=1 nan N\nx 1\nx y 1\nx 1 y\n 1 2\nx;y 1 2\nx 1 2 3\n\xff 1 2\nlast 1 -1";
        let found = Collected::of(|sink| parse(text, sink));
        assert_eq!(
            found.samples,
            [
                "web1.load 0.5 @1600000000000000000",
                "a.b -1000 @1600000000500000000",
                r#"a{dc="x",rack="1"} NaN"#,
                "last 1",
            ]
        );
        assert_eq!(
            found.faults,
            [
                "at byte 71: expected `PATH VALUE TIME`, found `x 1`",
                "at byte 75: expected a number, found `x y 1`",
                "at byte 81: expected a time since 1970, found `x 1 y`",
                "at byte 87: expected `PATH VALUE TIME`, found ` 1 2`",
                "at byte 92: expected `;TAG=VALUE`, found `x;y 1 2`",
                "at byte 100: expected `PATH VALUE TIME`, found `x 1 2 3`",
                "at byte 108: the name or a label is not UTF-8, found `\u{fffd} 1 2`",
            ]
        );
    }
}
