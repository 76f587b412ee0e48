//! Directories of HTTP servers, as the pages list them that servers make of them.
//!
//! A page's links to what is directly below it are its entries; those that end with `/` are directories.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::{Duration, Instant};

use futures::{StreamExt, TryStreamExt};
use http_body_util::BodyExt;
use object_store::client::{HttpRequest, HttpRequestBody};
use object_store::path::Path as Location;
use object_store::{ObjectMeta, ObjectStoreExt};
use url::Url;

use super::{DENIED, NOT_FOUND, Place, RETRY_TIME, explained};

/// Pages and files of one directory together, at most.
const MOST_ENTRIES: usize = 10_000;

/// Directories are nested up to so deep.
const MOST_DEPTH: usize = 16;

/// Files that are asked for at the same time.
const AT_ONCE: usize = 8;

/// A page is asked for so often if the network or the server fails.
const TRIES: u32 = 4;

/// The files below a directory.
pub(super) async fn list(place: &Place) -> io::Result<Vec<ObjectMeta>> {
    let mut waiting = vec![(place.page(), 0)];
    let mut files = BTreeSet::new();
    let mut count = 0;
    while let Some((url, depth)) = waiting.pop() {
        let links = links(&page(place, &url).await?, &url);
        if depth == 0 && links.is_empty() {
            return Err(io::Error::other(
                "the server does not list what is in it; name a file, such as an archive (`trace.tar.gz`)",
            ));
        }
        count += links.len();
        if count > MOST_ENTRIES {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!(
                    "there are more than {MOST_ENTRIES} files below it; name a directory in it"
                ),
            ));
        }
        for link in links.into_values() {
            if !link.path().ends_with('/') {
                files.insert(link);
            } else if depth < MOST_DEPTH {
                waiting.push((link, depth + 1));
            }
        }
    }
    let heads = files.into_iter().map(|url| async move {
        let wrong = |error: &dyn std::error::Error| io::Error::other(format!("{url}: {error}"));
        let location = Location::from_url_path(url.path()).map_err(|error| wrong(&error))?;
        let head = place.store.head(&location).await;
        head.map_err(|error| wrong(&explained(&error)))
    });
    futures::stream::iter(heads)
        .buffered(AT_ONCE)
        .try_collect()
        .await
}

/// The text of a page.
async fn page(place: &Place, url: &Url) -> io::Result<String> {
    let mut tries = 0;
    let begun = Instant::now();
    loop {
        let mut request = HttpRequest::new(HttpRequestBody::empty());
        match url.as_str().parse() {
            Ok(uri) => *request.uri_mut() = uri,
            Err(_) => return Err(io::ErrorKind::InvalidInput.into()),
        }
        let answer = place.client.execute(request).await;
        tries += 1;
        let problem = match answer {
            Ok(answer) => match answer.status().as_u16() {
                200 => match answer.into_body().collect().await {
                    Ok(body) => return Ok(String::from_utf8_lossy(&body.to_bytes()).into_owned()),
                    Err(error) => super::chain(&error),
                },
                401 | 403 => return Err(io::Error::other(DENIED)),
                404 => return Err(io::Error::other(NOT_FOUND)),
                status if status < 500 => {
                    return Err(io::Error::other(format!(
                        "the server answers with status {status}"
                    )));
                }
                status => format!("the server answers with status {status}"),
            },
            Err(error) => super::chain(&error),
        };
        if tries == TRIES || begun.elapsed() > RETRY_TIME {
            return Err(io::Error::other(problem));
        }
        tokio::time::sleep(Duration::from_millis(100 << tries)).await;
    }
}

/// What a page links to directly below itself, by name.
fn links(text: &str, page: &Url) -> BTreeMap<String, Url> {
    let mut found = BTreeMap::new();
    // The names of attributes are ASCII, and so have the same places in lower case.
    let lower = text.to_ascii_lowercase();
    for (at, name) in lower.match_indices("href") {
        let rest = text[at + name.len()..].trim_start();
        let Some(rest) = rest.strip_prefix('=').map(str::trim_start) else {
            continue;
        };
        let value = match rest.chars().next() {
            Some(quote @ ('"' | '\'')) => rest[1..].split(quote).next(),
            _ => rest.split(|c: char| c.is_whitespace() || c == '>').next(),
        };
        let value = unescaped(value.unwrap_or_default());
        let Some((name, url)) = page.join(&value).ok().and_then(|url| below(url, page)) else {
            continue;
        };
        // A directory and a file of one name cannot both be.
        found.entry(name).or_insert(url);
    }
    found
}

/// The name of an entry of a page, if a link leads to one.
fn below(url: Url, page: &Url) -> Option<(String, Url)> {
    if url.origin() != page.origin() || url.query().is_some() || url.fragment().is_some() {
        return None;
    }
    let inner = url.path().strip_prefix(page.path())?;
    let name = inner.strip_suffix('/').unwrap_or(inner);
    (!name.is_empty() && !name.contains('/')).then(|| (name.to_owned(), url.clone()))
}

/// A value of an attribute without the escapes that names of files need.
fn unescaped(text: &str) -> String {
    [
        ("&quot;", "\""),
        ("&#34;", "\""),
        ("&#x27;", "'"),
        ("&#39;", "'"),
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&amp;", "&"),
    ]
    .iter()
    .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "<html><A HREF=\"../\">Parent</a> <a href='?C=M;O=A'>Date</a>\n\
        <a href=\"/logs/trace/metadata\">metadata</a> <a href=index/>index</a><a href = \"a%20b&amp;c\">x</a>\
        <a href=\"https://elsewhere/logs/trace/x\">no</a><a href=\"/logs/other\">no</a><a href=\"index/deeper\">no</a>\
        <a href=\"class=demo%253Aints/\">ä</a><a href=\"./\">.</a><a href=\"x#y\">no</a><link href";

    #[test]
    fn links_to_what_is_below_are_entries() {
        let page = Url::parse("http://host/logs/trace/").unwrap();
        let found: Vec<String> = links(PAGE, &page).into_values().map(String::from).collect();
        let expected = ["a%20b&c", "class=demo%253Aints/", "index/", "metadata"];
        let expected = expected.map(|name| format!("http://host/logs/trace/{name}"));
        assert_eq!(found, expected);
    }

    #[test]
    fn entries_of_pages_that_are_cut_are_below_them() {
        let page = Url::parse("http://host/logs/trace/").unwrap();
        for (end, _) in PAGE.char_indices() {
            let found = links(&PAGE[..end], &page);
            let is_below = |url: &Url| url.as_str().starts_with(page.as_str()) && *url != page;
            assert!(found.values().all(is_below), "{end}");
        }
    }
}
