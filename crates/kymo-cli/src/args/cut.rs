//! What can be written after `kymo cut`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::{Input, Selection, Work};

/// Write a part of a recording in its own format, without loss
///
/// The part is what --begin, --end, --event and --where select; tracks are chosen by their fields, such
/// as --where 'track_name ~ "worker*"' or --where 'cpu_id == 1'. What is kept is as it was: times, packets
/// of traces that are whole, unknown sections and strings of CPEL files. Recordings of all formats can be cut.
/// In a database, rows that are not selected become unknown; of a capture, datagrams stay that have something
/// selected; of a trace of Perfetto or Chrome, packets and events as they are. `kymo convert` makes other files.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  kymo cut trace/ -o part/ --begin 10:15 --end 10:16
  kymo cut vpp.cpel -o workers.cpel --where 'track_name ~ \"worker*\"'
  kymo cut load.rrd -o morning.rrd --begin 06:00 --end 12:00
  kymo cut collectd.pcap -o web.pcap --where 'id ~ \"web*\"'
  kymo cut boot.pftrace -o second.pftrace --begin +1s --end +2s
  kymo cut trace/ -o start/ --end +100ms")]
pub(crate) struct Cut {
    #[command(flatten)]
    pub(crate) input: Input,

    /// Where to write: a directory for a trace, a file for others.
    #[arg(short, long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) output: PathBuf,

    /// Overwrite the output.
    #[arg(short, long)]
    pub(crate) force: bool,

    #[command(flatten)]
    pub(crate) selection: Selection,

    #[command(flatten)]
    pub(crate) work: Work,
}
