//! What is deep, large or no metadata at all.

use proptest::prelude::*;

use crate::deep;

use super::super::json::{self, Kind};
use super::super::parse;
use super::errors::brief;
use super::{BOOL, PREAMBLE, STREAM, U8, event, sequence, structure, variant};

#[test]
fn values_do_not_nest_without_end() {
    for deep in [
        "[".repeat(1_000_000),
        r#"{"a":"#.repeat(1_000_000),
        format!("{PREAMBLE}\u{1e}{}", "[".repeat(1_000_000)),
    ] {
        let message = brief(&format!("\u{1e}{deep}"));
        assert!(
            message
                .starts_with("values lie too deep within each other: expected at most 8192 levels"),
            "{message}"
        );
    }
}

#[test]
fn field_classes_do_not_nest_without_end() {
    let nested = |levels: usize| {
        let class = format!(
            "{}{U8}{}",
            r#"{"type": "static-length-array", "length": 1, "element-field-class": "#
                .repeat(levels),
            "}".repeat(levels)
        );
        event(&[], &structure(&[("x", &class)]))
    };
    assert!(deep::retry(|| parse(&nested(2048))).is_ok());
    let message = brief(&nested(2049));
    assert!(
        message.starts_with(
            "field classes lie too deep within each other: expected at most 2048 levels"
        ),
        "{message}"
    );
}

