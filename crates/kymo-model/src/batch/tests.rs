//! Columns against a plain slow model: each value of each row beside what the visitor received.

mod merging;

use std::sync::Arc;

use super::*;
use crate::{Base, FieldId, Flag, Kind, Labels, Mapping, Pick, Schema, Scope, Value, Visitor};

fn uint(bits: u32) -> Kind {
    Kind::Uint {
        bits,
        base: Base::Decimal,
        labels: None,
    }
}

fn names(wanted: &[WantedColumn]) -> Vec<&str> {
    wanted.iter().map(|wish| &*wish.column.name).collect()
}

#[test]
fn types_become_the_widest() {
    use DataType::*;
    for (left, right, widest) in [
        (Uint8, Uint32, Uint32),
        (Uint8, Int8, Int16),
        (Uint32, Int64, Int64),
        (Uint64, Int8, Float64),
        (Bool, Uint8, Uint8),
        (Float32, Int64, Float64),
        (Text, Uint8, Text),
        (Text, Binary, Text),
        (Float32, Float32, Float32),
    ] {
        assert_eq!(left.widest(&right), widest, "{left:?} {right:?}");
        assert_eq!(right.widest(&left), widest, "{right:?} {left:?}");
    }
}

#[test]
fn enumerations_have_their_labels() {
    let mut schema = Schema::new();
    let root = schema.push_root(Scope::Payload, Kind::Struct);
    let mapping = |label: &str, low, high| Mapping {
        label: label.into(),
        ranges: vec![(low, high)],
    };
    let labels = Labels::new(false, vec![mapping("low", 0, 5), mapping("odd", 3, 3)]);
    let kind = Kind::Uint {
        bits: 8,
        base: Base::Decimal,
        labels: Some(Arc::new(labels)),
    };
    let state = schema.push_child(root, Some("state".into()), kind);
    let flag = |name: &str, bit| Flag {
        name: name.into(),
        ranges: vec![(bit, bit)],
    };
    let flags = Kind::BitMap {
        bits: 12,
        flags: [flag("read", 0), flag("write", 9)].into(),
    };
    let flags = schema.push_child(root, Some("mode".into()), flags);
    let wanted = all_columns(&schema);
    assert_eq!(
        names(&wanted),
        ["state.labels", "state", "mode.labels", "mode"]
    );
    let mut columns = Columns::new(&schema, &wanted);
    for (value, mode) in [(3, 1 << 9 | 1), (9, 0), (4, 1)] {
        columns.begin_struct(root);
        columns.uint(state, value);
        columns.bits(flags, mode);
        columns.end_struct(root);
        columns.end_row();
    }
    let lengths: Vec<_> = (0..3).map(|row| columns.value(0, row)).collect();
    assert_eq!(lengths, [2, 0, 1].map(Value::Array));
    let ColumnData::List { items, .. } = &columns.columns()[0].data else {
        panic!();
    };
    let labels: Vec<_> = (0..3).map(|item| items.value(item)).collect();
    assert_eq!(labels, [&b"low"[..], b"odd", b"low"].map(Value::Text));
    assert_eq!(columns.value(1, 0), Value::Uint(3));
    assert_eq!(columns.value(2, 0), Value::Array(2));
    assert_eq!(columns.value(3, 0), Value::Uint(0x201));
}

