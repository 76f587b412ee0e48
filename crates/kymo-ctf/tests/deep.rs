//! Classes that lie 2,048 levels deep within each other, on the stacks that threads usually have.

use std::thread;

use kymo_ctf::class::{Dialect, FieldClass, TraceClass};
use kymo_ctf::decode::Decoder;
use kymo_ctf::deep::MAX_LEVELS;
use kymo_ctf::metadata::fit::fit;
use kymo_ctf::metadata::parse;
use kymo_ctf::metadata::write::write;
use kymo_model::{Cursor, Event, FieldId, Visitor};

/// What lies within each other.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Nest {
    Struct,
    Array,
    Sequence,
    Variant,
}

impl Nest {
    /// TSDL with this many levels around an integer of 8 bits.
    fn tsdl(self, levels: usize) -> String {
        let (open, close) = match self {
            Self::Struct => ("struct { ".repeat(levels), " } f;".repeat(levels)),
            Self::Array => (String::new(), format!(" f{};", "[1]".repeat(levels))),
            Self::Sequence => (String::new(), format!(" f{};", "[n]".repeat(levels))),
            Self::Variant => (
                "variant <t> { ".repeat(levels),
                " a; }".repeat(levels) + " f;",
            ),
        };
        let inner = match self {
            Self::Struct => "integer { size = 8; } f;",
            _ => "integer { size = 8; }",
        };
        format!(
            "/* CTF 1.8 */ trace {{ major = 1; minor = 8; byte_order = le; }};
             event {{ name = e; fields := struct {{ integer {{ size = 8; }} n;
             enum : integer {{ size = 8; }} {{ a = 1 }} t; {open}{inner}{close} }}; }};"
        )
    }
}

#[derive(Default)]
struct Levels {
    now: usize,
    most: usize,
    sum: u64,
}

impl Levels {
    fn enter(&mut self) {
        self.now += 1;
        self.most = self.most.max(self.now);
    }
}

impl Visitor for Levels {
    fn uint(&mut self, _: FieldId, value: u64) {
        self.sum += value;
    }
    fn begin_struct(&mut self, _: FieldId) {
        self.enter();
    }
    fn end_struct(&mut self, _: FieldId) {
        self.now -= 1;
    }
    fn begin_array(&mut self, _: FieldId, _: u64) {
        self.enter();
    }
    fn end_array(&mut self, _: FieldId) {
        self.now -= 1;
    }
    fn begin_variant(&mut self, _: FieldId, _: u32, _: u64) {
        self.enter();
    }
    fn end_variant(&mut self, _: FieldId) {
        self.now -= 1;
    }
}

fn read(nest: Nest, levels: usize) -> TraceClass {
    match parse(nest.tsdl(levels).as_bytes(), "metadata") {
        Ok(metadata) => metadata.class,
        Err(error) => panic!("{nest:?}: {:?}", error.diagnostics()),
    }
}

fn decodes(class: &TraceClass, data: &[u8]) {
    let decoder = Decoder::new(class).unwrap();
    let head = decoder.packet_head(data).unwrap();
    let mut cursor = decoder.cursor(data, &head, data.len() as u64 * 8, 0);
    let mut events = 0;
    while let Some(event) = cursor.next_event().unwrap() {
        let mut levels = Levels::default();
        event.visit(&mut levels).unwrap();
        assert_eq!((levels.now, levels.most), (0, MAX_LEVELS + 1));
        assert_eq!(levels.sum, 1 + 1 + 7);
        events += 1;
    }
    assert_eq!(events, 2);
}

#[test]
fn so_many_levels_are_read_decoded_and_written() {
    for nest in [Nest::Struct, Nest::Array, Nest::Sequence, Nest::Variant] {
        // As the threads of other programs are.
        let small = thread::Builder::new().stack_size(2 << 20);
        let done = small.spawn(move || {
            let class = read(nest, MAX_LEVELS);
            decodes(&class, &[1, 1, 7, 1, 1, 7]);
            for dialect in [Dialect::Ctf18, Dialect::Ctf2] {
                let fitted = fit(&class, dialect).unwrap();
                let text = write(&fitted.model).unwrap();
                assert!(text.len() < 1 << 20, "{}", text.len());
                let again = parse(text.as_bytes(), "metadata").unwrap();
                assert!(again.class == fitted.model.clone());
                decodes(&again.class, &[1, 1, 7, 1, 1, 7]);
            }
        });
        done.unwrap().join().unwrap();
    }
}

#[test]
fn one_more_is_refused() {
    for nest in [Nest::Struct, Nest::Array, Nest::Variant] {
        let text = nest.tsdl(MAX_LEVELS + 1);
        let error = parse(text.as_bytes(), "metadata").unwrap_err();
        let shown = error.to_string();
        assert!(
            shown.contains("types lie too deep within each other")
                && shown.contains("expected at most 2048 levels"),
            "{}",
            &shown[..200]
        );
    }
}

#[test]
fn a_model_of_more_is_refused() {
    let mut class = read(Nest::Struct, 1);
    let payload = class.streams[0].events[0].payload.take().unwrap();
    let nested = (0..MAX_LEVELS + 1).fold(payload, |inner, _| {
        FieldClass::structure(vec![kymo_ctf::class::Member::new("f", inner)])
    });
    class.streams[0].events[0].payload = Some(nested);
    assert!(Decoder::new(&class).is_err());
    assert!(fit(&class, Dialect::Ctf2).is_err());
    assert!(write(&class).is_err());
}
