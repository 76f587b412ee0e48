//! What tracers say of an event record class in attributes: its log level, and the
//! identifier of its model element.

use std::sync::Arc;

use kymo_text::diagnostic::Diagnostic;

use super::json::{self, Kind, Value, alternatives};
use super::properties::Properties;
use super::write::Json;
use crate::class::EventRecordClass;
use crate::metadata::limits::Warnings;

/// The name spaces that have these attributes.
pub(crate) const SPACES: [&str; 2] = ["lttng.org,2009", "babeltrace.org,2020"];

pub(super) const LEVEL: &str = "log-level";
pub(super) const EMF_URI: &str = "emf-uri";

/// The names of the log levels 0 to 14.
pub(crate) const LEVELS: [&str; 15] = [
    "emergency",
    "alert",
    "critical",
    "error",
    "warning",
    "notice",
    "info",
    "debug:system",
    "debug:program",
    "debug:process",
    "debug:module",
    "debug:unit",
    "debug:function",
    "debug:line",
    "debug",
];

/// The log level, as a number of LTTng's scale; warns of one that is not known.
pub(super) fn level(event: &Properties<'_, '_>, warnings: &mut Warnings) -> Option<i64> {
    let value = event.attribute(&SPACES, LEVEL)?;
    let level = level_of(value);
    if level.is_none() {
        warnings.push(
            Diagnostic::warning("unknown log level")
                .at(value.span, "not used")
                .with_help(format!("known are {}", alternatives(LEVELS.into_iter()))),
        );
    }
    level
}

fn level_of(value: &Value<'_>) -> Option<i64> {
    match &value.kind {
        Kind::Text(name) => LEVELS
            .iter()
            .position(|known| known == name)
            .map(|level| level as i64),
        _ => value.signed().ok(),
    }
}

/// Whether attributes, as name spaces and JSON text, have one of the two.
pub(super) fn reports(attributes: &[(String, String)], name: &str) -> bool {
    attributes
        .iter()
        .filter(|(space, _)| SPACES.contains(&&**space))
        .filter_map(|(_, text)| json::parse(text, 0..text.len()).ok())
        .any(|(value, _)| match value.kind {
            Kind::Object(members) => members.iter().any(|member| member.name == name),
            _ => false,
        })
}

/// Whether attributes say no more than these two.
pub(in crate::metadata) fn reports_only(attributes: &[(String, String)]) -> bool {
    attributes.iter().all(|(space, text)| {
        SPACES.contains(&&**space)
            && json::parse(text, 0..text.len()).is_ok_and(|(value, _)| match value.kind {
                Kind::Object(members) => members
                    .iter()
                    .all(|member| [LEVEL, EMF_URI].contains(&&*member.name)),
                _ => false,
            })
    })
}

/// Adds the attributes of the log level and of the model element where they are not there.
///
/// # Errors
///
/// What is wrong, where other attributes leave no place for them.
pub(in crate::metadata) fn report(event: &mut EventRecordClass) -> Result<(), &'static str> {
    let is_unreported = |name| !reports(&event.attributes, name);
    let level = event.log_level.filter(|_| is_unreported(LEVEL));
    let uri = event.emf_uri.clone().filter(|_| is_unreported(EMF_URI));
    if level.is_none() && uri.is_none() {
        return Ok(());
    }
    let is_free = |space: &&str| !event.attributes.iter().any(|(known, _)| known == space);
    let space = SPACES
        .into_iter()
        .find(is_free)
        .ok_or("its attributes leave no name space for the log level")?;
    let mut json = Json::default();
    json.open('{');
    if let Some(level) = level {
        json.key(LEVEL);
        match usize::try_from(level)
            .ok()
            .and_then(|level| LEVELS.get(level))
        {
            Some(name) => json.string(name),
            None => json.number(level),
        }
    }
    json.optional(EMF_URI, uri.as_deref());
    json.close('}');
    event.attributes.push((space.to_owned(), json.text));
    Ok(())
}

/// The identifier of the model element (Eclipse Modeling Framework).
pub(super) fn emf_uri(event: &Properties<'_, '_>) -> Option<Arc<str>> {
    let uri = event.attribute(&SPACES, EMF_URI)?.text().ok()?;
    (!uri.is_empty()).then(|| uri.into())
}
