//! `kymo convert`.

mod pieces;
#[cfg_attr(not(feature = "arrow"), path = "convert/no_tables.rs")]
mod tables;
mod target;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::num::NonZeroU32;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use kymo::convert::chrome::Chrome;
use kymo::convert::cpel::{self, Cpel, CpelOptions, CpelPlan, Cut, Keep};
use kymo::convert::elog::{Elog, ElogPlan};
use kymo::convert::jsonl::Jsonl;
use kymo::convert::perfetto::Perfetto;
use kymo::convert::rrd::{self, Rrd};
use kymo::convert::{Losses, Pieces, TrackBinding, TrackOptions, UnknownField};
use kymo::filter::{Filter, Query};
use kymo::pipeline::{self, Output, Summary, Watched};
use kymo::show::{Sink, WallOptions};
use kymo::{AnyRecording, Discarded};
use kymo_cpel::write;
use kymo_ctf::class::Dialect;
use kymo_io::{Replace, replace};
use kymo_machine::ByteOrder;
use kymo_model::FaultReport;

pub(crate) use self::pieces::{content, cut_logs, cut_pieces};
use crate::args::Selection;
use crate::args::convert::{Convert, To};
use crate::ctf::{self, Stop};
use crate::links::split;
use crate::open::{
    Inputs, Wanted, report_opening_faults, threads, total_bytes, warn_of_idle_patterns,
    whole_inputs,
};
use crate::print::csv;
use crate::rrd::default_format;
use crate::terminal::{Failure, Outcome, Terminal, error_at};

use target::{
    is_stdout, opens_with, refuse_found_input, refuse_options_of_others, refuse_output, target,
};

/// Ticks of a second where they are nanoseconds.
const NANOSECONDS: NonZeroU32 = NonZeroU32::new(1_000_000_000).expect("it is not zero");

/// Converts recordings.
pub(crate) fn run(args: &Convert, terminal: &Terminal) -> Result<Outcome, Failure> {
    let to = target(args)?;
    refuse_options_of_others(args, to)?;
    refuse_output(args, to)?;
    let inputs = whole_inputs(&args.input, args.work.strict, terminal)?;
    let job = Job::new(args, to, &inputs, terminal)?;
    if job.is_refused() {
        return Ok(job.outcome);
    }
    if matches!(to, To::Parquet | To::Arrow) {
        let wanted = job.wanted();
        let windows = wanted.windows(job.recordings)?;
        let (query, outcome) = (wanted.query, job.outcome);
        let written = tables::run(args, to, (query, windows), inputs, terminal)?;
        if !is_stdout(&args.output) {
            terminal.wrote(&args.output, &opens_with(&args.output, to));
        }
        return Ok(match outcome {
            Outcome::Good => written,
            _ => outcome,
        });
    }
    if ctf::dialect(to).is_some() {
        return traces(to, &inputs, &job);
    }
    job.ended(job.written(to), &opens_with(&args.output, to))
}

/// Reports what the recorders of the inputs discarded.
pub(crate) fn report_discarded(discarded: &Discarded, terminal: &Terminal) {
    terminal.warning(format_args!(
        "the recording lacks {discarded} that the recorder discarded"
    ));
}

/// Writes traces.
fn traces(to: To, inputs: &Inputs, job: &Job<'_>) -> Result<Outcome, Failure> {
    let dialect = ctf::dialect(to).unwrap_or(Dialect::Ctf18);
    let written = ctf::convert(job.args, dialect, inputs, &job.filter, job.terminal)?;
    (job.terminal).wrote(job.output, &opens_with(job.output, to));
    Ok(match job.outcome {
        Outcome::Good => written,
        outcome => outcome,
    })
}

/// What is converted.
struct Job<'a> {
    args: &'a Convert,
    terminal: &'a Terminal,
    recordings: &'a [AnyRecording],
    gmt: bool,
    output: &'a Path,
    filter: Filter,
    /// Whether it was said already why no event may be found.
    is_explained: bool,
    /// What opening the inputs has shown.
    outcome: Outcome,
}

impl<'a> Job<'a> {
    /// What `args` ask of recordings, which are open. Reports damage of these.
    fn new(
        args: &'a Convert,
        to: To,
        inputs: &'a Inputs,
        terminal: &'a Terminal,
    ) -> Result<Self, Failure> {
        refuse_found_input(args, to, &inputs.recordings)?;
        let wanted = Wanted::new(&args.selection, inputs.gmt);
        let filter = wanted.filter(&inputs.recordings, terminal)?;
        let is_explained = wanted.warn(inputs, &filter, terminal);
        Ok(Self {
            args,
            terminal,
            recordings: &inputs.recordings,
            gmt: inputs.gmt,
            output: &args.output,
            filter,
            is_explained,
            outcome: report_opening_faults(inputs, terminal),
        })
    }

