//! What a dump holds, and the database it makes.

use std::borrow::Cow;
use std::collections::HashMap;

use super::pull::{Pull, RestoreError, shortened};
use crate::model::rows::Grid;
use crate::model::{
    Archive, ArchiveKind, ArchiveLink, ArchiveState, Consolidation, DataSource, Scratch, Slot,
    SourceKind, SourceState, State,
};
use crate::rpn::{Node, Program};
use crate::{Database, Text, Time, Value};

/// What `<rrd>` holds, as far as it was found.
#[derive(Default)]
pub(super) struct Found<'x> {
    pub(super) version: Option<u8>,
    pub(super) step: Option<u64>,
    pub(super) last_update: Option<Time>,
    pub(super) stray_micros: Option<i64>,
    pub(super) sources: Vec<FoundSource<'x>>,
    pub(super) archives: Vec<FoundArchive>,
}

/// What a `<ds>` of `<rrd>` holds.
pub(super) struct FoundSource<'x> {
    pub(super) name: Text,
    pub(super) kind: FoundKind<'x>,
    pub(super) state: SourceState,
}

pub(super) enum FoundKind<'x> {
    Measured(SourceKind),
    /// An expression, and where it is: the names in it need not be known yet.
    Compute(Cow<'x, str>, usize),
    /// What an exact dump contains instead, and where.
    Program(Program, usize),
}

/// What an `<rra>` holds.
pub(super) struct FoundArchive {
    /// Where it begins.
    pub(super) begin: usize,
    pub(super) function: String,
    pub(super) points_per_row: u64,
    pub(super) parameters: Parameters,
    pub(super) scratch: Vec<Scratch>,
    pub(super) current_row: Option<u64>,
    pub(super) rows: u64,
    /// Values in each row.
    pub(super) columns: usize,
    /// Where its values begin.
    pub(super) values: usize,
}

/// The parameters of an archive of any kind.
#[derive(Default)]
pub(super) struct Parameters {
    pub(super) xff: Option<Value>,
    pub(super) alpha: Option<Value>,
    pub(super) beta: Option<Value>,
    pub(super) period: Option<Value>,
    pub(super) gamma: Option<Value>,
    pub(super) smooth_row: Option<u64>,
    pub(super) smoothing_window: Option<Value>,
    pub(super) delta_positive: Option<Value>,
    pub(super) delta_negative: Option<Value>,
    pub(super) window: Option<u64>,
    pub(super) threshold: Option<u64>,
    pub(super) link: Option<ArchiveLink>,
}

impl<'x> Found<'x> {
    /// Makes a database of what was found.
    ///
    /// # Errors
    ///
    /// What is missing, and what does not fit together.
    pub(super) fn database(self, pull: &Pull<'x>) -> Result<(Database, Vec<Grid>), RestoreError> {
        let found = self;
        let missing = |what: &str| pull.missing("rrd", what, pull.position());
        let (mut sources, mut source_states) = (Vec::new(), Vec::new());
        let mut places: HashMap<&[u8], u32> = HashMap::new();
        for (place, source) in (0..).zip(&found.sources) {
            sources.push(DataSource {
                name: source.name.clone(),
                kind: source.kind(place, &places, pull)?,
            });
            source_states.push(source.state.clone());
            places.entry(source.name.as_bytes()).or_insert(place);
        }
        if sources.is_empty() {
            return Err(missing("ds"));
        }
        if found.archives.is_empty() {
            return Err(missing("rra"));
        }
        let (mut archives, mut archive_states, mut grids) = (Vec::new(), Vec::new(), Vec::new());
        for archive in found.archives {
            let error = |message: String| RestoreError {
                element: Some("rra".to_owned()),
                ..pull.error_at(archive.begin, message)
            };
            let kind = archive.kind().map_err(error)?;
            let count = sources.len();
            for (what, found) in [
                ("`<v>` in each `<row>`", archive.columns),
                ("`<ds>` in `<cdp_prep>`", archive.scratch.len()),
            ] {
                if found != count {
                    let message = format!("found {found} {what}, expected {count}");
                    return Err(error(message));
                }
            }
            let current_row = archive.current_row.unwrap_or(archive.rows - 1);
            if current_row >= archive.rows {
                let rows = archive.rows;
                let message = format!("found current row {current_row} of {rows} rows");
                return Err(error(message));
            }
            let grid = Grid::dense(archive.values as u64, archive.rows, archive.rows - 1, count);
            grids.push(grid.ok_or_else(|| error("it has too many values".to_owned()))?);
            let mut scratch = archive.scratch;
            for scratch in &mut scratch {
                for slot in (0..Scratch::SLOTS).filter(|&slot| kind.slot(slot) == Slot::Value) {
                    scratch.set_value(slot, scratch.value(slot));
                }
            }
            archive_states.push(ArchiveState {
                current_row,
                scratch,
            });
            archives.push(Archive {
                kind,
                rows: archive.rows,
                points_per_row: archive.points_per_row,
            });
        }
        let database = Database {
            version: found.version.ok_or_else(|| missing("version"))?,
            step: found.step.ok_or_else(|| missing("step"))?,
            sources,
            archives,
            state: State {
                last_update: found.last_update.ok_or_else(|| missing("lastupdate"))?,
                stray_micros: found.stray_micros,
                sources: source_states,
                archives: archive_states,
            },
        };
        Ok((database, grids))
    }
}

