//! Commands that look into files, or make them.

use std::borrow::Cow;
use std::fs::{File, Metadata};
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use kymo_io::reason;
use kymo_io::{Access, Bytes, Locking, NewFile, lock_to_read};
use kymo_rrd::engine::{Fetched, Wanted, fetch};
use kymo_rrd::model::ArchiveKind;
use kymo_rrd::text::xml::{DumpOptions, dump};
use kymo_rrd::{Form, Source, Value};
use kymo_rrdtool::times::EARLIEST;
use kymo_rrdtool::{Defaults, Failure, LocalZone, Place, Session, run, tune};
use kymo_text::Line;

use super::commands::Command;
use super::{Client, Goes, PIECE, Words};
use crate::store::{Flushed, path_of};
use crate::sync::lock;

/// Files that are longer, in bytes, are not copied before their rows are sent.
const LONGEST_COPY: u64 = 1 << 26;
/// The seconds of a day.
const DAY: i64 = 86_400;
/// Databases of more values are not made for clients, since all are in memory then.
const MOST_VALUES: u64 = 1 << 25;
/// Words of a command line of `TUNE`.
const MOST_WORDS: i64 = 1 << 16;
/// No more rows are sent, unless the archive has more: most would be of times that nobody meant.
const MOST_ROWS: u64 = 1 << 24;

