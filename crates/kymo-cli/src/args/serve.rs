//! What can be written behind `kymo serve`.

use std::path::PathBuf;

use clap::Args;
use kymo_collectd::network::Security;
use kymo_io::net::Address;
use kymo_rrd::file::convert::Target;
use kymo_serve::log::{Level, LogFormat};
use kymo_serve::taking::{Endpoint, Protocol};

/// Take metrics and keep them in round-robin databases
///
/// A daemon that speaks rrdcached's protocol, and collectd's: datagrams and lines of text. Updates wait in memory, and are written together; with a
/// journal, what was acknowledged survives that the daemon is killed. It stays in the foreground.
///
/// SIGTERM and SIGINT write all that is pending and end it, SIGHUP has it read its configuration
/// again, SIGUSR1 has it write all that is pending. Under systemd it may have sockets handed over, and
/// reports that it is ready (Type=notify).
#[derive(Debug, Args)]
#[command(after_long_help = "\
Exit status:
  0  a signal has ended it, and all was written, or is in the journal
  2  the command line or the configuration is wrong
  3  it cannot begin, or could not write all at its end

Examples:
  kymo serve --data /var/lib/rrd --rrdcached unix:/run/rrdcached.sock --journal /var/lib/kymo
  kymo serve --config /etc/kymo/serve.toml
  kymo serve --data /var/lib/collectd/rrd --collectd 127.0.0.1 --unixsock /run/collectd.sock
  kymo serve --data /var/lib/collectd/rrd --query 127.0.0.1:9090
  kymo serve --data /var/lib/rrd --graphite 127.0.0.1 --statsd 127.0.0.1
  kymo serve --config /etc/kymo/serve.toml --explain servers.web1.load
  rrdtool fetch --daemon unix:/run/rrdcached.sock /var/lib/rrd/load.rrd AVERAGE")]
pub(crate) struct Serve {
    /// The file of configuration (TOML). What is said on the command line counts more.
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,

