//! Fields with names, behind those that were recorded.

use std::sync::Arc;

use kymo_model::{EventClass, FieldId, Kind, Schema, Scope, Visitor, Wide};

use super::names::{AddressName, Names};
use super::processes::{Processes, vpid};

/// Addresses of an array that are kept.
const MOST_ADDRESSES: usize = 4_096;
/// Bytes of the text of a call stack after which no more names are added.
const MOST_TEXT: usize = 64 << 10;

/// The fields that an event gets.
#[derive(Clone, Copy, Debug)]
struct DebugInfo {
    whole: FieldId,
    binary: FieldId,
    function: FieldId,
    source: FieldId,
}

/// A field with an address, or an array of some, and the one with their names.
#[derive(Clone, Copy, Debug)]
struct AddressField {
    /// The structure that both are in.
    parent: FieldId,
    /// The number.
    value: FieldId,
    /// The array of these numbers.
    array: Option<FieldId>,
    /// The text: the name; of an array all names, from the last one on, with semicolons between them.
    symbol: FieldId,
}

/// What the events of a class get.
#[derive(Debug)]
pub(super) struct ClassSymbols {
    /// The class with these fields.
    pub(super) class: EventClass,
    context: Option<FieldId>,
    vpid: Option<FieldId>,
    ip: Option<FieldId>,
    debug_info: Option<DebugInfo>,
    addresses: Vec<AddressField>,
}

/// Fields that hold addresses of code, whatever they are part of.
const ADDRESSES: [&str; 7] = [
    "ip",
    "parent_ip",
    "call_site",
    "callsite",
    "function",
    "callstack_user",
    "callstack_kernel",
];

fn is_address_name(class: &str, name: &str) -> bool {
    ADDRESSES.contains(&name.strip_prefix('_').unwrap_or(name))
        || name == "addr" && class.starts_with("lttng_ust_cyg_profile")
}

fn is_address(kind: &Kind) -> bool {
    // An enumeration is something else.
    matches!(kind, Kind::Uint { labels: None, bits, .. } if *bits >= 32)
}

impl ClassSymbols {
    pub(super) fn new(class: &EventClass, names: &Names) -> Self {
        let mut class = class.clone();
        let context = class.schema.root(Scope::CommonContext);
        let vpid = vpid(&class.schema);
        let ip = context
            .and_then(|context| class.schema.child(context, "ip"))
            .filter(|&ip| is_address(&class.schema.field(ip).kind));
        let field_name = match names.options.field_name.as_str() {
            "" => "debug_info",
            name => name,
        };
        let is_taken = |schema: &Schema, parent, name: &str| schema.child(parent, name).is_some();
        let debug_info = match (context, vpid, ip) {
            (Some(context), Some(_), Some(_)) if !is_taken(&class.schema, context, field_name) => {
                let schema = &mut class.schema;
                let whole = schema.push_child(context, Some(field_name.into()), Kind::Struct);
                let mut text = |name: &str| schema.push_child(whole, Some(name.into()), Kind::Text);
                Some(DebugInfo {
                    whole,
                    binary: text("bin"),
                    function: text("func"),
                    source: text("src"),
                })
            }
            _ => None,
        };
        let addresses = match names.options.are_grouped {
            true => address_fields(&mut class),
            false => Vec::new(),
        };
        Self {
            class,
            context,
            vpid,
            ip,
            debug_info,
            addresses,
        }
    }

    /// Whether events get anything.
    pub(super) fn has_any(&self) -> bool {
        self.debug_info.is_some() || !self.addresses.is_empty()
    }

    /// Whether they get what process they are of decides.
    pub(super) fn needs_process(&self) -> bool {
        self.debug_info.is_some()
    }

    /// The field with the name of the address that a field holds.
    pub(super) fn symbol(&self, field: FieldId) -> Option<FieldId> {
        let found = self.addresses.iter();
        let mut found = found.filter(|address| address.array.unwrap_or(address.value) == field);
        found.next().map(|address| address.symbol)
    }

