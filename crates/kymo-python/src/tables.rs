//! Rows as Arrow's streams, and as NumPy's buffers.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampNanosecondType,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrowPrimitiveType, RecordBatch, RecordBatchReader};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, SchemaRef};
use kymo::timeline::{Notice, NoticeKind, Query, Timeline};
use kymo_arrow::EventReader;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyCapsule, PyList};

use crate::errors::{self, Error};
use crate::forks::{OfProcess, interruptible};

/// Damage that the last reading has met.
type Damage = Arc<Mutex<Vec<String>>>;

/// A stream of Arrow's C interface.
fn capsule<'p>(
    py: Python<'p>,
    reader: impl RecordBatchReader + Send + 'static,
) -> PyResult<Bound<'p, PyCapsule>> {
    let stream = FFI_ArrowArrayStream::new(Box::new(reader));
    PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
}

/// A schema of Arrow's C interface.
fn schema_capsule<'p>(py: Python<'p>, schema: &SchemaRef) -> PyResult<Bound<'p, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(&**schema).map_err(arrow)?;
    PyCapsule::new_with_value(py, schema, c"arrow_schema")
}

fn arrow(error: ArrowError) -> PyErr {
    Error::new_err(error.to_string())
}

/// Names and types of columns.
fn fields(schema: &SchemaRef) -> Vec<(String, String)> {
    let fields = schema.fields().iter();
    fields
        .map(|field| (field.name().clone(), field.data_type().to_string()))
        .collect()
}

fn note(damage: &Damage, notices: &[Notice]) {
    let mut damage = damage.lock().unwrap_or_else(PoisonError::into_inner);
    for notice in notices {
        if let NoticeKind::Fault(fault) = &notice.kind {
            damage.push(fault.to_string());
        }
    }
}

/// Rows of events, read anew each time they are asked for.
#[pyclass(frozen, module = "kymo._kymo", subclass)]
pub(crate) struct EventTable {
    table: kymo_arrow::EventTable,
    damage: Damage,
}

impl EventTable {
    pub(crate) fn new(table: kymo_arrow::EventTable) -> Self {
        Self {
            table,
            damage: Damage::default(),
        }
    }

    fn reader(&self) -> PyResult<Reader> {
        self.damage
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
        let events = self.table.read().map_err(|error| errors::rows(&error))?;
        Ok(Reader {
            schema: Arc::clone(self.table.schema()),
            events: OfProcess::new(events),
            damage: Arc::clone(&self.damage),
        })
    }
}

/// Reads a table in any thread.
struct Reader {
    schema: SchemaRef,
    events: OfProcess<EventReader>,
    damage: Damage,
}

impl Iterator for Reader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let Some(events) = self.events.get() else {
            let message = "this stream was made before the process was forked: create it again";
            return Some(Err(ArrowError::InvalidArgumentError(message.to_owned())));
        };
        let batch = events.next();
        note(&self.damage, &events.take_notices());
        batch
    }
}

impl RecordBatchReader for Reader {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

#[pymethods]
impl EventTable {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'p>(
        &self,
        py: Python<'p>,
        requested_schema: Option<Bound<'p, PyAny>>,
    ) -> PyResult<Bound<'p, PyCapsule>> {
        // A wish that may be ignored.
        drop(requested_schema);
        capsule(py, self.reader()?)
    }

    fn __arrow_c_schema__<'p>(&self, py: Python<'p>) -> PyResult<Bound<'p, PyCapsule>> {
        schema_capsule(py, self.table.schema())
    }

    /// Names and Arrow's types of the columns.
    fn _fields(&self) -> Vec<(String, String)> {
        fields(self.table.schema())
    }

    /// Damage that the last reading has met and skipped.
    #[getter]
    fn damage(&self) -> Vec<String> {
        let damage = self.damage.lock().unwrap_or_else(PoisonError::into_inner);
        damage.clone()
    }

    /// Columns as buffers: of each its name, NumPy's type, values, and which of them are null.
    #[allow(clippy::type_complexity)]
    fn _numpy<'p>(
        &self,
        py: Python<'p>,
    ) -> PyResult<
        Vec<(
            String,
            String,
            Bound<'p, PyAny>,
            Option<Bound<'p, PyByteArray>>,
        )>,
    > {
        let reader = self.reader()?;
        let stopped = std::sync::atomic::AtomicBool::new(false);
        let stop = || stopped.store(true, std::sync::atomic::Ordering::Relaxed);
        let batches = interruptible(py, stop, || {
            let going = |_: &_| !stopped.load(std::sync::atomic::Ordering::Relaxed);
            reader.take_while(going).collect::<Result<Vec<_>, _>>()
        })?
        .map_err(arrow)?;
        let schema = self.table.schema();
        let columns = schema.fields().iter().enumerate().map(|(position, field)| {
            let arrays: Vec<&dyn Array> = batches.iter().map(|of| &**of.column(position)).collect();
            let (kind, values) = numpy(py, field.data_type(), &arrays)?;
            let has_nulls = arrays.iter().any(|of| of.null_count() > 0);
            let nulls = has_nulls.then(|| {
                let nulls = arrays
                    .iter()
                    .flat_map(|of| (0..of.len()).map(|row| u8::from(of.is_null(row))));
                PyByteArray::new(py, &nulls.collect::<Vec<u8>>())
            });
            Ok((field.name().clone(), kind.to_owned(), values, nulls))
        });
        columns.collect()
    }
}

