//! Panels as pictures.

mod heat;
mod lanes;

use std::fmt;

use kymo_draw::{
    Colour, Font, Fonts, HorizontalAlign, Item, MAX_SIDE, Paint, Path, Picture, Point as At,
    Stroke, Text, VerticalAlign,
};

use crate::panel::{Content, Panel, Series};
use crate::ticks::{self, Zone};
use crate::units;

/// How pictures look.
#[derive(Clone, Debug)]
pub struct Look {
    /// Width of a page in pixels [default: 800, or 400 for each column of panels].
    pub width: Option<u32>,
    /// Height of each panel in pixels.
    pub height: u32,
    /// Above all panels.
    pub title: Option<String>,
    /// Light on dark.
    pub is_dark: bool,
    /// How times are written.
    pub zone: Zone,
}

impl Default for Look {
    /// 240 pixels high, in local time.
    fn default() -> Self {
        Self {
            width: None,
            height: 240,
            title: None,
            is_dark: false,
            zone: Zone::new(false),
        }
    }
}

/// A picture has at most this number of panels.
pub const MOST_PANELS: usize = 400;

/// There are more panels than [`MOST_PANELS`], or they do not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooManyPanels {
    /// How many there are.
    pub panels: usize,
    /// How many fit.
    pub most: usize,
}

impl fmt::Display for TooManyPanels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { panels, most } = self;
        write!(
            f,
            "cannot draw {panels} panels in one picture: the limit is {most} at this size"
        )
    }
}

impl std::error::Error for TooManyPanels {}

/// Colours that people with any colour vision can distinguish (Okabe and Ito).
pub(crate) const COLOURS: [u32; 7] = [
    0x0072_b2ff,
    0xd55e_00ff,
    0x009e_73ff,
    0xcc79_a7ff,
    0x56b4_e9ff,
    0xe69f_00ff,
    0x8060_40ff,
];
const FONT: f64 = 7.0;
const LINE: f64 = 13.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 12.0;
const TITLE: f64 = 24.0;

struct Theme {
    back: Colour,
    text: Colour,
    faint: Colour,
    loss: Colour,
}

impl Theme {
    fn new(is_dark: bool) -> Self {
        let colour = Colour::from_rgba;
        let (back, text, faint) = match is_dark {
            true => (0x1818_1bff, 0xe4e4_e7ff, 0x4040_46ff),
            false => (0xffff_ffff, 0x2020_24ff, 0xdcdc_e0ff),
        };
        Self {
            back: colour(back),
            text: colour(text),
            faint: colour(faint),
            loss: colour(0xd000_00ff),
        }
    }
}

/// Panels of a page are not narrower than this, if there is more than one beside another.
const NARROWEST: u32 = 160;

/// All panels in one picture: one above the other if there are few, else in columns, as far as the width has room for
/// them.
///
/// # Errors
///
/// There are too many for a picture.
pub fn page(panels: &[Panel], look: &Look, fonts: &Fonts) -> Result<Picture, TooManyPanels> {
    let columns: usize = match panels.len() {
        0..=6 => 1,
        7..=60 => 3,
        _ => 6,
    };
    let room = look.width.map(|width| (width / NARROWEST).max(1) as usize);
    let columns = columns.min(room.unwrap_or(columns));
    let width = look.width.unwrap_or(match columns {
        1 => 800,
        columns => 400 * columns as u32,
    });
    let top = if look.title.is_some() { TITLE } else { 0.0 };
    let heights: Vec<f64> = panels
        .iter()
        .map(|panel| panel_height(panel, look))
        .collect();
    let rows: Vec<f64> = heights
        .chunks(columns)
        .map(|row| row.iter().copied().fold(0.0, f64::max))
        .collect();
    let height = rows.iter().sum::<f64>() + top;
    if panels.len() > MOST_PANELS || height > f64::from(MAX_SIDE) {
        let limit = f64::from(MAX_SIDE) - top;
        let row = height / rows.len().max(1) as f64;
        let most = MOST_PANELS.min((limit / row) as usize * columns);
        return Err(TooManyPanels {
            panels: panels.len(),
            most,
        });
    }
    let mut pen = Drawing::new(width, height.ceil() as u32, look, fonts);
    if let Some(title) = &look.title {
        pen.title(title, 8.0, 4.0, f64::from(width) - 16.0);
    }
    let cell = f64::from(width) / columns as f64;
    let mut y = top;
    for (row, height) in panels.chunks(columns).zip(rows) {
        for (column, panel) in row.iter().enumerate() {
            pen.panel(panel, column as f64 * cell, y, cell);
        }
        y += height;
    }
    Ok(pen.picture)
}

