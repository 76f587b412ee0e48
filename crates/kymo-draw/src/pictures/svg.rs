//! Pictures as SVG.

use crate::pictures::font::{FaceId, Fonts, GlyphKey, spelled};
use crate::pictures::layout::{self, GlyphRun, PlacedGlyph, Rotation};
use crate::pictures::number::{Collected, Number};
use crate::pictures::picture::{
    Cap, Colour, DrawError, Item, Join, Paint, Path, Picture, Point, RenderOptions, Segment, Stroke,
};
use crate::pictures::raster::{Fixed, fixed};
use crate::pictures::stroke::{MITER_LIMIT, is_visible, pattern};
use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::f64::consts::SQRT_2;
use std::io::Write;

/// Renders a picture as SVG 1.1, structured as cairo does it: glyphs are symbols that are used at
/// their places, in device pixels. With [`RenderOptions::svg_text`], texts are `<text>` elements.
///
/// # Errors
/// The picture is too large.
pub fn svg(
    picture: &Picture,
    fonts: &Fonts,
    options: &RenderOptions,
) -> Result<Vec<u8>, DrawError> {
    let (width, height) = super::device_size(picture, options)?;
    let mut writer = Svg::new(fonts, options);
    writer.body.reserve(estimated(&picture.items));
    writer.items(&picture.items, (width, height));
    let (width, height) = (Number(width), Number(height));
    let mut out = Vec::with_capacity(writer.body.len() + 1024);
    let _ = write!(
        out,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" \
         xmlns:xlink=\"http://www.w3.org/1999/xlink\" width=\"{width}pt\" height=\"{height}pt\" \
         viewBox=\"0 0 {width} {height}\" version=\"1.1\">\n"
    );
    let symbols = || writer.symbols.iter().map(|font| &font.text[..]);
    let length = symbols().map(<[u8]>::len).sum::<usize>() + writer.definitions.len();
    out.reserve(length + writer.body.len() + 64);
    if length > 0 {
        out.extend_from_slice(b"<defs>\n");
        if !writer.symbols.is_empty() {
            out.extend_from_slice(b"<g>\n");
            symbols().for_each(|text| out.extend_from_slice(text));
            out.extend_from_slice(b"</g>\n");
        }
        out.extend_from_slice(&writer.definitions);
        out.extend_from_slice(b"</defs>\n");
    }
    out.extend_from_slice(b"<g id=\"surface1\">\n");
    out.extend_from_slice(&writer.body);
    out.extend_from_slice(b"</g>\n</svg>\n");
    Ok(out)
}

/// The symbols of one face, size and rotation.
#[derive(Default)]
struct Symbols {
    text: Vec<u8>,
    numbers: HashMap<u32, usize, RandomState>,
}

/// About how many bytes items take.
fn estimated(items: &[Item]) -> usize {
    let bytes = |item: &Item| match item {
        Item::Fill { path, .. } => 120 + 16 * path.segments.len(),
        Item::Stroke { path, .. } => 240 + 16 * path.segments.len(),
        Item::Text(text) => 80 + 52 * text.text.len(),
        Item::Clip(_) | Item::Unclip => 64,
    };
    items.iter().map(bytes).sum()
}

/// A face, its size and its rotation.
type SymbolFont = (FaceId, u64, u64, u64);

/// What is written of lines before their path, for one look of them.
struct Style {
    colour: Colour,
    stroke: Stroke,
    text: Vec<u8>,
}

/// So many looks are kept.
const MOST_STYLES: usize = 16;

struct Svg<'a> {
    /// The looks of the last lines: those of a grid alternate.
    styles: Vec<Style>,
    /// Colours, and how they are written, with their opacity.
    colours: Vec<(Colour, String)>,
    fonts: &'a Fonts,
    options: &'a RenderOptions,
    symbols: Vec<Symbols>,
    symbol_fonts: HashMap<SymbolFont, usize>,
    last_font: Option<(SymbolFont, usize)>,
    definitions: Vec<u8>,
    clips: usize,
    gradients: usize,
    body: Vec<u8>,
}

