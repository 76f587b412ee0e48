//! Functions that stand for a query: `intervals_overlap_count`, `interval_self_intersect`, `counter_leading_intervals`.

use std::sync::Arc;

use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{Result, plan_err};
use datafusion::execution::context::{SessionContext, SessionState};
use futures::FutureExt;

use crate::errors::InText;
use crate::intervals::{self, words};

/// Makes the functions known.
pub(crate) fn register(context: &SessionContext) {
    for function in [
        Macro::OverlapCount,
        Macro::SelfIntersect,
        Macro::LeadingIntervals,
    ] {
        context.register_udtf(function.name(), Arc::new(function));
    }
}

#[derive(Clone, Copy, Debug)]
enum Macro {
    /// `intervals_overlap_count(intervals [, key ...])`
    OverlapCount,
    /// `interval_self_intersect(intervals)`
    SelfIntersect,
    /// `counter_leading_intervals(counters)`
    LeadingIntervals,
}

impl Macro {
    fn name(self) -> &'static str {
        match self {
            Self::OverlapCount => "intervals_overlap_count",
            Self::SelfIntersect => "interval_self_intersect",
            Self::LeadingIntervals => "counter_leading_intervals",
        }
    }

    /// The columns that its table needs.
    fn columns(self) -> &'static [&'static str] {
        match self {
            Self::OverlapCount => &["ts", "dur"],
            Self::SelfIntersect => &["ts", "dur", "id"],
            Self::LeadingIntervals => &["id", "ts", "track_id", "value"],
        }
    }

    /// The query that a call stands for.
    fn query(self, table: &str, keys: &[String]) -> Result<String> {
        let keys: Vec<String> = keys.iter().map(|key| quoted(key)).collect();
        let listed: String = keys.iter().map(|key| format!(", {key}")).collect();
        let partition = match keys.is_empty() {
            true => String::new(),
            false => format!("PARTITION BY {} ", keys.join(", ")),
        };
        Ok(match self {
            // What begins adds one, what ends takes one away; intervals that do not end stay.
            Self::OverlapCount => format!(
                "SELECT ts, sum(sum(step)) OVER ({partition}ORDER BY ts) AS value{listed} FROM (\
                 SELECT ts, 1 AS step{listed} FROM {table} UNION ALL \
                 SELECT ts + dur AS ts, -1 AS step{listed} FROM {table} WHERE dur >= 0) GROUP BY ts{listed}"
            ),
            Self::SelfIntersect | Self::LeadingIntervals if !keys.is_empty() => {
                return plan_err!("{} takes a table alone", self.name());
            }
            Self::SelfIntersect => self_intersect(table),
            Self::LeadingIntervals => format!(
                "SELECT id, ts, coalesce(lead(ts) OVER turn - ts, -1) AS dur, track_id, value, \
                 lead(value) OVER turn AS next_value, lead(value) OVER turn - value AS delta_value FROM (\
                 SELECT id, ts, track_id, value, lag(value) OVER (PARTITION BY track_id ORDER BY ts, id) AS before \
                 FROM {table}) WHERE before IS NULL OR value <> before \
                 WINDOW turn AS (PARTITION BY track_id ORDER BY ts, id)"
            ),
        })
    }
}

/// The pieces of time between the ends of intervals, with the intervals that cover each, and those that end where it begins.
fn self_intersect(table: &str) -> String {
    // The last piece has no end and no length.
    let segments = format!(
        "SELECT ts, coalesce(lead(ts) OVER (ORDER BY ts) - ts, 0) AS dur, row_number() OVER (ORDER BY ts) AS group_id FROM (\
         SELECT ts FROM {table} UNION SELECT ts + dur AS ts FROM {table} WHERE dur >= 0)"
    );
    let text = |query: String| query.replace('\'', "''");
    format!(
        "SELECT ts, dur, group_id, id, false AS interval_ends_at_ts FROM interval_intersect('{}', '{}') UNION ALL \
         SELECT s.ts, s.dur, s.group_id, i.id, true AS interval_ends_at_ts \
         FROM ({segments}) s JOIN {table} i ON s.ts = i.ts + i.dur WHERE i.dur >= 0",
        text(format!(
            "SELECT ts, dur, group_id FROM ({segments}) WHERE dur > 0"
        )),
        text(format!("SELECT ts, dur, id FROM {table}")),
    )
}

/// A name that stands for itself, whatever it is.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

impl TableFunctionImpl for Macro {
    fn call_with_args(&self, args: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        let words = words(args.exprs(), self.name())?;
        let Some((table, keys)) = words.split_first() else {
            return plan_err!("{} needs a table", self.name());
        };
        let Some(state) = args.session().as_any().downcast_ref::<SessionState>() else {
            return plan_err!("{} cannot be used here", self.name());
        };
        let context = SessionContext::new_with_state(state.clone());
        let (frame, is_name) = intervals::table(&context, table)?;
        let has = |column: &str| frame.schema().has_column_with_unqualified_name(column);
        if let Some(missing) = self.columns().iter().find(|column| !has(column)) {
            return Err(InText::whole(table, format!("no column `{missing}`")));
        }
        if let Some(missing) = keys.iter().find(|key| !has(key)) {
            let problem = format!("no column `{missing}` in `{table}`");
            return Err(InText::whole(missing, problem));
        }
        let table = match is_name {
            true => quoted(table),
            false => format!("({table})"),
        };
        match context.sql(&self.query(&table, keys)?).now_or_never() {
            Some(frame) => Ok(frame?.into_view()),
            None => plan_err!("{} cannot be planned here", self.name()),
        }
    }
}
