//! Command lines from standard input, one after the other: rrdtool's `-`.

use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, Instant};

use memchr::{memchr, memchr_iter, memchr2};

use crate::failure::reason;
use crate::options::emptied;
use crate::path::{path, shown};
use crate::{Failure, Session, find, run, usage};

/// A line is not longer than this.
const LONGEST_LINE: usize = 1 << 26;
/// Bytes of a block that is given back, so that memory is kept. Nothing is in it, so it costs nothing.
const KEPT: usize = 8 << 20;
/// Bytes that are read at once.
const AT_ONCE: usize = 1 << 16;
/// The times of `OK` lines are given in hundredths of a second: they need not be fresher.
const FRESH: Duration = Duration::from_millis(2);
/// Number of files that are kept free for what is not an update.
const FREE: usize = 16;
/// No more databases stay open than this.
const MOST_FILES: usize = 1 << 13;

/// Does what command lines ask, until they end or one is `quit`. After each comes a line `OK` with the
/// seconds that were used, or one with `ERROR` and what went wrong. What was written arrives before
/// more lines are waited for, so that a program can wait for the answer to each.
///
/// # Errors
///
/// Where the input cannot be read or the output not be written. No command's failure is one.
pub fn pipe(session: &mut Session<'_>, input: &mut dyn Read) -> Result<(), Failure> {
    // Standard input, output and error are open too.
    let most = kymo_io::most_open_files().saturating_sub(FREE);
    session.files.set_room(most.min(MOST_FILES));
    session.reads_lines = true;
    // The C library of GNU keeps twice as much memory for the next line as the largest block that was ever given back;
    // to begin with, hardly that of a picture. To get that memory from the system again takes a fifth of its time.
    drop(std::hint::black_box(Vec::<u8>::with_capacity(KEPT)));
    let mut pipe = Pipe {
        session,
        times: Times::new(),
        words: Vec::new(),
    };
    let mut lines = Lines::new(input);
    while let Some(line) = lines.next(pipe.session)? {
        if !pipe.answer(line)? {
            break;
        }
    }
    pipe.session.flush()
}

/// Lines, and what is read of those to come.
struct Lines<'a> {
    input: &'a mut dyn Read,
    bytes: Vec<u8>,
    /// Where the next line begins.
    begin: usize,
    /// No line ends before this.
    searched: usize,
    /// Bytes that were read.
    end: usize,
}

impl<'a> Lines<'a> {
    fn new(input: &'a mut dyn Read) -> Self {
        Self {
            input,
            bytes: Vec::new(),
            begin: 0,
            searched: 0,
            end: 0,
        }
    }

    /// The next line, to be changed at will. Before more is read, output is flushed.
    fn next(&mut self, session: &mut Session<'_>) -> Result<Option<&mut [u8]>, Failure> {
        loop {
            let new = &self.bytes[self.searched..self.end];
            if let Some(length) = memchr(b'\n', new) {
                let (begin, end) = (self.begin, self.searched + length);
                self.begin = end + 1;
                self.searched = self.begin;
                return Ok(Some(&mut self.bytes[begin..end]));
            }
            self.searched = self.end;
            if self.end - self.begin > LONGEST_LINE {
                let message = format!("a line has more than {LONGEST_LINE} bytes");
                return Err(Failure::new(message));
            }
            session.flush()?;
            if self.read()? == 0 {
                // The last line need not end.
                let line = self.begin..self.end;
                self.begin = self.end;
                return Ok((!line.is_empty()).then(|| &mut self.bytes[line]));
            }
        }
    }

    fn read(&mut self) -> Result<usize, Failure> {
        if self.begin > 0 {
            self.bytes.copy_within(self.begin..self.end, 0);
            self.end -= self.begin;
            self.searched -= self.begin;
            self.begin = 0;
        }
        if self.bytes.len() < self.end + AT_ONCE {
            self.bytes.resize(self.end + AT_ONCE, 0);
        }
        loop {
            match self.input.read(&mut self.bytes[self.end..]) {
                Ok(count) => {
                    self.end += count;
                    return Ok(count);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let message = format!("reading command lines: {}", reason(&error));
                    return Err(Failure::new(message));
                }
            }
        }
    }
}

