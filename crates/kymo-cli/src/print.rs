//! `kymo print`.

use std::io::{self, IsTerminal, Write};
use std::ops::ControlFlow;
use std::path::Path;

use kymo::AnyRecording;
use kymo::filter::{Filter, Glob, Query, first_event_time};
use kymo::pipeline::{self, Output, Span, Summary, Tail, Watched};
use kymo::show::context::{Context, Marked};
use kymo::show::cpeldump::CpelDump;
use kymo::show::csv::Csv;
use kymo::show::details::{Details, DetailsOptions};
use kymo::show::elog_dump::ElogDump;
use kymo::show::grid::{Grid, GridPlan};
use kymo::show::json::Json;
use kymo::show::{Palette, Sink, Times, WallOptions, pretty};
use kymo_model::{FaultReport, Recording, Shift};
use kymo_text::visible;

use crate::args;
use crate::args::print::{Color, DetailsItem, Format, Print, joined};
use crate::follow;
use crate::formats::refuse_foreign;
use crate::live::{Live, Resume};
use crate::open::{
    Asked, Inputs, Wanted, inputs_with, report_opening_faults, selected_inputs, threads,
    total_bytes,
};
use crate::terminal::{Failure, Outcome, Terminal};

/// Shows events.
pub(crate) fn run(args: &Print, terminal: &Terminal) -> Result<Outcome, Failure> {
    if let Some(columns) = &args.columns {
        let (inputs, wall) = opened(args, terminal)?;
        let plan = GridPlan::new(columns, &inputs.recordings)
            .map_err(|error| Failure::Usage(error.render("--columns", terminal.color())))?;
        let sink = Grid::new(&plan, wall);
        return show_in(args, terminal, inputs, sink);
    }
    match args.format {
        Format::Pretty => {
            let names = pretty::Names::parse(&joined(&args.names)).unwrap_or_default();
            let options = pretty::Options {
                wall: WallOptions::default(),
                cycles: args.clock_cycles,
                delta: !args.no_delta,
                names: pretty::Names {
                    enum_flags: args.enum_flags,
                    ..names
                },
                fields: pretty::Fields::parse(&joined(&args.fields)).unwrap_or_default(),
                colors: palette(args.color),
            };
            show(args, terminal, |recordings, wall| {
                let options = pretty::Options { wall, ..options };
                pretty::Pretty::new(options.for_recordings(recordings))
            })
        }
        Format::Details => {
            let options = details(&args.details, palette(args.color));
            show(args, terminal, |_, _| Details::new(options))
        }
        Format::Json => show(args, terminal, |_, wall| {
            Json::with_times(args.times.into(), wall)
        }),
        Format::Csv => show(args, terminal, |recordings, wall| {
            let times = args.times.into();
            match args.follow || is_live(args) {
                // Classes that are not known yet may come.
                true => Csv::new(times, wall),
                false => csv(&args.selection.event, recordings, times, wall),
            }
        }),
        Format::Cpeldump => show(args, terminal, |recordings, _| CpelDump::new(recordings)),
        Format::ElogDump => show(args, terminal, |recordings, _| {
            let tags = recordings
                .iter()
                .map(|recording| tag(args, recording.path()));
            ElogDump::new(recordings, &tags.collect::<Vec<_>>())
        }),
    }
}

/// Opens recordings and shows them with the sink that is made for them, and for how times are
/// shown.
fn show<A: Sink>(
    args: &Print,
    terminal: &Terminal,
    sink: impl FnOnce(&[AnyRecording], WallOptions) -> A,
) -> Result<Outcome, Failure> {
    if is_live(args) {
        refuse_options_of_others(args)?;
        let resume = args.live_resume.as_deref().map(Resume::load).transpose()?;
        let live = Live::open(&args.input, resume.as_ref(), terminal)?;
        let (growing, inputs) = live.grow(args.work.strict, terminal)?;
        let mut sink = sink(growing.timeline.recordings(), wall(args, &inputs));
        let wanted = Wanted::new(&args.selection, inputs.gmt);
        return follow::run_live(args, &wanted, growing, &mut sink, terminal);
    }
    let (inputs, wall) = opened(args, terminal)?;
    let sink = sink(&inputs.recordings, wall);
    show_in(args, terminal, inputs, sink)
}

