//! Labels of enumerations, made into text before the values come.

use std::collections::BTreeMap;
use std::sync::Arc;

use kymo_model::{Labels, Mapping};
use kymo_text::{Line, Stamp};

/// How the labels of a value are written.
pub(crate) trait Render {
    /// Appends labels, in the order of their declaration; perhaps none.
    fn render(&self, labels: &[&str], line: &mut Line);
}

/// The texts of all values of an enumeration.
#[derive(Debug)]
pub(crate) struct LabelText<R> {
    labels: Arc<Labels>,
    render: R,
    /// Where runs of values with the same labels begin, in the order of the values; the
    /// first begins with the smallest value. Empty where there are too many labels to
    /// prepare a text for each run.
    begins: Vec<u64>,
    /// The text of each run.
    texts: Vec<Stamp>,
}

impl<R: Render> LabelText<R> {
    /// Texts of this number of bytes in total are prepared, plus [`TIMES_DECLARED`](Self::TIMES_DECLARED)
    /// times the bytes of the labels themselves, which is enough for any number of labels that do not
    /// overlap: ranges that do could make the texts grow as the square of the metadata.
    const MAX_TEXT: usize = 1 << 20;
    const TIMES_DECLARED: usize = 2;

    pub(crate) fn new(labels: &Arc<Labels>, render: R) -> Self {
        let mut text = Self {
            labels: Arc::clone(labels),
            render,
            begins: Vec::new(),
            texts: Vec::new(),
        };
        text.prepare();
        text
    }

    /// Values in the order of the type, as unsigned numbers.
    fn flip(&self) -> u64 {
        u64::from(self.labels.is_signed()) << 63
    }

    fn prepare(&mut self) {
        let flip = self.flip();
        let size = |mapping: &Mapping| mapping.label.len() + 16;
        let declared = |mapping: &Mapping| mapping.ranges.len().saturating_mul(size(mapping));
        let declared = self.labels.mappings().iter().map(declared);
        let most = declared.fold(0, usize::saturating_add);
        let most = most.saturating_mul(Self::TIMES_DECLARED);
        let most = most.saturating_add(Self::MAX_TEXT);
        // Where ranges of a mapping begin (1) and have ended (-1).
        let mut edges = vec![];
        for (position, mapping) in self.labels.mappings().iter().enumerate() {
            for &(low, high) in &mapping.ranges {
                let (low, high) = (low ^ flip, high ^ flip);
                if low > high {
                    continue;
                }
                edges.push((low, position, 1));
                if let Some(after) = high.checked_add(1) {
                    edges.push((after, position, -1));
                }
            }
        }
        edges.sort_unstable();
        let mut open: BTreeMap<usize, i64> = BTreeMap::new();
        let (mut begins, mut texts, mut total) = (vec![0], vec![self.text(&open)], 0);
        for run in edges.chunk_by(|left, right| left.0 == right.0) {
            for &(_, position, change) in run {
                let count = open.entry(position).or_default();
                *count += change;
                if *count == 0 {
                    open.remove(&position);
                }
            }
            let mappings = self.labels.mappings();
            for &mapping in open.keys() {
                total += size(&mappings[mapping]);
                if total > most {
                    return;
                }
            }
            if run[0].0 == 0 {
                texts[0] = self.text(&open);
            } else {
                begins.push(run[0].0);
                texts.push(self.text(&open));
            }
        }
        self.begins = begins;
        self.texts = texts;
    }

    fn text(&self, open: &BTreeMap<usize, i64>) -> Stamp {
        let mappings = self.labels.mappings();
        let labels: Vec<&str> = open.keys().map(|&at| &*mappings[at].label).collect();
        let mut line = Line::new();
        self.render.render(&labels, &mut line);
        Stamp::new(line.as_bytes())
    }

    /// Appends the text of a value (of a signed one: its bits).
    #[inline]
    pub(crate) fn write(&self, bits: u64, line: &mut Line) {
        let key = bits ^ self.flip();
        let run = self.begins.partition_point(|&begin| begin <= key);
        match run.checked_sub(1).and_then(|run| self.texts.get(run)) {
            Some(text) => line.stamp(text),
            None => {
                let labels: Vec<&str> = self.labels.of(bits).collect();
                self.render.render(&labels, line);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Plain;

    impl Render for Plain {
        fn render(&self, labels: &[&str], line: &mut Line) {
            line.push(labels.join("+").as_bytes());
        }
    }

    fn check(labels: Labels, values: impl IntoIterator<Item = u64>) {
        let labels = Arc::new(labels);
        let text = LabelText::new(&labels, Plain);
        for value in values {
            let mut line = Line::new();
            text.write(value, &mut line);
            let expected: Vec<&str> = labels.of(value).collect();
            assert_eq!(line.as_bytes(), expected.join("+").as_bytes(), "{value}");
        }
    }

    fn mapping(label: &str, ranges: &[(i64, i64)]) -> Mapping {
        Mapping {
            label: label.into(),
            ranges: ranges.iter().map(|&(l, h)| (l as u64, h as u64)).collect(),
        }
    }

    #[test]
    fn overlapping_ranges_of_signed_and_unsigned_values() {
        let mappings = || {
            vec![
                mapping("wide", &[(0, 100), (50, 60)]),
                mapping("one", &[(7, 7)]),
                mapping("all", &[(0, i64::MAX)]),
                mapping("edge", &[(-1, -1), (0, 0)]),
            ]
        };
        let values = [0, 1, 6, 7, 8, 50, 60, 61, 100, 101, u64::MAX, 1 << 63];
        check(Labels::new(false, mappings()), values);
        let mut signed = mappings();
        signed.push(mapping("low", &[(i64::MIN, -1)]));
        check(Labels::new(true, signed), values);
        check(Labels::new(true, vec![]), values);
    }

    #[test]
    fn many_labels_that_do_not_overlap_are_prepared() {
        let many = (0..100_000).map(|i| mapping(&format!("label {i}"), &[(2 * i, 2 * i)]));
        let labels = Labels::new(false, many.collect());
        let prepared = LabelText::new(&Arc::new(labels.clone()), Plain).texts.len();
        assert_eq!(prepared, 200_000);
        check(labels, [0, 1, 2, 100_000, 199_998, 199_999]);
    }

    #[test]
    fn too_many_overlaps_are_looked_up() {
        let many = (0..1000).map(|i| mapping("m", &[(i, 100_000)]));
        let labels = Labels::new(false, many.collect());
        assert!(
            LabelText::new(&Arc::new(labels.clone()), Plain)
                .texts
                .is_empty()
        );
        check(labels, [0, 1, 999, 5000, 100_001]);
    }
}
