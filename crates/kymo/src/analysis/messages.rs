//! Messages between recordings: an event of one sends what an event of another receives.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use super::events::{Error, EventPattern};
use super::pending::Pending;
use super::run::{Analysis, BEGINS, ENDS, Occurrence, Options, Question, Role, run};
use super::tracks::TrackBy;
use crate::AnyRecording;
use crate::filter::FieldNames;
use crate::pipeline::Everything;
use crate::tracks::{Fields, Key, SliceKeys};

/// Sends and receives that may wait for each other: while clocks are apart, those of one recording may all come first.
const MOST_OPEN: usize = 1 << 21;
/// Messages of two recordings, from which on only those that bound the clocks are kept.
const MOST_POINTS: usize = 1 << 16;

/// Which events send and receive messages, and by which fields they are known to be of the same message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageQuery(String);

impl FromStr for MessageQuery {
    type Err = String;

    /// Reads `SEND:RECV:KEY`: names or patterns of events, which may have colons, and fields with commas between
    /// them; one that the receiving event calls otherwise is `FIELD=FIELD`.
    fn from_str(text: &str) -> Result<Self, String> {
        let query = Self(text.to_owned());
        let (events, key) = query.parts();
        FieldNames::parse_pairs(key).map_err(|error| error.to_string())?;
        match events.contains(':') {
            true => Ok(query),
            false => Err("expected SEND:RECV:KEY, two events and a field".to_owned()),
        }
    }
}

impl fmt::Display for MessageQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl MessageQuery {
    fn parts(&self) -> (&str, &str) {
        self.0.rsplit_once(':').unwrap_or(("", &self.0))
    }

    /// By recording and class, what sends and what receives. Colons are in the names of events, too: they are cut at
    /// the first one at which both parts name events.
    fn roles(&self, recordings: &[AnyRecording]) -> Result<Vec<Vec<Option<Role>>>, Error> {
        let (events, _) = self.parts();
        let mut failed = None;
        for (at, _) in events.match_indices(':') {
            let (send, receive) = (&events[..at], &events[at + 1..]);
            let sends = EventPattern::new(send).classes(recordings);
            let receives = EventPattern::new(receive).classes(recordings);
            match (sends, receives) {
                (Ok(sends), Ok(receives)) => return Ok(super::roles(sends, receives)),
                (Err(error), _) | (_, Err(error)) => failed = failed.or(Some(error)),
            }
        }
        Err(failed.map_or(Error::NoSlices { options: "" }, Error::Event))
    }
}

/// A message between two places: when it was sent and received, by the clocks there, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) sent: i64,
    pub(crate) received: i64,
}

/// The messages between two places, the first of which has the lower number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Between {
    /// Points of what the first sent: the time of the second, and by how much the first is ahead of it at least.
    pub(crate) lower: Vec<(i64, i128)>,
    /// The same of what the second sent: by how much the first is ahead at most.
    pub(crate) upper: Vec<(i64, i128)>,
    /// Number of points at which those that bound nothing are searched for.
    limit: usize,
    /// Messages.
    pub(crate) messages: u64,
    /// The first and last times of the second.
    pub(crate) span: Option<(i64, i64)>,
}

impl Between {
    /// Adds a message; `from_first` says who sent it.
    pub(crate) fn add(&mut self, message: Sent, from_first: bool) {
        let (sent, received) = (i128::from(message.sent), i128::from(message.received));
        let (points, time, ahead, is_lower) = match from_first {
            true => (&mut self.lower, message.received, sent - received, true),
            false => (&mut self.upper, message.sent, received - sent, false),
        };
        points.push((time, ahead));
        if points.len() >= self.limit.max(MOST_POINTS) {
            *points = hull(std::mem::take(points), is_lower);
            self.limit = points.len() * 2;
        }
        self.messages += 1;
        let (first, last) = self.span.unwrap_or((time, time));
        self.span = Some((first.min(time), last.max(time)));
    }

    /// Keeps only the points that bound lines.
    pub(crate) fn finish(&mut self) {
        self.lower = hull(std::mem::take(&mut self.lower), true);
        self.upper = hull(std::mem::take(&mut self.upper), false);
    }
}