/// Whether sessions are shown while they grow. What needs all of a recording is shown when they have ended.
fn is_live(args: &Print) -> bool {
    let needs_all = args.last.is_some()
        || args.before > 0
        || args.after > 0
        || args.relative
        || args.columns.is_some();
    let grows = matches!(args.format, Format::Pretty | Format::Json | Format::Csv);
    Live::is_in(&args.input) && grows && !needs_all
}

/// Opens recordings, and decides how times are shown.
fn opened(args: &Print, terminal: &Terminal) -> Result<(Inputs, WallOptions), Failure> {
    refuse_options_of_others(args)?;
    let asked = Asked {
        strict: args.work.strict,
        waits: args.follow,
        ..Asked::default()
    };
    if args.follow {
        follow::await_recordings(&args.input, terminal);
    }
    // Events around those that are chosen are shown, too, and others say where code was.
    let shows_others = args.before > 0 || args.after > 0 || args.symbols.is_given();
    let inputs = match shows_others {
        true => inputs_with(&args.input, asked, terminal)?,
        false => selected_inputs(&args.input, &args.selection, asked, terminal)?,
    };
    let mut inputs = match args.symbols.is_given() {
        true => args.symbols.apply(inputs, false, terminal)?,
        false => inputs,
    };
    refuse_recordings(args, &inputs.recordings)?;
    if args.relative {
        count_from_first(&mut inputs.recordings)?;
        inputs.is_relative = true;
    }
    let wall = wall(args, &inputs);
    Ok((inputs, wall))
}

/// How times are shown.
fn wall(args: &Print, inputs: &Inputs) -> WallOptions {
    WallOptions {
        date: args.clock_date,
        gmt: inputs.gmt,
        seconds: args.clock_seconds || args.relative,
    }
}

/// Lets times count from the first event of all recordings.
fn count_from_first(recordings: &mut [AnyRecording]) -> Result<(), Failure> {
    let Some(first) = recordings.iter().filter_map(first_event_time).min() else {
        return Ok(());
    };
    let shift = Shift {
        nanos: -i128::from(first.as_nanos()),
        from_unix_epoch: false,
    };
    for recording in recordings {
        recording.shift(shift).map_err(|_| {
            let path = recording.path().display();
            Failure::Usage(format!("error: `{path}` is too far from the first event"))
        })?;
    }
    Ok(())
}

/// Shows recordings that are open.
fn show_in<A: Sink>(
    args: &Print,
    terminal: &Terminal,
    inputs: Inputs,
    mut sink: A,
) -> Result<Outcome, Failure> {
    let wanted = Wanted::new(&args.selection, inputs.gmt);
    if args.follow {
        return follow::run(args, &wanted, inputs, &mut sink, terminal);
    }
    let filter = wanted.filter(&inputs.recordings, terminal)?;
    let is_explained = wanted.warn(&inputs, &filter, terminal);
    let outcome = report_opening_faults(&inputs, terminal);
    if args.work.strict && outcome != Outcome::Good {
        return Ok(outcome);
    }
    let recordings = &inputs.recordings;
    let options = options(args, args.limit);
    let mut output = Console::new(args, terminal);
    let none = |is_damaged| {
        if !is_explained && args.limit != Some(0) {
            let is_damaged = is_damaged || outcome != Outcome::Good;
            wanted.warn_of_none(recordings, is_damaged, terminal);
        }
    };
    if args.before > 0 || args.after > 0 {
        let separator = if args.format == Format::Pretty {
            "--\n"
        } else {
            ""
        };
        let (before, after) = (args.before as usize, args.after as usize);
        let around = Filter::new(&Query::default(), &wanted.windows(recordings)?, recordings)
            .map_err(|error| Failure::Usage(error.render("--where", terminal.color())))?;
        let marked = Marked {
            shown: &around,
            wanted: &filter,
        };
        let mut context = Context::new(sink, before, after, separator);
        terminal.begin_progress(total_bytes(recordings));
        let progress = |bytes| terminal.advance(bytes);
        let select = Watched::new(recordings, &marked, &progress, None);
        let summary = pipeline::run(recordings, &select, &options, &mut context, &mut output)?;
        return ended(args, terminal, &summary, outcome, none);
    }
    let summary = match args.last {
        Some(last) => {
            let mut tail = Tail::new(recordings, &filter, sink.is_by_stream());
            let (_, from) = tail.rewind(last);
            let span = Span {
                select: &filter,
                from: Some(&from),
                to: None,
            };
            pipeline::run(recordings, &span, &options, &mut sink, &mut output)?
        }
        None => {
            terminal.begin_progress(total_bytes(recordings));
            let progress = |bytes| terminal.advance(bytes);
            let select = Watched::new(recordings, &filter, &progress, None);
            pipeline::run(recordings, &select, &options, &mut sink, &mut output)?
        }
    };
    ended(args, terminal, &summary, outcome, none)
}

