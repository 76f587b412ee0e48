//! `kymo convert`.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::num::NonZeroU32;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use kymo::AnyRecording;
use kymo::convert::chrome::Chrome;
use kymo::convert::cpel::{self, Cpel, CpelOptions, Keep};
use kymo::convert::jsonl::Jsonl;
use kymo::convert::perfetto::Perfetto;
use kymo::convert::rrd::{self, Rrd};
use kymo::convert::{Losses, MarkOptions, Marks, UnknownField};
use kymo::filter::{Filter, Query};
use kymo::pipeline::{self, Output, Summary};
use kymo::show::{Assembler, WallOptions};
use kymo_cpel::write;
use kymo_io::{Replace, replace};
use kymo_machine::ByteOrder;
use kymo_model::FaultReport;

use crate::args::Selection;
use crate::args::convert::{Convert, To};
use crate::open::{
    Inputs, Wanted, inputs, tell_opening_faults, threads, total_bytes, warn_of_idle_patterns,
};
use crate::print::csv;
use crate::progress::Progressing;
use crate::rrd::rrdtool;
use crate::terminal::{Failure, Outcome, Terminal};

/// Ticks of a second where they are nanoseconds.
const NANOSECONDS: NonZeroU32 = NonZeroU32::new(1_000_000_000).expect("it is not zero");

/// Converts recordings.
pub(crate) fn run(args: &Convert, terminal: &Terminal) -> Result<Outcome, Failure> {
    let to = target(args)?;
    refuse_options_of_others(args, to)?;
    refuse_output(args, to)?;
    let inputs = inputs(&args.input, terminal)?;
    let wanted = Wanted::new(&args.selection, args.input.clock_gmt);
    let filter = wanted.filter(&inputs.recordings, terminal)?;
    wanted.warn_of_idle_patterns(&inputs.recordings, terminal);
    let outcome = tell_opening_faults(&inputs, terminal);
    if args.work.strict && outcome != Outcome::Good {
        return Ok(outcome);
    }
    let job = Job {
        args,
        terminal,
        inputs: &inputs,
        filter: &filter,
    };
    let wall = WallOptions {
        gmt: args.input.clock_gmt,
        ..WallOptions::default()
    };
    let of = &inputs.recordings;
    let done = match to {
        To::Jsonl => job.stream(&mut Jsonl::new(of, wall)),
        To::Csv => job.stream(&mut csv(&args.selection.event, of, wall)),
        To::Perfetto => {
            let marks = job.marks()?;
            let mut perfetto = Perfetto::new(of, &marks, wall);
            let done = job.stream(&mut perfetto);
            job.told(done, perfetto.losses())
        }
        To::Chrome => {
            let marks = job.marks()?;
            let mut chrome = Chrome::new(of, &marks, wall);
            let done = job.stream(&mut chrome);
            job.told(done, chrome.losses())
        }
        To::Cpel => job.log(wall),
        To::Rrd => job.database(wall),
    };
    match done {
        Ok(Summary { faults: 0, .. }) => Ok(outcome),
        Ok(_) | Err(Stop::Damage) => Ok(Outcome::Damage),
        Err(Stop::Failure(failure)) => Err(failure),
    }
}

/// The format: what is told, or what the output's name says.
fn target(args: &Convert) -> Result<To, Failure> {
    if let Some(to) = args.to {
        return Ok(to);
    }
    let ending = args.output.extension().and_then(OsStr::to_str);
    let problem = match ending {
        Some("pftrace" | "perfetto-trace") => return Ok(To::Perfetto),
        Some("jsonl" | "ndjson") => return Ok(To::Jsonl),
        Some("csv") => return Ok(To::Csv),
        Some("cpel") => return Ok(To::Cpel),
        Some("rrd") => return Ok(To::Rrd),
        Some("json") => "a name that ends in `.json` may be of `--to chrome` or of `--to jsonl`",
        _ => "the output's name does not tell the format: `--to` does",
    };
    Err(Failure::Usage(format!("error: {problem}")))
}

