//! Who is answered.
//!
//! A page of any site can send requests to this machine. It is refused by the name of the host that it used (a name
//! of its own that resolves to this machine), by its origin, and because it does not know the token. All refusals
//! look alike, so that it learns nothing.

use subtle::ConstantTimeEq;

use crate::request::{Head, Method};

/// The headers of every answer.
pub const HEADERS: &[(&str, &str)] = &[
    (POLICY, FILES),
    ("X-Content-Type-Options", "nosniff"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Referrer-Policy", "no-referrer"),
];

/// The header with the policy.
pub(crate) const POLICY: &str = "Content-Security-Policy";

/// The policy of files.
const FILES: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";

/// The policy of a page that has its script and its style in it: these two with a nonce, and no others.
pub(crate) fn policy_with(nonce: &str) -> String {
    FILES.replace(
        "-src 'self'; style-src 'self';",
        &format!("-src 'nonce-{nonce}'; style-src 'nonce-{nonce}';"),
    )
}

/// Decides which requests are answered.
#[derive(Clone, Debug)]
pub struct Guard {
    token: String,
    /// The names that are accepted; empty for those of this machine itself.
    hosts: Vec<String>,
}

/// A request that is not answered: the status that says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused(pub u16);

impl Guard {
    /// Accepts requests with this token, to the loopback names with any port or, if there are any, to exactly these hosts.
    pub fn new(token: String, hosts: Vec<String>) -> Self {
        Self { token, hosts }
    }

    /// The token.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// The first of the hosts, as addresses of pages write it.
    pub(crate) fn first_host(&self) -> Option<String> {
        self.hosts.first().map(|host| in_address(host))
    }

    /// The path behind the token, if the request is to be answered.
    ///
    /// # Errors
    ///
    /// A foreign page asks (403), or the body is not JSON (415).
    pub fn check<'h>(&self, head: &'h Head) -> Result<&'h str, Refused> {
        const FOREIGN: Refused = Refused(403);
        let host = head.host.as_deref().ok_or(FOREIGN)?;
        if !self.is_host(host) {
            return Err(FOREIGN);
        }
        if let Some(origin) = &head.origin {
            let expected = origin.strip_prefix("http://").ok_or(FOREIGN)?;
            if !expected.eq_ignore_ascii_case(host) {
                return Err(FOREIGN);
            }
        }
        if !matches!(
            head.fetch_site.as_deref(),
            None | Some("same-origin" | "none")
        ) {
            return Err(FOREIGN);
        }
        let path = head.target.strip_prefix('/').ok_or(FOREIGN)?;
        let (token, path) = path.split_once('/').ok_or(FOREIGN)?;
        if !bool::from(token.as_bytes().ct_eq(self.token.as_bytes())) {
            return Err(FOREIGN);
        }
        if head.method == Method::Post && head.content_type.as_deref() != Some("application/json") {
            return Err(Refused(415));
        }
        Ok(path)
    }

    fn is_host(&self, host: &str) -> bool {
        let Some(name) = without_port(host) else {
            return false;
        };
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        match self.hosts.is_empty() {
            true => ["127.0.0.1", "[::1]", "localhost"].into_iter().any(is),
            false => self.hosts.iter().any(|host| is(&in_address(host))),
        }
    }
}

/// A host as it is written in addresses: those of IPv6 stand in brackets.
fn in_address(host: &str) -> String {
    match host.contains(':') && !host.starts_with('[') {
        true => format!("[{host}]"),
        false => host.to_string(),
    }
}

/// The name of a host without its port; `None` if it is not a host.
fn without_port(host: &str) -> Option<&str> {
    let end = match host.strip_prefix('[') {
        Some(rest) => rest.find(']')? + 2,
        None => host.find(':').unwrap_or(host.len()),
    };
    let (name, port) = host.split_at(end);
    let is_port = |port: &str| !port.is_empty() && port.parse::<u16>().is_ok();
    (port.is_empty() || port.strip_prefix(':').is_some_and(is_port)).then_some(name)
}

#[cfg(test)]
mod tests;
