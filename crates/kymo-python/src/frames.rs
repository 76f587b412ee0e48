//! Messages as bytes: a run writes them in its own threads, and Python's objects are made of them.

use std::io;
use std::ops::ControlFlow;
use std::sync::mpsc::SyncSender;

use kymo::AnyRecording;
use kymo::pipeline::Output;
use kymo::show::{Message, MessageKind, Renderer, Sink};
use kymo_model::{Chunk, Fault, FaultReport, Lost};
use kymo_text::Line;
use pyo3::PyResult;

use crate::errors::Error;
use crate::values::{Decoder, Encoder};

/// What a message is; kymo.bt2 has a class for each number.
pub(crate) mod kind {
    pub(crate) const EVENT: u8 = 0;
    pub(super) const STREAM_BEGIN: u8 = 1;
    pub(super) const STREAM_END: u8 = 2;
    pub(super) const CHUNK_BEGIN: u8 = 3;
    pub(super) const CHUNK_END: u8 = 4;
    pub(super) const LOST_EVENTS: u8 = 5;
    pub(super) const LOST_CHUNKS: u8 = 6;
}

/// What precedes the values of each message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    /// Number of bytes of the whole message.
    pub(crate) size: usize,
    pub(crate) kind: u8,
    pub(crate) recording: usize,
    pub(crate) stream: usize,
    pub(crate) chunk: usize,
    pub(crate) class: usize,
    pub(crate) time: Option<i64>,
    pub(crate) ticks: Option<u64>,
}

impl Head {
    const WORDS: usize = 7;
    pub(crate) const SIZE: usize = 8 * Self::WORDS + 3;

    #[inline]
    fn to_bytes(self) -> [u8; Self::SIZE] {
        let words = [
            self.size as u64,
            self.recording as u64,
            self.stream as u64,
            self.chunk as u64,
            self.class as u64,
            self.time.unwrap_or_default() as u64,
            self.ticks.unwrap_or_default(),
        ];
        let mut bytes = [0; Self::SIZE];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        let flags = [
            self.kind,
            self.time.is_some().into(),
            self.ticks.is_some().into(),
        ];
        bytes[8 * Self::WORDS..].copy_from_slice(&flags);
        bytes
    }

    #[inline]
    fn from_bytes(bytes: &[u8; Self::SIZE]) -> Self {
        let (words, _) = bytes.as_chunks();
        let word = |number: usize| u64::from_le_bytes(words[number]);
        let flag = |number: usize| bytes[8 * Self::WORDS + number];
        Self {
            size: word(0) as usize,
            kind: flag(0),
            recording: word(1) as usize,
            stream: word(2) as usize,
            chunk: word(3) as usize,
            class: word(4) as usize,
            time: (flag(1) != 0).then_some(word(5) as i64),
            ticks: (flag(2) != 0).then_some(word(6)),
        }
    }

    /// The head at the beginning of bytes, and what is behind it.
    #[inline]
    pub(crate) fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (head, values) = bytes.split_first_chunk()?;
        Some((Self::from_bytes(head), values))
    }
}

/// Puts a head before the bytes of each message.
pub(crate) struct Frames {
    pub(crate) has_structure: bool,
}

impl Sink for Frames {
    type Renderer = ValueRenderer;

    fn renderer(&self) -> ValueRenderer {
        ValueRenderer
    }

    fn wants_structure(&self) -> bool {
        self.has_structure
    }

    fn message(
        &mut self,
        message: &Message,
        _recordings: &[AnyRecording],
        text: &[u8],
        out: &mut Line,
        _warnings: &mut Vec<u8>,
    ) {
        let mut lost = None;
        let kind = match &message.kind {
            MessageKind::Event => kind::EVENT,
            _ if !self.has_structure => return,
            MessageKind::StreamBegin => kind::STREAM_BEGIN,
            MessageKind::StreamEnd => kind::STREAM_END,
            MessageKind::ChunkBegin => kind::CHUNK_BEGIN,
            MessageKind::ChunkEnd => kind::CHUNK_END,
            MessageKind::LostEvents(reported) => {
                lost = Some(reported);
                kind::LOST_EVENTS
            }
            MessageKind::LostChunks(reported) => {
                lost = Some(reported);
                kind::LOST_CHUNKS
            }
        };
        let head = Head {
            size: Head::SIZE + lost.map_or(0, |_| LOST_SIZE) + text.len(),
            kind,
            recording: message.recording,
            stream: message.stream,
            chunk: message.chunk,
            class: message.class,
            time: message.time.map(|time| time.as_nanos()),
            ticks: message.ticks,
        };
        out.push(&head.to_bytes());
        if let Some(lost) = lost {
            push_lost(out, lost);
        }
        out.push(text);
    }
}

/// Writes the values of events in any thread.
pub(crate) struct ValueRenderer;

impl Renderer for ValueRenderer {
    fn chunk(
        &mut self,
        _recording: usize,
        _source: &AnyRecording,
        _chunk: &Chunk,
    ) -> Result<(), Fault> {
        Ok(())
    }

    fn event<E: kymo_model::Event>(&mut self, event: &E, out: &mut Line) -> Result<(), Fault> {
        event.visit(&mut Encoder::new(out))
    }
}

/// Number of bytes that [`push_lost`] appends.
const LOST_SIZE: usize = 3 * 9;

fn push_lost(out: &mut Line, lost: &Lost) {
    for value in [lost.count, lost.begin, lost.end] {
        out.push_byte(value.is_some().into());
        out.push(&value.unwrap_or_default().to_le_bytes());
    }
}

/// What was lost: instead of values.
pub(crate) fn lost(head: &Head, bytes: &[u8]) -> PyResult<Lost> {
    if !matches!(head.kind, kind::LOST_EVENTS | kind::LOST_CHUNKS) {
        return Err(Error::new_err("this message reports no losses"));
    }
    let mut decoder = Decoder { bytes };
    let mut value = || {
        let is_known = decoder.flag()?;
        let value = decoder.u64()?;
        PyResult::Ok(is_known.then_some(value))
    };
    Ok(Lost {
        count: value()?,
        begin: value()?,
        end: value()?,
    })
}

/// A part of what a run makes.
pub(crate) enum Part {
    /// Whole messages.
    Frames(Vec<u8>),
    Fault(FaultReport),
}

/// Passes parts on until the receiver is gone.
pub(crate) struct Sender(pub(crate) SyncSender<Part>);

impl Output for Sender {
    fn text(&mut self, text: &[u8]) -> io::Result<()> {
        let sent = self.0.send(Part::Frames(text.to_vec()));
        sent.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    fn fault(&mut self, fault: &FaultReport) -> ControlFlow<()> {
        match self.0.send(Part::Fault(fault.clone())) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }
}
