//! `kymo graph`: pictures of recordings.

mod common;

use common::{example, kymo, kymo_in};

fn picture(words: &[&str], format: &str) -> (Option<i32>, Vec<u8>, String) {
    let mut all = vec!["graph", "--format", format, "--clock-gmt", "-o", "-"];
    all.extend(words);
    let output = kymo(&all);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), output.stdout, errors)
}

#[test]
fn every_format_is_what_its_name_says() {
    let trace = example("lttng-small");
    let trace = trace.to_str().unwrap();
    for (format, begin, end) in [
        ("png", &b"\x89PNG\r\n"[..], &b"IEND\xaeB`\x82"[..]),
        ("svg", b"<?xml", b"</svg>\n"),
        ("pdf", b"%PDF-", b"%%EOF"),
        ("eps", b"%!PS-Adobe-", b"%%EOF\n"),
        ("html", b"<!DOCTYPE html>", b"</html>\n"),
    ] {
        let (code, found, errors) = picture(&[trace], format);
        assert_eq!((code, &*errors), (Some(0), ""), "{format}");
        assert!(found.starts_with(begin), "{format}: {:?}", &found[..20]);
        assert!(
            found.ends_with(end),
            "{format}: {:?}",
            String::from_utf8_lossy(&found[found.len() - 20..])
        );
        // The same command gives the same bytes.
        assert!(picture(&[trace], format).1 == found, "{format}");
    }
}

#[test]
fn losses_are_reported_and_are_no_damage() {
    let trace = example("lttng-discarded");
    let (code, _, errors) = picture(&[trace.to_str().unwrap()], "svg");
    assert_eq!(code, Some(0));
    assert!(errors.contains("that the recorder discarded"), "{errors}");
}

#[test]
fn damage_is_listed() {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir(place.path().join("cut")).unwrap();
    let from = example("rfc-small");
    let mut largest = (0, String::new());
    for file in std::fs::read_dir(&from).unwrap().map(Result::unwrap) {
        let name = file.file_name().into_string().unwrap();
        let to = place.path().join("cut").join(&name);
        if file.file_type().unwrap().is_file() {
            let size = std::fs::copy(file.path(), to).unwrap();
            if !name.starts_with("metadata") {
                largest = largest.max((size, name));
            }
        }
    }
    let cut = place.path().join("cut").join(&largest.1);
    let bytes = std::fs::read(&cut).unwrap();
    std::fs::write(&cut, &bytes[..bytes.len() * 2 / 3]).unwrap();
    let (code, _, errors) = kymo_in(place.path(), &["graph", "cut", "-o", "a.svg"]);
    assert_eq!(code, 1, "{errors}");
    assert!(errors.contains(&largest.1), "{errors}");
    assert!(place.path().join("a.svg").is_file());
}

#[test]
fn wrong_words_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let trace = example("lttng-small");
    let trace = trace.to_str().unwrap();
    for (words, text) in [
        (&["graph", trace, "-o", "a.gif"][..], "does not end in .png"),
        (&["graph", trace, "-o", "a.png", "--per", "nope"], "nope"),
        (&["graph", trace, "-o", "a.png", "--width", "1"], "--width"),
        (&["graph", trace], "--output"),
    ] {
        let (code, _, errors) = kymo_in(place.path(), words);
        assert_eq!(code, 2, "{words:?} {errors}");
        assert!(errors.contains(text), "{words:?} {errors}");
    }
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn nothing_to_draw_is_still_a_picture() {
    let trace = example("lttng-small");
    let words = [trace.to_str().unwrap(), "--event", "none*"];
    let (code, found, errors) = picture(&words, "svg");
    assert_eq!(code, Some(0));
    assert!(errors.contains("no event is called `none*`"), "{errors}");
    assert!(found.ends_with(b"</svg>\n"));
}

/// Slices of two threads, and switches between tasks on two processors, each millisecond.
fn scheduler(directory: &std::path::Path) -> std::path::PathBuf {
    let mut events = Vec::new();
    for at in 0..200 {
        let (cpu, task) = (at % 2, ["init", "shell", "editor"][at % 3]);
        events.push(format!(
            r#"{{"ph":"i","s":"t","name":"switch","ts":{at}000,"pid":1,"tid":{},"args":{{"cpu":{cpu},"task":"{task}","prio":{}}}}}"#,
            cpu + 1,
            at % 7
        ));
        events.push(format!(
            r#"{{"ph":"X","name":"work","ts":{at}000,"dur":{},"pid":1,"tid":9}}"#,
            1 << (at % 9)
        ));
    }
    let path = directory.join("trace.json");
    std::fs::write(&path, format!("[{}]", events.join(",\n"))).unwrap();
    path
}

