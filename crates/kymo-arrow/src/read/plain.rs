//! A Parquet file of another program: a trace of one event class.

use std::path::Path;
use std::sync::Arc;

use arrow_schema::{DataType, Field};
use kymo::convert::ctf::TraceModel;
use kymo::open::Options;
use kymo_ctf::trace::Trace;
use kymo_model::{Base, EventClass, FieldId, Kind, Schema, Scope};
use kymo_time::{Clock, NANOS_PER_SECOND, Origin};

use super::Problem;
use super::rows::{Columns, Own, Rows, TableFile, Ticks};
use super::trace::Maker;
use crate::kinds::Form;

/// Columns of time that count as that of the rows, before others.
const TIMES: [&str; 4] = ["timestamp", "time", "ts", "datetime"];
/// Where the clock of times before 1970 begins, in seconds.
const EARLY: i64 = -(1_i64 << 62) / NANOS_PER_SECOND;

/// Makes a trace of the rows of a file.
pub(super) fn open(path: &Path, bytes: bytes::Bytes, options: &Options) -> Result<Trace, Problem> {
    let file = TableFile::new(bytes, true)?;
    let fields = file.schema().fields().clone();
    let is_time = |field: &Field| matches!(field.data_type(), DataType::Timestamp(..));
    let named = TIMES.iter().find_map(|name| {
        let mut all = fields.iter();
        all.position(|field| field.name() == name && is_time(field))
    });
    let time = named.or_else(|| fields.iter().position(|field| is_time(field)));
    let mut schema = Schema::new();
    let root = schema.push_root(Scope::Payload, Kind::Struct);
    let mut columns = Vec::new();
    for (position, field) in fields.iter().enumerate() {
        if Some(position) == time {
            continue;
        }
        let mut form = Form::of(field)?;
        if field.is_nullable() && file.nulls(position) != Some(0) {
            form = Form::Optional(Box::new(form));
        }
        add(
            &mut schema,
            root,
            Some(field.name()),
            &form,
            field.data_type(),
        );
        columns.push((position, form));
    }
    let name = name_of(path);
    let class = EventClass {
        id: 0,
        stream_class: 0,
        name: Some(name.as_str().into()),
        log_level: None,
        emf_uri: None,
        schema,
    };
    let begin = match time {
        Some(time) if may_be_early(&file, time) => EARLY,
        _ => 0,
    };
    let clock = time.map(|_| {
        Arc::new(Clock {
            name: Some("time".to_owned()),
            frequency: NANOS_PER_SECOND as u64,
            offset_seconds: begin,
            origin: Origin::UnixEpoch,
            ..Clock::default()
        })
    });
    let model = TraceModel::of_tables(clock, &[class]).map_err(|error| error.to_string())?;
    let mut maker = Maker::new(&model, Default::default()).map_err(|error| error.to_string())?;
    let own = Own {
        timestamp: time,
        ticks: Ticks::Since(begin * NANOS_PER_SECOND),
        position: None,
    };
    let groups = match time {
        _ if !options.hint.has_event(&name) => Vec::new(),
        Some(time) => file.groups_within(time, options.hint.window),
        None => (0..file.groups()).collect(),
    };
    // When the recording begins and ends is known where nothing of it is wanted.
    let groups = match groups.is_empty() {
        true => file.ends(),
        false => groups,
    };
    let mut rows = Rows::new(&file, groups, Columns::payload(columns), own);
    while rows.next()?.is_some() {
        let (event, ticks) = (rows.event(), rows.ticks());
        maker
            .event((0, 0), event, ticks, |to| rows.give(to))
            .map_err(|error| error.to_string())?;
    }
    maker
        .open(path, &options.trace)
        .map_err(|error| error.to_string())
}

/// Whether a time may be before 1970.
fn may_be_early(file: &TableFile, column: usize) -> bool {
    file.statistics(column)
        .any(|statistics| statistics.least.is_none_or(|least| least < 0))
}

/// What the rows are called: as the directory of their class, or as the file.
fn name_of(path: &Path) -> String {
    let directory = path.parent().and_then(Path::file_name);
    let directory = directory
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    if let Some(name) = directory.strip_prefix("class=") {
        return decoded(name);
    }
    let stem = path
        .file_stem()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    match stem.starts_with("part-") && !directory.is_empty() {
        true => directory,
        false => stem,
    }
}

/// A name without percent-encoding.
fn decoded(name: &str) -> String {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let code = (first == b'%').then(|| after.get(..2)).flatten();
        let code = code.and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Adds a field for the values of a column.
fn add(
    schema: &mut Schema,
    parent: FieldId,
    name: Option<&str>,
    form: &Form,
    data_type: &DataType,
) {
    let bits = match data_type {
        DataType::UInt8 | DataType::Int8 => 8,
        DataType::UInt16 | DataType::Int16 | DataType::Float16 => 16,
        DataType::UInt32
        | DataType::Int32
        | DataType::Float32
        | DataType::Date32
        | DataType::Time32(_) => 32,
        _ => 64,
    };
    let (base, labels) = (Base::Decimal, None);
    let kind = match form {
        Form::Uint => Kind::Uint { bits, base, labels },
        Form::Sint => Kind::Sint { bits, base, labels },
        Form::Float | Form::Float128 => Kind::Float { bits },
        Form::Bool => Kind::Bool { bits: 8 },
        Form::Bits => Kind::BitArray { bits },
        &Form::Wide { bits, signed } => Kind::Wide { bits, signed },
        Form::Text | Form::Json => Kind::Text,
        Form::Blob => Kind::Blob,
        Form::Struct(_) | Form::Nothing => Kind::Struct,
        Form::Variant(_) => Kind::Variant,
        Form::Array(_) => Kind::Array { length: None },
        Form::Optional(_) => Kind::Optional,
    };
    let field = schema.push_child(parent, name.map(Arc::from), kind);
    match (form, data_type) {
        (Form::Optional(inner), _) => add(schema, field, None, inner, data_type),
        (Form::Array(form), DataType::List(item) | DataType::Map(item, _)) => {
            add(schema, field, None, form, item.data_type());
        }
        (Form::Struct(members) | Form::Variant(members), DataType::Struct(fields)) => {
            for (form, member) in members.iter().zip(fields) {
                add(schema, field, Some(member.name()), form, member.data_type());
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_called_as_their_directory_or_file() {
        for (path, expected) in [
            ("tables/class=demo%3Asched/part-0.parquet", "demo:sched"),
            ("tables/class=%C3%B6%/part-0.parquet", "ö%"),
            ("tables/samples/part-0.parquet", "samples"),
            ("part-0.parquet", "part-0"),
            ("tables/load.parquet", "load"),
        ] {
            assert_eq!(name_of(Path::new(path)), expected);
        }
    }
}
