//! The attributes of blocks and types, and what their values may be.

use std::collections::HashMap;

use kymo_machine::ByteOrder;
use kymo_model::Base;
use kymo_text::diagnostic::Diagnostic;

use super::ast::{Attribute, Value};
use crate::metadata::lexer::Span;
use crate::metadata::limits::Warnings;
use crate::metadata::tokens::Spanned;
use crate::metadata::uuid_of;

/// The largest alignment, in bits: more than any packet needs.
const MAX_ALIGN: u64 = 1 << 31;

/// The attributes of one block or type, each at most once.
pub(super) struct Attributes<'a> {
    found: HashMap<&'a str, &'a Attribute>,
}

impl<'a> Attributes<'a> {
    /// Sorts attributes by their keys; warns of those that are not `known`.
    pub(super) fn new(
        attributes: impl IntoIterator<Item = &'a Attribute>,
        owner: &str,
        known: &[&str],
        warnings: &mut Warnings,
    ) -> Result<Self, Diagnostic> {
        let mut found = HashMap::new();
        for attribute in attributes {
            let key = &*attribute.key.value;
            if !known.contains(&key) {
                warnings.push(
                    Diagnostic::warning(format!("unknown attribute `{key}` of {owner}"))
                        .at(attribute.key.span, "not used")
                        .with_help(format!("known are {}", list(known))),
                );
                continue;
            }
            if let Some(first) = found.insert(key, attribute) {
                return Err(
                    Diagnostic::error(format!("`{key}` of {owner} is given twice"))
                        .at(attribute.key.span, "given again")
                        .because(first.key.span, "first given here"),
                );
            }
        }
        Ok(Self { found })
    }

