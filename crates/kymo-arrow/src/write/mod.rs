//! Tables as Parquet files.
//!
//! A [`TableWriter`] takes batches and writes row groups. Each column ([`column`]) fills a page with the values of its
//! rows, as they lie in Arrow's arrays, and encodes it as a whole: positions in a dictionary while few values differ
//! ([`words`] for numbers, [`texts`]; found by a [`table`]), else differences ([`delta`]); levels of what is nested come from offsets and
//! validities ([`slots`]). Headers of pages, statistics and footers are those of the crate `parquet`.
//!
//! The format is that of [its specification](https://github.com/apache/parquet-format).

mod bounds;
mod column;
mod delta;
mod hybrid;
mod pack;
mod schema;
mod slots;
mod table;
mod texts;
mod words;

#[cfg(test)]
mod tests;

use std::io::Write;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, SchemaRef};
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;

use self::bounds::Order;
use self::column::Column;
pub(crate) use self::column::Scratch;
use self::slots::Slots;
use crate::Error;

/// Maximum number of rows of a page.
const PAGE_ROWS: usize = 20_000;
/// A page ends when its values have more bytes than this.
const PAGE_BYTES: usize = 1 << 20;

/// How the values of a column are written.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Bits,
    Word32(Order),
    Word64(Order),
    /// Numbers that grow by little from row to row.
    Ascending(Order),
    Texts(Order),
    /// Texts that Arrow numbers, too.
    Dictionary,
    /// A number of bytes.
    Fixed(usize),
}

impl Kind {
    fn order(self) -> Order {
        match self {
            Self::Word32(order) | Self::Word64(order) | Self::Ascending(order) => order,
            Self::Texts(order) => order,
            Self::Dictionary => Order::Text,
            Self::Bits => Order::Unsigned,
            Self::Fixed(_) => Order::Bytes,
        }
    }

    /// Bits of differences cannot be compressed further.
    fn compression(self) -> Compression {
        match self {
            Self::Ascending(_) => Compression::UNCOMPRESSED,
            _ => Compression::LZ4_RAW,
        }
    }
}

/// Writes a table as a Parquet file.
pub(crate) struct TableWriter<W: Write + Send> {
    schema: SchemaRef,
    file: SerializedFileWriter<W>,
    columns: Vec<Column>,
    /// Maximum number of rows of a row group.
    group_rows: usize,
    /// Rows of the row group.
    rows: usize,
}

impl<W: Write + Send> TableWriter<W> {
    /// Begins a file of a schema.
    ///
    /// # Errors
    ///
    /// It cannot be written, or the schema has a type that no table has.
    pub(crate) fn new(out: W, schema: &SchemaRef, group_rows: usize) -> Result<Self, Error> {
        let (root, kinds) = schema::parquet_schema(schema)?;
        let properties = WriterProperties::builder()
            .set_created_by(format!("kymo {}", env!("CARGO_PKG_VERSION")))
            .set_key_value_metadata(Some(vec![schema::arrow_schema(schema)]))
            .build();
        let file = SerializedFileWriter::new(out, root, properties.into())?;
        let leaves = file.schema_descr().columns();
        if leaves
            .iter()
            .any(|leaf| leaf.max_def_level() >= i16::from(u8::MAX))
        {
            let text = "columns are nested too deeply".to_owned();
            return Err(ParquetError::General(text).into());
        }
        let columns = leaves.iter().zip(kinds);
        Ok(Self {
            columns: columns
                .map(|(leaf, kind)| Column::new(Arc::clone(leaf), kind))
                .collect(),
            schema: Arc::clone(schema),
            file,
            group_rows,
            rows: 0,
        })
    }

    /// The bytes of memory that the row group takes.
    pub(crate) fn bytes(&self) -> usize {
        self.columns.iter().map(Column::bytes).sum()
    }

    /// The bytes that were written to the file.
    pub(crate) fn bytes_written(&self) -> usize {
        self.file.bytes_written()
    }

