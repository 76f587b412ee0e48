//! `create`, `tune`, `import` and `prometheus`: what they make, print and refuse.

#[path = "common/place.rs"]
mod place;

use std::path::Path;

use kymo_io::NewFile;
use kymo_machine::Machine;
use kymo_rrd::Source;
use kymo_rrdtool::{Defaults, Session, run};

use place::Place;

impl Place {
    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    fn fails(&self, line: &str) -> String {
        self.run(line).0.expect_err(line)
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    /// Facts that `info` prints, except the name of the file.
    fn info(&self, name: &str) -> String {
        let info = self.ok(&format!("info @{name}"));
        info.lines()
            .skip(1)
            .map(|line| format!("{line}\n"))
            .collect()
    }

    /// Rows that `dump` prints.
    fn rows(&self, name: &str) -> Vec<String> {
        let dump = self.ok(&format!("dump -n @{name}"));
        let rows = dump
            .lines()
            .filter_map(|line| Some(line.split_once(" / ")?.1.to_owned()));
        rows.collect()
    }
}

const CREATE: &str = "create @a.rrd -b 1600000000 --first-row 1,0 \
    DS:a:GAUGE:600:0:100 DS:b:COUNTER:600:U:U RRA:AVERAGE:0.5:1:4 RRA:MAX:0.5:2:3";

fn filled(place: &Place, format: &str) {
    place.ok(&format!("{CREATE} --format {format}"));
    let readings: String = (1..9)
        .map(|i| format!(" {}:{i}:{}", 1_600_000_000 + i * 250, i * 100))
        .collect();
    place.ok(&format!("update @a.rrd{readings}"));
}

#[test]
fn a_new_database_is_as_it_was_reported() {
    let place = Place::new();
    place.ok(CREATE);
    let one = place.bytes("a.rrd");
    place.ok(CREATE);
    assert!(one == place.bytes("a.rrd"));
    let info = place.info("a.rrd");
    for fact in [
        "step = 300",
        "last_update = 1600000000",
        "ds[a].unknown_sec = 100",
        "rra[0].cur_row = 1",
        "rra[1].cur_row = 0",
        "rra[1].cdp_prep[0].unknown_datapoints = 1",
    ] {
        assert!(info.lines().any(|line| line == fact), "{fact} in {info}");
    }
    // Ten seconds ago, at any row.
    place.ok("create @b.rrd DS:a:GAUGE:600:0:100 RRA:AVERAGE:0.5:1:4");
    assert!(place.info("b.rrd").contains("last_update = 1699999990\n"));
    place.ok("create @b.rrd -b 1600000000-1d -s 1m DS:a:GAUGE:600:0:100 RRA:AVERAGE:0.5:1h:1d");
    let info = place.info("b.rrd");
    assert!(info.contains("last_update = 1599913600\n"), "{info}");
    assert!(info.contains("rra[0].rows = 24\n"), "{info}");
}

#[test]
fn files_of_every_machine_are_made() {
    let place = Place::new();
    for machine in Machine::all().iter() {
        place.ok(&format!("{CREATE} --format {}", machine.name()));
        let bytes = place.bytes("a.rrd");
        let source = Source::open(&bytes, None).unwrap();
        let kymo_rrd::Form::Native(detection) = &source.form else {
            panic!("a native file");
        };
        assert!(detection.alike.contains(&machine), "{}", machine.name());
    }
    place.ok(&format!("{CREATE} --format portable"));
    assert!(kymo_rrd::file::portable::is_portable(&place.bytes("a.rrd")));
}

#[cfg(unix)]
#[test]
fn new_files_may_be_read_by_all() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let mode = |place: &Place| {
        let file = std::fs::metadata(place.path("a.rrd")).unwrap();
        file.permissions().mode() & 0o777
    };
    place.ok(CREATE);
    assert_eq!(mode(&place), 0o644);
    let private = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(place.path("a.rrd"), private).unwrap();
    place.ok(CREATE);
    assert_eq!(mode(&place), 0o600);
}

