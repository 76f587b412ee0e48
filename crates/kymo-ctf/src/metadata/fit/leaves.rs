//! Numbers and text, each as the dialect can hold it.

use std::sync::Arc;

use kymo_model::{Base, Labels};

use super::fields::Fields;
use super::labels::{by_value, cleaned};
use super::log::{FitError, Rule};
use crate::class::{BitLayout, Dialect, Encoding, FieldClass, IntegerStyle};

impl Fields<'_, '_> {
    pub(super) fn float(&mut self, layout: &BitLayout) -> Result<FieldClass, FitError> {
        let layout = self.layout(layout);
        if self.to == Dialect::Rfc11 {
            if layout.bits > 64 {
                return Err(self.log.error(
                    "RFC v1.1 knows no floating point numbers, and no integer of as many bits",
                    "convert to CTF 2, or leave out the events that have it",
                ));
            }
            self.log.note(Rule::FloatAsBits);
            return Ok(FieldClass::Integer {
                layout,
                style: IntegerStyle::default(),
            });
        }
        // What was read in CTF 1.8 can be written there.
        if (self.from, self.to) == (Dialect::Ctf2, Dialect::Ctf18) {
            match layout.bits {
                16 => {
                    self.log.note(Rule::HalfAsSingle);
                    let bits = 32;
                    return Ok(FieldClass::Float(BitLayout { bits, ..layout }));
                }
                128 => {
                    return Err(self.log.error(
                        "readers of CTF 1.8 know no floating point number of 128 bits",
                        "convert to CTF 2, or leave out the events that have it",
                    ));
                }
                _ => {}
            }
        }
        Ok(FieldClass::Float(layout))
    }

    /// The layout as the dialect can say it.
    pub(super) fn layout(&mut self, layout: &BitLayout) -> BitLayout {
        let mut layout = *layout;
        if layout.reversed && self.to != Dialect::Ctf2 {
            layout.reversed = false;
            if layout.bits > 1 {
                self.log.note(Rule::BitOrder);
            }
        }
        if self.to != Dialect::Rfc11
            && !self.keeps_units()
            && let Some(unit) = layout.unit.take()
            && !(layout.bits <= layout.align && layout.align <= unit)
        {
            self.log.note(Rule::Unit);
        }
        layout
    }

    /// The layout of an integer that takes another one's place.
    pub(super) fn plain(&self, bits: u32) -> BitLayout {
        BitLayout {
            bits,
            align: 8,
            order: self.native,
            reversed: false,
            unit: None,
        }
    }

    pub(super) fn integer(
        &mut self,
        layout: &BitLayout,
        base: Base,
        labels: Option<Arc<Labels>>,
    ) -> FieldClass {
        let style = IntegerStyle {
            signed: false,
            base,
            labels,
            roles: Vec::new(),
        };
        FieldClass::Integer {
            layout: self.layout(layout),
            style: self.style(&style, layout.bits),
        }
    }

    /// How an integer of a size in bits is shown.
    pub(super) fn style(&mut self, style: &IntegerStyle, bits: u32) -> IntegerStyle {
        let mut style = style.clone();
        if self.to == Dialect::Rfc11 {
            if std::mem::take(&mut style.base) != Base::Decimal {
                self.log.note(Rule::BaseLost);
            }
            for role in style.roles.drain(..) {
                self.log.note(Rule::RoleLost(role));
            }
        }
        if let Some(labels) = &style.labels
            && self.to != Dialect::Ctf2
            && let Some(cleaned) = cleaned(labels, style.signed)
        {
            self.log.note(Rule::LabelsCleaned);
            style.labels = Some(Arc::new(cleaned));
        }
        // TSDL has no enumerations without labels.
        if self.to == Dialect::Ctf18
            && (style.labels)
                .take_if(|labels| labels.mappings().is_empty())
                .is_some()
        {
            self.log.note(Rule::LabelsCleaned);
        }
        if let Some(labels) = &style.labels
            && self.to == Dialect::Rfc11
        {
            let by_value = by_value(labels, bits);
            if by_value != **labels {
                self.log.note(Rule::LabelsByValue);
                style.labels = Some(Arc::new(by_value));
            }
        }
        style
    }

    pub(super) fn encoding(&mut self, encoding: Encoding) -> Encoding {
        if encoding == Encoding::Utf8 || self.to == Dialect::Ctf2 {
            return encoding;
        }
        self.log.note(Rule::TextAsUtf8);
        Encoding::Utf8
    }

    pub(super) fn text_align(&mut self, align: u32) {
        if align != 8 {
            self.log.note(Rule::Align(8));
        }
    }
}
