//! Tables of events as DataFusion reads them: what a query asks for goes down to the decoder.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{
    EquivalenceProperties, Partitioning, PhysicalExpr, PhysicalSortExpr,
};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
};
use kymo::pipeline::Window;
use kymo::timeline::NoticeKind;

use crate::pushdown::{Pushed, pushed, support};
use crate::rows::Rows;
use crate::source::{EventColumn, EventTable, Own};
use crate::units::{Unit, Units};

/// A table of events.
#[derive(Debug)]
pub(crate) struct Events {
    pub(crate) table: Arc<EventTable>,
    /// Cleared if rows of a stream turned out not to be in order of time.
    pub(crate) is_ordered: Arc<AtomicBool>,
}

#[async_trait]
impl TableProvider for Events {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.table.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(support(&self.table, filters))
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let all = || (0..self.table.columns.len()).collect();
        let projection = projection.cloned().unwrap_or_else(all);
        let pushed = pushed(&self.table, filters);
        let is_wanted = |recording: usize| {
            let classes = self.table.classes.get(recording);
            classes.is_some_and(|classes| classes.iter().any(Option::is_some))
        };
        let most = state.config().target_partitions();
        let units = Units::new(&self.table.source.events, pushed.window, is_wanted, most);
        let is_ordered = self.is_ordered.load(Ordering::Relaxed);
        Ok(Arc::new(ScanEvents::new(
            Arc::clone(&self.table),
            projection,
            pushed,
            limit,
            units,
            is_ordered,
        )?))
    }
}

/// Reads events of some chunks: a partition for each unit, whose rows are in order of time.
#[derive(Clone, Debug)]
pub(crate) struct ScanEvents {
    pub(crate) table: Arc<EventTable>,
    projection: Vec<usize>,
    pub(crate) pushed: Pushed,
    fetch: Option<usize>,
    units: Arc<Units>,
    properties: Arc<PlanProperties>,
    is_ordered: bool,
    metrics: ExecutionPlanMetricsSet,
}

impl ScanEvents {
    fn new(
        table: Arc<EventTable>,
        projection: Vec<usize>,
        pushed: Pushed,
        fetch: Option<usize>,
        units: Units,
        is_ordered: bool,
    ) -> Result<Self> {
        let schema = Arc::new(Schema::new(
            projection
                .iter()
                .map(|&column| table.schema.field(column).clone())
                .collect::<Vec<_>>(),
        ));
        let at = |own| {
            let mut columns = projection.iter();
            columns.position(|&column| table.columns[column] == EventColumn::Own(own))
        };
        // Tracks that are not streams are found class by class.
        let is_ordered =
            is_ordered && table.has_clocks && (table.is_plain || at(Own::Track).is_none());
        let order = at(Own::Timestamp)
            .filter(|_| is_ordered)
            .map(|position| PhysicalSortExpr {
                expr: Arc::new(Column::new(schema.field(position).name(), position)),
                options: SortOptions {
                    descending: false,
                    nulls_first: false,
                },
            });
        let properties = PlanProperties::new(
            EquivalenceProperties::new_with_orderings(schema, order.map(|order| [order])),
            Partitioning::UnknownPartitioning(units.units.len()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Ok(Self {
            table,
            projection,
            pushed,
            fetch,
            units: Arc::new(units),
            properties: Arc::new(properties),
            is_ordered,
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }

    fn rows(&self, unit: &Unit, stop: Arc<AtomicBool>) -> Rows {
        let mut rows = Rows::new(
            Arc::clone(&self.table),
            self.projection.clone(),
            self.properties.eq_properties.schema(),
        );
        rows.query.range = self.pushed.window;
        rows.query
            .filter
            .condition
            .clone_from(&self.pushed.condition);
        rows.query.from = Some(unit.from.clone());
        rows.query.to = Some(unit.to.clone());
        rows.query.threads = 1;
        rows.query.batch_rows = 1 << 13;
        rows.query.stop = Some(stop);
        if !self.pushed.needs_time && !rows.drops_rows {
            rows.query.limit = self.fetch.map(|fetch| fetch as u64);
        }
        rows.needs_time = self.pushed.needs_time;
        rows.is_ordered = self.is_ordered;
        rows
    }
}

impl DisplayAs for ScanEvents {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Units {
            units,
            packets,
            all_packets,
        } = &*self.units;
        write!(
            f,
            "KymoScan: table={}, packets={packets} of {all_packets}, partitions={}",
            self.table.name(),
            units.len()
        )?;
        let columns = self.schema();
        let columns: Vec<_> = columns
            .fields()
            .iter()
            .map(|of| of.name().clone())
            .collect();
        write!(f, ", columns=[{}]", columns.join(", "))?;
        if self.pushed.window != Window::ALL {
            let Window { begin, end } = self.pushed.window;
            write!(f, ", time=[{}, {}]", begin.as_nanos(), end.as_nanos())?;
        }
        if let Some(condition) = &self.pushed.condition {
            write!(f, ", where={condition}")?;
        }
        if let Some(fetch) = self.fetch {
            write!(f, ", limit={fetch}")?;
        }
        Ok(())
    }
}

impl ExecutionPlan for ScanEvents {
    fn name(&self) -> &'static str {
        "KymoScan"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(
        &self,
        partition: usize,
        _context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let Some(unit) = self.units.units.get(partition) else {
            return internal_err!("there is no partition {partition}");
        };
        // Whoever waits for no more batches drops the stream, and with it this.
        let stop = StopOnDrop::default();
        let mut rows = self.rows(unit, Arc::clone(&stop.0));
        let schema = self.schema();
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let mut left = self.fetch.unwrap_or(usize::MAX);
        let mut builder = RecordBatchReceiverStream::builder(Arc::clone(&schema), 2);
        let sender = builder.tx();
        builder.spawn_blocking(move || {
            let source = Arc::clone(&rows.table.source);
            let notice = |kind: &NoticeKind| {
                if let NoticeKind::Fault(fault) = kind {
                    source.met(fault);
                }
            };
            rows.run(notice, |batch| {
                let batch = batch.slice(0, batch.num_rows().min(left));
                left -= batch.num_rows();
                metrics.record_output(batch.num_rows());
                sender.blocking_send(Ok(batch)).is_ok() && left > 0
            })
        });
        Ok(stop.around(builder.build()))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn supports_limit_pushdown(&self) -> bool {
        false
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        Some(Arc::new(Self {
            fetch: limit,
            ..self.clone()
        }))
    }

    fn fetch(&self) -> Option<usize> {
        self.fetch
    }
}

/// Ends decoding when nobody waits for its rows.
#[derive(Debug, Default)]
pub(crate) struct StopOnDrop(pub(crate) Arc<AtomicBool>);

impl StopOnDrop {
    /// A stream that lives as long as this.
    pub(crate) fn around(self, inner: SendableRecordBatchStream) -> SendableRecordBatchStream {
        use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
        use futures::StreamExt;
        let schema = inner.schema();
        let stream = inner.map(move |batch| {
            let _ = &self;
            batch
        });
        Box::pin(RecordBatchStreamAdapter::new(schema, stream))
    }
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
