//! Options of `kymo print`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use kymo::filter::{FieldNames, FilterError};
use kymo::open::parse_aligned;
use kymo::show::pretty;

use super::{Input, Selection, SymbolArgs, Times, Work};

/// Show the events of recordings, merged by time
///
/// The text is that of babeltrace2, and so are the options that shape it. Of a round-robin
/// database the rows are shown, each at the end of its interval and named after its archive, such
/// as AVERAGE/300: the kind and the seconds of a row.
///
/// Where a packet is damaged, what is whole is shown, the damage is reported on standard error,
/// and the exit status is 1.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  kymo print trace/
  kymo print --clock-date --clock-gmt --fields all trace/
  kymo print --event 'lttng_ust_libc:*' --where 'size >= 4096 and cpu_id in [0, 2..3]' trace/
  kymo print --format csv --event sched_switch trace/ > switches.csv
  kymo print --format cpeldump vpp.cpel
  kymo print --last 20 trace/
  kymo print --where 'ret < 0' --before 5 --after 2 trace/
  kymo print --relative --begin +2ms --columns time,name,ret trace/
  kymo print --follow --where 'ret < 0' /var/log/trace/")]
pub(crate) struct Print {
    #[command(flatten)]
    pub(crate) input: Input,

    #[command(flatten)]
    pub(crate) selection: Selection,

    /// How events are shown.
    #[arg(long, value_enum, default_value_t = Format::Pretty, help_heading = "Output")]
    pub(crate) format: Format,

    /// Show times in cycles of their clocks. (pretty)
    #[arg(long, help_heading = "Clocks")]
    pub(crate) clock_cycles: bool,

    /// Show times with their dates; of json and csv those in warnings. (pretty, json, csv)
    #[arg(long, help_heading = "Clocks")]
    pub(crate) clock_date: bool,

    /// Show times as SEC.NANO since the origin of the clocks; of json and csv those in warnings.
    /// (pretty, json, csv)
    #[arg(long, help_heading = "Clocks")]
    pub(crate) clock_seconds: bool,

