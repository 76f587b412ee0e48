//! Rows of several sources in one batch, beside the rows one by one.

use std::sync::Arc;

use super::super::*;

/// The value of a row with all that is in it.
fn deep_value(column: &Column, row: usize) -> String {
    match &column.data {
        _ if !column.is_valid(row) => "null".to_owned(),
        ColumnData::Struct { members, .. } => {
            let members = members.iter().map(|member| deep_value(member, row));
            members.collect::<Vec<_>>().join(",")
        }
        ColumnData::List { offsets, items } => {
            let items_of_row = offsets[row] as usize..offsets[row + 1] as usize;
            format!(
                "{:?}",
                items_of_row
                    .map(|item| deep_value(items, item))
                    .collect::<Vec<_>>()
            )
        }
        _ => format!("{:?}", column.value(row)),
    }
}

#[test]
fn runs_of_sources_are_the_rows_one_by_one() {
    let column = |(name, data_type): (&str, DataType)| ColumnType {
        name: name.into(),
        data_type,
    };
    let list = DataType::List(Arc::new(column(("item", DataType::Text))));
    let members = [("m", DataType::Int64), ("n", list)].map(column);
    let texts = ["x", "y"].map(Arc::from);
    let schema: Arc<[ColumnType]> = [
        ("a", DataType::Uint16),
        ("b", DataType::Text),
        ("c", DataType::Struct(members.into())),
        ("d", DataType::Dictionary(texts.into())),
        ("e", DataType::Bool),
        ("f", DataType::FixedBinary(3)),
    ]
    .map(column)
    .into();
    // Of two sources, the first one with all values, the other one without some, and without a clock.
    let columns = [0u64, 1].map(|source| {
        let mut columns: Vec<_> = schema
            .iter()
            .map(|column| Column::new(&column.data_type))
            .collect();
        for row in 0..9 {
            columns[0].push_uint(100 * source + row);
            match source == 1 && row % 3 == 0 {
                true => columns[1].push_null(),
                false => drop(columns[1].push_text(format!("{source} {row}").as_bytes())),
            }
            if let ColumnData::Struct { members, .. } = &mut columns[2].data {
                members[0].push_sint(row as i64);
                if let ColumnData::List { items, .. } = &mut members[1].data {
                    (0..(row + source) % 4).for_each(|item| match item {
                        2 => items.push_null(),
                        _ => drop(items.push_text(format!("{source} {row} {item}").as_bytes())),
                    });
                }
                members[1].end_compound();
            }
            match row == 7 {
                true => columns[2].push_null(),
                false => columns[2].end_compound(),
            }
            columns[3].push_key((row % 2) as u32);
            columns[4].push_bool(row % 3 == source);
            columns[5].push_bytes(format!("{source}x{row}").as_bytes());
        }
        columns
    });
    let numbers = [
        [0, 1, 2, 3, 4, 5, 6, 7, 8],
        [4, 5, 9, 10, 12, 13, 14, 15, 16],
    ];
    let classes = [3, 1, 4, 1, 5, 9, 2, 6, 5];
    let no_time = i64::MIN;
    let times = [
        [10, 11, 12, 13, 14, 15, 16, 17, 18],
        [no_time, 9, 20, 3, 4, no_time, 6, 7, 8],
    ];
    let ticks = [0u64, 1, 2, 3, 4, 5, 6, 7, 8];
    let sources = [0usize, 1].map(|source| SourceRows {
        id: RowId {
            recording: 0,
            stream: source as u32,
            chunk: 7,
            number: 0,
        },
        numbers: &numbers[source],
        classes: &classes,
        times: &times[source],
        ticks: (source == 0).then_some(&ticks),
        columns: &columns[source],
        replaced: source as u64 + 1,
    });
    let run = |source, first, rows| SourceRun {
        source,
        first,
        rows,
    };
    for runs in [
        &[run(0, 0, 4), run(0, 4, 1), run(0, 5, 4)][..],
        &[
            run(1, 0, 3),
            run(0, 0, 2),
            run(1, 3, 1),
            run(1, 4, 5),
            run(0, 2, 7),
        ],
        &[run(1, 1, 1), run(0, 8, 1)],
        &[],
    ] {
        let (mut at_once, mut one_by_one) = (
            Batch::new(Arc::clone(&schema)),
            Batch::new(Arc::clone(&schema)),
        );
        for _ in 0..2 {
            at_once.append_runs(&sources, runs, no_time);
            for run in runs {
                let source = &sources[run.source];
                for row in run.first..run.first + run.rows {
                    let time = Some(source.times[row]).filter(|&time| time != no_time);
                    one_by_one.push_head(RowHead {
                        id: RowId {
                            number: source.numbers[row],
                            ..source.id
                        },
                        class: source.classes[row],
                        time: time.map(kymo_time::Timestamp::from_nanos),
                        ticks: source.ticks.map(|ticks| ticks[row]),
                    });
                    one_by_one.append_columns(source.columns, row..row + 1);
                }
                one_by_one.add_replaced(if run.first == 0 { source.replaced } else { 0 });
            }
        }
        assert_eq!(format!("{at_once:?}"), format!("{one_by_one:?}"));
    }
    for (parts, order) in [
        (&[run(0, 0, 4), run(1, 2, 1)][..], &[0, 4, 1, 2, 3][..]),
        (&[run(0, 0, 4), run(1, 1, 1)], &[4, 0, 1, 2, 3]),
        (&[run(0, 2, 3), run(1, 4, 5)], &[3, 0, 4, 1, 2, 5, 6, 7]),
        // Numbers that are not one after the other, and a part of the order alone.
        (&[run(1, 0, 9), run(0, 0, 9)], &[9, 0, 1, 2, 10, 11, 3, 12]),
        (&[run(0, 3, 6)], &[0, 1, 2, 3, 4, 5]),
        (&[run(0, 0, 2), run(0, 2, 2)], &[0, 1, 2, 3]),
    ] {
        let (mut merged, mut one_by_one) = (
            Batch::new(Arc::clone(&schema)),
            Batch::new(Arc::clone(&schema)),
        );
        for _ in 0..2 {
            let rows = MergedRows { parts, order };
            merged.append_merged(&sources, rows, no_time);
            one_by_one.append_runs(&sources, &rows.runs(), no_time);
        }
        let heads =
            |batch: &Batch| -> Vec<_> { (0..batch.len()).map(|row| batch.head(row)).collect() };
        assert_eq!(heads(&merged), heads(&one_by_one));
        assert_eq!(merged.len(), 2 * order.len());
        assert_eq!(merged.replaced(), one_by_one.replaced());
        let columns = |batch: &Batch| format!("{:?}", batch.columns());
        assert_eq!(columns(&merged), columns(&one_by_one));
        // Values are those of the rows that the order names.
        let rows = MergedRows { parts, order };
        let rows = rows
            .runs()
            .into_iter()
            .flat_map(|run| run.range().map(move |row| (run.source, row)));
        for (row, (source, from)) in rows.enumerate() {
            for (to, column) in merged.columns().iter().zip(sources[source].columns) {
                assert_eq!(deep_value(to, row), deep_value(column, from));
            }
        }
        let mut next = 0;
        for (rows, id) in merged.runs() {
            assert_eq!(rows.start, next);
            for (row, number) in rows.clone().zip(id.number..) {
                assert_eq!(merged.id(row), RowId { number, ..id });
            }
            next = rows.end;
        }
        assert_eq!(next, merged.len());
    }
}

