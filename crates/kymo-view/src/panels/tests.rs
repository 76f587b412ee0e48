//! What the panels receive, compared with the rows and slices themselves.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::tests::{all_rows, numbers, scene};
use crate::{Api, Scene, SceneOptions};

/// Asks again until the job is done.
fn finished(mut answer: Value, again: impl Fn(&Value) -> Value) -> Value {
    for _ in 0..4000 {
        if answer["done"].as_bool() == Some(true) {
            return answer;
        }
        std::thread::sleep(Duration::from_millis(2));
        answer = again(&json!({"job": answer["job"]}));
    }
    panic!("the job does not end");
}

fn analysis(api: &Api, request: Value) -> Value {
    let answer = api.analysis(&request).unwrap();
    finished(answer, |request| api.analysis(request).unwrap())["answer"].clone()
}

fn lens(api: &Api, request: Value) -> Value {
    let job = api.lens(&request).unwrap()["job"].clone();
    let found = |request: &Value| {
        let job = request["job"].clone();
        let mut found = api
            .found(&json!({"job": job, "begin": "0", "end": "1", "width": 1}))
            .unwrap();
        found["job"] = job;
        found
    };
    finished(json!({"job": job}), found)
}

/// Frames on one thread, jobs on another one, and flows between them.
fn app() -> (Arc<Scene>, Vec<(String, i64, i64)>) {
    let mut events = Vec::new();
    let mut slices = Vec::new();
    for at in 0..40i64 {
        let (begin, wide) = (at * 100, 60 + at % 7);
        let mut slice = |name: String, tid: i64, begin: i64, wide: i64| {
            events.push(
                json!({"ph": "X", "pid": 1, "tid": tid, "ts": begin, "dur": wide, "name": name}),
            );
            slices.push((name, begin * 1000, (begin + wide) * 1000));
        };
        slice("frame".into(), 1, begin, wide);
        slice("layout".into(), 1, begin + 5, wide / 3);
        slice(format!("job {}", at % 3), 2, begin + 20, 30);
        events.push(json!({"ph": "s", "pid": 1, "tid": 1, "ts": begin + 6, "id": at, "name": "post", "cat": "f"}));
        events.push(json!({"ph": "f", "bp": "e", "pid": 1, "tid": 2, "ts": begin + 21, "id": at, "name": "post", "cat": "f"}));
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("app.json");
    std::fs::write(&path, json!({ "traceEvents": events }).to_string()).unwrap();
    let opened = kymo::open::open(&[path], &kymo::open::Options::default());
    let scene = Scene::new(opened.recordings, SceneOptions::default());
    while !scene.state().is_checked {
        std::thread::sleep(Duration::from_millis(2));
    }
    (scene, slices)
}

#[test]
fn latencies_of_an_area_are_those_of_its_slices() {
    let (scene, slices) = app();
    let api = Api::new(scene);
    for (begin, end) in [(i64::MIN, i64::MAX), (500_000, 2_345_000), (0, 0)] {
        let request = json!({"kind": "latency", "begin": begin.to_string(), "end": end.to_string(), "worst": 3});
        let answer = analysis(&api, request);
        let own = slices
            .iter()
            .filter(|slice| begin <= slice.1 && slice.1 <= end);
        let mut lengths: Vec<i64> = own.map(|slice| slice.2 - slice.1).collect();
        lengths.sort_unstable();
        assert_eq!(answer["pairs"], lengths.len(), "{begin} {end}");
        assert_eq!(answer["max"].as_i64(), lengths.last().copied());
        let counted: u64 = answer["histogram"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row[2].as_u64().unwrap())
            .sum();
        assert_eq!(counted as usize, lengths.len());
        for (worst, length) in answer["worst"]
            .as_array()
            .unwrap()
            .iter()
            .zip(lengths.iter().rev())
        {
            assert_eq!(worst["nanos"].as_i64(), Some(*length));
            assert_eq!(worst["track"]["name"], "thread 1");
        }
    }
    // Named events, and a recording that is not looked at.
    let named = json!({"kind": "latency", "begin": "0", "end": "9999999", "start": "post", "end_event": "job*"});
    assert!(analysis(&api, named)["starts"].as_u64() > Some(0));
    let none = json!({"kind": "latency", "begin": "0", "end": "9999999", "recordings": []});
    assert_eq!(analysis(&api, none)["pairs"], 0);
}

#[test]
fn states_are_measured_from_one_event_to_the_next() {
    let (scene, slices) = app();
    let api = Api::new(scene);
    let request =
        json!({"kind": "states", "begin": "0", "end": "9999999", "start": "frame", "worst": 5});
    let answer = analysis(&api, request);
    let begins = slices
        .iter()
        .filter(|slice| slice.0 == "frame")
        .map(|slice| slice.1);
    let begins: Vec<i64> = begins.collect();
    let lengths: Vec<i64> = begins.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(answer["count"], lengths.len());
    assert_eq!(answer["total"].as_i64(), Some(lengths.iter().sum()));
    let track = &answer["tracks"][0];
    assert_eq!(
        (&track["p50"], &track["track"]["name"]),
        (&json!(100_000), &json!("thread 1"))
    );
    // Of equal ones, the first.
    let worst = answer["worst"].as_array().unwrap().iter();
    let worst: Vec<_> = worst
        .map(|slice| slice["start"].as_str().unwrap().parse::<i64>().unwrap())
        .collect();
    assert_eq!(worst, begins[..5]);
    let counted = answer["histogram"].as_array().unwrap().iter();
    assert_eq!(
        counted.map(|row| row[2].as_u64().unwrap()).sum::<u64>() as usize,
        lengths.len()
    );
}

#[test]
fn a_profile_counts_what_lies_in_the_area() {
    let (scene, slices) = app();
    let api = Api::new(scene);
    for (begin, end) in [(0, 9_999_999), (512_000, 2_345_000), (10_000, 20_000)] {
        let request =
            json!({"kind": "profile", "begin": begin.to_string(), "end": end.to_string()});
        let answer = analysis(&api, request);
        for name in ["frame", "layout", "job 0", "job 1", "job 2"] {
            let inside = slices
                .iter()
                .filter(|slice| slice.0 == name && slice.2 >= begin && slice.1 <= end);
            let total: i64 = inside
                .map(|slice| slice.2.min(end) - slice.1.max(begin))
                .sum();
            let nodes = answer["nodes"].as_array().unwrap().iter();
            let found: i64 = nodes
                .filter(|node| node[2] == name)
                .map(|node| node[4].as_i64().unwrap())
                .sum();
            assert_eq!(found, total, "{name} {begin} {end}");
        }
        let nodes = answer["nodes"].as_array().unwrap();
        let callers = nodes.iter().map(|node| {
            node[0]
                .as_u64()
                .map(|caller| nodes[caller as usize][2].clone())
        });
        for (node, caller) in nodes.iter().zip(callers) {
            assert_eq!(caller.is_some(), node[2] == "layout");
            assert!(caller.is_none_or(|caller| caller == "frame"));
        }
    }
}

#[test]
fn what_an_analysis_cannot_do_is_said_in_words_of_the_page() {
    let api = Api::new(scene(Some("event.name == \"demo:sched\"")));
    let ask = |request: Value| {
        let answer = api.analysis(&request);
        answer.and_then(|answer| {
            for _ in 0..2000 {
                match api.analysis(&json!({"job": answer["job"]})) {
                    Ok(answer) if answer["done"] == false => {
                        std::thread::sleep(Duration::from_millis(2))
                    }
                    other => return other,
                }
            }
            panic!("the job does not end")
        })
    };
    for (request, part) in [
        (
            json!({"kind": "states", "begin": "0", "end": "1"}),
            "set the event",
        ),
        (
            json!({"kind": "latency", "begin": "0", "end": "1", "start": "x"}),
            "set both",
        ),
        (
            json!({"kind": "latency", "begin": "0", "end": "1", "start": "nothing_like_it", "end_event": "demo:sched"}),
            "nothing_like_it",
        ),
        (
            json!({"kind": "latency", "begin": "0", "end": "1", "key": "a,,b"}),
            "expected",
        ),
        (json!({"kind": "other", "begin": "0", "end": "1"}), "`kind`"),
        (
            json!({"kind": "profile", "begin": "1", "end": "0"}),
            "`end`",
        ),
    ] {
        let problem = ask(request.clone()).unwrap_err();
        assert!(
            problem.contains(part) && !problem.contains("--start"),
            "{request} {problem}"
        );
    }
}

#[test]
fn a_lens_shows_what_a_condition_wants_with_the_values_of_a_field() {
    let api = Api::new(scene(None));
    let count = |condition: &str| {
        lens(&api, json!({"condition": condition}))["count"]
            .as_u64()
            .unwrap()
    };
    let sched = count("event.name == \"demo:sched\"");
    assert!(sched > 0);
    assert_eq!(
        count("not event.name in [\"demo:sched\"]") + sched,
        lens(&api, json!({}))["count"].as_u64().unwrap()
    );
    let coloured = lens(
        &api,
        json!({"condition": "event.name == \"demo:sched\"", "field": "next_comm"}),
    );
    let values: Vec<&str> = coloured["values"]
        .as_array()
        .unwrap()
        .iter()
        .map(|name| name.as_str().unwrap())
        .collect();
    assert!(values.len() > 1, "{values:?}");
    let job = api.job(&coloured).unwrap();
    let mut found = job.matches.as_ref().unwrap().lock();
    let tracks: Vec<u32> = found.tracks().collect();
    let rows: Vec<u32> = tracks
        .iter()
        .flat_map(|&track| found.between(track, i64::MIN, i64::MAX).to_vec())
        .map(|row| row.class)
        .collect();
    drop(found);
    for (number, value) in values.iter().enumerate() {
        let own = rows
            .iter()
            .filter(|&&class| class as usize == number)
            .count() as u64;
        assert_eq!(
            own,
            count(&format!(
                "event.name == \"demo:sched\" and next_comm == \"{value}\""
            )),
            "{value}"
        );
    }
    assert!(
        api.lens(&json!({"condition": "no_such_field > 1"}))
            .is_err()
    );
}

#[test]
fn flows_lead_from_one_track_to_another() {
    let (scene, _) = app();
    let api = Api::new(Arc::clone(&scene));
    let track = |name: &str| {
        let all = numbers(&scene);
        all.into_iter()
            .find(|&number| {
                scene
                    .tracks
                    .get(number)
                    .is_some_and(|(_, track)| &*track.name == name)
            })
            .unwrap()
    };
    let (from, to) = (track("thread 1"), track("thread 2"));
    for at in [0, 7, 39] {
        let (begin, end) = ((at * 100 + 6) * 1000, (at * 100 + 21) * 1000);
        let expected = json!([[[from, begin.to_string()], [to, end.to_string()]]]);
        for (track, time) in [(from, begin), (to, end)] {
            let answer = api
                .flows(&json!({"track": track, "time": time.to_string()}))
                .unwrap();
            assert_eq!(answer["flows"], expected, "{at}");
            assert_eq!(answer["count"], 40);
        }
    }
    let none = api.flows(&json!({"track": from, "time": "1"})).unwrap();
    assert_eq!(none["flows"], json!([]));
}

#[test]
fn stops_around_a_time_are_the_nearest_hits() {
    let api = Api::new(scene(None));
    let job = lens(&api, json!({}))["job"].clone();
    let rows = all_rows(&api.scene);
    let mut all = Vec::new();
    for track in numbers(&api.scene) {
        all.extend(
            rows.lock()
                .between(track, i64::MIN, i64::MAX)
                .iter()
                .map(|row| (row.time, track)),
        );
    }
    all.sort_unstable();
    for time in [
        i64::MIN,
        all[0].0,
        all[all.len() / 2].0,
        all[all.len() / 2].0 + 1,
        i64::MAX,
    ] {
        let answer = api
            .around(&json!({"job": job, "time": time.to_string()}))
            .unwrap();
        let stops = answer["stops"].as_array().unwrap().iter();
        let times: Vec<i64> = stops
            .map(|stop| stop[1].as_str().unwrap().parse().unwrap())
            .collect();
        let at = all.partition_point(|row| row.0 < time);
        let near = &all[at.saturating_sub(100)..(at + 100).min(all.len())];
        assert_eq!(times, near.iter().map(|row| row.0).collect::<Vec<_>>());
        let order = api
            .order(&json!({"job": job, "time": time.to_string()}))
            .unwrap();
        let mut first: Vec<(u32, String)> = Vec::new();
        for (time, track) in &all[at..] {
            if !first.iter().any(|(known, _)| known == track) {
                first.push((*track, time.to_string()));
            }
        }
        assert_eq!(order["tracks"], json!(first));
    }
}

#[test]
fn nothing_happens_in_gaps() {
    let scene = scene(None);
    let tracks = numbers(&scene);
    let gaps = scene.gaps(&tracks, 50);
    assert!(!gaps.is_empty(), "the recordings are years apart");
    let rows = all_rows(&scene);
    for &(begin, end) in &gaps {
        assert!(begin < end);
        for &track in &tracks {
            assert!(rows.lock().between(track, begin, end).is_empty());
        }
    }
    assert!(scene.gaps(&[], 2).is_empty());
}

#[test]
fn events_are_found_in_their_files() {
    let api = Api::new(scene(None));
    let page = api
        .page(&json!({"time": i64::MIN.to_string(), "limit": 1000}))
        .unwrap();
    let (mut logs, mut traces) = (0, 0);
    for line in page["lines"].as_array().unwrap().iter().take(400) {
        let answer = api
            .describe(&json!({"time": line["time"], "skip": line["skip"]}))
            .unwrap();
        let event = &answer["event"];
        let fields = event["fields"].as_array().unwrap();
        assert!(
            fields
                .iter()
                .all(|field| !field["type"].as_str().unwrap().is_empty())
        );
        let place = &event["place"];
        let recording = &api.scene.recordings()[line["recording"].as_u64().unwrap() as usize];
        match kymo_model::Recording::format(recording).name {
            "cpel" => {
                // An event of CPEL begins with its ticks.
                let bytes = std::fs::read(place["file"].as_str().unwrap()).unwrap();
                let offset: usize = place["offset"].as_str().unwrap().parse().unwrap();
                let word = |at: usize| {
                    u64::from(u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()))
                };
                let ticks = word(offset) << 32 | word(offset + 4);
                assert_eq!(place["ticks"], ticks.to_string());
                logs += 1;
            }
            "ctf" => {
                let size = std::fs::metadata(place["file"].as_str().unwrap())
                    .unwrap()
                    .len();
                let offset: u64 = place["offset"].as_str().unwrap().parse().unwrap();
                let bytes = place["bits"].as_u64().unwrap().div_ceil(8);
                assert!(bytes > 0 && offset + bytes <= size);
                traces += 1;
            }
            _ => assert!(place.is_null(), "{place}"),
        }
    }
    assert!(logs + traces > 0, "{logs} {traces}");
    assert!(api.describe(&json!({"time": "77", "skip": 0})).unwrap()["event"].is_null());
}

#[test]
fn panels_are_answered_whatever_the_numbers() {
    let api = Api::new(scene(None));
    let job = api.lens(&json!({})).unwrap()["job"].clone();
    for time in ["-9223372036854775808", "-1", "0", "9223372036854775807"] {
        for track in [0u64, 1, u64::from(u32::MAX), u64::MAX] {
            let _ = api.flows(&json!({"track": track, "time": time}));
            let _ = api.gaps(&json!({"tracks": [track], "least": track}));
        }
        let _ = api.around(&json!({"job": job, "time": time}));
        let _ = api.order(&json!({"job": job, "time": time}));
        let _ = api.describe(&json!({"time": time, "skip": u64::MAX}));
        for kind in ["latency", "profile"] {
            let request = json!({"kind": kind, "begin": time, "end": "9223372036854775807", "recordings": [u64::MAX, "x"], "worst": u64::MAX});
            analysis(&api, request);
        }
    }
}
