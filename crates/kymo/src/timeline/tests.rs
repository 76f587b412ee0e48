//! Rows and summaries compared with what a cursor returns.

use std::collections::BTreeMap;
use std::path::PathBuf;

use kymo_model::{Cursor, Event, Recording, Value};
use kymo_time::Timestamp;

use super::*;

fn open(name: &str) -> Timeline {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples")
        .join(name);
    let opened = crate::open::open(&[path], &crate::open::Options::default());
    assert!(opened.errors.is_empty());
    Timeline::new(opened.recordings)
}

/// Time, class and place of every event, merged by time.
fn events(timeline: &Timeline) -> Vec<(Option<i64>, u32)> {
    let mut events = Vec::new();
    for recording in timeline.recordings() {
        for stream in 0..recording.streams().len() {
            for chunk in recording.chunks(stream) {
                let mut cursor = recording.cursor(&chunk);
                while let Ok(Some(event)) = cursor.next_event() {
                    let time = event.timestamp().map(Timestamp::as_nanos);
                    events.push((time, event.class_index() as u32));
                }
            }
        }
    }
    events.sort();
    events
}

fn rows(timeline: &Timeline, query: &Query) -> Vec<Batch> {
    let batches: Vec<_> = timeline.rows(query).unwrap().collect();
    let mut same = Vec::new();
    timeline
        .for_each_batch(query, |batch| {
            same.push(batch);
            ControlFlow::Continue(())
        })
        .unwrap();
    let reported = |batches: &[Batch]| -> Vec<String> {
        batches.iter().map(|batch| format!("{batch:?}")).collect()
    };
    assert_eq!(reported(&batches), reported(&same));
    for batch in &batches {
        assert_eq!(batch.columns().len(), batch.schema().len());
        assert!(
            batch
                .columns()
                .iter()
                .all(|column| column.len() == batch.len())
        );
    }
    batches
}

#[test]
fn rows_are_all_events_in_order_for_any_threads_and_sizes() {
    for name in ["lttng-small", "lttng-discarded"] {
        let timeline = open(name);
        let mut expected = events(&timeline);
        for (threads, batch_rows) in [(1, 7), (3, 1000), (2, 1 << 16)] {
            let query = Query {
                threads,
                batch_rows,
                ..Query::default()
            };
            let batches = rows(&timeline, &query);
            assert!(batches.iter().all(|batch| batch.len() <= batch_rows));
            let heads: Vec<_> = batches
                .iter()
                .flat_map(|batch| (0..batch.len()).map(|row| batch.head(row)))
                .collect();
            assert!(heads.is_sorted_by_key(|head| head.time), "{name}");
            let ids: std::collections::HashSet<_> = heads.iter().map(|head| head.id).collect();
            assert_eq!(ids.len(), heads.len(), "each row has its own identity");
            let mut found: Vec<_> = heads
                .iter()
                .map(|head| (head.time.map(Timestamp::as_nanos), head.class))
                .collect();
            found.sort();
            expected.sort();
            assert_eq!(found, expected);
        }
    }
}

#[test]
fn losses_come_between_rows() {
    let batches = rows(&open("lttng-discarded"), &Query::default());
    let notices = batches.iter().flat_map(Batch::notices);
    let lost = notices.filter_map(|notice| match notice.kind {
        NoticeKind::LostEvents(lost) => lost.count,
        _ => None,
    });
    assert!(lost.sum::<u64>() > 30_000);
}

#[test]
fn named_columns_have_the_values_of_the_events() {
    let timeline = open("lttng-small");
    let names = [
        "next_comm",
        "prev_tid",
        "event.name",
        "cpu_id",
        "event.time",
    ];
    let mut query = Query {
        columns: Columns::named(&names.join(",")).unwrap(),
        limit: Some(2_500),
        ..Query::default()
    };
    let mixed = rows(&timeline, &query);
    assert_eq!(mixed.iter().map(Batch::len).sum::<usize>(), 2_500);
    let schema: Vec<_> = mixed[0]
        .schema()
        .iter()
        .map(|column| column.name.to_string())
        .collect();
    let mut sorted = names.map(str::to_string).to_vec();
    sorted.sort();
    let mut named = schema.clone();
    named.sort();
    assert_eq!(named, sorted);
    query.shape = Shape::ByClass;
    let by_class = rows(&timeline, &query);
    let values = |batches: &[Batch]| {
        let mut values = BTreeMap::new();
        for batch in batches {
            for row in 0..batch.len() {
                let of_row: Vec<_> = names
                    .iter()
                    .map(|name| match batch.column(name) {
                        Some(column) => format!("{:?}", column.value(row)),
                        None => "Missing".to_string(),
                    })
                    .collect();
                let head = batch.head(row);
                let time = head.time.map_or(0, Timestamp::as_nanos);
                assert_eq!(of_row[4], format!("{:?}", Value::Sint(time)));
                values.insert(head.id, of_row);
            }
        }
        values
    };
    let (mixed, by_class) = (values(&mixed), values(&by_class));
    assert_eq!(mixed.len(), 2_500);
    assert_eq!(mixed, by_class);
    for name in 0..names.len() {
        assert!(
            mixed.values().any(|row| row[name] != "Missing"),
            "{}",
            names[name]
        );
    }
}

