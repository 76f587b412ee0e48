//! rrdcgi's language: pages with tags such as `<RRD::GRAPH ...>`, which their results take the place of.

mod request;
mod tags;

use std::collections::HashMap;
use std::io::BufRead;

use crate::commands::drawn_for_page;
use crate::graph::date;
use crate::path::{path, shown};
use crate::times::TimeSpec;
use crate::{Failure, LocalZone, Session};
use request::Request;
use tags::{Host, Tag, expand};

/// A page, or a file within it, has at most 16 MiB.
const MOST_PAGE: u64 = 16 << 20;
/// Bytes of all variables that a page sets.
const MOST_VARIABLES: usize = 16 << 20;

/// The version of rrdtool that `RRD::INTERNAL` names.
const VERSION: &str = "1.7.2";

/// What a page came to.
struct Page<'s, 'o> {
    session: &'s mut Session<'o>,
    /// `None` if pages are only filtered.
    request: Option<Request>,
    environment: HashMap<Vec<u8>, Vec<u8>>,
    variables: HashMap<Vec<u8>, Vec<u8>>,
    /// The texts of PRINT of the last graph.
    prints: Vec<String>,
    /// How long the page is valid, in seconds; negative if browsers are to request it again.
    good_for: i64,
}

/// Reads a page and writes what comes of it: the file of a name, or `input`. Without `is_filter`, headers come first.
///
/// # Errors
///
/// The file or the request cannot be read; the result is too large.
pub fn cgi(
    session: &mut Session<'_>,
    file: &[u8],
    is_filter: bool,
    input: &mut dyn BufRead,
) -> Result<(), Failure> {
    let request = match is_filter {
        true => None,
        false => {
            let environment = |name: &str| std::env::var(name).ok();
            let mut warn = |text: &str| session.warn_plain(text);
            // Where the page is the input, it has no variables.
            match file == b"-" && std::env::var_os("REQUEST_METHOD").is_none() {
                true => Some(Request::default()),
                false => Some(Request::read(&environment, input, &mut warn)?),
            }
        }
    };
    let text = match file {
        b"-" => read_all(input).map_err(|error| {
            Failure::new(format!("reading the page: {}", kymo_io::reason(&error)))
        })?,
        file => read_file(file).map_err(Failure::new)?,
    };
    // The first line is for the system, which runs pages as programs.
    let text = match text.strip_prefix(b"#!") {
        Some(line) => {
            let end = line.iter().position(|byte| *byte == b'\n');
            end.map_or(&b""[..], |end| &line[end + 1..])
        }
        None => &text,
    };
    let zone = session.zone.clone();
    let daemon = session.defaults.daemon.clone();
    let mut page = Page {
        session,
        request,
        environment: HashMap::new(),
        variables: HashMap::new(),
        prints: Vec::new(),
        good_for: 0,
    };
    let body = expand(text, &mut page);
    let good_for = page.good_for;
    session.zone = zone;
    session.defaults.daemon = daemon;
    let body = body.map_err(|_| Failure::new("the page becomes too large (limit 64 MiB)"))?;
    if !is_filter {
        let headers = headers(session.now(), good_for, body.len());
        session.write(headers)?;
    }
    session.write(body)
}

/// What comes before a page.
fn headers(now: i64, good_for: i64, length: usize) -> String {
    let mut text = format!("Content-Type: text/html\nContent-Length: {length}\n");
    if good_for != 0 {
        let shown = |seconds: i64| date("%a, %d %b %Y %H:%M:%S GMT", seconds, &LocalZone::utc());
        let seconds = good_for.saturating_abs();
        text += &format!("Last-Modified: {}\n", shown(now));
        text += &format!("Expires: {}\n", shown(now.saturating_add(seconds)));
        if good_for < 0 {
            text += &format!("Refresh: {seconds}\n");
        }
    }
    text + "\n"
}

fn read_all(from: &mut dyn BufRead) -> std::io::Result<Vec<u8>> {
    use std::io::Read;
    let mut text = Vec::new();
    from.take(MOST_PAGE).read_to_end(&mut text)?;
    Ok(text)
}

/// The content of a file, or what is wrong with it.
fn read_file(name: &[u8]) -> Result<Vec<u8>, String> {
    let file = std::fs::File::open(path(name));
    let text = file.and_then(|file| read_all(&mut std::io::BufReader::new(file)));
    text.map_err(|error| format!("opening '{}': {}", shown(name), kymo_io::reason(&error)))
}

