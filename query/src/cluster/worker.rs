//! A worker: it connects to a scheduler with each of its threads, and does the units of work that come.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use datafusion::arrow::ipc::writer::StreamWriter;
use datafusion::common::DataFusionError;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionContext;
use datafusion_proto::bytes::physical_plan_from_bytes_with_extension_codec;
use futures::StreamExt;
use kymo_command::terminal::{Failure, Outcome, Terminal};
use kymo_model::Recording;
use tokio::sync::{RwLock, mpsc};
use tokio::task::{JoinHandle, spawn_blocking};

use super::codec::{Codec, Tables};
use super::fingerprint;
use super::log::{Level, log};
use super::wire::{
    CHUNK, Connection, Fingerprint, Frame, Message, Role, Secret, Task, TaskError, connect,
};
use crate::args;
use crate::errors::is_out_of_order;
use crate::objects;
use crate::opening::Opening;
use crate::session::{runtime, session_config};
use crate::source::Damage;

/// A worker says so often that it is there.
const ALIVE: Duration = Duration::from_secs(1);
/// Maximum number of queries whose recordings stay open.
const MOST_OPEN: usize = 8;
/// Between two tries to reach the scheduler, at most.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Works until it is stopped.
///
/// # Errors
///
/// The token cannot be read, or the scheduler refuses it.
pub(crate) async fn run(args: &args::Worker, terminal: &Terminal) -> Result<Outcome, Failure> {
    let secret = args::secret(args.token_file.as_deref())?;
    let runtime = runtime(args.memory);
    let runtime = runtime.map_err(|error| Failure::Output(std::io::Error::other(error)))?;
    let config = session_config(1, &runtime);
    let context = SessionContext::new_with_config_rt(config, runtime);
    let threads = args.threads.count();
    let worker = Arc::new(Worker {
        name: name(args.name.as_deref()),
        scheduler: args.scheduler.clone(),
        secret,
        context,
        open: Mutex::default(),
        units: RwLock::default(),
    });
    log(
        Level::Info,
        "worker starts",
        &[
            ("worker", &worker.name),
            ("scheduler", &worker.scheduler),
            ("threads", &threads),
        ],
    );
    let mut all = tokio::task::JoinSet::new();
    for thread in 0..threads {
        let worker = Arc::clone(&worker);
        // One of them says what there is to say of the connection.
        all.spawn(async move { worker.thread(thread == 0).await });
    }
    tokio::select! {
        stopped = crate::cluster::scheduler::stopped() => {
            stopped?;
            log(Level::Info, "worker stops", &[("worker", &worker.name)]);
            Ok(Outcome::Good)
        }
        Some(Ok(reason)) = all.join_next() => {
            terminal.error(reason);
            Ok(Outcome::Unreadable)
        }
    }
}

/// What logs call a worker: each process has a name of its own.
fn name(given: Option<&str>) -> String {
    let host = || {
        let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
        Some(name.trim().to_owned()).filter(|name| !name.is_empty())
    };
    let name = given.map(str::to_owned).or_else(host);
    let name = name.unwrap_or_else(|| "worker".to_owned());
    format!("{name}:{}", std::process::id())
}

struct Worker {
    name: String,
    scheduler: String,
    secret: Secret,
    context: SessionContext,
    /// Recordings that are open, the last used ones at the end.
    open: Mutex<VecDeque<Arc<Open>>>,
    /// Each unit has it to read.
    units: RwLock<()>,
}

/// Recordings that are open.
struct Open {
    words: Vec<String>,
    fingerprint: Fingerprint,
    tables: Arc<Tables>,
    /// Where they are.
    paths: Vec<PathBuf>,
    /// Whether a part of them cannot be read as it was.
    is_lost: AtomicBool,
}

/// What a unit brings, piece by piece.
enum Piece {
    Data(Vec<u8>),
    End(Message),
}

