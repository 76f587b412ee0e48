//! Queries over a few series, with their answers as tests of Prometheus write them.

use std::fmt::Write as _;

use kymo_promql::{
    Answer, Expression, Labels, Limits, NAME, QueryError, QueryTime, Request, Sample, Series,
    SeriesSource, evaluate, number,
};

/// Series with a sample every 10 seconds from 0 on.
struct Memory(Vec<Series>);

impl SeriesSource for Memory {
    fn select(
        &self,
        request: &Request<'_>,
        take: &mut dyn FnMut(Series) -> Result<(), QueryError>,
    ) -> Result<(), QueryError> {
        let series = self
            .0
            .iter()
            .filter(|it| request.matchers.matches(&it.labels));
        series.cloned().try_for_each(take)
    }
}

fn series(name: &str, labels: &[(&str, &str)], values: &[f64]) -> Series {
    let mut pairs = vec![(NAME, name)];
    pairs.extend(labels);
    let samples = (0..).zip(values).map(|(place, value)| Sample {
        time: place * 10_000,
        value: *value,
    });
    Series {
        labels: Labels::new(pairs),
        step: 10_000,
        is_rate: name.ends_with("_rate"),
        samples: samples.collect(),
    }
}

fn memory() -> Memory {
    Memory(vec![
        series(
            "up",
            &[("host", "a"), ("job", "x")],
            &[1.0, 2.0, 3.0, 4.0, 5.0],
        ),
        series(
            "up",
            &[("host", "b"), ("job", "x")],
            &[10.0, 20.0, 5.0, 40.0, 50.0],
        ),
        series(
            "up",
            &[("host", "c"), ("job", "y")],
            &[7.0, f64::NAN, 7.0, 7.0, 7.0],
        ),
        series("limit", &[("host", "a")], &[4.0; 5]),
        series("limit", &[("host", "b")], &[30.0; 5]),
        series("owner", &[("job", "x"), ("team", "red")], &[1.0; 5]),
        series("if_rate", &[("host", "a")], &[3.0; 5]),
    ])
}

fn limits() -> Limits {
    Limits {
        samples: 100_000,
        deadline: None,
    }
}

/// The answer to an instant query at 40 s.
fn instant(query: &str) -> String {
    let time = QueryTime {
        start: 40_000,
        end: 40_000,
        step: None,
    };
    shown(query, time)
}

fn shown(query: &str, time: QueryTime) -> String {
    let evaluated =
        Expression::parse(query).and_then(|it| evaluate(&it, time, &memory(), limits()));
    let evaluated = match evaluated {
        Ok(evaluated) => evaluated,
        Err(error) => return format!("error: {error}"),
    };
    let value = |sample: &Sample| number(sample.value, true);
    let mut text = match evaluated.answer {
        Answer::Scalar(sample) => value(&sample),
        Answer::Text(_, text) => format!("{text:?}"),
        Answer::Vector(samples) => {
            let lines = samples
                .iter()
                .map(|(labels, it)| format!("{labels} {}", value(it)));
            lines.collect::<Vec<_>>().join("\n")
        }
        Answer::Matrix(series) => {
            let lines = series.iter().map(|(labels, samples)| {
                let samples = samples
                    .iter()
                    .map(|it| format!("{}@{}", value(it), it.time / 1000));
                format!("{labels} {}", samples.collect::<Vec<_>>().join(" "))
            });
            lines.collect::<Vec<_>>().join("\n")
        }
    };
    for warning in evaluated.warnings {
        let _ = write!(text, "\nwarning: {warning}");
    }
    text
}

