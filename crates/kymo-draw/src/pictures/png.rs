//! Pictures as PNG.

mod canvas;
mod pack;

use crate::pictures::font::Fonts;
use crate::pictures::picture::{DrawError, Picture, RenderOptions};
use canvas::Canvas;
use flate2::{Compress, Compression, FlushCompress, Status};

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
    let (width, height) = super::device_size(picture, options)?;
    let mut scratch = fonts.take_scratch();
    let pixels = std::mem::take(&mut scratch.pixels);
    let mut canvas = Canvas::new(width as u32, height as u32, pixels);
    canvas.draw(picture, fonts, options);
    let file = encode(&canvas, options.compression.min(9), &mut scratch);
    scratch.pixels = canvas.pixels;
    fonts.keep_scratch(scratch);
    Ok(file)
}

/// Memory that the next picture uses again: the system would have to clear it.
#[derive(Default)]
pub(crate) struct Scratch {
    pixels: Vec<[u8; 4]>,
    rows: Vec<u8>,
    compressor: Option<(u32, Compress)>,
}

/// Pictures whose pixels take more bytes leave no memory behind.
const MOST_KEPT: usize = 16 << 20;

impl Scratch {
    /// Gives memory back if it is much.
    pub(crate) fn trim(&mut self) {
        if self.pixels.capacity() * 4 > MOST_KEPT {
            self.pixels = Vec::new();
        }
        if self.rows.capacity() > MOST_KEPT {
            self.rows = Vec::new();
        }
    }
}

fn encode(canvas: &Canvas, level: u32, scratch: &mut Scratch) -> Vec<u8> {
    // Whole pixels: compilers make that several at once.
    let pixels = canvas.pixels.iter().map(|pixel| u32::from_le_bytes(*pixel));
    let opaque = pixels
        .fold(u32::MAX, |all, pixel| all & pixel)
        .to_le_bytes()[3]
        == 255;
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    let mut header = Vec::with_capacity(13);
    header.extend(canvas.width.to_be_bytes());
    header.extend(canvas.height.to_be_bytes());
    header.extend([8, if opaque { 2 } else { 6 }, 0, 0, 0]);
    chunk(&mut file, b"IHDR", &header);
    let rows = &mut scratch.rows;
    rows.clear();
    append_rows(canvas, opaque, rows);
    let depth = if opaque { 3 } else { 4 };
    let packed = match level {
        1..=3 => pack::pack(rows, canvas.width as usize * depth + 1, depth),
        _ => compressed(rows, level, &mut scratch.compressor),
    };
    chunk(&mut file, b"IDAT", &packed);
    chunk(&mut file, b"IEND", &[]);
    file
}

/// Appends rows of pixels. They are equal to the one above or have runs of one colour: without a filter zlib finds both,
/// and makes smaller files in less time.
fn append_rows(canvas: &Canvas, opaque: bool, rows: &mut Vec<u8>) {
    let width = canvas.width.max(1) as usize;
    let length = width * if opaque { 3 } else { 4 } + 1;
    rows.reserve(length * canvas.height as usize);
    let mut above: &[[u8; 4]] = &[];
    for row in canvas.pixels.chunks(width) {
        if row == above {
            rows.extend_from_within(rows.len() - length..);
            continue;
        }
        above = row;
        let begin = rows.len();
        rows.push(0);
        if opaque {
            rows.resize(begin + length, 0);
            without_alpha(row, &mut rows[begin + 1..]);
        } else {
            for pixel in row {
                rows.extend_from_slice(&straight(*pixel));
            }
        }
    }
}

/// Writes the colours of opaque pixels, 3 bytes each: four pixels at once.
fn without_alpha(pixels: &[[u8; 4]], out: &mut [u8]) {
    let (fours, rest) = pixels.as_chunks::<4>();
    let (twelves, _) = out.as_chunks_mut::<12>();
    for ([a, b, c, d], out) in fours.iter().zip(twelves) {
        let pair = |a: &[u8; 4], b: &[u8; 4]| {
            let (a, b) = (u32::from_le_bytes(*a), u32::from_le_bytes(*b));
            u64::from(a & 0xff_ffff) | u64::from(b & 0xff_ffff) << 24
        };
        let (low, high) = (pair(a, b), pair(c, d));
        // Places whose sizes are known are written without a call.
        if let Some(first) = out.first_chunk_mut() {
            *first = (low | high << 48).to_le_bytes();
        }
        if let Some(last) = out.last_chunk_mut() {
            *last = ((high >> 16) as u32).to_le_bytes();
        }
    }
    let done = fours.len() * 12;
    for (pixel, out) in rest.iter().zip(out[done..].chunks_exact_mut(3)) {
        out.copy_from_slice(&pixel[..3]);
    }
}

/// Bytes as zlib packs them.
fn compressed(rows: &[u8], level: u32, kept: &mut Option<(u32, Compress)>) -> Vec<u8> {
    let mut compressor = match kept.take().filter(|(known, _)| *known == level) {
        Some((_, mut compressor)) => {
            compressor.reset();
            compressor
        }
        None => Compress::new(Compression::new(level), true),
    };
    let mut packed = Vec::with_capacity(rows.len() / 8 + 1024);
    // To pack bytes in memory fails only if there is no room for the result.
    loop {
        let done = compressor.total_in() as usize;
        match compressor.compress_vec(&rows[done..], &mut packed, FlushCompress::Finish) {
            Ok(Status::StreamEnd) | Err(_) => break,
            Ok(_) => packed.reserve(packed.len().max(1024)),
        }
    }
    *kept = Some((level, compressor));
    packed
}

/// A pixel with colours that are not multiplied by its opacity.
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
