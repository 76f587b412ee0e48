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
use kymo_serve::listen::{Access, Socket};
use kymo_serve::metrics::Page;
use kymo_serve::store::{self, Log, Store, Timing};
use kymo_serve::taking::{Endpoint, Options, Taking};
use kymo_serve::{config::Config, journal, query};

struct Fixture {
    directory: tempfile::TempDir,
    store: Arc<Store>,
    taking: Taking,
    messages: Arc<Mutex<Vec<String>>>,
    is_closed: bool,
}

impl Fixture {
    fn close(&mut self) {
        if !std::mem::replace(&mut self.is_closed, true) {
            self.taking.stop();
            self.store.close();
        }
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.close();
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
        Arc::new(move |_, text| messages.lock().unwrap().push(text.to_owned()))
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
        let bound = addresses
            .iter()
            .map(|it| Socket::bind(it, &Access::mode(0o600)).unwrap());
        bound.map(Arc::new).collect()
    };
    let taking = Taking::start(&options, &sockets, &store, &log).unwrap();
    Fixture {
        directory,
        store,
        taking,
        messages,
        is_closed: false,
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

    /// How many names wait for their databases.
    fn waiting(&self) -> usize {
        let metrics = self.metrics();
        let line = metrics
            .lines()
            .find_map(|it| it.strip_prefix("kymo_taken_databases_waiting "));
        line.unwrap().parse().unwrap()
    }

    /// Waits until so many names wait.
    fn wait_for_waiting(&self, count: usize) {
        let end = Instant::now() + Duration::from_secs(60);
        while self.waiting() < count {
            assert!(Instant::now() < end, "{}", self.metrics());
            std::thread::sleep(Duration::from_millis(1));
        }
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
        let socket =
            Arc::new(Socket::bind(&Address::Unix(path.clone()), &Access::mode(0o600)).unwrap());
        let options = query::Options::default();
        let log: Log = Arc::new(|_, _| {});
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
        "a.b 1.5 {}\na.b 2 {}.123456789\nservers.x;dc=east 7 {}\nbad line\n",
        start + 10,
        start + 20,
        start + 10,
    );
    stream.write_all(text.as_bytes()).unwrap();
    let pending = fixture.pending("graphite/a/b.rrd", 2);
    assert_eq!(pending[0], format!("{}.0000000000:1.5", start + 10));
    assert!(pending[1].starts_with(&format!("{}.12345678", start + 20)));
    // Its database is there, so this one is refused at once.
    let text = format!("a.b 3 {}\n", start + 15);
    stream.write_all(text.as_bytes()).unwrap();
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
        // Either may come first: databases are made side by side.
        messages.contains("the rules give it the database of same"),
        "{messages}"
    );
}

#[test]
fn limits_are_given_back_when_databases_expire() {
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let fixture = fixture(&format!(
        r#"
        [graphite]
        listen = "udp:127.0.0.1:{port}"
        [series]
        most-series = 2
        most-series-per-sender = 1
        "#
    ));
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let send = |text: &str| {
        let to = ("127.0.0.1", port);
        socket.send_to(text.as_bytes(), to).unwrap();
    };
    send("a 1 N\n");
    fixture.pending("graphite/a.rrd", 1);
    let file = fixture.path("data/graphite/a.rrd");
    let bytes = file.metadata().unwrap().len();
    let of_sender = |what: &str| format!("kymo_taken_sender_{what}{{sender=\"127.0.0.1\"}}");
    fixture.wait_for(&format!("{} {bytes}", of_sender("database_bytes")));
    send("b 1 N\n");
    let udp = format!("protocol=\"graphite\",listener=\"udp:127.0.0.1:{port}\"");
    let refused =
        |count: u32| format!("kymo_taken_rejected_total{{{udp},reason=\"sender_limit\"}} {count}");
    fixture.wait_for(&refused(1));
    // One that is there is not given back.
    let path = fixture.store.path(b"graphite/a.rrd");
    let expired = [path.clone()].into_iter().collect();
    fixture.taking.expired(&expired);
    send("c 1 N\n");
    fixture.wait_for(&refused(2));
    fixture.store.forget(&path).unwrap();
    std::fs::remove_file(&file).unwrap();
    fixture.taking.expired(&expired);
    fixture.wait_for("kymo_taken_series 0");
    assert!(!fixture.metrics().contains("kymo_taken_sender_"));
    // The listener has met this name.
    send("a 2 N\n");
    fixture.pending("graphite/a.rrd", 1);
    fixture.wait_for("kymo_taken_series 1");
    fixture.wait_for(&format!("{} {bytes}", of_sender("database_bytes")));
    fixture.wait_for(&format!("{} 1", of_sender("series")));
}

