//! How values lie in a packet (section 4).

use super::*;
use crate::bits::BitWriter;
use crate::types::write_value;

/// A byte as some other field may leave it behind, and then a value.
fn after_a_byte(ty: &Type, value: &Value, order: Endian) -> Vec<u8> {
    let mut bits = BitWriter::new(0);
    bits.write_bytes(&[0xEE]);
    write_value(&mut bits, ty, value, order);
    bits.finish()
}

#[test]
fn gcc_bitfields_begin_a_unit() {
    let short = |size| Type::Bitfield {
        integer: Integer {
            size,
            signed: true,
            order: Order::Native,
            align: Some(1),
        },
        unit_size: 16,
    };
    let example = structure(vec![short(12), short(5)]);
    let value = members(vec![Value::Signed(0x5AB), Value::Signed(-15)]);
    // The structure is aligned on `short`: one byte of padding.
    assert_eq!(
        after_a_byte(&example, &value, Endian::Big),
        hex("EE 00 5A B0 88")
    );
    assert_eq!(
        after_a_byte(&example, &value, Endian::Little),
        hex("EE 00 AB 05 11")
    );
    // What fits stays in the unit.
    let fits = structure(vec![short(12), short(4)]);
    let value = members(vec![Value::Signed(0x5AB), Value::Signed(-7)]);
    assert_eq!(after_a_byte(&fits, &value, Endian::Big), hex("EE 00 5A B9"));
    assert_eq!(
        after_a_byte(&fits, &value, Endian::Little),
        hex("EE 00 AB 95")
    );
}

#[test]
fn structures_are_aligned_and_not_padded_at_their_end() {
    let inner = structure(vec![integer(8, false, 8), integer(32, false, 32)]);
    let outer = structure(vec![integer(16, true, 16), inner, integer(8, false, 8)]);
    let value = members(vec![
        Value::Signed(-2),
        members(vec![uint(1), uint(2)]),
        uint(3),
    ]);
    assert_eq!(
        after_a_byte(&outer, &value, Endian::Big),
        hex("EE 00 00 00  FF FE  00 00  01 00 00 00 00 00 00 02  03")
    );
    assert_eq!(
        after_a_byte(&outer, &value, Endian::Little),
        hex("EE 00 00 00  FE FF  00 00  01 00 00 00 02 00 00 00  03")
    );
}

#[test]
fn sequences_have_their_length_before_them() {
    let words = Type::Sequence {
        length: Integer::predefined(8, false, Alignment::Packed),
        element: Box::new(integer(16, false, 16)),
    };
    let outer = structure(vec![words, integer(8, false, 8)]);
    for order in [Endian::Big, Endian::Little] {
        // The structure is aligned on the elements, the length is not.
        let value = members(vec![Value::Array(vec![uint(0x101)]), uint(2)]);
        assert_eq!(
            after_a_byte(&outer, &value, order),
            hex("EE 00 01 00  01 01  02")
        );
        let value = members(vec![Value::Array(Vec::new()), uint(2)]);
        assert_eq!(after_a_byte(&outer, &value, order), hex("EE 00 00 00 02"));
    }
}

#[test]
fn elements_are_aligned_each() {
    let pair = structure(vec![integer(16, false, 16), integer(8, false, 8)]);
    let pairs = Type::Array {
        length: 2,
        element: Box::new(pair),
    };
    let value = |n| members(vec![uint(n), uint(n)]);
    assert_eq!(
        after_a_byte(&pairs, &Value::Array(vec![value(1), value(2)]), Endian::Big),
        hex("EE 00  00 01 01 00  00 02 02")
    );
    let bits = Type::Array {
        length: 3,
        element: Box::new(integer(3, true, 1)),
    };
    let value = Value::Array([-4, 3, -1].map(Value::Signed).to_vec());
    // 100 011 111, from the high bit and from the low one.
    assert_eq!(
        after_a_byte(&bits, &value, Endian::Big),
        [0xEE, 0b1000_1111, 0x80]
    );
    assert_eq!(
        after_a_byte(&bits, &value, Endian::Little),
        [0xEE, 0b1101_1100, 0b1]
    );
}

#[test]
fn strings_enumerations_and_byte_orders() {
    let network = |size| Integer {
        size,
        signed: false,
        order: Order::Network,
        align: None,
    };
    let ty = structure(vec![
        integer(3, false, 1),
        Type::Text(Encoding::Utf8),
        Type::Integer(network(24)),
        Type::Enumeration {
            integer: network(16),
            map: vec![(0x102, "x".to_owned())],
        },
    ]);
    let value = members(vec![
        uint(5),
        Value::Text("é".as_bytes().to_vec()),
        uint(0x01_0203),
        Value::Label {
            value: 0x102,
            label: Some("x".to_owned()),
        },
    ]);
    assert_eq!(
        after_a_byte(&ty, &value, Endian::Little),
        hex("EE 05 C3 A9 00 01 02 03 01 02")
    );
}
