//! The text protocol: replies as collectd has given them, and values that survive.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use kymo_io::net::Address;
use kymo_rrd::Source;
use kymo_serve::listen::{Access, Server, Socket};
use kymo_serve::plain::{self, AllCounters};
use kymo_serve::store::{Group, Readings, Update};
use serde_json::Value as Json;

use crate::{Daemon, data, documentation, start};

/// The types that the recorded commands use.
const TYPES: &str = "gauge value:GAUGE:U:U\nderive value:DERIVE:U:U\ncounter value:COUNTER:U:U\n\
    absolute value:ABSOLUTE:U:U\nif_octets rx:DERIVE:U:U, tx:DERIVE:U:U\n\
    load shortterm:GAUGE:0:5000, midterm:GAUGE:0:5000, longterm:GAUGE:0:5000\n\
    memory value:GAUGE:0:U\ncpu value:DERIVE:0:U\n";

struct Client {
    server: Server,
    counters: Arc<AllCounters>,
    reader: BufReader<UnixStream>,
}

impl Client {
    fn new(daemon: &Daemon) -> Self {
        let path = daemon.path("socket");
        let socket = Socket::bind(&Address::Unix(path.clone()), &Access::mode(0o700)).unwrap();
        let counters = Arc::<AllCounters>::default();
        let server = plain::serve(&[Arc::new(socket)], 10, &daemon.ingest, &counters).unwrap();
        let reader = BufReader::new(UnixStream::connect(path).unwrap());
        Self {
            server,
            counters,
            reader,
        }
    }

    fn send(&mut self, lines: &str) {
        self.reader.get_mut().write_all(lines.as_bytes()).unwrap();
    }

    /// Reads a reply with all its lines.
    fn reply(&mut self) -> String {
        let mut text = String::new();
        self.reader.read_line(&mut text).unwrap();
        let status: i64 = text.split(' ').next().unwrap().parse().unwrap();
        for _ in 0..status {
            self.reader.read_line(&mut text).unwrap();
        }
        text
    }

    fn ask(&mut self, line: &str) -> String {
        self.send(&format!("{line}\n"));
        self.reply()
    }
}

/// The replies that differ from collectd's, from the tables of the documentation.
fn differing() -> Vec<(String, String)> {
    let text = documentation("formats/collectd-plain.md");
    let rows = text
        .lines()
        .filter(|line| line.starts_with("| `") || line.starts_with("| ("));
    rows.map(|row| {
        let mut cells = row.trim_matches('|').split('|').map(str::trim);
        let mut cell = || cells.next().unwrap().trim_matches('`').trim().to_string();
        (cell(), cell())
    })
    .collect()
}

/// Numbers that change are left out: times of names, and values.
fn masked(command: &str, reply: &str) -> Vec<String> {
    let word = command.split(' ').next().unwrap().to_ascii_uppercase();
    let mut lines: Vec<_> = reply.lines().map(str::to_string).collect();
    match word.as_str() {
        "LISTVAL" if !reply.starts_with('-') => {
            lines.remove(0);
            let names = lines.iter().map(|line| line.split_once(' ').unwrap().1);
            names.map(str::to_string).collect()
        }
        "GETVAL" => {
            let mask = |line: &String| match line.split_once('=') {
                Some((name, number)) if number.trim() != "NaN" => format!("{name}=NUMBER"),
                _ => line.clone(),
            };
            lines.iter().map(mask).collect()
        }
        _ => lines,
    }
}

#[test]
fn replies_are_collectds_but_where_the_documentation_says_why_not() {
    let daemon = Daemon::new(Some(TYPES));
    let mut client = Client::new(&daemon);
    // What collectd had measured itself.
    for name in [
        "buffered",
        "cached",
        "free",
        "slab_recl",
        "slab_unrecl",
        "used",
    ] {
        let reply = client.ask(&format!("PUTVAL host.example/memory/memory-{name} N:1"));
        assert!(reply.starts_with("0 Success"), "{reply}");
    }
    client.ask("PUTVAL host.example/load/load N:1:2:3");
    let differing = differing();
    let mut wrong = String::new();
    let mut count = 0;
    let table = std::fs::read_to_string(data("unixsock_exact_C.jsonl")).unwrap();
    for line in table.lines() {
        let line: Json = serde_json::from_str(line).unwrap();
        let Some(command) = line["cmd"].as_str() else {
            continue;
        };
        count += 1;
        let recorded = line["reply"].as_str().unwrap();
        let found = client.ask(command);
        let mut expected = masked(command, recorded);
        if command == "LISTVAL" {
            // Names of which every value was refused are not there; the table says which.
            let there = masked(command, &found);
            let is_refused = |name: &String| {
                let is_missing =
                    |row: &(String, String)| row.0.contains(name) && row.1.starts_with('-');
                differing.iter().any(is_missing)
            };
            expected.retain(|name| there.contains(name) || !is_refused(name));
        }
        if masked(command, &found) == expected {
            continue;
        }
        let is_it = |row: &&(String, String)| match (row.0.as_str(), row.0.split_once("...")) {
            ("(nothing)", _) => command.is_empty(),
            ("(blanks)", _) => !command.is_empty() && command.trim().is_empty(),
            (_, Some((begin, end))) => command.starts_with(begin) && command.ends_with(end),
            (row, None) => command == row,
        };
        match differing.iter().find(is_it) {
            Some(row) if row.1 == found.trim_end() => {}
            _ => wrong += &format!("{command}\n  {found:?}\n  {recorded:?}\n"),
        }
    }
    assert_eq!(count, 115);
    assert!(wrong.is_empty(), "other replies:\n{wrong}");
    assert_eq!(client.counters.sum(|it| it.commands.load(Relaxed)), 115 + 7);
    client.server.stop();
    daemon.close();
}

