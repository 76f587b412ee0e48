//! Lines to commands.

use kymo_time::CdTime;

use super::{Command, Flush, PutList, PutNotification, PutValues, Reply, fields};
use crate::{Identifier, Kind, NameError, Severity, TypesDb, Value};

/// What commands are read with.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The types that values may have.
    pub types: &'a TypesDb,
}

/// Reads a line.
///
/// # Errors
///
/// The reply that describes the error.
pub fn parse(line: &str, context: &Context<'_>) -> Result<Command, Reply> {
    let fields = fields::split(line).map_err(|_| Reply::error("Unterminated quoted string."))?;
    let Some((name, fields)) = fields.split_first() else {
        return Err(Reply::error("Missing command."));
    };
    match name.to_ascii_uppercase().as_str() {
        "GETVAL" => Ok(Command::GetValue {
            id: only_identifier(fields)?,
        }),
        "GETTHRESHOLD" => Ok(Command::GetThreshold {
            id: only_identifier(fields)?,
        }),
        "LISTVAL" => match fields.first() {
            None => Ok(Command::ListValues),
            Some(field) => Err(Reply::error(format_args!(
                "Garbage after end of command: `{field}'."
            ))),
        },
        "PUTVAL" => put_values(fields, context).map(Command::PutValues),
        "PUTNOTIF" => put_notification(fields).map(Command::PutNotification),
        "FLUSH" => flush(fields).map(Command::Flush),
        _ => Err(Reply::error(format_args!("Unknown command: {name}"))),
    }
}

fn only_identifier(fields: &[String]) -> Result<String, Reply> {
    let (id, rest) = fields
        .split_first()
        .ok_or_else(|| Reply::error("Missing identifier."))?;
    if let Some(field) = rest.first() {
        return Err(Reply::error(format_args!(
            "Garbage after identifier: `{field}'."
        )));
    }
    identifier(id)?;
    Ok(id.clone())
}

fn identifier(text: &str) -> Result<Identifier<'_>, Reply> {
    Identifier::parse(text).map_err(|error| match error {
        NameError::TooLong(_) => Reply::error("Identifier too long."),
        _ => Reply::error(format_args!("Cannot parse identifier `{text}'.")),
    })
}

fn unknown_option(name: &str) -> Reply {
    Reply::error(format_args!("Cannot parse option `{name}'."))
}

fn invalid_value(name: &str, value: &str) -> Reply {
    Reply::error(format_args!("Invalid value for option `{name}': {value}"))
}

fn put_values(fields: &[String], context: &Context<'_>) -> Result<PutValues, Reply> {
    let [text, fields @ ..] = fields else {
        return Err(Reply::error("Missing identifier and/or value-list."));
    };
    if fields.is_empty() {
        return Err(Reply::error("Missing identifier and/or value-list."));
    }
    let id = identifier(text)?;
    // An empty host is the server's own.
    let host = if id.host.is_empty() { "-" } else { id.host };
    Identifier { host, ..id }.check().map_err(|error| {
        Reply::error(format_args!("Cannot store identifier `{text}': {error}."))
    })?;
    let sources = context
        .types
        .get(id.type_name)
        .ok_or_else(|| Reply::error(format_args!("Type `{}' isn't defined.", id.type_name)))?;
    let kinds: Vec<Kind> = sources.iter().map(|source| source.kind).collect();
    let mut lists = Vec::new();
    let mut interval = None;
    for field in fields {
        let Some((name, value)) = fields::option(field) else {
            let list = list(field, interval, &kinds)
                .ok_or_else(|| Reply::error("Parsing the values string failed."))?;
            lists.push(list);
            continue;
        };
        if !name.eq_ignore_ascii_case("interval") {
            return Err(unknown_option(name));
        }
        interval = seconds(value).filter(|time| *time > CdTime::ZERO);
        if interval.is_none() {
            return Err(invalid_value("interval", value));
        }
    }
    if lists.is_empty() {
        return Err(Reply::error("Missing identifier and/or value-list."));
    }
    Ok(PutValues {
        id: text.clone(),
        lists,
    })
}

