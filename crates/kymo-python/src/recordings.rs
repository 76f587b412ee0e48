//! Recordings that are open.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use kymo::filter::Moment;
use kymo::open::{Alignment, Error as OpeningError, Options, are_relative, open_aligned};
use kymo::report::Info;
use kymo::timeline::{Query, Timeline};
use kymo_draw::{Fonts, RenderOptions};
use kymo_graph::{Choice, Look, NoNotices, Zone, page, panels};
use kymo_model::{Recording, Scope, Shift};
use kymo_text::Line;
use kymo_time::Duration;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::analyses;
use crate::errors::{self, Error, OpenError, QueryError};
use crate::forks::{Interrupted, interruptible};
use crate::messages::Messages;
use crate::selection::Selection;
use crate::tables::Table;
use crate::truncated::Truncations;
use crate::values::{Decoder, Encoder, Form, Names, describe};

/// Recordings on one time line; made by `kymo.open`.
#[pyclass(frozen, module = "kymo._kymo", subclass)]
pub(crate) struct Recordings {
    timeline: RwLock<Option<Timeline>>,
    pub(crate) gmt: bool,
    pub(crate) is_relative: bool,
    threads: usize,
    truncations: Truncations,
}

/// Opens paths; returns the recordings, and what could not be opened.
#[pyfunction]
#[pyo3(signature = (paths, *, offsets, begins, align_event, utc, threads, clock_offset_ns))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn open(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    offsets: Vec<(PathBuf, String)>,
    begins: Vec<(PathBuf, String)>,
    align_event: Option<String>,
    utc: bool,
    threads: Option<usize>,
    clock_offset_ns: i64,
) -> PyResult<(Recordings, Vec<String>)> {
    let wrong = |error: &dyn std::fmt::Display| QueryError::new_err(error.to_string());
    let mut alignment = Alignment {
        event: align_event,
        ..Alignment::default()
    };
    for (path, offset) in offsets {
        let offset: Duration = offset.parse().map_err(|error| wrong(&error))?;
        alignment.offsets.push((path, offset));
    }
    for (path, begin) in begins {
        let begin: Moment = begin.parse().map_err(|error| wrong(&error))?;
        alignment.begins.push((path, begin));
    }
    let options = Options {
        shift: Shift {
            nanos: clock_offset_ns.into(),
            from_unix_epoch: false,
        },
        formats: kymo_arrow::FORMATS,
        ..Options::default()
    };
    let truncations = Truncations::watch();
    let opened = interruptible(py, Interrupted::Left(&|| ()), move || {
        open_aligned(&paths, &options, &alignment, utc)
    })?
    .map_err(|error| OpenError::new_err(error.to_string()))?;
    let text = |error: &OpeningError| match error {
        OpeningError::Trace(kymo::open::OpenError::Metadata { error, .. }) => {
            error.render(false).trim_end().to_owned()
        }
        error => error.to_string(),
    };
    let mut problems: Vec<String> = opened.errors.iter().map(text).collect();
    if opened.recordings.is_empty() {
        return Err(OpenError::new_err(problems.join("\n")));
    }
    problems.extend(opened.warnings);
    let is_relative = are_relative(&opened.recordings);
    let truncations = truncations.within(&opened.recordings);
    let recordings = Recordings {
        timeline: RwLock::new(Some(Timeline::new(opened.recordings))),
        gmt: utc || is_relative,
        is_relative,
        threads: threads.unwrap_or_else(|| Query::default().threads).max(1),
        truncations,
    };
    Ok((recordings, problems))
}

impl Recordings {
    pub(crate) fn timeline(&self) -> PyResult<Timeline> {
        let timeline = self.timeline.read().unwrap_or_else(PoisonError::into_inner);
        timeline
            .clone()
            .ok_or_else(|| PyValueError::new_err("the recordings are closed"))
    }

    pub(crate) fn threads(&self, reported: Option<usize>) -> usize {
        reported.unwrap_or(self.threads).max(1)
    }

