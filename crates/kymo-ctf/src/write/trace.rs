//! A trace as a directory.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kymo_machine::ByteOrder;

use super::encoder::{Encoder, EventId};
use super::error::WriteError;
use super::sink::{PacketSink, StreamSink};
use super::stream::{StreamOptions, StreamWriter};
use crate::class::{Dialect, TraceClass};
use crate::metadata;
use crate::metadata::rfc;
use crate::secure::{self, Compression, Nonce, Protection};
use crate::trace::METADATA_NAME;

/// Larger metadata is not compressed, since readers limit what they decompress.
const MOST_COMPRESSED: usize = 32 << 20;

/// The directory of LTTng's index files.
const INDEX: &str = "index";

/// A stream of a [`TraceWriter`].
pub type FileStream = StreamWriter<StreamFile>;

/// The file of a stream, and its index.
pub type StreamFile = StreamSink<BufWriter<File>>;

/// How a trace is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceOptions {
    /// Whether to write index files as LTTng does, which readers open faster. RFC v1.1 has none.
    pub index: bool,
}

/// Writes a trace to a directory: the metadata, and a file for each stream.
#[derive(Debug)]
pub struct TraceWriter {
    path: PathBuf,
    encoder: Arc<Encoder>,
    options: TraceOptions,
    names: BTreeSet<String>,
}

impl TraceWriter {
    /// Makes the directory, unless it is there and empty, and writes the metadata.
    ///
    /// # Errors
    ///
    /// Where the metadata language cannot hold the classes, or the directory is not empty or cannot
    /// be written.
    pub fn create(
        path: &Path,
        class: &TraceClass,
        options: TraceOptions,
    ) -> Result<Self, WriteError> {
        Self::create_with(path, class, options, |text| Ok(text.into_bytes()))
    }

    /// The same with metadata in a packet that is secured as those of the streams are, if the trace is one of RFC
    /// v1.1: if encrypted, it cannot be read without the key, and an event cannot be renamed unnoticed.
    ///
    /// # Errors
    ///
    /// Those of [`create`](Self::create), and of the source of random bytes.
    pub fn create_secured(
        path: &Path,
        class: &TraceClass,
        options: TraceOptions,
        (protection, nonce): &(Protection, Nonce),
        session_id: u32,
    ) -> Result<Self, WriteError> {
        Self::create_with(path, class, options, |text| match class.dialect {
            Dialect::Rfc11 => {
                let order = class.native_order();
                Ok(sealed_metadata(
                    &text, order, session_id, protection, *nonce,
                )?)
            }
            _ => Ok(text.into_bytes()),
        })
    }

    fn create_with(
        path: &Path,
        class: &TraceClass,
        options: TraceOptions,
        form: impl FnOnce(String) -> Result<Vec<u8>, WriteError>,
    ) -> Result<Self, WriteError> {
        let encoder = Encoder::new(class)?;
        let text =
            metadata::write::write(class).map_err(|error| WriteError::Misuse(error.to_string()))?;
        let text = form(text)?;
        kymo_io::create_directories(path, false)?;
        if std::fs::read_dir(path)?.next().is_some() {
            let problem = format!("{}: the directory is not empty", path.display());
            return WriteError::misuse(problem);
        }
        kymo_io::replace(
            &path.join(METADATA_NAME),
            kymo_io::Replace {
                sync: false,
                ..kymo_io::Replace::NEW
            },
            |file| file.write_all(&text),
        )?;
        Ok(Self {
            path: path.to_path_buf(),
            encoder,
            options,
            names: BTreeSet::from([METADATA_NAME.to_owned()]),
        })
    }

    /// The classes.
    pub fn encoder(&self) -> &Arc<Encoder> {
        &self.encoder
    }

    /// The event class with a name.
    ///
    /// # Errors
    ///
    /// If the event class does not exist, or several stream classes have one.
    pub fn event(&self, name: &str) -> Result<EventId, WriteError> {
        let streams = 0..self.encoder.class.streams.len();
        let mut events = streams.filter_map(|stream| self.encoder.event(stream, name));
        match (events.next(), events.next()) {
            (Some(event), None) => Ok(event),
            (None, _) => WriteError::misuse(format!("no event class is called `{name}`")),
            (Some(_), Some(_)) => WriteError::misuse(format!(
                "several stream classes have an event class called `{name}`"
            )),
        }
    }

    /// A new stream, in a file of this name. Streams may be written by several threads.
    ///
    /// In RFC v1.1, names identify the section: `name` is not used there, but the section's own and the
    /// number of the stream.
    ///
    /// # Errors
    ///
    /// If the name is not a valid file name or was used before, the stream class does not exist, or
    /// the file cannot be made.
    pub fn stream(
        &mut self,
        stream_class: usize,
        name: &str,
        options: StreamOptions,
    ) -> Result<FileStream, WriteError> {
        self.stream_through(stream_class, name, options, |file| file)
    }

    /// A new [stream](Self::stream) whose packets pass through another sink to the file.
    ///
    /// # Errors
    ///
    /// Those of [`stream`](Self::stream).
    pub fn stream_through<S: PacketSink>(
        &mut self,
        stream_class: usize,
        name: &str,
        options: StreamOptions,
        through: impl FnOnce(StreamFile) -> S,
    ) -> Result<StreamWriter<S>, WriteError> {
        let name = match self.encoder.class.dialect {
            Dialect::Rfc11 => {
                let section = self.encoder.class.streams.get(stream_class);
                let section = section.and_then(|section| section.name.as_deref());
                format!(
                    "{}_{}",
                    section.unwrap_or_default(),
                    options.stream_id.unwrap_or(0)
                )
            }
            _ => name.to_owned(),
        };
        let is_name = Path::new(&name).file_name() == Some(name.as_ref());
        if !is_name || name.starts_with('.') || name == INDEX {
            return WriteError::misuse(format!("`{name}` cannot name the file of a stream"));
        }
        if !self.names.insert(name.clone()) {
            return WriteError::misuse(format!("there is a file `{name}` in the trace already"));
        }
        let create = |path: &Path| -> io::Result<_> {
            let file = File::options().write(true).create_new(true).open(path)?;
            Ok(BufWriter::with_capacity(1 << 18, file))
        };
        let data = create(&self.path.join(&name))?;
        let has_index = self.options.index && self.encoder.class.dialect != Dialect::Rfc11;
        let index = match has_index {
            true => {
                let directory = self.path.join(INDEX);
                kymo_io::create_directories(&directory, false)?;
                Some(create(&directory.join(format!("{name}.idx")))?)
            }
            false => None,
        };
        StreamWriter::new(
            &self.encoder,
            stream_class,
            options,
            through(StreamSink::new(data, index)?),
        )
    }
}

/// Metadata of RFC v1.1 in a single packet: if there were several, an attacker could remove one.
fn sealed_metadata(
    text: &str,
    order: ByteOrder,
    session_id: u32,
    protection: &Protection,
    nonce: Nonce,
) -> io::Result<Vec<u8>> {
    let packet = rfc::packets::packet(text.as_bytes(), order, session_id);
    let packet = packet.ok_or_else(|| io::Error::other("the metadata has 4 GiB or more"))?;
    let mut protection = protection.clone();
    if text.len() > MOST_COMPRESSED {
        protection.compression = Compression::None;
    }
    let chance = match protection.key {
        Some(_) => nonce()?,
        None => Default::default(),
    };
    secure::seal(&packet, order, &protection, || chance).map_err(io::Error::other)
}
