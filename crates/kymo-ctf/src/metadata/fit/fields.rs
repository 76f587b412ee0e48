//! Field classes, each as the dialect can hold it.

use std::borrow::Cow;
use std::sync::Arc;

use kymo_machine::ByteOrder;
use kymo_model::{Base, Scope};

use super::labels::{label_of, labels_of};
use super::layout::{at_its_unit, raise, raise_first, unit};
use super::log::{FitError, Log, Rule};
use super::names::Names;
use crate::class::{
    BitLayout, Dialect, Encoding, FieldClass, FieldPath, FieldRef, IntegerStyle, Length, Member,
    Role, Step, VariantOption,
};
use crate::deep::{MAX_LEVELS, has_room};
use crate::metadata::{ctf2, tsdl};
use crate::units::{self, Extent, at_beginning};

/// Fits the field classes of one scope.
pub(super) struct Fields<'f, 'a> {
    pub(super) from: Dialect,
    pub(super) to: Dialect,
    /// The native byte order.
    pub(super) native: ByteOrder,
    /// Whether the metadata has a UUID.
    pub(super) has_uuid: bool,
    /// Whether any length lies within its array, text or BLOB.
    pub(super) has_inline: bool,
    /// The structures of the scopes as they were, in which references are looked up.
    pub(super) old: &'f [Option<&'a FieldClass>; 6],
    pub(super) scope: Scope,
    /// The way to the field in hand, in the fitted structure.
    pub(super) steps: Vec<Step>,
    pub(super) log: &'f mut Log,
}

impl Fields<'_, '_> {
    /// Fits the structure of the scope.
    pub(super) fn root(mut self, class: &FieldClass) -> Result<FieldClass, FitError> {
        match class {
            FieldClass::Struct { .. } => self.class(class, 1),
            _ => Err(self.log.error("no structure", "put it in a structure")),
        }
    }