#[test]
fn all_columns_have_every_field() {
    let timeline = open("lttng-small");
    let query = Query {
        columns: Columns::All,
        shape: Shape::ByClass,
        ..Query::default()
    };
    let mut rows_of: BTreeMap<u32, usize> = BTreeMap::new();
    for batch in rows(&timeline, &query) {
        let class = batch.classes()[0];
        assert!(batch.classes().iter().all(|&other| other == class));
        *rows_of.entry(class).or_default() += batch.len();
        let event = &timeline.recordings()[0].event_classes()[class as usize];
        let payload = event.schema.root(kymo_model::Scope::Payload).unwrap();
        for &member in &event.schema.field(payload).children {
            let name = event.schema.field(member).name.as_deref().unwrap();
            assert!(batch.column(name).is_some(), "{name}");
        }
    }
    assert!(rows_of.len() > 1);
}

#[test]
fn a_filter_and_a_range_narrow() {
    let timeline = open("lttng-small");
    let all = events(&timeline);
    let middle = all[all.len() / 2].0.unwrap();
    let query = Query {
        filter: crate::filter::Query {
            condition: Some("prev_tid >= 0".to_string()),
            ..Default::default()
        },
        range: Window {
            begin: Timestamp::from_nanos(middle),
            end: Timestamp::MAX,
        },
        ..Query::default()
    };
    let found: usize = rows(&timeline, &query).iter().map(Batch::len).sum();
    let classes = timeline.recordings()[0].event_classes();
    let has = |class: u32| {
        let schema = &classes[class as usize].schema;
        let payload = schema.root(kymo_model::Scope::Payload).unwrap();
        schema.child(payload, "prev_tid").is_some()
    };
    let expected = all
        .iter()
        .filter(|(time, class)| *time >= Some(middle) && has(*class));
    assert_eq!(found, expected.count());
    assert!(found > 0);
    let wrong = Query {
        columns: Columns::named("no_such_field").unwrap(),
        ..Query::default()
    };
    assert!(matches!(timeline.rows(&wrong), Err(QueryError::Filter(_))));
}

#[test]
fn dropping_rows_ends_their_thread() {
    let timeline = open("lttng-small");
    let query = Query {
        batch_rows: 1,
        ..Query::default()
    };
    let mut rows = timeline.rows(&query).unwrap();
    assert_eq!(rows.next().map(|batch| batch.len()), Some(1));
    drop(rows);
}

#[test]
fn summaries_count_every_row() {
    let timeline = open("lttng-small");
    let all = events(&timeline);
    let (first, last) = (all[0].0.unwrap(), all[all.len() - 1].0.unwrap());
    let range = |begin: i64, end: i64| Window {
        begin: Timestamp::from_nanos(begin),
        end: Timestamp::from_nanos(end),
    };
    let length = last - first;
    for (begin, end, width) in [
        (first, last, 100),
        (first + length / 3, last - length / 5, 1),
        (first - 10 * length, last + length, 7),
    ] {
        let summary = timeline.summary_of_rows(range(begin, end), None, width);
        // Spans are where they are, however the recording is shifted.
        let zero = contributions::own_begin(&timeline.recordings()[0]);
        let grid = Grid::new(begin - zero, end - zero, width);
        assert_eq!(summary.span, grid.span());
        let inside: Vec<_> = all.iter().filter_map(|event| event.0).collect();
        let inside = inside.iter();
        let inside = inside.filter(|&&time| grid.position(time - zero).is_some());
        let counted = |bins: &[(u64, Bin)]| bins.iter().map(|(_, bin)| bin.count).sum::<u64>();
        let total: u64 = summary
            .tracks
            .iter()
            .map(|track| counted(&track.bins))
            .sum();
        assert_eq!(total, inside.count() as u64);
        let bins = summary.tracks.iter();
        for (first, (position, bin)) in
            bins.flat_map(|track| track.bins.iter().map(|bin| (track.begin, bin)))
        {
            assert!(*position < 2 * width as u64);
            assert_eq!(first, grid.begin() + zero);
            let begin = first + (*position * summary.span) as i64;
            assert!(begin <= bin.first && bin.first <= bin.last);
            assert!(bin.last < begin + summary.span as i64);
        }
        // Twice as coarse, pairs of bins add up.
        let coarse = timeline.summary_of_rows(range(begin, end), None, width.div_ceil(2));
        let pairs = summary.tracks.iter().zip(&coarse.tracks);
        if coarse.span == 2 * summary.span {
            for (fine, coarse) in pairs.filter(|(fine, coarse)| fine.begin == coarse.begin) {
                let mut added: BTreeMap<u64, Bin> = BTreeMap::new();
                for (position, bin) in &fine.bins {
                    added.entry(position / 2).or_default().add(bin);
                }
                assert_eq!(added.into_iter().collect::<Vec<_>>(), coarse.bins);
            }
        }
    }
}