/// The values of arrays one after the other: the type of NumPy, and bytes, or a list of objects.
fn numpy<'p>(
    py: Python<'p>,
    of: &DataType,
    arrays: &[&dyn Array],
) -> PyResult<(&'static str, Bound<'p, PyAny>)> {
    macro_rules! numbers {
        ($($pattern:pat => $type:ty, $kind:literal;)*) => {
            match of {
                $($pattern => return Ok(($kind, bytes::<$type>(py, arrays)?)),)*
                _ => {}
            }
        };
    }
    numbers! {
        DataType::UInt8 => UInt8Type, "|u1";
        DataType::UInt16 => UInt16Type, "=u2";
        DataType::UInt32 => UInt32Type, "=u4";
        DataType::UInt64 => UInt64Type, "=u8";
        DataType::Int8 => Int8Type, "|i1";
        DataType::Int16 => Int16Type, "=i2";
        DataType::Int32 => Int32Type, "=i4";
        DataType::Int64 => Int64Type, "=i8";
        DataType::Float32 => Float32Type, "=f4";
        DataType::Float64 => Float64Type, "=f8";
        DataType::Timestamp(..) => TimestampNanosecondType, "=M8[ns]";
    }
    let list = PyList::empty(py);
    for array in arrays {
        for row in 0..array.len() {
            list.append(object(py, *array, row)?)?;
        }
    }
    Ok(("O", list.into_any()))
}

/// The numbers of arrays as bytes, which are copied once.
fn bytes<'p, T: ArrowPrimitiveType>(
    py: Python<'p>,
    arrays: &[&dyn Array],
) -> PyResult<Bound<'p, PyAny>> {
    let arrays: Vec<_> = arrays.iter().map(|of| of.as_primitive::<T>()).collect();
    let parts = arrays.iter().map(|of| of.values().inner().as_slice());
    let size = parts.clone().map(<[u8]>::len).sum();
    let made = PyByteArray::new_with(py, size, |mut to| {
        for part in parts {
            let (here, rest) = to.split_at_mut(part.len());
            here.copy_from_slice(part);
            to = rest;
        }
        Ok(())
    })?;
    Ok(made.into_any())
}

/// A value of an array as an object.
fn object<'p>(py: Python<'p>, of: &dyn Array, row: usize) -> PyResult<Bound<'p, PyAny>> {
    use pyo3::types::{PyBytes, PyDict};
    if of.is_null(row) {
        return Ok(py.None().into_bound(py));
    }
    macro_rules! number {
        ($($pattern:pat => $type:ty;)*) => {
            match of.data_type() {
                $($pattern => return Ok(of.as_primitive::<$type>().value(row).into_pyobject(py)?.into_any()),)*
                _ => {}
            }
        };
    }
    number! {
        DataType::UInt8 => UInt8Type;
        DataType::UInt16 => UInt16Type;
        DataType::UInt32 => UInt32Type;
        DataType::UInt64 => UInt64Type;
        DataType::Int8 => Int8Type;
        DataType::Int16 => Int16Type;
        DataType::Int32 => Int32Type;
        DataType::Int64 => Int64Type;
        DataType::Float32 => Float32Type;
        DataType::Float64 => Float64Type;
        DataType::Timestamp(..) => TimestampNanosecondType;
    }
    Ok(match of.data_type() {
        DataType::Boolean => of
            .as_boolean()
            .value(row)
            .into_pyobject(py)?
            .to_owned()
            .into_any(),
        DataType::Utf8 => of
            .as_string::<i32>()
            .value(row)
            .into_pyobject(py)?
            .into_any(),
        DataType::Binary => PyBytes::new(py, of.as_binary::<i32>().value(row)).into_any(),
        DataType::FixedSizeBinary(_) => {
            PyBytes::new(py, of.as_fixed_size_binary().value(row)).into_any()
        }
        DataType::Dictionary(..) => {
            let dictionary = of.as_dictionary::<UInt32Type>();
            let key = dictionary.keys().value(row) as usize;
            object(py, &**dictionary.values(), key)?
        }
        DataType::List(_) => {
            let items = of.as_list::<i32>().value(row);
            let list = PyList::empty(py);
            for item in 0..items.len() {
                list.append(object(py, &*items, item)?)?;
            }
            list.into_any()
        }
        DataType::Struct(fields) => {
            let members = of.as_struct();
            let dict = PyDict::new(py);
            for (field, member) in fields.iter().zip(members.columns()) {
                dict.set_item(field.name(), object(py, &**member, row)?)?;
            }
            dict.into_any()
        }
        _ => py.None().into_bound(py),
    })
}

