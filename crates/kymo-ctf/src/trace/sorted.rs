//! Packets of a stream that a file does not have in the order of time, put in order for repairing.
//!
//! Times of packets may be damaged themselves. So those are put in order first that agree with
//! themselves (their events are in order between their times) and with each other: as many as
//! can be without two of them at the same time. Then those that fit between them by their own times.
//! What is left has a place only if it stands in the file between two packets that follow each other.

use super::table::{Row, Table};

/// Packets in the order of time.
#[derive(Debug, Default)]
pub(super) struct Sorted {
    pub(super) packets: Table,
    /// Those that are left out, and why.
    pub(super) left_out: Vec<(Row, LeftOut)>,
}

/// Why a packet has no place among the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeftOut {
    /// It is there already.
    Copy,
    /// Its times contradict those of others, and its neighbours in the file are elsewhere.
    NoPlace,
}

/// A packet that is at its place: its times, and its position in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Placed {
    end: u64,
    begin: u64,
    position: usize,
}

/// Whether a packet begins before the end of the one before it.
pub(super) fn overlap(packets: &Table) -> bool {
    let mut before = None;
    packets.rows(0).any(|row| {
        let before = before.replace(row.begin.max(row.end));
        before.flatten() > row.begin && row.begin.is_some()
    })
}