/// Seconds since 1970: with all digits if they are decimal, else by way of a double, as collectd reads them.
fn seconds(text: &str) -> Option<CdTime> {
    let exact = CdTime::from_decimal(text).ok();
    exact.or_else(|| CdTime::from_user(text).ok())
}

/// `TIME:VALUE[:VALUE]...`, with one value for each kind. A colon at the end is allowed.
fn list(field: &str, interval: Option<CdTime>, kinds: &[Kind]) -> Option<PutList> {
    let (time, values) = field.split_once(':')?;
    let time = match time {
        "N" => None,
        time => Some(seconds(time).filter(|time| *time > CdTime::ZERO)?),
    };
    let values = values.strip_suffix(':').unwrap_or(values);
    let mut texts = values.split(':');
    let values = kinds
        .iter()
        .map(|kind| Value::parse(*kind, texts.next()?).ok())
        .collect::<Option<_>>()?;
    texts.next().is_none().then_some(PutList {
        time,
        interval,
        values,
    })
}

fn put_notification(fields: &[String]) -> Result<PutNotification, Reply> {
    let (mut severity, mut time) = (None, None);
    let mut message = String::new();
    let mut names: [String; 5] = Default::default();
    let mut meta = Vec::new();
    for field in fields {
        let (name, value) = fields::option(field).ok_or_else(|| unknown_option(field))?;
        let error = || Reply::error(format_args!("Error parsing option `{name}'"));
        let lower = name.to_ascii_lowercase();
        match lower.as_str() {
            "severity" => severity = Some(Severity::from_name(value).ok_or_else(error)?),
            "time" => {
                time = Some(
                    seconds(value)
                        .filter(|time| *time > CdTime::ZERO)
                        .ok_or_else(error)?,
                );
            }
            "message" => message = value.to_string(),
            _ => {
                let known = ["host", "plugin", "plugin_instance", "type", "type_instance"];
                match known.iter().position(|known| *known == lower) {
                    Some(position) if value.len() <= crate::identifier::LONGEST_NAME => {
                        names[position] = value.to_string();
                    }
                    // Of what is not text, collectd knows no way to write it.
                    None if name.starts_with("s:") && name.len() > 2 => {
                        meta.push((name[2..].to_string(), value.to_string()));
                    }
                    _ => return Err(error()),
                }
            }
        }
    }
    let missing = |name| Reply::error(format_args!("Option `{name}' missing."));
    let severity = severity.ok_or_else(|| missing("severity"))?;
    let time = time.ok_or_else(|| missing("time"))?;
    if message.is_empty() {
        return Err(Reply::error("No message or message of length 0 given."));
    }
    Ok(PutNotification {
        severity,
        time,
        message,
        names,
        meta,
    })
}

fn flush(fields: &[String]) -> Result<Flush, Reply> {
    let mut flush = Flush::default();
    for field in fields {
        let (name, value) = fields::option(field).ok_or_else(|| unknown_option(field))?;
        match name.to_ascii_lowercase().as_str() {
            "timeout" => {
                let number = kymo_machine::Number::parse(value)
                    .map_err(|_| invalid_value(name, value))?
                    .value();
                // As in collectd, no age and any age below it are the same.
                flush.timeout = match number > 0.0 {
                    true => {
                        let time = CdTime::from_f64(number);
                        Some(time.map_err(|_| invalid_value(name, value))?)
                    }
                    false if number.is_nan() => return Err(invalid_value(name, value)),
                    false => None,
                };
            }
            "plugin" => flush.plugins.push(value.to_string()),
            "identifier" => {
                identifier(value)?;
                flush.ids.push(value.to_string());
            }
            _ => return Err(unknown_option(name)),
        }
    }
    Ok(flush)
}
