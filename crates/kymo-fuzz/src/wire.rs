//! Packets over UDP.

use std::time::Duration;

use kymo_ctf::wire::{
    Content, Event, Receiver, ReceiverLimits, ReceiverOptions, Sender, SenderOptions, State,
    recognize,
};

/// The version of datagrams that is read.
const VERSION: u8 = 2;
const STEP: Duration = Duration::from_millis(10);
/// How long both sides wait for each other.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longer than it takes until [`lossy`] loses no more.
const ENDLESS: Duration = Duration::from_secs(3600);

/// Any bytes as datagrams, and a session whose datagrams they lose. The first byte of each datagram
/// is its length, divided by 4; that of the first one also specifies whether missing data is requested.
pub(super) fn datagrams(data: &[u8]) {
    let Some((&choice, rest)) = data.split_first() else {
        return;
    };
    let mut receiver = receiver(choice & 1 != 0, PATIENCE);
    let mut sender = sender(PATIENCE);
    let mut now = Duration::ZERO;
    let mut left = rest;
    while let Some((&length, more)) = left.split_first() {
        let (datagram, more) = more.split_at(more.len().min(usize::from(length) * 4));
        left = more;
        now += STEP;
        let _ = recognize(datagram);
        let _ = receiver.receive(now, datagram);
        // No input would find a checksum by itself.
        let mut whole = datagram.to_vec();
        if let Some(version) = whole.get_mut(4) {
            *version = VERSION;
        }
        whole.extend(crc32fast::hash(&whole).to_be_bytes());
        let _ = receiver.receive(now, &whole);
        receiver.poll(now);
        while receiver.next_event().is_some() {}
        while let Some(reply) = receiver.next_datagram() {
            sender.receive(now, &reply);
        }
        sender.receive(now, datagram);
        sender.receive(now, &whole);
        for _ in 0..4 {
            if let Some(datagram) = sender.next_datagram(now) {
                assert!(datagram.len() <= 300);
            }
        }
    }
    receiver.finish();
    assert!(receiver.has_ended());
    lossy(choice & 1 != 0, rest);
}

fn receiver(resend: bool, idle: Duration) -> Receiver {
    Receiver::new(ReceiverOptions {
        key: None,
        resend,
        idle,
        first_number: 0,
        limits: ReceiverLimits {
            bytes: 1 << 16,
            packet: 1 << 15,
        },
    })
}

/// A sender with packets, of session 7.
fn sender(patience: Duration) -> Sender {
    let mut sender = Sender::new(SenderOptions {
        session: 7,
        key: None,
        datagram: 300,
        rate: 0,
        window: 1 << 20,
        supplies: false,
        patience,
    });
    for (content, packets) in [(Content::Metadata, 2), (Content::Packets, 6)] {
        let stream = sender.add_stream(content, "s").expect("a stream");
        for number in 0..packets {
            let packet = vec![number; 150 * usize::from(number)];
            sender.push(stream, packet).expect("a packet");
        }
    }
    sender.end();
    sender
}

/// A session in which the bits of `losses` specify which datagrams are lost; after these, none are.
fn lossy(resend: bool, losses: &[u8]) {
    let (mut sender, mut receiver) = (sender(ENDLESS), receiver(resend, ENDLESS));
    let mut bits = losses
        .iter()
        .flat_map(|byte| (0..8).map(move |bit| byte >> bit & 1 != 0))
        .take(500);
    let (mut now, mut packets, mut lost) = (Duration::ZERO, 0, 0);
    while sender.wait(now).is_some() {
        now += STEP;
        while let Some(datagram) = sender.next_datagram(now) {
            if !bits.next().unwrap_or(false) {
                receiver
                    .receive(now, &datagram)
                    .expect("it is of the session");
            }
        }
        receiver.poll(now);
        while let Some(event) = receiver.next_event() {
            match event {
                Event::Packet { packet, bytes, .. } => {
                    packets += 1;
                    assert_eq!(bytes, vec![packet as u8; 150 * packet as usize]);
                }
                Event::TooLarge { .. } => panic!("no packet is too large"),
                Event::Lost { first, last, .. } => lost += last + 1 - first,
                Event::Stream { .. } => {}
                Event::End { reported } => assert!(reported || sender.state() != State::Done),
            }
        }
        while let Some(reply) = receiver.next_datagram() {
            if !bits.next().unwrap_or(false) {
                assert!(sender.receive(now, &reply));
            }
        }
    }
    assert_eq!(sender.state(), State::Done);
    assert_eq!(packets + lost, 8);
    assert_eq!(sender.missing(), Some(u64::from(lost)));
    assert!(lost == 0 || !resend);
}
