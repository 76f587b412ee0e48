//! Ready-made views, on made-up traces of kernels: they must show what the kernels did.

mod kernel;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use kernel::{FIRST_TID, Sum, Truth, devices};
use serde_json::Value;

fn run(args: &[&str], trace: &Path) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_kymo"))
        .args(args)
        .arg(trace)
        .env("TZ", "UTC")
        .env("XDG_CONFIG_HOME", trace)
        .stdin(Stdio::null())
        .output()
        .expect("kymo runs");
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    (
        output.status.code().expect("not killed"),
        text(&output.stdout),
        text(&output.stderr),
    )
}

fn json(args: &[&str], trace: &Path) -> Value {
    let (code, out, err) = run(args, trace);
    assert_eq!((code, err.as_str()), (0, ""), "{args:?}");
    serde_json::from_str(&out).expect("JSON")
}

fn text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_string)
}

/// The groups of a report by some of the values they have in common.
fn groups(report: &Value, by: &[&str]) -> BTreeMap<Vec<String>, Sum> {
    let mut sums: BTreeMap<Vec<String>, Sum> = BTreeMap::new();
    for group in report["groups"].as_array().expect("groups") {
        let number = |key: &str| group[key].as_u64().expect("a number");
        let key = by.iter().map(|by| text(&group["by"][by])).collect();
        let sums = sums.entry(key).or_default();
        sums.count += number("count");
        sums.total += number("total");
        sums.max = sums.max.max(number("max"));
    }
    sums
}

fn expected<'k>(
    truth: impl IntoIterator<Item = (&'k String, &'k Sum)>,
) -> BTreeMap<Vec<String>, Sum> {
    let one = |(key, sum): (&String, &Sum)| (vec![key.clone()], *sum);
    truth.into_iter().map(one).collect()
}

fn pairs(truth: &BTreeMap<(String, String), Sum>) -> BTreeMap<Vec<String>, Sum> {
    let all = truth.iter();
    all.map(|((a, b), sum)| (vec![a.clone(), b.clone()], *sum))
        .collect()
}

fn check(seed: u64) {
    let directory = tempfile::tempdir().expect("a directory");
    let trace = directory.path().join("kernel");
    let truth: Truth = kernel::trace(&trace, seed, 6000);
    let groups_of = |args: &[&str], by: &[&str]| {
        let args = [args, &["--json"]].concat();
        groups(&json(&args, &trace), by)
    };
    assert_eq!(
        groups_of(&["latency", "syscalls"], &["name"]),
        expected(&truth.calls),
        "seed {seed}"
    );
    assert_eq!(
        groups_of(&["latency", "sched"], &["tid"]),
        expected(&truth.wakeups),
        "seed {seed}"
    );
    assert_eq!(
        groups_of(&["latency", "irqs"], &["irq"]),
        expected(&truth.irqs),
        "seed {seed}"
    );
    assert_eq!(
        groups_of(&["latency", "disk"], &["dev"]),
        expected(&truth.disk),
        "seed {seed}"
    );
    let io = truth
        .calls
        .iter()
        .filter(|(name, _)| ["read", "write", "openat"].contains(&name.as_str()));
    assert_eq!(
        groups_of(&["latency", "io"], &["name"]),
        expected(io),
        "seed {seed}"
    );
    let futexes: Vec<Sum> = groups_of(&["latency", "futex"], &["uaddr"])
        .into_values()
        .collect();
    assert_eq!(futexes, [truth.calls["futex"]], "seed {seed}");
    let states = groups_of(&["states", "threads"], &["prev_tid", "state"]);
    assert_eq!(states, pairs(&truth.states), "seed {seed}");
    let cpus = groups_of(&["states", "cpus"], &["cpu_id", "next_tid"]);
    assert_eq!(cpus, pairs(&truth.cpus), "seed {seed}");

    // The critical path has no gaps, and each of its pieces is what its thread did then.
    let first = FIRST_TID.to_string();
    let args = ["states", "threads", "--critical-path", &first, "--json"];
    let report = json(&args, &trace);
    let pieces = report["path"].as_array().expect("a path");
    let own = &truth.timeline[&FIRST_TID];
    let mut at = own[0].0;
    let mut others = 0;
    for piece in pieces {
        let number = |key: &str| piece[key].as_u64().expect("a time");
        let (begin, end) = (number("begin"), number("end"));
        assert_eq!(begin, at, "seed {seed}: the path goes on where it was");
        let thread = piece["by"]["prev_tid"].as_u64().expect("a thread");
        let state = text(&piece["by"]["state"]);
        let did = truth.timeline[&thread].iter();
        let is_so = did
            .clone()
            .any(|interval| interval.0 <= begin && end <= interval.1 && interval.2 == state);
        assert!(is_so, "seed {seed}: {piece}");
        others += u32::from(thread != FIRST_TID);
        at = end;
    }
    assert_eq!(at, own[own.len() - 1].1);
    assert!(others > 0, "it waited for others");
}

