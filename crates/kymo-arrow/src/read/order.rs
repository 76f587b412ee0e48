//! The order in which rows of several files become the events of their streams.

use std::collections::{BTreeMap, BTreeSet};

/// Where a row was: its stream, packet, and number in the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    pub(super) stream: u32,
    pub(super) packet: u64,
    pub(super) number: u64,
}

impl Position {
    /// Whether nothing of the same stream can be between this one and another one.
    pub(super) fn is_just_before(self, next: Self) -> bool {
        self.stream == next.stream
            && self.packet == next.packet
            && self.number.checked_add(1) == Some(next.number)
    }
}

/// The next row of each file.
///
/// The rows of a file are in order of time, and those of one stream in the order in which they were recorded. So the first
/// row of all in time is the next one of its stream, unless the stream goes back in time: then its numbers decide.
#[derive(Debug, Default)]
pub(super) struct Heads {
    by_time: BTreeSet<(i64, Position, usize)>,
    by_stream: BTreeMap<u32, BTreeSet<(Position, usize)>>,
    /// Of each file its time and position.
    files: Vec<(i64, Position)>,
}

impl Heads {
    /// Puts the next row of a file in; its time is not earlier than that of the rows before it.
    pub(super) fn put(&mut self, file: usize, time: i64, position: Position) {
        if self.files.len() <= file {
            self.files.resize(file + 1, (time, position));
        }
        self.files[file] = (time, position);
        self.by_time.insert((time, position, file));
        let of_stream = self.by_stream.entry(position.stream).or_default();
        of_stream.insert((position, file));
    }

    /// Where the row of a file was.
    pub(super) fn position(&self, file: usize) -> Position {
        self.files[file].1
    }

    /// Takes the file that holds the next row; `before` is the row that was taken before.
    pub(super) fn take(&mut self, before: Option<Position>) -> Option<usize> {
        let follows = before.and_then(|before| {
            let first = self.by_stream.get(&before.stream)?.first()?;
            before.is_just_before(first.0).then_some(*first)
        });
        let (position, file) = match follows {
            Some(follows) => follows,
            None => {
                let (_, position, _) = self.by_time.first()?;
                *self.by_stream.get(&position.stream)?.first()?
            }
        };
        self.by_time.remove(&(self.files[file].0, position, file));
        if let Some(of_stream) = self.by_stream.get_mut(&position.stream) {
            of_stream.remove(&(position, file));
        }
        Some(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes all rows of files, each with its time.
    fn taken(files: &[Vec<(i64, Position)>]) -> Vec<Position> {
        let mut heads = Heads::default();
        let mut at = vec![0; files.len()];
        for (file, rows) in files.iter().enumerate() {
            heads.put(file, rows[0].0, rows[0].1);
        }
        let mut taken: Vec<Position> = Vec::new();
        while let Some(file) = heads.take(taken.last().copied()) {
            taken.push(files[file][at[file]].1);
            at[file] += 1;
            if let Some(&(time, position)) = files[file].get(at[file]) {
                heads.put(file, time, position);
            }
        }
        taken
    }

    #[test]
    fn rows_of_a_stream_come_as_they_were_recorded() {
        let at = |stream, number| Position {
            stream,
            packet: 0,
            number,
        };
        // Two streams; at time 7 stream 0 has rows of both files, and then one that is earlier than it.
        let first = vec![(5, at(0, 0)), (7, at(0, 2)), (9, at(1, 1))];
        let second = vec![(6, at(1, 0)), (7, at(0, 1)), (7, at(0, 3))];
        let taken = taken(&[first, second]);
        for stream in 0..2 {
            let numbers = taken.iter().filter(|packet| packet.stream == stream);
            let numbers: Vec<_> = numbers.map(|packet| packet.number).collect();
            assert!(numbers.is_sorted(), "{taken:?}");
        }
        assert_eq!(taken.len(), 6);
    }
}
