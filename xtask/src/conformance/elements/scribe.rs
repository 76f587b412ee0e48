//! The lines of one packet head or one event.

use kymo_ctf::class::{FieldClass, Length, Role, Selector};
use kymo_model::{Fault, FaultCode, FieldId, Kind, Schema, Scope, Visitor};
use kymo_time::Ticks;

use super::Lister;

/// What waits for the end of a value.
enum After {
    /// A line to write there.
    Line(String),
    /// A timestamp, which brings the clock forward.
    Clock(u64),
    /// The bytes of a text and its closing brace.
    Text,
    /// The bytes of a BLOB and its closing brace.
    Blob,
}

/// The fields of a schema with the classes they came from.
pub(super) struct Fields<'a> {
    schema: &'a Schema,
    classes: Vec<Option<&'a FieldClass>>,
}

impl<'a> Fields<'a> {
    pub(super) fn new(schema: &'a Schema, scopes: &[(Scope, Option<&'a FieldClass>)]) -> Self {
        let mut fields = Self {
            schema,
            classes: vec![None; schema.fields().len()],
        };
        for (scope, class) in scopes {
            if let (Some(root), Some(class)) = (schema.root(*scope), class) {
                fields.note(root, class);
            }
        }
        fields
    }

    fn note(&mut self, field: FieldId, class: &'a FieldClass) {
        self.classes[field.index()] = Some(class);
        for (&child, part) in self.schema.field(field).children.iter().zip(class.parts()) {
            self.note(child, part);
        }
    }

    fn roles(&self, field: FieldId) -> &[Role] {
        self.classes[field.index()].map_or(&[], FieldClass::roles)
    }

    /// How many bits of the clock a field has that takes `bits` bits of the packet.
    fn clock_bits(&self, field: FieldId, bits: u64) -> u32 {
        let bits = match self.classes[field.index()] {
            Some(FieldClass::VarInteger(_)) => bits / 8 * 7,
            _ => bits,
        };
        bits.min(64) as u32
    }

    /// `WORD`, with the name of the member behind it.
    fn head(&self, word: &str, field: FieldId) -> String {
        let field = self.schema.field(field);
        let in_struct = field
            .parent
            .is_some_and(|parent| self.schema.field(parent).kind == Kind::Struct);
        match &field.name {
            Some(name) if in_struct => format!("{word}:{name}"),
            _ => word.to_string(),
        }
    }
}

/// Writes the lines of one packet head or one event.
pub(super) struct Scribe<'l, 'a, 'f> {
    lister: &'l mut Lister<'a>,
    fields: &'f Fields<'f>,
    data: &'f [u8],
    level: usize,
    pub(super) at: u64,
    pub(super) clock: Ticks,
    /// What waits for the first structure, which may lie behind padding.
    pub(super) first: Vec<String>,
    /// What waits for the end of a value.
    after: Vec<(FieldId, After)>,
    /// The number of the stream class, to be listed before the packet context.
    pub(super) stream_line: Option<Option<u64>>,
    stream_id: Option<u64>,
    sizes: [Option<u64>; 2],
    uuid: Vec<u8>,
    pub(super) stopped: Option<(u64, FaultCode)>,
}

impl<'l, 'a, 'f> Scribe<'l, 'a, 'f> {
    pub(super) fn new(
        lister: &'l mut Lister<'a>,
        fields: &'f Fields<'f>,
        data: &'f [u8],
        clock: Ticks,
    ) -> Self {
        Self {
            lister,
            fields,
            data,
            level: 2,
            at: 0,
            clock,
            first: Vec::new(),
            after: Vec::new(),
            stream_line: None,
            stream_id: None,
            sizes: [None; 2],
            uuid: Vec::new(),
            stopped: None,
        }
    }

    pub(super) fn note(&mut self, text: &str) {
        if self.stopped.is_none() {
            self.lister.line(self.at, self.level, text);
        }
    }

    /// Writes what waited for the first structure.
    pub(super) fn begin(&mut self) {
        for line in std::mem::take(&mut self.first) {
            self.note(&line);
            self.level += usize::from(line.ends_with('{'));
        }
    }

    fn open(&mut self, text: &str) {
        self.begin();
        self.note(&format!("{text} {{"));
        self.level += 1;
    }

    pub(super) fn close(&mut self) {
        self.level -= 1;
        self.note("}");
    }

    /// Lists which stream this is, once.
    pub(super) fn stream_info(&mut self, bit: u64) {
        if let Some(class) = self.stream_line.take() {
            let mut info = "DSI".to_string();
            if let Some(class) = class {
                info += &format!(":T{class}");
            }
            if let Some(id) = self.stream_id {
                info += &format!(":I{id}");
            }
            self.at = bit;
            self.note(&info);
        }
    }

