//! Time in states that events bring things to, such as threads; critical paths through wakeups.

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::RandomState;
use kymo_model::{Recording, Value};

use super::breakdown::{Distribution, GroupTable};
use super::critical_path::{Interval, Piece, path};
use super::events::Error;
use super::group::GroupValue;
use super::run::{Analysis, Coverage, Extra, Occurrence, Options, Question, Role, SEEN, run_with};
use super::text::{Summary, duration};
use super::tracks::TrackBy;
use super::transitions::Transition;
use crate::AnyRecording;
use crate::filter::{FieldNames, Glob};
use crate::pipeline::Select;
use crate::report::Style;
use crate::tracks::{Key, RowKey, SliceKeys, TrackKey};

/// At most this many things are distinguished.
const MOST_THINGS: usize = 1 << 18;
/// Intervals that are kept for a critical path.
const MOST_INTERVALS: usize = 1 << 23;

/// Which events bring what to which state.
#[derive(Clone, Debug)]
pub struct TransitionsQuery {
    /// The transitions.
    pub transitions: Vec<Transition>,
    /// What a track is: where an event brings something from one state to another, the thing that its
    /// track is named after has done it.
    pub tracks: TrackBy,
    /// The names of the things that are shown; without it, all.
    pub filter: Option<Glob>,
    /// The thing whose critical path is shown.
    pub path_of: Option<String>,
}

/// Time in states, by thing and state.
#[derive(Clone, Debug)]
pub struct TransitionStates {
    /// A row for each thing and state; of a critical path, what it consists of.
    pub table: GroupTable,
    /// The pieces of the critical path, where one was asked for.
    pub path: Option<Vec<PathPiece>>,
    /// States that had not ended when the recordings did.
    pub open: u64,
    /// States that are not counted, since they end before they begin.
    pub backwards: u64,
    /// Things, or intervals of the path, that there was no memory for.
    pub dropped: u64,
    /// What was seen.
    pub coverage: Coverage,
}

/// A piece of a critical path.
#[derive(Clone, Debug, PartialEq)]
pub struct PathPiece {
    /// When it begins, in nanoseconds.
    pub begin: i64,
    /// When it ends.
    pub end: i64,
    /// The thing that it belongs to: its value, its name and its state.
    pub values: Vec<GroupValue>,
}

/// A thing.
#[derive(Debug)]
struct Thing {
    key: Key,
    name: Key,
    state: Option<u16>,
    since: i64,
    intervals: Vec<Interval>,
}

/// What an event does, by positions among the fields that were asked for.
#[derive(Clone, Debug)]
struct Step {
    thing: usize,
    name: Option<usize>,
    from: Option<u16>,
    state: u16,
    conditions: Vec<(usize, Vec<i64>, bool)>,
}

struct Work {
    /// By recording and class: of the steps of each inner list the first one counts that applies.
    steps: Vec<Vec<Vec<Vec<Step>>>>,
    numbers: HashMap<Key, u32, RandomState>,
    things: Vec<Thing>,
    times: BTreeMap<(u32, u16), Distribution>,
    keeps: bool,
    kept: usize,
    backwards: u64,
    dropped: u64,
}

/// Fields that are asked for, each once.
#[derive(Default)]
struct Asked<'q>(Vec<&'q FieldNames>);

impl<'q> Asked<'q> {
    fn add(&mut self, names: &'q FieldNames) -> usize {
        let text = names.to_string();
        let known = self.0.iter().position(|field| field.to_string() == text);
        known.unwrap_or_else(|| {
            self.0.push(names);
            self.0.len() - 1
        })
    }
}

impl Work {
    fn value<'k>(event: &Occurrence<'k>, field: usize) -> Value<'k> {
        let columns = event.more(field);
        columns.map_or(Value::Missing, |columns| {
            let row = RowKey {
                values: event.by.values,
                fields: columns,
            };
            row.first()
        })
    }

    fn thing(&mut self, key: Key) -> Option<u32> {
        if let Some(&number) = self.numbers.get(&key) {
            return Some(number);
        }
        if self.things.len() >= MOST_THINGS {
            self.dropped += 1;
            return None;
        }
        let number = self.things.len() as u32;
        self.numbers.insert(key.clone(), number);
        self.things.push(Thing {
            key,
            name: Key::Missing,
            state: None,
            since: 0,
            intervals: Vec::new(),
        });
        Some(number)
    }

    fn apply(&mut self, step: &Step, number: u32, event: &Occurrence<'_>) {
        let thing = &mut self.things[number as usize];
        if let Some(name) = step.name {
            let name = Key::of(Self::value(event, name));
            if name != Key::Missing && name != thing.name {
                thing.name = name;
            }
        }
        let before = thing.state.replace(step.state);
        let begin = std::mem::replace(&mut thing.since, event.time);
        let Some(state) = before else {
            return;
        };
        if event.time < begin {
            self.backwards += 1;
            return;
        }
        let times = self.times.entry((number, state)).or_default();
        times.add(event.time.abs_diff(begin), begin);
        if self.keeps {
            if self.kept >= MOST_INTERVALS {
                self.dropped += 1;
                return;
            }
            self.kept += 1;
            thing.intervals.push(Interval {
                begin,
                end: event.time,
                state,
                // Who did it.
                by: step.from.map(|_| event.track),
            });
        }
    }
}