impl FoundSource<'_> {
    /// Where its values come from; `places` are those of the data sources before its own place.
    fn kind(
        &self,
        place: u32,
        places: &HashMap<&[u8], u32>,
        pull: &Pull<'_>,
    ) -> Result<SourceKind, RestoreError> {
        let (text, begin) = match &self.kind {
            FoundKind::Measured(kind) => return Ok(kind.clone()),
            FoundKind::Program(program, begin) => {
                let later = program.nodes.iter().find_map(|node| match *node {
                    Node::Variable(other) | Node::PreviousOf(other) => {
                        (other >= place).then_some(other)
                    }
                    Node::Number(_) | Node::Operator(_) => None,
                });
                return match later {
                    None => Ok(SourceKind::Compute(program.clone())),
                    Some(other) => {
                        let message = format!("found data source {other}, expected one before");
                        Err(RestoreError {
                            element: Some("ds".to_owned()),
                            ..pull.error_at(*begin, message)
                        })
                    }
                };
            }
            FoundKind::Compute(text, begin) => (text, *begin),
        };
        match Program::parse(text, |name| places.get(name.as_bytes()).copied()) {
            Ok(program) => Ok(SourceKind::Compute(program)),
            Err(error) => Err(RestoreError {
                element: Some("cdef".to_owned()),
                ..pull.error_at(begin, error.to_string())
            }),
        }
    }
}

impl FoundArchive {
    /// What the values of the archive are, or why that is not known.
    fn kind(&self) -> Result<ArchiveKind, String> {
        let Parameters {
            xff,
            alpha,
            beta,
            period,
            gamma,
            smooth_row,
            smoothing_window,
            delta_positive,
            delta_negative,
            window,
            threshold,
            link,
        } = self.parameters;
        let link = link.unwrap_or(ArchiveLink(0));
        let needed =
            |value: Option<Value>, name: &str| value.ok_or_else(|| format!("it has no `<{name}>`"));
        let function = &*self.function;
        if let Some(function) = Consolidation::ALL
            .into_iter()
            .find(|known| known.name() == function)
        {
            let xff = needed(xff, "xff")?;
            return Ok(ArchiveKind::Consolidated { function, xff });
        }
        Ok(match function {
            "HWPREDICT" | "MHWPREDICT" => ArchiveKind::HwPredict {
                multiplicative: function == "MHWPREDICT",
                alpha: needed(alpha, "hw_alpha")?,
                beta: needed(beta, "hw_beta")?,
                period: period.unwrap_or(Value::ZERO),
                seasonal: link,
            },
            "SEASONAL" | "DEVSEASONAL" => ArchiveKind::Seasonal {
                deviation: function == "DEVSEASONAL",
                gamma: needed(gamma, "seasonal_gamma")?,
                smoothing_window: smoothing_window.unwrap_or(Value::ZERO),
                smooth_row: smooth_row.unwrap_or(0),
                predictions: link,
            },
            "DEVPREDICT" => ArchiveKind::DevPredict { deviations: link },
            "FAILURES" => {
                let window = window.ok_or("it has no `<window_len>`")?;
                if window > Scratch::HISTORY as u64 {
                    return Err(format!("found a window of {window}, expected at most 28"));
                }
                ArchiveKind::Failures {
                    delta_positive: needed(delta_positive, "delta_pos")?,
                    delta_negative: needed(delta_negative, "delta_neg")?,
                    window,
                    threshold: threshold.ok_or("it has no `<failure_threshold>`")?,
                    deviations: link,
                }
            }
            other => {
                return Err(format!(
                    "found consolidation function `{}`, expected AVERAGE, MIN, MAX, LAST, \
                     HWPREDICT, MHWPREDICT, SEASONAL, DEVSEASONAL, DEVPREDICT or FAILURES",
                    shortened(other)
                ));
            }
        })
    }
}