#[test]
fn merged_lists_may_have_more_items_than_rows_that_are_merged() {
    let item = ColumnType {
        name: "item".into(),
        data_type: DataType::Uint16,
    };
    let schema: Arc<[ColumnType]> = Arc::new([ColumnType {
        name: "a".into(),
        data_type: DataType::List(Arc::new(item)),
    }]);
    for length in [MergedRows::MOST as u64 / 4, MergedRows::MOST as u64 / 4 + 1] {
        let lists = [0, 1].map(|source| {
            let mut lists = Column::new(&schema[0].data_type);
            for row in 0..2 {
                if let ColumnData::List { items, .. } = &mut lists.data {
                    (0..length)
                        .for_each(|item| items.push_uint(10_000 * source + 5_000 * row + item));
                }
                lists.end_compound();
            }
            [lists]
        });
        let parts = [0, 1].map(|source| SourceRun {
            source,
            first: 0,
            rows: 2,
        });
        let order = [2, 0, 1, 3];
        let mut batch = Batch::new(Arc::clone(&schema));
        let sources = lists.each_ref().map(|columns| &columns[..]);
        let merged = MergedRows {
            parts: &parts,
            order: &order,
        };
        batch.append_merged_columns(&sources, merged);
        let merged = &batch.columns()[0];
        assert_eq!(merged.len(), 4);
        for (row, (source, from)) in [(1, 0), (0, 0), (0, 1), (1, 1)].into_iter().enumerate() {
            assert_eq!(deep_value(merged, row), deep_value(&lists[source][0], from));
        }
    }
}
