//! Pixels of glyphs, as FreeType's smooth rasteriser covers them.
//!
//! Coverage is the exact area. Where FreeType rounds, this does: outlines are in 64ths of a pixel,
//! curves become lines between points in 256ths, and lines are cut at the borders of pixels in
//! 256ths, downwards.

use crate::pictures::font::{Glyph, Verb};
use crate::pictures::layout::Rotation;
use crate::pictures::raster::{Bounds, ONE};

/// A glyph larger than this many pixels in either direction is not drawn.
const MAX_SIDE: i32 = 4096;

/// Coverage of the pixels around the origin of a glyph.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Mask {
    /// Pixels, relative to the origin; y down.
    pub(crate) bounds: Bounds,
    /// Rows from the top.
    pub(crate) coverage: Vec<u8>,
}

/// The pixels of an outline, turned by `rotation`.
pub(crate) fn mask(glyph: &Glyph, rotation: Rotation, smooth: bool) -> Option<Mask> {
    let lines = lines(glyph, rotation, smooth);
    let xs = lines.iter().flat_map(|(from, to)| [from.0, to.0]);
    let ys = lines.iter().flat_map(|(from, to)| [from.1, to.1]);
    let (left, right) = (
        xs.clone().min()?.div_euclid(ONE),
        xs.max()?.div_euclid(ONE) + 1,
    );
    let (bottom, top) = (
        ys.clone().min()?.div_euclid(ONE),
        ys.max()?.div_euclid(ONE) + 1,
    );
    if right - left > MAX_SIDE || top - bottom > MAX_SIDE {
        return None;
    }
    let bounds = Bounds {
        left,
        top: -top,
        right,
        bottom: -bottom,
    };
    let size = (right - left) as usize * (top - bottom) as usize;
    if !smooth {
        let mut dots = Dots {
            bounds,
            coverage: vec![0; size],
        };
        dots.rows(&lines);
        dots.columns(&lines);
        let coverage = dots.coverage;
        return Some(Mask { bounds, coverage });
    }
    let mut cells = Cells {
        left,
        bottom,
        width: (right - left) as usize,
        cells: vec![(0, 0); size],
    };
    for (from, to) in lines {
        cells.line(from, to);
    }
    let mut coverage = Vec::with_capacity(cells.cells.len());
    // Rows go up in outlines and down in pictures.
    for row in cells.cells.chunks(cells.width).rev() {
        let mut cover = 0;
        for (height, area) in row {
            cover += height;
            let level = (cover * 2 * ONE - area) >> 9;
            coverage.push(if level < 0 { !level } else { level }.min(255) as u8);
        }
    }
    Some(Mask { bounds, coverage })
}

/// A line of an outline in 256ths of a pixel.
type Edge = ((i32, i32), (i32, i32));

/// Glyphs without smooth edges, as FreeType's rasteriser for black and white has them: pixels whose centres are inside,
/// and one for each part that is too thin to have a centre in it.
struct Dots {
    bounds: Bounds,
    coverage: Vec<u8>,
}

impl Dots {
    /// The pixel in a column and in a row that counts upwards.
    fn at(&mut self, x: i32, y: i32) -> Option<&mut u8> {
        let (row, column) = (-1 - y - self.bounds.top, x - self.bounds.left);
        let width = self.bounds.right - self.bounds.left;
        let is_inside = (0..width).contains(&column) && row >= 0;
        let index = row as usize * width as usize + column as usize;
        self.coverage.get_mut(index).filter(|_| is_inside)
    }

    fn rows(&mut self, lines: &[Edge]) {
        for y in -self.bounds.bottom..-self.bounds.top {
            for (from, to) in spans(lines.iter().copied(), y * ONE + ONE / 2) {
                let (first, last) = centres(from, to);
                for x in first..=last {
                    self.set(x, y);
                }
                if first == last + 1 {
                    let (x, other) = nearest(from, to, first);
                    if self.at(other, y).is_none_or(|other| *other == 0) {
                        self.set(x, y);
                    }
                }
            }
        }
    }

    /// What is too thin in the other direction.
    fn columns(&mut self, lines: &[Edge]) {
        let turned = || {
            let turn = |(x, y): (i32, i32)| (y, x);
            lines.iter().map(move |(from, to)| (turn(*from), turn(*to)))
        };
        for x in self.bounds.left..self.bounds.right {
            for (from, to) in spans(turned(), x * ONE + ONE / 2) {
                let (first, last) = centres(from, to);
                if first == last + 1 {
                    let (y, other) = nearest(from, to, first);
                    if self.at(x, other).is_none_or(|other| *other == 0) {
                        self.set(x, y);
                    }
                }
            }
        }
    }

    fn set(&mut self, x: i32, y: i32) {
        if let Some(pixel) = self.at(x, y) {
            *pixel = 255;
        }
    }
}

