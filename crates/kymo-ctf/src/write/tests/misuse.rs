//! Errors are reported, and leave nothing behind.

use super::super::{EventId, Fields, StreamOptions, StreamWriter, WriteError};
use super::{encoder, read, tsdl};

/// Ends a chain of values.
fn done(_: &mut Fields<'_, '_>) {}

#[test]
fn what_does_not_fit_is_reported_and_not_written() {
    let class = tsdl(
        "trace { major = 1; minor = 8; byte_order = be; };
         clock { name = c; }; typealias integer { size = 64; map = clock.c.value; } := time;
         stream { packet.context := struct { u32 packet_size; u32 content_size; };
            event.header := struct { u8 id; time timestamp; }; };
         event { name = e; id = 0; fields := struct { integer { size = 3; signed = true; } a;
            u8 n; struct { u16 x[n]; string s; } in; enum : u8 { one = 1, two = 2 } tag;
            variant <tag> { u8 one; string two; } v; u8 three[3]; }; };",
    );
    let encoder = encoder(&class);
    let event = encoder.event(0, "e").unwrap();
    let mut stream = StreamWriter::new(&encoder, 0, StreamOptions::default(), Vec::new()).unwrap();
    let good = |fields: &mut Fields<'_, '_>| {
        fields.sint(-4).uint(1);
        fields.structure(|fields| fields.array(1, |fields, _| fields.uint(9)).text("t"));
        fields.uint(2).option(1, |fields| fields.text("u"));
        fields.array(3, |fields, at| fields.uint(at));
    };
    stream.event(event, 1, good).unwrap();
    type Write = fn(&mut Fields<'_, '_>);
    let cases: [(Write, &str); 15] = [
        (
            |f| done(f.sint(-5)),
            "field `payload.a`: -5 does not fit a signed integer of 3 bits",
        ),
        (
            |f| done(f.uint(4)),
            "field `payload.a`: 4 does not fit a signed integer of 3 bits",
        ),
        (
            |f| done(f.sint(0).sint(-1)),
            "field `payload.n`: -1 does not fit an unsigned integer of 8 bits",
        ),
        (
            |f| done(f.sint(0).uint(256)),
            "field `payload.n`: 256 does not fit an unsigned integer of 8 bits",
        ),
        (
            |f| done(f.text("x")),
            "field `payload.a`: text is given, and here is a signed integer",
        ),
        (
            |f| done(f.float(1.0)),
            "field `payload.a`: a floating point number is given, and here is a signed integer",
        ),
        (
            |_| (),
            "field `payload.a`: it is not given, nor what follows",
        ),
        (
            |f| done(f.sint(0).uint(1).uint(3)),
            "field `payload.in`: a number is given, and here is a structure",
        ),
        (
            |f| {
                done(
                    f.sint(0)
                        .uint(2)
                        .structure(|f| f.array(1, |f, _| f.uint(1))),
                )
            },
            "field `payload.in.x`: 1 elements are given, and the field of its length says 2",
        ),
        (
            |f| done(f.sint(0).uint(2).structure(|f| f.array(2, |f, _| f))),
            "field `payload.in.x[]`: the end of an array is given, and here is an unsigned integer",
        ),
        (
            |f| {
                done(
                    f.sint(0)
                        .uint(0)
                        .structure(|f| f.array(0, |f, _| f).text("a\0")),
                )
            },
            "field `payload.in.s`: the text holds a zero, at which readers take it to end",
        ),
        (
            |f| {
                f.sint(0)
                    .uint(0)
                    .structure(|f| f.array(0, |f, _| f).text(""));
                f.uint(1).option(1, |f| f.text(""));
            },
            "field `payload.v`: option 1 is given, and its selector, 1, selects option 0",
        ),
        (
            |f| {
                f.sint(0)
                    .uint(0)
                    .structure(|f| f.array(0, |f, _| f).text(""));
                f.uint(2)
                    .option(1, |f| f.text(""))
                    .array(4, |f, _| f.uint(0));
            },
            "field `payload.three`: 4 elements are given, and its class has 3",
        ),
        (
            |f| {
                f.sint(0)
                    .uint(0)
                    .structure(|f| f.array(0, |f, _| f).text(""));
                f.uint(2)
                    .option(1, |f| f.text(""))
                    .array(3, |f, _| f.uint(0))
                    .uint(1);
            },
            "a number is given beyond the last field of the event",
        ),
        (
            |f| {
                done(
                    f.fill()
                        .uint(0)
                        .structure(|f| f.array(0, |f, _| f).text("")),
                )
            },
            "field `payload.tag`: it is not given, nor what follows",
        ),
    ];
    for (write, expected) in cases {
        let error = stream.event(event, 1, write).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
    let error = stream.event(event, 0, good).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the event is at 0 ticks, before 1, where the one before it is"
    );
    let error = stream.event(event, None, good).unwrap_err();
    assert!(error.to_string().contains("has no time"));
    for class in [(0, 1), (1, 0)] {
        let class = EventId {
            stream_class: class.0,
            event: class.1,
        };
        let error = stream.event(class, 1, good).unwrap_err();
        assert!(error.to_string().contains("does not have"));
    }
    stream.event(event, 1, good).unwrap();
    let bytes = stream.finish().unwrap();
    let events = read(encoder.decoder(), &bytes).unwrap();
    assert_eq!(events.len(), 2);
    assert_eq!(events[0].2, events[1].2);
}

#[test]
fn what_is_filled_in_must_be_reported_by_something() {
    let class = tsdl(
        "trace { major = 1; minor = 8; byte_order = be; }; stream { };
         event { name = e; fields := struct { u8 n; u8 a[n]; u8 b[n]; u8 c; }; };",
    );
    let encoder = encoder(&class);
    let event = encoder.event(0, "e").unwrap();
    let mut stream = StreamWriter::new(&encoder, 0, StreamOptions::default(), Vec::new()).unwrap();
    let mut lengths = |a, b, fill: bool| -> Result<(), WriteError> {
        stream.event(event, None, |fields| {
            fields
                .fill()
                .array(a, |f, _| f.uint(1))
                .array(b, |f, _| f.uint(2));
            match fill {
                true => done(fields.fill()),
                false => done(fields.uint(3)),
            }
        })
    };
    lengths(2, 2, false).unwrap();
    assert_eq!(
        lengths(2, 3, false).unwrap_err().to_string(),
        "field `payload.b`: it needs 3 in a field from which something else needs 2"
    );
    assert_eq!(
        lengths(2, 2, true).unwrap_err().to_string(),
        "field `payload.c`: it has no value: none was given, and no array, text or option refers to it"
    );
    assert_eq!(stream.finish().unwrap(), [2, 1, 1, 2, 2, 3]);
}
