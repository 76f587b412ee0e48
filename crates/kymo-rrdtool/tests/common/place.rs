//! A directory in which tests run command lines.

use kymo_rrdtool::{Defaults, Session, run};

/// A directory to work in.
pub(crate) struct Place(pub(crate) tempfile::TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Runs a command line, in which `@` stands for the directory. Gives what it prints, or its
    /// failure; and its warnings.
    pub(crate) fn run(&self, line: &str) -> (Result<String, String>, String) {
        let directory = format!("{}/", self.0.path().display());
        let words: Vec<String> = line
            .split_whitespace()
            .map(|word| word.replace('@', &directory))
            .collect();
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        let (mut out, mut warnings) = (Vec::new(), Vec::new());
        let mut session = Session::new(&mut out, &mut warnings, Defaults::default());
        session.now = Some(1_700_000_000);
        let done = run(&mut session, &words).unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().replace(&directory, "@");
        let done = done.map(|()| text(out));
        let done = done.map_err(|failure| failure.to_string().replace(&directory, "@"));
        (done, text(warnings))
    }

    pub(crate) fn ok(&self, line: &str) -> String {
        let (done, warnings) = self.run(line);
        assert_eq!(warnings, "", "{line}");
        done.unwrap_or_else(|failure| panic!("{line}: {failure}"))
    }
}
