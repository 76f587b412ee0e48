//! Whole filters over whole recordings.

use kymo_model::{Cursor, Kind, Pick, Recording, Schema, Scope, Value};
use proptest::prelude::*;

use super::*;
use crate::testing::{Fake, Record, Val, bit_map, enumeration, sint, uint};

/// Two classes: `net:recv` with fields of every kind, `sched` with few.
fn recording(records: Vec<Record>) -> Fake {
    let mut fake = Fake {
        packet: Some(Val::Struct(vec![Val::Uint(2)])),
        ..Fake::default()
    };
    let class = fake.class(
        "net:recv",
        vec![
            ("len", uint()),
            ("delta", sint()),
            ("load", Kind::Float { bits: 64 }),
            ("ok", Kind::Bool { bits: 8 }),
            ("name", Kind::Text),
            ("state", enumeration()),
            ("flags", bit_map()),
            ("list", Kind::Array { length: None }),
            ("pair", Kind::Struct),
            ("maybe", Kind::Optional),
            ("choice", Kind::Variant),
        ],
    );
    class.log_level = Some(6);
    let schema = &mut class.schema;
    let field = |schema: &Schema, name: &str| {
        let root = schema.root(Scope::Payload).unwrap();
        schema.child(root, name).unwrap()
    };
    let list = field(schema, "list");
    schema.push_child(list, None, uint());
    let pair = field(schema, "pair");
    schema.push_child(pair, Some("a".into()), uint());
    schema.push_child(pair, Some("in".into()), sint());
    let maybe = field(schema, "maybe");
    schema.push_child(maybe, None, sint());
    let choice = field(schema, "choice");
    schema.push_child(choice, Some("number".into()), sint());
    schema.push_child(choice, Some("text".into()), Kind::Text);
    let common = schema.push_root(Scope::CommonContext, Kind::Struct);
    // Never recorded, and shadowed by the payload.
    schema.push_child(common, Some("len".into()), Kind::Text);
    fake.class("sched", vec![("len", Kind::Text), ("prio", sint())]);
    fake.stream("stream-0", vec![records]);
    fake
}

/// One event of each class.
fn sample() -> Vec<Record> {
    let receive = Val::Struct(vec![
        Val::Uint(1500),
        Val::Sint(-3),
        Val::Float(2.5),
        Val::Bool(true),
        Val::Text(b"eth0".to_vec()),
        Val::Sint(2),
        Val::Bits(0x102),
        Val::Array(vec![Val::Uint(7), Val::Uint(8)]),
        Val::Struct(vec![Val::Uint(1), Val::Sint(2)]),
        Val::Optional(None),
        Val::Variant(1, Box::new(Val::Text(b"x".to_vec()))),
    ]);
    let switch = Val::Struct(vec![Val::Text(b"12".to_vec()), Val::Sint(20)]);
    vec![(0, Some(1_000), receive), (1, None, switch)]
}

fn query(events: &[&str], condition: &str) -> Query {
    Query {
        events: events.iter().map(|glob| Glob::new(glob)).collect(),
        condition: Some(condition.to_string()),
    }
}

/// Which events of the first chunk are wanted.
fn wanted(fake: &Fake, filter: &Filter) -> Vec<bool> {
    let mut worker = filter.worker();
    let chunk = fake.chunks[0][0];
    worker.begin_chunk(0, fake, &chunk).unwrap();
    let mut cursor = fake.cursor(&chunk);
    let mut answers = Vec::new();
    while let Some(event) = cursor.next_event().unwrap() {
        answers.push(worker.wants(&event).unwrap());
    }
    answers
}

/// Whether a condition holds of the samples of `net:recv` and `sched`.
fn holds(condition: &str) -> (bool, bool) {
    let fake = recording(sample());
    let filter = Filter::new(&query(&[], condition), &[], std::slice::from_ref(&fake));
    let filter = filter.unwrap_or_else(|error| panic!("{}", error.render(condition, false)));
    let answers = wanted(&fake, &filter);
    (answers[0], answers[1])
}

