//! Parquet files of servers, whose bytes all come from the object that was there when it was planned to read them.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::common::Result as Planned;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::{
    CachedParquetFileReaderFactory, ParquetFileReaderFactory,
};
use datafusion::datasource::physical_plan::{FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::cache::cache_manager::FileMetadataCache;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::parquet::arrow::async_reader::AsyncFileReader;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures::stream::{BoxStream, StreamExt, TryStreamExt};
use object_store::path::Path as Location;
use object_store::{
    CopyOptions, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use url::Url;

use super::source::Object;
use super::{Unreadable, explained, is_remote};
use crate::files::files;

/// A plan that fails if a Parquet file of a server changes while it is read: DataFusion reads it by many requests, and
/// would take what each of them brings for a part of the same file.
pub(crate) fn unchanged(
    plan: Arc<dyn ExecutionPlan>,
    runtime: &RuntimeEnv,
) -> Planned<Arc<dyn ExecutionPlan>> {
    let with_readers = |plan: Arc<dyn ExecutionPlan>| {
        let Some(config) = files(&plan) else {
            return Ok(Transformed::no(plan));
        };
        let url: &Url = config.object_store_url.as_ref();
        let source = config.file_source().downcast_ref::<ParquetSource>();
        let Some(source) = source.filter(|_| is_remote(url)) else {
            return Ok(Transformed::no(plan));
        };
        let readers = Readers {
            base: url.clone(),
            store: runtime.object_store(&config.object_store_url)?,
            cache: runtime.cache_manager.get_file_metadata_cache(),
        };
        let source = source
            .clone()
            .with_parquet_file_reader_factory(Arc::new(readers));
        let config = FileScanConfigBuilder::from(config.clone())
            .with_source(Arc::new(source))
            .build();
        Ok(Transformed::yes(
            DataSourceExec::from_data_source(config) as _
        ))
    };
    plan.transform_up(with_readers).data()
}

/// Makes what reads a file.
#[derive(Debug)]
struct Readers {
    base: Url,
    store: Arc<dyn ObjectStore>,
    cache: Arc<FileMetadataCache>,
}

impl ParquetFileReaderFactory for Readers {
    fn create_reader(
        &self,
        partition: usize,
        file: PartitionedFile,
        hint: Option<usize>,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Planned<Box<dyn AsyncFileReader + Send>> {
        let mut url = self.base.clone();
        url.set_path(file.object_meta.location.as_ref());
        let same = Same {
            url: url.into(),
            object: Object {
                store: Arc::clone(&self.store),
                meta: file.object_meta.clone(),
            },
        };
        let readers = CachedParquetFileReaderFactory::new(Arc::new(same), Arc::clone(&self.cache));
        readers.create_reader(partition, file, hint, metrics)
    }
}

/// A store that has one object, as long as it stays the same.
#[derive(Debug)]
struct Same {
    url: String,
    object: Object,
}

impl fmt::Display for Same {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url)
    }
}

#[async_trait]
impl ObjectStore for Same {
    async fn get_opts(&self, _: &Location, options: GetOptions) -> Result<GetResult> {
        let unreadable =
            |url: &str, error: &dyn fmt::Display| Unreadable(format!("{url}: {error}"));
        let answer = self.object.get(options).await;
        let mut answer = answer.map_err(|error| unreadable(&self.url, &error))?;
        if let GetResultPayload::Stream(pieces) = answer.payload {
            let url = self.url.clone();
            let pieces = pieces.map_err(move |error| unreadable(&url, &explained(&error)).into());
            answer.payload = GetResultPayload::Stream(pieces.boxed());
        }
        Ok(answer)
    }

    async fn put_opts(
        &self,
        location: &Location,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        let store = &self.object.store;
        store.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Location,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let store = &self.object.store;
        store.put_multipart_opts(location, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Location>>,
    ) -> BoxStream<'static, Result<Location>> {
        self.object.store.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Location>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.object.store.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Location>) -> Result<ListResult> {
        self.object.store.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Location, to: &Location, options: CopyOptions) -> Result<()> {
        self.object.store.copy_opts(from, to, options).await
    }
}
