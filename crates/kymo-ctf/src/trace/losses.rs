//! What was lost between packets, according to the counters that packets carry.

use kymo_model::Lost;

use super::table::{Row, Table};

/// What the counters of a stream's packets count, and as of when.
#[derive(Debug)]
pub(super) enum Counters {
    /// The stream's own losses; of events, as of the packet's end (CTF 1.8 and 2).
    AsOfEnd,
    /// The stream's own losses; of events, as of the packet's beginning (RFC v1.1).
    AsOfBeginning,
    /// As [`AsOfEnd`](Self::AsOfEnd), of packets that are not in the order of time: what is to be
    /// reported of them, in their order.
    OfTime(Vec<Reported>),
    /// Those of all streams of a section: what is to be reported of this stream's packets, in
    /// their order.
    OfSection(Vec<Reported>),
}

/// What was lost before a packet of a section and after the packet that the section's counters
/// counted before it, which may be of another stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reported {
    /// Position of the packet in its stream.
    packet: usize,
    events: u64,
    packets: u64,
    /// Ticks after which they were lost.
    begin: Option<u64>,
}

impl Counters {
    /// Events and packets that were lost before a packet and after the one before it; `number` is
    /// the packet's position in its stream. Of a stream's first packet the stream's own counters
    /// say nothing: they may have counted long before.
    pub(super) fn lost(
        &self,
        number: usize,
        row: &Row,
        before: Option<&Row>,
    ) -> (Option<Lost>, Option<Lost>) {
        let end = match self {
            Self::AsOfEnd => row.end,
            Self::AsOfBeginning => row.begin,
            Self::OfTime(reported) | Self::OfSection(reported) => {
                let end = match self {
                    Self::OfTime(_) => row.end,
                    _ => row.begin,
                };
                let Ok(at) = reported.binary_search_by_key(&number, |reported| reported.packet)
                else {
                    return (None, None);
                };
                let Reported {
                    events,
                    packets,
                    begin,
                    ..
                } = reported[at];
                let lost = |count, end| (count > 0).then(|| lost(count, row, begin, end));
                return (lost(events, end), lost(packets, row.begin));
            }
        };
        let Some(before) = before else {
            return (None, None);
        };
        (
            lost_events(row, before).map(|count| lost(count, row, before.end, end)),
            lost_packets(row, before, matches!(self, Self::AsOfBeginning))
                .map(|count| lost(count, row, before.end, row.begin)),
        )
    }
}

/// How far the counter of discarded events went on from one packet to another, if it did.
fn lost_events(row: &Row, before: &Row) -> Option<u64> {
    let ((now, bits), (then, _)) = (row.discarded?, before.discarded?);
    let count = match bits {
        64.. => now.checked_sub(then)?,
        bits => now.wrapping_sub(then) & ((1u64 << bits) - 1),
    };
    (count > 0).then_some(count)
}

/// What the numbers of two packets say about those between them. A lower number has gone round
/// if few are missing then; else the tracer has begun anew. Where the packets state how many bits
/// count, fewer than the number's field has are so few that a lower number has always gone round.
fn lost_packets(row: &Row, before: &Row, bits_are_reported: bool) -> Option<u64> {
    let ((now, bits), (then, _)) = (row.sequence?, before.sequence?);
    let step = match (now.checked_sub(then), bits) {
        (Some(step), _) => step,
        (None, 64..) => return None,
        (None, bits) => {
            let range = 1u64 << bits;
            let step = now.wrapping_sub(then) & (range - 1);
            let goes_round = step < range / 4 || bits_are_reported && bits < 32;
            goes_round.then_some(step)?
        }
    };
    step.checked_sub(1).filter(|&count| count > 0)
}

fn lost(count: u64, row: &Row, begin: Option<u64>, end: Option<u64>) -> Lost {
    // Times are reported only if packets have them at both ends.
    let timed = row.begin.is_some() && row.end.is_some();
    Lost {
        count: Some(count),
        begin: begin.filter(|_| timed),
        end: end.filter(|_| timed),
    }
}

/// What is to be reported of the packets of a stream that are not in the order of time: what was lost
/// before each, in that order. `None` where counters do not grow so, or do in the order of the
/// file, too: then it is the times that are wrong.
pub(super) fn in_time(packets: &Table) -> Option<Vec<Reported>> {
    let mut order: Vec<(u64, usize)> = Vec::with_capacity(packets.len());
    for (position, row) in packets.rows(0).enumerate() {
        order.push((row.begin?, position));
    }
    order.sort_unstable();
    let in_time = || order.iter().filter_map(|&(_, at)| packets.get(at));
    if counters_grow(packets.rows(0)) || !counters_grow(in_time()) {
        return None;
    }
    let mut reported = Vec::new();
    for (&(_, packet), (before, now)) in order[1..].iter().zip(in_time().zip(in_time().skip(1))) {
        let events = lost_events(&now, &before).unwrap_or(0);
        let packets = lost_packets(&now, &before, false).unwrap_or(0);
        if events > 0 || packets > 0 {
            reported.push(Reported {
                packet,
                events,
                packets,
                begin: before.end,
            });
        }
    }
    reported.sort_unstable_by_key(|reported| reported.packet);
    reported.shrink_to_fit();
    Some(reported)
}

