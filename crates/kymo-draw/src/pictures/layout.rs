//! Where the glyphs of a text are.

use crate::pictures::font::{FaceId, Fonts, PIXELS_PER_POINT};
use crate::pictures::markup::{self, Rise, Run, RunStyle, Script, Underline};
use crate::pictures::picture::{
    Colour, HorizontalAlign, Path, Point, TabStops, Text, TextMode, VerticalAlign,
};
use crate::pictures::raster::fixed;

/// The greatest number of characters of a text that are drawn.
const MAX_CHARACTERS: usize = 100_000;

/// The greatest size of a glyph in device pixels.
const MAX_GLYPH: f64 = 4096.0;

/// The logical box of a text in pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Extents {
    /// Width: the advances of the widest line, rounded up to a pixel.
    pub width: f64,
    /// Height of all lines.
    pub height: f64,
}

/// Glyphs of one font and colour, and what is drawn with them; coordinates are device pixels.
#[derive(Debug)]
pub(crate) struct GlyphRun {
    pub(crate) face: FaceId,
    /// Size in device pixels.
    pub(crate) size: f64,
    pub(crate) colour: Colour,
    pub(crate) glyphs: Vec<PlacedGlyph>,
    /// The sum of the advances.
    pub(crate) length: f64,
    /// What is behind the glyphs.
    pub(crate) background: Option<(Path, Colour)>,
    /// Lines over or under the glyphs.
    pub(crate) lines: Vec<(Path, Colour)>,
}

/// A glyph, and its origin on the baseline in device pixels.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlacedGlyph {
    pub(crate) glyph: u32,
    /// What it stands for; [`crate::pictures::font::spelled`] takes ligatures apart.
    pub(crate) character: char,
    pub(crate) origin: Point,
}

/// A rotation: the coordinates of its first column, in screen coordinates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rotation {
    pub(crate) cos: f64,
    pub(crate) sin: f64,
}

impl Rotation {
    /// Counter-clockwise, in degrees; exact for right angles.
    pub(crate) fn new(degrees: f64) -> Rotation {
        let degrees = if degrees.is_finite() {
            degrees.rem_euclid(360.0)
        } else {
            0.0
        };
        let (sin, cos) = match degrees {
            0.0 => (0.0, 1.0),
            90.0 => (1.0, 0.0),
            180.0 => (0.0, -1.0),
            270.0 => (-1.0, 0.0),
            _ => degrees.to_radians().sin_cos(),
        };
        Rotation { cos, sin }
    }

    /// What distinguishes it from others.
    pub(crate) fn bits(self) -> [u64; 2] {
        [self.cos.to_bits(), self.sin.to_bits()]
    }

    pub(crate) fn apply(self, x: f64, y: f64) -> Point {
        Point::new(self.cos * x + self.sin * y, self.cos * y - self.sin * x)
    }
}

/// Pango's unit is a 1024th of a pixel.
fn units(value: f64) -> f64 {
    (value * 1024.0 + 1e-6).floor() / 1024.0
}

/// Glyphs of one run on one line, relative to the upper left corner of the text, at zoom 1.
struct Piece {
    face: FaceId,
    style: RunStyle,
    glyphs: Vec<(u32, char, f64)>,
    x: f64,
    end: f64,
    /// Room behind the last glyph, which the end of a line does not have.
    right_spacing: f64,
    /// Of the text's box.
    baseline: f64,
    rise: f64,
    top: f64,
    bottom: f64,
}

struct Laid {
    pieces: Vec<Piece>,
    extents: Extents,
}

fn runs(fonts: &Fonts, text: &Text) -> Vec<Run> {
    let style = RunStyle::plain(&text.font, text.colour);
    let plain = vec![Run {
        text: text.text.clone(),
        style: style.clone(),
    }];
    if !text.markup {
        return plain;
    }
    markup::parse(&text.text, style).unwrap_or_else(|error| {
        fonts.warn(format!(
            "cannot read markup `{}`: {error}; it is shown as plain text",
            text.text
        ));
        plain
    })
}

