//! Arguments of `kymo view`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::{Input, Selection, Threads};

/// Show recordings in the browser, on one time line
///
/// A server on this machine answers the page. Its address holds a token, without which nothing is
/// answered, and is printed to standard output. The server ends on Ctrl-C, or when the last page has
/// been closed.
///
/// Overviews are kept in the cache of summaries, as by `kymo index --summary`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  kymo view trace/
  kymo view trace/ vpp.cpel load.rrd metrics.pcap
  kymo view --event 'sched_*' --begin 10:15:00 trace/
  kymo view --align vpp.cpel=10:15:00 trace/ vpp.cpel

On another machine, over ssh:
  ssh -L 8000:localhost:8000 HOST kymo view --no-open --port 8000 trace/
  and open the address that it prints in the browser here.")]
pub(crate) struct View {
    #[command(flatten)]
    pub(crate) input: Input,

    #[command(flatten)]
    pub(crate) selection: Selection,

    /// Port to listen on [default: any that is free].
    #[arg(long, value_name = "PORT", help_heading = "Server")]
    pub(crate) port: Option<u16>,

    /// Address or name of this machine to listen on, instead of the loopback addresses.
    ///
    /// Anybody who can reach this machine and knows the token can then read the recordings: the
    /// connection is not encrypted. Requests must name exactly this host; give the option again for
    /// other names of it.
    #[arg(long, value_name = "HOST", help_heading = "Server")]
    pub(crate) host: Vec<String>,

    /// Do not open the browser.
    #[arg(long, help_heading = "Server")]
    pub(crate) no_open: bool,

    /// Keep running when the last page has been closed.
    #[arg(long, help_heading = "Server")]
    pub(crate) stay: bool,

    /// Serve the files of the page from DIR, to develop them.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Server")]
    pub(crate) assets: Option<PathBuf>,

    /// Directory of the cache of summaries [default: `kymo/index` in XDG_CACHE_HOME or ~/.cache].
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "no_cache", help_heading = "Work")]
    pub(crate) cache: Option<PathBuf>,

    /// Do not read or write the cache of summaries.
    #[arg(long, help_heading = "Work")]
    pub(crate) no_cache: bool,

    #[command(flatten)]
    pub(crate) threads: Threads,
}
