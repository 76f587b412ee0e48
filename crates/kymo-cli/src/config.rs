//! The file of configuration: what is not said on the command line each time.
//!
//! ```toml
//! [rrd]
//! # The form of new databases: `portable`, or a machine of `kymo machine list`.
//! format = "portable"
//! ```

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The directory for everybody on this machine.
const SHARED: &str = "/etc/kymo";

/// The form of new databases, and the file that says so.
///
/// # Errors
///
/// A file that cannot be read, or that says what is not known, as a message.
pub(crate) fn rrd_format() -> Result<Option<(String, String)>, String> {
    for path in paths("config.toml") {
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if is_none(&path, error.kind()) => continue,
            Err(error) => return Err(format!("'{}': {error}", path.display())),
        };
        let format = format(&text).map_err(|error| format!("'{}': {error}", path.display()))?;
        if let Some(format) = format {
            return Ok(Some((format!("'{}'", path.display()), format)));
        }
    }
    Ok(None)
}

/// Whether there is no such file, or it is another user's: a program that serves may have `/dev/null`
/// for its home, or the home of whoever started it.
pub(crate) fn is_none(path: &Path, error: ErrorKind) -> bool {
    match error {
        ErrorKind::NotFound | ErrorKind::NotADirectory => true,
        ErrorKind::PermissionDenied => !path.starts_with(SHARED),
        _ => false,
    }
}

/// The user's file of a name, and the one for everybody.
pub(crate) fn paths(name: &str) -> impl Iterator<Item = PathBuf> + use<'_> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let own = set("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| set("HOME").map(|home| PathBuf::from(home).join(".config")))
        .map(|directory| directory.join("kymo"));
    let directories = own.into_iter().chain([PathBuf::from(SHARED)]);
    directories.map(move |directory| directory.join(name))
}

/// What a file says of new databases.
fn format(text: &str) -> Result<Option<String>, String> {
    let table: toml::Table = text
        .parse()
        .map_err(|error: toml::de::Error| error.to_string())?;
    let mut format = None;
    for (name, value) in &table {
        let ("rrd", toml::Value::Table(rrd)) = (name.as_str(), value) else {
            return Err(format!("found `{name}`, expected the table `[rrd]`"));
        };
        for (name, value) in rrd {
            match (name.as_str(), value) {
                ("format", toml::Value::String(text)) => format = Some(text.clone()),
                ("format", value) => {
                    let found = value.type_str();
                    return Err(format!(
                        "rrd.format: found a value of type {found}, expected a string"
                    ));
                }
                _ => return Err(format!("found `rrd.{name}`, expected `rrd.format`")),
            }
        }
    }
    Ok(format)
}

#[cfg(test)]
mod tests {
    use super::format;

    #[test]
    fn formats_are_found() {
        assert_eq!(format(""), Ok(None));
        assert_eq!(format("[rrd]"), Ok(None));
        let text = "[rrd]\nformat = \"portable\" # here\n";
        assert_eq!(format(text), Ok(Some("portable".into())));
    }

    #[test]
    fn what_is_not_known_is_told() {
        for (text, message) in [
            (
                "format = \"portable\"",
                "found `format`, expected the table `[rrd]`",
            ),
            (
                "[rrd]\nforms = 1",
                "found `rrd.forms`, expected `rrd.format`",
            ),
            (
                "[rrd]\nformat = 1",
                "rrd.format: found a value of type integer, expected a string",
            ),
        ] {
            assert_eq!(format(text), Err(message.into()));
        }
        assert!(format("[rrd").is_err());
    }
}
