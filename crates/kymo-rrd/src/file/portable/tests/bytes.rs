//! Every byte is where `docs/formats/portable-rrd.md` says, and whatever is made is read.

use proptest::prelude::*;

use super::made_up::{self, Chance, Picture};
use crate::file::portable::{self, Durability, Error, File, Options, Record};
use crate::model::rows::FloatOrder;
use crate::model::{
    Archive, ArchiveKind, ArchiveLink, ArchiveState, Consolidation, DataSource, Database, Reading,
    Scratch, SourceKind, SourceState, State,
};
use crate::rpn::{Node, Operator, Program};
use crate::{Rows, Time, Value};

proptest! {
    #![proptest_config(super::cases(400))]

    #[test]
    fn what_is_made_is_read(seed: u64) {
        let mut chance = Chance::new(seed);
        let database = made_up::database(&mut chance);
        let values = made_up::values(&mut chance, &database);
        let order = [FloatOrder::Little, FloatOrder::Big, FloatOrder::SwappedWords];
        let order = order[chance.below(3)];
        let (bytes, grids) = made_up::foreign(&mut chance, &database, &values, order);
        let rows = Rows::new(&bytes, order, database.sources.len(), grids).unwrap();
        let records = vec![Record { kind: 77, content: vec![5; 24] }];
        let options = Options { records: records.clone(), ..Default::default() };
        let file = portable::create(&database, Some(&rows), &options, Vec::new()).unwrap();
        prop_assert_eq!(&Picture::of_file(&file), &Picture { database, values });

        let bytes = file.into_storage();
        let view = portable::read(&bytes).unwrap();
        prop_assert!(!view.was_cut_off());
        prop_assert_eq!(view.records(), &records[..]);
        // What is read is made again.
        let options = Options { records: view.records().to_vec(), ..Default::default() };
        let rows = view.rows().unwrap();
        let again = portable::create(view.database(), Some(&rows), &options, Vec::new()).unwrap();
        prop_assert_eq!(again.records(), &records[..]);
        prop_assert!(again.into_storage() == bytes);
    }
}

/// A database with a bit of everything.
fn example() -> Database {
    let measured = SourceKind::Measured {
        reading: Reading::Derive,
        heartbeat: 600,
        min: Value::UNKNOWN,
        max: Value::from(1.0),
    };
    let nodes = vec![
        Node::Variable(0),
        Node::Number(Value::from(2.0)),
        Node::Operator(Operator::Multiply),
        Node::PreviousOf(1),
    ];
    let mut plain = [Scratch::default(); 2];
    for (source, scratch) in plain.iter_mut().enumerate() {
        scratch.0[Scratch::UNKNOWN_POINTS] = 3 + source as u64;
        scratch.set_value(Scratch::PRIMARY, Value::from(8.0));
    }
    let mut history = [Scratch::default(); 2];
    history[0].set_history(&[1; 28]);
    // Something that the kind does not use.
    plain[1].0[5] = 0x5555;
    Database {
        version: 4,
        step: 300,
        sources: vec![
            DataSource {
                name: "first".into(),
                kind: measured,
            },
            DataSource {
                name: "a longer name".into(),
                kind: SourceKind::Compute(Program { nodes }),
            },
        ],
        archives: vec![
            Archive {
                kind: ArchiveKind::Consolidated {
                    function: Consolidation::Max,
                    xff: Value::from(0.5),
                },
                rows: 3,
                points_per_row: 12,
            },
            Archive {
                kind: ArchiveKind::Seasonal {
                    deviation: true,
                    gamma: Value::from(0.25),
                    smoothing_window: Value::ZERO,
                    smooth_row: 1,
                    predictions: ArchiveLink::NONE,
                },
                rows: 2,
                points_per_row: 1,
            },
            Archive {
                kind: ArchiveKind::Failures {
                    delta_positive: Value::from(2.0),
                    delta_negative: Value::from(3.0),
                    window: 9,
                    threshold: 7,
                    deviations: ArchiveLink(1),
                },
                rows: 1,
                points_per_row: 1,
            },
        ],
        state: State {
            last_update: Time::from_micros(1_000_000_000, 500_000).unwrap(),
            stray_micros: None,
            sources: vec![
                SourceState {
                    last_reading: "12345".into(),
                    unknown_seconds: 7,
                    value: Value::from(-1.0),
                },
                SourceState {
                    last_reading: "U".into(),
                    unknown_seconds: 0,
                    value: Value::UNKNOWN,
                },
            ],
            archives: vec![
                ArchiveState {
                    current_row: 2,
                    scratch: plain.to_vec(),
                },
                ArchiveState {
                    current_row: 1,
                    scratch: vec![Scratch::default(); 2],
                },
                ArchiveState {
                    current_row: 0,
                    scratch: history.to_vec(),
                },
            ],
        },
    }
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(*bytes[at..].first_chunk().unwrap())
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(*bytes[at..].first_chunk().unwrap())
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*bytes[at..].first_chunk().unwrap())
}

