//! What events say together: time in states, latencies between events, time in functions,
//! events of tracks.
//!
//! Every analysis goes once through the recordings in order of time, as one time line, and looks
//! at chosen event classes of whatever format. What it keeps is bounded: numbers by track or by
//! key, and what has begun and not ended. All durations are in nanoseconds.
//!
//! * [`States`]: how long it takes from one event to the next, by the track of the first.
//! * [`Latency`]: how long it takes from a start to its end, as a histogram.
//! * [`Profile`]: nested calls: time within each and without those that it calls.
//! * [`CallTree`]: the same by what calls what, for flame graphs.
//! * [`StackTree`]: the call stacks of events, for the same.
//! * [`TrackStats`]: how many events of which class there are on which track; [`GroupStats`]: of which group.
//! * [`FieldValues`]: the values of a field.
//!
//! A [`Breakdown`] takes the durations of states, latencies and profiles apart: by group, over time, or one by one.

mod breakdown;
mod by_track;
mod call_tree;
mod calls;
pub mod compare;
mod critical_path;
mod events;
mod feed;
mod group;
mod group_stats;
mod histogram;
mod latency;
mod measure;
mod measured;
mod messages;
mod moments;
mod numbers;
mod pending;
mod profile;
mod records;
mod run;
mod series;
mod stacks;
mod states;
mod switch;
#[cfg(test)]
mod tests;
mod text;
mod tracks;
mod transition_states;
mod transitions;
mod values;

pub use breakdown::{Breakdown, Distribution, GroupRow, GroupTable, LineFormat, Write};
pub use by_track::{ClassOnTrack, OnTrack, TrackStats};
pub use call_tree::{CallNode, CallTree, CallTreeQuery};
pub use events::{Error, EventPattern, UnknownEvent};
pub use feed::{Feed, Taker, Whole};
pub use group::{GroupBy, GroupValue};
pub use group_stats::GroupStats;
pub use histogram::{Bucket, Histogram};
pub use latency::{EachPair, Latency, LatencyQuery, PairBy, Slow, Unmatched};
pub use measure::{SideQuery, has_slices};
pub use messages::MessageQuery;
#[cfg(test)]
pub(crate) use messages::Sent;
pub(crate) use messages::{Between, messages};
pub use moments::{Drift, Moments};
pub use numbers::{NumberRange, Numbers};
pub use profile::{Profile, ProfileEdge, ProfileKey, ProfileQuery};
pub use run::{Coverage, Options};
pub use series::{LineSeries, PerfettoSeries, RrdSeries, SeriesOf, SeriesRow, SeriesSink};
pub use stacks::{StackNode, StackTree};
pub use states::{Sort, StateNames, StateSpan, StateTrack, States, StatesQuery};
pub use switch::{Switch, SwitchError};
pub use text::duration as duration_text;
pub use tracks::{Track, TrackBy};
pub use transition_states::{PathPiece, TransitionStates, TransitionsQuery};
pub use transitions::{Transition, TransitionCondition, TransitionError};
pub use values::{FieldValues, Outlier, ValueGroup, ValueSeries, ValuesQuery};

use kymo_model::{Recording, SliceRole};

use crate::AnyRecording;
use crate::tracks::OTHERS;

/// What the events of each class are: beginnings, ends, both, or nothing that is looked at.
fn roles(begins: Vec<Vec<bool>>, ends: Vec<Vec<bool>>) -> Vec<Vec<Option<run::Role>>> {
    let role = |(begins, ends): (bool, bool)| {
        let role = [(begins, run::BEGINS), (ends, run::ENDS)];
        let role = role.iter().filter(|(is, _)| *is);
        role.map(|(_, role)| *role).reduce(|a, b| a | b)
    };
    let of_recording =
        |(begins, ends): (Vec<bool>, Vec<bool>)| begins.into_iter().zip(ends).map(role).collect();
    begins.into_iter().zip(ends).map(of_recording).collect()
}

/// The same as recordings say it of their own events; `options` are those that say it otherwise.
fn own_roles(
    recordings: &[AnyRecording],
    options: &'static str,
) -> Result<Vec<Vec<Option<run::Role>>>, Error> {
    let role = |recording: &AnyRecording, class| match recording.roles(class).slice {
        SliceRole::Begin => Some(run::BEGINS),
        SliceRole::End => Some(run::ENDS),
        SliceRole::Whole(_) => Some(run::WHOLE),
        _ => None,
    };
    let roles = recordings.iter().map(|recording| {
        let classes = 0..recording.event_classes().len();
        classes.map(|class| role(recording, class)).collect()
    });
    let roles: Vec<Vec<_>> = roles.collect();
    match roles.iter().flatten().any(Option::is_some) {
        true => Ok(roles),
        false => Err(Error::NoSlices { options }),
    }
}

/// The element of a number, of a list that grows; `others` where the number has no place.
#[inline]
fn slot<'a, T: Default + Clone>(list: &'a mut Vec<T>, others: &'a mut T, number: u32) -> &'a mut T {
    if number == OTHERS {
        return others;
    }
    let place = number as usize;
    if place >= list.len() {
        list.resize(place + 1, T::default());
    }
    &mut list[place]
}

/// The elements of such a list with their numbers.
fn slots<T>(list: Vec<T>, others: T) -> impl Iterator<Item = (u32, T)> {
    (0..).zip(list).chain([(OTHERS, others)])
}

/// The header of a table: from column `first` on they are durations, and the last column has a
/// title of its own.
fn with_unit(columns: &[&str], first: usize, unit: text::Unit, title: &str) -> Vec<String> {
    let durations = columns
        .iter()
        .enumerate()
        .map(|(position, column)| match position < first {
            true => (*column).to_string(),
            false => format!("{column} ({})", unit.0),
        });
    durations.chain([title.to_string()]).collect()
}
