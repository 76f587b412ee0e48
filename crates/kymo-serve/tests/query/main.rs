//! Queries over databases and what waits in memory, by HTTP.
#![cfg(unix)]

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kymo_io::net::Address;
use kymo_rrd::Time;
use kymo_rrd::engine::{Definition, Smoothing};
use kymo_serve::daemon::Source as _;
use kymo_serve::listen::{Access, Socket};
use kymo_serve::query::{Options, Source};
use kymo_serve::store::{self, Log, Store, Timing, Update};
use serde_json::{Value, json};

/// A multiple of all steps.
const START: i64 = 1_500_000_000;

struct Fixture {
    store: Arc<Store>,
    source: Source,
    socket: PathBuf,
    _directory: tempfile::TempDir,
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.source.stop();
        self.store.close();
    }
}

/// A store without databases that writes nothing by itself.
fn fixture(change: impl FnOnce(&mut Options)) -> Fixture {
    let directory = tempfile::tempdir().unwrap();
    let log: Log = Arc::new(|_, _| {});
    let never = Duration::from_secs(3600);
    let store = Store::open(store::Options {
        timing: Timing {
            write_timeout: never,
            jitter: Duration::ZERO,
            flush_interval: never,
        },
        ..store::Options::new(directory.path().join("data"), Arc::clone(&log))
    })
    .unwrap();
    let path = directory.path().join("sock");
    let socket =
        Arc::new(Socket::bind(&Address::Unix(path.clone()), &Access::mode(0o600)).unwrap());
    let mut options = Options {
        refresh: Duration::ZERO,
        ..Options::default()
    };
    change(&mut options);
    let source = Source::start(&store, &options, &[socket], &log).unwrap();
    Fixture {
        store,
        source,
        socket: path,
        _directory: directory,
    }
}

impl Fixture {
    /// A database with a value every ten seconds: these, from the start on. They wait in memory.
    fn database(&self, name: &str, texts: &[&str], values: &[&str]) {
        let path = self.store.path(name.as_bytes());
        let start = Time::from_seconds(START);
        let definition = Definition::parse(start, 10, texts, &Smoothing::default()).unwrap();
        self.store.create(&path, &definition).unwrap();
        self.update(name, 1, values);
    }

    fn update(&self, name: &str, first: i64, values: &[&str]) {
        let database = self
            .store
            .database(&self.store.path(name.as_bytes()))
            .unwrap();
        for (place, value) in (first..).zip(values) {
            let text = format!("{}:{value}", START + place * 10);
            let (update, _) = Update::from_text(text.as_bytes()).unwrap();
            self.store.accept(&database, &update, None).unwrap();
        }
    }

    fn usual(&self) {
        let gauge = ["DS:value:GAUGE:20:U:U", "RRA:AVERAGE:0.5:1:100"];
        self.database("web1/load/load.rrd", &gauge, &["1", "2", "3", "4"]);
        self.database("web2/load/load.rrd", &gauge, &["10", "20", "U", "40"]);
        let counter = ["DS:rx:COUNTER:20:U:U", "RRA:AVERAGE:0.5:1:100"];
        self.database(
            "web1/interface-eth0/if_octets.rrd",
            &counter,
            &["0", "50", "150", "150"],
        );
        let plain = [
            "DS:a:GAUGE:20:U:U",
            "RRA:AVERAGE:0.5:1:100",
            "RRA:AVERAGE:0.5:2:100",
            "RRA:MAX:0.5:2:100",
        ];
        self.database("plain.rrd", &plain, &["1", "5", "2", "8"]);
    }

    fn send(&self, request: &str) -> (u16, String) {
        exchange(&self.socket, request)
    }

    fn get(&self, target: &str) -> Value {
        let (_, body) = self.send(&format!(
            "GET {target} HTTP/1.1\r\nConnection: close\r\n\r\n"
        ));
        serde_json::from_str(&body).unwrap_or(Value::String(body))
    }

    /// A POST with a form, as Grafana sends it.
    fn post(&self, target: &str, form: &str) -> (u16, Value) {
        let (status, body) = self.send(&format!(
            "POST {target} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: Grafana/11.0.0\r\nContent-Length: {}\r\n\
             Content-Type: application/x-www-form-urlencoded\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n{form}",
            form.len()
        ));
        (
            status,
            serde_json::from_str(&body).unwrap_or(Value::String(body)),
        )
    }

    fn instant(&self, query: &str, place: i64) -> Value {
        let form = format!("query={query}&time={}", START + place * 10);
        self.post("/api/v1/query", &form).1
    }
}

