//! The picture of a graph, as a display list.

use kymo_draw::{
    Colour as Ink, Fonts, HorizontalAlign as H, Item, Paint, Path, Picture, Point, Segment, Stroke,
    Text, VerticalAlign as V,
};

use super::colour::Colour;
use super::elements::{Dash, Kind};
use super::layout::Layout;
use super::legend::rule_time;
use super::metrics::Metrics;
use super::options::{GraphOptions, ImageFormat, Part, Side, TextKind, YGrid};
use super::picture::Graph;
use super::scale::{Columns, Transform, nearly_equal};
use super::x_axis::XAxis;
use super::y_axis::YAxis;
use crate::{Failure, LocalZone};

/// Widths of lines of the grid.
const MINOR: f64 = 0.4;
const MAJOR: f64 = 0.6;
/// The line at the side of the picture.
const TAG: &str = "RRDTOOL / TOBI OETIKER";

/// Draws a graph.
///
/// # Errors
///
/// A grid of too many lines.
pub(super) fn picture(
    graph: &Graph,
    layout: &Layout,
    columns: &Columns,
    options: &GraphOptions,
    fonts: &Fonts,
    zone: &LocalZone,
) -> Result<Picture, Failure> {
    let side = |length: i64| u32::try_from(length).unwrap_or_default();
    let range = &columns.range;
    let (bottom, height) = (layout.bottom as f64, layout.graph_height as f64);
    let mut drawing = Drawing {
        options,
        metrics: Metrics::drawn(options, fonts),
        layout,
        left: layout.left as f64,
        bottom,
        width: layout.graph_width as f64,
        height,
        start: graph.bounds.start,
        seconds: (graph.bounds.end - graph.bounds.start).max(1) as f64,
        transform: Transform::new(range, options.logarithmic, bottom, height),
        snaps: options.grid_fit && options.format == ImageFormat::Png,
        picture: Picture::new(side(layout.width), side(layout.height)),
    };
    drawing.background();
    drawing.series(graph, columns);
    if !options.only_graph {
        drawing.border();
        let x_axis = XAxis::new(
            &options.x_grid,
            (graph.bounds.start, graph.bounds.end),
            side(layout.graph_width),
            &options.week_format,
            zone,
        )?;
        drawing.x_axis(&x_axis);
        if options.y_grid != YGrid::None {
            let transform = drawing.transform;
            let axis = YAxis {
                options,
                range,
                transform: &transform,
                bottom,
                height,
                zone,
            };
            drawing.y_axis(&axis);
        }
        drawing.labels();
        drawing.legend(graph);
        drawing.axes();
    }
    drawing.rules(graph, columns);
    Ok(drawing.picture)
}

struct Drawing<'a> {
    options: &'a GraphOptions,
    metrics: Metrics<'a>,
    layout: &'a Layout,
    left: f64,
    bottom: f64,
    width: f64,
    height: f64,
    start: i64,
    seconds: f64,
    transform: Transform,
    /// Whether lines are moved to whole pixels.
    snaps: bool,
    picture: Picture,
}

impl From<Colour> for Ink {
    fn from(colour: Colour) -> Self {
        Self::new(colour.red, colour.green, colour.blue, colour.alpha)
    }
}

