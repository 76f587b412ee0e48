//! A network that loses, doubles and reorders, and the two sides of it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::wire::envelope::{Body, Datagram, Seal};

/// Numbers that look random (xorshift).
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn of(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }
}

/// A way from one side to the other.
struct Way {
    chance: Chance,
    lost: u64,
    doubled: u64,
    late: u64,
    /// When each datagram arrives.
    flying: BTreeMap<(Duration, u64), Vec<u8>>,
    count: u64,
    /// Stream and packet of the fragments that were lost.
    losses: Vec<(u32, u32)>,
}

impl Way {
    fn new(seed: u64, [lost, doubled, late]: [u64; 3]) -> Self {
        Self {
            chance: Chance(seed | 1),
            lost,
            doubled,
            late,
            flying: BTreeMap::new(),
            count: 0,
            losses: Vec::new(),
        }
    }

    fn send(&mut self, now: Duration, datagram: &[u8], seal: Option<&Seal>) {
        let times = if self.chance.of(self.doubled) { 2 } else { 1 };
        if self.chance.of(self.lost) {
            if let Ok(Datagram {
                body: Body::Fragment(fragment),
                ..
            }) = Datagram::read(datagram, seal)
            {
                self.losses.push((fragment.stream, fragment.packet));
            }
            return;
        }
        for _ in 0..times {
            let delay = match self.chance.of(self.late) {
                true => 5 + self.chance.next() % 40,
                false => 3,
            };
            self.count += 1;
            let arrives = now + Duration::from_millis(delay);
            self.flying.insert((arrives, self.count), datagram.to_vec());
        }
    }

    fn arrived(&mut self, now: Duration) -> Option<Vec<u8>> {
        let (&(arrives, number), _) = self.flying.first_key_value()?;
        (arrives <= now).then(|| self.flying.remove(&(arrives, number)))?
    }
}

/// What came out at the receiver.
#[derive(Debug, Default)]
struct Outcome {
    names: BTreeMap<u32, (Content, String)>,
    packets: BTreeMap<u32, Vec<(u32, Vec<u8>)>>,
    lost: Vec<(u32, u32)>,
    too_large: Vec<(u32, u32)>,
    reported: Option<bool>,
    losses: Vec<(u32, u32)>,
    state: Option<State>,
    missing: Option<u64>,
}

struct Setup {
    key: Option<Key>,
    resend: bool,
    window: usize,
    limit: usize,
    rate: u64,
    faults: [u64; 3],
    seed: u64,
    supplies: bool,
    largest: u32,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            key: None,
            resend: true,
            window: 1 << 30,
            limit: 1 << 30,
            rate: 2_000_000,
            faults: [0; 3],
            seed: 1,
            supplies: false,
            largest: u32::MAX,
        }
    }
}

/// Gives a sender the packet that it wants again.
pub(super) fn supply(sender: &mut Sender, streams: &Streams) {
    if let Some((stream, packet)) = sender.next_wanted() {
        let (.., packets) = &streams[stream as usize - 1];
        sender.supply((stream, packet), &packets[packet as usize][..]);
    }
}

