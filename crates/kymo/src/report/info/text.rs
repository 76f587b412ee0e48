//! What is known, as text for people.

use std::fmt;
use std::path::Path;

use kymo_ctf::class::Dialect;
use kymo_text::visible;
use kymo_time::Origin;

use super::{
    ClassInfo, ClockInfo, Identity, StreamSummary, TraceInfo, byte_order_name, clock_name,
    environment_text,
};
use crate::report::text::{Style, Table, within};
use crate::report::{faults_below, span_rows};
use crate::show::pretty::log_level;

impl TraceInfo {
    pub(super) fn to_text(&self, style: &Style, fields: bool) -> String {
        let total = self.total();
        let mut text = format!("{}\n", visible(&self.path.to_string_lossy()));
        let mut table = Table::default();
        let mut line = |key: &str, value: String| table.row([format!("  {key}"), value]);
        line("format", self.format_text());
        if let Some(name) = &self.name {
            line("name", name.clone());
        }
        let Identity {
            namespace,
            name,
            uid,
        } = &self.identity;
        for (key, value) in [
            ("namespace", namespace),
            ("trace name", name),
            ("identifier", uid),
        ] {
            // LTTng gives its traces of CTF 2 the name "".
            let is_new = |value: &&String| !value.is_empty() && self.name.as_ref() != Some(value);
            if let Some(value) = value.as_ref().filter(is_new) {
                line(key, value.clone());
            }
        }
        if let Some(session) = self.session {
            line("session", session.to_string());
        }
        if let Some(order) = self.byte_order {
            line("byte order", byte_order_name(order).to_string());
        }
        if let Some(producer) = &self.producer {
            line("producer", producer.clone());
        }
        for (key, value) in span_rows(&total, style) {
            line(key, value);
        }
        line("bytes", style.count(total.bytes));
        line("packets", style.count(total.packets));
        if let Some(events) = total.events {
            line("events", style.count(events));
        }
        line("discarded events", style.count(total.discarded_events));
        line("discarded packets", style.count(total.discarded_packets));
        if style.width().is_some() && !self.losses.is_empty() {
            line("discarded over time", self.losses.line());
        }
        line(
            "event classes",
            style.count(self.event_classes.len() as u64),
        );
        line("streams", style.count(self.streams.len() as u64));
        line("faults", style.count(self.faults.len() as u64));
        for clock in &self.clocks {
            for (label, text) in clock.lines() {
                line(label, text);
            }
        }
        for (name, value) in &self.environment {
            line(
                "environment",
                format!("{name} = {}", environment_text(value)),
            );
        }
        for (namespace, json) in &self.attributes {
            line("attributes", format!("{namespace} = {json}"));
        }
        text += &table.align(&[false, false]);
        text += &self.stream_classes_text();
        text += &streams_text(&self.path, &self.streams, style);
        text += &classes_text(&self.event_classes, fields);
        text + &faults_below(&self.faults, 0, style)
    }

    fn format_text(&self) -> String {
        let format = format!(
            "{} {}",
            self.format.name.to_uppercase(),
            self.format.version
        );
        match self.dialect {
            Dialect::Rfc11 => format!("{format} (RFC v1.1, the draft of 2010)"),
            Dialect::Ctf18 | Dialect::Ctf2 => format,
        }
    }

    /// The stream classes, if more is known of them than their numbers.
    fn stream_classes_text(&self) -> String {
        let classes = &self.stream_classes;
        let is_reported = classes
            .iter()
            .any(|class| class.identity != Identity::default() || !class.attributes.is_empty());
        if !is_reported {
            return String::new();
        }
        let what = match self.dialect {
            Dialect::Rfc11 => "  section",
            Dialect::Ctf18 | Dialect::Ctf2 => "  stream class",
        };
        let mut table = Table::default();
        table.header(&[what, "id", "event classes", "clock", "attributes"]);
        for class in classes {
            table.row([
                format!("  {}", class.identity),
                class.id.to_string(),
                class.event_classes.to_string(),
                class.clock.clone().unwrap_or_else(|| "-".to_string()),
                attributes_text(&class.attributes),
            ]);
        }
        format!("\n{}", table.align(&[false, true, true, false, false]))
    }
}

