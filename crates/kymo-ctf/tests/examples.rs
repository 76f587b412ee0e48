//! The traces in `examples/`, through the interfaces of this crate alone: also on hosts of
//! the other byte order.

use std::path::{Path, PathBuf};

use kymo_ctf::trace::{Options, Trace};
use kymo_model::{Cursor, Event, FieldId, Recording, Visitor};

fn open(name: &str) -> Trace {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples")
        .join(name);
    let trace = Trace::open(&[path], &Options::default()).expect("the example opens");
    assert_eq!(trace.faults(), []);
    trace
}

/// Adds up what it visits, so that every value counts.
#[derive(Default)]
struct Sum {
    values: u64,
    sum: u64,
}

impl Sum {
    fn add(&mut self, value: u64) {
        self.values += 1;
        self.sum = self.sum.rotate_left(5) ^ value;
    }
}

impl Visitor for Sum {
    fn uint(&mut self, _field: FieldId, value: u64) {
        self.add(value);
    }

    fn sint(&mut self, _field: FieldId, value: i64) {
        self.add(value as u64);
    }

    fn float(&mut self, _field: FieldId, value: f64) {
        self.add(value.to_bits());
    }

    fn text(&mut self, _field: FieldId, text: &[u8]) {
        text.iter().for_each(|&byte| self.add(byte.into()));
    }
}

/// Events and the sum of all values of a trace.
fn sum(trace: &Trace) -> (u64, Sum) {
    let mut events = 0;
    let mut sum = Sum::default();
    for stream in 0..trace.streams().len() {
        for chunk in trace.chunks(stream) {
            let mut cursor = trace.cursor(&chunk);
            while let Some(event) = cursor.next_event().expect("the example is sound") {
                events += 1;
                sum.add(event.ticks().unwrap_or(0));
                event.visit(&mut sum).expect("the example is sound");
            }
        }
    }
    (events, sum)
}

#[test]
fn bit_fields_are_the_same_in_both_byte_orders() {
    for name in ["bitfield-be", "bitfield-le"] {
        let (events, sum) = sum(&open(name));
        let mut expected = Sum::default();
        for value in [0, 0xe, 0xa1b2_c3d4, 0xf] {
            expected.add(value);
        }
        assert_eq!(
            (events, sum.values, sum.sum),
            (1, expected.values, expected.sum)
        );
    }
}

#[test]
fn every_value_of_a_real_trace_is_the_same_on_all_hosts() {
    let folder = PathBuf::from("lttng-small/ust/uid/0/64-bit");
    let (events, sum) = sum(&open(&folder.to_string_lossy()));
    assert_eq!(
        (events, sum.values, sum.sum),
        (3000, 45_664, 16_743_385_400_841_094_723)
    );
}
