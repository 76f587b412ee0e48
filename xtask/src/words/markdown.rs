//! Documents: lines of prose, tables and code; links; headings.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

/// A document.
pub(super) struct Document {
    /// Where it is below the root.
    pub(super) path: PathBuf,
    pub(super) lines: Vec<Line>,
    /// What can be linked to.
    anchors: Vec<String>,
}

/// A line of a document.
pub(super) struct Line {
    pub(super) number: usize,
    pub(super) text: String,
    pub(super) kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Prose,
    /// A row of a table, which cannot be broken.
    Table,
    Code,
}

impl Document {
    pub(super) fn new(path: &Path, text: &str) -> Self {
        let mut lines: Vec<Line> = Vec::new();
        let mut fence = None;
        let mut anchors = Vec::new();
        let mut times: HashMap<String, usize> = HashMap::new();
        let mut is_list = false;
        for (number, line) in text.lines().enumerate() {
            let begin = line.trim_start();
            let is_fence = begin.starts_with("```") || begin.starts_with("~~~");
            let before_is_empty = lines
                .last()
                .is_none_or(|before| before.text.trim().is_empty());
            let before_is_code = lines.last().is_some_and(|before| before.kind == Kind::Code);
            is_list = match () {
                () if line.starts_with(|c: char| !c.is_whitespace()) => {
                    begin.starts_with("- ")
                        || begin.starts_with("* ")
                        || begin.starts_with(|c: char| c.is_ascii_digit())
                }
                () => is_list,
            };
            let deep = line.len() - begin.len();
            let is_indented =
                deep >= if is_list { 6 } else { 4 } && (before_is_empty || before_is_code);
            let kind = match (fence, is_fence) {
                (None, true) => {
                    fence = Some(());
                    Kind::Code
                }
                (Some(()), true) => {
                    fence = None;
                    Kind::Code
                }
                (Some(()), false) => Kind::Code,
                (None, false) if is_indented => Kind::Code,
                (None, false) if begin.starts_with('|') => Kind::Table,
                (None, false) => Kind::Prose,
            };
            if kind == Kind::Prose && begin.starts_with('#') {
                let slug = slug(begin.trim_start_matches('#').trim());
                let time = times.entry(slug.clone()).or_default();
                anchors.push(match *time {
                    0 => slug,
                    time => format!("{slug}-{time}"),
                });
                *time += 1;
            }
            lines.push(Line {
                number: number + 1,
                text: line.to_string(),
                kind,
            });
        }
        Self {
            path: path.to_path_buf(),
            lines,
            anchors,
        }
    }

    /// Whether it describes the program as it is, and not as it was.
    pub(super) fn is_about_now(&self) -> bool {
        self.path != Path::new("CHANGELOG.md")
    }

    /// The file that a link leads to, and the heading; `None` if it leads out of the repository.
    fn target<'l>(&self, link: &'l str) -> Option<(PathBuf, Option<&'l str>)> {
        if link.contains("://") || link.starts_with("mailto:") {
            return None;
        }
        let (file, anchor) = match link.split_once('#') {
            Some((file, anchor)) => (file, Some(anchor)),
            None => (link, None),
        };
        let path = match file {
            "" => self.path.clone(),
            file => normal(&self.path.parent().unwrap_or(Path::new("")).join(file)),
        };
        Some((path, anchor))
    }

    /// Whether a link leads to a file of the repository outside of a directory.
    pub(super) fn leaves(&self, directory: &Path, link: &str) -> bool {
        self.target(link)
            .is_some_and(|(path, _)| !path.starts_with(directory))
    }

    /// Why a link leads nowhere.
    pub(super) fn dead(&self, link: &str, all: &[Self], root: &Path) -> Option<String> {
        let (path, anchor) = self.target(link)?;
        if !root.join(&path).exists() {
            return Some(format!("the link `{link}` leads nowhere"));
        }
        let anchor = anchor?;
        let target = all.iter().find(|document| document.path == path)?;
        (!target.anchors.iter().any(|it| it == anchor))
            .then(|| format!("`{link}`: there is no such heading"))
    }
}

impl Line {
    /// The line without what stands in code spans.
    pub(super) fn prose(&self) -> String {
        let parts = self.text.split('`').step_by(2);
        parts.collect::<Vec<_>>().join("\u{b7}")
    }

    /// What is code: the whole line, or its code spans.
    pub(super) fn code(&self) -> Vec<String> {
        match self.kind {
            Kind::Code => vec![self.text.clone()],
            _ => self
                .text
                .split('`')
                .skip(1)
                .step_by(2)
                .map(str::to_string)
                .collect(),
        }
    }

    /// The long options that the line names.
    pub(super) fn options(&self) -> Vec<String> {
        options(&self.text)
    }

    /// The targets of its links.
    pub(super) fn links(&self) -> Vec<String> {
        if self.kind == Kind::Code {
            return Vec::new();
        }
        let prose = self.prose();
        let parts = prose.split("](").skip(1);
        let targets = parts.filter_map(|part| part.split(')').next());
        targets
            .map(|target| target.split(' ').next().unwrap_or(target).to_string())
            .collect()
    }
}

/// The long options in a text.
pub(super) fn options(text: &str) -> Vec<String> {
    let mut options = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("--") {
        let before = rest[..at].chars().next_back();
        let after = &rest[at + 2..];
        let end = after
            .find(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'))
            .unwrap_or(after.len());
        let name = after[..end].trim_end_matches('-');
        let is_option = name.starts_with(|c: char| c.is_ascii_lowercase())
            && before.is_none_or(|c| {
                c.is_whitespace() || matches!(c, '`' | '[' | '(' | '"' | '\'' | '|' | '/')
            });
        if is_option {
            options.push(format!("--{name}"));
        }
        rest = &after[end..];
    }
    options
}

/// A path without `..`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                normal.pop();
            }
            Component::CurDir => {}
            part => normal.push(part),
        }
    }
    normal
}

/// The anchor of a heading, as hosts of repositories make it.
fn slug(heading: &str) -> String {
    let kept = heading.to_lowercase();
    let kept = kept
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_kinds() {
        let text = "# A `b` c\n\ntext `--x` [l](#a-b-c)\n\n    code --y\n\n| a |\n```\nz\n```\n[m](no.md) [n](#none)\n";
        let document = Document::new(Path::new("docs/x.md"), text);
        let kinds: Vec<_> = document.lines.iter().map(|line| line.kind).collect();
        use Kind::{Code, Prose, Table};
        assert_eq!(
            kinds,
            [
                Prose, Prose, Prose, Prose, Code, Prose, Table, Code, Code, Code, Prose
            ]
        );
        assert_eq!(document.lines[2].options(), ["--x"]);
        assert_eq!(document.lines[2].code(), ["--x"]);
        let all = [document];
        let root = Path::new("/nonexistent");
        let links = |line: usize| all[0].lines[line].links();
        assert_eq!(links(10), ["no.md", "#none"]);
        assert!(all[0].dead("no.md", &all, root).is_some());
        assert!(all[0].dead("https://x", &all, root).is_none());
        let leaves = |link: &str| all[0].leaves(Path::new("docs"), link);
        assert!(leaves("../README.md") && leaves("../examples#a"));
        assert!(!leaves("a/b.md") && !leaves("#none") && !leaves("https://x"));
    }

    #[test]
    fn options_in_texts() {
        assert_eq!(
            options("`--a-b=1` [--c] x--d --- --e, `kymo`"),
            ["--a-b", "--c", "--e"]
        );
    }
}
