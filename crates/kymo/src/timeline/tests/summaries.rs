//! Summaries that are counted from rows, and the tracks and series of each format.

use std::collections::BTreeMap;

use kymo_model::Value;

use super::*;

#[test]
fn summaries_count_every_row() {
    let timeline = open("lttng-small");
    let all = events(&timeline);
    let (first, last) = (all[0].0.unwrap(), all[all.len() - 1].0.unwrap());
    let range = |begin: i64, end: i64| Window {
        begin: Timestamp::from_nanos(begin),
        end: Timestamp::from_nanos(end),
    };
    let length = last - first;
    for (begin, end, width) in [
        (first, last, 100),
        (first + length / 3, last - length / 5, 1),
        (first - 10 * length, last + length, 7),
    ] {
        let summary = timeline.summary_of_rows(range(begin, end), None, width);
        // Spans are where they are, however the recording is shifted.
        let zero = contributions::own_begin(&timeline.recordings()[0]);
        let grid = Grid::new(begin - zero, end - zero, width);
        assert_eq!(summary.span, grid.span());
        let inside: Vec<_> = all.iter().filter_map(|event| event.0).collect();
        let inside = inside.iter();
        let inside = inside.filter(|&&time| grid.position(time - zero).is_some());
        let counted = |bins: &[(u64, Bin)]| bins.iter().map(|(_, bin)| bin.count).sum::<u64>();
        let total: u64 = summary
            .tracks
            .iter()
            .map(|track| counted(&track.bins))
            .sum();
        assert_eq!(total, inside.count() as u64);
        let bins = summary.tracks.iter();
        for (first, (position, bin)) in
            bins.flat_map(|track| track.bins.iter().map(|bin| (track.begin, bin)))
        {
            assert!(*position < 2 * width as u64);
            assert_eq!(first, grid.begin() + zero);
            let begin = first + (*position * summary.span) as i64;
            assert!(begin <= bin.first && bin.first <= bin.last);
            assert!(bin.last < begin + summary.span as i64);
        }
        // Twice as coarse, pairs of bins add up.
        let coarse = timeline.summary_of_rows(range(begin, end), None, width.div_ceil(2));
        let pairs = summary.tracks.iter().zip(&coarse.tracks);
        if coarse.span == 2 * summary.span {
            for (fine, coarse) in pairs.filter(|(fine, coarse)| fine.begin == coarse.begin) {
                let mut added: BTreeMap<u64, Bin> = BTreeMap::new();
                for (position, bin) in &fine.bins {
                    added.entry(position / 2).or_default().add(bin);
                }
                assert_eq!(added.into_iter().collect::<Vec<_>>(), coarse.bins);
            }
        }
    }
}

/// A recording below the folder of the crates.
fn open_data(place: &str) -> Timeline {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .join(place);
    let opened = crate::open::open(&[path], &crate::open::Options::default());
    assert!(opened.errors.is_empty());
    Timeline::new(opened.recordings)
}

/// What happened on all of time, by the names of tracks.
fn all_of(timeline: &Timeline) -> BTreeMap<String, (kymo_model::EntryKind, Bin)> {
    let summary = timeline.summary_of_rows(Window::ALL, None, 1);
    let tracks = summary.tracks.into_iter().map(|track| {
        let mut bins = track.bins.into_iter().map(|(_, bin)| bin);
        let mut all = bins.next().unwrap();
        bins.for_each(|bin| all.add(&bin));
        (track.track.path.to_string(), (track.track.kind, all))
    });
    tracks.collect()
}

/// The fields of a recording as JSON lines show them.
fn values_of(timeline: &Timeline, names: &str) -> Vec<Batch> {
    let query = Query {
        columns: Columns::named(names).unwrap(),
        shape: Shape::ByClass,
        ..Query::default()
    };
    rows(timeline, &query)
}

#[test]
fn logs_have_their_tracks() {
    let timeline = open_data("kymo-cpel/tests/data/order_reversed.cpel");
    let mut expected: BTreeMap<String, u64> = BTreeMap::new();
    for batch in values_of(&timeline, "track") {
        let tracks = batch.column("track").unwrap();
        for row in 0..batch.len() {
            let Value::Uint(track) = tracks.value(row) else {
                panic!();
            };
            *expected.entry(format!("track {track}")).or_default() += 1;
        }
    }
    let found = all_of(&timeline);
    assert!(expected.len() > 1);
    let counts = found
        .iter()
        .map(|(name, (_, bin))| (name.clone(), bin.count));
    assert_eq!(counts.collect::<BTreeMap<_, _>>(), expected);
    assert!(found.values().all(|(_, bin)| bin.values.is_none()));
}

#[test]
fn sources_of_archives_are_series() {
    let timeline = open_data("kymo-rrd/tests/data/SYN-arm-fpa/tiny.rrd");
    let recording = &timeline.recordings()[0];
    let found = all_of(&timeline);
    assert_eq!(found.len(), recording.tracks().len(), "{found:?}");
    let mut known = 0;
    for (archive, class) in recording.event_classes().iter().enumerate() {
        for source in class
            .schema
            .fields()
            .iter()
            .filter_map(|field| field.name.as_deref())
        {
            let (mut rows, mut values) = (0, Vec::new());
            for batch in values_of(&timeline, source) {
                if batch.classes()[0] as usize != archive {
                    continue;
                }
                rows += batch.len() as u64;
                let column = batch.column(source).unwrap();
                values.extend((0..batch.len()).filter_map(|row| match column.value(row) {
                    Value::Float(value) if !value.is_nan() => Some(value),
                    _ => None,
                }));
            }
            let (kind, bin) = &found[&format!("archive {archive} / {source}")];
            assert_eq!(*kind, kymo_model::EntryKind::Sample);
            assert_eq!(bin.count, rows, "unknown ones are rows, too");
            assert_eq!(
                bin.values.as_ref().map_or(0, |values| values.count),
                values.len() as u64
            );
            if let Some(known_values) = &bin.values {
                let (min, max) = (
                    values.iter().copied().fold(f64::MAX, f64::min),
                    known_values.max,
                );
                assert_eq!(known_values.min, min);
                assert!(values.contains(&max) && values.iter().all(|value| *value <= max));
                assert_eq!(known_values.last, values[values.len() - 1]);
            }
            known += values.len();
        }
    }
    assert!(known > 0);
}

#[test]
fn counters_of_perfetto_are_series() {
    let found = all_of(&open_data("kymo-perfetto/tests/traces/counters.pftrace"));
    let samples = found.values().filter(|(_, bin)| bin.values.is_some());
    assert!(samples.count() > 1, "{found:?}");
}
