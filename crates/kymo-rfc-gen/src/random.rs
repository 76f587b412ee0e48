//! Traces that a seed decides.

use crate::rng::Rng;
use crate::trace::{
    Checksum, Context, Counters, Declaration, Event, EventClass, HeaderType, MetadataForm, Packet,
    Section, Stream, Style, Trace,
};
use crate::types::{Alignment, Encoding, Endian, Field, Integer, Order, Type, Value};

/// What a random trace is like; the seed decides what is `None`, but for the style.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Byte order.
    pub order: Option<Endian>,
    /// Alignment.
    pub alignment: Option<Alignment>,
    /// Event headers of all sections.
    pub header: Option<HeaderType>,
    /// Form of the metadata.
    pub metadata: Option<MetadataForm>,
    /// How the metadata is written; `None` is the plain style.
    pub style: Option<Style>,
    /// Checksum of the packets.
    pub checksum: Checksum,
}

/// Types nest so deep.
const DEPTH: u32 = 3;

const NAMES: [&str; 8] = [
    "prev", "next", "fd", "count", "flags", "irq", "buf", "state",
];

impl Trace {
    /// A trace that `seed` and `options` decide.
    #[must_use]
    pub fn random(seed: u64, options: &Options) -> Self {
        let rng = Rng::new(seed);
        let mut maker = Maker {
            alignment: Alignment::Packed,
            order: Endian::Little,
            rng,
            types: Vec::new(),
        };
        maker.trace(options)
    }
}

/// Declarations that say how the machine aligns, and nothing else.
pub(crate) fn machine_types(alignment: Alignment) -> Vec<Declaration> {
    let declare = |size: u32| Declaration {
        name: format!("uint{size}_t"),
        ty: Type::Integer(Integer::predefined(size, false, alignment)),
        ancestors: 0,
    };
    match alignment {
        Alignment::Packed => Vec::new(),
        Alignment::Natural64 => vec![declare(32)],
        Alignment::Natural32 => vec![declare(32), declare(64)],
    }
}

struct Maker {
    alignment: Alignment,
    order: Endian,
    rng: Rng,
    types: Vec<Declaration>,
}

impl Maker {
    fn trace(&mut self, options: &Options) -> Trace {
        let order = self.rng.pick(&[Endian::Little, Endian::Big]);
        let alignment = self.rng.pick(&[
            Alignment::Packed,
            Alignment::Natural32,
            Alignment::Natural64,
        ]);
        let strings = self.rng.index(6) + 1;
        let form = self
            .rng
            .pick(&[MetadataForm::Text, MetadataForm::Packets { strings }]);
        self.order = options.order.unwrap_or(order);
        self.alignment = options.alignment.unwrap_or(alignment);
        self.types = machine_types(self.alignment);
        for i in 0..self.rng.between(0, 6) {
            let declaration = Declaration {
                name: format!("my_type{i}_t"),
                ty: self.ty(DEPTH - 1),
                ancestors: self.rng.index(4),
            };
            self.types.push(declaration);
        }

        let mut names = ["kernel", "net_2", "high_throughput", "ust", "cpu_0_irq"];
        self.rng.shuffle(&mut names);
        let count = 1 + self.rng.index(3);
        let sections = names[..count]
            .iter()
            .map(|name| self.section(name, options))
            .collect();
        Trace {
            order: self.order,
            alignment: self.alignment,
            session_id: self.rng.pick(&[0, 7, u32::MAX, 0xC1FC_1FC1]),
            metadata: options.metadata.unwrap_or(form),
            style: options.style.clone().unwrap_or_default(),
            types: std::mem::take(&mut self.types),
            sections,
            checksum: options.checksum,
            filler: self.rng.pick(&[0, 0xFF, 0xA5]),
        }
    }

