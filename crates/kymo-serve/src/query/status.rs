//! What Prometheus' API says of the server itself.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use kymo_text::Line;

use super::Options;
use super::catalog::SeriesEntry;

/// The version of Prometheus whose API and language this is: clients ask which functions they can use.
const VERSION: &str = "2.42.0";
/// Entries of a list.
const MOST_LISTED: usize = 10;

/// `status/buildinfo`.
pub(super) fn build_info() -> Vec<u8> {
    let mut out = Line::new();
    out.push(b"{\"version\":");
    out.json_string(VERSION.as_bytes());
    let rest = format!(
        ",\"revision\":\"kymo {}\",\"branch\":\"\",\"buildUser\":\"\",\"buildDate\":\"\",\"goVersion\":\"\"}}",
        env!("CARGO_PKG_VERSION")
    );
    out.push(rest.as_bytes());
    out.as_bytes().to_vec()
}

/// `status/flags`: what queries may take, by the names of Prometheus' options.
pub(super) fn flags(options: &Options) -> Vec<u8> {
    let text = format!(
        "{{\"query.lookback-delta\":\"5m\",\"query.max-concurrency\":\"{}\",\"query.max-samples\":\"{}\",\
         \"query.timeout\":\"{}s\"}}",
        options.computed_at_once(),
        options.most_samples,
        options.timeout.as_secs()
    );
    text.into_bytes()
}

/// `status/tsdb`: how many series there are, and the names and labels with the most.
pub(super) fn series(series: &[Arc<SeriesEntry>]) -> Vec<u8> {
    let mut of_name: BTreeMap<&str, usize> = BTreeMap::new();
    let mut of_pair: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for entry in series {
        *of_name.entry(entry.labels.name()).or_default() += 1;
        for pair in entry.labels.iter() {
            *of_pair.entry(pair).or_default() += 1;
        }
    }
    let mut values: BTreeMap<&str, usize> = BTreeMap::new();
    let mut bytes: BTreeMap<&str, usize> = BTreeMap::new();
    for (label, value) in of_pair.keys() {
        *values.entry(label).or_default() += 1;
        *bytes.entry(label).or_default() += value.len();
    }
    let mut out = Line::new();
    let head = format!(
        "{{\"headStats\":{{\"numSeries\":{},\"numLabelPairs\":{}}}",
        series.len(),
        of_pair.len()
    );
    out.push(head.as_bytes());
    let owned = |counts: BTreeMap<&str, usize>| {
        counts
            .into_iter()
            .map(|(name, count)| (name.to_owned(), count))
            .collect()
    };
    let pairs = of_pair.iter();
    let pairs = pairs.map(|((label, value), count)| (format!("{label}={value}"), *count));
    let lists: [(&str, Vec<(String, usize)>); 4] = [
        ("seriesCountByMetricName", owned(of_name)),
        ("labelValueCountByLabelName", owned(values)),
        ("memoryInBytesByLabelName", owned(bytes)),
        ("seriesCountByLabelValuePair", pairs.collect()),
    ];
    for (name, mut counts) in lists {
        counts.sort_by_key(|(_, count)| Reverse(*count));
        out.push(format!(",\"{name}\":[").as_bytes());
        for (place, (name, count)) in counts.iter().take(MOST_LISTED).enumerate() {
            if place > 0 {
                out.push_byte(b',');
            }
            out.push(b"{\"name\":");
            out.json_string(name.as_bytes());
            out.push(format!(",\"value\":{count}}}").as_bytes());
        }
        out.push_byte(b']');
    }
    out.push_byte(b'}');
    out.as_bytes().to_vec()
}
