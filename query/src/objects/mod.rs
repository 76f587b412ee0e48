//! Recordings and Parquet files in object storage (`s3://BUCKET/KEY`) and on HTTP servers (`http://`, `https://`).
//!
//! Paths of these schemes go through the same code as others: [`install`] has `kymo_io::Tree` ask here what a path leads
//! to. A name of an object is a file; any other is a directory, whose objects are [listed](tree) once, on HTTP servers by
//! their [pages]. Of data streams of
//! CTF those ranges are [read](source) that queries need, everything else as a whole. Parquet files are read by DataFusion
//! through the same [`Stores`].

mod client;
mod pages;
mod profile;
mod source;
mod tables;
mod tree;

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::io;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError, mpsc};
use std::time::Duration;

use datafusion::common::{DataFusionError, Result};
use datafusion::execution::object_store::{DefaultObjectStoreRegistry, ObjectStoreRegistry};
use kymo_io::RemoteTree;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::client::{HttpClient, HttpConnector};
use object_store::http::HttpBuilder;
use object_store::path::Path as Location;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, RetryConfig};
use tokio::runtime::Runtime;
use url::Url;

use client::Connector;
use profile::Profile;
pub(crate) use tables::unchanged;
pub(crate) use tree::ObjectTree;

/// A request with its answer may take so long.
const REQUEST_TIME: Duration = Duration::from_secs(60);

/// What fails is not asked for again after this time.
const RETRY_TIME: Duration = Duration::from_secs(30);

/// The scheme of object storage that speaks S3.
const S3: &str = "s3";

/// Lets paths lead to objects, everywhere in this process.
pub(crate) fn install() {
    kymo_io::set_remote(|path| {
        let text = path.to_str().filter(|_| is_url(path))?;
        let tree = tree(text);
        Some(tree.map(|tree| Arc::new(tree) as Arc<dyn RemoteTree>))
    });
}

/// Whether a path is a URL that leads to an object.
pub(crate) fn is_url(path: &Path) -> bool {
    let schemes = ["s3://", "http://", "https://"];
    path.to_str()
        .is_some_and(|text| schemes.iter().any(|scheme| text.starts_with(scheme)))
}

/// Whether a URL of DataFusion leads to an object.
fn is_remote(url: &Url) -> bool {
    matches!(url.scheme(), S3 | "http" | "https")
}

/// What a URL leads to.
///
/// # Errors
///
/// There is nothing, or it cannot be looked at.
pub(crate) fn tree(url: &str) -> io::Result<ObjectTree> {
    let place = Place::parse(url)?;
    wait(ObjectTree::open(place))?
}

/// Where an object, or a directory of them, is.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// As it was written.
    text: String,
    /// Scheme, and bucket or server.
    base: Url,
    location: Location,
    store: Arc<dyn ObjectStore>,
    /// What pages are asked for with.
    client: HttpClient,
}

impl Place {
    fn parse(text: &str) -> io::Result<Self> {
        let wrong = |problem: String| io::Error::new(io::ErrorKind::InvalidInput, problem);
        let url = Url::parse(text).map_err(|error| wrong(error.to_string()))?;
        if url.host_str().is_none_or(str::is_empty) {
            return Err(wrong(format!(
                "expected {}://{}/NAME",
                url.scheme(),
                if url.scheme() == S3 { "BUCKET" } else { "HOST" }
            )));
        }
        let location = match url.scheme() == S3 {
            // Keys are written as they are: `?`, `#` and `%` are parts of them.
            true => {
                let key = text.splitn(4, '/').nth(3).unwrap_or_default();
                Location::parse(key)
            }
            false if url.query().is_some() || url.fragment().is_some() => {
                return Err(wrong("URLs with `?` or `#` are not supported".to_owned()));
            }
            false => Location::from_url_path(url.path()),
        };
        let location = location.map_err(|error| wrong(error.to_string()))?;
        let mut base = url;
        base.set_query(None);
        base.set_fragment(None);
        base.set_path("/");
        let store = store(&base)?;
        Ok(Self {
            text: text.to_owned(),
            base,
            location,
            store,
            client: client()?,
        })
    }

