//! Events that are written again.

use kymo_ctf::class::{Dialect, TraceClass};
use kymo_ctf::metadata::fit::fit;
use kymo_ctf::trace::Trace;
use kymo_ctf::write::{Encoder, EventId, StreamOptions, StreamWriter, Token, Values};
use kymo_model::{Chunk, Cursor, Event, Recording};

/// What is written of a trace in its own classes holds the same values; in those of other dialects
/// it can be read.
pub(crate) fn written(trace: &Trace) {
    rewritten(trace, trace.class(), true);
    for dialect in [Dialect::Ctf18, Dialect::Ctf2, Dialect::Rfc11] {
        if let Ok(fitted) = fit(trace.class(), dialect) {
            rewritten(trace, &fitted.model, false);
        }
    }
}

/// The values of an event as text: everything that is not a number is text.
fn shown(values: &Values) -> String {
    let tokens = values.tokens().iter().map(|(_, token)| match *token {
        // Its selector is a token, too: there the bits of a truth value do not count.
        Token::BeginOptional(is_there, _) => Token::BeginOptional(is_there, 0),
        ref token => token.clone(),
    });
    format!("{:?}", tokens.collect::<Vec<Token>>())
}

fn rewritten(trace: &Trace, class: &TraceClass, is_same: bool) {
    let Ok(encoder) = Encoder::new(class) else {
        assert!(!is_same, "what is decoded is encoded");
        return;
    };
    let first_of: Vec<usize> = class
        .streams
        .iter()
        .scan(0, |next, stream| {
            let first = *next;
            *next += stream.events.len();
            Some(first)
        })
        .collect();
    for stream in 0..trace.streams().len() {
        let stream_class = trace.stream_class(stream);
        let options = StreamOptions {
            any_order: true,
            lenient: !is_same,
            ..StreamOptions::default()
        };
        let Ok(mut writer) = StreamWriter::new(&encoder, stream_class, options, Vec::new()) else {
            return;
        };
        let schema = &trace.streams()[stream].packet_schema;
        let mut expected = Vec::new();
        for chunk in trace.chunks(stream) {
            let _ = trace.visit_packet(&chunk, writer.packet_members().decoded(schema));
            events(trace, &chunk, |event| {
                let schema = trace.decoder().header_schema(stream_class);
                let _ = event.visit_header(writer.header_members().decoded(schema));
                let id = EventId {
                    stream_class,
                    event: event.class_index() - first_of[stream_class],
                };
                let written = writer.visited(id, event.ticks(), |encode| event.visit(encode));
                if matches!(written, Ok(Ok(()))) {
                    let mut values = Values::default();
                    let _ = event.visit(&mut values);
                    expected.push(shown(&values));
                }
            });
        }
        let Ok(bytes) = writer.finish() else { continue };
        let found = read(&encoder, stream_class, &bytes);
        assert_eq!(found.len(), expected.len(), "every event is read");
        if is_same {
            assert_eq!(found, expected);
        }
    }
}

fn events(trace: &Trace, chunk: &Chunk, mut each: impl FnMut(&kymo_ctf::decode::PacketEvent<'_>)) {
    let mut cursor = trace.cursor(chunk);
    while let Ok(Some(event)) = cursor.next_event() {
        each(&event);
    }
}

/// The values of all events of packets that lie one behind the other.
fn read(encoder: &Encoder, stream_class: usize, mut bytes: &[u8]) -> Vec<String> {
    let decoder = encoder.decoder();
    let mut events = Vec::new();
    while !bytes.is_empty() {
        let mut head = decoder.packet_head(bytes).expect("a packet's head");
        // In RFC v1.1 the name of the file identifies the section.
        head.stream_class = stream_class;
        let available = bytes.len() as u64 * 8;
        let total = head.total_bits.or(head.content_bits).unwrap_or(available);
        let total = total.next_multiple_of(8).min(available);
        let content = head.content_bits.unwrap_or(total);
        let (packet, rest) = bytes.split_at((total / 8) as usize);
        let mut cursor = decoder.cursor(packet, &head, content, 0);
        while let Some(event) = cursor.next_event().expect("an event") {
            let mut values = Values::default();
            event.visit(&mut values).expect("its values");
            events.push(shown(&values));
        }
        bytes = rest;
    }
    events
}
