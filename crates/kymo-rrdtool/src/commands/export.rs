//! `export`: whole histories, in formats that other databases of metrics take.

use std::collections::HashSet;

use kymo_rrd::Source;
use kymo_rrd::model::ArchiveKind;
use kymo_text::Line;

use super::prometheus::{escaped, for_each_database, number};
use super::span::{END, START, Span};
use super::{MACHINE, machine};
use crate::options::{Command, Opt, Words};
use crate::path::shown;
use crate::{Failure, Session};

pub(super) const COMMAND: Command = Command {
    name: "export",
    about: "Write whole histories for Prometheus, InfluxDB or as Parquet files",
    details: "Every known value of every archive with its time, oldest first. openmetrics is what `promtool tsdb \
        create-blocks-from openmetrics` reads, prometheus the text format with milliseconds; both have \
        rrd_value{file,ds,cf,step}. influx is line protocol with nanoseconds: the measurement rrd with the tags \
        file, cf and step, and a field for each data source. Archives of the same function and step are exported \
        once, the longest. parquet is the directory of tables that `kymo convert --to parquet` writes. \
        Directories are searched recursively for databases.",
    operands: "FILE|DIRECTORY...",
    options: &[
        Opt::with(
            None,
            "to",
            "openmetrics|prometheus|influx|parquet",
            "Format of the output",
        ),
        Opt::with(
            Some('o'),
            "output",
            "DIRECTORY",
            "Where to write Parquet files; the other formats are printed",
        ),
        Opt::flag(None, "force", "Overwrite a directory of Parquet files"),
        Opt::with(
            None,
            "function",
            "FUNCTION",
            "Export archives of this function only, such as AVERAGE",
        ),
        START,
        END,
        MACHINE,
    ],
    examples: &[
        "export --to openmetrics /var/lib/collectd/rrd > history.txt",
        "export --to influx --function AVERAGE -s 20240101 -e now load.rrd",
        "export --to parquet -o history/ /var/lib/collectd/rrd",
    ],
    run,
};

/// Approximate size in bytes of the pieces in which text is written.
const PIECE: usize = 1 << 15;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    OpenMetrics,
    Prometheus,
    Influx,
}

fn run(session: &mut Session<'_>, words: &Words<'_>) -> Result<(), Failure> {
    let format = format(words.value("to"))?;
    if words.has("force") || words.value("output").is_some() {
        return Err(Failure::new(
            "--output and --force are for --to parquet: the other formats are printed",
        ));
    }
    let asked = Asked::read(session, words)?;
    let mut export = Export {
        format,
        span: asked.span,
        function: asked.function,
        line: Line::new(),
    };
    if format != Format::Influx {
        let help = "A row of an archive of a round-robin database.";
        session.write(format!("# HELP rrd_value {help}\n# TYPE rrd_value gauge\n"))?;
    }
    let machine = machine(words)?;
    let done = for_each_database(
        session,
        &words.operands,
        machine,
        |session, file, source| export.file(session, file, source),
    );
    if format == Format::OpenMetrics {
        session.write("# EOF\n")?;
    }
    done
}

/// Which histories a command line asks for.
struct Asked<'w> {
    span: (i64, i64),
    function: Option<&'w [u8]>,
}

impl<'w> Asked<'w> {
    fn read(session: &Session<'_>, words: &Words<'w>) -> Result<Self, Failure> {
        let mut span = Span::ALL;
        for (name, value) in words.options() {
            match name {
                "start" => span.set_start(value)?,
                "end" => span.set_end(value)?,
                _ => {}
            }
        }
        let function = words.value("function");
        if let Some(function) = function
            && ArchiveKind::known(function).is_none()
        {
            return Err(Failure::new(format!(
                "unknown function '{}'",
                shown(function)
            )));
        }
        if words.operands.is_empty() {
            let usage = "export --to openmetrics|prometheus|influx|parquet <file|directory>...";
            return Err(Failure::new(format!("Usage: kymo rrd {usage}")));
        }
        Ok(Self {
            span: span.resolve(&session.clock())?,
            function,
        })
    }
}

