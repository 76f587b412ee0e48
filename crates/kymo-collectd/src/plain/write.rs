//! Values to lines.

use std::fmt::Write;

use kymo_time::CdTime;

use super::fields::quoted;
use crate::{Identifier, Notification, Value};

/// The line that hands over values, with its end.
///
/// The time has ten decimals, which distinguish every unit from its neighbours; collectd reads it by way
/// of a double and is 119 ns off at most. An interval of 0 is left to the server.
pub fn put_values(id: &Identifier<'_>, time: CdTime, interval: CdTime, values: &[Value]) -> String {
    let mut line = format!("PUTVAL {}", quoted(&one_line(&id.to_string())));
    if interval > CdTime::ZERO {
        line += &format!(" interval={}", interval.lossless());
    }
    line += &format!(" {}", time.lossless());
    for value in values {
        // Writing to a string does not fail.
        let _ = write!(line, ":{value}");
    }
    line.push('\n');
    line
}

/// The line that hands over a message, with its end.
pub fn put_notification(notification: &Notification<'_>) -> String {
    let Notification {
        severity,
        time,
        id,
        message,
    } = notification;
    let severity = severity.as_str().to_ascii_lowercase();
    let mut line = format!("PUTNOTIF severity={severity} time={}", time.lossless());
    for (name, value) in [
        ("host", id.host),
        ("plugin", id.plugin),
        ("plugin_instance", id.plugin_instance),
        ("type", id.type_name),
        ("type_instance", id.type_instance),
        ("message", message),
    ] {
        if !value.is_empty() {
            line += &format!(" {name}={}", quoted(&one_line(value)));
        }
    }
    line.push('\n');
    line
}

/// A line cannot hold the end of one.
fn one_line(text: &str) -> String {
    text.replace(['\n', '\r', '\0'], " ")
}
