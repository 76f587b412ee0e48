//! Writing of Chrome's JSON trace event format: an object with an array of events, each on a line.

use kymo_text::{Line, Stamp};

/// A process or one of its threads, as events name it.
#[derive(Clone, Debug)]
pub struct ChromeThread {
    ids: Stamp,
    thread: u64,
}

impl ChromeThread {
    /// A thread; the one with the number 0 is the process's own.
    pub fn new(process: u64, thread: u64) -> Self {
        let ids = format!(",\"pid\":{process},\"tid\":{thread}");
        Self {
            ids: Stamp::new(ids.as_bytes()),
            thread,
        }
    }
}

/// A name as JSON.
#[derive(Clone, Debug)]
pub struct ChromeName(Stamp);

impl ChromeName {
    /// A name, which need not be UTF-8.
    pub fn new(name: &[u8]) -> Self {
        let mut line = Line::new();
        line.json_string(name);
        Self(Stamp::new(line.as_bytes()))
    }
}

/// What an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChromePhase {
    /// An instant on a thread.
    Instant,
    /// The beginning of a slice.
    Begin,
    /// The end of the innermost slice; its name is the argument `end`, since an end that has a name
    /// ends only slices of that name.
    End,
}

/// An event of a thread.
#[derive(Clone, Copy, Debug)]
pub struct ChromeEvent<'a> {
    /// What it is.
    pub phase: ChromePhase,
    /// When, in nanoseconds.
    pub time: i64,
    /// Where.
    pub thread: &'a ChromeThread,
    /// Its name.
    pub name: &'a ChromeName,
    /// The flow that it is in.
    pub flow: Option<u64>,
    /// Members of its arguments, each with a comma before it.
    pub args: &'a [u8],
}

/// A value of a counter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ChromeValue {
    /// An integer without a sign.
    Uint(u64),
    /// An integer.
    Sint(i64),
    /// A finite floating point number.
    Float(f64),
}

/// Writes events, one after the other. Times are nanoseconds.
#[derive(Debug, Default)]
pub struct ChromeWriter {
    has_events: bool,
}

impl ChromeWriter {
    /// A file without events.
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins an event.
    #[inline]
    fn begin(&mut self, phase: u8, out: &mut Line) {
        let is_first = !std::mem::replace(&mut self.has_events, true);
        if is_first {
            out.push(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
        }
        out.compose(|room| {
            room.piece(b",", usize::from(!is_first));
            room.text(b"\n{\"ph\":\"");
            room.text(&[phase, b'"']);
        });
    }

    /// Begins an event at a time and a place.
    #[inline]
    fn begin_at(&mut self, phase: u8, time: i64, thread: &ChromeThread, out: &mut Line) {
        self.begin(phase, out);
        let nanos = time.unsigned_abs();
        out.compose(|room| {
            room.text(b",\"ts\":");
            room.piece(b"-", usize::from(time < 0));
            // Microseconds.
            room.decimal(nanos / 1000);
            room.text(b".");
            room.three((nanos % 1000) as u32);
        });
        out.stamp(&thread.ids);
    }

    /// Names a process (`what` is `process`) or a thread, and gives it its place among the others.
    pub fn name(
        &mut self,
        what: &str,
        thread: &ChromeThread,
        name: &[u8],
        rank: i64,
        out: &mut Line,
    ) {
        self.begin(b'M', out);
        out.stamp(&thread.ids);
        out.push(format!(",\"name\":\"{what}_name\",\"args\":{{\"name\":").as_bytes());
        out.json_string(name);
        out.push(b"}}");
        self.begin(b'M', out);
        out.stamp(&thread.ids);
        let sort = format!(",\"name\":\"{what}_sort_index\",\"args\":{{\"sort_index\":{rank}}}}}");
        out.push(sort.as_bytes());
    }

    /// Writes an event.
    #[inline]
    pub fn event(&mut self, event: &ChromeEvent<'_>, out: &mut Line) {
        let &ChromeEvent {
            phase,
            time,
            thread,
            name,
            flow,
            args,
        } = event;
        match phase {
            ChromePhase::Instant => {
                self.begin_at(b'i', time, thread, out);
                out.compose(|room| room.text(b",\"s\":\"t\",\"name\":"));
                out.stamp(&name.0);
            }
            ChromePhase::Begin => {
                self.begin_at(b'B', time, thread, out);
                out.push(b",\"name\":");
                out.stamp(&name.0);
            }
            ChromePhase::End => self.begin_at(b'E', time, thread, out),
        }
        if let Some(flow) = flow {
            let flow = format!(",\"bind_id\":\"0x{flow:x}\",\"flow_in\":true,\"flow_out\":true");
            out.push(flow.as_bytes());
        }
        out.compose(|room| room.text(b",\"args\":{"));
        if phase == ChromePhase::End {
            out.push(b"\"end\":");
            out.stamp(&name.0);
            out.push(args);
        } else {
            out.push(args.strip_prefix(b",").unwrap_or(args));
        }
        out.compose(|room| room.text(b"}}"));
    }

    /// Ends the innermost slice.
    pub fn end(&mut self, time: i64, thread: &ChromeThread, out: &mut Line) {
        self.begin_at(b'E', time, thread, out);
        out.push_byte(b'}');
    }

    /// Writes a value of a counter of a thread's process.
    pub fn count(
        &mut self,
        time: i64,
        (process, thread): (&ChromeThread, &ChromeThread),
        name: &ChromeName,
        value: ChromeValue,
        out: &mut Line,
    ) {
        self.begin_at(b'C', time, process, out);
        out.push(b",\"name\":");
        out.stamp(&name.0);
        if thread.thread > 0 {
            out.push(b",\"id\":");
            out.decimal(thread.thread);
        }
        out.push(b",\"args\":{\"value\":");
        match value {
            ChromeValue::Uint(value) => out.decimal(value),
            ChromeValue::Sint(value) => out.signed(value),
            ChromeValue::Float(value) => out.shortest(value, 64),
        }
        out.push(b"}}");
    }

    /// Ends the file.
    pub fn finish(&mut self, out: &mut Line) {
        out.push(match self.has_events {
            true => b"\n]}\n",
            false => b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[]}\n",
        });
    }
}
