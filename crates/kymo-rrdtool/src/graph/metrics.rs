//! How much room texts take.

use super::options::{GraphOptions, TextKind};

/// Measures texts in the fonts that options choose.
pub(crate) struct Metrics<'o> {
    options: &'o GraphOptions,
}

impl<'o> Metrics<'o> {
    pub(crate) fn new(options: &'o GraphOptions) -> Self {
        Self { options }
    }

    /// The pixels from the beginning of a text to the next tab stop.
    pub(crate) fn next_tab(&self, at: f64) -> f64 {
        let legend = self.options.font(TextKind::Legend).size;
        let stop = (self.options.tab_width + (legend * 2.0).trunc()).trunc().max(1.0);
        ((at / stop).floor() + 1.0) * stop
    }

    /// The width of a text, in pixels.
    pub(crate) fn width(&self, kind: TextKind, text: &str) -> f64 {
        let mut lines = text.split('\n').map(|line| {
            let mut parts = line.split('\t');
            let first = parts.next().unwrap_or_default();
            parts.fold(self.plain(kind, first), |at, part| {
                self.next_tab(at) + self.plain(kind, part)
            })
        });
        let first = lines.next().unwrap_or_default();
        lines.fold(first, f64::max)
    }

    /// The width of a text without tabs and line breaks.
    fn plain(&self, kind: TextKind, text: &str) -> f64 {
        let ppem = (self.options.font(kind).size * 100.0 / 72.0).round();
        text.chars().count() as f64 * (ppem * 1233.0 / 2048.0).round()
    }

    /// The height of a text, in pixels.
    pub(crate) fn height(&self, kind: TextKind, text: &str) -> f64 {
        let em = self.options.font(kind).size * 100.0 / 72.0;
        let line = (em * 1901.0 / 2048.0).ceil() + (em * 483.0 / 2048.0).ceil();
        line * text.split('\n').count() as f64
    }
}
