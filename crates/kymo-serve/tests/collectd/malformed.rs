//! Malformed datagrams neither stop nor stall a daemon.

use std::sync::atomic::Ordering::Relaxed;

use kymo_collectd::network::Security;
use kymo_serve::network::Counters;

use crate::{Daemon, await_count, data, documentation};

/// The settings of the columns of the table.
const SETTINGS: [(Security, bool); 4] = [
    (Security::None, false),
    (Security::None, true),
    (Security::Sign, true),
    (Security::Encrypt, true),
];

/// Lists, messages and faults.
type Verdict = (u64, u64, u64);

/// What the table says of each, by setting.
fn table() -> Vec<(String, [Verdict; 4])> {
    let text = documentation("formats/collectd-datagrams.md");
    let rows = text.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let mut cells = row.trim_matches('|').split('|').map(str::trim);
        let name = cells.next().unwrap().trim_matches('`').to_string();
        let verdicts = std::array::from_fn(|_| {
            let mut lists = 0;
            let (mut messages, mut faults) = (0, 0);
            for word in cells.next().unwrap().split(' ') {
                match word.split_once('+').unwrap_or((word, "0")) {
                    (taken, reported) if word.starts_with(|it: char| it.is_ascii_digit()) => {
                        lists = taken.parse().unwrap();
                        messages = reported.parse().unwrap();
                    }
                    _ => faults += 1,
                }
            }
            (lists, messages, faults)
        });
        (name, verdicts)
    })
    .collect()
}

#[test]
fn each_gets_its_verdict_from_a_daemon_that_goes_on() {
    let table = table();
    assert_eq!(table.len(), 74);
    for (place, (level, auth)) in SETTINGS.into_iter().enumerate() {
        let daemon = Daemon::new(Some("gauge value:GAUGE:U:U\n"));
        let (receiver, address) = daemon.receive(level, auth);
        let counters = &daemon.ingest.counters;
        let counts = || {
            let lists = counters.lists.load(Relaxed);
            let messages = counters.notifications.load(Relaxed);
            let wrong = counters.wrong_type.load(Relaxed);
            (lists, messages, receiver.count(Counters::faults) + wrong)
        };
        // One that is right follows each, so that all before it has been looked at.
        let right = match level {
            Security::None => "malformed/ok_basic.bin",
            Security::Sign => "malformed/sign_ok.bin",
            Security::Encrypt => "malformed/encr_ok.bin",
        };
        let right = std::fs::read(data(right)).unwrap();
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut sent = 0;
        for (name, verdicts) in &table {
            let before = counts();
            let (lists, messages, faults) = verdicts[place];
            let datagram = std::fs::read(data(&format!("malformed/{name}.bin"))).unwrap();
            socket.send_to(&datagram, address).unwrap();
            socket.send_to(&right, address).unwrap();
            sent += 2;
            await_count(&counters.lists, before.0 + lists + 1);
            let after = counts();
            let found = (after.0 - before.0 - 1, after.1 - before.1);
            assert_eq!(found, (lists, messages), "{name}, {level:?}");
            // The table names a fault once, however often it is reported.
            let reported = after.2 - before.2;
            let is_right = reported >= faults && (reported > 0) == (faults > 0);
            assert!(is_right, "{name}, {level:?}: {reported} faults");
        }
        receiver.stop();
        assert_eq!(receiver.count(|it| it.datagrams.load(Relaxed)), sent);
        daemon.close();
    }
}
