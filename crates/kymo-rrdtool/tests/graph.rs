//! What `graph` and `graphv` print and write. rrdtool 1.7.2 prints the same of the same file, but where a test
//! says otherwise.

use kymo_machine::Machine;
use kymo_rrd::Time;
use kymo_rrd::engine::{Definition, Measurement, Rrd, Sample, Smoothing, create};
use kymo_rrd::file::native::write;
use kymo_rrd::file::portable;
use kymo_rrdtool::{Defaults, LocalZone, Session, run};
use proptest::prelude::*;
use tempfile::TempDir;

const START: i64 = 1_699_920_000;
const DAY: i64 = 86_400;

/// A day of values that rise and fall, with a gap.
fn database(directory: &TempDir) -> String {
    let texts = ["DS:load:GAUGE:600:U:U", "RRA:AVERAGE:0.5:1:400"];
    let start = Time::from_seconds(START);
    let definition = Definition::parse(start, 300, &texts, &Smoothing::default()).unwrap();
    let database = create(&definition, |_, rows| rows - 1).unwrap();
    let file = portable::create(&database, None, &Default::default(), Vec::new());
    let portable = file.unwrap().into_storage();
    let view = portable::read(&portable).unwrap();
    let machine = Machine::find("amd64").unwrap();
    let bytes = write(view.database(), &view.rows().unwrap(), machine).unwrap();
    let mut rrd = Rrd::open(bytes).unwrap();
    for step in 1..=288 {
        let value = match step {
            100..120 => "U".to_owned(),
            step => format!("{}", (step * 7) % 96),
        };
        let values = &[Measurement::Text(value.as_bytes())];
        let time = Time::from_seconds(START + 300 * step);
        rrd.update(&Sample { time, values }).unwrap();
    }
    let path = directory.path().join("load.rrd");
    std::fs::write(&path, rrd.into_storage()).unwrap();
    path.display().to_string()
}

/// What a command line prints, or says is wrong. `FILE` is the database, `OUT` a file to write.
fn ran(directory: &TempDir, line: &[&str]) -> Result<Vec<u8>, String> {
    let file = directory.path().join("load.rrd").display().to_string();
    let out = directory.path().join("out").display().to_string();
    let words: Vec<String> = line
        .iter()
        .map(|word| word.replace("FILE", &file).replace("OUT", &out))
        .collect();
    let words: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
    let (mut printed, mut warnings) = (Vec::new(), Vec::new());
    let mut session = Session::new(&mut printed, &mut warnings, Defaults::default());
    session.now = Some(START + DAY);
    session.zone = LocalZone::posix("UTC0").unwrap();
    let done = run(&mut session, &words).expect("a command");
    match done {
        Ok(()) => Ok(printed),
        Err(failure) => Err(failure.to_string().replace(&file, "FILE")),
    }
}

const DEF: &str = "DEF:a=FILE:load:AVERAGE";

fn text(directory: &TempDir, line: &[&str]) -> String {
    String::from_utf8(ran(directory, line).unwrap()).unwrap()
}

#[test]
fn graphv_prints_places_and_texts() {
    let directory = tempfile::tempdir().unwrap();
    database(&directory);
    let line = [
        "graphv",
        "OUT",
        DEF,
        "CDEF:b=a,2,*",
        "VDEF:top=a,MAXIMUM",
        "VDEF:mean=a,AVERAGE",
        "--title",
        "Load",
        "AREA:a#00ff00:load",
        "LINE2:b#ff0000:twice:dashes",
        "GPRINT:top:%6.2lf %s\\l",
        "HRULE:mean#0000ff:mean\\c",
        "COMMENT:a\\: b\\tc",
        "PRINT:top:%H\\:%M:strftime",
        "PRINT:mean:%H\\:%M:strftime",
        "PRINT:a:AVERAGE:%.3lf",
    ];
    insta::assert_snapshot!(text(&directory, &line));
    let picture = std::fs::read(directory.path().join("out")).unwrap();
    assert!(picture.starts_with(b"\x89PNG"));
    // The same command makes the same picture.
    ran(&directory, &line).unwrap();
    assert!(std::fs::read(directory.path().join("out")).unwrap() == picture);
}