    fn wanted(&self) -> Wanted {
        Wanted::new(&self.args.selection, self.gmt)
    }

    /// Whether damage that was found already ends the work.
    fn is_refused(&self) -> bool {
        self.args.work.strict && self.outcome != Outcome::Good
    }

    /// How times are shown in warnings.
    fn wall(&self) -> WallOptions {
        WallOptions {
            gmt: self.gmt,
            ..WallOptions::default()
        }
    }

    /// What events mean on a time line.
    fn binding(&self) -> Result<TrackBinding, Stop> {
        let args = self.args;
        let options = TrackOptions {
            track: args.track.clone(),
            slices: args.slice.clone(),
            counters: args.counter.clone(),
            flows: args.flow.clone(),
        };
        let recordings = self.recordings;
        let query = Query {
            events: options.patterns(),
            condition: None,
        };
        warn_of_idle_patterns(&query, recordings, self.terminal);
        TrackBinding::new(options, recordings).map_err(|error| self.unknown(&error))
    }

    fn unknown(&self, unknown: &UnknownField) -> Stop {
        let color = self.terminal.color();
        Stop::Failure(Failure::Usage(unknown.error.render(unknown.option, color)))
    }

    /// Writes the output.
    fn written(&self, to: To) -> Result<Summary, Stop> {
        let args = self.args;
        let wall = self.wall();
        let recordings = self.recordings;
        match to {
            To::Jsonl => self.stream(&mut Jsonl::new(args.times.into(), wall)),
            To::Csv => self.stream(&mut csv(
                &args.selection.event,
                recordings,
                args.times.into(),
                wall,
            )),
            To::Perfetto => {
                let binding = self.binding()?;
                let mut perfetto = Perfetto::new(recordings, &binding, wall);
                let done = self.stream(&mut perfetto);
                self.reported(done, perfetto.losses())
            }
            To::Chrome => {
                let binding = self.binding()?;
                let mut chrome = Chrome::new(recordings, &binding, wall);
                let done = self.stream(&mut chrome);
                self.reported(done, chrome.losses())
            }
            To::Cpel => self.cpel(wall),
            To::Elog => self.elog(wall),
            To::Rrd => self.database(wall),
            // They are not written by this pipeline.
            To::Ctf18 | To::Ctf2 | To::CtfRfc | To::Parquet | To::Arrow => Ok(Summary::default()),
        }
    }

    /// Runs the pipeline into an output.
    fn run<A: Sink>(&self, sink: &mut A, out: &mut dyn Write) -> Result<Summary, Stop> {
        let Self {
            args,
            terminal,
            recordings,
            filter,
            ..
        } = self;
        let bytes = total_bytes(recordings);
        match is_stdout(self.output) {
            true => terminal.begin_progress(bytes),
            false => terminal.show_progress(bytes),
        }
        let progress = |bytes| terminal.advance(bytes);
        let select = Watched::new(recordings, filter, &progress, None);
        let options = pipeline::Options {
            threads: threads(&args.work),
            ..pipeline::Options::default()
        };
        let mut output = FileOutput {
            out,
            terminal,
            strict: args.work.strict,
        };
        let summary = pipeline::run(recordings, &select, &options, sink, &mut output)?;
        terminal.end_progress();
        match args.work.strict && summary.faults > 0 {
            true => Err(Stop::Damage),
            false => Ok(summary),
        }
    }

    /// How the program ends. Warns if no event was found and nothing else says why.
    fn ended(&self, done: Result<Summary, Stop>, opens_with: &str) -> Result<Outcome, Failure> {
        let (args, terminal) = (self.args, self.terminal);
        if let Ok(summary) = &done
            && !summary.discarded.is_empty()
        {
            // Text reports each loss where it occurred.
            if !matches!(target(args), Ok(To::Jsonl | To::Csv)) {
                report_discarded(&summary.discarded, terminal);
            }
            if args.work.strict {
                return Ok(Outcome::Damage);
            }
        }
        if !self.is_explained
            && let Ok(Summary {
                events: 0, faults, ..
            }) = &done
        {
            let is_damaged = *faults > 0 || self.outcome != Outcome::Good;
            self.wanted()
                .warn_of_none(self.recordings, is_damaged, terminal);
        }
        if done.is_ok() && !is_stdout(self.output) {
            terminal.wrote(self.output, opens_with);
        }
        match done {
            Ok(Summary { faults: 0, .. }) => Ok(self.outcome),
            Ok(_) | Err(Stop::Damage) => Ok(Outcome::Damage),
            Err(Stop::Failure(failure)) => Err(failure),
        }
    }