    fn number(&mut self, word: &str, field: FieldId, value: u64, text: &str) {
        let word = match self.fields.classes[field.index()] {
            Some(FieldClass::VarInteger(_)) => word.replacen('F', "V", 1),
            _ => word.to_string(),
        };
        let line = format!("{}:{text}", self.fields.head(&word, field));
        self.note(&line);
        self.uuid.push(value as u8);
        for role in self.fields.roles(field) {
            match role {
                Role::PacketMagic => {
                    let line = After::Line(format!("PMN:{value}"));
                    self.after.push((field, line));
                }
                Role::StreamId => self.stream_id = Some(value),
                Role::PacketTotalLength => self.sizes[0] = Some(value),
                Role::PacketContentLength => self.sizes[1] = Some(value),
                Role::DefaultClockTimestamp => self.after.push((field, After::Clock(value))),
                _ => {}
            }
        }
    }

    /// Sizes that cannot be end the listing where the last of them was read.
    fn check_sizes(&mut self) {
        let impossible = match self.sizes {
            [Some(total), _] if !total.is_multiple_of(8) || total < self.at => true,
            [_, Some(content)] if content < self.at => true,
            [Some(total), Some(content)] => content > total,
            _ => false,
        };
        if impossible && self.stopped.is_none() {
            self.stopped = Some((self.at, FaultCode::PacketSize));
        }
    }

    /// Lists what there is of the value at which decoding stopped, and gives where that
    /// was. `end` is the end of the content, or of the data where that comes first.
    pub(super) fn fault(&mut self, fault: Fault, end: u64, by_content: bool) -> u64 {
        if fault.code == FaultCode::IntegerTooLong {
            // It is reported at its last byte.
            return fault.bit + (fault.found - 1) * 8;
        }
        let class = fault
            .field
            .and_then(|field| self.fields.classes[field.index()]);
        let (Some(field), Some(class), FaultCode::BeyondContent) = (fault.field, class, fault.code)
        else {
            return fault.bit;
        };
        let begin = fault.bit.next_multiple_of(class.align().into());
        if begin > end {
            return if by_content { fault.bit } else { end };
        }
        if let FieldClass::VarInteger(_) = class {
            return if by_content { begin } else { end };
        }
        let Some(head) = self.bytes_head(field) else {
            return begin;
        };
        self.at = begin;
        self.open(&head);
        if by_content {
            return begin;
        }
        self.raw(begin, end, matches!(class, FieldClass::Blob { .. }));
        end
    }

    /// The first line of a text or BLOB, without the brace.
    fn bytes_head(&self, field: FieldId) -> Option<String> {
        let (word, length) = match self.fields.classes[field.index()]? {
            FieldClass::Text { .. } => return Some(self.fields.head("NTS", field)),
            FieldClass::SizedText { length, .. } => ("LS", length),
            FieldClass::Blob { length, .. } => ("LB", length),
            _ => return None,
        };
        let static_or_dynamic = match length {
            Length::Static(_) => 'S',
            _ => 'D',
        };
        let head = self
            .fields
            .head(&format!("{static_or_dynamic}{word}"), field);
        Some(match self.fields.classes[field.index()]? {
            FieldClass::Blob { media_type, .. } => format!("{head}:{media_type}"),
            _ => head,
        })
    }

    /// Lists bytes: those of a text as characters, where they are printable.
    fn raw(&mut self, begin: u64, end: u64, hexadecimal: bool) {
        let bytes = self
            .data
            .get((begin / 8) as usize..(end / 8) as usize)
            .unwrap_or_default();
        if bytes.is_empty() {
            return;
        }
        let mut line = format!("RD:{}:", bytes.len());
        for &byte in bytes {
            match byte {
                _ if hexadecimal => line += &format!("{byte:02x}"),
                b' '..=b'~' if byte != b'$' => line.push(byte.into()),
                _ => line += &format!("${byte:02x}"),
            }
        }
        self.note(&line);
    }

    /// Lists the UUID of the metadata, where bytes are one.
    fn uuid(&mut self, field: FieldId, bytes: &[u8]) {
        if !self.fields.roles(field).contains(&Role::MetadataUuid) || bytes.len() != 16 {
            return;
        }
        let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let hex = hex.concat();
        let parts = [
            &hex[..8],
            &hex[8..12],
            &hex[12..16],
            &hex[16..20],
            &hex[20..],
        ];
        self.note(&format!("MSU:{}", parts.join("-")));
    }
}

