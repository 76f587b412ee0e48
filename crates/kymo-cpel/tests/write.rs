//! What is written is read again.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::Path;

use kymo_cpel::StringError;
use kymo_cpel::definitions::{Definitions, InFile, Reference};
use kymo_cpel::entries::{Entries, Entry};
use kymo_cpel::file::File;
use kymo_cpel::rewrite::{rewrite, size};
use kymo_cpel::write::{Builder, Error, Options, Padding};
use kymo_machine::ByteOrder;
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;

/// The formats of an event: of its name, of its datum.
type Formats = (Option<Vec<u8>>, Option<Vec<u8>>);

/// A file with arbitrary content.
#[derive(Clone, Debug, Default, PartialEq)]
struct Model {
    symbols: BTreeMap<u32, Vec<u8>>,
    events: BTreeMap<u32, Formats>,
    tracks: BTreeMap<u32, Option<Vec<u8>>>,
    entries: Vec<Entry>,
}

fn text() -> impl Strategy<Value = Vec<u8>> {
    vec(1..=255u8, 0..12)
}

fn entry() -> impl Strategy<Value = Entry> {
    (0..50u64, any::<[u32; 3]>()).prop_map(|(time, [track, code, datum])| Entry {
        time: time << 30,
        track,
        code,
        datum,
    })
}

fn model() -> impl Strategy<Value = Model> {
    (
        btree_map(any::<u32>(), text(), 0..5),
        btree_map(any::<u32>(), (option::of(text()), option::of(text())), 0..8),
        btree_map(any::<u32>(), option::of(text()), 0..8),
        vec(entry(), 0..40),
    )
        .prop_map(|(symbols, events, tracks, entries)| Model {
            symbols,
            events,
            tracks,
            entries,
        })
}

fn write(model: &Model, options: Options) -> Vec<u8> {
    let mut builder = Builder::new(options);
    for (&value, name) in &model.symbols {
        assert!(builder.symbol(value, name).unwrap());
        assert!(!builder.symbol(value, b"again").unwrap());
    }
    for (&code, (name, datum)) in &model.events {
        let added = builder.event(code, name.as_deref(), datum.as_deref());
        assert!(added.unwrap());
        assert!(!builder.event(code, None, None).unwrap());
    }
    for (&track, name) in &model.tracks {
        assert!(builder.track(track, name.as_deref()).unwrap());
        assert!(!builder.track(track, None).unwrap());
    }
    for &entry in &model.entries {
        builder.push(entry).unwrap();
    }
    let mut bytes = Vec::new();
    builder.write(&mut bytes).unwrap();
    bytes
}

/// The model of a file that has no damage, and its definitions.
fn read(bytes: &[u8]) -> (Model, Definitions) {
    let mut file = File::open(bytes).unwrap();
    let definitions = Definitions::read(&mut file);
    assert_eq!(file.findings, []);
    let names = InFile {
        bytes,
        strings: &[],
        symbols: &[],
    };
    let text = |reference: &Reference| match reference {
        Reference::None => None,
        Reference::At(place) => Some(names.text(place).to_vec()),
        Reference::Bad(offset) => panic!("offset {offset}"),
    };
    let mut model = Model::default();
    for symbol in &definitions.symbols {
        let name = text(&symbol.name).unwrap();
        model.symbols.insert(symbol.value, name);
    }
    for event in &definitions.events {
        let formats = (text(&event.name), text(&event.datum));
        model.events.insert(event.code, formats);
    }
    for track in &definitions.tracks {
        model.tracks.insert(track.track, text(&track.name));
    }
    for section in &definitions.sections {
        let entries = Entries::new(&bytes[section.entries.clone()], file.header.order);
        model.entries.extend(entries.iter());
    }
    (model, definitions)
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        model in model(),
        little: bool,
        eight: bool,
        section_events in 1..20usize,
        date: u32,
        clock in 1..=u32::MAX,
    ) {
        let options = Options {
            order: if little { ByteOrder::Little } else { ByteOrder::Big },
            date,
            padding: if eight { Padding::Eight } else { Padding::Four },
            clock: NonZeroU32::new(clock).unwrap(),
            section_events,
            ..Options::default()
        };
        let bytes = write(&model, options);
        let (found, definitions) = read(&bytes);
        let mut expected = model;
        expected.entries.sort_by_key(|entry| entry.time);
        prop_assert_eq!(&found, &expected);
        let sections = expected.entries.len().div_ceil(section_events).max(1);
        prop_assert_eq!(definitions.sections.len(), sections);
        prop_assert!(definitions.sections.iter().all(|section| section.clock == Some(clock)));
        let file = File::open(&bytes).unwrap();
        prop_assert_eq!((file.header.order, file.header.date), (options.order, date));
        let padded = file.sections[0].data.len() % if eight { 8 } else { 4 };
        prop_assert_eq!(padded, 0);
    }

    #[test]
    fn a_copy_is_the_same_in_its_own_order(model in model(), little: bool, unknown in vec(any::<u8>(), 0..20)) {
        let (order, other) = match little {
            true => (ByteOrder::Little, ByteOrder::Big),
            false => (ByteOrder::Big, ByteOrder::Little),
        };
        let mut bytes = write(&model, Options { order, ..Options::default() });
        // An unknown section, at the end.
        let count = if little { 2 } else { 3 };
        bytes[count] += 1;
        for word in [77, unknown.len() as u32] {
            bytes.extend(if little { word.to_le_bytes() } else { word.to_be_bytes() });
        }
        bytes.extend(&unknown);
        let file = File::open(&bytes).unwrap();
        let mut same = Vec::new();
        rewrite(&file, order, &mut same).unwrap();
        prop_assert_eq!(&same, &bytes);
        prop_assert_eq!(size(&file), bytes.len() as u64);
        let mut swapped = Vec::new();
        rewrite(&file, other, &mut swapped).unwrap();
        let again = File::open(&swapped).unwrap();
        prop_assert_eq!(again.header.order, other);
        prop_assert_eq!(again.data(again.sections.last().unwrap()), &unknown[..]);
        prop_assert_eq!(read(&swapped).0, read(&bytes).0);
        let mut back = Vec::new();
        rewrite(&again, order, &mut back).unwrap();
        prop_assert_eq!(back, bytes);
    }
}

