//! What sends, how fast, and how much it was.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{ToSocketAddrs, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use kymo_collectd::network::{Packer, PackerOptions, Protection, initial_vectors};
use kymo_collectd::plain::{self, Reply};
use kymo_collectd::{Identifier, Notification, Value};
use kymo_io::net::Departure;
use kymo_text::Line;
use kymo_time::CdTime;

use super::Target;
use crate::args::send::{Level, Send};
use crate::terminal::{Failure, Terminal, error_at};

/// The default number of lists sent per second as datagrams: receivers of any age keep up.
const RATE: u32 = 50_000;
/// A server that has not replied after this does not.
const PATIENCE: Duration = Duration::from_secs(60);
/// The longest line of a reply.
const LONGEST_REPLY: u64 = 1 << 16;
/// Maximum time to wait for a datagram to fill up.
const LINGER: Duration = Duration::from_millis(10);

/// Sends values, and counts them.
pub(super) struct Sender<'t> {
    way: Way,
    target: Target,
    terminal: &'t Terminal,
    pace: Pace,
    lists: u64,
    values: u64,
    messages: u64,
    refused: u64,
}

/// How values are sent.
enum Way {
    Network {
        socket: UdpSocket,
        packer: Box<Packer>,
        datagrams: u64,
    },
    Unix(BufReader<UnixStream>),
}

impl<'t> Sender<'t> {
    /// Connects, which no server notices where datagrams are sent.
    pub(super) fn new(args: &Send, terminal: &'t Terminal) -> Result<Self, Failure> {
        let target = args.target.clone();
        let failed = |error: io::Error| Failure::Output(reported(&target, &error));
        let protection = protection(args)?;
        let (way, rate) = match &target {
            Target::Network(host, port) => {
                let size = args.packet_size;
                let packer = Packer::new(PackerOptions { size, protection });
                let packer = packer.map_err(|error| Failure::Usage(format!("error: {error}")))?;
                let socket = connect(host, *port, args.departure()).map_err(failed)?;
                let network = Way::Network {
                    socket,
                    packer: Box::new(packer),
                    datagrams: 0,
                };
                (network, args.rate.unwrap_or(RATE))
            }
            Target::Packets(_) => {
                let problem = "error: packets are not sent in lists of values";
                return Err(Failure::Usage(problem.to_string()));
            }
            Target::Unix(_) if !matches!(protection, Protection::None) => {
                let problem =
                    "error: only datagrams are signed and encrypted, not lines to a socket";
                return Err(Failure::Usage(problem.to_string()));
            }
            Target::Unix(_) if args.interface.is_some() || args.ttl.is_some() => {
                let problem = "error: `--interface` and `--ttl` are for datagrams, not for lines to a \
                    socket";
                return Err(Failure::Usage(problem.to_string()));
            }
            Target::Unix(path) => {
                let stream = open(path).map_err(failed)?;
                (Way::Unix(BufReader::new(stream)), args.rate.unwrap_or(0))
            }
        };
        Ok(Self {
            way,
            target,
            terminal,
            pace: Pace::new(rate),
            lists: 0,
            values: 0,
            messages: 0,
            refused: 0,
        })
    }

    /// Whether lines go to a server that reads them itself.
    pub(super) fn takes_lines(&self) -> bool {
        matches!(self.way, Way::Unix(_))
    }

    /// Sends a list of values. `place` says where it is from, in case it is refused.
    pub(super) fn list(
        &mut self,
        place: impl fmt::Display,
        id: &Identifier<'_>,
        time: CdTime,
        interval: CdTime,
        values: &[Value],
    ) -> io::Result<()> {
        self.wait()?;
        match &mut self.way {
            Way::Network { packer, .. } => match packer.values(id, time, interval, values) {
                Ok(full) => {
                    self.lists += 1;
                    self.values += values.len() as u64;
                    self.datagram(full)
                }
                Err(error) => self.refuse(place, error),
            },
            Way::Unix(_) => {
                let line = plain::put_values(id, time, interval, values);
                if self.command(place, &line)? {
                    self.lists += 1;
                    self.values += values.len() as u64;
                }
                Ok(())
            }
        }
    }

