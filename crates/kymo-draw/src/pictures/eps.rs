//! Pictures as encapsulated PostScript.

use crate::pictures::embed::Embedded;
use crate::pictures::font::Fonts;
use crate::pictures::layout::{self, GlyphRun, Rotation};
use crate::pictures::number::Number;
use crate::pictures::picture::{
    Cap, Colour, DrawError, Item, Join, Paint, Path, Picture, Point, RenderOptions, Segment,
    TextMode,
};
use crate::pictures::stroke::{MITER_LIMIT, is_visible, pattern};
use std::fmt::Write;

/// Renders a picture as encapsulated PostScript of level 3, where a pixel is a point. Glyphs are
/// embedded as outlines.
///
/// PostScript has no transparency: colours are mixed with white by their opacity.
///
/// # Errors
/// The picture is too large.
pub fn eps(
    picture: &Picture,
    fonts: &Fonts,
    options: &RenderOptions,
) -> Result<Vec<u8>, DrawError> {
    let (width, height) = super::device_size(picture, options)?;
    let mut eps = Eps {
        fonts,
        zoom: options.zoom,
        embedded: Embedded::default(),
        body: String::new(),
    };
    eps.items(&picture.items);
    // Short names keep the file small: m, l and c build paths, G draws a glyph.
    let mut out = format!(
        "%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 {} {}\n%%HiResBoundingBox: 0 0 {} {}\n%%LanguageLevel: 3\n\
         %%EndComments\n%%BeginProlog\n64 dict begin\n/m {{moveto}} bind def\n/l {{lineto}} bind def\n\
         /c {{curveto}} bind def\n/h {{closepath}} bind def\n/q {{gsave}} bind def\n/Q {{grestore}} bind def\n\
         /k {{setrgbcolor}} bind def\n/G {{gsave 6 array astore concat newpath exec fill grestore}} bind def\n",
        width.ceil(),
        height.ceil(),
        Number(width),
        Number(height)
    );
    for (font, glyphs) in eps.embedded.fonts.iter().enumerate() {
        for (code, glyph) in glyphs.glyphs.iter().enumerate() {
            let _ = writeln!(
                out,
                "/g{font}_{code} {{{}}} bind def",
                Steps(&glyph.outline, 1.0)
            );
        }
    }
    let _ = write!(
        out,
        "%%EndProlog\n%%Page: 1 1\nq 1 -1 scale 0 {} translate\n{}Q end\nshowpage\n%%EOF\n",
        Number(-height),
        eps.body
    );
    Ok(out.into_bytes())
}

struct Eps<'a> {
    fonts: &'a Fonts,
    zoom: f64,
    embedded: Embedded,
    body: String,
}

/// A path's steps, scaled.
struct Steps<'a>(&'a Path, f64);

impl std::fmt::Display for Steps<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let number = |value: f64| Number((value * self.1 * 1000.0).round() / 1000.0);
        let mut begun = false;
        for segment in &self.0.segments {
            let (points, letter): (&[Point], char) = match segment {
                Segment::Move(to) => (&[*to], 'm'),
                Segment::Line(to) => (&[*to], if begun { 'l' } else { 'm' }),
                Segment::Curve(first, second, to) => {
                    if !begun {
                        write!(out, "{} {} m ", number(first.x), number(first.y))?;
                    }
                    (&[*first, *second, *to], 'c')
                }
                Segment::Close => (&[], 'h'),
            };
            begun |= letter != 'h';
            for point in points {
                write!(out, "{} {} ", number(point.x), number(point.y))?;
            }
            if begun {
                write!(out, "{letter} ")?;
            }
        }
        Ok(())
    }
}

/// A colour on white paper.
struct Rgb(Colour);

impl std::fmt::Display for Rgb {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let alpha = self.0.alpha.clamp(0.0, 1.0);
        let mixed = |part: f64| Number(1.0 - alpha * (1.0 - part.clamp(0.0, 1.0)));
        write!(
            out,
            "{} {} {}",
            mixed(self.0.red),
            mixed(self.0.green),
            mixed(self.0.blue)
        )
    }
}

