//! Pictures as PDF.

use crate::pictures::embed::{EM, Embedded, EmbeddedGlyph};
use crate::pictures::font::{Fonts, spelled};
use crate::pictures::layout::{self, GlyphRun, Rotation};
use crate::pictures::picture::{
    Cap, Colour, DrawError, Item, Join, Paint, Path, Picture, Point, RenderOptions, Segment,
    TextMode,
};
use crate::pictures::stroke::{MITER_LIMIT, is_visible, pattern};
use flate2::Compression;
use flate2::write::ZlibEncoder;
use pdf_writer::types::{
    ColorSpaceOperand, FunctionShadingType, LineCapStyle, LineJoinStyle, MaskType, SystemInfo,
    UnicodeCmap,
};
use pdf_writer::{Content, Filter, Finish, Name, Pdf, Rect, Ref, Str};
use std::collections::BTreeMap;
use std::io::Write;

/// Renders a picture as a PDF of one page, where a pixel is a point. The glyphs that it uses are
/// embedded; texts can be searched and copied.
///
/// # Errors
/// The picture is too large.
pub fn pdf(
    picture: &Picture,
    fonts: &Fonts,
    options: &RenderOptions,
) -> Result<Vec<u8>, DrawError> {
    let (width, height) = super::device_size(picture, options)?;
    let mut document = Document {
        fonts,
        zoom: options.zoom,
        level: options.compression.min(9),
        page: Rect::new(0.0, 0.0, width as f32, height as f32),
        pdf: Pdf::new(),
        next: 1,
        content: Content::new(),
        embedded: Embedded::default(),
        opacities: BTreeMap::new(),
        masks: Vec::new(),
        shadings: Vec::new(),
    };
    Ok(document.write(picture))
}

struct Document<'a> {
    fonts: &'a Fonts,
    zoom: f64,
    level: u32,
    page: Rect,
    pdf: Pdf,
    next: i32,
    content: Content,
    embedded: Embedded,
    /// Graphics states of opacities in 65535ths, in the order of their values.
    opacities: BTreeMap<u16, Ref>,
    /// Graphics states of gradients that differ in opacity.
    masks: Vec<Ref>,
    shadings: Vec<Ref>,
}

fn matrix(page: Rect) -> [f32; 6] {
    [1.0, 0.0, 0.0, -1.0, 0.0, page.y2]
}

/// A number that PDF can have.
fn finite(value: f64) -> f32 {
    if value.is_nan() {
        0.0
    } else {
        value.clamp(-1e6, 1e6) as f32
    }
}

/// Adds the steps of a path.
fn trace(content: &mut Content, path: &Path, zoom: f64) {
    let at = |point: Point| (finite(point.x * zoom), finite(point.y * zoom));
    let mut begun = false;
    for segment in &path.segments {
        match *segment {
            Segment::Move(to) => _ = content.move_to(at(to).0, at(to).1),
            Segment::Line(to) if begun => _ = content.line_to(at(to).0, at(to).1),
            Segment::Line(to) => _ = content.move_to(at(to).0, at(to).1),
            Segment::Curve(first, second, to) => {
                if !begun {
                    content.move_to(at(first).0, at(first).1);
                }
                let ((ax, ay), (bx, by), (x, y)) = (at(first), at(second), at(to));
                content.cubic_to(ax, ay, bx, by, x, y);
            }
            Segment::Close if begun => _ = content.close_path(),
            Segment::Close => {}
        }
        begun |= !matches!(segment, Segment::Close);
    }
}

