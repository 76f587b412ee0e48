//! The text protocol: what collectd was sent and answered, and what is written is read.

use std::path::Path;

use kymo_collectd::plain::{
    Command, Context, PutList, PutNotification, Reply, parse, put_notification, put_values,
};
use kymo_collectd::{Identifier, Kind, Notification, Severity, TypesDb, Value};
use kymo_time::CdTime;
use proptest::prelude::*;
use serde_json::Value as Json;

/// The types that the recorded commands use.
const TYPES: &str = "gauge value:GAUGE:U:U\nderive value:DERIVE:U:U\ncounter value:COUNTER:U:U\n\
    absolute value:ABSOLUTE:U:U\nif_octets rx:DERIVE:U:U, tx:DERIVE:U:U\n\
    load shortterm:GAUGE:0:5000, midterm:GAUGE:0:5000, longterm:GAUGE:0:5000\n\
    memory value:GAUGE:0:U\ncpu value:DERIVE:0:U\n";

/// What a server says that knows the names of the recorded session, but not its values: the
/// recorded lines themselves where a command was understood that asks for them.
fn answer(command: &str, recorded: &str, types: &TypesDb) -> String {
    let reply = match parse(command, &Context { types }) {
        Err(reply) => reply,
        Ok(Command::PutValues(put)) => Reply::dispatched(put.lists.len()),
        Ok(Command::PutNotification(_)) => Reply::success("Success"),
        Ok(Command::Flush(flush)) => Reply::flushed(flush.plugins.len().max(1), 0),
        Ok(Command::ListValues) => {
            let lines = recorded.lines().skip(1);
            let name = |line: &'_ str| -> (CdTime, String) {
                let (time, name) = line.split_once(' ').unwrap();
                (CdTime::from_decimal(time).unwrap(), name.to_string())
            };
            let names: Vec<_> = lines.map(name).collect();
            Reply::names(names.iter().map(|(time, name)| (*time, name.as_str())))
        }
        Ok(Command::GetValue { .. } | Command::GetThreshold { .. })
            if recorded.starts_with("-1 No ") =>
        {
            return recorded.to_string();
        }
        Ok(Command::GetValue { .. }) => {
            let lines = recorded.lines().skip(1);
            Reply::values(lines.map(|line| {
                let (name, value) = line.split_once('=').unwrap();
                (name, value.trim().parse().unwrap())
            }))
        }
        Ok(Command::GetThreshold { .. }) => return recorded.to_string(),
    };
    reply.to_string()
}

/// The commands that collectd answers otherwise, from the table of the documentation.
fn differing() -> Vec<(String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/formats/collectd-plain.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (_, table) = text.split_once("## Where kymo").unwrap();
    let rows = table
        .lines()
        .filter(|line| line.starts_with("| `") || line.starts_with("| ("));
    rows.map(|row| {
        let mut cells = row.trim_matches('|').split('|').map(str::trim);
        let mut cell = || cells.next().unwrap().trim_matches('`').trim().to_string();
        (cell(), cell())
    })
    .collect()
}

#[test]
fn replies_are_collectds_but_where_the_documentation_says_why_not() {
    let types = TypesDb::parse(TYPES).unwrap();
    let differing = differing();
    let mut used = vec![false; differing.len()];
    let mut wrong = String::new();
    let table = include_str!("data/unixsock_exact_C.jsonl");
    let lines = table
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    let lines: Vec<Json> = lines.filter(|line: &Json| !line["cmd"].is_null()).collect();
    assert_eq!(lines.len(), 115);
    for line in &lines {
        let (command, recorded) = (
            line["cmd"].as_str().unwrap(),
            line["reply"].as_str().unwrap(),
        );
        let found = answer(command, recorded, &types);
        if found == recorded {
            continue;
        }
        let is_it = |row: &(String, String)| match (row.0.as_str(), row.0.split_once("...")) {
            ("(nothing)", _) => command.is_empty(),
            ("(blanks)", _) => !command.is_empty() && command.trim().is_empty(),
            // The table shortens what is long.
            (_, Some((begin, end))) => command.starts_with(begin) && command.ends_with(end),
            (row, None) => command == row,
        };
        match differing.iter().position(is_it) {
            Some(row) if differing[row].1 == found.trim_end() => used[row] = true,
            _ => wrong += &format!("| `{command}` | `{}` | {recorded:?}\n", found.trim_end()),
        }
    }
    assert!(wrong.is_empty(), "other replies:\n{wrong}");
    assert_eq!(used, vec![true; used.len()], "what the table says is so");
}

fn put(line: &str) -> Result<Vec<PutList>, Reply> {
    let types = TypesDb::parse(TYPES).unwrap();
    match parse(line, &Context { types: &types })? {
        Command::PutValues(put) => Ok(put.lists),
        command => panic!("{command:?}"),
    }
}