/// One panel as a picture of its own.
pub fn panel_picture(panel: &Panel, look: &Look, fonts: &Fonts) -> Picture {
    // Heat maps and states need more room.
    let width = look.width.unwrap_or(match panel.content {
        Content::Series(_) => 480,
        _ => 800,
    });
    let height = panel_height(panel, look).min(f64::from(MAX_SIDE));
    let mut pen = Drawing::new(width, height as u32, look, fonts);
    pen.panel(panel, 0.0, 0.0, f64::from(width));
    pen.picture
}

/// The height of a panel with its legend.
fn panel_height(panel: &Panel, look: &Look) -> f64 {
    let height = f64::from(look.height);
    match &panel.content {
        Content::Series(series) => height + (series.len().saturating_sub(1)) as f64 * LINE,
        Content::Heat(_) => height,
        Content::Lanes(own) => lanes::height(own).max(100.0),
    }
}

struct Drawing<'a> {
    picture: Picture,
    look: &'a Look,
    fonts: &'a Fonts,
    theme: Theme,
}

impl<'a> Drawing<'a> {
    fn new(width: u32, height: u32, look: &'a Look, fonts: &'a Fonts) -> Self {
        let mut this = Self {
            picture: Picture::new(width, height),
            look,
            fonts,
            theme: Theme::new(look.is_dark),
        };
        let back = this.theme.back;
        this.fill(0.0, 0.0, f64::from(width), f64::from(height), back);
        this
    }

    fn fill(&mut self, left: f64, top: f64, right: f64, bottom: f64, colour: Colour) {
        self.picture.items.push(Item::Fill {
            path: Path::rectangle(left, top, right, bottom),
            paint: Paint::Solid(colour),
        });
    }

    fn line(&mut self, from: (f64, f64), to: (f64, f64), colour: Colour) {
        let path = Path::polyline([At::new(from.0, from.1), At::new(to.0, to.1)]);
        self.picture.items.push(Item::Stroke {
            path,
            colour,
            style: Stroke::thin(1.0),
        });
    }

    fn text(&mut self, text: &str, x: f64, y: f64, horizontal: HorizontalAlign) {
        let mut text = Text::new(text, x, y, Font::new(FONT), self.theme.text);
        text.horizontal = horizontal;
        text.vertical = VerticalAlign::Center;
        self.picture.items.push(Item::Text(text));
    }

    /// The text without invisible characters, cut to a width in pixels.
    fn fitting(&self, text: &str, width: f64, font: &Font) -> String {
        // Names may be as long as a file: no more than fits is looked at.
        let most = (width / 2.0).max(0.0) as usize;
        let clean = |c: char| match kymo_text::is_invisible(c) {
            true => '\u{fffd}',
            false => c,
        };
        let mut short: String = text.chars().take(most).map(clean).collect();
        let mut is_cut = text.chars().nth(most).is_some();
        loop {
            let shown = if is_cut {
                format!("{short}…")
            } else {
                short.clone()
            };
            if self.fonts.text_width(font, &shown) <= width || short.is_empty() {
                return shown;
            }
            short.pop();
            is_cut = true;
        }
    }

    fn title(&mut self, title: &str, x: f64, y: f64, width: f64) {
        let mut font = Font::new(FONT + 1.0);
        font.bold = true;
        let title = self.fitting(title, width, &font);
        let text = Text::new(title, x, y, font, self.theme.text);
        self.picture.items.push(Item::Text(text));
    }

    fn panel(&mut self, panel: &Panel, x: f64, y: f64, width: f64) {
        let height = panel_height(panel, self.look);
        let unit = match panel.unit.as_str() {
            "" => String::new(),
            unit => format!(" [{unit}]"),
        };
        self.title(
            &format!("{}{unit}", panel.title),
            x + 8.0,
            y + 4.0,
            width - 16.0,
        );
        let area = Area {
            x,
            y,
            width,
            height,
        };
        match &panel.content {
            Content::Series(series) => self.series_panel(panel, series, area),
            Content::Heat(heat) => self.heat(panel, heat, area),
            Content::Lanes(lanes) => self.lanes(panel, lanes, area),
        }
    }

