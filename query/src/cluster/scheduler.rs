//! The scheduler of a cluster: it plans what clients ask, and has workers read.

use std::io;
use std::net::ToSocketAddrs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use datafusion::arrow::ipc::writer::StreamWriter;
use datafusion::common::{DataFusionError, Result, exec_datafusion_err};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::runtime_env::RuntimeEnv;
use futures::StreamExt;
use kymo_command::terminal::{Failure, Outcome, Terminal};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::spawn_blocking;

use super::log::{Level, log};
use super::metrics::add;
use super::pool::Pool;
use super::remote::Remote;
use super::wire::{CHUNK, Connection, Message, Role, Secret, accept};
use super::{fingerprint, metrics};
use crate::args::{self, Parameter};
use crate::errors::render;
use crate::opening::Opening;
use crate::run::is_of_execution;
use crate::session::{Session, Settings, runtime, statements};

/// Number of units per thread of a worker that a table is read in, so that the last ones end at about the same time.
const UNITS_PER_THREAD: usize = 4;
/// Maximum number of units that a table is read in.
const MOST_UNITS: usize = 4096;
/// A client hears of a long query so often that it goes on.
const ALIVE: Duration = Duration::from_secs(5);

/// Answers until it is stopped.
///
/// # Errors
///
/// An address cannot be listened at, or the token cannot be read.
pub(crate) async fn run(args: &args::Scheduler, terminal: &Terminal) -> Result<Outcome, Failure> {
    let secret = args::secret(args.token_file.as_deref())?;
    let listener = listen(&args.listen).await?;
    let address = listener.local_addr()?;
    if secret.is_empty() && !address.ip().is_loopback() {
        terminal.error(format_args!(
            "`{address}` can be reached from elsewhere, and no token is given"
        ));
        terminal.hint("`--token-file FILE`, with the same token for workers and clients");
        return Ok(Outcome::Usage);
    }
    if args.patience < Duration::from_secs(2) {
        terminal.error("`--patience` has to be 2 s at least, since workers say each second that they are there");
        return Ok(Outcome::Usage);
    }
    let runtime = runtime(args.memory).map_err(|error| Failure::Output(io::Error::other(error)))?;
    let scheduler = Arc::new(Scheduler {
        secret,
        pool: Arc::new(Pool::new(args.patience)),
        threads: args.threads.count(),
        runtime,
        queries: AtomicU64::new(0),
    });
    if let Some(address) = &args.metrics {
        let listener = listen(address).await?;
        let address = listener.local_addr()?;
        log(Level::Info, "metrics", &[("address", &address)]);
        tokio::spawn(metrics::serve(listener, Arc::clone(&scheduler.pool)));
    }
    log(Level::Info, "scheduler listens", &[("address", &address)]);
    let pool = Arc::clone(&scheduler.pool);
    tokio::spawn(async move { pool.watch().await });
    let serve = async {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    tokio::spawn(Arc::clone(&scheduler).serve(stream));
                }
                Err(error) => {
                    log(
                        Level::Error,
                        "cannot take a connection",
                        &[("reason", &error)],
                    );
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    };
    tokio::select! {
        result = stopped() => result?,
        () = serve => {}
    }
    log(Level::Info, "scheduler stops", &[("address", &address)]);
    Ok(Outcome::Good)
}

/// Listens at an address.
async fn listen(address: &str) -> Result<TcpListener, Failure> {
    let wrong =
        |error: io::Error| Failure::Usage(format!("error: cannot listen at `{address}`: {error}"));
    let places: Vec<_> = address.to_socket_addrs().map_err(wrong)?.collect();
    TcpListener::bind(&places[..]).await.map_err(wrong)
}

/// Ends when the process is asked to stop.
///
/// # Errors
///
/// The system does not say so.
pub(super) async fn stopped() -> io::Result<()> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminate = signal(SignalKind::terminate())?;
        tokio::select! {
            result = tokio::signal::ctrl_c() => result,
            _ = terminate.recv() => Ok(()),
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await
}

struct Scheduler {
    secret: Secret,
    pool: Arc<Pool>,
    threads: usize,
    runtime: Arc<RuntimeEnv>,
    /// How many queries there were.
    queries: AtomicU64,
}

/// What a client has open.
struct Opened {
    session: Session,
    remote: Arc<Remote>,
    color: bool,
}

impl Scheduler {
    async fn serve(self: Arc<Self>, stream: TcpStream) {
        let peer = stream
            .peer_addr()
            .map_or_else(|_| "?".to_owned(), |address| address.to_string());
        match accept(stream, &self.secret).await {
            Ok((connection, Role::Worker(name))) => self.pool.employ(connection, &name).await,
            Ok((connection, Role::Client)) => {
                if let Err(error) = self.client(connection).await {
                    log(
                        Level::Info,
                        "client left",
                        &[("address", &peer), ("reason", &error)],
                    );
                }
            }
            Err(error) => {
                add(&self.pool.metrics.refused, 1);
                log(
                    Level::Warn,
                    "connection refused",
                    &[("address", &peer), ("reason", &error)],
                );
            }
        }
    }

