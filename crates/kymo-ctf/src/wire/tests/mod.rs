//! The two sides of a transmission, and what they say to each other.

mod datagrams;
mod network;
mod sessions;

use std::time::Duration;

use super::*;
use crate::secure::Key;

const STEP: Duration = Duration::from_millis(1);

type Streams = Vec<(Content, String, Vec<Vec<u8>>)>;

fn numbered(count: u32, size: usize) -> Streams {
    let packets = (0..count).map(|number| vec![number as u8; size]);
    vec![(Content::Packets, "s".to_owned(), packets.collect())]
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
