//! Heat maps of latencies.

use std::collections::BTreeMap;

use kymo::Timeline;
use kymo::analysis::{Coverage, Error, Latency, LatencyQuery, Options};
use kymo::pipeline::Select;

use crate::bins::Length;
use crate::panel::{Content, Heat, HeatColumn, Panel};
use crate::units;

/// The columns of a heat map while pairs are read.
struct Columns {
    length: Length,
    bins: BTreeMap<i64, BTreeMap<u32, u64>>,
}

impl Columns {
    fn add(&mut self, start: i64, end: i64) {
        let before = self.length;
        self.length.cover(start);
        self.length.cover(end);
        let bits = self.length.since(&before);
        if bits > 0 {
            for (bin, rows) in std::mem::take(&mut self.bins) {
                let bin = self.bins.entry(bin >> bits).or_default();
                for (row, count) in rows {
                    *bin.entry(row).or_default() += count;
                }
            }
        }
        let rows = self.bins.entry(self.length.bin(start)).or_default();
        *rows.entry(Heat::row(end.abs_diff(start))).or_default() += 1;
    }
}

/// A heat map of the latencies of all recordings, each where it starts, with their distribution.
pub(crate) fn panel(
    timeline: &Timeline,
    select: &dyn Select,
    query: &LatencyQuery,
    options: &Options,
    length: Length,
) -> Result<(Panel, Coverage), Error> {
    // A column of a heat map is some pixels wide.
    let mut columns = Columns {
        length,
        bins: BTreeMap::new(),
    };
    let recordings = timeline.recordings();
    let latency = Latency::with_pairs(recordings, select, query, options, &mut |start, end| {
        columns.add(start, end);
    })?;
    let Columns { length, bins } = columns;
    let mut totals: BTreeMap<u32, u64> = BTreeMap::new();
    let columns = bins.into_iter().map(|(bin, rows)| {
        for (row, count) in &rows {
            *totals.entry(*row).or_default() += count;
        }
        let (begin, end) = length.times(bin);
        HeatColumn {
            begin,
            end,
            counts: rows.into_iter().collect(),
        }
    });
    let columns = columns.collect();
    let known = |nanos: Option<u64>| nanos.filter(|_| latency.times.count() > 0);
    let percentiles = latency.percentiles();
    let marks: Vec<(String, u64)> = percentiles
        .filter_map(|(name, nanos)| Some((name.to_string(), known(nanos)?)))
        .collect();
    let seconds = |nanos: u64| format!("{}s", spaced(nanos as f64 / 1e9));
    let mut facts = vec![("pairs".to_string(), latency.times.count().to_string())];
    if latency.times.count() > 0 {
        facts.push(("min".into(), seconds(latency.times.min())));
        facts.extend(
            marks
                .iter()
                .map(|(name, nanos)| (name.clone(), seconds(*nanos))),
        );
        facts.push(("max".into(), seconds(latency.times.max())));
    }
    let unmatched = latency.unmatched.starts() + latency.unmatched.ends;
    if unmatched > 0 {
        facts.push(("unmatched".into(), unmatched.to_string()));
    }
    let title = match &query.events {
        Some((start, end)) => format!("latency from {} to {}", start.as_str(), end.as_str()),
        None => "duration of slices".to_string(),
    };
    let panel = Panel {
        title,
        unit: "s".into(),
        range: length.whole_range(),
        is_relative: kymo::open::are_relative(recordings),
        content: Content::Heat(Heat {
            columns,
            totals: totals.into_iter().collect(),
            marks,
            facts,
        }),
        losses: Vec::new(),
    };
    Ok((panel, latency.coverage))
}

/// A number with a blank before its unit.
fn spaced(value: f64) -> String {
    let text = units::short(value);
    match text.contains(' ') {
        true => text,
        false => text + " ",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_their_bounds_agree() {
        for nanos in [1, 2, 3, 4, 5, 7, 1000, 1_500_000, u64::MAX] {
            let row = Heat::row(nanos);
            let (low, high) = (Heat::bound(row), Heat::bound(row + 1));
            // What lies at the upper end of 64 bits is rounded to the bound above it.
            assert!(
                low <= nanos as f64 && (nanos as f64) <= high,
                "{nanos}: {low} {high}"
            );
        }
        assert_eq!(Heat::row(0), Heat::row(1));
        assert_eq!(Heat::bound(Heat::row(1024)), 1024.0);
    }

    #[test]
    fn columns_become_wider_and_keep_their_counts() {
        let mut columns = Columns {
            length: Length::new(4),
            bins: BTreeMap::new(),
        };
        for start in 0..1000 {
            columns.add(start, start + 10);
        }
        let counts = columns.bins.values().flat_map(BTreeMap::values);
        assert_eq!(counts.sum::<u64>(), 1000);
        assert!(columns.bins.len() <= 5);
    }
}
