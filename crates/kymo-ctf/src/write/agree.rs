//! Whether two class models describe the same bits: then packets and events are copied.

use std::collections::HashMap;

use kymo_machine::ByteOrder;
use kymo_model::Scope;

use crate::class::{
    BitLayout, FieldClass, FieldPath, FieldRef, Length, Selector, Step, StreamClass, TraceClass,
};
use crate::decode::choice::Choice;
use crate::deep;

/// What of a stream class of one trace and one of another are the same bits, whatever they are
/// called and shown as.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Agreement {
    /// Whether whole packets are, up to the values in their headers: the classes of packet and
    /// event headers agree in their roles, and all event classes have the same numbers.
    pub packets: bool,
    /// For each event class of the source, whether its contexts and payload are.
    pub events: Vec<bool>,
    /// What the places of fields of events are aligned to at most, in bits.
    pub align: u64,
    /// The byte order of the bits of events; `None` where they have both.
    pub order: Option<ByteOrder>,
}

impl Agreement {
    /// Compares the stream class at a position of one trace with one of another, of which
    /// `event_of` returns the event class for each event class of the first, by their positions.
    pub fn new(
        (source, position): (&TraceClass, usize),
        (target, to): (&TraceClass, usize),
        event_of: impl Fn(usize) -> Option<usize>,
    ) -> Self {
        let (Some(from), Some(into)) = (source.streams.get(position), target.streams.get(to))
        else {
            return Self::default();
        };
        let event_of: Vec<_> = (0..from.events.len()).map(event_of).collect();
        let agreement = deep::with_room(&[source, target], || {
            Self::of_streams((source, from), (target, into), &event_of)
        });
        agreement.unwrap_or_default()
    }

    fn of_streams(
        (source, from): (&TraceClass, &StreamClass),
        (target, into): (&TraceClass, &StreamClass),
        event_of: &[Option<usize>],
    ) -> Self {
        let mut heads = Walk::default();
        let mut packets = source.dialect.size_unit() == target.dialect.size_unit()
            && from.clock.is_some() == into.clock.is_some();
        for (scope, a, b) in [
            (
                Scope::PacketHeader,
                &source.packet_header,
                &target.packet_header,
            ),
            (
                Scope::PacketContext,
                &from.packet_context,
                &into.packet_context,
            ),
            (Scope::EventHeader, &from.event_header, &into.event_header),
        ] {
            packets &= heads.scope(scope, a.as_ref(), b.as_ref()) && roles(a, b);
        }
        let events: Vec<bool> = (0..from.events.len())
            .map(|event| {
                let pair = event_of[event].and_then(|to| into.events.get(to));
                let (a, Some(b)) = (&from.events[event], pair) else {
                    return false;
                };
                // Its bits may depend on what lies before it: those must be the same bits then.
                let mut walk = heads.clone();
                walk.needs_heads = false;
                let same = [
                    (
                        Scope::CommonContext,
                        &from.common_context,
                        &into.common_context,
                    ),
                    (
                        Scope::SpecificContext,
                        &a.specific_context,
                        &b.specific_context,
                    ),
                    (Scope::Payload, &a.payload, &b.payload),
                ]
                .into_iter()
                .all(|(scope, a, b)| walk.scope(scope, a.as_ref(), b.as_ref()));
                packets &= a.id == b.id;
                same && !walk.needs_heads
            })
            .collect();
        packets &= events.iter().all(|&same| same) && from.events.len() == into.events.len();
        let mut layout = Places::default();
        layout.stream(from);
        Self {
            packets,
            events,
            align: layout.align,
            order: layout.order.filter(|_| !layout.has_both),
        }
    }
}

/// Whether the fields of two classes of the same bits have the same roles.
fn roles(a: &Option<FieldClass>, b: &Option<FieldClass>) -> bool {
    fn of(a: &FieldClass, b: &FieldClass) -> bool {
        let (left, right) = (a.parts(), b.parts());
        // An array of bytes may be a BLOB elsewhere.
        let is_leaf = left.is_empty() || right.is_empty();
        a.roles() == b.roles()
            && (is_leaf
                || left.len() == right.len() && left.iter().zip(&right).all(|(a, b)| of(a, b)))
    }
    match (a, b) {
        (Some(a), Some(b)) => of(a, b),
        (None, None) => true,
        (Some(a), None) | (None, Some(a)) => a.parts().is_empty(),
    }
}

