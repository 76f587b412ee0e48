//! Options that change while lists come.

use std::net::UdpSocket;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use kymo_collectd::network::{Decoder, Packer, PackerOptions};
use kymo_collectd::{Identifier, Value};
use kymo_serve::csv;
use kymo_serve::forward::{self, Forwarder, Server};
use kymo_serve::ingest::{Databases, Ingest, Options, Origin, Session};
use kymo_serve::network::{self, Counters, Listen, Receiver};
use kymo_time::CdTime;

use crate::{Daemon, await_received, silent};

fn datagrams(counters: &Counters) -> u64 {
    counters.datagrams.load(Relaxed)
}

fn time(seconds: i64) -> CdTime {
    CdTime::from_seconds(1_700_000_000 + seconds).unwrap()
}

fn put(session: &mut Session, seconds: i64) {
    let id = Identifier::parse("h/p/gauge").unwrap();
    let values = [Value::Gauge(1.0)];
    session
        .take(&id, time(seconds), CdTime::ZERO, &values, true)
        .unwrap();
    session.commit().unwrap();
}

fn change(ingest: &Ingest, how: impl FnOnce(&mut Options)) {
    let mut options = Options::clone(&ingest.options());
    how(&mut options);
    options.check(ingest.store()).unwrap();
    ingest.change(options);
}

#[test]
fn sessions_that_are_open_go_by_new_options() {
    let daemon = Daemon::new(None);
    let ingest = &daemon.ingest;
    let mut session = ingest.session(Origin::Here);
    put(&mut session, 10);
    change(ingest, |options| {
        options.csv = Some(csv::Options {
            directory: daemon.path("other"),
            rates: false,
        });
        options.databases = Some(Databases {
            directory: "elsewhere".into(),
            ..Databases::default()
        });
    });
    put(&mut session, 20);
    let lines = |directory: &str| {
        let directory = daemon.path(directory).join("h/p");
        let files = std::fs::read_dir(directory).unwrap();
        let texts = files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap());
        texts.map(|text| text.lines().count() - 1).sum::<usize>()
    };
    assert_eq!((lines("csv"), lines("other")), (1, 1));
    for directory in ["rrd", "elsewhere"] {
        let path = daemon.path("data").join(directory).join("h/p/gauge.rrd");
        assert!(path.exists(), "{directory}");
    }
    // The same name as before, with the same counts.
    assert_eq!(ingest.known(), 1);
    assert_eq!(ingest.counters.lists.load(Relaxed), 2);
    change(ingest, |options| {
        (options.csv, options.databases) = (None, None);
    });
    put(&mut session, 30);
    assert_eq!((lines("csv"), lines("other")), (1, 1));
    let outside = Options {
        databases: Some(Databases {
            directory: "/elsewhere".into(),
            ..Databases::default()
        }),
        ..Options::clone(&ingest.options())
    };
    assert!(outside.check(ingest.store()).is_err());
    drop(session);
    daemon.close();
}

#[test]
fn what_is_packed_goes_to_the_new_server() {
    let [before, now] = [(); 2].map(|()| {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let patience = Some(Duration::from_secs(20));
        socket.set_read_timeout(patience).unwrap();
        socket
    });
    let to = |socket: &UdpSocket| forward::Options {
        servers: vec![Server {
            port: socket.local_addr().unwrap().port(),
            ..Server::new("127.0.0.1")
        }],
        ..forward::Options::default()
    };
    let daemon = Daemon::new(None);
    let ingest = &daemon.ingest;
    let first = Forwarder::start(&to(&before), &silent()).unwrap();
    change(ingest, |it| it.forwarder = Some(first.clone()));
    let mut session = ingest.session(Origin::Here);
    put(&mut session, 10);
    // This one is not handed over yet.
    let id = Identifier::parse("h/p/gauge").unwrap();
    let values = [Value::Gauge(1.0)];
    let taken = session.take(&id, time(20), CdTime::ZERO, &values, false);
    taken.unwrap();
    let second = first.successor(&to(&now), &silent()).unwrap();
    change(ingest, |it| it.forwarder = Some(second.clone()));
    first.close();
    session.send_on();
    second.close();
    for socket in [before, now] {
        let mut datagram = [0; 2000];
        let length = socket.recv(&mut datagram).unwrap();
        let mut lists = 0;
        let decoder = Decoder::default();
        decoder.decode(&datagram[..length], &mut (), &mut |_| lists += 1);
        assert_eq!(lists, 1);
    }
    assert_eq!(second.counters.lists.load(Relaxed), 2);
    assert_eq!(second.counters.lost.load(Relaxed), 0);
    drop(session);
    daemon.close();
}

