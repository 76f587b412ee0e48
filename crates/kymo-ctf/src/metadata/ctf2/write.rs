//! The class model as metadata of CTF 2.
//!
//! First the model is brought to what CTF 2 can hold, or refused; then it is written. What was
//! written is read again: it is handed out only if it means the same.

use std::fmt;

use kymo_machine::ByteOrder;
use kymo_model::{Base, Labels, Scope};
use kymo_text::Line;
use kymo_time::{Clock, Origin};

use super::classes::{ANY_MEDIA, ENCODINGS, ROLES, UUID_ROLE};
use super::location::ORIGINS;
use super::log;
use crate::class::{
    BitLayout, Dialect, EnvironmentValue, EventRecordClass, FieldClass, FieldRef, IntegerStyle,
    Length, Role, Selector, Step, StreamClass, TraceClass,
};
use crate::metadata::limits::MAX_DEPTH;

/// Why a class model cannot be written as metadata of CTF 2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteError(String);

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WriteError {}

/// The metadata of CTF 2 that says what a class model says: a JSON text sequence.
///
/// The layout of fields stays as it is, so that the data streams of a trace of CTF 1.8
/// can be read with it. These have another form in CTF 2:
///
/// * the native byte order is left out: each field has its own;
/// * a UUID in packet headers, in CTF 1.8 an array of integers, is a BLOB;
/// * log level and identifier of the model element are attributes;
/// * times without a clock are ordinary numbers.
///
/// # Errors
///
/// Where CTF 2 cannot hold what the model says: a bit field that must not cross a unit, a length
/// that lies within its array, text aligned to more than bytes, a role that CTF 2 does not have
/// in that place, two environment entries of one name, and the like.
pub fn write(trace: &TraceClass) -> Result<String, WriteError> {
    let trace = fitted(trace)?;
    let text = text_of(&trace)?;
    let (read, _) = super::parse(&text)
        .map_err(|error| WriteError(format!("no class of CTF 2: {}", error.message)))?;
    if read != trace {
        return Err(WriteError(
            "no class of CTF 2: a length or selector refers to fields that no location tells \
             apart, or attributes contradict a log level"
                .to_owned(),
        ));
    }
    Ok(text)
}

// What CTF 2 can hold.

/// The model without what has no place in CTF 2, in the form that it has there.
fn fitted(trace: &TraceClass) -> Result<TraceClass, WriteError> {
    let mut trace = trace.clone();
    trace.dialect = Dialect::Ctf2;
    trace.byte_order = None;
    let has_uuid = trace.uuid.is_some();
    let fit = |class: &mut Option<FieldClass>, scope: Scope, owner: &str, has_clock| {
        let mut fit = Fit {
            has_uuid,
            has_clock,
            path: format!("{owner}, `{}", scope.name()),
        };
        class.as_mut().map_or(Ok(()), |class| fit.class(class, 1))
    };
    fit(
        &mut trace.packet_header,
        Scope::PacketHeader,
        "trace",
        false,
    )?;
    for stream in &mut trace.streams {
        let clock = stream.clock.is_some();
        let owner = format!("data stream class {}", stream.id);
        fit(
            &mut stream.packet_context,
            Scope::PacketContext,
            &owner,
            clock,
        )?;
        fit(&mut stream.event_header, Scope::EventHeader, &owner, clock)?;
        fit(
            &mut stream.common_context,
            Scope::CommonContext,
            &owner,
            clock,
        )?;
        for event in &mut stream.events {
            let owner = match &event.name {
                Some(name) => format!("event record class `{name}`"),
                None => format!("event record class {}", event.id),
            };
            let context = Scope::SpecificContext;
            fit(&mut event.specific_context, context, &owner, clock)?;
            fit(&mut event.payload, Scope::Payload, &owner, clock)?;
            log_attributes(event, &owner)?;
        }
    }
    Ok(trace)
}

