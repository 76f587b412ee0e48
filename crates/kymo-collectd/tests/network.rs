//! Datagrams sent by collectd, and invalid ones.

use std::path::{Path, PathBuf};

use kymo_collectd::network::{Decoder, Item, Keys, Security};
use kymo_collectd::{Identifier, TypesDb, Value};
use serde_json::{Value as Json, json};

fn data(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(path)
}

fn keys() -> Option<Keys> {
    Some(Keys::parse(b"alice: s3cret pass\nbob: hunter2\n").unwrap())
}

/// As the tables of expected values write it.
fn as_json(value: Value) -> Json {
    match value {
        Value::Gauge(number) => json!(["GAUGE", format!("{number:?}")]),
        Value::Derive(number) => json!(["DERIVE", number]),
        Value::Counter(number) => json!(["COUNTER", number]),
        Value::Absolute(number) => json!(["ABSOLUTE", number]),
    }
}

/// Every value of every datagram; `level` is what the decoder demands.
fn check_packets(name: &str, level: Security, protection: Security) {
    let table = std::fs::read_to_string(data(&format!("packets/{name}.expected.jsonl"))).unwrap();
    let decoder = Decoder {
        level,
        keys: keys(),
    };
    let mut lists = 0;
    for line in table.lines() {
        let line: Json = serde_json::from_str(line).unwrap();
        let file = line["file"].as_str().unwrap();
        let datagram = std::fs::read(data("packets").join(file)).unwrap();
        let mut found = Vec::new();
        decoder.decode(&datagram, &mut (), &mut |item| match item {
            Item::Values(list) => {
                assert_eq!(list.security, protection);
                lists += 1;
                found.push(json!({
                    "vl": list.id.to_string(),
                    "time": list.time.ticks(),
                    "interval": list.interval.ticks(),
                    "values": list.values.iter().map(as_json).collect::<Vec<_>>(),
                }));
            }
            Item::Notification(received) => {
                assert_eq!(received.security, protection);
                let notification = received.notification;
                let id = notification.id;
                found.push(json!({"notification": {
                    "severity": notification.severity.code(),
                    "time": notification.time.ticks(),
                    "host": id.host,
                    "plugin": id.plugin,
                    "plugin_instance": id.plugin_instance,
                    "type": id.type_name,
                    "type_instance": id.type_instance,
                    "message": notification.message,
                }}));
            }
            Item::Fault(fault) => panic!("{file}: {fault}"),
        });
        // Beside the values, the tables say who has signed.
        let expected = line["decoded"].as_array().unwrap().iter();
        let expected: Vec<_> = expected
            .filter(|item| item["sign"].is_null() && item["encr"].is_null())
            .collect();
        assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{file}");
    }
    assert_eq!((table.lines().count(), lists), (20, 428));
}

#[test]
fn plain_datagrams() {
    check_packets("plain", Security::None, Security::None);
}

#[test]
fn signed_datagrams() {
    for level in [Security::None, Security::Sign] {
        check_packets("signed", level, Security::Sign);
    }
}

#[test]
fn encrypted_datagrams() {
    for level in [Security::None, Security::Sign, Security::Encrypt] {
        check_packets("encrypted", level, Security::Encrypt);
    }
}

/// How many lists of values and messages were taken, and what was reported.
fn verdict(datagram: &[u8], decoder: &Decoder, types: &TypesDb) -> String {
    let (mut lists, mut messages, mut faults) = (0, 0, Vec::new());
    decoder.decode(datagram, &mut (), &mut |item| match item {
        Item::Values(list) => match types.check(list.id.type_name, list.values.kinds()) {
            Ok(()) => {
                assert_eq!(list.id.check(), Ok(()));
                let path = list.id.path().unwrap();
                assert!(Identifier::parse(&path).is_ok());
                lists += 1;
            }
            Err(_) => faults.push("types-db"),
        },
        Item::Notification(_) => messages += 1,
        Item::Fault(fault) => {
            assert!(fault.offset <= datagram.len());
            faults.push(fault.problem.as_str());
        }
    });
    let counts = match messages {
        0 => lists.to_string(),
        messages => format!("{lists}+{messages}"),
    };
    faults.insert(0, &counts);
    faults.dedup();
    faults.join(" ")
}

/// The table of the documentation: name, verdict at each setting, reason.
fn table() -> Vec<Vec<String>> {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/formats/collectd-datagrams.md");
    let text = std::fs::read_to_string(path).unwrap();
    let rows = text.lines().filter(|line| line.starts_with("| `"));
    let cells = |row: &str| -> Vec<String> {
        let cells = row.trim_matches('|').split('|');
        cells
            .map(|cell| cell.trim().trim_matches('`').to_string())
            .collect()
    };
    rows.map(cells).collect()
}

#[test]
fn malformed_datagrams_get_the_verdict_of_the_documentation() {
    let types = TypesDb::parse("gauge value:GAUGE:U:U").unwrap();
    let setting = |level, keys| Decoder { level, keys };
    let settings = [
        setting(Security::None, None),
        setting(Security::None, keys()),
        setting(Security::Sign, keys()),
        setting(Security::Encrypt, keys()),
    ];
    let mut names: Vec<_> = std::fs::read_dir(data("malformed"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let table = table();
    let mut wrong = String::new();
    for name in &names {
        let datagram = std::fs::read(data("malformed").join(name)).unwrap();
        let name = name.trim_end_matches(".bin");
        let found: Vec<_> = settings
            .iter()
            .map(|decoder| verdict(&datagram, decoder, &types))
            .collect();
        let row = table.iter().find(|row| row[0] == name);
        if row.is_none_or(|row| row[1..5] != found || row[5].is_empty()) {
            wrong += &format!("| `{name}` | {} |\n", found.join(" | "));
        }
    }
    assert!(wrong.is_empty(), "other verdicts:\n{wrong}");
    assert_eq!((names.len(), table.len()), (74, 74));
}
