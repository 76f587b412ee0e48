//! Variants of TSDL: an option is selected by the label of its name.

use std::collections::HashMap;
use std::sync::Arc;

use kymo_model::{Labels, Mapping, Scope};

use super::log::{FitError, Log, Rule};
use super::names::Names;
use crate::class::{FieldClass, FieldPath, Selector, Step, VariantOption};
use crate::metadata::tsdl;

/// Adds labels for all options to the selectors of a scope's variants. Options whose label stands
/// for something else have another name.
pub(super) fn settle(
    classes: &mut [Option<FieldClass>; 6],
    scope: Scope,
    log: &mut Log,
) -> Result<(), FitError> {
    let mut ways = Vec::new();
    if let Some(root) = &classes[scope as usize] {
        variants(root, &mut Vec::new(), &mut ways);
    }
    for steps in ways {
        let way = FieldPath { scope, steps };
        let Some(FieldClass::Variant { options, selector }) = at(classes, &way) else {
            continue;
        };
        let (mut options, targets) = (options.clone(), selector.targets.clone());
        let mut known: Option<(bool, Option<Arc<Labels>>)> = None;
        let mut differ = false;
        for target in &targets {
            let Some(FieldClass::Integer { style, .. }) = at(classes, target) else {
                known = None;
                break;
            };
            match &known {
                Some((_, labels)) => differ |= *labels != style.labels,
                None => known = Some((style.signed, style.labels.clone())),
            }
        }
        let Some((signed, labels)) = known else {
            log.place.scope = Some(scope);
            return Err(log.error(
                "no integer selects the option of a variant",
                "let the variant refer to one that comes before it",
            ));
        };
        let mut labels = Labelled::new(signed, labels.as_deref(), &options);
        labels.is_changed |= differ;
        for option in &mut options {
            labels.option(option, log)?;
        }
        if labels.is_changed {
            let labels = Arc::new(Labels::new(signed, labels.mappings));
            for target in &targets {
                if let Some(FieldClass::Integer { style, .. }) = at_mut(classes, target) {
                    style.labels = Some(labels.clone());
                }
                let scope = log.place.scope.replace(target.scope);
                let name = names_to(classes, target);
                let whole = std::mem::replace(&mut log.place.path, name);
                log.note(Rule::Labels);
                log.place.path = whole;
                log.place.scope = scope;
            }
        }
        if let Some(FieldClass::Variant { options: old, .. }) = at_mut(classes, &way) {
            *old = options;
        }
    }
    Ok(())
}

/// The labels of a selector, and the names of the options, as far as they are settled.
struct Labelled {
    signed: bool,
    mappings: Vec<Mapping>,
    positions: HashMap<Arc<str>, usize>,
    names: Names,
    is_changed: bool,
}

impl Labelled {
    fn new(signed: bool, labels: Option<&Labels>, options: &[VariantOption]) -> Self {
        let mappings = labels.map_or(&[][..], Labels::mappings).to_vec();
        let labels = mappings.iter().enumerate();
        Self {
            signed,
            positions: labels.map(|(at, m)| (m.label.clone(), at)).collect(),
            mappings,
            names: Names::new(options.iter().filter_map(|option| option.name.as_deref())),
            is_changed: false,
        }
    }

    /// Makes a label and an option's name agree.
    fn option(&mut self, option: &mut VariantOption, log: &mut Log) -> Result<(), FitError> {
        match (self.signed, &option.when) {
            (true, Selector::True) => {
                option.when = Selector::Signed(vec![(i64::MIN, -1), (1, i64::MAX)]);
            }
            (false, Selector::True) => option.when = Selector::Unsigned(vec![(1, u64::MAX)]),
            (true, Selector::Signed(_)) | (false, Selector::Unsigned(_)) => {}
            _ => {
                return Err(log.error(
                    "an option is selected by numbers of another sign than the selector's",
                    "let both be signed, or none",
                ));
            }
        }
        let before = option.name.clone().unwrap_or_default();
        let mut name = before.to_string();
        loop {
            let candidates =
                tsdl::names::declared_options(&name, |other| self.names.contains(other));
            let ranges_of = |label: &String| {
                self.positions
                    .get(label.as_str())
                    .map_or(&[][..], |&at| &self.mappings[at].ranges)
            };
            let is_label = |label: &String| tsdl::write::is_same(ranges_of(label), &option.when);
            if candidates.iter().any(is_label) {
                break;
            }
            let is_free = |label: &&String| !self.positions.contains_key(label.as_str());
            if let Some(label) = candidates.iter().find(is_free) {
                self.add(&name, label, bits(&option.when));
                break;
            }
            name = self.names.free(&before);
        }
        if name != *before {
            let (from, to) = (before.to_string(), name.clone());
            log.note(Rule::Renamed { from, to });
            option.name = Some(name.into());
        }
        Ok(())
    }