    fn series_panel(&mut self, panel: &Panel, all: &[Series], area: Area) {
        let Area {
            x,
            y,
            width,
            height,
        } = area;
        let legend = all.len().max(1) as f64 * LINE;
        let (left, right) = (x + LEFT, x + width - RIGHT);
        let (top, bottom) = (y + TITLE, y + height - legend - 2.0 * LINE - 10.0);
        if right - left < 40.0 || bottom - top < 20.0 {
            return;
        }
        let frame = Frame::new(panel.range, all, left, top, right, bottom);
        self.value_axis(&frame);
        self.time_axis(panel, &frame);
        self.picture
            .items
            .push(Item::Clip(Path::rectangle(left, top, right, bottom)));
        for (series, colour) in all.iter().zip(COLOURS) {
            self.series(series, &frame, Colour::from_rgba(colour));
        }
        self.picture.items.push(Item::Unclip);
        self.losses(panel, &frame);
        self.under(panel, &frame);
        if all.iter().all(|series| series.points.is_empty()) {
            self.nothing(&frame);
        }
        let first = y + height - legend - 3.0 + LINE / 2.0;
        for (row, (series, colour)) in all.iter().zip(COLOURS).enumerate() {
            let colour = Colour::from_rgba(colour);
            self.legend(series, x, first + row as f64 * LINE, width, colour);
        }
    }

    /// The line below a graph, and its range of time.
    fn under(&mut self, panel: &Panel, frame: &Frame) {
        let (left, right, bottom) = (frame.left, frame.right, frame.bottom);
        self.line((left, bottom), (right, bottom), self.theme.faint);
        let zone = (!panel.is_relative).then_some(&self.look.zone);
        let caption = ticks::caption(panel.range, zone);
        let caption = self.fitting(&caption, right - left, &Font::new(FONT));
        let middle = (left + right) / 2.0;
        self.text(
            &caption,
            middle,
            bottom + 5.0 + LINE * 1.5,
            HorizontalAlign::Center,
        );
    }

    fn nothing(&mut self, frame: &Frame) {
        self.text(
            "no data in this range",
            (frame.left + frame.right) / 2.0,
            (frame.top + frame.bottom) / 2.0,
            HorizontalAlign::Center,
        );
    }

    fn value_axis(&mut self, frame: &Frame) {
        let faint = self.theme.faint;
        let most = ((frame.bottom - frame.top) / 28.0) as usize;
        let values = ticks::of_values(frame.low, frame.high, most);
        for value in values {
            let y = frame.y(value);
            self.line(
                (frame.left, y.round() + 0.5),
                (frame.right, y.round() + 0.5),
                faint,
            );
            let text = units::short(value);
            self.text(&text, frame.left - 5.0, y, HorizontalAlign::Right);
        }
    }

    fn time_axis(&mut self, panel: &Panel, frame: &Frame) {
        let faint = self.theme.faint;
        let zone = (!panel.is_relative).then_some(&self.look.zone);
        let most = ((frame.right - frame.left) / 90.0) as usize;
        let mut free = frame.left - LEFT;
        for (time, text) in ticks::of_times(frame.range, most, zone) {
            let x = frame.x(time);
            self.line(
                (x.round() + 0.5, frame.top),
                (x.round() + 0.5, frame.bottom),
                faint,
            );
            let half = self.fonts.text_width(&Font::new(FONT), &text) / 2.0;
            // A text that would touch the one before, or leave the panel, is left out.
            if x - half < free || x + half > frame.right + RIGHT {
                continue;
            }
            free = x + half + 8.0;
            self.text(
                &text,
                x,
                frame.bottom + 4.0 + LINE / 2.0,
                HorizontalAlign::Center,
            );
        }
    }

    fn series(&mut self, series: &Series, frame: &Frame, colour: Colour) {
        let mut run: Vec<At> = Vec::new();
        let mut before: Option<i64> = None;
        for point in &series.points {
            let is_apart = before.is_some_and(|end| point.begin.saturating_sub(end) > series.gap);
            if is_apart {
                self.run(&mut run, colour);
            }
            let (from, to) = (frame.x(point.begin), frame.x(point.end));
            if point.min < point.max {
                let (low, high) = (frame.y(point.min), frame.y(point.max));
                let half = (0.5 - (to - from) / 2.0).max(0.0);
                self.fill(from - half, high, to + half, low, colour.with_alpha(0.3));
            }
            let y = frame.y(point.mean);
            run.push(At::new(from, y));
            if to > from {
                run.push(At::new(to, y));
            }
            before = Some(point.end);
        }
        self.run(&mut run, colour);
    }

    /// Draws connected values; a single one as a dot.
    fn run(&mut self, run: &mut Vec<At>, colour: Colour) {
        let run = std::mem::take(run);
        match run[..] {
            [] => {}
            [at] => self.fill(at.x - 1.5, at.y - 1.5, at.x + 1.5, at.y + 1.5, colour),
            _ => self.picture.items.push(Item::Stroke {
                path: Path::polyline(run),
                colour,
                style: Stroke::round(1.3),
            }),
        }
    }

