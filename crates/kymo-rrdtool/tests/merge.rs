//! `merge`: whose values win, and what the new database is like.

#[path = "common/place.rs"]
mod place;

use place::Place;

impl Place {
    /// The rows of a database by time, `-` where they are unknown.
    fn rows(&self, file: &str, resolution: u64, end: u64) -> Vec<String> {
        let text = self.ok(&format!(
            "fetch @{file} AVERAGE -r {resolution} -s 1600000000 -e {end}"
        ));
        let rows = text.lines().filter_map(|line| line.split_once(": "));
        rows.map(|(_, row)| {
            let values = row.split_whitespace().map(|value| match value {
                value if value.contains("nan") => "-".to_owned(),
                value => value.parse::<f64>().unwrap().to_string(),
            });
            values.collect::<Vec<_>>().join(" ")
        })
        .collect()
    }
}

/// `fine` has steps of 10 s and a gap, `coarse` steps of 20 s and later values, `other` another data source.
fn with_three() -> Place {
    let place = Place::new();
    place.ok("create @fine.rrd --start 1600000000 -s 10 DS:a:GAUGE:10:U:U RRA:AVERAGE:0.5:1:10 RRA:MAX:0.5:6:5");
    place.ok("update @fine.rrd 1600000010:1 1600000020:2 1600000050:5 1600000060:6");
    place.ok("create @coarse.rrd --start 1600000000 -s 20 DS:a:GAUGE:20:U:U RRA:AVERAGE:0.5:1:20 RRA:MAX:0.5:3:9");
    place.ok("update @coarse.rrd 1600000020:20 1600000040:40 1600000060:60 1600000080:80");
    place.ok("create @other.rrd --start 1600000000 -s 10 DS:b:GAUGE:10:U:U RRA:AVERAGE:0.5:1:10");
    place.ok("update @other.rrd 1600000010:7 1600000020:8");
    place
}

#[test]
fn the_finer_wins_where_it_knows_something() {
    let place = with_three();
    place.ok("merge @all.rrd @coarse.rrd @fine.rrd");
    assert_eq!(
        place.rows("all.rrd", 10, 1_600_000_070),
        ["1", "2", "40", "40", "60", "6", "80", "80"]
    );
    let info = place.ok("info @all.rrd");
    for fact in [
        "step = 10",
        "last_update = 1600000080",
        "rra[0].pdp_per_row = 1",
        "rra[0].rows = 10",
        "rra[1].pdp_per_row = 2",
        "rra[1].rows = 20",
        "rra[2].cf = \"MAX\"",
        "rra[2].pdp_per_row = 6",
        "rra[2].rows = 9",
    ] {
        assert!(info.lines().any(|line| line == fact), "{fact}: {info}");
    }
    assert!(!info.contains("rra[3]"), "{info}");
    // It goes on from there.
    place.ok("update @all.rrd 1600000090:9");
    assert_eq!(
        place.rows("all.rrd", 10, 1_600_000_080).last().unwrap(),
        "9"
    );
}

#[test]
fn others_win_if_that_is_asked_for() {
    let place = with_three();
    place.ok("merge @newer.rrd --prefer newer @fine.rrd @coarse.rrd");
    place.ok("merge @first.rrd --prefer first @coarse.rrd @fine.rrd");
    for file in ["newer.rrd", "first.rrd"] {
        let rows = place.rows(file, 10, 1_600_000_050);
        assert_eq!(rows, ["20", "20", "40", "40", "60", "60"], "{file}");
    }
    // In place of one of them.
    place.ok("merge @fine.rrd --force --prefer first @fine.rrd @coarse.rrd");
    assert_eq!(place.rows("fine.rrd", 10, 1_600_000_010), ["1", "2"]);
    assert_eq!(place.rows("fine.rrd", 10, 1_600_000_030)[2..], ["40", "40"]);
}

#[test]
fn all_data_sources_are_there() {
    let place = with_three();
    place.ok("merge @all.rrd @fine.rrd @other.rrd");
    assert_eq!(
        place.rows("all.rrd", 10, 1_600_000_020),
        ["1 7", "2 8", "- -"]
    );
}