/// Leaves out points on the way from one point to the next, as cairo does: its coordinates have 8 bits behind the
/// point. Most values are those of the pixel before.
fn simplified(path: Path, zoom: f64) -> Path {
    let fixed = |point: Point| {
        let part = |value: f64| (value * zoom * 256.0).round() as i64;
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
                let step = (to.0.saturating_sub(end.0), to.1.saturating_sub(end.1));
                if step == (0, 0) && direction != (0, 0) {
                    match segment {
                        // It is there already.
                        Segment::Close => drop(segments.pop()),
                        _ => continue,
                    }
                }
                let product = |a: i64, b: i64| i128::from(a) * i128::from(b);
                let is_straight = product(step.0, direction.1) == product(step.1, direction.0)
                    && product(step.0, direction.0) + product(step.1, direction.1) > 0;
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
    fn colour(&self, part: Part) -> Ink {
        self.options.colour(part).into()
    }

    /// A point of a line of some width, moved so that the line covers whole pixels.
    fn on_line(&self, x: f64, y: f64, width: f64) -> Point {
        if !self.snaps {
            return Point::new(x, y);
        }
        let zoom = self.options.zoom;
        let half = width * zoom / 2.0;
        let rest = half - half.ceil();
        Point::new(
            ((x * zoom - 0.5).floor() - rest) / zoom,
            ((y * zoom + 0.5).ceil() + rest) / zoom,
        )
    }

    /// A point of an area, moved to a corner of pixels.
    fn on_area(&self, x: f64, y: f64) -> Point {
        if !self.snaps {
            return Point::new(x, y);
        }
        let zoom = self.options.zoom;
        Point::new((x * zoom).floor() / zoom, (y * zoom).ceil() / zoom)
    }

    fn area(&mut self, points: &[(f64, f64)], colour: Ink) {
        let path = Path::polygon(points.iter().map(|(x, y)| self.on_area(*x, *y)));
        let path = simplified(path, self.options.zoom);
        let paint = Paint::Solid(colour);
        self.picture.items.push(Item::Fill { path, paint });
    }

    fn line(&mut self, from: (f64, f64), to: (f64, f64), width: f64, colour: Ink) {
        self.stroke(from, to, Stroke::thin(width), colour);
    }

    fn stroke(&mut self, from: (f64, f64), to: (f64, f64), style: Stroke, colour: Ink) {
        let points = [from, to].map(|(x, y)| self.on_line(x, y, style.width));
        let path = Path::polyline(points);
        self.picture.items.push(Item::Stroke {
            path,
            colour,
            style,
        });
    }

    /// A line of the grid.
    fn dashed(&mut self, from: (f64, f64), to: (f64, f64), width: f64, colour: Ink) {
        let (on, off) = self.options.grid_dash;
        let mut style = Stroke::thin(width);
        if on > 0.0 || off > 0.0 {
            style.dashes = vec![on, off];
            // Dashes begin where the line did before it was moved to pixels.
            let moved = self.on_line(from.0, from.1, width);
            let before = match from.1 == to.1 {
                true => (from.0 - moved.x) * (to.0 - from.0).signum(),
                false => (from.1 - moved.y) * (to.1 - from.1).signum(),
            };
            style.dash_offset = -before;
        }
        self.stroke(from, to, style, colour);
    }

    fn text(&mut self, at: (f64, f64), kind: TextKind, align: (H, V), text: &str) {
        let colour = self.colour(Part::Font);
        self.text_with(at, kind, align, 0.0, colour, text);
    }

    fn text_with(
        &mut self,
        (x, y): (f64, f64),
        kind: TextKind,
        (horizontal, vertical): (H, V),
        angle: f64,
        colour: Ink,
        text: &str,
    ) {
        if text.trim().is_empty() {
            return;
        }
        self.picture.items.push(Item::Text(Text {
            horizontal,
            vertical,
            angle,
            markup: self.options.markup,
            tabs: Some(self.metrics.tabs()),
            ..Text::new(text, x, y, self.metrics.font(kind), colour)
        }));
    }

    /// The x coordinate of a time.
    fn x(&self, time: i64) -> f64 {
        let seconds = time.saturating_sub(self.start) as f64;
        (self.left + self.width / self.seconds * seconds).trunc()
    }

    fn background(&mut self) {
        let (right, low) = (self.layout.width as f64, self.layout.height as f64);
        let back = self.colour(Part::Back);
        self.area(&[(0.0, 0.0), (0.0, low), (right, low), (right, 0.0)], back);
        let (left, right) = (self.left, self.left + self.width);
        let (top, bottom) = (self.bottom - self.height, self.bottom);
        let canvas = self.colour(Part::Canvas);
        self.area(
            &[(left, bottom), (right, bottom), (right, top), (left, top)],
            canvas,
        );
    }

    /// Lines, areas and ticks, inside of the graph.
    fn series(&mut self, graph: &Graph, columns: &Columns) {
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
            for pixel in 0..values.len() {
                if values[pixel].is_nan() {
                    values[pixel] = base(pixel);
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
        let mut path = Path::new();
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
        let mut part = Outline::default();
        for pixel in usize::from(!slope)..values.len() {
            let (low, high) = (
                self.transform.y(base(pixel)),
                self.transform.y(values[pixel]),
            );
            if values[pixel].is_nan() || low == high {
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
        let Outline { xs, lows, highs } = std::mem::take(part);
        let Some(last) = xs.len().checked_sub(1).filter(|last| *last > 0) else {
            return;
        };
        // Points between equal ones are left out.
        let mut lower = vec![];
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
        let mut upper = vec![last];
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
        let mut x = xs[lower[0]];
        let edge = lower[1..].iter().map(|&at| (xs[at], lows[at]));
        let edge = edge.chain(upper.iter().map(|&at| (xs[at], highs[at])));
        for (next, y) in edge {
            self.faded((x, lows[0]), (next, y), (colour, *second), *length);
            x = next;
        }
    }

    /// A rectangle whose colours go from `colours.1` at its base to `colours.0`.
    fn faded(&mut self, from: (f64, f64), to: (f64, f64), colours: (Colour, Colour), length: f64) {
        let (from, to) = (self.on_area(from.0, from.1), self.on_area(to.0, to.1));
        if from.x == to.x || from.y == to.y {
            return;
        }
        let (begin, end) = match length {
            _ if length < 0.0 => (from.y, from.y + length),
            _ if length > 0.0 => (to.y + length, to.y),
            _ => (from.y, to.y),
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

    fn border(&mut self) {
        let edge = f64::from(self.options.border);
        if edge == 0.0 {
            return;
        }
        let (right, low) = (self.layout.width as f64, self.layout.height as f64);
        let (inner, under) = (right - edge, low - edge);
        let (light, dark) = (self.colour(Part::ShadeA), self.colour(Part::ShadeB));
        let points = [
            (0.0, low),
            (edge, under),
            (edge, edge),
            (inner, edge),
            (right, 0.0),
            (0.0, 0.0),
        ];
        self.area(&points, light);
        let points = [
            (edge, under),
            (inner, under),
            (inner, edge),
            (right, 0.0),
            (right, low),
            (0.0, low),
        ];
        self.area(&points, dark);
    }

    fn x_axis(&mut self, axis: &XAxis) {
        let (top, bottom) = (self.bottom - self.height, self.bottom);
        let (grid, major) = (self.colour(Part::Grid), self.colour(Part::MajorGrid));
        if self.options.minor {
            for time in &axis.minor {
                let x = self.x(*time);
                self.line((x, top - 2.0), (x, top), MINOR, grid);
                self.line((x, bottom), (x, bottom + 2.0), MINOR, grid);
                self.dashed((x, bottom + 1.0), (x, top - 1.0), MINOR, grid);
            }
        }
        for time in &axis.major {
            let x = self.x(*time);
            self.line((x, top - 2.0), (x, top), MAJOR, major);
            self.line((x, bottom), (x, bottom + 3.0), MAJOR, major);
            self.dashed((x, bottom + 3.0), (x, top - 2.0), MAJOR, major);
        }
        for (time, text) in &axis.labels {
            let at = (self.x(*time), bottom + 3.0);
            self.text(at, TextKind::Axis, (H::Center, V::Top), text);
        }
    }

    fn y_axis(&mut self, axis: &YAxis<'_>) {
        let (left, right) = (self.left, self.left + self.width);
        let Some(lines) = axis.lines() else {
            let middle = ((2.0 * self.bottom - self.height) / 2.0).trunc();
            let at = ((self.layout.width / 2) as f64, middle);
            self.text(at, TextKind::Axis, (H::Center, V::Center), "No Data found");
            return;
        };
        let (grid, major) = (self.colour(Part::Grid), self.colour(Part::MajorGrid));
        let size = self.options.font(TextKind::Axis).size;
        for line in lines {
            let y = line.y;
            let (width, colour, beyond) = match &line.labels {
                Some(_) => (MAJOR, major, 2.0),
                None if !self.options.minor && !self.options.logarithmic => continue,
                None => (MINOR, grid, 1.0),
            };
            let before = self.picture.items.len();
            self.line((left - 2.0, y), (left, y), width, colour);
            self.line((right, y), (right + 2.0, y), width, colour);
            self.dashed((left - beyond, y), (right + beyond, y), width, colour);
            let lines = self.picture.items.len() - before;
            let Some(labels) = &line.labels else {
                continue;
            };
            if let Some(text) = &labels.right {
                self.text((right + 7.0, y), TextKind::Axis, (H::Left, V::Center), text);
            }
            let at = (left - size, y);
            self.text(at, TextKind::Axis, (H::Right, V::Center), &labels.left);
            if !self.options.logarithmic {
                // Lines are above labels.
                self.picture.items[before..].rotate_left(lines);
            }
        }
    }

    /// Labels of the axes, title, watermark, and the text at the side.
    fn labels(&mut self) {
        let (options, layout) = (self.options, self.layout);
        let center = (H::Center, V::Center);
        let font = self.colour(Part::Font);
        let faint = font.with_alpha(0.3);
        let at = |(x, y): (i64, i64)| ((x + 10) as f64, y as f64);
        self.text_with(
            at(layout.label_at),
            TextKind::Unit,
            center,
            90.0,
            font,
            &options.vertical_label,
        );
        self.text_with(
            at(layout.right_label_at),
            TextKind::Unit,
            center,
            90.0,
            font,
            &options.right_label,
        );
        let middle = (layout.width / 2) as f64;
        let size = options.font(TextKind::Title).size;
        for (line, title) in options.title.iter().enumerate() {
            let top = size * 1.3 + line as f64 * size * 1.6;
            self.text((middle, top), TextKind::Title, (H::Center, V::Top), title);
        }
        if options.tag {
            let x = match options.legend_side {
                Side::East => layout.label_at.0 as f64,
                _ => (layout.width - 4) as f64,
            };
            self.text_with(
                (x, 5.0),
                TextKind::Watermark,
                (H::Left, V::Top),
                -90.0,
                faint,
                TAG,
            );
        }
        let at = (middle, (layout.height - 6) as f64);
        self.text_with(
            at,
            TextKind::Watermark,
            (H::Center, V::Bottom),
            0.0,
            faint,
            &options.watermark,
        );
    }

    fn legend(&mut self, graph: &Graph) {
        let edge = self.metrics.width(TextKind::Legend, "o") * 1.2;
        let layout = self.layout;
        for entry in &layout.legend.entries {
            let x = layout.legend_at.0 as f64 + entry.x;
            let y = layout.legend_at.1 as f64 + entry.y;
            let kind = &graph.script.elements[entry.element].kind;
            self.text((x, y), TextKind::Legend, (H::Left, V::Bottom), &entry.text);
            if let Some(colour) = kind.colour() {
                self.legend_box(kind, (x, y - edge * 0.4), edge, colour.into());
            }
        }
    }

    /// What stands before a text, with its lower left corner at a point.
    fn legend_box(&mut self, kind: &Kind, (x, y): (f64, f64), edge: f64, colour: Ink) {
        let (back, frame) = (self.colour(Part::Back), self.colour(Part::Frame));
        {
            let middle = y - edge / 2.0;
            match kind {
                Kind::HorizontalRule { .. } if self.options.dynamic_labels => {
                    self.line((x, middle), (x + edge, middle), 1.0, colour);
                }
                Kind::VerticalRule { .. } if self.options.dynamic_labels => {
                    let x = x + edge / 2.0;
                    self.line((x, y), (x, y - edge), 1.0, colour);
                }
                Kind::Line { width, .. } if self.options.dynamic_labels => {
                    self.line((x, y), (x + edge, y - edge), *width, colour);
                }
                kind => {
                    let corners = [(x, y - edge), (x, y), (x + edge, y), (x + edge, y - edge)];
                    // Transparent colours look as they do in the graph.
                    self.area(&corners, back);
                    self.area(&corners, colour);
                    let (a, b) = (
                        self.on_line(x, y, 1.0),
                        self.on_line(x + edge, y - edge, 1.0),
                    );
                    let corners = [a, Point::new(b.x, a.y), b, Point::new(a.x, b.y)];
                    let mut style = Stroke::thin(1.0);
                    if kind.dash().is_some() {
                        style.dashes = vec![3.0];
                    }
                    self.picture.items.push(Item::Stroke {
                        path: Path::polygon(corners),
                        colour: frame,
                        style,
                    });
                }
            }
        }
    }

    fn axes(&mut self) {
        let (left, right) = (self.left, self.left + self.width);
        let (top, bottom) = (self.bottom - self.height, self.bottom);
        let (axis, arrow) = (self.colour(Part::Axis), self.colour(Part::Arrow));
        self.line((left - 4.0, bottom), (right + 4.0, bottom), MAJOR, axis);
        self.line((left, bottom + 4.0), (left, top - 4.0), MAJOR, axis);
        let points = [
            (right + 2.0, bottom - 3.0),
            (right + 2.0, bottom + 3.0),
            (right + 7.0, bottom),
        ];
        self.area(&points, arrow);
        let points = [
            (left - 3.0, top - 2.0),
            (left + 3.0, top - 2.0),
            (left, top - 7.0),
        ];
        self.area(&points, arrow);
        if self.options.right_axis.is_some() {
            self.line((right, bottom + 4.0), (right, top - 4.0), MAJOR, axis);
            let points = [
                (right - 2.0, top - 2.0),
                (right + 3.0, top - 2.0),
                (right, top - 7.0),
            ];
            self.area(&points, arrow);
        }
    }

    fn rules(&mut self, graph: &Graph, columns: &Columns) {
        let range = &columns.range;
        for element in &graph.script.elements {
            let mut style = Stroke::thin(1.0);
            if let Some(dash) = element.kind.dash() {
                style.dashes.clone_from(&dash.lengths);
                style.dash_offset = dash.offset;
            }
            match &element.kind {
                Kind::HorizontalRule { value, colour, .. } => {
                    let value = graph.value(*value);
                    if value >= range.min && value <= range.max {
                        let y = self.transform.y(value);
                        let colour = colour.unwrap_or(Colour::NONE).into();
                        self.stroke((self.left, y), (self.left + self.width, y), style, colour);
                    }
                }
                Kind::VerticalRule { time, colour, .. } => {
                    let time = rule_time(*time, &graph.known);
                    if (graph.bounds.start..=graph.bounds.end).contains(&time) {
                        let x = self.x(time);
                        let colour = colour.unwrap_or(Colour::NONE).into();
                        self.stroke(
                            (x, self.bottom),
                            (x, self.bottom - self.height),
                            style,
                            colour,
                        );
                    }
                }
                _ => {}
            }
        }
    }
}

/// The outline of a part of an area: the y coordinates of its lower and upper edge.
#[derive(Default)]
struct Outline {
    xs: Vec<f64>,
    lows: Vec<f64>,
    highs: Vec<f64>,
}

impl Outline {
    fn push(&mut self, x: f64, low: f64, high: f64) {
        self.xs.push(x);
        self.lows.push(low);
        self.highs.push(high);
    }
}
