//! Latencies, states and call trees of a range of time, which [`kymo::analysis`] makes.

mod states;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use kymo::analysis::{
    Breakdown, CallTree, CallTreeQuery, Error, EventPattern, GroupBy, Histogram, Latency,
    LatencyQuery, Options, PairBy, Sort, StackTree, StatesQuery, Track, TrackBy, Whole,
};
use kymo::filter::{FieldNames, Filter, FilterError};
use kymo::pipeline::{Select, Watched, Window};
use kymo_time::Timestamp;
use serde_json::{Value, json};

use crate::jobs::Job;
use crate::scene::{Scene, window};

/// Worst cases at most.
const MOST_WORST: u64 = 200;

/// Groups at most; those with the longest time.
const MOST_GROUPS: usize = 1000;

/// What is to be analysed, and how.
#[derive(Clone, Debug)]
pub(crate) struct AnalysisQuery {
    kind: Kind,
    begin: i64,
    end: i64,
    /// By recording, whether it is looked at; empty for all.
    recordings: Vec<bool>,
}

#[derive(Clone, Debug)]
enum Kind {
    /// With what groups are made of, if there are to be some.
    Latency(LatencyQuery, Option<GroupBy>),
    /// With the number of worst cases.
    States(StatesQuery, usize),
    Profile(CallTreeQuery),
    /// Call stacks that a field has.
    Stacks(FieldNames, TrackBy),
}

