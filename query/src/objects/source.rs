//! The bytes of an object, by ranges.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use kymo_io::ReadAt;
use object_store::{Error, GetOptions, GetRange, GetResult, ObjectMeta, ObjectStore};

use super::{CHANGED, explained, wait};

/// Bytes of one request, at most.
const MOST_AT_ONCE: u64 = 8 << 20;

/// A range of an object without a tag is asked for so often, if the connection breaks while it comes; of others, the
/// library asks for the rest again.
const TRIES: u32 = 4;

/// An object as it was when it was found.
#[derive(Clone, Debug)]
pub(super) struct Object {
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) meta: ObjectMeta,
}

/// Why a range did not come.
enum Failure {
    /// It may come if it is asked for again.
    Broken(String),
    Final(io::Error),
}

impl Object {
    /// A range of the object, if it is still the same one.
    async fn range(self, range: Range<u64>) -> io::Result<Vec<u8>> {
        let mut tries = 0;
        loop {
            match self.try_range(range.clone()).await {
                Ok(bytes) => return Ok(bytes),
                Err(Failure::Final(error)) => return Err(error),
                Err(Failure::Broken(reason)) => {
                    tries += 1;
                    if tries == TRIES || self.meta.e_tag.is_some() {
                        return Err(io::Error::other(reason));
                    }
                    tokio::time::sleep(Duration::from_millis(100 << tries)).await;
                }
            }
        }
    }

    /// What the server answers to a request for the object, if it is still the same one.
    pub(super) async fn get(&self, options: GetOptions) -> io::Result<GetResult> {
        let known = &self.meta;
        // What may differ in bytes cannot be a condition.
        let is_strong = |tag: &&String| !tag.starts_with("W/");
        let options = GetOptions {
            if_match: known.e_tag.as_ref().filter(is_strong).cloned(),
            ..options
        };
        let answer = self.store.get_opts(&known.location, options).await;
        let answer = answer.map_err(|error| explained(&error))?;
        let is_same = match (&known.e_tag, &answer.meta.e_tag) {
            (Some(known), Some(now)) => known == now,
            // Lists of objects have parts of seconds, answers have none.
            _ => known.last_modified.timestamp() == answer.meta.last_modified.timestamp(),
        };
        match is_same && answer.meta.size == known.size {
            true => Ok(answer),
            false => Err(io::Error::other(CHANGED)),
        }
    }

    async fn try_range(&self, range: Range<u64>) -> Result<Vec<u8>, Failure> {
        let answer = self.get(GetOptions {
            range: Some(GetRange::Bounded(range.clone())),
            ..GetOptions::default()
        });
        // Requests that fail by the network or a busy server were repeated already.
        let answer = answer.await.map_err(Failure::Final)?;
        if answer.range != range {
            let (asked, got) = (range, answer.range);
            return Err(Failure::Final(io::Error::other(format!(
                "the server answers bytes {}..{} where {}..{} were asked for",
                got.start, got.end, asked.start, asked.end
            ))));
        }
        let expected = usize::try_from(range.end - range.start);
        let expected = expected.map_err(|error| Failure::Final(io::Error::other(error)))?;
        let mut bytes = Vec::with_capacity(expected);
        let mut pieces = answer.into_stream();
        while bytes.len() < expected
            && let Some(piece) = pieces.next().await
        {
            let piece =
                piece.map_err(|error: Error| Failure::Broken(explained(&error).to_string()))?;
            if bytes.len() + piece.len() > expected {
                break;
            }
            bytes.extend_from_slice(&piece);
        }
        match bytes.len() == expected {
            true => Ok(bytes),
            false => Err(Failure::Broken(format!(
                "the server sent {} bytes of a range of {expected}",
                bytes.len()
            ))),
        }
    }
}

impl ReadAt for Object {
    fn length(&self) -> io::Result<u64> {
        Ok(self.meta.size)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let end = offset.checked_add(buffer.len() as u64);
        if end.is_none_or(|end| end > self.meta.size) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        for (at, piece) in (offset..)
            .step_by(MOST_AT_ONCE as usize)
            .zip(buffer.chunks_mut(MOST_AT_ONCE as usize))
        {
            let range = at..at + piece.len() as u64;
            piece.copy_from_slice(&wait(self.clone().range(range))??);
        }
        Ok(())
    }
}
