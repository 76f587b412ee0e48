//! Profiles as text and JSON.

use super::{Profile, ProfileEdge};
use crate::analysis::breakdown::PERCENTILES;
use crate::analysis::moments::Drift;
use crate::analysis::text::{Summary, duration, in_unit, percent, some_in_unit, unit_of};
use crate::analysis::with_unit;
use crate::report::{Json, Style, Table};

impl Profile {
    /// One object, its durations in nanoseconds: `events`, `untimed`, `discarded_events`, `discarded_packets`,
    /// `calls`, `self`, `mean`, `span`, `unmatched_enters`, `unmatched_exits`, `too_deep`,
    /// `backwards`, `keys` (each with `key`, `calls`, `self`, `total`, `mean`, `deviation`,
    /// `min`, `p50`, `p95`, `p99`, `max`, `offset`, `slope`, `correlation`, and with a call graph `callers` and `callees`,
    /// each with `key`, `calls`, `self`, `total`) and `faults`.
    pub fn to_json(&self) -> Vec<u8> {
        let mut json = self.coverage.begin_json();
        json.entry("calls", self.count());
        json.entry("self", self.own());
        json.entry("mean", self.mean());
        for (key, number) in [
            ("span", self.span),
            ("unmatched_enters", self.unmatched_enters),
            ("unmatched_exits", self.unmatched_exits),
            ("too_deep", self.too_deep),
            ("backwards", self.backwards),
        ] {
            json.entry(key, number);
        }
        let (callers, callees) = self.edges_of();
        json.begin_list("keys");
        for (position, profile_key) in self.keys.iter().enumerate().take(self.most) {
            let (own, drift) = (&profile_key.own, profile_key.own.drift());
            json.begin_object();
            json.entry("key", profile_key.key.as_bytes());
            json.entry("calls", own.count());
            json.entry("self", own.total());
            json.entry("total", profile_key.total);
            json.entry("mean", own.mean());
            json.entry("deviation", own.deviation());
            json.entry("min", own.min());
            for (key, thousandths) in PERCENTILES {
                json.entry(key, profile_key.histogram.percentile(thousandths));
            }
            json.entry("max", own.max());
            json.entry("offset", drift.map(|drift| drift.offset));
            json.entry("slope", drift.map(|drift| drift.slope));
            let correlation = drift.and_then(|drift| drift.correlation);
            json.entry("correlation", correlation);
            if self.call_graph {
                self.edges_json("callers", &callers[position], &mut json);
                self.edges_json("callees", &callees[position], &mut json);
            }
            json.end_object();
        }
        json.end_list();
        if let Some(groups) = &self.groups {
            groups.to_json(&mut json);
        }
        self.coverage.finish_json(json)
    }

    /// For each key the positions of the edges by which it is called, and of those by which it calls.
    fn edges_of(&self) -> (Vec<Vec<usize>>, Vec<Vec<usize>>) {
        let mut callers = vec![Vec::new(); self.keys.len()];
        let mut callees = callers.clone();
        for (position, edge) in self.edges.iter().enumerate() {
            callers[edge.callee].push(position);
            if let Some(caller) = edge.caller {
                callees[caller].push(position);
            }
        }
        (callers, callees)
    }

    fn edges_json(&self, name: &str, edges: &[usize], json: &mut Json) {
        json.begin_list(name);
        let edges = edges.iter().take(self.most);
        for edge in edges.map(|&position| &self.edges[position]) {
            let other = if name == "callers" {
                edge.caller
            } else {
                Some(edge.callee)
            };
            json.begin_object();
            json.entry("key", other.map(|other| self.keys[other].key.as_str()));
            json.entry("calls", edge.calls);
            json.entry("self", edge.own);
            json.entry("total", edge.total);
            json.end_object();
        }
        json.end_list();
    }

