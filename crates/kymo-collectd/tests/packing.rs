//! What is packed comes out again, whatever it is.

use std::collections::VecDeque;

use kymo_collectd::network::{
    Decoder, Item, Keys, Packer, PackerOptions, Problem, Protection, ReplayWindow, Security,
};
use kymo_collectd::{Identifier, Kind, Notification, Severity, Value};
use kymo_time::CdTime;
use proptest::prelude::*;

/// Values with all that belongs to them.
#[derive(Clone, Debug)]
struct List {
    names: [String; 5],
    time: CdTime,
    interval: CdTime,
    values: Vec<Value>,
}

impl List {
    fn id(&self) -> Identifier<'_> {
        let [host, plugin, plugin_instance, type_name, type_instance] = &self.names;
        Identifier {
            host,
            plugin,
            plugin_instance,
            type_name,
            type_instance,
        }
    }
}

fn value() -> impl Strategy<Value = Value> {
    let kinds = [Kind::Counter, Kind::Gauge, Kind::Derive, Kind::Absolute];
    let kind = proptest::sample::select(kinds.to_vec());
    (kind, any::<[u8; 8]>()).prop_map(|(kind, bytes)| Value::from_wire(kind, bytes))
}

fn list() -> impl Strategy<Value = List> {
    let name = || prop_oneof!["[a-c]", "[a-z0-9-]{1,20}", "[A-Z]{127}"];
    let instance = || prop_oneof![Just(String::new()), name()];
    let names = (name(), name(), instance(), name(), instance());
    let number = || prop_oneof![1..4u64, 1..=u64::MAX];
    let values = proptest::collection::vec(value(), 1..30);
    (names, number(), number(), values).prop_map(|(names, time, interval, values)| List {
        names: [names.0, names.1, names.2, names.3, names.4],
        time: CdTime::from_ticks(time),
        interval: CdTime::from_ticks(interval - 1),
        values,
    })
}

const SIZE: usize = 1200;

fn packer(security: Security) -> Packer {
    let (user, password) = ("alice".to_string(), b"s3cret pass".to_vec());
    let mut count = 0u8;
    let protection = match security {
        Security::None => Protection::None,
        Security::Sign => Protection::Sign { user, password },
        Security::Encrypt => Protection::Encrypt {
            user,
            password,
            random: Box::new(move || {
                count = count.wrapping_add(1);
                [count; 16]
            }),
        },
    };
    Packer::new(PackerOptions {
        size: SIZE,
        protection,
    })
    .unwrap()
}

fn decoder(level: Security) -> Decoder {
    Decoder {
        level,
        keys: Some(Keys::parse(b"alice: s3cret pass").unwrap()),
    }
}

fn security() -> impl Strategy<Value = Security> {
    proptest::sample::select(vec![Security::None, Security::Sign, Security::Encrypt])
}

/// As bits, since a NaN is not equal to itself.
fn bits(values: impl IntoIterator<Item = Value>) -> Vec<(u8, [u8; 8])> {
    values.into_iter().map(Value::to_wire).collect()
}

proptest! {
    #[test]
    fn values_come_back(security in security(), lists in proptest::collection::vec(list(), 1..16)) {
        let mut packer = packer(security);
        let mut datagrams = Vec::new();
        for list in &lists {
            datagrams.extend(packer.values(&list.id(), list.time, list.interval, &list.values).unwrap());
        }
        datagrams.extend(packer.flush());
        prop_assert_eq!(packer.flush(), None);
        let mut expected: VecDeque<_> = lists.iter().collect();
        for datagram in &datagrams {
            prop_assert!(datagram.len() <= SIZE);
            decoder(security).decode(datagram, &mut (), &mut |item| {
                let Item::Values(found) = item else { panic!("{item:?}") };
                let list = expected.pop_front().unwrap();
                assert_eq!((found.id, found.time, found.interval, found.security),
                    (list.id(), list.time, list.interval, security));
                assert_eq!(bits(found.values.iter()), bits(list.values.iter().copied()));
            });
        }
        prop_assert!(expected.is_empty());
    }

    #[test]
    fn messages_come_back(security in security(), list in list(), message in "[ -~é]{1,120}") {
        let notification = Notification {
            severity: Severity::Warning,
            time: list.time,
            id: list.id(),
            message: &message,
        };
        let datagram = packer(security).notification(&notification).unwrap();
        let mut count = 0;
        decoder(security).decode(&datagram, &mut (), &mut |item| {
            let Item::Notification(found) = item else { panic!("{item:?}") };
            assert_eq!((found.notification, found.security), (notification, security));
            count += 1;
        });
        prop_assert_eq!(count, 1);
    }

    /// No byte of a protected datagram can be changed, and no byte taken away.
    #[test]
    fn changes_are_found(list in list(), at: proptest::sample::Index, flip in 1..=255u8, cut: bool) {
        for security in [Security::Sign, Security::Encrypt] {
            let mut packer = packer(security);
            packer.values(&list.id(), list.time, list.interval, &list.values).unwrap();
            let mut datagram = packer.flush().unwrap();
            let at = at.index(datagram.len());
            if cut {
                datagram.truncate(at);
            } else {
                datagram[at] ^= flip;
            }
            decoder(security).decode(&datagram, &mut (), &mut |item| {
                assert!(matches!(item, Item::Fault(_)), "{item:?}");
            });
        }
    }

    #[test]
    fn any_bytes_are_withstood(security in security(), bytes: Vec<u8>) {
        decoder(security).decode(&bytes, &mut (), &mut |_| {});
    }

    /// Parts with right headers come further than bytes that mean nothing.
    #[test]
    fn any_parts_are_withstood(
        level in security(),
        parts in proptest::collection::vec((0..12u16, 0..20usize, any::<[u8; 20]>()), 0..20),
    ) {
        let mut datagram = Vec::new();
        for (kind, length, payload) in parts {
            let kind = match kind { 10 => 0x100, 11 => 0x101, kind => kind };
            datagram.extend_from_slice(&kind.to_be_bytes());
            datagram.extend_from_slice(&(length as u16 + 4).to_be_bytes());
            datagram.extend_from_slice(&payload[..length]);
        }
        decoder(level).decode(&datagram, &mut (), &mut |item| {
            if let Item::Values(list) = item {
                assert_eq!(list.id.check(), Ok(()));
            }
        });
    }
}

