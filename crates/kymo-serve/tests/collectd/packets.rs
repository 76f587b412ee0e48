//! Datagrams that collectd has sent reach databases and files with all their digits.

use std::collections::{BTreeMap, BTreeSet};
use std::net::UdpSocket;
use std::sync::atomic::Ordering::Relaxed;

use kymo_collectd::network::{Packer, PackerOptions, Protection, Security};
use kymo_collectd::{Identifier, Value};
use kymo_rrd::Source;
use kymo_serve::ingest::{Origin, Problem, now};
use kymo_serve::metrics::Page;
use kymo_serve::network::{self, Counters, Listen, Receiver};
use kymo_time::CdTime;
use serde_json::Value as Json;

use crate::{Daemon, await_count, await_received, data, send, silent};

/// The lists that a table calls for: by name, the time and the values as text.
fn expected(name: &str) -> BTreeMap<String, BTreeSet<String>> {
    let table = std::fs::read_to_string(data(&format!("packets/{name}.expected.jsonl"))).unwrap();
    let mut lists: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in table.lines() {
        let line: Json = serde_json::from_str(line).unwrap();
        for list in line["decoded"].as_array().unwrap() {
            let Some(id) = list["vl"].as_str() else {
                continue;
            };
            let time = CdTime::from_ticks(list["time"].as_u64().unwrap()).lossless();
            let values = list["values"].as_array().unwrap().iter();
            let values = values.map(|value| match value[1].as_str() {
                Some(text) => text.parse::<f64>().unwrap().to_string(),
                None => value[1].to_string(),
            });
            let row = [time].into_iter().chain(values).collect::<Vec<_>>();
            lists
                .entry(id.to_string())
                .or_default()
                .insert(row.join(","));
        }
    }
    lists
}

fn check(name: &str, level: Security) {
    let daemon = Daemon::new(None);
    let (receiver, address) = daemon.receive(level, true);
    // From one socket, so that they stay in order.
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for number in 0..20 {
        let datagram = std::fs::read(data(&format!("packets/{name}-{number:04}.bin"))).unwrap();
        socket.send_to(&datagram, address).unwrap();
    }
    let counters = &daemon.ingest.counters;
    await_count(&counters.lists, 428);
    receiver.stop();
    assert_eq!(receiver.count(Counters::faults), 0);
    assert_eq!(counters.lists.load(Relaxed), 428);
    daemon.close();
    let store = &daemon.ingest.store().counters;
    assert_eq!(store.refused.load(Relaxed), 0);
    assert_eq!(
        store.written.load(Relaxed) + counters.past.load(Relaxed),
        428,
        "every list is in a database, unless it came out of order"
    );
    for (id, rows) in expected(name) {
        let parsed = Identifier::parse(&id).unwrap();
        let (host, path) = id.split_once('/').unwrap();
        assert_eq!(host, parsed.host);
        let (plugin, file) = path.split_once('/').unwrap();
        let directory = daemon.path("csv").join(host).join(plugin);
        let mut found = BTreeSet::new();
        let begin = format!("{file}-20");
        for entry in std::fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            if entry.file_name().to_str().unwrap().starts_with(&begin) {
                let text = std::fs::read_to_string(entry.path()).unwrap();
                assert!(text.starts_with("epoch,value"), "{text}");
                found.extend(text.lines().skip(1).map(str::to_string));
            }
        }
        assert_eq!(found, rows, "{id}");
        // The database has come to the last of them, to the microsecond.
        let path = daemon.path("data/rrd").join(format!("{id}.rrd"));
        let bytes = std::fs::read(&path).unwrap();
        let database = Source::open(&bytes, None).unwrap().database;
        let last = rows.last().unwrap().split(',').next().unwrap();
        let last = CdTime::from_decimal(last).unwrap().to_micros();
        let (seconds, micros) = database.state.last_update.to_micros();
        assert_eq!(seconds as u64 * 1_000_000 + u64::from(micros), last, "{id}");
    }
}

#[test]
fn plain_ones() {
    check("plain", Security::None);
}

#[test]
fn signed_ones() {
    check("signed", Security::Sign);
}