fn exchange(socket: &Path, request: &str) -> (u16, String) {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    // Bodies may be databases.
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, body.to_owned())
}

#[test]
fn what_waits_in_memory_is_answered() {
    let fixture = fixture(|_| {});
    fixture.usual();
    let sum = |place: i64| {
        fixture.instant("sum(collectd_load)", place)["data"]["result"][0]["value"][1].clone()
    };
    // One row, then two series of which one is unknown, which counts on.
    assert_eq!(sum(2), "22");
    assert_eq!(sum(3), "23");
    assert_eq!(sum(4), "44");
    // Nothing was written for it.
    let pending = fixture.store.pending_bytes();
    assert!(pending > 0);
    fixture.store.flush_all_and_wait();
    assert_eq!(sum(4), "44");
    fixture.update("web1/load/load.rrd", 5, &["6"]);
    fixture.update("web2/load/load.rrd", 5, &["50"]);
    assert_eq!((sum(4), sum(5)), ("44".into(), "56".into()));
}

#[test]
fn prometheus_api() {
    let fixture = fixture(|_| {});
    fixture.usual();
    let answer = fixture.instant("collectd_load%7Bhost%3D%22web1%22%7D", 2);
    assert_eq!(
        answer,
        json!({"status": "success", "data": {"resultType": "vector", "result": [{
            "metric": {"__name__": "collectd_load", "host": "web1", "plugin": "load", "type": "load"},
            "value": [START + 20, "2"],
        }]}})
    );
    let form = format!(
        "query=collectd_load&start={}&end={}&step=20",
        START + 10,
        START + 50
    );
    let (status, answer) = fixture.post("/api/v1/query_range", &form);
    assert_eq!(
        (status, &answer["data"]["resultType"]),
        (200, &json!("matrix"))
    );
    assert_eq!(
        answer["data"]["result"][1]["values"],
        json!([[START + 10, "10"], [START + 30, "20"], [START + 50, "40"]])
    );
    let answer = fixture.instant("rate(collectd_interface_if_octets_rx_rate%5B1m%5D)", 4);
    let warning = answer["warnings"][0].as_str().unwrap();
    assert!(warning.contains("rates per second already"), "{warning}");
    let values = |target: &str| fixture.get(target)["data"].clone();
    assert_eq!(values("/api/v1/label/host/values"), json!(["web1", "web2"]));
    assert_eq!(
        values("/api/v1/label/__name__/values?match[]=%7Bhost%3D%22web1%22%7D"),
        json!(["collectd_interface_if_octets_rx_rate", "collectd_load"])
    );
    assert_eq!(
        values("/api/v1/labels"),
        json!([
            "__name__",
            "ds",
            "file",
            "host",
            "plugin",
            "plugin_instance",
            "type"
        ])
    );
    assert_eq!(
        values("/api/v1/series?match[]=rrd_value"),
        json!([{"__name__": "rrd_value", "ds": "a", "file": "plain.rrd"}])
    );
    assert_eq!(
        values("/api/v1/metadata?metric=collectd_load")["collectd_load"][0]["type"],
        "gauge"
    );
    assert_eq!(
        values("/api/v1/format_query?query=sum(a)by(b)"),
        "sum by (b) (a)"
    );
    assert_eq!(values("/api/v1/status/buildinfo")["version"], "2.42.0");
    // What Grafana asks to find out whether the source works.
    assert_eq!(
        fixture.post("/api/v1/query", "query=1%2B1&time=1").1,
        json!({"status": "success", "data": {"resultType": "scalar", "result": [1, "2"]}})
    );
    for (target, status, kind, problem) in [
        (
            "query?query=a(",
            400,
            "bad_data",
            "invalid parameter \"query\"",
        ),
        (
            "query?query=up&time=x",
            400,
            "bad_data",
            "invalid parameter \"time\": Invalid time value for 'time': cannot parse \"x\"",
        ),
        (
            "query_range?query=up&start=2&end=1&step=1",
            400,
            "bad_data",
            "end timestamp must not be before",
        ),
        (
            "query_range?query=up&start=0&end=1&step=0",
            400,
            "bad_data",
            "zero or negative query resolution",
        ),
        (
            "query_range?query=up&start=0&end=11001&step=1",
            400,
            "bad_data",
            "exceeded maximum resolution of 11,000",
        ),
        (
            "query_range?query=up[1m]&start=0&end=1&step=1",
            400,
            "bad_data",
            "range vector",
        ),
        (
            "query?query=label_replace(vector(1),%22%22,%22%22,%22%22,%22%22)",
            422,
            "execution",
            "invalid destination label",
        ),
        (
            "query?query=histogram_quantile(1,a)",
            400,
            "bad_data",
            "databases hold no histograms",
        ),
        ("series", 400, "bad_data", "no match[] parameter provided"),
        ("label/1/values", 400, "bad_data", "invalid label name"),
        ("nothing", 404, "not_found", "there is no /api/v1/nothing"),
    ] {
        let request = format!("GET /api/v1/{target} HTTP/1.1\r\nConnection: close\r\n\r\n");
        let (found, body) = fixture.send(&request);
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(
            (found, &body["status"], &body["errorType"]),
            (status, &json!("error"), &json!(kind))
        );
        assert!(body["error"].as_str().unwrap().contains(problem), "{body}");
    }
}

