//! `collectd.conf`: what collectd reads is read, and what it silently ignores is reported.

use kymo_collectd::config::{Argument, Item, interval, parse, refuse_unknown};
use kymo_time::CdTime;
use proptest::prelude::*;

const EXAMPLES: [&str; 3] = [
    include_str!("data/a.conf"),
    include_str!("data/b.conf"),
    include_str!("data/c.conf"),
];

/// The items as text: a line each, blocks indented.
fn outline(items: &[Item]) -> String {
    fn write(items: &[Item], depth: usize, out: &mut String) {
        for item in items {
            *out += &"  ".repeat(depth);
            *out += &item.key;
            for placed in &item.arguments {
                *out += &match &placed.argument {
                    Argument::Text(text) => format!(" {text:?}"),
                    Argument::Number(number) => format!(" {number}"),
                    Argument::Boolean(value) => format!(" {value}"),
                };
            }
            *out += if item.items.is_some() { " {\n" } else { "\n" };
            write(item.children(), depth + 1, out);
        }
    }
    let mut out = String::new();
    write(items, 0, &mut out);
    out
}

fn message(text: &str) -> String {
    let error = parse(text).unwrap_err();
    for span in &error.spans {
        assert!(text.get(span.range.clone()).is_some(), "{text:?}: {span:?}");
    }
    error.message
}

#[test]
fn files_that_collectd_runs_with() {
    let items: Vec<_> = EXAMPLES.iter().map(|text| parse(text).unwrap()).collect();
    let network = items[0].iter().find(|item| {
        item.is("plugin") && item.arguments[0].argument == Argument::Text("network".into())
    });
    assert_eq!(
        outline(network.unwrap().children()),
        "Server \"127.0.0.1\" \"25826\"\n\
         Server \"127.0.0.1\" \"25827\" {\n  SecurityLevel \"Sign\"\n  Username \"alice\"\n  \
         Password \"s3cret pass\"\n\
         Server \"127.0.0.1\" \"25828\" {\n  SecurityLevel \"Encrypt\"\n  Username \"bob\"\n  \
         Password \"hunter2\"\n\
         ReportStats true\n"
    );
    let intervals: Vec<_> = items.iter().map(|items| interval(items).unwrap()).collect();
    let tenth = Some(CdTime::from_ticks(107_374_182));
    assert_eq!(intervals, [tenth, tenth, CdTime::from_seconds(1).ok()]);
}

#[test]
fn lines_that_collectd_reads() {
    for (text, expected) in [
        ("Hostname \"a b\"\n", "Hostname \"a b\"\n"),
        ("Hostname a # comment\n", "Hostname \"a\"\n"),
        ("Hostname \"x\"#c\n", "Hostname \"x\"\n"),
        ("Hostname \"a\\\"b\\\\c\"\n", "Hostname \"a\\\"b\\\\c\"\n"),
        ("Hostname \"long\\\n   cont\"\n", "Hostname \"longcont\"\n"),
        (
            "Hostname \"long\\\r\n   cont\"\r\n",
            "Hostname \"longcont\"\n",
        ),
        ("a 1 \\\n 2\n", "a 1 2\n"),
        ("<Plugin foo>\n</Plugin>\n", "Plugin \"foo\" {\n"),
        (
            "<a>\n\n<b 1>\nc 2\n</b>\n</a>\nd 3\n",
            "a {\n  b 1 {\n    c 2\nd 3\n",
        ),
        ("", ""),
        // collectd wants an end of the last line.
        ("a 1", "a 1\n"),
        ("<a>\n</a>", "a {\n"),
    ] {
        assert_eq!(outline(&parse(text).unwrap()), expected, "{text:?}");
    }
}

