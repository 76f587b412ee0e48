//! From the bytes of a native file to a [`Database`].

use std::fmt;

use kymo_machine::{FloatOrder, Width, integer};

use super::layout::Layout;
use super::parameters::{Parameter, parameters};
use super::structs::{LAST_READING, NAME, NODE, NODES, SLOT, SLOTS, Structs};
use crate::fault::{Error, Findings, Severity};
use crate::model::{
    Archive, ArchiveKind, ArchiveLink, ArchiveState, Consolidation, DataSource, Reading, Scratch,
    Slot, SourceKind, SourceState, State,
};
use crate::rpn::{Node, Operator, Program};
use crate::{Database, Text, Time, Value};

/// The number of the node that ends a program.
pub(super) const END: u8 = 32;
/// The number of the node that is a constant.
pub(super) const NUMBER: u8 = 0;
/// The number of the node that is a data source.
pub(super) const VARIABLE: u8 = 1;
/// The number of the node that is the value before of a data source.
pub(super) const PREVIOUS_OF: u8 = 36;

/// The beginning of a file, with all but the values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beginning<'a> {
    pub(super) bytes: &'a [u8],
    /// Bytes of the whole file.
    pub(super) length: u64,
}

impl<'a> Beginning<'a> {
    pub(super) fn new(bytes: &'a [u8], length: u64) -> Self {
        Self { bytes, length }
    }

    pub(super) fn whole(bytes: &'a [u8]) -> Self {
        Self::new(bytes, bytes.len() as u64)
    }
}

/// Where all but the values ends, as far as this machine would have written it.
pub(super) fn header_end(beginning: Beginning<'_>, structs: Structs) -> Option<usize> {
    let version = version(beginning.bytes).ok()?;
    let reader = Reader {
        beginning,
        structs,
        findings: &mut Findings::default(),
    };
    let head = structs.head;
    let count = |at| usize::try_from(reader.long(at)).ok();
    let (sources, archives) = (count(head.source_count)?, count(head.archive_count)?);
    Some(Layout::of_header(structs, version, sources, archives)?.header_end())
}

/// Whether there are numbers of data sources and archives where this machine would have put them:
/// without, [`read()`] fails.
pub(super) fn has_counts(beginning: Beginning<'_>, structs: Structs) -> bool {
    let head = structs.head;
    let machine = structs.machine;
    [head.source_count, head.archive_count]
        .into_iter()
        .filter_map(|at| {
            integer::read_uint(beginning.bytes, at, machine.long(), machine.byte_order())
        })
        .all(|count| (1..=beginning.length).contains(&count))
}

/// Reads all but the values as this machine would have written it.
///
/// What can be read all the same, though it is not as it must be, goes to `findings`.
pub(super) fn read(
    beginning: Beginning<'_>,
    structs: Structs,
    findings: &mut Findings,
) -> Result<(Database, Layout), Error> {
    let Beginning { bytes, length } = beginning;
    let version = version(bytes)?;
    let head = structs.head;
    if bytes.len() < head.size {
        return Err(Error::new(
            "stat_head",
            bytes.len() as u64,
            format_args!("the end of the file after {} bytes", bytes.len()),
            format_args!("at least {} bytes", head.size),
        )
        .because("the file has been cut off"));
    }
    let mut reader = Reader {
        beginning,
        structs,
        findings,
    };
    let sources = reader.count("stat_head.ds_cnt", head.source_count)?;
    let archives = reader.count("stat_head.rra_cnt", head.archive_count)?;
    let step = reader.at_least_one(format_args!("stat_head.pdp_step"), head.step)?;
    reader.unused(|| "stat_head.par".to_owned(), head.parameters, SLOTS * SLOT);

    let layout = usize::try_from(sources)
        .ok()
        .zip(usize::try_from(archives).ok())
        .and_then(|(sources, archives)| Layout::of_header(structs, version, sources, archives))
        .filter(|layout| layout.header_end() <= bytes.len());
    let Some(layout) = layout else {
        return Err(Error::new(
            "stat_head.ds_cnt",
            head.source_count as u64,
            format_args!("{sources} data sources and {archives} archives"),
            format_args!("no more than fit in the {length} bytes of the file"),
        )
        .because("the file has been cut off, or is of another machine"));
    };
    let definitions = reader.sources(&layout)?;
    let archives = reader.archives(&layout)?;
    let rows = || archives.iter().map(|archive| archive.rows);
    let row_counts = layout.clone().with_rows(rows());
    let Some(layout) = row_counts else {
        return Err(Error::new(
            "rra_def[].row_cnt",
            layout.archive(0) as u64,
            "more rows than a file can have",
            format_args!("no more than fit in the {length} bytes of the file"),
        )
        .because("the header is damaged"));
    };
    reader.length(&layout);
    let state = reader.state(&layout, &archives);
    let database = Database {
        version,
        step,
        sources: definitions,
        archives,
        state,
    };
    Ok((database, layout))
}

