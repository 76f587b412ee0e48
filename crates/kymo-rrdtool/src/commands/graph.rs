//! `graph` and `graphv`: pictures of series from files and expressions.

mod place;
mod spec;

use std::io::Read as _;

use kymo_rrd::text::info::Fact;
use kymo_text::Line;

use super::span::{END, START, Span};
use super::{DAEMON, LOCKING, MACHINE, WAIT, machine, print_facts};
use crate::graph::options::{GraphOptions, ImageFormat};
use crate::graph::picture::{Graph, Image};
use crate::graph::{Bounds, Request};
use crate::open::cannot_open;
use crate::options::{Command, Opt, Words};
use crate::path::{path, shown};
use crate::{Failure, Session, daemon};

const ABOUT: &str = "DEF:NAME=FILE:SOURCE:FUNCTION reads a series, CDEF:NAME=EXPRESSION computes one from others, \
    VDEF:NAME=NAME,FUNCTION makes one value of one. LINE, AREA, TICK, HRULE and VRULE draw; GPRINT and \
    COMMENT write below the graph, PRINT to standard output. The language is that of rrdtool 1.9. \
    FILE `-` is standard output.";

pub(crate) const GRAPH: Command = Command {
    name: "graph",
    about: "Draw series from files and expressions",
    details: ABOUT,
    operands: "FILE DEF:... [CDEF:...] [VDEF:...] LINE:...",
    options: OPTIONS,
    examples: &["graph load.png -s -1w DEF:load=load.rrd:load:AVERAGE LINE2:load#0000ff:\"load\""],
    run: graph,
};

pub(crate) const GRAPHV: Command = Command {
    name: "graphv",
    about: "Draw as `graph` does, and print sizes, limits and texts",
    details: ABOUT,
    operands: "FILE DEF:... [CDEF:...] [VDEF:...] LINE:...",
    options: OPTIONS,
    examples: &["graphv load.png -s -1w DEF:load=load.rrd:load:AVERAGE LINE:load#0000ff"],
    run: graphv,
};

