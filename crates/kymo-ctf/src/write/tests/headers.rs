//! Headers of events: whatever form is chosen, a reader gets back class and time.

use proptest::prelude::*;

use super::super::{EventId, StreamOptions, StreamWriter};
use super::{encoder, parsed, read, tsdl};
use crate::class::TraceClass;

/// LTTng's headers.
fn lttng(large: bool, order: &str) -> TraceClass {
    let (id, time, align, last) = match large {
        true => (16, 32, 8, 65535),
        false => (5, 27, 1, 31),
    };
    let events: String = [0, 1, 30, 31, 40, 65534, 65535, 70000]
        .iter()
        .map(|id| format!("event {{ name = e{id}; id = {id}; fields := struct {{ u8 x; }}; }};"))
        .collect();
    tsdl(&format!(
        "trace {{ major = 1; minor = 8; byte_order = {order}; }}; clock {{ name = c; }};
         typealias integer {{ size = {id}; align = {align}; }} := id_t;
         typealias integer {{ size = {time}; align = {align}; map = clock.c.value; }} := time_t;
         typealias integer {{ size = 64; align = 8; map = clock.c.value; }} := full_t;
         stream {{ packet.context := struct {{ full_t timestamp_begin; full_t timestamp_end;
            u64 content_size; u64 packet_size; u64 packet_seq_num; u64 events_discarded; }};
            event.header := struct {{ enum : id_t {{ compact = 0 ... {}, extended = {last} }} id;
            variant <id> {{ struct {{ time_t timestamp; }} compact;
                struct {{ u32 id; full_t timestamp; }} extended; }} v; }} align(8); }};
         {events}",
        last - 1
    ))
}

/// The headers of RFC v1.1.
fn rfc(header: u8) -> TraceClass {
    let events: String = [0, 1, 30, 31, 32, 65534, 65535, 70000]
        .iter()
        .map(|id| {
            format!(
                "event {{ name = e{id}; id = {id}; section = s;
                 fields = type {{ parent = struct; fields = {{ {{ uint8_t, x }} }}; }}; }};"
            )
        })
        .collect();
    let text = format!(
        "trace {{ major = 1; minor = 1; }} section {{ name = s;
         event {{ header_type = type{header}; }}; }} {events}"
    );
    let native = || Some(kymo_machine::ByteOrder::Little);
    crate::metadata::parse_with(text.as_bytes(), "metadata", native)
        .unwrap()
        .class
}

/// Headers that are only numbers of a variable length, in CTF 2.
fn variable() -> TraceClass {
    let mut text = String::new();
    for fragment in [
        r#"{"type":"preamble","version":2}"#.to_owned(),
        r#"{"type":"clock-class","id":"c","frequency":1000}"#.to_owned(),
        r#"{"type":"data-stream-class","default-clock-class-id":"c",
            "packet-context-field-class":{"type":"structure","member-classes":[
              {"name":"size","field-class":{"type":"variable-length-unsigned-integer","roles":["packet-total-length"]}},
              {"name":"content","field-class":{"type":"variable-length-unsigned-integer","roles":["packet-content-length"]}},
              {"name":"begin","field-class":{"type":"variable-length-unsigned-integer","roles":["default-clock-timestamp"]}}]},
            "event-record-header-field-class":{"type":"structure","member-classes":[
              {"name":"id","field-class":{"type":"variable-length-unsigned-integer","roles":["event-record-class-id"]}},
              {"name":"time","field-class":{"type":"variable-length-unsigned-integer","roles":["default-clock-timestamp"]}}]}}"#
            .to_owned(),
    ]
    .into_iter()
    .chain((0..8).map(|id| {
        format!(
            r#"{{"type":"event-record-class","id":{},"payload-field-class":{{"type":"structure",
            "member-classes":[{{"name":"x","field-class":{{"type":"fixed-length-unsigned-integer",
            "length":8,"byte-order":"little-endian"}}}}]}}}}"#,
            id * 1000
        )
    })) {
        text.push('\u{1e}');
        text.push_str(&fragment);
        text.push('\n');
    }
    parsed(&text)
}

fn step() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0u64),
        1u64..1000,
        Just((1 << 27) - 1),
        Just(1 << 27),
        Just((1 << 32) - 1),
        Just(1 << 32),
        0u64..1 << 40,
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn class_and_time_come_back(
        events in prop::collection::vec((0usize..8, step(), any::<u8>()), 0..60),
        first in any::<u32>(),
        model in 0usize..7,
        packet_bytes in prop::option::of(Just(4096u64)),
    ) {
        let class = match model {
            0 => lttng(false, "le"),
            1 => lttng(false, "be"),
            2 => lttng(true, "le"),
            3 => lttng(true, "be"),
            4 => rfc(1),
            5 => rfc(2),
            _ => variable(),
        };
        let encoder = encoder(&class);
        let options = StreamOptions { packet_bytes, ..StreamOptions::default() };
        let mut stream = StreamWriter::new(&encoder, 0, options, Vec::new()).unwrap();
        let mut ticks = u64::from(first);
        let mut expected = Vec::new();
        for (event, step, x) in events {
            ticks += step;
            let class = EventId { stream_class: 0, event };
            stream.event(class, ticks, |fields| { fields.uint(x.into()); }).unwrap();
            expected.push((event, Some(ticks), x));
        }
        let bytes = stream.finish().unwrap();
        let found = read(encoder.decoder(), &bytes).unwrap();
        let found: Vec<_> = found
            .into_iter()
            .map(|(event, ticks, tokens)| match tokens[1] {
                super::Token::Uint(x) => (event, ticks, x as u8),
                _ => panic!("a number"),
            })
            .collect();
        prop_assert_eq!(found, expected);
    }
}

#[test]
fn headers_have_the_sizes_of_the_rfc() {
    for (header, plain, extended) in [(1, 32, 32 + 96), (2, 48, 48 + 96)] {
        let encoder = encoder(&rfc(header));
        let mut stream =
            StreamWriter::new(&encoder, 0, StreamOptions::default(), Vec::new()).unwrap();
        let mut bits = vec![];
        for event in [0, 7] {
            let class = EventId {
                stream_class: 0,
                event,
            };
            stream
                .event(class, 5, |fields| {
                    fields.uint(1);
                })
                .unwrap();
            let bytes = stream.finish().unwrap();
            assert_eq!(bytes.len() % 4096, 0);
            let head = encoder.decoder().packet_head(&bytes).unwrap();
            assert_eq!(head.events_bit, 48 * 8);
            bits.push(head.content_bits.unwrap() - 48 * 8 - 8);
            stream = StreamWriter::new(&encoder, 0, StreamOptions::default(), Vec::new()).unwrap();
        }
        assert_eq!(bits, [plain, extended]);
        drop(stream);
    }
}