impl Analysis for Work {
    fn event(&mut self, event: &Occurrence<'_>) {
        let steps = std::mem::take(&mut self.steps[event.recording][event.class]);
        for alternatives in &steps {
            let holds = |step: &&Step| {
                step.conditions.iter().all(|(field, values, is_negated)| {
                    let value = match Self::value(event, *field) {
                        Value::Uint(value) | Value::Bits(value) => i64::try_from(value).ok(),
                        Value::Sint(value) => Some(value),
                        _ => None,
                    };
                    value.is_some_and(|value| values.contains(&value) != *is_negated)
                })
            };
            let Some(step) = alternatives.iter().find(holds) else {
                continue;
            };
            let key = Key::of(Self::value(event, step.thing));
            if key == Key::Missing {
                continue;
            }
            let Some(number) = self.thing(key) else {
                continue;
            };
            let state = self.things[number as usize].state;
            if step.from.is_none() || state.is_none() || state == step.from {
                self.apply(step, number, event);
            }
        }
        self.steps[event.recording][event.class] = steps;
    }
}

impl TransitionStates {
    /// Measures the states of all events that `select` wants.
    ///
    /// # Errors
    ///
    /// No recording has such events or such fields.
    pub fn new(
        recordings: &[AnyRecording],
        select: &dyn Select,
        query: &TransitionsQuery,
        options: &Options,
    ) -> Result<Self, Error> {
        let mut asked = Asked::default();
        let mut states: Vec<String> = Vec::new();
        let mut state = |name: &String| {
            let known = states.iter().position(|state| state == name);
            known.unwrap_or_else(|| {
                states.push(name.clone());
                states.len() - 1
            }) as u16
        };
        let of_class = |recording: &AnyRecording| vec![Vec::new(); recording.event_classes().len()];
        let mut steps: Vec<Vec<Vec<Vec<Step>>>> = recordings.iter().map(of_class).collect();
        for transition in &query.transitions {
            let step = Step {
                thing: asked.add(&transition.thing),
                name: transition.name.as_ref().map(|name| asked.add(name)),
                from: transition.from.as_ref().map(&mut state),
                state: state(&transition.state),
                conditions: transition
                    .conditions
                    .iter()
                    .map(|condition| {
                        (
                            asked.add(&condition.field),
                            condition.values.clone(),
                            condition.is_negated,
                        )
                    })
                    .collect(),
            };
            let classes = transition.event.classes(recordings).map_err(Error::Event)?;
            for (steps, classes) in steps.iter_mut().zip(classes) {
                let meant = steps
                    .iter_mut()
                    .zip(classes)
                    .filter(|(_, is_meant)| *is_meant);
                for (steps, _) in meant {
                    let same = steps
                        .iter_mut()
                        .find(|alternatives: &&mut Vec<Step>| alternatives[0].thing == step.thing);
                    match same {
                        Some(alternatives) => alternatives.push(step.clone()),
                        None => steps.push(vec![step.clone()]),
                    }
                }
            }
        }
        let role = |steps: &Vec<Vec<Step>>| -> Option<Role> { (!steps.is_empty()).then_some(SEEN) };
        let question = Question {
            roles: steps
                .iter()
                .map(|classes| classes.iter().map(role).collect())
                .collect(),
            tracks: &query.tracks,
            keys: SliceKeys::default(),
        };
        let extra = Extra {
            more: &asked.0,
            ..Extra::default()
        };
        let mut work = Work {
            steps,
            numbers: HashMap::default(),
            things: Vec::new(),
            times: BTreeMap::new(),
            keeps: query.path_of.is_some(),
            kept: 0,
            backwards: 0,
            dropped: 0,
        };
        let run = run_with(recordings, select, &question, &extra, options, &mut work);
        let (coverage, known) = run?;
        let titles = |thing: &Thing, state: u16| {
            vec![
                GroupValue::of(thing.key.clone()),
                GroupValue::of(thing.name.clone()),
                GroupValue::of_text(&states[usize::from(state)]),
            ]
        };
        let is_wanted = |thing: &Thing| {
            let filter = query.filter.as_ref();
            filter.is_none_or(|glob| glob.matches(thing.name.text().as_bytes()))
        };
        let open = work
            .things
            .iter()
            .filter(|thing| thing.state.is_some())
            .count() as u64;
        let mut pieces = None;
        let rows: Vec<(Vec<GroupValue>, Distribution)> = match &query.path_of {
            None => {
                let rows = work.times.iter().map(|(&(thing, state), distribution)| {
                    (&work.things[thing as usize], state, distribution)
                });
                let rows = rows.filter(|(thing, ..)| is_wanted(thing));
                rows.map(|(thing, state, distribution)| {
                    (titles(thing, state), distribution.clone())
                })
                .collect()
            }
            Some(text) => {
                let start = work
                    .things
                    .iter()
                    .position(|thing| thing.key.text() == *text);
                let start = start.ok_or_else(|| Error::NoThing { text: text.clone() })?;
                let thing_of = |track: u32| match known.key(track) {
                    Some(TrackKey::Fields(key)) => {
                        let first = key.parts().first()?;
                        work.numbers.get(first).copied()
                    }
                    _ => None,
                };
                let all: Vec<&[Interval]> = work
                    .things
                    .iter()
                    .map(|thing| &thing.intervals[..])
                    .collect();
                let found = path(&all, start as u32, thing_of);
                let values =
                    |piece: &Piece| titles(&work.things[piece.thing as usize], piece.state);
                let mut times: BTreeMap<(u32, u16), Distribution> = BTreeMap::new();
                for piece in &found {
                    let distribution = times.entry((piece.thing, piece.state)).or_default();
                    distribution.add(piece.end.abs_diff(piece.begin), piece.begin);
                }
                let found = found.iter().map(|piece| PathPiece {
                    begin: piece.begin,
                    end: piece.end,
                    values: values(piece),
                });
                pieces = Some(found.collect());
                let rows = times.into_iter();
                rows.map(|((thing, state), distribution)| {
                    (titles(&work.things[thing as usize], state), distribution)
                })
                .collect()
            }
        };
        let first = query
            .transitions
            .first()
            .map(|transition| transition.thing.to_string());
        let titles = [
            first.unwrap_or_default(),
            "name".to_string(),
            "state".to_string(),
        ];
        Ok(Self {
            table: GroupTable::new(titles.to_vec(), rows),
            path: pieces,
            open,
            backwards: work.backwards,
            dropped: work.dropped,
            coverage,
        })
    }

