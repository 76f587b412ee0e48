//! A server of objects: HTTP with ranges, and as much of S3 as reading needs; it can be made to answer wrongly.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// How answers are wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Wrong {
    #[default]
    Nothing,
    /// All of an object comes, whatever range was asked for.
    NoRanges,
    /// The range is another one.
    OtherRange,
    /// The connection ends in the middle of every answer.
    Cut,
    /// Of ranges but the first one, half comes, and the answer does not say more of itself.
    Half,
    /// More bytes come than were asked for.
    TooMuch,
    /// Objects change after they were looked at.
    Changes,
    /// This status, for everything.
    Status(u16),
    /// Each request fails once with 503.
    Busy,
    /// The list of objects has no end.
    EndlessList,
    /// Directories are pages without links.
    NoPages,
    /// The numbers of a range are not numbers of 64 bits that make sense.
    Overflow,
    /// After this number of requests, nothing exists.
    GoneAfter(usize),
}

#[derive(Default)]
struct State {
    objects: BTreeMap<String, Vec<u8>>,
    wrong: Wrong,
    requests: Vec<String>,
    /// Bytes of objects that were sent.
    sent: u64,
}

/// A server that ends with the test.
pub(crate) struct Server {
    pub(crate) address: String,
    state: Arc<Mutex<State>>,
}

impl Server {
    pub(crate) fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let state = Arc::<Mutex<State>>::default();
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let state = Arc::clone(&shared);
                std::thread::spawn(move || while serve(&stream, &state).is_some() {});
            }
        });
        Self { address, state }
    }

    /// Adds a file, or all files below a directory.
    pub(crate) fn add(&self, name: &str, path: &Path) {
        if path.is_dir() {
            for entry in std::fs::read_dir(path).unwrap() {
                let entry = entry.unwrap();
                let below = format!("{name}/{}", entry.file_name().to_str().unwrap());
                self.add(&below, &entry.path());
            }
            return;
        }
        let bytes = std::fs::read(path).unwrap();
        self.state
            .lock()
            .unwrap()
            .objects
            .insert(name.to_owned(), bytes);
    }

    pub(crate) fn set(&self, wrong: Wrong) {
        let mut state = self.state.lock().unwrap();
        state.wrong = wrong;
        state.requests.clear();
        state.sent = 0;
    }

    /// Bytes of objects that were sent since the last call of [`set`](Self::set).
    pub(crate) fn sent(&self) -> u64 {
        self.state.lock().unwrap().sent
    }

    /// The requests since then.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.state.lock().unwrap().requests.clone()
    }
}

/// Answers a request; `None` at the end of the connection.
fn serve(mut stream: &TcpStream, state: &Mutex<State>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|&read| read > 0)?;
    let mut words = line.split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let mut header = String::new();
        reader
            .read_line(&mut header)
            .ok()
            .filter(|&read| read > 0)?;
        let Some((name, value)) = header.trim_end().split_once(':') else {
            break;
        };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let mut state = state.lock().unwrap();
    let range = headers.get("range").cloned().unwrap_or_default();
    let request = format!("{method} {target} {range}");
    let is_first = !state.requests.contains(&request);
    state.requests.push(request);
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let name = decoded(path.trim_start_matches('/'));
    let head = move |status: u16, more: &str, length: usize| {
        let mut stream = stream;
        let head = format!("HTTP/1.1 {status} Status\r\nContent-Length: {length}\r\n{more}\r\n");
        stream.write_all(head.as_bytes()).ok()
    };
    match state.wrong {
        Wrong::Status(status) => return head(status, "", 0),
        Wrong::Busy if is_first => return head(503, "", 0),
        Wrong::GoneAfter(count) if state.requests.len() > count => return head(404, "", 0),
        _ => {}
    }
    if query.contains("list-type=2") {
        let page = list(&state, &name, query);
        head(200, "Content-Type: application/xml\r\n", page.len())?;
        return stream.write_all(page.as_bytes()).ok();
    }
    if name.ends_with('/') && method == "GET" {
        let page = page(&state, &name);
        head(if page.is_empty() { 404 } else { 200 }, "", page.len())?;
        return stream.write_all(page.as_bytes()).ok();
    }
    let Some(bytes) = state.objects.get(&name).cloned() else {
        return head(404, "", 0);
    };
    let is_changed = state.wrong == Wrong::Changes && method == "GET";
    let tag = format!("\"{}-{}\"", bytes.len(), u8::from(is_changed));
    if headers
        .get("if-match")
        .is_some_and(|expected| *expected != tag)
    {
        return head(412, "", 0);
    }
    let usual = format!("ETag: {tag}\r\nLast-Modified: Sat, 21 Nov 2026 09:04:23 GMT\r\n");
    if method == "HEAD" {
        return head(200, &usual, bytes.len());
    }
    let asked = range.strip_prefix("bytes=").and_then(|bounds| {
        let (begin, end) = bounds.split_once('-')?;
        Some(match begin {
            "" => bytes.len().checked_sub(end.parse().ok()?)?..bytes.len(),
            begin => begin.parse().ok()?..(end.parse::<usize>().ok()? + 1).min(bytes.len()),
        })
    });
    let Some(asked) = asked.filter(|_| state.wrong != Wrong::NoRanges) else {
        head(200, &usual, bytes.len())?;
        return stream.write_all(&bytes).ok();
    };
    let is_half = state.wrong == Wrong::Half
        && state
            .requests
            .iter()
            .filter(|request| request.contains("bytes="))
            .count()
            > 1;
    let asked = match is_half {
        true => asked.start..asked.start + asked.len() / 2,
        false => asked,
    };
    let body = &bytes[asked.clone()];
    let (begin, end) = match state.wrong {
        Wrong::OtherRange => (asked.start as u64 + 1, asked.end as u64),
        Wrong::Overflow => (asked.start as u64, u64::MAX),
        _ => (asked.start as u64, asked.end as u64 - 1),
    };
    let more = format!(
        "{usual}Content-Range: bytes {begin}-{end}/{}\r\n",
        bytes.len()
    );
    match state.wrong {
        Wrong::TooMuch => {
            head(206, &more, body.len() + (64 << 20))?;
            // In one piece: a client that gets what it asked for alone has all it needs.
            let rest = vec![7; 1 << 20];
            stream.write_all(&[body, &rest[..]].concat()).ok()?;
            for _ in 1..64 {
                stream.write_all(&rest).ok()?;
            }
        }
        Wrong::Cut => {
            head(206, &more, body.len())?;
            stream.write_all(&body[..body.len() / 2]).ok()?;
            stream.shutdown(std::net::Shutdown::Both).ok()?;
            return None;
        }
        _ => {
            head(206, &more, body.len())?;
            stream.write_all(body).ok()?;
        }
    }
    state.sent += body.len() as u64;
    Some(())
}

