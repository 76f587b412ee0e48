//! Files of comma-separated values, as collectd's csv plugin writes them: one a day for each name.
//!
//! `HOST/PLUGIN-INSTANCE/TYPE-INSTANCE-YYYY-MM-DD` begins with a line `epoch,SOURCE,...`; a list is a line with its time
//! to ten decimals, which distinguish every unit of 2^-30 s from its neighbours, and its values with
//! as many digits as they need. The day is that of the list's time, in local time.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use kymo_collectd::Value;
use kymo_time::{CdTime, Date, date_of_days};

/// How files are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The directory of all hosts (`DataDir`).
    pub directory: PathBuf,
    /// Whether rates of what is counted are written, and not the counts (`StoreRates`).
    pub rates: bool,
}

/// Seconds in a day.
const DAY: i64 = 86_400;

/// The lines of a name that are not yet in its file.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    day: i64,
    text: String,
}

impl Lines {
    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Bytes of all.
    pub(crate) fn len(&self) -> usize {
        self.text.len()
    }

    /// Whether a list of this time goes to the same file.
    pub(crate) fn fits(&self, time: CdTime) -> bool {
        self.is_empty() || self.day == day_of(time)
    }

    /// Adds a list, which fits.
    pub(crate) fn push(&mut self, time: CdTime, values: &[Value], rates: Option<&[f64]>) {
        use fmt::Write as _;
        if self.is_empty() {
            self.day = day_of(time);
        }
        self.text.push_str(&time.lossless());
        // Writing to a string does not fail.
        for (place, value) in values.iter().enumerate() {
            let number = match (rates, value) {
                (Some(rates), _) => rates.get(place).copied(),
                (None, Value::Gauge(number)) => Some(*number),
                (None, _) => None,
            };
            let _ = match number {
                Some(number) if number.is_nan() => write!(self.text, ",nan"),
                Some(number) => write!(self.text, ",{number}"),
                None => write!(self.text, ",{value}"),
            };
        }
        self.text.push('\n');
    }

    /// Appends all to the file, of which `path` is what it is without the day. What cannot be
    /// written is kept.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub(crate) fn write<'a>(
        &mut self,
        path: &Path,
        sources: impl Iterator<Item = &'a str>,
    ) -> io::Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        let Date { year, month, day } = date_of_days(self.day);
        let mut name = path.as_os_str().to_owned();
        name.push(format!("-{year:04}-{month:02}-{day:02}"));
        let mut file = open(Path::new(&name))?;
        let before = file.metadata()?.len();
        if before == 0 {
            let names: Vec<_> = sources.collect();
            self.text
                .insert_str(0, &format!("epoch,{}\n", names.join(",")));
        }
        let written = file.write_all(self.text.as_bytes());
        match written {
            Ok(()) => self.text = String::new(),
            // Half a line would spoil the next one.
            Err(error) => {
                if before == 0 {
                    let header = self.text.find('\n').map_or(0, |end| end + 1);
                    self.text.drain(..header);
                }
                file.set_len(before)?;
                return Err(error);
            }
        }
        Ok(())
    }

    /// Drops all.
    pub(crate) fn clear(&mut self) {
        self.text = String::new();
    }
}

/// Opens a file to append to, and makes the directories above it.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if let Some(directory) = path.parent() {
                std::fs::create_dir_all(directory)?;
            }
            options.open(path)
        }
        opened => opened,
    }
}

/// The local day of a time, counted from 1970-01-01.
fn day_of(time: CdTime) -> i64 {
    static ZONE: OnceLock<TimeZone> = OnceLock::new();
    let seconds = time.split().0 as i64;
    let zone = ZONE.get_or_init(TimeZone::system);
    let known = Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX);
    (seconds + i64::from(zone.to_offset(known).seconds())).div_euclid(DAY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_a_header_and_exact_times() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("h/p/t-i");
        let time = |ticks: u64| CdTime::from_ticks((1_700_000_000 << 30) + ticks);
        let mut lines = Lines::default();
        let values = [
            Value::Gauge(0.1),
            Value::Counter(u64::MAX),
            Value::Gauge(f64::NAN),
        ];
        lines.push(time(1), &values, None);
        assert!(lines.fits(time(2)) && !lines.fits(time((DAY as u64 * 2) << 30)));
        let names = ["a", "b", "c"];
        lines.write(&path, names.into_iter()).unwrap();
        assert!(lines.is_empty());
        lines.push(time(2), &values, Some(&[1.5, f64::NAN, 1e300]));
        lines.write(&path, names.into_iter()).unwrap();
        let files: Vec<_> = std::fs::read_dir(path.parent().unwrap()).unwrap().collect();
        let file = files[0].as_ref().unwrap().path();
        let name = file.file_name().unwrap().to_str().unwrap();
        assert!(
            files.len() == 1 && name.starts_with("t-i-2023-11-1"),
            "{files:?}"
        );
        let big = 1e300;
        let expected = format!(
            "epoch,a,b,c\n1700000000.0000000010,0.1,18446744073709551615,nan\n\
             1700000000.0000000019,1.5,nan,{big}\n"
        );
        assert_eq!(std::fs::read_to_string(file).unwrap(), expected);
    }

    #[test]
    fn what_cannot_be_written_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file/t");
        std::fs::write(directory.path().join("file"), "in the way").unwrap();
        let mut lines = Lines::default();
        lines.push(CdTime::from_ticks(1 << 60), &[Value::Derive(-1)], None);
        let before = lines.len();
        assert!(lines.write(&path, ["value"].into_iter()).is_err());
        assert_eq!(lines.len(), before);
    }
}