const OPTIONS: &[Opt] = &[
    START,
    END,
    Opt::with(
        Some('S'),
        "step",
        "SECONDS",
        "Seconds between rows, at least [default: those of a pixel]",
    ),
    Opt::with(
        Some('w'),
        "width",
        "PIXELS",
        "Width of the graph [default: 400]",
    ),
    Opt::with(
        Some('h'),
        "height",
        "PIXELS",
        "Height of the graph [default: 100]",
    ),
    Opt::flag(
        Some('D'),
        "full-size-mode",
        "Width and height are those of the picture",
    ),
    Opt::flag(
        Some('j'),
        "only-graph",
        "Draw no axes, title, legend and border",
    ),
    Opt::with(
        Some('u'),
        "upper-limit",
        "NUMBER",
        "Top of the y axis, unless values are greater",
    ),
    Opt::with(
        Some('l'),
        "lower-limit",
        "NUMBER",
        "Bottom of the y axis, unless values are less",
    ),
    Opt::flag(
        Some('r'),
        "rigid",
        "Keep the limits whatever the values are",
    ),
    Opt::flag(
        None,
        "allow-shrink",
        "Move rigid limits to values inside of them",
    ),
    Opt::flag(
        Some('A'),
        "alt-autoscale",
        "End the y axis near the least and the greatest value",
    ),
    Opt::flag(
        Some('J'),
        "alt-autoscale-min",
        "End the y axis near the least value",
    ),
    Opt::flag(
        Some('M'),
        "alt-autoscale-max",
        "End the y axis near the greatest value",
    ),
    Opt::flag(
        Some('N'),
        "no-gridfit",
        "Do not move lines to whole pixels in PNG",
    ),
    Opt::with(
        Some('x'),
        "x-grid",
        "UNIT:N:UNIT:N:UNIT:N:SECONDS:FORMAT|none",
        "Minor lines, major lines and labels of the x axis",
    ),
    Opt::with(
        None,
        "week-fmt",
        "FORMAT",
        "Labels of weeks on the x axis [default: Week %V]",
    ),
    Opt::with(
        Some('y'),
        "y-grid",
        "STEP:FACTOR|none",
        "Lines of the y axis, and a label each FACTOR lines",
    ),
    Opt::flag(
        Some('Y'),
        "alt-y-grid",
        "Fit the lines of the y axis to its range",
    ),
    Opt::flag(Some('o'), "logarithmic", "Use a logarithmic y axis"),
    Opt::with(
        Some('X'),
        "units-exponent",
        "EXPONENT",
        "Power of ten of the labels of the y axis",
    ),
    Opt::with(
        Some('L'),
        "units-length",
        "CHARACTERS",
        "Width of the labels of the y axis [default: 6]",
    ),
    Opt::with(
        None,
        "units",
        "si",
        "Write SI prefixes on a logarithmic axis",
    ),
    Opt::with(
        None,
        "left-axis-formatter",
        "numeric|timestamp|duration",
        "What the values of the left axis are [default: numeric]",
    ),
    Opt::with(
        None,
        "left-axis-format",
        "FORMAT",
        "Format of the labels of the left axis",
    ),
    Opt::with(
        None,
        "right-axis",
        "SCALE:SHIFT",
        "Draw a right axis of values multiplied by SCALE plus SHIFT",
    ),
    Opt::with(None, "right-axis-label", "TEXT", "Label of the right axis"),
    Opt::with(
        None,
        "right-axis-formatter",
        "numeric|timestamp|duration",
        "What the values of the right axis are [default: numeric]",
    ),
    Opt::with(
        None,
        "right-axis-format",
        "FORMAT",
        "Format of the labels of the right axis",
    ),
    Opt::with(
        Some('v'),
        "vertical-label",
        "TEXT",
        "Label of the left axis",
    ),
    Opt::with(Some('t'), "title", "TEXT", "Title, of up to three lines"),
    Opt::with(
        Some('W'),
        "watermark",
        "TEXT",
        "Text at the bottom of the picture",
    ),
    Opt::flag(Some('g'), "no-legend", "Draw no legend"),
    Opt::flag(
        Some('F'),
        "force-rules-legend",
        "Show legends of rules that are outside of the graph",
    ),
    Opt::with(
        None,
        "legend-position",
        "north|south|west|east",
        "Side of the legend [default: south]",
    ),
    Opt::with(
        None,
        "legend-direction",
        "topdown|bottomup|bottomup2",
        "Order of the lines of the legend [default: topdown]",
    ),
    Opt::flag(Some('I'), "no-minor", "Draw no minor lines"),
    Opt::with(
        None,
        "grid-dash",
        "ON:OFF",
        "Lengths of dashes and gaps of the grid [default: 1:1]",
    ),
    Opt::with(
        None,
        "border",
        "PIXELS",
        "Width of the border of the picture [default: 2]",
    ),
    Opt::flag(
        None,
        "dynamic-labels",
        "Show lines and rules as lines in the legend",
    ),
    Opt::with(
        Some('c'),
        "color",
        "PART#rrggbb[aa]",
        "Colour of BACK, CANVAS, SHADEA, SHADEB, GRID, MGRID, FONT, ARROW, AXIS or FRAME",
    ),
    Opt::with(
        Some('n'),
        "font",
        "KIND:SIZE[:FONT]",
        "Font of DEFAULT, TITLE, AXIS, UNIT, LEGEND or WATERMARK",
    ),
    Opt::with(
        Some('R'),
        "font-render-mode",
        "normal|light|mono",
        "How texts are drawn in PNG [default: normal]",
    ),
    Opt::with(
        Some('G'),
        "graph-render-mode",
        "normal|mono",
        "Whether edges are smooth in PNG [default: normal]",
    ),
    Opt::flag(Some('P'), "pango-markup", "Read markup in texts"),
    Opt::with(
        Some('B'),
        "font-smoothing-threshold",
        "SIZE",
        "Ignored, as in rrdtool",
    ),
    Opt::flag(Some('i'), "interlaced", "Ignored, as in rrdtool"),
    Opt::flag(Some('E'), "slope-mode", "Connect values by slopes"),
    Opt::with(
        Some('T'),
        "tabwidth",
        "PIXELS",
        "Distance of tab stops [default: 40]",
    ),
    Opt::with(
        Some('b'),
        "base",
        "1000|1024",
        "What k stands for [default: 1000]",
    ),
    Opt::with(
        Some('m'),
        "zoom",
        "FACTOR",
        "Size of a pixel in the picture [default: 1]",
    ),
    Opt::with(
        Some('a'),
        "imgformat",
        "FORMAT",
        "PNG, SVG, EPS, PDF, HTML, XML, XMLENUM, JSON, JSONTIME, CSV, TSV or SSV [default: PNG]",
    ),
    Opt::with(
        Some('f'),
        "imginfo",
        "FORMAT",
        "Print the name and the size of the picture, as in '<img src=\"%s\" width=\"%lu\" height=\"%lu\">'",
    ),
    Opt::flag(
        Some('z'),
        "lazy",
        "Draw only if the file is older than a pixel",
    ),
    DAEMON,
    Opt::flag(
        Some('Z'),
        "use-nan-for-all-missing-data",
        "Take missing files and data sources as unknown",
    ),
    Opt::flag(
        None,
        "disable-rrdtool-tag",
        "Leave out the text at the right edge",
    ),
    Opt::flag(None, "alt-y-mrtg", "Ignored, as in rrdtool"),
    Opt::with(
        None,
        "graph-type",
        "TIME",
        "Kind of the graph [default: TIME]",
    ),
    Opt::flag(
        None,
        "add-jsontime",
        "Print the table as JSON too, with graphv",
    ),
    Opt::flag(None, "utc", "Show times in UTC"),
    Opt::with(
        None,
        "theme",
        "light|dark",
        "Colours of the parts that --color does not set [default: light]",
    ),
    Opt::with(
        None,
        "palette",
        "okabe-ito|tol-bright|tol-muted",
        "Draw LINE, AREA and STACK without a colour in colours that colour-blind readers can distinguish",
    ),
    Opt::flag(
        None,
        "svg-text",
        "Write texts of SVG as text, not as outlines",
    ),
    Opt::flag(
        None,
        "tooltips",
        "Show the values under the pointer in SVG, without scripts",
    ),
    Opt::flag(
        None,
        "mark-unknown",
        "Shade times at which a drawn series is unknown",
    ),
    Opt::with(
        None,
        "json-spec",
        "FILE",
        "Read the graph from a JSON document; `-` is standard input",
    ),
    WAIT,
    LOCKING,
    MACHINE,
];