/// Histories that are to be written as Parquet files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableExport<'w> {
    /// Databases, and directories of them.
    pub inputs: Vec<&'w [u8]>,
    /// The directory for the files.
    pub output: &'w [u8],
    /// Whether to overwrite it.
    pub force: bool,
    /// The first and the last time, in seconds since 1970; `None` for all.
    pub begin: Option<i64>,
    /// The same.
    pub end: Option<i64>,
    /// The only function of archives.
    pub function: Option<&'w [u8]>,
    /// The name of the machine that wrote the databases.
    pub machine: Option<&'w [u8]>,
}

/// What the words behind `export` ask for if they ask for Parquet files, which the program around writes; `None` if
/// they ask for something else, or cannot be read.
///
/// # Errors
///
/// What is wrong with the words.
pub fn table_export<'w>(
    session: &Session<'_>,
    words: &[&'w [u8]],
) -> Option<Result<TableExport<'w>, Failure>> {
    let words = Words::read(COMMAND.options, words).ok()?;
    if words.value("to") != Some(b"parquet") {
        return None;
    }
    let Some(output) = words.value("output") else {
        let message = "--output is missing: expected a directory for the Parquet files";
        return Some(Err(Failure::new(message)));
    };
    Some(Asked::read(session, &words).map(|asked| {
        let (begin, end) = asked.span;
        TableExport {
            output,
            force: words.has("force"),
            begin: Some(begin).filter(|begin| *begin > 0),
            end: Some(end).filter(|end| *end < i64::MAX),
            function: asked.function,
            machine: words.value("machine"),
            inputs: words.operands,
        }
    }))
}

fn format(name: Option<&[u8]>) -> Result<Format, Failure> {
    match name {
        Some(b"openmetrics") => Ok(Format::OpenMetrics),
        Some(b"prometheus") => Ok(Format::Prometheus),
        Some(b"influx") => Ok(Format::Influx),
        Some(b"parquet") => Err(Failure::new(
            "Parquet files are written by `kymo rrd export` only",
        )),
        Some(other) => {
            let other = shown(other);
            let message = format!(
                "found format '{other}', expected openmetrics, prometheus, influx or parquet"
            );
            Err(Failure::new(message))
        }
        None => Err(Failure::new(
            "--to is missing: expected openmetrics, prometheus, influx or parquet",
        )),
    }
}

struct Export<'a> {
    format: Format,
    span: (i64, i64),
    function: Option<&'a [u8]>,
    line: Line,
}