    fn class(&mut self, class: &FieldClass, depth: usize) -> Result<FieldClass, FitError> {
        if !has_room(depth) {
            return Err(self.log.error(
                "field classes lie too deep within each other",
                &format!("use at most {MAX_LEVELS} levels"),
            ));
        }
        let is_ctf2 = self.to == Dialect::Ctf2;
        Ok(match class {
            FieldClass::BitArray(layout) if is_ctf2 => FieldClass::BitArray(self.layout(layout)),
            FieldClass::BitArray(layout) => {
                self.log.note(Rule::BitsAsInteger);
                self.integer(layout, Base::Hexadecimal, None)
            }
            FieldClass::BitMap { layout, flags } if is_ctf2 => FieldClass::BitMap {
                layout: self.layout(layout),
                flags: flags.clone(),
            },
            FieldClass::BitMap { layout, flags } => {
                self.log.note(Rule::FlagsAsLabels);
                let labels = labels_of(flags, layout.bits);
                self.integer(layout, Base::Hexadecimal, Some(Arc::new(labels)))
            }
            FieldClass::Bool(layout) if is_ctf2 => FieldClass::Bool(self.layout(layout)),
            FieldClass::Bool(layout) => {
                self.log.note(Rule::BoolAsInteger);
                self.integer(layout, Base::Decimal, None)
            }
            FieldClass::Integer { layout, style } => FieldClass::Integer {
                layout: self.layout(layout),
                style: self.style(style, layout.bits),
            },
            FieldClass::VarInteger(style) if is_ctf2 => {
                FieldClass::VarInteger(self.style(style, 64))
            }
            FieldClass::VarInteger(style) => {
                self.log.note(Rule::VarAsFixed);
                FieldClass::Integer {
                    layout: self.plain(64),
                    style: self.style(style, 64),
                }
            }
            FieldClass::Float(layout) => self.float(layout)?,
            FieldClass::Text { encoding, align } => {
                self.text_align(*align);
                let encoding = self.encoding(*encoding);
                FieldClass::Text { encoding, align: 8 }
            }
            FieldClass::SizedText {
                length,
                encoding,
                align,
            } => {
                self.text_align(*align);
                if self.to == Dialect::Rfc11 {
                    self.log.note(Rule::TextAsUtf8);
                    return Ok(FieldClass::Text {
                        encoding: Encoding::Utf8,
                        align: 8,
                    });
                }
                match self.encoding(*encoding) {
                    // The length counts bytes of the encoding.
                    kept if kept != *encoding => FieldClass::Text {
                        encoding: kept,
                        align: 8,
                    },
                    encoding => FieldClass::SizedText {
                        length: self.length(length, depth)?,
                        encoding,
                        align: 8,
                    },
                }
            }
            FieldClass::Blob {
                length,
                media_type,
                roles,
            } => self.blob(length, media_type, roles, depth)?,
            FieldClass::Struct { members, min_align } => {
                let members = self.members(members, *min_align, depth)?;
                self.structure(members, *min_align)
            }
            FieldClass::Array {
                element,
                length,
                min_align,
                roles,
            } => self.array((element, length, *min_align), roles, depth)?,
            FieldClass::Optional {
                content,
                selector,
                when,
            } if is_ctf2 => FieldClass::Optional {
                content: Box::new(self.part(None, Step::Content, content, depth)?),
                selector: self.reference(selector),
                when: when.clone(),
            },
            FieldClass::Optional { content, .. } if self.to == Dialect::Rfc11 => {
                self.log.note(Rule::OptionalAsSequence);
                let content = self.part(None, Step::Element, content, depth)?;
                self.none_or_one(content)
            }
            FieldClass::Variant { options, selector } if self.to == Dialect::Rfc11 => {
                self.log.note(Rule::VariantAsSequences);
                let options = self.options(options, selector, depth + 1)?;
                let members = options.into_iter().map(|option| {
                    let name = option.name.unwrap_or_default();
                    Member::new(name, self.none_or_one(option.class))
                });
                let members = members.collect();
                self.structure(members, 1)
            }
            FieldClass::Optional {
                content,
                selector,
                when,
            } => {
                self.log.note(Rule::OptionalAsVariant);
                let (absent, present) = self.both(selector, when)?;
                let option = |name: &str, class, when| VariantOption {
                    name: Some(name.into()),
                    class,
                    when,
                };
                let content = self.part(None, Step::Child(1), content, depth)?;
                FieldClass::Variant {
                    options: vec![
                        option("none", structure(Vec::new()), absent),
                        option("some", content, present),
                    ],
                    selector: self.reference(selector),
                }
            }
            FieldClass::Variant { options, selector } => FieldClass::Variant {
                options: self.options(options, selector, depth)?,
                selector: self.reference(selector),
            },
        })
    }

    /// A part; where it begins with a length of its own, that becomes a part of a structure.
    fn part(
        &mut self,
        name: Option<&str>,
        step: Step,
        class: &FieldClass,
        depth: usize,
    ) -> Result<FieldClass, FitError> {
        let before = name.map(|name| self.log.enter(name));
        self.steps.push(step);
        let class = match inline(class) {
            Some(length) if self.to != Dialect::Rfc11 => {
                let members = self.with_length("length", "elements", length, class, 0, depth)?;
                structure(members.into())
            }
            _ => self.class(class, depth + 1)?,
        };
        self.steps.pop();
        if let Some(before) = before {
            self.log.leave(before);
        }
        Ok(class)
    }

