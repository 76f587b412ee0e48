//! The blocks: trace, environment, clocks, streams and events put together.
//!
//! Blocks may come in any order, as may the declarations at the root: first the native
//! byte order, the environment and the clocks are read, which types need, then all
//! declarations at the root, then the trace, the streams and the events.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use kymo_machine::ByteOrder;
use kymo_model::Scope;
use kymo_text::diagnostic::Diagnostic;
use kymo_time::{Clock, Origin};

use super::ast::{Attribute, Block, BlockKind, Entry, Root, Value};
use super::attributes::{self, Attributes};
use super::build::{Builder, Roots, Shared};
use super::declare::Types;
use super::types::{Class, Type};
use crate::class::{
    Dialect, EnvironmentValue, EventRecordClass, FieldClass, Role, StreamClass, TraceClass,
};
use crate::metadata::lexer::Span;
use crate::metadata::limits::{SPARE_CLASSES, Warnings};
use crate::metadata::uuid_text;

/// Makes a trace of the tree; also returns the warnings, which follow those that are known.
pub(super) fn lower(
    root: &Root,
    text_length: usize,
    mut warnings: Warnings,
) -> Result<(TraceClass, Vec<Diagnostic>), Diagnostic> {
    let trace = the_trace(root)?;
    version(trace)?;
    let byte_order = byte_order(trace)?;
    let environment = environment(root)?;
    let is_lttng = environment.iter().any(|(name, value)| {
        name == "tracer_name"
            && matches!(value, EnvironmentValue::Text(tracer) if tracer.starts_with("lttng"))
    });
    let mut names: HashMap<String, (usize, Span)> = HashMap::new();
    let mut clocks: Vec<Arc<Clock>> = Vec::new();
    for block in blocks(root, BlockKind::Clock) {
        let (clock, span) = clock(block, is_lttng, &mut warnings)?;
        let name = clock.name.clone().unwrap_or_default();
        match names.get(&name) {
            // babeltrace2 writes a clock once for each stream class that uses it.
            Some(&(at, _)) if *clocks[at] == clock => {}
            Some(&(_, first)) => {
                return Err(Diagnostic::error(format!("two different clocks `{name}`"))
                    .at(span, "declared again")
                    .because(first, "first declared here"));
            }
            None => {
                names.insert(name, (clocks.len(), span));
                clocks.push(Arc::new(clock));
            }
        }
    }
    let names = names
        .into_iter()
        .map(|(name, (at, _))| (name, at))
        .collect();
    let mut lowering = Lowering {
        types: Types::new(byte_order, names, &environment, text_length + SPARE_CLASSES),
        shared: Shared {
            budget: text_length + SPARE_CLASSES,
            clocks: clocks.len(),
            warnings,
        },
        header: None,
        uuid: None,
        streams: Vec::new(),
        stream_positions: HashMap::new(),
    };
    for declaration in &root.declarations {
        lowering.types.declare(declaration)?;
    }
    let packet_header = lowering.trace(trace)?;
    for block in blocks(root, BlockKind::Stream) {
        lowering.stream(block)?;
    }
    for block in blocks(root, BlockKind::Event) {
        lowering.event(block)?;
    }
    let mut roots = Roots::default();
    roots[Scope::PacketHeader as usize].clone_from(&lowering.header);
    lowering.close_references(0, &roots, Scope::PacketHeader)?;
    lowering.check(packet_header.as_ref())?;
    let uses_clock = lowering.streams.iter().any(|s| s.class.clock.is_some());
    if clocks.is_empty() && uses_clock {
        // Times without a clock are nanoseconds.
        clocks.push(Arc::new(Clock {
            name: Some("default".to_owned()),
            precision: Some(0),
            ..Clock::default()
        }));
    }
    let Lowering {
        types,
        shared,
        uuid,
        streams,
        ..
    } = lowering;
    let mut warnings = shared.warnings.0;
    warnings.extend(types.warnings.0);
    let class = TraceClass {
        dialect: Dialect::Ctf18,
        namespace: is_lttng.then(|| "lttng.org,2009".to_owned()),
        name: None,
        uid: uuid.map(uuid_text),
        uuid,
        byte_order: Some(byte_order),
        environment,
        packet_header,
        clocks,
        streams: streams.into_iter().map(|stream| stream.class).collect(),
        attributes: Vec::new(),
    };
    Ok((class, warnings))
}