/// Adds the attributes of the log level and of the model element where they are not there.
fn log_attributes(event: &mut EventRecordClass, owner: &str) -> Result<(), WriteError> {
    let is_untold = |name| !log::tells(&event.attributes, name);
    let level = event.log_level.filter(|_| is_untold(log::LEVEL));
    let uri = event.emf_uri.clone().filter(|_| is_untold(log::EMF_URI));
    if level.is_none() && uri.is_none() {
        return Ok(());
    }
    let is_free = |space: &&str| !event.attributes.iter().any(|(known, _)| known == space);
    let Some(space) = log::SPACES.into_iter().find(is_free) else {
        return Err(WriteError(format!(
            "{owner}: its attributes leave no name space for the log level"
        )));
    };
    let mut json = Json::default();
    json.open('{');
    if let Some(level) = level {
        json.key(log::LEVEL);
        match usize::try_from(level)
            .ok()
            .and_then(|level| log::LEVELS.get(level))
        {
            Some(name) => json.string(name),
            None => json.number(level),
        }
    }
    json.optional(log::EMF_URI, uri.as_deref());
    json.close('}');
    event.attributes.push((space.to_owned(), json.text));
    Ok(())
}

/// Brings the field classes of one scope to what CTF 2 can hold.
struct Fit {
    has_uuid: bool,
    has_clock: bool,
    /// Whose field, and the way to it, for errors.
    path: String,
}

impl Fit {
    fn error<T>(&self, what: &str) -> Result<T, WriteError> {
        Err(WriteError(format!("{}`: {what}", self.path)))
    }

    fn class(&mut self, class: &mut FieldClass, depth: usize) -> Result<(), WriteError> {
        if depth > MAX_DEPTH {
            return self.error("field classes lie too deep within each other");
        }
        if let Some(length) = uuid_length(class)
            && length == Length::Static(16)
        {
            *class = FieldClass::Blob {
                length,
                media_type: ANY_MEDIA.to_owned(),
                roles: vec![Role::MetadataUuid],
            };
        }
        match class {
            FieldClass::BitArray(layout)
            | FieldClass::BitMap { layout, .. }
            | FieldClass::Bool(layout)
            | FieldClass::Float(layout) => self.layout(layout),
            FieldClass::Integer { layout, style } => {
                self.layout(layout)?;
                self.style(style)
            }
            FieldClass::VarInteger(style) => self.style(style),
            FieldClass::Text { align, .. } => self.text_align(*align),
            FieldClass::SizedText { align, length, .. } => {
                self.text_align(*align)?;
                self.length(length)
            }
            FieldClass::Blob { length, roles, .. } => {
                roles.retain(|role| *role != Role::MetadataUuid || self.has_uuid);
                self.length(length)
            }
            FieldClass::Struct { members, .. } => {
                for member in members {
                    self.part(Some(&member.name), &mut member.class, depth)?;
                }
                Ok(())
            }
            FieldClass::Array {
                element,
                length,
                roles,
                ..
            } => {
                if !roles.is_empty() {
                    return self.error("an array with a role");
                }
                self.length(length)?;
                self.part(None, element, depth)
            }
            FieldClass::Optional { content, .. } => self.part(None, content, depth),
            FieldClass::Variant { options, .. } => {
                for option in options {
                    self.part(option.name.as_deref(), &mut option.class, depth)?;
                }
                Ok(())
            }
        }
    }

    fn part(
        &mut self,
        name: Option<&str>,
        class: &mut FieldClass,
        depth: usize,
    ) -> Result<(), WriteError> {
        let before = self.path.len();
        if let Some(name) = name {
            self.path += ".";
            self.path += name;
        }
        let result = self.class(class, depth + 1);
        // The path to an error is told from outside.
        if result.is_ok() {
            self.path.truncate(before);
        }
        result
    }

    fn layout(&self, layout: &BitLayout) -> Result<(), WriteError> {
        match layout.unit {
            Some(unit) => self.error(&format!("a bit field that must not cross {unit} bits")),
            None => Ok(()),
        }
    }

    fn text_align(&self, align: u32) -> Result<(), WriteError> {
        match align {
            8 => Ok(()),
            _ => self.error(&format!("text aligned to {align} bits instead of 8")),
        }
    }

    fn length(&self, length: &Length) -> Result<(), WriteError> {
        match length {
            Length::Inline(_) => self.error("a length that lies within the field itself"),
            _ => Ok(()),
        }
    }

