//! `kymo serve`.

use std::ffi::OsString;
use std::io::ErrorKind;

use kymo::explain;
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
        Err(problems) => return refuse(&problems, log_format(args)),
    };
    if args.check {
        return check(&config, log_format(args), terminal);
    }
    if args.print_config {
        terminal.write(config.to_toml().as_bytes())?;
        return Ok(Outcome::Good);
    }
    if !args.explain.is_empty() {
        let mut text = String::new();
        for name in &args.explain {
            match config.taking.explain(name, &config.data, &config.expire) {
                Ok(explained) => text += &explained,
                Err(problem) => return refuse(&[problem], log_format(args)),
            }
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
                LogFormat::Text => terminal.explained(&problem.as_str().into()),
                LogFormat::Json => messages.write(Level::Error, &problem),
            }
            Err(Failure::Unreadable)
        }
    }
}

/// The form in which errors of the start are reported. What is asked about a configuration is answered to people, unless
/// the command line itself asks for another form.
fn log_format(args: &Serve) -> LogFormat {
    let is_daemon = !args.check && !args.print_config && args.explain.is_empty();
    let config = args.config.as_deref().filter(|_| is_daemon);
    let format = args.log_format.or_else(|| Config::log_format(config?));
    format.unwrap_or_default()
}

/// Whether a command line is one of `kymo serve` that asks for messages of JSON, even if it cannot be read as a whole.
pub(crate) fn wants_json(words: &[OsString]) -> bool {
    let Some(place) = words.iter().position(|word| word == "serve") else {
        return false;
    };
    // What stands before the command are options of the program.
    let is_option = |word: &OsString| word.as_encoded_bytes().starts_with(b"-");
    let words = match words.get(1..place) {
        Some(before) if before.iter().all(is_option) => &words[place..],
        _ => return false,
    };
    let pairs = words.windows(2);
    let mut pairs = pairs.filter(|pair| pair[0] == "--log-format");
    words.iter().any(|word| word == "--log-format=json") || pairs.any(|pair| pair[1] == "json")
}

/// Reports an error as a message of JSON; a hint follows on a line of its own.
pub(crate) fn report_as_json(problem: &str) {
    let format = LogFormat::Json;
    let level = Level::Error;
    StandardError::new(LogOptions { level, format }).write(level, problem);
}

/// Reports what is wrong with the command line or the configuration.
fn refuse(problems: &[String], format: LogFormat) -> Result<Outcome, Failure> {
    match format {
        LogFormat::Text => {
            let lines = problems.iter().map(|it| format!("error: {it}"));
            let lines: Vec<_> = lines.collect();
            Err(Failure::Usage(lines.join("\n")))
        }
        LogFormat::Json => {
            problems.iter().for_each(|it| report_as_json(it));
            Ok(Outcome::Usage)
        }
    }
}

/// Reports what would keep the daemon from beginning.
fn check(config: &Config, format: LogFormat, terminal: &Terminal) -> Result<Outcome, Failure> {
    let notes = match config.check() {
        Ok(_) if terminal.is_quiet() => return Ok(Outcome::Good),
        Ok(notes) => notes,
        Err(problems) => return refuse(&problems, format),
    };
    let good = "the configuration is good";
    let text = match format {
        LogFormat::Text => {
            let notes: String = notes.iter().map(|note| format!("note: {note}\n")).collect();
            format!("{notes}{good}\n").into_bytes()
        }
        LogFormat::Json => {
            let lines = notes.iter().map(String::as_str).chain([good]);
            lines.flat_map(|it| format.line(Level::Info, it)).collect()
        }
    };
    terminal.write(&text)?;
    Ok(Outcome::Good)
}

/// What the file of configuration and the command line say.
fn configuration(args: &Serve) -> Result<Config, Vec<String>> {
    if let Some(path) = &args.config {
        let problem = match path.metadata() {
            Ok(there) => there.is_dir().then(|| ErrorKind::IsADirectory.into()),
            Err(error) => Some(error),
        };
        if let Some(error) = problem {
            return Err(vec![explain::reading(path, &error).with_hint()]);
        }
    }
    let config = match (&args.config, &args.data) {
        (Some(path), data) => Config::read(path, data.as_deref())?,
        (None, Some(data)) => Config::new(data.clone()),
        (None, None) => return Err(vec!["neither `--config` nor `--data` is specified".into()]),
    };
    with_options(args, config).map_err(|problem| vec![problem])
}

/// A configuration with what the command line says.
fn with_options(args: &Serve, mut config: Config) -> Result<Config, String> {
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
