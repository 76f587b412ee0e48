//! Outlines of lines: width, caps, joins and dashes.

use crate::pictures::picture::{Cap, Join, Path, Point, Segment, Stroke};
use crate::pictures::raster::{Fixed, Polygons, convex, fixed, flatten};
use std::f64::consts::PI;
use std::rc::Rc;

/// How far a polygon may be from a round cap or join, in pixels; as in cairo.
const TOLERANCE: f64 = 0.1;
/// The limit of a mitre, in widths.
pub(crate) const MITER_LIMIT: f64 = 10.0;
/// The greatest area of the dashes of a path and as much around each, in pixels: with more, the line is drawn
/// solid. Their outlines are in memory together.
const MAX_DASHES: f64 = 1_000_000.0;
/// Dashes and gaps that are shorter on average, in pixels, look solid.
const MIN_DASH: f64 = 1.0 / 16.0;
/// What is shorter, in pixels, is nothing: the formats of pictures have no digits for it.
const MIN_LENGTH: f64 = 1e-6;

/// Whether a line has a width that can be drawn.
pub(crate) fn is_visible(style: &Stroke) -> bool {
    style.width.is_finite() && style.width > 0.0
}

/// Lengths of dashes and gaps, and the offset, zoomed; `None` if the line is solid or they make no
/// sense.
pub(crate) fn pattern(style: &Stroke, zoom: f64) -> Option<(Vec<f64>, f64)> {
    let lengths = style.dashes.iter().map(|length| match length * zoom {
        length if (0.0..MIN_LENGTH).contains(&length) => 0.0,
        length => length,
    });
    let lengths: Vec<f64> = lengths.collect();
    let offset = style.dash_offset * zoom;
    let valid = lengths
        .iter()
        .all(|length| length.is_finite() && *length >= 0.0);
    let odd = lengths.len() % 2 == 1;
    let gaps: f64 = lengths
        .iter()
        .skip(usize::from(!odd))
        .step_by(if odd { 1 } else { 2 })
        .sum();
    // An odd pattern is taken twice.
    let total = 2.0 * lengths.iter().sum::<f64>();
    (valid && gaps > 0.0 && total.is_finite())
        .then_some((lengths, if offset.is_finite() { offset } else { 0.0 }))
}

/// The area that a line covers.
pub(crate) fn outline(path: &Path, style: &Stroke, zoom: f64) -> Polygons {
    let mut polygons = Polygons::default();
    let half = style.width * zoom / 2.0;
    if !is_visible(style) {
        return polygons;
    }
    let outliner = Outliner {
        half,
        style,
        disc: disc(half),
    };
    for (points, closed) in flatten(path, zoom) {
        let points: Vec<Point> = points
            .iter()
            .map(|point| {
                Point::new(
                    f64::from(fixed(point.x)) / 256.0,
                    f64::from(fixed(point.y)) / 256.0,
                )
            })
            .collect();
        match Dashes::new(style, zoom, &points, closed) {
            Some(dashes) => dashes.cut(&points, closed, |dash| {
                outliner.draw(dash, false, &mut polygons);
            }),
            None => outliner.draw(&points, closed, &mut polygons),
        }
    }
    polygons
}

/// A horizontal or vertical line without caps, perhaps dashed: what it covers, in 256ths of a pixel. Grids are of
/// these.
pub(crate) struct Straight {
    pub(crate) is_horizontal: bool,
    /// From where to where across the line.
    pub(crate) across: (i32, i32),
    /// From where to where along it.
    pub(crate) along: Spans,
}

/// The dashes of the last straight line: lines of a grid have the same.
#[derive(Default)]
pub(crate) struct LastDashes(Option<(Stroke, [f64; 2], Spans)>);

/// From where to where, in 256ths of a pixel; in order, and apart from each other.
type Spans = Rc<[(i32, i32)]>;

