//! From a tree to conditions: binds it to each event class, and remembers what fits none.

use std::collections::BTreeMap;
use std::ops::Range;

use kymo_model::Selection;

use super::check::{Bound, Mismatch, ask, compare, constant};
use super::error::FilterError;
use super::eval::{Condition, Facts, Question, Source, Test};
use super::names::{Picks, Surroundings, fields, known_names, property};
use super::parser::{self, Check, Expr, Operand};
use super::suggest::nearest;
use super::surround::Surround;

/// What became of a field's name.
#[derive(Debug, Default)]
struct NameUse {
    range: Range<usize>,
    found: bool,
    hint: Option<String>,
}

/// What became of a test.
#[derive(Debug)]
struct TestUse {
    range: Range<usize>,
    /// Why it makes no sense; `None` where it does for some class.
    mismatch: Option<Mismatch>,
}

/// Binds one tree to many event classes and remembers what fitted none of them.
pub(super) struct Binder<'e> {
    source: &'e str,
    /// By where they begin.
    names: BTreeMap<usize, NameUse>,
    /// By where they begin.
    tests: BTreeMap<usize, TestUse>,
}

impl<'e> Binder<'e> {
    /// A binder for a tree of this text.
    pub(super) fn new(source: &'e str) -> Self {
        Self {
            source,
            names: BTreeMap::new(),
            tests: BTreeMap::new(),
        }
    }

    /// The condition for the events of one class. `picks.packet` may hold what other
    /// classes want of the same packets.
    pub(super) fn bind(
        &mut self,
        expr: &Expr,
        of: Surroundings<'_>,
        picks: &mut Picks,
    ) -> Condition {
        match expr {
            Expr::Const(value) => Condition::Const(*value),
            Expr::Not(inner) => self.bind(inner, of, picks).negate(),
            Expr::Or(parts) => {
                let parts: Vec<_> = parts
                    .iter()
                    .map(|part| self.bind(part, of, picks))
                    .collect();
                Condition::any(parts)
            }
            Expr::And(parts) => {
                let parts: Vec<_> = parts
                    .iter()
                    .map(|part| self.bind(part, of, picks))
                    .collect();
                Condition::all(parts)
            }
            Expr::Test(test) => self.bind_test(test, of, picks),
        }
    }

    fn bind_test(
        &mut self,
        test: &parser::Test,
        of: Surroundings<'_>,
        picks: &mut Picks,
    ) -> Condition {
        let subjects = self.operand(&test.subject, of, picks);
        let bound = match &test.check {
            Check::Compare(comparison, other) => {
                let others = self.operand(other, of, picks);
                subjects
                    .iter()
                    .flat_map(|a| others.iter().map(move |b| compare(a, *comparison, b)))
                    .collect()
            }
            Check::Ask(question) => subjects
                .iter()
                .map(|subject| ask(subject, question))
                .collect::<Vec<_>>(),
        };
        let blamed = match (&test.subject, &test.check) {
            (Operand::Field(name), _) | (_, Check::Compare(_, Operand::Field(name))) => &name.range,
            _ => &test.range,
        };
        let (start, range) = (test.range.start, blamed.clone());
        if bound.iter().any(Result::is_ok) {
            let mismatch = None;
            self.tests.insert(start, TestUse { range, mismatch });
        } else if let Some(Err(mismatch)) = bound.first() {
            self.tests.entry(start).or_insert_with(|| TestUse {
                range,
                mismatch: Some(mismatch.clone()),
            });
        }
        Condition::any(bound.into_iter().flatten().map(settle))
    }

    /// The values an operand may stand for: several where a variant has several options.
    fn operand<'a>(
        &mut self,
        operand: &Operand,
        of: Surroundings<'a>,
        picks: &mut Picks,
    ) -> Vec<Bound<'a>> {
        match operand {
            Operand::Literal(literal, _) => vec![constant(literal)],
            Operand::Field(name) => {
                let mut array = None;
                let found =
                    property(name, of).unwrap_or_else(|| fields(name, of, picks, &mut array));
                let usage = self.names.entry(name.range.start).or_default();
                usage.range = name.range.clone();
                usage.found |= !found.is_empty();
                usage.hint = usage.hint.take().or(array);
                found.into_iter().flatten().collect()
            }
        }
    }

    /// The first thing that is wrong for every class there is.
    pub(super) fn finish<'a>(
        &self,
        classes: impl Iterator<Item = Surroundings<'a>>,
    ) -> Result<(), FilterError> {
        if let Some(NameUse { range, hint, .. }) = self.names.values().find(|name| !name.found) {
            let name = &self.source[range.clone()];
            let error = FilterError::new(
                self.source,
                range.clone(),
                format!("no event has a field `{name}`"),
            )
            .label("unknown field");
            let help = hint.clone().or_else(|| {
                let known = known_names(classes);
                nearest(name, known.iter().map(String::as_str))
                    .map(|known| format!("there is a field `{known}`"))
            });
            return Err(match help {
                Some(help) => error.help(help),
                None => error,
            });
        }
        let senseless = self
            .tests
            .values()
            .find_map(|test| Some((&test.range, test.mismatch.as_ref()?)));
        match senseless {
            Some((range, why)) => {
                Err(
                    FilterError::new(self.source, range.clone(), "this test can never succeed")
                        .label(&why.label)
                        .help(&why.help),
                )
            }
            None => Ok(()),
        }
    }
}

/// A test that looks at nothing but constants is decided at once.
fn settle(test: Test) -> Condition {
    let is_constant = |source: &Source| matches!(source, Source::Constant(_));
    let other_is_constant = match &test.question {
        Question::Compare(_, other) => is_constant(other),
        _ => true,
    };
    if is_constant(&test.subject) && other_is_constant {
        let facts = Facts {
            event: &Selection::default(),
            time: None,
            surround: &Surround::default(),
        };
        Condition::Const(test.holds(&facts))
    } else {
        Condition::Test(test)
    }
}
