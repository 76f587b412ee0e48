//! What can be written after `kymo states`, `latency` and `profile`, and `stats --by-track`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use kymo::analysis::{EventPattern, PairBy, Sort, Switch, SwitchError, TrackBy, Transition};
use kymo::filter::{FieldNames, FilterError, Glob};

use super::group::Grouping;
use super::{Input, Selection, SymbolArgs, Work, parse_glob};

/// What a track is.
#[derive(Debug, Args)]
pub(crate) struct Tracks {
    /// Take the values of fields for the tracks, such as cpu_id or `trace.name,vtid`.
    ///
    /// Without it, tracks are those of the recording where it has some (CPEL, elog), and its
    /// streams otherwise. Fields are named as in --where; where the values are the same, the
    /// track is, whatever the recording.
    #[arg(long = "track", value_name = "FIELD[,FIELD]...", value_parser = parse_fields)]
    track: Option<FieldNames>,

    /// Take the threads that run for the tracks, as the scheduler's events show them, such as
    /// `sched_switch:cpu_id:next_tid,next_comm`.
    ///
    /// EVENT switches the processor with this value of PROCESSOR to the thread with these values of
    /// THREAD. Events that happen on a processor are on the track of the thread that runs there; the
    /// switch itself is on that of the thread before. Filters must leave these events in.
    #[arg(long, value_name = "EVENT:PROCESSOR:THREAD[,...]", value_parser = parse_switch, conflicts_with = "track")]
    switch: Option<Switch>,
}

impl Tracks {
    pub(crate) fn by(&self) -> TrackBy {
        match (&self.track, &self.switch) {
            (Some(names), _) => TrackBy::Fields(names.clone()),
            (None, Some(switch)) => TrackBy::Running(switch.clone()),
            (None, None) => TrackBy::Recording,
        }
    }

    pub(crate) fn is_given(&self) -> bool {
        self.track.is_some() || self.switch.is_some()
    }
}

/// What all analyses have.
#[derive(Debug, Args)]
pub(crate) struct Analysis {
    #[command(flatten)]
    pub(crate) tracks: Tracks,

    /// Cut times to whole microseconds or milliseconds before anything is measured.
    ///
    /// cpelinreg does it with microseconds.
    #[arg(long, value_enum, value_name = "UNIT", default_value_t = Resolution::Ns, hide_default_value = true)]
    pub(crate) resolution: Resolution,

    /// Write one JSON object; times are in nanoseconds, what is not known is null.
    #[arg(long)]
    pub(crate) json: bool,

    /// A file with views, which add to those of kymo and replace those of the same name.
    ///
    /// A view is a list of options with a name, which is written behind the command: `kymo latency syscalls
    /// trace/`. Views are also read from kymo/views.toml in XDG_CONFIG_HOME or ~/.config, and from
    /// /etc/kymo/views.toml.
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) views: Option<PathBuf>,

    // Behind these, options would be under their headings.
    #[command(flatten)]
    pub(crate) input: Input,

    #[command(flatten)]
    pub(crate) selection: Selection,

    #[command(flatten)]
    pub(crate) symbols: SymbolArgs,

    #[command(flatten)]
    pub(crate) work: Work,
}

/// Measure the time in states: from one event to the next
///
/// The time from each state event to the next one is charged to the track of the first. The report
/// has for each track the number of its states, the mean, standard deviation (n - 1), longest and
/// total time, and the same for all tracks together.
///
/// Where several processors change their states each on its own, --per keeps them apart:
/// `--state-event sched_switch --per cpu_id --track next_comm`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  kymo states --state-event THREAD/THRUNNING log.cpel
  kymo states --state-event 1 --sort mean --filter 'worker *' log.cpel
  kymo states --state-event sched_switch --per cpu_id --track next_comm trace/
  kymo states threads trace/             the view of this name (docs/analysis.md)
  kymo states threads --critical-path 4711 trace/")]
pub(crate) struct States {
    /// The events that begin a state and end the one before: a name, a pattern as of --event, or
    /// the number of an event class.
    #[arg(long, value_name = "EVENT", value_parser = parse_event, required_unless_present = "transition")]
    pub(crate) state_event: Option<EventPattern>,

