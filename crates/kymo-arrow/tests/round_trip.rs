//! What is written is read again with the values that were given.

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{Array, RecordBatch};
use kymo::Timeline;
use kymo::timeline::Query;
use kymo_arrow::{Directory, Table, tables, write_stream};
use kymo_model::Recording;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

fn timeline(example: &str) -> Timeline {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples")
        .join(example);
    let opened = kymo::open::open(&[path], &Default::default());
    Timeline::new(opened.recordings)
}

/// The values of a column as text: arrays that hold the same values may be made in different ways.
fn lines(batches: &[RecordBatch], column: usize) -> Vec<String> {
    let rows = batches.iter().flat_map(|batch| {
        let column = batch.column(column);
        (0..batch.num_rows()).map(|row| text(column, row))
    });
    rows.collect()
}

fn text(array: &dyn Array, row: usize) -> String {
    if array.is_null(row) {
        return "null".into();
    }
    if let Some(dictionary) = array.as_dictionary_opt::<UInt32Type>() {
        return text(dictionary.values(), dictionary.key(row).unwrap());
    }
    if let Some(list) = array.as_list_opt::<i32>() {
        let items = list.value(row);
        let items: Vec<_> = (0..items.len()).map(|item| text(&items, item)).collect();
        return format!("{items:?}");
    }
    if let Some(struct_array) = array.as_struct_opt() {
        let members: Vec<_> = struct_array
            .columns()
            .iter()
            .map(|member| text(member, row))
            .collect();
        return format!("{members:?}");
    }
    format!("{:?}", array.slice(row, 1))
}

#[test]
fn parquet_files_have_the_rows_of_the_recordings() {
    for example in ["lttng-small", "lttng-discarded", "rfc-small", "bitfield-be"] {
        let timeline = timeline(example);
        let place = tempfile::tempdir().unwrap();
        let mut directory = Directory::new(place.path(), 2).unwrap();
        let mut given: HashMap<Table, Vec<RecordBatch>> = HashMap::new();
        let mut take = |table: &Table, batch: RecordBatch| {
            given.entry(table.clone()).or_default().push(batch.clone());
            directory.write(table, batch)
        };
        tables(&timeline, &Query::default(), &mut take, &mut |_| ()).unwrap();
        let written = directory.finish().unwrap();
        assert_eq!(written.len(), given.len(), "{example}");
        let has_losses = matches!(example, "lttng-discarded" | "rfc-small");
        assert_eq!(given.contains_key(&Table::Losses), has_losses, "{example}");
        let mut all: Vec<Vec<Vec<String>>> = Vec::new();
        for batches in given.values() {
            let columns = batches[0].num_columns();
            all.push((0..columns).map(|column| lines(batches, column)).collect());
        }
        for file in written {
            let found = File::open(place.path().join(&file.path)).unwrap();
            let reader = ParquetRecordBatchReaderBuilder::try_new(found).unwrap();
            let batches: Vec<_> = reader.build().unwrap().map(Result::unwrap).collect();
            let columns = batches[0].num_columns();
            let found: Vec<_> = (0..columns).map(|column| lines(&batches, column)).collect();
            assert_eq!(found[0].len() as u64, file.rows);
            assert!(all.contains(&found), "{example}: {}", file.path.display());
        }
    }
}

#[test]
fn a_stream_has_all_rows() {
    let timeline = timeline("lttng-small");
    let mut out = Vec::new();
    let rows = write_stream(&timeline, &Query::default(), &mut out, &mut |_| ()).unwrap();
    let reader = arrow_ipc::reader::StreamReader::try_new(&out[..], None).unwrap();
    assert_eq!(reader.schema().field(4).name(), "event");
    let found: usize = reader.map(|batch| batch.unwrap().num_rows()).sum();
    assert_eq!((found as u64, rows), (3000, 3000));
}

#[test]
fn a_directory_that_cannot_be_written_is_an_error() {
    let place = tempfile::tempdir().unwrap();
    let timeline = timeline("lttng-small");
    let mut directory = Directory::new(&place.path().join("none\0"), 2).unwrap();
    let mut take = |table: &Table, batch| directory.write(table, batch);
    let done = tables(&timeline, &Query::default(), &mut take, &mut |_| ());
    assert!(done.is_err() || directory.finish().is_err());
}

