//! Lines, areas and ticks.

use kymo_draw::{Colour as Ink, Item, Paint, Path, Point, Segment, Stroke};

use super::super::colour::Colour;
use super::super::elements::{Dash, Kind};
use super::super::picture::Graph;
use super::super::scale::{Columns, nearly_equal};
use super::Drawing;

/// Leaves out points on the way from one point to the next, as cairo does: its coordinates have 8 bits behind the
/// point. Most values are those of the pixel before.
pub(super) fn simplified(path: Path, zoom: f64) -> Path {
    let fixed = |point: Point| {
        // In the lowest bits of this sum is the whole number: much less work than a call of the library.
        const WHOLE: f64 = 6_755_399_441_055_744.0;
        let part = |value: f64| {
            // Less than 2^30: products of ways and their sums fit.
            let value = (value * zoom).clamp(-4e6, 4e6) * 256.0;
            i64::from((value + WHOLE).to_bits() as i32)
        };
        (part(point.x), part(point.y))
    };
    let mut segments: Vec<Segment> = Vec::with_capacity(path.segments.len());
    // The direction of the last segment, and where it ends.
    let mut direction = (0, 0);
    let mut end = (0, 0);
    let mut start = Point::default();
    for segment in path.segments {
        match segment {
            Segment::Line(_) | Segment::Close => {
                // A path is closed by a line to where it began.
                let to = match segment {
                    Segment::Line(point) => fixed(point),
                    _ => fixed(start),
                };
                let step = (to.0 - end.0, to.1 - end.1);
                if step == (0, 0) && direction != (0, 0) {
                    match segment {
                        // It is there already.
                        Segment::Close => drop(segments.pop()),
                        _ => continue,
                    }
                }
                let is_straight = step.0 * direction.1 == step.1 * direction.0
                    && step.0 * direction.0 + step.1 * direction.1 > 0;
                if is_straight {
                    segments.pop();
                }
                (direction, end) = (step, to);
                segments.push(segment);
            }
            Segment::Move(point) => {
                (direction, end, start) = ((0, 0), fixed(point), point);
                segments.push(segment);
            }
            segment => segments.push(segment),
        }
    }
    Path { segments }
}

