use proptest::prelude::*;

use super::*;
use crate::rpn::Numbers;
use crate::text::xml::Utc;

const U: f64 = f64::NAN;

/// An hour ahead of UTC.
struct Ahead;

impl Zone for Ahead {
    fn at(&self, _seconds: i64) -> LocalTime {
        LocalTime {
            offset: 3600,
            name: "AHEAD".to_owned(),
            until: i64::MAX,
        }
    }
}

fn series(start: i64, step: i64, values: &[f64]) -> Series {
    Series::new(start, step, values.to_vec()).unwrap()
}

/// Of `a` in rows of 300 seconds, `b` in rows of 600, and `v`, a value.
fn evaluate(text: &str) -> Result<Series, EvaluateError> {
    let a = series(600, 300, &[1.0, 2.0, U, 4.0, 5.0, 7.0]);
    let b = series(0, 600, &[10.0, 20.0, 30.0, 40.0]);
    let variables = [
        Variable::Series(&a),
        Variable::Series(&b),
        Variable::Number(9.0),
    ];
    let program = Program::parse_with(text, Numbers::Rrdtool, |name| {
        let place = ["a", "b", "v"].iter().position(|known| *known == name)?;
        u32::try_from(place).ok()
    });
    let surroundings = Surroundings {
        now: 12_345,
        zone: &Ahead,
    };
    program
        .unwrap()
        .evaluate_series(&variables, &surroundings, &mut Stack::default())
}

fn bits(values: &[f64]) -> Vec<u64> {
    let canonical = |value: &f64| if value.is_nan() { U } else { *value };
    values
        .iter()
        .map(|value| canonical(value).to_bits())
        .collect()
}

