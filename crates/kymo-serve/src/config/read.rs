//! The file of configuration, read.

use std::path::Path;

use toml::de::DeTable;

use super::*;

/// Gives the text of a file.
pub type ReadFile<'r> = dyn Fn(&Path) -> std::io::Result<String> + 'r;

/// Reads a table into a configuration.
type ReadTable = fn(&mut Config, &mut Section<'_>, &ReadFile<'_>) -> Result<(), String>;

impl Config {
    /// Reads a file; `data` is the directory of databases in the place of the file's own.
    ///
    /// # Errors
    ///
    /// One that cannot be read, or says what is not known: messages that begin with its path, at most one of each
    /// table.
    pub fn read(path: &Path, data: Option<&Path>) -> Result<Self, Vec<String>> {
        let shown = path.display();
        let text = kymo_io::read_small_text(path)
            .map_err(|error| vec![format!("`{shown}`: {}", kymo_io::reason(&error))])?;
        let config = Self::parse_for(&text, data, &|path| kymo_io::read_small_text(path));
        config.map_err(|problems| {
            let problems = problems.iter();
            problems.map(|it| format!("`{shown}`: {it}")).collect()
        })
    }

    /// The form of messages that a file asks for, whatever else is wrong with it; `None` if it does not say.
    pub fn log_format(path: &Path) -> Option<LogFormat> {
        let text = kymo_io::read_small_text(path).ok()?;
        let table = DeTable::parse(&text).ok()?;
        let log = table.get_ref().get("log")?.get_ref().get("format")?;
        LogFormat::from_name(log.get_ref().as_str()?)
    }

    /// Reads a text, and the `collectd.conf` that it may name.
    ///
    /// # Errors
    ///
    /// What is wrong with it, and where.
    pub fn parse(text: &str) -> Result<Self, String> {
        Self::parse_with(text, &|path| kymo_io::read_small_text(path))
    }

    /// The same; `read` gives the text of a file that it names.
    ///
    /// # Errors
    ///
    /// What is wrong with it, and where.
    pub fn parse_with(text: &str, read: &ReadFile<'_>) -> Result<Self, String> {
        Self::parse_for(text, None, read).map_err(|problems| problems.join("\n"))
    }

    fn parse_for(
        text: &str,
        data: Option<&Path>,
        read: &ReadFile<'_>,
    ) -> Result<Self, Vec<String>> {
        let table = DeTable::parse(text).map_err(|error| {
            let place = section::place(text, error.span().unwrap_or_default().start);
            vec![format!("{place}: {}", error.message())]
        })?;
        let mut section = Section::new(text, "", table.get_ref(), 0);
        let mut problems = Vec::new();
        let own = section.path("data").unwrap_or_else(|problem| {
            problems.push(problem);
            Some("unknown".into())
        });
        let own = own.filter(|path| !path.as_os_str().is_empty());
        let data = data.map(Path::to_path_buf).or(own);
        let mut config = Self::new(data.unwrap_or_else(|| {
            problems.push("there is no `data`, the directory of databases".to_owned());
            PathBuf::new()
        }));
        // One after the other, since an error in a table says nothing about the others.
        let tables: [ReadTable; 11] = [
            |config, section, _| section.set("anywhere", &mut config.anywhere, Section::boolean),
            Self::read_format,
            |config, section, _| {
                config.pid_file = section.path("pid-file")?;
                Ok(())
            },
            Self::read_write,
            Self::read_journal,
            Self::read_rrdcached,
            Self::read_metrics,
            Self::read_log,
            Self::read_query,
            |config, section, read| {
                if let Some(table) = section.section("collectd")? {
                    config.collectd = Some(collectd::read(table, read)?);
                }
                Ok(())
            },
            |config, section, _| {
                config.expire = taking::expire(section)?;
                Ok(())
            },
        ];
        for table in tables {
            problems.extend(table(&mut config, &mut section, read).err());
        }
        for table in taking::TABLES {
            problems.extend(table(&mut section, &mut config.taking).err());
        }
        problems.extend(section.end().err());
        match problems.is_empty() {
            true => Ok(config),
            false => Err(problems),
        }
    }

