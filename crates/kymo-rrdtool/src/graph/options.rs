//! The options of `graph` and `graphv`.

mod choices;
mod values;

use kymo_rrd::text::numbers;

use super::colour::{Colour, DARK, PALETTES};
use super::format::NumberFormat;
use super::x_axis::parse_grid;
use crate::Failure;
use crate::options::Words;
use crate::path::shown;
pub(crate) use choices::{
    AxisForm, Direction, FontChoice, ImageFormat, Part, Side, TableFormat, TextKind, TextMode,
    XGrid, YGrid,
};
use choices::{FORMATS, PARTS, TEXTS};
use values::*;

/// All that the options specify, beside the stretch of time.
#[derive(Clone, Debug)]
pub(crate) struct GraphOptions {
    /// Seconds between rows, at least.
    pub(crate) step: i64,
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) full_size: bool,
    pub(crate) only_graph: bool,
    pub(crate) upper: f64,
    pub(crate) lower: f64,
    pub(crate) rigid: bool,
    pub(crate) allow_shrink: bool,
    pub(crate) alt_autoscale: bool,
    pub(crate) alt_autoscale_min: bool,
    pub(crate) alt_autoscale_max: bool,
    pub(crate) grid_fit: bool,
    pub(crate) x_grid: XGrid,
    pub(crate) week_format: String,
    pub(crate) y_grid: YGrid,
    pub(crate) alt_y_grid: bool,
    pub(crate) logarithmic: bool,
    pub(crate) units_exponent: Option<i32>,
    /// Width of the labels of the y axis, in characters. If it is not set, no room is left if there are no labels.
    pub(crate) units_length: Option<u32>,
    /// Whether a logarithmic axis has SI prefixes.
    pub(crate) si: bool,
    pub(crate) left_form: AxisForm,
    /// The factor and the offset of the values on the right.
    pub(crate) right_axis: Option<(f64, f64)>,
    pub(crate) right_label: String,
    pub(crate) right_form: AxisForm,
    pub(crate) vertical_label: String,
    pub(crate) title: Vec<String>,
    pub(crate) watermark: String,
    pub(crate) legend: bool,
    pub(crate) force_rules_legend: bool,
    pub(crate) legend_side: Side,
    pub(crate) legend_direction: Direction,
    pub(crate) minor: bool,
    /// Lengths of dashes and gaps of the grid.
    pub(crate) grid_dash: (f64, f64),
    pub(crate) border: u32,
    pub(crate) dynamic_labels: bool,
    colours: [Colour; 10],
    fonts: [FontChoice; 6],
    pub(crate) text_mode: TextMode,
    /// Whether edges of shapes are smooth.
    pub(crate) smooth_shapes: bool,
    pub(crate) markup: bool,
    pub(crate) slope: bool,
    pub(crate) tab_width: f64,
    pub(crate) base: f64,
    pub(crate) zoom: f64,
    pub(crate) format: ImageFormat,
    pub(crate) image_info: Option<String>,
    pub(crate) lazy: bool,
    /// Files and data sources that are missing are unknown.
    pub(crate) missing_is_unknown: bool,
    /// Whether the picture has the usual text at its side.
    pub(crate) tag: bool,
    pub(crate) add_json_time: bool,
    pub(crate) utc: bool,
    /// The colours of lines and areas that have none.
    pub(crate) palette: &'static [Colour],
    /// Whether texts of SVG are text, not outlines.
    pub(crate) svg_text: bool,
    /// Whether SVG shows values under the pointer.
    pub(crate) tooltips: bool,
    /// Whether times at which values are unknown are shaded.
    pub(crate) marks_unknown: bool,
    /// Whether the theme that is set is dark; `None` if none is set.
    pub(crate) theme_is_dark: Option<bool>,
}

/// The longest side of a picture, in pixels.
const MAX_SIDE: u32 = 32_767;