    /// A line for each key, with its callers and callees below.
    fn call_graph_text(&self, style: &Style) -> String {
        let means = self.keys.iter().filter_map(|key| key.own.mean());
        let unit = unit_of(means.fold(0.0, f64::max));
        let mut table = Table::default();
        let columns = ["calls", "self", "total"];
        table.header(&with_unit(&columns, 1, unit, "callers and callees"));
        let (callers, callees) = self.edges_of();
        for (position, key) in self.keys.iter().enumerate().take(self.most) {
            let mut row = |calls: u64, own: u64, total: u64, name: String| {
                table.row([
                    style.count(calls),
                    in_unit(own as f64, unit),
                    in_unit(total as f64, unit),
                    name,
                ]);
            };
            row(key.own.count(), key.own.total(), key.total, key.key.clone());
            let mut edges = |positions: &[usize],
                             arrow: &str,
                             name: &dyn Fn(&ProfileEdge) -> String| {
                let (shown, others) = positions.split_at(positions.len().min(self.most));
                for edge in shown.iter().map(|&edge| &self.edges[edge]) {
                    let name = format!("  {arrow} {}", name(edge));
                    row(edge.calls, edge.own, edge.total, name);
                }
                if !others.is_empty() {
                    let others = others.iter().map(|&edge| &self.edges[edge]);
                    let sum = |figure: fn(&ProfileEdge) -> u64| {
                        others.clone().map(figure).fold(0, u64::saturating_add)
                    };
                    let name = format!("  {arrow} ({} others)", style.count(others.len() as u64));
                    let (calls, own) = (sum(|edge| edge.calls), sum(|edge| edge.own));
                    row(calls, own, sum(|edge| edge.total), name);
                }
            };
            edges(&callers[position], "<-", &|edge| match edge.caller {
                Some(caller) => self.keys[caller].key.clone(),
                None => "(outermost)".to_owned(),
            });
            edges(&callees[position], "->", &|edge| {
                self.keys[edge.callee].key.clone()
            });
        }
        table.fit(&[true, true, true, false], style)
    }

    /// A summary and a table of all keys.
    pub fn to_text(&self, style: &Style) -> Vec<u8> {
        let mut summary = Summary::new(style);
        summary.count("calls", self.count());
        summary.row("time in calls", duration(self.own()));
        summary.row("time of the recordings", duration(self.span));
        summary.row(
            "share in calls (%)",
            percent(self.own() as f64, self.span as f64),
        );
        summary.count("unmatched enters", self.unmatched_enters);
        summary.count("unmatched exits", self.unmatched_exits);
        summary.some("left out, too many at a time", self.too_deep);
        summary.some("left out, time went back", self.backwards);
        let mut text = summary.finish(&self.coverage, true);
        if let Some(groups) = &self.groups {
            text.push('\n');
            text += &groups.to_text(self.own(), style);
        } else if !self.keys.is_empty() {
            let means = self.keys.iter().filter_map(|key| key.own.mean());
            let unit = unit_of(means.fold(0.0, f64::max));
            let mut table = Table::default();
            let columns = [
                "calls", "%", "R", "self", "total", "mean", "max", "offset", "slope",
            ];
            table.header(&with_unit(&columns, 3, unit, &self.title));
            for key in self.keys.iter().take(self.most) {
                let drift = key.own.drift();
                let of_drift = |value: fn(Drift) -> f64| some_in_unit(drift.map(value), unit);
                let correlation = drift.and_then(|drift| drift.correlation);
                table.row([
                    style.count(key.own.count()),
                    percent(key.own.total() as f64, self.own() as f64),
                    correlation.map_or("-".to_string(), |r| format!("{r:.3}")),
                    in_unit(key.own.total() as f64, unit),
                    in_unit(key.total as f64, unit),
                    some_in_unit(key.own.mean(), unit),
                    in_unit(key.own.max() as f64, unit),
                    of_drift(|drift| drift.offset),
                    of_drift(|drift| drift.slope),
                    key.key.clone(),
                ]);
            }
            text.push('\n');
            let mut right = [true; 10];
            right[9] = false;
            // Where lines are short: how calls change over time, then the longest and the mean.
            text += &table.fit_without(&[8, 7, 2, 6, 5], &right, style);
            if self.call_graph {
                text.push('\n');
                text += &self.call_graph_text(style);
            }
        }
        text += &self.coverage.faults_text(style);
        text.into_bytes()
    }
}
