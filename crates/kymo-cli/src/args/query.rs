//! `kymo query`.

use std::ffi::OsString;

use clap::Args;

/// Ask recordings questions in SQL
///
/// Runs the program `kymo-query`, which is built and installed apart from `kymo`: it is looked for beside `kymo`, then in
/// PATH. `kymo query --help` shows its options.
#[derive(Debug, Args)]
#[command(
    disable_help_flag = true,
    after_long_help = "\
Examples:
  kymo query 'SELECT event, count(*) FROM events GROUP BY event' trace/
  kymo query 'SELECT * FROM samples LIMIT 10' load.rrd
  kymo query trace/                      a prompt"
)]
pub(crate) struct Query {
    /// What `kymo-query` is given: a statement, options, recordings.
    #[arg(
        value_name = "ARGUMENT",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub(crate) words: Vec<OsString>,
}
