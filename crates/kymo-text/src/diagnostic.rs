//! What is wrong with a text, shown as a compiler shows it: the place, the line itself,
//! and what would have been right.
//!
//! Every small language uses this: metadata of traces, filters, expressions, JSON,
//! configuration. The text may come from anywhere, so neither lines of megabytes nor
//! control characters nor places outside of the text upset the picture.

use std::ops::Range;

use annotate_snippets::{
    Annotation, AnnotationKind, Group, Level, Origin, Renderer, Snippet, normalize_untrusted_str,
};

/// Of a line longer than this, in bytes, only the surroundings of the place are looked at.
const LONGEST_LINE: usize = 100_000;
/// How far these surroundings reach, in bytes.
const WINDOW: usize = 1000;
/// No more than this many bytes of a place are underlined.
const LONGEST_MARK: usize = 100;

/// How bad something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Severity {
    /// The text cannot be used.
    Error,
    /// The text can be used, though perhaps not as its author thinks.
    Warning,
}

/// A place in the text, and what there is to say of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The place, in bytes from the start of the text.
    pub range: Range<usize>,
    /// What there is to say; may be empty.
    pub label: String,
    /// Whether this is the culprit, and not one of the circumstances.
    pub primary: bool,
}

/// Something that is wrong with a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong: one line, without a full stop.
    pub message: String,
    /// Where; may be empty where no place is to blame.
    pub spans: Vec<Span>,
    /// What the author could do.
    pub help: Option<String>,
}

impl Diagnostic {
    /// An error.
    pub fn error(message: impl Into<String>) -> Self {
        Self::new(Severity::Error, message.into())
    }

    /// A warning.
    pub fn warning(message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, message.into())
    }

    fn new(severity: Severity, message: String) -> Self {
        Self {
            severity,
            message,
            spans: Vec::new(),
            help: None,
        }
    }

    /// Adds the place of the culprit and what is wrong or was expected there.
    #[must_use]
    pub fn at(self, range: impl Into<Range<usize>>, label: impl Into<String>) -> Self {
        self.with_span(range.into(), label.into(), true)
    }

    /// Adds a place that explains the error, such as an earlier declaration.
    #[must_use]
    pub fn because(self, range: impl Into<Range<usize>>, label: impl Into<String>) -> Self {
        self.with_span(range.into(), label.into(), false)
    }

    /// Says what the author could do.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    fn with_span(mut self, range: Range<usize>, label: String, primary: bool) -> Self {
        self.spans.push(Span {
            range,
            label,
            primary,
        });
        self
    }

    /// The diagnostic as a compiler would show it; `name` is that of the text, usually a
    /// file's. The last line does not end in a newline.
    pub fn render(&self, name: &str, text: &str, color: bool) -> String {
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let mut group = level
            .primary_title(clean(&self.message))
            .elements(Vec::<Snippet<'_, Annotation<'_>>>::new());
        let name = &*clean(name);
        let mut spans: Vec<_> = self
            .spans
            .iter()
            .map(|span| Mark::new(span, text))
            .collect();
        // The culprit's line comes first, then the others from top to bottom.
        spans.sort_by_key(|mark| (!mark.span.primary, mark.line.number, mark.span.range.start));
        while let Some(first) = spans.first() {
            let line = first.line;
            let (here, others) = spans.into_iter().partition(|mark| mark.line == line);
            spans = others;
            group = show_line(group, name, text, line, here);
        }
        if self.spans.is_empty() {
            group = group.element(Origin::path(name));
        }
        if let Some(help) = &self.help {
            group = group.element(Level::HELP.message(clean(help)));
        }
        let renderer = if color {
            Renderer::styled()
        } else {
            Renderer::plain()
        };
        renderer.render(&[group])
    }
}

/// Adds one line of the text with the marks on it.
fn show_line<'a>(
    group: Group<'a>,
    name: &'a str,
    text: &'a str,
    line: Line,
    marks: Vec<Mark<'a>>,
) -> Group<'a> {
    let first = marks.first().map_or(line.start, |mark| mark.start);
    let is_long = line.end - line.start > LONGEST_LINE;
    // The renderer shows of any line what fits, but looks at all of it.
    let (start, end) = if is_long {
        (
            floor(text, first.saturating_sub(WINDOW).max(line.start)),
            floor(text, first.saturating_add(WINDOW).min(line.end)),
        )
    } else {
        (line.start, line.end)
    };
    let mut snippet = Snippet::source(&text[start..end]).line_start(line.number);
    for mark in marks {
        let kind = if mark.span.primary {
            AnnotationKind::Primary
        } else {
            AnnotationKind::Context
        };
        let label = (!mark.span.label.is_empty()).then(|| clean(&mark.span.label));
        let from = mark.start.clamp(start, end) - start;
        let to = mark.end.clamp(start, end) - start;
        snippet = snippet.annotation(kind.span(from..to).label(label));
    }
    if is_long {
        let column = 1 + text[line.start..first].chars().count();
        let place = Origin::path(name).line(line.number).char_column(column);
        group.element(place).element(snippet)
    } else {
        group.element(snippet.path(name))
    }
}

