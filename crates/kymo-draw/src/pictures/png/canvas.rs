//! Pixels, and how items are composed on them.

use crate::pictures::font::{Fonts, GlyphKey};
use crate::pictures::glyphs::Mask;
use crate::pictures::layout;
use crate::pictures::picture::{Colour, Item, Paint, Path, Picture, Point, RenderOptions};
use crate::pictures::raster::{Bounds, ONE, Polygons};
use crate::pictures::stroke::{self, LastDashes, Straight};

/// A picture in the making: colours are multiplied by opacity.
pub(super) struct Canvas {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) pixels: Vec<[u8; 4]>,
    clips: Vec<Clip>,
    dashes: LastDashes,
}

/// Where items are painted: a rectangle, and in it the coverage of a path.
#[derive(Clone)]
struct Clip {
    /// In 256ths of a pixel.
    limits: Bounds,
    coverage: Option<Vec<u8>>,
}

/// The product of two parts of 255, rounded.
fn times(a: u8, b: u8) -> u8 {
    let product = u32::from(a) * u32::from(b) + 128;
    ((product + (product >> 8)) >> 8) as u8
}

/// A colour as a pixel.
fn pixel(colour: Colour) -> [u8; 4] {
    let byte = |value: f64| ((value.clamp(0.0, 1.0) * 65535.0 + 0.5) as u32 >> 8) as u8;
    let alpha = colour.alpha;
    [
        byte(colour.red * alpha),
        byte(colour.green * alpha),
        byte(colour.blue * alpha),
        byte(alpha),
    ]
}

/// Every other part of a pixel, with room for products.
const LANES: u32 = 0x00ff_00ff;

/// The parts of a pixel multiplied by a part of 255. `half` is what is added before products are divided.
fn share(pixel: [u8; 4], by: u8, half: u32) -> [u8; 4] {
    let pixel = u32::from_le_bytes(pixel);
    let lanes = |parts: u32| {
        let product = parts * u32::from(by) + half * 0x0001_0001;
        ((product + ((product >> 8) & LANES)) >> 8) & LANES
    };
    (lanes(pixel & LANES) | lanes((pixel >> 8) & LANES) << 8).to_le_bytes()
}

/// The sum of two pixels, each part at most 255.
fn sum(a: [u8; 4], b: [u8; 4]) -> [u8; 4] {
    let (a, b) = (u32::from_le_bytes(a), u32::from_le_bytes(b));
    let lanes = |a: u32, b: u32| {
        let sum = a + b;
        // Where a lane has a carry, all of its bits are set.
        let full = ((sum >> 8) & 0x0001_0001) * 0xff;
        (sum | full) & LANES
    };
    (lanes(a & LANES, b & LANES) | lanes((a >> 8) & LANES, (b >> 8) & LANES) << 8).to_le_bytes()
}

/// A colour as far as it covers pixels, ready to be painted on many.
#[derive(Clone, Copy)]
struct Coat {
    source: [u8; 4],
    /// What is left of the pixel below, of 255.
    rest: u8,
    half: u32,
}

impl Coat {
    /// The coat of a glyph.
    fn of_text(colour: [u8; 4], coverage: u8) -> Coat {
        let source = match coverage {
            255 => colour,
            _ => share(colour, coverage, 128),
        };
        Coat {
            source,
            rest: 255 - source[3],
            half: 128,
        }
    }

    /// The coat of a shape: opaque colours are rounded as cairo does it.
    fn of_shape(colour: [u8; 4], coverage: u8) -> Coat {
        if colour[3] < 255 {
            return Coat::of_text(colour, coverage);
        }
        Coat {
            source: match coverage {
                255 => colour,
                _ => share(colour, coverage, 127),
            },
            rest: 255 - coverage,
            half: 127,
        }
    }

    #[inline]
    fn paint(self, target: &mut [u8; 4]) {
        *target = match self.rest {
            0 => self.source,
            rest => sum(self.source, share(*target, rest, self.half)),
        };
    }