/// A recording below the folder of the crates.
fn open_data(place: &str) -> Timeline {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .join(place);
    let opened = crate::open::open(&[path], &crate::open::Options::default());
    assert!(opened.errors.is_empty());
    Timeline::new(opened.recordings)
}

/// What happened on all of time, by the names of tracks.
fn all_of(timeline: &Timeline) -> BTreeMap<String, (kymo_model::EntryKind, Bin)> {
    let summary = timeline.summary_of_rows(Window::ALL, None, 1);
    let tracks = summary.tracks.into_iter().map(|track| {
        let mut bins = track.bins.into_iter().map(|(_, bin)| bin);
        let mut all = bins.next().unwrap();
        bins.for_each(|bin| all.add(&bin));
        (track.track.path.to_string(), (track.track.kind, all))
    });
    tracks.collect()
}

/// The fields of a recording as JSON lines show them.
fn values_of(timeline: &Timeline, names: &str) -> Vec<Batch> {
    let query = Query {
        columns: Columns::named(names).unwrap(),
        shape: Shape::ByClass,
        ..Query::default()
    };
    rows(timeline, &query)
}

#[test]
fn logs_have_their_tracks() {
    let timeline = open_data("kymo-cpel/tests/data/order_reversed.cpel");
    let mut expected: BTreeMap<String, u64> = BTreeMap::new();
    for batch in values_of(&timeline, "track") {
        let tracks = batch.column("track").unwrap();
        for row in 0..batch.len() {
            let Value::Uint(track) = tracks.value(row) else {
                panic!();
            };
            *expected.entry(format!("track {track}")).or_default() += 1;
        }
    }
    let found = all_of(&timeline);
    assert!(expected.len() > 1);
    let counts = found
        .iter()
        .map(|(name, (_, bin))| (name.clone(), bin.count));
    assert_eq!(counts.collect::<BTreeMap<_, _>>(), expected);
    assert!(found.values().all(|(_, bin)| bin.values.is_none()));
}

#[test]
fn sources_of_archives_are_series() {
    let timeline = open_data("kymo-rrd/tests/data/SYN-arm-fpa/tiny.rrd");
    let recording = &timeline.recordings()[0];
    let found = all_of(&timeline);
    assert_eq!(found.len(), recording.tracks().len(), "{found:?}");
    let mut known = 0;
    for (archive, class) in recording.event_classes().iter().enumerate() {
        for source in class
            .schema
            .fields()
            .iter()
            .filter_map(|field| field.name.as_deref())
        {
            let (mut rows, mut values) = (0, Vec::new());
            for batch in values_of(&timeline, source) {
                if batch.classes()[0] as usize != archive {
                    continue;
                }
                rows += batch.len() as u64;
                let column = batch.column(source).unwrap();
                values.extend((0..batch.len()).filter_map(|row| match column.value(row) {
                    Value::Float(value) if !value.is_nan() => Some(value),
                    _ => None,
                }));
            }
            let (kind, bin) = &found[&format!("archive {archive} / {source}")];
            assert_eq!(*kind, kymo_model::EntryKind::Sample);
            assert_eq!(bin.count, rows, "unknown ones are rows, too");
            assert_eq!(
                bin.values.as_ref().map_or(0, |values| values.count),
                values.len() as u64
            );
            if let Some(known_values) = &bin.values {
                let (min, max) = (
                    values.iter().copied().fold(f64::MAX, f64::min),
                    known_values.max,
                );
                assert_eq!(known_values.min, min);
                assert!(values.contains(&max) && values.iter().all(|value| *value <= max));
                assert_eq!(known_values.last, values[values.len() - 1]);
            }
            known += values.len();
        }
    }
    assert!(known > 0);
}