    /// Whether a recorded field is needed for those that are wanted.
    pub(super) fn needs(&self, field: FieldId, wanted: &dyn Fn(FieldId) -> bool) -> bool {
        let of_debug_info = self.debug_info.is_some_and(|fields| {
            [fields.whole, fields.binary, fields.function, fields.source]
                .into_iter()
                .any(wanted)
        });
        let is_about_process = Some(field) == self.vpid || Some(field) == self.context;
        if of_debug_info && (is_about_process || Some(field) == self.ip) {
            return true;
        }
        self.addresses.iter().any(|address| {
            wanted(address.symbol)
                && (is_about_process
                    || field == address.parent
                    || field == address.value
                    || Some(field) == address.array)
        })
    }
}

/// Adds a field with names beside each field with addresses.
fn address_fields(class: &mut EventClass) -> Vec<AddressField> {
    let name = class.name.clone().unwrap_or_default();
    let schema = &mut class.schema;
    let mut found = Vec::new();
    for scope in [Scope::CommonContext, Scope::SpecificContext, Scope::Payload] {
        let Some(parent) = schema.root(scope) else {
            continue;
        };
        if schema.field(parent).kind != Kind::Struct {
            continue;
        }
        for field in schema.field(parent).children.clone() {
            let info = schema.field(field);
            let Some(of_name) = info
                .name
                .clone()
                .filter(|other| is_address_name(&name, other))
            else {
                continue;
            };
            let element = match (&info.kind, info.children.first()) {
                (Kind::Array { .. }, Some(&element)) => Some(element),
                _ => None,
            };
            let value = element.unwrap_or(field);
            if !is_address(&schema.field(value).kind) {
                continue;
            }
            let symbol_name: Arc<str> = format!("{of_name}_symbol").into();
            if schema.child(parent, &symbol_name).is_some() {
                continue;
            }
            let symbol = schema.push_child(parent, Some(symbol_name), Kind::Text);
            found.push(AddressField {
                parent,
                value,
                array: element.map(|_| field),
                symbol,
            });
        }
    }
    found
}

/// Where addresses of an event are looked up.
#[derive(Clone, Copy)]
pub(super) struct Lookup<'l> {
    pub(super) names: &'l Names,
    pub(super) processes: &'l Processes,
    /// When the event happened.
    pub(super) time: Option<i64>,
}

impl Lookup<'_> {
    fn name(&self, vpid: Option<i64>, address: u64, is_early: bool) -> Option<Arc<AddressName>> {
        let find = |(vpid, time)| self.processes.find(vpid, time, address, is_early);
        let found = vpid.zip(self.time).and_then(find);
        match found {
            Some((image, within, is_relative)) => {
                Some(self.names.of_image(image, within, is_relative))
            }
            None => self.names.of_kernel(address),
        }
    }
}

/// Hands values on, and the names of addresses behind them.
pub(super) struct Symbolizer<'s, V> {
    inner: &'s mut V,
    class: &'s ClassSymbols,
    lookup: Lookup<'s>,
    vpid: Option<i64>,
    ip: u64,
    /// Addresses that were met, each with the position of its field.
    met: Vec<(usize, u64)>,
}

impl<'s, V: Visitor> Symbolizer<'s, V> {
    pub(super) fn new(inner: &'s mut V, class: &'s ClassSymbols, lookup: Lookup<'s>) -> Self {
        Self {
            inner,
            class,
            lookup,
            vpid: None,
            ip: 0,
            met: Vec::new(),
        }
    }

