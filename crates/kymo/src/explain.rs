//! Errors of files in words that say what to do.

use std::fmt;
use std::io::{self, ErrorKind};
use std::path::Path;

use kymo_text::{nearest, visible};

/// A path as a message shows it: a line, whatever is in its name.
pub fn path_text(path: &Path) -> String {
    visible(&path.to_string_lossy()).into_owned()
}

/// Characters of the patterns of shells, which pass on a pattern that no file matches.
const WILDCARDS: [char; 3] = ['*', '?', '['];

/// What failed, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explained {
    /// What failed, on what, why: one line, lower case, no full stop.
    pub problem: String,
    /// What to do.
    pub hint: Option<String>,
}

impl fmt::Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem)
    }
}

impl From<&str> for Explained {
    /// A text of [`Explained::with_hint`].
    fn from(text: &str) -> Self {
        let (problem, hint) = match text.split_once("\nhint: ") {
            Some((problem, hint)) => (problem, Some(hint.to_owned())),
            None => (text, None),
        };
        Self {
            problem: problem.to_owned(),
            hint,
        }
    }
}

impl Explained {
    /// Both, the hint on a line of its own that begins with `hint: `.
    pub fn with_hint(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{}\nhint: {hint}", self.problem),
            None => self.problem.clone(),
        }
    }

    fn new(problem: String, hint: impl Into<String>) -> Self {
        Self {
            problem,
            hint: Some(hint.into()),
        }
    }
}

/// Why a file or directory cannot be read.
pub fn reading(path: &Path, error: &io::Error) -> Explained {
    let shown = path_text(path);
    match error.kind() {
        // Something else may be missing, such as the directory of temporary files.
        ErrorKind::NotFound | ErrorKind::NotADirectory if path.symlink_metadata().is_err() => {
            missing(path)
        }
        ErrorKind::PermissionDenied => Explained::new(
            format!("cannot read `{shown}`: permission denied"),
            format!("`ls -ld {shown}` shows who may read it"),
        ),
        ErrorKind::IsADirectory => Explained::new(
            format!("`{shown}` is a directory, not a file"),
            "specify a file in it",
        ),
        _ => Explained {
            problem: format!("{shown}: {}", kymo_io::reason(error)),
            hint: None,
        },
    }
}

/// Why a file or directory cannot be written.
pub fn writing(path: &Path, error: &io::Error) -> Explained {
    let shown = path_text(path);
    let parent = path.parent().filter(|it| !it.as_os_str().is_empty());
    if let (ErrorKind::NotFound, Some(parent)) = (error.kind(), parent)
        && !parent.exists()
    {
        return no_directory(path, parent);
    }
    Explained {
        problem: format!("cannot write `{shown}`: {}", kymo_io::reason(error)),
        hint: writing_hint(error.kind()).map(str::to_string),
    }
}

/// What to do about a database that is damaged, or that another machine has written.
pub fn damaged_database(path: &Path) -> String {
    let path = path_text(path);
    format!(
        "`kymo rrd check {path}` lists all damage, `kymo rrd repair {path} -o NEW.rrd` saves the rest; if another \
         machine wrote it, `--machine NAME` specifies that"
    )
}

/// That a file cannot be written since its directory does not exist.
pub fn no_directory(path: &Path, parent: &Path) -> Explained {
    let (shown, parent) = (path_text(path), path_text(parent));
    Explained::new(
        format!("cannot write `{shown}`: directory `{parent}` does not exist"),
        format!("`mkdir -p {parent}` creates it"),
    )
}

/// What to do about an error of writing.
pub fn writing_hint(kind: ErrorKind) -> Option<&'static str> {
    Some(match kind {
        ErrorKind::StorageFull => {
            "`df -h` shows which disks are full: free space there, or write elsewhere"
        }
        ErrorKind::QuotaExceeded => "`quota` shows how much disk space you may use",
        ErrorKind::FileTooLarge => "`ulimit -f` shows the limit of file sizes",
        ErrorKind::PermissionDenied => "`ls -ld` of the directory shows who may write in it",
        ErrorKind::ReadOnlyFilesystem => {
            "choose an output on another disk: this one is mounted read-only"
        }
        _ => return None,
    })
}

