//! What `fetch` and `xport` print. rrdtool 1.7.2 prints the same of the same file, but where a test
//! says otherwise.

use kymo_machine::Machine;
use kymo_rrd::engine::{Definition, Measurement, Rrd, Sample, Smoothing, create};
use kymo_rrd::file::native::write;
use kymo_rrd::{Time, file::portable};
use kymo_rrdtool::{Defaults, LocalZone, Session, run};
use proptest::prelude::*;
use tempfile::TempDir;

const STEP: i64 = 300;
const START: i64 = 999_999_900;
/// When the commands are given: an hour and a half after the last update.
const NOW: i64 = 1_000_009_000;

/// Readings of two data sources, one a step.
const READINGS: [[&str; 2]; 12] = [
    ["1", "-7"],
    ["2.5", "U"],
    ["4", "1e-14"],
    ["U", "3"],
    ["U", "1e300"],
    ["1234567.891", "0"],
    ["7", "inf"],
    ["8", "-inf"],
    ["9.25", "5"],
    ["10", "6"],
    ["11", "7"],
    ["12", "8"],
];

fn file(directory: &TempDir, machine: &str) -> String {
    let texts = [
        "DS:load:GAUGE:600:U:U",
        "DS:a_longer_name:GAUGE:600:U:U",
        "RRA:AVERAGE:0.5:1:20",
        "RRA:MAX:0.5:4:5",
    ];
    let start = Time::from_seconds(START);
    let definition = Definition::parse(start, STEP as u64, &texts, &Smoothing::default()).unwrap();
    let database = create(&definition, |_, rows| rows - 1).unwrap();
    let file = portable::create(&database, None, &Default::default(), Vec::new());
    let portable = file.unwrap().into_storage();
    let bytes = match machine {
        "portable" => portable,
        machine => {
            let view = portable::read(&portable).unwrap();
            let machine = Machine::find(machine).unwrap();
            write(view.database(), &view.rows().unwrap(), machine).unwrap()
        }
    };
    let mut rrd = Rrd::open(bytes).unwrap();
    for (place, readings) in READINGS.iter().enumerate() {
        let values = readings.map(|reading| Measurement::Text(reading.as_bytes()));
        let time = Time::from_seconds(START + STEP * (place as i64 + 1));
        let values = &values;
        rrd.update(&Sample { time, values }).unwrap();
    }
    let path = directory.path().join(format!("{machine}.rrd"));
    std::fs::write(&path, rrd.into_storage()).unwrap();
    path.into_os_string().into_string().unwrap()
}

/// What a command line prints; `FILE` is the database.
fn says(machine: &str, line: &str) -> String {
    let directory = TempDir::new().unwrap();
    let file = file(&directory, machine);
    let words: Vec<String> = line
        .split_whitespace()
        .map(|word| word.replace("FILE", &file).replace('~', " "))
        .collect();
    let words: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
    let (mut out, mut warnings) = (Vec::new(), Vec::new());
    let mut session = Session::new(&mut out, &mut warnings, Defaults::default());
    session.now = Some(NOW);
    session.zone = LocalZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
    let done = run(&mut session, &words).expect("a command");
    let mut text = String::from_utf8(out).unwrap();
    if let Err(failure) = done {
        text += &format!("ERROR: {failure}\n");
    }
    text += &String::from_utf8(warnings).unwrap();
    text.replace(&file, "FILE")
}

#[test]
fn fetch_prints_rows() {
    insta::assert_snapshot!(says(
        "x86_64",
        "fetch FILE AVERAGE -s 999999800 -e 1000003900"
    ));
}

#[test]
fn fetch_takes_the_archive_that_fits() {
    let fine = says("x86_64", "fetch FILE MAX -s 1000000000 -e start+20min");
    let coarse = says(
        "x86_64",
        "fetch FILE MAX -r 20m -s 1000000000 -e 1000003000",
    );
    let aligned = says(
        "x86_64",
        "fetch -a FILE MAX -r 20m -s 1000000000 -e 1000003000",
    );
    insta::assert_snapshot!(format!("{fine}\n{coarse}\n{aligned}"));
}

#[test]
fn fetch_spells_what_is_unknown_as_the_machine_of_the_file() {
    for (machine, unknown) in [("x86_64", " -nan"), ("arm64", " nan"), ("portable", " nan")] {
        let text = says(machine, "fetch FILE AVERAGE -s 1000001100 -e 1000001300");
        // A row that there is and is unknown; what is before the archive.
        assert_eq!(
            text.lines().last().unwrap(),
            format!("1000001400:{unknown} 1.0000000000e+300")
        );
        let text = says(machine, "fetch FILE AVERAGE -s 990000000 -e 990000000");
        assert_eq!(
            text.lines().last().unwrap(),
            format!(" 990000300:{unknown}{unknown}")
        );
    }
}