    fn end_context(&mut self) {
        let Some(fields) = self.class.debug_info else {
            return;
        };
        let DebugInfo {
            whole,
            binary,
            function,
            source,
        } = fields;
        let wanted = [whole, binary, function, source];
        if !wanted.into_iter().any(|field| self.inner.wants(field)) {
            return;
        }
        let name = self
            .lookup
            .name(self.vpid, self.ip, false)
            .unwrap_or_default();
        self.inner.begin_struct(whole);
        self.inner.text(binary, name.binary.as_bytes());
        self.inner.text(function, name.function.as_bytes());
        self.inner.text(source, name.source.as_bytes());
        self.inner.end_struct(whole);
    }

    fn end_addresses(&mut self, parent: FieldId) {
        for (position, field) in self.class.addresses.iter().enumerate() {
            if field.parent != parent || !self.inner.wants(field.symbol) {
                continue;
            }
            let met = self.met.iter().filter(|&&(field, _)| field == position);
            let mut text = String::new();
            let innermost = met.clone().next().copied();
            // LTTng lists the innermost call first.
            for &(_, address) in met.rev() {
                if !text.is_empty() {
                    text.push(';');
                }
                if text.len() > MOST_TEXT {
                    break;
                }
                // Where a call returns to may be behind the end of the function that calls.
                let is_innermost = innermost.is_some_and(|(_, innermost)| innermost == address);
                let within = match is_innermost {
                    true => address,
                    false => address.saturating_sub(1),
                };
                match self.lookup.name(self.vpid, within, true) {
                    Some(name) => match field.array {
                        Some(_) => text.push_str(&name.symbol.replace(';', ",")),
                        None => text.push_str(&name.symbol),
                    },
                    None => text.push_str(&format!("{address:#x}")),
                }
            }
            self.inner.text(field.symbol, text.as_bytes());
        }
    }
}

/// Methods that only hand on.
macro_rules! hand_on {
    ($($method:ident($($argument:ident: $type:ty),*);)*) => {$(
        #[inline(always)]
        fn $method(&mut self, $($argument: $type),*) {
            self.inner.$method($($argument),*);
        }
    )*};
}

impl<V: Visitor> Visitor for Symbolizer<'_, V> {
    const POSITIONS: bool = V::POSITIONS;

    fn wants(&self, field: FieldId) -> bool {
        self.inner.wants(field) || self.class.needs(field, &|field| self.inner.wants(field))
    }

    fn uint(&mut self, field: FieldId, value: u64) {
        if Some(field) == self.class.ip {
            self.ip = value;
        }
        let position = self
            .class
            .addresses
            .iter()
            .position(|address| address.value == field);
        // Call stacks of the kernel and of programs are parted by this number.
        if let Some(position) = position.filter(|_| self.met.len() < MOST_ADDRESSES)
            && value != u64::MAX
        {
            self.met.push((position, value));
        }
        self.inner.uint(field, value);
    }

    #[inline]
    fn sint(&mut self, field: FieldId, value: i64) {
        if Some(field) == self.class.vpid {
            self.vpid = Some(value);
        }
        self.inner.sint(field, value);
    }

    #[inline]
    fn end_struct(&mut self, field: FieldId) {
        if Some(field) == self.class.context {
            self.end_context();
        }
        if !self.class.addresses.is_empty() {
            self.end_addresses(field);
        }
        self.inner.end_struct(field);
    }

    hand_on! {
        at(bit: u64);
        after(bit: u64);
        wide(field: FieldId, value: Wide<'_>);
        float(field: FieldId, value: f64);
        float128(field: FieldId, bits: u128);
        boolean(field: FieldId, value: bool);
        bits(field: FieldId, value: u64);
        text(field: FieldId, text: &[u8]);
        blob(field: FieldId, bytes: &[u8]);
        begin_struct(field: FieldId);
        begin_array(field: FieldId, length: u64);
        end_array(field: FieldId);
        begin_optional(field: FieldId, present: bool, selector: u64);
        end_optional(field: FieldId);
        begin_variant(field: FieldId, selected: u32, selector: u64);
        end_variant(field: FieldId);
    }
}
