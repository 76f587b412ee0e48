//! Lists that are sent on.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use kymo_collectd::network::{Decoder, Item, Keys, Packer, PackerOptions, Protection, Security};
use kymo_collectd::{Identifier, Notification, Severity, Value};
use kymo_serve::forward::{Forwarder, Options, Server};
use kymo_serve::ingest::Origin;
use kymo_serve::network::{self, Listen, Receiver};
use kymo_serve::store::Log;
use kymo_time::CdTime;
use tempfile::TempDir;

use crate::{Daemon, await_count, send, silent, start_with};

/// Ten seconds.
const TEN: CdTime = CdTime::from_ticks(10 << 30);

fn time(seconds: i64) -> CdTime {
    CdTime::from_seconds(1_700_000_000 + seconds).unwrap()
}

fn forwarder(servers: Vec<Server>, received: bool) -> Arc<Forwarder> {
    let options = Options {
        servers,
        received,
        packet_size: 1024,
        time_to_live: Some(1),
    };
    Forwarder::start(&options, &silent()).unwrap()
}

/// A server that a socket is at.
fn at(socket: &UdpSocket) -> Server {
    Server {
        port: socket.local_addr().unwrap().port(),
        bind_address: Some("127.0.0.1".to_string()),
        ..Server::new("127.0.0.1")
    }
}

fn daemon(forwarder: &Arc<Forwarder>) -> Daemon {
    let directory = TempDir::new().unwrap();
    let ingest = start_with(directory.path(), None, Some(Arc::clone(forwarder)));
    Daemon { directory, ingest }
}

#[test]
fn servers_get_what_they_want_to_have() {
    let sockets = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
    let protected = Server {
        level: Security::Encrypt,
        user: Some(("alice".to_string(), "s3cret pass".to_string())),
        ..at(&sockets[1])
    };
    let forwarder = forwarder(vec![at(&sockets[0]), protected], false);
    let daemon = daemon(&forwarder);
    let id = Identifier::parse("host/plugin/gauge").unwrap();
    let names: Vec<String> = (0..100).map(|it| format!("name {it}")).collect();
    let mut here = daemon.ingest.session(Origin::Here);
    let mut datagrams = daemon.ingest.session(Origin::Datagrams);
    for (count, name) in (1..).zip(&names) {
        let id = Identifier {
            type_instance: name,
            ..id
        };
        let values = [Value::Gauge(0.5)];
        here.take(&id, time(count), TEN, &values, true).unwrap();
        // Neither what comes again nor what has come as a datagram.
        here.take(&id, time(count), TEN, &values, true).unwrap();
        datagrams
            .take(&id, time(count + 1000), TEN, &values, false)
            .unwrap();
    }
    here.commit().unwrap();
    datagrams.send_on();
    let notification = Notification {
        severity: Severity::Warning,
        time: time(7),
        id,
        message: "too much",
    };
    here.notify(&notification);
    here.notify(&notification);
    await_count(&forwarder.counters.lists, 2 * names.len() as u64);
    drop((here, datagrams));
    daemon.close();
    forwarder.close();
    let counters = &forwarder.counters;
    let counts = [&counters.lists, &counters.notifications, &counters.lost];
    assert_eq!(counts.map(|it| it.load(Relaxed)), [200, 2, 0]);
    let mut received = 0;
    for (socket, level) in sockets.iter().zip([Security::None, Security::Encrypt]) {
        socket.set_nonblocking(true).unwrap();
        let decoder = Decoder {
            level,
            keys: Some(Keys::parse(b"alice: s3cret pass").unwrap()),
        };
        let (mut lists, mut messages) = (Vec::new(), Vec::new());
        let mut buffer = [0; 2000];
        while let Ok(length) = socket.recv(&mut buffer) {
            assert!(length <= 1024);
            received += 1;
            decoder.decode(&buffer[..length], &mut (), &mut |item| match item {
                Item::Values(list) => {
                    assert_eq!((list.security, list.interval), (level, TEN));
                    lists.push((list.id.type_instance.to_string(), list.time));
                }
                Item::Notification(it) => messages.push(it.notification.message.to_string()),
                Item::Fault(fault) => panic!("{fault}"),
            });
        }
        let expected = (1..).zip(&names).map(|(at, name)| (name.clone(), time(at)));
        assert_eq!(lists, expected.collect::<Vec<_>>());
        assert_eq!(messages, ["too much"]);
    }
    assert_eq!(counters.datagrams.load(Relaxed), received);
}

