//! `kymo graph`.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use clap::ValueEnum;
use kymo::Timeline;
use kymo::analysis::{self, Coverage, LatencyQuery, Sort, StatesQuery};
use kymo::pipeline::Window;
use kymo::timeline::{Notice, QueryError, TimelineIndex};
use kymo_draw::page::{Chart, Page, PageOptions};
use kymo_draw::{Fonts, RenderOptions};
use kymo_graph::{
    Choice, ChoiceError, Databases, Look, Panel, Subject, Zone, are_databases, chart, overlaid,
    page, panel_picture, panels,
};
use kymo_io::STANDARD_INPUT;

use crate::args::graph::{Graph, PictureFormat, Theme};
use crate::index::cached;
use crate::notices::Notices;
use crate::open::{Wanted, inputs, report_opening_faults, total_bytes, warn_of_idle_patterns};
use crate::outputs::{refuse_file, write_file};
use crate::terminal::{Failure, Outcome, Terminal};

/// Draws recordings.
pub(crate) fn run(args: &Graph, terminal: &Terminal) -> Result<Outcome, Failure> {
    let format = format(args)?;
    if args.output.as_os_str() != STANDARD_INPUT {
        refuse_file(&args.output, args.force)?;
    }
    let inputs = inputs(&args.input, false, terminal)?;
    let wanted = Wanted::new(&args.selection, inputs.gmt);
    let filter = wanted.filter(&inputs.recordings, terminal)?;
    wanted.warn(&inputs, &filter, terminal);
    let values = args.value.iter().map(|value| value.event.clone());
    let drawn = kymo::filter::Query {
        events: args.count.iter().cloned().chain(values).collect(),
        condition: None,
    };
    warn_of_idle_patterns(&drawn, &inputs.recordings, terminal);
    let mut outcome = report_opening_faults(&inputs, terminal);
    let windows = wanted.windows(&inputs.recordings)?;
    if args.tracks.is_given() && !args.latency && args.states.is_none() {
        return Err(Failure::Usage(
            "error: `--track` is only for `--latency` and `--states`\nhint: `--per` counts events by fields"
                .into(),
        ));
    }
    if args.per.is_some()
        && args.latency
        && args.count.is_empty()
        && args.value.is_empty()
        && args.states.is_none()
    {
        return Err(Failure::Usage(
            "error: `--per` is not for `--latency`, which draws all latencies together\nhint: `--where` chooses some of them"
                .into(),
        ));
    }
    let read = Arc::new(AtomicU64::new(0));
    let passes = subjects(args).len().max(1) as u64;
    let bytes = total_bytes(&inputs.recordings).saturating_mul(passes);
    let choice = Choice {
        filter: wanted.query,
        range: Window {
            begin: windows
                .iter()
                .map(|window| window.begin)
                .min()
                .unwrap_or(Window::ALL.begin),
            end: windows
                .iter()
                .map(|window| window.end)
                .max()
                .unwrap_or(Window::ALL.end),
        },
        subjects: subjects(args),
        per: args.per.clone(),
        threads: args.threads.count(),
        read: Some(Arc::clone(&read)),
        ..Choice::default()
    };
    let look = Look {
        width: args.width,
        height: args.height,
        title: args.title.clone(),
        is_dark: args.theme == Some(Theme::Dark),
        zone: Zone::new(inputs.gmt),
    };
    let timeline = Timeline::new(inputs.recordings);
    let fonts = Fonts::new();
    if format == PictureFormat::Html && are_databases(&timeline) && !args.overlay {
        // A few databases at a time are in memory.
        write_to(args, terminal, |out| {
            let mut page = Page::begin(out, &page_options(args, timeline.recordings().len()))?;
            databases_by_threads(&timeline, &choice, &look, &mut page)?;
            page.end()
        })?;
        return Ok(outcome);
    }
    let notices = Notices::new(terminal);
    let mut printer = NoticePrinter {
        notices: &notices,
        terminal,
        is_damaged: false,
    };
    let index = index(args, &timeline, &choice);
    let drawn = terminal.watch(bytes, &read, || {
        panels(&timeline, &choice, index.as_ref(), &mut printer)
    });
    let drawn = drawn.map_err(|error| {
        Failure::Usage(match error {
            ChoiceError::Query(QueryError::Filter(error)) => {
                error.render("the command line", terminal.color())
            }
            ChoiceError::Analysis(analysis::Error::Field { purpose, error }) => {
                error.render(&format!("--{purpose}"), terminal.color())
            }
            error => format!("error: {error}"),
        })
    })?;
    let is_damaged = printer.is_damaged;
    if notices.end(false) != Outcome::Good || is_damaged {
        outcome = Outcome::Damage;
    }
    let drawn = if args.overlay { overlaid(drawn) } else { drawn };
    if format == PictureFormat::Html {
        write_to(args, terminal, |out| {
            let mut page = Page::begin(out, &page_options(args, drawn.len()))?;
            for panel in &drawn {
                let chart = chart_of(panel, drawn.len(), &look, &fonts)?;
                write_panel(&mut page, panel, chart, &look, &fonts)?;
            }
            page.end()
        })?;
        return Ok(outcome);
    }
    let picture = page(&drawn, &look, &fonts).map_err(|error| {
        Failure::Usage(format!(
            "error: {error}\nhint: `--format html` writes a page of any number of graphs"
        ))
    })?;
    let options = RenderOptions::default();
    let bytes = match format {
        PictureFormat::Png => kymo_draw::png(&picture, &fonts, &options),
        PictureFormat::Pdf => kymo_draw::pdf(&picture, &fonts, &options),
        PictureFormat::Eps => kymo_draw::eps(&picture, &fonts, &options),
        PictureFormat::Svg | PictureFormat::Html => kymo_draw::svg(&picture, &fonts, &options),
    };
    let bytes = bytes.map_err(|error| {
        Failure::Usage(format!(
            "error: {error}\nhint: specify a smaller `--width` or `--height`"
        ))
    })?;
    write_to(args, terminal, |out| out.write_all(&bytes))?;
    Ok(outcome)
}

