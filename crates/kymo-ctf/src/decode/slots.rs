//! The places into which lengths and selectors are saved while a packet is decoded.

use std::collections::HashMap;

use kymo_model::Scope;

use crate::class::{FieldClass, FieldPath, FieldRef, Length};

/// The slots into which lengths and selectors are saved.
#[derive(Clone, Debug, Default)]
pub(super) struct Slots {
    pub(super) of_ref: HashMap<FieldRef, u32>,
    pub(super) of_target: HashMap<FieldPath, Vec<u32>>,
    next: u32,
}

impl Slots {
    pub(super) fn len(&self) -> usize {
        self.next as usize
    }

    /// Gives a slot to each reference within `class` that `wanted` takes and that has none yet.
    pub(super) fn collect(&mut self, class: &FieldClass, wanted: &impl Fn(&FieldRef) -> bool) {
        let mut add = |reference: &FieldRef| {
            if !wanted(reference) || self.of_ref.contains_key(reference) {
                return;
            }
            for target in &reference.targets {
                self.of_target
                    .entry(target.clone())
                    .or_default()
                    .push(self.next);
            }
            self.of_ref.insert(reference.clone(), self.next);
            self.next += 1;
        };
        match class {
            FieldClass::SizedText {
                length: Length::Dynamic(reference),
                ..
            }
            | FieldClass::Blob {
                length: Length::Dynamic(reference),
                ..
            } => add(reference),
            FieldClass::Array {
                element, length, ..
            } => {
                if let Length::Dynamic(reference) = length {
                    add(reference);
                }
                self.collect(element, wanted);
            }
            FieldClass::Optional {
                content, selector, ..
            } => {
                add(selector);
                self.collect(content, wanted);
            }
            FieldClass::Variant { options, selector } => {
                add(selector);
                for option in options {
                    self.collect(&option.class, wanted);
                }
            }
            FieldClass::Struct { members, .. } => {
                for member in members {
                    self.collect(&member.class, wanted);
                }
            }
            _ => {}
        }
    }

    /// How many references lead to fields of a scope.
    pub(super) fn targets_in(&self, scope: Scope) -> usize {
        let targets = self
            .of_target
            .iter()
            .filter(|(target, _)| target.scope == scope);
        targets.map(|(_, slots)| slots.len()).sum()
    }

    /// Slots that are not set by every packet or event of a scope: what they refer to lies
    /// in a compound that may be absent or empty.
    pub(super) fn conditional(&self, scope: Scope) -> Vec<u32> {
        let mut slots: Vec<u32> = self
            .of_target
            .iter()
            .filter(|(target, _)| target.scope == scope && target.steps.len() > 1)
            .flat_map(|(_, slots)| slots.iter().copied())
            .collect();
        slots.sort_unstable();
        slots.dedup();
        slots
    }
}

/// Whether a reference leads to what lies before the contexts and payload of an event: such
/// slots are set once for a packet, or by the event header.
pub(super) fn leads_to_headers(reference: &FieldRef) -> bool {
    reference
        .targets
        .iter()
        .any(|target| target.scope <= Scope::EventHeader)
}