#[test]
fn fetch_has_other_forms() {
    let line = "fetch FILE AVERAGE -s 1000000000 -e 1000003900 --format";
    let csv = says("portable", &format!("{line} csv"));
    let json = says("s390x", &format!("{line} json"));
    insta::assert_snapshot!(format!("{csv}\n{json}"));
    assert_eq!(
        says("x86_64", &format!("{line}=text")),
        says("x86_64", &line[..line.len() - 8])
    );
}

#[test]
fn fetch_reports_what_is_wrong() {
    for (line, message) in [
        ("fetch FILE", "Usage: rrdtool fetch <file> <CF> [options]"),
        (
            "fetch FILE average",
            "unknown consolidation function 'average'",
        ),
        (
            "fetch FILE HWPREDICT",
            "the RRD does not contain an RRA matching the chosen CF",
        ),
        ("fetch FILE MAX -r 0", "resolution: value must be positive"),
        (
            "fetch FILE MAX -r x",
            "resolution: value must be (suffixed) positive number",
        ),
        ("fetch FILE MAX -s foo", "start time: unparsable time: foo"),
        ("fetch FILE MAX -e foo", "end time: unparsable time: foo"),
        (
            "fetch FILE MAX -s 2000000000",
            "start (2000000000) should be less than end (1000009000)",
        ),
        (
            "fetch FILE MAX -s jan_5_1979",
            "the first entry to fetch should be after 1980",
        ),
        (
            "fetch FILE MAX -s end-1d -e start+1d",
            "the start and end times cannot be specified relative to each other",
        ),
        (
            "fetch none.rrd MAX",
            "opening 'none.rrd': No such file or directory",
        ),
        // kymo's own.
        (
            "fetch FILE MAX --format xml",
            "found format 'xml', expected text, csv or json",
        ),
    ] {
        assert_eq!(
            says("x86_64", line),
            format!("ERROR: {message}\n"),
            "{line}"
        );
    }
}

/// A day before now until now, and steps as fine as they are.
const TABLE: &str = "xport -s 1000000500 -e 1000003000 DEF:a=FILE:load:AVERAGE \
    DEF:b=FILE:a_longer_name:AVERAGE";

#[test]
fn xport_prints_xml() {
    let plain = says(
        "x86_64",
        &format!("{TABLE} CDEF:c=a,b,+ XPORT:a:one~<&>:two XPORT:c"),
    );
    // rrdtool has all arguments used.
    assert!(plain.starts_with("ERROR: Unused Arguments \"two\" in command : "));
    let plain = says(
        "x86_64",
        &format!("{TABLE} CDEF:c=a,b,+ XPORT:a:one~<&>\\:two XPORT:c"),
    );
    let times = says(
        "x86_64",
        &format!("{TABLE} -t --enumds XPORT:a:x XPORT:b:y"),
    );
    insta::assert_snapshot!(format!("{plain}\n{times}"));
}

#[test]
fn xport_prints_json() {
    let plain = says("x86_64", &format!("{TABLE} --json XPORT:a:x XPORT:b"));
    let times = says("x86_64", &format!("{TABLE} --json --showtime XPORT:a:x"));
    insta::assert_snapshot!(format!("{plain}\n{times}"));
}

/// The values of the first column.
fn column(words: &str) -> Vec<String> {
    let text = says(
        "x86_64",
        &format!("xport -s 1000000500 -e 1000003000 {words}"),
    );
    let values = text.split("<v>").skip(1);
    let values = values.map(|value| value.split('<').next().unwrap().to_owned());
    let values: Vec<_> = values.collect();
    assert!(!values.is_empty(), "{text}");
    values
}

#[test]
fn xport_makes_rows_fewer() {
    const LOAD: &str = "DEF:a=FILE:load:AVERAGE";
    // A row of which a part is outside is unknown.
    let mean = [
        "NaN",
        "NaN",
        "6.1728744550e+05",
        "8.6250000000e+00",
        "1.0500000000e+01",
    ];
    assert_eq!(column(&format!("{LOAD}:step=600 XPORT:a")), mean);
    let greatest = [
        "NaN",
        "NaN",
        "1.2345678910e+06",
        "9.2500000000e+00",
        "1.1000000000e+01",
    ];
    assert_eq!(
        column(&format!("{LOAD}:step=500:reduce=MAX XPORT:a")),
        greatest
    );
    let least = column(&format!("{LOAD}:reduce=MIN --step 1500 XPORT:a"));
    assert_eq!(least, ["4.0000000000e+00", "NaN"]);
    let last = column(&format!("{LOAD}:reduce=LAST --step 1500 XPORT:a"));
    assert_eq!(last, ["7.0000000000e+00", "NaN"]);
    assert_eq!(column(&format!("{LOAD} -m 10 XPORT:a")).len(), 9);
}