fn graph(session: &mut Session<'_>, words: &Words<'_>) -> Result<(), Failure> {
    if let Some(name) = words.value("json-spec") {
        return run_spec(session, words, name, graph);
    }
    let drawn = draw(session, words)?;
    if let (None, Some(bytes)) = (drawn.file, &drawn.image.bytes) {
        return session.write(bytes);
    }
    let mut out = Line::new();
    summary(&drawn, &mut out);
    session.write(out.as_bytes())
}

fn graphv(session: &mut Session<'_>, words: &Words<'_>) -> Result<(), Failure> {
    let facts = facts(session, words)?;
    print_facts(session, &facts)
}

/// Draws. Gives sizes, limits and texts, and the picture if it has no file.
pub(crate) fn facts(session: &mut Session<'_>, words: &Words<'_>) -> Result<Vec<Fact>, Failure> {
    if let Some(name) = words.value("json-spec") {
        return run_spec(session, words, name, facts);
    }
    let drawn = draw(session, words)?;
    Ok(drawn.graph.facts(&drawn.options, &drawn.image, drawn.file))
}

/// A graph that is drawn.
struct Drawn<'a> {
    graph: Graph,
    options: GraphOptions,
    image: Image,
    /// Where it is written; `None` for standard output.
    file: Option<&'a [u8]>,
}

