//! The values of the archives, looked at where they lie.

use std::fmt;

pub use kymo_machine::FloatOrder;

use crate::Value;

/// Bytes of a value in a file.
const VALUE: u64 = 8;

/// Where the values of an archive lie: a ring of places, each of which has a value of each
/// data source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Offset in bytes of the first data source's value in the first place of the ring.
    pub offset: u64,
    /// Places in the ring, at least `rows`.
    pub places: u64,
    /// The place of the oldest row.
    pub oldest: u64,
    /// Rows, which follow each other in the ring.
    pub rows: u64,
    /// Bytes from a value to that of the same data source in the next place.
    pub row_stride: u64,
    /// Bytes from a value to that of the next data source in the same place.
    pub source_stride: u64,
}

impl Grid {
    /// The grid of native files: rows without gaps, in each the values of all data sources.
    /// `None` where a row is beyond 64 bits.
    pub fn dense(offset: u64, rows: u64, current_row: u64, sources: usize) -> Option<Self> {
        Some(Self {
            offset,
            places: rows,
            oldest: current_row.checked_add(1)?.checked_rem(rows)?,
            rows,
            row_stride: u64::try_from(sources).ok()?.checked_mul(VALUE)?,
            source_stride: VALUE,
        })
    }

    /// The offset after the last value of the ring.
    fn end(&self, sources: usize) -> Option<u64> {
        let last_source = u64::try_from(sources.checked_sub(1)?).ok()?;
        self.offset
            .checked_add(self.places.checked_sub(1)?.checked_mul(self.row_stride)?)?
            .checked_add(last_source.checked_mul(self.source_stride)?)?
            .checked_add(VALUE)
    }
}

/// The values of all archives of a file, in the bytes of that file.
///
/// Nothing is copied: a value is converted when it is asked for. Rows count from the oldest.
#[derive(Clone)]
pub struct Rows<'a> {
    bytes: &'a [u8],
    order: FloatOrder,
    sources: usize,
    grids: Vec<Grid>,
}

/// Why the values of an archive cannot be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GridError {
    /// The archive.
    pub archive: usize,
    /// Where its values end, in bytes; `None` beyond 64 bits.
    pub end: Option<u64>,
    /// Where the bytes end.
    pub length: u64,
}

impl fmt::Display for GridError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "values of archive {}: ", self.archive)?;
        match self.end {
            Some(end) if end > self.length => write!(f, "they end at {end}")?,
            _ => f.write_str("no ring of rows")?,
        }
        write!(f, ", expected at most {}, where the file ends", self.length)
    }
}

impl std::error::Error for GridError {}

impl<'a> Rows<'a> {
    /// The values that lie in `bytes` at the places of `grids`, one for each archive.
    ///
    /// # Errors
    ///
    /// The first archive that does not lie within the bytes, or the ring of which cannot be.
    pub fn new(
        bytes: &'a [u8],
        order: FloatOrder,
        sources: usize,
        grids: Vec<Grid>,
    ) -> Result<Self, GridError> {
        let length = bytes.len() as u64;
        for (archive, grid) in grids.iter().enumerate() {
            let end = grid.end(sources);
            let ring = grid.rows <= grid.places && grid.oldest < grid.places;
            if !ring || end.is_none_or(|end| end > length) {
                return Err(GridError {
                    archive,
                    end,
                    length,
                });
            }
        }
        Ok(Self {
            bytes,
            order,
            sources,
            grids,
        })
    }

    /// How the doubles lie.
    pub fn order(&self) -> FloatOrder {
        self.order
    }

    /// Number of data sources.
    pub fn sources(&self) -> usize {
        self.sources
    }

    /// Number of archives.
    pub fn archives(&self) -> usize {
        self.grids.len()
    }

    /// Where the values of an archive lie.
    pub fn grid(&self, archive: usize) -> Option<&Grid> {
        self.grids.get(archive)
    }