// Writing to a string does not fail.
impl Eps<'_> {
    fn items(&mut self, items: &[Item]) {
        let zoom = self.zoom;
        let mut open = 0;
        for item in items {
            match item {
                Item::Fill { path, paint } => self.fill(path, paint, zoom),
                // What is transparent would hide what is below it.
                Item::Stroke { colour, style, .. } if colour.alpha <= 0.0 || !is_visible(style) => {
                }
                Item::Stroke {
                    path,
                    colour,
                    style,
                } => {
                    let (dashes, offset) = pattern(style, zoom).unwrap_or_default();
                    let dashes: Vec<String> = dashes
                        .iter()
                        .map(|length| Number(*length).to_string())
                        .collect();
                    let _ = writeln!(
                        self.body,
                        "newpath {}{} k {} setlinewidth {} setlinecap {} setlinejoin {MITER_LIMIT} setmiterlimit [{}] {} setdash stroke",
                        Steps(path, zoom),
                        Rgb(*colour),
                        Number(style.width * zoom),
                        u8::from(style.cap == Cap::Round),
                        u8::from(style.join == Join::Round),
                        dashes.join(" "),
                        Number(offset)
                    );
                }
                Item::Text(text) => {
                    let (runs, rotation) = layout::place(self.fonts, text, zoom, TextMode::Normal);
                    for run in runs {
                        self.run(&run, rotation);
                    }
                }
                Item::Clip(path) => {
                    open += 1;
                    let _ = writeln!(self.body, "q newpath {}clip", Steps(path, zoom));
                }
                Item::Unclip => {
                    if open > 0 {
                        open -= 1;
                        self.body.push_str("Q\n");
                    }
                }
            }
        }
        self.body.push_str(&"Q\n".repeat(open));
    }

    fn fill(&mut self, path: &Path, paint: &Paint, zoom: f64) {
        match paint {
            Paint::Solid(colour) if colour.alpha <= 0.0 => {}
            Paint::Solid(colour) => {
                let _ = writeln!(
                    self.body,
                    "newpath {}{} k fill",
                    Steps(path, zoom),
                    Rgb(*colour)
                );
            }
            Paint::Linear { from, to, stops } => {
                let [x1, y1, x2, y2] =
                    [from.x, from.y, to.x, to.y].map(|value| Number(value * zoom));
                let mut functions = String::new();
                let mut bounds = String::new();
                let parts = stops.windows(2).count();
                for (number, pair) in stops.windows(2).enumerate() {
                    let (first, second) = (Rgb(pair[0].1), Rgb(pair[1].1));
                    let _ = write!(
                        functions,
                        "<</FunctionType 2/Domain[0 1]/C0[{first}]/C1[{second}]/N 1>>"
                    );
                    if number + 1 < parts {
                        let _ = write!(bounds, "{} ", Number(pair[1].0.clamp(0.0, 1.0)));
                    }
                }
                let _ = writeln!(
                    self.body,
                    "q newpath {}clip <</ShadingType 2/ColorSpace/DeviceRGB/Coords[{x1} {y1} {x2} {y2}]/Extend[true true]\
                     /Function <</FunctionType 3/Domain[0 1]/Functions[{functions}]/Bounds[{bounds}]/Encode[{}]>>>> shfill Q",
                    Steps(path, zoom),
                    "0 1 ".repeat(parts)
                );
            }
        }
    }

    fn run(&mut self, run: &GlyphRun, rotation: Rotation) {
        if let Some((path, colour)) = &run.background {
            self.fill(path, &Paint::Solid(*colour), 1.0);
        }
        let _ = writeln!(self.body, "{} k", Rgb(run.colour));
        let scale = run.size / crate::pictures::embed::EM;
        let (cos, sin) = (Number(rotation.cos * scale), Number(-rotation.sin * scale));
        let down = Number(-rotation.cos * scale);
        for glyph in &run.glyphs {
            let (font, code) =
                self.embedded
                    .code(self.fonts, run.face, glyph.glyph, glyph.character);
            if self.embedded.fonts[font].glyphs[usize::from(code)]
                .outline
                .segments
                .is_empty()
            {
                continue;
            }
            let (x, y) = (Number(glyph.origin.x), Number(glyph.origin.y));
            let _ = writeln!(
                self.body,
                "/g{font}_{code} load {cos} {sin} {sin} {down} {x} {y} G"
            );
        }
        for (path, colour) in &run.lines {
            self.fill(path, &Paint::Solid(*colour), 1.0);
        }
    }
}
