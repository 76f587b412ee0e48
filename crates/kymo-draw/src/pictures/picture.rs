//! The display list.

use crate::Font;
use std::fmt;

/// A picture: its size and what is painted on it, in order.
///
/// Coordinates are in user pixels, x to the right, y down. A picture begins transparent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Picture {
    /// Width in pixels, at zoom 1.
    pub width: u32,
    /// Height in pixels, at zoom 1.
    pub height: u32,
    /// What is painted, the first item first.
    pub items: Vec<Item>,
}

impl Picture {
    /// An empty, transparent picture.
    pub fn new(width: u32, height: u32) -> Picture {
        Picture {
            width,
            height,
            items: Vec::new(),
        }
    }
}

/// One thing that is painted, or a change of the clip.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// The inside of a path, by the non-zero rule.
    Fill {
        /// The outline; open parts are closed.
        path: Path,
        /// Its colour or gradient.
        paint: Paint,
    },
    /// A line along a path.
    Stroke {
        /// Where the line runs.
        path: Path,
        /// Its colour.
        colour: Colour,
        /// Width, caps, joins and dashes.
        style: Stroke,
    },
    /// A text.
    Text(Text),
    /// Begins a clip: until the matching [`Item::Unclip`] only what is inside the path is painted.
    /// Clips nest.
    Clip(Path),
    /// Ends the innermost clip.
    Unclip,
}

/// A colour with its opacity, each from 0 to 1, not premultiplied.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Colour {
    /// Red.
    pub red: f64,
    /// Green.
    pub green: f64,
    /// Blue.
    pub blue: f64,
    /// Opacity: 0 is transparent.
    pub alpha: f64,
}

impl Colour {
    /// Opaque black.
    pub const BLACK: Colour = Colour::new(0.0, 0.0, 0.0, 1.0);
    /// Opaque white.
    pub const WHITE: Colour = Colour::new(1.0, 1.0, 1.0, 1.0);

    /// A colour of its four parts.
    pub const fn new(red: f64, green: f64, blue: f64, alpha: f64) -> Colour {
        Colour {
            red,
            green,
            blue,
            alpha,
        }
    }

    /// The colour `0xRRGGBBAA`.
    pub fn from_rgba(rgba: u32) -> Colour {
        let [red, green, blue, alpha] = rgba.to_be_bytes().map(|byte| f64::from(byte) / 255.0);
        Colour {
            red,
            green,
            blue,
            alpha,
        }
    }

    /// The same colour with another opacity.
    pub const fn with_alpha(self, alpha: f64) -> Colour {
        Colour { alpha, ..self }
    }
}

/// What an area is painted with.
#[derive(Debug, Clone, PartialEq)]
pub enum Paint {
    /// One colour.
    Solid(Colour),
    /// A linear gradient; outside its ends the colours of the ends go on.
    Linear {
        /// Where it begins.
        from: Point,
        /// Where it ends.
        to: Point,
        /// Colours at offsets from 0 to 1, in ascending order.
        stops: Vec<(f64, Colour)>,
    },
}

/// A position in user pixels.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Point {
    /// To the right.
    pub x: f64,
    /// Down.
    pub y: f64,
}

impl Point {
    /// A point of its coordinates.
    pub const fn new(x: f64, y: f64) -> Point {
        Point { x, y }
    }
}

/// One step of a [`Path`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Segment {
    /// Begins a new part.
    Move(Point),
    /// A straight line.
    Line(Point),
    /// A cubic Bézier curve: two control points and the end.
    Curve(Point, Point, Point),
    /// A straight line back to where the part began.
    Close,
}

/// Lines and curves, in parts that are open or closed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Path {
    /// The steps. Lines and curves before any [`Segment::Move`] begin at their own first point.
    pub segments: Vec<Segment>,
}

impl Path {
    /// A path without segments.
    pub const fn new() -> Path {
        Path {
            segments: Vec::new(),
        }
    }

    /// Begins a new part at a point.
    pub fn move_to(&mut self, x: f64, y: f64) {
        self.segments.push(Segment::Move(Point::new(x, y)));
    }

    /// Adds a straight line.
    pub fn line_to(&mut self, x: f64, y: f64) {
        self.segments.push(Segment::Line(Point::new(x, y)));
    }

    /// Adds a cubic Bézier curve with two control points.
    pub fn curve_to(&mut self, first: Point, second: Point, end: Point) {
        self.segments.push(Segment::Curve(first, second, end));
    }

    /// Closes the part.
    pub fn close(&mut self) {
        self.segments.push(Segment::Close);
    }

    /// An open path through points.
    pub fn polyline(points: impl IntoIterator<Item = Point>) -> Path {
        let points = points.into_iter();
        // One more for a path that is closed.
        let mut segments = Vec::with_capacity(points.size_hint().0 + 1);
        for point in points {
            segments.push(if segments.is_empty() {
                Segment::Move(point)
            } else {
                Segment::Line(point)
            });
        }
        Path { segments }
    }

    /// A closed path through points.
    pub fn polygon(points: impl IntoIterator<Item = Point>) -> Path {
        let mut path = Path::polyline(points);
        path.close();
        path
    }

    /// The rectangle with two opposite corners.
    pub fn rectangle(left: f64, top: f64, right: f64, bottom: f64) -> Path {
        Path::polygon([
            Point::new(left, top),
            Point::new(right, top),
            Point::new(right, bottom),
            Point::new(left, bottom),
        ])
    }
}

