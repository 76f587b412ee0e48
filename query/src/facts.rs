//! What is known of recordings as a whole: Perfetto's `metadata` and `clock_snapshot`.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::Result;
use futures::FutureExt;
use kymo::AnyRecording;
use kymo_ctf::class::EnvironmentValue;
use kymo_model::Recording;

use crate::source::Source;
use crate::streamed::{Made, Maker};

fn schema(columns: &[(&str, DataType)]) -> SchemaRef {
    let fields = columns
        .iter()
        .map(|(name, data_type)| Field::new(*name, data_type.clone(), true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// The tables `metadata` and `clock_snapshot`.
pub(crate) fn fact_tables(source: &Arc<Source>) -> Vec<Made> {
    let made =
        |name: &str, schema: SchemaRef, rows: fn(&Source, SchemaRef) -> Result<RecordBatch>| {
            let (source, of_rows) = (Arc::clone(source), Arc::clone(&schema));
            let make = move |_| {
                let rows = rows(&source, Arc::clone(&of_rows));
                async move { rows }.boxed()
            };
            Made {
                name: name.to_owned(),
                schema,
                time: None,
                maker: Maker::Whole(Arc::new(make)),
            }
        };
    let metadata = schema(&[
        ("recording", DataType::Utf8),
        ("name", DataType::Utf8),
        ("key_type", DataType::Utf8),
        ("int_value", DataType::Int64),
        ("str_value", DataType::Utf8),
    ]);
    let clocks = schema(&[
        ("recording", DataType::Utf8),
        ("ts", DataType::Int64),
        ("clock_id", DataType::Int64),
        ("clock_name", DataType::Utf8),
        ("clock_value", DataType::UInt64),
        ("frequency", DataType::UInt64),
        ("snapshot_id", DataType::Int64),
    ]);
    vec![
        made("metadata", metadata, metadata_rows),
        made("clock_snapshot", clocks, clock_rows),
    ]
}

fn recordings(source: &Source) -> impl Iterator<Item = &AnyRecording> {
    let (events, samples) = (&source.events, &source.samples);
    events.recordings().iter().chain(samples.recordings())
}

/// A fact of a recording: its path, the name of the fact, and a number or a text.
struct Fact {
    path: String,
    name: String,
    number: Option<i64>,
    text: Option<String>,
}

fn metadata_rows(source: &Source, schema: SchemaRef) -> Result<RecordBatch> {
    let mut facts = Vec::new();
    for recording in recordings(source) {
        let mut add = |name: &str, number: Option<i64>, text: Option<String>| {
            if number.is_some() || text.is_some() {
                facts.push(Fact {
                    path: recording.path().to_string_lossy().into_owned(),
                    name: name.to_owned(),
                    number,
                    text,
                });
            }
        };
        add("trace_type", None, Some(recording.format().name.to_owned()));
        add("trace_name", None, recording.name().map(str::to_owned));
        add("trace_uuid", None, recording.uid().map(str::to_owned));
        let environment = recording
            .as_ctf()
            .map(|trace| &trace.metadata().class.environment);
        for (name, value) in environment.into_iter().flatten() {
            let name = format!("env.{name}");
            match value {
                EnvironmentValue::Integer(number) => add(&name, Some(*number), None),
                EnvironmentValue::Text(text) => add(&name, None, Some(text.clone())),
            }
        }
    }
    let texts = |text: fn(&Fact) -> Option<&str>| -> ArrayRef {
        Arc::new(facts.iter().map(text).collect::<StringArray>())
    };
    let numbers: Int64Array = facts.iter().map(|fact| fact.number).collect();
    let columns = vec![
        texts(|fact| Some(&fact.path)),
        texts(|fact| Some(&fact.name)),
        texts(|_| Some("single")),
        Arc::new(numbers) as ArrayRef,
        texts(|fact| fact.text.as_deref()),
    ];
    Ok(RecordBatch::try_new(schema, columns)?)
}

/// A row for each clock of a recording: the time at which it counts 0.
fn clock_rows(source: &Source, schema: SchemaRef) -> Result<RecordBatch> {
    let (mut paths, mut times, mut ids, mut names) = (vec![], vec![], vec![], vec![]);
    let (mut frequencies, mut snapshots) = (vec![], vec![]);
    for (snapshot, recording) in recordings(source).enumerate() {
        let mut known: Vec<&kymo_time::Clock> = Vec::new();
        for clock in recording
            .streams()
            .iter()
            .filter_map(|stream| stream.clock.as_deref())
        {
            if known.contains(&clock) {
                continue;
            }
            paths.push(recording.path().to_string_lossy().into_owned());
            times.push(clock.timestamp(0).map(kymo_time::Timestamp::as_nanos));
            ids.push(known.len() as i64);
            names.push(clock.name.clone());
            frequencies.push(clock.frequency);
            snapshots.push(snapshot as i64);
            known.push(clock);
        }
    }
    let zeros = UInt64Array::from(vec![0; ids.len()]);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from(paths)),
        Arc::new(Int64Array::from(times)),
        Arc::new(Int64Array::from(ids)),
        Arc::new(StringArray::from(names)),
        Arc::new(zeros),
        Arc::new(UInt64Array::from(frequencies)),
        Arc::new(Int64Array::from(snapshots)),
    ];
    Ok(RecordBatch::try_new(schema, columns)?)
}