/// Puts packets in the order of time: `span` returns when a packet begins and ends, if it agrees with
/// itself, and `is_same` whether two have the same bytes. `None` where they stay as they are.
pub(super) fn sorted(
    packets: &Table,
    span: impl Fn(&Row) -> Option<(u64, u64)>,
    is_same: impl Fn(&Row, &Row) -> bool,
) -> Option<Sorted> {
    let mut agreeing = Vec::new();
    let mut others = Vec::new();
    for (position, row) in packets.rows(0).enumerate() {
        let (to, times) = match span(&row) {
            Some(span) => (&mut agreeing, Some(span)),
            None => (&mut others, row.begin.zip(row.end)),
        };
        let (begin, end) = times.unwrap_or((u64::MAX, 0));
        to.push(Placed {
            end,
            begin,
            position,
        });
    }
    let row = |packet: &Placed| packets.get(packet.position);
    let mut left_out = Vec::new();
    // Of intervals that overlap, most stay if always the one that ends first does.
    agreeing.sort_unstable();
    let mut placed: Vec<Placed> = Vec::with_capacity(agreeing.len());
    for packet in agreeing {
        match placed.last() {
            Some(last) if (last.begin, last.end) == (packet.begin, packet.end) => {
                match row(last).zip(row(&packet)) {
                    Some((last, copy)) if is_same(&last, &copy) => {
                        left_out.push((copy, LeftOut::Copy));
                    }
                    _ if packet.begin == packet.end => placed.push(packet),
                    _ => others.push(packet),
                }
            }
            Some(last) if packet.begin < last.end => others.push(packet),
            _ => placed.push(packet),
        }
    }
    // Gaps do not overlap, so that what fits into one needs only be compared with what else does.
    others.sort_unstable();
    let mut fitting: Vec<Placed> = Vec::new();
    others.retain(|packet| {
        let behind = placed.partition_point(|placed| placed.begin < packet.end);
        let is_behind =
            |before: Option<&Placed>| before.is_none_or(|before| before.end <= packet.begin);
        let fits = packet.begin <= packet.end
            && is_behind(behind.checked_sub(1).map(|before| &placed[before]))
            && is_behind(fitting.last());
        if fits {
            fitting.push(*packet);
        }
        !fits
    });
    placed.extend(fitting);
    placed.sort_unstable();
    if placed.is_sorted_by_key(|packet| packet.position) && left_out.is_empty() {
        return None;
    }
    // For each packet that has a place, which one that is.
    let mut places = vec![None; packets.len()];
    for (place, packet) in placed.iter().enumerate() {
        places[packet.position] = Some(place);
    }
    // The places of the packets before and behind each in the file.
    let mut befores = Vec::with_capacity(others.len());
    others.sort_unstable_by_key(|packet| packet.position);
    let (mut at, mut before) = (0, None);
    for packet in &others {
        before = places[at..packet.position]
            .iter()
            .rev()
            .find_map(|&place| place)
            .or(before);
        befores.push(before);
        at = packet.position;
    }
    let chain = (0..)
        .zip(&placed)
        .map(|(place, placed)| (place, 1, placed.position));
    let mut order: Vec<(usize, u8, usize)> = chain.collect();
    let (mut at, mut behind) = (packets.len(), None);
    for (packet, before) in others.iter().zip(befores).rev() {
        behind = places[packet.position..at]
            .iter()
            .find_map(|&place| place)
            .or(behind);
        at = packet.position;
        let gap = before.map_or(0, |place| place + 1);
        match behind.unwrap_or(placed.len()) == gap {
            true => order.push((gap, 0, packet.position)),
            false => left_out.extend(row(packet).map(|row| (row, LeftOut::NoPlace))),
        }
    }
    order.sort_unstable();
    left_out.sort_unstable_by_key(|(row, _)| (row.packet.file, row.packet.number));
    let mut sorted = Sorted {
        packets: Table::default(),
        left_out,
    };
    for (.., position) in order {
        if let Some(row) = packets.get(position) {
            sorted.packets.push(&row);
        }
    }
    Some(sorted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Packet;

    /// The files of the packets in their order, and of those that are left out.
    type Order = (Vec<u32>, Vec<(u32, LeftOut)>);

    /// Packets by their times; those of which the third number is 1 agree with themselves.
    fn order(packets: &[(u64, u64, u32)]) -> Option<Order> {
        let row = |(number, &(begin, end, file)): (u32, &(u64, u64, u32))| Row {
            packet: Packet {
                number,
                file,
                ..Packet::default()
            },
            begin: Some(begin),
            end: Some(end),
            ..Row::default()
        };
        let rows: Vec<Row> = (0..).zip(packets).map(row).collect();
        let span = |row: &Row| row.begin.zip(row.end).filter(|_| row.packet.file == 1);
        let is_same = |left: &Row, right: &Row| (left.begin, left.end) == (right.begin, right.end);
        let found = sorted(&rows.iter().collect(), span, is_same)?;
        let left_out = found.left_out.iter();
        Some((
            found.packets.rows(0).map(|row| row.packet.number).collect(),
            left_out
                .map(|(row, why)| (row.packet.number, *why))
                .collect(),
        ))
    }

    #[test]
    fn packets_that_agree_are_put_in_order() {
        assert_eq!(
            order(&[(0, 10, 1), (10, 10, 1), (10, 20, 1), (25, 30, 1)]),
            None
        );
        let found = order(&[(30, 40, 1), (0, 10, 1), (20, 30, 1), (10, 20, 1)]);
        assert_eq!(found, Some((vec![1, 3, 2, 0], vec![])));
        // One that only its times put in its place.
        let found = order(&[(30, 40, 1), (0, 10, 1), (20, 30, 0), (10, 20, 1)]);
        assert_eq!(found, Some((vec![1, 3, 2, 0], vec![])));
    }

    #[test]
    fn damaged_times_move_no_packet() {
        assert_eq!(order(&[(0, 10, 1), (2, 20, 1), (20, 30, 1)]), None);
        assert_eq!(order(&[(0, 10, 1), (99, 20, 0), (20, 30, 1)]), None);
        assert_eq!(
            order(&[(0, 10, 1), (10, 99, 1), (20, 30, 1), (30, 40, 1)]),
            None
        );
    }

    #[test]
    fn what_has_no_place_is_left_out() {
        // Between packets that follow each other, and at both ends.
        let found = order(&[
            (90, 0, 0),
            (0, 10, 1),
            (90, 0, 0),
            (10, 20, 1),
            (40, 50, 1),
            (30, 40, 1),
        ]);
        assert_eq!(found, Some((vec![0, 1, 2, 3, 5, 4], vec![])));
        let found = order(&[(0, 10, 1), (20, 30, 1), (90, 0, 0), (10, 20, 1), (90, 0, 0)]);
        let out = vec![(2, LeftOut::NoPlace), (4, LeftOut::NoPlace)];
        assert_eq!(found, Some((vec![0, 3, 1], out)));
    }

    #[test]
    fn copies_are_left_out() {
        let found = order(&[(0, 10, 1), (10, 20, 1), (0, 10, 1), (10, 20, 1)]);
        let out = vec![(2, LeftOut::Copy), (3, LeftOut::Copy)];
        assert_eq!(found, Some((vec![0, 1], out)));
    }
}
