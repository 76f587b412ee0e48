//! What can be written behind `kymo convert`.

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use kymo::convert::{Counter, Slice, rrd};
use kymo::filter::FieldNames;
use kymo_cpel::clock::LEAST_PER_SECOND;
use kymo_ctf::secure;
use kymo_machine::ByteOrder;
use kymo_rrd::file::convert::Target;
use kymo_time::Duration;

use super::{Input, Selection, Times, Work};

/// Write the events of recordings to a file or trace of another format
///
/// Several recordings are merged by time. What a format cannot hold is reported at the end, with the
/// number of times; docs/convert.md has the rules of each.
///
/// The output is written beside and renamed, so that it is there as a whole or not at all.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  kymo convert trace/ -o trace.pftrace
  kymo convert trace/ -o trace.pftrace --track cpu_id --slice 'syscall_entry_*:syscall_exit_*'
  kymo convert trace/ load.rrd -o both.pftrace --counter 'sched_switch:next_prio' --flow vtid
  kymo convert --event 'block_*' trace/ --to chrome -o - | gzip > trace.json.gz
  kymo convert trace/ -o trace.cpel --track vtid --text
  kymo convert trace/ -o rates.rrd --step 1s --count
  kymo convert old/ -o new/ --to ctf2
  kymo convert trace/ -o part/ --begin 10:15:00 --end 10:16:00 --packet-size 64K
  kymo convert trace/ load.rrd -o tables.parquet
  kymo convert trace/ -o sizes.rrd --step 5m --value payload.size --cf MAX --rows 2016")]
pub(crate) struct Convert {
    #[command(flatten)]
    pub(crate) input: Input,

    /// Where to write; `-` is standard output.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,