#[test]
fn archives_suit_the_query() {
    let fixture = fixture(|_| {});
    fixture.usual();
    let range = |query: &str, step: i64| {
        let form = format!(
            "query={query}&start={}&end={}&step={step}",
            START + 20,
            START + 40
        );
        let (_, answer) = fixture.post("/api/v1/query_range", &form);
        answer["data"]["result"][0]["values"].clone()
    };
    assert_eq!(
        range("rrd_value", 10),
        json!([[START + 20, "5"], [START + 30, "2"], [START + 40, "8"]])
    );
    // Means of two points.
    assert_eq!(
        range("rrd_value", 20),
        json!([[START + 20, "3"], [START + 40, "5"]])
    );
    assert_eq!(
        range("max_over_time(rrd_value%5B40s%5D)", 20),
        json!([[START + 20, "5"], [START + 40, "8"]])
    );
}

#[test]
fn graphite_api() {
    let fixture = fixture(|_| {});
    fixture.usual();
    let find = |query: &str| fixture.get(&format!("/metrics/find?query={query}"));
    assert_eq!(
        find("*"),
        json!([
            {"text": "plain", "id": "plain", "allowChildren": 1, "expandable": 1, "leaf": 0, "context": {}},
            {"text": "web1", "id": "web1", "allowChildren": 1, "expandable": 1, "leaf": 0, "context": {}},
            {"text": "web2", "id": "web2", "allowChildren": 1, "expandable": 1, "leaf": 0, "context": {}},
        ])
    );
    // A name comes once, below what was asked for.
    assert_eq!(
        find("web*.load.*"),
        json!([{"text": "load", "id": "web*.load.load", "allowChildren": 0, "expandable": 0, "leaf": 1, "context": {}}])
    );
    assert_eq!(
        find("web*.load&format=nodelist"),
        json!({"nodes": ["load"]})
    );
    assert_eq!(
        find("web1.load.*&format=json"),
        json!([{"path": "web1.load.load", "is_leaf": true}])
    );
    assert_eq!(find("web?&wildcards=1")[0]["id"], "*");
    assert_eq!(
        fixture.get("/metrics/expand?query=web*.load.load&query=plain.*&leavesOnly=1"),
        json!({"results": ["plain.a", "web1.load.load", "web2.load.load"]})
    );
    assert_eq!(
        fixture.get("/metrics/expand?query=plain&groupByExpr=1"),
        json!({"results": {"plain": ["plain"]}})
    );
    assert_eq!(
        fixture.get("/metrics/index.json").as_array().map(Vec::len),
        Some(4)
    );
    assert_eq!(
        fixture.get("/tags/autoComplete/tags?tagPrefix=x"),
        json!([])
    );
    let render = |target: &str| {
        let form = format!(
            "target={target}&from={START}&until={}&format=json&maxDataPoints=100",
            START + 40
        );
        fixture.post("/render", &form)
    };
    let (status, answer) = render("aliasByNode(web*.load.load%2C0)");
    assert_eq!(status, 200);
    assert_eq!(
        answer,
        json!([
            {"target": "web1", "tags": {"name": "web1.load.load"}, "datapoints":
                [[1, START], [2, START + 10], [3, START + 20], [4, START + 30]]},
            {"target": "web2", "tags": {"name": "web2.load.load"}, "datapoints":
                [[10, START], [20, START + 10], [null, START + 20], [40, START + 30]]},
        ])
    );
    let (status, answer) = render("holtWintersForecast(a)");
    assert_eq!(
        (status, answer),
        (
            400,
            json!("the function `holtWintersForecast` is not supported\n")
        )
    );
    assert_eq!(
        render("sumSeries(web*.load.load)").1[0]["datapoints"][1][0],
        22
    );
}

