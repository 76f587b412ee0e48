//! What a series is called: a name, and labels with values.

use std::fmt;

use crate::Problem;

/// Bytes of a name with all labels.
pub const LONGEST_KEY: usize = 4096;
/// Labels of a series.
pub const MOST_LABELS: usize = 64;
/// Ends each part of a key; no UTF-8 has it.
const END: u8 = 0xff;

/// A name with labels, sorted by name; none has an empty value. Two keys are the same series if their
/// [bytes](Key::bytes) are equal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Key {
    bytes: Vec<u8>,
    /// Where names and values begin and end, for sorting.
    parts: Vec<Part>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Part {
    begin: usize,
    value: usize,
    end: usize,
}

/// Why a name or labels cannot be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KeyError {
    /// The name is empty.
    Empty,
    /// It is not UTF-8.
    NotText,
    /// It has control characters.
    Control,
    /// It has more than [`LONGEST_KEY`] bytes.
    TooLong,
    /// It has more than [`MOST_LABELS`] labels.
    TooMany,
    /// A label has a name that it cannot have.
    Label,
    /// A label is there twice.
    Twice,
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("expected a name"),
            Self::NotText => f.write_str("the name or a label is not UTF-8"),
            Self::Control => f.write_str("the name or a label has a control character"),
            Self::TooLong => write!(f, "the name and labels exceed {LONGEST_KEY} bytes"),
            Self::TooMany => write!(f, "more than {MOST_LABELS} labels"),
            Self::Label => f.write_str("a label has no name"),
            Self::Twice => f.write_str("a label is specified twice"),
        }
    }
}

impl std::error::Error for KeyError {}

impl Key {
    /// None.
    pub const fn new() -> Self {
        Self {
            bytes: Vec::new(),
            parts: Vec::new(),
        }
    }

    /// Begins with a name, without labels.
    pub fn begin(&mut self, name: &[u8]) {
        self.bytes.clear();
        self.parts.clear();
        self.bytes.extend_from_slice(name);
        self.bytes.push(END);
    }

    /// Appends to the name, as long as there are no labels.
    pub fn append_to_name(&mut self, text: &[u8]) {
        self.bytes.pop();
        self.bytes.extend_from_slice(text);
        self.bytes.push(END);
    }

    /// Adds a label, which is left out if its value is empty.
    pub fn label(&mut self, name: &[u8], value: &[u8]) {
        if value.is_empty() {
            return;
        }
        let begin = self.bytes.len();
        // What is too long is refused at the end, and nothing is copied of it beyond that.
        if begin > LONGEST_KEY || self.parts.len() > MOST_LABELS {
            return;
        }
        self.bytes.extend_from_slice(name);
        self.bytes.push(END);
        let value_begin = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.bytes.push(END);
        self.parts.push(Part {
            begin,
            value: value_begin,
            end: self.bytes.len(),
        });
    }

    /// The same with a name of which characters that labels of Prometheus cannot have become `_`.
    pub fn sanitized_label(&mut self, name: &[u8], value: &[u8]) {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let begins = name.first().is_some_and(|byte| !byte.is_ascii_digit());
        if begins && name.iter().all(|byte| fits(*byte)) {
            return self.label(name, value);
        }
        let mut changed = Vec::with_capacity(name.len() + 1);
        if name.first().is_some_and(u8::is_ascii_digit) {
            changed.push(b'_');
        }
        let text = String::from_utf8_lossy(name);
        changed.extend(text.chars().map(|char| match u8::try_from(char) {
            Ok(byte) if fits(byte) => byte,
            _ => b'_',
        }));
        self.label(&changed, value);
    }

    /// Reads `NAME{LABEL="VALUE",...}` of Prometheus, or a path of Graphite, `PATH;TAG=VALUE`.
    ///
    /// ```
    /// use kymo_metrics::Key;
    ///
    /// let key = Key::parse(r#"up{job="a"}"#)?;
    /// assert_eq!(key.name(), "up");
    /// assert_eq!(Key::parse("up;job=a")?.bytes(), key.bytes());
    /// # Ok::<(), kymo_metrics::Problem>(())
    /// ```
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let mut key = Self::new();
        if !text.contains('{') {
            crate::graphite::read_path(text.as_bytes(), &mut key)?;
            return Ok(key);
        }
        let mut labels = Vec::new();
        let name = crate::exposition::read_series(text.as_bytes(), &mut labels)?;
        key.begin(&name);
        for (label, value) in &labels {
            key.label(label, value);
        }
        key.finish().map_err(Problem::Name)?;
        Ok(key)
    }

    /// Sorts the labels, and checks all.
    ///
    /// # Errors
    ///
    /// Why it cannot be kept.
    pub fn finish(&mut self) -> Result<(), KeyError> {
        if self.bytes.len() > LONGEST_KEY {
            return Err(KeyError::TooLong);
        }
        if self.parts.len() > MOST_LABELS {
            return Err(KeyError::TooMany);
        }
        let ends = self.bytes.iter().filter(|byte| **byte == END).count();
        if ends != 1 + 2 * self.parts.len() {
            return Err(KeyError::NotText);
        }
        if self.bytes.first().is_none_or(|first| *first == END) {
            return Err(KeyError::Empty);
        }
        let mut texts = self.bytes.split(|byte| *byte == END);
        if texts.any(|text| std::str::from_utf8(text).is_err()) {
            return Err(KeyError::NotText);
        }
        if self.bytes.iter().any(u8::is_ascii_control) {
            return Err(KeyError::Control);
        }
        let name = |part: &Part| &self.bytes[part.begin..part.value];
        if self.parts.iter().any(|part| name(part).len() < 2) {
            return Err(KeyError::Label);
        }
        // The end of a name is greater than all of its bytes, so names are compared without it.
        let name = |part: &Part| &self.bytes[part.begin..part.value - 1];
        if !self.parts.is_sorted_by(|a, b| name(a) < name(b)) {
            let mut parts = self.parts.clone();
            parts.sort_by(|a, b| name(a).cmp(name(b)));
            if parts.windows(2).any(|two| name(&two[0]) == name(&two[1])) {
                return Err(KeyError::Twice);
            }
            let first = self.parts.iter().map(|part| part.begin).min();
            let mut bytes = self.bytes[..first.unwrap_or(self.bytes.len())].to_vec();
            for part in &mut parts {
                let begin = bytes.len();
                bytes.extend_from_slice(&self.bytes[part.begin..part.end]);
                *part = Part {
                    begin,
                    value: begin + part.value - part.begin,
                    end: bytes.len(),
                };
            }
            (self.bytes, self.parts) = (bytes, parts);
        }
        Ok(())
    }

    /// The bytes that only this series has: its parts, each with a byte behind it that no text has.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The name.
    pub fn name(&self) -> &str {
        split(&self.bytes).next().unwrap_or_default()
    }

    /// The names and values of labels.
    pub fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        labels_of(&self.bytes)
    }
}

