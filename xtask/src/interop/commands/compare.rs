//! Whether two files are the same.

use kymo_rrd::model::{DataSource, SourceKind};
use kymo_rrd::{Database, Source, Value};

use crate::interop::same;

/// How much has to be the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Likeness {
    /// Every byte.
    Bytes,
    /// Where archives begin may differ, which rrdtool leaves to chance.
    Rotated,
    /// So may the last archive, which is new: rrdtool prepares it with zeros or NaNs, as other
    /// archives are, and fills it beyond what they reach back to.
    Added,
    /// Rows that are new may be unknown, for which rrdtool takes any values.
    Grown,
    /// So may the last bits of values, which are put together from those of other files.
    Nearly,
    /// Only what does not depend on the time at which something was done.
    Moment,
}

/// Reports how two files differ.
pub(super) fn files(theirs: &[u8], ours: &[u8], likeness: Likeness) -> Result<(), String> {
    if theirs == ours {
        return Ok(());
    }
    let (Ok(their_source), Ok(our_source)) = (Source::open(theirs, None), Source::open(ours, None))
    else {
        // Nothing is known of where a damaged file's archives begin.
        return match likeness != Likeness::Bytes && theirs.len() == ours.len() {
            true => Ok(()),
            false => Err(bytes(theirs, ours)),
        };
    };
    match likeness {
        Likeness::Bytes => {
            same(theirs, ours)?;
            // Of expressions, NaNs of either sign come.
            let sources = &our_source.database.sources;
            let computed = |source: &DataSource| matches!(source.kind, SourceKind::Compute(_));
            match sources.iter().any(computed) {
                true => Ok(()),
                false => Err(bytes(theirs, ours)),
            }
        }
        Likeness::Rotated | Likeness::Added | Likeness::Grown | Likeness::Nearly => {
            sources(&their_source, &our_source, likeness)
        }
        Likeness::Moment => {
            let time = |database: &Database| database.state.last_update.seconds();
            let apart = time(&their_source.database).abs_diff(time(&our_source.database));
            match apart <= 2 {
                true => Ok(()),
                false => Err(format!("last updates are {apart} s apart")),
            }
        }
    }
}

fn bytes(theirs: &[u8], ours: &[u8]) -> String {
    if theirs.len() != ours.len() {
        return format!("{} bytes and not {}", ours.len(), theirs.len());
    }
    let same = theirs.iter().zip(ours).take_while(|(a, b)| a == b).count();
    let some = |bytes: &[u8]| {
        let end = bytes.len().min(same + 16);
        format!("{:02x?}", &bytes[same..end])
    };
    format!("at byte {same}: {} and not {}", some(ours), some(theirs))
}

/// Whether two files are the same but for where their archives begin.
pub(crate) fn rotated(theirs: &[u8], ours: &[u8]) -> Result<(), String> {
    let open = |bytes| Source::open(bytes, None).map_err(|error| error.to_string());
    sources(&open(theirs)?, &open(ours)?, Likeness::Rotated)
}

/// Whether two numbers are the same but for their last bits.
fn near(one: f64, other: f64) -> bool {
    (one - other).abs() <= one.abs() * 1e-13
}

fn sources(theirs: &Source<'_>, ours: &Source<'_>, likeness: Likeness) -> Result<(), String> {
    let mut expected = theirs.database.clone();
    let states = expected.state.archives.iter_mut();
    for (state, ours) in states.zip(&ours.database.state.archives) {
        state.current_row = ours.current_row;
    }
    match likeness {
        Likeness::Added => {
            let new = expected.state.archives.last_mut();
            if let (Some(new), Some(ours)) = (new, ours.database.state.archives.last()) {
                new.scratch.clone_from(&ours.scratch);
            }
        }
        Likeness::Nearly => take_near(&mut expected, &ours.database),
        _ => {}
    }
    if expected != ours.database {
        let (expected, found) = (format!("{expected:#?}"), format!("{:#?}", ours.database));
        let place = expected.lines().zip(found.lines()).find(|(a, b)| a != b);
        let (expected, found) = place.unwrap_or(("the end", "the end"));
        return Err(format!("{} and not {}", found.trim(), expected.trim()));
    }
    let new = usize::from(likeness == Likeness::Added);
    for archive in 0..ours.rows.archives().saturating_sub(new) {
        let values = |source: &Source<'_>| -> Vec<Vec<Value>> {
            let rows = source.rows.iter(archive);
            rows.map(|row| row.values().collect()).collect()
        };
        let (expected, found) = (values(theirs), values(ours));
        let alike = |(expected, found): (&Value, &Value)| {
            let (theirs, ours) = (expected.to_f64(), found.to_f64());
            expected == found
                || likeness == Likeness::Grown && ours.is_nan()
                || likeness == Likeness::Nearly && near(theirs, ours)
        };
        let differ =
            |(expected, found): (&Vec<Value>, &Vec<Value>)| !expected.iter().zip(found).all(alike);
        if let Some(row) = expected.iter().zip(&found).position(differ) {
            let time = ours
                .database
                .row_time(archive, row as u64)
                .unwrap_or_default();
            return Err(format!(
                "archive {archive}, row {row} at {time}: {:?} and not {:?}",
                found[row], expected[row]
            ));
        }
    }
    Ok(())
}

/// Makes a state that of another, but for times and sizes. rrdtool makes zeros, unknown and infinite
/// values out of nothing, and does not take the unfinished point from a database of another step.
fn take_near(state: &mut Database, other: &Database) {
    state.state.sources.clone_from(&other.state.sources);
    for (archive, other) in state.state.archives.iter_mut().zip(&other.state.archives) {
        archive.scratch.clone_from(&other.scratch);
    }
}
