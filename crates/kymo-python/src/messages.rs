//! Events one by one, and what else recordings report between them.

use std::collections::HashMap;
use std::io;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::ThreadId;

use kymo::AnyRecording;
use kymo::filter::Filter;
use kymo::pipeline::{self, Output, Watched};
use kymo::show::{Message as Shown, MessageKind, Renderer, Sink};
use kymo::timeline::Timeline;
use kymo_model::{Chunk, Fault, FaultReport, FieldId, Kind, Lost, Recording, Scope};
use kymo_text::Line;
use pyo3::exceptions::{PyKeyError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::sync::{MutexExt, PyOnceLock};
use pyo3::types::{PyDict, PyIterator, PyString};

use crate::errors::{self, Error};
use crate::forks::{Ahead, forked};
use crate::truncated::Truncations;
use crate::values::{Decoder, Encoder, Form, Names};

/// The scopes of an event, in the order in which names are looked up.
const SCOPES: [Scope; 3] = [Scope::Payload, Scope::SpecificContext, Scope::CommonContext];

/// What makes bytes of events in any thread.
struct ValueRenderer;

impl Renderer for ValueRenderer {
    fn chunk(
        &mut self,
        _recording: usize,
        _of: &AnyRecording,
        _chunk: &Chunk,
    ) -> Result<(), Fault> {
        Ok(())
    }

    fn event<E: kymo_model::Event>(&mut self, event: &E, out: &mut Line) -> Result<(), Fault> {
        event.visit(&mut Encoder::new(out))
    }
}

/// Puts a head before the bytes of each event.
struct Frames {
    has_structure: bool,
}

mod kind {
    pub(super) const EVENT: u8 = 0;
    pub(super) const STREAM_BEGIN: u8 = 1;
    pub(super) const STREAM_END: u8 = 2;
    pub(super) const CHUNK_BEGIN: u8 = 3;
    pub(super) const CHUNK_END: u8 = 4;
    pub(super) const LOST_EVENTS: u8 = 5;
    pub(super) const LOST_CHUNKS: u8 = 6;
}

fn push_option(out: &mut Line, value: Option<u64>) {
    out.push_byte(value.is_some().into());
    out.push(&value.unwrap_or_default().to_le_bytes());
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
        message: &Shown,
        _of: &[AnyRecording],
        text: &[u8],
        out: &mut Line,
        _warnings: &mut Vec<u8>,
    ) {
        if !self.has_structure && message.kind != MessageKind::Event {
            return;
        }
        let mut reported = None;
        out.push_byte(match message.kind {
            MessageKind::Event => kind::EVENT,
            MessageKind::StreamBegin => kind::STREAM_BEGIN,
            MessageKind::StreamEnd => kind::STREAM_END,
            MessageKind::ChunkBegin => kind::CHUNK_BEGIN,
            MessageKind::ChunkEnd => kind::CHUNK_END,
            MessageKind::LostEvents(lost) => {
                reported = Some(lost);
                kind::LOST_EVENTS
            }
            MessageKind::LostChunks(lost) => {
                reported = Some(lost);
                kind::LOST_CHUNKS
            }
        });
        for number in [
            message.recording,
            message.stream,
            message.chunk,
            message.class,
        ] {
            out.push(&(number as u64).to_le_bytes());
        }
        let time = message.time.map(|time| time.as_nanos() as u64);
        push_option(out, time);
        push_option(out, message.ticks);
        if let Some(Lost { count, begin, end }) = reported {
            for value in [count, begin, end] {
                push_option(out, value);
            }
        }
        out.push(&(text.len() as u64).to_le_bytes());
        out.push(text);
    }
}

/// A part of what a run makes.
enum Part {
    Frames(Vec<u8>),
    Fault(FaultReport),
}

/// Passes parts on until the receiver is gone.
struct Sender<'s> {
    parts: &'s SyncSender<Part>,
    stopped: &'s AtomicBool,
}

impl Sender<'_> {
    fn send(&self, part: Part) -> io::Result<()> {
        self.parts.send(part).map_err(|_| {
            self.stopped.store(true, Ordering::Relaxed);
            io::ErrorKind::BrokenPipe.into()
        })
    }
}

impl Output for Sender<'_> {
    fn text(&mut self, text: &[u8]) -> io::Result<()> {
        self.send(Part::Frames(text.to_vec()))
    }

    fn fault(&mut self, fault: &FaultReport) -> ControlFlow<()> {
        match self.send(Part::Fault(fault.clone())) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }
}

