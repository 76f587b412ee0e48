//! Class models of recordings that are not traces, made from their schemas.

use std::collections::HashSet;
use std::sync::Arc;

use kymo_cpel::file::{Section, kind};
use kymo_cpel::recording::Datum;
use kymo_ctf::class::{
    Dialect, Encoding, EventRecordClass, FieldClass, FieldPath, FieldRef, IntegerStyle, Length,
    Member, Role, Selector, Step, StreamClass, TraceClass, VariantOption,
};
use kymo_machine::ByteOrder;
use kymo_model::{Base, EventClass, FieldId, Kind, Recording, Schema, Scope};
use kymo_time::Clock;

use super::plan::{header, layout_of, number};
use crate::AnyRecording;

/// The numbers of stream classes of a recording, each once, in the order of its streams.
pub(super) fn stream_classes(recording: &AnyRecording) -> Vec<u64> {
    let mut numbers = Vec::new();
    let streams = recording.streams().iter().map(|stream| stream.class);
    let events = recording
        .event_classes()
        .iter()
        .map(|class| class.stream_class);
    for number in streams.chain(events) {
        if !numbers.contains(&number) {
            numbers.push(number);
        }
    }
    numbers
}

/// The class model of a recording, to be fitted to a dialect: packets with sizes, times and counters,
/// events with a number and full ticks.
pub(super) fn of(recording: &AnyRecording, order: ByteOrder, to: Dialect) -> TraceClass {
    let clock = |class| {
        let info = recording
            .streams()
            .iter()
            .find(|stream| stream.class == class);
        info.and_then(|info| info.clock.clone())
    };
    let streams = stream_classes(recording)
        .into_iter()
        .map(|class| (class, clock(class)))
        .collect::<Vec<_>>();
    of_classes(
        recording.name(),
        &streams,
        recording.event_classes(),
        order,
        to,
    )
}

/// The same of stream classes, by their numbers and clocks, and event classes.
pub(super) fn of_classes(
    name: Option<&str>,
    streams: &[(u64, Option<Arc<Clock>>)],
    events: &[EventClass],
    order: ByteOrder,
    to: Dialect,
) -> TraceClass {
    let how = How {
        order,
        reports_beside: to != Dialect::Rfc11,
    };
    let mut clocks: Vec<Arc<Clock>> = Vec::new();
    let streams = streams
        .iter()
        .enumerate()
        .map(|(position, (class, clock))| {
            let clock =
                clock.as_ref().map(
                    |clock| match clocks.iter().position(|known| known == clock) {
                        Some(known) => known,
                        None => {
                            clocks.push(Arc::clone(clock));
                            clocks.len() - 1
                        }
                    },
                );
            stream(events, *class, position, clock, how)
        })
        .collect();
    TraceClass {
        name: name.map(str::to_owned),
        packet_header: Some(header(order)),
        clocks,
        streams,
        ..TraceClass::new(Dialect::Ctf2)
    }
}

/// How fields are encoded.
#[derive(Clone, Copy)]
struct How {
    order: ByteOrder,
    /// Whether a separate field contains the length of an array, and what an optional or variant
    /// holds. In RFC v1.1 a length lies before its elements, and it has sequences for the others.
    reports_beside: bool,
}

fn stream(
    classes: &[EventClass],
    number_of: u64,
    position: usize,
    clock: Option<usize>,
    how: How,
) -> StreamClass {
    let number = |name, bits, roles: &[Role]| number(name, bits, how.order, roles);
    let mut context = vec![
        number("packet_size", 64, &[Role::PacketTotalLength]),
        number("content_size", 64, &[Role::PacketContentLength]),
    ];
    let mut event_header = vec![number("id", 32, &[Role::EventClassId])];
    if clock.is_some() {
        context.push(number(
            "timestamp_begin",
            64,
            &[Role::DefaultClockTimestamp],
        ));
        context.push(number("timestamp_end", 64, &[Role::PacketEndTimestamp]));
        event_header.push(number("timestamp", 64, &[Role::DefaultClockTimestamp]));
    }
    context.push(number("events_discarded", 64, &[Role::DiscardedEvents]));
    context.push(number("packet_seq_num", 64, &[Role::PacketSequenceNumber]));
    let of_stream: Vec<_> = classes
        .iter()
        .filter(|class| class.stream_class == number_of)
        .collect();
    let events = of_stream.iter().zip(event_ids(&of_stream));
    let events: Vec<_> = events.map(|(class, id)| event(class, id, how)).collect();
    // What all classes of a stream have is its own.
    let first = of_stream.first();
    StreamClass {
        id: position as u64,
        clock,
        packet_context: Some(FieldClass::structure(context)),
        event_header: Some(FieldClass::structure(event_header)),
        common_context: first.and_then(|class| scope(&class.schema, Scope::CommonContext, how)),
        events,
        ..StreamClass::default()
    }
}

