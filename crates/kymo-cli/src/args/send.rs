//! What can be written behind `kymo send`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use kymo_io::net::Departure;

use super::{Input, Selection};
use crate::send::Target;

/// Send values to a collectd server, or packets of traces to `kymo receive`
///
/// To a server of collectd, what is sent are lines of collectd's text protocol (`PUTVAL`, `PUTNOTIF`) in a file or on
/// standard input, or the samples of recordings: datagrams of collectd in captures, with their own
/// times; and rows of round-robin databases, as levels named after the files,
/// `HOST/PLUGIN/TYPE.rrd`, of the archive with the shortest rows unless --event names others.
///
/// At the end, the number of values sent is printed to standard error. Whatever the server or the protocol
/// does not take is reported where it happens, and makes the exit status 1.
///
/// To `ctf+udp://`, what is sent are the packets of CTF traces as they are, with their metadata. They
/// are kept for a while, to be sent again where `kymo receive` asks for them; at the end that confirms that it
/// has everything.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  kymo send values.txt unix:/run/collectd-unixsock
  kymo send - collectd://192.0.2.1 --username alice --password-file secret < values.txt
  kymo send capture.pcap collectd://localhost:25826 --rate 1000
  kymo send /var/lib/collectd/rrd/ collectd://[::1] --begin 10:00
  kymo send trace/ ctf+udp://192.0.2.1:5555 --rate 50000000 --key-file secret.key")]
pub(crate) struct Send {
    #[command(flatten)]
    pub(crate) input: Input,

    /// Where to send: `collectd://HOST[:PORT]`, whose network plugin listens on UDP port 25826 by
    /// default; `unix:PATH`, the socket of its unixsock plugin, which replies to each line; or
    /// `ctf+udp://HOST:PORT`, where `kymo receive` listens.
    #[arg(value_name = "TARGET", value_parser = Target::parse)]
    pub(crate) target: Target,

    /// The name of the database, `HOST/PLUGIN-INSTANCE/TYPE-INSTANCE`, where its path does not say
    /// it.
    #[arg(long, value_name = "ID")]
    pub(crate) id: Option<String>,

    /// Send at most N lists of values a second, or N bytes a second with ctf+udp; 0 for no limit.
    ///
    /// By default, 50,000 lists a second are sent as datagrams, whose loss is not reported,
    /// and an unlimited number to a socket; packets are sent at 12,500,000 bytes a second.
    #[arg(long, value_name = "N")]
    pub(crate) rate: Option<u32>,

    /// What types of values there are, to read PUTVAL lines for datagrams; can be given several
    /// times. A server with a socket knows its own.
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/usr/share/collectd/types.db",
        value_hint = ValueHint::FilePath
    )]
    pub(crate) types_db: Vec<PathBuf>,

    /// How datagrams are protected; encrypt where a user is specified.
    #[arg(long, value_enum, value_name = "LEVEL", help_heading = "Datagrams")]
    pub(crate) security: Option<Level>,

    /// The user that signs and encrypts.
    #[arg(
        long,
        value_name = "USER",
        requires = "password_file",
        help_heading = "Datagrams"
    )]
    pub(crate) username: Option<String>,

    /// A file that holds the user's password in its first line.
    #[arg(
        long,
        value_name = "FILE",
        requires = "username",
        value_hint = ValueHint::FilePath,
        help_heading = "Datagrams"
    )]
    pub(crate) password_file: Option<PathBuf>,

    /// The size in bytes that no datagram exceeds, 1024 to 65507.
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = kymo_collectd::network::DATAGRAM,
        value_parser = super::size::parse_size::<usize>,
        help_heading = "Datagrams"
    )]
    pub(crate) packet_size: usize,

    /// The interface that datagrams leave by, where routes do not say: for groups, and for addresses
    /// of IPv6 that are of a link.
    #[arg(long, value_name = "NAME", help_heading = "Datagrams")]
    pub(crate) interface: Option<String>,

    /// How many routers datagrams may pass; by default, those to groups stay in this
    /// machine's network.
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u8).range(1..),
        help_heading = "Datagrams"
    )]
    pub(crate) ttl: Option<u8>,

    /// Send each packet that fits a datagram as it is, for programs that know no envelope; others, and
    /// metadata that is plain text, are reported, and make the exit status 1. Nothing is sent again.
    #[arg(long, help_heading = "Packets of traces")]
    pub(crate) raw: bool,

    /// Bytes of packets to keep in memory for resending: a number, optionally with K, M or G behind
    /// it. Others are read again.
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "64M",
        value_parser = super::size::parse_size::<usize>,
        conflicts_with = "raw",
        help_heading = "Packets of traces"
    )]
    pub(crate) window: usize,

    /// Time to keep trying if there is no listener, or if the end is not confirmed; units are ns, us, ms, s, m, h, d.
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "10s",
        value_parser = kymo_time::Duration::parse_positive,
        conflicts_with = "raw",
        help_heading = "Packets of traces"
    )]
    pub(crate) wait: std::time::Duration,

    // Behind it, options would be under its heading.
    #[command(flatten)]
    pub(crate) selection: Selection,
}

impl Send {
    /// How datagrams leave.
    pub(crate) fn departure(&self) -> Departure<'_> {
        Departure {
            source: None,
            interface: self.interface.as_deref(),
            routers: self.ttl,
        }
    }
}

/// How datagrams are protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Level {
    /// Not at all
    None,
    /// By a signature
    Sign,
    /// By encryption
    Encrypt,
}