#[test]
fn lists_have_the_interval_reported_before_them() {
    let seconds = |count| CdTime::from_seconds(count).ok();
    let lists = put("putval h/p/gauge 1:1 INTERVAL=2 N:U interval=3 0x10:inf").unwrap();
    let found: Vec<_> = lists
        .iter()
        .map(|list| (list.time, list.interval))
        .collect();
    assert_eq!(
        found,
        [
            (seconds(1), None),
            (None, seconds(2)),
            (seconds(16), seconds(3))
        ]
    );
    let values = put("PUTVAL h/p/if_octets-eth0 N:-1:0x10").unwrap()[0]
        .values
        .clone();
    assert_eq!(values, [Value::Derive(-1), Value::Derive(16)]);
}

#[test]
fn a_message_has_all_its_parts() {
    let types = TypesDb::default();
    let line = r#"PUTNOTIF Severity=OKAY time=1.5 message="a \"b\"" host=h plugin=p
        plugin_instance=pi type=t type_instance=ti s:who=me"#;
    let Ok(Command::PutNotification(found)) = parse(line, &Context { types: &types }) else {
        panic!("a message");
    };
    let expected = PutNotification {
        severity: Severity::Okay,
        time: CdTime::from_millis(1500).unwrap(),
        message: r#"a "b""#.to_string(),
        names: ["h", "p", "pi", "t", "ti"].map(String::from),
        meta: vec![("who".to_string(), "me".to_string())],
    };
    assert_eq!(found, expected);
}

#[test]
fn replies_are_read() {
    let reply = Reply::parse("2 Values found\n").unwrap();
    assert_eq!(
        (reply.status(), reply.text(), reply.missing_lines()),
        (2, "Values found", 2)
    );
    let reply = reply.with_line("a=1").with_line("b=2");
    assert_eq!(reply.missing_lines(), 0);
    assert_eq!(reply.to_string(), "2 Values found\na=1\nb=2\n");
    let reply = Reply::parse("-1 No such value.").unwrap();
    assert_eq!((reply.status(), reply.missing_lines()), (-1, 0));
    assert_eq!(Reply::parse("hello"), None);
}

proptest! {
    #[test]
    fn values_come_back(
        names in ("[!-~é]{1,9}", "[a-z \"\\\\]{1,9}", "[ -~]{0,9}", "[ -~]{0,9}"),
        time in 1..u64::MAX, interval: u64,
        bytes: [[u8; 8]; 2],
    ) {
        let (host, plugin, plugin_instance, type_instance) = &names;
        let id = Identifier { host, plugin, plugin_instance, type_name: "if_octets", type_instance };
        // A name that cannot be distinguished from its separators does not come back, and need not.
        prop_assume!(id.check().is_ok() && Identifier::parse(&id.to_string()) == Ok(id));
        let (time, interval) = (CdTime::from_ticks(time), CdTime::from_ticks(interval));
        let values = bytes.map(|bytes| Value::from_wire(Kind::Derive, bytes));
        let line = put_values(&id, time, interval, &values);
        let types = TypesDb::parse(TYPES).unwrap();
        // A double on the way loses some, and makes 2^34 seconds of the last half unit of a double.
        prop_assume!(time.to_f64() < 2f64.powi(34) && interval.to_f64() < 2f64.powi(34));
        match parse(line.trim_end_matches('\n'), &Context { types: &types }) {
            Ok(Command::PutValues(put)) => {
                prop_assert_eq!(put.id, id.to_string());
                prop_assert_eq!(&put.lists[0].values, &values);
                let found = put.lists[0].time.unwrap();
                prop_assert!(found.ticks_since(time).unsigned_abs() <= 1024);
            }
            found => prop_assert!(false, "{line}: {found:?}"),
        }
    }

    #[test]
    fn messages_come_back(message in "[ -~é]{1,40}", host in "[ -~]{0,20}") {
        let id = Identifier { host: &host, ..Identifier::default() };
        let time = CdTime::from_seconds(1_700_000_000).unwrap();
        let severity = Severity::Failure;
        let notification = Notification { severity, time, id, message: &message };
        let types = TypesDb::default();
        let line = put_notification(&notification);
        let Ok(Command::PutNotification(found)) = parse(&line, &Context { types: &types }) else {
            panic!("{line}");
        };
        prop_assert_eq!((found.severity, found.time), (severity, time));
        prop_assert_eq!((&found.message, &found.names[0]), (&message, &host));
    }

    #[test]
    fn any_line_has_one_reply(line in "(PUTVAL|PUTNOTIF|FLUSH|GETVAL|LISTVAL)?[ -~\\t]{0,60}") {
        let types = TypesDb::parse(TYPES).unwrap();
        if let Err(reply) = parse(&line, &Context { types: &types }) {
            prop_assert_eq!(reply.to_string().matches('\n').count(), 1);
            prop_assert!(reply.status() < 0);
        }
    }
}
