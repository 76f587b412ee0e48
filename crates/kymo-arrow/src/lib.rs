//! Recordings as tables: Arrow's arrays and stream format, directories of Parquet files.
//!
//! [`record_batch`] moves the columns of a [`Batch`](kymo::timeline::Batch) into an Arrow batch; [`tables`] gives the
//! tables of a recording: one for each event class, `samples`, `losses` and `packets`. [`Directory`] writes them as
//! Parquet files in partitioned directories, [`write_stream`] writes rows of all classes in Arrow's stream format.
//! docs/tables.md describes the columns. With [`FORMATS`] among the options of opening, Parquet files and such
//! directories are recordings.
//!
//! ```
//! use kymo::timeline::Timeline;
//! use kymo_arrow::{Directory, tables};
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/lttng-small");
//! # let place = tempfile::tempdir()?;
//!
//! let opened = kymo::open::open(&[path.into()], &Default::default());
//! let timeline = Timeline::new(opened.recordings);
//! let mut directory = Directory::new(place.path(), 2)?;
//! tables(&timeline, &Default::default(), &mut |table, batch| directory.write(table, batch), &mut |_| ())?;
//! let written = directory.finish()?;
//! assert!(written.iter().any(|file| file.path.starts_with("class=demo%3Asched")));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod array;
mod directory;
mod error;
mod events;
mod kinds;
mod packet_fields;
mod read;
mod recordings;
mod samples;
mod stream;
mod tables;
mod write;

pub use self::array::{array, data_type, record_batch};
pub use self::directory::{Directory, Written};
pub use self::error::Error;
pub use self::events::{EventReader, EventTable, OwnColumn};
pub use self::read::{FORMAT, FORMATS, parquet_rows};
pub use self::recordings::recordings_schema;
pub use self::samples::{SampleReader, samples_schema};
pub use self::stream::write_stream;
pub use self::tables::{
    Table, class_name, class_schema, losses, losses_schema, packets, packets_schema, tables,
    time_type,
};
