//! What can be written behind `kymo rrd`.

use std::path::PathBuf;

use clap::{ArgAction, ArgGroup, Args, Subcommand, ValueEnum, ValueHint};
use kymo_machine::Machine;
use kymo_rrd::convert::Target;

use super::machine::find;

/// Convert, check, repair, dump and restore round-robin databases
///
/// Files of RRDtool on any machine, portable files, and (for reading) files of RRD4J and JRobin.
/// `dump`, `restore` and `info` print and read what rrdtool's do.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    subcommand_required = true,
    after_long_help = "\
Exit status:
  0  all is good
  1  something failed: a file could not be read or written, or is damaged
  2  the command line is wrong"
)]
pub(crate) struct Rrd {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Convert(Convert),
    Check(Check),
    Repair(Repair),
    Info(Info),
    Dump(Dump),
    Restore(Restore),
}

/// Convert databases to the files of another machine, or to portable ones
///
/// Every value keeps its bits. What the target cannot hold, such as a last update after January
/// 2038 where times have 32 bits, is an error, and the file is left alone.
///
/// Each file is written beside and renamed, so that there is the old one or the new one at any
/// time; it keeps mode, owner and time of change. Stop what updates the files before: a file that
/// changes while it is converted is left alone. A file that fails does not keep the others from
/// being converted.
#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("where").required(true).args(["output", "output_dir", "in_place"]),
    after_long_help = "\
Examples:
  kymo rrd convert load.rrd -o load-arm64.rrd --to arm64
  kymo rrd convert /var/lib/munin --in-place --to x86_64
  kymo rrd convert /var/lib/collectd --output-dir portable/ --to portable --dry-run"
)]
pub(crate) struct Convert {
    /// Files, and directories that are searched for databases with all below them; what is no
    /// database there is passed over.
    #[arg(required = true, value_name = "INPUT", value_hint = ValueHint::AnyPath)]
    pub(crate) inputs: Vec<PathBuf>,

    /// Write the one input to this file.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,

    /// Write below this directory, each file where it is below its input.
    ///
    /// A file that was converted there before is passed over, unless the input has changed since.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) output_dir: Option<PathBuf>,

    /// Replace the inputs; those that are files of the target already are passed over.
    #[arg(long)]
    pub(crate) in_place: bool,

    /// The machine that shall read the files, or `portable`; `kymo machine list` tells the names.
    #[arg(long, value_name = "MACHINE", value_parser = target)]
    pub(crate) to: Target,

    /// The machine that wrote the inputs, where it is not found or found wrong.
    #[arg(long, value_name = "MACHINE", value_parser = find)]
    pub(crate) from: Option<&'static Machine>,

    /// Tell what would be done, and do nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Do not wait for the disk: faster, but a machine that stops may leave empty files.
    #[arg(long)]
    pub(crate) no_sync: bool,

    /// Work with N threads; as many as there are processors unless told otherwise.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
}

/// Judge whether databases are whole
///
/// Sizes, counts, pointers, texts, numbers that cannot be, values beyond the limits of their data
/// source, what a cut-off update or a lost page leaves; of portable files the checksums. Only
/// damage makes the exit status 1.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  kymo rrd check load.rrd
  kymo rrd check --json *.rrd | jq -r 'select(.damaged).file'")]
pub(crate) struct Check {
    /// The files.
    #[arg(required = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,

    /// The machine that wrote the files, where it is not found or found wrong.
    #[arg(long, value_name = "MACHINE", value_parser = find)]
    pub(crate) machine: Option<&'static Machine>,

    /// Write one JSON object for each file, a line each.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Write what can be kept of a damaged database to another file
///
/// Missing values become unknown, impossible pointers and texts what is likely; what was done is
/// told.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  kymo rrd repair torn.rrd -o mended.rrd")]
pub(crate) struct Repair {
    /// The file.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,

    /// Where to write the repaired file.
    #[arg(short, long, value_name = "OUT", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,