    /// The directory of the databases; clients name no files outside of it.
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath, required_unless_present = "config")]
    pub(crate) data: Option<PathBuf>,

    /// Speak rrdcached's protocol at an address: unix:PATH, HOST, HOST:PORT or `[IPv6]:PORT`. Can be given
    /// several times.
    ///
    /// Clients are not authenticated: anyone who can reach a port can change and remove databases. The port is
    /// 42217 by default.
    #[arg(long, value_name = "ADDRESS", value_parser = rrdcached)]
    pub(crate) rrdcached: Vec<Address>,

    /// Receive collectd's datagrams at an address: HOST, HOST:PORT, `[IPv6]:PORT`, or a group of multicast. Can
    /// be given several times.
    ///
    /// The default port is 25826. The databases are those that collectd's rrdtool plugin
    /// would make, DIR/HOST/PLUGIN/TYPE.rrd.
    #[arg(long, value_name = "ADDRESS", value_parser = datagrams, help_heading = "collectd")]
    pub(crate) collectd: Vec<(String, u16)>,

    /// Take only datagrams that are protected so far: none, sign or encrypt.
    #[arg(
        long,
        value_name = "LEVEL",
        value_parser = level,
        requires = "collectd",
        help_heading = "collectd"
    )]
    pub(crate) security: Option<Security>,

    /// A file with the passwords of senders: lines `USER: PASSWORD`.
    #[arg(
        long,
        value_name = "FILE",
        value_hint = clap::ValueHint::FilePath,
        requires = "collectd",
        help_heading = "collectd"
    )]
    pub(crate) auth_file: Option<PathBuf>,

    /// Speak collectd's text protocol at a socket.
    #[arg(
        long,
        value_name = "PATH",
        value_hint = clap::ValueHint::FilePath,
        help_heading = "collectd"
    )]
    pub(crate) unixsock: Option<PathBuf>,

    /// What types of values there are; by default /usr/share/collectd/types.db, and where there is
    /// none, what senders say. Can be given several times.
    #[arg(
        long,
        value_name = "FILE",
        value_hint = clap::ValueHint::FilePath,
        help_heading = "collectd"
    )]
    pub(crate) types_db: Vec<PathBuf>,

    /// Write the values of collectd to files of comma-separated values, too.
    #[arg(
        long,
        value_name = "DIR",
        value_hint = clap::ValueHint::DirPath,
        help_heading = "collectd"
    )]
    pub(crate) csv: Option<PathBuf>,

    /// Do what a collectd.conf says of its plugins network, unixsock, rrdtool, rrdcached and csv.
    #[arg(
        long,
        value_name = "FILE",
        value_hint = clap::ValueHint::FilePath,
        help_heading = "collectd"
    )]
    pub(crate) collectd_conf: Option<PathBuf>,

    /// Take Graphite's plaintext protocol at an address: tcp:HOST:PORT, udp:HOST:PORT or unix:PATH; HOST:PORT means
    /// TCP, and the default port is 2003. Can be given several times.
    #[arg(long, value_name = "ADDRESS", value_parser = graphite, help_heading = "Other metrics")]
    pub(crate) graphite: Vec<Endpoint>,

    /// Take StatsD at an address: udp:HOST:PORT, tcp:HOST:PORT, unix:PATH or unixgram:PATH; HOST:PORT means UDP, and the
    /// default port is 8125. Can be given several times.
    #[arg(long, value_name = "ADDRESS", value_parser = statsd, help_heading = "Other metrics")]
    pub(crate) statsd: Vec<Endpoint>,

    /// Take InfluxDB's line protocol at http://HOST:PORT/write and /api/v2/write; the default port is 8086. Can be given
    /// several times.
    #[arg(long, value_name = "ADDRESS", value_parser = influx, help_heading = "Other metrics")]
    pub(crate) influx: Vec<Address>,

    /// Take Prometheus' remote write at http://HOST:PORT/api/v1/write. Can be given several times.
    #[arg(long, value_name = "ADDRESS", value_parser = metrics, help_heading = "Other metrics")]
    pub(crate) remote_write: Vec<Address>,

    /// Take OpenTelemetry's metrics (OTLP) at http://HOST:PORT/v1/metrics; the default port is 4318. Can be given several
    /// times.
    #[arg(long, value_name = "ADDRESS", value_parser = otlp, help_heading = "Other metrics")]
    pub(crate) otlp: Vec<Address>,

    /// Check the configuration, report what is wrong with it, and exit.
    ///
    /// Directories, files and names of hosts are looked at. Nothing is created or bound.
    #[arg(long, help_heading = "Configuration")]
    pub(crate) check: bool,

    /// Print the configuration that is in effect, with all values, and exit. Passwords are not shown.
    #[arg(long, conflicts_with = "check", help_heading = "Configuration")]
    pub(crate) print_config: bool,

    /// Print which rules apply to a series, its database, step and archives, and exit.
    ///
    /// NAME is `NAME{LABEL="VALUE",...}` of Prometheus, or a path of Graphite, `PATH;TAG=VALUE`. Rules are those of the
    /// tables `[[path]]` and `[[storage]]`. Can be given several times.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["check", "print_config"], help_heading = "Configuration")]
    pub(crate) explain: Vec<String>,

    /// Serve metrics about the daemon at http://HOST:PORT/metrics. Can be given several times.
    #[arg(long, value_name = "ADDRESS", value_parser = metrics)]
    pub(crate) metrics: Vec<Address>,

    /// Answer queries at http://HOST:PORT, as Prometheus and Graphite do. Can be given several times.
    ///
    /// Clients are not authenticated: anyone who can reach the port can read all databases.
    #[arg(long, value_name = "ADDRESS", value_parser = metrics)]
    pub(crate) query: Vec<Address>,

    /// Write what is acknowledged to a journal in this directory first.
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub(crate) journal: Option<PathBuf>,

    /// Acknowledge nothing before it is on the disk, so that it survives that the machine stops.
    ///
    /// It needs a journal. A portable database loses nothing then; a native one may have the updates in part that
    /// are written to it at that time.
    #[arg(long)]
    pub(crate) durable: bool,

    /// Keep updates in memory for N seconds [default: 300].
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) write_timeout: Option<std::time::Duration>,

    /// Keep updates up to N seconds longer, so that not all files are written at the same time.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) jitter: Option<std::time::Duration>,

    /// Write everything and begin a new journal every N seconds [default: 3600].
    #[arg(long, value_name = "SECONDS", value_parser = period)]
    pub(crate) flush: Option<std::time::Duration>,

    /// Number of threads that write [default: 2].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(crate) threads: Option<u8>,

    /// The form of new databases: portable, or a machine of `kymo machine list`; by default, that
    /// of this machine.
    #[arg(long, value_name = "FORM", value_parser = target)]
    pub(crate) format: Option<Target>,

    /// Log messages of this level and those that matter more: error, warning or info [default: info].
    #[arg(long, value_name = "LEVEL", value_parser = log_level)]
    pub(crate) log_level: Option<Level>,

    /// Form of messages: text, or json for an object with time, level and message in each line [default: text].
    #[arg(long, value_name = "FORM", value_parser = log_format)]
    pub(crate) log_format: Option<LogFormat>,

    /// Write the number of the process to a file.
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) pid_file: Option<PathBuf>,
}

