//! Units of work that wait, and the workers that do them.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use datafusion::common::{DataFusionError, Result};
use datafusion::execution::runtime_env::RuntimeEnv;
use tokio::sync::{Notify, oneshot};
use tokio::time::timeout;

use super::answer::Answer;
use super::log::{Level, log};
use super::metrics::{Metrics, add};
use super::wire::{Connection, Frame, Message, Task, TaskError};
use crate::rows::OutOfOrder;
use crate::source::external;

/// A unit that was lost so often fails: it may be what ends its workers.
const MOST_TRIES: usize = 4;

/// Units of work and workers.
pub(super) struct Pool {
    queue: Mutex<Queue>,
    /// Something changed that those who wait for work or for its end care about.
    changed: Notify,
    /// A worker that says nothing for so long is lost; units wait so long for a first worker.
    patience: Duration,
    pub(super) metrics: Metrics,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Pending>,
    /// By query, how many of its units are being done.
    running: HashMap<u64, usize>,
    /// By name, how many threads of a worker are connected.
    workers: BTreeMap<String, usize>,
    /// Since when there is no worker.
    alone_since: Option<Instant>,
}

/// A unit of work that is not done.
struct Pending {
    task: Task,
    plan: Vec<u8>,
    runtime: Arc<RuntimeEnv>,
    /// Why it was not done before.
    tries: Vec<String>,
    /// Workers that cannot do it.
    failed_on: Vec<String>,
    answer: oneshot::Sender<Result<Answer>>,
}

/// How many there are.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct State {
    pub(super) workers: usize,
    pub(super) threads: usize,
    pub(super) waiting: usize,
    pub(super) running: usize,
}

/// What became of a unit at a worker.
enum End {
    Done(Answer),
    Failed(TaskError),
    /// The answer cannot be kept.
    Broken(DataFusionError),
    /// The worker is gone.
    Lost(String),
    /// Nothing waits for the answer.
    GivenUp,
}