    /// Overwrite the output.
    #[arg(short, long)]
    pub(crate) force: bool,

    /// The machine that wrote the file, where it is not found or found wrong.
    #[arg(long, value_name = "MACHINE", value_parser = find)]
    pub(crate) machine: Option<&'static Machine>,
}

/// Print what `rrdtool info` prints
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  kymo rrd info load.rrd")]
pub(crate) struct Info {
    /// The file.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,

    /// The machine that wrote the file, where it is not found or found wrong.
    #[arg(long, value_name = "MACHINE", value_parser = find)]
    pub(crate) machine: Option<&'static Machine>,
}

/// Write a database as XML, as `rrdtool dump` does
///
/// The text is that of rrdtool on a 64-bit machine, byte for byte: numbers of 11 digits, and
/// times in comments that are local (TZ says where).
#[derive(Debug, Args)]
#[command(
    disable_help_flag = true,
    after_long_help = "\
Examples:
  kymo rrd dump load.rrd > load.xml
  kymo rrd dump --exact load.rrd load.xml     nothing is lost
  TZ=UTC kymo rrd dump -h none load.rrd"
)]
pub(crate) struct Dump {
    /// The database.
    #[arg(value_name = "FILE.rrd", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,

    /// Where to write; standard output unless told otherwise.
    #[arg(value_name = "FILE.xml", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,

    /// What comes before the data.
    #[arg(short = 'h', long, value_enum, default_value_t = Header::Dtd)]
    pub(crate) header: Header,

    /// The same as `--header none`.
    #[arg(short, long, overrides_with = "header")]
    pub(crate) no_header: bool,

    /// Lose nothing: numbers with as many digits as they need, fractions of a second, and in
    /// instructions that rrdtool passes over what its form has no place for.
    ///
    /// `kymo rrd restore` makes the same database of it; rrdtool reads it too.
    #[arg(long)]
    pub(crate) exact: bool,

    /// Print numbers as rrdtool does on the machine that wrote the file: with one digit less
    /// where C's long has 32 bits.
    #[arg(long, conflicts_with = "exact")]
    pub(crate) like_source: bool,

    /// The machine that wrote the file, where it is not found or found wrong.
    #[arg(long, value_name = "MACHINE", value_parser = find)]
    pub(crate) machine: Option<&'static Machine>,

    /// Print help.
    #[arg(long, action = ArgAction::Help)]
    help: Option<bool>,
}

/// Make a database of XML, as `rrdtool restore` does
///
/// Reads what rrdtool of any version dumps, and what `kymo rrd dump` writes. Numbers are read as
/// rrdtool reads them, to the last bit; those of an exact dump are read exactly.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  kymo rrd restore load.xml load.rrd
  rrdtool dump load.rrd | kymo rrd restore - load-portable.rrd --machine portable")]
pub(crate) struct Restore {
    /// The XML; - is standard input.
    #[arg(value_name = "FILE.xml", value_hint = ValueHint::FilePath)]
    pub(crate) input: PathBuf,

    /// The database to make.
    #[arg(value_name = "FILE.rrd", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,

    /// Values beyond the limits of their data source become unknown.
    #[arg(short, long)]
    pub(crate) range_check: bool,

    /// Overwrite the database.
    #[arg(short, long)]
    pub(crate) force_overwrite: bool,

    /// The machine that shall read the file, or `portable`; this one unless told otherwise.
    #[arg(long, visible_alias = "to", value_name = "MACHINE", value_parser = target)]
    pub(crate) machine: Option<Target>,
}

/// What comes before the data of a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Header {
    /// Nothing
    None,
    /// The declaration of XML, and where the schema is
    Xsd,
    /// The declaration of XML, and where the document type definition is
    Dtd,
}

fn target(name: &str) -> Result<Target, String> {
    if name == "portable" {
        return Ok(Target::Portable);
    }
    find(name)
        .map(Target::Native)
        .map_err(|error| format!("{error}, and `portable` is one too"))
}
