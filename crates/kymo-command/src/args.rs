//! Options that programs have in common.

use std::path::PathBuf;

use clap::Args;
use kymo::analysis::MessageQuery;
use kymo::filter::{Glob, Moment, parse_range};
use kymo::open::{ClockChoice, parse_aligned};
use kymo_collectd::network::Keys;
use kymo_machine::Machine;
use kymo_time::Duration;

use crate::key::KeyFile;
use crate::points::PointFile;

/// Which recordings, and what is wrong with their clocks.
#[derive(Clone, Debug, Args)]
pub struct Input {
    /// Recordings: a trace's directory, a file of a trace, a round-robin database, an event log
    /// (CPEL, elog, Gist, or the JSON lines of one), or a directory to search for any of these except
    /// JSON lines; a trace of Perfetto or Chrome (JSON); or datagrams of collectd: a capture of the
    /// network (pcap, pcapng), or a file that is one datagram.
    ///
    /// `net://HOST[:PORT]/host/TARGET/SESSION` is a session of LTTng live, read from the relay daemon of HOST until it
    /// ends; `kymo info net://HOST` lists the sessions.
    ///
    /// A tar archive stands for the directory it was made of, a file compressed with gzip or Zstandard
    /// for its content, and `-` for standard input.
    ///
    /// A directory that holds a file named `metadata`, in RFC v1.1 `metadata_0` and so on, is a CTF
    /// trace. Any other directory is searched recursively for traces, for databases whose names end in `.rrd`, and for
    /// event logs whose names end in `.cpel`, `.elog` or `.gist`. Several recordings are shown on
    /// one time line.
    #[arg(required = true, value_name = "PATH", value_hint = clap::ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,

    /// The machine that wrote the databases, where it is not found or found wrong.
    #[arg(long, value_name = "MACHINE", value_parser = find_machine)]
    pub machine: Option<&'static Machine>,

