//! Pictures, their renderers and fonts.

mod embed;
mod eps;
mod font;
mod glyphs;
mod layout;
mod markup;
mod number;
pub mod page;
mod pdf;
mod picture;
mod png;
mod raster;
mod stroke;
mod svg;
#[cfg(test)]
mod tests;

pub use eps::eps;
pub use font::{BUILT_IN_FAMILY, Font, FontMetrics, Fonts, PIXELS_PER_POINT};
pub use layout::Extents;
pub use pdf::pdf;
pub use picture::*;
pub use png::png;
pub use svg::svg;

/// The size of a rendered picture in device pixels.
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