    /// Writes what a sink makes as it comes.
    fn stream<A: Sink>(&self, sink: &mut A) -> Result<Summary, Stop> {
        if is_stdout(self.output) {
            let mut stdout = io::stdout();
            let done = self.run(sink, &mut stdout);
            stdout.flush()?;
            return done;
        }
        self.write(|file| {
            // Most parts are larger, and are not copied.
            let mut out = BufWriter::with_capacity(1 << 15, file);
            let summary = self.run(sink, &mut out)?;
            out.flush()?;
            Ok(summary)
        })
    }

    /// Hands all events to a sink, and then writes what it has gathered.
    fn gather<A: Sink>(
        &self,
        mut sink: A,
        write: impl FnOnce(A, &mut dyn Write) -> io::Result<()>,
    ) -> Result<Summary, Stop> {
        let summary = self.run(&mut sink, &mut io::sink())?;
        self.write(|file| {
            let mut out = BufWriter::with_capacity(1 << 18, file);
            write(sink, &mut out)?;
            Ok(out.flush()?)
        })?;
        Ok(summary)
    }

    /// Writes the output as a whole.
    fn write<T>(&self, write: impl FnOnce(&mut File) -> Result<T, Stop>) -> Result<T, Stop> {
        let output = self.output;
        let like = output.metadata().is_ok().then_some(output);
        let how = Replace {
            like,
            modified: false,
            ..Replace::NEW
        };
        let split = split(output);
        let written = replace(output, how, write).map_err(|stop| match stop {
            Stop::Failure(Failure::Output(error)) => error_at(output.display(), &error).into(),
            stop => stop,
        })?;
        if let Some(split) = split {
            self.terminal.warning(split);
        }
        Ok(written)
    }

    /// Warns about what the output cannot hold, once it is written.
    fn reported(&self, done: Result<Summary, Stop>, losses: &Losses) -> Result<Summary, Stop> {
        if done.is_ok() {
            for line in losses.lines() {
                self.terminal.warning(line);
            }
        }
        done
    }

    /// Makes a CPEL file.
    fn cpel(&self, wall: WallOptions) -> Result<Summary, Stop> {
        let args = self.args;
        let recordings = self.recordings;
        let order = args.byte_order.map(Into::into);
        if let [only] = recordings
            && self.is_whole()
            && cpel::is_copied(only)
        {
            let losses = self.write(|file| copy(only, order, file))?;
            return self.reported(Ok(Summary::default()), &losses);
        }
        let is_as_it_is = args.text.is_none() && args.datum.is_none() && args.track.is_none();
        if let [only @ AnyRecording::Cpel(log)] = recordings
            && is_as_it_is
            && cpel::is_cut(only)
        {
            let has_own_times = log.has_own_clocks() && self.is_where_it_was();
            let clock = args
                .ticks
                .or_else(|| (!has_own_times).then_some(NANOSECONDS));
            let cut = Cut::new(order.unwrap_or(log.byte_order()), clock);
            let done = self.gather(Pieces::new(wall), |pieces, mut out| {
                cut.write(&pieces, only, &mut out)
            });
            return self.reported(done, cut.losses());
        }
        let keep = match &args.datum {
            Some(field) => Keep::Datum(field.clone()),
            None if args.text.is_some() => Keep::Text,
            None if recordings.iter().all(AnyRecording::is_log) => Keep::Own,
            None => {
                let problem = "error: a CPEL file holds one number or text of each event\n\
                    hint: `--text` keeps all fields as text, `--datum FIELD` one of them";
                return Err(Stop::Failure(Failure::Usage(problem.to_string())));
            }
        };
        let options = CpelOptions {
            keep,
            track: args.track.clone(),
            order: order.unwrap_or(ByteOrder::Big),
            clock: args.ticks.unwrap_or(NANOSECONDS),
        };
        let plan = CpelPlan::new(options, recordings).map_err(|error| self.unknown(&error))?;
        let log = Cpel::new(recordings, &plan, wall);
        let losses = Arc::clone(log.losses());
        let done = self.gather(log, |log, mut out| log.write(&mut out).map_err(into_io));
        self.reported(done, &losses)
    }

    /// Makes an elog file.
    fn elog(&self, wall: WallOptions) -> Result<Summary, Stop> {
        let recordings = self.recordings;
        if let [AnyRecording::Elog(only)] = recordings
            && self.is_whole()
        {
            self.write(|file| Ok(file.write_all(only.bytes())?))?;
            return Ok(Summary::default());
        }
        let plan = ElogPlan::new(self.args.track.as_ref(), recordings);
        let plan = plan.map_err(|error| self.unknown(&error))?;
        let log = Elog::new(recordings, &plan, wall);
        let losses = Arc::clone(log.losses());
        let done = self.gather(log, |log, mut out| log.write(&mut out).map_err(into_io));
        self.reported(done, &losses)
    }

