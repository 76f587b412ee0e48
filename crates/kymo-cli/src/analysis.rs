//! `kymo states`, `latency`, `profile`, `values`, and `stats --by` and `--by-track`.

use std::io;

use kymo::AnyRecording;
use kymo::analysis::{
    CallTree, CallTreeQuery, Coverage, Error, FieldValues, GroupStats, Latency, LatencyQuery,
    Options, Profile, ProfileQuery, StackTree, States, StatesQuery, Track, TrackStats,
    TransitionStates, TransitionsQuery, ValuesQuery, Whole,
};
use kymo::filter::FieldNames;
use kymo::pipeline::{Select, Watched, Window};
use kymo_draw::{FlameOptions, Frame, flame_svg, folded};

use crate::args;
use crate::args::analysis::Analysis;
use crate::breakdown::BreakdownArgs;
use crate::feed::{AnalysisFeed, GrowingFeed};
use crate::follow::{await_recordings, refuse_sorted, refuse_wrapped};
use crate::live::Live;
use crate::open::{Inputs, Wanted, inputs, threads, total_bytes};
use crate::report::{finish, style};
use crate::terminal::{Failure, Outcome, Terminal};

/// Time in states.
pub(crate) fn states(
    args: &args::analysis::States,
    terminal: &Terminal,
) -> Result<Outcome, Failure> {
    let Some(state) = &args.state_event else {
        return transitions(args, terminal);
    };
    let query = StatesQuery {
        state: state.clone(),
        per: args.per.clone(),
        tracks: args.common.tracks.by(),
        filter: args.filter.clone(),
        sort: args.sort.into(),
    };
    let breakdown = BreakdownArgs::new(&args.grouping, args.common.json);
    let has_groups = args.grouping.series.by.is_some();
    if (breakdown.writes() || has_groups) && args.filter.is_some() {
        let problem = "error: `--filter` selects tracks of the table, and `--by`, `--all` and `--every` count those of all tracks\n\
                       hint: `--where` selects events";
        return Err(Failure::Usage(problem.to_owned()));
    }
    let written = Written::new(&breakdown);
    let (inputs, mut states) = breakdown.run(|breakdown| {
        analyse_feed(&args.common, &written, terminal, |feed, options| {
            States::of_feed(feed, &query, options, breakdown)
        })
    })?;
    if let Some(top) = args.grouping.top {
        states.keep_top(top);
    }
    if let Some(groups) = &mut states.groups {
        groups.sort(args.sort.into());
    }
    let report = (!breakdown.writes()).then(|| match args.common.json {
        true => states.to_json(),
        false => states.to_text(&style(&inputs)),
    });
    finish_analysis(
        terminal,
        &inputs,
        report,
        &states.coverage,
        args.common.work.strict,
    )
}

/// Time in states that events bring things to, or the critical path of one of them.
fn transitions(args: &args::analysis::States, terminal: &Terminal) -> Result<Outcome, Failure> {
    let query = TransitionsQuery {
        transitions: args.transition.clone(),
        tracks: args.common.tracks.by(),
        filter: args.filter.clone(),
        path_of: args.critical_path.clone(),
    };
    let (inputs, mut states) = analyse(&args.common, terminal, |feed, select, options| {
        TransitionStates::new(feed, select, &query, options)
    })?;
    if let Some(top) = args.grouping.top {
        states.table.keep_top(top);
    }
    states.table.sort(args.sort.into());
    let report = match args.common.json {
        true => states.to_json(),
        false => states.to_text(&style(&inputs)),
    };
    finish_analysis(
        terminal,
        &inputs,
        Some(report),
        &states.coverage,
        args.common.work.strict,
    )
}

