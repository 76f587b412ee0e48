//! Fonts: their names, files, metrics and glyphs.

mod face;
mod features;
mod installed;
mod kerning;
mod ligatures;
mod prepared;

pub use face::FontMetrics;
pub(crate) use face::{Face, Glyph, GlyphKey, Verb};
pub(crate) use ligatures::spelled;

use crate::pictures::glyphs::{self, Mask};
use crate::pictures::layout::Rotation;
use crate::pictures::png::Scratch;
use crate::{DrawError, TextMode};
use foldhash::fast::RandomState;
use kymo_text::is_invisible;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The family that is built in.
pub const BUILT_IN_FAMILY: &str = "DejaVu Sans Mono";

/// Pixels of a point: rrdtool's resolution is 100 dots per inch.
pub const PIXELS_PER_POINT: f64 = 100.0 / 72.0;

/// The largest font, in points. Larger sizes are drawn at this one.
const MAX_POINTS: f64 = 1000.0;

/// A font: a family, a style and a size.
#[derive(Debug, Clone, PartialEq)]
pub struct Font {
    /// Names of families separated by commas, the preferred one first; empty for the default font.
    pub family: String,
    /// Bold.
    pub bold: bool,
    /// Italic or oblique.
    pub italic: bool,
    /// Size in points of 100/72 pixels.
    pub size: f64,
}

impl Font {
    /// The default font at a size in points.
    pub const fn new(size: f64) -> Font {
        Font {
            family: String::new(),
            bold: false,
            italic: false,
            size,
        }
    }

    /// Reads a Pango font description: names of families, then words of style, then a size in
    /// points, each optional: `Sans Bold 9`. `size` is used if the description has none.
    ///
    /// ```
    /// let font = kymo_draw::Font::parse("DejaVu Sans,Arial Bold Italic 9.5", 8.0);
    /// assert_eq!(font.family, "DejaVu Sans,Arial");
    /// assert!(font.bold && font.italic);
    /// assert_eq!(font.size, 9.5);
    /// ```
    pub fn parse(description: &str, size: f64) -> Font {
        let mut font = Font::new(size);
        let mut words: Vec<&str> = description.split_whitespace().collect();
        if let Some(points) = words.last().and_then(|word| word.parse::<f64>().ok()) {
            if points.is_finite() && points > 0.0 {
                font.size = points;
            }
            words.pop();
        }
        while let Some(word) = words.last() {
            match word.trim_end_matches(',').to_ascii_lowercase().as_str() {
                "bold" | "semi-bold" | "ultra-bold" | "heavy" | "black" => font.bold = true,
                "italic" | "oblique" => font.italic = true,
                "normal" | "regular" | "roman" | "medium" | "book" | "light" => {}
                _ => break,
            }
            words.pop();
        }
        font.family = words.join(" ").trim_end_matches(',').to_owned();
        font
    }

    /// The size in pixels.
    pub(crate) fn pixels(&self) -> f64 {
        if self.size.is_finite() {
            self.size.clamp(0.0, MAX_POINTS) * PIXELS_PER_POINT
        } else {
            0.0
        }
    }
}

/// Number of a face in [`Fonts`].
pub(crate) type FaceId = usize;

/// A glyph of a face.
pub(crate) type FaceGlyph = (FaceId, u32);

/// A glyph of a face, and how it is rotated.
type Turned = (FaceId, GlyphKey, [u64; 2]);

/// The fonts that texts may use: the built-in one, files that were added, and installed fonts.
///
/// Directories of installed fonts are scanned when a family is asked for that is not known, or a
/// character that the font lacks.
///
/// Faces, outlines and pixels of glyphs are kept, so a program that renders many pictures should use one
/// value for all of them, and call [`Fonts::trim`] occasionally.
pub struct Fonts {
    state: Mutex<State>,
}

impl std::fmt::Debug for Fonts {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let faces = self.state().faces.len();
        out.debug_struct("Fonts")
            .field("faces", &faces)
            .finish_non_exhaustive()
    }
}

/// What was found for a list of families.
struct Found {
    face: FaceId,
    /// Families that are missing.
    warnings: Vec<String>,
}

/// [`Fonts::trim`] keeps at most this many glyphs.
const MOST_GLYPHS: usize = 1 << 14;
/// [`Fonts::trim`] keeps at most this many lists of families and fallbacks.
const MOST_NAMES: usize = 1 << 10;
/// [`Fonts::trim`] keeps at most this many bytes of font files.
const MOST_BYTES: usize = 64 << 20;