    fn paint_all(self, targets: &mut [[u8; 4]]) {
        if self.rest == 0 {
            return targets.fill(self.source);
        }
        targets.iter_mut().for_each(|target| self.paint(target));
    }
}

/// A paint, ready to give the colour of any pixel.
enum Shade {
    Solid([u8; 4]),
    Linear {
        from: Point,
        to: Point,
        stops: Vec<(f64, Colour)>,
    },
}

impl Shade {
    fn new(paint: &Paint, zoom: f64) -> Shade {
        match paint {
            Paint::Solid(colour) => Shade::Solid(pixel(*colour)),
            Paint::Linear { from, to, stops } => Shade::Linear {
                from: Point::new(from.x * zoom, from.y * zoom),
                to: Point::new(to.x * zoom, to.y * zoom),
                stops: stops.clone(),
            },
        }
    }

    fn at(&self, x: i32, y: i32) -> [u8; 4] {
        match self {
            Shade::Solid(pixel) => *pixel,
            Shade::Linear { from, to, stops } => {
                let (dx, dy) = (to.x - from.x, to.y - from.y);
                let way = (f64::from(x) + 0.5 - from.x) * dx + (f64::from(y) + 0.5 - from.y) * dy;
                pixel(between(stops, way / (dx * dx + dy * dy)))
            }
        }
    }
}

/// The colour of a gradient at an offset.
fn between(stops: &[(f64, Colour)], offset: f64) -> Colour {
    let Some(after) = stops.iter().position(|stop| offset < stop.0) else {
        return stops
            .last()
            .map_or(Colour::BLACK.with_alpha(0.0), |stop| stop.1);
    };
    let (end, last) = stops[after];
    let Some((begin, first)) = after.checked_sub(1).map(|before| stops[before]) else {
        return last;
    };
    let share = (offset - begin) / (end - begin);
    let mix = |a: f64, b: f64| a + (b - a) * share;
    Colour {
        red: mix(first.red, last.red),
        green: mix(first.green, last.green),
        blue: mix(first.blue, last.blue),
        alpha: mix(first.alpha, last.alpha),
    }
}

impl Canvas {
    /// A transparent canvas, whose pixels may be in memory that was used before.
    pub(super) fn new(width: u32, height: u32, mut pixels: Vec<[u8; 4]>) -> Canvas {
        pixels.clear();
        pixels.resize(width as usize * height as usize, [0; 4]);
        let limits = Bounds {
            left: 0,
            top: 0,
            right: width as i32 * ONE,
            bottom: height as i32 * ONE,
        };
        Canvas {
            width,
            height,
            pixels,
            clips: vec![Clip {
                limits,
                coverage: None,
            }],
            dashes: LastDashes::default(),
        }
    }

    pub(super) fn draw(&mut self, picture: &Picture, fonts: &Fonts, options: &RenderOptions) {
        let (zoom, smooth) = (options.zoom, options.smooth_shapes);
        for item in &picture.items {
            match item {
                Item::Fill { path, paint } => {
                    self.paint(
                        Polygons::of_path(path, zoom),
                        &Shade::new(paint, zoom),
                        smooth,
                    );
                }
                Item::Stroke {
                    path,
                    colour,
                    style,
                } => match stroke::straight(path, style, zoom, &mut self.dashes) {
                    Some(line) if smooth && self.has_simple_clip() => {
                        self.straight(&line, pixel(*colour));
                    }
                    _ => self.paint(
                        stroke::outline(path, style, zoom),
                        &Shade::Solid(pixel(*colour)),
                        smooth,
                    ),
                },
                Item::Text(text) => {
                    let (runs, rotation) = layout::place(fonts, text, zoom, options.text_mode);
                    for run in runs {
                        if let Some((path, colour)) = &run.background {
                            self.paint(
                                Polygons::of_path(path, 1.0),
                                &Shade::Solid(pixel(*colour)),
                                smooth,
                            );
                        }
                        let colour = pixel(run.colour);
                        for glyph in &run.glyphs {
                            let key = GlyphKey::new(glyph.glyph, run.size, options.text_mode);
                            let mask = fonts.mask(run.face, key, rotation);
                            if let Some(mask) = mask {
                                self.glyph(&mask, glyph.origin, colour);
                            }
                        }
                        for (path, colour) in &run.lines {
                            let shade = Shade::Solid(pixel(*colour));
                            self.paint(Polygons::of_path(path, 1.0), &shade, smooth);
                        }
                    }
                }
                Item::Clip(path) => self.clip(path, zoom),
                Item::Unclip => {
                    if self.clips.len() > 1 {
                        self.clips.pop();
                    }
                }
            }
        }
    }