#[test]
fn every_test_on_every_kind() {
    for (condition, first, second) in [
        ("true", true, true),
        ("false or not true", false, false),
        ("len == 1500", true, false),
        ("1500 = len", true, false),
        ("len != 1500", false, false),
        ("not len == 1500", false, true),
        ("len == \"12\"", false, true),
        ("len != \"12\"", false, false),
        ("len < 1500.5 && len > 1499.5", true, false),
        ("delta < 0", true, false),
        ("delta >= -3 and delta <= -0x3", true, false),
        ("load == 2.5", true, false),
        ("load in [1..2, 2.25..3]", true, false),
        ("load > len", false, false),
        ("len > load", true, false),
        ("ok", true, false),
        ("ok == true and ok != false", true, false),
        ("ok in [false]", false, false),
        ("prio", false, true),
        ("name == 'eth0'", true, false),
        ("name < \"f\"", true, false),
        ("name in [\"a\"..\"f\"]", true, false),
        ("name ~ \"eth?\"", true, false),
        ("name !~ \"eth?\"", false, true),
        ("name contains \"th\"", true, false),
        ("name not contains \"th\"", false, true),
        ("state == \"FEW\"", true, false),
        ("\"FEW\" == state", true, false),
        ("state != \"FEW\"", false, false),
        ("state != \"ZERO\"", true, false),
        ("state == 2", true, false),
        ("state in [\"MINUS\", \"LOW\"]", true, false),
        ("state not in [\"MINUS\", 3]", true, true),
        ("state ~ \"*IN*\"", false, false),
        ("state contains \"LO\"", true, false),
        ("flags contains \"WRITE\"", true, false),
        ("flags contains \"READ\"", false, false),
        ("flags contains \"HIGH\"", true, false),
        ("flags == 0x102", true, false),
        ("list[1] == 8", true, false),
        ("list[2] == 8 or list[2] != 8", false, false),
        ("pair.a == 1 && pair.`in` == 2", true, false),
        ("payload.pair.in in [2]", true, false),
        ("maybe == 0 or maybe != 0", false, false),
        ("choice == \"x\"", true, false),
        ("choice.text == \"x\"", true, false),
        ("choice.number == 1 or choice.number != 1", false, false),
        ("cpu_id in [1, 2..5]", true, true),
        (
            "packet_context.cpu_id == stream.packet.context.cpu_id",
            true,
            true,
        ),
        ("event.name ~ \"net:*\"", true, false),
        ("event.id == 1", false, true),
        ("event.level <= 6", true, false),
        ("event.time > 999", true, false),
        ("stream.id == 0 and stream.class == 0", true, true),
        (
            "stream.name contains \"-0\" && trace.name == \"a fake\"",
            true,
            true,
        ),
        ("common_context.len == \"12\"", false, false),
        ("18446744073709551615 > -9223372036854775808", true, true),
        ("len in []", false, false),
        (
            "len == 1500 && (name contains \"x\" || cpu_id in [1, 2..5])",
            true,
            false,
        ),
    ] {
        assert_eq!(holds(condition), (first, second), "{condition}");
    }
}

#[test]
fn classes_that_cannot_match_are_known_beforehand() {
    let fake = recording(sample());
    let fake = std::slice::from_ref(&fake);
    let wants = |events: &[&str], condition: &str| {
        let filter = Filter::new(&query(events, condition), &[], fake).expect(condition);
        [0, 1].map(|class| filter.plan(0, class).is_some())
    };
    assert_eq!(wants(&[], "delta == 3"), [true, false]);
    assert_eq!(wants(&[], "delta == 3 || cpu_id == 1"), [true, true]);
    assert_eq!(wants(&[], "event.name == \"sched\""), [false, true]);
    assert_eq!(wants(&[], "not event.name == \"sched\""), [true, false]);
    assert_eq!(wants(&["s*"], "true"), [false, true]);
    assert_eq!(wants(&["s*", "*:recv"], "true"), [true, true]);
    assert_eq!(wants(&["x"], "true"), [false, false]);
}

#[test]
fn idle_patterns_are_reported() {
    let fakes = [recording(Vec::new())];
    let query = query(&["s*", "shced"], "true");
    let idle = query.idle_patterns(&fakes);
    assert_eq!(idle.len(), 1);
    assert_eq!((idle[0].0.pattern(), idle[0].1), ("shced", Some("sched")));
}

#[test]
fn a_filter_needs_no_recording_with_classes() {
    assert!(Filter::new::<Fake>(&query(&[], "x == 1"), &[], &[]).is_ok());
    assert!(Filter::new(&query(&[], "x == 1"), &[], &[Fake::default()]).is_ok());
    assert!(Filter::new::<Fake>(&query(&[], "x =="), &[], &[]).is_err());
}

