use super::*;
use crate::show::MessageKind;
use crate::show::testing::{self, every_kind};

/// What a renderer makes of an event with a field of every kind, and the text of its time.
fn show(options: Options) -> String {
    let mut pretty = Pretty::new(options);
    let mut renderer = pretty.renderer();
    renderer.facts.get(0, 0, || Facts {
        path: "some/trace".into(),
        name: Some("vm/ust".into()),
        hostname: Some("vm".into()),
        domain: Some("ust".into()),
        vpid: Some("12".into()),
        ..Facts::default()
    });
    let (schema, calls) = testing::packet();
    let fields = || PacketFields::new(schema, |field| field == testing::SIZE_FIELD);
    let visit = |visitor: &mut Visible<'_, FieldRenderer<'_>>| {
        testing::play(&calls, visitor);
        Ok(())
    };
    renderer.start(0, 0, true, fields, visit).unwrap();
    let mut text = Line::new();
    renderer.event(&every_kind(), &mut text).unwrap();
    let mut out = Line::new();
    for nanos in [0, 1_000_000_007] {
        let message = Message {
            kind: MessageKind::Event,
            recording: 0,
            stream: 0,
            chunk: 0,
            class: 0,
            time: Some(Timestamp::from_nanos(nanos)),
            ticks: Some(nanos as u64),
        };
        let text = text.as_bytes();
        let end = text.iter().position(|&byte| byte == b'{').unwrap();
        let shown = if nanos == 0 { &text[..end] } else { text };
        pretty.message(&message, &[], shown, &mut out, &mut Vec::new());
    }
    String::from_utf8(out.as_bytes().to_vec()).unwrap()
}

fn gmt() -> Options {
    let mut options = Options::default();
    options.wall.gmt = true;
    options
}

#[test]
fn every_kind_of_field() {
    let expected = "[00:00:00.000000000] (+?.?????????) vm:(12) app:every: \
        [00:00:01.000000007] (+1.000000007) vm:(12) app:every: { cpu_id = 3 }, { vpid = -7 }, \
        { hex = 0xFFF, oct = 0777, bin = 0b101, f = -99.63, q = 1, b = true, bits = 0xE9AB, \
        map = 0x11 { \"A\", \"Z\" }, s = \"a\\\"b\\n\", blob = { 00 ff }, empty = { }, \
        one = ( \"RED\" : container = 0 ), two = ( { \"B\", \"A\" } : container = 0x0 ), \
        none = ( <unknown> : container = 9 ), arr = [ [0] = [ [0] = 1 ], [1] = [ [0] = 2 ] ], \
        no = [ ], var = { { in = 4 } }, some = { \"x\" }, nothing = <none>, hollow = { } }\n";
    assert_eq!(show(gmt()), expected);
}

#[test]
fn without_names_as_cycles() {
    let shown = show(Options {
        names: Names::parse("none").unwrap(),
        cycles: true,
        ..gmt()
    });
    let (first, second) = shown.split_once(": ").unwrap();
    assert_eq!(
        first,
        "[00000000000000000000] (+????????????) vm:(12) app:every"
    );
    let beginning = "[00000000001000000007] (+001000000007) vm:(12) app:every: { 3 }, { -7 }, \
        { 0xFFF, 0777, 0b101, -99.63, 1, true, 0xE9AB, ";
    assert!(second.starts_with(beginning), "{second}");
    assert!(second.contains("[ [ 1 ], [ 2 ] ], [ ], { { 4 } }, { \"x\" }, <none>, { } }"));
}

#[test]
fn all_names_and_fields() {
    let shown = show(Options {
        names: Names::parse("all").unwrap(),
        fields: Fields::parse("all").unwrap(),
        ..gmt()
    });
    let expected = "timestamp = 00:00:00.000000000, delta = +?.?????????, trace = vm/ust, , \
        trace:hostname = vm, trace:domain = ust, trace:vpid = (12), \
        loglevel = TRACE_DEBUG_LINE (13), name = app:every, stream.packet.context = ";
    assert!(shown.starts_with(expected), "{shown}");
    assert!(shown.contains("stream.event.context = { vpid = -7 }, event.fields = { hex = "));
}

#[test]
fn all_fields_without_names() {
    let shown = show(Options {
        fields: Fields::parse("all").unwrap(),
        delta: false,
        ..gmt()
    });
    let expected = "[00:00:00.000000000] vm/ustvm:ust:(12):TRACE_DEBUG_LINE (13) app:every: ";
    assert!(shown.starts_with(expected), "{shown}");
}

#[test]
fn recordings_are_named() {
    let shown = |names| {
        show(Options {
            names: Names::parse(names).unwrap(),
            fields: Fields::parse("recording,trace:hostname").unwrap(),
            ..gmt()
        })
    };
    let expected = "[00:00:00.000000000] (+?.?????????) some/trace: vm app:every: ";
    let text = shown("");
    assert!(text.starts_with(expected), "{text}");
    let expected = "timestamp = 00:00:00.000000000, delta = +?.?????????, \
        recording = some/trace, trace:hostname = vm, name = app:every, ";
    let text = shown("header");
    assert!(text.starts_with(expected), "{text}");
}

#[test]
fn colors() {
    let shown = show(Options {
        colors: Some(Palette::new(true)),
        ..gmt()
    });
    let line = shown.split_once(": ").unwrap().1;
    let expected = "[\x1b[1m\x1b[1m\x1b[33m00:00:01.000000007\x1b[0m] (+1.000000007) vm:(12) \
        \x1b[1m\x1b[1m\x1b[35mapp:every\x1b[0m: { \x1b[36mcpu_id\x1b[0m = \x1b[1m3\x1b[0m }, \
        { \x1b[36mvpid\x1b[0m = \x1b[1m-7\x1b[0m }, { \x1b[36mhex\x1b[0m = ";
    assert!(line.starts_with(expected), "{line:?}");
    for part in [
        "= ( \x1b[1m\"RED\"\x1b[0m : container = \x1b[1m0\x1b[0m ), ",
        "= ( \x1b[1m\x1b[1m\x1b[31m<unknown>\x1b[0m : container = \x1b[1m9\x1b[0m ), ",
        "= [ [0] = [ [0] = \x1b[1m1\x1b[0m ], ",
        "= \x1b[1m\"a\\\"b\\n\"\x1b[0m, ",
    ] {
        assert!(line.contains(part), "{part:?} in {line:?}");
    }
}
