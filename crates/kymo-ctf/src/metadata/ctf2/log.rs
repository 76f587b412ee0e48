//! What tracers say of an event record class in attributes: its log level, and the
//! identifier of its model element.

use std::sync::Arc;

use kymo_text::diagnostic::Diagnostic;

use super::json::{self, Kind, Value, alternatives};
use super::properties::Properties;
use crate::metadata::limits::Warnings;

/// The name spaces that have these attributes.
pub(super) const SPACES: [&str; 2] = ["lttng.org,2009", "babeltrace.org,2020"];

pub(super) const LEVEL: &str = "log-level";
pub(super) const EMF_URI: &str = "emf-uri";

/// The names of the log levels 0 to 14.
pub(super) const LEVELS: [&str; 15] = [
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
pub(super) fn tells(attributes: &[(String, String)], name: &str) -> bool {
    attributes
        .iter()
        .filter(|(space, _)| SPACES.contains(&&**space))
        .filter_map(|(_, text)| json::parse(text, 0..text.len()).ok())
        .any(|(value, _)| match value.kind {
            Kind::Object(members) => members.iter().any(|member| member.name == name),
            _ => false,
        })
}

/// The identifier of the model element (Eclipse Modeling Framework).
pub(super) fn emf_uri(event: &Properties<'_, '_>) -> Option<Arc<str>> {
    let uri = event.attribute(&SPACES, EMF_URI)?.text().ok()?;
    (!uri.is_empty()).then(|| uri.into())
}