/// How a line is drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct Stroke {
    /// Width in user pixels.
    pub width: f64,
    /// Ends of lines and of dashes.
    pub cap: Cap,
    /// Corners.
    pub join: Join,
    /// Lengths of dashes and gaps in turn, in user pixels; empty for a solid line. An odd number of
    /// lengths is repeated once.
    pub dashes: Vec<f64>,
    /// Where in the dashes the line begins, in user pixels.
    pub dash_offset: f64,
}

impl Stroke {
    /// A solid line with butt caps and mitred joins, as grids and axes have them.
    pub const fn thin(width: f64) -> Stroke {
        Stroke {
            width,
            cap: Cap::Butt,
            join: Join::Miter,
            dashes: Vec::new(),
            dash_offset: 0.0,
        }
    }

    /// A solid line with round caps and joins, as series have them.
    pub const fn round(width: f64) -> Stroke {
        Stroke {
            width,
            cap: Cap::Round,
            join: Join::Round,
            dashes: Vec::new(),
            dash_offset: 0.0,
        }
    }
}

/// How a line ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cap {
    /// At its last point.
    Butt,
    /// With half a disc.
    Round,
}

/// How two lines of a path meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Join {
    /// With a sharp corner, bevelled where it would be longer than 10 widths.
    Miter,
    /// With a round corner.
    Round,
}

/// A text and where it is.
///
/// The logical box of the text (as wide as its advances, as high as its lines) is placed with the
/// aligned edges or its centre at the origin, then rotated around the origin.
#[derive(Debug, Clone, PartialEq)]
pub struct Text {
    /// The text; line feeds separate lines.
    pub text: String,
    /// Whether the text is Pango markup.
    pub markup: bool,
    /// The point that the alignments and the angle refer to.
    pub origin: Point,
    /// Where the box is relative to the origin.
    pub horizontal: HorizontalAlign,
    /// Where the box is relative to the origin.
    pub vertical: VerticalAlign,
    /// Counter-clockwise rotation in degrees.
    pub angle: f64,
    /// The font and its size.
    pub font: Font,
    /// The colour.
    pub colour: Colour,
    /// Positions of tab stops; `None` for one every eight characters.
    pub tabs: Option<TabStops>,
}

impl Text {
    /// A text with its upper left corner at a point.
    pub fn new(text: impl Into<String>, x: f64, y: f64, font: Font, colour: Colour) -> Text {
        Text {
            text: text.into(),
            markup: false,
            origin: Point::new(x, y),
            horizontal: HorizontalAlign::Left,
            vertical: VerticalAlign::Top,
            angle: 0.0,
            font,
            colour,
            tabs: None,
        }
    }
}

/// Tab stops at `first`, `first + step`, `first + 2 * step` and so on, in pixels from the
/// beginning of the text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TabStops {
    /// The first stop.
    pub first: f64,
    /// The distance between stops; more than 0.
    pub step: f64,
}

impl TabStops {
    /// The first stop behind a place, both in pixels from the beginning of the text.
    pub fn after(self, x: f64) -> f64 {
        match x < self.first {
            true => self.first,
            false => self.first + ((x - self.first) / self.step).floor() * self.step + self.step,
        }
    }
}

/// Which part of a text's box is at the origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HorizontalAlign {
    /// The left edge.
    Left,
    /// The centre.
    Center,
    /// The right edge.
    Right,
}

/// Which part of a text's box is at the origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerticalAlign {
    /// The upper edge.
    Top,
    /// The centre.
    Center,
    /// The lower edge.
    Bottom,
}

/// How a picture is rendered.
#[derive(Debug, Clone, PartialEq)]
pub struct RenderOptions {
    /// The factor that all coordinates are multiplied by. Glyphs are hinted at the enlarged size.
    pub zoom: f64,
    /// PNG: whether edges of shapes are smoothed.
    pub smooth_shapes: bool,
    /// PNG: how texts are drawn.
    pub text_mode: TextMode,
    /// SVG: texts are `<text>` elements that name their font, not glyph outlines.
    pub svg_text: bool,
    /// PNG and PDF: the level of compression, from 0 (none) to 9 (best).
    pub compression: u32,
}

impl Default for RenderOptions {
    fn default() -> RenderOptions {
        RenderOptions {
            zoom: 1.0,
            smooth_shapes: true,
            text_mode: TextMode::Normal,
            svg_text: false,
            // PNGs are as large as rrdtool's; 6 makes them a quarter smaller, in twice the time.
            compression: 3,
        }
    }
}

/// How glyphs become pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TextMode {
    /// Hinted and smoothed.
    Normal,
    /// Slightly hinted, smoothed.
    Light,
    /// Hinted, black and white.
    Mono,
}

/// Why a picture could not be rendered or a font not be loaded.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum DrawError {
    /// The picture is too large, or its zoom is not a positive number.
    Size {
        /// Width in pixels, zoomed.
        width: f64,
        /// Height in pixels, zoomed.
        height: f64,
    },
    /// A font is not installed, cannot be read, or is damaged.
    Font {
        /// The name or path that was asked for.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// The greatest number of pixels of a picture.
pub const MAX_PIXELS: u32 = 100_000_000;

/// The greatest width and height of a picture, in pixels.
pub const MAX_SIDE: u32 = 32_767;

impl fmt::Display for DrawError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DrawError::Size { width, height } => write!(
                out,
                "cannot draw a picture of {width} x {height} pixels: \
                 the limit is {MAX_SIDE} pixels a side and {MAX_PIXELS} pixels in all"
            ),
            DrawError::Font { name, reason } => write!(out, "cannot use font `{name}`: {reason}"),
        }
    }
}

impl std::error::Error for DrawError {}
