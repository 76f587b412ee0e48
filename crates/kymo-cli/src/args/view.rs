//! Arguments of `kymo view`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::size::parse_size;
use super::{Input, Selection, SymbolArgs, Threads};

/// Options of the server. What needs `--export` or `--text` conflicts with them, too: clap does not require what
/// conflicts with something that is given.
const SERVER: [&str; 5] = ["port", "host", "no_open", "stay", "assets"];

/// Show recordings in the browser, on one time line
///
/// A server on this machine answers the page. Its address holds a token, without which nothing is
/// answered, and is printed to standard output. The server ends on Ctrl-C, or when the last page has
/// been closed. Recordings that grow are followed.
///
/// Overviews are kept in the cache of summaries, as by `kymo index --summary`.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = "\
Examples:
  kymo view trace/
  kymo view trace/ vpp.cpel load.rrd metrics.pcap
  kymo view --event 'sched_*' --begin 10:15:00 trace/
  kymo view --align vpp.cpel=10:15:00 trace/ vpp.cpel
  kymo view --debug-info trace/    with names of functions
  kymo view --export page.html trace/    one file, which needs no server
  kymo view --text trace/                in the terminal
  kymo view --daemon unix:/run/kymo.sock /var/lib/rrd    what a daemon holds
  kymo view http://HOST:9090/web-1    databases of a `kymo serve` on another machine

On another machine, over ssh:
  ssh -L 8000:localhost:8000 HOST kymo view --no-open --port 8000 trace/
  and open the address that it prints in the browser here.")]
pub(crate) struct View {
    #[command(flatten)]
    pub(crate) input: Input,

    #[command(flatten)]
    pub(crate) selection: Selection,

    #[command(flatten)]
    pub(crate) symbols: SymbolArgs,

    /// Write the page and what it shows to FILE, instead of starting a server.
    ///
    /// The file opens in any browser, without a network. It holds the overview of the range that
    /// `--begin` and `--end` choose, and its events as far as they fit.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "text", help_heading = "Output")]
    pub(crate) export: Option<PathBuf>,

    /// Overwrite the file of `--export`.
    #[arg(long, requires = "export", conflicts_with_all = SERVER, help_heading = "Output")]
    pub(crate) force: bool,

    /// About how large the file of `--export` may become, with an optional unit (K, M, G).
    #[arg(long, value_name = "SIZE", value_parser = parse_size::<usize>, default_value = "16M", requires = "export", conflicts_with_all = SERVER, help_heading = "Output")]
    pub(crate) export_size: usize,

    /// Draw the time line in the terminal, a row per track, instead of starting a server.
    #[arg(long, help_heading = "Output")]
    pub(crate) text: bool,

    /// Width of the drawing of `--text` in columns [default: that of the terminal, or 100].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(40..), requires = "text", conflicts_with_all = SERVER, help_heading = "Output")]
    pub(crate) width: Option<u16>,

    /// Open the view that the action "Copy as command" of the page has copied.
    #[arg(long, value_name = "STATE", value_parser = state, conflicts_with_all = ["text", "export"], help_heading = "View")]
    pub(crate) at: Option<String>,

    /// File of the snapshots and notes [default: one for these recordings in the cache].
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "text", help_heading = "View")]
    pub(crate) notes: Option<PathBuf>,

    /// Directory below which the page may add recordings.
    ///
    /// Without it, the page shows only what the command names. Links that lead out of the directory are not followed.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with_all = ["text", "export"], help_heading = "Server")]
    pub(crate) add: Vec<PathBuf>,

    /// Address of a daemon that holds updates of the databases: unix:PATH, HOST or HOST:PORT.
    ///
    /// `kymo serve` and rrdcached write updates minutes after they come. With this option, the daemon
    /// is asked every second to write those of the databases that are shown, at most 1000.
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["text", "export"], help_heading = "Server")]
    pub(crate) daemon: Option<String>,

    /// File with the token that `kymo serve` asks for, if http://HOST:PORT is shown.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Server")]
    pub(crate) token_file: Option<PathBuf>,

    /// File with certificates (PEM) to trust, if https://HOST:PORT is shown [default: those of the system].
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Server")]
    pub(crate) ca: Option<PathBuf>,

    /// Port to listen on [default: any that is free].
    #[arg(long, value_name = "PORT", conflicts_with_all = ["text", "export"], help_heading = "Server")]
    pub(crate) port: Option<u16>,

    /// Address or name of this machine to listen on, instead of the loopback addresses.
    ///
    /// Anybody who can reach this machine and knows the token can then read the recordings: the
    /// connection is not encrypted. Requests must name exactly this host; give the option again for
    /// other names of it.
    #[arg(long, value_name = "HOST", conflicts_with_all = ["text", "export"], help_heading = "Server")]
    pub(crate) host: Vec<String>,

    /// Do not open the browser.
    #[arg(long, conflicts_with_all = ["text", "export"], help_heading = "Server")]
    pub(crate) no_open: bool,

    /// Keep running when the last page has been closed.
    #[arg(long, conflicts_with_all = ["text", "export"], help_heading = "Server")]
    pub(crate) stay: bool,

    /// Serve the files of the page from DIR, to develop them.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with_all = ["text", "export"], help_heading = "Server")]
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

/// A view, as the page writes it: base64url, without padding.
fn state(text: &str) -> Result<String, String> {
    const MOST: usize = 64 << 10;
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    match text.len() <= MOST && !text.is_empty() && text.bytes().all(is_digit) {
        true => Ok(text.to_string()),
        false => Err("expected a view that the page has copied".to_string()),
    }
}
