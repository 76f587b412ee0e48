//! The rows of round-robin databases as samples on their way.

use kymo_model::{FieldId, Recording, Visitor};
use kymo_text::Line;

use crate::show::table::Table;
use crate::{AnyRecording, EntryKind};

/// How the entries of a recording are carried: rows of databases as numbers, everything else, the
/// values of collectd too, as events with fields.
pub(crate) fn kind(of: &AnyRecording) -> EntryKind {
    match of {
        AnyRecording::Rrd(_) => EntryKind::Sample,
        _ => EntryKind::Event,
    }
}

const UNKNOWN: u8 = 0;
const KNOWN: u8 = 1;

/// Writes the values of a row: for each data source whether it is known, and its bits.
pub(crate) struct SamplesPen<'a> {
    pub(crate) line: &'a mut Line,
}

impl Visitor for SamplesPen<'_> {
    fn begin_optional(&mut self, _field: FieldId, present: bool, _selector: u64) {
        if !present {
            self.line.push_byte(UNKNOWN);
        }
    }

    fn float(&mut self, _field: FieldId, value: f64) {
        self.line.push_byte(KNOWN);
        self.line.push(&value.to_bits().to_le_bytes());
    }
}

/// Reads them again.
pub(crate) struct Samples<'a> {
    bytes: &'a [u8],
}

impl<'a> Samples<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }
}

impl Iterator for Samples<'_> {
    type Item = Option<f64>;

    fn next(&mut self) -> Option<Option<f64>> {
        let (&known, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        if known == UNKNOWN {
            return Some(None);
        }
        let (bits, rest) = rest.split_first_chunk()?;
        self.bytes = rest;
        Some(Some(f64::from_bits(u64::from_le_bytes(*bits))))
    }
}

/// What the data sources of archives are called, made when an archive is first met.
#[derive(Debug, Default)]
pub(crate) struct SourceNames(Table<Vec<String>>);

impl SourceNames {
    /// The names of the data sources of an archive, in their order.
    pub(crate) fn of_archive(
        &mut self,
        of: &[AnyRecording],
        recording: usize,
        archive: usize,
    ) -> &[String] {
        self.0.get(recording, archive, || {
            let of = &of[recording];
            let stream = &of.streams()[archive].name;
            let fields = of.event_classes()[archive].schema.fields().iter();
            let names = fields.filter_map(|field| field.name.as_deref());
            names.map(|name| format!("{name} {stream}")).collect()
        })
    }
}