impl AnalysisQuery {
    /// Reads a request.
    pub(crate) fn new(
        scene: &Scene,
        request: &Value,
        (begin, end): (i64, i64),
    ) -> Result<Self, String> {
        let text = |key: &str| {
            request[key]
                .as_str()
                .map(str::trim)
                .filter(|text| !text.is_empty())
        };
        let pattern = |key: &str| text(key).map(EventPattern::new);
        let fields = |key: &'static str| {
            let shown = |error: FilterError| error.render(key, false);
            text(key).map(FieldNames::parse).transpose().map_err(shown)
        };
        let events = || match (pattern("start"), pattern("end_event")) {
            (Some(start), Some(end)) => Ok(Some((start, end))),
            (None, None) => Ok(None),
            _ => Err("set both the start and the end event, or neither of them"),
        };
        let tracks = match fields("track")? {
            Some(names) => TrackBy::Fields(names),
            None => TrackBy::Recording,
        };
        let worst = request["worst"].as_u64().unwrap_or(20).min(MOST_WORST) as usize;
        let kind = match request["kind"].as_str() {
            Some("latency") => {
                let pair_by = match text("key") {
                    Some(key) => {
                        PairBy::parse(key).map_err(|error| error.render("pair by", false))?
                    }
                    None => PairBy::default(),
                };
                let by = text("by").map(GroupBy::parse).transpose();
                let by = by.map_err(|error| error.render("group by", false))?;
                let query = LatencyQuery {
                    events: events()?,
                    pair_by,
                    tracks,
                    worst,
                };
                Kind::Latency(query, by)
            }
            Some("states") => {
                let query = StatesQuery {
                    state: pattern("start").ok_or("set the event that begins a state")?,
                    per: fields("key")?,
                    tracks,
                    filter: None,
                    sort: Sort::Time,
                };
                Kind::States(query, worst)
            }
            Some("stacks") => {
                let names = fields("key")?.ok_or("set the field that holds call stacks")?;
                Kind::Stacks(names, tracks)
            }
            Some("profile") => Kind::Profile(CallTreeQuery {
                events: events()?,
                key: fields("key")?,
                tracks,
                within: window(begin, end),
            }),
            _ => return Err("`kind` is not `latency`, `states`, `profile` or `stacks`".into()),
        };
        let count = scene.recordings().len();
        let recordings = match request["recordings"].as_array() {
            None => Vec::new(),
            Some(list) => {
                let is_in = |at: usize| list.iter().any(|entry| entry.as_u64() == Some(at as u64));
                (0..count).map(is_in).collect()
            }
        };
        Ok(Self {
            kind,
            begin,
            end,
            recordings,
        })
    }

    /// Does the work of a job.
    pub(crate) fn run(&self, scene: &Scene, job: &Job) -> Result<Value, String> {
        let is_tree = matches!(self.kind, Kind::Profile(_));
        let windows = scene.recordings().iter().enumerate().map(|(at, _)| {
            if self.recordings.get(at).is_some_and(|is_in| !is_in) {
                // A window that contains no time.
                return Window {
                    begin: Timestamp::MAX,
                    end: Timestamp::MIN,
                };
            }
            // What a range begins with may have been entered before it.
            let begin = if is_tree { i64::MIN } else { self.begin };
            let own = scene.options.windows.get(at).copied();
            own.unwrap_or(Window::ALL).and(window(begin, self.end))
        });
        let windows: Vec<Window> = windows.collect();
        let query = scene.query(None);
        let filter = Filter::new(&query.filter, &windows, scene.recordings())
            .map_err(|error| error.render("filter", false))?;
        let progress = |bytes| {
            job.bytes.fetch_add(bytes, Ordering::Relaxed);
        };
        let watched = Watched::new(scene.recordings(), &filter, &progress, Some(&job.stop));
        let select: &dyn Select = &watched;
        let options = Options {
            threads: query.threads,
            ..Options::default()
        };
        let recordings = scene.recordings();
        let json = |bytes: Vec<u8>| {
            serde_json::from_slice::<Value>(&bytes).map_err(|error| error.to_string())
        };
        match &self.kind {
            Kind::Latency(query, by) => {
                let by = by.clone().map(Breakdown::table);
                let feed = &mut Whole { recordings, select };
                let latency = Latency::of_feed(feed, query, &options, &mut by.unwrap_or_default());
                let mut latency = latency.map_err(shown)?;
                if let Some(groups) = &mut latency.groups {
                    groups.keep_top(MOST_GROUPS);
                }
                // Times as strings: browsers' numbers have 53 bits.
                let worst = latency.worst.iter().map(|slow| {
                    json!({
                        "nanos": slow.nanos,
                        "start": slow.start.as_nanos().to_string(),
                        "end": slow.end.as_nanos().to_string(),
                        "track": place(&slow.start_track), "end_track": place(&slow.end_track), "key": slow.key,
                    })
                });
                let worst: Vec<Value> = worst.collect();
                let mut answer = json(latency.to_json())?;
                let groups = latency.groups.iter().flat_map(|groups| &groups.rows);
                let groups = groups.map(|row| {
                    let values = row.values.iter().map(|value| value.text());
                    let [p50, p95, p99] =
                        [500, 950, 990].map(|share| row.distribution.histogram.percentile(share));
                    json!({
                        "by": values.collect::<Vec<_>>(), "count": row.distribution.times.count(), "total": row.distribution.times.total(),
                        "mean": row.distribution.times.mean(), "p50": p50, "p95": p95, "p99": p99, "max": row.distribution.times.max(),
                        "max_at": row.distribution.max_at.to_string(),
                    })
                });
                answer["groups"] = groups.collect::<Vec<_>>().into();
                answer["histogram"] = ranges(&latency.histogram);
                answer["worst"] = worst.into();
                Ok(answer)
            }
            Kind::States(query, worst) => {
                let run = states::Run {
                    recordings,
                    query,
                    options: &options,
                };
                run.answer(select, *worst).map_err(shown)
            }
            Kind::Profile(query) => {
                let tree = CallTree::new(recordings, select, query, &options).map_err(shown)?;
                let nodes = tree.nodes.iter().map(|node| {
                    json!([
                        node.caller,
                        node.track,
                        node.name,
                        node.calls,
                        node.total,
                        node.own,
                        node.longest,
                        node.longest_begin.to_string(),
                    ])
                });
                Ok(json!({
                    "nodes": nodes.collect::<Vec<_>>(),
                    "tracks": tree.tracks.iter().map(place).collect::<Vec<_>>(),
                    "open": tree.open, "unmatched": tree.unmatched, "dropped": tree.dropped,
                    "events": tree.coverage.events,
                }))
            }
            Kind::Stacks(field, tracks) => {
                let tree = StackTree::new(recordings, select, field, tracks, &options);
                let tree = tree.map_err(shown)?;
                if tree.stacks == 0 {
                    return Err(format!(
                        "no event of the range has a call stack with names in `{field}`: `kymo view --debug-info` names \
                         addresses"
                    ));
                }
                // Callers come before those that they call.
                let mut totals: Vec<u64> = tree.nodes.iter().map(|node| node.own).collect();
                for at in (0..tree.nodes.len()).rev() {
                    if let Some(caller) = tree.nodes[at].caller {
                        totals[caller] += totals[at];
                    }
                }
                let nodes = tree.nodes.iter().zip(&totals).map(|(node, total)| {
                    json!([
                        node.caller,
                        node.track,
                        node.name,
                        total,
                        total,
                        node.own,
                        0,
                        "0"
                    ])
                });
                Ok(json!({
                    "nodes": nodes.collect::<Vec<_>>(),
                    "tracks": tree.tracks.iter().map(place).collect::<Vec<_>>(),
                    "stacks": tree.stacks, "cut": tree.cut, "events": tree.coverage.events,
                }))
            }
        }
    }
}

/// A few ranges of lengths, each with the number of durations.
fn ranges(histogram: &Histogram) -> Value {
    let ranges = histogram.ranges().into_iter();
    let ranges = ranges.map(|range| json!([range.from, range.to, range.count]));
    ranges.collect::<Vec<_>>().into()
}

/// What the page finds a track by.
fn place(track: &Track) -> Value {
    let recording = track.recording.as_ref();
    let recording = recording.map(|path| path.display().to_string());
    json!({"recording": recording, "number": track.number, "name": track.name})
}

/// An error in the words of the page, which has no options.
fn shown(error: Error) -> String {
    match error {
        Error::NoSlices { .. } => {
            "no recording says which of its events begin and end something: set the start and \
                                   the end event above"
                .into()
        }
        Error::Field { purpose, error } => error.render(purpose, false),
        error => error.to_string(),
    }
}

/// Runs an analysis as a job.
pub(crate) fn start(
    jobs: &crate::jobs::Jobs,
    scene: &Arc<Scene>,
    query: AnalysisQuery,
) -> Arc<Job> {
    let scene = Arc::clone(scene);
    jobs.start(None, None, move |job| {
        let _ = job.answer.set(query.run(&scene, job));
    })
}
