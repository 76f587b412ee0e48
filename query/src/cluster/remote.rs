//! Parts of plans that workers run.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, internal_err};
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder};
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::limit::LocalLimitExec;
use datafusion::physical_plan::metrics::{
    BaselineMetrics, Count, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet,
};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use datafusion::physical_plan::unnest::UnnestExec;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
    ReplaceChildrenOptions, replace_children_if_necessary,
};
use datafusion_proto::bytes::physical_plan_to_bytes_with_extension_codec;

use super::codec::Codec;
use super::pool::Pool;
use super::wire::{Fingerprint, Task};
use crate::files::files;
use crate::leaf::LeafExec;
use crate::source::{Damage, external};

/// What the work of a session has in common.
pub(crate) struct Remote {
    pub(super) pool: Arc<Pool>,
    /// How workers open the recordings.
    pub(super) words: Vec<String>,
    pub(super) fingerprint: Fingerprint,
    /// Where the damage goes that workers met.
    pub(super) damage: Arc<Damage>,
    /// The number of the query that runs.
    pub(super) query: AtomicU64,
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote").finish_non_exhaustive()
    }
}

/// Finds the parts of a plan that workers can run.
#[derive(Debug)]
pub(crate) struct ShareWork(pub(crate) Arc<Remote>);

impl PhysicalOptimizerRule for ShareWork {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if is_independent(&plan) && encoded(&plan, 0).is_ok() {
            return Ok(Arc::new(RemoteExec::new(plan, Arc::clone(&self.0))));
        }
        let children = plan.children();
        let config = ConfigOptions::default();
        let children = children
            .into_iter()
            .map(|child| self.optimize(Arc::clone(child), &config));
        let children = children.collect::<Result<Vec<_>>>()?;
        replace_children_if_necessary(plan, children)
    }

    fn name(&self) -> &'static str {
        "share_work"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Whether each partition of a plan needs the rows of one partition of its leaf alone.
fn is_independent(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let children = plan.children();
    let [child] = children[..] else {
        return is_leaf(plan);
    };
    let is_single = child.output_partitioning().partition_count() == 1;
    let is_kept = if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        match aggregate.mode() {
            AggregateMode::Partial => true,
            AggregateMode::Single => is_single,
            _ => false,
        }
    } else if let Some(sort) = plan.downcast_ref::<SortExec>() {
        sort.preserve_partitioning() || is_single
    } else {
        plan.downcast_ref::<FilterExec>().is_some()
            || plan.downcast_ref::<ProjectionExec>().is_some()
            || plan.downcast_ref::<LocalLimitExec>().is_some()
            || plan.downcast_ref::<UnnestExec>().is_some()
            || plan.downcast_ref::<CooperativeExec>().is_some()
    };
    is_kept && is_independent(child)
}

/// Whether workers can read a leaf: recordings, and Parquet files.
fn is_leaf(plan: &Arc<dyn ExecutionPlan>) -> bool {
    match plan.downcast_ref::<LeafExec>() {
        Some(leaf) => leaf.part().is_some(),
        None => files(plan).is_some(),
    }
}

/// The part of a plan that makes one of its partitions.
fn only(plan: &Arc<dyn ExecutionPlan>, partition: usize) -> Result<Arc<dyn ExecutionPlan>> {
    if let Some(leaf) = plan.downcast_ref::<LeafExec>() {
        return Ok(Arc::new(leaf.only(partition)));
    }
    if let Some(config) = files(plan) {
        let group = config.file_groups.get(partition).cloned();
        let config = FileScanConfigBuilder::from(config.clone())
            .with_file_groups(vec![group.unwrap_or_else(|| FileGroup::new(Vec::new()))])
            .build();
        return Ok(DataSourceExec::from_data_source(config));
    }
    let children = plan.children();
    let [child] = children[..] else {
        return internal_err!("{} has no single input", plan.name());
    };
    let child = only(child, partition)?;
    replace_children_if_necessary(Arc::clone(plan), vec![child])
}

/// A partition of a plan as bytes.
fn encoded(plan: &Arc<dyn ExecutionPlan>, partition: usize) -> Result<Vec<u8>> {
    let plan = only(plan, partition)?;
    let bytes = physical_plan_to_bytes_with_extension_codec(plan, &Codec::default())?;
    Ok(bytes.to_vec())
}

/// Has workers run a part of a plan: each partition is a unit of work.
#[derive(Debug)]
struct RemoteExec {
    plan: Arc<dyn ExecutionPlan>,
    remote: Arc<Remote>,
    metrics: ExecutionPlanMetricsSet,
}

impl RemoteExec {
    fn new(plan: Arc<dyn ExecutionPlan>, remote: Arc<Remote>) -> Self {
        Self {
            plan,
            remote,
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }
}

impl DisplayAs for RemoteExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = self.plan.output_partitioning().partition_count();
        write!(f, "KymoWorkers: units={units}")
    }
}

impl ExecutionPlan for RemoteExec {
    fn name(&self) -> &'static str {
        "KymoWorkers"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.plan.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.plan]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match <[_; 1]>::try_from(children) {
            Ok([plan]) => Ok(Arc::new(Self::new(plan, Arc::clone(&self.remote)))),
            Err(_) => internal_err!("workers run one plan"),
        }
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        use datafusion::physical_plan::execution_plan::ChildrenPropertiesMode::Recompute;
        self.replace_children(children, ReplaceChildrenOptions::new(Recompute))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let rows = BaselineMetrics::new(&self.metrics, partition);
        let bytes = MetricBuilder::new(&self.metrics).counter("answer_bytes", partition);
        let plan = encoded(&self.plan, partition)?;
        let task = Task {
            query: self.remote.query.load(Ordering::Relaxed),
            unit: partition,
            words: self.remote.words.clone(),
            fingerprint: self.remote.fingerprint.clone(),
        };
        let answer = self.remote.pool.submit(task, plan, context.runtime_env());
        let damage = Arc::clone(&self.remote.damage);
        let mut builder = RecordBatchReceiverStream::builder(self.schema(), 2);
        let sender = builder.tx();
        // If nothing waits for the rows now, this ends, and the unit is given up with it.
        builder.spawn(async move {
            let mut answer = match answer.await {
                Ok(answer) => answer?,
                Err(error) => return Err(external(error)),
            };
            std::mem::take(&mut answer.damage)
                .into_iter()
                .for_each(|text| damage.met(text));
            Count::add(&bytes, answer.bytes as usize);
            let read = move || {
                answer.read(|batch| {
                    rows.record_output(batch.num_rows());
                    sender.blocking_send(Ok(batch)).is_ok()
                })
            };
            tokio::task::spawn_blocking(read).await.map_err(external)?
        });
        Ok(builder.build())
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}