/// A text in which nothing moves a terminal's cursor or changes its colours.
fn clean(text: &str) -> String {
    normalize_untrusted_str(text).replace('\n', " ")
}

/// A span, cut to what lies on its first line.
struct Mark<'a> {
    span: &'a Span,
    line: Line,
    start: usize,
    end: usize,
}

impl<'a> Mark<'a> {
    fn new(span: &'a Span, text: &str) -> Self {
        let start = floor(text, span.range.start.min(text.len()));
        let line = Line::around(text, start);
        let end = span.range.end.min(line.end).min(start + LONGEST_MARK);
        Self {
            span,
            line,
            start,
            end: floor(text, end).max(start),
        }
    }
}

/// A line of the text: its number from 1, and its bytes without the newline.
#[derive(Clone, Copy, PartialEq)]
struct Line {
    number: usize,
    start: usize,
    end: usize,
}

impl Line {
    /// The line on which a byte lies; at the very end of the text, the last line that is
    /// not empty, so that there is something to look at.
    fn around(text: &str, at: usize) -> Self {
        let bytes = text.as_bytes();
        let start = bytes[..at]
            .iter()
            .rposition(|&byte| byte == b'\n')
            .map_or(0, |newline| newline + 1);
        let end = bytes[at..]
            .iter()
            .position(|&byte| byte == b'\n')
            .map_or(bytes.len(), |length| at + length);
        let end = if bytes[start..end].ends_with(b"\r") {
            end.saturating_sub(1).max(at)
        } else {
            end
        };
        let number = 1 + bytes[..start].iter().filter(|&&byte| byte == b'\n').count();
        Self { number, start, end }
    }
}

/// The nearest boundary of a character at or before `at`.
fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len()))
        .rev()
        .find(|&at| text.is_char_boundary(at))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "trace {\n\tmajor = 1;\n\tmajor = 2;\r\n};\n";

    fn place(text: &str, what: &str, nth: usize) -> Range<usize> {
        let (start, found) = text.match_indices(what).nth(nth).unwrap();
        start..start + found.len()
    }

    #[test]
    fn both_places_are_shown() {
        let error = Diagnostic::error("`major` is given twice")
            .because(place(TEXT, "major", 0), "first given here")
            .at(place(TEXT, "major", 1), "given again")
            .with_help("remove one of them");
        assert_eq!(
            error.render("metadata", TEXT, false),
            "\
error: `major` is given twice
 --> metadata:3:2
  |
3 |     major = 2;
  |     ^^^^^ given again
  |
 ::: metadata:2:2
  |
2 |     major = 1;
  |     ----- first given here
  |
  = help: remove one of them"
        );
    }

    #[test]
    fn colors_are_added_on_demand() {
        let error = Diagnostic::warning("odd").at(0..5, "here");
        assert!(error.render("m", TEXT, true).contains("\u{1b}["));
        assert!(!error.render("m", TEXT, false).contains('\u{1b}'));
    }

    #[test]
    fn a_diagnostic_may_have_no_place() {
        let error = Diagnostic::error("no `trace` block").with_help("add one");
        assert_eq!(
            error.render("metadata", "", false),
            "error: no `trace` block\n--> metadata\n = help: add one"
        );
    }

    #[test]
    fn the_end_of_the_text_is_a_place() {
        for text in ["", "a", "a\n", "a\r\n", "\n\n"] {
            let error = Diagnostic::error("unexpected end").at(text.len()..text.len(), "here");
            assert!(
                error.render("m", text, false).contains("^ here"),
                "{text:?}"
            );
        }
    }

    #[test]
    fn a_long_line_is_shown_in_part_with_its_true_column() {
        let text = format!("{}@{}", "é".repeat(500_000), "x".repeat(500_000));
        let at = place(&text, "@", 0);
        let shown = Diagnostic::error("odd")
            .at(at, "here")
            .render("m", &text, false);
        assert!(shown.len() < 5000, "{}", shown.len());
        assert!(shown.contains("m:1:500001"), "{shown}");
        assert!(shown.contains('@') && shown.contains("^ here"), "{shown}");
    }

    #[test]
    fn odd_characters_and_places_are_harmless() {
        let text = "a\0b\u{1b}[31m\tc\u{202e}é\u{fffd}\r\n\u{7f}";
        for start in 0..text.len() + 3 {
            for end in start..text.len() + 3 {
                let shown = Diagnostic::error("\u{1b}odd\n")
                    .at(start..end, "\u{1b}here")
                    .because(end..start, "")
                    .render("m\u{1b}", text, false);
                assert!(!shown.contains(['\u{1b}', '\u{202e}', '\0']), "{shown:?}");
            }
        }
    }
}
