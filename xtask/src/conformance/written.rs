//! Every trace written in each dialect, and read back: the lines of JSON are the same, but for what
//! the dialect shows otherwise.

use std::path::Path;

use serde_json::{Map, Value};

use super::{Setting, Verdict, cases};
use crate::Outcome;
use crate::process::{command, hear};

/// A trace of CTF 1.8.
pub(super) fn ctf18(setting: &Setting) -> Outcome<Vec<Verdict>> {
    each(setting, &["--to", "ctf1.8"])
}

/// A trace of CTF 2.
pub(super) fn ctf2(setting: &Setting) -> Outcome<Vec<Verdict>> {
    each(setting, &["--to", "ctf2"])
}

/// A trace of RFC v1.1.
pub(super) fn rfc(setting: &Setting) -> Outcome<Vec<Verdict>> {
    each(setting, &["--to", "ctf-rfc"])
}

/// Rewrites all fields: without alignment, in big-endian byte order.
pub(super) fn packed(setting: &Setting) -> Outcome<Vec<Verdict>> {
    each(setting, &["--to", "ctf2", "--packed", "--byte-order", "be"])
}

/// Rewrites all packets.
pub(super) fn packets(setting: &Setting) -> Outcome<Vec<Verdict>> {
    each(setting, &["--to", "ctf1.8", "--packet-size", "4K"])
}

/// What is said where a dialect has no equal for something.
const DOES_NOT_FIT: &str = "error: ";

fn each(setting: &Setting, to: &[&str]) -> Outcome<Vec<Verdict>> {
    let mut verdicts = Vec::new();
    for case in cases(&setting.traces, "", "/metadata")? {
        let trace = setting.traces.join(&case);
        let is_rfc = to.contains(&"ctf-rfc");
        let Ok(before) = lines(setting, &trace, is_rfc) else {
            // What cannot be read is not written either.
            continue;
        };
        let result = check(setting, &trace, to, &before);
        // Not every trace fits RFC v1.1: the recorded number states how many do.
        let fits = !is_rfc || !matches!(&result, Err(why) if why.contains(DOES_NOT_FIT));
        if fits {
            verdicts.push(Verdict::new(case, result));
        }
    }
    Ok(verdicts)
}

fn check(setting: &Setting, trace: &Path, to: &[&str], before: &[Value]) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let output = folder.path().join("trace");
    let said = hear(
        command(&setting.kymo)
            .arg("convert")
            .args(to)
            .arg("-o")
            .args([&output, trace]),
    )
    .map_err(|error| error.to_string())?;
    if !output.is_dir() {
        return Err(said.err);
    }
    let is_rfc = to.contains(&"ctf-rfc");
    let after = lines(setting, &output, is_rfc)?;
    for (number, (before, after)) in before.iter().zip(&after).enumerate() {
        if !is_same(before, after, is_rfc) {
            return Err(format!(
                "line {}\nbefore: {before}\nafter:  {after}",
                number + 1
            ));
        }
    }
    match before.len() == after.len() {
        true => Ok(()),
        false => Err(format!(
            "{} lines instead of {}\n{}",
            after.len(),
            before.len(),
            said.err
        )),
    }
}

/// The lines of JSON without what says where the trace is.
fn lines(setting: &Setting, trace: &Path, is_rfc: bool) -> Result<Vec<Value>, String> {
    let mut print = command(&setting.kymo);
    print.args(["print", "--format", "json"]).arg(trace);
    let said = hear(&mut print).map_err(|error| error.to_string())?;
    if !matches!(said.code, Some(0 | 1)) {
        return Err(said.err);
    }
    let text = String::from_utf8_lossy(&said.out);
    text.lines()
        .map(|line| {
            let mut value: Value =
                serde_json::from_str(line).map_err(|error| format!("{line}: {error}"))?;
            if let Value::Object(keys) = &mut value {
                keys.remove("recording");
                keys.remove("trace");
                // CTF 2 alone has events without names.
                if keys.get("event").is_some_and(Value::is_null) {
                    keys.insert("event".to_owned(), Value::from("<unknown>"));
                }
                if is_rfc {
                    // Its packets hold nothing of their own, its stream classes have no numbers, and
                    // its events always have a time.
                    keys.remove("packet_context");
                    keys.remove("stream_class");
                    keys.insert("timestamp".to_owned(), time_of(keys));
                    // The context of an event's class is the first member of its payload.
                    if let Some(context) = keys.remove("specific_context") {
                        let payload = keys.entry("payload").or_insert_with(|| Map::new().into());
                        if let Value::Object(payload) = payload {
                            payload.insert("specific_context".to_owned(), context);
                        }
                    }
                }
            }
            Ok(value)
        })
        .collect()
}

/// The time of an event, or 0.
fn time_of(event: &Map<String, Value>) -> Value {
    match event.get("timestamp") {
        None | Some(Value::Null) => Value::from(0),
        Some(time) => time.clone(),
    }
}

