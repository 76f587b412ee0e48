//! Many who write the same files at once, and programs that are killed while they write.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kymo_rrd::Source;

use super::Random;
use crate::Outcome;
use crate::interop::Counts;
use crate::process::{command, hear};

/// How many write at once.
const WRITERS: u64 = 24;

/// Updates of each of them.
const UPDATES: u64 = 30;

/// Updates that a program is in the middle of when it is killed.
const KILLED_AMONG: u64 = 10_000;

/// When the databases begin.
const BEGIN: u64 = 1_500_000_000;

/// All of it.
pub(super) fn run(kymo: &Path, folder: &Path, kills: u64, seed: u64) -> Outcome<Counts> {
    let mut counts = Counts::default();
    // Both programs on one file; and what rrdtool does not know, kymo alone.
    let both = [kymo.to_owned(), PathBuf::from("rrdtool")];
    for (form, programs) in [
        ("amd64", &both[..]),
        ("s390x", &both[..1]),
        ("portable", &both[..1]),
    ] {
        let folder = folder.join(form);
        fs::create_dir(&folder)?;
        let result = together(kymo, programs, &folder, form)?;
        let reported = match &result {
            Ok(reported) => format!("{WRITERS} writers of {form}: {reported}"),
            Err(why) => format!("{WRITERS} writers of {form}: {why}"),
        };
        counts.holds(&reported, result.is_ok());
    }
    let result = killed(kymo, folder, kills, &mut Random(seed))?;
    let reported = match &result {
        Ok(reported) => format!("killed {kills} times: {reported}"),
        Err(why) => format!("killed: {why}"),
    };
    counts.holds(&reported, result.is_ok());
    Ok(counts)
}

/// Makes a database that keeps every second.
fn make(kymo: &Path, folder: &Path, name: &str, form: &str, rows: u64) -> Outcome {
    let mut create = command(kymo);
    create.current_dir(folder).args([
        "create",
        name,
        &format!("--format={form}"),
        &format!("--start={BEGIN}"),
        "--step=1",
        "DS:x:GAUGE:1000000:U:U",
        &format!("RRA:LAST:0.5:1:{rows}"),
    ]);
    let said = hear(&mut create)?;
    match said.code {
        Some(0) => Ok(()),
        _ => Err(said.err.into()),
    }
}

/// What became of the updates of one writer to the file of all: times, with values or reasons.
#[derive(Default)]
struct Written {
    accepted: Vec<(u64, f64)>,
    refused: Vec<(u64, String)>,
}

/// Writers that update one file, in which each time is taken once, and files of their own.
fn together(
    kymo: &Path,
    programs: &[PathBuf],
    folder: &Path,
    form: &str,
) -> Outcome<Result<String, String>> {
    make(kymo, folder, "one.rrd", form, WRITERS * UPDATES)?;
    for writer in 0..WRITERS {
        make(kymo, folder, &format!("{writer}.rrd"), form, UPDATES)?;
    }
    let clock = AtomicU64::new(BEGIN);
    let update = |program: &Path, name: &str, time: u64, value: u64| -> Result<(), String> {
        let value = format!("{time}:{value}");
        // Who finds the file locked tries again, as scripts do.
        for _ in 0..10_000 {
            let mut update = command(program);
            update.current_dir(folder).args(["update", name, &value]);
            let said = hear(&mut update).map_err(|error| error.to_string())?;
            match said.code {
                Some(0) => return Ok(()),
                _ if said.err.contains("could not lock RRD") => {}
                _ => return Err(said.err),
            }
        }
        Err("always locked".to_owned())
    };
    let write = &|writer: u64| -> Result<Written, String> {
        let program = &programs[(writer % programs.len() as u64) as usize];
        let mut written = Written::default();
        for number in 1..=UPDATES {
            let time = clock.fetch_add(1, Ordering::Relaxed) + 1;
            let value = writer * 1000 + number;
            match update(program, "one.rrd", time, value) {
                Ok(()) => written.accepted.push((time, value as f64)),
                Err(why) => written.refused.push((time, why)),
            }
            update(program, &format!("{writer}.rrd"), BEGIN + number, value)
                .map_err(|why| format!("a file of one writer: {why}"))?;
        }
        Ok(written)
    };
    let all: Result<Vec<Written>, String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..WRITERS)
            .map(|writer| scope.spawn(move || write(writer)))
            .collect();
        let ended = threads.into_iter().map(|thread| {
            let ended = thread.join();
            ended.unwrap_or_else(|_| Err("a writer broke down".to_owned()))
        });
        ended.collect()
    });
    let all = match all {
        Ok(all) => all,
        Err(why) => return Ok(Err(why)),
    };
    let accepted: BTreeMap<u64, f64> = all.iter().flat_map(|one| one.accepted.clone()).collect();
    let refused: Vec<_> = all.into_iter().flat_map(|one| one.refused).collect();
    let latest = accepted.keys().last().copied().unwrap_or(BEGIN);
    let unfounded = |(time, why): &&(u64, String)| {
        *time > latest || !why.contains("illegal attempt to update using time")
    };
    if let Some((time, why)) = refused.iter().find(unfounded) {
        return Ok(Err(format!("the update of {time} is refused: {why}")));
    }
    let mut result = holds(&folder.join("one.rrd"), &accepted);
    for writer in 0..WRITERS {
        let own = (1..=UPDATES).map(|number| (BEGIN + number, (writer * 1000 + number) as f64));
        let path = folder.join(format!("{writer}.rrd"));
        result = result.and(holds(&path, &own.collect()));
    }
    let (accepted, late) = (accepted.len(), refused.len());
    Ok(result.map(|()| format!("{accepted} updates accepted, {late} late ones refused")))
}