/// What `kymo print --format json` prints of recordings, without their paths and places.
fn printed(timeline: &Timeline) -> String {
    use kymo::show::{Times, WallOptions, json::Json};

    let json = Json::with_times(Times::default(), WallOptions::default());
    let mut all = String::new();
    for row in timeline.text(&Query::default(), json).unwrap() {
        // Damage and losses have no text of their own.
        if row.text.is_empty() {
            continue;
        }
        let mut line: serde_json::Map<_, _> = serde_json::from_slice(&row.text).unwrap();
        line.remove("recording");
        line.remove("trace");
        if line
            .get("packet_context")
            .is_some_and(|context| context.get("checksum").is_some())
        {
            // What packets of RFC v1.1 say of themselves is not kept apart in CTF 2.
            line.remove("packet_context");
            // There, a length lies before its elements and is not a field.
            if let Some(payload) = line
                .get_mut("payload")
                .and_then(|payload| payload.as_object_mut())
            {
                payload.retain(|name, _| !name.ends_with("_length"));
            }
        }
        all.push_str(&serde_json::Value::Object(line).to_string());
        all.push('\n');
    }
    all
}

fn write_tables(timeline: &Timeline, place: &Path) {
    let mut directory = Directory::new(place, 2).unwrap();
    let mut take = |table: &Table, batch| directory.write(table, batch);
    tables(timeline, &Query::default(), &mut take, &mut |_| ()).unwrap();
    directory.finish().unwrap();
}

fn opened(path: &Path) -> kymo::open::Opened {
    let options = kymo::open::Options {
        formats: kymo_arrow::FORMATS,
        ..Default::default()
    };
    kymo::open::open(&[path.to_path_buf()], &options)
}

#[test]
fn tables_are_the_trace_that_they_were() {
    for example in [
        "lttng-small",
        "lttng-discarded",
        "rfc-small",
        "bitfield-be",
        "bitfield-le",
    ] {
        let before = timeline(example);
        let place = tempfile::tempdir().unwrap();
        let tables = place.path().join("tables");
        std::fs::create_dir(&tables).unwrap();
        write_tables(&before, &tables);
        let opened_tables = opened(&tables);
        assert!(
            opened_tables.errors.is_empty(),
            "{:?}",
            opened_tables.errors
        );
        let of_tables = Timeline::new(opened_tables.recordings);
        assert_eq!(of_tables.recordings().len(), 1);
        assert_eq!(of_tables.recordings()[0].path(), tables);
        assert_eq!(printed(&of_tables), printed(&before), "{example}");
        // Their losses are those of the recording.
        let lost = |timeline: &Timeline| {
            let recording = &timeline.recordings()[0];
            let chunks = (0..recording.streams().len()).flat_map(|stream| recording.chunks(stream));
            let counts = chunks.filter_map(|chunk| chunk.lost_events?.count);
            counts.sum::<u64>()
        };
        assert_eq!(lost(&of_tables), lost(&before), "{example}");
        // Tables of tables are the same again.
        let again = place.path().join("again");
        std::fs::create_dir(&again).unwrap();
        write_tables(&of_tables, &again);
        let again = Timeline::new(opened(&again).recordings);
        assert_eq!(printed(&again), printed(&before), "{example}");
    }
}