#[test]
fn xport_knows_definitions_of_all_kinds() {
    const LOAD: &str = "DEF:a=FILE:load:AVERAGE";
    let values = |words: &str| column(&format!("{LOAD} {words}"));
    let all = values("XPORT:a");
    assert_eq!((&*all[0], &*all[1]), ("4.0000000000e+00", "NaN"));
    // Of several of one name, the first is meant.
    assert_eq!(values("DEF:a=FILE:a_longer_name:AVERAGE XPORT:a"), all);
    // Arguments may have names.
    assert_eq!(
        column("DEF:step=300:vname=a:rrd=FILE:cf=AVERAGE:ds=load XPORT:vname=a"),
        all
    );
    for (function, value) in [
        ("MAXIMUM", "1.2345678910e+06"),
        ("MINIMUM", "4.0000000000e+00"),
        ("FIRST", "4.0000000000e+00"),
        ("100,PERCENT", "1.2345678910e+06"),
        ("50,PERCENTNAN", "9.2500000000e+00"),
    ] {
        let found = values(&format!("VDEF:v=a,{function} CDEF:c=a,POP,v XPORT:c"));
        assert_eq!(found, vec![value; all.len()], "{function}");
    }
    // Later by two rows: two are unknown (rrdtool shows what is in memory before them).
    let later = values("SHIFT:a:600 XPORT:a");
    assert!(later[0] == "NaN" && later[1] == "NaN");
    assert_eq!(later[2..], all[..all.len() - 2]);
    assert_eq!(values("SHIFT:a:600 SHIFT:a:299 XPORT:a"), all);
    assert_eq!(values("VDEF:v=a,FIRST SHIFT:a:v XPORT:a"), all);
    let earlier = values("CDEF:c=a SHIFT:c:-300 XPORT:c");
    assert_eq!(earlier[..all.len() - 2], all[1..all.len() - 1]);
    // What draws does not count.
    let drawn = "LINE1.5:a#ff0000:x AREA:a GPRINT:a:MAX:%lf COMMENT:x VRULE:1#000000";
    assert_eq!(values(&format!("{drawn} XPORT:a")), all);
    // The times of a definition may be relative to each other.
    let part = values("DEF:d=FILE:load:AVERAGE:end=start+10min XPORT:d");
    assert_eq!(part[..2], all[..2]);
}

