//! How long a query is worth its cost.

use std::time::{Duration, Instant};

use crate::http::Client;

/// Until when a query is computed: until a time, and as long as its client waits for the answer.
#[derive(Clone, Copy)]
pub(crate) struct Deadline<'c> {
    pub(crate) end: Instant,
    client: &'c dyn Client,
}

impl<'c> Deadline<'c> {
    /// So long from now.
    pub(crate) fn after(timeout: Duration, client: &'c dyn Client) -> Self {
        Self {
            end: Instant::now() + timeout,
            client,
        }
    }

    /// Whether the time is over or the client is gone.
    pub(crate) fn is_over(&self) -> bool {
        Instant::now() >= self.end || self.client.is_gone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listen::Stream;

    #[test]
    fn a_query_is_computed_as_long_as_somebody_waits() {
        let (stream, mut client) = Stream::pair().unwrap();
        let hour = Duration::from_secs(3600);
        assert!(!Deadline::after(hour, &stream).is_over());
        assert!(Deadline::after(Duration::ZERO, &stream).is_over());
        // The next request comes before the answer.
        std::io::Write::write_all(&mut client, b"G").unwrap();
        assert!(!Deadline::after(hour, &stream).is_over());
        let (stream, client) = Stream::pair().unwrap();
        drop(client);
        assert!(Deadline::after(hour, &stream).is_over());
    }
}
