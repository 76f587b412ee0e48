//! rrdtool's commands, behind `kymo rrd` and behind a link named rrdtool.

use std::ffi::{OsStr, OsString};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use kymo_rrdtool::{
    Defaults, Failure, Session, find, knows, locking_named, makes_databases, run, usage, with_place,
};

use super::{default_format, hints};

/// Does what the command line asks if it is one of rrdtool; `None` if not.
///
/// This comes before everything else, since programs call rrdtool very often: nothing is prepared
/// that a command does not need.
pub(crate) fn take(words: &[OsString]) -> Option<ExitCode> {
    let (program, words) = words.split_first()?;
    let called = Path::new(program).file_stem().unwrap_or_default();
    if called == "rrdtool" {
        return Some(link(words));
    }
    if called == "rrdcgi" {
        return Some(page(words));
    }
    // The package of rrdtool has these, too.
    let command_of_link = match called.to_str() {
        Some("rrdcreate") => Some("create"),
        Some("rrdinfo") => Some("info"),
        Some("rrdupdate") => Some("update"),
        _ => None,
    };
    if let Some(name) = command_of_link {
        return Some(match words {
            [] => reported(&usage(find(name.as_bytes()))),
            words => command(OsStr::new(name), words, true),
        });
    }
    match words {
        [rrd, dash, words @ ..] if rrd == "rrd" && dash == "-" && words.len() < 2 => {
            Some(lines(words.first()))
        }
        [rrd, cgi, words @ ..] if rrd == "rrd" && cgi == "cgi" => {
            let asks = words.iter().any(|word| word == "--help" || word == "-h");
            (!asks).then(|| page(words))
        }
        [rrd, name, words @ ..] if rrd == "rrd" && knows(bytes(name)) => {
            let asks = |word: &&OsString| *word == "--help";
            let before_end = words.iter().take_while(|word| *word != "--");
            match before_end.into_iter().find(asks) {
                Some(_) => None,
                None => Some(command(name, words, false)),
            }
        }
        _ => None,
    }
}

/// What a link named rrdtool does.
fn link(words: &[OsString]) -> ExitCode {
    match words {
        [] => reported(&usage(None)),
        [dash] if dash == "-" => lines(None),
        [dash, directory] if dash == "-" => lines(Some(directory)),
        // Whatever it is, `--version` and the like too: rrdtool shows its usage.
        [name] => reported(&usage(find(bytes(name)))),
        [help, name, ..] if help == "help" => reported(&usage(find(bytes(name)))),
        [name, words @ ..] if knows(bytes(name)) => command(name, words, true),
        [name, ..] => {
            let name = Path::new(name).display();
            let _ = writeln!(io::stderr(), "ERROR: unknown function '{name}'");
            ExitCode::FAILURE
        }
    }
}

/// Prints a text.
fn reported(text: &str) -> ExitCode {
    match io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Runs the commands in lines of standard input, in a directory if one is given.
fn lines(directory: Option<&OsString>) -> ExitCode {
    if let Some(directory) = directory
        && let Err(error) = std::env::set_current_dir(directory)
    {
        let reason = kymo_io::reason(&error);
        let directory = Path::new(directory).display();
        let _ = writeln!(io::stderr(), "ERROR: chdir {directory} {reason}");
        // As rrdtool does: the number of the error.
        let status = error
            .raw_os_error()
            .and_then(|number| u8::try_from(number).ok());
        return ExitCode::from(status.unwrap_or(1));
    }
    in_session(OsStr::new("-"), |session| {
        kymo_rrdtool::pipe(session, &mut io::stdin().lock())
    })
}

/// Makes a page: what a link named rrdcgi does.
fn page(words: &[OsString]) -> ExitCode {
    let mut is_filter = false;
    let mut file = None;
    for word in words {
        match bytes(word) {
            b"-f" | b"--filter" => is_filter = true,
            [b'-', option @ ..] if !option.is_empty() => {
                let option = Path::new(word).display();
                let _ = writeln!(
                    io::stderr(),
                    "ERROR: invalid option '{option}' (known: --filter)"
                );
                return ExitCode::FAILURE;
            }
            // Web servers may add arguments.
            word => file = file.or(Some(word)),
        }
    }
    let Some(file) = file else {
        let _ = writeln!(io::stderr(), "ERROR: expected a filename");
        return ExitCode::FAILURE;
    };
    in_session(OsStr::new("graph"), |session| {
        kymo_rrdtool::cgi(session, file, is_filter, &mut io::stdin().lock())
    })
}

/// Runs a command.
fn command(name: &OsStr, words: &[OsString], is_link: bool) -> ExitCode {
    let words: Vec<&[u8]> = std::iter::once(name)
        .chain(words.iter().map(OsString::as_os_str))
        .map(bytes)
        .collect();
    let is_terminal = io::stderr().is_terminal();
    in_session(name, |session| {
        // Scripts that call rrdtool expect one line.
        session.shows_places = is_terminal || !is_link;
        let done = run(session, &words).unwrap_or(Ok(()));
        if !session.shows_places {
            return done;
        }
        done.map_err(|failure| {
            let hint = match &failure {
                Failure::Message(message) => hints::hint(&words, message),
                _ => None,
            };
            let placed = with_place(session, &words, failure, is_colored(is_terminal));
            match (placed, hint) {
                (Failure::Message(message), Some(hint)) => {
                    Failure::Message(format!("{message}\nhint: {hint}"))
                }
                (placed, _) => placed,
            }
        })
    })
}

/// Whether messages have colours.
fn is_colored(is_terminal: bool) -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    is_terminal && !is_set("NO_COLOR")
}

/// Does a command's work, and returns how it went.
fn in_session(
    name: &OsStr,
    work: impl FnOnce(&mut Session<'_>) -> Result<(), Failure>,
) -> ExitCode {
    #[cfg(unix)]
    crate::signals::remove_temporaries();
    let stdout = io::stdout();
    let mut out = BufWriter::with_capacity(1 << 16, stdout.lock());
    let mut warnings = io::stderr();
    let done = defaults(name).and_then(|defaults| {
        let mut session = Session::new(&mut out, &mut warnings, defaults);
        if let Some(mode) = std::env::var_os("RRD_LOCKING").filter(|mode| !mode.is_empty()) {
            session.locking = locking_named(bytes(&mode))
                .map_err(|failure| Failure::new(format!("RRD_LOCKING: {failure}")))?;
        }
        let done = work(&mut session);
        // The process ends: the system closes thousands of files at once, which is less work than
        // to do it one by one. Nothing that was written waits in them.
        std::mem::forget(session);
        done
    });
    let done = done.and(out.flush().map_err(Failure::Output));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(failure) => {
            // What was written before the failure comes before its message.
            let _ = out.flush();
            failed(&failure)
        }
    }
}

/// Reports why a command failed, as rrdtool does.
pub(super) fn failed(failure: &Failure) -> ExitCode {
    let _ = writeln!(io::stderr(), "ERROR: {failure}");
    ExitCode::FAILURE
}

/// What the environment and the configuration say.
fn defaults(name: &OsStr) -> Result<Defaults, Failure> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let mut defaults = Defaults {
        daemon: variable("RRDCACHED_ADDRESS"),
        strip_path: variable("RRDCACHED_STRIPPATH"),
        ..Defaults::default()
    };
    // What makes no databases need not know which.
    if makes_databases(bytes(name)) {
        defaults.format = default_format().map_err(Failure::Message)?;
    }
    Ok(defaults)
}

/// A word as bytes: exactly what was written, on Unix.
pub(super) fn bytes(word: &OsStr) -> &[u8] {
    word.as_encoded_bytes()
}
