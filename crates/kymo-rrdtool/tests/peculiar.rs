//! What rrdtool 1.7.2 and 1.9 do in corners of their commands. Expected texts are theirs.

mod common;

use std::fs;
use std::path::Path;
use std::time::Duration;

use kymo_io::{Locking, Shared};
use tempfile::TempDir;

use common::printed;

/// What a line prints that must be done.
fn good(directory: &Path, line: &str) -> String {
    let (out, failure) = printed(directory, line);
    assert_eq!(failure, None, "{line}");
    out
}

/// The failure of a line that must not be done.
fn bad(directory: &Path, line: &str) -> String {
    let (_, failure) = printed(directory, line);
    failure.unwrap_or_else(|| panic!("{line} is done"))
}

const SOURCE: &str = "DS:a:GAUGE:600:U:U RRA:AVERAGE:0.5:1:10";

fn with_database() -> TempDir {
    let place = tempfile::tempdir().unwrap();
    let line = format!("create @a.rrd --format x86_64 -b 1300000000 {SOURCE}");
    good(place.path(), &line);
    place
}

#[test]
fn a_file_is_listed_by_its_name() {
    let place = with_database();
    let place = place.path();
    fs::write(place.join("other.txt"), "").unwrap();
    assert_eq!(good(place, "list @a.rrd"), "a.rrd\n");
    assert_eq!(good(place, "list -r @a.rrd"), "a.rrd\n");
    assert_eq!(good(place, "list @other.txt"), "");
}

#[test]
fn milliseconds_make_no_database() {
    let place = tempfile::tempdir().unwrap();
    let line = format!("create @a.rrd -b 1700000000000 {SOURCE}");
    let failure = bad(place.path(), &line);
    assert!(failure.contains("1700000000000"), "{failure}");
    assert!(failure.contains("before the year 2514"), "{failure}");
    assert!(!place.path().join("a.rrd").exists());
}

#[test]
fn a_database_with_a_time_in_milliseconds_is_read() {
    let place = with_database();
    let place = place.path();
    // rrdtool takes an update of such a time, which says where the time is.
    let file = place.join("a.rrd");
    let mut bytes = fs::read(&file).unwrap();
    let seconds = 1_300_000_000_i64.to_le_bytes();
    let at = bytes.windows(8).position(|found| found == seconds).unwrap();
    bytes[at..at + 8].copy_from_slice(&1_300_000_300_000_i64.to_le_bytes());
    fs::write(&file, bytes).unwrap();

    assert_eq!(good(place, "last @a.rrd"), "1300000300000\n");
    let info = good(place, "info @a.rrd");
    assert!(info.contains("last_update = 1300000300000\n"), "{info}");
    let dump = good(place, "dump @a.rrd");
    assert!(dump.contains("<lastupdate>1300000300000</lastupdate>"));
    fs::write(place.join("a.xml"), dump).unwrap();
    good(place, "restore @a.xml @b.rrd");
    assert_eq!(good(place, "last @b.rrd"), "1300000300000\n");
    bad(place, "update @a.rrd 1300000600000:1");
    bad(place, "update @a.rrd 1300000600:1");
    let line = "create @c.rrd --template @a.rrd";
    assert!(bad(place, line).contains("before the year 2514"));
    assert!(!place.join("c.rrd").exists());
}

#[test]
fn deviations_are_a_tenth_at_least() {
    let place = with_database();
    let place = place.path();
    let line = format!("create @a.rrd -b 1300000000 {SOURCE} RRA:HWPREDICT:20:0.1:1:5");
    good(place, &line);
    for option in ["-p", "-n"] {
        for value in ["0.05", "0.0999", "0", "-1"] {
            let failure = bad(place, &format!("tune @a.rrd {option} {value}"));
            assert_eq!(failure, "Parameter specified is too small");
        }
        good(place, &format!("tune @a.rrd {option} 0.1"));
    }
    let info = good(place, "info @a.rrd");
    assert!(info.contains("beta = 1.0000000000e+00"), "{info}");
    assert!(info.contains("delta_pos = 1.0000000000e-01"), "{info}");
}