#[test]
fn rates_are_those_of_the_last_two_lists() {
    let daemon = Daemon::new(Some(TYPES));
    let mut client = Client::new(&daemon);
    client.send(
        "PUTVAL h/p/if_octets 1700000000:1:10\nPUTVAL h/p/if_octets 1700000000.5:4:9\n\
         PUTVAL h/p/counter 1700000000:4294967295\nPUTVAL h/p/counter 1700000002:5\n\
         PUTVAL h/p/load 1700000000:1:6000:U\nPUTVAL /p/gauge 1700000000:-0.25\n\
         PUTVAL h/p/if_octets 1600000000:0:0\n",
    );
    for _ in 0..7 {
        assert_eq!(client.reply(), "0 Success: 1 value has been dispatched.\n");
    }
    for (id, values) in [
        ("h/p/if_octets", "rx=6.000000e+00\ntx=-2.000000e+00\n"),
        ("h/p/counter", "value=3.000000e+00\n"),
        // Not between the bounds of its type.
        (
            "h/p/load",
            "shortterm=1.000000e+00\nmidterm=NaN\nlongterm=NaN\n",
        ),
        // Without a host, the daemon's own is meant.
        ("host.example/p/gauge", "value=-2.500000e-01\n"),
    ] {
        let reply = client.ask(&format!("GETVAL {id}"));
        assert_eq!(reply.split_once('\n').unwrap().1, values, "{id}");
    }
    let names = "4 Values found\n1700000002.000 h/p/counter\n1700000000.500 h/p/if_octets\n\
        1700000000.000 h/p/load\n1700000000.000 host.example/p/gauge\n";
    assert_eq!(client.ask("LISTVAL"), names);
    assert_eq!(daemon.ingest.counters.past.load(Relaxed), 1);
    client.server.stop();
    daemon.close();
}

#[test]
fn what_was_acknowledged_is_there_after_a_kill() {
    let daemon = Daemon::new(Some(TYPES));
    let mut client = Client::new(&daemon);
    let reply = client.ask("PUTVAL h/p/gauge interval=0.5 1700000000.25:1.5 1700000000.75:2.5");
    assert_eq!(reply, "0 Success: 2 values have been dispatched.\n");
    // It is in the file of lines at once, and in the journal.
    let directory = daemon.path("csv/h/p");
    let file = std::fs::read_dir(directory)
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    let text = std::fs::read_to_string(file.path()).unwrap();
    assert_eq!(
        text,
        "epoch,value\n1700000000.2500000000,1.5\n1700000000.7500000000,2.5\n"
    );
    // Another program finds the files as they are now.
    let kept = ["data", "journal"];
    let copy = |from: &str, to: &str| {
        let copied = std::process::Command::new("cp")
            .arg("-r")
            .args([daemon.path(from), daemon.path(to)])
            .status();
        assert!(copied.unwrap().success());
    };
    kept.iter()
        .for_each(|name| copy(name, &format!("{name}.kept")));
    client.server.stop();
    daemon.close();
    for name in kept {
        // The journal of a daemon that has ended is gone.
        let _ = std::fs::remove_dir_all(daemon.path(name));
        copy(&format!("{name}.kept"), name);
    }
    let again = start(daemon.directory.path(), Some(TYPES));
    again.close();
    again.store().close();
    let bytes = std::fs::read(daemon.path("data/rrd/h/p/gauge.rrd")).unwrap();
    let state = Source::open(&bytes, None).unwrap().database.state;
    assert_eq!(state.last_update.to_micros(), (1_700_000_000, 750_000));
    assert_eq!(state.sources[0].last_reading.to_string(), "2.5");
}

