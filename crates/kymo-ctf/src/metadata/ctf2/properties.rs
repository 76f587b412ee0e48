//! The properties of an object: each is known, and read by what its value must be.

use kymo_text::diagnostic::Diagnostic;

use super::json::{Kind, Span, Value, alternatives};
use crate::metadata::limits::Warnings;

/// Properties that every object may have.
const EVERYWHERE: [&str; 2] = ["attributes", "extensions"];

/// The properties of one object.
pub(super) struct Properties<'v, 't> {
    /// What errors call the object.
    owner: &'static str,
    pub(super) span: Span,
    /// Names, places of the names, values.
    found: Vec<(&'static str, Span, &'v Value<'t>)>,
}

impl<'v, 't> Properties<'v, 't> {
    /// The properties of `value`, all of which must be `known` ones.
    pub(super) fn new(
        value: &'v Value<'t>,
        owner: &'static str,
        known: &[&'static str],
        warnings: &mut Warnings,
    ) -> Result<Self, Diagnostic> {
        Self::with_drafts(value, owner, known, &[], warnings)
    }

    /// The same, of an object whose properties had other names in drafts of CTF 2, which
    /// traces still have: `drafts` lists these names with today's.
    pub(super) fn with_drafts(
        value: &'v Value<'t>,
        owner: &'static str,
        known: &[&'static str],
        drafts: &[(&str, &'static str)],
        warnings: &mut Warnings,
    ) -> Result<Self, Diagnostic> {
        let mut properties = Self {
            owner,
            span: value.span,
            found: Vec::new(),
        };
        for member in value.object(&format!("{owner} as an object"))? {
            let name = &*member.name;
            let is = |known: &&&'static str| **known == name;
            let known_name = known.iter().chain(&EVERYWHERE).find(is).copied();
            let drafts = drafts.iter().chain(&[("user-attributes", "attributes")]);
            let draft_name = drafts
                .filter(|(draft, _)| *draft == name)
                .map(|(_, today)| *today)
                .next();
            let Some(today) = known_name.or(draft_name) else {
                return Err(
                    Diagnostic::error(format!("unknown property `{name}` of {owner}"))
                        .at(member.span, "not a property of CTF 2")
                        .with_help(format!(
                            "known are {}",
                            alternatives(known.iter().chain(&EVERYWHERE).copied())
                        )),
                );
            };
            if known_name.is_none() {
                warnings.push(
                    Diagnostic::warning(format!("`{name}` is of a draft of CTF 2"))
                        .at(member.span, format!("read as `{today}`")),
                );
            }
            if let Some((_, first, _)) = properties.entry(today) {
                return Err(
                    Diagnostic::error(format!("`{today}` of {owner} is given twice"))
                        .at(member.span, "given again")
                        .because(*first, "first given here"),
                );
            }
            properties.found.push((today, member.span, &member.value));
        }
        if let Some(extensions) = properties.get("extensions") {
            refuse_extensions(extensions)?;
        }
        Ok(properties)
    }

    fn entry(&self, name: &str) -> Option<&(&'static str, Span, &'v Value<'t>)> {
        self.found.iter().find(|(found, ..)| *found == name)
    }

    /// The value of a property, where there is one.
    pub(super) fn get(&self, name: &str) -> Option<&'v Value<'t>> {
        self.entry(name).map(|(.., value)| *value)
    }

    /// The place of a property's value, or else of the whole object.
    pub(super) fn span_of(&self, name: &str) -> Span {
        self.get(name).map_or(self.span, |value| value.span)
    }

    /// The value of a property, read by `reader`.
    pub(super) fn read<T>(
        &self,
        name: &str,
        reader: impl FnOnce(&'v Value<'t>) -> Result<T, Diagnostic>,
    ) -> Result<Option<T>, Diagnostic> {
        self.get(name).map(reader).transpose()
    }

    /// The same of a property that must be there.
    pub(super) fn require<T>(
        &self,
        name: &str,
        reader: impl FnOnce(&'v Value<'t>) -> Result<T, Diagnostic>,
    ) -> Result<T, Diagnostic> {
        self.read(name, reader)?.ok_or_else(|| {
            Diagnostic::error(format!("{} has no `{name}`", self.owner)).at(
                self.span,
                format!("expected a property `\"{name}\"` in this"),
            )
        })
    }

    /// The attributes: name spaces and the JSON text in each.
    pub(super) fn attributes(&self) -> Result<Vec<(String, String)>, Diagnostic> {
        let Some(attributes) = self.get("attributes") else {
            return Ok(Vec::new());
        };
        let spaces = attributes.object("an object of name spaces")?;
        let pair = |name: &str, value: &Value<'_>| (name.to_owned(), value.text.to_owned());
        Ok(spaces
            .iter()
            .map(|space| pair(&space.name, &space.value))
            .collect())
    }

    /// The value of an attribute in one of the name spaces.
    pub(super) fn attribute(&self, spaces: &[&str], name: &str) -> Option<&'v Value<'t>> {
        let member = |value: &'v Value<'t>, name: &str| match &value.kind {
            Kind::Object(members) => members
                .iter()
                .find(|member| member.name == name)
                .map(|member| &member.value),
            _ => None,
        };
        let attributes = self.get("attributes")?;
        spaces
            .iter()
            .filter_map(|space| member(attributes, space))
            .find_map(|space| member(space, name))
    }
}

/// Extensions change what the rest means, so that none can be passed over (CTF2-SPEC-2.0);
/// none is known.
fn refuse_extensions(extensions: &Value<'_>) -> Result<(), Diagnostic> {
    let spaces = extensions.object("an object of name spaces")?;
    for space in spaces {
        let names = space.value.object("an object of extensions")?;
        if let Some(extension) = names.first() {
            return Err(Diagnostic::error(format!(
                "the extension `{}` of `{}` is not supported",
                extension.name, space.name
            ))
            .at(extension.span, "expected no extension"));
        }
    }
    Ok(())
}
