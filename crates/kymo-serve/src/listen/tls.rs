//! TLS, by rustls: connections that come, and those to servers.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, StreamOwned,
};

use crate::config::TlsFiles;

/// Where systems have the certificates that programs trust.
const SYSTEM: [&str; 3] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
];

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let shown = path.display();
    let wrong = |error: pem::Error| format!("`{shown}`: {}", pem_problem(&error));
    let read = CertificateDer::pem_file_iter(path).map_err(wrong)?;
    let all: Vec<_> = read.collect::<Result<_, _>>().map_err(wrong)?;
    match all.is_empty() {
        true => Err(format!("`{shown}` has no certificates in PEM")),
        false => Ok(all),
    }
}

fn pem_problem(error: &pem::Error) -> String {
    match error {
        pem::Error::Io(error) => kymo_io::reason(error),
        other => other.to_string(),
    }
}

fn key(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    let read = PrivateKeyDer::from_pem_file(path);
    read.map_err(|error| match error {
        pem::Error::NoItemsFound => format!("`{}` has no private key in PEM", path.display()),
        error => format!("`{}`: {}", path.display(), pem_problem(&error)),
    })
}

fn roots(path: &Path) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(certificates(path)?);
    match added {
        0 => Err(format!(
            "`{}` has no certificates that can be used",
            path.display()
        )),
        _ => Ok(roots),
    }
}

/// Has connections that come encrypted.
#[derive(Clone)]
pub(crate) struct Acceptor(Arc<ServerConfig>);

impl fmt::Debug for Acceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acceptor").finish_non_exhaustive()
    }
}

impl Acceptor {
    /// Reads certificates and the key.
    ///
    /// # Errors
    ///
    /// Files that cannot be read, or do not belong together, as a message.
    pub(crate) fn read(files: &TlsFiles) -> Result<Self, String> {
        let (own, key) = (certificates(&files.certificate)?, key(&files.key)?);
        let builder = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let builder = match &files.client_ca {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let roots = Arc::new(roots(path)?);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider());
                let verifier = verifier.build();
                let verifier =
                    verifier.map_err(|error| format!("`{}`: {error}", path.display()))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let config = builder.with_single_cert(own, key).map_err(|error| {
            format!(
                "`{}` and `{}`: {error}",
                files.certificate.display(),
                files.key.display()
            )
        })?;
        Ok(Self(Arc::new(config)))
    }

    /// Has a connection encrypted. The handshake is done when it is read or written first.
    pub(crate) fn accept(&self, stream: TcpStream) -> io::Result<TlsStream> {
        let connection = ServerConnection::new(Arc::clone(&self.0)).map_err(io::Error::other)?;
        let below = Below {
            socket: stream,
            end: None,
        };
        Ok(TlsStream(StreamOwned::new(connection, below)))
    }
}

/// A connection that is encrypted.
pub(crate) struct TlsStream(StreamOwned<ServerConnection, Below>);

/// What is below the encryption. Bytes that can be decrypted together must come together in the time that a reader
/// waits: otherwise each of them would begin it again.
struct Below {
    socket: TcpStream,
    end: Option<Instant>,
}

impl Read for Below {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.end {
            Some(end) if Instant::now() >= end => Err(io::ErrorKind::TimedOut.into()),
            _ => self.socket.read(buffer),
        }
    }
}

impl Write for Below {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

impl fmt::Debug for TlsStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TlsStream")
            .field(&self.0.sock.socket)
            .finish()
    }
}

impl TlsStream {
    /// What is below the encryption.
    pub(crate) fn socket(&self) -> &TcpStream {
        &self.0.sock.socket
    }

    /// Says that nothing more is sent. Nothing is waited for.
    pub(super) fn end_writing(&mut self) {
        self.0.conn.send_close_notify();
        while self.0.conn.wants_write()
            && self
                .0
                .conn
                .write_tls(&mut self.0.sock)
                .is_ok_and(|it| it > 0)
        {}
    }
}

impl Read for TlsStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let patience = self.socket().read_timeout()?;
        self.0.sock.end = patience.map(|patience| Instant::now() + patience);
        match self.0.read(buffer) {
            // Most clients end connections without saying so first, and what has come of lines was whole.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(0),
            read => read,
        }
    }
}

impl Write for TlsStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.0.write(bytes)?;
        // What it keeps would be sent with the next bytes only.
        self.0.flush()?;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Drop for TlsStream {
    fn drop(&mut self) {
        // Nothing is read: one whose handshake has failed, or is not done, would be waited for. Who is gone needs no end.
        self.end_writing();
    }
}

/// Encrypts connections to servers.
#[derive(Clone)]
pub struct Connector(Arc<ClientConfig>);

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").finish_non_exhaustive()
    }
}

