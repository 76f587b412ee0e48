//! A cluster of processes on this machine.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::{ENVIRONMENT, Run, answer, file, run};

/// The secret of clusters in tests.
const TOKEN: &str = "a secret of tests";

/// A process that ends with this.
pub(crate) struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Process {
    /// Starts a part of a cluster; its log goes to `log`.
    fn start(words: &[&str], node: &Node, log: &Log) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_kymo-query"))
            .args(words)
            .current_dir(&node.directory)
            .env("KYMO_CLUSTER_TOKEN", TOKEN)
            .env("TZ", "UTC")
            .envs(ENVIRONMENT.get().into_iter().flatten().cloned())
            .envs(node.variables.clone())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program runs");
        let lines = BufReader::new(child.stderr.take().expect("standard error is a pipe"));
        let log = Arc::clone(log);
        std::thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                log.lock().unwrap().push(line);
            }
        });
        Self(child)
    }

    /// Sends a signal: `KILL`, `STOP`, `CONT`.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.0.id().to_string();
        let status = Command::new("kill").args(["-s", name, &id]).status();
        assert!(
            status.is_ok_and(|status| status.success()),
            "kill -s {name} {id}"
        );
    }
}

/// Lines of a process.
type Log = Arc<Mutex<Vec<String>>>;

/// Where a process runs, and its variables of the environment.
pub(crate) struct Node {
    directory: PathBuf,
    variables: Vec<(String, String)>,
}

impl Node {
    pub(crate) fn new(directory: &Path, variables: &[(&str, &str)]) -> Self {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Self {
            directory: directory.to_path_buf(),
            variables: variables.iter().map(owned).collect(),
        }
    }
}

/// A scheduler and workers.
pub(crate) struct Cluster {
    pub(crate) workers: Vec<Process>,
    pub(crate) address: String,
    metrics: String,
    log: Log,
    /// Of all workers.
    worker_log: Log,
    worker: Node,
    _scheduler: Process,
}

impl Cluster {
    pub(crate) fn new(workers: usize) -> Self {
        let node = || Node::new(&file(""), &[]);
        Self::on(workers, &node(), node())
    }

    /// The scheduler on one node, and all workers on another one.
    pub(crate) fn on(workers: usize, node: &Node, worker: Node) -> Self {
        let log = Arc::default();
        let words = [
            "scheduler",
            "--listen",
            "127.0.0.1:0",
            "--metrics",
            "127.0.0.1:0",
            "--patience",
            "20s",
        ];
        let scheduler = Process::start(&words, node, &log);
        let mut cluster = Self {
            workers: Vec::new(),
            address: String::new(),
            metrics: String::new(),
            log,
            worker_log: Arc::default(),
            worker,
            _scheduler: scheduler,
        };
        cluster.metrics = cluster.wait_for(" metrics address=");
        cluster.address = cluster.wait_for(" scheduler listens address=");
        (0..workers).for_each(|_| cluster.add_worker());
        cluster
    }

    /// Starts one more worker, and waits until it is there.
    pub(crate) fn add_worker(&mut self) {
        let words = ["worker", "--scheduler", &self.address, "--threads", "1"];
        let worker = Process::start(&words, &self.worker, &self.worker_log);
        self.workers.push(worker);
        let expected = self.workers.len() as f64;
        self.wait_until(|cluster| cluster.metric("workers") >= expected);
    }

    /// What follows a text in a line of the scheduler's log, once there is one.
    fn wait_for(&self, text: &str) -> String {
        let mut found = None;
        self.wait_until(|cluster| {
            let log = cluster.log.lock().unwrap();
            found = log
                .iter()
                .find_map(|line| Some(line.split_once(text)?.1.to_owned()));
            found.is_some()
        });
        found.unwrap()
    }

    pub(crate) fn wait_until(&self, mut is_so: impl FnMut(&Self) -> bool) {
        let begun = Instant::now();
        while !is_so(self) {
            assert!(begun.elapsed() < Duration::from_secs(60), "{}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The scheduler's log.
    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().join("\n")
    }

    /// The log of the workers.
    pub(crate) fn worker_log(&self) -> String {
        self.worker_log.lock().unwrap().join("\n")
    }

    /// A metric of the scheduler; 0 if it does not answer.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let page = self.get("/metrics");
        let name = format!("kymo_cluster_{name} ");
        let mut lines = page.lines();
        let value = lines.find_map(|line| line.strip_prefix(&name)?.parse().ok());
        value.unwrap_or(0.0)
    }

    /// What the scheduler answers by HTTP.
    pub(crate) fn get(&self, path: &str) -> String {
        let get = || -> std::io::Result<String> {
            let mut stream = TcpStream::connect(&self.metrics)?;
            write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer)
        };
        get().unwrap_or_default()
    }

    /// Asks while workers hold their units, ends two of three with SIGKILL, and lets the other go on. Then there are three
    /// again.
    pub(crate) fn answer_with_deaths(&mut self, sql: &str, inputs: &[&str]) -> Vec<String> {
        self.workers.iter().for_each(|worker| worker.signal("STOP"));
        let running = self.metric("units_running");
        assert_eq!(running, 0.0, "{}", self.log());
        let rows = std::thread::scope(|scope| {
            let cluster = &*self;
            let asked = scope.spawn(|| answer(sql, inputs, &cluster.options()));
            // A plan without recordings has no units.
            let begun = Instant::now();
            cluster.wait_until(|cluster| {
                cluster.metric("units_running") > 0.0
                    || asked.is_finished()
                    || begun.elapsed().as_secs() > 5
            });
            let (dying, living) = cluster.workers.split_at(2);
            dying.iter().for_each(|worker| worker.signal("KILL"));
            living.iter().for_each(|worker| worker.signal("CONT"));
            asked.join().unwrap()
        });
        self.workers.drain(..2);
        self.wait_until(|cluster| cluster.metric("workers") as usize == cluster.workers.len());
        self.add_worker();
        self.add_worker();
        rows
    }

    /// Asks while the first worker runs a tenth of the time.
    pub(crate) fn answer_slowly(&self, sql: &str, inputs: &[&str]) -> Vec<String> {
        std::thread::scope(|scope| {
            let asked = scope.spawn(|| answer(sql, inputs, &self.options()));
            while !asked.is_finished() {
                self.workers[0].signal("STOP");
                std::thread::sleep(Duration::from_millis(90));
                self.workers[0].signal("CONT");
                std::thread::sleep(Duration::from_millis(10));
            }
            asked.join().unwrap()
        })
    }

    /// Asks, lets something happen when the first worker holds a unit, and returns how the program ends.
    pub(crate) fn ask_and(&self, words: &[&str], happens: impl FnOnce()) -> Run {
        self.workers[0].signal("STOP");
        std::thread::scope(|scope| {
            let asked = scope.spawn(|| run(&[&self.options(), words].concat()));
            self.wait_until(|cluster| cluster.metric("units_running") > 0.0);
            happens();
            self.workers[0].signal("CONT");
            asked.join().unwrap()
        })
    }

    /// The options of a client.
    pub(crate) fn options(&self) -> [&str; 2] {
        ["--cluster", &self.address]
    }
}
