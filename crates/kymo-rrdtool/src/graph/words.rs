//! The parts of a word.

use crate::Failure;
use crate::path::shown;

/// A word such as `DEF:a=load.rrd:load:AVERAGE:step=300`: a command, and arguments that are given by
/// their place or by their name. `\:` is a colon that separates nothing.
pub(super) struct Word<'a> {
    text: &'a [u8],
    /// What the word begins with.
    pub(super) command: &'a [u8],
    /// What was not yet asked for.
    rest: Vec<Vec<u8>>,
}

impl<'a> Word<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        let end = text.iter().position(|&byte| byte == b':');
        let (command, arguments) = text.split_at(end.unwrap_or(text.len()));
        Self {
            text,
            command: command.strip_prefix(b"cmd=").unwrap_or(command),
            rest: arguments.get(1..).map(split).unwrap_or_default(),
        }
    }

    /// The argument of a name.
    pub(super) fn named(&mut self, name: &str) -> Option<Vec<u8>> {
        let value = |argument: &[u8]| {
            let value = argument.strip_prefix(name.as_bytes())?;
            value.strip_prefix(b"=").map(<[u8]>::to_vec)
        };
        let place = self
            .rest
            .iter()
            .position(|argument| value(argument).is_some())?;
        value(&self.rest.remove(place))
    }

    /// Whether a flag such as `STACK` is among the arguments behind the first.
    pub(super) fn flag(&mut self, name: &str) -> bool {
        let found = self
            .rest
            .iter()
            .skip(1)
            .position(|argument| argument == name.as_bytes());
        found.map(|place| self.rest.remove(place + 1)).is_some()
    }

    /// The argument of a name, or else the first that is left.
    pub(super) fn next(&mut self, name: &str) -> Option<Vec<u8>> {
        let first = |rest: &mut Vec<Vec<u8>>| (!rest.is_empty()).then(|| rest.remove(0));
        self.named(name).or_else(|| first(&mut self.rest))
    }

    /// What has a name and what is named so, as `a` and `x,2,*` in `a=x,2,*`.
    pub(super) fn definition(&mut self) -> Result<(Vec<u8>, Vec<u8>), Failure> {
        let mark = |argument: &[u8]| argument.iter().position(|&byte| byte == b'=');
        let place = self
            .rest
            .iter()
            .position(|argument| mark(argument).is_some());
        let place = place.ok_or_else(|| self.error("found no '=', expected NAME=..."))?;
        let argument = self.rest.remove(place);
        let at = mark(&argument).unwrap_or_default();
        Ok((argument[..at].to_vec(), argument[at + 1..].to_vec()))
    }

    /// There must not be more.
    pub(super) fn end(&self) -> Result<(), Failure> {
        if self.rest.is_empty() {
            return Ok(());
        }
        Err(Failure::new(format!(
            "Unused Arguments \"{}\" in command : {}",
            shown(&self.rest.join(&b':')),
            shown(self.text)
        )))
    }

    /// What is wrong with the word.
    pub(super) fn error(&self, problem: impl std::fmt::Display) -> Failure {
        Failure::new(format!("{problem} in {}", shown(self.text)))
    }

    /// The word, for messages.
    pub(super) fn shown(&self) -> String {
        shown(self.text).into_owned()
    }
}

/// Splits at colons, of which `\:` is none.
fn split(text: &[u8]) -> Vec<Vec<u8>> {
    let mut parts = vec![Vec::new()];
    let mut rest = text;
    while let [byte, after @ ..] = rest {
        rest = after;
        match (byte, after) {
            (b'\\', [b':', after @ ..]) => {
                parts.last_mut().expect("never empty").push(b':');
                rest = after;
            }
            (b':', _) => parts.push(Vec::new()),
            _ => parts.last_mut().expect("never empty").push(*byte),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_have_places_or_names() {
        let mut word = Word::new(b"DEF:step=300:a=x\\:y=z.rrd:load:AVERAGE:odd=1");
        assert_eq!(word.command, b"DEF");
        assert_eq!(word.named("step").unwrap(), b"300");
        assert_eq!(word.named("start"), None);
        let (name, file) = word.definition().unwrap();
        assert_eq!((&*name, &*file), (&b"a"[..], &b"x:y=z.rrd"[..]));
        assert_eq!(word.next("ds").unwrap(), b"load");
        assert_eq!(word.next("cf").unwrap(), b"AVERAGE");
        assert_eq!(
            word.end().unwrap_err().to_string(),
            "Unused Arguments \"odd=1\" in command : \
             DEF:step=300:a=x\\:y=z.rrd:load:AVERAGE:odd=1"
        );
    }

    #[test]
    fn flags_are_not_the_first_argument() {
        let mut word = Word::new(b"cmd=LINE:STACK:STACK:legend");
        assert_eq!(word.command, b"LINE");
        assert!(word.flag("STACK"));
        assert!(!word.flag("STACK"));
        assert_eq!(word.next("vname").unwrap(), b"STACK");
    }

    #[test]
    fn words_may_have_no_arguments() {
        for text in ["XPORT", ""] {
            let mut word = Word::new(text.as_bytes());
            assert_eq!(word.command, text.as_bytes());
            assert_eq!(word.next("vname"), None);
            assert!(word.definition().is_err());
            assert!(word.end().is_ok());
        }
        assert_eq!(Word::new(b"XPORT:").next("vname").unwrap(), b"");
        assert_eq!(Word::new(b"XPORT:a\\").next("vname").unwrap(), b"a\\");
    }
}
