//! What is wrong or odd in a condition, shown under its text.

use std::fmt;
use std::ops::Range;

use kymo_text::diagnostic::Diagnostic;
use kymo_text::nearest;

/// An error in a condition, or a warning of what is odd in it: what, where, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterError {
    source: Box<str>,
    range: Range<usize>,
    message: String,
    label: String,
    help: Option<String>,
    is_warning: bool,
}

impl FilterError {
    /// An error at a range of bytes of an expression.
    pub(super) fn new(source: &str, range: Range<usize>, message: impl Into<String>) -> Self {
        Self {
            source: source.into(),
            range,
            message: message.into(),
            label: String::new(),
            help: None,
            is_warning: false,
        }
    }

    /// The same as a warning: the condition can be used.
    #[must_use]
    pub(super) fn into_warning(mut self) -> Self {
        self.is_warning = true;
        self
    }

    /// Adds what stands under the range.
    #[must_use]
    pub(super) fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// Adds what would be right.
    #[must_use]
    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The same, if one of these names may be meant: they can be written here, and are not fields.
    pub(crate) fn meant<const N: usize>(self, names: [&'static str; N]) -> Self {
        let written = self.source.get(self.range.clone()).unwrap_or_default();
        match nearest(written, names) {
            Some(name) => self.help(format!("did you mean `{name}`?")),
            None => self,
        }
    }

    /// Which bytes of the condition are wrong.
    pub fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// What is wrong, in one line.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The error under the text of the condition, as a compiler shows it; `name` says
    /// where the condition came from.
    pub fn render(&self, name: &str, color: bool) -> String {
        let diagnostic = match self.is_warning {
            true => Diagnostic::warning(self.message.as_str()),
            false => Diagnostic::error(self.message.as_str()),
        };
        let mut diagnostic = diagnostic.at(self.range.clone(), self.label.as_str());
        if let Some(help) = &self.help {
            diagnostic = diagnostic.with_help(help.as_str());
        }
        diagnostic.render(name, &self.source, color)
    }
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for FilterError {}
