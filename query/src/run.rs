//! From the command line to rows.

use std::io::{IsTerminal, Read, stdin};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::ArgMatches;
use datafusion::common::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::sql::parser::Statement;
use futures::StreamExt;
use kymo_command::signals;
use kymo_command::terminal::{Failure, Outcome, Terminal};
use kymo_text::visible;

use crate::args::{Parameter, Query, secret};
use crate::cluster::client::Client;
use crate::errors::{InText, Reported, is_of_planning, message, render};
use crate::output::{Format, Output, is_closed};
use crate::prompt::{Entry, Prompt, quoted};
use crate::session::{Session, Settings, runtime, statements};
use crate::source::Source;

/// Does what the command line asks for.
///
/// # Errors
///
/// The command line is wrong, or nothing can be opened.
pub(crate) async fn run(
    mut args: Query,
    matches: &ArgMatches,
    terminal: &Terminal,
) -> Result<Outcome, Failure> {
    let statement = statement(&mut args)?;
    let (engine, outcome) = match &args.cluster {
        Some(address) => {
            let words = args.opening.words(matches)?;
            let secret = secret(args.token_file.as_deref())?;
            let client = Client::new(address.clone(), secret, words, terminal.color());
            let outcome = client.open(terminal).await?;
            (Engine::Cluster(client), outcome)
        }
        None => {
            let threads = args.threads.count();
            let (memory, read_only) = (args.memory, args.read_only);
            let opened = args.opening.open(threads, terminal)?;
            let session = session(opened.source, &opened.parquet, threads, memory, read_only).await;
            let session = session.map_err(|error| {
                terminal.error(render(&error, "", false).trim_start_matches("error: "));
                Failure::Unreadable
            })?;
            (Engine::Local(Box::new(session)), opened.outcome)
        }
    };
    let runner = Runner {
        engine,
        format: args.format,
        output: args.output,
        parameters: args.param,
        terminal,
    };
    let of_sql = match statement {
        Some(sql) => {
            signals::remove_temporaries();
            tokio::spawn(end_if_interrupted());
            runner.script(&sql).await
        }
        None => {
            // Ctrl-C ends a statement and not the program.
            signals::remove_temporaries_unless_interrupted();
            runner.prompt().await?
        }
    };
    let worst = [outcome, of_sql]
        .into_iter()
        .max_by_key(|outcome| *outcome as u8);
    Ok(worst.unwrap_or(Outcome::Good))
}

async fn session(
    source: Source,
    parquet: &[PathBuf],
    threads: usize,
    memory: usize,
    is_read_only: bool,
) -> Result<Session, DataFusionError> {
    let settings = Settings {
        threads,
        runtime: runtime(memory)?,
        remote: None,
        is_read_only,
    };
    Session::new(Arc::new(source), parquet, &settings).await
}

/// The SQL that the command line gives; none for a prompt.
fn statement(args: &mut Query) -> Result<Option<String>, Failure> {
    if let Some(file) = &args.file {
        let text = match file == Path::new("-") {
            true => {
                let mut text = String::new();
                stdin().read_to_string(&mut text).map(|_| text)
            }
            false => std::fs::read_to_string(file),
        };
        let unreadable = |error| Failure::Usage(format!("error: {}: {error}", file.display()));
        return text.map(Some).map_err(unreadable);
    }
    let first = args.opening.input.paths.first();
    if let Some(sql) = first.filter(|path| !path.exists() && path.as_os_str() != "-") {
        // A path that does not exist is not a statement.
        let text = sql.to_string_lossy().into_owned();
        if text.contains(char::is_whitespace) || args.opening.input.paths.len() > 1 {
            args.opening.input.paths.remove(0);
            return Ok(Some(text));
        }
    }
    if !stdin().is_terminal() {
        return Err(Failure::Usage(
            "error: no SQL statement is given\nhint: `kymo query 'SELECT ...' PATH`, or `--file -` for standard input"
                .to_owned(),
        ));
    }
    Ok(None)
}