#[test]
fn labels_lie_beside_their_values_within_others() {
    let mut schema = Schema::new();
    let root = schema.push_root(Scope::Payload, Kind::Struct);
    let mapping = |label: &str, low, high| Mapping {
        label: label.into(),
        ranges: vec![(low, high)],
    };
    let labels = Labels::new(false, vec![mapping("low", 0, 5), mapping("odd", 3, 3)]);
    let kind = Kind::Uint {
        bits: 8,
        base: Base::Decimal,
        labels: Some(Arc::new(labels)),
    };
    let outer = schema.push_child(root, Some("outer".into()), Kind::Struct);
    let inner = schema.push_child(outer, Some("e".into()), kind.clone());
    schema.push_child(outer, Some("e.labels".into()), uint(8));
    let list = schema.push_child(root, Some("list".into()), Kind::Array { length: None });
    let optional = schema.push_child(list, None, Kind::Optional);
    let element = schema.push_child(optional, None, kind);

    let wanted = all_columns(&schema);
    assert_eq!(names(&wanted), ["outer", "list.labels", "list"]);
    let DataType::Struct(members) = &wanted[0].column.data_type else {
        panic!();
    };
    let members: Vec<_> = members.iter().map(|member| &*member.name).collect();
    assert_eq!(members, ["e", "e.labels.labels", "e.labels"]);

    let mut columns = Columns::new(&schema, &wanted);
    columns.begin_struct(root);
    columns.begin_struct(outer);
    columns.uint(inner, 3);
    columns.end_struct(outer);
    columns.begin_array(list, 3);
    for value in [Some(9), None, Some(3)] {
        columns.begin_optional(optional, value.is_some(), 0);
        if let Some(value) = value {
            columns.uint(element, value);
        }
        columns.end_optional(optional);
    }
    columns.end_array(list);
    columns.end_struct(root);
    columns.end_row();
    let ColumnData::Struct { members, .. } = &columns.columns()[0].data else {
        panic!();
    };
    assert_eq!(members[0].value(0), Value::Uint(3));
    assert_eq!(members[1].value(0), Value::Array(2));
    assert_eq!(columns.value(1, 0), Value::Array(3));
    let ColumnData::List { items, .. } = &columns.columns()[1].data else {
        panic!();
    };
    let lengths: Vec<_> = (0..3).map(|item| items.value(item)).collect();
    assert_eq!(lengths, [Value::Array(0), Value::Missing, Value::Array(2)]);
}

/// `payload { list: [ { a, o?: text } ], v: variant { 0: a, 1: text } }`, context with a member `list`.
struct Nested {
    schema: Schema,
    root: FieldId,
    list: FieldId,
    element: FieldId,
    a: FieldId,
    optional: FieldId,
    text: FieldId,
    variant: FieldId,
    options: [FieldId; 2],
}

impl Nested {
    fn new() -> Self {
        let mut schema = Schema::new();
        let context = schema.push_root(Scope::CommonContext, Kind::Struct);
        schema.push_child(context, Some("list".into()), uint(8));
        let root = schema.push_root(Scope::Payload, Kind::Struct);
        let list = schema.push_child(root, Some("list".into()), Kind::Array { length: None });
        let element = schema.push_child(list, None, Kind::Struct);
        let a = schema.push_child(element, Some("a".into()), uint(16));
        let optional = schema.push_child(element, Some("o".into()), Kind::Optional);
        let text = schema.push_child(optional, None, Kind::Text);
        let variant = schema.push_child(root, Some("v".into()), Kind::Variant);
        let first = schema.push_child(variant, Some("n".into()), uint(64));
        let second = schema.push_child(variant, Some("t".into()), Kind::Text);
        Self {
            schema,
            root,
            list,
            element,
            a,
            optional,
            text,
            variant,
            options: [first, second],
        }
    }

    fn event(&self, to: &mut impl Visitor, elements: &[(u64, Option<&str>)], option: u32) {
        to.begin_struct(self.root);
        to.begin_array(self.list, elements.len() as u64);
        for (a, text) in elements {
            to.begin_struct(self.element);
            to.uint(self.a, *a);
            to.begin_optional(self.optional, text.is_some(), 0);
            if let Some(text) = text {
                to.text(self.text, text.as_bytes());
            }
            to.end_optional(self.optional);
            to.end_struct(self.element);
        }
        to.end_array(self.list);
        to.begin_variant(self.variant, option, option.into());
        match option {
            0 => to.uint(self.options[0], 77),
            _ => to.text(self.options[1], b"\xff!"),
        }
        to.end_variant(self.variant);
        to.end_struct(self.root);
    }
}