fn rrdcached(text: &str) -> Result<Address, String> {
    address(text, Some(kymo_serve::rrdcached::PORT))
}

fn graphite(text: &str) -> Result<Endpoint, String> {
    endpoint(text, Protocol::Graphite, false)
}

fn statsd(text: &str) -> Result<Endpoint, String> {
    endpoint(text, Protocol::Statsd, true)
}

fn influx(text: &str) -> Result<Address, String> {
    address(text, Protocol::Influx.port())
}

fn otlp(text: &str) -> Result<Address, String> {
    address(text, Protocol::Otlp.port())
}

fn endpoint(text: &str, protocol: Protocol, is_datagram: bool) -> Result<Endpoint, String> {
    let endpoint = Endpoint::parse(text, protocol.port(), is_datagram);
    endpoint
        .ok_or_else(|| "expected tcp:HOST:PORT, udp:HOST:PORT, unix:PATH or unixgram:PATH".into())
}

fn datagrams(text: &str) -> Result<(String, u16), String> {
    match Address::parse(text, Some(kymo_collectd::network::PORT)) {
        Some(Address::Tcp(host, port)) => Ok((host, port)),
        _ => Err("expected HOST, HOST:PORT or [IPv6]:PORT".into()),
    }
}

fn level(name: &str) -> Result<Security, String> {
    Security::from_name(name).ok_or_else(|| "expected none, sign or encrypt".into())
}

fn log_level(name: &str) -> Result<Level, String> {
    Level::from_name(name).ok_or_else(|| "expected error, warning or info".into())
}

fn log_format(name: &str) -> Result<LogFormat, String> {
    LogFormat::from_name(name).ok_or_else(|| "expected text or json".into())
}

fn metrics(text: &str) -> Result<Address, String> {
    address(text, None)
}

fn address(text: &str, port: Option<u16>) -> Result<Address, String> {
    let address = Address::parse(text, port);
    address.ok_or_else(|| "expected unix:PATH, /PATH, HOST:PORT or [IPv6]:PORT".into())
}

fn seconds(text: &str) -> Result<std::time::Duration, String> {
    let number = text.parse().ok();
    let number = number.filter(|number| (0.0..=31_622_400.0).contains(number));
    number
        .and_then(|number: f64| std::time::Duration::try_from_secs_f64(number).ok())
        .ok_or_else(|| "expected seconds, 0 to 31622400".into())
}

fn period(text: &str) -> Result<std::time::Duration, String> {
    let expected = "expected seconds, 0.01 to 31622400";
    let period = seconds(text).map_err(|_| expected)?;
    let is_long = period >= std::time::Duration::from_millis(10);
    is_long.then_some(period).ok_or_else(|| expected.into())
}

fn target(name: &str) -> Result<Target, String> {
    kymo_rrdtool::target(name.as_bytes()).map_err(|failure| failure.to_string())
}
