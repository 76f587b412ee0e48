//! The objects below a name, as a directory.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use kymo_io::{Entry, EntryKind, MOST_MEMBERS, RemoteTree, SharedSource};
use object_store::path::Path as Location;
use object_store::{Error, ObjectMeta, ObjectStoreExt};

use super::source::Object;
use super::{Place, explained, pages};

/// Directories are nested up to so deep.
const MOST_DEPTH: usize = 64;

/// Bytes of all names together.
const MOST_NAMES: usize = 256 << 20;

/// The next object of a list has to come within this time: a server may send pages without any for ever.
const PATIENCE: Duration = Duration::from_secs(60);

/// An object, or a directory of them, as it was when it was listed.
#[derive(Debug)]
pub(crate) struct ObjectTree {
    place: Place,
    root: PathBuf,
    top: Node,
}

#[derive(Debug)]
enum Node {
    Directory(BTreeMap<String, Node>),
    Object(Box<ObjectMeta>),
}

impl ObjectTree {
    /// Looks at what is at a place.
    pub(super) async fn open(place: Place) -> io::Result<Self> {
        let is_named = !place.location.as_ref().is_empty() && !place.text.ends_with('/');
        let root = PathBuf::from(&place.text);
        if is_named {
            match place.store.head(&place.location).await {
                Ok(meta) => {
                    let top = Node::Object(Box::new(meta));
                    return Ok(Self { place, root, top });
                }
                // Some servers know a directory by its name alone.
                Err(Error::NotFound { .. }) => {}
                Err(error) => return Err(explained(&error)),
            }
        }
        let top = Node::Directory(match place.is_s3() {
            true => list(&place).await?,
            false => {
                let mut top = BTreeMap::new();
                let prefix = Location::from_url_path(place.page().path());
                let prefix = prefix.map_err(io::Error::other)?;
                for object in pages::list(&place).await? {
                    add(&mut top, &prefix, object);
                }
                top
            }
        });
        Ok(Self { place, root, top })
    }

    /// Whether this is a single object.
    pub(crate) fn is_object(&self) -> bool {
        matches!(self.top, Node::Object(_))
    }

    /// The URLs by which DataFusion reads the Parquet files at a path: the object itself, or a directory.
    pub(crate) fn tables_at(&self, path: &Path) -> Vec<String> {
        let location = |path: &Path| {
            let inner = path.strip_prefix(&self.root).ok()?.to_str()?;
            let parts = [self.place.location.as_ref(), inner];
            Some(parts.join("/"))
        };
        let urls = match self.find(path) {
            Ok(Node::Object(_)) => {
                vec![location(path).map(|location| self.place.url_of(&location, false))]
            }
            Ok(Node::Directory(_)) if self.place.is_s3() => {
                vec![location(path).map(|location| self.place.url_of(&location, true))]
            }
            // There, it cannot list them itself.
            Ok(Node::Directory(entries)) => entries
                .keys()
                .filter(|name| name.ends_with(".parquet"))
                .map(|name| Some(self.place.url_of(&location(&path.join(name))?, false)))
                .collect(),
            Err(_) => Vec::new(),
        };
        urls.into_iter().flatten().collect()
    }

    fn find(&self, path: &Path) -> io::Result<&Node> {
        let not_found = || io::Error::from(io::ErrorKind::NotFound);
        let inner = path.strip_prefix(&self.root).map_err(|_| not_found())?;
        let mut node = &self.top;
        for part in inner.components() {
            node = match (part, node) {
                (Component::CurDir, node) => node,
                (Component::Normal(name), Node::Directory(entries)) => {
                    let name = name.to_str().ok_or_else(not_found)?;
                    entries.get(name).ok_or_else(not_found)?
                }
                _ => return Err(not_found()),
            };
        }
        Ok(node)
    }
}

