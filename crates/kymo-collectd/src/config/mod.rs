//! The grammar of `collectd.conf`.
//!
//! A file is a sequence of [`Item`]s: a key with its arguments, or a block, which has items of its
//! own. [`parse`] knows the grammar only; what keys mean, is for who asks. Where collectd goes on
//! without a word ([`Item::interval`], [`interval`], [`refuse_unknown`]), this has errors with their
//! places.

mod lexer;
mod parser;
mod read;

pub use parser::parse;
pub use read::{interval, refuse_unknown};

use std::ops::Range;

/// An argument.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// A text, with or without quotation marks.
    Text(String),
    /// A number.
    Number(f64),
    /// `true`, `yes`, `on`, `false`, `no` or `off`.
    Boolean(bool),
}

/// An argument and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    /// The argument.
    pub argument: Argument,
    /// Where it is, in bytes.
    pub range: Range<usize>,
}

/// A key with its arguments, or a block.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// Its key. Letters of either case are the same: ask with [`is`](Self::is).
    pub key: String,
    /// Where the key is, in bytes.
    pub range: Range<usize>,
    /// What follows the key.
    pub arguments: Vec<Placed>,
    /// The items of a block; `None` where it is none.
    pub items: Option<Vec<Item>>,
}
