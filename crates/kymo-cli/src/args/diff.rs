//! What can be written after `kymo diff`.

use std::path::PathBuf;

use clap::Args;
use kymo::analysis::{EventPattern, GroupBy, PairBy};
use kymo::filter::{FieldNames, FilterError};

use super::analysis::{Tracks, parse_event, parse_fields, parse_pair_by};
use super::group::parse_by;
use super::{Input, Selection, SymbolArgs, Work};
use crate::diff::limit::Limit;

/// Compare two recordings, or two ranges of one: what changed, and whether it is more than noise
///
/// For each group, by default each name of events: the number of events and their rate; with
/// --start and --end, or if the recordings say which events begin and end slices, latencies; with
/// --enter and --exit, times of calls without what they call; with --field, the values of a field.
/// Changes that tests distinguish from noise are shown, those that matter most first, and what is only in
/// one of the two.
///
/// PATH@BEGIN..END is a range of a recording; its times are written as for --begin, and either may be left out.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  kymo diff before/ after/
  kymo diff trace@10:15..10:16 trace@10:20..10:21
  kymo diff --start 'syscall_entry_*' --end 'syscall_exit_*' --pair-by vtid before/ after/
  kymo diff --field size --fail-if 'p99(latency.read) > +10 %' before.json after.json
  kymo diff --enter func_entry --exit func_exit --key addr --flame change.svg before/ after/
  kymo diff --events before/ after/")]
pub(crate) struct Diff {
    /// What groups are made by: tracks, names of events, values of fields.
    #[arg(long, value_name = "track|name|FIELD[,...]", value_parser = parse_by)]
    pub(crate) by: Option<GroupBy>,

    /// The events that start something, as of `kymo latency`.
    #[arg(long, value_name = "EVENT", value_parser = parse_event, requires = "end_event")]
    pub(crate) start: Option<EventPattern>,

    /// The events that end it.
    #[arg(id = "end_event", long = "end", value_name = "EVENT", value_parser = parse_event, requires = "start")]
    pub(crate) end: Option<EventPattern>,

    /// What a start and its end have in common.
    #[arg(long, value_name = "track|FIELD[,FIELD]...", value_parser = parse_pair_by)]
    pub(crate) pair_by: Option<PairBy>,

    /// The events that enter something, as of `kymo profile`.
    #[arg(long, value_name = "EVENT", value_parser = parse_event, requires = "exit")]
    pub(crate) enter: Option<EventPattern>,

    /// The events that leave it.
    #[arg(long, value_name = "EVENT", value_parser = parse_event, requires = "enter")]
    pub(crate) exit: Option<EventPattern>,

    /// Fields that say which call an exit leaves.
    #[arg(long, value_name = "FIELD[,FIELD]...", value_parser = parse_fields)]
    pub(crate) key: Option<FieldNames>,

    /// Compare the values of a field; can be given several times.
    #[arg(long, value_name = "FIELD", value_parser = parse_one)]
    pub(crate) field: Vec<FieldNames>,

    /// Report changes among which this share is chance at most.
    #[arg(long, value_name = "SHARE", default_value_t = 0.01, value_parser = parse_share)]
    pub(crate) alpha: f64,

    /// Report only changes of the median by this share at least, such as 0.02.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = parse_share)]
    pub(crate) least: f64,

    /// Show all groups, and not only those that changed.
    #[arg(long)]
    pub(crate) all: bool,

    /// Show only the N groups of each kind that matter most.
    #[arg(long, value_name = "N", value_parser = super::group::row_count)]
    pub(crate) top: Option<usize>,

    /// Exit with 1 if a figure crosses a limit, such as 'p99(latency.read) > +10 %'; can be given
    /// several times.
    ///
    /// FIGURE(KIND.GROUP) > LIMIT or < LIMIT. FIGURE is count, rate, total, mean, min, p50, p90, p95, p99 or
    /// max; KIND is events, latency, self or values.FIELD; GROUP may be a pattern. A LIMIT with a
    /// sign is a change, without one it is compared with the second recording; with % it is a
    /// share of the first. Durations have a unit, ns without one.
    #[arg(long, value_name = "CONDITION", value_parser = Limit::parse)]
    pub(crate) fail_if: Vec<Limit>,

    /// Align the events of both in their order, and show which are only in one of them.
    ///
    /// Events are the same if their names and fields are; times do not matter. In each
    /// recording 4,096 events ahead are looked at for where both go on alike.
    #[arg(long, conflicts_with_all = ["fail_if", "field", "start", "enter", "by", "all"])]
    pub(crate) events: bool,

    /// With --events, leave fields of this name out of account; can be given several times.
    #[arg(long, value_name = "FIELD", requires = "events")]
    pub(crate) ignore: Vec<String>,

    /// With --events, show at most N differences; all are counted.
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) limit: u64,

    /// Write a flame graph of the calls of both to an SVG file: red where the second takes more time, blue where it
    /// takes less. Calls are those of --enter and --exit, or the slices that the recordings have.
    #[arg(
        long,
        value_name = "FILE",
        value_hint = clap::ValueHint::FilePath,
        conflicts_with_all = ["events", "start"]
    )]
    pub(crate) flame: Option<PathBuf>,

    /// Overwrite the file of --flame.
    #[arg(long, requires = "flame")]
    pub(crate) force: bool,

    /// Write one JSON object; with --events a line for each difference.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) tracks: Tracks,

    #[command(flatten)]
    pub(crate) input: Input,

    #[command(flatten)]
    pub(crate) selection: Selection,

    #[command(flatten)]
    pub(crate) symbols: SymbolArgs,

    #[command(flatten)]
    pub(crate) work: Work,
}

impl Diff {
    /// The two recordings.
    pub(crate) fn sides(&self) -> Option<[&PathBuf; 2]> {
        match &self.input.paths[..] {
            [a, b] => Some([a, b]),
            _ => None,
        }
    }
}

fn parse_one(name: &str) -> Result<FieldNames, FilterError> {
    FieldNames::parse_one(name)
}

fn parse_share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..1.0).contains(&share) => Ok(share),
        _ => Err("expected a number from 0 to 1".to_string()),
    }
}