/// `KYMO_UPDATE=1` makes the recording of docs/guides/kernel-trace.md.
#[test]
fn the_example_is_the_kernel_of_seed_1() {
    let example = Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../examples/kernel-small"
    ));
    let directory = tempfile::tempdir().expect("a directory");
    let made = directory.path().join("kernel");
    kernel::trace(&made, 1, 1500);
    let files = ["metadata", "channel0_0", "channel0_1"];
    for file in files {
        let bytes = std::fs::read(made.join(file)).expect("it was made");
        if std::env::var_os("KYMO_UPDATE").is_some() {
            std::fs::create_dir_all(example).expect("made");
            std::fs::write(example.join(file), &bytes).expect("written");
        }
        let kept = std::fs::read(example.join(file)).expect("examples/kernel-small");
        assert!(kept == bytes, "{file}: KYMO_UPDATE=1 makes it again");
    }
}

#[test]
fn views_report_what_the_kernel_did() {
    (1..=4).for_each(check);
}

#[test]
fn views_report_what_devices_and_mutexes_did() {
    for seed in 1..=4 {
        let directory = tempfile::tempdir().expect("a directory");
        let trace = directory.path().join("devices");
        let truth = devices::trace(&trace, seed, 4000);
        let views = [
            ("softirqs-raised", "vec", &truth.raised),
            ("softirqs", "vec", &truth.softirqs),
            ("net", "payload.name", &truth.net),
            ("timers", "function", &truth.timers),
            ("mutex", "mutex", &truth.mutexes),
        ];
        for (view, by, truth) in views {
            let report = json(&["latency", view, "--json"], &trace);
            assert_eq!(
                groups(&report, &[by]),
                expected(truth),
                "{view} of seed {seed}"
            );
        }
    }
}

#[test]
fn a_file_adds_views_and_options_replace_those_of_a_view() {
    let directory = tempfile::tempdir().expect("a directory");
    let trace = directory.path().join("kernel");
    let truth = kernel::trace(&trace, 9, 2000);
    let file = directory.path().join("mine.toml");
    std::fs::write(
        &file,
        "[latency.reads]\nstart = \"syscall_entry_read\"\nend = \"syscall_exit_read\"\n\
         switch = \"sched_switch:cpu_id:next_tid\"\nby = \"fd\"\n",
    )
    .expect("written");
    let views = file.to_str().expect("UTF-8");
    let mine = json(&["latency", "reads", "--views", views, "--json"], &trace);
    let reads = truth.calls["read"];
    assert_eq!(
        groups(&mine, &["fd"]),
        BTreeMap::from([(vec!["3".to_string()], reads)])
    );
    let by_track = json(
        &["latency", "syscalls", "--by", "track,name", "--json"],
        &trace,
    );
    let sums = groups(&by_track, &["name"]);
    assert_eq!(sums[&vec!["read".to_string()]], reads);
    assert!(by_track["groups"].as_array().expect("groups").len() > sums.len());
    // The file of the user's configuration; the trace's directory stands for it here.
    std::fs::create_dir(trace.join("kymo")).expect("made");
    std::fs::copy(&file, trace.join("kymo/views.toml")).expect("copied");
    assert_eq!(json(&["latency", "reads", "--json"], &trace), mine);
    std::fs::write(trace.join("kymo/views.toml"), "[x").expect("written");
    let (code, _, err) = run(&["latency", "reads"], &trace);
    assert_eq!(code, 2);
    assert!(err.contains("views.toml"), "{err}");
}

