//! Messages about hard links that are not kept.

use std::path::Path;

use kymo_io::other_names;

/// What to report when a new file replaces the one at a path, which has other names. It is
/// asked before that.
pub(crate) fn split(output: &Path) -> Option<String> {
    let links = count_links(other_names(&output.metadata().ok()?))?;
    Some(format!(
        "{links} of `{}` will still have the old file",
        output.display()
    ))
}

/// A number of links in words; `None` if there are none.
pub(crate) fn count_links(links: u64) -> Option<String> {
    match links {
        0 => None,
        1 => Some("1 other hard link".to_owned()),
        links => Some(format!("{links} other hard links")),
    }
}
