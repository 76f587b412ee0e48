//! Paths of databases made of names and labels.
//!
//! A template is segments between `/`, which have texts and fields: `{__name__}` is the name, `{__path__}` a segment for
//! each part of the name between points, `{__labels__}` all labels that the template does not have, and any other field
//! a label. What cannot be in a path is written as `%XX`, so that two series differ in their paths if they differ in
//! what the template has of them.

use std::fmt;

use kymo_metrics::Key;

/// The longest segment; of a longer one the beginning and a hash are left.
const LONGEST_SEGMENT: usize = 200;
/// Number of bytes that are kept of a segment that is too long.
const KEPT: usize = 160;
/// Segments of a path; those that would follow become one.
const MOST_SEGMENTS: usize = 24;
/// The longest path.
const LONGEST_PATH: usize = 1500;
/// What all paths end in.
const SUFFIX: &str = ".rrd";

/// How paths are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    text: String,
    segments: Vec<Vec<Part>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Name,
    Path,
    Labels,
    Label(String),
}

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.starts_with('/') {
            return Err("the path begins with `/`, expected one below `data`".into());
        }
        let text = text.strip_suffix(SUFFIX).unwrap_or(text);
        let segments = text
            .split('/')
            .map(segment)
            .collect::<Result<Vec<_>, _>>()?;
        if !segments
            .iter()
            .flatten()
            .any(|part| !matches!(part, Part::Text(_)))
        {
            return Err("the path has no `{...}`, so all series would have the same".into());
        }
        if segments.len() > MOST_SEGMENTS {
            return Err(format!("the path has more than {MOST_SEGMENTS} segments"));
        }
        Ok(Self {
            text: text.to_owned(),
            segments,
        })
    }

    /// The path of a series, which ends in `.rrd`.
    pub fn path(&self, key: &Key) -> String {
        let mut segments = Vec::new();
        for parts in &self.segments {
            match parts[..] {
                [Part::Path] => {
                    let nodes = key.name().split('.').filter(|node| !node.is_empty());
                    let before = segments.len();
                    segments.extend(nodes.map(|node| escape(node, false)));
                    if segments.len() == before {
                        segments.push("_".to_owned());
                    }
                }
                _ => segments.extend(self.segment(parts, key)),
            }
        }
        if segments.len() > MOST_SEGMENTS {
            let rest = segments.split_off(MOST_SEGMENTS - 1).join("/");
            segments.push(format!("~{:016x}", hash(&rest)));
        }
        let last = segments.len().saturating_sub(1);
        for (place, segment) in segments.iter_mut().enumerate() {
            if segment.len() > LONGEST_SEGMENT {
                let kept = segment.floor_char_boundary(KEPT);
                let hash = hash(segment);
                segment.truncate(kept);
                segment.push_str(&format!("~{hash:016x}"));
            }
            // Directories and databases have different names.
            if place < last
                && let Some(name) = segment.strip_suffix(SUFFIX)
            {
                *segment = format!("{name}%2Errd");
            }
            if segment.starts_with('.') {
                segment.replace_range(..1, "%2E");
            }
        }
        let path = segments.join("/");
        match path.len() > LONGEST_PATH {
            true => format!("{}/~{:016x}{SUFFIX}", segments[0], hash(&path)),
            false => path + SUFFIX,
        }
    }

    /// A segment of some parts; none, if it has nothing but labels, and there are none.
    fn segment(&self, parts: &[Part], key: &Key) -> Option<String> {
        let mut text = String::new();
        for part in parts {
            match part {
                Part::Text(fixed) => text.push_str(fixed),
                Part::Name | Part::Path => text.push_str(&escape(key.name(), false)),
                Part::Label(name) => {
                    let mut labels = key.labels();
                    let value = labels.find(|(other, _)| other == name);
                    text.push_str(&escape(value.map_or("", |(_, value)| value), false));
                }
                Part::Labels => {
                    let rest = key.labels().filter(|(name, _)| !self.has_label(name));
                    for (place, (name, value)) in rest.enumerate() {
                        let separator = if place > 0 { "," } else { "" };
                        text.push_str(separator);
                        text.push_str(&escape(name, true));
                        text.push('=');
                        text.push_str(&escape(value, true));
                    }
                }
            }
        }
        if text.is_empty() {
            return match parts {
                [Part::Labels] => None,
                _ => Some("_".to_owned()),
            };
        }
        Some(text)
    }

    fn has_label(&self, name: &str) -> bool {
        let mut parts = self.segments.iter().flatten();
        parts.any(|part| matches!(part, Part::Label(label) if label == name))
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn segment(text: &str) -> Result<Vec<Part>, String> {
    if matches!(text, "" | "." | "..") {
        return Err(format!("the path has the segment `{text}`"));
    }
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let open = rest.find('{').unwrap_or(rest.len());
        let (fixed, field) = rest.split_at(open);
        if fixed.contains('}') || fixed.chars().any(char::is_control) {
            return Err(format!(
                "found `{fixed}`, expected text and fields such as `{{job}}`"
            ));
        }
        if !fixed.is_empty() {
            parts.push(Part::Text(fixed.to_owned()));
        }
        let Some(field) = field.strip_prefix('{') else {
            break;
        };
        let (name, after) = field
            .split_once('}')
            .ok_or_else(|| format!("`{{{field}` has no `}}`"))?;
        parts.push(match name {
            "__name__" => Part::Name,
            "__path__" => Part::Path,
            "__labels__" => Part::Labels,
            "" => return Err("`{}` has no name of a label".into()),
            name if name.starts_with("__") => {
                return Err(format!(
                    "found `{{{name}}}`, expected `{{__name__}}`, `{{__path__}}`, `{{__labels__}}` or a label"
                ));
            }
            name => Part::Label(name.to_owned()),
        });
        rest = after;
    }
    if parts.len() > 1 && parts.contains(&Part::Path) {
        return Err("`{__path__}` is several segments, so nothing can stand beside it".into());
    }
    Ok(parts)
}