    /// An event that brings what a field names to a state, such as `sched_switch:next_tid:running`;
    /// can be given several times.
    ///
    /// FIELD/NAME has the field of a name as well. A condition is FIELD=VALUE[,VALUE]... or
    /// FIELD!=VALUE[,VALUE]..., several have `&` between them. Of several transitions of an event with the
    /// same FIELD, the first one whose condition holds applies.
    #[arg(
        long,
        value_name = "EVENT:FIELD:STATE[:CONDITION]",
        value_parser = Transition::parse,
        conflicts_with_all = ["state_event", "per", "by", "every", "all", "follow", "output", "force", "format"]
    )]
    pub(crate) transition: Vec<Transition>,

    /// Show the critical path of one of the things with --transition: what it did, and what those did
    /// that it waited for, as wakeups show. Needs --switch.
    // With a state event, clap would not miss the transition, which conflicts with it.
    #[arg(
        long,
        value_name = "VALUE",
        requires = "transition",
        conflicts_with = "state_event"
    )]
    pub(crate) critical_path: Option<String>,

    /// An event ends only the state of the last event that had the same values of these fields.
    #[arg(long, value_name = "FIELD[,FIELD]...", value_parser = parse_fields)]
    pub(crate) per: Option<FieldNames>,

    /// The order of the tracks, groups or states.
    #[arg(
        long,
        value_enum,
        value_name = "BY",
        default_value_t = SortBy::Time,
        conflicts_with_all = ["every", "all"]
    )]
    pub(crate) sort: SortBy,

    /// Show and summarize only tracks whose name matches a pattern.
    #[arg(long, value_name = "GLOB", value_parser = parse_glob)]
    pub(crate) filter: Option<Glob>,

    #[command(flatten)]
    pub(crate) common: Analysis,

    #[command(flatten)]
    pub(crate) grouping: Grouping,
}

/// Measure latencies: from a start to its end
///
/// The report has the numbers of pairs, of starts and of ends without a partner, a histogram, percentiles
/// (to within 0.4 %), and the longest latencies with their times. A start after which another one
/// like it comes before an end has none. What is a start and an end both ends what began before.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  kymo latency --start FUNC/ENTER --end FUNC/EXIT --pair-by track,datum log.cpel
  kymo latency --start 'syscall_entry_*' --end 'syscall_exit_*' --pair-by vtid trace/
  kymo latency --start sched_wakeup --end sched_switch --pair-by tid=next_tid trace/
  kymo latency --start tick --end tick --worst 3 trace/
  kymo latency syscalls --top 10 trace/  the view of this name (docs/analysis.md)
  kymo latency syscalls --every 1s -o calls.rrd trace/
  kymo latency trace.json.gz")]
pub(crate) struct Latency {
    /// The events that start something: a name, a pattern as of --event, or the number of an
    /// event class [default: those that begin slices, in recordings that say so].
    ///
    /// Traces of Perfetto and Chrome say which events begin and end slices. The slices of a track nest: an end belongs
    /// to the last start on its track that has no end yet.
    #[arg(long, value_name = "EVENT", value_parser = parse_event, requires = "end_event")]
    pub(crate) start: Option<EventPattern>,

    /// The events that end it.
    #[arg(
        id = "end_event",
        long = "end",
        value_name = "EVENT",
        value_parser = parse_event,
        requires = "start"
    )]
    pub(crate) end: Option<EventPattern>,

    /// What a start and its end have in common: `track`, or fields, or both; a field that the end
    /// calls otherwise is FIELD=FIELD_OF_END. By default, the track.
    #[arg(long, value_name = "track|FIELD[,FIELD]...", value_parser = parse_pair_by)]
    pub(crate) pair_by: Option<PairBy>,

    /// List the N longest latencies with their times [default: 5].
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(..=100_000),
        conflicts_with_all = ["every", "all"]
    )]
    pub(crate) worst: Option<u32>,

    #[command(flatten)]
    pub(crate) common: Analysis,

    #[command(flatten)]
    pub(crate) grouping: Grouping,
}

/// Where `--end` names events, the end of the time is called otherwise.
pub(crate) fn with_end_events(command: clap::Command) -> clap::Command {
    command.mut_arg("end", |end| {
        end.long("until")
            .help("Only events until this time, which is included; what other commands call --end")
    })
}

