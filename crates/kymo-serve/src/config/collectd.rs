//! What the file says of collectd's clients: the table `collectd`.
//!
//! ```toml
//! [collectd]
//! types-db = "/usr/share/collectd/types.db"
//!
//! [[collectd.listen]]
//! host = "0.0.0.0"
//! security = "encrypt"
//! auth-file = "/etc/kymo/passwords"
//!
//! [collectd.unixsock]
//! listen = "unix:/run/kymo/collectd.sock"
//!
//! [collectd.csv]
//! directory = "/var/lib/kymo-csv"
//!
//! [collectd.forward]
//! received = true
//!
//! [[collectd.forward.server]]
//! host = "metrics.example"
//! ```

use std::time::Duration;

use kymo_collectd::network::{PORT, SIZES, Security};
use kymo_time::CdTime;

use super::{MIB, ReadFile, Section};
use crate::collectd::Options;
use crate::forward::{self, Server};
use crate::ingest::Databases;
use crate::network::Listen;
use crate::{conf, csv};

/// Levels of security, as they are written.
const LEVELS: &str = "none, sign or encrypt";

/// Reads the table; `file` reads the file that it names.
pub(super) fn read(mut section: Section<'_>, file: &ReadFile<'_>) -> Result<Options, String> {
    let mut options = Options::default();
    // What is said here counts more than what the file says that it names.
    if let Some(path) = section.path("config")? {
        options.ignored = conf::read_with(&path, file, &mut options)?;
    }
    let types_db = section.paths("types-db")?;
    if !types_db.is_empty() {
        options.types_db = types_db;
    }
    section.set("interval", &mut options.interval, interval)?;
    if let Some((host, _)) = section.string("host")? {
        options.host = Some(host.to_string());
    }
    section.set("most-series", &mut options.most_series, |section, name| {
        section.count(name, 1..=100_000_000)
    })?;
    section.set(
        "most-series-per-sender",
        &mut options.most_series_per_sender,
        |section, name| section.count(name, 1..=100_000_000),
    )?;
    section.set(
        "most-mib-per-sender",
        &mut options.most_bytes_per_sender,
        |section, name| {
            let mib = section.count(name, 1..=1 << 30)?;
            Ok(mib.map(|mib| mib as u64 * super::MIB))
        },
    )?;
    let network = &mut options.network;
    section.set("threads", &mut network.workers, |section, name| {
        section.count(name, 1..=64)
    })?;
    section.set("queue-mib", &mut network.queue, mib)?;
    section.set("receive-buffer-mib", &mut network.receive_buffer, mib)?;
    if let Some(room) = section.count("deduplicate", 0..=100_000_000)? {
        network.deduplicate = (room > 0).then_some(room);
    }
    for listen in section.sections("listen")? {
        network.listen.push(self::listen(listen)?);
    }
    if let Some(table) = section.section("unixsock")? {
        super::read::listen(table, None, &mut options.unixsock)?;
    }
    let mut wants_databases = options.databases.is_some();
    section.set("databases", &mut wants_databases, Section::boolean)?;
    options.databases = match wants_databases {
        true => Some(options.databases.unwrap_or_default()),
        false => None,
    };
    if let Some(table) = section.section("rrd")? {
        match &mut options.databases {
            Some(databases) => rrd(table, databases)?,
            None => return Err(table.here("there are no databases: `databases` is false")),
        }
    }
    if let Some(mut table) = section.section("csv")? {
        let directory = table.path("directory")?;
        let mut rates = false;
        table.set("rates", &mut rates, Section::boolean)?;
        let directory = directory.ok_or_else(|| table.missing("directory"))?;
        options.csv = Some(csv::Options { directory, rates });
        table.end()?;
    }
    if let Some(table) = section.section("forward")? {
        forward(table, &mut options.forward)?;
    }
    section.end()?;
    Ok(options)
}

fn forward(mut table: Section<'_>, forward: &mut forward::Options) -> Result<(), String> {
    table.set("received", &mut forward.received, Section::boolean)?;
    table.set("packet-size", &mut forward.packet_size, |table, name| {
        table.count(name, SIZES)
    })?;
    if let Some(routers) = table.count("time-to-live", 1..=255)? {
        forward.time_to_live = Some(routers as u8);
    }
    for server in table.sections("server")? {
        forward.servers.push(self::server(server)?);
    }
    table.end()
}

