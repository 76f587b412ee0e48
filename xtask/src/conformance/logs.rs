//! Event logs, beside what VPP's own programs print and make of them.

use std::fmt::Write as _;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use kymo_cpel::convert::cpel_of_elog;
use kymo_cpel::definitions::{InFile, Reference};
use kymo_cpel::elog::Recording as Elog;
use kymo_cpel::file::File;
use kymo_cpel::recording::{Options, Recording as Cpel};
use kymo_cpel::rewrite::rewrite;
use kymo_cpel::write;
use kymo_io::Bytes;
use kymo_machine::ByteOrder;
use kymo_model::{Cursor, Event, FieldId, Recording, Visitor};

use super::{Setting, Verdict, cases, difference};
use crate::Outcome;

/// The least width of a column of cpeldump.
const LEAST_WIDTH: usize = 5;
/// Where the date is in a CPEL file, which conversions do not share.
const DATE: std::ops::Range<usize> = 4..8;

impl Setting {
    fn logs(&self) -> PathBuf {
        self.traces.with_file_name("cpel")
    }
}

/// Checks each file below the folder of the logs whose name ends with `suffix`.
fn each(
    setting: &Setting,
    suffix: &str,
    check: fn(&Path, &[u8]) -> Result<(), String>,
) -> Outcome<Vec<Verdict>> {
    let logs = setting.logs();
    let names = cases(&logs, "", suffix)?;
    if names.is_empty() {
        return Err(format!("no logs at {}", logs.display()).into());
    }
    names
        .into_iter()
        .map(|case| {
            let path = logs.join(format!("{case}{suffix}"));
            let bytes = std::fs::read(&path)?;
            Ok(Verdict::new(format!("cpel/{case}"), check(&path, &bytes)))
        })
        .collect()
}

/// The text of an event, and the name of its track.
#[derive(Default)]
struct Texts(Vec<Vec<u8>>);

impl Visitor for Texts {
    fn text(&mut self, _field: FieldId, text: &[u8]) {
        self.0.push(text.to_vec());
    }
}

/// Calls `show` with each event, the name of its track and its text.
fn each_event<R: Recording>(
    of: &R,
    stream: usize,
    mut show: impl FnMut(u64, &str, &str, &str),
) -> Result<(), String> {
    for chunk in of.chunks(stream) {
        let mut cursor = of.cursor(&chunk);
        while let Some(event) = cursor
            .next_event()
            .map_err(|fault| fault.code.to_string())?
        {
            let mut texts = Texts::default();
            let visited = event.visit(&mut texts);
            visited.map_err(|fault| fault.code.to_string())?;
            let text = |text: Option<&Vec<u8>>| {
                String::from_utf8_lossy(text.map_or(&b""[..], Vec::as_slice)).into_owned()
            };
            let name = event.class().name.as_deref().unwrap_or_default();
            let (track, text) = (text(texts.0.first()), text(texts.0.last()));
            show(event.ticks().unwrap_or(0), &track, name, &text);
        }
    }
    Ok(())
}

/// The events of each CPEL file of which there is a text are those that cpeldump prints; those of
/// its little-endian twin, which cpeldump refuses, are the same.
pub(super) fn dumps(setting: &Setting) -> Outcome<Vec<Verdict>> {
    let logs = setting.logs();
    let mut verdicts = Vec::new();
    for case in cases(&logs, "", ".cpeldump.txt")? {
        let expected = std::fs::read(logs.join(format!("{case}.cpeldump.txt")))?;
        let expected = without_second_number(&String::from_utf8_lossy(&expected));
        for case in [case.clone(), format!("{case}_le")] {
            let path = logs.join(format!("{case}.cpel"));
            if path.exists() {
                let bytes = std::fs::read(&path)?;
                let found = Cpel::new(&path, Bytes::from(bytes.clone()), &Options::default())
                    .map_err(|error| error.to_string())
                    .and_then(|of| dump(&of, &bytes));
                let result =
                    found.and_then(|found| difference(&expected, &without_second_number(&found)));
                verdicts.push(Verdict::new(format!("cpel/{case}"), result));
            }
        }
    }
    Ok(verdicts)
}

/// A dump without what the second conversion of `0x%08x(%d)` shows: cpeldump takes that number
/// from nowhere.
fn without_second_number(dump: &str) -> String {
    let line = |line: &str| match line.rsplit_once('(') {
        Some((before, number)) if number.ends_with(')') && before.contains(" 0x") => {
            format!("{before}\n")
        }
        _ => format!("{line}\n"),
    };
    dump.lines().map(line).collect()
}