    /// The page that lists a directory of an HTTP server.
    fn page(&self) -> Url {
        let mut url = self.base.clone();
        if let Ok(written) = Url::parse(&self.text) {
            url.set_path(&format!("{}/", written.path().trim_end_matches('/')));
        }
        url
    }

    fn is_s3(&self) -> bool {
        self.base.scheme() == S3
    }

    /// The URL by which DataFusion reads an object, or a directory with a slash at its end.
    fn url_of(&self, location: &str, is_directory: bool) -> String {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.clear();
            segments.extend(location.split('/').filter(|name| !name.is_empty()));
            if is_directory {
                segments.push("");
            }
        }
        url.into()
    }
}

/// The stores of this process, by scheme and bucket or server.
static STORES: LazyLock<Mutex<HashMap<String, Arc<dyn ObjectStore>>>> =
    LazyLock::new(Mutex::default);

/// The store that the beginning of a URL leads to.
fn store(base: &Url) -> io::Result<Arc<dyn ObjectStore>> {
    let mut stores = STORES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(store) = stores.get(base.as_str()) {
        return Ok(Arc::clone(store));
    }
    let connector = Connector::new(background()?.handle().clone());
    let options = options();
    let retry = RetryConfig {
        backoff: BackoffConfig {
            init_backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(3),
            base: 3.0,
        },
        max_retries: 8,
        retry_timeout: RETRY_TIME,
    };
    let built: object_store::Result<Arc<dyn ObjectStore>> = match base.scheme() {
        S3 => {
            let built = from_environment()?
                .with_bucket_name(base.host_str().unwrap_or_default())
                .with_client_options(options)
                .with_retry(retry)
                .with_http_connector(connector)
                .build();
            built.map(|store| Arc::new(store) as _)
        }
        _ => {
            let built = HttpBuilder::new()
                .with_url(base.as_str())
                .with_client_options(options)
                .with_retry(retry)
                .with_http_connector(connector)
                .build();
            built.map(|store| Arc::new(store) as _)
        }
    };
    let built = built.map_err(|error| explained(&error))?;
    stores.insert(base.as_str().to_owned(), Arc::clone(&built));
    Ok(built)
}

fn options() -> ClientOptions {
    ClientOptions::new()
        .with_allow_http(true)
        .with_timeout(REQUEST_TIME)
        .with_connect_timeout(Duration::from_secs(10))
}

/// What asks for pages.
fn client() -> io::Result<HttpClient> {
    static CLIENT: OnceLock<HttpClient> = OnceLock::new();
    if let Some(client) = CLIENT.get() {
        return Ok(client.clone());
    }
    let connector = Connector::new(background()?.handle().clone());
    let client = connector.connect(&options());
    let client = client.map_err(|error| explained(&error))?;
    Ok(CLIENT.get_or_init(|| client).clone())
}

/// Object storage as the environment describes it, and where it does not, the files of the AWS tools.
fn from_environment() -> io::Result<AmazonS3Builder> {
    let mut builder = AmazonS3Builder::from_env();
    let profile = Profile::load(|name| std::env::var(name).ok())?;
    let lacks = |builder: &AmazonS3Builder, key: AmazonS3ConfigKey| {
        let value = builder.get_config_value(&key);
        value.is_none_or(|value| value.is_empty())
    };
    let has = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let has_keys = has("AWS_ACCESS_KEY_ID") || has("AWS_WEB_IDENTITY_TOKEN_FILE");
    if let Some((key, secret, token)) = profile.keys.filter(|_| !has_keys) {
        builder = builder
            .with_access_key_id(key)
            .with_secret_access_key(secret);
        if let Some(token) = token {
            builder = builder.with_token(token);
        }
    }
    if let Some(endpoint) = profile.endpoint
        && lacks(&builder, AmazonS3ConfigKey::Endpoint)
    {
        builder = builder.with_endpoint(endpoint);
    }
    // Without a region, stores that are not Amazon's take any.
    let is_elsewhere = !lacks(&builder, AmazonS3ConfigKey::Endpoint);
    let usual = is_elsewhere.then(|| "us-east-1".to_owned());
    if let Some(region) = profile.region.or(usual)
        && lacks(&builder, AmazonS3ConfigKey::Region)
    {
        builder = builder.with_region(region);
    }
    Ok(builder)
}

