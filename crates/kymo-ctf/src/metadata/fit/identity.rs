//! Names, clocks, the environment, log levels: all that is said of a trace beside its fields.

use std::collections::HashSet;
use std::sync::Arc;

use kymo_time::{Clock, Origin};

use super::log::{FitError, Log, Rule};
use super::names::Names;
use crate::class::{Dialect, EnvironmentValue, EventRecordClass, StreamClass, TraceClass};
use crate::metadata::tsdl::names;
use crate::metadata::{ctf2, uuid_of, uuid_text};

/// What a name space is called where it is lost.
const NAMESPACE: &str = "the name space";
const UID: &str = "the unique identifier";
const NAME: &str = "the name";
const ATTRIBUTES: &str = "what attributes say";

/// Fits what is said of the trace. `model` is the trace as it was.
pub(super) fn trace(trace: &mut TraceClass, model: &TraceClass, log: &mut Log) {
    if trace.dialect != Dialect::Ctf18 {
        return;
    }
    environment(trace, log);
    if trace.uuid.is_none() {
        trace.uuid = trace.uid.as_deref().and_then(uuid_of);
    }
    let uuid = trace.uuid.map(uuid_text);
    let is_lttng = is_lttng(&trace.environment);
    let namespace = is_lttng.then(|| "lttng.org,2009".to_owned());
    let mut names = Names::new(trace.environment.iter().map(|(name, _)| &**name));
    for (what, name, value, known) in [
        (
            NAMESPACE,
            "trace_namespace",
            &mut trace.namespace,
            namespace,
        ),
        (NAME, "trace_name", &mut trace.name, None),
        (UID, "trace_uid", &mut trace.uid, uuid),
    ] {
        let lost = std::mem::replace(value, known);
        if let Some(lost) = lost.filter(|lost| value.as_ref() != Some(lost)) {
            let entry = (names.free(name), EnvironmentValue::Text(text(&lost)));
            trace.environment.push(entry);
            log.note(Rule::InEnvironment(what, name));
        }
    }
    attributes(&mut trace.attributes, log);
    let mut taken = Names::new(std::iter::empty());
    trace.clocks = model
        .clocks
        .iter()
        .map(|known| Arc::new(clock(known, is_lttng, &mut taken, log)))
        .collect();
}

/// Whether the reader takes the trace for one of LTTng.
fn is_lttng(environment: &[(String, EnvironmentValue)]) -> bool {
    environment.iter().any(|(name, value)| {
        name == "tracer_name"
            && matches!(value, EnvironmentValue::Text(tracer) if tracer.starts_with("lttng"))
    })
}

/// Names and texts of the environment that can be written.
fn environment(trace: &mut TraceClass, log: &mut Log) {
    let is_kept = |name: &str| !name.is_empty() && name.split('.').all(names::is_name);
    let kept = trace.environment.iter().map(|(name, _)| name.as_str());
    let mut taken = Names::new(kept.filter(|name| is_kept(name)));
    let mut seen = HashSet::new();
    for (name, value) in &mut trace.environment {
        if let EnvironmentValue::Text(text) = value {
            *text = self::text(text);
        }
        if is_kept(name) && seen.insert(name.clone()) {
            continue;
        }
        let to = taken.free(&names::cleaned(name));
        let from = std::mem::replace(name, to.clone());
        log.note(Rule::Renamed { from, to });
    }
}

/// Text as it can be quoted.
fn text(text: &str) -> String {
    names::without_zeros(text)
}

fn clock(known: &Clock, is_lttng: bool, taken: &mut Names, log: &mut Log) -> Clock {
    let wish = match known.name.as_deref() {
        Some(name) if names::is_name(name) => name.to_owned(),
        Some(name) if !name.is_empty() => names::cleaned(name),
        _ => "default".to_owned(),
    };
    let mut name = taken.free(&wish);
    // In traces of LTTng a clock of this name counts from the epoch, whatever is said of it.
    if is_lttng && name == "monotonic" && known.origin != Origin::UnixEpoch {
        name = taken.free("monotonic");
    }
    let before = known.name.clone().unwrap_or_default();
    if before.is_empty() {
        log.note(Rule::Named("a clock", name.clone()));
    } else if name != before {
        let (from, to) = (before, name.clone());
        log.note(Rule::Renamed { from, to });
    }
    let uid = known.uid.as_deref().and_then(uuid_of).map(uuid_text);
    let lost = [
        (known.namespace.is_some(), "the name space of a clock"),
        (
            known.uid.is_some() && uid.is_none(),
            "the unique identifier of a clock",
        ),
        (known.accuracy.is_some(), "the accuracy of a clock"),
        (
            matches!(known.origin, Origin::Named { .. }),
            "the named origin of a clock",
        ),
    ];
    for (_, what) in lost.into_iter().filter(|(is_lost, _)| *is_lost) {
        log.note(Rule::Lost(what));
    }
    Clock {
        namespace: None,
        name: Some(name),
        uid,
        description: known.description.as_deref().map(text),
        precision: Some(known.precision.unwrap_or(0)),
        accuracy: None,
        origin: match known.origin {
            Origin::UnixEpoch => Origin::UnixEpoch,
            _ => Origin::Unknown,
        },
        ..*known
    }
}

fn attributes(attributes: &mut Vec<(String, String)>, log: &mut Log) {
    if !std::mem::take(attributes).is_empty() {
        log.note(Rule::Lost(ATTRIBUTES));
    }
}

fn lose(value: &mut Option<String>, what: &'static str, log: &mut Log) {
    if value.take().is_some() {
        log.note(Rule::Lost(what));
    }
}

/// Fits what is said of a stream class.
pub(super) fn stream(stream: &mut StreamClass, dialect: Dialect, log: &mut Log) {
    if dialect != Dialect::Ctf18 {
        return;
    }
    lose(&mut stream.namespace, NAMESPACE, log);
    lose(&mut stream.name, NAME, log);
    lose(&mut stream.uid, UID, log);
    attributes(&mut stream.attributes, log);
}

/// Names an event class without a name as all readers show it. Without a name, other readers of
/// CTF 1.8 refuse the whole trace.
pub(super) fn name_unknown(event: &mut EventRecordClass, log: &mut Log) {
    const UNKNOWN: &str = "<unknown>";
    event.name = Some(UNKNOWN.into());
    log.note(Rule::Renamed {
        from: String::new(),
        to: UNKNOWN.to_owned(),
    });
}

/// Fits what is said of an event class. `is_tsdl` says whether it was read in CTF 1.8.
pub(super) fn event(
    event: &mut EventRecordClass,
    dialect: Dialect,
    is_tsdl: bool,
    log: &mut Log,
) -> Result<(), FitError> {
    if dialect == Dialect::Ctf2 {
        return ctf2::report_log(event)
            .map_err(|what| log.error(what, "remove the attributes of one of them"));
    }
    event.emf_uri = (event.emf_uri.take())
        .filter(|uri| !uri.is_empty())
        .map(|uri| text(&uri).into());
    event.name = event.name.take().map(|name| text(&name).into());
    if event.name.is_none() && !is_tsdl {
        name_unknown(event, log);
    }
    lose(&mut event.namespace, NAMESPACE, log);
    lose(&mut event.uid, UID, log);
    if !ctf2::is_log(&std::mem::take(&mut event.attributes)) {
        log.note(Rule::Lost(ATTRIBUTES));
    }
    Ok(())
}
