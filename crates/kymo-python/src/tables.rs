//! Rows as Arrow's streams, and as NumPy's buffers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampNanosecondType,
    TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrowPrimitiveType, RecordBatch, RecordBatchReader};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, SchemaRef, TimeUnit};
use kymo::timeline::{Notice, NoticeKind, Query, Timeline};
use kymo_arrow::SampleReader;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyCapsule, PyList};

use crate::errors::Error;
use crate::forks::{Interrupted, OfProcess, interruptible};
use crate::truncated::Truncations;

/// Damage that the last reading has met.
type Damage = Arc<Mutex<Vec<String>>>;

fn arrow(error: ArrowError) -> PyErr {
    Error::new_err(error.to_string())
}

fn note(damage: &Damage, notices: &[Notice]) {
    let mut damage = damage.lock().unwrap_or_else(PoisonError::into_inner);
    for notice in notices {
        if let NoticeKind::Fault(fault) = &notice.kind {
            damage.push(fault.to_string());
        }
    }
}

/// A table, which is read again on each request.
#[pyclass(frozen, module = "kymo._kymo")]
pub(crate) struct Table {
    schema: SchemaRef,
    rows: Rows,
    damage: Damage,
    truncations: Truncations,
}

/// Where the rows of a table come from.
#[derive(Clone)]
enum Rows {
    /// The events of recordings.
    Events(Box<kymo_arrow::EventTable>),
    /// The values of databases and metrics.
    Samples(Box<(Timeline, Query)>),
    /// A batch that was computed elsewhere.
    Batch(RecordBatch),
}

/// Batches that a thread makes, or that are there.
type Batches = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send>;

impl Table {
    /// The events of a query.
    pub(crate) fn events(table: kymo_arrow::EventTable, truncations: Truncations) -> Self {
        let schema = Arc::clone(table.schema());
        Self::new(schema, Rows::Events(Box::new(table)), truncations)
    }

    /// The samples of a query.
    pub(crate) fn samples(timeline: Timeline, query: Query, truncations: Truncations) -> Self {
        let schema = kymo_arrow::samples_schema(&timeline);
        Self::new(
            schema,
            Rows::Samples(Box::new((timeline, query))),
            truncations,
        )
    }

    fn new(schema: SchemaRef, rows: Rows, truncations: Truncations) -> Self {
        Self {
            schema,
            rows,
            damage: Damage::default(),
            truncations,
        }
    }

    fn reader(&self) -> Reader {
        Reader {
            schema: Arc::clone(&self.schema),
            rows: self.rows.clone(),
            damage: Arc::clone(&self.damage),
            truncations: self.truncations.clone(),
            batches: None,
        }
    }
}

impl Rows {
    /// Begins to read.
    fn read(&self, damage: &Damage) -> Result<Batches, ArrowError> {
        let failed =
            |error: Box<dyn std::error::Error + Send + Sync>| ArrowError::ExternalError(error);
        Ok(match self {
            Self::Events(table) => {
                let mut events = table.read().map_err(|error| failed(Box::new(error)))?;
                let damage = Arc::clone(damage);
                Box::new(std::iter::from_fn(move || {
                    let batch = events.next();
                    note(&damage, &events.take_notices());
                    batch
                }))
            }
            Self::Samples(source) => {
                let (timeline, query) = Box::as_ref(source).clone();
                let samples = SampleReader::new(timeline, query);
                Box::new(samples.map_err(|error| failed(Box::new(error)))?)
            }
            Self::Batch(batch) => Box::new(std::iter::once(Ok(batch.clone()))),
        })
    }
}

/// Reads a table in any thread, from when the first batch is asked for: who only wants the schema starts nothing.
struct Reader {
    schema: SchemaRef,
    rows: Rows,
    damage: Damage,
    truncations: Truncations,
    batches: Option<OfProcess<Batches>>,
}

impl Iterator for Reader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batches = match &mut self.batches {
            Some(batches) => batches,
            nothing => {
                let mut damage = self.damage.lock().unwrap_or_else(PoisonError::into_inner);
                damage.clear();
                drop(damage);
                match self.rows.read(&self.damage) {
                    Ok(batches) => nothing.insert(OfProcess::new(batches)),
                    Err(error) => return Some(Err(error)),
                }
            }
        };
        match batches.get() {
            Some(batches) => {
                let batch = batches.next();
                if batch.is_none() {
                    let mut damage = self.damage.lock().unwrap_or_else(PoisonError::into_inner);
                    damage.extend(self.truncations.reports());
                }
                batch
            }
            None => {
                let message = "this stream was read before the process was forked: create it again";
                Some(Err(ArrowError::InvalidArgumentError(message.to_owned())))
            }
        }
    }
}

