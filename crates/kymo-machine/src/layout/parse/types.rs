//! What stands before the names that are declared: types of all kinds.

use std::rc::Rc;

use super::{ParseError, Parser, Specified, Tagged, twice};
use crate::Width;
use crate::layout::CType;

/// The words of which the types of the language itself are made.
const BASIC: [&str; 10] = [
    "void", "char", "short", "int", "long", "signed", "unsigned", "float", "double", "_Bool",
];

/// Other words that cannot be names.
const KEYWORDS: [&str; 10] = [
    "struct",
    "union",
    "enum",
    "typedef",
    "const",
    "volatile",
    "static",
    "extern",
    "sizeof",
    "__attribute__",
];

pub(super) fn is_keyword(word: &str) -> bool {
    BASIC.contains(&word) || KEYWORDS.contains(&word)
}

/// The types that headers declare.
fn known(word: &str) -> Option<CType> {
    let int = |width, signed| CType::Int { width, signed };
    Some(match word {
        "int8_t" => int(Width::W8, true),
        "int16_t" => int(Width::W16, true),
        "int32_t" => int(Width::W32, true),
        "int64_t" => int(Width::W64, true),
        "uint8_t" | "u_int8_t" | "bool" => int(Width::W8, false),
        "uint16_t" | "u_int16_t" => int(Width::W16, false),
        "uint32_t" | "u_int32_t" => int(Width::W32, false),
        "uint64_t" | "u_int64_t" => int(Width::W64, false),
        "size_t" | "uintptr_t" => CType::Size { signed: false },
        "ssize_t" | "intptr_t" | "ptrdiff_t" => CType::Size { signed: true },
        "time_t" => CType::Time,
        _ => return None,
    })
}

impl<'a> Parser<'a> {
    /// A type, without the stars and brackets that belong to the names behind it.
    pub(super) fn specifier(&mut self) -> Result<Specified<'a>, ParseError> {
        while self.eats_word("const")? || self.eats_word("volatile")? {}
        let range = self.token.range.clone();
        let word = match self.word() {
            Some(word) => word,
            None => return Err(self.unexpected("a type")),
        };
        let tagged = match word {
            "struct" => Some(Tagged::Struct),
            "union" => Some(Tagged::Union),
            "enum" => Some(Tagged::Enum),
            _ => None,
        };
        let mut specified = Specified {
            range: range.clone(),
            ctype: None,
            tag: None,
            is_defined: false,
        };
        if let Some(tagged) = tagged {
            self.advance()?;
            self.tagged(tagged, &mut specified)?;
        } else if BASIC.contains(&word) {
            self.basic(&mut specified)?;
        } else {
            let declared = self.types.get(word).cloned();
            specified.ctype = declared.or_else(|| known(word).map(Rc::new));
            if specified.ctype.is_none() {
                return Err(ParseError::new(
                    range,
                    format!("unknown type `{word}`"),
                    "expected a type of C, or one that is declared before this",
                ));
            }
            self.advance()?;
        }
        while self.eats_word("const")? || self.eats_word("volatile")? {}
        if self.word() == Some("__attribute__") {
            return Err(ParseError::new(
                self.token.range.clone(),
                "attributes are not carried out",
                "the layout with them is the compiler's own",
            ));
        }
        Ok(specified)
    }

    /// A struct, union or enumeration, behind the keyword.
    fn tagged(&mut self, tagged: Tagged, specified: &mut Specified<'a>) -> Result<(), ParseError> {
        let mut place = specified.range.clone();
        if self.word().is_some() {
            let (tag, range) = self.name()?;
            specified.tag = Some(tag);
            specified.range.end = range.end;
            place = range;
        }
        specified.is_defined = self.eats('{')?;
        if !specified.is_defined {
            let Some(tag) = specified.tag else {
                return Err(self.unexpected("a name or `{`"));
            };
            specified.ctype = self.tags.get(&(tagged, tag)).cloned();
            return Ok(());
        }
        let name = specified.tag.unwrap_or_default();
        let ctype = match tagged {
            Tagged::Struct => CType::Struct(self.members(false, name)?),
            Tagged::Union => CType::Struct(self.members(true, name)?),
            Tagged::Enum => self.enumeration()?,
        };
        self.count(&ctype, &place)?;
        let ctype = Rc::new(ctype);
        if let Some(tag) = specified.tag
            && self.tags.insert((tagged, tag), Rc::clone(&ctype)).is_some()
        {
            return Err(twice(place, tag));
        }
        specified.ctype = Some(ctype);
        Ok(())
    }

    /// The constants of an enumeration, behind the opening brace.
    fn enumeration(&mut self) -> Result<CType, ParseError> {
        let mut constants = Vec::new();
        let mut next = 0i64;
        while !self.eats('}')? {
            let (name, range) = self.name()?;
            if self.eats('=')? {
                next = self.expression()?;
            }
            if i32::try_from(next).is_err() && u32::try_from(next).is_err() {
                return Err(ParseError::new(
                    range,
                    format!("{next} does not fit in an enumeration"),
                    "expected a value of at most 32 bits",
                ));
            }
            if self.constants.insert(name, next).is_some() {
                return Err(twice(range, name));
            }
            constants.push((name.to_string().into(), next));
            next += 1;
            if !self.eats(',')? {
                self.expect('}')?;
                break;
            }
        }
        Ok(CType::Enum(constants))
    }

    /// The words of a type of the language itself, in any order.
    fn basic(&mut self, specified: &mut Specified<'a>) -> Result<(), ParseError> {
        let mut words = Vec::new();
        while let Some(word) = self.word()
            && BASIC.contains(&word)
            // No type has more.
            && words.len() < 5
        {
            words.push(word);
            specified.range.end = self.token.range.end;
            self.advance()?;
            while self.eats_word("const")? || self.eats_word("volatile")? {}
        }
        let mut takes = |word: &str| {
            let at = words.iter().position(|found| *found == word);
            at.map(|at| words.swap_remove(at)).is_some()
        };
        let (is_unsigned, is_signed) = (takes("unsigned"), takes("signed"));
        let signed = !is_unsigned;
        let has_sign = is_unsigned || is_signed;
        let int = |width| Some(CType::Int { width, signed });
        let ctype = if takes("char") {
            match has_sign {
                true => int(Width::W8),
                false => Some(CType::Char),
            }
        } else if takes("short") {
            takes("int");
            int(Width::W16)
        } else if takes("long") {
            let is_long_long = takes("long");
            takes("int");
            match is_long_long {
                true => int(Width::W64),
                false => Some(CType::Long { signed }),
            }
        } else if takes("int") || has_sign {
            int(Width::W32)
        } else if takes("_Bool") {
            Some(CType::Int {
                width: Width::W8,
                signed: false,
            })
        } else if takes("float") {
            Some(CType::Float)
        } else if takes("double") {
            Some(CType::Double)
        } else {
            takes("void");
            None
        };
        specified.ctype = ctype.map(Rc::new);
        if words.is_empty() && !(is_unsigned && is_signed) {
            return Ok(());
        }
        let text = &self.text[specified.range.clone()];
        Err(ParseError::new(
            specified.range.clone(),
            format!("unknown type `{text}`"),
            "expected char, short, int, long, long long, float or double, with or without a sign",
        ))
    }
}