    fn section(&mut self, name: &str, options: &Options) -> Section {
        let header = self.rng.pick(&[HeaderType::Type1, HeaderType::Type2]);
        let header = options.header.unwrap_or(header);
        let context = match self.rng.below(3) {
            0 => Context::None,
            1 => Context::EventSize,
            _ => Context::Fields(self.fields(1)),
        };
        let events = self.classes(name, header);
        let mut section = Section {
            name: name.to_owned(),
            header,
            context,
            packet_count_bits: 32,
            counters: self.rng.pick(&[Counters::OfStream, Counters::OfSection]),
            events,
            streams: Vec::new(),
        };
        let mut cpus = [0, 1, 2, 3, 17, 255];
        self.rng.shuffle(&mut cpus[1..]);
        for &cpu in &cpus[..self.rng.index(3) + 1] {
            let stream = Stream {
                cpu,
                packets: self.packets(&section),
            };
            section.streams.push(stream);
        }
        self.count(&mut section);
        section
    }

    /// Decides how wide a section's packet count is, and counts its packets.
    fn count(&mut self, section: &mut Section) {
        // Two bits suffice to count the two packets that may be missing in a stream, but not to find which streams
        // count together.
        section.packet_count_bits = match section.streams.len() {
            1 => self.rng.pick(&[2, 3, 8, 31, 32]),
            _ => self.rng.pick(&[5, 8, 31, 32]),
        };
        let first = self.rng.pick(&[0, 0, 1, 6, (1 << 32) - 3]);
        let discarded = self.rng.pick(&[0, 0, 3]);
        let streams = section.streams.iter_mut();
        let counted: Vec<Vec<&mut Packet>> = match section.counters {
            // All begin with the same number.
            Counters::OfStream => streams
                .map(|stream| stream.packets.iter_mut().collect())
                .collect(),
            Counters::OfSection => {
                let mut packets: Vec<_> = streams.flat_map(|stream| &mut stream.packets).collect();
                packets.sort_by_key(|packet| packet.begin);
                vec![packets]
            }
        };
        for packets in counted {
            let mut discarded = discarded;
            for (packet, sequence) in packets.into_iter().zip(first..) {
                packet.sequence = sequence;
                packet.discarded = discarded;
                discarded += self.rng.pick(&[0, 0, 0, 1, 250, 0x1FFF_FFFF]);
            }
        }
    }

    fn classes(&mut self, section: &str, header: HeaderType) -> Vec<EventClass> {
        let escape = header.escape();
        let mut ids = vec![0, 1, 2, escape - 2, escape - 1];
        ids.extend([escape, escape + 1, 70_000, u32::MAX - 1, u32::MAX]);
        self.rng.shuffle(&mut ids);
        ids.truncate(self.rng.index(5) + 1);
        ids.into_iter()
            .enumerate()
            .map(|(i, id)| {
                let mut fields = self.fields(DEPTH);
                if self.rng.one_in(3) {
                    self.append_foreign_run(&mut fields);
                }
                EventClass {
                    name: format!("{section}_event{i}"),
                    id,
                    fields,
                }
            })
            .collect()
    }

    /// Members of a structure; types nest below `depth`.
    fn fields(&mut self, depth: u32) -> Vec<Field> {
        (0..self.rng.between(0, 5))
            .map(|i| Field {
                name: format!("{}{i}", self.rng.pick(&NAMES)),
                ty: self.ty(depth),
            })
            .collect()
    }

    /// Bit fields of the other byte order one behind the other, between byte boundaries.
    fn append_foreign_run(&mut self, fields: &mut Vec<Field>) {
        let order = match self.order {
            Endian::Little => self.rng.pick(&[Order::Network, Order::Be]),
            Endian::Big => Order::Le,
        };
        let count = self.rng.between(1, 4);
        for i in 0..=count {
            let ending = i == count;
            let integer = Integer {
                size: self.rng.between(1, 64),
                signed: self.rng.coin(),
                order: if ending { Order::Native } else { order },
                align: Some(if i == 0 || ending { 8 } else { 1 }),
            };
            fields.push(Field {
                name: format!("foreign{i}"),
                ty: Type::Integer(integer),
            });
        }
    }

