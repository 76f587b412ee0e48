//! What is measured: `host/plugin-instance/type-instance`.

use std::borrow::Cow;
use std::fmt;

/// The longest name, in bytes.
pub(crate) const LONGEST_NAME: usize = 127;

/// The name of a series of values: five names, of which the instances may be empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Identifier<'a> {
    /// The machine. Empty in text that leaves it to the receiver.
    pub host: &'a str,
    /// What measures, such as `cpu`.
    pub plugin: &'a str,
    /// Which one of several, such as the number of a processor.
    pub plugin_instance: &'a str,
    /// What is measured: an entry of `types.db`.
    pub type_name: &'a str,
    /// Which one of several.
    pub type_instance: &'a str,
}

/// Why an identifier is none, or cannot be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameError {
    /// It has fewer than two slashes.
    Parts,
    /// A name has more than 127 bytes.
    TooLong(&'static str),
    /// A name that must not be empty is.
    Empty(&'static str),
    /// A name holds a control character, which could end a line where it is written.
    Control(&'static str),
    /// A name begins with a dot, and would be a hidden file or lead out of its directory.
    Dot(&'static str),
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parts => f.write_str("expected `host/plugin-instance/type-instance`"),
            Self::TooLong(name) => {
                write!(f, "the {name} is too long: at most {LONGEST_NAME} bytes")
            }
            Self::Empty(name) => write!(f, "the {name} is empty"),
            Self::Control(name) => write!(f, "the {name} holds a control character"),
            Self::Dot(name) => write!(f, "the {name} begins with a dot"),
        }
    }
}

impl std::error::Error for NameError {}

impl<'a> Identifier<'a> {
    /// Splits a text at its first two slashes, and plugin and type at their first hyphens. Further
    /// slashes stay in the type.
    ///
    /// # Errors
    ///
    /// Fewer than two slashes, a name that is too long.
    pub fn parse(text: &'a str) -> Result<Self, NameError> {
        let (host, rest) = text.split_once('/').ok_or(NameError::Parts)?;
        let (plugin, type_name) = rest.split_once('/').ok_or(NameError::Parts)?;
        let (plugin, plugin_instance) = plugin.split_once('-').unwrap_or((plugin, ""));
        let (type_name, type_instance) = type_name.split_once('-').unwrap_or((type_name, ""));
        let id = Self {
            host,
            plugin,
            plugin_instance,
            type_name,
            type_instance,
        };
        match id.names().find(|(_, name)| name.len() > LONGEST_NAME) {
            Some((what, _)) => Err(NameError::TooLong(what)),
            None => Ok(id),
        }
    }

    /// The names with what they are.
    pub fn names(&self) -> impl Iterator<Item = (&'static str, &'a str)> {
        [
            ("host", self.host),
            ("plugin", self.plugin),
            ("plugin instance", self.plugin_instance),
            ("type", self.type_name),
            ("type instance", self.type_instance),
        ]
        .into_iter()
    }

    /// Whether values of this name can be kept, in files above all: host, plugin and type are not
    /// empty, no name is too long or holds a control character, and none of the three parts begins
    /// with a dot.
    ///
    /// # Errors
    ///
    /// What is wrong with the first name that is wrong.
    pub fn check(&self) -> Result<(), NameError> {
        for (what, name) in self.names() {
            check_name(what, name)?;
        }
        for (what, name) in [
            ("host", self.host),
            ("plugin", self.plugin),
            ("type", self.type_name),
        ] {
            if name.is_empty() {
                return Err(NameError::Empty(what));
            }
            if escape(name).starts_with('.') {
                return Err(NameError::Dot(what));
            }
        }
        Ok(())
    }

    /// The text under which the values are stored: slashes in names are
    /// [escaped](Self::escape).
    pub fn canonical(&self) -> String {
        let mut text = escape(self.host).into_owned();
        for (separator, name) in [
            ('/', self.plugin),
            ('-', self.plugin_instance),
            ('/', self.type_name),
            ('-', self.type_instance),
        ] {
            if separator == '/' || !name.is_empty() {
                text.push(separator);
                text.push_str(&escape(name));
            }
        }
        text
    }

    /// A path relative to a directory of data, as collectd's plugins lay it out: that of a file
    /// without its suffix. It has three components, none of which leads elsewhere.
    ///
    /// # Errors
    ///
    /// Those of [`check`](Self::check).
    pub fn path(&self) -> Result<String, NameError> {
        self.check()?;
        Ok(self.canonical())
    }

    /// A name without slashes, as collectd does it: `root` where that is all there is, otherwise
    /// without the first one, others as `_`.
    pub fn escape(name: &str) -> Cow<'_, str> {
        escape(name)
    }
}

