//! Commands that the daemon of another machine does itself, since the files are there: `TUNE` and `DUMP`, which
//! rrdcached has since 1.8 and 1.9.

use std::io::{self, BufRead, Write};

use kymo_rrd::text::xml::Header;

use super::{Client, connect};
use crate::options::Words;
use crate::{Failure, Session};

/// Lines of a dump in front of its root at most.
const MOST_LINES: usize = 8;
/// What a dump ends with.
const END: &[u8] = b"</rrd>\n";

/// The daemon of another machine that a command line names, taken out of its session.
pub(crate) struct Remote(Client);

impl Remote {
    /// Connects to the daemon that a command line names; `None` if there is none, or it is on this machine.
    ///
    /// # Errors
    ///
    /// If there is no daemon at the address.
    pub(crate) fn connect(
        session: &mut Session<'_>,
        words: &Words<'_>,
    ) -> Result<Option<Self>, Failure> {
        let is_remote = connect(session, words)?.is_some_and(|client| !client.is_local());
        Ok(session.daemon.take_if(|_| is_remote).map(Self))
    }

    /// Gives the connection back.
    pub(crate) fn keep(self, session: &mut Session<'_>) {
        session.daemon = Some(self.0);
    }

    /// Has it change a database, after it wrote what it holds of it. `options` and `operands` are those of `tune`,
    /// without the file; if the layout of the file changes, the daemon forgets it afterwards. Returns false if it does
    /// not know the command.
    ///
    /// # Errors
    ///
    /// What the daemon says.
    pub(crate) fn tune(
        &mut self,
        file: &[u8],
        options: &[Vec<u8>],
        operands: &[&[u8]],
        is_relaid: bool,
    ) -> Result<bool, Failure> {
        let client = &mut self.0;
        client.flush(file)?;
        let there = client.path(file)?;
        // All words of a command line, with its name.
        let count = (2 + options.len() + operands.len()).to_string();
        let mut words: Vec<&[u8]> = vec![b"tune", &there, count.as_bytes(), b"tune"];
        words.extend(options.iter().map(Vec::as_slice));
        words.push(&there);
        words.extend(operands);
        match client.ask(&words) {
            Err(failure) if is_unknown(&failure) => return Ok(false),
            done => done?,
        };
        if is_relaid {
            client.forget(file)?;
        }
        Ok(true)
    }

    /// Asks for a database as XML; `None` if the daemon does not know the command.
    ///
    /// # Errors
    ///
    /// What the daemon says.
    pub(crate) fn dump(&mut self, file: &[u8]) -> Result<Option<Dump<'_>>, Failure> {
        let client = &mut self.0;
        let there = client.path(file)?;
        let first = client.send(&[b"dump", &there])?;
        if first.starts_with(b"<") {
            return Ok(Some(Dump { client, first }));
        }
        let text = String::from_utf8_lossy(&first);
        let failure = client.failure(text.split_once(' ').map_or(&*text, |(_, message)| message));
        match is_unknown(&failure) {
            true => Ok(None),
            false => Err(failure),
        }
    }
}

fn is_unknown(failure: &Failure) -> bool {
    matches!(failure, Failure::Message(message) if message.contains("Unknown command"))
}

/// A database as XML, which a daemon sends; the connection ends behind it.
pub(crate) struct Dump<'a> {
    client: &'a mut Client,
    first: Vec<u8>,
}

impl Dump<'_> {
    /// Writes it, with this header.
    ///
    /// # Errors
    ///
    /// Those of writing, and of the connection.
    pub(crate) fn write_to(self, header: Header, out: &mut dyn Write) -> io::Result<()> {
        let client = self.client;
        let failed = |failure: Failure| io::Error::other(failure.to_string());
        let mut head = [&*self.first, b"\n"].concat();
        for _ in 0..MOST_LINES {
            if head.ends_with(b"<rrd>\n") {
                break;
            }
            head.extend(client.line().map_err(failed)?);
            head.push(b'\n');
        }
        match header {
            Header::Dtd => out.write_all(&head)?,
            header => out.write_all(&header.text())?,
        }
        // Whether it ended on the way is seen from its last bytes.
        let mut last = Vec::new();
        // Nothing else comes on this connection.
        let Some(mut stream) = client.stream.take() else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        loop {
            let bytes = stream.fill_buf()?;
            if bytes.is_empty() {
                break;
            }
            out.write_all(bytes)?;
            last.extend_from_slice(&bytes[bytes.len().saturating_sub(END.len())..]);
            last.drain(..last.len().saturating_sub(END.len()));
            let length = bytes.len();
            stream.consume(length);
        }
        match last == END {
            true => Ok(()),
            false => Err(failed(
                client.failure("the connection ended within the dump"),
            )),
        }
    }
}
