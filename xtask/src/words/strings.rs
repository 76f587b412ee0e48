//! Texts in Rust sources: string literals that hold more than one word, without those of tests.

/// The texts of a source with the lines where they begin.
pub(super) fn texts(source: &str) -> Vec<(usize, String)> {
    // Tests are at the end of files.
    let source = match source.find("\n#[cfg(test)]\nmod tests {") {
        Some(end) => &source[..end],
        None => source,
    };
    let bytes = source.as_bytes();
    let mut texts = Vec::new();
    let (mut at, mut line) = (0, 1);
    while let Some(&byte) = bytes.get(at) {
        let rest = &bytes[at..];
        let length = match byte {
            b'/' if rest.starts_with(b"//") => find(rest, b"\n").unwrap_or(rest.len()),
            b'/' if rest.starts_with(b"/*") => find(rest, b"*/").map_or(rest.len(), |end| end + 2),
            b'\'' => character(rest),
            b'r' if is_raw(bytes, at) => {
                let signs = rest[1..].iter().take_while(|&&it| it == b'#').count();
                let close = [b"\"", &b"#".repeat(signs)[..]].concat();
                let begin = signs + 2;
                let length = find(&rest[begin..], &close).unwrap_or(rest.len() - begin);
                push(&rest[begin..begin + length], line, &mut texts);
                begin + length + close.len()
            }
            b'"' => {
                let length = string(&rest[1..]);
                push(&rest[1..][..length], line, &mut texts);
                length + 2
            }
            _ => 1,
        };
        let end = (at + length).min(bytes.len());
        line += bytes[at..end].iter().filter(|&&byte| byte == b'\n').count();
        at = end;
    }
    texts
}

/// Whether a raw string begins here.
fn is_raw(bytes: &[u8], at: usize) -> bool {
    let is_word = at > 0
        && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_')
        && bytes[at - 1] != b'b';
    let after = bytes[at + 1..].iter().find(|&&byte| byte != b'#');
    !is_word && after == Some(&b'"')
}

/// The length of a character literal, or of the sign of a lifetime.
fn character(rest: &[u8]) -> usize {
    match rest {
        [_, b'\\', _, ..] => 3 + find(&rest[3..], b"'").map_or(0, |end| end + 1),
        // A lifetime has no sign behind its name.
        [_, ..] => {
            let text = String::from_utf8_lossy(&rest[1..rest.len().min(9)]).into_owned();
            let first = text.chars().next().map_or(1, char::len_utf8);
            match rest.get(1 + first) {
                Some(b'\'') => first + 2,
                _ => 1,
            }
        }
        [] => 1,
    }
}

/// How long a string is, up to its closing quote.
fn string(rest: &[u8]) -> usize {
    let mut at = 0;
    while let Some(&byte) = rest.get(at) {
        match byte {
            b'"' => return at,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    rest.len()
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|part| part == wanted)
}

fn push(text: &[u8], line: usize, texts: &mut Vec<(usize, String)>) {
    let text = String::from_utf8_lossy(text)
        .replace("\\n", "\n")
        .replace("\\\n", " ");
    if text.contains(' ') {
        texts.push((line, text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_found() {
        let source = r##"
// "no text"
fn f<'a>(c: char) { g('"', '\'', "a b", b'x', r#"raw "x" y"#, 'é', "one") }
/* "no text" */
const X: &str = "two \"words\" \
    here";
#[cfg(test)]
mod tests {
    const Y: &str = "a test";
}
"##;
        let found = texts(source);
        let found: Vec<_> = found
            .iter()
            .map(|(line, text)| (*line, text.as_str()))
            .collect();
        assert_eq!(
            found,
            [
                (3, "a b"),
                (3, "raw \"x\" y"),
                (5, "two \\\"words\\\"      here"),
            ]
        );
    }
}
