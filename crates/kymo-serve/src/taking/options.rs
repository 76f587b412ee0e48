//! What is taken, and where.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use kymo_io::net::Address;
use kymo_metrics::statsd::AggregatorOptions;
use kymo_metrics::{Key, Kind};

use super::rules::Rules;
use super::template::Template;
use crate::config::Listen;
use crate::expire::ExpireRule;
use crate::query::naming;

/// A protocol of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// Graphite's plaintext protocol.
    Graphite,
    /// StatsD.
    Statsd,
    /// InfluxDB's line protocol.
    Influx,
    /// Prometheus' remote write.
    RemoteWrite,
    /// Prometheus' targets, which are asked.
    Scrape,
    /// OpenTelemetry's OTLP.
    Otlp,
}

impl Protocol {
    /// All.
    pub const ALL: [Self; 6] = [
        Self::Graphite,
        Self::Statsd,
        Self::Influx,
        Self::RemoteWrite,
        Self::Scrape,
        Self::Otlp,
    ];

    /// Its name, as configurations have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Graphite => "graphite",
            Self::Statsd => "statsd",
            Self::Influx => "influx",
            Self::RemoteWrite => "remote-write",
            Self::Scrape => "scrape",
            Self::Otlp => "otlp",
        }
    }

    /// The protocol of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }

    /// The port to assume, if the protocol has one.
    pub const fn port(self) -> Option<u16> {
        match self {
            Self::Graphite => Some(2003),
            Self::Statsd => Some(8125),
            Self::Influx => Some(8086),
            Self::Otlp => Some(4318),
            Self::RemoteWrite | Self::Scrape => None,
        }
    }

    /// Paths where no rule says otherwise.
    pub(super) fn template(self) -> Template {
        let text = match self {
            Self::Graphite => "graphite/{__path__}/{__labels__}",
            Self::Statsd => "statsd/{__path__}/{__labels__}",
            Self::Influx => "influx/{__name__}/{__labels__}",
            Self::RemoteWrite | Self::Scrape => "prometheus/{__name__}/{__labels__}",
            Self::Otlp => "otlp/{__name__}/{__labels__}",
        };
        Template::parse(text).unwrap_or_else(|problem| unreachable!("{text}: {problem}"))
    }
}

/// Where lines are taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// Connections.
    Stream(Address),
    /// Datagrams of UDP.
    Udp(String, u16),
    /// Datagrams at a socket of this machine.
    Unixgram(PathBuf),
}

impl Endpoint {
    /// Reads `tcp:HOST:PORT`, `udp:HOST:PORT`, `unix:PATH` or `unixgram:PATH`. Without any of these words, an address
    /// is for connections, or for datagrams if `is_datagram`.
    pub fn parse(text: &str, port: Option<u16>, is_datagram: bool) -> Option<Self> {
        if let Some(path) = text.strip_prefix("unixgram:") {
            return Some(Self::Unixgram(path.into()));
        }
        let (is_datagram, rest) = match (text.strip_prefix("udp:"), text.strip_prefix("tcp:")) {
            (Some(rest), _) => (true, rest),
            (_, Some(rest)) => (false, rest),
            _ => (is_datagram, text),
        };
        match Address::parse(rest, port)? {
            Address::Unix(path) if rest.len() == text.len() => {
                Some(Self::Stream(Address::Unix(path)))
            }
            Address::Tcp(host, port) if is_datagram => Some(Self::Udp(host, port)),
            address @ Address::Tcp(..) => Some(Self::Stream(address)),
            Address::Unix(_) => None,
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stream(address @ Address::Unix(_)) => address.fmt(f),
            Self::Stream(address) => write!(f, "tcp:{address}"),
            Self::Udp(host, port) => {
                write!(f, "udp:{}", Address::Tcp(host.clone(), *port))
            }
            Self::Unixgram(path) => write!(f, "unixgram:{}", path.display()),
        }
    }
}

/// Where a protocol of lines is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineListen {
    /// Connections.
    pub streams: Listen,
    /// Datagrams.
    pub datagrams: Vec<Endpoint>,
    /// Connections without a line for so long are closed.
    pub idle_timeout: Duration,
    /// Bytes that the kernel may keep of each address of datagrams.
    pub receive_buffer: usize,
}