/// Who answers statements.
enum Engine {
    /// This process.
    Local(Box<Session>),
    /// A cluster.
    Cluster(Client),
}

impl Engine {
    /// Begins to answer a statement of a text.
    async fn start(
        &self,
        sql: &str,
        (number, statement): (usize, Statement),
        parameters: &[Parameter],
    ) -> Result<SendableRecordBatchStream, DataFusionError> {
        match self {
            Self::Local(session) => session.start(statement, parameters).await,
            Self::Cluster(client) => client.start(sql, number, parameters).await,
        }
    }

    /// What could not be read since it was asked the last time: a scheduler says so itself.
    fn unreadable(&self) -> Option<String> {
        match self {
            Self::Local(session) => session.source.damage.take_unreadable(),
            Self::Cluster(_) => None,
        }
    }

    /// The damage that was met since it was asked the last time.
    fn damage(&self) -> Vec<String> {
        match self {
            Self::Local(session) => session.source.damage.take(),
            Self::Cluster(client) => client.damage.take(),
        }
    }

    async fn names(&self) -> Vec<String> {
        match self {
            Self::Local(session) => session.names().await,
            Self::Cluster(client) => client.names(),
        }
    }

    fn tables(&self) -> Vec<String> {
        match self {
            Self::Local(session) => session.tables(),
            Self::Cluster(client) => client.tables(),
        }
    }
}

struct Runner<'t> {
    engine: Engine,
    format: Option<Format>,
    output: Option<PathBuf>,
    parameters: Vec<Parameter>,
    terminal: &'t Terminal,
}

impl Runner<'_> {
    /// Runs all statements of a text.
    async fn script(&self, sql: &str) -> Outcome {
        let statements = match statements(sql) {
            Ok(statements) => statements,
            Err(error) => {
                self.report(&error, sql);
                return Outcome::Usage;
            }
        };
        if statements.len() > 1 && self.output.is_some() {
            self.terminal
                .error("`--output` takes the rows of one statement");
            return Outcome::Usage;
        }
        IS_INTERRUPTED.store(false, Ordering::Relaxed);
        let mut worst = Outcome::Good;
        for statement in statements.into_iter().enumerate() {
            let outcome = self.statement(statement, sql).await;
            let is_wrong = outcome != Outcome::Good && outcome != Outcome::Damage;
            if is_wrong || IS_INTERRUPTED.load(Ordering::Relaxed) {
                return outcome;
            }
            worst = if outcome == Outcome::Good {
                worst
            } else {
                outcome
            };
        }
        worst
    }

    async fn statement(&self, statement: (usize, Statement), sql: &str) -> Outcome {
        let mut result = self.rows(statement.clone(), sql).await;
        if let Engine::Local(session) = &self.engine {
            while let Err((error, false)) = &result
                && session.plan_otherwise(error)
            {
                result = self.rows(statement.clone(), sql).await;
            }
            session.plan_as_usual();
        }
        let mut outcome = Outcome::Good;
        for damage in self.engine.damage() {
            self.terminal.error(damage);
            outcome = Outcome::Damage;
        }
        if self.terminal.report_truncated() {
            outcome = Outcome::Damage;
        }
        match result {
            Ok(()) => outcome,
            Err(_) if is_closed() => Outcome::Good,
            Err((error, is_begun)) => {
                self.report(&error, sql);
                match is_begun || is_of_execution(&error) {
                    true => Outcome::Damage,
                    false => Outcome::Usage,
                }
            }
        }
    }

    /// Runs a statement and writes its rows. An error says whether some were written.
    async fn rows(
        &self,
        statement: (usize, Statement),
        sql: &str,
    ) -> Result<(), (DataFusionError, bool)> {
        let before = |error| (error, false);
        // One for the whole statement: it also sees signals that come while rows are written.
        let mut interrupted = pin!(interrupted());
        let start = self.engine.start(sql, statement, &self.parameters);
        let mut stream = tokio::select! {
            biased;
            error = &mut interrupted => return Err(before(error)),
            stream = start => stream.map_err(before)?,
        };
        let schema = stream.schema();
        let by_name = self.output.as_deref().and_then(Format::of_path);
        let format = self.format.or(by_name).unwrap_or(Format::Table);
        let mut output = Output::new(format, &schema, self.output.as_deref()).map_err(before)?;
        loop {
            let next = tokio::select! {
                biased;
                error = &mut interrupted => Some(Err(error)),
                next = stream.next() => next,
            };
            let result = match next {
                Some(batch) => batch.and_then(|batch| output.write(&batch)),
                None => match self.engine.unreadable() {
                    // Rows may be missing.
                    Some(reason) => Err(DataFusionError::Execution(reason)),
                    None => break,
                },
            };
            if let Err(error) = result {
                let is_begun = output.is_begun && self.output.is_none();
                if is_begun {
                    // What is complete is shown.
                    let _ = output.finish();
                }
                return Err((error, is_begun));
            }
        }
        output.finish().map_err(|error| (error, true))
    }

    fn report(&self, error: &DataFusionError, sql: &str) {
        let picture = render(error, sql, self.terminal.color());
        self.terminal
            .report(format!("{}\n", picture.trim_end()).as_bytes());
    }

    async fn prompt(&self) -> Result<Outcome, Failure> {
        let names = self.engine.names().await;
        let failed = |error| Failure::Output(std::io::Error::other(error));
        let mut prompt = Prompt::new(names).map_err(failed)?;
        self.terminal
            .report(b"Statements end with `;`. \\d lists tables, \\q quits.\n");
        loop {
            match prompt.read().map_err(failed)? {
                Entry::End => return Ok(Outcome::Good),
                Entry::Help => self.terminal.report(
                    b"\\d lists tables, DESCRIBE \"TABLE\"; the columns of one. Tab completes names, Ctrl-C stops a query, \\q quits.\n",
                ),
                Entry::Tables => self.tables(),
                Entry::Statement(sql) => {
                    self.script(&sql).await;
                }
            }
        }
    }

    fn tables(&self) {
        let names = self.engine.tables();
        let lines = names.iter().map(|name| quoted(name));
        let lines: String = lines.map(|line| format!("{}\n", visible(&line))).collect();
        self.terminal.report(lines.as_bytes());
    }
}