fn f64_at(bytes: &[u8], at: usize) -> f64 {
    f64::from_le_bytes(*bytes[at..].first_chunk().unwrap())
}

/// CRC-32C, bit by bit.
pub(super) fn crc32c(bytes: impl IntoIterator<Item = u8>) -> u32 {
    !bytes.into_iter().fold(!0_u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| {
            (crc >> 1) ^ (0x82f6_3b78 & (crc & 1).wrapping_neg())
        })
    })
}

#[test]
fn definitions_are_where_the_document_says() {
    assert_eq!(crc32c(*b"123456789"), 0xe306_9283);
    let file = portable::create(&example(), None, &Options::default(), Vec::new()).unwrap();
    let bytes = file.into_storage();

    assert_eq!(bytes[..8], [0x8d, 0x50, 0x52, 0x52, 0x44, 0x0d, 0x0a, 0x1a]);
    assert_eq!((u16_at(&bytes, 8), u16_at(&bytes, 10)), (1, 64));
    let definitions = u64_at(&bytes, 16) as usize;
    let zeroed = bytes[..definitions].iter().enumerate();
    let zeroed = zeroed.map(|(at, &byte)| if (12..16).contains(&at) { 0 } else { byte });
    assert_eq!(u32_at(&bytes, 12), crc32c(zeroed));
    assert_eq!(u64_at(&bytes, 24), definitions as u64);
    let state = 48 + 2 * 56 + 3 * 8 + 2 * (5 + 5 + 6) * 8;
    let journal = 3 * (48 + 16);
    assert_eq!(u64_at(&bytes, 32), state + journal);
    assert_eq!((u32_at(&bytes, 40), u32_at(&bytes, 44)), (40, 4));
    assert_eq!(u64_at(&bytes, 48), 300);
    assert_eq!(u64_at(&bytes, 56), bytes.len() as u64);

    // A measured data source.
    let at = 64;
    assert_eq!((u32_at(&bytes, at), u32_at(&bytes, at + 4)), (1, 48));
    assert_eq!((u16_at(&bytes, at + 8), u16_at(&bytes, at + 10)), (2, 5));
    assert_eq!(u32_at(&bytes, at + 12), 0);
    assert_eq!(u64_at(&bytes, at + 16), 600);
    assert_eq!(bytes[at + 24..at + 32], [0, 0, 0, 0, 0, 0, 0xf8, 0x7f]);
    assert_eq!(f64_at(&bytes, at + 32), 1.0);
    assert_eq!(&bytes[at + 40..at + 48], b"first\0\0\0");

    // A computed one, with four nodes.
    let at = at + 48;
    assert_eq!((u32_at(&bytes, at), u32_at(&bytes, at + 4)), (1, 96));
    assert_eq!((u16_at(&bytes, at + 8), u16_at(&bytes, at + 10)), (6, 13));
    assert_eq!(u32_at(&bytes, at + 12), 4);
    let nodes = (0..4).map(|node| {
        let at = at + 16 + 16 * node;
        (
            u32_at(&bytes, at),
            u32_at(&bytes, at + 4),
            f64_at(&bytes, at + 8),
        )
    });
    let expected = [(1, 0, 0.0), (0, 0, 2.0), (11, 0, 0.0), (36, 1, 0.0)];
    assert_eq!(nodes.collect::<Vec<_>>(), expected);
    assert_eq!(&bytes[at + 80..at + 96], b"a longer name\0\0\0");

    // Archives: kind and size; function, places, scratch slots; rows, points; parameters.
    let at = at + 96;
    assert_eq!((u32_at(&bytes, at), u32_at(&bytes, at + 4)), (2, 40));
    let scratch = 0b11_0010_0011;
    assert_eq!((bytes[at + 8], bytes[at + 9]), (2, 1));
    assert_eq!(u16_at(&bytes, at + 10), scratch);
    assert_eq!((u32_at(&bytes, at + 12), u64_at(&bytes, at + 16)), (3, 12));
    let values = u64_at(&bytes, at + 24);
    assert_eq!(values, definitions as u64 + 2 * (state + journal));
    assert_eq!(f64_at(&bytes, at + 32), 0.5);

    let at = at + 40;
    assert_eq!((u32_at(&bytes, at), u32_at(&bytes, at + 4)), (2, 64));
    assert_eq!((bytes[at + 8], bytes[at + 9]), (7, 2));
    assert_eq!(u16_at(&bytes, at + 10), 0b11_0100_1100);
    assert_eq!(u64_at(&bytes, at + 24), values + 3 * 16);
    assert_eq!(f64_at(&bytes, at + 32), 0.25);
    assert_eq!(u64_at(&bytes, at + 48), 1);
    assert_eq!(u64_at(&bytes, at + 56), u64::MAX);

    let at = at + 64;
    assert_eq!((u32_at(&bytes, at), u32_at(&bytes, at + 4)), (2, 72));
    assert_eq!((bytes[at + 8], bytes[at + 9]), (9, 1));
    assert_eq!(u16_at(&bytes, at + 10), 0b11_0000_1111);
    assert_eq!(u64_at(&bytes, at + 24), values + 3 * 16 + 2 * 2 * 16);
    assert_eq!(
        (f64_at(&bytes, at + 32), f64_at(&bytes, at + 40)),
        (2.0, 3.0)
    );
    assert_eq!((u64_at(&bytes, at + 48), u64_at(&bytes, at + 56)), (9, 7));
    assert_eq!(u64_at(&bytes, at + 64), 1);
    assert_eq!(at + 72, definitions);
    assert_eq!(bytes.len() as u64, values + (3 + 2 * 2 + 1) * 16);
}

