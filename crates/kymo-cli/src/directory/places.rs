//! Where each of several traces is written below one directory.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::ops::Bound;
use std::path::{Component, Path, PathBuf};

use kymo::AnyRecording;
use kymo_model::Recording;

/// The name of a trace without a name of its own: it is in several directories, and others lie below
/// the one that these share.
const UNNAMED: &str = "trace";

/// A place for each recording: its path below the directory that contains all recordings.
///
/// No place lies within another one, because the directory of a trace is not searched for more recordings.
pub(crate) fn places(recordings: &[AnyRecording]) -> Vec<PathBuf> {
    let paths: Vec<PathBuf> = recordings
        .iter()
        .map(|recording| kymo_io::absolute(recording.path()))
        .collect();
    apart(&below_common(&paths))
}

/// The paths from the directory that all are below.
fn below_common(paths: &[PathBuf]) -> Vec<PathBuf> {
    let mut common = paths.first().cloned().unwrap_or_default();
    if paths.len() == 1 {
        common.pop();
    }
    while !paths.iter().all(|path| path.starts_with(&common)) && common.pop() {}
    let below = paths.iter().map(|path| {
        let parts = path.strip_prefix(&common).unwrap_or(path).components();
        parts
            .filter(|part| matches!(part, Component::Normal(_)))
            .collect()
    });
    below.collect()
}

/// The places, or others where several want the same one or one within another's.
fn apart(wanted: &[PathBuf]) -> Vec<PathBuf> {
    let all: BTreeSet<PathBuf> = wanted.iter().cloned().collect();
    let is_above_none = |place: &&PathBuf| !place.as_os_str().is_empty() && !has_below(&all, place);
    let mut taken: BTreeSet<PathBuf> = all.iter().filter(is_above_none).cloned().collect();
    let mut unclaimed = taken.clone();
    let mut place = |wanted: &PathBuf| {
        if unclaimed.remove(wanted) {
            return wanted.clone();
        }
        let mut first = wanted.clone();
        if !taken.contains(wanted) {
            first.push(UNNAMED);
        }
        let mut place = first.clone();
        let mut next = 1;
        while has_below(&taken, &place) || place.ancestors().any(|above| taken.contains(above)) {
            let mut name: OsString = first.clone().into_os_string();
            name.push(format!("_{next}"));
            place = name.into();
            next += 1;
        }
        taken.insert(place.clone());
        place
    };
    wanted.iter().map(&mut place).collect()
}

/// Whether a place lies within another one.
fn has_below(places: &BTreeSet<PathBuf>, place: &Path) -> bool {
    // What begins with the same parts comes next.
    let mut behind = places.range::<Path, _>((Bound::Excluded(place), Bound::Unbounded));
    behind.next().is_some_and(|next| next.starts_with(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places_of(paths: &[&str]) -> Vec<String> {
        let paths: Vec<PathBuf> = paths.iter().map(PathBuf::from).collect();
        let places = apart(&below_common(&paths));
        for (number, one) in places.iter().enumerate() {
            assert!(!one.as_os_str().is_empty(), "{places:?}");
            for other in &places[..number] {
                let is_apart = !one.starts_with(other) && !other.starts_with(one);
                assert!(is_apart, "{places:?}");
            }
        }
        let text = |place: PathBuf| place.to_str().unwrap().replace('\\', "/");
        places.into_iter().map(text).collect()
    }

    #[test]
    fn each_is_where_it_was_below_what_all_are_in() {
        assert_eq!(places_of(&[]), [""; 0]);
        assert_eq!(places_of(&["/t/a"]), ["a"]);
        assert_eq!(places_of(&["/"]), ["trace"]);
        assert_eq!(places_of(&["/t/a", "/t/b/c"]), ["a", "b/c"]);
        // Names that begin alike are others.
        assert_eq!(
            places_of(&["/t/a", "/t/a-b", "/t/a.b/c"]),
            ["a", "a-b", "a.b/c"]
        );
    }

    #[test]
    fn none_is_within_another_one() {
        for (paths, expected) in [
            (&["/t", "/t/a"][..], &["trace", "a"][..]),
            (&["/t/a", "/t"], &["a", "trace"]),
            (&["/t/s", "/t/s/a/1", "/t/d"], &["s/trace", "s/a/1", "d"]),
            (
                &["/t/s/a/1", "/t/s", "/t/s/a", "/t/d"],
                &["s/a/1", "s/trace", "s/a/trace", "d"],
            ),
            // Some have that name already, or something below it.
            (
                &["/t", "/t/trace", "/t/trace_1/x"],
                &["trace_2", "trace", "trace_1/x"],
            ),
            (&["/t", "/t", "/t/a"], &["trace", "trace_1", "a"]),
        ] {
            assert_eq!(places_of(paths), expected);
        }
    }

    #[test]
    fn several_of_one_place_get_numbers() {
        for (paths, expected) in [
            (&["/t/a", "/t/a", "/t/b"][..], &["a", "a_1", "b"][..]),
            (&["/t/a", "/t/a"], &["trace", "trace_1"]),
            (&["/t/a", "/t/a", "/t/a_1"], &["a", "a_2", "a_1"]),
            (&["/t/a", "/t/a", "/t/a_1/x"], &["a", "a_2", "a_1/x"]),
        ] {
            assert_eq!(places_of(paths), expected);
        }
    }
}
