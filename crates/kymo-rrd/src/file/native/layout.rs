//! Where everything is in a native file.

use kymo_machine::Machine;

use super::structs::Structs;
use crate::model::rows::Grid;

/// Where the parts of a native file begin. All numbers are bytes from its beginning.
///
/// The parts follow each other without gaps: `stat_head`, `ds_def` of each data source,
/// `rra_def` of each archive, `live_head`, `pdp_prep` of each data source, `cdp_prep` of
/// each archive and data source, `rra_ptr` of each archive, and the values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    structs: Structs,
    sources: usize,
    archives: usize,
    live: usize,
    live_size: usize,
    source_states: usize,
    archive_states: usize,
    pointers: usize,
    header_end: usize,
    values: Vec<u64>,
    end: u64,
}

impl Layout {
    /// The layout of a file on a machine, as far as the numbers of data sources and archives
    /// determine it: all but the values. `None` where it is larger than memory can be.
    pub(crate) fn of_header(
        structs: Structs,
        version: u8,
        sources: usize,
        archives: usize,
    ) -> Option<Self> {
        let after = |at: usize, count: usize, size: usize| at.checked_add(count.checked_mul(size)?);
        let live_size = if version < 3 {
            structs.live.size_before_3
        } else {
            structs.live.size
        };
        let archive_definitions = after(structs.head.size, sources, structs.source.size)?;
        let live = after(archive_definitions, archives, structs.archive.size)?;
        let source_states = after(live, 1, live_size)?;
        let archive_states = after(source_states, sources, structs.source_state.size)?;
        let pairs = archives.checked_mul(sources)?;
        let pointers = after(archive_states, pairs, structs.archive_state.size)?;
        let header_end = after(pointers, archives, structs.pointer)?;
        Some(Self {
            structs,
            sources,
            archives,
            live,
            live_size,
            source_states,
            archive_states,
            pointers,
            header_end,
            values: Vec::new(),
            end: header_end as u64,
        })
    }

    /// Adds the values of the archives, whose numbers of rows are given. `None` where
    /// the file is larger than 64 bits can say.
    pub(crate) fn with_rows(mut self, rows: impl Iterator<Item = u64>) -> Option<Self> {
        let row_size = 8u64.checked_mul(self.sources as u64)?;
        for rows in rows {
            self.values.push(self.end);
            self.end = self.end.checked_add(rows.checked_mul(row_size)?)?;
        }
        Some(self)
    }

    /// The same for another machine that writes the same but for NaNs.
    pub(crate) fn of_machine(mut self, machine: &'static Machine) -> Self {
        self.structs.machine = machine;
        self
    }

    /// The structs of the machine.
    pub fn structs(&self) -> &Structs {
        &self.structs
    }

    /// The definition of a data source.
    pub fn source(&self, source: usize) -> usize {
        self.structs.head.size + source * self.structs.source.size
    }

    /// The definition of an archive.
    pub fn archive(&self, archive: usize) -> usize {
        self.source(self.sources) + archive * self.structs.archive.size
    }

    /// The time of the last update.
    pub fn live(&self) -> usize {
        self.live
    }

    /// Where the microseconds of the last update are; `None` before version 3.
    pub fn micros(&self) -> Option<usize> {
        let micros = self.structs.live.micros;
        (micros < self.live_size).then(|| self.live + micros)
    }

    /// The preparation of a data source.
    pub fn source_state(&self, source: usize) -> usize {
        self.source_states + source * self.structs.source_state.size
    }

    /// The preparation of an archive for a data source.
    pub fn archive_state(&self, archive: usize, source: usize) -> usize {
        self.archive_states + (archive * self.sources + source) * self.structs.archive_state.size
    }

    /// The number of the row written last.
    pub fn pointer(&self, archive: usize) -> usize {
        self.pointers + archive * self.structs.pointer
    }

    /// The end of all that is not values.
    pub fn header_end(&self) -> usize {
        self.header_end
    }

    /// The values of an archive: all data sources of the first row, and so on; where the file
    /// ends if the archive does not exist.
    pub fn values(&self, archive: usize) -> u64 {
        self.values.get(archive).copied().unwrap_or(self.end)
    }

    /// Where the values end: the length that the file has, unless bytes trail.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Number of data sources.
    pub fn sources(&self) -> usize {
        self.sources
    }

    /// Number of archives.
    pub fn archives(&self) -> usize {
        self.archives
    }

    /// The values of an archive as a ring.
    pub(crate) fn grid(&self, archive: usize, rows: u64, current_row: u64) -> Option<Grid> {
        Grid::dense(self.values(archive), rows, current_row, self.sources)
    }
}
