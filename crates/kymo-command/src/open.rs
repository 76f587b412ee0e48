//! From arguments to open recordings and filters.

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::Arc;

use kymo::AnyRecording;
use kymo::filter::{Filter, Query, TimeQuery, looks_like_regex};
use kymo::open::{
    Alignment, Error, FileFormat, Hint, Known, OpenError, Opened, Options, TraceOptions, apart,
    are_relative, clocks_apart, open_aligned,
};
use kymo::pipeline::Window;
use kymo::report::Style;
use kymo::timeline::{Cache, Watched};
use kymo_cpel::points::PointDefinitions;
use kymo_io::STANDARD_INPUT;
use kymo_model::{Recording, Shift};
use kymo_text::diagnostic::{Diagnostic, Severity};
use kymo_time::{NANOS_PER_SECOND, Timestamp};

use crate::args::{Input, LiveFrom, Selection, Work};
use crate::key::KeyFile;
use crate::live::Live;
use crate::points::PointFile;
use crate::terminal::{Failure, Outcome, Terminal};

/// How much is asked of traces when they are opened.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// Whether nothing may be wrong: warnings of metadata are errors.
    pub strict: bool,
    /// Whether packets say what their indexes do.
    pub indexes: bool,
    /// Whether metadata that is cut will do.
    pub cut_metadata: bool,
    /// Whether packets are put in the order of time.
    pub sorted: bool,
    /// Whether of sessions of LTTng live only what has come so far is wanted.
    pub so_far: bool,
    /// Whether recordings are waited for in directories that have none.
    pub waits: bool,
    /// Where packets may be known from.
    pub cache: Option<Cache>,
}

/// How recordings are opened.
fn open_options(input: &Input, asked: Asked, hint: Hint) -> Options {
    Options {
        trace: TraceOptions {
            keys: input.key_file.iter().map(|file| file.key.clone()).collect(),
            compares_indexes: asked.indexes,
            allows_cut_metadata: asked.cut_metadata,
            sorts_packets: asked.sorted,
        },
        shift: Shift {
            nanos: i128::from(input.clock_offset) * i128::from(NANOS_PER_SECOND)
                + i128::from(input.clock_offset_ns),
            from_unix_epoch: input.clock_force_correlate,
        },
        machine: input.machine,
        clock: input.clock,
        points: points(&input.pointdefs),
        keys: input.auth_file.clone(),
        known: Known::default(),
        cache: asked.cache,
        formats: formats(),
        hint,
    }
}

/// The formats that this program was built with beside those of the library.
fn formats() -> &'static [FileFormat] {
    #[cfg(feature = "arrow")]
    return kymo_arrow::FORMATS;
    #[cfg(not(feature = "arrow"))]
    &[]
}

/// The events of all headers.
fn points(headers: &[PointFile]) -> Option<Arc<PointDefinitions>> {
    let mut points = PointDefinitions::default();
    for header in headers {
        header.add_to(&mut points);
    }
    (!headers.is_empty()).then(|| Arc::new(points))
}

/// What distinguishes summaries of recordings opened this way from others; `None` if they are not kept.
pub fn index_key(input: &Input) -> Option<Vec<u8>> {
    // Summaries hold for any shift of a recording, but not for a clock of another speed.
    if input.align_by_messages.is_some() || input.alignment.is_some() {
        return None;
    }
    open_options(input, Asked::default(), Hint::default()).index_key()
}

/// Opens the recordings at their places on the time line.
pub(crate) fn opened_with(
    input: &Input,
    asked: Asked,
    known: Known,
    hint: Hint,
) -> Result<Opened, Failure> {
    let is_input = |path: &&PathBuf| path.as_os_str() == STANDARD_INPUT;
    if input.paths.iter().filter(is_input).count() > 1 {
        let problem = format!(
            "error: `{STANDARD_INPUT}` is specified twice: standard input can be read only once\n\
             hint: write one of the inputs to a file"
        );
        return Err(Failure::Usage(problem));
    }
    if input.paths.iter().any(|path| is_input(&path)) && io::stdin().is_terminal() {
        return Err(Failure::Usage(
            "error: standard input is a terminal, not a recording\n\
             hint: pipe a recording into kymo, such as `xz -dc trace.tar.xz | kymo print -`"
                .to_string(),
        ));
    }
    let alignment = Alignment {
        offsets: input.offset.clone(),
        begins: input.align.clone(),
        event: input.align_event.clone(),
        messages: input.align_by_messages.clone(),
        file: input.alignment.clone(),
    };
    let options = Options {
        known,
        ..open_options(input, asked, hint)
    };
    let usage = |error| Failure::Usage(format!("error: {error}"));
    let opened =
        open_aligned(&input.paths, &options, &alignment, input.clock_gmt).map_err(usage)?;
    if let Some(path) = &input.save_alignment {
        opened.corrections.write(path).map_err(usage)?;
    }
    Ok(opened)
}

