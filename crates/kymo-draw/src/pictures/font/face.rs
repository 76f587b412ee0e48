//! One face of a font file: characters, metrics, hinted outlines.

use super::ligatures::{self, Ligature};
use super::prepared;
use crate::pictures::picture::{Path as Outline, Point};
use crate::{DrawError, TextMode};
use skrifa::instance::{LocationRef, Size};
use skrifa::metrics::{GlyphMetrics, Metrics};
use skrifa::outline::{
    DrawSettings, Engine, HintingInstance, HintingOptions, OutlinePen, SmoothMode, Target,
};
use skrifa::raw::TableProvider;
use skrifa::{FontRef, GlyphId, MetadataProvider, attribute, string::StringId};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

static BUILT_IN: &[u8] = include_bytes!("../../../fonts/DejaVuSansMono.ttf");

/// The glyphs of printable ASCII in DejaVu Sans Mono, from the space on; they have the same advance.
const BUILT_IN_ASCII: std::ops::RangeInclusive<u32> = 3..=97;

/// Maximum number of sizes for which hinting is prepared at the same time.
const MOST_SIZES: usize = 32;

/// The largest font file that is read; fonts of all of Chinese have some 20 MB.
const MAX_FILE: u64 = 128 << 20;

/// Ascent and descent of a font in pixels, rounded up as hinted fonts have them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FontMetrics {
    /// From the upper edge of a line to its baseline.
    pub ascent: f64,
    /// From the baseline to the lower edge of a line.
    pub descent: f64,
}

impl FontMetrics {
    /// Height of a line.
    pub fn height(&self) -> f64 {
        self.ascent + self.descent
    }
}

/// Which outline of a face: the glyph, its size in 64ths of a pixel, and how it is hinted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct GlyphKey {
    pub(crate) glyph: u32,
    pub(crate) size: u32,
    pub(crate) mode: TextMode,
}

impl GlyphKey {
    pub(crate) fn new(glyph: u32, pixels: f64, mode: TextMode) -> GlyphKey {
        // FreeType takes sizes in 64ths of a pixel.
        GlyphKey {
            glyph,
            size: (pixels * 64.0).round() as u32,
            mode,
        }
    }

    fn pixels(self) -> f32 {
        self.size as f32 / 64.0
    }
}

/// One step of an outline; coordinates in pixels, y up from the baseline.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Verb {
    Move([f32; 2]),
    Line([f32; 2]),
    Quad([f32; 2], [f32; 2]),
    Curve([f32; 2], [f32; 2], [f32; 2]),
    Close,
}

/// An outline.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Glyph {
    pub(crate) verbs: Vec<Verb>,
}

impl Glyph {
    /// The outline as a path of points moved by `at`. Quadratic curves become cubic ones, whose
    /// control points `third` places: it is given coordinates of an end and of the control point.
    pub(crate) fn path(
        &self,
        at: impl Fn(f64, f64) -> Point,
        third: impl Fn(f64, f64) -> f64,
    ) -> Outline {
        let at = |[x, y]: [f32; 2]| at(f64::from(x), f64::from(y));
        let mut path = Outline {
            segments: Vec::with_capacity(self.verbs.len()),
        };
        let mut from = Point::default();
        for verb in &self.verbs {
            match *verb {
                Verb::Move(to) => path.move_to(at(to).x, at(to).y),
                Verb::Line(to) => path.line_to(at(to).x, at(to).y),
                Verb::Quad(control, to) => {
                    let (control, to) = (at(control), at(to));
                    let third =
                        |end: Point| Point::new(third(end.x, control.x), third(end.y, control.y));
                    path.curve_to(third(from), third(to), to);
                }
                Verb::Curve(first, second, to) => path.curve_to(at(first), at(second), at(to)),
                Verb::Close => path.close(),
            }
            if let Verb::Move(to) | Verb::Line(to) | Verb::Quad(_, to) | Verb::Curve(_, _, to) =
                *verb
            {
                from = at(to);
            }
        }
        path
    }
}

impl Glyph {
    /// The least and the greatest x coordinate of all points, control points too; `None` if there are none.
    pub(crate) fn sides(&self) -> Option<(f32, f32)> {
        let points = self.verbs.iter().flat_map(|verb| match *verb {
            Verb::Move(to) | Verb::Line(to) => [Some(to), None, None],
            Verb::Quad(control, to) => [Some(control), Some(to), None],
            Verb::Curve(first, second, to) => [Some(first), Some(second), Some(to)],
            Verb::Close => [None; 3],
        });
        points.flatten().fold(None, |sides, [x, _]| {
            let (left, right) = sides.unwrap_or((x, x));
            Some((x.min(left), x.max(right)))
        })
    }
}

