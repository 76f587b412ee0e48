//! What can be written behind `kymo repair` and `kymo index`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::{Input, Threads};

/// Write what can be saved of damaged CTF traces
///
/// Whole events before the damage of a packet are kept; what is lost behind it is counted as one
/// discarded event, since their number is unknown. Times and counters of a packet that
/// contradict its events or the packets around it are mended, and events out of the time of their
/// packet are left out. Packets have the sizes that they really
/// have, and are plain: what was compressed or encrypted is so no longer. What cannot be saved is reported, and makes the exit status 1.
///
/// Several traces become a directory each below the output.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  kymo repair crashed/ -o saved/
  kymo check saved/ && kymo stats saved/")]
pub(crate) struct Repair {
    #[command(flatten)]
    pub(crate) input: Input,

    /// The directory to write, which is there as a whole or not at all.
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) output: PathBuf,

    /// Overwrite a trace.
    #[arg(short, long)]
    pub(crate) force: bool,

    #[command(flatten)]
    pub(crate) threads: Threads,
}

/// Write index files for CTF traces, as LTTng does, or summaries to the cache
///
/// Beside each data stream file NAME of a trace, `index/NAME.idx` is written, of version 1.1. With
/// it, traces open without a look at each packet.
///
/// With --summary, what happened on each track of any recording is counted at all resolutions instead, and kept in
/// the cache. What is there already is kept if the files are the same, and extended if they have grown. A line for each
/// recording is printed. The cache holds 10 GB at most; the summaries that were not used for the longest time are removed first.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  kymo index trace/
  kymo index --force trace/ other/
  kymo index --summary trace/ load.rrd")]
pub(crate) struct Index {
    #[command(flatten)]
    pub(crate) input: Input,

    /// Overwrite indexes that are there.
    #[arg(short, long)]
    pub(crate) force: bool,

    /// Write summaries to the cache: `kymo/index` in XDG_CACHE_HOME or ~/.cache.
    #[arg(long, conflicts_with = "force")]
    pub(crate) summary: bool,

    /// The directory of the cache of summaries; implies --summary.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with_all = ["force", "no_cache"])]
    pub(crate) cache: Option<PathBuf>,

    /// Make the summaries, but do not read or write the cache; implies --summary.
    #[arg(long, conflicts_with = "force")]
    pub(crate) no_cache: bool,
}
