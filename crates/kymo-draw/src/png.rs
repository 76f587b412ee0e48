//! Pictures as PNG.

mod canvas;

use crate::font::Fonts;
use crate::picture::{DrawError, Picture, RenderOptions};
use canvas::Canvas;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use std::io::Write;

/// Renders a picture as PNG: 8 bits a channel, with an alpha channel if any pixel is transparent.
///
/// # Errors
/// The picture is too large.
///
/// # Examples
/// ```
/// use kymo_draw::{Fonts, Picture, RenderOptions};
/// let options = RenderOptions { zoom: 2.0, ..RenderOptions::default() };
/// assert!(kymo_draw::png(&Picture::new(60_000, 60_000), &Fonts::new(), &options).is_err());
/// ```
pub fn png(
    picture: &Picture,
    fonts: &Fonts,
    options: &RenderOptions,
) -> Result<Vec<u8>, DrawError> {
    let (width, height) = crate::device_size(picture, options)?;
    let mut canvas = Canvas::new(width as u32, height as u32);
    canvas.draw(picture, fonts, options);
    Ok(encode(canvas, options.compression.min(9)))
}

fn encode(canvas: Canvas, level: u32) -> Vec<u8> {
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    let alphas = canvas.pixels.iter().map(|pixel| pixel[3]);
    let opaque = alphas.fold(255, |all, alpha| all & alpha) == 255;
    let mut header = Vec::with_capacity(13);
    header.extend(canvas.width.to_be_bytes());
    header.extend(canvas.height.to_be_bytes());
    header.extend([8, if opaque { 2 } else { 6 }, 0, 0, 0]);
    chunk(&mut file, b"IHDR", &header);
    let width = canvas.width.max(1) as usize;
    let line = width * if opaque { 3 } else { 4 } + 1;
    let mut lines = Vec::with_capacity(line * canvas.height as usize + 1);
    let mut above: &[[u8; 4]] = &[];
    // Rows of a graph are equal to the one above or have runs of one colour. Without a filter zlib finds both, and makes
    // smaller files in less time.
    for row in canvas.pixels.chunks(width) {
        if row == above {
            lines.extend_from_within(lines.len() - line..);
            continue;
        }
        above = row;
        let begin = lines.len();
        lines.push(0);
        if opaque {
            // Four bytes are copied at once, of which the next pixel overwrites the last.
            lines.resize(begin + line + 1, 0);
            let mut rest = &mut lines[begin + 1..];
            for pixel in row {
                if let Some(place) = rest.first_chunk_mut() {
                    *place = *pixel;
                }
                rest = &mut rest[3..];
            }
            lines.truncate(begin + line);
        } else {
            for pixel in row {
                lines.extend_from_slice(&straight(*pixel));
            }
        }
    }
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(level));
    // Writing to memory does not fail.
    let written = encoder.write_all(&lines).and_then(|()| encoder.finish());
    chunk(&mut file, b"IDAT", &written.unwrap_or_default());
    chunk(&mut file, b"IEND", &[]);
    file
}

/// A pixel whose colours are not multiplied by its opacity.
fn straight([red, green, blue, alpha]: [u8; 4]) -> [u8; 4] {
    if alpha == 0 {
        return [0; 4];
    }
    let divide = |value: u8| {
        ((u32::from(value) * 255 + u32::from(alpha) / 2) / u32::from(alpha)).min(255) as u8
    };
    [divide(red), divide(green), divide(blue), alpha]
}

fn chunk(file: &mut Vec<u8>, name: &[u8; 4], data: &[u8]) {
    // A picture has at most 100 million pixels, and zlib makes little more of them.
    file.extend((data.len() as u32).to_be_bytes());
    let begin = file.len();
    file.extend(name);
    file.extend(data);
    let sum = crc32fast::hash(&file[begin..]);
    file.extend(sum.to_be_bytes());
}
