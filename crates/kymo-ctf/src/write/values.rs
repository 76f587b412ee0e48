//! Values that are kept to be written later, or more than once.

use kymo_model::{FieldId, Schema, Visitor, Wide};

/// A value, or a part of one, as it is reported to a [`Visitor`].
#[derive(Clone, Debug, PartialEq)]
pub enum Token {
    /// An unsigned integer.
    Uint(u64),
    /// A signed integer.
    Sint(i64),
    /// An integer of more than 64 bits, as [`Wide`] has it.
    Wide {
        /// Its bytes, the most significant one first.
        bytes: Vec<u8>,
        /// Its size in bits.
        bits: u32,
        /// Whether it is signed.
        signed: bool,
    },
    /// A floating point number.
    Float(f64),
    /// The bits of a floating point number of 128 bits.
    Float128(u128),
    /// A truth value.
    Bool(bool),
    /// Bits that are not a number.
    Bits(u64),
    /// Text.
    Text(Vec<u8>),
    /// Bytes.
    Blob(Vec<u8>),
    /// A structure begins.
    BeginStruct,
    /// A structure ends.
    EndStruct,
    /// An array of this length begins.
    BeginArray(u64),
    /// An array ends.
    EndArray,
    /// An optional begins: whether there is something, and the selector.
    BeginOptional(bool, u64),
    /// An optional ends.
    EndOptional,
    /// A variant begins: the option, and the selector.
    BeginVariant(u32, u64),
    /// A variant ends.
    EndVariant,
}

impl Token {
    /// Reports it to a visitor.
    pub fn report<V: Visitor>(&self, field: FieldId, visitor: &mut V) {
        match self {
            Self::Uint(value) => visitor.uint(field, *value),
            Self::Sint(value) => visitor.sint(field, *value),
            Self::Wide {
                bytes,
                bits,
                signed,
            } => visitor.wide(field, Wide::new(bytes, *bits, *signed)),
            Self::Float(value) => visitor.float(field, *value),
            Self::Float128(bits) => visitor.float128(field, *bits),
            Self::Bool(value) => visitor.boolean(field, *value),
            Self::Bits(value) => visitor.bits(field, *value),
            Self::Text(text) => visitor.text(field, text),
            Self::Blob(bytes) => visitor.blob(field, bytes),
            Self::BeginStruct => visitor.begin_struct(field),
            Self::EndStruct => visitor.end_struct(field),
            Self::BeginArray(length) => visitor.begin_array(field, *length),
            Self::EndArray => visitor.end_array(field),
            Self::BeginOptional(present, selector) => {
                visitor.begin_optional(field, *present, *selector);
            }
            Self::EndOptional => visitor.end_optional(field),
            Self::BeginVariant(selected, selector) => {
                visitor.begin_variant(field, *selected, *selector);
            }
            Self::EndVariant => visitor.end_variant(field),
        }
    }

    /// How much deeper what follows lies.
    fn depth(&self) -> i32 {
        match self {
            Self::BeginStruct
            | Self::BeginArray(_)
            | Self::BeginOptional(..)
            | Self::BeginVariant(..) => 1,
            Self::EndStruct | Self::EndArray | Self::EndOptional | Self::EndVariant => -1,
            _ => 0,
        }
    }
}

/// Keeps the values of what is decoded, each with its field.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values {
    tokens: Vec<(FieldId, Token)>,
}

impl Values {
    /// Removes all values.
    pub fn clear(&mut self) {
        self.tokens.clear();
    }

    /// What is kept, in order.
    pub fn tokens(&self) -> &[(FieldId, Token)] {
        &self.tokens
    }

    /// Reports all of them to a visitor.
    pub fn report<V: Visitor>(&self, visitor: &mut V) {
        for (field, token) in &self.tokens {
            token.report(*field, visitor);
        }
    }

    /// The first value, whole, of the field of a schema that has a path (without the scope): what
    /// it holds, where it is a compound.
    pub(super) fn of<'v>(&'v self, schema: &Schema, path: &str) -> Option<&'v [(FieldId, Token)]> {
        let name = path.rsplit('.').next();
        let is_it = |field: &FieldId| {
            let known = schema.fields().get(field.index());
            known.is_some_and(|field| field.name.as_deref() == name) && schema.path(*field) == path
        };
        let begin = self.tokens.iter().position(|(field, _)| is_it(field))?;
        let mut depth = 0;
        let length = self.tokens[begin..].iter().position(|(_, token)| {
            depth += token.depth();
            depth == 0
        })?;
        Some(&self.tokens[begin..=begin + length])
    }

    fn push(&mut self, field: FieldId, token: Token) {
        self.tokens.push((field, token));
    }
}

impl Visitor for Values {
    fn uint(&mut self, field: FieldId, value: u64) {
        self.push(field, Token::Uint(value));
    }
    fn sint(&mut self, field: FieldId, value: i64) {
        self.push(field, Token::Sint(value));
    }
    fn wide(&mut self, field: FieldId, value: Wide<'_>) {
        self.push(
            field,
            Token::Wide {
                bytes: value.bytes().to_vec(),
                bits: value.bits(),
                signed: value.is_signed(),
            },
        );
    }
    fn float(&mut self, field: FieldId, value: f64) {
        self.push(field, Token::Float(value));
    }
    fn float128(&mut self, field: FieldId, bits: u128) {
        self.push(field, Token::Float128(bits));
    }
    fn boolean(&mut self, field: FieldId, value: bool) {
        self.push(field, Token::Bool(value));
    }
    fn bits(&mut self, field: FieldId, value: u64) {
        self.push(field, Token::Bits(value));
    }
    fn text(&mut self, field: FieldId, text: &[u8]) {
        self.push(field, Token::Text(text.to_vec()));
    }
    fn blob(&mut self, field: FieldId, bytes: &[u8]) {
        self.push(field, Token::Blob(bytes.to_vec()));
    }
    fn begin_struct(&mut self, field: FieldId) {
        self.push(field, Token::BeginStruct);
    }
    fn end_struct(&mut self, field: FieldId) {
        self.push(field, Token::EndStruct);
    }
    fn begin_array(&mut self, field: FieldId, length: u64) {
        self.push(field, Token::BeginArray(length));
    }
    fn end_array(&mut self, field: FieldId) {
        self.push(field, Token::EndArray);
    }
    fn begin_optional(&mut self, field: FieldId, present: bool, selector: u64) {
        self.push(field, Token::BeginOptional(present, selector));
    }
    fn end_optional(&mut self, field: FieldId) {
        self.push(field, Token::EndOptional);
    }
    fn begin_variant(&mut self, field: FieldId, selected: u32, selector: u64) {
        self.push(field, Token::BeginVariant(selected, selector));
    }
    fn end_variant(&mut self, field: FieldId) {
        self.push(field, Token::EndVariant);
    }
}
