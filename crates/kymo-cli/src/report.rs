//! `kymo info`, `kymo stats`, `kymo check`.

use crate::analysis;
use crate::args;
use crate::open::{Inputs, Wanted, inputs, threads, total_bytes, whole_inputs};
use crate::terminal::{Failure, Outcome, Terminal};
use kymo::report::{Check, Info, Options, Stats, Style};

/// Tells what recordings are.
pub(crate) fn info(args: &args::Info, terminal: &Terminal) -> Result<Outcome, Failure> {
    let inputs = inputs(&args.input, terminal)?;
    let info = Info::new(&inputs.recordings);
    let style = Style::new(args.input.clock_gmt);
    let text = match args.json {
        true => info.to_json(),
        false => info.to_text(&style, args.schema),
    };
    finish(terminal, &inputs, &text, info.is_good())
}

/// Counts events.
pub(crate) fn stats(args: &args::Stats, terminal: &Terminal) -> Result<Outcome, Failure> {
    if args.by_track || args.tracks.is_given() {
        return analysis::by_track(args, terminal);
    }
    let inputs = inputs(&args.input, terminal)?;
    let wanted = Wanted::new(&args.selection, args.input.clock_gmt);
    let filter = wanted.filter(&inputs.recordings, terminal)?;
    wanted.warn_of_idle_patterns(&inputs.recordings, terminal);
    let mut stats = with_progress(terminal, &inputs, &args.work, |options| {
        Stats::new(&inputs.recordings, &filter, options)
    });
    if let Some(top) = args.top {
        stats.keep_top(top);
    }
    let style = Style::new(args.input.clock_gmt);
    let text = match args.json {
        true => stats.to_json(),
        false => stats.to_text(&style),
    };
    finish(terminal, &inputs, &text, stats.faults.is_empty())
}

/// Decodes everything.
pub(crate) fn check(args: &args::Check, terminal: &Terminal) -> Result<Outcome, Failure> {
    let inputs = whole_inputs(&args.input, terminal)?;
    let check = with_progress(terminal, &inputs, &args.work, |options| {
        Check::new(&inputs.recordings, options)
    });
    let style = Style::new(args.input.clock_gmt);
    let text = match args.json {
        true => check.to_json(),
        false => check.to_text(&style),
    };
    finish(terminal, &inputs, &text, check.is_good())
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

/// Writes a report, which holds the faults too, and tells how the program ends.
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
