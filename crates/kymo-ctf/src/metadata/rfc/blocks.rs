//! The blocks: trace, sections and events put together (§7).
//!
//! They may come in any order: all types are declared first, then the sections are made, then
//! the events.

use std::collections::HashMap;
use std::sync::Arc;

use kymo_machine::ByteOrder;
use kymo_text::diagnostic::Diagnostic;
use kymo_time::Clock;

use super::ast::{Block, BlockKind};
use super::attributes;
use super::declare::{Base, Declarations};
use super::layout::Fixed;
use super::types::{Types, no_structure};
use crate::class::{Dialect, EventRecordClass, FieldClass, StreamClass, TraceClass};
use crate::metadata::lexer::Span;
use crate::metadata::limits::{SPARE_CLASSES, Warnings};

/// Makes a trace of the tree; also returns the warnings.
pub(super) fn lower(
    root: &[Block],
    text_length: usize,
    order: ByteOrder,
    mut warnings: Warnings,
) -> Result<(TraceClass, Vec<Diagnostic>), Diagnostic> {
    version(root, &mut warnings)?;
    let mut declarations = Declarations::new();
    let mut sections = Vec::new();
    for block in root {
        match block.kind {
            BlockKind::Type | BlockKind::AbstractType => {
                declarations.declare(block, 0)?;
                if block.name.is_none() {
                    warnings.push(
                        Diagnostic::warning("a type without a name, which nothing can use")
                            .at(block.span, "expected a name after this"),
                    );
                }
            }
            BlockKind::Section => {
                let scope = declarations.scope();
                declare_within(block, scope, &mut declarations)?;
                sections.push((block, scope));
            }
            _ => {}
        }
    }
    let types = Types::new(
        declarations,
        order,
        warnings,
        text_length.saturating_add(SPARE_CLASSES),
    )?;
    let fixed = Fixed {
        order,
        alignment: types.alignment,
    };
    let mut lowering = Lowering {
        types,
        fixed,
        sections: Vec::new(),
        positions: HashMap::new(),
    };
    lowering.types.check()?;
    lowering.compare_headers()?;
    for (block, scope) in sections {
        lowering.section(block, scope)?;
    }
    for block in root.iter().filter(|block| block.kind == BlockKind::Event) {
        lowering.event(block)?;
    }
    let class = TraceClass {
        dialect: Dialect::Rfc11,
        namespace: None,
        name: None,
        uid: None,
        uuid: None,
        byte_order: Some(order),
        environment: Vec::new(),
        packet_header: Some(lowering.fixed.packet_header()),
        // The RFC has no clocks: times are taken for nanoseconds.
        clocks: vec![Arc::new(Clock {
            name: Some("default".to_owned()),
            ..Clock::default()
        })],
        streams: lowering.sections.into_iter().map(|s| s.class).collect(),
        attributes: Vec::new(),
    };
    Ok((class, lowering.types.warnings.0))
}

/// Checks that the metadata is of RFC v1.1.
fn version(root: &[Block], warnings: &mut Warnings) -> Result<(), Diagnostic> {
    let mut traces = root.iter().filter(|block| block.kind == BlockKind::Trace);
    let Some(trace) = traces.next() else {
        return Err(Diagnostic::error("no `trace` block")
            .with_help("`trace { major = 1; minor = 1; }` is what it must be"));
    };
    if let Some(second) = traces.next() {
        return Err(Diagnostic::error("two `trace` blocks")
            .at(second.span, "second block")
            .because(trace.span, "first block"));
    }
    attributes::check(trace, "the trace", &["major", "minor"], warnings)?;
    let major = attributes::require(trace, "the `trace` block", "major")?;
    let minor = attributes::require(trace, "the `trace` block", "minor")?;
    match (attributes::unsigned(major)?, attributes::unsigned(minor)?) {
        (1, 1) => Ok(()),
        (major, number) => Err(Diagnostic::error(format!(
            "metadata of RFC v1.1 with version {major}.{number}"
        ))
        .at(minor.span, "expected `major = 1; minor = 1;`")),
    }
}

/// Declares the types in a section's braces, and in those within.
fn declare_within<'a>(
    block: &'a Block,
    scope: usize,
    declarations: &mut Declarations<'a>,
) -> Result<(), Diagnostic> {
    for inner in &block.blocks {
        match inner.kind {
            BlockKind::Type | BlockKind::AbstractType => declarations.declare(inner, scope)?,
            _ => declare_within(inner, scope, declarations)?,
        }
    }
    Ok(())
}