    fn members(
        &mut self,
        members: &[Member],
        min_align: u32,
        depth: usize,
    ) -> Result<Vec<Member>, FitError> {
        let mut names = Names::new(members.iter().map(|member| &*member.name));
        let mut fitted: Vec<Member> = Vec::with_capacity(members.len());
        let mut before = units::Members::new(members, min_align);
        for member in members {
            let name = self.name(&member.name, &mut names);
            let position = fitted.len();
            if let Some(length) = inline(&member.class)
                && self.to != Dialect::Rfc11
            {
                let place = self.log.enter(&name);
                let of_length = names.free(&format!("{name}_length"));
                let [length, array] =
                    self.with_length(&of_length, &name, length, &member.class, position, depth)?;
                fitted.push(length);
                fitted.push(Member {
                    attributes: self.attributes(&member.attributes),
                    ..array
                });
                self.log.leave(place);
                before.pass(Extent::of(&member.class));
                continue;
            }
            let placed = match self.to {
                _ if self.keeps_units() => None,
                Dialect::Rfc11 if self.from == Dialect::Ctf18 => {
                    self.without_unit(&name, &member.class, min_align)
                }
                Dialect::Rfc11 => None,
                _ => at_its_unit(&member.class, &before),
            };
            match before.padding(&member.class) {
                Some(padding) => before.pass_bits(&member.class, padding),
                None => before.pass(Extent::of(&member.class)),
            }
            let class = placed.as_ref().unwrap_or(&member.class);
            let class = self.part(Some(&name), Step::Child(position), class, depth)?;
            fitted.push(Member {
                name,
                class,
                attributes: self.attributes(&member.attributes),
            });
        }
        Ok(fitted)
    }

    /// Whether bit fields stay what they are: TSDL is read again as TSDL.
    pub(super) fn keeps_units(&self) -> bool {
        (self.from, self.to) == (Dialect::Ctf18, Dialect::Ctf18)
    }

    /// A bit field whose unit would increase the alignment of the structure in RFC v1.1, without
    /// that unit.
    fn without_unit(
        &mut self,
        name: &str,
        class: &FieldClass,
        min_align: u32,
    ) -> Option<FieldClass> {
        class.layout()?.unit.filter(|unit| *unit > min_align)?;
        let mut placed = class.clone();
        placed.layout_mut()?.unit = None;
        let before = self.log.enter(name);
        self.log.note(Rule::Unit);
        self.log.leave(before);
        Some(placed)
    }

    /// A structure: in RFC v1.1 it is aligned as its first member is, or as units are.
    fn structure(&mut self, mut members: Vec<Member>, min_align: u32) -> FieldClass {
        let mut min_align = min_align;
        if self.to == Dialect::Rfc11 {
            let implied = members.iter().map(|member| unit(&member.class)).max();
            let implied = implied.unwrap_or(1);
            let aligned = members.iter().map(|member| member.class.align()).max();
            let is_less = min_align > implied.max(aligned.unwrap_or(1));
            let is_raised = is_less
                && (members.first_mut()).is_some_and(|m| raise_first(&mut m.class, min_align));
            if is_less && !is_raised {
                self.log
                    .note(Rule::Align(implied.max(aligned.unwrap_or(1))));
            }
            min_align = implied;
        }
        FieldClass::Struct { members, min_align }
    }

    /// Members' attributes; decoding ignores them, and so do all dialects but CTF 2.
    fn attributes(&mut self, attributes: &[(String, String)]) -> Vec<(String, String)> {
        match self.to {
            Dialect::Ctf2 => attributes.to_vec(),
            _ => {
                if !attributes.is_empty() {
                    self.log.note(Rule::Lost("what attributes of members say"));
                }
                Vec::new()
            }
        }
    }

    /// The length of an array, text or BLOB, and what it is the length of, as two members of a
    /// structure of which the first one has this position.
    fn with_length(
        &mut self,
        length_name: &str,
        name: &str,
        length: &FieldClass,
        class: &FieldClass,
        position: usize,
        depth: usize,
    ) -> Result<[Member; 2], FitError> {
        self.log.note(Rule::LengthAsField);
        self.steps.push(Step::Child(position));
        let counted = self.class(length, depth + 1)?;
        let target = FieldPath {
            scope: self.scope,
            steps: self.steps.clone(),
        };
        self.steps.pop();
        self.steps.push(Step::Child(position + 1));
        // With any other length, the class does not begin with one.
        let mut class = self.class(&with(class, Length::Static(0)), depth + 1)?;
        self.steps.pop();
        if let FieldClass::Array { length, .. }
        | FieldClass::SizedText { length, .. }
        | FieldClass::Blob { length, .. } = &mut class
        {
            *length = Length::Dynamic(FieldRef {
                targets: vec![target],
            });
        }
        Ok([Member::new(length_name, counted), Member::new(name, class)])
    }