#[test]
fn encrypted_ones() {
    check("encrypted", Security::Encrypt);
}

#[test]
fn types_decide_where_there_are_any() {
    let daemon = Daemon::new(Some("gauge level:GAUGE:0:10\n"));
    let (receiver, address) = daemon.receive(Security::None, false);
    let mut packer = Packer::new(PackerOptions::default()).unwrap();
    let time = CdTime::from_seconds(1_700_000_000).unwrap();
    for (id, value) in [
        ("h/p/gauge", Value::Gauge(1.5)),
        ("h/p/gauge-derive", Value::Derive(1)),
        ("h/p/other", Value::Gauge(1.5)),
    ] {
        let id = Identifier::parse(id).unwrap();
        packer.values(&id, time, CdTime::ZERO, &[value]).unwrap();
    }
    send(address, &packer.flush().unwrap());
    let counters = &daemon.ingest.counters;
    await_count(&counters.wrong_type, 2);
    receiver.stop();
    assert_eq!(counters.lists.load(Relaxed), 1);
    daemon.close();
    let bytes = std::fs::read(daemon.path("data/rrd/h/p/gauge.rrd")).unwrap();
    let database = Source::open(&bytes, None).unwrap().database;
    assert_eq!(database.sources[0].name.to_string(), "level");
    // The interval is the daemon's own.
    assert_eq!(database.step, 10);
}

/// A datagram can hold thousands of values; a database for them would be huge.
#[test]
fn lists_are_short_where_no_types_report() {
    let daemon = Daemon::new(None);
    let mut session = daemon.ingest.session(Origin::Here);
    let id = Identifier::parse("h/p/wide").unwrap();
    let mut take = |count| {
        let time = CdTime::from_seconds(1_700_000_000).unwrap();
        session.take(
            &id,
            time,
            CdTime::ZERO,
            &vec![Value::Gauge(1.0); count],
            false,
        )
    };
    assert_eq!(take(65), Err(Problem::TooLong(65)));
    assert!(!daemon.path("data/rrd/h/p/wide.rrd").exists());
    assert_eq!(take(64), Ok(()));
    daemon.close();
}

/// At most a thousand new databases are created; further ones are refused with an error.
#[test]
fn new_databases_are_bounded() {
    let daemon = Daemon::new(None);
    let mut session = daemon.ingest.session(Origin::Here);
    let counters = &daemon.ingest.counters;
    counters.created.store(999, Relaxed);
    let mut take = |name| {
        let time = CdTime::from_seconds(1_700_000_000).unwrap();
        let id = Identifier::parse(name).unwrap();
        session.take(&id, time, CdTime::ZERO, &[Value::Gauge(1.0)], false)
    };
    assert_eq!(take("h/p/gauge-1"), Ok(()));
    let refused = take("h/p/gauge-2").unwrap_err();
    assert!(
        refused.to_string().contains("too many new databases"),
        "{refused}"
    );
    assert_eq!(counters.dropped.load(Relaxed), 1);
    assert!(!daemon.path("data/rrd/h/p/gauge-2.rrd").exists());
    daemon.close();
}

#[test]
fn passwords_may_change() {
    let daemon = Daemon::new(None);
    let (receiver, address) = daemon.receive(Security::Sign, true);
    let datagram = std::fs::read(data("packets/signed-0000.bin")).unwrap();
    std::fs::write(daemon.path("auth"), "alice: another\n").unwrap();
    receiver.reload().unwrap();
    send(address, &datagram);
    await_received(&receiver, Counters::faults, 1);
    // It is seen that the file has changed again.
    std::fs::write(daemon.path("auth"), "alice: s3cret pass\n").unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1100));
    send(address, &datagram);
    await_count(&daemon.ingest.counters.lists, 1);
    std::fs::write(daemon.path("auth"), "alice\n").unwrap();
    assert!(receiver.reload().unwrap_err().contains("line 1"));
    receiver.stop();
    assert_eq!(receiver.count(Counters::faults), 1);
    daemon.close();
}