#[test]
fn what_cannot_be_merged_is_said() {
    let place = with_three();
    let fails = |line: &str| place.run(line).0.unwrap_err();
    assert!(fails("merge @out.rrd @fine.rrd").starts_with("Usage: kymo rrd merge"));
    assert_eq!(
        fails("merge @out.rrd @fine.rrd @coarse.rrd --prefer x"),
        "--prefer: found 'x', expected finer, newer or first"
    );
    place.ok("create @odd.rrd --start 1600000000 -s 7 DS:a:COUNTER:7:U:U RRA:AVERAGE:0.5:1:10");
    let problem = fails("merge @out.rrd @fine.rrd @odd.rrd");
    assert!(
        problem.starts_with(
            "'@fine.rrd': it has rows of 10 s, which is not a multiple of the shortest step, 7 s"
        ),
        "{problem}"
    );
    assert_eq!(
        fails("merge @fine.rrd @fine.rrd @coarse.rrd"),
        "'@fine.rrd' already exists; --force overwrites it"
    );
    place.ok("create @hw.rrd --start 1600000000 -s 10 DS:a:COUNTER:10:U:U RRA:AVERAGE:0.5:1:10 RRA:HWPREDICT:10:0.1:0.1:5");
    let (done, warnings) = place.run("merge @out.rrd @fine.rrd @hw.rrd");
    done.unwrap();
    assert!(
        warnings.contains("archives of Holt and Winters are left out")
            && warnings
                .contains("the data source 'a' is COUNTER here, and GAUGE in the new database"),
        "{warnings}"
    );
    assert!(!place.ok("info @out.rrd").contains("HWPREDICT"));
}

/// A preferred database knows some of the time only by rows that are longer than those of another.
#[test]
fn rows_as_short_win_over_longer_ones() {
    let place = Place::new();
    place.ok("create @fine.rrd --start 1600000000 -s 10 DS:a:GAUGE:10:U:U RRA:AVERAGE:0:1:3 RRA:AVERAGE:0:8:3");
    place.ok("create @exact.rrd --start 1600000000 -s 20 DS:a:GAUGE:20:U:U RRA:AVERAGE:0:1:20");
    for second in (10..=160).step_by(10) {
        place.ok(&format!(
            "update @fine.rrd {}:{second}",
            1_600_000_000 + second
        ));
    }
    for second in (20..=160).step_by(20) {
        place.ok(&format!(
            "update @exact.rrd {}:{}",
            1_600_000_000 + second,
            1000 + second
        ));
    }
    place.ok("merge @all.rrd @fine.rrd @exact.rrd");
    assert_eq!(
        place.rows("all.rrd", 20, 1_600_000_159),
        // What is older than the three rows of 10 s has exact rows, and no means of 80 s; the newest is of both.
        [
            "1020", "1040", "1060", "1080", "1100", "1120", "1140", "155"
        ]
    );
    place.ok("merge @first.rrd --prefer first @fine.rrd @exact.rrd");
    assert_eq!(
        place.rows("first.rrd", 20, 1_600_000_159),
        ["45", "45", "45", "45", "125", "125", "125", "155"]
    );
}

/// Days are 86400 data points each of a database with steps of a second.
#[test]
fn long_rows_take_no_longer_than_short_ones() {
    let place = Place::new();
    place.ok("create @days.rrd --start 1599955200 -s 86400 DS:a:GAUGE:86400:U:U RRA:AVERAGE:0:1:3650 RRA:MAX:0:7:520");
    place.ok("create @seconds.rrd --start 1599955200 -s 1 DS:a:GAUGE:1:U:U RRA:AVERAGE:0:1:1000");
    place.ok("update @days.rrd 1600041600:5 1600128000:6");
    let begun = std::time::Instant::now();
    place.ok("merge @all.rrd @days.rrd @seconds.rrd");
    // A data point after the other, it would be 315 millions, and minutes.
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
    let text = place.ok("fetch @all.rrd AVERAGE -r 86400 -s 1599955200 -e 1600128000");
    let known: Vec<_> = text.lines().filter(|line| line.contains("e+00")).collect();
    assert_eq!(known.len(), 2, "{text}");
    assert!(known[0].starts_with("1600041600: 5.0") && known[1].starts_with("1600128000: 6.0"));
}

#[cfg(unix)]
#[test]
fn links_lead_to_what_is_overwritten() {
    let place = with_three();
    let path = |name: &str| place.0.path().join(name);
    std::os::unix::fs::symlink(path("fine.rrd"), path("link.rrd")).unwrap();
    let refused = place.run("merge @link.rrd @fine.rrd @coarse.rrd").0;
    assert!(refused.unwrap_err().contains("already exists"));
    place.ok("merge @link.rrd --force @fine.rrd @coarse.rrd");
    assert!(path("link.rrd").is_symlink());
    assert!(
        place
            .ok("info @fine.rrd")
            .contains("last_update = 1600000080")
    );
    // The file it leads to need not exist yet.
    std::os::unix::fs::symlink("later.rrd", path("loose.rrd")).unwrap();
    let refused = place.run("merge @loose.rrd @fine.rrd @coarse.rrd").0;
    assert!(refused.is_err());
    place.ok("merge @loose.rrd --force @fine.rrd @coarse.rrd");
    assert!(path("loose.rrd").is_symlink());
    assert!(path("later.rrd").symlink_metadata().unwrap().is_file());
}
