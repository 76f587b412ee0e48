//! Events, and what else recordings report between them: objects that look up values in what a run wrote.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

use kymo::AnyRecording;
use kymo::timeline::Timeline;
use kymo_model::{EventClass, FieldId, Kind, Recording, Scope};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyIterator, PyString};

use crate::errors::Error;
use crate::frames::{self, Head, kind};
use crate::values::{Decoder, Form, Names};

/// The scopes of an event, in the order in which names are looked up.
const SCOPES: [Scope; 3] = [Scope::Payload, Scope::SpecificContext, Scope::CommonContext];

/// What all events of recordings share.
#[derive(Debug)]
struct Shared {
    timeline: Timeline,
    classes: Vec<Vec<OnceLock<ClassInfo>>>,
}

impl Shared {
    fn class(&self, py: Python<'_>, recording: usize, class: usize) -> Option<&ClassInfo> {
        let info = self.classes.get(recording)?.get(class)?;
        Some(info.get_or_init(|| {
            ClassInfo::new(
                py,
                &self.timeline.recordings()[recording].event_classes()[class],
            )
        }))
    }
}

/// A class of events, and its names as Python's strings.
#[derive(Debug)]
struct ClassInfo {
    name: Py<PyString>,
    names: Names,
    /// The fields of all scopes: of several with the same name, the first one counts.
    members: Vec<Member>,
}

/// A field of a scope.
#[derive(Debug)]
struct Member {
    name: Py<PyString>,
    scope: FieldId,
    field: FieldId,
}

impl ClassInfo {
    fn new(py: Python<'_>, class: &EventClass) -> Self {
        let id = class.id.to_string();
        let name = class.name.as_deref().unwrap_or(&id);
        let names = Names::new(py, &class.schema);
        let scopes = SCOPES.iter().filter_map(|&scope| class.schema.root(scope));
        let members = scopes.flat_map(|scope| {
            // In a dictionary, the last of two would stay.
            let fields = class.schema.field(scope).children.iter().rev();
            let names = &names;
            fields.filter_map(move |&field| {
                Some(Member {
                    name: names.get(field)?.clone_ref(py),
                    scope,
                    field,
                })
            })
        });
        Self {
            name: PyString::intern(py, name).unbind(),
            members: members.collect(),
            names,
        }
    }

    /// The scope and the field with a name, in all scopes or one.
    fn member(
        &self,
        name: &Bound<'_, PyString>,
        scope: Option<FieldId>,
    ) -> Option<(FieldId, FieldId)> {
        let members = self.members.iter();
        let mut members = members.filter(|member| scope.is_none_or(|scope| scope == member.scope));
        // Names that are written in programs are interned, as those of fields are.
        let same = |member: &&Member| member.name.as_ptr() == name.as_ptr();
        let found = members.clone().find(same).or_else(|| {
            let name = name.to_str().ok()?;
            let field = |member: &Member| self.names.schema.field(member.field);
            members.find(|member| field(member).name.as_deref() == Some(name))
        });
        found.map(|member| (member.scope, member.field))
    }
}

/// Messages as a run wrote them.
pub(crate) struct Batch {
    shared: Arc<Shared>,
    frames: Vec<u8>,
}

impl Batch {
    /// No messages yet.
    pub(crate) fn new(timeline: Timeline) -> Self {
        let classes = |recording: &AnyRecording| {
            let classes = recording.event_classes().iter();
            classes.map(|_| OnceLock::new()).collect()
        };
        let classes = timeline.recordings().iter().map(classes).collect();
        Self {
            shared: Arc::new(Shared { timeline, classes }),
            frames: Vec::new(),
        }
    }

    /// Messages of the same recordings.
    pub(crate) fn with(&self, frames: Vec<u8>) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            frames,
        }
    }

    /// The message that begins at a byte, and where the next one begins.
    #[inline]
    pub(crate) fn message(self: &Arc<Self>, begin: usize) -> Option<(Message, usize)> {
        let (head, _) = Head::split(self.frames.get(begin..)?)?;
        let message = Message {
            batch: Arc::clone(self),
            begin,
            fields: PyOnceLock::new(),
            looked_up: AtomicU8::new(0),
        };
        Some((message, begin + head.size))
    }
}

/// An event; or what else there is between events, where that is asked for.
#[pyclass(frozen, name = "Event", module = "kymo")]
pub(crate) struct Message {
    batch: Arc<Batch>,
    /// Where it begins in the batch.
    begin: usize,
    fields: PyOnceLock<Py<PyDict>>,
    /// How many fields were looked up without making all of them.
    looked_up: AtomicU8,
}

/// Whoever looks up more fields of an event than these gets them from a dictionary of all.
const FEW_FIELDS: u8 = 3;

impl Message {
    /// What it is, and the bytes of its values.
    #[inline]
    fn split(&self) -> PyResult<(Head, &[u8])> {
        let split = || {
            let (head, values) = Head::split(self.batch.frames.get(self.begin..)?)?;
            let values = values.get(..head.size.checked_sub(Head::SIZE)?)?;
            Some((head, values))
        };
        split().ok_or_else(|| Error::new_err("a message is cut"))
    }

