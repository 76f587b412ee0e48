//! From polygons to coverage of pixels.
//!
//! Coordinates have 8 bits after the point, as in cairo. Rectilinear shapes are covered exactly;
//! others are sampled in 15 rows of each pixel, horizontally exact, so that edges differ little from
//! cairo's. tiny-skia's 4 by 4 samples would differ by up to 16 levels.

use crate::pictures::picture::{Path, Point, Segment};
use std::ops::Range;

/// One pixel in fixed point.
pub(crate) const ONE: i32 = 256;
/// Rows of samples in a pixel, for shapes that are not rectilinear.
const ROWS: i32 = 15;
/// Coordinates are limited to this many pixels, far outside of any picture.
const FAR: f64 = 4_000_000.0;

/// A coordinate in 256ths of a pixel.
#[inline]
pub(crate) fn fixed(value: f64) -> i32 {
    if value.is_nan() {
        0
    } else {
        // Adding this leaves the whole number, rounded to even, in the lowest bits: some instructions less than a
        // call of the library for each coordinate.
        const ROUND: f64 = 6_755_399_441_055_744.0;
        (value.clamp(-FAR, FAR) * f64::from(ONE) + ROUND).to_bits() as i32
    }
}

/// A point in 256ths of a pixel.
pub(crate) type Fixed = (i32, i32);

/// Turns the points of a convex polygon so that it winds as all others do.
pub(crate) fn convex(points: &mut [Fixed]) {
    let Some(last) = points.last() else { return };
    let mut from = *last;
    let mut area = 0;
    for to in points.iter() {
        area += i64::from(from.0) * i64::from(to.1) - i64::from(to.0) * i64::from(from.1);
        from = *to;
    }
    if area < 0 {
        points.reverse();
    }
}

/// Closed polygons.
#[derive(Debug, Default)]
pub(crate) struct Polygons {
    edges: Vec<Edge>,
    oblique: bool,
}

#[derive(Debug, Clone, Copy)]
struct Edge {
    top: Fixed,
    bottom: Fixed,
    winding: i32,
    rows: (i32, i32),
}

/// The row of samples at a height; a pixel has `unit` of them. Ends of edges are rounded to rows, as by cairo.
fn row_of(y: i32, unit: i32) -> i32 {
    ((i64::from(y) * i64::from(unit) + 128) >> 8) as i32
}

/// An edge that crosses the current row of samples: where it does, and how that changes from row to row. Positions
/// are rounded downwards, as by a division in each row.
#[derive(Debug, Clone, Copy)]
struct Crossing {
    x: i32,
    winding: i32,
    /// The first row that the edge does not cross.
    end: i32,
    /// What is left of the division that gave `x`.
    rest: i64,
    step: i32,
    step_rest: i64,
    divisor: i64,
}

impl Crossing {
    /// The crossing at a height in rows of samples, which is given twice so that the middle of a row is whole; a
    /// pixel has `unit` rows, and the next one is asked for `step` further down.
    fn new(edge: &Edge, twice: i64, step: i64, unit: i32) -> Crossing {
        let (dx, dy) = (
            i64::from(edge.bottom.0 - edge.top.0),
            i64::from(edge.bottom.1 - edge.top.1),
        );
        let mut crossing = Crossing {
            x: edge.top.0,
            winding: edge.winding,
            end: edge.rows.1,
            rest: 0,
            step: 0,
            step_rest: 0,
            divisor: 1,
        };
        if dx == 0 {
            return crossing;
        }
        let divisor = dy * 2 * i64::from(unit);
        let down = twice * i64::from(ONE) - i64::from(edge.top.1) * 2 * i64::from(unit);
        let divide = |down: i64| match dx.checked_mul(down) {
            Some(product) => (product.div_euclid(divisor), product.rem_euclid(divisor)),
            // Lines that lead far out of the picture.
            None => {
                let (product, divisor) = (i128::from(dx) * i128::from(down), i128::from(divisor));
                let (quotient, rest) = (product.div_euclid(divisor), product.rem_euclid(divisor));
                (quotient as i64, rest as i64)
            }
        };
        let (right, rest) = divide(down);
        let (step, step_rest) = divide(step * i64::from(ONE));
        crossing.x = (i64::from(edge.top.0) + right) as i32;
        (crossing.rest, crossing.divisor) = (rest, divisor);
        (crossing.step, crossing.step_rest) = (step as i32, step_rest);
        crossing
    }