/// Whether two values are the same but for what docs/ctf-dialects.md lists: other names where
/// they have characters that a dialect cannot hold, labels more or fewer, and what a dialect shows
/// as an integer, an array of bytes or an empty structure, and RFC v1.1 as sequences of one element or none.
fn is_same(before: &Value, after: &Value, is_rfc: bool) -> bool {
    let is_same = |before: &Value, after: &Value| is_same(before, after, is_rfc);
    if is_rfc && is_chosen(before, after, &is_same) {
        return true;
    }
    match (before, after) {
        (Value::Object(a), Value::Object(b)) if a.len() == b.len() && is_number(a).is_none() => {
            a.iter().all(|(name, value)| {
                let other = b.get(name).or_else(|| b.get(&plain(name)));
                other.is_some_and(|other| is_same(value, other))
            })
        }
        (Value::Object(a), b) if is_number(a).is_some() => {
            let b = b.as_object().and_then(is_number).unwrap_or(b);
            is_number(a) == Some(b)
        }
        (a, Value::Object(b)) if is_number(b).is_some() => {
            is_number(b).is_some_and(|number| is_same(a, number))
        }
        (Value::Null, Value::Object(b)) => b.is_empty(),
        (Value::Number(a), Value::Number(b)) => {
            let bits = b.as_u64();
            // RFC v1.1 has no floating point numbers: their bits are integers.
            let is_bits = |float: f64| {
                bits == Some(float.to_bits()) || bits == Some((float as f32).to_bits().into())
            };
            a == b || a.is_f64() && !b.is_f64() && a.as_f64().is_some_and(is_bits)
        }
        (Value::String(a), Value::Number(b)) => is_odd_float(a, b.as_u64()),
        (Value::Bool(a), Value::Number(b)) => *a == (b.as_u64() != Some(0)),
        (Value::String(a), Value::Array(b)) => {
            let hex = b.iter().map(|byte| match byte.as_u64() {
                Some(byte) => format!("{byte:02x}"),
                None => "?".to_owned(),
            });
            *a == hex.collect::<String>()
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
        }
        (a, b) => a == b,
    }
}

/// Whether a value is that of an optional or variant, as RFC v1.1 has them.
fn is_chosen(before: &Value, after: &Value, is_same: &dyn Fn(&Value, &Value) -> bool) -> bool {
    let is_only = |elements: &Vec<Value>| match &elements[..] {
        [] => before.is_null(),
        [only] => is_same(before, only),
        _ => false,
    };
    match after {
        Value::Array(elements) => is_only(elements),
        Value::Object(options) => {
            let options: Option<Vec<_>> = options.values().map(Value::as_array).collect();
            let mut chosen = options
                .into_iter()
                .flatten()
                .filter(|option| !option.is_empty());
            chosen.next().is_some_and(is_only) && chosen.next().is_none()
        }
        _ => false,
    }
}

/// Whether the bits are those of a NaN or an infinity.
fn is_odd_float(name: &str, bits: Option<u64>) -> bool {
    let Some(bits) = bits else { return false };
    let float = match u32::try_from(bits) {
        Ok(bits) => f32::from_bits(bits).into(),
        Err(_) => f64::from_bits(bits),
    };
    match name {
        "NaN" => float.is_nan(),
        "Infinity" => float == f64::INFINITY,
        "-Infinity" => float == f64::NEG_INFINITY,
        _ => false,
    }
}

/// The number of an object that is a number with labels or flags.
fn is_number(object: &Map<String, Value>) -> Option<&Value> {
    let others = object.keys().filter(|key| *key != "value");
    let is_it = others
        .into_iter()
        .all(|key| key == "labels" || key == "flags");
    object.get("value").filter(|_| is_it && object.len() == 2)
}

/// A name as dialects write it that know no other characters.
fn plain(name: &str) -> String {
    let plain = |c: char| match c.is_ascii_alphanumeric() {
        true => c,
        false => '_',
    };
    name.chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::is_same;
    use serde_json::json;

    #[test]
    fn only_what_is_reported_may_differ() {
        for (before, after, same) in [
            (
                json!({"a": 1, "b": [1.5]}),
                json!({"a": 1, "b": [1.5]}),
                true,
            ),
            (json!({"a": 1}), json!({"a": 2}), false),
            (json!({"a": 1}), json!({"b": 1}), false),
            (json!({"a": 1}), json!({"a": 1, "b": 1}), false),
            (json!({"a b": 1}), json!({"a_b": 1}), true),
            (json!({"value": 1, "flags": []}), json!(1), true),
            (
                json!({"value": 1, "flags": []}),
                json!({"value": 2, "labels": []}),
                false,
            ),
            (json!(1), json!({"value": 1, "labels": ["x"]}), true),
            (json!(null), json!({}), true),
            (json!(null), json!(0), false),
            (json!(true), json!(255), true),
            (json!(true), json!(0), false),
            (json!("00ff"), json!([0, 255]), true),
            (json!("00ff"), json!([0, 254]), false),
            (json!(1.5), json!(1.5f64.to_bits()), true),
            (json!(1.5), json!(1.5f32.to_bits()), true),
            (json!(1.5), json!(1), false),
            (json!("NaN"), json!(f64::NAN.to_bits()), true),
            (json!("NaN"), json!(1), false),
        ] {
            assert_eq!(is_same(&before, &after, false), same, "{before} {after}");
        }
        for (before, after, same) in [
            (json!(null), json!([]), true),
            (json!(1), json!([1]), true),
            (json!(1), json!([]), false),
            (json!(1), json!([1, 1]), false),
            (json!([1]), json!([[1]]), true),
            (json!({"a": 1}), json!({"x": [], "y": [{"a": 1}]}), true),
            (json!({"a": 1}), json!({"x": [{"a": 1}], "y": [2]}), false),
            (json!(1), json!({"x": [], "y": []}), false),
        ] {
            assert_eq!(is_same(&before, &after, true), same, "{before} {after}");
            assert!(
                !same || !is_same(&before, &after, false),
                "{before} {after}"
            );
        }
    }
}