#[derive(Default)]
struct State {
    faces: Vec<Arc<Face>>,
    /// Faces that were added as files: family in lower case, bold, italic.
    added: Vec<(String, bool, bool, FaceId)>,
    installed: Option<installed::Installed>,
    /// Faces of installed files, and their numbers there.
    files: HashMap<(PathBuf, u32), FaceId>,
    /// What was found for a family list, bold, italic.
    found: HashMap<(String, bool, bool), Found>,
    /// Which face has a character that another face lacks.
    fallbacks: HashMap<char, Option<FaceId>>,
    glyphs: HashMap<(FaceId, GlyphKey), Arc<Glyph>, RandomState>,
    masks: HashMap<Turned, Option<Arc<Mask>>, RandomState>,
    /// Outlines as SVG has them.
    symbols: HashMap<Turned, Arc<[u8]>, RandomState>,
    warnings: BTreeSet<String>,
    /// Memory for the next PNG.
    scratch: Scratch,
}

impl Default for Fonts {
    fn default() -> Fonts {
        Fonts::new()
    }
}

impl Fonts {
    /// The built-in font, and installed ones when they are asked for.
    pub fn new() -> Fonts {
        let state = State {
            faces: vec![Arc::new(Face::built_in())],
            ..State::default()
        };
        Fonts {
            state: Mutex::new(state),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a font file (TrueType or OpenType, or the first face of a collection) and returns the
    /// name of its family.
    ///
    /// # Errors
    /// The file cannot be read or is not a font.
    pub fn add_file(&self, path: &Path) -> Result<String, DrawError> {
        Ok(self.add_face(Face::read(path, 0)?))
    }

    /// Adds a font that is in memory, as [`Fonts::add_file`] does.
    ///
    /// # Errors
    /// The data are not a font.
    pub fn add_data(&self, data: Vec<u8>) -> Result<String, DrawError> {
        let face = Face::parse(data.into(), 0);
        let failed = |reason| DrawError::Font {
            name: "in memory".to_owned(),
            reason,
        };
        Ok(self.add_face(face.map_err(failed)?))
    }

    fn add_face(&self, face: Face) -> String {
        let family = face.family.clone();
        let state = &mut *self.state();
        let id = state.add(face);
        let face = &state.faces[id];
        state
            .added
            .push((family.to_lowercase(), face.bold, face.italic, id));
        state.found.clear();
        family
    }

    /// What went wrong with fonts since the last call, each once: families that are not installed,
    /// characters that no font has.
    pub fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut self.state().warnings)
            .into_iter()
            .collect()
    }

    /// Forgets what was read and rendered if that is much: names of very many fonts, or a lot of glyphs. Fonts
    /// that were added stay. What a picture needs next is read again.
    pub fn trim(&self) {
        let state = &mut *self.state();
        let glyphs = state.glyphs.len() + state.masks.len() + state.symbols.len();
        let names = state.found.len() + state.fallbacks.len();
        let read = state.files.values().map(|id| state.faces[*id].size());
        if glyphs <= MOST_GLYPHS && names <= MOST_NAMES && read.sum::<usize>() <= MOST_BYTES {
            return;
        }
        let added = std::mem::take(&mut state.added);
        let faces = std::mem::take(&mut state.faces);
        *state = State {
            faces: vec![Arc::new(Face::built_in())],
            installed: state.installed.take(),
            warnings: std::mem::take(&mut state.warnings),
            scratch: std::mem::take(&mut state.scratch),
            ..State::default()
        };
        for (family, bold, italic, id) in added {
            state.faces.push(Arc::clone(&faces[id]));
            let id = state.faces.len() - 1;
            state.added.push((family, bold, italic, id));
        }
    }

    /// Ascent and descent of a font at zoom 1.
    pub fn metrics(&self, font: &Font) -> FontMetrics {
        let id = self.find(font);
        self.face(id).metrics(font.pixels())
    }

    /// Width in pixels of one line of plain text, at zoom 1.
    pub fn text_width(&self, font: &Font, text: &str) -> f64 {
        let face = self.find(font);
        let glyphs = self.glyphs_of(face, text.chars());
        self.advances(&glyphs, font.pixels()).iter().sum()
    }

    /// How far from each glyph the next one is, in whole pixels as pango has them.
    pub(crate) fn advances(&self, glyphs: &[(FaceGlyph, char)], pixels: f64) -> Vec<f64> {
        let faces = &self.state().faces;
        let advance = |(place, &((id, glyph), _)): (usize, &(FaceGlyph, char))| {
            let face = &faces[id];
            let kerning = match glyphs.get(place + 1) {
                Some(&((other, next), _)) if other == id => face.kerning(glyph, next, pixels),
                _ => 0.0,
            };
            (face.advance(glyph, pixels) + kerning).round()
        };
        glyphs.iter().enumerate().map(advance).collect()
    }

    /// Memory of the picture before, to be given back.
    pub(crate) fn take_scratch(&self) -> Scratch {
        std::mem::take(&mut self.state().scratch)
    }

    pub(crate) fn keep_scratch(&self, mut scratch: Scratch) {
        scratch.trim();
        self.state().scratch = scratch;
    }