    fn read_format(
        config: &mut Self,
        section: &mut Section<'_>,
        _: &ReadFile<'_>,
    ) -> Result<(), String> {
        if let Some((name, place)) = section.string("format")? {
            let expected = "portable, native or a machine that `kymo machine list` lists";
            config.target = kymo_rrdtool::target(name.as_bytes())
                .map_err(|_| section.found("format", place, &format!("`{name}`"), expected))?;
        }
        Ok(())
    }

    fn read_write(
        config: &mut Self,
        section: &mut Section<'_>,
        _: &ReadFile<'_>,
    ) -> Result<(), String> {
        if let Some(mut write) = section.section("write")? {
            let to = &mut config.write;
            write.set("timeout", &mut to.timeout, Section::seconds)?;
            write.set("jitter", &mut to.jitter, Section::seconds)?;
            write.set("flush", &mut to.flush, Section::period)?;
            write.set("threads", &mut to.threads, |section, name| {
                section.count(name, 1..=64)
            })?;
            write.set("open-files", &mut to.open_files, |section, name| {
                section.count(name, 1..=100_000)
            })?;
            write.set("most-pending-mib", &mut to.most_pending, |section, name| {
                let mib = section.count(name, 1..=1 << 20)?;
                Ok(mib.map(|mib| mib.saturating_mul(MIB as usize)))
            })?;
            write.set("future-limit", &mut to.future_limit, Section::seconds)?;
            write.set("suspend-limit", &mut to.suspend_limit, Section::seconds)?;
            write.set("least-free-mib", &mut to.least_free, |section, name| {
                let mib = section.count(name, 0..=1 << 30)?;
                Ok(mib.map(|mib| mib as u64 * MIB))
            })?;
            write.end()?;
        }
        Ok(())
    }

    fn read_journal(
        config: &mut Self,
        section: &mut Section<'_>,
        _: &ReadFile<'_>,
    ) -> Result<(), String> {
        if let Some(mut journal) = section.section("journal")? {
            let directory = journal.path("directory")?;
            let mut options =
                journal::Options::new(directory.ok_or_else(|| journal.missing("directory"))?);
            journal.set("most-mib", &mut options.most_bytes, |section, name| {
                let mib = section.count(name, 1..=1 << 20)?;
                Ok(mib.map(|mib| mib as u64 * MIB))
            })?;
            journal.set("durable", &mut options.durable, Section::boolean)?;
            journal.set("datagrams", &mut options.datagrams, Section::boolean)?;
            journal.end()?;
            config.journal = Some(options);
        }
        Ok(())
    }

    fn read_rrdcached(
        config: &mut Self,
        section: &mut Section<'_>,
        _: &ReadFile<'_>,
    ) -> Result<(), String> {
        if let Some(mut table) = section.section("rrdcached")? {
            let port = Some(rrdcached::PORT);
            connection_keys(&mut table, port, &mut config.rrdcached)?;
            let overwrite = &mut config.rrdcached_overwrite;
            table.set("overwrite", overwrite, Section::boolean)?;
            for mut table in table.sections("socket")? {
                let mut socket = RrdcachedSocket {
                    listen: Listen::nowhere(0o660),
                    commands: CommandSet::default(),
                };
                let listen = &mut socket.listen;
                addresses(&mut table, port, listen)?;
                if !listen.is_set {
                    return Err(table.missing("listen"));
                }
                access(&mut table, &mut listen.access)?;
                tls(&mut table, listen)?;
                let expected = "`read`, commands of rrdcached's protocol, or a list of such";
                let commands = table.texts("commands", expected, CommandSet::from_name)?;
                let commands = commands.ok_or_else(|| table.missing("commands"))?;
                socket.commands = commands.into_iter().collect();
                table.end()?;
                config.rrdcached_sockets.push(socket);
            }
            table.end()?;
        }
        Ok(())
    }