#[test]
fn subjects_are_drawn_each_for_itself() {
    let place = tempfile::tempdir().unwrap();
    let trace = scheduler(place.path());
    let trace = trace.to_str().unwrap();
    // Texts of a page of pictures can be read; charts have their values beside.
    let drawn = |words: &[&str]| {
        let mut all = vec![trace];
        all.extend(words);
        let (code, page, errors) = picture(&all, "html");
        assert_eq!((code, &*errors), (Some(0), ""), "{words:?}");
        String::from_utf8(page).unwrap()
    };
    let page = drawn(&["--count", "switch", "--per", "cpu"]);
    assert!(page.contains(r#""name":"cpu=0""#), "{page}");
    assert!(page.contains("switch by cpu"));
    assert!(!page.contains("work"));
    let page = drawn(&["--value", "switch:prio", "--per", "cpu,task"]);
    assert!(page.contains("switch:prio"));
    assert!(page.contains(r#""name":"cpu, task=0, init""#), "{page}");
    let page = drawn(&["--latency"]);
    assert!(page.contains("duration of slices"));
    assert!(page.contains("pairs 200"));
    assert!(page.contains("max 256 µs"));
    let page = drawn(&["--states", "switch", "--per", "cpu", "--track", "task"]);
    assert!(page.contains("states that begin with switch"));
    assert!(page.contains("editor"));
    let page = drawn(&["--states", "switch", "--track", "task", "--filter", "e*"]);
    assert!(page.contains("editor") && !page.contains("shell"));
    let both = drawn(&["--latency", "--count", "switch", "--count", "work"]);
    assert_eq!(both.matches("<figure").count(), 2);
    assert!(both.contains("switch, work"));
}

#[test]
fn wrong_subjects_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let trace = scheduler(place.path());
    let trace = trace.to_str().unwrap();
    for (words, code, message) in [
        (&["--value", "switch"][..], 2, "expected EVENT:FIELD"),
        (&["--value", "switch:nothing"], 2, "nothing"),
        (&["--count", "swich"], 0, "did you mean `switch`?"),
        (&["--states", "swich"], 2, "swich"),
        (&["--start", "switch"], 2, "--latency"),
        (
            &["--track", "task"],
            2,
            "only for `--latency` and `--states`",
        ),
    ] {
        let mut all = vec![trace];
        all.extend(words);
        let (found, _, errors) = picture(&all, "svg");
        assert_eq!(found, Some(code), "{words:?}: {errors}");
        assert!(errors.contains(message), "{words:?}: {errors}");
    }
}

#[test]
fn files_that_are_there_are_kept() {
    let place = tempfile::tempdir().unwrap();
    let trace = example("lttng-small");
    std::fs::write(place.path().join("a.svg"), "mine").unwrap();
    let words = ["graph", trace.to_str().unwrap(), "-o", "a.svg"];
    let (code, _, errors) = kymo_in(place.path(), &words);
    assert_eq!(code, 2);
    assert!(errors.contains("already exists"), "{errors}");
    assert_eq!(std::fs::read(place.path().join("a.svg")).unwrap(), b"mine");
    let (code, _, errors) = kymo_in(place.path(), &[&words[..], &["--force"]].concat());
    assert_eq!((code, &*errors), (0, ""));
    assert!(std::fs::read(place.path().join("a.svg")).unwrap().len() > 100);
}

#[test]
fn an_index_gives_the_same_counts() {
    let place = tempfile::tempdir().unwrap();
    let trace = example("lttng-small");
    let trace = trace.to_str().unwrap();
    let cache = place.path().to_str().unwrap();
    let run = |words: &[&str]| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_kymo"))
            .args(words)
            .env("XDG_CACHE_HOME", cache)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let graph = ["graph", trace, "--clock-gmt", "--format", "html", "-o", "-"];
    let read = run(&graph);
    run(&["index", "--summary", trace]);
    let known = run(&graph);
    let total = |page: &str| {
        let rates = page.split("\"y\":[").skip(1);
        rates
            .filter(|rate| rate.starts_with(|c: char| c.is_ascii_digit()))
            .count()
    };
    assert_eq!(total(&read), total(&known));
    assert!(known.contains("events"));
}