    fn style(&self, style: &mut IntegerStyle) -> Result<(), WriteError> {
        if !self.has_clock {
            style.roles.retain(|role| {
                !matches!(role, Role::DefaultClockTimestamp | Role::PacketEndTimestamp)
            });
        }
        match style.signed && !style.roles.is_empty() {
            true => self.error("a signed integer with a role"),
            false => Ok(()),
        }
    }
}

/// The length of an array of bytes that is the UUID of the metadata.
fn uuid_length(class: &FieldClass) -> Option<Length> {
    let FieldClass::Array {
        element,
        length,
        min_align: 1 | 2 | 4 | 8,
        roles,
    } = class
    else {
        return None;
    };
    let is_byte = matches!(&**element,
        FieldClass::Integer { layout, .. } if layout.bits == 8 && layout.align == 8 && !layout.reversed);
    (is_byte && roles[..] == [Role::MetadataUuid]).then(|| length.clone())
}

// JSON.

/// JSON text that is being written.
#[derive(Default)]
struct Json {
    text: String,
}

impl Json {
    /// A comma, where something comes before in the same array or object.
    fn next(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with(['{', '[', ':', '\u{1e}']) {
            self.text.push(',');
        }
    }

    fn open(&mut self, bracket: char) {
        self.next();
        self.text.push(bracket);
    }

    fn close(&mut self, bracket: char) {
        self.text.push(bracket);
    }

    fn key(&mut self, name: &str) {
        self.string(name);
        self.text.push(':');
    }

    fn string(&mut self, text: &str) {
        self.next();
        let mut line = Line::new();
        line.json_string(text.as_bytes());
        self.text += &String::from_utf8_lossy(line.as_bytes());
    }

    fn number(&mut self, number: impl Into<i128>) {
        self.next();
        self.text += &number.into().to_string();
    }

    fn property(&mut self, name: &str, text: &str) {
        self.key(name);
        self.string(text);
    }

    fn number_property(&mut self, name: &str, number: impl Into<i128>) {
        self.key(name);
        self.number(number);
    }

    fn optional(&mut self, name: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.property(name, text);
        }
    }

    fn numbers(&mut self, numbers: impl IntoIterator<Item = impl Into<i128>>) {
        self.open('[');
        for number in numbers {
            self.number(number);
        }
        self.close(']');
    }

    fn ranges(&mut self, ranges: impl Iterator<Item = (i128, i128)>) {
        self.open('[');
        for (low, high) in ranges {
            self.numbers([low, high]);
        }
        self.close(']');
    }

    fn attributes(&mut self, attributes: &[(String, String)]) -> Result<(), WriteError> {
        if attributes.is_empty() {
            return Ok(());
        }
        self.key("attributes");
        self.open('{');
        for (space, json) in attributes {
            let value = super::json::parse(json, 0..json.len());
            if !value.is_ok_and(|(_, end)| end == json.len()) {
                return Err(WriteError(format!(
                    "the attributes of the name space `{space}` are no JSON"
                )));
            }
            self.key(space);
            self.text += json;
        }
        self.close('}');
        Ok(())
    }
}

// Fragments.

fn text_of(trace: &TraceClass) -> Result<String, WriteError> {
    let mut json = Json::default();
    begin(&mut json, "preamble");
    json.number_property("version", 2);
    if let Some(uuid) = trace.uuid {
        json.key("uuid");
        json.numbers(uuid);
    }
    end(&mut json);
    trace_class(&mut json, trace)?;
    for (position, clock) in trace.clocks.iter().enumerate() {
        clock_class(&mut json, position, clock);
    }
    for stream in &trace.streams {
        let mut roots = [None; 6];
        roots[Scope::PacketHeader as usize] = trace.packet_header.as_ref();
        roots[Scope::PacketContext as usize] = stream.packet_context.as_ref();
        roots[Scope::EventHeader as usize] = stream.event_header.as_ref();
        roots[Scope::CommonContext as usize] = stream.common_context.as_ref();
        stream_class(&mut json, stream, &roots)?;
        for event in &stream.events {
            roots[Scope::SpecificContext as usize] = event.specific_context.as_ref();
            roots[Scope::Payload as usize] = event.payload.as_ref();
            event_class(&mut json, stream.id, event, &roots)?;
        }
    }
    Ok(json.text)
}

fn begin(json: &mut Json, kind: &str) {
    json.text.push('\u{1e}');
    json.open('{');
    json.property("type", kind);
}