impl Document<'_> {
    fn new_ref(&mut self) -> Ref {
        self.next += 1;
        Ref::new(self.next - 1)
    }

    fn write(&mut self, picture: &Picture) -> Vec<u8> {
        let [catalog, pages, page, content] = [(); 4].map(|()| self.new_ref());
        self.content.transform(matrix(self.page));
        let mut open = 0;
        for item in &picture.items {
            match item {
                Item::Fill { path, paint } => self.fill(path, paint, self.zoom),
                Item::Stroke { style, .. } if !is_visible(style) => {}
                Item::Stroke {
                    path,
                    colour,
                    style,
                } => {
                    let (dashes, offset) = pattern(style, self.zoom).unwrap_or_default();
                    self.opacity(colour.alpha);
                    let zoom = self.zoom;
                    self.content
                        .set_stroke_rgb(
                            finite(colour.red),
                            finite(colour.green),
                            finite(colour.blue),
                        )
                        .set_line_width(finite(style.width * zoom))
                        .set_line_cap(if style.cap == Cap::Round {
                            LineCapStyle::RoundCap
                        } else {
                            LineCapStyle::ButtCap
                        })
                        .set_line_join(if style.join == Join::Round {
                            LineJoinStyle::RoundJoin
                        } else {
                            LineJoinStyle::MiterJoin
                        })
                        .set_miter_limit(MITER_LIMIT as f32)
                        .set_dash_pattern(
                            dashes.iter().map(|length| finite(*length)),
                            finite(offset),
                        );
                    trace(&mut self.content, path, zoom);
                    self.content.stroke();
                }
                Item::Text(text) => {
                    let (runs, rotation) =
                        layout::place(self.fonts, text, self.zoom, TextMode::Normal);
                    for run in runs {
                        self.run(&run, rotation);
                    }
                }
                Item::Clip(path) => {
                    open += 1;
                    self.content.save_state();
                    trace(&mut self.content, path, self.zoom);
                    self.content.clip_nonzero().end_path();
                }
                Item::Unclip => {
                    if open > 0 {
                        open -= 1;
                        self.content.restore_state();
                    }
                }
            }
        }
        for _ in 0..open {
            self.content.restore_state();
        }
        let fonts = self.write_fonts();
        let drawn = std::mem::replace(&mut self.content, Content::new()).finish();
        self.stream(content, &drawn);
        self.pdf.catalog(catalog).pages(pages);
        self.pdf.pages(pages).kids([page]).count(1);
        let mut writer = self.pdf.page(page);
        writer.media_box(self.page).parent(pages).contents(content);
        let mut resources = writer.resources();
        let mut states = resources.ext_g_states();
        for (opacity, id) in &self.opacities {
            states.pair(Name(format!("A{opacity}").as_bytes()), *id);
        }
        for (number, id) in self.masks.iter().enumerate() {
            states.pair(Name(format!("M{number}").as_bytes()), *id);
        }
        states.finish();
        let mut shadings = resources.shadings();
        for (number, id) in self.shadings.iter().enumerate() {
            shadings.pair(Name(format!("S{number}").as_bytes()), *id);
        }
        shadings.finish();
        let mut names = resources.fonts();
        for (number, id) in fonts.iter().enumerate() {
            names.pair(Name(format!("F{number}").as_bytes()), *id);
        }
        names.finish();
        resources.finish();
        writer.finish();
        std::mem::replace(&mut self.pdf, Pdf::new()).finish()
    }

    fn stream(&mut self, id: Ref, data: &[u8]) {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(self.level));
        // Writing to memory does not fail.
        let packed = encoder
            .write_all(data)
            .and_then(|()| encoder.finish())
            .unwrap_or_default();
        self.pdf.stream(id, &packed).filter(Filter::FlateDecode);
    }

    /// Sets the opacity of what follows.
    fn opacity(&mut self, alpha: f64) {
        let opacity = (alpha.clamp(0.0, 1.0) * 65535.0).round() as u16;
        if !self.opacities.contains_key(&opacity) {
            let id = self.new_ref();
            let share = f32::from(opacity) / 65535.0;
            self.pdf
                .ext_graphics(id)
                .stroking_alpha(share)
                .non_stroking_alpha(share);
            self.opacities.insert(opacity, id);
        }
        self.content
            .set_parameters(Name(format!("A{opacity}").as_bytes()));
    }

    fn colour(&mut self, colour: Colour) {
        self.opacity(colour.alpha);
        self.content.set_fill_rgb(
            finite(colour.red),
            finite(colour.green),
            finite(colour.blue),
        );
    }

    fn fill(&mut self, path: &Path, paint: &Paint, zoom: f64) {
        match paint {
            Paint::Solid(colour) => {
                self.colour(*colour);
                trace(&mut self.content, path, zoom);
                self.content.fill_nonzero();
            }
            Paint::Linear { from, to, stops } => {
                let Some((_, first)) = stops.first() else {
                    return;
                };
                let even = stops.iter().all(|(_, colour)| colour.alpha == first.alpha);
                let ends = [from.x, from.y, to.x, to.y].map(|value| finite(value * zoom));
                let shading = self.shading(ends, stops, |colour| {
                    vec![colour.red, colour.green, colour.blue]
                });
                self.content.save_state();
                if even {
                    self.opacity(first.alpha);
                } else {
                    self.mask(ends, stops);
                }
                trace(&mut self.content, path, zoom);
                let name = format!("S{}", self.shadings.len());
                self.content
                    .clip_nonzero()
                    .end_path()
                    .shading(Name(name.as_bytes()))
                    .restore_state();
                self.shadings.push(shading);
            }
        }
    }

    /// A gradient between two points in one or three channels.
    fn shading(
        &mut self,
        ends: [f32; 4],
        stops: &[(f64, Colour)],
        channels: impl Fn(&Colour) -> Vec<f64>,
    ) -> Ref {
        let values = |colour: &Colour| {
            channels(colour)
                .into_iter()
                .map(finite)
                .collect::<Vec<f32>>()
        };
        let mut functions = Vec::new();
        let mut bounds = Vec::new();
        for pair in stops.windows(2) {
            let id = self.new_ref();
            self.pdf
                .exponential_function(id)
                .domain([0.0, 1.0])
                .c0(values(&pair[0].1))
                .c1(values(&pair[1].1))
                .n(1.0);
            functions.push(id);
            bounds.push(pair[1].0.clamp(0.0, 1.0) as f32);
        }
        bounds.pop();
        let (function, shading) = (self.new_ref(), self.new_ref());
        if functions.is_empty() {
            let only = stops
                .first()
                .map_or(Vec::new(), |(_, colour)| values(colour));
            self.pdf
                .exponential_function(function)
                .domain([0.0, 1.0])
                .c0(only.clone())
                .c1(only)
                .n(1.0);
        } else {
            let encode = functions
                .iter()
                .flat_map(|_| [0.0, 1.0])
                .collect::<Vec<f32>>();
            self.pdf
                .stitching_function(function)
                .domain([0.0, 1.0])
                .functions(functions)
                .bounds(bounds)
                .encode(encode);
        }
        let mut writer = self.pdf.function_shading(shading);
        writer.shading_type(FunctionShadingType::Axial);
        if channels(&Colour::BLACK).len() == 1 {
            writer.color_space().device_gray();
        } else {
            writer.color_space().device_rgb();
        }
        writer.coords(ends).extend([true, true]).function(function);
        writer.finish();
        shading
    }

    /// Sets the opacity of what follows to that of a gradient.
    fn mask(&mut self, ends: [f32; 4], stops: &[(f64, Colour)]) {
        let shading = self.shading(ends, stops, |colour| vec![colour.alpha]);
        let (form, state) = (self.new_ref(), self.new_ref());
        // The page is upside down already where the mask is set.
        let mut content = Content::new();
        content.shading(Name(b"S"));
        let content = content.finish();
        let mut group = self.pdf.form_xobject(form, &content);
        group.bbox(self.page);
        group.group().transparency().color_space().device_gray();
        group.resources().shadings().pair(Name(b"S"), shading);
        group.finish();
        self.pdf
            .ext_graphics(state)
            .soft_mask()
            .subtype(MaskType::Luminosity)
            .group(form);
        let name = format!("M{}", self.masks.len());
        self.content.set_parameters(Name(name.as_bytes()));
        self.masks.push(state);
    }

    fn run(&mut self, run: &GlyphRun, rotation: Rotation) {
        if let Some((path, colour)) = &run.background {
            self.fill(path, &Paint::Solid(*colour), 1.0);
        }
        self.colour(run.colour);
        self.content
            .set_fill_color_space(ColorSpaceOperand::DeviceRgb);
        self.content.set_fill_rgb(
            finite(run.colour.red),
            finite(run.colour.green),
            finite(run.colour.blue),
        );
        self.content.begin_text();
        let size = run.size as f32;
        let (cos, sin) = (rotation.cos as f32, rotation.sin as f32);
        let mut current = None;
        for glyph in &run.glyphs {
            let (font, code) =
                self.embedded
                    .code(self.fonts, run.face, glyph.glyph, glyph.character);
            if current != Some(font) {
                self.content
                    .set_font(Name(format!("F{font}").as_bytes()), size);
                current = Some(font);
            }
            // The page is upside down; glyphs are not.
            self.content
                .set_text_matrix([
                    cos,
                    -sin,
                    -sin,
                    -cos,
                    finite(glyph.origin.x),
                    finite(glyph.origin.y),
                ])
                .show(Str(&[code]));
        }
        self.content.end_text();
        for (path, colour) in &run.lines {
            self.fill(path, &Paint::Solid(*colour), 1.0);
        }
    }

    fn write_fonts(&mut self) -> Vec<Ref> {
        let fonts = std::mem::take(&mut self.embedded).fonts;
        let mut ids = Vec::new();
        for font in fonts {
            let (id, unicode) = (self.new_ref(), self.new_ref());
            let mut characters = UnicodeCmap::<u8>::new(
                Name(b"Custom"),
                SystemInfo {
                    registry: Str(b"Adobe"),
                    ordering: Str(b"UCS"),
                    supplement: 0,
                },
            );
            let mut procedures = Vec::new();
            for (code, glyph) in font.glyphs.iter().enumerate() {
                characters.pair_with_multiple(code as u8, spelled(glyph.character));
                let procedure = self.new_ref();
                let drawn = glyph_procedure(glyph);
                self.stream(procedure, &drawn);
                procedures.push(procedure);
            }
            self.stream(unicode, &characters.finish());
            let names: Vec<String> = (0..procedures.len())
                .map(|code| format!("g{code}"))
                .collect();
            let mut writer = self.pdf.type3_font(id);
            // An empty box leaves it to readers to find where outlines are.
            writer.bbox(Rect::new(0.0, 0.0, 0.0, 0.0));
            let scale = (1.0 / EM) as f32;
            writer.matrix([scale, 0.0, 0.0, scale, 0.0, 0.0]);
            writer
                .first_char(0)
                .last_char(names.len().saturating_sub(1) as u8);
            writer.widths(font.glyphs.iter().map(|glyph| glyph.advance as f32));
            writer.char_procs().pairs(
                names
                    .iter()
                    .zip(&procedures)
                    .map(|(name, id)| (Name(name.as_bytes()), *id)),
            );
            writer
                .encoding_custom()
                .differences()
                .consecutive(0, names.iter().map(|name| Name(name.as_bytes())));
            writer.resources();
            writer.to_unicode(unicode);
            ids.push(id);
        }
        ids
    }
}

fn glyph_procedure(glyph: &EmbeddedGlyph) -> Vec<u8> {
    let (mut low, mut high) = ([0.0f64; 2], [0.0f64; 2]);
    for segment in &glyph.outline.segments {
        let points: &[Point] = match segment {
            Segment::Move(to) | Segment::Line(to) => &[*to],
            Segment::Curve(first, second, to) => &[*first, *second, *to],
            Segment::Close => &[],
        };
        for point in points {
            low = [low[0].min(point.x), low[1].min(point.y)];
            high = [high[0].max(point.x), high[1].max(point.y)];
        }
    }
    let mut content = Content::new();
    content.start_shape_glyph(
        glyph.advance as f32,
        low[0] as f32,
        low[1] as f32,
        high[0] as f32,
        high[1] as f32,
    );
    if !glyph.outline.segments.is_empty() {
        trace(&mut content, &glyph.outline, 1.0);
        content.fill_nonzero();
    }
    content.finish().into_vec()
}