fn lay(fonts: &Fonts, text: &Text, zoom: f64) -> Laid {
    let mut laid = Laid {
        pieces: Vec::new(),
        extents: Extents {
            width: 0.0,
            height: 0.0,
        },
    };
    let mut line = Vec::new();
    let mut x = 0.0;
    let mut left = MAX_CHARACTERS;
    // The font before a run on its line.
    let mut before: Option<(FaceId, f64)> = None;
    for run in runs(fonts, text) {
        let face = fonts.find(&run.style.font);
        let spacing = LetterSpacing::new(run.style.letter_spacing);
        for (number, part) in run.text.split('\n').enumerate() {
            if number > 0 {
                laid.end_line(fonts, text, std::mem::take(&mut line), x);
                x = 0.0;
                before = None;
            }
            let mut style = run.style.clone();
            style.font.size *= scale(fonts, style.scale, before, zoom);
            let rise = rise(fonts, style.rise, before);
            if !part.is_empty() {
                before = Some((face, style.font.size));
            }
            for (number, word) in part.trim_end_matches('\r').split('\t').enumerate() {
                if number > 0 {
                    x = next_tab(fonts, text, x);
                }
                let mut piece: Option<Piece> = None;
                let pixels = style.font.pixels();
                let glyphs = fonts.glyphs_of(face, word.chars().take(left));
                let advances = fonts.advances(&glyphs, pixels * zoom);
                for (((face, glyph), character), advance) in glyphs.into_iter().zip(advances) {
                    let advance = units(advance / zoom);
                    if piece.as_ref().is_none_or(|piece| piece.face != face) {
                        let next = Piece::new(fonts, face, &style, x, rise);
                        line.extend(piece.replace(next));
                    }
                    if x > 0.0 {
                        x += spacing.left;
                    }
                    if let Some(piece) = &mut piece {
                        piece.glyphs.push((glyph, character, x));
                        x += advance + spacing.right;
                        piece.right_spacing = spacing.right;
                        piece.end = x;
                    }
                }
                left = left.saturating_sub(word.len());
                line.extend(piece);
            }
        }
    }
    laid.end_line(fonts, text, line, x);
    // Parts of a pixel count as one, but not those that are left of a division.
    laid.extents.width = (laid.extents.width - 1e-6).ceil().max(0.0);
    laid.extents.height = (laid.extents.height - 1e-6).ceil().max(0.0);
    laid
}

/// Room beside each glyph.
struct LetterSpacing {
    left: f64,
    right: f64,
}

impl LetterSpacing {
    fn new(spacing: f64) -> LetterSpacing {
        // Whole pixels stay so on both sides.
        let left = match spacing.fract() == 0.0 {
            true => (spacing / 2.0 + 0.5).floor(),
            false => spacing / 2.0,
        };
        LetterSpacing {
            left,
            right: spacing - left,
        }
    }
}

/// By how much a font is smaller that is one of scripts, behind a text with a font.
fn scale(fonts: &Fonts, script: Option<Script>, before: Option<(FaceId, f64)>, zoom: f64) -> f64 {
    let (script, face) = match (script, before) {
        (None, _) => return 1.0,
        (Some(_), None) => return zoom / markup::SCALE,
        (Some(script), Some((face, _))) => (script, fonts.face(face)),
    };
    // As pango has it: in a zoomed picture, scripts are zoomed twice.
    zoom * match script {
        Script::Subscript => face.decorations.subscript_size,
        Script::Superscript => face.decorations.superscript_size,
    }
}

/// How far a baseline is raised behind a text with a font of this size in points, in pixels.
fn rise(fonts: &Fonts, rise: Rise, before: Option<(FaceId, f64)>) -> f64 {
    /// Where no font asks for another one.
    const USUAL: f64 = 5000.0 / 1024.0;
    let script = match rise {
        Rise::Pixels(pixels) => return pixels,
        Rise::Script(script) => script,
    };
    match (script, before) {
        (Script::Subscript, None) => -USUAL,
        (Script::Superscript, None) => USUAL,
        (script, Some((face, size))) => {
            let decorations = &fonts.face(face).decorations;
            let part = match script {
                Script::Subscript => -decorations.subscript,
                Script::Superscript => decorations.superscript,
            };
            part * size * PIXELS_PER_POINT
        }
    }
}

fn next_tab(fonts: &Fonts, text: &Text, x: f64) -> f64 {
    let space = fonts.text_width(&text.font, " ").max(1.0);
    let TabStops { first, step } = text.tabs.unwrap_or(TabStops {
        first: space * 8.0,
        step: space * 8.0,
    });
    if !(step > 0.0 && step.is_finite() && first.is_finite()) {
        return x + space;
    }
    units(TabStops { first, step }.after(x))
}

impl Piece {
    fn new(fonts: &Fonts, id: FaceId, style: &RunStyle, x: f64, rise: f64) -> Piece {
        let face = fonts.face(id);
        let metrics = face.metrics(style.font.pixels());
        Piece {
            face: id,
            style: style.clone(),
            glyphs: Vec::new(),
            x,
            end: x,
            right_spacing: 0.0,
            baseline: 0.0,
            rise: units(rise),
            top: metrics.ascent + units(rise),
            bottom: metrics.descent - units(rise),
        }
    }
}

impl Laid {
    fn end_line(&mut self, fonts: &Fonts, text: &Text, mut line: Vec<Piece>, width: f64) {
        let mut width = width;
        if let Some(last) = line.last_mut().filter(|last| last.end == width) {
            last.end -= last.right_spacing;
            width = last.end;
        }
        let base = fonts.metrics(&text.font);
        let (ascent, descent) = if line.is_empty() {
            (base.ascent, base.descent)
        } else {
            // The baseline itself is on the line, wherever its texts are.
            line.iter()
                .fold((0.0_f64, 0.0_f64), |(top, bottom), piece| {
                    (top.max(piece.top), bottom.max(piece.bottom))
                })
        };
        let top = self.extents.height;
        for mut piece in line {
            piece.baseline = top + ascent;
            piece.top = top;
            piece.bottom = top + ascent + descent;
            self.pieces.push(piece);
        }
        self.extents.height += ascent + descent;
        self.extents.width = self.extents.width.max(width);
    }
}

