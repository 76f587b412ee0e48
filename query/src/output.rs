//! Rows as a table, CSV, JSON lines or a Parquet file.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::ValueEnum;
use datafusion::arrow::array::{Array, ArrayRef, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::arrow::{csv, json};
use datafusion::common::{DataFusionError, Result, exec_datafusion_err};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::Compression;
use datafusion::parquet::file::properties::WriterProperties;
use kymo_io::{NewFile, Replace};

use crate::errors::message;

/// How rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Columns for people
    Table,
    /// Comma-separated values with a line of names
    Csv,
    /// A JSON object a line
    Json,
    /// A Parquet file
    Parquet,
}

impl Format {
    /// The format that the ending of a path means.
    pub(crate) fn of_path(path: &Path) -> Option<Self> {
        Some(match path.extension()?.to_str()? {
            "csv" => Self::Csv,
            "json" | "jsonl" | "ndjson" => Self::Json,
            "parquet" => Self::Parquet,
            "txt" => Self::Table,
            _ => return None,
        })
    }
}

/// Number of rows of a table that determine the widths of its columns.
const MEASURED_ROWS: usize = 1000;
/// No column is wider than this, but for single values.
const WIDEST: usize = 60;

/// Where rows go.
pub(crate) struct Output {
    kind: Kind,
    schema: SchemaRef,
    /// Whether anything was written.
    pub(crate) is_begun: bool,
    /// A file that has no name yet: it is removed if it gets none.
    file: Option<(NewFile, File)>,
    path: Option<PathBuf>,
}

type Sink = Box<dyn Write + Send>;

enum Kind {
    Table(Table),
    Csv(csv::Writer<Sink>),
    Json(json::LineDelimitedWriter<Sink>),
    Parquet(ArrowWriter<Sink>),
}

impl Output {
    /// Writes to a file, or to standard output.
    ///
    /// # Errors
    ///
    /// The file cannot be made.
    pub(crate) fn new(format: Format, schema: &SchemaRef, path: Option<&Path>) -> Result<Self> {
        let file = path.map(new_file).transpose()?;
        let sink: Sink = match &file {
            Some((_, file)) => Box::new(io::BufWriter::new(file.try_clone()?)),
            None => Box::new(HeldOutput::default()),
        };
        let kind = match format {
            Format::Table => Kind::Table(Table::new(sink, schema)),
            Format::Csv => Kind::Csv(csv::WriterBuilder::new().with_header(true).build(sink)),
            Format::Json => Kind::Json(
                json::WriterBuilder::new()
                    .with_explicit_nulls(true)
                    .build::<_, json::writer::LineDelimited>(sink),
            ),
            Format::Parquet => {
                let properties = WriterProperties::builder().set_compression(Compression::LZ4_RAW);
                let writer =
                    ArrowWriter::try_new(sink, Arc::clone(schema), Some(properties.build()));
                Kind::Parquet(writer?)
            }
        };
        Ok(Self {
            kind,
            schema: Arc::clone(schema),
            is_begun: false,
            file,
            path: path.map(Path::to_path_buf),
        })
    }

    /// # Errors
    ///
    /// What hinders writing.
    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        self.is_begun = true;
        let written = match &mut self.kind {
            Kind::Table(table) => table.write(batch),
            Kind::Csv(writer) => flat(batch).and_then(|batch| Ok(writer.write(&batch)?)),
            Kind::Json(writer) => writer.write(batch).map_err(Into::into),
            Kind::Parquet(writer) => writer.write(batch).map_err(Into::into),
        };
        written.map_err(|error| at(self.path.as_deref(), error))
    }

    /// Writes what is left; a file gets its name now.
    ///
    /// # Errors
    ///
    /// What hinders writing.
    pub(crate) fn finish(mut self) -> Result<()> {
        let path = self.path.take();
        self.complete().map_err(|error| at(path.as_deref(), error))
    }

    fn complete(self) -> Result<()> {
        match self.kind {
            Kind::Table(table) => table.finish()?,
            Kind::Csv(mut writer) => {
                if !self.is_begun && !self.schema.fields().is_empty() {
                    // The names are there, whether there are rows or not.
                    writer.write(&RecordBatch::new_empty(flat_schema(&self.schema)))?;
                }
                writer.into_inner().flush()?;
            }
            Kind::Json(mut writer) => {
                writer.finish()?;
                writer.into_inner().flush()?;
            }
            Kind::Parquet(writer) => {
                let mut sink = writer.into_inner()?;
                sink.flush()?;
            }
        }
        if let Some((new, file)) = self.file {
            file.sync_all()?;
            new.put()?;
        }
        Ok(())
    }
}

/// An error with the file that it happened at, if there is one.
fn at(path: Option<&Path>, error: DataFusionError) -> DataFusionError {
    match path {
        Some(path) => exec_datafusion_err!("{}: {}", path.display(), message(&error)),
        None => error,
    }
}

/// A file that replaces the one at a path when it is complete, and a handle to write it by.
fn new_file(path: &Path) -> io::Result<(NewFile, File)> {
    let how = Replace {
        like: path.metadata().is_ok().then_some(path),
        modified: false,
        ..Replace::NEW
    };
    NewFile::write(path, how, |file| file.try_clone()).map_err(|error: io::Error| {
        io::Error::new(error.kind(), format!("{}: {error}", path.display()))
    })
}

/// Standard output in large pieces. What is left when it is dropped is not written: the head of an answer that has failed
/// before its first row, which may be planned again.
#[derive(Default)]
struct HeldOutput(Vec<u8>);

impl HeldOutput {
    /// Bytes that are written together.
    const PIECE: usize = 64 << 10;

