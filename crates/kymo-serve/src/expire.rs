//! Databases of series that have stopped, which are removed by rule.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::daemon::Source;
use crate::log::Level;
use crate::metrics::Page;
use crate::query::catalog::{Catalog, SeriesEntry};
use crate::store::{Store, path_of};
use crate::sync::{lock, wait_until};
use crate::taking::rules::{Seconds, Selector};

/// It is looked for them at least so often, and at most.
const LONGEST: Duration = Duration::from_secs(3600);
const SHORTEST: Duration = Duration::from_secs(1);

/// When databases of series are removed that have stopped.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpireRule {
    /// Its name, for people.
    pub name: String,
    /// Which series it is for.
    pub selector: Selector,
    /// Seconds after their newest value; `None` if they stay.
    pub after: Option<u64>,
}

/// Removes databases by rules, in a thread of its own.
#[derive(Debug)]
pub struct Expiry {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Paths of databases that were removed, as the store has them.
pub type ExpiredPaths = BTreeSet<Vec<u8>>;

struct Shared {
    store: Arc<Store>,
    /// Reports what was removed to those who count it.
    report: Box<dyn Fn(&ExpiredPaths) + Send + Sync>,
    rules: Mutex<Vec<ExpireRule>>,
    ends: Mutex<bool>,
    changed: Condvar,
    expired: AtomicU64,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl Expiry {
    /// Begins to remove databases, and calls `report` with the paths of those that were removed.
    ///
    /// # Errors
    ///
    /// Those of starting a thread.
    pub(crate) fn start(
        store: &Arc<Store>,
        rules: &[ExpireRule],
        report: impl Fn(&ExpiredPaths) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            store: Arc::clone(store),
            report: Box::new(report),
            rules: Mutex::new(rules.to_vec()),
            ends: Mutex::new(false),
            changed: Condvar::new(),
            expired: AtomicU64::new(0),
        });
        let working = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("expiry".into());
        Ok(Self {
            shared,
            thread: Mutex::new(Some(thread.spawn(move || working.run())?)),
        })
    }

    /// Removes databases by other rules.
    pub fn change(&self, rules: &[ExpireRule]) {
        *lock(&self.shared.rules) = rules.to_vec();
        self.shared.changed.notify_all();
    }
}

impl Source for Expiry {
    fn metrics(&self, page: &mut Page) {
        page.counter(
            "databases_expired_total",
            "Databases removed, since their series had stopped.",
            self.shared.expired.load(Relaxed),
        );
    }

