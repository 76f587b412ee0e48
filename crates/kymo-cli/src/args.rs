//! What can be written on the command line.

pub(crate) mod analysis;
pub(crate) mod convert;
pub(crate) mod ctf;
pub(crate) mod cut;
pub(crate) mod diff;
#[cfg(feature = "draw")]
pub(crate) mod graph;
pub(crate) mod group;
pub(crate) mod machine;
pub(crate) mod print;
pub(crate) mod query;
pub(crate) mod receive;
pub(crate) mod rrd;
pub(crate) mod send;
#[cfg(all(unix, feature = "serve"))]
pub(crate) mod serve;
mod size;
pub(crate) mod time;
pub(crate) mod values;
#[cfg(feature = "draw")]
pub(crate) mod view;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};

pub(crate) use kymo_command::args::{Input, Selection, Threads, Work, parse_glob};
pub(crate) use kymo_command::key;
pub(crate) use kymo_command::symbols::SymbolArgs;

/// Names a feature with whether this program was built with it, as a literal.
macro_rules! feature {
    ($macro:ident, $name:literal) => {
        #[cfg(feature = $name)]
        macro_rules! $macro {
            () => {
                concat!(" +", $name)
            };
        }
        #[cfg(not(feature = $name))]
        macro_rules! $macro {
            () => {
                concat!(" -", $name)
            };
        }
    };
}
feature!(arrow, "arrow");
feature!(draw, "draw");
feature!(serve, "serve");
feature!(tls, "tls");

/// What `--version` prints.
const VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "\nfeatures:",
    arrow!(),
    draw!(),
    serve!(),
    tls!()
);

/// Reads, filters, merges and shows performance records.
#[derive(Debug, Parser)]
#[command(
    name = "kymo",
    version,
    long_version = VERSION,
    about = "Reads, filters, merges and shows performance records",
    long_about = "Reads, filters, merges and shows performance records: traces in the Common \
Trace Format (CTF) 1.8 and 2 and its draft of 2010 (RFC v1.1), as LTTng, barectf, Zephyr, babeltrace2 and \
others write them, the event logs of VPP (CPEL, elog, Gist), datagrams of collectd, and the round-robin \
databases of RRDtool, RRD4J and kymo itself.\n\n\
Data goes to standard output; warnings, errors and progress go to standard error.",
    after_long_help = "\
Arguments from a file:
  --from-file FILE stands for the lines of FILE: an argument each, or an option and its value;
                   # begins a comment

Environment:
  KYMO_CONFIG      file of configuration [default: kymo/config.toml in XDG_CONFIG_HOME or ~/.config,
                   then /etc/kymo/config.toml]; if empty, none is read
  NO_COLOR         if set, no colours are used
  COLUMNS          width of tables [default: that of the terminal]

Exit status:
  0  all is good
  1  damage was found, or one of several recordings could not be opened, and everything
     else was read; or the output could not be written
  2  the command line is wrong
  3  nothing could be read

Examples:
  kymo print trace/                      every event, a line each
  kymo print --event 'sched_*' --begin 10:15:00 --end 10:15:01 trace/
  kymo print --format json trace/ | jq .payload
  kymo view trace/ load.rrd              in the browser, on one time line
  kymo graph load.rrd trace/ -o day.png  series and rates of events over time
  kymo convert trace/ -o trace.pftrace   for ui.perfetto.dev
  kymo convert trace/ -o new/ --to ctf2  another dialect of CTF
  kymo info trace/                       what it is and what it holds
  kymo stats trace/                      which events there are how often
  kymo query 'SELECT event, count(*) FROM events GROUP BY event' trace/
                                         SQL
  kymo check trace/                      is it whole?
  kymo latency --start irq_entry --end irq_exit --track cpu_id trace/
                                         how long it takes from one to the other
  kymo send values.txt unix:/run/collectd-unixsock
                                         values to a server of collectd
  kymo receive ctf+udp://0.0.0.0:5555 -o trace/
                                         a trace that `kymo send` sends
  kymo machine list                      how machines write numbers
  kymo time 1927637038649001053          a time of collectd as seconds and as a date
  kymo rrd convert DIR --in-place --to arm64
                                         databases of RRDtool on another machine
  kymo serve --data DIR --rrdcached unix:/run/kymo.sock
                                         keep databases for clients of rrdcached",
    arg_required_else_help = true,
    subcommand_required = true,
    // So that an alias with options can be given other ones.
    args_override_self = true,
    disable_help_subcommand = false,
    max_term_width = 100
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// Show errors only: no warnings, hints, progress, or messages of success.
    #[arg(long, global = true)]
    pub(crate) quiet: bool,
}