#[test]
fn states_and_journals_are_where_the_document_says() {
    let mut file = portable::create(&example(), None, &Options::default(), Vec::new()).unwrap();
    let mut update = file.begin().unwrap();
    let values = |first: f64, second: f64| [Value::from(first), Value::from(second)];
    update.write_row(0, &values(1.0, 2.0)).unwrap();
    update.write_rows(0, 2, &values(8.0, 8.0)).unwrap();
    let seasonal = [1.0, 2.0, 3.0, 4.0].map(Value::from).to_vec();
    update.rewrite(1, seasonal).unwrap();
    update.state_mut().sources[0].last_reading = "67".into();
    update.commit(Durability::Synced).unwrap();
    let bytes = file.into_storage();

    let slot_size = u64_at(&bytes, 32) as usize;
    let slots = u64_at(&bytes, 24) as usize;
    let slot = &bytes[slots + slot_size..slots + 2 * slot_size];
    let used = u32_at(slot, 4) as usize;
    assert_eq!(u32_at(slot, 0), crc32c(slot[4..used].iter().copied()));
    assert_eq!((u64_at(slot, 8), u64_at(slot, 16)), (1, 0));
    assert_eq!(u64_at(slot, 24), (1_000_000_000 << 30) + (1 << 29));
    assert_eq!((u32_at(slot, 32), u32_at(slot, 36)), (0, 2));
    assert_eq!(u64_at(slot, 40), 0);

    assert_eq!((u64_at(slot, 48), f64_at(slot, 56)), (7, -1.0));
    assert_eq!(slot[64..104], [&b"67"[..], &[0; 38]].concat());
    assert_eq!(u64_at(slot, 104), 0);
    assert_eq!(&slot[120..122], b"U\0");

    // Current rows and places.
    let archives = (0..3).map(|archive| {
        let at = 160 + 8 * archive;
        (u32_at(slot, at), u32_at(slot, at + 4))
    });
    assert_eq!(archives.collect::<Vec<_>>(), [(2, 0), (1, 1), (0, 0)]);
    // Scratch slots 0, 1, 5, 8, 9 of the first archive, of each data source.
    let at = 184;
    assert_eq!((u64_at(slot, at), u64_at(slot, at + 8)), (0, 3));
    assert_eq!((u64_at(slot, at + 16), f64_at(slot, at + 24)), (0, 8.0));
    assert_eq!(u64_at(slot, at + 40 + 8), 4);
    assert_eq!(u64_at(slot, at + 40 + 16), 0x5555);
    // Of the third one, after five slots each of the second: the history.
    let at = at + 4 * 40;
    assert_eq!(slot[at..at + 28], [1; 28]);
    // The journal: a row with its own values, two with those of scratch slot 8.
    let at = at + 2 * 48;
    let entry = |at| [0, 4, 8, 12].map(|field| u32_at(slot, at + field));
    assert_eq!(entry(at), [0, 0, 0, 1]);
    assert_eq!((f64_at(slot, at + 16), f64_at(slot, at + 24)), (1.0, 2.0));
    assert_eq!(entry(at + 32), [0, 1, 1, 2]);
    assert_eq!(at + 48, used);

    let values = slots + 2 * slot_size;
    let first = (0..6).map(|value| f64_at(&bytes, values + 8 * value));
    assert_eq!(first.collect::<Vec<_>>(), [1.0, 2.0, 8.0, 8.0, 8.0, 8.0]);
    let second = (0..4).map(|value| f64_at(&bytes, values + 48 + 32 + 8 * value));
    assert_eq!(second.collect::<Vec<_>>(), [1.0, 2.0, 3.0, 4.0]);
}