#[test]
fn counters_of_perfetto_are_series() {
    let found = all_of(&open_data("kymo-perfetto/tests/traces/counters.pftrace"));
    let samples = found.values().filter(|(_, bin)| bin.values.is_some());
    assert!(samples.count() > 1, "{found:?}");
}

#[test]
fn seeking_finds_the_first_row_at_a_time_or_later() {
    let timeline = open("lttng-small");
    let all = events(&timeline);
    let times: Vec<i64> = all.iter().filter_map(|event| event.0).collect();
    for &time in [&times[0], &times[times.len() / 2], &times[times.len() - 1]] {
        for sought in [time - 1, time] {
            let expected = times.iter().find(|&&time| time >= sought);
            let found = timeline.seek(Timestamp::from_nanos(sought)).unwrap();
            assert_eq!(found.time.map(Timestamp::as_nanos), expected.copied());
        }
    }
    assert_eq!(
        timeline.seek(Timestamp::from_nanos(times[times.len() - 1] + 1)),
        None
    );
}

/// The metadata of traces that are made up: each event says its time.
const MADE_UP: &str = "/* CTF 1.8 */
    typealias integer { size = 8; align = 8; signed = false; } := u8;
    typealias integer { size = 32; align = 8; signed = false; } := u32;
    typealias integer { size = 64; align = 8; signed = false; } := u64;
    trace { major = 1; minor = 8; byte_order = le;
        packet.header := struct { u32 magic; u32 stream_instance_id; }; };
    clock { name = c; };
    typealias integer { size = 64; align = 8; signed = false; map = clock.c.value; } := t64;
    stream {
        packet.context := struct {
            u32 packet_size; u32 content_size; t64 timestamp_begin; t64 timestamp_end;
            u32 events_discarded;
        };
        event.header := struct { u8 id; t64 timestamp; };
    };
    event { id = 0; name = \"a\"; fields := struct { u8 x; }; };
    event { id = 1; name = \"b\"; fields := struct { u8 x; }; };";

/// Events (time, class), and how many were lost before them.
type Packet = (Vec<(u64, u8)>, u32);

/// A packet, and how many were lost up to its end.
fn packet(stream: u32, (events, lost): &Packet, before: &mut u32) -> Vec<u8> {
    *before += lost;
    let bits = (8 + 28 + events.len() as u32 * 10) * 8;
    let mut bytes = 0xC1FC_1FC1u32.to_le_bytes().to_vec();
    bytes.extend(stream.to_le_bytes());
    bytes.extend(bits.to_le_bytes());
    bytes.extend(bits.to_le_bytes());
    let times = || events.iter().map(|event| event.0);
    bytes.extend(times().min().unwrap_or(0).to_le_bytes());
    bytes.extend(times().max().unwrap_or(0).to_le_bytes());
    bytes.extend(before.to_le_bytes());
    for (number, (time, class)) in events.iter().enumerate() {
        bytes.push(*class);
        bytes.extend(time.to_le_bytes());
        bytes.push(number as u8);
    }
    bytes
}

fn write_stream(directory: &std::path::Path, stream: usize, packets: &[Packet]) {
    std::fs::create_dir_all(directory).unwrap();
    std::fs::write(directory.join("metadata"), MADE_UP).unwrap();
    let mut lost = 0;
    let packets = packets.iter();
    let bytes: Vec<u8> = packets
        .flat_map(|chunk| packet(stream as u32, chunk, &mut lost))
        .collect();
    std::fs::write(directory.join(format!("stream_{stream}")), bytes).unwrap();
}

fn heads(timeline: &Timeline, query: &Query) -> Vec<(RowHead, Vec<String>)> {
    let mut heads = Vec::new();
    timeline
        .for_each_batch(query, |batch| {
            for row in 0..batch.len() {
                let values = batch.columns().iter();
                let values = values.map(|column| format!("{:?}", column.value(row)));
                heads.push((batch.head(row), values.collect()));
            }
            ControlFlow::Continue(())
        })
        .unwrap();
    heads
}

/// Backwards is the other way round, and ends where the limit says.
fn check_backwards(timeline: &Timeline, query: &Query, limits: &[u64]) {
    let mut forwards = heads(timeline, query);
    forwards.reverse();
    for &limit in limits {
        let query = Query {
            direction: Direction::Backwards,
            limit: Some(limit),
            ..query.clone()
        };
        let count = forwards.len().min(limit as usize);
        assert_eq!(heads(timeline, &query), forwards[..count], "{limit}");
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(200))]
    #[test]
    fn backwards_is_the_other_way_round_whatever_the_times(
        streams in proptest::collection::vec(
            proptest::collection::vec(
                (proptest::collection::vec((0u64..20, 0u8..2), 0..6), 0u32..2),
                0..4,
            ),
            1..5,
        ),
        window in (0i64..20, 0i64..20),
        class in 0u8..3,
    ) {
        let directory = tempfile::tempdir().unwrap();
        for (stream, packets) in streams.iter().enumerate() {
            // Two traces, of which nothing says that they are not one.
            let name = if stream % 2 == 0 { "even" } else { "odd" };
            write_stream(&directory.path().join(name), stream / 2, packets);
        }
        let opened = crate::open::open(&[directory.path().into()], &Default::default());
        let timeline = Timeline::new(opened.recordings);
        let mut query = Query {
            threads: 1,
            batch_rows: 3,
            columns: Columns::All,
            ..Query::default()
        };
        check_backwards(&timeline, &query, &[0, 1, 2, 5, 1000]);
        query.range.begin = Timestamp::from_nanos(window.0.min(window.1));
        query.range.end = Timestamp::from_nanos(window.0.max(window.1));
        if class < 2 {
            let name = if class == 0 { "a" } else { "b" };
            query.filter.condition = Some(format!("event.name == \"{name}\"").parse().unwrap());
        }
        check_backwards(&timeline, &query, &[1, 3, 1000]);
    }
}

/// Streams of packets with many events at a time, of which some go back.
fn long_streams() -> impl proptest::prelude::Strategy<Value = Vec<Vec<Packet>>> {
    use proptest::prelude::*;
    let step = prop_oneof![8 => 0..4_i64, 2 => 0..200_i64, 1 => -30..0_i64];
    let packet = (prop::collection::vec((step, 0_u8..2), 0..150), 0_u32..2);
    let stream = prop::collection::vec(packet, 1..5);
    prop::collection::vec(stream, 1..6).prop_map(|streams| {
        let streams = streams.into_iter().map(|packets| {
            let mut time = 100_i64;
            let packets = packets.into_iter().map(|(events, lost)| {
                let events = events.into_iter().map(|(step, class)| {
                    time = (time + step).max(0);
                    (time as u64, class)
                });
                (events.collect(), lost)
            });
            packets.collect()
        });
        streams.collect()
    })
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(60))]
    #[test]
    fn rows_are_merged_as_their_text_is(
        streams in long_streams(),
        are_two in proptest::prelude::any::<bool>(),
        class in 0_u8..4,
        limit in proptest::option::of(0_u64..2000),
        batch_rows in 1_usize..3000,
    ) {
        use crate::show::{MessageKind, Times, WallOptions, json::Json};
        let directory = tempfile::tempdir().unwrap();
        for (stream, packets) in streams.iter().enumerate() {
            // Streams of two traces may have the same rank.
            let (name, number) = match are_two && stream % 2 == 0 {
                true => ("even", stream / 2),
                false => ("odd", stream),
            };
            write_stream(&directory.path().join(name), number, packets);
        }
        let opened = crate::open::open(&[directory.path().into()], &Default::default());
        let timeline = Timeline::new(opened.recordings);
        let mut query = Query { threads: 1, batch_rows, limit, columns: Columns::All, ..Query::default() };
        if class < 2 {
            let name = if class == 0 { "a" } else { "b" };
            query.filter.condition = Some(format!("event.name == \"{name}\"").parse().unwrap());
        }
        let json = Json::with_times(Times::default(), WallOptions::default());
        let shown = timeline.text(&query, json).unwrap().filter_map(|row| row.message);
        let shown = shown.filter(|message| message.kind == MessageKind::Event);
        let shown: Vec<_> = shown
            .map(|message| (message.recording, message.stream, message.chunk, message.class, message.time, message.ticks))
            .collect();
        let rows = heads(&timeline, &query);
        let merged: Vec<_> = rows
            .iter()
            .map(|(RowHead { id, class, time, ticks }, _)| {
                (id.recording as usize, id.stream as usize, id.chunk as usize, *class as usize, *time, *ticks)
            })
            .collect();
        assert_eq!(merged, shown);
        // Within a chunk, rows stay in its order, and their values with them.
        let mut last = BTreeMap::new();
        for (RowHead { id, .. }, values) in &rows {
            let before = last.insert((id.recording, id.stream, id.chunk), id.number);
            assert!(before.is_none_or(|before| before < id.number));
            let number = format!("Uint({})", id.number as u8);
            assert!(values.contains(&number), "{values:?} {number}");
        }
    }
}

