//! `kymo cut` of files whose events are pieces of them: what is chosen stays as it was, and the rest is gone.

mod common;

use std::fs;
use std::path::Path;

use common::{good, kymo, kymo_in, text};
use tempfile::TempDir;

/// Forms of databases whose doubles differ.
const MACHINES: [&str; 4] = ["x86_64", "armv4l", "ppc", "portable"];

fn printed(args: &[&str]) -> Vec<String> {
    let output = kymo(&[&["print", "--clock-gmt", "--no-delta"], args].concat());
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    text.lines().map(str::to_owned).collect()
}

/// What options choose of a file is what the file has that was cut out by them.
fn holds(file: &Path, part: &Path, options: &[&str]) -> Vec<String> {
    let (file, part) = (text(file), text(part));
    good(&[&["cut", file, "-o", part, "--force"], options].concat());
    let chosen = printed(&[&[file], options].concat());
    let rest = printed(&[part]);
    assert!(chosen.len() > 1, "{options:?}");
    assert_eq!(rest, chosen, "{options:?}");
    chosen
}

#[test]
fn a_database_loses_the_rows_that_are_not_chosen() {
    let home = TempDir::new().unwrap();
    for format in MACHINES {
        let file = home.path().join(format!("{format}.load.rrd"));
        let file = text(&file);
        good(&[
            "rrd",
            "create",
            file,
            "--start",
            "1700000000",
            "--step",
            "10",
            "DS:x:GAUGE:20:U:U",
            "DS:y:GAUGE:20:U:U",
            "RRA:AVERAGE:0.5:1:8",
            "RRA:MAX:0.5:2:3",
        ]);
        let updates: Vec<String> = (1..=20)
            .map(|n| format!("{}:{n}:{}", 1_700_000_000 + 10 * n, n * n))
            .collect();
        let mut update = vec!["rrd", "update", file];
        update.extend(updates.iter().map(String::as_str));
        good(&update);
        let own = home.path().join(format!("{format}.rrd"));
        good(&["rrd", "convert", file, "-o", text(&own), "--to", format]);
        let part = home.path().join("part.rrd");
        let whole = printed(&[text(&own)]);
        let range = ["--begin", "22:16:00", "--end", "22:16:25"];
        good(
            &[
                &["cut", text(&own), "-o", text(&part), "--force"][..],
                &range,
            ]
            .concat(),
        );
        let chosen = printed(&[&[text(&own)][..], &range].concat());
        let rest = printed(&[text(&part)]);
        assert_eq!(
            (rest.len(), fs::read(&own).unwrap().len()),
            (whole.len(), fs::read(&part).unwrap().len())
        );
        let is_known = |line: &&String| !line.contains("x = <none>");
        assert!(
            chosen.len() > 3 && chosen.iter().all(|line| is_known(&line)),
            "{chosen:?}"
        );
        assert_eq!(
            rest.iter().filter(is_known).cloned().collect::<Vec<_>>(),
            chosen,
            "{format}"
        );
        // Its state is as it was.
        let info = |path: &Path| {
            kymo_in(home.path(), &["rrd", "info", text(path)])
                .1
                .replace(text(path), "")
        };
        assert_eq!(info(&part), info(&own), "{format}");
    }
}

#[test]
fn several_databases_stay_apart() {
    let home = TempDir::new().unwrap();
    let part = home.path().join("part");
    let range = [
        "--begin",
        "2023-11-14 20:00:00",
        "--end",
        "2023-11-14 22:00:00",
    ];
    let files = common::example("munin");
    good(&[&["cut", text(&files), "-o", text(&part)][..], &range].concat());
    let mut seen = 0;
    for entry in fs::read_dir(&files).unwrap() {
        let path = entry.unwrap().path();
        let Some(name) = path
            .file_name()
            .filter(|name| name.to_string_lossy().ends_with(".rrd"))
        else {
            continue;
        };
        let alone = home.path().join("alone.rrd");
        good(
            &[
                &["cut", text(&path), "-o", text(&alone), "--force"][..],
                &range,
            ]
            .concat(),
        );
        assert_eq!(fs::read(part.join(name)).unwrap(), fs::read(alone).unwrap());
        seen += 1;
    }
    assert!(seen > 1);

    let (mixed, part) = (home.path().join("mixed"), home.path().join("parts"));
    fs::create_dir(&mixed).unwrap();
    let bytes = fs::read(files.join("compute.rrd")).unwrap();
    fs::write(mixed.join("both.rrd"), &bytes).unwrap();
    for name in ["both.rrd.gz", "only.rrd.gz"] {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut gzip, &bytes).unwrap();
        fs::write(mixed.join(name), gzip.finish().unwrap()).unwrap();
    }
    good(&["cut", text(&mixed), "-o", text(&part)]);
    for name in ["both.rrd", "both.rrd.gz", "only.rrd"] {
        assert_eq!(fs::read(part.join(name)).unwrap(), bytes, "{name}");
    }
}