#[test]
fn nothing_goes_round_in_circles() {
    // Each sends on to the other whatever it receives.
    let sockets = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
    let forwarders = [1, 0].map(|other: usize| forwarder(vec![at(&sockets[other])], true));
    let ports = sockets.map(|socket| socket.local_addr().unwrap().port());
    let daemons = [0, 1].map(|it: usize| daemon(&forwarders[it]));
    let receivers = [0, 1].map(|it: usize| {
        let options = network::Options {
            listen: vec![Listen {
                port: ports[it],
                ..Listen::new("127.0.0.1")
            }],
            workers: 1,
            ..network::Options::default()
        };
        Receiver::start(&options, &daemons[it].ingest, &silent()).unwrap()
    });
    let mut packer = Packer::new(PackerOptions {
        size: 1024,
        protection: Protection::None,
    })
    .unwrap();
    let id = Identifier::parse("host/plugin/gauge").unwrap();
    let values = [Value::Gauge(0.5)];
    packer.values(&id, time(1), TEN, &values).unwrap();
    let list = packer.flush().unwrap();
    let message = packer.notification(&Notification {
        severity: Severity::Okay,
        time: time(1),
        id,
        message: "fine",
    });
    for datagram in [list, message.unwrap()] {
        send(receivers[0].addresses()[0], &datagram);
    }
    // It has come back, and time has passed in which it would have gone on.
    let [first, second] = [0, 1].map(|it: usize| &daemons[it].ingest.counters);
    await_count(&first.lists, 2);
    await_count(&first.notifications, 2);
    std::thread::sleep(Duration::from_millis(2500));
    let counts = |counters: &kymo_serve::ingest::Counters| {
        [&counters.lists, &counters.past, &counters.notifications].map(|it| it.load(Relaxed))
    };
    assert_eq!((counts(first), counts(second)), ([2, 1, 2], [1, 0, 1]));
    receivers.iter().for_each(Receiver::stop);
    forwarders.iter().for_each(|it| it.close());
    daemons.iter().for_each(Daemon::close);
}

#[test]
fn what_cannot_be_sent_is_reported() {
    let (give, messages) = std::sync::mpsc::channel();
    let options = Options {
        servers: vec![Server::new("name.invalid")],
        ..Options::default()
    };
    let log: Log = Arc::new(move |_, text| drop(give.send(text.to_owned())));
    let forwarder = Forwarder::start(&options, &log).unwrap();
    let daemon = daemon(&forwarder);
    let mut session = daemon.ingest.session(Origin::Here);
    let id = Identifier::parse("host/plugin/gauge").unwrap();
    session
        .take(&id, time(1), TEN, &[Value::Gauge(0.5)], true)
        .unwrap();
    session.commit().unwrap();
    let message = messages.recv_timeout(Duration::from_secs(60)).unwrap();
    let expected = "name.invalid, port 25826: 1 lists or messages are not sent on: ";
    assert!(message.starts_with(expected), "{message}");
    assert_eq!(forwarder.counters.lost.load(Relaxed), 1);
    drop(session);
    daemon.close();
    forwarder.close();
    assert_eq!(forwarder.counters.lists.load(Relaxed), 0);
    let unsafe_one = Server {
        level: Security::Sign,
        ..Server::new("host")
    };
    let options = Options {
        servers: vec![unsafe_one],
        ..Options::default()
    };
    let error = Forwarder::start(&options, &silent()).unwrap_err();
    assert!(error.to_string().contains("needs a user"), "{error}");
}
