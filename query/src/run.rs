//! From the command line to rows.

use std::collections::HashMap;
use std::io::{IsTerminal, Read, stdin};
use std::path::{Path, PathBuf};

use datafusion::common::{DataFusionError, ParamValues, ScalarValue};
use datafusion::sql::parser::{DFParser, Statement};
use futures::StreamExt;
use kymo_command::open::{Inputs, inputs, tell_opening_faults};
use kymo_command::terminal::{Failure, Outcome, Terminal};

use crate::args::Query;
use crate::errors::{is_out_of_order, render};
use crate::output::{Format, Output, is_closed};
use crate::prompt::{Entry, Prompt, quoted};
use crate::session::{Session, Settings, is_parquet, queries_only};
use crate::source::Source;

/// Does what the command line asks for.
///
/// # Errors
///
/// The command line is wrong, or nothing can be opened.
pub(crate) async fn run(mut args: Query, terminal: &Terminal) -> Result<Outcome, Failure> {
    let statement = statement(&mut args)?;
    let parquet: Vec<PathBuf> = args
        .input
        .paths
        .extract_if(.., |path| is_parquet(path))
        .collect();
    let mut outcome = Outcome::Good;
    let recordings = match args.input.paths.is_empty() {
        true if parquet.is_empty() => {
            return Err(Failure::Usage(
                "error: no recording is given\nhint: `kymo query 'SELECT ...' PATH`".to_owned(),
            ));
        }
        true => Vec::new(),
        false => {
            let inputs: Inputs = inputs(&args.input, false, terminal)?;
            outcome = tell_opening_faults(&inputs, terminal);
            inputs.recordings
        }
    };
    let settings = Settings {
        threads: args.threads.count(),
        memory: args.memory,
    };
    let source = Source::new(recordings, settings.threads);
    let session = match Session::new(source, &parquet, &settings).await {
        Ok(session) => session,
        Err(error) => {
            terminal.error(render(&error, "", false).trim_start_matches("error: "));
            return Err(Failure::Unreadable);
        }
    };
    let runner = Runner {
        session,
        format: args.format,
        output: args.output,
        parameters: args.param.into_iter().collect(),
        is_read_only: args.read_only,
        terminal,
    };
    let of_sql = match statement {
        Some(sql) => runner.script(&sql).await,
        None => runner.prompt().await?,
    };
    let worst = [outcome, of_sql].into_iter().max_by_key(|of| *of as u8);
    Ok(worst.unwrap_or(Outcome::Good))
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
    let first = args.input.paths.first();
    if let Some(sql) = first.filter(|path| !path.exists() && path.as_os_str() != "-") {
        // A path that is not there is no statement.
        let text = sql.to_string_lossy().into_owned();
        if text.contains(char::is_whitespace) || args.input.paths.len() > 1 {
            args.input.paths.remove(0);
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

struct Runner<'t> {
    session: Session,
    format: Option<Format>,
    output: Option<PathBuf>,
    parameters: HashMap<String, ScalarValue>,
    is_read_only: bool,
    terminal: &'t Terminal,
}

impl Runner<'_> {
    /// Runs all statements of a text.
    async fn script(&self, sql: &str) -> Outcome {
        let statements = match DFParser::parse_sql(sql) {
            Ok(statements) => statements,
            Err(error) => {
                self.tell(&error, sql);
                return Outcome::Usage;
            }
        };
        if statements.len() > 1 && self.output.is_some() {
            self.terminal
                .error("`--output` takes the rows of one statement");
            return Outcome::Usage;
        }
        let mut worst = Outcome::Good;
        for statement in statements {
            let outcome = self.statement(statement, sql).await;
            if outcome != Outcome::Good && outcome != Outcome::Damage {
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

    async fn statement(&self, statement: Statement, sql: &str) -> Outcome {
        let result = self.rows(statement.clone()).await;
        let result = match result {
            Err((error, false)) if is_out_of_order(&error) => {
                // Planned again, with sorting.
                self.session.set_unordered();
                self.rows(statement).await
            }
            result => result,
        };
        let mut outcome = Outcome::Good;
        for damage in self.session.source.new_damage() {
            self.terminal.error(damage);
            outcome = Outcome::Damage;
        }
        match result {
            Ok(()) => outcome,
            Err((error, _)) if is_closed(&error) => Outcome::Good,
            Err((error, is_begun)) => {
                self.tell(&error, sql);
                match is_begun || is_of_execution(&error) {
                    true => Outcome::Damage,
                    false => Outcome::Usage,
                }
            }
        }
    }

    /// Runs a statement and writes its rows. An error says whether some were written.
    async fn rows(&self, statement: Statement) -> Result<(), (DataFusionError, bool)> {
        let before = |error| (error, false);
        let context = &self.session.context;
        let plan = context
            .state()
            .statement_to_plan(statement)
            .await
            .map_err(before)?;
        if self.is_read_only {
            queries_only().verify_plan(&plan).map_err(before)?;
        }
        let frame = context.execute_logical_plan(plan).await.map_err(before)?;
        let frame = match self.parameters.is_empty() {
            true => frame,
            false => {
                let values: ParamValues = self.parameters.clone().into();
                frame.with_param_values(values).map_err(before)?
            }
        };
        let mut stream = frame.execute_stream().await.map_err(before)?;
        let schema = stream.schema();
        let by_name = self.output.as_deref().and_then(Format::of_path);
        let format = self.format.or(by_name).unwrap_or(Format::Table);
        let mut output = Output::new(format, &schema, self.output.as_deref()).map_err(before)?;
        loop {
            let next = tokio::select! {
                next = stream.next() => next,
                _ = tokio::signal::ctrl_c() => {
                    Some(Err(DataFusionError::Execution("interrupted".to_owned())))
                }
            };
            let result = match next {
                Some(batch) => batch.and_then(|batch| output.write(&batch)),
                None => break,
            };
            if let Err(error) = result {
                let is_begun = output.is_begun && self.output.is_none();
                if is_begun {
                    // What is complete is shown.
                    let _ = output.finish();
                } else {
                    output.discard();
                }
                return Err((error, is_begun));
            }
        }
        output.finish().map_err(|error| (error, true))
    }

    fn tell(&self, error: &DataFusionError, sql: &str) {
        let picture = render(error, sql, self.terminal.color());
        self.terminal
            .tell(format!("{}\n", picture.trim_end()).as_bytes());
    }

    async fn prompt(&self) -> Result<Outcome, Failure> {
        let names = self.session.names().await;
        let failed = |error| Failure::Output(std::io::Error::other(error));
        let mut prompt = Prompt::new(names).map_err(failed)?;
        self.terminal
            .tell(b"Statements end with `;`. \\d lists tables, \\q quits.\n");
        loop {
            match prompt.read().map_err(failed)? {
                Entry::End => return Ok(Outcome::Good),
                Entry::Help => self.terminal.tell(
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
        let catalog = self.session.context.catalog("kymo");
        let schema = catalog.and_then(|catalog| catalog.schema("main"));
        let mut names = schema
            .map(|schema| schema.table_names())
            .unwrap_or_default();
        names.sort();
        let lines: Vec<_> = names.iter().map(|name| quoted(name) + "\n").collect();
        self.terminal.tell(lines.concat().as_bytes());
    }
}

/// Whether an error happened while rows were made.
fn is_of_execution(error: &DataFusionError) -> bool {
    matches!(
        error.find_root(),
        DataFusionError::Execution(_)
            | DataFusionError::External(_)
            | DataFusionError::IoError(_)
            | DataFusionError::ResourcesExhausted(_)
            | DataFusionError::ArrowError(..)
            | DataFusionError::ParquetError(_)
    )
}
