//! What rows mean, decided once for each recording and event class.

use std::fmt;
use std::ops::Range;

use kymo_model::{EventClass, FieldId, Kind, Recording, Scope, SliceRole, TrackRule};

use crate::AnyRecording;
use crate::filter::{FieldNames, FilterError, Wish};
use crate::timeline::RowPlan;

/// Fields that an option names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'q> {
    /// The option, for errors.
    pub(crate) option: &'static str,
    pub(crate) names: &'q FieldNames,
    /// Whether it is an error that no class has one of them.
    pub(crate) required: bool,
}

/// The fields that events must have in common to begin and end the same slice.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SliceKeys<'q> {
    /// Of events that begin it.
    pub(crate) begin: Option<Fields<'q>>,
    /// Of events that end it. If these are the same [`FieldNames`] and as much required, it is enough that
    /// either kind of events has them.
    pub(crate) end: Option<Fields<'q>>,
}

impl SliceKeys<'_> {
    fn is_shared(&self) -> bool {
        match (self.begin, self.end) {
            (Some(begin), Some(end)) => {
                std::ptr::eq(begin.names, end.names) && begin.required == end.required
            }
            _ => false,
        }
    }
}

/// What is asked of recordings.
#[derive(Debug, Default)]
pub(crate) struct TrackQuery<'q> {
    /// Fields whose values are tracks; by default, tracks are the recording's own, if it has any, and
    /// otherwise its streams.
    pub(crate) tracks: Option<Fields<'q>>,
    /// Whether no tracks are wanted but those of fields.
    pub(crate) without_own: bool,
    /// The kinds of slices.
    pub(crate) slices: Vec<SliceKeys<'q>>,
    pub(crate) counters: Vec<Fields<'q>>,
    /// Fields whose values are the same in events that belong together.
    pub(crate) flows: Vec<Fields<'q>>,
}

/// What is asked of the rows of an event class, by positions in a [`TrackQuery`].
#[derive(Clone, Debug, Default)]
pub(crate) struct ClassQuery {
    /// The kind of slices that they begin.
    pub(crate) begins: Option<usize>,
    /// The kind of slices that they end.
    pub(crate) ends: Option<usize>,
    /// The field that has the duration of the slice that each of them is.
    pub(crate) duration: Option<FieldId>,
    /// The field that has the name of the slice or state.
    pub(crate) name: Option<FieldId>,
    pub(crate) counters: Vec<usize>,
    pub(crate) flows: Vec<usize>,
    /// Fields that are series, as the recording says.
    pub(crate) series: Vec<FieldId>,
}

/// Of fields the columns that may have their values, for [`Values::first`](crate::pipeline::Values::first).
pub(crate) type FieldColumns = Box<[Range<usize>]>;

/// What the track of a row is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum TrackSource {
    /// That of the stream.
    #[default]
    Stream,
    /// One of the recording's own: its number and, unless [`Recording::tracks`] or [`Recording::track_name`] has it,
    /// its name.
    Own(FieldColumns),
    /// The values of fields.
    Fields(FieldColumns),
}

/// A beginning or an end of a slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edge {
    /// Position among the kinds of slices.
    pub(crate) slice: usize,
    pub(crate) key: FieldColumns,
}

/// What the rows of an event class mean.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClassTracks {
    pub(crate) track: TrackSource,
    pub(crate) begins: Option<Edge>,
    pub(crate) ends: Option<Edge>,
    /// The column that has the duration of the slice that the row is.
    pub(crate) duration: Option<usize>,
    /// The counters that the class has, by their positions.
    pub(crate) counters: Vec<(usize, FieldColumns)>,
    /// The flows that the class has, by their positions.
    pub(crate) flows: Vec<(usize, FieldColumns)>,
    /// The column that has its name.
    pub(crate) name: Option<usize>,
    /// The columns of its series.
    pub(crate) series: Box<[usize]>,
}

