//! A client of daemons that hold updates back: rrdcached's protocol.
//!
//! Requests are lines; a reply begins with a number and a message, and where the number is positive
//! that many lines follow. A negative one is a failure. What the protocol is, the manual page of
//! rrdcached describes under PROTOCOL.

mod facts;
mod remote;
mod rows;
mod stream;
mod update;

use std::io::{self, BufRead, BufReader, Read, Write};

use kymo_io::net::Address;
use stream::Stream;

pub(crate) use remote::Remote;
pub(crate) use update::Update;

use crate::failure::reason;
use crate::options::Words;
use crate::path::{path, shown};
use crate::{Failure, Session};

/// The default port of rrdcached.
pub const PORT: u16 = 42217;
/// A line of a daemon is not longer than this: names of files, rows of many data sources.
const LONGEST_LINE: u64 = 1 << 20;

/// A connection.
#[derive(Debug)]
pub struct Client {
    /// None where the connection has ended.
    stream: Option<BufReader<Stream>>,
    /// Whether the daemon has answered on the connection.
    answered: bool,
    /// The address, as it was written.
    name: String,
    address: Address,
    /// What is cut off from the beginning of paths for daemons of other machines.
    strip: Option<Vec<u8>>,
    request: Vec<u8>,
}

/// The address of the daemon that a command line names, or else the environment.
pub(crate) fn address(session: &Session<'_>, words: &Words<'_>) -> Option<String> {
    match words.value("daemon") {
        Some(address) => Some(shown(address).into_owned()),
        None => session.defaults.daemon.clone(),
    }
    .filter(|address| !address.is_empty())
}

/// Connects to the daemon that a command line names, if there is one.
///
/// # Errors
///
/// If there is no daemon at the address.
pub(crate) fn connect<'s>(
    session: &'s mut Session<'_>,
    words: &Words<'_>,
) -> Result<Option<&'s mut Client>, Failure> {
    match address(session, words) {
        Some(address) => connect_to(session, address).map(Some),
        None => Ok(None),
    }
}

/// Connects to the daemon at an address.
fn connect_to<'s>(
    session: &'s mut Session<'_>,
    address: String,
) -> Result<&'s mut Client, Failure> {
    let strip = session.defaults.strip_path.clone();
    // The connection is kept for the next line.
    let client = match session.daemon.take() {
        Some(client) if client.name == address => client,
        _ => Client::connect(&address, strip.map(String::into_bytes))?,
    };
    Ok(session.daemon.insert(client))
}

/// Has the daemon that a command line names, if there is one, write what it holds of a file.
///
/// # Errors
///
/// If the daemon does not exist, or it fails to do it.
pub(crate) fn flush(
    session: &mut Session<'_>,
    words: &Words<'_>,
    file: &[u8],
) -> Result<(), Failure> {
    match connect(session, words)? {
        Some(client) => client.flush(file),
        None => Ok(()),
    }
}

/// Has the daemon at an address write what it holds of a file.
///
/// # Errors
///
/// If the daemon does not exist, or it fails to do it.
pub(crate) fn flush_at(
    session: &mut Session<'_>,
    address: String,
    file: &[u8],
) -> Result<(), Failure> {
    connect_to(session, address)?.flush(file)
}

/// Has the daemon that a command line names, if there is one, forget what it knows of a file, which
/// is another now.
///
/// # Errors
///
/// If the daemon does not exist, or it fails to do it.
pub(crate) fn forget(
    session: &mut Session<'_>,
    words: &Words<'_>,
    file: &[u8],
) -> Result<(), Failure> {
    match connect(session, words)? {
        Some(client) => client.forget(file),
        None => Ok(()),
    }
}

impl Client {
    /// Connects to an address: `unix:PATH`, `/PATH`, `HOST`, `HOST:PORT` or `[IPv6]:PORT`. `strip` is cut
    /// off from the beginning of paths for daemons of other machines.
    ///
    /// # Errors
    ///
    /// If there is no daemon at the address.
    pub fn connect(name: &str, strip: Option<Vec<u8>>) -> Result<Self, Failure> {
        let address = Address::parse(name, Some(PORT)).ok_or_else(|| {
            Failure::new(format!(
                "Unable to connect to rrdcached: '{name}' is not an address: expected unix:PATH, /PATH, \
                 HOST, HOST:PORT or [IPv6]:PORT"
            ))
        })?;
        Ok(Self {
            stream: Some(connection(&address)?),
            answered: false,
            name: name.to_owned(),
            address,
            strip,
            request: Vec::new(),
        })
    }

    /// The address, as it was written.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the daemon is on this machine, so that both see the same files.
    pub(crate) fn is_local(&self) -> bool {
        matches!(self.address, Address::Unix(_))
    }

    /// Has it write what it holds of a file.
    ///
    /// # Errors
    ///
    /// What the daemon says.
    pub fn flush(&mut self, file: &[u8]) -> Result<(), Failure> {
        let file = self.path(file)?;
        self.ask(&[b"flush", &file]).map(drop)
    }

    /// Makes the daemon forget what it knows of a file. It is not a failure if it knows nothing.
    ///
    /// # Errors
    ///
    /// Where it cannot be asked.
    pub fn forget(&mut self, file: &[u8]) -> Result<(), Failure> {
        let file = self.path(file)?;
        match self.ask(&[b"forget", &file]) {
            Err(Failure::Message(message)) if message.contains("No such file") => Ok(()),
            done => done.map(drop),
        }
    }