/// What all events of recordings share.
#[derive(Debug)]
struct Shared {
    timeline: Timeline,
    classes: Vec<Vec<OnceLock<Arc<ClassInfo>>>>,
}

#[derive(Debug)]
struct ClassInfo {
    name: Py<PyString>,
    names: Names,
    /// The scope and the field of each name: the first scope that has it, and there the last field.
    members: HashMap<String, (FieldId, FieldId)>,
}

impl Shared {
    fn class(&self, py: Python<'_>, recording: usize, class: usize) -> Option<&Arc<ClassInfo>> {
        let info = self.classes.get(recording)?.get(class)?;
        Some(info.get_or_init(|| {
            let class = &self.timeline.recordings()[recording].event_classes()[class];
            let id = class.id.to_string();
            let name = class.name.as_deref().unwrap_or(&id);
            let mut members = HashMap::new();
            for root in SCOPES
                .iter()
                .rev()
                .filter_map(|&scope| class.schema.root(scope))
            {
                for &child in &class.schema.field(root).children {
                    if let Some(name) = &class.schema.field(child).name {
                        members.insert(name.to_string(), (root, child));
                    }
                }
            }
            Arc::new(ClassInfo {
                name: PyString::intern(py, name).unbind(),
                names: Names::new(py, &class.schema),
                members,
            })
        }))
    }
}

/// Events one by one, in the order of time.
#[pyclass(frozen, module = "kymo._kymo")]
pub(crate) struct Messages {
    shared: Arc<Shared>,
    strict: bool,
    truncations: Truncations,
    process: u32,
    /// The thread that reads: a warning or a signal may run code that asks for the next event.
    reads: Mutex<Option<ThreadId>>,
    source: Mutex<MessageSource>,
}

struct MessageSource {
    parts: Ahead<Part>,
    /// The part in hand, and where its next message begins.
    part: Arc<Vec<u8>>,
    next: usize,
    is_at_end: bool,
}

impl Messages {
    pub(crate) fn new(
        timeline: Timeline,
        filter: Filter,
        threads: usize,
        limit: Option<u64>,
        (has_structure, strict): (bool, bool),
        truncations: Truncations,
    ) -> PyResult<Self> {
        let opened = timeline.recordings().iter();
        let classes = opened.map(|recording| {
            recording
                .event_classes()
                .iter()
                .map(|_| OnceLock::new())
                .collect()
        });
        let shared = Arc::new(Shared {
            classes: classes.collect(),
            timeline: timeline.clone(),
        });
        let options = pipeline::Options {
            threads: threads.max(1),
            limit,
            ..pipeline::Options::default()
        };
        let parts = Ahead::spawn(move |parts| {
            let stopped = AtomicBool::new(false);
            let mut sender = Sender {
                parts: &parts,
                stopped: &stopped,
            };
            let mut frames = Frames { has_structure };
            let filter = &filter;
            let recordings = timeline.recordings();
            let select = &Watched::new(recordings, &filter, &|_| {}, Some(&stopped));
            // If it fails, nothing receives the parts any longer.
            let _ = pipeline::run(recordings, &select, &options, &mut frames, &mut sender);
        })?;
        Ok(Self {
            shared,
            strict,
            truncations,
            process: std::process::id(),
            reads: Mutex::default(),
            source: Mutex::new(MessageSource {
                parts,
                part: Arc::default(),
                next: 0,
                is_at_end: false,
            }),
        })
    }
}

#[pymethods]
impl Messages {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Message>> {
        if self.process != std::process::id() {
            return Err(forked());
        }
        let this = std::thread::current().id();
        let reader = || self.reads.lock().unwrap_or_else(PoisonError::into_inner);
        if *reader() == Some(this) {
            return Err(PyRuntimeError::new_err(
                "the iterator is asked for an event while it reads one",
            ));
        }
        let source = self.source.lock_py_attached(py);
        let mut source = source.unwrap_or_else(PoisonError::into_inner);
        *reader() = Some(this);
        let message = self.read(py, &mut source);
        *reader() = None;
        message
    }
}

impl Messages {
    fn read(&self, py: Python<'_>, source: &mut MessageSource) -> PyResult<Option<Message>> {
        while source.next >= source.part.len() {
            match source.parts.next(py)? {
                None => {
                    if !std::mem::replace(&mut source.is_at_end, true) {
                        for report in self.truncations.reports() {
                            self.damaged(py, report)?;
                        }
                    }
                    return Ok(None);
                }
                Some(Part::Frames(part)) => {
                    py.check_signals()?;
                    (source.part, source.next) = (Arc::new(part), 0);
                }
                Some(Part::Fault(fault)) => self.damaged(py, fault.to_string())?,
            }
        }
        let mut decoder = Decoder {
            bytes: &source.part[source.next..],
        };
        let message = Message::read(py, &mut decoder, &self.shared, &source.part)?;
        source.next = source.part.len() - decoder.bytes.len();
        Ok(Some(message))
    }

