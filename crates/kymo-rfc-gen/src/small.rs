//! A trace to read by eye.

use crate::random::machine_types;
use crate::trace::{
    Checksum, Context, Counters, Declaration, Event, EventClass, HeaderType, MetadataForm, Packet,
    Section, Stream, Style, Trace,
};
use crate::types::{Alignment, Encoding, Endian, Field, Integer, Order, Type, Value};

/// When the trace begins, in nanoseconds since 1970: 10 November 2010, 21:16:25 EST.
const BEGIN: u64 = 1_289_441_785_000_000_000;

impl Trace {
    /// A few events of a 64-bit big-endian machine with two processors: interrupts and switches
    /// between processes, packets captured from a network.
    ///
    /// On the way a packet and some events are lost, and the 27-bit clock wraps.
    #[must_use]
    pub fn small() -> Self {
        let alignment = Alignment::Natural64;
        Self {
            order: Endian::Big,
            alignment,
            session_id: 1,
            metadata: MetadataForm::Packets { strings: 4 },
            style: Style::default(),
            types: [machine_types(alignment), types(alignment)].concat(),
            sections: vec![kernel(alignment), network()],
            checksum: Checksum::None,
            filler: 0,
        }
    }
}

/// What the declared types of the small trace are.
struct Types {
    uint32: Type,
    task_state: Type,
    address: Type,
    flags: Type,
}

impl Types {
    fn new(alignment: Alignment) -> Self {
        let word = Integer::predefined(32, false, alignment);
        let byte = Integer::predefined(8, false, alignment);
        let states = [
            (0, "RUNNING"),
            (1, "SLEEPING"),
            (2, "WAITING"),
            (-1, "DEAD"),
        ];
        let bits = |size, signed| Type::Bitfield {
            integer: Integer {
                size,
                signed,
                order: Order::Native,
                align: Some(1),
            },
            unit_size: 16,
        };
        Self {
            uint32: Type::Integer(word),
            task_state: Type::Enumeration {
                integer: Integer {
                    signed: true,
                    ..byte
                },
                map: states
                    .map(|(value, label)| (value, label.to_owned()))
                    .to_vec(),
            },
            address: Type::Array {
                length: 4,
                element: Box::new(Type::Integer(byte)),
            },
            flags: Type::Struct(fields([("a", bits(12, true)), ("b", bits(5, true))])),
        }
    }
}

fn types(alignment: Alignment) -> Vec<Declaration> {
    let types = Types::new(alignment);
    [
        ("task_state_t", types.task_state, 1),
        ("address_t", types.address, 0),
        ("struct_example", types.flags, 0),
    ]
    .map(|(name, ty, ancestors)| Declaration {
        name: name.to_owned(),
        ty,
        ancestors,
    })
    .to_vec()
}

fn fields<const N: usize>(fields: [(&str, Type); N]) -> Vec<Field> {
    fields
        .map(|(name, ty)| Field {
            name: name.to_owned(),
            ty,
        })
        .to_vec()
}

fn values<const N: usize>(values: [(&str, Value); N]) -> Value {
    Value::Struct(
        values
            .map(|(name, value)| (name.to_owned(), value))
            .to_vec(),
    )
}

fn text(text: &str) -> Value {
    Value::Text(text.as_bytes().to_vec())
}