/// A page of a list of objects, as S3 writes it.
fn list(state: &State, bucket: &str, query: &str) -> String {
    let prefix = query
        .split('&')
        .find_map(|pair| pair.strip_prefix("prefix="));
    let prefix = format!(
        "{}/{}",
        bucket.trim_end_matches('/'),
        decoded(prefix.unwrap_or_default())
    );
    let entry = |key: &str, size: usize| {
        format!(
            "<Contents><Key>{key}</Key><LastModified>2026-11-21T09:04:23.000Z</LastModified>\
             <ETag>&quot;{size}-0&quot;</ETag><Size>{size}</Size></Contents>"
        )
    };
    let objects = state
        .objects
        .iter()
        .filter(|(name, _)| name.starts_with(&prefix));
    let mut entries: String = objects
        .map(|(name, bytes)| entry(name.split_once('/').unwrap().1, bytes.len()))
        .collect();
    let mut more = "<IsTruncated>false</IsTruncated>".to_owned();
    if state.wrong == Wrong::EndlessList {
        let page = state.requests.len();
        let name = "n".repeat(60_000);
        entries = (0..300)
            .map(|number| entry(&format!("{name}{number}"), 1))
            .collect();
        more = format!(
            "<IsTruncated>true</IsTruncated><NextContinuationToken>{page}</NextContinuationToken>"
        );
    }
    format!(
        "<?xml version=\"1.0\"?><ListBucketResult><Name>b</Name>{more}{entries}</ListBucketResult>"
    )
}

/// A page that lists a directory; nothing if there is none.
fn page(state: &State, directory: &str) -> String {
    let inner = |name: &String| Some(name.strip_prefix(directory)?.to_owned());
    let names: BTreeSet<String> = state
        .objects
        .keys()
        .filter_map(inner)
        .map(|name| match name.split_once('/') {
            Some((first, _)) => format!("{first}/"),
            None => name,
        })
        .collect();
    if names.is_empty() {
        return String::new();
    }
    let links = names
        .iter()
        .filter(|_| state.wrong != Wrong::NoPages)
        .map(|name| format!("<a href=\"{}\">{name}</a>\n", name.replace('%', "%25")));
    format!(
        "<html><a href=\"../\">up</a>\n{}</html>",
        links.collect::<String>()
    )
}

/// Text of a URL without its percent-encoding.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, left @ ..] = rest {
        let code = left
            .get(..2)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) if *first == b'%' => {
                bytes.push(byte);
                rest = &left[2..];
            }
            _ => {
                bytes.push(*first);
                rest = left;
            }
        }
    }
    String::from_utf8(bytes).unwrap()
}
