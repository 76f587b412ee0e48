//! What words say together.

use std::collections::HashMap;

use kymo_rrd::model::ArchiveKind;
use kymo_rrd::rpn::{Numbers, Program, Summary};
use kymo_rrd::{ExpressionError, text::numbers};

use super::elements::Element;
use super::words::Word;
use super::{Bounds, check};
use crate::Failure;
use crate::path::shown;
use crate::times::{Clock, TimeSpec};

/// Definitions, in the order in which they are carried out, and the elements that show them.
#[derive(Debug, Default)]
pub(crate) struct Script {
    pub(super) actions: Vec<Action>,
    /// What is drawn and written, in order.
    pub(crate) elements: Vec<Element>,
    names: HashMap<Vec<u8>, usize>,
    /// Whether each variable is one value, not a series.
    is_value: Vec<bool>,
    /// Whether the last word is a definition or a SHIFT.
    pub(super) ends_with_definition: bool,
}

/// What is done.
#[derive(Debug)]
pub(super) enum Action {
    /// Makes the next variable, from a file.
    Read(Read),
    /// Makes the next variable, from others.
    Evaluate {
        program: Program,
        /// The word, for messages.
        word: String,
    },
    /// Makes the next variable, a value of another.
    Summarise { variable: usize, summary: Summary },
    /// Moves a variable in time.
    Shift { variable: usize, by: Shift },
}

/// A series from a file.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) file: Vec<u8>,
    pub(super) source: Vec<u8>,
    pub(super) function: &'static str,
    /// How rows are made fewer.
    pub(super) reduce: &'static str,
    pub(super) bounds: Bounds,
    /// The address of the daemon that may hold readings of the file.
    pub(super) daemon: Option<Vec<u8>>,
}

/// How far a variable is moved.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shift {
    Seconds(i64),
    /// The value of a variable.
    Variable(usize),
}

impl Script {
    /// Reads words.
    ///
    /// # Errors
    ///
    /// The first that is wrong, in rrdtool's words where it has some.
    pub(crate) fn read(
        words: &[&[u8]],
        bounds: &Bounds,
        clock: &Clock<'_>,
    ) -> Result<Self, Failure> {
        let mut script = Self::default();
        for text in words {
            let mut word = Word::new(text);
            script.ends_with_definition = true;
            match word.command {
                b"DEF" => script.def(&mut word, bounds, clock)?,
                b"CDEF" => script.cdef(&mut word)?,
                b"VDEF" => script.vdef(&mut word)?,
                b"SHIFT" => script.shift(&mut word)?,
                command => {
                    if script.element(&mut word)? {
                        script.ends_with_definition = false;
                        word.end()?;
                        continue;
                    }
                    let problem = format!("'{}' is not a valid function name", shown(command));
                    return Err(word.error(problem));
                }
            }
            word.end()?;
        }
        Ok(script)
    }

    /// `DEF:NAME=FILE:SOURCE:FUNCTION[:step=STEP][:start=TIME][:end=TIME][:reduce=FUNCTION]
    /// [:daemon=ADDRESS]`
    fn def(
        &mut self,
        word: &mut Word<'_>,
        bounds: &Bounds,
        clock: &Clock<'_>,
    ) -> Result<(), Failure> {
        let step = match word.named("step") {
            Some(text) => step(&text)?,
            None => bounds.step,
        };
        let mut time = |name: &str, otherwise: i64| match word.named(name) {
            Some(text) => TimeSpec::parse(&text)
                .map_err(|error| Failure::new(format!("{name} time: {error}"))),
            None => Ok(TimeSpec::at(otherwise)),
        };
        let start = time("start", bounds.start)?;
        let end = time("end", bounds.end)?;
        let times = TimeSpec::span(&start, &end, clock);
        let (start, end) = times.map_err(|error| Failure::new(error.to_string()))?;
        check(start, end)?;
        let reduce = word.named("reduce");
        let daemon = word.named("daemon");
        let (name, file) = match (word.named("vname"), word.named("rrd")) {
            (Some(name), Some(file)) => (name, file),
            _ => word.definition()?,
        };
        let mut next = |part: &str, called: &str| {
            let missing = format!("No argument for definition of {called}");
            word.next(part).ok_or_else(|| word.error(missing))
        };
        let source = next("ds", "DS")?;
        let kind = next("cf", "CF")?;
        let kind = ArchiveKind::known(&kind).ok_or_else(|| bad("bad CF", &kind))?;
        let reduce = match reduce {
            Some(name) => ArchiveKind::known(&name).ok_or_else(|| bad("bad reduce CF", &name))?,
            None => kind,
        };
        self.actions.push(Action::Read(Read {
            file,
            source,
            function: kind,
            reduce,
            bounds: Bounds { start, end, step },
            daemon,
        }));
        self.variable(name, false);
        Ok(())
    }

    /// `CDEF:NAME=EXPRESSION`
    fn cdef(&mut self, word: &mut Word<'_>) -> Result<(), Failure> {
        let (name, text) = self.new_name(word)?;
        let expression = std::str::from_utf8(&text).map_err(|_| bad("don't understand", &text))?;
        let variable = |name: &str| {
            let variable = self.names.get(name.as_bytes())?;
            u32::try_from(*variable).ok()
        };
        let program = Program::parse_with(expression, Numbers::Rrdtool, variable);
        let program = program.map_err(|error| misunderstood(expression, &error))?;
        self.actions.push(Action::Evaluate {
            program,
            word: word.shown(),
        });
        self.variable(name, false);
        Ok(())
    }