#[test]
fn lines_that_are_wrong() {
    for (text, expected) in [
        ("Hostname my-host\n", "`my-host` needs quotation marks"),
        ("Interval 1.0e2\n", "`1.0e2` needs quotation marks"),
        ("Interval 1.\n", "`1.` needs quotation marks"),
        ("a 1\nStoreRates\n", "`StoreRates` has no argument"),
        ("<a>\nb 1\n</A>\n", "expected `</a>`, found `</A>`"),
        ("<a>\nb 1\n", "the block `a` is not closed"),
        ("</a>\n", "no block `a` is open"),
        (
            "<a> b 1\n</a>\n",
            "expected the end of the line, found a word",
        ),
        (
            "<a\n>\n</a>\n",
            "expected an argument or `>`, found the end of the line",
        ),
        ("<>\n", "expected the name of a block, found `>`"),
        ("</a", "expected `>`, found the end of the file"),
        (
            "a <\n",
            "expected an argument or the end of the line, found `<`",
        ),
        ("a \"b\n\"\n", "a text without its closing quotation mark"),
        ("a \"b\\", "a text without its closing quotation mark"),
        ("1 2\n", "a number or a truth value is not a key"),
        ("> 2\n", "expected a key, found `>`"),
    ] {
        assert_eq!(message(text), expected, "{text:?}");
    }
    let deep = "<a>\n".repeat(65) + &"</a>\n".repeat(65);
    assert_eq!(message(&deep), "blocks in each other, too deep");
    assert!(parse(&("<a>\n".repeat(64) + &"</a>\n".repeat(64))).is_ok());
}

/// Each line that was tried with collectd: what it read is read, where it took ten seconds
/// without a word there is an error.
#[test]
fn intervals() {
    let table = include_str!("data/config_interval_observed.txt");
    for line in table.lines() {
        let (config, observed) = line.split_once(" => ").unwrap();
        let found = parse(&format!("{config}\n")).and_then(|items| interval(&items));
        let (_, observed) = observed.split_once("interval=").unwrap();
        let (observed, _) = observed.split_once(' ').unwrap();
        match config {
            "Interval 1." => assert!(found.is_err(), "collectd prints the point it does not read"),
            "Interval -1" | "Interval 0" | "Interval true" => {
                assert_eq!(observed, "10.000");
                assert!(found.is_err(), "{config}");
            }
            // collectd loses what is behind six decimals, and then takes ten seconds.
            "Interval 0.0000001" => {
                assert_eq!(found, Ok(Some(CdTime::from_ticks(107))));
            }
            _ => assert_eq!(found.unwrap().unwrap().to_string(), observed, "{config}"),
        }
    }
    assert_eq!(table.lines().count(), 19);
}

#[test]
fn what_collectd_passes_over() {
    let items = parse("LoadPlugin csv\nInterval 1\n").unwrap();
    let error = interval(&items).unwrap_err();
    assert_eq!(error.message, "`Interval` stands behind a `LoadPlugin`");
    let items = parse("Bogus 1\n").unwrap();
    let error = refuse_unknown(&items, &["Interval", "Hostname"]).unwrap_err();
    assert_eq!(error.message, "`Bogus` is not known here");
    assert_eq!(error.help.unwrap(), "known are: Interval, Hostname");
    assert_eq!(refuse_unknown(&items, &["BOGUS"]), Ok(()));
}

#[test]
fn arguments_are_what_they_should_be() {
    let item = |text: &str| parse(text).unwrap().remove(0);
    assert_eq!(item("a \"b\"").text(), Ok("b"));
    assert_eq!(item("a 5").number(), Ok(5.0));
    assert_eq!(item("a True").boolean(), Ok(true));
    assert_eq!(item("a off").boolean(), Ok(false));
    assert_eq!(item("a 0").time(), Ok(CdTime::ZERO));
    assert_eq!(item("a .5").interval(), Ok(CdTime::from_ticks(1 << 29)));
    for text in ["a 1", "a \"b\" \"c\"", "a true"] {
        assert!(item(text).text().is_err(), "{text}");
    }
    for text in ["a -1", "a \"5\"", "a 17179869184", "a 1 2"] {
        assert!(item(text).time().is_err(), "{text}");
    }
    for text in ["a 0", "a 0.0000000001", "a \"x\"", "a yes"] {
        assert!(item(text).interval().is_err(), "{text}");
    }
    assert!(item("a 1").boolean().is_err());
    assert!(item("a maybe").boolean().is_err());
    assert!(item("a b").number().is_err());
}

proptest! {
    #[test]
    fn any_text_is_withstood(text in "[<>/\\\\\"a# 1.é\n]{0,40}") {
        if let Err(error) = parse(&text) {
            for span in error.spans {
                prop_assert!(text.get(span.range).is_some());
            }
        }
    }

    #[test]
    fn texts_come_back(text in "\\PC{0,20}") {
        let quoted = text.replace('\\', "\\\\").replace('"', "\\\"");
        let items = parse(&format!("key \"{quoted}\"\n")).unwrap();
        prop_assert_eq!(items[0].text(), Ok(text.as_str()));
    }
}
