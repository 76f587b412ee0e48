//! A network that loses, doubles and reorders, and the two sides of it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;

use super::envelope::{ALL, Body, Datagram, Fragment, Range, Seal, Unreadable, Writer};
use super::*;
use crate::secure::Key;

const STEP: Duration = Duration::from_millis(1);

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
fn supply(sender: &mut Sender, streams: &Streams) {
    if let Some((stream, packet)) = sender.next_wanted() {
        let (.., packets) = &streams[stream as usize - 1];
        sender.supply((stream, packet), &packets[packet as usize][..]);
    }
}

type Streams = Vec<(Content, String, Vec<Vec<u8>>)>;

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

    #[test]
    fn any_datagram_is_withstood(
        datagrams in proptest::collection::vec(
            (proptest::collection::vec(any::<u8>(), 0..80), 1..6u8, any::<bool>()), 0..40),
    ) {
        let mut receiver = Receiver::new(ReceiverOptions {
            key: None, resend: true, idle: STEP * 100, first_number: 0,
            limits: ReceiverLimits { bytes: 1 << 12, packet: 1 << 16 },
        });
        for (at, (bytes, kind, headed)) in (0..).zip(datagrams) {
            let mut datagram = b"kymo\x02\x00\x00\x00\0\0\0\0\0\0\0\x07".to_vec();
            datagram[5] = kind;
            if !headed { datagram.clear(); }
            datagram.extend(bytes);
            datagram.extend(crc32fast::hash(&datagram).to_be_bytes());
            let _ = receiver.receive(STEP * at, &datagram);
            receiver.poll(STEP * at);
            while receiver.next_event().is_some() {}
        }
        receiver.finish();
        prop_assert!(receiver.has_ended());
    }
}