    /// The class, and what reads the values.
    #[inline]
    fn event(&self, py: Python<'_>) -> PyResult<(&ClassInfo, Decoder<'_>)> {
        let (head, bytes) = self.split()?;
        let class = match head.kind {
            kind::EVENT => self.batch.shared.class(py, head.recording, head.class),
            _ => None,
        };
        let class = class.ok_or_else(|| Error::new_err("this message is not an event"))?;
        Ok((class, Decoder { bytes }))
    }

    fn recording(&self) -> PyResult<&AnyRecording> {
        let number = self.split()?.0.recording;
        Ok(&self.batch.shared.timeline.recordings()[number])
    }

    /// The values of all scopes by their names; of two, that of the inner scope.
    fn all<'p>(&self, py: Python<'p>) -> PyResult<&Bound<'p, PyDict>> {
        let made = self.fields.get_or_try_init(py, || {
            let (class, mut decoder) = self.event(py)?;
            let names = &class.names;
            let mut scopes = [None, None, None];
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
        {
            let looked_up = self.looked_up.load(Ordering::Relaxed);
            if looked_up < FEW_FIELDS {
                self.looked_up.store(looked_up + 1, Ordering::Relaxed);
                let (class, decoder) = self.event(py)?;
                if let Some(member) = class.member(name, None)
                    && let Some(value) = decoder.member(py, &class.names, member, Form::Plain)?
                {
                    return Ok(Some(value));
                }
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
        let (class, decoder) = self.event(py)?;
        decoder.scope(py, &class.names, scope, form)
    }
}

#[pymethods]
impl Message {
    /// Name of the event.
    #[getter]
    fn name(&self, py: Python<'_>) -> PyResult<Py<PyString>> {
        Ok(self.event(py)?.0.name.clone_ref(py))
    }

    /// When it was, in nanoseconds: since 1970 if the clock counts from there.
    #[getter]
    fn timestamp(&self) -> PyResult<Option<i64>> {
        Ok(self.split()?.0.time)
    }

    /// When it was, in ticks of its clock.
    #[getter]
    fn ticks(&self) -> PyResult<Option<u64>> {
        Ok(self.split()?.0.ticks)
    }

    /// When it was, as a `datetime` in UTC; without a zone if the clock counts from an unknown origin.
    #[getter]
    fn time<'p>(&self, py: Python<'p>) -> PyResult<Option<Bound<'p, PyAny>>> {
        let (head, _) = self.split()?;
        let Some(nanos) = head.time else {
            return Ok(None);
        };
        let clock = self.recording()?.streams()[head.stream].clock.as_ref();
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
    fn recording_path(&self) -> PyResult<std::ffi::OsString> {
        Ok(self.recording()?.path().as_os_str().to_owned())
    }

    /// Position of its recording.
    #[getter]
    fn recording_index(&self) -> PyResult<usize> {
        Ok(self.split()?.0.recording)
    }

    /// Position of its stream in its recording.
    #[getter]
    fn stream(&self) -> PyResult<usize> {
        Ok(self.split()?.0.stream)
    }

    /// Position of its packet in its stream.
    #[getter]
    fn packet(&self) -> PyResult<usize> {
        Ok(self.split()?.0.chunk)
    }

    /// Position of its class in its recording.
    #[getter]
    fn class_index(&self) -> PyResult<usize> {
        Ok(self.split()?.0.class)
    }

    /// What it is: 0 is an event, others are for kymo.bt2.
    #[getter]
    fn _kind(&self) -> PyResult<u8> {
        Ok(self.split()?.0.kind)
    }

    /// How many were lost, and between which ticks.
    #[getter]
    fn _lost(&self) -> PyResult<(Option<u64>, Option<u64>, Option<u64>)> {
        let (head, bytes) = self.split()?;
        let lost = frames::lost(&head, bytes)?;
        Ok((lost.count, lost.begin, lost.end))
    }

    /// The values of a scope with all that is recorded.
    fn _scope<'p>(&self, py: Python<'p>, name: &str) -> PyResult<Option<Bound<'p, PyAny>>> {
        match Scope::ALL.into_iter().find(|scope| scope.name() == name) {
            Some(scope) => self.scope(py, scope, Form::Whole),
            None => Ok(None),
        }
    }

    /// The value of a member of a scope with all that is recorded.
    fn _member<'p>(
        &self,
        py: Python<'p>,
        scope: &str,
        name: &Bound<'p, PyString>,
    ) -> PyResult<Option<Bound<'p, PyAny>>> {
        let (class, decoder) = self.event(py)?;
        let scope = Scope::ALL.into_iter().find(|known| known.name() == scope);
        let root = scope.and_then(|scope| class.names.schema.root(scope));
        match root.and_then(|root| class.member(name, Some(root))) {
            Some(member) => decoder.member(py, &class.names, member, Form::Whole),
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
        let schema = &self.event(py)?.0.names.schema;
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

    /// The value of a field, or `default` if the event does not have it.
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
        let Ok((class, _)) = self.event(py) else {
            return Ok("<kymo.Event: not an event>".to_owned());
        };
        let name = class.name.to_str(py)?;
        let fields = self.all(py)?.repr()?;
        let time = self
            .timestamp()?
            .map_or("None".to_owned(), |time| time.to_string());
        Ok(format!(
            "<kymo.Event {name} timestamp={time} {}>",
            fields.to_str()?
        ))
    }
}