    fn current_clip(&self) -> Clip {
        // The first one is never removed.
        self.clips[self.clips.len() - 1].clone()
    }

    fn clip(&mut self, path: &Path, zoom: f64) {
        let outer = self.current_clip();
        let polygons = Polygons::of_path(path, zoom);
        if let Some(rectangle) = polygons.rectangle() {
            self.clips.push(Clip {
                limits: outer.limits.intersect(rectangle),
                ..outer
            });
            return;
        }
        let width = self.width as usize;
        let mut coverage = vec![0; self.pixels.len()];
        polygons.cover(outer.limits, true, |rows, x, row| {
            for y in rows {
                let begin = y as usize * width + x as usize;
                for (index, level) in row.iter().enumerate() {
                    coverage[begin + index] = match &outer.coverage {
                        Some(outer) => times(outer[begin + index], *level),
                        None => *level,
                    };
                }
            }
        });
        self.clips.push(Clip {
            limits: outer.limits,
            coverage: Some(coverage),
        });
    }

    fn paint(&mut self, polygons: Polygons, shade: &Shade, smooth: bool) {
        let width = self.width as usize;
        let clip = self.clips.len() - 1;
        let (clip, pixels) = (&self.clips[clip], &mut self.pixels);
        polygons.cover(clip.limits, smooth, |rows, x, row| {
            if let (Shade::Solid(colour), None) = (shade, &clip.coverage) {
                let mut at = x as usize;
                for run in row.chunk_by(|a, b| a == b) {
                    let columns = at..at + run.len();
                    at = columns.end;
                    if run[0] == 0 {
                        continue;
                    }
                    let coat = Coat::of_shape(*colour, run[0]);
                    for y in rows.clone() {
                        let row = &mut pixels[y as usize * width..];
                        coat.paint_all(&mut row[columns.clone()]);
                    }
                }
                return;
            }
            for y in rows {
                let begin = y as usize * width + x as usize;
                let pixels = &mut pixels[begin..begin + row.len()];
                for (index, (target, level)) in pixels.iter_mut().zip(row).enumerate() {
                    let level = match &clip.coverage {
                        Some(coverage) => times(coverage[begin + index], *level),
                        None => *level,
                    };
                    if level > 0 {
                        let colour = shade.at(x + index as i32, y);
                        Coat::of_shape(colour, level).paint(target);
                    }
                }
            }
        });
    }

    /// Whether the clip is a rectangle.
    fn has_simple_clip(&self) -> bool {
        self.clips.last().is_none_or(|clip| clip.coverage.is_none())
    }