impl<S: Read + Write> Client<'_, S> {
    /// What rrdtool's command says, or why it does not. A database that it makes gets its name so.
    fn run(&self, words: &[&[u8]], place: Option<&Place<'_>>) -> Result<Vec<u8>, String> {
        self.with_session(place, |session| {
            let done = run(session, words);
            done.unwrap_or_else(|| Err(Failure::new("there is no such command")))
        })
    }

    /// What is written in a session of rrdtool's commands, or why not.
    fn with_session(
        &self,
        place: Option<&Place<'_>>,
        work: impl FnOnce(&mut Session<'_>) -> Result<(), Failure>,
    ) -> Result<Vec<u8>, String> {
        let (mut out, mut warnings) = (Vec::new(), Vec::new());
        let defaults = Defaults {
            format: self.shared.store.options().target,
            ..Defaults::default()
        };
        let mut session = Session::new(&mut out, &mut warnings, defaults);
        session.most_values = Some(MOST_VALUES);
        session.durable = self.shared.store.is_durable();
        session.place = place;
        // It may be this daemon that writes the file.
        session.locking = Locking::Briefly;
        match work(&mut session) {
            Ok(()) => Ok(out),
            Err(failure) => Err(failure.to_string()),
        }
    }

    /// Reports where the step of the last accepted update begins, pending or not.
    pub(super) fn last(&mut self, path: &[u8]) {
        let opened = Bytes::open_locked(path_of(path), Access::Random, Locking::Briefly).ok();
        let found = opened.and_then(|bytes| {
            let whole = Source::complete(&bytes).ok()?;
            let database = Source::open(&whole, None).ok()?.database;
            Some((database.state.last_update, database.step))
        });
        let Some((in_file, step)) = found else {
            // It says why.
            let reported = self.run(&[b"last", path], None);
            return self.report_number(reported);
        };
        let known = self.shared.store.known(path);
        let last = known.map_or(in_file, |database| database.last().max(in_file));
        let step = i64::try_from(step).unwrap_or(i64::MAX);
        let seconds = last.seconds();
        self.done(seconds - seconds.checked_rem_euclid(step).unwrap_or(0));
    }

    pub(super) fn first(&mut self, path: &[u8], index: &[u8]) {
        let index = String::from_utf8_lossy(index);
        if index.parse::<u32>().is_err() {
            return self.refuse(format_args!("Invalid index specified ({index})"));
        }
        let reported = self.run(&[b"first", b"--rraindex", index.as_bytes(), path], None);
        self.report_number(reported);
    }

    fn report_number(&mut self, reported: Result<Vec<u8>, String>) {
        match reported {
            Ok(text) => self.done(String::from_utf8_lossy(&text).trim_end()),
            Err(reason) => self.refuse(format_args!("RRD Error: {reason}")),
        }
    }

    pub(super) fn info(&mut self, path: &[u8]) {
        match self.run(&[b"info", path], None) {
            Err(reason) => self.refuse(format_args!("RRD Error: {reason}")),
            Ok(text) => {
                let lines = text.split(|byte| *byte == b'\n');
                let lines: Vec<_> = lines.filter_map(fact).collect();
                let path = String::from_utf8_lossy(path);
                self.report(format_args!("Info for {path} follows"), &lines);
            }
        }
    }

    pub(super) fn list(&mut self, command: &Command, mut words: Words<'_>) {
        let mut word = words.next();
        let recursive = word.as_deref() == Some(b"RECURSIVE");
        if recursive {
            word = words.next();
        }
        let Some(word) = word.filter(|word| word.starts_with(b"/")) else {
            return self.refuse_usage(command);
        };
        let store = &self.shared.store;
        // The base is the root.
        let path = store.path(&word[1..]);
        let shown = String::from_utf8_lossy(&path);
        if !store.allows(&path) {
            return self.refuse(format_args!("List {shown}: Permission denied"));
        }
        let file = match path_of(&path).metadata() {
            Ok(file) => file,
            Err(error) => return self.refuse(format_args!("List {shown}: {}", reason(&error))),
        };
        if file.is_file() {
            let name = path.rsplit(|byte| *byte == b'/').next();
            return self.report("RRDs", &[name.unwrap_or_default().to_vec()]);
        }
        let request: &[&[u8]] = match recursive {
            true => &[b"list", b"--recursive", &path],
            false => &[b"list", &path],
        };
        match self.run(request, None) {
            Err(reason) => self.refuse(format_args!("List {reason}")),
            Ok(text) => {
                if !self.reserve(3 * text.len()) {
                    return;
                }
                let lines = text.split(|byte| *byte == b'\n');
                let lines = lines.filter(|line| !line.is_empty()).map(<[u8]>::to_vec);
                let lines: Vec<_> = lines.collect();
                self.report("RRDs", &lines);
            }
        }
    }

    pub(super) fn create(&mut self, command: &Command, path: &[u8], words: Words<'_>) {
        let words: Vec<Cow<'_, [u8]>> = words.collect();
        let mut request: Vec<Cow<'_, [u8]>> = vec![b"create".into(), path.into()];
        let mut rest = words.iter();
        while let Some(option) = rest
            .as_slice()
            .first()
            .filter(|word| word.starts_with(b"-"))
        {
            rest.next();
            if option.as_ref() == b"-O" {
                request.push(b"--no-overwrite".into());
                continue;
            }
            let Some(value) = rest.next() else {
                return self.refuse_usage(command);
            };
            match option.as_ref() {
                b"-b" => {
                    let start = number(value).filter(|start| *start >= EARLIEST);
                    let Some(start) = start else {
                        return self.refuse("The first entry must be after 1980.");
                    };
                    request.extend([b"--start".into(), start.to_string().into_bytes().into()]);
                }
                // librrd sends 0 if its caller did not specify a step.
                b"-s" if number(value) == Some(0) => {}
                b"-s" => request.extend([b"--step".into(), value.clone()]),
                b"-r" | b"-t" => {
                    let store = &self.shared.store;
                    let source = store.path(value);
                    if !store.allows(&source) {
                        let source = String::from_utf8_lossy(&source);
                        return self.refuse(format_args!("{source}: Permission denied"));
                    }
                    let option: &[u8] = match option.as_ref() {
                        b"-r" => b"--source",
                        _ => b"--template",
                    };
                    request.extend([option.into(), source.into()]);
                }
                _ => return self.refuse_usage(command),
            }
        }
        if !lock(&self.shared.limits).overwrite {
            request.push(b"--no-overwrite".into());
        }
        let is_definition =
            |word: &Cow<'_, [u8]>| word.starts_with(b"DS:") || word.starts_with(b"RRA:");
        if !rest.as_slice().iter().all(is_definition) {
            return self.refuse_usage(command);
        }
        request.extend(rest.cloned());
        let request: Vec<_> = request.iter().map(AsRef::as_ref).collect();
        // What was asked before is in the journal before it forgets what is pending.
        self.commit();
        let store = &self.shared.store;
        let made = store
            .make_directories(path)
            .and_then(|()| store.check_free(path));
        let made = made.map_err(|error| reason(&error));
        let place = |new| store.put(path, new);
        let _one = lock(&self.shared.creates);
        match made.and_then(|()| self.run(&request, Some(&place))) {
            Err(reason) => self.refuse(format_args!("RRD Error: {reason}")),
            Ok(_) => self.done("RRD created OK"),
        }
    }

    /// Changes a database, while no update of it is written. What comes meanwhile is written afterwards.
    pub(super) fn tune(
        &mut self,
        command: &Command,
        path: &[u8],
        mut words: Words<'_>,
    ) -> io::Result<()> {
        let Some(count) = words.next() else {
            self.refuse_usage(command);
            return Ok(());
        };
        let Some(count) = number(&count).filter(|count| (1..=MOST_WORDS).contains(count)) else {
            let count = String::from_utf8_lossy(&count);
            self.refuse(format_args!("Invalid argument count specified: {count}"));
            return Ok(());
        };
        let words: Vec<Cow<'_, [u8]>> = words.collect();
        if words.len() as i64 != count {
            let found = words.len();
            self.refuse(format_args!("found {found} arguments, expected {count}"));
            return Ok(());
        }
        if !self.write_pending(path)? {
            return Ok(());
        }
        // What concerns the client and its machine.
        let is_ours = |word: &&[u8]| {
            let name = word.strip_prefix(b"--").unwrap_or_default();
            let name = name.split(|byte| *byte == b'=').next();
            !matches!(name, Some(b"wait" | b"locking"))
        };
        let words: Vec<&[u8]> = words[1..].iter().map(AsRef::as_ref).collect();
        if !words.iter().all(is_ours) {
            self.refuse_usage(command);
            return Ok(());
        }
        let store = &self.shared.store;
        let place = |mut new: NewFile| {
            new.rename()?;
            new.sync_name()
        };
        let _one = lock(&self.shared.creates);
        let done = store.change(path, || {
            self.with_session(Some(&place), |session| tune(session, path, &words))
        });
        match done {
            Err(reason) => self.refuse(format_args!("Got error {reason}")),
            Ok(_) => self.done("Success"),
        }
        Ok(())
    }

    /// Writes what is pending of a database.
    fn flush_quietly(&self, path: &[u8]) -> Result<(), String> {
        let store = &self.shared.store;
        match store.known(path).map(|database| store.flush(&database)) {
            Some(Flushed::Failed(reason)) => Err(reason),
            _ => Ok(()),
        }
    }

    /// Writes what waits for a file, before the file itself is looked at. `false`, with the reply given, if it cannot be
    /// written.
    fn write_pending(&mut self, path: &[u8]) -> io::Result<bool> {
        self.settle()?;
        let Err(reason) = self.flush_quietly(path) else {
            return Ok(true);
        };
        let path = String::from_utf8_lossy(path);
        self.refuse(format_args!("{path}: {reason}"));
        Ok(false)
    }

    /// Sends a database as XML, behind which the connection ends.
    pub(super) fn dump(&mut self, path: &[u8]) -> io::Result<Goes> {
        self.settle()?;
        match self.send_dump(path)? {
            Ok(()) => Ok(Goes::Away),
            Err(problem) => {
                let path = String::from_utf8_lossy(path);
                self.refuse(format_args!("{path}: {problem}"));
                Ok(Goes::On)
            }
        }
    }

    fn send_dump(&mut self, path: &[u8]) -> io::Result<Result<(), String>> {
        if let Err(reason) = self.flush_quietly(path) {
            return Ok(Err(format!("failed to flush: {reason}")));
        }
        let bytes = match read(path_of(path)) {
            Ok(bytes) => bytes,
            Err(error) => return Ok(Err(format!("failed to stat: {}", reason(&error)))),
        };
        let failed =
            |error: &dyn std::fmt::Display| Ok(Err(format!("failed to relay dump: {error}")));
        let whole = match Source::complete(&bytes) {
            Ok(whole) => whole,
            Err(error) => return failed(&error),
        };
        let source = match Source::open(&whole, None) {
            Ok(source) => source,
            Err(error) => return failed(&error),
        };
        let (database, rows) = (&source.database, &source.rows);
        let mut pieces = Pieces(self);
        dump(
            database,
            rows,
            &LocalZone::new(),
            &DumpOptions::default(),
            &mut pieces,
        )?;
        Ok(Ok(()))
    }

    pub(super) fn fetch(
        &mut self,
        command: &Command,
        path: &[u8],
        mut words: Words<'_>,
        binary: bool,
    ) -> io::Result<()> {
        let Some(function) = words.next() else {
            self.refuse_usage(command);
            return Ok(());
        };
        let now = now();
        let (start, end) = match span(&mut words, now) {
            Ok(span) => span,
            Err(problem) => {
                self.refuse(problem);
                return Ok(());
            }
        };
        let columns: Vec<_> = words.collect();
        let Some(function) = ArchiveKind::known(&function) else {
            let function = String::from_utf8_lossy(&function);
            self.refuse(format_args!(
                "rrd_fetch_r failed: unknown consolidation function '{function}'"
            ));
            return Ok(());
        };
        if !self.write_pending(path)? {
            return Ok(());
        }
        let wanted = Wanted {
            function,
            start,
            end,
            step: 1,
        };
        match self.rows(path, &wanted, &columns, binary)? {
            Ok(()) => {}
            Err(reason) => self.refuse(reason),
        }
        Ok(())
    }

    /// Sends rows, or the reason why it cannot.
    fn rows(
        &mut self,
        path: &[u8],
        wanted: &Wanted<'_>,
        columns: &[Cow<'_, [u8]>],
        binary: bool,
    ) -> io::Result<Result<(), String>> {
        let shown = String::from_utf8_lossy(path);
        let failed = |problem: String| Ok(Err(format!("rrd_fetch_r failed: {problem}")));
        if wanted.end < wanted.start {
            let (start, end) = (wanted.start, wanted.end);
            return failed(format!("the end ({end}) is before the start ({start})"));
        }
        let bytes = match read(path_of(path)) {
            Ok(bytes) => bytes,
            Err(error) => return failed(format!("opening '{shown}': {}", reason(&error))),
        };
        let whole = Source::complete(&bytes);
        let source = match whole.as_ref().map(|whole| Source::open(whole, None)) {
            Ok(Ok(source)) => source,
            Ok(Err(error)) => return failed(format!("'{shown}': {error}")),
            Err(error) => return failed(format!("'{shown}': {error}")),
        };
        let Some(fetched) = fetch(&source.database, &source.rows, wanted) else {
            return failed("the RRD does not contain an RRA matching the chosen CF".into());
        };
        let names: Vec<_> = source
            .database
            .sources
            .iter()
            .map(|source| source.name.as_bytes())
            .collect();
        let mut places: Vec<usize> = (0..names.len()).collect();
        if columns.len() > names.len() {
            return Ok(Err("too many fields given - duplicates!".to_string()));
        }
        if !columns.is_empty() {
            places.clear();
            for column in columns {
                let Some(place) = names.iter().position(|name| *name == column.as_ref()) else {
                    let column = String::from_utf8_lossy(column);
                    return Ok(Err(format!("field {column} not found in {shown}")));
                };
                if places.contains(&place) {
                    let column = String::from_utf8_lossy(column);
                    return Ok(Err(format!("field {column} already used")));
                }
                places.push(place);
            }
        }
        let rows = source.database.archives[fetched.archive].rows;
        let most = rows.max(MOST_ROWS);
        let found = fetched.count();
        if found > most {
            return failed(format!("found {found} rows, expected at most {most}"));
        }
        let table = Table {
            unknown: unknown(&source),
            fetched,
            names: places.iter().map(|place| names[*place]).collect(),
            places,
        };
        match binary {
            true => self.table_in_binary(&table)?,
            false => self.table(&table)?,
        }
        Ok(Ok(()))
    }

    fn head(&mut self, table: &Table<'_>, lines: u64) {
        let fetched = &table.fetched;
        let _ = write!(
            self.out,
            "{lines} Success\nFlushVersion: 1\nStart: {}\nEnd: {}\nStep: {}\nDSCount: {}\n",
            fetched.start,
            fetched.end,
            fetched.step,
            table.places.len()
        );
    }

    fn table(&mut self, table: &Table<'_>) -> io::Result<()> {
        self.head(table, table.fetched.count().saturating_add(6));
        let names = table.names.join(b" ".as_slice());
        self.out
            .extend([b"DSName: ".as_slice(), &names, b"\n"].concat());
        let mut line = Line::new();
        for (time, row) in table.fetched.iter() {
            line.clear();
            line.signed(time);
            line.push_byte(b':');
            for &place in &table.places {
                line.push_byte(b' ');
                let bits = row.and_then(|row| row.bits(place)).unwrap_or(table.unknown);
                line.scientific(f64::from_bits(bits), 17);
            }
            line.push_byte(b'\n');
            self.push_piece(line.as_bytes())?;
        }
        Ok(())
    }

    fn table_in_binary(&mut self, table: &Table<'_>) -> io::Result<()> {
        self.head(table, table.places.len() as u64 + 5);
        let count = table.fetched.count();
        for (name, &place) in table.names.iter().zip(&table.places) {
            let form = format!(": BinaryData {count} 8 LITTLE\n");
            self.push_piece(&[b"DSName-", *name, form.as_bytes()].concat())?;
            for (_, row) in table.fetched.iter() {
                let bits = row.and_then(|row| row.bits(place)).unwrap_or(table.unknown);
                self.push_piece(&bits.to_le_bytes())?;
            }
            self.push_piece(b"\n")?;
        }
        Ok(())
    }

    /// Appends a piece of an answer, and sends what there is when it is enough.
    fn push_piece(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.extend_from_slice(bytes);
        match self.out.len() < PIECE {
            true => Ok(()),
            false => self.settle(),
        }
    }
}

/// An answer that is written piece by piece.
struct Pieces<'c, 'a, S>(&'c mut Client<'a, S>);

impl<S: Read + Write> Write for Pieces<'_, '_, S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.push_piece(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The bytes of a file. Clients may take long to read what is sent of it, and a mapping would end the
/// daemon if the file is truncated meanwhile: only files that are too long for memory have one.
fn read(path: &Path) -> io::Result<Bytes> {
    let is_short = |file: Metadata| file.is_file() && file.len() <= LONGEST_COPY;
    if !path.metadata().is_ok_and(is_short) {
        return Bytes::open(path, Access::Sequential);
    }
    let mut bytes = Vec::new();
    let file = File::open(path)?;
    // A file on a file system without locks can be read anyway.
    match lock_to_read(&file, Locking::Briefly) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            return Err(io::Error::new(error.kind(), "another program writes it"));
        }
        _ => {}
    }
    // It may have grown.
    file.take(LONGEST_COPY + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 <= LONGEST_COPY {
        true => Ok(bytes.into()),
        false => Err(io::ErrorKind::FileTooLarge.into()),
    }
}

/// Rows to send.
struct Table<'a> {
    fetched: Fetched<'a>,
    /// The names of the data sources to send.
    names: Vec<&'a [u8]>,
    places: Vec<usize>,
    /// The bits of what is not known.
    unknown: u64,
}