#[test]
fn what_cannot_be_held_is_refused() {
    let refused = |change: &dyn Fn(&mut Database)| {
        let mut database = example();
        change(&mut database);
        let options = Options::default();
        let result = portable::create(&database, None, &options, Vec::new());
        result.map(File::into_storage).unwrap_err().to_string()
    };
    for (text, change) in [
        (
            "states of archives",
            &(|database: &mut Database| database.state.archives.clear()) as &dyn Fn(&mut Database),
        ),
        ("native version", &|database| database.version = 6),
        ("rows of archive 0", &|database| {
            database.archives[0].rows = 1 << 32
        }),
        ("last update", &|database| {
            database.state.last_update = Time::from_seconds(1 << 34);
        }),
        ("computed from", &|database| {
            let nodes = vec![Node::Variable(2)];
            database.sources[0].kind = SourceKind::Compute(Program { nodes });
        }),
        ("name of a data source", &|database| {
            database.sources[0].name = "n".repeat(65_536).as_str().into();
        }),
    ] {
        let found = refused(change);
        assert!(found.contains(text), "{found}");
    }
    for (kind, length) in [(1, 8), (2, 8), (1 << 31, 8), (3, 7)] {
        let content = vec![0; length];
        let options = Options {
            records: vec![Record { kind, content }],
            ..Default::default()
        };
        let result = portable::create(&example(), None, &options, Vec::new());
        assert!(matches!(result, Err(Error::CannotHold { .. })));
    }
    // Long readings and many nodes are held.
    let mut database = example();
    database.state.sources[0].last_reading = "9".repeat(1000).as_str().into();
    let nodes = vec![Node::Number(Value::from(1e300)); 500];
    database.sources[1].kind = SourceKind::Compute(Program { nodes });
    let file = portable::create(&database, None, &Options::default(), Vec::new()).unwrap();
    assert_eq!(file.reading_size(), 1000);
    let opened = File::open(file.into_storage()).unwrap();
    assert_eq!(opened.database(), &database);
}