/// Profile nested calls: from an enter event to its exit event
///
/// Each track has a stack of calls. The report has for each key the number of calls, the time in
/// themselves (without what they call) and in total, and whether they become slower: the line that
/// fits the times of the calls in their order best (offset, slope from one call to the next), and
/// the correlation R.
///
/// An exit event that has the field of --key leaves the innermost call with the same value, so that
/// a lost exit spoils no other calls; without it, the innermost call.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  kymo profile --enter FUNC/ENTER --exit FUNC/EXIT --key datum log.cpel
  kymo profile --enter 'lttng_ust_cyg_profile:func_entry' --exit 'lttng_ust_cyg_profile:func_exit' \\
      --key addr --track vtid trace/
  kymo profile --flame calls.svg trace.json.gz
  kymo profile --call-graph --top 10 trace.json.gz
  kymo profile --enter 3 --exit 4 --key text --running --resolution us log.cpel
                                         the figures of cpelinreg")]
pub(crate) struct Profile {
    /// The events that enter something: a name, a pattern as of --event, or the number of an event
    /// class [default: those that begin slices, in recordings that say so].
    #[arg(long, value_name = "EVENT", value_parser = parse_event, requires = "exit")]
    pub(crate) enter: Option<EventPattern>,

    /// The events that leave it.
    #[arg(long, value_name = "EVENT", value_parser = parse_event, requires = "enter")]
    pub(crate) exit: Option<EventPattern>,

    /// Sum times by the values of fields [default: by the name of the enter event].
    #[arg(long, value_name = "FIELD[,FIELD]...", value_parser = parse_fields)]
    pub(crate) key: Option<FieldNames>,

    /// Let time pass for a track only while it runs: from an event of it, whatever event, until
    /// the next event of another track.
    ///
    /// For threads that take turns on one processor; cpelinreg does it.
    #[arg(long)]
    pub(crate) running: bool,

    /// Show the callers and callees of each key below the table; in JSON, in `callers` and `callees` of each key.
    #[arg(long, conflicts_with_all = ["by", "every", "all", "flame", "folded"])]
    pub(crate) call_graph: bool,

    /// Write a flame graph to this SVG file, or `-` for standard output.
    ///
    /// Bars are as wide as the time in calls; their titles show it. Of several tracks, each has a bar that its calls
    /// hang below.
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, conflicts_with_all = ["running", "json", "by", "every", "all", "output", "follow", "top", "format"])]
    pub(crate) flame: Option<std::path::PathBuf>,

    /// Print folded stacks: callers and callee between semicolons, and the nanoseconds in the callee itself.
    #[arg(long, conflicts_with_all = ["running", "json", "flame", "by", "every", "all", "output", "follow", "top", "format", "force"])]
    pub(crate) folded: bool,

    /// Count the call stacks that events have in a field, such as callstack_user, instead of calls. With --folded or
    /// --flame.
    ///
    /// Addresses are named as by --debug-info and --kallsyms.
    #[arg(long, value_name = "FIELD", value_parser = super::values::parse_one, conflicts_with_all = ["enter", "exit", "key", "running", "json"])]
    pub(crate) stacks: Option<FieldNames>,

    #[command(flatten)]
    pub(crate) common: Analysis,

    #[command(flatten)]
    pub(crate) grouping: Grouping,
}

/// The order of tracks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SortBy {
    /// The longest time first
    Time,
    /// The most states first
    Count,
    /// The longest mean time first
    Mean,
    /// By name
    Name,
}

impl From<SortBy> for Sort {
    fn from(by: SortBy) -> Self {
        match by {
            SortBy::Time => Self::Time,
            SortBy::Count => Self::Count,
            SortBy::Mean => Self::Mean,
            SortBy::Name => Self::Name,
        }
    }
}

/// To what times are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Resolution {
    /// Nanoseconds: as they are
    Ns,
    /// Microseconds
    Us,
    /// Milliseconds
    Ms,
}

impl Resolution {
    pub(crate) fn nanos(self) -> u32 {
        match self {
            Self::Ns => 1,
            Self::Us => 1_000,
            Self::Ms => 1_000_000,
        }
    }
}

pub(crate) fn parse_event(text: &str) -> Result<EventPattern, std::convert::Infallible> {
    Ok(EventPattern::new(text))
}

fn parse_switch(text: &str) -> Result<Switch, SwitchError> {
    Switch::parse(text)
}

pub(crate) fn parse_fields(list: &str) -> Result<FieldNames, FilterError> {
    FieldNames::parse(list)
}

pub(crate) fn parse_pair_by(list: &str) -> Result<PairBy, FilterError> {
    PairBy::parse(list)
}