#[test]
fn backwards_is_the_other_way_round_of_real_traces() {
    for name in ["lttng-small", "lttng-discarded", "rfc-small"] {
        let timeline = open(name);
        let mut query = Query {
            columns: Columns::named("cpu_id, event.name").unwrap(),
            ..Query::default()
        };
        if name == "rfc-small" {
            query.columns = Columns::All;
        }
        check_backwards(&timeline, &query, &[1, 100, u64::MAX]);
        let times = heads(&timeline, &query);
        let time = times[times.len() / 2].0.time.unwrap();
        query.range.end = time;
        check_backwards(&timeline, &query, &[1, 10]);
    }
}

#[test]
fn only_what_was_added_is_read_and_rows_keep_their_identity() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace");
    let packets: Vec<Packet> = (0u64..6)
        .map(|number| (vec![(number * 10, 0), (number * 10 + 5, 1)], 1))
        .collect();
    write_stream(&path, 0, &packets[..2]);
    write_stream(&path, 1, &packets[..3]);
    let paths = [directory.path().to_path_buf()];
    let options = crate::open::Options::default();
    let opened = crate::open::open(&paths, &options);
    let watched = Watched::new(&paths, &options, &opened);
    let mut timeline = Timeline::new(opened.recordings).watching(watched);
    let mut query = Query::default();
    let mut known = heads(&timeline, &query);
    assert!(timeline.refresh().unwrap().is_empty());
    write_stream(&path, 1, &packets[..5]);
    write_stream(&directory.path().join("trace_2"), 7, &packets[..1]);
    // While rows are read, nothing changes under them.
    let rows = timeline.rows(&query).unwrap();
    assert_eq!(timeline.refresh().unwrap_err(), InUse);
    drop(rows);
    let changes = timeline.refresh().unwrap();
    assert!(changes.errors.is_empty());
    assert_eq!(timeline.recordings().len(), 2);
    query.from = Some(changes.places());
    let added = heads(&timeline, &query);
    assert_eq!(added.len(), 6);
    check_backwards(&timeline, &query, &[1, 4, 100]);
    known.extend(added);
    let id = |row: &(RowHead, Vec<String>)| {
        let RowId {
            recording,
            stream,
            chunk,
            number,
        } = row.0.id;
        (recording, stream, chunk, number)
    };
    known.sort_by_key(id);
    let mut whole = heads(&timeline, &Query::default());
    whole.sort_by_key(id);
    assert_eq!(known, whole);
    assert!(timeline.refresh().unwrap().is_empty());
}

