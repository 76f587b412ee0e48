//! How many events there are on which track, and of which class.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use kymo_model::Recording;
use kymo_time::Timestamp;

use super::events::Error;
use super::run::{Analysis, Coverage, Occurrence, Options, Question, run};
use super::text::{Summary, percent, times_json, track_json};
use super::tracks::{Track, TrackBy, track};
use crate::AnyRecording;
use crate::filter::name_of;
use crate::pipeline::Select;
use crate::report::{Count, Style, Table};
use crate::tracks::OTHERS;

/// At most this many pairs of a class and a track are distinguished; others are put on one more track.
const MOST_PAIRS: usize = 1 << 21;

/// Counts of events by track and class.
#[derive(Clone, Debug, PartialEq)]
pub struct TrackStats {
    /// All events that have a time.
    pub total: Count,
    /// By track, most events first.
    pub tracks: Vec<OnTrack>,
    /// What was seen.
    pub coverage: Coverage,
    title: String,
    several: bool,
}

/// Events of one track.
#[derive(Clone, Debug, PartialEq)]
pub struct OnTrack {
    /// The track.
    pub track: Track,
    /// Its events.
    pub count: Count,
    /// By class, most events first.
    pub classes: Vec<ClassOnTrack>,
}

/// Events of one class on one track.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassOnTrack {
    /// Position of the recording.
    pub recording: usize,
    /// Number of the class.
    pub id: u64,
    /// Its name.
    pub name: Arc<str>,
    /// The events.
    pub count: Count,
}

/// The counts so far.
struct Work {
    /// Of each recording, how many classes the ones before it have.
    first_class: Vec<usize>,
    counts: HashMap<(u32, usize), Count, RandomState>,
    most: usize,
}

impl Analysis for Work {
    #[inline]
    fn event(&mut self, event: &Occurrence<'_>) {
        let class = self.first_class[event.recording] + event.class;
        let mut key = (event.track, class);
        if self.counts.len() >= self.most && !self.counts.contains_key(&key) {
            key.0 = OTHERS;
        }
        let time = Some(Timestamp::from_nanos(event.time));
        self.counts.entry(key).or_default().add_event(time, 0);
    }
}

impl TrackStats {
    /// Counts all events that `select` wants.
    ///
    /// # Errors
    ///
    /// No event has the fields that make a track.
    pub fn new(
        recordings: &[AnyRecording],
        select: &dyn Select,
        tracks: &TrackBy,
        options: &Options,
    ) -> Result<Self, Error> {
        let classes = |recording: &AnyRecording| recording.event_classes().len();
        let question = Question::of_all(recordings, tracks);
        let mut before = 0;
        let first_class = recordings.iter().map(|recording| {
            let first = before;
            before += classes(recording);
            first
        });
        let mut work = Work {
            first_class: first_class.collect(),
            counts: HashMap::default(),
            most: MOST_PAIRS,
        };
        let (coverage, known) = run(recordings, select, &question, options, &mut work)?;
        let mut counts: Vec<_> = work.counts.into_iter().collect();
        counts.sort_unstable_by_key(|&(key, _)| key);
        let mut names = Vec::with_capacity(before);
        for class in recordings.iter().flat_map(Recording::event_classes) {
            names.push(Arc::<str>::from(name_of(class)));
        }
        let mut stats = Self {
            total: Count::default(),
            tracks: Vec::new(),
            coverage,
            title: tracks.title(),
            several: recordings.len() > 1,
        };
        for of_track in counts.chunk_by(|a, b| a.0.0 == b.0.0) {
            let mut on_track = OnTrack {
                track: track(recordings, &known, of_track[0].0.0),
                count: Count::default(),
                classes: Vec::with_capacity(of_track.len()),
            };
            for ((_, class), count) in of_track {
                let recording = work.first_class.partition_point(|first| first <= class) - 1;
                let position = class - work.first_class[recording];
                on_track.count.add(count);
                on_track.classes.push(ClassOnTrack {
                    recording,
                    id: recordings[recording].event_classes()[position].id,
                    name: Arc::clone(&names[*class]),
                    count: count.clone(),
                });
            }
            // The sort is stable: of classes with as many events the earlier declared is first.
            on_track
                .classes
                .sort_by_key(|class| Reverse(class.count.events));
            stats.total.add(&on_track.count);
            stats.tracks.push(on_track);
        }
        stats.tracks.sort_by(|a, b| {
            let most = |on_track: &OnTrack| Reverse(on_track.count.events);
            most(a)
                .cmp(&most(b))
                .then_with(|| a.track.name.cmp(&b.track.name))
        });
        Ok(stats)
    }

    /// Leaves only the tracks with the most events.
    pub fn keep_top(&mut self, tracks: usize) {
        self.tracks.truncate(tracks);
    }

    /// One object: `events` (with `untimed`, those without a time, which are not counted below),
    /// `discarded_events`, `discarded_packets`, `first`, `last` (nanoseconds), `rate` (events per second), `tracks`
    /// (each with `recording`, `track`, `track_name`, `events`, `first`, `last`, `rate`,
    /// `event_classes`, of which each has `event_class`, `event` and the same counts), `faults`.
    pub fn to_json(&self) -> Vec<u8> {
        let duration = self.total.duration();
        let mut json = self.coverage.begin_json();
        times_json(&self.total, duration, &mut json);
        json.begin_list("tracks");
        for on_track in &self.tracks {
            json.begin_object();
            track_json(&on_track.track, &mut json);
            json.entry("events", on_track.count.events);
            times_json(&on_track.count, duration, &mut json);
            json.begin_list("event_classes");
            for class in &on_track.classes {
                json.begin_object();
                json.entry("event_class", class.id);
                json.entry("event", class.name.as_bytes());
                json.entry("events", class.count.events);
                times_json(&class.count, duration, &mut json);
                json.end_object();
            }
            json.end_list();
            json.end_object();
        }
        json.end_list();
        self.coverage.finish_json(json)
    }

    /// A summary, and a table with a line for each track and, below it, for each of its classes.
    pub fn to_text(&self, style: &Style) -> Vec<u8> {
        let total = &self.total;
        let duration = total.duration();
        let mut summary = Summary::new(style);
        summary.count("events", self.coverage.events);
        summary.times(total);
        summary.count("tracks", self.tracks.len() as u64);
        let mut text = summary.finish(&self.coverage, false);
        if !self.tracks.is_empty() {
            let mut table = Table::default();
            let title = format!("{} / event class", self.title);
            // When the first and the last were is left to the JSON: names need the room.
            table.header(&["events", "%", "events/s", &*title]);
            let mut row = |name: String, count: &Count| {
                table.row([
                    style.count(count.events),
                    percent(count.events as f64, total.events as f64),
                    style.rate(count.rate(duration)),
                    name,
                ]);
            };
            for on_track in &self.tracks {
                row(on_track.track.title(self.several), &on_track.count);
                for class in &on_track.classes {
                    row(format!("  {}", class.name), &class.count);
                }
            }
            text.push('\n');
            text += &table.fit_without(&[2], &[true, true, true, false], style);
        }
        text += &self.coverage.faults_text(style);
        text.into_bytes()
    }
}
