//! Arguments of `kymo graph`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use kymo::analysis::{EventPattern, PairBy};
use kymo::filter::{FieldNames, Glob};
use kymo_graph::ValueOf;

use super::analysis::{Tracks, parse_event, parse_fields, parse_pair_by};
use super::{Input, Selection, Threads, parse_glob};

/// Draw recordings: series of values, rates of events, latencies and states over time
///
/// Databases are drawn from the archive that fits the range: the last day that has a known value,
/// else the last week, month or year. Metrics of collectd that count up are drawn as rates. Events
/// are counted per second, by track or by the values of a field; a summary that `kymo index` keeps
/// is used if there is one. What is not known is a gap, and red marks show where events were lost or
/// damage was skipped.
///
/// --count, --value, --latency and --states choose what is drawn of events; each makes a graph.
///
/// `kymo rrd graph` draws databases with the language of rrdtool.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  kymo graph load.rrd -o day.png
  kymo graph load.rrd --begin '2026-01-01 00:00' -o year.svg
  kymo graph /var/lib/munin/ -o overview.html
  kymo graph trace/ --count 'sched_*' --per cpu_id -o rates.png
  kymo graph trace/ --value sched_switch:next_prio --per cpu_id -o priorities.svg
  kymo graph trace/ --latency --start 'syscall_entry_*' --end-event 'syscall_exit_*' --pair-by vtid -o heat.png
  kymo graph trace/ --states sched_switch --per cpu_id --track next_comm -o cpus.svg
  kymo graph trace/ metrics.pcap load.rrd --format pdf -o - > report.pdf")]
pub(crate) struct Graph {
    #[command(flatten)]
    pub(crate) input: Input,

    #[command(flatten)]
    pub(crate) selection: Selection,

    /// Draw rates of the events whose name matches a pattern; can be given several times.
    #[arg(long, value_name = "GLOB", value_parser = parse_glob, help_heading = "What is drawn")]
    pub(crate) count: Vec<Glob>,

    /// Draw the values of a field of some events; can be given several times, for a graph each.
    ///
    /// EVENT is a pattern as of --event, FIELD a name as in --where.
    #[arg(long, value_name = "EVENT:FIELD", help_heading = "What is drawn")]
    pub(crate) value: Vec<ValueOf>,

    /// Draw a heat map of latencies over time, and their distribution.
    ///
    /// --start, --end-event and --pair-by say what is measured, as with `kymo latency`. Without them,
    /// the slices that the recordings have are measured.
    #[arg(long, help_heading = "What is drawn")]
    pub(crate) latency: bool,

    /// Events that start a latency.
    #[arg(long, value_name = "EVENT", value_parser = parse_event, requires_all = ["latency", "end_event"], help_heading = "What is drawn")]
    pub(crate) start: Option<EventPattern>,

    /// Events that end a latency: what `kymo latency` calls --end.
    #[arg(long, value_name = "EVENT", value_parser = parse_event, requires_all = ["latency", "start"], help_heading = "What is drawn")]
    pub(crate) end_event: Option<EventPattern>,

    /// What a start and its end have in common [default: the track].
    #[arg(long, value_name = "track|FIELD[,FIELD]...", value_parser = parse_pair_by, requires = "latency", help_heading = "What is drawn")]
    pub(crate) pair_by: Option<PairBy>,

    /// Draw a chart of states; EVENT is what `kymo states` calls --state-event.
    ///
    /// With --per there is a bar for each value of its fields, in the colours of the tracks; otherwise one for
    /// each track.
    #[arg(long, value_name = "EVENT", value_parser = parse_event, help_heading = "What is drawn")]
    pub(crate) states: Option<EventPattern>,

    /// Draw only states of tracks whose name matches a pattern.
    #[arg(long, value_name = "GLOB", value_parser = parse_glob, requires = "states", help_heading = "What is drawn")]
    pub(crate) filter: Option<Glob>,

    #[command(flatten)]
    pub(crate) tracks: Tracks,

    /// Count events, draw values and keep states apart by the values of fields [default: by track].
    #[arg(long, value_name = "FIELD[,FIELD]...", value_parser = parse_fields, help_heading = "What is drawn")]
    pub(crate) per: Option<FieldNames>,

    /// Draw all series of the same unit in the same graph, whatever recordings they are of.
    #[arg(long, help_heading = "What is drawn")]
    pub(crate) overlay: bool,

    /// File to write, or `-` for standard output.
    #[arg(short, long, required = true, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) output: PathBuf,

    /// Overwrite a file that is there.
    #[arg(long, help_heading = "Output")]
    pub(crate) force: bool,

    /// Format of the picture [default: that of the file's ending].
    ///
    /// An html page holds any number of graphs, the other formats 400.
    #[arg(long, value_enum, value_name = "FORMAT", help_heading = "Output")]
    pub(crate) format: Option<PictureFormat>,

    /// Width in pixels [default: 800; 400 for each graph of an overview].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(200..=10_000), help_heading = "Output")]
    pub(crate) width: Option<u32>,

    /// Height of each graph in pixels, with a legend of one line.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(100..=4_000), default_value_t = 240, help_heading = "Output")]
    pub(crate) height: u32,

    /// Title above all graphs.
    #[arg(long, value_name = "TEXT", help_heading = "Output")]
    pub(crate) title: Option<String>,

    /// Colours of the picture [default: light; in a page, those of the reader's system].
    #[arg(long, value_enum, value_name = "THEME", help_heading = "Output")]
    pub(crate) theme: Option<Theme>,

    #[command(flatten)]
    pub(crate) threads: Threads,
}

/// The format of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PictureFormat {
    /// Pixels
    Png,
    /// Vectors for browsers
    Svg,
    /// Vectors for printing
    Pdf,
    /// Vectors for PostScript and TeX
    Eps,
    /// An interactive page in one file
    Html,
}

/// Colours of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Theme {
    /// Dark on white
    Light,
    /// Light on black
    Dark,
}
