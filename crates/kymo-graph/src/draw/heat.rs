//! Heat maps: durations over time, with their distribution beside them.

use kymo_draw::{Colour, Font, HorizontalAlign, Item, Paint, Path};

use super::{Area, Drawing, FONT, Frame, LEFT, LINE, RIGHT, TITLE};
use crate::panel::{Heat, Panel};
use crate::units;

/// Width of the distribution.
const SIDE: f64 = 110.0;

/// From few to many, on a light and on a dark background: one hue, lightness alone shows how many.
const LIGHT: [u32; 5] = [
    0xdbe9_f6ff,
    0x9eca_e1ff,
    0x4292_c6ff,
    0x0851_9cff,
    0x0625_50ff,
];
const DARK: [u32; 5] = [
    0x1d33_4cff,
    0x1f5f_99ff,
    0x3b93_d0ff,
    0x8fc9_efff,
    0xf1f8_ffff,
];

impl Drawing<'_> {
    pub(super) fn heat(&mut self, panel: &Panel, heat: &Heat, area: Area) {
        let Area {
            x,
            y,
            width,
            height,
        } = area;
        let side = if width >= 500.0 { SIDE } else { 0.0 };
        let (left, right) = (x + LEFT, x + width - RIGHT - side);
        let (top, bottom) = (y + TITLE, y + height - 3.0 * LINE - 10.0);
        if right - left < 40.0 || bottom - top < 20.0 {
            return;
        }
        let rows = heat.totals.iter().map(|(row, _)| *row);
        let (low, high) = (rows.clone().min(), rows.max());
        let frame = Frame {
            range: panel.range,
            low: f64::from(low.unwrap_or(0)),
            high: f64::from(high.map_or(1, |high| high + 1)),
            left,
            top,
            right,
            bottom,
        };
        self.time_axis(panel, &frame);
        let counts = heat.columns.iter().flat_map(|column| &column.counts);
        let most = counts.map(|(_, count)| *count).max().unwrap_or(1);
        for column in &heat.columns {
            let from = frame.x(column.begin).max(left);
            let to = frame.x(column.end).min(right);
            for (row, count) in &column.counts {
                let colour = self.shade(*count, most);
                let (low, high) = (frame.y(f64::from(*row)), frame.y(f64::from(row + 1)));
                self.fill(from, high, to.max(from + 1.0), low, colour);
            }
        }
        self.durations(&frame);
        if low.is_none() {
            self.nothing(&frame);
        }
        if side > 0.0 && low.is_some() {
            self.distribution(heat, &frame, (right + 10.0, right + side));
        }
        self.under(panel, &frame);
        let facts = heat
            .facts
            .iter()
            .map(|(name, value)| format!("{name} {value}"));
        let facts = facts.collect::<Vec<_>>().join("   ");
        let baseline = y + height - LINE + LINE / 2.0 - 3.0;
        let scale = self.scale(most, x + width - RIGHT, baseline);
        let font = Font::new(FONT);
        let facts = self.fitting(&facts, scale - x - 20.0, &font);
        self.text(&facts, x + 10.0, baseline, HorizontalAlign::Left);
    }

    /// The colour of a count: counts that are ten times as many are as far apart, however many there are.
    fn shade(&self, count: u64, most: u64) -> Colour {
        let ramp = if self.look.is_dark { DARK } else { LIGHT };
        let place = match most {
            0..=1 => 1.0,
            most => (count.max(1) as f64).ln() / (most as f64).ln(),
        };
        let place = place.clamp(0.0, 1.0) * (ramp.len() - 1) as f64;
        let below = (place as usize).min(ramp.len() - 2);
        let share = place - below as f64;
        let (a, b) = (ramp[below].to_be_bytes(), ramp[below + 1].to_be_bytes());
        let mut mixed = [0; 4];
        for (mixed, (a, b)) in mixed.iter_mut().zip(a.into_iter().zip(b)) {
            *mixed = (f64::from(a) * (1.0 - share) + f64::from(b) * share).round() as u8;
        }
        Colour::from_rgba(u32::from_be_bytes(mixed))
    }

    /// Lines and labels at 1, 10, 100 of each unit, as far as there is room.
    fn durations(&mut self, frame: &Frame) {
        let row = |nanos: f64| {
            let power = nanos.log2().floor();
            4.0 * power + 4.0 * (nanos / power.exp2() - 1.0)
        };
        let mut last = f64::INFINITY;
        for factors in [&[1.0][..], &[1.0, 2.0, 5.0]] {
            let marks = (0..=19).flat_map(|power| {
                let decade = 10f64.powi(power);
                factors.iter().map(move |factor| factor * decade)
            });
            let marks: Vec<f64> = marks
                .filter(|nanos| (frame.low..=frame.high).contains(&row(*nanos)))
                .collect();
            if marks.len() < 2 && factors.len() == 1 {
                continue;
            }
            for nanos in marks {
                let y = frame.y(row(nanos));
                if last - y < LINE {
                    continue;
                }
                last = y;
                let faint = self.theme.faint;
                self.line(
                    (frame.left, y.round() + 0.5),
                    (frame.right, y.round() + 0.5),
                    faint.with_alpha(0.6),
                );
                let text = units::short(nanos / 1e9);
                let space = if text.contains(' ') { "" } else { " " };
                self.text(
                    &format!("{text}{space}s"),
                    frame.left - 5.0,
                    y,
                    HorizontalAlign::Right,
                );
            }
            break;
        }
    }

    /// Bars of how many durations there are in each row, and the percentiles.
    fn distribution(&mut self, heat: &Heat, frame: &Frame, (left, right): (f64, f64)) {
        let most = heat
            .totals
            .iter()
            .map(|(_, count)| *count)
            .max()
            .unwrap_or(1);
        let colour = Colour::from_rgba(super::COLOURS[0]);
        for (row, count) in &heat.totals {
            let (low, high) = (frame.y(f64::from(*row)), frame.y(f64::from(row + 1)));
            let length = (right - left) * *count as f64 / most as f64;
            self.fill(left, high, left + length.max(0.5), low, colour);
        }
        let mut last = f64::INFINITY;
        for (name, nanos) in &heat.marks {
            let y = frame.y(f64::from(Heat::row(*nanos)) + 0.5);
            let colour = self.theme.text.with_alpha(0.5);
            self.line((left, y), (right, y), colour);
            if last - y >= LINE {
                self.text(name, right, y - LINE / 2.0, HorizontalAlign::Right);
                last = y;
            }
        }
    }

    /// A scale of the colours that ends at `right`; where it begins.
    fn scale(&mut self, most: u64, right: f64, y: f64) -> f64 {
        let font = Font::new(FONT);
        let many = units::short(most as f64);
        let after = self.fonts.text_width(&font, &many);
        self.text(&many, right, y, HorizontalAlign::Right);
        let mut x = right - after - 5.0;
        let steps = 5;
        for step in (0..steps).rev() {
            let share = f64::from(step) / f64::from(steps - 1);
            let count = (most as f64).powf(share).round() as u64;
            let paint = Paint::Solid(self.shade(count, most));
            self.picture.items.push(Item::Fill {
                path: Path::rectangle(x - 10.0, y - 4.0, x, y + 4.0),
                paint,
            });
            x -= 10.0;
        }
        self.text("1", x - 5.0, y, HorizontalAlign::Right);
        x - 5.0 - self.fonts.text_width(&font, "1")
    }
}
