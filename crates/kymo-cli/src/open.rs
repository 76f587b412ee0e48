//! From arguments to open recordings and filters.

use kymo::AnyRecording;
use kymo::filter::{Filter, Query, TimeQuery};
use kymo::open::{Error, OpenError, Opened, Options, Placing, TraceOptions, open_placed};
use kymo_model::Recording;

use crate::args::key::KeyFile;
use crate::args::{Input, Selection, Work};
use crate::terminal::{Failure, Outcome, Terminal};

/// How much is asked of traces when they are opened.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Asked {
    /// Whether packets say what their indexes do.
    pub(crate) indexes: bool,
    /// Whether metadata that is cut will do.
    pub(crate) cut_metadata: bool,
}

/// How recordings are opened.
fn open_options(input: &Input, asked: Asked) -> Options {
    Options {
        trace: TraceOptions {
            clock_offset_seconds: input.clock_offset,
            clock_offset_nanos: input.clock_offset_ns,
            clocks_from_unix_epoch: input.clock_force_correlate,
            keys: input.key_file.iter().map(|file| file.key.clone()).collect(),
            compares_indexes: asked.indexes,
            allows_cut_metadata: asked.cut_metadata,
        },
        machine: input.machine,
        clock: input.clock,
        keys: input.auth_file.clone(),
    }
}

/// Opens the recordings, where they shall lie on the time line.
pub(crate) fn opened(input: &Input) -> Result<Opened, Failure> {
    opened_with(input, Asked::default())
}

fn opened_with(input: &Input, asked: Asked) -> Result<Opened, Failure> {
    let placing = Placing {
        offsets: input.offset.clone(),
        begins: input.align.clone(),
        event: input.align_event.clone(),
    };
    open_placed(
        &input.paths,
        &open_options(input, asked),
        &placing,
        input.clock_gmt,
    )
    .map_err(|error| Failure::Usage(format!("error: {error}")))
}

/// Recordings that are open, and whether all that was asked for is among them.
pub(crate) struct Inputs {
    pub(crate) recordings: Vec<AnyRecording>,
    pub(crate) outcome: Outcome,
}

/// Opens the recordings, and tells of those that cannot be.
pub(crate) fn inputs(input: &Input, terminal: &Terminal) -> Result<Inputs, Failure> {
    inputs_with(input, Asked::default(), terminal)
}

/// The same, where all of the recordings is read: damage is told that an index hides.
pub(crate) fn whole_inputs(input: &Input, terminal: &Terminal) -> Result<Inputs, Failure> {
    let asked = Asked {
        indexes: true,
        cut_metadata: false,
    };
    inputs_with(input, asked, terminal)
}

/// The same, with what is asked of traces.
pub(crate) fn inputs_with(
    input: &Input,
    asked: Asked,
    terminal: &Terminal,
) -> Result<Inputs, Failure> {
    KeyFile::warn(&input.key_file, terminal);
    let Opened {
        recordings,
        errors,
        warnings,
        ..
    } = opened_with(input, asked)?;
    for error in &errors {
        tell_error(error, terminal);
    }
    for warning in &warnings {
        terminal.warning(warning);
    }
    for recording in &recordings {
        tell_warnings(recording, terminal);
    }
    if recordings.is_empty() {
        return Err(Failure::Unreadable);
    }
    Ok(Inputs {
        recordings,
        outcome: if errors.is_empty() {
            Outcome::Good
        } else {
            Outcome::Damage
        },
    })
}

/// Tells why something could not be opened.
fn tell_error(error: &Error, terminal: &Terminal) {
    match error {
        // It is a whole picture.
        Error::Trace(OpenError::Metadata { error, .. }) => {
            let picture = error.render(terminal.color());
            terminal.tell(format!("{}\n", picture.trim_end()).as_bytes());
        }
        error => terminal.error(error),
    }
}

/// Tells what is odd in a recording, or in its metadata.
fn tell_warnings(recording: &AnyRecording, terminal: &Terminal) {
    for note in recording.notes() {
        terminal.warning(format_args!("{}: {note}", recording.path().display()));
    }
    let Some(recording) = recording.as_ctf() else {
        return;
    };
    let metadata = recording.metadata();
    let name = recording.metadata_path().display().to_string();
    for warning in &metadata.warnings {
        let picture = warning.render(&name, &metadata.text, terminal.color());
        terminal.tell(format!("{picture}\n").as_bytes());
    }
}

/// Tells of the damage that opening has shown.
pub(crate) fn tell_opening_faults(inputs: &Inputs, terminal: &Terminal) -> Outcome {
    let mut outcome = inputs.outcome;
    for fault in inputs.recordings.iter().flat_map(Recording::faults) {
        terminal.fault(fault);
        outcome = Outcome::Damage;
    }
    outcome
}

/// Which events are wanted, before it is known of what recordings.
pub(crate) struct Wanted {
    pub(crate) query: Query,
    times: TimeQuery,
    gmt: bool,
}

impl Wanted {
    pub(crate) fn new(selection: &Selection, gmt: bool) -> Self {
        let (begin, end) = match &selection.timerange {
            Some((begin, end)) => (Some(begin.clone()), Some(end.clone())),
            None => (selection.begin.clone(), selection.end.clone()),
        };
        Self {
            query: Query {
                events: selection.event.clone(),
                condition: selection.condition.clone(),
            },
            times: TimeQuery {
                begin,
                end,
                intersection: selection.stream_intersection,
            },
            gmt,
        }
    }

    /// The filter for some recordings.
    pub(crate) fn filter(
        &self,
        recordings: &[AnyRecording],
        terminal: &Terminal,
    ) -> Result<Filter, Failure> {
        let windows = self
            .times
            .windows(recordings, self.gmt)
            .map_err(|error| Failure::Usage(format!("error: {error}")))?;
        Filter::new(&self.query, &windows, recordings)
            .map_err(|error| Failure::Usage(error.render("--where", terminal.color())))
    }

    /// Warns of patterns that match no event.
    pub(crate) fn warn_of_idle_patterns(&self, recordings: &[AnyRecording], terminal: &Terminal) {
        warn_of_idle_patterns(&self.query, recordings, terminal);
    }
}

/// Warns of patterns of a query that match no event.
pub(crate) fn warn_of_idle_patterns(
    query: &Query,
    recordings: &[AnyRecording],
    terminal: &Terminal,
) {
    for (glob, meant) in query.idle_patterns(recordings) {
        let hint = meant.map_or_else(String::new, |name| format!("; there is `{name}`"));
        terminal.warning(format_args!(
            "no event is called `{}`{hint}",
            glob.pattern()
        ));
    }
}

/// How many threads work.
pub(crate) fn threads(work: &Work) -> usize {
    work.threads.count()
}

/// The size of all chunks, in bytes.
pub(crate) fn total_bytes(recordings: &[AnyRecording]) -> u64 {
    let chunks = |of: &AnyRecording| -> u64 {
        (0..of.streams().len())
            .flat_map(|stream| of.chunks(stream))
            .map(|chunk| chunk.bytes)
            .sum()
    };
    recordings.iter().map(chunks).sum()
}