#[test]
fn several_event_logs_stay_apart() {
    let home = TempDir::new().unwrap();
    let logs = home.path().join("logs");
    fs::create_dir_all(logs.join("below")).unwrap();
    let own = common::example("vpp-small.cpel");
    let track = ["--where", "track == 1"];
    for ending in ["cpel", "elog", "jsonl"] {
        let (one, two) = (format!("one.{ending}"), format!("below/two.{ending}"));
        for name in [&one, &two] {
            good(&["convert", text(&own), "-o", text(&logs.join(name))]);
        }
        let part = home.path().join(ending);
        let (first, second) = (logs.join(&one), logs.join(&two));
        for options in [&[][..], &track] {
            let cut = ["cut", text(&first), text(&second), "-o", text(&part)];
            let (code, _, _) = kymo_in(home.path(), &[&cut[..], options].concat());
            assert_eq!(code, if options.is_empty() { 0 } else { 2 });
            good(&[&cut[..], &["--force"], options].concat());
            for name in [&one, &two] {
                let alone = home.path().join("alone").with_extension(ending);
                let log = logs.join(name);
                let cut = ["cut", text(&log), "-o", text(&alone), "--force"];
                good(&[&cut[..], options].concat());
                let bytes = fs::read(part.join(name)).unwrap();
                assert!(bytes == fs::read(&alone).unwrap(), "{name} {options:?}");
            }
        }
        fs::write(part.join("own"), "").unwrap();
        let cut = ["cut", text(&first), text(&second), "-o", text(&part)];
        let (code, _, error) = kymo_in(home.path(), &[&cut[..], &["--force"]].concat());
        assert_eq!(code, 2);
        assert!(error.contains("own is not an event log"), "{error}");
        assert!(part.join("own").exists());
    }
    let (one, part) = (logs.join("one.cpel"), home.path().join("part"));
    let cut = ["cut", text(&one), text(&own), "-o", text(&part)];
    let (code, _, error) = kymo_in(home.path(), &[&cut[..], &["--event", "none"]].concat());
    assert_eq!(code, 0, "{error}");
    assert!(error.contains("no event is called `none`"), "{error}");
    assert!(printed(&[text(&part)]).is_empty());
    let (code, _, error) = kymo_in(home.path(), &["cut", "logs", "-o", "-"]);
    assert_eq!(code, 2, "{error}");
}

/// A datagram of values, in a packet of plain IP to a port.
fn packet(host: &str, seconds: u64, port: u16) -> Vec<u8> {
    let mut datagram = Vec::new();
    let mut part = |kind: u16, payload: &[u8]| {
        datagram.extend(kind.to_be_bytes());
        datagram.extend((payload.len() as u16 + 4).to_be_bytes());
        datagram.extend(payload);
    };
    part(0, format!("{host}\0").as_bytes());
    part(2, b"load\0");
    part(4, b"load\0");
    for time in [seconds, seconds + 1] {
        part(1, &time.to_be_bytes());
        let mut values = vec![0, 1, 1];
        values.extend(1.5f64.to_le_bytes());
        part(6, &values);
    }
    let mut packet = vec![0; 28];
    packet[0] = 0x45;
    packet[9] = 17;
    packet[22..24].copy_from_slice(&port.to_be_bytes());
    packet[24..26].copy_from_slice(&(datagram.len() as u16 + 8).to_be_bytes());
    packet.extend(datagram);
    packet
}

