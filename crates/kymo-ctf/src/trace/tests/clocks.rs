//! Clocks that are narrow, or that packets do not state, and what tracers get wrong.

use super::*;

/// A stream whose packets have some of these members, and events of an 8-bit time and value.
fn metadata(context: &str) -> String {
    format!(
        "trace {{ major = 1; minor = 8; byte_order = le; }};
         stream {{
             packet.context := struct {{ u8 packet_size; {context} }};
             event.header := struct {{ t8 timestamp; }};
         }};
         event {{ fields := struct {{ u8 x; }}; }};"
    )
}

fn begins_and_ends(trace: &Trace) -> Vec<(Option<u64>, Option<u64>)> {
    trace
        .chunks(0)
        .map(|chunk| (chunk.begin, chunk.end))
        .collect()
}

#[test]
fn a_narrow_clock_goes_on_from_packet_to_packet() {
    // 16 bits at both ends, 8 in events.
    let metadata = metadata("t16 timestamp_begin; t16 timestamp_end;");
    let packets = [
        vec![56, 0xF0, 0xFF, 0xFE, 0xFF, 0xF5, 1],
        vec![56, 0x02, 0x00, 0x05, 0x01, 0x01, 2],
        vec![40, 0x05, 0x01, 0x04, 0x01],
    ];
    let trace = one_file(&metadata, packets.concat());
    assert_eq!(trace.faults(), []);
    assert_eq!(
        begins_and_ends(&trace),
        [
            (Some(0xFFF0), Some(0xFFFE)),
            (Some(0x1_0002), Some(0x1_0105)),
            (Some(0x1_0105), Some(0x2_0104))
        ]
    );
    assert_eq!(events(&trace, 0), [(0xFFF5, 1), (0x1_0101, 2)]);
}

#[test]
fn without_a_time_at_the_beginning_the_clock_goes_on_from_the_last_event() {
    let trace = one_file(
        &metadata(""),
        vec![40, 250, 1, 5, 2, 24, 4, 3, 8, 24, 200, 4],
    );
    assert_eq!(begins_and_ends(&trace), [(None, None); 4]);
    assert_eq!(events(&trace, 0), [(250, 1), (261, 2), (516, 3), (712, 4)]);
    // Each packet can be decoded on its own all the same.
    assert_eq!(walk(&trace, 0, 3).0, [(712, vec![4])]);
}

#[test]
fn without_a_time_at_the_beginning_the_clock_goes_on_from_the_end_before() {
    let metadata = metadata("t16 timestamp_end;");
    let trace = one_file(&metadata, vec![40, 0x00, 0x03, 7, 1, 40, 0x09, 0x03, 8, 2]);
    assert_eq!(
        begins_and_ends(&trace),
        [(None, Some(0x300)), (None, Some(0x309))]
    );
    assert_eq!(events(&trace, 0), [(7, 1), (0x308, 2)]);
}

#[test]
fn events_without_any_time_begin_with_the_clock_at_zero() {
    let metadata = metadata("t16 timestamp_end;").replace("t8 timestamp;", "u8 id;");
    let trace = one_file(&metadata, vec![40, 0x00, 0x03, 0, 1, 40, 0x09, 0x03, 0, 2]);
    assert_eq!(events(&trace, 0), [(0, 1), (0, 2)]);
}

#[test]
fn times_that_go_back_are_reported_once_for_a_stream() {
    let packets = [
        Packet::new(0, 50, 60, &[(55, 1)]),
        Packet::new(0, 20, 30, &[(25, 2)]),
        Packet::new(0, 10, 5, &[]),
    ];
    let trace = usual(&[("file", bytes_of(&packets))]);
    assert_eq!(codes(&trace), [FaultCode::NotMonotonic]);
    let fault = &trace.faults()[0];
    assert_eq!(
        (fault.packet, fault.offset as usize),
        (Some(1), HEAD_BYTES + 3)
    );
    assert!(
        fault.message.contains("begins at 20 ticks"),
        "{}",
        fault.message
    );
    assert_eq!(events(&trace, 0), [(55, 1), (25, 2)]);
    assert_eq!(
        trace.chunk(0, 2).unwrap().begin_time,
        None,
        "times that contradict each other are not relied on"
    );
}

