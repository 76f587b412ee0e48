//! The databases of a directory, and the series in them.

use std::collections::HashSet;
use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use foldhash::{HashMap, HashMapExt};
use kymo_io::Shared;
use kymo_promql::{Labels, Matchers};
use kymo_rrd::engine::Rrd;
use kymo_rrd::is_database;
use kymo_rrd::model::{Reading, SourceKind};

use super::naming;
use crate::store::{Store, bytes_of};
use crate::sync::lock;

/// Directories are not looked into deeper than this.
const DEEPEST: usize = 32;
/// No more series are known.
const MOST_SERIES: usize = 2_000_000;

/// A data source of a database.
#[derive(Debug)]
pub(crate) struct SeriesEntry {
    /// Its labels.
    pub(crate) labels: Labels,
    /// Its path for Graphite.
    pub(crate) graphite: String,
    /// The name of the data source.
    pub(crate) source: Box<[u8]>,
    /// Whether its values are rates of a counter.
    pub(crate) is_rate: bool,
    /// Seconds that the archives reach back from the last update.
    pub(crate) span: i64,
    /// The path of the file, absolute.
    pub(crate) path: Arc<[u8]>,
    /// When the file was written last, as far as that was seen.
    pub(crate) modified: Option<SystemTime>,
}

/// All series.
#[derive(Debug, Default)]
pub(crate) struct Series {
    /// In order of their labels.
    sorted: Vec<Arc<SeriesEntry>>,
    /// Files that begin as databases and cannot be read.
    pub(crate) unreadable: usize,
}

impl Series {
    /// Those that match.
    pub(crate) fn matching<'s>(
        &'s self,
        matchers: &'s Matchers,
    ) -> impl Iterator<Item = &'s Arc<SeriesEntry>> {
        let all = match matchers.name() {
            // The name is the first label of all.
            Some(name) => {
                let begin = self.sorted.partition_point(|it| it.labels.name() < name);
                let end = self.sorted.partition_point(|it| it.labels.name() <= name);
                self.sorted.get(begin..end).unwrap_or_default()
            }
            None => &self.sorted,
        };
        all.iter().filter(|it| matchers.matches(&it.labels))
    }

    /// All.
    pub(crate) fn all(&self) -> &[Arc<SeriesEntry>] {
        &self.sorted
    }
}

/// A file, as it was when it was looked into: if it is still the same, it holds the same data sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
    length: u64,
}

impl Identity {
    fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            length: metadata.len(),
        }
    }
}

#[derive(Debug)]
struct KnownFile {
    identity: Identity,
    /// None, if it is not a database.
    series: Vec<Arc<SeriesEntry>>,
    is_unreadable: bool,
}

/// The databases of a directory, looked for again from time to time.
#[derive(Debug)]
pub(crate) struct Catalog {
    store: Arc<Store>,
    refresh: Duration,
    current: Mutex<Option<(Arc<Series>, Instant)>>,
    /// Held by the one who looks.
    files: Mutex<HashMap<PathBuf, KnownFile>>,
}

impl Catalog {
    pub(crate) fn new(store: &Arc<Store>, refresh: Duration) -> Self {
        Self {
            store: Arc::clone(store),
            refresh,
            current: Mutex::default(),
            files: Mutex::new(HashMap::new()),
        }
    }

    /// The series as they were when they were looked for last; `None` before that.
    pub(crate) fn known(&self) -> Option<Arc<Series>> {
        let current = lock(&self.current);
        current.as_ref().map(|(series, _)| Arc::clone(series))
    }

    /// All series. Whoever finds that they are old looks for them again; others meanwhile get what is known,
    /// if something is.
    pub(crate) fn series(&self) -> Arc<Series> {
        let known = |is_old: bool| {
            let current = lock(&self.current);
            let (series, when) = current.as_ref()?;
            let is_new = when.elapsed() < self.refresh;
            (is_new || is_old).then(|| Arc::clone(series))
        };
        if let Some(series) = known(false) {
            return series;
        }
        let mut files = match self.files.try_lock() {
            Ok(files) => files,
            Err(_) => match known(true) {
                Some(series) => return series,
                None => lock(&self.files),
            },
        };
        // Another thread may have been first.
        if let Some(series) = known(false) {
            return series;
        }
        let series = Arc::new(scan(&self.store, &mut files));
        *lock(&self.current) = Some((Arc::clone(&series), Instant::now()));
        series
    }
}

