//! `kymo serve`.

use kymo::explain::{self, Explained};
use kymo_collectd::network::Security;
use kymo_io::net::Address;
use kymo_serve::config::Config;
use kymo_serve::log::{Level, LogFormat, LogOptions, StandardError};
use kymo_serve::network::Listen;
use kymo_serve::{conf, csv, daemon, journal};

use crate::args::serve::Serve;
use crate::terminal::{Failure, Outcome, Terminal};

/// Serves until a signal ends it.
pub(crate) fn run(args: &Serve, terminal: &Terminal) -> Result<Outcome, Failure> {
    // Errors in the configuration are reported before anything is done.
    let config = match configuration(args) {
        Ok(config) => config,
        Err(problem) if serves(args) && args.log_format == Some(LogFormat::Json) => {
            // What reads the messages reads this one, too.
            let format = LogFormat::Json;
            StandardError::new(LogOptions {
                format,
                ..LogOptions::default()
            })
            .write(Level::Error, &problem);
            return Ok(Outcome::Usage);
        }
        Err(problem) => return Err(Failure::Usage(format!("error: {problem}"))),
    };
    if args.check {
        return check(&config, terminal);
    }
    if args.print_config {
        terminal.write(config.to_toml().as_bytes())?;
        return Ok(Outcome::Good);
    }
    if !args.explain.is_empty() {
        let mut text = String::new();
        for name in &args.explain {
            let explained = config.taking.explain(name, &config.data, &config.expire);
            text += &explained.map_err(|problem| Failure::Usage(format!("error: {problem}")))?;
        }
        terminal.write(text.as_bytes())?;
        return Ok(Outcome::Good);
    }
    let messages = StandardError::new(config.log);
    let format = config.log.format;
    match daemon::run(config, &|| configuration(args), &messages) {
        Ok(()) => Ok(Outcome::Good),
        Err(problem) => {
            match format {
                LogFormat::Text => terminal.explained(&Explained::from_text(&problem)),
                LogFormat::Json => messages.write(Level::Error, &problem),
            }
            Err(Failure::Unreadable)
        }
    }
}

/// Whether this is the daemon, and not one of the questions about its configuration.
fn serves(args: &Serve) -> bool {
    !args.check && !args.print_config && args.explain.is_empty()
}

/// Reports what would keep the daemon from beginning.
fn check(config: &Config, terminal: &Terminal) -> Result<Outcome, Failure> {
    match config.check() {
        Ok(_) if terminal.is_quiet() => Ok(Outcome::Good),
        Ok(notes) => {
            let notes: String = notes.iter().map(|note| format!("note: {note}\n")).collect();
            terminal.write(format!("{notes}the configuration is good\n").as_bytes())?;
            Ok(Outcome::Good)
        }
        Err(problems) => {
            let problems = problems.iter().map(|it| format!("error: {it}"));
            let problems: Vec<_> = problems.collect();
            Err(Failure::Usage(problems.join("\n")))
        }
    }
}

/// What the file of configuration and the command line say.
fn configuration(args: &Serve) -> Result<Config, String> {
    let mut config = match (&args.config, &args.data) {
        (Some(path), _) if !path.exists() => {
            let missing = std::io::ErrorKind::NotFound.into();
            return Err(explain::reading(path, &missing).with_hint());
        }
        (Some(path), data) => {
            Config::read(path, data.as_deref()).map_err(|problems| problems.join("\nerror: "))?
        }
        (None, Some(data)) => Config::new(data.clone()),
        (None, None) => return Err("neither `--config` nor `--data` is specified".into()),
    };
    if config.data.exists() && !config.data.is_dir() {
        return Err(format!(
            "`{}` is not a directory\nhint: `--data` is the directory with the databases; a missing one is created",
            config.data.display()
        ));
    }
    if let Some(directory) = &args.journal {
        let journal = config
            .journal
            .get_or_insert_with(|| journal::Options::new(directory.clone()));
        journal.directory.clone_from(directory);
    }
    match &mut config.journal {
        Some(journal) => journal.durable |= args.durable,
        None if args.durable => return Err("--durable needs --journal".into()),
        None => {}
    }
    config
        .rrdcached
        .addresses
        .extend(args.rrdcached.iter().cloned());
    config.metrics.is_set |= !args.metrics.is_empty();
    config
        .metrics
        .addresses
        .extend(args.metrics.iter().cloned());
    let query = &mut config.query.listen;
    query.is_set |= !args.query.is_empty();
    query.addresses.extend(args.query.iter().cloned());
    let taking = &mut config.taking;
    let graphite = args.graphite.iter().cloned();
    graphite.for_each(|endpoint| taking.graphite.add(endpoint));
    let statsd = args.statsd.iter().cloned();
    statsd.for_each(|endpoint| taking.statsd.listen.add(endpoint));
    for (reported, http) in [
        (&args.influx, &mut taking.influx.http),
        (&args.remote_write, &mut taking.remote_write),
        (&args.otlp, &mut taking.otlp.http),
    ] {
        http.listen.is_set |= !reported.is_empty();
        http.listen.addresses.extend(reported.iter().cloned());
    }
    collectd(args, &mut config)?;
    let write = &mut config.write;
    write.timeout = args.write_timeout.unwrap_or(write.timeout);
    write.jitter = args.jitter.unwrap_or(write.jitter);
    write.flush = args.flush.unwrap_or(write.flush);
    write.threads = args.threads.map_or(write.threads, usize::from);
    config.target = args.format.unwrap_or(config.target);
    config.log.level = args.log_level.unwrap_or(config.log.level);
    config.log.format = args.log_format.unwrap_or(config.log.format);
    if args.pid_file.is_some() {
        config.pid_file.clone_from(&args.pid_file);
    }
    Ok(config)
}

/// What the command line says of collectd's clients.
fn collectd(args: &Serve, config: &mut Config) -> Result<(), String> {
    let is_asked = !args.collectd.is_empty()
        || args.unixsock.is_some()
        || args.csv.is_some()
        || args.collectd_conf.is_some();
    if config.collectd.is_none() && !is_asked {
        return match args.types_db.is_empty() {
            true => Ok(()),
            false => Err("--types-db needs --collectd, --unixsock or --collectd-conf".into()),
        };
    }
    let options = config.collectd.get_or_insert_default();
    if let Some(path) = &args.collectd_conf {
        let ignored = conf::read(path, options)?;
        options.ignored.extend(ignored);
    }
    if !args.types_db.is_empty() {
        options.types_db.clone_from(&args.types_db);
    }
    for (host, port) in &args.collectd {
        options.network.listen.push(Listen {
            port: *port,
            level: args.security.unwrap_or_default(),
            auth_file: args.auth_file.clone(),
            ..Listen::new(host)
        });
    }
    if args.auth_file.is_none() && args.security.is_some_and(|level| level > Security::None) {
        return Err("--security sign and encrypt need --auth-file".into());
    }
    let socket = args.unixsock.iter().cloned().map(Address::Unix);
    options.unixsock.addresses.extend(socket);
    if let Some(directory) = &args.csv {
        let rates = options.csv.as_ref().is_some_and(|csv| csv.rates);
        let directory = directory.clone();
        options.csv = Some(csv::Options { directory, rates });
    }
    Ok(())
}
