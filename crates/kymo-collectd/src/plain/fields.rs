//! Lines to fields.

/// A line that ends between quotation marks.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unterminated;

/// Splits a line at its blanks. Between quotation marks blanks stay, and a backslash takes away the
/// meaning of what follows it.
pub(super) fn split(line: &str) -> Result<Vec<String>, Unterminated> {
    let mut fields = Vec::new();
    let mut field: Option<String> = None;
    let mut chars = line.chars();
    while let Some(char) = chars.next() {
        match char {
            ' ' | '\t' | '\n' | '\x0b' | '\x0c' | '\r' => fields.extend(field.take()),
            '"' => {
                let field = field.get_or_insert_default();
                loop {
                    match chars.next().ok_or(Unterminated)? {
                        '"' => break,
                        '\\' => field.push(chars.next().ok_or(Unterminated)?),
                        char => field.push(char),
                    }
                }
            }
            char => field.get_or_insert_default().push(char),
        }
    }
    fields.extend(field);
    Ok(fields)
}

/// Name and value of an option, `NAME=VALUE`; the name has letters, digits, underscores and colons.
pub(super) fn option(field: &str) -> Option<(&str, &str)> {
    let (name, value) = field.split_once('=')?;
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    (!name.is_empty() && name.chars().all(is_part)).then_some((name, value))
}

/// A field as it must be written to be one.
pub(super) fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_graphic() && !matches!(c, '"' | '\\');
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_string();
    }
    let mut quoted = String::from('"');
    for c in text.chars() {
        if matches!(c, '"' | '\\') {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_quotation_marks() {
        for (line, fields) in [
            ("", &[][..]),
            (" a\t b ", &["a", "b"]),
            (r#""a b" c"#, &["a b", "c"]),
            (r#"m="a \"b\" \\" x"#, &[r#"m=a "b" \"#, "x"]),
            (r"a\ b", &[r"a\", "b"]),
            (r#""" x"#, &["", "x"]),
            (r#"a"b c"d"#, &["ab cd"]),
        ] {
            assert_eq!(split(line).unwrap(), fields, "{line}");
        }
        for line in [r#"""#, r#"a "b"#, r#""a\"#, r#""a\""#] {
            assert_eq!(split(line), Err(Unterminated), "{line}");
        }
    }

    #[test]
    fn options() {
        assert_eq!(option("interval=10"), Some(("interval", "10")));
        assert_eq!(option("meta:x==1"), Some(("meta:x", "=1")));
        for field in ["=1", "a", "a-b=1", "1:2"] {
            assert_eq!(option(field), None, "{field}");
        }
    }

    proptest::proptest! {
        #[test]
        fn what_is_quoted_is_one_field(text in "\\PC{0,12}") {
            proptest::prop_assert_eq!(split(&quoted(&text)).unwrap(), [text]);
        }
    }
}
