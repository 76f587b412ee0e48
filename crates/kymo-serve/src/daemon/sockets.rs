//! Sockets of a configuration.

use std::io::{self, ErrorKind};
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kymo_io::net::Address;
use kymo_io::reason;
use nix::unistd::geteuid;

use super::{Bound, Daemon};
use crate::config::{Config, Listen};
use crate::listen::Socket;
#[cfg(feature = "tls")]
use crate::listen::tls;
use crate::log::Level;

impl Daemon {
    /// Binds the sockets of a configuration; those that are bound already are taken as they are.
    pub(super) fn bind(&self, config: &Config) -> Result<Bound, String> {
        let mut bound = Bound::new();
        for (what, listen) in config.spoken() {
            for address in &listen.addresses {
                if bound.iter().any(|(_, taken, _)| taken == address) {
                    return Err(format!(
                        "`{address}` is specified twice\nhint: each protocol listens at an address of its own"
                    ));
                }
                let there = self.bound.iter().find(|(_, taken, _)| taken == address);
                let socket = match there {
                    Some((.., socket)) => Arc::clone(socket),
                    None => Arc::new(self.bind_at(what, address, listen)?),
                };
                bound.push((what, address.clone(), socket));
            }
        }
        if !config.metrics.is_set && config.metrics.addresses.is_empty() {
            bound.extend(self.bind_own_metrics(&config.metrics));
        }
        Ok(bound)
    }

    /// Binds a socket of this machine for metrics, where the system has a directory for such. Another daemon may have
    /// it already: then this one starts without it.
    fn bind_own_metrics(&self, listen: &Listen) -> Option<(&'static str, Address, Arc<Socket>)> {
        let address = Address::Unix(runtime_directory()?.join(METRICS_SOCKET));
        let there = self.bound.iter().find(|(_, taken, _)| *taken == address);
        if let Some((.., socket)) = there {
            return Some(("metrics", address, Arc::clone(socket)));
        }
        match self.bind_at("metrics", &address, listen) {
            Ok(socket) => Some(("metrics", address, Arc::new(socket))),
            Err(problem) => {
                (self.log)(Level::Warning, &format!("no metrics: {problem}"));
                None
            }
        }
    }

    fn bind_at(&self, what: &str, address: &Address, listen: &Listen) -> Result<Socket, String> {
        let socket =
            Socket::bind(address, &listen.access).map_err(|error| not_bound(address, &error))?;
        encrypt(&socket, listen).map_err(|problem| format!("{address}: {problem}"))?;
        (self.log)(Level::Info, &format!("{what} at {}", socket.name()));
        let asks = listen.token_file.is_some()
            || listen.tls.as_ref().is_some_and(|it| it.client_ca.is_some());
        let lack = match (asks, listen.tls.is_some()) {
            (true, true) => None,
            (true, false) => Some("tokens can be read on the way: nothing is encrypted"),
            (false, true) => Some("nobody is asked who they are"),
            (false, false) => Some("nobody is asked who they are and nothing is encrypted"),
        };
        if let Some(lack) = lack.filter(|_| !address.is_local()) {
            (self.log)(
                Level::Warning,
                &format!("other machines may reach {address}, where {lack}"),
            );
        }
        Ok(socket)
    }

    /// The sockets where something is spoken, those before the daemon among them.
    pub(super) fn sockets(&self, what: &str, bound: &Bound) -> Vec<Arc<Socket>> {
        let handed = self.handed.iter().filter(|(name, _)| *name == what);
        let bound = bound.iter().filter(|(name, ..)| *name == what);
        let handed = handed.map(|(_, socket)| socket);
        handed
            .chain(bound.map(|(.., socket)| socket))
            .cloned()
            .collect()
    }
}

