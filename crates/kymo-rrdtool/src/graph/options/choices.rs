//! What options choose among: formats, sides, parts that have a colour, texts that have a font.

use super::super::format::NumberFormat;
use super::super::x_axis::TimeGrid;

/// What a picture is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ImageFormat {
    Png,
    Svg,
    Eps,
    Pdf,
    /// An interactive page.
    Html,
    Table(TableFormat),
}

/// What a table is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TableFormat {
    Xml,
    XmlEnum,
    Json,
    JsonTime,
    Csv,
    Tsv,
    Ssv,
}

/// All formats, by name.
pub(super) const FORMATS: [(&str, ImageFormat); 12] = [
    ("PNG", ImageFormat::Png),
    ("SVG", ImageFormat::Svg),
    ("EPS", ImageFormat::Eps),
    ("PDF", ImageFormat::Pdf),
    ("HTML", ImageFormat::Html),
    ("XML", ImageFormat::Table(TableFormat::Xml)),
    ("XMLENUM", ImageFormat::Table(TableFormat::XmlEnum)),
    ("JSON", ImageFormat::Table(TableFormat::Json)),
    ("JSONTIME", ImageFormat::Table(TableFormat::JsonTime)),
    ("CSV", ImageFormat::Table(TableFormat::Csv)),
    ("TSV", ImageFormat::Table(TableFormat::Tsv)),
    ("SSV", ImageFormat::Table(TableFormat::Ssv)),
];

/// The side of the picture that the legend is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    North,
    South,
    West,
    East,
}

/// The order of the lines of the legend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    TopDown,
    BottomUp,
    /// As before, but comments at both ends stay where they are.
    BottomUp2,
}

/// How values are written on an axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum AxisForm {
    /// By the scale of the axis, or as a format specifies.
    Number(Option<NumberFormat>),
    /// As seconds since 1970.
    Timestamp(String),
    /// As milliseconds.
    Duration(String),
}

/// The lines across the graph, as `--y-grid` has them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum YGrid {
    Automatic,
    None,
    /// A line every `step`, and a label every `label` lines.
    Lines {
        step: f64,
        label: u32,
    },
}

/// The lines down the graph, as `--x-grid` has them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum XGrid {
    Automatic,
    None,
    Lines(TimeGrid),
}

/// Parts of the picture that have a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Part {
    Back,
    Canvas,
    ShadeA,
    ShadeB,
    Grid,
    MajorGrid,
    Font,
    Arrow,
    Axis,
    Frame,
}

pub(super) const PARTS: [&str; 10] = [
    "BACK", "CANVAS", "SHADEA", "SHADEB", "GRID", "MGRID", "FONT", "ARROW", "AXIS", "FRAME",
];

/// Kinds of texts that have a font.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum TextKind {
    Title = 1,
    Axis,
    Unit,
    Legend,
    Watermark,
}

pub(super) const TEXTS: [&str; 6] = ["DEFAULT", "TITLE", "AXIS", "UNIT", "LEGEND", "WATERMARK"];

/// A font.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FontChoice {
    /// The size in points.
    pub(crate) size: f64,
    /// The description of another font than the usual one.
    pub(crate) name: Option<String>,
}

/// How texts are rendered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextMode {
    Normal,
    Light,
    Mono,
}
