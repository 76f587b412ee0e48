//! One who asks a cluster.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::buffer::Buffer;
use datafusion::arrow::ipc::reader::StreamDecoder;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use kymo_command::terminal::{Failure, Outcome, Terminal};
use tokio::time::timeout;

use super::wire::{Connection, Frame, Message, Role, Secret, connect, unexpected};
use crate::args::Parameter;
use crate::errors::Reported;
use crate::source::{Damage, external};

/// A scheduler that says nothing for so long may be gone.
const SILENCE: Duration = Duration::from_secs(15);

/// A connection to a scheduler, which has recordings open.
pub(crate) struct Client {
    address: String,
    secret: Secret,
    words: Vec<String>,
    color: bool,
    shared: Arc<Shared>,
    pub(crate) damage: Arc<Damage>,
}

#[derive(Default)]
struct Shared {
    /// None while an answer comes, or after one was not waited for.
    connection: Mutex<Option<Connection>>,
    names: Mutex<(Vec<String>, Vec<String>)>,
}

impl Shared {
    fn keep(&self, connection: Connection) {
        let mut place = self
            .connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *place = Some(connection);
    }

    fn take(&self) -> Option<Connection> {
        let mut place = self
            .connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        place.take()
    }
}

impl Client {
    pub(crate) fn new(address: String, secret: Secret, words: Vec<String>, color: bool) -> Self {
        Self {
            address,
            secret,
            words,
            color,
            shared: Arc::default(),
            damage: Arc::default(),
        }
    }

    /// Has the scheduler open the recordings, and shows what it says.
    ///
    /// # Errors
    ///
    /// The scheduler cannot be reached, or nothing can be opened.
    pub(crate) async fn open(&self, terminal: &Terminal) -> Result<Outcome, Failure> {
        let unreachable = |error: std::io::Error| {
            let hint = match error.kind() {
                std::io::ErrorKind::PermissionDenied => "",
                _ => "\nhint: `kymo query scheduler` starts one",
            };
            Failure::Usage(format!(
                "error: cannot ask the scheduler at `{}`: {error}{hint}",
                self.address
            ))
        };
        let mut connection = self.connected().await.map_err(unreachable)?;
        match connection.message().await.map_err(unreachable)? {
            Some(Message::Opened {
                report,
                status,
                names,
                tables,
            }) => {
                terminal.report(report.as_bytes());
                let mut known = self
                    .shared
                    .names
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                *known = (names, tables);
                self.shared.keep(connection);
                Ok(outcome(status))
            }
            Some(Message::Broken { report, status, .. }) => match outcome(status) {
                Outcome::Usage => Err(Failure::Usage(report.trim_end().to_owned())),
                outcome => {
                    terminal.report(report.as_bytes());
                    Err(match outcome {
                        Outcome::Damage => Failure::Refused,
                        _ => Failure::Unreadable,
                    })
                }
            },
            Some(_) => Err(unreachable(unexpected("another message"))),
            None => Err(unreachable(closed())),
        }
    }

    /// A new connection, at which the recordings are being opened.
    async fn connected(&self) -> std::io::Result<Connection> {
        let mut connection = connect(&self.address, Role::Client, &self.secret).await?;
        let open = Message::Open {
            words: self.words.clone(),
            color: self.color,
        };
        connection.sender.message(&open).await?;
        Ok(connection)
    }

