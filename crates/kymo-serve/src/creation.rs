//! Databases of names that came without anybody waiting for an answer, created by a thread of its own: to create one takes a thousand times
//! as long as to decode a list, and a sender of many new names would hold up all others.
//!
//! Each sender has a queue, and they take turns: the names of one wait behind its own only.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use crate::sync::lock;

/// Bytes of updates that wait for databases of one name, and of all.
pub(crate) const MOST_OF_ONE: usize = 1 << 14;
pub(crate) const MOST_OF_ALL: usize = 32 << 20;
/// How often it is looked whether to end.
const PATIENCE: Duration = Duration::from_millis(500);

/// Who has brought a name; `None` for all that is of this machine.
pub(crate) type Sender = Option<IpAddr>;

/// Names that wait for their databases.
#[derive(Debug)]
pub(crate) struct Creation<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct State<T> {
    /// Of each sender that something waits of.
    queues: HashMap<Sender, Queue<T>>,
    /// Senders with names that wait, in the order in which it is their turn.
    turns: VecDeque<Sender>,
    names: usize,
    bytes: usize,
}

#[derive(Debug)]
struct Queue<T> {
    names: VecDeque<T>,
    /// Of updates that wait, those of the name in hand included.
    bytes: usize,
}

impl<T> Default for Creation<T> {
    fn default() -> Self {
        Self {
            state: Mutex::new(State {
                queues: HashMap::new(),
                turns: VecDeque::new(),
                names: 0,
                bytes: 0,
            }),
            changed: Condvar::new(),
        }
    }
}

impl<T> Creation<T> {
    /// Has the database of a name created.
    pub(crate) fn push(&self, sender: Sender, series: T) {
        let mut state = lock(&self.state);
        let names = &mut state.queue(sender).names;
        names.push_back(series);
        if names.len() == 1 {
            state.turns.push_back(sender);
        }
        state.names += 1;
        self.changed.notify_one();
    }

    /// Counts bytes of updates that wait, unless there are so many of the sender that it would leave less for others
    /// than it has itself. Returns whether they may wait.
    pub(crate) fn reserve(&self, sender: Sender, bytes: usize) -> bool {
        let mut state = lock(&self.state);
        let free = MOST_OF_ALL.saturating_sub(state.bytes + bytes);
        let own = state.queues.get(&sender).map_or(0, |it| it.bytes) + bytes;
        let has_room = own <= free;
        if has_room {
            state.queue(sender).bytes += bytes;
            state.bytes += bytes;
        }
        has_room
    }

    /// Gives back what was reserved.
    pub(crate) fn release(&self, sender: Sender, bytes: usize) {
        let mut state = lock(&self.state);
        state.bytes = state.bytes.saturating_sub(bytes);
        if let Some(queue) = state.queues.get_mut(&sender) {
            queue.bytes = queue.bytes.saturating_sub(bytes);
            if queue.bytes == 0 && queue.names.is_empty() {
                state.queues.remove(&sender);
            }
        }
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        lock(&self.state).names
    }

    /// The next name of the sender whose turn it is. `None` if there is none for a while.
    pub(crate) fn next(&self) -> Option<T> {
        let state = lock(&self.state);
        let waited = self
            .changed
            .wait_timeout_while(state, PATIENCE, |state| state.names == 0);
        let mut state = match waited {
            Ok((state, _)) => state,
            Err(poisoned) => poisoned.into_inner().0,
        };
        let sender = state.turns.pop_front()?;
        let queue = state.queues.get_mut(&sender)?;
        let series = queue.names.pop_front();
        match (queue.names.is_empty(), queue.bytes) {
            (false, _) => state.turns.push_back(sender),
            (true, 0) => {
                state.queues.remove(&sender);
            }
            _ => {}
        }
        state.names = state.names.saturating_sub(1);
        series
    }
}

impl<T> State<T> {
    fn queue(&mut self, sender: Sender) -> &mut Queue<T> {
        self.queues.entry(sender).or_insert_with(|| Queue {
            names: VecDeque::new(),
            bytes: 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sender(last: u8) -> Sender {
        Some(IpAddr::from([10, 0, 0, last]))
    }

    #[test]
    fn senders_take_turns() {
        let creation = Creation::default();
        for number in 0..100 {
            creation.push(sender(1), (1, number));
        }
        creation.push(sender(2), (2, 0));
        creation.push(None, (0, 0));
        creation.push(sender(2), (2, 1));
        let first: Vec<_> = (0..6).filter_map(|_| creation.next()).collect();
        assert_eq!(first, [(1, 0), (2, 0), (0, 0), (1, 1), (2, 1), (1, 2)]);
        assert_eq!(creation.len(), 97);
        let rest: Vec<_> = (0..97).filter_map(|_| creation.next()).collect();
        let expected: Vec<_> = (3..100).map(|number| (1, number)).collect();
        assert_eq!(rest, expected);
        assert_eq!(creation.next(), None);
        assert!(lock(&creation.state).queues.is_empty());
    }

    #[test]
    fn one_sender_leaves_room_for_others() {
        let creation = Creation::<()>::default();
        let fill = |sender| {
            let mut bytes = 0;
            while creation.reserve(sender, MOST_OF_ONE) {
                bytes += MOST_OF_ONE;
            }
            bytes
        };
        assert_eq!(fill(sender(1)), MOST_OF_ALL / 2);
        assert_eq!(fill(sender(2)), MOST_OF_ALL / 4);
        assert_eq!(fill(None), MOST_OF_ALL / 8);
        creation.release(sender(1), MOST_OF_ALL / 2);
        assert!(creation.reserve(sender(2), MOST_OF_ONE));
        creation.release(sender(2), MOST_OF_ALL / 4 + MOST_OF_ONE);
        creation.release(None, MOST_OF_ALL / 8);
        let state = lock(&creation.state);
        assert!(state.queues.is_empty() && state.bytes == 0);
    }
}
