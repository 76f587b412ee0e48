//! What TSDL means, construct by construct.

mod declarators;
mod errors;
mod references;
mod strictness;

use kymo_time::Origin;

use crate::class::{EnvironmentValue, TraceClass};
use crate::metadata::testing::{is_written, show};

const TRACE: &str = "trace { major = 1; minor = 8; byte_order = le; };
typealias integer { size = 8; } := u8;
typealias integer { size = 8; signed = true; } := i8;
";

fn trace(text: &str) -> TraceClass {
    match super::parse(text) {
        Ok((class, _)) => {
            is_written(&class);
            class
        }
        Err(error) => panic!("{}", error.render("metadata", text, false)),
    }
}

fn warnings(text: &str) -> Vec<String> {
    let (_, warnings) = super::parse(text).unwrap();
    warnings
        .into_iter()
        .map(|warning| warning.message)
        .collect()
}

/// The field classes of an event's payload, in short.
fn fields(fields: &str) -> String {
    let text = format!("{TRACE}event {{ name = e; fields := struct {{ {fields} }}; }};");
    let class = trace(&text);
    show(class.streams[0].events[0].payload.as_ref().unwrap())
}

// Integers, floating point numbers, strings.

#[test]
fn integers_have_defaults() {
    assert_eq!(
        fields(
            "integer { size = 8; } a; integer { size = 7; } b; integer { size = 64; align = 4; } c;"
        ),
        "{a: u8le@8, b: u7le@1, c: u64le@4}"
    );
    assert_eq!(
        fields("integer { size = 3; signed = TRUE; byte_order = network; base = hex; } a;"),
        "{a: i3be@1 Hexadecimal}"
    );
    assert_eq!(
        fields("integer { size = 0x10; base = 8; byte_order = native; signed = 0; } a;"),
        "{a: u16le@8 Octal}"
    );
    assert_eq!(
        fields("integer { size = 0b1000; base = b; byte_order = be; } a;"),
        "{a: u8be@8 Binary}"
    );
}

#[test]
fn floats_are_those_of_ieee_754() {
    assert_eq!(
        fields(
            "floating_point { exp_dig = 8; mant_dig = 24; } a;
             floating_point { exp_dig = 11; mant_dig = 53; align = 1; } b;
             floating_point { exp_dig = 5; mant_dig = 11; } c;"
        ),
        "{a: f32@8, b: f64@1, c: f16@8}"
    );
}

#[test]
fn bytes_with_an_encoding_are_text_in_arrays() {
    assert_eq!(
        fields(
            "typealias integer { size = 8; encoding = ASCII; } := char;
             string a; string { encoding = UTF8; } b; char c; char d[3]; u8 n; char e[n];
             char f[2][3]; integer { size = 8; align = 4; encoding = UTF8; } g[3];"
        ),
        "{a: text, b: text, c: u8le@8, d: text[3], n: u8le@8, e: text[Payload.4], \
         f: [text[3]; 2], g: [u8le@4; 3]}"
    );
}

// Names of types.

#[test]
fn aliases_have_several_words_and_asterisks() {
    assert_eq!(
        fields(
            "typealias integer { size = 32; } := unsigned long;
             typealias integer { size = 64; } := const char *;
             typealias integer { size = 16; } := struct page *;
             typealias unsigned long := counter;
             unsigned long a; const char *b; struct page * c; counter d, e[2];"
        ),
        "{a: u32le@8, b: u64le@8 Hexadecimal, c: u16le@8 Hexadecimal, d: u32le@8, e: [u32le@8; 2]}"
    );
}

#[test]
fn typedefs_have_lengths() {
    assert_eq!(
        fields(
            "typedef u8 pair[2], one; typedef pair four[2]; four a; one b; typealias u8 := const u8; const u8 c;"
        ),
        "{a: [[u8le@8; 2]; 2], b: u8le@8, c: u8le@8}"
    );
}

#[test]
fn named_types_are_used_again() {
    assert_eq!(
        fields(
            "struct pair { u8 x, y; } align(32);
             enum kind : u8 { A, B };
             variant value { u8 A; string B; };
             struct pair p; enum kind k; variant value <k> v; struct { struct pair q; } s;
             variant value <k> w;"
        ),
        "{p: {x: u8le@8, y: u8le@8}@32, k: u8le@8 A=[(0, 0)] B=[(1, 1)], \
         v: <Payload.1>(A[(0, 0)]: u8le@8, B[(1, 1)]: text), \
         s: {q: {x: u8le@8, y: u8le@8}@32}, \
         w: <Payload.1>(A[(0, 0)]: u8le@8, B[(1, 1)]: text)}"
    );
}