/// Recordings that are open, and whether all that was asked for is among them.
pub struct Inputs {
    /// The recordings.
    pub recordings: Vec<AnyRecording>,
    /// Where recordings may appear.
    pub watched: Watched,
    /// Whether all recordings could be opened.
    pub outcome: Outcome,
    /// The number of those that could not.
    pub unreadable: usize,
    /// Whether times are shown and read in UTC: so are those without an origin, since they are in no
    /// time zone.
    pub gmt: bool,
    clock_gmt: bool,
    /// Whether times count from the zero of clocks without an origin.
    pub is_relative: bool,
    /// A warning and a hint, where some of the recordings have no origin and others do.
    apart: Option<(String, String)>,
}

impl Inputs {
    /// How reports write times.
    pub fn style(&self) -> Style {
        Style::new(self.clock_gmt).with_relative(self.is_relative)
    }
}

/// Opens the recordings, and reports those that cannot be opened.
pub fn inputs(input: &Input, strict: bool, terminal: &Terminal) -> Result<Inputs, Failure> {
    let asked = Asked {
        strict,
        ..Asked::default()
    };
    inputs_with(input, asked, terminal)
}

/// The same, for commands that read all of the recordings: damage that an index hides is reported.
pub fn whole_inputs(input: &Input, strict: bool, terminal: &Terminal) -> Result<Inputs, Failure> {
    let asked = Asked {
        strict,
        indexes: true,
        ..Asked::default()
    };
    inputs_with(input, asked, terminal)
}

/// The same, with what is asked of traces.
pub fn inputs_with(input: &Input, asked: Asked, terminal: &Terminal) -> Result<Inputs, Failure> {
    hinted_inputs(input, asked, Hint::default(), terminal)
}

/// The same, of which no more is read than what options choose: of tables, the rest need not be opened.
pub fn selected_inputs(
    input: &Input,
    selection: &Selection,
    asked: Asked,
    terminal: &Terminal,
) -> Result<Inputs, Failure> {
    let wanted = Wanted::new(selection, input.clock_gmt);
    let hint = Hint {
        window: match is_shifted(input) {
            true => Window::ALL,
            false => wanted.times.absolute().unwrap_or(Window::ALL),
        },
        events: wanted.query.events,
    };
    hinted_inputs(input, asked, hint, terminal)
}

/// Whether times may not be those that are recorded.
fn is_shifted(input: &Input) -> bool {
    input.clock_offset != 0
        || input.clock_offset_ns != 0
        || input.clock_force_correlate
        || !input.offset.is_empty()
        || !input.align.is_empty()
        || input.align_event.is_some()
        || input.align_by_messages.is_some()
        || input.alignment.is_some()
}

/// Refuses options that are for sessions of LTTng live only.
fn refuse_live_options(input: &Input) -> Result<(), Failure> {
    let live = &input.live;
    let given = [
        ("--live-from now", live.live_from == LiveFrom::Now),
        ("--live-for", live.live_for.is_some()),
        ("--live-wait", live.live_wait),
    ];
    match given.iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => Err(Failure::Usage(format!(
            "error: `{option}` is for sessions of LTTng live: no path begins with `net://`"
        ))),
        None => Ok(()),
    }
}

fn hinted_inputs(
    input: &Input,
    asked: Asked,
    hint: Hint,
    terminal: &Terminal,
) -> Result<Inputs, Failure> {
    KeyFile::warn(&input.key_file, terminal);
    if !Live::is_in(input) {
        refuse_live_options(input)?;
        return opened_inputs(input, asked, hint, Outcome::Good, terminal);
    }
    let mut live = Live::open(input, None, terminal)?;
    let outcome = live.collect(asked.so_far, terminal);
    let mut inputs = opened_inputs(live.input(), asked, hint, outcome, terminal)?;
    live.rename(&mut inputs.recordings);
    // The files are mapped: they stay when their names go.
    Ok(inputs)
}