fn draw<'a>(session: &mut Session<'_>, words: &Words<'a>) -> Result<Drawn<'a>, Failure> {
    let mut span = Span::DAY;
    for (name, value) in words.options() {
        match name {
            "start" => span.set_start(value)?,
            "end" => span.set_end(value)?,
            _ => {}
        }
    }
    let options = GraphOptions::read(words)?;
    let Some((file, elements)) = words.operands.split_first() else {
        return Err(Failure::new("missing filename"));
    };
    let (start, end) = span.resolve(&session.clock())?;
    let bounds = Bounds::new(start, end, options.step, options.rows())?;
    if elements.is_empty() {
        return Err(Failure::new("can't make a graph without contents"));
    }
    let daemon = daemon::address(session, words);
    let request = Request {
        machine: machine(words)?,
        daemon: daemon.as_deref(),
        missing_is_unknown: options.missing_is_unknown,
    };
    let graph = Graph::new(session, elements, &bounds, &options, &request)?;
    let file: Option<&[u8]> = (*file != b"-").then_some(file);
    let image = graph.render(&options, file, &session.fonts)?;
    warn_of_fonts(session, words, &image.warnings);
    if let (Some(file), Some(image)) = (file, &image.bytes) {
        // Links and devices are written to, as rrdtool does.
        std::fs::write(path(file), image).map_err(|error| cannot_open(file, &error))?;
    }
    Ok(Drawn {
        graph,
        options,
        image,
        file,
    })
}

/// The longest document of `--json-spec`.
const MOST_SPEC: u64 = 16 << 20;