    pub(crate) fn warn(&self, warning: String) {
        self.state().warnings.insert(warning);
    }

    pub(crate) fn face(&self, id: FaceId) -> Arc<Face> {
        Arc::clone(&self.state().faces[id])
    }

    /// The face for a font; the built-in one if nothing better is found.
    pub(crate) fn find(&self, font: &Font) -> FaceId {
        let state = &mut *self.state();
        let families = &font.family;
        if families.is_empty() && !font.bold && !font.italic {
            return 0;
        }
        let key = (families.clone(), font.bold, font.italic);
        let found = match state.found.get(&key) {
            Some(found) => found,
            None => {
                let found = state.search(&key.0, font.bold, font.italic);
                state.found.entry(key).or_insert(found)
            }
        };
        // Each picture is warned.
        state.warnings.extend(found.warnings.iter().cloned());
        found.face
    }

    /// The glyphs of characters with what they stand for; ligatures are one glyph.
    pub(crate) fn glyphs_of(
        &self,
        id: FaceId,
        text: impl Iterator<Item = char>,
    ) -> Vec<(FaceGlyph, char)> {
        let (glyphs, face) = {
            let state = &mut *self.state();
            let glyphs = text.map(|character| (state.glyph_of(id, character), character));
            (glyphs.collect::<Vec<_>>(), Arc::clone(&state.faces[id]))
        };
        if face.ligatures().is_empty() {
            return glyphs;
        }
        let mut joined = Vec::with_capacity(glyphs.len());
        let mut rest = &glyphs[..];
        while let Some((first, after)) = rest.split_first() {
            let ligature = face.ligatures().iter().find(|ligature| {
                let parts = ligature.glyphs.iter().map(|glyph| (id, *glyph));
                let begin = rest.get(..ligature.glyphs.len());
                begin.is_some_and(|begin| parts.eq(begin.iter().map(|(glyph, _)| *glyph)))
            });
            match ligature {
                Some(ligature) => {
                    joined.push(((id, ligature.glyph), ligature.character));
                    rest = &rest[ligature.glyphs.len()..];
                }
                None => {
                    joined.push(*first);
                    rest = after;
                }
            }
        }
        joined
    }

    /// The hinted outline of a glyph.
    pub(crate) fn outline(
        &self,
        face: FaceId,
        glyph: u32,
        pixels: f64,
        mode: TextMode,
    ) -> Arc<Glyph> {
        self.state()
            .outline(face, GlyphKey::new(glyph, pixels, mode))
    }

    /// The pixels of a glyph; `None` if it has none.
    pub(crate) fn mask(
        &self,
        face: FaceId,
        key: GlyphKey,
        rotation: Rotation,
    ) -> Option<Arc<Mask>> {
        let state = &mut *self.state();
        let turned = (face, key, rotation.bits());
        if let Some(mask) = state.masks.get(&turned) {
            return mask.clone();
        }
        let outline = state.outline(face, key);
        let mask = glyphs::mask(&outline, rotation, key.mode != TextMode::Mono).map(Arc::new);
        state.masks.insert(turned, mask.clone());
        mask
    }

    /// The outline of a glyph as SVG has it, which `write` makes.
    pub(crate) fn symbol(
        &self,
        face: FaceId,
        key: GlyphKey,
        rotation: Rotation,
        write: impl FnOnce(&Glyph) -> Vec<u8>,
    ) -> Arc<[u8]> {
        let state = &mut *self.state();
        let turned = (face, key, rotation.bits());
        if let Some(symbol) = state.symbols.get(&turned) {
            return Arc::clone(symbol);
        }
        let outline = state.outline(face, key);
        let symbol: Arc<[u8]> = write(&outline).into();
        state.symbols.insert(turned, Arc::clone(&symbol));
        symbol
    }
}

impl State {
    fn add(&mut self, face: Face) -> FaceId {
        self.faces.push(Arc::new(face));
        self.faces.len() - 1
    }

    /// Reads a face of an installed file, once.
    fn read(&mut self, path: PathBuf, index: u32) -> Result<FaceId, DrawError> {
        if let Some(id) = self.files.get(&(path.clone(), index)) {
            return Ok(*id);
        }
        let face = Face::read(&path, index)?;
        let id = self.add(face);
        self.files.insert((path, index), id);
        Ok(id)
    }

    fn outline(&mut self, face: FaceId, key: GlyphKey) -> Arc<Glyph> {
        let faces = &self.faces;
        let outline = self.glyphs.entry((face, key));
        Arc::clone(outline.or_insert_with(|| Arc::new(faces[face].outline(key))))
    }

