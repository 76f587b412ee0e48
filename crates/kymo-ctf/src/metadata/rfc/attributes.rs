//! The attributes of blocks and types, and what their values may be.

use std::collections::HashMap;

use kymo_machine::ByteOrder;
use kymo_text::diagnostic::Diagnostic;

use super::ast::{Block, Value};
use crate::metadata::lexer::Span;
use crate::metadata::limits::{MAX_INTEGER_BITS, Warnings};
use crate::metadata::tokens::Spanned;

/// The largest alignment or unit, in bits: more than any packet needs.
const MAX_ALIGN: i128 = 1 << 31;

/// Checks that each attribute of a block is there once; warns of those that are not `known`.
pub(super) fn check(
    block: &Block,
    owner: &str,
    known: &[&str],
    warnings: &mut Warnings,
) -> Result<(), Diagnostic> {
    let mut found: HashMap<&str, Span> = HashMap::new();
    for attribute in &block.attributes {
        let (key, span) = (attribute.key.value.as_str(), attribute.key.span);
        if !known.contains(&key) {
            let known: Vec<_> = known.iter().map(|key| format!("`{key}`")).collect();
            warnings.push(
                Diagnostic::warning(format!("unknown attribute `{key}` of {owner}"))
                    .at(span, "not used")
                    .with_help(format!("known are {}", known.join(", "))),
            );
        } else if let Some(first) = found.insert(key, span) {
            return Err(
                Diagnostic::error(format!("`{key}` of {owner} is given twice"))
                    .at(span, "given again")
                    .because(first, "first given here"),
            );
        }
    }
    Ok(())
}

/// The value of an attribute of a block, where given.
pub(super) fn get<'a>(block: &'a Block, key: &str) -> Option<&'a Spanned<Value>> {
    let mut attributes = block.attributes.iter();
    attributes
        .find(|attribute| attribute.key.value == key)
        .map(|attribute| &attribute.value)
}

/// Like [`get`] where the attribute must be there.
pub(super) fn require<'a>(
    block: &'a Block,
    owner: &str,
    key: &str,
) -> Result<&'a Spanned<Value>, Diagnostic> {
    get(block, key).ok_or_else(|| missing(owner, key, block.span))
}

/// That `owner`, which is at `span`, has no attribute `key`.
pub(super) fn missing(owner: &str, key: &str, span: Span) -> Diagnostic {
    Diagnostic::error(format!("{owner} has no `{key}`"))
        .at(span, format!("expected `{key} = ...;` in this"))
}

fn expected<T>(value: &Spanned<Value>, what: &str) -> Result<T, Diagnostic> {
    let found = match &value.value {
        Value::Integer(number) => format!("`{number}`"),
        Value::Text(_) => "quoted text".to_owned(),
        Value::Word(word) => format!("`{word}`"),
        Value::Type(_) => "a type".to_owned(),
        Value::List(_) => "a list".to_owned(),
    };
    Err(Diagnostic::error(format!("expected {what}, found {found}"))
        .at(value.span, format!("expected {what}")))
}

/// A number with or without sign.
pub(super) fn integer(value: &Spanned<Value>) -> Result<i128, Diagnostic> {
    match value.value {
        Value::Integer(number) => Ok(number),
        _ => expected(value, "an integer"),
    }
}

/// A number without sign.
pub(super) fn unsigned(value: &Spanned<Value>) -> Result<u64, Diagnostic> {
    match value.value {
        Value::Integer(number) if number >= 0 => Ok(number as u64),
        _ => expected(value, "an unsigned integer"),
    }
}

/// A name, which may be quoted.
pub(super) fn name(value: &Spanned<Value>) -> Result<&str, Diagnostic> {
    match &value.value {
        Value::Word(name) | Value::Text(name) => Ok(name),
        _ => expected(value, "a name"),
    }
}

/// The type of event header that a section has: 1 or 2.
pub(super) fn header_type(value: &Spanned<Value>) -> Result<u8, Diagnostic> {
    match word(value) {
        Some("type1") => Ok(1),
        Some("type2") => Ok(2),
        _ => expected(value, "`type1` or `type2`"),
    }
}

/// A truth value.
pub(super) fn boolean(value: &Spanned<Value>) -> Result<bool, Diagnostic> {
    match word(value) {
        Some("true") => Ok(true),
        Some("false") => Ok(false),
        _ => expected(value, "`true` or `false`"),
    }
}

/// A byte order; `None` is the native one.
pub(super) fn byte_order(value: &Spanned<Value>) -> Result<Option<ByteOrder>, Diagnostic> {
    match word(value) {
        Some("le") => Ok(Some(ByteOrder::Little)),
        Some("be" | "network") => Ok(Some(ByteOrder::Big)),
        Some("native") => Ok(None),
        _ => expected(value, "`native`, `network`, `be` or `le`"),
    }
}

/// The size of an integer in bits.
pub(super) fn size(value: &Spanned<Value>) -> Result<u32, Diagnostic> {
    match unsigned(value)? {
        bits @ 1..=MAX_INTEGER_BITS => Ok(bits as u32),
        bits => Err(Diagnostic::error(format!("integer of {bits} bits"))
            .at(value.span, format!("expected 1 to {MAX_INTEGER_BITS} bits"))),
    }
}

/// A power of two in bits: an alignment or a unit.
pub(super) fn power(value: &Spanned<Value>, what: &str) -> Result<u32, Diagnostic> {
    match value.value {
        Value::Integer(number) if number.count_ones() == 1 && (1..=MAX_ALIGN).contains(&number) => {
            Ok(number as u32)
        }
        _ => expected(
            value,
            &format!("{what}: 1, 2, 4, 8, 16... bits, up to {MAX_ALIGN}"),
        ),
    }
}

/// An encoding of text: both are read as UTF-8.
pub(super) fn encoding(value: &Spanned<Value>) -> Result<(), Diagnostic> {
    match word(value) {
        Some("UTF8" | "ASCII") => Ok(()),
        _ => expected(value, "`UTF8` or `ASCII`"),
    }
}

/// A word, which must not be quoted.
pub(super) fn word(value: &Spanned<Value>) -> Option<&str> {
    match &value.value {
        Value::Word(word) => Some(word),
        _ => None,
    }
}