fn blocks(root: &Root, kind: BlockKind) -> impl Iterator<Item = &Block> {
    root.blocks.iter().filter(move |block| block.kind == kind)
}

/// The attributes among the entries of a block.
fn attributes_of(block: &Block) -> impl Iterator<Item = &Attribute> {
    block.entries.iter().filter_map(|entry| match entry {
        Entry::Attribute(attribute) => Some(attribute),
        Entry::Declaration(_) => None,
    })
}

fn the_trace(root: &Root) -> Result<&Block, Diagnostic> {
    let mut traces = blocks(root, BlockKind::Trace);
    let Some(trace) = traces.next() else {
        return Err(Diagnostic::error("no `trace` block")
            .with_help("`trace { major = 1; minor = 8; byte_order = le; };` is the least"));
    };
    match traces.next() {
        None => Ok(trace),
        Some(second) => Err(Diagnostic::error("two `trace` blocks")
            .at(second.span, "second block")
            .because(trace.span, "first block")),
    }
}

/// Checks that the metadata is of CTF 1.8.
fn version(trace: &Block) -> Result<(), Diagnostic> {
    let mut numbers = [0; 2];
    let mut span = trace.span;
    for (number, key) in numbers.iter_mut().zip(["major", "minor"]) {
        let Some(attribute) = attributes_of(trace).find(|a| a.key.value == key) else {
            return Err(
                Diagnostic::error(format!("the `trace` block has no `{key}`"))
                    .at(trace.span, "expected `major = 1; minor = 8;` in this"),
            );
        };
        *number = attributes::unsigned(&attribute.value)?;
        span = attribute.value.span;
    }
    match numbers {
        [1, 8] => Ok(()),
        [major, minor] => Err(Diagnostic::error(format!(
            "unknown version of CTF: {major}.{minor}"
        ))
        .at(span, "expected `major = 1; minor = 8;`")),
    }
}

/// The native byte order, which types need before anything else is known.
fn byte_order(trace: &Block) -> Result<ByteOrder, Diagnostic> {
    let attribute = attributes_of(trace).find(|a| a.key.value == "byte_order");
    let Some(Attribute { value, .. }) = attribute else {
        return Err(
            Diagnostic::error("the `trace` block has no `byte_order`").at(
                trace.span,
                "expected `byte_order = le;` or `byte_order = be;` in this",
            ),
        );
    };
    attributes::byte_order(value)?.ok_or_else(|| {
        Diagnostic::error("the native byte order is not given").at(
            value.span,
            "expected `le` or `be`: this is what `native` means",
        )
    })
}

/// The environment; of an entry that is given twice, the last value.
fn environment(root: &Root) -> Result<Vec<(String, EnvironmentValue)>, Diagnostic> {
    let mut environment: Vec<(String, EnvironmentValue)> = Vec::new();
    let mut positions = HashMap::new();
    for attribute in blocks(root, BlockKind::Env).flat_map(attributes_of) {
        let value = match &attribute.value.value {
            Value::Integer(_) => EnvironmentValue::Integer(attributes::signed(&attribute.value)?),
            _ => EnvironmentValue::Text(attributes::text(&attribute.value)?.to_owned()),
        };
        let name = attribute.key.value.clone();
        let at = *positions.entry(name.clone()).or_insert(environment.len());
        match environment.get_mut(at) {
            Some(entry) => entry.1 = value,
            None => environment.push((name, value)),
        }
    }
    Ok(environment)
}

