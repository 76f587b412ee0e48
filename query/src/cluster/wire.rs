//! What the nodes of a cluster say to each other.
//!
//! A connection carries frames: the length of the content (4 bytes, little endian), a byte that says what it is, and the
//! content, which is a [`Message`] as JSON or bytes of a plan or of an Arrow IPC stream. Before anything else both sides
//! prove that they know the secret of the cluster, without sending it.

use std::io;
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;
use tokio::time::timeout;

/// Nodes work together only if they speak the same version.
const PROTOCOL: &str = concat!("kymo-query ", env!("CARGO_PKG_VERSION"), " protocol 1");
/// No frame is longer.
const LONGEST: usize = 64 << 20;
/// No frame of one who is not known yet is longer.
const LONGEST_OF_STRANGERS: usize = 4 << 10;
/// How many bytes of an answer a frame has.
pub(crate) const CHUNK: usize = 1 << 20;
/// A node has so long to prove that it knows the secret.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// What the nodes of a cluster share.
#[derive(Clone, Default)]
pub(crate) struct Secret(Vec<u8>);

impl Secret {
    /// The content of a file without the white space around it, or nothing.
    pub(crate) fn new(text: &str) -> Self {
        Self(text.trim().as_bytes().to_vec())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn mac(&self, side: &str, nonces: [Nonce; 2]) -> Hmac<Sha256> {
        let mut mac = Hmac::new_from_slice(&self.0).expect("secrets of any length are keys");
        mac.update(side.as_bytes());
        nonces.iter().for_each(|nonce| mac.update(nonce));
        mac
    }

    fn proof(&self, side: &str, nonces: [Nonce; 2]) -> Vec<u8> {
        self.mac(side, nonces).finalize().into_bytes().to_vec()
    }

    fn is_proof(&self, side: &str, nonces: [Nonce; 2], proof: &[u8]) -> bool {
        self.mac(side, nonces).verify_slice(proof).is_ok()
    }
}

type Nonce = [u8; 16];

/// Who connects to a scheduler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Role {
    /// A thread of a worker, which has a name.
    Worker(String),
    /// One who asks.
    Client,
}

/// What is said.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Message {
    /// The scheduler's first: what is to be proved.
    Challenge { protocol: String, nonce: Nonce },
    /// The answer to it.
    Hello {
        protocol: String,
        role: Role,
        nonce: Nonce,
        proof: Vec<u8>,
    },
    /// The scheduler knows the secret, too.
    Welcome { proof: Vec<u8> },
    /// The scheduler does not work with this node.
    Refused(String),
    /// A unit of work; its plan follows.
    Task(Task),
    /// The sender is there, and has nothing else to say yet.
    Alive,
    /// All rows of the unit were sent.
    Done { damage: Vec<String> },
    /// The unit cannot be done.
    Failed(TaskError),
    /// A client opens recordings: the options and the paths.
    Open { words: Vec<String>, color: bool },
    /// They are open; what there is to say of it, for standard error, and the exit status so far.
    Opened {
        report: String,
        status: u8,
        names: Vec<String>,
        tables: Vec<String>,
    },
    /// A client asks: one of the statements of a text.
    Run {
        sql: String,
        statement: usize,
        parameters: Vec<String>,
    },
    /// All rows were sent.
    Finished { damage: Vec<String> },
    /// No more rows follow; `report` is a complete message for users.
    Broken {
        report: String,
        status: u8,
        damage: Vec<String>,
    },
}

/// A unit of work.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Task {
    /// The number of the query, for logs.
    pub(crate) query: u64,
    /// The number of the unit among those of a part of the query, for logs.
    pub(crate) unit: usize,
    /// How the recordings are opened: options and paths.
    pub(crate) words: Vec<String>,
    /// What the recordings have to be.
    pub(crate) fingerprint: Fingerprint,
}

/// Identifies the recordings that a query was planned for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fingerprint {
    pub(crate) recordings: usize,
    pub(crate) bytes: u64,
    pub(crate) hash: [u8; 16],
}

/// Why a unit was not done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum TaskError {
    /// The recordings cannot be read here; they may be elsewhere.
    Unreadable(String),
    /// Rows are not in order of time.
    OutOfOrder,
    /// It fails everywhere.
    Query(String),
}

/// What a connection carries.
#[derive(Debug)]
pub(crate) enum Frame {
    Message(Box<Message>),
    Data(Vec<u8>),
}

/// A connection to a node that knows the secret.
pub(crate) struct Connection {
    /// Frames as they come; the end if the other side is gone.
    pub(crate) frames: mpsc::Receiver<io::Result<Frame>>,
    pub(crate) sender: Sender,
    reader: tokio::task::JoinHandle<()>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl Connection {
    fn new(mut reader: Reader, sender: Sender) -> Self {
        let (to, frames) = mpsc::channel(4);
        let reader = tokio::spawn(async move {
            loop {
                let frame = match reader.frame(LONGEST).await {
                    Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return,
                    frame => frame,
                };
                let is_error = frame.is_err();
                if to.send(frame).await.is_err() || is_error {
                    return;
                }
            }
        });
        Self {
            frames,
            sender,
            reader,
        }
    }

    /// The next message; `None` if the other side is gone.
    ///
    /// # Errors
    ///
    /// What hinders reading, and something else than a message.
    pub(crate) async fn message(&mut self) -> io::Result<Option<Message>> {
        match self.frames.recv().await {
            Some(Ok(Frame::Message(message))) => Ok(Some(*message)),
            Some(Ok(Frame::Data(_))) => Err(unexpected("data")),
            Some(Err(error)) => Err(error),
            None => Ok(None),
        }
    }
}

struct Reader(BufReader<OwnedReadHalf>);

impl Reader {
    async fn frame(&mut self, longest: usize) -> io::Result<Frame> {
        let length = self.0.read_u32_le().await? as usize;
        let kind = self.0.read_u8().await?;
        if length > longest {
            let problem = format!("a frame has {length} bytes, more than {longest}");
            return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
        }
        // Memory grows with what comes, not with what is announced.
        let mut content = Vec::new();
        let mut rest = (&mut self.0).take(length as u64);
        rest.read_to_end(&mut content).await?;
        if content.len() < length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        match kind {
            0 => Ok(Frame::Message(serde_json::from_slice(&content)?)),
            1 => Ok(Frame::Data(content)),
            kind => Err(unexpected(&format!("a frame of kind {kind}"))),
        }
    }