/// All that can be written. The options of a command are built when it is chosen: to build those of all commands takes
/// a good part of a short run.
pub(crate) fn command() -> clap::Command {
    Cli::command()
        .mut_subcommand("rrd", |rrd| {
            rrd.defer(|rrd| {
                let rrd = rrd::Rrd::augment_args(rrd);
                #[cfg(feature = "draw")]
                let rrd = rrd.subcommands(rrd::rrdtool_commands().chain([rrd::cgi_command()]));
                rrd
            })
        })
        .mut_subcommand("latency", |latency| {
            latency.defer(|latency| {
                analysis::with_end_events(analysis::Latency::augment_args(latency))
            })
        })
        .mut_subcommand("diff", |diff| {
            diff.defer(|diff| analysis::with_end_events(diff::Diff::augment_args(diff)))
        })
}

/// The parser of a command line. If its first word is not a command, it may ask for help, which lists all commands.
pub(crate) fn command_for(words: &[OsString]) -> clap::Command {
    let mut command = command();
    let is_known = words
        .get(1)
        .is_some_and(|word| command.find_subcommand(word).is_some());
    if !is_known {
        command.build();
    }
    command
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Command {
    Print(print::Print),
    #[cfg(feature = "draw")]
    View(Box<view::View>),
    #[cfg(feature = "draw")]
    Graph(Box<graph::Graph>),
    Convert(Box<convert::Convert>),
    Cut(Box<cut::Cut>),
    Repair(Box<ctf::Repair>),
    Index(Box<ctf::Index>),
    Send(Box<send::Send>),
    Receive(receive::Receive),
    Info(Info),
    Stats(Stats),
    Query(query::Query),
    Check(Check),
    States(analysis::States),
    Latency(analysis::Latency),
    Profile(analysis::Profile),
    Values(values::Values),
    Diff(Box<diff::Diff>),
    Machine(machine::Machine),
    Time(time::Time),
    Rrd(rrd::Rrd),
    #[cfg(all(unix, feature = "serve"))]
    Serve(Box<serve::Serve>),
    Completions(Completions),
    Man(Man),
}

/// Show what recordings are and what they hold
///
/// What is known without decoding events: format and version, identity, byte order, producer,
/// environment, attributes, clocks with their origins, stream classes (of RFC v1.1: sections),
/// streams, event classes with their log levels, time range, packets, discarded events, and the
/// damage that shows already. Of a round-robin database: the machine that wrote it, step, last
/// update, data sources, archives with the time they span. If `kymo index --summary` has counted the
/// events of a trace, their number is shown, too.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  kymo info trace/
  kymo info --schema trace/              with the fields of all event classes
  kymo info --json trace/ | jq '.recordings[].discarded_events'")]
pub(crate) struct Info {
    #[command(flatten)]
    pub(crate) input: Input,

    /// List the fields, attributes and identity of each event class.
    #[arg(long)]
    pub(crate) schema: bool,

    /// Show each of many databases [default: a summary of more than 20].
    ///
    /// The summary counts databases by machine, step and last update. JSON has each in any case.
    #[arg(long)]
    pub(crate) each: bool,

    /// Write one JSON object; times are in nanoseconds, what is not known is null.
    #[arg(long)]
    pub(crate) json: bool,

    /// Print the metadata of traces as text, without the packets that it may be stored in.
    #[arg(long, conflicts_with_all = ["json", "schema"])]
    pub(crate) metadata: bool,

    /// Directory with the summaries of `kymo index --summary` [default: `kymo/index` in XDG_CACHE_HOME or ~/.cache].
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath, conflicts_with = "no_cache")]
    pub(crate) cache: Option<PathBuf>,

    /// Do not show numbers of events from a summary.
    #[arg(long)]
    pub(crate) no_cache: bool,
}

