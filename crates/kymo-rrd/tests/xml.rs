//! Dumps and the texts of `info`, against those of rrdtool 1.7.2 on the machines themselves.

use kymo_machine::{Machine, Width};
use kymo_rrd::file::convert::{Target, convert};
use kymo_rrd::file::native::File;
use kymo_rrd::model::rows::{FloatOrder, Grid};
use kymo_rrd::model::{ArchiveKind, DataSource, Slot, SourceKind, SourceState};
use kymo_rrd::rpn::{Node, Operator, Program};
use kymo_rrd::text::xml::{
    DumpOptions, Header, LocalTime, Numbers, RestoreOptions, Restored, Utc, Zone, dump, restore,
};
use kymo_rrd::{Database, Rows, Text, Time, Value, text::info};
use proptest::prelude::*;

/// A file, its dump and its info.
struct Case {
    name: &'static str,
    file: &'static [u8],
    dump: &'static str,
    info: &'static str,
}

macro_rules! case {
    ($name:literal) => {
        Case {
            name: concat!($name, ".rrd"),
            file: include_bytes!(concat!("data/dump/", $name, ".rrd")),
            dump: include_str!(concat!("data/dump/", $name, ".xml")),
            info: include_str!(concat!("data/dump/", $name, ".info")),
        }
    };
}

const CASES: [Case; 5] = [
    case!("holt-winters.amd64"),
    case!("fresh.i386"),
    case!("fresh.sparc64"),
    case!("fresh.m68k"),
    case!("tiny.armhf"),
];

/// A small dump, of which tests change a line.
const TINY: &str = CASES[4].dump;

