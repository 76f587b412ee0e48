//! `kymo rrd info`, `dump` and `restore`: what rrdtool prints and reads.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use kymo::rrd::LocalZone;
use kymo_machine::{Machine, Width};
use kymo_rrd::convert::{Target, convert};
use kymo_rrd::fault::Error;
use kymo_rrd::xml::{self, DumpOptions, Numbers, RestoreOptions};
use kymo_rrd::{Form, Source};
use kymo_text::Line;

use super::{open, tell, write_new};
use crate::args::rrd::{Dump, Header, Info, Restore};
use crate::terminal::{Failure, Outcome, Terminal};

/// Prints what `rrdtool info` prints.
pub(super) fn info(args: &Info, terminal: &Terminal) -> Result<Outcome, Failure> {
    with_source(&args.file, args.machine, terminal, |source| {
        let header_size = source.rows.grid(0).map_or(0, |grid| grid.offset);
        let name = args.file.as_os_str().as_encoded_bytes();
        let mut out = Line::new();
        kymo_rrd::info::info(&source.database, name, header_size, &mut out);
        terminal.write(out.as_bytes())
    })
}

/// Writes a database as XML.
pub(super) fn dump(args: &Dump, terminal: &Terminal) -> Result<Outcome, Failure> {
    if let Some(output) = &args.output
        && is_same_file(&args.file, output)
    {
        return Err(Failure::Usage(format!(
            "error: `{}` is both input and output",
            args.file.display()
        )));
    }
    with_source(&args.file, args.machine, terminal, |source| {
        let has_short_long = |machine: &Machine| machine.long() == Width::W32;
        let numbers = match &source.form {
            _ if args.exact => Numbers::Exact,
            Form::Native(detection) if args.like_source && has_short_long(detection.machine) => {
                Numbers::Long32
            }
            _ => Numbers::Long64,
        };
        let header = match args.header {
            _ if args.no_header => xml::Header::None,
            Header::None => xml::Header::None,
            Header::Xsd => xml::Header::Xsd,
            Header::Dtd => xml::Header::Dtd,
        };
        let options = DumpOptions { header, numbers };
        let zone = LocalZone::new();
        let (database, rows) = (&source.database, &source.rows);
        match &args.output {
            Some(path) => {
                let write = |file: &mut File| xml::dump(database, rows, &zone, &options, file);
                let written = match path.metadata() {
                    // A pipe or a terminal is not replaced.
                    Ok(there) if !there.is_file() => {
                        File::create(path).and_then(|mut file| write(&mut file))
                    }
                    _ => write_new(path, true, write),
                };
                written.map_err(|error| {
                    io::Error::new(error.kind(), format!("`{}`: {error}", path.display()))
                })
            }
            None => {
                let mut stdout = io::stdout().lock();
                xml::dump(database, rows, &zone, &options, &mut stdout)?;
                stdout.flush()
            }
        }
    })
}

/// Whether two paths lead to the same file, by whatever links.
fn is_same_file(one: &Path, other: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let number = |path: &Path| path.metadata().map(|file| (file.dev(), file.ino()));
        matches!((number(one), number(other)), (Ok(one), Ok(other)) if one == other)
    }
    #[cfg(not(unix))]
    {
        let real = |path: &Path| path.canonicalize();
        matches!((real(one), real(other)), (Ok(one), Ok(other)) if one == other)
    }
}

/// Opens a database and works on it; what cannot be opened is told.
fn with_source(
    path: &Path,
    machine: Option<&'static Machine>,
    terminal: &Terminal,
    work: impl FnOnce(&Source<'_>) -> io::Result<()>,
) -> Result<Outcome, Failure> {
    let Some(bytes) = open(path, terminal) else {
        return Ok(Outcome::Damage);
    };
    let done = Source::complete(&bytes).and_then(|whole| {
        let source = Source::open(&whole, machine)?;
        if let Some(doubt) = source.form.doubt() {
            terminal.warning(format_args!("{}: {doubt}", path.display()));
        }
        Ok::<_, Error>(work(&source))
    });
    match done {
        Ok(done) => {
            done?;
            Ok(Outcome::Good)
        }
        Err(error) => {
            tell(path, error, terminal);
            Ok(Outcome::Damage)
        }
    }
}

/// Makes a database of XML.
pub(super) fn restore(args: &Restore, terminal: &Terminal) -> Result<Outcome, Failure> {
    Ok(match restored(args, terminal) {
        Some(()) => Outcome::Good,
        None => Outcome::Damage,
    })
}

/// Makes a database of XML, or tells why not.
fn restored(args: &Restore, terminal: &Terminal) -> Option<()> {
    let text = if args.input == Path::new("-") {
        let mut text = Vec::new();
        let read = io::stdin().lock().read_to_end(&mut text);
        read.map_err(|error| tell(&args.input, error, terminal))
            .ok()?;
        text.into()
    } else {
        open(&args.input, terminal)?
    };
    let options = RestoreOptions {
        range_check: args.range_check,
    };
    let restored = xml::restore(&text, &options)
        .map_err(|error| tell(&args.input, error, terminal))
        .ok()?;
    let target = args.machine.unwrap_or(Target::Native(Machine::native()));
    let converted = convert(&restored.source(), target)
        .map_err(|error| tell(&args.input, error, terminal))
        .ok()?;
    for note in converted.notes {
        terminal.warning(format_args!("{}: {note}", args.output.display()));
    }
    write_new(&args.output, args.force_overwrite, |file| {
        file.write_all(&converted.bytes)
    })
    .map_err(|error| tell(&args.output, error, terminal))
    .ok()
}