/// The numbers of event classes: their own, such as the codes of an event log, where 32 bits hold
/// them and no other class has them, and else the first ones that are free.
fn event_ids(classes: &[&EventClass]) -> Vec<u64> {
    let mut used = HashSet::new();
    let own: Vec<Option<u64>> = classes
        .iter()
        .map(|class| Some(class.id).filter(|&id| u32::try_from(id).is_ok() && used.insert(id)))
        .collect();
    let mut free = 0..;
    own.into_iter()
        .map(|own| {
            own.or_else(|| free.find(|&id| used.insert(id)))
                .unwrap_or(0)
        })
        .collect()
}

/// What a trace does not hold of a recording, for people.
pub(super) fn dropped(recording: &AnyRecording) -> Vec<String> {
    let AnyRecording::Cpel(log) = recording else {
        return Vec::new();
    };
    let definitions = log.definitions();
    let formats = (0..definitions.events.len()).filter(|&class| match log.datum(class) {
        Datum::Format(format) => format != b"%s",
        Datum::None | Datum::Bad(_) => false,
    });
    let is_unknown = |section: &&Section| kind::name(section.kind).is_none();
    let date = log.header().map_or(0, |header| header.date);
    [
        ("formats of datums", formats.count()),
        ("symbols", definitions.symbols.len()),
        (
            "sections of unknown types",
            log.sections().iter().filter(is_unknown).count(),
        ),
        ("the date of the file", usize::from(date != 0)),
    ]
    .into_iter()
    .filter(|&(_, count)| count > 0)
    .map(|(what, count)| match count {
        1 if what.starts_with("the ") => format!("{what} is dropped"),
        _ => format!("{what} are dropped: {count}"),
    })
    .collect()
}

fn event(class: &EventClass, id: u64, how: How) -> EventRecordClass {
    let scope = |which| scope(&class.schema, which, how);
    EventRecordClass {
        log_level: class.log_level,
        emf_uri: class.emf_uri.clone(),
        specific_context: scope(Scope::SpecificContext),
        payload: scope(Scope::Payload),
        ..EventRecordClass::new(id, class.name.clone())
    }
}

fn scope(schema: &Schema, scope: Scope, how: How) -> Option<FieldClass> {
    let root = schema.root(scope)?;
    let mut maker = Maker {
        schema,
        how,
        path: FieldPath {
            scope,
            steps: Vec::new(),
        },
    };
    Some(maker.class(root))
}

/// Makes field classes of a schema. What readers of CTF must read from another field gets one just
/// before it: the length of an array, the selector of an optional or variant.
struct Maker<'s> {
    schema: &'s Schema,
    how: How,
    path: FieldPath,
}

