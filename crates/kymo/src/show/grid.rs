//! Events as a table with chosen columns.

use kymo_model::Recording;
use kymo_text::{Line, visible};

use super::wall::Wall;
use super::{LossReporter, Sink, WallOptions};
use crate::AnyRecording;
use crate::filter::{FieldNames, FilterError, Wish, name_of};
use crate::pipeline::Row;
use crate::timeline::{Filler, RowPlan};
use crate::tracks::{Key, RowKey};

/// The longest text of a cell, in characters.
const LONGEST: usize = 40;

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Cell {
    Time,
    Name,
    /// By its position among the fields.
    Field(usize),
}

/// The columns of a table, and where recordings have what they show.
#[derive(Debug)]
pub struct GridPlan {
    columns: Vec<(Cell, String)>,
    rows: RowPlan,
}

impl GridPlan {
    /// Columns `time`, `name`, and fields of events, of which some must have each.
    ///
    /// # Errors
    ///
    /// No event has one of the fields.
    pub fn new(columns: &FieldNames, recordings: &[AnyRecording]) -> Result<Self, FilterError> {
        let mut next = 0;
        let cells = columns.iter().map(|word| {
            let cell = match word {
                "time" => Cell::Time,
                "name" => Cell::Name,
                _ => {
                    next += 1;
                    Cell::Field(next - 1)
                }
            };
            (cell, word.to_string())
        });
        let cells = cells.collect();
        let mut fields = columns.clone();
        fields.take("time");
        fields.take("name");
        let wish = Wish {
            names: &fields,
            required: true,
        };
        let rows = RowPlan::of_wishes(recordings, &[wish], |_, _| Some(vec![0]));
        Ok(Self {
            columns: cells,
            rows: rows.map_err(|(_, error)| error.meant(["time", "name"]))?,
        })
    }
}

/// Writes the table. Columns are as wide as their widest cell so far.
#[derive(Debug)]
pub struct Grid<'p> {
    plan: &'p GridPlan,
    wall: Wall,
    widths: Vec<usize>,
    loss_reporter: LossReporter,
    time: Line,
}

impl<'p> Grid<'p> {
    /// A table of what a plan says.
    pub fn new(plan: &'p GridPlan, wall: WallOptions) -> Self {
        let widths = plan.columns.iter().map(|(cell, title)| {
            // A time is as wide as any other; names and numbers find their width.
            let least = if *cell == Cell::Time { 18 } else { 6 };
            title.chars().count().max(least)
        });
        Self {
            widths: widths.collect(),
            plan,
            wall: Wall::new(wall),
            loss_reporter: LossReporter::new(wall),
            time: Line::new(),
        }
    }

    fn line(&mut self, cells: &[String], out: &mut Line) {
        let last = cells.len().saturating_sub(1);
        for (position, cell) in cells.iter().enumerate() {
            let width = cell.chars().count();
            out.push(cell.as_bytes());
            if position < last {
                let column = &mut self.widths[position];
                *column = width.max(*column);
                (width..*column + 2).for_each(|_| out.push_byte(b' '));
            }
        }
        out.push_byte(b'\n');
    }
}

/// A text cut to the maximum length, as a terminal may show it.
fn cut(text: &str) -> String {
    let text = visible(text);
    match text.char_indices().nth(LONGEST - 1) {
        Some((end, c)) if text.len() > end + c.len_utf8() => format!("{}…", &text[..end]),
        _ => text.into_owned(),
    }
}

impl<'p> Sink for Grid<'p> {
    type Renderer = Filler<'p>;

    fn renderer(&self) -> Filler<'p> {
        Filler::with_raw_texts(&self.plan.rows)
    }

    fn takes_rows(&self) -> bool {
        true
    }

    fn begin(
        &mut self,
        _of: &[AnyRecording],
        write: &mut dyn FnMut(&[u8]) -> std::io::Result<()>,
    ) -> std::io::Result<()> {
        let titles: Vec<String> = self
            .plan
            .columns
            .iter()
            .map(|(_, title)| title.clone())
            .collect();
        let mut line = Line::new();
        self.line(&titles, &mut line);
        write(line.as_bytes())
    }

    fn row(
        &mut self,
        row: &Row<'_>,
        recordings: &[AnyRecording],
        out: &mut Line,
        warnings: &mut Vec<u8>,
    ) -> bool {
        let (recording, class) = (row.message.recording, row.message.class);
        let cells = self.plan.columns.iter().map(|(cell, _)| match cell {
            Cell::Time => {
                self.time.clear();
                self.wall.write(row.message.time, &mut self.time, warnings);
                String::from_utf8_lossy(self.time.as_bytes()).into_owned()
            }
            Cell::Name => cut(name_of(&recordings[recording].event_classes()[class])),
            Cell::Field(field) => {
                let columns = [self.plan.rows.columns(recording, class, *field)];
                let row = RowKey {
                    values: row.values,
                    fields: &columns,
                };
                match row.key() {
                    Key::Missing => String::new(),
                    key => cut(&key.text()),
                }
            }
        });
        let cells: Vec<String> = cells.collect();
        self.line(&cells, out);
        true
    }

    fn loss_reporter(&mut self) -> Option<&mut LossReporter> {
        Some(&mut self.loss_reporter)
    }
}