    /// Sends a request whose answer is a number.
    ///
    /// # Errors
    ///
    /// Those of [`Client::ask`].
    pub fn number(&mut self, words: &[&[u8]]) -> Result<i64, Failure> {
        let reply = self.ask(words)?;
        reply
            .trim()
            .parse()
            .map_err(|_| self.failure(&format!("found reply '{reply}', expected a number")))
    }

    /// Sends a request; its words are escaped. Returns what follows the number of the reply.
    ///
    /// # Errors
    ///
    /// What the daemon says, and those of the connection, which then ends.
    pub fn ask(&mut self, words: &[&[u8]]) -> Result<String, Failure> {
        self.ask_with(words, |_| Ok(()))
    }

    /// The same, with each line of the reply as it comes.
    ///
    /// # Errors
    ///
    /// Those of [`Client::ask`] and of `each`.
    pub fn ask_with(
        &mut self,
        words: &[&[u8]],
        mut each: impl FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Result<String, Failure> {
        let line = self.send(words)?;
        let text = String::from_utf8_lossy(&line).into_owned();
        let (number, message) = text.split_once(' ').unwrap_or((&text, ""));
        let Ok(number) = number.parse::<i64>() else {
            self.stream = None;
            return Err(self.failure(&format!("found reply '{text}', expected a number first")));
        };
        if number < 0 {
            return Err(self.failure(message));
        }
        let mut failed = None;
        for _ in 0..number {
            let line = self.line()?;
            // All lines are read, so that the next reply is found.
            if failed.is_none() {
                failed = each(&line).err();
            }
        }
        match failed {
            Some(failure) => Err(failure),
            None => Ok(message.to_owned()),
        }
    }

    /// Sends a request, and reads the first line of the reply.
    fn send(&mut self, words: &[&[u8]]) -> Result<Vec<u8>, Failure> {
        self.request.clear();
        for (index, word) in words.iter().enumerate() {
            if index > 0 {
                self.request.push(b' ');
            }
            escape(word, &mut self.request)?;
        }
        self.request.push(b'\n');
        match self.exchange() {
            // A restarted daemon knows nothing of connections to the previous one.
            Err(_) if self.answered => {
                self.answered = false;
                self.exchange()
            }
            done => done,
        }
    }

    /// The same, of the request that is ready.
    fn exchange(&mut self) -> Result<Vec<u8>, Failure> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            ended => ended.insert(connection(&self.address)?),
        };
        let sent = stream.get_mut().write_all(&self.request);
        sent.map_err(|error| self.lost(&error))?;
        let line = self.line()?;
        self.answered = true;
        Ok(line)
    }

    /// A line, without its end.
    fn line(&mut self) -> Result<Vec<u8>, Failure> {
        let mut line = Vec::new();
        let read = match &mut self.stream {
            Some(stream) => stream.take(LONGEST_LINE).read_until(b'\n', &mut line),
            None => Err(io::ErrorKind::NotConnected.into()),
        };
        read.map_err(|error| self.lost(&error))?;
        if line.pop() != Some(b'\n') {
            let error = io::Error::from(io::ErrorKind::UnexpectedEof);
            return Err(self.lost(&error));
        }
        Ok(line)
    }

    /// Ends the connection, since what is still to come on it is unknown.
    fn lost(&mut self, error: &io::Error) -> Failure {
        self.stream = None;
        self.failure(&format!("the connection failed: {}", reason(error)))
    }

    fn failure(&self, what: &str) -> Failure {
        Failure::new(format!("rrdcached@{}: {what}", self.name))
    }

    /// The path of a file as the daemon knows it: absolute for one on this machine, and for others as
    /// it was written, without the prefix that is to be stripped.
    ///
    /// # Errors
    ///
    /// If the current directory cannot be determined; for one on another machine, whose paths are
    /// others, where it is absolute.
    pub fn path(&self, file: &[u8]) -> Result<Vec<u8>, Failure> {
        if !self.is_local() {
            let stripped = self
                .strip
                .as_ref()
                .and_then(|strip| file.strip_prefix(strip.as_slice()));
            let rest = stripped.map(|rest| rest.strip_prefix(b"/").unwrap_or(rest));
            let rest = rest.unwrap_or(file);
            if rest.starts_with(b"/") {
                let problem = "absolute path names not allowed when talking to a remote daemon";
                return Err(Failure::new(problem));
            }
            return Ok(rest.to_vec());
        }
        let path = path(file);
        let whole = std::fs::canonicalize(&path).or_else(|_| std::path::absolute(&path));
        let whole = whole
            .map_err(|error| Failure::new(format!("'{}': {}", shown(file), reason(&error))))?;
        Ok(whole.into_os_string().into_encoded_bytes())
    }
}

/// A connection to an address.
fn connection(address: &Address) -> Result<BufReader<Stream>, Failure> {
    let stream = Stream::connect(address).map_err(|error| {
        let reason = reason(&error);
        Failure::new(format!("Unable to connect to rrdcached: {reason}"))
    })?;
    Ok(BufReader::new(stream))
}

/// Appends a word of a request: spaces and backslashes stand behind a backslash.
fn escape(word: &[u8], request: &mut Vec<u8>) -> Result<(), Failure> {
    for &byte in word {
        match byte {
            b' ' | b'\\' => request.extend([b'\\', byte]),
            b'\n' | 0 => {
                let word = shown(word);
                let message =
                    format!("'{word}' cannot be sent to rrdcached: it contains a line break");
                return Err(Failure::new(message));
            }
            _ => request.push(byte),
        }
    }
    Ok(())
}