    fn stop(&self) {
        *lock(&self.shared.ends) = true;
        self.shared.changed.notify_all();
        if let Some(thread) = lock(&self.thread).take() {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn run(&self) {
        let mut next = Instant::now() + self.period();
        let mut ends = lock(&self.ends);
        while !*ends {
            ends = match wait_until(&self.changed, ends, next) {
                // Other rules may be for sooner.
                Some(again) => {
                    next = next.min(Instant::now() + self.period());
                    again
                }
                None => {
                    let rules = lock(&self.rules).clone();
                    if !rules.is_empty() {
                        self.expire(&rules);
                    }
                    next = Instant::now() + self.period();
                    lock(&self.ends)
                }
            };
        }
    }

    /// From one look to the next: a tenth of the shortest time.
    fn period(&self) -> Duration {
        let rules = lock(&self.rules);
        let shortest = rules.iter().filter_map(|it| it.after).min();
        let period = Duration::from_secs(shortest.unwrap_or(u64::MAX) / 10);
        period.clamp(SHORTEST, LONGEST)
    }

    /// Removes what the rules say.
    fn expire(&self, rules: &[ExpireRule]) {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_secs();
        let catalog = Catalog::new(&self.store, Duration::ZERO);
        let series = catalog.series();
        let mut files: BTreeMap<&[u8], Vec<&SeriesEntry>> = BTreeMap::new();
        for entry in series.all() {
            files.entry(&*entry.path).or_default().push(entry);
        }
        let mut removed: BTreeMap<&str, (u64, String)> = BTreeMap::new();
        let mut expired = ExpiredPaths::new();
        for (path, entries) in files {
            if *lock(&self.ends) {
                break;
            }
            let is_for = |rule: &&ExpireRule| {
                entries
                    .iter()
                    .any(|entry| rule.selector.selects(&entry.labels))
            };
            let Some((rule, after)) = rules
                .iter()
                .find(is_for)
                .and_then(|rule| Some((rule, rule.after?)))
            else {
                continue;
            };
            // A file that was written since then need not be opened.
            let latest = now.saturating_sub(after);
            let written = entries.iter().filter_map(|entry| entry.modified).max();
            let written = written.and_then(|it| it.duration_since(UNIX_EPOCH).ok());
            if written.is_some_and(|it| it.as_secs() >= latest) {
                continue;
            }
            let before = i64::try_from(latest).unwrap_or(i64::MAX);
            match self.store.expire(path, before) {
                Ok(true) => {
                    self.expired.fetch_add(1, Relaxed);
                    let shown = String::from_utf8_lossy(path).into_owned();
                    let count = removed.entry(&rule.name).or_insert((0, shown));
                    count.0 += 1;
                    expired.insert(path.to_vec());
                }
                Ok(false) => {}
                Err(error) => (self.store.options().log)(
                    Level::Warning,
                    &format!(
                        "`{}` cannot be removed by the rule `{}`: {}",
                        path_of(path).display(),
                        rule.name,
                        kymo_io::reason(&error)
                    ),
                ),
            }
        }
        self.give_back(&expired);
        for (rule, (count, first)) in removed {
            (self.store.options().log)(
                Level::Info,
                &format!(
                    "{count} databases of series that have stopped were removed by the rule `{rule}`, the first was `{first}`"
                ),
            );
        }
    }
}

impl Shared {
    /// Forgets the names of databases that were removed, and reports these.
    fn give_back(&self, expired: &ExpiredPaths) {
        if expired.is_empty() {
            return;
        }
        let base = &self.store.options().base;
        let relative = |path: &[u8]| -> Option<Vec<u8>> {
            let path = path_of(path).strip_prefix(base).ok()?;
            Some(path.as_os_str().as_bytes().to_vec())
        };
        let relative = expired.iter().filter_map(|path| relative(path));
        // A series that came meanwhile, and whose database is not yet there, claims its path again behind this.
        let removed = self
            .store
            .index()
            .remove(relative, |path| !path_of(&self.store.path(path)).exists());
        if let Err(error) = removed {
            (self.store.options().log)(
                Level::Warning,
                &format!(
                    "the names of databases that were removed stay in `{}`: {}",
                    base.join(crate::series_index::FILE).display(),
                    kymo_io::reason(&error)
                ),
            );
        }
        (self.report)(expired);
    }
}

/// A rule as `--explain` shows it.
pub(crate) fn explain(rules: &[ExpireRule], labels: &kymo_promql::Labels) -> String {
    match rules.iter().find(|rule| rule.selector.selects(labels)) {
        None => "never".to_owned(),
        Some(rule) => match rule.after {
            None => format!("never ({})", rule.name),
            Some(after) => format!("after {} without a value ({})", Seconds(after), rule.name),
        },
    }
}

/// Removes directories that are empty, from that of a file upwards to another.
pub(crate) fn remove_empty(path: &Path, base: &Path) {
    for directory in path.ancestors().skip(1) {
        // One that is not empty stays, and so do those above it.
        if directory == base
            || !directory.starts_with(base)
            || std::fs::remove_dir(directory).is_err()
        {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use kymo_rrd::Time;
    use kymo_rrd::engine::{Definition, Smoothing};

    use super::*;
    use crate::store::{Group, Options, Update, no_log};

    fn rule(name: &str, text: &str, after: Option<u64>) -> ExpireRule {
        let mut selector = Selector::default();
        selector.add_match(text).unwrap();
        ExpireRule {
            name: name.into(),
            selector,
            after,
        }
    }

    fn age(path: &Path, seconds: u64) {
        let time = SystemTime::now() - Duration::from_secs(seconds);
        let file = std::fs::File::options().write(true).open(path).unwrap();
        file.set_modified(time).unwrap();
    }

    #[test]
    fn what_has_stopped_is_removed_by_the_first_rule() {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().join("data");
        let store = Store::open(Options::new(base.clone(), no_log())).unwrap();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let now = i64::try_from(now.as_secs()).unwrap();
        for (name, old) in [
            ("ci/a/gone.rrd", 5000),
            ("ci/a/kept.rrd", 5000),
            ("ci/late.rrd", 5000),
            ("ci/new.rrd", 10),
            ("web/old.rrd", 5000),
        ] {
            let texts = ["DS:value:GAUGE:600:U:U", "RRA:LAST:0.5:1:100"];
            let start = Time::from_seconds(now - old);
            let definition = Definition::parse(start, 1, &texts, &Smoothing::default()).unwrap();
            store
                .create_new(&store.path(name.as_bytes()), &definition)
                .unwrap();
            age(&base.join(name), old.unsigned_abs());
        }
        // It has something in memory.
        let late = store.database(&store.path(b"ci/late.rrd")).unwrap();
        let text = format!("{}:1", now - 4000);
        let (update, _) = Update::from_text(text.as_bytes()).unwrap();
        store
            .accept(&late, &update, Some(&mut Group::new()))
            .unwrap();
        std::os::unix::fs::symlink("ci/new.rrd", base.join("link.rrd")).unwrap();
        // Outside of the base, behind a link to a directory.
        let outside = directory.path().join("outside");
        std::fs::create_dir(&outside).unwrap();
        std::fs::copy(base.join("ci/a/gone.rrd"), outside.join("far.rrd")).unwrap();
        age(&outside.join("far.rrd"), 5000);
        std::os::unix::fs::symlink(&outside, base.join("ci/linked")).unwrap();
        let reported = Arc::new(Mutex::new(Vec::new()));
        let report = Arc::clone(&reported);
        let shared = Shared {
            store: Arc::clone(&store),
            report: Box::new(move |paths| lock(&report).push(paths.clone())),
            rules: Mutex::default(),
            ends: Mutex::default(),
            changed: Condvar::new(),
            expired: AtomicU64::new(0),
        };
        // Three parts of a path are what collectd has.
        let rules = [
            rule("keep", r#"{plugin="a", type="kept"}"#, None),
            rule("collectd of ci", r#"{host="ci"}"#, Some(1000)),
            rule("files of ci", r#"{file=~"ci/.*"}"#, Some(1000)),
            rule("others", r#"{file=~".+"}"#, Some(100_000)),
            rule("never asked", r#"{file=~".+"}"#, Some(1)),
        ];
        shared.expire(&rules);
        let there = |name: &str| base.join(name).exists();
        assert!(!there("ci/a/gone.rrd") && there("ci/a/kept.rrd"));
        assert!(there("ci/late.rrd") && there("ci/new.rrd") && there("web/old.rrd"));
        assert!(there("link.rrd") && outside.join("far.rrd").exists());
        assert_eq!(shared.expired.load(Relaxed), 1);
        let expected = ExpiredPaths::from([store.path(b"ci/a/gone.rrd")]);
        assert_eq!(*lock(&reported), [expected]);
        // When it was written, it is old, too.
        store.flush(&late);
        age(&base.join("ci/late.rrd"), 4000);
        std::fs::remove_file(base.join("ci/a/kept.rrd")).unwrap();
        shared.expire(&rules);
        assert!(!there("ci/late.rrd") && there("ci/new.rrd"));
        assert_eq!(shared.expired.load(Relaxed), 2);
        store.close();
    }

    #[test]
    fn empty_directories_go_with_their_files() {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path();
        std::fs::create_dir_all(base.join("a/b/c")).unwrap();
        std::fs::write(base.join("a/other"), "").unwrap();
        remove_empty(&base.join("a/b/c/gone.rrd"), base);
        assert!(base.join("a").exists() && !base.join("a/b").exists());
        std::fs::remove_file(base.join("a/other")).unwrap();
        remove_empty(&base.join("a/gone.rrd"), base);
        assert!(base.exists() && !base.join("a").exists());
    }
}
