//! Classes of events, found while a file is read: a class for each name of each kind of events,
//! with the arguments that its events have.

use std::sync::Arc;

use foldhash::HashMap;
use kymo_model::{Base, EventClass, FieldId, Kind as FieldKind, Roles, Schema, Scope, SliceRole};

use crate::row::Value;

/// Maximum number of classes that are distinguished by name.
const MOST_CLASSES: usize = 1 << 16;
/// Arguments of a class that have fields of their own.
const MOST_KEYS: usize = 64;
/// The same of all classes together.
const MOST_ALL_KEYS: usize = 1 << 20;
/// Bytes of a name of a class or an argument.
const MOST_NAME: usize = 1024;
/// Bytes of all names together.
const MOST_NAMES: usize = 64 << 20;
/// Integers up to here are exact as floating point numbers.
const MOST_EXACT: u64 = 1 << 53;

/// What events of a class are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Begin,
    End,
    Slice,
    Instant,
    Counter,
    State,
    FlowBegin,
    FlowStep,
    FlowEnd,
    /// An event of the kernel.
    Kernel,
    /// An event of the kernel that says which thread a CPU runs from now on.
    Switch,
}

impl Kind {
    /// As the field `phase` has it.
    const fn phase(self) -> Option<&'static str> {
        Some(match self {
            Self::Begin => "begin",
            Self::End => "end",
            Self::Slice => "slice",
            Self::Instant => "instant",
            Self::Counter => "counter",
            Self::State => "state",
            Self::FlowBegin => "flow_begin",
            Self::FlowStep => "flow_step",
            Self::FlowEnd => "flow_end",
            Self::Kernel | Self::Switch => return None,
        })
    }

    /// The name of the class of events that have none, or one too many.
    fn generic_name(self) -> &'static str {
        self.phase().unwrap_or("kernel")
    }
}

/// Kinds of values, as bits: those that an argument had.
mod seen {
    pub(super) const UINT: u8 = 1;
    pub(super) const SINT: u8 = 2;
    pub(super) const POINTER: u8 = 4;
    pub(super) const FLOAT: u8 = 8;
    pub(super) const BOOL: u8 = 16;
    pub(super) const TEXT: u8 = 32;
    /// An integer that is too large for signed ones.
    pub(super) const HUGE: u8 = 64;
    /// An integer that is not exact as a floating point number.
    pub(super) const INEXACT: u8 = 128;

    pub(super) const INTEGERS: u8 = UINT | SINT | POINTER;
}

fn seen_of(value: Value<'_>) -> u8 {
    let size = |value: u64| {
        let huge = if value > i64::MAX as u64 {
            seen::HUGE
        } else {
            0
        };
        let inexact = if value > MOST_EXACT { seen::INEXACT } else { 0 };
        huge | inexact
    };
    match value {
        Value::Uint(value) => seen::UINT | size(value),
        Value::Sint(value) => seen::SINT | size(value.unsigned_abs()) & seen::INEXACT,
        Value::Pointer(value) => seen::POINTER | size(value),
        Value::Float(_) => seen::FLOAT,
        Value::Bool(_) => seen::BOOL,
        Value::Text(_) | Value::Json(_) | Value::Shared(_) => seen::TEXT,
    }
}

/// As what the values of an argument are shown: of those that it had, one that holds them all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Uint,
    Sint,
    Pointer,
    Float,
    Bool,
    Text,
}

impl Type {
    fn of(seen: u8) -> Self {
        let kinds = seen & !(seen::HUGE | seen::INEXACT);
        let is_integer = kinds & !seen::INTEGERS == 0;
        match kinds {
            0 => Self::Text,
            seen::POINTER => Self::Pointer,
            _ if is_integer && kinds & seen::SINT == 0 => Self::Uint,
            _ if is_integer && seen & seen::HUGE == 0 => Self::Sint,
            _ if kinds & !(seen::INTEGERS | seen::FLOAT) == 0
                && seen & (seen::FLOAT | seen::INEXACT) == seen::FLOAT =>
            {
                Self::Float
            }
            seen::BOOL => Self::Bool,
            _ => Self::Text,
        }
    }

