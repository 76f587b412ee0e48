//! How much nearer some glyphs are to the next one.

use skrifa::raw::TableProvider;
use skrifa::raw::tables::gpos::{Gpos, PairPos, PositionSubtables};
use skrifa::raw::tables::kern::SubtableKind;
use skrifa::{FontRef, GlyphId};

use super::features;

/// The kerning of two glyphs in units of the font: that of `GPOS`, or of `kern` in fonts that have none there.
pub(super) fn kerning(font: &FontRef<'_>, left: GlyphId, right: GlyphId) -> f64 {
    let positions = font.gpos().ok();
    let lookups = positions
        .as_ref()
        .map(|gpos| lookups(gpos).unwrap_or_default());
    match (positions, lookups) {
        (Some(gpos), Some(lookups)) if !lookups.is_empty() => {
            let pairs = lookups
                .into_iter()
                .filter_map(|lookup| pair(&gpos, lookup, left, right));
            pairs.map(f64::from).sum()
        }
        _ => old(font, left, right),
    }
}

/// The lookups of the feature `kern`.
fn lookups(gpos: &Gpos<'_>) -> Option<Vec<u16>> {
    let (scripts, features) = (gpos.script_list().ok()?, gpos.feature_list().ok()?);
    features::lookups(scripts, features, &[b"kern"])
}

/// What a lookup says of two glyphs: its first subtable that has the pair decides.
fn pair(gpos: &Gpos<'_>, lookup: u16, left: GlyphId, right: GlyphId) -> Option<i16> {
    let lookup = gpos
        .lookup_list()
        .ok()?
        .lookups()
        .get(usize::from(lookup))
        .ok()?;
    let PositionSubtables::Pair(subtables) = lookup.subtables().ok()? else {
        return None;
    };
    subtables
        .iter()
        .flatten()
        .find_map(|subtable| match subtable {
            PairPos::Format1(pairs) => {
                let set = pairs.coverage().ok()?.get(left)?;
                let set = pairs.pair_sets().get(set as usize).ok()?;
                let mut pairs = set.pair_value_records().iter().flatten();
                let pair = pairs.find(|pair| GlyphId::from(pair.second_glyph()) == right)?;
                Some(pair.value_record1().x_advance().unwrap_or(0))
            }
            PairPos::Format2(classes) => {
                classes.coverage().ok()?.get(left)?;
                let first = classes.class_def1().ok()?.get(left);
                let second = classes.class_def2().ok()?.get(right);
                let row = classes.class1_records().get(first as usize).ok()?;
                let pair = row.class2_records().get(second as usize).ok()?;
                Some(pair.value_record1().x_advance().unwrap_or(0))
            }
            _ => None,
        })
}

/// The kerning of the table `kern`.
fn old(font: &FontRef<'_>, left: GlyphId, right: GlyphId) -> f64 {
    let tables = font.kern().ok();
    let tables = tables.iter().flat_map(|kern| kern.subtables().flatten());
    let pairs = tables
        .filter(|table| table.is_horizontal() && !table.is_cross_stream() && !table.is_variable())
        .filter_map(|table| match table.kind().ok()? {
            SubtableKind::Format0(pairs) => pairs.kerning(left, right),
            SubtableKind::Format2(classes) => classes.kerning(left, right),
            _ => None,
        });
    pairs.map(f64::from).sum()
}
