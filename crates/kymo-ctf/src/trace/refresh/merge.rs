//! Packets that are new or have grown, put into their stream.

use std::collections::HashMap;

use kymo_model::{Change, Cursor, Refreshed, RowPlace};

use super::Last;
use crate::trace::Packet;
use crate::trace::packet::Reader;
use crate::trace::streams::Stream;
use crate::trace::table::{Row, Table};

/// What is the same of the copies of a packet.
type Identity = (Option<u64>, Option<u64>, Option<(u64, u32)>, u64, u64);

fn identity(row: &Row) -> Identity {
    let Packet {
        total_bits,
        content_bits,
        ..
    } = row.packet;
    (row.begin, row.end, row.sequence, total_bits, content_bits)
}

/// Packets that are put into a stream.
pub(super) struct Merge<'a> {
    pub(super) reader: Reader<'a>,
    pub(super) stream: &'a mut Stream,
    pub(super) lasts: &'a HashMap<u32, Last>,
    pub(super) gone: &'a [bool],
    /// The packets that are known, made when it matters.
    pub(super) copies: Option<HashMap<Identity, usize>>,
    /// Packets that are in another file than before, by position.
    pub(super) repointed: HashMap<usize, Packet>,
    pub(super) appended: Option<RowPlace>,
    pub(super) replaced: Option<RowPlace>,
}

impl Merge<'_> {
    pub(super) fn place(&self, position: usize, number: u64) -> RowPlace {
        RowPlace {
            chunk: self.stream.first + position,
            number,
        }
    }

    pub(super) fn add(&mut self, stream: usize, row: Row) {
        let last = self.lasts.get(&row.packet.file);
        let last = last
            .filter(|last| last.stream == stream && last.row.packet.number == row.packet.number);
        if let Some(last) = last {
            if last.row != row {
                self.grow(*last, row);
            }
            return;
        }
        let len = self.stream.packets.len();
        let end = len
            .checked_sub(1)
            .and_then(|at| self.stream.packets.get(at));
        let is_later = match (end, row.begin) {
            (Some(end), Some(begin)) => end.begin < Some(begin),
            // Packets that say nothing of their time are of a single file.
            (None, _) | (_, None) => true,
        };
        if !is_later {
            let packets = &self.stream.packets;
            let copies = self.copies.get_or_insert_with(|| {
                let rows = packets.rows(0).zip(0..);
                rows.map(|(row, position)| (identity(&row), position))
                    .collect()
            });
            if let Some(&position) = copies.get(&identity(&row)) {
                let known = self.stream.packets.get(position);
                if known.is_some_and(|known| known.packet.file != row.packet.file) {
                    self.repointed.insert(position, row.packet);
                    return;
                }
            }
        }
        let place = self.place(len, 0);
        self.appended.get_or_insert(place);
        self.stream.packets.push(&row);
    }

    /// A packet has grown.
    pub(super) fn grow(&mut self, last: Last, row: Row) {
        let number = match row.packet.content_bits >= last.row.packet.content_bits {
            true => self.events_of(&last.row),
            false => 0,
        };
        let place = self.place(last.position, number);
        if last.position + 1 == self.stream.packets.len() {
            self.stream.packets.truncate(last.position);
            self.stream.packets.push(&row);
            match number {
                0 if row.packet.content_bits < last.row.packet.content_bits => {
                    self.replaced.get_or_insert(place);
                }
                _ => {
                    self.appended.get_or_insert(place);
                }
            }
        } else {
            let rows = self.stream.packets.rows(0).zip(0..);
            let rows: Table = rows.fold(Table::default(), |mut table, (old, position)| {
                table.push(if position == last.position {
                    &row
                } else {
                    &old
                });
                table
            });
            self.stream.packets = rows;
            self.replaced = Some(self.replaced.map_or(place, |other| other.min(place)));
        }
    }

    /// The number of events that a packet had before it grew.
    fn events_of(&self, row: &Row) -> u64 {
        let packet = row.packet;
        let walked = packet
            .head(self.reader)
            .and_then(|head| packet.walk(self.reader, &head));
        let Ok(mut cursor) = walked else {
            return 0;
        };
        let mut events = 0;
        while let Ok(Some(_)) = cursor.next_event() {
            events += 1;
        }
        events
    }

    /// Removes the packets of files that are gone, and reports what has changed.
    pub(super) fn finish(mut self, stream: usize, refreshed: &mut Refreshed) {
        let is_gone = |packet: &Packet| self.gone.get(packet.file as usize) == Some(&true);
        let rows = || {
            let rows = self.stream.packets.rows(0).zip(0..);
            rows.map(|(mut row, position)| {
                if let Some(packet) = self.repointed.get(&position)
                    && is_gone(&row.packet)
                {
                    row.packet = Packet {
                        clock: row.packet.clock,
                        ..*packet
                    };
                }
                row
            })
        };
        // Only what changed costs more than a look.
        if self.gone.contains(&true) && self.stream.packets.rows(0).any(|row| is_gone(&row.packet))
        {
            let vanished = rows().take_while(|row| is_gone(&row.packet)).count();
            let hole = rows().skip(vanished).position(|row| is_gone(&row.packet));
            let left = rows().filter(|row| !is_gone(&row.packet));
            let left = left.fold(Table::default(), |mut table, row| {
                table.push(&row);
                table
            });
            self.stream.packets = left;
            self.stream.first += vanished;
            if vanished > 0 {
                let before = self.place(0, 0);
                refreshed.push(stream, Change::Vanished { before });
            }
            if let Some(hole) = hole {
                let place = self.place(hole, 0);
                self.replaced = Some(self.replaced.map_or(place, |other| other.min(place)));
            }
        }
        if let Some(from) = self.replaced {
            refreshed.push(stream, Change::Replaced { from });
        }
        if let Some(from) = self.appended
            && self.replaced.is_none_or(|replaced| from < replaced)
        {
            refreshed.push(stream, Change::Appended { from });
        }
    }
}
