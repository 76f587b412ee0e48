//! Trees of files: those of Graphite's Whisper, of Ganglia and of Proxmox VE.

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};

use kymo_io::EntryKind;
use kymo_io::path::shown;
use kymo_rrd::{Source, Text, is_database};

use super::Import;
use crate::make::{self, Existing};
use crate::{Failure, Session, open};

/// Directories are not looked into deeper than this.
const DEEPEST: usize = 32;
/// Messages about files; more are counted only.
const MOST_REPORTED: u64 = 20;

/// What a tree holds, which says where its files go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// Files of Whisper, at the paths of their metrics.
    Whisper,
    /// Databases of gmetad: `CLUSTER/HOST/METRIC.rrd`.
    Ganglia,
    /// Databases of pvestatd: `pve2-node/NODE`, `pve2-vm/ID`, `pve2-storage/NODE/STORAGE`, and since Proxmox VE 9
    /// `pve-node-9.0/NODE` and so on.
    Proxmox,
}

impl Layout {
    pub(super) fn named(name: &[u8]) -> Option<Self> {
        match name {
            b"whisper" => Some(Self::Whisper),
            b"ganglia" => Some(Self::Ganglia),
            b"proxmox" => Some(Self::Proxmox),
            _ => None,
        }
    }

    /// Where the database of a file goes, both relative to their directories; `None` if the path is not one of the
    /// layout. Paths of three parts are `HOST/PLUGIN[-INSTANCE]/TYPE.rrd`, which become labels in queries.
    fn target(self, file: &str) -> Option<String> {
        let parts: Vec<&str> = file.split('/').collect();
        match self {
            Self::Whisper => Some(format!("{}.rrd", file.strip_suffix(".wsp")?)),
            Self::Ganglia => {
                let target = |host: &str, cluster: &str, metric: &str| match cluster {
                    "" => format!("{host}/ganglia/{metric}"),
                    cluster => format!("{host}/ganglia-{cluster}/{metric}"),
                };
                match parts[..] {
                    _ if !file.ends_with(".rrd") => None,
                    [cluster, host, metric] => Some(target(host, cluster, metric)),
                    // Sums over all clusters.
                    [host, metric] => Some(target(host, "", metric)),
                    _ => None,
                }
            }
            Self::Proxmox => {
                let is = |directory: &str, kind: &str| {
                    let rest = directory.strip_prefix("pve");
                    let rest = rest
                        .map(|rest| rest.trim_start_matches(|char: char| char.is_ascii_digit()));
                    let rest = rest.and_then(|rest| rest.strip_prefix('-')?.strip_prefix(kind));
                    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
                };
                let plain = |name: &'_ str| name.strip_suffix(".rrd").unwrap_or(name).to_owned();
                match parts[..] {
                    [kind, node] if is(kind, "node") => {
                        Some(format!("{}/pve/node.rrd", plain(node)))
                    }
                    [kind, guest] if is(kind, "vm") => Some(format!("{}/pve/vm.rrd", plain(guest))),
                    [kind, node, storage] if is(kind, "storage") => {
                        Some(format!("{node}/pve-{}/storage.rrd", plain(storage)))
                    }
                    _ => None,
                }
            }
        }
    }
}

/// What was done.
#[derive(Default)]
struct Tally {
    imported: u64,
    failed: u64,
    kept: u64,
    passed_over: u64,
}

/// What becomes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Done {
    /// Its database is made.
    Imported,
    /// Its database exists already, and stays.
    Kept,
    /// It is not one of the layout.
    PassedOver,
}

