use kymo_model::{Cursor as _, Event as _, Recording as _, Visitor};

use super::layout::name_of;
use super::*;

const FILE: &[u8] = include_bytes!("../../tests/data/dump/holt-winters.amd64.rrd");

fn open() -> Recording {
    let bytes = Bytes::from(FILE.to_vec());
    Recording::new(Path::new("dir/load.rrd"), bytes, None).unwrap()
}

/// Gets the values of a row.
#[derive(Default)]
struct Values(Vec<Option<f64>>);

impl Visitor for Values {
    fn begin_optional(&mut self, _field: FieldId, _present: bool, _selector: u64) {
        self.0.push(None);
    }

    fn float(&mut self, _field: FieldId, value: f64) {
        *self.0.last_mut().unwrap() = Some(value);
    }
}

#[test]
fn archives_are_streams_of_rows() {
    let recording = open();
    assert_eq!(recording.name(), Some("load"));
    assert_eq!(
        (recording.format().name, recording.format().version),
        ("rrd", "0004")
    );
    let names: Vec<_> = recording
        .streams()
        .iter()
        .map(|stream| &*stream.name)
        .collect();
    assert_eq!(
        names,
        [
            "AVERAGE/300",
            "MHWPREDICT/300",
            "SEASONAL/300",
            "DEVSEASONAL/300",
            "DEVPREDICT/300",
            "FAILURES/300"
        ]
    );
    let chunk = recording.chunk(0, 0).unwrap();
    assert_eq!((recording.chunk_count(0), recording.chunk(0, 1)), (1, None));
    assert_eq!(chunk.bytes, 10 * 2 * 8);
    let mut cursor = recording.cursor(&chunk);
    let mut rows = Vec::new();
    while let Some(event) = cursor.next_event().unwrap() {
        let mut values = Values::default();
        event.visit(&mut values).unwrap();
        rows.push((event.timestamp().unwrap().as_nanos(), values.0));
    }
    assert_eq!(rows.len(), 10);
    assert_eq!(rows[0].1, [Some(1.0), Some(2.0)]);
    assert_eq!(
        rows[9],
        (1_700_008_800_000_000_000, vec![Some(0.0), Some(0.0)])
    );
    assert_eq!(chunk.begin_time.unwrap().as_nanos(), rows[0].0);
    assert_eq!(chunk.end_time.unwrap().as_nanos(), rows[9].0);
}

#[test]
fn shifts_move_times() {
    let mut recording = open();
    for (nanos, expected) in [
        (7_000_000_000, 1_700_008_807_000_000_000),
        (-7_000_000_001, 1_700_008_799_999_999_999),
    ] {
        let shift = Shift {
            nanos,
            from_unix_epoch: false,
        };
        recording.shift(shift).unwrap();
        let end = recording.chunk(0, 0).unwrap().end_time.unwrap();
        assert_eq!(end.as_nanos(), expected);
    }
}

#[test]
fn what_has_not_changed_is_shared() {
    let name = format!("kymo-rrd-unchanged-{}.rrd", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, FILE).unwrap();
    let mut recording = Recording::open(&path, None).unwrap();
    let other = Recording::open(&path, None).unwrap();
    assert!(Arc::ptr_eq(
        &recording.contents.layout,
        &other.contents.layout
    ));
    let unmoved = recording.chunk(0, 0).unwrap();
    let shift = Shift {
        nanos: 5,
        from_unix_epoch: false,
    };
    recording.shift(shift).unwrap();
    let again = recording.unchanged().expect("the file is the same");
    assert!(Arc::ptr_eq(&recording.contents, &again.contents));
    assert_eq!(again.chunk(0, 0).unwrap(), unmoved);
    assert_eq!(again.streams()[0].clock.as_deref(), Some(&clock()));
    std::fs::write(&path, &FILE[..FILE.len() - 8]).unwrap();
    assert!(recording.unchanged().is_none());
    std::fs::remove_file(&path).unwrap();
    assert!(open().unchanged().is_none(), "it has no file");
}

#[test]
fn names_are_not_escaped() {
    for (bytes, name) in [
        (&b"a\"b\n\x1b[31m,\\"[..], "a\"b\n\u{1b}[31m,\\"),
        ("Gr\u{f6}\u{df}e".as_bytes(), "Gr\u{f6}\u{df}e"),
        (b"a\xffb\xc3", "a\\xffb\\xc3"),
    ] {
        assert_eq!(name_of(bytes), name);
    }
}

#[test]
fn damage_is_an_error() {
    let bytes = Bytes::from(FILE[..1000].to_vec());
    assert!(Recording::new(Path::new("x"), bytes, None).is_err());
    let error = Recording::open(Path::new("none.rrd"), None).unwrap_err();
    assert!(error.to_string().starts_with("none.rrd: "));
}
