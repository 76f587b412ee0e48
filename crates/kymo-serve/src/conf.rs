//! A `collectd.conf`, as far as it says what the daemon does, too.
//!
//! Of the plugins network, unixsock, rrdtool, rrdcached and csv, where they are loaded. Whatever else
//! is in the file is reported with its line, and not followed.

use std::path::Path;
use std::time::Duration;

use kymo_collectd::config::{self, Argument, Item};
use kymo_collectd::network::{PORT, SIZES, Security};
use kymo_io::net::Address;
use kymo_io::reason;
use kymo_text::diagnostic::Diagnostic;

use crate::collectd::Options;
use crate::config::ReadFile;
use crate::csv;
use crate::forward::Server;
use crate::ingest::Databases;
use crate::network::Listen;

type Wrong = Box<Diagnostic>;

/// The default path of collectd's socket.
const SOCKET: &str = "/var/run/collectd-unixsock";

/// Reads a file into options. What is in it and not followed is given back, a line each.
///
/// # Errors
///
/// A file that cannot be read, or is wrong: as a message that shows where.
pub fn read(path: &Path, options: &mut Options) -> Result<Vec<String>, String> {
    read_with(path, &|path| kymo_io::read_small_text(path), options)
}

/// The same; `file` gives the text of the file.
///
/// # Errors
///
/// A file that cannot be read, or is wrong: as a message that shows where.
pub fn read_with(
    path: &Path,
    file: &ReadFile<'_>,
    options: &mut Options,
) -> Result<Vec<String>, String> {
    let name = path.display().to_string();
    let text = file(path);
    let text = text.map_err(|error| format!("`{name}`: {}", reason(&error)))?;
    parse(&text, &name, options)
}

/// Reads a text; `name` is that of its file.
///
/// # Errors
///
/// What is wrong with it: as a message that shows where.
pub fn parse(text: &str, name: &str, options: &mut Options) -> Result<Vec<String>, String> {
    let mut reader = Reader {
        text,
        name,
        ignored: Vec::new(),
        plugins: Vec::new(),
        loads_all: false,
    };
    let read = config::parse(text).and_then(|items| reader.file(&items, options));
    match read {
        Ok(()) => Ok(reader.ignored),
        Err(wrong) => Err(wrong.render(name, text, false)),
    }
}

struct Reader<'t> {
    text: &'t str,
    name: &'t str,
    ignored: Vec<String>,
    /// Those that are loaded, in lower case.
    plugins: Vec<String>,
    /// Whether a plugin is loaded by its block.
    loads_all: bool,
}

