//! The program `kymo-query`: SQL over recordings, as `kymo query` runs it.
//!
//! [`source`] has the recordings, [`scan`] the tables of their events: what a query asks for (columns, time,
//! conditions, limits) is [pushed down](pushdown) to the decoder, and each partition reads a [unit](units) of chunks.
//! [`objects`] are recordings that are not on this machine.
//! [`samples`] and [`model`] make the other tables, [`views`] those with Perfetto's names. The rest is DataFusion. A
//! [`cluster`] has other processes read.

mod args;
mod bounded;
mod cluster;
mod errors;
mod facts;
mod files;
mod functions;
mod intervals;
mod leaf;
mod links;
mod macros;
mod model;
#[cfg_attr(not(feature = "remote"), path = "objects/without.rs")]
mod objects;
mod opening;
mod output;
mod prompt;
mod pushdown;
mod rows;
mod run;
mod samples;
mod scan;
mod session;
mod source;
mod spill;
mod streamed;
mod units;
mod views;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};
use kymo_command::terminal::{Outcome, Terminal};

use crate::args::Node;
use crate::cluster::{scheduler, worker};

fn main() -> ExitCode {
    // Statements are planned on a stack that has room for all that are let through.
    let thread = std::thread::Builder::new().stack_size(session::STACK);
    let outcome = thread.spawn(run_program).map(|thread| thread.join());
    match outcome {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(panic)) => std::panic::resume_unwind(panic),
        Err(error) => {
            Terminal::new().error(format_args!("cannot start a thread: {error}"));
            ExitCode::from(Outcome::Unreadable as u8)
        }
    }
}

fn run_program() -> ExitCode {
    let parsed = args::Query::command().try_get_matches();
    let parsed = parsed.and_then(|matches| Ok((args::Query::from_arg_matches(&matches)?, matches)));
    let (args, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => {
            // If nobody listens, nobody can be notified.
            let _ = error.print();
            let is_error = error.use_stderr();
            return if is_error {
                ExitCode::from(Outcome::Usage as u8)
            } else {
                ExitCode::SUCCESS
            };
        }
    };
    objects::install();
    #[cfg(target_os = "linux")]
    kymo_io::survive_truncation();
    let terminal = Terminal::new();
    let threads = match &args.node {
        Some(Node::Scheduler(args)) => args.threads.count(),
        Some(Node::Worker(args)) => args.threads.count(),
        None => args.threads.count(),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        // One more sees that Ctrl-C was pressed while the others compute.
        .worker_threads(threads + 1)
        .thread_stack_size(session::STACK)
        .enable_all()
        .build();
    let result = match runtime {
        Ok(runtime) => {
            let result = runtime.block_on(async {
                match &args.node {
                    Some(Node::Scheduler(args)) => scheduler::run(args, &terminal).await,
                    Some(Node::Worker(args)) => worker::run(args, &terminal).await,
                    None => run::run(args, &matches, &terminal).await,
                }
            });
            // Threads that decode end by themselves, or with the program.
            runtime.shutdown_background();
            result
        }
        Err(error) => Err(error.into()),
    };
    let outcome = result.unwrap_or_else(|failure| terminal.report_failure(&failure));
    ExitCode::from(outcome as u8)
}
