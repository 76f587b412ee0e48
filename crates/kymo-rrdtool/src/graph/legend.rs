//! Where the texts below a graph stand.

use super::elements::{Alignment, Kind};
use super::metrics::Metrics;
use super::options::{Direction, GraphOptions, TextKind};
use super::print::Texts;
use super::script::Script;
use super::{compute::Known, elements::Shown};
use crate::Failure;

/// A text of the legend.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    /// The element that it belongs to.
    pub(crate) element: usize,
    /// Without escapes.
    pub(crate) text: String,
    /// From the left of the legend, in pixels.
    pub(crate) x: f64,
    /// From its top to the bottom of the text.
    pub(crate) y: f64,
}

/// All texts, and the room that they take.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Legend {
    pub(crate) entries: Vec<Entry>,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// What ends a line, or changes how the next text follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Control {
    None,
    /// `\g`: no room behind the text.
    Glue,
    Left,
    Right,
    Center,
    Justified,
    /// `\s`: a bit more room below.
    Space,
    /// `\u`: the next line takes the place of this one.
    Up,
}

/// A text that is to be placed.
struct Item {
    element: usize,
    text: String,
    control: Control,
    /// How lines end from here on that have no control.
    alignment: Control,
}

impl Item {
    /// Takes the control off the end of a text.
    fn new(element: usize, legend: &str, alignment: Control) -> Result<Self, Failure> {
        let mut text = legend.replace("\\t", "\t");
        let mut control = Control::None;
        let mut ends = text.chars().rev();
        if let (Some(letter), Some('\\')) = (ends.next(), ends.next()) {
            control = match letter {
                '.' => Control::None,
                'g' => Control::Glue,
                'l' | 'n' => Control::Left,
                'r' => Control::Right,
                'c' => Control::Center,
                'j' => Control::Justified,
                's' => Control::Space,
                'u' => Control::Up,
                _ => {
                    let message = format!("Unknown control code at the end of '{text}'");
                    return Err(Failure::new(message));
                }
            };
            text.truncate(text.len() - letter.len_utf8() - 1);
        }
        if control == Control::Glue {
            text.truncate(text.trim_end_matches(' ').len());
        }
        Ok(Self {
            element,
            text,
            control,
            alignment,
        })
    }
}

/// What stands in the legend for each element, with escapes.
pub(super) fn raw_texts(
    script: &Script,
    texts: &Texts,
    known: &[Known],
    options: &GraphOptions,
    (start, end): (i64, i64),
) -> Vec<String> {
    let value = |shown: Shown| match shown {
        Shown::Number(value) => value,
        Shown::Variable(variable) => match known[variable] {
            Known::Value { value, .. } => value,
            Known::Series(_) => f64::NAN,
        },
    };
    let elements = script.elements.iter().zip(&texts.below);
    elements
        .map(|(element, below)| {
            let hidden = !options.force_rules_legend
                && match &element.kind {
                    // Only limits that are set are known here.
                    Kind::HorizontalRule { value: shown, .. } => {
                        let value = value(*shown);
                        value < options.lower || value > options.upper
                    }
                    Kind::VerticalRule { time, .. } => {
                        let time = rule_time(*time, known);
                        time < start || time > end
                    }
                    _ => false,
                };
            match &element.kind {
                _ if hidden => String::new(),
                Kind::Print { .. } => below.clone().unwrap_or_default(),
                Kind::Comment | Kind::Tick { .. } => element.legend.clone(),
                Kind::Align(_) | Kind::Export { .. } => String::new(),
                _ if element.legend.is_empty() => String::new(),
                // Room for the box.
                _ => format!("  {}", element.legend),
            }
        })
        .collect()
}

/// The time of a vertical rule.
pub(super) fn rule_time(time: Shown, known: &[Known]) -> i64 {
    match time {
        Shown::Number(time) => match time as i64 {
            0 => 1,
            time => time,
        },
        Shown::Variable(variable) => match known[variable] {
            Known::Value { time, .. } => time.unwrap_or_default(),
            Known::Series(_) => 0,
        },
    }
}