/// How the program ends when all is shown.
fn ended(
    args: &Print,
    terminal: &Terminal,
    summary: &Summary,
    outcome: Outcome,
    warn_of_none: impl FnOnce(bool),
) -> Result<Outcome, Failure> {
    io::stdout().flush()?;
    terminal.end_progress();
    if summary.events == 0 {
        warn_of_none(summary.faults > 0);
    }
    let is_lost = args.work.strict && !summary.discarded.is_empty();
    Ok(match summary.faults {
        0 if !is_lost => outcome,
        _ => Outcome::Damage,
    })
}

/// What `--format details` leaves out, and its colours.
fn details(items: &[DetailsItem], colors: Option<Palette>) -> DetailsOptions {
    let has = |item| items.contains(&item);
    DetailsOptions {
        compact: has(DetailsItem::Compact),
        no_metadata: has(DetailsItem::NoMetadata),
        no_stream_class_name: has(DetailsItem::NoStreamClassName),
        no_stream_name: has(DetailsItem::NoStreamName),
        no_time: has(DetailsItem::NoTime),
        no_trace_name: has(DetailsItem::NoTraceName),
        no_uid: has(DetailsItem::NoUid),
        colors,
    }
}

/// The tag that is asked for of the recording at a path.
fn tag(args: &Print, path: &Path) -> Option<String> {
    let mut tags = args.tag.iter().rev();
    let found = tags.find(|(tagged, _)| is_same(tagged, path));
    found.map(|(_, tag)| tag.clone())
}

/// Whether two paths lead to the same file.
fn is_same(left: &Path, right: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    left == right || (real(left).is_some() && real(left) == real(right))
}

/// Refuses options that do not shape this format.
fn refuse_options_of_others(args: &Print) -> Result<(), Failure> {
    use Format::{Csv, Details, ElogDump, Json, Pretty};
    // These report losses in warnings.
    let with_warnings = &[Pretty, Json, Csv];
    let options: &[(&str, bool, &[Format])] = &[
        ("--clock-cycles", args.clock_cycles, &[Pretty]),
        ("--clock-date", args.clock_date, with_warnings),
        ("--clock-seconds", args.clock_seconds, with_warnings),
        ("--no-delta", args.no_delta, &[Pretty]),
        ("--times", args.times != args::Times::Number, &[Json, Csv]),
        ("--details", !args.details.is_empty(), &[Details]),
        ("--names", !args.names.is_empty(), &[Pretty]),
        ("--enum-flags", args.enum_flags, &[Pretty]),
        ("--fields", !args.fields.is_empty(), &[Pretty]),
        // Scripts that want no colours say so whatever they print.
        ("--color", args.color == Color::Always, &[Pretty, Details]),
        ("--tag", !args.tag.is_empty(), &[ElogDump]),
        ("--before", args.before > 0, with_warnings),
        ("--after", args.after > 0, with_warnings),
        ("--relative", args.relative, with_warnings),
        ("--debug-info", args.symbols.is_given(), with_warnings),
    ];
    refuse_foreign(options, &args.format)?;
    if args.live_resume.is_some() && !is_live(args) {
        let problem =
            "error: `--live-resume` is for sessions of LTTng live that are shown as they grow";
        return Err(Failure::Usage(problem.to_string()));
    }
    if args.follow {
        follow::refuse_wrapped(&args.input.paths)?;
    }
    Ok(())
}

