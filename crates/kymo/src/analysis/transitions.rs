//! Which events bring what to which state.

use std::fmt;

use super::events::EventPattern;
use crate::filter::{FieldNames, FilterError};

/// An event that brings a thing, such as a thread, to a state.
#[derive(Clone, Debug, PartialEq)]
pub struct Transition {
    /// The events.
    pub event: EventPattern,
    /// The field that identifies the thing.
    pub thing: FieldNames,
    /// The field that has its name.
    pub name: Option<FieldNames>,
    /// The state that it must be in, where it is known; otherwise the event does not matter.
    pub from: Option<String>,
    /// The state that it is in from then on.
    pub state: String,
    /// What must hold of the event.
    pub conditions: Vec<TransitionCondition>,
}

/// A condition: whether a field is one of some numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct TransitionCondition {
    /// The field.
    pub field: FieldNames,
    /// The numbers.
    pub values: Vec<i64>,
    /// Whether the field must have none of the values.
    pub is_negated: bool,
}

/// Why a text is not a transition.
#[derive(Clone, Debug)]
pub enum TransitionError {
    /// A part is missing, or is not a number.
    Form,
    /// The name of a field is wrong.
    Field(Box<FilterError>),
}

impl fmt::Display for TransitionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form => f.write_str(
                "expected EVENT:FIELD[/NAME]:[FROM>]STATE[:FIELD=VALUE[,VALUE]...[&...]]",
            ),
            Self::Field(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for TransitionError {}

fn field(name: &str) -> Result<FieldNames, TransitionError> {
    FieldNames::parse_one(name).map_err(|error| TransitionError::Field(Box::new(error)))
}

impl Transition {
    /// Reads `EVENT:FIELD[/NAME]:[FROM>]STATE[:CONDITION[&CONDITION]...]`; a condition is
    /// `FIELD=VALUE[,VALUE]...` or `FIELD!=VALUE[,VALUE]...`.
    ///
    /// # Errors
    ///
    /// Something else stands there.
    pub fn parse(text: &str) -> Result<Self, TransitionError> {
        // Names of events may have colons.
        let (head, conditions) = match text.rsplit_once(':') {
            Some((head, conditions)) if conditions.contains('=') => (head, Some(conditions)),
            _ => (text, None),
        };
        let mut parts = head.rsplitn(3, ':');
        let mut part = || {
            parts
                .next()
                .filter(|part| !part.is_empty())
                .ok_or(TransitionError::Form)
        };
        let (state, thing, event) = (part()?, part()?, part()?);
        let (from, state) = match state.split_once('>') {
            Some((from, state)) => (Some(from.to_string()), state),
            None => (None, state),
        };
        let (thing, name) = match thing.split_once('/') {
            Some((thing, name)) => (thing, Some(field(name)?)),
            None => (thing, None),
        };
        let conditions = conditions.into_iter().flat_map(|all| all.split('&'));
        let conditions = conditions.map(|condition| {
            let (name, values) = condition.split_once('=').ok_or(TransitionError::Form)?;
            let (name, is_negated) = match name.strip_suffix('!') {
                Some(name) => (name, true),
                None => (name, false),
            };
            let values = values.split(',').map(|value| value.trim().parse());
            Ok(TransitionCondition {
                field: field(name)?,
                values: values
                    .collect::<Result<_, _>>()
                    .map_err(|_| TransitionError::Form)?,
                is_negated,
            })
        });
        Ok(Self {
            event: EventPattern::new(event),
            thing: field(thing)?,
            name,
            from,
            state: state.to_string(),
            conditions: conditions.collect::<Result<_, _>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_read_from_the_end() {
        let all = "a:b:sched_switch:prev_tid/prev_comm:x>ready:prev_tid!=0&prev_state=0,-256";
        let transition = Transition::parse(all).unwrap();
        assert_eq!(transition.event.as_str(), "a:b:sched_switch");
        assert_eq!(transition.thing.to_string(), "prev_tid");
        assert_eq!(transition.name.unwrap().to_string(), "prev_comm");
        assert_eq!(transition.from.as_deref(), Some("x"));
        assert_eq!(transition.state, "ready");
        let [first, second] = &transition.conditions[..] else {
            panic!("two conditions");
        };
        assert!(first.is_negated && !second.is_negated);
        assert_eq!(second.values, [0, -256]);
        let short = Transition::parse("wake:tid:ready").unwrap();
        assert_eq!((short.from, short.conditions.len()), (None, 0));
        for wrong in [
            "",
            "a:b",
            "a:b:c:d=x",
            "a::c",
            "a:b.3:c",
            "a:b:c:=1",
            "a:b:c:d==1",
        ] {
            assert!(Transition::parse(wrong).is_err(), "{wrong}");
        }
    }
}