    fn kind(self) -> FieldKind {
        let (bits, base, labels) = (64, Base::Decimal, None);
        match self {
            Self::Uint => FieldKind::Uint { bits, base, labels },
            Self::Pointer => FieldKind::Uint {
                bits,
                base: Base::Hexadecimal,
                labels,
            },
            Self::Sint => FieldKind::Sint { bits, base, labels },
            Self::Float => FieldKind::Float { bits },
            Self::Bool => FieldKind::Bool { bits: 8 },
            Self::Text => FieldKind::Text,
        }
    }
}

/// An argument of a class.
#[derive(Debug)]
struct Key {
    name: Box<[u8]>,
    seen: u8,
    rows: u64,
}

/// What a class has beside its arguments.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extras {
    pub(crate) name: bool,
    pub(crate) category: bool,
    pub(crate) flows: bool,
    pub(crate) ended_flows: bool,
    pub(crate) other: bool,
}

#[derive(Debug)]
struct Class {
    kind: Kind,
    name: Arc<str>,
    rows: u64,
    keys: Vec<Key>,
    extras: Extras,
}

/// The classes found so far.
#[derive(Debug, Default)]
pub(crate) struct Classes {
    classes: Vec<Class>,
    by_name: HashMap<Box<[u8]>, u32>,
    generic: Vec<(Kind, u32)>,
    room: Vec<u8>,
    all_keys: usize,
    name_bytes: usize,
    /// Number of events whose name has no class of its own.
    pub(crate) folded_events: u64,
    /// Number of values whose argument has no field of its own.
    pub(crate) folded_values: u64,
}

impl Classes {
    /// The class of an event, and whether the event needs its name in a field.
    pub(crate) fn find(&mut self, kind: Kind, name: &[u8]) -> (u32, bool) {
        if name.is_empty() {
            return (self.generic(kind), false);
        }
        if name.len() > MOST_NAME {
            self.folded_events += 1;
            return (self.generic(kind), true);
        }
        self.room.clear();
        self.room.push(kind as u8);
        self.room.extend_from_slice(name);
        if let Some(&class) = self.by_name.get(&self.room[..]) {
            return (class, false);
        }
        let is_known =
            self.classes.len() < MOST_CLASSES && self.name_bytes + name.len() <= MOST_NAMES;
        if !is_known {
            self.folded_events += 1;
            return (self.generic(kind), true);
        }
        self.name_bytes += name.len();
        let class = self.add(kind, String::from_utf8_lossy(name).into());
        self.by_name.insert(self.room.as_slice().into(), class);
        (class, false)
    }

    fn add(&mut self, kind: Kind, name: Arc<str>) -> u32 {
        self.classes.push(Class {
            kind,
            name,
            rows: 0,
            keys: Vec::new(),
            extras: Extras::default(),
        });
        self.classes.len() as u32 - 1
    }

    /// The class of the events of a kind that have no other.
    fn generic(&mut self, kind: Kind) -> u32 {
        if let Some(&(_, class)) = self.generic.iter().find(|(known, _)| *known == kind) {
            return class;
        }
        let class = self.add(kind, kind.generic_name().into());
        self.generic.push((kind, class));
        class
    }

    /// Counts an event of a class, and what it has.
    pub(crate) fn count(&mut self, class: u32, has: Extras) {
        let class = &mut self.classes[class as usize];
        class.rows += 1;
        class.extras.name |= has.name;
        class.extras.category |= has.category;
        class.extras.flows |= has.flows;
        class.extras.ended_flows |= has.ended_flows;
        class.extras.other |= has.other;
    }

    /// The number of an argument of a class; `None` of one that has no field. Mostly it is at the
    /// place of the same number as in the event before: `guess`.
    pub(crate) fn key(&mut self, class: u32, name: &[u8], guess: usize) -> Option<u32> {
        let class = &mut self.classes[class as usize];
        if class.keys.get(guess).is_some_and(|key| *key.name == *name) {
            return Some(guess as u32);
        }
        if let Some(at) = class.keys.iter().position(|key| *key.name == *name) {
            return Some(at as u32);
        }
        let has_room = class.keys.len() < MOST_KEYS
            && self.all_keys < MOST_ALL_KEYS
            && name.len() <= MOST_NAME
            && self.name_bytes + name.len() <= MOST_NAMES;
        if !has_room {
            self.folded_values += 1;
            return None;
        }
        self.all_keys += 1;
        self.name_bytes += name.len();
        class.keys.push(Key {
            name: name.into(),
            seen: 0,
            rows: 0,
        });
        Some(class.keys.len() as u32 - 1)
    }