    /// Goes to the next row.
    fn advance(&mut self) {
        self.x = self.x.wrapping_add(self.step);
        self.rest += self.step_rest;
        if self.rest >= self.divisor {
            self.rest -= self.divisor;
            self.x = self.x.wrapping_add(1);
        }
    }

    fn is_vertical(&self) -> bool {
        self.step == 0 && self.step_rest == 0
    }
}

/// Pixels, or 256ths of them, the right and lower bounds excluded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) left: i32,
    pub(crate) top: i32,
    pub(crate) right: i32,
    pub(crate) bottom: i32,
}

impl Bounds {
    pub(crate) fn intersect(self, other: Bounds) -> Bounds {
        Bounds {
            left: self.left.max(other.left),
            top: self.top.max(other.top),
            right: self.right.min(other.right),
            bottom: self.bottom.min(other.bottom),
        }
    }

    pub(crate) fn is_empty(self) -> bool {
        self.left >= self.right || self.top >= self.bottom
    }

    /// The pixels that bounds in 256ths touch.
    pub(crate) fn pixels(self) -> Bounds {
        let up =
            |side: i32| (i64::from(side) + i64::from(ONE) - 1).div_euclid(i64::from(ONE)) as i32;
        Bounds {
            left: self.left.div_euclid(ONE),
            top: self.top.div_euclid(ONE),
            right: up(self.right),
            bottom: up(self.bottom),
        }
    }
}

impl Polygons {
    /// Adds a polygon; its last point is joined to its first.
    pub(crate) fn add(&mut self, points: &[Fixed]) {
        let Some(last) = points.last() else { return };
        let mut from = *last;
        for to in points {
            self.edge(from, *to);
            from = *to;
        }
    }

    /// Adds a convex polygon of [`convex`], moved to a point.
    pub(crate) fn add_at(&mut self, (x, y): Fixed, points: &[Fixed]) {
        let Some(last) = points.last() else { return };
        let at = |point: &Fixed| (x.saturating_add(point.0), y.saturating_add(point.1));
        let mut from = at(last);
        for to in points {
            self.edge(from, at(to));
            from = at(to);
        }
    }

    /// Adds a polygon so that it winds as all convex ones added this way: together they cover
    /// their union.
    pub(crate) fn add_convex(&mut self, points: &mut [Fixed]) {
        convex(points);
        self.add(points);
    }

    fn edge(&mut self, from: Fixed, to: Fixed) {
        if from.1 == to.1 {
            return;
        }
        self.oblique |= from.0 != to.0;
        self.edges.push(if from.1 < to.1 {
            Edge {
                top: from,
                bottom: to,
                winding: 1,
                rows: (0, 0),
            }
        } else {
            Edge {
                top: to,
                bottom: from,
                winding: -1,
                rows: (0, 0),
            }
        });
    }

    /// The inside of a path.
    pub(crate) fn of_path(path: &Path, zoom: f64) -> Polygons {
        let mut polygons = Polygons::default();
        for (points, _) in flatten(path, zoom) {
            let points: Vec<Fixed> = points
                .iter()
                .map(|point| (fixed(point.x), fixed(point.y)))
                .collect();
            polygons.add(&points);
        }
        polygons
    }

    /// The rectangle that the polygons are, in 256ths of a pixel, if they are one.
    pub(crate) fn rectangle(&self) -> Option<Bounds> {
        let [first, second] = self.edges[..] else {
            return None;
        };
        let same = !self.oblique
            && (first.top.1, first.bottom.1, first.winding)
                == (second.top.1, second.bottom.1, -second.winding);
        same.then_some(Bounds {
            left: first.top.0.min(second.top.0),
            top: first.top.1,
            right: first.top.0.max(second.top.0),
            bottom: first.bottom.1,
        })
    }

