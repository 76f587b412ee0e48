//! Recordings that grow while they are shown.
//!
//! They are opened again when they have changed, beside the scene that is shown, and take its place when everything
//! is known of them: the page never sees less than before. What was in the index is not read again.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use kymo::AnyRecording;

use crate::api::Api;
use crate::scene::{Scene, SceneOptions};

/// How often is looked for changes at most, and how many times as long as opening took.
const PERIOD: Duration = Duration::from_millis(500);
const REST: u32 = 4;

/// Opens recordings again if they have changed since it did so the last time.
pub struct Reopen(Box<dyn FnMut() -> Option<(Vec<AnyRecording>, SceneOptions)> + Send>);

impl Reopen {
    /// With what returns them.
    pub fn new(
        open: impl FnMut() -> Option<(Vec<AnyRecording>, SceneOptions)> + Send + 'static,
    ) -> Self {
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
pub(crate) struct Current(RwLock<Arc<Api>>);

impl Current {
    pub(crate) fn new(api: Api) -> Self {
        Self(RwLock::new(Arc::new(api)))
    }

    pub(crate) fn get(&self) -> Arc<Api> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Follows recordings as they grow, for ever.
    pub(crate) fn follow(&self, mut reopen: Reopen) {
        let mut rest = PERIOD;
        loop {
            std::thread::sleep(rest);
            let api = self.get();
            if !api.scene.state().is_settled {
                continue;
            }
            let from = Instant::now();
            if let Some((recordings, options)) = reopen.0() {
                let scene = Scene::after(&api.scene, recordings, options);
                scene.wait();
                let next = Arc::new(api.with_scene(scene));
                *self.0.write().unwrap_or_else(PoisonError::into_inner) = next;
            }
            rest = PERIOD.max(from.elapsed() * REST);
        }
    }
}