    /// The value of an attribute, where given.
    pub(super) fn get(&self, key: &str) -> Option<&'a Spanned<Value>> {
        self.found.get(key).map(|attribute| &attribute.value)
    }

    /// The value of an attribute, read by one of the functions below.
    pub(super) fn read<T>(
        &self,
        key: &str,
        reader: impl FnOnce(&'a Spanned<Value>) -> Result<T, Diagnostic>,
    ) -> Result<Option<T>, Diagnostic> {
        self.get(key).map(reader).transpose()
    }

    /// Like [`Attributes::read`] where the attribute must be there; `owner` is the place
    /// to blame if it is not.
    pub(super) fn require<T>(
        &self,
        key: &str,
        owner: (&str, Span),
        reader: impl FnOnce(&'a Spanned<Value>) -> Result<T, Diagnostic>,
    ) -> Result<T, Diagnostic> {
        self.read(key, reader)?.ok_or_else(|| {
            Diagnostic::error(format!("{} has no `{key}`", owner.0))
                .at(owner.1, format!("expected `{key} = ...;` in this"))
        })
    }
}

/// `a`, `b` and `c`
fn list(names: &[&str]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    match &*quoted {
        [] => "none".to_owned(),
        [name] => name.clone(),
        [names @ .., last] => format!("{} and {last}", names.join(", ")),
    }
}

fn expected<T>(value: &Spanned<Value>, what: &str) -> Result<T, Diagnostic> {
    let found = match &value.value {
        Value::Integer(number) => format!("`{number}`"),
        Value::Text(_) => "quoted text".to_owned(),
        Value::Path(path) => format!("`{path}`"),
        Value::Type(_) => "a type".to_owned(),
    };
    Err(Diagnostic::error(format!("expected {what}, found {found}"))
        .at(value.span, format!("expected {what}")))
}

/// A number without sign.
pub(super) fn unsigned(value: &Spanned<Value>) -> Result<u64, Diagnostic> {
    match value.value {
        Value::Integer(number) if number >= 0 => Ok(number as u64),
        _ => expected(value, "an unsigned integer"),
    }
}

/// A number with or without sign.
pub(super) fn integer(value: &Spanned<Value>) -> Result<i128, Diagnostic> {
    match value.value {
        Value::Integer(number) => Ok(number),
        _ => expected(value, "an integer"),
    }
}

/// A number of 64 bits with sign.
pub(super) fn signed(value: &Spanned<Value>) -> Result<i64, Diagnostic> {
    match i64::try_from(integer(value)?) {
        Ok(number) => Ok(number),
        Err(_) => expected(value, "a signed integer of 64 bits"),
    }
}

/// Text, quoted or not.
pub(super) fn text(value: &Spanned<Value>) -> Result<&str, Diagnostic> {
    match &value.value {
        Value::Text(text) | Value::Path(text) => Ok(text),
        _ => expected(value, "a name or quoted text"),
    }
}

/// A word, which must not be quoted.
pub(super) fn word(value: &Spanned<Value>) -> Option<&str> {
    match &value.value {
        Value::Path(word) => Some(word),
        _ => None,
    }
}

/// A truth value.
pub(super) fn boolean(value: &Spanned<Value>) -> Result<bool, Diagnostic> {
    match (&value.value, word(value)) {
        (Value::Integer(1), _) | (_, Some("true" | "TRUE")) => Ok(true),
        (Value::Integer(0), _) | (_, Some("false" | "FALSE")) => Ok(false),
        _ => expected(value, "`true`, `false`, 1 or 0"),
    }
}

/// A byte order; `None` is the native one.
pub(super) fn byte_order(value: &Spanned<Value>) -> Result<Option<ByteOrder>, Diagnostic> {
    match word(value) {
        Some("le") => Ok(Some(ByteOrder::Little)),
        Some("be" | "network") => Ok(Some(ByteOrder::Big)),
        Some("native") => Ok(None),
        _ => expected(value, "`le`, `be`, `network` or `native`"),
    }
}

/// An alignment in bits.
pub(super) fn alignment(value: &Spanned<Value>) -> Result<u32, Diagnostic> {
    match value.value {
        Value::Integer(number)
            if number.count_ones() == 1 && (1..=i128::from(MAX_ALIGN)).contains(&number) =>
        {
            Ok(number as u32)
        }
        _ => expected(
            value,
            "an alignment: 1, 2, 4, 8, 16... bits, up to 2147483648",
        ),
    }
}

/// Whether an encoding makes bytes into text.
pub(super) fn encoding(value: &Spanned<Value>) -> Result<bool, Diagnostic> {
    match word(value) {
        Some("UTF8" | "utf8" | "ASCII" | "ascii") => Ok(true),
        Some("none" | "NONE") => Ok(false),
        _ => expected(value, "`UTF8`, `ASCII` or `none`"),
    }
}

/// The base in which an integer is shown.
pub(super) fn base(value: &Spanned<Value>) -> Result<Base, Diagnostic> {
    match (&value.value, word(value)) {
        (Value::Integer(2), _) | (_, Some("binary" | "bin" | "b")) => Ok(Base::Binary),
        (Value::Integer(8), _) | (_, Some("octal" | "oct" | "o")) => Ok(Base::Octal),
        (Value::Integer(10), _) | (_, Some("decimal" | "dec" | "d" | "i" | "u")) => {
            Ok(Base::Decimal)
        }
        (Value::Integer(16), _) | (_, Some("hexadecimal" | "hex" | "x" | "X" | "p")) => {
            Ok(Base::Hexadecimal)
        }
        _ => expected(
            value,
            "`decimal`, `hexadecimal`, `octal`, `binary`, 10, 16, 8 or 2",
        ),
    }
}

/// A UUID in its usual form.
pub(super) fn uuid(value: &Spanned<Value>) -> Result<[u8; 16], Diagnostic> {
    const WHAT: &str = "a UUID such as \"2a6422d0-6cee-11e0-8c08-cb07d7b3a564\"";
    let Value::Text(text) = &value.value else {
        return expected(value, WHAT);
    };
    match uuid_of(text) {
        Some(uuid) => Ok(uuid),
        None => expected(value, WHAT),
    }
}
