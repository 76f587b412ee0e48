//! The same fields, laid out otherwise: in another byte order, or without alignment.

use crate::class::{BitLayout, FieldClass, Length, Role, StreamClass, TraceClass};
use crate::deep;
use kymo_machine::ByteOrder;

/// Lays out all fields of a trace otherwise. Fields that do not have the native byte order keep
/// theirs, such as addresses of networks.
pub fn lay_out(trace: &mut TraceClass, order: Option<ByteOrder>, packed: bool) {
    let changed = deep::with_room(&[trace], || {
        let mut changed = trace.clone();
        lay_out_here(&mut changed, order, packed);
        changed
    });
    // What is too deep, fitting refuses.
    if let Some(changed) = changed {
        *trace = changed;
    }
}

fn lay_out_here(trace: &mut TraceClass, order: Option<ByteOrder>, packed: bool) {
    let native = trace.native_order();
    let to = order.unwrap_or(native);
    if trace.byte_order.is_some() {
        trace.byte_order = Some(to);
    }
    let how = |class: &FieldClass, packed: bool| How {
        native,
        to,
        // Bits of both byte orders cannot share a byte: where it could come to that, all stays
        // aligned.
        packed: packed && has_one_order(class, native, to),
    };
    let by_header = reports_content(&trace.packet_header);
    for stream in &mut trace.streams {
        // If packets do not state where their content ends, events must end with a byte.
        let packed = packed && (by_header || reports_content(&stream.packet_context));
        let of_events = stream
            .events
            .iter_mut()
            .flat_map(|event| [&mut event.specific_context, &mut event.payload]);
        let of_stream = of_events.chain([
            &mut stream.packet_context,
            &mut stream.event_header,
            &mut stream.common_context,
        ]);
        for class in of_stream.flatten() {
            how(class, packed).class(class);
        }
    }
    if let Some(class) = &mut trace.packet_header {
        how(class, packed).class(class);
    }
}

/// Whether a structure of packets states where their content ends.
fn reports_content(class: &Option<FieldClass>) -> bool {
    let class = class.as_ref();
    class.is_some_and(|class| class.has_role(Role::PacketContentLength))
}

/// Gives the times at which packets begin all of their bits. A time that has fewer goes on from the
/// packet before it, and in CTF 2 from zero.
pub fn widen_begins(trace: &mut TraceClass) {
    for stream in &mut trace.streams {
        let context = stream.packet_context.as_mut();
        if context.is_some_and(|context| widen(context, Role::DefaultClockTimestamp)) {
            widen_sizes(stream);
        }
    }
}

/// Gives all of their bits to times that could not be determined where packets and events before them are
/// left out. Events may keep few bits where another packet can begin with any of them and state all.
/// Which stream classes have other events so, a line each.
pub fn widen_times(trace: &mut TraceClass) -> Vec<String> {
    widen_begins(trace);
    let by_header = reports_content(&trace.packet_header);
    let mut lines = Vec::new();
    for stream in trace
        .streams
        .iter_mut()
        .filter(|stream| stream.clock.is_some())
    {
        let context = stream.packet_context.as_mut();
        let reports_begin = context.is_some_and(|context| {
            widen(context, Role::PacketEndTimestamp);
            context.has_role(Role::DefaultClockTimestamp)
        });
        let can_split = reports_begin && (by_header || reports_content(&stream.packet_context));
        if let Some(header) = &mut stream.event_header
            && !can_split
            && most_bits(header, Role::DefaultClockTimestamp).is_some_and(|bits| bits < 64)
        {
            widen(header, Role::DefaultClockTimestamp);
            lines.push(format!(
                "data stream class {}: times of events have 64 bits, since packets do not have theirs",
                stream.id
            ));
        }
    }
    lines
}

/// The bits of the largest field that has a role: of a variable-length integer, all of 64.
fn most_bits(class: &FieldClass, role: Role) -> Option<u32> {
    let bits = |class: &FieldClass| match class {
        FieldClass::Integer { layout, .. } => layout.bits,
        _ => 64,
    };
    let having = (class.walk()).filter(|(_, class)| class.roles().contains(&role));
    having.map(|(_, class)| bits(class)).max()
}

/// Gives all of their bits to the sizes that packets state: where more lies before the events than in the
/// recording, few bits could not hold the size of a packet with a single event.
pub fn widen_sizes(stream: &mut StreamClass) {
    if let Some(context) = &mut stream.packet_context {
        widen(context, Role::PacketTotalLength);
        widen(context, Role::PacketContentLength);
    }
}

/// Gives the integers that have a role all of the bits that an integer may have; whether one had fewer.
fn widen(class: &mut FieldClass, role: Role) -> bool {
    match class {
        FieldClass::Integer { layout, style } if style.roles.contains(&role) => {
            std::mem::replace(&mut layout.bits, 64) < 64
        }
        FieldClass::Struct { members, .. } => members
            .iter_mut()
            .map(|member| widen(&mut member.class, role))
            .fold(false, |any, was_narrow| any | was_narrow),
        FieldClass::Variant { options, .. } => options
            .iter_mut()
            .map(|option| widen(&mut option.class, role))
            .fold(false, |any, was_narrow| any | was_narrow),
        FieldClass::Optional { content, .. } => widen(content, role),
        _ => false,
    }
}

/// What becomes of layouts.
#[derive(Clone, Copy)]
struct How {
    native: ByteOrder,
    to: ByteOrder,
    packed: bool,
}

impl How {
    fn class(self, class: &mut FieldClass) {
        match class {
            FieldClass::BitArray(layout)
            | FieldClass::BitMap { layout, .. }
            | FieldClass::Bool(layout)
            | FieldClass::Float(layout)
            | FieldClass::Integer { layout, .. } => self.layout(layout),
            FieldClass::VarInteger(_) => {}
            FieldClass::Text { align, .. } => self.least(align, 8),
            FieldClass::SizedText { length, align, .. } => {
                self.least(align, 8);
                self.length(length);
            }
            FieldClass::Blob { length, .. } => self.length(length),
            FieldClass::Struct { members, min_align } => {
                self.least(min_align, 1);
                for member in members {
                    self.class(&mut member.class);
                }
            }
            // Readers know the UUID by its bytes, which lie on bytes.
            FieldClass::Array { roles, .. } if !roles.is_empty() => {}
            FieldClass::Array {
                element,
                length,
                min_align,
                ..
            } => {
                self.least(min_align, 1);
                self.length(length);
                self.class(element);
            }
            FieldClass::Optional { content, .. } => self.class(content),
            FieldClass::Variant { options, .. } => {
                for option in options {
                    self.class(&mut option.class);
                }
            }
        }
    }

    fn layout(self, layout: &mut BitLayout) {
        if layout.order == self.native {
            layout.order = self.to;
        }
        if self.packed {
            layout.align = 1;
            layout.unit = None;
        }
    }

    fn least(self, align: &mut u32, least: u32) {
        if self.packed {
            *align = least;
        }
    }

    fn length(self, length: &mut Length) {
        if let Length::Inline(class) = length {
            self.class(class);
        }
    }
}

/// Whether all bit fields will have one byte order.
fn has_one_order(class: &FieldClass, native: ByteOrder, to: ByteOrder) -> bool {
    class.walk().all(|(_, class)| {
        let layout = class.layout();
        layout.is_none_or(|layout| layout.order == native || layout.order == to)
    })
}