/// The format that is specified, or that of the file's ending.
fn format(args: &Graph) -> Result<PictureFormat, Failure> {
    if let Some(format) = args.format {
        return Ok(format);
    }
    let ending = args.output.extension().and_then(|ending| ending.to_str());
    let known = ending.and_then(|ending| PictureFormat::from_str(ending, true).ok());
    known.ok_or_else(|| {
        Failure::Usage(format!(
            "error: `{}` does not end in .png, .svg, .pdf, .eps or .html\n\
             hint: choose one of these endings, or specify the format with `--format`",
            args.output.display()
        ))
    })
}

fn page_options(args: &Graph, charts: usize) -> PageOptions {
    PageOptions {
        title: args.title.clone().unwrap_or_else(|| "kymo graph".into()),
        charts,
        is_dark: args.theme.map(|theme| theme == Theme::Dark),
    }
}

/// What the command line asks to be drawn.
fn subjects(args: &Graph) -> Vec<Subject> {
    let mut subjects = Vec::new();
    if !args.count.is_empty() {
        subjects.push(Subject::Counts(args.count.clone()));
    }
    subjects.extend(args.value.iter().cloned().map(Subject::Values));
    if args.latency {
        subjects.push(Subject::Latency(LatencyQuery {
            events: args.start.clone().zip(args.end_event.clone()),
            pair_by: args.pair_by.clone().unwrap_or_default(),
            tracks: args.tracks.by(),
            worst: 0,
        }));
    }
    if let Some(state) = &args.states {
        subjects.push(Subject::States(StatesQuery {
            state: state.clone(),
            per: args.per.clone(),
            tracks: args.tracks.by(),
            filter: args.filter.clone(),
            sort: Sort::Time,
        }));
    }
    subjects
}

/// The index that `kymo index --summary` keeps of the recordings, if it is whole, has all that is drawn, and was made
/// of recordings without damage, which would have to be reported.
fn index(args: &Graph, timeline: &Timeline, choice: &Choice) -> Option<TimelineIndex> {
    let (options, _) = cached(&args.input, None, false);
    if !choice.is_in_index() || !timeline.is_indexed(&options) {
        return None;
    }
    let index = timeline.index(options);
    let states = index.wait();
    let is_good = states
        .iter()
        .all(|state| state.read == 0 && state.more_faults == 0);
    is_good.then_some(index)
}