struct Lowering<'a> {
    types: Types<'a>,
    fixed: Fixed,
    sections: Vec<Section>,
    /// Positions in `sections` by name.
    positions: HashMap<&'a str, usize>,
}

/// A section that is being put together.
struct Section {
    class: StreamClass,
    /// Place of its name.
    span: Span,
    /// The numbers of its event classes, and where they are declared.
    events: HashMap<u64, Span>,
}

impl<'a> Lowering<'a> {
    /// Compares what the trace declares of headers with what they are: that is fixed.
    fn compare_headers(&mut self) -> Result<(), Diagnostic> {
        let (few, many) = (self.fixed.event_header(1), self.fixed.event_header(2));
        let extended = |header: &FieldClass| match header {
            FieldClass::Struct { members, .. } => match &members[2].class {
                FieldClass::Optional { content, .. } => sizes(content),
                _ => Vec::new(),
            },
            _ => Vec::new(),
        };
        for (name, fixed) in [
            ("packet_header", sizes(&self.fixed.packet_header())),
            ("event_header_1", sizes(&few)),
            ("event_header_1_ext", extended(&few)),
            ("event_header_2", sizes(&many)),
            ("event_header_2_ext", extended(&many)),
        ] {
            let Some(at) = self.types.declarations.of_trace(name) else {
                continue;
            };
            let declaration = self.types.declarations.get(at);
            if self.types.declarations.is_abstract(at)
                || sizes(&self.types.declared(at, declaration.span)?.class) != fixed
            {
                self.types.warnings.push(
                    Diagnostic::warning(format!("`{name}` is not as it is in RFC v1.1"))
                        .at(declaration.span, "not used")
                        .with_help("the RFC fixes what packets and events begin with"),
                );
            }
        }
        Ok(())
    }

    /// A `section` block.
    fn section(&mut self, block: &'a Block, scope: usize) -> Result<(), Diagnostic> {
        const OWNER: &str = "the section";
        attributes::check(block, OWNER, &["name"], &mut self.types.warnings)?;
        let name_value = attributes::require(block, OWNER, "name")?;
        let name = attributes::name(name_value)?;
        if let Some(&first) = self.positions.get(name) {
            return Err(Diagnostic::error(format!("two sections `{name}`"))
                .at(name_value.span, "declared again")
                .because(self.sections[first].span, "first declared here"));
        }
        let mut events = blocks(block, BlockKind::Event);
        let Some(event) = events.next() else {
            return Err(Diagnostic::error("the section has no `event`").at(
                block.span,
                "expected `event { header_type = type1; }` or `type2` in this",
            ));
        };
        if let Some(second) = events.next() {
            return Err(Diagnostic::error("the section has two `event` blocks")
                .at(second.span, "second block")
                .because(event.span, "first block"));
        }
        let known = ["header_type", "context"];
        let owner = "the section's events";
        attributes::check(event, owner, &known, &mut self.types.warnings)?;
        let header_type = attributes::require(event, "the section's `event` block", "header_type")?;
        let header_type = attributes::header_type(header_type)?;
        let class = StreamClass {
            id: self.sections.len() as u64,
            name: Some(name.to_owned()),
            clock: Some(0),
            event_header: Some(self.fixed.event_header(header_type)),
            common_context: self.context(block, event, scope)?,
            ..StreamClass::default()
        };
        self.positions.insert(name, self.sections.len());
        self.sections.push(Section {
            class,
            span: name_value.span,
            events: HashMap::new(),
        });
        Ok(())
    }