fn split(bytes: &[u8]) -> impl Iterator<Item = &str> {
    let bytes = bytes.strip_suffix(&[END]).unwrap_or(bytes);
    let texts = bytes.split(|byte| *byte == END);
    texts.map(|text| std::str::from_utf8(text).unwrap_or_default())
}

fn labels_of(bytes: &[u8]) -> impl Iterator<Item = (&str, &str)> {
    let mut texts = split(bytes).skip(1);
    std::iter::from_fn(move || Some((texts.next()?, texts.next()?)))
}

impl fmt::Display for Key {
    /// `name{label="value"}`, with `\`, quotes and line ends escaped as Prometheus does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        let mut separator = "{";
        for (name, value) in self.labels() {
            write!(f, "{separator}{name}=\"")?;
            for char in value.chars() {
                match char {
                    '\\' => f.write_str("\\\\")?,
                    '"' => f.write_str("\\\"")?,
                    '\n' => f.write_str("\\n")?,
                    char => write!(f, "{char}")?,
                }
            }
            f.write_str("\"")?;
            separator = ",";
        }
        match separator {
            "," => f.write_str("}"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn key(name: &str, labels: &[(&str, &str)]) -> Result<Key, KeyError> {
        let mut key = Key::new();
        key.begin(name.as_bytes());
        for (name, value) in labels {
            key.label(name.as_bytes(), value.as_bytes());
        }
        key.finish().map(|()| key)
    }

    #[test]
    fn labels_are_sorted() {
        let one = key("up", &[("job", "a"), ("instance", "b"), ("empty", "")]).unwrap();
        let other = key("up", &[("instance", "b"), ("job", "a")]).unwrap();
        assert_eq!(one.bytes(), other.bytes());
        assert_eq!(one.to_string(), r#"up{instance="b",job="a"}"#);
        assert_eq!(key("", &[]), Err(KeyError::Empty));
        assert_eq!(key("a", &[("b", "1"), ("b", "2")]), Err(KeyError::Twice));
        assert_eq!(key("a", &[("", "1")]), Err(KeyError::Label));
        assert_eq!(key("a\0", &[]), Err(KeyError::Control));
        assert_eq!(key(&"a".repeat(5000), &[]), Err(KeyError::TooLong));
        let many = ["x"; 65].map(|value| ("a", value));
        assert_eq!(key("a", &many), Err(KeyError::TooMany));
        let mut bad = Key::new();
        for name in [&b"a\xffb"[..], b"a\xfe"] {
            bad.begin(name);
            assert_eq!(bad.finish(), Err(KeyError::NotText));
        }
        let mut odd = Key::new();
        odd.begin(b"a");
        odd.sanitized_label(b"9 host.name", b"x");
        odd.finish().unwrap();
        assert_eq!(odd.to_string(), r#"a{_9_host_name="x"}"#);
    }

    proptest! {
        #[test]
        fn all_orders_are_one_series(
            labels in proptest::collection::btree_map("[a-z]{1,3}", "\\PC{1,5}", 0..6),
            order in any::<u64>(),
        ) {
            let labels: BTreeMap<String, String> = labels;
            let mut pairs: Vec<_> = labels.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
            let sorted = key("name", &pairs).unwrap();
            let places = order as usize % pairs.len().max(1);
            pairs.rotate_left(places);
            if order % 2 == 0 { pairs.reverse(); }
            let other = key("name", &pairs).unwrap();
            prop_assert_eq!(sorted.bytes(), other.bytes());
            prop_assert!(sorted.labels().eq(labels.iter().map(|(a, b)| (a.as_str(), b.as_str()))));
        }
    }
}