impl Drawing<'_> {
    /// Lines, areas and ticks, inside of the graph.
    pub(super) fn series(&mut self, graph: &Graph, columns: &Columns) {
        let (top, right) = (self.bottom - self.height, self.left + self.width);
        let clip = Path::rectangle(self.left, top - 1.0, right, self.bottom + 1.0);
        let clips = !self.options.only_graph;
        if clips {
            self.picture.items.push(Item::Clip(clip));
        }
        let range = &columns.range;
        // Where areas end that do not stand on others.
        let ground = match () {
            () if range.min > 0.0 => range.min,
            () if range.max < 0.0 => range.max,
            () => 0.0,
        };
        let far = 9.0 * (range.max - range.min);
        let mut below: Vec<f64> = Vec::new();
        for (element, values) in graph.script.elements.iter().zip(&columns.values) {
            let Some(curve) = element.kind.curve() else {
                continue;
            };
            let colour = curve.colour.filter(|colour| colour.alpha != 0.0);
            if let Kind::Tick { fraction, .. } = &element.kind {
                if let Some(colour) = colour {
                    self.ticks(values, *fraction, colour.into());
                }
                continue;
            }
            let near = values.iter().map(|&value| match value {
                f64::INFINITY => range.max,
                f64::NEG_INFINITY => range.min,
                value => value.clamp(range.min - far, range.max + far),
            });
            let mut values: Vec<f64> = near.collect();
            let base = |pixel: usize| match (curve.stack, below.get(pixel)) {
                (true, Some(value)) => *value,
                _ => ground,
            };
            if let Some(colour) = colour {
                match &element.kind {
                    Kind::Line { width, dash, .. } => {
                        self.curve(&values, *width, dash.as_ref(), colour.into());
                    }
                    Kind::Area { gradient, .. } => {
                        self.filled(&values, &base, colour, gradient.as_ref());
                    }
                    _ => {}
                }
            }
            // What stands on something unknown stands on what is below that.
            for (pixel, value) in values.iter_mut().enumerate() {
                if value.is_nan() {
                    *value = base(pixel);
                }
            }
            below = values;
        }
        if clips {
            self.picture.items.push(Item::Unclip);
        }
    }

    fn ticks(&mut self, values: &[f64], fraction: f64, colour: Ink) {
        let (top, bottom) = (self.bottom - self.height, self.bottom);
        let length = fraction * self.height;
        let (from, to) = match fraction > 0.0 {
            true => (bottom + 1.0, bottom - length),
            false => (top - 1.0, top - length),
        };
        if fraction == 0.0 {
            return;
        }
        for (pixel, value) in values.iter().enumerate() {
            if !value.is_nan() && *value != 0.0 {
                let x = self.left + pixel as f64;
                self.line((x, from), (x, to), 1.0, colour);
            }
        }
    }

    fn curve(&mut self, values: &[f64], width: f64, dash: Option<&Dash>, colour: Ink) {
        let slope = self.options.slope;
        // A value has a corner and an end at most.
        let mut path = Path {
            segments: Vec::with_capacity(2 * values.len()),
        };
        // The last y coordinate, where the line goes on.
        let mut last: Option<f64> = None;
        for pixel in 1..values.len() {
            let (before, value) = (values[pixel - 1], values[pixel]);
            if value.is_nan() || slope && before.is_nan() {
                last = None;
                continue;
            }
            let y = self.transform.y(value);
            let (x_before, x) = (self.left + (pixel - 1) as f64, self.left + pixel as f64);
            let point = |x: f64, y: f64| self.on_line(x, y, width);
            match last {
                None => {
                    let first = if slope { self.transform.y(before) } else { y };
                    let first = point(x_before, first);
                    path.move_to(first.x, first.y);
                }
                Some(last) if !slope && !nearly_equal(y, last) => {
                    let corner = point(x_before, y);
                    path.line_to(corner.x, corner.y);
                }
                Some(_) => {}
            }
            let end = point(x, y);
            path.line_to(end.x, end.y);
            last = Some(y);
        }
        if path.segments.is_empty() {
            return;
        }
        let path = simplified(path, self.options.zoom);
        let mut style = Stroke::round(width);
        if let Some(dash) = dash {
            style.dashes.clone_from(&dash.lengths);
            style.dash_offset = dash.offset;
        }
        self.picture.items.push(Item::Stroke {
            path,
            colour,
            style,
        });
    }

    /// An area, in as many parts as there are stretches of known values.
    fn filled(
        &mut self,
        values: &[f64],
        base: &dyn Fn(usize) -> f64,
        colour: Colour,
        gradient: Option<&(Colour, f64)>,
    ) {
        let slope = self.options.slope;
        let mut part = Outline::with_capacity(2 * values.len());
        for (pixel, value) in values.iter().enumerate().skip(usize::from(!slope)) {
            let (low, high) = (self.transform.y(base(pixel)), self.transform.y(*value));
            if value.is_nan() || low == high {
                self.part(&mut part, colour, gradient);
                continue;
            }
            let (low, high) = if low > high { (low, high) } else { (high, low) };
            let x = self.left + pixel as f64;
            // Parts overlap their neighbours a bit, so that no seam is seen.
            let (low, high) = (low + 0.2, high - 0.2);
            if !slope {
                part.push(x - 1.0, low, high);
            }
            part.push(x, low, high);
        }
        self.part(&mut part, colour, gradient);
    }

    /// Draws a part of an area, and begins the next one.
    fn part(&mut self, part: &mut Outline, colour: Colour, gradient: Option<&(Colour, f64)>) {
        self.shape(part, colour, gradient);
        part.clear();
    }

    fn shape(&mut self, part: &Outline, colour: Colour, gradient: Option<&(Colour, f64)>) {
        let Outline { xs, lows, highs } = part;
        let Some(last) = xs.len().checked_sub(1).filter(|last| *last > 0) else {
            return;
        };
        // Points between equal ones are left out.
        let mut lower = Vec::with_capacity(last);
        let mut at = 0;
        while at < last {
            let from = at;
            at += 1;
            while at < last
                && nearly_equal(lows[from], lows[at])
                && nearly_equal(lows[from], lows[at + 1])
            {
                at += 1;
            }
            lower.push(at);
        }
        let mut upper = Vec::with_capacity(last + 1);
        upper.push(last);
        at = last;
        while at > 1 {
            let from = at;
            at -= 1;
            while at > 1
                && nearly_equal(highs[from], highs[at])
                && nearly_equal(highs[from], highs[at - 1])
            {
                at -= 1;
            }
            upper.push(at);
        }
        let Some((second, length)) = gradient.filter(|(second, _)| second.alpha != 0.0) else {
            let ends = [(xs[0], highs[0]), (xs[0], lows[0])].into_iter();
            let lower = lower.iter().map(|&at| (xs[at], lows[at]));
            let upper = upper.iter().map(|&at| (xs[at], highs[at]));
            let points: Vec<_> = ends.chain(lower).chain(upper).collect();
            return self.area(&points, colour.into());
        };
        let (mut x, mut before) = (xs[lower[0]], lows[lower[0]]);
        let edge = lower[1..].iter().map(|&at| (xs[at], lows[at]));
        let edge = edge.chain(upper.iter().map(|&at| (xs[at], highs[at])));
        for (next, y) in edge {
            self.faded((x, lows[0]), (next, y), before, (colour, *second), *length);
            (x, before) = (next, y);
        }
    }

    /// A rectangle whose colours go from `colours.1` at its base to `colours.0` in the middle between its upper edge
    /// and `before`, the edge of the rectangle before, which rrdtool does not move to pixels.
    fn faded(
        &mut self,
        from: (f64, f64),
        to: (f64, f64),
        before: f64,
        colours: (Colour, Colour),
        length: f64,
    ) {
        let (from, to) = (self.on_area(from.0, from.1), self.on_area(to.0, to.1));
        if from.x == to.x || from.y == to.y {
            return;
        }
        let end = f64::midpoint(before, to.y);
        let (begin, end) = match length {
            _ if length < 0.0 => (from.y, from.y + length),
            _ if length > 0.0 => (end + length, end),
            _ => (from.y, end),
        };
        let points = [from, Point::new(from.x, to.y), to, Point::new(to.x, from.y)];
        self.picture.items.push(Item::Fill {
            path: Path::polygon(points),
            paint: Paint::Linear {
                from: Point::new(from.x, begin),
                to: Point::new(to.x, end),
                stops: vec![(0.0, colours.1.into()), (1.0, colours.0.into())],
            },
        });
    }
}

/// The outline of a part of an area: the y coordinates of its lower and upper edge.
struct Outline {
    xs: Vec<f64>,
    lows: Vec<f64>,
    highs: Vec<f64>,
}

impl Outline {
    fn with_capacity(points: usize) -> Outline {
        let coordinates = || Vec::with_capacity(points);
        Outline {
            xs: coordinates(),
            lows: coordinates(),
            highs: coordinates(),
        }
    }

    fn clear(&mut self) {
        self.xs.clear();
        self.lows.clear();
        self.highs.clear();
    }

    fn push(&mut self, x: f64, low: f64, high: f64) {
        self.xs.push(x);
        self.lows.push(low);
        self.highs.push(high);
    }
}
