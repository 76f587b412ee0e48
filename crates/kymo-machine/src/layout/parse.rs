//! Declarations of structs as C has them.
//!
//! Read are `struct`, `union`, `enum` and `typedef`, members of all scalar types, arrays,
//! pointers, constants in `#define` and in enumerations, and comments. `#include` is skipped:
//! the types of `stdint.h` and `time.h` are known.

mod expression;
mod types;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::ops::Range;
use std::rc::Rc;

use super::lexer::{Kind, Lexer, Token};
use super::{CType, Member, Struct};

/// How deep structs and arrays are nested at most.
const DEEPEST: usize = 64;
/// How many members, elements of enumerations and arrays there may be in all, those of a named
/// type counted wherever it is used: a short text could otherwise make very many.
const MOST_PARTS: usize = 1 << 16;

/// What is wrong with declarations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The place, in bytes from the beginning of the text.
    pub range: Range<usize>,
    /// What is wrong, or what was found.
    pub message: String,
    /// What was expected there.
    pub label: String,
}

impl ParseError {
    pub(super) fn new(
        range: Range<usize>,
        message: impl Into<String>,
        label: impl Into<String>,
    ) -> Self {
        Self {
            range,
            message: message.into(),
            label: label.into(),
        }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            range,
            message,
            label,
        } = self;
        write!(f, "at byte {}: {message}: {label}", range.start)
    }
}

impl std::error::Error for ParseError {}

/// The structs and unions that a text declares outside of others, in that order. Of one that
/// has a tag and a typedef name, the name counts.
///
/// ```
/// use kymo_machine::Machine;
/// use kymo_machine::layout::{Layout, parse};
///
/// let structs = parse("typedef struct { char c[5]; time_t t; } entry;").unwrap();
/// let layout = Layout::of(&structs[0], Machine::find("x86_64").unwrap()).unwrap();
/// assert_eq!((structs[0].name.as_ref(), layout.size), ("entry", 16));
/// ```
///
/// # Errors
///
/// If the text is not C, declares no struct, or contains what is not supported: bit-fields, functions,
/// packed structs, `long double`.
pub fn parse(text: &str) -> Result<Vec<Struct>, ParseError> {
    let mut lexer = Lexer::new(text);
    let token = lexer.next()?;
    let mut parser = Parser {
        text,
        lexer,
        token,
        types: HashMap::new(),
        tags: HashMap::new(),
        constants: HashMap::new(),
        parts: 0,
        depth: 0,
    };
    let mut structs = Vec::new();
    while parser.token.kind != Kind::End {
        parser.declaration(&mut structs)?;
    }
    if structs.is_empty() {
        let end = text.len()..text.len();
        return Err(ParseError::new(
            end,
            "no struct is declared",
            "expected `struct NAME { ... };` before the end",
        ));
    }
    Ok(structs)
}

/// What has been read, and what comes next.
struct Parser<'a> {
    text: &'a str,
    lexer: Lexer<'a>,
    token: Token,
    /// By the names that `typedef` gives.
    types: HashMap<&'a str, Rc<CType>>,
    /// By tags, with the keyword before them.
    tags: HashMap<(Tagged, &'a str), Rc<CType>>,
    constants: HashMap<&'a str, i64>,
    /// See [`MOST_PARTS`].
    parts: usize,
    /// How many structs, arrays and parentheses are open.
    depth: usize,
}

/// What a tag can be of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Tagged {
    Struct,
    Union,
    Enum,
}

/// A type as it stands before the names that are declared to have it.
struct Specified<'a> {
    range: Range<usize>,
    /// Nothing for `void`, and for structs that are not declared: only pointers to these can be.
    ctype: Option<Rc<CType>>,
    tag: Option<&'a str>,
    /// Whether the members stand here.
    is_defined: bool,
}