#[test]
fn errors_are_drawn() {
    let fakes = [recording(Vec::new())];
    let errors: Vec<String> = [
        "nmae == \"eth0\"",
        "len == 1 and zzzzzz == 3",
        "pair.b == 1",
        "list.a == 1",
        "list == 1",
        "pair",
        "name == 3",
        "name",
        "ok == 1",
        "ok < true",
        "load == \"x\"",
        "prio ~ \"a\"",
        "len in [1, \"x\", true]",
        "event.id == \"x\"",
        "3 == name",
        "flags ~ \"RE*\"",
        "flags in [\"READ\"]",
        "id == 5",
        "level < 3",
        "len == (1",
    ]
    .into_iter()
    .map(
        |condition| match Filter::new(&query(&[], condition), &[], &fakes) {
            Ok(_) => format!("{condition}: no error"),
            Err(error) => error.render("--where", false),
        },
    )
    .collect();
    insta::assert_snapshot!(errors.join("\n\n"));
    // Of the chosen events none has the field.
    assert!(Filter::new(&query(&["sched"], "delta == 1"), &[], &fakes).is_err());
}

#[test]
fn tests_of_values_that_cannot_be_are_warned_of() {
    let mut fake = recording(sample());
    let narrow = |bits| Kind::Uint {
        bits,
        base: kymo_model::Base::Decimal,
        labels: None,
    };
    let signed = Kind::Sint {
        bits: 4,
        base: kymo_model::Base::Decimal,
        labels: None,
    };
    fake.class(
        "small",
        vec![("u", narrow(8)), ("s", signed), ("x", narrow(8))],
    );
    fake.class("large", vec![("x", narrow(16))]);
    let fakes = [fake];
    let warnings = |condition: &str| -> Vec<String> {
        let filter = Filter::new(&query(&[], condition), &[], &fakes).unwrap();
        let warnings = filter.warnings().iter();
        warnings.map(|it| it.render("--where", false)).collect()
    };
    let reported: Vec<String> = [
        "u == 300",
        "300 < u",
        "u < 0 or s >= 8",
        "s in [8..20, -9]",
        "state == \"FWE\"",
        "state != \"FWE\"",
        "state in [\"NONE\"]",
        "state ~ \"Z?\"",
        "flags contains \"RAED\"",
        "event == \"nothing\"",
    ]
    .into_iter()
    .map(|condition| match &*warnings(condition) {
        [] => format!("{condition}: no warning"),
        all => all.join("\n"),
    })
    .collect();
    insta::assert_snapshot!(reported.join("\n\n"));
    for condition in [
        "x == 300",
        "u == 255",
        "u >= 0",
        "u != 300",
        "s in [7, 8]",
        "s == -8",
        "7.5 > s",
        "not (u == 3)",
        "u in [0..1000]",
        "state ~ \"Z*\"",
    ] {
        assert_eq!(warnings(condition), [""; 0], "{condition}");
    }
    // An unknown label is not a reason to keep less.
    assert_eq!(holds("state != \"FWE\""), (true, false));
    assert_eq!(holds("not state == \"FWE\""), (true, true));
}

#[test]
fn keys_of_the_json_are_known() {
    for (condition, first, second) in [
        ("timestamp == 1_000", true, false),
        ("timestamp > 0 and event.time < 1001", true, false),
        ("event == \"sched\"", false, true),
        ("event ~ \"net:*\" or event_class == 1", true, true),
        ("kind == \"event\" and event.kind == \"event\"", true, true),
        ("kind == \"sample\"", false, false),
        (
            "recording contains \"e\" and recording == \"fake\"",
            true,
            true,
        ),
        ("recording.path == \"fake\"", true, true),
        ("stream_class == 0 and stream == stream.id", true, true),
    ] {
        assert_eq!(holds(condition), (first, second), "{condition}");
    }
    // A field of that name comes first.
    let mut fake = Fake::default();
    fake.class("e", vec![("kind", uint())]);
    fake.stream(
        "s",
        vec![vec![(0, Some(7), Val::Struct(vec![Val::Uint(3)]))]],
    );
    let fakes = [fake];
    let filter = Filter::new(
        &query(&[], "kind == 3 and event.kind == 'event'"),
        &[],
        &fakes,
    );
    assert_eq!(wanted(&fakes[0], &filter.unwrap()), [true]);
}

