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

#[cfg(feature = "pictures")]
mod embed;
#[cfg(feature = "pictures")]
mod eps;
mod flame;
#[cfg(feature = "pictures")]
mod font;
#[cfg(feature = "pictures")]
mod glyphs;
#[cfg(feature = "pictures")]
mod layout;
#[cfg(feature = "pictures")]
mod markup;
#[cfg(feature = "pictures")]
mod number;
#[cfg(feature = "pictures")]
pub mod page;
#[cfg(feature = "pictures")]
mod pdf;
#[cfg(feature = "pictures")]
mod picture;
#[cfg(feature = "pictures")]
mod png;
#[cfg(feature = "pictures")]
mod raster;
#[cfg(feature = "pictures")]
mod stroke;
#[cfg(feature = "pictures")]
mod svg;

#[cfg(feature = "pictures")]
pub use eps::eps;
pub use flame::{FlameOptions, Frame, flame_svg, folded};
#[cfg(feature = "pictures")]
pub use font::{BUILT_IN_FAMILY, Font, FontMetrics, Fonts, PIXELS_PER_POINT};
#[cfg(feature = "pictures")]
pub use layout::Extents;
#[cfg(feature = "pictures")]
pub use pdf::pdf;
#[cfg(feature = "pictures")]
pub use picture::*;
#[cfg(feature = "pictures")]
pub use png::png;
#[cfg(feature = "pictures")]
pub use svg::svg;

/// The size of a rendered picture in device pixels.
#[cfg(feature = "pictures")]
fn device_size(picture: &Picture, options: &RenderOptions) -> Result<(f64, f64), DrawError> {
    let (width, height) = (
        f64::from(picture.width) * options.zoom,
        f64::from(picture.height) * options.zoom,
    );
    let side = f64::from(MAX_SIDE);
    // Comparisons with what is not a number fail.
    if width <= side
        && height <= side
        && width * height <= f64::from(MAX_PIXELS)
        && options.zoom > 0.0
    {
        Ok((width, height))
    } else {
        Err(DrawError::Size { width, height })
    }
}

#[cfg(all(test, feature = "pictures"))]
mod tests;