impl Reader<'_> {
    /// Notes that something is not followed.
    fn ignore(&mut self, item: &Item, why: &str) {
        let before = self.text.get(..item.range.start).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let (name, key) = (self.name, &item.key);
        self.ignored
            .push(format!("{name}: line {line}: `{key}` {why}"));
    }

    fn file(&mut self, items: &[Item], options: &mut Options) -> Result<(), Wrong> {
        if let Some(interval) = config::interval(items)? {
            options.interval = interval;
        }
        for item in items {
            if item.is("LoadPlugin") {
                let plugin = item.first_text()?.to_ascii_lowercase();
                for below in item.children() {
                    self.ignore(below, "is not followed");
                }
                match KNOWN.contains(&plugin.as_str()) {
                    true => self.plugins.push(plugin),
                    false => self.ignore(item, &format!("of `{plugin}` is not followed")),
                }
            } else if item.is("AutoLoadPlugin") {
                self.loads_all = item.boolean()?;
            }
        }
        // Without a plugin that writes databases, there are none.
        let has = |plugins: &[&str]| self.plugins.iter().any(|it| plugins.contains(&it.as_str()));
        options.databases = has(&["rrdtool", "rrdcached"]).then(Databases::default);
        let sockets = has(&["unixsock"]);
        for item in items {
            match item.key.to_ascii_lowercase().as_str() {
                "interval" | "loadplugin" | "autoloadplugin" => {}
                "hostname" => options.host = Some(item.text()?.to_string()),
                "typesdb" => {
                    for argument in &item.arguments {
                        match &argument.argument {
                            Argument::Text(path) => options.types_db.push(path.into()),
                            _ => return Err(wrong(item, "texts")),
                        }
                    }
                }
                "plugin" if item.items.is_some() => self.plugin(item, options)?,
                _ => self.ignore(item, "is not followed"),
            }
        }
        let csv = items.iter().find(|item| {
            let is_it = |text: &str| text.eq_ignore_ascii_case("csv");
            item.is("LoadPlugin") && item.first_text().is_ok_and(is_it)
        });
        if let Some(item) = csv
            && options.csv.is_none()
        {
            return Err(no_directory(item, "expected in a block `<Plugin csv>`"));
        }
        if sockets && options.unixsock.addresses.is_empty() {
            options
                .unixsock
                .addresses
                .push(Address::Unix(SOCKET.into()));
        }
        Ok(())
    }

    fn plugin(&mut self, block: &Item, options: &mut Options) -> Result<(), Wrong> {
        let name = block.first_text()?.to_ascii_lowercase();
        if !KNOWN.contains(&name.as_str()) {
            self.ignore(block, &format!("of `{name}` is not followed"));
            return Ok(());
        }
        if !self.plugins.contains(&name) {
            if !self.loads_all {
                self.ignore(
                    block,
                    &format!("of `{name}` is not followed: it is not loaded"),
                );
                return Ok(());
            }
            self.plugins.push(name.clone());
        }
        match name.as_str() {
            "network" => self.network(block, options),
            "unixsock" => self.unixsock(block, options),
            "csv" => self.csv(block, options),
            _ => {
                let databases = options.databases.get_or_insert_with(Databases::default);
                self.databases(block, databases)
            }
        }
    }

    fn network(&mut self, block: &Item, options: &mut Options) -> Result<(), Wrong> {
        for item in block.children() {
            let forward = &mut options.forward;
            match item.key.to_ascii_lowercase().as_str() {
                "listen" => options.network.listen.push(self.listen(item)?),
                "server" => forward.servers.push(self.server(item)?),
                "forward" => forward.received = item.boolean()?,
                "maxpacketsize" => {
                    let size = count(item, 0)?.and_then(|size| usize::try_from(size).ok());
                    let size = size.filter(|size| SIZES.contains(size));
                    forward.packet_size = size.ok_or_else(|| wrong(item, "1024 to 65507"))?;
                }
                "timetolive" => {
                    let routers = count(item, 1)?.and_then(|it| u8::try_from(it).ok());
                    let routers = routers.ok_or_else(|| wrong(item, "1 to 255"))?;
                    forward.time_to_live = Some(routers);
                }
                _ => self.ignore(item, "is not followed"),
            }
        }
        Ok(())
    }

    fn listen(&mut self, item: &Item) -> Result<Listen, Wrong> {
        let mut listen = Listen::new(item.first_text()?);
        listen.port = port(item)?;
        for option in item.children() {
            match option.key.to_ascii_lowercase().as_str() {
                "securitylevel" => listen.level = level(option)?,
                "authfile" => listen.auth_file = Some(option.text()?.into()),
                "interface" => listen.interface = Some(option.text()?.to_string()),
                _ => self.ignore(option, "is not followed"),
            }
        }
        if listen.level > Security::None && listen.auth_file.is_none() {
            let error = Diagnostic::error("the level of security needs an `AuthFile`");
            return Err(Box::new(error.at(item.range.clone(), "it has none")));
        }
        Ok(listen)
    }

    fn server(&mut self, item: &Item) -> Result<Server, Wrong> {
        let mut server = Server::new(item.first_text()?);
        server.port = port(item)?;
        let (mut user, mut password) = (None, None);
        for option in item.children() {
            match option.key.to_ascii_lowercase().as_str() {
                "securitylevel" => server.level = level(option)?,
                "username" => user = Some(option.text()?.to_string()),
                "password" => password = Some(option.text()?.to_string()),
                "interface" => server.interface = Some(option.text()?.to_string()),
                "bindaddress" => server.bind_address = Some(option.text()?.to_string()),
                "resolveinterval" => {
                    let seconds = option.number()?;
                    let interval = Duration::try_from_secs_f64(seconds).ok();
                    let interval = interval.ok_or_else(|| wrong(option, "seconds"))?;
                    // As in collectd, 0 is never.
                    server.resolve_interval = Some(interval).filter(|it| !it.is_zero());
                }
                _ => self.ignore(option, "is not followed"),
            }
        }
        server.user = user.zip(password);
        if server.level > Security::None && server.user.is_none() {
            let error =
                Diagnostic::error("the level of security needs a `Username` and a `Password`");
            return Err(Box::new(error.at(item.range.clone(), "not both are here")));
        }
        Ok(server)
    }

    fn unixsock(&mut self, block: &Item, options: &mut Options) -> Result<(), Wrong> {
        for item in block.children() {
            match item.key.to_ascii_lowercase().as_str() {
                "socketfile" => {
                    options.unixsock.addresses = vec![Address::Unix(item.text()?.into())];
                }
                "socketperms" => {
                    let mode = u32::from_str_radix(item.text()?, 8).ok();
                    let mode = mode.filter(|mode| *mode <= 0o777);
                    options.unixsock.access.mode =
                        mode.ok_or_else(|| wrong(item, "a mode in octal"))?;
                }
                "socketgroup" => {
                    options.unixsock.access.group = Some(item.text()?.to_string());
                }
                // A socket that nothing listens on is always replaced.
                "deletesocket" => {
                    item.boolean()?;
                }
                _ => self.ignore(item, "is not followed"),
            }
        }
        Ok(())
    }

    fn csv(&mut self, block: &Item, options: &mut Options) -> Result<(), Wrong> {
        let (mut directory, mut rates) = (None, false);
        for item in block.children() {
            match item.key.to_ascii_lowercase().as_str() {
                "datadir" => match item.text()? {
                    "stdout" | "stderr" => return Err(wrong(item, "a directory")),
                    path => directory = Some(path.into()),
                },
                "storerates" => rates = item.boolean()?,
                _ => self.ignore(item, "is not followed"),
            }
        }
        let Some(directory) = directory else {
            return Err(no_directory(block, "expected in this block"));
        };
        options.csv = Some(csv::Options { directory, rates });
        Ok(())
    }

    fn databases(&mut self, block: &Item, databases: &mut Databases) -> Result<(), Wrong> {
        let mut timespans = Vec::new();
        let definitions = &mut databases.definitions;
        for item in block.children() {
            match item.key.to_ascii_lowercase().as_str() {
                "datadir" => databases.directory = item.text()?.into(),
                // As in collectd, 0 is none.
                "stepsize" => definitions.step = count(item, 0)?.filter(|step| *step > 0),
                "heartbeat" => definitions.heartbeat = count(item, 0)?.filter(|it| *it > 0),
                "rrarows" => definitions.rows = count(item, 1)?.unwrap_or(definitions.rows),
                "rratimespan" => timespans.extend(count(item, 1)?),
                "xff" => {
                    let xff = item.number()?;
                    if !(0.0..1.0).contains(&xff) {
                        return Err(wrong(item, "a number from 0 to below 1"));
                    }
                    definitions.xff = xff;
                }
                _ => self.ignore(item, "is not followed"),
            }
        }
        if !timespans.is_empty() {
            timespans.sort_unstable();
            definitions.timespans = timespans;
        }
        Ok(())
    }
}