#[test]
fn graph_prints_the_size_and_texts() {
    let directory = tempfile::tempdir().unwrap();
    database(&directory);
    let line = |more: &[&str]| {
        let begin = ["graph", "OUT", DEF, "PRINT:a:MAX:%lf"];
        text(&directory, &[&begin, more].concat())
    };
    assert_eq!(line(&[]), "0x0\n95.000000\n");
    assert_eq!(line(&["LINE:a"]), "481x141\n95.000000\n");
    let info = ["LINE:a", "-f", "%s: %lu by %lu%%", "-m", "2", "-a", "SVG"];
    assert_eq!(line(&info), "out: 962 by 282%\n95.000000\n");
    let svg = std::fs::read(directory.path().join("out")).unwrap();
    assert!(svg.starts_with(b"<?xml"));
    // A fresh picture is not drawn again.
    line(&["LINE:a"]);
    let before = std::fs::read(directory.path().join("out")).unwrap();
    assert_eq!(line(&["AREA:a#ff0000", "--lazy"]), "481x141\n95.000000\n");
    // Nor is its size read: it is the one that the command line asks for.
    let other = ["AREA:a#ff0000", "--lazy", "-t", "title", "-m", "2"];
    assert_eq!(line(&other), "481x154\n95.000000\n");
    assert!(std::fs::read(directory.path().join("out")).unwrap() == before);
}

#[test]
fn tables_have_columns_and_texts() {
    let directory = tempfile::tempdir().unwrap();
    database(&directory);
    let table = |format: &str| {
        let line = [
            "graph",
            "-",
            "-a",
            format,
            "-S",
            "21600",
            DEF,
            "VDEF:m=a,AVERAGE",
            "LINE:a:a \"b\" <c>",
            "AREA:a#ff0000",
            "HRULE:m#ff0000:mean",
            "GPRINT:m:%.2lf",
            "PRINT:m:%lf",
        ];
        text(&directory, &line)
    };
    insta::assert_snapshot!(table("CSV"));
    insta::assert_snapshot!(table("XML"));
    insta::assert_snapshot!(table("JSONTIME"));
}

#[test]
fn errors_say_where_they_are() {
    let directory = tempfile::tempdir().unwrap();
    database(&directory);
    for (word, message) in [
        ("LINE:x", "x is not a vname nor a number"),
        ("LINEx:a", "Bad line width: x"),
        (
            "AREA:a#gg0000",
            "'#gg0000' is not a colour (expected #rgb, #rgba, #rrggbb or #rrggbbaa) in AREA:a#gg0000",
        ),
        (
            "LINE:a#ff0000:a:b:c",
            "Unused Arguments \"b:c\" in command : LINE:a#ff0000:a:b:c",
        ),
        ("GPRINT:a:%lf", "bad CF for DEF/CDEF: %lf"),
        ("GPRINT:x:MAX:%lf", "undefined vname x"),
        ("PRINT:a:MAX", "No positional CF/FORMAT"),
        ("TICK:a", "No positional FRACTION"),
        ("TEXTALIGN:foo", "Unknown alignment type 'foo'"),
        (
            "COMMENT:a:b",
            "Unused Arguments \"b\" in command : COMMENT:a:b",
        ),
        ("FOO:a", "'FOO' is not a valid function name in FOO:a"),
        ("LINE:a:dashes=a", "Could not parse number: a"),
        ("-w5", "width below 10 pixels"),
        (
            "-w100000",
            "width 100000 is too large: at most 32767 pixels",
        ),
        (
            "-m1000",
            "a picture of 400000x100000 pixels is too large: at most 32767 on a side and 67108864 in all",
        ),
        (
            "-b999",
            "the only sensible value for base apart from 1000 is 1024",
        ),
        (
            "-cBACK#ff",
            "--color BACK#ff: '#ff' is not a colour (expected #rgb, #rgba, #rrggbb or #rrggbbaa)",
        ),
        (
            "-xSECOND:1:SECOND:1:SECOND:1:0:%H",
            "the x grid has more than 65536 lines; specify a longer interval with --x-grid",
        ),
    ] {
        let found = ran(&directory, &["graph", "OUT", DEF, "LINE:a#00ff00:b", word]);
        assert_eq!(found, Err(message.to_owned()), "{word}");
    }
    let found = ran(&directory, &["graph", "OUT", DEF, "STACK:a#ff0000"]);
    let message = "No previous LINE or AREA found for STACK:a#ff0000";
    assert_eq!(found, Err(message.to_owned()));
    let found = ran(&directory, &["graph", "OUT", DEF, "LINE:a#00ff00:b\\q"]);
    assert_eq!(
        found,
        Err("Unknown control code at the end of '  b\\q'".to_owned())
    );
    assert_eq!(
        ran(&directory, &["graph", "OUT"]),
        Err("can't make a graph without contents".to_owned())
    );
}