/// Values of databases and metrics, read anew each time they are asked for.
#[pyclass(frozen, module = "kymo._kymo", subclass)]
pub(crate) struct SampleTable {
    timeline: Timeline,
    query: Query,
    schema: SchemaRef,
}

impl SampleTable {
    pub(crate) fn new(timeline: Timeline, query: Query) -> Self {
        Self {
            schema: kymo_arrow::samples_schema(&timeline),
            timeline,
            query,
        }
    }
}

#[pymethods]
impl SampleTable {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'p>(
        &self,
        py: Python<'p>,
        requested_schema: Option<Bound<'p, PyAny>>,
    ) -> PyResult<Bound<'p, PyCapsule>> {
        drop(requested_schema);
        let samples = kymo_arrow::SampleReader::new(self.timeline.clone(), self.query.clone())?;
        capsule(
            py,
            Samples {
                schema: Arc::clone(&self.schema),
                samples: OfProcess::new(samples),
            },
        )
    }

    fn __arrow_c_schema__<'p>(&self, py: Python<'p>) -> PyResult<Bound<'p, PyCapsule>> {
        schema_capsule(py, &self.schema)
    }

    /// Names and Arrow's types of the columns.
    fn _fields(&self) -> Vec<(String, String)> {
        fields(&self.schema)
    }
}

/// Reads samples in any thread.
struct Samples {
    schema: SchemaRef,
    samples: OfProcess<kymo_arrow::SampleReader>,
}

impl Iterator for Samples {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.samples.get() {
            Some(samples) => samples.next(),
            None => {
                let message = "this stream was made before the process was forked: create it again";
                Some(Err(ArrowError::InvalidArgumentError(message.to_owned())))
            }
        }
    }
}

impl RecordBatchReader for Samples {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// Series of doubles, as Arrow's stream.
#[pyclass(frozen, module = "kymo._kymo")]
pub(crate) struct SeriesTable(RecordBatch);

#[pymethods]
impl SeriesTable {
    /// Columns of times in seconds and of values.
    #[new]
    fn new(times: Vec<i64>, names: Vec<String>, columns: Vec<Vec<Option<f64>>>) -> PyResult<Self> {
        let times = arrow_array::TimestampSecondArray::from(times).with_timezone("UTC");
        let field = |name: &str, of: &DataType| arrow_schema::Field::new(name, of.clone(), true);
        let mut fields = vec![field("timestamp", times.data_type())];
        let mut arrays: Vec<arrow_array::ArrayRef> = vec![Arc::new(times)];
        for (name, values) in names.iter().zip(columns) {
            fields.push(field(name, &DataType::Float64));
            arrays.push(Arc::new(arrow_array::Float64Array::from(values)));
        }
        let schema = Arc::new(arrow_schema::Schema::new(fields));
        RecordBatch::try_new(schema, arrays)
            .map(Self)
            .map_err(arrow)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'p>(
        &self,
        py: Python<'p>,
        requested_schema: Option<Bound<'p, PyAny>>,
    ) -> PyResult<Bound<'p, PyCapsule>> {
        drop(requested_schema);
        let batches = [Ok(self.0.clone())];
        let reader = arrow_array::RecordBatchIterator::new(batches, self.0.schema());
        capsule(py, reader)
    }

    fn __arrow_c_schema__<'p>(&self, py: Python<'p>) -> PyResult<Bound<'p, PyCapsule>> {
        schema_capsule(py, &self.0.schema())
    }
}
