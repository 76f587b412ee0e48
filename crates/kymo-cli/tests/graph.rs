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
