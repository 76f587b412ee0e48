//! From polygons to coverage of pixels.
//!
//! Coordinates have 8 bits after the point, as in cairo. Rectilinear shapes are covered exactly;
//! others are sampled in 15 rows of each pixel, horizontally exact, so that edges differ little from
//! cairo's. tiny-skia's 4 by 4 samples would differ by up to 16 levels.

use crate::picture::{Path, Point, Segment};

/// One pixel in fixed point.
pub(crate) const ONE: i32 = 256;
/// Rows of samples in a pixel, for shapes that are not rectilinear.
const ROWS: i32 = 15;
/// Coordinates are limited to this many pixels, far outside of any picture.
const FAR: f64 = 4_000_000.0;

/// A coordinate in 256ths of a pixel.
pub(crate) fn fixed(value: f64) -> i32 {
    if value.is_nan() {
        0
    } else {
        (value.clamp(-FAR, FAR) * f64::from(ONE)).round_ties_even() as i32
    }
}

/// A point in 256ths of a pixel.
pub(crate) type Fixed = (i32, i32);

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

impl Edge {
    /// Where the edge is at a height in rows of samples, which is given twice so that the middle of
    /// a row is whole; a pixel has `unit` rows.
    fn x_at(&self, twice: i64, unit: i32) -> i32 {
        let (dx, dy) = (
            i64::from(self.bottom.0 - self.top.0),
            i64::from(self.bottom.1 - self.top.1),
        );
        if dx == 0 {
            return self.top.0;
        }
        let down = twice * i64::from(ONE) - i64::from(self.top.1) * 2 * i64::from(unit);
        let over = dy * 2 * i64::from(unit);
        let right = match dx.checked_mul(down) {
            Some(product) => product.div_euclid(over),
            // Lines that lead far out of the picture.
            None => (i128::from(dx) * i128::from(down)).div_euclid(i128::from(over)) as i64,
        };
        (i64::from(self.top.0) + right) as i32
    }

    /// The rows of samples that the edge crosses: its ends are rounded, as by cairo.
    fn set_rows(&mut self, unit: i32) {
        let row = |y: i32| ((i64::from(y) * i64::from(unit) + 128) >> 8) as i32;
        self.rows = (row(self.top.1), row(self.bottom.1));
    }
}

/// Pixels, the right and lower bounds excluded.
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

    /// Adds a polygon so that it winds as all convex ones added this way: together they cover
    /// their union.
    pub(crate) fn add_convex(&mut self, points: &mut [Fixed]) {
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

    /// The rectangle of whole pixels that the polygons are, if they are one.
    pub(crate) fn whole_pixels(&self) -> Option<Bounds> {
        let [first, second] = self.edges[..] else {
            return None;
        };
        let same = !self.oblique
            && (first.top.1, first.bottom.1, first.winding)
                == (second.top.1, second.bottom.1, -second.winding);
        let (left, right) = (first.top.0.min(second.top.0), first.top.0.max(second.top.0));
        let (top, bottom) = (first.top.1, first.bottom.1);
        (same
            && [left, right, top, bottom]
                .iter()
                .all(|side| side % ONE == 0))
        .then_some(Bounds {
            left: left / ONE,
            top: top / ONE,
            right: right / ONE,
            bottom: bottom / ONE,
        })
    }

    /// Calls `row` for each row of pixels that is touched inside of `clip`, with its first pixel
    /// and the coverage of each pixel. Without `smooth`, a pixel is covered if its centre is.
    pub(crate) fn cover(
        mut self,
        clip: Bounds,
        smooth: bool,
        mut row: impl FnMut(i32, i32, &[u8]),
    ) {
        if clip.is_empty() || self.edges.is_empty() {
            return;
        }
        let unit = if smooth && self.oblique { ROWS } else { ONE };
        self.edges.iter_mut().for_each(|edge| edge.set_rows(unit));
        self.edges.retain(|edge| edge.rows.0 < edge.rows.1);
        let highest = self.edges.iter().map(|edge| edge.rows.0).min().unwrap_or(0);
        let lowest = self.edges.iter().map(|edge| edge.rows.1).max().unwrap_or(0);
        let first = clip.top.max(highest.div_euclid(unit));
        let end = clip.bottom.min(lowest.div_euclid(unit) + 1);
        self.edges.sort_by_key(|edge| edge.rows.0);
        let mut waiting = self.edges.iter().copied().peekable();
        let mut active: Vec<Edge> = Vec::new();
        let mut line = Line::new(clip);
        let mut heights = Vec::new();
        let mut rows: Vec<Vec<(i32, i32)>> = Vec::new();
        for y in first..end {
            let (top, bottom) = (y * unit, (y + 1) * unit);
            active.retain(|edge| edge.rows.1 > top);
            while let Some(edge) = waiting.next_if(|edge| edge.rows.0 < bottom) {
                if edge.rows.1 > top {
                    active.push(edge);
                }
            }
            if active.is_empty() {
                continue;
            }
            heights.clear();
            if unit == ROWS {
                heights.extend((top..bottom).map(|row| (2 * i64::from(row) + 1, 1)));
            } else if smooth {
                bands(&active, top, bottom, &mut heights);
            } else {
                heights.push((i64::from(top) * 2 + i64::from(ONE), ONE));
            }
            rows.resize_with(rows.len().max(heights.len()), Vec::new);
            for edge in &active {
                // The heights ascend: those of the edge are a part of them.
                let begin =
                    heights.partition_point(|(sample, _)| *sample <= i64::from(edge.rows.0) * 2);
                let end =
                    heights.partition_point(|(sample, _)| *sample <= i64::from(edge.rows.1) * 2);
                for (row, (sample, _)) in rows[begin..end].iter_mut().zip(&heights[begin..end]) {
                    row.push((edge.x_at(*sample, unit), edge.winding));
                }
            }
            for ((_, weight), crossings) in heights.iter().zip(&mut rows) {
                crossings.sort_unstable();
                let mut winding = 0;
                let mut begin = 0;
                for (x, change) in crossings.drain(..) {
                    if winding == 0 {
                        begin = x;
                    }
                    winding += change;
                    if winding == 0 {
                        line.add(begin, x, *weight, smooth);
                    }
                }
            }
            line.finish(unit, |x, coverage| row(y, x, coverage));
        }
    }
}

