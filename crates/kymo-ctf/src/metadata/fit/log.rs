//! What fitting reports: what differs and where, and what has no equivalent.

use std::fmt;
use std::sync::Arc;

use kymo_model::Scope;

use crate::class::Role;

/// A place in a class model, as people find it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Number of the stream class; `None` of what the whole trace has.
    pub stream: Option<u64>,
    /// Number and name of the event class; `None` of what is not of one alone.
    pub event: Option<(u64, Option<Arc<str>>)>,
    /// The scope of the field; `None` if it does not concern a field.
    pub scope: Option<Scope>,
    /// The names from the scope to the field, joined by dots; empty of the scope itself.
    pub path: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.event, self.stream) {
            (Some((_, Some(name))), _) => write!(f, "event record class `{name}`")?,
            (Some((id, None)), _) => write!(f, "event record class {id}")?,
            (None, Some(id)) => write!(f, "data stream class {id}")?,
            (None, None) => f.write_str("trace")?,
        }
        match self.scope {
            Some(scope) => write!(f, ", `{}{}`", scope.name(), self.path),
            None => Ok(()),
        }
    }
}

/// Something of a fitted model that differs from the model before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Where it is.
    pub place: Place,
    /// What differs.
    pub rule: Rule,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.rule)
    }
}

/// What becomes of what a dialect cannot hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// An optional is a variant of nothing and of what it holds.
    OptionalAsVariant,
    /// An optional is a sequence of nothing or of what it holds.
    OptionalAsSequence,
    /// A variant is a structure of its options, each a sequence of nothing or of that option.
    VariantAsSequences,
    /// A bit array is an integer.
    BitsAsInteger,
    /// A bit map is an enumeration: a flag's name is the label of the numbers with one of its bits.
    FlagsAsLabels,
    /// A truth value is an integer.
    BoolAsInteger,
    /// A number in LEB128 has 64 bits.
    VarAsFixed,
    /// A floating point number of 16 bits has 32.
    HalfAsSingle,
    /// Text is UTF-8 that ends with a zero byte.
    TextAsUtf8,
    /// A BLOB is an array of bytes; its media type is not stated.
    BlobAsArray,
    /// The UUID of the metadata is a BLOB.
    UuidAsBlob,
    /// A length within its array is a field before it.
    LengthAsField,
    /// The length of an array, which another field gives, lies before its elements too.
    LengthRepeated,
    /// A floating point number is an integer of the same bits.
    FloatAsBits,
    /// The base in which an integer is shown is not stated.
    BaseLost,
    /// Labels stand for values, whose number is limited, and not for ranges.
    LabelsByValue,
    /// The context of an event class is a member of its payload, the first one.
    ContextAsMember,
    /// Times are nanoseconds of a clock that begins at the epoch, or where the clock's origin is.
    Nanoseconds,
    /// Events without times have the time 0, or that of the packet's beginning.
    Untimed,
    /// The number of a class is another one.
    Renumbered {
        /// The number before.
        from: u64,
        /// The number now.
        to: u64,
    },
    /// The bits of a number are in the usual order.
    BitOrder,
    /// A bit field may cross the unit that it must not cross in the model.
    Unit,
    /// The alignment in bits is another one.
    Align(u32),
    /// An enumeration has labels that select a variant's options.
    Labels,
    /// The options of a variant have selectors of their own.
    Apart,
    /// Labels or ranges that stand for no number, or for a second one, are left out or changed.
    LabelsCleaned,
    /// A name that the dialect cannot hold, or that would mean something else, is another one.
    Renamed {
        /// The name before.
        from: String,
        /// The name now.
        to: String,
    },
    /// Something that has no name gets one: this, and the name.
    Named(&'static str, String),
    /// The role of a field is not stated: the field is only shown.
    RoleLost(Role),
    /// Something has no place: this.
    Lost(&'static str),
    /// Something is an entry of the environment: this, under a name.
    InEnvironment(&'static str, &'static str),
    /// The clock of a stream class without times is not described.
    Clock,
    /// Packet headers of RFC v1.1 are packet headers and packet contexts, with sizes in bits.
    Headers,
}

impl Rule {
    /// Whether events may be encoded otherwise than before, so that their bits cannot be copied.
    pub fn recodes(&self) -> bool {
        matches!(
            self,
            Self::VarAsFixed
                | Self::HalfAsSingle
                | Self::TextAsUtf8
                | Self::LengthRepeated
                | Self::OptionalAsSequence
                | Self::VariantAsSequences
                | Self::ContextAsMember
                | Self::BitOrder
                | Self::Unit
                | Self::Align(_)
        )
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OptionalAsVariant => "an optional becomes a variant of `none` and `some`",
            Self::OptionalAsSequence => "an optional becomes a sequence of one element or none",
            Self::VariantAsSequences => {
                "a variant becomes a structure of sequences, one for each option, of one element or none"
            }
            Self::BitsAsInteger => "a bit array becomes an integer",
            Self::FlagsAsLabels => {
                "a bit map becomes an enumeration, its flags labels of single bits"
            }
            Self::BoolAsInteger => "a truth value becomes an integer",
            Self::VarAsFixed => "a number of variable length becomes one of 64 bits",
            Self::HalfAsSingle => "a floating point number of 16 bits becomes one of 32",
            Self::TextAsUtf8 => "text becomes UTF-8 with a zero byte at its end",
            Self::BlobAsArray => "a BLOB becomes an array of bytes without a media type",
            Self::UuidAsBlob => "the UUID becomes a BLOB",
            Self::LengthAsField => "the length becomes a field before it",
            Self::LengthRepeated => "the length lies before the elements, too",
            Self::FloatAsBits => "a floating point number becomes an integer of its bits",
            Self::BaseLost => "integers are shown in decimal",
            Self::LabelsByValue => "labels stand for single values, and not for too many of them",
            Self::ContextAsMember => "the context becomes the payload's first member",
            Self::Nanoseconds => "times become nanoseconds since the clock's origin",
            Self::Untimed => "events have the time of their packet, or 0",
            Self::Renumbered { from, to } => return write!(f, "number {from} becomes {to}"),
            Self::BitOrder => "the bits are written in their usual order",
            Self::Unit => "the bit field may cross its unit",
            Self::Align(align) => return write!(f, "the alignment becomes {align} bits"),
            Self::Labels => "the selector has labels for the options",
            Self::Apart => "each option has selectors of its own",
            Self::LabelsCleaned => "labels that cannot be written are left out or changed",
            Self::Renamed { from, to } => return write!(f, "`{from}` becomes `{to}`"),
            Self::Named(what, name) => return write!(f, "{what} without a name becomes `{name}`"),
            Self::RoleLost(role) => return write!(f, "no longer {role:?}, only a number"),
            Self::Lost(what) => return write!(f, "{what} is left out"),
            Self::InEnvironment(what, name) => {
                return write!(f, "{what} becomes the environment's `{name}`");
            }
            Self::Clock => "the clock is left out, since no field has its times",
            Self::Headers => "packet headers are those of CTF, with sizes in bits",
        })
    }
}