/// A colour's three parts in per cent.
struct Rgb(Colour);

impl std::fmt::Display for Rgb {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let part = |value: f64| Number(value.clamp(0.0, 1.0) * 100.0);
        write!(
            out,
            "rgb({}%,{}%,{}%)",
            part(self.0.red),
            part(self.0.green),
            part(self.0.blue)
        )
    }
}

/// Appends a path's steps, in pixels rounded to 256ths, as cairo keeps them: no line to where the path is already, and
/// one line for several in the same direction.
fn push_steps(out: &mut Vec<u8>, path: &Path, zoom: f64) {
    let at = |point: Point| (fixed(point.x * zoom), fixed(point.y * zoom));
    let mut steps = Steps {
        out: Collected::new(out),
        begin: None,
        here: None,
        line: None,
        is_drawn: false,
        is_closed: false,
    };
    for segment in &path.segments {
        match *segment {
            Segment::Move(to) => steps.move_to(at(to)),
            Segment::Line(to) => steps.line_to(at(to)),
            Segment::Curve(first, second, to) => steps.curve_to([at(first), at(second), at(to)]),
            Segment::Close => steps.close(),
        }
    }
    steps.finish();
}

/// The steps of a path while they are written.
struct Steps<'a> {
    out: Collected<'a>,
    /// Where the part begins.
    begin: Option<Fixed>,
    here: Option<Fixed>,
    /// Begin and end of a line that is not written yet: the next one may go on in its direction.
    line: Option<(Fixed, Fixed)>,
    /// Whether the last step is a line or a curve.
    is_drawn: bool,
    /// Whether the part was closed: the next step, if any but a move, begins where it began.
    is_closed: bool,
}

impl Steps<'_> {
    fn write<const N: usize>(&mut self, name: &[u8; 2], points: [Fixed; N]) {
        self.out.text(name);
        for (x, y) in points {
            self.out.fixed(x);
            self.out.text(b" ");
            self.out.fixed(y);
            self.out.text(b" ");
        }
    }

    /// Writes what the next step can no longer change.
    fn settle(&mut self, moves: bool) {
        if let Some((_, to)) = self.line.take() {
            self.write(b"L ", [to]);
        }
        if std::mem::take(&mut self.is_closed)
            && let Some(begin) = self.begin.filter(|_| !moves)
        {
            self.write(b"M ", [begin]);
        }
    }

    fn move_to(&mut self, to: Fixed) {
        self.settle(true);
        self.write(b"M ", [to]);
        (self.begin, self.here, self.is_drawn) = (Some(to), Some(to), false);
    }

    fn line_to(&mut self, to: Fixed) {
        let Some(from) = self.here.replace(to) else {
            return self.move_to(to);
        };
        if self.is_drawn && from == to {
            return;
        }
        match &mut self.line {
            Some((first, end)) if onwards(*first, from, to) => *end = to,
            _ => {
                self.settle(false);
                (self.line, self.is_drawn) = (Some((from, to)), true);
            }
        }
    }

    fn curve_to(&mut self, points: [Fixed; 3]) {
        if self.here.is_none() {
            self.move_to(points[0]);
        }
        self.settle(false);
        self.write(b"C ", points);
        (self.here, self.is_drawn) = (Some(points[2]), true);
    }

    fn close(&mut self) {
        self.settle(false);
        self.out.text(b"Z ");
        (self.is_drawn, self.is_closed) = (false, true);
    }

    fn finish(mut self) {
        self.settle(false);
        self.out.finish();
    }
}

