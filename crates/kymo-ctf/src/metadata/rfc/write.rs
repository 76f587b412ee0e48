//! The class model as metadata of RFC v1.1.
//!
//! Every type is written where it is used, with all that it is, so that nothing depends on types
//! which need no declaration. Only whether headers are packed or aligned is specified by a declaration.

use kymo_machine::ByteOrder;

use super::layout::{Alignment, Fixed};
use crate::class::{BitLayout, FieldClass, IntegerStyle, Length, StreamClass, TraceClass};
use crate::metadata::text::{Text, order, quoted};
use crate::metadata::write::WriteError;

/// The metadata of a model of RFC v1.1.
pub(in crate::metadata) fn write(trace: &TraceClass) -> Result<String, WriteError> {
    let native = trace.byte_order.ok_or_else(|| {
        WriteError("no class of RFC v1.1: it has no native byte order".to_owned())
    })?;
    let text = text_of(trace, native)?;
    let (read, _) = super::parse(&text, native)
        .map_err(|error| WriteError(format!("no class of RFC v1.1: {}", error.message)))?;
    match read == *trace {
        true => Ok(text),
        false => Err(WriteError(
            "no class of RFC v1.1: its language cannot say all of it".to_owned(),
        )),
    }
}

/// How the fixed headers of a model are aligned.
pub(in crate::metadata) fn alignment(trace: &TraceClass) -> Alignment {
    let aligns = trace.packet_header.as_ref().map(|header| {
        let mut aligns = header.parts().into_iter().map(FieldClass::align);
        (aligns.next(), aligns.max())
    });
    match aligns {
        Some((Some(32), Some(word @ (32 | 64)))) => Alignment::Natural(word),
        _ => Alignment::Packed,
    }
}

fn text_of(trace: &TraceClass, native: ByteOrder) -> Result<String, WriteError> {
    let alignment = alignment(trace);
    let mut writer = Writer {
        text: Text::default(),
        native,
        fixed: Fixed {
            order: native,
            alignment,
        },
    };
    writer.text.line("trace { major = 1; minor = 1; }");
    let aligned: &[u32] = match alignment {
        Alignment::Packed => &[],
        Alignment::Natural(32) => &[32, 64],
        Alignment::Natural(_) => &[32],
    };
    for bits in aligned {
        writer.text.line(&format!(
            "type uint{bits}_t {{ parent = integer; size = {bits}; align = 32; }}"
        ));
    }
    for stream in &trace.streams {
        writer.section(stream)?;
    }
    Ok(writer.text.into_string())
}

struct Writer {
    text: Text,
    native: ByteOrder,
    fixed: Fixed,
}

impl Writer {
    fn section(&mut self, stream: &StreamClass) -> Result<(), WriteError> {
        let name = stream.name.as_deref().unwrap_or_default();
        let few = self.fixed.event_header(1);
        let header_type = match stream.event_header.as_ref() == Some(&few) {
            true => "type1",
            false => "type2",
        };
        self.text.line("");
        self.text.open("section {");
        self.text.line(&format!("name = {};", quoted(name)));
        self.text.open("event {");
        self.text.line(&format!("header_type = {header_type};"));
        if let Some(context) = &stream.common_context {
            self.text.open("context {");
            self.text.start();
            self.class(context)?;
            self.text.end("");
            self.text.close("}");
        }
        self.text.close("}");
        self.text.close("}");
        for event in &stream.events {
            self.text.line("");
            self.text.open("event {");
            let event_name = quoted(event.name.as_deref().unwrap_or_default());
            self.text.line(&format!("name = {event_name};"));
            self.text.line(&format!("id = {};", event.id));
            self.text.line(&format!("section = {};", quoted(name)));
            if let Some(payload) = &event.payload {
                self.text.start();
                self.text.push("fields = ");
                self.class(payload)?;
                self.text.end(";");
            }
            self.text.close("}");
        }
        Ok(())
    }

    /// `type { ... }`
    fn class(&mut self, class: &FieldClass) -> Result<(), WriteError> {
        match class {
            FieldClass::Integer { layout, style } => self.integer(layout, style),
            FieldClass::Text { .. } => {
                self.text.push("type { parent = string; encoding = UTF8; }");
            }
            FieldClass::Struct { members, .. } => {
                self.text.push("type { parent = struct; fields =");
                self.text.enter();
                for member in members {
                    self.text.start();
                    self.text.push("{ ");
                    self.class(&member.class)?;
                    self.text.end(&format!(", {} }},", quoted(&member.name)));
                }
                self.text.leave();
                self.text.push("}; }");
            }
            FieldClass::Array {
                element, length, ..
            } => {
                match length {
                    Length::Static(length) => {
                        let text =
                            format!("type {{ parent = array; length = {length}; elem_type = ");
                        self.text.push(&text);
                    }
                    Length::Inline(length) => {
                        self.text.push("type { parent = sequence; length_type = ");
                        self.class(length)?;
                        self.text.push("; elem_type = ");
                    }
                    Length::Dynamic(_) => return Err(unlike()),
                }
                self.class(element)?;
                self.text.push("; }");
            }
            _ => return Err(unlike()),
        }
        Ok(())
    }

    fn integer(&mut self, layout: &BitLayout, style: &IntegerStyle) {
        let parent = match layout.unit {
            Some(_) => "gcc_bitfield",
            None => "integer",
        };
        let BitLayout { bits, align, .. } = layout;
        self.text.push(&format!(
            "type {{ parent = {parent}; size = {bits}; align = {align}; "
        ));
        if let Some(unit) = layout.unit {
            self.text.push(&format!("unit_size = {unit}; "));
        }
        if style.signed {
            self.text.push("signed = true; ");
        }
        if layout.order != self.native {
            let order = order(layout.order);
            self.text.push(&format!("byte_order = {order}; "));
        }
        if let Some(labels) = &style.labels {
            self.text.push("map =");
            self.text.enter();
            for mapping in labels.mappings() {
                for &(value, _) in &mapping.ranges {
                    let value = match style.signed {
                        true => i128::from(value as i64),
                        false => i128::from(value),
                    };
                    let label = quoted(&mapping.label);
                    self.text.line(&format!("{{ {value}, {label} }},"));
                }
            }
            self.text.leave();
            self.text.push("}; ");
        }
        self.text.push("}");
    }
}

fn unlike() -> WriteError {
    WriteError("no class of RFC v1.1: its language has no such type".to_owned())
}