impl OutlinePen for Glyph {
    fn move_to(&mut self, x: f32, y: f32) {
        self.verbs.push(Verb::Move([x, y]));
    }
    fn line_to(&mut self, x: f32, y: f32) {
        self.verbs.push(Verb::Line([x, y]));
    }
    fn quad_to(&mut self, cx: f32, cy: f32, x: f32, y: f32) {
        self.verbs.push(Verb::Quad([cx, cy], [x, y]));
    }
    fn curve_to(&mut self, ax: f32, ay: f32, bx: f32, by: f32, x: f32, y: f32) {
        self.verbs.push(Verb::Curve([ax, ay], [bx, by], [x, y]));
    }
    fn close(&mut self) {
        self.verbs.push(Verb::Close);
    }
}

/// Lines and shifted baselines, in units of the font's size.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Decorations {
    /// Upper edge of an underline below the baseline.
    pub(crate) underline_top: f64,
    pub(crate) underline_thickness: f64,
    /// Upper edge of a strikeout above the baseline.
    pub(crate) strikeout_top: f64,
    pub(crate) strikeout_thickness: f64,
    /// How far the baseline of a subscript is below.
    pub(crate) subscript: f64,
    /// How far the baseline of a superscript is above, of a font as large as its own.
    pub(crate) superscript: f64,
    /// The sizes of subscripts and superscripts.
    pub(crate) subscript_size: f64,
    pub(crate) superscript_size: f64,
}

/// What is prepared for glyphs of a size in 64ths of a pixel; `None` if that failed.
type Hinting = HashMap<(u32, TextMode), Option<Arc<HintingInstance>>>;

/// A face of a font file.
pub(crate) struct Face {
    data: Cow<'static, [u8]>,
    index: u32,
    is_built_in: bool,
    pub(crate) family: String,
    pub(crate) bold: bool,
    pub(crate) italic: bool,
    pub(crate) units_per_em: f64,
    /// Ascent and descent in units of the font, both positive.
    pub(crate) ascent: f64,
    pub(crate) descent: f64,
    pub(crate) decorations: Decorations,
    ligatures: OnceLock<Vec<Ligature>>,
    /// Prepared hinting, by size and mode: preparing it costs as much as many glyphs.
    hinting: Mutex<Hinting>,
}

impl Face {
    /// DejaVu Sans Mono; what its tables say is written out, so that it is not read at each start.
    pub(crate) fn built_in() -> Face {
        Face {
            data: Cow::Borrowed(BUILT_IN),
            index: 0,
            is_built_in: true,
            family: super::BUILT_IN_FAMILY.to_owned(),
            bold: false,
            italic: false,
            units_per_em: 2048.0,
            ascent: 1901.0,
            descent: 483.0,
            decorations: Decorations {
                underline_top: 40.0 / 2048.0,
                underline_thickness: 90.0 / 2048.0,
                strikeout_top: 530.0 / 2048.0,
                strikeout_thickness: 102.0 / 2048.0,
                subscript: 286.0 / 2048.0,
                superscript: 983.0 / 2048.0,
                subscript_size: 1433.0 / 2048.0,
                superscript_size: 1433.0 / 2048.0,
            },
            ligatures: OnceLock::new(),
            hinting: Mutex::default(),
        }
    }

    /// Reads a face of a file.
    pub(crate) fn read(path: &Path, index: u32) -> Result<Face, DrawError> {
        let name = path.display().to_string();
        let failed = |reason: String| DrawError::Font {
            name: name.clone(),
            reason,
        };
        let file = File::open(path).map_err(|error| failed(error.to_string()))?;
        let mut data = Vec::new();
        file.take(MAX_FILE + 1)
            .read_to_end(&mut data)
            .map_err(|error| failed(error.to_string()))?;
        if data.len() as u64 > MAX_FILE {
            return Err(failed(format!(
                "the file is larger than {} MiB",
                MAX_FILE >> 20
            )));
        }
        Face::parse(Cow::Owned(data), index).map_err(failed)
    }

