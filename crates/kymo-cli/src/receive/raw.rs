//! Datagrams that are packets and nothing else: each sender's go to a file of their own.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use kymo_ctf::wire::Raw;

use super::store::{Store, add_lost};

/// The largest number of senders that are distinguished.
const MOST_SOURCES: usize = 1024;
/// Maximum number of packets that wait for a missing earlier packet.
const REORDER: usize = 32;
/// Bytes of packets that wait, of all senders.
const MOST_WAITING: usize = 64 << 20;
/// Number of packets of a sender that are remembered, to recognize duplicates.
const REMEMBERED: usize = 256;
/// What a packet that waits takes beside its bytes, roughly.
const OVERHEAD: usize = 96;
/// The stream of metadata; senders have those behind it, and no session has any of them.
const METADATA: u32 = 1 << 20;

/// The packets of one sender.
#[derive(Default)]
struct Source {
    /// The stream that it is in the store.
    stream: u32,
    /// The number that the next packet has, as if it never went round.
    next: Option<u64>,
    /// Packets that wait for those before them.
    waiting: BTreeMap<u64, Vec<u8>>,
    /// Bytes that these take.
    cost: usize,
    /// The number that came last.
    latest: u64,
    /// Numbers of packets that have come, and hashes of these; the oldest first.
    seen: VecDeque<(u64, u64)>,
    /// Packets with the number of another one that they are not.
    differing: u64,
    lost: Vec<(u64, u64)>,
}

/// All senders.
#[derive(Default)]
pub(super) struct Sources {
    sources: HashMap<SocketAddr, Source>,
    /// Bytes that packets that wait take.
    cost: usize,
    packets: u64,
    bytes: u64,
}

impl Sources {
    /// Takes a packet. `false` if it is from one sender too many.
    pub(super) fn add(
        &mut self,
        from: SocketAddr,
        raw: Raw,
        packet: &[u8],
        store: &mut Store,
    ) -> io::Result<bool> {
        let count = self.sources.len();
        let number = match raw {
            Raw::Metadata => {
                store.name(METADATA, "metadata")?;
                store.append_metadata(METADATA, packet)?;
                self.packets += 1;
                self.bytes += packet.len() as u64;
                return Ok(true);
            }
            Raw::Packet { count } => count,
        };
        if count >= MOST_SOURCES && !self.sources.contains_key(&from) {
            return Ok(false);
        }
        let source = self.sources.entry(from).or_insert_with(|| Source {
            stream: METADATA + 1 + count as u32,
            ..Source::default()
        });
        store.name(source.stream, &format!("raw_{count}"))?;
        match number {
            Some((number, bits)) => {
                let full = source.full(number, bits);
                let is_late = source.next.is_some_and(|next| full < next);
                match source.acquaintance(full, packet) {
                    Acquaintance::Same => return Ok(true),
                    // It came too late, and was already reported as lost.
                    Acquaintance::New if is_late => return Ok(true),
                    // Its position is unknown: it goes behind the packets that already have its number.
                    Acquaintance::Other if is_late => store.append(source.stream, packet)?,
                    Acquaintance::New | Acquaintance::Other => {
                        let waiting = source.waiting.entry(full).or_default();
                        let overhead = if waiting.is_empty() { OVERHEAD } else { 0 };
                        waiting.extend_from_slice(packet);
                        source.cost += packet.len() + overhead;
                        self.cost += packet.len() + overhead;
                    }
                }
            }
            None => store.append(source.stream, packet)?,
        }
        self.packets += 1;
        self.bytes += packet.len() as u64;
        self.cost -= source.release(REORDER, store)?;
        self.make_room(MOST_WAITING, store)?;
        Ok(true)
    }

    /// Writes what waits of the senders with the most, until no more than `most` bytes wait.
    fn make_room(&mut self, most: usize, store: &mut Store) -> io::Result<()> {
        while self.cost > most
            && let Some(source) = self.sources.values_mut().max_by_key(|source| source.cost)
        {
            self.cost -= source.release(0, store)?;
        }
        Ok(())
    }

    /// Writes what still waits.
    pub(super) fn finish(&mut self, store: &mut Store) -> io::Result<()> {
        for source in self.sources.values_mut() {
            self.cost -= source.release(0, store)?;
        }
        Ok(())
    }