    /// Notes a value of an argument, once for each event.
    pub(crate) fn note(&mut self, class: u32, key: u32, value: Value<'_>) {
        let key = &mut self.classes[class as usize].keys[key as usize];
        key.seen |= seen_of(value);
        key.rows += 1;
    }

    /// The classes as they are when all of the file was read.
    pub(crate) fn finish(self) -> (Vec<EventClass>, Vec<Plan>) {
        let classes = self.classes.into_iter().enumerate();
        classes.map(|(number, class)| class.finish(number)).unzip()
    }
}

/// The fields of the common context that all classes have.
pub(crate) mod field {
    use kymo_model::FieldId;

    pub(crate) const CONTEXT: FieldId = FieldId(0);
    pub(crate) const TRACK: FieldId = FieldId(1);
    pub(crate) const TRACK_NAME: FieldId = FieldId(2);
}

/// How an argument is shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyPlan {
    /// The field of an argument that not all events of the class have.
    pub(crate) optional: Option<FieldId>,
    pub(crate) field: FieldId,
    pub(crate) shown: Type,
}

/// How the events of a class are shown.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) payload: FieldId,
    pub(crate) category: Option<FieldId>,
    pub(crate) phase: Option<(FieldId, &'static str)>,
    pub(crate) name: Option<FieldId>,
    pub(crate) duration: Option<FieldId>,
    /// An array, and its element.
    pub(crate) flows: Option<(FieldId, FieldId)>,
    pub(crate) ended_flows: Option<(FieldId, FieldId)>,
    pub(crate) keys: Vec<KeyPlan>,
    pub(crate) other: Option<FieldId>,
    pub(crate) roles: Roles,
}