/// The line that a path of one straight segment is, if it is one. All paths are of one picture, with one zoom.
pub(crate) fn straight(
    path: &Path,
    style: &Stroke,
    zoom: f64,
    last: &mut LastDashes,
) -> Option<Straight> {
    let [Segment::Move(from), Segment::Line(to)] = path.segments[..] else {
        return None;
    };
    let is_plain = style.cap == Cap::Butt && style.join == Join::Miter && is_visible(style);
    let part = |value: f64| f64::from(fixed(value * zoom)) / 256.0;
    let [from, to] = [from, to].map(|point| Point::new(part(point.x), part(point.y)));
    let is_horizontal = from.y == to.y;
    if !is_plain || from == to || !(is_horizontal || from.x == to.x) {
        return None;
    }
    let half = fixed(style.width * zoom / 2.0);
    let middle = fixed(if is_horizontal { from.y } else { from.x });
    let ends = [from, to].map(|point| if is_horizontal { point.x } else { point.y });
    let along = match &last.0 {
        Some((known, between, along)) if known == style && *between == ends => Rc::clone(along),
        _ => {
            let along: Spans = dashes_between(ends, style, zoom).into();
            if !style.dashes.is_empty() {
                last.0 = Some((style.clone(), ends, Rc::clone(&along)));
            }
            along
        }
    };
    Some(Straight {
        is_horizontal,
        across: (middle - half, middle + half),
        along,
    })
}

/// The dashes of a straight line, in 256ths of a pixel; in order, and apart from each other.
fn dashes_between([from, to]: [f64; 2], style: &Stroke, zoom: f64) -> Vec<(i32, i32)> {
    let mut along = Vec::new();
    let mut add = |from: f64, to: f64| {
        let (a, b) = (fixed(from), fixed(to));
        if a != b {
            along.push((a.min(b), a.max(b)));
        }
    };
    let points = [Point::new(from, 0.0), Point::new(to, 0.0)];
    match Dashes::new(style, zoom, &points, false) {
        Some(dashes) => dashes.cut_straight(from, to, add),
        None => add(from, to),
    }
    if along.first() > along.last() {
        along.reverse();
    }
    along.sort_unstable();
    along.dedup_by(|next, before| {
        let overlaps = next.0 <= before.1;
        if overlaps {
            before.1 = before.1.max(next.1);
        }
        overlaps
    });
    along
}

struct Outliner<'a> {
    half: f64,
    style: &'a Stroke,
    disc: Vec<Fixed>,
}

/// The polygon that stands for a disc, around the origin.
fn disc(radius: f64) -> Vec<Fixed> {
    let needed = if TOLERANCE >= radius {
        4.0
    } else {
        2.0 * PI / (1.0 - TOLERANCE / radius).acos()
    };
    let count = (needed.ceil().clamp(4.0, 1000.0) as u32).next_multiple_of(2);
    let mut points: Vec<Fixed> = (0..count)
        .map(|number| {
            let (sin, cos) = (2.0 * PI * f64::from(number) / f64::from(count)).sin_cos();
            (fixed(radius * cos), fixed(radius * sin))
        })
        .collect();
    convex(&mut points);
    points
}

