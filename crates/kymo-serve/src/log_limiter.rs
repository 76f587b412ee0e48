//! Messages that anybody on the network can cause, and so are not all told.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::log::{Level, Log};

/// So many are told in a period.
const TOLD: u32 = 10;
const PERIOD: Duration = Duration::from_secs(10);

/// Tells a few messages, and how many there were beside.
pub(crate) struct LogLimiter {
    log: Log,
    state: Mutex<State>,
}

struct State {
    begun: Instant,
    told: u32,
    more: u64,
}

impl LogLimiter {
    pub(crate) fn new(log: Log) -> Self {
        let state = State {
            begun: Instant::now(),
            told: 0,
            more: 0,
        };
        Self {
            log,
            state: Mutex::new(state),
        }
    }

    /// Tells a message, unless there were many in the last seconds.
    pub(crate) fn tell(&self, message: fmt::Arguments<'_>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.begun.elapsed() >= PERIOD {
            if state.more > 0 {
                (self.log)(
                    Level::Warning,
                    &format!("{} messages like these were not logged", state.more),
                );
            }
            (state.begun, state.told, state.more) = (Instant::now(), 0, 0);
        }
        match state.told < TOLD {
            true => state.told += 1,
            false => {
                state.more += 1;
                return;
            }
        }
        drop(state);
        (self.log)(Level::Warning, &message.to_string());
    }
}

impl fmt::Debug for LogLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogLimiter").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn not_all_are_told() {
        let told = Arc::new(Mutex::new(0));
        let count = Arc::clone(&told);
        let log_limiter = LogLimiter::new(Arc::new(move |_, _| *count.lock().unwrap() += 1));
        for number in 0..100 {
            log_limiter.tell(format_args!("{number}"));
        }
        assert_eq!(*told.lock().unwrap(), TOLD);
    }
}