/// A statement that Ctrl-C is to stop has so long to do so.
const GRACE: Duration = Duration::from_millis(1500);

/// Whether Ctrl-C stopped the statement in hand: no other one of its text follows.
static IS_INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Waits for Ctrl-C.
async fn interrupted() -> DataFusionError {
    if tokio::signal::ctrl_c().await.is_err() {
        // Signals cannot be heard: this one ends the program.
        std::future::pending::<()>().await;
    }
    IS_INTERRUPTED.store(true, Ordering::Relaxed);
    DataFusionError::Execution("interrupted".to_owned())
}

/// Ends the program some time after Ctrl-C: a function that makes a large value does not hear it before the value is made.
async fn end_if_interrupted() {
    let error = interrupted().await;
    tokio::time::sleep(GRACE).await;
    Terminal::new().error(message(&error));
    // As long as this lives, the other threads create no files.
    let _removed = kymo_io::remove_temporaries();
    std::process::exit(Outcome::Damage as i32);
}

/// Whether an error happened while rows were made.
pub(crate) fn is_of_execution(error: &DataFusionError) -> bool {
    if let Some(reported) = Reported::of(error) {
        return reported.status != Outcome::Usage as u8;
    }
    if is_of_planning(error) || InText::of(error).is_some() {
        return false;
    }
    matches!(
        error.find_root(),
        DataFusionError::Execution(_)
            | DataFusionError::External(_)
            | DataFusionError::IoError(_)
            | DataFusionError::ObjectStore(_)
            | DataFusionError::ResourcesExhausted(_)
            | DataFusionError::ArrowError(..)
            | DataFusionError::ParquetError(_)
    )
}
