//! Where the parts of a picture are.

use kymo_draw::Fonts;

use super::compute::Known;
use super::legend::{Legend, raw_texts};
use super::metrics::Metrics;
use super::options::{GraphOptions, Side, TextKind, XGrid, YGrid};
use super::print::Texts;
use super::script::Script;
use crate::Failure;

/// Room at the edges, in pixels.
const SPACING: i64 = 15;

/// Characters of the labels of the y axis, if `--units-length` is not set.
const UNITS_LENGTH: u32 = 6;

/// Places in the picture, in pixels from its left and top.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout {
    /// The size of the picture.
    pub(crate) width: i64,
    pub(crate) height: i64,
    /// The left and the bottom of the graph.
    pub(crate) left: i64,
    pub(crate) bottom: i64,
    pub(crate) graph_width: i64,
    pub(crate) graph_height: i64,
    /// The left and the top of the legend.
    pub(crate) legend_at: (i64, i64),
    /// The left of the label of the left axis, and its middle.
    pub(crate) label_at: (i64, i64),
    pub(crate) right_label_at: (i64, i64),
    pub(crate) legend: Legend,
}

impl Layout {
    /// Finds room for everything.
    ///
    /// # Errors
    ///
    /// A wrong control in a legend; a picture that is too large.
    pub(crate) fn new(
        script: &Script,
        texts: &Texts,
        known: &[Known],
        options: &GraphOptions,
        bounds: (i64, i64),
        fonts: &Fonts,
    ) -> Result<Self, Failure> {
        let (width, height) = (i64::from(options.width), i64::from(options.height));
        if options.only_graph {
            return Ok(Self {
                width,
                height,
                bottom: height,
                graph_width: width,
                graph_height: height,
                ..Self::default()
            });
        }
        let metrics = &Metrics::new(options, fonts);
        let size = |kind| options.font(kind).size;
        let watermark = match options.watermark.is_empty() {
            true => 0,
            false => (size(TextKind::Watermark) * 2.0) as i64,
        };
        let unit = (size(TextKind::Unit) * 2.0) as i64;
        let label = match options.vertical_label.is_empty() {
            true => 0,
            false => unit,
        };
        let right_label = match options.right_label.is_empty() {
            true => SPACING,
            false => unit,
        };
        let title = match options.title.len() {
            0 => SPACING,
            lines => (size(TextKind::Title) * (lines as f64 + 1.0) * 1.6) as i64,
        };
        let x_labels = match options.x_grid {
            XGrid::None => 0,
            _ => (size(TextKind::Axis) * 2.5) as i64,
        };
        let digit = metrics.width(TextKind::Axis, "0") as i64;
        let y_labels = SPACING
            + match (options.units_length, &options.y_grid) {
                (None, YGrid::None) => 0,
                (length, _) => digit * i64::from(length.unwrap_or(UNITS_LENGTH)),
            };
        let right_axis = match options.right_axis {
            Some(_) => y_labels,
            None => 0,
        };
        let tag = if options.tag { SPACING } else { 0 };
        let beside = options.legend && matches!(options.legend_side, Side::West | Side::East);
        let above = options.legend && !beside;
        let raw = raw_texts(script, texts, known, options, bounds);
        let place = |width| Legend::new(script, &raw, metrics, options, width);
        let mut legend = Legend::default();
        let mut legend_width = 0;
        if beside {
            legend_width = place(None)?.width as i64;
        }
        let margin = y_labels + legend_width + right_axis + tag + label + right_label;
        let (image_width, graph_width) = match options.full_size {
            true => (width, (width - margin).max(1)),
            false => (width + margin, width),
        };
        if above {
            legend_width = image_width;
            legend = place(Some(image_width as f64))?;
        }
        if beside {
            legend = place(Some(legend_width as f64))?;
        }
        let legend_height = if above { legend.height as i64 } else { 0 };
        // Half pixels are cut off from what is a whole number each time.
        let mut rest = (x_labels + legend_height + title) as f64;
        let (image_height, graph_height) = match options.full_size {
            true => {
                rest += if options.legend {
                    0.0
                } else {
                    SPACING as f64 * 0.5
                };
                let graph = (height as f64 - rest) as i64 - watermark;
                (height, graph.max(1))
            }
            false => {
                rest += if options.legend {
                    0.0
                } else {
                    SPACING as f64 * 0.5
                };
                ((height as f64 + rest) as i64 + watermark, height)
            }
        };
        let side = |length: i64| u32::try_from(length).unwrap_or(u32::MAX);
        options.check_size(side(image_width), side(image_height))?;
        let mut layout = Self {
            width: image_width,
            height: image_height,
            left: label + y_labels,
            bottom: title + graph_height,
            graph_width,
            graph_height,
            legend_at: (0, title),
            label_at: (0, title + graph_height / 2),
            right_label_at: (
                label + y_labels + graph_width + right_axis,
                title + graph_height / 2,
            ),
            legend,
        };
        match options.legend_side {
            Side::South => layout.legend_at.1 = title + graph_height + x_labels,
            Side::North => {
                layout.bottom += legend_height;
                let middle = title + legend_height + graph_height / 2 + x_labels;
                layout.label_at.1 = middle;
                layout.right_label_at.1 = middle;
            }
            Side::West => {
                let width = if beside { legend_width } else { 0 };
                layout.left += width;
                layout.label_at.0 += width;
                layout.right_label_at.0 += width;
            }
            Side::East => {
                layout.legend_at.0 = label + y_labels + graph_width + right_label + right_axis;
                if options.tag {
                    layout.legend_at.0 += SPACING;
                    layout.left += SPACING;
                    layout.label_at.0 += SPACING;
                    layout.right_label_at.0 += SPACING;
                }
            }
        }
        Ok(layout)
    }
}
