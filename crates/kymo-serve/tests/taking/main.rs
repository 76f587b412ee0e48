//! Metrics of others than collectd: from sockets to databases and queries.
#![cfg(unix)]

use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use kymo_io::net::Address;
use kymo_serve::daemon::Source as _;
use kymo_serve::listen::Socket;
use kymo_serve::metrics::Page;
use kymo_serve::store::{self, Log, Store, Timing};
use kymo_serve::taking::{Endpoint, Options, Taking};
use kymo_serve::{config::Config, journal, query};

struct Fixture {
    directory: tempfile::TempDir,
    store: Arc<Store>,
    taking: Taking,
    messages: Arc<Mutex<Vec<String>>>,
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.taking.stop();
        self.store.close();
    }
}

/// A multiple of all steps, a while ago.
fn start() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    now.as_secs() / 3600 * 3600 - 3600
}

/// Takes what a configuration says; `DIR` in it is the directory of sockets.
fn fixture(config: &str) -> Fixture {
    let directory = tempfile::tempdir().unwrap();
    let messages = Arc::<Mutex<Vec<String>>>::default();
    let log: Log = {
        let messages = Arc::clone(&messages);
        Arc::new(move |text| messages.lock().unwrap().push(text.to_owned()))
    };
    let never = Duration::from_secs(3600);
    let path = |name: &str| directory.path().join(name);
    let store = Store::open(store::Options {
        timing: Timing {
            write_timeout: never,
            jitter: Duration::ZERO,
            flush_interval: never,
        },
        journal: Some(journal::Options::new(path("journal"))),
        ..store::Options::new(path("data"), Arc::clone(&log))
    })
    .unwrap();
    let options = parse(directory.path(), config);
    let sockets = |what: &str| -> Vec<Arc<Socket>> {
        let listen = options
            .streams()
            .into_iter()
            .find(|(name, _)| *name == what);
        let addresses = &listen.unwrap().1.addresses;
        let bound = addresses.iter().map(|it| Socket::bind(it, 0o600).unwrap());
        bound.map(Arc::new).collect()
    };
    let taking = Taking::start(&options, &sockets, &store, &log).unwrap();
    Fixture {
        directory,
        store,
        taking,
        messages,
    }
}

fn parse(directory: &Path, config: &str) -> Options {
    let config = config.replace("DIR", directory.to_str().unwrap());
    Config::parse(&format!("data = '/data'\n{config}"))
        .unwrap()
        .taking
}

impl Fixture {
    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn connect(&self, name: &str) -> UnixStream {
        UnixStream::connect(self.path(name)).unwrap()
    }