/// Reads what updates change, where the definitions are known.
pub(super) fn state(
    beginning: Beginning<'_>,
    layout: &Layout,
    archives: &[Archive],
    findings: &mut Findings,
) -> State {
    let mut reader = Reader {
        beginning,
        structs: *layout.structs(),
        findings,
    };
    reader.length(layout);
    reader.state(layout, archives)
}

/// The version, which all machines write alike.
pub(super) fn version(bytes: &[u8]) -> Result<u8, Error> {
    let found = bytes.get(4..9).unwrap_or_default();
    match found {
        [b'0', b'0', b'0', digit @ b'1'..=b'5', 0] => Ok(digit - b'0'),
        _ => Err(Error::new(
            "stat_head.version",
            4,
            format_args!("\"{}\"", found.escape_ascii()),
            "\"0001\\x00\" to \"0005\\x00\"",
        )),
    }
}

/// Reads members. Whoever asks has checked that they lie within the bytes; what does not is
/// zero.
struct Reader<'a, 'f> {
    beginning: Beginning<'a>,
    structs: Structs,
    findings: &'f mut Findings,
}

impl Reader<'_, '_> {
    fn long(&self, at: usize) -> u64 {
        let machine = self.structs.machine;
        integer::read_uint(
            self.beginning.bytes,
            at,
            machine.long(),
            machine.byte_order(),
        )
        .unwrap_or(0)
    }

    fn signed(&self, at: usize, width: Width) -> i64 {
        let order = self.structs.machine.byte_order();
        integer::read_sint(self.beginning.bytes, at, width, order).unwrap_or(0)
    }

    fn slot(&self, at: usize) -> [u8; SLOT] {
        let bytes = self.beginning.bytes.get(at..).and_then(<[u8]>::first_chunk);
        bytes.copied().unwrap_or_default()
    }

    fn double(&self, at: usize) -> Value {
        Value::from_bits(self.structs.machine.double_from_bytes(self.slot(at)))
    }

    /// A text; what follows its NUL should be zeros.
    fn text(&mut self, at: usize, length: usize, field: impl FnOnce() -> String) -> Text {
        let bytes = self
            .beginning
            .bytes
            .get(at..at + length)
            .unwrap_or_default();
        let text = Text::new(bytes);
        let end = text.as_bytes().len();
        if end == length {
            self.findings.add(Severity::Warning, || {
                let found = format!("\"{text}\"");
                let expected = format!("a NUL within {length} bytes");
                Error::new(field(), at as u64, found, expected)
            });
        } else {
            self.unused(field, at + end, length - end);
        }
        text
    }

    /// Bytes that no reader looks at; they should be zeros.
    fn unused(&mut self, field: impl FnOnce() -> String, at: usize, length: usize) {
        let bytes = self
            .beginning
            .bytes
            .get(at..at + length)
            .unwrap_or_default();
        // Combines all of them, which is faster than stopping at the first.
        if bytes.iter().fold(0, |all, byte| all | byte) != 0 {
            self.findings.add(Severity::Note, || {
                let found = format!("{length} unused bytes that are not all zero");
                Error::new(field(), at as u64, found, "zeros")
            });
        }
    }

    /// What an integer leaves of its slot.
    fn rest(&mut self, field: impl FnOnce() -> String, at: usize) {
        let width = self.structs.long().bytes();
        self.unused(field, at + width, SLOT - width);
    }

    fn at_least_one(&self, field: fmt::Arguments<'_>, at: usize) -> Result<u64, Error> {
        match self.long(at) {
            0 => Err(Error::new(field.to_string(), at as u64, 0, "at least 1")),
            count => Ok(count),
        }
    }

    /// A number of things of which each takes at least a byte.
    fn count(&self, field: &str, at: usize) -> Result<u64, Error> {
        let count = self.at_least_one(format_args!("{field}"), at)?;
        if count <= self.beginning.length {
            return Ok(count);
        }
        let length = self.beginning.length;
        let expected = format!("no more than fit in the {length} bytes of the file");
        Err(Error::new(field, at as u64, count, expected).because("it is of another machine"))
    }

    fn sources(&mut self, layout: &Layout) -> Result<Vec<DataSource>, Error> {
        (0..layout.sources())
            .map(|index| {
                let at = layout.source(index);
                let name = self.text(at, NAME, || format!("ds_def[{index}].ds_nam"));
                let second = at + self.structs.source.second;
                let kind = self.text(second, NAME, || format!("ds_def[{index}].dst"));
                let parameters = at + self.structs.source.parameters;
                let kind = self.source_kind(index, &kind, second, parameters)?;
                Ok(DataSource { name, kind })
            })
            .collect()
    }

