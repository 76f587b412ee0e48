//! The glyphs that a document has: one procedure for each, at most 256 in a font.

use crate::pictures::font::{FaceId, Fonts};
use crate::pictures::picture::{Path, Point, TextMode};
use std::collections::HashMap;

/// Units of an em in which outlines are written.
pub(crate) const EM: f64 = 1000.0;

/// A font of a document.
pub(crate) struct EmbeddedFont {
    face: FaceId,
    pub(crate) glyphs: Vec<EmbeddedGlyph>,
}

/// A glyph in units of a 1000th of an em, y up.
pub(crate) struct EmbeddedGlyph {
    pub(crate) character: char,
    pub(crate) advance: f64,
    pub(crate) outline: Path,
}

/// All fonts of a document.
#[derive(Default)]
pub(crate) struct Embedded {
    pub(crate) fonts: Vec<EmbeddedFont>,
    known: HashMap<(FaceId, u32), (usize, u8)>,
}

impl Embedded {
    /// The font that has a glyph, and its code there.
    pub(crate) fn code(
        &mut self,
        fonts: &Fonts,
        face: FaceId,
        glyph: u32,
        character: char,
    ) -> (usize, u8) {
        if let Some(found) = self.known.get(&(face, glyph)) {
            return *found;
        }
        let font = match self
            .fonts
            .iter()
            .position(|font| font.face == face && font.glyphs.len() < 256)
        {
            Some(font) => font,
            None => {
                self.fonts.push(EmbeddedFont {
                    face,
                    glyphs: Vec::new(),
                });
                self.fonts.len() - 1
            }
        };
        let outline = fonts.outline(face, glyph, EM, TextMode::Normal);
        let glyphs = &mut self.fonts[font].glyphs;
        let code = (font, glyphs.len() as u8);
        glyphs.push(EmbeddedGlyph {
            character,
            advance: fonts.face(face).advance(glyph, EM),
            outline: outline.path(Point::new, |end, control| (end + 2.0 * control) / 3.0),
        });
        self.known.insert((face, glyph), code);
        code
    }
}
