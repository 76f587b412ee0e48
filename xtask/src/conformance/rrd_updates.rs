//! What rrdtool has computed, computed again.

use std::collections::BTreeMap;
use std::path::Path;

use kymo_machine::{Machine, Width};
use kymo_rrd::engine::{Definition, Rrd, Smoothing, create};
use kymo_rrd::file::convert::{Target, convert};
use kymo_rrd::{Database, Source, Time, file::native, file::portable};

use super::{Setting, Verdict, cases};
use crate::Outcome;
use crate::interop::{same, update};

/// Files that were made and updated: the same updates give the same file, on the layouts of all
/// machines and in portable files.
pub(super) fn replay(setting: &Setting) -> Outcome<Vec<Verdict>> {
    let databases = setting.databases();
    let names = cases(&databases, "replay/", ".created.rrd")?;
    let mut verdicts = Vec::new();
    for name in names {
        let read = |end: &str| std::fs::read(databases.join(format!("{name}.{end}")));
        let (created, last) = (read("created.rrd")?, read("final.rrd")?);
        let updates = String::from_utf8(read("updates.txt")?)?;
        let lines: Vec<Vec<&str>> = updates.lines().map(|line| arguments(line, 2)).collect();
        let machines = Machine::all().iter();
        let targets = machines.map(|machine| (machine.name(), Target::Native(machine)));
        for (target_name, target) in targets.chain([("portable", Target::Portable)]) {
            let result = again(&created, &last, &lines, target);
            verdicts.push(Verdict::new(format!("rrd/{name}/{target_name}"), result));
        }
    }
    Ok(verdicts)
}

/// The words of a line after the first ones.
fn arguments(line: &str, skipped: usize) -> Vec<&str> {
    line.split_whitespace().skip(skipped).collect()
}

fn again(created: &[u8], last: &[u8], lines: &[Vec<&str>], target: Target) -> Result<(), String> {
    let created = Source::open(created, None).map_err(|error| error.to_string())?;
    let created = convert(&created, target).map_err(|error| error.to_string())?;
    same(last, &updated(created.bytes, lines)?)
}

fn updated(file: Vec<u8>, lines: &[Vec<&str>]) -> Result<Vec<u8>, String> {
    let mut rrd = Rrd::open(file).map_err(|error| error.to_string())?;
    for line in lines {
        update(&mut rrd, line).map_err(|error| format!("{line:?}: {error}"))?;
    }
    Ok(rrd.into_storage())
}

/// Machines on which rrdtool computes the same bits as on amd64.
const ALIKE: [&str; 11] = [
    "amd64", "alpha", "armel", "armhf", "hppa", "mips", "mips64", "mips64el", "mipsel", "sparc32",
    "sparc64",
];

/// What is done with a database.
#[derive(Default)]
struct Commands {
    create: String,
    updates: Vec<String>,
}

/// Files from command lines: made, updated, and compared with those of rrdtool on several machines.
pub(super) fn commands(setting: &Setting) -> Outcome<Vec<Verdict>> {
    let databases = setting.databases();
    let mut commands: BTreeMap<String, Commands> = BTreeMap::new();
    for file in ["cmds.txt", "cmds64.txt"] {
        for line in std::fs::read_to_string(databases.join(file))?.lines() {
            let name = line.split_whitespace().nth(1).unwrap_or_default();
            let commands = commands.entry(name.to_owned()).or_default();
            match line.starts_with("create ") {
                true => commands.create = line.to_owned(),
                false => commands.updates.push(line.to_owned()),
            }
        }
    }
    let mut verdicts = Vec::new();
    for machine_name in ALIKE {
        let machine = Machine::find(machine_name).ok_or("a machine is not known")?;
        for (name, commands) in &commands {
            let path = databases.join("arch").join(machine_name).join(name);
            // Where times have 32 bits, rrdtool refuses those after 2038.
            if !path.is_file() || (name == "y2040.rrd" && machine.long() == Width::W32) {
                continue;
            }
            let result = from_commands(machine, name, commands, &path);
            verdicts.push(Verdict::new(
                format!("rrd/arch/{machine_name}/{name}"),
                result,
            ));
        }
    }
    Ok(verdicts)
}

fn from_commands(
    machine: &'static Machine,
    name: &str,
    commands: &Commands,
    path: &Path,
) -> Result<(), String> {
    let last = std::fs::read(path).map_err(|error| error.to_string())?;
    let expected = Source::open(&last, None).map_err(|error| error.to_string())?;
    let lines: Vec<Vec<&str>> = commands
        .updates
        .iter()
        .map(|line| arguments(line, 2))
        .collect();
    let make = |rows: &[u64]| -> Result<Vec<u8>, String> {
        let database = definition(machine, name, &commands.create, rows)?;
        let options = portable::Options::default();
        let file = portable::create(&database, None, &options, Vec::new());
        let file = file.map_err(|error| error.to_string())?.into_storage();
        let view = portable::read(&file).map_err(|error| error.to_string())?;
        let rows = view.rows().map_err(|error| error.to_string())?;
        let file = native::write(&database, &rows, machine).map_err(|error| error.to_string())?;
        updated(file, &lines)
    };
    let current = |source: &Source<'_>| -> Vec<u64> {
        let states = source.database.state.archives.iter();
        states.map(|state| state.current_row).collect()
    };
    // How far archives come does not depend on where they begin: so that is found.
    let zeros = vec![0; expected.database.archives.len()];
    let first = make(&zeros)?;
    let first = Source::open(&first, None).map_err(|error| error.to_string())?;
    let begin: Vec<u64> = current(&expected)
        .into_iter()
        .zip(current(&first))
        .zip(&expected.database.archives)
        .map(|((end, distance), archive)| (end + archive.rows - distance) % archive.rows)
        .collect();
    same(&last, &make(&begin)?)
}

/// The database that a command line makes.
fn definition(
    machine: &'static Machine,
    name: &str,
    line: &str,
    rows: &[u64],
) -> Result<Database, String> {
    let words = arguments(line, 2);
    let option = |name: &str| -> Option<i64> {
        let place = words.iter().position(|word| *word == name)?;
        words.get(place + 1)?.parse().ok()
    };
    let start = option("--start").ok_or("no start")?;
    let step = option("--step").ok_or("no step")?;
    let texts: Vec<&str> = words
        .into_iter()
        .filter(|word| word.contains(':'))
        .collect();
    let smoothing = Smoothing {
        file_name: name.as_bytes(),
        long: machine.long(),
    };
    let definition = Definition::parse(
        Time::from_seconds(start),
        step.unsigned_abs(),
        &texts,
        &smoothing,
    );
    let definition = definition.map_err(|error| error.to_string())?;
    create(&definition, |archive, _| {
        rows.get(archive).copied().unwrap_or(0)
    })
    .map_err(|error| error.to_string())
}