#[test]
fn optionals_within_optionals_are_what_they_were() {
    let boolean = r#"{"type":"fixed-length-boolean","length":8,"byte-order":"little-endian"}"#;
    let optional = |selector: &str, content: &str| {
        format!(
            r#"{{"type":"optional","selector-field-location":{{"origin":"event-record-payload","path":["{selector}"]}},"field-class":{content}}}"#
        )
    };
    let number =
        r#"{"type":"fixed-length-unsigned-integer","length":8,"byte-order":"little-endian"}"#;
    let members = [
        ("outer", boolean.to_owned()),
        ("inner", boolean.to_owned()),
        ("value", optional("outer", &optional("inner", number))),
    ];
    let members =
        members.map(|(name, class)| format!(r#"{{"name":"{name}","field-class":{class}}}"#));
    let fragments = [
        r#"{"type":"preamble","version":2}"#.to_owned(),
        r#"{"type":"trace-class"}"#.to_owned(),
        r#"{"type":"data-stream-class"}"#.to_owned(),
        format!(
            r#"{{"type":"event-record-class","payload-field-class":{{"type":"structure","member-classes":[{}]}}}}"#,
            members.join(",")
        ),
    ];
    let place = tempfile::tempdir().unwrap();
    let trace = place.path().join("trace");
    std::fs::create_dir(&trace).unwrap();
    let metadata: String = fragments
        .iter()
        .map(|fragment| format!("\u{1e}{fragment}\n"))
        .collect();
    std::fs::write(trace.join("metadata"), metadata).unwrap();
    // Nothing, nothing within something, something.
    std::fs::write(trace.join("stream"), [0, 0, 1, 0, 1, 1, 9]).unwrap();
    let before = Timeline::new(opened(&trace).recordings);
    let tables = place.path().join("tables");
    std::fs::create_dir(&tables).unwrap();
    write_tables(&before, &tables);
    let after = Timeline::new(opened(&tables).recordings);
    assert_eq!(printed(&after), printed(&before));
    assert_eq!(printed(&before).lines().count(), 3);
}

#[test]
fn texts_that_are_not_utf_8_are_counted_or_kept_as_bytes() {
    use kymo::show::{Times, WallOptions, json::Json};

    let place = tempfile::tempdir().unwrap();
    let trace = place.path().join("trace");
    std::fs::create_dir(&trace).unwrap();
    let metadata = "/* CTF 1.8 */ trace { major = 1; minor = 8; byte_order = le; }; stream { };
        event { name = e; fields := struct { string a; struct { string list[2]; } b; }; };";
    std::fs::write(trace.join("metadata"), metadata).unwrap();
    std::fs::write(trace.join("stream"), b"a\xffb\0ok\0\xfe\0\0\0\0").unwrap();
    let before = Timeline::new(opened(&trace).recordings);
    let payloads = |timeline: &Timeline| -> Vec<String> {
        let json = Json::with_times(Times::default(), WallOptions::default());
        let rows = timeline.text(&Query::default(), json).unwrap();
        let texts = rows.map(|row| String::from_utf8(row.text.to_vec()).unwrap());
        let payload = |text: String| text.split("\"payload\":").nth(1).map(str::to_owned);
        texts.filter_map(payload).collect()
    };
    for (binary_texts, replaced) in [(false, 2), (true, 0)] {
        let tables_of = place.path().join(format!("tables {binary_texts}"));
        std::fs::create_dir(&tables_of).unwrap();
        let mut directory = Directory::new(&tables_of, 1).unwrap();
        let mut take = |table: &Table, batch| directory.write(table, batch);
        let mut query = Query::default();
        query.binary_texts = binary_texts;
        let mut found = 0;
        tables(&before, &query, &mut take, &mut |batch| {
            found += batch.replaced()
        })
        .unwrap();
        directory.finish().unwrap();
        assert_eq!(found, replaced);
        let after = Timeline::new(opened(&tables_of).recordings);
        assert_eq!(payloads(&after) == payloads(&before), binary_texts);
    }
    assert!(
        payloads(&before)[0].contains("a\\udcffb"),
        "{:?}",
        payloads(&before)
    );
}

#[test]
fn a_file_of_another_program_is_a_trace_of_one_class() {
    use arrow_array::{ArrayRef, Float64Array, Int32Array, ListArray, StringArray};
    use arrow_array::{TimestampMillisecondArray, types::Int32Type};
    use std::sync::Arc;

    let times = TimestampMillisecondArray::from(vec![-1, 0, 1_700_000_000_123]);
    let lists = [Some(vec![Some(1), None]), Some(vec![]), None];
    let columns: [(&str, ArrayRef); 5] = [
        ("time", Arc::new(times.with_timezone("UTC"))),
        ("n", Arc::new(Int32Array::from(vec![-5, 7, i32::MAX]))),
        (
            "f",
            Arc::new(Float64Array::from(vec![Some(f64::NAN), None, Some(0.1)])),
        ),
        ("s", Arc::new(StringArray::from(vec!["", "a\"b", "ö"]))),
        (
            "l",
            Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists)),
        ),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("load.parquet");
    let file = File::create(&path).unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    // In a directory it is found by its name, by itself by what it holds.
    for path in [place.path(), &path] {
        let opened = opened(path);
        assert!(opened.errors.is_empty(), "{:?}", opened.errors);
        let text = printed(&Timeline::new(opened.recordings));
        let lines: Vec<serde_json::Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let values_of = |member: &str| -> Vec<_> {
            lines
                .iter()
                .map(|line| line["payload"][member].clone())
                .collect()
        };
        let times: Vec<_> = lines
            .iter()
            .map(|line| line["timestamp"].as_i64().unwrap())
            .collect();
        assert_eq!(times, [-1_000_000, 0, 1_700_000_000_123_000_000]);
        assert!(lines.iter().all(|line| line["event"] == "load"));
        assert_eq!(
            values_of("n"),
            [serde_json::json!(-5), 7.into(), i32::MAX.into()]
        );
        assert_eq!(values_of("s"), ["", "a\"b", "ö"]);
        assert_eq!(
            values_of("f"),
            ["NaN".into(), serde_json::Value::Null, 0.1.into()]
        );
    }
}

/// A reader of files from other programs must cope with any content.
#[test]
fn damaged_tables_are_refused_or_read() {
    let place = tempfile::tempdir().unwrap();
    let tables = place.path().join("tables");
    std::fs::create_dir(&tables).unwrap();
    write_tables(&timeline("bitfield-be"), &tables);
    let mut files = Vec::new();
    for table in std::fs::read_dir(&tables).unwrap() {
        for file in std::fs::read_dir(table.unwrap().path()).unwrap() {
            files.push(file.unwrap().path());
        }
    }
    files.sort();
    // Numbers that look random are enough, and the same each time.
    let mut state = 1_u64;
    let mut next = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let mut refused = 0;
    for round in 0..200 {
        let path = &files[next(files.len())];
        let whole = std::fs::read(path).unwrap();
        let mut bytes = whole.clone();
        match round % 4 {
            0 => bytes.truncate(next(whole.len())),
            _ => {
                for _ in 0..=next(3) {
                    let at = next(bytes.len());
                    bytes[at] = next(256) as u8;
                }
            }
        }
        std::fs::write(path, &bytes).unwrap();
        let opened = opened(&tables);
        refused += usize::from(!opened.errors.is_empty());
        let of_tables = Timeline::new(opened.recordings);
        let _ = of_tables.rows(&Query::default()).unwrap().count();
        std::fs::write(path, whole).unwrap();
    }
    assert!(refused > 0);
    assert!(opened(&tables).errors.is_empty());
}

#[test]
fn row_groups_and_classes_that_are_not_wanted_are_left_out() {
    use arrow_array::{ArrayRef, Int32Array, TimestampMillisecondArray};
    use kymo::filter::Glob;
    use kymo::open::{Hint, Options};
    use kymo::pipeline::Window;
    use kymo_time::Timestamp;
    use parquet::file::properties::WriterProperties;
    use std::sync::Arc;

    const MILLI: i64 = 1_000_000;
    let times = TimestampMillisecondArray::from_iter_values(0..100);
    let columns: [(&str, ArrayRef); 2] = [
        ("time", Arc::new(times)),
        ("n", Arc::new(Int32Array::from_iter_values(0..100))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("load.parquet");
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(10));
    let mut writer = parquet::arrow::ArrowWriter::try_new(
        File::create(&path).unwrap(),
        batch.schema(),
        Some(properties.build()),
    )
    .unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();

    let tables_of_trace = place.path().join("tables");
    std::fs::create_dir(&tables_of_trace).unwrap();
    let mut directory = Directory::new(&tables_of_trace, 1).unwrap();
    let mut take = |table: &Table, batch: RecordBatch| directory.write(table, batch);
    tables(
        &timeline("lttng-small"),
        &Query::default(),
        &mut take,
        &mut |_| (),
    )
    .unwrap();
    directory.finish().unwrap();

    let events = |path: &Path, begin: i64, end: i64, glob: &str| -> Vec<(String, i64)> {
        let options = Options {
            formats: kymo_arrow::FORMATS,
            hint: Hint {
                window: Window {
                    begin: Timestamp::from_nanos(begin),
                    end: Timestamp::from_nanos(end),
                },
                events: vec![Glob::new(glob)],
            },
            ..Options::default()
        };
        let opened = kymo::open::open(&[path.to_path_buf()], &options);
        assert!(opened.errors.is_empty(), "{:?}", opened.errors);
        let text = printed(&Timeline::new(opened.recordings));
        let lines = text.lines().map(|line| {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            let name = line["event"].as_str().unwrap().to_owned();
            (name, line["timestamp"].as_i64().unwrap())
        });
        lines.collect()
    };
    // Whole groups of ten.
    let some = events(&path, 25 * MILLI, 41 * MILLI, "*");
    let times: Vec<_> = some.iter().map(|(_, time)| time / MILLI).collect();
    assert_eq!(times, (20..50).collect::<Vec<_>>());
    // If nothing is wanted, when the recording begins and ends is still known.
    for (begin, glob) in [(1 << 60, "*"), (0, "other")] {
        let ends = events(&path, begin, i64::MAX, glob);
        assert_eq!(ends.len(), 20);
        assert_eq!((ends[0].1, ends[19].1), (0, 99 * MILLI));
    }
    let all = events(&tables_of_trace, i64::MIN, i64::MAX, "*");
    let some = events(&tables_of_trace, i64::MIN, i64::MAX, "demo:[st]*");
    assert!(!some.is_empty() && some.len() < all.len());
    let wanted = all
        .iter()
        .filter(|(name, _)| name.starts_with("demo:s") || name.starts_with("demo:t"));
    assert!(wanted.eq(&some));
}
