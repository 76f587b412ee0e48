//! `kymo time`.

use std::process::Command;

/// Exit code, standard output and standard error.
fn run(args: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_kymo"))
        .arg("time")
        .args(args)
        .output()
        .expect("kymo runs");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[test]
fn every_form_of_a_time() {
    let (code, out, _) = run(&["1546168526406004689", "2000-01-01T00:00:00+01:00"]);
    assert_eq!(code, Some(0));
    assert_eq!(
        out,
        "cdtime   1546168526406004689\n\
         seconds  1439981652.8018607656\n\
         ns       1439981652801860766\n\
         rfc3339  2015-08-19T10:54:12.801860766Z\n\
         \n\
         cdtime   1016491198434508800\n\
         seconds  946681200.0000000000\n\
         ns       946681200000000000\n\
         rfc3339  1999-12-31T23:00:00.000000000Z\n"
    );
}

#[test]
fn one_time_written_in_many_ways() {
    let ways = [
        "1439981652.8018607656",
        "1439981652801860766ns",
        "1439981652801.8607656ms",
        "1439981652801860.7656us",
        "1546168526406004689",
        "1546168526406004689cd",
        "2015-08-19T10:54:12.801860766Z",
        "1439981652.8018607656s",
    ];
    let (code, out, _) = run(&[&["--json"], &ways[..]].concat());
    assert_eq!(code, Some(0));
    let expected: String = ways
        .iter()
        .map(|way| {
            format!(
                "{{\"value\":\"{way}\",\"cdtime\":1546168526406004689,\
                 \"seconds\":\"1439981652.8018607656\",\"ns\":1439981652801860766,\
                 \"rfc3339\":\"2015-08-19T10:54:12.801860766Z\"}}\n"
            )
        })
        .collect();
    assert_eq!(out, expected);
    for (value, ticks) in [
        ("10", 10 << 30),
        ("0x10", 16 << 30),
        ("1e1", 10 << 30),
        ("250ms", 1 << 28),
        ("500000us", 1 << 29),
        ("7cd", 7),
        ("17179869183", 17_179_869_183 << 30),
        ("17179869184", 17_179_869_184u64),
    ] {
        let (_, out, _) = run(&["--json", value]);
        assert!(out.contains(&format!("\"cdtime\":{ticks},")), "{out}");
    }
}

#[test]
fn what_is_no_time_is_said() {
    for (value, message) in [
        ("soon", "expected a number"),
        ("1x", "expected a number"),
        ("2015-08-19T10:54", "expected a number"),
        ("1e30", "not below 2^34"),
        ("99999999999999999999", "not below 2^34"),
        ("nan", "not finite"),
        ("1969-12-31T00:00:00Z", "negative"),
    ] {
        let (code, out, err) = run(&[value]);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{value}");
        assert!(err.contains(message), "{err}");
    }
}

#[test]
fn parts_of_small_units_count() {
    let (code, out, _) = run(&["1.5ms", "0.001500s"]);
    assert_eq!(code, Some(0));
    let (first, second) = out.split_once("\n\n").expect("two times");
    assert_eq!(format!("{first}\n"), second);
    let (code, _, errors) = run(&["1.5.2ms"]);
    assert_eq!(code, Some(2));
    assert!(errors.contains("expected a number"), "{errors}");
}
