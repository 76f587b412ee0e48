//! Charts of states: what was in which state when.

use std::collections::{BTreeMap, HashMap};

use kymo::Timeline;
use kymo::analysis::{Coverage, Error, Options, StateSpan, States, StatesQuery};
use kymo::pipeline::Select;

use crate::bins::Length;
use crate::panel::{Content, Lane, Lanes, MOST_SERIES, Panel, Run};

/// Lanes that are drawn.
const MOST_LANES: usize = 48;
/// Lanes that are kept while states are read; more are counted, not drawn.
const MOST_KEPT: usize = 1024;
/// Maximum number of distinct states in one interval of a lane; more count for the last.
const MOST_STATES: usize = 8;

/// The time in each state, by its number, in the intervals of a lane.
type Bins = BTreeMap<i64, Vec<(u32, u64)>>;

/// The lanes while states are read.
struct Reader {
    length: Length,
    lanes: HashMap<u32, Bins>,
    /// Lanes that were not kept.
    more: HashMap<u32, ()>,
}

fn charge(states: &mut Vec<(u32, u64)>, state: u32, nanos: u64) {
    let place = states.iter().position(|(known, _)| *known == state);
    match place {
        Some(place) => states[place].1 += nanos,
        None if states.len() < MOST_STATES => states.push((state, nanos)),
        None => states[MOST_STATES - 1].1 += nanos,
    }
}

impl Reader {
    fn take(&mut self, span: &StateSpan, lane: u32) {
        let before = self.length;
        self.length.cover(span.begin);
        self.length.cover(span.end);
        let bits = self.length.since(&before);
        if bits > 0 {
            for bins in self.lanes.values_mut() {
                for (bin, states) in std::mem::take(bins) {
                    let bin = bins.entry(bin >> bits).or_default();
                    for (state, nanos) in states {
                        charge(bin, state, nanos);
                    }
                }
            }
        }
        if self.lanes.len() >= MOST_KEPT && !self.lanes.contains_key(&lane) {
            self.more.insert(lane, ());
            return;
        }
        let bins = self.lanes.entry(lane).or_default();
        for bin in self.length.bin(span.begin)..=self.length.bin(span.end) {
            let (begin, end) = self.length.times(bin);
            let nanos = end.min(span.end).abs_diff(begin.max(span.begin));
            if nanos > 0 {
                charge(bins.entry(bin).or_default(), span.track, nanos);
            }
        }
    }
}

