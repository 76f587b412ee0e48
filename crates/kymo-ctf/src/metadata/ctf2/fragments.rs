//! The fragments (CTF2-SPEC-2.0 §5.4 to §5.9): trace, clocks, data stream classes and
//! event record classes put together.

use std::collections::HashMap;
use std::sync::Arc;

use kymo_model::Scope;
use kymo_text::diagnostic::Diagnostic;
use kymo_time::{Clock, Origin};

use super::build::{Builder, Roots, Shared, Surroundings};
use super::classes::Classes;
use super::json::{Kind, Span, Value};
use super::log;
use super::properties::Properties;
use super::sequence;
use crate::class::{
    Dialect, EnvironmentValue, EventRecordClass, FieldClass, StreamClass, TraceClass,
};
use crate::metadata::{limits::Warnings, uuid_text};

/// Reads a trace; also returns the warnings.
pub(super) fn read(text: &str) -> Result<(TraceClass, Vec<Diagnostic>), Diagnostic> {
    let mut warnings = Warnings::default();
    let mut trace: Option<Trace> = None;
    sequence::each(text, &mut warnings, |fragment, warnings| {
        match &mut trace {
            Some(trace) => trace.fragment(fragment, warnings)?,
            None => trace = Some(Trace::new(fragment, text.len(), warnings)?),
        }
        Ok(())
    })?;
    let Some(trace) = trace else {
        return Err(Diagnostic::error("no metadata")
            .with_help("expected at least a preamble and a data stream class"));
    };
    if trace.streams.is_empty() {
        // The headers of packets can be decoded all the same, where there are any.
        const MESSAGE: &str = "no data stream class";
        const HELP: &str = "expected at least `{\"type\": \"data-stream-class\"}`";
        if trace.class.packet_header.is_none() {
            return Err(Diagnostic::error(MESSAGE).with_help(HELP));
        }
        warnings.push(Diagnostic::warning(MESSAGE).with_help(HELP));
    }
    let mut class = trace.class;
    class.streams = trace
        .streams
        .into_iter()
        .map(|stream| stream.class)
        .collect();
    Ok((class, warnings.0))
}

/// The kinds of fragments.
const FRAGMENTS: [(&str, Fragment); 6] = [
    ("preamble", Fragment::Preamble),
    ("field-class-alias", Fragment::Alias),
    ("trace-class", Fragment::Trace),
    ("clock-class", Fragment::Clock),
    ("data-stream-class", Fragment::Stream),
    ("event-record-class", Fragment::Event),
];

#[derive(Clone, Copy, PartialEq)]
enum Fragment {
    Preamble,
    Alias,
    Trace,
    Clock,
    Stream,
    Event,
}

/// What a fragment is, by its `type`.
fn kind_of(fragment: &Value<'_>) -> Result<Fragment, Diagnostic> {
    let members = fragment.object("a fragment as an object")?;
    match members.iter().find(|member| member.name == "type") {
        Some(member) => member.value.one_of(&FRAGMENTS),
        None => Err(Diagnostic::error("a fragment has no `type`")
            .at(fragment.span, "expected a property `\"type\"` in this")),
    }
}

/// A trace that is being put together.
struct Trace {
    class: TraceClass,
    preamble: Span,
    /// The trace class, where there is one.
    span: Option<Span>,
    classes: Classes,
    /// The structure of packet headers, at the position of that scope.
    roots: Roots,
    shared: Shared,
    /// Positions of the clocks by their identifiers, and the places of these.
    clocks: HashMap<String, (usize, Span)>,
    streams: Vec<Stream>,
    /// Positions in `streams` by number.
    positions: HashMap<u64, usize>,
}

/// A data stream class that is being put together.
struct Stream {
    class: StreamClass,
    span: Span,
    /// The structures of its scopes.
    roots: Roots,
    /// The numbers of its event record classes, and where these are.
    events: HashMap<u64, Span>,
}

