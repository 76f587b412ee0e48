//! Changes the configuration of a daemon while its clients stay connected.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime};

use kymo_collectd::network::{Packer, PackerOptions, Protection};
use kymo_collectd::{Identifier, Value};
use kymo_time::CdTime;

use super::{Client, Daemon};

/// A daemon with a file of configuration, of which a test changes the table of collectd.
struct Changing {
    directory: tempfile::TempDir,
    daemon: Daemon,
    ports: [u16; 2],
    metrics: SocketAddr,
    rest: String,
}

/// An address that is free now is nearly always free at once.
fn free_port() -> u16 {
    let free = UdpSocket::bind("127.0.0.1:0").unwrap();
    free.local_addr().unwrap().port()
}

impl Changing {
    /// Listens for datagrams at two ports, each with these options.
    fn begin(listen: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        std::fs::write(path.join("auth"), "alice: secret\n").unwrap();
        std::fs::write(path.join("types.db"), TYPES).unwrap();
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let metrics = free.local_addr().unwrap();
        drop(free);
        let ports = [free_port(), free_port()];
        let mut rest = "[collectd.unixsock]\nlisten = 'unix:text'\n\
                        [collectd.csv]\ndirectory = 'csv'\n"
            .to_string();
        for port in ports {
            rest += "[[collectd.listen]]\nhost = '127.0.0.1'\n";
            rest += &format!("port = {port}\n{listen}\n");
        }
        write(path, &rest, metrics, "", "");
        let words = ["--config", "config.toml"];
        let daemon = Daemon::begin_with(path, &words, |command| {
            command.stderr(std::fs::File::create(path.join("told")).unwrap())
        });
        // Its sockets are there before it receives.
        daemon.client().ok("PING");
        Self {
            directory,
            daemon,
            ports,
            metrics,
            rest,
        }
    }