#[test]
fn inner_scopes_hide_outer_ones() {
    assert_eq!(
        fields("struct { typealias i8 := u8; u8 x; } a; u8 b;"),
        "{a: {x: i8le@8}, b: u8le@8}"
    );
}

#[test]
fn one_underscore_is_removed() {
    assert_eq!(
        fields("u8 _a; u8 __b; u8 c; u8 _c; u8 _; u8 __;"),
        "{a: u8le@8, _b: u8le@8, c: u8le@8, _c: u8le@8, _: u8le@8, __: u8le@8}"
    );
}

// Enumerations and variants.

#[test]
fn labels_count_on() {
    assert_eq!(
        fields("enum : u8 { A, \"B b\" = 5, C, D = 10 ... 12, E, A = 0x20, } a;"),
        "{a: u8le@8 A=[(0, 0), (32, 32)] B b=[(5, 5)] C=[(6, 6)] D=[(10, 12)] E=[(13, 13)]}"
    );
    assert_eq!(
        fields("typealias i8 := int; enum { N = -2, M, Z, R = -128...-100, } a;"),
        format!(
            "{{a: i8le@8 N=[({0}, {0})] M=[({1}, {1})] Z=[(0, 0)] R=[({2}, {3})]}}",
            -2i64 as u64, -1i64 as u64, -128i64 as u64, -100i64 as u64
        )
    );
}

#[test]
fn labels_beyond_the_integer_are_odd() {
    let text = format!(
        "{TRACE}event {{ name = e; fields := struct {{ enum : u8 {{ A = 300, B = -1 }} a; }}; }};"
    );
    let odd = warnings(&text);
    assert_eq!(odd.len(), 2);
    assert_eq!(
        odd[0],
        "label `A` stands for values that the integer cannot have"
    );
}

#[test]
fn options_are_those_of_the_labels_as_declared() {
    assert_eq!(
        fields(
            "enum : u8 { _int, B = 3 ... 5, C, B = 9 } t;
             variant <t> { u8 _int; string B; u8 unused; } v;"
        ),
        "{t: u8le@8 _int=[(0, 0)] B=[(3, 5), (9, 9)] C=[(6, 6)], \
         v: <Payload.0>(int[(0, 0)]: u8le@8, B[(3, 5), (9, 9)]: text, unused[]: u8le@8)}"
    );
    assert_eq!(
        fields("enum : i8 { A = -1 } t; variant <t> { u8 A; } v;"),
        format!(
            "{{t: i8le@8 A=[({0}, {0})], v: <Payload.0>(A[(-1, -1)]: u8le@8)}}",
            u64::MAX
        )
    );
}

// References.

#[test]
fn lengths_are_looked_for_outwards() {
    assert_eq!(
        fields(
            "u8 n; struct { u8 a[n]; u8 n; u8 b[n]; struct { u8 n[n]; } s; } x; u8 c[x.n];
             u8 d[event.fields.x.n][2];"
        ),
        "{n: u8le@8, x: {a: [u8le@8; Payload.0], n: u8le@8, b: [u8le@8; Payload.1.1], \
         s: {n: [u8le@8; Payload.1.1]}}, c: [u8le@8; Payload.1.1], \
         d: [[u8le@8; 2]; Payload.1.1]}"
    );
}

#[test]
fn a_type_refers_to_the_fields_around_its_use() {
    assert_eq!(
        fields(
            "struct list { u8 items[n]; };
             u8 n; struct list a; struct { string s; u8 n; struct list b; } x;"
        ),
        "{n: u8le@8, a: {items: [u8le@8; Payload.0]}, \
         x: {s: text, n: u8le@8, b: {items: [u8le@8; Payload.2.1]}}}"
    );
}

#[test]
fn arrays_on_the_way_are_their_elements() {
    assert_eq!(
        fields("struct { u8 n; u8 a[n]; u8 b[s.n]; } s[3];"),
        "{s: [{n: u8le@8, a: [u8le@8; Payload.0.*.0], b: [u8le@8; Payload.0.*.0]}; 3]}"
    );
}