fn example() -> List {
    List {
        names: ["h", "p", "", "t", ""].map(String::from),
        time: CdTime::from_seconds(1_700_000_000).unwrap(),
        interval: CdTime::ZERO,
        values: vec![Value::Gauge(1.0)],
    }
}

fn problems(
    decoder: &Decoder,
    datagram: &[u8],
    window: &mut ReplayWindow,
    now: CdTime,
) -> Vec<Problem> {
    let mut problems = Vec::new();
    decoder.decode(datagram, &mut window.at(now), &mut |item| {
        if let Item::Fault(fault) = item {
            problems.push(fault.problem);
        }
    });
    problems
}

#[test]
fn what_is_sent_again_is_refused() {
    let list = example();
    let second = |count: i64| CdTime::from_seconds(1_700_000_000 + count).unwrap();
    for security in [Security::Sign, Security::Encrypt] {
        let mut packer = packer(security);
        packer
            .values(&list.id(), list.time, list.interval, &list.values)
            .unwrap();
        let datagram = packer.flush().unwrap();
        let mut window = ReplayWindow::new(CdTime::from_seconds(60).unwrap(), 100);
        let decoder = decoder(security);
        let mut at = |now| problems(&decoder, &datagram, &mut window, now);
        assert_eq!(at(second(5)), []);
        assert_eq!(at(second(6)), [Problem::Replayed]);
        assert_eq!(at(second(1000)), [Problem::Stale]);
    }
}

#[test]
fn what_is_protected_too_often_is_refused() {
    // Signatures in each other, from the innermost.
    let list = example();
    let mut plain = packer(Security::None);
    plain
        .values(&list.id(), list.time, list.interval, &list.values)
        .unwrap();
    let mut datagram = plain.flush().unwrap();
    for depth in 1..=6 {
        let mac = {
            use hmac::{Hmac, KeyInit, Mac};
            let mut mac = Hmac::<sha2::Sha256>::new_from_slice(b"s3cret pass").unwrap();
            mac.update(b"alice");
            mac.update(&datagram);
            mac.finalize().into_bytes()
        };
        let header = [0x02, 0x00, 0x00, 41];
        datagram = [&header[..], &mac, b"alice", &datagram].concat();
        let mut window = ReplayWindow::new(CdTime::MAX, 100);
        let problems = problems(&decoder(Security::Sign), &datagram, &mut window, list.time);
        match depth {
            1..=4 => assert_eq!(problems, [], "{depth}"),
            _ => assert_eq!(problems, [Problem::Nesting], "{depth}"),
        }
    }
}

#[test]
fn what_cannot_be_sent_is_refused() {
    use kymo_collectd::network::EncodeError;
    let list = example();
    let mut packer = packer(Security::None);
    let mut values =
        |list: &List| packer.values(&list.id(), list.time, list.interval, &list.values);
    let with = |change: &dyn Fn(&mut List)| {
        let mut list = list.clone();
        change(&mut list);
        list
    };
    for (list, error) in [
        (with(&|list| list.values.clear()), EncodeError::Values(0)),
        (
            with(&|list| list.values = vec![Value::Derive(0); 65_536]),
            EncodeError::Values(65_536),
        ),
        (
            with(&|list| list.values = vec![Value::Derive(0); 100]),
            EncodeError::Values(100),
        ),
        (with(&|list| list.time = CdTime::ZERO), EncodeError::NoTime),
        (
            with(&|list| list.names[0].clear()),
            EncodeError::Empty("host"),
        ),
        (
            with(&|list| list.names[2] = "a\0b".to_string()),
            EncodeError::Nul("plugin instance"),
        ),
        (
            with(&|list| list.names[4] = "x".repeat(128)),
            EncodeError::TooLong("type instance"),
        ),
    ] {
        assert_eq!(values(&list), Err(error));
    }
    assert_eq!(packer.flush(), None, "nothing was packed");
    for size in [1023, 65_508] {
        let protection = Protection::None;
        let result = Packer::new(PackerOptions { size, protection });
        assert_eq!(result.err(), Some(EncodeError::Size(size)));
    }
    let protection = Protection::Sign {
        user: "u".repeat(65),
        password: vec![],
    };
    let result = Packer::new(PackerOptions {
        protection,
        ..PackerOptions::default()
    });
    assert_eq!(result.err(), Some(EncodeError::User));
}