/// Why nothing can listen at an address, and what to do.
pub(crate) fn not_bound(address: &Address, error: &io::Error) -> String {
    let hint = match (address, error.kind()) {
        (Address::Unix(path), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            let directory = path.parent().unwrap_or(path).display();
            format!("the directory `{directory}` does not exist: `mkdir -p {directory}` creates it")
        }
        (Address::Unix(path), ErrorKind::AddrInUse | ErrorKind::PermissionDenied)
            if is_left(path) =>
        {
            format!(
                "no program listens there: the owner of the socket can remove it with `rm {}`",
                path.display()
            )
        }
        (Address::Unix(path), ErrorKind::PermissionDenied) => {
            let directory = path.parent().unwrap_or(path).display();
            format!("`ls -ld {directory}` shows who may create files there")
        }
        (_, ErrorKind::AddrInUse) => "`ss -lntpx` shows which program listens there".to_owned(),
        (Address::Tcp(..), ErrorKind::AddrNotAvailable) => {
            "`ip address` lists the addresses of this machine".to_owned()
        }
        (Address::Tcp(_, port), ErrorKind::PermissionDenied) if *port < 1024 => {
            "ports below 1024 need the capability CAP_NET_BIND_SERVICE".to_owned()
        }
        (Address::Tcp(..), _) => {
            "an address is unix:PATH, HOST, HOST:PORT or [IPv6]:PORT".to_owned()
        }
        _ => String::new(),
    };
    let problem = format!("{address}: {}", reason(error));
    match hint.is_empty() {
        true => problem,
        false => format!("{problem}\nhint: {hint}"),
    }
}

/// Whether there is a socket at which no program listens. It may be one of a user who lets nobody else connect: then
/// the system's list of sockets counts, in which its directory may have another name.
fn is_left(path: &Path) -> bool {
    let is_socket = |path: &Path| Some(path.symlink_metadata().ok()?.file_type().is_socket());
    if is_socket(path) != Some(true) {
        return false;
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => true,
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            std::fs::read("/proc/net/unix").is_ok_and(|list| !is_listed(path, &list))
        }
        _ => false,
    }
}

/// Whether the system's list has a socket of this name in any directory.
fn is_listed(path: &Path, list: &[u8]) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    let mut lines = list.split(|&byte| byte == b'\n');
    lines.any(|line| {
        let rest = line.strip_suffix(name);
        rest.is_some_and(|rest| rest.ends_with(b"/") || rest.ends_with(b" "))
    })
}

/// The name of the socket for metrics.
const METRICS_SOCKET: &str = "metrics.sock";

/// Where sockets of this daemon may be by default: the directory that systemd has made for it, that of the user, or that
/// of the system.
fn runtime_directory() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(directories) = variable("RUNTIME_DIRECTORY") {
        return std::env::split_paths(&directories).next();
    }
    let parent = match variable("XDG_RUNTIME_DIR") {
        Some(directory) => PathBuf::from(directory),
        None if geteuid().is_root() => PathBuf::from("/run"),
        None => return None,
    };
    let directory = parent.join("kymo");
    // If it cannot be created, the socket in it cannot be bound either.
    let _ = std::fs::create_dir(&directory);
    Some(directory)
}

/// Has the connections of a port encrypted as the configuration says it.
#[cfg(feature = "tls")]
pub(super) fn encrypt(socket: &Socket, listen: &Listen) -> Result<(), String> {
    if let Socket::Tcp(_, encryption) = socket {
        let acceptor = listen.tls.as_ref().map(tls::Acceptor::read);
        encryption.set(acceptor.transpose()?);
    }
    Ok(())
}

/// There is no such key of the configuration then.
#[cfg(not(feature = "tls"))]
#[allow(clippy::unnecessary_wraps, reason = "with TLS it may fail")]
pub(super) fn encrypt(_: &Socket, _: &Listen) -> Result<(), String> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn sockets_that_are_left_are_to_be_removed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("kymo.sock");
        let address = Address::Unix(path.clone());
        let hint = |kind: ErrorKind| not_bound(&address, &kind.into());
        let listener = UnixListener::bind(&path).unwrap();
        assert!(hint(ErrorKind::AddrInUse).contains("`ss -lntpx`"));
        drop(listener);
        for kind in [ErrorKind::AddrInUse, ErrorKind::PermissionDenied] {
            let hint = hint(kind);
            assert!(
                hint.ends_with(&format!("`rm {}`", path.display())),
                "{hint}"
            );
        }
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "").unwrap();
        assert!(hint(ErrorKind::AddrInUse).contains("`ss -lntpx`"));
    }

    #[test]
    fn sockets_are_listed_with_any_directory() {
        let list =
            b"Num Path\n00: 2 0 10000 1 1 77 /var/run/kymo/a.sock\n00: 2 0 0 1 1 78 b.sock\n";
        for (path, expected) in [
            ("/run/kymo/a.sock", true),
            ("/tmp/b.sock", true),
            ("/run/kymo/sock", false),
            ("/run/kymo/c.sock", false),
        ] {
            assert_eq!(is_listed(Path::new(path), list), expected, "{path}");
        }
    }
}
