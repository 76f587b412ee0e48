//! Databases as files, for programs on other machines: `/databases` lists them, `/databases/PATH` is one of them with all
//! updates that wait in memory.

use std::collections::BTreeSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::io;
use std::path::{Component, Path};

use kymo_io::reason;
use kymo_rrd::is_database;
use kymo_text::json::Writer;

use super::Queries;
use super::deadline::Deadline;
use crate::http::{Client, HttpAnswer, HttpRequest};
use crate::store::{Store, bytes_of};

/// The largest database that is sent, in bytes.
const MOST_BYTES: u64 = 64 << 20;

/// Answers a path of databases; `None` for others.
pub(super) fn answer(
    queries: &Queries,
    path: &str,
    request: &HttpRequest,
    client: &dyn Client,
) -> Option<HttpAnswer> {
    match path.strip_prefix("/databases")? {
        "" => Some(list(queries, request.get("below").unwrap_or_default())),
        name => Some(database(queries, name.strip_prefix('/')?, client)),
    }
}

/// The databases below a directory. The version of each changes when its content does.
fn list(queries: &Queries, below: &str) -> HttpAnswer {
    let store = &*queries.store;
    let below = below.trim_matches('/');
    let series = queries.catalog.series();
    let files: BTreeSet<&[u8]> = series.all().iter().map(|it| &*it.path).collect();
    let mut json = Writer::default();
    json.begin_object();
    json.begin_list("databases");
    for file in files {
        let path = crate::store::path_of(file);
        let relative = path.strip_prefix(&store.options().base).ok();
        // Others cannot be named in an address.
        let Some(name) = relative.and_then(Path::to_str) else {
            continue;
        };
        let is_below = name
            .strip_prefix(below)
            .is_some_and(|rest| below.is_empty() || rest.is_empty() || rest.starts_with('/'));
        let Some(version) = is_below.then(|| version(store, path)).flatten() else {
            continue;
        };
        json.begin_object();
        json.entry("path", name);
        json.entry("version", format!("{version:016x}").as_str());
        json.end_object();
    }
    json.end_list();
    json.end_object();
    let body = json.as_bytes().to_vec();
    match body.len() > queries.options.most_answer {
        true => HttpAnswer::text(422, "too many databases; ask for those below a directory\n"),
        false => HttpAnswer::json(200, body),
    }
}

/// What changes with each update of a database; `None` if the file is gone.
fn version(store: &Store, path: &Path) -> Option<u64> {
    let metadata = path.metadata().ok()?;
    let mut hasher = DefaultHasher::new();
    metadata.len().hash(&mut hasher);
    metadata.modified().ok().hash(&mut hasher);
    if let Some(database) = store.known(bytes_of(path)) {
        database.last().hash(&mut hasher);
        database.pending_bytes().hash(&mut hasher);
    }
    Some(hasher.finish())
}

/// A database by its path below the directory of data.
fn database(queries: &Queries, name: &str, client: &dyn Client) -> HttpAnswer {
    let missing = || HttpAnswer::text(404, &format!("the database `{name}` does not exist\n"));
    let parts = Path::new(name).components();
    if name.is_empty()
        || !parts
            .clone()
            .all(|part| matches!(part, Component::Normal(_)))
    {
        return missing();
    }
    let path = queries.store.options().base.join(name);
    match path.metadata() {
        Ok(metadata) if metadata.len() > MOST_BYTES => {
            let limit = MOST_BYTES >> 20;
            return HttpAnswer::text(413, &format!("`{name}` is larger than {limit} MiB\n"));
        }
        Ok(metadata) if metadata.is_file() => {}
        _ => return missing(),
    }
    let Some(_turn) = queries.turn(Deadline::after(queries.options.timeout, client)) else {
        return HttpAnswer::text(503, "too many queries at the same time; try again later\n");
    };
    match queries.store.snapshot(bytes_of(&path)) {
        Ok(bytes) if is_database(&bytes) => HttpAnswer {
            status: 200,
            content_type: "application/octet-stream",
            headers: Vec::new(),
            body: bytes.to_vec(),
        },
        Ok(_) => missing(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => missing(),
        Err(error) => HttpAnswer::text(503, &format!("`{name}`: {}\n", reason(&error))),
    }
}