    /// The glyph of a character, of another face if the given one lacks it.
    fn glyph_of(&mut self, id: FaceId, character: char) -> FaceGlyph {
        if let Some(glyph) = self.faces[id].glyph(character) {
            return (id, glyph);
        }
        if is_invisible(character) {
            return (id, self.faces[id].glyph(' ').unwrap_or(0));
        }
        let fallback = match self.fallbacks.get(&character) {
            Some(found) => *found,
            None => {
                let found = self.search_character(character);
                self.fallbacks.insert(character, found);
                found
            }
        };
        match fallback.and_then(|other| Some((other, self.faces[other].glyph(character)?))) {
            Some(found) => found,
            None => {
                self.warnings.insert(format!(
                    "no installed font has the character `{character}` (U+{:04X}); its place is marked by a box",
                    u32::from(character)
                ));
                (id, 0)
            }
        }
    }

    fn search(&mut self, families: &str, bold: bool, italic: bool) -> Found {
        let mut warnings = Vec::new();
        let face = self.search_face(families, bold, italic, &mut warnings);
        Found { face, warnings }
    }

    fn search_face(
        &mut self,
        families: &str,
        bold: bool,
        italic: bool,
        warnings: &mut Vec<String>,
    ) -> FaceId {
        let names = families
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty());
        for name in names.clone() {
            if let Some(face) = self.named(name, bold, italic, warnings) {
                return face;
            }
        }
        // The default font is the built-in family.
        let others = match names.clone().next() {
            Some(_) => substitutes(names.clone()),
            None => &[],
        };
        let others = others.iter().chain([&BUILT_IN_FAMILY]);
        for other in others {
            if let Some(face) = self.named(other, bold, italic, warnings) {
                if let Some(first) = names.clone().next() {
                    warnings.push(format!(
                        "font `{first}` is not installed; texts use `{other}`"
                    ));
                }
                return face;
            }
        }
        0
    }

    /// The face of a family that was added, is built in, or is installed.
    fn named(
        &mut self,
        name: &str,
        bold: bool,
        italic: bool,
        warnings: &mut Vec<String>,
    ) -> Option<FaceId> {
        let lower = name.to_lowercase();
        let styles = [
            (bold, italic),
            (bold, false),
            (false, italic),
            (false, false),
        ];
        for (bold, italic) in styles {
            let same = |added: &&(String, bool, bool, FaceId)| {
                added.0 == lower && (added.1, added.2) == (bold, italic)
            };
            if let Some(added) = self.added.iter().find(same) {
                return Some(added.3);
            }
        }
        let generic = matches!(lower.as_str(), "mono" | "monospace" | "dejavu sans mono");
        if generic && !bold && !italic {
            return Some(0);
        }
        match self.installed().find(name, bold, italic) {
            Some((path, index)) => match self.read(path, index) {
                Ok(face) => Some(face),
                Err(error) => {
                    warnings.push(error.to_string());
                    None
                }
            },
            None => generic.then_some(0),
        }
    }

    fn search_character(&mut self, character: char) -> Option<FaceId> {
        let known = (0..self.faces.len()).find(|id| self.faces[*id].glyph(character).is_some());
        if known.is_some() {
            return known;
        }
        let (path, index) = self.installed().with_character(character)?;
        self.read(path, index).ok()
    }

    fn installed(&mut self) -> &installed::Installed {
        self.installed
            .get_or_insert_with(installed::Installed::scan)
    }
}

/// What is used in the place of families that are not installed, in this order, as the configuration of fontconfig
/// has it: a font as wide, then one of the same kind, and a sans-serif one for families that it does not know.
fn substitutes<'a>(names: impl Iterator<Item = &'a str>) -> &'static [&'static str] {
    const SANS: [&str; 3] = ["Liberation Sans", "Arimo", "DejaVu Sans"];
    const SERIF: [&str; 3] = ["Liberation Serif", "Tinos", "DejaVu Serif"];
    const MONO: [&str; 3] = ["Liberation Mono", "Cousine", BUILT_IN_FAMILY];
    let mut known = names.filter_map(|name| match name.to_lowercase().as_str() {
        "arial" | "helvetica" => Some(&SANS[..]),
        "times" | "times new roman" => Some(&SERIF[..]),
        "courier" | "courier new" => Some(&MONO[..]),
        "bitstream vera serif"
        | "cambria"
        | "constantia"
        | "elephant"
        | "georgia"
        | "luxi serif"
        | "new century schoolbook"
        | "palatino"
        | "palatino linotype" => Some(&SERIF[2..]),
        "andale mono"
        | "bitstream vera sans mono"
        | "consolas"
        | "inconsolata"
        | "luxi mono"
        | "terminal" => Some(&MONO[2..]),
        "bitstream vera sans"
        | "calibri"
        | "lucida sans unicode"
        | "luxi sans"
        | "tahoma"
        | "trebuchet ms"
        | "verdana" => Some(&SANS[2..]),
        _ => None,
    });
    known.next().unwrap_or(&SANS[2..])
}
