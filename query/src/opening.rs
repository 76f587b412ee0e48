//! From options and paths to open recordings, in this process or in another of a cluster.

use std::path::PathBuf;

use clap::{ArgMatches, Args, Command, FromArgMatches};
use kymo::AnyRecording;
use kymo::pipeline::Window;
use kymo_command::args::{Input, Selection};
use kymo_command::open::{Wanted, inputs, report_opening_faults};
use kymo_command::terminal::{Failure, Outcome, Terminal};

use crate::session::is_parquet;
use crate::source::Source;

/// Which recordings are opened, how, and which of their events are wanted.
#[derive(Clone, Debug, Args)]
pub(crate) struct Opening {
    /// Which recordings.
    #[command(flatten)]
    pub(crate) input: Input,

    /// Which of their events are in the tables of events.
    #[command(flatten)]
    pub(crate) selection: Selection,

    /// Exit with 1 also if the recorder discarded something. Warnings about metadata are errors then.
    #[arg(long, help_heading = "Work")]
    pub(crate) strict: bool,
}

/// What was opened.
pub(crate) struct Opened {
    pub(crate) source: Source,
    /// Files, and directories of them.
    pub(crate) parquet: Vec<PathBuf>,
    /// Whether all that was asked for is there, without damage.
    pub(crate) outcome: Outcome,
}

impl Opening {
    /// The options that were given, as another process reads them with [`parse`](Self::parse), and the paths.
    ///
    /// # Errors
    ///
    /// A word is not Unicode.
    pub(crate) fn words(&self, matches: &ArgMatches) -> Result<Vec<String>, Failure> {
        let mut words = Vec::new();
        let text = |word: &std::ffi::OsStr| match word.to_str() {
            Some(text) => Ok(text.to_owned()),
            None => Err(Failure::Usage(format!(
                "error: `{}` is not Unicode, as a cluster needs it",
                word.display()
            ))),
        };
        for option in Self::augment_args(Command::new("words")).get_arguments() {
            let (id, Some(name)) = (option.get_id().as_str(), option.get_long()) else {
                continue;
            };
            let source = matches.value_source(id);
            if source != Some(clap::parser::ValueSource::CommandLine) {
                continue;
            }
            if option.get_action().takes_values() {
                for value in matches.get_raw(id).into_iter().flatten() {
                    words.push(format!("--{name}={}", text(value)?));
                }
            } else {
                words.push(format!("--{name}"));
            }
        }
        words.push("--".to_owned());
        for path in &self.input.paths {
            words.push(text(path.as_os_str())?);
        }
        Ok(words)
    }

    /// What [`words`](Self::words) say.
    ///
    /// # Errors
    ///
    /// Why they say nothing here: a file with keys may be missing.
    pub(crate) fn parse(words: &[String]) -> Result<Self, String> {
        let command = Self::augment_args(Command::new("words").no_binary_name(true));
        let matches = command.try_get_matches_from(words);
        let opening = matches.and_then(|matches| Self::from_arg_matches(&matches));
        opening.map_err(|error| {
            let text = error.to_string();
            let line = text.lines().next().unwrap_or_default();
            line.trim_start_matches("error: ").to_owned()
        })
    }

    /// Opens the recordings; what there is to say of it goes to the terminal.
    ///
    /// # Errors
    ///
    /// Nothing can be opened, or the options are wrong for what is there.
    pub(crate) fn open(mut self, threads: usize, terminal: &Terminal) -> Result<Opened, Failure> {
        let paths = &mut self.input.paths;
        let parquet: Vec<PathBuf> = paths.extract_if(.., |path| is_parquet(path)).collect();
        if self.input.paths.is_empty() {
            if parquet.is_empty() {
                return Err(Failure::Usage(
                    "error: no recording is given\nhint: `kymo query 'SELECT ...' PATH`".to_owned(),
                ));
            }
            return Ok(Opened {
                source: Source::new(Vec::new(), threads),
                parquet,
                outcome: Outcome::Good,
            });
        }
        let inputs = inputs(&self.input, self.strict, terminal)?;
        let outcome = report_opening_faults(&inputs, terminal);
        let wanted = Wanted::new(&self.selection, inputs.gmt);
        // Wrong conditions are errors before anything is read.
        let filter = wanted.filter(&inputs.recordings, terminal)?;
        wanted.warn(&inputs, &filter, terminal);
        let range = one_window(&wanted.windows(&inputs.recordings)?)?;
        let recordings: Vec<AnyRecording> = inputs.recordings;
        Ok(Opened {
            source: Source::new(recordings, threads).with_selection(
                wanted.query,
                range,
                self.strict,
            ),
            parquet,
            outcome,
        })
    }
}

/// The time in which events of all recordings are wanted.
fn one_window(windows: &[Window]) -> Result<Window, Failure> {
    match windows.split_first() {
        Some((first, rest)) if rest.iter().all(|other| other == first) => Ok(*first),
        Some(_) => Err(Failure::Usage(
            "error: the recordings have different intersections of their streams\n\
             hint: with `--stream-intersection`, query one recording at a time"
                .to_owned(),
        )),
        None => Ok(Window::ALL),
    }
}