impl RemoteTree for ObjectTree {
    fn kind(&self, path: &Path) -> io::Result<EntryKind> {
        self.find(path).map(Node::kind)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<Entry>> {
        let Node::Directory(entries) = self.find(path)? else {
            return Err(io::ErrorKind::NotADirectory.into());
        };
        let entry = |(name, node): (&String, &Node)| Entry {
            is_link: false,
            name: OsString::from(name),
            path: path.join(name),
            kind: node.kind(),
        };
        Ok(entries.iter().map(entry).collect())
    }

    fn source(&self, path: &Path) -> io::Result<SharedSource> {
        match self.find(path)? {
            Node::Object(meta) => Ok(Arc::new(Object {
                store: Arc::clone(&self.place.store),
                meta: meta.as_ref().clone(),
            })),
            Node::Directory(_) => Err(io::ErrorKind::IsADirectory.into()),
        }
    }
}

impl Node {
    fn kind(&self) -> EntryKind {
        match self {
            Self::Directory(_) => EntryKind::Directory,
            Self::Object(_) => EntryKind::File,
        }
    }
}

/// All objects below a place.
async fn list(place: &Place) -> io::Result<BTreeMap<String, Node>> {
    let is_root = place.location.as_ref().is_empty();
    let prefix = (!is_root).then_some(&place.location);
    let mut objects = place.store.list(prefix);
    let mut top = BTreeMap::new();
    let (mut count, mut names) = (0, 0);
    loop {
        let next = tokio::time::timeout(PATIENCE, objects.next()).await;
        let late = |_| io::Error::new(io::ErrorKind::TimedOut, "the server's list does not end");
        let Some(object) = next.map_err(late)? else {
            break;
        };
        let object = object.map_err(|error| explained(&error))?;
        count += 1;
        names += object.location.as_ref().len();
        if count > MOST_MEMBERS || names > MOST_NAMES {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!(
                    "there are more than {MOST_MEMBERS} objects below it; name a directory in it"
                ),
            ));
        }
        add(&mut top, &place.location, object);
    }
    match top.is_empty() {
        true => Err(io::Error::other(
            "no object has this name, and none is below it",
        )),
        false => Ok(top),
    }
}

/// Puts an object at its place in a directory. What cannot be a file there is left out.
fn add(top: &mut BTreeMap<String, Node>, prefix: &Location, object: ObjectMeta) {
    let location = object.location.clone();
    let Some(inner) = location.prefix_match(prefix) else {
        return;
    };
    let names: Vec<String> = inner.map(|part| part.as_ref().to_owned()).collect();
    let Some((name, directories)) = names.split_last() else {
        return;
    };
    if directories.len() > MOST_DEPTH {
        return;
    }
    let mut at = top;
    for directory in directories {
        let entry = at.entry(directory.clone()).or_insert_with(directory_node);
        // An empty object may stand for the directory.
        if matches!(entry, Node::Object(meta) if meta.size == 0) {
            *entry = directory_node();
        }
        let Node::Directory(below) = entry else {
            return;
        };
        at = below;
    }
    at.entry(name.clone())
        .or_insert_with(|| Node::Object(Box::new(object)));
}

fn directory_node() -> Node {
    Node::Directory(BTreeMap::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(key: &str, size: u64) -> ObjectMeta {
        ObjectMeta {
            location: Location::from(key),
            last_modified: std::time::SystemTime::UNIX_EPOCH.into(),
            size,
            e_tag: None,
            version: None,
        }
    }

    #[test]
    fn keys_are_paths() {
        let mut top = BTreeMap::new();
        let prefix = Location::from("data/trace");
        for (key, size) in [
            ("data/trace/metadata", 5),
            ("data/trace/index", 0),
            ("data/trace/index/stream.idx", 7),
            ("data/trace/stream/below", 1),
            ("data/trace/stream", 9),
            ("data/tracer/other", 3),
            ("data/trace", 3),
        ] {
            add(&mut top, &prefix, object(key, size));
        }
        let deep = format!("data/trace/{}", "d/".repeat(MOST_DEPTH + 2) + "file");
        add(&mut top, &prefix, object(&deep, 1));
        let kinds: Vec<_> = top
            .iter()
            .map(|(name, node)| (name.as_str(), node.kind()))
            .collect();
        let expected = [
            ("index", EntryKind::Directory),
            ("metadata", EntryKind::File),
            ("stream", EntryKind::Directory),
        ];
        assert_eq!(kinds, expected);
    }
}