/// The parts of a horizontal line at `y` that are inside of an outline.
fn spans(lines: impl Iterator<Item = Edge>, y: i32) -> Vec<(i32, i32)> {
    let crossings = lines.filter_map(|(from, to)| {
        let is_up = from.1 <= y;
        if is_up == (to.1 <= y) {
            return None;
        }
        let (dx, dy) = (i64::from(to.0 - from.0), i64::from(to.1 - from.1));
        let x = i64::from(from.0) + (dx * i64::from(y - from.1)).div_euclid(dy);
        Some((x as i32, if is_up { 1 } else { -1 }))
    });
    let mut crossings: Vec<(i32, i32)> = crossings.collect();
    crossings.sort_unstable();
    let (mut winding, mut begin) = (0, 0);
    let mut spans = Vec::new();
    for (x, turn) in crossings {
        if winding == 0 {
            begin = x;
        }
        winding += turn;
        if winding == 0 {
            spans.push((begin, x));
        }
    }
    spans
}

/// The first and the last pixel whose centre is between two places; the last is before the first if there are none.
fn centres(from: i32, to: i32) -> (i32, i32) {
    let first = (from - ONE / 2 + ONE - 1).div_euclid(ONE);
    (first, (to - ONE / 2).div_euclid(ONE))
}

/// The pixel that stands for what is between two places and between the centres of `next` and of the one before; and
/// the other one of these.
fn nearest(from: i32, to: i32, next: i32) -> (i32, i32) {
    match ((from + to) / 2).div_euclid(ONE) {
        pixel if pixel >= next => (next, next - 1),
        _ => (next - 1, next),
    }
}

/// The outline as lines in 256ths of a pixel, y up. FreeType follows curves more closely in black and white.
fn lines(glyph: &Glyph, rotation: Rotation, smooth: bool) -> Vec<Edge> {
    let limit = f64::from(MAX_SIDE);
    let at = |[x, y]: [f32; 2]| {
        // On the screen y goes down: the rotation is applied there.
        let turned = rotation.apply(f64::from(x), f64::from(-y));
        let round = |value: f64| (value.clamp(-limit, limit) * 64.0).round() as i32 * 4;
        (round(turned.x), round(-turned.y))
    };
    let most = i64::from(if smooth { ONE / 4 } else { 1 });
    let mut lines = Vec::new();
    let (mut begin, mut from) = ((0, 0), (0, 0));
    let mut line = |from: &mut (i32, i32), to: (i32, i32)| {
        if *from != to {
            lines.push((*from, to));
        }
        *from = to;
    };
    let mut verbs = glyph.verbs.iter().peekable();
    while let Some(verb) = verbs.next() {
        match *verb {
            Verb::Move(to) => {
                line(&mut from, begin);
                (begin, from) = (at(to), at(to));
            }
            Verb::Line(to) => line(&mut from, at(to)),
            Verb::Quad(control, to) => {
                let end = match verbs.peek() {
                    Some(Verb::Quad(next, _)) if implied(control, to, *next) => {
                        // In 64ths, downwards: FreeType moves a glyph to positive coordinates first.
                        let middle = |a: i32, b: i32| (a / 4 + b / 4).div_euclid(2) * 4;
                        (
                            middle(at(control).0, at(*next).0),
                            middle(at(control).1, at(*next).1),
                        )
                    }
                    _ => at(to),
                };
                quad(from, at(control), end, most, |to| line(&mut from, to));
            }
            Verb::Curve(first, second, to) => cubic(from, at(first), at(second), at(to), |to| {
                line(&mut from, to)
            }),
            Verb::Close => line(&mut from, begin),
        }
    }
    line(&mut from, begin);
    lines
}

/// Whether a point is not one of the font, but lies between two control points, rounded to a 64th
/// towards 0.
fn implied(before: [f32; 2], point: [f32; 2], after: [f32; 2]) -> bool {
    (0..2).all(|axis| point[axis] * 64.0 == ((before[axis] + after[axis]) * 32.0).trunc())
}

/// A quadratic curve as lines: their distance from it is at most an eighth of `most`.
fn quad(
    from: (i32, i32),
    control: (i32, i32),
    to: (i32, i32),
    most: i64,
    mut line: impl FnMut((i32, i32)),
) {
    let bend = |a: i32, b: i32, c: i32| i64::from(a) - 2 * i64::from(b) + i64::from(c);
    let (bx, by) = (bend(from.0, control.0, to.0), bend(from.1, control.1, to.1));
    let mut distance = bx.abs().max(by.abs());
    let mut shift = 0;
    // Halving the curve divides its distance from the chord by four.
    while distance > most {
        distance >>= 2;
        shift += 1;
    }
    let count = 1i64 << shift;
    for step in 1..=count {
        let point = |a: i32, b: i32, bend: i64| {
            let ahead = i64::from(b - a) * 2 * step * count + bend * step * step;
            (i64::from(a) + (ahead >> (2 * shift))) as i32
        };
        line(if step == count {
            to
        } else {
            (point(from.0, control.0, bx), point(from.1, control.1, by))
        });
    }
}

