//! How far a session is read.

use std::time::{Duration, Instant};

use super::Error;
use crate::message::Index;
use crate::spool::{SpoolFile, StreamName};
use crate::url::Url;
use crate::viewer::StreamInfo;

/// Messages that wait to be shown.
const MOST_NOTES: usize = 100;

/// A stream that is read.
#[derive(Clone, Debug)]
pub struct StreamStatus {
    /// What it is called.
    pub name: StreamName,
    /// Where it is stored.
    pub file: SpoolFile,
    /// Whether it holds metadata.
    pub is_metadata: bool,
    /// All events before these ticks of its clock are stored; `None` where nothing is known yet.
    pub frontier: Option<u64>,
    /// Whether nothing more comes of it.
    pub is_ended: bool,
    /// Whether there was nothing new of it when it was asked for last.
    pub is_idle: bool,
    /// Packets of it that could not be had.
    pub lost_packets: u64,
    pub(super) waiting_since: Option<Instant>,
}

impl StreamStatus {
    /// Since when the relay daemon has had nothing to say of it.
    pub fn silence(&self) -> Duration {
        self.waiting_since
            .map_or(Duration::ZERO, |since| since.elapsed())
    }

    pub(super) fn reached(&mut self, ticks: u64) {
        self.frontier = self.frontier.max(Some(ticks));
        self.waiting_since = None;
        self.is_idle = false;
    }
}

impl Status {
    /// Whether there is nothing that has not come, as far as is known.
    pub fn is_idle(&self) -> bool {
        let mut data = self
            .streams
            .iter()
            .filter(|stream| !stream.is_metadata)
            .peekable();
        self.is_ended
            || (data.peek().is_some() && data.all(|stream| stream.is_ended || stream.is_idle))
    }
}

/// How far a session is read.
#[derive(Debug, Default)]
pub struct Status {
    /// A number that changes with the rest.
    pub generation: u64,
    /// What is read.
    pub url: Option<Url>,
    /// The streams, those that have ended too. A stream keeps its place.
    pub streams: Vec<StreamStatus>,
    /// Packets that are stored.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// How often metadata has come.
    pub metadata: u64,
    /// Packets that could not be had.
    pub lost_packets: u64,
    /// Whether so much data waits to be consumed that no more is requested.
    pub is_full: bool,
    /// Whether nothing more comes.
    pub is_ended: bool,
    pub(super) notes: Vec<String>,
    pub(super) error: Option<Error>,
}

impl Status {
    /// The same without what only one can take.
    pub(super) fn snapshot(&self) -> Self {
        Self {
            generation: self.generation,
            url: self.url.clone(),
            streams: self.streams.clone(),
            notes: Vec::new(),
            error: None,
            ..*self
        }
    }

    pub(super) fn note(&mut self, note: String) {
        if self.notes.len() < MOST_NOTES {
            self.notes.push(note);
        }
        self.generation += 1;
    }

    /// The place of a stream, which may have been there before its connection was lost.
    pub(super) fn stream(&mut self, info: &StreamInfo, file: SpoolFile) -> usize {
        self.generation += 1;
        let known = self
            .streams
            .iter_mut()
            .position(|known| known.name == info.name);
        if let Some(place) = known {
            self.streams[place].is_ended = false;
            return place;
        }
        self.streams.push(StreamStatus {
            name: info.name.clone(),
            file,
            is_metadata: info.is_metadata,
            frontier: None,
            is_ended: info.is_metadata,
            is_idle: false,
            lost_packets: 0,
            waiting_since: None,
        });
        self.streams.len() - 1
    }

    pub(super) fn packet(&mut self, place: usize, index: &Index, bytes: u64) {
        self.generation += 1;
        self.packets += 1;
        self.bytes += bytes;
        self.streams[place].reached(index.end);
    }
}