/// Plugins that do what the daemon does.
const KNOWN: [&str; 5] = ["network", "unixsock", "rrdtool", "rrdcached", "csv"];

/// The port behind a host.
fn port(item: &Item) -> Result<u16, Wrong> {
    match item.arguments.get(1).map(|it| &it.argument) {
        None => Ok(PORT),
        Some(Argument::Text(port)) => port.parse().map_err(|_| wrong(item, "a port")),
        Some(Argument::Number(port)) if (0.0..65_536.0).contains(port) => Ok(*port as u16),
        Some(_) => Err(wrong(item, "a port")),
    }
}

fn level(option: &Item) -> Result<Security, Wrong> {
    Security::from_name(option.text()?).ok_or_else(|| wrong(option, "None, Sign or Encrypt"))
}

/// A whole number, which is given as a number or a text.
fn count(item: &Item, least: u64) -> Result<Option<u64>, Wrong> {
    let number = match item.arguments.as_slice() {
        [only] => match &only.argument {
            Argument::Number(number) => Some(*number),
            Argument::Text(text) => text.parse().ok(),
            Argument::Boolean(_) => None,
        },
        _ => None,
    };
    let number = number.filter(|it| *it >= least as f64 && *it <= 4_294_967_295.0);
    match number {
        Some(number) => Ok(Some(number as u64)),
        None => Err(wrong(
            item,
            &format!("one number from {least} to 4294967295"),
        )),
    }
}