impl Trace {
    /// Starts with the preamble of metadata of `text_length` bytes.
    fn new(
        fragment: &Value<'_>,
        text_length: usize,
        warnings: &mut Warnings,
    ) -> Result<Self, Diagnostic> {
        if kind_of(fragment)? != Fragment::Preamble {
            return Err(
                Diagnostic::error("the first fragment is not a preamble").at(
                    fragment.span,
                    "expected `{\"type\": \"preamble\", \"version\": 2}` before this",
                ),
            );
        }
        let known = ["type", "version", "uuid"];
        let preamble = Properties::new(fragment, "the preamble", &known, warnings)?;
        preamble.attributes()?;
        preamble.require("version", |version| match version.unsigned()? {
            2 => Ok(()),
            _ => version.expected("2, the only version that is known"),
        })?;
        let class = TraceClass {
            dialect: Dialect::Ctf2,
            namespace: None,
            name: None,
            uid: None,
            uuid: preamble.read("uuid", uuid)?,
            byte_order: None,
            environment: Vec::new(),
            packet_header: None,
            clocks: Vec::new(),
            streams: Vec::new(),
            attributes: Vec::new(),
        };
        Ok(Self {
            class,
            preamble: fragment.span,
            span: None,
            classes: Classes::default(),
            roots: Roots::default(),
            shared: Shared::new(text_length),
            clocks: HashMap::new(),
            streams: Vec::new(),
            positions: HashMap::new(),
        })
    }

    /// Adds a fragment.
    fn fragment(
        &mut self,
        fragment: &Value<'_>,
        warnings: &mut Warnings,
    ) -> Result<(), Diagnostic> {
        match kind_of(fragment)? {
            Fragment::Preamble => Err(Diagnostic::error("a second preamble")
                .at(fragment.span, "expected no preamble here")
                .because(self.preamble, "first preamble")),
            Fragment::Alias => self.classes.alias(fragment, warnings),
            Fragment::Trace => self.trace(fragment, warnings),
            Fragment::Clock => self.clock(fragment, warnings),
            Fragment::Stream => self.stream(fragment, warnings),
            Fragment::Event => self.event(fragment, warnings),
        }
    }

    /// The trace class (§5.6).
    fn trace(&mut self, fragment: &Value<'_>, warnings: &mut Warnings) -> Result<(), Diagnostic> {
        let known = [
            "type",
            "namespace",
            "name",
            "uid",
            "environment",
            "packet-header-field-class",
            // Of drafts: that of the preamble, or in its place.
            "uuid",
        ];
        if let Some(first) = self.span {
            return Err(Diagnostic::error("a second trace class")
                .at(fragment.span, "expected no trace class here")
                .because(first, "first trace class"));
        }
        if let Some(stream) = self.streams.first() {
            return Err(Diagnostic::error("the trace class comes too late")
                .at(fragment.span, "expected before all data stream classes")
                .because(stream.span, "first data stream class"));
        }
        self.span = Some(fragment.span);
        let trace = Properties::new(fragment, "the trace class", &known, warnings)?;
        let draft = trace.read("uuid", uuid)?;
        if draft.is_some() {
            warnings.push(
                Diagnostic::warning("`uuid` of the trace class is of a draft of CTF 2").at(
                    trace.span_of("uuid"),
                    "read as `uid`, and as `uuid` of the preamble",
                ),
            );
            self.class.uuid = draft;
        }
        self.class.namespace = trace.read("namespace", Value::string)?;
        self.class.name = trace.read("name", Value::string)?;
        // Like that of CTF 1.8, the draft's UUID identifies the trace.
        self.class.uid = trace.read("uid", Value::string)?.or(draft.map(uuid_text));
        self.class.environment = trace.read("environment", environment)?.unwrap_or_default();
        self.class.attributes = trace.attributes()?;
        self.roots[Scope::PacketHeader as usize] = trace
            .read("packet-header-field-class", |class| {
                self.classes.structure(class, warnings)
            })?;
        let surroundings = self.surroundings(false);
        self.class.packet_header = Builder::scope(
            &mut self.shared,
            &self.roots,
            Scope::PacketHeader,
            surroundings,
        )?;
        Ok(())
    }

    fn surroundings(&self, has_clock: bool) -> Surroundings {
        Surroundings {
            has_uuid: self.class.uuid.is_some(),
            has_clock,
        }
    }

