//! Babeltrace's field traces: one event each, whose payload `root` is listed value by value.

use kymo_model::{Base, FaultCode, Scope};

use super::contents::decode;
use super::tree::Value;
use super::{Setting, Verdict, cases, difference};
use crate::Outcome;

/// Runs the cases whose paths begin with `prefix`; `pass-` or `fail-` follows it.
pub(super) fn run(setting: &Setting, prefix: &str) -> Outcome<Vec<Verdict>> {
    let mut verdicts = Vec::new();
    for case in cases(&setting.traces, prefix, ".expect")? {
        let name = case.trim_start_matches(prefix);
        let expected = std::fs::read_to_string(setting.traces.join(format!("{case}.expect")))?;
        let result = if name.starts_with("fail-") {
            fails(setting, &case, expected.trim())
        } else {
            passes(setting, &case, expected.trim())
        };
        verdicts.push(Verdict::new(case, result));
    }
    Ok(verdicts)
}

fn passes(setting: &Setting, case: &str, expected: &str) -> Result<(), String> {
    let decoded = decode(&setting.traces.join(case))?;
    if let Some(report) = decoded.faults.first() {
        return Err(report.to_string());
    }
    let [event] = decoded.events.as_slice() else {
        return Err(format!("{} events instead of one", decoded.events.len()));
    };
    let root = event
        .scope(Scope::Payload)
        .and_then(|payload| payload.member("root"))
        .ok_or("no payload field `root`")?;
    let mut found = String::new();
    show(root, 0, &mut found);
    difference(expected, found.trim())
}

/// The trace must fail with the fault that the expected message names.
fn fails(setting: &Setting, case: &str, expected: &str) -> Result<(), String> {
    let decoded = decode(&setting.traces.join(case))?;
    let Some(report) = decoded.faults.first() else {
        return Err(format!("no fault instead of `{expected}`"));
    };
    let right = if expected.starts_with("Insufficient data") {
        matches!(
            report.code,
            FaultCode::BeyondContent | FaultCode::Truncated | FaultCode::PacketSize
        )
    } else if let Some(selector) =
        expected.strip_prefix("no variant field option selected by the selector value ")
    {
        report.code == FaultCode::NoVariantOption && report.message.contains(selector)
    } else if expected.contains("two different byte orders")
        || expected.contains("don't share the same byte order")
    {
        report.code == FaultCode::ByteOrderChange
    } else if expected.contains("oversized") {
        report.code == FaultCode::IntegerTooLong
    } else {
        return Err(format!("unknown expected failure `{expected}`"));
    };
    if right {
        Ok(())
    } else {
        Err(format!("`{report}` instead of `{expected}`"))
    }
}

/// Shows a value in the form of the `.expect` files, each line with its line feed.
fn show(value: &Value, level: usize, out: &mut String) {
    match value {
        Value::Struct(members) if !members.is_empty() => {
            for (name, value) in members {
                *out += &"  ".repeat(level);
                show_member(name, value, level, out);
            }
        }
        Value::Array(elements) if !elements.is_empty() => {
            for element in elements {
                *out += &"  ".repeat(level);
                *out += "-";
                match element {
                    // A structure begins on the line of the dash, and what its first
                    // member holds is indented from there.
                    Value::Struct(members) if !members.is_empty() => {
                        for (place, (name, value)) in members.iter().enumerate() {
                            if place == 0 {
                                *out += " ";
                                show_member(name, value, level, out);
                            } else {
                                *out += &"  ".repeat(level + 1);
                                show_member(name, value, level + 1, out);
                            }
                        }
                    }
                    Value::Array(elements) if !elements.is_empty() => {
                        *out += "\n";
                        show(element, level + 1, out);
                    }
                    element => {
                        *out += " ";
                        show(element, level, out);
                    }
                }
            }
        }
        scalar => {
            *out += &scalar_text(scalar);
            *out += "\n";
        }
    }
}

fn show_member(name: &str, value: &Value, level: usize, out: &mut String) {
    *out += name;
    *out += ":";
    match value {
        Value::Struct(parts) if !parts.is_empty() => {
            *out += "\n";
            show(value, level + 1, out);
        }
        Value::Array(parts) if !parts.is_empty() => {
            *out += "\n";
            show(value, level + 1, out);
        }
        value => {
            *out += " ";
            show(value, level, out);
        }
    }
}

fn scalar_text(value: &Value) -> String {
    match value {
        Value::Uint(value, Base::Decimal) => value.to_string(),
        Value::Uint(value, Base::Hexadecimal) => format!("{value:#x}"),
        Value::Uint(value, Base::Octal) => format!("{value:#o}"),
        Value::Uint(value, Base::Binary) => format!("{value:#b}"),
        Value::Sint(value, Base::Decimal, _) => value.to_string(),
        Value::Sint(value, base, bits) => {
            let mask = u64::MAX >> (64 - (*bits).clamp(1, 64));
            scalar_text(&Value::Uint(*value as u64 & mask, *base))
        }
        Value::Float(value) => format!("{value:.6}"),
        Value::Bool(value) => if *value { "yes" } else { "no" }.to_string(),
        Value::Bits(value, bits) => {
            let bits: Vec<String> = (0..*bits)
                .rev()
                .map(|bit| (value >> bit & 1).to_string())
                .collect();
            format!("[{}]", bits.join(", "))
        }
        Value::Text(text) => format!("\"{}\"", String::from_utf8_lossy(text)),
        Value::Blob(bytes) if !bytes.is_empty() => bytes
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<Vec<_>>()
            .join(" "),
        Value::Nothing => "~".to_string(),
        Value::Blob(_) | Value::Struct(_) | Value::Array(_) => "∅".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(value: u64) -> Value {
        Value::Uint(value, Base::Decimal)
    }

    #[test]
    fn nested_values_are_indented_as_in_the_expected_files() {
        let inner = Value::Array(vec![number(1), number(2)]);
        let element = Value::Struct(vec![
            ("x".to_string(), inner.clone()),
            ("y".to_string(), inner.clone()),
            ("z".to_string(), Value::Struct(vec![])),
        ]);
        let mut text = String::new();
        show(&Value::Array(vec![element, inner]), 0, &mut text);
        assert_eq!(
            text,
            "- x:\n  - 1\n  - 2\n  y:\n    - 1\n    - 2\n  z: ∅\n-\n  - 1\n  - 2\n"
        );
    }
}
