//! Numbers of bytes.

/// Reads a number of bytes: one alone, or with a unit of 1024 or a power of it, such as `64K`, `64k` or
/// `64KiB`.
pub(crate) fn parse_size<T: TryFrom<u64>>(text: &str) -> Result<T, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" => Some(1),
        "K" | "k" | "KiB" => Some(1 << 10),
        "M" | "MiB" => Some(1 << 20),
        "G" | "GiB" => Some(1 << 30),
        _ => None,
    };
    let number: Option<u64> = digits.parse().ok();
    number
        .zip(unit)
        .and_then(|(number, unit)| number.checked_mul(unit))
        .and_then(|bytes| T::try_from(bytes).ok())
        .ok_or_else(|| "expected a number of bytes, such as `1048576`, `512K` or `64M`".to_string())
}

#[cfg(test)]
mod tests {
    use super::parse_size;

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in [
            ("12", 12),
            ("2k", 2048),
            ("16K", 16 << 10),
            ("16KiB", 16 << 10),
            ("64M", 64 << 20),
            ("1G", 1 << 30),
        ] {
            assert_eq!(parse_size::<u64>(text), Ok(bytes), "{text}");
        }
        for wrong in ["", "k", "-1", "1.5M", "5T", "1 K", "99999999999G"] {
            assert!(parse_size::<u64>(wrong).is_err(), "{wrong}");
        }
        assert!(parse_size::<u32>("4G").is_err());
    }
}