impl Fonts {
    /// The box of a text, with its markup and tabs; in pixels at zoom 1, as it is when the picture
    /// is rendered at a zoom.
    pub fn measure(&self, text: &Text, zoom: f64) -> Extents {
        lay(self, text, zoom).extents
    }
}

/// From where to where the glyphs of a piece are seen, in whole device pixels of each glyph; `None` if they are blanks.
fn ink(fonts: &Fonts, piece: &Piece, zoom: f64, mode: TextMode) -> Option<(f64, f64)> {
    let size = (piece.style.font.pixels() * zoom).min(MAX_GLYPH);
    let mut ink: Option<(f64, f64)> = None;
    for (glyph, _, x) in &piece.glyphs {
        let outline = fonts.outline(piece.face, *glyph, size, mode);
        let Some((left, right)) = outline.sides() else {
            continue;
        };
        let left = x + units(f64::from(left).floor() / zoom);
        let right = x + units(f64::from(right).ceil() / zoom);
        ink = Some(ink.map_or((left, right), |(first, last)| {
            (first.min(left), last.max(right))
        }));
    }
    ink
}

/// The glyphs of a text in device pixels.
pub(crate) fn place(
    fonts: &Fonts,
    text: &Text,
    zoom: f64,
    mode: TextMode,
) -> (Vec<GlyphRun>, Rotation) {
    let Laid { pieces, extents } = lay(fonts, text, zoom);
    let rotation = Rotation::new(text.angle);
    let left = match text.horizontal {
        HorizontalAlign::Left => 0.0,
        // Whole pixels, as pango has them.
        HorizontalAlign::Center => (extents.width / 2.0).floor(),
        HorizontalAlign::Right => extents.width,
    };
    let top = match text.vertical {
        VerticalAlign::Top => 0.0,
        VerticalAlign::Center => (extents.height / 2.0).floor(),
        VerticalAlign::Bottom => extents.height,
    };
    let offset = rotation.apply(-left, -top);
    let snap = |value: f64| f64::from(fixed(value * zoom)) / 256.0;
    let corner = Point::new(
        snap(text.origin.x + offset.x),
        snap(text.origin.y + offset.y),
    );
    let at = |x: f64, y: f64| {
        let offset = rotation.apply(x * zoom, y * zoom);
        Point::new(corner.x + offset.x, corner.y + offset.y)
    };
    let area = |left: f64, top: f64, right: f64, bottom: f64| {
        Path::polygon([
            at(left, top),
            at(right, top),
            at(right, bottom),
            at(left, bottom),
        ])
    };
    let runs = pieces.into_iter().map(|piece| {
        let pixels = piece.style.font.pixels();
        let decorations = &fonts.face(piece.face).decorations;
        let baseline = piece.baseline - piece.rise;
        // As pango has it: thick and far from the baseline as at zoom 1, and what strikes glyphs out is as long as
        // they are seen.
        let band = |(left, right): (f64, f64), top: f64, thickness: f64| {
            let top = baseline + top * pixels / zoom;
            area(left, top, right, top + thickness * pixels / zoom)
        };
        let mut lines = Vec::new();
        let style = &piece.style;
        let thickness = decorations.underline_thickness;
        let count = match style.underline {
            Underline::None => 0,
            Underline::Single => 1,
            Underline::Double => 2,
        };
        for number in 0..count {
            // With as much room between two.
            let top = decorations.underline_top + 2.0 * f64::from(number) * thickness;
            let colour = style.underline_colour.unwrap_or(style.colour);
            lines.push((band((piece.x, piece.end), top, thickness), colour));
        }
        if piece.style.strikethrough
            && let Some(ink) = ink(fonts, &piece, zoom, mode)
        {
            let thickness = decorations.strikeout_thickness;
            let line = band(ink, -decorations.strikeout_top, thickness);
            lines.push((line, style.strikethrough_colour.unwrap_or(style.colour)));
        }
        GlyphRun {
            face: piece.face,
            size: (pixels * zoom).min(MAX_GLYPH),
            colour: piece.style.colour,
            length: (piece.end - piece.x) * zoom,
            glyphs: piece
                .glyphs
                .iter()
                .map(|(glyph, character, x)| PlacedGlyph {
                    glyph: *glyph,
                    character: *character,
                    origin: at(*x, baseline),
                })
                .collect(),
            background: piece
                .style
                .background()
                .map(|colour| (area(piece.x, piece.top, piece.end, piece.bottom), colour)),
            lines,
        }
    });
    (runs.collect(), rotation)
}