#[test]
fn text_is_what_is_printed() {
    use crate::show::{WallOptions, csv::Csv, pretty};

    struct Printed(Vec<u8>, Vec<u8>);
    impl pipeline::Output for Printed {
        fn text(&mut self, text: &[u8]) -> io::Result<()> {
            self.0.extend_from_slice(text);
            Ok(())
        }
        fn warning(&mut self, lines: &[u8]) -> io::Result<()> {
            self.1.extend_from_slice(lines);
            Ok(())
        }
        fn fault(&mut self, _fault: &FaultReport) -> ControlFlow<()> {
            ControlFlow::Continue(())
        }
    }
    fn check<A: crate::show::Sink + Send + 'static>(timeline: &Timeline, make: impl Fn() -> A) {
        let recordings = timeline.recordings();
        let mut printed = Printed(Vec::new(), Vec::new());
        let everything = &pipeline::Everything;
        let options = pipeline::Options::default();
        pipeline::run(recordings, everything, &options, &mut make(), &mut printed).unwrap();
        let rows: Vec<Text> = timeline.text(&Query::default(), make()).unwrap().collect();
        let text = rows.iter().flat_map(|row| row.text.iter().copied());
        let warnings = rows.iter().flat_map(|row| row.warnings.iter().copied());
        assert!(text.eq(printed.0.iter().copied()));
        assert!(warnings.eq(printed.1.iter().copied()));
        let events = rows.iter().filter(|row| row.message.is_some());
        let lines = events.filter(|row| !row.text.is_empty());
        // A header comes with the first one.
        for row in lines.skip(1) {
            assert_eq!(row.text.iter().filter(|&&byte| byte == b'\n').count(), 1);
        }
        let last = Query {
            direction: Direction::Backwards,
            limit: Some(3),
            ..Query::default()
        };
        let last: Vec<Text> = timeline.text(&last, make()).unwrap().collect();
        let found = last
            .iter()
            .filter(|row| row.message.is_some() && !row.text.is_empty());
        assert_eq!(found.count(), 3);
        assert!(printed.0.ends_with(&last.last().unwrap().text));
        // Not all rows need to be read.
        assert!(
            timeline
                .text(&Query::default(), make())
                .unwrap()
                .next()
                .is_some()
        );
    }
    for name in ["lttng-small", "lttng-discarded"] {
        let timeline = open(name);
        check(&timeline, || {
            Csv::new(Default::default(), WallOptions::default())
        });
        check(&timeline, || {
            let options = pretty::Options {
                delta: false,
                ..pretty::Options::default()
            };
            pretty::Pretty::new(options.for_recordings(timeline.recordings()))
        });
    }
}