    /// The format; by default, the ending of the output's name says it.
    ///
    /// `.pftrace` and `.perfetto-trace` are perfetto, `.jsonl` and `.ndjson` are jsonl, `.csv` is
    /// csv, `.cpel` is cpel, `.elog` is elog, `.rrd` is rrd, `.parquet` is parquet, `.arrow` and
    /// `.arrows` are arrow; a directory, a name that ends in `/`, and one without an
    /// ending are ctf1.8.
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) to: Option<To>,

    /// Overwrite the output.
    #[arg(short, long)]
    pub(crate) force: bool,

    #[command(flatten)]
    pub(crate) selection: Selection,

    /// The field whose values become tracks, such as cpu_id; with rrd, they become the data sources.
    ///
    /// Where none is given, tracks are those of CPEL and elog files, and the streams of other
    /// recordings; an event without the field is on the track of its stream. (perfetto, chrome,
    /// cpel, elog, rrd)
    #[arg(long, value_name = "FIELD", value_parser = FieldNames::parse_one, help_heading = "Time line")]
    pub(crate) track: Option<FieldNames>,

    /// Draw slices from events that match a pattern to those that match another, on the same
    /// track; can be given several times.
    ///
    /// With FIELD, a slice ends where the field has the value that it had at the begin. A colon
    /// within the name of an event is written `\:`. Events that match both patterns end a slice and
    /// begin the next one. (perfetto, chrome)
    #[arg(
        long,
        value_name = "BEGIN:END[:FIELD]",
        value_parser = Slice::parse,
        help_heading = "Time line"
    )]
    pub(crate) slice: Vec<Slice>,

    /// Draw a field of the events that match a pattern as a counter, too; can be given several
    /// times. (perfetto, chrome)
    #[arg(
        long,
        value_name = "EVENT:FIELD",
        value_parser = Counter::parse,
        help_heading = "Time line"
    )]
    pub(crate) counter: Vec<Counter>,

    /// Join the events in which a field has the same value by a flow; with perfetto it can be given
    /// several times. (perfetto, chrome)
    #[arg(long, value_name = "FIELD", value_parser = FieldNames::parse_one, help_heading = "Time line")]
    pub(crate) flow: Vec<FieldNames>,

    /// How times are written. (jsonl, csv)
    ///
    /// Programs that read numbers as doubles, such as jq, lose the last digits of nanoseconds since 1970.
    #[arg(
        long,
        value_enum,
        value_name = "HOW",
        default_value_t,
        help_heading = "Output"
    )]
    pub(crate) times: Times,

    /// Keep all fields of an event as text; with `--text=binary`, write texts as bytes. (cpel; binary: parquet, arrow)
    ///
    /// Without `--text=binary`, what is not UTF-8 in a text of a table is replaced by U+FFFD, and the number of such
    /// texts is reported.
    #[arg(
        long,
        value_enum,
        value_name = "binary",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "shown",
        conflicts_with = "datum",
        help_heading = "Output"
    )]
    pub(crate) text: Option<TextForm>,

    /// Keep one field of an event: integers that fit in 32 bits as numbers, all else as text.
    ///
    /// Unless this or --text is given, events of CPEL and Gist files keep their numbers, strings and
    /// formats, and events of elog files their text; others need
    /// one of the two.
    #[arg(long, value_name = "FIELD", value_parser = FieldNames::parse_one, help_heading = "CPEL")]
    pub(crate) datum: Option<FieldNames>,

    /// The byte order: big (or be), little (or le).
    ///
    /// Of a CPEL file big by default, which is the only one that VPP's programs read. Of a trace it
    /// is that of the recording by default. (cpel, ctf)
    #[arg(long, value_enum, value_name = "ORDER")]
    pub(crate) byte_order: Option<Order>,

    /// The ticks in a second, 100,000 at least; a thousand million by default.
    #[arg(long, value_name = "N", value_parser = ticks, help_heading = "CPEL")]
    pub(crate) ticks: Option<NonZeroU32>,

    /// The time from one row to the next: 1s, 5m, 1h, 1d.
    #[arg(long, value_name = "TIME", value_parser = step, help_heading = "Round-robin database")]
    pub(crate) step: Option<u32>,

    /// Keep how many events there are in each step.
    #[arg(long, conflicts_with = "value", help_heading = "Round-robin database")]
    pub(crate) count: bool,

    /// Keep the values of a field.
    #[arg(
        long,
        value_name = "FIELD",
        value_parser = FieldNames::parse_one,
        help_heading = "Round-robin database"
    )]
    pub(crate) value: Option<FieldNames>,

    /// How the values of a step become one; the average by default.
    #[arg(
        long,
        value_enum,
        value_name = "FUNCTION",
        requires = "value",
        conflicts_with = "count",
        ignore_case = true,
        help_heading = "Round-robin database"
    )]
    pub(crate) cf: Option<Cf>,

    /// Keep the last N rows; by default all from the first event to the last.
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u64).range(1..),
        help_heading = "Round-robin database"
    )]
    pub(crate) rows: Option<u64>,

    /// The machine whose format is written, or `portable`. By default, it is the one that the environment
    /// (KYMO_RRD_FORMAT) or the configuration says, or this machine.
    #[arg(
        long,
        value_name = "MACHINE",
        value_parser = super::rrd::target,
        help_heading = "Round-robin database"
    )]
    pub(crate) format: Option<Target>,

    /// Lay out fields one behind the other, without alignment.
    #[arg(long, help_heading = "CTF")]
    pub(crate) packed: bool,

    /// The size of packets in bytes, 4K at least, such as 64K or 1M; by default, packets of
    /// traces are kept.
    #[arg(long, value_name = "SIZE", value_parser = size, help_heading = "CTF")]
    pub(crate) packet_size: Option<u64>,

    /// Make a trace of each recording, below the output, instead of one of all.
    #[arg(long, help_heading = "CTF")]
    pub(crate) separate: bool,

    /// Compress packets. (ctf-rfc)
    #[arg(long, value_enum, value_name = "HOW", help_heading = "CTF")]
    pub(crate) compress: Option<Compress>,

    /// Encrypt packets and metadata with AES-GCM and the first key of --key-file. (ctf-rfc)
    #[arg(long, requires = "key_file", help_heading = "CTF")]
    pub(crate) encrypt: bool,

    /// With --encrypt, leave the metadata plain: everybody can read the names of events and fields, and alter
    /// them unnoticed. (ctf-rfc)
    #[arg(long, requires = "encrypt", help_heading = "CTF")]
    pub(crate) plain_metadata: bool,

    /// Write LTTng's index files, too, with which readers open the trace faster. (ctf1.8, ctf2)
    #[arg(long, help_heading = "CTF")]
    pub(crate) index: bool,

    /// Give packets a checksum. (ctf-rfc)
    #[arg(long, value_enum, value_name = "HOW", help_heading = "CTF")]
    pub(crate) checksum: Option<Checksum>,

    /// Whether packets and metadata of RFC v1.1 stay secured as they are: for `kymo cut`.
    #[arg(skip)]
    pub(crate) keeps_protection: bool,

    #[command(flatten)]
    pub(crate) work: Work,
}

/// What becomes of texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TextForm {
    /// Fields are kept as the text that shows them
    #[value(hide = true)]
    Shown,
    /// Texts are bytes, as they were recorded
    Binary,
}

/// How packets are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Compress {
    /// As gzip does
    Gzip,
    /// As bzip2 does: smaller and slower
    Bzip2,
}