    fn source_kind(
        &mut self,
        index: usize,
        name: &Text,
        name_at: usize,
        parameters: usize,
    ) -> Result<SourceKind, Error> {
        if name.as_bytes() == b"COMPUTE" {
            return self.program(index, parameters).map(SourceKind::Compute);
        }
        let Some(reading) = Reading::from_name(name.as_bytes()) else {
            return Err(Error::new(
                format!("ds_def[{index}].dst"),
                name_at as u64,
                format_args!("\"{name}\""),
                "GAUGE, COUNTER, DERIVE, ABSOLUTE, COMPUTE, DCOUNTER or DDERIVE",
            ));
        };
        self.rest(|| format!("ds_def[{index}].par[0]"), parameters);
        self.unused(
            || format!("ds_def[{index}].par[3..]"),
            parameters + 3 * SLOT,
            (SLOTS - 3) * SLOT,
        );
        Ok(SourceKind::Measured {
            reading,
            heartbeat: self.long(parameters),
            min: self.double(parameters + SLOT),
            max: self.double(parameters + 2 * SLOT),
        })
    }

    fn program(&mut self, index: usize, at: usize) -> Result<Program, Error> {
        let field = |node: usize| format!("ds_def[{index}].par, node {node}");
        let mut nodes = Vec::new();
        for number in 0..NODES {
            let at = at + number * NODE;
            let code = self.beginning.bytes.get(at).copied().unwrap_or(END);
            if code == END {
                let rest = (NODES - number) * NODE - 1;
                self.unused(|| field(number), at + 1, rest);
                return Ok(Program { nodes });
            }
            let value = self.signed(at + 2, Width::W16);
            let variable = || {
                u32::try_from(value).map_err(|_| {
                    Error::new(
                        field(number),
                        at as u64,
                        value,
                        "the place of a data source",
                    )
                })
            };
            nodes.push(match code {
                NUMBER => Node::Number(Value::from(value as f64)),
                VARIABLE => Node::Variable(variable()?),
                PREVIOUS_OF => Node::PreviousOf(variable()?),
                _ => Node::Operator(Operator::from_code(code).ok_or_else(|| {
                    Error::new(field(number), at as u64, code, "an operator, 0 to 70")
                })?),
            });
        }
        Err(Error::new(
            field(NODES - 1),
            (at + NODES * NODE - NODE) as u64,
            format_args!("{NODES} nodes without an end"),
            format_args!("a node of number {END}, which ends the program"),
        ))
    }

    fn archives(&mut self, layout: &Layout) -> Result<Vec<Archive>, Error> {
        (0..layout.archives())
            .map(|index| {
                let at = layout.archive(index);
                let definition = self.structs.archive;
                let name = self.text(at, NAME, || format!("rra_def[{index}].cf_nam"));
                let parameters_at = at + definition.parameters;
                let kind = self.archive_kind(&name, parameters_at).ok_or_else(|| {
                    Error::new(
                        format!("rra_def[{index}].cf_nam"),
                        at as u64,
                        format_args!("\"{name}\""),
                        "AVERAGE, MIN, MAX, LAST, HWPREDICT, MHWPREDICT, SEASONAL, \
                         DEVSEASONAL, DEVPREDICT or FAILURES",
                    )
                })?;
                for (slot, parameter) in parameters(&kind).into_iter().enumerate() {
                    let field = || format!("rra_def[{index}].par[{slot}]");
                    let at = parameters_at + slot * SLOT;
                    match parameter {
                        Parameter::Unused => self.unused(field, at, SLOT),
                        Parameter::Counter(_) | Parameter::Link(_) => self.rest(field, at),
                        Parameter::Value(_) => {}
                    }
                }
                let rows_at = at + definition.second;
                let rows = self.at_least_one(format_args!("rra_def[{index}].row_cnt"), rows_at)?;
                let points_at = at + definition.third;
                let points_per_row =
                    self.at_least_one(format_args!("rra_def[{index}].pdp_cnt"), points_at)?;
                Ok(Archive {
                    kind,
                    rows,
                    points_per_row,
                })
            })
            .collect()
    }