fn end(json: &mut Json) {
    json.close('}');
    json.text.push('\n');
}

/// Name space, name and unique identifier.
fn identity(json: &mut Json, namespace: &Option<String>, name: Option<&str>, uid: &Option<String>) {
    json.optional("namespace", namespace.as_deref());
    json.optional("name", name);
    json.optional("uid", uid.as_deref());
}

fn trace_class(json: &mut Json, trace: &TraceClass) -> Result<(), WriteError> {
    begin(json, "trace-class");
    identity(json, &trace.namespace, trace.name.as_deref(), &trace.uid);
    if !trace.environment.is_empty() {
        json.key("environment");
        json.open('{');
        for (name, value) in &trace.environment {
            match value {
                EnvironmentValue::Integer(number) => json.number_property(name, *number),
                EnvironmentValue::Text(text) => json.property(name, text),
            }
        }
        json.close('}');
    }
    let mut roots = [None; 6];
    roots[Scope::PacketHeader as usize] = trace.packet_header.as_ref();
    scope(
        json,
        "packet-header-field-class",
        Scope::PacketHeader,
        &roots,
    )?;
    json.attributes(&trace.attributes)?;
    end(json);
    Ok(())
}

fn clock_id(position: usize) -> String {
    format!("clock-{position}")
}

fn clock_class(json: &mut Json, position: usize, clock: &Clock) {
    begin(json, "clock-class");
    json.property("id", &clock_id(position));
    identity(json, &clock.namespace, clock.name.as_deref(), &clock.uid);
    json.optional("description", clock.description.as_deref());
    json.number_property("frequency", clock.frequency);
    match &clock.origin {
        Origin::UnixEpoch => json.property("origin", "unix-epoch"),
        Origin::Named {
            namespace,
            name,
            uid,
        } => {
            json.key("origin");
            json.open('{');
            json.optional("namespace", namespace.as_deref());
            json.property("name", name);
            json.property("uid", uid);
            json.close('}');
        }
        Origin::Unknown => {}
    }
    if (clock.offset_seconds, clock.offset_cycles) != (0, 0) {
        json.key("offset-from-origin");
        json.open('{');
        json.number_property("seconds", clock.offset_seconds);
        json.number_property("cycles", clock.offset_cycles);
        json.close('}');
    }
    for (name, cycles) in [("precision", clock.precision), ("accuracy", clock.accuracy)] {
        if let Some(cycles) = cycles {
            json.number_property(name, cycles);
        }
    }
    end(json);
}

fn stream_class(
    json: &mut Json,
    stream: &StreamClass,
    roots: &Roots<'_>,
) -> Result<(), WriteError> {
    begin(json, "data-stream-class");
    json.number_property("id", stream.id);
    identity(json, &stream.namespace, stream.name.as_deref(), &stream.uid);
    if let Some(clock) = stream.clock {
        json.property("default-clock-class-id", &clock_id(clock));
    }
    for (name, part) in [
        ("packet-context-field-class", Scope::PacketContext),
        ("event-record-header-field-class", Scope::EventHeader),
        (
            "event-record-common-context-field-class",
            Scope::CommonContext,
        ),
    ] {
        scope(json, name, part, roots)?;
    }
    json.attributes(&stream.attributes)?;
    end(json);
    Ok(())
}

fn event_class(
    json: &mut Json,
    stream_id: u64,
    event: &EventRecordClass,
    roots: &Roots<'_>,
) -> Result<(), WriteError> {
    begin(json, "event-record-class");
    json.number_property("data-stream-class-id", stream_id);
    json.number_property("id", event.id);
    identity(json, &event.namespace, event.name.as_deref(), &event.uid);
    let context = "specific-context-field-class";
    scope(json, context, Scope::SpecificContext, roots)?;
    scope(json, "payload-field-class", Scope::Payload, roots)?;
    json.attributes(&event.attributes)?;
    end(json);
    Ok(())
}

// Field classes.

/// The structures of the scopes.
type Roots<'a> = [Option<&'a FieldClass>; 6];

fn scope(json: &mut Json, name: &str, scope: Scope, roots: &Roots<'_>) -> Result<(), WriteError> {
    match roots[scope as usize] {
        Some(class) => {
            json.key(name);
            field_class(json, class, roots)
        }
        None => Ok(()),
    }
}

