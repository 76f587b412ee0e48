//! Rows from the last to the first.

use super::made_up::write_stream;
use super::*;

/// Backwards is the other way round, and ends where the limit says.
pub(super) fn check_backwards(timeline: &Timeline, query: &Query, limits: &[u64]) {
    let mut forwards = heads(timeline, query);
    forwards.reverse();
    for &limit in limits {
        let query = Query {
            direction: Direction::Backwards,
            limit: Some(limit),
            ..query.clone()
        };
        let count = forwards.len().min(limit as usize);
        assert_eq!(heads(timeline, &query), forwards[..count], "{limit}");
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(200))]
    #[test]
    fn backwards_is_the_other_way_round_whatever_the_times(
        streams in proptest::collection::vec(
            proptest::collection::vec(
                (proptest::collection::vec((0u64..20, 0u8..2), 0..6), 0u32..2),
                0..4,
            ),
            1..5,
        ),
        window in (0i64..20, 0i64..20),
        class in 0u8..3,
    ) {
        let directory = tempfile::tempdir().unwrap();
        for (stream, packets) in streams.iter().enumerate() {
            // Two traces, of which nothing says that they are not one.
            let name = if stream % 2 == 0 { "even" } else { "odd" };
            write_stream(&directory.path().join(name), stream / 2, packets);
        }
        let opened = crate::open::open(&[directory.path().into()], &Default::default());
        let timeline = Timeline::new(opened.recordings);
        let mut query = Query {
            threads: 1,
            batch_rows: 3,
            columns: Columns::All,
            ..Query::default()
        };
        check_backwards(&timeline, &query, &[0, 1, 2, 5, 1000]);
        query.range.begin = Timestamp::from_nanos(window.0.min(window.1));
        query.range.end = Timestamp::from_nanos(window.0.max(window.1));
        if class < 2 {
            let name = if class == 0 { "a" } else { "b" };
            query.filter.condition = Some(format!("event.name == \"{name}\"").parse().unwrap());
        }
        check_backwards(&timeline, &query, &[1, 3, 1000]);
    }
}

#[test]
fn backwards_is_the_other_way_round_of_real_traces() {
    for name in ["lttng-small", "lttng-discarded", "rfc-small"] {
        let timeline = open(name);
        let mut query = Query {
            columns: Columns::named("cpu_id, event.name").unwrap(),
            ..Query::default()
        };
        if name == "rfc-small" {
            query.columns = Columns::All;
        }
        check_backwards(&timeline, &query, &[1, 100, u64::MAX]);
        let times = heads(&timeline, &query);
        let time = times[times.len() / 2].0.time.unwrap();
        query.range.end = time;
        check_backwards(&timeline, &query, &[1, 10]);
    }
}
