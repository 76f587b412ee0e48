//! `kymo machine layout`.

use std::io;
use std::path::Path;

use kymo_io::{read_small_text, take_small_text};
use kymo_machine::Machine;
use kymo_machine::layout::{CType, Layout, Member, Place, Struct, parse};
use kymo_text::Line;
use kymo_text::diagnostic::Diagnostic;
use kymo_text::json::Writer;

use super::values::{Values, bytes};
use super::{hex, spaced};
use crate::args::machine::Layout as Args;
use crate::terminal::{Failure, Outcome, Terminal};

/// The bytes of no larger struct are shown.
const LARGEST_STRUCT: u64 = 16 << 20;

/// Shows where the members of structs are.
pub(super) fn run(args: &Args, terminal: &Terminal) -> Result<Outcome, Failure> {
    let text = read(&args.file, terminal)?;
    let name = args.file.display().to_string();
    let structs = parse(&text).map_err(|error| {
        let picture = Diagnostic::error(error.message).at(error.range, error.label);
        terminal.report(format!("{}\n", picture.render(&name, &text, terminal.color())).as_bytes());
        Failure::Unreadable
    })?;
    let values = match &args.values {
        Some(path) => Some(read_values(path, &structs, terminal)?),
        None => None,
    };
    let unreadable = |error: String| {
        terminal.error(error);
        Failure::Unreadable
    };
    let mut out = Line::new();
    for description in &structs {
        let type_name = description.name.as_ref();
        let layout = Layout::of(description, args.machine)
            .map_err(|error| unreadable(format!("{name}: `{type_name}`: {error}")))?;
        let bytes = match &values {
            Some(_) if layout.size > LARGEST_STRUCT => {
                let size = layout.size;
                let error = format!("{name}: `{type_name}` has {size} bytes: too many to be shown");
                return Err(unreadable(error));
            }
            Some(values) => Some(
                bytes(description, &layout, args.machine, values)
                    .map_err(|error| unreadable(format!("{}: {error}", values.name)))?,
            ),
            None => None,
        };
        let shown = Shown {
            description,
            layout: &layout,
            machine: args.machine,
            bytes: bytes.as_deref(),
        };
        match args.json {
            true => out.push(&shown.json()),
            false => shown.text(&mut out),
        }
    }
    terminal.write(out.as_bytes())?;
    Ok(Outcome::Good)
}

/// The text of a file, or of standard input.
fn read(path: &Path, terminal: &Terminal) -> Result<String, Failure> {
    let result = match path == Path::new("-") {
        true => take_small_text(&mut io::stdin().lock()),
        false => read_small_text(path),
    };
    result.map_err(|error| {
        terminal.explained(&kymo::explain::reading(path, &error));
        Failure::Unreadable
    })
}

fn read_values(path: &Path, structs: &[Struct], terminal: &Terminal) -> Result<Values, Failure> {
    let text = read(path, terminal)?;
    let name = path.display().to_string();
    Values::parse(&name, &text, structs).map_err(|error| {
        let picture = error.render(&name, &text, terminal.color());
        terminal.report(format!("{picture}\n").as_bytes());
        Failure::Unreadable
    })
}

/// A struct that is shown.
struct Shown<'a> {
    description: &'a Struct,
    layout: &'a Layout,
    machine: &'a Machine,
    bytes: Option<&'a [u8]>,
}

impl Shown<'_> {
    /// A line for each member and each padding, and one for the whole.
    fn text(&self, out: &mut Line) {
        if !out.is_empty() {
            out.push_byte(b'\n');
        }
        let Layout { size, align, .. } = self.layout;
        let line = format!(
            "{} on {}: {size} bytes, alignment {align}\n      offset        size\n",
            title(self.description),
            self.machine.name(),
        );
        out.push(line.as_bytes());
        members_text(self.description, self.layout, 0, 0, out);
        for eight in self.bytes.unwrap_or_default().chunks(8) {
            for four in eight.chunks(4) {
                out.push(spaced(four).as_bytes());
                if four.len() == 4 {
                    out.push(b"  ");
                }
            }
            out.push_byte(b'\n');
        }
    }

    /// One object.
    fn json(&self) -> Vec<u8> {
        let kind = match self.description.is_union {
            true => "union",
            false => "struct",
        };
        let mut json = Writer::default();
        json.begin_object();
        json.entry(kind, &*self.description.name);
        json.entry("machine", self.machine.name());
        whole_json(self.description, self.layout, 0, &mut json);
        if let Some(bytes) = self.bytes {
            json.entry("bytes", hex(bytes).as_str());
        }
        json.end_object();
        json.finish()
    }
}

