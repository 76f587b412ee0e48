//! `kymo info`, `kymo stats`, `kymo check`.

use std::io::{self, IsTerminal};

use crate::analysis;
use crate::args;
use crate::index;
use crate::live::{Live, Session, SessionUrl};
use crate::open::{
    Asked, Inputs, Wanted, inputs_with, selected_inputs, threads, total_bytes, whole_inputs,
};
use crate::terminal::{Failure, Outcome, Terminal};
use kymo::AnyRecording;
use kymo::report::{Check, Info, Options, Stats, Style};
use kymo::timeline::KnownCounts;
use kymo_model::Recording;
use kymo_text::visible;

/// Of more recordings, only sums are shown unless each is asked for.
const MANY: usize = 20;

/// Shows what recordings are.
pub(crate) fn info(args: &args::Info, terminal: &Terminal) -> Result<Outcome, Failure> {
    if let Some(daemon) = Live::daemon(&args.input)? {
        let sessions = Live::sessions(&daemon, terminal)?;
        terminal.write(&list(&daemon, &sessions, args.json))?;
        return Ok(Outcome::Good);
    }
    let asked = Asked {
        so_far: true,
        ..Asked::default()
    };
    index::refuse_recordings(args.cache.as_deref())?;
    let inputs = inputs_with(&args.input, asked, terminal)?;
    if args.metadata {
        return metadata(&inputs, terminal);
    }
    let (cached, _) = index::cached(&args.input, args.cache.as_deref(), args.no_cache);
    let is_trace = |recording: &AnyRecording| recording.as_ctf().is_some();
    let known = match inputs.recordings.iter().any(is_trace) {
        true => KnownCounts::new(&inputs.recordings, &cached),
        // All others say how many events they have, or have none.
        false => KnownCounts::default(),
    };
    let info = Info::with_counts(&inputs.recordings, &known);
    let style = style(&inputs);
    let text = match args.json {
        true => info.to_json(),
        false if !args.each && info.databases() > MANY => {
            info.to_summary(&style, args.schema, inputs.unreadable)
        }
        false => info.to_text(&style, args.schema),
    };
    finish(terminal, &inputs, &text, info.is_good())
}

/// Writes the metadata of traces as text.
fn metadata(inputs: &Inputs, terminal: &Terminal) -> Result<Outcome, Failure> {
    for recording in &inputs.recordings {
        let Some(trace) = recording.as_ctf() else {
            let problem = format!(
                "error: `{}` is {}: `--metadata` is for traces",
                recording.path().display(),
                recording.what()
            );
            return Err(Failure::Usage(problem));
        };
        let mut text = trace.metadata_text().to_owned();
        if !text.ends_with('\n') {
            text.push('\n');
        }
        terminal.write(text.as_bytes())?;
    }
    Ok(inputs.outcome)
}

/// The sessions of a relay daemon: a line each, or JSON.
fn list(daemon: &SessionUrl, sessions: &[Session], json: bool) -> Vec<u8> {
    let url = |session: &Session| daemon.with_target(&session.host, &session.name).to_string();
    if json {
        let sessions = sessions.iter().map(|session| {
            serde_json::json!({
                "url": url(session),
                "host": session.host,
                "session": session.name,
                "timer_us": session.live_timer,
                "streams": session.streams,
                "clients": session.clients,
            })
        });
        let sessions: Vec<_> = sessions.collect();
        let text = serde_json::json!({ "sessions": sessions }).to_string();
        return format!("{text}\n").into_bytes();
    }
    let line = |session: &Session| {
        let url = url(session);
        format!(
            "{} (timer = {}, {} stream(s), {} client(s) connected)\n",
            visible(&url),
            session.live_timer,
            session.streams,
            session.clients
        )
    };
    sessions.iter().map(line).collect::<String>().into_bytes()
}

