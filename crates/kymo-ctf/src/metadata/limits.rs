//! What bounds metadata: little text must not make much of anything.

use kymo_text::diagnostic::Diagnostic;

use super::lexer::Span;
use crate::deep::MAX_LEVELS;

/// How many attributes, labels and names of fields or types there may be: the tree takes far more
/// memory than the text. That of a whole kernel has some 100,000.
pub(super) const MAX_ITEMS: usize = 1 << 21;

/// How many bits an integer may have.
pub(super) const MAX_INTEGER_BITS: u64 = kymo_model::Wide::MAX_BITS as u64;

/// Maximum number of field classes of a trace beyond the number of bytes of its metadata. Written out,
/// a field takes several bytes; only a type with a name can be used more often.
pub(super) const SPARE_CLASSES: usize = 100_000;

/// How much of that a field class takes that lies within others: what each of them costs grows with those around it.
pub(super) fn weight(around: usize) -> usize {
    1 + around / 64
}

/// What is odd: no more of it than anybody would read.
#[derive(Default)]
pub(super) struct Warnings(pub(super) Vec<Diagnostic>);

impl Warnings {
    const MOST: usize = 100;

    pub(super) fn push(&mut self, warning: Diagnostic) {
        if self.0.len() < Self::MOST {
            self.0.push(warning);
        }
    }
}

pub(super) fn too_deep(span: Span) -> Diagnostic {
    Diagnostic::error("types lie too deep within each other")
        .at(span, format!("expected at most {MAX_LEVELS} levels"))
}

pub(super) fn too_many_fields(span: Span) -> Diagnostic {
    Diagnostic::error("more fields than a trace may have")
        .at(span, "this one is too much")
        .with_help("types with a name are used too often within each other")
}
