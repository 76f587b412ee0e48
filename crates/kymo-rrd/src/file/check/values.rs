//! What the values of the archives reveal about damage.

use crate::fault::{Error, Findings, Severity};
use crate::file::native::Header;
use crate::model::{Archive, ArchiveKind, Consolidation, Scratch, SourceKind};
use crate::{Database, Rows, Value};

/// Bytes that are lost together: the page of most file systems and memories.
const PAGE: u64 = 4096;

/// Looks for values outside of their data source's limits, and for such as only other data looks like.
pub(super) fn within_limits(database: &Database, rows: &Rows<'_>, findings: &mut Findings) {
    for (index, archive) in database.archives.iter().enumerate() {
        let mut columns: Vec<Column> = database
            .sources
            .iter()
            .map(|source| Column::new(archive, &source.kind))
            .collect();
        for (number, row) in (0u64..).zip(rows.iter(index)) {
            for (column, value) in columns.iter_mut().zip(row.values()) {
                column.add(number, value);
            }
        }
        for (source, column) in columns.iter().enumerate() {
            column.report(index, source, findings);
        }
    }
}

/// The values of a data source in an archive.
struct Column {
    low: f64,
    high: f64,
    outside: Strange,
    subnormal: Strange,
}

/// Values of some kind: how many there are, and the first.
#[derive(Default)]
struct Strange {
    count: u64,
    first: Option<(u64, Value)>,
}

impl Strange {
    fn add(&mut self, row: u64, value: Value) {
        self.count += 1;
        self.first.get_or_insert((row, value));
    }
}

impl Column {
    fn new(archive: &Archive, source: &SourceKind) -> Self {
        let (low, high) = match (&archive.kind, source) {
            (ArchiveKind::Consolidated { .. }, SourceKind::Measured { min, max, .. }) => {
                (min.get(), max.get())
            }
            (ArchiveKind::Failures { .. }, _) => (Some(0.0), Some(1.0)),
            _ => (None, None),
        };
        // A row that is made of nothing known holds the infinity that consolidation begins with.
        let begins = |function| matches!(&archive.kind, ArchiveKind::Consolidated { function: own, .. } if *own == function);
        Self {
            low: match low {
                Some(low) if !begins(Consolidation::Max) => low,
                _ => f64::NEG_INFINITY,
            },
            high: match high {
                Some(high) if !begins(Consolidation::Min) => high,
                _ => f64::INFINITY,
            },
            outside: Strange::default(),
            subnormal: Strange::default(),
        }
    }

    #[inline]
    fn add(&mut self, row: u64, value: Value) {
        let Some(number) = value.get() else { return };
        if !(self.low..=self.high).contains(&number) {
            self.outside.add(row, value);
        }
        // No measurement is so small, but integers look so when they are read as doubles.
        if number.is_subnormal() {
            self.subnormal.add(row, value);
        }
    }

    fn report(&self, archive: usize, source: usize, findings: &mut Findings) {
        let Self { low, high, .. } = self;
        for (strange, expected) in [
            (&self.outside, format!("{low} to {high}")),
            (&self.subnormal, "no rate below 2e-308".to_owned()),
        ] {
            let Some((row, first)) = strange.first else {
                continue;
            };
            findings.add(Severity::Warning, || {
                let count = strange.count;
                let found = format!("{count} values such as {first} in row {row}");
                let field = format!("values of archive {archive} for data source {source}");
                Error::new(field, None, found, expected)
            });
        }
    }
}

/// Compares the newest row of each archive with the value that the last update has prepared.
///
/// An update that was cut off has moved the current row and not written it, or the other
/// way round. Versions 1 and 2 have no such value.
pub(super) fn newest_rows(database: &Database, rows: &Rows<'_>, findings: &mut Findings) {
    if database.version < 3 {
        return;
    }
    let archives = database.archives.iter().zip(&database.state.archives);
    for (index, (archive, state)) in archives.enumerate() {
        // The others change rows when they smooth them.
        if !matches!(archive.kind, ArchiveKind::Consolidated { .. }) {
            continue;
        }
        let newest = archive.rows - 1;
        for (source, scratch) in state.scratch.iter().enumerate() {
            let Some(value) = rows.value(index, newest, source) else {
                continue;
            };
            let prepared = [Scratch::PRIMARY, Scratch::SECONDARY].map(|slot| scratch.value(slot));
            let never_written = value.is_unknown() && prepared == [Value::ZERO; 2];
            if prepared.contains(&value) || never_written {
                continue;
            }
            findings.add(Severity::Warning, || {
                let field = format!("newest row of archive {index} for data source {source}");
                let [primary, secondary] = prepared;
                let expected = format!("{primary} or {secondary}, which the last update prepared");
                Error::new(field, None, value, expected).because("an update may have been cut off")
            });
        }
    }
}

/// Looks for pages of zeros, as they are left where a file system has lost them, in archives that
/// have other values than zero.
pub(super) fn lost_pages(header: &Header, bytes: &[u8], rows: &Rows<'_>, findings: &mut Findings) {
    for index in 0..rows.archives() {
        let begin = header.layout.values(index);
        let end = header.layout.values(index + 1);
        let mut pages = Vec::new();
        let mut page = begin.next_multiple_of(PAGE);
        while page.saturating_add(PAGE) <= end {
            let zeros = bytes
                .get(page as usize..(page + PAGE) as usize)
                .is_some_and(|page| page.iter().all(|&byte| byte == 0));
            match pages.last_mut() {
                Some((_, end)) if zeros && *end == page => *end += PAGE,
                _ if zeros => pages.push((page, page + PAGE)),
                _ => {}
            }
            page += PAGE;
        }
        let other_values = || {
            rows.iter(index).any(|row| {
                row.values()
                    .any(|value| value.get().is_some_and(|value| value != 0.0))
            })
        };
        if pages.is_empty() || !other_values() {
            continue;
        }
        for (page, end) in pages {
            findings.add(Severity::Warning, || {
                let found = format!("{} zeros", end - page);
                let field = format!("values of archive {index}");
                Error::new(field, page, found, "values as in the rest of the archive")
                    .because("a page that was lost looks so, and so do values of 0")
            });
        }
    }
}