impl Default for GraphOptions {
    fn default() -> Self {
        let grey = |light, alpha| Colour::new(light, light, light, alpha);
        let font = |size| FontChoice { size, name: None };
        Self {
            step: 0,
            width: 400,
            height: 100,
            full_size: false,
            only_graph: false,
            upper: f64::NAN,
            lower: f64::NAN,
            rigid: false,
            allow_shrink: false,
            alt_autoscale: false,
            alt_autoscale_min: false,
            alt_autoscale_max: false,
            grid_fit: true,
            x_grid: XGrid::Automatic,
            week_format: "Week %V".to_owned(),
            y_grid: YGrid::Automatic,
            alt_y_grid: false,
            logarithmic: false,
            units_exponent: None,
            units_length: None,
            si: false,
            left_form: AxisForm::Number(None),
            right_axis: None,
            right_label: String::new(),
            right_form: AxisForm::Number(None),
            vertical_label: String::new(),
            title: Vec::new(),
            watermark: String::new(),
            legend: true,
            force_rules_legend: false,
            legend_side: Side::South,
            legend_direction: Direction::TopDown,
            minor: true,
            grid_dash: (1.0, 1.0),
            border: 2,
            dynamic_labels: false,
            colours: [
                grey(0.95, 1.0),
                grey(1.0, 1.0),
                grey(0.81, 1.0),
                grey(0.62, 1.0),
                grey(0.56, 0.75),
                Colour::new(0.87, 0.31, 0.31, 0.6),
                grey(0.0, 1.0),
                Colour::new(0.5, 0.12, 0.12, 1.0),
                grey(0.12, 1.0),
                grey(0.0, 1.0),
            ],
            fonts: [
                font(8.0),
                font(9.0),
                font(7.0),
                font(8.0),
                font(8.0),
                font(5.5),
            ],
            text_mode: TextMode::Normal,
            smooth_shapes: true,
            markup: false,
            slope: false,
            tab_width: 40.0,
            base: 1000.0,
            zoom: 1.0,
            format: ImageFormat::Png,
            image_info: None,
            lazy: false,
            missing_is_unknown: false,
            tag: true,
            add_json_time: false,
            utc: false,
            palette: &[],
            svg_text: false,
            tooltips: false,
            marks_unknown: false,
            theme_is_dark: None,
        }
    }
}

impl GraphOptions {
    /// Reads the options of a command line.
    ///
    /// # Errors
    ///
    /// The first that is wrong.
    pub(crate) fn read(words: &Words<'_>) -> Result<Self, Failure> {
        let mut options = Self::default();
        let (mut left, mut right) = (Axis::default(), Axis::default());
        for once in ["units", "add-jsontime"] {
            if words.values(once).count() > 1 {
                return Err(Failure::new(format!("--{once} can only be used once!")));
            }
        }
        // Colours that are set by name are those of no theme.
        if let Some(theme) = words.values("theme").last() {
            let themes = [("light", options.colours), ("dark", DARK)];
            options.colours = choice("theme", theme, &themes)?;
            options.theme_is_dark = Some(theme == b"dark");
        }
        for (name, value) in words.options() {
            match name {
                "left-axis-formatter" => left.formatter = Some(shown(value).into_owned()),
                "left-axis-format" => left.format = Some(shown(value).into_owned()),
                "right-axis-formatter" => right.formatter = Some(shown(value).into_owned()),
                "right-axis-format" => right.format = Some(shown(value).into_owned()),
                name => options.set(name, value)?,
            }
        }
        options.left_form = left.form("left")?;
        options.right_form = right.form("right")?;
        if options.logarithmic && options.lower <= 0.0 {
            let message = "for a logarithmic yaxis you must specify a lower-limit > 0";
            return Err(Failure::new(message));
        }
        if options.svg_text && options.format != ImageFormat::Svg {
            return Err(Failure::new("--svg-text needs --imgformat SVG"));
        }
        if options.tooltips && !matches!(options.format, ImageFormat::Svg | ImageFormat::Html) {
            return Err(Failure::new("--tooltips needs --imgformat SVG"));
        }
        options.check_size(options.width, options.height)?;
        Ok(options)
    }

    /// Refuses pictures that are too large.
    ///
    /// # Errors
    ///
    /// If a side is too long, or there are too many pixels.
    pub(crate) fn check_size(&self, width: u32, height: u32) -> Result<(), Failure> {
        /// Pixels at most: 256 MiB.
        const MAX_PIXELS: f64 = (1 << 26) as f64;
        let zoom = match self.format {
            ImageFormat::Png => self.zoom,
            _ => 1.0,
        };
        let (wide, high) = (f64::from(width) * zoom, f64::from(height) * zoom);
        let max = f64::from(MAX_SIDE);
        if wide > max || high > max || wide * high > MAX_PIXELS {
            return Err(Failure::new(format!(
                "a picture of {wide:.0}x{high:.0} pixels is too large: at most {MAX_SIDE} on a side \
                 and {MAX_PIXELS:.0} in all"
            )));
        }
        Ok(())
    }

