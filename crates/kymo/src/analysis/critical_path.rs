//! What something waited for, and what that waited for.

/// Maximum length of a chain of wake-ups.
const DEEPEST: usize = 64;

/// Time in a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interval {
    pub(super) begin: i64,
    pub(super) end: i64,
    pub(super) state: u16,
    /// The track on which an event ended it that another thing may have caused.
    pub(super) by: Option<u32>,
}

/// A piece of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) thing: u32,
    pub(super) state: u16,
    pub(super) begin: i64,
    pub(super) end: i64,
}

/// The path of a thing: its own intervals, and in place of those that another thing has ended what that did in this
/// time. `intervals` are by thing and in order of time, `thing_of` returns what a track is named after.
pub(super) fn path(
    intervals: &[&[Interval]],
    thing: u32,
    thing_of: impl Fn(u32) -> Option<u32>,
) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let walk = Walk {
        intervals,
        thing_of: &thing_of,
    };
    let own = intervals[thing as usize];
    if let (Some(first), Some(last)) = (own.first(), own.last()) {
        walk.go(thing, (first.begin, last.end), 0, &mut pieces);
    }
    pieces
}

struct Walk<'w, F> {
    intervals: &'w [&'w [Interval]],
    thing_of: &'w F,
}

impl<F: Fn(u32) -> Option<u32>> Walk<'_, F> {
    /// Adds the pieces of a thing in a range of time. Returns from when to when there were some.
    fn go(&self, thing: u32, (from, to): (i64, i64), depth: usize, pieces: &mut Vec<Piece>) {
        let own = self.intervals[thing as usize];
        let first = own.partition_point(|interval| interval.end <= from);
        for interval in own[first..]
            .iter()
            .take_while(|interval| interval.begin < to)
        {
            let (begin, end) = (interval.begin.max(from), interval.end.min(to));
            let piece = Piece {
                thing,
                state: interval.state,
                begin,
                end,
            };
            // Who ended it after the range has nothing to do with it.
            let by = interval
                .by
                .filter(|_| interval.end <= to && depth < DEEPEST);
            let by = by.and_then(self.thing_of).filter(|by| *by != thing);
            let Some(by) = by else {
                pieces.push(piece);
                continue;
            };
            let before = pieces.len();
            self.go(by, (begin, end), depth + 1, pieces);
            // Where nothing is known of it, the thing itself waited.
            let covered = match &pieces[before..] {
                [] => (end, end),
                all => (all[0].begin, all[all.len() - 1].end),
            };
            if covered.0 > begin {
                pieces.insert(
                    before,
                    Piece {
                        end: covered.0,
                        ..piece
                    },
                );
            }
            if covered.1 < end {
                pieces.push(Piece {
                    begin: covered.1,
                    ..piece
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(begin: i64, end: i64, state: u16, by: Option<u32>) -> Interval {
        Interval {
            begin,
            end,
            state,
            by,
        }
    }

    #[test]
    fn waits_are_what_others_did_meanwhile() {
        // 0 runs until 10, waits for 1 until 50, runs until 60. 1 waits for 2 until 30 and runs until 50.
        // 2 is known from 20 on.
        let all: [&[Interval]; 3] = [
            &[
                interval(0, 10, 0, None),
                interval(10, 50, 1, Some(101)),
                interval(50, 60, 0, None),
            ],
            &[interval(5, 30, 1, Some(102)), interval(30, 55, 0, None)],
            &[interval(20, 40, 0, None)],
        ];
        let found = path(&all, 0, |track| track.checked_sub(100));
        let found: Vec<_> = found
            .iter()
            .map(|piece| (piece.thing, piece.state, piece.begin, piece.end))
            .collect();
        assert_eq!(
            found,
            [
                (0, 0, 0, 10),
                (1, 1, 10, 20),
                (2, 0, 20, 30),
                (1, 0, 30, 50),
                (0, 0, 50, 60)
            ]
        );
        // The wakers are unknown.
        let found = path(&all, 0, |_| None);
        assert_eq!(found.len(), 3);
    }

    #[test]
    fn two_that_wake_each_other_end() {
        let all: [&[Interval]; 2] = [
            &[interval(0, 1000, 1, Some(1))],
            &[interval(0, 1000, 1, Some(0))],
        ];
        let found = path(&all, 0, Some);
        assert_eq!((found[0].begin, found[found.len() - 1].end), (0, 1000));
    }
}
