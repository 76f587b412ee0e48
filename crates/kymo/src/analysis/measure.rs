//! One side of a comparison: all that is measured of some recordings.

use super::breakdown::{Breakdown, GroupTable};
use super::compare::{Measured, Rate, Sample, Side};
use super::events::Error;
use super::feed::Whole;
use super::group::{GroupBy, Groups, joined};
use super::latency::{Latency, LatencyQuery};
use super::profile::{Profile, ProfileQuery};
use super::run::{Analysis, Coverage, Occurrence, Options, Question, run_with};
use super::tracks::TrackBy;
use super::values::{FieldValues, ValuesQuery};
use crate::AnyRecording;
use crate::filter::FieldNames;
use crate::pipeline::Select;
use crate::tracks::OTHERS;

/// At most this many groups are distinguished.
const MOST_GROUPS: usize = 1 << 16;

/// What is measured. Numbers of events always are.
#[derive(Clone, Debug)]
pub struct SideQuery {
    /// What groups are made by.
    pub by: GroupBy,
    /// What a track is.
    pub tracks: TrackBy,
    /// Latencies.
    pub latency: Option<LatencyQuery>,
    /// Times of calls without what they call.
    pub profile: Option<ProfileQuery>,
    /// Fields whose values are measured.
    pub fields: Vec<FieldNames>,
}

struct Work {
    groups: Groups,
    rates: Vec<Rate>,
    others: Rate,
    span: Option<(i64, i64)>,
}

impl Analysis for Work {
    fn event(&mut self, event: &Occurrence<'_>) {
        let (first, last) = self.span.unwrap_or((event.time, event.time));
        self.span = Some((first.min(event.time), last.max(event.time)));
        let group = self.groups.number(event);
        super::slot(&mut self.rates, &mut self.others, group).add(event.time);
    }
}

impl Side {
    /// Measures all events that `select` wants; the recordings are read once for each kind of numbers.
    ///
    /// # Errors
    ///
    /// No recording has such events or such fields.
    pub fn new(
        recordings: &[AnyRecording],
        select: &dyn Select,
        query: &SideQuery,
        options: &Options,
    ) -> Result<(Self, Coverage), Error> {
        let question = Question::of_all(recordings, &query.tracks);
        let mut work = Work {
            groups: Groups::new(&query.by, MOST_GROUPS, recordings, None),
            rates: Vec::new(),
            others: Rate::default(),
            span: None,
        };
        let extra = Breakdown::extra(&query.by);
        let run = run_with(recordings, select, &question, &extra, options, &mut work);
        let (coverage, known) = run?;
        let mut side = Self {
            span: work.span,
            ..Self::default()
        };
        let rates = (0..).zip(work.rates).chain([(OTHERS, work.others)]);
        for (number, rate) in rates.filter(|(_, rate)| rate.count() > 0) {
            let group = joined(&work.groups.values(number, &known, recordings));
            side.groups
                .insert(("events".to_string(), group), Measured::Events(rate));
        }
        let feed = &mut Whole { recordings, select };
        if let Some(latency) = &query.latency {
            let breakdown = &mut Breakdown::table(query.by.clone());
            let found = Latency::of_feed(feed, latency, options, breakdown)?;
            side.add("latency", found.groups);
        }
        if let Some(profile) = &query.profile {
            let breakdown = &mut Breakdown::table(query.by.clone());
            let found = Profile::of_feed(feed, profile, options, breakdown)?;
            side.add("self", found.groups);
        }
        for field in &query.fields {
            let values = ValuesQuery {
                field: field.clone(),
                by: query.by.clone(),
                tracks: query.tracks.clone(),
                outliers: None,
                worst: 0,
                top: 0,
            };
            let found = FieldValues::new(recordings, select, &values, options)?;
            let kind = format!("values.{field}");
            for group in found
                .groups
                .iter()
                .filter(|group| group.numbers.count() > 0)
            {
                let sample = Sample::of_numbers(&group.numbers);
                side.groups.insert(
                    (kind.clone(), joined(&group.values)),
                    Measured::Numbers(sample),
                );
            }
        }
        Ok((side, coverage))
    }

    fn add(&mut self, kind: &str, table: Option<GroupTable>) {
        for row in table.iter().flat_map(|table| &table.rows) {
            let sample = Sample::of_durations(&row.distribution);
            let key = (kind.to_string(), joined(&row.values));
            self.groups.insert(key, Measured::Numbers(sample));
        }
    }
}

/// Whether recordings say themselves which of their events begin and end something.
pub fn has_slices(recordings: &[AnyRecording]) -> bool {
    super::own_roles(recordings, "").is_ok()
}