    /// Sends a message in the same way.
    pub(super) fn message(
        &mut self,
        place: impl fmt::Display,
        notification: &Notification<'_>,
    ) -> io::Result<()> {
        self.wait()?;
        match &mut self.way {
            Way::Network { packer, .. } => match packer.notification(notification) {
                Ok(datagram) => {
                    self.messages += 1;
                    self.datagram(Some(datagram))
                }
                Err(error) => self.refuse(place, error),
            },
            Way::Unix(_) => {
                let line = plain::put_notification(notification);
                if self.command(place, &line)? {
                    self.messages += 1;
                }
                Ok(())
            }
        }
    }

    /// Sends a line as it is, with the number of lists and values in it (`None` for a message).
    pub(super) fn line(
        &mut self,
        place: impl fmt::Display,
        line: &str,
        (lists, values): (u64, u64),
    ) -> io::Result<()> {
        self.wait()?;
        if self.command(place, &format!("{line}\n"))? {
            self.lists += lists;
            self.values += values;
            self.messages += u64::from(lists == 0);
        }
        Ok(())
    }

    /// Reports that something cannot be sent, and why.
    pub(super) fn refuse(
        &mut self,
        place: impl fmt::Display,
        problem: impl fmt::Display,
    ) -> io::Result<()> {
        self.refused += 1;
        self.terminal.error(format_args!("{place}: {problem}"));
        Ok(())
    }

    /// Waits until the next one may be sent.
    fn wait(&mut self) -> io::Result<()> {
        let pause = self.pace.pause();
        if pause > LINGER {
            self.flush()?;
        }
        if pause > Duration::ZERO {
            std::thread::sleep(pause);
        }
        Ok(())
    }

    /// Sends what waits for a datagram to be full.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        match &mut self.way {
            Way::Network { packer, .. } => {
                let rest = packer.flush();
                self.datagram(rest)
            }
            Way::Unix(_) => Ok(()),
        }
    }

    fn datagram(&mut self, datagram: Option<Vec<u8>>) -> io::Result<()> {
        let Way::Network {
            socket, datagrams, ..
        } = &mut self.way
        else {
            return Ok(());
        };
        if let Some(datagram) = datagram {
            // The system may have no room for it now.
            while let Err(error) = socket.send(&datagram) {
                match error.raw_os_error() {
                    Some(NO_BUFFERS) => std::thread::sleep(LINGER),
                    _ => return Err(reported(&self.target, &error)),
                }
            }
            *datagrams += 1;
        }
        Ok(())
    }

    /// Sends a command with its end, and returns whether the server has accepted it.
    fn command(&mut self, place: impl fmt::Display, line: &str) -> io::Result<bool> {
        let Way::Unix(stream) = &mut self.way else {
            return Ok(false);
        };
        let reply = exchange(stream, line).map_err(|error| reported(&self.target, &error))?;
        if reply.status() >= 0 {
            return Ok(true);
        }
        let text = reply.text();
        let hint = match text.ends_with("isn't defined.") {
            true => {
                "\nhint: the server's `types.db` lacks this type: `kymo serve --types-db FILE` reads another"
            }
            false => "",
        };
        self.refuse(place, format_args!("the server replies: {text}{hint}"))?;
        Ok(false)
    }

    /// Sends what is left, reports how much was sent, and returns how much was refused.
    pub(super) fn finish(mut self) -> io::Result<u64> {
        self.flush()?;
        let mut line = Line::new();
        count_after(&mut line, "sent ", self.values, "value");
        count_after(&mut line, " in ", self.lists, "list");
        if self.messages > 0 {
            count_after(&mut line, ", ", self.messages, "message");
        }
        if let Way::Network { datagrams, .. } = self.way {
            count_after(&mut line, ", in all ", datagrams, "datagram");
        }
        if self.refused > 0 {
            line.push(b"; ");
            line.grouped(self.refused);
            line.push(b" refused");
        }
        line.push_byte(b'\n');
        self.terminal.report(line.as_bytes());
        Ok(self.refused)
    }
}

/// What Linux says when a network has no room for a datagram.
const NO_BUFFERS: i32 = 105;

pub(crate) fn count_after(line: &mut Line, before: &str, count: u64, one: &str) {
    line.push(before.as_bytes());
    line.grouped(count);
    let plural = if count == 1 { "" } else { "s" };
    line.push(format!(" {one}{plural}").as_bytes());
}