/// Looks for all databases. What was looked into before and is the same is not looked into again.
fn scan(store: &Store, files: &mut HashMap<PathBuf, KnownFile>) -> Series {
    let base = &store.options().base;
    let mut found: HashMap<PathBuf, KnownFile> = HashMap::with_capacity(files.len());
    let mut count = 0;
    // Links may lead round and round.
    let mut entered = HashSet::new();
    let mut directories = vec![(base.to_path_buf(), 0)];
    while let Some((directory, depth)) = directories.pop() {
        let Ok(entries) = std::fs::read_dir(&directory) else {
            continue;
        };
        for entry in entries.flatten() {
            let path = entry.path();
            // Links are followed.
            let Ok(metadata) = std::fs::metadata(&path) else {
                continue;
            };
            if metadata.is_dir() {
                if depth < DEEPEST && entered.insert((metadata.dev(), metadata.ino())) {
                    directories.push((path, depth + 1));
                }
                continue;
            }
            if !metadata.is_file() || count >= MOST_SERIES {
                continue;
            }
            let identity = Identity::of(&metadata);
            let before = files.remove(&path).filter(|it| it.identity == identity);
            let known = before.unwrap_or_else(|| {
                let series = look_into(store, &path);
                KnownFile {
                    identity,
                    is_unreadable: series.is_none(),
                    series: series.unwrap_or_default(),
                }
            });
            let modified = metadata.modified().ok();
            let series = known.series.into_iter().map(|it| with_time(it, modified));
            let known = KnownFile {
                series: series.collect(),
                ..known
            };
            count += known.series.len();
            found.insert(path, known);
        }
    }
    *files = found;
    let mut series: Vec<_> = files.values().flat_map(|it| &it.series).cloned().collect();
    series.sort_by(|a, b| a.labels.cmp(&b.labels).then_with(|| a.path.cmp(&b.path)));
    // Two paths may mean the same labels: then the first one has them.
    series.dedup_by(|a, b| a.labels == b.labels);
    Series {
        sorted: series,
        unreadable: files.values().filter(|it| it.is_unreadable).count(),
    }
}

/// The same with a new time.
fn with_time(entry: Arc<SeriesEntry>, modified: Option<SystemTime>) -> Arc<SeriesEntry> {
    if entry.modified == modified {
        return entry;
    }
    Arc::new(SeriesEntry {
        labels: entry.labels.clone(),
        graphite: entry.graphite.clone(),
        source: entry.source.clone(),
        is_rate: entry.is_rate,
        span: entry.span,
        path: Arc::clone(&entry.path),
        modified,
    })
}

/// The data sources of a file; none, if it is not a database. `None` if it begins as one and cannot be read.
fn look_into(store: &Store, path: &Path) -> Option<Vec<Arc<SeriesEntry>>> {
    let mut begin = [0; 16];
    let is_one = File::open(path).and_then(|mut file| file.read(&mut begin));
    if !is_one.is_ok_and(|length| is_database(&begin[..length])) {
        return Some(Vec::new());
    }
    let file = Shared::open(path).ok()?;
    let mut rrd = Rrd::open(file).ok()?;
    let relative = bytes_of(path.strip_prefix(&store.options().base).unwrap_or(path));
    // What was taken with a name and labels has these.
    let key = store.index().get(relative);
    let path: Arc<[u8]> = bytes_of(path).into();
    let database = rrd.database();
    let span = database.archives.iter().map(|archive| {
        let points = archive.rows.saturating_mul(archive.points_per_row);
        i64::try_from(points.saturating_mul(database.step)).unwrap_or(i64::MAX)
    });
    let span = span.max().unwrap_or(0);
    let sources = rrd.database().sources.iter().map(|source| {
        let is_rate = match source.kind {
            SourceKind::Measured { reading, .. } => reading != Reading::Gauge,
            SourceKind::Compute(_) => false,
        };
        let name = source.name.as_bytes();
        let (labels, graphite) = match &key {
            Some(key) => (
                naming::key_labels(key, name, is_rate),
                naming::key_graphite(key, relative, name),
            ),
            None => (
                naming::labels(relative, name, is_rate),
                naming::graphite(relative, name),
            ),
        };
        Arc::new(SeriesEntry {
            labels,
            graphite,
            source: name.into(),
            is_rate,
            span,
            path: Arc::clone(&path),
            modified: None,
        })
    });
    Some(sources.collect())
}
