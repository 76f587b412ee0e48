//! The program `kymo`: all of it is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    kymo_cli::run(std::env::args_os().collect())
}