#[test]
fn single_durations_and_series_add_up() {
    let directory = tempfile::tempdir().expect("a directory");
    let trace = directory.path().join("kernel");
    let truth = kernel::trace(&trace, 5, 4000);
    let good = |args: &[&str]| {
        let (code, out, err) = run(args, &trace);
        assert_eq!((code, err.as_str()), (0, ""), "{args:?}");
        out
    };
    let total: u64 = truth.calls.values().map(|call| call.total).sum();
    let count: u64 = truth.calls.values().map(|call| call.count).sum();
    let column = |text: &str, name: &str| -> Vec<u64> {
        let mut lines = text.lines();
        let header: Vec<&str> = lines.next().expect("a header").split(',').collect();
        let at = header
            .iter()
            .position(|title| *title == name)
            .expect("a column");
        let cell = |line: &str| {
            line.split(',')
                .nth(at)
                .expect("a cell")
                .parse()
                .expect("a number")
        };
        lines.map(cell).collect()
    };
    let all = good(&["latency", "syscalls", "--all"]);
    let durations = column(&all, "duration");
    assert_eq!(
        (durations.len() as u64, durations.iter().sum::<u64>()),
        (count, total)
    );
    let lines = good(&["latency", "syscalls", "--all", "--json"]);
    assert_eq!(lines.lines().count() as u64, count);
    let first: Value = serde_json::from_str(lines.lines().next().expect("a line")).expect("JSON");
    assert_eq!(
        first["end"].as_u64().unwrap() - first["begin"].as_u64().unwrap(),
        first["duration"].as_u64().unwrap()
    );

    let series = good(&["latency", "syscalls", "--every", "1ms"]);
    assert_eq!(column(&series, "total").iter().sum::<u64>(), total);
    assert!(column(&series, "begin").is_sorted());
    assert!(
        column(&series, "begin")
            .iter()
            .all(|begin| begin % 1_000_000 == 0)
    );
    let counts = good(&["stats", "--by", "name", "--every", "1ms"]);
    let events: Value =
        serde_json::from_str(&good(&["stats", "--by", "cpu_id", "--json"])).expect("JSON");
    assert_eq!(
        column(&counts, "count").iter().sum::<u64>(),
        events["events"].as_u64().unwrap()
    );

    let at = |name: &str| directory.path().join(name);
    for name in ["s.rrd", "s.pftrace", "s.jsonl", "s.csv"] {
        let path = at(name);
        let path = path.to_str().expect("UTF-8");
        let step = if name == "s.rrd" { "1s" } else { "1ms" };
        assert_eq!(
            good(&["latency", "syscalls", "--every", step, "-o", path]),
            ""
        );
    }
    assert_eq!(std::fs::read_to_string(at("s.csv")).expect("there"), series);
    let (code, info, err) = run(&["info"], &at("s.rrd"));
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(info.contains("read_p99"), "{info}");
    // A counter event for each of six figures of each row.
    let (code, stats, err) = run(&["stats", "--json"], &at("s.pftrace"));
    assert_eq!((code, err.as_str()), (0, ""));
    let stats: Value = serde_json::from_str(&stats).expect("JSON");
    let rows = series.lines().count() as u64 - 1;
    assert_eq!(stats["events"].as_u64(), Some(6 * rows));
    let (code, _, err) = run(
        &["latency", "syscalls", "--every", "1ms", "-o", "x.rrd"],
        &trace,
    );
    assert_eq!(code, 2, "{err}");
    let csv = at("s.csv");
    let csv = csv.to_str().expect("UTF-8");
    let again = ["latency", "syscalls", "--every", "1ms", "-o", csv];
    let (code, _, err) = run(&again, &trace);
    assert!(code == 2 && err.contains("already exists"), "{err}");
    assert_eq!(good(&[&again[..], &["--force"]].concat()), "");
    let (code, _, err) = run(&["latency", "syscalls", "--all", "-o", "x.rrd"], &trace);
    assert!(code == 2 && err.contains("--all writes CSV"), "{err}");
}

#[test]
fn whole_slices_have_keys_and_what_is_not_shown_counts() {
    let slice = |at: u32| {
        let kind = at % 3;
        format!(
            r#"{{"ph":"X","name":"x","pid":1,"tid":1,"ts":{at}0,"dur":5,"args":{{"kind":"k{kind}"}}}}"#
        )
    };
    let slices: Vec<String> = (0..9).map(slice).collect();
    let directory = tempfile::tempdir().expect("tempdir");
    let path = directory.path().join("slices.json");
    std::fs::write(&path, format!("[{}]", slices.join(","))).expect("written");
    let profile = json(&["profile", "--key", "kind", "--json"], &path);
    let keys: Vec<_> = profile["keys"].as_array().expect("keys").iter().collect();
    assert_eq!(keys.len(), 3);
    assert!(
        keys.iter()
            .all(|node| node["calls"] == 3 && node["self"] == 15_000),
        "{keys:?}"
    );
    for command in [
        &["values", "--field", "duration", "--by", "kind"][..],
        &["stats", "--by", "kind"],
    ] {
        let (code, text, err) = run(&[command, &["--top", "1"]].concat(), &path);
        assert_eq!((code, err.as_str()), (0, ""));
        let figures: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert!(figures.contains(&vec!["groups", "3"]), "{text}");
        assert!(
            figures.contains(&vec!["values", "9"]) || figures.contains(&vec!["events", "9"]),
            "{text}"
        );
    }
}