#[test]
fn what_cannot_be_created_is_reported() {
    let place = Place::new();
    let source = "DS:a:GAUGE:600:0:100";
    let archive = "RRA:AVERAGE:0.5:1:4";
    for (line, failure) in [
        ("create", "need name of an rrd file to create"),
        (
            "create @b.rrd",
            "you must define at least one Round Robin Archive",
        ),
        (
            "create @b.rrd RRA:LAST:0:1:4",
            "you must define at least one Data Source",
        ),
        ("create @b.rrd -s 0", "step size: value must be positive"),
        ("create @b.rrd -b foo", "start time: unparsable time: foo"),
        (
            "create @b.rrd -b 19790101",
            "the first entry to the RRD should be after 1980",
        ),
        (
            "create @b.rrd -b end-1d",
            "specifying time relative to the 'start' or 'end' makes no sense here",
        ),
        (
            "create @b.rrd -r @no.rrd",
            "error checking for source RRD @no.rrd: No such file or directory",
        ),
        ("create @b.rrd XX", "can't parse argument 'XX'"),
    ] {
        assert_eq!(place.fails(line), failure, "{line}");
    }
    for (words, failure) in [
        (
            "--first-row 4",
            "--first-row: found 4 for archive 0, expected less than its 4 rows",
        ),
        (
            "--first-row 1,2",
            "--first-row: found 2 numbers, expected one, or one for each of 1 archives",
        ),
        (
            "RRA:LAST:0.5:1:1000000000000000000",
            "cannot allocate memory",
        ),
    ] {
        let line = format!("create @b.rrd {source} {archive} {words}");
        assert_eq!(place.fails(&line), failure);
    }
    assert!(!Path::new(&place.path("b.rrd")).exists());
    place.ok(CREATE);
    let before = place.bytes("a.rrd");
    let line = format!("create @a.rrd -O {source} {archive}");
    assert_eq!(place.fails(&line), "creating '@a.rrd': File exists");
    assert!(before == place.bytes("a.rrd"));
}

