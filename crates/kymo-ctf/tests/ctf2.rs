//! A small trace of CTF 2, written by hand, through the interfaces of this crate alone: also
//! on hosts of the other byte order.

use std::fmt::Write;
use std::path::Path;

use kymo_ctf::class::EnvironmentValue;
use kymo_ctf::metadata;
use kymo_ctf::trace::{Options, Trace};
use kymo_model::{Cursor, Event, FieldId, Recording, Schema, Visitor};
use kymo_time::Timestamp;

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/ctf2-small")
}

/// Shows what it visits.
struct Show<'s> {
    schema: &'s Schema,
    text: String,
}

impl Show<'_> {
    fn value(&mut self, field: FieldId, value: impl std::fmt::Display) {
        let name = self.schema.field(field).name.as_deref().unwrap_or("-");
        write!(self.text, " {name}={value}").unwrap();
    }
}

impl Visitor for Show<'_> {
    fn uint(&mut self, field: FieldId, value: u64) {
        self.value(field, value);
    }

    fn sint(&mut self, field: FieldId, value: i64) {
        self.value(field, value);
    }

    fn float(&mut self, field: FieldId, value: f64) {
        self.value(field, value);
    }

    fn boolean(&mut self, field: FieldId, value: bool) {
        self.value(field, value);
    }

    fn bits(&mut self, field: FieldId, value: u64) {
        self.value(field, format!("{value:#b}"));
    }

    fn text(&mut self, field: FieldId, text: &[u8]) {
        self.value(field, format!("{:?}", String::from_utf8_lossy(text)));
    }

    fn blob(&mut self, field: FieldId, bytes: &[u8]) {
        self.value(field, format!("{bytes:x?}"));
    }

    fn begin_array(&mut self, _field: FieldId, length: u64) {
        write!(self.text, " {length}[").unwrap();
    }

    fn end_array(&mut self, _field: FieldId) {
        self.text.push_str(" ]");
    }

    fn begin_optional(&mut self, field: FieldId, present: bool, _selector: u64) {
        self.value(field, if present { "some" } else { "none" });
    }

    fn begin_variant(&mut self, _field: FieldId, selected: u32, selector: u64) {
        write!(self.text, " {selected}<{}>", selector as i64).unwrap();
    }
}

#[test]
fn every_kind_of_field_is_decoded() {
    let trace = Trace::open(&[folder()], &Options::default()).expect("the trace opens");
    assert_eq!(trace.faults(), []);
    let mut shown = Vec::new();
    for chunk in trace.chunks(0) {
        let mut cursor = trace.cursor(&chunk);
        while let Some(event) = cursor.next_event().expect("the trace is sound") {
            let class = event.class();
            let mut show = Show {
                schema: &class.schema,
                text: String::new(),
            };
            event.visit(&mut show).expect("the trace is sound");
            shown.push(format!(
                "{} {}{}",
                event.ticks().expect("the trace has a clock"),
                class.name.as_deref().unwrap_or_default(),
                show.text
            ));
        }
    }
    assert_eq!(
        shown,
        [
            "1234 numbers bits=0b1010 map=0b100 yes=true reversed=1 signed=-2 half=1.5 \
             double=-0.125 long=300 negative=-64",
            "1285 texts utf8=\"grün\" utf16=\"€😀\" utf32=\"A\" length=2 text=\"hi\" \
             bytes=[1, 2, 3] more=[fe, ff]",
            "1636 compounds count=3 3[ length=1 text=\"a\" length=0 text=\"\" length=3 \
             text=\"bcd\" ] 2[ -=7 -=8 ] flag=true maybe=some -=77 perhaps=none key=9 \
             0<9> number=9",
            "1891 compounds count=0 0[ ] 2[ -=7 -=8 ] flag=false maybe=none perhaps=some -=88 \
             key=-9 1<-9> length=3 text=\"xyz\"",
        ]
    );
}

#[test]
fn the_metadata_is_known() {
    let bytes = std::fs::read(folder().join("metadata")).expect("the metadata is there");
    let metadata = metadata::parse(&bytes, "metadata").expect("the metadata is sound");
    assert!(metadata.warnings.is_empty());
    let class = metadata.class;
    assert_eq!(class.namespace.as_deref(), Some("example.org,2026"));
    assert_eq!(
        class.environment("cpus"),
        Some(&EnvironmentValue::Integer(2))
    );
    assert_eq!(class.streams[0].id, 300);
    assert_eq!(class.streams[0].events[0].log_level, Some(6));
    assert_eq!(
        class.clocks[0].timestamp(1234),
        Some(Timestamp::from_nanos(1_001_734_000_000))
    );
    let text = metadata::ctf2::write(&class).expect("the metadata can be written");
    let again = metadata::parse(text.as_bytes(), "metadata").expect("what is written is sound");
    assert_eq!(again.class, class);
}
