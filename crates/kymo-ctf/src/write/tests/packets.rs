//! Packets: sizes, times, counters.

use super::super::{
    EventId, PacketInfo, PacketSink, PacketStart, StreamOptions, StreamWriter, Token, WriteError,
};
use super::{encoder, read, tsdl};
use crate::class::TraceClass;

const FIRST: EventId = EventId {
    stream_class: 0,
    event: 0,
};

/// Keeps each packet.
#[derive(Default)]
struct Kept(Vec<(Vec<u8>, PacketInfo)>);

impl PacketSink for Kept {
    fn packet(&mut self, bytes: &[u8], info: &PacketInfo) -> std::io::Result<()> {
        self.0.push((bytes.to_vec(), *info));
        Ok(())
    }
}

fn class(context: &str) -> TraceClass {
    tsdl(&format!(
        "trace {{ major = 1; minor = 8; byte_order = le; packet.header := struct {{ u32 magic;
            u32 stream_id; u64 stream_instance_id; }}; }};
         clock {{ name = c; }}; typealias integer {{ size = 64; map = clock.c.value; }} := time;
         typealias integer {{ size = 16; map = clock.c.value; }} := short_time;
         stream {{ id = 7; packet.context := struct {{ {context} }};
            event.header := struct {{ u8 id; time timestamp; }}; }};
         event {{ name = e; id = 0; stream_id = 7; fields := struct {{ string s; }}; }};"
    ))
}

const ALL: &str = "u32 packet_size; u32 content_size; time timestamp_begin; time timestamp_end;
    u8 events_discarded; u32 packet_seq_num; u32 cpu_id;";

#[test]
fn packets_end_before_they_are_too_large() {
    let encoder = encoder(&class(ALL));
    let options = StreamOptions {
        packet_bytes: Some(4096),
        stream_id: Some(5),
        ..StreamOptions::default()
    };
    let mut stream = StreamWriter::new(&encoder, 0, options, Kept::default()).unwrap();
    stream.packet_members().set("cpu_id", Token::Uint(3));
    let sizes = [10, 1000, 3000, 100, 10_000, 1, 4000, 4000];
    for (n, size) in sizes.into_iter().enumerate() {
        if n == 3 {
            stream.discard(300);
        }
        stream
            .event(FIRST, 100 * n as u64, |fields| {
                fields.text(&"x".repeat(size));
            })
            .unwrap();
    }
    let kept = stream.finish().unwrap().0;
    let reported: Vec<_> = kept
        .iter()
        .map(|(_, info)| (info.events, info.begin.unwrap(), info.end.unwrap()))
        .collect();
    assert_eq!(
        reported,
        [
            (3, 0, 200),
            (1, 300, 300),
            (1, 400, 400),
            (2, 500, 600),
            (1, 700, 700),
        ]
    );
    let mut all = Vec::new();
    for (number, (bytes, info)) in kept.iter().enumerate() {
        let head = encoder.decoder().packet_head(bytes).unwrap();
        assert_eq!(head.total_bits, Some(bytes.len() as u64 * 8));
        assert_eq!(head.total_bits, Some(info.total_bits));
        assert_eq!(head.content_bits, Some(info.content_bits));
        assert_eq!(head.begin, info.begin.map(|ticks| (ticks, 64)));
        assert_eq!(head.end, info.end.map(|ticks| (ticks, 64)));
        assert_eq!(head.sequence, Some((number as u64, 32)));
        // The counter has 8 bits, and counts what was lost until the end of the packet.
        assert_eq!(head.discarded, Some((300 % 256, 8)));
        assert_eq!(head.stream_id, Some(5));
        assert_eq!(bytes[45..49], [3, 0, 0, 0]);
        all.extend_from_slice(bytes);
    }
    assert_eq!(read(encoder.decoder(), &all).unwrap().len(), sizes.len());
}