/// An error in the place of a tag, in which no tag can begin.
fn error(text: impl std::fmt::Display) -> Vec<u8> {
    format!("[ERROR {text}]").replace('<', "_").into_bytes()
}

impl Host for Page<'_, '_> {
    fn is_filter(&self) -> bool {
        self.request.is_none()
    }

    fn include(&mut self, arguments: &[Vec<u8>]) -> Result<Vec<u8>, Vec<u8>> {
        match arguments {
            [] => Err(b"[ERROR: No Inclue file defined]".to_vec()),
            [name, ..] => read_file(name).map_err(error),
        }
    }

    fn replace(&mut self, tag: Tag, arguments: &[Vec<u8>]) -> Vec<u8> {
        let first = arguments.first().map_or(&b""[..], Vec::as_slice);
        let of_request = |get: fn(&Request, &[u8]) -> Option<Vec<u8>>| {
            let value = self
                .request
                .as_ref()
                .and_then(|request| get(request, first));
            value.unwrap_or_default()
        };
        match tag {
            Tag::Variable => of_request(Request::get),
            Tag::QuotedVariable => of_request(Request::quoted),
            Tag::PathVariable => of_request(Request::path),
            Tag::GetEnvironment if arguments.len() != 1 => {
                b"[ERROR: getenv failed because it did not get 1 argument only]".to_vec()
            }
            Tag::GetEnvironment => {
                let set = self.environment.get(first).cloned();
                set.or_else(|| environment(first))
                    .unwrap_or_else(|| unset("getenv", first))
            }
            Tag::SetEnvironment => match arguments {
                [name, value, ..] => self.set_environment(name, value),
                _ => b"[ERROR: setenv failed because not enough arguments were defined]".to_vec(),
            },
            Tag::GetVariable if arguments.len() != 1 => {
                b"[ERROR: getvar failed because it did not get 1 argument only]".to_vec()
            }
            Tag::GetVariable => {
                let value = self.variables.get(first).cloned();
                value.unwrap_or_else(|| unset("getvar", first))
            }
            Tag::SetVariable => match arguments {
                [name, value, ..] => set(&mut self.variables, name, value),
                _ => b"[ERROR: putvar failed because not enough arguments were defined]".to_vec(),
            },
            Tag::GoodFor if arguments.len() != 1 => {
                b"[ERROR: goodfor expected 1 argument]".to_vec()
            }
            Tag::GoodFor => {
                self.good_for = integer(first);
                match self.good_for {
                    0 => b"[ERROR: goodfor value must not be 0]".to_vec(),
                    _ => Vec::new(),
                }
            }
            Tag::Graph => self.graph(arguments),
            Tag::Print => {
                let number = usize::try_from(integer(first)).ok();
                let text = number.and_then(|number| self.prints.get(number));
                text.map_or_else(
                    || b"[ERROR: RRD::PRINT argument error]".to_vec(),
                    |text| text.clone().into_bytes(),
                )
            }
            Tag::Last => match arguments {
                [file, format] => self.last(file, format),
                _ => b"[ERROR: expected RRD::TIME::LAST file.rrd strftime-format]".to_vec(),
            },
            Tag::Now => match arguments {
                [format] => self.date(self.session.now(), format),
                _ => b"[ERROR: not enough arguments for RRD::TIME::NOW]".to_vec(),
            },
            Tag::Strftime => self.strftime(arguments),
            Tag::Internal => match arguments {
                [name] if name == b"VERSION" => VERSION.into(),
                [name] if name == b"COMPILETIME" => {
                    format!("kymo {}", env!("CARGO_PKG_VERSION")).into_bytes()
                }
                [_] => b"[ERROR: internal unknown argument]".to_vec(),
                _ => b"[ERROR: internal expected 1 argument]".to_vec(),
            },
            // It has a method of its own.
            Tag::Include => Vec::new(),
        }
    }
}

/// A variable of the environment. The names of some are too long to be asked for.
fn environment(name: &[u8]) -> Option<Vec<u8>> {
    let name = std::str::from_utf8(name).ok()?;
    let is_name = !name.is_empty() && !name.contains(['=', '\0']);
    let value = is_name.then(|| std::env::var_os(name)).flatten()?;
    Some(value.as_encoded_bytes().to_vec())
}

/// A number as C's `atol` reads it.
fn integer(text: &[u8]) -> i64 {
    let text = text.trim_ascii_start();
    let sign = usize::from(matches!(text.first(), Some(b'-' | b'+')));
    let digits = text[sign..].iter().take_while(|byte| byte.is_ascii_digit());
    let end = sign + digits.count();
    let text = std::str::from_utf8(&text[..end]).unwrap_or_default();
    text.parse().unwrap_or_default()
}

