//! A graph: its series, texts, places and pictures.

use std::io::Read as _;
use std::time::SystemTime;

use kymo_draw::{Fonts, RenderOptions};
use kymo_rrd::rpn::Series;
use kymo_rrd::text::info::{Fact, FactValue};
use kymo_text::Line;

use super::compute::Known;
use super::draw;
use super::elements::{Kind, Shown};
use super::layout::Layout;
use super::legend::rule_time;
use super::metrics::Metrics;
use super::options::{GraphOptions, ImageFormat, TableFormat, TextKind, TextMode, XGrid};
use super::print::Texts;
use super::scale::{Columns, Range};
use super::table::{Grid, Table};
use super::{Bounds, Notes, Request, Script, interactive, tooltips};
use crate::commands::image_info;
use crate::path::path;
use crate::{Failure, LocalZone, Session};

/// Series and texts of a graph.
pub(crate) struct Graph {
    pub(super) script: Script,
    pub(super) known: Vec<Known>,
    pub(super) bounds: Bounds,
    pub(crate) texts: Texts,
    pub(super) zone: LocalZone,
}

/// What became of a graph.
#[derive(Default)]
pub(crate) struct Image {
    /// What is written to the file; `None` if nothing is drawn.
    pub(crate) bytes: Option<Vec<u8>>,
    /// The width and the height, at zoom 1; 0 if nothing is drawn.
    pub(crate) size: (i64, i64),
    /// Fonts and characters that are missing.
    pub(crate) warnings: Vec<String>,
    layout: Option<Layout>,
    range: Option<Range>,
    table: Option<Grid>,
    /// The left, top, right and bottom of each text of the legend.
    coordinates: Vec<[f64; 4]>,
}

impl Graph {
    /// Reads the elements and the files, and computes the series.
    ///
    /// # Errors
    ///
    /// Errors in the elements; files that cannot be read; expressions without a result.
    pub(crate) fn new(
        session: &mut Session<'_>,
        elements: &[&[u8]],
        bounds: &Bounds,
        options: &GraphOptions,
        request: &Request<'_>,
    ) -> Result<Self, Failure> {
        let mut script = Script::read(elements, bounds, &session.clock())?;
        script.colour(options.palette);
        let known = script.compute(session, bounds, request)?;
        let zone = match options.utc {
            true => LocalZone::gmt(),
            // Read once for all graphs of a session.
            false => session.zone.known(),
        };
        let texts = Texts::new(&script, &known, options.base, &zone);
        Ok(Self {
            script,
            known,
            bounds: *bounds,
            texts,
            zone,
        })
    }

    /// What a value or a variable is; NaN for series.
    pub(super) fn value(&self, shown: Shown) -> f64 {
        match shown {
            Shown::Number(value) => value,
            Shown::Variable(variable) => match self.known[variable] {
                Known::Value { value, .. } => value,
                Known::Series(_) => f64::NAN,
            },
        }
    }

    /// Whether there is something to draw.
    fn is_visible(&self) -> bool {
        self.script.elements.iter().any(|element| {
            !matches!(
                element.kind,
                Kind::Print { graphic: false, .. }
                    | Kind::Comment
                    | Kind::Align(_)
                    | Kind::Export { .. }
            )
        })
    }