#[test]
fn what_comes_again_is_taken_once() {
    let daemon = Daemon::new(None);
    std::fs::write(daemon.path("auth"), "alice: s3cret pass\n").unwrap();
    let listen = Listen {
        port: 0,
        auth_file: Some(daemon.path("auth")),
        ..Listen::new("127.0.0.1")
    };
    let options = network::Options {
        listen: vec![
            listen.clone(),
            Listen {
                replay_window: Some(CdTime::from_seconds(60).unwrap()),
                ..listen
            },
        ],
        deduplicate: Some(1000),
        ..network::Options::default()
    };
    let receiver = Receiver::start(&options, &daemon.ingest, &silent()).unwrap();
    let [open, guarded] = receiver.addresses()[..] else {
        panic!("two addresses");
    };
    let counters = &daemon.ingest.counters;
    let datagram = std::fs::read(data("malformed/sign_ok.bin")).unwrap();
    send(open, &datagram);
    await_count(&counters.lists, 1);
    send(open, &datagram);
    await_received(&receiver, |it| it.repeated.load(Relaxed), 1);
    // It was recorded long ago.
    send(guarded, &datagram);
    await_received(&receiver, Counters::faults, 1);
    // What is of now is taken, but not when it is sent again.
    let mut packer = Packer::new(PackerOptions {
        protection: Protection::Sign {
            user: "alice".to_string(),
            password: b"s3cret pass".to_vec(),
        },
        ..PackerOptions::default()
    })
    .unwrap();
    let id = Identifier::parse("h/p/gauge").unwrap();
    let list = [Value::Gauge(1.0)];
    packer.values(&id, now(), CdTime::ZERO, &list).unwrap();
    let datagram = packer.flush().unwrap();
    send(guarded, &datagram);
    await_count(&counters.lists, 2);
    send(guarded, &datagram);
    await_received(&receiver, Counters::faults, 2);
    receiver.stop();
    assert_eq!(counters.lists.load(Relaxed), 2);
    assert_eq!(receiver.count(|it| it.repeated.load(Relaxed)), 1);
    let mut page = Page::default();
    receiver.metrics(&mut page);
    for line in [
        format!("datagrams_total{{listener=\"{open}\"}} 2"),
        format!("datagrams_total{{listener=\"{guarded}\"}} 3"),
        format!("datagrams_repeated_lists_total{{listener=\"{open}\"}} 1"),
        format!("datagrams_faults_total{{listener=\"{guarded}\",fault=\"stale\"}} 1"),
        format!("datagrams_faults_total{{listener=\"{guarded}\",fault=\"replayed\"}} 1"),
    ] {
        let found = page.text().lines().any(|it| it == format!("kymo_{line}"));
        assert!(found, "{line}\n{}", page.text());
    }
    daemon.close();
}

/// A disk that is full must not hold up who has something for it.
#[test]
fn lines_that_cannot_be_written_are_tried_again() {
    let daemon = Daemon::new(None);
    // Its name is taken.
    std::fs::write(daemon.path("csv"), "").unwrap();
    let ingest = std::sync::Arc::clone(&daemon.ingest);
    let (report, reported) = std::sync::mpsc::channel();
    let work = std::thread::spawn(move || {
        let mut session = ingest.session(Origin::Here);
        let id = Identifier::parse("h/p/gauge").unwrap();
        for second in 0..3 {
            let time = CdTime::from_seconds(1_700_000_000 + second).unwrap();
            let values = [Value::Gauge(1.0)];
            session
                .take(&id, time, CdTime::ZERO, &values, true)
                .unwrap();
            ingest.flush(None).unwrap();
            assert!(session.commit().is_err(), "it cannot be promised");
        }
        report.send(()).unwrap();
    });
    let patience = std::time::Duration::from_secs(20);
    assert_eq!(
        reported.recv_timeout(patience),
        Ok(()),
        "it holds nobody up"
    );
    work.join().unwrap();
    std::fs::remove_file(daemon.path("csv")).unwrap();
    daemon.close();
    let folder = std::fs::read_dir(daemon.path("csv/h/p")).unwrap();
    let file = folder.map(|it| it.unwrap().path()).next().unwrap();
    let lines = std::fs::read_to_string(file).unwrap();
    assert_eq!(lines.lines().count(), 4, "a head and all lines");
}
