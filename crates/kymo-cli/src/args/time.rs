//! What can be written behind `kymo time`.

use clap::Args;

use crate::time::Given;

/// Convert times between collectd's count, seconds, nanoseconds and dates
///
/// collectd counts units of 2^-30 seconds since 1970 in 64 bits. Of each value all forms are
/// shown: the count, seconds with ten decimals (enough to distinguish every unit from its neighbours),
/// nanoseconds (rounded: not every count survives them), and the date and time in UTC.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  kymo time 1927637038649001053          a count of collectd
  kymo time 1700000000.25 10s 100ms      seconds, with or without their unit
  kymo time 1700000000250000000ns 2023-11-14T22:13:20.25Z
  kymo time --json 0.1s | jq .cdtime")]
pub(crate) struct Time {
    /// Times or durations.
    ///
    /// A number with a unit: s, ms, us, ns, or cd (collectd's count). Without one, a number is
    /// seconds where it has a point or an exponent or is below 2^34, else a count. Or a date
    /// and time with its zone, as in RFC 3339. A decimal number of seconds goes to the nearest
    /// unit.
    #[arg(required = true, value_name = "VALUE", value_parser = Given::parse)]
    pub(crate) values: Vec<Given>,

    /// Write JSON objects, a line each: {"value":TEXT,"cdtime":N,"seconds":TEXT,"ns":N,"rfc3339":TEXT}
    #[arg(long)]
    pub(crate) json: bool,
}