impl<'a> Parser<'a> {
    /// One declaration outside of structs, or a directive.
    fn declaration(&mut self, structs: &mut Vec<Struct>) -> Result<(), ParseError> {
        if self.eats('#')? {
            return self.directive();
        }
        if self.eats(';')? {
            return Ok(());
        }
        let is_typedef = self.eats_word("typedef")?;
        let specified = self.specifier()?;
        let mut name = None;
        if is_typedef {
            loop {
                let (declared, range, ctype) = self.declarator(&specified)?;
                if matches!(ctype, CType::Struct(_)) {
                    name = name.or(Some(declared));
                }
                if self.types.insert(declared, ctype.into()).is_some() {
                    return Err(twice(range, declared));
                }
                if !self.eats(',')? {
                    break;
                }
            }
        }
        if specified.is_defined
            && let Some(CType::Struct(description)) = specified.ctype.as_deref()
        {
            structs.push(Struct {
                name: name
                    .or(specified.tag)
                    .unwrap_or_default()
                    .to_string()
                    .into(),
                ..description.clone()
            });
        }
        self.expect(';')
    }

    /// What comes after a `#`.
    fn directive(&mut self) -> Result<(), ParseError> {
        let range = self.token.range.clone();
        match self.word().unwrap_or_default() {
            "include" => {
                while self.token.kind != Kind::EndOfLine {
                    self.advance()?;
                }
            }
            "define" => {
                self.advance()?;
                let (name, range) = self.name()?;
                let value = self.expression()?;
                if self.constants.insert(name, value).is_some() {
                    return Err(twice(range, name));
                }
                if self.token.kind != Kind::EndOfLine {
                    return Err(self.unexpected("the end of the line"));
                }
            }
            _ => {
                return Err(ParseError::new(
                    range,
                    "this directive is not carried out",
                    "expected `include`, or `define` with a name and an integer",
                ));
            }
        }
        self.advance()
    }

    /// The members of a struct, behind its opening brace.
    fn members(&mut self, is_union: bool, name: &str) -> Result<Struct, ParseError> {
        self.enter()?;
        let mut members = Vec::new();
        let mut names = HashSet::new();
        while !self.eats('}')? {
            let specified = self.specifier()?;
            loop {
                let (name, range, ctype) = self.declarator(&specified)?;
                if !names.insert(name) {
                    return Err(twice(range, name));
                }
                members.push(Member {
                    name: name.to_string().into(),
                    ctype,
                });
                if !self.eats(',')? {
                    break;
                }
            }
            if self.token.kind == Kind::Mark(':') {
                return Err(ParseError::new(
                    self.token.range.clone(),
                    "bit-fields are not laid out",
                    "each compiler has its own way with them",
                ));
            }
            self.expect(';')?;
        }
        if members.is_empty() {
            return Err(ParseError::new(
                self.token.range.clone(),
                "a struct without members",
                "expected members before this",
            ));
        }
        self.depth -= 1;
        Ok(Struct {
            name: name.to_string().into(),
            is_union,
            members,
        })
    }

    /// A name that is declared, with the stars before and the brackets behind it: its place and
    /// the type it gets.
    fn declarator(
        &mut self,
        specified: &Specified<'a>,
    ) -> Result<(&'a str, Range<usize>, CType), ParseError> {
        let mut is_pointer = false;
        while self.eats('*')? {
            is_pointer = true;
            while self.eats_word("const")? || self.eats_word("volatile")? {}
        }
        if self.token.kind == Kind::Mark('(') {
            return Err(ParseError::new(
                self.token.range.clone(),
                "pointers to functions and arrays are not read",
                "`void *NAME` takes as much place",
            ));
        }
        let (name, range) = self.name()?;
        let mut ctype = match (&specified.ctype, is_pointer) {
            (_, true) => CType::Pointer,
            (Some(ctype), false) => CType::clone(ctype),
            (None, false) => {
                let what = &self.text[specified.range.clone()];
                return Err(ParseError::new(
                    specified.range.clone(),
                    format!("the size of `{what}` is not known"),
                    "expected a type that is declared before this",
                ));
            }
        };
        let mut counts = Vec::new();
        while self.eats('[')? {
            let start = self.token.range.clone();
            let count = self.expression()?;
            let Ok(count) = u64::try_from(count) else {
                return Err(ParseError::new(
                    start,
                    format!("an array cannot have {count} elements"),
                    "expected 0 or more",
                ));
            };
            counts.push(count);
            if self.depth + counts.len() > DEEPEST {
                return Err(too_deep(start));
            }
            self.expect(']')?;
        }
        for count in counts.into_iter().rev() {
            ctype = CType::array(ctype, count);
        }
        self.count(&ctype, &range)?;
        Ok((name, range, ctype))
    }

