//! Pixels, and how items are composed on them.

use crate::font::Fonts;
use crate::glyphs::{self, Mask};
use crate::layout;
use crate::picture::{Colour, Item, Paint, Path, Picture, Point, RenderOptions, TextMode};
use crate::raster::{Bounds, ONE, Polygons};
use crate::stroke;
use std::collections::HashMap;

/// A picture in the making: colours are multiplied by opacity.
pub(super) struct Canvas {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) pixels: Vec<[u8; 4]>,
    clips: Vec<Clip>,
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

/// Paints a pixel with a colour, as far as it is covered.
fn blend(target: &mut [u8; 4], source: [u8; 4], coverage: u8) {
    blend_all(std::slice::from_mut(target), source, coverage);
}

/// Paints pixels that are covered alike.
fn blend_all(targets: &mut [[u8; 4]], source: [u8; 4], coverage: u8) {
    let source = if coverage == 255 {
        source
    } else {
        source.map(|part| times(part, coverage))
    };
    let rest = 255 - source[3];
    if rest == 0 {
        return targets.fill(source);
    }
    for target in targets {
        for (target, source) in target.iter_mut().zip(source) {
            *target = source.saturating_add(times(*target, rest));
        }
    }
}

/// The same for an opaque colour, rounded as cairo does it for shapes.
fn mix_all(targets: &mut [[u8; 4]], source: [u8; 4], coverage: u8) {
    if coverage == 255 {
        return targets.fill(source);
    }
    let part = |value: u8, share: u8| {
        let product = u32::from(value) * u32::from(share) + 127;
        ((product + (product >> 8)) >> 8) as u8
    };
    let source = source.map(|value| part(value, coverage));
    for target in targets {
        for (target, source) in target.iter_mut().zip(source) {
            *target = source.saturating_add(part(*target, 255 - coverage));
        }
    }
}

/// Paints pixels of a row that are covered alike with a colour.
fn paint_all(targets: &mut [[u8; 4]], colour: [u8; 4], coverage: u8) {
    match colour[3] {
        255 => mix_all(targets, colour, coverage),
        _ => blend_all(targets, colour, coverage),
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
    /// A transparent canvas.
    pub(super) fn new(width: u32, height: u32) -> Canvas {
        let limits = Bounds {
            left: 0,
            top: 0,
            right: width as i32 * ONE,
            bottom: height as i32 * ONE,
        };
        Canvas {
            width,
            height,
            pixels: vec![[0; 4]; width as usize * height as usize],
            clips: vec![Clip {
                limits,
                coverage: None,
            }],
        }
    }

    pub(super) fn draw(&mut self, picture: &Picture, fonts: &Fonts, options: &RenderOptions) {
        let (zoom, smooth) = (options.zoom, options.smooth_shapes);
        let mut masks = HashMap::new();
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
                } => {
                    self.paint(
                        stroke::outline(path, style, zoom),
                        &Shade::Solid(pixel(*colour)),
                        smooth,
                    );
                }
                Item::Text(text) => {
                    let (runs, rotation) = layout::place(fonts, text, zoom);
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
                            let key = (
                                run.face,
                                glyph.glyph,
                                run.size.to_bits(),
                                rotation.cos.to_bits(),
                                rotation.sin.to_bits(),
                            );
                            let mask = masks.entry(key).or_insert_with(|| {
                                let outline = fonts.outline(
                                    run.face,
                                    glyph.glyph,
                                    run.size,
                                    options.text_mode,
                                );
                                glyphs::mask(
                                    &outline,
                                    rotation,
                                    options.text_mode != TextMode::Mono,
                                )
                            });
                            if let Some(mask) = mask {
                                self.glyph(mask, glyph.origin, colour);
                            }
                        }
                        for path in &run.lines {
                            self.paint(Polygons::of_path(path, 1.0), &Shade::Solid(colour), smooth);
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
        polygons.cover(outer.limits, true, |y, x, row| {
            let begin = y as usize * width + x as usize;
            for (index, level) in row.iter().enumerate() {
                coverage[begin + index] = match &outer.coverage {
                    Some(outer) => times(outer[begin + index], *level),
                    None => *level,
                };
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
        polygons.cover(clip.limits, smooth, |y, x, row| {
            let begin = y as usize * width + x as usize;
            let pixels = &mut pixels[begin..begin + row.len()];
            if let (Shade::Solid(colour), None) = (shade, &clip.coverage) {
                let mut done = 0;
                for run in row.chunk_by(|a, b| a == b) {
                    let targets = &mut pixels[done..done + run.len()];
                    done += run.len();
                    if run[0] > 0 {
                        paint_all(targets, *colour, run[0]);
                    }
                }
                return;
            }
            for (index, (target, level)) in pixels.iter_mut().zip(row).enumerate() {
                let level = match &clip.coverage {
                    Some(coverage) => times(coverage[begin + index], *level),
                    None => *level,
                };
                if level > 0 {
                    let colour = shade.at(x + index as i32, y);
                    paint_all(std::slice::from_mut(target), colour, level);
                }
            }
        });
    }

    /// Paints a glyph; its origin is rounded to a pixel.
    fn glyph(&mut self, mask: &Mask, origin: Point, colour: [u8; 4]) {
        let (left, top) = (
            crate::raster::whole(origin.x),
            crate::raster::whole(origin.y),
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
        for y in seen.top..seen.bottom {
            let row = &mask.coverage[(y - at.top) as usize * width..][..width];
            for x in seen.left..seen.right {
                let index = y as usize * self.width as usize + x as usize;
                let level = row[(x - at.left) as usize];
                let level = clip
                    .coverage
                    .as_ref()
                    .map_or(level, |coverage| times(coverage[index], level));
                if level > 0 {
                    blend(&mut pixels[index], colour, level);
                }
            }
        }
    }
}