    /// Calls `rows` for rows of pixels that are touched inside of `limits`, a rectangle in 256ths of a pixel, and are
    /// covered alike: with the rows, their first pixel and the coverage of each pixel. Without `smooth`, a pixel is covered if its centre is.
    pub(crate) fn cover(
        mut self,
        limits: Bounds,
        smooth: bool,
        mut rows: impl FnMut(Range<i32>, i32, &[u8]),
    ) {
        if limits.is_empty() || self.edges.is_empty() {
            return;
        }
        let clip = limits.pixels();
        let unit = if smooth && self.oblique { ROWS } else { ONE };
        let inside = (row_of(limits.top, unit), row_of(limits.bottom, unit));
        for edge in &mut self.edges {
            let (top, bottom) = (row_of(edge.top.1, unit), row_of(edge.bottom.1, unit));
            edge.rows = (top.max(inside.0), bottom.min(inside.1));
        }
        self.edges.retain(|edge| edge.rows.0 < edge.rows.1);
        let lowest = self.edges.iter().map(|edge| edge.rows.1).max().unwrap_or(0);
        // Dashes of a vertical line come from below or from above.
        if let [first, .., last] = &self.edges[..]
            && first.rows.0 > last.rows.0
        {
            self.edges.reverse();
        }
        self.edges.sort_by_key(|edge| edge.rows.0);
        let Some(highest) = self.edges.first().map(|edge| edge.rows.0) else {
            return;
        };
        let end = clip.bottom.min(lowest.div_euclid(unit) + 1);
        let mut sweep = Sweep {
            edges: &self.edges,
            waiting: 0,
            crossings: Vec::new(),
            entering: Vec::new(),
            unit,
            smooth,
        };
        let mut line = Line::new(limits);
        let mut y = clip.top.max(highest.div_euclid(unit));
        while y < end {
            let is_steady = sweep.pixels(y, &mut line);
            let coverage = line.finish(unit);
            let next = match is_steady {
                true => sweep.next_change(y + 1).min(end),
                false => y + 1,
            };
            if let Some((x, coverage)) = coverage {
                rows(y..next, x, coverage);
            }
            y = next;
        }
    }
}

/// Goes down over the edges of polygons.
struct Sweep<'a> {
    /// By their first row.
    edges: &'a [Edge],
    /// The first edge that is still below.
    waiting: usize,
    /// Those of the current row, from left to right.
    crossings: Vec<Crossing>,
    /// Those that begin with it.
    entering: Vec<Crossing>,
    /// Rows of samples in a pixel.
    unit: i32,
    smooth: bool,
}