#[test]
fn long_lines_and_many_replies() {
    let daemon = Daemon::new(Some(TYPES));
    let mut client = Client::new(&daemon);
    let long = "x".repeat(3 << 20);
    client.send(&format!("PUTVAL {long}\nLISTVAL\n"));
    assert_eq!(client.reply(), "-1 Line too long.\n");
    assert_eq!(client.reply(), "0 Values found\n");
    // Who sends without reading gets all replies when reading.
    let mut writer = client.reader.get_ref().try_clone().unwrap();
    let sends = std::thread::spawn(move || {
        for time in 1..=20_000 {
            writeln!(writer, "PUTVAL h/p/gauge {time}:{time}").unwrap();
        }
    });
    std::thread::sleep(std::time::Duration::from_millis(100));
    for _ in 0..20_000 {
        assert_eq!(client.reply(), "0 Success: 1 value has been dispatched.\n");
    }
    sends.join().unwrap();
    assert_eq!(
        client.ask("GETVAL h/p/gauge"),
        "1 Value found\nvalue=2.000000e+04\n"
    );
    client.server.stop();
    let mut rest = String::new();
    client.reader.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "");
    daemon.close();
}

#[test]
fn a_database_that_is_there_goes_on() {
    let daemon = Daemon::new(Some(TYPES));
    let mut client = Client::new(&daemon);
    client.ask("PUTVAL h/p/gauge 1700000000:1");
    assert_eq!(
        client.ask("FLUSH identifier=h/p/gauge"),
        "0 Done: 1 successful, 0 errors\n"
    );
    let path = daemon.path("data/rrd/h/p/gauge.rrd");
    let bytes = std::fs::read(&path).unwrap();
    let last = Source::open(&bytes, None)
        .unwrap()
        .database
        .state
        .last_update;
    assert_eq!(last.seconds(), 1_700_000_000);
    // The database is forgotten, as by rrdcached's FORGET: the next value looks for it again.
    let store = daemon.ingest.store();
    let word = path.to_str().unwrap().as_bytes();
    let database = store.known(word).unwrap();
    assert!(store.forget(word).unwrap());
    let update = Update {
        time: kymo_rrd::Time::from_seconds(1_700_000_100),
        interval: None,
        readings: Readings::Values(&[]),
    };
    assert!(
        store
            .accept(&database, &update, Some(&mut Group::new()))
            .is_err()
    );
    let reply = client.ask("PUTVAL h/p/gauge 1700000001:1");
    assert!(reply.starts_with("0 "), "{reply}");
    assert!(store.known(word).is_some());
    assert_eq!(daemon.ingest.counters.created.load(Relaxed), 1);
    client.server.stop();
    daemon.close();
}

/// Where lines cannot be written, each command has its reply all the same, and the connection goes on.
#[test]
fn what_cannot_be_kept_is_not_acknowledged() {
    let daemon = Daemon::new(Some(TYPES));
    std::fs::create_dir_all(daemon.path("csv")).unwrap();
    // No directory can be made of it.
    std::fs::write(daemon.path("csv/h"), "").unwrap();
    let mut client = Client::new(&daemon);
    client.send(
        "PUTVAL h/load/gauge-a 1700000000:1\nGETVAL none/load/gauge\n\
         PUTVAL h/load/gauge-b 1700000000:1\nLISTVAL\n",
    );
    let replies: Vec<String> = (0..4).map(|_| client.reply()).collect();
    assert!(replies[0].starts_with("-1 "), "{replies:?}");
    assert_eq!(replies[1], "-1 No such value.\n");
    assert!(replies[2].starts_with("-1 "), "{replies:?}");
    assert!(replies[3].starts_with("2 Values found"), "{replies:?}");
    std::fs::remove_file(daemon.path("csv/h")).unwrap();
    assert_eq!(
        client.ask("PUTVAL h/load/gauge-a 1700000010:2"),
        "0 Success: 1 value has been dispatched.\n"
    );
}

#[test]
fn the_last_line_needs_no_end() {
    let daemon = Daemon::new(Some(TYPES));
    let mut client = Client::new(&daemon);
    client.send("PUTVAL h/p/gauge-a N:1\nPUTVAL h/p/gauge-b N:5");
    let writer = client.reader.get_ref();
    writer.shutdown(std::net::Shutdown::Write).unwrap();
    let mut replies = String::new();
    client.reader.read_to_string(&mut replies).unwrap();
    let reply = "0 Success: 1 value has been dispatched.\n";
    assert_eq!(replies, reply.repeat(2));
    assert_eq!(daemon.ingest.live().len(), 2);
}

#[test]
fn a_line_that_the_daemon_cuts_off_is_none() {
    let daemon = Daemon::new(Some(TYPES));
    let mut client = Client::new(&daemon);
    client.send("PUTVAL h/p/gauge-a N:1\nPUTVAL h/p/gauge-b N:5");
    assert!(client.reply().starts_with("0 Success"));
    // The rest may still come, and only it determines the value.
    client.server.stop();
    let mut replies = String::new();
    client.reader.read_to_string(&mut replies).unwrap();
    assert_eq!(replies, "");
    assert_eq!(daemon.ingest.live().len(), 1);
}
