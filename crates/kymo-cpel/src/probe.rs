//! Which of the formats a file is of.

use kymo_machine::ByteOrder;

use crate::entries::ENTRY_SIZE;
use crate::file::{File, HEADER_SIZE, LITTLE_ENDIAN, VERSION, kind};
use crate::{elog, u32_at};

/// A format of event logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// CPEL.
    Cpel,
    /// What VPP's `event-logger save` writes.
    Elog,
    /// What was before CPEL.
    Gist,
}

/// How well some bytes look like a log of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Likeness {
    /// All of it fits.
    Whole(Kind),
    /// It begins as one does, and is damaged, or something else.
    Beginning(Kind),
}

/// Determines the format of a file from all of its bytes; `None` if it has no known format.
///
/// An elog file begins with its name. A CPEL file begins with its version, and its sections
/// fill it. A Gist file is as long as its count says: where the first byte of the count is that of
/// a CPEL file, the sections decide.
pub fn probe(bytes: &[u8]) -> Option<Likeness> {
    if elog::begins(bytes) {
        return Some(Likeness::Whole(Kind::Elog));
    }
    if File::open(bytes).is_ok_and(|file| file.findings.is_empty()) {
        return Some(Likeness::Whole(Kind::Cpel));
    }
    if is_gist(bytes) {
        return Some(Likeness::Whole(Kind::Gist));
    }
    begins_as_cpel(bytes).then_some(Likeness::Beginning(Kind::Cpel))
}

/// Whether some bytes begin as CPEL files of the known version do, as far as they go.
fn begins_as_cpel(bytes: &[u8]) -> bool {
    let &[first, ..] = bytes else {
        return false;
    };
    let order = match first & LITTLE_ENDIAN {
        0 => ByteOrder::Big,
        _ => ByteOrder::Little,
    };
    let kind = u32_at(bytes, HEADER_SIZE, order);
    first & !LITTLE_ENDIAN == VERSION
        && bytes.get(1).is_none_or(|&unused| unused == 0)
        && kind.is_none_or(|kind| kind <= kind::EVENTS)
}

/// Whether a file is as long as a Gist file of its count is.
pub(crate) fn is_gist(bytes: &[u8]) -> bool {
    let count = u32_at(bytes, 0, ByteOrder::Big).unwrap_or(0);
    let size = u64::from(count) * ENTRY_SIZE as u64 + 4;
    count > 0 && size == bytes.len() as u64
}