/// The table of streams.
pub(in crate::report) fn streams_text(
    path: &Path,
    streams: &[StreamSummary],
    style: &Style,
) -> String {
    let has_events = streams.iter().any(|stream| stream.events.is_some());
    let columns = [
        ("  stream", false),
        ("packets", true),
        ("bytes", true),
        ("events", true),
        ("discarded", true),
        ("begins", false),
        ("ends", false),
    ];
    let is_shown = |column: &usize| *column != 3 || has_events;
    let shown: Vec<usize> = (0..columns.len()).filter(is_shown).collect();
    let mut table = Table::default();
    let header: Vec<&str> = shown.iter().map(|&column| columns[column].0).collect();
    table.header(&header);
    for stream in streams {
        let events = stream.events;
        let mut cells = [
            format!("  {}", within(path, &stream.name)),
            style.count(stream.packets),
            style.count(stream.bytes),
            events.map_or("-".to_string(), |events| style.count(events)),
            style.count(stream.discarded_events),
            style.optional_time(stream.begin),
            style.optional_time(stream.end),
        ];
        table.row(
            shown
                .iter()
                .map(|&column| std::mem::take(&mut cells[column])),
        );
    }
    let is_right: Vec<bool> = shown.iter().map(|&column| columns[column].1).collect();
    // Where lines are short: the fraction of a summary that can be had otherwise.
    let spare = shown.len() - 1;
    format!("\n{}", table.fit_without(&[spare], &is_right, style))
}

/// The table of event classes.
pub(in crate::report) fn classes_text(classes: &[ClassInfo], fields: bool) -> String {
    let mut table = Table::default();
    table.header(&["  event class", "stream class", "id", "log level"]);
    for class in classes {
        table.row([
            format!(
                "  {}",
                class.identity.name.as_deref().unwrap_or("<unknown>")
            ),
            class.stream_class.to_string(),
            class.id.to_string(),
            class.log_level.map_or_else(|| "-".to_string(), log_level),
        ]);
    }
    let table = table.align(&[false, true, true, false]);
    let mut text = "\n".to_string();
    // The first line is the header, which has no class.
    for (position, line) in table.lines().enumerate() {
        text += line;
        text.push('\n');
        let class = position.checked_sub(1).filter(|_| fields);
        if let Some(class) = class.and_then(|class| classes.get(class)) {
            text += &schema_text(class);
        }
    }
    text
}

/// What is printed of an event class beside its line: a line for each attribute and field.
fn schema_text(class: &ClassInfo) -> String {
    let mut text = String::new();
    let Identity { namespace, uid, .. } = &class.identity;
    for (key, value) in [
        ("namespace", namespace),
        ("identifier", uid),
        ("EMF URI", &class.emf_uri),
    ] {
        if let Some(value) = value {
            text += &format!("      {key} = {}\n", visible(value));
        }
    }
    for (namespace, json) in &class.attributes {
        text += &format!(
            "      attributes {} = {}\n",
            visible(namespace),
            visible(json)
        );
    }
    for field in &class.fields {
        text += &format!("      {}: {}\n", visible(&field.path), field.kind);
    }
    text
}

fn attributes_text(attributes: &[(String, String)]) -> String {
    let attributes: Vec<String> = attributes
        .iter()
        .map(|(namespace, json)| format!("{namespace} = {json}"))
        .collect();
    attributes.join(", ")
}

/// A name with what else identifies it: `NAME (NAME SPACE, UID)`.
fn identity(namespace: Option<&str>, name: &str, uid: Option<&str>) -> String {
    let more: Vec<&str> = [namespace, uid].into_iter().flatten().collect();
    match more.is_empty() {
        true => name.to_string(),
        false => format!("{name} ({})", more.join(", ")),
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name.as_deref().unwrap_or("(no name)");
        f.write_str(&identity(
            self.namespace.as_deref(),
            name,
            self.uid.as_deref(),
        ))
    }
}

impl ClockInfo {
    /// Labels and texts of the lines that describe it.
    pub(in crate::report) fn lines(&self) -> Vec<(&'static str, String)> {
        let clock = &self.0;
        let name = clock_name(clock);
        let mut lines = vec![("clock", format!("{name}, {} Hz", clock.frequency))];
        let identifiers = [&clock.namespace, &clock.uid];
        let identifiers: Vec<&str> = identifiers.into_iter().flatten().map(|id| &**id).collect();
        if !identifiers.is_empty() {
            lines.push(("clock identifier", identifiers.join(", ")));
        }
        let origin = match &clock.origin {
            Origin::UnixEpoch => "the Unix epoch".to_string(),
            Origin::Unknown => "unknown".to_string(),
            Origin::Named {
                namespace,
                name,
                uid,
            } => identity(namespace.as_deref(), name, Some(uid)),
        };
        lines.push(("clock origin", origin));
        let offset = format!(
            "{} s and {} cycles",
            clock.offset_seconds, clock.offset_cycles
        );
        lines.push(("clock offset", offset));
        for (label, cycles) in [
            ("clock precision", clock.precision),
            ("clock accuracy", clock.accuracy),
        ] {
            if let Some(cycles) = cycles {
                lines.push((label, format!("{cycles} cycles")));
            }
        }
        if let Some(description) = &clock.description {
            lines.push(("clock description", description.to_string()));
        }
        lines
    }
}