fn server(mut table: Section<'_>) -> Result<Server, String> {
    let (host, port, level) = remote(&mut table)?;
    let mut server = Server::new(&host);
    (server.port, server.level) = (port, level);
    let user = table.string("user")?.map(|it| it.0.to_string());
    let password = table.string("password")?.map(|it| it.0.to_string());
    if level > Security::None {
        let user = user.ok_or_else(|| table.missing("user"))?;
        server.user = Some((user, password.ok_or_else(|| table.missing("password"))?));
    }
    server.interface = table.string("interface")?.map(|it| it.0.to_string());
    server.bind_address = table.string("bind-address")?.map(|it| it.0.to_string());
    server.resolve_interval = table.period("resolve-interval")?;
    table.end()?;
    Ok(server)
}

/// The host, the port and the level of security.
fn remote(table: &mut Section<'_>) -> Result<(String, u16, Security), String> {
    let host = table.string("host")?;
    let host = host.ok_or_else(|| table.missing("host"))?.0.to_string();
    let port = table.count("port", 0..=65_535)?;
    let port = port.map_or(PORT, |port| port as u16);
    let Some((text, place)) = table.string("security")? else {
        return Ok((host, port, Security::None));
    };
    let level = Security::from_name(text)
        .ok_or_else(|| table.found("security", place, &format!("`{text}`"), LEVELS))?;
    Ok((host, port, level))
}

fn listen(mut table: Section<'_>) -> Result<Listen, String> {
    let (host, port, level) = remote(&mut table)?;
    let mut listen = Listen::new(&host);
    (listen.port, listen.level) = (port, level);
    listen.auth_file = table.path("auth-file")?;
    if listen.level > Security::None && listen.auth_file.is_none() {
        return Err(table.missing("auth-file"));
    }
    listen.interface = table.string("interface")?.map(|it| it.0.to_string());
    listen.replay_window = match table.seconds("replay-window")? {
        Some(window) => Some(cdtime(window)?),
        None => None,
    };
    table.end()?;
    Ok(listen)
}

fn rrd(mut table: Section<'_>, databases: &mut Databases) -> Result<(), String> {
    table.set("directory", &mut databases.directory, Section::path)?;
    let definitions = &mut databases.definitions;
    let seconds = 1..=31_622_400;
    if let Some(step) = table.count("step", seconds.clone())? {
        definitions.step = Some(step as u64);
    }
    if let Some(heartbeat) = table.count("heartbeat", seconds.clone())? {
        definitions.heartbeat = Some(heartbeat as u64);
    }
    if let Some(rows) = table.count("rows", 1..=1 << 24)? {
        definitions.rows = rows as u64;
    }
    let timespans = table.counts("timespans", 1..=1 << 34)?;
    if !timespans.is_empty() {
        definitions.timespans = timespans.into_iter().map(|span| span as u64).collect();
    }
    table.set("xff", &mut definitions.xff, |table, name| {
        table.fraction(name)
    })?;
    table.end()
}

pub(super) fn mib(section: &mut Section<'_>, name: &'static str) -> Result<Option<usize>, String> {
    let mib = section.count(name, 1..=1 << 20)?;
    Ok(mib.map(|mib| mib.saturating_mul(MIB as usize)))
}

fn interval(section: &mut Section<'_>, name: &'static str) -> Result<Option<CdTime>, String> {
    match section.seconds(name)? {
        Some(Duration::ZERO) => Err(section.here(&format!("`{name}` is 0, expected more"))),
        Some(interval) => Ok(Some(cdtime(interval)?)),
        None => Ok(None),
    }
}