    /// Warns of damage, or raises it.
    fn damaged(&self, py: Python<'_>, report: String) -> PyResult<()> {
        match self.strict {
            true => Err(Error::new_err(report)),
            false => errors::warn(py, &report),
        }
    }
}

/// An event; or what else there is between events, where that is asked for.
#[pyclass(frozen, name = "Event", module = "kymo")]
pub(crate) struct Message {
    shared: Arc<Shared>,
    class: Option<Arc<ClassInfo>>,
    part: Arc<Vec<u8>>,
    /// Where the bytes of its values are in the part.
    begin: usize,
    end: usize,
    kind: u8,
    place: [usize; 4],
    time: Option<i64>,
    ticks: Option<u64>,
    lost: Option<Lost>,
    fields: PyOnceLock<Py<PyDict>>,
    /// How many fields were looked up without making all of them.
    looked_up: AtomicU8,
}

/// Whoever looks up more fields of an event than these gets them from a dictionary of all.
const FEW_FIELDS: u8 = 3;

fn option(decoder: &mut Decoder<'_>) -> PyResult<Option<u64>> {
    let is_there = decoder.flag()?;
    let value = decoder.u64()?;
    Ok(is_there.then_some(value))
}

impl Message {
    fn read(
        py: Python<'_>,
        decoder: &mut Decoder<'_>,
        shared: &Arc<Shared>,
        part: &Arc<Vec<u8>>,
    ) -> PyResult<Self> {
        let kind = decoder.byte()?;
        let mut place = [0; 4];
        for number in &mut place {
            *number = decoder.u64()? as usize;
        }
        let time = option(decoder)?.map(|nanos| nanos as i64);
        let ticks = option(decoder)?;
        let lost = match kind {
            kind::LOST_EVENTS | kind::LOST_CHUNKS => Some(Lost {
                count: option(decoder)?,
                begin: option(decoder)?,
                end: option(decoder)?,
            }),
            _ => None,
        };
        let length = decoder.u64()? as usize;
        let begin = part.len() - decoder.bytes.len();
        decoder.take(length)?;
        let class = match kind {
            kind::EVENT => shared.class(py, place[0], place[3]).cloned(),
            _ => None,
        };
        Ok(Self {
            shared: Arc::clone(shared),
            class,
            part: Arc::clone(part),
            begin,
            end: begin + length,
            kind,
            place,
            time,
            ticks,
            lost,
            fields: PyOnceLock::new(),
            looked_up: AtomicU8::new(0),
        })
    }

    fn class(&self) -> PyResult<&ClassInfo> {
        let class = self.class.as_deref();
        class.ok_or_else(|| Error::new_err("this message is not an event"))
    }

    fn decoder(&self) -> Decoder<'_> {
        Decoder {
            bytes: &self.part[self.begin..self.end],
        }
    }

    fn recording(&self) -> &AnyRecording {
        &self.shared.timeline.recordings()[self.place[0]]
    }

    /// The values of all scopes by their names; of two, that of the inner scope.
    fn all<'p>(&self, py: Python<'p>) -> PyResult<&Bound<'p, PyDict>> {
        let made = self.fields.get_or_try_init(py, || {
            let names = &self.class()?.names;
            let mut scopes = [None, None, None];
            let mut decoder = self.decoder();
            while let Some(root) = decoder.root()? {
                let value = decoder.value(py, names, root, Form::Plain)?;
                let scope = SCOPES
                    .iter()
                    .position(|&scope| names.schema.root(scope) == Some(root));
                if let (Some(scope), Ok(dict)) = (scope, value.cast_into::<PyDict>()) {
                    scopes[scope] = Some(dict);
                }
            }
            let mut scopes = scopes.into_iter().flatten();
            let all = scopes.next().unwrap_or_else(|| PyDict::new(py));
            for scope in scopes {
                for (name, value) in scope {
                    if !all.contains(&name)? {
                        all.set_item(name, value)?;
                    }
                }
            }
            Ok::<_, PyErr>(all.unbind())
        })?;
        Ok(made.bind(py))
    }

    /// The value of a field: made alone as long as few are asked for.
    fn field<'p>(
        &self,
        py: Python<'p>,
        name: &Bound<'p, PyAny>,
    ) -> PyResult<Option<Bound<'p, PyAny>>> {
        if let Ok(name) = name.cast_exact::<PyString>()
            && self.fields.get(py).is_none()
            && self.looked_up.fetch_add(1, Ordering::Relaxed) < FEW_FIELDS
        {
            let class = self.class()?;
            if let Ok(name) = name.to_str()
                && let Some(&place) = class.members.get(name)
                && let Some(value) = self.decoder().member(py, &class.names, place)?
            {
                return Ok(Some(value));
            }
        }
        self.all(py)?.get_item(name)
    }

    fn scope<'p>(
        &self,
        py: Python<'p>,
        scope: Scope,
        form: Form,
    ) -> PyResult<Option<Bound<'p, PyAny>>> {
        self.decoder().scope(py, &self.class()?.names, scope, form)
    }
}