    /// Packets and their bytes.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.packets, self.bytes)
    }

    /// Names, and how many packets had the number of another one that they are not.
    pub(super) fn differing(&self) -> impl Iterator<Item = (PathBuf, u64)> {
        let sources = self.sources.values().filter(|source| source.differing > 0);
        let mut all: Vec<_> = sources
            .map(|source| (source.stream - METADATA - 1, source.differing))
            .collect();
        all.sort_unstable();
        all.into_iter()
            .map(|(number, count)| (PathBuf::from(format!("raw_{number}")), count))
    }

    /// Names, and the first and last of packets that never came.
    pub(super) fn lost(&self) -> impl Iterator<Item = (PathBuf, u64, u64)> {
        let mut sources: Vec<&Source> = self.sources.values().collect();
        sources.sort_unstable_by_key(|source| source.stream);
        sources.into_iter().flat_map(|source| {
            let name = PathBuf::from(format!("raw_{}", source.stream - METADATA - 1));
            let lost = source.lost.iter();
            lost.map(move |&(first, last)| (name.clone(), first, last))
        })
    }
}

/// What is known of a packet by its number.
enum Acquaintance {
    /// None has come with its number, as far as that is remembered.
    New,
    /// It has come before.
    Same,
    /// Another one has come with its number.
    Other,
}

impl Source {
    /// Whether a packet has come before; it is remembered.
    fn acquaintance(&mut self, number: u64, packet: &[u8]) -> Acquaintance {
        let mut hasher = DefaultHasher::new();
        packet.hash(&mut hasher);
        let hash = hasher.finish();
        if self.seen.contains(&(number, hash)) {
            return Acquaintance::Same;
        }
        let is_other = self.seen.iter().any(|&(seen, _)| seen == number);
        if self.seen.len() >= REMEMBERED {
            self.seen.pop_front();
        }
        self.seen.push_back((number, hash));
        match is_other {
            true => {
                self.differing += 1;
                Acquaintance::Other
            }
            false => Acquaintance::New,
        }
    }

    /// The full number of a packet that contains only its low bits: the nearest to the latest one.
    fn full(&mut self, number: u32, bits: u32) -> u64 {
        let range = 1i64 << bits.min(32);
        let number = i64::from(number) & (range - 1);
        let Some(latest) = (self.latest > 0).then(|| i64::try_from(self.latest).unwrap_or(0))
        else {
            // Room for numbers before the first that has come.
            self.latest = (number + START) as u64;
            return self.latest;
        };
        let step = (number - latest).rem_euclid(range);
        let step = if step >= range / 2 {
            step - range
        } else {
            step
        };
        let full = (latest + step) as u64;
        self.latest = self.latest.max(full);
        full
    }

    /// Writes packets while none is missing before them, or more than `most` wait; returns the bytes
    /// that they took.
    fn release(&mut self, most: usize, store: &mut Store) -> io::Result<usize> {
        let before = self.cost;
        while let Some((&number, _)) = self.waiting.first_key_value() {
            let is_next = self.next == Some(number);
            if !is_next && self.waiting.len() <= most {
                break;
            }
            if let Some(next) = self.next.filter(|&next| next < number) {
                let reported = |number: u64| number.saturating_sub(START as u64);
                add_lost(&mut self.lost, reported(next), reported(number - 1));
            }
            if let Some(packet) = self.waiting.remove(&number) {
                self.cost -= packet.len() + OVERHEAD;
                store.append(self.stream, &packet)?;
            }
            self.next = Some(number + 1);
        }
        Ok(before - self.cost)
    }
}

/// What is added to all numbers: a multiple of what any counter counts.
const START: i64 = 1 << 40;

#[cfg(test)]
mod tests {
    use super::*;

    /// What is written when packets of these numbers come, and what is lost.
    fn received(numbers: &[u32], bits: u32) -> (Vec<u8>, Vec<(u64, u64)>) {
        let home = tempfile::TempDir::new().unwrap();
        let path = home.path().join("new");
        let mut store = Store::new(&path).unwrap();
        let mut sources = Sources::default();
        let from = "127.0.0.1:9".parse().unwrap();
        for &number in numbers {
            let count = Some((number, bits));
            let raw = Raw::Packet { count };
            assert!(sources.add(from, raw, &[number as u8], &mut store).unwrap());
        }
        sources.finish(&mut store).unwrap();
        store.finish().unwrap();
        let lost = sources.lost().map(|(_, first, last)| (first, last));
        let lost = lost.collect();
        (std::fs::read(path.join("raw_0")).unwrap(), lost)
    }