    /// Has it read a configuration with these lines for collectd and for rrdcached, and waits until it has.
    fn change(&self, collectd: &str, rrdcached: &str) -> String {
        let path = self.directory.path();
        write(path, &self.rest, self.metrics, collectd, rrdcached);
        let before = self.reported().len();
        self.daemon.signal("-HUP");
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let reported = self.reported().split_off(before);
            if reported.contains("was read again\n") || reported.contains("all stays as it was\n") {
                return reported;
            }
            assert!(Instant::now() < end, "{reported}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn reported(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("told")).unwrap()
    }

    fn text(&self) -> Client {
        let stream = UnixStream::connect(self.directory.path().join("text")).unwrap();
        let patience = Some(Duration::from_secs(60));
        stream.set_read_timeout(patience).unwrap();
        Client(std::io::BufReader::new(stream))
    }

    /// A number that the daemon reports about itself; of one with labels, the sum.
    fn count(&self, name: &str) -> u64 {
        let mut stream = TcpStream::connect(self.metrics).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        let mut page = String::new();
        stream.read_to_string(&mut page).unwrap();
        let kind = format!("# TYPE kymo_{name} ");
        let mut lines = page.lines().skip_while(|line| !line.starts_with(&kind));
        assert!(lines.next().is_some(), "{name}\n{page}");
        let values = lines.take_while(|line| !line.starts_with('#'));
        let values = values.map(|line| line.rsplit_once(' ').unwrap().1);
        values.map(|value| value.parse::<u64>().unwrap()).sum()
    }

    fn wait_for(&self, name: &str, count: u64) {
        let end = Instant::now() + Duration::from_secs(60);
        while self.count(name) < count {
            assert!(Instant::now() < end, "{name}: {}", self.count(name));
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(self.count(name), count, "{name}");
    }
}

const TYPES: &str = "gauge value:GAUGE:U:U\nderive value:DERIVE:0:U\n";

fn write(path: &Path, rest: &str, metrics: SocketAddr, collectd: &str, rrdcached: &str) {
    let text = format!(
        "data = 'data'\n[metrics]\nlisten = '{metrics}'\n\
         [rrdcached]\nlisten = 'unix:sock'\n{rrdcached}\n\
         [collectd]\ntypes-db = 'types.db'\n{collectd}\n{rest}"
    );
    std::fs::write(path.join("config.toml"), text).unwrap();
}

fn now() -> CdTime {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = now.unwrap();
    CdTime::from_timespec(now.as_secs(), now.subsec_nanos()).unwrap()
}

fn datagram(name: &str, time: CdTime, protection: Protection) -> Vec<u8> {
    let options = PackerOptions {
        protection,
        ..PackerOptions::default()
    };
    let mut packer = Packer::new(options).unwrap();
    let id = Identifier::parse(name).unwrap();
    let interval = CdTime::from_seconds(10).unwrap();
    let full = packer.values(&id, time, interval, &[Value::Gauge(1.0)]);
    assert!(full.unwrap().is_none());
    packer.flush().unwrap()
}

#[test]
fn nothing_is_lost_or_forgotten() {
    let it = Changing::begin("");
    let mut text = it.text();
    let mut client = it.daemon.client();
    let (earlier, later) = (now().split().0 - 10, now().split().0);
    for (time, value) in [(earlier, 100), (later, 200)] {
        let put = format!("PUTVAL h/p/derive-x interval=10 {time}:{value}");
        assert_eq!(text.ask(&put), "0 Success: 1 value has been dispatched.");
    }
    // A client that sends all the time.
    let ends = Arc::new(AtomicBool::new(false));
    let stops = Arc::clone(&ends);
    let to = ("127.0.0.1", it.ports[0]);
    let begin = now();
    let sender = std::thread::spawn(move || {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut sent = 0;
        while !stops.load(Relaxed) {
            let time = begin.checked_add(CdTime::from_ticks(sent << 10)).unwrap();
            let datagram = datagram("h/p/gauge-y", time, Protection::None);
            socket.send_to(&datagram, to).unwrap();
            sent += 1;
            std::thread::sleep(Duration::from_micros(200));
        }
        sent
    });
    for (collectd, rrdcached) in [
        ("interval = 20", ""),
        ("deduplicate = 1000", "connections = 500"),
        ("threads = 3", "connections = 400"),
        ("queue-mib = 32\nhost = 'other'", ""),
        ("receive-buffer-mib = 8\n[collectd.rrd]\nrows = 100", ""),
    ] {
        let reported = it.change(collectd, rrdcached);
        assert!(reported.contains("was read again"), "{reported}");
        // The same connections, and the same names.
        assert_eq!(text.ask("GETVAL h/p/derive-x"), "1 Value found");
        assert_eq!(text.line(), "value=1.000000e+01", "{collectd}");
        client.ok("PING");
    }
    ends.store(true, Relaxed);
    let sent = sender.join().unwrap();
    it.wait_for("datagrams_total", sent);
    it.wait_for("lists_total", sent + 2);
    assert_eq!(it.count("datagrams_kernel_dropped_total"), 0);
    assert_eq!(it.count("datagrams_dropped_total"), 0);
    let csv = it.directory.path().join("csv/h/p");
    assert_eq!(it.daemon.end(), Some(0));
    let files = std::fs::read_dir(csv)
        .unwrap()
        .map(|file| file.unwrap().path());
    let files = files.filter(|file| file.to_string_lossy().contains("gauge-y"));
    let lines = files.map(|file| std::fs::read_to_string(file).unwrap().lines().count() - 1);
    assert_eq!(lines.sum::<usize>() as u64, sent);
}

/// What cannot be done is found before anything is changed.
#[test]
fn what_fails_changes_nothing() {
    let it = Changing::begin("");
    let mut text = it.text();
    let time = now().split().0;
    text.ok_put(&format!("PUTVAL h/p/gauge-x interval=10 {time}:5"));
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    for wrong in [
        format!("interval = 20\n[[collectd.listen]]\nhost = '127.0.0.1'\nport = {port}"),
        "interval = 20\n[collectd.rrd]\ndirectory = '/elsewhere'".to_string(),
        "[[collectd.listen]]\nhost = '127.0.0.1'\nport = 0\nauth-file = 'none'".to_string(),
    ] {
        let reported = it.change(&wrong, "");
        assert!(reported.contains("all stays as it was"), "{reported}");
        assert_eq!(text.ask("GETVAL h/p/gauge-x"), "1 Value found");
        assert_eq!(text.line(), "value=5.000000e+00");
    }
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let plain = datagram("h/p/gauge-y", now(), Protection::None);
    socket.send_to(&plain, ("127.0.0.1", it.ports[0])).unwrap();
    it.wait_for("lists_total", 2);
}

/// Clients connected to an address that is removed are disconnected; all others stay connected.
#[test]
fn connections_stay_where_their_socket_does() {
    let it = Changing::begin("");
    let mut text = it.text();
    let mut client = it.daemon.client();
    it.change("", "connections = 9");
    client.ok("PING");
    let path = it.directory.path();
    let config = std::fs::read_to_string(path.join("config.toml")).unwrap();
    let more = config.replace(
        "listen = 'unix:sock'",
        "listen = ['unix:sock', 'unix:more']",
    );
    let read = |text: &str| {
        let before = it.reported().len();
        std::fs::write(path.join("config.toml"), text).unwrap();
        it.daemon.signal("-HUP");
        let end = Instant::now() + Duration::from_secs(60);
        while !it.reported()[before..].contains("was read again") {
            assert!(Instant::now() < end, "{}", it.reported());
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    read(&more);
    let mut other = Client(std::io::BufReader::new(
        UnixStream::connect(path.join("more")).unwrap(),
    ));
    other.ok("PING");
    read(&config);
    assert_eq!(other.line(), "", "it has ended");
    assert!(!path.join("more").exists());
    client.ok("PING");
    assert_eq!(text.ask("LISTVAL"), "0 Values found");
    assert_eq!(it.daemon.end(), Some(0));
}

impl Changing {
    /// Has it read a configuration, and waits until it has reported a text.
    fn read(&self, config: &str, expected: &str) -> String {
        let before = self.reported().len();
        std::fs::write(self.directory.path().join("config.toml"), config).unwrap();
        self.daemon.signal("-HUP");
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let reported = self.reported().split_off(before);
            if reported.contains(expected) {
                return reported;
            }
            assert!(Instant::now() < end, "{reported}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn config(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("config.toml")).unwrap()
    }
}

#[test]
fn permissions_hold_for_connections_that_were_there() {
    let it = Changing::begin("");
    let path = it.directory.path();
    let config = it.config();
    let with = |mode: &str, commands: &str| {
        format!(
            "{config}\n[[rrdcached.socket]]\nlisten = 'unix:more'\nmode = {mode}\ncommands = {commands}\n"
        )
    };
    let again = "was read again";
    it.read(&with("0o660", "['read', 'CREATE']"), again);
    let mut more = Client(std::io::BufReader::new(
        UnixStream::connect(path.join("more")).unwrap(),
    ));
    more.ok(&super::create("a.rrd"));
    it.read(&with("0o660", "'read'"), again);
    let answer = more.ask(&super::create("b.rrd"));
    assert!(answer.starts_with("-1 "), "{answer}");
    more.ok("LAST a.rrd");
    // Who was let in by another mode comes again, if that is still allowed.
    let mut other = it.daemon.client();
    it.read(&with("0o600", "'read'"), again);
    assert_eq!(more.line(), "", "it has ended");
    other.ok("PING");
    assert_eq!(it.daemon.end(), Some(0));
}

#[test]
fn messages_follow_the_configuration() {
    let it = Changing::begin("");
    let config = it.config();
    let json = "\n[log]\nformat = 'json'\n";
    // Also what says where a new address is.
    let address = format!("\n[influx]\nlisten = '127.0.0.1:{}'\n", free_port());
    let expected = "\"message\":\"the configuration was read again\"";
    let reported = it.read(&format!("{config}{address}{json}"), expected);
    let influx = reported.lines().find(|line| line.contains("influx at "));
    assert!(influx.unwrap().starts_with("{\"time\":"), "{reported}");
    let reported = it.read(&format!("{config}{json}"), expected);
    assert!(!reported.contains("restart"), "{reported}");
    let other = config.replace("data = 'data'", "data = 'other'\npid-file = 'pid'");
    let expected = "applied only by a restart: `data`, `pid-file`\"";
    it.read(&format!("{other}{json}level = 'warning'\n"), expected);
    it.read(
        &format!("{config}{json}level = 'warning'\nx = 1\n"),
        "all stays as it was",
    );
    let messages = it.reported();
    assert_eq!(messages.matches("was read again").count(), 2, "{messages}");
    assert_eq!(it.daemon.end(), Some(0));
}

/// What was received is known at all addresses, and after the configuration was read again.
#[test]
fn what_was_received_before_is_known_everywhere() {
    let it = Changing::begin("security = 'sign'\nauth-file = 'auth'\nreplay-window = 60");
    let protection = || Protection::Sign {
        user: "alice".into(),
        password: b"secret".to_vec(),
    };
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let send = |datagram: &[u8], port: u16| {
        socket.send_to(datagram, ("127.0.0.1", port)).unwrap();
    };
    let first = datagram("h/p/gauge-x", now(), protection());
    send(&first, it.ports[0]);
    it.wait_for("lists_total", 1);
    send(&first, it.ports[0]);
    send(&first, it.ports[1]);
    it.wait_for("datagrams_faults_total", 2);
    it.change("interval = 20", "");
    send(&first, it.ports[1]);
    it.wait_for("datagrams_faults_total", 3);
    it.change("threads = 3", "");
    send(&first, it.ports[0]);
    it.wait_for("datagrams_faults_total", 4);
    send(&datagram("h/p/gauge-y", now(), protection()), it.ports[1]);
    it.wait_for("lists_total", 2);
}

#[test]
fn types_are_read_again() {
    let it = Changing::begin("");
    let mut text = it.text();
    let time = now().split().0;
    text.ok_put(&format!("PUTVAL h/p/gauge-x interval=10 {time}:5"));
    text.ok_put(&format!("PUTVAL h/p/derive-x interval=10 {time}:5"));
    let put = format!("PUTVAL h/p/speed-x interval=10 {time}:5");
    assert!(text.ask(&put).starts_with("-1 "));
    let path = it.directory.path().join("types.db");
    let changed = "gauge value:GAUGE:U:U\nspeed value:GAUGE:U:U\nderive a:GAUGE:U:U, b:GAUGE:U:U\n";
    std::fs::write(&path, changed).unwrap();
    it.change("", "");
    text.ok_put(&put);
    // A value whose type has changed starts over.
    text.ok_put(&format!("PUTVAL h/p/derive-x interval=10 {}:1:2", time + 1));
    assert_eq!(text.ask("GETVAL h/p/derive-x"), "2 Values found");
    assert_eq!(text.line(), "a=1.000000e+00");
    assert_eq!(text.line(), "b=2.000000e+00");
    // Errors are reported, and the rest is done.
    std::fs::write(&path, "gauge\n").unwrap();
    let reported = it.change("host = 'other'", "");
    assert!(reported.contains("types.db`: line 1: "), "{reported}");
    assert!(reported.contains("was read again"), "{reported}");
    text.ok_put(&format!("PUTVAL h/p/speed-x interval=10 {}:6", time + 1));
    assert_eq!(text.ask("GETVAL h/p/gauge-x"), "1 Value found");
    assert_eq!(text.line(), "value=5.000000e+00");
}

impl Client {
    fn ok_put(&mut self, line: &str) {
        let answer = self.ask(line);
        assert_eq!(answer, "0 Success: 1 value has been dispatched.", "{line}");
    }
}
