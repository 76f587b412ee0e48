//! `merge`: one database of several.

use std::cmp::Reverse;

use kymo_rrd::engine::Definition;
use kymo_rrd::engine::modify::{Filling, Giver};
use kymo_rrd::model::{Archive, ArchiveKind, DataSource};
use kymo_rrd::{Form, Source, Time};

use super::{FIRST_ROW, FORMAT, MACHINE, format, machine};
use crate::make::{self, Existing, FirstRows};
use crate::options::{Command, Opt, Words};
use crate::path::{path, shown};
use crate::{Failure, Session, open};

pub(super) const COMMAND: Command = Command {
    name: "merge",
    about: "Make one database of several, with the values that any of them knows",
    details: "The new database has all data sources, by name, and all archives: of those with the same \
        function and resolution the one with the most rows. Its step is the shortest. Each row has the \
        value of the finest archive that knows it: rows that are as short or shorter win over longer ones; \
        of those, the database with the shorter step, then the one with the newer update. --prefer sets another \
        order of databases, in which all archives of one come before those of the next. Archives of Holt and \
        Winters are left out. With --force, OUT.rrd may be one of the databases.",
    operands: "OUT.rrd FILE.rrd FILE.rrd...",
    options: &[
        Opt::with(
            Some('p'),
            "prefer",
            "finer|newer|first",
            "Whose values win: of the shorter step, of the newer update, or in the order of the command line \
             [default: finer].",
        ),
        Opt::flag(
            None,
            "force",
            "Overwrite OUT.rrd; if it is a symbolic link, the file it leads to.",
        ),
        FORMAT,
        FIRST_ROW,
        MACHINE,
    ],
    examples: &[
        "merge load.rrd web1/load.rrd backup/load.rrd",
        "merge all.rrd --force --prefer first corrected.rrd original.rrd",
    ],
    run,
};

/// Whose values win.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Preference {
    Finer,
    Newer,
    First,
}

fn run(session: &mut Session<'_>, words: &Words<'_>) -> Result<(), Failure> {
    let [output, files @ ..] = &words.operands[..] else {
        return Err(usage());
    };
    if files.len() < 2 {
        return Err(usage());
    }
    let preference = match words.value("prefer") {
        None | Some(b"finer") => Preference::Finer,
        Some(b"newer") => Preference::Newer,
        Some(b"first") => Preference::First,
        Some(other) => {
            let other = shown(other);
            return Err(Failure::new(format!(
                "--prefer: found '{other}', expected finer, newer or first"
            )));
        }
    };
    let existing = match words.has("force") {
        true => Existing::Overwritten,
        false => Existing::Stays,
    };
    if existing == Existing::Stays && path(output).symlink_metadata().is_ok() {
        let output = shown(output);
        return Err(Failure::new(format!(
            "'{output}' already exists; --force overwrites it"
        )));
    }
    let target = format(session, words)?;
    let first_rows = FirstRows::read(words.value("first-row"))?;
    open::with_sources(session, files, machine(words)?, |session, sources| {
        let mut order: Vec<_> = sources.iter().zip(files.iter().copied()).collect();
        let step = |source: &Source<'_>| source.database.step;
        let age = |source: &Source<'_>| Reverse(source.database.state.last_update);
        // Those that are equal stay in their order.
        match preference {
            Preference::Finer => order.sort_by_key(|(source, _)| (step(source), age(source))),
            Preference::Newer => order.sort_by_key(|(source, _)| (age(source), step(source))),
            Preference::First => {}
        }
        let definition = define(session, &order)?;
        let rows: Vec<_> = definition.archives.iter().map(|it| it.rows).collect();
        first_rows.check(&rows)?;
        let givers: Vec<_> = order
            .iter()
            .map(|(source, _)| Giver {
                database: &source.database,
                rows: &source.rows,
            })
            .collect();
        let origins = vec![None; definition.sources.len()];
        let filling = Filling {
            definition: &definition,
            origins: &origins,
            givers: &givers,
        };
        let first_row = |archive, rows| first_rows.of(archive, rows);
        let created = match preference {
            Preference::Finer => filling.create_finest_first(first_row),
            Preference::Newer | Preference::First => filling.create_by_rows(first_row),
        };
        let created = created.map_err(|error| Failure::new(error.to_string()))?;
        let merged = created.source(Form::Xml, Vec::new());
        make::write(session, output, &merged, target, existing)
    })
}