/// Why a class model cannot be written in a dialect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FitError {
    /// Boxed, since results are returned through many calls.
    place: Box<Place>,
    what: String,
    help: String,
}

impl FitError {
    /// Where it is.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// What to do about it.
    pub fn help(&self) -> &str {
        &self.help
    }
}

impl fmt::Display for FitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.place, self.what, self.help)
    }
}

impl std::error::Error for FitError {}

/// The changes so far, and the place in hand.
#[derive(Default)]
pub(super) struct Log {
    pub(super) changes: Vec<Change>,
    pub(super) place: Place,
}

impl Log {
    pub(super) fn note(&mut self, rule: Rule) {
        let place = self.place.clone();
        self.changes.push(Change { place, rule });
    }

    /// The same for a part of the place in hand.
    pub(super) fn note_at(&mut self, name: &str, rule: Rule) {
        let before = self.enter(name);
        self.note(rule);
        self.leave(before);
    }

    pub(super) fn error(&self, what: &str, help: &str) -> FitError {
        FitError {
            place: Box::new(self.place.clone()),
            what: what.to_owned(),
            help: help.to_owned(),
        }
    }

    /// Goes to a part; what it returns leads back.
    pub(super) fn enter(&mut self, name: &str) -> usize {
        let before = self.place.path.len();
        self.place.path.push('.');
        self.place.path.push_str(name);
        before
    }

    pub(super) fn leave(&mut self, before: usize) {
        self.place.path.truncate(before);
    }
}
