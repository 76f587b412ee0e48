//! Connections that end at a time.

use std::io::{self, Read, Write};
use std::time::Instant;

use super::Stream;

/// A connection that ends at a time, however its bytes are spread until then.
#[derive(Debug)]
pub(crate) struct TimedStream<'a> {
    pub(crate) stream: &'a mut Stream,
    pub(crate) end: Instant,
}

impl TimedStream<'_> {
    /// Has the next bytes come before the end, if that is not there.
    fn limit_wait(&self) -> io::Result<()> {
        let rest = self.end.saturating_duration_since(Instant::now());
        match rest.is_zero() {
            true => Err(io::ErrorKind::TimedOut.into()),
            false => self.stream.set_patience(rest),
        }
    }
}

impl Read for TimedStream<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.limit_wait()?;
        self.stream.read(buffer)
    }
}

impl Write for TimedStream<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.limit_wait()?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}
