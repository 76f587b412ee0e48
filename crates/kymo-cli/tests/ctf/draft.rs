//! Traces of the draft of 2010.

use super::*;

/// Class and number of each stream.
fn stream_numbers(path: &Path) -> Vec<(u64, u64)> {
    let output = kymo(&["print", "--format", "details", text(path)]);
    let shown = String::from_utf8(output.stdout).expect("UTF-8");
    let number = |line: &str, label: &str| {
        let rest = line.split(label).nth(1).expect("a number");
        let digits = rest.split(|c: char| !c.is_ascii_digit()).next();
        digits
            .and_then(|digits| digits.parse().ok())
            .expect("a number")
    };
    let lines = shown.lines().filter(|line| line.starts_with("{Trace"));
    let found = lines.map(|line| (number(line, "Stream class ID "), number(line, "Stream ID ")));
    found
        .collect::<std::collections::BTreeSet<_>>()
        .into_iter()
        .collect()
}

#[test]
fn the_draft_of_2010_becomes_a_trace_of_today_and_back() {
    let home = home();
    let trace = example("rfc-small");
    let expected = events(&trace, &[]);
    for to in ["ctf1.8", "ctf2"] {
        let there = home.path().join(to);
        good(&["convert", text(&trace), "-o", text(&there), "--to", to]);
        assert_eq!(events(&there, &[]).len(), expected.len());
        assert_eq!(stream_numbers(&there), stream_numbers(&trace));
    }
    let back = home.path().join("back");
    good(&[
        "convert",
        text(&trace),
        "-o",
        text(&back),
        "--to",
        "ctf-rfc",
    ]);
    assert_eq!(events(&back, &[]), expected);
}

#[test]
fn several_recordings_become_one_trace_of_the_draft() {
    let home = home();
    let log = home.path().join("log.cpel");
    let small = example("lttng-small");
    good(&["convert", text(&small), "-o", text(&log), "--text"]);
    // Two traces with sections of the same names, and two whose names fit each other's files.
    let sections = [("first", "irq"), ("second", "irq"), ("third", "irq_1")];
    let [irq, again, numbered] = sections.map(|(trace, section)| {
        let trace = home.path().join(trace);
        fs::create_dir(&trace).expect("a directory");
        for file in fs::read_dir(example("rfc-small")).expect("a trace") {
            let file = file.expect("a file");
            let name = file.file_name().into_string().expect("text");
            let name = name.replace("kernel", section);
            let mut bytes = fs::read(file.path()).expect("a file");
            if name == "metadata" {
                // Packets keep their sizes.
                let metadata: String = bytes.iter().copied().map(char::from).collect();
                let metadata = metadata.replace("kernel", &format!("{section:6}"));
                bytes = metadata.chars().map(|char| char as u8).collect();
            }
            fs::write(trace.join(name), bytes).expect("a file");
        }
        trace
    });
    let rfc = example("rfc-small");
    for inputs in [
        &[&small, &example("lttng-discarded")][..],
        &[&irq, &again],
        &[&irq, &numbered],
        &[&numbered, &irq],
        &[&log, &small, &rfc],
    ] {
        let there = home.path().join("there");
        let paths: Vec<&str> = inputs.iter().map(|path| text(path)).collect();
        let to = ["-f", "--to", "ctf-rfc", "-o", text(&there)];
        good(&[&["convert"][..], &paths, &to].concat());
        let payloads = |path: &Path| {
            let events = events(path, &[]).into_iter();
            let mut shown: Vec<String> = events.map(|event| event["event"].to_string()).collect();
            shown.sort_unstable();
            shown
        };
        let mut expected: Vec<String> = inputs.iter().flat_map(|path| payloads(path)).collect();
        expected.sort_unstable();
        assert_eq!(payloads(&there), expected, "{paths:?}");
        good(&["check", text(&there)]);
    }
}

/// The numbers of the sessions that the packets of the files of a trace belong to, each once.
fn sessions(trace: &Path, is_big: bool) -> Vec<u32> {
    let mut sessions = Vec::new();
    for entry in fs::read_dir(trace).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.ends_with("metadata") {
            continue;
        }
        let bytes = fs::read(&path).expect("a stream");
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let number = |at: usize| {
                let bytes = rest[at..at + 4].try_into().expect("four bytes");
                match is_big {
                    true => u32::from_be_bytes(bytes),
                    false => u32::from_le_bytes(bytes),
                }
            };
            sessions.push(number(4));
            rest = &rest[number(12) as usize..];
        }
    }
    sessions.sort_unstable();
    sessions.dedup();
    sessions
}

#[test]
fn packets_of_the_draft_of_2010_keep_their_session() {
    let home = home();
    let small = example("rfc-small");
    assert_eq!(sessions(&small, true), [1]);
    let to = home.path().join("t");
    for options in [
        &[][..],
        &["--packet-size", "4K"],
        &["--packed"],
        &["--byte-order", "le"],
        &["--checksum", "crc32"],
    ] {
        let convert = ["convert", text(&small), "-fo", text(&to), "--to", "ctf-rfc"];
        kymo(&[&convert[..], options].concat());
        let found = sessions(&to, !options.contains(&"le"));
        assert_eq!(found, [1], "{options:?}");
    }
    // Traces of other dialects have no session; of two traces that have one, it is that of the first.
    let lttng = example("lttng-small/ust/uid/0/64-bit");
    let zero = home.path().join("zero");
    good(&[
        "convert",
        text(&lttng),
        "-o",
        text(&zero),
        "--to",
        "ctf-rfc",
    ]);
    assert_eq!(sessions(&zero, false), [0]);
    for (inputs, expected) in [([&zero, &small], 0), ([&small, &zero], 1)] {
        let [first, second] = inputs.map(|path| text(path));
        let convert = [
            "convert",
            first,
            second,
            "-fo",
            text(&to),
            "--to",
            "ctf-rfc",
        ];
        kymo(&[&convert[..], &["--byte-order", "le"]].concat());
        assert_eq!(sessions(&to, false), [expected]);
    }
}