#[test]
fn compounds_are_columns() {
    let nested = Nested::new();
    let wanted = all_columns(&nested.schema);
    assert_eq!(names(&wanted), ["list", "v", "context.list"]);
    let mut columns = Columns::new(&nested.schema, &wanted);
    let rows: [&[(u64, Option<&str>)]; 4] = [
        &[(1, Some("x")), (2, None)],
        &[],
        &[(3, None)],
        &[(4, Some("yz"))],
    ];
    for (row, elements) in rows.iter().enumerate() {
        nested.event(&mut columns, elements, row as u32 % 2);
        if row == 1 {
            // Once more, and not wanted.
            nested.event(&mut columns, &[(9, Some("dropped"))], 0);
            columns.drop_row();
            nested.event(&mut columns, elements, 1);
        }
        columns.end_row();
    }
    assert_eq!(columns.replaced(), 3, "one of them was dropped");
    let (taken, _) = columns.take();
    assert!(columns.columns().iter().all(Column::is_empty));
    let ColumnData::List { offsets, items } = &taken[0].data else {
        panic!();
    };
    assert_eq!(offsets, &[0, 2, 2, 3, 4]);
    let ColumnData::Struct { members, .. } = &items.data else {
        panic!();
    };
    let values = |column: &Column| -> Vec<String> {
        (0..column.len())
            .map(|row| format!("{:?}", column.value(row)))
            .collect()
    };
    assert_eq!(
        values(&members[0]),
        ["Uint(1)", "Uint(2)", "Uint(3)", "Uint(4)"]
    );
    assert_eq!(members[1].null_count(), 2);
    assert_eq!(members[1].value(3), Value::Text(b"yz"));
    let ColumnData::Struct { members, .. } = &taken[1].data else {
        panic!();
    };
    assert_eq!(
        values(&members[0]),
        ["Uint(77)", "Missing", "Uint(77)", "Missing"]
    );
    assert_eq!(members[1].value(1), Value::Text("\u{fffd}!".as_bytes()));
    assert_eq!(taken[2].null_count(), 4, "no event told its context");

    // Rows that are appended to others are the same.
    let mut copy = Column::new(&wanted[0].column.data_type);
    copy.append(&taken[0], 3..4);
    copy.append(&taken[0], 0..3);
    let ColumnData::List { offsets, items } = &copy.data else {
        panic!();
    };
    assert_eq!(offsets, &[0, 1, 3, 3, 4]);
    let ColumnData::Struct { members, .. } = &items.data else {
        panic!();
    };
    assert_eq!(
        values(&members[0]),
        ["Uint(4)", "Uint(1)", "Uint(2)", "Uint(3)"]
    );
    assert_eq!(members[1].value(0), Value::Text(b"yz"));
    assert_eq!(members[1].value(2), Value::Missing);
}

#[test]
fn elements_and_options_of_the_same_name_are_one_column() {
    let nested = Nested::new();
    let column = |name: &str, data_type| ColumnType {
        name: name.into(),
        data_type,
    };
    let wanted = [
        WantedColumn {
            column: column("list[1].a", DataType::Uint64),
            source: ColumnSource::Fields(vec![Pick {
                field: nested.a,
                elements: vec![1],
            }]),
        },
        WantedColumn {
            column: column("v", DataType::Text),
            source: ColumnSource::Fields(nested.options.map(Pick::from).to_vec()),
        },
        WantedColumn {
            column: column("cpu", DataType::Int64),
            source: ColumnSource::None,
        },
    ];
    let mut columns = Columns::new(&nested.schema, &wanted);
    for (option, elements) in [&[(5, None), (6, None), (7, None)][..], &[(8, None)]]
        .into_iter()
        .enumerate()
    {
        nested.event(&mut columns, elements, option as u32);
        if option == 1 {
            columns.put(2, Value::Uint(3));
        }
        columns.end_row();
    }
    assert_eq!(columns.value(0, 0), Value::Uint(6));
    assert_eq!(columns.value(0, 1), Value::Missing);
    assert_eq!(columns.value(1, 0), Value::Text(b"77"));
    assert_eq!(columns.value(1, 1), Value::Text("\u{fffd}!".as_bytes()));
    assert_eq!(columns.value(2, 0), Value::Missing);
    assert_eq!(columns.value(2, 1), Value::Sint(3));
    columns.truncate(1);
    assert!(columns.columns().iter().all(|column| column.len() == 1));
}

