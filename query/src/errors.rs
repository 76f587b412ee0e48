//! Errors with their place in the SQL.

use std::fmt;
use std::ops::Range;

use datafusion::common::DataFusionError;
use kymo_text::diagnostic::Diagnostic;

use crate::objects;
use crate::prompt::quoted;
use crate::rows::OutOfOrder;

/// An error that another process has made a text for people of.
#[derive(Debug)]
pub(crate) struct Reported {
    pub(crate) text: String,
    /// The exit status that it means.
    pub(crate) status: u8,
}

impl Reported {
    /// The one that an error is, if it is one.
    pub(crate) fn of(error: &DataFusionError) -> Option<&Self> {
        match error.find_root() {
            DataFusionError::External(inner) => inner.downcast_ref(),
            _ => None,
        }
    }
}

impl fmt::Display for Reported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Reported {}

/// An error in a text that a function takes as a table, or as a key.
#[derive(Debug)]
pub(crate) struct InText {
    text: String,
    range: Range<usize>,
    message: String,
    help: Option<String>,
}

impl InText {
    /// What is wrong with all of a text.
    pub(crate) fn whole(text: &str, message: String) -> DataFusionError {
        DataFusionError::External(Box::new(Self {
            text: text.to_owned(),
            range: 0..text.len(),
            message,
            help: None,
        }))
    }

    /// What was found while a text was planned, which is a query.
    pub(crate) fn query(text: &str, error: &DataFusionError) -> DataFusionError {
        let found = match find(error, text) {
            Ok((message, range, help)) => Self {
                text: text.to_owned(),
                range,
                message,
                help,
            },
            Err(problem) => {
                let (message, help) = match problem.split_once("\nhint: ") {
                    Some((message, help)) => (message.to_owned(), Some(help.to_owned())),
                    None => (problem, None),
                };
                Self {
                    text: text.to_owned(),
                    range: 0..text.len(),
                    message,
                    help,
                }
            }
        };
        DataFusionError::External(Box::new(found))
    }

    /// The one that an error is, if it is one.
    pub(crate) fn of(error: &DataFusionError) -> Option<&Self> {
        match error.find_root() {
            DataFusionError::External(inner) => inner.downcast_ref(),
            _ => None,
        }
    }

    /// Where it is in a statement, if the text is a literal there.
    fn place(&self, sql: &str) -> Option<Range<usize>> {
        let quoted = |text: &str| text.replace('\'', "''");
        let literal = format!("'{}'", quoted(&self.text));
        let begin = sql.find(&literal)? + 1;
        let before = begin + quoted(self.text.get(..self.range.start)?).len();
        Some(before..before + quoted(self.text.get(self.range.clone())?).len())
    }
}