impl Worker {
    /// Does units one after another; ends only if the scheduler refuses this worker.
    async fn thread(self: Arc<Self>, is_first: bool) -> String {
        let mut pause = Duration::from_millis(100);
        let mut is_reported = false;
        loop {
            let role = Role::Worker(self.name.clone());
            match connect(&self.scheduler, role, &self.secret).await {
                Ok(connection) => {
                    if is_first && is_reported {
                        let facts: [(_, &dyn std::fmt::Display); 1] =
                            [("scheduler", &self.scheduler)];
                        log(Level::Info, "scheduler is back", &facts);
                    }
                    (pause, is_reported) = (Duration::from_millis(100), false);
                    Arc::clone(&self).serve(connection).await;
                }
                Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                    return format!("{}: {error}", self.scheduler);
                }
                Err(error) => {
                    if is_first && !is_reported {
                        log(
                            Level::Warn,
                            "cannot reach the scheduler, tries again",
                            &[("scheduler", &self.scheduler), ("reason", &error)],
                        );
                    }
                    is_reported = true;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// Does units until the scheduler closes the connection.
    async fn serve(self: Arc<Self>, mut connection: Connection) {
        let mut alive = tokio::time::interval(ALIVE);
        let mut task: Option<Task> = None;
        loop {
            tokio::select! {
                frame = connection.frames.recv() => match (frame, task.take()) {
                    (Some(Ok(Frame::Message(message))), None) => match *message {
                        Message::Task(next) => task = Some(next),
                        _ => return,
                    },
                    (Some(Ok(Frame::Data(plan))), Some(task)) => {
                        let (to, pieces) = mpsc::channel(2);
                        let work = tokio::spawn(Arc::clone(&self).work(task, plan, to));
                        if relay(&mut connection, pieces, Stop(work), &mut alive).await.is_err() {
                            return;
                        }
                    }
                    _ => return,
                },
                _ = alive.tick() => {
                    if connection.sender.message(&Message::Alive).await.is_err() {
                        return;
                    }
                }
            }
        }
    }

    /// Does a unit; what it brings goes to `to`.
    async fn work(self: Arc<Self>, task: Task, plan: Vec<u8>, to: mpsc::Sender<Piece>) {
        let damage = Arc::<Damage>::default();
        let end = match self.rows(&task, &plan, &damage, &to).await {
            Ok(()) => Message::Done {
                damage: damage.take(),
            },
            Err(error) => Message::Failed(error),
        };
        // If nothing receives it, nothing waits for it.
        let _ = to.send(Piece::End(end)).await;
    }

    async fn rows(
        self: &Arc<Self>,
        task: &Task,
        plan: &[u8],
        damage: &Arc<Damage>,
        to: &mpsc::Sender<Piece>,
    ) -> Result<(), TaskError> {
        self.free_storage().await;
        let _unit = self.units.read().await;
        let open = {
            let (worker, task) = (Arc::clone(self), task.clone());
            let opened = spawn_blocking(move || worker.opened(&task)).await;
            opened.map_err(|error| TaskError::Query(error.to_string()))?
        };
        let open = open?;
        let codec = Codec {
            tables: Some((Arc::clone(&open.tables), Arc::clone(damage))),
        };
        let context = self.context.task_ctx();
        let plan = physical_plan_from_bytes_with_extension_codec(plan, &context, &codec);
        let plan = plan.and_then(|plan| objects::unchanged(plan, context.runtime_env().as_ref()));
        let plan = plan.map_err(|error| failure(&error))?;
        let streamed = stream(&plan, context, to).await;
        self.check(&open, damage)?;
        streamed.map_err(|error| failure(&error))
    }

    /// Whether all of a unit could be read. If not, its recordings are opened again for the next one: what could not be
    /// fetched is not asked for twice, and what was cut off from a file stays so.
    fn check(&self, unit: &Arc<Open>, damage: &Damage) -> Result<(), TaskError> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        for path in super::truncated_files() {
            // Other threads may have read the same file.
            for opened in open.iter().chain([unit]) {
                if opened
                    .paths
                    .iter()
                    .any(|recording| path.starts_with(recording))
                {
                    opened.is_lost.store(true, Ordering::Relaxed);
                }
            }
            if unit.is_lost.load(Ordering::Relaxed) {
                damage.unreadable(super::truncated(&path));
            }
        }
        let reason = damage.take_unreadable();
        if reason.is_none() && !unit.is_lost.load(Ordering::Relaxed) {
            return Ok(());
        }
        unit.is_lost.store(true, Ordering::Relaxed);
        open.retain(|opened| !opened.is_lost.load(Ordering::Relaxed));
        let reason = reason.unwrap_or_else(|| "a file was truncated while it was read".to_owned());
        Err(TaskError::Unreadable(reason))
    }

    /// Closes all recordings if what was read of objects fills half of the temporary storage: it is kept as long as they
    /// are open, and all of it together may be more than there is room for.
    async fn free_storage(&self) {
        let is_full = || {
            let used = kymo_io::spool_used();
            used > 0 && kymo_io::spool_limit().is_ok_and(|limit| used > limit / 2)
        };
        if !is_full() {
            return;
        }
        let _all = self.units.write().await;
        // Another thread may have been first.
        if is_full() {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            log(
                Level::Info,
                "recordings closed, temporary storage is half full",
                &[("worker", &self.name), ("recordings", &open.len())],
            );
            open.clear();
        }
    }

    /// The recordings of a unit, which stay open for the next ones.
    fn opened(&self, task: &Task) -> Result<Arc<Open>, TaskError> {
        let known = {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            let is_it =
                |open: &Arc<Open>| open.words == task.words && open.fingerprint == task.fingerprint;
            let known = open.iter().position(is_it).and_then(|at| open.remove(at));
            if let Some(known) = &known {
                open.push_back(Arc::clone(known));
            }
            known
        };
        if let Some(known) = known {
            return Ok(known);
        }
        let terminal = Terminal::collected(false);
        let opening = Opening::parse(&task.words).map_err(TaskError::Unreadable)?;
        let opened = opening.open(1, &terminal).map_err(|failure| {
            terminal.report_failure(&failure);
            let text = terminal.take_collected();
            TaskError::Unreadable(text.trim_end().to_owned())
        })?;
        let source = Arc::new(opened.source);
        let found = fingerprint(&source);
        if found != task.fingerprint {
            let report = terminal.take_collected();
            let size =
                |found: &Fingerprint| format!("{} with {} bytes", found.recordings, found.bytes);
            let (here, there) = (size(&found), size(&task.fingerprint));
            let difference = match here == there {
                true => format!("{here} here and there, with other names or times"),
                false => format!("{here} here, {there} there"),
            };
            return Err(TaskError::Unreadable(format!(
                "the recordings are not those of the scheduler: {difference}{}{}",
                if report.is_empty() { "" } else { "\n" },
                report.trim_end()
            )));
        }
        // As the system names them if they are truncated.
        let real = |recording: &kymo::AnyRecording| {
            let path = recording.path();
            std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf())
        };
        let recordings = source.events.recordings().iter();
        let opened = Arc::new(Open {
            words: task.words.clone(),
            fingerprint: found,
            paths: recordings.map(real).collect(),
            tables: Arc::new(Tables::new(source)),
            is_lost: AtomicBool::new(false),
        });
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        // Two threads may have opened them.
        open.retain(|open| open.words != task.words);
        open.push_back(Arc::clone(&opened));
        while open.len() > MOST_OPEN {
            open.pop_front();
        }
        Ok(opened)
    }
}

/// Stops work when its result is no longer needed.
struct Stop(JoinHandle<()>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Sends what a unit brings, and signs of life meanwhile.
async fn relay(
    connection: &mut Connection,
    mut pieces: mpsc::Receiver<Piece>,
    _work: Stop,
    alive: &mut tokio::time::Interval,
) -> std::io::Result<()> {
    loop {
        tokio::select! {
            piece = pieces.recv() => match piece {
                Some(Piece::Data(data)) => {
                    for chunk in data.chunks(CHUNK) {
                        connection.sender.data(chunk).await?;
                    }
                }
                Some(Piece::End(message)) => return connection.sender.message(&message).await,
                None => {
                    let problem = TaskError::Query("the worker failed at this unit".to_owned());
                    return connection.sender.message(&Message::Failed(problem)).await;
                }
            },
            // Nothing is expected now but the end.
            _ = connection.frames.recv() => return Err(std::io::ErrorKind::ConnectionAborted.into()),
            _ = alive.tick() => connection.sender.message(&Message::Alive).await?,
        }
    }
}

/// Runs a plan of one partition.
async fn stream(
    plan: &Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
    to: &mpsc::Sender<Piece>,
) -> Result<(), DataFusionError> {
    let mut rows = plan.execute(0, context)?;
    let mut writer = StreamWriter::try_new(Vec::new(), &rows.schema())?;
    while let Some(batch) = rows.next().await {
        writer.write(&batch?)?;
        if writer.get_ref().len() >= CHUNK
            && to
                .send(Piece::Data(std::mem::take(writer.get_mut())))
                .await
                .is_err()
        {
            return Ok(());
        }
    }
    let rest = writer.into_inner()?;
    let _ = to.send(Piece::Data(rest)).await;
    Ok(())
}

fn failure(error: &DataFusionError) -> TaskError {
    match is_out_of_order(error) {
        true => TaskError::OutOfOrder,
        false => TaskError::Query(crate::errors::message(error)),
    }
}
