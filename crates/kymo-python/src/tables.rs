//! Rows as Arrow's streams, and as NumPy's buffers.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampNanosecondType,
    TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, RecordBatch, RecordBatchReader};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, Field, SchemaRef, TimeUnit};
use kymo::timeline::{Notice, NoticeKind, Query, Timeline};
use kymo_arrow::SampleReader;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyCapsule, PyList};

use crate::errors::Error;
use crate::forks::{Ahead, OfProcess};
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
        let mut batches = Ahead::spawn(move |made, _| {
            for batch in reader {
                if made.send(batch).is_err() {
                    break;
                }
            }
        })?;
        let fields = self.schema.fields().iter();
        let mut columns: Vec<_> = fields.map(|field| Column::new(py, field)).collect();
        let mut read = || {
            while let Some(batch) = batches.next(py)? {
                let batch = batch.map_err(arrow)?;
                for (column, array) in columns.iter_mut().zip(batch.columns()) {
                    column.append(py, array)?;
                }
            }
            Ok::<_, PyErr>(())
        };
        if let Err(error) = read() {
            batches.leave();
            return Err(error);
        }
        let columns = columns.into_iter().map(|column| {
            let kind = column.kind.unwrap_or("O").to_owned();
            (column.name, kind, column.values, column.nulls)
        });
        Ok(columns.collect())
    }
}

/// NumPy's type for values that are the same bytes there.
fn kind(data_type: &DataType) -> Option<&'static str> {
    Some(match data_type {
        DataType::UInt8 => "|u1",
        DataType::UInt16 => "=u2",
        DataType::UInt32 => "=u4",
        DataType::UInt64 => "=u8",
        DataType::Int8 => "|i1",
        DataType::Int16 => "=i2",
        DataType::Int32 => "=i4",
        DataType::Int64 => "=i8",
        DataType::Float32 => "=f4",
        DataType::Float64 => "=f8",
        DataType::Timestamp(TimeUnit::Nanosecond, _) => "=M8[ns]",
        DataType::Timestamp(TimeUnit::Second, _) => "=M8[s]",
        _ => return None,
    })
}

/// A column for NumPy, to which arrays are appended.
struct Column<'p> {
    name: String,
    kind: Option<&'static str>,
    /// A `bytearray`, or a list of objects.
    values: Bound<'p, PyAny>,
    nulls: Option<Bound<'p, PyByteArray>>,
    rows: usize,
}

impl<'p> Column<'p> {
    fn new(py: Python<'p>, field: &Field) -> Self {
        let kind = kind(field.data_type());
        Self {
            name: field.name().clone(),
            kind,
            values: match kind {
                Some(_) => PyByteArray::new(py, b"").into_any(),
                None => PyList::empty(py).into_any(),
            },
            nulls: None,
            rows: 0,
        }
    }

    fn append(&mut self, py: Python<'p>, array: &dyn Array) -> PyResult<()> {
        match array.data_type().primitive_width() {
            Some(width) if self.kind.is_some() => {
                let data = array.to_data();
                let bytes = &data.buffers()[0][width * data.offset()..][..width * data.len()];
                extend(&self.values, bytes)?;
            }
            _ => {
                let values = self.values.cast::<PyList>()?;
                for row in 0..array.len() {
                    values.append(object(py, array, row)?)?;
                }
            }
        }
        if array.null_count() > 0 || self.nulls.is_some() {
            let nulls = match self.nulls.take() {
                Some(nulls) => nulls,
                None => PyByteArray::new_with(py, self.rows, |_| Ok(()))?,
            };
            let flags = (0..array.len()).map(|row| array.is_null(row).into());
            extend(&nulls, &flags.collect::<Vec<u8>>())?;
            self.nulls = Some(nulls);
        }
        self.rows += array.len();
        Ok(())
    }
}

/// Appends to a `bytearray`, in pieces that stay in the processor's cache.
fn extend(values: &Bound<'_, PyAny>, bytes: &[u8]) -> PyResult<()> {
    for piece in bytes.chunks(64 << 10) {
        values.call_method1("extend", (PyBytes::new(values.py(), piece),))?;
    }
    Ok(())
}

/// A value of an array as an object.
fn object<'p>(py: Python<'p>, array: &dyn Array, row: usize) -> PyResult<Bound<'p, PyAny>> {
    use pyo3::types::PyDict;
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
