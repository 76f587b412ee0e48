//! Formats beside what C makes of them.

use proptest::prelude::*;

use super::*;

struct Some3;

impl Names for Some3 {
    fn string(&self, offset: u32) -> Option<&[u8]> {
        b"main\0worker\0".get(offset as usize..).map(string_of)
    }

    fn symbol(&self, value: u32) -> Option<(&[u8], u32)> {
        let name: &[u8] = b"main";
        value.checked_sub(0x1000).map(|distance| (name, distance))
    }
}

fn show(format: &str, value: u32) -> String {
    let mut line = Line::new();
    write(format.as_bytes(), value, &Some3, &mut line, MOST_TEXT);
    if let Some(program) = Program::new(format.as_bytes()) {
        let mut other = Line::new();
        program.write(value, &Some3, &mut other, MOST_TEXT);
        assert_eq!(other.as_bytes(), line.as_bytes(), "{format} of {value}");
    }
    String::from_utf8_lossy(line.as_bytes()).into_owned()
}

#[test]
fn numbers_are_those_of_printf() {
    for (format, value, expected) in [
        ("%d", 5, "5"),
        ("%d", u32::MAX, "-1"),
        ("%i", 0x8000_0000, "-2147483648"),
        ("%u", u32::MAX, "4294967295"),
        ("%5d|%-5d|%05d|%+d|% d", 42, "   42|42   |00042|+42| 42"),
        (
            "%05d|%-05d|%.3d|%5.3d|%.0d",
            -7i32 as u32,
            "-0007|-7   |-007| -007|-7",
        ),
        ("%.0d|%.0x|%5.0u|", 0, "||     |"),
        ("%x %X %#x %#X %#o %o", 0xab, "ab AB 0xab 0XAB 0253 253"),
        ("%#x %#o %x", 0, "0 0 0"),
        ("0x%08x(%d)", 0x0040_16b7, "0x004016b7(4200119)"),
        (
            "%#010x|%#10x|%-#10x|",
            0x1f,
            "0x0000001f|      0x1f|0x1f      |",
        ),
        (
            "%hd %hhd %hu %hhx %ld %llu %Lx %zu",
            0x1_ffff,
            "-1 -1 65535 ff 131071 131071 1ffff 131071",
        ),
        ("%c%c|%3c|%-3c|", 65, "AA|  A|A  |"),
        (
            "%f %.2f %.0f %10.1f|%-10.1f|%010.1f",
            1000,
            "1000.000000 1000.00 1000     1000.0|1000.0    |00001000.0",
        ),
        (
            "%e %.2e %E",
            123_456_789,
            "1.234568e+08 1.23e+08 1.234568E+08",
        ),
        (
            "%g %G %.3g %.15g",
            u32::MAX,
            "4.29497e+09 4.29497E+09 4.29e+09 4294967295",
        ),
        ("%g %g", 999_999, "999999 999999"),
        ("%g", 1_000_000, "1e+06"),
        ("%g %e", 0, "0 0.000000e+00"),
        ("100%% of %u", 3, "100% of 3"),
    ] {
        assert_eq!(show(format, value), expected, "{format} of {value}");
    }
}

#[test]
fn strings_and_symbols_are_looked_up() {
    for (format, value, expected) in [
        ("%s", 5, "worker"),
        ("<%-12s>%8s|%.2s", 0, "<main        >    main|ma"),
        ("at %s", 13, "at <bad strtab offset 0xd>"),
        ("%k", 0x1000, "main"),
        ("%k depth %d", 0x1010, "main+0x10 depth 4112"),
        ("%12k|%-12k|", 0x1001, "    main+0x1|main+0x1    |"),
        ("%k", 0xfff, "0x00000fff"),
    ] {
        assert_eq!(show(format, value), expected, "{format} of {value}");
    }
}

#[test]
fn what_is_no_conversion_stands_for_itself() {
    for text in [
        "%",
        "%5",
        "%y",
        "50%",
        "%-",
        "a %5.2lQ b",
        "%*d",
        "%p",
        "%n",
        "%ll",
    ] {
        assert_eq!(show(text, 7), text);
    }
    assert_eq!(show("%y%d", 7), "%y7");
}

#[test]
fn shapes() {
    assert_eq!(Shape::of(b""), Shape::Constant);
    assert_eq!(Shape::of(b"abc"), Shape::Constant);
    assert_eq!(Shape::of(b"%s"), Shape::String);
    assert_eq!(Shape::of(b"%d secs"), Shape::Made { strings: false });
    assert_eq!(Shape::of(b"%d %-5s"), Shape::Made { strings: true });
    assert_eq!(Shape::of(b"%%s"), Shape::Made { strings: false });
}

#[test]
fn what_is_long_is_cut() {
    let long = "%999999999d".repeat(100);
    let mut line = Line::new();
    write(long.as_bytes(), 1, &Some3, &mut line, 5000);
    assert_eq!(line.len(), 5000 + "<more>".len());
    assert!(line.as_bytes().ends_with(b" <more>"));
}

proptest! {
    #[test]
    fn any_format_is_bounded(format in "[%a-z0-9.# +-]{0,40}", value: u32) {
        let mut line = Line::new();
        write(format.as_bytes(), value, &Some3, &mut line, 100);
        prop_assert!(line.len() <= 106);
        if let Some(program) = Program::new(format.as_bytes()) {
            let mut other = Line::new();
            program.write(value, &Some3, &mut other, 100);
            prop_assert_eq!(other.as_bytes(), line.as_bytes());
        }
        if let Shape::Constant = Shape::of(format.as_bytes()) {
            prop_assert_eq!(line.as_bytes(), format.as_bytes());
        }
    }
}