#[test]
fn missing_files_may_be_unknown() {
    let directory = tempfile::tempdir().unwrap();
    database(&directory);
    let line = [
        "graphv",
        "OUT",
        "DEF:a=none.rrd:load:MAX",
        "DEF:b=FILE:none:AVERAGE",
        "PRINT:a:MAX:%lf",
        "LINE:b",
    ];
    assert!(ran(&directory, &line).is_err());
    let known = text(&directory, &[&line[..], &["-Z"]].concat());
    assert!(known.starts_with("print[0] = \"-nan\"\n"), "{known}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever elements and options say, a command ends with a picture or a message.
    #[test]
    fn any_words_are_drawn_or_refused(
        words in prop::collection::vec(prop_oneof![
            "(LINE|LINE2|AREA|STACK|TICK|HRULE|VRULE|COMMENT|TEXTALIGN):(a|b|1|-3e5|left)(#[0-9a-f]{0,8}){0,2}(:[ab\\\\lrjcgsut:=0-9.-]{0,6}){0,3}",
            "(GPRINT|PRINT):(a|v):(MAX|%[0-9.]{0,3}l[efg]%?[sS%]?)(:%[0-9.]{0,3}l[efg])?(:strftime|:valstrfduration)?",
            "-[AJMNgFEYorjDIi]",
            "-[lu]-?[0-9.e]{1,5}",
            "-[XL]-?[0-9]{1,4}",
            "--(y-grid|right-axis|grid-dash)=-?[0-9.]{1,4}:-?[0-9.]{1,4}",
            "-x(SECOND|DAY|YEAR):[0-9]{1,3}:HOUR:[0-9]:MONTH:[0-9]:[0-9]{0,6}:%[a-zA-Z]",
            "--(legend-position=(north|east|west)|dynamic-labels|units=si|full-size-mode)",
        ], 0..8),
        start in -100_000_000i64..0,
    ) {
        let directory = tempfile::tempdir().unwrap();
        database(&directory);
        let start = start.to_string();
        let mut line = vec!["graph", "OUT", "-a", "SVG", "-s", &start, DEF, "CDEF:b=a,1e300,*", "VDEF:v=a,MAXIMUM", "LINE:a"];
        line.extend(words.iter().map(String::as_str));
        match ran(&directory, &line) {
            Ok(printed) => prop_assert!(!printed.is_empty()),
            Err(message) => prop_assert!(!message.is_empty()),
        }
    }
}

#[test]
fn themes_and_palettes_set_what_no_colour_sets() {
    let directory = tempfile::tempdir().unwrap();
    database(&directory);
    let svg = |more: &[&str]| {
        let begin = ["graph", "OUT", DEF, "-a", "SVG", "AREA:a", "LINE:a"];
        text(&directory, &[&begin, more].concat());
        std::fs::read_to_string(directory.path().join("out")).unwrap()
    };
    let plain = svg(&[]);
    assert_eq!(svg(&["--theme", "light"]), plain);
    let dark_canvas = "rgb(8.627451%,9.019608%,9.803922%)";
    assert!(!plain.contains(dark_canvas));
    assert!(svg(&["--theme", "dark"]).contains(dark_canvas));
    // Colours that are set by name are kept, wherever they are.
    assert!(!svg(&["--color", "CANVAS#ffffff", "--theme", "dark"]).contains(dark_canvas));
    // The first two colours, in turn.
    let coloured = svg(&["--palette", "okabe-ito"]);
    for colour in [
        "rgb(0%,44.705882%,69.803922%)",
        "rgb(90.196078%,62.352941%,0%)",
    ] {
        assert!(
            !plain.contains(colour) && coloured.contains(colour),
            "{colour}"
        );
    }
    assert!(!plain.contains("<text"));
    assert!(svg(&["--svg-text", "-t", "Load"]).contains(">Load</text>"));
    let failed = ran(
        &directory,
        &["graph", "OUT", DEF, "LINE:a", "--theme", "blue"],
    );
    assert_eq!(
        failed.unwrap_err(),
        "unknown theme 'blue' (known: light dark)"
    );
}

/// As rrdtool 1.7.2 has them.
#[test]
fn sizes_depend_on_what_ends_the_line_and_on_units_length() {
    let directory = tempfile::tempdir().unwrap();
    database(&directory);
    let size = |more: &[&str]| {
        let begin = ["graph", "OUT", DEF, "LINE:a#ff0000:load\\r"];
        text(&directory, &[&begin, more].concat())
    };
    assert_eq!(size(&[]), "481x155\n");
    assert_eq!(size(&["TEXTALIGN:right", "SHIFT:a:300"]), "481x169\n");
    assert_eq!(size(&["TEXTALIGN:left", "SHIFT:a:300"]), "481x155\n");
    assert_eq!(size(&["-y", "none"]), "445x155\n");
    assert_eq!(size(&["-y", "none", "-L", "3"]), "463x155\n");
}
