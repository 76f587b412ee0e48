//! The program `kymo`: from arguments to the library and back to a terminal.
//!
//! `args` is what can be written on the command line, `open` turns it into open
//! recordings and filters, and each command has a module that does its work. It is a library so that other
//! programs, such as Python's, can be the program `kymo` too.

mod analysis;
mod args;
mod breakdown;
mod complete;
mod config;
mod convert;
mod ctf;
mod cut;
mod diff;
mod directory;
mod docs;
mod feed;
mod files;
mod follow;
mod formats;
#[cfg(feature = "draw")]
mod graph;
mod grow;
mod index;
mod links;
mod machine;
#[cfg(any(feature = "arrow", feature = "draw"))]
mod notices;
mod outputs;
mod print;
mod query;
mod receive;
mod report;
mod rrd;
mod send;
#[cfg(all(unix, feature = "serve"))]
mod serve;
mod time;
mod usage;
#[cfg(feature = "draw")]
mod view;
mod views;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::FromArgMatches;

use args::{Cli, Command};
#[cfg(unix)]
pub(crate) use kymo_command::signals;
pub(crate) use kymo_command::{live, open, terminal};
use terminal::{Failure, Outcome, Terminal};

/// The commands and options of the program, for tools that check or write its documents.
pub fn command() -> clap::Command {
    args::command()
}

/// Runs a command line, of which the first word is the name of the program.
pub fn run(mut words: Vec<OsString>) -> ExitCode {
    #[cfg(unix)]
    signals::fail_at_size_limit();
    #[cfg(target_os = "linux")]
    kymo_io::survive_truncation();
    #[cfg(feature = "draw")]
    match rrd::export::conversion(&words) {
        Some(Ok(conversion)) => words = conversion,
        Some(Err(code)) => return code,
        None => {
            if let Some(done) = rrd::rrdtool::take(&words) {
                return done;
            }
        }
    }
    let terminal = Terminal::new();
    if let Some(outcome) = complete::take(&words, &terminal) {
        return ExitCode::from(outcome as u8);
    }
    // Before the command or behind it: views and the configuration look for the command in its place.
    let is_quiet = words.get(1).is_some_and(|word| word == "--quiet");
    if is_quiet {
        words.remove(1);
    }
    let words = args::machine::with_negative_values(words.into_iter());
    let words: Vec<_> = words.collect();
    #[cfg(all(unix, feature = "serve"))]
    let wants_json = serve::wants_json(&words);
    let words = match files::expand(words)
        .and_then(views::expand)
        .and_then(config::expand)
    {
        Ok(words) => words,
        #[cfg(all(unix, feature = "serve"))]
        Err(problem) if wants_json => {
            serve::report_as_json(&problem.to_string());
            return ExitCode::from(Outcome::Usage as u8);
        }
        Err(problem) => {
            let failure = Failure::Usage(format!("error: {problem}"));
            return ExitCode::from(terminal.report_failure(&failure) as u8);
        }
    };
    let matches = args::command_for(&words).try_get_matches_from(&words);
    let cli = match matches.and_then(|mut matches| Cli::from_arg_matches_mut(&mut matches)) {
        Ok(cli) => cli,
        Err(error) => return ExitCode::from(usage::report(&error, &words, &terminal) as u8),
    };
    #[cfg(unix)]
    if !is_daemon(&cli.command) {
        signals::remove_temporaries();
    }
    let terminal = terminal.with_quiet(cli.quiet || is_quiet);
    let result = match cli.command {
        Command::Print(args) => print::run(&args, &terminal),
        #[cfg(feature = "draw")]
        Command::View(args) => view::run(&args, &terminal),
        #[cfg(feature = "draw")]
        Command::Graph(args) => graph::run(&args, &terminal),
        Command::Convert(args) => convert::run(&args, &terminal),
        Command::Cut(args) => cut::run(*args, &terminal),
        Command::Repair(args) => ctf::repair(&args, &terminal),
        Command::Index(args) => ctf::index(&args, &terminal),
        Command::Info(args) => report::info(&args, &terminal),
        Command::Stats(args) => report::stats(&args, &terminal),
        Command::Send(args) => send::run(&args, &terminal),
        Command::Receive(args) => receive::run(&args, &terminal),
        Command::Query(args) => query::run(&args),
        Command::Check(args) => report::check(&args, &terminal),
        Command::States(args) => analysis::states(&args, &terminal),
        Command::Latency(args) => analysis::latency(&args, &terminal),
        Command::Profile(args) => analysis::profile(&args, &terminal),
        Command::Values(args) => analysis::values(&args, &terminal),
        Command::Diff(args) => diff::run(&args, &terminal),
        Command::Machine(args) => machine::run(&args.command, &terminal),
        Command::Time(args) => time::run(&args, &terminal),
        #[cfg(all(unix, feature = "serve"))]
        Command::Serve(args) => serve::run(&args, &terminal),
        Command::Rrd(args) => rrd::run(&args.command, &terminal),
        Command::Completions(args) => docs::completions(&args, &terminal),
        Command::Man(args) => docs::man(&args, &terminal),
    };
    let mut outcome = result.unwrap_or_else(|failure| terminal.report_failure(&failure));
    if terminal.report_truncated() && outcome == Outcome::Good {
        outcome = Outcome::Damage;
    }
    ExitCode::from(outcome as u8)
}

/// Whether a command handles signals itself.
#[cfg(unix)]
fn is_daemon(command: &Command) -> bool {
    #[cfg(feature = "serve")]
    return matches!(command, Command::Serve(_));
    #[cfg(not(feature = "serve"))]
    {
        let _ = command;
        false
    }
}