/// Whether packets are numbered upwards, and no counter of discarded events goes back.
fn counters_grow(mut rows: impl Iterator<Item = Row>) -> bool {
    let mut before: Option<Row> = None;
    rows.all(|row| {
        let Some(before) = before.replace(row) else {
            return true;
        };
        let is_next = match (before.sequence, row.sequence) {
            (Some((before, _)), Some((now, _))) => before < now,
            _ => true,
        };
        let number = |counter: Option<(u64, u32)>| counter.map(|(number, _)| number);
        is_next && number(before.discarded) <= number(row.discarded)
    })
}

/// A packet among all of a section.
struct Counted {
    /// Its number, as it is in its header.
    number: u64,
    /// Ticks at its beginning; then its number, as if the counter had all bits.
    rank: u64,
    stream: usize,
    packet: usize,
}

/// What is to be reported of each of a section's streams where they count together: where no packet
/// number occurs twice among them. `None` where each counts for itself.
///
/// RFC v1.1 calls the counters "per-section", and a section all streams of its kind on all
/// CPUs; but it also calls what a single CPU wrote a section. The numbers show which one a
/// tracer meant: together the streams have each number once, separately each starts over.
pub(super) fn of_section(streams: &[&Table]) -> Option<Vec<Vec<Reported>>> {
    let row = |counted: &Counted| streams[counted.stream].get(counted.packet);
    let mut all = Vec::with_capacity(streams.iter().map(|table| table.len()).sum());
    let mut known_bits = None;
    for (stream, table) in streams.iter().enumerate() {
        for (packet, row) in table.rows(0).enumerate() {
            let (number, bits) = row.sequence?;
            if *known_bits.get_or_insert(bits) != bits {
                return None;
            }
            all.push(Counted {
                number,
                rank: row.begin.unwrap_or(0),
                stream,
                packet,
            });
        }
    }
    let bits = known_bits?;
    count_on(&mut all, bits)?;
    let mut reported: Vec<Vec<Reported>> = streams.iter().map(|_| Vec::new()).collect();
    for pair in all.windows(2) {
        let (before, now) = (row(&pair[0])?, row(&pair[1])?);
        // Where the two overlap, they are of different CPUs.
        let begin = match (before.end, now.begin) {
            (Some(end), Some(begin)) if end > begin => before.begin.min(now.begin),
            _ => before.end,
        };
        // A snapshot that is older than the one before it does not indicate a loss.
        let events = lost_events(&now, &before).filter(|&count| count < 1 << 31);
        let events = events.unwrap_or(0);
        let packets = pair[1].rank - pair[0].rank - 1;
        if events > 0 || packets > 0 {
            reported[pair[1].stream].push(Reported {
                packet: pair[1].packet,
                events,
                packets,
                begin,
            });
        }
    }
    for reported in &mut reported {
        reported.sort_unstable_by_key(|reported| reported.packet);
        reported.shrink_to_fit();
    }
    Some(reported)
}

/// Puts packets in the order of their numbers, as if the counter of `bits` bits never went round;
/// `None` where one occurs twice.
fn count_on(all: &mut [Counted], bits: u32) -> Option<()> {
    let twice = |all: &[Counted], count: fn(&Counted) -> u64| {
        all.windows(2)
            .any(|pair| count(&pair[0]) == count(&pair[1]))
    };
    // With sign, of as many bits as the counter has.
    let unused = 64u32.checked_sub(bits).filter(|&unused| unused < 64)?;
    let turn = 1u64.checked_shl(bits).unwrap_or(u64::MAX);
    all.sort_unstable_by_key(|counted| counted.number);
    if all.len() as u64 <= turn && twice(all, |counted| counted.number) {
        return None;
    }
    // In the order of time, a number is near the one before it, so that it can be determined whether
    // the counter has gone round.
    all.sort_unstable_by_key(|counted| (counted.rank, counted.stream, counted.packet));
    let mut full = 1u64 << 63;
    let mut last = all.first()?.number;
    for counted in &mut *all {
        let step = counted.number.wrapping_sub(last) << unused;
        full = full.wrapping_add_signed(step.cast_signed() >> unused);
        last = counted.number;
        counted.rank = full;
    }
    all.sort_unstable_by_key(|counted| counted.rank);
    (!twice(all, |counted| counted.rank)).then_some(())
}