/// Everything that is sent, through the network, to the end.
fn through(setup: &Setup, streams: &Streams) -> Outcome {
    let seal = setup.key.as_ref().and_then(Seal::new);
    let mut sender = Sender::new(SenderOptions {
        session: setup.seed,
        key: setup.key.clone(),
        datagram: 300,
        rate: setup.rate,
        window: setup.window,
        supplies: setup.supplies,
        patience: Duration::from_secs(20),
    });
    let mut receiver = Receiver::new(ReceiverOptions {
        key: setup.key.clone(),
        resend: setup.resend,
        idle: Duration::from_secs(10),
        first_number: 0,
        limits: ReceiverLimits {
            bytes: setup.limit,
            packet: setup.largest,
        },
    });
    let mut there = Way::new(setup.seed, setup.faults);
    let mut back = Way::new(setup.seed ^ 0xABCD, setup.faults);
    for (content, name, packets) in streams {
        let stream = sender.add_stream(*content, name).unwrap();
        for packet in packets {
            sender.push(stream, &packet[..]).unwrap();
        }
    }
    sender.end();
    assert_eq!(sender.push(1, &b"late"[..]), Err(PushError::Ended));
    let mut outcome = Outcome::default();
    let mut now = Duration::ZERO;
    while now < Duration::from_secs(300) && sender.wait(now).is_some() {
        while let Some(datagram) = sender.next_datagram(now) {
            there.send(now, &datagram, seal.as_ref());
        }
        supply(&mut sender, streams);
        while let Some(datagram) = there.arrived(now) {
            let _ = receiver.receive(now, &datagram);
        }
        receiver.poll(now);
        while let Some(datagram) = receiver.next_datagram() {
            back.send(now, &datagram, seal.as_ref());
        }
        while let Some(datagram) = back.arrived(now) {
            sender.receive(now, &datagram);
        }
        while let Some(event) = receiver.next_event() {
            match event {
                Event::Stream {
                    stream,
                    content,
                    name,
                } => {
                    outcome.names.insert(stream, (content, name));
                }
                Event::Packet {
                    stream,
                    packet,
                    bytes,
                } => outcome
                    .packets
                    .entry(stream)
                    .or_default()
                    .push((packet, bytes)),
                Event::Lost {
                    stream,
                    first,
                    last,
                } => outcome
                    .lost
                    .extend((first..=last).map(|packet| (stream, packet))),
                Event::TooLarge { stream, packet, .. } => outcome.too_large.push((stream, packet)),
                Event::End { reported } => assert_eq!(outcome.reported.replace(reported), None),
            }
        }
        now += STEP;
    }
    outcome.losses = there.losses;
    outcome.state = Some(sender.state());
    outcome.missing = sender.missing();
    outcome
}

/// What comes out is in order, and what was sent, but for the packets that are reported lost.
fn compare(outcome: &Outcome, streams: &Streams) {
    let lost: BTreeSet<_> = outcome.lost.iter().copied().collect();
    assert_eq!(lost.len(), outcome.lost.len(), "nothing is lost twice");
    for (stream, (content, name, packets)) in (1..).zip(streams) {
        assert_eq!(outcome.names.get(&stream), Some(&(*content, name.clone())));
        let numbered = (0..).zip(packets.iter().cloned());
        let expected: Vec<_> = numbered
            .filter(|(number, _)| !lost.contains(&(stream, *number)))
            .collect();
        let empty = Vec::new();
        let found = outcome.packets.get(&stream).unwrap_or(&empty);
        assert!(*found == expected, "stream {stream}");
    }
}

fn streams() -> impl Strategy<Value = Streams> {
    let packet = prop_oneof![
        4 => proptest::collection::vec(any::<u8>(), 0..600),
        1 => proptest::collection::vec(any::<u8>(), 0..6000),
    ];
    let packets = proptest::collection::vec(packet, 0..40);
    proptest::collection::vec(packets, 1..5).prop_map(|all| {
        let named = all.into_iter().enumerate().map(|(number, packets)| {
            let content = match number {
                0 => Content::Metadata,
                _ => Content::Packets,
            };
            (content, format!("t/stream_{number}"), packets)
        });
        named.collect()
    })
}

