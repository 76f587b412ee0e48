//! Values of all kinds, in all layouts.

use kymo_machine::ByteOrder;
use kymo_model::{Cursor, Event, FieldId};
use proptest::prelude::*;

use super::super::{EventId, StreamOptions, StreamWriter, Token, Values, WriteError};
use super::{encoder, parsed, read, tsdl};
use crate::any::structure_of;
use crate::class::{
    BitLayout, Dialect, Encoding, FieldClass, IntegerStyle, Length, Member, Role, TraceClass,
};
use crate::decode::Decoder;
use crate::decode::oracle::classes::{payload, trace};
use crate::metadata::fit::fit;

const FIRST: EventId = EventId {
    stream_class: 0,
    event: 0,
};

/// A packet context that contains the sizes.
fn sizes() -> FieldClass {
    let size = |role| FieldClass::Integer {
        layout: BitLayout {
            bits: 32,
            align: 1,
            order: ByteOrder::Big,
            reversed: false,
            unit: None,
        },
        style: IntegerStyle {
            roles: vec![role],
            ..IntegerStyle::default()
        },
    };
    structure_of(
        vec![
            size(Role::PacketTotalLength),
            size(Role::PacketContentLength),
        ],
        1,
    )
}

fn trace_of(payload: FieldClass) -> TraceClass {
    let mut class = trace(payload);
    class.streams[0].packet_context = Some(sizes());
    class
}

/// All NaNs are one: widening may change their bits.
fn alike(tokens: &[Token]) -> Vec<Token> {
    let alike = |token: &Token| match token {
        Token::Float(value) if value.is_nan() => Token::Text(b"NaN".to_vec()),
        Token::Float(value) => Token::Bits(value.to_bits()),
        token => token.clone(),
    };
    tokens.iter().map(alike).collect()
}

/// The same fields in another layout.
#[derive(Clone, Copy, Debug)]
enum Change {
    None,
    Order(ByteOrder),
    Packed(ByteOrder),
    Reversed,
}

fn change(class: &mut FieldClass, how: Change) {
    let layout = |layout: &mut BitLayout| match how {
        Change::None => {}
        Change::Order(order) => layout.order = order,
        Change::Packed(order) => {
            layout.order = order;
            layout.align = 1;
            layout.unit = None;
        }
        Change::Reversed => layout.reversed = !layout.reversed,
    };
    let length = |length: &mut Length| {
        if let Length::Inline(class) = length {
            change(class, how);
        }
    };
    let least = |align: &mut u32| {
        if let Change::Packed(_) = how {
            *align = 1;
        }
    };
    match class {
        FieldClass::BitArray(fields) | FieldClass::Bool(fields) | FieldClass::Float(fields) => {
            layout(fields)
        }
        FieldClass::BitMap { layout: fields, .. } | FieldClass::Integer { layout: fields, .. } => {
            layout(fields);
        }
        FieldClass::Struct { members, min_align } => {
            least(min_align);
            members
                .iter_mut()
                .for_each(|member| change(&mut member.class, how));
        }
        FieldClass::Array {
            element,
            length: lengths,
            min_align,
            ..
        } => {
            least(min_align);
            length(lengths);
            change(element, how);
        }
        FieldClass::Optional { content, .. } => change(content, how),
        FieldClass::Variant { options, .. } => options
            .iter_mut()
            .for_each(|option| change(&mut option.class, how)),
        _ => {}
    }
}

