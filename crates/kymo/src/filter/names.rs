//! From names to the fields of an event class.

use std::path::Path;

use kymo_model::{EventClass, FieldId, Kind, Pick, Schema, Scope};
use kymo_text::nearest;

use super::check::{Bound, Type, kind_of, limits_of};
use super::eval::{Constant, Number, Source};
use super::expr::{FieldName, Step};
use crate::EntryKind;

/// Scopes in the order in which a name is looked for.
const SEARCHED: [Scope; 5] = [
    Scope::Payload,
    Scope::SpecificContext,
    Scope::CommonContext,
    Scope::PacketContext,
    Scope::PacketHeader,
];

/// How the scopes are named in front of a field: as `kymo print --format json` names
/// them, and as CTF 1.8 does.
const SCOPE_NAMES: [(&[&str], Scope); 11] = [
    (&["payload"], Scope::Payload),
    (&["specific_context"], Scope::SpecificContext),
    (&["common_context"], Scope::CommonContext),
    (&["packet_context"], Scope::PacketContext),
    (&["packet_header"], Scope::PacketHeader),
    (&["event", "fields"], Scope::Payload),
    (&["event", "context"], Scope::SpecificContext),
    (&["stream", "event", "context"], Scope::CommonContext),
    (&["stream", "packet", "context"], Scope::PacketContext),
    (&["trace", "packet", "header"], Scope::PacketHeader),
    (&["event", "payload"], Scope::Payload),
];

/// What is known of events without looking at their fields.
const PROPERTIES: [&str; 10] = [
    "event.name",
    "event.kind",
    "event.id",
    "event.level",
    "event.time",
    "stream.class",
    "stream.id",
    "stream.name",
    "trace.name",
    "recording.path",
];

/// The keys of `kymo print --format json` that stand for properties, in events that have no such field.
const KEYS: [&str; 8] = [
    "timestamp",
    "recording",
    "kind",
    "trace",
    "stream_class",
    "stream",
    "event",
    "event_class",
];

/// An event class and what surrounds it.
#[derive(Clone, Copy)]
pub(super) struct Surroundings<'a> {
    /// The class.
    pub(super) class: &'a EventClass,
    /// Fields of the packets in which its events are.
    pub(super) packet: &'a Schema,
    /// Name of the recording.
    pub(super) trace: Option<&'a str>,
    /// Path of the recording.
    pub(super) recording: &'a Path,
    /// What the events of the class are.
    pub(super) kind: EntryKind,
}

/// What is captured for one event class, and for the packets of its streams.
#[derive(Debug, Default)]
pub(super) struct Picks {
    /// Fields of the event.
    pub(super) event: Vec<Pick>,
    /// Fields of the packet.
    pub(super) packet: Vec<Pick>,
}

/// What may have been meant by the name of a field that no event has.
pub(super) fn suggestion<'a>(
    wrong: &str,
    classes: impl Iterator<Item = Surroundings<'a>>,
) -> Option<String> {
    let is_it = |known: &&&str| known.split_once('.').is_some_and(|(_, last)| last == wrong);
    let properties: Vec<String> = PROPERTIES
        .iter()
        .filter(is_it)
        .map(|known| format!("`{known}`"))
        .collect();
    match properties.as_slice() {
        [] => {}
        [one] => return Some(format!("there is {one}")),
        some => return Some(format!("there are {}", some.join(" and "))),
    }
    let classes: Vec<_> = classes.collect();
    if is_label(wrong, &classes) {
        return Some(format!(
            "`{wrong}` is a label: write it in quotes, \"{wrong}\""
        ));
    }
    let known = known_names(classes.into_iter());
    let known = known.iter().map(String::as_str);
    // What is written short: `cpu`, where the field is `cpu_id`.
    let longer = |name: &&str| wrong.len() > 2 && name.starts_with(wrong);
    let meant = nearest(wrong, known.clone());
    let meant = meant.or_else(|| known.filter(longer).min_by_key(|name| name.len()))?;
    Some(format!("there is a field `{meant}`"))
}