/// Opens what there is; `outcome` says whether getting it has gone well.
pub(crate) fn opened_inputs(
    input: &Input,
    asked: Asked,
    hint: Hint,
    outcome: Outcome,
    terminal: &Terminal,
) -> Result<Inputs, Failure> {
    let opened = opened_with(input, asked.clone(), Known::default(), hint.clone())?;
    let apart = apart(&opened, &input.paths);
    let watched = Watched::new(
        &input.paths,
        &open_options(input, asked.clone(), hint),
        &opened,
    );
    let Opened {
        recordings,
        mut errors,
        warnings,
        notes,
        ..
    } = opened;
    if asked.waits && !recordings.is_empty() {
        errors.retain(|error| match error {
            Error::NothingFound { path, .. } => {
                let path = path.display();
                terminal.warning(format_args!("no recording is in `{path}` so far"));
                false
            }
            _ => true,
        });
    }
    for error in &errors {
        report_error(error, terminal);
    }
    for warning in warnings.iter().chain(&clocks_apart(&recordings)) {
        terminal.warning(warning);
    }
    for note in &notes {
        terminal.report(format!("{note}\n").as_bytes());
    }
    let traces = recordings.iter().filter_map(|recording| recording.as_ctf());
    for trace in traces.filter(|trace| !input.key_file.is_empty() && trace.has_exposed_metadata()) {
        terminal.warning(format_args!(
            "{}: the metadata is not encrypted as packets are: anybody may have written it",
            trace.metadata_path().display()
        ));
    }
    let mut are_right = true;
    for recording in &recordings {
        warn_of_no_datagrams(recording, terminal);
        are_right &= report_warnings(recording, asked.strict, terminal);
    }
    if recordings.is_empty() && !input.paths.is_empty() {
        return Err(Failure::Unreadable);
    }
    if !are_right {
        return Err(Failure::Refused);
    }
    let is_relative = are_relative(&recordings);
    Ok(Inputs {
        recordings,
        watched,
        outcome: if errors.is_empty() {
            outcome
        } else {
            Outcome::Damage
        },
        unreadable: errors.len(),
        gmt: input.clock_gmt || is_relative,
        clock_gmt: input.clock_gmt,
        is_relative,
        apart,
    })
}

/// Opens recordings again that have grown, and says nothing of what cannot be opened now. Of those that are `known`, what
/// has not changed is not read again.
pub fn reopened(input: &Input, asked: Asked, known: &[AnyRecording]) -> Option<Vec<AnyRecording>> {
    let opened = opened_with(input, asked, Known::new(known), Hint::default()).ok()?;
    (!opened.recordings.is_empty()).then_some(opened.recordings)
}

/// Reports why something could not be opened.
fn report_error(error: &Error, terminal: &Terminal) {
    match error {
        // It is a whole picture.
        Error::Trace(OpenError::Metadata { error, .. }) => {
            let picture = error.render(terminal.color());
            terminal.report(format!("{}\n", picture.trim_end()).as_bytes());
        }
        error => {
            terminal.error(error);
            if let Some(hint) = error.hint() {
                terminal.hint(hint);
            }
        }
    }
}

/// Warns of what is odd in a recording, or in its metadata; returns whether it may be used.
fn report_warnings(recording: &AnyRecording, strict: bool, terminal: &Terminal) -> bool {
    for note in recording.notes() {
        terminal.warning(format_args!("{}: {note}", recording.path().display()));
    }
    let Some(recording) = recording.as_ctf() else {
        return true;
    };
    let metadata = recording.metadata();
    let name = recording.metadata_path().display().to_string();
    for warning in &metadata.warnings {
        let severity = match strict {
            true => Severity::Error,
            false => warning.severity,
        };
        let reported = Diagnostic {
            severity,
            ..warning.clone()
        };
        let picture = reported.render(&name, &metadata.text, terminal.color());
        terminal.report(format!("{picture}\n").as_bytes());
    }
    !strict || metadata.warnings.is_empty()
}

/// Warns of a capture of the network in which collectd did not take part.
fn warn_of_no_datagrams(recording: &AnyRecording, terminal: &Terminal) {
    let AnyRecording::Metrics(metrics) = recording else {
        return;
    };
    if metrics.datagrams() == 0 {
        let path = recording.path().display();
        terminal.warning(format_args!(
            "`{path}` is a capture of the network without datagrams of collectd"
        ));
        terminal.hint(
            "collectd sends to UDP port 25826: `tcpdump -w FILE udp port 25826` captures that",
        );
    }
}

/// Reports the damage found while opening.
pub fn report_opening_faults(inputs: &Inputs, terminal: &Terminal) -> Outcome {
    let mut outcome = inputs.outcome;
    for fault in inputs.recordings.iter().flat_map(Recording::faults) {
        terminal.fault(fault);
        outcome = Outcome::Damage;
    }
    outcome
}

/// Which events are wanted, before it is known of what recordings.
pub struct Wanted {
    /// Which events, beside their time.
    pub query: Query,
    times: TimeQuery,
    gmt: bool,
}