#[test]
fn strings_are_there_once() {
    let mut builder = Builder::new(Options::default());
    let one = builder.string(b"one").unwrap();
    let two = builder.string(b"two").unwrap();
    assert_eq!((one, two), (11, 15));
    assert_eq!(builder.string(b"one").unwrap(), one);
    assert!(matches!(
        builder.string(b"a\0b"),
        Err(Error::String(StringError::Zero { .. }))
    ));
    builder.event(3, Some(b"one"), Some(b"two")).unwrap();
    builder.track(5, Some(b"one")).unwrap();
    let mut bytes = Vec::new();
    builder.write(&mut bytes).unwrap();
    let file = File::open(&bytes).unwrap();
    assert_eq!(file.data(&file.sections[0]), b"FileStrtab\0one\0two\0\0");
}

#[test]
fn no_more_is_written_than_is_read() {
    let mut builder = Builder::new(Options {
        most_strings: 20,
        ..Options::default()
    });
    builder.string(b"12345678").unwrap();
    let error = builder.string(b"9").unwrap_err();
    assert!(
        matches!(error, Error::String(StringError::Full { most: 20 })),
        "{error}"
    );
    assert_eq!(builder.string(b"12345678").unwrap(), 11);
    for code in 0..1 << 16 {
        assert!(builder.event(code, None, None).unwrap());
    }
    let error = builder.event(1 << 16, None, None).unwrap_err();
    assert!(matches!(error, Error::Kinds { .. }), "{error}");
    assert!(!builder.event(0, None, None).unwrap());
    let mut bytes = Vec::new();
    builder.write(&mut bytes).unwrap();
    let mut file = File::open(&bytes).unwrap();
    let definitions = kymo_cpel::definitions::Definitions::read(&mut file);
    assert_eq!((definitions.events.len(), file.findings), (1 << 16, vec![]));
}

#[test]
fn more_sections_than_a_file_has_are_refused() {
    let mut builder = Builder::new(Options {
        section_events: 1,
        ..Options::default()
    });
    for time in 0..65_533 {
        builder
            .push(Entry {
                time,
                track: 0,
                code: 0,
                datum: 0,
            })
            .unwrap();
    }
    let error = builder.write(&mut Vec::new()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "65533 events take more sections than the 65535 of a file"
    );
}

#[test]
fn the_twins_of_both_orders_are_copies_of_each_other() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let read = |name: &str| std::fs::read(folder.join(name)).unwrap();
    let (big, little) = (read("be_basic.cpel"), read("le_basic.cpel"));
    for (from, to, order) in [
        (&big, &little, ByteOrder::Little),
        (&little, &big, ByteOrder::Big),
        (&big, &big, ByteOrder::Big),
    ] {
        let mut copy = Vec::new();
        rewrite(&File::open(from).unwrap(), order, &mut copy).unwrap();
        assert!(&copy == to);
    }
}
