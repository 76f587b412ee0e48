//! `list`: the databases in a directory.

use std::io;
use std::path::{Path, PathBuf};

use kymo_io::{EntryKind, list};

use super::DAEMON;
use crate::failure::reason;
use crate::options::{Command, Opt, Words};
use crate::path::{path, shown};
use crate::{Failure, Session, daemon};

pub(crate) const COMMAND: Command = Command {
    name: "list",
    about: "List the databases and directories in a directory",
    details: "Files whose names end in .rrd, sorted by name, each on a line. Of a file, its name.",
    operands: "DIRECTORY|FILE.rrd",
    options: &[
        Opt::flag(
            Some('r'),
            "recursive",
            "List the databases in all directories below, and no directories.",
        ),
        DAEMON,
        Opt::flag(
            Some('F'),
            "noflush",
            "Do not have the daemon write what it holds before.",
        ),
    ],
    examples: &["list -r /var/lib/collectd"],
    run,
};

fn run(session: &mut Session<'_>, words: &Words<'_>) -> Result<(), Failure> {
    let out = names(session, words)?;
    session.write(out)
}

/// The names, a line each.
pub(crate) fn names(session: &mut Session<'_>, words: &Words<'_>) -> Result<Vec<u8>, Failure> {
    let [directory] = words.operands[..] else {
        return Err(Failure::new(
            "Usage: rrdtool list [--daemon <addr> [--noflush]] [--recursive] <directory>",
        ));
    };
    let recursive = words.has("recursive");
    let mut out = Vec::new();
    if let Some(client) = daemon::connect(session, words)? {
        if !words.has("noflush") {
            client.ask(&[b"flushall"])?;
        }
        // The daemon's own directory is the root.
        let request: &[&[u8]] = match recursive {
            true => &[b"list", b"RECURSIVE", directory],
            false => &[b"list", directory],
        };
        client.ask_with(request, |line| {
            out.extend_from_slice(line);
            out.push(b'\n');
            Ok(())
        })?;
    } else {
        let mut listing = Listing {
            recursive,
            above: Vec::new(),
            out: &mut out,
        };
        let there = path(directory);
        match there.is_file() {
            true => listing.add_file(&there),
            false => listing.add(&there, b"")?,
        }
    }
    Ok(out)
}

/// A list in the making.
struct Listing<'a> {
    recursive: bool,
    /// The directories in which the one at hand is, as they are called without links.
    above: Vec<PathBuf>,
    out: &'a mut Vec<u8>,
}

impl Listing<'_> {
    /// Appends the name of a single file if it is one of a database, as rrdtool does.
    fn add_file(&mut self, file: &Path) {
        let name = file.file_name().map(|name| name.as_encoded_bytes());
        if let Some(name) = name.filter(|name| name.ends_with(b".rrd")) {
            self.out.extend_from_slice(name);
            self.out.push(b'\n');
        }
    }

    /// Appends what is in a directory, each name behind a prefix.
    fn add(&mut self, directory: &Path, prefix: &[u8]) -> Result<(), Failure> {
        let reported = |error: io::Error| {
            let directory = directory.as_os_str().as_encoded_bytes();
            Failure::new(format!("'{}': {}", shown(directory), reason(&error)))
        };
        let real = directory.canonicalize().map_err(reported)?;
        if self.above.contains(&real) {
            // A link leads back.
            return Ok(());
        }
        let entries = list(directory).map_err(reported)?;
        self.above.push(real);
        for entry in entries {
            let name = entry.name.as_encoded_bytes();
            let below = [prefix, name].concat();
            match entry.kind {
                EntryKind::Directory if self.recursive => {
                    self.add(&entry.path, &[&below, b"/".as_slice()].concat())?;
                }
                EntryKind::File if !name.ends_with(b".rrd") => {}
                EntryKind::Other => {}
                EntryKind::Directory | EntryKind::File => {
                    self.out.extend(below);
                    self.out.push(b'\n');
                }
            }
        }
        self.above.pop();
        Ok(())
    }
}