    /// Reads in a thread that Ctrl-C leaves, and warns of files that were truncated.
    fn read<T: Send + 'static>(
        &self,
        py: Python<'_>,
        stop: &dyn Fn(),
        work: impl FnOnce() -> T + Send + 'static,
    ) -> PyResult<T> {
        let made = interruptible(py, Interrupted::Left(stop), work)?;
        for report in self.truncations.reports() {
            errors::warn(py, &report)?;
        }
        Ok(made)
    }

    fn query(
        &self,
        timeline: &Timeline,
        selection: &Selection,
        threads: Option<usize>,
    ) -> PyResult<Query> {
        let mut query = Query::default();
        query.filter = selection.query();
        query.range = selection.range(timeline.recordings(), self.gmt)?;
        query.threads = self.threads(threads);
        Ok(query)
    }
}

#[pymethods]
impl Recordings {
    /// Forgets the recordings. What is being read goes on.
    fn close(&self) {
        let mut timeline = self
            .timeline
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *timeline = None;
    }

    /// Whether times count from the zero of clocks without an origin.
    #[getter]
    fn is_relative(&self) -> bool {
        self.is_relative
    }

    /// What `kymo info --json` prints.
    fn _info(&self, py: Python<'_>) -> PyResult<Vec<u8>> {
        let timeline = self.timeline()?;
        self.read(py, &|| (), move || {
            Info::new(timeline.recordings()).to_json()
        })
    }

    /// Paths of the recordings.
    fn _paths(&self) -> PyResult<Vec<std::ffi::OsString>> {
        let timeline = self.timeline()?;
        let recordings = timeline.recordings().iter();
        Ok(recordings
            .map(|recording| recording.path().as_os_str().to_owned())
            .collect())
    }

    /// Event classes: recording, position, name, number, number of the stream class, log level.
    #[allow(clippy::type_complexity)]
    fn _classes(
        &self,
    ) -> PyResult<
        Vec<(
            usize,
            usize,
            Option<String>,
            u64,
            u64,
            Option<i64>,
            Option<String>,
        )>,
    > {
        let timeline = self.timeline()?;
        let mut all = Vec::new();
        for (number, recording) in timeline.recordings().iter().enumerate() {
            for (class, info) in recording.event_classes().iter().enumerate() {
                let name = info.name.as_deref().map(str::to_owned);
                let uri = info.emf_uri.as_deref().map(str::to_owned);
                all.push((
                    number,
                    class,
                    name,
                    info.id,
                    info.stream_class,
                    info.log_level,
                    uri,
                ));
            }
        }
        Ok(all)
    }