/// A text as a part of a segment.
fn escape(text: &str, is_list: bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        let fits = match char {
            ',' | '=' => !is_list,
            '-' | '_' | '.' | ':' | '+' | '@' | '(' | ')' => true,
            char => char.is_alphanumeric(),
        };
        if fits {
            escaped.push(char);
        } else {
            let mut bytes = [0; 4];
            for byte in char.encode_utf8(&mut bytes).bytes() {
                escaped.push_str(&format!("%{byte:02X}"));
            }
        }
    }
    escaped
}

/// FNV-1a: paths are the same in every version and on every machine.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use std::path::{Component, Path};

    use proptest::prelude::*;

    use super::*;

    fn key(name: &str, labels: &[(&str, &str)]) -> Key {
        let mut key = Key::new();
        key.begin(name.as_bytes());
        for (name, value) in labels {
            key.label(name.as_bytes(), value.as_bytes());
        }
        key.finish().unwrap();
        key
    }

    #[test]
    fn paths_are_made_of_names_and_labels() {
        let labels = [("job", "node"), ("instance", "a:9100"), ("path", "/x,y=1")];
        for (template, name, labels, path) in [
            ("g/{__path__}/{__labels__}", "a.b.c", &[][..], "g/a/b/c.rrd"),
            (
                "g/{__path__}/{__labels__}",
                "a...b",
                &[("dc", "east")],
                "g/a/b/dc=east.rrd",
            ),
            (
                "{job}/{instance}/{__name__}-{__labels__}",
                "up",
                &labels,
                "node/a:9100/up-path=%2Fx%2Cy%3D1.rrd",
            ),
            ("{job}/{__name__}", "up", &[], "_/up.rrd"),
            ("{x}/y.rrd", "n", &[("x", "..")], "%2E./y.rrd"),
            ("{x}/{__name__}", "n", &[("x", "a.rrd")], "a%2Errd/n.rrd"),
            (
                "{x}/{__name__}",
                "n",
                &[("x", "a\u{e9}/~%")],
                "aé%2F%7E%25/n.rrd",
            ),
        ] {
            let template = Template::parse(template).unwrap();
            assert_eq!(template.path(&key(name, labels)), path);
        }
        let long = "x".repeat(300);
        let path = Template::parse("{a}/{__name__}").unwrap();
        let path = path.path(&key("n", &[("a", &long)]));
        assert_eq!(path.len(), KEPT + 1 + 16 + "/n.rrd".len());
        for (template, problem) in [
            ("/{a}", "the path begins with `/`"),
            ("a/../{a}", "the path has the segment `..`"),
            ("a//{a}", "the path has the segment ``"),
            ("a", "the path has no `{...}`"),
            ("{a", "`{a` has no `}`"),
            ("a}{b}", "found `a}`, expected text"),
            ("{__x__}", "found `{__x__}`, expected"),
            ("{}", "`{}` has no name"),
            ("x{__path__}", "`{__path__}` is several segments"),
        ] {
            let error = Template::parse(template).unwrap_err();
            assert!(error.starts_with(problem), "{error}");
        }
    }

    proptest! {
        /// No name or label escapes the directory, and paths do not exceed the limits of systems.
        #[test]
        fn paths_stay_below(name in "[ -~]{0,50}\\PC{0,200}", value in "\\PC{0,300}", dots in "[./]{0,80}") {
            let (name, value) = (format!("n{name}"), format!("{dots}{value}"));
            let mut key = Key::new();
            key.begin(format!("{dots}{name}").as_bytes());
            key.label(b"x", value.as_bytes());
            key.label(b"y", dots.as_bytes());
            prop_assume!(key.finish().is_ok());
            for template in ["g/{__path__}/{__labels__}", "{x}/{y}/{__name__}", "{__labels__}", "{x}{y}"] {
                let path = Template::parse(template).unwrap().path(&key);
                prop_assert!(path.len() <= LONGEST_PATH + 250, "{path}");
                let path = Path::new(&path);
                prop_assert!(path.components().all(|it| matches!(it, Component::Normal(name) if name.len() <= 255)));
                prop_assert!(path.extension().is_some_and(|it| it == "rrd"));
            }
        }

        /// Two series differ in their paths.
        #[test]
        fn paths_distinguish_series(a in "[a-c=,.%/~]{1,6}", b in "[a-c=,.%/~]{1,6}", c in "[a-c=,.%/~]{1,6}") {
            let template = Template::parse("{__name__}/{__labels__}").unwrap();
            let one = key(&a, &[("b", &b), ("c", &c)]);
            let other = key(&a, &[("b", &c), ("c", &b)]);
            prop_assert_eq!(template.path(&one) == template.path(&other), b == c);
            let third = key(&a, &[("b", &format!("{b},c={c}"))]);
            prop_assert_ne!(template.path(&one), template.path(&third));
        }
    }
}
