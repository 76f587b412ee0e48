//! Errors with their place in the SQL.

use std::fmt;
use std::ops::Range;

use datafusion::common::DataFusionError;
use kymo_text::diagnostic::Diagnostic;

use crate::objects;
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

/// An error as a person reads it.
pub(crate) fn render(error: &DataFusionError, sql: &str, color: bool) -> String {
    if let Some(reported) = Reported::of(error) {
        return reported.text.clone();
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
    let diagnostic = match found {
        // The error itself says more than its diagnostic does.
        Some((label, range, help)) => {
            let help = suggestion(&text, sql.get(range.clone()).unwrap_or_default()).or(help);
            let label = label.split(" at Line: ").next().unwrap_or_default();
            let diagnostic = Diagnostic::error(first_line(label)).at(range, "");
            match help {
                Some(help) => diagnostic.with_help(help),
                None => diagnostic,
            }
        }
        None => match place(&text, sql) {
            Some((message, range)) => Diagnostic::error(first_line(&message)).at(range, ""),
            None => {
                let lines = text.lines().map(kymo_text::visible);
                return format!("error: {}", lines.collect::<Vec<_>>().join("\n"));
            }
        },
    };
    diagnostic.render("SQL", sql, color)
}

/// What DataFusion says, without what it says of itself.
pub(crate) fn message(error: &DataFusionError) -> String {
    if let DataFusionError::ObjectStore(error) = error.find_root() {
        return objects::explained(error).to_string();
    }
    if let DataFusionError::ResourcesExhausted(reason) = error.find_root() {
        let reason = first_line(reason);
        return format!(
            "the statement needs more memory: {reason}\nhint: set a higher limit with `--memory`, such as `--memory 4G`"
        );
    }
    let mut text = error.strip_backtrace();
    for prefix in [
        "SQL error: ",
        "Error during planning: ",
        "Schema error: ",
        "External error: ",
        "Execution error: ",
        "Arrow error: ",
        "Diagnostic error: ",
        "sql parser error: ",
        "ParserError(\"",
        "TokenizerError(\"",
    ] {
        while let Some(rest) = text.strip_prefix(prefix) {
            text = rest.to_owned();
        }
    }
    text.trim_end_matches("\")").to_owned()
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
    let meant = meant.trim_matches('"');
    let table = "`DESCRIBE TABLE` lists the columns of a table";
    Some(
        match kymo::filter::nearest(meant, names.iter().map(String::as_str)) {
            Some(name) => format!("there is a column `{name}`"),
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
