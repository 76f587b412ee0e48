//! From a tree to conditions: binds it to each event class, and remembers what fits none.

use std::collections::BTreeMap;
use std::ops::Range;

use kymo_model::Selection;

use super::check::{Bound, Mismatch, ask, compare, constant};
use super::error::FilterError;
use super::eval::{Condition, Facts, Question, Source, Test};
use super::expr::{self, Check, Expr, Operand};
use super::names::{Picks, Surroundings, suggestion, values};
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

/// Binds one tree to many event classes and remembers what did not fit any of them.
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
        surroundings: Surroundings<'_>,
        picks: &mut Picks,
    ) -> Condition {
        match expr {
            Expr::Const(value) => Condition::Const(*value),
            Expr::Not(inner) => self.bind(inner, surroundings, picks).negate(),
            Expr::Or(parts) => {
                let parts: Vec<_> = parts
                    .iter()
                    .map(|part| self.bind(part, surroundings, picks))
                    .collect();
                Condition::any(parts)
            }
            Expr::And(parts) => {
                let parts: Vec<_> = parts
                    .iter()
                    .map(|part| self.bind(part, surroundings, picks))
                    .collect();
                Condition::all(parts)
            }
            Expr::Test(test) => self.bind_test(test, surroundings, picks),
        }
    }

    fn bind_test(
        &mut self,
        test: &expr::Test,
        surroundings: Surroundings<'_>,
        picks: &mut Picks,
    ) -> Condition {
        let subjects = self.operand(&test.subject, surroundings, picks);
        let bound = match &test.check {
            Check::Compare(comparison, other) => {
                let others = self.operand(other, surroundings, picks);
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
            (Operand::Field(name) | Operand::Call(_, name), _)
            | (_, Check::Compare(_, Operand::Field(name))) => &name.range,
            _ => &test.range,
        };
        let (start, range) = (test.range.start, blamed.clone());
        if bound.iter().any(Result::is_ok) {
            let mismatch = None;
            self.tests.insert(start, TestUse { range, mismatch });
        } else {
            // That the value cannot be says more than that it is of another kind.
            let mismatches = || bound.iter().filter_map(|bound| bound.as_ref().err());
            let of_value = mismatches().find(|mismatch| mismatch.is_of_value);
            let known = self.tests.get(&start).map(|test| &test.mismatch);
            let is_better = match known {
                None => true,
                Some(None) => false,
                Some(Some(known)) => !known.is_of_value && of_value.is_some(),
            };
            if let (true, Some(mismatch)) = (is_better, of_value.or_else(|| mismatches().next())) {
                let mismatch = Some(mismatch.clone());
                self.tests.insert(start, TestUse { range, mismatch });
            }
        }
        let tests = bound.into_iter().filter_map(|bound| match bound {
            Ok(test) => Some(test),
            Err(mismatch) => mismatch.test.map(|test| *test),
        });
        Condition::any(tests.map(settle))
    }

    /// The values an operand may stand for: several where a variant has several options.
    fn operand<'a>(
        &mut self,
        operand: &Operand,
        surroundings: Surroundings<'a>,
        picks: &mut Picks,
    ) -> Vec<Bound<'a>> {
        match operand {
            Operand::Literal(literal, _) => vec![constant(literal)],
            Operand::Call(function, name) => {
                let field = Operand::Field(name.clone());
                let found = self.operand(&field, surroundings, picks).into_iter();
                found.map(|bound| bound.call(*function)).collect()
            }
            Operand::Field(name) => {
                let mut array = None;
                let found = values(name, surroundings, picks, &mut array);
                let usage = self.names.entry(name.range.start).or_default();
                usage.range = name.range.clone();
                usage.found |= !found.is_empty();
                usage.hint = usage.hint.take().or(array);
                found.into_iter().flatten().collect()
            }
        }
    }

    /// What is odd for every class there is: tests of values that fields cannot have.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong for every class.
    pub(super) fn finish<'a>(
        &self,
        classes: impl Iterator<Item = Surroundings<'a>>,
    ) -> Result<Vec<FilterError>, FilterError> {
        if let Some(NameUse { range, hint, .. }) = self.names.values().find(|name| !name.found) {
            let name = &self.source[range.clone()];
            let error = FilterError::new(
                self.source,
                range.clone(),
                format!("no event has a field `{name}`"),
            )
            .label("unknown field");
            let help = hint.clone().or_else(|| suggestion(name, classes));
            return Err(match help {
                Some(help) => error.help(help),
                None => error.help("`kymo info --schema` lists the fields of all events"),
            });
        }
        let mismatches = self
            .tests
            .values()
            .filter_map(|test| Some((&test.range, test.mismatch.as_ref()?)));
        let mut warnings = Vec::new();
        for (range, why) in mismatches {
            let message = match why.test {
                Some(_) => "this test succeeds whatever the value",
                None => "this test can never succeed",
            };
            let mut error = FilterError::new(self.source, range.clone(), message).label(&why.label);
            if !why.help.is_empty() {
                error = error.help(&why.help);
            }
            match why.is_of_value {
                true => warnings.push(error.into_warning()),
                false => return Err(error),
            }
        }
        Ok(warnings)
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
