//! collectd: what its own code computed, sent, received, answered and read.

use std::path::{Path, PathBuf};

use kymo_collectd::config;
use kymo_collectd::network::{Decoder, Item, Keys, Security};
use kymo_collectd::plain::{self, Command, Context, Reply};
use kymo_collectd::{TypesDb, Value};
use kymo_time::CdTime;
use serde_json::Value as Json;

use super::{Setting, Verdict, cases, difference};
use crate::Outcome;
use crate::daemons::users;

impl Setting {
    fn collectd(&self) -> PathBuf {
        self.traces.with_file_name("collectd")
    }
}

/// The passwords of the recorded datagrams.
fn keys() -> Outcome<Option<Keys>> {
    let keys = Keys::parse(users().as_bytes());
    Ok(Some(keys.map_err(|error| error.to_string())?))
}

fn types(setting: &Setting) -> Outcome<TypesDb> {
    let text = std::fs::read_to_string(setting.collectd().join("types.db"))?;
    Ok(TypesDb::parse(&text).map_err(|error| error.to_string())?)
}

/// The lines of a table of JSON.
fn table(path: &Path) -> Outcome<Vec<Json>> {
    let text = std::fs::read_to_string(path)?;
    let lines = text.lines().map(serde_json::from_str);
    Ok(lines.collect::<Result<_, _>>()?)
}

/// Datagrams of collectd: each value, at each level that takes it.
pub(super) fn packets(setting: &Setting) -> Outcome<Vec<Verdict>> {
    let folder = setting.collectd().join("packets");
    let mut verdicts = Vec::new();
    let types = types(setting)?;
    for (name, levels) in [
        ("plain", &[Security::None][..]),
        ("signed", &[Security::None, Security::Sign]),
        (
            "encrypted",
            &[Security::None, Security::Sign, Security::Encrypt],
        ),
    ] {
        for line in table(&folder.join(format!("{name}.expected.jsonl")))? {
            let file = line["file"].as_str().ok_or("no file")?;
            let datagram = std::fs::read(folder.join(file))?;
            for level in levels {
                let decoder = Decoder {
                    level: *level,
                    keys: keys()?,
                };
                let result = same_items(&decoder, &datagram, &line["decoded"], &types);
                let case = format!("collectd/packets/{file} {}", level.as_str());
                verdicts.push(Verdict::new(case, result));
            }
        }
    }
    Ok(verdicts)
}

fn same_items(
    decoder: &Decoder,
    datagram: &[u8],
    expected: &Json,
    types: &TypesDb,
) -> Result<(), String> {
    let mut found = String::new();
    decoder.decode(datagram, &mut (), &mut |item| {
        found += &match item {
            Item::Values(list) => {
                let values: Vec<_> = list.values.iter().map(value_text).collect();
                let check = types.check(list.id.type_name, list.values.kinds());
                let (time, interval) = (list.time.ticks(), list.interval.ticks());
                format!(
                    "{} {time} {interval} {} {check:?}\n",
                    list.id,
                    values.join(" ")
                )
            }
            Item::Notification(received) => {
                let notification = received.notification;
                let (time, severity) = (notification.time.ticks(), notification.severity.code());
                format!(
                    "{} {time} {severity} {}\n",
                    notification.id, notification.message
                )
            }
            Item::Fault(fault) => format!("{fault}\n"),
        };
    });
    let mut wanted = String::new();
    for item in expected.as_array().ok_or("no items")? {
        let text = |value: &Json| value.as_str().map_or(value.to_string(), str::to_string);
        if !item["vl"].is_null() {
            let values = item["values"].as_array().ok_or("no values")?.iter();
            let values: Vec<_> = values
                .map(|value| format!("{}:{}", text(&value[0]), text(&value[1])))
                .collect();
            let (id, time, interval) = (text(&item["vl"]), &item["time"], &item["interval"]);
            wanted += &format!("{id} {time} {interval} {} Ok(())\n", values.join(" "));
        } else if !item["notification"].is_null() {
            let part = |name: &str| text(&item["notification"][name]);
            let id = format!("{}/{}/", part("host"), part("plugin"));
            let rest = [part("time"), part("severity"), part("message")].join(" ");
            wanted += &format!("{id} {rest}\n");
        }
    }
    difference(&wanted, &found)
}

fn value_text(value: Value) -> String {
    match value {
        Value::Gauge(number) => format!("GAUGE:{number:?}"),
        value => format!("{}:{value}", value.kind_name()),
    }
}

/// Malformed datagrams: the lists that collectd took, at each of its settings.
pub(super) fn malformed(setting: &Setting) -> Outcome<Vec<Verdict>> {
    let folder = setting.collectd().join("malformed");
    let types = types(setting)?;
    let mut verdicts = Vec::new();
    for (name, level, keys) in [
        ("none_nouserdb", Security::None, None),
        ("none", Security::None, keys()?),
        ("sign", Security::Sign, keys()?),
        ("encrypt", Security::Encrypt, keys()?),
    ] {
        let decoder = Decoder { level, keys };
        let text = std::fs::read(folder.join(format!("observed_collectd5.12_{name}.json")))?;
        let observed: Vec<Json> = serde_json::from_slice(&text)?;
        for case in &observed {
            let file = case["name"].as_str().ok_or("no name")?;
            let datagram = std::fs::read(folder.join(format!("{file}.bin")))?;
            let accepted = case["accepted"].as_array().ok_or("no lists")?.iter();
            let accepted: Vec<&str> = accepted.filter_map(Json::as_str).collect();
            let found = taken(&decoder, &datagram, &types);
            verdicts.push(Verdict::new(
                format!("collectd/malformed/{file} {name}"),
                difference(&accepted.join("\n"), &found.join("\n")),
            ));
        }
    }
    Ok(verdicts)
}