/// A query that is bound to recordings.
#[derive(Debug)]
pub(crate) struct TrackPlan {
    /// The columns to fill.
    pub(crate) rows: RowPlan,
    /// By recording and class; `None` of classes that are not looked at.
    classes: Vec<Vec<Option<ClassTracks>>>,
}

/// An option names a field that no event has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownField {
    /// The option.
    pub option: &'static str,
    /// What is wrong, shown under the name.
    pub error: Box<FilterError>,
}

impl fmt::Display for UnknownField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.option, self.error)
    }
}

impl std::error::Error for UnknownField {}

/// The wishes of a query, in the order in which each class is asked for them.
struct Wishes<'q> {
    all: Vec<(&'static str, Wish<'q>)>,
    tracks: Option<usize>,
    slices: Vec<[Option<usize>; 2]>,
    counters: Range<usize>,
    flows: Range<usize>,
}

impl<'q> Wishes<'q> {
    fn new(query: &TrackQuery<'q>) -> Self {
        let mut all = Vec::new();
        let mut add = |fields: Fields<'q>| {
            let Fields {
                option,
                names,
                required,
            } = fields;
            all.push((option, Wish { names, required }));
            all.len() - 1
        };
        let tracks = query.tracks.map(&mut add);
        let slices = query.slices.iter();
        let slices = slices.map(|slice| {
            let begin = slice.begin.map(&mut add);
            match slice.is_shared() {
                true => [begin, begin],
                false => [begin, slice.end.map(&mut add)],
            }
        });
        let slices = slices.collect();
        let mut several = |fields: &[Fields<'q>]| {
            let added = fields.iter().map(|&fields| add(fields));
            let added: Vec<usize> = added.collect();
            let first = added.first().copied().unwrap_or_default();
            first..first + added.len()
        };
        Self {
            tracks,
            slices,
            counters: several(&query.counters),
            flows: several(&query.flows),
            all,
        }
    }

    /// Those of a class: track, end, begin, counters, flows.
    fn of_class(&self, class: &ClassQuery) -> Vec<usize> {
        let end = class.ends.and_then(|slice| self.slices[slice][1]);
        let begin = class.begins.and_then(|slice| self.slices[slice][0]);
        let mut wishes: Vec<usize> = self.tracks.into_iter().chain(end).chain(begin).collect();
        wishes.extend(class.counters.iter().map(|at| self.counters.start + at));
        wishes.extend(class.flows.iter().map(|at| self.flows.start + at));
        wishes
    }
}

impl TrackPlan {
    /// Binds a query; `asked` says what is asked of each class that is looked at, by recording and class.
    ///
    /// # Errors
    ///
    /// No class that is asked has a required field.
    pub(crate) fn new(
        recordings: &[AnyRecording],
        query: &TrackQuery<'_>,
        asked: impl Fn(usize, usize) -> Option<ClassQuery>,
    ) -> Result<Self, UnknownField> {
        let wishes = Wishes::new(query);
        let of_class = |recording, class| Some(wishes.of_class(&asked(recording, class)?));
        let all: Vec<Wish<'_>> = wishes.all.iter().map(|(_, wish)| *wish).collect();
        let rows = RowPlan::of_wishes(recordings, &all, of_class).map_err(|(wish, error)| {
            UnknownField {
                option: wishes.all[wish].0,
                error: Box::new(error),
            }
        })?;
        let mut plan = Self {
            rows,
            classes: Vec::with_capacity(recordings.len()),
        };
        for (number, recording) in recordings.iter().enumerate() {
            let classes = 0..recording.event_classes().len();
            let classes = classes.map(|class| {
                let asked = asked(number, class)?;
                let own = match query.without_own {
                    true => None,
                    false => own_track(recording, class),
                };
                Some(plan.bind((number, recording), class, &asked, &wishes, own))
            });
            let classes = classes.collect();
            plan.classes.push(classes);
        }
        Ok(plan)
    }

