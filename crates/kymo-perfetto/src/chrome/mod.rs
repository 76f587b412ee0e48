//! Reading of Chrome's JSON trace event format: an array of events, or an object with one.

mod cut;
mod number;
pub(crate) mod write;

use std::borrow::Cow;
use std::io::{self, Write};
use std::ops::Range;

use kymo_model::FaultCode;
use kymo_text::json::{Reader as Json, Wrong};

use self::cut::Cut;
use crate::builder::{Args, Builder, MOST_TEXT, Stop};
use crate::legacy::{JoinId, PhaseEvent};
use crate::recording::Times;
use crate::row::Value;
use crate::tracks::{Id, Place, name_of};

/// How deep arguments may lie within each other; those that are deeper are left out.
const MOST_DEPTH: usize = 512;
/// Bytes of what is counted by its name.
const MOST_COUNTED: usize = 64;

/// Reads a trace.
///
/// # Errors
///
/// When its events cannot be sorted.
pub(crate) fn read(bytes: &[u8], builder: &mut Builder) -> io::Result<Times> {
    read_into(bytes, builder, None)?;
    Ok(Times::default())
}

/// Writes the events of a trace that stay, with all around them.
///
/// # Errors
///
/// Those of the output.
pub(crate) fn cut(bytes: &[u8], builder: &mut Builder, out: &mut dyn Write) -> io::Result<()> {
    let cut = read_into(bytes, builder, Some(Cut::new(bytes, out)))?;
    cut.map_or(Ok(()), Cut::finish)
}

fn read_into<'a, 'b>(
    bytes: &'a [u8],
    builder: &'b mut Builder,
    cut: Option<Cut<'a, 'b>>,
) -> io::Result<Option<Cut<'a, 'b>>> {
    let start = if bytes.starts_with(b"\xef\xbb\xbf") {
        3
    } else {
        0
    };
    // One more than an argument may have, so that it is known to be cut.
    let mut json = Json::new(bytes).with_most_kept(MOST_TEXT + 1);
    json.seek(start);
    let mut reader = Reader {
        bytes,
        builder,
        args: Args::default(),
        values: Args::default(),
        cut,
    };
    let read = reader.file(&mut json);
    match read {
        Ok(()) => {}
        Err(Stop::Io(error)) => return Err(error),
        Err(Stop::TooMuch) => {
            let message = "its events take far more space than the file; what follows is not read";
            reader
                .builder
                .fault(FaultCode::LengthLimit, json.position(), message.into());
        }
    }
    Ok(reader.cut)
}

struct Reader<'a, 'b> {
    bytes: &'a [u8],
    builder: &'b mut Builder,
    args: Args,
    /// The value of a series.
    values: Args,
    /// Where a part of the file is written.
    cut: Option<Cut<'a, 'b>>,
}

/// The members of an event.
#[derive(Debug, Default)]
struct Found<'a> {
    phase: u8,
    time: Option<&'a [u8]>,
    duration: Option<&'a [u8]>,
    process: Option<Id>,
    thread: Option<Id>,
    name: Cow<'a, [u8]>,
    category: Cow<'a, [u8]>,
    id: Option<JoinId>,
    scope: Cow<'a, [u8]>,
    instant_scope: u8,
    bind_id: Option<u64>,
    flow_in: bool,
    flow_out: bool,
    /// Which of the arguments are those that the event has as such.
    args: Range<usize>,
    /// Arguments that are too deep.
    deep: u64,
}

/// Why an event failed. An error in an event affects only that event: the file continues after it.
enum Failed {
    Json(Wrong),
    Stop(Stop),
}

impl From<Wrong> for Failed {
    fn from(wrong: Wrong) -> Self {
        Self::Json(wrong)
    }
}