/// Latencies.
pub(crate) fn latency(
    args: &args::analysis::Latency,
    terminal: &Terminal,
) -> Result<Outcome, Failure> {
    // Without groups, the table is that of the longest latencies.
    let top = args
        .grouping
        .top
        .filter(|_| args.grouping.series.by.is_none());
    let query = LatencyQuery {
        events: args.start.clone().zip(args.end.clone()),
        pair_by: args.pair_by.clone().unwrap_or_default(),
        tracks: args.common.tracks.by(),
        worst: match (top, args.worst) {
            (Some(_), Some(_)) => {
                let problem = "error: `--top` and `--worst` both limit the list of the longest latencies\n\
                               hint: `--by` makes groups, which `--top` limits";
                return Err(Failure::Usage(problem.to_owned()));
            }
            (Some(top), None) => top,
            (None, worst) => worst.unwrap_or(5) as usize,
        },
    };
    let breakdown = BreakdownArgs::new(&args.grouping, args.common.json);
    let written = Written::new(&breakdown);
    let (inputs, mut latency) = breakdown.run(|breakdown| {
        analyse_feed(&args.common, &written, terminal, |feed, options| {
            Latency::of_feed(feed, &query, options, breakdown)
        })
    })?;
    if let (Some(groups), Some(top)) = (&mut latency.groups, args.grouping.top) {
        groups.keep_top(top);
    }
    let report = (!breakdown.writes()).then(|| match args.common.json {
        true => latency.to_json(),
        false => latency.to_text(&style(&inputs)),
    });
    finish_analysis(
        terminal,
        &inputs,
        report,
        &latency.coverage,
        args.common.work.strict,
    )
}

/// A profile.
pub(crate) fn profile(
    args: &args::analysis::Profile,
    terminal: &Terminal,
) -> Result<Outcome, Failure> {
    if args.folded || args.flame.is_some() {
        return calls(args, terminal);
    }
    if args.stacks.is_some() {
        return Err(Failure::Usage(
            "error: `--stacks` needs `--folded` or `--flame FILE`".to_owned(),
        ));
    }
    let query = ProfileQuery {
        events: args.enter.clone().zip(args.exit.clone()),
        key: args.key.clone(),
        tracks: args.common.tracks.by(),
        running: args.running,
        call_graph: args.call_graph,
    };
    let breakdown = BreakdownArgs::new(&args.grouping, args.common.json);
    let written = Written::new(&breakdown);
    let (inputs, mut profile) = breakdown.run(|breakdown| {
        analyse_feed(&args.common, &written, terminal, |feed, options| {
            Profile::of_feed(feed, &query, options, breakdown)
        })
    })?;
    if let Some(top) = args.grouping.top {
        profile.keep_top(top);
    }
    let report = (!breakdown.writes()).then(|| match args.common.json {
        true => profile.to_json(),
        false => profile.to_text(&style(&inputs)),
    });
    finish_analysis(
        terminal,
        &inputs,
        report,
        &profile.coverage,
        args.common.work.strict,
    )
}

/// Values of a field.
pub(crate) fn values(args: &args::values::Values, terminal: &Terminal) -> Result<Outcome, Failure> {
    let query = ValuesQuery {
        field: args.field.clone(),
        by: args.series.by.clone().unwrap_or_default(),
        tracks: args.common.tracks.by(),
        outliers: args.outliers,
        worst: args.worst as usize,
        top: args.top,
    };
    let series = BreakdownArgs {
        series: &args.series,
        all: false,
        json: args.common.json,
        counts: false,
    };
    series.check()?;
    let strict = args.common.work.strict;
    if series.writes() {
        let written = Written::new(&series);
        let (inputs, coverage) = series.run_values(|to| {
            analyse_feed(&args.common, &written, terminal, |feed, options| {
                FieldValues::series(feed, &query, options, to)
            })
        })?;
        return finish_analysis(terminal, &inputs, None, &coverage, strict);
    }
    let (inputs, mut values) = analyse(&args.common, terminal, |feed, select, options| {
        FieldValues::new(feed, select, &query, options)
    })?;
    values.keep_top(args.top);
    let report = match args.common.json {
        true => values.to_json(),
        false => values.to_text(&style(&inputs)),
    };
    finish_analysis(terminal, &inputs, Some(report), &values.coverage, strict)
}