    async fn message(&mut self) -> io::Result<Message> {
        match self.frame(LONGEST_OF_STRANGERS).await? {
            Frame::Message(message) => Ok(*message),
            Frame::Data(_) => Err(unexpected("data")),
        }
    }
}

/// Sends frames.
pub(crate) struct Sender(OwnedWriteHalf);

impl Sender {
    /// # Errors
    ///
    /// The other side is gone.
    pub(crate) async fn message(&mut self, message: &Message) -> io::Result<()> {
        self.frame(0, &serde_json::to_vec(message)?).await
    }

    /// # Errors
    ///
    /// The other side is gone.
    pub(crate) async fn data(&mut self, data: &[u8]) -> io::Result<()> {
        self.frame(1, data).await
    }

    async fn frame(&mut self, kind: u8, content: &[u8]) -> io::Result<()> {
        if content.len() > LONGEST {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("a message of {} bytes is too long", content.len()),
            ));
        }
        let [a, b, c, d] = (content.len() as u32).to_le_bytes();
        self.0.write_all(&[a, b, c, d, kind]).await?;
        self.0.write_all(content).await?;
        self.0.flush().await
    }
}

/// An error that is the other side's.
pub(crate) fn unexpected(what: &str) -> io::Error {
    let problem = format!("{what} came where nothing like it is expected");
    io::Error::new(io::ErrorKind::InvalidData, problem)
}

fn refused(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, reason)
}

fn split(stream: TcpStream) -> io::Result<(Reader, Sender)> {
    stream.set_nodelay(true)?;
    let (reader, writer) = stream.into_split();
    Ok((Reader(BufReader::new(reader)), Sender(writer)))
}

async fn in_time<T>(work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    match timeout(HANDSHAKE, work).await {
        Ok(result) => result,
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// Takes a connection at the scheduler.
///
/// # Errors
///
/// The other side does not know the secret or is of another version, or is gone.
pub(crate) async fn accept(stream: TcpStream, secret: &Secret) -> io::Result<(Connection, Role)> {
    let handshake = async {
        let (mut reader, mut sender) = split(stream)?;
        let own: Nonce = kymo_io::random()?;
        let challenge = Message::Challenge {
            protocol: PROTOCOL.to_owned(),
            nonce: own,
        };
        sender.message(&challenge).await?;
        let Message::Hello {
            protocol,
            role,
            nonce,
            proof,
        } = reader.message().await?
        else {
            return Err(unexpected("another message"));
        };
        let nonces = [own, nonce];
        let reason = if protocol != PROTOCOL {
            Some(format!("the scheduler is `{PROTOCOL}`, not `{protocol}`"))
        } else if !secret.is_proof("node", nonces, &proof) {
            Some("the token is not that of the scheduler".to_owned())
        } else {
            None
        };
        if let Some(reason) = reason {
            sender.message(&Message::Refused(reason.clone())).await?;
            return Err(refused(reason));
        }
        let proof = secret.proof("scheduler", nonces);
        sender.message(&Message::Welcome { proof }).await?;
        Ok((reader, sender, role))
    };
    let (reader, sender, role) = in_time(handshake).await?;
    Ok((Connection::new(reader, sender), role))
}

/// Connects to a scheduler.
///
/// # Errors
///
/// Nothing listens there, or the scheduler does not know the secret or has another version.
pub(crate) async fn connect(address: &str, role: Role, secret: &Secret) -> io::Result<Connection> {
    let handshake = async {
        let (mut reader, mut sender) = split(TcpStream::connect(address).await?)?;
        let Message::Challenge { protocol, nonce } = reader.message().await? else {
            return Err(unexpected("another message"));
        };
        if protocol != PROTOCOL {
            let reason = format!("the scheduler is `{protocol}`, this is `{PROTOCOL}`");
            return Err(refused(reason));
        }
        let own: Nonce = kymo_io::random()?;
        let nonces = [nonce, own];
        let hello = Message::Hello {
            protocol: PROTOCOL.to_owned(),
            role,
            nonce: own,
            proof: secret.proof("node", nonces),
        };
        sender.message(&hello).await?;
        match reader.message().await? {
            Message::Welcome { proof } if secret.is_proof("scheduler", nonces, &proof) => {
                Ok((reader, sender))
            }
            Message::Welcome { .. } => Err(refused("the scheduler has another token".to_owned())),
            Message::Refused(reason) => Err(refused(reason)),
            _ => Err(unexpected("another message")),
        }
    };
    let (reader, sender) = in_time(handshake).await?;
    Ok(Connection::new(reader, sender))
}