/// Draws what a document describes. Options of the command line come after those of the document, and its file is
/// written instead.
fn run_spec<T>(
    session: &mut Session<'_>,
    words: &Words<'_>,
    name: &[u8],
    run: fn(&mut Session<'_>, &Words<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let mut text = Vec::new();
    let read = match name {
        b"-" if session.reads_lines => {
            let message =
                "--json-spec - is not possible where command lines are read from standard input";
            return Err(Failure::new(message));
        }
        b"-" => std::io::stdin()
            .lock()
            .take(MOST_SPEC)
            .read_to_end(&mut text),
        name => std::fs::File::open(path(name))
            .and_then(|file| file.take(MOST_SPEC).read_to_end(&mut text)),
    };
    read.map_err(|error| cannot_open(name, &error))?;
    let spec = spec::Spec::read(&text).map_err(|failure| spec::with_path(name, None, &failure))?;
    let (output, elements) = match words.operands[..] {
        [] => (spec.output.clone(), 0),
        [file] => (Some(file.to_vec()), 0),
        [_, ..] => (None, words.operands.len() - 1),
    };
    if elements > 0 {
        return Err(Failure::new(
            "elements are in the document of --json-spec, or on the command line, but not both",
        ));
    }
    let is_option = |path: &&String| path.starts_with("options.");
    let options = spec.paths.iter().filter(is_option).count();
    let (options, elements) = spec.words.split_at(options);
    let given = words.options().filter(|(name, _)| *name != "json-spec");
    let given = given.map(|(name, value)| {
        let has_value = OPTIONS
            .iter()
            .any(|option| option.long == name && option.value.is_some());
        let mut word = format!("--{name}").into_bytes();
        if has_value {
            word.push(b'=');
            word.extend_from_slice(value);
        }
        word
    });
    let given: Vec<Vec<u8>> = given.collect();
    let output = output.unwrap_or_else(|| b"-".to_vec());
    let before = options.iter().chain(&given);
    let raw: Vec<&[u8]> = before
        .map(Vec::as_slice)
        .chain([&b"--"[..], &output])
        .chain(elements.iter().map(Vec::as_slice))
        .collect();
    let done = Words::read(OPTIONS, &raw).and_then(|words| run(session, &words));
    done.map_err(|failure| match &failure {
        Failure::Message(message) => {
            let place = place::find(place::Asked::Graph, &raw, message, &session.clock());
            // Between options and elements are those of the command line, `--` and the file.
            let path = place.and_then(|place| match place.word < options.len() {
                true => spec.paths.get(place.word),
                false => spec.paths.get(place.word.checked_sub(given.len() + 2)?),
            });
            spec::with_path(name, path.map(String::as_str), &failure)
        }
        Failure::Output(_) => failure,
    })
}

/// A failure of `graph`, `graphv` or `xport` with the place in the command line that is wrong, behind its own first line.
///
/// `words` are those of the command line, with the name of the command.
pub fn with_place(
    session: &Session<'_>,
    words: &[&[u8]],
    failure: Failure,
    color: bool,
) -> Failure {
    let (Failure::Message(message), [name, raw @ ..]) = (&failure, words) else {
        return failure;
    };
    let asked = match *name {
        b"graph" | b"graphv" => place::Asked::Graph,
        b"xport" => place::Asked::Table,
        _ => return failure,
    };
    match place::find(asked, raw, message, &session.clock()) {
        Some(place) => {
            let picture = place::picture(&shown(name), raw, &place, color);
            Failure::new(format!("{message}\n{picture}"))
        }
        None => failure,
    }
}

/// Warns of what is missing. Fonts are shown behind the option naming them; scripts calling rrdtool are not warned of
/// them, as rrdtool takes another font without a word.
fn warn_of_fonts(session: &mut Session<'_>, words: &Words<'_>, warnings: &[String]) {
    for warning in warnings {
        let Some(rest) = warning.strip_prefix("font `") else {
            session.warn(warning);
            continue;
        };
        let name = rest.split('`').next().unwrap_or_default();
        let is_named = |value: &&[u8]| shown(value).contains(name);
        if !session.shows_places {
            continue;
        }
        match words.values("font").find(is_named) {
            Some(value) => {
                let picture = place::picture_of_part(&[b"--font", value], 1, name);
                session.warn(format_args!("{warning}\n{picture}"));
            }
            None => session.warn(warning),
        }
    }
}

/// Draws a graph of a page: what `--imginfo` asks for, and the texts of PRINT.
///
/// # Errors
///
/// It cannot be drawn.
pub(crate) fn drawn_for_page(
    session: &mut Session<'_>,
    words: &[&[u8]],
) -> Result<(String, Vec<String>), Failure> {
    let words = Words::read(OPTIONS, words)?;
    if words.operands.first() == Some(&&b"-"[..]) {
        return Err(Failure::new(
            "a page needs the name of a file for the graph",
        ));
    }
    let drawn = draw(session, &words)?;
    let info = image_info(&drawn.options, &drawn.image, drawn.file);
    Ok((info.unwrap_or_default(), drawn.graph.texts.printed))
}

/// What `graph` prints: the size of the picture or what `--imginfo` asks for, and the texts of PRINT.
fn summary(drawn: &Drawn<'_>, out: &mut Line) {
    let Drawn {
        graph,
        options,
        image,
        file,
    } = drawn;
    match image_info(options, image, *file) {
        Some(text) => {
            out.push(text.as_bytes());
            out.push_byte(b'\n');
        }
        None if matches!(options.format, ImageFormat::Table(_)) => {}
        None => {
            let (width, height) = image.size;
            out.push(format!("{width}x{height}\n").as_bytes());
        }
    }
    for text in &graph.texts.printed {
        out.push(text.as_bytes());
        out.push_byte(b'\n');
    }
}

/// What `--imginfo` asks for: the name of the file, and the size of the picture.
pub(crate) fn image_info(
    options: &GraphOptions,
    image: &Image,
    file: Option<&[u8]>,
) -> Option<String> {
    let format = options.image_info.as_ref()?;
    let name = match file {
        Some(file) => {
            shown(file.rsplit(|byte| *byte == b'/').next().unwrap_or_default()).into_owned()
        }
        None => "memory".to_owned(),
    };
    let zoomed = |side: i64| ((side as f64) * options.zoom) as i64;
    let mut values = [
        name,
        zoomed(image.size.0).to_string(),
        zoomed(image.size.1).to_string(),
    ]
    .into_iter();
    let mut text = String::new();
    let mut rest = format.as_str();
    while let Some(at) = rest.find('%') {
        text.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(more) = rest.strip_prefix('%') {
            text.push('%');
            rest = more;
            continue;
        }
        text.push_str(&values.next().unwrap_or_default());
        rest = rest
            .strip_prefix("lu")
            .or_else(|| rest.strip_prefix('s'))
            .unwrap_or(rest);
    }
    text.push_str(rest);
    Some(text)
}