#[pymethods]
impl Message {
    /// Name of the event.
    #[getter]
    fn name(&self, py: Python<'_>) -> PyResult<Py<PyString>> {
        Ok(self.class()?.name.clone_ref(py))
    }

    /// When it was, in nanoseconds: since 1970 if the clock counts from there.
    #[getter]
    fn timestamp(&self) -> Option<i64> {
        self.time
    }

    /// When it was, in ticks of its clock.
    #[getter]
    fn ticks(&self) -> Option<u64> {
        self.ticks
    }

    /// When it was, as a `datetime` in UTC; without a zone if the clock counts from an unknown origin.
    #[getter]
    fn time<'p>(&self, py: Python<'p>) -> PyResult<Option<Bound<'p, PyAny>>> {
        let Some(nanos) = self.time else {
            return Ok(None);
        };
        let clock = self.recording().streams()[self.place[1]].clock.as_ref();
        let is_dated = clock.is_some_and(|clock| clock.origin == kymo_time::Origin::UnixEpoch);
        let datetime = py.import("datetime")?;
        let zone = match is_dated {
            true => datetime.getattr("timezone")?.getattr("utc")?,
            false => py.None().into_bound(py),
        };
        let epoch = PyDict::new(py);
        epoch.set_item("tzinfo", zone)?;
        let epoch = datetime
            .getattr("datetime")?
            .call((1970, 1, 1), Some(&epoch))?;
        let since = PyDict::new(py);
        since.set_item("microseconds", nanos.div_euclid(1000))?;
        let since = datetime.getattr("timedelta")?.call((), Some(&since))?;
        epoch.add(since).map(Some)
    }

    /// Path of its recording.
    #[getter]
    fn recording_path(&self) -> std::ffi::OsString {
        self.recording().path().as_os_str().to_owned()
    }

    /// Position of its recording.
    #[getter]
    fn recording_index(&self) -> usize {
        self.place[0]
    }

    /// Position of its stream in its recording.
    #[getter]
    fn stream(&self) -> usize {
        self.place[1]
    }

    /// Position of its packet in its stream.
    #[getter]
    fn packet(&self) -> usize {
        self.place[2]
    }

    /// Position of its class in its recording.
    #[getter]
    fn class_index(&self) -> usize {
        self.place[3]
    }

    /// What it is: 0 is an event, others are for kymo.bt2.
    #[getter]
    fn _kind(&self) -> u8 {
        self.kind
    }

    /// How many were lost, and between which ticks.
    #[getter]
    fn _lost(&self) -> Option<(Option<u64>, Option<u64>, Option<u64>)> {
        self.lost.map(|lost| (lost.count, lost.begin, lost.end))
    }

    /// The values of a scope with all that is recorded.
    fn _scope<'p>(&self, py: Python<'p>, name: &str) -> PyResult<Option<Bound<'p, PyAny>>> {
        match Scope::ALL.into_iter().find(|scope| scope.name() == name) {
            Some(scope) => self.scope(py, scope, Form::Whole),
            None => Ok(None),
        }
    }

    /// The fields of its payload.
    #[getter]
    fn payload<'p>(&self, py: Python<'p>) -> PyResult<Option<Bound<'p, PyAny>>> {
        self.scope(py, Scope::Payload, Form::Plain)
    }

    /// The fields of the context of its class.
    #[getter]
    fn specific_context<'p>(&self, py: Python<'p>) -> PyResult<Option<Bound<'p, PyAny>>> {
        self.scope(py, Scope::SpecificContext, Form::Plain)
    }

    /// The fields of the context that all events of its stream have.
    #[getter]
    fn common_context<'p>(&self, py: Python<'p>) -> PyResult<Option<Bound<'p, PyAny>>> {
        self.scope(py, Scope::CommonContext, Form::Plain)
    }

    /// All fields by name; of two with the same name, that of the payload, else of the specific context.
    #[getter]
    fn fields(&self, py: Python<'_>) -> PyResult<Py<PyDict>> {
        Ok(self.all(py)?.copy()?.unbind())
    }

    /// Labels of an enumeration's, or flags of a bit map's, value.
    fn labels(&self, py: Python<'_>, name: &str) -> PyResult<Vec<String>> {
        let schema = &self.class()?.names.schema;
        let found = SCOPES
            .iter()
            .find_map(|&scope| schema.child(schema.root(scope)?, name));
        let Some(field) = found else {
            return Err(PyKeyError::new_err(name.to_owned()));
        };
        let value = self.all(py)?.get_item(name)?;
        let bits = match &value {
            Some(value) => match value.extract::<u64>() {
                Ok(bits) => bits,
                Err(_) => value.extract::<i64>()? as u64,
            },
            None => return Err(PyKeyError::new_err(name.to_owned())),
        };
        Ok(match &schema.field(field).kind {
            Kind::Uint { labels, .. } | Kind::Sint { labels, .. } => {
                let labels = labels.iter().flat_map(|labels| labels.of(bits));
                labels.map(str::to_owned).collect()
            }
            Kind::BitMap { flags, .. } => {
                let set = flags.iter().filter(|flag| flag.bits() & bits != 0);
                set.map(|flag| flag.name.to_string()).collect()
            }
            _ => Vec::new(),
        })
    }

    fn __getitem__<'p>(
        &self,
        py: Python<'p>,
        name: Bound<'p, PyAny>,
    ) -> PyResult<Bound<'p, PyAny>> {
        match self.field(py, &name)? {
            Some(value) => Ok(value),
            None => Err(PyKeyError::new_err(name.unbind())),
        }
    }

    /// The value of a field, or `default` if there is no such field.
    #[pyo3(signature = (name, default=None))]
    fn get<'p>(
        &self,
        py: Python<'p>,
        name: &Bound<'p, PyString>,
        default: Option<Bound<'p, PyAny>>,
    ) -> PyResult<Option<Bound<'p, PyAny>>> {
        Ok(self.field(py, name)?.or(default))
    }

    fn __contains__(&self, py: Python<'_>, name: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.all(py)?.contains(name)
    }

    fn __iter__<'p>(&self, py: Python<'p>) -> PyResult<Bound<'p, PyIterator>> {
        self.all(py)?.try_iter()
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.all(py)?.len())
    }

    /// Names of the fields.
    fn keys<'p>(&self, py: Python<'p>) -> PyResult<Bound<'p, pyo3::types::PyList>> {
        Ok(self.all(py)?.keys())
    }

    /// Names and values of the fields.
    fn items<'p>(&self, py: Python<'p>) -> PyResult<Bound<'p, pyo3::types::PyList>> {
        Ok(self.all(py)?.items())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let Some(class) = &self.class else {
            return Ok("<kymo.Event: not an event>".to_owned());
        };
        let name = class.name.to_str(py)?;
        let fields = self.all(py)?.repr()?;
        let time = self.time.map_or("None".to_owned(), |time| time.to_string());
        Ok(format!(
            "<kymo.Event {name} timestamp={time} {}>",
            fields.to_str()?
        ))
    }
}

/// The fields of a packet's header and context.
pub(crate) fn packet<'p>(
    py: Python<'p>,
    recording: &AnyRecording,
    (stream, number): (usize, usize),
    scope: Scope,
) -> PyResult<Option<Bound<'p, PyAny>>> {
    let (Some(info), Some(chunk)) = (
        recording.streams().get(stream),
        recording.chunk(stream, number),
    ) else {
        return Ok(None);
    };
    let mut line = Line::new();
    recording
        .visit_packet(&chunk, &mut Encoder::new(&mut line))
        .map_err(|fault| Error::new_err(recording.report(&chunk, None, fault).to_string()))?;
    let names = Names::new(py, &info.packet_schema);
    let decoder = Decoder {
        bytes: line.as_bytes(),
    };
    decoder.scope(py, &names, scope, Form::Whole)
}

/// The damage that opening has shown.
pub(crate) fn faults(py: Python<'_>, timeline: &Timeline) -> PyResult<Vec<Py<PyDict>>> {
    timeline
        .faults()
        .map(|fault| errors::fault(py, fault))
        .collect()
}