    /// What the clock of CPEL and Gist files is: auto, per-second, per-us, or the ticks in a second.
    ///
    /// CPEL files hold a number: the ticks in a second, as all programs write it, or in a
    /// microsecond, as its description says. `auto` takes numbers from 100,000 on for the first, and
    /// others for the second. Gist files hold none: their ticks are taken for nanoseconds.
    #[arg(
        long,
        value_name = "CLOCK",
        default_value = "auto",
        hide_default_value = true,
        help_heading = "Clocks"
    )]
    pub clock: ClockChoice,

    /// A C header that names the events of Gist logs, as g2 reads it: `#define NAME 123 /* name: %d */`, or a list of
    /// headers, `#define BASE 100 /* pointdefs: points.h */`; can be given several times.
    #[arg(long, value_name = "FILE", value_parser = PointFile::parse, value_hint = clap::ValueHint::FilePath)]
    pub pointdefs: Vec<PointFile>,

    /// Say when the recordings of a PATH begin, such as those without an origin of their times.
    ///
    /// TIME is written as for --begin; HH:MM alone is of the day on which the others begin. PATH is
    /// one of those that are shown. Can be given several times.
    #[arg(
        long,
        value_name = "PATH=TIME",
        value_parser = parse_aligned::<Moment>,
        help_heading = "Clocks"
    )]
    pub align: Vec<(PathBuf, Moment)>,

    /// Add a duration to the times of the recordings of a PATH: `host2/=-1.5ms`; units are ns, us,
    /// ms, s, m, h, d. It is added after --align and --align-event. Can be given several times.
    #[arg(
        long,
        value_name = "PATH=DURATION",
        value_parser = parse_aligned::<Duration>,
        help_heading = "Clocks"
    )]
    pub offset: Vec<(PathBuf, Duration)>,

    /// Take the first event of this name for the same time in the recordings of all paths, of
    /// which two at least must have it: that of the first path stays, or of the first path with a
    /// date if the first one has none; the others are moved.
    #[arg(long, value_name = "NAME", help_heading = "Clocks")]
    pub align_event: Option<String>,

    /// Bring the clocks of all paths to that of the first one by messages between them, drift included:
    /// `net:send:net:recv:src,seq`, the events that send and receive, and the fields that messages are known by.
    ///
    /// Messages must go both ways. How far the result may be wrong is printed. `FIELD=FIELD_OF_RECV` where the
    /// receiving event calls a field otherwise.
    #[arg(
        long,
        value_name = "SEND:RECV:KEY",
        conflicts_with_all = ["align", "align_event", "alignment"],
        help_heading = "Clocks"
    )]
    pub align_by_messages: Option<MessageQuery>,

    /// Write what --align-by-messages found to a file, which --alignment takes.
    #[arg(
        long,
        value_name = "FILE",
        requires = "align_by_messages",
        value_hint = clap::ValueHint::FilePath,
        help_heading = "Clocks"
    )]
    pub save_alignment: Option<PathBuf>,

    /// Correct the clocks of the paths that are in an alignment file.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["align", "align_event"],
        value_hint = clap::ValueHint::FilePath,
        help_heading = "Clocks"
    )]
    pub alignment: Option<PathBuf>,

    /// A file with the passwords of signed and encrypted datagrams: lines `USER: PASSWORD`.
    ///
    /// It is written as the AuthFile of collectd's network plugin. Without it signatures are not
    /// verified, and what is encrypted is not shown.
    #[arg(long, value_name = "FILE", value_parser = parse_keys, value_hint = clap::ValueHint::FilePath)]
    pub auth_file: Option<Keys>,

    /// A file with the key of encrypted packets of a trace (RFC v1.1): 16, 24 or 32 bytes, or twice
    /// as many hexadecimal digits in a line.
    ///
    /// Can be given several times: each packet is opened with the first key that fits. 32 digits without
    /// the end of the line are 32 bytes, and so the key themselves.
    #[arg(long, value_name = "FILE", value_parser = KeyFile::parse, value_hint = clap::ValueHint::FilePath)]
    pub key_file: Vec<KeyFile>,

    /// Add SEC seconds to the times of all clocks.
    #[arg(
        long,
        value_name = "SEC",
        default_value_t = 0,
        hide_default_value = true,
        allow_hyphen_values = true,
        help_heading = "Clocks"
    )]
    pub clock_offset: i64,

    /// Add NS nanoseconds to the times of all clocks.
    #[arg(
        long,
        value_name = "NS",
        default_value_t = 0,
        hide_default_value = true,
        allow_hyphen_values = true,
        help_heading = "Clocks"
    )]
    pub clock_offset_ns: i64,

    /// Take the origin of every clock for the Unix epoch, 1970-01-01 00:00:00 UTC.
    #[arg(long, help_heading = "Clocks")]
    pub clock_force_correlate: bool,

    /// Show and read times in UTC instead of the local time zone.
    #[arg(long, help_heading = "Clocks")]
    pub clock_gmt: bool,

    /// How sessions of LTTng live are read.
    #[command(flatten)]
    pub live: LiveArgs,
}

/// How sessions of LTTng live are read.
#[derive(Clone, Debug, Args)]
pub struct LiveArgs {
    /// Where a session is read from.
    #[arg(
        long,
        value_enum,
        value_name = "WHERE",
        default_value_t = LiveFrom::Beginning,
        help_heading = "LTTng live"
    )]
    pub live_from: LiveFrom,

    /// Detach from sessions after this time [default: when they end]; units are ns, us, ms, s, m, h, d.
    #[arg(long, value_name = "DURATION", value_parser = Duration::parse_positive, help_heading = "LTTng live")]
    pub live_for: Option<std::time::Duration>,

    /// Wait for a session that does not exist yet.
    #[arg(long, help_heading = "LTTng live")]
    pub live_wait: bool,
}

/// Where a session of LTTng live is read from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LiveFrom {
    /// The oldest packets that the relay daemon still has.
    #[default]
    Beginning,
    /// The next packets.
    Now,
}

/// Which events.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Filters")]
pub struct Selection {
    /// Only events whose name matches a pattern; can be given several times.
    ///
    /// `*` stands for any text, `?` for one character, `[a-z]` for one of a set, `[!a-z]` for
    /// one that is not, `\` takes away the meaning of what follows. The whole name must match.
    /// Of several patterns one must.
    #[arg(long, value_name = "GLOB", value_parser = parse_glob)]
    pub event: Vec<Glob>,

