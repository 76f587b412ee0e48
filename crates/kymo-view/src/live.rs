//! Recordings that grow while they are shown.
//!
//! They are opened again when they have changed, beside the scene that is shown, and take its place when everything
//! is known of them: the page never sees less than before. What was in the index is not read again.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use kymo::AnyRecording;
use serde_json::{Value, json};

use crate::api::Api;
use crate::scene::{Scene, SceneOptions};

/// How often is looked for changes at most, and how many times as long as that took, and as opening took, there is a rest.
const PERIOD: Duration = Duration::from_millis(500);
const LOOK_REST: u32 = 16;
const MOST_LOOK_REST: Duration = Duration::from_secs(2);
const REST: u32 = 4;

/// Recordings that were opened, and how they are shown.
pub type Opened = (Vec<AnyRecording>, SceneOptions);

/// Opens recordings again.
pub trait Open: Send {
    /// The recordings, if they have changed since they were opened the last time. Those that are `shown` and have not
    /// changed need not be read again.
    fn changed(&mut self, shown: &[AnyRecording]) -> Option<Opened>;

    /// The recordings that are `shown` with those at one more path.
    ///
    /// # Errors
    ///
    /// The path may not be opened, or cannot be; text for the person who asked.
    fn added(&mut self, path: &Path, shown: &[AnyRecording]) -> Result<Opened, String>;
}

/// Opens recordings again.
pub struct Reopen(Box<dyn Open>);

impl Reopen {
    /// With what opens them.
    pub fn new(open: impl Open + 'static) -> Self {
        Self(Box::new(open))
    }
}

impl fmt::Debug for Reopen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reopen")
    }
}

/// What is shown now.
#[derive(Debug)]
pub(crate) struct Current {
    api: RwLock<Arc<Api>>,
    reopen: Option<Mutex<Reopen>>,
}

impl Current {
    pub(crate) fn new(api: Api, reopen: Option<Reopen>) -> Self {
        Self {
            api: RwLock::new(Arc::new(api)),
            reopen: reopen.map(Mutex::new),
        }
    }

    pub(crate) fn get(&self) -> Arc<Api> {
        Arc::clone(&self.api.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn reopen(&self) -> Option<MutexGuard<'_, Reopen>> {
        let reopen = self.reopen.as_ref()?;
        Some(reopen.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Shows other recordings as soon as everything is known of them.
    fn show(&self, (recordings, options): Opened) {
        let api = self.get();
        let scene = Scene::after(&api.scene, recordings, options);
        scene.wait();
        let next = Arc::new(api.with_scene(scene));
        *self.api.write().unwrap_or_else(PoisonError::into_inner) = next;
    }

    /// Adds the recordings at a path.
    pub(crate) fn add(&self, request: &Value) -> Result<Value, String> {
        let path = request["path"].as_str().filter(|path| !path.is_empty());
        let path = path.ok_or("`path` is not a path")?;
        let mut reopen = self
            .reopen()
            .ok_or("standard input cannot be opened again")?;
        let opened = reopen
            .0
            .added(Path::new(path), self.get().scene.recordings())?;
        self.get().add_path(path);
        self.show(opened);
        Ok(json!({}))
    }

    /// Follows recordings as they grow, for ever.
    pub(crate) fn follow(&self) {
        let mut rest = PERIOD;
        loop {
            std::thread::sleep(rest);
            let shown = Arc::clone(&self.get().scene);
            if !shown.state().is_settled {
                continue;
            }
            let Some(mut reopen) = self.reopen() else {
                return;
            };
            let from = Instant::now();
            let opened = reopen.0.changed(shown.recordings());
            drop(shown);
            let enough = match opened {
                Some(opened) => {
                    self.show(opened);
                    from.elapsed() * REST
                }
                None => (from.elapsed() * LOOK_REST).min(MOST_LOOK_REST),
            };
            rest = PERIOD.max(enough);
        }
    }
}
