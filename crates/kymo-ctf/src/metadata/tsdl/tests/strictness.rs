//! What the grammar refuses, and where; what is read nevertheless, with a warning.

use super::super::parse;
use super::{TRACE, fields, warnings};

/// The error of a text, and the line and column of what it is about.
fn error(text: &str) -> (String, usize, usize) {
    let Err(error) = parse(text) else {
        panic!("accepted: {text}");
    };
    let before = &text[..error.spans[0].range.start];
    let line = before.matches('\n').count() + 1;
    let column = before.len() - before.rfind('\n').map_or(0, |at| at + 1) + 1;
    (error.message, line, column)
}

#[test]
fn words_of_the_grammar_are_no_names() {
    for word in [
        "align",
        "callsite",
        "clock",
        "enum",
        "env",
        "event",
        "floating_point",
        "integer",
        "stream",
        "string",
        "struct",
        "trace",
        "typealias",
        "typedef",
        "variant",
    ] {
        for (declaration, column) in [
            (format!("struct s {{ u8 {word}; }};"), 15),
            (format!("struct s {{ u8 a, {word}; }};"), 18),
            (format!("struct s {{ string {word}; }};"), 19),
            (format!("typedef u8 {word};"), 12),
            (format!("typealias u8 := {word};"), 17),
            (format!("struct {word} {{ u8 a; }};"), 8),
            (format!("enum {word} : u8 {{ A }};"), 6),
        ] {
            let (message, line, at) = error(&format!("{TRACE}{declaration}"));
            assert_eq!(message, format!("`{word}` is a keyword"), "{declaration}");
            assert_eq!((line, at), (4, column), "{declaration}");
        }
        // With an underscore, which readers remove, it is one.
        assert_eq!(
            fields(&format!("u8 _{word};")),
            format!("{{{word}: u8le@8}}")
        );
    }
}

#[test]
fn blocks_and_declarations_end_with_a_semicolon() {
    const LEAST: &str = "trace { major = 1; minor = 8; byte_order = le; }";
    for (text, found, line, column) in [
        (format!("{LEAST}\n"), "the end of the metadata", 2, 1),
        (format!("{LEAST}\nstream {{ }};"), "`stream`", 2, 1),
        (
            format!("{LEAST};\nenv {{ }}\nstream {{ }};"),
            "`stream`",
            3,
            1,
        ),
        (
            format!("{LEAST};\nstream {{ }}"),
            "the end of the metadata",
            2,
            11,
        ),
    ] {
        let (message, at_line, at_column) = error(&text);
        assert_eq!(message, format!("expected `;`, found {found}"));
        assert_eq!((at_line, at_column), (line, column), "{text}");
    }
}

#[test]
fn braces_hold_something() {
    for (declaration, message, line, column) in [
        ("enum e : u8 {\n };", "expected a label, found `}`", 5, 2),
        ("enum e : u8 { , };", "expected a label, found `,`", 4, 15),
        ("variant v {\n\n };", "variant without options", 6, 2),
        (
            "variant v { typedef u8 t; };",
            "variant without options",
            4,
            27,
        ),
        ("event { };", "an empty `event` block", 4, 1),
    ] {
        let text = format!("{TRACE}{declaration}");
        assert_eq!(error(&text), (message.to_owned(), line, column));
    }
    assert_eq!(fields("struct { } s;"), "{s: {}}");
}

#[test]
fn attributes_are_right_where_nothing_uses_them() {
    for (declaration, message, column) in [
        (
            "typealias integer { size = 8; signed = 2; } := t;",
            "expected `true`, `false`, 1 or 0, found `2`",
            40,
        ),
        (
            "clock { name = c; absolute = 23; };",
            "expected `true`, `false`, 1 or 0, found `23`",
            30,
        ),
        (
            "typealias integer { size = 8; map = foo; } := t;",
            "mapped to something that is not the value of a clock",
            37,
        ),
        (
            "typealias integer { size = 8; map = 3; } := t;",
            "mapped to something that is not the value of a clock",
            37,
        ),
        (
            "typealias integer { size = 8; map = clock.c; } := t;",
            "mapped to something that is not the value of a clock",
            37,
        ),
        (
            "typealias integer { size = 8; map = clock.c.value; } := t;",
            "unknown clock `c`",
            37,
        ),
    ] {
        let text = format!("{TRACE}{declaration}");
        assert_eq!(error(&text), (message.to_owned(), 4, column));
    }
}

#[test]
fn what_others_wrote_is_read_with_a_warning() {
    for (text, warning) in [
        (";stream { };", "`;` ends nothing"),
        ("stream { ; };", "`;` ends nothing"),
        ("struct s { u8 a;; };", "`;` ends nothing"),
        ("typealias integer { size = 8;; } := t;", "`;` ends nothing"),
        ("struct s { u8 int; };", "`int` is a keyword"),
        ("typedef u8 a, char;", "`char` is a keyword"),
        ("enum e : u8 { event };", "label `event` is a keyword"),
        ("enum e : u8 { int };", "label `int` is a keyword"),
        ("struct s { u8 int; u8 char; };", "`int` is a keyword"),
        ("event { id = 3; };", "an event without a name"),
    ] {
        assert_eq!(warnings(&format!("{TRACE}{text}")), [warning], "{text}");
    }
    for text in [
        "enum e : u8 { \"event\" };",
        "typealias u8 := unsigned long int;",
    ] {
        assert!(warnings(&format!("{TRACE}{text}")).is_empty());
    }
}