impl Wanted {
    /// What options choose.
    pub fn new(selection: &Selection, gmt: bool) -> Self {
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

    /// From when to when events are wanted, by recording.
    pub fn windows(&self, recordings: &[AnyRecording]) -> Result<Vec<Window>, Failure> {
        let windows = self.times.windows(recordings, self.gmt);
        windows.map_err(|error| Failure::Usage(format!("error: {error}")))
    }

    /// The filter for some recordings.
    pub fn filter(
        &self,
        recordings: &[AnyRecording],
        terminal: &Terminal,
    ) -> Result<Filter, Failure> {
        let windows = self.windows(recordings)?;
        Filter::new(&self.query, &windows, recordings)
            .map_err(|error| Failure::Usage(error.render("--where", terminal.color())))
    }

    /// Warns of what hardly was meant so: recordings decades apart, patterns, conditions and times that
    /// match no event.
    ///
    /// Returns whether a warning says why no event matches.
    pub fn warn(&self, inputs: &Inputs, filter: &Filter, terminal: &Terminal) -> bool {
        if let Some((warning, hint)) = &inputs.apart {
            terminal.warning(warning);
            terminal.hint(hint);
        }
        let mut is_explained = warn_of_idle_patterns(&self.query, &inputs.recordings, terminal);
        for warning in filter.warnings() {
            terminal.warning_picture(&warning.render("--where", terminal.color()));
            is_explained = true;
        }
        if let Some((wanted, spanned)) = self.times.misses(&inputs.recordings, self.gmt) {
            let style = inputs.style();
            let (begin, end) = (style.time(wanted.begin), style.time(wanted.end));
            let wanted = match (wanted.begin == Timestamp::MIN, wanted.end == Timestamp::MAX) {
                (_, true) => format!("from {begin}"),
                (true, _) => format!("to {end}"),
                _ => format!("{begin} to {end}"),
            };
            terminal.warning(format_args!(
                "no event is in the given time range, {wanted}: the recordings span {} to {}",
                style.time(spanned.begin),
                style.time(spanned.end)
            ));
            if let Some(hint) = self.times.hint(&inputs.recordings, self.gmt) {
                terminal.hint(hint);
            }
            is_explained = true;
        }
        is_explained
    }

    /// Warns that no event was found, if filters were set; `is_damaged` says whether some could not be read. Call it if no
    /// other warning said why.
    pub fn warn_of_none(&self, recordings: &[AnyRecording], is_damaged: bool, terminal: &Terminal) {
        let has_times = self.times.begin.is_some() || self.times.end.is_some();
        let filters = [
            ("--event", !self.query.events.is_empty()),
            ("--where", self.query.condition.is_some()),
            ("the time range", has_times),
            ("--stream-intersection", self.times.intersection),
        ];
        let set = filters.iter().filter(|(_, is_set)| *is_set);
        let set: Vec<_> = set.map(|(name, _)| *name).collect();
        if set.is_empty() {
            return;
        }
        terminal.warning(format_args!("no event matched {}", set.join(" and ")));
        let path = recordings
            .first()
            .map(|recording| recording.path().display().to_string());
        let path = path.unwrap_or_default();
        terminal.hint(match has_times {
            _ if is_damaged => format!(
                "not all of the recordings could be read, as reported above: if `{path}` is whole where it was recorded, \
                 copy it again"
            ),
            true => format!("`kymo info {path}` shows when the recording begins and ends"),
            false if self.query.condition.is_some() => {
                format!("`kymo values --field FIELD {path}` shows which values a field has")
            }
            false => format!("`kymo stats {path}` shows which events there are"),
        });
    }
}

/// Warns of patterns of a query that match no event; returns whether none of its patterns matches one.
pub fn warn_of_idle_patterns(
    query: &Query,
    recordings: &[AnyRecording],
    terminal: &Terminal,
) -> bool {
    let idle = query.idle_patterns(recordings);
    for (glob, meant) in &idle {
        let pattern = glob.pattern();
        terminal.warning(format_args!("no event is called `{pattern}`"));
        terminal.hint(match meant {
            Some(name) => format!("did you mean `{name}`?"),
            None if looks_like_regex(pattern) => format!(
                "`{pattern}` is read as a glob (`*` stands for any text); \
                 write a regular expression as --where 'event.name =~ \"{pattern}\"'"
            ),
            None => "`kymo info` lists the events of a recording".to_string(),
        });
    }
    !idle.is_empty() && idle.len() == query.events.len()
}

/// Whether the paths are directories without recordings.
pub fn are_empty(input: &Input) -> bool {
    let opened = opened_with(input, Asked::default(), Known::default(), Hint::default());
    let is_empty = |error: &Error| matches!(error, Error::NothingFound { .. });
    opened.is_ok_and(|opened| {
        let is_none = opened.recordings.is_empty() && !opened.errors.is_empty();
        is_none && opened.errors.iter().all(is_empty)
    })
}

/// How many threads work.
pub fn threads(work: &Work) -> usize {
    work.threads.count()
}

/// The size of all chunks, in bytes.
pub fn total_bytes(recordings: &[AnyRecording]) -> u64 {
    let chunks = |recording: &AnyRecording| -> u64 {
        (0..recording.streams().len())
            .flat_map(|stream| recording.chunks(stream))
            .map(|chunk| chunk.bytes)
            .sum()
    };
    recordings.iter().map(chunks).sum()
}