/// A condition as the property test makes it: text and tree at once.
#[derive(Clone, Debug)]
enum Naive {
    Const(bool),
    Not(Box<Naive>),
    And(Vec<Naive>),
    Or(Vec<Naive>),
    /// Field, comparison, number.
    Compare(&'static str, &'static str, i64),
    /// Field, ranges, negated.
    Among(&'static str, Vec<(i64, i64)>, bool),
    /// Field, label.
    Label(&'static str, &'static str, bool),
    /// Field, part.
    Contains(&'static str, String),
}

const NUMBERS: [&str; 8] = [
    "len", "delta", "state", "list[0]", "list[2]", "maybe", "pair.a", "choice",
];
const LABELS: [(&str, i64, i64); 4] = [
    ("MINUS", -2, -1),
    ("ZERO", 0, 0),
    ("FEW", 1, 3),
    ("LOW", 0, 9),
];

impl Naive {
    fn write(&self) -> String {
        let join = |parts: &[Naive], operator: &str| {
            let parts: Vec<_> = parts
                .iter()
                .map(|part| format!("({})", part.write()))
                .collect();
            parts.join(operator)
        };
        match self {
            Self::Const(value) => value.to_string(),
            Self::Not(inner) => format!("not ({})", inner.write()),
            Self::And(parts) => join(parts, " && "),
            Self::Or(parts) => join(parts, " or "),
            Self::Compare(field, comparison, number) => format!("{field}{comparison}{number}"),
            Self::Among(field, ranges, negated) => {
                let ranges: Vec<_> = ranges
                    .iter()
                    .map(|(low, high)| format!("{low}..{high}"))
                    .collect();
                let not = if *negated { "not " } else { "" };
                format!("{field} {not}in [{}]", ranges.join(","))
            }
            Self::Label(field, label, equal) => {
                format!("{field} {} \"{label}\"", if *equal { "==" } else { "!=" })
            }
            Self::Contains(field, part) => format!("{field} contains \"{part}\""),
        }
    }

    /// The plain meaning: walks the tree and looks each field up by its name.
    fn holds(&self, class: usize, payload: &[Val]) -> bool {
        match self {
            Self::Const(value) => *value,
            Self::Not(inner) => !inner.holds(class, payload),
            Self::And(parts) => parts.iter().all(|part| part.holds(class, payload)),
            Self::Or(parts) => parts.iter().any(|part| part.holds(class, payload)),
            Self::Compare(field, comparison, number) => {
                let Some(value) = number_of(field, class, payload) else {
                    return false;
                };
                let number = i128::from(*number);
                match *comparison {
                    "==" => value == number,
                    "!=" => value != number,
                    "<" => value < number,
                    "<=" => value <= number,
                    ">" => value > number,
                    _ => value >= number,
                }
            }
            Self::Among(field, ranges, negated) => {
                let among = number_of(field, class, payload).is_some_and(|value| {
                    ranges
                        .iter()
                        .any(|&(low, high)| (low.into()..=high.into()).contains(&value))
                });
                among != *negated
            }
            Self::Label(field, label, equal) => {
                number_of(field, class, payload).is_some_and(|value| {
                    LABELS.iter().any(|&(l, low, high)| {
                        l == *label && (low.into()..=high.into()).contains(&value)
                    }) == *equal
                })
            }
            Self::Contains(field, part) => {
                let text = match (class, *field, payload) {
                    (0, "name", [_, _, _, _, Val::Text(text), ..]) => text,
                    (1, "len", [Val::Text(text), ..]) => text,
                    _ => return false,
                };
                text.windows(part.len().max(1))
                    .any(|window| window == part.as_bytes())
                    || part.is_empty()
            }
        }
    }
}

fn number_of(field: &str, class: usize, payload: &[Val]) -> Option<i128> {
    let value = match (class, field) {
        (1, "prio") => &payload[1],
        (1, _) => return None,
        (_, "len") => &payload[0],
        (_, "delta") => &payload[1],
        (_, "state") => &payload[5],
        (_, "pair.a") => match &payload[8] {
            Val::Struct(members) => &members[0],
            _ => return None,
        },
        (_, "list[0]" | "list[2]") => match &payload[7] {
            Val::Array(elements) => elements.get(if field == "list[0]" { 0 } else { 2 })?,
            _ => return None,
        },
        (_, "maybe") => match &payload[9] {
            Val::Optional(content) => content.as_deref()?,
            _ => return None,
        },
        (_, "choice") => match &payload[10] {
            Val::Variant(0, content) => content,
            _ => return None,
        },
        _ => return None,
    };
    match value {
        Val::Uint(value) => Some((*value).into()),
        Val::Sint(value) => Some((*value).into()),
        _ => None,
    }
}

fn small() -> impl Strategy<Value = i64> + Clone {
    prop_oneof![8 => -4i64..12, 1 => Just(i64::MIN), 1 => Just(i64::MAX)]
}

fn naive() -> impl Strategy<Value = Naive> {
    let number = prop::sample::select([&NUMBERS[..], &["prio"]].concat());
    let comparison = prop::sample::select(vec!["==", "!=", "<", "<=", ">", ">="]);
    let range = (small(), small()).prop_map(|(a, b)| (a.min(b), a.max(b)));
    let leaf = prop_oneof![
        1 => any::<bool>().prop_map(Naive::Const),
        6 => (number.clone(), comparison, small())
            .prop_map(|(field, comparison, number)| Naive::Compare(field, comparison, number)),
        3 => (number, prop::collection::vec(range, 0..4), any::<bool>())
            .prop_map(|(field, ranges, negated)| Naive::Among(field, ranges, negated)),
        2 => (prop::sample::select(&LABELS[..]), any::<bool>())
            .prop_map(|(label, equal)| Naive::Label("state", label.0, equal)),
        2 => (prop::sample::select(vec!["name", "len"]), "[ab]{0,3}")
            .prop_map(|(field, part)| Naive::Contains(field, part)),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            inner.clone().prop_map(|inner| Naive::Not(Box::new(inner))),
            prop::collection::vec(inner.clone(), 1..4).prop_map(Naive::And),
            prop::collection::vec(inner, 1..4).prop_map(Naive::Or),
        ]
    })
}