/// Refuses options that do not shape this format, and asks for those that it needs.
fn refuse_options_of_others(args: &Convert, to: To) -> Result<(), Failure> {
    use To::{Chrome, Cpel, Perfetto, Rrd};
    let with_tracks = &[Perfetto, Chrome, Cpel, Rrd];
    let options: [(&str, bool, &[To]); 14] = [
        ("--track", args.track.is_some(), with_tracks),
        ("--slice", !args.slice.is_empty(), &[Perfetto, Chrome]),
        ("--counter", !args.counter.is_empty(), &[Perfetto, Chrome]),
        ("--flow", !args.flow.is_empty(), &[Perfetto, Chrome]),
        ("--text", args.text, &[Cpel]),
        ("--datum", args.datum.is_some(), &[Cpel]),
        ("--byte-order", args.byte_order.is_some(), &[Cpel]),
        ("--ticks", args.ticks.is_some(), &[Cpel]),
        ("--step", args.step.is_some(), &[Rrd]),
        ("--count", args.count, &[Rrd]),
        ("--value", args.value.is_some(), &[Rrd]),
        ("--cf", args.cf.is_some(), &[Rrd]),
        ("--rows", args.rows.is_some(), &[Rrd]),
        ("--format", args.format.is_some(), &[Rrd]),
    ];
    let name = |to: &To| format!("{to:?}").to_lowercase();
    for (option, is_given, targets) in options {
        if is_given && !targets.contains(&to) {
            let targets: Vec<_> = targets.iter().map(name).collect();
            return Err(Failure::Usage(format!(
                "error: `{option}` is for {}, and the output is {}",
                targets.join(" and "),
                name(&to)
            )));
        }
    }
    if to == Chrome && args.flow.len() > 1 {
        let problem = "an event of chrome has room for one flow: give `--flow` once";
        return Err(Failure::Usage(format!("error: {problem}")));
    }
    Ok(())
}

/// Refuses what cannot be written, before it takes any time.
fn refuse_output(args: &Convert, to: To) -> Result<(), Failure> {
    let output = &args.output;
    let problem = if is_stdout(output) {
        let needs_file = matches!(to, To::Cpel | To::Rrd);
        needs_file.then(|| "this format cannot be written to standard output".to_string())
    } else {
        let exists = output.symlink_metadata().is_ok();
        let path = output.display();
        match exists && !args.force {
            _ if output.is_dir() => Some(format!(
                "{path}: it is a directory, and the output is a file"
            )),
            true => Some(format!(
                "{path}: there is a file already; --force overwrites it"
            )),
            false => None,
        }
    };
    match problem {
        Some(problem) => Err(Failure::Usage(format!("error: {problem}"))),
        None => Ok(()),
    }
}

fn is_stdout(output: &Path) -> bool {
    output == Path::new("-")
}

/// Why the output is not written.
enum Stop {
    /// Damage was met, and `--strict` given.
    Damage,
    Failure(Failure),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Failure(Failure::Output(error))
    }
}

/// What is converted.
struct Job<'a> {
    args: &'a Convert,
    terminal: &'a Terminal,
    inputs: &'a Inputs,
    filter: &'a Filter,
}

