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
    let opaque = canvas.pixels.iter().all(|pixel| pixel[3] == 255);
    let mut header = Vec::with_capacity(13);
    header.extend(canvas.width.to_be_bytes());
    header.extend(canvas.height.to_be_bytes());
    header.extend([8, if opaque { 2 } else { 6 }, 0, 0, 0]);
    chunk(&mut file, b"IHDR", &header);
    let width = canvas.width.max(1) as usize;
    let bytes = if opaque { 3 } else { 4 };
    let line = width * bytes + 1;
    let mut filtered = vec![0; line * canvas.height as usize];
    let nothing = vec![[0; 4]; width];
    let mut above = &nothing[..];
    // Rows of a graph are equal to the one above or have runs of one colour; differences to the pixel above make
    // both short.
    for (row, filtered) in canvas.pixels.chunks(width).zip(filtered.chunks_mut(line)) {
        filtered[0] = 2;
        if row != above {
            let pixels = row.iter().zip(above);
            if opaque {
                for ((now, above), out) in pixels.zip(filtered[1..].chunks_exact_mut(3)) {
                    subtract(out, *now, *above);
                }
            } else {
                for ((now, above), out) in pixels.zip(filtered[1..].chunks_exact_mut(4)) {
                    subtract(out, straight(*now), straight(*above));
                }
            }
        }
        above = row;
    }
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(level));
    // Writing to memory does not fail.
    let written = encoder.write_all(&filtered).and_then(|()| encoder.finish());
    chunk(&mut file, b"IDAT", &written.unwrap_or_default());
    chunk(&mut file, b"IEND", &[]);
    file
}

/// Writes the differences of as many parts of two pixels as there is room for.
fn subtract(out: &mut [u8], now: [u8; 4], above: [u8; 4]) {
    for ((out, now), above) in out.iter_mut().zip(now).zip(above) {
        *out = now.wrapping_sub(above);
    }
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