/// The lists of a datagram as the table of what collectd took has them: it was recorded by a plugin
/// that knows times to three decimals, and one hour if there is no interval.
fn taken(decoder: &Decoder, datagram: &[u8], types: &TypesDb) -> Vec<String> {
    let mut lists = Vec::new();
    decoder.decode(datagram, &mut (), &mut |item| {
        let Item::Values(list) = item else {
            return;
        };
        if types.check(list.id.type_name, list.values.kinds()).is_err() {
            return;
        }
        let values: Vec<String> = list.values.iter().map(value_in_json).collect();
        let interval = match list.interval {
            CdTime::ZERO => "3600.000".to_string(),
            interval => interval.to_string(),
        };
        let (id, time) = (list.id.canonical(), list.time);
        lists.push(format!(
            "{id} t={time} i={interval} [{}]",
            values.join(", ")
        ));
    });
    lists
}

/// Of six digits, as the table has been written.
fn value_in_json(value: Value) -> String {
    match value {
        Value::Gauge(number) if !number.is_finite() => "None".to_string(),
        Value::Gauge(number) => {
            let mut line = kymo_text::Line::new();
            line.general(number);
            String::from_utf8_lossy(line.as_bytes()).into_owned()
        }
        value => value.to_string(),
    }
}

/// Commands of the text protocol: the replies that collectd gave, values of its own left out.
pub(super) fn commands(setting: &Setting) -> Outcome<Vec<Verdict>> {
    let types = types(setting)?;
    let lines = table(&setting.collectd().join("unixsock_exact_C.jsonl"))?;
    let commands = lines.iter().filter(|line| !line["cmd"].is_null());
    let mut verdicts = Vec::new();
    for (number, line) in commands.enumerate() {
        let (command, recorded) = match (line["cmd"].as_str(), line["reply"].as_str()) {
            (Some(command), Some(recorded)) => (command, recorded),
            _ => return Err("a line without command and reply".into()),
        };
        let reply = match plain::parse(command, &Context { types: &types }) {
            Err(reply) => reply.to_string(),
            Ok(Command::PutValues(put)) => Reply::dispatched(put.lists.len()).to_string(),
            Ok(Command::PutNotification(_)) => Reply::success("Success").to_string(),
            Ok(Command::Flush(flush)) => Reply::flushed(flush.plugins.len().max(1), 0).to_string(),
            // What only a server knows.
            Ok(_) => match recorded.starts_with("-1 No ") || !recorded.starts_with('-') {
                true => recorded.to_string(),
                false => "the command was understood\n".to_string(),
            },
        };
        let begin: String = command.chars().take(60).collect();
        let case = format!("collectd/unixsock/{number:03} {begin}");
        verdicts.push(Verdict::new(case.trim_end(), difference(recorded, &reply)));
    }
    Ok(verdicts)
}

/// A text in which backslashes and line ends were written as escapes.
fn without_escapes(text: &str) -> String {
    let mut chars = text.chars();
    let mut written = String::new();
    while let Some(char) = chars.next() {
        written.push(match char {
            '\\' => match chars.next() {
                Some('n') => '\n',
                Some(char) => char,
                None => '\\',
            },
            char => char,
        });
    }
    written
}

/// Configurations and lines of them: those that collectd reads are read, those that it refuses are refused.
pub(super) fn configurations(setting: &Setting) -> Outcome<Vec<Verdict>> {
    let folder = setting.collectd();
    let mut verdicts = Vec::new();
    for name in cases(&folder, "", ".conf")? {
        let text = std::fs::read_to_string(folder.join(format!("{name}.conf")))?;
        let result = config::parse(&text).and_then(|items| config::interval(&items));
        let result = result.map(|_| ()).map_err(|error| error.message);
        verdicts.push(Verdict::new(format!("collectd/{name}.conf"), result));
    }
    for table in ["config_syntax_observed", "config_interval_observed"] {
        let text = std::fs::read_to_string(folder.join(format!("{table}.txt")))?;
        for line in text.lines() {
            let (config, observed) = line.split_once(" => rc ").ok_or("no result")?;
            let written = without_escapes(config);
            let found = config::parse(&format!("{written}\n"));
            let result = match (found, observed.starts_with('0')) {
                (Ok(_), true) | (Err(_), false) => Ok(()),
                (Ok(_), false) => Err("collectd refuses it".to_string()),
                (Err(error), true) => Err(error.message),
            };
            verdicts.push(Verdict::new(format!("collectd/{table}/{config}"), result));
        }
    }
    Ok(verdicts)
}
