//! Pictures as eps.
use crate::*;
/// Renders.
///
/// # Errors
/// Size.
pub fn eps(picture: &Picture, fonts: &Fonts, options: &RenderOptions) -> Result<Vec<u8>, DrawError> { png(picture, fonts, options) }