struct Pipe<'p, 'a> {
    session: &'p mut Session<'a>,
    times: Times,
    /// Memory for the words of the next line.
    words: Vec<&'static [u8]>,
}

impl Pipe<'_, '_> {
    /// Does what a line asks, and reports how that went. Returns whether there may be more lines.
    fn answer(&mut self, line: &mut [u8]) -> Result<bool, Failure> {
        let mut words = emptied(std::mem::take(&mut self.words));
        let done = match split(line, &mut words) {
            false => Err(Failure::new("creating arguments")),
            true if words == [b"quit".as_slice()] => return Ok(false),
            true => self.run(&words),
        };
        self.words = emptied(words);
        match done {
            Ok(()) => {
                let times = self.times.text();
                self.session.write(times)?;
            }
            Err(Failure::Message(message)) => {
                self.session.write(format!("ERROR: {message}\n"))?;
            }
            Err(failure) => return Err(failure),
        }
        Ok(true)
    }

    fn run(&mut self, words: &[&[u8]]) -> Result<(), Failure> {
        match words {
            [b"cd", rest @ ..] => self.change_directory(parameter("cd", rest)?),
            [b"mkdir", rest @ ..] => {
                let word = parameter("mkdir", rest)?;
                std::fs::create_dir(path(word))
                    .map_err(|error| Failure::new(reported("mkdir ", word, ": ", &error)))
            }
            [b"pwd", rest @ ..] => {
                no_parameter("pwd", rest)?;
                self.print_directory()
            }
            [b"ls", rest @ ..] => {
                no_parameter("ls", rest)?;
                self.list()
            }
            [b"quit", ..] => no_parameter("quit", &words[1..]),
            [] => self.session.write(usage(None)),
            [b"help", rest @ ..] => {
                let command = rest.first().and_then(|name| find(name));
                self.session.write(usage(command))
            }
            [name] if find(name).is_none() => self.session.write(usage(None)),
            [name] => self.session.write(usage(find(name))),
            [name, ..] => run(self.session, words).unwrap_or_else(|| {
                let name = shown(name);
                Err(Failure::new(format!("unknown function '{name}'")))
            }),
        }
    }

    fn change_directory(&mut self, word: &[u8]) -> Result<(), Failure> {
        // The same words name other files there.
        self.session.files.clear();
        std::env::set_current_dir(path(word))
            .map_err(|error| Failure::new(reported("chdir ", word, " ", &error)))
    }

    fn print_directory(&mut self) -> Result<(), Failure> {
        let directory = std::env::current_dir()
            .map_err(|error| Failure::new(format!("getcwd {}", reason(&error))))?;
        self.session
            .write(directory.as_os_str().as_encoded_bytes())?;
        self.session.write("\n")
    }

    /// Prints which directories and databases there are.
    fn list(&mut self) -> Result<(), Failure> {
        let failed = |error| Failure::new(reported("opendir ", b".", ": ", &error));
        let mut lines = vec![b"d .\n".to_vec(), b"d ..\n".to_vec()];
        let entries = std::fs::read_dir(Path::new(".")).map_err(failed)?;
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry.map_err(failed)?;
            // What is gone meanwhile is not there.
            let Ok(what) = entry.path().metadata() else {
                continue;
            };
            let name = entry.file_name().into_encoded_bytes();
            if what.is_dir() {
                found.push([b"d ", name.as_slice(), b"\n"].concat());
            } else if what.is_file() && name.ends_with(b".rrd") {
                found.push([b"- ", name.as_slice(), b"\n"].concat());
            }
        }
        found.sort_by(|one, other| one[2..].cmp(&other[2..]));
        lines.append(&mut found);
        self.session.write(lines.concat())
    }
}

fn reported(before: &str, word: &[u8], between: &str, error: &io::Error) -> String {
    format!("{before}{}{between}{}", shown(word), reason(error))
}

