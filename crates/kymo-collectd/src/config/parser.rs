//! Tokens to items.

use std::ops::Range;

use kymo_text::diagnostic::Diagnostic;

use super::lexer::{Lexer, Token};
use super::{Argument, Item, Placed};

/// Blocks in each other: collectd's plugins have four at most.
const DEEPEST: usize = 64;

/// Reads a file.
///
/// # Errors
///
/// The first place at which it is no `collectd.conf`.
pub fn parse(text: &str) -> Result<Vec<Item>, Box<Diagnostic>> {
    let mut lexer = Lexer::new(text);
    let mut items = Vec::new();
    // The blocks that are open, each with the items before it.
    let mut open: Vec<(Item, Vec<Item>)> = Vec::new();
    while let Some((token, range)) = lexer.next()? {
        match token {
            Token::Line => {}
            Token::Open => {
                let (key, key_range) = key(&mut lexer, range.end)?;
                let arguments = arguments(&mut lexer, &Token::Close)?;
                end_of_line(&mut lexer, text.len())?;
                if open.len() == DEEPEST {
                    let error = Diagnostic::error("blocks in each other, too deep");
                    return Err(Box::new(error.at(key_range, "one more than can be")));
                }
                let block = Item {
                    key,
                    range: key_range,
                    arguments,
                    items: Some(Vec::new()),
                };
                open.push((block, std::mem::take(&mut items)));
            }
            Token::OpenEnd => {
                let (key, key_range) = key(&mut lexer, range.end)?;
                match lexer.next()? {
                    Some((Token::Close, _)) => {}
                    found => return Err(unexpected(found, text.len(), "`>`")),
                }
                end_of_line(&mut lexer, text.len())?;
                let Some((mut block, before)) = open.pop() else {
                    let error = Diagnostic::error(format!("no block `{key}` is open"));
                    return Err(Box::new(error.at(key_range, "it would end here")));
                };
                if block.key != key {
                    let message = format!("expected `</{}>`, found `</{key}>`", block.key);
                    let error = Diagnostic::error(message).at(key_range, "another block ends");
                    return Err(Box::new(error.because(block.range, "this one is open")));
                }
                block.items = Some(std::mem::replace(&mut items, before));
                items.push(block);
            }
            Token::Word(argument) => {
                let key = key_of(argument, &range)?;
                let arguments = arguments(&mut lexer, &Token::Line)?;
                if arguments.is_empty() {
                    let error = Diagnostic::error(format!("`{key}` has no argument"));
                    return Err(Box::new(error.at(range, "expected one behind it")));
                }
                items.push(Item {
                    key,
                    range,
                    arguments,
                    items: None,
                });
            }
            Token::Close => return Err(unexpected(Some((token, range)), text.len(), "a key")),
        }
    }
    match open.pop() {
        None => Ok(items),
        Some((block, _)) => {
            let error = Diagnostic::error(format!("the block `{}` is not closed", block.key));
            let help = format!("write `</{}>` in a line of its own", block.key);
            Err(Box::new(
                error.at(block.range, "it begins here").with_help(help),
            ))
        }
    }
}

type Found = Option<(Token, Range<usize>)>;

fn unexpected(found: Found, end: usize, expected: &str) -> Box<Diagnostic> {
    let (what, range) = match found {
        None => ("the end of the file", end..end),
        Some((Token::Line, range)) => ("the end of the line", range.start..range.start),
        Some((Token::Open, range)) => ("`<`", range),
        Some((Token::OpenEnd, range)) => ("`</`", range),
        Some((Token::Close, range)) => ("`>`", range),
        Some((Token::Word(_), range)) => ("a word", range),
    };
    let message = format!("expected {expected}, found {what}");
    Box::new(Diagnostic::error(message).at(range, format!("expected {expected}")))
}

fn key(lexer: &mut Lexer<'_>, end: usize) -> Result<(String, Range<usize>), Box<Diagnostic>> {
    match lexer.next()? {
        Some((Token::Word(argument), range)) => Ok((key_of(argument, &range)?, range)),
        found => Err(unexpected(found, end, "the name of a block")),
    }
}

fn key_of(argument: Argument, range: &Range<usize>) -> Result<String, Box<Diagnostic>> {
    match argument {
        Argument::Text(key) => Ok(key),
        _ => {
            let error = Diagnostic::error("a number or a truth value is not a key");
            Err(Box::new(error.at(range.clone(), "expected a key")))
        }
    }
}

/// Arguments up to the token that ends them, which is taken. The end of the file ends a line:
/// collectd refuses a file whose last line has no end, which helps nobody.
fn arguments(lexer: &mut Lexer<'_>, last: &Token) -> Result<Vec<Placed>, Box<Diagnostic>> {
    let mut arguments = Vec::new();
    loop {
        match lexer.next()? {
            Some((Token::Word(argument), range)) => arguments.push(Placed { argument, range }),
            Some((token, _)) if token == *last => return Ok(arguments),
            None if *last == Token::Line => return Ok(arguments),
            found => {
                let expected = match last {
                    Token::Line => "an argument or the end of the line",
                    _ => "an argument or `>`",
                };
                let end = arguments.last().map_or(0, |last| last.range.end);
                return Err(unexpected(found, end, expected));
            }
        }
    }
}

fn end_of_line(lexer: &mut Lexer<'_>, end: usize) -> Result<(), Box<Diagnostic>> {
    match lexer.next()? {
        Some((Token::Line, _)) | None => Ok(()),
        found => Err(unexpected(found, end, "the end of the line")),
    }
}
