//! Limits that a comparison must not cross.

use std::collections::BTreeSet;

use kymo::analysis::compare::{Change, Measured, Side};
use kymo::filter::Glob;
use kymo_text::visible;
use kymo_time::Duration;

/// A figure, and a limit of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Limit {
    source: String,
    figure: Figure,
    kind: String,
    group: Glob,
    /// Whether figures above are wrong, and not those below.
    above: bool,
    bound: Bound,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Figure {
    Count,
    Rate,
    Total,
    Mean,
    Min,
    Max,
    Percentile(u32),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Bound {
    /// Of the second recording.
    Value(f64),
    /// Of the change.
    Change(f64),
    /// Of the change, as a share.
    Share(f64),
}

impl Limit {
    /// Reads `FIGURE(KIND.GROUP) > LIMIT`.
    ///
    /// # Errors
    ///
    /// Something else stands there.
    pub(crate) fn parse(source: &str) -> Result<Self, String> {
        let form = || {
            format!(
                "`{source}` is not FIGURE(KIND.GROUP) > LIMIT, such as `p99(latency.read) > +10 %`"
            )
        };
        let (figure, rest) = source.split_once('(').ok_or_else(form)?;
        let (measured, rest) = rest.rsplit_once(')').ok_or_else(form)?;
        let figure = match figure.trim() {
            "count" => Figure::Count,
            "rate" => Figure::Rate,
            "total" => Figure::Total,
            "mean" => Figure::Mean,
            "min" => Figure::Min,
            "max" => Figure::Max,
            "p50" => Figure::Percentile(500),
            "p90" => Figure::Percentile(900),
            "p95" => Figure::Percentile(950),
            "p99" => Figure::Percentile(990),
            _ => return Err(form()),
        };
        let (kind, group) = match measured.strip_prefix("values.") {
            Some(field) => {
                let (field, group) = field.split_once('.').unwrap_or((field, "*"));
                (format!("values.{field}"), group)
            }
            None => {
                let (kind, group) = measured.split_once('.').unwrap_or((measured, "*"));
                (kind.to_string(), group)
            }
        };
        let is_known =
            matches!(kind.as_str(), "events" | "latency" | "self") || kind.starts_with("values.");
        let is_of_events = matches!(figure, Figure::Count | Figure::Rate);
        if !is_known || (kind == "events" && !is_of_events) {
            return Err(form());
        }
        let rest = rest.trim();
        let (above, limit) = match (rest.strip_prefix('>'), rest.strip_prefix('<')) {
            (Some(limit), _) => (true, limit.trim()),
            (_, Some(limit)) => (false, limit.trim()),
            _ => return Err(form()),
        };
        let number = |text: &str| -> Result<f64, String> {
            let text = text.trim();
            match text.parse::<f64>() {
                Ok(number) if number.is_finite() => Ok(number),
                _ => {
                    let duration: Duration = text.parse().map_err(|_| form())?;
                    Ok(duration.nanos as f64)
                }
            }
        };
        let bound = match limit.strip_suffix('%') {
            Some(share) => Bound::Share(number(share)? / 100.0),
            None if limit.starts_with(['+', '-']) => Bound::Change(number(limit)?),
            None => Bound::Value(number(limit)?),
        };
        Ok(Self {
            source: source.to_string(),
            figure,
            kind,
            group: Glob::new(group),
            above,
            bound,
        })
    }

    /// Why it cannot be compared with a limit: its group does not exist.
    pub(crate) fn no_group(&self, changes: &[Change]) -> String {
        let same = changes.iter().filter(|change| change.kind == self.kind);
        let groups: Vec<String> = same
            .take(5)
            .map(|change| format!("`{}`", visible(&change.group)))
            .collect();
        let kinds = || {
            let kinds: BTreeSet<_> = changes.iter().map(|change| &*change.kind).collect();
            kinds.into_iter().collect::<Vec<_>>().join(" and ")
        };
        if groups.is_empty() {
            let hint = match self.compared_with() {
                Some(options) => format!("`{options}` chooses what is compared"),
                None => "`kymo stats` shows which events there are".to_owned(),
            };
            let others = match kinds().as_str() {
                "" => String::new(),
                others => format!(", only {others}"),
            };
            return format!(
                "error: `{}`: nothing of `{}` was compared{others}\nhint: {hint}",
                self.source, self.kind
            );
        }
        format!(
            "error: `{0}`: no group of {1} matches `{2}`\nhint: groups of {1} are {3}",
            self.source,
            self.kind,
            self.group.pattern(),
            groups.join(", ")
        )
    }

    /// The options that choose what of this kind is compared; events are compared without.
    fn compared_with(&self) -> Option<String> {
        match self.kind.strip_prefix("values.") {
            Some(field) => Some(format!("--field {field}")),
            None if self.kind == "events" => None,
            None if self.kind == "latency" => Some("--start EVENT --end EVENT".to_owned()),
            None => Some("--enter EVENT --exit EVENT".to_owned()),
        }
    }

    /// The figures that cross the limit, as messages; `None` if the group does not exist.
    pub(crate) fn crossed(&self, changes: &[Change], a: &Side, b: &Side) -> Option<Vec<String>> {
        let meant = changes.iter().filter(|change| {
            change.kind == self.kind && self.group.matches(change.group.as_bytes())
        });
        let mut is_any = false;
        let mut crossed = Vec::new();
        for change in meant {
            is_any = true;
            let before = self.figure(change.a.as_ref(), a);
            let after = self.figure(change.b.as_ref(), b);
            let (value, bound) = match self.bound {
                Bound::Value(bound) => (after, bound),
                Bound::Change(bound) => (after - before, bound),
                // What was not there has no share; it is more than any.
                Bound::Share(bound) if before == 0.0 => {
                    (if after > 0.0 { f64::INFINITY } else { 0.0 }, bound)
                }
                Bound::Share(bound) => (after / before - 1.0, bound),
            };
            if (self.above && value > bound) || (!self.above && value < bound) {
                crossed.push(format!(
                    "`{}`: {}.{} was {before} and is {after}",
                    self.source, change.kind, change.group
                ));
            }
        }
        is_any.then_some(crossed)
    }

    fn figure(&self, measured: Option<&Measured>, side: &Side) -> f64 {
        let seconds = side.seconds().max(1e-9);
        match (measured, self.figure) {
            (None, _) => 0.0,
            (Some(Measured::Events(rate)), Figure::Rate) => rate.count() as f64 / seconds,
            (Some(Measured::Events(rate)), _) => rate.count() as f64,
            (Some(Measured::Numbers(sample)), figure) => match figure {
                Figure::Count => sample.count() as f64,
                Figure::Rate => sample.count() as f64 / seconds,
                Figure::Total => sample.total(),
                Figure::Mean => sample.mean(),
                Figure::Min => sample.extremes().0,
                Figure::Max => sample.extremes().1,
                Figure::Percentile(thousandths) => sample.percentile(thousandths),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_have_a_figure_a_group_and_a_bound() {
        let limit = Limit::parse("p99(latency.read) > +10 %").unwrap();
        assert_eq!(
            (limit.figure, limit.kind.as_str()),
            (Figure::Percentile(990), "latency")
        );
        assert_eq!((limit.above, limit.bound), (true, Bound::Share(0.1)));
        assert!(limit.group.matches(b"read"));
        let limit = Limit::parse("rate(events.a.b*)<5").unwrap();
        assert_eq!((limit.above, limit.bound), (false, Bound::Value(5.0)));
        assert!(limit.group.matches(b"a.bc"));
        let limit = Limit::parse("mean(values.size) > -2.5").unwrap();
        assert_eq!(
            (limit.kind.as_str(), limit.bound),
            ("values.size", Bound::Change(-2.5))
        );
        let limit = Limit::parse("max(self.f(x)) > 2ms").unwrap();
        assert_eq!(limit.bound, Bound::Value(2e6));
        assert!(limit.group.matches(b"f(x)"));
        for wrong in [
            "",
            "p99",
            "p98(latency.x) > 1",
            "p99(events.x) > 1",
            "p99(x.y) > 1",
            "count(events.x) = 1",
            "count(events.x) > x",
        ] {
            assert!(Limit::parse(wrong).is_err(), "{wrong}");
        }
    }
}