fn dumped(database: &Database, rows: &Rows<'_>, zone: &dyn Zone, options: DumpOptions) -> String {
    let mut out = Vec::new();
    dump(database, rows, zone, &options, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn exact(database: &Database, rows: &Rows<'_>) -> String {
    let options = DumpOptions {
        numbers: Numbers::Exact,
        ..DumpOptions::default()
    };
    dumped(database, rows, &Utc, options)
}

fn restored(text: &str) -> Restored {
    restore(text.as_bytes(), &RestoreOptions::default()).unwrap()
}

fn values(rows: &Rows<'_>) -> Vec<Value> {
    (0..rows.archives())
        .flat_map(|archive| rows.iter(archive))
        .flat_map(|row| row.values().collect::<Vec<_>>())
        .collect()
}

#[test]
fn dumps_are_those_of_rrdtool() {
    for case in CASES {
        let file = File::open(case.file, None).unwrap();
        let numbers = match file.header.layout.structs().long() {
            Width::W32 => Numbers::Long32,
            _ => Numbers::Long64,
        };
        let options = DumpOptions {
            header: Header::Dtd,
            numbers,
        };
        let text = dumped(&file.header.database, &file.rows, &Utc, options);
        assert_eq!(text, case.dump, "{}", case.name);
        // What has been dumped once is dumped the same.
        let again = restored(&text);
        let text = dumped(&again.database, &again.rows(), &Utc, options);
        assert_eq!(text, case.dump, "{}", case.name);
    }
}

#[test]
fn infos_are_those_of_rrdtool() {
    for case in CASES {
        let header = File::open(case.file, None).unwrap().header;
        let mut line = kymo_text::Line::new();
        let size = header.layout.header_end() as u64;
        let facts = info::info(&header.database, case.name.as_bytes(), size);
        facts.iter().for_each(|fact| fact.print(&mut line));
        let text = std::str::from_utf8(line.as_bytes()).unwrap();
        assert_eq!(text, case.info, "{}", case.name);
    }
}

#[test]
fn exact_dumps_lose_nothing() {
    for case in CASES {
        let file = File::open(case.file, None).unwrap();
        let back = restored(&exact(&file.header.database, &file.rows));
        assert_eq!(back.database, file.header.database, "{}", case.name);
        assert_eq!(values(&back.rows()), values(&file.rows), "{}", case.name);
    }
}

#[test]
fn exact_dumps_lose_no_odd_texts_and_programs() {
    let case = &CASES[4];
    let file = File::open(case.file, None).unwrap();
    let mut database = file.header.database.clone();
    let measured = database.sources[0].clone();
    let preparation = database.state.archives[0].scratch[0];
    let state = database.state.sources[0].clone();
    let names: [&[u8]; 10] = [
        b"DUP", b"5", b"twice", b"twice", b"a,b", b"a\xe4", b" a ", b"", b"a<b\x01", b"c",
    ];
    let readings: [&[u8]; 10] = [
        b" 1 ",
        b"",
        b"1\r2",
        b"\xff",
        b"\x01",
        b"<&>",
        b"U",
        b"1\n",
        b"\t",
        b"\xc3\xa4",
    ];
    let programs: Vec<Vec<Node>> = (0..9)
        .map(|place| vec![Node::Variable(place)])
        .chain([vec![
            Node::PreviousOf(3),
            Node::Operator(Operator::Duplicate),
            Node::Number(Value::from(f64::INFINITY)),
            Node::Number(Value::from(-0.0)),
        ]])
        .collect();
    let sources = names.iter().map(|name| DataSource {
        name: Text::new(name),
        kind: measured.kind.clone(),
    });
    let computed = programs.into_iter().map(|nodes| DataSource {
        name: Text::from("computed"),
        kind: SourceKind::Compute(Program { nodes }),
    });
    database.sources = sources.chain(computed).collect();
    let readings = readings.iter().cycle().take(database.sources.len());
    database.state.sources = readings
        .map(|reading| SourceState {
            last_reading: Text::new(reading),
            ..state.clone()
        })
        .collect();
    database.state.archives[0].scratch = vec![preparation; database.sources.len()];
    database.archives.truncate(1);
    database.state.archives.truncate(1);
    let rows = database.archives[0].rows;
    let bytes = vec![0; rows as usize * database.sources.len() * 8];
    let count = database.sources.len();
    let grid = Grid::dense(0, rows, rows - 1, count).unwrap();
    let values = Rows::new(&bytes, FloatOrder::Little, count, vec![grid]).unwrap();

    let text = exact(&database, &values);
    assert_eq!(restored(&text).database, database, "{text}");
}

#[test]
fn headers() {
    let file = restored(TINY);
    let head = |header| {
        let options = DumpOptions {
            header,
            ..DumpOptions::default()
        };
        let text = dumped(&file.database, &file.rows(), &Utc, options);
        assert_eq!(restored(&text).database, file.database);
        text.split_once("\t<version>").unwrap().0.to_owned()
    };
    assert_eq!(
        head(Header::None),
        "<!-- Round Robin Database Dump -->\n<rrd>\n"
    );
    assert_eq!(
        head(Header::Xsd),
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n\
         <!-- Round Robin Database Dump -->\n\
         <rrd xmlns=\"https://oss.oetiker.ch/rrdtool/rrdtool-dump.xml\" \
         xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"\n\
         \txsi:schemaLocation=\"https://oss.oetiker.ch/rrdtool/rrdtool-dump.xml \
         https://oss.oetiker.ch/rrdtool/rrdtool-dump.xsd\">\n"
    );
}

#[test]
fn comments_report_local_time() {
    struct East;
    impl Zone for East {
        fn at(&self, _seconds: i64) -> LocalTime {
            LocalTime {
                offset: 7200,
                name: "EET".to_owned(),
                until: i64::MAX,
            }
        }
    }
    let file = restored(TINY);
    let text = dumped(&file.database, &file.rows(), &East, DumpOptions::default());
    assert!(text.contains("<lastupdate>1699999801</lastupdate> <!-- 2023-11-15 00:10:01 EET -->"));
    assert!(text.contains("<!-- 2023-11-15 00:10:01 EET / 1699999801 --> <row>"));
}

/// As rrdtool 1.0 wrote them: blanks everywhere, no `<params>`, fewer elements.
#[test]
fn old_dumps_are_read() {
    let text = "<!-- Round Robin Database Dump -->
        <rrd> <version> 0001 </version>
        <step> 300 </step> <!-- Seconds -->
        <lastupdate> 920808900 </lastupdate> <!-- 1999-03-07 13:15:00 CET -->
        <ds> <name> speed </name> <type> COUNTER </type>
            <minimal_heartbeat> 600 </minimal_heartbeat> <min> NaN </min> <max> NaN </max>
            <!-- PDP Status -->
            <last_ds> UNKN </last_ds> <value> 0.0000000000e+00 </value>
            <unknown_sec> 0 </unknown_sec> </ds>
        <rra> <cf> AVERAGE </cf> <pdp_per_row> 6 </pdp_per_row> <xff> 5.0000000000e-01 </xff>
            <cdp_prep>
                <ds><value> 1.5e+00 </value>  <unknown_datapoints> 2 </unknown_datapoints></ds>
            </cdp_prep>
            <database>
                <!-- 1999-03-07 08:30:00 CET / 920791800 --> <row><v> NaN </v></row>
                <row><v> 2.5 </v></row>
            </database> </rra> </rrd>";
    let file = restored(text);
    let database = &file.database;
    assert_eq!(database.version, 3);
    assert_eq!(database.state.sources[0].last_reading, Text::from("UNKN"));
    let scratch = database.state.archives[0].scratch[0];
    let expected = [1.5f64.to_bits(), 2, 0, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(scratch.0, expected);
    assert_eq!(values(&file.rows()), [Value::UNKNOWN, Value::from(2.5)]);
}

#[test]
fn elements_may_come_in_any_order() {
    let expected = restored(TINY);
    let (head, archive) = TINY.split_once("\t<rra>").unwrap();
    let (archive, _) = archive.split_once("</rrd>").unwrap();
    let (begin, definitions) = head.split_once("\t<version>").unwrap();
    let (parameters, rows) = archive.split_once("\t\t<cdp_prep>").unwrap();
    let (preparation, rows) = rows.split_once("\t\t<database>").unwrap();
    let (rows, end) = rows.split_once("</database>").unwrap();
    let (function, parameters) = parameters.split_once("<pdp_per_row>").unwrap();
    let text = format!(
        "{begin}<rra><database>{rows}</database><cdp_prep>{preparation}\
         <pdp_per_row>{parameters}{function}{end}<version>{definitions}</rrd>"
    );
    let found = restored(&text);
    assert_eq!(found.database, expected.database);
    assert_eq!(values(&found.rows()), values(&expected.rows()));
}

#[test]
fn texts_are_found_in_all_that_xml_can_be() {
    let text = TINY
        .replace("utf-8", "ISO-8859-1")
        .replace(
            "<name> x </name>",
            "<name>a&amp;<![CDATA[b]]><!-- -->&#x63;\u{fc}</name>",
        )
        .replace("<last_ds>42</last_ds>", "<last_ds/>")
        .replace("<rrd>", "<?other?><rrd a='1'>");
    let bytes: Vec<u8> = text.chars().map(|character| character as u8).collect();
    let found = restore(&bytes, &RestoreOptions::default()).unwrap();
    assert_eq!(found.database.sources[0].name, Text::from("a&bc\u{fc}"));
    let state = &found.database.state.sources[0];
    assert_eq!(state.last_reading, Text::default());
    // And are written so that they are found.
    let again = restored(&exact(&found.database, &found.rows()));
    assert_eq!(again.database, found.database);
}

#[test]
fn ranges_are_checked_where_that_is_asked_for() {
    let check = |text: &str| {
        let options = RestoreOptions { range_check: true };
        let restored = restore(text.as_bytes(), &options).unwrap();
        values(&restored.rows())
    };
    let value = Value::from(42.0);
    assert_eq!(check(TINY), [value]);
    for (bound, number, kept) in [
        ("min", "42.5", false),
        ("min", "42", true),
        ("max", "41.5", false),
        ("max", "42", true),
    ] {
        let unknown = format!("<{bound}>NaN</{bound}>");
        let text = TINY.replace(&unknown, &format!("<{bound}>{number}</{bound}>"));
        let expected = if kept { value } else { Value::UNKNOWN };
        assert_eq!(check(&text), [expected], "{bound} {number}");
        assert_eq!(values(&restored(&text).rows()), [value]);
    }
}

#[test]
fn numbers_are_found_as_rrdtool_finds_them() {
    for (text, expected) in [
        ("nancy", Value::UNKNOWN),
        ("-NaN(7)", Value::UNKNOWN),
        ("xinfy", Value::from(f64::INFINITY)),
        ("a-Infb", Value::from(f64::NEG_INFINITY)),
        ("1e-300", Value::from(9.999999999999994e-301)),
        ("1.7976931349e+308", Value::from(f64::INFINITY)),
    ] {
        let changed = TINY.replace("<v>4.200000000e+01", &format!("<v>{text}"));
        assert_eq!(values(&restored(&changed).rows()), [expected], "{text}");
    }
}

#[test]
fn errors_report_where_and_what() {
    let v = "<v>4.200000000e+01</v>";
    let mut reported = String::new();
    for (found, changed) in [
        (v, "<v>0x10</v>"),
        (v, "<v>1e2000</v>"),
        (v, "<v></v>"),
        (v, "<v>1<b/></v>"),
        (v, "<v>1</v><v>2</v>"),
        (v, ""),
        (v, "<w>1</w>"),
        (v, "<v>&such;</v>"),
        ("<row><v>4.200000000e+01</v></row>", ""),
        ("<step>1</step>", "<step>0</step>"),
        ("<step>1</step>", "<step>1.5</step>"),
        ("<step>1</step>", ""),
        ("<step>1</step>", "one second"),
        ("<version>0003</version>", "<version>0006</version>"),
        ("<lastupdate>1699999801", "<lastupdate>yesterday"),
        ("<type> GAUGE ", "<type> gauge "),
        ("<type> GAUGE ", "<type> COMPUTE "),
        ("<name> x </name>", "<name> </name>"),
        ("<name> x </name>", "<name>x&#7;</name>"),
        ("<minimal_heartbeat>2</minimal_heartbeat>", ""),
        ("<cf>LAST", "<cf>FIRST"),
        ("<cf>LAST", "<cf>HWPREDICT"),
        ("<xff>0.000000000e+00</xff>", ""),
        ("</unknown_datapoints>", "</unknown_datapoint>"),
        ("\t\t\t</ds>\n\t\t</cdp_prep>", "</ds><ds></ds></cdp_prep>"),
        ("</rrd>", ""),
        ("</rrd>", "</rrd><rrd/>"),
        ("<rrd>", "<rra>"),
        ("<rrd>", "<rrd><?kymo current-row=\"7\"?>"),
        ("<cf>", "<?kymo current-row=\"7\"?><cf>"),
        ("<cf>", "<?kymo current-row=7?><cf>"),
    ] {
        let text = TINY.replacen(found, changed, 1);
        assert_ne!(text, TINY, "{found}");
        let error = restore(text.as_bytes(), &RestoreOptions::default())
            .err()
            .unwrap_or_else(|| panic!("{changed} is taken"));
        reported.push_str(&format!("{found} -> {changed}\n    {error}\n").replace('\t', ""));
    }
    insta::assert_snapshot!(reported);
}

#[test]
fn no_damaged_file_is_made_of_a_dump() {
    let end = TINY.find("</lastupdate>").unwrap();
    let begin = TINY.find("<lastupdate>").unwrap() + "<lastupdate>".len();
    let text = format!("{}99999999999999{}", &TINY[..begin], &TINY[end..]);
    let target = Target::Native(Machine::find("amd64").unwrap());
    let error = convert(&restored(&text).source(), target).unwrap_err();
    assert!(error.to_string().contains("last update"), "{error}");
}

#[test]
fn expressions_name_data_sources_before_their_own() {
    let text = CASES[0].dump;
    for changed in ["h,2,*", "g,k,+"] {
        let text = text.replace("g,2,*,UNKN,INF,NEGINF,POP,POP,POP", changed);
        let error = restore(text.as_bytes(), &RestoreOptions::default()).unwrap_err();
        assert_eq!(error.element.as_deref(), Some("cdef"));
        let line = text.lines().position(|line| line.contains("<cdef>"));
        assert_eq!(Some(error.line - 1), line);
    }
}

/// A database with the kinds of everything, of which numbers are drawn.
fn database() -> impl Strategy<Value = Database> {
    let number = || any::<u64>().prop_map(Value::from_bits);
    let scratch = proptest::collection::vec(any::<[u64; 10]>(), 12);
    let numbers = proptest::collection::vec(number(), 4);
    let rows = proptest::collection::vec(any::<u64>(), 6);
    let time = (-(1i64 << 33)..1 << 34, 0u32..1 << 30, any::<bool>());
    (scratch, numbers, rows, time, 1u8..=5).prop_map(|(scratch, numbers, rows, time, version)| {
        let mut database = File::open(CASES[0].file, None).unwrap().header.database;
        database.version = version;
        let (seconds, fraction, in_micros) = time;
        let time = Time::new(seconds, fraction).unwrap();
        database.state.last_update = match in_micros {
            true => Time::from_micros(seconds, time.to_micros().1).unwrap(),
            false => time,
        };
        if let SourceKind::Measured { min, max, .. } = &mut database.sources[0].kind {
            (*min, *max) = (numbers[0], numbers[1]);
        }
        database.state.sources[1].value = numbers[2];
        let mut drawn = scratch.into_iter();
        let archives = database
            .archives
            .iter_mut()
            .zip(&mut database.state.archives);
        for ((archive, state), row) in archives.zip(rows) {
            state.current_row = row % archive.rows;
            if let ArchiveKind::HwPredict { period, .. } = &mut archive.kind {
                *period = numbers[3];
            }
            for scratch in &mut state.scratch {
                scratch.0 = drawn.next().unwrap();
                for (index, slot) in scratch.0.iter_mut().enumerate() {
                    if archive.kind.slot(index) == Slot::Value {
                        *slot = Value::from_bits(*slot).to_bits();
                    }
                }
            }
        }
        database
    })
}

proptest! {
    #[test]
    fn anything_comes_back_from_an_exact_dump(database in database()) {
        let rows = File::open(CASES[0].file, None).unwrap().rows;
        let text = exact(&database, &rows);
        prop_assert_eq!(restored(&text).database, database);
    }

    #[test]
    fn damaged_dumps_do_no_harm(
        case in 0usize..5,
        cuts in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0u8..3), 1..5),
    ) {
        let mut bytes = CASES[case].dump.as_bytes().to_vec();
        for (at, byte, how) in cuts {
            if bytes.is_empty() {
                break;
            }
            let at = at.index(bytes.len());
            match how {
                0 => bytes[at] = byte,
                1 => drop(bytes.remove(at)),
                _ => bytes.truncate(at),
            }
        }
        if let Ok(restored) = restore(&bytes, &RestoreOptions { range_check: true }) {
            prop_assert!(restored.database.check_shape().is_ok());
            let text = exact(&restored.database, &restored.rows());
            prop_assert!(restore(text.as_bytes(), &RestoreOptions::default()).is_ok());
        }
    }
}
