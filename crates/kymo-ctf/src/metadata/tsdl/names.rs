//! Names and what they mean: in TSDL, fields have roles by their names (CTF 1.8.3 §5, §6, §7).

use kymo_model::Scope;

use crate::class::Role;
use crate::metadata::lexer;

/// The words of the grammar, which no name may be (§C.1.2).
const GRAMMAR: [&str; 15] = [
    "align",
    "callsite",
    "clock",
    "enum",
    "env",
    "event",
    "floating_point",
    "integer",
    "stream",
    "string",
    "struct",
    "trace",
    "typealias",
    "typedef",
    "variant",
];

/// The words of which names of types are made, such as `unsigned long`: no other name may be one
/// of them, but not all readers mind.
const OF_TYPES: [&str; 13] = [
    "char",
    "const",
    "double",
    "float",
    "int",
    "long",
    "short",
    "signed",
    "unsigned",
    "void",
    "_Bool",
    "_Complex",
    "_Imaginary",
];

/// Whether a word belongs to the grammar.
pub(in crate::metadata) fn is_of_grammar(word: &str) -> bool {
    GRAMMAR.contains(&word)
}

/// Whether a word is a keyword.
pub(in crate::metadata) fn is_keyword(word: &str) -> bool {
    is_of_grammar(word) || OF_TYPES.contains(&word)
}

/// Whether text is a word of the language and not a keyword.
pub(in crate::metadata) fn is_name(text: &str) -> bool {
    lexer::is_word(text) && !is_keyword(text)
}

/// What is declared so that people see `name`: readers remove one leading underscore.
pub(in crate::metadata) fn declared(name: &str) -> String {
    match is_name(name) && !name.starts_with('_') {
        true => name.to_owned(),
        false => format!("_{name}"),
    }
}

/// Whether people can see a field of this name: [`declared`] makes a word of it.
pub(in crate::metadata) fn is_field(name: &str) -> bool {
    lexer::is_word(name)
}

/// A name that comes close to text that is none.
pub(in crate::metadata) fn cleaned(text: &str) -> String {
    let mut name: String = text
        .chars()
        .map(|character| match character.is_ascii_alphanumeric() {
            true => character,
            false => '_',
        })
        .collect();
    if !name.starts_with(|first: char| first.is_ascii_alphabetic()) {
        name.insert_str(0, "field_");
    }
    name
}

/// Text without zero characters, at which quoted text would end.
pub(in crate::metadata) fn without_zeros(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// What may be declared for the option of a variant that people see as `name`. Which one, the label
/// that selects it determines: label and option are the same word, underscores included. `is_other`
/// returns whether another option has a name.
pub(in crate::metadata) fn declared_options(
    name: &str,
    is_other: impl Fn(&str) -> bool,
) -> Vec<String> {
    let hidden = format!("_{name}");
    let is_plain = is_name(name) && !name.starts_with('_');
    // The underscore stays where another option has the name without it.
    let is_kept = name.strip_prefix('_').is_some_and(is_other);
    match is_plain || is_kept {
        true => vec![name.to_owned(), hidden],
        false => vec![hidden],
    }
}

/// Where a field must lie to have the role of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// The first member of the scope's structure, of 32 bits.
    First,
    /// Any member of the scope's structure.
    Top,
    /// A member of any structure in the scope.
    Anywhere,
}

/// The names of integers that have a role.
const ROLES: [(Scope, &str, Role, Reach); 9] = [
    (
        Scope::PacketHeader,
        "magic",
        Role::PacketMagic,
        Reach::First,
    ),
    (
        Scope::PacketHeader,
        "stream_id",
        Role::StreamClassId,
        Reach::Top,
    ),
    (
        Scope::PacketHeader,
        "stream_instance_id",
        Role::StreamId,
        Reach::Top,
    ),
    (
        Scope::PacketContext,
        "packet_size",
        Role::PacketTotalLength,
        Reach::Top,
    ),
    (
        Scope::PacketContext,
        "content_size",
        Role::PacketContentLength,
        Reach::Top,
    ),
    (
        Scope::PacketContext,
        "timestamp_end",
        Role::PacketEndTimestamp,
        Reach::Top,
    ),
    (
        Scope::PacketContext,
        "events_discarded",
        Role::DiscardedEvents,
        Reach::Top,
    ),
    (
        Scope::PacketContext,
        "packet_seq_num",
        Role::PacketSequenceNumber,
        Reach::Top,
    ),
    (
        Scope::EventHeader,
        "id",
        Role::EventClassId,
        Reach::Anywhere,
    ),
];

/// A member of a structure.
#[derive(Clone, Copy, Debug)]
pub(in crate::metadata) struct Place<'a> {
    pub(in crate::metadata) scope: Scope,
    /// Its name as people see it.
    pub(in crate::metadata) name: &'a str,
    /// Whether it is a member of the scope's own structure.
    pub(in crate::metadata) is_top: bool,
    /// Whether it is the first member of its structure.
    pub(in crate::metadata) is_first: bool,
}

/// The role that an integer of a size in bits has by its name.
pub(in crate::metadata) fn role(place: Place<'_>, bits: u32) -> Option<Role> {
    let &(.., role, reach) = ROLES
        .iter()
        .find(|(scope, name, ..)| (*scope, *name) == (place.scope, place.name))?;
    let is_there = match reach {
        Reach::First => place.is_top && place.is_first && bits == 32,
        Reach::Top => place.is_top,
        Reach::Anywhere => true,
    };
    is_there.then_some(role)
}

/// Whether a member of any type has a name that stands for a role in its place.
pub(in crate::metadata) fn is_known(place: Place<'_>) -> bool {
    ROLES.iter().any(|(scope, name, _, reach)| {
        (*scope, *name) == (place.scope, place.name) && (place.is_top || *reach == Reach::Anywhere)
    })
}

/// The name of the integers of a role in a scope.
pub(in crate::metadata) fn of_role(scope: Scope, role: Role) -> Option<&'static str> {
    ROLES
        .iter()
        .find(|known| (known.0, known.2) == (scope, role))
        .map(|known| known.1)
}

/// The name of the array that is the UUID of the metadata, a member of the packet header.
pub(in crate::metadata) const UUID: &str = "uuid";

/// The name of the time at a packet's beginning.
pub(in crate::metadata) const BEGIN: &str = "timestamp_begin";

/// Whether integers of this name are times, even where their type is mapped to no clock.
pub(in crate::metadata) fn is_time(scope: Scope, name: &str) -> bool {
    match scope {
        Scope::PacketContext => matches!(name, BEGIN | "timestamp_end"),
        Scope::EventHeader => name == "timestamp",
        _ => false,
    }
}
