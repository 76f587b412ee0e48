//! `kymo send`.

mod delivery;
mod lines;
mod packets;
mod recordings;
mod sender;
mod target;

use std::io::Read;
use std::path::Path;

use crate::args::send::Send;
use crate::terminal::{Failure, Outcome, Terminal};

use sender::Sender;
pub(crate) use sender::count_after;
pub(crate) use target::{Place, Target};

/// Sends lines, samples or packets.
pub(crate) fn run(args: &Send, terminal: &Terminal) -> Result<Outcome, Failure> {
    if let Target::Packets(place) = &args.target {
        return packets::send(args, place, terminal);
    }
    if args.raw {
        let problem =
            "error: `--raw` sends packets of traces: the target must be `ctf+udp://HOST:PORT`";
        return Err(Failure::Usage(problem.to_string()));
    }
    let lines = match args.input.paths.as_slice() {
        [path] if path == Path::new("-") => Some(lines::Source::Input),
        [path] if begins_with_command(path) => Some(lines::Source::File(path)),
        _ => None,
    };
    let mut sender = Sender::new(args, terminal)?;
    let outcome = match lines {
        Some(source) => lines::send(source, args, &mut sender, terminal)?,
        None => recordings::send(args, &mut sender, terminal)?,
    };
    let refused = sender.finish()?;
    Ok(match refused {
        0 => outcome,
        _ => Outcome::Damage,
    })
}

/// Whether a file begins with a command of the text protocol, and so is lines of it: no recording
/// begins so.
fn begins_with_command(path: &Path) -> bool {
    let mut begin = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(512).read_to_end(&mut begin));
    let first = begin
        .split(|byte| *byte == b'\n')
        .map(<[u8]>::trim_ascii)
        .find(|line| !lines::is_comment(line));
    let is_command = |line: &[u8]| {
        let word = line.split(u8::is_ascii_whitespace).next().unwrap_or(line);
        word.eq_ignore_ascii_case(b"PUTVAL") || word.eq_ignore_ascii_case(b"PUTNOTIF")
    };
    read.is_ok() && first.is_some_and(is_command)
}
