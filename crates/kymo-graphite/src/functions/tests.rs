//! Functions of two series.

use super::*;
use crate::Pattern;

/// Two series of steps of 10 and 20 seconds.
struct Two;

impl SeriesSource for Two {
    fn fetch(&self, pattern: &Pattern, window: &Window) -> Result<Vec<Series>, TargetError> {
        let one = |path: &str, step: i64, values: &[Option<f64>]| {
            let all = Series {
                name: path.into(),
                path: path.into(),
                start: 100,
                step,
                values: values.to_vec(),
            };
            let skipped = ((window.from - 100).max(0) / step) as usize;
            Series {
                start: 100 + skipped as i64 * step,
                values: all.values.get(skipped..).unwrap_or_default().to_vec(),
                ..all
            }
        };
        let known = |values: &[f64]| values.iter().copied().map(Some).collect::<Vec<_>>();
        let mut gap = known(&[1.0, 2.0, 3.0, 4.0, 9.0, 6.0]);
        gap[3] = None;
        let all = [
            one("a.x.v", 10, &gap),
            one("a.y.v", 20, &known(&[10.0, 20.0, 30.0])),
        ];
        Ok(all
            .into_iter()
            .filter(|it| pattern.matches(&it.path))
            .collect())
    }

    fn spend(&self, _: usize) -> Result<(), TargetError> {
        Ok(())
    }
}

fn shown(target: &str) -> String {
    let window = Window {
        from: 100,
        until: 160,
        points: None,
    };
    let rendered = Target::parse(target).and_then(|target| render(&target, &window, &Two));
    match rendered {
        Err(error) => error.to_string(),
        Ok(series) => {
            let line = |it: &Series| {
                let values = it.values.iter().map(|value| match value {
                    Some(value) => value.to_string(),
                    None => "-".into(),
                });
                let values = values.collect::<Vec<_>>().join(" ");
                format!("{} @{}+{}: {values}", it.name, it.start, it.step)
            };
            series.iter().map(line).collect::<Vec<_>>().join("; ")
        }
    }
}

#[test]
fn names_are_sorted() {
    assert!(NAMES.is_sorted());
}

/// Few values over a century, with a limit of what may be computed.
struct Century {
    left: std::cell::Cell<usize>,
}

impl SeriesSource for Century {
    fn fetch(&self, _: &Pattern, window: &Window) -> Result<Vec<Series>, TargetError> {
        let step = 31_536_000;
        let count = ((window.until - window.from) / step) as usize;
        self.spend(count)?;
        let values = vec![Some(1.0); count];
        let (name, path) = ("a".to_owned(), "a".to_owned());
        Ok(vec![Series {
            name,
            path,
            start: window.from,
            step,
            values,
        }])
    }

    fn spend(&self, values: usize) -> Result<(), TargetError> {
        let left = self.left.get().checked_sub(values);
        self.left.set(left.ok_or(TargetError::TooManyValues(1000))?);
        Ok(())
    }
}

#[test]
fn values_are_accounted_for_before_they_are_computed() {
    let window = Window {
        from: 0,
        until: 100 * 31_536_000,
        points: None,
    };
    let names = format!("aliasByNode(a{})", ",0".repeat(65));
    let long = format!("alias(a,'{}')", "x".repeat(16_000));
    for (target, is_computed) in [
        ("summarize(a,'1s')", false),
        ("summarize(a,'1s','max',true)", false),
        ("sumSeries(summarize(a,'1h'),a)", false),
        ("summarize(a,'10y')", true),
        ("summarize(a,'1y','last',true)", true),
        ("movingAverage(a,'50y')", true),
        ("movingAverage(a,'999999999y')", false),
        ("movingAverage(a,1000000000)", false),
        (&long, false),
        (&names, false),
    ] {
        let source = Century { left: 1000.into() };
        let target = Target::parse(target).unwrap();
        let rendered = render(&target, &window, &source);
        assert_eq!(rendered.is_ok(), is_computed, "{target}: {rendered:?}");
    }
}

#[test]
fn functions_compute() {
    for (target, expected) in [
        ("a.x.v", "a.x.v @100+10: 1 2 3 - 9 6"),
        ("sumSeries(a.*.v)", "sumSeries(a.*.v) @100+20: 11.5 23 37.5"),
        (
            "averageSeries(a.x.v,a.y.v)",
            "averageSeries(a.x.v,a.y.v) @100+20: 5.75 11.5 18.75",
        ),
        ("maxSeries(a.*.v)", "maxSeries(a.*.v) @100+20: 10 20 30"),
        ("minSeries(a.*.v)", "minSeries(a.*.v) @100+20: 1.5 3 7.5"),
        ("alias(a.x.v,'n')", "n @100+10: 1 2 3 - 9 6"),
        ("aliasByNode(a.x.v,1,-1)", "x.v @100+10: 1 2 3 - 9 6"),
        ("scale(a.y.v,0.5)", "scale(a.y.v,0.5) @100+20: 5 10 15"),
        ("offset(a.y.v,-1)", "offset(a.y.v,-1) @100+20: 9 19 29"),
        (
            "derivative(a.x.v)",
            "derivative(a.x.v) @100+10: - 1 1 - - -3",
        ),
        (
            "nonNegativeDerivative(a.x.v)",
            "nonNegativeDerivative(a.x.v) @100+10: - 1 1 - - -",
        ),
        ("perSecond(a.y.v)", "perSecond(a.y.v) @100+20: - 0.5 0.5"),
        (
            "keepLastValue(a.x.v)",
            "keepLastValue(a.x.v) @100+10: 1 2 3 3 9 6",
        ),
        (
            "summarize(a.x.v,'30s','max')",
            "summarize(a.x.v, \"30s\", \"max\") @90+30: 2 9 6",
        ),
        ("groupByNode(a.*.v,0,'sum')", "a @100+20: 11.5 23 37.5"),
        ("limit(a.*.v,1)", "a.x.v @100+10: 1 2 3 - 9 6"),
        ("highestAverage(a.*.v,1)", "a.y.v @100+20: 10 20 30"),
        (
            "movingAverage(a.y.v,2)",
            "movingAverage(a.y.v,2) @100+20: 10 15 25",
        ),
        (
            "divideSeries(a.y.v,a.y.v)",
            "divideSeries(a.y.v,a.y.v) @100+20: 1 1 1",
        ),
        (
            "diffSeries(a.y.v,a.y.v)",
            "diffSeries(a.y.v,a.y.v) @100+20: 0 0 0",
        ),
        ("sumSeries(b)", ""),
        (
            "holtWintersForecast(a.x.v)",
            "the function `holtWintersForecast` is not supported",
        ),
        (
            "scale(a.x.v)",
            "scale(): argument 2: found nothing, expected a number",
        ),
        (
            "scale(1,2)",
            "scale(): argument 1: found `1`, expected series",
        ),
        (
            "groupByNode(a.*.v,0,'x')",
            "groupByNode(): the function `x` is not supported",
        ),
    ] {
        assert_eq!(shown(target), expected, "{target}");
    }
}
