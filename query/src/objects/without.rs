//! In a build without the feature `remote`, URLs lead to nothing.

use std::io;
use std::path::Path;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_plan::ExecutionPlan;
use kymo_io::{Entry, EntryKind, RemoteTree, SharedSource};

pub(crate) use datafusion::execution::object_store::DefaultObjectStoreRegistry as Stores;

/// Lets URLs be errors that say why, everywhere in this process.
pub(crate) fn install() {
    kymo_io::set_remote(|path| is_url(path).then(|| Err(not_built())));
}

fn not_built() -> io::Error {
    io::Error::new(
        io::ErrorKind::Unsupported,
        "this kymo-query was built without object storage (its feature `remote`)",
    )
}

/// Whether a path is a URL that leads to an object.
pub(crate) fn is_url(path: &Path) -> bool {
    let schemes = ["s3://", "http://", "https://"];
    path.to_str()
        .is_some_and(|text| schemes.iter().any(|scheme| text.starts_with(scheme)))
}

/// # Errors
///
/// None.
pub(crate) fn unchanged(
    plan: Arc<dyn ExecutionPlan>,
    _: &RuntimeEnv,
) -> Result<Arc<dyn ExecutionPlan>> {
    Ok(plan)
}

/// # Errors
///
/// Always.
pub(crate) fn tree(_: &str) -> io::Result<ObjectTree> {
    Err(not_built())
}

/// There are none.
#[derive(Debug)]
pub(crate) enum ObjectTree {}

impl ObjectTree {
    pub(crate) fn is_object(&self) -> bool {
        match *self {}
    }

    pub(crate) fn tables_at(&self, _: &Path) -> Vec<String> {
        match *self {}
    }
}

impl RemoteTree for ObjectTree {
    fn kind(&self, _: &Path) -> io::Result<EntryKind> {
        match *self {}
    }

    fn list(&self, _: &Path) -> io::Result<Vec<Entry>> {
        match *self {}
    }

    fn source(&self, _: &Path) -> io::Result<SharedSource> {
        match *self {}
    }
}

/// Why objects cannot be read.
pub(crate) fn explained(error: &object_store::Error) -> io::Error {
    io::Error::other(error.to_string())
}