impl Export<'_> {
    fn file(
        &mut self,
        session: &mut Session<'_>,
        file: &[u8],
        source: &Source<'_>,
    ) -> Result<(), Failure> {
        let database = &source.database;
        // The longest of those that are alike comes first.
        let mut archives: Vec<usize> = (0..database.archives.len()).collect();
        archives.sort_by_key(|index| std::cmp::Reverse(database.archives[*index].rows));
        let mut met = HashSet::new();
        archives.retain(|index| {
            let function = database.archives[*index].kind.name();
            let is_wanted = self.function.is_none_or(|only| only == function.as_bytes());
            is_wanted && met.insert((function, database.row_seconds(*index)))
        });
        archives.sort_unstable();
        for archive in archives {
            match self.format {
                Format::Influx => self.rows(session, file, source, archive)?,
                _ => self.series(session, file, source, archive)?,
            }
        }
        Ok(())
    }

    /// The rows of an archive that are of the span, and their times.
    fn times(
        &self,
        source: &Source<'_>,
        archive: usize,
    ) -> impl Iterator<Item = (u64, i64)> + use<> {
        let database = &source.database;
        let (start, end) = self.span;
        let rows = database.archives[archive].rows;
        let first = database.row_time(archive, 0);
        let step = database
            .row_seconds(archive)
            .and_then(|step| i64::try_from(step).ok());
        let times = first.zip(step).map(move |(first, step)| {
            (0..rows).map_while(move |row| {
                let after = i64::try_from(row).ok()?.checked_mul(step)?;
                Some((row, first.checked_add(after)?))
            })
        });
        let times = times.into_iter().flatten();
        // No reading is of a time before 1970.
        times.filter(move |(_, time)| (start.max(1)..=end).contains(time))
    }

    /// A series for each data source.
    fn series(
        &mut self,
        session: &mut Session<'_>,
        file: &[u8],
        source: &Source<'_>,
        archive: usize,
    ) -> Result<(), Failure> {
        let database = &source.database;
        let function = database.archives[archive].kind.name();
        let step = database.row_seconds(archive).unwrap_or(0);
        for (place, definition) in database.sources.iter().enumerate() {
            let (file, name) = (escaped(file), escaped(definition.name.as_bytes()));
            let series = format!(
                "rrd_value{{file=\"{file}\",ds=\"{name}\",cf=\"{function}\",step=\"{step}\"}} "
            );
            for (row, time) in self.times(source, archive) {
                let value = source.rows.value(archive, row, place);
                let Some(value) = value.and_then(|value| value.get()) else {
                    continue;
                };
                self.line.push(series.as_bytes());
                match value.is_finite() {
                    true => self.line.shortest(value, 64),
                    false => self.line.push(number(Some(value)).as_bytes()),
                }
                self.line.push_byte(b' ');
                self.line.signed(time);
                if self.format == Format::Prometheus {
                    self.line.push(b"000");
                }
                self.line.push_byte(b'\n');
                self.write(session, PIECE)?;
            }
        }
        self.write(session, 0)
    }

    /// A line for each row in which something is known.
    fn rows(
        &mut self,
        session: &mut Session<'_>,
        file: &[u8],
        source: &Source<'_>,
        archive: usize,
    ) -> Result<(), Failure> {
        let database = &source.database;
        let function = database.archives[archive].kind.name();
        let step = database.row_seconds(archive).unwrap_or(0);
        let tags = format!("rrd,file={},cf={function},step={step}", tag(file));
        let names = database.sources.iter();
        let names: Vec<_> = names.map(|source| tag(source.name.as_bytes())).collect();
        for (row, time) in self.times(source, archive) {
            let mut separator = b' ';
            for (place, name) in names.iter().enumerate() {
                let value = source.rows.value(archive, row, place);
                // InfluxDB has no infinite values.
                let value = value.and_then(|value| value.get());
                let Some(value) = value.filter(|value| value.is_finite()) else {
                    continue;
                };
                if separator == b' ' {
                    self.line.push(tags.as_bytes());
                }
                self.line.push_byte(separator);
                separator = b',';
                self.line.push(name.as_bytes());
                self.line.push_byte(b'=');
                self.line.shortest(value, 64);
            }
            if separator == b',' {
                self.line.push_byte(b' ');
                self.line.signed(time);
                self.line.push(b"000000000\n");
            }
            self.write(session, PIECE)?;
        }
        self.write(session, 0)
    }

    /// Writes the text as soon as it is longer than `most` bytes.
    fn write(&mut self, session: &mut Session<'_>, most: usize) -> Result<(), Failure> {
        if self.line.len() > most {
            session.write(self.line.as_bytes())?;
            self.line.clear();
        }
        Ok(())
    }
}

/// A key or a tag's value of line protocol. Of what is not UTF-8 each byte is `\xNN`, as is a line break, and
/// a backslash at the end, which would hide the separator.
fn tag(text: &[u8]) -> String {
    let mut tag = String::with_capacity(text.len());
    for piece in text.utf8_chunks() {
        for char in piece.valid().chars() {
            match char {
                ',' | '=' | ' ' => tag.extend(['\\', char]),
                '\n' => tag.push_str("\\x0a"),
                other => tag.push(other),
            }
        }
        for byte in piece.invalid() {
            tag.push_str(&format!("\\x{byte:02x}"));
        }
    }
    if tag.ends_with('\\') {
        tag.push_str("x5c");
    }
    tag
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_hold_any_name() {
        assert_eq!(tag(b"a b,c=d"), "a\\ b\\,c\\=d");
        assert_eq!(tag(b"\xfe\n"), "\\xfe\\x0a");
        assert_eq!(tag(b"a\\"), "a\\x5c");
    }
}
