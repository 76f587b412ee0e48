//! Which machine has written a file.
//!
//! The cookie shows how doubles are written and aligned, which leaves few layouts. The file
//! is read with each of them, and the one with which least is wrong is taken: byte orders, the size
//! of `long` and alignments never look alike, the sizes of `time_t` rarely do.

use std::sync::OnceLock;

use kymo_machine::Machine;
use kymo_machine::float::is_nan;

use super::layout::Layout;
use super::read::Beginning;
use super::structs::{SLOT, Structs};
use super::write::FLOAT_COOKIE;
use super::{Header, foreign, read};
use crate::fault::{Error, Findings, Severity};
use crate::model::validate::{Place, validate};

/// Which machine has written a file, and how well that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detection {
    /// The machine. If several write the same, one whose NaN the file holds.
    pub machine: &'static Machine,
    /// All machines that write the same but for NaNs, in the order of [`Machine::all`].
    pub alike: Vec<&'static Machine>,
    /// How well it is known.
    pub confidence: Confidence,
}

/// How well the machine is known that has written a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confidence {
    /// No other layout makes sense.
    Certain,
    /// Another layout makes sense as well, though less.
    Likely {
        /// A machine of the other layout.
        alternative: &'static Machine,
    },
    /// Whoever asked has said so.
    Overruled,
}

/// The version number ends before this byte.
const AFTER_VERSION: u64 = 9;
/// The NaN that a program gets of the C library for the word `NAN`.
const WRITTEN_NAN: u64 = 0x7ff8_0000_0000_0000;
/// Bytes of values that are searched for a NaN.
const SEARCHED: usize = 1 << 16;

/// Reads all but the values, as written by the specified machine or else by the one that is detected.
pub(super) fn header(
    beginning: Beginning<'_>,
    machine: Option<&'static Machine>,
) -> Result<Header, Error> {
    let bytes = beginning.bytes;
    if !bytes.starts_with(b"RRD\0") {
        return Err(foreign::error(bytes));
    }
    read::version(bytes)?;
    match machine {
        Some(machine) => overruled(beginning, machine),
        None => detected(beginning),
    }
}

/// The same header where more values are known, of which NaNs may identify the machine.
pub(super) fn with_nans(mut header: Header, bytes: &[u8]) -> Header {
    let Detection { machine, alike, .. } = &mut header.detection;
    if let Some(found) = by_nan(bytes, &header.layout, alike) {
        *machine = found;
        header.layout = header.layout.of_machine(found);
    }
    header
}

/// The number of bytes of a file that [`header`] needs; that much of it begins like a native one.
pub(super) fn header_size(beginning: Beginning<'_>) -> u64 {
    let ends = layouts(beginning.bytes).filter_map(|alike| {
        let end = read::header_end(beginning, alike.structs)? as u64;
        (end <= beginning.length).then_some(end)
    });
    ends.max().unwrap_or(0)
}

/// How many bytes of a file are needed where only NaNs among the values can show which of some
/// machines it is; `None` where they are not needed, or the present bytes have shown it.
pub(super) fn size_with_nans(beginning: Beginning<'_>, header: &Header) -> Option<u64> {
    let Beginning { bytes, length } = beginning;
    let alike = &header.detection.alike;
    let size = length.min((header.layout.header_end() + SEARCHED) as u64);
    let known = header.detection.confidence == Confidence::Overruled || alike.len() < 2;
    // A limit may have been given as `NAN`: the values show more.
    let found = || {
        by_nan(bytes, &header.layout, alike).is_some_and(|found| found.file_nan() != WRITTEN_NAN)
    };
    (!known && size > bytes.len() as u64 && !found()).then_some(size)
}

fn overruled(beginning: Beginning<'_>, machine: &'static Machine) -> Result<Header, Error> {
    let bytes = beginning.bytes;
    let alike = Alike::of(machine);
    let mut read = if alike.shows_cookie(bytes) {
        Candidate::read(beginning, alike)
    } else {
        Err(no_cookie(bytes))
    };
    // The machine that was specified may be what is wrong.
    let whole = read
        .as_ref()
        .is_ok_and(|reported| reported.rank() <= (0, 0, u64::MAX));
    let better = match detected(beginning) {
        Ok(better) if !whole && better.findings.damage().is_none() => better.detection.machine,
        _ => machine,
    };
    if !better.same_layout(machine) {
        let cause = difference(machine, better);
        match &mut read {
            Ok(reported) => match reported.findings.damage() {
                Some(damage) => return Err(damage.clone().because(cause)),
                // It can be read, but hardly makes sense.
                None => reported.findings.add(Severity::Warning, || {
                    Error::new("machine", None, machine.name(), better.name()).because(cause)
                }),
            },
            Err(error) => return Err(error.clone().because(cause)),
        }
    }
    let detection = Detection {
        machine,
        alike: alike.machines.clone(),
        confidence: Confidence::Overruled,
    };
    Ok(read?.into_header(detection))
}

