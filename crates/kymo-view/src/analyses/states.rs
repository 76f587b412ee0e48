//! Time in states: how much of it each track has, how long states are, and the longest ones.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use kymo::AnyRecording;
use kymo::analysis::{Error, Histogram, Options, StateSpan, States, StatesQuery, Track};
use kymo::pipeline::Select;
use serde_json::{Value, json};

use super::{place, ranges};

/// What is analysed.
pub(super) struct Run<'r> {
    pub(super) recordings: &'r [AnyRecording],
    pub(super) query: &'r StatesQuery,
    pub(super) options: &'r Options,
}

impl Run<'_> {
    /// Measures the states that begin and end among the events that are wanted.
    pub(super) fn answer(&self, select: &dyn Select, worst: usize) -> Result<Value, Error> {
        let mut all = Histogram::default();
        let mut by_track: BTreeMap<u32, Histogram> = BTreeMap::new();
        // The shortest of the longest ones is given up first; of equal ones the later.
        let mut longest = BinaryHeap::new();
        let mut take = |span: StateSpan| {
            let nanos = span.end.abs_diff(span.begin);
            all.add(nanos);
            by_track.entry(span.track).or_default().add(nanos);
            longest.push(Reverse((
                nanos,
                Reverse(span.begin),
                span.end,
                span.track,
                span.lane,
            )));
            if longest.len() > worst {
                longest.pop();
            }
        };
        let (states, names) =
            States::with_spans(self.recordings, select, self.query, self.options, &mut take)?;
        let is_several = self.recordings.len() > 1;
        let tracks = states.tracks.iter().map(|track| &track.track);
        let tracks: HashMap<String, &Track> = tracks
            .map(|track| (track.title(is_several), track))
            .collect();
        let track_of = |number: u32| names.tracks.get(&number).and_then(|name| tracks.get(name));
        let mut histograms: HashMap<&str, Histogram> = HashMap::new();
        for (number, histogram) in &by_track {
            if let Some(title) = names.tracks.get(number) {
                histograms.entry(title).or_default().merge(histogram);
            }
        }
        let lines = states.tracks.iter().map(|track| {
            let histogram = histograms.get(track.track.title(is_several).as_str());
            let [p50, p95, p99] =
                [500, 950, 990].map(|share| histogram.and_then(|histogram| histogram.percentile(share)));
            json!({
                "track": place(&track.track), "count": track.times.count(), "total": track.times.total(), "mean": track.times.mean(),
                "deviation": track.times.deviation(), "min": track.times.min(), "p50": p50, "p95": p95, "p99": p99,
                "max": track.times.max(),
            })
        });
        let longest = longest.into_sorted_vec().into_iter();
        let worst = longest.filter_map(|Reverse((nanos, Reverse(begin), end, track, lane))| {
            let lane = names.lanes.get(lane as usize);
            Some(json!({
                "nanos": nanos, "start": begin.to_string(), "end": end.to_string(), "track": place(track_of(track)?),
                "key": lane,
            }))
        });
        Ok(json!({
            "count": states.count(), "total": states.total(), "mean": states.mean(), "open": states.open,
            "dropped": states.dropped, "backwards": states.backwards, "histogram": ranges(&all),
            "tracks": lines.collect::<Vec<_>>(), "worst": worst.collect::<Vec<_>>(),
        }))
    }
}