    /// What the rows of recordings are by their own rules and roles alone, all their series included, and the names
    /// of slices where these are wanted. The columns come behind those that there are; a column of the same field
    /// serves.
    pub(crate) fn of_rules(recordings: &[AnyRecording], rows: RowPlan, with_names: bool) -> Self {
        let mut plan = Self {
            rows,
            classes: Vec::with_capacity(recordings.len()),
        };
        let wishes = Wishes::new(&TrackQuery::default());
        for (number, recording) in recordings.iter().enumerate() {
            let classes = 0..recording.event_classes().len();
            let classes = classes.map(|class| {
                let roles = recording.roles(class);
                let rule = recording.track_rule(class);
                let own = match &rule {
                    TrackRule::Position(field) => Some(vec![*field]),
                    TrackRule::Field { key, name } => {
                        Some([*key].into_iter().chain(*name).collect())
                    }
                    _ => None,
                };
                let asked = ClassQuery {
                    duration: match roles.slice {
                        SliceRole::Whole(duration) => Some(duration),
                        _ => None,
                    },
                    name: roles.name.filter(|_| with_names),
                    series: match &rule {
                        TrackRule::Series { values, .. } => series(recording, class, values),
                        _ => roles.counters,
                    },
                    ..ClassQuery::default()
                };
                Some(plan.bind((number, recording), class, &asked, &wishes, own))
            });
            let classes = classes.collect();
            plan.classes.push(classes);
        }
        plan.rows.finish();
        plan
    }

    fn bind(
        &mut self,
        (recording, source): (usize, &AnyRecording),
        class: usize,
        asked: &ClassQuery,
        wishes: &Wishes<'_>,
        own: Option<Vec<FieldId>>,
    ) -> ClassTracks {
        let mut next = 0;
        let rows = &mut self.rows;
        // The columns of the wish that comes next; without a wish there are none.
        let mut take = |wish: Option<usize>| -> FieldColumns {
            let count = wish.map_or(0, |wish| wishes.all[wish].1.names.len());
            let values = next..next + count;
            next = values.end;
            values
                .map(|value| rows.columns(recording, class, value))
                .collect()
        };
        let fields = take(wishes.tracks);
        let mut edge = |slice: Option<usize>, end: usize| {
            let slice = slice?;
            let key = take(wishes.slices[slice][end]);
            Some(Edge { slice, key })
        };
        let ends = edge(asked.ends, 1);
        let begins = edge(asked.begins, 0);
        let mut several = |asked: &[usize], first: usize| {
            let all = asked.iter().map(|&at| (at, take(Some(first + at))));
            all.filter(|(_, columns)| columns.iter().any(|columns| !columns.is_empty()))
                .collect()
        };
        let counters = several(&asked.counters, wishes.counters.start);
        let flows = several(&asked.flows, wishes.flows.start);
        let mut known = rows.of_fields(recording, class);
        let mut add = |field| {
            let known = known.entry(field);
            *known.or_insert_with(|| rows.add_field((recording, source), class, field))
        };
        let duration = asked.duration.map(&mut add);
        let name = asked.name.map(&mut add);
        let series = asked.series.iter().map(|&field| add(field)).collect();
        let track = match wishes.tracks {
            Some(_) => TrackSource::Fields(fields),
            None => match own {
                Some(fields) => {
                    let columns = fields.into_iter().map(add);
                    TrackSource::Own(columns.map(|column| column..column + 1).collect())
                }
                None => TrackSource::Stream,
            },
        };
        ClassTracks {
            track,
            begins,
            ends,
            duration,
            name,
            counters,
            flows,
            series,
        }
    }

    /// What the rows of each class of a recording mean; `None` if they are not looked at.
    #[inline]
    pub(crate) fn classes(&self, recording: usize) -> &[Option<ClassTracks>] {
        &self.classes[recording]
    }
}

/// Fields that are series: the optional ones, or those with the values themselves.
fn series(recording: &AnyRecording, class: usize, values: &[FieldId]) -> Vec<FieldId> {
    let schema = &recording.event_classes()[class].schema;
    let outer = |&field: &FieldId| match schema.field(field).parent {
        Some(parent) if schema.field(parent).name.is_some() => parent,
        _ => field,
    };
    values.iter().map(outer).collect()
}

