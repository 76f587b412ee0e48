//! What the daemon is asked by those who read: requests of HTTP, expressions of PromQL, targets of Graphite.

use kymo_graphite::{Pattern, Series as GraphiteSeries, Target, TargetError, Window, render};
use kymo_promql::{
    Expression, Labels, Limits, NAME, QueryError, QueryTime, Request, Sample, Series, SeriesSource,
    evaluate,
};
use kymo_serve::http::{self, dechunk, parse_head, request};

/// A few series, so that expressions have something to compute with.
struct Few;

impl SeriesSource for Few {
    fn select(
        &self,
        request: &Request<'_>,
        take: &mut dyn FnMut(Series) -> Result<(), QueryError>,
    ) -> Result<(), QueryError> {
        for (name, host, values) in [
            ("a", "x", [1.0, 2.0, f64::NAN, -4.0]),
            ("a", "y", [0.0, f64::INFINITY, 1e300, 7.0]),
            ("b_rate", "x", [5.0; 4]),
        ] {
            let labels = Labels::new([(NAME, name), ("host", host)]);
            if !request.matchers.matches(&labels) {
                continue;
            }
            let samples = (0..).zip(values).map(|(place, value)| Sample {
                time: place * 10_000,
                value,
            });
            take(Series {
                labels,
                step: 10_000,
                is_rate: name.ends_with("_rate"),
                samples: samples.collect(),
            })?;
        }
        Ok(())
    }
}

/// A query is refused or has an answer, at one time and over a range, within what it may take; its usual form
/// is a query, too.
pub fn promql(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let Ok(expression) = Expression::parse(text) else {
        return;
    };
    let limits = Limits {
        samples: 20_000,
        deadline: None,
    };
    for step in [None, Some(10_000)] {
        let time = QueryTime {
            start: 0,
            end: 50_000,
            step,
        };
        let _ = evaluate(&expression, time, &Few, limits);
    }
    let _ = expression.pretty();
}

impl kymo_graphite::SeriesSource for Few {
    fn fetch(
        &self,
        pattern: &Pattern,
        window: &Window,
    ) -> Result<Vec<GraphiteSeries>, TargetError> {
        let series = [
            ("a.x.v", 7, vec![Some(1.0), None, Some(3.0)]),
            ("a.y.v", 10, vec![Some(-1.0); 4]),
        ];
        let series = series
            .into_iter()
            .map(|(path, step, values)| GraphiteSeries {
                name: path.into(),
                path: path.into(),
                start: window.from,
                step,
                values,
            });
        Ok(series
            .filter(|series| pattern.matches(&series.path))
            .collect())
    }

    fn spend(&self, values: usize) -> Result<(), TargetError> {
        match values > 100_000 {
            true => Err(TargetError::TooManyValues(100_000)),
            false => Ok(()),
        }
    }
}

/// A target is refused or computed, and what it is written as is the same target.
pub fn graphite(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let Ok(target) = Target::parse(text) else {
        return;
    };
    let window = Window {
        from: 100,
        until: 200,
        points: Some(10),
    };
    if let Ok(series) = render(&target, &window, &Few) {
        for series in series {
            assert!(series.consolidated(3).values.len() <= 3);
        }
    }
}

/// The head of a request is read the same way however its bytes arrive, and its parameters are texts.
pub fn serve_http(data: &[u8]) {
    let limits = http::Limits::default();
    let whole = parse_head(data, &limits);
    if let Ok(Some((head, length))) = &whole {
        assert_eq!(parse_head(&data[..*length], &limits), whole);
        assert!(!matches!(
            parse_head(&data[..*length / 2], &limits),
            Ok(Some(_))
        ));
        if let Ok(mut request) = request(head.clone(), data[*length..].to_vec()) {
            let _ = request.read_form();
        }
    }
    if let Ok(Some((body, length))) = dechunk(data, &limits) {
        assert!(body.len() <= limits.body && length <= data.len());
    }
}
