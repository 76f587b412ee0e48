//! Files of RRD4J and of JRobin, from which it descends: read only.
//!
//! They are the same on all machines: most significant byte first, no padding, texts of 20 UTF-16
//! units. Every data source and archive that RRDtool has as well is read; archives of the
//! kinds FIRST and TOTAL, which it has not, are left out and noted.

use kymo_machine::FloatOrder;

use crate::fault::{Error, Findings, Severity};
use crate::model::rows::Grid;
use crate::model::{
    Archive, ArchiveKind, ArchiveState, Consolidation, DataSource, Reading, Scratch, SourceKind,
    SourceState, State,
};
use crate::{Database, Rows, Text, Time, Value};

/// UTF-16 units of a text.
const UNITS: usize = 20;
/// Bytes of a text.
const TEXT: usize = 2 * UNITS;
/// Bytes of a data source.
const SOURCE: usize = 2 * TEXT + 6 * 8;
/// Bytes of an archive's definition.
const ARCHIVE: usize = TEXT + 8 + 2 * 4;
/// Bytes of an archive's state for a data source.
const STATE: usize = 8 + 8 + 4;
/// Units that are digits of the offset of a long text.
const DIGITS: std::ops::RangeInclusive<u16> = 0xe000..=0xf8ff;
/// The longest last reading that native files hold.
const LAST_READING: usize = 29;

/// A file of RRD4J or JRobin.
#[derive(Clone)]
pub struct File<'a> {
    /// The version of the form, 1 or 2: the digit after the point.
    pub version: u8,
    /// What it says.
    pub database: Database,
    /// The values.
    pub rows: Rows<'a>,
    /// What could not be read, and what is unusual.
    pub findings: Findings,
}

/// Whether a file begins as those of RRD4J and JRobin do.
pub fn is_rrd4j(bytes: &[u8]) -> bool {
    let begins = |text: &str| {
        let mut units = text.encode_utf16().map(u16::to_be_bytes);
        let (chunks, _) = bytes.as_chunks::<2>();
        chunks.len() >= UNITS && chunks.iter().zip(&mut units).all(|(a, b)| *a == b)
    };
    begins("RRD4J") || begins("JR")
}

/// Reads a file.
///
/// # Errors
///
/// If it is not an RRD4J file, is truncated, or contains an invalid number or kind.
pub fn read(bytes: &[u8]) -> Result<File<'_>, Error> {
    let mut reader = Reader { bytes, at: 0 };
    let signature = reader.text("signature")?.to_string();
    let version = match signature.chars().last() {
        _ if !is_rrd4j(bytes) => None,
        Some('1') => Some(1),
        Some('2') => Some(2),
        _ => None,
    };
    let Some(version) = version else {
        let expected = "\"RRD4J\" or \"JR\" first and version 0.1 or 0.2 last";
        return Err(Error::new(
            "signature",
            0,
            format!("\"{signature}\""),
            expected,
        ));
    };
    let step = reader.positive("step")?;
    let sources = reader.count("dsCount", SOURCE)?;
    let archives = reader.count("arcCount", ARCHIVE)?;
    let last_update = reader.long("lastUpdateTime")?;
    let mut findings = Findings::default();
    let mut database = Database {
        version: 3,
        step,
        sources: Vec::with_capacity(sources),
        archives: Vec::new(),
        state: State {
            last_update: Time::from_seconds(last_update),
            stray_micros: None,
            sources: Vec::with_capacity(sources),
            archives: Vec::new(),
        },
    };
    for index in 0..sources {
        let (source, state) = reader.source(index)?;
        database.sources.push(source);
        database.state.sources.push(state);
    }
    let mut grids = Vec::new();
    for index in 0..archives {
        let at = reader.at as u64;
        let (name, archive) = reader.archive(index)?;
        let (grid, state) = reader.rows(version, index, &archive, sources)?;
        if matches!(name.as_bytes(), b"FIRST" | b"TOTAL") {
            findings.add(Severity::Note, || {
                let field = format!("archive {index}");
                Error::new(field, at, &name, "AVERAGE, MIN, MAX or LAST")
                    .because("RRDtool has no such archive: it is left out")
            });
            continue;
        }
        database.archives.push(archive);
        database.state.archives.push(state);
        grids.push(grid);
    }
    let shape = database.check_shape();
    shape.map_err(|shape| Error::new(shape.what, None, shape.found, shape.expected))?;
    let rows = Rows::new(bytes, FloatOrder::Big, sources, grids).map_err(|error| {
        let expected = "an end within the file";
        let field = format!("values of archive {}", error.archive);
        Error::new(field, error.length, "the end of the file", expected)
    })?;
    crate::model::validate::validate(&database, |_| None, &mut findings);
    if let Some(damage) = findings.damage() {
        return Err(damage.clone());
    }
    Ok(File {
        version,
        database,
        rows,
        findings,
    })
}

