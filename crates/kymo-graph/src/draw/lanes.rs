//! Charts of states: bars in lanes.

use kymo_draw::{Colour, Font, HorizontalAlign};

use super::{Area, COLOURS, Drawing, FONT, Frame, LEFT, LINE, RIGHT, TITLE};
use crate::panel::{Lanes, Panel};
use crate::units;

/// Height of a lane.
const LANE: f64 = 18.0;

/// The height of a chart with its legend.
pub(super) fn height(lanes: &Lanes) -> f64 {
    TITLE + lanes.lanes.len().max(2) as f64 * LANE + 2.0 * LINE + 10.0 + legend_height(lanes)
}

fn legend_height(lanes: &Lanes) -> f64 {
    (lanes.states.len() + usize::from(lanes.more > 0)) as f64 * LINE + 4.0
}

impl Drawing<'_> {
    pub(super) fn lanes(&mut self, panel: &Panel, lanes: &Lanes, area: Area) {
        let Area {
            x,
            y,
            width,
            height,
        } = area;
        let font = Font::new(FONT);
        let widths = lanes.lanes.iter().map(|lane| {
            // Longer names are cut.
            let name: String = lane.name.chars().take(60).collect();
            self.fonts.text_width(&font, &name)
        });
        let names = widths.fold(LEFT, f64::max).min(width / 4.0) + 12.0;
        let (left, right) = (x + names, x + width - RIGHT - 40.0);
        let legend = legend_height(lanes);
        let (top, bottom) = (y + TITLE, y + height - legend - 2.0 * LINE - 10.0);
        if right - left < 40.0 || bottom - top < LANE {
            return;
        }
        let frame = Frame {
            range: panel.range,
            low: 0.0,
            high: 1.0,
            left,
            top,
            right,
            bottom,
        };
        self.time_axis(panel, &frame);
        let length = panel.range.1.abs_diff(panel.range.0).max(1);
        for (row, lane) in lanes.lanes.iter().enumerate() {
            let middle = top + (row as f64 + 0.5) * LANE;
            for run in &lane.runs {
                let (from, to) = (frame.x(run.begin).max(left), frame.x(run.end).min(right));
                let colour = match run.state {
                    Some(state) => Colour::from_rgba(COLOURS[state % COLOURS.len()]),
                    None => self.theme.text.with_alpha(0.45),
                };
                // What takes a part of its interval is lower.
                let half = (LANE / 2.0 - 2.0) * (0.25 + 0.75 * run.share);
                self.fill(
                    from,
                    middle - half,
                    to.max(from + 0.5),
                    middle + half,
                    colour,
                );
            }
            let name = self.fitting(&lane.name, names - 16.0, &font);
            self.text(&name, left - 6.0, middle, HorizontalAlign::Right);
            let share = 100.0 * lane.total as f64 / length as f64;
            self.text(
                &format!("{share:.1}%"),
                x + width - RIGHT,
                middle,
                HorizontalAlign::Right,
            );
        }
        if lanes.lanes.is_empty() {
            self.nothing(&frame);
        }
        self.under(panel, &frame);
        let mut line = y + height - legend + LINE / 2.0 - 1.0;
        for ((name, nanos), colour) in lanes.states.iter().zip(COLOURS) {
            let colour = Colour::from_rgba(colour);
            self.fill(x + 10.0, line - 4.0, x + 18.0, line + 4.0, colour);
            let time = units::short(*nanos as f64 / 1e9);
            let space = if time.contains(' ') { "" } else { " " };
            let time = format!("{time}{space}s");
            let taken = self.fonts.text_width(&font, &time);
            let name = self.fitting(name, width - 24.0 - RIGHT - 12.0 - taken, &font);
            self.text(&name, x + 24.0, line, HorizontalAlign::Left);
            self.text(&time, x + width - RIGHT, line, HorizontalAlign::Right);
            line += LINE;
        }
        if lanes.more > 0 {
            let text = format!("{} more lanes are not shown", lanes.more);
            self.text(&text, x + 10.0, line, HorizontalAlign::Left);
        }
    }
}