#[test]
fn variants_on_the_way_offer_all_their_options() {
    let declared = "enum : u8 { X, Y } t;
                    variant <t> { struct { u8 n; } X; struct { string s; u8 n; } Y; } v; ";
    let any = fields(&format!("{declared} u8 a[v.n];"));
    assert!(
        any.ends_with("a: [u8le@8; Payload.1.0.0|Payload.1.1.1]}"),
        "{any}"
    );
    let one = fields(&format!("{declared} u8 a[v.Y.n];"));
    assert!(one.ends_with("a: [u8le@8; Payload.1.1.1]}"), "{one}");
}

#[test]
fn absolute_names_begin_with_a_scope() {
    let class = trace(
        "trace { major = 1; minor = 8; byte_order = be; packet.header := struct { u8 n; }; };
         typealias integer { size = 8; } := u8;
         stream {
             packet.context := struct { u8 m[trace.packet.header.n]; u8 n; };
             event.header := struct { u8 n[stream.packet.context.n]; u8 id; };
             event.context := struct { u8 n; u8 m[stream.event.header.id]; };
         };
         event {
             name = e;
             context := struct { u8 n[stream.event.context.n]; u8 l; };
             fields := struct { u8 m[event.context.l]; u8 k; u8 i[event.fields.k]; };
         };",
    );
    let stream = &class.streams[0];
    let event = &stream.events[0];
    let shown: Vec<_> = [
        &stream.packet_context,
        &stream.event_header,
        &stream.common_context,
        &event.specific_context,
        &event.payload,
    ]
    .map(|class| show(class.as_ref().unwrap()))
    .to_vec();
    assert_eq!(
        shown,
        [
            "{m: [u8be@8; PacketHeader.0], n: u8be@8}",
            "{n: [u8be@8; PacketContext.1], id: u8be@8 EventClassId}",
            "{n: u8be@8, m: [u8be@8; EventHeader.1]}",
            "{n: [u8be@8; CommonContext.0], l: u8be@8}",
            "{m: [u8be@8; SpecificContext.1], k: u8be@8, i: [u8be@8; Payload.1]}",
        ]
    );
}

#[test]
fn the_environment_may_be_a_length() {
    let class = trace(&format!(
        "{TRACE}env {{ cpus = 4; }}; event {{ name = e; fields := struct {{ u8 a[env.cpus]; }}; }};"
    ));
    assert_eq!(
        show(class.streams[0].events[0].payload.as_ref().unwrap()),
        "{a: [u8le@8; 4]}"
    );
}

// Roles.

#[test]
fn names_report_roles() {
    let class = trace(
        "trace { major = 1; minor = 8; byte_order = le; packet.header := struct {
             u32 magic; u8 uuid[16]; u32 stream_id; u32 stream_instance_id;
         }; };
         typealias integer { size = 8; } := u8;
         typealias integer { size = 32; } := u32;
         stream { id = 0; packet.context := struct {
             u32 packet_size; u32 content_size; u32 timestamp_begin; u32 timestamp_end;
             u32 events_discarded; u32 packet_seq_num; u32 cpu_id; struct { u32 packet_size; } x;
         }; };",
    );
    assert_eq!(
        show(class.packet_header.as_ref().unwrap()),
        "{magic: u32le@8 PacketMagic, uuid: [u8le@8; 16] MetadataUuid, \
         stream_id: u32le@8 StreamClassId, stream_instance_id: u32le@8 StreamId}"
    );
    assert_eq!(
        show(class.streams[0].packet_context.as_ref().unwrap()),
        "{packet_size: u32le@8 PacketTotalLength, content_size: u32le@8 PacketContentLength, \
         timestamp_begin: u32le@8 DefaultClockTimestamp, \
         timestamp_end: u32le@8 PacketEndTimestamp, events_discarded: u32le@8 DiscardedEvents, \
         packet_seq_num: u32le@8 PacketSequenceNumber, cpu_id: u32le@8, \
         x: {packet_size: u32le@8}}"
    );
    // Times without a clock are nanoseconds.
    assert_eq!(class.streams[0].clock, Some(0));
    assert_eq!(class.clocks[0].name.as_deref(), Some("default"));
    assert_eq!(class.clocks[0].frequency, 1_000_000_000);
}

