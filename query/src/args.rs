//! What can be written on the command line.

use std::path::PathBuf;

use clap::Parser;
use datafusion::common::ScalarValue;
use kymo_command::args::{Input, Threads};

use crate::output::Format;

/// Ask recordings questions in SQL
///
/// The first argument is the statement, unless a file has this name or --file is given; without a statement, a prompt reads
/// them.
///
/// Each event class is a table with a column for each field; `events` has the events of all classes. `samples` has the
/// values of databases and metrics, `losses` and `packets` what the recorders lost and wrote. `slice`, `counter`,
/// `track`, `thread`, `process`, `sched`, `thread_state` are called as in Perfetto. `SHOW TABLES` and `DESCRIBE TABLE`
/// list them. Names with other characters than lower-case letters, digits and `_` stand between double quotes.
#[derive(Debug, Parser)]
#[command(
    name = "kymo query",
    bin_name = "kymo query",
    override_usage = "kymo query [OPTIONS] [SQL] PATH...",
    version,
    max_term_width = 100,
    after_long_help = "\
Exit status:
  0  all is good
  1  the query failed, damage was found, or one of several recordings could not be opened
  2  the command line or the SQL is wrong
  3  nothing could be read

Examples:
  kymo query 'SELECT event, count(*) FROM events GROUP BY event' trace/
  kymo query 'SELECT * FROM \"lttng_ust_libc:malloc\" WHERE size > 4096 LIMIT 10' trace/
  kymo query 'SELECT time_bucket(INTERVAL '\\''1 second'\\'', timestamp) AS t, count(*) FROM events GROUP BY t' trace/
  kymo query -p limit=100 'SELECT * FROM samples WHERE value > $limit' load.rrd
  kymo query trace/                      a prompt"
)]
pub(crate) struct Query {
    /// Which recordings.
    #[command(flatten)]
    pub(crate) input: Input,

    /// Read statements from a file, which end with `;`. `-` is standard input.
    #[arg(short, long, value_name = "FILE", help_heading = "SQL")]
    pub(crate) file: Option<PathBuf>,

    /// Set a parameter, which is `$NAME` in the SQL. Can be given several times.
    ///
    /// A VALUE that is a number, `true`, `false` or `null` is that; `'TEXT'` is text, and so is anything else.
    #[arg(short, long, value_name = "NAME=VALUE", value_parser = parameter, help_heading = "SQL")]
    pub(crate) param: Vec<(String, ScalarValue)>,

    /// Reject statements that make tables, write files or change settings.
    #[arg(long, help_heading = "SQL")]
    pub(crate) read_only: bool,

    /// How rows are written [default: by the ending of --output, else table].
    #[arg(long, value_enum, help_heading = "Output")]
    pub(crate) format: Option<Format>,

    /// Write to a file, which appears when it is complete, instead of standard output.
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,

    /// Memory for sorting, joining and grouping; what is beyond goes to temporary files. With K, M or G.
    #[arg(long, value_name = "BYTES", default_value = "1G", value_parser = bytes, help_heading = "Work")]
    pub(crate) memory: usize,

    /// How many threads work.
    #[command(flatten)]
    pub(crate) threads: Threads,
}

/// A parameter of a statement.
fn parameter(text: &str) -> Result<(String, ScalarValue), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    let name = name.trim_start_matches('$');
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(is_name) {
        return Err(format!("`{name}` is not a name of a parameter"));
    }
    let quoted = value
        .strip_prefix('\'')
        .and_then(|of| of.strip_suffix('\''));
    let value = if let Some(text) = quoted {
        ScalarValue::from(text)
    } else if let Ok(number) = value.parse::<i64>() {
        ScalarValue::from(number)
    } else if let Ok(number) = value.parse::<u64>() {
        ScalarValue::from(number)
    } else if let (Ok(number), true) = (
        value.parse::<f64>(),
        value.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '.')),
    ) {
        ScalarValue::from(number)
    } else {
        match value {
            "true" => ScalarValue::from(true),
            "false" => ScalarValue::from(false),
            "null" => ScalarValue::Null,
            text => ScalarValue::from(text),
        }
    };
    Ok((name.to_owned(), value))
}

/// A number of bytes.
fn bytes(text: &str) -> Result<usize, String> {
    let (digits, factor) = match text.char_indices().next_back() {
        Some((at, 'k' | 'K')) => (&text[..at], 1 << 10),
        Some((at, 'm' | 'M')) => (&text[..at], 1 << 20),
        Some((at, 'g' | 'G')) => (&text[..at], 1 << 30),
        _ => (text, 1),
    };
    let number: usize = digits
        .parse()
        .map_err(|_| "expected a number with K, M or G")?;
    let bytes = number.checked_mul(factor).ok_or("it is too large")?;
    if bytes < 16 << 20 {
        return Err("it is less than 16M".to_owned());
    }
    Ok(bytes)
}
