//! Pictures as pdf.
use crate::*;
/// Renders.
///
/// # Errors
/// Size.
pub fn pdf(picture: &Picture, fonts: &Fonts, options: &RenderOptions) -> Result<Vec<u8>, DrawError> { png(picture, fonts, options) }