    /// Answers a client until it leaves.
    async fn client(&self, mut connection: Connection) -> io::Result<()> {
        let mut opened: Option<Opened> = None;
        while let Some(message) = connection.message().await? {
            match message {
                Message::Open { words, color } => {
                    let answer = match self.open(words, color).await {
                        Ok((new, report, status)) => {
                            let names = new.session.names().await;
                            let tables = new.session.tables();
                            opened = Some(new);
                            Message::Opened {
                                report,
                                status,
                                names,
                                tables,
                            }
                        }
                        Err((report, status)) => Message::Broken {
                            report,
                            status,
                            damage: Vec::new(),
                        },
                    };
                    connection.sender.message(&answer).await?;
                }
                Message::Run {
                    sql,
                    statement,
                    parameters,
                } => {
                    let Some(opened) = &opened else {
                        return Err(super::wire::unexpected("a statement"));
                    };
                    let query = Query {
                        sql: &sql,
                        statement,
                        parameters: &parameters,
                    };
                    self.query(opened, &query, &mut connection).await?;
                }
                _ => return Err(super::wire::unexpected("another message")),
            }
        }
        Ok(())
    }

    /// Opens recordings for a client. An error is complete for people, with an exit status.
    async fn open(
        &self,
        words: Vec<String>,
        color: bool,
    ) -> Result<(Opened, String, u8), (String, u8)> {
        let terminal = Terminal::collected(color);
        let failed = |terminal: &Terminal, failure: &Failure| {
            let outcome = terminal.report_failure(failure);
            (terminal.take_collected(), outcome as u8)
        };
        let threads = self.threads;
        let opening = words.clone();
        let work = move || {
            let opened = match Opening::parse(&opening) {
                Ok(opening) => opening.open(threads, &terminal),
                Err(problem) => Err(Failure::Usage(format!("error: {problem}"))),
            };
            match opened {
                Ok(opened) => Ok((opened, terminal)),
                Err(failure) => Err(failed(&terminal, &failure)),
            }
        };
        let joined = spawn_blocking(work).await;
        let (opened, terminal) = joined.map_err(|error| {
            (
                format!("error: the scheduler failed: {error}\n"),
                Outcome::Unreadable as u8,
            )
        })??;
        let source = Arc::new(opened.source);
        let remote = Arc::new(Remote {
            pool: Arc::clone(&self.pool),
            words,
            fingerprint: fingerprint(&source),
            damage: Arc::clone(&source.damage),
            query: AtomicU64::new(0),
        });
        let settings = Settings {
            threads: self.threads,
            runtime: Arc::clone(&self.runtime),
            remote: Some(Arc::clone(&remote)),
            // Clients write no files of this machine.
            is_read_only: true,
        };
        match Session::new(source, &opened.parquet, &settings).await {
            Ok(session) => {
                let new = Opened {
                    session,
                    remote,
                    color,
                };
                Ok((new, terminal.take_collected(), opened.outcome as u8))
            }
            Err(error) => {
                let text = render(&error, "", color);
                Err((format!("{}\n", text.trim_end()), Outcome::Unreadable as u8))
            }
        }
    }