impl<'a> Reader<'a, '_> {
    fn file(&mut self, json: &mut Json<'a>) -> Result<(), Stop> {
        if json.take(b'[') {
            return self.events(json);
        }
        if !json.take(b'{') {
            self.wrong(json.position(), "`[` or `{`");
            return Ok(());
        }
        loop {
            if json.take(b'}') || json.peek().is_none() {
                return Ok(());
            }
            if json.take(b',') {
                continue;
            }
            let member = json.string().and_then(|name| match json.take(b':') {
                true => Ok(name),
                false => json.wrong("`:`"),
            });
            let skipped = match member {
                Ok(name) if *name == *b"traceEvents" && json.take(b'[') => {
                    self.events(json)?;
                    continue;
                }
                Ok(name) => {
                    if *name != *b"displayTimeUnit" {
                        let name = counted(&name);
                        self.builder
                            .count(&format!("members of the file that are not read, {name}"));
                    }
                    json.raw().map(drop)
                }
                Err(wrong) => Err(wrong),
            };
            if let Err(wrong) = skipped {
                self.wrong(wrong.at, wrong.expected);
                return Ok(());
            }
        }
    }

    fn wrong(&mut self, at: usize, expected: &str) {
        if at >= self.bytes.len() {
            let message = format!("the file ends where {expected} is expected");
            return self.builder.fault(FaultCode::Truncated, at, message);
        }
        let message = format!("expected {expected}");
        self.builder.fault(FaultCode::Syntax, at, message);
    }

    /// The events of an array, which may end without a bracket.
    fn events(&mut self, json: &mut Json<'a>) -> Result<(), Stop> {
        if let Some(cut) = &mut self.cut {
            cut.begin(json.position())?;
        }
        let is_whole = self.all_events(json)?;
        if let Some(cut) = &mut self.cut {
            // Behind damage without another event nothing is known.
            let end = if is_whole {
                json.position()
            } else {
                self.bytes.len()
            };
            cut.end(end)?;
        }
        if is_whole {
            json.take(b']');
        }
        Ok(())
    }

    /// The same, up to the bracket; whether it was found, or the end of the file.
    fn all_events(&mut self, json: &mut Json<'a>) -> Result<bool, Stop> {
        loop {
            let wrong = match json.peek() {
                None | Some(b']') => return Ok(true),
                Some(b',') => {
                    json.take(b',');
                    continue;
                }
                Some(b'{') => match self.event(json) {
                    Ok(()) => continue,
                    Err(Failed::Stop(stop)) => return Err(stop),
                    Err(Failed::Json(wrong)) => wrong,
                },
                Some(_) => {
                    let at = json.position();
                    let expected = "an event";
                    Wrong { at, expected }
                }
            };
            self.wrong(wrong.at, wrong.expected);
            let from = wrong.at.max(json.position());
            let Some(next) = self.next_event(from) else {
                return Ok(false);
            };
            json.seek(next);
        }
    }

    /// Where an event seems to begin behind damage: at an object after a comma or on a new line.
    fn next_event(&self, from: usize) -> Option<usize> {
        let rest = self.bytes.get(from..)?;
        let begins = |&at: &usize| {
            let head = &rest[at + 1..];
            let head = head[..head.len().min(64)].trim_ascii_start();
            head.starts_with(b"{")
        };
        let at = memchr::memchr2_iter(b'\n', b',', rest).find(begins)?;
        Some(from + at)
    }

    fn event(&mut self, json: &mut Json<'a>) -> Result<(), Failed> {
        let begin = json.position();
        self.args.clear();
        let mut found = Found::default();
        let args = &mut self.args;
        json.object(|json, name| member(json, name, &mut found, args))?;
        self.builder
            .count_many("arguments that are too deep, left out", found.deep);
        let (is_metadata, time) = (found.phase == b'M', found.time);
        self.add(found).map_err(Failed::Stop)?;
        if let Some(cut) = &mut self.cut {
            let stays = self.builder.cut();
            let stays = is_metadata || stays.any(time.and_then(number::nanos));
            let written = cut.event(begin..json.position(), stays);
            written.map_err(|error| Failed::Stop(error.into()))?;
        }
        Ok(())
    }

    fn add(&mut self, found: Found<'_>) -> Result<(), Stop> {
        let process = found.process.unwrap_or(Id::Number(0));
        let thread = found.thread.unwrap_or(Id::Number(0));
        let time = found.time.and_then(number::nanos);
        if found.time.is_some() && time.is_none() {
            self.builder
                .count("times that are not a number of microseconds within 63 bits of nanoseconds");
        }
        if found.phase == b'M' {
            let name = self.args.find(b"name", found.args);
            let named = match (&*found.name, name) {
                (b"process_name", Some(Value::Text(name))) => {
                    self.builder.tracks.name_process(process, name);
                    true
                }
                (b"thread_name", Some(Value::Text(name))) => {
                    self.builder.tracks.name_thread(Some(process), thread, name);
                    true
                }
                (b"process_sort_index" | b"thread_sort_index", _) => true,
                _ => false,
            };
            if !named {
                let name = counted(&found.name);
                self.builder
                    .count(&format!("metadata events that are not read, {name}"));
            }
            return Ok(());
        }
        let event = PhaseEvent {
            phase: found.phase,
            time,
            duration: found
                .duration
                .and_then(number::nanos)
                .map(|nanos| u64::try_from(nanos).unwrap_or(0)),
            place: Place::Thread(Some(process.clone()), thread),
            process: Some(process),
            name: &found.name,
            category: &found.category,
            id: found.id,
            scope: &found.scope,
            instant_scope: found.instant_scope,
            bind_id: found.bind_id,
            flow_in: found.flow_in,
            flow_out: found.flow_out,
        };
        if found.phase != b'C' {
            return event.emit(self.builder, &mut self.args);
        }
        for item in found.args {
            let (series, value) = self.args.item(item);
            let value = match value {
                Value::Text(text) => number::value(text),
                value => Some(value),
            };
            match value {
                Some(
                    value @ (Value::Uint(_) | Value::Sint(_) | Value::Float(_) | Value::Bool(_)),
                ) => {
                    event.emit_counter(self.builder, &mut self.values, series, value)?;
                }
                _ => self
                    .builder
                    .count("values of counters that are not numbers, left out"),
            }
        }
        Ok(())
    }
}