    /// Appends rows.
    ///
    /// # Errors
    ///
    /// A row group cannot be written, or the rows are of another schema.
    pub(crate) fn write(
        &mut self,
        batch: &RecordBatch,
        scratch: &mut Scratch,
    ) -> Result<(), Error> {
        let types = batch.columns().iter().map(|column| column.data_type());
        if !types.eq(self.schema.fields().iter().map(|field| field.data_type())) {
            let text = "rows are of another schema".to_owned();
            return Err(ParquetError::General(text).into());
        }
        let mut begin = 0;
        while begin < batch.num_rows() {
            // Pages of all columns end at the same rows, unless one has many bytes.
            let in_page = PAGE_ROWS - self.rows % PAGE_ROWS;
            let in_group = self.group_rows - self.rows;
            let rows = in_page.min(in_group).min(batch.num_rows() - begin);
            let mut columns = &mut self.columns[..];
            for (array, field) in batch.columns().iter().zip(self.schema.fields()) {
                let (own, rest) = columns.split_at_mut(leaves(field.data_type()));
                write_rows(own, &array.slice(begin, rows), field, scratch)?;
                columns = rest;
            }
            begin += rows;
            self.rows += rows;
            if self.rows.is_multiple_of(PAGE_ROWS) {
                let mut columns = self.columns.iter_mut();
                columns.try_for_each(|column| column.end_page(scratch))?;
            }
            if self.rows >= self.group_rows {
                self.end_group(scratch)?;
            }
        }
        Ok(())
    }

    /// Writes the row group, if it has rows.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub(crate) fn end_group(&mut self, scratch: &mut Scratch) -> Result<(), Error> {
        if std::mem::take(&mut self.rows) == 0 {
            return Ok(());
        }
        let mut group = self.file.next_row_group()?;
        for column in &mut self.columns {
            let (chunk, result) = column.end_chunk(scratch)?;
            group.append_column(&chunk, result)?;
        }
        group.close()?;
        Ok(self.file.flush()?)
    }

    /// Ends the file.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub(crate) fn finish(&mut self, scratch: &mut Scratch) -> Result<(), Error> {
        self.end_group(scratch)?;
        self.file.finish()?;
        Ok(())
    }
}

/// Number of columns that a column of Arrow is in Parquet.
fn leaves(data_type: &DataType) -> usize {
    match data_type {
        DataType::List(item) => leaves(item.data_type()),
        DataType::Struct(fields) => fields.iter().map(|field| leaves(field.data_type())).sum(),
        _ => 1,
    }
}

/// Appends rows of a column of Arrow to those that it is in Parquet. Many bytes are taken in parts, so that each is
/// about a page.
fn write_rows(
    columns: &mut [Column],
    array: &ArrayRef,
    field: &Field,
    scratch: &mut Scratch,
) -> Result<(), Error> {
    let rows = array.len();
    if rows > 1 && size(array) > PAGE_BYTES {
        let half = rows / 2;
        write_rows(columns, &array.slice(0, half), field, scratch)?;
        return write_rows(columns, &array.slice(half, rows - half), field, scratch);
    }
    let mut rows = Rows {
        columns: columns.iter_mut(),
        rows,
        scratch,
    };
    rows.descend(array, field, Slots::new(array.len()))
}

/// The bytes of the values of an array; of nested ones, those of the column that has most.
fn size(array: &ArrayRef) -> usize {
    let between = |offsets: &[i32]| (offsets[array.len()] - offsets[0]) as usize;
    match array.data_type() {
        DataType::Utf8 => between(array.as_string::<i32>().value_offsets()),
        DataType::Binary => between(array.as_binary::<i32>().value_offsets()),
        DataType::FixedSizeBinary(size) => array.len() * usize::try_from(*size).unwrap_or(0),
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            let offsets = list.value_offsets();
            size(&list.values().slice(offsets[0] as usize, between(offsets)))
        }
        DataType::Struct(_) => {
            let members = array.as_struct().columns().iter();
            members.map(size).max().unwrap_or(0)
        }
        _ => array.len() * size_of::<u64>(),
    }
}

/// Rows that are appended, and the columns that they have not reached.
struct Rows<'c> {
    columns: std::slice::IterMut<'c, Column>,
    rows: usize,
    scratch: &'c mut Scratch,
}

impl Rows<'_> {
    /// Appends the rows to each column below an array.
    fn descend(&mut self, array: &ArrayRef, field: &Field, mut slots: Slots) -> Result<(), Error> {
        let nulls = array.logical_nulls();
        if field.is_nullable() {
            slots.enter_nullable(nulls.as_ref());
        } else if nulls.is_some_and(|nulls| slots.has_null(&nulls)) {
            let text = format!("column `{}` has nulls that it cannot have", field.name());
            return Err(ParquetError::General(text).into());
        }
        match field.data_type() {
            DataType::List(item) => {
                let list = array.as_list::<i32>();
                slots.enter_lists(list.offsets());
                self.descend(list.values(), item, slots)
            }
            DataType::Struct(fields) => {
                let members = array.as_struct().columns().iter();
                let mut members = members.zip(fields);
                members.try_for_each(|(member, field)| self.descend(member, field, slots.clone()))
            }
            _ => match self.columns.next() {
                Some(column) => column.extend(array, slots, self.rows, self.scratch),
                None => Ok(()),
            },
        }
    }
}
