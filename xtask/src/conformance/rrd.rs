//! Round-robin databases of many machines.

use std::path::{Path, PathBuf};

use kymo_machine::{ByteOrder, Machine};
use kymo_rrd::file::convert::{Target, convert};
use kymo_rrd::file::native::{Confidence, File};
use kymo_rrd::{Form, Source, Value};

use super::{Setting, Verdict, cases};
use crate::Outcome;

/// The latest last update that a `time_t` of 32 bits holds.
const LAST_32_BIT_SECOND: i64 = i32::MAX as i64;

impl Setting {
    pub(super) fn databases(&self) -> PathBuf {
        self.traces.with_file_name("rrd")
    }
}

fn each(
    setting: &Setting,
    folder: &str,
    check: fn(&str, &Path, &[u8]) -> Result<(), String>,
) -> Outcome<Vec<Verdict>> {
    let databases = setting.databases();
    let names = cases(&databases, folder, ".rrd")?;
    if names.is_empty() {
        return Err(format!("no databases at {}", databases.join(folder).display()).into());
    }
    names
        .into_iter()
        .map(|case| {
            let path = databases.join(format!("{case}.rrd"));
            let bytes = std::fs::read(&path)?;
            let result = check(&case, &path, &bytes);
            Ok(Verdict::new(format!("rrd/{case}"), result))
        })
        .collect()
}

