//! `cargo xtask words`: whether texts for people use the words of the field, and whether documents are true.
//!
//! It reads the documents, the help of the program and the texts in its source, and reports words that
//! `phrases.txt` replaces, lines that are too long, links that lead nowhere, and options that either the program or
//! the documents do not have.

mod markdown;
mod options;
mod phrases;
mod strings;

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use crate::Outcome;
use crate::args::Args;
use markdown::{Document, Kind};
use options::Options;
use phrases::Phrases;

/// Maximum length of lines of documents, in characters.
const LONGEST: usize = 120;

/// The contents of the site.
const CONTENTS: &str = "docs/SUMMARY.md";

/// Directories with sources whose texts only developers read.
const FOR_DEVELOPERS: [&str; 2] = ["kymo-fuzz", "kymo-rfc-gen"];

/// Something to mend, and where.
struct Finding {
    path: PathBuf,
    line: usize,
    problem: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path.display(), self.line, self.problem)
    }
}

/// Checks all texts.
pub(crate) fn run(args: Args) -> Outcome {
    args.finish()?;
    let root = root();
    let phrases = Phrases::read(include_str!("phrases.txt"));
    let options = Options::new(include_str!("others.txt"));
    let documents = documents(&root)?;
    let mut findings = Vec::new();
    let mut named = BTreeSet::new();
    for document in &documents {
        check_document(
            document,
            &documents,
            &phrases,
            &options,
            &mut findings,
            &mut named,
        );
    }
    findings.extend(not_in_contents(&documents));
    for document in &documents {
        findings.extend(not_for_the_site(document));
    }
    for (command, option) in options.of_program() {
        if !named.contains(&option) {
            findings.push(Finding {
                path: PathBuf::from("docs"),
                line: 0,
                problem: format!("no document names `{option}` of `{command}`"),
            });
        }
    }
    for (command, text) in options.help() {
        for (number, line) in text.lines().enumerate() {
            findings.extend(phrases.find(line).map(|found| Finding {
                path: PathBuf::from(format!("help of `{command}`")),
                line: number + 1,
                problem: found,
            }));
        }
    }
    for path in sources(&root)? {
        let source = fs::read_to_string(&path)?;
        let path = path.strip_prefix(&root).unwrap_or(&path).to_path_buf();
        for (line, text) in strings::texts(&source) {
            findings.extend(phrases.find(&text).map(|problem| Finding {
                path: path.clone(),
                line,
                problem,
            }));
        }
    }
    for finding in &findings {
        println!("{finding}");
    }
    match findings.len() {
        0 => Ok(()),
        count => Err(format!(
            "{count} texts to mend; xtask/src/words/phrases.txt has what to write instead"
        )
        .into()),
    }
}

/// The documents that the site's contents do not list.
fn not_in_contents(documents: &[Document]) -> Vec<Finding> {
    let contents = Path::new(CONTENTS);
    let listed: BTreeSet<PathBuf> = documents
        .iter()
        .filter(|document| document.path == contents)
        .flat_map(|document| &document.lines)
        .flat_map(|line| line.links())
        .map(|link| Path::new("docs").join(link))
        .collect();
    documents
        .iter()
        .map(|document| &document.path)
        .filter(|path| path.starts_with("docs") && *path != contents && !listed.contains(*path))
        .map(|path| Finding {
            path: contents.to_path_buf(),
            line: 0,
            problem: format!("`{}` is not in the contents", path.display()),
        })
        .collect()
}

/// What keeps a page of `docs` from the site, or a reader of the site from knowing what the page is for.
fn not_for_the_site(document: &Document) -> Vec<Finding> {
    let finding = |line: usize, problem: String| Finding {
        path: document.path.clone(),
        line,
        problem,
    };
    let mut findings = Vec::new();
    if !document.path.starts_with("docs") || document.path == Path::new(CONTENTS) {
        return findings;
    }
    // mdBook writes all pages on one, which has this name.
    if document.path == Path::new("docs/print.md") {
        findings.push(finding(0, "mdBook needs the name `print`".to_string()));
    }
    let third = document.lines.get(2);
    if !third.is_some_and(|line| line.text.starts_with("For: ")) {
        let problem = "below its title, a page says what it is for: `For: ...`";
        findings.push(finding(3, problem.to_string()));
    }
    for line in &document.lines {
        let links = line.links().into_iter();
        let outside = links.filter(|link| document.leaves(Path::new("docs"), link));
        findings.extend(outside.map(|link| {
            let problem = format!("the site does not contain `{link}`: name it without a link");
            finding(line.number, problem)
        }));
    }
    findings
}

/// Where the workspace is.
fn root() -> PathBuf {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask).to_path_buf()
}

/// The documents: those of the root, and all below `docs`.
fn documents(root: &Path) -> Outcome<Vec<Document>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(root)? {
        paths.push(entry?.path());
    }
    paths.extend(files_below(&root.join("docs"))?);
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "md"));
    paths.sort_unstable();
    let read = |path: &PathBuf| -> Outcome<Document> {
        let text = fs::read_to_string(path)?;
        Ok(Document::new(path.strip_prefix(root)?, &text))
    };
    paths.iter().map(read).collect()
}

/// Sources of crates that people use.
fn sources(root: &Path) -> Outcome<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(root.join("crates"))? {
        let entry = entry?;
        let name = entry.file_name();
        if !FOR_DEVELOPERS.iter().any(|it| name == *it) {
            paths.extend(files_below(&entry.path().join("src"))?);
        }
    }
    let is_test = |path: &Path| {
        let mut parts = path
            .components()
            .map(|part| part.as_os_str().to_string_lossy());
        parts.any(|part| {
            part == "tests" || part == "tests.rs" || part == "testing.rs" || part == "testing"
        })
    };
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "rs") && !is_test(path));
    paths.sort_unstable();
    Ok(paths)
}

fn files_below(directory: &Path) -> Outcome<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut ahead = vec![directory.to_path_buf()];
    while let Some(directory) = ahead.pop() {
        if !directory.is_dir() {
            continue;
        }
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            match path.is_dir() {
                true => ahead.push(path),
                false => files.push(path),
            }
        }
    }
    Ok(files)
}

fn check_document(
    document: &Document,
    all: &[Document],
    phrases: &Phrases,
    options: &Options,
    findings: &mut Vec<Finding>,
    named: &mut BTreeSet<String>,
) {
    let mut add = |line: usize, problem: String| {
        findings.push(Finding {
            path: document.path.clone(),
            line,
            problem,
        });
    };
    for line in &document.lines {
        let width = line.text.chars().count();
        if width > LONGEST && matches!(line.kind, Kind::Prose) {
            add(
                line.number,
                format!("{width} characters: lines end at {LONGEST}"),
            );
        }
        if line.kind != Kind::Code {
            phrases
                .find(&line.prose())
                .for_each(|found| add(line.number, found));
        }
        for option in line.options() {
            named.insert(option);
        }
        if document.is_about_now() {
            for code in line.code() {
                options
                    .unknown(&code)
                    .into_iter()
                    .for_each(|found| add(line.number, found));
            }
        }
        for link in line.links() {
            if let Some(problem) = document.dead(&link, all, &root()) {
                add(line.number, problem);
            }
        }
    }
}
