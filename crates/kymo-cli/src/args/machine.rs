//! What can be written behind `kymo machine`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use kymo_machine::{Machine as KnownMachine, Number};

/// Show how machines write numbers and lay out structs
///
/// A machine is a processor, an operating system and a compiler together: what decides how
/// the numbers and the C structs in a file look that a program there has written.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true, subcommand_required = true)]
pub(crate) struct Machine {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    List(List),
    Float(Float),
    Layout(Layout),
}

/// List the machines
///
/// Of each its name, the order of the bytes of integers and doubles, the sizes of long and
/// time_t, the alignment of doubles in structs, the NaN that its compilers make of a constant,
/// the NaN that its programs write to files, and its other names.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  kymo machine list
  kymo machine list --json | jq -r 'select(.time_t == 4).machine'")]
pub(crate) struct List {
    /// Write one JSON object for each machine, a line each; sizes are in bytes.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show the bytes of doubles as machines store them
///
/// For all machines, or for one.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  kymo machine float 1 -inf nan 8.642135e130
  kymo machine float --machine armv4l --json 0x1.8p3")]
pub(crate) struct Float {
    /// The doubles, written as C's strtod reads them: 12, -1.5e3, 0x1.8p3, inf, nan.
    ///
    /// Of a NaN the bytes are those that the machine's compilers make of a constant, whatever
    /// its sign and what stands in parentheses behind it.
    #[arg(required = true, value_name = "VALUE", value_parser = Number::parse)]
    pub(crate) values: Vec<Number>,

    /// Only this machine; `kymo machine list` lists the names.
    #[arg(long, value_name = "NAME", value_parser = find)]
    pub(crate) machine: Option<&'static KnownMachine>,

    /// Write JSON objects, a line each: {"machine":NAME,"value":TEXT,"bytes":"5b1f2b43c7c0252f"}
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show where the members of C structs are
///
/// Of each struct and union that is declared, the offset and size in bytes of its members and
/// of the padding between them, and the size of the whole.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  kymo machine layout format.h --machine aix-ppc64
  echo 'struct s { char c[5]; double d; };' | kymo machine layout - --machine x86
  kymo machine layout format.h --machine sparc --values values.json")]
pub(crate) struct Layout {
    /// A file with declarations of structs in C; - is standard input.
    ///
    /// Read are struct, union, enum and typedef with members of all types of C, those of
    /// stdint.h and time_t, arrays, pointers, and `#define NAME NUMBER`. `#include` is skipped.
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) file: PathBuf,

    /// The machine; `kymo machine list` lists the names.
    #[arg(long, value_name = "NAME", value_parser = find)]
    pub(crate) machine: &'static KnownMachine,

    /// Show the bytes of each struct as well, with the values of its members in a JSON file.
    ///
    /// One object from the names of members to values: numbers; texts for arrays of char, which
    /// are written with a NUL behind them; the names of constants for enumerations; arrays;
    /// objects for structs. A double can be a text too, such as "nan". Bytes that are not
    /// written are 88.
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) values: Option<PathBuf>,

    /// Write one JSON object for each struct, a line each.
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) use kymo_command::args::find_machine as find;

/// The command line, in which negative values of `kymo machine float` cannot be taken for
/// options: they get a blank before them, which strtod skips.
pub(crate) fn with_negative_values(
    args: impl Iterator<Item = OsString>,
) -> impl Iterator<Item = OsString> {
    let mut words = 0;
    let mut is_float = true;
    args.map(move |arg| {
        words += 1;
        match words {
            1 => {}
            2 => is_float &= arg == "machine",
            3 => is_float &= arg == "float",
            _ if is_float => {
                if let Some(text) = arg.to_str().filter(|text| text.starts_with('-'))
                    && Number::parse(text).is_ok()
                {
                    return format!(" {text}").into();
                }
            }
            _ => {}
        }
        arg
    })
}