impl Default for LineListen {
    fn default() -> Self {
        Self {
            streams: Listen::nowhere(0o660),
            datagrams: Vec::new(),
            idle_timeout: Duration::from_secs(600),
            receive_buffer: 16 << 20,
        }
    }
}

impl LineListen {
    /// Adds an address.
    pub fn add(&mut self, endpoint: Endpoint) {
        match endpoint {
            Endpoint::Stream(address) => {
                self.streams.addresses.push(address);
                self.streams.is_set = true;
            }
            datagrams => self.datagrams.push(datagrams),
        }
    }

    /// All addresses.
    pub fn endpoints(&self) -> impl Iterator<Item = Endpoint> {
        let streams = self.streams.addresses.iter().cloned();
        let streams = streams.map(Endpoint::Stream);
        streams.chain(self.datagrams.iter().cloned())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.streams.addresses.is_empty() && self.datagrams.is_empty()
    }
}

/// How values of StatsD are summed up.
#[derive(Clone, Debug, PartialEq)]
pub struct StatsdOptions {
    /// Where they are taken.
    pub listen: LineListen,
    /// From one sum to the next.
    pub interval: Duration,
    /// Their names.
    pub aggregator: AggregatorOptions,
}

impl Default for StatsdOptions {
    fn default() -> Self {
        Self {
            listen: LineListen::default(),
            interval: Duration::from_secs(10),
            aggregator: AggregatorOptions::default(),
        }
    }
}

/// Where requests of HTTP are taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpListen {
    /// Where.
    pub listen: Listen,
    /// Bytes of a request, before and after it is decompressed.
    pub most_request: usize,
    /// How long a request may take to arrive.
    pub timeout: Duration,
}

impl Default for HttpListen {
    fn default() -> Self {
        let mut listen = Listen::nowhere_http();
        // Each may have a request in memory.
        listen.connections = 100;
        Self {
            listen,
            most_request: 32 << 20,
            timeout: Duration::from_secs(60),
        }
    }
}

/// InfluxDB's line protocol.
#[derive(Clone, Debug, PartialEq)]
pub struct InfluxOptions {
    /// Requests of HTTP.
    pub http: HttpListen,
    /// Lines without HTTP, with times in nanoseconds.
    pub lines: LineListen,
}

impl Default for InfluxOptions {
    fn default() -> Self {
        let mut options = Self {
            http: HttpListen::default(),
            lines: LineListen::default(),
        };
        // Their table has one key for both.
        options.http.listen.idle_timeout = options.lines.idle_timeout;
        options
    }
}

/// OTLP.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OtlpOptions {
    /// Requests of HTTP.
    pub http: HttpListen,
    /// Attributes of resources that become labels, beside `job` and `instance`.
    pub attributes: Vec<String>,
}

/// A target of Prometheus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its host.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The path, with what follows it.
    pub path: String,
    /// Whether it is asked by TLS.
    pub is_encrypted: bool,
}

impl Target {
    /// Reads `http://HOST:PORT/PATH`, `https://HOST:PORT/PATH`, or `HOST:PORT` for the path `/metrics`.
    pub fn parse(text: &str) -> Option<Self> {
        let (is_encrypted, rest) = match text.strip_prefix("https://") {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix("http://").unwrap_or(text)),
        };
        let port = if is_encrypted { 443 } else { 80 };
        if rest.contains("://") || rest.contains(|char: char| char.is_whitespace()) {
            return None;
        }
        let at = rest.find('/').unwrap_or(rest.len());
        let (authority, path) = rest.split_at(at);
        let path = match path {
            "" => "/metrics",
            path => path,
        };
        // Names and passwords would be in the log.
        if authority.contains(['@', '?', '#']) {
            return None;
        }
        match Address::parse(authority, Some(port))? {
            Address::Tcp(host, port) => Some(Self {
                host,
                port,
                path: path.to_owned(),
                is_encrypted,
            }),
            Address::Unix(_) => None,
        }
    }

    /// Its address without what follows a question mark, which may be secret.
    pub(crate) fn shown(&self) -> String {
        let mut url = self.url();
        if let Some(at) = url.find('?') {
            url.truncate(at);
        }
        url
    }

    /// Its address as a whole.
    pub fn url(&self) -> String {
        let address = Address::Tcp(self.host.clone(), self.port);
        let scheme = if self.is_encrypted { "https" } else { "http" };
        format!("{scheme}://{address}{}", self.path)
    }
}