    fn read_metrics(
        config: &mut Self,
        section: &mut Section<'_>,
        _: &ReadFile<'_>,
    ) -> Result<(), String> {
        if let Some(mut table) = section.section("metrics")? {
            let listen = &mut config.metrics;
            addresses(&mut table, None, listen)?;
            access(&mut table, &mut listen.access)?;
            connections(&mut table, listen)?;
            tls(&mut table, listen)?;
            table.end()?;
        }
        Ok(())
    }

    fn read_log(
        config: &mut Self,
        section: &mut Section<'_>,
        _: &ReadFile<'_>,
    ) -> Result<(), String> {
        if let Some(mut table) = section.section("log")? {
            let to = &mut config.log;
            table.set("level", &mut to.level, |table, name| {
                table.one_of(name, &Level::ALL.map(|it| (it.name(), it)))
            })?;
            table.set("format", &mut to.format, |table, name| {
                table.one_of(name, &LogFormat::ALL.map(|it| (it.name(), it)))
            })?;
            table.end()?;
        }
        Ok(())
    }

    fn read_query(
        config: &mut Self,
        section: &mut Section<'_>,
        _: &ReadFile<'_>,
    ) -> Result<(), String> {
        if let Some(table) = section.section("query")? {
            self::query(table, &mut config.query)?;
        }
        Ok(())
    }
}

/// Reads where a protocol is spoken.
pub(super) fn listen(
    mut table: Section<'_>,
    port: Option<u16>,
    listen: &mut Listen,
) -> Result<(), String> {
    connection_keys(&mut table, port, listen)?;
    table.end()
}

/// Reads all keys of where a protocol of lines is spoken.
fn connection_keys(
    table: &mut Section<'_>,
    port: Option<u16>,
    listen: &mut Listen,
) -> Result<(), String> {
    addresses(table, port, listen)?;
    access(table, &mut listen.access)?;
    connections(table, listen)?;
    table.set("idle-timeout", &mut listen.idle_timeout, Section::period)?;
    tls(table, listen)
}

/// The same of HTTP.
pub(super) fn http_keys(
    table: &mut Section<'_>,
    port: Option<u16>,
    listen: &mut Listen,
) -> Result<(), String> {
    connection_keys(table, port, listen)?;
    listen.token_file = table.path("token-file")?;
    Ok(())
}

fn addresses(
    table: &mut Section<'_>,
    port: Option<u16>,
    listen: &mut Listen,
) -> Result<(), String> {
    if let Some(addresses) = table.addresses("listen", port)? {
        listen.addresses = addresses;
        listen.is_set = true;
    }
    Ok(())
}

pub(super) fn access(table: &mut Section<'_>, access: &mut Access) -> Result<(), String> {
    table.set("mode", &mut access.mode, Section::mode)?;
    if let Some((group, _)) = table.string("group")? {
        access.group = Some(group.to_owned());
    }
    Ok(())
}

pub(super) fn connections(table: &mut Section<'_>, listen: &mut Listen) -> Result<(), String> {
    table.set("connections", &mut listen.connections, |section, name| {
        section.count(name, 1..=100_000)
    })
}

pub(super) fn tls(table: &mut Section<'_>, listen: &mut Listen) -> Result<(), String> {
    let certificate = table.path("certificate")?;
    let (key, client_ca) = (table.path("key")?, table.path("client-ca")?);
    listen.tls = match (certificate, key) {
        (Some(certificate), Some(key)) => Some(TlsFiles {
            certificate,
            key,
            client_ca,
        }),
        (None, None) if client_ca.is_none() => None,
        _ => return Err(table.here(
            "found one of `certificate`, `key` and `client-ca`, expected `certificate` and `key`",
        )),
    };
    match listen.tls.is_some() && !cfg!(feature = "tls") {
        true => Err(table.here(NO_TLS)),
        false => Ok(()),
    }
}

/// What is said where TLS is asked for and not there.
pub(crate) const NO_TLS: &str =
    "this kymo was built without TLS: build it with `--features tls`, or install a package";