/// The points that a line above all of them (`is_above`), or below them, can touch: half of their convex hull.
pub(crate) fn hull(mut points: Vec<(i64, i128)>, is_above: bool) -> Vec<(i64, i128)> {
    points.sort_unstable();
    let mut hull: Vec<(i64, i128)> = Vec::new();
    for point in points {
        let is_outside = |a: (i64, i128), b: (i64, i128)| {
            // The cross product has up to 130 bits: as doubles it is near enough, since what is kept needlessly does
            // no harm, and points on a line need not be kept.
            let (bx, by) = ((b.0 as f64 - a.0 as f64), (b.1 - a.1) as f64);
            let (px, py) = ((point.0 as f64 - a.0 as f64), (point.1 - a.1) as f64);
            let cross = bx * py - by * px;
            let slack = (bx * py).abs().max((by * px).abs()) * 1e-12;
            match is_above {
                true => cross < slack,
                false => cross > -slack,
            }
        };
        while let [.., a, b] = hull[..]
            && !is_outside(a, b)
        {
            hull.pop();
        }
        hull.push(point);
    }
    hull
}

/// The messages between places.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    pub(crate) between: BTreeMap<(usize, usize), Between>,
    /// Sends and receives of messages that came twice.
    pub(crate) doubled: u64,
    /// Those that were given up, since too many waited.
    pub(crate) dropped: u64,
}

/// A send or a receive that waits for the other one.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    is_send: bool,
    place: usize,
    time: i64,
}

struct Matching<'m> {
    places: &'m [usize],
    open: Pending<Key, Waiting>,
    found: Messages,
}

impl Matching<'_> {
    fn half(&mut self, key: Key, half: Waiting) {
        if matches!(key, Key::None | Key::Missing) {
            return;
        }
        let other = match self.open.remove(&key) {
            Some(other) if other.is_send != half.is_send => other,
            other => {
                self.found.doubled += u64::from(other.is_some());
                self.open.insert(key, half);
                return;
            }
        };
        let (send, receive) = match half.is_send {
            true => (half, other),
            false => (other, half),
        };
        if send.place == receive.place {
            return;
        }
        let places = (send.place.min(receive.place), send.place.max(receive.place));
        let message = Sent {
            sent: send.time,
            received: receive.time,
        };
        let between = self.found.between.entry(places).or_default();
        between.add(message, send.place == places.0);
    }
}

impl Analysis for Matching<'_> {
    fn event(&mut self, event: &Occurrence<'_>) {
        let Some(&place) = self.places.get(event.recording) else {
            return;
        };
        let half = |is_send| Waiting {
            is_send,
            place,
            time: event.time,
        };
        if event.role & ENDS != 0 {
            self.half(event.end_key.key(), half(false));
        }
        if event.role & BEGINS != 0 {
            self.half(event.begin_key.key(), half(true));
        }
    }
}

/// Finds the messages between recordings that are at different places.
///
/// # Errors
///
/// No recording has such events or such fields.
pub(crate) fn messages(
    recordings: &[AnyRecording],
    places: &[usize],
    query: &MessageQuery,
) -> Result<Messages, Error> {
    let roles = query.roles(recordings)?;
    let (_, key) = query.parts();
    let (send, receive) = FieldNames::parse_pairs(key).map_err(|error| Error::Field {
        purpose: "align-by-messages",
        error: Box::new(error),
    })?;
    let of_fields = |names| Fields {
        option: "align-by-messages",
        names,
        required: true,
    };
    let tracks = TrackBy::Recording;
    let question = Question {
        roles,
        tracks: &tracks,
        keys: SliceKeys {
            begin: Some(of_fields(&send)),
            end: Some(of_fields(&receive)),
        },
    };
    let mut matching = Matching {
        places,
        open: Pending::new(MOST_OPEN),
        found: Messages::default(),
    };
    run(
        recordings,
        &Everything,
        &question,
        &Options::default(),
        &mut matching,
    )?;
    matching.found.dropped = matching.open.dropped();
    matching
        .found
        .between
        .values_mut()
        .for_each(Between::finish);
    Ok(matching.found)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// A line is above all points if it is above those of the hull.
        #[test]
        fn the_hull_bounds_lines_as_all_points_do(
            points in prop::collection::vec((-1000i64..1000, -1000i128..1000), 1..60),
            slope in -20i128..20,
        ) {
            for is_above in [true, false] {
                let kept = hull(points.clone(), is_above);
                let height = |points: &[(i64, i128)]| {
                    let heights = points.iter().map(|&(x, y)| y - slope * i128::from(x));
                    match is_above {
                        true => heights.max(),
                        false => heights.min(),
                    }
                };
                prop_assert_eq!(height(&kept), height(&points));
                prop_assert!(kept.iter().all(|point| points.contains(point)));
            }
        }
    }

    #[test]
    fn queries_have_two_events_and_a_field() {
        for good in ["a:b:k", "net:tx:net:rx:src,seq", "a:b:x=y"] {
            assert!(good.parse::<MessageQuery>().is_ok(), "{good}");
        }
        for bad in ["", "a", "a:b", "a:b:"] {
            assert!(bad.parse::<MessageQuery>().is_err(), "{bad}");
        }
    }
}