    /// Makes the picture or the table. `file` is where it is going to be written.
    ///
    /// # Errors
    ///
    /// Wrong controls in texts; pictures that are too large.
    pub(crate) fn render(
        &self,
        options: &GraphOptions,
        file: Option<&[u8]>,
        fonts: &Fonts,
    ) -> Result<Image, Failure> {
        if let ImageFormat::Table(format) = options.format {
            let (bytes, grid) = self.table(format, options)?;
            return Ok(Image {
                bytes: Some(bytes),
                table: Some(grid),
                ..Image::default()
            });
        }
        if !self.is_visible() {
            return Ok(Image::default());
        }
        fonts.trim();
        let bounds = (self.bounds.start, self.bounds.end);
        let layout = Layout::new(
            &self.script,
            &self.texts,
            &self.known,
            options,
            bounds,
            fonts,
        )?;
        let metrics = Metrics::drawn(options, fonts);
        let coordinates = layout.legend.entries.iter().map(|entry| {
            let x = layout.legend_at.0 as f64 + entry.x;
            let y = layout.legend_at.1 as f64 + entry.y;
            let width = metrics.width(TextKind::Legend, &entry.text);
            let height = metrics.height(TextKind::Legend, &entry.text);
            [x, y - height, x + width, y]
        });
        let mut image = Image {
            size: (layout.width, layout.height),
            coordinates: coordinates.collect(),
            ..Image::default()
        };
        let kept = file.filter(|_| options.lazy);
        if kept.is_some_and(|file| self.is_fresh(file, options)) {
            image.layout = Some(layout);
            return Ok(image);
        }
        let width = u32::try_from(layout.graph_width).unwrap_or_default();
        let columns = Columns::new(&self.script, &self.known, options, bounds, width);
        let picture = draw::picture(self, &layout, &columns, options, fonts, &self.zone)?;
        let render = RenderOptions {
            zoom: options.zoom,
            smooth_shapes: options.smooth_shapes,
            svg_text: options.svg_text,
            text_mode: match options.text_mode {
                TextMode::Normal => kymo_draw::TextMode::Normal,
                TextMode::Light => kymo_draw::TextMode::Light,
                TextMode::Mono => kymo_draw::TextMode::Mono,
            },
            ..RenderOptions::default()
        };
        let rendered = match options.format {
            ImageFormat::Svg if options.tooltips => kymo_draw::svg(&picture, fonts, &render)
                .map(|svg| tooltips::added(svg, self, &layout, &columns, options)),
            ImageFormat::Svg => kymo_draw::svg(&picture, fonts, &render),
            ImageFormat::Html => {
                let render = RenderOptions {
                    svg_text: true,
                    ..render
                };
                kymo_draw::svg(&picture, fonts, &render)
                    .map(|svg| interactive::page(svg, self, &layout, options))
            }
            ImageFormat::Eps => kymo_draw::eps(&picture, fonts, &render),
            ImageFormat::Pdf => kymo_draw::pdf(&picture, fonts, &render),
            _ => kymo_draw::png(&picture, fonts, &render),
        };
        image.warnings = fonts.take_warnings();
        image.bytes = Some(rendered.map_err(|error| Failure::new(error.to_string()))?);
        image.layout = Some(layout);
        image.range = Some(columns.range);
        Ok(image)
    }

    /// Whether a file is a picture of the format that is younger than one of its pixels is wide.
    fn is_fresh(&self, file: &[u8], options: &GraphOptions) -> bool {
        let file = path(file);
        let Ok(time) = std::fs::metadata(&file).and_then(|it| it.modified()) else {
            return false;
        };
        let age = SystemTime::now().duration_since(time).unwrap_or_default();
        let pixel = (self.bounds.end - self.bounds.start) as u64 / u64::from(options.width);
        if age.as_secs() > pixel {
            return false;
        }
        if options.format != ImageFormat::Png {
            return true;
        }
        let mut head = [0; 24];
        let read = std::fs::File::open(&file).and_then(|mut it| it.read_exact(&mut head));
        read.is_ok() && head.starts_with(b"\x89PNG\r\n\x1a\n") && &head[12..16] == b"IHDR"
    }

    fn table(
        &self,
        format: TableFormat,
        options: &GraphOptions,
    ) -> Result<(Vec<u8>, Grid), Failure> {
        let table = self.columns(
            !matches!(format, TableFormat::Json),
            matches!(format, TableFormat::XmlEnum),
        );
        if table.columns.is_empty() {
            let message = "nothing to export: no LINE, AREA or XPORT of a series";
            return Err(Failure::new(message));
        }
        let grid = table.grid(&self.bounds);
        let mut bytes = Vec::new();
        let mut write = |text: &[u8]| {
            bytes.extend_from_slice(text);
            Ok(())
        };
        let times = match &options.x_grid {
            XGrid::Lines(grid) => Some((&*grid.format, &self.zone)),
            _ => None,
        };
        match format {
            TableFormat::Xml | TableFormat::XmlEnum => table.xml(grid, &mut write),
            TableFormat::Json | TableFormat::JsonTime => table.json(grid, &mut write),
            TableFormat::Csv => table.separated(grid, b',', times, &mut write),
            TableFormat::Tsv => table.separated(grid, b'\t', times, &mut write),
            TableFormat::Ssv => table.separated(grid, b';', times, &mut write),
        }?;
        Ok((bytes, grid))
    }

