//! `kymo index --summary`.

use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use kymo::timeline::{Cache, IndexOptions, Timeline, default_directory};
use kymo_model::Recording;
use kymo_text::visible;

use crate::args::Input;
use crate::args::ctf::Index;
use crate::open::{Asked, index_key, inputs_with, total_bytes};
use crate::terminal::{Failure, Outcome, Terminal};

/// Where indexes of recordings that are opened this way are kept, and why they are not.
pub(crate) fn cached(
    input: &Input,
    directory: Option<&Path>,
    no_cache: bool,
) -> (IndexOptions, Option<&'static str>) {
    let mut options = IndexOptions::default();
    let directory = directory.map(Path::to_path_buf).or_else(default_directory);
    let problem = match (no_cache, directory, index_key(input)) {
        (true, ..) => None,
        (_, _, None) => {
            Some("summaries of recordings that are opened with a key are not kept in the cache")
        }
        (_, None, _) => {
            Some("cannot keep summaries: neither XDG_CACHE_HOME nor HOME is an absolute path")
        }
        (_, Some(directory), Some(key)) => {
            options.cache = Some(Cache::new(directory));
            options.opened = key;
            None
        }
    };
    (options, problem)
}

/// Refuses a directory of a cache that is a recording or holds some: `kymo index --cache A B` does not read `A`.
pub(crate) fn refuse_recordings(cache: Option<&Path>) -> Result<(), Failure> {
    let Some(path) = cache.filter(|path| !Cache::new(path.to_path_buf()).has_summaries()) else {
        return Ok(());
    };
    let opened = kymo::open::open(&[path.to_path_buf()], &kymo::open::Options::default());
    let Some(recording) = opened.recordings.first() else {
        return Ok(());
    };
    let (shown, found) = (path.display(), recording.path());
    let what = match found == path {
        true => format!("is a recording ({})", recording.what()),
        false => format!("holds a recording, `{}`", found.display()),
    };
    Err(Failure::Usage(format!(
        "error: `--cache {shown}`: the path behind `--cache` is the directory of the cache, and this one {what}\n\
         hint: write `--cache DIR` with a directory for summaries alone before `{shown}`, or leave `--cache` out: \
         `kymo index --summary` and all other commands then use the usual directory"
    )))
}

/// Makes summaries, and keeps them in the cache.
pub(crate) fn run(args: &Index, terminal: &Terminal) -> Result<Outcome, Failure> {
    refuse_recordings(args.cache.as_deref())?;
    let (options, problem) = cached(&args.input, args.cache.as_deref(), args.no_cache);
    let asked = Asked {
        cache: options.cache.clone(),
        ..Asked::default()
    };
    let inputs = inputs_with(&args.input, asked, terminal)?;
    let style = inputs.style();
    let mut outcome = inputs.outcome;
    if let Some(problem) = problem {
        terminal.warning(problem);
    }
    terminal.begin_progress(total_bytes(&inputs.recordings));
    for recording in inputs.recordings {
        let path = recording.path().display().to_string();
        for fault in recording.faults() {
            terminal.fault(fault);
            outcome = Outcome::Damage;
        }
        let begin = Instant::now();
        let index = Timeline::new(vec![recording]).index(options.clone());
        let mut reported = 0;
        while !index.wait_for(Duration::from_millis(50)) {
            let read = index.bytes_read();
            terminal.advance(read - reported);
            reported = read;
        }
        terminal.advance(index.bytes_read() - reported);
        let Some(state) = index.wait().pop() else {
            continue;
        };
        let path = visible(&path);
        if let Some(problem) = &state.problem {
            terminal.warning(format_args!("{path}: {problem}"));
        }
        for fault in &state.faults {
            terminal.fault(fault);
        }
        if state.more_faults > 0 {
            let count = style.count(state.more_faults);
            let what = match state.faults.is_empty() {
                true => "faults within packets",
                false => "more faults",
            };
            terminal.warning(format_args!(
                "{path}: {what}: {count}; `kymo check` lists them"
            ));
        }
        if !state.faults.is_empty() || state.more_faults > 0 {
            outcome = Outcome::Damage;
        }
        if state.bytes == 0 {
            outcome = Outcome::Damage;
            continue;
        }
        let mut line = format!(
            "{path}: {} rows on {} tracks, {} bytes ({:.2} a row)",
            style.count(state.rows),
            style.count(state.tracks as u64),
            style.count(state.bytes),
            state.bytes as f64 / state.rows.max(1) as f64
        );
        // Nothing is written to a string in vain.
        let _ = match (state.read, state.rows) {
            (0, 1..) => write!(line, ", unchanged"),
            (read, rows) if read < rows => write!(line, ", {} new rows read", style.count(read)),
            _ => Ok(()),
        };
        let _ = writeln!(line, ", {:.3} s", begin.elapsed().as_secs_f64());
        terminal.write(line.as_bytes())?;
    }
    terminal.end_progress();
    Ok(outcome)
}
