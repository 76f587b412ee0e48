//! Indexes in the cache: whole files, contents with the right checksums, blocks.

use kymo_index::{Answer, Grid, Index, Key, Writer, note_file, note_range, seal, unpack};

/// The cells of a block are these at most, whatever it says.
const MOST_CELLS: usize = 512;

pub(crate) fn index(data: &[u8]) {
    let Some((&kind, rest)) = data.split_first() else {
        return;
    };
    notes(rest);
    let file = match kind % 3 {
        0 => rest.to_vec(),
        1 => seal(&[], rest),
        _ => {
            let [level, last, block @ ..] = rest else {
                return;
            };
            if let Ok(cells) = unpack(block, level % 33, 0, (*last).into()) {
                assert!(cells.len() <= MOST_CELLS);
            }
            return;
        }
    };
    let Ok(index) = Index::open(file.into()) else {
        return;
    };
    let tracks = index.tracks().len() as u32;
    for grid in [Grid::new(i64::MIN, i64::MAX, 100), Grid::new(-100, 1000, 7)] {
        let mut answer = Answer::new(&grid);
        for track in 0..tracks {
            let _ = index.fill(track, &grid, &mut answer);
            let (bins, missing) = answer.take();
            assert!(bins.len() <= grid.spans());
            if let Some(missing) = missing {
                assert!(missing.complete(bins).len() <= grid.spans());
            }
        }
    }
    // What can be read can be written and read again.
    let writer = Writer::extend(Vec::new(), &index).expect("memory takes everything");
    let again = writer
        .finish(index.meta())
        .expect("memory takes everything");
    let again = Index::open(again.into()).expect("it was written");
    assert!(again.tracks().eq(index.tracks()) && again.meta() == index.meta());
    let _ = index.range();
}

/// Notes of the cache: bytes as they are in the directory, and as they are kept.
fn notes(data: &[u8]) {
    let key = Key::of_numbers(&[[0; 4]], Vec::new());
    let found = |file: &[u8]| {
        let range = note_range(file, &key)?;
        Some(file[range.start as usize..range.end as usize].to_vec())
    };
    let _ = found(data);
    assert_eq!(found(&note_file(&key, data)).as_deref(), Some(data));
}