/// What Grafana asks of a Prometheus beside queries, and forms whose parameters count before those of the address.
#[test]
fn requests_of_grafana() {
    let fixture = fixture(|_| {});
    fixture.usual();
    let data = |target: &str| fixture.get(&format!("/api/v1/{target}"))["data"].clone();
    assert_eq!(
        fixture
            .post("/api/v1/query?query=1&time=1", "query=2&time=3")
            .1["data"]["result"],
        json!([3, "2"])
    );
    assert_eq!(data("rules?type=alert"), json!({"groups": []}));
    assert_eq!(data("alertmanagers")["activeAlertmanagers"], json!([]));
    assert_eq!(data("query_exemplars?query=up&start=1&end=2"), json!([]));
    assert_eq!(data("status/flags")["query.max-samples"], "10000000");
    let status = data("status/tsdb");
    assert_eq!(status["headStats"]["numSeries"], 4);
    assert_eq!(
        status["seriesCountByMetricName"][0],
        json!({"name": "collectd_load", "value": 2})
    );
    for (target, status) in [
        ("rules?type=x", 400),
        ("query_exemplars?query=up(", 400),
        ("query_exemplars?query=up&start=2&end=1", 400),
        ("metadata?limit=x", 400),
        ("query_range?query=1&start=0&end=1&step=NaN", 400),
        ("query_range?query=1&start=-1&end=10999&step=1", 200),
        ("query?query=1&time=-9e300", 400),
    ] {
        let request = format!("GET /api/v1/{target} HTTP/1.1\r\nConnection: close\r\n\r\n");
        assert_eq!(fixture.send(&request).0, status, "{target}");
    }
    let count = |target: &str| data(target).as_array().map(Vec::len);
    assert_eq!(count("series?match[]=rrd_value"), Some(1));
    let many = "match[]=up&".repeat(101);
    assert_eq!(
        fixture.get(&format!("/api/v1/labels?{many}"))["errorType"],
        "bad_data"
    );
    // The archives begin later.
    assert_eq!(count("series?match[]=rrd_value&start=1&end=1000"), Some(0));
    let (status, body) = fixture.send("HEAD /-/ready HTTP/1.1\r\nConnection: close\r\n\r\n");
    assert_eq!((status, body.as_str()), (200, ""));
}

#[test]
fn queries_have_bounds() {
    let fixture = fixture(|options| {
        options.most_samples = 60;
        options.most_answer = 300;
        options.concurrent = 1;
    });
    fixture.usual();
    let form = format!(
        "query=collectd_load&start={START}&end={}&step=1",
        START + 40
    );
    let (status, answer) = fixture.post("/api/v1/query_range", &form);
    assert_eq!((status, &answer["errorType"]), (422, &json!("execution")));
    assert!(
        answer["error"]
            .as_str()
            .unwrap()
            .contains("too many samples")
    );
    let form = format!(
        "query=collectd_load&start={START}&end={}&step=5",
        START + 40
    );
    let (status, answer) = fixture.post("/api/v1/query_range", &form);
    assert_eq!(status, 422);
    assert!(
        answer["error"]
            .as_str()
            .unwrap()
            .contains("query.most-answer-mib"),
        "{answer}"
    );
    let (status, answer) = fixture.post("/api/v1/query", "query=1&timeout=0.000001");
    assert_eq!((status, &answer["errorType"]), (503, &json!("timeout")));
    let many: Vec<_> = (0..20)
        .map(|_| {
            let socket = fixture.socket.clone();
            let request = "GET /api/v1/query?query=1 HTTP/1.1\r\nConnection: close\r\n\r\n";
            std::thread::spawn(move || exchange(&socket, request).0)
        })
        .collect();
    assert!(many.into_iter().all(|one| one.join().unwrap() == 200));
}

#[test]
fn requests_that_are_not_understood_have_a_status() {
    let fixture = fixture(|_| {});
    for (request, status) in [
        (
            "PUT /api/v1/query HTTP/1.1\r\nConnection: close\r\n\r\n",
            405,
        ),
        ("GET /nothing HTTP/1.1\r\nConnection: close\r\n\r\n", 404),
        (
            "POST /api/v1/query HTTP/1.1\r\nConnection: close\r\nContent-Length: 2\r\n\r\nxx",
            415,
        ),
        ("BREW\r\n\r\n", 400),
        ("GET /-/ready HTTP/1.1\r\nConnection: close\r\n\r\n", 200),
    ] {
        assert_eq!(fixture.send(request).0, status, "{request}");
    }
    // A connection serves several requests.
    let request = "GET /-/ready HTTP/1.1\r\n\r\nGET /-/ready HTTP/1.1\r\nConnection: close\r\n\r\n";
    let mut stream = UnixStream::connect(&fixture.socket).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answers = String::new();
    stream.read_to_string(&mut answers).unwrap();
    assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 2);
}

