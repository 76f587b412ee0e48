//! What datagrams cannot do to others, and what is left of them when the daemon is killed.

use std::net::UdpSocket;
use std::sync::atomic::Ordering::Relaxed;

use kymo_collectd::network::Security;
use kymo_collectd::{Identifier, Value};
use kymo_serve::ingest::{Origin, Problem, now};
use kymo_serve::store::{Options, Store};
use kymo_time::CdTime;

use crate::{Daemon, await_count, data};

#[test]
fn datagrams_are_in_the_journal() {
    let daemon = Daemon::new(None);
    let (receiver, address) = daemon.receive(Security::None, true);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for number in 0..20 {
        let datagram = std::fs::read(data(&format!("packets/plain-{number:04}.bin"))).unwrap();
        socket.send_to(&datagram, address).unwrap();
    }
    let store = daemon.ingest.store();
    await_count(&daemon.ingest.counters.lists, 428);
    receiver.stop();
    // All databases are there.
    let accepted = || store.counters.accepted.load(Relaxed) + store.counters.past.load(Relaxed);
    while accepted() < 428 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    // As if it were killed now.
    let copy = daemon.path("copy");
    std::fs::create_dir(&copy).unwrap();
    for entry in std::fs::read_dir(daemon.path("journal")).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), copy.join(entry.file_name())).unwrap();
    }
    let mut options = Options::new(daemon.path("data"), crate::silent());
    options.journal = Some(kymo_serve::journal::Options::new(copy));
    let again = Store::open(options).unwrap();
    let pending =
        |store: &Store| -> usize { store.databases().iter().map(|it| it.pending_count()).sum() };
    assert!(pending(store) > 300);
    assert_eq!(pending(&again), pending(store));
    again.close();
    daemon.close();
}

fn take(
    session: &mut kymo_serve::ingest::Session,
    instance: &str,
    seconds: u64,
) -> Result<(), Problem> {
    let id = Identifier {
        host: "h",
        plugin: "p",
        plugin_instance: instance,
        type_name: "t",
        type_instance: "",
    };
    let time = CdTime::from_seconds(seconds as i64).unwrap();
    session.take(&id, time, CdTime::ZERO, &[Value::Gauge(0.5)], false)
}

#[test]
fn lists_wait_until_their_database_is_created() {
    let daemon = Daemon::new(None);
    let mut session = daemon.ingest.session(Origin::Datagrams);
    session.set_sender([127, 0, 0, 1].into());
    for name in 0..50 {
        for second in 0..5 {
            take(&mut session, &name.to_string(), 1_600_000_000 + second * 10).unwrap();
        }
    }
    session.note();
    daemon.close();
    let counters = &daemon.ingest.store().counters;
    assert_eq!(counters.written.load(Relaxed), 250);
    assert_eq!(daemon.ingest.counters.created.load(Relaxed), 50);
    assert_eq!(daemon.ingest.waiting_for_databases(), 0);
}

#[test]
fn one_sender_leaves_room_for_others() {
    let daemon = Daemon::new(None);
    let mut options = (*daemon.ingest.options()).clone();
    options.most_series_per_sender = 3;
    daemon.ingest.change(options);
    let mut session = daemon.ingest.session(Origin::Datagrams);
    session.set_sender([10, 0, 0, 1].into());
    let taken: Vec<_> = (0..5)
        .map(|name| take(&mut session, &name.to_string(), 1_600_000_000).is_ok())
        .collect();
    assert_eq!(taken, [true, true, true, false, false]);
    session.set_sender([10, 0, 0, 2].into());
    take(&mut session, "other", 1_600_000_000).unwrap();
    daemon.close();
}

#[test]
fn a_time_far_ahead_silences_no_series() {
    let daemon = Daemon::new(None);
    let mut options = Options::new(daemon.path("other"), crate::silent());
    options.future_limit = std::time::Duration::from_secs(86_400);
    let store = Store::open(options).unwrap();
    let options = (*daemon.ingest.options()).clone();
    let ingest =
        kymo_serve::ingest::Ingest::start(options, std::sync::Arc::clone(&store), crate::silent())
            .unwrap();
    let mut session = ingest.session(Origin::Here);
    let seconds = now().to_seconds().unwrap();
    let refused = take(&mut session, "a", seconds + 200_000).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the time is more than 86400 seconds ahead of the clock of this machine"
    );
    take(&mut session, "a", seconds).unwrap();
    ingest.close();
    store.close();
    assert_eq!(store.counters.written.load(Relaxed), 1);
    daemon.close();
}