/// The middle of each band of a row of pixels in which no edge begins or ends, twice, and its
/// height: in a band, rectilinear shapes are rectangles.
fn bands(active: &[Edge], top: i32, bottom: i32, heights: &mut Vec<(i64, i32)>) {
    let mut ends: Vec<i32> = active
        .iter()
        .flat_map(|edge| [edge.rows.0, edge.rows.1])
        .collect();
    ends.retain(|end| (top..bottom).contains(end));
    ends.extend([top, bottom]);
    ends.sort_unstable();
    ends.dedup();
    heights.extend(
        ends.windows(2)
            .map(|pair| (i64::from(pair[0]) + i64::from(pair[1]), pair[1] - pair[0])),
    );
}

/// Coverage of one row of pixels: the differences from pixel to pixel.
struct Line {
    clip: Bounds,
    differences: Vec<i32>,
    touched: (usize, usize),
    coverage: Vec<u8>,
}

impl Line {
    fn new(clip: Bounds) -> Line {
        let width = (clip.right - clip.left) as usize;
        Line {
            clip,
            differences: vec![0; width + 2],
            touched: (usize::MAX, 0),
            coverage: Vec::new(),
        }
    }

    /// Adds the pixels between two places.
    fn add(&mut self, from: i32, to: i32, weight: i32, smooth: bool) {
        let limit = |x: i32| {
            let x = x.clamp(self.clip.left * ONE, self.clip.right * ONE) - self.clip.left * ONE;
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

    fn finish(&mut self, whole: i32, row: impl FnOnce(i32, &[u8])) {
        let (first, end) = self.touched;
        if first >= end {
            return;
        }
        self.coverage.clear();
        let mut area = 0;
        let end = end.min(self.differences.len());
        for difference in &mut self.differences[first..end] {
            area += std::mem::take(difference);
            self.coverage.push(if whole == ONE {
                (area >> 8).min(255) as u8
            } else {
                // `area` is at most 256 * 15.
                ((area * 34 + 256) >> 9).min(255) as u8
            });
        }
        self.coverage.truncate(
            (self.clip.right - self.clip.left) as usize
                - first.min((self.clip.right - self.clip.left) as usize),
        );
        self.touched = (usize::MAX, 0);
        row(self.clip.left + first as i32, &self.coverage);
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