#[test]
fn a_capture_keeps_datagrams_that_have_something_chosen() {
    let home = TempDir::new().unwrap();
    let packets = [
        packet("a", 10, 25_826),
        packet("b", 20, 25_826),
        packet("other", 25, 53),
        packet("a", 30, 25_826),
        packet("c", 40, 25_826),
    ];
    let words =
        |words: &[u32]| -> Vec<u8> { words.iter().flat_map(|word| word.to_be_bytes()).collect() };
    let mut classic = words(&[0xa1b2_c3d4, 0x0002_0004, 0, 0, 65_535, 101]);
    let mut blocks = words(&[
        0x0a0d_0d0a,
        28,
        0x1a2b_3c4d,
        0x0001_0000,
        u32::MAX,
        u32::MAX,
        28,
    ]);
    blocks.extend(words(&[1, 20, 101 << 16, 65_535, 20]));
    for packet in &packets {
        let length = packet.len() as u32;
        classic.extend(words(&[0, 0, length, length]));
        classic.extend(packet);
        let padded = length.next_multiple_of(4);
        blocks.extend(words(&[6, 32 + padded, 0, 0, 0, length, length]));
        blocks.extend(packet);
        blocks.resize(blocks.len() + (padded - length) as usize, 0);
        blocks.extend(words(&[32 + padded]));
    }
    for (name, bytes) in [("net.pcap", classic), ("net.pcapng", blocks)] {
        let (file, part) = (home.path().join(name), home.path().join("part"));
        fs::write(&file, bytes).unwrap();
        let part = part.with_extension(file.extension().unwrap());
        holds(&file, &part, &["--where", "id ~ \"a/*\""]);
        // Of each datagram both lists.
        let (file, part) = (text(&file), text(&part));
        good(&[
            "cut", file, "-o", part, "--force", "--begin", "00:00:21", "--end", "00:00:30",
        ]);
        assert_eq!(
            printed(&[part]),
            printed(&[file, "--begin", "00:00:20", "--end", "00:00:31"])
        );
        // All of it, but what is none of collectd's.
        good(&["cut", file, "-o", part, "--force"]);
        assert_eq!(printed(&[part]), printed(&[file]));
    }
}

#[test]
fn an_export_of_maps_loses_rows() {
    let home = TempDir::new().unwrap();
    let (file, part) = (home.path().join("maps.sql"), home.path().join("part.sql"));
    let export = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../fuzz/corpus/maps/export.sql"
    );
    fs::copy(export, &file).unwrap();
    let whole = printed(&[text(&file)]);
    let cut = |options: &[&str]| {
        let args = ["cut", text(&file), "-o", text(&part), "--force"];
        // One of its rows is of a key that it does not have.
        assert_eq!(kymo(&[&args, options].concat()).status.code(), Some(1));
    };
    cut(&["--where", "value > 1"]);
    let chosen = printed(&[text(&file), "--where", "value > 1"]);
    assert!(!chosen.is_empty() && chosen.len() < whole.len());
    assert_eq!(printed(&[text(&part)]), chosen);
    // Whoever chooses all gets the file as it is.
    cut(&[]);
    assert_eq!(fs::read(&part).unwrap(), fs::read(&file).unwrap());
}

/// Lines without the numbers of tracks, which count those that a file has.
fn without_tracks(lines: Vec<String>) -> Vec<String> {
    let line = |line: String| match line.split_once("track = ") {
        Some((before, rest)) => {
            let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
            format!("{before}{rest}")
        }
        None => line,
    };
    lines.into_iter().map(line).collect()
}