/// The fields of own tracks in traces that were made of event logs.
fn named_track(class: &EventClass) -> Option<Vec<FieldId>> {
    let schema = &class.schema;
    let context = schema.root(Scope::CommonContext)?;
    let child = |name: &str, is_right: fn(&Kind) -> bool| {
        let child = schema.child(context, name)?;
        is_right(&schema.field(child).kind).then_some(child)
    };
    let number = child("track", |kind| matches!(kind, Kind::Uint { .. }))?;
    let name = child("track_name", |kind| matches!(kind, Kind::Text))?;
    Some(vec![number, name])
}

/// The fields that distinguish the recording's own tracks, which the rows of a class are on.
fn own_track(recording: &AnyRecording, class: usize) -> Option<Vec<FieldId>> {
    match recording.track_rule(class) {
        TrackRule::Position(position) => Some(vec![position]),
        TrackRule::Field { key, name: Some(_) } if recording.track_name(0).is_some() => {
            Some(vec![key])
        }
        TrackRule::Field {
            key,
            name: Some(name),
        } => Some(vec![key, name]),
        TrackRule::Stream => named_track(&recording.event_classes()[class]),
        // Series are values, of which a row has several: they are on their stream.
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::filter::name_of;

    #[test]
    fn classes_have_what_is_asked_of_them() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/lttng-small");
        let opened = crate::open::open(&[path], &Default::default());
        let recordings = opened.recordings;
        let parse = |names| FieldNames::parse(names).unwrap();
        let (size, same, comm, cpu) = (
            parse("u8"),
            parse("u8"),
            parse("next_comm"),
            parse("cpu_id"),
        );
        let fields = |names, required| Fields {
            option: "--x",
            names,
            required,
        };
        let class = |name: &str| {
            let mut classes = recordings[0].event_classes().iter();
            classes.position(|class| name_of(class) == name).unwrap()
        };
        let (begin, end, other) = (class("demo:ints"), class("demo:empty"), class("demo:sched"));
        let asked = |_, class| {
            Some(ClassQuery {
                begins: (class == begin).then_some(0),
                ends: (class == end).then_some(0),
                counters: vec![0, 1],
                flows: vec![0],
                ..ClassQuery::default()
            })
        };
        let plan = |end_names, end_required| {
            let query = TrackQuery {
                without_own: false,
                tracks: Some(fields(&cpu, true)),
                slices: vec![SliceKeys {
                    begin: Some(fields(&size, true)),
                    end: Some(fields(end_names, end_required)),
                }],
                counters: vec![fields(&size, true), fields(&comm, true)],
                flows: vec![fields(&comm, false)],
            };
            TrackPlan::new(&recordings, &query, asked)
        };
        let plan_of = plan(&size, true).unwrap();
        let planned = |class: usize| plan_of.classes(0)[class].as_ref().unwrap();
        let key = |edge: &Option<Edge>| edge.as_ref().map(|edge| edge.key.to_vec());
        // Columns are in the order: track, end, begin, counters, flows.
        assert_eq!(
            planned(begin).track,
            TrackSource::Fields(Box::from([Range { start: 0, end: 1 }]))
        );
        assert_eq!(
            key(&planned(begin).begins),
            Some(vec![Range { start: 1, end: 2 }])
        );
        assert_eq!(key(&planned(begin).ends), None);
        assert_eq!(
            planned(begin).counters,
            [(0, Box::from([Range { start: 2, end: 3 }]))]
        );
        assert!(planned(begin).flows.is_empty(), "it has no such field");
        assert_eq!(
            key(&planned(end).ends),
            Some(vec![Range { start: 1, end: 1 }])
        );
        assert_eq!(planned(other).counters.last().unwrap().0, 1);
        assert_eq!(planned(other).flows.len(), 1);
        // Another option says where the ends have the key: they must have it.
        assert_eq!(plan(&same, true).unwrap_err().option, "--x");
        assert!(plan(&same, false).is_ok());
    }
}
