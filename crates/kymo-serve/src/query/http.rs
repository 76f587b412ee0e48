//! Requests of HTTP/1 with parameters, in the address or in the body as forms.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use kymo_io::net::response_head;

use crate::listen::{Stream, TimedStream};

/// The largest head, in bytes.
const MOST_HEAD: usize = 64 << 10;
/// The largest body, in bytes.
const MOST_BODY: usize = 1 << 20;
const MOST_HEADERS: usize = 100;
/// Parameters of a request.
const MOST_PARAMETERS: usize = 1000;
/// How long a request may take to arrive, and how long a connection stays open without one.
const REQUEST_TIME: Duration = Duration::from_secs(10);
const IDLE_TIME: Duration = Duration::from_secs(60);
/// How long an answer may take to be read.
const ANSWER_TIME: Duration = Duration::from_secs(60);

/// What a request asks to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// To answer.
    Get,
    /// The same, with parameters in the body.
    Post,
    /// Something else.
    Other,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpRequest {
    /// What is to be done.
    pub method: Method,
    /// The path, decoded.
    pub path: String,
    /// Names and values, those of the address first.
    pub parameters: Vec<(String, String)>,
}

impl HttpRequest {
    /// The first value of a name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// All values of a name.
    pub fn all<'r>(&'r self, name: &str) -> impl Iterator<Item = &'r str> {
        let parameters = self.parameters.iter();
        let named = parameters.filter(move |(other, _)| other == name);
        named.map(|(_, value)| value.as_str())
    }
}

/// The head of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    method: Method,
    target: String,
    /// Bytes of the body.
    length: usize,
    is_form: bool,
    keep_alive: bool,
    expects_continue: bool,
}

/// Reads the head of a request from the bytes that have arrived, and how long it is; `None` if more bytes are
/// needed.
///
/// # Errors
///
/// The status that says what is wrong with it.
pub fn parse_head(bytes: &[u8]) -> Result<Option<(Head, usize)>, u16> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let length = match request.parse(&bytes[..bytes.len().min(MOST_HEAD)]) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if bytes.len() >= MOST_HEAD => return Err(431),
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(431),
        Err(_) => return Err(400),
    };
    let mut head = Head {
        method: match request.method {
            Some("GET") => Method::Get,
            Some("POST") => Method::Post,
            _ => Method::Other,
        },
        target: request.path.unwrap_or_default().to_owned(),
        length: 0,
        is_form: false,
        keep_alive: request.version == Some(1),
        expects_continue: false,
    };
    let mut has_length = false;
    for header in request.headers.iter() {
        let value = String::from_utf8_lossy(header.value)
            .trim()
            .to_ascii_lowercase();
        match header.name.to_ascii_lowercase().as_str() {
            "content-length" => {
                // Two lengths would let two readers see two different requests.
                let is_number = !value.is_empty() && value.bytes().all(|it| it.is_ascii_digit());
                if std::mem::replace(&mut has_length, true) || !is_number {
                    return Err(400);
                }
                let length = value.parse().ok().filter(|length| *length <= MOST_BODY);
                head.length = length.ok_or(413_u16)?;
            }
            "transfer-encoding" => return Err(411),
            "content-type" => head.is_form = value.starts_with("application/x-www-form-urlencoded"),
            "expect" if value == "100-continue" => head.expects_continue = true,
            "expect" => return Err(417),
            "connection" => {
                let mut options = value.split(',').map(str::trim);
                head.keep_alive &= !options.any(|option| option == "close");
            }
            _ => {}
        }
    }
    Ok(Some((head, length)))
}

/// Puts a request together from its head and its body.
///
/// # Errors
///
/// The status that says what is wrong with it.
pub fn request(head: &Head, body: &[u8]) -> Result<HttpRequest, u16> {
    let (path, query) = head.target.split_once('?').unwrap_or((&head.target, ""));
    let mut parameters = Vec::new();
    form(query.as_bytes(), &mut parameters)?;
    if !body.is_empty() {
        match head.is_form {
            true => form(body, &mut parameters)?,
            false => return Err(415),
        }
    }
    Ok(HttpRequest {
        method: head.method,
        path: decode(path.as_bytes(), false),
        parameters,
    })
}

fn form(text: &[u8], parameters: &mut Vec<(String, String)>) -> Result<(), u16> {
    for pair in text
        .split(|byte| *byte == b'&')
        .filter(|pair| !pair.is_empty())
    {
        if parameters.len() >= MOST_PARAMETERS {
            return Err(400);
        }
        let equal = pair.iter().position(|byte| *byte == b'=');
        let (name, value) = match equal {
            Some(at) => (&pair[..at], &pair[at + 1..]),
            None => (pair, &b""[..]),
        };
        parameters.push((decode(name, true), decode(value, true)));
    }
    Ok(())
}