#[test]
fn values_come_from_other_databases() {
    let place = Place::new();
    filled(&place, "sparc");
    place.ok(
        "create @b.rrd -r @a.rrd DS:x=a:GAUGE:600:U:U DS:b:COUNTER:600:U:U DS:new:GAUGE:600:U:U \
         RRA:AVERAGE:0.5:1:6 RRA:MAX:0.5:2:3",
    );
    insta::assert_snapshot!("rows_of_others", place.rows("b.rrd").join("\n"));
    assert_eq!(
        place.ok("lastupdate @b.rrd"),
        " x b new\n\n1600002000: 8 800 U\n"
    );
    place.ok("create @c.rrd -t @a.rrd --first-row 0");
    let definitions = |name: &str| {
        let info = place.info(name);
        let of_definitions = |line: &&str| {
            !["value", "unknown", "cur_row", "last_"]
                .iter()
                .any(|word| line.contains(word))
        };
        info.lines()
            .filter(of_definitions)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let sizes = |lines: Vec<String>| {
        lines
            .into_iter()
            .filter(|it| !it.starts_with("header"))
            .collect::<Vec<_>>()
    };
    assert_eq!(sizes(definitions("a.rrd")), sizes(definitions("c.rrd")));
}

/// Paths of this machine mean nothing to a daemon of another one.
#[test]
fn daemons_of_other_machines_get_no_absolute_paths() {
    let place = Place::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    for command in ["last", "info", "fetch", "flushcached"] {
        let function = if command == "fetch" { "AVERAGE" } else { "" };
        assert_eq!(
            place.fails(&format!("{command} --daemon {address} @a.rrd {function}")),
            "absolute path names not allowed when talking to a remote daemon",
            "{command}"
        );
    }
}

/// A row under way goes on in the new database, though no archive knows its points.
#[test]
fn rows_under_way_come_from_other_databases() {
    let place = Place::new();
    let archives = "DS:d:GAUGE:50:U:U RRA:AVERAGE:0.5:6:17 RRA:MAX:0.5:6:5";
    place.ok(&format!("create @a -b 1600000200 -s 10 {archives}"));
    place.ok("update @a 1600000210:1 1600000220:1.5 1600000230:4 1600000231:1");
    place.ok(&format!("create @b -r @a -s 10 {archives}"));
    place.ok("tune @a RRA:AVERAGE:0.5:6:30");
    for (file, functions) in [("a", "AVERAGE MAX"), ("b", "AVERAGE MAX")] {
        place.ok(&format!("update @{file} 1600000240:9 1600000260:9"));
        for function in functions.split(' ') {
            let rows = place.ok(&format!(
                "fetch @{file} {function} -s 1600000259 -e 1600000259"
            ));
            let value = match function {
                // 1, 1.5, 4, then one second of 1 and nine of 9, then 9 twice.
                "AVERAGE" => "5.4500000000e+00",
                _ => "9.0000000000e+00",
            };
            assert!(
                rows.contains(&format!("1600000260: {value}")),
                "{file} {rows}"
            );
        }
    }
}

#[test]
fn parameters_change_in_place() {
    for format in ["x86_64", "sparc", "portable"] {
        let place = Place::new();
        filled(&place, format);
        let before = place.info("a.rrd");
        let rows = place.rows("a.rrd");
        place.ok("tune @a.rrd -h a:15m -i b:-5.5 -a a:U -r b:c -d c:DERIVE");
        let after = place.info("a.rrd");
        assert_eq!(rows, place.rows("a.rrd"));
        let changed = after
            .lines()
            .filter(|line| !before.lines().any(|other| other == *line));
        let changed: Vec<_> = changed.filter(|line| !line.starts_with("ds[c]")).collect();
        let facts = ["ds[a].minimal_heartbeat = 900", "ds[a].max = NaN"];
        assert_eq!(changed, facts, "{format}");
        for fact in [
            "ds[c].type = \"DERIVE\"",
            "ds[c].min = -5.5000000000e+00",
            "ds[c].last_ds = \"UNKN\"",
        ] {
            assert!(after.lines().any(|line| line == fact), "{fact} in {after}");
        }
    }
}

#[test]
fn what_cannot_be_tuned_changes_nothing() {
    let place = Place::new();
    filled(&place, "x86_64");
    let before = place.bytes("a.rrd");
    for (words, failure) in [
        ("-h a", "invalid arguments for heartbeat"),
        ("-h z:5", "unknown data source name 'z'"),
        ("-h a:5 -h z:5", "unknown data source name 'z'"),
        ("-i a:x", "invalid arguments for minimum ds value"),
        ("-d a:FOO", "unknown data acquisition function 'FOO'"),
        ("-r a:b", "Duplicate DS name: b"),
        ("-p 0", "Parameter specified is too small"),
        ("-f 29", "Parameter must be between 1 and 28"),
        ("-f 3", "Failures RRA does not exist in this RRD"),
        ("-x 1", "Holt-Winters parameter must be between 0 and 1"),
        ("-x x", "Unable to parse Holt-Winters parameter"),
        ("-x 0.5", "Holt-Winters RRA does not exist in this RRD"),
        ("what", "unparseable argument: what"),
        ("RRA#0:5", "Failed to parse RRA# command"),
        (
            "DELRRA:-1",
            "DELRRA requires a non-negative, integer argument",
        ),
        ("DEL:a DEL:b", "you must define at least one Data Source"),
        ("DS:a:GAUGE:5:U:U", "Duplicate DS name: a"),
        (
            "RRA:MIN:0.5:1",
            "Expected at least 4 arguments for RRA but got 3",
        ),
        (
            "--step 70",
            "invalid 'newstep' parameter. The newsize must divide the old step parameter without \
             a remainder.",
        ),
    ] {
        assert_eq!(
            place.fails(&format!("tune @a.rrd {words}")),
            failure,
            "{words}"
        );
        assert!(before == place.bytes("a.rrd"), "{words}");
    }
    let missing = place.fails("tune @no.rrd");
    assert_eq!(missing, "opening '@no.rrd': No such file or directory");
    let (done, warnings) = place.run("tune @a.rrd DEL:z RRA#9:+1");
    assert!(done.is_ok());
    insta::assert_snapshot!(warnings, @r"
    WARNING: DEL:z: unknown data source
    WARNING: there is no RRA with index 9
    ");
}

#[test]
fn a_file_that_another_writes_is_left_alone() {
    let place = Place::new();
    filled(&place, "x86_64");
    let file = std::fs::File::options()
        .read(true)
        .write(true)
        .open(place.path("a.rrd"))
        .unwrap();
    kymo_io::lock(&file, kymo_io::Locking::Try).unwrap();
    assert_eq!(place.fails("tune @a.rrd -h a:5"), "could not lock RRD");
}

/// The check that there is no file is also made at the end, not only before the work.
#[test]
fn a_file_that_comes_meanwhile_stays() {
    let place = Place::new();
    let path = place.path("a.rrd");
    let put = |new: NewFile| {
        std::fs::write(&path, "of another")?;
        new.put()
    };
    let words = ["create", "--no-overwrite", &path, "DS:a:GAUGE:600:U:U"];
    let words = words.into_iter().chain(["RRA:LAST:0.5:1:10"]);
    let words: Vec<&[u8]> = words.map(str::as_bytes).collect();
    for durable in [false, true] {
        let (mut out, mut warnings) = (Vec::new(), Vec::new());
        let mut session = Session::new(&mut out, &mut warnings, Defaults::default());
        session.durable = durable;
        session.place = Some(&put);
        let failure = run(&mut session, &words).unwrap().unwrap_err();
        assert_eq!(
            failure.to_string(),
            format!("creating '{path}': File exists")
        );
        assert_eq!(std::fs::read(&path).unwrap(), b"of another");
        assert_eq!(std::fs::read_dir(&place.0).unwrap().count(), 1);
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn archives_keep_their_values_when_others_go() {
    for format in ["x86_64", "portable"] {
        let place = Place::new();
        filled(&place, format);
        let rows = place.rows("a.rrd");
        place.ok("tune @a.rrd DELRRA:0 RRA#1:+1 DS:n:GAUGE:600:U:U");
        let after = place.rows("a.rrd");
        assert_eq!(after.len(), 4);
        assert!(after[0].contains("NaN"), "{}", after[0]);
        for (before, after) in rows[4..].iter().zip(&after[1..]) {
            let before = before.strip_suffix("</row>").unwrap();
            assert_eq!(&format!("{before}<v>NaN</v></row>"), after);
        }
        assert_eq!(
            place.ok("lastupdate @a.rrd"),
            " a b n\n\n1600002000: 8 800 U\n"
        );
    }
}

/// The rows that rrdtool 1.7.2 makes: those of which anything is known, whatever the xff.
#[test]
fn new_archives_have_what_is_known() {
    for xff in ["0", "0.5", "0.9"] {
        let place = Place::new();
        place.ok("create @a.rrd -b 1600000000 -s 10 DS:a:GAUGE:10:U:U RRA:AVERAGE:0:1:8");
        place.ok(
            "update @a.rrd 1600000010:U 1600000020:2 1600000030:U 1600000040:U 1600000050:5 \
             1600000060:6 1600000070:7 1600000080:U",
        );
        place.ok(&format!(
            "tune @a.rrd RRA:AVERAGE:{xff}:2:4 RRA:MAX:{xff}:4:2"
        ));
        let rows = place.rows("a.rrd");
        let value = |row: &String| {
            let value = row.split_once("<v>").unwrap().1;
            value.split_once('<').unwrap().0.parse::<f64>().unwrap()
        };
        let values: Vec<_> = rows[8..].iter().map(value).collect();
        assert!(values[1].is_nan());
        let known: Vec<_> = values.into_iter().filter(|value| !value.is_nan()).collect();
        assert_eq!(known, [2.0, 5.5, 7.0, 2.0, 7.0], "{xff}");
    }
}

#[test]
fn tables_become_databases() {
    let place = Place::new();
    std::fs::write(
        place.path("t.csv"),
        "time,load avg,users,host\n\
         1600000060,0.5,3,\"a,b\"\n\
         2020-09-13T12:28:40Z,1.5,,x\n\
         1600000180.0,U,5,x\n\
         1600000170,9,9,x\n\
         1600000240000000000,2.5,6,x\n\
         1600000240,2.5,6,x\n",
    )
    .unwrap();
    let (done, warnings) = place.run("import @t.csv @t.rrd --first-row 0");
    assert_eq!(done, Ok(String::new()));
    insta::assert_snapshot!(warnings, @r"
    WARNING: @t.csv: line 5 is left out: it is of a time before that of the row before it
    WARNING: @t.csv: line 7 is left out: it is of the same time as the row before it
    WARNING: @t.csv: 2 rows are left out, since they are not in order of time
    ");
    insta::assert_snapshot!("rows_of_a_table", place.rows("t.rrd").join("\n"));
    assert_eq!(place.ok("last @t.rrd"), "1600000240\n");
    place.run("import @t.csv @p.rrd --format portable -s 2m DS:l=load_avg:GAUGE:5m:0:U RRA:LAST:0.5:1:3").0.unwrap();
    assert_eq!(place.ok("lastupdate @p.rrd"), " l\n\n1600000240: 2.5\n");
    std::fs::write(place.path("n.csv"), "1600000060,7\n1600000120,8\n").unwrap();
    place.ok("import @n.csv @n.rrd --columns when,x");
    assert_eq!(place.ok("lastupdate @n.rrd"), " x\n\n1600000120: 8\n");
    for (text, words, failure) in [
        ("", "", "'@e.csv': there are no rows"),
        ("time,a\n", "", "'@e.csv': there are no rows"),
        (
            "time,a\n1600000000,x\n",
            "",
            "'@e.csv': no column has readings",
        ),
        (
            "time,a\n1600000000,1\n1600000300,x\n",
            "DS:a:GAUGE:5:U:U",
            "'@e.csv': line 3, column 2: found 'x', expected a number, `U` or nothing",
        ),
        (
            "time,a\nnoon,1\n",
            "",
            "'@e.csv': line 2, column 1: found 'noon', expected a time: seconds or nanoseconds \
             since 1970, or as in 2024-05-06T07:08:09Z",
        ),
        (
            "time,a\n1600000000,1,\n1600000060,1,5\n",
            "",
            "'@e.csv': line 3: found 3 fields, expected 2, as many as there are names of columns; \
             numbers have a decimal point, not a comma",
        ),
        (
            "a,b\n1600000000,1\n",
            "--time t",
            "'@e.csv': no column is named 't'",
        ),
        (
            "a,b\n1600000000,1\n",
            "DS:c:GAUGE:5:U:U",
            "'@e.csv': no column of readings is named 'c'",
        ),
    ] {
        std::fs::write(place.path("e.csv"), text).unwrap();
        let line = format!("import @e.csv @e.rrd {words}");
        assert_eq!(place.fails(&line), failure);
        assert!(!Path::new(&place.path("e.rrd")).exists());
    }
}

#[test]
fn last_values_are_exposed() {
    let place = Place::new();
    std::fs::create_dir(place.path("d")).unwrap();
    std::fs::write(place.path("d/notes"), "no database").unwrap();
    filled(&place, "x86_64");
    std::fs::rename(place.path("a.rrd"), place.path("d/a\"b.rrd")).unwrap();
    insta::assert_snapshot!("exposition", place.ok("prometheus --timestamps @d"));
    let (done, warnings) = place.run("prometheus @d/notes @no");
    assert_eq!(done, Err("2 of the inputs cannot be read".to_owned()));
    assert_eq!(warnings.lines().count(), 2, "{warnings}");
    std::fs::create_dir(place.path("none")).unwrap();
    let (done, warnings) = place.run("prometheus @none");
    assert_eq!(done, Ok(String::new()));
    assert_eq!(warnings, "WARNING: no database is in '@none'\n");
}

#[test]
fn whole_histories() {
    let place = Place::new();
    place.ok(
        "create @a.rrd -b 1600000000 -s 100 DS:a:GAUGE:200:U:U DS:b:GAUGE:200:U:U RRA:LAST:0.5:1:4 \
         RRA:LAST:0.5:1:9 RRA:MAX:0.5:2:9",
    );
    place.ok("update @a.rrd 1600000100:1.5:U 1600000200:U:U 1600000300:inf:3 1600000400:4:-1e300");
    std::fs::rename(place.path("a.rrd"), place.path("a,b.rrd")).unwrap();
    std::fs::write(place.path("notes"), "no database").unwrap();
    let formats = ["openmetrics", "prometheus", "influx"];
    let texts = formats.map(|format| place.ok(&format!("export --to {format} @")));
    insta::assert_snapshot!("histories", texts.join("\n"));
    let part = place.ok("export --to influx --function LAST -s 1600000300 -e start+1s @");
    assert_eq!(
        part,
        "rrd,file=@a\\,b.rrd,cf=LAST,step=100 b=3.0 1600000300000000000\n"
    );
    for (words, problem) in [
        (
            "@",
            "--to is missing: expected openmetrics, prometheus, influx or parquet",
        ),
        (
            "--to parquet @",
            "Parquet files are written by `kymo rrd export` only",
        ),
        (
            "--to csv @",
            "found format 'csv', expected openmetrics, prometheus, influx or parquet",
        ),
        (
            "--to influx -o @out @",
            "--output and --force are for --to parquet: the other formats are printed",
        ),
        ("--to influx @no", "1 of the inputs cannot be read"),
    ] {
        let (done, _) = place.run(&format!("export {words}"));
        assert_eq!(done, Err(problem.to_owned()));
    }
}

/// As rrdtool prints them.
#[test]
fn times_before_2001_have_as_many_places() {
    let place = Place::new();
    place.ok("create @a.rrd -b 400000000 -s 10 DS:a:GAUGE:10:U:U RRA:LAST:0:7:8 RRA:LAST:0:1:8");
    let text = place.ok("fetch @a.rrd LAST -s 400000000 -e 400000020");
    assert!(text.contains("\n 400000010: "), "{text}");
    // The longest resolution there is goes round: the shortest rows are nearest to it.
    let line = "fetch @a.rrd LAST -r 99999999999999999999 -s 399999960 -e 399999990";
    assert!(place.ok(line).contains("\n 399999970: "));
    // Of that length all times are the first.
    assert!(place.ok(&format!("{line} -a")).contains("\n        70: "));
}

/// Prometheus refuses all of what has two.
#[test]
fn there_is_one_value_of_each_name() {
    let place = Place::new();
    place.ok(
        "create @a.rrd -b 1600000000 DS:a:GAUGE:600:0:U RRA:LAST:0.5:1:4 RRA:LAST:0.5:1:9 \
         RRA:LAST:0.5:2:9",
    );
    let text = place.ok("prometheus @a.rrd @a.rrd");
    let samples: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(samples.len(), 3, "{text}");
}

/// A file of RRD4J with a data source, two rows of AVERAGE and two of TOTAL.
fn rrd4j() -> Vec<u8> {
    let mut bytes = Vec::new();
    let text = |bytes: &mut Vec<u8>, text: &str| {
        let units = text.encode_utf16().chain(std::iter::repeat(0x20));
        bytes.extend(units.take(20).flat_map(u16::to_be_bytes));
    };
    text(&mut bytes, "RRD4J, version 0.2");
    bytes.extend(300i64.to_be_bytes());
    bytes.extend([1i32, 2].iter().flat_map(|count| count.to_be_bytes()));
    bytes.extend(1_600_000_500i64.to_be_bytes());
    text(&mut bytes, "sun");
    text(&mut bytes, "GAUGE");
    bytes.extend(600i64.to_be_bytes());
    bytes.extend(
        [0.0, f64::NAN, 7.0, 0.0]
            .iter()
            .flat_map(|number: &f64| number.to_be_bytes()),
    );
    bytes.extend(0i64.to_be_bytes());
    for kind in ["AVERAGE", "TOTAL"] {
        text(&mut bytes, kind);
        bytes.extend(0.5f64.to_be_bytes());
        bytes.extend([1i32, 2].iter().flat_map(|count| count.to_be_bytes()));
        bytes.extend(1i32.to_be_bytes());
        bytes.extend(f64::NAN.to_be_bytes());
        bytes.extend(0i64.to_be_bytes());
        bytes.extend(
            [2.5, 1.5]
                .iter()
                .flat_map(|value: &f64| value.to_be_bytes()),
        );
    }
    bytes
}

#[test]
fn files_of_rrd4j_become_databases() {
    let place = Place::new();
    std::fs::write(place.path("j"), rrd4j()).unwrap();
    for words in [
        "",
        " --first-row 0",
        " RRA:AVERAGE:0.5:1:2",
        " --format portable",
    ] {
        let (done, warnings) = place.run(&format!("import @j @j.rrd{words}"));
        assert_eq!(done, Ok(String::new()));
        assert_eq!(warnings.matches("found TOTAL").count(), 1, "{warnings}");
        let values = ["1.5000000000e+00", "2.5000000000e+00"];
        let rows: Vec<_> = place.rows("j.rrd");
        assert_eq!(rows.len(), 2, "{words}");
        for (row, value) in rows.iter().zip(values) {
            assert!(row.contains(value), "{row}");
        }
        assert_eq!(place.ok("lastupdate @j.rrd"), " sun\n\n1600000500: 7\n");
    }
    assert_eq!(
        place.fails("import @j @k.rrd --time t"),
        "'@j': this is a file of RRD4J, which has no columns"
    );
    assert_eq!(
        place.fails("import @j.rrd @k.rrd"),
        "'@j.rrd': this is a database already; `kymo rrd convert` makes one of another form of it"
    );
}
