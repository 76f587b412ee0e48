//! Options of analyses for groups, series and single durations.

use std::path::PathBuf;

use clap::Args;
use kymo::analysis::GroupBy;
use kymo::filter::FilterError;
use kymo_rrd::file::convert::Target;
use kymo_time::{Duration, DurationError};

/// Groups, and series of them.
#[derive(Debug, Args)]
#[command(next_help_heading = "Groups")]
pub(crate) struct SeriesArgs {
    /// Show a row for each group: each track, name of an event, or value of fields.
    ///
    /// Of a latency, a state or a call, the event that begins it has the values. If --start (--enter,
    /// --state-event) is a pattern with one `*`, a name is what the `*` stands for.
    #[arg(long, value_name = "track|name|FIELD[,...]", value_parser = parse_by)]
    pub(crate) by: Option<GroupBy>,

    /// Write the figures of each group for each interval of this length, such as 1s or 10ms: CSV, or
    /// JSON lines with --json.
    ///
    /// Of sessions of LTTng live, and with --follow, an interval is written as soon as it is complete.
    #[arg(long, value_name = "DURATION", value_parser = parse_step, allow_hyphen_values = true)]
    pub(crate) every: Option<u64>,

    /// Go on as the recordings grow, until interrupted. Needs --every, or --all of latency, states and
    /// profile.
    ///
    /// What was added is looked for five times a second. Events are taken in the order of time, so that a stream waits
    /// for those that are behind it, but 5 seconds at most for one to which nothing is added.
    #[arg(long)]
    pub(crate) follow: bool,

    /// Write to a file instead of standard output; for --every the ending may be .csv, .jsonl,
    /// .rrd (a data source for each figure) or .pftrace (counters for Perfetto).
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,

    /// Overwrite a file that exists.
    #[arg(long)]
    pub(crate) force: bool,

    /// Form of the round-robin database: a machine, or `portable` [default: this machine].
    #[arg(long, value_name = "MACHINE", value_parser = super::rrd::target)]
    pub(crate) format: Option<Target>,
}

/// Groups, series of them, and single durations.
#[derive(Debug, Args)]
#[command(next_help_heading = "Groups")]
pub(crate) struct Grouping {
    #[command(flatten)]
    pub(crate) series: SeriesArgs,

    /// Show only the first N rows of the table: groups, tracks or keys with the longest time; of `kymo latency` without
    /// --by, the longest latencies.
    #[arg(long, value_name = "N", value_parser = row_count, conflicts_with_all = ["every", "all"])]
    pub(crate) top: Option<usize>,

    /// Write every single duration with the values of --by and all fields of the events that begin and end it: CSV,
    /// or JSON lines with --json.
    ///
    /// The fields of the event that ends it are called `end.FIELD` in CSV. Fields within structures are left out, of
    /// arrays there is the length.
    #[arg(long, conflicts_with = "every")]
    pub(crate) all: bool,
}

pub(crate) fn parse_by(list: &str) -> Result<GroupBy, FilterError> {
    GroupBy::parse(list)
}

fn parse_step(text: &str) -> Result<u64, DurationError> {
    Duration::parse_positive(text).map(|duration| duration.as_nanos() as u64)
}

/// How many rows of a table are shown.
pub(super) fn row_count(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|&count| count > 0);
    count.ok_or_else(|| "expected a whole number from 1".to_owned())
}
