//! Tables that are made by one function, batch by batch or as a whole.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::BaselineMetrics;
use datafusion::physical_plan::stream::{RecordBatchReceiverStream, RecordBatchStreamAdapter};
use futures::future::BoxFuture;
use kymo::pipeline::Window;

use crate::leaf::{Leaf, LeafExec};
use crate::pushdown;
use crate::scan::StopOnDrop;

/// Makes the batches of a table.
pub(crate) trait Make: Send + Sync {
    /// Hands over all batches with rows of a time, until `take` wants no more. Rows of other times may be among them.
    ///
    /// # Errors
    ///
    /// Why there are none.
    fn make(
        &self,
        window: Window,
        stop: &StopOnDrop,
        take: &mut dyn FnMut(RecordBatch) -> bool,
    ) -> Result<()>;
}

/// How a table is made.
#[derive(Clone)]
pub(crate) enum Maker {
    /// Batch by batch, in a thread of its own.
    Stream(Arc<dyn Make>),
    /// As a whole.
    Whole(Arc<dyn Fn(Arc<TaskContext>) -> BoxFuture<'static, Result<RecordBatch>> + Send + Sync>),
}

/// A table that a function makes.
#[derive(Clone)]
pub(crate) struct Made {
    pub(crate) name: String,
    pub(crate) schema: SchemaRef,
    /// The name of the column with the time, if conditions on it are of use.
    pub(crate) time: Option<&'static str>,
    pub(crate) maker: Maker,
}

impl fmt::Debug for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Made")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl TableProvider for Made {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        let support = |filter: &&Expr| match self.time.and_then(|time| pushdown::time(time, filter))
        {
            Some(_) => TableProviderFilterPushDown::Inexact,
            None => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(support).collect())
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let all = || (0..self.schema.fields().len()).collect();
        let projection = projection.cloned().unwrap_or_else(all);
        let windows = filters
            .iter()
            .filter_map(|filter| pushdown::time(self.time?, filter));
        let window = windows.fold(Window::ALL, Window::and);
        let schema = Arc::new(self.schema.project(&projection)?);
        let leaf = MakeTable {
            made: self.clone(),
            projection,
            window,
        };
        Ok(Arc::new(LeafExec::new(Arc::new(leaf), schema, None, 1)))
    }
}

/// Makes a table in one partition.
#[derive(Debug)]
struct MakeTable {
    made: Made,
    projection: Vec<usize>,
    window: Window,
}

impl Leaf for MakeTable {
    fn name(&self) -> &'static str {
        "KymoTable"
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "table={}", self.made.name)?;
        if self.window != Window::ALL {
            let Window { begin, end } = self.window;
            write!(f, ", time=[{}, {}]", begin.as_nanos(), end.as_nanos())?;
        }
        Ok(())
    }

    fn read(
        &self,
        _: usize,
        schema: SchemaRef,
        task: Arc<TaskContext>,
        metrics: BaselineMetrics,
    ) -> Result<SendableRecordBatchStream> {
        let projection = self.projection.clone();
        match &self.made.maker {
            Maker::Stream(make) => {
                let (make, window) = (Arc::clone(make), self.window);
                let stop = StopOnDrop::default();
                let seen = StopOnDrop(Arc::clone(&stop.0));
                let mut builder = RecordBatchReceiverStream::builder(schema, 2);
                let sender = builder.tx();
                builder.spawn_blocking(move || {
                    let mut failed: Option<DataFusionError> = None;
                    let result = make.make(window, &seen, &mut |batch| match batch
                        .project(&projection)
                    {
                        Ok(batch) => {
                            metrics.record_output(batch.num_rows());
                            sender.blocking_send(Ok(batch)).is_ok()
                        }
                        Err(error) => {
                            failed = Some(error.into());
                            false
                        }
                    });
                    failed.map_or(result, Err)
                });
                Ok(stop.around(builder.build()))
            }
            Maker::Whole(make) => {
                let made = make(task);
                let batch = async move { Ok(made.await?.project(&projection)?) };
                let stream = futures::stream::once(batch);
                Ok(Box::pin(RecordBatchStreamAdapter::new(schema, stream)))
            }
        }
    }
}