impl Class {
    fn finish(self, number: usize) -> (EventClass, Plan) {
        let uint = || Type::Uint.kind();
        let mut schema = Schema::new();
        let context = schema.push_root(Scope::CommonContext, FieldKind::Struct);
        schema.push_child(context, Some("track".into()), uint());
        schema.push_child(context, Some("track_name".into()), FieldKind::Text);
        let mut text = |name: &str| schema.push_child(context, Some(name.into()), FieldKind::Text);
        let category = self.extras.category.then(|| text("category"));
        let phase = self.kind.phase().map(|phase| (text("phase"), phase));
        let payload = schema.push_root(Scope::Payload, FieldKind::Struct);

        let is_taken = |name: &str| self.keys.iter().any(|key| *key.name == *name.as_bytes());
        let mut own = |name: &str, kind: FieldKind| {
            let mut name = name.to_string();
            while is_taken(&name) {
                name.insert(0, '_');
            }
            schema.push_child(payload, Some(name.into()), kind)
        };
        let name = self.extras.name.then(|| own("name", FieldKind::Text));
        let is_slice = self.kind == Kind::Slice;
        let duration = is_slice.then(|| own("duration", uint()));
        let array = || FieldKind::Array { length: None };
        let flows = self.extras.flows.then(|| own("flow_ids", array()));
        let ended = self.extras.ended_flows;
        let ended_flows = ended.then(|| own("ended_flow_ids", array()));
        let with_element = |list: Option<FieldId>, schema: &mut Schema| {
            list.map(|list| (list, schema.push_child(list, None, uint())))
        };
        let flows = with_element(flows, &mut schema);
        let ended_flows = with_element(ended_flows, &mut schema);
        let mut keys = Vec::with_capacity(self.keys.len());
        for key in &self.keys {
            let shown = Type::of(key.seen);
            let name = Some(String::from_utf8_lossy(&key.name).into());
            keys.push(match key.rows == self.rows {
                true => KeyPlan {
                    optional: None,
                    field: schema.push_child(payload, name, shown.kind()),
                    shown,
                },
                false => {
                    let optional = schema.push_child(payload, name, FieldKind::Optional);
                    KeyPlan {
                        optional: Some(optional),
                        field: schema.push_child(optional, None, shown.kind()),
                        shown,
                    }
                }
            });
        }
        let other = self.extras.other.then(|| {
            let mut name = "other_args".to_string();
            while is_taken(&name) {
                name.insert(0, '_');
            }
            schema.push_child(payload, Some(name.into()), FieldKind::Text)
        });
        let key_field = |name: &str| {
            let at = self
                .keys
                .iter()
                .position(|key| *key.name == *name.as_bytes());
            at.map(|at| keys[at].field)
        };
        let mut roles = Roles::default();
        roles.slice = match (self.kind, duration) {
            (Kind::Begin, _) => SliceRole::Begin,
            (Kind::End, _) => SliceRole::End,
            (Kind::Slice, Some(duration)) => SliceRole::Whole(duration),
            (Kind::State | Kind::Switch, _) => SliceRole::State,
            _ => SliceRole::Instant,
        };
        roles.name = match self.kind {
            Kind::Switch => key_field("next_comm"),
            _ => name,
        };
        if self.kind == Kind::Counter {
            roles.counters.extend(key_field("value"));
        }
        roles.flows.extend(flows.map(|(list, _)| list));
        roles.ended_flows.extend(ended_flows.map(|(list, _)| list));
        let class = EventClass {
            id: number as u64,
            stream_class: 0,
            name: Some(self.name),
            log_level: None,
            emf_uri: None,
            schema,
        };
        let plan = Plan {
            payload,
            category,
            phase,
            name,
            duration,
            flows,
            ended_flows,
            keys,
            other,
            roles,
        };
        (class, plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn type_of(values: &[Value<'_>]) -> Type {
        Type::of(values.iter().fold(0, |seen, &value| seen | seen_of(value)))
    }

    #[test]
    fn a_type_holds_all_values_exactly() {
        use Value::{Bool, Float, Pointer, Sint, Text, Uint};
        for (values, expected) in [
            (&[Uint(1), Uint(u64::MAX)][..], Type::Uint),
            (&[Uint(1), Sint(-1)], Type::Sint),
            (&[Uint(u64::MAX), Sint(-1)], Type::Text),
            (&[Sint(-1), Float(0.5)], Type::Float),
            (&[Uint(1 << 60), Float(0.5)], Type::Text),
            (&[Pointer(1)], Type::Pointer),
            (&[Pointer(1), Uint(1)], Type::Uint),
            (&[Bool(true)], Type::Bool),
            (&[Bool(true), Uint(1)], Type::Text),
            (&[Text(b"x"), Uint(1)], Type::Text),
            (&[], Type::Text),
        ] {
            assert_eq!(type_of(values), expected, "{values:?}");
        }
    }

    #[test]
    fn what_is_too_much_is_shared() {
        let mut classes = Classes::default();
        for number in 0..MOST_CLASSES + 10 {
            classes.find(Kind::Instant, format!("event {number}").as_bytes());
        }
        assert_eq!(classes.folded_events, 10);
        let (class, is_generic) = classes.find(Kind::Instant, b"one more");
        assert!(is_generic && &*classes.classes[class as usize].name == "instant");
        assert!(classes.find(Kind::Begin, &[b'x'; MOST_NAME + 1]).1);
        for number in 0..MOST_KEYS {
            let name = format!("key {number}");
            assert_eq!(classes.key(class, name.as_bytes(), 0), Some(number as u32));
        }
        assert_eq!(classes.key(class, b"one more", 0), None);
        assert_eq!(classes.key(class, b"key 7", 0), Some(7));
    }

    #[test]
    fn own_fields_give_way_to_arguments() {
        let mut classes = Classes::default();
        let (class, _) = classes.find(Kind::Slice, b"work");
        let key = classes.key(class, b"duration", 0).unwrap();
        classes.note(class, key, Value::Uint(1));
        classes.count(class, Extras::default());
        let (classes, plans) = classes.finish();
        let schema = &classes[0].schema;
        let SliceRole::Whole(field) = plans[0].roles.slice else {
            panic!("{:?}", plans[0].roles);
        };
        assert_eq!(schema.path(field), "_duration");
        assert!(schema.child(plans[0].payload, "duration").is_some());
    }
}