/// Whether an enumeration has a label.
fn is_label(name: &str, classes: &[Surroundings<'_>]) -> bool {
    let schemas = classes
        .iter()
        .flat_map(|class| [&class.class.schema, class.packet]);
    schemas.flat_map(Schema::fields).any(|field| {
        let labels = match &field.kind {
            Kind::Uint { labels, .. } | Kind::Sint { labels, .. } => labels.as_ref(),
            _ => None,
        };
        labels.is_some_and(|labels| labels.mappings().iter().any(|it| &*it.label == name))
    })
}

/// Every name a field can be called by.
fn known_names<'a>(classes: impl Iterator<Item = Surroundings<'a>>) -> Vec<String> {
    /// Enough for a suggestion.
    const MOST: usize = 50_000;
    let properties = PROPERTIES.iter().chain(&KEYS);
    let mut known: Vec<String> = properties.map(ToString::to_string).collect();
    for class in classes {
        for schema in [&class.class.schema, class.packet] {
            for id in (0..schema.fields().len() as u32).map(FieldId) {
                // Fields of the event's header are in no scope that is searched.
                if schema.field(id).name.is_some()
                    && schema.scope_of(id) != Scope::EventHeader
                    && known.len() < MOST
                {
                    known.push(schema.path(id));
                }
            }
        }
    }
    known
}

/// The values that a name stands for in a class: a property, fields, or a key of the JSON. Several where
/// a variant has several options; where an array is in the way, `array` gets a hint. The inner `None` is
/// a property that the class does not have.
pub(super) fn values<'a>(
    name: &FieldName,
    surroundings: Surroundings<'a>,
    picks: &mut Picks,
    array: &mut Option<String>,
) -> Vec<Option<Bound<'a>>> {
    if let Some(property) = property(name, surroundings) {
        return property;
    }
    let fields = fields(name, surroundings, picks, array);
    match fields.is_empty() {
        true => property(&key(name), surroundings).unwrap_or_default(),
        false => fields,
    }
}

/// The property that a key of the JSON stands for, or the name itself if it is not a key.
fn key(name: &FieldName) -> FieldName {
    let property: &[&str] = match name.steps.as_slice() {
        [Step::Name(key)] => match key.as_str() {
            "timestamp" => &["event", "time"],
            "recording" => &["recording", "path"],
            "kind" => &["event", "kind"],
            "trace" => &["trace", "name"],
            "stream_class" => &["stream", "class"],
            "stream" => &["stream", "id"],
            "event" => &["event", "name"],
            "event_class" => &["event", "id"],
            _ => return name.clone(),
        },
        _ => return name.clone(),
    };
    let steps = property.iter().map(|word| Step::Name(word.to_string()));
    FieldName {
        steps: steps.collect(),
        range: name.range.clone(),
    }
}

/// What is known of an event without its fields; `None` if the name is not one of these.
/// The inner `None` is a property that the class does not have.
fn property<'a>(
    name: &FieldName,
    surroundings: Surroundings<'_>,
) -> Option<Vec<Option<Bound<'a>>>> {
    let class = surroundings.class;
    let [Step::Name(whose), Step::Name(what)] = name.steps.as_slice() else {
        return None;
    };
    let number = |value: i128| {
        (
            Source::Constant(Constant::Number(Number::Integer(value))),
            Type::Integer(None),
        )
    };
    let text = |text: &str| {
        let text = text.as_bytes().to_vec();
        (Source::Constant(Constant::Text(text)), Type::Text)
    };
    let path = |path: &Path| {
        let path = path.as_os_str().as_encoded_bytes().to_vec();
        (Source::Constant(Constant::Text(path)), Type::Text)
    };
    let found = match (whose.as_str(), what.as_str()) {
        ("event", "name") => class.name.as_deref().map(text),
        ("event", "id") => Some(number(class.id.into())),
        ("event", "level") => class.log_level.map(|level| number(level.into())),
        ("event", "time") => Some((Source::Time, Type::Integer(None))),
        ("stream", "class") => Some(number(class.stream_class.into())),
        ("stream", "id") => Some((Source::StreamId, Type::Integer(None))),
        ("stream", "name") => Some((Source::StreamName, Type::Text)),
        ("trace", "name") => surroundings.trace.map(text),
        ("event", "kind") => Some(text(surroundings.kind.as_str())),
        ("recording", "path") => Some(path(surroundings.recording)),
        _ => return None,
    };
    Some(vec![found.map(|(source, kind)| Bound {
        source,
        kind,
        limits: None,
        is_literal: false,
        function: None,
    })])
}