    /// The updates of a database that are not yet written, once there are as many.
    fn pending(&self, path: &str, count: usize) -> Vec<String> {
        let path = self.store.path(path.as_bytes());
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let database = self.store.known(&path);
            let pending = database.map(|it| it.pending()).unwrap_or_default();
            if pending.len() >= count {
                let texts = pending.into_iter();
                return texts.map(|it| String::from_utf8(it).unwrap()).collect();
            }
            assert!(
                Instant::now() < end,
                "{pending:?}, {:?}",
                self.messages.lock().unwrap()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn metrics(&self) -> String {
        let mut page = Page::default();
        self.taking.metrics(&mut page);
        page.text().to_owned()
    }

    /// Waits until the metrics have a line.
    fn wait_for(&self, line: &str) {
        let end = Instant::now() + Duration::from_secs(60);
        while !self.metrics().lines().any(|it| it == line) {
            assert!(Instant::now() < end, "{line}: {}", self.metrics());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// What a query of HTTP answers.
    fn query(&self, target: &str) -> String {
        let path = self.path("query");
        let socket = Arc::new(Socket::bind(&Address::Unix(path.clone()), 0o600).unwrap());
        let options = query::Options::default();
        let log: Log = Arc::new(|_| {});
        let source = query::Source::start(&self.store, &options, &[socket], &log).unwrap();
        let mut stream = UnixStream::connect(&path).unwrap();
        let request = format!("GET {target} HTTP/1.1\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        source.stop();
        answer.split_once("\r\n\r\n").unwrap().1.to_owned()
    }
}

#[test]
fn lines_of_graphite_become_databases() {
    let fixture = fixture(
        r#"
        [graphite]
        listen = ["unix:DIR/g", "unixgram:DIR/d"]
        [[path]]
        pattern = '^servers\.'
        path = "{__path__}/{__labels__}"
        "#,
    );
    let start = start();
    let mut stream = fixture.connect("g");
    let text = format!(
        "a.b 1.5 {}\na.b 2 {}.123456789\na.b 3 {}\nservers.x;dc=east 7 {}\nbad line\n",
        start + 10,
        start + 20,
        start + 15,
        start + 10,
    );
    stream.write_all(text.as_bytes()).unwrap();
    let pending = fixture.pending("graphite/a/b.rrd", 2);
    assert_eq!(pending[0], format!("{}.0000000000:1.5", start + 10));
    assert!(pending[1].starts_with(&format!("{}.12345678", start + 20)));
    fixture.pending("servers/x/dc=east.rrd", 1);
    let listener = format!(
        "protocol=\"graphite\",listener=\"unix:{}\"",
        fixture.path("g").display()
    );
    fixture.wait_for(&format!(
        "kymo_taken_rejected_total{{{listener},reason=\"past\"}} 1"
    ));
    fixture.wait_for(&format!(
        "kymo_taken_faults_total{{{listener},fault=\"syntax\"}} 1"
    ));
    let datagrams = UnixDatagram::unbound().unwrap();
    let text = format!("a.c 5 {}", start + 10);
    let sent = datagrams.send_to(text.as_bytes(), fixture.path("d"));
    sent.unwrap();
    fixture.pending("graphite/a/c.rrd", 1);
    // Queries see them by the names that they were sent with.
    let found = fixture.query("/api/v1/series?match[]=servers.x");
    assert!(found.contains("error"), "{found}");
    let found = fixture.query("/api/v1/series?match[]={__name__=%22servers.x%22}");
    assert!(
        found.contains(r#"{"__name__":"servers.x","dc":"east"}"#),
        "{found}"
    );
    let found = fixture.query(&format!(
        "/api/v1/query?query={{__name__=%22a.c%22}}&time={}",
        start + 10
    ));
    assert!(found.contains(r#""5""#), "{found}");
    let found = fixture.query("/metrics/find?query=a.*");
    assert!(
        found.contains(r#""a.b""#) && found.contains(r#""a.c""#),
        "{found}"
    );
}

#[test]
fn values_of_statsd_are_summed_up() {
    let port = UdpSocket::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let fixture = fixture(&format!(
        r#"
        [statsd]
        listen = ["127.0.0.1:{port}", "unix:DIR/s"]
        interval = 0.05
        "#
    ));
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = ("127.0.0.1", port);
    socket
        .send_to(b"hits:3|c|#dc:east\nlevel:5|g\nlevel:+2|g", to)
        .unwrap();
    fixture
        .connect("s")
        .write_all(b"t:20|ms\nt:10|ms\n")
        .unwrap();
    let pending = fixture.pending("statsd/stats/gauges/level.rrd", 2);
    assert!(pending.iter().all(|it| it.ends_with(":7")), "{pending:?}");
    let pending = fixture.pending("statsd/stats/counters/hits/count/dc=east.rrd", 2);
    assert!(pending[0].ends_with(":3"), "{pending:?}");
    assert!(pending[1].ends_with(":0"), "{pending:?}");
    let pending = fixture.pending("statsd/stats/timers/t/mean.rrd", 1);
    assert!(pending[0].ends_with(":15"), "{pending:?}");
    fixture.wait_for("kymo_statsd_names 3");
}

#[test]
fn senders_and_series_are_bounded() {
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let fixture = fixture(&format!(
        r#"
        [graphite]
        listen = ["udp:127.0.0.1:{port}", "unix:DIR/g"]
        [series]
        most-series = 4
        most-series-per-sender = 2
        [[path]]
        match = '{{__name__="dropped"}}'
        drop = true
        [[path]]
        match = '{{__name__=~"same.*"}}'
        path = "{{job}}"
        "#
    ));
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for name in ["a", "b", "c", "d"] {
        let line = format!("{name} 1 N\n");
        socket
            .send_to(line.as_bytes(), ("127.0.0.1", port))
            .unwrap();
    }
    let udp = format!("protocol=\"graphite\",listener=\"udp:127.0.0.1:{port}\"");
    fixture.wait_for(&format!(
        "kymo_taken_rejected_total{{{udp},reason=\"sender_limit\"}} 2"
    ));
    let mut stream = fixture.connect("g");
    stream
        .write_all(b"dropped 1 N\nsame1;job=x 1 N\nsame2;job=x 1 N\ne 1 N\n")
        .unwrap();
    let unix = format!(
        "protocol=\"graphite\",listener=\"unix:{}\"",
        fixture.path("g").display()
    );
    fixture.wait_for(&format!(
        "kymo_taken_rejected_total{{{unix},reason=\"rule\"}} 1"
    ));
    fixture.wait_for(&format!(
        "kymo_taken_rejected_total{{{unix},reason=\"series_limit\"}} 1"
    ));
    fixture.pending("x.rrd", 1);
    fixture.wait_for("kymo_taken_database_failures_total 1");
    let messages = fixture.messages.lock().unwrap().join("\n");
    assert!(
        messages.contains("the rules give it the database of same1{job=\"x\"}"),
        "{messages}"
    );
}

/// What was decoded is in the journal, and labels are there again.
#[test]
fn lines_survive_that_the_daemon_is_killed() {
    let fixture = fixture("[graphite]\nlisten = ['unix:DIR/g']");
    let start = start();
    let line = format!("a;x=y 1 {}\n", start + 10);
    fixture.connect("g").write_all(line.as_bytes()).unwrap();
    fixture.pending("graphite/a/x=y.rrd", 1);
    let end = Instant::now() + Duration::from_secs(60);
    let journal = fixture.store.journal().unwrap();
    while journal.bytes.load(Relaxed) == 0 {
        assert!(Instant::now() < end, "the journal does not have it");
        std::thread::sleep(Duration::from_millis(5));
    }
    // As the files are at this moment.
    let copy = tempfile::tempdir().unwrap();
    let run = |program: &str, words: &[&Path]| {
        let done = std::process::Command::new(program).args(words).status();
        assert!(done.unwrap().success());
    };
    let [data, old] = ["data", "journal"].map(|name| fixture.path(name));
    run("cp", &[Path::new("-r"), &data, &old, copy.path()]);
    fixture.taking.stop();
    fixture.store.close();
    run("rm", &[Path::new("-r"), &data, &old]);
    let [saved_data, saved] = ["data", "journal"].map(|name| copy.path().join(name));
    run("mv", &[&saved_data, &saved, fixture.directory.path()]);
    let store = Store::open(store::Options {
        journal: Some(journal::Options::new(old)),
        ..store::Options::new(data, Arc::new(|_| {}))
    });
    let store = store.unwrap();
    let path = store.path(b"graphite/a/x=y.rrd");
    let pending = store.known(&path).unwrap().pending();
    assert_eq!(
        pending,
        [format!("{}.0000000000:1", start + 10).into_bytes()]
    );
    let key = store.index().get(b"graphite/a/x=y.rrd").unwrap();
    assert_eq!(key.to_string(), r#"a{x="y"}"#);
    store.close();
}

#[test]
fn other_rules_hold_after_they_were_read_again() {
    let fixture = fixture("[graphite]\nlisten = ['unixgram:DIR/d']");
    let send = |path: &str, line: &str| {
        let socket = UnixDatagram::unbound().unwrap();
        socket.send_to(line.as_bytes(), fixture.path(path)).unwrap();
    };
    send("d", "a 1 N");
    fixture.pending("graphite/a.rrd", 1);
    let options = parse(
        fixture.directory.path(),
        "[graphite]\nlisten = ['unixgram:DIR/d', 'unixgram:DIR/e']\n[[path]]\npath = 'new/{__path__}'",
    );
    let plan = fixture.taking.plan(&options).unwrap();
    fixture.taking.take(plan).unwrap();
    send("d", "a 1 N");
    fixture.pending("new/a.rrd", 1);
    send("e", "b 1 N");
    fixture.pending("new/b.rrd", 1);
    let mut options = options;
    options.graphite.datagrams = vec![Endpoint::Unixgram(fixture.path("e"))];
    let plan = fixture.taking.plan(&options).unwrap();
    fixture.taking.take(plan).unwrap();
    assert!(!fixture.path("d").exists());
}