#[test]
fn instant_queries() {
    for (query, expected) in [
        ("1 + 2 * 3 ^ 2", "19"),
        ("\"text\"", "\"text\""),
        ("1 > bool 2", "0"),
        ("up{host=\"a\"}", r#"{__name__="up", host="a", job="x"} 5"#),
        ("up{host=~\"a|b\", job!=\"x\"}", ""),
        (
            "up{host=\"a\"} offset 20s",
            r#"{__name__="up", host="a", job="x"} 3"#,
        ),
        (
            "up{host=\"a\"} @ 10",
            r#"{__name__="up", host="a", job="x"} 2"#,
        ),
        ("-up{host=\"a\"}", r#"{host="a", job="x"} -5"#),
        ("sum(up)", "{} 62"),
        ("sum by (job) (up)", "{job=\"x\"} 55\n{job=\"y\"} 7"),
        ("max without (host) (up)", "{job=\"x\"} 50\n{job=\"y\"} 7"),
        ("quantile(0.5, up)", "{} 7"),
        ("stddev by (job) (up{job=\"x\"})", "{job=\"x\"} 22.5"),
        ("stdvar(up{host=\"a\"} * NaN)", "{} 0"),
        ("count_values(\"v\", limit)", "{v=\"4\"} 1\n{v=\"30\"} 1"),
        (
            "topk(2, up)",
            "{__name__=\"up\", host=\"b\", job=\"x\"} 50\n{__name__=\"up\", host=\"c\", job=\"y\"} 7",
        ),
        ("bottomk(1, up)", r#"{__name__="up", host="a", job="x"} 5"#),
        ("up > on (host) limit", "{host=\"a\"} 5\n{host=\"b\"} 50"),
        (
            "up / on (host) group_left limit",
            "{host=\"a\", job=\"x\"} 1.25\n{host=\"b\", job=\"x\"} 1.6666666666666667",
        ),
        (
            "up * on (job) group_left (team) owner",
            "{host=\"a\", job=\"x\", team=\"red\"} 5\n{host=\"b\", job=\"x\", team=\"red\"} 50",
        ),
        (
            "up * on (job) owner",
            "error: multiple matches for labels: many-to-one matching must be explicit (group_left/group_right)",
        ),
        (
            "up and on (host) limit{host=\"a\"}",
            r#"{__name__="up", host="a", job="x"} 5"#,
        ),
        (
            "up unless on (host) limit",
            r#"{__name__="up", host="c", job="y"} 7"#,
        ),
        (
            "limit or on (host) up",
            "{__name__=\"limit\", host=\"a\"} 4\n{__name__=\"limit\", host=\"b\"} 30\n\
             {__name__=\"up\", host=\"c\", job=\"y\"} 7",
        ),
        (
            "sum_over_time(up{host=\"a\"}[20s])",
            r#"{host="a", job="x"} 12"#,
        ),
        (
            "avg_over_time(up{host=\"a\"}[20s])",
            r#"{host="a", job="x"} 4"#,
        ),
        (
            "last_over_time(up{host=\"a\"}[20s])",
            r#"{__name__="up", host="a", job="x"} 5"#,
        ),
        (
            "quantile_over_time(0.5, up{host=\"b\"}[40s])",
            r#"{host="b", job="x"} 20"#,
        ),
        ("changes(up{host=\"c\"}[1m])", r#"{host="c", job="y"} 2"#),
        ("resets(up{host=\"b\"}[1m])", r#"{host="b", job="x"} 1"#),
        ("rate(up{host=\"a\"}[40s])", r#"{host="a", job="x"} 0.1"#),
        ("increase(up{host=\"b\"}[40s])", r#"{host="b", job="x"} 60"#),
        ("irate(up{host=\"a\"}[40s])", r#"{host="a", job="x"} 0.1"#),
        ("delta(up{host=\"a\"}[40s])", r#"{host="a", job="x"} 4"#),
        ("deriv(up{host=\"a\"}[40s])", r#"{host="a", job="x"} 0.1"#),
        (
            "predict_linear(up{host=\"a\"}[40s], 100)",
            r#"{host="a", job="x"} 15"#,
        ),
        (
            "max_over_time(rate(up{host=\"a\"}[20s])[20s:10s])",
            r#"{host="a", job="x"} 0.1"#,
        ),
        (
            "up{host=\"a\"}[20s]",
            r#"{__name__="up", host="a", job="x"} 3@20 4@30 5@40"#,
        ),
        ("absent(up)", ""),
        ("absent(down{host=\"a\", job=~\"x\"})", r#"{host="a"} 1"#),
        ("scalar(up)", "NaN"),
        ("vector(time())", "{} 40"),
        (
            "timestamp(up{host=\"a\"} offset 5s)",
            r#"{host="a", job="x"} 30"#,
        ),
        ("hour(vector(3600 * 5))", "{} 5"),
        ("day_of_week()", "{} 4"),
        (
            "round(up{host=\"a\"} / 3, 0.5)",
            r#"{host="a", job="x"} 1.5"#,
        ),
        (
            "clamp(up, 6, 8)",
            "{host=\"a\", job=\"x\"} 6\n{host=\"b\", job=\"x\"} 8\n{host=\"c\", job=\"y\"} 7",
        ),
        ("clamp(up, 8, 6)", ""),
        (
            "sort_desc(limit)",
            "{__name__=\"limit\", host=\"b\"} 30\n{__name__=\"limit\", host=\"a\"} 4",
        ),
        (
            "label_replace(limit{host=\"a\"}, \"to\", \"<$1>\", \"host\", \"(.*)\")",
            r#"{__name__="limit", host="a", to="<a>"} 4"#,
        ),
        (
            "label_join(owner, \"j\", \"-\", \"job\", \"team\")",
            r#"{__name__="owner", j="x-red", job="x", team="red"} 1"#,
        ),
        (
            "label_replace(limit{host=\"a\"}, \"to\", \"$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1\", \"host\", \"(.*)\")",
            "error: label_replace() makes a label of up to 6000 bytes; the limit is 4096",
        ),
        (
            "label_replace(limit, \"host\", \"z\", \"host\", \".*\")",
            "error: vector cannot contain metrics with the same labelset",
        ),
        (
            "rate(if_rate[40s])",
            "{host=\"a\"} 0\nwarning: rate() of if_rate: the values are rates per second already, since the database \
             stores rates of the counter; use avg_over_time() instead",
        ),
        (
            "histogram_quantile(0.9, up)",
            "error: 1:1: parse error: histogram_quantile() is not supported: databases hold no histograms, since each of their \
             series is consolidated by itself; quantile() and quantile_over_time() are computed of the values",
        ),
        (
            "up[5]",
            "error: 1:4: parse error: missing unit in a duration, such as 5m",
        ),
        ("", "error: 1:1: parse error: no expression found in input"),
    ] {
        assert_eq!(instant(query), expected, "{query}");
    }
}

#[test]
fn ranges_have_a_value_for_each_step() {
    let time = QueryTime {
        start: 0,
        end: 40_000,
        step: Some(20_000),
    };
    for (query, expected) in [
        (
            "up{host=\"b\"}",
            r#"{__name__="up", host="b", job="x"} 10@0 5@20 50@40"#,
        ),
        (
            "up{host=\"b\"} > 6",
            r#"{__name__="up", host="b", job="x"} 10@0 50@40"#,
        ),
        ("time()", "{} 0@0 20@20 40@40"),
        (
            "up{host=\"a\"} offset -10s",
            r#"{__name__="up", host="a", job="x"} 2@0 4@20 5@40"#,
        ),
        (
            "topk(1, up{job=\"x\"} * 0 + time())",
            r#"{host="a", job="x"} 0@0 20@20 40@40"#,
        ),
        (
            "up{host=\"a\"} @ end()",
            r#"{__name__="up", host="a", job="x"} 5@0 5@20 5@40"#,
        ),
    ] {
        assert_eq!(shown(query, time), expected, "{query}");
    }
}

#[test]
fn samples_count_for_a_while() {
    let at = |seconds: i64| {
        let time = QueryTime {
            start: seconds * 1000,
            end: seconds * 1000,
            step: None,
        };
        shown("count(up)", time)
    };
    assert_eq!((at(340), at(341)), ("{} 3".into(), String::new()));
}

#[test]
fn queries_are_bounded() {
    let time = QueryTime {
        start: 0,
        end: 1_000_000,
        step: Some(1),
    };
    assert_eq!(
        shown("sum_over_time(up[1y:1s])", time),
        "error: query processing would load too many samples into memory: the limit is 100000"
    );
    // Each column of a nested query is accounted for.
    let range = QueryTime {
        step: Some(25),
        ..time
    };
    let nested = |operand: &str| {
        shown(
            &format!("{operand} + {operand} + {operand} + {operand}"),
            range,
        )
    };
    for query in ["pi()", "time()", "scalar(vector(1))"] {
        assert_eq!(
            nested(query),
            "error: query processing would load too many samples into memory: the limit is 100000",
            "{query}"
        );
    }
    let expression = Expression::parse("1").unwrap();
    let over = Limits {
        deadline: Some(std::time::Instant::now()),
        ..limits()
    };
    let time = QueryTime { step: None, ..time };
    assert_eq!(
        evaluate(&expression, time, &memory(), over),
        Err(QueryError::Timeout)
    );
}

/// All steps together give what each gives alone.
#[test]
fn a_range_is_many_instants() {
    let step = 7_000;
    let range = QueryTime {
        start: -10_000,
        end: 60_000,
        step: Some(step),
    };
    for query in [
        "up",
        "up offset 15s",
        "rate(up[25s])",
        "sum by (job, host) (up or limit) / on (job) group_left sum by (job) (up)",
        "topk by (job) (1, up)",
        "quantile(0.3, up) > bool 3",
        "up > on (host) group_right limit",
        "up{job=\"x\"} unless up > 4",
        "max_over_time(deriv(up[30s])[20s:7s])",
        "predict_linear(up[1m], 30)",
        "count_values(\"v\", up)",
        "absent(up > 9) or absent_over_time(up{host=\"a\"}[5s])",
        "timestamp(up) - time()",
        "scalar(up{host=\"a\"}) + vector(1)",
    ] {
        let expression = Expression::parse(query).unwrap();
        let all = evaluate(&expression, range, &memory(), limits()).unwrap();
        let Answer::Matrix(series) = all.answer else {
            panic!("{query}");
        };
        for time in (range.start..=range.end).step_by(step as usize) {
            let once = QueryTime {
                start: time,
                end: time,
                step: None,
            };
            let Answer::Vector(samples) = evaluate(&expression, once, &memory(), limits())
                .unwrap()
                .answer
            else {
                panic!("{query}");
            };
            let text = |labels: &Labels, value: f64| format!("{labels} {}", number(value, true));
            let mut alone: Vec<_> = samples
                .iter()
                .map(|(labels, it)| text(labels, it.value))
                .collect();
            alone.sort();
            let mut together: Vec<_> = series
                .iter()
                .flat_map(|(labels, samples)| {
                    let at = samples.iter().filter(|sample| sample.time == time);
                    at.map(|sample| text(labels, sample.value))
                        .collect::<Vec<_>>()
                })
                .collect();
            together.sort();
            assert_eq!(together, alone, "{query} at {time}");
        }
    }
}
