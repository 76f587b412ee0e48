//! What can be written on the command line.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::{Args, Parser, Subcommand};
use datafusion::common::ScalarValue;
use kymo_command::args::Threads;
use kymo_command::terminal::Failure;
use kymo_time::Duration;

use crate::cluster::Secret;
use crate::opening::Opening;
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
    override_usage = "kymo query [OPTIONS] [SQL] PATH...\n       kymo query scheduler|worker [OPTIONS]",
    subcommand_negates_reqs = true,
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true,
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
  kymo query trace/                      a prompt
  kymo query --cluster host:7433 'SELECT count(*) FROM events' /mnt/traces"
)]
pub(crate) struct Query {
    /// Starts a part of a cluster instead.
    #[command(subcommand)]
    pub(crate) node: Option<Node>,

    /// Which recordings, and which of their events.
    #[command(flatten)]
    pub(crate) opening: Opening,

    /// Read statements from a file, which end with `;`. `-` is standard input.
    #[arg(short, long, value_name = "FILE", help_heading = "SQL")]
    pub(crate) file: Option<PathBuf>,

    /// Set a parameter, which is `$NAME` in the SQL. Can be given several times.
    ///
    /// A VALUE that is a number, `true`, `false` or `null` is that; `'TEXT'` is text, and so is anything else.
    #[arg(short, long, value_name = "NAME=VALUE", help_heading = "SQL")]
    pub(crate) param: Vec<Parameter>,

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

    /// Have a scheduler answer, and its workers read: HOST:PORT.
    ///
    /// Paths are those that the scheduler and the workers see.
    #[arg(
        long,
        value_name = "ADDRESS",
        conflicts_with_all = ["memory", "threads"],
        help_heading = "Cluster"
    )]
    pub(crate) cluster: Option<String>,

    /// A file with the token of the cluster [default: the variable KYMO_CLUSTER_TOKEN].
    #[arg(
        long,
        value_name = "FILE",
        requires = "cluster",
        help_heading = "Cluster"
    )]
    pub(crate) token_file: Option<PathBuf>,
}

/// A part of a cluster.
#[derive(Debug, Subcommand)]
pub(crate) enum Node {
    /// Start the scheduler of a cluster, which plans queries and has workers read
    ///
    /// Clients (`kymo query --cluster`) and workers connect to it. All of them need to know the token; without one,
    /// only addresses of this machine can be listened at. Nothing is encrypted: across networks that others read, put the
    /// connections into a tunnel.
    Scheduler(Scheduler),
    /// Start a worker, which reads recordings for a scheduler
    ///
    /// It reads files as the user that it runs as. If the scheduler is gone, it tries again until it is back.
    Worker(Worker),
}

/// The scheduler of a cluster.
#[derive(Debug, Args)]
pub(crate) struct Scheduler {
    /// Where clients and workers connect: HOST:PORT.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7433")]
    pub(crate) listen: String,

    /// Where metrics for Prometheus are answered by HTTP, `/metrics`, and `/-/ready`: HOST:PORT [default: nowhere].
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) metrics: Option<String>,

    /// A file with the token [default: the variable KYMO_CLUSTER_TOKEN].
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,

    /// A worker that says nothing for so long is lost, and its work is given to others.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = Duration::parse_positive)]
    pub(crate) patience: std::time::Duration,

    /// Memory for sorting, joining and grouping of all queries. With K, M or G.
    #[arg(long, value_name = "BYTES", default_value = "1G", value_parser = bytes)]
    pub(crate) memory: usize,

    /// How many threads work.
    #[command(flatten)]
    pub(crate) threads: Threads,
}

/// A worker of a cluster.
#[derive(Debug, Args)]
pub(crate) struct Worker {
    /// Where the scheduler listens: HOST:PORT.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7433")]
    pub(crate) scheduler: String,

    /// What logs call this worker [default: the name of the machine].
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// A file with the token [default: the variable KYMO_CLUSTER_TOKEN].
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,

    /// Memory for sorting and grouping. With K, M or G.
    #[arg(long, value_name = "BYTES", default_value = "1G", value_parser = bytes)]
    pub(crate) memory: usize,

    /// How many threads work: units of work that are done at the same time.
    #[command(flatten)]
    pub(crate) threads: Threads,
}

/// The token of a cluster: of a file, or of the environment; empty if there is none.
///
/// # Errors
///
/// The file cannot be read, or is empty.
pub(crate) fn secret(file: Option<&Path>) -> Result<Secret, Failure> {
    let Some(file) = file else {
        let token = std::env::var("KYMO_CLUSTER_TOKEN");
        return Ok(Secret::new(&token.unwrap_or_default()));
    };
    let wrong = |problem: String| Failure::Usage(format!("error: {}: {problem}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
    let secret = Secret::new(&text);
    match secret.is_empty() {
        true => Err(wrong("the file is empty".to_owned())),
        false => Ok(secret),
    }
}

/// A parameter of a statement.
#[derive(Clone, Debug)]
pub(crate) struct Parameter {
    pub(crate) name: String,
    pub(crate) value: ScalarValue,
    /// As it was written.
    pub(crate) text: String,
}

impl FromStr for Parameter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = parameter(text)?;
        Ok(Self {
            name,
            value,
            text: text.to_owned(),
        })
    }
}

/// The name and the value of a parameter.
fn parameter(text: &str) -> Result<(String, ScalarValue), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    let name = name.trim_start_matches('$');
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(is_name) {
        return Err(format!("`{name}` is not a name of a parameter"));
    }
    let quoted = value
        .strip_prefix('\'')
        .and_then(|quoted| quoted.strip_suffix('\''));
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