    /// The series that are drawn, as columns.
    fn columns(&self, times: bool, numbered: bool) -> Table<'_> {
        let mut columns: Vec<(&Series, &[u8])> = Vec::new();
        let mut notes = Notes::default();
        for (element, below) in self.script.elements.iter().zip(&self.texts.below) {
            let shown = match (&element.kind, element.kind.curve()) {
                (Kind::Tick { .. }, _) => None,
                (Kind::Export { variable }, _) => Some(*variable),
                (_, Some(curve)) => match curve.shown {
                    Shown::Variable(variable) => Some(variable),
                    Shown::Number(_) => None,
                },
                _ => None,
            };
            if let Some(series) = shown.and_then(|variable| self.known[variable].series()) {
                let legend = element.legend.trim_start_matches(' ');
                columns.push((series, legend.as_bytes()));
            }
            let legend = || element.legend.clone();
            match &element.kind {
                Kind::Line { curve, .. } | Kind::Area { curve, .. } if curve.is_stack => {
                    notes.gprints.push(("stack", legend()));
                }
                Kind::Line { .. } => notes.gprints.push(("line", legend())),
                Kind::Area { .. } => notes.gprints.push(("area", legend())),
                Kind::Comment => notes.gprints.push(("comment", legend())),
                Kind::Align(alignment) => {
                    notes.gprints.push(("align", alignment.name().to_owned()))
                }
                Kind::Print { graphic: true, .. } => {
                    notes
                        .gprints
                        .push(("gprint", below.clone().unwrap_or_default()));
                }
                Kind::HorizontalRule { value, .. } => {
                    let mut text = Line::new();
                    text.scientific(self.value(*value), 10);
                    notes.rules.push((
                        "hrule",
                        String::from_utf8_lossy(text.as_bytes()).into_owned(),
                    ));
                }
                Kind::VerticalRule { time, .. } => {
                    notes
                        .rules
                        .push(("vrule", rule_time(*time, &self.known).to_string()));
                }
                _ => {}
            }
        }
        notes.prints = self
            .texts
            .printed
            .iter()
            .map(|text| ("print", text.clone()))
            .collect();
        Table {
            columns,
            times,
            numbered,
            notes: Some(notes),
            exact: false,
        }
    }

    /// What `graphv` prints.
    pub(crate) fn facts(
        &self,
        options: &GraphOptions,
        image: &Image,
        file: Option<&[u8]>,
    ) -> Vec<Fact> {
        let text = |key: String, text: &str| Fact::new(key, FactValue::text(text));
        let number = |(key, number): (&str, i64)| Fact::new(key, FactValue::Count(number as u64));
        let mut facts = Vec::new();
        if let Some(table) = &image.table {
            let sizes = [
                ("graph_start", table.start),
                ("graph_end", table.end),
                ("graph_step", table.step),
            ];
            facts.extend(sizes.map(number));
        }
        let prints = self.texts.printed.iter().enumerate();
        facts.extend(prints.map(|(place, print)| text(format!("print[{place}]"), print)));
        if let Some(layout) = &image.layout {
            let sizes = [
                ("graph_left", layout.left),
                ("graph_top", layout.bottom - layout.graph_height),
                ("graph_width", layout.graph_width),
                ("graph_height", layout.graph_height),
                ("image_width", image.size.0),
                ("image_height", image.size.1),
                ("graph_start", self.bounds.start),
                ("graph_end", self.bounds.end),
            ];
            facts.extend(sizes.map(number));
        }
        if let (Some(range), Some(layout)) = (&image.range, &image.layout) {
            for (key, value) in [("value_min", range.min), ("value_max", range.max)] {
                facts.push(Fact::new(key, FactValue::Number(value)));
            }
            let entries = layout.legend.entries.iter().zip(&image.coordinates);
            for (place, (entry, [left, top, right, bottom])) in entries.enumerate() {
                facts.push(text(format!("legend[{place}]"), &entry.text));
                let coordinates = format!("{left:.0},{top:.0},{right:.0},{bottom:.0}");
                facts.push(text(format!("coords[{place}]"), &coordinates));
            }
        }
        if let Some(info) = image_info(options, image, file) {
            facts.push(text("image_info".into(), &info));
        }
        if let (None, Some(bytes)) = (file, &image.bytes) {
            facts.push(Fact::new("image", FactValue::Blob(bytes.clone())));
        }
        if options.add_json_time && image.table.is_none() {
            let table = self.columns(true, false);
            let mut bytes = Vec::new();
            let mut write = |text: &[u8]| {
                bytes.extend_from_slice(text);
                Ok(())
            };
            if !table.columns.is_empty() && table.json(table.grid(&self.bounds), &mut write).is_ok()
            {
                facts.push(Fact::new("datapoints", FactValue::Blob(bytes)));
            }
        }
        facts
    }
}