impl Legend {
    /// Places all texts. `width` is that of the legend; `None` to find how much they need.
    ///
    /// # Errors
    ///
    /// A control that does not exist.
    pub(super) fn new(
        script: &Script,
        texts: &[String],
        metrics: &Metrics<'_>,
        options: &GraphOptions,
        width: Option<f64>,
    ) -> Result<Self, Failure> {
        let size = options.font(TextKind::Legend).size;
        let border = (size * 2.0).trunc();
        let mut alignment = Control::Justified;
        let mut items = Vec::with_capacity(texts.len());
        for (element, text) in texts.iter().enumerate() {
            if let Kind::Align(align) = script.elements[element].kind {
                alignment = match align {
                    Alignment::Left => Control::Left,
                    Alignment::Right => Control::Right,
                    Alignment::Center => Control::Center,
                    Alignment::Justified => Control::Justified,
                };
            }
            items.push(Item::new(element, text, alignment)?);
        }
        if script.ends_with_definition {
            // The last word ends a line, whatever it is: an empty one counts if it is centred or on the right.
            items.push(Item::new(0, "", alignment)?);
        }
        let mut placing = Placing {
            items: &items,
            metrics,
            size,
            border,
            grows: width.is_none(),
            width: width.map_or(0.0, |width| width - 2.0 * border),
            y: 0.0,
            entries: Vec::new(),
        };
        let mut begin = 0;
        while begin < items.len() {
            begin = placing.line(begin);
        }
        let (width, height) = (placing.width + 2.0 * border, placing.y + border * 0.6);
        let mut legend = Self {
            entries: placing.entries,
            width,
            height: height.trunc(),
        };
        legend.turn(script, options.legend_direction);
        Ok(legend)
    }

    /// Turns the order of lines.
    fn turn(&mut self, script: &Script, direction: Direction) {
        let is_comment =
            |entry: &Entry| matches!(script.elements[entry.element].kind, Kind::Comment);
        let range = match direction {
            Direction::TopDown => return,
            Direction::BottomUp => 0..self.entries.len(),
            Direction::BottomUp2 => {
                let first = self.entries.iter().position(|entry| !is_comment(entry));
                let last = self.entries.iter().rposition(|entry| !is_comment(entry));
                match (first, last) {
                    (Some(first), Some(last)) => first..last + 1,
                    _ => return,
                }
            }
        };
        // The first and the last line change places, wherever lines between them are: `\u` leads back.
        let entries = &mut self.entries[range];
        let sum = match (entries.first(), entries.last()) {
            (Some(first), Some(last)) => first.y + last.y,
            _ => return,
        };
        for entry in entries {
            entry.y = sum - entry.y;
        }
    }
}

/// A legend on its way.
struct Placing<'a> {
    items: &'a [Item],
    metrics: &'a Metrics<'a>,
    size: f64,
    border: f64,
    /// Whether the width is still to be found.
    grows: bool,
    width: f64,
    y: f64,
    entries: Vec<Entry>,
}

impl Placing<'_> {
    /// Places the texts of one line, from an item on, and returns the first of the next line.
    fn line(&mut self, begin: usize) -> usize {
        let between = self.border;
        let mut fill = 0.0f64;
        // The number of texts, without empty ones.
        let mut count = 0u32;
        let mut spaces = Vec::new();
        for (at, item) in self.items.iter().enumerate().skip(begin) {
            let before = fill;
            let mut space = 0.0;
            if !item.text.is_empty() {
                space = if item.control == Control::Glue {
                    0.0
                } else {
                    between
                };
                if fill > 0.0 {
                    fill += space;
                }
                fill = (fill + self.metrics.width(TextKind::Legend, &item.text)).trunc();
                count += 1;
            }
            spaces.push(space);
            let mut control = item.control;
            let mut end = at + 1;
            if matches!(control, Control::None | Control::Glue) {
                if self.grows {
                    self.width = self.width.max(fill);
                }
                let is_last = at + 1 == self.items.len();
                let is_full = fill > self.width;
                if !is_last && !is_full {
                    continue;
                }
                control = item.alignment;
                if is_full && count > 1 {
                    // It goes to the next line.
                    end = at;
                    fill = before;
                    count -= 1;
                }
                if count == 1 && control == Control::Justified {
                    control = Control::Left;
                }
            }
            self.place(begin..end, &spaces, fill, count, control);
            if self.grows {
                self.width = self.width.max(fill);
            }
            return end;
        }
        self.items.len()
    }

    fn place(
        &mut self,
        range: std::ops::Range<usize>,
        spaces: &[f64],
        fill: f64,
        count: u32,
        control: Control,
    ) {
        let rest = self.width - fill;
        let mut x = self.border;
        let mut glue = 0.0;
        match control {
            Control::Justified if count >= 2 => glue = rest / f64::from(count - 1),
            Control::Center => x += rest / 2.0,
            Control::Right => x += rest,
            _ => {}
        }
        for (item, space) in self.items[range].iter().zip(spaces) {
            if item.text.is_empty() {
                continue;
            }
            self.entries.push(Entry {
                element: item.element,
                text: item.text.clone(),
                x,
                y: self.y + self.border,
            });
            x += self.metrics.width(TextKind::Legend, &item.text) + space + glue;
        }
        // Whole pixels, cut off after each step.
        let down = |y: f64, by: f64| (y + by).trunc();
        if x > self.border || control == Control::Space {
            self.y = down(self.y, self.size * 1.8);
        }
        match control {
            Control::Space => self.y = down(self.y, -self.size),
            Control::Up => self.y = down(self.y, -self.size * 1.8),
            _ => {}
        }
    }
}