    fn release(&mut self) -> io::Result<()> {
        let mut out = io::stdout();
        let written = out.write_all(&self.0).and_then(|()| out.flush());
        self.0.clear();
        let is_closed = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
        if written.as_ref().is_err_and(is_closed) {
            IS_CLOSED.store(true, Ordering::Relaxed);
        }
        written
    }
}

impl Write for HeldOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.extend_from_slice(bytes);
        if self.0.len() >= Self::PIECE {
            self.release()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.release()
    }
}

/// Whether a type is written as one word of text in CSV.
fn is_flat(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, value) => is_flat(value),
        other => {
            !other.is_nested() && !matches!(other, DataType::Binary | DataType::FixedSizeBinary(_))
        }
    }
}

fn flat_schema(schema: &SchemaRef) -> SchemaRef {
    let fields = schema
        .fields()
        .iter()
        .map(|field| match is_flat(field.data_type()) {
            true => field.as_ref().clone(),
            false => Field::new(field.name(), DataType::Utf8, true),
        });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// The batch with nested values as texts.
fn flat(batch: &RecordBatch) -> Result<RecordBatch> {
    let columns = batch
        .columns()
        .iter()
        .map(|column| match is_flat(column.data_type()) {
            true => Ok(Arc::clone(column)),
            false => texts(column),
        });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    Ok(RecordBatch::try_new(flat_schema(&batch.schema()), columns)?)
}

fn texts(column: &ArrayRef) -> Result<ArrayRef> {
    let options = FormatOptions::default();
    let formatter = ArrayFormatter::try_new(column, &options)?;
    let texts = (0..column.len()).map(|row| {
        let is_there = !column.is_null(row);
        is_there.then(|| formatter.value(row).to_string())
    });
    Ok(Arc::new(texts.collect::<StringArray>()))
}

/// A table for people.
struct Table {
    sink: Sink,
    names: Vec<String>,
    /// Whether columns have numbers, which are put to the right.
    are_numbers: Vec<bool>,
    /// Rows that were not written yet, while widths are not known.
    waiting: Vec<Vec<String>>,
    widths: Option<Vec<usize>>,
    rows: u64,
}

impl Table {
    fn new(sink: Sink, schema: &SchemaRef) -> Self {
        let fields = schema.fields();
        Self {
            sink,
            names: fields
                .iter()
                .map(|field| kymo_text::visible(field.name()).into_owned())
                .collect(),
            are_numbers: fields
                .iter()
                .map(|field| field.data_type().is_numeric())
                .collect(),
            waiting: Vec::new(),
            widths: None,
            rows: 0,
        }
    }

    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let options = FormatOptions::default().with_null("");
        let formatters = batch
            .columns()
            .iter()
            .map(|column| ArrayFormatter::try_new(column, &options));
        let formatters = formatters.collect::<std::result::Result<Vec<_>, _>>()?;
        if self.names == ["plan_type", "plan"] {
            return self.plans(&formatters, batch.num_rows());
        }
        for row in 0..batch.num_rows() {
            let value = |formatter: &ArrayFormatter<'_>| {
                let text = formatter.value(row).to_string();
                kymo_text::visible(&text).into_owned()
            };
            let values: Vec<String> = formatters.iter().map(value).collect();
            self.rows += 1;
            match self.widths {
                Some(_) => self.line(&values)?,
                None => self.waiting.push(values),
            }
        }
        if self.widths.is_none() && self.waiting.len() >= MEASURED_ROWS {
            self.begin()?;
        }
        Ok(())
    }

    /// Plans have several lines, which are shown as they are.
    fn plans(&mut self, formatters: &[ArrayFormatter<'_>], rows: usize) -> Result<()> {
        self.widths = Some(Vec::new());
        for row in 0..rows {
            writeln!(self.sink, "{}:", formatters[0].value(row))?;
            for line in formatters[1].value(row).to_string().lines() {
                writeln!(self.sink, "  {}", kymo_text::visible(line))?;
            }
        }
        Ok(())
    }

    fn begin(&mut self) -> Result<()> {
        let mut widths: Vec<usize> = self.names.iter().map(|name| width(name)).collect();
        for row in &self.waiting {
            for (known, value) in widths.iter_mut().zip(row) {
                *known = (*known).max(width(value).min(WIDEST));
            }
        }
        let rule: Vec<String> = widths.iter().map(|&width| "-".repeat(width)).collect();
        self.widths = Some(widths);
        let names = self.names.clone();
        self.line(&names)?;
        writeln!(self.sink, "{}", rule.join("  "))?;
        for row in std::mem::take(&mut self.waiting) {
            self.line(&row)?;
        }
        Ok(())
    }

    fn line(&mut self, values: &[String]) -> Result<()> {
        let mut line = String::new();
        let widths = self.widths.as_deref().unwrap_or_default();
        for ((value, &column_width), &is_number) in values.iter().zip(widths).zip(&self.are_numbers)
        {
            if !line.is_empty() || value.is_empty() && column_width == 0 {
                line.push_str("  ");
            }
            let gap = " ".repeat(column_width.saturating_sub(width(value)));
            match is_number {
                true => line.extend([&gap, value.as_str()]),
                false => line.extend([value.as_str(), &gap]),
            }
        }
        Ok(writeln!(self.sink, "{}", line.trim_end())?)
    }

    fn finish(mut self) -> Result<()> {
        // Statements such as CREATE have no columns.
        if self.widths.is_none() && !self.names.is_empty() {
            self.begin()?;
        }
        Ok(self.sink.flush()?)
    }
}

fn width(text: &str) -> usize {
    text.chars().count()
}

/// Whether the reader of standard output was gone when rows were written.
static IS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Whether the reader of standard output is gone.
pub(crate) fn is_closed() -> bool {
    IS_CLOSED.load(Ordering::Relaxed)
}