    /// Takes the bytes of a font file.
    pub(crate) fn parse(data: Cow<'static, [u8]>, index: u32) -> Result<Face, String> {
        let font = FontRef::from_index(&data, index).map_err(|error| error.to_string())?;
        let metrics = Metrics::new(&font, Size::unscaled(), LocationRef::default());
        if metrics.units_per_em == 0 || metrics.glyph_count == 0 {
            return Err("it has no glyphs".to_owned());
        }
        let family = [StringId::TYPOGRAPHIC_FAMILY_NAME, StringId::FAMILY_NAME]
            .into_iter()
            .find_map(|id| font.localized_strings(id).english_or_first())
            .map_or_else(
                || "unnamed".to_owned(),
                |name| name.chars().take(200).collect(),
            );
        let attributes = font.attributes();
        let units = f64::from(metrics.units_per_em);
        let (underline, strikeout) = (
            metrics.underline.unwrap_or_default(),
            metrics.strikeout.unwrap_or_default(),
        );
        // What fonts without this table have is usual.
        let scripts = font.os2().map_or([0.14, 0.48, 0.7, 0.7], |os2| {
            [
                os2.y_subscript_y_offset(),
                os2.y_superscript_y_offset(),
                os2.y_subscript_y_size(),
                os2.y_superscript_y_size(),
            ]
            .map(|distance| f64::from(distance) / units)
        });
        let decorations = Decorations {
            underline_top: f64::from(-underline.offset) / units,
            underline_thickness: f64::from(underline.thickness) / units,
            strikeout_top: f64::from(strikeout.offset) / units,
            strikeout_thickness: f64::from(strikeout.thickness) / units,
            subscript: scripts[0],
            superscript: scripts[1],
            subscript_size: scripts[2].clamp(0.1, 2.0),
            superscript_size: scripts[3].clamp(0.1, 2.0),
        };
        Ok(Face {
            index,
            is_built_in: false,
            family,
            bold: attributes.weight.value() >= 600.0,
            italic: attributes.style != attribute::Style::Normal,
            units_per_em: units,
            decorations,
            ascent: f64::from(metrics.ascent),
            descent: f64::from(-metrics.descent),
            ligatures: OnceLock::new(),
            hinting: Mutex::default(),
            data,
        })
    }

    /// The family in lower case as programs see it that know four styles of each: `dejavu sans condensed`.
    pub(crate) fn second_family(&self) -> Option<String> {
        let font = self.font()?;
        let name = font
            .localized_strings(StringId::FAMILY_NAME)
            .english_or_first()?;
        Some(name.chars().take(200).collect::<String>().to_lowercase())
    }

    /// Bytes of the file.
    pub(crate) fn size(&self) -> usize {
        self.data.len()
    }

