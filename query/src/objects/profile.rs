//! What the AWS tools keep in `~/.aws`: keys, region and endpoint, by profile.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// Bytes of a file of profiles, at most.
const MOST: u64 = 1 << 20;

/// A profile, as far as object storage needs it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Profile {
    /// Access key and secret key, which come together, and the token of temporary ones.
    pub(super) keys: Option<(String, String, Option<String>)>,
    pub(super) region: Option<String>,
    pub(super) endpoint: Option<String>,
}

impl Profile {
    /// The profile that the environment names, or else `default`; an empty one if there are no files.
    ///
    /// # Errors
    ///
    /// A file cannot be read, or the profile that is named is not there or has nothing that can be used.
    pub(super) fn load(variable: impl Fn(&str) -> Option<String>) -> io::Result<Self> {
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        let home = variable("HOME").or_else(|| variable("USERPROFILE"));
        let file = |name: &str, usual: &str| {
            let usual = || Some(Path::new(home.as_deref()?).join(".aws").join(usual));
            variable(name).map(PathBuf::from).or_else(usual)
        };
        let credentials = read(file("AWS_SHARED_CREDENTIALS_FILE", "credentials"))?;
        let config = read(file("AWS_CONFIG_FILE", "config"))?;
        let named = variable("AWS_PROFILE").or_else(|| variable("AWS_DEFAULT_PROFILE"));
        let name = named.as_deref().unwrap_or("default");
        let of_config = match name {
            "default" => {
                section(&config, "default").or_else(|| section(&config, "profile default"))
            }
            name => section(&config, &format!("profile {name}")),
        };
        let of_credentials = section(&credentials, name);
        if named.is_some() && of_config.is_none() && of_credentials.is_none() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("no profile `{name}` (AWS_PROFILE) in the files of `~/.aws`"),
            ));
        }
        // Keys in the file for them come before those of the other file.
        let mut values = of_config.unwrap_or_default();
        values.extend(of_credentials.unwrap_or_default());
        let mut take = |key: &str| values.remove(key).filter(|value| !value.is_empty());
        let token = take("aws_session_token");
        let keys = take("aws_access_key_id").zip(take("aws_secret_access_key"));
        let profile = Self {
            keys: keys.map(|(key, secret)| (key, secret, token)),
            region: take("region"),
            endpoint: take("endpoint_url"),
        };
        let others = [
            "role_arn",
            "sso_session",
            "sso_start_url",
            "credential_process",
        ];
        let other = others.iter().find(|key| values.contains_key(**key));
        match other.filter(|_| named.is_some() && profile.keys.is_none()) {
            Some(other) => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                format!(
                    "the profile `{name}` has `{other}` in place of keys, which is not supported; \
                     `aws configure export-credentials --profile {name} --format env` prints variables to set"
                ),
            )),
            None => Ok(profile),
        }
    }
}

/// The text of a file; an empty one if there is none.
fn read(path: Option<PathBuf>) -> io::Result<String> {
    let Some(path) = path else {
        return Ok(String::new());
    };
    let named =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    match std::fs::metadata(&path) {
        Ok(metadata) if metadata.len() > MOST => Err(named(io::ErrorKind::FileTooLarge.into())),
        Ok(_) => std::fs::read_to_string(&path).map_err(named),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(named(error)),
    }
}

/// The values of a section. Lines that are indented belong to the value before them, and are not of use here.
fn section(text: &str, name: &str) -> Option<BTreeMap<String, String>> {
    let mut values: Option<BTreeMap<String, String>> = None;
    let mut is_in = false;
    for line in text.lines() {
        let is_indented = line.starts_with([' ', '\t']);
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(header) = line.strip_prefix('[') {
            let header = header.split(']').next().unwrap_or_default();
            is_in = header.split_whitespace().eq(name.split_whitespace());
            if is_in {
                values.get_or_insert_default();
            }
        } else if let (true, false, Some((key, value))) = (is_in, is_indented, line.split_once('='))
        {
            let comment = [" #", " ;", "\t#", "\t;"];
            let end = comment.iter().filter_map(|sign| value.find(sign)).min();
            let value = value[..end.unwrap_or(value.len())].trim();
            let values = values.get_or_insert_default();
            values.insert(key.trim().to_ascii_lowercase(), value.to_owned());
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(place: &Path, variables: &[(&str, &str)]) -> io::Result<Profile> {
        Profile::load(|name| match name {
            "HOME" => place.to_str().map(str::to_owned),
            name => {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            }
        })
    }

    #[test]
    fn profiles_have_keys_and_regions() {
        let place = tempfile::tempdir().unwrap();
        assert_eq!(load(place.path(), &[]).unwrap(), Profile::default());
        std::fs::create_dir(place.path().join(".aws")).unwrap();
        let write = |name: &str, text: &str| {
            std::fs::write(place.path().join(".aws").join(name), text).unwrap();
        };
        write(
            "credentials",
            "# keys\n[default]\naws_access_key_id = A1\naws_secret_access_key=s=1 # mine\n\n\
             [ work ]\naws_access_key_id=A2\naws_secret_access_key=s2\naws_session_token=t2\n[half]\naws_access_key_id=A3\n",
        );
        write(
            "config",
            "[default]\nregion = eu-west-1\ns3 =\n  region = nested\n[profile work]\nregion=us-west-2\n\
             endpoint_url = http://store:9000\naws_access_key_id = other\n[profile role]\nrole_arn = arn:x\nsource_profile=work\n",
        );
        let keys = |key: &str, secret: &str, token: Option<&str>| {
            Some((key.to_owned(), secret.to_owned(), token.map(str::to_owned)))
        };
        let usual = load(place.path(), &[]).unwrap();
        assert_eq!(usual.keys, keys("A1", "s=1", None));
        assert_eq!(usual.region.as_deref(), Some("eu-west-1"));
        let work = load(place.path(), &[("AWS_PROFILE", "work")]).unwrap();
        assert_eq!(work.keys, keys("A2", "s2", Some("t2")));
        assert_eq!(work.endpoint.as_deref(), Some("http://store:9000"));
        let half = load(place.path(), &[("AWS_PROFILE", "half")]).unwrap();
        assert_eq!(half.keys, None);
        for (name, expected) in [("none", "no profile `none`"), ("role", "`role_arn`")] {
            let error = load(place.path(), &[("AWS_PROFILE", name)]).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        }
        // Other files.
        let other = place.path().join("other");
        std::fs::write(&other, "[default]\nregion=x\n").unwrap();
        let other = other.to_str().unwrap();
        let variables = [
            ("AWS_CONFIG_FILE", other),
            ("AWS_SHARED_CREDENTIALS_FILE", "/none"),
        ];
        let profile = load(place.path(), &variables).unwrap();
        assert_eq!((profile.keys, profile.region.as_deref()), (None, Some("x")));
    }
}
