//! Tables of events as DataFusion reads them: what a query asks for goes down to the decoder.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Result, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_expr::PhysicalSortExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::metrics::BaselineMetrics;
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use datafusion::physical_plan::{EmptyRecordBatchStream, ExecutionPlan};
use kymo::pipeline::Window;
use kymo::timeline::NoticeKind;
use kymo_model::Lost;
use kymo_time::Timestamp;

use crate::leaf::{Leaf, LeafExec, Part};
use crate::pushdown::{Pushed, pushed, support};
use crate::rows::Rows;
use crate::source::{Damage, EventColumn, EventTable, Own};
use crate::units::{Grouping, Unit, Units};

/// What scans of a session have in common, and what may change between statements.
#[derive(Debug)]
pub(crate) struct ScanSettings {
    /// Cleared if rows of a stream turned out not to be in order of time.
    pub(crate) is_ordered: AtomicBool,
    /// Into how many units a cluster's workers share a table; 0 if this process reads all.
    pub(crate) shared_units: AtomicUsize,
}

impl Default for ScanSettings {
    fn default() -> Self {
        Self {
            is_ordered: AtomicBool::new(true),
            shared_units: AtomicUsize::new(0),
        }
    }
}

/// A table of events.
#[derive(Debug)]
pub(crate) struct Events {
    pub(crate) table: Arc<EventTable>,
    pub(crate) settings: Arc<ScanSettings>,
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
            !self.table.is_empty
                && classes.is_some_and(|classes| classes.iter().any(Option::is_some))
        };
        let (most, grouping) = match self.settings.shared_units.load(Ordering::Relaxed) {
            0 => (state.config().target_partitions(), Grouping::Time),
            shared => (shared, Grouping::Recording),
        };
        let events = &self.table.source.events;
        let window = self.table.source.range.and(pushed.window);
        let units = Units::new(events, window, is_wanted, most, grouping);
        let is_ordered = self.settings.is_ordered.load(Ordering::Relaxed);
        let scan = ScanEvents {
            damage: Arc::clone(&self.table.source.damage),
            table: Arc::clone(&self.table),
            projection,
            pushed,
            fetch: limit,
            units: Arc::new(units),
            is_ordered,
        };
        Ok(Arc::new(scan.leaf()))
    }
}

/// Reads events of some chunks: a partition for each unit, whose rows are in order of time.
#[derive(Clone, Debug)]
struct ScanEvents {
    table: Arc<EventTable>,
    damage: Arc<Damage>,
    projection: Vec<usize>,
    pushed: Pushed,
    fetch: Option<usize>,
    units: Arc<Units>,
    is_ordered: bool,
}

impl ScanEvents {
    fn leaf(mut self) -> LeafExec {
        let fields = self.projection.iter();
        let fields = fields.map(|&column| self.table.schema.field(column).clone());
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let at = |own| {
            let mut columns = self.projection.iter();
            columns.position(|&column| self.table.columns[column] == EventColumn::Own(own))
        };
        // Tracks that are not streams are found class by class.
        let is_ordered = self.is_ordered
            && self.table.has_clocks
            && (self.table.is_plain || at(Own::Track).is_none());
        let order = at(Own::Timestamp)
            .filter(|_| is_ordered)
            .map(|position| PhysicalSortExpr {
                expr: Arc::new(Column::new(schema.field(position).name(), position)),
                options: SortOptions {
                    descending: false,
                    nulls_first: false,
                },
            });
        self.is_ordered = is_ordered;
        let partitions = self.units.units.len();
        LeafExec::new(Arc::new(self), schema, order, partitions)
    }

