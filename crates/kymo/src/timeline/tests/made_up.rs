//! Traces that are made up: streams whose times go back, and recordings that grow.

use std::collections::BTreeMap;

use super::backwards::check_backwards;
use super::*;

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
pub(super) type Packet = (Vec<(u64, u8)>, u32);

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

pub(super) fn write_stream(directory: &std::path::Path, stream: usize, packets: &[Packet]) {
    std::fs::create_dir_all(directory).unwrap();
    std::fs::write(directory.join("metadata"), MADE_UP).unwrap();
    let mut lost = 0;
    let packets = packets.iter();
    let bytes: Vec<u8> = packets
        .flat_map(|chunk| packet(stream as u32, chunk, &mut lost))
        .collect();
    std::fs::write(directory.join(format!("stream_{stream}")), bytes).unwrap();
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
        // The rows of each class are the same, whatever comes between them.
        query.shape = Shape::ByClass;
        let by_class = |rows: Vec<(RowHead, Vec<String>)>| {
            let mut of_class: BTreeMap<_, Vec<_>> = BTreeMap::new();
            for (head, values) in rows {
                let number = format!("Uint({})", head.id.number as u8);
                assert!(values.contains(&number), "{values:?} {number}");
                of_class.entry((head.id.recording, head.class)).or_default().push(head);
            }
            of_class
        };
        assert_eq!(by_class(heads(&timeline, &query)), by_class(rows));
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