    /// Adds a label, in the place of the name where that is one which no option can have.
    fn add(&mut self, name: &str, label: &str, ranges: Vec<(u64, u64)>) {
        let label: Arc<str> = label.into();
        let same = self.positions.get(name).copied();
        let at = match same.filter(|&at| self.mappings[at].ranges == ranges) {
            Some(at) => {
                self.positions.remove(name);
                self.mappings[at].label = label.clone();
                at
            }
            None => {
                let label = label.clone();
                self.mappings.push(Mapping { label, ranges });
                self.mappings.len() - 1
            }
        };
        self.positions.insert(label, at);
        self.is_changed = true;
    }
}

fn bits(when: &Selector) -> Vec<(u64, u64)> {
    match when {
        Selector::True => Vec::new(),
        Selector::Unsigned(ranges) => ranges.clone(),
        Selector::Signed(ranges) => {
            let bits = |&(low, high): &(i64, i64)| (low as u64, high as u64);
            ranges.iter().map(bits).collect()
        }
    }
}

/// The ways to all variants, those around others first.
fn variants(class: &FieldClass, steps: &mut Vec<Step>, ways: &mut Vec<Vec<Step>>) {
    let mut part = |step, class: &FieldClass| {
        steps.push(step);
        variants(class, steps, ways);
        steps.pop();
    };
    match class {
        FieldClass::Struct { members, .. } => {
            for (at, member) in members.iter().enumerate() {
                part(Step::Child(at), &member.class);
            }
        }
        FieldClass::Array { element, .. } => part(Step::Element, element),
        FieldClass::Variant { options, .. } => {
            ways.push(steps.clone());
            for (at, option) in options.iter().enumerate() {
                let mut steps = steps.clone();
                steps.push(Step::Child(at));
                variants(&option.class, &mut steps, ways);
            }
        }
        _ => {}
    }
}

fn at<'c>(classes: &'c [Option<FieldClass>; 6], way: &FieldPath) -> Option<&'c FieldClass> {
    classes[way.scope as usize].as_ref()?.at(&way.steps)
}

fn at_mut<'c>(
    classes: &'c mut [Option<FieldClass>; 6],
    way: &FieldPath,
) -> Option<&'c mut FieldClass> {
    let mut class = classes[way.scope as usize].as_mut()?;
    for step in &way.steps {
        class = match (class, *step) {
            (FieldClass::Struct { members, .. }, Step::Child(at)) => {
                &mut members.get_mut(at)?.class
            }
            (FieldClass::Variant { options, .. }, Step::Child(at)) => {
                &mut options.get_mut(at)?.class
            }
            (FieldClass::Array { element, .. }, Step::Element) => element,
            _ => return None,
        };
    }
    Some(class)
}

/// The names on the way to a field, each after a dot.
fn names_to(classes: &[Option<FieldClass>; 6], way: &FieldPath) -> String {
    let mut names = String::new();
    let mut class = classes[way.scope as usize].as_ref();
    for step in &way.steps {
        let name = match (class, *step) {
            (Some(FieldClass::Struct { members, .. }), Step::Child(at)) => {
                members.get(at).map(|member| &*member.name)
            }
            (Some(FieldClass::Variant { options, .. }), Step::Child(at)) => {
                options.get(at).and_then(|option| option.name.as_deref())
            }
            _ => None,
        };
        if let Some(name) = name {
            names.push('.');
            names += name;
        }
        class = class.and_then(|class| class.at(std::slice::from_ref(step)));
    }
    names
}