fn parameter<'a>(command: &str, words: &[&'a [u8]]) -> Result<&'a [u8], Failure> {
    match *words {
        [word] => Ok(word),
        _ => Err(parameter_count(command)),
    }
}

fn no_parameter(command: &str, words: &[&[u8]]) -> Result<(), Failure> {
    match words {
        [] => Ok(()),
        _ => Err(parameter_count(command)),
    }
}

fn parameter_count(command: &str) -> Failure {
    Failure::new(format!("invalid parameter count for {command}"))
}

/// Appends the words of a line, in its own memory. Returns whether that can be done: not where a
/// quotation does not end.
///
/// Spaces separate words, and nothing else does. What stands between two equal quotation marks,
/// single or double, is taken as it is, and the marks go. Blanks and the like at the end of a line
/// are not looked at.
fn split<'a>(line: &'a mut [u8], words: &mut Vec<&'a [u8]>) -> bool {
    let end = line.iter().rposition(|&byte| byte > b' ');
    let end = end.map_or(0, |last| last + 1);
    if memchr2(b'"', b'\'', &line[..end]).is_none() {
        // Most lines are without.
        let line = &line[..end];
        let mut begin = 0;
        for space in memchr_iter(b' ', line).chain([end]) {
            if space > begin {
                words.push(&line[begin..space]);
            }
            begin = space + 1;
        }
        return true;
    }
    let mut quoted = Vec::new();
    // What is kept moves to the front.
    let mut to = 0;
    let mut word: Option<usize> = None;
    let mut quote = None;
    for from in 0..end {
        let byte = line[from];
        match quote {
            Some(mark) if byte == mark => quote = None,
            None if byte == b' ' => {
                if let Some(begin) = word.take() {
                    quoted.push(begin..to);
                }
            }
            None if byte == b'"' || byte == b'\'' => {
                quote = Some(byte);
                word.get_or_insert(to);
            }
            _ => {
                word.get_or_insert(to);
                line[to] = byte;
                to += 1;
            }
        }
    }
    quoted.extend(word.map(|begin| begin..to));
    let line = &*line;
    words.extend(quoted.into_iter().map(|word| &line[word]));
    quote.is_none()
}

/// The times that `OK` lines report: of this process, in user mode and within the system, and since it
/// began.
struct Times {
    began: Instant,
    /// When they were found out.
    reported: Option<Instant>,
    text: String,
}

impl Times {
    fn new() -> Self {
        Self {
            began: Instant::now(),
            reported: None,
            text: String::new(),
        }
    }

    fn text(&mut self) -> &str {
        let now = Instant::now();
        let fresh = self.reported.is_some_and(|reported| now - reported < FRESH);
        if !fresh {
            let (user, system) = kymo_io::cpu_times();
            let real = now - self.began;
            let [user, system, real] = [user, system, real].map(|time| time.as_secs_f64());
            self.text = format!("OK u:{user:.2} s:{system:.2} r:{real:.2}\n");
            self.reported = Some(now);
        }
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Option<Vec<String>> {
        let mut line = line.as_bytes().to_vec();
        let mut words = Vec::new();
        let text = |word: &&[u8]| String::from_utf8(word.to_vec()).unwrap();
        split(&mut line, &mut words).then(|| words.iter().map(text).collect())
    }

    /// As rrdtool 1.7.2 splits them.
    #[test]
    fn words_are_split_at_spaces() {
        for (line, expected) in [
            ("", &[][..]),
            ("  last   a.rrd \t\r", &["last", "a.rrd"]),
            ("last\ta.rrd", &["last\ta.rrd"]),
            ("last a\".r\"rd 'b c'", &["last", "a.rrd", "b c"]),
            ("last \"\" 'a\"b'", &["last", "", "a\"b"]),
            ("last a\\.rrd", &["last", "a\\.rrd"]),
        ] {
            assert_eq!(words(line).unwrap(), expected, "{line:?}");
        }
        for line in ["last \"a", "last 'a\"", "last a\\\"b"] {
            assert_eq!(words(line), None, "{line:?}");
        }
    }
}