/// The NaN of rows that an archive does not have: that of the machine that wrote the file.
fn unknown(source: &Source<'_>) -> u64 {
    match &source.form {
        Form::Native(detection) => detection.machine.file_nan(),
        _ => Value::UNKNOWN.to_bits(),
    }
}

/// The start and the end that the words specify: values below one are relative to now.
fn span(words: &mut Words<'_>, now: i64) -> Result<(i64, i64), String> {
    let mut time = |which: &str, unless: i64| match words.next() {
        None => Ok(unless),
        Some(word) => match number(&word) {
            Some(time @ 1..) => Ok(time),
            Some(before) => Ok(now.saturating_add(before)),
            None => {
                let word = String::from_utf8_lossy(&word);
                Err(format!(
                    "Cannot parse {which} time `{word}': Only simple integers are allowed."
                ))
            }
        },
    };
    Ok((time("start", now.saturating_sub(DAY))?, time("end", now)?))
}

fn number(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// `KEY = VALUE` as `KEY TYPE VALUE`: 0 for what is measured, 1 for counts, 2 for texts.
fn fact(line: &[u8]) -> Option<Vec<u8>> {
    let line = std::str::from_utf8(line).ok()?;
    let (key, value) = line.split_once(" = ")?;
    let text = value
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'));
    let (kind, value) = match text {
        Some(text) => (2, text),
        None if value.parse::<i64>().is_ok() || value.parse::<u64>().is_ok() => (1, value),
        None => (0, value),
    };
    Some(format!("{key} {kind} {value}").into_bytes())
}

/// Seconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
    })
}