    /// Answers a statement. An error is the connection's.
    async fn query(
        &self,
        opened: &Opened,
        query: &Query<'_>,
        connection: &mut Connection,
    ) -> io::Result<()> {
        let number = self.queries.fetch_add(1, Ordering::Relaxed) + 1;
        let begun = Instant::now();
        opened.remote.query.store(number, Ordering::Relaxed);
        let threads = self.pool.state().threads;
        let units = (threads * UNITS_PER_THREAD).clamp(UNITS_PER_THREAD, MOST_UNITS);
        let scans = &opened.session.scans;
        scans.shared_units.store(units, Ordering::Relaxed);
        let line = query.sql.split_whitespace().collect::<Vec<_>>().join(" ");
        log(
            Level::Info,
            "query begins",
            &[("query", &number), ("sql", &line)],
        );
        let mut rows = Sent::default();
        let mut result = self.answer(opened, query, connection, &mut rows).await;
        while let Err(End::Failed(error)) = &result
            && rows.batches == 0
            && opened.session.plan_otherwise(error)
        {
            result = self.answer(opened, query, connection, &mut rows).await;
        }
        opened.session.plan_as_usual();
        let seconds = begun.elapsed().as_secs_f64();
        let metrics = &self.pool.metrics;
        add(&metrics.queries, 1);
        add(&metrics.query_micros, (seconds * 1e6) as u64);
        let damage = &opened.session.source.damage;
        if let (Some(reason), true) = (damage.take_unreadable(), result.is_ok()) {
            // Rows may be missing.
            result = Err(End::Failed(DataFusionError::Execution(reason)));
        }
        // Of what this process reads itself.
        for path in super::truncated_files() {
            damage.met(super::truncated(&path));
        }
        let damage = damage.take();
        let seconds = format!("{seconds:.3}");
        match result {
            Ok(()) => {
                log(
                    Level::Info,
                    "query ends",
                    &[
                        ("query", &number),
                        ("rows", &rows.rows),
                        ("seconds", &seconds),
                    ],
                );
                connection
                    .sender
                    .message(&Message::Finished { damage })
                    .await
            }
            Err(End::Failed(error)) => {
                add(&metrics.failed_queries, 1);
                log(
                    Level::Warn,
                    "query failed",
                    &[
                        ("query", &number),
                        ("seconds", &seconds),
                        ("reason", &error.strip_backtrace()),
                    ],
                );
                let status = match rows.batches > 0 || is_of_execution(&error) {
                    true => Outcome::Damage,
                    false => Outcome::Usage,
                };
                let broken = Message::Broken {
                    report: render(&error, query.sql, opened.color),
                    status: status as u8,
                    damage,
                };
                connection.sender.message(&broken).await
            }
            Err(End::Gone(error)) => {
                add(&metrics.failed_queries, 1);
                log(
                    Level::Info,
                    "query given up",
                    &[
                        ("query", &number),
                        ("seconds", &seconds),
                        ("reason", &error),
                    ],
                );
                Err(error)
            }
        }
    }

    async fn answer(
        &self,
        opened: &Opened,
        query: &Query<'_>,
        connection: &mut Connection,
        sent: &mut Sent,
    ) -> Result<(), End> {
        let mut alive = tokio::time::interval(ALIVE);
        let start = query.start(&opened.session);
        tokio::pin!(start);
        let mut rows = loop {
            tokio::select! {
                rows = &mut start => break rows?,
                gone = connection.frames.recv() => return Err(gone_of(gone)),
                _ = alive.tick() => connection.sender.message(&Message::Alive).await?,
            }
        };
        let mut writer =
            StreamWriter::try_new(Vec::new(), &rows.schema()).map_err(DataFusionError::from)?;
        // The columns are known before there are rows. A second plan has the same.
        let head = std::mem::take(writer.get_mut());
        if !std::mem::replace(&mut sent.has_head, true) {
            connection.sender.data(&head).await?;
        }
        loop {
            let batch = tokio::select! {
                batch = rows.next() => batch,
                gone = connection.frames.recv() => return Err(gone_of(gone)),
                _ = alive.tick() => {
                    connection.sender.message(&Message::Alive).await?;
                    continue;
                }
            };
            let Some(batch) = batch else {
                break;
            };
            let batch = batch?;
            writer.write(&batch).map_err(DataFusionError::from)?;
            sent.rows += batch.num_rows() as u64;
            sent.batches += 1;
            for chunk in std::mem::take(writer.get_mut()).chunks(CHUNK) {
                connection.sender.data(chunk).await?;
            }
        }
        let rest = writer.into_inner().map_err(DataFusionError::from)?;
        Ok(connection.sender.data(&rest).await?)
    }
}

/// What was sent to a client.
#[derive(Default)]
struct Sent {
    has_head: bool,
    rows: u64,
    batches: u64,
}

/// Why an answer ended early.
enum End {
    Failed(DataFusionError),
    /// The client is gone.
    Gone(io::Error),
}

impl From<DataFusionError> for End {
    fn from(error: DataFusionError) -> Self {
        Self::Failed(error)
    }
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> Self {
        Self::Gone(error)
    }
}

fn gone_of(what: Option<io::Result<super::wire::Frame>>) -> End {
    End::Gone(match what {
        Some(Err(error)) => error,
        Some(Ok(_)) => super::wire::unexpected("another message"),
        None => io::Error::new(io::ErrorKind::ConnectionAborted, "the client is gone"),
    })
}

/// A statement of a text.
struct Query<'a> {
    sql: &'a str,
    statement: usize,
    parameters: &'a [String],
}

impl Query<'_> {
    async fn start(&self, session: &Session) -> Result<SendableRecordBatchStream> {
        let mut statements = statements(self.sql)?;
        let statement = statements.remove(self.statement);
        let statement = statement.ok_or_else(|| {
            exec_datafusion_err!("no statement {} in the text", self.statement + 1)
        })?;
        let parameters = self.parameters.iter().map(|text| text.parse::<Parameter>());
        let parameters = parameters.collect::<Result<Vec<_>, _>>();
        let parameters = parameters.map_err(DataFusionError::Execution)?;
        session.start(statement, &parameters).await
    }
}
