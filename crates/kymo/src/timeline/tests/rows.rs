//! What rows a query has, and which columns.

use std::collections::BTreeMap;

use kymo_model::Value;

use super::*;

#[test]
fn rows_are_all_events_in_order_for_any_threads_and_sizes() {
    for name in ["lttng-small", "lttng-discarded"] {
        let timeline = open(name);
        let mut expected = events(&timeline);
        for (threads, batch_rows) in [(1, 7), (3, 1000), (2, 1 << 16)] {
            let query = Query {
                threads,
                batch_rows,
                ..Query::default()
            };
            let batches = rows(&timeline, &query);
            assert!(batches.iter().all(|batch| batch.len() <= batch_rows));
            let heads: Vec<_> = batches
                .iter()
                .flat_map(|batch| (0..batch.len()).map(|row| batch.head(row)))
                .collect();
            assert!(heads.is_sorted_by_key(|head| head.time), "{name}");
            let ids: std::collections::HashSet<_> = heads.iter().map(|head| head.id).collect();
            assert_eq!(ids.len(), heads.len(), "each row has its own identity");
            let mut found: Vec<_> = heads
                .iter()
                .map(|head| (head.time.map(Timestamp::as_nanos), head.class))
                .collect();
            found.sort();
            expected.sort();
            assert_eq!(found, expected);
        }
    }
}

#[test]
fn losses_come_between_rows() {
    let batches = rows(&open("lttng-discarded"), &Query::default());
    let notices = batches.iter().flat_map(Batch::notices);
    let lost = notices.filter_map(|notice| match notice.kind {
        NoticeKind::LostEvents(lost) => lost.count,
        _ => None,
    });
    assert!(lost.sum::<u64>() > 30_000);
}

#[test]
fn named_columns_have_the_values_of_the_events() {
    let timeline = open("lttng-small");
    let names = [
        "next_comm",
        "prev_tid",
        "event.name",
        "cpu_id",
        "event.time",
    ];
    let mut query = Query {
        columns: Columns::named(&names.join(",")).unwrap(),
        limit: Some(2_500),
        ..Query::default()
    };
    let mixed = rows(&timeline, &query);
    assert_eq!(mixed.iter().map(Batch::len).sum::<usize>(), 2_500);
    let schema: Vec<_> = mixed[0]
        .schema()
        .iter()
        .map(|column| column.name.to_string())
        .collect();
    let mut sorted = names.map(str::to_string).to_vec();
    sorted.sort();
    let mut named = schema.clone();
    named.sort();
    assert_eq!(named, sorted);
    query.shape = Shape::ByClass;
    let by_class = rows(&timeline, &query);
    let values = |batches: &[Batch]| {
        let mut values = BTreeMap::new();
        for batch in batches {
            for row in 0..batch.len() {
                let of_row: Vec<_> = names
                    .iter()
                    .map(|name| match batch.column(name) {
                        Some(column) => format!("{:?}", column.value(row)),
                        None => "Missing".to_string(),
                    })
                    .collect();
                let head = batch.head(row);
                let time = head.time.map_or(0, Timestamp::as_nanos);
                assert_eq!(of_row[4], format!("{:?}", Value::Sint(time)));
                values.insert(head.id, of_row);
            }
        }
        values
    };
    let (mixed, by_class) = (values(&mixed), values(&by_class));
    assert_eq!(mixed.len(), 2_500);
    assert_eq!(mixed, by_class);
    for name in 0..names.len() {
        assert!(
            mixed.values().any(|row| row[name] != "Missing"),
            "{}",
            names[name]
        );
    }
}

#[test]
fn all_columns_have_every_field() {
    let timeline = open("lttng-small");
    let query = Query {
        columns: Columns::All,
        shape: Shape::ByClass,
        ..Query::default()
    };
    let mut rows_of: BTreeMap<u32, usize> = BTreeMap::new();
    for batch in rows(&timeline, &query) {
        let class = batch.classes()[0];
        assert!(batch.classes().iter().all(|&other| other == class));
        *rows_of.entry(class).or_default() += batch.len();
        let event = &timeline.recordings()[0].event_classes()[class as usize];
        let payload = event.schema.root(kymo_model::Scope::Payload).unwrap();
        for &member in &event.schema.field(payload).children {
            let name = event.schema.field(member).name.as_deref().unwrap();
            assert!(batch.column(name).is_some(), "{name}");
        }
    }
    assert!(rows_of.len() > 1);
}

#[test]
fn a_filter_and_a_range_narrow() {
    let timeline = open("lttng-small");
    let all = events(&timeline);
    let middle = all[all.len() / 2].0.unwrap();
    let query = Query {
        filter: crate::filter::Query {
            condition: Some("prev_tid >= 0".to_string()),
            ..Default::default()
        },
        range: Window {
            begin: Timestamp::from_nanos(middle),
            end: Timestamp::MAX,
        },
        ..Query::default()
    };
    let found: usize = rows(&timeline, &query).iter().map(Batch::len).sum();
    let classes = timeline.recordings()[0].event_classes();
    let has = |class: u32| {
        let schema = &classes[class as usize].schema;
        let payload = schema.root(kymo_model::Scope::Payload).unwrap();
        schema.child(payload, "prev_tid").is_some()
    };
    let expected = all
        .iter()
        .filter(|(time, class)| *time >= Some(middle) && has(*class));
    assert_eq!(found, expected.count());
    assert!(found > 0);
    let wrong = Query {
        columns: Columns::named("no_such_field").unwrap(),
        ..Query::default()
    };
    assert!(matches!(timeline.rows(&wrong), Err(QueryError::Filter(_))));
}