    fn array(
        &mut self,
        (element, length, min_align): (&FieldClass, &Length, u32),
        roles: &[Role],
        depth: usize,
    ) -> Result<FieldClass, FitError> {
        if self.to != Dialect::Ctf18 && !roles.is_empty() {
            if self.to == Dialect::Ctf2
                && self.has_uuid
                && *length == Length::Static(16)
                && is_byte(element)
                && min_align <= 8
            {
                self.log.note(Rule::UuidAsBlob);
                return Ok(FieldClass::Blob {
                    length: length.clone(),
                    media_type: ctf2::ANY_MEDIA.to_owned(),
                    roles: vec![Role::MetadataUuid],
                });
            }
            self.log.note(Rule::RoleLost(roles[0]));
        }
        let length = self.length(length, depth)?;
        let mut element = self.part(None, Step::Element, element, depth)?;
        let is_kept = self.to == Dialect::Ctf2 || min_align <= element.begin_align();
        if !is_kept && !raise(&mut element, min_align, self.to) {
            self.log.note(Rule::Align(element.begin_align()));
        }
        Ok(FieldClass::Array {
            element: Box::new(element),
            length,
            min_align: match self.to {
                Dialect::Ctf2 => min_align,
                _ => 1,
            },
            roles: match self.to {
                Dialect::Ctf18 => roles.to_vec(),
                _ => Vec::new(),
            },
        })
    }

    fn blob(
        &mut self,
        length: &Length,
        media_type: &str,
        roles: &[Role],
        depth: usize,
    ) -> Result<FieldClass, FitError> {
        let length = self.length(length, depth)?;
        if self.to == Dialect::Ctf2 {
            let mut roles = roles.to_vec();
            roles.retain(|role| *role != Role::MetadataUuid || self.has_uuid);
            return Ok(FieldClass::Blob {
                length,
                media_type: media_type.to_owned(),
                roles,
            });
        }
        self.log.note(Rule::BlobAsArray);
        let base = match roles.is_empty() && self.to == Dialect::Ctf18 {
            true => Base::Hexadecimal,
            false => Base::Decimal,
        };
        Ok(FieldClass::Array {
            element: Box::new(FieldClass::Integer {
                layout: self.plain(8),
                style: IntegerStyle {
                    base,
                    ..IntegerStyle::default()
                },
            }),
            length,
            min_align: 1,
            roles: match self.to {
                Dialect::Ctf18 => roles.to_vec(),
                _ => Vec::new(),
            },
        })
    }

    fn length(&mut self, length: &Length, depth: usize) -> Result<Length, FitError> {
        Ok(match (length, self.to) {
            (Length::Static(length), _) => Length::Static(*length),
            (Length::Inline(length), Dialect::Rfc11) => {
                Length::Inline(Box::new(self.class(length, depth + 1)?))
            }
            (Length::Dynamic(field), Dialect::Rfc11) => {
                self.log.note(Rule::LengthRepeated);
                let layout = match self.target(field).and_then(FieldClass::layout) {
                    Some(layout) => BitLayout {
                        reversed: false,
                        unit: None,
                        ..*layout
                    },
                    None => self.plain(64),
                };
                Length::Inline(Box::new(FieldClass::Integer {
                    layout,
                    style: IntegerStyle::default(),
                }))
            }
            (Length::Dynamic(field), _) => Length::Dynamic(self.reference(field)),
            // Those in structures have become members; the only other place is the root.
            (Length::Inline(_), _) => {
                return Err(self.log.error("no structure", "put it in a structure"));
            }
        })
    }

    /// What is there or not, in RFC v1.1: a sequence of nothing or of one element.
    fn none_or_one(&self, element: FieldClass) -> FieldClass {
        // Where what it counts may begin within a byte, the length may: bits of two byte orders
        // share none.
        let count = match first_bits(&element) {
            Some(first) if element.begin_align() == 1 => BitLayout::new(8, 1, first.order),
            _ => self.plain(8),
        };
        FieldClass::Array {
            element: Box::new(element),
            length: Length::Inline(Box::new(FieldClass::unsigned(count, &[]))),
            min_align: 1,
            roles: Vec::new(),
        }
    }