/// What another selection wants, event by event.
struct OneByOne<'a>(&'a dyn pipeline::Select);

impl pipeline::Select for OneByOne<'_> {
    fn inner(&self) -> &dyn pipeline::Select {
        self.0
    }

    fn predicate(&self) -> pipeline::Predicate<'_> {
        self.0.predicate().within(pipeline::Layer::OneByOne)
    }
}

/// The rows of a query, class by class, and the faults, with and without blocks.
fn rows_and_faults(
    timeline: &Timeline,
    query: &Query,
    in_blocks: bool,
) -> (Vec<String>, Vec<String>) {
    let bound = timeline.bind(query).unwrap();
    let (mut rows, mut faults) = (Vec::new(), Vec::new());
    let mut take = |batch: Batch| {
        for row in 0..batch.len() {
            let values = batch.columns().iter().map(|column| column.value(row));
            rows.push(format!(
                "{:?} {:?}",
                batch.head(row),
                values.collect::<Vec<_>>()
            ));
        }
        let nulls = batch.columns().iter().map(|column| column.null_count());
        rows.push(format!("{:?}", nulls.collect::<Vec<_>>()));
        for notice in batch.notices() {
            faults.push(format!("{:?}", notice.kind));
        }
        ControlFlow::Continue(())
    };
    let (recordings, plan, options) = (&timeline.recordings, &bound.plan, &bound.options);
    let filter = &bound.filter;
    match in_blocks {
        true => rows::run_plan(
            recordings,
            &filter,
            plan,
            options,
            bound.batch_rows,
            &mut take,
        ),
        false => rows::run_plan(
            recordings,
            &OneByOne(filter),
            plan,
            options,
            bound.batch_rows,
            &mut take,
        ),
    }
    (rows, faults)
}

