use std::fs;

use kymo_model::Recording;
use tempfile::TempDir;

use super::*;

/// Files below a temporary directory.
struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    /// A trace with one event in each of its files, all with the same content.
    fn trace(self, path: &str, metadata: &str, files: &[&str]) -> Self {
        let directory = self.path(path);
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("metadata"), metadata).unwrap();
        for file in files {
            fs::write(directory.join(file), [1]).unwrap();
        }
        self
    }

    fn open(&self, paths: &[&str]) -> Opened {
        let paths: Vec<_> = paths.iter().map(|path| self.path(path)).collect();
        open(&paths, &Options::default())
    }
}

fn metadata(uuid: Option<u8>, more: &str) -> String {
    let uuid = uuid.map_or(String::new(), |uuid| {
        format!("uuid = \"{uuid:02x}000000-0000-0000-0000-000000000000\";")
    });
    format!(
        "/* CTF 1.8 */
         typealias integer {{ size = 8; align = 8; signed = false; }} := u8;
         trace {{ major = 1; minor = 8; byte_order = le; {uuid} }};
         stream {{ event.header := struct {{ u8 id; }}; }};
         event {{ id = 1; fields := struct {{ }}; }};
         {more}"
    )
}

const HOST: &str = "env { hostname = \"vm\"; };";

fn names(opened: &Opened) -> Vec<Option<&str>> {
    opened
        .recordings
        .iter()
        .map(|recording| recording.name())
        .collect()
}

fn errors(opened: &Opened) -> Vec<String> {
    opened.errors.iter().map(ToString::to_string).collect()
}

#[test]
fn directories_are_searched_in_order_and_traces_not_further() {
    let files = Files::new()
        .trace("a/b/z", &metadata(Some(1), HOST), &["s"])
        .trace("a/b/c", &metadata(Some(2), HOST), &["s"])
        .trace("a/b/c/inner", &metadata(Some(3), HOST), &["s"])
        .trace("a/no-uuid", &metadata(None, ""), &["s"]);
    let opened = files.open(&["a"]);
    assert_eq!(errors(&opened), [""; 0]);
    assert_eq!(
        names(&opened),
        [Some("vm/b/c"), Some("vm/b/z"), Some("no-uuid")]
    );
    assert_eq!(opened.recordings[0].path(), files.path("a/b/c"));
    let stream = &opened.recordings[0].streams()[0];
    assert_eq!(*stream.name, *files.path("a/b/c/s").to_string_lossy());

    // A path that is a trace itself has no place.
    assert_eq!(
        names(&files.open(&["a/b/z", "a/no-uuid/"])),
        [Some("vm"), None]
    );
}

#[test]
fn one_identity_is_one_trace_without_a_place() {
    let files = Files::new()
        .trace("1/t", &metadata(Some(1), HOST), &["s"])
        .trace("2/t", &metadata(Some(1), HOST), &["s", "r"])
        .trace("3/t", &metadata(Some(2), HOST), &["s"])
        .trace("4/t", &metadata(None, HOST), &["s"])
        .trace("5/t", &metadata(None, HOST), &["s"]);
    let opened = files.open(&["."]);
    assert_eq!(
        names(&opened),
        [Some("vm"), Some("vm/3/t"), Some("vm/4/t"), Some("vm/5/t")]
    );
    assert_eq!(opened.recordings[0].streams().len(), 3);
    // The same from several paths, each directory once.
    let opened = files.open(&["2", "1/t", "1", "2/t"]);
    assert_eq!(opened.errors.len(), 0);
    assert_eq!(names(&opened), [Some("vm")]);
    assert_eq!(opened.recordings[0].streams().len(), 3);
}

#[test]
fn files_of_a_trace_stand_for_it_or_a_part_of_it() {
    let files = Files::new().trace("t", &metadata(None, ""), &["s", "r"]);
    let opened = files.open(&["t/metadata"]);
    assert_eq!(opened.recordings[0].streams().len(), 2);
    let opened = files.open(&["t/r"]);
    assert_eq!(opened.recordings[0].streams().len(), 1);
    assert!(opened.recordings[0].streams()[0].name.ends_with("/t/r"));
}

#[test]
fn what_is_not_found_is_reported_with_what_was_looked_for() {
    let files = Files::new().trace("good", &metadata(None, ""), &["s"]);
    fs::create_dir(files.path("empty")).unwrap();
    fs::write(files.path("file"), "x").unwrap();
    let opened = files.open(&["empty", "none", "good", "file"]);
    assert_eq!(opened.recordings.len(), 1);
    let errors = errors(&opened);
    assert!(errors[0].ends_with("empty` contains no recording: the directory is empty"));
    assert!(errors[1].ends_with("none` does not exist"));
    assert!(errors[2].ends_with("file` is not a recording: it is text"));
    let hint = opened.errors[0].hint().unwrap();
    assert!(hint.contains("`metadata`"), "{hint}");
}

#[test]
fn a_broken_trace_does_not_hide_the_others() {
    let files = Files::new()
        .trace("t/a", "/* CTF 1.8 */ nonsense {", &["s"])
        .trace("t/b", &metadata(None, ""), &["s"])
        .trace("t/c", "", &["s"]);
    let opened = files.open(&["t"]);
    assert_eq!(names(&opened), [Some("b")]);
    let errors = errors(&opened);
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert!(errors[0].contains("metadata"), "{}", errors[0]);
}

#[cfg(unix)]
#[test]
fn links_are_followed_and_circles_end() {
    let files = Files::new().trace("real/t", &metadata(None, ""), &["s"]);
    std::os::unix::fs::symlink("..", files.path("real/up")).unwrap();
    std::os::unix::fs::symlink("real", files.path("link")).unwrap();
    let opened = files.open(&["link"]);
    assert_eq!(errors(&opened), [""; 0]);
    assert_eq!(names(&opened), [Some("t")]);
    assert!(opened.recordings[0].streams()[0].name.contains("/link/t/"));
}
