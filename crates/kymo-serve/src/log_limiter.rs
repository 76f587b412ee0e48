//! Messages that anybody on the network can cause, and so are not all logged.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use kymo_text::visible;

use crate::log::{Level, Log};

/// The number of messages that are logged in a period.
const TOLD: u32 = 10;
const PERIOD: Duration = Duration::from_secs(10);

/// Logs a few messages, and the number of the others.
pub(crate) struct LogLimiter {
    log: Log,
    state: Mutex<State>,
}

struct State {
    begun: Instant,
    reported: u32,
    more: u64,
}

impl LogLimiter {
    pub(crate) fn new(log: Log) -> Self {
        let state = State {
            begun: Instant::now(),
            reported: 0,
            more: 0,
        };
        Self {
            log,
            state: Mutex::new(state),
        }
    }

    /// Logs a message, unless there were many in the last seconds.
    pub(crate) fn report(&self, message: fmt::Arguments<'_>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.begun.elapsed() >= PERIOD {
            if state.more > 0 {
                (self.log)(
                    Level::Warning,
                    &format!("{} messages like these were not logged", state.more),
                );
            }
            (state.begun, state.reported, state.more) = (Instant::now(), 0, 0);
        }
        match state.reported < TOLD {
            true => state.reported += 1,
            false => {
                state.more += 1;
                return;
            }
        }
        drop(state);
        // A line of it is that of a stranger.
        (self.log)(Level::Warning, &visible(&message.to_string()));
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
    fn not_all_are_reported() {
        let reported = Arc::new(Mutex::new(0));
        let count = Arc::clone(&reported);
        let log_limiter = LogLimiter::new(Arc::new(move |_, _| *count.lock().unwrap() += 1));
        for number in 0..100 {
            log_limiter.report(format_args!("{number}"));
        }
        assert_eq!(*reported.lock().unwrap(), TOLD);
    }
}