/// Goes through two classes side by side.
#[derive(Clone, Debug, Default)]
struct Walk {
    /// Where each field of the first is in the second.
    places: HashMap<FieldPath, FieldPath>,
    paths: Option<(FieldPath, FieldPath)>,
    /// Whether a length or selector refers to a packet's header or context, or an event's header.
    needs_heads: bool,
}

impl Walk {
    fn scope(&mut self, scope: Scope, a: Option<&FieldClass>, b: Option<&FieldClass>) -> bool {
        let root = FieldPath {
            scope,
            steps: Vec::new(),
        };
        self.paths = Some((root.clone(), root));
        let is_empty = |class: &FieldClass| matches!(class, FieldClass::Struct { members, min_align: 1 } if members.is_empty());
        match (a, b) {
            (Some(a), Some(b)) => self.class(a, b),
            (None, None) => true,
            (Some(a), None) | (None, Some(a)) => is_empty(a),
        }
    }

    fn class(&mut self, a: &FieldClass, b: &FieldClass) -> bool {
        use FieldClass::{
            Array, BitArray, BitMap, Blob, Bool, Float, Integer, Optional, SizedText, Struct, Text,
            VarInteger, Variant,
        };
        if let Some((from, to)) = &self.paths {
            self.places.insert(from.clone(), to.clone());
        }
        if let (Some(a), Some(b)) = (a.layout(), b.layout()) {
            return same_layout(a, b);
        }
        match (a, b) {
            (VarInteger(a), VarInteger(b)) => a.signed == b.signed,
            (
                Text { encoding, align },
                Text {
                    encoding: other,
                    align: place,
                },
            ) => (encoding, align) == (other, place),
            (
                SizedText {
                    length,
                    encoding,
                    align,
                },
                SizedText {
                    length: count,
                    encoding: other,
                    align: place,
                },
            ) => (encoding, align) == (other, place) && self.length(length, count),
            (Blob { length, .. }, Blob { length: other, .. }) => self.length(length, other),
            (
                Blob { length, .. },
                Array {
                    element,
                    length: count,
                    min_align: 1 | 2 | 4 | 8,
                    ..
                },
            )
            | (
                Array {
                    element,
                    length,
                    min_align: 1 | 2 | 4 | 8,
                    ..
                },
                Blob { length: count, .. },
            ) => is_byte(element) && self.length(length, count),
            (
                Struct { members, .. },
                Struct {
                    members: others, ..
                },
            ) => {
                a.align() == b.align()
                    && members.len() == others.len()
                    && members.iter().zip(others).enumerate().all(|(at, (a, b))| {
                        let step = Step::Child(at);
                        self.part((step, &a.class), (step, &b.class))
                    })
            }
            (
                Array {
                    element,
                    length,
                    min_align,
                    ..
                },
                Array {
                    element: other,
                    length: count,
                    min_align: align,
                    ..
                },
            ) => {
                let step = Step::Element;
                min_align.max(&element.begin_align()) == align.max(&other.begin_align())
                    && self.length(length, count)
                    && self.part((step, element), (step, other))
            }
            (
                Optional {
                    content,
                    selector,
                    when,
                },
                Optional {
                    content: other,
                    selector: field,
                    when: set,
                },
            ) => {
                let step = Step::Content;
                same_set(when, set)
                    && self.reference(selector, field)
                    && self.part((step, content), (step, other))
            }
            (
                Variant { options, selector },
                Variant {
                    options: others,
                    selector: field,
                },
            ) => {
                options.len() == others.len()
                    && self.reference(selector, field)
                    && options.iter().zip(others).enumerate().all(|(at, (a, b))| {
                        let step = Step::Child(at);
                        same_set(&a.when, &b.when) && self.part((step, &a.class), (step, &b.class))
                    })
            }
            (
                Optional {
                    content,
                    selector,
                    when,
                },
                Variant {
                    options,
                    selector: field,
                },
            ) => {
                let nothing = |class: &FieldClass| matches!(class, Struct { members, min_align: 1 } if members.is_empty());
                let Some(at) = options
                    .iter()
                    .position(|option| same_set(&option.when, when))
                else {
                    return false;
                };
                let others = options.iter().enumerate().filter(|&(other, _)| other != at);
                others.into_iter().all(|(_, option)| nothing(&option.class))
                    && self.reference(selector, field)
                    && self.part(
                        (Step::Content, content),
                        (Step::Child(at), &options[at].class),
                    )
            }
            (BitArray(_) | BitMap { .. } | Bool(_) | Float(_) | Integer { .. }, _) => false,
            _ => false,
        }
    }