/// Targets that are asked from time to time.
#[derive(Clone, Debug, PartialEq)]
pub struct ScrapeOptions {
    /// The label `job`.
    pub job: String,
    /// The targets.
    pub targets: Vec<Target>,
    /// From one request to the next.
    pub interval: Duration,
    /// How long an answer may take.
    pub timeout: Duration,
    /// Other labels of all series.
    pub labels: Vec<(String, String)>,
    /// Whether labels of targets count more than these.
    pub honor_labels: bool,
    /// Whether times that targets give are taken.
    pub honor_timestamps: bool,
    /// Bytes of an answer.
    pub most_answer: usize,
    /// A file with the token that targets are shown.
    pub token_file: Option<PathBuf>,
    /// How targets are asked by TLS.
    pub tls: ScrapeTls,
}

/// How targets are asked by TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScrapeTls {
    /// Certificates of whom targets must have one of, in PEM; those that the system trusts if there are none.
    pub ca: Option<PathBuf>,
    /// A certificate that targets are shown, in PEM.
    pub certificate: Option<PathBuf>,
    /// Its private key, in PEM.
    pub key: Option<PathBuf>,
}

impl Default for ScrapeOptions {
    fn default() -> Self {
        Self {
            job: String::new(),
            targets: Vec::new(),
            interval: Duration::from_secs(15),
            timeout: Duration::from_secs(10),
            labels: Vec::new(),
            honor_labels: false,
            honor_timestamps: true,
            most_answer: 32 << 20,
            token_file: None,
            tls: ScrapeTls::default(),
        }
    }
}

/// Bounds of what senders may bring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeriesLimits {
    /// Series that are known at a time, and databases that are created until the daemon ends.
    pub most_series: usize,
    /// Of these, those that one address has brought.
    pub most_series_per_sender: usize,
    /// Bytes of the databases created for one address.
    pub most_bytes_per_sender: u64,
}

impl Default for SeriesLimits {
    fn default() -> Self {
        Self {
            most_series: 1_000_000,
            most_series_per_sender: 100_000,
            most_bytes_per_sender: 64 << 30,
        }
    }
}

/// What connections are called that bring lines of InfluxDB without HTTP.
pub(super) const INFLUX_LINES: &str = "influx-lines";

/// What is taken, and where. By default nothing is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// Graphite's lines.
    pub graphite: LineListen,
    /// StatsD.
    pub statsd: StatsdOptions,
    /// InfluxDB's line protocol.
    pub influx: InfluxOptions,
    /// Prometheus' remote write.
    pub remote_write: HttpListen,
    /// OTLP.
    pub otlp: OtlpOptions,
    /// Targets of Prometheus.
    pub scrape: Vec<ScrapeOptions>,
    /// Paths and databases.
    pub rules: Rules,
    /// Bounds.
    pub limits: SeriesLimits,
}

impl Options {
    /// Whether anything is taken.
    pub fn is_empty(&self) -> bool {
        Protocol::ALL.into_iter().all(|it| !self.has(it))
    }

    /// Whether a protocol is taken.
    pub fn has(&self, protocol: Protocol) -> bool {
        match protocol {
            Protocol::Graphite => !self.graphite.is_empty(),
            Protocol::Statsd => !self.statsd.listen.is_empty(),
            Protocol::Influx => {
                !self.influx.http.listen.addresses.is_empty() || !self.influx.lines.is_empty()
            }
            Protocol::RemoteWrite => !self.remote_write.listen.addresses.is_empty(),
            Protocol::Otlp => !self.otlp.http.listen.addresses.is_empty(),
            Protocol::Scrape => self.scrape.iter().any(|it| !it.targets.is_empty()),
        }
    }