impl RecordBatchReader for Reader {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

#[pymethods]
impl Table {
    /// A table of times in seconds, and columns of values.
    #[staticmethod]
    fn of_series(
        times: Vec<i64>,
        names: Vec<String>,
        columns: Vec<Vec<Option<f64>>>,
    ) -> PyResult<Self> {
        let times = arrow_array::TimestampSecondArray::from(times).with_timezone("UTC");
        let field = |name: &str, data_type: &DataType| {
            arrow_schema::Field::new(name, data_type.clone(), true)
        };
        let mut fields = vec![field("timestamp", times.data_type())];
        let mut arrays: Vec<arrow_array::ArrayRef> = vec![Arc::new(times)];
        for (name, values) in names.iter().zip(columns) {
            fields.push(field(name, &DataType::Float64));
            arrays.push(Arc::new(arrow_array::Float64Array::from(values)));
        }
        let schema = Arc::new(arrow_schema::Schema::new(fields));
        let batch = RecordBatch::try_new(Arc::clone(&schema), arrays).map_err(arrow)?;
        Ok(Self::new(
            schema,
            Rows::Batch(batch),
            Truncations::default(),
        ))
    }

    /// Reads the rows again, in Arrow's C stream interface.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'p>(
        &self,
        py: Python<'p>,
        requested_schema: Option<Bound<'p, PyAny>>,
    ) -> PyResult<Bound<'p, PyCapsule>> {
        // A wish that may be ignored.
        drop(requested_schema);
        let stream = FFI_ArrowArrayStream::new(Box::new(self.reader()));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// The columns in Arrow's C data interface.
    fn __arrow_c_schema__<'p>(&self, py: Python<'p>) -> PyResult<Bound<'p, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(&*self.schema).map_err(arrow)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// Names and Arrow's types of the columns.
    fn _fields(&self) -> Vec<(String, String)> {
        let fields = self.schema.fields().iter();
        fields
            .map(|field| (field.name().clone(), field.data_type().to_string()))
            .collect()
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
        let reader = self.reader();
        let stopped = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stopped);
        let stop = || stopped.store(true, Ordering::Relaxed);
        let batches = interruptible(py, Interrupted::Left(&stop), move || {
            let going = |_: &_| !flag.load(Ordering::Relaxed);
            reader.take_while(going).collect::<Result<Vec<_>, _>>()
        })?
        .map_err(arrow)?;
        let columns = self
            .schema
            .fields()
            .iter()
            .enumerate()
            .map(|(position, field)| {
                let arrays: Vec<&dyn Array> = batches
                    .iter()
                    .map(|batch| &**batch.column(position))
                    .collect();
                let (kind, values) = numpy(py, field.data_type(), &arrays)?;
                let has_nulls = arrays.iter().any(|array| array.null_count() > 0);
                let nulls = has_nulls.then(|| {
                    let nulls = arrays
                        .iter()
                        .flat_map(|array| (0..array.len()).map(|row| u8::from(array.is_null(row))));
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
    data_type: &DataType,
    arrays: &[&dyn Array],
) -> PyResult<(&'static str, Bound<'p, PyAny>)> {
    macro_rules! numbers {
        ($($pattern:pat => $type:ty, $kind:literal;)*) => {
            match data_type {
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
        DataType::Timestamp(TimeUnit::Nanosecond, _) => TimestampNanosecondType, "=M8[ns]";
        DataType::Timestamp(TimeUnit::Second, _) => TimestampSecondType, "=M8[s]";
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
    let arrays: Vec<_> = arrays
        .iter()
        .map(|array| array.as_primitive::<T>())
        .collect();
    let parts = arrays.iter().map(|array| array.values().inner().as_slice());
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
fn object<'p>(py: Python<'p>, array: &dyn Array, row: usize) -> PyResult<Bound<'p, PyAny>> {
    use pyo3::types::{PyBytes, PyDict};
    if array.is_null(row) {
        return Ok(py.None().into_bound(py));
    }
    macro_rules! number {
        ($($pattern:pat => $type:ty;)*) => {
            match array.data_type() {
                $($pattern => return Ok(array.as_primitive::<$type>().value(row).into_pyobject(py)?.into_any()),)*
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
        DataType::Timestamp(TimeUnit::Nanosecond, _) => TimestampNanosecondType;
        DataType::Timestamp(TimeUnit::Second, _) => TimestampSecondType;
    }
    Ok(match array.data_type() {
        DataType::Boolean => array
            .as_boolean()
            .value(row)
            .into_pyobject(py)?
            .to_owned()
            .into_any(),
        DataType::Utf8 => array
            .as_string::<i32>()
            .value(row)
            .into_pyobject(py)?
            .into_any(),
        DataType::Binary => PyBytes::new(py, array.as_binary::<i32>().value(row)).into_any(),
        DataType::FixedSizeBinary(_) => {
            PyBytes::new(py, array.as_fixed_size_binary().value(row)).into_any()
        }
        DataType::Dictionary(..) => {
            let dictionary = array.as_dictionary::<UInt32Type>();
            let key = dictionary.keys().value(row) as usize;
            object(py, &**dictionary.values(), key)?
        }
        DataType::List(_) => {
            let items = array.as_list::<i32>().value(row);
            let list = PyList::empty(py);
            for item in 0..items.len() {
                list.append(object(py, &*items, item)?)?;
            }
            list.into_any()
        }
        DataType::Struct(fields) => {
            let members = array.as_struct();
            let dict = PyDict::new(py);
            for (field, member) in fields.iter().zip(members.columns()) {
                dict.set_item(field.name(), object(py, &**member, row)?)?;
            }
            dict.into_any()
        }
        _ => py.None().into_bound(py),
    })
}