/// What is written of a line before its path.
fn look(colour: Colour, style: &Stroke, zoom: f64) -> Vec<u8> {
    let cap = if style.cap == Cap::Round {
        "round"
    } else {
        "butt"
    };
    let join = if style.join == Join::Round {
        "round"
    } else {
        "miter"
    };
    let mut text = Vec::new();
    let _ = write!(
        text,
        "<path style=\"fill:none;stroke-width:{};stroke-linecap:{cap};stroke-linejoin:{join};stroke:{};stroke-opacity:{};",
        Number(style.width * zoom),
        Rgb(colour),
        Number(colour.alpha)
    );
    if let Some((dashes, offset)) = pattern(style, zoom) {
        let dashes: Vec<String> = dashes
            .iter()
            .map(|length| Number(*length).to_string())
            .collect();
        let _ = write!(text, "stroke-dasharray:{};", dashes.join(","));
        if offset != 0.0 {
            let _ = write!(text, "stroke-dashoffset:{};", Number(offset));
        }
    }
    let _ = write!(text, "stroke-miterlimit:{MITER_LIMIT};\" d=\"");
    text
}

/// Whether a line from `from` to `to` goes on in the direction of the one from `first` to `from`.
fn onwards(first: Fixed, from: Fixed, to: Fixed) -> bool {
    let way = |a: Fixed, b: Fixed| {
        (
            i64::from(b.0) - i64::from(a.0),
            i64::from(b.1) - i64::from(a.1),
        )
    };
    let ((ax, ay), (bx, by)) = (way(first, from), way(from, to));
    ax * by == ay * bx && ax * bx + ay * by >= 0
}

/// The left, top, right and bottom of something, in pixels.
type Bounds = [f64; 4];

/// The bounds of a path, rounded to 256ths; its right is left of its left if it has no points.
fn bounds(path: &Path, zoom: f64) -> Bounds {
    let (mut least, mut most) = ([f64::INFINITY; 2], [f64::NEG_INFINITY; 2]);
    let mut add = |point: &Point| {
        for (axis, value) in [point.x, point.y].into_iter().enumerate() {
            least[axis] = if value < least[axis] {
                value
            } else {
                least[axis]
            };
            most[axis] = if value > most[axis] {
                value
            } else {
                most[axis]
            };
        }
    };
    for segment in &path.segments {
        match segment {
            Segment::Move(point) | Segment::Line(point) => add(point),
            Segment::Curve(first, second, end) => {
                [first, second, end].into_iter().for_each(&mut add)
            }
            Segment::Close => {}
        }
    }
    [least[0], least[1], most[0], most[1]].map(|value| f64::from(fixed(value * zoom)) / 256.0)
}

/// What is inside of both.
fn overlap(a: Bounds, b: Bounds) -> Bounds {
    [
        a[0].max(b[0]),
        a[1].max(b[1]),
        a[2].min(b[2]),
        a[3].min(b[3]),
    ]
}

/// Whether an area shows anything inside of a rectangle. As cairo does, nothing else is written.
fn is_filled(path: &Path, paint: &Paint, zoom: f64, inside: Bounds) -> bool {
    let [left, top, right, bottom] = overlap(bounds(path, zoom), inside);
    let is_clear = matches!(paint, Paint::Solid(colour) if colour.alpha <= 0.0);
    !is_clear && left < right && top < bottom
}

/// Whether glyphs are written: cairo omits blanks whose bounds, rounded to pixels, are empty.
fn shows(run: &GlyphRun) -> bool {
    let is_blank = |glyph: &PlacedGlyph| glyph.character.is_whitespace();
    let spans = |part: fn(Point) -> f64| {
        let parts = run.glyphs.iter().map(|glyph| part(glyph.origin));
        let least = parts.clone().fold(f64::INFINITY, f64::min);
        let greatest = parts.fold(f64::NEG_INFINITY, f64::max);
        least.floor() < greatest.ceil()
    };
    !run.glyphs.iter().all(is_blank) || spans(|point| point.x) && spans(|point| point.y)
}

/// Whether all lines of a path are horizontal or vertical.
fn is_rectilinear(path: &Path) -> bool {
    let mut here: Option<Point> = None;
    path.segments.iter().all(|segment| {
        let to = match segment {
            Segment::Move(to) | Segment::Line(to) => *to,
            Segment::Curve(..) => return false,
            Segment::Close => return true,
        };
        let from = here
            .replace(to)
            .filter(|_| matches!(segment, Segment::Line(_)));
        from.is_none_or(|from| from.x == to.x || from.y == to.y)
    })
}

