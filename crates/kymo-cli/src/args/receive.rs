//! What can be written behind `kymo receive`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use kymo_time::Duration;

use super::key::KeyFile;
use crate::send::Place;

/// Receive the packets of a trace that `kymo send` sends
///
/// They are stored in a new directory, which can be read while it grows. What is lost on the way is
/// asked for again; packets that never come are reported at the end with their numbers.
/// Datagrams that are packets of CTF and nothing else are taken, too: those of each
/// sender go to a file `raw_N`, and their metadata, where that comes in packets of CTF 1.8, to `metadata`.
///
/// It ends when all is there, when nothing has come for a while, or when it is interrupted: what is there
/// is written then.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  kymo receive ctf+udp://0.0.0.0:5555 -o trace/
  kymo receive ctf+udp://[::]:5555 -o trace/ --key-file secret.key --idle 1m
  kymo receive ctf+udp://0.0.0.0:5555 -o trace/ --resume
  kymo receive ctf+udp://0.0.0.0:5555 -o hosts/ --senders 8")]
pub(crate) struct Receive {
    /// Where to listen: an address of this machine and a port; port 0 is any that is free.
    #[arg(value_name = "ctf+udp://ADDR:PORT", value_parser = Place::parse)]
    pub(crate) place: Place,

    /// The directory to make, or an empty one; with --resume, one from before.
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) output: PathBuf,

    /// Take only datagrams that are authenticated with the key in a file: 16, 24 or 32 bytes, or twice as
    /// many hexadecimal digits in a line.
    ///
    /// 32 digits without the end of the line are 32 bytes, and so the key themselves.
    #[arg(long, value_name = "FILE", value_parser = KeyFile::parse, value_hint = ValueHint::FilePath)]
    pub(crate) key_file: Option<KeyFile>,

    /// End when nothing has come for so long since something has; units are ns, us, ms, s, m, h, d.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = Duration::parse_positive)]
    pub(crate) idle: std::time::Duration,

    /// Do not ask for what is missing.
    #[arg(long)]
    pub(crate) no_resend: bool,

    /// Maximum size of a packet: a number of bytes, optionally followed by K, M or G.
    ///
    /// Larger ones are reported and left out. Half as many bytes again may be in memory, of all senders together; 64M
    /// at least.
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "64M",
        value_parser = packet_limit
    )]
    pub(crate) packet_limit: u32,

    /// Receive from N senders, each into a directory of its own: `sender_1`, `sender_2`, ... below DIR.
    ///
    /// The command ends when all senders have ended, or if nothing arrives for the time of --idle.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u16).range(1..=1024)
    )]
    pub(crate) senders: u16,

    /// Go on with what an earlier `kymo receive` left in DIR while its sender still sends.
    ///
    /// The sender sends again what is missing. If DIR is new or empty, this begins as usual. When it is
    /// interrupted, the sender is not dismissed, but waits for the next receiver.
    #[arg(long)]
    pub(crate) resume: bool,

    /// Exit with 1 if packets were lost.
    #[arg(long)]
    pub(crate) strict: bool,
}

fn packet_limit(text: &str) -> Result<u32, String> {
    match super::size::parse_size(text)? {
        0 => Err("expected a size above 0".to_owned()),
        limit => Ok(limit),
    }
}