/// A chart of the states of all recordings: a lane for each value that keeps states apart, in the colours of the
/// tracks, or else a lane for each track.
pub(crate) fn panel(
    timeline: &Timeline,
    select: &dyn Select,
    query: &StatesQuery,
    options: &Options,
    length: Length,
) -> Result<(Panel, Coverage), Error> {
    let mut reader = Reader {
        length,
        lanes: HashMap::new(),
        more: HashMap::new(),
    };
    let is_apart = query.per.is_some();
    let recordings = timeline.recordings();
    let (found, names) = States::with_spans(recordings, select, query, options, &mut |span| {
        let lane = if is_apart { span.lane } else { span.track };
        reader.take(&span, lane);
    })?;
    let Reader {
        length,
        lanes,
        more,
    } = reader;
    // The states with the longest times have colours.
    let mut totals: HashMap<u32, u64> = HashMap::new();
    for (state, nanos) in lanes.values().flat_map(BTreeMap::values).flatten() {
        *totals.entry(*state).or_default() += nanos;
    }
    let mut totals: Vec<(u32, u64)> = totals.into_iter().collect();
    totals.retain(|(state, _)| names.tracks.contains_key(state));
    totals.sort_by_key(|(state, nanos)| (std::cmp::Reverse(*nanos), *state));
    let colours: HashMap<u32, usize> = match is_apart {
        true => totals
            .iter()
            .take(MOST_SERIES)
            .map(|total| total.0)
            .zip(0..)
            .collect(),
        // Lanes next to each other differ.
        false => (totals.iter().map(|total| total.0))
            .zip((0..MOST_SERIES).cycle())
            .collect(),
    };
    let mut all: Vec<(u32, Lane)> = lanes
        .into_iter()
        .map(|(number, bins)| {
            let name = match is_apart {
                true => names.lanes.get(number as usize).cloned(),
                false => names.tracks.get(&number).cloned(),
            };
            let lane = Lane {
                name: name.unwrap_or_default(),
                total: 0,
                runs: Vec::new(),
            };
            (
                number,
                with_runs(lane, bins, &length, &|state| {
                    names
                        .tracks
                        .contains_key(&state)
                        .then(|| colours.get(&state).copied())
                }),
            )
        })
        .filter(|(_, lane)| !lane.runs.is_empty())
        .collect();
    match is_apart {
        true => all.sort_by(|(_, a), (_, b)| natural(&a.name, &b.name)),
        false => all.sort_by_key(|(number, lane)| (std::cmp::Reverse(lane.total), *number)),
    }
    let more = all.len().saturating_sub(MOST_LANES) + more.len();
    let states = totals.iter().take(if is_apart { MOST_SERIES } else { 0 });
    let states = states.map(|(state, nanos)| (names.tracks[state].clone(), *nanos));
    let panel = Panel {
        title: format!("states that begin with {}", query.state.as_str()),
        unit: String::new(),
        range: length.whole_range(),
        is_relative: kymo::open::are_relative(recordings),
        content: Content::Lanes(Lanes {
            states: states.collect(),
            lanes: all
                .into_iter()
                .take(MOST_LANES)
                .map(|(_, lane)| lane)
                .collect(),
            more,
        }),
        losses: Vec::new(),
    };
    Ok((panel, found.coverage))
}

/// Numbers in the order of numbers, everything else in that of texts.
fn natural(a: &str, b: &str) -> std::cmp::Ordering {
    match (a.parse::<i64>(), b.parse::<i64>()) {
        (Ok(a), Ok(b)) => a.cmp(&b),
        _ => a.cmp(b),
    }
}

/// The runs of a lane: of each interval the state that took most of it; equal ones are joined.
fn with_runs(
    mut lane: Lane,
    bins: Bins,
    length: &Length,
    colour: &dyn Fn(u32) -> Option<Option<usize>>,
) -> Lane {
    for (bin, states) in bins {
        let mut busy = 0;
        let mut most: Option<(u64, Option<usize>)> = None;
        for (state, nanos) in states {
            let Some(colour) = colour(state) else {
                continue;
            };
            busy += nanos;
            if most.is_none_or(|(than, _)| nanos > than) {
                most = Some((nanos, colour));
            }
        }
        let Some((_, state)) = most else { continue };
        lane.total = lane.total.saturating_add(busy);
        let (begin, end) = length.times(bin);
        let share = (busy as f64 / end.abs_diff(begin).max(1) as f64).min(1.0);
        // Shares that look alike are one run.
        let share = (share * 8.0).ceil() / 8.0;
        match lane.runs.last_mut() {
            Some(run) if run.end == begin && run.state == state && run.share == share => {
                run.end = end;
            }
            _ => lane.runs.push(Run {
                begin,
                end,
                state,
                share,
            }),
        }
    }
    lane
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_in_states_is_kept_as_intervals_grow() {
        let mut reader = Reader {
            length: Length::new(8),
            lanes: HashMap::new(),
            more: HashMap::new(),
        };
        for at in 0..100 {
            let span = StateSpan {
                begin: at * 10,
                end: at * 10 + 10,
                track: (at % 2) as u32,
                lane: 0,
            };
            reader.take(&span, 0);
        }
        let nanos = reader.lanes[&0].values().flatten();
        assert_eq!(nanos.map(|(_, nanos)| nanos).sum::<u64>(), 1000);
        let lane = with_runs(
            Lane::default(),
            reader.lanes.remove(&0).unwrap(),
            &reader.length,
            &|state| Some(Some(state as usize)),
        );
        assert_eq!(lane.total, 1000);
        assert!(lane.runs.len() <= 9);
    }
}