#[test]
fn batches_keep_heads_and_notices() {
    let schema: Arc<[ColumnType]> = [ColumnType {
        name: "a".into(),
        data_type: DataType::Uint8,
    }]
    .into();
    let mut batch = Batch::new(Arc::clone(&schema));
    let mut column = Column::new(&DataType::Uint8);
    (0..3).for_each(|value| column.push_uint(value));
    let head = |number: u64, time: Option<i64>| RowHead {
        id: RowId {
            recording: 0,
            stream: 1,
            chunk: 2,
            number,
        },
        class: 5,
        time: time.map(Timestamp::from_nanos),
        ticks: Some(number),
    };
    let heads = [head(0, None), head(1, Some(-7)), head(2, Some(8))];
    for (row, &head) in heads.iter().enumerate() {
        if row == 2 {
            batch.push_notice(
                0,
                1,
                NoticeKind::LostEvents(Lost {
                    count: None,
                    begin: None,
                    end: None,
                }),
            );
        }
        batch.push_head(head);
        batch.append_columns(std::slice::from_ref(&column), row..row + 1);
    }
    assert_eq!(batch.len(), 3);
    assert!((0..3).all(|row| batch.head(row) == heads[row]));
    assert_eq!(batch.notices()[0].before, 2);
    assert_eq!(
        batch.column("a").map(|column| column.value(2)),
        Some(Value::Uint(2))
    );
    assert_eq!(batch.times().null_count(), 1);
}

proptest::proptest! {
    #[test]
    fn heads_are_kept_however_they_come(
        runs in proptest::collection::vec(
            (0u64..2, proptest::collection::vec((0u64..9, 0i64..3), 0..5), 0u32..3, proptest::bool::ANY),
            0..5,
        ),
    ) {
        let (mut one_by_one, mut in_runs) = (Batch::new(Arc::default()), Batch::new(Arc::default()));
        for (chunk, rows, class, has_ticks) in runs {
            // Most numbers follow one another.
            let mut last = 0;
            let numbers = rows.iter().map(|row| {
                last += 1 + row.0 / 6;
                last
            });
            let numbers: Vec<u64> = numbers.collect();
            let times: Vec<i64> = rows.iter().map(|row| row.1).collect();
            let first = RowId { recording: 1, stream: 2, chunk, number: 77 };
            for (row, &number) in numbers.iter().enumerate() {
                one_by_one.push_head(RowHead {
                    id: RowId { number, ..first },
                    class,
                    time: (times[row] != 0).then_some(Timestamp::from_nanos(times[row])),
                    ticks: has_ticks.then_some(number),
                });
            }
            let ticks = has_ticks.then_some(&numbers[..]);
            let ids = numbers.iter().map(|&number| RowId { number, ..first });
            in_runs.push_heads(class, ids, (&times, 0), ticks);
            for (row, &number) in numbers.iter().rev().enumerate() {
                let head = in_runs.head(in_runs.len() - 1 - row);
                proptest::prop_assert_eq!(head.id, RowId { number, ..first });
            }
        }
        let heads = |batch: &Batch| (0..batch.len()).map(|row| batch.head(row)).collect::<Vec<_>>();
        proptest::prop_assert_eq!(heads(&one_by_one), heads(&in_runs));
        proptest::prop_assert_eq!(one_by_one.byte_size(), in_runs.byte_size());
    }
}