/// Where requests are made: who waits for an answer may be a thread of another runtime.
fn background() -> io::Result<&'static Runtime> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("objects")
        .enable_all()
        .build()?;
    // Another thread may have been first; a runtime must not end within another one.
    if let Err(second) = RUNTIME.set(runtime) {
        second.shutdown_background();
    }
    RUNTIME
        .get()
        .ok_or_else(|| io::Error::other("no runtime to ask servers with"))
}

/// Does some work in the background, and waits for it.
fn wait<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> io::Result<T> {
    let (to, from) = mpsc::sync_channel(1);
    background()?.spawn(async move {
        // Whoever waits is there.
        let _ = to.send(work.await);
    });
    from.recv()
        .map_err(|_| io::Error::other("the server's answer cannot be understood"))
}

/// Why an object cannot be read, with its URL, for people.
#[derive(Debug)]
struct Unreadable(String);

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unreadable {}

impl From<Unreadable> for object_store::Error {
    fn from(reason: Unreadable) -> Self {
        Self::Generic {
            store: "remote",
            source: Box::new(reason),
        }
    }
}

/// Why objects cannot be read, and what to do.
pub(crate) fn explained(error: &object_store::Error) -> io::Error {
    use object_store::Error;
    let text = chain(error);
    let problem = match error {
        Error::NotFound { .. } => NOT_FOUND.to_owned(),
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => DENIED.to_owned(),
        Error::Precondition { .. } | Error::NotModified { .. } => CHANGED.to_owned(),
        Error::Generic { source, .. } if source.is::<Unreadable>() => source.to_string(),
        _ if text.contains("416 Range Not Satisfiable") => CHANGED.to_owned(),
        _ if text.contains("Range request not supported") || text.contains("non-partial") => {
            "the server does not support ranges, so that parts cannot be read; download it first"
                .to_owned()
        }
        _ if text.contains("169.254.169.254") || text.contains("security-credentials") => {
            "no credentials for object storage; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, \
             or AWS_PROFILE to a profile that has them, or AWS_SKIP_SIGNATURE=true to ask without"
                .to_owned()
        }
        _ => text,
    };
    io::Error::other(problem)
}

/// What is reported of an object that is missing.
const NOT_FOUND: &str = "the server does not have it (404)";

/// What is reported if credentials are wrong or missing.
const DENIED: &str = "the server denies access (401 or 403), or the object does not exist; \
    AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, or the profile AWS_PROFILE of `~/.aws`, are the \
    credentials of object storage, AWS_SKIP_SIGNATURE=true asks without";

/// What is said of an object that is another one than before.
const CHANGED: &str = "it was changed while it was read; query again";

/// The innermost reason that a client gives, in one line that is not too long.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut inner = error.source();
    while let Some(error) = inner {
        let shown = error.to_string();
        if !text.contains(&shown) {
            text = format!("{text}: {shown}");
        }
        inner = error.source();
    }
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(400) {
        Some((end, _)) => format!("{} ...", &line[..end]),
        None => line,
    }
}

/// The stores that DataFusion reads from.
#[derive(Debug, Default)]
pub(crate) struct Stores {
    disk: DefaultObjectStoreRegistry,
}

impl ObjectStoreRegistry for Stores {
    fn register_store(
        &self,
        url: &Url,
        store: Arc<dyn ObjectStore>,
    ) -> Option<Arc<dyn ObjectStore>> {
        self.disk.register_store(url, store)
    }

    fn get_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        if !is_remote(url) {
            return self.disk.get_store(url);
        }
        let mut base = url.clone();
        base.set_query(None);
        base.set_fragment(None);
        base.set_path("/");
        store(&base).map_err(|error| DataFusionError::External(Box::new(error)))
    }
}
