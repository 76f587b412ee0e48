//! `--from-file FILE`: words of the command line that are in a file.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// Files that name files that name files: no more than this.
const DEEPEST: u32 = 8;
/// Maximum bytes of all files together.
const MOST_BYTES: u64 = 16 << 20;

/// Replaces `--from-file FILE` by the lines of the file, a word each; a line `--option value` is two. Commands of
/// `kymo rrd` are left as they are.
///
/// # Errors
///
/// A file that cannot be read, as a message.
pub(crate) fn expand(words: Vec<OsString>) -> Result<Vec<OsString>, String> {
    match words.get(1) {
        Some(command) if command == "rrd" => Ok(words),
        _ => expand_to(words, DEEPEST, &mut { MOST_BYTES }),
    }
}

fn expand_to(words: Vec<OsString>, deepest: u32, left: &mut u64) -> Result<Vec<OsString>, String> {
    const OPTION: &str = "--from-file";
    let mut all = Vec::with_capacity(words.len());
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let path = match word.to_str() {
            Some("--") => {
                all.push(word);
                all.extend(words);
                return Ok(all);
            }
            Some(OPTION) => {
                let path = words.next();
                path.ok_or_else(|| format!("{OPTION} needs the path of a file"))?
            }
            Some(text) => match text
                .strip_prefix(OPTION)
                .and_then(|rest| rest.strip_prefix('='))
            {
                Some(path) => OsString::from(path),
                None => {
                    all.push(word);
                    continue;
                }
            },
            None => {
                all.push(word);
                continue;
            }
        };
        let shown = Path::new(&path).display();
        let deeper = deepest.checked_sub(1);
        let deeper =
            deeper.ok_or_else(|| format!("'{shown}': more than {DEEPEST} files in files"))?;
        let mut text = String::new();
        // One more than fits shows that there is more.
        let read =
            File::open(&path).and_then(|file| file.take(*left + 1).read_to_string(&mut text));
        let read = read.map_err(|error| format!("'{shown}': {}", kymo_io::reason(&error)))? as u64;
        *left = left
            .checked_sub(read)
            .ok_or_else(|| format!("'{shown}': more than {MOST_BYTES} bytes of arguments"))?;
        let lines = text.lines().map(str::trim);
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        let words = lines.flat_map(words_of).map(OsString::from).collect();
        all.extend(expand_to(words, deeper, left)?);
    }
    Ok(all)
}

/// An option and its value, where a line has both with blanks between them; else the line.
fn words_of(line: &str) -> impl Iterator<Item = &str> {
    let both = line.split_once(char::is_whitespace);
    let both = both.filter(|(option, _)| option.starts_with('-') && !option.contains('='));
    let (first, second) = match both {
        Some((option, value)) => (option, Some(value.trim_start())),
        None => (line, None),
    };
    std::iter::once(first).chain(second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_words() {
        let directory = tempfile::tempdir().unwrap();
        let (outer, inner) = (
            directory.path().join("outer"),
            directory.path().join("inner"),
        );
        std::fs::write(&inner, "--event=b c\n").unwrap();
        let text = format!(
            "# comment\n\n  --event=a  \n--from-file={}\n--where  x > 1\na b\n",
            inner.display()
        );
        std::fs::write(&outer, text).unwrap();
        let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        let outer = outer.to_str().unwrap();
        let found = expand(words(&[
            "kymo",
            "print",
            "--from-file",
            outer,
            "x",
            "--",
            "--from-file",
        ]));
        let all = [
            "kymo",
            "print",
            "--event=a",
            "--event=b c",
            "--where",
            "x > 1",
            "a b",
            "x",
            "--",
            "--from-file",
        ];
        assert_eq!(found.unwrap(), words(&all));
        let rrd = words(&["kymo", "rrd", "--from-file"]);
        assert_eq!(expand(rrd.clone()).unwrap(), rrd);
        assert!(expand(words(&["kymo", "print", "--from-file"])).is_err());
        assert!(expand(words(&["kymo", "print", "--from-file", "/nowhere/x"])).is_err());
        std::fs::write(&inner, " ".repeat(16 << 20)).unwrap();
        let twice = ["kymo", "--from-file", outer, "--from-file", outer];
        assert!(
            expand(words(&twice))
                .unwrap_err()
                .contains("bytes of arguments")
        );
        std::fs::write(&inner, format!("--from-file={}", inner.display())).unwrap();
        assert!(
            expand(words(&["kymo", "--from-file", outer]))
                .unwrap_err()
                .contains("more than")
        );
    }
}