/// Refuses what cannot be asked for of some recordings.
fn refuse_recordings(args: &Print, recordings: &[AnyRecording]) -> Result<(), Failure> {
    for (path, _) in &args.tag {
        if !recordings
            .iter()
            .any(|recording| is_same(path, recording.path()))
        {
            return Err(Failure::Usage(format!(
                "error: cannot tag `{}`: it is not among the inputs\nhint: write the path of `--tag` exactly as the path of an input",
                path.display()
            )));
        }
    }
    let refuse = |option, is_for, fits: fn(&AnyRecording) -> bool| {
        refuse_others(recordings, option, is_for, fits)
    };
    let is_trace: fn(&AnyRecording) -> bool = |recording| recording.as_ctf().is_some();
    match args.format {
        Format::Details => refuse("--format details", "traces", is_trace)?,
        Format::Cpeldump => refuse("--format cpeldump", "CPEL and Gist files", |recording| {
            matches!(recording, AnyRecording::Cpel(_))
        })?,
        Format::ElogDump => refuse("--format elog_dump", "elog files", |recording| {
            matches!(recording, AnyRecording::Elog(_))
        })?,
        Format::Pretty | Format::Json | Format::Csv => {}
    }
    let growing = [Format::Pretty, Format::Json, Format::Csv];
    refuse_foreign(&[("--follow", args.follow, &growing)], &args.format)?;
    match args.follow {
        true => follow::refuse_sorted(recordings),
        false => Ok(()),
    }
}

/// Refuses recordings that an option does not fit.
pub(crate) fn refuse_others(
    recordings: &[AnyRecording],
    option: &str,
    is_for: &str,
    fits: fn(&AnyRecording) -> bool,
) -> Result<(), Failure> {
    let Some(other) = recordings.iter().find(|recording| !fits(recording)) else {
        return Ok(());
    };
    let what = other.what();
    let hint = match (other, option) {
        (AnyRecording::Cpel(_), "--format elog_dump") => "`--format cpeldump` shows it",
        (AnyRecording::Elog(_), "--format cpeldump") => "`--format elog_dump` shows it",
        _ => "leave out the option, or specify other recordings",
    };
    Err(Failure::Usage(format!(
        "error: `{}` is {what}: `{option}` is for {is_for}\nhint: {hint}",
        other.path().display()
    )))
}

/// How a run of the pipeline is done.
pub(crate) fn options(args: &Print, limit: Option<u64>) -> pipeline::Options {
    pipeline::Options {
        threads: threads(&args.work),
        limit,
        ..pipeline::Options::default()
    }
}

/// Text to standard output, the rest to standard error.
pub(crate) struct Console<'t> {
    terminal: &'t Terminal,
    strict: bool,
    /// Whether the text holds values as they are, and goes to a terminal, which must not take
    /// them for commands.
    is_raw: bool,
}

impl<'t> Console<'t> {
    pub(crate) fn new(args: &Print, terminal: &'t Terminal) -> Self {
        let is_escaped = matches!(args.format, Format::Pretty | Format::Json);
        Self {
            terminal,
            strict: args.work.strict,
            is_raw: io::stdout().is_terminal() && !is_escaped,
        }
    }
}

impl Output for Console<'_> {
    fn text(&mut self, text: &[u8]) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        if !self.is_raw {
            return stdout.write_all(text);
        }
        let text = String::from_utf8_lossy(text);
        for line in text.split_inclusive('\n') {
            let (line, end) = match line.strip_suffix('\n') {
                Some(line) => (line, "\n"),
                None => (line, ""),
            };
            write!(stdout, "{}{end}", visible(line))?;
        }
        Ok(())
    }

    fn warning(&mut self, lines: &[u8]) -> io::Result<()> {
        self.terminal.losses(lines);
        Ok(())
    }

    fn fault(&mut self, fault: &FaultReport) -> ControlFlow<()> {
        self.terminal.fault(fault);
        if self.strict {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

/// The colours of standard output. The environment is asked as babeltrace2 does.
fn palette(color: Color) -> Option<Palette> {
    let variable = |name: &str| std::env::var(name).unwrap_or_default().to_lowercase();
    let wanted = match color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => match variable("BABELTRACE_TERM_COLOR").as_str() {
            "always" => true,
            "never" => false,
            _ => {
                io::stdout().is_terminal()
                    && std::env::var_os("NO_COLOR").is_none()
                    && variable("TERM") != "dumb"
            }
        },
    };
    let bold_is_bright = variable("BABELTRACE_TERM_COLOR_BRIGHT_MEANS_BOLD") != "0";
    wanted.then(|| Palette::new(bold_is_bright))
}

/// The columns of all events whose names match one of the patterns.
pub(crate) fn csv(
    events: &[Glob],
    recordings: &[AnyRecording],
    times: Times,
    wall: WallOptions,
) -> Csv {
    Csv::of_classes(times, wall, recordings, |class| {
        let name = class.name.as_deref().unwrap_or("<unknown>").as_bytes();
        events.is_empty() || events.iter().any(|glob| glob.matches(name))
    })
}
