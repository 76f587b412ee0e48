//! The table of recordings: what a trace needs to be made again.

use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder, StructBuilder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};
use kymo::AnyRecording;
use kymo::convert::ctf::TraceModel;
use kymo_model::Recording;

use crate::Error;

fn stream_fields() -> Fields {
    Fields::from(vec![
        Field::new("class", DataType::UInt64, true),
        Field::new("id", DataType::UInt64, true),
        Field::new("name", DataType::Utf8, true),
    ])
}

/// The schema of [`Table::Recordings`](crate::Table::Recordings).
pub fn recordings_schema() -> SchemaRef {
    let text = |name| Field::new(name, DataType::Utf8, true);
    let stream = Field::new("item", DataType::Struct(stream_fields()), true);
    Arc::new(Schema::new(vec![
        text("recording"),
        text("format"),
        text("version"),
        text("name"),
        text("uid"),
        text("metadata"),
        Field::new("streams", DataType::List(Arc::new(stream)), true),
    ]))
}

/// One row for each recording; recordings that cannot be CTF 2 traces have no model.
pub(crate) fn recordings(
    recordings: &[AnyRecording],
    paths: &[String],
    models: &[Option<TraceModel>],
) -> Result<RecordBatch, Error> {
    let texts = |text: &dyn Fn(&AnyRecording) -> Option<String>| -> ArrayRef {
        Arc::new(recordings.iter().map(text).collect::<StringArray>())
    };
    let metadata: StringArray = models
        .iter()
        .map(|model| kymo_ctf::metadata::write::write(&model.as_ref()?.class).ok())
        .collect();
    let mut streams = ListBuilder::new(StructBuilder::from_fields(stream_fields(), 0));
    for model in models {
        for stream in model.iter().flat_map(|model| &model.streams) {
            let all = streams.values();
            // They are what `stream_fields` says.
            if let Some(class) = all.field_builder::<UInt64Builder>(0) {
                class.append_value(stream.stream_class as u64);
            }
            if let Some(id) = all.field_builder::<UInt64Builder>(1) {
                id.append_option(stream.id);
            }
            if let Some(name) = all.field_builder::<StringBuilder>(2) {
                name.append_value(&stream.name);
            }
            all.append(true);
        }
        streams.append(model.is_some());
    }
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from_iter_values(paths)),
        texts(&|recording| Some(recording.format().name.to_owned())),
        texts(&|recording| Some(recording.format().version.to_owned())),
        texts(&|recording| recording.name().map(str::to_owned)),
        texts(&|recording| recording.uid().map(str::to_owned)),
        Arc::new(metadata),
        Arc::new(streams.finish()),
    ];
    Ok(RecordBatch::try_new(recordings_schema(), columns)?)
}
