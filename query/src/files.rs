//! Parquet files as tables whose files do not become fewer without an error.
//!
//! DataFusion lists the files of a table anew for each statement: those that are gone are not missed, and neither are
//! their rows.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DataFusionError, Result, exec_datafusion_err, exec_err};
use datafusion::dataframe::DataFrame;
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{Expr, LogicalPlan, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::{ParquetReadOptions, SessionContext};

use crate::errors::message;
use crate::objects;

/// A table of files, as many as there were when it was made.
struct ParquetFiles {
    table: Arc<dyn TableProvider>,
    /// As it was asked for.
    place: String,
    files: HashSet<String>,
}

/// The table of the Parquet files at some paths or URLs.
///
/// # Errors
///
/// They cannot be read.
pub(crate) async fn read(context: &SessionContext, locations: Vec<String>) -> Result<DataFrame> {
    let place = locations.first().cloned().unwrap_or_default();
    let options = ParquetReadOptions::default();
    let frame = context.read_parquet(locations, options).await;
    let frame = frame.map_err(|error| exec_datafusion_err!("{place}: {}", message(&error)))?;
    let LogicalPlan::TableScan(scan) = frame.logical_plan() else {
        return Ok(frame);
    };
    let table = source_as_provider(&scan.source)?;
    let plan = table.scan(&context.state(), None, &[], None).await?;
    let files = names(&plan);
    if files.is_empty() {
        return exec_err!("{place}: the file no longer exists");
    }
    context.read_table(Arc::new(ParquetFiles {
        table,
        place,
        files,
    }))
}

/// The files that a leaf of a plan reads, if it reads files.
pub(crate) fn files(plan: &Arc<dyn ExecutionPlan>) -> Option<&FileScanConfig> {
    let source = plan.downcast_ref::<DataSourceExec>()?;
    source.data_source().downcast_ref::<FileScanConfig>()
}

/// Their names.
fn names(plan: &Arc<dyn ExecutionPlan>) -> HashSet<String> {
    let groups = files(plan).map_or(&[][..], |config| &config.file_groups);
    let files = groups.iter().flat_map(|group| group.iter());
    files
        .map(|file| file.object_meta.location.to_string())
        .collect()
}

impl fmt::Debug for ParquetFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ParquetFiles").field(&self.place).finish()
    }
}

#[async_trait]
impl TableProvider for ParquetFiles {
    fn schema(&self) -> SchemaRef {
        self.table.schema()
    }

    fn table_type(&self) -> TableType {
        self.table.table_type()
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        self.table.supports_filters_pushdown(filters)
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        // With a limit, files would be left out that are not needed; a plan gets its limit later, too.
        let plan = self.table.scan(state, projection, filters, None).await;
        let plan = plan.map_err(|error| match error.find_root() {
            DataFusionError::ParquetError(_) => {
                exec_datafusion_err!("{}: {}", self.place, message(&error))
            }
            _ => error,
        })?;
        let now = names(&plan);
        let gone = self.files.iter().filter(|name| !now.contains(*name));
        match gone.min() {
            Some(name) => exec_err!("{}: the file `{name}` no longer exists", self.place),
            None => objects::unchanged(plan, state.runtime_env()),
        }
    }
}
