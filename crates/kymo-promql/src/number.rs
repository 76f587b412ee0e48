//! Numbers as Prometheus writes them.

/// The shortest text that reads back as the number: decimal, with an exponent of at least two digits for sizes
/// below 1e-6 and from 1e21 on if `exponents` says so; `NaN`, `+Inf`, `-Inf`.
///
/// ```
/// use kymo_promql::number;
///
/// assert_eq!(number(1e-7, true), "1e-07");
/// assert_eq!(number(1e-7, false), "0.0000001");
/// assert_eq!(number(-1.5e21, true), "-1.5e+21");
/// assert_eq!(number(f64::INFINITY, true), "+Inf");
/// ```
pub fn number(value: f64, exponents: bool) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let size = value.abs();
    if exponents && size != 0.0 && !(1e-6..1e21).contains(&size) {
        let text = format!("{value:e}");
        let Some((digits, exponent)) = text.split_once('e') else {
            return text;
        };
        let (sign, exponent) = match exponent.strip_prefix('-') {
            Some(exponent) => ('-', exponent),
            None => ('+', exponent),
        };
        return format!("{digits}e{sign}{exponent:0>2}");
    }
    format!("{value}")
}