    fn part(&mut self, a: (Step, &FieldClass), b: (Step, &FieldClass)) -> bool {
        if let Some((from, to)) = &mut self.paths {
            from.steps.push(a.0);
            to.steps.push(b.0);
        }
        let same = self.class(a.1, b.1);
        if let Some((from, to)) = &mut self.paths {
            from.steps.pop();
            to.steps.pop();
        }
        same
    }

    fn length(&mut self, a: &Length, b: &Length) -> bool {
        match (a, b) {
            (Length::Static(a), Length::Static(b)) => a == b,
            (Length::Dynamic(a), Length::Dynamic(b)) => self.reference(a, b),
            (Length::Inline(a), Length::Inline(b)) => match (a.layout(), b.layout()) {
                (Some(a), Some(b)) => same_layout(a, b),
                _ => false,
            },
            _ => false,
        }
    }

    fn reference(&mut self, a: &FieldRef, b: &FieldRef) -> bool {
        self.needs_heads |= a
            .targets
            .iter()
            .any(|target| target.scope < Scope::CommonContext);
        a.targets.len() == b.targets.len()
            && a.targets.iter().all(|target| {
                let place = self.places.get(target);
                place.is_some_and(|place| b.targets.contains(place))
            })
    }
}

fn is_byte(class: &FieldClass) -> bool {
    class
        .layout()
        .is_some_and(|layout| layout.bits == 8 && layout.align == 8 && !layout.reversed)
}

fn same_layout(a: &BitLayout, b: &BitLayout) -> bool {
    // A whole byte has no order.
    let is_byte = a.bits == 8 && a.align >= 8;
    let order = match is_byte {
        true => a.order,
        false => b.order,
    };
    *a == BitLayout { order, ..*b }
}

fn same_set(a: &Selector, b: &Selector) -> bool {
    a == b || Choice::new([a]) == Choice::new([b])
}

/// How the fields of events lie.
#[derive(Default)]
struct Places {
    align: u64,
    order: Option<ByteOrder>,
    has_both: bool,
}

impl Places {
    fn stream(&mut self, stream: &StreamClass) {
        self.align = 1;
        let of_events = stream
            .events
            .iter()
            .flat_map(|event| [&event.specific_context, &event.payload]);
        for class in of_events.chain([&stream.common_context]).flatten() {
            self.class(class);
        }
    }

    fn class(&mut self, class: &FieldClass) {
        for (_, class) in class.walk() {
            self.one(class);
        }
    }

    fn one(&mut self, class: &FieldClass) {
        let align = match class {
            FieldClass::Struct { min_align, .. } | FieldClass::Array { min_align, .. } => {
                *min_align
            }
            FieldClass::Optional { .. } | FieldClass::Variant { .. } => 1,
            leaf => leaf.align(),
        };
        self.align = self.align.max(align.into());
        if let Some(layout) = class.layout() {
            self.layout(layout);
        }
        if let FieldClass::Array {
            length: Length::Inline(length),
            ..
        }
        | FieldClass::SizedText {
            length: Length::Inline(length),
            ..
        }
        | FieldClass::Blob {
            length: Length::Inline(length),
            ..
        } = class
        {
            self.class(length);
        }
    }

    fn layout(&mut self, layout: &BitLayout) {
        self.align = self.align.max(layout.unit.unwrap_or(1).into());
        let is_byte = layout.bits == 8 && layout.align >= 8;
        if !is_byte {
            let order = *self.order.get_or_insert(layout.order);
            self.has_both |= order != layout.order;
        }
    }
}