    /// What the rules say of a name, for each protocol that is taken, or for all if none is: `NAME{LABEL="VALUE"}`, or
    /// a path of Graphite. `expire` are the rules by which databases are removed.
    ///
    /// # Errors
    ///
    /// What is wrong with the name.
    pub fn explain(
        &self,
        name: &str,
        data: &std::path::Path,
        expire: &[ExpireRule],
    ) -> Result<String, String> {
        let key = Key::parse(name).map_err(|problem| format!("`{name}`: {problem}"))?;
        let mut text = String::new();
        for protocol in Protocol::ALL {
            if !self.is_empty() && !self.has(protocol) {
                continue;
            }
            let verdict = self.rules.verdict(protocol, &key);
            text.push_str(&format!("{}: {key}\n", protocol.name()));
            text.push_str(&verdict.explain(Kind::Gauge, data));
            if verdict.path.is_some() {
                let labels = naming::key_labels(&key, b"value", false);
                let expires = crate::expire::explain(expire, &labels);
                text.push_str(&format!("  removed:      {expires}\n"));
            }
        }
        Ok(text)
    }

    /// Where lines of each protocol are taken.
    pub(crate) fn line_listens(&self) -> Vec<(Protocol, &LineListen)> {
        vec![
            (Protocol::Graphite, &self.graphite),
            (Protocol::Statsd, &self.statsd.listen),
            (Protocol::Influx, &self.influx.lines),
        ]
    }

    /// Where requests of a protocol are taken, if it is one of HTTP.
    pub(super) fn http(&self, protocol: Protocol) -> Option<&HttpListen> {
        match protocol {
            Protocol::Influx => Some(&self.influx.http),
            Protocol::RemoteWrite => Some(&self.remote_write),
            Protocol::Otlp => Some(&self.otlp.http),
            _ => None,
        }
    }

    /// Where connections of each protocol are taken.
    pub fn streams(&self) -> Vec<(&'static str, &Listen)> {
        vec![
            (Protocol::Graphite.name(), &self.graphite.streams),
            (Protocol::Statsd.name(), &self.statsd.listen.streams),
            (INFLUX_LINES, &self.influx.lines.streams),
            (Protocol::Influx.name(), &self.influx.http.listen),
            (Protocol::RemoteWrite.name(), &self.remote_write.listen),
            (Protocol::Otlp.name(), &self.otlp.http.listen),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_written_in_many_ways() {
        for (text, is_datagram, found) in [
            ("localhost", false, Some("tcp:localhost:2003")),
            ("localhost", true, Some("udp:localhost:2003")),
            ("tcp:[::1]:5", true, Some("tcp:[::1]:5")),
            ("udp:h:5", false, Some("udp:h:5")),
            ("unix:/a", true, Some("unix:/a")),
            ("/a", true, Some("unix:/a")),
            ("unixgram:/a", false, Some("unixgram:/a")),
            ("udp:/a", false, None),
            ("tcp:unix:/a", false, None),
            ("h:x", false, None),
        ] {
            let endpoint = Endpoint::parse(text, Some(2003), is_datagram);
            let shown = endpoint.map(|it| it.to_string());
            assert_eq!(shown.as_deref(), found, "{text}");
        }
    }

    #[test]
    fn targets_are_written_in_many_ways() {
        for (text, url) in [
            ("h:9100", Some("http://h:9100/metrics")),
            ("http://h/a?b=c", Some("http://h:80/a?b=c")),
            ("http://[::1]:1/", Some("http://[::1]:1/")),
            ("https://h", Some("https://h:443/metrics")),
            ("https://h:9100/x", Some("https://h:9100/x")),
            ("ftp://h", None),
            ("http://user:word@h:1/", None),
            ("http://user:word@127.0.0.1/a", None),
            ("h:1/a b", None),
            ("/a", None),
        ] {
            let target = Target::parse(text).map(|it| it.url());
            assert_eq!(target.as_deref(), url, "{text}");
        }
    }
}