/// A name among what is counted.
fn counted(name: &[u8]) -> String {
    let name = &name[..name.len().min(MOST_COUNTED)];
    format!("`{}`", kymo_text::visible(&String::from_utf8_lossy(name)))
}

/// Reads a member of an event.
fn member<'a>(
    json: &mut Json<'a>,
    name: &[u8],
    found: &mut Found<'a>,
    args: &mut Args,
) -> Result<(), Wrong> {
    match name {
        b"ph" => found.phase = json.text()?.first().copied().unwrap_or(0),
        b"ts" => found.time = Some(json.digits()?),
        b"dur" => found.duration = Some(json.digits()?),
        b"pid" => found.process = Some(id_of(&json.text()?)),
        b"tid" => found.thread = Some(id_of(&json.text()?)),
        b"name" => found.name = json.text()?,
        b"cat" => found.category = json.text()?,
        b"scope" => found.scope = json.text()?,
        b"s" => found.instant_scope = json.text()?.first().copied().unwrap_or(0),
        b"id" => {
            let text = name_of(&json.text()?).to_string();
            let is_local = false;
            found.id = Some(JoinId { text, is_local });
        }
        b"id2" if json.peek() == Some(b'{') => json.object(|json, name| {
            let is_local = name == b"local";
            let text = name_of(&json.text()?).to_string();
            found.id = Some(JoinId { text, is_local });
            Ok(())
        })?,
        b"bind_id" => {
            let text = json.text()?;
            found.bind_id = number_of(&text);
            if found.bind_id.is_none() {
                args.push(name, Value::Text(&text));
            }
        }
        b"flow_in" => found.flow_in = *json.text()? == *b"true",
        b"flow_out" => found.flow_out = *json.text()? == *b"true",
        b"args" if json.peek() == Some(b'{') => {
            let begin = args.len();
            json.object(|json, name| {
                // kymo writes the fields of each scope together.
                let is_scope = matches!(
                    name,
                    b"payload" | b"packet_context" | b"common_context" | b"specific_context"
                );
                if !is_scope || json.peek() != Some(b'{') {
                    return argument(json, name, args, &mut found.deep);
                }
                let scope = if name == b"payload" { &[][..] } else { name };
                json.object(|json, name| match scope {
                    [] => argument(json, name, args, &mut found.deep),
                    scope => {
                        let name = [scope, name].join(&b'.');
                        argument(json, &name, args, &mut found.deep)
                    }
                })
            })?;
            found.args = begin..args.len();
        }
        _ => argument(json, name, args, &mut found.deep)?,
    }
    Ok(())
}

fn argument(
    json: &mut Json<'_>,
    name: &[u8],
    args: &mut Args,
    deep: &mut u64,
) -> Result<(), Wrong> {
    match json.peek() {
        Some(b'"') => {
            let text = json.string()?;
            // Numbers that are not finite, as kymo writes them: they are shown as this text.
            let value = match &*text {
                b"NaN" => Value::Float(f64::NAN),
                b"Infinity" => Value::Float(f64::INFINITY),
                b"-Infinity" => Value::Float(f64::NEG_INFINITY),
                text => Value::Text(text),
            };
            args.push(name, value);
        }
        Some(b'{' | b'[') => {
            let raw = json.raw()?;
            match raw.depth > MOST_DEPTH {
                true => *deep += 1,
                false => args.push(name, Value::Json(raw.text)),
            }
        }
        _ => match json.word()? {
            b"null" => {}
            b"true" => args.push(name, Value::Bool(true)),
            b"false" => args.push(name, Value::Bool(false)),
            word => args.push(name, number::value(word).unwrap_or(Value::Text(word))),
        },
    }
    Ok(())
}

/// A process or a thread, which mostly is a number.
fn id_of(text: &[u8]) -> Id {
    let number = str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    number.map_or_else(|| Id::Text(name_of(text)), Id::Number)
}

/// The number that joins events of a flow.
fn number_of(text: &[u8]) -> Option<u64> {
    let text = str::from_utf8(text).ok()?;
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Values that may be strings or words.
trait Texts<'a> {
    /// What a string has, or a word; of anything else what is written there.
    fn text(&mut self) -> Result<Cow<'a, [u8]>, Wrong>;

    /// The same of a number, which may be in quotes.
    fn digits(&mut self) -> Result<&'a [u8], Wrong>;
}

impl<'a> Texts<'a> for Json<'a> {
    fn text(&mut self) -> Result<Cow<'a, [u8]>, Wrong> {
        match self.peek() {
            Some(b'"') => self.string(),
            _ => self.raw().map(|raw| Cow::Borrowed(raw.text)),
        }
    }

    fn digits(&mut self) -> Result<&'a [u8], Wrong> {
        match self.text()? {
            Cow::Borrowed(text) => Ok(text),
            // No number needs an escape.
            Cow::Owned(_) => Ok(b""),
        }
    }
}