    /// A type that is at most `depth` compound types deep.
    fn ty(&mut self, depth: u32) -> Type {
        if !self.types.is_empty() && self.rng.one_in(4) {
            let known = &self.types[self.rng.index(self.types.len())].ty;
            if nesting(known) <= depth {
                return known.clone();
            }
        }
        let kinds = if depth == 0 { 5 } else { 9 };
        match self.rng.below(kinds) {
            0 | 1 => Type::Integer(self.integer()),
            2 => {
                let unit_size = self.rng.pick(&[8, 16, 32, 64]);
                Type::Bitfield {
                    integer: Integer {
                        size: self.rng.between(1, unit_size),
                        signed: self.rng.coin(),
                        order: Order::Native,
                        align: Some(1),
                    },
                    unit_size,
                }
            }
            3 => self.enumeration(),
            4 => Type::Text(self.rng.pick(&[Encoding::Utf8, Encoding::Ascii])),
            5 | 6 => Type::Struct(self.fields(depth - 1)),
            7 => Type::Array {
                length: self.rng.between(0, 4),
                element: Box::new(self.element(depth - 1)),
            },
            _ => {
                let mut length = self.integer();
                length.signed = false;
                Type::Sequence {
                    length,
                    element: Box::new(self.element(depth - 1)),
                }
            }
        }
    }

    /// A type of elements: GNU/C has no arrays of bit fields.
    fn element(&mut self, depth: u32) -> Type {
        loop {
            let ty = self.ty(depth);
            if !matches!(ty, Type::Bitfield { .. }) {
                return ty;
            }
        }
    }

    fn integer(&mut self) -> Integer {
        let signed = self.rng.coin();
        match self.rng.below(4) {
            0 => {
                let size = self.rng.pick(&[8, 16, 32, 64]);
                Integer::predefined(size, signed, self.alignment)
            }
            1 => Integer::predefined(self.rng.between(1, 64), signed, self.alignment),
            2 => Integer {
                // Whole bytes at a byte boundary may have any byte order.
                size: self.rng.between(1, 8) * 8,
                signed,
                order: self.rng.pick(&[Order::Network, Order::Be, Order::Le]),
                align: self
                    .rng
                    .pick(&[None, Some(8), Some(16), Some(32), Some(64)]),
            },
            _ => Integer {
                size: self.rng.between(1, 64),
                signed,
                order: Order::Native,
                align: self.rng.pick(&[
                    None,
                    Some(1),
                    Some(2),
                    Some(4),
                    Some(8),
                    Some(16),
                    Some(32),
                    Some(64),
                ]),
            },
        }
    }

    fn enumeration(&mut self) -> Type {
        let integer = self.integer();
        let mut map: Vec<(i128, String)> = Vec::new();
        for i in 0..self.rng.between(1, 4) {
            let value = number(self.integer_value(&integer));
            if map.iter().all(|(known, _)| *known != value) {
                map.push((
                    value,
                    format!("{}{i}", self.rng.pick(&["IDLE", "RUN", "hold"])),
                ));
            }
        }
        Type::Enumeration { integer, map }
    }

    /// A value of an integer; the outermost ones are likely.
    fn integer_value(&mut self, integer: &Integer) -> Value {
        let unused = 64 - integer.size;
        let raw = match self.rng.below(6) {
            0 => 0,
            1 => u64::MAX,
            2 => 1,
            3 => 1 << (integer.size - 1),
            4 => (1 << (integer.size - 1)) - 1,
            _ => self.rng.next(),
        };
        if integer.signed {
            Value::Signed((raw << unused).cast_signed() >> unused)
        } else {
            Value::Unsigned(raw << unused >> unused)
        }
    }

