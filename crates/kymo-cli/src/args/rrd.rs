//! What can be written behind `kymo rrd`.

use std::path::PathBuf;

#[cfg(feature = "draw")]
use clap::{Arg, ArgAction};
use clap::{ArgGroup, Args, Subcommand, ValueHint};
use kymo_machine::Machine;
use kymo_rrd::file::convert::Target;

use super::Threads;
use super::machine::find;

/// Work on round-robin databases, with rrdtool's commands and others
///
/// Files of RRDtool on any machine, portable files, and (for reading) files of RRD4J and JRobin.
/// Commands that rrdtool has are written as there, and print what they print there; `kymo rrd -`
/// reads command lines from standard input. A link named rrdtool that leads to kymo takes rrdtool's
/// place.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    subcommand_required = true,
    after_long_help = "\
Environment:
  KYMO_RRD_FORMAT      form of new databases: `portable`, or a machine of `kymo machine list`
  RRDCACHED_ADDRESS    daemon of rrdtool's commands where no --daemon names one
  RRDCACHED_STRIPPATH  what is cut off from paths for a daemon of another machine

Exit status:
  0  all is good
  1  something failed: a file could not be read or written, or is damaged; or the command line of
     one of rrdtool's commands is wrong
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
}

/// Convert databases to the files of another machine, or to portable ones
///
/// Every value keeps its bits. What the target cannot hold, such as a last update after January
/// 2038 where times have 32 bits, is an error, and the file is left alone.
///
/// Each file is written beside and renamed, so that there is the old one or the new one at any
/// time; it keeps mode, owner and time of change. Hard links among the inputs are kept: the file is
/// converted once, and its other names lead to the new one. Stop what updates the files before: a file that
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
    /// Files, and directories that are searched recursively for databases; other files
    /// in them are skipped, unless their names end in `.rrd`.
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

    /// The machine that will read the files, or `portable`; `kymo machine list` lists the names.
    #[arg(long, value_name = "MACHINE", value_parser = target)]
    pub(crate) to: Target,

    /// The machine that wrote the inputs, where it is not found or found wrong.
    #[arg(long, value_name = "MACHINE", value_parser = find)]
    pub(crate) from: Option<&'static Machine>,

    /// Print what would be done, and do nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Do not wait for the disk: faster, but a machine that stops may leave empty files.
    #[arg(long)]
    pub(crate) no_sync: bool,

    #[command(flatten)]
    pub(crate) threads: Threads,
}

/// Check whether databases are whole
///
/// Sizes, counts, pointers, texts, numbers that cannot be, values beyond the limits of their data
/// source, what a cut-off update or a lost page leaves; of portable files the checksums. Only
/// damage makes the exit status 1.
///
/// Directories are searched recursively, and a summary is printed to standard error. Files in them
/// that are not databases are skipped and counted, unless their names end in `.rrd`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  kymo rrd check load.rrd
  kymo rrd check /var/lib/collectd
  kymo rrd check --json *.rrd | jq -r 'select(.damaged).file'")]
pub(crate) struct Check {
    /// Files, and directories that are searched recursively.
    #[arg(required = true, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) paths: Vec<PathBuf>,

    /// The machine that wrote the files, where it is not found or found wrong.
    #[arg(long, value_name = "MACHINE", value_parser = find)]
    pub(crate) machine: Option<&'static Machine>,

    /// Write one JSON object for each file, a line each.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) threads: Threads,
}

/// Write what can be kept of a damaged database to another file
///
/// Missing values become unknown, impossible pointers and texts what is likely; what was done is
/// printed.
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

pub(crate) fn target(name: &str) -> Result<Target, String> {
    if name == "portable" {
        return Ok(Target::Portable);
    }
    find(name)
        .map(Target::Native)
        .map_err(|error| format!("{error}; `portable` is possible, too"))
}

/// The commands of rrdtool as parts of the help. They are read in rrdtool's own way, and not by
/// what is made here.
#[cfg(feature = "draw")]
pub(crate) fn rrdtool_commands() -> impl Iterator<Item = clap::Command> {
    kymo_rrdtool::COMMANDS.iter().map(|command| {
        let mut examples = String::from("Examples:");
        for example in command.examples {
            examples.push_str("\n  kymo rrd ");
            examples.push_str(example);
        }
        let options = command.options.iter().map(|option| {
            let arg = Arg::new(option.long)
                .long(option.long)
                .help(option.help.trim_end_matches('.'));
            let arg = match option.short {
                Some(short) => arg.short(short),
                None => arg,
            };
            match option.value {
                Some(value) => arg.value_name(value).action(ArgAction::Append),
                None => arg.action(ArgAction::SetTrue),
            }
        });
        // rrdtool's commands read their command lines themselves, and have no such option.
        let quiet = Arg::new("quiet")
            .long("quiet")
            .hide(true)
            .action(ArgAction::SetTrue);
        let help = Arg::new("help")
            .long("help")
            .help("Print help")
            .action(ArgAction::Help);
        let operands = Arg::new("operands")
            .value_name(command.operands)
            .num_args(0..)
            .hide(true);
        clap::Command::new(command.name)
            .about(command.about)
            .long_about(format!("{}\n\n{}", command.about, command.details))
            .override_usage(format!(
                "kymo rrd {} [OPTIONS] {}",
                command.name, command.operands
            ))
            .disable_help_flag(true)
            .args(options)
            .arg(help)
            .arg(quiet)
            .arg(operands)
            .after_long_help(examples)
    })
}

/// `cgi` as a part of the help.
#[cfg(feature = "draw")]
pub(crate) fn cgi_command() -> clap::Command {
    clap::Command::new("cgi")
        .about("Make a page of a template in rrdcgi's language")
        .long_about(
            "Make a page of a template in rrdcgi's language\n\n\
             Tags such as <RRD::GRAPH ...> in FILE are replaced by what they say: graphs, dates, variables of the request, \
             other files. A link named rrdcgi that leads to kymo does the same, so that templates can begin with \
             `#!/usr/bin/rrdcgi`. FILE `-` is standard input.",
        )
        .override_usage("kymo rrd cgi [--filter] FILE")
        .arg(
            Arg::new("filter")
                .short('f')
                .long("filter")
                .action(ArgAction::SetTrue)
                .help("Write no headers and read no request"),
        )
        .after_long_help("Examples:\n  kymo rrd cgi --filter page.cgi")
}