/// A text with `%XX` resolved, and `+` as a space in forms; what is not UTF-8 is replaced.
fn decode(text: &[u8], is_form: bool) -> String {
    let mut decoded = Vec::with_capacity(text.len());
    let digit = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        at += 1;
        match byte {
            b'+' if is_form => decoded.push(b' '),
            b'%' => match (digit(text.get(at)), digit(text.get(at + 1))) {
                (Some(high), Some(low)) => {
                    decoded.push((high * 16 + low) as u8);
                    at += 2;
                }
                _ => decoded.push(b'%'),
            },
            other => decoded.push(*other),
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpAnswer {
    /// Its status.
    pub status: u16,
    /// What the body is.
    pub content_type: &'static str,
    /// The body.
    pub body: Vec<u8>,
}

impl HttpAnswer {
    /// An answer of text.
    pub fn text(status: u16, text: &str) -> Self {
        Self {
            status,
            content_type: "text/plain; charset=utf-8",
            body: text.as_bytes().to_vec(),
        }
    }

    /// An answer in JSON.
    pub fn json(status: u16, body: Vec<u8>) -> Self {
        Self {
            status,
            content_type: "application/json",
            body,
        }
    }

    fn send(&self, stream: &mut Stream, keeps: bool) -> std::io::Result<()> {
        let headers = [
            ("Content-Type", self.content_type),
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
        ];
        let head = response_head(self.status, &headers, self.body.len(), keeps);
        let mut stream = TimedStream {
            stream,
            end: Instant::now() + ANSWER_TIME,
        };
        stream.write_all(head.as_bytes())?;
        stream.write_all(&self.body)
    }
}

/// Why a request is refused, with the limit that it exceeds.
fn refusal(status: u16) -> String {
    match status {
        411 => "requests in parts (`Transfer-Encoding`) are not supported: send `Content-Length`\n"
            .into(),
        413 => format!("the body is larger than {MOST_BODY} bytes\n"),
        431 => format!(
            "the head is larger than {MOST_HEAD} bytes, or has more than {MOST_HEADERS} headers\n"
        ),
        _ => "the request is not understood\n".into(),
    }
}

/// Answers the requests of a connection until it ends.
pub(super) fn serve(mut stream: Stream, answer: &dyn Fn(&HttpRequest) -> HttpAnswer) {
    let mut bytes = Vec::new();
    // Who is gone, or too slow, needs no answer.
    while let Some(request) = next(&mut stream, &mut bytes) {
        let (answer, keeps) = match request {
            Ok((request, keeps)) => (answer(&request), keeps && !stream.is_cut()),
            Err(status) => (HttpAnswer::text(status, &refusal(status)), false),
        };
        if answer.send(&mut stream, keeps).is_err() || !keeps {
            return;
        }
    }
}

/// The next request, and whether the connection stays open behind it; `None` where the connection ends.
fn next(stream: &mut Stream, bytes: &mut Vec<u8>) -> Option<Result<(HttpRequest, bool), u16>> {
    let mut end = Instant::now() + IDLE_TIME;
    let mut has_begun = false;
    let (head, length) = loop {
        match parse_head(bytes) {
            Ok(Some(found)) => break found,
            Ok(None) => {}
            Err(status) => return Some(Err(status)),
        }
        if !bytes.is_empty() && !std::mem::replace(&mut has_begun, true) {
            end = end.min(Instant::now() + REQUEST_TIME);
        }
        read(stream, bytes, end)?;
    };
    bytes.drain(..length);
    let end = Instant::now() + REQUEST_TIME;
    if head.expects_continue && bytes.len() < head.length {
        let mut timed = TimedStream { stream, end };
        timed.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").ok()?;
    }
    while bytes.len() < head.length {
        read(stream, bytes, end)?;
    }
    let rest = bytes.split_off(head.length);
    let body = std::mem::replace(bytes, rest);
    Some(request(&head, &body).map(|request| (request, head.keep_alive)))
}

/// Reads some bytes; `None` where there are none any more, or it takes too long.
fn read(stream: &mut Stream, bytes: &mut Vec<u8>, end: Instant) -> Option<()> {
    let mut buffer = [0; 4096];
    let count = TimedStream { stream, end }.read(&mut buffer).ok()?;
    bytes.extend_from_slice(&buffer[..count]);
    (count > 0).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_come_in_the_address_and_in_the_body() {
        let bytes = b"POST /api/v1/query?a=1&b=x%20y HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\n\
            Content-Length: 17\r\n\r\nquery=a%2Bb+c&a=2";
        let (head, length) = parse_head(bytes).unwrap().unwrap();
        let request = request(&head, &bytes[length..]).unwrap();
        assert_eq!(request.path, "/api/v1/query");
        assert_eq!(
            (request.get("b"), request.get("query")),
            (Some("x y"), Some("a+b c"))
        );
        assert_eq!(request.all("a").collect::<Vec<_>>(), ["1", "2"]);
        for (bytes, status) in [
            (
                &b"GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n"[..],
                400,
            ),
            (b"GET / HTTP/1.1\r\nContent-Length: 9999999\r\n\r\n", 413),
            (b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 411),
            (b"\0", 400),
        ] {
            assert_eq!(parse_head(bytes), Err(status));
        }
        assert_eq!(parse_head(b"GET / HT"), Ok(None));
        assert_eq!(decode(b"%zz%4", false), "%zz%4");
    }
}