fn field_class(json: &mut Json, class: &FieldClass, roots: &Roots<'_>) -> Result<(), WriteError> {
    json.open('{');
    let static_or = |length: &Length| match length {
        Length::Static(_) => "static",
        _ => "dynamic",
    };
    match class {
        FieldClass::BitArray(bits) => layout(json, "bit-array", bits),
        FieldClass::BitMap {
            layout: bits,
            flags,
        } => {
            layout(json, "bit-map", bits);
            json.key("flags");
            json.open('{');
            for flag in flags.iter() {
                json.key(&flag.name);
                json.ranges(flag.ranges.iter().map(|&range| wide(range, false)));
            }
            json.close('}');
        }
        FieldClass::Bool(bits) => layout(json, "boolean", bits),
        FieldClass::Integer {
            layout: bits,
            style,
        } => {
            layout(json, integer_type(style), bits);
            integer(json, style);
        }
        FieldClass::VarInteger(style) => {
            json.property("type", &format!("variable-length-{}", integer_type(style)));
            integer(json, style);
        }
        FieldClass::Float(bits) => layout(json, "floating-point-number", bits),
        FieldClass::Text { encoding, .. } => {
            json.property("type", "null-terminated-string");
            word(json, "encoding", &ENCODINGS, *encoding);
        }
        FieldClass::SizedText {
            length, encoding, ..
        } => {
            json.property("type", &format!("{}-length-string", static_or(length)));
            word(json, "encoding", &ENCODINGS, *encoding);
            self::length(json, length, roots)?;
        }
        FieldClass::Blob {
            length,
            media_type,
            roles,
        } => {
            json.property("type", &format!("{}-length-blob", static_or(length)));
            self::length(json, length, roots)?;
            if media_type != ANY_MEDIA {
                json.property("media-type", media_type);
            }
            if !roles.is_empty() {
                json.key("roles");
                json.open('[');
                json.string(UUID_ROLE);
                json.close(']');
            }
        }
        FieldClass::Struct { members, min_align } => {
            json.property("type", "structure");
            if *min_align != 1 {
                json.number_property("minimum-alignment", *min_align);
            }
            json.key("member-classes");
            json.open('[');
            for member in members {
                json.open('{');
                json.property("name", &member.name);
                json.key("field-class");
                field_class(json, &member.class, roots)?;
                json.attributes(&member.attributes)?;
                json.close('}');
            }
            json.close(']');
        }
        FieldClass::Array {
            element,
            length,
            min_align,
            ..
        } => {
            json.property("type", &format!("{}-length-array", static_or(length)));
            self::length(json, length, roots)?;
            if *min_align != 1 {
                json.number_property("minimum-alignment", *min_align);
            }
            json.key("element-field-class");
            field_class(json, element, roots)?;
        }
        FieldClass::Optional {
            content,
            selector,
            when,
        } => {
            json.property("type", "optional");
            location(json, "selector-field-location", selector, roots)?;
            selector_ranges(json, when);
            json.key("field-class");
            field_class(json, content, roots)?;
        }
        FieldClass::Variant { options, selector } => {
            json.property("type", "variant");
            location(json, "selector-field-location", selector, roots)?;
            json.key("options");
            json.open('[');
            for option in options {
                json.open('{');
                json.optional("name", option.name.as_deref());
                selector_ranges(json, &option.when);
                json.key("field-class");
                field_class(json, &option.class, roots)?;
                json.close('}');
            }
            json.close(']');
        }
    }
    json.close('}');
    Ok(())
}

fn layout(json: &mut Json, kind: &str, layout: &BitLayout) {
    json.property("type", &format!("fixed-length-{kind}"));
    json.number_property("length", layout.bits);
    let (order, other) = match layout.order {
        ByteOrder::Little => ("little-endian", "last-to-first"),
        ByteOrder::Big => ("big-endian", "first-to-last"),
    };
    json.property("byte-order", order);
    if layout.reversed {
        json.property("bit-order", other);
    }
    if layout.align != 1 {
        json.number_property("alignment", layout.align);
    }
}

fn integer_type(style: &IntegerStyle) -> &'static str {
    match style.signed {
        true => "signed-integer",
        false => "unsigned-integer",
    }
}

