//! `kymo states`, `kymo latency`, `kymo profile`, and `kymo stats --by-track`.

use kymo::AnyRecording;
use kymo::analysis::{
    Coverage, Error, Latency, LatencyQuery, Options, Profile, ProfileQuery, States, StatesQuery,
    TrackStats,
};
use kymo::report::Style;

use crate::args;
use crate::args::analysis::Analysis;
use crate::open::{Inputs, Wanted, inputs, threads, total_bytes};
use crate::progress::Progressing;
use crate::report::finish;
use crate::terminal::{Failure, Outcome, Terminal};

/// Time in states.
pub(crate) fn states(
    args: &args::analysis::States,
    terminal: &Terminal,
) -> Result<Outcome, Failure> {
    let query = StatesQuery {
        state: args.state_event.clone(),
        per: args.per.clone(),
        tracks: args.common.tracks.by(),
        filter: args.filter.clone(),
        sort: args.sort.into(),
    };
    let (inputs, states) = analyse(&args.common, terminal, |of, select, options| {
        States::new(of, select, &query, options)
    })?;
    let text = match args.common.json {
        true => states.to_json(),
        false => states.to_text(&style(&inputs)),
    };
    finish_analysis(
        terminal,
        &inputs,
        &text,
        &states.coverage,
        args.common.work.strict,
    )
}

/// Latencies.
pub(crate) fn latency(
    args: &args::analysis::Latency,
    terminal: &Terminal,
) -> Result<Outcome, Failure> {
    let query = LatencyQuery {
        events: args.start.clone().zip(args.end.clone()),
        pair_by: args.pair_by.clone().unwrap_or_default(),
        tracks: args.common.tracks.by(),
        worst: args.worst as usize,
    };
    let (inputs, latency) = analyse(&args.common, terminal, |of, select, options| {
        Latency::new(of, select, &query, options)
    })?;
    let text = match args.common.json {
        true => latency.to_json(),
        false => latency.to_text(&style(&inputs)),
    };
    finish_analysis(
        terminal,
        &inputs,
        &text,
        &latency.coverage,
        args.common.work.strict,
    )
}

/// A profile.
pub(crate) fn profile(
    args: &args::analysis::Profile,
    terminal: &Terminal,
) -> Result<Outcome, Failure> {
    let query = ProfileQuery {
        events: args.enter.clone().zip(args.exit.clone()),
        key: args.key.clone(),
        tracks: args.common.tracks.by(),
        running: args.running,
    };
    let (inputs, profile) = analyse(&args.common, terminal, |of, select, options| {
        Profile::new(of, select, &query, options)
    })?;
    let text = match args.common.json {
        true => profile.to_json(),
        false => profile.to_text(&style(&inputs)),
    };
    finish_analysis(
        terminal,
        &inputs,
        &text,
        &profile.coverage,
        args.common.work.strict,
    )
}

/// Events by track.
pub(crate) fn by_track(args: &args::Stats, terminal: &Terminal) -> Result<Outcome, Failure> {
    let inputs = inputs(&args.input, args.work.strict, terminal)?;
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
    finish_analysis(terminal, &inputs, &text, &stats.coverage, args.work.strict)
}

/// Opens recordings and makes an analysis of the events that are wanted.
fn analyse<T>(
    args: &Analysis,
    terminal: &Terminal,
    run: impl FnOnce(&[AnyRecording], &&Progressing<'_>, &Options) -> Result<T, Error>,
) -> Result<(Inputs, T), Failure> {
    let inputs = inputs(&args.input, args.work.strict, terminal)?;
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

/// Does something with the events that are wanted, and shows how far it is.
fn selected<T>(
    inputs: &Inputs,
    selection: &args::Selection,
    terminal: &Terminal,
    run: impl FnOnce(&&Progressing<'_>) -> Result<T, Error>,
) -> Result<T, Failure> {
    let wanted = Wanted::new(selection, inputs.gmt);
    let filter = wanted.filter(&inputs.recordings, terminal)?;
    wanted.warn(inputs, &filter, terminal);
    terminal.begin_progress(total_bytes(&inputs.recordings));
    let select = Progressing::new(&filter, terminal, &inputs.recordings);
    let result = run(&&select);
    terminal.end_progress();
    result.map_err(|error| {
        Failure::Usage(match error {
            Error::Field { purpose, error } => {
                error.render(&format!("--{purpose}"), terminal.color())
            }
            error => format!("error: {error}"),
        })
    })
}

/// How reports look here.
fn style(inputs: &Inputs) -> Style {
    let told = std::env::var("COLUMNS").ok();
    let told = told.and_then(|columns| columns.parse().ok());
    let width = told.or_else(|| {
        let (width, _) = terminal_size::terminal_size_of(std::io::stdout())?;
        Some(usize::from(width.0))
    });
    inputs.style().with_width(width)
}

/// Writes a report, and tells how the program ends.
fn finish_analysis(
    terminal: &Terminal,
    inputs: &Inputs,
    text: &[u8],
    coverage: &Coverage,
    strict: bool,
) -> Result<Outcome, Failure> {
    let is_lost = strict && !coverage.discarded.is_empty();
    finish(terminal, inputs, text, coverage.is_good() && !is_lost)
}