/// That there is nothing at a path.
fn missing(path: &Path) -> Explained {
    let text = path.to_string_lossy();
    if let Some((scheme, _)) = text.split_once("://") {
        return url(&text, scheme);
    }
    let shown = path_text(path);
    if text.contains(WILDCARDS) {
        return Explained::new(
            format!("no file matches `{shown}`"),
            "shells pass a pattern on unchanged if no file matches it: check its path",
        );
    }
    let problem = format!("`{shown}` does not exist");
    let parent = match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => {
            return Explained {
                problem,
                hint: None,
            };
        }
    };
    if !parent.is_dir() {
        let parent = parent
            .ancestors()
            .filter(|it| !it.as_os_str().is_empty() && !it.exists())
            .last()
            .unwrap_or(parent);
        let what = match parent.exists() {
            true => "is a file: specify it alone",
            false => "does not exist either: check the path",
        };
        return Explained::new(problem, format!("`{}` {what}", path_text(parent)));
    }
    let wrong = path.file_name().unwrap_or_default().to_string_lossy();
    if let Some(name) = similar_name(parent, &wrong) {
        let meant = path.with_file_name(name);
        return Explained::new(problem, format!("did you mean `{}`?", path_text(&meant)));
    }
    let hint = match std::env::current_dir() {
        Ok(current) if path.is_relative() => {
            format!(
                "relative paths begin at the current directory, `{}`",
                path_text(&current)
            )
        }
        _ => format!("`ls {}` shows what is there", path_text(parent)),
    };
    Explained::new(problem, hint)
}

/// The name in a directory that is most similar to another one.
fn similar_name(directory: &Path, wrong: &str) -> Option<String> {
    /// Maximum number of names of a directory that are read.
    const MOST: usize = 10_000;
    let entries = std::fs::read_dir(directory).ok()?.take(MOST).flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort_unstable();
    nearest(wrong, names.iter().map(String::as_str)).map(str::to_string)
}

/// That a path is a URL.
fn url(text: &str, scheme: &str) -> Explained {
    let hint = match scheme {
        "http" | "https" | "ftp" => {
            format!("`curl -L {text} | kymo print -` reads it from standard input")
        }
        "ctf+udp" => format!("`kymo receive {text} -o DIR` writes what arrives there as a trace"),
        "net" | "net4" | "net6" => {
            "a session of LTTng's relay daemon is read by `kymo print`, `convert`, `latency` and `view`"
                .to_string()
        }
        "file" => format!("write the path alone: `{}`", &text["file://".len()..]),
        _ => "copy it to this machine, or pipe it into `kymo print -`".to_string(),
    };
    Explained::new(
        format!("`{text}` is a URL: kymo reads files and standard input"),
        hint,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explained(path: &str) -> (String, String) {
        let found = reading(Path::new(path), &ErrorKind::NotFound.into());
        (found.problem, found.hint.unwrap_or_default())
    }

    #[test]
    fn missing_files() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("trace"), "").unwrap();
        let root = directory.path().display();
        let (problem, hint) = explained(&format!("{root}/trcae"));
        assert_eq!(problem, format!("`{root}/trcae` does not exist"));
        assert_eq!(hint, format!("did you mean `{root}/trace`?"));
        let (_, hint) = explained(&format!("{root}/a/b/c"));
        assert_eq!(
            hint,
            format!("`{root}/a` does not exist either: check the path")
        );
        let (_, hint) = explained(&format!("{root}/trace/c"));
        assert_eq!(hint, format!("`{root}/trace` is a file: specify it alone"));
        let (problem, _) = explained(&format!("{root}/*.rrd"));
        assert_eq!(problem, format!("no file matches `{root}/*.rrd`"));
    }

    #[test]
    fn urls() {
        for (url, hint) in [
            (
                "http://h/x",
                "`curl -L http://h/x | kymo print -` reads it from standard input",
            ),
            ("file:///x", "write the path alone: `/x`"),
            (
                "net://h",
                "a session of LTTng's relay daemon is read by `kymo print`, `convert`, `latency` and `view`",
            ),
        ] {
            assert_eq!(explained(url).1, hint);
        }
    }

    #[test]
    fn files_that_cannot_be_written() {
        let path = Path::new("no/such/file");
        let found = writing(path, &ErrorKind::NotFound.into());
        assert_eq!(
            found.problem,
            "cannot write `no/such/file`: directory `no/such` does not exist"
        );
        let path = Path::new("no\nhint: forged\u{202e}/file");
        let found = writing(path, &ErrorKind::NotFound.into()).with_hint();
        assert_eq!(
            found,
            r"cannot write `no\x0ahint: forged\u{202e}/file`: directory `no\x0ahint: forged\u{202e}` does not exist
hint: `mkdir -p no\x0ahint: forged\u{202e}` creates it"
        );
        let full = writing(Path::new("x"), &ErrorKind::StorageFull.into());
        assert_eq!(
            full.hint.as_deref(),
            Some("`df -h` shows which disks are full: free space there, or write elsewhere")
        );
    }

    #[test]
    fn what_may_not_be_read() {
        let found = reading(Path::new("x"), &ErrorKind::PermissionDenied.into());
        assert_eq!(found.problem, "cannot read `x`: permission denied");
        assert!(found.hint.is_some());
    }
}