    fn total(&self) -> u64 {
        let totals = self
            .table
            .rows
            .iter()
            .map(|row| row.distribution.times.total());
        totals.fold(0, u64::saturating_add)
    }

    /// One object: `events`, `untimed`, `discarded_events`, `discarded_packets`, `total`, `open`, `backwards`, `dropped`,
    /// `groups` (as of other analyses), `path` (null, or each with `begin`, `end`, `by`), `faults`.
    pub fn to_json(&self) -> Vec<u8> {
        let mut json = self.coverage.begin_json();
        json.entry("total", self.total());
        json.entry("open", self.open);
        json.entry("backwards", self.backwards);
        json.entry("dropped", self.dropped);
        self.table.to_json(&mut json);
        match &self.path {
            None => json.entry("path", None::<u64>),
            Some(pieces) => {
                json.begin_list("path");
                for piece in pieces {
                    json.begin_object();
                    json.entry("begin", piece.begin);
                    json.entry("end", piece.end);
                    let titles = self.table.titles.iter().map(String::as_str);
                    super::group::by_json(titles, &piece.values, &mut json);
                    json.end_object();
                }
                json.end_list();
            }
        }
        self.coverage.finish_json(json)
    }

    /// A summary, and a row for each thing and state.
    pub fn to_text(&self, style: &Style) -> Vec<u8> {
        let mut summary = Summary::new(style);
        match &self.path {
            Some(pieces) => {
                summary.row("critical path", duration(self.total()));
                summary.count("pieces", pieces.len() as u64);
            }
            None => {
                summary.row("time in states", duration(self.total()));
                summary.count("open at the end", self.open);
            }
        }
        summary.some("left out, time went back", self.backwards);
        summary.some("left out, too many", self.dropped);
        let mut text = summary.finish(&self.coverage, true);
        if !self.table.rows.is_empty() {
            text.push('\n');
            text += &self.table.to_text(self.total(), style);
        }
        text += &self.coverage.faults_text(style);
        text.into_bytes()
    }
}
