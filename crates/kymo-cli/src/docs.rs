//! `kymo completions`, `kymo man`.

use std::io::{self, Write};
use std::path::Path;

use kymo_io::{Replace, replace};

use crate::args;
use crate::ctf::told;
use crate::terminal::{Failure, Outcome, Terminal};

/// Writes the completions of a shell.
pub(crate) fn completions(
    args: &args::Completions,
    terminal: &Terminal,
) -> Result<Outcome, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut args::command(), "kymo", &mut script);
    terminal.write(&script)?;
    Ok(Outcome::Good)
}

/// Writes the manual pages.
pub(crate) fn man(args: &args::Man, terminal: &Terminal) -> Result<Outcome, Failure> {
    let mut command = args::command().disable_help_subcommand(true);
    command.build();
    let Some(dir) = &args.dir else {
        terminal.write(page(command)?.1.as_bytes())?;
        return Ok(Outcome::Good);
    };
    std::fs::create_dir_all(dir).map_err(|error| told(dir, error))?;
    write_pages(command, dir)?;
    Ok(Outcome::Good)
}

/// Writes the pages of a command and of those below it.
fn write_pages(command: clap::Command, dir: &Path) -> Result<(), Failure> {
    for below in command.get_subcommands() {
        write_pages(below.clone(), dir)?;
    }
    let (name, text) = page(command)?;
    let path = dir.join(name);
    let how = Replace {
        sync: false,
        ..Replace::NEW
    };
    replace(&path, how, |file| file.write_all(text.as_bytes())).map_err(|error| told(&path, error))
}

/// The name and the text of a manual page. The sections that stand behind the options in the
/// help are sections here too.
fn page(command: clap::Command) -> io::Result<(String, String)> {
    let man = clap_mangen::Man::new(command)
        .source(concat!("kymo ", env!("CARGO_PKG_VERSION")))
        .manual("User Commands");
    let mut text = Vec::new();
    man.render(&mut text)?;
    let text = String::from_utf8_lossy(&text)
        .replace(".SH EXTRA\n", "")
        .replace("\nEnvironment:\n", "\n.SH ENVIRONMENT\n.nf\n")
        .replace("\nExit status:\n", "\n.SH \"EXIT STATUS\"\n.nf\n")
        .replace("\nExamples:\n", "\n.SH EXAMPLES\n.nf\n")
        .replace(".SH VERSION\n", ".fi\n.SH VERSION\n");
    Ok((man.get_filename(), text))
}