#[test]
fn limits_may_be_infinite_at_create_and_not_at_tune() {
    let place = with_database();
    let place = place.path();
    let line = "create @a.rrd DS:a:GAUGE:600:-infinity:INFINITY RRA:LAST:0.5:1:2";
    good(place, line);
    let info = good(place, "info @a.rrd");
    assert!(
        info.contains("ds[a].min = -inf\nds[a].max = inf\n"),
        "{info}"
    );
    for (option, which) in [("-i", "minimum"), ("-a", "maximum")] {
        for value in ["Inf", "-inf", "infinity", "nan"] {
            let failure = bad(place, &format!("tune @a.rrd {option} a:{value}"));
            assert_eq!(failure, format!("invalid arguments for {which} ds value"));
        }
    }
}

#[test]
fn a_source_that_begins_within_a_data_point_leaves_the_rest_to_others() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    for line in [
        "create @s0.rrd -b 1300000344 -s 213 DS:a:GAUGE:1000:U:U RRA:AVERAGE:0.5:1:30",
        "update @s0.rrd 1300000557:50",
        "create @s1.rrd -b 1300000320 -s 60 DS:a:GAUGE:1000:U:U RRA:AVERAGE:0.5:1:30",
        "update @s1.rrd 1300000380:10 1300000440:20 1300000560:40",
        "create @b.rrd -b 1300000560 -s 60 -r @s0.rrd -r @s1.rrd DS:a:GAUGE:1000:U:U \
         RRA:AVERAGE:0.9:2:2",
    ] {
        good(place, line);
    }
    let dump = good(place, "dump @b.rrd");
    let values: Vec<_> = dump.split("<v>").skip(1).map(|rest| &rest[..16]).collect();
    assert_eq!(values, ["4.2000000000e+01", "4.0000000000e+01"]);
}

#[test]
fn json_without_rows_has_an_empty_list() {
    let place = with_database();
    let line = "create @b.rrd -b 1300000000 -s 1 DS:a:GAUGE:600:U:U RRA:AVERAGE:0.5:1:10";
    good(place.path(), line);
    let line = "xport -s 1300000005 -e 1300000005 --step 1 --json DEF:a=@b.rrd:a:AVERAGE XPORT:a";
    let json = good(place.path(), line);
    assert!(json.ends_with("  \"data\": [\n  ]\n}\n"), "{json}");
}

#[cfg(unix)]
#[test]
fn without_its_daemon_a_time_is_the_files() {
    let place = with_database();
    for (line, time) in [
        ("last --daemon unix:@none @a.rrd", "1300000000\n"),
        ("first --daemon unix:@none @a.rrd", "1299997200\n"),
        ("last --daemon unix:@none @none.rrd", "-1\n"),
    ] {
        let (out, failure) = printed(place.path(), line);
        assert_eq!(out, time, "{line}");
        let failure = failure.unwrap();
        let expected = match time {
            "-1\n" => "No such file",
            _ => "Unable to connect to rrdcached: No such file",
        };
        assert!(failure.contains(expected), "{line}: {failure}");
    }
}

#[test]
fn locking_is_as_it_is_printed() {
    let place = with_database();
    let place = place.path();
    let mut held = Shared::open_locked(&place.join("a.rrd"), Locking::Try).unwrap();
    for line in [
        "info @a.rrd",
        "info --locking try @a.rrd",
        "tune @a.rrd -h a:900 --locking try",
    ] {
        assert_eq!(bad(place, line), "could not lock RRD", "{line}");
    }
    let line = "update @a.rrd 1300000300:1 --locking try";
    assert!(bad(place, line).contains("could not lock RRD"));
    good(place, "info --locking none @a.rrd");
    good(place, "tune --locking=none @a.rrd -h a:900");
    good(place, "update --locking none @a.rrd 1300000300:1");
    let failure = bad(place, "info --locking never @a.rrd");
    assert!(failure.contains("expected none, try or block"), "{failure}");
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| good(place, "last --locking block @a.rrd"));
        std::thread::sleep(Duration::from_millis(100));
        assert!(!waits.is_finished());
        held.unlock().unwrap();
        assert_eq!(waits.join().unwrap(), "1300000300\n");
    });
}