    fn value(&mut self, ty: &Type) -> Value {
        match ty {
            Type::Integer(integer) | Type::Bitfield { integer, .. } => self.integer_value(integer),
            Type::Enumeration { integer, map } => {
                let value = if self.rng.one_in(4) {
                    number(self.integer_value(integer))
                } else {
                    map[self.rng.index(map.len())].0
                };
                let label = map.iter().find(|(known, _)| *known == value);
                Value::Label {
                    value,
                    label: label.map(|(_, label)| label.clone()),
                }
            }
            Type::Struct(fields) => self.structure(fields),
            Type::Array { length, element } => {
                Value::Array((0..*length).map(|_| self.value(element)).collect())
            }
            Type::Sequence { length, element } => {
                // A short length type holds no more.
                let most = 5_u64.min((1 << length.size.min(8)) - 1);
                let count = self.rng.below(most + 1);
                Value::Array((0..count).map(|_| self.value(element)).collect())
            }
            Type::Text(encoding) => {
                let letters: &[&str] = match encoding {
                    Encoding::Utf8 => &["a", "z", " ", "\"", "ä", "語", "𝄞"],
                    Encoding::Ascii => &["a", "z", " ", "\"", "\\", "\t", "~"],
                };
                let length = self.rng.below(9);
                let text: String = (0..length).map(|_| self.rng.pick(letters)).collect();
                Value::Text(text.into_bytes())
            }
        }
    }

    fn structure(&mut self, fields: &[Field]) -> Value {
        let members = fields
            .iter()
            .map(|field| (field.name.clone(), self.value(&field.ty)))
            .collect();
        Value::Struct(members)
    }

    /// The packets of a stream, not counted yet.
    fn packets(&mut self, section: &Section) -> Vec<Packet> {
        let mut clock = self
            .rng
            .pick(&[0, 1, (1 << 27) - 1, (1 << 32) - 1, 1 << 60])
            + self.rng.below(1000);
        let mut missing = 0;
        let mut packets = Vec::new();
        for i in 0..self.rng.between(1, 8) {
            let begin = clock + self.pause(section.header);
            clock = begin;
            let events = (0..self.rng.below(12))
                .map(|_| {
                    clock += self.pause(section.header);
                    self.event(section, clock)
                })
                .collect();
            let end = clock + self.rng.below(100);
            clock = end;
            // A few bits count only a few missing packets. The first packet is there, so that one
            // number occurs twice where streams count apart.
            let lost = i > 0 && missing < 2 && self.rng.one_in(6);
            missing = if lost { missing + 1 } else { 0 };
            packets.push(Packet {
                sequence: 0,
                discarded: 0,
                begin,
                end,
                size_unit: self.size_unit(),
                events,
                lost,
            });
        }
        packets
    }

    /// What packets are padded to. Machines that align leave no odd packet behind.
    fn size_unit(&mut self) -> usize {
        match self.alignment {
            Alignment::Packed => self.rng.pick(&[1, 1, 8, 256, 4096]),
            _ => self.rng.pick(&[8, 8, 256, 4096]),
        }
    }

    /// Time from one event to the next, around what a header can express.
    fn pause(&mut self, header: HeaderType) -> u64 {
        let most = 1 << header.time_bits();
        match self.rng.below(12) {
            0 => 0,
            1 => most - 1,
            2 => most,
            3 => most + self.rng.below(most),
            4 => self.rng.below(most),
            5 => self.rng.below(1 << 40),
            _ => self.rng.below(10_000),
        }
    }

    fn event(&mut self, section: &Section, time: u64) -> Event {
        let class = self.rng.index(section.events.len());
        let context = match &section.context {
            Context::Fields(fields) => Some(self.structure(fields)),
            Context::None | Context::EventSize => None,
        };
        Event {
            class,
            time,
            extended: self.rng.one_in(8),
            context,
            payload: self.structure(&section.events[class].fields),
        }
    }
}

fn number(value: Value) -> i128 {
    match value {
        Value::Unsigned(value) => i128::from(value),
        Value::Signed(value) => i128::from(value),
        other => panic!("{other:?} is no integer"),
    }
}

/// Compound types inside each other.
fn nesting(ty: &Type) -> u32 {
    match ty {
        Type::Integer(_) | Type::Bitfield { .. } | Type::Enumeration { .. } | Type::Text(_) => 0,
        Type::Struct(fields) => {
            1 + fields
                .iter()
                .map(|field| nesting(&field.ty))
                .max()
                .unwrap_or(0)
        }
        Type::Array { element, .. } | Type::Sequence { element, .. } => 1 + nesting(element),
    }
}