fn record() -> impl Strategy<Value = Record> {
    let unsigned = || prop_oneof![0u64..12, Just(u64::MAX)].prop_map(Val::Uint);
    let signed = || small().prop_map(Val::Sint);
    let text = || "[abc]{0,5}".prop_map(|text| Val::Text(text.into_bytes()));
    let receive = (
        (
            unsigned(),
            signed(),
            any::<f64>(),
            any::<bool>(),
            text(),
            signed(),
        ),
        (
            any::<u64>(),
            prop::collection::vec(unsigned(), 0..5),
            unsigned(),
            prop::option::of(signed()),
            prop_oneof![
                signed().prop_map(|number| (0, number)),
                text().prop_map(|text| (1, text))
            ],
        ),
    );
    let receive = receive.prop_map(|((len, delta, load, ok, name, state), rest)| {
        let (flags, list, a, maybe, (option, content)) = rest;
        let payload = vec![
            len,
            delta,
            Val::Float(load),
            Val::Bool(ok),
            name,
            state,
            Val::Bits(flags),
            Val::Array(list),
            Val::Struct(vec![a, Val::Sint(0)]),
            Val::Optional(maybe.map(Box::new)),
            Val::Variant(option, Box::new(content)),
        ];
        (0, Some(0), Val::Struct(payload))
    });
    let switch =
        (text(), signed()).prop_map(|(len, prio)| (1, Some(0), Val::Struct(vec![len, prio])));
    prop_oneof![2 => receive, 1 => switch]
}

proptest! {
    /// Compiled filters agree with the plain meaning of the language.
    #[test]
    fn compiled_and_plain_agree(
        naive in naive(),
        records in prop::collection::vec(record(), 1..20),
    ) {
        let expected: Vec<bool> = records
            .iter()
            .map(|(class, _, payload)| match payload {
                Val::Struct(payload) => naive.holds(*class, payload),
                _ => false,
            })
            .collect();
        let fake = recording(records);
        let condition = naive.write();
        let filter = Filter::new(&query(&[], &condition), &[], std::slice::from_ref(&fake));
        let filter = filter.map_err(|error| {
            TestCaseError::fail(error.render(&condition, false))
        })?;
        // Events of classes that are not wanted are not asked for.
        prop_assert_eq!(wanted(&fake, &filter), expected, "{}", condition);
    }

    /// No text makes the parser panic.
    #[test]
    fn nonsense_is_refused_calmly(condition in "[a-c0-9.,()\\[\\]'\"!=<>~&| \\\\`é-]{0,40}") {
        let fake = recording(Vec::new());
        let _ = Filter::new(&query(&[], &condition), &[], &[fake]);
    }

    /// Picks of any element of any array give what a walk over the value gives.
    #[test]
    fn picked_elements_are_the_right_ones(
        rows in prop::collection::vec(prop::collection::vec(any::<u64>(), 0..4), 0..4),
        row in 0usize..4,
        column in 0usize..4,
    ) {
        let mut schema = Schema::new();
        let outer = schema.push_root(Scope::Payload, Kind::Array { length: None });
        let inner = schema.push_child(outer, None, Kind::Array { length: None });
        let leaf = schema.push_child(inner, None, uint());
        let pick = Pick { field: leaf, elements: vec![row as u64, column as u64] };
        let mut selection = Selection::new(&schema, [pick]);
        let value = rows
            .iter()
            .map(|row| Val::Array(row.iter().copied().map(Val::Uint).collect()))
            .collect();
        crate::testing::visit(&schema, outer, &Val::Array(value), &mut selection).unwrap();
        let expected = rows.get(row).and_then(|row| row.get(column));
        prop_assert_eq!(
            selection.value(0),
            expected.map_or(Value::Missing, |&value| Value::Uint(value))
        );
    }
}