/// A profile by what calls what: a flame graph, or folded stacks.
fn calls(args: &args::analysis::Profile, terminal: &Terminal) -> Result<Outcome, Failure> {
    let is_file = |path: &&std::path::PathBuf| path.as_os_str() != kymo_io::STANDARD_INPUT;
    let file = args.flame.as_ref().filter(is_file);
    if let Some(file) = file.filter(|file| file.exists() && !args.grouping.series.force) {
        return Err(crate::outputs::exists(file));
    }
    let (inputs, frames, coverage) = match &args.stacks {
        Some(field) => stack_frames(args, field, terminal)?,
        None => call_frames(args, terminal)?,
    };
    let (title, amount): (&str, fn(u64) -> String) = match args.stacks {
        Some(_) => ("Call stacks", |events| events.to_string()),
        None => ("Time in calls", kymo::analysis::duration_text),
    };
    let text = match args.folded {
        true => folded(&frames),
        false => {
            let options = FlameOptions {
                title: title.into(),
                amount,
                width: 1200,
            };
            flame_svg(&frames, &options)
        }
    };
    let strict = args.common.work.strict;
    let Some(file) = file else {
        return finish_analysis(
            terminal,
            &inputs,
            Some(text.into_bytes()),
            &coverage,
            strict,
        );
    };
    crate::outputs::write_file(file, args.grouping.series.force, |out| {
        io::Write::write_all(out, text.as_bytes())
    })?;
    finish_analysis(terminal, &inputs, None, &coverage, strict)
}

/// The bars of calls, and what they are of.
type Frames = (Inputs, Vec<Frame>, Coverage);

/// Calls that events enter and leave.
fn call_frames(args: &args::analysis::Profile, terminal: &Terminal) -> Result<Frames, Failure> {
    let query = CallTreeQuery {
        events: args.enter.clone().zip(args.exit.clone()),
        key: args.key.clone(),
        tracks: args.common.tracks.by(),
        within: Window::ALL,
    };
    let (inputs, tree) = analyse(&args.common, terminal, |feed, select, options| {
        CallTree::new(feed, select, &query, options)
    })?;
    let nodes = tree.nodes.into_iter();
    let nodes = nodes.map(|node| (node.caller, node.track, node.name, node.own));
    let frames = with_tracks(&inputs, &tree.tracks, nodes);
    Ok((inputs, frames, tree.coverage))
}

/// Call stacks that a field has.
fn stack_frames(
    args: &args::analysis::Profile,
    field: &FieldNames,
    terminal: &Terminal,
) -> Result<Frames, Failure> {
    let tracks = args.common.tracks.by();
    let (inputs, tree) = analyse_with(&args.common, true, terminal, |feed, select, options| {
        StackTree::new(feed, select, field, &tracks, options)
    })?;
    if tree.stacks == 0 {
        terminal.warning(format_args!("no event has a call stack in `{field}`"));
    }
    if tree.cut > 0 {
        let cut = tree.cut;
        terminal.warning(format_args!(
            "{cut} call stacks are cut off: they are too many or too deep"
        ));
    }
    let nodes = tree.nodes.into_iter();
    let nodes = nodes.map(|node| (node.caller, node.track, node.name, node.own));
    // Streams are processors here.
    let tracks = match args.common.tracks.is_given() {
        true => &tree.tracks[..],
        false => &[],
    };
    let frames = with_tracks(&inputs, tracks, nodes);
    Ok((inputs, frames, tree.coverage))
}

/// Calls, each with its caller, track, name and own amount. Each of several tracks is the caller of all on it.
pub(crate) fn with_tracks(
    inputs: &Inputs,
    tracks: &[Track],
    nodes: impl Iterator<Item = (Option<usize>, usize, String, u64)>,
) -> Vec<Frame> {
    let several = inputs.recordings.len() > 1;
    let roots = match tracks.len() {
        0 | 1 => 0,
        count => count,
    };
    let tracks = tracks.iter().take(roots).map(|track| Frame {
        caller: None,
        name: track.title(several),
        own: 0,
        compared: None,
    });
    let nodes = nodes.map(|(caller, track, name, own)| Frame {
        caller: match caller {
            Some(caller) => Some(roots + caller),
            None => (roots > 0).then_some(track),
        },
        name,
        own,
        compared: None,
    });
    tracks.chain(nodes).collect()
}