fn kernel(alignment: Alignment) -> Section {
    let types = Types::new(alignment);
    let events = vec![
        EventClass {
            name: "irq_entry".to_owned(),
            id: 0,
            fields: fields([
                ("irq", types.uint32.clone()),
                ("flags", types.flags),
                ("handler", Type::Text(Encoding::Utf8)),
            ]),
        },
        EventClass {
            name: "sched_switch".to_owned(),
            id: 1,
            fields: fields([
                ("prev_tid", types.uint32.clone()),
                ("prev_state", types.task_state),
                ("next_tid", types.uint32),
            ]),
        },
    ];
    let irq = |at: u64, irq: u64, a: i64, b: i64, handler: &str| Event {
        class: 0,
        time: BEGIN + at,
        extended: false,
        context: None,
        payload: values([
            ("irq", Value::Unsigned(irq)),
            (
                "flags",
                values([("a", Value::Signed(a)), ("b", Value::Signed(b))]),
            ),
            ("handler", text(handler)),
        ]),
    };
    let switch = |at: u64, prev: u64, state: i128, label: &str, next: u64| Event {
        class: 1,
        time: BEGIN + at,
        extended: false,
        context: None,
        payload: values([
            ("prev_tid", Value::Unsigned(prev)),
            (
                "prev_state",
                Value::Label {
                    value: state,
                    label: Some(label.to_owned()),
                },
            ),
            ("next_tid", Value::Unsigned(next)),
        ]),
    };
    let packets = vec![
        packet(
            0,
            0,
            0..500_000_000,
            vec![
                irq(1_000, 19, -3, 7, "eth0"),
                switch(1_250, 0, 0, "RUNNING", 4711),
                // The time takes more than 27 bits, so that the header is extended.
                switch(200_000_000, 4711, 1, "SLEEPING", 0),
                // The 27 bits wrap.
                irq(300_000_000, 19, 2047, -16, "eth0"),
            ],
        ),
        Packet {
            lost: true,
            ..packet(1, 0, 500_000_000..600_000_000, Vec::new())
        },
        packet(
            2,
            17,
            600_000_000..700_000_000,
            vec![switch(650_000_000, 1, -1, "DEAD", 2)],
        ),
    ];
    let other = packet(
        0,
        0,
        0..700_000_000,
        vec![
            irq(2_000, 1, 0, 0, "i8042"),
            irq(90_000_000, 14, -2048, 15, "ata"),
        ],
    );
    Section {
        name: "kernel".to_owned(),
        header: HeaderType::Type1,
        context: Context::EventSize,
        packet_count_bits: 32,
        counters: Counters::OfStream,
        events,
        streams: vec![
            Stream { cpu: 0, packets },
            Stream {
                cpu: 1,
                packets: vec![other],
            },
        ],
    }
}

fn network() -> Section {
    let types = Types::new(Alignment::Natural64);
    let port = Type::Integer(Integer {
        size: 16,
        signed: false,
        order: Order::Network,
        align: Some(16),
    });
    let byte = Integer::predefined(8, false, Alignment::Natural64);
    let class = EventClass {
        name: "receive".to_owned(),
        id: 70_000,
        fields: fields([
            ("from", types.address),
            ("port", port),
            (
                "data",
                Type::Sequence {
                    length: byte,
                    element: Box::new(Type::Integer(byte)),
                },
            ),
        ]),
    };
    let bytes = |bytes: &[u64]| Value::Array(bytes.iter().copied().map(Value::Unsigned).collect());
    let receive = |at: u64, pid: u64, port: u64, data: &[u64]| Event {
        class: 0,
        time: BEGIN + at,
        extended: false,
        context: Some(values([("pid", Value::Unsigned(pid))])),
        payload: values([
            ("from", bytes(&[192, 0, 2, 1])),
            ("port", Value::Unsigned(port)),
            ("data", bytes(data)),
        ]),
    };
    let events = vec![
        receive(1_100, 812, 53, &[0xC1, 0xFC, 0x1F]),
        receive(1_500, 812, 4789, &[]),
    ];
    Section {
        name: "network".to_owned(),
        header: HeaderType::Type2,
        context: Context::Fields(fields([("pid", types.uint32)])),
        packet_count_bits: 8,
        counters: Counters::OfStream,
        events: vec![class],
        streams: vec![Stream {
            cpu: 0,
            packets: vec![packet(0, 0, 0..700_000_000, events)],
        }],
    }
}

fn packet(sequence: u64, discarded: u64, time: std::ops::Range<u64>, events: Vec<Event>) -> Packet {
    Packet {
        sequence,
        discarded,
        begin: BEGIN + time.start,
        end: BEGIN + time.end,
        size_unit: 256,
        events,
        lost: false,
    }
}
