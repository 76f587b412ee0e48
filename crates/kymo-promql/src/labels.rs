//! The labels of a series.

use std::fmt;
use std::sync::Arc;

/// The label that holds the name of a metric.
pub const NAME: &str = "__name__";

type Pair = (Arc<str>, Arc<str>);

/// The labels of a series, sorted by name; none has an empty value. Clones share them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Labels(Option<Arc<[Pair]>>);

impl Labels {
    /// Labels of these names and values. Of a name that comes twice the last value counts; empty values are left
    /// out.
    pub fn new<N: Into<Arc<str>>, V: Into<Arc<str>>>(
        pairs: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        let pairs = pairs.into_iter();
        Self::from_pairs(
            pairs
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
        )
    }

    fn from_pairs(mut pairs: Vec<Pair>) -> Self {
        // The sort is stable, so the last of a name stays the last.
        pairs.sort_by(|a, b| a.0.cmp(&b.0));
        pairs.reverse();
        pairs.dedup_by(|a, b| a.0 == b.0);
        pairs.retain(|(_, value)| !value.is_empty());
        pairs.reverse();
        Self::from_sorted(pairs)
    }

    fn from_sorted(pairs: Vec<Pair>) -> Self {
        Self((!pairs.is_empty()).then(|| pairs.into()))
    }

    fn pairs(&self) -> &[Pair] {
        self.0.as_deref().unwrap_or_default()
    }

    /// Names and values, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs().iter().map(|(name, value)| (&**name, &**value))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.pairs().is_empty()
    }

    /// The value of a label; empty if there is none.
    pub fn get(&self, name: &str) -> &str {
        let pairs = self.pairs();
        match pairs.binary_search_by(|(other, _)| (**other).cmp(name)) {
            Ok(place) => &pairs[place].1,
            Err(_) => "",
        }
    }

    /// The name of the metric; empty if there is none.
    pub fn name(&self) -> &str {
        self.get(NAME)
    }

    /// All but the name of the metric.
    #[must_use]
    pub fn without_name(&self) -> Self {
        match self.name().is_empty() {
            true => self.clone(),
            false => self.without(&[]),
        }
    }

    /// All but the name of the metric and these.
    #[must_use]
    pub fn without(&self, names: &[String]) -> Self {
        self.keep(|name| name != NAME && !names.iter().any(|other| other == name))
    }

    /// Only these.
    #[must_use]
    pub fn only(&self, names: &[String]) -> Self {
        self.keep(|name| names.iter().any(|other| other == name))
    }

    /// Those of these names removed.
    #[must_use]
    pub(crate) fn removed(&self, names: &[String]) -> Self {
        self.keep(|name| !names.iter().any(|other| other == name))
    }

    fn keep(&self, is_kept: impl Fn(&str) -> bool) -> Self {
        let pairs = self.pairs().iter();
        Self::from_sorted(pairs.filter(|(name, _)| is_kept(name)).cloned().collect())
    }

    /// The same, with a value for a label; an empty value removes it.
    #[must_use]
    pub fn with(&self, name: &str, value: &str) -> Self {
        let mut pairs = self.pairs().to_vec();
        pairs.push((name.into(), value.into()));
        Self::from_pairs(pairs)
    }
}

impl fmt::Display for Labels {
    /// As a selector: `{__name__="up", job="a"}`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (place, (name, value)) in self.iter().enumerate() {
            let separator = if place > 0 { ", " } else { "" };
            write!(f, "{separator}{name}={value:?}")?;
        }
        f.write_str("}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_sorted_and_have_values() {
        let labels = Labels::new([("b", "1"), ("a", "x"), ("c", ""), ("b", "2")]);
        assert_eq!(labels.to_string(), r#"{a="x", b="2"}"#);
        assert_eq!((labels.get("b"), labels.get("c")), ("2", ""));
        assert_eq!(labels.with("a", "").to_string(), r#"{b="2"}"#);
        assert_eq!(labels.with("a", "").with("b", ""), Labels::default());
        assert!(labels < Labels::new([("a", "y")]));
    }
}