#[test]
fn xport_reports_what_is_wrong() {
    const DEF: &str = "DEF:a=FILE:load:AVERAGE";
    for (words, message) in [
        ("", "can't make an xport without contents"),
        ("DEF", "no XPORT found, nothing to do"),
        ("XPORT:a", "a is not a vname nor a number"),
        ("DEF XPORT", "No positional VNAME"),
        ("DEF FOO:b", "'FOO' is not a valid function name in FOO:b"),
        ("DEF LINEx:b", "Bad line width: x"),
        ("DEF:a=FILE:load:FOO", "bad CF: FOO"),
        (
            "DEF:a=FILE:load",
            "No argument for definition of CF in DEF:a=FILE:load",
        ),
        (
            "DEF:a=FILE",
            "No argument for definition of DS in DEF:a=FILE",
        ),
        ("DEF:a=FILE:b:MAX XPORT:a", "No DS called 'b' in 'FILE'"),
        ("DEF:a=FILE:load:LAST XPORT:a -r 1", "invalid option -- 'r'"),
        (
            "DEF:a=none.rrd:a:MAX XPORT:a",
            "opening 'none.rrd': No such file or directory",
        ),
        (
            "DEF:step=300 XPORT:a",
            "found no '=', expected NAME=... in DEF:step=300",
        ),
        ("DEF:a=FILE:load:MAX:step=0", "Bad step value: 0"),
        ("DEF:a=FILE:load:MAX:step=5m", "Bad step value: 5m"),
        (
            "DEF:a=FILE:load:MAX:start=x",
            "start time: unparsable time: x",
        ),
        ("DEF:a=FILE:load:MAX:reduce=x", "bad reduce CF: x"),
        (
            "DEF:a=FILE:load:MAX:foo=x",
            "Unused Arguments \"foo=x\" in command : DEF:a=FILE:load:MAX:foo=x",
        ),
        (
            "DEF:a=FILE:load:MAX:end=end-1h:start=start-1h",
            "the start time cannot be specified relative to itself",
        ),
        ("DEF CDEF:b=a,1 XPORT:b", "don't understand '1'"),
        ("DEF CDEF:b=a,x?,+ XPORT:b", "don't understand 'x?,+'"),
        (
            "DEF CDEF:b= XPORT:b",
            "can not parse an empty rpn expression",
        ),
        ("DEF CDEF:b=PREV(c) XPORT:b", "variable 'c' not found"),
        // rrdtool's program ends.
        ("DEF CDEF:b=PREV(b) XPORT:b", "variable 'b' not found"),
        (
            "DEF CDEF:b=a,2,-2,SORT XPORT:b",
            "CDEF:b=a,2,-2,SORT: item 4: found no number of values",
        ),
        ("DEF CDEF:a=a XPORT:a", "trying to reuse vname a"),
        // The place is kymo's.
        (
            "DEF CDEF:b=a,1,+,+ XPORT:b",
            "RPN stack underflow: item 4 of 4 in CDEF:b=a,1,+,+",
        ),
        (
            "DEF CDEF:b=a,1, XPORT:b",
            "RPN final stack size != 1: CDEF:b=a,1,",
        ),
        (
            "DEF CDEF:b=1,2,+ XPORT:b",
            "rpn expressions without DEF or CDEF variables are not supported: CDEF:b=1,2,+",
        ),
        (
            "DEF CDEF:b=a,300,2,*,TREND XPORT:b",
            "malformed trend arguments: item 5 of 5 in CDEF:b=a,300,2,*,TREND",
        ),
        ("DEF VDEF:v=a", "Comma expected in VDEF definition a"),
        (
            "DEF VDEF:v=b,MAXIMUM",
            "Not a valid vname: b in line b,MAXIMUM",
        ),
        (
            "DEF VDEF:v=a,LAST VDEF:w=v,LAST",
            "variable 'v' not DEF nor CDEF in VDEF 'v,LAST'",
        ),
        ("DEF VDEF:v=a,FOO", "Unknown function 'FOO' in VDEF 'v'"),
        (
            "DEF VDEF:v=a,PERCENT",
            "Function 'PERCENT' needs parameter in VDEF 'v'",
        ),
        (
            "DEF VDEF:v=a,1,MAXIMUM",
            "Function 'MAXIMUM' needs no parameter in VDEF 'v'",
        ),
        (
            "DEF VDEF:v=a,101,PERCENT",
            "Parameter '101.000000' out of range in VDEF 'v'",
        ),
        (
            "DEF VDEF:v=a,MAXIMUM XPORT:v",
            "Cannot shift a VDEF: 'v' in line 'XPORT:v'",
        ),
        ("DEF SHIFT:b:1 XPORT:a", "vname b not found"),
        ("DEF SHIFT:a XPORT:a", "No shift given"),
        ("DEF SHIFT:a:x XPORT:a", "error parsing number x"),
        ("-m 9 DEF XPORT:a", "maxrows below 10 rows"),
        (
            "-s jan_1_1975 DEF XPORT:a",
            "the first entry to fetch should be after 1980 (157785400)",
        ),
        (
            "-s 2000000000 DEF XPORT:a",
            "start (2000000000) should be less than end (1000009000)",
        ),
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        let words = words.iter().map(|word| match *word {
            "DEF" => DEF,
            word => word,
        });
        let line = format!("xport {}", words.collect::<Vec<_>>().join(" "));
        assert_eq!(
            says("x86_64", &line),
            format!("ERROR: {message}\n"),
            "{line}"
        );
    }
}

/// Parts of words, of which many together mean something.
const PIECES: [&str; 44] = [
    "DEF:a=FILE:load:AVERAGE",
    "CDEF:b=",
    "VDEF:v=",
    "SHIFT:",
    "XPORT:",
    "LINE1:",
    ":",
    "=",
    ",",
    "a",
    "b",
    "v",
    "1,",
    "-300,",
    "1e9,",
    "PREV",
    "PREV(a)",
    "PREV(b)",
    "TREND",
    "PREDICT",
    "SORT",
    "+",
    "MAXIMUM",
    "PERCENT",
    "step=",
    "start=",
    "end=",
    "reduce=",
    "300",
    "99999999999999999999",
    "end-1d",
    "start+1h",
    "\\:",
    "\\",
    "é",
    "--json",
    "-t",
    "-m",
    "--step",
    "-s",
    "-e",
    "1000000500",
    "~",
    "DEF:",
];

proptest! {
    #[test]
    fn any_words(
        words in proptest::collection::vec(
            proptest::collection::vec(proptest::sample::select(PIECES.to_vec()), 1..6),
            1..6,
        ),
    ) {
        let words: Vec<String> = words.iter().map(|pieces| pieces.concat()).collect();
        let words = words.join(" ");
        let line = format!("xport -s 1000000500 -e 1000003000 DEF:a=FILE:load:AVERAGE {words}");
        prop_assert!(!says("x86_64", &line).is_empty());
    }
}