impl Maker<'_> {
    fn class(&mut self, field: FieldId) -> FieldClass {
        let info = self.schema.field(field);
        let integer = |bits, signed, base, labels: &Option<_>| FieldClass::Integer {
            layout: layout_of(bits, self.how.order),
            style: IntegerStyle {
                signed,
                base,
                labels: labels.clone(),
                roles: Vec::new(),
            },
        };
        match &info.kind {
            Kind::Uint { bits, base, labels } => integer(*bits, false, *base, labels),
            Kind::Sint { bits, base, labels } => integer(*bits, true, *base, labels),
            Kind::Wide { bits, signed } => integer(*bits, *signed, Base::Hexadecimal, &None),
            Kind::Float { bits } => FieldClass::Float(layout_of(*bits, self.how.order)),
            Kind::Bool { bits } => FieldClass::Bool(layout_of(*bits, self.how.order)),
            Kind::BitArray { bits } => FieldClass::BitArray(layout_of(*bits, self.how.order)),
            Kind::BitMap { bits, flags } => FieldClass::BitMap {
                layout: layout_of(*bits, self.how.order),
                flags: flags.clone(),
            },
            Kind::Text => FieldClass::Text {
                encoding: Encoding::Utf8,
                align: 8,
            },
            Kind::Struct => {
                let children = info.children.clone();
                let mut members: Vec<Member> = Vec::with_capacity(children.len());
                for child in children {
                    let name = self.schema.field(child).name.clone();
                    let name = name.unwrap_or_else(|| format!("field_{}", members.len()).into());
                    self.member(&name, child, &mut members);
                }
                FieldClass::Struct {
                    members,
                    min_align: 1,
                }
            }
            Kind::Blob | Kind::Array { .. } | Kind::Optional | Kind::Variant
                if !self.how.reports_beside =>
            {
                // Fitting to RFC v1.1 asks for no selector.
                self.reported(
                    field,
                    FieldRef {
                        targets: Vec::new(),
                    },
                )
            }
            // What another field describes, and is not a member of a structure, is put into one with it.
            Kind::Blob | Kind::Array { .. } | Kind::Optional | Kind::Variant => {
                let mut members = Vec::new();
                self.member("value", field, &mut members);
                FieldClass::Struct {
                    members,
                    min_align: 1,
                }
            }
        }
    }

    /// Adds a member, and before it the one that describes it.
    fn member(&mut self, name: &str, field: FieldId, members: &mut Vec<Member>) {
        let info = self.schema.field(field);
        let reported =
            |what: &str, bits| number(&format!("{name}_{what}"), bits, self.how.order, &[]);
        let loss_reporter = match info.kind {
            _ if !self.how.reports_beside => None,
            Kind::Array { length: Some(_) } => None,
            Kind::Array { length: None } | Kind::Blob => Some(reported("length", 32)),
            Kind::Optional => Some(reported("is_there", 8)),
            Kind::Variant => Some(reported("kind", 8)),
            _ => None,
        };
        members.extend(loss_reporter);
        let loss_reporter = FieldRef {
            targets: vec![FieldPath {
                scope: self.path.scope,
                steps: {
                    let mut steps = self.path.steps.clone();
                    steps.push(Step::Child(members.len().saturating_sub(1)));
                    steps
                },
            }],
        };
        self.path.steps.push(Step::Child(members.len()));
        let class = self.reported(field, loss_reporter);
        self.path.steps.pop();
        members.push(Member::new(name, class));
    }

    /// The class of a field that another one may have to describe.
    fn reported(&mut self, field: FieldId, loss_reporter: FieldRef) -> FieldClass {
        let info = self.schema.field(field);
        let children = info.children.clone();
        let counted = |loss_reporter| match self.how.reports_beside {
            true => Length::Dynamic(loss_reporter),
            false => {
                let layout = layout_of(32, self.how.order);
                Length::Inline(Box::new(FieldClass::unsigned(layout, &[])))
            }
        };
        match info.kind {
            Kind::Array { length } => FieldClass::Array {
                length: match length {
                    Some(length) => Length::Static(length),
                    None => counted(loss_reporter),
                },
                element: Box::new(self.part(Step::Element, children.first())),
                min_align: 1,
                roles: Vec::new(),
            },
            Kind::Blob => FieldClass::Blob {
                length: counted(loss_reporter),
                media_type: "application/octet-stream".to_owned(),
                roles: Vec::new(),
            },
            Kind::Optional => FieldClass::Optional {
                content: Box::new(self.part(Step::Content, children.first())),
                selector: loss_reporter,
                when: Selector::Unsigned(vec![(1, 1)]),
            },
            Kind::Variant => FieldClass::Variant {
                options: children
                    .iter()
                    .enumerate()
                    .map(|(option, &child)| VariantOption {
                        name: self.schema.field(child).name.clone(),
                        class: self.part(Step::Child(option), Some(&child)),
                        when: Selector::Unsigned(vec![(option as u64 + 1, option as u64 + 1)]),
                    })
                    .collect(),
                selector: loss_reporter,
            },
            _ => self.class(field),
        }
    }

    fn part(&mut self, step: Step, field: Option<&FieldId>) -> FieldClass {
        self.path.steps.push(step);
        let class = match field {
            Some(&field) => self.class(field),
            None => FieldClass::Struct {
                members: Vec::new(),
                min_align: 1,
            },
        };
        self.path.steps.pop();
        class
    }
}