impl fmt::Display for InText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.range == (0..self.text.len()) {
            true => f.write_str(&self.message)?,
            false => write!(f, "`{}`: {}", self.text, self.message)?,
        }
        match &self.help {
            Some(help) => write!(f, "\nhint: {help}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for InText {}

/// An error as a person reads it.
pub(crate) fn render(error: &DataFusionError, sql: &str, color: bool) -> String {
    if let Some(reported) = Reported::of(error) {
        return reported.text.clone();
    }
    match find(error, sql) {
        Ok((message, range, help)) => {
            let diagnostic = Diagnostic::error(message).at(range, "");
            let diagnostic = match help {
                Some(help) => diagnostic.with_help(help),
                None => diagnostic,
            };
            diagnostic.render("SQL", sql, color)
        }
        Err(text) => {
            let text = text.replace('\t', "  ");
            let lines = text.lines().map(kymo_text::visible);
            format!("error: {}", lines.collect::<Vec<_>>().join("\n"))
        }
    }
}

/// What is wrong, where, and what to do; or, if the place is not known, what is wrong alone.
fn find(
    error: &DataFusionError,
    sql: &str,
) -> Result<(String, Range<usize>, Option<String>), String> {
    if let Some(inner) = InText::of(error) {
        return match inner.place(sql) {
            Some(range) => Ok((inner.message.clone(), range, inner.help.clone())),
            None => Err(inner.to_string()),
        };
    }
    let found = error.diagnostic().and_then(|diagnostic| {
        let span = diagnostic.span?;
        let start = offset(sql, span.start.line, span.start.column)?;
        let end = offset(sql, span.end.line, span.end.column)?;
        Some((
            diagnostic.message.clone(),
            start..end,
            diagnostic.helps.first().map(|help| help.message.clone()),
        ))
    });
    let text = message(error);
    match found {
        // The error itself says more than its diagnostic does.
        Some((label, range, help)) => {
            let help = suggestion(&text, sql.get(range.clone()).unwrap_or_default())
                .or(help)
                .or_else(|| quotes(sql, range.start));
            let label = label.split(" at Line: ").next().unwrap_or_default();
            Ok((first_line(label), range, help))
        }
        None => match place(&text, sql) {
            Some((message, range)) => Ok((first_line(&message), range, None)),
            None => Err(with_hint(&text)),
        },
    }
}

/// The error of a store that an error comes from, if it comes from one.
fn of_store(error: &DataFusionError) -> Option<&object_store::Error> {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        cause = error.source();
    }
    None
}

/// What DataFusion says, without what it says of itself.
pub(crate) fn message(error: &DataFusionError) -> String {
    if let Some(error) = of_store(error) {
        return objects::explained(error).to_string();
    }
    if let DataFusionError::ResourcesExhausted(reason) = error.find_root() {
        let reason = first_line(reason);
        return format!(
            "the statement needs more memory: {reason}\nhint: set a higher limit with `--memory`, such as `--memory 4G`"
        );
    }
    let mut text = error.strip_backtrace();
    if text.contains("did not compile: CompiledTooBig") {
        return "the regular expression is too large".to_owned();
    }
    if let Some((_, limit)) = text.split_once("RecursionLimitExceeded (current limit: ") {
        let limit = limit.trim_end_matches(')');
        return format!(
            "the statement has more than {limit} levels of parentheses, queries and signs"
        );
    }
    while is_step(&text)
        && let Some((_, cause)) = text.split_once("\ncaused by\n")
    {
        text = cause.to_owned();
    }
    while let Some(rest) = PREFIXES.iter().find_map(|prefix| text.strip_prefix(prefix)) {
        text = rest.to_owned();
    }
    text.trim_end_matches("\")").to_owned()
}

/// What DataFusion writes before its messages.
const PREFIXES: &[&str] = &[
    "SQL error: ",
    "Error during planning: ",
    "Schema error: ",
    "External error: ",
    "Execution error: ",
    "IO error: ",
    "Arrow error: ",
    "Parquet error: ",
    "Csv error: ",
    "Io error: ",
    "External: ",
    "Parser error: ",
    "Diagnostic error: ",
    "sql parser error: ",
    "ParserError(\"",
    "TokenizerError(\"",
];

/// Whether a text begins with the name of a step of planning, such as `type_coercion`.
fn is_step(text: &str) -> bool {
    let line = text.lines().next().unwrap_or_default();
    line.starts_with("Optimizer rule ") || !line.contains(' ')
}

/// Whether an error was found while a plan was made: the statement is wrong.
pub(crate) fn is_of_planning(error: &DataFusionError) -> bool {
    matches!(error, DataFusionError::Context(step, _) if is_step(step))
}

/// An error without a place, and what to do.
fn with_hint(text: &str) -> String {
    if let Some((_, rest)) = text.split_once("No field named ")
        && let Some((name, _)) = rest.split_once("Valid fields are ")
    {
        let name = name.split(". Did you mean").next().unwrap_or_default();
        let name = name.trim_end().trim_end_matches('.');
        let help = suggestion(text, name).unwrap_or_default();
        return format!("no column `{name}`\nhint: {help}");
    }
    if text.contains("laceholder")
        && let Some((_, name)) = text.split_once('$')
    {
        let is_part = |c: &char| c.is_alphanumeric() || *c == '_';
        let name: String = name.chars().take_while(is_part).collect();
        return format!(
            "the parameter `${name}` has no value\nhint: `--param {name}=VALUE` gives it one"
        );
    }
    text.to_owned()
}

/// Names the table that may have been meant where there is none of a name.
pub(crate) fn suggest_table(error: DataFusionError, tables: &[String]) -> DataFusionError {
    let Some(diagnostic) = error.diagnostic() else {
        return error;
    };
    let missing = diagnostic.message.strip_prefix("table '");
    let Some(missing) = missing.and_then(|rest| rest.strip_suffix("' not found")) else {
        return error;
    };
    let help = match kymo::filter::nearest(missing, tables.iter().map(String::as_str)) {
        Some(meant) => format!("there is a table `{}`", quoted(meant)),
        None => "`SHOW TABLES` lists the tables".to_owned(),
    };
    let diagnostic = diagnostic.clone().with_help(help, None);
    error.with_diagnostic(diagnostic)
}

fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let mut letters = line.chars();
    match letters.next() {
        Some(first) => first.to_lowercase().chain(letters).collect(),
        None => String::new(),
    }
}