    /// How times are written. (json, csv)
    ///
    /// Programs that read numbers as doubles, such as jq, lose the last digits of nanoseconds since 1970.
    #[arg(
        long,
        value_enum,
        value_name = "HOW",
        default_value_t,
        help_heading = "Output"
    )]
    pub(crate) times: Times,

    /// Do not show the time since the event before. (pretty)
    #[arg(long, help_heading = "Output")]
    pub(crate) no_delta: bool,

    /// Which names are shown: payload (or arg, args), context (or ctx), scope, header, all, none. (pretty)
    ///
    /// `all` and `none` are taken for what the list does not name. Can be given several times. Default: payload,context.
    #[arg(
        short,
        long,
        value_name = "NAME[,NAME]...",
        value_parser = parse_names,
        help_heading = "Output"
    )]
    pub(crate) names: Vec<String>,

    /// Show values of enumerations that have no label as the labels of their bits. (pretty)
    #[arg(long, help_heading = "Output")]
    pub(crate) enum_flags: bool,

    /// Which facts of the recording, the trace and the event class are shown: recording, trace,
    /// trace:hostname, trace:domain, trace:procname, trace:vpid, loglevel, emf, callsite, all. (pretty)
    ///
    /// Can be given several times. Default: trace:hostname,trace:procname,trace:vpid. `all` is all but `recording`, the path,
    /// which is always shown of several recordings that are not all traces.
    #[arg(
        short,
        long,
        value_name = "FIELD[,FIELD]...",
        value_parser = parse_fields,
        help_heading = "Output"
    )]
    pub(crate) fields: Vec<String>,

    /// What to leave out. (details)
    #[arg(
        long,
        value_enum,
        value_name = "ITEM[,ITEM]...",
        value_delimiter = ',',
        help_heading = "Output"
    )]
    pub(crate) details: Vec<DetailsItem>,

    /// Put TAG: before the names of the tracks of an elog file, in place of F0: and so on, which
    /// distinguish the tracks of several files. (elog_dump)
    #[arg(
        long,
        value_name = "PATH=TAG",
        value_parser = parse_aligned::<String>,
        help_heading = "Output"
    )]
    pub(crate) tag: Vec<(PathBuf, String)>,

    /// When to use colours; `always` is for pretty.
    ///
    /// `auto` uses them on a terminal, unless NO_COLOR is set or BABELTRACE_TERM_COLOR says
    /// otherwise.
    #[arg(
        long,
        value_enum,
        value_name = "WHEN",
        default_value_t = Color::Auto,
        help_heading = "Output"
    )]
    pub(crate) color: Color,

    /// Stop after N events.
    #[arg(long, value_name = "N", help_heading = "Filters")]
    pub(crate) limit: Option<u64>,

    /// Print only the last N events, without reading all of those before them.
    #[arg(
        long,
        visible_alias = "tail",
        value_name = "N",
        help_heading = "Filters"
    )]
    pub(crate) last: Option<u64>,

    /// Print N more events before each that the filters select. (pretty, json, csv)
    ///
    /// They are of the same time range, and need not match --event and --where.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        hide_default_value = true,
        value_parser = clap::value_parser!(u32).range(..=1_000_000),
        conflicts_with_all = ["last", "limit", "follow"],
        help_heading = "Filters"
    )]
    pub(crate) before: u32,

    /// Print N more events after each that the filters select. (pretty, json, csv)
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        hide_default_value = true,
        conflicts_with_all = ["last", "limit", "follow"],
        help_heading = "Filters"
    )]
    pub(crate) after: u32,

    /// Show times since the first event of all recordings, in seconds; times of filters count from
    /// it, too.
    #[arg(long, conflicts_with = "follow", help_heading = "Clocks")]
    pub(crate) relative: bool,

    /// Print a table with a column for each of these: `time`, `name`, or a field, named as in --where.
    ///
    /// Columns grow with what they hold; texts are cut at 40 characters.
    #[arg(
        long,
        value_name = "time|name|FIELD[,...]",
        value_parser = parse_columns,
        conflicts_with_all = ["format", "before", "after", "follow", "names", "enum_flags", "fields", "clock_cycles", "no_delta"],
        help_heading = "Output"
    )]
    pub(crate) columns: Option<FieldNames>,

    /// Go on as the recordings grow, until interrupted.
    ///
    /// What was added to traces, databases, event logs and captures is looked for five times a second, and
    /// recordings that are new below a directory. Events that arrive together are merged by time.
    /// With --last N, N events are printed first.
    #[arg(long, help_heading = "Output")]
    pub(crate) follow: bool,

    /// Note in FILE how far sessions were shown, and go on from there if it exists.
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, help_heading = "LTTng live")]
    pub(crate) live_resume: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) symbols: SymbolArgs,

    #[command(flatten)]
    pub(crate) work: Work,
}

/// How events are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A line each, as babeltrace2 shows them
    Pretty,
    /// Every message in full, as babeltrace2's sink.text.details shows them
    Details,
    /// A JSON object a line
    Json,
    /// Comma-separated values, with a column for each field of the events
    Csv,
    /// CPEL and Gist files as VPP's cpeldump prints them, one section after the other
    Cpeldump,
    /// elog files as VPP's elog_dump prints them
    #[value(name = "elog_dump")]
    ElogDump,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// What the format `details` leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DetailsItem {
    /// All but a line for each message
    Compact,
    /// Metadata of traces
    NoMetadata,
    /// Names of stream classes
    NoStreamClassName,
    /// Names of streams
    NoStreamName,
    /// Times
    NoTime,
    /// Names of traces
    NoTraceName,
    /// Unique identifiers of traces and clocks
    NoUid,
}

fn parse_columns(list: &str) -> Result<FieldNames, FilterError> {
    FieldNames::parse(list)
}

/// Checks a list, which may be one of several.
fn parse_names(list: &str) -> Result<String, pretty::UnknownItem> {
    // babeltrace2 knows some by shorter names.
    let words: Vec<&str> = list
        .split(',')
        .map(|word| match word.trim() {
            "arg" | "args" => "payload",
            "ctx" => "context",
            word => word,
        })
        .collect();
    let list = words.join(",");
    pretty::Names::parse(&list).map(|_| list)
}

fn parse_fields(list: &str) -> Result<String, pretty::UnknownItem> {
    pretty::Fields::parse(list).map(|_| list.to_owned())
}

/// Lists of words that were checked, as one.
pub(crate) fn joined(lists: &[String]) -> String {
    let lists = lists.iter().map(String::as_str);
    let lists: Vec<&str> = lists.filter(|list| !list.is_empty()).collect();
    lists.join(",")
}