/// Each file is found to be of the machine that wrote it.
pub(super) fn machines(setting: &Setting) -> Outcome<Vec<Verdict>> {
    each(setting, "arch/", |case, _, bytes| {
        let name = case.split('/').nth(1).unwrap_or_default();
        let machine = Machine::find(name).ok_or(format!("no machine `{name}`"))?;
        let file = File::open(bytes, None).map_err(|error| error.to_string())?;
        let detection = file.header.detection;
        if !detection.alike.contains(&machine) {
            return Err(format!("found to be of {}", detection.machine.name()));
        }
        match detection.confidence {
            Confidence::Certain => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
}

/// Each file is converted to each machine and back without a changed bit.
pub(super) fn conversions(setting: &Setting) -> Outcome<Vec<Verdict>> {
    let mut verdicts = each(setting, "arch/", there_and_back)?;
    verdicts.extend(each(setting, "replay/", there_and_back)?);
    Ok(verdicts)
}

fn there_and_back(_: &str, _: &Path, bytes: &[u8]) -> Result<(), String> {
    let source = Source::open(bytes, None).map_err(|error| error.to_string())?;
    let Form::Native(detection) = &source.form else {
        return Err("no native file".to_string());
    };
    // Where a file holds several NaNs, they become one.
    let own = convert(&source, Target::Native(detection.machine));
    let own = own.map_err(|error| error.to_string())?.bytes;
    for machine in Machine::all() {
        let reported = |what: &str| format!("{}: {what}", machine.name());
        let late = source.database.state.last_update.seconds() > LAST_32_BIT_SECOND;
        let there = match convert(&source, Target::Native(machine)) {
            Ok(there) if late && machine.time().bytes() == 4 => {
                return Err(reported(&format!("holds a late time: {:?}", there.notes)));
            }
            Ok(there) => there.bytes,
            Err(_) if late && machine.time().bytes() == 4 => continue,
            Err(error) => return Err(reported(&error.to_string())),
        };
        let there = Source::open(&there, None).map_err(|error| reported(&error.to_string()))?;
        match &there.form {
            Form::Native(found) if found.alike.contains(&machine) => {}
            other => return Err(reported(&format!("found to be {other:?}"))),
        }
        same_again(&there, detection.machine, &own).map_err(|error| reported(&error))?;
    }
    let portable = convert(&source, Target::Portable).map_err(|error| error.to_string())?;
    let portable = Source::open(&portable.bytes, None).map_err(|error| error.to_string())?;
    if portable.form != Form::Portable {
        return Err(format!("found to be {:?}", portable.form));
    }
    same_again(&portable, detection.machine, &own).map_err(|error| format!("portable: {error}"))
}

/// Converts back to what it was.
fn same_again(there: &Source<'_>, own: &'static Machine, bytes: &[u8]) -> Result<(), String> {
    let back = convert(there, Target::Native(own)).map_err(|error| error.to_string())?;
    let back = back.bytes;
    if let Some(at) = bytes.iter().zip(&back).position(|(own, back)| own != back) {
        return Err(format!("byte {at} differs"));
    }
    if bytes.len() != back.len() {
        return Err(format!("{} bytes and not {}", back.len(), bytes.len()));
    }
    Ok(())
}

/// Files of other origins are read, or refused for the right reason.
pub(super) fn found(setting: &Setting) -> Outcome<Vec<Verdict>> {
    each(setting, "found/", |case, path, bytes| {
        let name = case.rsplit('/').next().unwrap_or_default();
        let source = Source::open(bytes, None);
        let refused = |why: &str| match &source {
            Ok(_) => Err("is read".to_string()),
            Err(error) if error.to_string().contains(why) => Ok(()),
            Err(error) => Err(error.to_string()),
        };
        match name {
            "empty" => refused("an empty file"),
            "corrupt" => refused("this is text"),
            "demo1" | "demo2" => same_rows(&source, &path.with_file_name("demo1.rrd")),
            _ => native(name, &source, bytes),
        }
    })
}

fn native(
    name: &str,
    source: &Result<Source<'_>, kymo_rrd::fault::Error>,
    bytes: &[u8],
) -> Result<(), String> {
    let source = source.as_ref().map_err(ToString::to_string)?;
    let Form::Native(detection) = &source.form else {
        return Err("no native file".to_string());
    };
    // Names such as 0003b328: version, byte order, bits of a long, alignment of doubles. Those
    // of jsrrdgraph come from one i386, rrdtool.rrd from an amd64.
    let (version, order, bits, align) = match name.as_bytes() {
        [b'0', b'0', b'0', version, order, tens, ones, align] => (
            version - b'0',
            if *order == b'b' {
                ByteOrder::Big
            } else {
                ByteOrder::Little
            },
            10 * u32::from(tens - b'0') + u32::from(ones - b'0'),
            u64::from(align - b'0'),
        ),
        b"rrdtool" => (3, ByteOrder::Little, 64, 8),
        _ => (3, ByteOrder::Little, 32, 4),
    };
    let machine = detection.machine;
    let found = (
        source.database.version,
        machine.byte_order(),
        machine.long().bits(),
        machine.double_align(),
    );
    if found != (version, order, bits, align) {
        return Err(format!("found {found:?}"));
    }
    // None of them has a `time_t` that is wider than `long`.
    if machine.time() != machine.long() || detection.confidence != Confidence::Certain {
        return Err(format!("{}, {:?}", machine.name(), detection.confidence));
    }
    there_and_back(name, Path::new(name), bytes)
}

/// The same rows in both versions of RRD4J's files.
fn same_rows(
    source: &Result<Source<'_>, kymo_rrd::fault::Error>,
    other: &Path,
) -> Result<(), String> {
    let source = source.as_ref().map_err(ToString::to_string)?;
    let other = std::fs::read(other).map_err(|error| error.to_string())?;
    let other = Source::open(&other, None).map_err(|error| error.to_string())?;
    // Rings begin anywhere.
    let mut expected = source.database.clone();
    let states = expected.state.archives.iter_mut();
    for (state, other) in states.zip(&other.database.state.archives) {
        state.current_row = other.current_row;
    }
    if expected != other.database {
        return Err("other definitions or states".to_string());
    }
    let values = |source: &Source<'_>, archive: usize| -> Vec<Value> {
        let rows = source.rows.iter(archive);
        rows.flat_map(|row| row.values().collect::<Vec<_>>())
            .collect()
    };
    for archive in 0..source.rows.archives() {
        if values(source, archive) != values(&other, archive) {
            return Err(format!("other values in archive {archive}"));
        }
    }
    // 8 archives of kinds that RRDtool has, of 2 data sources.
    match (source.rows.archives(), source.rows.sources()) {
        (8, 2) => Ok(()),
        other => Err(format!("{other:?}")),
    }
}
