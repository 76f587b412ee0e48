//! The interactive prompt: statements over several lines, history, completion of names.

use std::path::PathBuf;

use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{CompletionType, Config, Context, Editor, Helper};

/// Words of SQL that are completed beside names.
const WORDS: &[&str] = &[
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP BY",
    "ORDER BY",
    "LIMIT",
    "JOIN",
    "USING",
    "HAVING",
    "WITH",
    "DISTINCT",
    "COUNT",
    "DESCRIBE",
    "SHOW TABLES",
    "EXPLAIN",
    "EXPLAIN ANALYZE",
    "BETWEEN",
    "UNION ALL",
    "PARTITION BY",
];

/// Completes names, and waits for the `;` that ends a statement.
struct Names(Vec<String>);

impl Completer for Names {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let before = &line[..position];
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | ':' | '"');
        let start = before
            .char_indices()
            .rev()
            .take_while(|&(_, c)| is_part(c))
            .last()
            .map_or(position, |(at, _)| at);
        let word = before[start..].trim_start_matches('"');
        if word.is_empty() {
            return Ok((start, Vec::new()));
        }
        let names = self
            .0
            .iter()
            // What a terminal would take as a command cannot be entered.
            .filter(|name| name.starts_with(word) && !name.contains(kymo_text::is_invisible))
            .map(|name| quoted(name));
        let lower = word.to_lowercase();
        let words = WORDS
            .iter()
            .filter(|name| name.to_lowercase().starts_with(&lower));
        let all = names.chain(words.map(|word| (*word).to_owned()));
        let pairs = all.map(|text| Pair {
            display: text.clone(),
            replacement: text,
        });
        Ok((start, pairs.collect()))
    }
}

/// A name as SQL takes it.
pub(crate) fn quoted(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_lowercase() || c == '_';
    let mut letters = name.chars();
    if letters.next().is_some_and(is_plain) && letters.all(|c| is_plain(c) || c.is_ascii_digit()) {
        return name.to_owned();
    }
    format!("\"{}\"", name.replace('"', "\"\""))
}

impl Hinter for Names {
    type Hint = String;
}

impl Highlighter for Names {}

impl Validator for Names {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let text = context.input().trim();
        Ok(
            match text.is_empty() || text.ends_with(';') || is_command(text) {
                true => ValidationResult::Valid(None),
                false => ValidationResult::Incomplete,
            },
        )
    }
}

impl Helper for Names {}

fn is_command(text: &str) -> bool {
    matches!(text, "quit" | "exit" | "help" | "\\q" | "\\?" | "\\d")
}

/// What the user has entered.
pub(crate) enum Entry {
    Statement(String),
    Tables,
    Help,
    End,
}

/// The prompt on a terminal.
pub(crate) struct Prompt {
    editor: Editor<Names, FileHistory>,
    history: Option<PathBuf>,
}

impl Prompt {
    /// # Errors
    ///
    /// There is no terminal.
    pub(crate) fn new(names: Vec<String>) -> rustyline::Result<Self> {
        // As in shells: what all candidates have in common is completed, and Tab once more lists them.
        let config = Config::builder().completion_type(CompletionType::List);
        let mut editor = Editor::with_config(config.build())?;
        editor.set_helper(Some(Names(names)));
        let history = history_file();
        if let Some(path) = &history {
            // The first time there is none.
            let _ = editor.load_history(path);
        }
        Ok(Self { editor, history })
    }

    /// Waits for a statement. A line that is given up with Ctrl-C is forgotten.
    pub(crate) fn read(&mut self) -> rustyline::Result<Entry> {
        loop {
            let line = match self.editor.readline("kymo> ") {
                Ok(line) => line,
                Err(ReadlineError::Interrupted) => continue,
                Err(ReadlineError::Eof) => return Ok(Entry::End),
                Err(error) => return Err(error),
            };
            let text = line.trim();
            if text.is_empty() {
                continue;
            }
            // It is a convenience.
            let _ = self.editor.add_history_entry(&line);
            if let Some(path) = &self.history {
                let _ = self.editor.save_history(path);
            }
            return Ok(match text.trim_end_matches(';') {
                "quit" | "exit" | "\\q" => Entry::End,
                "help" | "\\?" => Entry::Help,
                "\\d" => Entry::Tables,
                _ => Entry::Statement(line),
            });
        }
    }
}

/// Where the history is kept: in `$XDG_STATE_HOME/kymo`, else in `~/.local/state/kymo`.
fn history_file() -> Option<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME").filter(|directory| !directory.is_empty());
    let directory = match state {
        Some(state) => PathBuf::from(state),
        None => PathBuf::from(std::env::var_os("HOME")?).join(".local/state"),
    };
    let directory = directory.join("kymo");
    std::fs::create_dir_all(&directory).ok()?;
    Some(directory.join("query_history"))
}