impl Visitor for Scribe<'_, '_, '_> {
    const POSITIONS: bool = true;

    fn at(&mut self, bit: u64) {
        self.at = bit;
    }

    fn after(&mut self, bit: u64) {
        let begin = std::mem::replace(&mut self.at, bit);
        for (field, what) in std::mem::take(&mut self.after) {
            match what {
                After::Line(line) => self.note(&line),
                After::Clock(value) => {
                    let bits = self.fields.clock_bits(field, bit - begin);
                    self.clock = self.clock.advance(value, bits);
                    self.note(&format!("DCV:{}", self.clock.0));
                }
                After::Text | After::Blob => {
                    self.at = begin;
                    self.raw(begin, bit, matches!(what, After::Blob));
                    self.at = bit;
                    let data = self.data;
                    let bytes = data.get((begin / 8) as usize..(bit / 8) as usize);
                    self.uuid(field, bytes.unwrap_or_default());
                    self.close();
                }
            }
        }
        self.check_sizes();
    }

    fn uint(&mut self, field: FieldId, value: u64) {
        self.number("FLUI", field, value, &value.to_string());
    }

    fn sint(&mut self, field: FieldId, value: i64) {
        self.number("FLSI", field, value as u64, &value.to_string());
    }

    fn float(&mut self, field: FieldId, value: f64) {
        let mut text = kymo_text::Line::new();
        text.general(value);
        let text = String::from_utf8_lossy(text.as_bytes());
        let line = format!("{}:{text}", self.fields.head("FLFPN", field));
        self.note(&line);
    }

    fn boolean(&mut self, field: FieldId, value: bool) {
        let line = format!("{}:{value}", self.fields.head("FLB", field));
        self.note(&line);
    }

    fn bits(&mut self, field: FieldId, value: u64) {
        let line = match self.fields.classes[field.index()] {
            Some(FieldClass::BitMap { flags, .. }) => {
                let mut active: Vec<&str> = flags
                    .iter()
                    .filter(|flag| flag.bits() & value != 0)
                    .map(|flag| &*flag.name)
                    .collect();
                active.sort_unstable();
                let head = self.fields.head("FLBM", field);
                format!("{head}:{value}:{}", active.join(","))
            }
            _ => format!("{}:{value}", self.fields.head("FLBA", field)),
        };
        self.note(&line);
    }

    fn text(&mut self, field: FieldId, _text: &[u8]) {
        self.open(&self.bytes_head(field).unwrap_or_default());
        self.after.push((field, After::Text));
    }

    fn blob(&mut self, field: FieldId, _bytes: &[u8]) {
        self.open(&self.bytes_head(field).unwrap_or_default());
        self.after.push((field, After::Blob));
    }

    fn begin_struct(&mut self, field: FieldId) {
        if self.fields.schema.field(field).parent.is_none() {
            let scope = self.fields.schema.scope_of(field);
            if scope == Scope::PacketContext {
                let at = self.at;
                self.stream_info(at);
            }
            self.open(&format!("SC:{}", scope as usize));
        }
        self.open(&self.fields.head("ST", field));
    }

    fn end_struct(&mut self, field: FieldId) {
        self.close();
        if self.fields.schema.field(field).parent.is_none() {
            self.close();
        }
    }

    fn begin_array(&mut self, field: FieldId, _length: u64) {
        let word = match self.fields.classes[field.index()] {
            Some(FieldClass::Array {
                length: Length::Static(_),
                ..
            }) => "SLA",
            _ => "DLA",
        };
        self.open(&self.fields.head(word, field));
        self.uuid.clear();
    }

    fn end_array(&mut self, field: FieldId) {
        let bytes = std::mem::take(&mut self.uuid);
        self.uuid(field, &bytes);
        self.close();
    }

    fn begin_optional(&mut self, field: FieldId, present: bool, selector: u64) {
        let state = if present { "enabled" } else { "disabled" };
        let head = |word| self.fields.head(word, field);
        let line = match self.fields.classes[field.index()] {
            Some(FieldClass::Optional { when, .. }) => match when {
                Selector::True => format!("{}:{state}", head("OB")),
                Selector::Unsigned(_) => format!("{}:{state}:{selector}", head("OU")),
                Selector::Signed(_) => format!("{}:{state}:{}", head("OS"), selector as i64),
            },
            _ => head("O"),
        };
        self.open(&line);
    }

    fn end_optional(&mut self, _field: FieldId) {
        self.close();
    }

    fn begin_variant(&mut self, field: FieldId, selected: u32, selector: u64) {
        let signed = match self.fields.classes[field.index()] {
            Some(FieldClass::Variant { options, .. }) => options
                .get(selected as usize)
                .is_some_and(|option| matches!(option.when, Selector::Signed(_))),
            _ => false,
        };
        let text = if signed {
            format!("{}:{}", self.fields.head("VS", field), selector as i64)
        } else {
            format!("{}:{selector}", self.fields.head("VU", field))
        };
        self.open(&text);
    }

    fn end_variant(&mut self, _field: FieldId) {
        self.close();
    }
}