    fn set(&mut self, name: &str, value: &[u8]) -> Result<(), Failure> {
        let text = || shown(value).into_owned();
        match name {
            "step" => self.step = integer(value),
            "width" => self.width = side("width", value)?,
            "height" => self.height = side("height", value)?,
            "full-size-mode" => self.full_size = true,
            "only-graph" => self.only_graph = true,
            "upper-limit" => self.upper = number("u", value)?,
            "lower-limit" => self.lower = number("l", value)?,
            "rigid" => self.rigid = true,
            "allow-shrink" => self.allow_shrink = true,
            "alt-autoscale" => self.alt_autoscale = true,
            "alt-autoscale-min" => self.alt_autoscale_min = true,
            "alt-autoscale-max" => self.alt_autoscale_max = true,
            "no-gridfit" => self.grid_fit = false,
            "x-grid" => {
                self.x_grid = match value {
                    b"none" => XGrid::None,
                    value => XGrid::Lines(parse_grid(&shown(value))?),
                }
            }
            "week-fmt" => {
                if value.len() > 127 {
                    return Err(Failure::new("the week format has more than 127 bytes"));
                }
                self.week_format = text();
            }
            "y-grid" => self.y_grid = y_grid(value)?,
            "alt-y-grid" => self.alt_y_grid = true,
            "logarithmic" => self.logarithmic = true,
            "units-exponent" => {
                self.units_exponent = Some(clamped(value, 9998)).filter(|x| *x != 9999)
            }
            // More characters than that are wider than any picture.
            "units-length" => self.units_length = Some(clamped(value, 5000).max(0) as u32),
            "units" => match value {
                b"si" => self.si = true,
                value => {
                    let message = format!("invalid argument for --units: {}", shown(value));
                    return Err(Failure::new(message));
                }
            },
            "right-axis" => self.right_axis = Some(right_axis(value)?),
            "right-axis-label" => self.right_label = text(),
            "vertical-label" => self.vertical_label = text(),
            "title" => self.title = title_lines(&text()),
            "watermark" => self.watermark = text(),
            "no-legend" => self.legend = false,
            "force-rules-legend" => self.force_rules_legend = true,
            "legend-position" => {
                self.legend_side = choice(
                    name,
                    value,
                    &[
                        ("north", Side::North),
                        ("south", Side::South),
                        ("west", Side::West),
                        ("east", Side::East),
                    ],
                )?;
            }
            "legend-direction" => {
                self.legend_direction = choice(
                    name,
                    value,
                    &[
                        ("topdown", Direction::TopDown),
                        ("bottomup", Direction::BottomUp),
                        ("bottomup2", Direction::BottomUp2),
                    ],
                )?;
            }
            "no-minor" => self.minor = false,
            "grid-dash" => self.grid_dash = grid_dash(value)?,
            "border" => self.border = clamped(value, MAX_SIDE as i32).max(0) as u32,
            "dynamic-labels" => self.dynamic_labels = true,
            "color" => self.set_colour(value)?,
            "font" => self.set_font(&text())?,
            "font-render-mode" => {
                self.text_mode = choice(
                    name,
                    value,
                    &[
                        ("normal", TextMode::Normal),
                        ("light", TextMode::Light),
                        ("mono", TextMode::Mono),
                    ],
                )?;
            }
            "graph-render-mode" => {
                self.smooth_shapes = choice(name, value, &[("normal", true), ("mono", false)])?;
            }
            "pango-markup" => self.markup = true,
            "slope-mode" => self.slope = true,
            "tabwidth" => self.tab_width = number("T", value)?,
            "base" => {
                self.base = number("b", value)?;
                if self.base != 1000.0 && self.base != 1024.0 {
                    let message = "the only sensible value for base apart from 1000 is 1024";
                    return Err(Failure::new(message));
                }
            }
            "zoom" => {
                self.zoom = number("m", value)?;
                if self.zoom <= 0.0 {
                    return Err(Failure::new("zoom factor must be > 0"));
                }
            }
            "imgformat" => {
                let found = FORMATS.iter().find(|(name, _)| name.as_bytes() == value);
                self.format = found.map(|(_, format)| *format).ok_or_else(|| {
                    let names = FORMATS.map(|(name, _)| name).join(" ");
                    let found = shown(value);
                    Failure::new(format!(
                        "unsupported graphics format '{found}' (known: {names})"
                    ))
                })?;
            }
            "imginfo" => self.image_info = Some(image_info(&text())?),
            "lazy" => self.lazy = true,
            "use-nan-for-all-missing-data" => self.missing_is_unknown = true,
            "disable-rrdtool-tag" => self.tag = false,
            "add-jsontime" => self.add_json_time = true,
            "utc" => self.utc = true,
            "palette" => self.palette = choice(name, value, &PALETTES)?,
            "svg-text" => self.svg_text = true,
            "tooltips" => self.tooltips = true,
            "mark-unknown" => self.marks_unknown = true,
            "graph-type" => match value {
                b"TIME" | b"time" => {}
                value => {
                    let message = format!("unsupported graphics type '{}'", shown(value));
                    return Err(Failure::new(message));
                }
            },
            // Old programs specify them; they have no effect in rrdtool either.
            "alt-y-mrtg" | "interlaced" | "font-smoothing-threshold" => {}
            // Times, and what finds the files.
            _ => {}
        }
        Ok(())
    }