/// The fields of a class that a name stands for. Where an array is in the way, `array`
/// gets a hint.
fn fields<'a>(
    name: &FieldName,
    surroundings: Surroundings<'a>,
    picks: &mut Picks,
    array: &mut Option<String>,
) -> Vec<Option<Bound<'a>>> {
    let schema_of = |scope| match scope {
        Scope::PacketHeader | Scope::PacketContext => surroundings.packet,
        _ => &surroundings.class.schema,
    };
    let named = SCOPE_NAMES.iter().filter_map(|(words, scope)| {
        let (first, rest) = name.steps.split_at_checked(words.len())?;
        let is_this = first
            .iter()
            .zip(*words)
            .all(|(step, word)| matches!(step, Step::Name(name) if name == word));
        (is_this && !rest.is_empty()).then_some((*scope, rest))
    });
    // A name that begins with a scope's may as well be of a field that is called so.
    let searched = SEARCHED.map(|scope| (scope, name.steps.as_slice()));
    for (scope, steps) in named.chain(searched) {
        let schema = schema_of(scope);
        let Some(root) = schema.root(scope) else {
            continue;
        };
        let mut found = Vec::new();
        walk(schema, root, steps, Vec::new(), &mut found, array);
        if found.is_empty() {
            continue;
        }
        let is_packet = matches!(scope, Scope::PacketHeader | Scope::PacketContext);
        return found
            .into_iter()
            .map(|pick| {
                let field = pick.field;
                let kind = kind_of(schema, field);
                let source = if is_packet {
                    Source::Packet(slot(&mut picks.packet, pick))
                } else {
                    Source::Event(slot(&mut picks.event, pick))
                };
                Some(Bound {
                    source,
                    kind,
                    limits: limits_of(schema, field),
                    is_literal: false,
                    function: None,
                })
            })
            .collect();
    }
    Vec::new()
}

/// The slot of a pick, which is added where it is new.
fn slot(picks: &mut Vec<Pick>, pick: Pick) -> usize {
    picks.iter().position(|p| *p == pick).unwrap_or_else(|| {
        picks.push(pick);
        picks.len() - 1
    })
}

/// Collects the fields that the steps lead to from a field. Variants and optionals need
/// no step of their own: what is in them is found as if it were in their place.
fn walk(
    schema: &Schema,
    at: FieldId,
    steps: &[Step],
    elements: Vec<u64>,
    found: &mut Vec<Pick>,
    array: &mut Option<String>,
) {
    let field = schema.field(at);
    match (&field.kind, steps) {
        (Kind::Variant, [Step::Name(name), rest @ ..]) if schema.child(at, name).is_some() => {
            if let Some(child) = schema.child(at, name) {
                walk(schema, child, rest, elements, found, array);
            }
        }
        (Kind::Variant | Kind::Optional, _) => {
            for &child in &field.children {
                walk(schema, child, steps, elements.clone(), found, array);
            }
        }
        (_, []) => found.push(Pick {
            field: at,
            elements,
        }),
        (Kind::Struct, [Step::Name(name), rest @ ..]) => {
            if let Some(child) = schema.child(at, name) {
                walk(schema, child, rest, elements, found, array);
            }
        }
        (Kind::Array { .. }, [Step::Element(element), rest @ ..]) => {
            for &child in &field.children {
                let mut elements = elements.clone();
                elements.push(*element);
                walk(schema, child, rest, elements, found, array);
            }
        }
        (Kind::Array { .. }, [Step::Name(_), ..]) => {
            let path = schema.path(at);
            *array = Some(format!(
                "`{path}` is an array: choose an element, as in `{path}[0]`"
            ));
        }
        _ => {}
    }
}