/// A clock and the place of its name (§8).
fn clock(
    block: &Block,
    is_lttng: bool,
    warnings: &mut Warnings,
) -> Result<(Clock, Span), Diagnostic> {
    const KNOWN: [&str; 8] = [
        "name",
        "uuid",
        "description",
        "freq",
        "precision",
        "offset_s",
        "offset",
        "absolute",
    ];
    let attributes = Attributes::new(attributes_of(block), "a clock", &KNOWN, warnings)?;
    let owner = ("this clock", block.span);
    let (name, span) = attributes.require("name", owner, |name| {
        Ok((attributes::text(name)?.to_owned(), name.span))
    })?;
    let frequency = attributes.read("freq", |freq| match attributes::unsigned(freq)? {
        0 => Err(Diagnostic::error("a clock that stands still")
            .at(freq.span, "expected at least 1 cycle per second")),
        frequency => Ok(frequency),
    })?;
    let frequency = frequency.unwrap_or(Clock::default().frequency);
    // Whole seconds are kept apart, so that the rest is less than one.
    let cycles = attributes.read("offset", attributes::integer)?.unwrap_or(0);
    let seconds = attributes
        .read("offset_s", attributes::signed)?
        .unwrap_or(0);
    let whole = i128::from(seconds) + cycles.div_euclid(i128::from(frequency));
    let offset_seconds = i64::try_from(whole).map_err(|_| {
        Diagnostic::error("the offset of a clock is too large").at(
            attributes.get("offset").map_or(block.span, |o| o.span),
            "expected less than 2^63 seconds in all",
        )
    })?;
    let is_absolute = attributes
        .read("absolute", attributes::boolean)?
        .unwrap_or(false);
    // LTTng's clocks count from the epoch without saying so.
    let is_absolute = is_absolute || is_lttng && name == "monotonic";
    let clock = Clock {
        namespace: None,
        uid: attributes.read("uuid", attributes::uuid)?.map(uuid_text),
        description: attributes
            .read("description", attributes::text)?
            .map(str::to_owned),
        frequency,
        offset_seconds,
        offset_cycles: cycles.rem_euclid(i128::from(frequency)) as u64,
        precision: Some(
            attributes
                .read("precision", attributes::unsigned)?
                .unwrap_or(0),
        ),
        accuracy: None,
        origin: if is_absolute {
            Origin::UnixEpoch
        } else {
            Origin::Unknown
        },
        name: Some(name),
    };
    Ok((clock, span))
}

struct Lowering<'a> {
    types: Types<'a>,
    shared: Shared,
    /// The structure of packet headers.
    header: Option<Rc<Type>>,
    uuid: Option<[u8; 16]>,
    streams: Vec<Stream>,
    /// Positions in `streams` by number.
    stream_positions: HashMap<u64, usize>,
}

/// A stream class that is being put together.
struct Stream {
    class: StreamClass,
    /// The structures of its scopes.
    roots: Roots,
    clock: Option<(usize, Span)>,
    /// The numbers of its event classes, and where they are declared.
    events: HashMap<u64, Span>,
    /// The place of the block; `None` of a stream class that no block declares.
    span: Option<Span>,
}

/// What the braces of a block hold.
struct Entries<'b> {
    attributes: Attributes<'b>,
    classes: HashMap<&'b str, Rc<Type>>,
}

impl<'b> Entries<'b> {
    /// Declares the types of a block and reads its attributes.
    fn new(
        types: &mut Types<'_>,
        block: &'b Block,
        owner: &str,
        known: &[&str],
    ) -> Result<Self, Diagnostic> {
        let attributes = Attributes::new(attributes_of(block), owner, known, &mut types.warnings)?;
        let mut classes = HashMap::new();
        for entry in &block.entries {
            match entry {
                Entry::Declaration(declaration) => types.declare(declaration)?,
                Entry::Attribute(Attribute { key, value }) => {
                    if let Value::Type(class) = &value.value
                        && known.contains(&&*key.value)
                    {
                        classes.insert(&*key.value, types.class(class)?);
                    }
                }
            }
        }
        Ok(Self {
            attributes,
            classes,
        })
    }

    /// The structure of a scope, where the block has one.
    fn root(&self, key: &str) -> Result<Option<Rc<Type>>, Diagnostic> {
        let Some(value) = self.attributes.get(key) else {
            return Ok(None);
        };
        match self.classes.get(key) {
            Some(class) if matches!(class.class, Class::Struct { .. }) => Ok(Some(class.clone())),
            _ => Err(Diagnostic::error(format!("`{key}` is not a structure"))
                .at(value.span, "expected a structure after `:=`")),
        }
    }
}

