//! `flushcached`: have a daemon write what it holds.

use super::DAEMON;
use crate::daemon;
use crate::options::{Command, Words};
use crate::{Failure, Session};

pub(super) const COMMAND: Command = Command {
    name: "flushcached",
    about: "Have a daemon write what it holds of files",
    details: "",
    operands: "FILE...",
    options: &[DAEMON],
    examples: &["flushcached --daemon unix:/run/rrdcached.sock load.rrd"],
    run,
};

fn run(session: &mut Session<'_>, words: &Words<'_>) -> Result<(), Failure> {
    if words.operands.is_empty() {
        let usage = "flushcached [--daemon|-d <addr>] <file> [<file> ...]";
        return Err(Failure::new(format!("Usage: rrdtool {usage}")));
    }
    let Some(client) = daemon::connect(session, words)? else {
        return Err(Failure::new(
            "no daemon is known: name its address with --daemon or in RRDCACHED_ADDRESS",
        ));
    };
    words
        .operands
        .iter()
        .try_for_each(|file| client.flush(file))
}
