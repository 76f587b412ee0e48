//! A connection to a server: plain, or encrypted if the program is built with TLS.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::Path;
use std::time::Duration;

use super::{ServerAddress, TOKEN_FILE};

/// How long connecting, and each piece of an answer, may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// The largest answer, in bytes, and the largest head.
const MOST_ANSWER: usize = 128 << 20;
const MOST_HEAD: usize = 64 << 10;

trait Stream: Read + Write + Send {}

impl<S: Read + Write + Send> Stream for S {}

/// A connection that answers one request after the other.
pub(super) struct Connection {
    address: ServerAddress,
    stream: Box<dyn Stream>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Connection").field(&self.address).finish()
    }
}

/// An answer, and the connection if it stays.
pub(super) struct HttpReply {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
    pub(super) connection: Option<Connection>,
}

impl Connection {
    /// Connects to a server.
    pub(super) fn open(address: &ServerAddress) -> io::Result<Self> {
        let socket = connect(address)?;
        Ok(Self {
            stream: match address.is_encrypted {
                true => encrypted(address.host(), socket)?,
                false => Box::new(socket),
            },
            address: address.clone(),
        })
    }

    /// Sends a request and reads its answer.
    pub(super) fn get(mut self, target: &str) -> io::Result<HttpReply> {
        let authorization = match TOKEN_FILE.get() {
            None => String::new(),
            Some(path) => format!("Authorization: Bearer {}\r\n", read_token(path)?),
        };
        let request = format!(
            "GET {target} HTTP/1.1\r\nHost: {}\r\nUser-Agent: kymo/{}\r\n{authorization}\r\n",
            self.address.authority,
            env!("CARGO_PKG_VERSION")
        );
        let sent = self.stream.write_all(request.as_bytes());
        let sent = sent.and_then(|()| self.stream.flush());
        sent.map_err(|error| self.explained(error))?;
        self.read_reply()
    }

    /// Why the handshake has failed, and what to do.
    fn explained(&self, error: io::Error) -> io::Error {
        if !self.address.is_encrypted || error.kind() != ErrorKind::InvalidData {
            return error;
        }
        let text = error.to_string();
        let remedy = match text.contains("certificate") {
            true => "`--ca FILE` specifies the certificates that are trusted",
            false => "if the server does not speak TLS, write the address as http://",
        };
        io::Error::other(format!(
            "the connection cannot be encrypted: {text}; {remedy}"
        ))
    }

    /// Reads an answer with a length, as `kymo serve` sends them.
    fn read_reply(mut self) -> io::Result<HttpReply> {
        let wrong = |bytes: &[u8]| {
            let problem = match bytes {
                // An alert: what TLS answers to a request that is not encrypted.
                [0x15, 3, ..] => "the server speaks TLS; write the address as https://",
                _ => "the answer is not one of `kymo serve`",
            };
            io::Error::new(ErrorKind::InvalidData, problem)
        };
        let mut bytes = Vec::new();
        let mut piece = vec![0; 1 << 16];
        let (status, length, begin, keeps) = loop {
            let mut headers = [httparse::EMPTY_HEADER; 100];
            let mut reply = httparse::Response::new(&mut headers);
            match reply.parse(&bytes) {
                Ok(httparse::Status::Complete(begin)) => {
                    let header = |name: &str| {
                        let mut all = reply.headers.iter();
                        let found = all.find(|it| it.name.eq_ignore_ascii_case(name))?;
                        std::str::from_utf8(found.value).ok().map(str::trim)
                    };
                    let length = header("Content-Length");
                    let length = length.and_then(|text| text.parse::<usize>().ok());
                    let length = length
                        .filter(|length| *length <= MOST_ANSWER)
                        .ok_or_else(|| wrong(&bytes))?;
                    let keeps = !header("Connection")
                        .is_some_and(|text| text.eq_ignore_ascii_case("close"));
                    break (reply.code.unwrap_or_default(), length, begin, keeps);
                }
                Ok(httparse::Status::Partial) if bytes.len() < MOST_HEAD => {}
                _ => return Err(wrong(&bytes)),
            }
            self.read_on(&mut piece, &mut bytes)?;
        };
        let mut body = bytes.split_off(begin);
        while body.len() < length {
            self.read_on(&mut piece, &mut body)?;
        }
        let is_exact = body.len() == length;
        body.truncate(length);
        Ok(HttpReply {
            status,
            body,
            connection: (keeps && is_exact).then_some(self),
        })
    }

    fn read_on(&mut self, piece: &mut [u8], to: &mut Vec<u8>) -> io::Result<()> {
        let count = self.stream.read(piece);
        let count = count.map_err(|error| self.explained(error))?;
        if count == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        to.extend_from_slice(&piece[..count]);
        Ok(())
    }
}

impl ServerAddress {
    /// The port, if there is one.
    fn port(&self) -> Option<u16> {
        self.authority.rsplit_once(':')?.1.parse().ok()
    }

    /// The host, as certificates name it.
    fn host(&self) -> &str {
        let host = match (self.port(), self.authority.rsplit_once(':')) {
            (Some(_), Some((host, _))) => host,
            _ => &self.authority,
        };
        host.trim_start_matches('[').trim_end_matches(']')
    }
}

fn connect(address: &ServerAddress) -> io::Result<TcpStream> {
    let usual = if address.is_encrypted { 443 } else { 80 };
    let place = (address.host(), address.port().unwrap_or(usual));
    let mut failed = io::Error::new(ErrorKind::NotFound, "the name has no address");
    for address in place.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => {
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.set_write_timeout(Some(PATIENCE))?;
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

#[cfg(all(unix, feature = "tls"))]
fn encrypted(host: &str, socket: TcpStream) -> io::Result<Box<dyn Stream>> {
    let ca = super::CA_FILE.get().map(std::path::PathBuf::as_path);
    let connector = kymo_serve::TlsConnector::read(ca, None).map_err(io::Error::other)?;
    let stream = connector.connect(host, socket).map_err(io::Error::other)?;
    Ok(Box::new(stream))
}

#[cfg(not(all(unix, feature = "tls")))]
fn encrypted(_: &str, _: TcpStream) -> io::Result<Box<dyn Stream>> {
    Err(io::Error::new(
        ErrorKind::Unsupported,
        "this kymo was built without TLS: build it with `--features tls`, or install a package",
    ))
}

fn read_token(path: &Path) -> io::Result<String> {
    let failed = |problem: String| {
        io::Error::new(
            ErrorKind::InvalidInput,
            format!("`{}`: {problem}", path.display()),
        )
    };
    let text = kymo_io::read_small_text(path).map_err(|error| failed(error.to_string()))?;
    // As the server reads the same file: the first token of several.
    let token = text
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty() && !line.starts_with('#'));
    let token = token.filter(|token| token.chars().all(|char| char.is_ascii_graphic()));
    token
        .map(str::to_owned)
        .ok_or_else(|| failed("expected a token on a line".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_named_as_certificates_name_them() {
        for (authority, host, port) in [
            ("h", "h", None),
            ("h:1", "h", Some(1)),
            ("[::1]:1", "::1", Some(1)),
            ("[::1]", "::1", None),
        ] {
            let address = ServerAddress {
                is_encrypted: true,
                authority: authority.to_owned(),
            };
            assert_eq!((address.host(), address.port()), (host, port));
        }
    }
}
