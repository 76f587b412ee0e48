//! Series as tables: XML, JSON and text with separators.

use kymo_rrd::rpn::{Series, greatest_divisor};
use kymo_text::Line;

use super::dates::date;
use super::{Bounds, Notes};
use crate::{Failure, LocalZone};

/// Approximate size in bytes of the pieces in which text is written.
const PIECE: usize = 1 << 15;

/// What takes the text, in pieces.
type Write<'w> = dyn FnMut(&[u8]) -> Result<(), Failure> + 'w;

/// Columns, and what is written with them.
pub(crate) struct Table<'a> {
    /// Series, and what they are called.
    pub(crate) columns: Vec<(&'a Series, &'a [u8])>,
    /// Whether rows have their time.
    pub(crate) times: bool,
    /// Whether columns have numbers in XML.
    pub(crate) numbered: bool,
    /// Texts of a graph; then legends are escaped, too.
    pub(crate) notes: Option<Notes>,
    /// Whether numbers in JSON have as many digits as distinguish them from their neighbours.
    pub(crate) exact: bool,
}

/// The rows of a table.
#[derive(Clone, Copy)]
pub(crate) struct Grid {
    /// The beginning of the first row.
    pub(crate) start: i64,
    pub(crate) end: i64,
    pub(crate) step: i64,
}

impl Grid {
    /// The beginnings of the rows.
    pub(crate) fn rows(self) -> impl Iterator<Item = i64> {
        let starts =
            std::iter::successors(Some(self.start), move |time| time.checked_add(self.step));
        starts.take_while(move |time| *time < self.end)
    }
}