fn cubic(
    from: (i32, i32),
    first: (i32, i32),
    second: (i32, i32),
    to: (i32, i32),
    mut line: impl FnMut((i32, i32)),
) {
    let distance =
        |a: i32, b: i32, c: i32| (f64::from(a) - 2.0 * f64::from(b) + f64::from(c)).abs();
    let worst = [
        distance(from.0, first.0, second.0),
        distance(from.1, first.1, second.1),
        distance(first.0, second.0, to.0),
        distance(first.1, second.1, to.1),
    ];
    // Lines stay within a 16th of a pixel of the curve.
    let steps = (worst.into_iter().fold(0.0, f64::max) * 6.0 / 8.0 / 16.0)
        .sqrt()
        .ceil()
        .clamp(1.0, 200.0) as i32;
    for step in 1..=steps {
        let t = f64::from(step) / f64::from(steps);
        let u = 1.0 - t;
        let mix = |a: i32, b: i32, c: i32, d: i32| {
            let (a, b, c, d) = (f64::from(a), f64::from(b), f64::from(c), f64::from(d));
            (u * u * u * a + 3.0 * u * u * t * b + 3.0 * u * t * t * c + t * t * t * d).round()
                as i32
        };
        line((
            mix(from.0, first.0, second.0, to.0),
            mix(from.1, first.1, second.1, to.1),
        ));
    }
}

/// Where a line crosses a border. FreeType multiplies with a reciprocal that is rounded downwards,
/// so that a quotient without remainder comes out one less.
fn quotient(product: i64, way: i64) -> i32 {
    let (product, way) = (product.unsigned_abs(), way.unsigned_abs());
    (product.saturating_sub(1) / way) as i32
}

/// Of each pixel, the height of the edges in it and twice the area to the left of them.
struct Cells {
    left: i32,
    bottom: i32,
    width: usize,
    cells: Vec<(i32, i32)>,
}

impl Cells {
    fn add(&mut self, (x, y): (i32, i32), from: (i32, i32), to: (i32, i32)) {
        let index = (y - self.bottom) as usize * self.width + (x - self.left) as usize;
        if let Some((height, area)) = self.cells.get_mut(index) {
            *height += to.1 - from.1;
            *area += (to.1 - from.1) * (from.0 + to.0);
        }
    }

    /// Walks a line from pixel to pixel.
    fn line(&mut self, from: (i32, i32), to: (i32, i32)) {
        let (dx, dy) = (i64::from(to.0 - from.0), i64::from(to.1 - from.1));
        if dy == 0 {
            return;
        }
        let one = i64::from(ONE);
        let (mut x, mut y) = (from.0.div_euclid(ONE), from.1.div_euclid(ONE));
        let end = (to.0.div_euclid(ONE), to.1.div_euclid(ONE));
        let mut at = (from.0.rem_euclid(ONE), from.1.rem_euclid(ONE));
        // Which border the line leaves a pixel by follows from this product, which is exact: the
        // borders that it is cut at are rounded, but errors do not add up.
        let mut product = dx * i64::from(at.1) - dy * i64::from(at.0);
        while (x, y) != end {
            let (next, enter, step);
            if product - dx * one > 0 && product <= 0 && dx < 0 {
                (next, enter, step) = ((0, quotient(product, dx)), ONE, (-1, 0));
                product -= dy * one;
            } else if product - dx * one + dy * one > 0 && product - dx * one <= 0 && dy > 0 {
                product -= dx * one;
                (next, enter, step) = ((quotient(-product, dy), ONE), 0, (0, 1));
            } else if product + dy * one >= 0 && product - dx * one + dy * one <= 0 && dx > 0 {
                product += dy * one;
                (next, enter, step) = ((ONE, quotient(product, dx)), 0, (1, 0));
            } else if dy < 0 {
                (next, enter, step) = ((quotient(-product, dy), 0), ONE, (0, -1));
                product += dx * one;
            } else {
                // A corner that no case names: the rest of the line is in this pixel.
                break;
            }
            let next = if dx == 0 { (at.0, next.1) } else { next };
            self.add((x, y), at, next);
            at = if step.0 == 0 {
                (next.0, enter)
            } else {
                (enter, next.1)
            };
            (x, y) = (x + step.0, y + step.1);
        }
        self.add((x, y), at, (to.0 - x * ONE, to.1 - y * ONE));
    }
}
