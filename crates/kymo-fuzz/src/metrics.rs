//! Protocols of metrics: of any bytes, series have names and labels that can be kept, and faults have a place.

use kymo_metrics::exposition::{self, Format, TargetLabels};
use kymo_metrics::influx::{self, Precision};
use kymo_metrics::otlp::{self, Encoding};
use kymo_metrics::remote_write::{self, Version};
use kymo_metrics::statsd::{self, Aggregator, AggregatorOptions};
use kymo_metrics::{Fault, Key, Kind, LONGEST_KEY, MOST_LABELS, Number, Sink, graphite};

/// Remembers names as senders give them, as those do who take samples.
#[derive(Default)]
struct Checked {
    names: Vec<Vec<u8>>,
    length: usize,
    samples: usize,
}

impl Sink for Checked {
    fn find(&mut self, raw: &[u8]) -> Option<usize> {
        self.names.iter().rev().take(8).position(|it| it == raw)
    }

    fn series(&mut self, raw: &[u8], key: &Key, _: Kind) -> usize {
        assert!(!key.name().is_empty() && key.bytes().len() <= LONGEST_KEY);
        assert!(!key.bytes().iter().any(u8::is_ascii_control));
        let labels: Vec<_> = key.labels().collect();
        assert!(labels.len() <= MOST_LABELS);
        assert!(labels.is_sorted_by(|a, b| a.0 < b.0));
        assert!(
            labels
                .iter()
                .all(|(name, value)| !name.is_empty() && !value.is_empty())
        );
        self.names.push(raw.to_vec());
        self.names.len() - 1
    }

    fn sample(&mut self, series: usize, _: Option<i64>, value: Number) {
        assert!(series < self.names.len().max(8));
        let _ = value.to_f64();
        self.samples += 1;
    }

    fn fault(&mut self, fault: Fault<'_>) {
        assert!(fault.offset <= self.length && !fault.to_string().is_empty());
    }
}

fn checked(data: &[u8]) -> Checked {
    Checked {
        length: data.len(),
        ..Checked::default()
    }
}

/// Lines of Graphite, StatsD, InfluxDB and Prometheus, behind a byte that says which.
pub fn metric_lines(data: &[u8]) {
    let Some((which, text)) = data.split_first() else {
        return;
    };
    let mut sink = checked(text);
    match which % 6 {
        0 => graphite::parse(text, &mut sink),
        1 => {
            let mut aggregator = Aggregator::new(AggregatorOptions {
                most_names: 16,
                idle_flushes: 1,
                ..AggregatorOptions::default()
            });
            statsd::parse(
                text,
                &mut |key, value| aggregator.add(key, value),
                &mut |fault| sink.fault(fault),
            );
            assert!(aggregator.len() <= 16);
            aggregator.flush(0, 1.0, &mut sink);
            aggregator.flush(1, 1.0, &mut sink);
            assert!(aggregator.is_empty());
        }
        2 => {
            influx::parse(text, Precision::Seconds, "d", &mut sink);
        }
        3 | 4 => {
            let format = match which % 2 {
                0 => Format::Prometheus,
                _ => Format::OpenMetrics,
            };
            let target = TargetLabels {
                labels: vec![("job".to_owned(), "j".to_owned())],
                honor: which & 64 != 0,
                honor_timestamps: true,
            };
            let samples = exposition::parse(text, format, &target, &mut sink);
            assert_eq!(samples, sink.samples);
        }
        _ => {
            let text = String::from_utf8_lossy(text);
            if let Ok(key) = Key::parse(&text) {
                // What is written of a key is the same key.
                let again = Key::parse(&format!("{{\"{}\"{}", escaped(key.name()), rest(&key)));
                assert_eq!(
                    again.map(|it| it.bytes().to_vec()),
                    Ok(key.bytes().to_vec())
                );
            }
        }
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

/// The labels of a key, and the brace behind them.
fn rest(key: &Key) -> String {
    let labels = key.labels();
    let labels =
        labels.map(|(name, value)| format!(",\"{}\"=\"{}\"", escaped(name), escaped(value)));
    labels.collect::<String>() + "}"
}

/// Messages of remote write and OTLP, behind a byte that says which.
pub fn metric_messages(data: &[u8]) {
    let Some((which, bytes)) = data.split_first() else {
        return;
    };
    let mut sink = checked(bytes);
    let promoted = ["host.name".to_owned()];
    match which % 4 {
        0 => drop_others(remote_write::parse(bytes, Version::V1, &mut sink)),
        1 => drop_others(remote_write::parse(bytes, Version::V2, &mut sink)),
        2 => otlp::parse(bytes, Encoding::Protobuf, &promoted, &mut sink),
        _ => otlp::parse(bytes, Encoding::Json, &promoted, &mut sink),
    }
}

fn drop_others(others: remote_write::Others) {
    assert!(others.histograms <= 1 << 40 && others.exemplars <= 1 << 40);
}