#[test]
fn names_in_structures_report_no_roles() {
    let text = "trace { major = 1; minor = 8; byte_order = le; packet.header := struct {
             struct { u32 magic; u8 uuid[16]; u32 stream_id; u32 stream_instance_id; } x;
         }; };
         typealias integer { size = 8; } := u8;
         typealias integer { size = 32; } := u32;
         stream { packet.context := struct { struct {
             u32 packet_size; u32 content_size; u32 timestamp_end;
             u32 events_discarded; u32 packet_seq_num;
         } x; }; };";
    let class = trace(text);
    let roles = |class: &Option<crate::class::FieldClass>| {
        let text = show(class.as_ref().unwrap());
        text.contains("Id") || text.contains("Packet") || text.contains("Events")
    };
    assert!(!roles(&class.packet_header));
    assert!(!roles(&class.streams[0].packet_context));
}

#[test]
fn signed_integers_are_not_times() {
    let text = "trace { major = 1; minor = 8; byte_order = le; };
         clock { name = c; };
         typealias integer { size = 8; signed = true; map = clock.c.value; } := t;
         typealias integer { size = 8; signed = true; } := i8;
         stream { packet.context := struct { t other; };
             event.header := struct { i8 timestamp; t another; }; };";
    let class = trace(text);
    assert_eq!(class.streams[0].clock, None);
    assert_eq!(
        show(class.streams[0].event_header.as_ref().unwrap()),
        "{timestamp: i8le@8, another: i8le@8}"
    );
    assert_eq!(warnings(text), ["a signed integer is not a time"; 3]);
}

#[test]
fn names_of_other_types_are_ordinary() {
    let text = "trace { major = 1; minor = 8; byte_order = le; packet.header := struct {
             string magic; string uuid[16]; string stream_id;
         }; };
         stream { packet.context := struct { string packet_size; string timestamp_end; };
             event.header := struct { string id; string timestamp; }; };";
    let class = trace(text);
    assert!(!format!("{class:?}").contains("roles: [P"));
    assert_eq!(class.streams[0].clock, None);
    assert_eq!(warnings(text).len(), 6);
}

#[test]
fn extended_headers_have_two_numbers() {
    let class = trace(
        "trace { major = 1; minor = 8; byte_order = le; };
         clock { name = mono; }; clock { name = other; };
         typealias integer { size = 27; map = clock.mono.value; } := ts;
         struct header {
             enum : integer { size = 5; } { compact = 0 ... 30, extended = 31 } id;
             variant <id> {
                 struct { ts timestamp; } compact;
                 struct { integer { size = 32; } id; ts timestamp; } extended;
             } v;
         } align(8);
         stream { event.header := struct header; };",
    );
    assert_eq!(
        show(class.streams[0].event_header.as_ref().unwrap()),
        "{id: u5le@1 compact=[(0, 30)] extended=[(31, 31)] EventClassId, \
         v: <EventHeader.0>(\
         compact[(0, 30)]: {timestamp: u27le@1 DefaultClockTimestamp}, \
         extended[(31, 31)]: {id: u32le@8 EventClassId, timestamp: u27le@1 DefaultClockTimestamp})}@8"
    );
    assert_eq!(class.streams[0].clock, Some(0));
}

#[test]
fn a_time_of_several_clocks_is_odd() {
    let text = "trace { major = 1; minor = 8; byte_order = le; };
         clock { name = a; }; clock { name = b; };
         stream { event.header := struct { integer { size = 32; } timestamp; }; };";
    assert_eq!(warnings(text), ["a time of which clock?"]);
    assert_eq!(trace(text).streams[0].clock, None);
}

// Blocks.

#[test]
fn the_same_clock_may_be_declared_again() {
    let class = trace(
        "trace { major = 1; minor = 8; byte_order = le;
                 packet.header := struct { integer { size = 8; } stream_id; }; };
         clock { name = a; freq = 1000; };
         typealias integer { size = 8; map = clock.a.value; } := t;
         stream { id = 0; event.header := struct { t timestamp; }; };
         clock { name = \"a\"; freq = 1000; };
         stream { id = 1; event.header := struct { t timestamp; }; };",
    );
    assert_eq!(class.clocks.len(), 1);
    assert_eq!(class.streams[1].clock, Some(0));
}