/// What was decoded is in the journal, and labels are there again.
#[test]
fn lines_survive_that_the_daemon_is_killed() {
    let mut fixture = fixture("[graphite]\nlisten = ['unix:DIR/g']");
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
    // A copy of the files as they are now.
    let copy = tempfile::tempdir().unwrap();
    let run = |program: &str, words: &[&Path]| {
        let done = std::process::Command::new(program).args(words).status();
        assert!(done.unwrap().success());
    };
    let [data, old] = ["data", "journal"].map(|name| fixture.path(name));
    run("cp", &[Path::new("-r"), &data, &old, copy.path()]);
    fixture.close();
    run("rm", &[Path::new("-r"), &data, &old]);
    let [saved_data, saved] = ["data", "journal"].map(|name| copy.path().join(name));
    run("mv", &[&saved_data, &saved, fixture.directory.path()]);
    let store = Store::open(store::Options {
        journal: Some(journal::Options::new(old)),
        ..store::Options::new(data, Arc::new(|_, _| {}))
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

/// Sends a request, and returns the status and the rest of the answer.
fn post(mut stream: impl Read + Write, target: &str, headers: &str, body: &[u8]) -> (u16, String) {
    let head = format!(
        "POST {target} HTTP/1.1\r\nContent-Length: {}\r\nConnection: close\r\n{headers}\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    // A request that is rejected by its head is answered before its body has been read.
    if let Err(error) = stream.write_all(body) {
        assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
    }
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let text = match body {
        "" => head.to_owned(),
        body => body.to_owned(),
    };
    (status, text)
}

#[test]
fn requests_of_influx_are_acknowledged_when_they_are_kept() {
    let fixture =
        fixture("[influx]\nlisten = 'unix:DIR/i'\nmost-request-mib = 1\nlines = 'unixgram:DIR/l'");
    let start = start();
    let lines = format!(
        "cpu,host=a idle=1.5,busy=2i {0}\ncpu,host=a idle=2.5,text=\"x\" {1}\n",
        start + 10,
        start + 20
    );
    let send = |target: &str, headers: &str, body: &[u8]| {
        post(fixture.connect("i"), target, headers, body)
    };
    let (status, _) = send("/write?db=d&precision=s", "", lines.as_bytes());
    assert_eq!(status, 204);
    let idle = "influx/cpu_idle/db=d,host=a.rrd";
    assert_eq!(fixture.pending(idle, 2).len(), 2);
    let journal = fixture.store.journal().unwrap();
    assert!(journal.bytes.load(Relaxed) > 100);
    // The same again: what has the newest time counts as repeated, and all before as lost.
    let (status, text) = send("/api/v2/write?bucket=d&precision=s", "", lines.as_bytes());
    assert_eq!(status, 400);
    assert!(
        text.contains(
            "partial write: cpu_idle{db=\\\"d\\\",host=\\\"a\\\"}: its time is not after"
        ),
        "{text}"
    );
    let last = lines.lines().last().unwrap();
    let (status, _) = send("/write?db=d&precision=s", "", last.as_bytes());
    assert_eq!(status, 204);
    let (status, text) = send("/write?precision=x", "", b"");
    assert_eq!((status, text.contains("expected ns")), (400, true));
    let (status, _) = send("/write", "Content-Encoding: br\r\n", b"x");
    assert_eq!(status, 415);
    let (status, _) = send("/nothing", "", b"");
    assert_eq!(status, 404);
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    let (status, text) = send("/query", form, b"q=CREATE+DATABASE+x");
    assert_eq!((status, text.contains("results")), (200, true));
    let large = vec![b'#'; (1 << 20) + 1];
    let mut stream = fixture.connect("i");
    let head = format!(
        "POST /write HTTP/1.1\r\nContent-Length: {}\r\n\r\n",
        large.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 413");
    let socket = UnixDatagram::unbound().unwrap();
    let line = format!("mem value=5 {}000000000", start + 10);
    socket.send_to(line.as_bytes(), fixture.path("l")).unwrap();
    fixture.pending("influx/mem.rrd", 1);
    let found = fixture.query("/api/v1/series?match[]=cpu_busy");
    assert!(
        found.contains(r#"{"__name__":"cpu_busy","db":"d","host":"a"}"#),
        "{found}"
    );
}

/// A message of remote write with one sample.
fn remote_write(name: &[u8], value: f64, millis: u64) -> Vec<u8> {
    let bytes = |number: u8, inner: &[u8]| {
        let mut out = vec![number << 3 | 2, inner.len() as u8];
        out.extend_from_slice(inner);
        out
    };
    let label = [bytes(1, b"__name__"), bytes(2, name)].concat();
    let mut sample = vec![1 << 3 | 1];
    sample.extend(value.to_le_bytes());
    sample.push(2 << 3);
    let mut rest = millis;
    while rest >= 0x80 {
        sample.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    sample.push(rest as u8);
    let series = [bytes(1, &label), bytes(2, &sample)].concat();
    bytes(1, &series)
}

#[test]
fn remote_write_and_otlp_are_taken() {
    let fixture = fixture(
        "[remote-write]\nlisten = 'unix:DIR/r'\n[otlp]\nlisten = 'unix:DIR/o'\n\
         [[storage]]\nmatch = '{__name__=\"count\"}'\ntype = 'COUNTER'",
    );
    let start = start();
    let message = remote_write(b"up", 1.5, (start + 10) * 1000);
    // Snappy without compression: the length, and a literal.
    let mut snappy = vec![message.len() as u8, (message.len() as u8 - 1) << 2];
    if message.len() > 60 {
        snappy = vec![message.len() as u8, 60 << 2, message.len() as u8 - 1];
    }
    snappy.extend_from_slice(&message);
    let headers = "Content-Type: application/x-protobuf\r\nContent-Encoding: snappy\r\n";
    let (status, text) = post(fixture.connect("r"), "/api/v1/write", headers, &snappy);
    assert_eq!(status, 204, "{text}");
    let pending = fixture.pending("prometheus/up.rrd", 1);
    assert_eq!(pending, [format!("{}.0000000000:1.5", start + 10)]);
    let plain = "Content-Type: application/x-protobuf\r\n";
    let odd = remote_write(b"count", 0.5, (start + 10) * 1000);
    let (status, text) = post(fixture.connect("r"), "/api/v1/write", plain, &odd);
    assert_eq!(status, 400);
    assert!(
        text.contains("count: its database takes integers only"),
        "{text}"
    );
    let (status, _) = post(fixture.connect("r"), "/api/v1/write", plain, &odd[..9]);
    assert_eq!(status, 400);

    let json = format!(
        r#"{{"resourceMetrics":[{{"scopeMetrics":[{{"metrics":[{{"name":"hits","sum":{{"aggregationTemporality":1,
            "isMonotonic":true,"dataPoints":[{{"asInt":"5","timeUnixNano":"{0}000000000"}},
            {{"asInt":"5","timeUnixNano":"{1}000000000"}}]}}}}]}}]}}]}}"#,
        start + 20,
        start + 10
    );
    let headers = "Content-Type: application/json\r\n";
    let (status, text) = post(
        fixture.connect("o"),
        "/v1/metrics",
        headers,
        json.as_bytes(),
    );
    assert_eq!(status, 200);
    assert!(text.contains(r#""rejectedDataPoints":"1""#), "{text}");
    let (status, text) = post(fixture.connect("o"), "/v1/metrics", headers, b"not json");
    assert_eq!(status, 400, "{text}");
    // Differences are rates when they are read.
    let found = fixture.query(&format!(
        "/api/v1/query?query=hits_total_rate&time={}",
        start + 20
    ));
    assert!(found.contains(r#""0.5""#), "{found}");
}

#[test]
fn targets_are_scraped() {
    let target = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = target.local_addr().unwrap().port();
    let serving = std::thread::spawn(move || {
        for _ in 0..2 {
            let (mut stream, _) = target.accept().unwrap();
            let mut request = [0; 4096];
            let length = stream.read(&mut request).unwrap();
            assert!(request[..length].starts_with(b"GET /metrics HTTP/1.1\r\n"));
            let text = "# TYPE a gauge\na{x=\"y\"} 5\nbad\n";
            let answer = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}",
                text.len()
            );
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    let fixture = fixture(&format!(
        "[[scrape]]\njob = 'j'\ntargets = '127.0.0.1:{port}'\ninterval = 0.2\nlabels = 'dc=east'\n\
         [[path]]\npath = '{{job}}/{{__name__}}'"
    ));
    let pending = fixture.pending("j/a.rrd", 2);
    assert!(pending.iter().all(|it| it.ends_with(":5")), "{pending:?}");
    // From here on, the target does not answer.
    let pending = fixture.pending("j/up.rrd", 3);
    let values: Vec<_> = pending.iter().map(|it| it.split(':').next_back()).collect();
    assert_eq!(values[..3], [Some("1"), Some("1"), Some("0")]);
    serving.join().unwrap();
    let listener = format!("protocol=\"scrape\",listener=\"http://127.0.0.1:{port}/metrics\"");
    fixture.wait_for(&format!(
        "kymo_taken_faults_total{{{listener},fault=\"syntax\"}} 2"
    ));
}

#[test]
fn tokens_are_asked_for_before_bodies() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "# of web1\nsecret\n").unwrap();
    let fixture = fixture(&format!(
        "[influx]\nlisten = 'unix:DIR/i'\ntoken-file = '{}'",
        file.path().display()
    ));
    let line = format!("cpu value=1.5 {}", start() + 10);
    let send = |headers: &str| {
        let stream = fixture.connect("i");
        post(stream, "/write?precision=s", headers, line.as_bytes())
    };
    let (status, text) = send("");
    assert_eq!(status, 401);
    assert!(text.contains("Authorization: Bearer TOKEN"), "{text}");
    assert_eq!(send("Authorization: Bearer other\r\n").0, 401);
    assert!(!fixture.path("data/influx/cpu.rrd").exists());
    assert_eq!(send("Authorization: Bearer secret\r\n").0, 204);
    // As clients of InfluxDB 2 write it; tokens change without another configuration.
    std::fs::write(file.path(), "new").unwrap();
    assert_eq!(send("Authorization: Bearer secret\r\n").0, 401);
    assert_eq!(send("Authorization: Token new\r\n").0, 204);
    std::fs::remove_file(file.path()).unwrap();
    // Without the file it is not the client that errs.
    assert_eq!(send("Authorization: Token new\r\n").0, 503);
}

#[test]
fn messages_say_cause_and_remedy() {
    let fixture = fixture(
        "[influx]\nlisten = 'unix:DIR/i'\n[otlp]\nlisten = 'unix:DIR/o'\n[remote-write]\nlisten = 'unix:DIR/r'",
    );
    let send = |socket: &str, target: &str, headers: &str, body: &[u8]| {
        post(fixture.connect(socket), target, headers, body)
    };
    // Seconds where nanoseconds are meant, and no time at all.
    for (time, found) in [
        ("415", "0.000000415 s after 1970"),
        ("0", "found 0 s after 1970"),
    ] {
        let (status, text) = send("i", "/write", "", format!("cpu value=1 {time}").as_bytes());
        assert_eq!(status, 400);
        assert!(
            text.contains(found) && text.contains("`precision` of InfluxDB"),
            "{text}"
        );
        assert!(text.contains("cpu: "), "{text}");
    }
    fixture.wait_for(
        r#"kymo_taken_rejected_total{protocol="influx",listener="LISTENER",reason="ancient"} 2"#
            .replace("LISTENER", &format!("unix:{}", fixture.path("i").display()))
            .as_str(),
    );
    let (status, text) = send("i", "/write", "Content-Encoding: br\r\n", b"x");
    assert_eq!(status, 415);
    assert!(
        text.contains("found `br`") && text.contains("set another compression"),
        "{text}"
    );
    for (socket, target) in [("o", "/v1/metrics"), ("r", "/api/v1/write")] {
        let (status, text) = send(socket, target, "Content-Type: text/html\r\n", b"x");
        assert_eq!(status, 415);
        assert!(
            text.contains("found `text/html`") && text.contains("application/x-protobuf"),
            "{text}"
        );
    }
    let messages = fixture.messages.lock().unwrap().join("\n");
    assert!(
        messages.contains("influx at unix:") && messages.contains("before 1980"),
        "{messages}"
    );
    assert!(messages.contains("found `text/html`"), "{messages}");
}

/// A sender of many new names holds up nobody else's.
#[test]
fn new_names_of_others_do_not_wait() {
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let fixture = fixture(&format!(
        "[graphite]\nlisten = ['tcp:127.0.0.1:{port}', 'unix:DIR/g']"
    ));
    let start = start();
    let mut flood = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    let mut lines = String::new();
    for number in 0..1500 {
        lines += &format!("flood.n{number} 1 {}\n", start + 10);
    }
    flood.write_all(lines.as_bytes()).unwrap();
    fixture.wait_for_waiting(500);
    let mut other = fixture.connect("g");
    other
        .write_all(format!("other.a 1 {}\n", start + 10).as_bytes())
        .unwrap();
    fixture.pending("graphite/other/a.rrd", 1);
    let waiting = fixture.waiting();
    assert!(waiting > 100, "{waiting} of the others still wait");
}
