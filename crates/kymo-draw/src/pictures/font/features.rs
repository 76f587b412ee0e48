//! Which lookups the features of a font name.

use skrifa::Tag;
use skrifa::raw::tables::layout::{FeatureList, ScriptList};

/// The lookups of some features of Latin texts, from the lists of `GPOS` or `GSUB`; `None` where these are damaged.
pub(super) fn lookups(
    scripts: ScriptList<'_>,
    features: FeatureList<'_>,
    wanted: &[&[u8; 4]],
) -> Option<Vec<u16>> {
    let script = scripts.select(&[Tag::new(b"latn"), Tag::new(b"DFLT")])?;
    let script = scripts.get(script.index).ok()?;
    let language = script.default_lang_sys()?.ok()?;
    let mut found = Vec::new();
    for index in language.feature_indices() {
        let feature = features.get(index.get()).ok()?;
        if wanted.contains(&&feature.tag.to_be_bytes()) {
            let lookups = feature.lookup_list_indices();
            found.extend(lookups.iter().map(|lookup| lookup.get()));
        }
    }
    found.sort_unstable();
    found.dedup();
    Some(found)
}