fn numbered(count: u32, size: usize) -> Streams {
    let packets = (0..count).map(|number| vec![number as u8; size]);
    vec![(Content::Packets, "s".to_owned(), packets.collect())]
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

/// Everything goes to a receiver that stops after some datagrams, and then to another one that knows what the first
/// had, or not.
#[test]
fn a_receiver_that_is_restarted_gets_what_it_needs() {
    let mut streams = numbered(100, 700);
    streams.push((
        Content::Metadata,
        "m".to_owned(),
        vec![b"one".to_vec(), b"two".to_vec()],
    ));
    for (stops, resumes) in [(0, false), (1, true), (30, true), (120, false), (290, true)] {
        let mut sender = Sender::new(SenderOptions {
            session: 5,
            key: None,
            datagram: 300,
            rate: 100_000,
            window: 2000,
            supplies: true,
            patience: Duration::from_secs(100),
        });
        for (content, name, packets) in &streams {
            let stream = sender.add_stream(*content, name).unwrap();
            for packet in packets {
                sender.push(stream, &packet[..]).unwrap();
            }
        }
        sender.end();
        let options = |first_number| ReceiverOptions {
            first_number,
            idle: Duration::from_secs(100),
            ..options()
        };
        let mut receiver = Receiver::new(options(1000));
        let (mut now, mut sent, mut names) = (STEP, 0, BTreeSet::new());
        let mut is_restarted = false;
        let mut had: BTreeMap<u32, Vec<Vec<u8>>> = BTreeMap::new();
        while sender.wait(now).is_some() {
            assert!(now < Duration::from_secs(200));
            now += STEP;
            supply(&mut sender, &streams);
            while let Some(datagram) = sender.next_datagram(now) {
                sent += 1;
                // In between, there is no listener.
                if !(stops..stops + 20).contains(&sent) {
                    receiver.receive(now, &datagram).unwrap();
                }
            }
            receiver.poll(now);
            while let Some(reply) = receiver.next_datagram() {
                sender.receive(now, &reply);
            }
            while let Some(event) = receiver.next_event() {
                match event {
                    Event::Packet { stream, bytes, .. } => {
                        had.entry(stream).or_default().push(bytes);
                    }
                    Event::Stream { name, .. } => drop(names.insert(name)),
                    Event::End { reported } => assert!(reported),
                    other => panic!("{other:?}"),
                }
            }
            if sent >= stops + 20 && !is_restarted {
                is_restarted = true;
                receiver = match resumes {
                    true => {
                        let streams = had.iter().map(|(&stream, had)| (stream, had.len() as u32));
                        let resume = Resume {
                            session: 5,
                            arrived: receiver.arrived(),
                            streams: streams.collect(),
                        };
                        Receiver::resumed(options(2_000_000), &resume)
                    }
                    false => {
                        had.clear();
                        names.clear();
                        Receiver::new(options(2_000_000))
                    }
                };
            }
        }
        assert_eq!(sender.delivered(), Ok(()), "{stops}");
        assert_eq!(names.len(), 2);
        for (number, (.., packets)) in (1..).zip(&streams) {
            assert!(had[&number] == *packets, "stream {number} after {stops}");
        }
    }
}

#[test]
fn a_receiver_says_how_much_has_arrived() {
    let (mut sender, mut receiver) = (sender_of(3), receiver(None));
    assert_eq!(sender.confirmed(), None);
    while let Some(datagram) = sender.next_datagram(STEP) {
        receiver.receive(STEP, &datagram).unwrap();
    }
    let probe = sender.probe(STEP);
    receiver.receive(STEP, &probe).unwrap();
    while let Some(reply) = receiver.next_datagram() {
        assert!(sender.receive(STEP, &reply));
    }
    assert_eq!(sender.confirmed(), Some(3));
}

/// A sender of `packets` packets that has not ended.
fn sender_of(packets: u8) -> Sender {
    let mut sender = Sender::new(SenderOptions {
        session: 1,
        key: None,
        datagram: 300,
        rate: 0,
        window: 1 << 20,
        supplies: false,
        patience: STEP,
    });
    let stream = sender.add_stream(Content::Packets, "s").unwrap();
    for number in 0..packets {
        sender.push(stream, vec![number; 100]).unwrap();
    }
    sender
}

#[test]
fn altered_datagrams_are_refused_without_a_key_too() {
    let mut sender = sender_of(1);
    let datagram = sender.next_datagram(STEP).unwrap();
    for at in 0..datagram.len() {
        for bit in 0..8 {
            let mut altered = datagram.clone();
            altered[at] ^= 1 << bit;
            assert!(receiver(None).receive(STEP, &altered).is_err());
        }
    }
    let mut altered = datagram.clone();
    altered[30] ^= 1;
    let refusal = receiver(None).receive(STEP, &altered);
    assert_eq!(refusal, Err(Refusal::Checksum));
    assert_eq!(session_of(&altered), Some(1));
    assert_eq!(session_of(b"kymo"), None);
    assert_eq!(receiver(None).receive(STEP, &datagram), Ok(true));
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

#[test]
fn a_sender_that_falls_silent_is_not_waited_for() {
    let mut sender = Sender::new(SenderOptions {
        session: 3,
        key: None,
        datagram: 300,
        rate: 0,
        window: 0,
        supplies: false,
        patience: STEP,
    });
    let stream = sender.add_stream(Content::Packets, "s").unwrap();
    for _ in 0..3 {
        sender.push(stream, vec![1; 400]).unwrap();
    }
    let mut receiver = receiver(None);
    // The directory, the first packet, half of the second, half of the third.
    let datagrams: Vec<_> = std::iter::from_fn(|| sender.next_datagram(STEP)).collect();
    for at in [0, 1, 2, 3, 5] {
        receiver.receive(STEP, &datagrams[at]).unwrap();
    }
    receiver.poll(STEP * 2000);
    let events: Vec<_> = std::iter::from_fn(|| receiver.next_event()).collect();
    assert!(matches!(events[1], Event::Packet { packet: 0, .. }));
    assert_eq!(
        events[2..],
        [
            Event::Lost {
                stream: 1,
                first: 1,
                last: 2
            },
            Event::End { reported: false }
        ]
    );
}

/// A sender whose session has one stream of three packets, with all packets and the end sent.
fn ending() -> (Sender, Vec<Vec<u8>>) {
    let mut sender = Sender::new(SenderOptions {
        session: 3,
        key: None,
        datagram: 300,
        rate: 0,
        window: 1 << 20,
        supplies: false,
        patience: Duration::from_secs(60),
    });
    let stream = sender.add_stream(Content::Packets, "s").unwrap();
    for _ in 0..3 {
        sender.push(stream, vec![1; 100]).unwrap();
    }
    sender.end();
    let datagrams = std::iter::from_fn(|| sender.next_datagram(STEP)).collect();
    (sender, datagrams)
}

#[test]
fn a_receiver_that_ends_early_reports_what_has_arrived() {
    // The directory and two packets; then it is interrupted.
    let (mut sender, datagrams) = ending();
    let mut receiver = receiver(None);
    for datagram in &datagrams[..3] {
        receiver.receive(STEP, datagram).unwrap();
    }
    receiver.finish();
    let done = std::iter::from_fn(|| receiver.next_datagram())
        .last()
        .unwrap();
    assert_eq!(sender.missing(), None);
    assert_eq!(sender.delivered(), Err(super::Undelivered::Unconfirmed));
    assert!(sender.receive(STEP * 2, &done));
    assert_eq!((sender.state(), sender.missing()), (State::Done, Some(1)));
    let why = sender.delivered().unwrap_err();
    assert_eq!(why.to_string(), "1 packet never arrived");
    // Whatever comes now is too late, and nothing it says changes that.
    for datagram in &datagrams {
        receiver.receive(STEP * 3, datagram).unwrap();
    }
    let again = std::iter::from_fn(|| receiver.next_datagram())
        .last()
        .unwrap();
    assert!(sender.receive(STEP * 3, &again));
    assert_eq!(sender.missing(), Some(1));
}

#[test]
fn a_receiver_that_counts_nothing_is_understood() {
    let (mut sender, _) = ending();
    let mut writer = Writer::new(3, None, 300, 0);
    let mut done = writer.done(0);
    done.truncate(24);
    done.extend(crc32fast::hash(&done).to_be_bytes());
    assert!(sender.receive(STEP, &done));
    assert_eq!((sender.state(), sender.missing()), (State::Done, None));
}

fn receiver(key: Option<Key>) -> Receiver {
    Receiver::new(ReceiverOptions { key, ..options() })
}

fn options() -> ReceiverOptions {
    ReceiverOptions {
        key: None,
        resend: true,
        idle: Duration::from_secs(1),
        first_number: 0,
        limits: ReceiverLimits::default(),
    }
}

#[test]
fn what_is_sent_again_keeps_nobody_waiting() {
    let mut writer = Writer::new(1, None, 300, 0);
    let datagrams: Vec<_> = (0..3).map(|_| writer.end(1)).collect();
    let mut receiver = receiver(None);
    assert_eq!(receiver.receive(STEP, &datagrams[1]), Ok(true));
    for at in 1..900 {
        for old in &datagrams[..2] {
            assert_eq!(receiver.receive(STEP * at, old), Ok(false));
        }
        receiver.poll(STEP * at);
        assert!(!receiver.has_ended());
    }
    assert_eq!(receiver.receive(STEP * 900, &datagrams[2]), Ok(true));
    receiver.poll(STEP * 1899);
    assert!(!receiver.has_ended());
    assert_eq!(receiver.receive(STEP * 1899, &datagrams[2]), Ok(false));
    receiver.poll(STEP * 1900);
    assert!(receiver.has_ended());
}

/// Without asking there is something to do only when a gap becomes late, and at the end of patience.
#[test]
fn a_receiver_that_does_not_ask_sleeps_until_something_is_late() {
    // The directory, then packets 0, 1 and 2.
    let (_, datagrams) = ending();
    let mut receiver = Receiver::new(ReceiverOptions {
        key: None,
        resend: false,
        idle: STEP * 10_000,
        first_number: 0,
        limits: ReceiverLimits::default(),
    });
    assert_eq!(receiver.deadline(), None);
    for datagram in &datagrams[..2] {
        receiver.receive(STEP, datagram).unwrap();
    }
    for now in [1, 400, 5000] {
        receiver.poll(STEP * now);
        assert_eq!(receiver.deadline(), Some(STEP * 10_001), "at {now} ms");
    }
    receiver.receive(STEP * 5000, &datagrams[3]).unwrap();
    receiver.poll(STEP * 5000);
    assert_eq!(receiver.deadline(), Some(STEP * 5300));
    receiver.poll(STEP * 5299);
    assert_eq!(receiver.deadline(), Some(STEP * 5300));
    receiver.poll(STEP * 5300);
    let events: Vec<_> = std::iter::from_fn(|| receiver.next_event()).collect();
    let lost = Event::Lost {
        stream: 1,
        first: 1,
        last: 1,
    };
    assert!(events.contains(&lost), "{events:?}");
    assert_eq!(receiver.deadline(), Some(STEP * 15_000));
}

#[test]
fn a_stream_ends_before_the_last_number() {
    let mut writer = Writer::new(1, None, 300, 0);
    let mut fragment = |packet| {
        writer.fragment(&Fragment {
            stream: 1,
            packet,
            size: 1,
            fragment: 0,
            fragment_size: 100,
            bytes: b"x",
        })
    };
    let last = fragment(u32::MAX);
    let before = fragment(u32::MAX - 1);
    let mut receiver = receiver(None);
    assert_eq!(receiver.receive(STEP, &last), Err(Refusal::Limit));
    assert_eq!(receiver.receive(STEP, &before), Ok(true));
    receiver.poll(STEP * 500);
    let gone = writer.gone(1, u32::MAX);
    assert_eq!(receiver.receive(STEP * 501, &gone), Ok(true));
    let events: Vec<_> = std::iter::from_fn(|| receiver.next_event()).collect();
    assert!(matches!(
        events[1],
        Event::Packet { packet, .. } if packet == u32::MAX - 1
    ));
    assert_eq!(receiver.receive(STEP * 502, &last), Err(Refusal::Limit));
    receiver.poll(STEP * 2000);
    assert!(receiver.has_ended());
}

#[test]
fn only_who_has_the_key_is_heard() {
    let (ours, theirs) = (Key::new(&[1; 16]).unwrap(), Key::new(&[2; 16]).unwrap());
    let datagram = |key: Option<&Key>, session| {
        let mut writer = Writer::new(session, key.and_then(Seal::new), 300, 0);
        writer.end(1)
    };
    let mut with_key = receiver(Some(ours.clone()));
    let refuse = |receiver: &mut Receiver, datagram: &[u8]| receiver.receive(STEP, datagram);
    assert_eq!(
        refuse(&mut with_key, &datagram(None, 1)),
        Err(Refusal::NotAuthentic)
    );
    assert_eq!(
        refuse(&mut with_key, &datagram(Some(&theirs), 1)),
        Err(Refusal::NotAuthentic)
    );
    let mut altered = datagram(Some(&ours), 1);
    altered[27] ^= 1;
    assert_eq!(refuse(&mut with_key, &altered), Err(Refusal::NotAuthentic));
    assert!(!with_key.has_begun());
    assert_eq!(refuse(&mut with_key, &datagram(Some(&ours), 1)), Ok(true));
    assert_eq!(
        refuse(&mut with_key, &datagram(Some(&ours), 2)),
        Err(Refusal::OtherSession)
    );

    let mut without = receiver(None);
    assert_eq!(
        refuse(&mut without, &datagram(Some(&ours), 1)),
        Err(Refusal::KeyNeeded)
    );
    assert_eq!(refuse(&mut without, b"kym"), Err(Refusal::Foreign));
    assert_eq!(refuse(&mut without, b"kymo"), Err(Refusal::Damaged));
    assert_eq!(
        refuse(&mut without, b"kymo\x03\x01\x00\x00"),
        Err(Refusal::Version)
    );
}

#[test]
fn a_request_that_was_kept_is_not_served_again() {
    let mut sender = Sender::new(SenderOptions {
        session: 9,
        key: None,
        datagram: 300,
        rate: 0,
        window: 1 << 20,
        supplies: false,
        patience: STEP,
    });
    let stream = sender.add_stream(Content::Packets, "s").unwrap();
    sender.push(stream, vec![1; 400]).unwrap();
    while sender.next_datagram(STEP).is_some() {}
    let mut writer = Writer::new(9, None, 300, 0);
    let range = Range {
        stream,
        packet: 0,
        packets: 1,
        fragment: 0,
        fragments: ALL,
    };
    let (request, _) = writer.request(&[range]);
    let mut answers = |request: &[u8]| {
        assert!(sender.receive(STEP, request));
        std::iter::from_fn(|| sender.next_datagram(STEP)).count()
    };
    assert_eq!(answers(&request), 2);
    assert_eq!(answers(&request), 0);
    let (next, _) = writer.request(&[range]);
    assert_eq!(answers(&next), 2);
    assert_eq!(answers(&request), 0);
}

/// The bytes that the page about the format shows.
#[test]
fn datagrams_have_the_bytes_that_are_reported() {
    let mut writer = Writer::new(0x0102_0304_0506_0708, None, 300, 0);
    let fragment = Fragment {
        stream: 1,
        packet: 2,
        size: 259,
        fragment: 1,
        fragment_size: 256,
        bytes: b"end",
    };
    let datagram = writer.fragment(&fragment);
    let expected = b"kymo\x02\x01\0\0\x01\x02\x03\x04\x05\x06\x07\x08\0\0\0\0\0\0\0\0\
        \0\0\0\x01\0\0\0\x02\0\0\x01\x03\0\0\0\x01\x01\0\0\0end\xa8\x11\x0d\x8a";
    assert_eq!(datagram, expected);
    let read = Datagram::read(&datagram, None).unwrap();
    assert_eq!(read.body, Body::Fragment(fragment));
    let datagram_of_end = writer.done(3);
    let expected = b"kymo\x02\x05\0\0\x01\x02\x03\x04\x05\x06\x07\x08\0\0\0\0\0\0\0\x01\
        \0\0\0\0\0\0\0\x03\x67\x0d\x57\x39";
    assert_eq!(datagram_of_end, expected);
    for cut in 0..datagram.len() {
        let error = Datagram::read(&datagram[..cut], None).unwrap_err();
        assert!(matches!(
            error,
            Unreadable::Foreign | Unreadable::Damaged | Unreadable::Checksum
        ));
    }
}

#[test]
fn packets_as_they_are_are_recognized() {
    assert_eq!(recognize(b"kymo"), None);
    assert_eq!(recognize(b"\xc1\x1f\xfc"), None);
    assert_eq!(recognize(b"\x57\x1d\xd1\x75"), Some(Raw::Metadata));
    let mut packet = b"\xc1\x1f\xfc\xc1".to_vec();
    assert_eq!(recognize(&packet), Some(Raw::Packet { count: None }));
    packet.resize(50, 0);
    for (at, value) in [(8, 50), (12, 50), (20, 7), (44, 16)] {
        packet[at] = value;
    }
    let count = Some((7, 16));
    assert_eq!(recognize(&packet), Some(Raw::Packet { count }));
    packet[12] = 51;
    assert_eq!(recognize(&packet), Some(Raw::Packet { count: None }));
}