#[test]
fn clocks_say_what_a_tick_is() {
    let class = trace(
        "trace { major = 1; minor = 8; byte_order = le; };
         clock { name = a; uuid = \"2A6422d0-6cee-11e0-8c08-cb07d7b3a564\"; freq = 1000;
                 offset_s = 5; offset = 2500; precision = 3; absolute = TRUE;
                 description = \"A clock\"; };
         clock { name = \"b\"; offset_s = -1; offset = -1; };",
    );
    let [a, b] = &*class.clocks else { panic!() };
    assert_eq!(
        a.uid.as_deref(),
        Some("2a6422d0-6cee-11e0-8c08-cb07d7b3a564")
    );
    assert_eq!((a.offset_seconds, a.offset_cycles), (7, 500));
    assert_eq!((a.frequency, a.precision), (1000, Some(3)));
    assert_eq!(a.description.as_deref(), Some("A clock"));
    assert_eq!(a.origin, Origin::UnixEpoch);
    assert_eq!(b.name.as_deref(), Some("b"));
    assert_eq!((b.offset_seconds, b.offset_cycles), (-2, 999_999_999));
    assert_eq!(b.origin, Origin::Unknown);
}

#[test]
fn lttng_counts_from_the_epoch() {
    let class = trace(
        "trace { major = 1; minor = 8; byte_order = le; uuid = \"2a6422d0-6cee-11e0-8c08-cb07d7b3a564\"; };
         clock { name = monotonic; };
         env { tracer_name = \"lttng-ust\"; };",
    );
    assert_eq!(class.clocks[0].origin, Origin::UnixEpoch);
    assert_eq!(class.namespace.as_deref(), Some("lttng.org,2009"));
    assert_eq!(
        class.uid.as_deref(),
        Some("2a6422d0-6cee-11e0-8c08-cb07d7b3a564")
    );
    assert_eq!(class.uuid.unwrap()[..4], [0x2a, 0x64, 0x22, 0xd0]);
}

#[test]
fn the_environment_has_numbers_and_text() {
    let class = trace(
        "env { a = 1; b = \"x\\ty\"; c = word; a = -2; };
         trace { major = 1; minor = 8; byte_order = le; };
         env { d.e = f.g; };",
    );
    let text = |text: &str| EnvironmentValue::Text(text.to_owned());
    assert_eq!(
        class.environment,
        [
            ("a".to_owned(), EnvironmentValue::Integer(-2)),
            ("b".to_owned(), text("x\ty")),
            ("c".to_owned(), text("word")),
            ("d.e".to_owned(), text("f.g")),
        ]
    );
}

#[test]
fn blocks_come_in_any_order() {
    let class = trace(
        "event { name = \"second\"; id = 7; stream_id = 3; loglevel = 13;
                 model.emf.uri = \"http://x\"; fields := struct { u8 a; }; };
         event { name = first.one; id = 1; stream_id = 3; model.emf.uri = \"\"; };;
         callsite { name = \"second\"; func = f; file = \"f.c\"; line = 3; };
         stream { id = 3; event.header = struct { u8 id; }; };
         trace { major = 1; minor = 8; byte_order = le;;
                 packet.header := struct { u8 stream_id; }; };
         typealias integer { size = 8; } := u8;",
    );
    let stream = &class.streams[0];
    assert_eq!(stream.id, 3);
    let [second, first] = &*stream.events else {
        panic!()
    };
    assert_eq!((second.id, second.log_level), (7, Some(13)));
    assert_eq!(second.emf_uri.as_deref(), Some("http://x"));
    assert_eq!(second.name.as_deref(), Some("second"));
    assert!(second.payload.is_some() && second.specific_context.is_none());
    assert_eq!((first.id, first.name.as_deref()), (1, Some("first.one")));
    assert_eq!((first.emf_uri.as_deref(), first.log_level), (None, None));
}

#[test]
fn an_event_makes_its_own_stream() {
    let class = trace(&format!("{TRACE}event {{ name = e; }};"));
    assert_eq!((class.streams.len(), class.streams[0].id), (1, 0));
    assert_eq!(class.streams[0].events[0].id, 0);
}

#[test]
fn unknown_attributes_are_odd() {
    let text = format!(
        "{TRACE}event {{ name = e; what = 1; fields := struct {{ integer {{ size = 8; x = y; }} a; }}; }};"
    );
    assert_eq!(
        warnings(&text),
        [
            "unknown attribute `what` of an event",
            "unknown attribute `x` of an integer"
        ]
    );
}
