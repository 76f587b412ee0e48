//! Warnings of what a recorder could not keep.

use kymo_model::{Lost, Recording};
use kymo_text::{Line, visible};

use super::color::Palette;
use super::facts::{Facts, stream_id};
use super::wall::{Wall, WallOptions};
use super::{Message, MessageKind};
use crate::AnyRecording;

/// Reports losses as warnings.
#[derive(Debug)]
pub struct LossReporter {
    /// How times are shown.
    pub(super) wall: Wall,
    palette: Palette,
}

impl LossReporter {
    /// Without colours; `wall` is how times are shown.
    pub fn new(wall: WallOptions) -> Self {
        Self::with_colors(wall, Palette::NONE)
    }

    /// With these colours.
    pub fn with_colors(wall: WallOptions, palette: Palette) -> Self {
        Self {
            wall: Wall::new(wall),
            palette,
        }
    }

    /// Appends the warning of a message that reports losses; for others nothing.
    pub fn report(
        &mut self,
        message: &Message,
        recordings: &[AnyRecording],
        warnings: &mut Vec<u8>,
    ) {
        let (what, lost) = match message.kind {
            MessageKind::LostEvents(lost) => ("event", lost),
            MessageKind::LostChunks(lost) => ("packet", lost),
            _ => return,
        };
        let recording = &recordings[message.recording];
        let stream = &recording.streams()[message.stream];
        let time = |ticks| {
            stream
                .clock
                .as_ref()
                .and_then(|clock| clock.timestamp(ticks))
        };
        let mut line = Line::new();
        let mut between = None;
        if let Lost {
            begin: Some(begin),
            end: Some(end),
            ..
        } = lost
        {
            let times = between.insert([Line::new(), Line::new()]);
            self.wall.write(time(begin), &mut times[0], warnings);
            self.wall.write(time(end), &mut times[1], warnings);
        }
        let facts = Facts::of(recording);
        let place = Place {
            facts: &facts,
            stream: &stream.name,
            class: stream.class,
            id: stream_id(recording.streams(), message.stream),
        };
        report(what, lost.count, between, &place, &self.palette, &mut line);
        warnings.extend_from_slice(line.as_bytes());
    }
}

/// Where something was lost.
struct Place<'a> {
    facts: &'a Facts,
    stream: &'a str,
    class: u64,
    id: u64,
}

fn report(
    what: &str,
    count: Option<u64>,
    between: Option<[Line; 2]>,
    place: &Place<'_>,
    palette: &Palette,
    line: &mut Line,
) {
    let mut push = |text: &str| line.push(text.as_bytes());
    push(palette.warning_word);
    push("WARNING");
    push(palette.reset);
    push(palette.warning);
    match count {
        Some(1) => push(&format!(": Tracer discarded 1 {what}")),
        Some(count) => push(&format!(": Tracer discarded {count} {what}s")),
        None => push(&format!(": Tracer may have discarded {what}s")),
    }
    match between {
        Some([begin, end]) => {
            line.push(b" between [");
            line.push(begin.as_bytes());
            line.push(b"] and [");
            line.push(end.as_bytes());
            line.push(b"]");
        }
        None => line.push(b" (unknown time range)"),
    }
    let Place {
        facts,
        stream,
        class,
        id,
    } = place;
    let name = visible(facts.name.as_deref().unwrap_or_default());
    let stream = visible(stream);
    let uid = match &facts.uid {
        Some(uid) => format!("UID: {uid}"),
        None => "no UID".to_owned(),
    };
    let text = format!(
        " in trace \"{name}\" ({uid}) within stream \"{stream}\" \
         (stream class ID: {class}, stream ID: {id})."
    );
    line.push(text.as_bytes());
    line.push(palette.reset.as_bytes());
    line.push_byte(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_warning() {
        let facts = Facts {
            uid: Some("53a3".into()),
            name: Some("vm".into()),
            ..Facts::default()
        };
        let place = Place {
            facts: &facts,
            stream: "a/tiny_1",
            class: 0,
            id: 1,
        };
        let mut line = Line::new();
        let mut times = [Line::new(), Line::new()];
        times[0].push(b"BEGIN");
        times[1].push(b"END");
        report(
            "event",
            Some(1729),
            Some(times),
            &place,
            &Palette::NONE,
            &mut line,
        );
        report("packet", None, None, &place, &Palette::new(true), &mut line);
        let expected = "WARNING: Tracer discarded 1729 events between [BEGIN] and [END] \
             in trace \"vm\" (UID: 53a3) within stream \"a/tiny_1\" \
             (stream class ID: 0, stream ID: 1).\n\
             \x1b[33m\x1b[1mWARNING\x1b[0m\x1b[33m: Tracer may have discarded packets \
             (unknown time range) in trace \"vm\" (UID: 53a3) within stream \"a/tiny_1\" \
             (stream class ID: 0, stream ID: 1).\x1b[0m\n";
        assert_eq!(String::from_utf8_lossy(line.as_bytes()), expected);
    }
}
