//! The traces of random classes: every value is listed, independently of any CTF reader.

use kymo_model::Scope;
use serde_json::Value as Json;

use super::contents::{Contents, Decoded, decode};
use super::tree::Value;
use super::{Setting, Verdict};
use crate::Outcome;

/// Runs the cases `own/rand-*`.
pub(super) fn run(setting: &Setting) -> Outcome<Vec<Verdict>> {
    let cases = super::cases(&setting.traces, "own", ".values.json")?;
    cases
        .into_iter()
        .map(|case| {
            let expected = std::fs::read(setting.traces.join(format!("{case}.values.json")))?;
            let expected: Vec<Json> = serde_json::from_slice(&expected)?;
            let result = decode(&setting.traces.join(&case))
                .and_then(|contents| compare(&expected, &contents));
            Ok(Verdict::new(case, result))
        })
        .collect()
}

fn compare(expected: &[Json], contents: &Contents) -> Result<(), String> {
    if let Some(report) = contents.faults.first() {
        return Err(report.to_string());
    }
    if expected.len() != contents.events.len() {
        return Err(format!(
            "{} events instead of {}",
            contents.events.len(),
            expected.len()
        ));
    }
    for (number, (expected, event)) in expected.iter().zip(&contents.events).enumerate() {
        if !same_event(expected, event) {
            return Err(format!(
                "event {number} differs\nexpected: {expected}\nfound:    class {}, ticks {:?}, {:?}",
                event.class, event.ticks, event.scopes
            ));
        }
    }
    Ok(())
}

fn same_event(expected: &Json, event: &Decoded) -> bool {
    let context = event
        .scope(Scope::CommonContext)
        .and_then(|context| context.member("k"));
    let payload = event.scope(Scope::Payload);
    expected["c"].as_u64() == Some(event.class)
        && expected["t"].as_u64() == event.ticks
        && context.is_some_and(|context| same(&expected["k"], context))
        && payload.is_some_and(|payload| same(&expected["f"], payload))
}

fn same(expected: &Json, found: &Value) -> bool {
    match found {
        Value::Uint(value, _) => expected.as_u64() == Some(*value),
        Value::Sint(value, ..) => expected.as_i64() == Some(*value),
        Value::Float(value) => expected.as_f64() == Some(*value),
        Value::Text(text) => expected.as_str().map(str::as_bytes) == Some(text),
        Value::Struct(members) => expected.as_object().is_some_and(|object| {
            object.len() == members.len()
                && members
                    .iter()
                    .all(|(name, value)| object.get(name).is_some_and(|json| same(json, value)))
        }),
        Value::Array(elements) => expected.as_array().is_some_and(|array| {
            array.len() == elements.len()
                && array
                    .iter()
                    .zip(elements)
                    .all(|(json, value)| same(json, value))
        }),
        _ => false,
    }
}