impl Lowering<'_> {
    /// Makes the field class of a scope, where there is one.
    fn scope(
        &mut self,
        roots: &Roots,
        clock: &mut Option<(usize, Span)>,
        scope: Scope,
        span: Span,
    ) -> Result<Option<FieldClass>, Diagnostic> {
        Builder::scope(&mut self.shared, roots, clock, scope, span)
    }

    /// Closes the references since `mark`, which may refer to `roots` up to `last`.
    fn close_references(
        &mut self,
        mark: usize,
        roots: &Roots,
        last: Scope,
    ) -> Result<(), Diagnostic> {
        let shared = &mut self.shared;
        self.types.close_references(mark, roots, last, shared)
    }

    /// The `trace` block (§7.2); returns the field class of packet headers.
    fn trace(&mut self, block: &Block) -> Result<Option<FieldClass>, Diagnostic> {
        const KNOWN: [&str; 5] = ["major", "minor", "uuid", "byte_order", "packet.header"];
        let (uuid, header) = self.types.scoped(|types| {
            let entries = Entries::new(types, block, "the trace", &KNOWN)?;
            let uuid = entries.attributes.read("uuid", attributes::uuid)?;
            Ok((uuid, entries.root("packet.header")?))
        })?;
        self.uuid = uuid;
        self.header = header;
        let mut roots = Roots::default();
        roots[Scope::PacketHeader as usize].clone_from(&self.header);
        self.scope(&roots, &mut None, Scope::PacketHeader, block.span)
    }

    /// A `stream` block.
    fn stream(&mut self, block: &Block) -> Result<(), Diagnostic> {
        const KNOWN: [&str; 4] = ["id", "event.header", "event.context", "packet.context"];
        let mark = self.types.references.open();
        let (id, structures) = self.types.scoped(|types| {
            let entries = Entries::new(types, block, "a stream", &KNOWN)?;
            let id = entries.attributes.read("id", attributes::unsigned)?;
            let structures = [
                (Scope::PacketContext, entries.root("packet.context")?),
                (Scope::EventHeader, entries.root("event.header")?),
                (Scope::CommonContext, entries.root("event.context")?),
            ];
            Ok((id, structures))
        })?;
        if let (None, Some(other)) = (id, self.streams.first()) {
            return Err(Diagnostic::error("a stream without `id` among several")
                .at(block.span, "expected `id = ...;` in this")
                .because(other.span.unwrap_or_default(), "another stream"));
        }
        let mut stream = self.new_stream(id.unwrap_or(0), Some(block.span));
        for (scope, structure) in structures {
            stream.roots[scope as usize] = structure;
            let class = self.scope(&stream.roots, &mut stream.clock, scope, block.span)?;
            match scope {
                Scope::PacketContext => stream.class.packet_context = class,
                Scope::EventHeader => stream.class.event_header = class,
                _ => stream.class.common_context = class,
            }
        }
        self.close_references(mark, &stream.roots, Scope::CommonContext)?;
        stream.class.clock = stream.clock.map(|(clock, _)| clock);
        if let Some(&first) = self.stream_positions.get(&stream.class.id) {
            let message = format!("two streams with `id` {}", stream.class.id);
            return Err(Diagnostic::error(message)
                .at(block.span, "declared again")
                .because(
                    self.streams[first].span.unwrap_or_default(),
                    "first declared here",
                ));
        }
        self.push_stream(stream);
        Ok(())
    }

    fn new_stream(&self, id: u64, span: Option<Span>) -> Stream {
        let mut roots = Roots::default();
        roots[Scope::PacketHeader as usize].clone_from(&self.header);
        Stream {
            class: StreamClass {
                id,
                namespace: None,
                name: None,
                uid: None,
                clock: None,
                packet_context: None,
                event_header: None,
                common_context: None,
                events: Vec::new(),
                attributes: Vec::new(),
            },
            roots,
            clock: None,
            events: HashMap::new(),
            span,
        }
    }

    fn push_stream(&mut self, stream: Stream) {
        self.stream_positions
            .insert(stream.class.id, self.streams.len());
        self.streams.push(stream);
    }

    /// An `event` block.
    fn event(&mut self, block: &Block) -> Result<(), Diagnostic> {
        const KNOWN: [&str; 7] = [
            "name",
            "id",
            "stream_id",
            "loglevel",
            "model.emf.uri",
            "context",
            "fields",
        ];
        if block.entries.is_empty() {
            return Err(Diagnostic::error("an empty `event` block")
                .at(block.span, "expected `name = \"...\";` in this"));
        }
        let mark = self.types.references.open();
        let (entries, context, payload) = self.types.scoped(|types| {
            let entries = Entries::new(types, block, "an event", &KNOWN)?;
            let context = entries.root("context")?;
            let payload = entries.root("fields")?;
            Ok((entries, context, payload))
        })?;
        let attributes = entries.attributes;
        let name = attributes.read("name", attributes::text)?;
        if name.is_none() {
            self.shared.warnings.push(
                Diagnostic::warning("an event without a name")
                    .at(block.span, "expected `name = \"...\";` in this"),
            );
        }
        let at = self.stream_of(block, &attributes)?;
        let stream = &self.streams[at];
        let id = match attributes.read("id", attributes::unsigned)? {
            Some(id) => id,
            None if stream.events.is_empty() => 0,
            None => {
                return Err(Diagnostic::error("an event without `id` among several")
                    .at(block.span, "expected `id = ...;` in this"));
            }
        };
        if let Some(&first) = stream.events.get(&id) {
            let message = format!(
                "two events with `id` {id} in the stream with `id` {}",
                stream.class.id
            );
            return Err(Diagnostic::error(message)
                .at(block.span, "declared again")
                .because(first, "first declared here"));
        }
        let mut roots = stream.roots.clone();
        roots[Scope::SpecificContext as usize] = context;
        let specific_context = self.scope(&roots, &mut None, Scope::SpecificContext, block.span)?;
        roots[Scope::Payload as usize] = payload;
        let payload = self.scope(&roots, &mut None, Scope::Payload, block.span)?;
        self.close_references(mark, &roots, Scope::Payload)?;
        let emf_uri = attributes.read("model.emf.uri", attributes::text)?;
        let stream = &mut self.streams[at];
        stream.events.insert(id, block.span);
        stream.class.events.push(EventRecordClass {
            id,
            namespace: None,
            name: name.map(Arc::from),
            uid: None,
            log_level: attributes.read("loglevel", attributes::signed)?,
            emf_uri: emf_uri.filter(|uri| !uri.is_empty()).map(Arc::from),
            specific_context,
            payload,
            attributes: Vec::new(),
        });
        Ok(())
    }

    /// Position of the stream that an event belongs to: where there is only one, it need
    /// not be specified, and if there is none, a stream without any structure is assumed.
    fn stream_of(
        &mut self,
        block: &Block,
        attributes: &Attributes<'_>,
    ) -> Result<usize, Diagnostic> {
        let Some(id) = attributes.get("stream_id") else {
            if self.streams.len() > 1 {
                return Err(Diagnostic::error(
                    "an event without `stream_id`, though there are several",
                )
                .at(block.span, "expected `stream_id = ...;` in this"));
            }
            if self.streams.is_empty() {
                let stream = self.new_stream(0, None);
                self.push_stream(stream);
            }
            return Ok(0);
        };
        let number = attributes::unsigned(id)?;
        self.stream_positions.get(&number).copied().ok_or_else(|| {
            Diagnostic::error(format!("no stream with `id` {number}"))
                .at(id.span, "expected the `id` of a `stream` block")
        })
    }

    /// Checks that packets state their stream class and events their event class, where
    /// there are several.
    fn check(&mut self, packet_header: Option<&FieldClass>) -> Result<(), Diagnostic> {
        if let [_, second, ..] = &*self.streams
            && !packet_header.is_some_and(|class| class.has_role(Role::StreamClassId))
        {
            return Err(
                Diagnostic::error("several streams, but packets do not name theirs")
                    .at(second.span.unwrap_or_default(), "second stream")
                    .with_help("expected an unsigned integer `stream_id` in `packet.header`"),
            );
        }
        for stream in &self.streams {
            if let [_, second, ..] = &*stream.class.events
                && !(stream.class.event_header.as_ref())
                    .is_some_and(|class| class.has_role(Role::EventClassId))
            {
                let span = stream.events.get(&second.id).copied();
                self.shared.warnings.push(
                    Diagnostic::warning("several events, but they do not have their number")
                        .at(span.unwrap_or_default(), "second event of its stream")
                        .with_help("expected an unsigned integer `id` in `event.header`"),
                );
            }
        }
        Ok(())
    }
}
