//! Rows that a daemon returns.

use super::Client;
use crate::Failure;
use crate::answers::Fetched;
use crate::path::shown;

/// Rows that a daemon returns.
#[derive(Debug, Default)]
struct DaemonRows {
    fetched: Fetched,
}

impl DaemonRows {
    /// Takes a line of the answer: a key with what it says, or a time with values. `None` where it
    /// is something else.
    fn take(&mut self, line: &[u8]) -> Option<()> {
        let line = std::str::from_utf8(line).ok()?;
        // An empty line ends the rows.
        if line.is_empty() {
            return Some(());
        }
        let (key, rest) = line.split_once(':')?;
        let rest = rest.trim();
        let fetched = &mut self.fetched;
        match key {
            "Start" => fetched.start = rest.parse().ok()?,
            "End" => fetched.end = rest.parse().ok()?,
            "Step" => fetched.step = rest.parse().ok()?,
            "DSName" => {
                let names = rest.split(' ').map(|name| name.as_bytes().to_vec());
                fetched.names = names.collect();
            }
            "FlushVersion" | "DSCount" => {}
            time => {
                let _: i64 = time.parse().ok()?;
                let row = fetched.values.len();
                for value in rest.split(' ') {
                    fetched.values.push(value.parse().ok()?);
                }
                if fetched.values.len() - row != fetched.names.len() {
                    return None;
                }
            }
        }
        Some(())
    }
}

impl Client {
    /// Asks for the rows of an archive of a kind between two times.
    ///
    /// # Errors
    ///
    /// What the daemon says, and what of its answer is not understood.
    pub fn fetch(
        &mut self,
        file: &[u8],
        function: &str,
        (start, end): (i64, i64),
    ) -> Result<Fetched, Failure> {
        let file = self.path(file)?;
        let (start, end) = (start.to_string(), end.to_string());
        let words = [
            b"fetch".as_slice(),
            &file,
            function.as_bytes(),
            start.as_bytes(),
            end.as_bytes(),
        ];
        let mut rows = DaemonRows::default();
        self.ask_with(&words, |line| {
            rows.take(line).ok_or_else(|| {
                let line = shown(line);
                Failure::new(format!(
                    "found '{line}' in the daemon's answer, expected a row"
                ))
            })
        })?;
        Ok(rows.fetched)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_answers() {
        let mut rows = DaemonRows::default();
        for line in [
            "FlushVersion: 1",
            "Start: 1000000500",
            "End: 1000001100",
            "Step: 300",
            "DSCount: 2",
            "DSName: load b",
            "1000000800: 4.00000000000000000e+00 -nan",
            "1000001100: -inf 1.50000000000000000e+06",
            "",
        ] {
            assert_eq!(rows.take(line.as_bytes()), Some(()), "{line}");
        }
        let fetched = &rows.fetched;
        assert_eq!(
            (fetched.start, fetched.end, fetched.step),
            (1_000_000_500, 1_000_001_100, 300)
        );
        assert_eq!(fetched.names, [b"load".as_slice(), b"b"]);
        let read: Vec<_> = fetched.rows().collect();
        assert_eq!(
            read[1],
            (1_000_001_100, [f64::NEG_INFINITY, 1.5e6].as_slice())
        );
        assert!(read[0].1[1].is_sign_negative() && read[0].1[1].is_nan());
        for line in [
            "x",
            "Step: x",
            "1000000800: x 1",
            "1000000800: 1",
            "x: 1.0 1.0",
        ] {
            assert_eq!(rows.take(line.as_bytes()), None, "{line}");
        }
    }
}
