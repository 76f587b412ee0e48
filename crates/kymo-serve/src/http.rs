//! A small server of HTTP/1: requests with their bodies, and answers.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use kymo_io::net::response_head;

use crate::listen::{FIRST_BYTE, Stream, TimedStream};
use crate::tokens::{Allowed, TokenFile};

/// The largest head, in bytes.
const MOST_HEAD: usize = 64 << 10;
const MOST_HEADERS: usize = 100;
/// Parameters of a request.
const MOST_PARAMETERS: usize = 1000;
/// Bytes that are read at once.
const PIECE: usize = 1 << 16;
/// The longest line that begins a part of a body that comes in parts.
const LONGEST_CHUNK_LINE: usize = 256;
/// How long an answer may take to be read.
const ANSWER_TIME: Duration = Duration::from_secs(60);

/// What a request may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a body.
    pub body: usize,
    /// How long its body may take to arrive.
    pub time: Duration,
    /// How long a connection stays open without a request.
    pub idle: Duration,
}

impl Default for Limits {
    /// As queries have them.
    fn default() -> Self {
        Self {
            body: 1 << 20,
            time: Duration::from_secs(10),
            idle: Duration::from_secs(60),
        }
    }
}

/// What a request asks to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// To answer.
    Get,
    /// The same, without the body of the answer.
    Head,
    /// As `Get`, with parameters in the body.
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
    /// Names and values of the address.
    pub parameters: Vec<(String, String)>,
    /// What the body is; empty if it is not specified.
    pub content_type: String,
    /// How the body is compressed; empty if it is not.
    pub content_encoding: String,
    /// The body.
    pub body: Vec<u8>,
}

impl HttpRequest {
    /// The first value of a name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// Adds the parameters of the body, if it is a form. They come before those of the address, as clients of
    /// Prometheus expect.
    ///
    /// # Errors
    ///
    /// The status that says what is wrong with it: 415 if it is not a form.
    pub fn read_form(&mut self) -> Result<(), u16> {
        if self.body.is_empty() {
            return Ok(());
        }
        match self
            .content_type
            .starts_with("application/x-www-form-urlencoded")
        {
            true => {
                let mut parameters = Vec::new();
                form(&self.body, &mut parameters)?;
                if parameters.len() + self.parameters.len() > MOST_PARAMETERS {
                    return Err(400);
                }
                parameters.append(&mut self.parameters);
                self.parameters = parameters;
                Ok(())
            }
            false => Err(415),
        }
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
    length: BodyLength,
    content_type: String,
    content_encoding: String,
    authorization: String,
    keep_alive: bool,
    expects_continue: bool,
}

/// How long a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodyLength {
    /// This many bytes.
    Bytes(usize),
    /// It comes in parts, each with its length.
    Chunked,
}

/// Reads the head of a request from the bytes that have arrived, and how long it is; `None` if more bytes are
/// needed.
///
/// # Errors
///
/// The status that says what is wrong with it.
pub fn parse_head(bytes: &[u8], limits: &Limits) -> Result<Option<(Head, usize)>, u16> {
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
            Some("HEAD") => Method::Head,
            Some("POST") => Method::Post,
            _ => Method::Other,
        },
        target: request.path.unwrap_or_default().to_owned(),
        length: BodyLength::Bytes(0),
        content_type: String::new(),
        content_encoding: String::new(),
        authorization: String::new(),
        keep_alive: request.version == Some(1),
        expects_continue: false,
    };
    let (mut has_length, mut is_chunked) = (false, false);
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
                let length = value.parse().ok().filter(|length| *length <= limits.body);
                head.length = BodyLength::Bytes(length.ok_or(413_u16)?);
            }
            "transfer-encoding" if value == "chunked" => is_chunked = true,
            "transfer-encoding" => return Err(411),
            "content-type" => {
                // Values of parameters have capital letters that count.
                head.content_type = String::from_utf8_lossy(header.value).trim().to_owned();
            }
            "content-encoding" => head.content_encoding = value,
            "authorization" => {
                head.authorization = String::from_utf8_lossy(header.value).trim().to_owned();
            }
            "expect" if value == "100-continue" => head.expects_continue = true,
            "expect" => return Err(417),
            "connection" => {
                let mut options = value.split(',').map(str::trim);
                head.keep_alive &= !options.any(|option| option == "close");
            }
            _ => {}
        }
    }
    if is_chunked {
        // The two may say different things.
        if has_length {
            return Err(400);
        }
        head.length = BodyLength::Chunked;
    }
    Ok(Some((head, length)))
}