    /// `VDEF:NAME=VARIABLE[,PERCENTILE],FUNCTION`
    fn vdef(&mut self, word: &mut Word<'_>) -> Result<(), Failure> {
        let (name, text) = self.new_name(word)?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let Some((vname, function)) = text.split_once(',') else {
            let message = format!("Comma expected in VDEF definition {text}");
            return Err(Failure::new(message));
        };
        let variable = self.names.get(vname.as_bytes()).copied();
        let variable = variable
            .ok_or_else(|| Failure::new(format!("Not a valid vname: {vname} in line {text}")))?;
        if self.is_value[variable] {
            let message = format!("variable '{vname}' not DEF nor CDEF in VDEF '{text}'");
            return Err(Failure::new(message));
        }
        let wrong = |problem: String| Failure::new(format!("{problem} in VDEF '{}'", shown(&name)));
        let (percentile, function) = match function.split_once(',') {
            Some((number, function)) => (Some(number), function),
            None => (None, function),
        };
        let number = match percentile {
            Some(text) => numbers::whole(text.trim().as_bytes())
                .map_err(|_| wrong(format!("found '{text}', expected a number")))?,
            None => 0.0,
        };
        let summary = Summary::from_name(function, number)
            .ok_or_else(|| wrong(format!("Unknown function '{function}'")))?;
        match (summary.needs_percentile(), percentile) {
            (true, None) => return Err(wrong(format!("Function '{function}' needs parameter"))),
            (false, Some(_)) => {
                return Err(wrong(format!("Function '{function}' needs no parameter")));
            }
            (true, Some(_)) if !(0.0..=100.0).contains(&number) => {
                return Err(wrong(format!("Parameter '{number:.6}' out of range")));
            }
            _ => {}
        }
        self.actions.push(Action::Summarise { variable, summary });
        self.variable(name, true);
        Ok(())
    }

    /// `SHIFT:VARIABLE:SECONDS`, where the seconds may be a variable's too
    fn shift(&mut self, word: &mut Word<'_>) -> Result<(), Failure> {
        let name = word.next("vname").unwrap_or_default();
        let variable = self.names.get(&name).copied();
        let variable =
            variable.ok_or_else(|| Failure::new(format!("vname {} not found", shown(&name))))?;
        self.check_series(variable, &name, word)?;
        let by = word
            .next("shift")
            .ok_or_else(|| Failure::new("No shift given"))?;
        let by = match self.names.get(&by) {
            Some(&by) if self.is_value[by] => Shift::Variable(by),
            Some(_) => {
                let name = shown(&by);
                let problem = format!("Encountered unknown type variable '{name}'");
                return Err(word.error(problem));
            }
            None => {
                let seconds = std::str::from_utf8(&by).ok().and_then(|by| by.parse().ok());
                let missing = || Failure::new(format!("error parsing number {}", shown(&by)));
                Shift::Seconds(seconds.ok_or_else(missing)?)
            }
        };
        self.actions.push(Action::Shift { variable, by });
        Ok(())
    }

    /// The series of `XPORT:VARIABLE[:LEGEND]`
    pub(super) fn exported(&self, word: &mut Word<'_>) -> Result<usize, Failure> {
        let name = word.next("vname");
        let name = name.ok_or_else(|| Failure::new("No positional VNAME"))?;
        let variable = self
            .find(&name)
            .ok_or_else(|| Failure::new(format!("{} is not a vname nor a number", shown(&name))))?;
        self.check_series(variable, &name, word)?;
        Ok(variable)
    }

    /// The variable of a name.
    pub(super) fn find(&self, name: &[u8]) -> Option<usize> {
        self.names.get(name).copied()
    }

    /// Whether a variable is one value, not a series.
    pub(crate) fn is_value(&self, variable: usize) -> bool {
        self.is_value[variable]
    }

    /// The name and the text of a definition by others.
    fn new_name(&self, word: &mut Word<'_>) -> Result<(Vec<u8>, Vec<u8>), Failure> {
        let (name, text) = match (word.named("vname"), word.named("rpn")) {
            (Some(name), Some(text)) => (name, text),
            _ => word.definition()?,
        };
        match self.names.contains_key(&name) {
            true => Err(Failure::new(format!(
                "trying to reuse vname {}",
                shown(&name)
            ))),
            false => Ok((name, text)),
        }
    }

    /// Makes the next variable. Of several of one name, the first is meant.
    fn variable(&mut self, name: Vec<u8>, is_value: bool) {
        self.names.entry(name).or_insert(self.is_value.len());
        self.is_value.push(is_value);
    }

    fn check_series(&self, variable: usize, name: &[u8], word: &Word<'_>) -> Result<(), Failure> {
        match self.is_value[variable] {
            false => Ok(()),
            true => {
                let (name, word) = (shown(name), word.shown());
                let message = format!("Cannot shift a VDEF: '{name}' in line '{word}'");
                Err(Failure::new(message))
            }
        }
    }
}

fn step(text: &[u8]) -> Result<i64, Failure> {
    let step = std::str::from_utf8(text)
        .ok()
        .and_then(|text| text.parse().ok());
    let step = step.filter(|step| *step > 0);
    step.ok_or_else(|| bad("Bad step value", text))
}

fn bad(what: &str, found: &[u8]) -> Failure {
    Failure::new(format!("{what}: {}", shown(found)))
}

/// What rrdtool says of an expression.
fn misunderstood(text: &str, error: &ExpressionError) -> Failure {
    let previous = error.found.strip_prefix("PREV(");
    Failure::new(match previous.and_then(|name| name.strip_suffix(')')) {
        Some(name) => format!("variable '{name}' not found"),
        None if text.is_empty() => "can not parse an empty rpn expression".to_owned(),
        None => format!("don't understand '{}'", &text[error.offset..]),
    })
}
