//! What is kept of the events of a CPEL file.

use std::num::NonZeroU32;

use kymo_machine::ByteOrder;
use kymo_model::{EventClass, FieldId, Recording, Value};

use super::datums::{Datums, How};
use crate::AnyRecording;
use crate::convert::binding::{TrackBinding, UnknownField};
use crate::filter::FieldNames;
use crate::pipeline::Row;

/// What is kept of the fields of an event.
#[derive(Clone, Debug)]
pub enum Keep {
    /// Of CPEL and Gist files the datum with its format, of others the text.
    Own,
    /// All fields, as text.
    Text,
    /// One of them.
    Datum(FieldNames),
}

/// How files are written.
#[derive(Clone, Debug)]
pub struct CpelOptions {
    /// What is kept.
    pub keep: Keep,
    /// The field whose values are tracks; by default, tracks are those of an event log, and otherwise
    /// streams.
    pub track: Option<FieldNames>,
    /// The order of the bytes of numbers.
    pub order: ByteOrder,
    /// Ticks in a second. Of fewer than [`LEAST_PER_SECOND`](kymo_cpel::clock::LEAST_PER_SECOND)
    /// readers must be informed, since they take so small a number for ticks in a microsecond.
    pub clock: NonZeroU32,
}

/// What is read of the events of some recordings.
#[derive(Debug)]
pub struct CpelPlan {
    pub(super) options: CpelOptions,
    pub(super) binding: TrackBinding,
    /// Unless a field is kept.
    pub(super) datums: Option<Datums>,
}

impl CpelPlan {
    /// Binds options to recordings.
    ///
    /// # Errors
    ///
    /// A field that no event has.
    pub fn new(options: CpelOptions, recordings: &[AnyRecording]) -> Result<Self, UnknownField> {
        let (datum, datums) = match &options.keep {
            Keep::Own => (None, Some(Datums::new(recordings, false))),
            Keep::Text => (None, Some(Datums::new(recordings, true))),
            Keep::Datum(field) => (Some(field), None),
        };
        let binding =
            TrackBinding::of_value("--datum", options.track.as_ref(), false, datum, recordings)?;
        let binding = match &datums {
            None => binding,
            Some(datums) => binding.with_fields(recordings, |recording, class| {
                let own = datums.of(recording, class);
                let shown = recordings[recording].is_log().then(|| {
                    let class = &recordings[recording].event_classes()[class];
                    shown_of_log(class, own)
                });
                shown.flatten().into_iter().collect()
            }),
        };
        Ok(Self {
            options,
            binding,
            datums,
        })
    }

    /// The value that is kept of an event.
    #[inline]
    pub(super) fn value<'v>(&self, row: &Row<'v>, source: &AnyRecording) -> Value<'v> {
        if self.is_text(source) {
            // It begins with a blank, if there is any.
            return Value::Text(row.text.get(1..).unwrap_or_default());
        }
        match self.datums {
            Some(_) => {
                let (recording, class) = (row.message.recording, row.message.class);
                // If the class does not have the field, the column does not exist.
                row.values
                    .get(self.binding.plan().first_added(recording, class))
            }
            None => self.binding.value(row).unwrap_or(Value::Missing),
        }
    }

    /// Whether all fields of the events of a recording are written as text.
    pub(super) fn is_text(&self, recording: &AnyRecording) -> bool {
        self.datums.is_some() && !recording.is_log()
    }
}

/// The field of the events of a log that is kept: the text that they show, or a datum that stays what it is.
fn shown_of_log(class: &EventClass, own: Option<&How>) -> Option<FieldId> {
    let name = match own {
        Some(How::Number(_) | How::String(_)) => "datum",
        Some(How::Text) | None => "text",
    };
    let mut fields = class.schema.fields().iter().zip(0..);
    let field = fields.find(|(field, _)| field.name.as_deref() == Some(name));
    field.map(|(_, position)| FieldId(position))
}