/// Whether a file holds these values: each is that of all seconds since the one before.
fn holds(path: &Path, updates: &BTreeMap<u64, f64>) -> Result<(), String> {
    let bytes = fs::read(path).map_err(|error| error.to_string())?;
    let whole = Source::complete(&bytes).map_err(|error| error.to_string())?;
    let source = Source::open(&whole, None).map_err(|error| error.to_string())?;
    let last = source.database.state.last_update.seconds();
    let latest = updates
        .keys()
        .last()
        .map_or(BEGIN as i64, |time| *time as i64);
    if last != latest {
        return Err(format!("last updated at {last} and not at {latest}"));
    }
    for (row, values) in source.rows.iter(0).enumerate() {
        let time = source.database.row_time(0, row as u64).unwrap_or_default();
        let expected = match u64::try_from(time) {
            Ok(time) if time > BEGIN => updates.range(time..).next().map(|(_, value)| *value),
            _ => None,
        };
        let found = values.values().next().map(|value| value.to_f64());
        let found = found.filter(|value| !value.is_nan());
        if found != expected {
            return Err(format!("at {time}: {found:?} and not {expected:?}"));
        }
    }
    Ok(())
}

/// Kills a program again and again in the middle of updates of a portable file. Each time, the
/// file must be as after one of them.
fn killed(
    kymo: &Path,
    folder: &Path,
    kills: u64,
    random: &mut Random,
) -> Outcome<Result<String, String>> {
    make(kymo, folder, "killed.rrd", "portable", KILLED_AMONG)?;
    let path = folder.join("killed.rrd");
    let value = |time: u64| (time % 7919) as f64;
    let mut last = BEGIN;
    let mut carried_out = 0;
    for kill in 0..kills {
        let mut script = String::new();
        for time in last + 1..=last + KILLED_AMONG {
            let _ = writeln!(script, "update killed.rrd {time}:{}", value(time));
        }
        let lines = folder.join("lines");
        fs::write(&lines, &script)?;
        let mut child = command(kymo)
            .arg("-")
            .current_dir(folder)
            .stdin(Stdio::from(fs::File::open(&lines)?))
            .stdout(Stdio::null())
            .spawn()?;
        std::thread::sleep(Duration::from_micros(random.below(400_000)));
        child.kill()?;
        child.wait()?;
        let bytes = fs::read(&path)?;
        let whole = Source::complete(&bytes).and_then(|whole| last_update(&whole));
        let reached = match whole {
            Ok(reached) => reached,
            Err(error) => return Ok(Err(format!("after {kill} times: {error}"))),
        };
        if reached < last || reached > last + KILLED_AMONG {
            return Ok(Err(format!("last updated at {reached} after {last}")));
        }
        // Rows that are older were looked at before.
        let updates = (BEGIN + 1..=reached).rev().take(KILLED_AMONG as usize);
        if let Err(why) = holds(&path, &updates.map(|time| (time, value(time))).collect()) {
            return Ok(Err(format!("after {kill} times: {why}")));
        }
        carried_out += reached - last;
        last = reached;
    }
    Ok(match carried_out {
        0 => Err("no update was carried out".to_owned()),
        updates => Ok(format!("{updates} updates, none torn")),
    })
}

fn last_update(bytes: &[u8]) -> Result<u64, kymo_rrd::fault::Error> {
    let source = Source::open(bytes, None)?;
    Ok(source.database.state.last_update.seconds().cast_unsigned())
}
