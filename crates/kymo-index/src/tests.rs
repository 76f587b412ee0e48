//! Trees and files beside plain counting.

use std::collections::BTreeMap;

use kymo_model::batch::RowId;
use kymo_model::{EntryKind, Track, TrackPart, TrackPath};
use proptest::prelude::*;

use super::*;

fn id(number: u64) -> RowId {
    RowId {
        recording: 0,
        stream: 0,
        chunk: number / 7,
        number,
    }
}

/// Rows in order of time, dense here and sparse there. Sums of their values are exact.
fn rows() -> impl Strategy<Value = Vec<Row>> {
    let step = prop_oneof![
        8 => 0..3_i64,
        8 => 0..1000_i64,
        1 => 0..1_000_000_000_i64,
        1 => 0..1_i64 << 55,
    ];
    let extra = prop_oneof![
        Just((f64::NAN, None)),
        (-1000..1000_i32).prop_map(|value| (f64::from(value), None)),
        Just((f64::NAN, Some(Slices::unpaired()))),
        (0..50_u64, 0..1000_u64)
            .prop_map(|(long, row)| (f64::NAN, Some(Slices::ended(long, id(row))))),
    ];
    let runs = prop::collection::vec((step, 1..120_usize, 0..100_usize, extra), 0..25);
    (prop_oneof![Just(0), Just(i64::MIN), any::<i64>()], runs).prop_map(|(begin, runs)| {
        let mut time = begin;
        let mut rows = Vec::new();
        for (step, count, class, (value, slices)) in runs {
            for _ in 0..count {
                time = time.saturating_add(step);
                let mut row = Row::new(time, class);
                row.value = value + (rows.len() % 5) as f64;
                row.slices = slices.map(Box::new);
                rows.push(row);
            }
        }
        rows
    })
}

fn track(number: u64) -> Track {
    let path = TrackPath::new([TrackPart::Thread(-3), TrackPart::Number(number)]);
    let mut track = Track::new(path, "a track", EntryKind::Sample);
    track.unit = Some("bytes".into());
    track
}

fn count(grid: &Grid, rows: &[Row]) -> BTreeMap<u64, Bin> {
    let mut bins: BTreeMap<u64, Bin> = BTreeMap::new();
    for row in rows {
        if let Some(position) = grid.position(row.time) {
            bins.entry(position as u64).or_default().push(row);
        }
    }
    bins
}

fn counts() -> Vec<ChunkCounts> {
    let mut counts = ChunkCounts {
        stream: 1,
        first: 2,
        chunks: 3,
        classes: Vec::new(),
    };
    for (class, time) in [(5, Some(-20)), (2, None), (5, Some(30)), (5, None)] {
        let time = time.map(kymo_time::Timestamp::from_nanos);
        counts.add(&kymo_model::Tally {
            class,
            events: 1,
            bits: 8,
            first: time,
            last: time,
        });
    }
    let sums = counts
        .classes
        .iter()
        .map(|class| (class.class, class.events));
    assert!(sums.eq([(2, 1), (5, 3)]));
    assert_eq!(counts.events(), 4);
    vec![counts]
}

fn write(rows: &[&[Row]], split: usize) -> Index {
    let mut writer = Writer::new(Vec::new()).unwrap();
    let mut first = true;
    let parts: Vec<_> = rows
        .iter()
        .map(|rows| rows.split_at(split.min(rows.len())))
        .collect();
    for _ in &parts {
        writer.add_track(track(0));
    }
    let meta = Meta {
        key: b"key".to_vec(),
        rows: 1,
        untimed: 2,
        only_at: Some(-3),
        faults: 4,
        chunks: vec![3, 4],
        counts: counts(),
        open: vec![OpenAt {
            time: -9,
            slices: vec![OpenSlice {
                track: 7,
                began: -10,
                row: id(70),
            }],
            dropped: vec![(7, 3)],
        }],
    };
    loop {
        for (number, part) in parts.iter().enumerate() {
            let rows = if first { part.0 } else { part.1 };
            for row in rows {
                assert!(writer.is_next(number as u32, row.time));
                writer.push(number as u32, row.clone());
            }
        }
        let index = Index::open(writer.finish(&meta).unwrap().into()).unwrap();
        assert_eq!(*index.meta(), meta);
        if !first {
            return index;
        }
        first = false;
        writer = Writer::extend(Vec::new(), &index).unwrap();
    }
}

