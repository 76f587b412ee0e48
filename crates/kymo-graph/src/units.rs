//! Numbers as people read them, and units that follow from names for sure.

/// A number with four significant digits at most, and the prefix of its power of a thousand: `1.234 k`.
pub(crate) fn short(value: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let power = (value.abs().log10() / 3.0 + 1e-9).floor().clamp(-6.0, 6.0) as i32;
    let scaled = value / 1000f64.powi(power);
    let prefix = prefix(power);
    let digits = match scaled.abs() {
        scaled if scaled >= 1e6 => return format!("{value:.2e}"),
        scaled if scaled >= 99.995 => 1,
        scaled if scaled >= 9.9995 => 2,
        _ => 3,
    };
    let text = format!("{scaled:.digits$}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    match prefix {
        "" => text.into(),
        prefix => format!("{text} {prefix}"),
    }
}

/// The prefix of a power of a thousand, from -6 to 6.
pub(crate) fn prefix(power: i32) -> &'static str {
    const PREFIXES: [&str; 13] = [
        "a", "f", "p", "n", "µ", "m", "", "k", "M", "G", "T", "P", "E",
    ];
    let at = usize::try_from(power.clamp(-6, 6) + 6).unwrap_or(6);
    PREFIXES[at]
}

/// The unit that follows from the name of a series for sure; empty if none does.
pub(crate) fn of_name(name: &str, is_rate: bool) -> &'static str {
    let name = name.to_ascii_lowercase();
    let has = |words: &[&str]| {
        name.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .any(|word| words.contains(&word))
    };
    match is_rate {
        true if has(&["octets", "bytes", "if_octets", "disk_octets"]) => "B/s",
        true if has(&["bits"]) => "bit/s",
        true if has(&["packets"]) => "packets/s",
        true => "/s",
        false if has(&["bytes"]) => "B",
        false if has(&["percent"]) => "%",
        false => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let cases = [
            (0.0, "0"),
            (1.0, "1"),
            (1234.0, "1.234 k"),
            (-1500.0, "-1.5 k"),
            (0.00025, "250 µ"),
            (999.96, "1000"),
            (1000.0, "1 k"),
            (1e6, "1 M"),
            (12.345, "12.35"),
            (1e300, "1.00e300"),
        ];
        for (value, text) in cases {
            assert_eq!(short(value), text, "{value}");
        }
    }

    #[test]
    fn only_sure_names_have_units() {
        assert_eq!(of_name("host/interface-eth0/if_octets", true), "B/s");
        assert_eq!(of_name("rx bytes", true), "B/s");
        assert_eq!(of_name("bytes", false), "B");
        assert_eq!(of_name("kilobytes", false), "");
    }
}