/// Prints notices and faults that are found beside events.
struct NoticePrinter<'a, 't> {
    notices: &'a Notices<'t>,
    terminal: &'t Terminal,
    is_damaged: bool,
}

impl kymo_graph::Notices for NoticePrinter<'_, '_> {
    fn notice(&mut self, notice: &Notice) {
        self.notices.take(notice);
    }

    fn coverage(&mut self, coverage: &Coverage) {
        for fault in &coverage.faults {
            self.terminal.fault(fault);
        }
        self.is_damaged |= !coverage.is_good();
        self.notices.add(&coverage.discarded);
    }
}

/// Writes a file as a whole, or standard output.
fn write_to(
    args: &Graph,
    terminal: &Terminal,
    mut write: impl FnMut(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    let path = &args.output;
    if path.as_os_str() == STANDARD_INPUT {
        let mut bytes = Vec::new();
        write(&mut bytes)?;
        return Ok(terminal.write(&bytes)?);
    }
    write_file(path, args.force, write)?;
    let how = match path.extension().is_some_and(|ending| ending == "html") {
        true => "open it in a browser",
        false => "",
    };
    terminal.wrote(path, how);
    Ok(())
}

/// More graphs have no pictures in a page beside their values: they would be most of it.
const MOST_PICTURES: usize = 24;

/// Writes a panel of a page: as a chart drawn by scripts, and as a picture without scripts or if it is not a chart.
fn write_panel(
    page: &mut Page<'_>,
    panel: &Panel,
    chart: Option<Chart>,
    look: &Look,
    fonts: &Fonts,
) -> io::Result<()> {
    match chart {
        Some(chart) => page.chart(&chart),
        None => page.picture(&picture_of(panel, look, fonts)?),
    }
}

/// The chart of a panel, with a picture if there are few of them.
fn chart_of(panel: &Panel, charts: usize, look: &Look, fonts: &Fonts) -> io::Result<Option<Chart>> {
    let chart = chart(panel, look);
    let Some(mut chart) = chart else {
        return Ok(None);
    };
    if charts <= MOST_PICTURES {
        chart.picture = Some(picture_of(panel, look, fonts)?);
    }
    Ok(Some(chart))
}

fn picture_of(panel: &Panel, look: &Look, fonts: &Fonts) -> io::Result<Vec<u8>> {
    let options = RenderOptions {
        svg_text: true,
        ..RenderOptions::default()
    };
    let picture = panel_picture(panel, look, fonts);
    let mut svg = kymo_draw::svg(&picture, fonts, &options).map_err(io::Error::other)?;
    // A declaration of XML is only for files of their own.
    let begin = svg.windows(4).position(|bytes| bytes == b"<svg");
    svg.drain(..begin.unwrap_or(0));
    Ok(svg)
}

/// Makes the charts of databases by several threads, and writes them in the order of the databases.
fn databases_by_threads(
    timeline: &Timeline,
    choice: &Choice,
    look: &Look,
    page: &mut Page<'_>,
) -> io::Result<()> {
    let all = timeline.recordings().len();
    // Pictures that wait for those before them.
    let ahead = choice.threads.max(1) * 4;
    let next = AtomicUsize::new(0);
    let databases = &Databases::new(timeline, choice);
    std::thread::scope(|scope| {
        let (sender, receiver) = std::sync::mpsc::sync_channel(ahead);
        for _ in 0..choice.threads.max(1) {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                let fonts = Fonts::new();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= all {
                        break;
                    }
                    let panels = databases.panels(number..number + 1);
                    let charts: io::Result<Vec<_>> = panels
                        .map(|panel| chart_of(&panel, all, look, &fonts))
                        .collect();
                    // The receiver is gone once writing has failed.
                    if sender.send((number, charts)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        let mut waiting = BTreeMap::new();
        let mut turn = 0;
        for (number, charts) in receiver {
            waiting.insert(number, charts?);
            while let Some(charts) = waiting.remove(&turn) {
                for chart in charts.into_iter().flatten() {
                    page.chart(&chart)?;
                }
                turn += 1;
            }
        }
        Ok(())
    })
}
