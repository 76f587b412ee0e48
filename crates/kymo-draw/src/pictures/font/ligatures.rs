//! Several characters that are one glyph: `fi`, `ffl` and others that Unicode knows.

use skrifa::charmap::Charmap;
use skrifa::raw::TableProvider;
use skrifa::raw::tables::gsub::{Gsub, LigatureSubst, SubstitutionSubtables};
use skrifa::{FontRef, GlyphId, MetadataProvider};

use super::features;

/// Ligatures and what they are of, longer ones before those that they begin with.
const KNOWN: [(char, &str); 6] = [
    ('\u{fb03}', "ffi"),
    ('\u{fb04}', "ffl"),
    ('\u{fb00}', "ff"),
    ('\u{fb01}', "fi"),
    ('\u{fb02}', "fl"),
    ('\u{fb06}', "st"),
];

/// A ligature of a face.
pub(crate) struct Ligature {
    /// The glyphs that it stands for.
    pub(crate) glyphs: Vec<u32>,
    pub(crate) glyph: u32,
    /// The character that Unicode has for it.
    pub(crate) character: char,
}

/// The ligatures that the features of a font which are always on make of Latin text.
pub(super) fn ligatures(font: &FontRef<'_>) -> Vec<Ligature> {
    let Ok(table) = font.gsub() else {
        return Vec::new();
    };
    let lookups = lookups(&table).unwrap_or_default();
    let charmap = font.charmap();
    let known = KNOWN.iter().filter_map(|(character, text)| {
        let glyphs = mapped(&charmap, text)?;
        let glyph = lookups
            .iter()
            .find_map(|lookup| joined(&table, *lookup, &glyphs))?;
        Some(Ligature {
            glyphs: glyphs.iter().map(|glyph| glyph.to_u32()).collect(),
            glyph: glyph.to_u32(),
            character: *character,
        })
    });
    known.collect()
}

/// What a character is written with: ligatures are several characters.
pub(crate) fn spelled(character: char) -> impl Iterator<Item = char> {
    let text = KNOWN.iter().find(|(known, _)| *known == character);
    let (one, several) = match text {
        Some((_, text)) => (None, *text),
        None => (Some(character), ""),
    };
    one.into_iter().chain(several.chars())
}

fn mapped(charmap: &Charmap<'_>, text: &str) -> Option<Vec<GlyphId>> {
    text.chars()
        .map(|character| charmap.map(character))
        .collect()
}

/// The lookups of the features for ligatures.
fn lookups(gsub: &Gsub<'_>) -> Option<Vec<u16>> {
    let (scripts, features) = (gsub.script_list().ok()?, gsub.feature_list().ok()?);
    features::lookups(scripts, features, &[b"liga", b"clig", b"rlig"])
}

/// The ligature that a lookup makes of glyphs.
fn joined(gsub: &Gsub<'_>, lookup: u16, glyphs: &[GlyphId]) -> Option<GlyphId> {
    let lookups = gsub.lookup_list().ok()?.lookups();
    let lookup = lookups.get(usize::from(lookup)).ok()?;
    let SubstitutionSubtables::Ligature(subtables) = lookup.subtables().ok()? else {
        return None;
    };
    let (first, rest) = glyphs.split_first()?;
    subtables.iter().flatten().find_map(|subtable| {
        let LigatureSubst::Format1(subtable) = subtable else {
            return None;
        };
        let set = subtable.coverage().ok()?.get(*first)?;
        let set = subtable.ligature_sets().get(set as usize).ok()?;
        let found = set.ligatures().iter().flatten().find(|ligature| {
            let parts = ligature.component_glyph_ids();
            let parts = parts.iter().map(|part| GlyphId::from(part.get()));
            parts.eq(rest.iter().copied())
        });
        found.map(|ligature| GlyphId::from(ligature.ligature_glyph()))
    })
}
