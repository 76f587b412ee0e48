//! Arguments of `kymo graph`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use super::{Input, Selection, Threads};

/// Draw recordings: series of values, and rates of events over time
///
/// Databases are drawn from the archive that fits the range: the last day that has a known value,
/// else the last week, month or year. Metrics of collectd that count up are drawn as rates. Events
/// are counted per second, by track or by the values of a field. What is not known is a gap, and
/// red marks show where events were lost or damage was skipped.
///
/// `kymo rrd graph` draws databases with the language of rrdtool.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  kymo graph load.rrd -o day.png
  kymo graph load.rrd --begin '2026-01-01 00:00' -o year.svg
  kymo graph /var/lib/munin/ -o overview.html
  kymo graph --event 'sched_*' --per cpu_id trace/ -o rates.png
  kymo graph trace/ metrics.pcap load.rrd --format pdf -o - > report.pdf")]
pub(crate) struct Graph {
    #[command(flatten)]
    pub(crate) input: Input,

    #[command(flatten)]
    pub(crate) selection: Selection,

    /// Count events apart by the value of this field [default: by track].
    #[arg(long, value_name = "FIELD", help_heading = "Output")]
    pub(crate) per: Option<String>,

    /// File to write, or `-` for standard output.
    #[arg(short, long, required = true, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) output: PathBuf,

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

    /// Colours of the picture.
    #[arg(long, value_enum, value_name = "THEME", default_value_t = Theme::Light, help_heading = "Output")]
    pub(crate) theme: Theme,

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
    /// A page of SVG pictures
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