    /// A clock class (§5.7).
    fn clock(&mut self, fragment: &Value<'_>, warnings: &mut Warnings) -> Result<(), Diagnostic> {
        let known = [
            "type",
            "id",
            "namespace",
            "name",
            "uid",
            "description",
            "frequency",
            "precision",
            "accuracy",
            "origin",
            "offset-from-origin",
        ];
        let drafts = [("uuid", "uid"), ("offset", "offset-from-origin")];
        let owner = "a clock class";
        let clock = Properties::with_drafts(fragment, owner, &known, &drafts, warnings)?;
        clock.attributes()?;
        // In drafts, the name is the identifier too.
        let id_name = match (clock.get("id"), clock.get("name")) {
            (None, Some(name)) => {
                warnings.push(
                    Diagnostic::warning("a clock class without `id` is of a draft of CTF 2")
                        .at(name.span, "its name is taken for it"),
                );
                "name"
            }
            _ => "id",
        };
        let id = clock.require(id_name, Value::string)?;
        let span = clock.span_of(id_name);
        if let Some((_, first)) = self.clocks.get(&id) {
            return Err(Diagnostic::error(format!("two clock classes `{id}`"))
                .at(span, "given again")
                .because(*first, "first given here"));
        }
        let frequency = clock.require("frequency", |frequency| match frequency.unsigned()? {
            0 => frequency.expected("at least 1 cycle per second"),
            cycles => Ok(cycles),
        })?;
        let offset = clock.read("offset-from-origin", |offset| {
            offset_of(offset, frequency, warnings)
        })?;
        let (offset_seconds, offset_cycles) = offset.unwrap_or_default();
        self.clocks.insert(id, (self.class.clocks.len(), span));
        self.class.clocks.push(Arc::new(Clock {
            namespace: clock.read("namespace", Value::string)?,
            name: clock.read("name", Value::string)?,
            uid: clock.read("uid", |uid| match uid.kind {
                Kind::Array(_) => Ok(uuid_text(uuid(uid)?)),
                _ => uid.string(),
            })?,
            description: clock.read("description", Value::string)?,
            frequency,
            offset_seconds,
            offset_cycles,
            precision: clock.read("precision", Value::unsigned)?,
            accuracy: clock.read("accuracy", Value::unsigned)?,
            origin: clock
                .read("origin", |origin| origin_of(origin, warnings))?
                .unwrap_or_default(),
        }));
        Ok(())
    }

    /// A data stream class (§5.8).
    fn stream(&mut self, fragment: &Value<'_>, warnings: &mut Warnings) -> Result<(), Diagnostic> {
        const SCOPES: [(&str, Scope); 3] = [
            ("packet-context-field-class", Scope::PacketContext),
            ("event-record-header-field-class", Scope::EventHeader),
            (
                "event-record-common-context-field-class",
                Scope::CommonContext,
            ),
        ];
        let known = [
            "type",
            "id",
            "namespace",
            "name",
            "uid",
            "default-clock-class-id",
            SCOPES[0].0,
            SCOPES[1].0,
            SCOPES[2].0,
        ];
        let drafts = [("default-clock-class-name", "default-clock-class-id")];
        let owner = "a data stream class";
        let properties = Properties::with_drafts(fragment, owner, &known, &drafts, warnings)?;
        let id = properties.read("id", Value::unsigned)?.unwrap_or(0);
        if let Some(&first) = self.positions.get(&id) {
            return Err(
                Diagnostic::error(format!("two data stream classes with `id` {id}"))
                    .at(properties.span_of("id"), "given again")
                    .because(self.streams[first].span, "first data stream class"),
            );
        }
        let clock = properties.read("default-clock-class-id", |id| {
            match self.clocks.get(id.text()?) {
                Some((clock, _)) => Ok(*clock),
                None => Err(
                    Diagnostic::error(format!("unknown clock class {}", id.text))
                        .at(id.span, "expected the `id` of a clock class before this"),
                ),
            }
        })?;
        let mut stream = Stream {
            class: StreamClass {
                id,
                namespace: properties.read("namespace", Value::string)?,
                name: properties.read("name", Value::string)?,
                uid: properties.read("uid", Value::string)?,
                clock,
                attributes: properties.attributes()?,
                ..StreamClass::default()
            },
            span: fragment.span,
            roots: self.roots.clone(),
            events: HashMap::new(),
        };
        for (name, scope) in SCOPES {
            let class = self.scope(&properties, name, &mut stream.roots, scope, clock, warnings)?;
            match scope {
                Scope::PacketContext => stream.class.packet_context = class,
                Scope::EventHeader => stream.class.event_header = class,
                _ => stream.class.common_context = class,
            }
        }
        self.positions.insert(id, self.streams.len());
        self.streams.push(stream);
        Ok(())
    }

    /// The field class of a scope, which becomes known to those after it.
    fn scope(
        &mut self,
        properties: &Properties<'_, '_>,
        name: &str,
        roots: &mut Roots,
        scope: Scope,
        clock: Option<usize>,
        warnings: &mut Warnings,
    ) -> Result<Option<FieldClass>, Diagnostic> {
        roots[scope as usize] =
            properties.read(name, |class| self.classes.structure(class, warnings))?;
        let surroundings = self.surroundings(clock.is_some());
        Builder::scope(&mut self.shared, roots, scope, surroundings)
    }