    #[test]
    fn numbered_packets_are_put_in_order() {
        let (written, lost) = received(&[2, 0, 1, 1, 5, 4, 3, 4], 32);
        assert_eq!((written, lost), (vec![0, 1, 2, 3, 4, 5], vec![]));
    }

    #[test]
    fn packets_of_one_number_that_differ_are_kept() {
        let home = tempfile::TempDir::new().unwrap();
        let path = home.path().join("new");
        let mut store = Store::new(&path).unwrap();
        let mut sources = Sources::default();
        let from = "127.0.0.1:9".parse().unwrap();
        for (number, packet) in [
            (0, "a"),
            (0, "b"),
            (0, "a"),
            (0, "b"),
            (2, "d"),
            (2, "e"),
            (1, "c"),
        ] {
            let raw = Raw::Packet {
                count: Some((number, 32)),
            };
            assert!(
                sources
                    .add(from, raw, packet.as_bytes(), &mut store)
                    .unwrap()
            );
        }
        sources.finish(&mut store).unwrap();
        store.finish().unwrap();
        let differing: Vec<_> = sources.differing().collect();
        assert_eq!(differing, [(PathBuf::from("raw_0"), 2)]);
        assert_eq!(sources.lost().count(), 0);
        assert_eq!(std::fs::read(path.join("raw_0")).unwrap(), b"abcde");
        assert_eq!((sources.counts(), sources.cost), ((5, 5), 0));
    }

    #[test]
    fn what_never_came_is_known() {
        let (written, lost) = received(&[7, 9, 8, 12, 16], 32);
        assert_eq!(written, [7, 8, 9, 12, 16]);
        assert_eq!(lost, [(10, 11), (13, 15)]);
        // One is waited for while others come, and is then too late.
        let numbers: Vec<u32> = (0..100).filter(|&number| number != 3).chain([3]).collect();
        let (written, lost) = received(&numbers, 32);
        assert_eq!((written.len(), lost), (99, vec![(3, 3)]));
    }

    #[test]
    fn what_waits_has_an_end() {
        let home = tempfile::TempDir::new().unwrap();
        let mut store = Store::new(&home.path().join("new")).unwrap();
        let mut sources = Sources::default();
        let mut add = |sources: &mut Sources, port: u16, number: u32| {
            let count = Some((number, 32));
            let from = SocketAddr::from(([127, 0, 0, 1], port));
            let raw = Raw::Packet { count };
            assert!(sources.add(from, raw, &[1; 1000], &mut store).unwrap());
        };
        for port in 1..=10 {
            for number in 0..u32::from(port) {
                add(&mut sources, port, number);
            }
        }
        let one = 1000 + OVERHEAD;
        assert_eq!(sources.cost, 55 * one);
        // Endless gaps are recorded as few ranges.
        for number in 0..5000 {
            add(&mut sources, 1, 100 + number * 2);
        }
        sources.make_room(40 * one, &mut store).unwrap();
        assert!(sources.cost <= 40 * one && sources.cost > 0);
        let costs: usize = sources.sources.values().map(|source| source.cost).sum();
        assert_eq!(sources.cost, costs);
        sources.finish(&mut store).unwrap();
        assert_eq!(sources.cost, 0);
        assert_eq!(sources.lost().count(), 1000);
        store.finish().unwrap();
        let size = |name: &str| {
            std::fs::metadata(home.path().join("new").join(name))
                .unwrap()
                .len()
        };
        assert_eq!(size("raw_0"), 5001 * 1000);
        assert_eq!(size("raw_9"), 10 * 1000);
    }

    #[test]
    fn numbers_go_round() {
        let (written, lost) = received(&[253, 255, 254, 1, 0, 3], 8);
        assert_eq!(written, [253, 254, 255, 0, 1, 3]);
        // Counted on.
        assert_eq!(lost, [(258, 258)]);
    }
}