#[test]
fn operators_on_series() {
    for (text, expected) in [
        ("a", [1.0, 2.0, U, 4.0, 5.0, 7.0]),
        ("a,v,+", [10.0, 11.0, U, 13.0, 14.0, 16.0]),
        // Rows of 600 seconds serve two of 300.
        ("a,POP,b", [20.0, 20.0, 30.0, 30.0, 40.0, 40.0]),
        (
            "a,POP,TIME",
            [900.0, 1200.0, 1500.0, 1800.0, 2100.0, 2400.0],
        ),
        ("a,POP,LTIME,TIME,-", [3600.0; 6]),
        ("a,POP,STEPWIDTH", [300.0; 6]),
        ("a,POP,NOW", [12_345.0; 6]),
        ("a,POP,COUNT", [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
        ("a,0,ADDNAN,PREV,ADDNAN", [1.0, 3.0, 3.0, 7.0, 12.0, 19.0]),
        ("PREV(a)", [U, 1.0, 2.0, U, 4.0, 5.0]),
        ("a,PREV(b),EXC,POP", [U, 10.0, 20.0, 20.0, 30.0, 30.0]),
        ("a,600,TREND", [U, 1.5, U, U, 4.5, 6.0]),
        ("a,601,TRENDNAN", [U, U, 1.5, 3.0, 4.5, 16.0 / 3.0]),
        ("a,0,TREND", [1.0, 2.0, U, 4.0, 5.0, 7.0]),
        ("a,-900,TREND", [1.0, 2.0, U, 4.0, 5.0, 7.0]),
        ("a,INF,TREND", [U; 6]),
        ("300,1,0,a,PREDICT", [U, U, U, 4.0, 5.0, 7.0]),
        ("300,1,300,a,PREDICT", [U, U, U, 4.0, 4.5, 6.0]),
        ("300,300,2,0,a,PREDICT", [U, U, U, 4.0, 5.0, 7.0]),
        // Multiples of 600: 0, which is the row after this one, and 600.
        ("600,-2,0,a,PREDICT", [U, U, 4.0, 5.0, 5.5, 5.0]),
        ("300,1,300,a,PREDICTSIGMA,2,*,DUP,*", [U, U, U, U, 2.0, 8.0]),
        ("300,1,300,50,a,PREDICTPERC", [U, U, U, 4.0, 4.5, 6.0]),
        ("300,1,300,-50,a,PREDICTPERC", [U, U, U, 4.0, 5.0, 7.0]),
        ("0,0,a,PREDICT,POP,a", [1.0, 2.0, U, 4.0, 5.0, 7.0]),
    ] {
        // A number at the end would be none.
        let found = evaluate(text).unwrap();
        let values = found.values().iter();
        let rounded: Vec<f64> = values.map(|value| (value * 1e12).round() / 1e12).collect();
        let expected = expected.map(|value: f64| (value * 1e12).round() / 1e12);
        assert_eq!(bits(&rounded), bits(&expected), "{text}");
        assert_eq!((found.start(), found.step(), found.end()), (600, 300, 2400));
    }
    // Only what the program uses counts.
    let of_b = evaluate("b").unwrap();
    assert_eq!((of_b.start(), of_b.step()), (0, 600));
}

#[test]
fn what_begins_with_a_row() {
    // From 2000-12-31T00:00:00Z on, a Sunday, every six hours; clocks are an hour ahead.
    let quarters = series(978_220_800, 21_600, &[0.0; 8]);
    for (operator, expected) in [
        ("NEWDAY", [0, 0, 0, 1, 0, 0, 0, 1]),
        ("NEWMONTH", [0, 0, 0, 1, 0, 0, 0, 0]),
        ("NEWYEAR", [0, 0, 0, 1, 0, 0, 0, 0]),
        ("NEWWEEK", [0; 8]),
    ] {
        let program = Program::parse(&format!("a,{operator},+"), |_| Some(0)).unwrap();
        let surroundings = Surroundings {
            now: 0,
            zone: &Ahead,
        };
        let variables = [Variable::Series(&quarters)];
        let found = program.evaluate_series(&variables, &surroundings, &mut Stack::default());
        assert_eq!(
            found.unwrap().values(),
            expected.map(f64::from),
            "{operator}"
        );
    }
}

#[test]
fn what_has_no_result_is_an_error() {
    use EvaluateError::*;
    for (text, error) in [
        ("v,v,+", NoSeries),
        ("a,+", Underflow { node: 1 }),
        ("a,b", FinalSize { found: 2 }),
        ("a,300,2,*,TREND", Arguments { node: 4 }),
        ("v,300,TREND,a,+", Arguments { node: 2 }),
        ("a,POP,300,TREND", Underflow { node: 3 }),
        ("300,1,0,v,PREDICT,a,+", Arguments { node: 4 }),
        ("300,1,0,a,1,+,PREDICT", Arguments { node: 6 }),
        ("-300,1,0,a,PREDICT", NegativeShift { node: 4 }),
        ("2,0,a,PREDICT", Underflow { node: 3 }),
        ("300,1,0,101,a,PREDICTPERC", Percentile { node: 5 }),
        ("300,-1e30,0,a,PREDICT", Count { node: 4 }),
        ("300,INF,0,a,PREDICT", Count { node: 4 }),
        // Four thousand million looks at each row.
        ("0,-4294967295,0,a,PREDICT", TooMuch { node: 4 }),
    ] {
        assert_eq!(evaluate(text), Err(error), "{text}");
    }
}

#[test]
fn rows_are_bounded() {
    // Of steps that have no divisor, a row each second.
    let long = |step| series(0, step, &vec![0.0; 80_000]);
    let (a, b) = (long(299), long(300));
    let program = Program::parse("a,b,+", |name| Some(u32::from(name == "b"))).unwrap();
    let surroundings = Surroundings { now: 0, zone: &Utc };
    let variables = [Variable::Series(&a), Variable::Series(&b)];
    let result = program.evaluate_series(&variables, &surroundings, &mut Stack::default());
    let rows = 299 * 80_000;
    assert_eq!(result, Err(EvaluateError::TooManyRows { rows }));
}

#[test]
fn series_that_do_not_meet_have_no_rows() {
    let (a, b) = (series(0, 300, &[1.0]), series(3000, 300, &[1.0]));
    let program = Program::parse("a,b,+", |name| Some(u32::from(name == "b"))).unwrap();
    let surroundings = Surroundings { now: 0, zone: &Utc };
    let variables = [Variable::Series(&a), Variable::Series(&b)];
    let result = program.evaluate_series(&variables, &surroundings, &mut Stack::default());
    assert_eq!(result.unwrap().values(), []);
}

#[test]
fn series_are_looked_at_and_moved() {
    let mut a = series(600, 300, &[1.0, 2.0]);
    let at = |a: &Series| [599, 600, 899, 900, 1199, 1200].map(|time| a.value_from(time));
    assert_eq!(bits(&at(&a)), bits(&[U, 1.0, 1.0, 2.0, 2.0, U]));
    a.shift(-600);
    assert_eq!((a.start(), a.end(), a.value_from(0)), (0, 600, 1.0));
    a.shift(i64::MAX);
    assert_eq!((a.start(), a.end()), (1 << 60, (1 << 60) + 600));
    assert!(a.value_from(i64::MIN).is_nan());
    let mut long = Series::new(-10, i64::MAX, vec![1.0]).unwrap();
    long.shift(i64::MAX);
    assert_eq!((long.start(), long.end()), (0, i64::MAX));
    assert_eq!(Series::new(0, 0, Vec::new()), None);
    assert_eq!(Series::new(i64::MAX, 1, vec![0.0]), None);
}

proptest! {
    /// Arithmetic is done for all rows at once, other operators row by row: one that changes nothing makes it so.
    #[test]
    fn columns_are_the_same_as_rows(items in proptest::collection::vec(
        proptest::sample::select(vec!["a", "b", "v", "0", "-3", "UNKN", "+", "-", "*", "/"]),
        1..10,
    )) {
        let text = items.join(",");
        let found = |text: &str| {
            let series = evaluate(text).ok()?;
            Some((series.start(), series.step(), bits(series.values())))
        };
        // A number at the end would be none.
        prop_assert_eq!(found(&format!("{text},")), found(&format!("{text},DUP,POP")));
    }

    #[test]
    fn any_program(items in proptest::collection::vec(
        proptest::sample::select(vec![
            "a", "b", "v", "PREV(a)", "0", "1", "-1", "2", "300", "-300", "1e9", "-99999",
            "UNKN", "INF", "NEGINF", "TREND", "TRENDNAN", "PREDICT", "PREDICTSIGMA",
            "PREDICTPERC", "NEWDAY", "NEWWEEK", "SORT", "REV", "COPY", "INDEX", "ROLL", "AVG",
            "PERCENT", "DUP", "+", "IF",
        ]),
        1..12,
    )) {
        let _ = evaluate(&format!("{},", items.join(",")));
    }
}