    /// An event record class (§5.9).
    fn event(&mut self, fragment: &Value<'_>, warnings: &mut Warnings) -> Result<(), Diagnostic> {
        let known = [
            "type",
            "id",
            "data-stream-class-id",
            "namespace",
            "name",
            "uid",
            "specific-context-field-class",
            "payload-field-class",
        ];
        let owner = "an event record class";
        let properties = Properties::new(fragment, owner, &known, warnings)?;
        let stream_id = properties.read("data-stream-class-id", Value::unsigned)?;
        let stream_id = stream_id.unwrap_or(0);
        let Some(&at) = self.positions.get(&stream_id) else {
            return Err(
                Diagnostic::error(format!("no data stream class with `id` {stream_id}")).at(
                    properties.span_of("data-stream-class-id"),
                    "expected the `id` of a data stream class before this",
                ),
            );
        };
        let id = properties.read("id", Value::unsigned)?.unwrap_or(0);
        let span = properties.span_of("id");
        if let Some(first) = self.streams[at].events.insert(id, span) {
            return Err(Diagnostic::error(format!(
                "two event record classes with `id` {id} in the data stream class with `id` {stream_id}"
            ))
            .at(span, "given again")
            .because(first, "first event record class"));
        }
        let mut roots = self.streams[at].roots.clone();
        let mut scope =
            |name, scope| self.scope(&properties, name, &mut roots, scope, None, warnings);
        let specific_context = scope("specific-context-field-class", Scope::SpecificContext)?;
        let payload = scope("payload-field-class", Scope::Payload)?;
        self.streams[at].class.events.push(EventRecordClass {
            id,
            namespace: properties.read("namespace", Value::string)?,
            name: properties.read("name", Value::text)?.map(Arc::from),
            uid: properties.read("uid", Value::string)?,
            log_level: log::level(&properties, warnings),
            emf_uri: log::emf_uri(&properties),
            specific_context,
            payload,
            attributes: properties.attributes()?,
        });
        Ok(())
    }
}

/// A UUID as 16 numbers of a byte each.
fn uuid(value: &Value<'_>) -> Result<[u8; 16], Diagnostic> {
    const WHAT: &str = "a UUID as an array of 16 numbers";
    let numbers = value.array(WHAT)?;
    if numbers.len() != 16 {
        return value.expected(WHAT);
    }
    let mut uuid = [0; 16];
    for (byte, number) in uuid.iter_mut().zip(numbers) {
        *byte = match u8::try_from(number.unsigned()?) {
            Ok(byte) => byte,
            Err(_) => return number.expected("a number from 0 to 255"),
        };
    }
    Ok(uuid)
}

fn environment(value: &Value<'_>) -> Result<Vec<(String, EnvironmentValue)>, Diagnostic> {
    let entries = value.object("an object of entries")?;
    entries
        .iter()
        .map(|entry| {
            let value = match &entry.value.kind {
                Kind::Text(text) => EnvironmentValue::Text(text.to_string()),
                Kind::Integer(_) => EnvironmentValue::Integer(entry.value.signed()?),
                _ => return entry.value.expected("text in quotes or an integer"),
            };
            Ok((entry.name.to_string(), value))
        })
        .collect()
}

/// Seconds and cycles from the origin of a clock.
fn offset_of(
    value: &Value<'_>,
    frequency: u64,
    warnings: &mut Warnings,
) -> Result<(i64, u64), Diagnostic> {
    let known = ["seconds", "cycles"];
    let offset = Properties::new(value, "the offset of a clock", &known, warnings)?;
    let seconds = offset.read("seconds", Value::signed)?.unwrap_or(0);
    let cycles = offset.read("cycles", |cycles| match cycles.unsigned()? {
        number if number < frequency => Ok(number),
        _ => cycles.expected(&format!("less than a second, which is {frequency} cycles")),
    })?;
    Ok((seconds, cycles.unwrap_or(0)))
}

fn origin_of(value: &Value<'_>, warnings: &mut Warnings) -> Result<Origin, Diagnostic> {
    if let Kind::Text(_) = value.kind {
        return value
            .one_of(&[("unix-epoch", ())])
            .map(|()| Origin::UnixEpoch);
    }
    let known = ["namespace", "name", "uid"];
    let origin = Properties::new(value, "the origin of a clock", &known, warnings)?;
    Ok(Origin::Named {
        namespace: origin.read("namespace", Value::string)?,
        name: origin.require("name", Value::string)?,
        uid: origin.require("uid", Value::string)?,
    })
}
