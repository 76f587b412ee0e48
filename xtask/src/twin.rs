//! The CTF 2 twin of a CTF 1.8 trace: the same data streams, described in the other language.

use std::path::Path;

use kymo_ctf::metadata::{self, ctf2};

use crate::Outcome;

/// Makes the twin of all traces below a folder. Data streams and indexes are linked, or copied
/// where that is not possible.
pub(crate) fn make(traces: &Path, twins: &Path) -> Outcome {
    std::fs::create_dir_all(twins)?;
    for entry in std::fs::read_dir(traces)? {
        let entry = entry?;
        let (from, to) = (entry.path(), twins.join(entry.file_name()));
        if from.is_dir() {
            make(&from, &to)?;
        } else if entry.file_name() == "metadata" {
            let class = metadata::parse(&std::fs::read(&from)?, "metadata")?.class;
            std::fs::write(&to, ctf2::write(&class)?)?;
        } else if std::fs::hard_link(&from, &to).is_err() {
            std::fs::copy(&from, &to)?;
        }
    }
    Ok(())
}