fn usage() -> Failure {
    Failure::new("Usage: kymo rrd merge [options] <out.rrd> <file.rrd> <file.rrd>...")
}

/// What the new database is like; of the databases, those whose values win come first.
fn define(
    session: &mut Session<'_>,
    order: &[(&Source<'_>, &[u8])],
) -> Result<Definition, Failure> {
    let databases = || order.iter().map(|(source, _)| &source.database);
    let newest = databases().map(|it| it.state.last_update.seconds()).max();
    let step = databases().map(|it| it.step).min().unwrap_or(1);
    let mut definition = Definition::new(Time::from_seconds(newest.unwrap_or_default()), step);
    for (source, file) in order {
        let database = &source.database;
        definition.version = definition.version.max(database.version);
        for source in &database.sources {
            add_source(session, &mut definition.sources, source, file);
        }
        let mut left_out = 0;
        for archive in &database.archives {
            let ArchiveKind::Consolidated { .. } = archive.kind else {
                left_out += 1;
                continue;
            };
            add_archive(&mut definition.archives, archive, database.step, step).ok_or_else(|| {
                let seconds = archive.points_per_row.saturating_mul(database.step);
                Failure::new(format!(
                    "'{}': it has rows of {seconds} s, which is not a multiple of the shortest step, {step} s; \
                     `create --source` makes a database with other archives",
                    shown(file)
                ))
            })?;
        }
        if left_out > 0 {
            session.warn(format_args!(
                "{}: {left_out} archives of Holt and Winters are left out",
                shown(file)
            ));
        }
    }
    if definition.archives.is_empty() {
        return Err(Failure::new(
            "none of the databases has an archive that can be merged",
        ));
    }
    // The finest come first, as in most databases.
    definition.archives.sort_by_key(|it| it.points_per_row);
    Ok(definition)
}

/// Adds a data source, unless there is one of its name.
fn add_source(
    session: &mut Session<'_>,
    sources: &mut Vec<DataSource>,
    source: &DataSource,
    file: &[u8],
) {
    match sources.iter().find(|it| it.name == source.name) {
        None => sources.push(source.clone()),
        Some(there) if there.kind.name() != source.kind.name() => session.warn(format_args!(
            "{}: the data source '{}' is {} here, and {} in the new database",
            shown(file),
            source.name,
            source.kind.name(),
            there.kind.name()
        )),
        Some(_) => {}
    }
}

/// Adds an archive of a database with one step to those of another step, or makes the one larger that has the same
/// function and resolution. `None` if its resolution is not a multiple of the step.
fn add_archive(archives: &mut Vec<Archive>, archive: &Archive, from: u64, step: u64) -> Option<()> {
    let seconds = archive.points_per_row.checked_mul(from)?;
    if !seconds.is_multiple_of(step) {
        return None;
    }
    let points_per_row = seconds / step;
    let function = |archive: &Archive| match archive.kind {
        ArchiveKind::Consolidated { function, .. } => Some(function),
        _ => None,
    };
    let is_same = |it: &&mut Archive| {
        it.points_per_row == points_per_row && function(it) == function(archive)
    };
    match archives.iter_mut().find(is_same) {
        Some(there) => there.rows = there.rows.max(archive.rows),
        None => archives.push(Archive {
            points_per_row,
            ..archive.clone()
        }),
    }
    Some(())
}