impl Outliner<'_> {
    fn draw(&self, points: &[Point], closed: bool, polygons: &mut Polygons) {
        if let ([from, to], Cap::Butt, false) = (points, self.style.cap, closed)
            && from != to
        {
            return self.segment(*from, *to, polygons);
        }
        let mut points = points.to_vec();
        points.dedup();
        let closed = closed && points.len() > 1;
        if closed && points.first() == points.last() {
            points.pop();
        }
        if let [only] = points[..] {
            if self.style.cap == Cap::Round {
                self.dot(only, polygons);
            }
            return;
        }
        let mut segments: Vec<(Point, Point)> =
            points.windows(2).map(|pair| (pair[0], pair[1])).collect();
        if closed && points.len() > 1 {
            segments.push((points[points.len() - 1], points[0]));
        }
        let straight = segments
            .iter()
            .all(|(from, to)| from.x == to.x || from.y == to.y);
        if straight && self.style.join == Join::Miter && self.style.cap == Cap::Butt {
            return self.boxes(&segments, closed, polygons);
        }
        for (from, to) in &segments {
            self.oblique(*from, *to, polygons);
        }
        for (number, (_, corner)) in segments.iter().enumerate() {
            let next = match segments.get(number + 1) {
                Some(next) => next,
                None if closed => &segments[0],
                None => break,
            };
            self.join(segments[number].0, *corner, next.1, polygons);
        }
        if !closed && self.style.cap == Cap::Round {
            for end in [segments[0].0, segments[segments.len() - 1].1] {
                self.dot(end, polygons);
            }
        }
    }

    /// A line of one segment without caps.
    fn segment(&self, from: Point, to: Point, polygons: &mut Polygons) {
        let is_straight = from.x == to.x || from.y == to.y;
        match is_straight && self.style.join == Join::Miter {
            true => self.boxes(&[(from, to)], false, polygons),
            false => self.oblique(from, to, polygons),
        }
    }

    fn oblique(&self, from: Point, to: Point, polygons: &mut Polygons) {
        let normal = self.normal(from, to);
        polygons.add_convex(&mut [
            at(from, normal, 1.0),
            at(to, normal, 1.0),
            at(to, normal, -1.0),
            at(from, normal, -1.0),
        ]);
    }

    /// Horizontal and vertical lines as rectangles, longer where a corner is.
    fn boxes(&self, segments: &[(Point, Point)], closed: bool, polygons: &mut Polygons) {
        let half = fixed(self.half);
        let last = segments.len() - 1;
        for (number, (from, to)) in segments.iter().enumerate() {
            let horizontal = from.y == to.y;
            let turns = |other: &(Point, Point)| (other.0.y == other.1.y) != horizontal;
            let before = if number > 0 {
                Some(number - 1)
            } else {
                closed.then_some(last)
            };
            let after = if number < last {
                Some(number + 1)
            } else {
                closed.then_some(0)
            };
            let longer = |other: Option<usize>| {
                if other.is_some_and(|other| turns(&segments[other])) {
                    half
                } else {
                    0
                }
            };
            let (mut begin, mut end) = ((longer(before), from), (longer(after), to));
            if (end.1.x, end.1.y) < (begin.1.x, begin.1.y) {
                (begin, end) = (end, begin);
            }
            let ((ax, ay), (bx, by)) = (
                (fixed(begin.1.x), fixed(begin.1.y)),
                (fixed(end.1.x), fixed(end.1.y)),
            );
            let (left, top, right, bottom) = if horizontal {
                (ax - begin.0, ay - half, bx + end.0, by + half)
            } else {
                (ax - half, ay - begin.0, bx + half, by + end.0)
            };
            polygons.add_convex(&mut [(left, top), (right, top), (right, bottom), (left, bottom)]);
        }
    }

    /// Half of the width, across a segment.
    fn normal(&self, from: Point, to: Point) -> Point {
        let (dx, dy) = (to.x - from.x, to.y - from.y);
        let length = dx.hypot(dy);
        Point::new(-dy / length * self.half, dx / length * self.half)
    }

    fn dot(&self, centre: Point, polygons: &mut Polygons) {
        polygons.add_at((fixed(centre.x), fixed(centre.y)), &self.disc);
    }

    fn join(&self, from: Point, corner: Point, to: Point, polygons: &mut Polygons) {
        if self.style.join == Join::Round {
            return self.dot(corner, polygons);
        }
        let (before, after) = (self.normal(from, corner), self.normal(corner, to));
        let turn = before.x * after.y - before.y * after.x;
        // The outer side of the corner.
        let side = if turn > 0.0 { -1.0 } else { 1.0 };
        let (first, second) = (at(corner, before, side), at(corner, after, side));
        let centre = (fixed(corner.x), fixed(corner.y));
        let squared = self.half * self.half;
        let cosine = (before.x * after.x + before.y * after.y) / squared;
        // A mitre is 1 / sin(angle / 2) widths long, and sin^2(angle / 2) = (1 + cos(turn)) / 2.
        if 2.0 <= MITER_LIMIT * MITER_LIMIT * (1.0 + cosine) && cosine > -1.0 {
            let scale = 1.0 / (1.0 + cosine);
            let tip = Point::new((before.x + after.x) * scale, (before.y + after.y) * scale);
            polygons.add_convex(&mut [centre, first, at(corner, tip, side), second]);
        } else {
            polygons.add_convex(&mut [centre, first, second]);
        }
    }
}