    // Names.

    /// The name as the dialect can hold it, and as no other part of the whole has it.
    fn name(&mut self, name: &Arc<str>, names: &mut Names) -> Arc<str> {
        let cleaned = match self.to {
            Dialect::Rfc11 if name.contains('\0') => tsdl::names::without_zeros(name),
            Dialect::Ctf18 if !tsdl::names::is_field(name) => tsdl::names::cleaned(name),
            _ => return name.clone(),
        };
        let fitted: Arc<str> = names.free(&cleaned).into();
        let (from, to) = (name.to_string(), fitted.to_string());
        self.log.note_at(name, Rule::Renamed { from, to });
        fitted
    }

    fn options(
        &mut self,
        options: &[VariantOption],
        selector: &FieldRef,
        depth: usize,
    ) -> Result<Vec<VariantOption>, FitError> {
        let mut names = Names::new(options.iter().filter_map(|option| option.name.as_deref()));
        let labels = match self.target(selector) {
            Some(FieldClass::Integer { style, .. } | FieldClass::VarInteger(style)) => {
                style.labels.clone()
            }
            _ => None,
        };
        let apart = match self.to {
            Dialect::Ctf2 => self.apart(options, selector)?,
            _ => None,
        };
        let mut fitted = Vec::with_capacity(options.len());
        for (position, option) in options.iter().enumerate() {
            let when = apart
                .as_ref()
                .map_or(&option.when, |apart| &apart[position]);
            let name = match (&option.name, self.to) {
                (Some(name), _) => Some(self.name(name, &mut names)),
                (None, Dialect::Ctf2) => None,
                (None, _) => {
                    let label = labels.as_deref().and_then(|l| label_of(l, &option.when));
                    let wish = match label {
                        Some(label) => tsdl::names::cleaned(label),
                        None => format!("option_{position}"),
                    };
                    let to = names.free(&wish);
                    self.log.note(Rule::Renamed {
                        from: String::new(),
                        to: to.clone(),
                    });
                    Some(to.into())
                }
            };
            let step = Step::Child(position);
            let class = match self.keeps_units() {
                true => Cow::Borrowed(&option.class),
                false => at_beginning(&option.class),
            };
            fitted.push(VariantOption {
                class: self.part(name.as_deref(), step, &class, depth)?,
                name,
                when: when.clone(),
            });
        }
        Ok(fitted)
    }
}

/// The length that a field begins with.
pub(super) fn inline(class: &FieldClass) -> Option<&FieldClass> {
    match class {
        FieldClass::Array { length, .. }
        | FieldClass::SizedText { length, .. }
        | FieldClass::Blob { length, .. } => match length {
            Length::Inline(length) => Some(length),
            _ => None,
        },
        _ => None,
    }
}

/// The same class with another length.
fn with(class: &FieldClass, new: Length) -> FieldClass {
    let mut class = class.clone();
    if let FieldClass::Array { length, .. }
    | FieldClass::SizedText { length, .. }
    | FieldClass::Blob { length, .. } = &mut class
    {
        *length = new;
    }
    class
}

fn structure(members: Vec<Member>) -> FieldClass {
    FieldClass::Struct {
        members,
        min_align: 1,
    }
}

/// The bits that a field begins with, where it begins with a fixed number of them.
fn first_bits(class: &FieldClass) -> Option<&BitLayout> {
    match class {
        FieldClass::Struct { members, .. } => first_bits(&members.first()?.class),
        FieldClass::Array {
            length: Length::Inline(length),
            ..
        } => length.layout(),
        FieldClass::Array { element, .. } => first_bits(element),
        _ => class.layout(),
    }
}

fn is_byte(class: &FieldClass) -> bool {
    matches!(class, FieldClass::Integer { layout, .. }
        if layout.bits == 8 && layout.align == 8 && !layout.reversed)
}