fn any_change() -> impl Strategy<Value = Change> {
    let order = || prop::sample::select(vec![ByteOrder::Little, ByteOrder::Big]);
    prop_oneof![
        Just(Change::None),
        order().prop_map(Change::Order),
        order().prop_map(Change::Packed),
        Just(Change::Reversed),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn values_are_read_as_they_were_written(
        payload in payload(),
        data in prop::collection::vec(prop_oneof![4 => 0u8..4, 1 => any::<u8>()], 0..200),
        how in any_change(),
    ) {
        // The values of as many events as random bytes hold.
        let decoder = Decoder::new(&trace(payload.clone())).unwrap();
        let head = decoder.packet_head(&data).unwrap();
        let mut cursor = decoder.cursor(&data, &head, data.len() as u64 * 8, 0);
        let mut events = Vec::new();
        while let Ok(Some(event)) = cursor.next_event() {
            let mut values = Values::default();
            if event.visit(&mut values).is_err() {
                break;
            }
            events.push(values);
        }

        let mut target = payload;
        change(&mut target, how);
        let encoder = encoder(&trace_of(target));
        let options = StreamOptions::default();
        let mut stream = StreamWriter::new(&encoder, 0, options, Vec::new()).unwrap();
        let mut written = Vec::new();
        for values in &events {
            let done = stream.visited(FIRST, None, |encode| {
                values.report(encode);
                Ok::<_, ()>(())
            });
            match done {
                Ok(done) => {
                    done.unwrap();
                    let tokens: Vec<_> =
                        values.tokens().iter().map(|(_, token)| token.clone()).collect();
                    written.push(alike(&tokens));
                }
                // Neither leaves a trace.
                Err(WriteError::Field { problem, .. }) => {
                    prop_assert!(problem.contains("other byte order"), "{}", problem);
                }
                Err(WriteError::Misuse(problem)) => {
                    prop_assert!(problem.contains("takes no space"), "{}", problem);
                }
                Err(error) => return Err(TestCaseError::fail(error.to_string())),
            }
        }
        let bytes = stream.finish().unwrap();
        let found = read(encoder.decoder(), &bytes).unwrap();
        let found: Vec<_> = found.iter().map(|(.., tokens)| alike(tokens)).collect();
        prop_assert_eq!(found, written);
    }
}

/// Writes one event, and gives what is read back.
fn one(class: &TraceClass, values: &[Token]) -> Result<Vec<Token>, WriteError> {
    let encoder = encoder(class);
    let mut stream = StreamWriter::new(&encoder, 0, StreamOptions::default(), Vec::new())?;
    let done = stream.visited(FIRST, None, |encode| {
        for token in values {
            token.report(FieldId(0), encode);
        }
        Ok::<_, ()>(())
    })?;
    assert_eq!(done, Ok(()));
    let bytes = stream.finish()?;
    Ok(read(encoder.decoder(), &bytes).unwrap().remove(0).2)
}

fn in_struct(values: &[Token]) -> Vec<Token> {
    let mut tokens = vec![Token::BeginStruct];
    tokens.extend_from_slice(values);
    tokens.push(Token::EndStruct);
    tokens
}

#[test]
fn what_is_selected_is_in_a_sequence_in_rfc_v1_1() {
    let integer = |bits: u32, align: u32| {
        format!(
            "{{\"type\": \"fixed-length-unsigned-integer\", \"length\": {bits}, \
             \"alignment\": {align}, \"byte-order\": \"big-endian\"}}"
        )
    };
    let optional = |class: &str| {
        format!(
            "{{\"type\": \"optional\", \"selector-field-location\": {{\"path\": [\"s\"]}}, \
             \"selector-field-ranges\": [[1, 9]], \"field-class\": {class}}}"
        )
    };
    let member =
        |name: &str, class: &str| format!("{{\"name\": \"{name}\", \"field-class\": {class}}}");
    let structure = |members: &[String]| {
        let members = members.join(",");
        format!("{{\"type\": \"structure\", \"member-classes\": [{members}]}}")
    };
    let option = |at: u32, class: &str| {
        format!("{{\"selector-field-ranges\": [[{at}, {at}]], \"field-class\": {class}}}")
    };
    use Token::{
        BeginArray, BeginOptional, BeginStruct, BeginVariant, EndArray, EndOptional, EndStruct,
        EndVariant, Uint,
    };
    for align in [8, 1] {
        let number = |bits| integer(bits, align);
        let options = [
            option(0, &number(16)),
            option(1, &optional(&number(3))),
            option(2, &structure(&[])),
        ];
        let variant = format!(
            "{{\"type\": \"variant\", \"selector-field-location\": {{\"path\": [\"t\"]}}, \
             \"options\": [{}]}}",
            options.join(",")
        );
        let payload = structure(&[
            member("s", &number(5)),
            member("o", &optional(&structure(&[member("n", &number(7))]))),
            member("t", &number(2)),
            member("v", &variant),
        ]);
        let class = parsed(&format!(
            "\u{1e}{{\"type\": \"preamble\", \"version\": 2}}\n\
             \u{1e}{{\"type\": \"data-stream-class\"}}\n\
             \u{1e}{{\"type\": \"event-record-class\", \"payload-field-class\": {payload}}}\n"
        ));
        let class = fit(&class, Dialect::Rfc11).unwrap().model;
        let reported = |present: bool, option: u32| {
            let selector = u64::from(present);
            let mut reported = vec![Uint(selector), BeginOptional(present, selector)];
            if present {
                reported.extend([BeginStruct, Uint(7), EndStruct]);
            }
            reported.extend([EndOptional, Uint(option.into())]);
            reported.push(BeginVariant(option, option.into()));
            match option {
                0 => reported.push(Uint(300)),
                1 => {
                    reported.push(BeginOptional(present, selector));
                    reported.extend(present.then_some(Uint(5)));
                    reported.push(EndOptional);
                }
                _ => reported.extend([BeginStruct, EndStruct]),
            }
            reported.push(EndVariant);
            in_struct(&reported)
        };
        let sequence = |element: Option<&[Token]>| {
            let mut sequence = vec![BeginArray(element.is_some().into())];
            sequence.extend_from_slice(element.unwrap_or_default());
            sequence.push(EndArray);
            sequence
        };
        let found = |present: bool, option: u32| {
            let n = in_struct(&[Uint(7)]);
            let inner = sequence(present.then_some(&[Uint(5)]));
            let mut found = vec![Uint(present.into())];
            found.extend(sequence(present.then_some(&n)));
            found.push(Uint(option.into()));
            let options: [&[Token]; 3] = [&[Uint(300)], &inner, &[BeginStruct, EndStruct]];
            let options = (0..).zip(options);
            let options = options.map(|(at, tokens)| sequence((at == option).then_some(tokens)));
            found.extend(in_struct(&options.collect::<Vec<_>>().concat()));
            in_struct(&found)
        };
        let lenient = StreamOptions {
            lenient: true,
            ..StreamOptions::default()
        };
        let encoder = encoder(&class);
        let mut stream = StreamWriter::new(&encoder, 0, lenient, Vec::new()).unwrap();
        let mut expected = Vec::new();
        for present in [false, true] {
            for option in 0..3 {
                let done = stream.visited(FIRST, Some(0), |encode| {
                    let tokens = reported(present, option);
                    tokens
                        .iter()
                        .for_each(|token| token.report(FieldId(0), encode));
                    Ok::<_, ()>(())
                });
                assert_eq!(done.unwrap(), Ok(()));
                expected.push(found(present, option));
            }
        }
        let bytes = stream.finish().unwrap();
        let read = read(encoder.decoder(), &bytes).unwrap();
        let read: Vec<_> = read.into_iter().map(|(.., tokens)| tokens).collect();
        assert_eq!(read, expected);
    }
}

#[test]
fn texts_of_all_encodings_come_back() {
    use Encoding::{Utf8, Utf16Be, Utf16Le, Utf32Be, Utf32Le};
    let text = "aß\u{20ac}\u{1f600}";
    for encoding in [Utf8, Utf16Le, Utf16Be, Utf32Le, Utf32Be] {
        for class in [
            FieldClass::Text { encoding, align: 8 },
            FieldClass::SizedText {
                length: Length::Static(20),
                encoding,
                align: 8,
            },
        ] {
            let class = trace_of(structure_of(vec![class], 1));
            let values = in_struct(&[Token::Text(text.as_bytes().to_vec())]);
            assert_eq!(one(&class, &values).unwrap(), values, "{encoding:?}");
            let wrong = in_struct(&[Token::Text(vec![0xff])]);
            assert_eq!(one(&class, &wrong).is_ok(), encoding == Utf8);
            let zero = one(&class, &in_struct(&[Token::Text(b"a\0b".to_vec())]));
            assert!(zero.unwrap_err().to_string().contains("holds a zero"));
        }
    }
}

#[test]
fn floats_are_rounded_to_their_size() {
    let float = |bits| {
        trace_of(structure_of(
            vec![FieldClass::Float(BitLayout {
                bits,
                align: 1,
                order: ByteOrder::Big,
                reversed: true,
                unit: None,
            })],
            1,
        ))
    };
    for (bits, value, rounded) in [
        (16, 1.0, 1.0),
        (16, -0.1, -0.099_975_585_937_5),
        (16, 65504.0, 65504.0),
        (16, 65519.9, 65504.0),
        (16, 65520.0, f64::INFINITY),
        (16, 6e-8, 2f64.powi(-24)),
        (16, 2f64.powi(-25), 0.0),
        (16, -1023.5 * 2f64.powi(-24), -1024.0 * 2f64.powi(-24)),
        (16, 2049.0, 2048.0),
        (16, 2051.0, 2052.0),
        (32, 0.1, f64::from(0.1f32)),
        (64, 0.1, 0.1),
    ] {
        let read = one(&float(bits), &in_struct(&[Token::Float(value)])).unwrap();
        assert_eq!(read, in_struct(&[Token::Float(rounded)]), "{value}");
    }
    let wide = in_struct(&[Token::Float128(0x1234 << 100 | 77)]);
    assert_eq!(one(&float(128), &wide).unwrap(), wide);
}

#[test]
fn all_numbers_of_16_bits_come_back() {
    let class = trace_of(structure_of(
        vec![FieldClass::Array {
            element: Box::new(FieldClass::Float(BitLayout {
                bits: 16,
                align: 8,
                order: ByteOrder::Little,
                reversed: false,
                unit: None,
            })),
            length: Length::Static(1 << 16),
            min_align: 1,
            roles: Vec::new(),
        }],
        1,
    ));
    let bytes: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
    let decoder = Decoder::new(&{
        let mut class = class.clone();
        class.streams[0].packet_context = None;
        class
    })
    .unwrap();
    let values = read(&decoder, &bytes).unwrap().remove(0).2;
    assert_eq!(alike(&one(&class, &values).unwrap()), alike(&values));
}

#[test]
fn bit_fields_lie_where_the_specification_has_them() {
    for (order, expected) in [
        ("be", [0xEA, 0x1B, 0x2C, 0x3D, 0x4F]),
        ("le", [0x4E, 0x3D, 0x2C, 0x1B, 0xFA]),
    ] {
        let class = parsed(&format!(
            "/* CTF 1.8 */ trace {{ major = 1; minor = 8; byte_order = {order}; }}; stream {{ }};
             event {{ name = e; fields := struct {{ integer {{ size = 4; align = 1; }} a;
             integer {{ size = 32; align = 1; }} b; integer {{ size = 4; align = 1; }} c; }}; }};"
        ));
        let encoder = encoder(&class);
        let mut stream =
            StreamWriter::new(&encoder, 0, StreamOptions::default(), Vec::new()).unwrap();
        stream
            .event(FIRST, None, |fields| {
                fields.uint(0xE).uint(0xA1B2_C3D4).uint(0xF);
            })
            .unwrap();
        assert_eq!(stream.finish().unwrap(), expected);
    }
}

#[test]
fn lengths_and_selectors_are_filled_in() {
    let mut class = tsdl(
        "trace { major = 1; minor = 8; byte_order = be; };
         stream { packet.context := struct { u32 packet_size; u32 content_size; }; };
         event { name = e; fields := struct { u8 n; enum : u8 { a = 3, b = 5 } tag;
            u16 list[n]; string list2[n]; variant <tag> { u8 a; string b; } v; }; };",
    );
    // A length in LEB128 takes as many bytes as it needs.
    if let Some(FieldClass::Struct { members, .. }) = &mut class.streams[0].events[0].payload {
        let Member { class, .. } = &mut members[0];
        *class = FieldClass::VarInteger(IntegerStyle::default());
    }
    let encoder = encoder(&class);
    let mut stream = StreamWriter::new(&encoder, 0, StreamOptions::default(), Vec::new()).unwrap();
    for n in [0, 1, 200] {
        stream
            .event(FIRST, None, |fields| {
                fields.fill().fill();
                fields.array(n, |fields, at| fields.uint(at));
                fields.array(n, |fields, at| fields.text(&"x".repeat(at as usize % 7)));
                fields.option(1, |fields| fields.text("b"));
            })
            .unwrap();
    }
    let bytes = stream.finish().unwrap();
    let events = read(encoder.decoder(), &bytes).unwrap();
    let first: Vec<_> = events
        .iter()
        .map(|(.., tokens)| tokens[1..3].to_vec())
        .collect();
    let expected = |n| vec![Token::Uint(n), Token::Uint(5)];
    assert_eq!(first, [expected(0), expected(1), expected(200)]);
}
