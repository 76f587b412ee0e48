//! Single datagrams: their bytes, and which are refused.

use proptest::prelude::*;

use super::*;
use crate::wire::envelope::{ALL, Body, Datagram, Fragment, Range, Seal, Unreadable, Writer};

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

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
