//! The leaves of plans: what makes rows of recordings.
//!
//! One type of plan holds them all, so that each says only what it reads and how. A cluster sends a leaf to a worker as a
//! [`Part`].

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{
    EquivalenceProperties, LexOrdering, Partitioning, PhysicalExpr, PhysicalSortExpr,
};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
};
use serde::{Deserialize, Serialize};

use crate::units::Span;

/// Reads rows.
pub(crate) trait Leaf: fmt::Debug + Send + Sync {
    /// What plans call it.
    fn name(&self) -> &'static str;

    /// What plans show of it.
    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;

    /// Begins to read a partition.
    ///
    /// # Errors
    ///
    /// There is no such partition.
    fn read(
        &self,
        partition: usize,
        schema: SchemaRef,
        task: Arc<TaskContext>,
        metrics: BaselineMetrics,
    ) -> Result<SendableRecordBatchStream>;

    /// The most rows of a partition that are wanted.
    fn fetch(&self) -> Option<usize> {
        None
    }

    /// The same with another number of wanted rows; `None` if it always reads all.
    fn with_fetch(&self, _: Option<usize>) -> Option<Arc<dyn Leaf>> {
        None
    }

    /// What a worker has to know to read a partition; `None` if only this process can read it.
    fn part(&self, _: usize) -> Option<Part> {
        None
    }
}

/// A partition of a leaf, as a worker reads it from the same recordings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Part {
    /// The class of events; `None` for all.
    pub(crate) class: Option<String>,
    /// The columns that are read, as positions in the table.
    pub(crate) projection: Vec<usize>,
    /// The first and the last time that is wanted, in nanoseconds.
    pub(crate) window: (i64, i64),
    /// Whether rows without a time are left out.
    pub(crate) needs_time: bool,
    /// A condition in kymo's language.
    pub(crate) condition: Option<String>,
    /// The most rows that are wanted.
    pub(crate) fetch: Option<usize>,
    /// Whether rows have to be in order of time.
    pub(crate) is_ordered: bool,
    /// The chunks that are read.
    pub(crate) spans: Vec<Span>,
}

/// A leaf in a plan.
#[derive(Clone, Debug)]
pub(crate) struct LeafExec {
    leaf: Arc<dyn Leaf>,
    properties: Arc<PlanProperties>,
    /// The one partition of the leaf that this reads, if it does not read all.
    only: Option<usize>,
    metrics: ExecutionPlanMetricsSet,
}

impl LeafExec {
    /// Reads partitions whose rows are in this order, if one is given.
    pub(crate) fn new(
        leaf: Arc<dyn Leaf>,
        schema: SchemaRef,
        order: Option<PhysicalSortExpr>,
        partitions: usize,
    ) -> Self {
        let order = order.and_then(|order| LexOrdering::new([order]));
        let properties = PlanProperties::new(
            EquivalenceProperties::new_with_orderings(schema, order),
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Self {
            leaf,
            properties: Arc::new(properties),
            only: None,
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    /// The same with one of its partitions alone.
    pub(crate) fn only(&self, partition: usize) -> Self {
        let properties = self.properties.as_ref().clone();
        Self {
            leaf: Arc::clone(&self.leaf),
            properties: Arc::new(
                properties.with_partitioning(Partitioning::UnknownPartitioning(1)),
            ),
            only: Some(partition),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    /// What a worker has to know to read the first partition, if it can.
    pub(crate) fn part(&self) -> Option<Part> {
        self.leaf.part(self.only.unwrap_or_default())
    }
}

impl DisplayAs for LeafExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.leaf.name())?;
        self.leaf.describe(f)
    }
}

impl ExecutionPlan for LeafExec {
    fn name(&self) -> &'static str {
        self.leaf.name()
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
        task: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let partition = self.only.unwrap_or(partition);
        self.leaf.read(partition, self.schema(), task, metrics)
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn supports_limit_pushdown(&self) -> bool {
        false
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        Some(Arc::new(Self {
            leaf: self.leaf.with_fetch(limit)?,
            ..self.clone()
        }))
    }

    fn fetch(&self) -> Option<usize> {
        self.leaf.fetch()
    }
}