#[test]
fn all_rows_share_a_value() {
    let schema = Schema::new();
    let types = [
        DataType::Uint32,
        DataType::Text,
        DataType::Bool,
        DataType::Int8,
    ];
    let wanted = types.map(|data_type| WantedColumn {
        column: ColumnType {
            name: "a".into(),
            data_type,
        },
        source: ColumnSource::Shared,
    });
    let mut columns = Columns::new(&schema, &wanted);
    columns.share(0, Value::Uint(1));
    (0..3).for_each(|_| columns.end_row());
    let values = [
        Value::Uint(7),
        Value::Text(b"a\xff"),
        Value::Bool(true),
        Value::Missing,
    ];
    for (position, &value) in values.iter().enumerate() {
        columns.share(position, value);
    }
    assert_eq!(columns.replaced(), 3);
    for row in 0..3 {
        let of_row: Vec<_> = (0..4)
            .map(|position| columns.value(position, row))
            .collect();
        let text = Value::Text("a\u{fffd}".as_bytes());
        assert_eq!(of_row, [values[0], text, values[2], values[3]]);
    }
    let (taken, replaced) = columns.take();
    assert!(replaced == 3 && taken.iter().all(|column| column.len() == 3));
    assert!(columns.columns().iter().all(Column::is_empty));
}

#[test]
fn what_is_nested_deeply_is_one_json_text() {
    let mut schema = Schema::new();
    let root = schema.push_root(Scope::Payload, Kind::Struct);
    let array = Kind::Array { length: None };
    let mut fields = vec![schema.push_child(root, Some("deep".into()), Kind::Struct)];
    for _ in 0..deep::MOST_LEVELS {
        let inner = *fields.last().unwrap();
        fields.push(schema.push_child(inner, Some("in".into()), Kind::Struct));
    }
    let bottom = *fields.last().unwrap();
    let numbers = schema.push_child(bottom, Some("numbers".into()), array);
    let number = schema.push_child(numbers, None, uint(8));
    let name = schema.push_child(bottom, Some("a \"name\"".into()), Kind::Text);
    let may_be = schema.push_child(bottom, Some("may be".into()), Kind::Optional);
    let float = schema.push_child(may_be, None, Kind::Float { bits: 64 });
    let wanted = all_columns(&schema);
    assert_eq!(names(&wanted), ["deep"]);
    let mut columns = Columns::new(&schema, &wanted);
    let mut row = |present: bool, text: &[u8], ends: bool| {
        fields.iter().for_each(|&field| columns.begin_struct(field));
        columns.begin_array(numbers, 2);
        columns.uint(number, 1);
        columns.uint(number, 2);
        columns.end_array(numbers);
        columns.text(name, text);
        columns.begin_optional(may_be, present, 0);
        if present {
            columns.float(float, 0.5);
        }
        columns.end_optional(may_be);
        if !ends {
            return columns.drop_row();
        }
        fields
            .iter()
            .rev()
            .for_each(|&field| columns.end_struct(field));
        columns.end_row();
    };
    row(true, b"x", true);
    row(true, b"dropped", false);
    row(false, b"\xff", true);
    let mut column = &columns.columns()[0];
    while let ColumnData::Struct { members, .. } = &column.data {
        column = &members[0];
    }
    let texts = [0, 1].map(|row| column.value(row));
    let whole = br#"{"numbers":[1,2],"a \"name\"":"x","may be":0.5}"#;
    let absent = "{\"numbers\":[1,2],\"a \\\"name\\\"\":\"\u{fffd}\",\"may be\":null}";
    assert_eq!(texts, [Value::Text(whole), Value::Text(absent.as_bytes())]);
    assert_eq!(columns.replaced(), 1);
}