fn cdtime(seconds: Duration) -> Result<CdTime, String> {
    CdTime::from_timespec(seconds.as_secs(), seconds.subsec_nanos())
        .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use kymo_io::net::Address;

    use crate::config::Config;
    use crate::csv;
    use crate::definitions::Definitions;

    use super::*;

    fn parse(text: &str) -> Result<Options, String> {
        let config = Config::parse(&format!("data = '/data'\n[collectd]\n{text}"))?;
        Ok(config.collectd.unwrap())
    }

    #[test]
    fn all_that_can_be_said() {
        let options = parse(
            r#"
            types-db = ["/a", "/b"]
            interval = 0.1
            host = "vm"
            most-series = 5
            most-series-per-sender = 3
            most-mib-per-sender = 2
            threads = 3
            queue-mib = 1
            receive-buffer-mib = 2
            deduplicate = 1000
            [[collectd.listen]]
            host = "::1"
            [[collectd.listen]]
            host = "239.192.74.66"
            port = 1
            security = "encrypt"
            auth-file = "/auth"
            interface = "eth0"
            replay-window = 60
            [collectd.unixsock]
            listen = "/run/x"
            mode = 0o600
            [collectd.rrd]
            directory = "rrd"
            step = 1
            heartbeat = 2
            rows = 3
            timespans = [4, 5]
            xff = 0.25
            [collectd.csv]
            directory = "/csv"
            rates = true
            [collectd.forward]
            received = true
            packet-size = 1024
            time-to-live = 3
            [[collectd.forward.server]]
            host = "a"
            [[collectd.forward.server]]
            host = "::1"
            port = 99
            security = "sign"
            user = "alice"
            password = "s3cret pass"
            interface = "lo"
            bind-address = "::"
            resolve-interval = 60
            "#,
        )
        .unwrap();
        let expected = Options {
            forward: forward::Options {
                servers: vec![
                    Server::new("a"),
                    Server {
                        port: 99,
                        level: Security::Sign,
                        user: Some(("alice".to_string(), "s3cret pass".to_string())),
                        interface: Some("lo".to_string()),
                        bind_address: Some("::".to_string()),
                        resolve_interval: Some(Duration::from_secs(60)),
                        ..Server::new("::1")
                    },
                ],
                received: true,
                packet_size: 1024,
                time_to_live: Some(3),
            },
            types_db: vec!["/a".into(), "/b".into()],
            interval: CdTime::from_millis(100).unwrap(),
            host: Some("vm".to_string()),
            most_series: 5,
            most_series_per_sender: 3,
            most_bytes_per_sender: 2 << 20,
            databases: Some(Databases {
                directory: "rrd".into(),
                definitions: Definitions {
                    step: Some(1),
                    heartbeat: Some(2),
                    rows: 3,
                    timespans: vec![4, 5],
                    xff: 0.25,
                },
            }),
            csv: Some(csv::Options {
                directory: "/csv".into(),
                rates: true,
            }),
            network: crate::network::Options {
                listen: vec![
                    Listen::new("::1"),
                    Listen {
                        port: 1,
                        level: Security::Encrypt,
                        auth_file: Some("/auth".into()),
                        interface: Some("eth0".to_string()),
                        replay_window: Some(CdTime::from_seconds(60).unwrap()),
                        ..Listen::new("239.192.74.66")
                    },
                ],
                workers: 3,
                queue: 1 << 20,
                receive_buffer: 2 << 20,
                deduplicate: Some(1000),
            },
            unixsock: crate::config::Listen {
                is_set: true,
                addresses: vec![Address::Unix("/run/x".into())],
                access: crate::listen::Access::mode(0o600),
                connections: 1000,
                ..crate::config::Listen::nowhere(0o770)
            },
            ignored: Vec::new(),
        };
        assert_eq!(options, expected);
        assert_eq!(parse(""), Ok(Options::default()));
        let none = parse("databases = false").unwrap();
        assert_eq!(none.databases, None);
    }

    #[test]
    fn what_is_wrong_is_reported_with_its_place() {
        for (text, problem) in [
            (
                "x = 1",
                "line 3, column 1: found `collectd.x`, expected one of ",
            ),
            (
                "interval = 0",
                "line 2, column 1: `collectd`: `interval` is 0, expected more",
            ),
            (
                "listen = 1",
                "line 3, column 10: `collectd.listen`: found integer, expected a list of tables",
            ),
            (
                "[[collectd.listen]]\nport = 1",
                "line 3, column 1: `collectd.listen`: there is no `host`",
            ),
            (
                "[[collectd.listen]]\nhost = 'h'\nsecurity = 'high'",
                "line 5, column 12: `collectd.listen.security`: found `high`, expected none, sign or encrypt",
            ),
            (
                "[[collectd.listen]]\nhost = 'h'\nsecurity = 'sign'",
                "line 3, column 1: `collectd.listen`: there is no `auth-file`",
            ),
            (
                "[collectd.csv]",
                "line 3, column 1: `collectd.csv`: there is no `directory`",
            ),
            (
                "databases = false\n[collectd.rrd]",
                "line 4, column 1: `collectd.rrd`: there are no databases",
            ),
            (
                "[collectd.rrd]\nxff = 1",
                "line 4, column 7: `collectd.rrd.xff`: found 1, expected a number from 0 to below 1",
            ),
            (
                "[[collectd.forward.server]]\nhost = 'h'\nsecurity = 'encrypt'\nuser = 'u'",
                "line 3, column 1: `collectd.forward.server`: there is no `password`",
            ),
            (
                "[collectd.forward]\npacket-size = 100",
                "line 4, column 15: `collectd.forward.packet-size`: found 100, expected 1024 to 65507",
            ),
            ("config = '/nonexistent/file'", "`/nonexistent/file`: "),
        ] {
            let found = parse(text).unwrap_err();
            assert!(found.starts_with(problem), "{found}");
        }
    }
}