#[test]
fn dropping_rows_ends_their_thread() {
    let timeline = open("lttng-small");
    let query = Query {
        batch_rows: 1,
        ..Query::default()
    };
    let mut rows = timeline.rows(&query).unwrap();
    assert_eq!(rows.next().map(|batch| batch.len()), Some(1));
    drop(rows);
}

#[test]
fn seeking_finds_the_first_row_at_a_time_or_later() {
    let timeline = open("lttng-small");
    let all = events(&timeline);
    let times: Vec<i64> = all.iter().filter_map(|event| event.0).collect();
    for &time in [&times[0], &times[times.len() / 2], &times[times.len() - 1]] {
        for sought in [time - 1, time] {
            let expected = times.iter().find(|&&time| time >= sought);
            let found = timeline.seek(Timestamp::from_nanos(sought)).unwrap();
            assert_eq!(found.time.map(Timestamp::as_nanos), expected.copied());
        }
    }
    assert_eq!(
        timeline.seek(Timestamp::from_nanos(times[times.len() - 1] + 1)),
        None
    );
}

#[test]
fn chosen_columns_are_those_of_the_chosen_classes() {
    let timeline = open("lttng-small");
    let mut query = Query::default();
    let names = ["next_tid", "next_comm", "u8"].map(Arc::from);
    query.filter.events = vec![crate::filter::Glob::new("demo:sched")];
    query.columns = Columns::Chosen {
        columns: Arc::new(names.into_iter().collect()),
        packet_fields: [Arc::from("cpu_id")].into(),
    };
    let schema = timeline.schema(&query).unwrap();
    let names: Vec<&str> = schema.iter().map(|column| &*column.name).collect();
    // `demo:sched` has no `u8`.
    let of_schema = ["next_comm", "next_tid", "cpu_id"];
    assert_eq!(names, of_schema);
    let mut same = query.clone();
    same.columns = Columns::named("next_comm, next_tid, cpu_id").unwrap();
    let values = |query: &Query| -> Vec<String> {
        let batches = rows(&timeline, query);
        // Columns are in the order in which classes have them.
        let value = |batch: &Batch, name, row| {
            batch
                .column(name)
                .map(|column| format!("{:?}", column.value(row)))
        };
        let rows_of = |batch: &Batch| {
            let rows = (0..batch.len()).map(|row| of_schema.map(|name| value(batch, name, row)));
            rows.map(|values| format!("{values:?}")).collect::<Vec<_>>()
        };
        batches.iter().flat_map(rows_of).collect()
    };
    let found = values(&query);
    assert_eq!(found.len(), 600);
    assert!(found == values(&same));
}

#[test]
fn rows_between_places_are_all_rows_in_parts() {
    let timeline = open("lttng-small");
    let place = |number| {
        let mut places = Places::at_end();
        for stream in 0..timeline.recordings()[0].streams().len() {
            places.set(0, stream, kymo_model::RowPlace { chunk: 0, number });
        }
        places
    };
    let ids = |query: &Query| -> std::collections::BTreeSet<RowId> {
        let batches = rows(&timeline, query);
        let rows_of = |batch: &Batch| {
            (0..batch.len())
                .map(|row| batch.id(row))
                .collect::<Vec<_>>()
        };
        batches.iter().flat_map(rows_of).collect()
    };
    let mut query = Query::default();
    let all = ids(&query);
    for direction in [Direction::Forwards, Direction::Backwards] {
        query.direction = direction;
        (query.from, query.to) = (None, Some(place(100)));
        let first = ids(&query);
        (query.from, query.to) = (Some(place(100)), None);
        let second = ids(&query);
        assert!(!first.is_empty() && first.is_disjoint(&second));
        assert_eq!(
            first
                .union(&second)
                .copied()
                .collect::<std::collections::BTreeSet<_>>(),
            all
        );
    }
}

#[test]
fn a_run_that_is_stopped_ends() {
    let timeline = open("lttng-small");
    let query = Query {
        stop: Some(Arc::new(AtomicBool::new(true))),
        ..Query::default()
    };
    assert!(rows(&timeline, &query).is_empty());
}

#[test]
fn runs_cover_all_rows() {
    for batch in rows(&open("lttng-small"), &Query::default()) {
        let mut next = 0;
        for (rows, first) in batch.runs() {
            assert_eq!(rows.start, next);
            for row in rows.clone() {
                let number = first.number + (row - rows.start) as u64;
                assert_eq!(batch.id(row), RowId { number, ..first });
            }
            next = rows.end;
        }
        assert_eq!(next, batch.len());
    }
}
