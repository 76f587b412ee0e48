//! How much room texts take.

use kymo_draw::{Colour, Font, Fonts, TabStops, Text};

use super::options::{GraphOptions, TextKind, YGrid};

/// Measures texts in the fonts that options choose.
pub(crate) struct Metrics<'o> {
    options: &'o GraphOptions,
    fonts: &'o Fonts,
    zoom: f64,
}

impl<'o> Metrics<'o> {
    pub(crate) fn new(options: &'o GraphOptions, fonts: &'o Fonts) -> Self {
        let zoom = 1.0;
        Self {
            options,
            fonts,
            zoom,
        }
    }

    /// Measures texts as they are drawn: glyphs are as wide as whole pixels of the zoomed picture. Where texts are
    /// does not depend on it.
    pub(crate) fn drawn(options: &'o GraphOptions, fonts: &'o Fonts) -> Self {
        Self {
            options,
            fonts,
            zoom: options.zoom,
        }
    }

    /// The font of a kind of texts.
    pub(crate) fn font(&self, kind: TextKind) -> Font {
        let choice = self.options.font(kind);
        match &choice.name {
            Some(name) => Font {
                size: choice.size,
                ..Font::parse(name, choice.size)
            },
            None => Font::new(choice.size),
        }
    }

    /// Where tab stops are. rrdtool sets them when it first measures a text: that of the y axis, or else that of the
    /// legend, whose left counts.
    pub(crate) fn tabs(&self) -> TabStops {
        let border = (self.options.font(TextKind::Legend).size * 2.0).trunc();
        let step = self.options.tab_width;
        let measures_axis =
            self.options.units_length.is_some() || self.options.y_grid != YGrid::None;
        let left = if measures_axis {
            0.0
        } else {
            (border % step).trunc()
        };
        let stop = |number: f64| (step * number - left + border).trunc();
        let first = stop(1.0).max(1.0);
        TabStops {
            first,
            step: match measures_axis {
                // One stop is set; the next ones are as far from each other as it is from the left.
                true => first,
                false => (stop(2.0) - first).max(1.0),
            },
        }
    }

    /// The width of a text, in pixels.
    pub(crate) fn width(&self, kind: TextKind, text: &str) -> f64 {
        let zoom = self.zoom;
        if self.options.markup {
            return self.fonts.measure(&self.marked_up(kind, text), zoom).width;
        }
        let mut font = self.font(kind);
        font.size *= zoom;
        let tabs = self.tabs();
        let mut lines = text.split('\n').map(|line| {
            let mut parts = line.split('\t');
            let first = parts.next().unwrap_or_default();
            parts.fold(self.fonts.text_width(&font, first) / zoom, |at, part| {
                let at = tabs.after(at);
                at + self.fonts.text_width(&font, part) / zoom
            })
        });
        let first = lines.next().unwrap_or_default();
        // Parts of a pixel count as one, but not those that are left of a division.
        (lines.fold(first, f64::max) - 1e-6).ceil()
    }

    fn marked_up(&self, kind: TextKind, text: &str) -> Text {
        Text {
            markup: true,
            tabs: Some(self.tabs()),
            ..Text::new(text, 0.0, 0.0, self.font(kind), Colour::BLACK)
        }
    }

    /// The height of a text, in pixels.
    pub(crate) fn height(&self, kind: TextKind, text: &str) -> f64 {
        if self.options.markup {
            return self
                .fonts
                .measure(&self.marked_up(kind, text), self.zoom)
                .height;
        }
        let metrics = self.fonts.metrics(&self.font(kind));
        metrics.height() * text.split('\n').count() as f64
    }
}