impl Sweep<'_> {
    /// Adds the coverage of a row of pixels to `line`. Says whether no edge begins or ends in it.
    fn pixels(&mut self, y: i32, line: &mut Line) -> bool {
        let (top, bottom) = (y * self.unit, (y + 1) * self.unit);
        if !self.smooth {
            // As in cairo, the row that begins with the centre decides which edges count, and where the row before
            // it begins they are sampled.
            let centre = top + ONE / 2;
            self.enter(centre, 2 * i64::from(centre - 1), 2 * i64::from(ONE));
            self.add(ONE, line);
            self.crossings.iter_mut().for_each(Crossing::advance);
            return true;
        }
        self.enter(top, 2 * i64::from(top) + 1, 2);
        let mut band = self.band(top).min(bottom);
        let is_steady = band == bottom;
        if self.unit == ROWS {
            for row in top..bottom {
                if row > top {
                    self.enter(row, 2 * i64::from(row) + 1, 2);
                }
                self.add(1, line);
                self.crossings.iter_mut().for_each(Crossing::advance);
            }
            return is_steady;
        }
        // In a band in which no edge begins or ends, rectilinear shapes are rectangles.
        self.add(band - top, line);
        while band < bottom {
            let row = band;
            self.enter(row, 2 * i64::from(row) + 1, 2);
            band = self.band(row).min(bottom);
            self.add(band - row, line);
        }
        is_steady
    }

    /// Takes the edges that cross a row, and puts them in order.
    fn enter(&mut self, row: i32, twice: i64, step: i64) {
        self.crossings.retain(|crossing| crossing.end > row);
        if self.unit == ROWS || !self.smooth {
            sort(&mut self.crossings);
        }
        while let Some(edge) = self.edges.get(self.waiting) {
            if edge.rows.0 > row {
                break;
            }
            self.waiting += 1;
            if edge.rows.1 > row {
                let crossing = Crossing::new(edge, twice, step, self.unit);
                self.entering.push(crossing);
            }
        }
        if self.entering.is_empty() {
            return;
        }
        sort(&mut self.entering);
        let mut old = self.crossings.len();
        self.crossings.extend_from_slice(&self.entering);
        let mut place = self.crossings.len();
        for crossing in self.entering.drain(..).rev() {
            while old > 0 && self.crossings[old - 1].x > crossing.x {
                (old, place) = (old - 1, place - 1);
                self.crossings[place] = self.crossings[old];
            }
            place -= 1;
            self.crossings[place] = crossing;
        }
    }

    /// The next row at which an edge begins or ends.
    fn band(&self, row: i32) -> i32 {
        let ends = self.crossings.iter().map(|crossing| crossing.end).min();
        let next = self.edges.get(self.waiting).map(|edge| edge.rows.0);
        let next = ends.into_iter().chain(next).min();
        next.unwrap_or(i32::MAX).max(row + 1)
    }

    /// Adds the spans of a band between the crossings.
    fn add(&self, weight: i32, line: &mut Line) {
        let (mut winding, mut begin) = (0, 0);
        for crossing in &self.crossings {
            if winding == 0 {
                begin = crossing.x;
            }
            winding += crossing.winding;
            if winding == 0 {
                line.add(begin, crossing.x, weight, self.smooth);
            }
        }
    }

    /// The first row of pixels from `y` on that may differ from the one before it: where all edges are vertical, the
    /// one in which an edge begins or ends.
    fn next_change(&self, y: i32) -> i32 {
        if !self.crossings.iter().all(Crossing::is_vertical) {
            return y;
        }
        self.band(y * self.unit - 1).div_euclid(self.unit).max(y)
    }
}

/// Puts crossings in order, which nearly are: the row before was.
fn sort(crossings: &mut [Crossing]) {
    let mut moves = 16 * crossings.len();
    for place in 1..crossings.len() {
        let crossing = crossings[place];
        let mut at = place;
        while at > 0 && crossings[at - 1].x > crossing.x {
            crossings[at] = crossings[at - 1];
            at -= 1;
        }
        crossings[at] = crossing;
        match moves.checked_sub(place - at) {
            Some(left) => moves = left,
            None => return crossings.sort_unstable_by_key(|crossing| crossing.x),
        }
    }
}

/// Coverage of one row of pixels: the differences from pixel to pixel.
struct Line {
    /// In 256ths of a pixel.
    limits: Bounds,
    clip: Bounds,
    differences: Vec<i32>,
    touched: (usize, usize),
    coverage: Vec<u8>,
}

impl Line {
    fn new(limits: Bounds) -> Line {
        let clip = limits.pixels();
        let width = (clip.right - clip.left) as usize;
        Line {
            limits,
            clip,
            differences: vec![0; width + 2],
            touched: (usize::MAX, 0),
            coverage: Vec::new(),
        }
    }

