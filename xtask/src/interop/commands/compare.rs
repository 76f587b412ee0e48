//! Whether two files are the same.

use kymo_rrd::{Database, Source, Value};

use crate::interop::same;

/// How much has to be the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Likeness {
    /// Every byte.
    Bytes,
    /// Where archives begin may differ, which rrdtool leaves to chance.
    Rotated,
    /// So may what the last archive remembers, if it is new: rrdtool takes zeros and NaNs for it
    /// that depend on what other archives there are. New rows may be unknown, for which rrdtool
    /// takes any values.
    Added,
    /// Only what does not depend on the moment at which something was done.
    Moment,
}

/// Tells how two files differ.
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
        Likeness::Bytes => same(theirs, ours).and_then(|()| Err(bytes(theirs, ours))),
        Likeness::Rotated => rotated_sources(&their_source, &our_source, false),
        Likeness::Added => rotated_sources(&their_source, &our_source, true),
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
    rotated_sources(&open(theirs)?, &open(ours)?, false)
}

fn rotated_sources(theirs: &Source<'_>, ours: &Source<'_>, added: bool) -> Result<(), String> {
    let mut expected = theirs.database.clone();
    let states = expected.state.archives.iter_mut();
    for (state, ours) in states.zip(&ours.database.state.archives) {
        state.current_row = ours.current_row;
    }
    let last = (
        expected.state.archives.last_mut(),
        ours.database.state.archives.last(),
    );
    if let (true, (Some(expected), Some(ours))) = (added, last) {
        expected.scratch.clone_from(&ours.scratch);
    }
    if expected != ours.database {
        let (expected, found) = (format!("{expected:#?}"), format!("{:#?}", ours.database));
        let place = expected.lines().zip(found.lines()).find(|(a, b)| a != b);
        let (expected, found) = place.unwrap_or(("the end", "the end"));
        return Err(format!("{} and not {}", found.trim(), expected.trim()));
    }
    for archive in 0..ours.rows.archives() {
        let values = |source: &Source<'_>| -> Vec<Vec<Value>> {
            let rows = source.rows.iter(archive);
            rows.map(|row| row.values().collect()).collect()
        };
        let (expected, found) = (values(theirs), values(ours));
        let differ = |(expected, found): (&Vec<_>, &Vec<Value>)| {
            let unknown = added && found.iter().all(|value| value.to_f64().is_nan());
            !unknown && expected != found
        };
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
