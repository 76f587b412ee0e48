//! The picture of a graph, as a display list.

mod series;

use kymo_draw::{
    Colour as Ink, Fonts, HorizontalAlign as H, Item, Paint, Path, Picture, Point, Stroke, Text,
    VerticalAlign as V,
};

use super::colour::Colour;
use super::elements::Kind;
use super::layout::Layout;
use super::legend::rule_time;
use super::metrics::Metrics;
use super::options::{GraphOptions, ImageFormat, Part, Side, TextKind, YGrid};
use super::picture::Graph;
use super::scale::{Columns, Transform};
use super::x_axis::XAxis;
use super::y_axis::YAxis;
use crate::{Failure, LocalZone};
use series::simplified;

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
        fonts,
        has_text: false,
        picture: Picture::new(side(layout.width), side(layout.height)),
    };
    drawing.background();
    if options.marks_unknown {
        drawing.unknown(columns);
    }
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
    fonts: &'a Fonts,
    /// Whether the picture has a text already.
    has_text: bool,
    picture: Picture,
}

impl From<Colour> for Ink {
    fn from(colour: Colour) -> Self {
        Self::new(colour.red, colour.green, colour.blue, colour.alpha)
    }
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
            // rrdtool moves the offset, 0, to pixels as if it were a coordinate.
            style.dash_offset = self.on_line(0.0, 0.0, width).x;
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
        if text.is_empty() {
            return;
        }
        let mut text = Text {
            horizontal,
            vertical,
            angle,
            markup: self.options.markup,
            tabs: Some(self.metrics.tabs()),
            ..Text::new(text, x, y, self.metrics.font(kind), colour)
        };
        if self.options.zoom != 1.0 && !self.has_text {
            self.place_first(&mut text);
        }
        self.has_text = true;
        self.picture.items.push(Item::Text(text));
    }

    /// Moves the first text of a zoomed picture to where rrdtool has it: it takes the zoom into account only when
    /// it has drawn a text.
    fn place_first(&self, text: &mut Text) {
        let width = |zoom| self.fonts.measure(text, zoom).width;
        let (plain, drawn) = (width(1.0), width(self.options.zoom));
        let by = match text.horizontal {
            H::Left => return,
            H::Center => (drawn / 2.0).floor() - (plain / 2.0).floor(),
            H::Right => drawn - plain,
        };
        let (sin, cos) = text.angle.to_radians().sin_cos();
        text.origin.x += by * cos;
        text.origin.y -= by * sin;
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

    /// Shades where a series is unknown, and more strongly where all series are.
    fn unknown(&mut self, columns: &Columns) {
        let drawn: Vec<&Vec<f64>> = columns
            .values
            .iter()
            .filter(|column| !column.is_empty())
            .collect();
        let unknown = |pixel: usize| drawn.iter().filter(|column| column[pixel].is_nan()).count();
        let pixels = drawn.first().map_or(0, |column| column.len());
        let (top, bottom) = (self.bottom - self.height, self.bottom);
        let shade = |count: usize| match count {
            0 => None,
            count if count == drawn.len() => Some(0.24),
            _ => Some(0.1),
        };
        let ink = self.colour(Part::Font);
        let mut from = 0;
        while from < pixels {
            let alpha = shade(unknown(from));
            let same = (from..pixels).take_while(|pixel| shade(unknown(*pixel)) == alpha);
            let to = from + same.count();
            if let Some(alpha) = alpha {
                // A value is drawn from the pixel before to its own.
                let left = (self.left + from as f64 - 1.0).max(self.left);
                let right = self.left + to as f64 - if to < pixels { 1.0 } else { 0.0 };
                let corners = [(left, bottom), (right, bottom), (right, top), (left, top)];
                self.area(&corners, Ink { alpha, ..ink });
            }
            from = to;
        }
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
