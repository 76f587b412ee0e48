//! How sessions go on and end: confirmed, interrupted, restarted, silent.

use std::collections::{BTreeMap, BTreeSet};

use super::network::supply;
use super::*;
use crate::wire::envelope::{Fragment, Writer};

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