    /// Whether nothing is asked for that needs a look at single events.
    fn is_whole(&self) -> bool {
        let args = self.args;
        let Selection {
            event,
            condition,
            begin,
            end,
            timerange,
            stream_intersection,
        } = &args.selection;
        let all_events = event.is_empty() && condition.is_none() && !stream_intersection;
        let all_times = begin.is_none() && end.is_none() && timerange.is_none();
        let as_it_is = args.track.is_none() && args.datum.is_none() && args.ticks.is_none();
        all_events && all_times && as_it_is && self.is_where_it_was() && args.text.is_none()
    }

    /// Whether no option changes times.
    fn is_where_it_was(&self) -> bool {
        let input = &self.args.input;
        let its_clock = input.clock_offset == 0 && input.clock_offset_ns == 0;
        let its_place = input.offset.is_empty()
            && input.align.is_empty()
            && input.align_event.is_none()
            && input.align_by_messages.is_none()
            && input.alignment.is_none();
        its_clock && its_place
    }

    /// Makes a database.
    fn database(&self, wall: WallOptions) -> Result<Summary, Stop> {
        let args = self.args;
        let usage = |problem: &str| Stop::Failure(Failure::Usage(format!("error: {problem}")));
        let value = match (&args.value, args.count) {
            (Some(field), _) => {
                let function = args.cf.map_or(rrd::Function::Average, Into::into);
                Some((field.clone(), function))
            }
            (None, true) => None,
            (None, false) => {
                return Err(usage(
                    "a database holds numbers: none are specified\nhint: `--count` counts events, `--value FIELD` keeps the values of a field",
                ));
            }
        };
        let Some(step) = args.step else {
            return Err(usage(
                "a database needs the time from one row to the next\nhint: specify it with `--step`, such as `--step 1s`",
            ));
        };
        let target = match args.format {
            Some(target) => target,
            None => default_format().map_err(|error| usage(&error))?,
        };
        let options = rrd::RrdOptions {
            value,
            track: args.track.clone(),
            step,
            rows: args.rows,
            target,
        };
        let recordings = self.recordings;
        let binding = options
            .binding(recordings)
            .map_err(|error| self.unknown(&error))?;
        let mut counted = Rrd::new(recordings, options, &binding, wall);
        let summary = self.run(&mut counted, &mut io::sink())?;
        if let Some(extent) = counted.extent()
            && extent.is_mostly_empty()
        {
            self.terminal.warning(extent);
            let hint = "hint: `--begin` and `--end` leave out events with stray times, `--rows N` \
                keeps the last N rows, and a longer `--step` makes fewer rows\n";
            self.terminal.report(hint.as_bytes());
        }
        let made = match counted.make() {
            Ok(made) => made,
            Err(error) => {
                self.terminal.error(error);
                return Err(Stop::Damage);
            }
        };
        self.write(|file| Ok(file.write_all(&made.bytes)?))?;
        let renamed = made.sources.iter().filter(|(source, name)| source != name);
        let renamed: Vec<_> = renamed
            .map(|(source, name)| format!("`{source}` (`{name}`)"))
            .collect();
        if !renamed.is_empty() {
            let renamed = renamed.join(", ");
            self.terminal.warning(format_args!(
                "data sources have names of their own: {renamed}"
            ));
        }
        self.reported(Ok(summary), counted.losses())
    }
}

/// Copies an event log as a whole.
fn copy(
    recording: &AnyRecording,
    order: Option<ByteOrder>,
    file: &mut File,
) -> Result<Losses, Stop> {
    let mut out = BufWriter::with_capacity(1 << 18, file);
    let losses = cpel::copy(recording, order, &mut out).map_err(into_io)?;
    out.flush()?;
    Ok(losses)
}

fn into_io(error: write::Error) -> io::Error {
    match error {
        write::Error::Output(error) => error,
        error => io::Error::new(io::ErrorKind::InvalidData, error.to_string()),
    }
}

/// Text to the output, the rest to standard error.
struct FileOutput<'a> {
    out: &'a mut dyn Write,
    terminal: &'a Terminal,
    strict: bool,
}

impl Output for FileOutput<'_> {
    fn text(&mut self, text: &[u8]) -> io::Result<()> {
        self.out.write_all(text)
    }

    fn warning(&mut self, lines: &[u8]) -> io::Result<()> {
        self.terminal.losses(lines);
        Ok(())
    }

    fn fault(&mut self, fault: &FaultReport) -> ControlFlow<()> {
        self.terminal.fault(fault);
        match self.strict {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}