impl Connector {
    /// Trusts the certificates of a file, or those that the system trusts, and shows a certificate of its own if it has
    /// one.
    ///
    /// # Errors
    ///
    /// Files that cannot be read, as a message.
    pub fn read(ca: Option<&Path>, own: Option<(&Path, &Path)>) -> Result<Self, String> {
        let roots = match ca {
            Some(path) => roots(path)?,
            None => {
                let mut there = SYSTEM.iter().map(Path::new).filter(|it| it.exists());
                let path = there.next().ok_or(
                    "this system has no certificates that are trusted: set `ca`, or install ca-certificates",
                )?;
                roots(path)?
            }
        };
        let builder = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots);
        let config = match own {
            None => builder.with_no_client_auth(),
            Some((certificate, own_key)) => builder
                .with_client_auth_cert(certificates(certificate)?, key(own_key)?)
                .map_err(|error| format!("`{}`: {error}", certificate.display()))?,
        };
        Ok(Self(Arc::new(config)))
    }

    /// Encrypts a connection to a host, whose certificate must have its name. The handshake is done when it is read or
    /// written first.
    ///
    /// # Errors
    ///
    /// The host is not a name or address, as a message.
    pub fn connect(
        &self,
        host: &str,
        stream: TcpStream,
    ) -> Result<StreamOwned<ClientConnection, TcpStream>, String> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| format!("`{host}` is not a name that certificates have"))?;
        let connection = ClientConnection::new(Arc::clone(&self.0), name);
        let connection = connection.map_err(|error| error.to_string())?;
        Ok(StreamOwned::new(connection, stream))
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::path::PathBuf;

    use super::*;

    /// Certificates for `localhost` until 2126, made by `tests/data/tls/make.sh`.
    fn data(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/data/tls")
            .join(name)
    }

    fn files(client_ca: bool) -> TlsFiles {
        TlsFiles {
            certificate: data("server.pem"),
            key: data("server.key"),
            client_ca: client_ca.then(|| data("ca.pem")),
        }
    }

    /// What a client gets back that sends a text.
    fn echo(acceptor: Acceptor, connector: &Connector) -> io::Result<String> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let server = std::thread::spawn(move || -> io::Result<()> {
            let mut stream = acceptor.accept(listener.accept()?.0)?;
            let mut text = [0; 5];
            stream.read_exact(&mut text)?;
            stream.write_all(&text)
        });
        let stream = TcpStream::connect(address)?;
        let mut stream = connector.connect("localhost", stream).unwrap();
        let talked = stream.write_all(b"hello").and_then(|()| {
            let mut text = String::new();
            stream.read_to_string(&mut text)?;
            Ok(text)
        });
        // A server that waits for more does not wait for ever.
        drop(stream);
        let served = server.join().unwrap();
        let text = talked?;
        served?;
        Ok(text)
    }

    #[test]
    fn both_sides_show_who_they_are() {
        let ca = data("ca.pem");
        let (certificate, key) = (data("client.pem"), data("client.key"));
        let nobody = Connector::read(Some(&ca), None).unwrap();
        let somebody = Connector::read(Some(&ca), Some((&certificate, &key))).unwrap();
        let open = Acceptor::read(&files(false)).unwrap();
        let asks = Acceptor::read(&files(true)).unwrap();
        assert_eq!(echo(open.clone(), &nobody).unwrap(), "hello");
        assert_eq!(echo(asks.clone(), &somebody).unwrap(), "hello");
        assert!(
            echo(asks, &nobody).is_err(),
            "a client without a certificate"
        );
        let stranger = Connector::read(Some(&data("other.pem")), None).unwrap();
        assert!(echo(open, &stranger).is_err(), "a server that is not known");
    }

    /// Whoever speaks something else is not waited for.
    #[test]
    fn what_is_not_tls_ends_at_once() {
        let acceptor = Acceptor::read(&files(false)).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let server = std::thread::spawn(move || {
            let mut stream = acceptor.accept(listener.accept().unwrap().0).unwrap();
            stream.read(&mut [0; 100]).unwrap_err().kind()
        });
        client.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).unwrap();
        assert!(matches!(answer[..], [0x15, 3, ..]), "an alert: {answer:?}");
        assert_eq!(server.join().unwrap(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn files_that_do_not_fit_are_named() {
        let mut wrong = files(true);
        wrong.key = data("client.key");
        let problem = Acceptor::read(&wrong).unwrap_err();
        assert!(problem.contains("client.key"), "{problem}");
        wrong.key = data("server.pem");
        let problem = Acceptor::read(&wrong).unwrap_err();
        assert!(problem.contains("has no private key in PEM"), "{problem}");
        wrong.certificate = data("server.key");
        let problem = Acceptor::read(&wrong).unwrap_err();
        assert!(problem.contains("has no certificates in PEM"), "{problem}");
        wrong.certificate = data("none.pem");
        let problem = Acceptor::read(&wrong).unwrap_err();
        assert!(problem.contains("none.pem`: No such file"), "{problem}");
    }
}
