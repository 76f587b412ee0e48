//! What a target cannot hold, counted.

use std::sync::{Arc, Mutex, PoisonError};

/// Something that a target cannot hold, and what is done instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    Untimed,
    Early,
    NotUtf8,
    UnknownSample,
    OpenSlice,
    UnmatchedEnd,
    NotNested,
    TooDeep,
    NoCounter,
    MoreCounters,
    MoreTracks,
    NoValue,
    UntimedForRows,
    BeforeRows,
    Late,
    Compound,
    OtherCodes,
    Symbols,
    Sections,
    Renamed,
    NoEpoch,
    Inexact,
    NotInDatum,
}

impl Loss {
    const ALL: [(Self, &str); 23] = [
        (
            Self::Untimed,
            "events without a time, set to the time of the event before them",
        ),
        (Self::Early, "events before the zero of time, set to it"),
        (
            Self::NotUtf8,
            "texts that are not UTF-8, of which each wrong byte NN is written as `\\xNN`",
        ),
        (Self::UnknownSample, "samples that are unknown, left out"),
        (Self::OpenSlice, "slices that no event ends"),
        (
            Self::UnmatchedEnd,
            "events that end a slice which no event began, written as instants",
        ),
        (
            Self::NotNested,
            "slices that were cut off where the slice around them ended",
        ),
        (
            Self::TooDeep,
            "events that begin a slice within too many others, written as instants like their ends",
        ),
        (
            Self::NoCounter,
            "values of counters that are missing or no numbers, left out",
        ),
        (
            Self::MoreCounters,
            "too many counters: values of the rest, left out",
        ),
        (
            Self::MoreTracks,
            "too many tracks: events of the rest, written to the track of their stream",
        ),
        (
            Self::NoValue,
            "values that are missing or no numbers, left out",
        ),
        (Self::UntimedForRows, "events without a time, left out"),
        (
            Self::BeforeRows,
            "events before the first row that is kept, left out",
        ),
        (
            Self::Late,
            "events later than 64 bits of ticks can hold, set to the last tick",
        ),
        (
            Self::Compound,
            "values that are arrays or structures, left out",
        ),
        (
            Self::OtherCodes,
            "too many event codes without a definition: events of the rest, written with one code",
        ),
        (
            Self::Symbols,
            "symbols of CPEL files, left out; datums that show them are written as text",
        ),
        (
            Self::Sections,
            "sections of CPEL files whose type is not known, left out",
        ),
        (
            Self::Renamed,
            "kinds of events without a name, or with blanks, `(` or `%` in it, for which `_` is written",
        ),
        (
            Self::NoEpoch,
            "recordings that began before 2001-09-09, or at an unknown time, put so long after \
             2017-03-30 14:45:08, where elog counts from",
        ),
        (
            Self::Inexact,
            "events so long after the first one that their times are up to some nanoseconds off",
        ),
        (
            Self::NotInDatum,
            "numbers that are not integers of 32 bits, written as text",
        ),
    ];
}

/// How often each of these happened, counted by all threads. A lock, since machines of 32 bits
/// may have no atomic numbers of 64.
#[derive(Debug, Default)]
pub struct Losses {
    counts: Mutex<[u64; Loss::ALL.len()]>,
}

impl Losses {
    pub(super) fn add(&self, loss: Loss, count: u64) {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)[loss as usize] += count;
    }

    /// What happened at all, a line each, for people.
    pub fn lines(&self) -> Vec<String> {
        let counts = *self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let reported = Loss::ALL.iter().map(|&(loss, what)| {
            let count = counts[loss as usize];
            (count > 0).then(|| format!("{what}: {count}"))
        });
        reported.flatten().collect()
    }
}

/// The times of events, where a target needs one of each.
#[derive(Debug)]
pub(super) struct Times {
    losses: Arc<Losses>,
    /// Nanoseconds of the event before.
    last: i64,
}

impl Times {
    pub(super) fn new(losses: Arc<Losses>) -> Self {
        Self { losses, last: 0 }
    }

    /// The time of the next event, from its nanoseconds since the zero of the target: one without a
    /// time gets that of the event before it.
    #[inline]
    pub(super) fn next(&mut self, nanos: Option<i64>) -> i64 {
        match nanos {
            Some(nanos) => self.last = nanos,
            None => self.losses.add(Loss::Untimed, 1),
        }
        self.last
    }

    /// The same, where nothing is before the zero of the target: what is gets that time.
    #[inline]
    pub(super) fn next_from_zero(&mut self, nanos: Option<i64>) -> u64 {
        u64::try_from(self.next(nanos)).unwrap_or_else(|_| {
            self.losses.add(Loss::Early, 1);
            self.last = 0;
            0
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_without_a_time_have_that_of_the_one_before() {
        let losses = Arc::new(Losses::default());
        let mut times = Times::new(Arc::clone(&losses));
        let found = [None, Some(5), None, Some(-5), None].map(|nanos| times.next(nanos));
        assert_eq!(found, [0, 5, 5, -5, -5]);
        let found = [Some(5), None, Some(-5), None].map(|nanos| times.next_from_zero(nanos));
        assert_eq!(found, [5, 5, 0, 0]);
        let lines = losses.lines();
        assert!(
            lines[0].ends_with(": 5") && lines[1].ends_with(": 1"),
            "{lines:?}"
        );
    }

    #[test]
    fn each_loss_has_its_line() {
        let losses = Losses::default();
        assert_eq!(losses.lines(), <[String; 0]>::default());
        for (place, &(loss, what)) in Loss::ALL.iter().enumerate() {
            assert_eq!(loss as usize, place);
            losses.add(loss, place as u64 + 1);
            assert_eq!(losses.lines()[place], format!("{what}: {}", place + 1));
        }
    }
}
