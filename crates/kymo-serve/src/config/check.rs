//! What would keep a daemon of a configuration from beginning, as far as that can be seen before.

use std::net::ToSocketAddrs;
use std::path::Path;

use kymo_io::net::Address;
use kymo_io::reason;
use nix::unistd::{AccessFlags, Group, access};

use super::Config;
use crate::taking::Endpoint;
use crate::tokens::Tokens;

impl Config {
    /// Looks at directories, files and names of hosts. Nothing is created or bound.
    ///
    /// # Errors
    ///
    /// All that is wrong.
    pub fn check(&self) -> Result<(), Vec<String>> {
        let mut problems = Vec::new();
        let directories = [Some((&self.data, "data"))].into_iter().chain([self
            .journal
            .as_ref()
            .map(|it| (&it.directory, "journal.directory"))]);
        for (directory, key) in directories.flatten() {
            problems.extend(unwritable(directory).map(|problem| format!("`{key}`: {problem}")));
        }
        if let Some(parent) = self.pid_file.as_deref().and_then(Path::parent)
            && !parent.as_os_str().is_empty()
        {
            problems.extend(unwritable(parent).map(|problem| format!("`pid-file`: {problem}")));
        }
        let mut listens = vec![
            ("rrdcached", &self.rrdcached),
            ("metrics", &self.metrics),
            ("query", &self.query.listen),
        ];
        listens.extend(self.taking.streams());
        listens.extend(
            self.collectd
                .iter()
                .map(|it| ("collectd.unixsock", &it.unixsock)),
        );
        let sockets = self.rrdcached_sockets.iter();
        listens.extend(sockets.map(|it| ("rrdcached.socket", &it.listen)));
        problems.extend(self.check_secrets());
        let mut all: Vec<&Address> = Vec::new();
        for (key, listen) in listens {
            if let Some(name) = &listen.access.group
                && !matches!(Group::from_name(name), Ok(Some(_)))
            {
                problems.push(format!("`{key}.group`: the group `{name}` does not exist"));
            }
            for address in &listen.addresses {
                if all.contains(&address) {
                    problems.push(format!("`{key}.listen`: {address}: it is specified twice"));
                }
                all.push(address);
                let problem = wrong(address);
                problems.extend(problem.map(|it| format!("`{key}.listen`: {address}: {it}")));
            }
        }
        for (protocol, listen) in self.taking.line_listens() {
            for endpoint in &listen.datagrams {
                let address = match endpoint.clone() {
                    Endpoint::Udp(host, port) => Address::Tcp(host, port),
                    Endpoint::Unixgram(path) => Address::Unix(path),
                    Endpoint::Stream(address) => address,
                };
                let key = protocol.name();
                let problem = wrong(&address);
                problems.extend(problem.map(|it| format!("`{key}.listen`: {endpoint}: {it}")));
            }
        }
        if let Some(collectd) = &self.collectd {
            for path in &collectd.types_db {
                problems.extend(unreadable(path).map(|it| format!("`collectd.types-db`: {it}")));
            }
            for listen in &collectd.network.listen {
                let address = Address::Tcp(listen.host.clone(), listen.port);
                let problem = wrong(&address);
                problems.extend(problem.map(|it| format!("`collectd.listen`: {address}: {it}")));
                if let Some(path) = &listen.auth_file {
                    let problem = unreadable(path);
                    problems.extend(problem.map(|it| format!("`collectd.listen.auth-file`: {it}")));
                }
            }
        }
        match problems.is_empty() {
            true => Ok(()),
            false => Err(problems),
        }
    }
}

impl Config {
    /// What is wrong with the files that connections need: tokens, certificates, keys.
    pub(crate) fn check_secrets(&self) -> Vec<String> {
        let mut listens = vec![
            ("rrdcached", &self.rrdcached),
            ("metrics", &self.metrics),
            ("query", &self.query.listen),
        ];
        listens.extend(self.taking.streams());
        let sockets = self.rrdcached_sockets.iter();
        listens.extend(sockets.map(|it| ("rrdcached.socket", &it.listen)));
        let mut problems = Vec::new();
        for (key, listen) in listens {
            if let Some(path) = &listen.token_file
                && let Err(problem) = Tokens::read(path)
            {
                problems.push(format!("`{key}.token-file`: {problem}"));
            }
            #[cfg(feature = "tls")]
            if let Some(files) = &listen.tls
                && let Err(problem) = crate::listen::tls::Acceptor::read(files)
            {
                problems.push(format!("`{key}.certificate`: {problem}"));
            }
        }
        problems
    }
}

/// Why nothing can be created in a directory; one that does not exist is created by the daemon.
fn unwritable(directory: &Path) -> Option<String> {
    let there = directory.ancestors().find(|it| it.exists());
    let there = match there {
        Some(there) => there,
        None => Path::new("."),
    };
    let shown = there.display();
    if !there.is_dir() {
        return Some(format!("`{shown}` is not a directory"));
    }
    let needed = AccessFlags::W_OK | AccessFlags::X_OK;
    let error = access(there, needed).err()?;
    Some(format!(
        "`{shown}`: nothing can be created there: {}",
        reason(&error.into())
    ))
}

fn unreadable(path: &Path) -> Option<String> {
    let error = std::fs::File::open(path).err()?;
    Some(format!("`{}`: {}", path.display(), reason(&error)))
}

/// Why nothing can listen at an address.
fn wrong(address: &Address) -> Option<String> {
    match address {
        Address::Unix(path) => {
            let parent = path.parent().filter(|it| !it.as_os_str().is_empty());
            parent.and_then(unwritable)
        }
        Address::Tcp(host, port) => {
            let found = (host.as_str(), *port).to_socket_addrs();
            found.err().map(|error| reason(&error))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        std::fs::write(&file, "").unwrap();
        let good = format!(
            "data = '{0}/new/data'\n[graphite]\nlisten = ['udp:127.0.0.1', '/{0}/g']",
            directory.path().display()
        );
        assert_eq!(Config::parse(&good).unwrap().check(), Ok(()));
        let bad = format!(
            "data = '{0}/x'\n[rrdcached]\nlisten = '/{0}/s'\n[statsd]\nlisten = 'unixgram:{0}/u'\n[query]\nlisten = '/{0}/s'",
            file.display()
        );
        let problems = Config::parse(&bad).unwrap().check().unwrap_err();
        assert_eq!(problems.len(), 5, "{problems:#?}");
    }
}
