//! `kymo serve`.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use kymo_serve::config::{Config, JOURNAL_BYTES};
use kymo_serve::store::Log;
use kymo_serve::{daemon, journal};

use crate::args::serve::Serve;
use crate::terminal::{Failure, Outcome, Terminal};

/// Serves until a signal ends it.
pub(crate) fn run(args: &Serve, terminal: &Terminal) -> Result<Outcome, Failure> {
    // What is wrong with the configuration is told before anything is done.
    configuration(args).map_err(Failure::Usage)?;
    let log: Log = Arc::new(|text| {
        // Nobody can be told that messages are not seen.
        let _ = writeln!(std::io::stderr(), "kymo serve: {text}");
    });
    match daemon::run(&|| configuration(args), &log) {
        Ok(()) => Ok(Outcome::Good),
        Err(problem) => {
            terminal.error(problem);
            Err(Failure::Unreadable)
        }
    }
}

/// What the file of configuration and the command line say.
fn configuration(args: &Serve) -> Result<Config, String> {
    let mut config = match (&args.config, &args.data) {
        (Some(path), _) => Config::read(path)?,
        (None, Some(data)) => Config::new(data.clone()),
        (None, None) => return Err("there is neither --config nor --data".into()),
    };
    let set = |to: &mut PathBuf, told: &Option<PathBuf>| {
        if let Some(told) = told {
            to.clone_from(told);
        }
    };
    set(&mut config.data, &args.data);
    if let Some(directory) = &args.journal {
        let journal = config.journal.get_or_insert_with(|| journal::Options {
            directory: directory.clone(),
            most_bytes: JOURNAL_BYTES,
            durable: false,
        });
        journal.directory.clone_from(directory);
    }
    match &mut config.journal {
        Some(journal) => journal.durable |= args.durable,
        None if args.durable => return Err("--durable needs --journal".into()),
        None => {}
    }
    config
        .rrdcached
        .addresses
        .extend(args.rrdcached.iter().cloned());
    config
        .metrics
        .addresses
        .extend(args.metrics.iter().cloned());
    let write = &mut config.write;
    write.timeout = args.write_timeout.unwrap_or(write.timeout);
    write.jitter = args.jitter.unwrap_or(write.jitter);
    write.flush = args.flush.unwrap_or(write.flush);
    write.threads = args.threads.map_or(write.threads, usize::from);
    config.target = args.format.unwrap_or(config.target);
    if args.pid_file.is_some() {
        config.pid_file.clone_from(&args.pid_file);
    }
    Ok(config)
}
