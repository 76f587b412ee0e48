//! What items say.

use kymo_text::diagnostic::Diagnostic;
use kymo_time::CdTime;

use super::{Argument, Item};

impl Item {
    /// Whether this is its key.
    pub fn is(&self, key: &str) -> bool {
        self.key.eq_ignore_ascii_case(key)
    }

    /// The items of a block; empty for anything else.
    pub fn children(&self) -> &[Item] {
        self.items.as_deref().unwrap_or_default()
    }

    fn only(&self, expected: &str) -> Result<&Argument, Box<Diagnostic>> {
        match &*self.arguments {
            [only] => Ok(&only.argument),
            _ => Err(self.wrong(expected)),
        }
    }

    /// The error that the arguments are not what they should be.
    fn wrong(&self, expected: &str) -> Box<Diagnostic> {
        let message = format!("`{}` expects {expected}", self.key);
        let range = match (self.arguments.first(), self.arguments.last()) {
            (Some(first), Some(last)) => first.range.start..last.range.end,
            _ => self.range.clone(),
        };
        Box::new(Diagnostic::error(message).at(range, format!("expected {expected}")))
    }

    /// Its only argument, a text.
    ///
    /// # Errors
    ///
    /// Another kind of argument, or another number of them.
    pub fn text(&self) -> Result<&str, Box<Diagnostic>> {
        match self.only("one text")? {
            Argument::Text(text) => Ok(text),
            _ => Err(self.wrong("one text")),
        }
    }

    /// Its only argument, a number.
    ///
    /// # Errors
    ///
    /// Another kind of argument, or another number of them.
    pub fn number(&self) -> Result<f64, Box<Diagnostic>> {
        match self.only("one number")? {
            Argument::Number(number) => Ok(*number),
            _ => Err(self.wrong("one number")),
        }
    }

    /// Its only argument, a truth value; as a text it may have letters of any case.
    ///
    /// # Errors
    ///
    /// Another kind of argument, or another number of them.
    pub fn boolean(&self) -> Result<bool, Box<Diagnostic>> {
        const EXPECTED: &str = "true or false";
        match self.only(EXPECTED)? {
            Argument::Boolean(value) => Ok(*value),
            Argument::Text(text) => match text.to_ascii_lowercase().as_str() {
                "true" | "yes" | "on" => Ok(true),
                "false" | "no" | "off" => Ok(false),
                _ => Err(self.wrong(EXPECTED)),
            },
            Argument::Number(_) => Err(self.wrong(EXPECTED)),
        }
    }

    /// Its only argument, a time in seconds, as collectd reads times: what is below a unit is cut
    /// off.
    ///
    /// # Errors
    ///
    /// If the value is not a number, is negative, or is 2^34 or more.
    pub fn time(&self) -> Result<CdTime, Box<Diagnostic>> {
        const EXPECTED: &str = "one number of seconds, 0 or more";
        let number = self.number().map_err(|_| self.wrong(EXPECTED))?;
        CdTime::from_f64(number).map_err(|_| self.wrong(EXPECTED))
    }

    /// Its only argument, an interval: a number of seconds above 0, which as a text may be written
    /// as a person would.
    ///
    /// # Errors
    ///
    /// Anything else. collectd takes ten seconds instead, without a word.
    pub fn interval(&self) -> Result<CdTime, Box<Diagnostic>> {
        const EXPECTED: &str = "one number of seconds above 0";
        let time = match self.only(EXPECTED)? {
            Argument::Number(number) => CdTime::from_f64(*number).ok(),
            Argument::Text(text) => CdTime::from_user(text).ok(),
            Argument::Boolean(_) => None,
        };
        time.filter(|time| *time > CdTime::ZERO)
            .ok_or_else(|| self.wrong(EXPECTED))
    }
}

/// The interval that a file sets for all plugins; the last one where it does so more than once.
///
/// # Errors
///
/// One that is none, and one behind a `LoadPlugin`: in collectd it does not hold for plugins that
/// are loaded before it, and collectd does not report that.
pub fn interval(items: &[Item]) -> Result<Option<CdTime>, Box<Diagnostic>> {
    let mut interval = None;
    let mut plugin = None;
    for item in items {
        if item.is("LoadPlugin") {
            plugin = plugin.or(Some(item));
        } else if item.is("Interval") {
            if let Some(plugin) = plugin {
                let error = Diagnostic::error("`Interval` stands behind a `LoadPlugin`")
                    .at(
                        item.range.clone(),
                        "it would not hold for the plugins before it",
                    )
                    .because(plugin.range.clone(), "the first plugin is loaded here");
                return Err(Box::new(error.with_help("write `Interval` above it")));
            }
            interval = Some(item.interval()?);
        }
    }
    Ok(interval)
}

/// Rejects the first item whose key is unknown.
///
/// # Errors
///
/// It, and what it could have been. collectd leaves such items out.
pub fn refuse_unknown(items: &[Item], known: &[&str]) -> Result<(), Box<Diagnostic>> {
    let is_known = |item: &&Item| known.iter().any(|key| item.is(key));
    match items.iter().find(|item| !is_known(item)) {
        None => Ok(()),
        Some(item) => {
            let error = Diagnostic::error(format!("`{}` is not known here", item.key))
                .at(item.range.clone(), "no such key")
                .with_help(format!("known are: {}", known.join(", ")));
            Err(Box::new(error))
        }
    }
}