fn answer(index: &Index, number: u32, grid: &Grid, rows: &[Row]) -> BTreeMap<u64, Bin> {
    let mut answer = Answer::new(grid);
    index.fill(number, grid, &mut answer).unwrap();
    let (known, missing) = answer.take();
    let Some(mut missing) = missing else {
        return known.into_iter().collect();
    };
    let ranges = missing.ranges();
    assert!(ranges.is_sorted_by(|one, next| one.1 < next.0));
    for &(begin, end) in ranges {
        let inside = rows
            .iter()
            .filter(|row| begin <= row.time && row.time <= end);
        assert!((2..=LEAF).contains(&inside.count()));
    }
    rows.iter().for_each(|row| missing.push(row));
    missing.complete(known).into_iter().collect()
}

fn all(rows: &[Row]) -> Bin {
    let mut bin = Bin::EMPTY;
    rows.iter().for_each(|row| bin.push(row));
    bin
}

proptest! {
    #[test]
    fn sorted_times_are_known_as_such(
        times in prop::collection::vec(
            prop_oneof![any::<i64>(), 0..9_i64, Just(i64::MIN), Just(i64::MAX)],
            0..5,
        ),
        sort: bool,
    ) {
        let mut times = times;
        if sort {
            times.sort_unstable();
        }
        prop_assert_eq!(are_sorted(&times), times.is_sorted());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn rows_added_together_are_those_added_one_by_one(
        rows in rows(),
        splits in prop::collection::vec(0..400_usize, 0..8),
    ) {
        let mut one = Writer::new(Vec::new()).unwrap();
        let mut all = Writer::new(Vec::new()).unwrap();
        one.add_track(track(0));
        all.add_track(track(0));
        let times: Vec<i64> = rows.iter().map(|row| row.time).collect();
        let classes: Vec<u32> = rows.iter().map(|row| u32::from(row.class)).collect();
        let mut at = 0;
        for split in splits.into_iter().chain([rows.len()]) {
            let next = rows.len().min(at + split);
            prop_assert!(all.push_all(0, &times[at..next], &classes[at..next]));
            at = next;
        }
        for (&time, &class) in times.iter().zip(&classes) {
            one.push(0, Row::new(time, class as usize));
        }
        if let [first, .., last] = times[..] && first < last {
            prop_assert!(!all.push_all(0, &[last, first], &[0, 0]));
            prop_assert!(!all.push_all(0, &[first], &[0]));
        }
        let [one, all] = [one, all].map(|writer| writer.finish(&Meta::default()).unwrap());
        prop_assert_eq!(one, all);
    }

    #[test]
    fn bins_add_up_in_any_grouping(rows in rows(), cuts in prop::array::uniform2(0..1000_usize)) {
        let mut cuts = cuts.map(|cut| cut.min(rows.len()));
        cuts.sort_unstable();
        let parts = [all(&rows[..cuts[0]]), all(&rows[cuts[0]..cuts[1]]), all(&rows[cuts[1]..])];
        let whole = all(&rows);
        let mut left = parts[0].clone();
        left.add(&parts[1]);
        left.add(&parts[2]);
        prop_assert_eq!(&left, &whole);
        let mut right = parts[1].clone();
        right.add(&parts[2]);
        let mut whole_again = parts[0].clone();
        whole_again.add(&right);
        prop_assert_eq!(whole_again, whole);
    }

    #[test]
    fn trees_answer_as_counting_does(
        rows in rows(),
        range in any::<(prop::sample::Index, prop::sample::Index)>(),
        wider in 0..1000_i64,
        columns in 1..300_usize,
        split in 0..2000_usize,
    ) {
        let index = write(&[&rows, &rows[..rows.len().min(60)]], split);
        let time = |at: prop::sample::Index| match rows.is_empty() {
            true => 0,
            false => rows[at.index(rows.len())].time,
        };
        let (one, other) = (time(range.0), time(range.1));
        let grid = Grid::new(
            one.min(other).saturating_sub(wider),
            one.max(other).saturating_add(wider),
            columns,
        );
        prop_assert!(grid.spans() <= 2 * columns);
        prop_assert_eq!(answer(&index, 0, &grid, &rows), count(&grid, &rows));
        let few = &rows[..rows.len().min(60)];
        let mut of_few = Answer::new(&grid);
        index.fill(1, &grid, &mut of_few).unwrap();
        let (known, missing) = of_few.take();
        prop_assert!(missing.is_none(), "few rows are kept");
        prop_assert_eq!(known.into_iter().collect::<BTreeMap<_, _>>(), count(&grid, few));
    }

    #[test]
    fn the_shape_depends_on_the_rows_alone(rows in rows(), split in 0..2000_usize) {
        let nodes = |index: &Index| {
            let tree = &index.trees[0];
            let mut all: BTreeMap<(u8, u64), Bin> = BTreeMap::new();
            let mut nodes = Vec::new();
            for block in &tree.blocks {
                index.nodes(block, &mut nodes).unwrap();
                all.extend(nodes.iter().map(|node| ((block.level, node.key), node.bin.clone())));
            }
            for (level, nodes) in &tree.tail {
                all.extend(nodes.iter().map(|node| ((*level, node.key), node.bin.clone())));
            }
            all
        };
        prop_assert_eq!(nodes(&write(&[&rows], split)), nodes(&write(&[&rows], usize::MAX)));
    }

    #[test]
    fn damage_is_found(rows in rows(), at in any::<prop::sample::Index>(), cut in any::<bool>()) {
        let whole = write(&[&rows, &rows], usize::MAX);
        let mut bytes = whole.bytes().to_vec();
        let at = at.index(bytes.len());
        match cut {
            true => bytes.truncate(at),
            false => bytes[at] ^= 0x10,
        }
        let grid = Grid::new(i64::MIN, i64::MAX, 1);
        let read = Index::open(bytes.into()).and_then(|index| {
            let mut nodes = Vec::new();
            for block in index.trees.iter().flat_map(|tree| &tree.blocks) {
                index.nodes(block, &mut nodes)?;
            }
            index.fill(0, &grid, &mut Answer::new(&grid))
        });
        prop_assert!(read.is_err());
    }

    #[test]
    fn what_contents_say_is_not_believed(
        rows in rows(),
        at in any::<prop::sample::Index>(),
        value in any::<u8>(),
    ) {
        let whole = write(&[&rows, &rows], usize::MAX);
        let bytes = whole.bytes();
        let begin = u64::from_le_bytes(bytes[bytes.len() - 24..][..8].try_into().unwrap()) as usize;
        let mut contents = bytes[begin..bytes.len() - 24].to_vec();
        let at = at.index(contents.len());
        contents[at] = value;
        let sealed = seal(&bytes[8..begin], &contents);
        if let Ok(index) = Index::open(sealed.into()) {
            let grid = Grid::new(i64::MIN, i64::MAX, 1000);
            let mut answer = Answer::new(&grid);
            for number in 0..index.tracks().len() as u32 {
                let _ = index.fill(number, &grid, &mut answer);
                answer.clear();
            }
        }
    }
}

#[test]
fn grids_are_powers_of_two_on_one_grid() {
    let facts = |grid: Grid| (grid.begin(), grid.span(), grid.end());
    assert_eq!(facts(Grid::new(0, 7, 4)), (0, 1, 7));
    assert_eq!(facts(Grid::new(5, 14, 2)), (4, 4, 15));
    assert_eq!(facts(Grid::new(-3, 3, 1)), (-4, 4, 3));
    assert_eq!(
        facts(Grid::new(i64::MIN, i64::MAX, 1)),
        (i64::MIN, 1 << 63, i64::MAX)
    );
    assert_eq!(Grid::new(i64::MIN, i64::MAX, 1).position(i64::MAX), Some(1));
    assert_eq!(Grid::new(-3, 3, 1).position(-5), None);
}

#[test]
fn many_rows_take_less_than_a_byte_each() {
    let mut time = 0;
    let rows: Vec<Row> = (0..200_000_u64)
        .map(|number| {
            time += (number * number % 97 + 5) as i64;
            Row::new(time, (number % 11) as usize)
        })
        .collect();
    let index = write(&[&rows], usize::MAX);
    let bytes = index.bytes().len();
    assert!(bytes < rows.len() / 2, "{bytes}");
}

#[cfg(unix)]
mod cache {
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;
    use std::time::Duration;

    use super::*;

    fn key(files: &[&Path]) -> Key {
        Key::new(files.iter().copied(), b"options".to_vec()).unwrap()
    }

    fn file(key: &Key) -> Vec<u8> {
        let mut writer = Writer::new(Vec::new()).unwrap();
        let number = writer.add_track(track(1));
        (0..1000).for_each(|row| writer.push(number, Row::new(row * 1_000, 0)));
        let key = key.to_bytes();
        writer
            .finish(&Meta {
                key,
                ..Meta::default()
            })
            .unwrap()
    }

    #[test]
    fn files_that_change_are_seen() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (folder.path().join("one"), folder.path().join("other"));
        std::fs::write(&one, "1").unwrap();
        std::fs::write(&other, "2").unwrap();
        let cache = Cache::new(folder.path().join("some/cache"));
        let before = key(&[&one, &other]);
        assert!(cache.get(&before).is_none());
        cache.put(&before, &file(&before)).unwrap();
        assert!(matches!(cache.get(&before), Some(Cached::Whole(_))));
        std::fs::write(&one, "12").unwrap();
        assert!(matches!(
            cache.get(&key(&[&one, &other])),
            Some(Cached::Older(_))
        ));
        let early = std::time::SystemTime::UNIX_EPOCH;
        std::fs::File::options()
            .write(true)
            .open(&other)
            .unwrap()
            .set_modified(early)
            .unwrap();
        assert!(
            cache.get(&key(&[&one, &other])).is_none(),
            "as large as before, and not the same"
        );
        assert!(cache.get(&key(&[&one])).is_none());
    }

    #[test]
    fn whatever_is_there_nothing_fails() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        std::fs::write(&data, "1").unwrap();
        let key = key(&[&data]);
        let good = file(&key);
        let cache = Cache::new(folder.path().join("cache"));
        let path = cache.put(&key, &good).unwrap();
        // Such a file opens: only its block is damaged.
        let mut block = good.clone();
        block[10] ^= 1;
        assert!(Index::open(block.clone().into()).is_ok());
        for bad in [
            &b""[..],
            b"KYMOIDX",
            &good[..good.len() - 1],
            &[7; 100],
            &block,
        ] {
            std::fs::write(&path, bad).unwrap();
            assert!(cache.get(&key).is_none());
        }
        // A link is not followed, neither to read nor to write.
        std::fs::remove_file(&path).unwrap();
        let elsewhere = folder.path().join("elsewhere");
        std::fs::write(&elsewhere, &good).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
        assert!(cache.get(&key).is_none());
        cache.put(&key, &good).unwrap();
        assert!(std::fs::symlink_metadata(&path).unwrap().is_file());
        assert!(cache.get(&key).is_some());
        // A directory in place of the file.
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert!(cache.get(&key).is_none());
        assert!(cache.put(&key, &good).is_err());
        // A directory that others can write in, a file in place of the directory, a link to another directory.
        std::fs::remove_dir(&path).unwrap();
        cache.put(&key, &good).unwrap();
        let open = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(cache.directory(), open).unwrap();
        assert!(cache.get(&key).is_none());
        assert!(cache.put(&key, &good).is_err());
        let file = Cache::new(&data);
        assert!(file.get(&key).is_none());
        assert!(file.put(&key, &good).is_err());
        let below = Cache::new(data.join("below"));
        assert!(below.put(&key, &good).is_err());
    }

    #[test]
    fn a_note_is_of_files_that_have_not_changed() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path().join("cache"));
        let key = |length| Key::of_numbers(&[[1, 2, length, 3]], b"some".to_vec());
        assert!(cache.note(&key(5)).is_none());
        cache.put_note(&key(5), b"what is known").unwrap();
        assert_eq!(&*cache.note(&key(5)).unwrap(), b"what is known");
        assert!(cache.note(&key(6)).is_none());
        assert!(cache.get(&key(5)).is_none() && !cache.has_summaries());
        // The next one takes its place.
        cache.put_note(&key(6), b"").unwrap();
        assert!(cache.note(&key(5)).is_none());
        assert_eq!(&*cache.note(&key(6)).unwrap(), b"");
        assert_eq!(std::fs::read_dir(cache.directory()).unwrap().count(), 1);
        // Whatever is there, nothing fails, and no byte can be another one.
        let good = note_file(&key(5), b"note");
        assert_eq!(
            note_range(&good, &key(5)),
            Some(good.len() as u64 - 8..good.len() as u64 - 4)
        );
        for length in 0..good.len() {
            assert_eq!(note_range(&good[..length], &key(5)), None);
            let mut bad = good.clone();
            bad[length] ^= 1;
            assert_eq!(note_range(&bad, &key(5)), None);
        }
    }

    #[test]
    fn what_is_used_least_goes_first() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path().join("cache"));
        let mut keys = Vec::new();
        let mut length = 0;
        for name in ["a", "b", "c"] {
            let data = folder.path().join(name);
            std::fs::write(&data, "1").unwrap();
            let key = key(&[&data]);
            let file = file(&key);
            length = file.len() as u64 + 1;
            let path = cache.put(&key, &file).unwrap();
            let age = Duration::from_secs(1000 - keys.len() as u64);
            let file = std::fs::File::options().write(true).open(path).unwrap();
            file.set_modified(std::time::SystemTime::now() - age)
                .unwrap();
            keys.push(key);
        }
        assert!(cache.get(&keys[0]).is_some(), "now it was used last");
        let cache = cache.with_limit(3 * length);
        let data = folder.path().join("d");
        std::fs::write(&data, "1").unwrap();
        keys.push(key(&[&data]));
        cache.put(&keys[3], &file(&keys[3])).unwrap();
        let there: Vec<bool> = keys.iter().map(|key| cache.get(key).is_some()).collect();
        assert_eq!(there, [true, false, true, true]);
        assert!(cache.with_limit(10).put(&keys[0], &file(&keys[0])).is_err());
    }
}