/// The events as cpeldump lays them out.
fn dump(of: &Cpel, bytes: &[u8]) -> Result<String, String> {
    let names = InFile {
        bytes,
        strings: &[],
        symbols: &[],
    };
    let width = |longest: usize, name: &Reference| match name {
        Reference::At(place) => longest.max(names.text(place).len()),
        Reference::None | Reference::Bad(_) => longest,
    };
    let definitions = of.definitions();
    let tracks = definitions.tracks.iter().map(|track| &track.name);
    let events = definitions.events.iter().map(|event| &event.name);
    let track_width = tracks.fold(LEAST_WIDTH, width);
    let name_width = events.fold(LEAST_WIDTH, width);
    let mut text = String::new();
    for (stream, info) in of.streams().iter().enumerate() {
        let per_second = info.clock.as_ref().map_or(1, |clock| clock.frequency);
        let ticks_per_us = per_second as f64 / 1e6;
        let micros = |ticks: u64| (ticks as f64 / ticks_per_us) as u64;
        let mut first = None;
        each_event(of, stream, |ticks, track, name, datum| {
            let us = micros(ticks).wrapping_sub(*first.get_or_insert(micros(ticks)));
            let (ms, us) = (us / 1000, us % 1000);
            let (s, ms) = (ms / 1000, ms % 1000);
            let (minutes, s) = (s / 60, s % 60);
            let (h, minutes) = (minutes / 60, minutes % 60);
            let _ = writeln!(
                text,
                "{h:03}:{minutes:02}:{s:02}:{ms:03}:{us:03} {track:track_width$} {name:name_width$} {datum}"
            );
        })?;
    }
    Ok(text)
}

/// The events of each elog file are those that elog_dump prints.
pub(super) fn elog_dumps(setting: &Setting) -> Outcome<Vec<Verdict>> {
    each(setting, ".elog", |path, bytes| {
        let expected = std::fs::read_to_string(path.with_extension("elog_dump.txt"));
        let expected = expected.map_err(|error| error.to_string())?;
        let file = Bytes::from(bytes.to_vec());
        let of = Elog::new(path, file, &Options::default()).map_err(|error| error.to_string())?;
        let mut text = format!("{} events\n", of.events());
        each_event(&of, 0, |ticks, track, _, event| {
            let (s, ns) = (ticks / 1_000_000_000, ticks % 1_000_000_000);
            let s = if s == 0 { String::new() } else { s.to_string() };
            let _ = writeln!(text, "{s:>8}.{ns:09} {track:24} {event}");
        })?;
        difference(&expected, &text)
    })
}

/// Each elog file becomes the CPEL file that c2cpel made of it, but for the date.
pub(super) fn elog_conversions(setting: &Setting) -> Outcome<Vec<Verdict>> {
    each(setting, ".elog", |path, bytes| {
        let mut expected =
            std::fs::read(path.with_extension("cpel")).map_err(|error| error.to_string())?;
        let options = write::Options {
            padding: write::Padding::Eight,
            clock: NonZeroU32::new(1_000_000_000).expect("it is not zero"),
            ..write::Options::default()
        };
        let mut made = Vec::new();
        cpel_of_elog(bytes, options)
            .map_err(|error| error.to_string())?
            .write(&mut made)
            .map_err(|error| error.to_string())?;
        expected[DATE].fill(0);
        same(&expected, &made)
    })
}

/// Each whole CPEL file is copied byte for byte, and comes back from the other byte order; what
/// it becomes in that order is its twin, where it has one. A copy of a damaged file has the same
/// sections and no damage.
pub(super) fn copies(setting: &Setting) -> Outcome<Vec<Verdict>> {
    each(setting, ".cpel", |path, bytes| {
        let file = match File::open(bytes) {
            Ok(file) => file,
            Err(error) => {
                let refused = ["truncated_header", "version2"];
                let name = path.file_stem().unwrap_or_default();
                return match refused.iter().any(|refused| name == *refused) {
                    true => Ok(()),
                    false => Err(error.to_string()),
                };
            }
        };
        let other = match file.header.order {
            ByteOrder::Big => ByteOrder::Little,
            ByteOrder::Little => ByteOrder::Big,
        };
        let copy = |file: &File<'_>, order| {
            let mut copy = Vec::new();
            rewrite(file, order, &mut copy).map_err(|error| error.to_string())?;
            Ok::<_, String>(copy)
        };
        if !file.findings.is_empty() {
            let copy = copy(&file, file.header.order)?;
            let copy = File::open(&copy).map_err(|error| error.to_string())?;
            let data = |file: &File<'_>| -> Vec<(u32, Vec<u8>)> {
                let sections = file.sections.iter();
                let data = sections.map(|section| (section.kind, file.data(section).to_vec()));
                data.collect()
            };
            return match copy.findings.is_empty() && data(&copy) == data(&file) {
                true => Ok(()),
                false => Err("the copy is damaged".to_string()),
            };
        }
        same(bytes, &copy(&file, file.header.order)?)?;
        let there = copy(&file, other)?;
        let stem = path.with_extension("");
        if let Ok(twin) = std::fs::read(format!("{}_le.cpel", stem.display())) {
            same(&twin, &there)?;
        }
        let there = File::open(&there).map_err(|error| error.to_string())?;
        same(bytes, &copy(&there, file.header.order)?)
    })
}

fn same(expected: &[u8], found: &[u8]) -> Result<(), String> {
    match expected.iter().zip(found).position(|(a, b)| a != b) {
        Some(at) => Err(format!("byte {at} differs")),
        None if expected.len() != found.len() => {
            Err(format!("{} bytes and not {}", found.len(), expected.len()))
        }
        None => Ok(()),
    }
}