impl From<Compress> for secure::Compression {
    fn from(how: Compress) -> Self {
        match how {
            Compress::Gzip => Self::Gzip,
            Compress::Bzip2 => Self::Bzip2,
        }
    }
}

/// What the checksum of packets is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Checksum {
    /// That of gzip and Ethernet
    Crc32,
    /// The first four bytes of MD5
    Md5,
    /// The first four bytes of SHA-1
    Sha1,
}

impl From<Checksum> for secure::Checksum {
    fn from(how: Checksum) -> Self {
        match how {
            Checksum::Crc32 => Self::Crc32,
            Checksum::Md5 => Self::Md5,
            Checksum::Sha1 => Self::Sha1,
        }
    }
}

/// What recordings are converted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum To {
    /// A trace for Perfetto (protocol buffers)
    Perfetto,
    /// JSON for Chrome's tracing, which other viewers open too
    Chrome,
    /// A JSON object a line, as `kymo print --format json` shows; CPEL files can be made of theirs again
    Jsonl,
    /// Comma-separated values, as `kymo print --format csv` shows
    Csv,
    /// An event log for VPP's programs
    Cpel,
    /// An event log as VPP writes them, of events with several arguments
    Elog,
    /// A new round-robin database
    Rrd,
    /// Parquet files, a directory for each event class: tables for DuckDB, pandas, polars, Spark
    Parquet,
    /// A table of all rows in Arrow's stream format
    Arrow,
    /// A trace in the Common Trace Format 1.8: a directory
    #[value(name = "ctf1.8")]
    Ctf18,
    /// A trace in the Common Trace Format 2: a directory
    #[value(name = "ctf2")]
    Ctf2,
    /// A trace in the Common Trace Format's draft of 2010, RFC v1.1: a directory
    #[value(name = "ctf-rfc")]
    CtfRfc,
}

/// A byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Order {
    /// The highest byte of a number first
    #[value(alias = "be")]
    Big,
    /// The lowest byte of a number first
    #[value(alias = "le")]
    Little,
}

impl From<Order> for ByteOrder {
    fn from(order: Order) -> Self {
        match order {
            Order::Big => Self::Big,
            Order::Little => Self::Little,
        }
    }
}

/// How values become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Cf {
    /// Their mean
    #[value(name = "AVERAGE")]
    Average,
    /// The least
    #[value(name = "MIN")]
    Min,
    /// The greatest
    #[value(name = "MAX")]
    Max,
    /// The last
    #[value(name = "LAST")]
    Last,
}

impl From<Cf> for rrd::Function {
    fn from(cf: Cf) -> Self {
        match cf {
            Cf::Average => Self::Average,
            Cf::Min => Self::Min,
            Cf::Max => Self::Max,
            Cf::Last => Self::Last,
        }
    }
}

/// Reads the size of a packet.
fn size(text: &str) -> Result<u64, String> {
    super::size::parse_size(text)
        .ok()
        .filter(|size| (4096..=256 << 20).contains(size))
        .ok_or_else(|| "expected a size from 4K to 256M, such as 64K or 1M".to_string())
}

/// Reads ticks in a second that readers of CPEL do not take for those in a microsecond.
fn ticks(text: &str) -> Result<NonZeroU32, String> {
    let number: Option<NonZeroU32> = text.parse().ok();
    number
        .filter(|ticks| ticks.get() >= LEAST_PER_SECOND)
        .ok_or_else(|| {
            format!(
                "expected a whole number from {LEAST_PER_SECOND} to {}; a smaller one would be \
                 read as the ticks in a microsecond",
                u32::MAX
            )
        })
}

/// Reads a whole number of seconds.
fn step(text: &str) -> Result<u32, String> {
    let seconds = Duration::parse_seconds(text).map_err(|error| error.to_string())?;
    u32::try_from(seconds).map_err(|_| format!("`{text}` is longer than {} s", u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::{size, ticks};

    #[test]
    fn sizes_of_packets_have_units() {
        for (text, bytes) in [("4096", 4096), ("4K", 4096), ("1M", 1 << 20)] {
            assert_eq!(size(text), Ok(bytes));
        }
        for wrong in [
            "",
            "K",
            "4095",
            "3K",
            "257M",
            "1G",
            "-4K",
            "99999999999999999999M",
        ] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn ticks_are_those_of_a_second() {
        for right in [100_000, 1_000_000_000, u32::MAX] {
            assert_eq!(ticks(&right.to_string()).map(u32::from), Ok(right));
        }
        for wrong in ["", "0", "1", "99999", "4294967296", "-1", "1e9"] {
            assert!(ticks(wrong).is_err(), "{wrong}");
        }
    }
}