/// Counts events.
pub(crate) fn stats(args: &args::Stats, terminal: &Terminal) -> Result<Outcome, Failure> {
    let series = &args.series;
    let is_series = series.every.is_some() || series.output.is_some() || series.follow;
    if series.by.is_some() || is_series {
        return analysis::by_group(args, terminal);
    }
    if args.by_track || args.tracks.is_given() {
        return analysis::by_track(args, terminal);
    }
    if args.symbols.is_given() {
        let problem = "error: without groups, no addresses are shown that debug information could name\n\
                       hint: `--by FIELD` groups events by a field";
        return Err(Failure::Usage(problem.to_owned()));
    }
    let asked = Asked {
        strict: args.work.strict,
        ..Asked::default()
    };
    index::refuse_recordings(args.cache.as_deref())?;
    let inputs = selected_inputs(&args.input, &args.selection, asked, terminal)?;
    let wanted = Wanted::new(&args.selection, inputs.gmt);
    let filter = wanted.filter(&inputs.recordings, terminal)?;
    let is_explained = wanted.warn(&inputs, &filter, terminal);
    let style = style(&inputs);
    // Beside the longest name of a row, and what stands behind it.
    let stretches = match args.json {
        true => 0,
        false => style
            .width()
            .map_or(0, |width| width.saturating_sub(40).clamp(10, 100)),
    };
    let (cached, _) = index::cached(&args.input, args.cache.as_deref(), args.no_cache);
    let known = KnownCounts::new(&inputs.recordings, &cached);
    let mut stats = with_progress(terminal, &inputs, &args.work, |options| {
        Stats::with_spread(&inputs.recordings, &filter, options, &known, stretches)
    });
    if stats.total.events == 0 && !is_explained {
        wanted.warn_of_none(&inputs.recordings, !stats.faults.is_empty(), terminal);
    }
    if !args.json && !args.each && inputs.recordings.len() > MANY {
        stats.merge_recordings();
    }
    if let Some(top) = args.top {
        stats.keep_top(top);
    }
    let text = match args.json {
        true => stats.to_json(),
        false => stats.to_text(&style),
    };
    let is_lost = args.work.strict && !stats.discarded.is_empty();
    finish(
        terminal,
        &inputs,
        &text,
        stats.faults.is_empty() && !is_lost,
    )
}

/// Decodes everything.
pub(crate) fn check(args: &args::Check, terminal: &Terminal) -> Result<Outcome, Failure> {
    let inputs = whole_inputs(&args.input, args.work.strict, terminal)?;
    let mut check = with_progress(terminal, &inputs, &args.work, |options| {
        Check::new(&inputs.recordings, options)
    });
    check.unreadable = inputs.unreadable as u64;
    let style = style(&inputs);
    let text = match args.json {
        true => check.to_json(),
        false => check.to_text(&style),
    };
    let is_lost = args.work.strict && !check.discarded.is_empty();
    finish(terminal, &inputs, &text, check.is_good() && !is_lost)
}

/// How reports look on standard output: as wide as its terminal (or COLUMNS says), and with colours there.
pub(crate) fn style(inputs: &Inputs) -> Style {
    let stdout = io::stdout();
    let columns = std::env::var("COLUMNS").ok();
    let columns = columns.and_then(|columns| columns.parse().ok());
    let width = columns.or_else(|| {
        let (width, _) = terminal_size::terminal_size_of(&stdout)?;
        Some(usize::from(width.0))
    });
    let is_colored = stdout.is_terminal() && std::env::var_os("NO_COLOR").is_none();
    inputs.style().with_width(width).with_color(is_colored)
}

/// Does work that goes through all chunks.
fn with_progress<T>(
    terminal: &Terminal,
    inputs: &Inputs,
    work: &args::Work,
    run: impl FnOnce(&Options<'_>) -> T,
) -> T {
    terminal.begin_progress(total_bytes(&inputs.recordings));
    let progress = |bytes| terminal.advance(bytes);
    let result = run(&Options {
        threads: threads(work),
        strict: work.strict,
        progress: Some(&progress),
    });
    terminal.end_progress();
    result
}

/// Writes a report, which holds the faults too, and returns how the program ends.
pub(crate) fn finish(
    terminal: &Terminal,
    inputs: &Inputs,
    text: &[u8],
    is_good: bool,
) -> Result<Outcome, Failure> {
    terminal.write(text)?;
    Ok(if is_good {
        inputs.outcome
    } else {
        Outcome::Damage
    })
}