/// A database that is damaged hides itself only, and is counted.
#[test]
fn damaged_files_are_counted() {
    let fixture = fixture(|_| {});
    fixture.usual();
    let base = &fixture.store.options().base;
    std::fs::write(base.join("broken.rrd"), b"RRD\x000003\0 and no more").unwrap();
    std::fs::write(base.join("notes.txt"), b"not a database").unwrap();
    assert_eq!(
        fixture.get("/api/v1/label/file/values")["data"],
        json!(["plain.rrd"])
    );
    let mut page = kymo_serve::metrics::Page::default();
    fixture.source.metrics(&mut page);
    let has = |line: &str| page.text().lines().any(|it| it == line);
    assert!(
        has("kymo_query_unreadable_files 1") && has("kymo_query_series 4"),
        "{}",
        page.text()
    );
}

/// Each query sees either all of an update or nothing, while others write as fast as they can.
#[test]
fn queries_and_writes_do_not_mix() {
    let fixture = fixture(|_| {});
    let both = [
        "DS:a:GAUGE:20:U:U",
        "DS:b:GAUGE:20:U:U",
        "RRA:AVERAGE:0.5:1:10",
    ];
    fixture.database("pair.rrd", &both, &["1:1"]);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for place in 2..400 {
                let value = format!("{place}:{place}");
                fixture.update("pair.rrd", place, &[&value]);
                let path = fixture.store.path(b"pair.rrd");
                let database = fixture.store.known(&path).unwrap();
                fixture.store.flush(&database);
            }
        });
        for _ in 0..100 {
            let form = "query=sum+by(file)(last_over_time(rrd_value%5B100y%5D))&time=1600000000";
            let (status, answer) = fixture.post("/api/v1/query", form);
            assert_eq!(status, 200);
            assert_eq!(answer.get("warnings"), None, "{answer}");
            let sum = answer["data"]["result"][0]["value"][1]
                .as_str()
                .map(str::parse::<i64>);
            assert!(matches!(sum, Some(Ok(sum)) if sum % 2 == 0), "{answer}");
        }
    });
}

#[test]
fn databases_are_listed_and_sent_as_files() {
    let it = fixture(|_| ());
    it.usual();
    let list = |target: &str| {
        let answer = it.get(target);
        let list = answer["databases"].as_array().unwrap().clone();
        let pair = |value: &Value| {
            let text = |key: &str| value[key].as_str().unwrap().to_owned();
            (text("path"), text("version"))
        };
        list.iter().map(pair).collect::<Vec<_>>()
    };
    let all = list("/databases");
    let names: Vec<&str> = all.iter().map(|pair| pair.0.as_str()).collect();
    let expected = [
        "plain.rrd",
        "web1/interface-eth0/if_octets.rrd",
        "web1/load/load.rrd",
        "web2/load/load.rrd",
    ];
    assert_eq!(names, expected);
    assert_eq!(list("/databases?below=web1"), all[1..3]);
    assert_eq!(list("/databases?below=web"), []);
    // An update that waits in memory changes the version, and is in the file that is sent.
    it.update("plain.rrd", 5, &["7"]);
    let now = list("/databases");
    assert_ne!(now[0], all[0]);
    assert_eq!(now[1..], all[1..]);
    let get = "GET /databases/plain.rrd HTTP/1.1\r\nConnection: close\r\n\r\n";
    let (status, body) = it.send(get);
    let path = it.store.path(b"plain.rrd");
    let sent = it.store.snapshot(&path).unwrap();
    assert_eq!(
        (status, body),
        (200, String::from_utf8_lossy(&sent).into_owned())
    );
    let written = std::fs::read(it._directory.path().join("data/plain.rrd")).unwrap();
    assert_ne!(*sent, *written);
    // Nothing else of the file system is sent.
    std::fs::write(it._directory.path().join("data/notes"), "secret").unwrap();
    std::fs::write(it._directory.path().join("outside.rrd"), "secret").unwrap();
    for name in [
        "notes",
        "../outside.rrd",
        "%2e%2e/outside.rrd",
        "/etc/passwd",
        "web1",
        "",
    ] {
        let request = format!("GET /databases/{name} HTTP/1.1\r\nConnection: close\r\n\r\n");
        let (status, body) = it.send(&request);
        assert!(status == 404 || name.is_empty(), "{name}: {status}");
        assert!(
            !body.contains("secret") && !body.contains("root:"),
            "{name}"
        );
    }
}