/// Takes a body that comes in parts from the bytes behind the head: the body and how many bytes it had. `None` if more
/// bytes are needed.
///
/// # Errors
///
/// The status that says what is wrong with it.
pub fn dechunk(bytes: &[u8], limits: &Limits) -> Result<Option<(Vec<u8>, usize)>, u16> {
    let mut body = Vec::new();
    let mut at = 0;
    loop {
        let rest = &bytes[at..];
        let Some(end) = memchr::memchr(b'\n', rest) else {
            return match rest.len() > LONGEST_CHUNK_LINE {
                true => Err(400),
                false => Ok(None),
            };
        };
        let line = rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]);
        let digits = line.split(|byte| *byte == b';').next().unwrap_or_default();
        let digits = std::str::from_utf8(digits).map_err(|_| 400_u16)?.trim();
        let is_number = !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_hexdigit());
        let length = usize::from_str_radix(digits, 16).ok().filter(|_| is_number);
        let length = length.ok_or(400_u16)?;
        at += end + 1;
        if length == 0 {
            // Fields may follow, and an empty line.
            let trailers = &bytes[at..];
            let trailers = &trailers[..trailers.len().min(MOST_HEAD)];
            let mut read = 0;
            while let Some(end) = memchr::memchr(b'\n', &trailers[read..]) {
                let line = &trailers[read..read + end];
                read += end + 1;
                if matches!(line, [] | [b'\r']) {
                    return Ok(Some((body, at + read)));
                }
            }
            return match trailers.len() < MOST_HEAD {
                true => Ok(None),
                false => Err(431),
            };
        }
        if length > limits.body - body.len() {
            return Err(413);
        }
        let Some(part) = bytes.get(at..at + length) else {
            return Ok(None);
        };
        body.extend_from_slice(part);
        at += length;
        at += match &bytes[at..] {
            [b'\r', b'\n', ..] => 2,
            [b'\n', ..] => 1,
            [] | [b'\r'] => return Ok(None),
            _ => return Err(400),
        };
    }
}