/// The lines of the members of a struct that begins at `start`, `level` structs deep. Of an
/// array of structs, the first one is shown.
fn members_text(description: &Struct, layout: &Layout, start: u64, level: usize, out: &mut Line) {
    for (member, place) in description.members.iter().zip(&layout.members) {
        let offset = start + place.offset;
        if place.padding > 0 {
            row(offset - place.padding, place.padding, level, "padding", out);
        }
        row(offset, place.size, level, &declaration(member), out);
        if let (Some(inner), Some(layout)) = (inner(&member.ctype), &place.nested) {
            members_text(inner, layout, offset, level + 1, out);
        }
    }
    if layout.padding > 0 {
        let offset = start + layout.size - layout.padding;
        row(offset, layout.padding, level, "padding", out);
    }
}

fn row(offset: u64, size: u64, level: usize, what: &str, out: &mut Line) {
    let indent = 2 * level;
    out.push(format!("{offset:>12}{size:>12}  {:indent$}{what}\n", "").as_bytes());
}

/// Writes the facts about a struct as a whole and about its members.
fn whole_json(description: &Struct, layout: &Layout, start: u64, json: &mut Writer) {
    json.entry("size", layout.size);
    json.entry("align", layout.align);
    json.entry("padding_behind", layout.padding);
    json.begin_list("members");
    for (member, place) in description.members.iter().zip(&layout.members) {
        json.begin_object();
        member_json(member, place, start, json);
        json.end_object();
    }
    json.end_list();
}

fn member_json(member: &Member, place: &Place, start: u64, json: &mut Writer) {
    json.entry("name", &*member.name);
    let (name, counts) = type_name(&member.ctype);
    json.entry("type", &*format!("{name}{counts}"));
    let offset = start + place.offset;
    json.entry("offset", offset);
    json.entry("size", place.size);
    json.entry("align", place.align);
    json.entry("padding_before", place.padding);
    if let (Some(inner), Some(layout)) = (inner(&member.ctype), &place.nested) {
        json.key("element");
        json.begin_object();
        whole_json(inner, layout, offset, json);
        json.end_object();
    }
}

/// The struct that a type is, or an array is made of.
fn inner(ctype: &CType) -> Option<&Struct> {
    match ctype {
        CType::Struct(description) => Some(description),
        CType::Array { element, .. } => inner(element),
        _ => None,
    }
}

/// A struct as its declaration begins.
fn title(description: &Struct) -> String {
    let kind = match description.is_union {
        true => "union",
        false => "struct",
    };
    format!("{kind} {}", description.name)
        .trim_end()
        .to_string()
}

/// A member as C declares it.
fn declaration(member: &Member) -> String {
    let (name, counts) = type_name(&member.ctype);
    format!("{name} {}{counts}", member.name)
}

/// The name of a type, and the numbers of elements that stand behind the name of an array.
fn type_name(ctype: &CType) -> (String, String) {
    match ctype {
        CType::Array { element, count } => {
            let (name, counts) = type_name(element);
            (name, format!("[{count}]{counts}"))
        }
        CType::Struct(description) => (title(description), String::new()),
        scalar => (scalar_name(scalar), String::new()),
    }
}

/// The name of a type that is neither an array nor a struct.
pub(super) fn scalar_name(ctype: &CType) -> String {
    let name = match ctype {
        CType::Char => "char",
        CType::Int { width, signed } => {
            let sign = if *signed { "" } else { "u" };
            return format!("{sign}int{}_t", width.bits());
        }
        CType::Long { signed: true } => "long",
        CType::Long { signed: false } => "unsigned long",
        CType::Size { signed: true } => "ssize_t",
        CType::Size { signed: false } => "size_t",
        CType::Time => "time_t",
        CType::Float => "float",
        CType::Double => "double",
        CType::Pointer => "void*",
        CType::Enum(_) => "enum",
        CType::Array { .. } => "array",
        CType::Struct(_) => "struct",
    };
    name.to_string()
}