/// The column that may have been meant, of those that DataFusion lists.
fn suggestion(text: &str, meant: &str) -> Option<String> {
    if text.contains("Invalid function '")
        && let Some((_, name)) = text.split_once("Did you mean '")
    {
        // It is the nearest one, however far.
        let name = name.split('\'').next()?;
        let name = kymo::filter::nearest(meant, [name])?;
        return Some(format!("there is a function `{name}`"));
    }
    let start = text.find("Valid fields are ")? + "Valid fields are ".len();
    let listed = text[start..].trim_end_matches('.').split(", ");
    let name = |word: &str| {
        let last = match word.strip_suffix('"') {
            Some(quoted) => quoted.rsplit('"').next(),
            None => word.rsplit('.').next(),
        };
        last.unwrap_or(word).to_owned()
    };
    let names: Vec<String> = listed.map(name).collect();
    let is_quoted = meant.starts_with('"');
    let meant = meant.trim_matches('"');
    let table = "`DESCRIBE TABLE` lists the columns of a table";
    Some(
        match kymo::filter::nearest(meant, names.iter().map(String::as_str)) {
            Some(name) => format!("there is a column `{}`", quoted(name)),
            None if is_quoted => format!("a text stands between single quotes: `'{meant}'`"),
            None => table.to_owned(),
        },
    )
}

/// The place that the text of an error ends with.
fn place(text: &str, sql: &str) -> Option<(String, Range<usize>)> {
    let at = text.rfind(" at Line: ")?;
    let mut numbers = text[at + " at Line: ".len()..].split(", Column: ");
    let line = numbers.next()?.trim().parse().ok()?;
    let column: String = numbers
        .next()?
        .chars()
        .take_while(char::is_ascii_digit)
        .collect();
    let start = offset(sql, line, column.parse().ok()?)?;
    let rest = sql.get(start..)?;
    let word = rest
        .find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(rest.len());
    Some((
        text[..at].to_owned(),
        start..start + word.max(1).min(rest.len()),
    ))
}

/// What to write for a name that its colon has ended.
fn quotes(sql: &str, colon: usize) -> Option<String> {
    let rest = sql.get(colon..)?.strip_prefix(':')?;
    let is_other = |c: char| !c.is_alphanumeric() && c != '_';
    let first = sql[..colon].rsplit(is_other).next()?;
    let second = rest.split(is_other).next()?;
    Some(format!(
        "a name with a colon is quoted: `{}`",
        quoted(&format!("{first}:{second}"))
    ))
}

/// The position in bytes of a line and a column, both from 1.
fn offset(sql: &str, line: u64, column: u64) -> Option<usize> {
    let mut begin = 0;
    for (number, text) in (1..).zip(sql.split_inclusive('\n')) {
        if number == line {
            let column = usize::try_from(column.checked_sub(1)?).ok()?;
            let within = text
                .char_indices()
                .nth(column)
                .map_or(text.len(), |(at, _)| at);
            return Some(begin + within);
        }
        begin += text.len();
    }
    Some(sql.len())
}

/// Whether a hash join needed more memory than there may be.
pub(crate) fn is_join_too_large(error: &DataFusionError) -> bool {
    // It names who asked for memory.
    matches!(error.find_root(), DataFusionError::ResourcesExhausted(text) if text.contains("HashJoin"))
}

/// Whether a plan relied on an order that rows do not have.
pub(crate) fn is_out_of_order(error: &DataFusionError) -> bool {
    let mut error: &(dyn std::error::Error + 'static) = error;
    loop {
        if error.is::<OutOfOrder>() {
            return true;
        }
        match error.source() {
            Some(inner) => error = inner,
            None => return false,
        }
    }
}
