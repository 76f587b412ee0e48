//! Attributes: JSON values by name space.

use serde_json::Value;

use super::text::Text;

/// Writes attributes as a block without a newline at its end. Whether there are any.
pub(super) fn write(attributes: &[(String, String)], text: &mut Text) -> bool {
    if attributes.is_empty() {
        return false;
    }
    text.margin();
    text.said("User attributes");
    text.push(":");
    let mut sorted: Vec<_> = attributes.iter().collect();
    sorted.sort();
    text.indented(|text| {
        for (namespace, json) in sorted {
            text.newline();
            text.margin();
            text.field(namespace);
            text.push(":");
            // Text that is not JSON cannot come from metadata that was read; it is shown as it is.
            let value = serde_json::from_str(json).unwrap_or_else(|_| json.as_str().into());
            write_value(&value, text);
        }
    });
    true
}

fn write_value(value: &Value, text: &mut Text) {
    match value {
        Value::Null => {
            text.push(" ");
            text.nothing("Null");
        }
        Value::Bool(value) => {
            text.push(" ");
            text.truth(*value);
        }
        Value::Number(number) => {
            text.push(" ");
            if let Some(value) = number.as_u64() {
                text.number(value);
            } else if let Some(value) = number.as_i64() {
                text.signed(value);
            } else {
                let value = number.as_f64().unwrap_or(f64::NAN);
                text.colored(text.palette().value, |text| text.line.fixed(value));
            }
        }
        Value::String(value) => {
            text.push(" ");
            text.value(value);
        }
        Value::Array(values) if values.is_empty() => {
            text.push(" ");
            text.nothing("Empty");
        }
        Value::Array(values) => {
            text.push(" Length ");
            text.number(values.len() as u64);
            text.push(":");
            text.indented(|text| {
                for (index, value) in values.iter().enumerate() {
                    text.newline();
                    text.margin();
                    text.index(index as u64);
                    text.push(":");
                    write_value(value, text);
                }
            });
        }
        Value::Object(members) if members.is_empty() => {
            text.push(" ");
            text.nothing("Empty");
        }
        Value::Object(members) => {
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_by_key(|(name, _)| *name);
            text.indented(|text| {
                for (name, value) in sorted {
                    text.newline();
                    text.margin();
                    text.field(name);
                    text.push(":");
                    write_value(value, text);
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_every_kind() {
        let json = r#"{"b":[1,-20000,[]],"a":{"y":null,"x":1.5},"c":true,"d":"s"}"#;
        let mut text = Text::default();
        assert!(write(&[("ns".into(), json.into())], &mut text));
        let expected = "User attributes:\n  ns:\n    a:\n      x: 1.500000\n      y: Null\n    \
            b: Length 3:\n      [0]: 1\n      [1]: -20,000\n      [2]: Empty\n    c: Yes\n    d: s";
        assert_eq!(String::from_utf8_lossy(text.line.as_bytes()), expected);
    }
}
