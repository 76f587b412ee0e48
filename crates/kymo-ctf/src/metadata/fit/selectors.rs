//! Lengths and selectors: which fields they refer to, and what selects what.

use super::fields::{Fields, inline};
use super::labels::{apart, complement, wide};
use super::log::{FitError, Rule};
use crate::class::{Dialect, FieldClass, FieldPath, FieldRef, Selector, Step, VariantOption};

impl Fields<'_, '_> {
    /// The selectors of options, where CTF 2 needs others: there no selector selects two options,
    /// and each option has one.
    pub(super) fn apart(
        &mut self,
        options: &[VariantOption],
        selector: &FieldRef,
    ) -> Result<Option<Vec<Selector>>, FitError> {
        let (signed, bits) = match self.target(selector) {
            Some(FieldClass::Integer { layout, style }) => (style.signed, layout.bits),
            Some(FieldClass::VarInteger(style)) => (style.signed, 64),
            _ => return Ok(None),
        };
        let apart = apart(options, signed, bits).map_err(|()| {
            self.log.error(
                "an option that nothing selects, and all numbers may select another one",
                "leave the option out",
            )
        })?;
        if apart.is_some() {
            self.log.note(Rule::Apart);
        }
        Ok(apart)
    }

    // References.

    /// The first field that a reference means, as it was.
    pub(super) fn target(&self, field: &FieldRef) -> Option<&FieldClass> {
        let target = field.targets.first()?;
        self.old[target.scope as usize]?.at(&target.steps)
    }

    pub(super) fn reference(&self, field: &FieldRef) -> FieldRef {
        let targets = field.targets.iter().map(|target| FieldPath {
            scope: target.scope,
            steps: match self.old[target.scope as usize] {
                Some(root) => moved(root, &target.steps, self.to, self.has_inline),
                None => target.steps.clone(),
            },
        });
        FieldRef {
            targets: targets.collect(),
        }
    }

    /// The selectors for which there is nothing, and those for which there is something.
    pub(super) fn both(
        &self,
        selector: &FieldRef,
        when: &Selector,
    ) -> Result<(Selector, Selector), FitError> {
        let (signed, bits) = match self.target(selector) {
            Some(FieldClass::Bool(layout)) => (false, layout.bits),
            Some(FieldClass::Integer { layout, style }) => (style.signed, layout.bits),
            Some(FieldClass::VarInteger(style)) => (style.signed, 64),
            _ => {
                return Err(self.log.error(
                    "no integer and no truth value selects it",
                    "refer to one that comes before it",
                ));
            }
        };
        let (low, high): (i128, i128) = match signed {
            true => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
            false => (0, (1 << bits) - 1),
        };
        let ranges = match when {
            Selector::True => complement(&[(0, 0)], low, high),
            Selector::Unsigned(ranges) => wide(ranges),
            Selector::Signed(ranges) => wide(ranges),
        };
        let selector = |ranges: &[(i128, i128)]| match signed {
            true => Selector::Signed(ranges.iter().map(|&(a, b)| (a as i64, b as i64)).collect()),
            false => {
                Selector::Unsigned(ranges.iter().map(|&(a, b)| (a as u64, b as u64)).collect())
            }
        };
        Ok((selector(&complement(&ranges, low, high)), selector(&ranges)))
    }
}

/// The way to a field in the fitted structure.
fn moved(root: &FieldClass, steps: &[Step], to: Dialect, has_inline: bool) -> Vec<Step> {
    let mut moved = Vec::with_capacity(steps.len());
    let mut class = Some(root);
    for step in steps {
        let part = class.and_then(|class| class.at(std::slice::from_ref(step)));
        let is_inline = has_inline && part.is_some_and(|part| inline(part).is_some());
        match (class, *step) {
            (Some(FieldClass::Struct { members, .. }), Step::Child(at)) if has_inline => {
                let before = members.iter().take(at);
                let lengths = before.filter(|m| inline(&m.class).is_some()).count();
                moved.push(Step::Child(at + lengths + usize::from(is_inline)));
            }
            (_, Step::Content) if to == Dialect::Ctf18 => moved.push(Step::Child(1)),
            (_, step) => moved.push(step),
        }
        if is_inline && !matches!(class, Some(FieldClass::Struct { .. })) {
            moved.push(Step::Child(1));
        }
        class = part;
    }
    moved
}