#[test]
fn traces_keep_packets_and_events() {
    let home = TempDir::new().unwrap();
    let path = |name: &str| home.path().join(name);
    let chrome = path("trace.json");
    let event = |time: u64, thread: u64| {
        format!(r#" {{"ph":"X","name":"\u0061","ts":{time},"dur":1.50,"pid":1,"tid":{thread}}}"#)
    };
    let events: Vec<_> = (0..9).map(|number| event(number, number % 3)).collect();
    let text_of = |events: &[String]| {
        format!(
            "{{\"traceEvents\": [\n{},\n{}\n], \"more\": 1}}\n",
            r#"{"ph":"M","name":"thread_name","pid":1,"tid":2,"args":{"name":"two"}}"#,
            events.join(",\n")
        )
    };
    fs::write(&chrome, text_of(&events)).unwrap();
    let part = path("part.json");
    holds_but_tracks(&chrome, &part, &["--where", "track_name == 'two'"]);
    let of_two = [&events[2], &events[5], &events[8]].map(Clone::clone);
    assert_eq!(fs::read_to_string(&part).unwrap(), text_of(&of_two));
    holds_but_tracks(
        &chrome,
        &part,
        &["--begin", "0.000003", "--end", "0.000006"],
    );
    // What is compressed is written as it is inside.
    let packed = path("packed.json.gz");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, text_of(&events).as_bytes()).unwrap();
    fs::write(&packed, gzip.finish().unwrap()).unwrap();
    good(&["cut", text(&packed), "-o", text(&part), "--force"]);
    assert_eq!(fs::read_to_string(&part).unwrap(), text_of(&events));

    let perfetto = path("trace.pftrace");
    good(&["convert", text(&chrome), "-o", text(&perfetto)]);
    let part = path("part.pftrace");
    holds_but_tracks(
        &perfetto,
        &part,
        &["--begin", "0.000003", "--end", "0.000006"],
    );
    holds_but_tracks(&perfetto, &part, &["--where", "track_name == 'two'"]);

    let (rfc, part) = (common::example("rfc-small"), path("part"));
    holds(&rfc, &part, &["--event", "receive"]);
    holds(&rfc, &part, &["--end", "02:16:25.0000015"]);
    good(&["cut", text(&rfc), "-o", text(&part), "--force"]);
    for name in ["kernel_0", "kernel_1", "network_0"] {
        assert_eq!(
            fs::read(part.join(name)).unwrap(),
            fs::read(rfc.join(name)).unwrap()
        );
    }
}

/// As [`holds`], for files of which parts number tracks anew.
fn holds_but_tracks(file: &Path, part: &Path, options: &[&str]) {
    let (file, part) = (text(file), text(part));
    good(&[&["cut", file, "-o", part, "--force"], options].concat());
    let chosen = without_tracks(printed(&[&[file], options].concat()));
    assert!(chosen.len() > 1, "{options:?}");
    assert_eq!(without_tracks(printed(&[part])), chosen, "{options:?}");
}

#[test]
fn logs_keep_their_form() {
    let home = TempDir::new().unwrap();
    let path = |name: &str| home.path().join(name);
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kymo-cpel/tests/data");
    let (gist, part) = (data.join("gist_200.gist"), path("part.gist"));
    holds(&gist, &part, &["--end", "00:00:01.001"]);
    let (whole, part) = (fs::read(&gist).unwrap(), fs::read(&part).unwrap());
    let count = (part.len() - 4) / 20;
    assert_eq!(part[..4], (count as u32).to_be_bytes());
    assert_eq!(part[4..], whole[4..part.len()]);

    let (lines, part) = (path("log.jsonl"), path("part.jsonl"));
    let log = common::example("vpp-small.cpel");
    good(&["convert", text(&log), "-o", text(&lines)]);
    holds(&lines, &part, &["--where", "track == 1"]);
    assert!(
        fs::read_to_string(&part)
            .unwrap()
            .starts_with("{\"timestamp\":")
    );
}

#[test]
fn formats_are_not_mixed() {
    let home = TempDir::new().unwrap();
    let part = home.path().join("part");
    for other in ["lttng-small", "vpp-small.cpel"] {
        let (databases, other) = (common::example("munin"), common::example(other));
        let args = ["cut", text(&databases), text(&other), "-o", text(&part)];
        let output = kymo(&args);
        let reported = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{reported}");
        assert!(reported.contains("have different formats"), "{reported}");
        assert!(!part.exists());
    }
}
