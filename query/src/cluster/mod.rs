//! More than one machine: a scheduler plans, workers read.
//!
//! The [scheduler] opens the recordings of a query and plans it as a single process would. The parts of the plan that
//! need no other rows than those of one partition (scans, with filters, projections, partial aggregation and sorting above
//! them) become [remote] parts, whose partitions are units of work: chunks of few recordings. Each unit goes to a [worker]
//! that has nothing else to do. Its answer counts only when it is complete, so that a unit whose worker disappears can be
//! given to another one without any row twice. The [pool] keeps the units and who works on them. What is above (joins,
//! final aggregation, merging) runs in the scheduler. [`wire`] is what the nodes say to each other.

mod answer;
pub(crate) mod client;
mod codec;
mod log;
mod metrics;
mod pool;
mod remote;
pub(crate) mod scheduler;
mod wire;
pub(crate) mod worker;

pub(crate) use remote::{Remote, ShareWork};
pub(crate) use wire::Secret;

use kymo_model::Recording;
use sha2::{Digest, Sha256};

use crate::source::Source;
use wire::Fingerprint;

/// The files that were truncated while this process read them, since this was asked the last time.
#[cfg(target_os = "linux")]
fn truncated_files() -> Vec<std::path::PathBuf> {
    kymo_io::take_truncated()
}

/// None: on this system, the process ends then.
#[cfg(not(target_os = "linux"))]
fn truncated_files() -> Vec<std::path::PathBuf> {
    Vec::new()
}

/// What is reported of a file that was truncated while it was read.
fn truncated(path: &std::path::Path) -> String {
    format!("`{}` was truncated while it was read", path.display())
}

/// Identifies recordings by their paths, their names, and the sizes and times of their chunks: each node may have another
/// one at the same path.
fn fingerprint(source: &Source) -> Fingerprint {
    let mut found = Fingerprint::default();
    let mut hash = Sha256::new();
    let recordings = [&source.events, &source.samples];
    for recording in recordings
        .into_iter()
        .flat_map(|opened| opened.recordings())
    {
        found.recordings += 1;
        for text in [
            recording.path().as_os_str().as_encoded_bytes(),
            recording.uid().unwrap_or_default().as_bytes(),
        ] {
            hash.update(text);
            hash.update([0]);
        }
        for stream in 0..recording.streams().len() {
            let (mut chunks, mut bytes) = (0u64, 0u64);
            for chunk in recording.chunks(stream) {
                chunks += 1;
                bytes = bytes.saturating_add(chunk.bytes);
                for number in [
                    chunk.bytes,
                    chunk.begin.unwrap_or(0),
                    chunk.end.unwrap_or(0),
                ] {
                    hash.update(number.to_le_bytes());
                }
            }
            hash.update(chunks.to_le_bytes());
            hash.update(bytes.to_le_bytes());
            found.bytes = found.bytes.saturating_add(bytes);
        }
    }
    let digest = hash.finalize();
    found.hash.copy_from_slice(&digest[..16]);
    found
}