impl Import<'_> {
    /// Makes a database of each file of a directory.
    pub(super) fn tree(&self, session: &mut Session<'_>, layout: Layout) -> Result<(), Failure> {
        if self.columns.is_some() || self.time.is_some() {
            return Err(self.failure("files of a tree have no columns"));
        }
        if !self.texts.is_empty() || self.step.is_some() {
            return Err(self.failure(
                "the databases of a tree have the data sources and archives of its files; leave out DS:, RRA: and --step",
            ));
        }
        let root = kymo_io::path::path(self.input).into_owned();
        let base = kymo_io::path::path(self.output).into_owned();
        let mut files = files_of(&root).map_err(|error| {
            Failure::new(format!(
                "reading '{}': {}",
                shown(self.input),
                kymo_io::reason(&error)
            ))
        })?;
        files.sort();
        let mut tally = Tally::default();
        let mut taken: HashMap<String, PathBuf> = HashMap::new();
        for path in files {
            let relative = path.strip_prefix(&root).unwrap_or(&path).to_path_buf();
            let target = relative
                .to_str()
                .and_then(|relative| layout.target(relative));
            let done = match target {
                None => Ok(Done::PassedOver),
                Some(target) => match taken.get(&target) {
                    Some(other) => Err(Failure::new(format!(
                        "it would be '{target}', and so is '{}'; `kymo rrd merge` makes one of both",
                        other.display()
                    ))),
                    None => self
                        .file(session, layout, &path, &base.join(&target))
                        .inspect(|done| {
                            if *done != Done::PassedOver {
                                taken.insert(target, relative.clone());
                            }
                        }),
                },
            };
            match done {
                Ok(Done::Imported) => tally.imported += 1,
                Ok(Done::Kept) => tally.kept += 1,
                Ok(Done::PassedOver) => tally.passed_over += 1,
                Err(failure) => {
                    tally.failed += 1;
                    if tally.failed <= MOST_REPORTED {
                        session.warn(format_args!("'{}': {failure}", relative.display()));
                    }
                }
            }
        }
        let Tally {
            imported,
            failed,
            kept,
            passed_over,
        } = tally;
        let kept = match kept {
            0 => String::new(),
            kept => format!(", {kept} that exist kept"),
        };
        session.write(format!(
            "{imported} databases imported{kept}, {passed_over} other files passed over\n"
        ))?;
        match failed {
            0 => Ok(()),
            failed => Err(self.failure(format_args!("{failed} files could not be imported"))),
        }
    }

    /// Makes a database of a file.
    fn file(
        &self,
        session: &mut Session<'_>,
        layout: Layout,
        path: &Path,
        target: &Path,
    ) -> Result<Done, Failure> {
        let (word, output) = (bytes_of(path), bytes_of(target));
        if layout != Layout::Whisper && !begins_as_database(path) {
            return Ok(Done::PassedOver);
        }
        if self.existing == Existing::Stays && target.symlink_metadata().is_ok() {
            return Ok(Done::Kept);
        }
        if let Some(directory) = target.parent() {
            kymo_io::create_directories(directory, session.durable).map_err(|error| {
                Failure::new(format!(
                    "creating '{}': {}",
                    directory.display(),
                    kymo_io::reason(&error)
                ))
            })?;
        }
        match layout {
            Layout::Whisper => {
                let bytes = open::bytes(&word)?;
                self.whisper_source(session, &word, &bytes, |session, source| {
                    make::write(session, &output, source, self.format, self.existing)
                })?;
            }
            Layout::Ganglia | Layout::Proxmox => {
                open::with_source(session, &word, None, |session, source| {
                    let mut source = source.clone();
                    if layout == Layout::Ganglia {
                        rename_sum(&mut source);
                    }
                    make::write(session, &output, &source, self.format, self.existing)
                })?;
            }
        }
        Ok(Done::Imported)
    }
}

/// The only data source of gmetad's databases is called `sum`: it is the value.
fn rename_sum(source: &mut Source<'_>) {
    if let [only] = &mut source.database.sources[..]
        && only.name.as_bytes() == b"sum"
    {
        only.name = Text::new(b"value");
    }
}

fn begins_as_database(path: &Path) -> bool {
    use std::io::Read;
    let mut begin = [0; 16];
    let read = std::fs::File::open(path).and_then(|mut file| file.read(&mut begin));
    // What cannot be read is reported when it is opened.
    read.map_or(true, |length| is_database(&begin[..length]))
}

/// The files of a tree. Links are followed, but each directory is read once, since links may lead in circles: by its own
/// name if it is in the tree.
fn files_of(root: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut seen = HashSet::new();
    // Directories with their depths; links wait until all that is not behind one is read.
    let mut directories = vec![(root.to_path_buf(), 0)];
    let mut links = VecDeque::new();
    while let Some((directory, depth)) = directories.pop().or_else(|| links.pop_front()) {
        if !seen.insert(directory.canonicalize()?) {
            continue;
        }
        for entry in kymo_io::list(&directory)? {
            match entry.kind {
                EntryKind::Directory if depth >= DEEPEST => {}
                EntryKind::Directory if entry.path.is_symlink() => {
                    links.push_back((entry.path, depth + 1));
                }
                EntryKind::Directory => directories.push((entry.path, depth + 1)),
                EntryKind::File => files.push(entry.path),
                EntryKind::Other => {}
            }
        }
    }
    Ok(files)
}

/// A path as messages and commands have it.
#[cfg(unix)]
pub(super) fn bytes_of(path: &Path) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt;
    path.as_os_str().as_bytes().to_vec()
}

#[cfg(not(unix))]
pub(super) fn bytes_of(path: &Path) -> Vec<u8> {
    path.to_string_lossy().into_owned().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_go_where_queries_read_their_labels() {
        for (layout, file, target) in [
            (
                Layout::Whisper,
                "servers/web1/cpu.wsp",
                Some("servers/web1/cpu.rrd"),
            ),
            (Layout::Whisper, "servers/notes.txt", None),
            (
                Layout::Ganglia,
                "Web/h1.org/load_one.rrd",
                Some("h1.org/ganglia-Web/load_one.rrd"),
            ),
            (
                Layout::Ganglia,
                "__SummaryInfo__/load_one.rrd",
                Some("__SummaryInfo__/ganglia/load_one.rrd"),
            ),
            (Layout::Ganglia, "Web/h1.org/deeper/load_one.rrd", None),
            (Layout::Proxmox, "pve2-node/n1", Some("n1/pve/node.rrd")),
            (Layout::Proxmox, "pve-node-9.0/n1", Some("n1/pve/node.rrd")),
            (Layout::Proxmox, "pve2-vm/100", Some("100/pve/vm.rrd")),
            (
                Layout::Proxmox,
                "pve2-storage/n1/local",
                Some("n1/pve-local/storage.rrd"),
            ),
            (Layout::Proxmox, "pve2-nodes/n1", None),
        ] {
            assert_eq!(layout.target(file).as_deref(), target, "{file}");
        }
    }
}