    /// `None` where no kind has this name.
    fn archive_kind(&self, name: &Text, at: usize) -> Option<ArchiveKind> {
        let value = |slot: usize| self.double(at + slot * SLOT);
        let counter = |slot: usize| self.long(at + slot * SLOT);
        let link = |slot: usize| ArchiveLink(self.signed(at + slot * SLOT, self.structs.long()));
        let consolidated = |function| ArchiveKind::Consolidated {
            function,
            xff: value(0),
        };
        Some(match name.as_bytes() {
            b"AVERAGE" => consolidated(Consolidation::Average),
            b"MIN" => consolidated(Consolidation::Min),
            b"MAX" => consolidated(Consolidation::Max),
            b"LAST" => consolidated(Consolidation::Last),
            b"HWPREDICT" | b"MHWPREDICT" => ArchiveKind::HwPredict {
                multiplicative: name.as_bytes() == b"MHWPREDICT",
                alpha: value(1),
                beta: value(2),
                seasonal: link(3),
                period: value(4),
            },
            b"SEASONAL" | b"DEVSEASONAL" => ArchiveKind::Seasonal {
                deviation: name.as_bytes() == b"DEVSEASONAL",
                gamma: value(1),
                smoothing_window: value(2),
                predictions: link(3),
                smooth_row: counter(4),
            },
            b"DEVPREDICT" => ArchiveKind::DevPredict {
                deviations: link(3),
            },
            b"FAILURES" => ArchiveKind::Failures {
                delta_positive: value(1),
                delta_negative: value(2),
                deviations: link(3),
                window: counter(4),
                threshold: counter(5),
            },
            _ => return None,
        })
    }

    /// Compares the length of the file with what the header says.
    fn length(&mut self, layout: &Layout) {
        let (length, end) = (self.beginning.length, layout.end());
        if length < end {
            self.findings.add(Severity::Damage, || {
                let found = format!("the end of the file after {length} bytes");
                Error::new("values", length, found, format_args!("{end} bytes"))
                    .because("the file has been cut off, or is of another machine")
            });
        }
        let trailing = length.saturating_sub(end);
        if trailing > 0 {
            let usual = trailing == self.structs.machine.time().bytes() as u64;
            let severity = if usual {
                Severity::Note
            } else {
                Severity::Warning
            };
            self.findings.add(severity, || {
                let found = format!("{trailing} bytes after the values");
                let error = Error::new("values", end, found, "the end of the file");
                if usual {
                    error.because("rrdtool of 2008 to 2011 left them, and nothing reads them")
                } else {
                    error
                }
            });
        }
    }

    fn state(&mut self, layout: &Layout, archives: &[Archive]) -> State {
        let seconds = self.signed(layout.live(), self.structs.machine.time());
        let micros = layout
            .micros()
            .map_or(0, |at| self.signed(at, self.structs.long()));
        let time = u32::try_from(micros)
            .ok()
            .and_then(|micros| Time::from_micros(seconds, micros));
        let sources = (0..layout.sources())
            .map(|index| self.source_state(index, layout.source_state(index)))
            .collect();
        let archives = archives
            .iter()
            .enumerate()
            .map(|(index, archive)| ArchiveState {
                current_row: self.long(layout.pointer(index)),
                scratch: (0..layout.sources())
                    .map(|source| {
                        let at = layout.archive_state(index, source);
                        self.scratch(&archive.kind, at, index, source)
                    })
                    .collect(),
            })
            .collect();
        State {
            last_update: time.unwrap_or(Time::from_seconds(seconds)),
            stray_micros: time.is_none().then_some(micros),
            sources,
            archives,
        }
    }

    fn source_state(&mut self, index: usize, at: usize) -> SourceState {
        let field = |rest: &str| format!("pdp_prep[{index}].{rest}");
        let last_reading = self.text(at, LAST_READING, || field("last_ds"));
        let slots = at + self.structs.source_state.slots;
        self.rest(|| field("scratch[0]"), slots);
        let unused = slots + 2 * SLOT;
        self.unused(|| field("scratch[2..]"), unused, (SLOTS - 2) * SLOT);
        SourceState {
            last_reading,
            unknown_seconds: self.long(slots),
            value: self.double(slots + SLOT),
        }
    }

    fn scratch(&mut self, kind: &ArchiveKind, at: usize, archive: usize, source: usize) -> Scratch {
        let mut scratch = Scratch::default();
        for (index, slot) in scratch.0.iter_mut().enumerate() {
            let at = at + self.structs.archive_state.slots + index * SLOT;
            *slot = match kind.slot(index) {
                Slot::Value => self.double(at).to_bits(),
                Slot::Counter => {
                    let field = || format!("cdp_prep[{archive}][{source}].scratch[{index}]");
                    self.rest(field, at);
                    self.long(at)
                }
                Slot::History => u64::from_le_bytes(self.slot(at)),
                Slot::Unused => self.order().read(self.slot(at)),
            };
        }
        scratch
    }

    fn order(&self) -> FloatOrder {
        self.structs.machine.float_order()
    }
}
