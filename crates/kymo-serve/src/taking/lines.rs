//! Connections that bring lines.

use std::io::{self, ErrorKind, Read};
use std::time::{Duration, Instant};

use memchr::memrchr;

use crate::listen::{FIRST_BYTE, Stream};

/// The longest line.
pub(super) const LONGEST_LINE: usize = 1 << 16;
/// Bytes that are read at once.
const PIECE: usize = 1 << 17;
/// How often it is looked whether a connection has been idle for too long.
const LOOK: Duration = Duration::from_secs(1);

/// What has come of a connection.
pub(super) enum Piece<'a> {
    /// Whole lines, and at the end of the connection what is left.
    Lines(&'a [u8]),
    /// A line that is too long, of which this is the beginning.
    TooLong(&'a [u8]),
}

/// Gives whole lines of a connection to `take` until it ends, no line has ended for `idle_timeout`, or nothing at all
/// has come within [`FIRST_BYTE`].
///
/// # Errors
///
/// Those of the system.
pub(super) fn read(
    stream: &mut Stream,
    idle_timeout: Duration,
    mut take: impl FnMut(Piece<'_>),
) -> io::Result<()> {
    stream.set_patience(LOOK.min(idle_timeout))?;
    let mut buffer = vec![0; LONGEST_LINE + PIECE];
    let mut length = 0;
    // Whether the line at hand was too long.
    let mut is_skipping = false;
    let mut latest = Instant::now();
    let mut has_come = false;
    loop {
        let count = match stream.read(&mut buffer[length..]) {
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                let timeout = if has_come {
                    idle_timeout
                } else {
                    idle_timeout.min(FIRST_BYTE)
                };
                if latest.elapsed() >= timeout {
                    return Ok(());
                }
                continue;
            }
            Err(error) => return Err(error),
        };
        if count == 0 {
            // If the daemon has cut off a line, its real end is unknown.
            if !stream.is_cut() && length > 0 && !is_skipping {
                take(Piece::Lines(&buffer[..length]));
            }
            return Ok(());
        }
        has_come = true;
        let end = length + count;
        let whole = memrchr(b'\n', &buffer[length..end]).map(|at| length + at + 1);
        length = end;
        let Some(whole) = whole else {
            if length > LONGEST_LINE {
                if !std::mem::replace(&mut is_skipping, true) {
                    take(Piece::TooLong(&buffer[..length]));
                }
                length = 0;
            }
            // Who sends a byte now and then holds a connection no longer than who sends nothing.
            if latest.elapsed() >= idle_timeout {
                return Ok(());
            }
            continue;
        };
        let mut begin = 0;
        if std::mem::take(&mut is_skipping) {
            let first = memchr::memchr(b'\n', &buffer[..whole]);
            begin = first.map_or(whole, |at| at + 1);
        }
        if begin < whole {
            take(Piece::Lines(&buffer[begin..whole]));
        }
        buffer.copy_within(whole..length, 0);
        length -= whole;
        // The time that these took does not count.
        latest = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn lines_come_whole() {
        let (mut stream, mut client) = Stream::pair().unwrap();
        let long = "x".repeat(2 * LONGEST_LINE + PIECE);
        let sender = std::thread::spawn(move || {
            for text in ["a\nb", "b\n", &long, "y\nc\n", "rest"] {
                client.write_all(text.as_bytes()).unwrap();
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let mut found = String::new();
        read(&mut stream, Duration::from_secs(60), |piece| match piece {
            Piece::Lines(lines) => found += &String::from_utf8_lossy(lines),
            Piece::TooLong(_) => found += "TOO LONG\n",
        })
        .unwrap();
        sender.join().unwrap();
        assert_eq!(found, "a\nbb\nTOO LONG\nc\nrest");
    }

    /// Bytes that end no line do not hold a connection.
    #[test]
    fn lines_that_drip_end_connections() {
        let (mut stream, mut client) = Stream::pair().unwrap();
        let sender = std::thread::spawn(move || {
            let begun = Instant::now();
            let mut sent = 0;
            client.write_all(b"a\n").unwrap();
            while begun.elapsed() < Duration::from_secs(30) && client.write_all(b"x").is_ok() {
                sent += 1;
                std::thread::sleep(Duration::from_millis(10));
            }
            sent
        });
        let mut found = Vec::new();
        read(&mut stream, Duration::from_millis(200), |piece| {
            if let Piece::Lines(lines) = piece {
                found.extend_from_slice(lines);
            }
        })
        .unwrap();
        drop(stream);
        assert_eq!(found, b"a\n");
        assert!((2..1000).contains(&sender.join().unwrap()));
    }

    #[test]
    fn idle_connections_end() {
        let (mut stream, _client) = Stream::pair().unwrap();
        let begun = Instant::now();
        read(&mut stream, Duration::from_millis(50), |_| ()).unwrap();
        assert!(begun.elapsed() >= Duration::from_millis(50));
    }
}