    /// Only events of which a condition holds, such as 'len > 64 and name ~ "eth*"'.
    ///
    /// Tests: FIELD alone (true, or not 0), == != < <= > >=, ~ "PATTERN" and !~ (patterns as of
    /// --event), =~ "REGULAR EXPRESSION", contains "TEXT", in [1, 4..7, "x"] and not in. They are joined by not, and, or
    /// (! && ||) and parentheses. Values: 12 -3 0xff 0o17 0b101 2.5 "text" 'text' true false.
    /// Enumerations compare as numbers and as labels, bit maps as numbers; contains "FLAG" asks
    /// whether a flag is set. BLOBs compare as their bytes, "\x00\xff". What an optional or a
    /// variant holds goes by its name. len(FIELD), lower(FIELD) and hex(FIELD) stand for the length of a
    /// text, BLOB or array, a text in lower case, and a number or bytes in hexadecimal digits.
    ///
    /// `a.b[2]` is element 2 (from 0) of member b of field a. A name is looked for in the
    /// payload, the specific context, the common context, the packet context and the packet
    /// header, unless it begins with `payload.`, `specific_context.`, `common_context.`,
    /// `packet_context.` or `packet_header.`.
    /// event.name, event.id, event.kind, event.level, event.time (nanoseconds), stream.class,
    /// stream.id, stream.name, trace.name and recording.path are of the event itself, and so are the
    /// keys of the JSON (timestamp, event, ...) if it has no such field. An unusual name is enclosed in
    /// back quotes. `kymo info --schema` lists the fields.
    ///
    /// A test of a field that an event does not have is false, whatever it asks. A field that
    /// no event has is an error; a value that the field cannot have brings a warning.
    #[arg(long = "where", value_name = "EXPR")]
    pub condition: Option<String>,

    /// Only events from this time on.
    ///
    /// [YYYY-MM-DD ]HH:MM[:SS[.NANO]] in local time (in UTC with --clock-gmt), on the day of
    /// the first event that has a date where none is given; [-]SEC[.NANO] since the origin of the clocks;
    /// +DURATION since the first event, such as +2ms;
    /// or as in RFC 3339, 2026-01-31T12:00:00Z.
    #[arg(short, long, value_name = "TIME", allow_hyphen_values = true)]
    pub begin: Option<Moment>,

    /// Only events until this time, which is included; written like that of --begin.
    #[arg(short, long, value_name = "TIME", allow_hyphen_values = true)]
    pub end: Option<Moment>,

    /// Only events between two times: `BEGIN,END` or `[BEGIN,END]`.
    #[arg(
        short,
        long,
        value_name = "RANGE",
        value_parser = parse_range,
        conflicts_with_all = ["begin", "end"],
        allow_hyphen_values = true
    )]
    pub timerange: Option<(Moment, Moment)>,

    /// Only events of the time in which all streams of their recording are active.
    #[arg(long)]
    pub stream_intersection: bool,
}
/// How the work is done.
#[derive(Debug, Args)]
#[command(next_help_heading = "Work")]
pub struct Work {
    /// Stop at the first damage, and exit with 1 also if the recorder discarded something.
    ///
    /// Warnings about metadata are errors then, and no event is read.
    #[arg(long)]
    pub strict: bool,

    /// How many threads work.
    #[command(flatten)]
    pub threads: Threads,
}

/// How many threads work.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Work")]
pub struct Threads {
    /// Number of threads [default: all cores].
    ///
    /// The output does not depend on it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

impl Threads {
    /// How many there are, the caller's included.
    pub fn count(&self) -> usize {
        match self.threads {
            Some(threads) => threads.into(),
            None => std::thread::available_parallelism().map_or(1, usize::from),
        }
    }
}
fn parse_keys(path: &str) -> Result<Keys, String> {
    let text =
        kymo_io::read_small(path.as_ref()).map_err(|error| crate::key::unreadable(path, &error))?;
    Keys::parse(&text).map_err(|error| error.to_string())
}

/// A pattern of names.
///
/// # Errors
///
/// Every text is one.
pub fn parse_glob(pattern: &str) -> Result<Glob, std::convert::Infallible> {
    Ok(Glob::new(pattern))
}

/// The machine with a name.
///
/// # Errors
///
/// If no machine has it; with the machine that may have been meant.
pub fn find_machine(name: &str) -> Result<&'static Machine, String> {
    Machine::find(name).ok_or_else(|| {
        let names = Machine::all().iter().flat_map(Machine::names);
        let meant = match kymo_text::nearest(name, names) {
            Some(meant) => format!("did you mean `{meant}`? "),
            None => String::new(),
        };
        format!("unknown machine\nhint: {meant}`kymo machine list` lists all")
    })
}