/// Count events: of each class, of each stream
///
/// With the times of the first and the last event, how many there are a second, and the bytes
/// they take. The rates of classes are for the
/// duration of all events that are counted, those of streams for the duration of the stream's.
/// If `kymo index --summary` has counted the events of a trace, they are not decoded again.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  kymo stats trace/
  kymo stats --top 5 --begin 10:15 --end 10:16 trace/
  kymo stats --by-track --track cpu_id trace/
  kymo stats --by name,cpu_id --every 1s trace/ > counts.csv
  kymo stats --by ip --debug-info trace/
  kymo stats --json --where 'ret < 0' trace/ | jq .events")]
pub(crate) struct Stats {
    #[command(flatten)]
    pub(crate) input: Input,

    /// Show only the N event classes (with --by-track, tracks; with --by, groups) with the most events.
    #[arg(long, value_name = "N", value_parser = group::row_count, conflicts_with = "every")]
    pub(crate) top: Option<usize>,

    /// Show each stream of many recordings [default: only sums if there are more than 20].
    #[arg(long, conflicts_with_all = ["by_track", "track", "switch", "by", "every"])]
    pub(crate) each: bool,

    /// Count the events of each track, and on it of each class, instead of those of streams;
    /// --track does it too.
    #[arg(long, conflicts_with_all = ["by", "every"])]
    pub(crate) by_track: bool,

    #[command(flatten)]
    pub(crate) tracks: analysis::Tracks,

    /// Write one JSON object; times are in nanoseconds, what is not known is null.
    #[arg(long)]
    pub(crate) json: bool,

    /// A file with views, as of `kymo latency`.
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) views: Option<PathBuf>,

    /// Directory with the summaries of `kymo index --summary` [default: `kymo/index` in XDG_CACHE_HOME or ~/.cache].
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath, conflicts_with = "no_cache")]
    pub(crate) cache: Option<PathBuf>,

    /// Count all events again, even if a summary has their number.
    #[arg(long)]
    pub(crate) no_cache: bool,

    // Behind it, options would be under its heading.
    #[command(flatten)]
    pub(crate) selection: Selection,

    #[command(flatten)]
    pub(crate) symbols: SymbolArgs,

    #[command(flatten)]
    pub(crate) work: Work,

    #[command(flatten)]
    pub(crate) series: group::SeriesArgs,
}

/// Decode everything, and report all damage
///
/// Every field of every event is decoded. The report counts events, fields (numbers, truth values,
/// texts, BLOBs, wherever they are: each element of an array counts), packets, and the events and
/// packets that the recorder discarded. It lists each fault with its file, offset, packet, event
/// and field. The last line says what was found: `OK`, `lost:` what the recorder discarded,
/// `damaged:` how many faults there are. Damage makes the exit status 1; a loss does so with
/// `--strict`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  kymo check trace/
  kymo check --json trace/ | jq '.faults[].code'
  kymo check --strict --threads 1 trace/ && echo whole")]
pub(crate) struct Check {
    #[command(flatten)]
    pub(crate) input: Input,

    /// Write one JSON object: {"schema":1,"result":"ok"|"lost"|"damaged","events":N,"fields":N,"packets":N,"discarded_events":N,"discarded_packets":N,"faults":[{"file":..,"offset":..,"packet":..,"event":..,"field":..,"code":..,"message":..}]}
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) work: Work,
}

/// Write the completions of a shell to standard output
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  kymo completions bash > ~/.local/share/bash-completion/completions/kymo
  kymo completions zsh > ~/.zfunc/_kymo
  kymo completions fish > ~/.config/fish/completions/kymo.fish")]
pub(crate) struct Completions {
    /// The shell.
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

/// Write the manual pages
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  kymo man | man -l -                    read the first one
  kymo man ~/.local/share/man/man1       write them all")]
pub(crate) struct Man {
    /// Where to write all pages; without it, the page of kymo itself goes to standard output.
    #[arg(value_hint = clap::ValueHint::DirPath)]
    pub(crate) dir: Option<PathBuf>,
}

/// How JSON and CSV hold times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Times {
    /// Nanoseconds, as a number
    #[default]
    Number,
    /// Nanoseconds, as a string in JSON
    Text,
    /// As in RFC 3339 with nine digits of the second, in local time or in UTC with --clock-gmt
    Iso,
}

impl From<Times> for kymo::show::Times {
    fn from(times: Times) -> Self {
        match times {
            Times::Number => Self::Number,
            Times::Text => Self::Text,
            Times::Iso => Self::Iso,
        }
    }
}