/// Takes one thing after the other.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize, field: impl FnOnce() -> String) -> Result<&'a [u8], Error> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let Some(bytes) = rest.get(..length) else {
            let found = format!("{} bytes to the end of the file", rest.len());
            let error = Error::new(field(), self.at as u64, found, format!("{length} bytes"));
            return Err(error.because("the file has been cut off"));
        };
        self.at += length;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self, field: &str) -> Result<[u8; N], Error> {
        let bytes = self.take(N, || field.to_owned())?;
        Ok(bytes.first_chunk().copied().unwrap_or([0; N]))
    }

    fn long(&mut self, field: &str) -> Result<i64, Error> {
        self.array(field).map(i64::from_be_bytes)
    }

    fn double(&mut self, field: &str) -> Result<Value, Error> {
        self.array(field)
            .map(|bytes| Value::from_bits(u64::from_be_bytes(bytes)))
    }

    fn not_negative(&mut self, field: &str) -> Result<u64, Error> {
        let at = self.at as u64;
        let found = self.long(field)?;
        u64::try_from(found).map_err(|_| Error::new(field, at, found, "at least 0"))
    }

    fn positive(&mut self, field: &str) -> Result<u64, Error> {
        let at = self.at as u64;
        match self.not_negative(field)? {
            0 => Err(Error::new(field, at, 0, "at least 1")),
            found => Ok(found),
        }
    }

    fn int(&mut self, field: &str) -> Result<u32, Error> {
        let at = self.at as u64;
        let found = self.array(field).map(i32::from_be_bytes)?;
        u32::try_from(found).map_err(|_| Error::new(field, at, found, "at least 0"))
    }

    fn positive_int(&mut self, field: &str) -> Result<u32, Error> {
        let at = self.at as u64;
        match self.int(field)? {
            0 => Err(Error::new(field, at, 0, "at least 1")),
            found => Ok(found),
        }
    }

    /// Reads the number of items, which take `size` bytes each.
    fn count(&mut self, field: &str, size: usize) -> Result<usize, Error> {
        let at = self.at as u64;
        let found = self.positive_int(field)? as usize;
        let most = self.bytes.len() / size;
        if found <= most {
            return Ok(found);
        }
        Err(Error::new(
            field,
            at,
            found,
            format_args!("at most {most}, which fit in the file"),
        ))
    }

    /// A text without the blanks behind it. One that is longer than its field has digits
    /// there instead, which specify where near the end of the file it is.
    fn text(&mut self, field: &str) -> Result<Text, Error> {
        let at = self.at as u64;
        let units = units(self.take(TEXT, || field.to_owned())?);
        let digits = units.iter().rev().take_while(|unit| DIGITS.contains(unit));
        let base = usize::from(DIGITS.end() - DIGITS.start()) + 1;
        // The last digit is the least significant one.
        let offset = digits
            .enumerate()
            .try_fold(0usize, |offset, (place, digit)| {
                let digit = usize::from(digit - DIGITS.start());
                let weight = base.checked_pow(u32::try_from(place).ok()?)?;
                offset.checked_add(digit.checked_mul(weight)?)
            });
        let long = match offset {
            Some(0) if !units.last().is_some_and(|unit| DIGITS.contains(unit)) => Some(units),
            offset => offset.and_then(|offset| self.long_text(offset)),
        };
        let Some(units) = long else {
            let expected = "the place of a long text in the file";
            return Err(Error::new(field, at, format_args!("{offset:?}"), expected));
        };
        Ok(Text::new(
            String::from_utf16_lossy(&units).trim().as_bytes(),
        ))
    }

    /// The text that ends where its length is.
    fn long_text(&self, offset: usize) -> Option<Vec<u16>> {
        let length = self.bytes.get(offset..)?.first_chunk().copied();
        let length = 2 * usize::from(u16::from_be_bytes(length?));
        Some(units(self.bytes.get(offset.checked_sub(length)?..offset)?))
    }

    fn source(&mut self, index: usize) -> Result<(DataSource, SourceState), Error> {
        let field = |name: &str| format!("datasource {index}, {name}");
        let name = self.text(&field("dsName"))?;
        let at = self.at as u64;
        let kind = self.text(&field("dsType"))?;
        let Some(reading) = Reading::from_name(kind.as_bytes()) else {
            let expected = "GAUGE, COUNTER, DERIVE or ABSOLUTE";
            return Err(Error::new(
                field("dsType"),
                at,
                format_args!("\"{kind}\""),
                expected,
            ));
        };
        let source = DataSource {
            name,
            kind: SourceKind::Measured {
                reading,
                heartbeat: self.not_negative(&field("heartbeat"))?,
                min: self.double(&field("minValue"))?,
                max: self.double(&field("maxValue"))?,
            },
        };
        let last = self.double(&field("lastValue"))?;
        let value = self.double(&field("accumValue"))?;
        let state = SourceState {
            last_reading: reading_text(last),
            unknown_seconds: self.not_negative(&field("nanSeconds"))?,
            value,
        };
        Ok((source, state))
    }

    /// The name of the kind and the definition, which for FIRST and TOTAL is that of LAST.
    fn archive(&mut self, index: usize) -> Result<(Text, Archive), Error> {
        let field = |name: &str| format!("archive {index}, {name}");
        let at = self.at as u64;
        let name = self.text(&field("consolFun"))?;
        let function = match name.as_bytes() {
            b"AVERAGE" => Consolidation::Average,
            b"MIN" => Consolidation::Min,
            b"MAX" => Consolidation::Max,
            b"LAST" | b"FIRST" | b"TOTAL" => Consolidation::Last,
            _ => {
                let expected = "AVERAGE, MIN, MAX, LAST, FIRST or TOTAL";
                let found = format_args!("\"{name}\"");
                return Err(Error::new(field("consolFun"), at, found, expected));
            }
        };
        let kind = ArchiveKind::Consolidated {
            function,
            xff: self.double(&field("xff"))?,
        };
        let archive = Archive {
            kind,
            points_per_row: self.positive_int(&field("steps"))?.into(),
            rows: self.positive_int(&field("rows"))?.into(),
        };
        Ok((name, archive))
    }

    /// Where the values of an archive are, and its state.
    fn rows(
        &mut self,
        version: u8,
        index: usize,
        archive: &Archive,
        sources: usize,
    ) -> Result<(Grid, ArchiveState), Error> {
        let field = |name: &str| format!("archive {index}, {name}");
        // Of each data source a ring, or one ring of rows.
        let ring = usize::try_from(archive.rows)
            .ok()
            .map_or(usize::MAX, |rows| rows.saturating_mul(8));
        let mut scratch = Vec::new();
        let mut oldest = None;
        let begin = self.at;
        for source in 0..sources {
            let state_at = self.at as u64;
            let (pointer, value, unknown) = if version == 1 {
                let value = self.double(&field("accumValue"))?;
                let unknown = self.not_negative(&field("nanSteps"))?;
                let pointer = self.int(&field("pointer"))?;
                self.take(ring, || field("values"))?;
                (pointer, value, unknown)
            } else {
                let pointer = self.int(&field("pointer"))?;
                let value = self.double(&field("accumValue"))?;
                (pointer, value, self.not_negative(&field("nanSteps"))?)
            };
            let pointer = u64::from(pointer);
            if pointer >= archive.rows || oldest.is_some_and(|oldest| oldest != pointer) {
                let expected = format!(
                    "less than its {} rows, and the same for all data sources",
                    archive.rows
                );
                let field = format!("archive {index}, pointer of data source {source}");
                return Err(Error::new(field, state_at, pointer, expected));
            }
            oldest = Some(pointer);
            let mut prepared = Scratch::default();
            prepared.set_value(Scratch::VALUE, value);
            prepared.0[Scratch::UNKNOWN_POINTS] = unknown;
            prepared.set_value(Scratch::PRIMARY, Value::UNKNOWN);
            prepared.set_value(Scratch::SECONDARY, Value::UNKNOWN);
            scratch.push(prepared);
        }
        let oldest = oldest.unwrap_or(0);
        let (offset, row_stride, source_stride) = if version == 1 {
            (begin + STATE, 8, STATE.saturating_add(ring))
        } else {
            let offset = self.at;
            let whole = ring.saturating_mul(sources);
            self.take(whole, || field("values"))?;
            (offset, 8 * sources, 8)
        };
        let grid = Grid {
            offset: offset as u64,
            places: archive.rows,
            oldest,
            rows: archive.rows,
            row_stride: row_stride as u64,
            source_stride: source_stride as u64,
        };
        let state = ArchiveState {
            current_row: oldest.checked_sub(1).unwrap_or(archive.rows - 1),
            scratch,
        };
        Ok((grid, state))
    }
}

fn units(bytes: &[u8]) -> Vec<u16> {
    let (units, _) = bytes.as_chunks();
    units.iter().map(|unit| u16::from_be_bytes(*unit)).collect()
}

/// A reading as a person would have given it: digits only where it is whole and not too long.
fn reading_text(value: Value) -> Text {
    let Some(number) = value.get() else {
        return Text::from("U");
    };
    let plain = number.to_string();
    if plain.len() <= LAST_READING {
        Text::from(plain.as_str())
    } else {
        Text::from(format!("{number:e}").as_str())
    }
}
