//! What can be written after `kymo values`.

use clap::Args;
use kymo::filter::{FieldNames, FilterError};

use super::analysis::Analysis;
use super::group::SeriesArgs;

/// Measure the values of a field: their distribution, outliers, the most frequent texts
///
/// Numbers are shown with their number, extremes, mean, deviation, percentiles (to within 0.4 %)
/// and, if there is one group, a histogram; texts, BLOBs and truth values by how often each comes.
/// An enumeration counts as its number.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  kymo values --field size --by name trace/
  kymo values --field ret --by name --where 'ret < 0' trace/
  kymo values --field datum --by track --outliers 2.5 --worst 50 log.cpel
  kymo values --field size --by name --every 1s trace/
  kymo values --field filename --top 20 trace/")]
pub(crate) struct Values {
    /// The field, named as in --where.
    #[arg(long, value_name = "FIELD", value_parser = parse_one)]
    pub(crate) field: FieldNames,

    /// Find values that are more than K standard deviations from the mean of their group.
    ///
    /// The recordings are read twice.
    #[arg(long, value_name = "K", value_parser = parse_limit, conflicts_with = "every")]
    pub(crate) outliers: Option<f64>,

    /// Show the N farthest outliers with their times.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 20,
        value_parser = clap::value_parser!(u32).range(..=100_000),
        requires = "outliers",
        conflicts_with = "every"
    )]
    pub(crate) worst: u32,

    /// Show only the N groups with the most values, and the N most frequent texts of each.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 20,
        value_parser = super::group::row_count,
        conflicts_with = "every"
    )]
    pub(crate) top: usize,

    #[command(flatten)]
    pub(crate) common: Analysis,

    #[command(flatten)]
    pub(crate) series: SeriesArgs,
}

pub(super) fn parse_one(name: &str) -> Result<FieldNames, FilterError> {
    FieldNames::parse_one(name)
}

fn parse_limit(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(limit) if limit.is_finite() && limit > 0.0 => Ok(limit),
        _ => Err("expected a number above 0".to_string()),
    }
}