    /// Adds the pixels between two places.
    fn add(&mut self, from: i32, to: i32, weight: i32, smooth: bool) {
        let limit = |x: i32| {
            let x = x.clamp(self.limits.left, self.limits.right) - self.clip.left * ONE;
            // The centre of a pixel decides: from there on, it is covered whole.
            if smooth {
                x
            } else {
                (x + ONE / 2 - 1).div_euclid(ONE) * ONE
            }
        };
        let (from, to) = (limit(from), limit(to));
        if from >= to {
            return;
        }
        for (x, sign) in [(from, weight), (to, -weight)] {
            let (pixel, part) = ((x / ONE) as usize, x % ONE);
            self.differences[pixel] += sign * (ONE - part);
            self.differences[pixel + 1] += sign * part;
        }
        self.touched.0 = self.touched.0.min((from / ONE) as usize);
        self.touched.1 = self.touched.1.max((to / ONE) as usize + 2);
    }

    /// The first pixel that is touched, and the coverage from there on. The next row begins.
    fn finish(&mut self, whole: i32) -> Option<(i32, &[u8])> {
        let (first, end) = std::mem::replace(&mut self.touched, (usize::MAX, 0));
        if first >= end {
            return None;
        }
        self.coverage.clear();
        let mut area = 0;
        let end = end.min(self.differences.len());
        let differences = self.differences[first..end].iter_mut();
        self.coverage.extend(differences.map(|difference| {
            area += std::mem::take(difference);
            match whole {
                ONE => (area >> 8).min(255) as u8,
                // `area` is at most 256 * 15.
                _ => ((area * 34 + 256) >> 9).min(255) as u8,
            }
        }));
        let width = (self.clip.right - self.clip.left) as usize;
        self.coverage.truncate(width.saturating_sub(first));
        Some((self.clip.left + first as i32, &self.coverage))
    }
}

/// The parts of a path as points, zoomed, and whether each is closed.
pub(crate) fn flatten(path: &Path, zoom: f64) -> Vec<(Vec<Point>, bool)> {
    let mut parts: Vec<(Vec<Point>, bool)> = Vec::new();
    let scale = |point: Point| Point::new(point.x * zoom, point.y * zoom);
    for segment in &path.segments {
        match *segment {
            Segment::Move(to) => parts.push((vec![scale(to)], false)),
            Segment::Close => {
                if let Some(part) = parts.last_mut() {
                    part.1 = true;
                }
            }
            Segment::Line(to) => current(&mut parts, scale(to)).push(scale(to)),
            Segment::Curve(first, second, end) => {
                let (first, second, end) = (scale(first), scale(second), scale(end));
                let points = current(&mut parts, first);
                let begin = points.last().copied().unwrap_or(first);
                let length = [(begin, first), (first, second), (second, end)]
                    .iter()
                    .map(|(a, b)| (a.x - b.x).hypot(a.y - b.y))
                    .sum::<f64>();
                let steps = if length.is_finite() {
                    (length.sqrt() * 2.0).clamp(4.0, 500.0) as u32
                } else {
                    1
                };
                points.extend((1..=steps).map(|step| {
                    let t = f64::from(step) / f64::from(steps);
                    let u = 1.0 - t;
                    let mix = |a: f64, b: f64, c: f64, d: f64| {
                        u * u * u * a + 3.0 * u * u * t * b + 3.0 * u * t * t * c + t * t * t * d
                    };
                    Point::new(
                        mix(begin.x, first.x, second.x, end.x),
                        mix(begin.y, first.y, second.y, end.y),
                    )
                }));
            }
        }
    }
    parts
}

/// The part that a line or curve goes on; after a closed one, a new one at the same beginning.
fn current(parts: &mut Vec<(Vec<Point>, bool)>, or: Point) -> &mut Vec<Point> {
    let begin = match parts.last() {
        Some((_, false)) => None,
        Some((points, true)) => Some(points[0]),
        None => Some(or),
    };
    if let Some(begin) = begin {
        parts.push((vec![begin], false));
    }
    let last = parts.len() - 1;
    &mut parts[last].0
}

/// The pixel that a position is rounded to.
pub(crate) fn whole(value: f64) -> i32 {
    if value.is_nan() {
        0
    } else {
        value.clamp(-FAR, FAR).round() as i32
    }
}
