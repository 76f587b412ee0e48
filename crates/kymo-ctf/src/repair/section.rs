//! The counters of a section of RFC v1.1 whose streams count together: what a damaged one should say,
//! as the packets of all its streams show.

use crate::trace::Trace;
use kymo_model::Recording;

/// One packet in `DAMAGED` may have the number of another one by damage, if streams count together:
/// where each counts for itself, nearly all have.
const DAMAGED: usize = 8;

/// The counters of all packets of a section.
#[derive(Debug, Default)]
pub(super) struct Section {
    /// Number of the packet, and discarded events, in the order of numbers.
    packets: Vec<(u64, u64)>,
}

impl Section {
    /// Those of the section of a stream; `None` where its streams count each for itself.
    pub(super) fn of(trace: &Trace, stream: usize) -> Option<Self> {
        let class = trace.stream_class(stream);
        let streams = 0..trace.streams().len();
        let streams = streams.filter(|&stream| trace.stream_class(stream) == class);
        if streams.clone().count() < 2 {
            return None;
        }
        let heads = streams
            .flat_map(|stream| trace.packets(stream))
            .filter_map(|packet| {
                let head = trace.decoder().packet_head(trace.packet_bytes(&packet));
                head.ok()
            });
        let counters = heads.filter_map(|head| Some((head.sequence?.0, head.discarded?.0)));
        Self::new(counters.collect())
    }

    fn new(mut packets: Vec<(u64, u64)>) -> Option<Self> {
        packets.sort_unstable();
        let twice = packets.windows(2).filter(|pair| pair[0].0 == pair[1].0);
        (twice.count() * DAMAGED <= packets.len()).then_some(Self { packets })
    }

    /// A number for a packet that says another one, between those of the packets of its stream before and
    /// behind it: one that no packet has. Mostly a single bit of it is wrong. `None` where there is
    /// none.
    pub(super) fn number(&self, before: Option<u64>, said: u64, next: Option<u64>) -> Option<u64> {
        let is_within = |number: u64| {
            before.is_none_or(|before| before < number) && next.is_none_or(|next| number < next)
        };
        let is_free = |number: u64| {
            let found = self
                .packets
                .binary_search_by_key(&number, |packet| packet.0);
            found.is_err()
        };
        let distance = |number: u64| match (before, next) {
            (Some(before), _) => number - before,
            (None, next) => next.unwrap_or(u64::MAX) - number,
        };
        let near = (0..u32::BITS).map(|bit| said ^ 1 << bit);
        let near = near.filter(|&number| is_within(number) && is_free(number));
        near.min_by_key(|&number| distance(number)).or_else(|| {
            // As many are taken at most as there are packets.
            let most = self.packets.len() as u64 + 1;
            let mut numbers = 1..=most;
            let number = numbers.find_map(|step| {
                let number = match (before, next) {
                    (Some(before), _) => before.checked_add(step),
                    (None, next) => next?.checked_sub(step),
                };
                number.filter(|&number| is_free(number))
            })?;
            is_within(number).then_some(number)
        })
    }

    /// What the packets before and behind a number say of discarded events.
    pub(super) fn discarded_around(&self, number: u64) -> (Option<u64>, Option<u64>) {
        let at = self.packets.partition_point(|packet| packet.0 < number);
        let behind = self.packets.partition_point(|packet| packet.0 <= number);
        let before = at.checked_sub(1).and_then(|at| self.packets.get(at));
        let discarded = |packet: &(u64, u64)| packet.1;
        (
            before.map(discarded),
            self.packets.get(behind).map(discarded),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::Section;

    #[test]
    fn a_number_is_one_that_no_packet_has() {
        let section = |numbers: &[u64]| {
            let packets = numbers.iter().map(|&number| (number, 10 * number));
            Section::new(packets.collect()).unwrap()
        };
        let one = section(&[0, 1, 2, 3, 68, 5, 6]);
        // By its bits, and where more of them are wrong.
        assert_eq!(one.number(Some(2), 68, Some(5)), Some(4));
        assert_eq!(one.number(Some(2), 99, Some(5)), Some(4));
        assert_eq!(one.number(Some(1), 99, Some(3)), None);
        // Of several that are missing, the one of which a single bit is wrong.
        let lost = section(&[0, 1, 73, 10]);
        assert_eq!(lost.number(Some(1), 73, Some(10)), Some(9));
        assert_eq!(lost.number(Some(1), 77, Some(10)), Some(2));
        // At both ends.
        assert_eq!(section(&[4, 5, 70, 7]).number(None, 70, Some(7)), Some(6));
        assert_eq!(section(&[4, 5, 1, 6]).number(Some(6), 1, None), Some(9));
        assert_eq!(section(&[0, 1]).number(None, 7, Some(0)), None);
        assert_eq!(one.discarded_around(4), (Some(30), Some(50)));
        assert_eq!(one.discarded_around(0), (None, Some(10)));
        assert_eq!(one.discarded_around(99), (Some(680), None));
        // Apart, each begins anew.
        let apart = [0, 1, 2, 3, 0, 1, 2].map(|number| (number, 0));
        assert!(Section::new(apart.to_vec()).is_none());
    }
}