#[test]
fn packets_are_as_they_are_reported() {
    let encoder = encoder(&class(ALL));
    let options = StreamOptions {
        packet_bytes: None,
        ..StreamOptions::default()
    };
    let mut stream = StreamWriter::new(&encoder, 0, options, Kept::default()).unwrap();
    stream.packet_members().set("cpu_id", Token::Uint(3));
    let start = PacketStart {
        begin: Some(10),
        sequence: Some(8),
        discarded: Some(4),
        least_bytes: 1000,
    };
    stream.begin_packet(start).unwrap();
    stream
        .event(FIRST, 20, |fields| {
            fields.text(&"x".repeat(100_000));
        })
        .unwrap();
    stream.end_packet(Some(30)).unwrap();
    stream
        .begin_packet(PacketStart {
            least_bytes: 500,
            ..start
        })
        .unwrap_err();
    let next = PacketStart {
        begin: Some(40),
        least_bytes: 500,
        ..PacketStart::default()
    };
    stream.begin_packet(next).unwrap();
    stream.end_packet(None).unwrap();
    let kept = stream.finish().unwrap().0;
    let (bytes, info) = &kept[0];
    assert_eq!((info.begin, info.end), (Some(10), Some(30)));
    assert_eq!((info.discarded, info.sequence, info.events), (4, 8, 1));
    assert!(bytes.len() > 100_000);
    let (bytes, info) = &kept[1];
    assert_eq!((bytes.len(), info.events), (500, 0));
    assert_eq!((info.begin, info.end), (Some(40), Some(40)));
    assert_eq!((info.discarded, info.sequence), (4, 9));
}

#[test]
fn a_time_that_has_few_bits_ends_packets() {
    let encoder = encoder(&class(
        "u32 packet_size; u32 content_size; time timestamp_begin; short_time timestamp_end;",
    ));
    let mut stream =
        StreamWriter::new(&encoder, 0, StreamOptions::default(), Kept::default()).unwrap();
    for ticks in [0, 65_535, 65_536, 200_000] {
        stream
            .event(FIRST, ticks, |fields| {
                fields.text("");
            })
            .unwrap();
    }
    let kept = stream.finish().unwrap().0;
    let ends: Vec<_> = kept.iter().map(|(_, info)| info.end.unwrap()).collect();
    assert_eq!(ends, [65_535, 65_536, 200_000]);
}

#[test]
fn a_beginning_that_cannot_be_reported_is_an_error() {
    let encoder = encoder(&class(
        "u32 packet_size; u32 content_size; short_time timestamp_begin; time timestamp_end;",
    ));
    let mut stream = StreamWriter::new(&encoder, 0, StreamOptions::default(), Vec::new()).unwrap();
    let error = stream.event(FIRST, 65_536, |fields| {
        fields.text("");
    });
    assert_eq!(
        error.unwrap_err().to_string(),
        "the packet begins at 65536 ticks, which its field of 16 bits cannot hold: a reader would read 0"
    );
    // It goes on from the packet before.
    for ticks in [60_000, 120_000] {
        stream
            .event(FIRST, ticks, |fields| {
                fields.text("");
            })
            .unwrap();
        stream.end_packet(None).unwrap();
    }
    let bytes = stream.finish().unwrap();
    let events = read(encoder.decoder(), &bytes).unwrap();
    let ticks: Vec<_> = events.iter().map(|(_, ticks, _)| ticks.unwrap()).collect();
    assert_eq!(ticks, [60_000, 120_000]);
}

#[test]
fn packets_without_sizes_are_alone() {
    let encoder = encoder(&class("time timestamp_begin;"));
    let mut stream = StreamWriter::new(&encoder, 0, StreamOptions::default(), Vec::new()).unwrap();
    for ticks in 0..100_000 {
        stream
            .event(FIRST, ticks, |fields| {
                fields.text("");
            })
            .unwrap();
    }
    stream.end_packet(None).unwrap();
    let error = stream.event(FIRST, 100_000, |fields| {
        fields.text("");
    });
    assert!(error.unwrap_err().to_string().contains("only one"));
    let bytes = stream.finish().unwrap();
    assert_eq!(read(encoder.decoder(), &bytes).unwrap().len(), 100_000);
}