/// Events by group, and over time.
pub(crate) fn by_group(args: &args::Stats, terminal: &Terminal) -> Result<Outcome, Failure> {
    let breakdown = BreakdownArgs {
        series: &args.series,
        all: false,
        json: args.json,
        counts: true,
    };
    let by = args.series.by.clone().unwrap_or_default();
    let tracks = args.tracks.by();
    let written = Written::new(&breakdown);
    let (inputs, mut stats) = breakdown.run(|series| {
        let options = Options {
            threads: threads(&args.work),
            strict: args.work.strict,
            ..Options::default()
        };
        let asked = Asked {
            input: &args.input,
            selection: &args.selection,
            symbols: &args.symbols,
        };
        analyse_asked(&asked, &written, &options, terminal, |feed| {
            GroupStats::of_feed(feed, &tracks, &by, &options, series)
        })
    })?;
    if let Some(top) = args.top {
        stats.keep_top(top);
    }
    let report = (!breakdown.writes()).then(|| match args.json {
        true => stats.to_json(),
        false => stats.to_text(&style(&inputs)),
    });
    finish_analysis(terminal, &inputs, report, &stats.coverage, args.work.strict)
}

/// What is counted by group or track, with names for its addresses if they are wanted.
fn counted_inputs(args: &args::Stats, terminal: &Terminal) -> Result<Inputs, Failure> {
    let inputs = inputs(&args.input, args.work.strict, terminal)?;
    match args.symbols.is_given() {
        true => args.symbols.apply(inputs, true, terminal),
        false => Ok(inputs),
    }
}

/// Events by track.
pub(crate) fn by_track(args: &args::Stats, terminal: &Terminal) -> Result<Outcome, Failure> {
    let inputs = counted_inputs(args, terminal)?;
    let options = Options {
        threads: threads(&args.work),
        strict: args.work.strict,
        ..Options::default()
    };
    let tracks = args.tracks.by();
    let mut stats = selected(&inputs, &args.selection, terminal, |select| {
        TrackStats::new(&inputs.recordings, select, &tracks, &options)
    })?;
    if let Some(top) = args.top {
        stats.keep_top(top);
    }
    let text = match args.json {
        true => stats.to_json(),
        false => stats.to_text(&style(&inputs)),
    };
    finish_analysis(
        terminal,
        &inputs,
        Some(text),
        &stats.coverage,
        args.work.strict,
    )
}

/// Opens recordings and makes an analysis of the events that are wanted.
fn analyse<T>(
    args: &Analysis,
    terminal: &Terminal,
    run: impl FnOnce(&[AnyRecording], &dyn Select, &Options) -> Result<T, Error>,
) -> Result<(Inputs, T), Failure> {
    analyse_with(args, args.symbols.is_given(), terminal, run)
}

/// The same; `symbols` says whether addresses are named.
fn analyse_with<T>(
    args: &Analysis,
    symbols: bool,
    terminal: &Terminal,
    run: impl FnOnce(&[AnyRecording], &dyn Select, &Options) -> Result<T, Error>,
) -> Result<(Inputs, T), Failure> {
    let mut inputs = inputs(&args.input, args.work.strict, terminal)?;
    if symbols {
        inputs = args.symbols.apply(inputs, true, terminal)?;
    }
    let options = Options {
        threads: threads(&args.work),
        strict: args.work.strict,
        resolution: args.resolution.nanos(),
    };
    let result = selected(&inputs, &args.selection, terminal, |select| {
        run(&inputs.recordings, select, &options)
    })?;
    Ok((inputs, result))
}

/// How results are written.
struct Written {
    /// While the recordings are read.
    at_once: bool,
    /// As the recordings grow.
    follow: bool,
}

impl Written {
    fn new(breakdown: &BreakdownArgs<'_>) -> Self {
        Self {
            at_once: breakdown.writes(),
            follow: breakdown.series.follow,
        }
    }
}

/// What is analysed.
struct Asked<'a> {
    input: &'a args::Input,
    selection: &'a args::Selection,
    symbols: &'a args::SymbolArgs,
}