impl Pool {
    pub(super) fn new(patience: Duration) -> Self {
        let queue = Queue {
            alone_since: Some(Instant::now()),
            ..Queue::default()
        };
        Self {
            queue: Mutex::new(queue),
            changed: Notify::new(),
            patience,
            metrics: Metrics::default(),
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn state(&self) -> State {
        let queue = self.queue();
        State {
            workers: queue.workers.len(),
            threads: queue.workers.values().sum(),
            waiting: queue.waiting.len(),
            running: queue.running.values().sum(),
        }
    }

    /// Gives a unit to the next worker that has nothing else to do.
    pub(super) fn submit(
        &self,
        task: Task,
        plan: Vec<u8>,
        runtime: Arc<RuntimeEnv>,
    ) -> oneshot::Receiver<Result<Answer>> {
        let (answer, receiver) = oneshot::channel();
        self.queue().waiting.push_back(Pending {
            task,
            plan,
            runtime,
            tries: Vec::new(),
            failed_on: Vec::new(),
            answer,
        });
        self.changed.notify_waiters();
        receiver
    }

    /// The next unit for a worker: of the query of which the fewest are being done.
    async fn next(&self, worker: &str) -> Pending {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if let Some(unit) = self.queue().next(worker) {
                return unit;
            }
            changed.await;
        }
    }

    /// Has a thread of a worker do units until it is gone.
    pub(super) async fn employ(&self, mut connection: Connection, worker: &str) {
        let threads = {
            let mut queue = self.queue();
            queue.alone_since = None;
            let threads = queue.workers.entry(worker.to_owned()).or_default();
            *threads += 1;
            *threads
        };
        if threads == 1 {
            log(Level::Info, "worker joined", &[("worker", &worker)]);
        }
        self.changed.notify_waiters();
        let reason = self.work(&mut connection, worker).await;
        let is_last = {
            let mut queue = self.queue();
            let left = queue.workers.get_mut(worker).map_or(0, |threads| {
                *threads -= 1;
                *threads
            });
            if left == 0 {
                queue.workers.remove(worker);
            }
            if queue.workers.is_empty() {
                queue.alone_since = Some(Instant::now());
            }
            left == 0
        };
        if let Some(reason) = reason.filter(|_| is_last) {
            let facts: [(_, &dyn std::fmt::Display); 2] =
                [("worker", &worker), ("reason", &reason)];
            log(Level::Warn, "worker left", &facts);
        }
        self.give_up_hopeless();
        self.changed.notify_waiters();
    }

    /// Why a worker's thread is gone; nothing if it was stopped from here.
    async fn work(&self, connection: &mut Connection, worker: &str) -> Option<String> {
        loop {
            let mut unit = tokio::select! {
                unit = self.next(worker) => unit,
                reason = self.idle(connection) => return Some(reason),
            };
            let query = unit.task.query;
            let end = match self.sent(connection, &unit).await {
                Ok(()) => self.answered(connection, &mut unit).await,
                Err(error) => End::Lost(error.to_string()),
            };
            let reason = match end {
                End::Done(answer) => {
                    add(&self.metrics.units_done, 1);
                    add(&self.metrics.answer_bytes, answer.bytes);
                    if !unit.tries.is_empty() {
                        let facts: [(_, &dyn std::fmt::Display); 3] = [
                            ("query", &query),
                            ("unit", &unit.task.unit),
                            ("worker", &worker),
                        ];
                        log(Level::Info, "lost unit done", &facts);
                    }
                    // Whoever waits no more does not need it.
                    let _ = unit.answer.send(Ok(answer));
                    None
                }
                End::Failed(TaskError::Unreadable(reason)) => {
                    unit.failed_on.push(worker.to_owned());
                    self.again(unit, worker, &reason);
                    None
                }
                End::Failed(TaskError::OutOfOrder) => {
                    let _ = unit.answer.send(Err(external(OutOfOrder)));
                    None
                }
                End::Failed(TaskError::Query(reason)) => {
                    self.fail(unit, DataFusionError::Execution(reason));
                    None
                }
                End::Broken(error) => {
                    self.fail(unit, error);
                    Some(None)
                }
                End::Lost(reason) => {
                    self.again(unit, worker, &reason);
                    Some(Some(reason))
                }
                // The connection is closed, which stops the work.
                End::GivenUp => Some(None),
            };
            let mut queue = self.queue();
            if let Some(running) = queue.running.get_mut(&query) {
                *running -= 1;
                if *running == 0 {
                    queue.running.remove(&query);
                }
            }
            drop(queue);
            if let Some(reason) = reason {
                return reason;
            }
        }
    }

    /// Ends with the reason why a worker that has nothing to do is gone.
    async fn idle(&self, connection: &mut Connection) -> String {
        loop {
            match timeout(self.patience, connection.frames.recv()).await {
                Ok(Some(Ok(Frame::Message(message)))) if matches!(*message, Message::Alive) => {}
                Ok(Some(Ok(_))) => return "it sent something unexpected".to_owned(),
                Ok(Some(Err(error))) => return error.to_string(),
                Ok(None) => return "the connection was closed".to_owned(),
                Err(_) => return self.silence(),
            }
        }
    }

    fn silence(&self) -> String {
        format!("it said nothing for {} s", self.patience.as_secs())
    }

    async fn sent(&self, connection: &mut Connection, unit: &Pending) -> io::Result<()> {
        let send = async {
            let task = Message::Task(unit.task.clone());
            connection.sender.message(&task).await?;
            connection.sender.data(&unit.plan).await
        };
        match timeout(self.patience, send).await {
            Ok(result) => result,
            Err(_) => Err(io::Error::other(self.silence())),
        }
    }

    /// Waits for the complete answer to a unit.
    async fn answered(&self, connection: &mut Connection, unit: &mut Pending) -> End {
        let mut answer = Answer::new(&unit.runtime);
        loop {
            let frame = tokio::select! {
                frame = timeout(self.patience, connection.frames.recv()) => frame,
                () = unit.answer.closed() => return End::GivenUp,
            };
            match frame {
                Ok(Some(Ok(Frame::Data(data)))) => {
                    // It may have to be written to a file.
                    if let Err(error) = tokio::task::block_in_place(|| answer.add(&data)) {
                        return End::Broken(error);
                    }
                }
                Ok(Some(Ok(Frame::Message(message)))) => match *message {
                    Message::Alive => {}
                    Message::Done { damage } => {
                        answer.damage = damage;
                        return End::Done(answer);
                    }
                    Message::Failed(error) => return End::Failed(error),
                    _ => return End::Lost("it sent something unexpected".to_owned()),
                },
                Ok(Some(Err(error))) => return End::Lost(error.to_string()),
                Ok(None) => return End::Lost("the connection was closed".to_owned()),
                Err(_) => return End::Lost(self.silence()),
            }
        }
    }

    /// Puts a unit back that was not done.
    fn again(&self, mut unit: Pending, worker: &str, reason: &str) {
        add(&self.metrics.units_lost, 1);
        unit.tries.push(format!("worker {worker}: {reason}"));
        let tries = unit.tries.len();
        log(
            Level::Warn,
            "unit lost, is done again",
            &[
                ("query", &unit.task.query),
                ("unit", &unit.task.unit),
                ("worker", &worker),
                ("tries", &tries),
                ("reason", &reason),
            ],
        );
        if tries >= MOST_TRIES {
            let error = unit.error("was lost too often");
            return self.fail(unit, error);
        }
        self.queue().waiting.push_front(unit);
        self.give_up_hopeless();
        self.changed.notify_waiters();
    }

    fn fail(&self, unit: Pending, error: DataFusionError) {
        add(&self.metrics.units_failed, 1);
        log(
            Level::Error,
            "unit failed",
            &[
                ("query", &unit.task.query),
                ("unit", &unit.task.unit),
                ("reason", &error.strip_backtrace()),
            ],
        );
        let _ = unit.answer.send(Err(error));
    }

    /// Fails units that no worker can do.
    fn give_up_hopeless(&self) {
        let mut hopeless = Vec::new();
        let mut queue = self.queue();
        let waits = queue
            .alone_since
            .is_some_and(|since| since.elapsed() >= self.patience);
        for unit in std::mem::take(&mut queue.waiting) {
            let mut workers = queue.workers.keys();
            let is_hopeless = match queue.workers.is_empty() {
                true => waits,
                false => workers.all(|worker| unit.failed_on.contains(worker)),
            };
            match is_hopeless {
                true => hopeless.push((unit, waits)),
                false => queue.waiting.push_back(unit),
            }
        }
        drop(queue);
        for (unit, waits) in hopeless {
            let error = match waits {
                true => DataFusionError::Execution(format!(
                    "no worker is connected to the scheduler\nhint: `kymo query worker --scheduler ADDRESS` starts one{}",
                    unit.history()
                )),
                false => unit.error("cannot be done by any worker"),
            };
            self.fail(unit, error);
        }
    }

    /// Sees from time to time whether there is a worker at all.
    pub(super) async fn watch(&self) {
        loop {
            tokio::time::sleep(Duration::from_millis(500)).await;
            self.give_up_hopeless();
        }
    }
}

impl Queue {
    fn next(&mut self, worker: &str) -> Option<Pending> {
        // Nothing waits for these.
        self.waiting.retain(|unit| !unit.answer.is_closed());
        let fits = |unit: &Pending| !unit.failed_on.iter().any(|name| name == worker);
        let running = |unit: &Pending| self.running.get(&unit.task.query).copied().unwrap_or(0);
        let units = self.waiting.iter().enumerate();
        let (at, _) = units
            .filter(|(_, unit)| fits(unit))
            .min_by_key(|(_, unit)| running(unit))?;
        let unit = self.waiting.remove(at)?;
        *self.running.entry(unit.task.query).or_default() += 1;
        Some(unit)
    }
}

impl Pending {
    fn error(&self, what: &str) -> DataFusionError {
        DataFusionError::Execution(format!("a unit of work {what}{}", self.history()))
    }

    /// What happened to it before.
    fn history(&self) -> String {
        let lines = self.tries.iter().map(|text| format!("\n  {text}"));
        lines.collect()
    }
}
