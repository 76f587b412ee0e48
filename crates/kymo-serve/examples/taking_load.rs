//! How many samples a second the daemon takes, with a journal: lines of Graphite and messages of remote write.
//!
//!     cargo run --release -p kymo-serve --example taking_load [SERIES [ROUNDS]]
//!
//! Two connections send at the same time. CPU time is that of the whole process, senders and writing of databases
//! included.

#[cfg(unix)]
fn main() {
    unix::main();
}

#[cfg(not(unix))]
fn main() {}

#[cfg(unix)]
mod unix {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    use std::path::Path;
    use std::sync::Arc;
    use std::sync::atomic::Ordering::Relaxed;
    use std::time::{Duration, Instant};

    use kymo_serve::config::Config;
    use kymo_serve::daemon::Source as _;
    use kymo_serve::journal;
    use kymo_serve::listen::{Access, Socket};
    use kymo_serve::store::{self, Log, Store};
    use kymo_serve::taking::Taking;
    use nix::sys::resource::{UsageWho, getrusage};

    /// Connections that send.
    const SENDERS: usize = 2;
    /// Sends the samples of a round, and returns the number of bytes.
    type Round = fn(&mut UnixStream, usize, usize, usize) -> usize;

    /// Series of a message of remote write.
    const BATCH: usize = 2000;

    pub(super) fn main() {
        let mut words = std::env::args().skip(1);
        let mut number = |usual| {
            words
                .next()
                .map_or(usual, |word| word.parse().expect("a number"))
        };
        let (series, rounds) = (number(10_000), number(50));
        let directory = tempfile::tempdir().expect("a directory");
        let log: Log = Arc::new(|level, text| println!("{level}: {text}"));
        let store = Store::open(store::Options {
            journal: Some(journal::Options::new(directory.path().join("journal"))),
            most_pending: 1 << 30,
            ..store::Options::new(directory.path().join("data"), Arc::clone(&log))
        })
        .expect("a store");
        let text = "data = '/d'\n[graphite]\nlisten = 'unix:DIR/g'\n[remote-write]\nlisten = 'unix:DIR/r'\n\
                    [[storage]]\narchives = '10s:1h'";
        let text = text.replace("DIR", directory.path().to_str().expect("UTF-8"));
        let options = Config::parse(&text).expect("a configuration").taking;
        let sockets = |what: &str| -> Vec<Arc<Socket>> {
            let streams = options.streams();
            let listen = streams.iter().find(|(name, _)| *name == what);
            let addresses = listen.map_or(&[][..], |(_, listen)| &listen.addresses);
            let bound = addresses
                .iter()
                .map(|it| Socket::bind(it, &Access::mode(0o600)).expect("a socket"));
            bound.map(Arc::new).collect()
        };
        let taking = Taking::start(&options, &sockets, &store, &log).expect("a start");
        for (name, run) in [
            ("remote write", ("r", remote_write as Round)),
            ("graphite", ("g", graphite as Round)),
        ] {
            // The first round creates the databases.
            let before = accepted(&store);
            send(directory.path(), run, series, 0..1);
            wait(&store, before + (series * SENDERS) as u64);
            let (accepted, begun, cpu) = (accepted(&store), Instant::now(), cpu());
            let bytes = send(directory.path(), run, series, 1..rounds + 1);
            let expected = accepted + (series * rounds * SENDERS) as u64;
            wait(&store, expected);
            let (wall, cpu) = (begun.elapsed().as_secs_f64(), self::cpu() - cpu);
            let samples = (expected - accepted) as f64;
            println!(
                "{name}: {samples} samples of {} series, {bytes} bytes, {wall:.2} s, {:.0}/s; CPU {cpu:.2} s, {:.0} a \
                 CPU second",
                series * SENDERS,
                samples / wall,
                samples / cpu,
            );
        }
        taking.stop();
        store.close();
    }

    fn accepted(store: &Store) -> u64 {
        store.counters.accepted.load(Relaxed)
    }

    fn wait(store: &Store, accepted: u64) {
        let end = Instant::now() + Duration::from_secs(600);
        while self::accepted(store) < accepted && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn cpu() -> f64 {
        let usage = getrusage(UsageWho::RUSAGE_SELF).expect("usage");
        let seconds =
            |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
        seconds(usage.user_time()) + seconds(usage.system_time())
    }

    fn send(
        directory: &Path,
        (socket, run): (&str, Round),
        series: usize,
        rounds: std::ops::Range<usize>,
    ) -> usize {
        std::thread::scope(|scope| {
            let senders: Vec<_> = (0..SENDERS)
                .map(|sender| {
                    let rounds = rounds.clone();
                    scope.spawn(move || -> usize {
                        // Samples of a series stay in order on one connection.
                        let stream = UnixStream::connect(directory.join(socket));
                        let mut stream = stream.expect("a connection");
                        rounds
                            .map(|round| run(&mut stream, sender, series, round))
                            .sum()
                    })
                })
                .collect();
            senders
                .into_iter()
                .map(|it| it.join().expect("a sender"))
                .sum()
        })
    }

    fn time(round: usize) -> u64 {
        1_600_000_000 + 10 * round as u64
    }

    fn graphite(stream: &mut UnixStream, sender: usize, series: usize, round: usize) -> usize {
        let mut text = String::new();
        for number in 0..series {
            text += &format!(
                "servers.web{sender}.load.{number} {number}.5 {}\n",
                time(round)
            );
        }
        stream.write_all(text.as_bytes()).expect("lines");
        text.len()
    }

    fn bytes(out: &mut Vec<u8>, number: u8, inner: &[u8]) {
        out.push(number << 3 | 2);
        varint(out, inner.len() as u64);
        out.extend_from_slice(inner);
    }

    fn varint(out: &mut Vec<u8>, mut number: u64) {
        while number >= 0x80 {
            out.push(number as u8 | 0x80);
            number >>= 7;
        }
        out.push(number as u8);
    }

    fn remote_write(stream: &mut UnixStream, sender: usize, series: usize, round: usize) -> usize {
        let mut sent = 0;
        for first in (0..series).step_by(BATCH) {
            let mut message = Vec::new();
            for number in first..series.min(first + BATCH) {
                let mut inner = Vec::new();
                for (name, value) in [
                    ("__name__", "node_load"),
                    ("instance", &*format!("web{sender}:{number}")),
                    ("job", "node"),
                ] {
                    let mut label = Vec::new();
                    bytes(&mut label, 1, name.as_bytes());
                    bytes(&mut label, 2, value.as_bytes());
                    bytes(&mut inner, 1, &label);
                }
                let mut sample = vec![1 << 3 | 1];
                sample.extend((number as f64).to_le_bytes());
                sample.push(2 << 3);
                varint(&mut sample, time(round) * 1000);
                bytes(&mut inner, 2, &sample);
                bytes(&mut message, 1, &inner);
            }
            let body = snap::raw::Encoder::new()
                .compress_vec(&message)
                .expect("a body");
            let head = format!(
                "POST /api/v1/write HTTP/1.1\r\nContent-Type: application/x-protobuf\r\nContent-Encoding: snappy\r\n\
                 Content-Length: {}\r\n\r\n",
                body.len()
            );
            stream.write_all(head.as_bytes()).expect("a head");
            stream.write_all(&body).expect("a body");
            let mut answer = [0; 4096];
            let length = stream.read(&mut answer).expect("an answer");
            assert!(answer[..length].starts_with(b"HTTP/1.1 204"));
            sent += body.len();
        }
        sent
    }
}