fn at(point: Point, offset: Point, scale: f64) -> Fixed {
    (
        fixed(point.x + offset.x * scale),
        fixed(point.y + offset.y * scale),
    )
}

/// Lengths of dashes and gaps in pixels, in pairs.
pub(crate) struct Dashes {
    lengths: Vec<f64>,
    offset: f64,
}

impl Dashes {
    /// `None` if the line is solid.
    fn new(style: &Stroke, zoom: f64, points: &[Point], closed: bool) -> Option<Dashes> {
        let (mut lengths, offset) = pattern(style, zoom)?;
        if lengths.len() % 2 == 1 {
            lengths.extend_from_within(..);
        }
        let total: f64 = lengths.iter().sum();
        let mut way: f64 = points
            .windows(2)
            .map(|pair| (pair[1].x - pair[0].x).hypot(pair[1].y - pair[0].y))
            .sum();
        if let (true, Some(first), Some(last)) = (closed, points.first(), points.last()) {
            way += (first.x - last.x).hypot(first.y - last.y);
        }
        let dashes = way / total * lengths.len() as f64;
        let is_short = total / (lengths.len() as f64) < MIN_DASH;
        if is_short || dashes * (1.0 + style.width * zoom) > MAX_DASHES {
            return None;
        }
        Some(Dashes {
            lengths,
            offset: offset.rem_euclid(total),
        })
    }

    /// Which length the line begins in, and what is left of it.
    fn begin(&self) -> (usize, f64) {
        let mut index = 0;
        let mut left = self.lengths[0] - self.offset;
        while left < 0.0 || (left == 0.0 && self.offset > 0.0 && index + 1 < self.lengths.len()) {
            index = (index + 1) % self.lengths.len();
            left += self.lengths[index];
        }
        (index, left)
    }

    /// Draws the parts of a horizontal or vertical line that are dashes, as [`Dashes::cut`] does.
    fn cut_straight(&self, from: f64, to: f64, mut draw: impl FnMut(f64, f64)) {
        let (mut index, mut left) = self.begin();
        let mut from = from;
        let mut length = (to - from).abs();
        while length > left {
            let next = from + (to - from) * (left / length);
            length -= left;
            if index % 2 == 0 {
                draw(from, next);
            }
            from = next;
            index += 1;
            if index == self.lengths.len() {
                index = 0;
            }
            left = self.lengths[index];
        }
        if index % 2 == 0 {
            draw(from, to);
        }
    }

    /// Draws the parts of a line that are dashes.
    fn cut(&self, points: &[Point], closed: bool, mut draw: impl FnMut(&[Point])) {
        let (mut index, mut left) = self.begin();
        let mut dash: Vec<Point> = Vec::new();
        let Some(mut from) = points.first().copied() else {
            return;
        };
        if index % 2 == 0 {
            dash.push(from);
        }
        for to in points.iter().skip(1).chain(closed.then_some(&points[0])) {
            let mut length = (to.x - from.x).hypot(to.y - from.y);
            while length > left {
                let share = left / length;
                from = Point::new(
                    from.x + (to.x - from.x) * share,
                    from.y + (to.y - from.y) * share,
                );
                length -= left;
                if index % 2 == 0 {
                    dash.push(from);
                    draw(&dash);
                    dash.clear();
                } else {
                    dash.clear();
                    dash.push(from);
                }
                index = (index + 1) % self.lengths.len();
                left = self.lengths[index];
                // Two lengths of 0 in turn cannot go on for ever: their sum is more than 0.
            }
            left -= length;
            from = *to;
            if index % 2 == 0 {
                dash.push(from);
            }
        }
        if dash.len() > 1 {
            draw(&dash);
        }
    }
}