#[test]
fn blocks_have_the_rows_that_come_one_by_one() {
    let names = [
        None,
        Some("cpu_id,event.name"),
        Some("vtid,cpu_id,vtid"),
        Some("seq,cpu_id"),
        Some("time,vpid,nothing.like.it,text"),
    ];
    let check = |timeline: &Timeline| {
        let (mut rows, mut faults) = (0, 0);
        for names in names {
            for shape in [Shape::Mixed, Shape::ByClass] {
                let columns = match names.map(Columns::named) {
                    None => Columns::All,
                    Some(named) => named.unwrap(),
                };
                let mut query = Query {
                    columns,
                    shape,
                    ..Query::default()
                };
                for limit in [None, Some(77)] {
                    query.limit = limit;
                    if timeline.bind(&query).is_err() {
                        continue;
                    }
                    let one_by_one = rows_and_faults(timeline, &query, false);
                    let in_blocks = rows_and_faults(timeline, &query, true);
                    assert_eq!(one_by_one.0, in_blocks.0);
                    assert!(limit.is_some() || one_by_one.1 == in_blocks.1);
                    rows += in_blocks.0.len();
                    faults += in_blocks.1.len();
                }
            }
        }
        (rows, faults)
    };
    for name in ["lttng-small", "lttng-discarded", "rfc-small", "bitfield-be"] {
        assert!(check(&open(name)).0 > 0, "{name}");
    }
    // The same with bytes that are wrong.
    let directory = tempfile::tempdir().unwrap();
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/lttng-small");
    let mut files = vec![path.clone()];
    let mut streams = Vec::new();
    while let Some(file) = files.pop() {
        if file.is_dir() {
            files.extend(
                std::fs::read_dir(file)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        } else if file.parent().unwrap().file_name() != Some("index".as_ref()) {
            let copy = directory.path().join(file.strip_prefix(&path).unwrap());
            std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
            std::fs::copy(&file, &copy).unwrap();
            if file.file_name() != Some("metadata".as_ref()) {
                streams.push(copy);
            }
        }
    }
    assert!(!streams.is_empty());
    let mut faults = 0;
    let mut seed = 7u64;
    for stream in &streams {
        let whole = std::fs::read(stream).unwrap();
        for _ in 0..4 {
            let mut bytes = whole.clone();
            for _ in 0..4 {
                seed = seed
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                let place = (seed >> 33) as usize % bytes.len().min(4096);
                bytes[place] ^= (seed >> 20) as u8;
            }
            std::fs::write(stream, bytes).unwrap();
            let opened =
                crate::open::open(&[directory.path().into()], &crate::open::Options::default());
            faults += check(&Timeline::new(opened.recordings)).1;
        }
        std::fs::write(stream, whole).unwrap();
    }
    assert!(faults > 0, "some damage was met");
}

#[test]
fn chosen_columns_are_those_of_the_chosen_classes() {
    let timeline = open("lttng-small");
    let mut query = Query::default();
    let names = ["next_tid", "next_comm", "u8"].map(Arc::from);
    query.filter.events = vec![crate::filter::Glob::new("demo:sched")];
    query.columns = Columns::Chosen {
        columns: Arc::new(names.into_iter().collect()),
        packet_fields: [Arc::from("cpu_id")].into(),
    };
    let schema = timeline.schema(&query).unwrap();
    let names: Vec<&str> = schema.iter().map(|column| &*column.name).collect();
    // `demo:sched` has no `u8`.
    let of_schema = ["next_comm", "next_tid", "cpu_id"];
    assert_eq!(names, of_schema);
    let mut same = query.clone();
    same.columns = Columns::named("next_comm, next_tid, cpu_id").unwrap();
    let values = |query: &Query| -> Vec<String> {
        let batches = rows(&timeline, query);
        // Columns are in the order in which classes have them.
        let value = |batch: &Batch, name, row| {
            batch
                .column(name)
                .map(|column| format!("{:?}", column.value(row)))
        };
        let rows_of = |batch: &Batch| {
            let rows = (0..batch.len()).map(|row| of_schema.map(|name| value(batch, name, row)));
            rows.map(|values| format!("{values:?}")).collect::<Vec<_>>()
        };
        batches.iter().flat_map(rows_of).collect()
    };
    let found = values(&query);
    assert_eq!(found.len(), 600);
    assert!(found == values(&same));
}

#[test]
fn rows_between_places_are_all_rows_in_parts() {
    let timeline = open("lttng-small");
    let place = |number| {
        let mut places = Places::at_end();
        for stream in 0..timeline.recordings()[0].streams().len() {
            places.set(0, stream, kymo_model::RowPlace { chunk: 0, number });
        }
        places
    };
    let ids = |query: &Query| -> std::collections::BTreeSet<RowId> {
        let batches = rows(&timeline, query);
        let rows_of = |batch: &Batch| {
            (0..batch.len())
                .map(|row| batch.id(row))
                .collect::<Vec<_>>()
        };
        batches.iter().flat_map(rows_of).collect()
    };
    let mut query = Query::default();
    let all = ids(&query);
    for direction in [Direction::Forwards, Direction::Backwards] {
        query.direction = direction;
        (query.from, query.to) = (None, Some(place(100)));
        let first = ids(&query);
        (query.from, query.to) = (Some(place(100)), None);
        let second = ids(&query);
        assert!(!first.is_empty() && first.is_disjoint(&second));
        assert_eq!(
            first
                .union(&second)
                .copied()
                .collect::<std::collections::BTreeSet<_>>(),
            all
        );
    }
}

#[test]
fn a_run_that_is_stopped_ends() {
    let timeline = open("lttng-small");
    let query = Query {
        stop: Some(Arc::new(AtomicBool::new(true))),
        ..Query::default()
    };
    assert!(rows(&timeline, &query).is_empty());
}

#[test]
fn runs_cover_all_rows() {
    for batch in rows(&open("lttng-small"), &Query::default()) {
        let mut next = 0;
        for (rows, first) in batch.runs() {
            assert_eq!(rows.start, next);
            for row in rows.clone() {
                let number = first.number + (row - rows.start) as u64;
                assert_eq!(batch.id(row), RowId { number, ..first });
            }
            next = rows.end;
        }
        assert_eq!(next, batch.len());
    }
}
