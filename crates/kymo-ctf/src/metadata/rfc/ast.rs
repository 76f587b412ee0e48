//! What the parser makes of the text: a tree, nothing looked up yet.

use crate::metadata::lexer::Span;
use crate::metadata::tokens::{Name, Spanned};

/// The blocks that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockKind {
    Trace,
    Section,
    /// `event`, at the root or in a section.
    Event,
    Context,
    Type,
    AbstractType,
}

/// `section { ... }` and its like.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) kind: BlockKind,
    /// Place of the keyword.
    pub(super) span: Span,
    /// The name of a type that has one.
    pub(super) name: Option<Name>,
    pub(super) attributes: Vec<Attribute>,
    pub(super) blocks: Vec<Block>,
}

/// `key = value;`
#[derive(Debug)]
pub(super) struct Attribute {
    pub(super) key: Name,
    pub(super) value: Spanned<Value>,
}

/// The right side of an attribute, or a part of it.
#[derive(Debug)]
pub(super) enum Value {
    /// A number, from the least signed to the greatest unsigned one of 64 bits.
    Integer(i128),
    /// Quoted text.
    Text(String),
    /// A word: a name, or one that the attribute knows.
    Word(String),
    /// `type { ... }`
    Type(Box<Block>),
    /// `{ { first, second }, ... }`: the fields of a structure, the map of an enumeration.
    List(Vec<Pair>),
}

/// `{ first, second }`
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) first: Spanned<Value>,
    pub(super) second: Spanned<Value>,
}