/// Datagrams that the kernel holds are received, with any number of threads, even when the daemon is to stop
/// listening.
#[test]
fn what_the_kernel_has_is_received() {
    let daemon = Daemon::new(None);
    // More lists come than may wait until their database is created.
    let mut session = daemon.ingest.session(Origin::Here);
    put(&mut session, 0);
    let free = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let mut options = network::Options {
        listen: vec![Listen {
            port: address.port(),
            ..Listen::new("127.0.0.1")
        }],
        workers: 1,
        ..network::Options::default()
    };
    let receiver = Receiver::start(&options, &daemon.ingest, &silent()).unwrap();
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut sent = 0;
    let mut send = |count: i64| {
        for _ in 0..count {
            let mut packer = Packer::new(PackerOptions::default()).unwrap();
            let id = Identifier::parse("h/p/gauge").unwrap();
            let values = [Value::Gauge(1.0)];
            sent += 1;
            packer
                .values(&id, time(sent), CdTime::ZERO, &values)
                .unwrap();
            let datagram = packer.flush().unwrap();
            sender.send_to(&datagram, address).unwrap();
        }
        sent as u64
    };
    for workers in [2, 1, 3] {
        send(100);
        options.workers = workers;
        let plan = receiver.plan(&options, &silent()).unwrap();
        send(100);
        receiver.take(plan);
    }
    // An address that cannot be had changes nothing.
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut wrong = options.clone();
    wrong.listen.push(Listen {
        port: taken.local_addr().unwrap().port(),
        ..Listen::new("127.0.0.1")
    });
    assert!(receiver.plan(&wrong, &silent()).is_err());
    send(100);
    options.listen.clear();
    let plan = receiver.plan(&options, &silent()).unwrap();
    let sent = send(100);
    receiver.take(plan);
    assert_eq!(receiver.addresses(), []);
    await_received(&receiver, datagrams, sent);
    receiver.stop();
    let counters = &daemon.ingest.counters;
    assert_eq!(counters.dropped.load(Relaxed), 0);
    assert_eq!(counters.lists.load(Relaxed), 1 + sent);
    assert_eq!(counters.past.load(Relaxed), 0, "they stay in order");
    assert!(UdpSocket::bind(address).is_ok(), "nobody listens");
    daemon.close();
}

/// The one that gives way has the port until the other one listens.
#[test]
fn an_address_of_the_same_port_takes_the_place_of_another() {
    let daemon = Daemon::new(None);
    let free = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let options = |host: &str| network::Options {
        listen: vec![Listen {
            port,
            ..Listen::new(host)
        }],
        ..network::Options::default()
    };
    let receiver = Receiver::start(&options("127.0.0.1"), &daemon.ingest, &silent()).unwrap();
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut sent = 1;
    for host in ["0.0.0.0", "127.0.0.1", "0.0.0.0"] {
        let plan = receiver.plan(&options(host), &silent()).unwrap();
        receiver.take(plan);
        // A process that another test is just starting has a copy of the socket that gave way until it
        // runs its program, and what it gets is lost.
        let end = Instant::now() + Duration::from_secs(20);
        while receiver.count(datagrams) < sent {
            assert!(Instant::now() < end, "nothing is received at {host}");
            sender.send_to(b"x", ("127.0.0.1", port)).unwrap();
            std::thread::sleep(Duration::from_millis(100));
        }
        sent = receiver.count(datagrams) + 1;
    }
    assert!(
        UdpSocket::bind(("127.0.0.1", port)).is_err(),
        "nobody else gets in between"
    );
    receiver.stop();
    daemon.close();
}