    pub(crate) fn font(&self) -> Option<FontRef<'_>> {
        FontRef::from_index(&self.data, self.index).ok()
    }

    /// The glyph of a character; `None` if the face lacks it.
    pub(crate) fn glyph(&self, character: char) -> Option<u32> {
        if self.is_built_in && matches!(character, ' '..='~') {
            return Some(u32::from(character) - u32::from(' ') + BUILT_IN_ASCII.start());
        }
        let glyph = self.font()?.charmap().map(character)?;
        (glyph.to_u32() != 0).then_some(glyph.to_u32())
    }

    /// Advance of a glyph in pixels, not rounded.
    pub(crate) fn advance(&self, glyph: u32, pixels: f64) -> f64 {
        if self.is_built_in && BUILT_IN_ASCII.contains(&glyph) {
            return 1233.0 * pixels / self.units_per_em;
        }
        let advance = self.font().and_then(|font| {
            GlyphMetrics::new(&font, Size::unscaled(), LocationRef::default())
                .advance_width(GlyphId::new(glyph))
        });
        f64::from(advance.unwrap_or(0.0)) * pixels / self.units_per_em
    }

    /// How much less room a glyph takes before another one, in pixels: its kerning.
    pub(crate) fn kerning(&self, glyph: u32, next: u32, pixels: f64) -> f64 {
        // The built-in font has none.
        if self.is_built_in {
            return 0.0;
        }
        let kerning = self
            .font()
            .map(|font| super::kerning::kerning(&font, GlyphId::new(glyph), GlyphId::new(next)));
        kerning.unwrap_or(0.0) * pixels / self.units_per_em
    }

    /// What several of its glyphs become.
    pub(crate) fn ligatures(&self) -> &[Ligature] {
        // The built-in font has none.
        if self.is_built_in {
            return &[];
        }
        let read = || self.font().as_ref().map(ligatures::ligatures);
        self.ligatures.get_or_init(|| read().unwrap_or_default())
    }

    /// Ascent and descent at a size in pixels.
    pub(crate) fn metrics(&self, pixels: f64) -> FontMetrics {
        let scale = pixels / self.units_per_em;
        FontMetrics {
            ascent: (self.ascent * scale).ceil(),
            descent: (self.descent * scale).ceil(),
        }
    }

    /// Whether glyphs of a size are hinted. Small ones of DejaVu and Vera are not: the configuration of
    /// fontconfig that comes with these fonts says so, and rrdtool follows it.
    fn is_hinted(&self, key: GlyphKey) -> bool {
        let instructed_for_small = ["DejaVu", "Bitstream Vera"];
        let is_small = key.pixels() < 7.5;
        !(is_small
            && instructed_for_small
                .iter()
                .any(|name| self.family.starts_with(name)))
    }

    /// The outline of a glyph; empty if it is damaged.
    pub(crate) fn outline(&self, key: GlyphKey) -> Glyph {
        match self.is_built_in.then(|| prepared::outline(key)).flatten() {
            Some(glyph) => glyph,
            None => self.hinted_outline(key),
        }
    }

    fn hinted_outline(&self, key: GlyphKey) -> Glyph {
        let mut glyph = Glyph::default();
        let Some(font) = self.font() else {
            return glyph;
        };
        let outlines = font.outline_glyphs();
        let Some(outline) = outlines.get(GlyphId::new(key.glyph)) else {
            return glyph;
        };
        let size = Size::new(key.pixels());
        if !self.is_hinted(key) {
            let unhinted = DrawSettings::unhinted(size, LocationRef::default());
            if outline.draw(unhinted, &mut glyph).is_err() {
                glyph.verbs.clear();
            }
            return glyph;
        }
        let mut hinting = self.hinting.lock().unwrap_or_else(PoisonError::into_inner);
        if hinting.len() >= MOST_SIZES {
            hinting.clear();
        }
        let instance = hinting.entry((key.size, key.mode)).or_insert_with(|| {
            let (engine, target) = match key.mode {
                TextMode::Normal => (Engine::AutoFallback, Target::from(SmoothMode::Normal)),
                TextMode::Light => (Engine::Auto(None), Target::from(SmoothMode::Light)),
                TextMode::Mono => (Engine::AutoFallback, Target::Mono),
            };
            HintingInstance::new(
                &outlines,
                size,
                LocationRef::default(),
                HintingOptions { engine, target },
            )
            .ok()
            .map(Arc::new)
        });
        let hinted = instance.as_ref().is_some_and(|instance| {
            outline
                .draw(DrawSettings::hinted(instance, false), &mut glyph)
                .is_ok()
        });
        if !hinted {
            glyph.verbs.clear();
            if outline
                .draw(
                    DrawSettings::unhinted(size, LocationRef::default()),
                    &mut glyph,
                )
                .is_err()
            {
                glyph.verbs.clear();
            }
        }
        glyph
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If `KYMO_WRITE_GLYPHS` is set in the environment, the file is rewritten.
    #[test]
    fn prepared_outlines_are_those_of_the_font() {
        let face = Face::built_in();
        let glyphs = prepared::SIZES.into_iter().flat_map(|size| {
            prepared::GLYPHS.map(move |glyph| GlyphKey {
                glyph,
                size,
                mode: TextMode::Normal,
            })
        });
        let glyphs: Vec<_> = glyphs.map(|key| (key, face.hinted_outline(key))).collect();
        if std::env::var_os("KYMO_WRITE_GLYPHS").is_some() {
            let outlines: Vec<_> = glyphs.iter().map(|(_, glyph)| glyph).collect();
            let file = concat!(env!("CARGO_MANIFEST_DIR"), "/fonts/DejaVuSansMono.outlines");
            std::fs::write(file, prepared::write(&outlines)).unwrap();
            return;
        }
        for (key, glyph) in glyphs {
            assert_eq!(face.outline(key), glyph, "{key:?}");
        }
    }

    #[test]
    fn what_is_written_out_of_the_built_in_font_is_true() {
        let (known, read) = (Face::built_in(), Face::parse(BUILT_IN.into(), 0).unwrap());
        for character in ' '..='~' {
            assert_eq!(known.glyph(character), read.glyph(character), "{character}");
        }
        let glyphs = read.font().unwrap().maxp().unwrap().num_glyphs();
        for glyph in 0..u32::from(glyphs) {
            assert_eq!(
                known.advance(glyph, 10.0),
                read.advance(glyph, 10.0),
                "{glyph}"
            );
        }
        assert_eq!(known.decorations, read.decorations);
        assert_eq!((known.ascent, known.descent), (read.ascent, read.descent));
    }
}