impl Job<'_> {
    /// What events mean on a time line.
    fn marks(&self) -> Result<Marks, Failure> {
        let args = self.args;
        let options = MarkOptions {
            track: args.track.clone(),
            slices: args.slice.clone(),
            counters: args.counter.clone(),
            flows: args.flow.clone(),
        };
        let recordings = &self.inputs.recordings;
        let query = Query {
            events: options.patterns(),
            condition: None,
        };
        warn_of_idle_patterns(&query, recordings, self.terminal);
        Marks::new(options, recordings).map_err(|error| self.unknown_field(&error))
    }

    fn unknown_field(&self, unknown: &UnknownField) -> Failure {
        let color = self.terminal.color();
        Failure::Usage(unknown.error.render(unknown.option, color))
    }

    fn unknown(&self, unknown: &UnknownField) -> Stop {
        Stop::Failure(self.unknown_field(unknown))
    }

    /// Runs the pipeline into an output.
    fn run<A: Assembler>(&self, assembler: &mut A, out: &mut dyn Write) -> Result<Summary, Stop> {
        let Self {
            args,
            terminal,
            inputs,
            filter,
        } = self;
        let bytes = total_bytes(&inputs.recordings);
        match is_stdout(&args.output) {
            true => terminal.begin_progress(bytes),
            false => terminal.show_progress(bytes),
        }
        let select = Progressing::new(filter, terminal, &inputs.recordings);
        let options = pipeline::Options {
            threads: threads(&args.work),
            ..pipeline::Options::default()
        };
        let mut sink = Sink {
            out,
            terminal,
            strict: args.work.strict,
        };
        let recordings = &inputs.recordings;
        let summary = pipeline::run(recordings, &&select, &options, assembler, &mut sink)?;
        terminal.end_progress();
        match args.work.strict && summary.faults > 0 {
            true => Err(Stop::Damage),
            false => Ok(summary),
        }
    }

    /// Writes what an assembler makes as it comes.
    fn stream<A: Assembler>(&self, assembler: &mut A) -> Result<Summary, Stop> {
        if is_stdout(&self.args.output) {
            let mut stdout = io::stdout();
            let done = self.run(assembler, &mut stdout);
            stdout.flush()?;
            return done;
        }
        self.write(|file| {
            let mut out = BufWriter::with_capacity(1 << 18, file);
            let summary = self.run(assembler, &mut out)?;
            out.flush()?;
            Ok(summary)
        })
    }

    /// Writes the output as a whole.
    fn write<T>(&self, write: impl FnOnce(&mut File) -> Result<T, Stop>) -> Result<T, Stop> {
        let output = &self.args.output;
        let like = output.metadata().is_ok().then_some(output.as_path());
        let how = Replace {
            like,
            modified: false,
            ..Replace::NEW
        };
        replace(output, how, write).map_err(|stop| match stop {
            Stop::Failure(Failure::Output(error)) => {
                let told = format!("{}: {error}", output.display());
                io::Error::new(error.kind(), told).into()
            }
            stop => stop,
        })
    }

    /// Tells what the output cannot hold, where it is written.
    fn told(&self, done: Result<Summary, Stop>, losses: &Losses) -> Result<Summary, Stop> {
        if done.is_ok() {
            for line in losses.lines() {
                self.terminal.warning(line);
            }
        }
        done
    }

    /// Makes an event log.
    fn log(&self, wall: WallOptions) -> Result<Summary, Stop> {
        let args = self.args;
        let of = &self.inputs.recordings;
        let order = args.byte_order.map(Into::into);
        if let [only] = of.as_slice()
            && self.is_whole()
            && cpel::is_copied(only)
        {
            self.write(|file| copy(only, order, file))?;
            return Ok(Summary::default());
        }
        let keep = match &args.datum {
            Some(field) => Keep::Datum(field.clone()),
            None if args.text || of.iter().all(AnyRecording::is_log) => Keep::Text,
            None => {
                let problem = "error: a CPEL file holds one number or text of an event: `--text` \
                    keeps all fields as text, `--datum FIELD` one of them";
                return Err(Stop::Failure(Failure::Usage(problem.to_string())));
            }
        };
        let options = CpelOptions {
            keep,
            track: args.track.clone(),
            order: order.unwrap_or(ByteOrder::Big),
            clock: args.ticks.unwrap_or(NANOSECONDS),
        };
        let marks = options.marks(of).map_err(|error| self.unknown(&error))?;
        let mut log = Cpel::new(of, options, &marks, wall);
        let summary = self.run(&mut log, &mut io::sink())?;
        let losses = Arc::clone(log.losses());
        self.write(|file| {
            let mut out = BufWriter::with_capacity(1 << 18, file);
            log.write(&mut out).map_err(into_io)?;
            Ok(out.flush()?)
        })?;
        self.told(Ok(summary), &losses)
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
        let its_times = args.input.clock_offset == 0 && args.input.clock_offset_ns == 0;
        all_events && all_times && as_it_is && its_times && !args.text
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
            (None, false) => return Err(usage("a database needs `--count` or `--value FIELD`")),
        };
        let Some(step) = args.step else {
            return Err(usage("a database needs `--step TIME`, such as `--step 1s`"));
        };
        let target = match args.format {
            Some(target) => target,
            None => rrdtool::default_format().map_err(|error| usage(&error.to_string()))?,
        };
        let options = rrd::RrdOptions {
            value,
            track: args.track.clone(),
            step,
            rows: args.rows,
            target,
        };
        let recordings = &self.inputs.recordings;
        let marks = options
            .marks(recordings)
            .map_err(|error| self.unknown(&error))?;
        let mut counted = Rrd::new(options, &marks, wall);
        let summary = self.run(&mut counted, &mut io::sink())?;
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
        self.told(Ok(summary), counted.losses())
    }
}

/// Copies an event log as a whole.
fn copy(of: &AnyRecording, order: Option<ByteOrder>, file: &mut File) -> Result<(), Stop> {
    let mut out = BufWriter::with_capacity(1 << 18, file);
    cpel::copy(of, order, &mut out).map_err(into_io)?;
    Ok(out.flush()?)
}

fn into_io(error: write::Error) -> io::Error {
    match error {
        write::Error::Output(error) => error,
        error => io::Error::new(io::ErrorKind::InvalidData, error.to_string()),
    }
}

/// Text to the output, the rest to standard error.
struct Sink<'a> {
    out: &'a mut dyn Write,
    terminal: &'a Terminal,
    strict: bool,
}

impl Output for Sink<'_> {
    fn text(&mut self, text: &[u8]) -> io::Result<()> {
        self.out.write_all(text)
    }

    fn warning(&mut self, lines: &[u8]) -> io::Result<()> {
        self.terminal.tell(lines);
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