fn reported(target: &Target, error: &io::Error) -> io::Error {
    match error.kind() {
        kind @ (io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
            error_at(target, &io::Error::new(kind, "no reply"))
        }
        _ => error_at(target, error),
    }
}

/// Connects a socket to the first address of a host.
pub(super) fn connect(host: &str, port: u16, by: Departure<'_>) -> io::Result<UdpSocket> {
    let address = (host, port).to_socket_addrs()?.next();
    let address = address.ok_or_else(|| io::Error::other("it has no address"))?;
    let socket = by.socket(address)?;
    socket.connect(address)?;
    Ok(socket)
}

fn open(path: &Path) -> io::Result<UnixStream> {
    let stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// Sends a command with its end, and reads the reply.
fn exchange(stream: &mut BufReader<UnixStream>, line: &str) -> io::Result<Reply> {
    stream.get_mut().write_all(line.as_bytes())?;
    let mut read = || {
        let mut line = Vec::new();
        stream
            .by_ref()
            .take(LONGEST_REPLY)
            .read_until(b'\n', &mut line)?;
        match line.ends_with(b"\n") {
            true => Ok(String::from_utf8_lossy(&line).into_owned()),
            false => Err(io::Error::other("the server has closed the connection")),
        }
    };
    let first = read()?;
    let reply = Reply::parse(&first);
    let reply = reply.ok_or_else(|| io::Error::other(format!("no reply: {first:?}")))?;
    for _ in 0..reply.missing_lines() {
        read()?;
    }
    Ok(reply)
}

/// How datagrams are to be protected.
fn protection(args: &Send) -> Result<Protection, Failure> {
    let usage = |problem: String| Failure::Usage(format!("error: {problem}"));
    let level = match (args.security, &args.username) {
        (Some(level), _) => level,
        (None, Some(_)) => Level::Encrypt,
        (None, None) => Level::None,
    };
    let (user, file) = match (level, &args.username, &args.password_file) {
        (Level::None, _, _) => return Ok(Protection::None),
        (_, Some(user), Some(file)) => (user.clone(), file),
        _ => {
            let problem = "`--security` needs `--username` and `--password-file`";
            return Err(usage(problem.to_string()));
        }
    };
    let text = kymo_io::read_small(file)
        .map_err(|error| usage(format!("{}: {}", file.display(), kymo_io::reason(&error))))?;
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let password = line.strip_suffix(b"\r").unwrap_or(line).to_vec();
    if password.is_empty() {
        let problem = format!("{}: expected a password in the first line", file.display());
        return Err(usage(problem));
    }
    Ok(match level {
        Level::Sign => Protection::Sign { user, password },
        _ => Protection::Encrypt {
            user,
            password,
            random: initial_vectors(kymo_io::random()?),
        },
    })
}

/// Limits the rate of sending.
struct Pace {
    /// The time for one list; `None` if there is no limit.
    each: Option<f64>,
    begun: Option<Instant>,
    count: u64,
}

impl Pace {
    fn new(rate: u32) -> Self {
        Self {
            each: (rate > 0).then(|| 1.0 / f64::from(rate)),
            begun: None,
            count: 0,
        }
    }

    /// How long to wait for the next one.
    fn pause(&mut self) -> Duration {
        let Some(each) = self.each else {
            return Duration::ZERO;
        };
        let begun = *self.begun.get_or_insert_with(Instant::now);
        let due = self.count as f64 * each;
        let late = begun.elapsed().as_secs_f64() - due;
        if late > 1.0 {
            // What was not sent in time is not sent all at once.
            self.begun = None;
            self.count = 0;
        }
        self.count += 1;
        Duration::try_from_secs_f64(-late).unwrap_or(Duration::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_a_second() {
        let mut pace = Pace::new(0);
        assert_eq!(pace.pause(), Duration::ZERO);
        let mut pace = Pace::new(2);
        assert_eq!(pace.pause(), Duration::ZERO);
        for due in [0.5, 1.0] {
            let pause = pace.pause().as_secs_f64();
            assert!((due - 0.4..=due).contains(&pause), "{pause}");
        }
    }
}