    /// Has a statement of a text answered.
    ///
    /// # Errors
    ///
    /// What is wrong with it, or that the scheduler is gone.
    pub(crate) async fn start(
        &self,
        sql: &str,
        statement: usize,
        parameters: &[Parameter],
    ) -> Result<SendableRecordBatchStream> {
        let gone = |error: std::io::Error| {
            DataFusionError::Execution(format!("the scheduler at `{}`: {error}", self.address))
        };
        let mut connection = match self.shared.take() {
            Some(connection) => connection,
            None => {
                // The last answer was not waited for.
                let mut connection = self.connected().await.map_err(gone)?;
                match connection.message().await.map_err(gone)? {
                    Some(Message::Opened { .. }) => connection,
                    Some(Message::Broken { report, status, .. }) => {
                        return Err(external(reported(report, status)));
                    }
                    _ => return Err(gone(closed())),
                }
            }
        };
        let run = Message::Run {
            sql: sql.to_owned(),
            statement,
            parameters: parameters
                .iter()
                .map(|parameter| parameter.text.clone())
                .collect(),
        };
        connection.sender.message(&run).await.map_err(gone)?;
        let mut answer = Incoming {
            connection: Some(connection),
            decoder: StreamDecoder::new(),
            rest: Buffer::from_vec(Vec::<u8>::new()),
            shared: Arc::clone(&self.shared),
            damage: Arc::clone(&self.damage),
            address: self.address.clone(),
            is_silence_reported: false,
        };
        let first = answer.next().await?;
        let Some(schema) = answer.decoder.schema() else {
            return Err(gone(unexpected("an answer without columns")));
        };
        let first = futures::stream::iter(first.map(Ok));
        let rest = futures::stream::try_unfold(answer, |mut answer| async move {
            let batch = answer.next().await?;
            Ok(batch.map(|batch| (batch, answer)))
        });
        let all = futures::StreamExt::chain(first, rest);
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, all)))
    }

    /// What can be completed: names of tables, columns and functions.
    pub(crate) fn names(&self) -> Vec<String> {
        let names = self
            .shared
            .names
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        names.0.clone()
    }

    /// The names of the tables.
    pub(crate) fn tables(&self) -> Vec<String> {
        let names = self
            .shared
            .names
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        names.1.clone()
    }
}

/// An answer that comes. If it is not waited for, the connection is closed, and the work is given up.
struct Incoming {
    /// None if all has come.
    connection: Option<Connection>,
    decoder: StreamDecoder,
    rest: Buffer,
    shared: Arc<Shared>,
    damage: Arc<Damage>,
    address: String,
    is_silence_reported: bool,
}

impl Incoming {
    /// The scheduler says each second that it is there, unless it plans, which may take long.
    fn report_silence(&mut self) {
        if !std::mem::replace(&mut self.is_silence_reported, true) {
            Terminal::new().warning(format_args!(
                "the scheduler at `{}` has said nothing for {} s; Ctrl-C stops waiting",
                self.address,
                SILENCE.as_secs()
            ));
        }
    }

    /// The next rows; `None` if all came.
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            while !self.rest.is_empty() {
                if let Some(batch) = self.decoder.decode(&mut self.rest)? {
                    return Ok(Some(batch));
                }
            }
            let Some(connection) = &mut self.connection else {
                return Ok(None);
            };
            let gone = |error: std::io::Error| {
                DataFusionError::Execution(format!("the scheduler at `{}`: {error}", self.address))
            };
            let frame = match timeout(SILENCE, connection.frames.recv()).await {
                Ok(frame) => frame,
                Err(_) => {
                    self.report_silence();
                    continue;
                }
            };
            match frame {
                Some(Ok(Frame::Data(data))) => self.rest = Buffer::from_vec(data),
                Some(Ok(Frame::Message(message))) => match *message {
                    Message::Finished { damage } => {
                        damage.into_iter().for_each(|text| self.damage.met(text));
                        if let Some(connection) = self.connection.take() {
                            self.shared.keep(connection);
                        }
                    }
                    Message::Broken {
                        report,
                        status,
                        damage,
                    } => {
                        damage.into_iter().for_each(|text| self.damage.met(text));
                        if let Some(connection) = self.connection.take() {
                            self.shared.keep(connection);
                        }
                        return Err(external(reported(report, status)));
                    }
                    Message::Alive => {}
                    _ => return Err(gone(unexpected("another message"))),
                },
                Some(Err(error)) => return Err(gone(error)),
                None => return Err(gone(closed())),
            }
        }
    }
}

fn reported(text: String, status: u8) -> Reported {
    Reported { text, status }
}

fn closed() -> std::io::Error {
    std::io::Error::new(
        std::io::ErrorKind::ConnectionAborted,
        "the connection was closed",
    )
}

fn outcome(status: u8) -> Outcome {
    match status {
        0 => Outcome::Good,
        1 => Outcome::Damage,
        2 => Outcome::Usage,
        _ => Outcome::Unreadable,
    }
}
