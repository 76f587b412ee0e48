//! Rows that a daemon tells.

use super::Client;
use crate::Failure;
use crate::path::shown;

/// Rows that a daemon tells.
#[derive(Debug, Default)]
pub(crate) struct DaemonRows {
    /// The beginning of the first row.
    pub(crate) start: i64,
    pub(crate) end: i64,
    pub(crate) step: u64,
    /// Of the data sources.
    pub(crate) names: Vec<Vec<u8>>,
    /// Times and values.
    pub(crate) rows: Vec<(i64, Vec<f64>)>,
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
        match key {
            "Start" => self.start = rest.parse().ok()?,
            "End" => self.end = rest.parse().ok()?,
            "Step" => self.step = rest.parse().ok()?,
            "DSName" => {
                let names = rest.split(' ').map(|name| name.as_bytes().to_vec());
                self.names = names.collect();
            }
            "FlushVersion" | "DSCount" => {}
            time => {
                let values = rest.split(' ').map(str::parse);
                let values = values.collect::<Result<_, _>>().ok()?;
                self.rows.push((time.parse().ok()?, values));
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
    pub(crate) fn fetch(
        &mut self,
        file: &[u8],
        function: &str,
        (start, end): (i64, i64),
    ) -> Result<DaemonRows, Failure> {
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
        Ok(rows)
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
        assert_eq!(
            (rows.start, rows.end, rows.step),
            (1_000_000_500, 1_000_001_100, 300)
        );
        assert_eq!(rows.names, [b"load".as_slice(), b"b"]);
        assert_eq!(
            rows.rows[1],
            (1_000_001_100, vec![f64::NEG_INFINITY, 1.5e6])
        );
        assert!(rows.rows[0].1[1].is_sign_negative() && rows.rows[0].1[1].is_nan());
        for line in ["x", "Step: x", "1000000800: x", "x: 1.0"] {
            assert_eq!(rows.take(line.as_bytes()), None, "{line}");
        }
    }
}