    /// A row of an archive; `None` if there is none.
    #[inline]
    pub fn row(&self, archive: usize, row: u64) -> Option<Row<'a>> {
        let grid = self.grids.get(archive)?;
        if row >= grid.rows {
            return None;
        }
        // `new` has checked that all places lie within the bytes, so nothing overflows.
        let to_end = grid.places - grid.oldest;
        let place = if row < to_end {
            grid.oldest + row
        } else {
            row - to_end
        };
        let offset = grid.offset + place * grid.row_stride;
        Some(Row {
            bytes: self.bytes.get(offset as usize..)?,
            order: self.order,
            sources: self.sources,
            stride: grid.source_stride as usize,
        })
    }

    /// All rows of an archive, the oldest first; none if the archive does not exist.
    pub fn iter(&self, archive: usize) -> impl Iterator<Item = Row<'a>> {
        let rows = self.grids.get(archive).map_or(0, |grid| grid.rows);
        (0..rows).filter_map(move |row| self.row(archive, row))
    }

    /// A value; `None` if there is none.
    pub fn value(&self, archive: usize, row: u64, source: usize) -> Option<Value> {
        self.row(archive, row)?.value(source)
    }

    /// The rows of an archive as they lie, the oldest first, where they lie without gaps: two
    /// runs of bytes, of which the second is empty where the ring does not go round.
    pub fn runs(&self, archive: usize) -> Option<[&'a [u8]; 2]> {
        let grid = self.grids.get(archive)?;
        let dense = grid.source_stride == VALUE && grid.row_stride == VALUE * self.sources as u64;
        if !dense {
            return None;
        }
        let run = |place: u64, rows: u64| {
            let begin = (grid.offset + place * grid.row_stride) as usize;
            let length = (rows * grid.row_stride) as usize;
            self.bytes.get(begin..)?.get(..length)
        };
        let first = grid.rows.min(grid.places - grid.oldest);
        Some([run(grid.oldest, first)?, run(0, grid.rows - first)?])
    }
}

/// A row: one value of each data source.
#[derive(Clone, Copy)]
pub struct Row<'a> {
    bytes: &'a [u8],
    order: FloatOrder,
    sources: usize,
    stride: usize,
}

impl Row<'_> {
    /// The bits of a value as the file has them: an unknown value shows which NaN it is.
    /// `None` if the data source does not exist.
    #[inline]
    pub fn bits(&self, source: usize) -> Option<u64> {
        if source >= self.sources {
            return None;
        }
        let bytes = self.bytes.get(source * self.stride..)?.first_chunk()?;
        Some(self.order.read(*bytes))
    }

    /// The value of a data source; `None` if there is none.
    #[inline]
    pub fn value(&self, source: usize) -> Option<Value> {
        self.bits(source).map(Value::from_bits)
    }

    /// The values of all data sources.
    pub fn values(&self) -> impl Iterator<Item = Value> + '_ {
        (0..self.sources).filter_map(|source| self.value(source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(bytes: &[u8], grid: Grid) -> Result<Rows<'_>, GridError> {
        Rows::new(bytes, FloatOrder::Big, 2, vec![grid])
    }

    fn numbered(places: u8) -> Vec<u8> {
        (0..places)
            .flat_map(|number| f64::from(number).to_be_bytes())
            .collect()
    }

    #[test]
    fn rows_count_from_the_oldest() {
        let bytes = numbered(6);
        let rows = grid(&bytes, Grid::dense(0, 3, 0, 2).unwrap()).unwrap();
        let values: Vec<_> = rows
            .iter(0)
            .map(|row| row.values().map(Value::to_f64).collect::<Vec<_>>())
            .collect();
        assert_eq!(values, [[2.0, 3.0], [4.0, 5.0], [0.0, 1.0]]);
        assert_eq!(rows.runs(0).unwrap(), [&bytes[16..], &bytes[..16]]);
        assert_eq!(rows.value(0, 3, 0), None);
        assert_eq!(rows.value(0, 0, 2), None);
        assert_eq!(rows.value(1, 0, 0), None);
    }

    #[test]
    fn values_may_lie_by_data_source_and_with_spare_places() {
        let bytes = numbered(8);
        let by_source = Grid {
            offset: 0,
            places: 4,
            oldest: 3,
            rows: 2,
            row_stride: 8,
            source_stride: 32,
        };
        let rows = grid(&bytes, by_source).unwrap();
        assert_eq!(rows.value(0, 0, 1), Some(Value::from(7.0)));
        assert_eq!(rows.value(0, 1, 1), Some(Value::from(4.0)));
        assert_eq!(rows.value(0, 2, 1), None);
        assert_eq!(rows.runs(0), None);
    }

    #[test]
    fn what_is_outside_of_the_bytes_is_refused() {
        let bytes = numbered(6);
        let dense = Grid::dense(0, 3, 2, 2).unwrap();
        assert!(grid(&bytes, dense).is_ok());
        for wrong in [
            Grid { offset: 1, ..dense },
            Grid {
                offset: u64::MAX,
                ..dense
            },
            Grid { places: 4, ..dense },
            Grid {
                places: u64::MAX,
                ..dense
            },
            Grid {
                places: 0,
                rows: 0,
                ..dense
            },
            Grid { oldest: 3, ..dense },
            Grid { rows: 4, ..dense },
            Grid {
                row_stride: u64::MAX,
                ..dense
            },
            Grid {
                source_stride: u64::MAX,
                ..dense
            },
        ] {
            let error = grid(&bytes, wrong).err().expect("refused");
            assert!(error.to_string().contains("archive 0"));
        }
    }
}