/// Machines that write the same but for NaNs.
struct Alike {
    /// In the order of [`Machine::all`]; there is at least one.
    machines: Vec<&'static Machine>,
    /// Those of the first machine.
    structs: Structs,
    /// The cookie: the double behind the version.
    cookie: [u8; SLOT],
    cookie_at: usize,
}

impl Alike {
    /// All groups of machines that write alike, in the order of their first machines.
    fn all() -> &'static [Self] {
        static ALL: OnceLock<Vec<Alike>> = OnceLock::new();
        ALL.get_or_init(|| {
            let mut all: Vec<Self> = Vec::new();
            for machine in Machine::all() {
                let known = all
                    .iter_mut()
                    .find(|alike| alike.machines[0].same_layout(machine));
                match known {
                    Some(alike) => alike.machines.push(machine),
                    None => all.push(Self::first(machine)),
                }
            }
            all
        })
    }

    /// Those that write as a machine does.
    fn of(machine: &'static Machine) -> &'static Self {
        let mut all = Self::all().iter();
        let its = all.find(|alike| alike.machines[0].same_layout(machine));
        its.expect("each machine is alike itself")
    }

    fn first(machine: &'static Machine) -> Self {
        Self {
            machines: vec![machine],
            structs: Structs::of(machine),
            cookie: machine.double_to_bytes(FLOAT_COOKIE.to_bits()),
            cookie_at: cookie_at(machine),
        }
    }

    fn shows_cookie(&self, bytes: &[u8]) -> bool {
        let rest = bytes.get(self.cookie_at..);
        rest.is_some_and(|rest| rest.starts_with(&self.cookie))
    }
}

/// The layouts that the cookie allows.
fn layouts(bytes: &[u8]) -> impl Iterator<Item = &'static Alike> {
    Alike::all()
        .iter()
        .filter(|alike| alike.shows_cookie(bytes))
}

/// The layouts with which there are numbers of data sources and archives. Most find nothing where these
/// would be, and need not be tried.
fn readable(beginning: Beginning<'_>) -> impl Iterator<Item = &'static Alike> {
    layouts(beginning.bytes).filter(move |alike| read::has_counts(beginning, alike.structs))
}

/// Whether a file can be read with one layout at most, whatever follows its definitions.
pub(super) fn is_only_layout(beginning: Beginning<'_>) -> bool {
    readable(beginning).nth(1).is_none()
}

fn detected(beginning: Beginning<'_>) -> Result<Header, Error> {
    let bytes = beginning.bytes;
    let mut candidates: Vec<_> = readable(beginning)
        .filter_map(|alike| Candidate::read(beginning, alike).ok())
        .collect();
    candidates.sort_by_key(Candidate::rank);
    let mut candidates = candidates.into_iter();
    let Some(best) = candidates.next() else {
        return Err(likeliest_error(beginning));
    };
    let rival = candidates.next().filter(|rival| rival.rivals(&best));
    let alike = &best.alike.machines;
    let detection = Detection {
        machine: by_nan(bytes, &best.layout, alike).unwrap_or(best.machine()),
        alike: alike.clone(),
        confidence: match rival {
            Some(rival) => Confidence::Likely {
                alternative: rival.machine(),
            },
            None => Confidence::Certain,
        },
    };
    Ok(best.into_header(detection))
}

/// What is wrong with a file that cannot be read with any layout.
fn likeliest_error(beginning: Beginning<'_>) -> Error {
    let errors = layouts(beginning.bytes)
        .filter_map(|alike| {
            let error = Candidate::read(beginning, alike).err()?;
            // Of a file that has been cut off, what is left makes sense with its own layout, though little
            // of it can be read: a layout that sees no archives at all is not meant.
            Some((read::has_counts(beginning, alike.structs), error))
        })
        // Else the layout with which the most could be read is the likeliest one.
        .reduce(|likeliest, other| {
            let rank = |(counts, error): &(bool, Error)| (*counts, error.offset);
            match rank(&other) > rank(&likeliest) {
                true => other,
                false => likeliest,
            }
        });
    errors.map_or_else(|| no_cookie(beginning.bytes), |(_, error)| error)
}

/// A file as a machine would have written it.
struct Candidate {
    alike: &'static Alike,
    database: crate::Database,
    layout: Layout,
    findings: Findings,
}

impl Candidate {
    fn read(beginning: Beginning<'_>, alike: &'static Alike) -> Result<Self, Error> {
        let mut findings = Findings::default();
        let (database, layout) = read::read(beginning, alike.structs, &mut findings)?;
        validate(
            &database,
            |place| Some(locate(&layout, place)),
            &mut findings,
        );
        Ok(Self {
            alike,
            database,
            layout,
            findings,
        })
    }

    fn machine(&self) -> &'static Machine {
        self.alike.machines[0]
    }

    /// How little sense it makes.
    fn rank(&self) -> (u64, u64, u64) {
        let count = |severity| self.findings.count(severity);
        (
            count(Severity::Damage),
            count(Severity::Warning),
            count(Severity::Note),
        )
    }

    /// Whether it makes as much sense as a better one but for what nothing reads.
    fn rivals(&self, best: &Self) -> bool {
        let (damage, warnings, _) = self.rank();
        let (best_damage, best_warnings, _) = best.rank();
        damage <= best_damage && warnings <= best_warnings
    }

    fn into_header(self, detection: Detection) -> Header {
        Header {
            database: self.database,
            layout: self.layout.of_machine(detection.machine),
            findings: self.findings,
            detection,
        }
    }
}