    /// The fields of a scope of an event class.
    fn _class_fields<'p>(
        &self,
        py: Python<'p>,
        recording: usize,
        class: usize,
        scope: &str,
    ) -> PyResult<Option<Bound<'p, PyDict>>> {
        let timeline = self.timeline()?;
        let classes = timeline
            .recordings()
            .get(recording)
            .map(Recording::event_classes);
        let Some(info) = classes.and_then(|classes| classes.get(class)) else {
            return Ok(None);
        };
        let scope = Scope::ALL.into_iter().find(|known| known.name() == scope);
        let root = scope.and_then(|scope| info.schema.root(scope));
        root.map(|root| describe(py, &info.schema, root))
            .transpose()
    }

    /// The fields of the packets of a stream.
    fn _packet_fields<'p>(
        &self,
        py: Python<'p>,
        recording: usize,
        stream: usize,
    ) -> PyResult<Option<Bound<'p, PyDict>>> {
        let timeline = self.timeline()?;
        let streams = timeline.recordings().get(recording).map(Recording::streams);
        let Some(info) = streams.and_then(|streams| streams.get(stream)) else {
            return Ok(None);
        };
        let Some(root) = info.packet_schema.root(Scope::PacketContext) else {
            return Ok(None);
        };
        let recording = &timeline.recordings()[recording];
        let described = describe(py, &info.packet_schema, root)?;
        // Sizes, times and counters are the reader's business.
        let children = PyList::empty(py);
        for &child in &info.packet_schema.field(root).children {
            if !recording.is_packet_bookkeeping(stream, child) {
                let name = info.packet_schema.field(child).name.as_deref();
                children.append((name, describe(py, &info.packet_schema, child)?))?;
            }
        }
        described.set_item("children", children)?;
        let has = |name: &str| {
            let mut fields = info.packet_schema.field(root).children.iter();
            fields.any(|&child| info.packet_schema.field(child).name.as_deref() == Some(name))
        };
        described.set_item("has_begin", has("timestamp_begin"))?;
        described.set_item("has_end", has("timestamp_end"))?;
        Ok(Some(described))
    }

    /// The packet context of a packet.
    fn _packet<'p>(
        &self,
        py: Python<'p>,
        recording: usize,
        stream: usize,
        packet: usize,
    ) -> PyResult<Option<Bound<'p, PyAny>>> {
        let timeline = self.timeline()?;
        let Some(recording) = timeline.recordings().get(recording) else {
            return Ok(None);
        };
        let (Some(info), Some(chunk)) = (
            recording.streams().get(stream),
            recording.chunk(stream, packet),
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
        decoder.scope(py, &names, Scope::PacketContext, Form::Whole)
    }

    /// Tracks that are known from the metadata: recording, path, name, unit.
    #[allow(clippy::type_complexity)]
    fn _tracks(&self) -> PyResult<Vec<(usize, String, String, Option<String>)>> {
        let timeline = self.timeline()?;
        let mut all = Vec::new();
        for (number, recording) in timeline.recordings().iter().enumerate() {
            for track in recording.tracks() {
                let unit = track.unit.as_deref().map(str::to_owned);
                all.push((number, track.path.to_string(), track.name.to_string(), unit));
            }
        }
        Ok(all)
    }

    /// Damage that opening has shown.
    fn _faults(&self, py: Python<'_>) -> PyResult<Vec<Py<PyDict>>> {
        let timeline = self.timeline()?;
        let faults = timeline.faults();
        faults.map(|fault| errors::fault(py, fault)).collect()
    }

    /// A table of events.
    #[pyo3(signature = (selection, columns, limit, threads, batch_rows))]
    fn _events(
        &self,
        selection: Selection,
        columns: Option<Vec<String>>,
        limit: Option<u64>,
        threads: Option<usize>,
        batch_rows: Option<usize>,
    ) -> PyResult<Table> {
        let timeline = self.timeline()?;
        // Errors are reported now, and not when rows are requested.
        selection.filter(timeline.recordings(), self.gmt)?;
        let mut query = self.query(&timeline, &selection, threads)?;
        query.limit = limit;
        query.batch_rows = batch_rows.unwrap_or(1 << 16).max(1);
        let table = match columns {
            None => kymo_arrow::EventTable::new(timeline, query),
            Some(names) => {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                kymo_arrow::EventTable::with_columns(timeline, query, &names)
            }
        };
        let table = table.map(|table| Table::events(table, self.truncations.clone()));
        table.map_err(|error| match error {
            kymo::timeline::QueryError::Filter(error) => errors::filter(&error, "columns"),
            error => errors::rows(&error),
        })
    }

    /// A table of samples.
    #[pyo3(signature = (selection, limit, threads))]
    fn _samples(
        &self,
        selection: Selection,
        limit: Option<u64>,
        threads: Option<usize>,
    ) -> PyResult<Table> {
        let timeline = self.timeline()?;
        let mut query = self.query(&timeline, &selection, threads)?;
        query.limit = limit;
        Ok(Table::samples(timeline, query, self.truncations.clone()))
    }

    /// Events one by one.
    #[pyo3(signature = (selection, limit, threads, structure, strict))]
    fn _messages(
        &self,
        selection: Selection,
        limit: Option<u64>,
        threads: Option<usize>,
        structure: bool,
        strict: bool,
    ) -> PyResult<Messages> {
        let timeline = self.timeline()?;
        let filter = selection.filter(timeline.recordings(), self.gmt)?;
        Messages::new(
            timeline,
            filter,
            self.threads(threads),
            limit,
            (structure, strict),
            self.truncations.clone(),
        )
    }

    /// What happened on tracks in spans of time.
    #[pyo3(signature = (selection, width))]
    fn _summary<'p>(
        &self,
        py: Python<'p>,
        selection: Selection,
        width: usize,
    ) -> PyResult<Bound<'p, PyDict>> {
        let timeline = self.timeline()?;
        let range = selection.range(timeline.recordings(), self.gmt)?;
        let summary = self.read(py, &|| (), move || {
            timeline.summary_of_rows(range, None, width.clamp(1, 1 << 16))
        })?;
        let dict = PyDict::new(py);
        dict.set_item("span", summary.span)?;
        dict.set_item("untimed", summary.untimed)?;
        let tracks = PyList::empty(py);
        for summed in &summary.tracks {
            let track = PyDict::new(py);
            track.set_item("recording", summed.recording)?;
            track.set_item("track", summed.track.path.to_string())?;
            track.set_item("name", &*summed.track.name)?;
            track.set_item("unit", summed.track.unit.as_deref())?;
            track.set_item("begin", summed.begin)?;
            let bins = PyList::empty(py);
            for (position, bin) in &summed.bins {
                let row = PyDict::new(py);
                let begin =
                    i128::from(summed.begin) + i128::from(*position) * i128::from(summary.span);
                row.set_item("begin", begin)?;
                row.set_item("count", bin.count)?;
                if let Some(values) = &bin.values {
                    row.set_item("min", values.min)?;
                    row.set_item("max", values.max)?;
                    row.set_item("mean", values.sum / values.count as f64)?;
                    row.set_item("last", values.last)?;
                }
                bins.append(row)?;
            }
            track.set_item("bins", bins)?;
            tracks.append(track)?;
        }
        dict.set_item("tracks", tracks)?;
        Ok(dict)
    }

    /// A picture of the recordings as SVG.
    #[pyo3(signature = (selection, per, width, height, title))]
    fn _svg(
        &self,
        py: Python<'_>,
        selection: Selection,
        per: Option<String>,
        width: Option<u32>,
        height: u32,
        title: Option<String>,
    ) -> PyResult<String> {
        let timeline = self.timeline()?;
        let choice = Choice {
            filter: selection.query(),
            range: selection.range(timeline.recordings(), self.gmt)?,
            per: analyses::names(per.as_ref(), "per")?,
            threads: self.threads(None),
            ..Choice::default()
        };
        let look = Look {
            width,
            height,
            title,
            is_dark: false,
            zone: Zone::new(self.gmt),
        };
        let drawn = self.read(py, &|| (), move || {
            let panels = panels(&timeline, &choice, None, &mut NoNotices)
                .map_err(|error| error.to_string())?;
            let fonts = Fonts::new();
            let picture = page(&panels, &look, &fonts).map_err(|error| error.to_string())?;
            let options = RenderOptions {
                svg_text: true,
                ..RenderOptions::default()
            };
            kymo_draw::svg(&picture, &fonts, &options).map_err(|error| error.to_string())
        })?;
        let svg = drawn.map_err(Error::new_err::<String>)?;
        let svg = String::from_utf8_lossy(&svg);
        // A declaration of XML is only for files of their own.
        Ok(svg[svg.find("<svg").unwrap_or(0)..].to_owned())
    }

    /// An analysis: what `kymo KIND --json` prints.
    #[pyo3(signature = (kind, selection, options, threads))]
    fn _analyse(
        &self,
        py: Python<'_>,
        kind: &str,
        selection: Selection,
        options: analyses::AnalysisOptions,
        threads: Option<usize>,
    ) -> PyResult<Vec<u8>> {
        let timeline = self.timeline()?;
        let filter = selection.filter(timeline.recordings(), self.gmt)?;
        let analysis = analyses::Analysis::new(kind, options)?;
        let stopped = Arc::new(AtomicBool::new(false));
        let (flag, threads) = (Arc::clone(&stopped), self.threads(threads));
        let stop = || stopped.store(true, Ordering::Relaxed);
        self.read(py, &stop, move || {
            analysis.run(timeline.recordings(), &filter, threads, &flag)
        })?
        .map_err(|error| analyses::failed(&error))
    }
}