/// Puts a request together from its head and its body.
///
/// # Errors
///
/// The status that says what is wrong with it.
pub fn request(head: Head, body: Vec<u8>) -> Result<HttpRequest, u16> {
    let (path, query) = head.target.split_once('?').unwrap_or((&head.target, ""));
    let mut parameters = Vec::new();
    form(query.as_bytes(), &mut parameters)?;
    Ok(HttpRequest {
        method: head.method,
        path: decode(path.as_bytes(), false),
        parameters,
        content_type: head.content_type,
        content_encoding: head.content_encoding,
        body,
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

/// Who asked.
pub(crate) trait Client {
    /// Whether it no longer waits for an answer.
    fn is_gone(&self) -> bool;
}

impl Client for Stream {
    fn is_gone(&self) -> bool {
        self.is_closed()
    }
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpAnswer {
    /// Its status.
    pub status: u16,
    /// What the body is.
    pub content_type: &'static str,
    /// Other headers.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl HttpAnswer {
    /// An answer of text.
    pub fn text(status: u16, text: &str) -> Self {
        Self {
            status,
            content_type: "text/plain; charset=utf-8",
            headers: Vec::new(),
            body: text.as_bytes().to_vec(),
        }
    }

    /// An answer in JSON.
    pub fn json(status: u16, body: Vec<u8>) -> Self {
        Self {
            status,
            content_type: "application/json",
            headers: Vec::new(),
            body,
        }
    }

    fn send(&self, stream: &mut Stream, keeps: bool, is_head: bool) -> std::io::Result<()> {
        let mut headers = vec![
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
        ];
        if self.status != 204 {
            headers.push(("Content-Type", self.content_type));
        }
        headers.extend(
            self.headers
                .iter()
                .map(|(name, value)| (*name, value.as_str())),
        );
        let head = response_head(self.status, &headers, self.body.len(), keeps);
        let mut stream = TimedStream {
            stream,
            end: Instant::now() + ANSWER_TIME,
        };
        stream.write_all(head.as_bytes())?;
        match is_head {
            true => Ok(()),
            false => stream.write_all(&self.body),
        }
    }
}

/// Answers the requests of a connection until it ends. If there is a file of tokens, requests must have one of them;
/// which file that is may change from one request to the next.
pub(crate) fn serve(
    mut stream: Stream,
    limits: &Limits,
    token_file: &dyn Fn() -> Option<PathBuf>,
    answer: &mut dyn FnMut(HttpRequest, &dyn Client) -> HttpAnswer,
) {
    let mut bytes = Vec::new();
    let mut tokens = TokenFile::default();
    let mut allow = |authorization: &str| match tokens.allow(token_file(), authorization) {
        Allowed::Yes => Ok(()),
        Allowed::No => Err(401),
        Allowed::Unknown => Err(503),
    };
    let mut is_first = true;
    // Who is gone, or too slow, needs no answer.
    while let Some(request) = next(&mut stream, limits, &mut allow, is_first, &mut bytes) {
        is_first = false;
        let is_head = matches!(&request, Ok((request, _)) if request.method == Method::Head);
        let is_read = request.is_ok();
        let (answer, keeps) = match request {
            Ok((request, keeps)) => (answer(request, &stream), keeps && !stream.is_cut()),
            Err(503) => (HttpAnswer::text(503, NO_TOKENS), false),
            Err(status) => {
                let mut answer = HttpAnswer::text(status, &explain(status, limits));
                if status == 401 {
                    answer
                        .headers
                        .push(("WWW-Authenticate", "Bearer".to_owned()));
                }
                (answer, false)
            }
        };
        if answer.send(&mut stream, keeps, is_head).is_err() {
            return;
        }
        if !keeps {
            // The rest of the request is on its way, or another one.
            if !is_read || !bytes.is_empty() {
                stream.close_after_answer();
            }
            return;
        }
    }
}

/// The answer to all requests while the file of tokens cannot be read. Clients need not know why.
const NO_TOKENS: &str = "the daemon cannot read its `token-file`; `kymo serve --check` says why\n";

/// What is wrong with a request that was not understood.
fn explain(status: u16, limits: &Limits) -> String {
    match status {
        401 => "expected a header `Authorization: Bearer TOKEN` with a token of `token-file`\n"
            .to_owned(),
        411 => "the body has neither Content-Length nor `Transfer-Encoding: chunked`\n".to_owned(),
        413 => format!("the body is longer than {} bytes\n", limits.body),
        431 => format!(
            "the head is longer than {MOST_HEAD} bytes, or has more than {MOST_HEADERS} fields\n"
        ),
        _ => "the request is not understood\n".to_owned(),
    }
}

/// The next request, and whether the connection stays open behind it; `None` where the connection ends.
fn next(
    stream: &mut Stream,
    limits: &Limits,
    allow: &mut dyn FnMut(&str) -> Result<(), u16>,
    is_first: bool,
    bytes: &mut Vec<u8>,
) -> Option<Result<(HttpRequest, bool), u16>> {
    let idle = if is_first {
        limits.idle.min(FIRST_BYTE)
    } else {
        limits.idle
    };
    let mut end = Instant::now() + idle;
    let mut has_begun = false;
    let (head, length) = loop {
        match parse_head(bytes, limits) {
            Ok(Some(found)) => break found,
            Ok(None) => {}
            Err(status) => return Some(Err(status)),
        }
        if !bytes.is_empty() && !std::mem::replace(&mut has_begun, true) {
            end = end.min(Instant::now() + limits.time);
        }
        read(stream, bytes, end)?;
    };
    bytes.drain(..length);
    // Nothing is kept of a body that nobody may send.
    if let Err(status) = allow(&head.authorization) {
        return Some(Err(status));
    }
    let end = Instant::now() + limits.time;
    if head.expects_continue && bytes.is_empty() {
        let mut timed = TimedStream { stream, end };
        timed.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").ok()?;
    }
    let body = match head.length {
        BodyLength::Bytes(length) => {
            while bytes.len() < length {
                read(stream, bytes, end)?;
            }
            let rest = bytes.split_off(length);
            std::mem::replace(bytes, rest)
        }
        BodyLength::Chunked => {
            // It is looked at again when it has doubled, so that many small parts do not take long.
            let mut enough = 0;
            loop {
                if bytes.len() >= enough || bytes.ends_with(b"\r\n\r\n") {
                    match dechunk(bytes, limits) {
                        Ok(Some((body, length))) => {
                            bytes.drain(..length);
                            break body;
                        }
                        Ok(None) => enough = bytes.len().saturating_mul(2),
                        Err(status) => return Some(Err(status)),
                    }
                }
                // Lengths of parts are a part of what is read, and bounded like the rest.
                if bytes.len() > limits.body.saturating_mul(2) + MOST_HEAD {
                    return Some(Err(413));
                }
                read(stream, bytes, end)?;
            }
        }
    };
    let keep_alive = head.keep_alive;
    Some(request(head, body).map(|request| (request, keep_alive)))
}

/// Reads some bytes; `None` at the end, or if it takes too long.
fn read(stream: &mut Stream, bytes: &mut Vec<u8>, end: Instant) -> Option<()> {
    let length = bytes.len();
    bytes.resize(length + PIECE, 0);
    let count = TimedStream { stream, end }.read(&mut bytes[length..]);
    bytes.truncate(length + *count.as_ref().unwrap_or(&0));
    (count.ok()? > 0).then_some(())
}

#[cfg(test)]
mod tests;
