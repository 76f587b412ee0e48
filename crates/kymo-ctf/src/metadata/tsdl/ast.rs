//! What the parser makes of TSDL: the text as a tree, nothing looked up yet.

use crate::metadata::lexer::Span;
use crate::metadata::tokens::{Name, Spanned};

/// All that stands at the root.
#[derive(Debug, Default)]
pub(super) struct Root {
    pub(super) blocks: Vec<Block>,
    pub(super) declarations: Vec<Declaration>,
}

/// The kinds of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockKind {
    Trace,
    Env,
    Clock,
    Stream,
    Event,
    Callsite,
}

/// `trace { ... };` and its like.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) kind: BlockKind,
    /// Place of the keyword.
    pub(super) span: Span,
    pub(super) entries: Vec<Entry>,
}

/// What stands in a block.
#[derive(Debug)]
pub(super) enum Entry {
    Attribute(Attribute),
    Declaration(Box<Declaration>),
}

/// `key = value;` or `key := type;`
#[derive(Debug)]
pub(super) struct Attribute {
    /// The key, its parts joined by dots.
    pub(super) key: Name,
    pub(super) value: Spanned<Value>,
}

/// The right side of an attribute.
#[derive(Debug)]
pub(super) enum Value {
    /// A number, from the least signed to the greatest unsigned one of 64 bits.
    Integer(i128),
    /// Quoted text.
    Text(String),
    /// Words joined by dots.
    Path(String),
    /// A type.
    Type(Box<TypeSpec>),
}

/// What declares types.
#[derive(Debug)]
pub(super) enum Declaration {
    /// `typealias TARGET := NAME[LENGTH];`
    Alias {
        target: TypeSpec,
        declarator: Declarator,
        name: Name,
        lengths: Vec<Spanned<Value>>,
    },
    /// `typedef TARGET NAME, NAME[LENGTH];`
    Typedef {
        target: TypeSpec,
        declarators: Vec<Declarator>,
    },
    /// `struct NAME { ... };` and its like.
    Named(TypeSpec),
}

/// A type as it is written.
#[derive(Debug)]
pub(super) struct TypeSpec {
    pub(super) span: Span,
    pub(super) kind: TypeKind,
}

/// The kinds of types.
#[derive(Debug)]
pub(super) enum TypeKind {
    /// The name of an alias, its words joined by blanks.
    Alias {
        name: String,
        /// Where its words are, where there are several, and that of the field behind them.
        words: Vec<Span>,
    },
    Integer(Vec<Attribute>),
    Float(Vec<Attribute>),
    Text(Vec<Attribute>),
    Struct {
        name: Option<Name>,
        body: Option<Vec<Member>>,
        align: Option<Spanned<Value>>,
    },
    Variant {
        name: Option<Name>,
        tag: Option<Name>,
        body: Option<Vec<Member>>,
    },
    Enum {
        name: Option<Name>,
        container: Option<Box<TypeSpec>>,
        body: Option<Vec<Enumerator>>,
    },
}

impl TypeSpec {
    /// Whether this declares a type under a name.
    pub(super) fn is_named_body(&self) -> bool {
        match &self.kind {
            TypeKind::Struct { name, body, .. } | TypeKind::Variant { name, body, .. } => {
                name.is_some() && body.is_some()
            }
            TypeKind::Enum { name, body, .. } => name.is_some() && body.is_some(),
            _ => false,
        }
    }
}

/// What stands between the braces of a structure or variant.
#[derive(Debug)]
pub(super) enum Member {
    Declaration(Declaration),
    Fields {
        class: TypeSpec,
        declarators: Vec<Declarator>,
    },
}

/// What stands beside the type: `**name[3][length]`, `name : 3`.
#[derive(Debug)]
pub(super) struct Declarator {
    /// ` *` or ` * const` for every pointer.
    pub(super) pointers: String,
    /// Absent of the target of an alias.
    pub(super) name: Option<Name>,
    /// The lengths, from the outermost array to the innermost one.
    pub(super) lengths: Vec<Spanned<Value>>,
    /// The size of a bit field.
    pub(super) bits: Option<Spanned<Value>>,
    pub(super) span: Span,
}

/// `LABEL`, `LABEL = 3` or `LABEL = 3 ... 9`
#[derive(Debug)]
pub(super) struct Enumerator {
    pub(super) label: Name,
    pub(super) first: Option<Spanned<i128>>,
    pub(super) last: Option<Spanned<i128>>,
}