fn keys() -> impl Strategy<Value = Option<Key>> {
    prop_oneof![Just(None), Just(Key::new(&[5; 16]))]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn with_asking_everything_arrives(
        streams in streams(),
        key in keys(),
        seed in 1..u64::MAX,
        faults in (0..25u64, 0..25u64, 0..40u64),
    ) {
        let faults = [faults.0, faults.1, faults.2];
        let outcome = through(&Setup { key, seed, faults, ..Setup::default() }, &streams);
        prop_assert_eq!(&outcome.lost, &[]);
        prop_assert_eq!(outcome.reported, Some(true));
        prop_assert_eq!(outcome.state, Some(State::Done));
        prop_assert_eq!(outcome.missing, Some(0));
        compare(&outcome, &streams);
    }

    #[test]
    fn without_asking_exactly_what_was_lost_is_reported(
        streams in streams(),
        seed in 1..u64::MAX,
        faults in (0..10u64, 0..10u64, 0..10u64),
    ) {
        let faults = [faults.0, faults.1, faults.2];
        let outcome = through(&Setup { resend: false, seed, faults, ..Setup::default() }, &streams);
        prop_assert_eq!(outcome.reported, Some(true));
        // The sender knows it, too.
        prop_assert_eq!(outcome.missing, Some(outcome.lost.len() as u64));
        let reported: BTreeSet<_> = outcome.lost.iter().copied().collect();
        // Directory and metadata are sent until they are there.
        let lost: BTreeSet<_> = outcome.losses.iter().copied().filter(|&(stream, _)| stream > 1).collect();
        prop_assert_eq!(reported, lost);
        compare(&outcome, &streams);
    }
}

#[test]
fn what_the_window_does_not_hold_is_reported() {
    let streams = numbered(200, 250);
    let setup = Setup {
        window: 2000,
        faults: [20, 0, 0],
        ..Setup::default()
    };
    let outcome = through(&setup, &streams);
    assert!(!outcome.lost.is_empty());
    assert_eq!(outcome.reported, Some(true));
    assert_eq!(outcome.missing, Some(outcome.lost.len() as u64));
    compare(&outcome, &streams);
    // What is reported lost was lost on the way.
    let losses: BTreeSet<_> = outcome.losses.iter().copied().collect();
    assert!(outcome.lost.iter().all(|lost| losses.contains(lost)));
}

#[test]
fn what_the_window_does_not_hold_is_supplied() {
    let streams = numbered(200, 250);
    let setup = Setup {
        window: 2000,
        faults: [20, 5, 5],
        supplies: true,
        ..Setup::default()
    };
    let outcome = through(&setup, &streams);
    assert_eq!((&outcome.lost[..], outcome.missing), (&[][..], Some(0)));
    compare(&outcome, &streams);
}

#[test]
fn packets_beyond_the_limit_are_reported_and_not_waited_for() {
    let mut streams = numbered(20, 250);
    for number in [0, 7, 19] {
        streams[0].2[number] = vec![1; 1001];
    }
    for faults in [[0; 3], [20, 5, 5]] {
        let setup = Setup {
            largest: 1000,
            faults,
            ..Setup::default()
        };
        let mut outcome = through(&setup, &streams);
        outcome.too_large.sort_unstable();
        assert_eq!(outcome.too_large, [(1, 0), (1, 7), (1, 19)]);
        assert_eq!(outcome.lost, outcome.too_large);
        assert_eq!(
            (outcome.state, outcome.missing),
            (Some(State::Done), Some(3))
        );
    }
}

#[test]
fn memory_is_bounded() {
    let streams = numbered(300, 1000);
    let setup = Setup {
        resend: false,
        limit: 4000,
        faults: [10, 0, 0],
        ..Setup::default()
    };
    let outcome = through(&setup, &streams);
    assert!(!outcome.lost.is_empty());
    compare(&outcome, &streams);
    let losses: BTreeSet<_> = outcome.losses.iter().copied().collect();
    assert!(outcome.lost.iter().all(|lost| losses.contains(lost)));
}

#[test]
fn a_sender_that_nobody_hears_gives_up() {
    let setup = Setup {
        faults: [100, 0, 0],
        ..Setup::default()
    };
    let outcome = through(&setup, &numbered(3, 10));
    assert_eq!(outcome.state, Some(State::GivenUp));
    assert_eq!((outcome.reported, outcome.names.len()), (None, 0));
}