/// Opens recordings and makes an analysis of the events that are wanted, of what grows as it grows if results are
/// written at once.
fn analyse_feed<T>(
    args: &Analysis,
    written: &Written,
    terminal: &Terminal,
    run: impl FnOnce(&mut AnalysisFeed<'_>, &Options) -> Result<T, Error>,
) -> Result<(Inputs, T), Failure> {
    let options = Options {
        threads: threads(&args.work),
        strict: args.work.strict,
        resolution: args.resolution.nanos(),
    };
    let asked = Asked {
        input: &args.input,
        selection: &args.selection,
        symbols: &args.symbols,
    };
    analyse_asked(&asked, written, &options, terminal, |feed| {
        run(feed, &options)
    })
}

fn analyse_asked<T>(
    asked: &Asked<'_>,
    written: &Written,
    options: &Options,
    terminal: &Terminal,
    run: impl FnOnce(&mut AnalysisFeed<'_>) -> Result<T, Error>,
) -> Result<(Inputs, T), Failure> {
    let (input, strict) = (asked.input, options.strict);
    let has_symbols = asked.symbols.is_given();
    let is_live = Live::is_in(input) && written.at_once && !has_symbols;
    if !is_live && !written.follow {
        let mut inputs = inputs(input, strict, terminal)?;
        if has_symbols {
            inputs = asked.symbols.apply(inputs, true, terminal)?;
        }
        let result = selected(&inputs, asked.selection, terminal, |select| {
            let recordings = &inputs.recordings;
            run(&mut AnalysisFeed::Whole(Whole { recordings, select }))
        })?;
        return Ok((inputs, result));
    }
    if has_symbols {
        let problem = "error: `--follow` does not name addresses";
        return Err(Failure::Usage(problem.to_owned()));
    }
    let (wanted, mut inputs, source);
    let growing = if is_live {
        (source, inputs) = Live::open(input, None, terminal)?.grow(strict, terminal)?;
        wanted = Wanted::new(asked.selection, inputs.gmt);
        GrowingFeed::session(source, &wanted, terminal)
    } else {
        refuse_wrapped(&input.paths)?;
        await_recordings(input, terminal);
        let opening = crate::open::Asked {
            strict,
            waits: true,
            ..Default::default()
        };
        inputs = crate::open::inputs_with(input, opening, terminal)?;
        refuse_sorted(&inputs.recordings)?;
        wanted = Wanted::new(asked.selection, inputs.gmt);
        GrowingFeed::files(&input.paths, &mut inputs, &wanted, terminal)
    };
    let mut feed = AnalysisFeed::Growing(Box::new(growing));
    let result = run(&mut feed).map_err(|error| failed(error, terminal));
    if let AnalysisFeed::Growing(growing) = &mut feed {
        if let Some(failure) = growing.take_failure() {
            return Err(failure);
        }
        if growing.outcome() != Outcome::Good {
            inputs.outcome = growing.outcome();
        }
    }
    Ok((inputs, result?))
}

/// Why an analysis cannot be made.
fn failed(error: Error, terminal: &Terminal) -> Failure {
    Failure::Usage(match error {
        Error::Field { purpose, error } => error.render(&format!("--{purpose}"), terminal.color()),
        error => format!("error: {error}"),
    })
}

/// Does something with the events that are wanted, and shows how far it is.
pub(crate) fn selected<T>(
    inputs: &Inputs,
    selection: &args::Selection,
    terminal: &Terminal,
    run: impl FnOnce(&dyn Select) -> Result<T, Error>,
) -> Result<T, Failure> {
    let wanted = Wanted::new(selection, inputs.gmt);
    let filter = wanted.filter(&inputs.recordings, terminal)?;
    wanted.warn(inputs, &filter, terminal);
    terminal.begin_progress(total_bytes(&inputs.recordings));
    let progress = |bytes| terminal.advance(bytes);
    let select = Watched::new(&inputs.recordings, &filter, &progress, None);
    let result = run(&select);
    terminal.end_progress();
    result.map_err(|error| failed(error, terminal))
}

/// Writes a report, and returns how the program ends. Without a report, lines were written, and damage is reported
/// beside them.
fn finish_analysis(
    terminal: &Terminal,
    inputs: &Inputs,
    report: Option<Vec<u8>>,
    coverage: &Coverage,
    strict: bool,
) -> Result<Outcome, Failure> {
    if report.is_none() {
        coverage
            .faults
            .iter()
            .for_each(|fault| terminal.fault(fault));
    }
    let is_lost = strict && !coverage.discarded.is_empty();
    let is_good = coverage.is_good() && !is_lost;
    finish(terminal, inputs, &report.unwrap_or_default(), is_good)
}
