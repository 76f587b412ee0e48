//! What tests of command lines share.

use std::path::Path;

use kymo_rrdtool::{Defaults, Session, run};

/// Runs a command line, in which `@` stands for a directory. Gives what it prints, and its failure.
pub(crate) fn printed(directory: &Path, line: &str) -> (String, Option<String>) {
    let directory = format!("{}/", directory.display());
    let words: Vec<String> = line
        .split_whitespace()
        .map(|word| word.replace('@', &directory))
        .collect();
    let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    let (mut out, mut warnings) = (Vec::new(), Vec::new());
    let mut session = Session::new(&mut out, &mut warnings, Defaults::default());
    let done = run(&mut session, &words).unwrap();
    let failure = done.err().map(|failure| failure.to_string());
    (String::from_utf8(out).unwrap(), failure)
}
