//! The variables of a request, as CGI programs get them.

use std::collections::HashMap;
use std::io::{BufRead, Read};

use crate::Failure;

/// Bytes of the variables of a request.
const MOST: u64 = 1 << 20;

/// Variables by name. Several of the same name are lines of one.
#[derive(Clone, Debug, Default)]
pub(super) struct Request(HashMap<Vec<u8>, Vec<u8>>);

impl Request {
    /// Reads what the environment contains about a request, or else lines `NAME=VALUE` of the input.
    pub(super) fn read(
        environment: &dyn Fn(&str) -> Option<String>,
        input: &mut dyn BufRead,
        warn: &mut dyn FnMut(&str),
    ) -> Result<Self, Failure> {
        let broken = |error: std::io::Error| {
            Failure::new(format!("reading the request: {}", kymo_io::reason(&error)))
        };
        let mut text = Vec::new();
        match environment("REQUEST_METHOD").as_deref() {
            Some("POST") => {
                let length = environment("CONTENT_LENGTH").and_then(|length| length.parse().ok());
                let length: u64 = length.unwrap_or(0);
                if length > MOST {
                    let message = format!("the request has more than {MOST} bytes");
                    return Err(Failure::new(message));
                }
                input.take(length).read_to_end(&mut text).map_err(broken)?;
            }
            Some(_) => text = environment("QUERY_STRING").unwrap_or_default().into_bytes(),
            None => {
                warn("(offline mode: enter name=value pairs on standard input)");
                input.take(MOST).read_to_end(&mut text).map_err(broken)?;
                for byte in &mut text {
                    if *byte == b'\n' {
                        *byte = b'&';
                    }
                }
            }
        }
        Ok(Self::parse(&text))
    }

    fn parse(text: &[u8]) -> Self {
        let mut all = Self::default();
        for pair in text
            .split(|byte| *byte == b'&')
            .filter(|pair| !pair.is_empty())
        {
            let at = pair.iter().position(|byte| *byte == b'=');
            let (name, value) = pair.split_at(at.unwrap_or(pair.len()));
            let value = decoded(value.get(1..).unwrap_or_default());
            match all.0.get_mut(&decoded(name)) {
                Some(before) => {
                    before.push(b'\n');
                    before.extend(value);
                }
                None => {
                    all.0.insert(decoded(name), value);
                }
            }
        }
        all
    }

    /// The value of a variable, in which no tag begins or ends.
    pub(super) fn get(&self, name: &[u8]) -> Option<Vec<u8>> {
        let mut value = self.0.get(name)?.clone();
        for byte in &mut value {
            if matches!(byte, b'<' | b'>') {
                *byte = b'_';
            }
        }
        Some(value)
    }

    /// The same between quotes.
    pub(super) fn quoted(&self, name: &[u8]) -> Option<Vec<u8>> {
        let mut out = vec![b'"'];
        for byte in self.get(name)? {
            match byte {
                b'"' => out.extend(b"\"'\"'\""),
                byte => out.push(byte),
            }
        }
        out.push(b'"');
        Some(out)
    }

    /// The same as a path that leads nowhere above.
    pub(super) fn path(&self, name: &[u8]) -> Option<Vec<u8>> {
        let mut value = self.get(name)?;
        let mut at = 0;
        while at + 1 < value.len() {
            if &value[at..at + 2] == b".." {
                value[at..at + 2].copy_from_slice(b"__");
            }
            at += 1;
        }
        if let Some(first @ b'/') = value.first_mut() {
            *first = b'_';
        }
        Some(value)
    }
}

/// Decodes a text in which `+` is a blank and `%41` an `A`. Invalid numbers are left out, and zeros end a text.
fn decoded(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [byte, after @ ..] = rest {
        rest = after;
        match byte {
            b'+' => out.push(b' '),
            b'%' => {
                let digit = |at: usize| {
                    let byte = after.get(at)?;
                    char::from(*byte).to_digit(16)
                };
                if let Some((high, low)) = digit(0).zip(digit(1)) {
                    out.push((16 * high + low) as u8);
                    rest = &after[2..];
                }
            }
            byte => out.push(*byte),
        }
    }
    let end = out.iter().position(|byte| *byte == 0);
    out.truncate(end.unwrap_or(out.len()));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> [String; 3] {
        let request = Request::parse(text.as_bytes());
        [request.get(b"p"), request.quoted(b"p"), request.path(b"p")]
            .map(|value| String::from_utf8(value.unwrap_or_default()).unwrap())
    }

    #[test]
    fn values_are_those_that_rrdcgi_prints() {
        for (text, values) in [
            ("p=a+b", ["a b", "\"a b\"", "a b"]),
            ("p=a%22b", ["a\"b", "\"a\"'\"'\"b\"", "a\"b"]),
            ("p=%3Cx%3E", ["_x_", "\"_x_\"", "_x_"]),
            ("p=/../b", ["/../b", "\"/../b\"", "___/b"]),
            ("p=a..b", ["a..b", "\"a..b\"", "a__b"]),
            ("p=...x", ["...x", "\"...x\"", "__.x"]),
            ("p=1&q=x&p=2", ["1\n2", "\"1\n2\"", "1\n2"]),
            ("p=%zz", ["zz", "\"zz\"", "zz"]),
            ("p=a%00b", ["a", "\"a\"", "a"]),
            ("p", ["", "\"\"", ""]),
            ("q=1", ["", "", ""]),
        ] {
            assert_eq!(all(text), values, "{text}");
        }
    }

    #[test]
    fn requests_are_read_as_cgi_says() {
        let read = |variables: &[(&str, &str)], mut input: &[u8]| {
            let environment = |name: &str| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            };
            Request::read(&environment, &mut input, &mut |_| ())
        };
        let get = [("REQUEST_METHOD", "GET"), ("QUERY_STRING", "a=1")];
        assert_eq!(read(&get, b"a=2").unwrap().get(b"a").unwrap(), b"1");
        let post = [("REQUEST_METHOD", "POST"), ("CONTENT_LENGTH", "3")];
        assert_eq!(read(&post, b"a=2&b=3").unwrap().get(b"b"), None);
        assert_eq!(read(&[], b"a=1\nb=2\n").unwrap().get(b"b").unwrap(), b"2");
        let large = [("REQUEST_METHOD", "POST"), ("CONTENT_LENGTH", "9999999999")];
        assert!(read(&large, b"").is_err());
    }
}