impl Table<'_> {
    /// Rows as long as all columns have whole ones of, between the times.
    pub(crate) fn grid(&self, bounds: &Bounds) -> Grid {
        let step = self
            .columns
            .iter()
            .fold(0, |step, (series, _)| greatest_divisor(series.step(), step))
            .max(1);
        let rest = bounds.end.rem_euclid(step);
        Grid {
            start: bounds.start - bounds.start.rem_euclid(step),
            end: match rest {
                0 => bounds.end,
                rest => bounds.end.saturating_add(step - rest),
            },
            step,
        }
    }

    pub(crate) fn xml(&self, grid: Grid, out: &mut Write<'_>) -> Result<(), Failure> {
        let mut line = Line::new();
        line.push(b"<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>\n\n<xport>\n  <meta>\n");
        let meta = [
            ("start", grid.start.saturating_add(grid.step)),
            ("end", grid.end),
            ("step", grid.step),
            ("rows", (grid.end - grid.start) / grid.step),
            ("columns", self.columns.len() as i64),
        ];
        for (name, number) in meta {
            line.push(format!("    <{name}>{number}</{name}>\n").as_bytes());
        }
        line.push(b"    <legend>\n");
        for (_, legend) in &self.columns {
            line.push(b"      <entry>");
            self.xml_text(&mut line, legend);
            line.push(b"</entry>\n");
        }
        line.push(b"    </legend>\n");
        if let Some(notes) = &self.notes {
            for (list, entries) in notes.lists() {
                line.push(format!("    <{list}>\n").as_bytes());
                for (name, text) in entries {
                    line.push(format!("        <{name}>").as_bytes());
                    self.xml_text(&mut line, text.as_bytes());
                    line.push(format!("</{name}>\n").as_bytes());
                }
                line.push(format!("    </{list}>\n").as_bytes());
            }
        }
        line.push(b"  </meta>\n  <data>\n");
        for time in grid.rows() {
            line.push(b"    <row>");
            if self.times {
                line.push(b"<t>");
                line.signed(time.saturating_add(grid.step));
                line.push(b"</t>");
            }
            for (column, (series, _)) in self.columns.iter().enumerate() {
                let tag = |line: &mut Line, begin: &[u8]| {
                    line.push(begin);
                    if self.numbered {
                        line.decimal(column as u64);
                    }
                    line.push_byte(b'>');
                };
                tag(&mut line, b"<v");
                line.rrdtool(series.value_from(time), 10);
                tag(&mut line, b"</v");
            }
            line.push(b"</row>\n");
            write_piece(&mut line, PIECE, out)?;
        }
        line.push(b"  </data>\n</xport>\n");
        write_piece(&mut line, 0, out)
    }

    pub(crate) fn json(&self, grid: Grid, out: &mut Write<'_>) -> Result<(), Failure> {
        let mut line = Line::new();
        line.push(b"{ \"about\": \"RRDtool graph JSON output\",\n  \"meta\": {\n");
        let meta = [
            ("start", grid.start.saturating_add(grid.step)),
            ("end", grid.end),
            ("step", grid.step),
        ];
        for (name, number) in meta {
            line.push(format!("    \"{name}\": {number},\n").as_bytes());
        }
        line.push(b"    \"legend\": [\n");
        for (column, (_, legend)) in self.columns.iter().enumerate() {
            line.push(b"      ");
            match self.notes.is_some() || self.exact {
                true => line.json_string(legend),
                false => {
                    line.push_byte(b'"');
                    line.push(legend);
                    line.push_byte(b'"');
                }
            }
            line.push(match column + 1 < self.columns.len() {
                true => b",\n",
                false => b"\n",
            });
        }
        line.push(b"          ]\n");
        if let Some(notes) = &self.notes {
            for (list, entries) in notes.lists() {
                line.push(format!("    ,\"{list}\": [\n").as_bytes());
                for (place, (name, text)) in entries.iter().enumerate() {
                    line.push(format!("        {{ \"{name}\": ").as_bytes());
                    line.json_string(text.as_bytes());
                    line.push(match place + 1 < entries.len() {
                        true => b" },\n",
                        false => b" }\n",
                    });
                }
                line.push(b"        ]\n");
            }
        }
        line.push(b"     },\n  \"data\": [\n");
        for (row, time) in grid.rows().enumerate() {
            line.push(match row {
                0 => b"    [ ".as_slice(),
                _ => b",\n    [ ",
            });
            if self.times {
                line.push_byte(b'"');
                line.signed(time.saturating_add(grid.step));
                line.push(b"\",");
            }
            for (column, (series, _)) in self.columns.iter().enumerate() {
                if column > 0 {
                    line.push(b", ");
                }
                match series.value_from(time) {
                    value if value.is_finite() && self.exact => line.shortest(value, 64),
                    value if value.is_finite() => line.rrdtool(value, 10),
                    _ => line.push(b"null"),
                }
            }
            line.push(b" ]");
            write_piece(&mut line, PIECE, out)?;
        }
        line.push(match grid.rows().next() {
            Some(_) => b"\n  ]\n}\n".as_slice(),
            None => b"  ]\n}\n",
        });
        write_piece(&mut line, 0, out)
    }

    /// Appends a text that stands between tags.
    fn xml_text(&self, line: &mut Line, text: &[u8]) {
        if self.notes.is_none() {
            return line.push(text);
        }
        for &byte in String::from_utf8_lossy(text).as_bytes() {
            match byte {
                // XML has no way to write them.
                0..=8 | 11 | 12 | 14..=31 => line.push("\u{fffd}".as_bytes()),
                b'<' => line.push(b"&lt;"),
                b'>' => line.push(b"&gt;"),
                b'&' => line.push(b"&amp;"),
                byte => line.push_byte(byte),
            }
        }
    }

    /// Lines of columns: CSV and its kin. Times are seconds, or formatted as a format says.
    pub(crate) fn separated(
        &self,
        grid: Grid,
        separator: u8,
        times: Option<(&str, &LocalZone)>,
        out: &mut Write<'_>,
    ) -> Result<(), Failure> {
        let mut line = Line::new();
        line.push(b"\"time\"");
        for (_, legend) in &self.columns {
            line.push_byte(separator);
            quoted(&mut line, legend);
        }
        line.push(b"\r\n");
        for time in grid.rows() {
            let end = time.saturating_add(grid.step);
            match times {
                Some((format, zone)) => line.push(date(format, end, zone).as_bytes()),
                None => line.signed(end),
            }
            for (series, _) in &self.columns {
                line.push_byte(separator);
                line.push_byte(b'"');
                line.rrdtool(series.value_from(time), 10);
                line.push_byte(b'"');
            }
            line.push(b"\r\n");
            write_piece(&mut line, PIECE, out)?;
        }
        write_piece(&mut line, 0, out)
    }
}

/// Appends a cell in quotes; those in it are doubled.
fn quoted(line: &mut Line, text: &[u8]) {
    line.push_byte(b'"');
    for &byte in text {
        if byte == b'"' {
            line.push_byte(b'"');
        }
        line.push_byte(byte);
    }
    line.push_byte(b'"');
}

/// Writes the text as soon as it is longer than `most` bytes.
fn write_piece(line: &mut Line, most: usize, out: &mut Write<'_>) -> Result<(), Failure> {
    if line.len() > most {
        out(line.as_bytes())?;
        line.clear();
    }
    Ok(())
}
