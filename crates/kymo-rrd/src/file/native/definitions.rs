//! The definitions of a native file, which files may share.

use std::ops::Range;

use kymo_machine::Machine;

use super::detect;
use super::layout::Layout;
use super::read::Beginning;
use super::{Coding, Header, Numbers};
use crate::Database;
use crate::model::validate::LATEST;

/// All of a native file but its state and its values, and how these are read: what is known of every
/// file that begins with the same bytes.
#[derive(Debug)]
pub(crate) struct Definitions {
    /// The machine that was specified.
    reported: Option<&'static Machine>,
    /// Machines that write the same but for NaNs.
    alike: Vec<&'static Machine>,
    /// Whether no state could make the file look like another machine's.
    certain: bool,
    /// Whether no values could, either.
    is_of_machine: bool,
    /// With the state of the first file that was read.
    pub(super) database: Database,
    pub(super) layout: Layout,
    pub(super) coding: Coding,
    /// The bytes before the state.
    pub(super) bytes: Box<[u8]>,
    /// Bytes of the whole file.
    pub(super) length: u64,
}

impl Definitions {
    /// What a file has said in which nothing is damaged.
    pub(super) fn new(
        header: Header,
        beginning: Beginning<'_>,
        reported: Option<&'static Machine>,
    ) -> Self {
        let bytes = beginning.bytes.get(..header.layout.live());
        let bytes = bytes.unwrap_or_default();
        let alike = &header.detection.alike;
        let is_of_machine = reported.is_some()
            || alike.len() < 2
            || detect::by_limits(bytes, &header.layout, alike)
                == Some(header.layout.structs().machine);
        Self {
            reported,
            is_of_machine,
            certain: reported.is_some() || detect::is_only_layout(beginning),
            alike: header.detection.alike,
            coding: Coding::of(header.detection.machine),
            database: header.database,
            layout: header.layout,
            bytes: bytes.into(),
            length: beginning.length,
        }
    }

    /// The machine that wrote the file.
    pub(crate) fn machine(&self) -> &'static Machine {
        self.layout.structs().machine
    }

    /// With the state of some file.
    pub(crate) fn database(&self) -> &Database {
        &self.database
    }

    /// Where everything is.
    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// How numbers are written.
    pub(crate) fn coding(&self) -> &Coding {
        &self.coding
    }

    /// Where the state is in a file: behind the definitions, before the values.
    pub(crate) fn state(&self) -> Range<usize> {
        self.layout.live()..self.layout.header_end()
    }

    /// Whether [`Definitions::may_be_of`] any file.
    pub(crate) fn may_be_shared(&self) -> bool {
        self.certain
    }

    /// Whether the same files have these definitions and others.
    pub(crate) fn are_same(&self, other: &Self) -> bool {
        self.bytes == other.bytes
            && self.length == other.length
            && self.reported == other.reported
            && self.machine() == other.machine()
    }

    /// Whether a file of `length` bytes, which begins with `beginning`, may have these definitions.
    pub(crate) fn may_be_of(
        &self,
        beginning: &[u8],
        length: u64,
        reported: Option<&'static Machine>,
    ) -> bool {
        let known = beginning.len().min(self.bytes.len());
        self.certain
            && length == self.length
            && reported == self.reported
            && beginning[..known] == self.bytes[..known]
    }

    /// Whether values do not matter to [`Definitions::are_of`].
    pub(crate) fn are_certain(&self) -> bool {
        self.is_of_machine
    }

    /// Whether a file that may have these definitions has them, and nothing is wrong with its state, where
    /// all before the values is known: what would come of it if it was read. Where it is not so, that has
    /// to be found out.
    pub(crate) fn are_of(&self, beginning: &[u8]) -> bool {
        // Values may indicate another machine.
        let same = || detect::by_nan(beginning, &self.layout, &self.alike) == Some(self.machine());
        let state = beginning.get(self.state());
        beginning.starts_with(&self.bytes)
            && state.is_some_and(|state| self.sees_no_damage(state))
            && (self.is_of_machine || same())
    }

    /// Whether a state is one in which [`validate`](crate::model::validate::validate) finds no damage. Where it is none, it may be
    /// one still.
    pub(super) fn sees_no_damage(&self, state: &[u8]) -> bool {
        let Self { layout, coding, .. } = self;
        let time = coding.time_at(state, 0);
        let micros = layout.micros();
        let micros = micros.map_or(0, |at| coding.long_at(state, at - layout.live()));
        let mut archives = self.database.archives.iter().enumerate();
        (0..LATEST).contains(&time)
            && micros < 1_000_000
            && archives.all(|(index, archive)| {
                coding.long_at(state, layout.pointer(index) - layout.live()) < archive.rows
            })
            && self.length >= layout.end()
    }
}
