//! elog files as CPEL files, as VPP's `c2cpel` makes them.
//!
//! The first word of a format names an event, the rest of the text is a string. Types with the
//! same first word become one. Tracks that are used are numbered in the order of their
//! names, events in the order in which they first occur. Times are nanoseconds since the first
//! event that has a time.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use kymo_text::Line;

use crate::elog::{self, Log, Reader, event_name, is_time, write_text};
use crate::entries::Entry;
use crate::write::{self, Builder};

/// Why an elog file cannot become a CPEL file.
#[derive(Debug)]
pub enum Error {
    /// It cannot be read.
    Input(elog::Error),
    /// Its events do not fit.
    Output(write::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(error) => error.fmt(f),
            Self::Output(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl From<write::Error> for Error {
    fn from(error: write::Error) -> Self {
        Self::Output(error)
    }
}

/// What an elog file becomes.
#[derive(Debug)]
pub struct Converted {
    /// The CPEL file in the making.
    pub builder: Builder,
    /// Events without a time of their own: they get the time of the event before them.
    pub untimed: u64,
    /// Leading events whose time is zero.
    pub early: u64,
}

/// A CPEL file with the events of an elog file, as far as they can be read. With
/// [`Padding::Eight`](write::Padding::Eight) and a clock of nanoseconds it is, but for the date,
/// what VPP makes, except that numbers such as 0.25 have the zero before the point.
///
/// # Errors
///
/// If the input is not an elog file, or if something does not fit.
pub fn cpel_of_elog(bytes: &[u8], options: write::Options) -> Result<Converted, Error> {
    let log = Log::read(bytes).map_err(Error::Input)?;
    let mut conversion = Conversion {
        builder: Builder::new(options),
        codes: HashMap::new(),
        tracks: BTreeMap::new(),
        ticks_per_second: f64::from(options.clock.get()),
        untimed: 0,
        early: 0,
    };
    conversion.entries(bytes, &log)?;
    // Their numbers are known when all names are.
    let numbers: HashMap<u32, u32> = conversion.tracks.values().copied().zip(0..).collect();
    for (number, (name, _)) in (0..).zip(&conversion.tracks) {
        conversion.builder.track(number, Some(name))?;
    }
    conversion.builder.number_tracks(numbers);
    let Conversion {
        builder,
        untimed,
        early,
        ..
    } = conversion;
    Ok(Converted {
        builder,
        untimed,
        early,
    })
}

struct Conversion<'a> {
    builder: Builder,
    /// The codes of events by their names.
    codes: HashMap<&'a [u8], u32>,
    /// Tracks by their names, with a number that distinguishes them.
    tracks: BTreeMap<Vec<u8>, u32>,
    ticks_per_second: f64,
    untimed: u64,
    early: u64,
}

impl<'a> Conversion<'a> {
    /// Adds all events, with the numbers of [`Conversion::tracks`].
    fn entries(&mut self, bytes: &'a [u8], log: &Log) -> Result<(), Error> {
        let mut reader = Reader::new(bytes, log.offset);
        let (mut text, mut piece) = (Line::new(), Line::new());
        let (mut first, mut time) = (None, 0);
        for _ in 0..log.events {
            let Some(head) = reader.head() else { break };
            let Some(kind) = log.types.get(usize::from(head.kind)) else {
                break;
            };
            text.clear();
            if write_text(log, kind, &mut reader, &mut text, &mut piece).is_none() {
                break;
            }
            time = self.time(head.seconds, &mut first, time);
            let (name, rest) = event_name(&bytes[kind.format.clone()]);
            let code = self.code(name)?;
            let track = match log.tracks.get(usize::from(head.track)) {
                Some(place) => self.track(&bytes[place.clone()])?,
                None => self.track(head.track.to_string().as_bytes())?,
            };
            let datum = text.as_bytes().get(rest..).unwrap_or_default();
            let datum = self.builder.string(without_zeros(datum))?;
            self.builder.push(Entry {
                time,
                track,
                code,
                datum,
            })?;
        }
        Ok(())
    }

    /// The ticks of an event since the first one; `before` has those of the event before it.
    fn time(&mut self, seconds: f64, first: &mut Option<f64>, before: u64) -> u64 {
        if !is_time(seconds) {
            self.untimed += 1;
            return before;
        }
        let since = seconds - *first.get_or_insert(seconds);
        self.early += u64::from(since < 0.0);
        // What is negative becomes zero.
        (since * self.ticks_per_second) as u64
    }

    fn code(&mut self, name: &'a [u8]) -> Result<u32, Error> {
        if let Some(&code) = self.codes.get(name) {
            return Ok(code);
        }
        let code = self.codes.len() as u32;
        self.codes.insert(name, code);
        self.builder
            .event(code, Some(without_zeros(name)), Some(b"%s"))?;
        Ok(code)
    }

    fn track(&mut self, name: &[u8]) -> Result<u32, Error> {
        let name = without_zeros(name);
        if let Some(&track) = self.tracks.get(name) {
            return Ok(track);
        }
        self.builder.string(name)?;
        let track = self.tracks.len() as u32;
        self.tracks.insert(name.to_vec(), track);
        Ok(track)
    }
}

/// A text as CPEL can hold it: it ends at the first zero.
fn without_zeros(text: &[u8]) -> &[u8] {
    &text[..memchr::memchr(0, text).unwrap_or(text.len())]
}
