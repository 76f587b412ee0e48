//! What Prometheus' API says of the server itself.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use kymo_text::json::Writer;

use super::Options;
use super::catalog::SeriesEntry;

/// The version of Prometheus whose API and language this is: clients ask which functions they can use.
const VERSION: &str = "2.42.0";
/// Entries of a list.
const MOST_LISTED: usize = 10;

/// `status/buildinfo`.
pub(super) fn build_info() -> Vec<u8> {
    texts(&[
        ("version", VERSION),
        ("revision", concat!("kymo ", env!("CARGO_PKG_VERSION"))),
        ("branch", ""),
        ("buildUser", ""),
        ("buildDate", ""),
        ("goVersion", ""),
    ])
}

/// `status/flags`: what queries may take, by the names of Prometheus' options.
pub(super) fn flags(options: &Options) -> Vec<u8> {
    texts(&[
        ("query.lookback-delta", "5m"),
        (
            "query.max-concurrency",
            &options.computed_at_once().to_string(),
        ),
        ("query.max-samples", &options.most_samples.to_string()),
        ("query.timeout", &format!("{}s", options.timeout.as_secs())),
    ])
}

/// An object of texts.
fn texts(entries: &[(&str, &str)]) -> Vec<u8> {
    let mut json = Writer::default();
    json.begin_object();
    for (key, text) in entries {
        json.entry(key, *text);
    }
    json.end_object();
    json.as_bytes().to_vec()
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
    let mut json = Writer::default();
    json.begin_object();
    json.key("headStats");
    json.begin_object();
    json.entry("numSeries", series.len() as u64);
    json.entry("numLabelPairs", of_pair.len() as u64);
    json.end_object();
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
        json.begin_list(name);
        for (name, count) in counts.iter().take(MOST_LISTED) {
            json.begin_object();
            json.entry("name", name.as_str());
            json.entry("value", *count as u64);
            json.end_object();
        }
        json.end_list();
    }
    json.end_object();
    json.as_bytes().to_vec()
}
