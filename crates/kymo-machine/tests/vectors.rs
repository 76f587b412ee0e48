//! The doubles and the structs that real machines have written.

use kymo_machine::float::convert_doubles;
use kymo_machine::integer;
use kymo_machine::layout::{CType, Layout, Struct};
use kymo_machine::{Machine, Width};

/// The lines of a table without its head, each cut at its tabs.
fn rows(table: &'static str) -> Vec<Vec<&'static str>> {
    table
        .lines()
        .skip(1)
        .map(|line| line.split('\t').collect())
        .collect()
}

fn find(name: &str) -> &'static Machine {
    Machine::find(name).unwrap_or_else(|| panic!("no machine {name}"))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn doubles() {
    let rows = rows(include_str!("data/float64.tsv"));
    assert_eq!(rows.len(), 99);
    for row in rows {
        let [machine, value, expected] = row[..] else {
            panic!("{row:?}");
        };
        let machine = find(machine);
        let bits = match value {
            "NaN" | "nan" | "NaNQ" => machine.constant_nan(),
            number => number.parse::<f64>().expect("a number").to_bits(),
        };
        let bytes = machine.double_to_bytes(bits);
        assert_eq!(hex(&bytes), expected, "{} {value}", machine.name());
        assert_eq!(machine.double_from_bytes(bytes), bits);
    }
}

/// The structs of which the dumps are, with two kinds of heads.
fn format(name: &'static str, head: u64, two_doubles_last: bool) -> Struct {
    let ideas = ["ID_ONE", "ID_TWO", "ID_THREE", "ID_FOUR"];
    let ideas = ideas.into_iter().map(Into::into).zip(0..).collect();
    let middle = match two_doubles_last {
        true => ["i2", "f1"],
        false => ["f1", "i2"],
    };
    let ctype = |name: &str| match name.starts_with('i') {
        true => CType::UINT,
        false => CType::Double,
    };
    Struct::new(name)
        .member("c1", CType::array(CType::Char, head))
        .member("i1", CType::UINT)
        .member(middle[0], ctype(middle[0]))
        .member(middle[1], ctype(middle[1]))
        .member("f2", CType::Double)
        .member("l1", CType::UINT64)
        .member("e1", CType::Enum(ideas))
}

#[test]
fn structs() {
    let rows = rows(include_str!("data/struct-layout.tsv"));
    assert_eq!(rows.len(), 20);
    for row in rows {
        let [machine, name, size, expected] = row[..] else {
            panic!("{row:?}");
        };
        let machine = find(machine);
        let description = match name {
            "FORMATa" => format("FORMATa", 5, false),
            "FORMATb" => format("FORMATb", 8, true),
            other => panic!("{other}"),
        };
        let layout = Layout::of(&description, machine).expect("a small struct");
        assert_eq!(layout.size.to_string(), size, "{} {name}", machine.name());

        let mut bytes = vec![0x88; layout.size as usize];
        let at = |name| layout.member(name).expect("a member").offset as usize;
        bytes[at("c1")..][..4].copy_from_slice(b"012\0");
        let order = machine.byte_order();
        for (name, width, value) in [
            ("i1", Width::W32, 123_456_789),
            ("i2", Width::W32, 123_456_789),
            ("l1", Width::W64, 123_456_789),
            ("e1", Width::W32, 1),
        ] {
            integer::write(&mut bytes, at(name), width, order, value).expect("within");
        }
        for name in ["f1", "f2"] {
            let double = machine.double_to_bytes(123_456_789e123_f64.to_bits());
            bytes[at(name)..][..8].copy_from_slice(&double);
        }
        assert_eq!(hex(&bytes), expected, "{} {name}", machine.name());
    }
}

/// Values between all machines, one by one and many at once.
#[test]
fn conversion_of_many_is_that_of_each() {
    let values = [
        0,
        1,
        1 << 63,
        0x0123_4567_89ab_cdef,
        0x3ff0_0000_0000_0000,
        0x7fef_ffff_ffff_ffff,
        0x7ff0_0000_0000_0000,
        0xfff0_0000_0000_0000,
        0x7ff0_0000_0000_0001,
        0x7ff4_0000_0000_0000,
        0x7ff7_ffff_ffff_ffff,
        0x7ff8_0000_0000_0000,
        0xfff8_0000_0000_0000,
        0xfff0_0000_8000_0000,
        u64::MAX,
    ];
    for from in Machine::all() {
        let source = values.map(|bits| from.double_to_bytes(bits)).concat();
        for to in Machine::all() {
            let mut target = vec![0; source.len()];
            convert_doubles(from, to, &source, &mut target);
            let expected = values.map(|bits| {
                let is_nan = f64::from_bits(bits).is_nan();
                to.double_to_bytes(if is_nan { to.file_nan() } else { bits })
            });
            assert_eq!(target, expected.concat(), "{} {}", from.name(), to.name());
        }
    }
}