fn integer(json: &mut Json, style: &IntegerStyle) {
    let base: u8 = match style.base {
        Base::Binary => 2,
        Base::Octal => 8,
        Base::Decimal => 10,
        Base::Hexadecimal => 16,
    };
    if base != 10 {
        json.number_property("preferred-display-base", base);
    }
    if let Some(labels) = &style.labels {
        mappings(json, labels);
    }
    if !style.roles.is_empty() {
        json.key("roles");
        json.open('[');
        for role in &style.roles {
            if let Some((name, _)) = ROLES.iter().find(|(_, known)| known == role) {
                json.string(name);
            }
        }
        json.close(']');
    }
}

fn mappings(json: &mut Json, labels: &Labels) {
    json.key("mappings");
    json.open('{');
    for mapping in labels.mappings() {
        json.key(&mapping.label);
        let ranges = mapping.ranges.iter();
        json.ranges(ranges.map(|&range| wide(range, labels.is_signed())));
    }
    json.close('}');
}

/// A range of bits as numbers.
fn wide((low, high): (u64, u64), signed: bool) -> (i128, i128) {
    match signed {
        true => ((low as i64).into(), (high as i64).into()),
        false => (low.into(), high.into()),
    }
}

/// The word that stands for a value other than the default.
fn word<T: PartialEq + Default>(json: &mut Json, name: &str, words: &[(&str, T)], value: T) {
    if value != T::default()
        && let Some((word, _)) = words.iter().find(|(_, known)| *known == value)
    {
        json.property(name, word);
    }
}

fn length(json: &mut Json, length: &Length, roots: &Roots<'_>) -> Result<(), WriteError> {
    match length {
        Length::Static(length) => json.number_property("length", *length),
        Length::Dynamic(field) => location(json, "length-field-location", field, roots)?,
        // Refused before.
        Length::Inline(_) => {}
    }
    Ok(())
}

fn selector_ranges(json: &mut Json, selector: &Selector) {
    let name = "selector-field-ranges";
    match selector {
        Selector::True => {}
        Selector::Unsigned(ranges) => {
            json.key(name);
            json.ranges(ranges.iter().map(|&range| wide(range, false)));
        }
        Selector::Signed(ranges) => {
            json.key(name);
            let wide = |&(low, high): &(i64, i64)| (low.into(), high.into());
            json.ranges(ranges.iter().map(wide));
        }
    }
}

/// The location of a field: its scope, and the names on the way.
fn location(
    json: &mut Json,
    name: &str,
    field: &FieldRef,
    roots: &Roots<'_>,
) -> Result<(), WriteError> {
    let unknown = || WriteError("a length or selector refers to no field".to_owned());
    let mut way: Option<(Scope, Vec<&str>)> = None;
    for target in &field.targets {
        let mut names = Vec::new();
        let mut class = roots[target.scope as usize].ok_or_else(unknown)?;
        for step in &target.steps {
            class = match (class, *step) {
                (FieldClass::Struct { members, .. }, Step::Child(at)) => {
                    let member = members.get(at).ok_or_else(unknown)?;
                    names.push(&*member.name);
                    &member.class
                }
                (FieldClass::Variant { options, .. }, Step::Child(at)) => {
                    &options.get(at).ok_or_else(unknown)?.class
                }
                (FieldClass::Array { element, .. }, Step::Element) => element,
                (FieldClass::Optional { content, .. }, Step::Content) => content,
                _ => return Err(unknown()),
            };
        }
        let this = (target.scope, names);
        if way.as_ref().is_some_and(|way| *way != this) {
            return Err(WriteError(format!(
                "a length or selector refers to both `{}` and `{}`, which have no common location",
                way.map(|(_, names)| names.join(".")).unwrap_or_default(),
                this.1.join(".")
            )));
        }
        way = Some(this);
    }
    let (scope, names) = way.ok_or_else(unknown)?;
    json.key(name);
    json.open('{');
    if let Some((origin, _)) = ORIGINS.iter().find(|(_, known)| *known == scope) {
        json.property("origin", origin);
    }
    json.key("path");
    json.open('[');
    for name in names {
        json.string(name);
    }
    json.close(']');
    json.close('}');
    Ok(())
}