fn unset(what: &str, name: &[u8]) -> Vec<u8> {
    let name = shown(name).replace(['<', '>'], "_");
    format!("[ERROR:_{what}_'{name}'_failed").into_bytes()
}

/// Sets a variable, unless all together become too large.
fn set(variables: &mut HashMap<Vec<u8>, Vec<u8>>, name: &[u8], value: &[u8]) -> Vec<u8> {
    let taken: usize = variables
        .iter()
        .map(|(name, value)| name.len() + value.len())
        .sum();
    if taken + name.len() + value.len() > MOST_VARIABLES {
        return b"[ERROR: variables become too large]".to_vec();
    }
    variables.insert(name.to_vec(), value.to_vec());
    Vec::new()
}

impl Page<'_, '_> {
    /// Sets a variable of the environment: what graphs and dates depend on takes effect.
    fn set_environment(&mut self, name: &[u8], value: &[u8]) -> Vec<u8> {
        let text = shown(value).into_owned();
        match name {
            b"TZ" => match LocalZone::named(&text) {
                Some(zone) => self.session.zone = zone,
                None => return error(format_args!("unknown time zone '{text}'")),
            },
            b"RRDCACHED_ADDRESS" => {
                self.session.defaults.daemon = Some(text).filter(|address| !address.is_empty());
            }
            _ => {}
        }
        set(&mut self.environment, name, value)
    }

    fn date(&self, seconds: i64, format: &[u8]) -> Vec<u8> {
        /// Maximum length of a format, in bytes.
        const MOST: usize = 4096;
        let format = format.get(..MOST).unwrap_or(format);
        date(&shown(format), seconds, &self.session.zone).into_bytes()
    }

    fn last(&mut self, file: &[u8], format: &[u8]) -> Vec<u8> {
        let time = crate::commands::last_update_time(self.session, file);
        match time {
            Ok(time) => self.date(time, format),
            Err(failure) => error(failure),
        }
    }

    /// `START|END START-TIME END-TIME FORMAT`
    fn strftime(&mut self, arguments: &[Vec<u8>]) -> Vec<u8> {
        let [which, start, end, format] = arguments else {
            return b"[ERROR: expected RRD::TIME::STRFTIME START|END start-spec end-spec strftime-format]"
                .to_vec();
        };
        let parse = |name: &str, text: &[u8]| {
            TimeSpec::parse(text).map_err(|error| format!("{name} time: {error}"))
        };
        let times = parse("start", start).and_then(|start| {
            let end = parse("end", end)?;
            TimeSpec::span(&start, &end, &self.session.clock()).map_err(|error| error.to_string())
        });
        let (start, end) = match times {
            Ok(times) => times,
            Err(problem) => return error(problem),
        };
        match which.as_slice() {
            b"START" => self.date(start, format),
            b"END" => self.date(end, format),
            other => error(format_args!(
                "expected START or END, found '{}'",
                shown(other)
            )),
        }
    }

    fn graph(&mut self, arguments: &[Vec<u8>]) -> Vec<u8> {
        let mut words: Vec<&[u8]> = arguments.iter().map(Vec::as_slice).collect();
        let has_info = |word: &&[u8]| {
            *word == b"--imginfo" || *word == b"-f" || word.starts_with(b"--imginfo=")
        };
        if !words.iter().any(has_info) {
            words.extend([
                &b"--imginfo"[..],
                b"<IMG SRC=\"./%s\" WIDTH=\"%lu\" HEIGHT=\"%lu\">",
            ]);
        }
        self.prints.clear();
        match drawn_for_page(self.session, &words) {
            Ok((image, prints)) => {
                self.prints = prints;
                image.into_bytes()
            }
            Err(failure) => error(failure),
        }
    }
}

/// For tests that make pages up: what a page becomes if each tag is replaced by its arguments.
pub fn expanded_for_tests(page: &[u8]) -> Option<Vec<u8>> {
    struct Arguments;
    impl Host for Arguments {
        fn replace(&mut self, _: Tag, arguments: &[Vec<u8>]) -> Vec<u8> {
            arguments.concat()
        }
        fn include(&mut self, arguments: &[Vec<u8>]) -> Result<Vec<u8>, Vec<u8>> {
            Ok(arguments.concat())
        }
        fn is_filter(&self) -> bool {
            false
        }
    }
    expand(page, &mut Arguments).ok()
}
