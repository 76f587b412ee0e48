//! Latencies, states and call trees of a range of time, which [`kymo::analysis`] makes.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use kymo::analysis::{
    CallTree, CallTreeQuery, Error, EventPattern, Latency, LatencyQuery, Options, PairBy, Sort,
    States, StatesQuery, Track, TrackBy,
};
use kymo::filter::{FieldNames, Filter, FilterError};
use kymo::pipeline::{Watched, Window};
use kymo_time::Timestamp;
use serde_json::{Value, json};

use crate::jobs::Job;
use crate::scene::{Scene, window};

/// Worst cases at most.
const MOST_WORST: u64 = 200;

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
    Latency(LatencyQuery),
    States(StatesQuery),
    Profile(CallTreeQuery),
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
        let events = match (pattern("start"), pattern("end_event")) {
            (Some(start), Some(end)) => Some((start, end)),
            (None, None) => None,
            _ => return Err("set both the start and the end event, or neither of them".into()),
        };
        let tracks = match fields("track")? {
            Some(names) => TrackBy::Fields(names),
            None => TrackBy::Recording,
        };
        let kind = match request["kind"].as_str() {
            Some("latency") => Kind::Latency(LatencyQuery {
                events,
                pair_by: match text("key") {
                    Some(key) => {
                        PairBy::parse(key).map_err(|error| error.render("pair by", false))?
                    }
                    None => PairBy::default(),
                },
                tracks,
                worst: request["worst"].as_u64().unwrap_or(20).min(MOST_WORST) as usize,
            }),
            Some("states") => Kind::States(StatesQuery {
                state: pattern("start").ok_or("set the event that begins a state")?,
                per: fields("key")?,
                tracks,
                filter: None,
                sort: Sort::Time,
            }),
            Some("profile") => Kind::Profile(CallTreeQuery {
                events,
                key: fields("key")?,
                tracks,
                within: window(begin, end),
            }),
            _ => return Err("`kind` is not `latency`, `states` or `profile`".into()),
        };
        let count = scene.recordings().len();
        let recordings = match request["recordings"].as_array() {
            None => Vec::new(),
            Some(list) => {
                let is_in = |at: usize| list.iter().any(|of| of.as_u64() == Some(at as u64));
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
        let select = &&filter;
        let watched = Watched::new(scene.recordings(), select, &progress, Some(&job.stop));
        let select = &watched;
        let options = Options {
            threads: query.threads,
            ..Options::default()
        };
        let recordings = scene.recordings();
        let json = |bytes: Vec<u8>| {
            serde_json::from_slice::<Value>(&bytes).map_err(|error| error.to_string())
        };
        match &self.kind {
            Kind::Latency(query) => {
                let latency = Latency::new(recordings, &select, query, &options).map_err(shown)?;
                let ranges = latency.histogram.ranges().into_iter();
                let ranges: Vec<Value> =
                    ranges.map(|of| json!([of.from, of.to, of.count])).collect();
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
                answer["histogram"] = ranges.into();
                answer["worst"] = worst.into();
                Ok(answer)
            }
            Kind::States(query) => {
                let states = States::new(recordings, &select, query, &options).map_err(shown)?;
                let tracks: Vec<Value> = states.tracks.iter().map(|of| place(&of.track)).collect();
                let mut answer = json(states.to_json())?;
                for (of, track) in answer["tracks"]
                    .as_array_mut()
                    .into_iter()
                    .flatten()
                    .zip(tracks)
                {
                    of["track"] = track;
                }
                Ok(answer)
            }
            Kind::Profile(query) => {
                let tree = CallTree::new(recordings, &select, query, &options).map_err(shown)?;
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
        }
    }
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
