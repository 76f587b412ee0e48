//! How much happens when, on all tracks together: the strip above the time line.

use serde_json::{Value, json};

use crate::api::{Api, MOST_COLUMNS, Result, number, range};

/// Maximum number of tracks counted, evenly spread over all if there are more: databases without an index are read
/// for it.
const MOST_TRACKS: usize = 1024;

impl Api {
    /// The number of rows of all tracks in each of some spans.
    pub(crate) fn density(&self, request: &Value) -> Result<Value> {
        let (begin, end) = range(request)?;
        let columns = number(request, "width")?.clamp(1, MOST_COLUMNS) as usize;
        let scene = &self.scene;
        let (tracks, generation, all) = {
            let state = scene.state();
            let numbers: Vec<u32> = state.shown.iter().map(|track| track.number).collect();
            (
                spread(&numbers, MOST_TRACKS),
                state.generation,
                numbers.len(),
            )
        };
        let (grid, bins) = scene.bins(None, &tracks, begin, end, columns);
        let mut counts = vec![0u64; grid.spans()];
        for track in bins {
            // The grid of another clock begins elsewhere within a span.
            let phase = i128::from(track.begin) - i128::from(grid.begin());
            for (position, bin) in track.bins {
                let from = phase + i128::from(position) * i128::from(grid.span());
                let span = from.div_euclid(i128::from(grid.span()));
                let span = span.clamp(0, counts.len() as i128 - 1) as usize;
                counts[span] = counts[span].saturating_add(bin.count);
            }
        }
        Ok(json!({
            "generation": generation,
            "begin": grid.begin().to_string(),
            "span": grid.span(),
            "counts": counts,
            "tracks": tracks.len(),
            "all": all,
        }))
    }
}

/// Returns at most `most` of the numbers, evenly spread.
fn spread(numbers: &[u32], most: usize) -> Vec<u32> {
    let step = numbers.len().div_ceil(most).max(1);
    numbers.iter().step_by(step).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::scene;

    #[test]
    fn every_row_is_counted_once() {
        let scene = scene(None);
        let (begin, end) = scene.range().unwrap();
        let rows: u64 = scene
            .state()
            .shown
            .iter()
            .map(|track| track.bin.count)
            .sum();
        let api = Api::new(scene);
        for width in [1, 7, 600] {
            let request =
                json!({"begin": begin.to_string(), "end": end.to_string(), "width": width});
            let answer = api.density(&request).unwrap();
            let counts = answer["counts"].as_array().unwrap();
            let sum: u64 = counts.iter().filter_map(Value::as_u64).sum();
            assert_eq!(sum, rows, "in {width} columns");
            assert!(counts.len() <= 2 * width + 1, "{}", counts.len());
        }
        assert!(
            api.density(&json!({"begin": "2", "end": "1", "width": 1}))
                .is_err()
        );
    }

    #[test]
    fn many_tracks_are_spread_evenly() {
        let numbers: Vec<u32> = (0..10).collect();
        assert_eq!(spread(&numbers, 10), numbers);
        assert_eq!(spread(&numbers, 4), [0, 3, 6, 9]);
        assert_eq!(spread(&[], 4), [0; 0]);
    }
}