/// Whether a line shows anything inside of a rectangle.
fn is_stroked(path: &Path, style: &Stroke, zoom: f64, inside: Bounds) -> bool {
    let width = style.width * zoom;
    let reach = match style.join {
        // As far as cairo thinks that a mitre may lead.
        Join::Miter if !is_rectilinear(path) => width * MITER_LIMIT * SQRT_2,
        _ => width / 2.0,
    };
    let [left, top, right, bottom] = bounds(path, zoom);
    let [left, top, right, bottom] = overlap(
        [left - reach, top - reach, right + reach, bottom + reach],
        inside,
    );
    left < right && top < bottom
}

impl<'a> Svg<'a> {
    fn new(fonts: &'a Fonts, options: &'a RenderOptions) -> Svg<'a> {
        Svg {
            styles: Vec::new(),
            colours: Vec::new(),
            fonts,
            options,
            symbols: Vec::new(),
            symbol_fonts: HashMap::new(),
            last_font: None,
            definitions: Vec::new(),
            clips: 0,
            gradients: 0,
            body: Vec::new(),
        }
    }

    // Writing to a string does not fail.
    fn items(&mut self, items: &[Item], size: (f64, f64)) {
        let zoom = self.options.zoom;
        let page = [0.0, 0.0, size.0, size.1];
        // What is inside of each open clip.
        let mut clips = Vec::new();
        for item in items {
            let inside = clips.last().copied().unwrap_or(page);
            match item {
                Item::Fill { path, paint } => {
                    if is_filled(path, paint, zoom, inside) {
                        self.fill(path, paint, zoom, Some(size));
                    }
                }
                Item::Stroke {
                    path,
                    colour,
                    style,
                } => {
                    if colour.alpha > 0.0 && is_stroked(path, style, zoom, inside) {
                        self.stroke(path, *colour, style);
                    }
                }
                Item::Text(text) => {
                    let (runs, rotation) =
                        layout::place(self.fonts, text, zoom, self.options.text_mode);
                    for run in runs {
                        self.run(&run, rotation, inside);
                    }
                }
                Item::Clip(path) => {
                    self.clips += 1;
                    clips.push(overlap(bounds(path, zoom), inside));
                    let number = self.clips;
                    let _ = write!(
                        self.definitions,
                        "<clipPath id=\"clip{number}\">\n  <path d=\""
                    );
                    push_steps(&mut self.definitions, path, zoom);
                    self.definitions.extend_from_slice(b"\"/>\n</clipPath>\n");
                    let _ = writeln!(
                        self.body,
                        "<g clip-path=\"url(#clip{number})\" clip-rule=\"nonzero\">"
                    );
                }
                Item::Unclip => {
                    if clips.pop().is_some() {
                        self.body.extend_from_slice(b"</g>\n");
                    }
                }
            }
        }
        self.body.extend(b"</g>\n".repeat(clips.len()));
    }

    fn fill(&mut self, path: &Path, paint: &Paint, zoom: f64, whole: Option<(f64, f64)>) {
        match paint {
            Paint::Solid(colour) => {
                if let Some((width, height)) = whole.filter(|(width, height)| {
                    *path == Path::rectangle(0.0, 0.0, width / zoom, height / zoom)
                }) {
                    let (width, height) = (Number(width), Number(height));
                    let _ = write!(
                        self.body,
                        "<rect x=\"0\" y=\"0\" width=\"{width}\" height=\"{height}\" style=\""
                    );
                    self.push_fill(*colour, ";stroke:none;\"/>\n");
                    return;
                }
                self.body
                    .extend_from_slice(b"<path style=\" stroke:none;fill-rule:nonzero;");
                self.push_fill(*colour, ";\" d=\"");
                push_steps(&mut self.body, path, zoom);
                self.body.extend_from_slice(b"\"/>\n");
            }
            Paint::Linear { from, to, stops } => {
                let number = self.gradients;
                self.gradients += 1;
                let [x1, y1, x2, y2] =
                    [from.x, from.y, to.x, to.y].map(|value| Number(value * zoom));
                let _ = writeln!(
                    self.definitions,
                    "<linearGradient id=\"linear{number}\" gradientUnits=\"userSpaceOnUse\" x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" >"
                );
                for (offset, colour) in stops {
                    let _ = writeln!(
                        self.definitions,
                        "<stop offset=\"{}\" style=\"stop-color:{};stop-opacity:{};\"/>",
                        Number(*offset),
                        Rgb(*colour),
                        Number(colour.alpha)
                    );
                }
                self.definitions.extend_from_slice(b"</linearGradient>\n");
                let _ = write!(
                    self.body,
                    "<path style=\" stroke:none;fill-rule:nonzero;fill:url(#linear{number});\" d=\""
                );
                push_steps(&mut self.body, path, zoom);
                self.body.extend_from_slice(b"\"/>\n");
            }
        }
    }

    fn stroke(&mut self, path: &Path, colour: Colour, style: &Stroke) {
        if !is_visible(style) {
            return;
        }
        let zoom = self.options.zoom;
        let same = |known: &Style| known.colour == colour && known.stroke == *style;
        let known = match self.styles.iter().position(same) {
            Some(known) => known,
            None => {
                if self.styles.len() == MOST_STYLES {
                    self.styles.clear();
                }
                self.styles.push(Style {
                    colour,
                    stroke: style.clone(),
                    text: look(colour, style, zoom),
                });
                self.styles.len() - 1
            }
        };
        self.body.extend_from_slice(&self.styles[known].text);
        push_steps(&mut self.body, path, zoom);
        self.body.extend_from_slice(b"\"/>\n");
    }

    /// Appends the colour and the opacity of an area, and what is behind them.
    fn push_fill(&mut self, colour: Colour, end: &str) {
        let known = match self.colours.iter().position(|(known, _)| *known == colour) {
            Some(known) => known,
            None => {
                if self.colours.len() == MOST_STYLES {
                    self.colours.clear();
                }
                let text = format!("fill:{};fill-opacity:{}", Rgb(colour), Number(colour.alpha));
                self.colours.push((colour, text));
                self.colours.len() - 1
            }
        };
        self.body
            .extend_from_slice(self.colours[known].1.as_bytes());
        self.body.extend_from_slice(end.as_bytes());
    }

    fn run(&mut self, run: &GlyphRun, rotation: Rotation, inside: Bounds) {
        if let Some((path, colour)) = &run.background {
            self.area(path, *colour, inside);
        }
        if self.options.svg_text {
            self.text(run, rotation);
        } else if shows(run) {
            self.body.extend_from_slice(b"<g style=\"");
            self.push_fill(run.colour, ";\">\n");
            let symbols: Vec<_> = run
                .glyphs
                .iter()
                .map(|glyph| self.symbol(run, rotation, glyph.glyph))
                .collect();
            let mut uses = Collected::new(&mut self.body);
            for (glyph, (font, number)) in run.glyphs.iter().zip(symbols) {
                uses.text(b"  <use xlink:href=\"#glyph");
                uses.count(font);
                uses.text(b"-");
                uses.count(number);
                uses.text(b"\" x=\"");
                uses.number(glyph.origin.x);
                uses.text(b"\" y=\"");
                uses.number(glyph.origin.y);
                uses.text(b"\"/>\n");
            }
            uses.finish();
            self.body.extend_from_slice(b"</g>\n");
        }
        for (path, colour) in &run.lines {
            self.area(path, *colour, inside);
        }
    }

    /// An area in device pixels.
    fn area(&mut self, path: &Path, colour: Colour, inside: Bounds) {
        let paint = Paint::Solid(colour);
        if is_filled(path, &paint, 1.0, inside) {
            self.fill(path, &paint, 1.0, None);
        }
    }

    fn text(&mut self, run: &GlyphRun, rotation: Rotation) {
        let Some(first) = run.glyphs.first() else {
            return;
        };
        let face = self.fonts.face(run.face);
        let (x, y) = (Number(first.origin.x), Number(first.origin.y));
        let _ = write!(
            self.body,
            "<text xml:space=\"preserve\" x=\"{x}\" y=\"{y}\" style=\"font-family:'{}',monospace;font-size:{}px;",
            escaped(&face.family.replace(['\'', '\\', ';'], "")),
            Number(run.size)
        );
        for (yes, property) in [
            (face.bold, "font-weight:bold;"),
            (face.italic, "font-style:italic;"),
        ] {
            self.body
                .extend_from_slice(if yes { property.as_bytes() } else { b"" });
        }
        let _ = write!(
            self.body,
            "fill:{};fill-opacity:{};\"",
            Rgb(run.colour),
            Number(run.colour.alpha)
        );
        let characters = run.glyphs.iter().map(|glyph| glyph.character);
        let text: String = characters.flat_map(spelled).collect();
        // Another font than ours, at the reader's, leaves texts as long as they are here.
        let _ = write!(
            self.body,
            " textLength=\"{}\" lengthAdjust=\"spacingAndGlyphs\"",
            Number(run.length)
        );
        if rotation != Rotation::new(0.0) {
            let degrees = Number(-rotation.sin.atan2(rotation.cos).to_degrees());
            let _ = write!(self.body, " transform=\"rotate({degrees} {x} {y})\"");
        }
        let _ = writeln!(self.body, ">{}</text>", escaped(&text));
    }

    /// The number of a glyph's font and its number there; its symbol is written at its first use.
    fn symbol(&mut self, run: &GlyphRun, rotation: Rotation, glyph: u32) -> (usize, usize) {
        let key = (
            run.face,
            run.size.to_bits(),
            rotation.cos.to_bits(),
            rotation.sin.to_bits(),
        );
        let font = match self.last_font {
            Some((last, font)) if last == key => font,
            _ => *self.symbol_fonts.entry(key).or_insert(self.symbols.len()),
        };
        self.last_font = Some((key, font));
        if font == self.symbols.len() {
            self.symbols.push(Symbols::default());
            // The box of missing characters comes first in each font.
            self.add_symbol(font, run, rotation, 0);
        }
        match self.symbols[font].numbers.get(&glyph) {
            Some(number) => (font, *number),
            None => (font, self.add_symbol(font, run, rotation, glyph)),
        }
    }

    fn add_symbol(&mut self, font: usize, run: &GlyphRun, rotation: Rotation, glyph: u32) -> usize {
        let key = GlyphKey::new(glyph, run.size, self.options.text_mode);
        let steps = self.fonts.symbol(run.face, key, rotation, |outline| {
            // Rounded towards 0, in 256ths, as cairo does it.
            let third =
                |end: f64, control: f64| f64::from((fixed(end) + 2 * fixed(control)) / 3) / 256.0;
            let path = outline.path(|x, y| rotation.apply(x, -y), third);
            let mut steps = Vec::new();
            push_steps(&mut steps, &path, 1.0);
            steps
        });
        let symbols = &mut self.symbols[font];
        let number = symbols.numbers.len();
        symbols.numbers.insert(glyph, number);
        let text = &mut symbols.text;
        let _ = write!(
            text,
            "<symbol overflow=\"visible\" id=\"glyph{font}-{number}\">\n<path style=\"stroke:none;\" d=\""
        );
        text.extend_from_slice(&steps);
        text.extend_from_slice(b"\"/>\n</symbol>\n");
        number
    }
}

/// Text as content and as the value of an attribute; XML has no control characters.
fn escaped(text: &str) -> String {
    let text: String = text
        .chars()
        .map(|character| {
            if character.is_control() {
                ' '
            } else {
                character
            }
        })
        .collect();
    quick_xml::escape::escape(text).into_owned()
}