/// That comma-separated values have no place.
fn no_directory(item: &Item, expected: &str) -> Wrong {
    let error = Diagnostic::error("there is no `DataDir`");
    Box::new(error.at(item.range.clone(), expected))
}

fn wrong(item: &Item, expected: &str) -> Wrong {
    let message = format!("`{}` expects {expected}", item.key);
    let error = Diagnostic::error(message);
    Box::new(error.at(item.range.clone(), format!("expected {expected}")))
}

/// What an item begins with.
trait First {
    fn first_text(&self) -> Result<&str, Wrong>;
}

impl First for Item {
    fn first_text(&self) -> Result<&str, Wrong> {
        match self.arguments.first().map(|it| &it.argument) {
            Some(Argument::Text(text)) => Ok(text),
            _ => Err(wrong(self, "a text")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_one(text: &str) -> Result<(Options, Vec<String>), String> {
        let mut options = Options::default();
        let ignored = parse(text, "x.conf", &mut options)?;
        Ok((options, ignored))
    }

    #[test]
    fn what_the_daemon_does_is_taken() {
        let text = r#"
            Hostname "vm"
            Interval 0.5
            TypesDB "/a" "/b"
            LoadPlugin network
            LoadPlugin rrdtool
            LoadPlugin csv
            LoadPlugin unixsock
            <Plugin network>
              Listen "127.0.0.1"
              <Listen "::1" "99">
                SecurityLevel Sign
                AuthFile "/auth"
                Interface "eth0"
              </Listen>
              Server "a"
              <Server "h" "99">
                SecurityLevel Encrypt
                Username "alice"
                Password "s3cret pass"
                BindAddress "127.0.0.1"
                ResolveInterval 60
              </Server>
              Forward true
              MaxPacketSize 1024
              TimeToLive 128
            </Plugin>
            <Plugin rrdtool>
              DataDir "rrd"
              StepSize 10
              HeartBeat 25
              RRARows 100
              RRATimespan 7200
              RRATimespan 3600
              XFF 0.5
            </Plugin>
            <Plugin csv>
              DataDir "/csv"
              StoreRates true
            </Plugin>
            <Plugin unixsock>
              SocketFile "/run/x"
              SocketPerms "0600"
              DeleteSocket true
            </Plugin>
        "#;
        let (options, ignored) = parse_one(text).unwrap();
        assert_eq!(ignored, Vec::<String>::new());
        let expected = Options {
            types_db: vec!["/a".into(), "/b".into()],
            interval: kymo_time::CdTime::from_millis(500).unwrap(),
            host: Some("vm".to_string()),
            databases: Some(Databases {
                directory: "rrd".into(),
                definitions: crate::definitions::Definitions {
                    step: Some(10),
                    heartbeat: Some(25),
                    rows: 100,
                    timespans: vec![3600, 7200],
                    xff: 0.5,
                },
            }),
            csv: Some(csv::Options {
                directory: "/csv".into(),
                rates: true,
            }),
            network: crate::network::Options {
                listen: vec![
                    Listen::new("127.0.0.1"),
                    Listen {
                        port: 99,
                        level: Security::Sign,
                        auth_file: Some("/auth".into()),
                        interface: Some("eth0".to_string()),
                        ..Listen::new("::1")
                    },
                ],
                ..Default::default()
            },
            forward: crate::forward::Options {
                servers: vec![
                    Server::new("a"),
                    Server {
                        port: 99,
                        level: Security::Encrypt,
                        user: Some(("alice".to_string(), "s3cret pass".to_string())),
                        bind_address: Some("127.0.0.1".to_string()),
                        resolve_interval: Some(Duration::from_secs(60)),
                        ..Server::new("h")
                    },
                ],
                received: true,
                packet_size: 1024,
                time_to_live: Some(128),
            },
            unixsock: crate::config::Listen {
                addresses: vec![Address::Unix("/run/x".into())],
                access: crate::listen::Access::mode(0o600),
                ..options.unixsock.clone()
            },
            ..Options::default()
        };
        assert_eq!(options, expected);
    }

    #[test]
    fn what_is_not_followed_is_reported_with_its_line() {
        let text = "FQDNLookup false\nLoadPlugin cpu\nLoadPlugin network\n<Plugin network>\n\
            ReportStats true\nCacheFlush 3\n</Plugin>\n<Plugin csv>\nDataDir \"/x\"\n</Plugin>\n\
            <Plugin cpu>\nReportByState true\n</Plugin>\n";
        let (options, ignored) = parse_one(text).unwrap();
        let expected = [
            "x.conf: line 2: `LoadPlugin` of `cpu` is not followed",
            "x.conf: line 1: `FQDNLookup` is not followed",
            "x.conf: line 5: `ReportStats` is not followed",
            "x.conf: line 6: `CacheFlush` is not followed",
            "x.conf: line 8: `Plugin` of `csv` is not followed: it is not loaded",
            "x.conf: line 11: `Plugin` of `cpu` is not followed",
        ];
        assert_eq!(ignored, expected);
        assert!(options.csv.is_none() && options.databases.is_none());
        // Unless all are.
        let (options, _) = parse_one(&format!("AutoLoadPlugin true\n{text}")).unwrap();
        assert!(options.csv.is_some());
    }

    #[test]
    fn what_is_wrong_is_shown() {
        for (block, message) in [
            (
                "<Plugin network>\n<Listen \"h\">\nSecurityLevel High\n</Listen>",
                "None, Sign or Encrypt",
            ),
            (
                "<Plugin network>\n<Listen \"h\">\nSecurityLevel Sign\n</Listen>",
                "needs an `AuthFile`",
            ),
            (
                "<Plugin network>\n<Server \"h\">\nSecurityLevel Sign\nUsername \"u\"\n</Server>",
                "needs a `Username` and a `Password`",
            ),
            ("<Plugin network>\nMaxPacketSize 10", "1024 to 65507"),
            ("<Plugin network>\nTimeToLive 256", "1 to 255"),
            ("<Plugin network>\nListen \"h\" \"x\"", "a port"),
            ("<Plugin rrdtool>\nXFF 1", "from 0 to below 1"),
            ("<Plugin rrdtool>\nRRARows 0", "from 1 to 4294967295"),
            ("<Plugin unixsock>\nSocketPerms \"0888\"", "a mode in octal"),
            ("<Plugin csv>\nStoreRates true", "there is no `DataDir`"),
            ("<Plugin csv>\nDataDir \"stdout\"", "a directory"),
        ] {
            let text = format!("AutoLoadPlugin true\n{block}\n</Plugin>\n");
            let problem = parse_one(&text).unwrap_err();
            assert!(
                problem.contains(message) && problem.contains("x.conf:"),
                "{problem}"
            );
        }
        let problem = parse_one("LoadPlugin rrdtool\nLoadPlugin CSV\n").unwrap_err();
        assert!(problem.contains("expected in a block `<Plugin csv>`"));
    }
}