    /// `PART#rrggbb[aa]`
    fn set_colour(&mut self, value: &[u8]) -> Result<(), Failure> {
        let mark = value.iter().position(|byte| *byte == b'#');
        let mark = mark.ok_or_else(|| {
            Failure::new(format!(
                "invalid color def format: '{}' (expected PART#rrggbb)",
                shown(value)
            ))
        })?;
        let (name, digits) = value.split_at(mark);
        let part = PARTS.iter().position(|part| part.as_bytes() == name);
        let part = part.ok_or_else(|| {
            let (name, parts) = (shown(name), PARTS.join(" "));
            Failure::new(format!("invalid color name '{name}' (known: {parts})"))
        })?;
        let colour = Colour::parse(&digits[1..]);
        self.colours[part] =
            colour.map_err(|error| Failure::new(format!("--color {}: {error}", shown(value))))?;
        Ok(())
    }

    /// `KIND:SIZE[:FONT]`
    fn set_font(&mut self, value: &str) -> Result<(), Failure> {
        let wrong = || {
            Failure::new(format!(
                "invalid text property format '{value}' (expected KIND:SIZE[:FONT])"
            ))
        };
        let (name, rest) = value.split_once(':').ok_or_else(wrong)?;
        let (points, font) = rest.split_once(':').unwrap_or((rest, ""));
        let kind = TEXTS.iter().position(|kind| *kind == name).ok_or_else(|| {
            let kinds = TEXTS.join(" ");
            Failure::new(format!("invalid fonttag '{name}' (known: {kinds})"))
        })?;
        let size = match points {
            "" => 0.0,
            size => numbers::whole(size.as_bytes()).map_err(|_| wrong())?,
        };
        if !(0.0..=1000.0).contains(&size) {
            return Err(Failure::new(format!(
                "font size {} is not between 0 and 1000 points",
                shown(points.as_bytes())
            )));
        }
        let fonts = match kind {
            0 => &mut self.fonts[..],
            kind => &mut self.fonts[kind..=kind],
        };
        for choice in fonts {
            if size > 0.0 {
                choice.size = size;
            }
            if font.len() > 1 {
                choice.name = Some(font.to_owned());
            }
        }
        Ok(())
    }

    /// Rows that a series has at most: one for each pixel, or more where readers may zoom.
    pub(crate) fn rows(&self) -> i64 {
        /// Pixels of a wide window.
        const INTERACTIVE: u32 = 1600;
        match self.format {
            ImageFormat::Html => self.width.max(INTERACTIVE).into(),
            _ => self.width.into(),
        }
    }

    /// The colour of a part.
    pub(crate) fn colour(&self, part: Part) -> Colour {
        self.colours[part as usize]
    }

    /// The font of a kind of texts.
    pub(crate) fn font(&self, kind: TextKind) -> &FontChoice {
        &self.fonts[kind as usize]
    }
}

/// The options of an axis.
#[derive(Default)]
struct Axis {
    formatter: Option<String>,
    format: Option<String>,
}

impl Axis {
    fn form(self, side: &str) -> Result<AxisForm, Failure> {
        let format = self.format.filter(|format| !format.is_empty());
        let or =
            |default: &str, format: Option<String>| format.unwrap_or_else(|| default.to_owned());
        Ok(match self.formatter.as_deref() {
            None | Some("numeric") => AxisForm::Number(
                format
                    .map(|format| NumberFormat::parse_plain(&format))
                    .transpose()?,
            ),
            Some("timestamp") => AxisForm::Timestamp(or(super::format::TIMESTAMP, format)),
            Some("duration") => AxisForm::Duration(or(super::format::DURATION, format)),
            Some(other) => {
                return Err(Failure::new(format!(
                    "Unknown {side} axis formatter '{other}' (known: numeric timestamp duration)"
                )));
            }
        })
    }
}