fn escape(name: &str) -> Cow<'_, str> {
    if name == "/" {
        return "root".into();
    }
    let name = name.strip_prefix('/').unwrap_or(name);
    match name.contains('/') {
        true => name.replace('/', "_").into(),
        false => name.into(),
    }
}

/// Checks whether a name, any of the five, can be stored.
pub(crate) fn check_name(what: &'static str, name: &str) -> Result<(), NameError> {
    if name.len() > LONGEST_NAME {
        return Err(NameError::TooLong(what));
    }
    // As characters, since UTF-8 has control characters of two bytes as well.
    if name.chars().any(char::is_control) {
        return Err(NameError::Control(what));
    }
    Ok(())
}

/// As it is, without escaping.
impl fmt::Display for Identifier<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.host, self.plugin)?;
        if !self.plugin_instance.is_empty() {
            write!(f, "-{}", self.plugin_instance)?;
        }
        write!(f, "/{}", self.type_name)?;
        if !self.type_instance.is_empty() {
            write!(f, "-{}", self.type_instance)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> [&str; 5] {
        let id = Identifier::parse(text).unwrap();
        let names: Vec<_> = id.names().map(|(_, name)| name).collect();
        names.try_into().unwrap()
    }

    #[test]
    fn names_are_split_at_the_first_separators() {
        assert_eq!(parse("a-b/c-d-e/f-g-h"), ["a-b", "c", "d-e", "f", "g-h"]);
        assert_eq!(parse("h/p/t"), ["h", "p", "", "t", ""]);
        assert_eq!(parse("h/p/b/c-d/e"), ["h", "p", "", "b/c", "d/e"]);
        assert_eq!(parse("/p-/t-"), ["", "p", "", "t", ""]);
        assert_eq!(Identifier::parse("p/t"), Err(NameError::Parts));
        let long = "x".repeat(128);
        assert_eq!(
            Identifier::parse(&format!("{long}/p/t")),
            Err(NameError::TooLong("host"))
        );
        assert!(Identifier::parse(&format!("{}/p/t", &long[1..])).is_ok());
    }

    #[test]
    fn slashes_are_escaped() {
        for (name, escaped) in [
            ("/", "root"),
            ("/var/log", "var_log"),
            ("a/b", "a_b"),
            ("//", "_"),
            ("plain", "plain"),
            ("", ""),
        ] {
            assert_eq!(escape(name), escaped, "{name}");
        }
        let id = Identifier {
            host: "h/x",
            plugin: "df",
            plugin_instance: "/",
            type_name: "t",
            type_instance: "/home/me",
        };
        assert_eq!(id.canonical(), "h_x/df-root/t-home_me");
        assert_eq!(id.to_string(), "h/x/df-//t-/home/me");
    }

    #[test]
    fn paths_lead_nowhere_else() {
        for (text, error) in [
            ("../p/t", NameError::Dot("host")),
            ("./p/t", NameError::Dot("host")),
            ("h/../t", NameError::Dot("plugin")),
            ("h/.p/t", NameError::Dot("plugin")),
            ("h/p/..", NameError::Dot("type")),
            ("h/p//../x", NameError::Dot("type")),
            ("/p/t", NameError::Empty("host")),
            ("h//t", NameError::Empty("plugin")),
            ("h/-x/t", NameError::Empty("plugin")),
            ("h/p/", NameError::Empty("type")),
            ("h/p/t-a\nb", NameError::Control("type instance")),
            ("h/p/t-\u{85}", NameError::Control("type instance")),
        ] {
            let id = Identifier::parse(text).unwrap();
            assert_eq!(id.path(), Err(error), "{text}");
        }
        let id = Identifier::parse("h/p-../t-..").unwrap();
        assert_eq!(id.path().unwrap(), "h/p-../t-..");
        let id = Identifier {
            host: "../../x",
            ..id
        };
        assert_eq!(id.path(), Err(NameError::Dot("host")));
    }

    mod properties {
        use proptest::prelude::*;

        use super::*;

        proptest! {
            #[test]
            fn what_is_canonical_stays_so(names in proptest::array::uniform5("[ -,.-~é]{0,5}")) {
                let [host, plugin, plugin_instance, type_name, type_instance] = &names;
                let id = Identifier { host, plugin, plugin_instance, type_name, type_instance };
                if let Ok(path) = id.path() {
                    prop_assert_eq!(path.split('/').count(), 3);
                    for part in path.split('/') {
                        prop_assert!(!part.is_empty() && !part.starts_with('.'));
                    }
                    let again = Identifier::parse(&path).unwrap();
                    prop_assert_eq!(again.canonical(), path);
                }
            }
        }
    }
}