    /// Paints a horizontal or vertical line. What it covers of a pixel is the product of what it covers in either
    /// direction.
    fn straight(&mut self, line: &Straight, colour: [u8; 4]) {
        let limits = self.clips[self.clips.len() - 1].limits;
        let (along, across) = match line.is_horizontal {
            true => ((limits.left, limits.right), (limits.top, limits.bottom)),
            false => ((limits.top, limits.bottom), (limits.left, limits.right)),
        };
        let across = (line.across.0.max(across.0), line.across.1.min(across.1));
        let (first, last) = match (line.along.first(), line.along.last()) {
            (Some(first), Some(last)) => (first.0.max(along.0), last.1.min(along.1)),
            _ => return,
        };
        if across.0 >= across.1 || first >= last {
            return;
        }
        let begin = first.div_euclid(ONE);
        let mut cover = vec![0i32; ((last - 1).div_euclid(ONE) - begin + 1) as usize];
        for (from, to) in &*line.along {
            let (from, to) = ((*from).max(first), (*to).min(last));
            if from >= to {
                continue;
            }
            let (low, high) = (from.div_euclid(ONE), (to - 1).div_euclid(ONE));
            let at = |pixel: i32| (pixel - begin) as usize;
            if low == high {
                cover[at(low)] += to - from;
                continue;
            }
            cover[at(low)] += (low + 1) * ONE - from;
            cover[at(low) + 1..at(high)].fill(ONE);
            cover[at(high)] += to - high * ONE;
        }
        let width = self.width as usize;
        for pixel in across.0.div_euclid(ONE)..=(across.1 - 1).div_euclid(ONE) {
            let share = across.1.min((pixel + 1) * ONE) - across.0.max(pixel * ONE);
            let level = |cover: i32| ((share * cover) >> 8).min(255) as u8;
            let (at, step) = match line.is_horizontal {
                true => (pixel as usize * width + begin as usize, 1),
                false => (begin as usize * width + pixel as usize, width),
            };
            // Most dashes cover pixels alike.
            let mut coat = (0, Coat::of_shape(colour, 0));
            let targets = self.pixels[at..].iter_mut().step_by(step);
            for (target, cover) in targets.zip(&cover) {
                let level = level(*cover);
                if level > 0 {
                    if coat.0 != level {
                        coat = (level, Coat::of_shape(colour, level));
                    }
                    coat.1.paint(target);
                }
            }
        }
    }

    /// Paints a glyph; its origin is rounded to a pixel.
    fn glyph(&mut self, mask: &Mask, origin: Point, colour: [u8; 4]) {
        let (left, top) = (
            crate::pictures::raster::whole(origin.x),
            crate::pictures::raster::whole(origin.y),
        );
        let clip = self.clips.len() - 1;
        let (clip, pixels) = (&self.clips[clip], &mut self.pixels);
        let at = Bounds {
            left: left + mask.bounds.left,
            top: top + mask.bounds.top,
            right: left + mask.bounds.right,
            bottom: top + mask.bounds.bottom,
        };
        let seen = at.intersect(clip.limits.pixels());
        if seen.is_empty() {
            return;
        }
        let width = (mask.bounds.right - mask.bounds.left) as usize;
        let opaque = Coat::of_text(colour, 255);
        let columns = (seen.left - at.left) as usize..(seen.right - at.left) as usize;
        for y in seen.top..seen.bottom {
            let row = &mask.coverage[(y - at.top) as usize * width..][columns.clone()];
            let begin = y as usize * self.width as usize + seen.left as usize;
            let targets = &mut pixels[begin..begin + row.len()];
            for (column, (target, level)) in targets.iter_mut().zip(row).enumerate() {
                let level = match &clip.coverage {
                    Some(coverage) => times(coverage[begin + column], *level),
                    None => *level,
                };
                match level {
                    0 => {}
                    255 => opaque.paint(target),
                    level => Coat::of_text(colour, level).paint(target),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixels_are_computed_part_by_part() {
        for a in 0..=255 {
            for b in 0..=255u8 {
                let pixel = [a, 255 - a, 255, a / 2];
                assert_eq!(share(pixel, b, 128), pixel.map(|part| times(part, b)));
                let other = [b, 255, b / 3, 255 - b];
                let added: Vec<u8> = pixel
                    .iter()
                    .zip(other)
                    .map(|(a, b)| a.saturating_add(b))
                    .collect();
                assert_eq!(sum(pixel, other)[..], added);
            }
        }
    }
}