/// The usual metadata, of a tracer.
fn usual_of(tracer: &str, version: (i64, i64, i64)) -> String {
    let (major, minor, patch) = version;
    format!(
        "{USUAL} env {{
            hostname = \"host\";
            tracer_name = \"{tracer}\";
            tracer_major = {major}; tracer_minor = {minor}; tracer_patchlevel = {patch};
        }};"
    )
}

#[test]
fn a_crashed_session_leaves_packets_without_an_end() {
    let packets = [
        Packet::new(0, 10, 0, &[(11, 1), (14, 2)]),
        Packet::new(0, 20, 30, &[(21, 3)]),
        Packet::new(0, 40, 0, &[]),
    ];
    let trace = one_file(&usual_of("lttng-ust", (2, 13, 0)), bytes_of(&packets));
    assert_eq!(trace.faults(), []);
    assert_eq!(
        begins_and_ends(&trace),
        [
            (Some(10), Some(14)),
            (Some(20), Some(30)),
            (Some(40), Some(40))
        ]
    );
    // Of another tracer it is damage.
    let trace = one_file(&usual_of("other", (2, 13, 0)), bytes_of(&packets));
    assert_eq!(codes(&trace), [FaultCode::NotMonotonic]);
    assert_eq!(begins_and_ends(&trace)[0], (Some(10), Some(0)));
}

#[test]
fn events_after_their_packet() {
    let packets = [
        Packet::new(0, 10, 20, &[(25, 1)]),
        Packet::new(0, 30, 40, &[(45, 1)]),
    ];
    let end_times = |tracer, version| {
        let trace = one_file(&usual_of(tracer, version), bytes_of(&packets));
        let chunks = trace.chunks(0);
        chunks
            .map(|chunk| chunk.end_time.map(|time| time.as_nanos() - 100_000_000_000))
            .collect::<Vec<_>>()
    };
    for (tracer, version) in [
        ("lttng-ust", (2, 10, 99)),
        ("lttng-modules", (2, 8, 99)),
        ("lttng-modules", (2, 9, 12)),
        ("lttng-modules", (2, 10, 9)),
    ] {
        assert_eq!(
            end_times(tracer, version),
            [Some(30), Some(45)],
            "{tracer} {version:?}"
        );
    }
    for (tracer, version) in [
        ("lttng-ust", (2, 11, 0)),
        ("lttng-modules", (2, 9, 13)),
        ("lttng-modules", (2, 10, 10)),
        ("lttng-modules", (2, 11, 0)),
        ("barectf", (2, 0, 0)),
    ] {
        assert_eq!(
            end_times(tracer, version),
            [Some(20), Some(40)],
            "{tracer} {version:?}"
        );
    }
}

#[test]
fn events_before_their_packet() {
    let metadata = |patch| {
        usual_of("barectf", (2, 3, patch))
            .replace("tracer_patchlevel", "tracer_patch")
            .replace("t8 timestamp", "t64 timestamp")
    };
    let event = |time: u64| [&[0][..], &time.to_le_bytes(), &[7]].concat();
    let packet = |begin, end, time| {
        let mut bytes = Packet {
            total: Some(((HEAD_BYTES + 10) * 8) as u16),
            content: Some(((HEAD_BYTES + 10) * 8) as u16),
            ..Packet::new(0, begin, end, &[])
        }
        .bytes();
        bytes.extend(event(time));
        bytes
    };
    let bytes = [packet(10, 20, 12), packet(30, 40, 25)].concat();
    let trace = one_file(&metadata(0), bytes.clone());
    assert_eq!(
        begins_and_ends(&trace),
        [(Some(10), Some(20)), (Some(25), Some(40))]
    );
    assert_eq!(
        trace.chunk(0, 1).unwrap().begin_time.unwrap().as_nanos(),
        100_000_000_025
    );
    assert_eq!(events(&trace, 0), [(12, 7), (25, 7)]);
    let trace = one_file(&metadata(1), bytes);
    assert_eq!(begins_and_ends(&trace)[1], (Some(30), Some(40)));
}