/// Reads where queries are answered, and what they may take.
fn query(mut table: Section<'_>, to: &mut query::Options) -> Result<(), String> {
    http_keys(&mut table, None, &mut to.listen)?;
    table.set("timeout", &mut to.timeout, Section::period)?;
    table.set("concurrent", &mut to.concurrent, |section, name| {
        section.count(name, 0..=1000)
    })?;
    table.set("most-samples", &mut to.most_samples, |section, name| {
        section.count(name, 1..=1_000_000_000)
    })?;
    table.set("most-points", &mut to.most_points, |section, name| {
        section.count(name, 1..=1_000_000)
    })?;
    table.set("most-answer-mib", &mut to.most_answer, |section, name| {
        let mib = section.count(name, 1..=4096)?;
        Ok(mib.map(|mib| mib.saturating_mul(MIB as usize)))
    })?;
    table.set("refresh", &mut to.refresh, Section::seconds)?;
    table.end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_can_be_said() {
        let config = Config::parse(
            r#"
            data = "/data"
            anywhere = true
            format = "portable"
            pid-file = "/run/kymo.pid"
            [write]
            timeout = 10
            jitter = 0.5
            flush = 60
            threads = 4
            open-files = 10
            most-pending-mib = 1
            future-limit = 3600
            suspend-limit = 60
            least-free-mib = 7
            [journal]
            directory = "/journal"
            most-mib = 2
            durable = true
            datagrams = false
            [rrdcached]
            listen = ["unix:/run/x", "[::1]"]
            mode = 0o600
            group = "www-data"
            connections = 5
            idle-timeout = 60
            overwrite = false
            [[rrdcached.socket]]
            listen = "unix:/run/read"
            mode = 0o666
            commands = ["read", "SUSPEND"]
            [log]
            level = "warning"
            format = "json"
            [metrics]
            listen = ["localhost:9104"]
            [query]
            listen = "localhost:9090"
            token-file = "/etc/tokens"
            timeout = 7
            concurrent = 3
            most-samples = 1000
            most-points = 100
            most-answer-mib = 2
            refresh = 1.5
            [[expire]]
            after = "30d"
            "#,
        );
        let address = |text| Address::parse(text, None).unwrap();
        let expected = Config {
            data: "/data".into(),
            anywhere: true,
            target: Target::Portable,
            pid_file: Some("/run/kymo.pid".into()),
            write: Write {
                timeout: Duration::from_secs(10),
                jitter: Duration::from_millis(500),
                flush: Duration::from_secs(60),
                threads: 4,
                open_files: 10,
                most_pending: 1 << 20,
                future_limit: Duration::from_secs(3600),
                suspend_limit: Duration::from_secs(60),
                least_free: 7 << 20,
            },
            journal: Some(journal::Options {
                directory: "/journal".into(),
                most_bytes: 2 << 20,
                durable: true,
                datagrams: false,
            }),
            rrdcached: Listen {
                addresses: vec![address("/run/x"), address("[::1]:42217")],
                is_set: true,
                access: Access {
                    mode: 0o600,
                    group: Some("www-data".into()),
                },
                connections: 5,
                idle_timeout: Duration::from_secs(60),
                token_file: None,
                tls: None,
            },
            rrdcached_sockets: vec![RrdcachedSocket {
                listen: Listen {
                    addresses: vec![address("/run/read")],
                    is_set: true,
                    ..Listen::nowhere(0o666)
                },
                commands: ["read", "suspend"]
                    .into_iter()
                    .filter_map(CommandSet::from_name)
                    .collect(),
            }],
            rrdcached_overwrite: false,
            log: LogOptions {
                level: Level::Warning,
                format: LogFormat::Json,
            },
            metrics: Listen {
                addresses: vec![address("localhost:9104")],
                is_set: true,
                ..Listen::nowhere(0o660)
            },
            query: query::Options {
                listen: Listen {
                    addresses: vec![address("localhost:9090")],
                    is_set: true,
                    token_file: Some("/etc/tokens".into()),
                    ..Listen::nowhere_http()
                },
                timeout: Duration::from_secs(7),
                concurrent: 3,
                most_samples: 1000,
                most_points: 100,
                most_answer: 2 << 20,
                refresh: Duration::from_millis(1500),
            },
            collectd: None,
            taking: crate::taking::Options::default(),
            expire: vec![ExpireRule {
                name: "rule 1".into(),
                selector: crate::taking::rules::Selector::default(),
                after: Some(30 * 86_400),
            }],
        };
        assert_eq!(config, Ok(expected));
        let least = Config::parse("data = '/data'");
        assert_eq!(least, Ok(Config::new("/data".into())));
    }

    #[test]
    fn what_is_wrong_is_reported_with_its_place() {
        for (text, problem) in [
            ("", "there is no `data`, the directory of databases"),
            (
                "data = ''",
                "there is no `data`, the directory of databases",
            ),
            (
                "data = 'a'\nx = 1",
                "line 2, column 1: found `x`, expected one of `anywhere`, `collectd`, `data`, `expire`, `format`, `graphite`, `influx`, `journal`, `log`, `metrics`, `otlp`, `path`, `pid-file`, `query`, `remote-write`, `rrdcached`, `scrape`, `series`, `statsd`, `storage`, `write`",
            ),
            (
                "data = 1",
                "line 1, column 8: `data`: found integer, expected a path",
            ),
            (
                "data = 'a'\n[write]\ntimeout = -1",
                "line 3, column 11: `write.timeout`: found -1, expected seconds",
            ),
            (
                "data = 'a'\n[write]\nflush = 0",
                "line 3, column 9: `write.flush`: found 0, expected seconds, at least 0.01",
            ),
            (
                "data = 'a'\n[write]\nthreads = 0",
                "line 3, column 11: `write.threads`: found 0, expected 1 to 64",
            ),
            (
                "data = 'a'\n[journal]\n",
                "line 2, column 1: `journal`: there is no `directory`",
            ),
            (
                "data = 'a'\nwrite = 1",
                "line 2, column 9: `write`: found integer, expected a table",
            ),
            (
                "data = 'a'\n[rrdcached]\nlisten = ['a:b']",
                "line 3, column 11: `rrdcached.listen`: found `a:b`, expected unix:PATH, /PATH, HOST:PORT or [IPv6]:PORT",
            ),
            (
                "data = 'a'\n[rrdcached]\nmode = 660",
                "line 3, column 8: `rrdcached.mode`: found 660, expected a mode in octal, such as 0o660",
            ),
            (
                "data = 'a'\nformat = 'z80'",
                "line 2, column 10: `format`: found `z80`, expected portable, native or a machine that `kymo machine list` lists",
            ),
        ] {
            assert_eq!(Config::parse(text), Err(problem.into()), "{text}");
        }
        let several = Config::parse(
            "anywhere = 1\nformat = 'x'\npid-file = 'p'\n[graphite]\nlisten = 1\n[statsd]\n[[path]]\n[[storage]]\n[write]\nflush = 0\n[log]\nlevel = 'x'\n[query]\nx = 1\n[[expire]]\nafter = '1mon'\n[y]",
        );
        let several = several.unwrap_err();
        let begins: Vec<_> = several
            .lines()
            .map(|line| line.split(": found").next().unwrap())
            .collect();
        let expected = [
            "there is no `data`, the directory of databases",
            "line 1, column 12: `anywhere`",
            "line 2, column 10: `format`",
            "line 10, column 9: `write.flush`",
            "line 12, column 9: `log.level`",
            "line 14, column 1",
            "line 16, column 9: `expire.after`",
            "line 5, column 10: `graphite.listen`",
            "line 7, column 1: `path`: there is no `path`",
            "line 17, column 2",
        ];
        assert_eq!(begins, expected, "{several}");
        let broken = Config::parse("data = [").unwrap_err();
        assert!(broken.starts_with("line 1, column "), "{broken}");
    }
}