#[test]
fn a_packet_without_a_size_ends_with_a_byte() {
    let class = |align: u32, context: &str| {
        tsdl(&format!(
            "trace {{ major = 1; minor = 8; byte_order = le; }};
             typealias integer {{ size = 4; align = 1; }} := u4;
             typealias integer {{ size = 4; align = {align}; }} := first;
             stream {{ {context} event.header := struct {{ first id; }}; }};
             event {{ name = e; id = 0; fields := struct {{ u4 a; u4 b; }}; }};
             event {{ name = f; id = 15; fields := struct {{ u4 c; }}; }};"
        ))
    };
    let f = EventId { event: 1, ..FIRST };
    let write = |class: &TraceClass, events: &[EventId]| {
        let encoder = encoder(class);
        let options = StreamOptions::default();
        let mut stream = StreamWriter::new(&encoder, 0, options, Kept::default()).unwrap();
        for (n, &event) in (0..).zip(events) {
            let done = stream.event(event, None, |fields| match event.event {
                0 => {
                    fields.uint(n).uint(1);
                }
                _ => {
                    fields.uint(n);
                }
            });
            done.unwrap();
        }
        let error = stream.end_packet(None).err().map(|error| error.to_string());
        let kept = stream.finish().unwrap().0;
        let reported = kept.iter().map(|(_, info)| info.events).sum::<u64>();
        let bytes: Vec<u8> = kept.into_iter().flat_map(|(bytes, _)| bytes).collect();
        let read = read(encoder.decoder(), &bytes).unwrap();
        assert_eq!(read.len() as u64, reported);
        for (n, (class, _, tokens)) in (0..).zip(&read) {
            assert_eq!(*class, events[n as usize].event);
            assert_eq!(tokens[1], Token::Uint(n));
        }
        (read.len(), error)
    };
    // Twelve bits, twelve bits, eight.
    let packed = class(1, "");
    assert_eq!(write(&packed, &[FIRST, FIRST, f]), (3, None));
    assert_eq!(write(&packed, &[f, FIRST, f, FIRST]), (4, None));
    let (events, error) = write(&packed, &[f, FIRST, f, f]);
    assert_eq!(events, 1);
    assert!(error.unwrap().ends_with("left out of its last events: 3"));
    let (events, error) = write(&packed, &[FIRST]);
    assert_eq!(events, 0);
    assert!(error.unwrap().ends_with("left out of its last events: 1"));
    // No event begins within a byte here, so that the bits behind the last one are none.
    assert_eq!(write(&class(8, ""), &[f, FIRST, f, FIRST]), (4, None));
    // Packets that end by themselves may end with any event.
    let sized = class(1, "packet.context := struct { u32 packet_size; };");
    let encoder = encoder(&sized);
    let options = StreamOptions {
        packet_bytes: Some(4096),
        ..StreamOptions::default()
    };
    let mut stream = StreamWriter::new(&encoder, 0, options, Kept::default()).unwrap();
    let error = stream.event(FIRST, None, |fields| {
        fields.uint(0).uint(1);
    });
    assert!(error.unwrap_err().to_string().contains("within a byte"));
}

#[test]
fn sizes_that_cannot_be_reported_end_packets() {
    let encoder = encoder(&class(
        "u16 packet_size; u16 content_size; time timestamp_begin;",
    ));
    let mut stream =
        StreamWriter::new(&encoder, 0, StreamOptions::default(), Kept::default()).unwrap();
    for ticks in 0..2000 {
        stream
            .event(FIRST, ticks, |fields| {
                fields.text("0123456789");
            })
            .unwrap();
    }
    let error = stream.event(FIRST, 2000, |fields| {
        fields.text(&"x".repeat(9000));
    });
    assert!(matches!(error, Err(WriteError::Misuse(problem)) if problem.contains("larger")));
    let kept = stream.finish().unwrap().0;
    assert_eq!(kept.iter().map(|(_, info)| info.events).sum::<u64>(), 2000);
    assert!(kept.iter().all(|(bytes, _)| bytes.len() < 8192));
}
