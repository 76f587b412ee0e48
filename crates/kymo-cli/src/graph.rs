//! `kymo graph`.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use clap::ValueEnum;
use kymo::Timeline;
use kymo::pipeline::Window;
use kymo::timeline::QueryError;
use kymo_draw::{Fonts, RenderOptions};
use kymo_graph::{
    Choice, Look, Panel, Zone, are_databases, databases, page, panel_picture, panels,
};
use kymo_io::{Replace, STANDARD_INPUT, replace};

use crate::args::graph::{Graph, PictureFormat, Theme};
use crate::notices::Notices;
use crate::open::{Wanted, inputs, tell_opening_faults};
use crate::terminal::{Failure, Outcome, Terminal};

/// Draws recordings.
pub(crate) fn run(args: &Graph, terminal: &Terminal) -> Result<Outcome, Failure> {
    let format = format(args)?;
    let inputs = inputs(&args.input, false, terminal)?;
    let wanted = Wanted::new(&args.selection, inputs.gmt);
    let filter = wanted.filter(&inputs.recordings, terminal)?;
    wanted.warn(&inputs, &filter, terminal);
    let mut outcome = tell_opening_faults(&inputs, terminal);
    let windows = wanted.windows(&inputs.recordings)?;
    let choice = Choice {
        filter: wanted.query,
        range: Window {
            begin: windows
                .iter()
                .map(|of| of.begin)
                .min()
                .unwrap_or(Window::ALL.begin),
            end: windows
                .iter()
                .map(|of| of.end)
                .max()
                .unwrap_or(Window::ALL.end),
        },
        per: args.per.clone(),
        threads: args.threads.count(),
        ..Choice::default()
    };
    let look = Look {
        width: args.width,
        height: args.height,
        title: args.title.clone(),
        is_dark: args.theme == Theme::Dark,
        zone: Zone::new(inputs.gmt),
    };
    let timeline = Timeline::new(inputs.recordings);
    let fonts = Fonts::new();
    if format == PictureFormat::Html && are_databases(&timeline) && args.per.is_none() {
        // One database at a time is in memory.
        let mut all = databases(&timeline, &choice);
        write_to(&args.output, terminal, |out| {
            html(&mut all, &look, &fonts, out)
        })?;
        return Ok(outcome);
    }
    let notices = Notices::new(terminal);
    let drawn = panels(&timeline, &choice, &mut |of| notices.take(of)).map_err(|error| {
        Failure::Usage(match error {
            QueryError::Filter(error) => error.render("--per", terminal.color()),
            error => format!("error: {error}"),
        })
    })?;
    if notices.end(false) != Outcome::Good {
        outcome = Outcome::Damage;
    }
    if format == PictureFormat::Html {
        let mut all = drawn.into_iter();
        write_to(&args.output, terminal, |out| {
            html(&mut all, &look, &fonts, out)
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
    write_to(&args.output, terminal, |out| out.write_all(&bytes))?;
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
            "error: `{}` does not end in .png, .svg, .pdf, .eps or .html\nhint: specify the format with `--format`",
            args.output.display()
        ))
    })
}

/// Writes a file as a whole, or standard output.
fn write_to(
    path: &Path,
    terminal: &Terminal,
    mut write: impl FnMut(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    if path.as_os_str() == STANDARD_INPUT {
        let mut bytes = Vec::new();
        write(&mut bytes)?;
        return Ok(terminal.write(&bytes)?);
    }
    let write = |file: &mut File| {
        let mut out = io::BufWriter::new(file);
        write(&mut out)?;
        out.flush()
    };
    replace(path, Replace::NEW, write).map_err(|error| {
        Failure::Usage(format!("error: cannot write `{}`: {error}", path.display()))
    })
}

/// A page of pictures.
fn html(
    panels: &mut dyn Iterator<Item = Panel>,
    look: &Look,
    fonts: &Fonts,
    out: &mut dyn Write,
) -> io::Result<()> {
    let title = look.title.as_deref().unwrap_or("kymo graph");
    let title = title.replace('&', "&amp;").replace('<', "&lt;");
    let back = if look.is_dark {
        "#18181b;color:#e4e4e7"
    } else {
        "#fff"
    };
    write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\n\
         <style>body{{background:{back};font-family:sans-serif;margin:8px}}svg{{margin:4px}}</style></head>\n\
         <body><h1>{title}</h1>\n"
    )?;
    let options = RenderOptions {
        svg_text: true,
        ..RenderOptions::default()
    };
    for panel in panels {
        let picture = panel_picture(&panel, look, fonts);
        let svg = kymo_draw::svg(&picture, fonts, &options).map_err(io::Error::other)?;
        // A declaration of XML is only for files of their own.
        let begin = svg
            .windows(4)
            .position(|bytes| bytes == b"<svg")
            .unwrap_or(0);
        out.write_all(&svg[begin..])?;
        out.write_all(b"\n")?;
    }
    out.write_all(b"</body></html>\n")
}
