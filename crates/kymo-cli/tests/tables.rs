//! What programs read: times in JSON and CSV, and rows of CSV.

mod common;

use common::{example, kymo_in};

const SMALL: &str = "lttng-small";

/// Exit code, standard output and standard error of a run beside the examples.
fn all(args: &[&str]) -> (i32, String, String) {
    kymo_in(&example(""), args)
}

fn good(args: &[&str]) -> String {
    let (code, out, reported) = all(args);
    assert_eq!((code, reported.as_str()), (0, ""), "{args:?}");
    out
}

#[test]
fn times_are_numbers_texts_or_dates() {
    for (times, json, csv) in [
        ("number", "1795251863075453482", "1795251863075453482"),
        ("text", "\"1795251863075453482\"", "1795251863075453482"),
        (
            "iso",
            "\"2026-11-21T09:04:23.075453482Z\"",
            "2026-11-21T09:04:23.075453482Z",
        ),
    ] {
        let args = [
            "print",
            "--clock-gmt",
            "--limit",
            "1",
            "--times",
            times,
            SMALL,
        ];
        let line = good(&[&args[..], &["--format", "json"]].concat());
        let begin = format!("{{\"timestamp\":{json},\"recording\":\"{SMALL}");
        assert!(line.starts_with(&begin), "{line}");
        assert!(line.contains(",\"kind\":\"event\",\"schema\":1,"), "{line}");
        let table = good(&[&args[..], &["--format", "csv"]].concat());
        let row = table.lines().nth(1).expect("a row");
        assert!(row.starts_with(&format!("{csv},{SMALL}")), "{row}");
    }
    let (code, _, error) = all(&["print", "--times", "iso", SMALL]);
    assert_eq!(code, 2);
    assert!(error.contains("`--times` is for json and csv"), "{error}");
}

/// The number of cells in each row of a table.
fn cells(table: &str) -> Vec<usize> {
    let mut rows = vec![1];
    let mut is_quoted = false;
    for byte in table.bytes() {
        let row = rows.last_mut().expect("there is one");
        match byte {
            b'"' => is_quoted = !is_quoted,
            b',' if !is_quoted => *row += 1,
            b'\n' if !is_quoted => rows.push(1),
            _ => {}
        }
    }
    // What follows the last line is not a row.
    rows.pop();
    rows
}

#[test]
fn every_row_of_csv_has_a_cell_for_each_column() {
    for args in [
        &[SMALL][..],
        &["--event", "demo:i*", SMALL],
        &[
            SMALL,
            "../crates/kymo-cpel/tests/data/be_basic.cpel",
            "bitfield-be",
        ],
    ] {
        let (code, table, _) = all(&[&["print", "--format", "csv"], args].concat());
        assert_eq!(code, 0);
        let header = table.lines().next().expect("a header");
        assert!(
            header.starts_with("timestamp,recording,kind,name,schema,"),
            "{header}"
        );
        let names: std::collections::BTreeSet<_> = header.split(',').collect();
        let rows = cells(&table);
        assert!(rows.len() > 2);
        assert!(
            rows.iter().all(|cells| *cells == names.len()),
            "{rows:?}: {header}"
        );
    }
}

#[test]
fn many_fields_are_one_column() {
    let home = tempfile::tempdir().expect("a directory");
    let trace = home.path().join("trace");
    std::fs::create_dir(&trace).expect("a directory");
    let members = |count: usize| {
        (0..count)
            .map(|number| format!("u8 f{number};"))
            .collect::<String>()
    };
    for (fields, expected) in [(255, ",f0,"), (256, ",f0,"), (257, ",fields\n")] {
        let metadata = format!(
            "/* CTF 1.8 */ typealias integer {{ size = 8; align = 8; signed = false; }} := u8;
             trace {{ major = 1; minor = 8; byte_order = le; }};
             stream {{ event.header := struct {{ u8 id; }}; }};
             event {{ id = 1; name = many; fields := struct {{ {} }}; }};
             event {{ id = 2; name = few; fields := struct {{ u8 f0; }}; }};",
            members(fields)
        );
        std::fs::write(trace.join("metadata"), metadata).expect("a file");
        std::fs::write(trace.join("stream"), [2, 7]).expect("a file");
        let args = ["print", "--format", "csv", trace.to_str().expect("UTF-8")];
        let table = good(&args);
        assert!(table.contains(expected), "{fields}: {table}");
        let few = good(&[&args[..], &["--event", "few"]].concat());
        assert!(
            few.starts_with("timestamp,recording,kind,name,schema,f0\n"),
            "{few}"
        );
        assert!(few.ends_with(",event,few,csv-1,7\n"), "{few}");
    }
}