/// Aliases of arrays in arrays, each around the one before.
fn aliases(count: usize, class: impl Fn(&str) -> String) -> Vec<String> {
    let first = format!(r#"{{"type": "field-class-alias", "name": "a0", "field-class": {U8}}}"#);
    let mut aliases = vec![first];
    for level in 1..=count {
        let class = class(&format!("\"a{}\"", level - 1));
        aliases.push(format!(
            r#"{{"type": "field-class-alias", "name": "a{level}", "field-class": {class}}}"#
        ));
    }
    aliases
}

#[test]
fn aliases_do_not_nest_without_end() {
    let aliases = aliases(2050, |inner| {
        format!(r#"{{"type": "static-length-array", "length": 1, "element-field-class": {inner}}}"#)
    });
    let fragments: Vec<_> = aliases.iter().map(|alias| &**alias).collect();
    let message = brief(&event(&fragments, &structure(&[])));
    assert!(
        message.starts_with("field classes lie too deep within each other"),
        "{message}"
    );
}

#[test]
fn aliases_do_not_multiply_beyond_measure() {
    let aliases = aliases(40, |inner| structure(&[("a", inner), ("b", inner)]));
    let fragments: Vec<_> = aliases.iter().map(|alias| &**alias).collect();
    // Named, they cost nothing; used, they are too many.
    assert!(parse(&event(&fragments, &structure(&[]))).is_ok());
    let message = brief(&event(&fragments, &structure(&[("x", r#""a40""#)])));
    assert!(
        message.starts_with("more field classes than a trace may have: this one is too much"),
        "{message}"
    );
}

#[test]
fn ways_through_variants_do_not_multiply_beyond_measure() {
    let aliases = aliases(40, |inner| {
        let options = [("[[0, 0]]", inner), ("[[1, 1]]", inner)];
        variant(
            r#"{"origin": "event-record-payload", "path": ["n"]}"#,
            &options,
        )
    });
    let fragments: Vec<_> = aliases.iter().map(|alias| &**alias).collect();
    let text = r#"{"type": "dynamic-length-string", "length-field-location": {"path": ["v"]}}"#;
    let members = [("n", U8), ("v", r#""a40""#), ("t", text)];
    let message = brief(&event(&fragments, &structure(&members)));
    assert!(
        message.starts_with("more field classes than a trace may have"),
        "{message}"
    );
}

#[test]
fn values_of_a_fragment_are_counted() {
    let many = format!("\u{1e}[{}0]", "0,".repeat(1 << 21));
    let message = brief(&many);
    assert!(
        message.starts_with("more values than a fragment may have"),
        "{message}"
    );
}

/// Pieces of which texts are made that come close to metadata.
fn pieces() -> impl Strategy<Value = String> {
    let fragment = r#"{"type": "event-record-class", "payload-field-class": "#;
    let owned = |text: &str| text.to_owned();
    let piece = prop::sample::select(vec![
        owned("\u{1e}"),
        sequence(&[PREAMBLE]),
        sequence(&[STREAM]),
        sequence(&[r#"{"type": "clock-class", "id": "c", "frequency": 5}"#]),
        format!(
            "\u{1e}{{\"type\": \"field-class-alias\", \"name\": \"u8\", \"field-class\": {U8}}}"
        ),
        format!("\u{1e}{fragment}"),
        owned(fragment),
        owned(r#"{"type": "structure", "member-classes": ["#),
        owned(r#"{"name": "a", "field-class": "#),
        owned(r#"{"name": "b", "field-class": "#),
        owned(r#"{"type": "variant", "options": ["#),
        owned(r#""selector-field-ranges": [[0, 5]]"#),
        owned(r#""selector-field-location": {"path": ["a"]}"#),
        owned(r#""length-field-location": {"path": [null, "a"]}"#),
        owned(r#"{"type": "dynamic-length-string""#),
        owned(r#"{"type": "optional", "field-class": "#),
        owned(U8),
        owned(BOOL),
        owned("\"u8\""),
        owned("{"),
        owned("}"),
        owned("["),
        owned("]"),
        owned(","),
        owned(":"),
        owned("}}"),
        owned("]}"),
        owned("\"type\""),
        owned("\"roles\": [\"packet-magic-number\"]"),
        owned("\"\\u"),
        owned("\"é"),
        owned("-1"),
        owned("18446744073709551616"),
        owned("null"),
        owned("\0"),
    ]);
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn no_text_upsets_the_parser(text in pieces()) {
        if let Err(error) = parse(&text) {
            prop_assert!(!error.render("metadata", &text, true).is_empty());
        }
    }

    #[test]
    fn json_is_what_others_take_for_it(pieces in prop::collection::vec(prop::sample::select(vec![
        "{", "}", "[", "]", ",", ":", "\"a\"", "\"\\u00e9\\n\"", "\"\\ud83d\\ude00\"", "\"\\ud83d\"",
        "\"\u{7f}é\"", "\"", "\\", "0", "-0", "12", "-7", "1.5", "1e5", "2E-3", "01", "1.", "+1", ".5",
        "null", "true", "false", "nul", " ", "\n", "\t",
    ]), 1..12)) {
        let text = pieces.concat();
        let theirs = serde_json::from_str::<serde_json::Value>(&text);
        // What a double has no room for is a number for JSON all the same.
        let too_large = |error: &serde_json::Error| error.to_string().contains("out of range");
        prop_assume!(!theirs.as_ref().is_err_and(too_large));
        let theirs = theirs.ok();
        let ours = json::parse(&text, 0..text.len());
        let ours = ours.ok().filter(|(_, end)| *end == text.len());
        match (theirs, ours) {
            (Some(theirs), Some((ours, _))) => prop_assert!(same(&theirs, &ours), "{}", text),
            (None, None) => {}
            // Members of one name, which are an error here, the last one there.
            (Some(_), None) => prop_assert!(text.contains("\"a\""), "{}", text),
            (None, Some(_)) => prop_assert!(false, "{}", text),
        }
    }
}

fn same(theirs: &serde_json::Value, ours: &json::Value<'_>) -> bool {
    use serde_json::Value;
    match (theirs, &ours.kind) {
        (Value::Null, Kind::Null) => ours.text == "null",
        (Value::Bool(boolean), Kind::Bool) => ours.text == boolean.to_string(),
        (Value::Number(number), Kind::Integer(integer)) => {
            // Minus zero is a floating point number there.
            number.as_i128() == Some(*integer) || number.as_f64() == Some(0.0) && *integer == 0
        }
        (Value::Number(number), Kind::Number) => number.is_f64(),
        (Value::String(theirs), Kind::Text(ours)) => theirs == ours,
        (Value::Array(theirs), Kind::Array(ours)) => {
            theirs.len() == ours.len() && theirs.iter().zip(ours).all(|(a, b)| same(a, b))
        }
        (Value::Object(theirs), Kind::Object(ours)) => {
            theirs.len() == ours.len()
                && ours.iter().all(|member| {
                    theirs
                        .get(&*member.name)
                        .is_some_and(|value| same(value, &member.value))
                })
        }
        _ => false,
    }
}