/// Where a part of a database is.
pub(super) fn locate(layout: &Layout, place: Place) -> u64 {
    let offset = match place {
        Place::LastUpdate => layout.live(),
        Place::Source(source) => layout.source(source),
        Place::Archive(archive) => layout.archive(archive),
        Place::SourceState(source) => layout.source_state(source),
        Place::ArchiveState(archive, source) => layout.archive_state(archive, source),
        Place::Pointer(archive) => layout.pointer(archive),
    };
    offset as u64
}

/// Where a machine puts the cookie: the double behind the version.
fn cookie_at(machine: &Machine) -> usize {
    AFTER_VERSION.next_multiple_of(machine.double_align()) as usize
}

fn no_cookie(bytes: &[u8]) -> Error {
    let first = Machine::all().iter().map(cookie_at).min().unwrap_or(0);
    let last = Machine::all().iter().map(cookie_at).max().unwrap_or(0);
    let found = bytes.get(first..(last + SLOT).min(bytes.len()));
    Error::new(
        "stat_head.float_cookie",
        first as u64,
        format_args!("\"{}\"", found.unwrap_or_default().escape_ascii()),
        format_args!("the double {FLOAT_COOKIE:e} where the machine puts it"),
    )
    .because("the file is damaged, or of another machine")
}

/// The first of these machines whose NaN the file holds.
pub(super) fn by_nan(
    bytes: &[u8],
    layout: &Layout,
    machines: &[&'static Machine],
) -> Option<&'static Machine> {
    machine_of(first_nan(bytes, layout, machines)?, machines)
}

/// The same, if the limits of data sources alone say it, whatever the values are.
pub(super) fn by_limits(
    definitions: &[u8],
    layout: &Layout,
    machines: &[&'static Machine],
) -> Option<&'static Machine> {
    let nan = first_nan(definitions, layout, machines)?;
    machine_of(nan, machines).filter(|_| nan != WRITTEN_NAN)
}

fn machine_of(nan: u64, machines: &[&'static Machine]) -> Option<&'static Machine> {
    machines
        .iter()
        .find(|machine| machine.file_nan() == nan)
        .copied()
}

/// The NaN that shows the machine.
fn first_nan(bytes: &[u8], layout: &Layout, machines: &[&'static Machine]) -> Option<u64> {
    let order = machines.first()?.float_order();
    let definitions = (0..layout.sources()).flat_map(|source| {
        let parameters = layout.source(source) + layout.structs().source.parameters;
        [parameters + SLOT, parameters + 2 * SLOT]
            .into_iter()
            .filter_map(|at| bytes.get(at..)?.first_chunk())
    });
    let values = bytes.get(layout.header_end()..).unwrap_or_default();
    let (values, _) = values[..values.len().min(SEARCHED)].as_chunks();
    let nans = definitions
        .chain(values)
        .map(|double| order.read(*double))
        .filter(|&bits| is_nan(bits));
    // A limit that was given as `NAN` is the C library's NaN, which on other machines than these is every unknown value.
    let mut written = nans.clone().filter(|&nan| nan != WRITTEN_NAN);
    written.next().or_else(|| nans.clone().next())
}

/// What two machines do not have in common.
fn difference(reported: &Machine, right: &Machine) -> String {
    let bits = |bytes: usize| 8 * bytes;
    let how = if reported.byte_order() != right.byte_order() {
        "with the other byte order".to_owned()
    } else if reported.float_order() != right.float_order() {
        "with doubles in another order".to_owned()
    } else if reported.long() != right.long() {
        format!("with {}-bit long", bits(right.long().bytes()))
    } else if reported.time() != right.time() {
        format!("with {}-bit time_t", bits(right.time().bytes()))
    } else {
        "with other alignments".to_owned()
    };
    format!(
        "the file was written {how}: it is whole as a file of `{}`",
        right.name()
    )
}