    fn rows(&self, unit: &Unit, schema: &SchemaRef, stop: Arc<AtomicBool>) -> Rows {
        let mut rows = Rows::new(Arc::clone(&self.table), self.projection.clone(), schema);
        let (from, to) = unit.places();
        rows.query.range = rows.query.range.and(self.pushed.window);
        let conditions = [
            rows.query.filter.condition.take(),
            self.pushed.condition.clone(),
        ];
        rows.query.filter.condition = conditions
            .into_iter()
            .flatten()
            .reduce(|left, right| format!("({left}) and ({right})"));
        rows.query.from = Some(from);
        rows.query.to = Some(to);
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

/// What a worker reads as a part of a scan; damage that is met goes to `damage`.
///
/// # Errors
///
/// The part is not one of this table.
pub(crate) fn scan_part(
    part: Part,
    table: Arc<EventTable>,
    damage: &Arc<Damage>,
) -> Result<LeafExec> {
    let unit = Unit { spans: part.spans };
    let columns = table.columns.len();
    if !unit.is_of(&table.source.events) || part.projection.iter().any(|&at| at >= columns) {
        return internal_err!("a part of `{}` is not in these recordings", table.name());
    }
    let scan = ScanEvents {
        table,
        damage: Arc::clone(damage),
        projection: part.projection,
        pushed: Pushed {
            window: Window {
                begin: Timestamp::from_nanos(part.window.0),
                end: Timestamp::from_nanos(part.window.1),
            },
            needs_time: part.needs_time,
            condition: part.condition,
        },
        fetch: part.fetch,
        units: Arc::new(Units {
            units: vec![unit],
            packets: 0,
            all_packets: 0,
        }),
        is_ordered: part.is_ordered,
    };
    Ok(scan.leaf())
}

impl Leaf for ScanEvents {
    fn name(&self) -> &'static str {
        "KymoScan"
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Units {
            units,
            packets,
            all_packets,
        } = &*self.units;
        write!(
            f,
            "table={}, packets={packets} of {all_packets}, partitions={}",
            self.table.name(),
            units.len()
        )?;
        let columns = self.projection.iter();
        let columns = columns.map(|&at| self.table.schema.field(at).name().as_str());
        write!(f, ", columns=[{}]", columns.collect::<Vec<_>>().join(", "))?;
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

    fn read(
        &self,
        partition: usize,
        schema: SchemaRef,
        _: Arc<TaskContext>,
        metrics: BaselineMetrics,
    ) -> Result<SendableRecordBatchStream> {
        let Some(unit) = self.units.units.get(partition) else {
            return internal_err!("no partition {partition}");
        };
        if unit.spans.is_empty() {
            return Ok(Box::pin(EmptyRecordBatchStream::new(schema)));
        }
        // Whoever waits for no more batches drops the stream, and with it this.
        let stop = StopOnDrop::default();
        let mut rows = self.rows(unit, &schema, Arc::clone(&stop.0));
        let damage = Arc::clone(&self.damage);
        let is_strict = self.table.source.is_strict;
        let mut left = self.fetch.unwrap_or(usize::MAX);
        let mut builder = RecordBatchReceiverStream::builder(schema, 2);
        let sender = builder.tx();
        builder.spawn_blocking(move || {
            let notice = |kind: &NoticeKind| match kind {
                NoticeKind::Fault(fault) => damage.fault(fault),
                NoticeKind::LostEvents(lost) | NoticeKind::LostChunks(lost) if is_strict => {
                    damage.met(losses_text(lost));
                }
                _ => {}
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

    fn fetch(&self) -> Option<usize> {
        self.fetch
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn Leaf>> {
        Some(Arc::new(Self {
            fetch: limit,
            ..self.clone()
        }))
    }

    fn part(&self, partition: usize) -> Option<Part> {
        Some(Part {
            class: self.table.class.as_deref().map(str::to_owned),
            projection: self.projection.clone(),
            window: (
                self.pushed.window.begin.as_nanos(),
                self.pushed.window.end.as_nanos(),
            ),
            needs_time: self.pushed.needs_time,
            condition: self.pushed.condition.clone(),
            fetch: self.fetch,
            is_ordered: self.is_ordered,
            spans: self.units.units.get(partition)?.spans.clone(),
        })
    }
}

/// What a loss is called where losses count as damage.
fn losses_text(lost: &Lost) -> String {
    let count = lost
        .count
        .map_or("some".to_owned(), |count| count.to_string());
    let place = match (lost.begin, lost.end) {
        (Some(begin), Some(end)) => format!(" between the ticks {begin} and {end}"),
        (Some(begin), None) => format!(" after the tick {begin}"),
        (None, Some(end)) => format!(" before the tick {end}"),
        (None, None) => String::new(),
    };
    format!("the recorder discarded events or packets{place}: {count}")
}

/// Ends decoding when nothing waits for its rows.
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