    /// The context of a section's events (§6.2), for which the RFC has two forms and only half
    /// of a third: a structure in the context's braces, one declared elsewhere in the section,
    /// or no more than that events have sizes.
    fn context(
        &mut self,
        section: &'a Block,
        event: &'a Block,
        scope: usize,
    ) -> Result<Option<FieldClass>, Diagnostic> {
        let mut contexts = blocks(event, BlockKind::Context);
        let context = contexts.next();
        if let (Some(first), Some(second)) = (context, contexts.next()) {
            return Err(
                Diagnostic::error("the section's events have two `context` blocks")
                    .at(second.span, "second block")
                    .because(first.span, "first block"),
            );
        }
        let mut event_size = None;
        if let Some(context) = context {
            let owner = "the context";
            attributes::check(context, owner, &["event_size"], &mut self.types.warnings)?;
            event_size = attributes::get(context, "event_size");
        }
        let has_size = event_size.map(attributes::boolean).transpose()? == Some(true);
        let class = match attributes::get(event, "context") {
            Some(named) => Some(self.types.structure(named, scope)?),
            None => {
                let places = [context, Some(event), Some(section)];
                self.structure_in(places.into_iter().flatten(), scope)?
            }
        };
        let Some(class) = class else {
            return Ok(has_size.then(|| self.fixed.payload_size()));
        };
        let names_size = matches!(&class, FieldClass::Struct { members, .. }
            if members.iter().any(|member| &*member.name == "payload_size"));
        if let Some(event_size) = event_size.filter(|_| has_size && !names_size) {
            self.types.warnings.push(
                Diagnostic::warning("events have sizes, but their context has no `payload_size`")
                    .at(event_size.span, "not used"),
            );
        }
        Ok(Some(class))
    }

    /// The structure that is declared in the innermost of some braces that declare any.
    fn structure_in(
        &mut self,
        places: impl Iterator<Item = &'a Block>,
        scope: usize,
    ) -> Result<Option<FieldClass>, Diagnostic> {
        for place in places {
            let mut found: Option<&Block> = None;
            for body in blocks(place, BlockKind::Type) {
                let is_header = body
                    .name
                    .as_ref()
                    .is_some_and(|name| is_header(&name.value));
                let is_structure =
                    self.types.declarations.lineage(body, scope)?.base == Base::Struct;
                if !is_structure && place.kind == BlockKind::Context && body.name.is_none() {
                    return Err(no_structure(body.span));
                }
                if !is_structure || is_header {
                    continue;
                }
                if let Some(first) = found.replace(body) {
                    return Err(
                        Diagnostic::error("which of these structures is the context?")
                            .at(body.span, "this one?")
                            .because(first.span, "or this one?")
                            .with_help("write it within the braces of `context { ... }`"),
                    );
                }
            }
            if let Some(body) = found {
                return Ok(Some(self.types.build(body, scope, body.span)?.class));
            }
        }
        Ok(None)
    }

    /// An `event` block.
    fn event(&mut self, block: &'a Block) -> Result<(), Diagnostic> {
        const OWNER: &str = "the event";
        let known = ["name", "id", "section", "fields"];
        attributes::check(block, OWNER, &known, &mut self.types.warnings)?;
        let name = attributes::name(attributes::require(block, OWNER, "name")?)?;
        let id_value = attributes::require(block, OWNER, "id")?;
        let id = attributes::unsigned(id_value)?;
        if id > u32::MAX.into() {
            return Err(Diagnostic::error(format!("event number {id} is too large"))
                .at(id_value.span, format!("expected at most {}", u32::MAX)));
        }
        let section_value = attributes::require(block, OWNER, "section")?;
        let section = attributes::name(section_value)?;
        let Some(&position) = self.positions.get(section) else {
            return Err(Diagnostic::error(format!("unknown section `{section}`"))
                .at(section_value.span, "expected the name of a `section` block"));
        };
        let payload = match attributes::get(block, "fields") {
            Some(fields) => Some(self.types.structure(fields, 0)?),
            None => None,
        };
        let section = &mut self.sections[position];
        if let Some(first) = section.events.insert(id, id_value.span) {
            return Err(
                Diagnostic::error(format!("two events of the section have number {id}"))
                    .at(id_value.span, "given again")
                    .because(first, "first given here"),
            );
        }
        section.class.events.push(EventRecordClass {
            payload,
            ..EventRecordClass::new(id, Some(name.into()))
        });
        Ok(())
    }
}

fn blocks(block: &Block, kind: BlockKind) -> impl Iterator<Item = &Block> {
    block.blocks.iter().filter(move |inner| inner.kind == kind)
}

/// Whether a type of this name describes what the RFC fixes.
fn is_header(name: &str) -> bool {
    name == "packet_header" || name.starts_with("event_header_")
}

/// The sizes of a structure's integers.
fn sizes(class: &FieldClass) -> Vec<u32> {
    let FieldClass::Struct { members, .. } = class else {
        return Vec::new();
    };
    let sizes = members.iter().filter_map(|member| match &member.class {
        FieldClass::Integer { layout, .. } => Some(layout.bits),
        _ => None,
    });
    sizes.collect()
}