    /// Marks at the upper edge, one for each pixel at most.
    fn losses(&mut self, panel: &Panel, frame: &Frame) {
        let colour = self.theme.loss;
        let mut last = f64::NEG_INFINITY;
        for time in &panel.losses {
            let x = frame.x(*time);
            if x - last < 1.0 && x >= last {
                continue;
            }
            last = x;
            self.line((x, frame.top), (x, frame.bottom), colour.with_alpha(0.25));
            self.picture.items.push(Item::Fill {
                path: Path::polygon([
                    At::new(x - 4.0, frame.top - 5.0),
                    At::new(x + 4.0, frame.top - 5.0),
                    At::new(x, frame.top + 2.0),
                ]),
                paint: Paint::Solid(colour),
            });
        }
    }

    fn legend(&mut self, series: &Series, x: f64, y: f64, width: f64, colour: Colour) {
        self.fill(x + 10.0, y - 4.0, x + 18.0, y + 4.0, colour);
        let font = Font::new(FONT);
        let stats = match &series.stats {
            None => "no known value".to_string(),
            Some(stats) => {
                let [min, avg, max, last] =
                    [stats.min, stats.mean, stats.max, stats.last].map(units::short);
                match width < 560.0 {
                    true => format!("avg {avg}  max {max}  last {last}"),
                    false => {
                        format!("min {min:>8}   avg {avg:>8}   max {max:>8}   last {last:>8}")
                    }
                }
            }
        };
        let taken = self.fonts.text_width(&font, &stats);
        let name = self.fitting(&series.name, width - 24.0 - RIGHT - 12.0 - taken, &font);
        self.text(&name, x + 24.0, y, HorizontalAlign::Left);
        self.text(&stats, x + width - RIGHT, y, HorizontalAlign::Right);
    }
}

/// Where a panel is in the picture.
#[derive(Clone, Copy)]
struct Area {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

/// Where times and values are.
struct Frame {
    range: (i64, i64),
    low: f64,
    high: f64,
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
}

impl Frame {
    fn new(
        range: (i64, i64),
        series: &[Series],
        left: f64,
        top: f64,
        right: f64,
        bottom: f64,
    ) -> Self {
        let points = || series.iter().flat_map(|series| &series.points);
        let low = points()
            .map(|point| point.min)
            .fold(f64::INFINITY, f64::min);
        let high = points()
            .map(|point| point.max)
            .fold(f64::NEG_INFINITY, f64::max);
        // Differences of larger numbers are not finite.
        let limit = 1e300;
        let (low, high) = match low <= high {
            true => (low.clamp(-limit, limit), high.clamp(-limit, limit)),
            false => (0.0, 1.0),
        };
        // Zero is shown unless what changes is far from it.
        let is_far = high - low < 0.2 * low.abs().max(high.abs()) && high > low;
        let (low, high) = match is_far {
            true => (low - (high - low) * 0.1, high + (high - low) * 0.1),
            false => (low.min(0.0) * 1.05, high.max(0.0) * 1.05),
        };
        let room = (low.abs().max(high.abs()) * 1e-9).max(f64::MIN_POSITIVE * 1e9);
        let (low, high) = match high - low > room {
            true => (low, high),
            false if low == 0.0 && high == 0.0 => (0.0, 1.0),
            false => (low - low.abs() * 0.1, high + high.abs() * 0.1),
        };
        Self {
            range,
            low,
            high,
            left,
            top,
            right,
            bottom,
        }
    }

    fn x(&self, time: i64) -> f64 {
        let (begin, end) = self.range;
        let part = (i128::from(time) - i128::from(begin)) as f64
            / (i128::from(end) - i128::from(begin)) as f64;
        // What is far outside is clipped, and stays within what renderers take.
        self.left + part.clamp(-1.0, 2.0) * (self.right - self.left)
    }

    fn y(&self, value: f64) -> f64 {
        let part = (value - self.low) / (self.high - self.low);
        self.bottom - part.clamp(-1.0, 2.0) * (self.bottom - self.top)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page that is narrow has fewer columns, so that its panels can be seen.
    #[test]
    fn columns_have_room() {
        let panel = Panel {
            title: "load".to_owned(),
            unit: String::new(),
            range: (0, 1_000_000_000),
            is_relative: false,
            content: Content::Series(Vec::new()),
            losses: Vec::new(),
        };
        let fonts = Fonts::new();
        let size = |count: usize, width: Option<u32>| {
            let look = Look {
                width,
                ..Look::default()
            };
            let picture = page(&vec![panel.clone(); count], &look, &fonts).unwrap();
            (picture.width, picture.height)
        };
        let (_, row) = size(1, None);
        assert_eq!(size(12, None), (1200, 4 * row));
        assert_eq!(size(12, Some(480)), (480, 4 * row));
        assert_eq!(size(12, Some(479)), (479, 6 * row));
        assert_eq!(size(12, Some(100)), (100, 12 * row));
    }
}
