//! Outlines of the built-in font at rrdtool's sizes, hinted beforehand: a process that draws one graph would use a
//! third of its time to hint some fifty glyphs.
//!
//! A file has, for each size and glyph, the offset of the outline behind the offsets, of 16 bits, and then the
//! outlines: a byte for each step, and its coordinates in 64ths of a pixel, of 16 bits. All numbers begin with the
//! low byte.

use super::face::{Glyph, GlyphKey, Verb};
use crate::TextMode;

static OUTLINES: &[u8] = include_bytes!("../../../fonts/DejaVuSansMono.outlines");

/// 5.5, 7, 8 and 9 points in 64ths of a pixel.
pub(super) const SIZES: [u32; 4] = [489, 622, 711, 800];
/// The box of missing characters, and up to printable ASCII.
pub(super) const GLYPHS: std::ops::Range<u32> = 0..98;

const COUNT: usize = SIZES.len() * (GLYPHS.end - GLYPHS.start) as usize;

/// The outline of a glyph, if it is one of those.
pub(super) fn outline(key: GlyphKey) -> Option<Glyph> {
    if key.mode != TextMode::Normal || !GLYPHS.contains(&key.glyph) {
        return None;
    }
    let size = SIZES.iter().position(|size| *size == key.size)?;
    let number = size * GLYPHS.len() + key.glyph as usize;
    let begin = OUTLINES.get(number * 2..)?.first_chunk()?;
    let begin = COUNT * 2 + usize::from(u16::from_le_bytes(*begin));
    let mut rest = OUTLINES.get(begin..)?;
    let mut verbs = Vec::with_capacity(32);
    loop {
        let (verb, after) = rest.split_first()?;
        let points = match verb {
            0 => return Some(Glyph { verbs }),
            b'M' | b'L' => 1,
            b'Q' => 2,
            _ => 0,
        };
        let (numbers, after) = after.split_at_checked(points * 4)?;
        rest = after;
        let number = |at: usize| {
            let bytes = [numbers[at], numbers[at + 1]];
            f32::from(i16::from_le_bytes(bytes)) / 64.0
        };
        let point = |place: usize| [number(place * 4), number(place * 4 + 2)];
        verbs.push(match verb {
            b'M' => Verb::Move(point(0)),
            b'L' => Verb::Line(point(0)),
            b'Q' => Verb::Quad(point(0), point(1)),
            _ => Verb::Close,
        });
    }
}

/// The file that these outlines make, sizes one behind the other.
#[cfg(test)]
pub(super) fn write(glyphs: &[&Glyph]) -> Vec<u8> {
    assert_eq!(glyphs.len(), COUNT);
    let (mut offsets, mut outlines) = (Vec::new(), Vec::<u8>::new());
    for glyph in glyphs {
        offsets.extend(u16::try_from(outlines.len()).unwrap().to_le_bytes());
        for verb in &glyph.verbs {
            let (name, points) = match *verb {
                Verb::Move(to) => (b'M', vec![to]),
                Verb::Line(to) => (b'L', vec![to]),
                Verb::Quad(control, to) => (b'Q', vec![control, to]),
                Verb::Curve(..) => panic!("no font of quadratic curves"),
                Verb::Close => (b'Z', vec![]),
            };
            outlines.push(name);
            for number in points.into_iter().flatten() {
                let fixed = number * 64.0;
                assert_eq!(fixed, fixed.round(), "not in 64ths");
                outlines.extend((fixed as i16).to_le_bytes());
            }
        }
        outlines.push(0);
    }
    [offsets, outlines].concat()
}