    /// Counts the parts of a type that is used, and looks how deep it goes.
    fn count(&mut self, ctype: &CType, range: &Range<usize>) -> Result<(), ParseError> {
        let (depth, parts) = extent(ctype);
        self.parts = self.parts.saturating_add(parts);
        if self.depth + depth > DEEPEST {
            return Err(too_deep(range.clone()));
        }
        if self.parts > MOST_PARTS {
            return Err(ParseError::new(
                range.clone(),
                "too many members",
                format!("expected at most {MOST_PARTS}, those of nested structs included"),
            ));
        }
        Ok(())
    }

    /// Goes one level deeper.
    fn enter(&mut self) -> Result<(), ParseError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(too_deep(self.token.range.clone()));
        }
        Ok(())
    }

    fn advance(&mut self) -> Result<(), ParseError> {
        self.token = self.lexer.next()?;
        Ok(())
    }

    /// The word that comes next.
    fn word(&self) -> Option<&'a str> {
        (self.token.kind == Kind::Word).then(|| &self.text[self.token.range.clone()])
    }

    /// Takes the next token if it is that mark.
    fn eats(&mut self, mark: char) -> Result<bool, ParseError> {
        let is_next = self.token.kind == Kind::Mark(mark);
        if is_next {
            self.advance()?;
        }
        Ok(is_next)
    }

    /// Takes the next token if it is that word.
    fn eats_word(&mut self, word: &str) -> Result<bool, ParseError> {
        let is_next = self.word() == Some(word);
        if is_next {
            self.advance()?;
        }
        Ok(is_next)
    }

    fn expect(&mut self, mark: char) -> Result<(), ParseError> {
        match self.eats(mark)? {
            true => Ok(()),
            false => Err(self.unexpected(&format!("`{mark}`"))),
        }
    }

    /// A name that is declared, and its place.
    fn name(&mut self) -> Result<(&'a str, Range<usize>), ParseError> {
        let range = self.token.range.clone();
        match self.word() {
            Some(word) if !types::is_keyword(word) => {
                self.advance()?;
                Ok((word, range))
            }
            _ => Err(self.unexpected("a name")),
        }
    }

    /// The error that something else should come next.
    fn unexpected(&self, expected: &str) -> ParseError {
        let range = self.token.range.clone();
        let found = match self.token.kind {
            Kind::End => "the end of the text".to_string(),
            Kind::EndOfLine => "the end of the line".to_string(),
            _ => format!("`{}`", &self.text[range.clone()]),
        };
        ParseError::new(
            range,
            format!("unexpected {found}"),
            format!("expected {expected}"),
        )
    }
}

fn twice(range: Range<usize>, name: &str) -> ParseError {
    ParseError::new(
        range,
        format!("`{name}` is declared twice"),
        "expected another name",
    )
}

fn too_deep(range: Range<usize>) -> ParseError {
    ParseError::new(
        range,
        "nested too deeply",
        format!("expected at most {DEEPEST} levels"),
    )
}

/// How many structs and arrays are within each other, and how many parts a type has.
fn extent(ctype: &CType) -> (usize, usize) {
    match ctype {
        CType::Array { element, .. } => {
            let (depth, parts) = extent(element);
            (depth + 1, parts + 1)
        }
        CType::Struct(description) => {
            let members = description.members.iter();
            members
                .map(|member| extent(&member.ctype))
                .fold((1, 1), |(deepest, all), (depth, parts)| {
                    (deepest.max(depth + 1), all + parts)
                })
        }
        CType::Enum(constants) => (0, 1 + constants.len()),
        _ => (0, 1),
    }
}

#[cfg(test)]
mod tests;
