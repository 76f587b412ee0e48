//! What series of databases are called: their labels for PromQL, their paths for Graphite.

use kymo_metrics::Key;
use kymo_promql::{Labels, NAME};

/// What a path means, relative to the data directory.
///
/// A path of three parts that ends in `.rrd` is collectd's: `HOST/PLUGIN[-INSTANCE]/TYPE[-INSTANCE].rrd`. The metric is
/// `collectd_PLUGIN_TYPE`, without the type if both are the same, and the name of the data source follows
/// unless it is `value`. The labels are `host`, `plugin`, `plugin_instance`, `type`, `type_instance` and `ds`. All
/// others are `rrd_value` with the labels `file` and `ds`, as `kymo rrd export` writes them. Rates of
/// counters have names that end in `_rate`.
pub fn labels(path: &[u8], source: &[u8], is_rate: bool) -> Labels {
    let suffix = if is_rate { "_rate" } else { "" };
    let source = String::from_utf8_lossy(source);
    let path = String::from_utf8_lossy(path);
    let parts: Vec<&str> = path.split('/').collect();
    if let [host, plugin, file] = parts[..]
        && let Some(kind) = file.strip_suffix(".rrd")
    {
        let (plugin, plugin_instance) = plugin.split_once('-').unwrap_or((plugin, ""));
        let (kind, type_instance) = kind.split_once('-').unwrap_or((kind, ""));
        let mut name = format!("collectd_{plugin}");
        if kind != plugin {
            name = format!("{name}_{kind}");
        }
        let is_usual = source == "value";
        if !is_usual {
            name = format!("{name}_{source}");
        }
        let name = metric_name(&format!("{name}{suffix}"));
        return Labels::new([
            (NAME, name.as_str()),
            ("host", host),
            ("plugin", plugin),
            ("plugin_instance", plugin_instance),
            ("type", kind),
            ("type_instance", type_instance),
            ("ds", if is_usual { "" } else { &source }),
        ]);
    }
    let name = format!("rrd_value{suffix}");
    Labels::new([(NAME, name.as_str()), ("file", &path), ("ds", &source)])
}

/// The labels of a database whose series came with a name and labels: the same. Rates of counters have names that end
/// in `_rate`, and data sources beside the usual one have a label `ds`.
pub fn key_labels(key: &Key, source: &[u8], is_rate: bool) -> Labels {
    let name = match is_rate {
        true => format!("{}_rate", key.name()),
        false => key.name().to_owned(),
    };
    let source = String::from_utf8_lossy(source);
    let ds = (source != "value").then_some(("ds", &*source));
    Labels::new(key.labels().chain(ds).chain([(NAME, name.as_str())]))
}

/// The path that Graphite has for such a series: its name, or of one with labels that of the file.
pub fn key_graphite(key: &Key, path: &[u8], source: &[u8]) -> String {
    match key.labels().next() {
        None if source == b"value" => key.name().to_owned(),
        _ => graphite(path, source),
    }
}

/// A text as the name of a metric: each character that cannot be in one becomes `_`.
fn metric_name(text: &str) -> String {
    let fits = |char: char| char.is_ascii_alphanumeric() || char == '_' || char == ':';
    text.chars()
        .map(|char| if fits(char) { char } else { '_' })
        .collect()
}

/// The path that Graphite has for a data source: the parts of the file's path without `.rrd`, in which points
/// become `_`, and the name of the data source unless it is `value`.
pub fn graphite(path: &[u8], source: &[u8]) -> String {
    let path = String::from_utf8_lossy(path);
    let path = path.strip_suffix(".rrd").unwrap_or(&path);
    let mut name = path.replace(|char: char| char == '.' || char.is_whitespace(), "_");
    name = name.replace('/', ".");
    if source != b"value" {
        let source = String::from_utf8_lossy(source);
        name.push('.');
        name.push_str(&source.replace('.', "_"));
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_labels() {
        for (path, source, is_rate, expected) in [
            (
                "web1/interface-eth0/if_octets.rrd",
                "rx",
                true,
                r#"{__name__="collectd_interface_if_octets_rx_rate", ds="rx", host="web1", plugin="interface", plugin_instance="eth0", type="if_octets"}"#,
            ),
            (
                "web1/cpu-0/cpu-idle.rrd",
                "value",
                true,
                r#"{__name__="collectd_cpu_rate", host="web1", plugin="cpu", plugin_instance="0", type="cpu", type_instance="idle"}"#,
            ),
            (
                "web1/load/load.rrd",
                "shortterm",
                false,
                r#"{__name__="collectd_load_shortterm", ds="shortterm", host="web1", plugin="load", type="load"}"#,
            ),
            (
                "a/load.rrd",
                "value",
                false,
                r#"{__name__="rrd_value", ds="value", file="a/load.rrd"}"#,
            ),
            (
                "pve2-node/n1",
                "cpu",
                true,
                r#"{__name__="rrd_value_rate", ds="cpu", file="pve2-node/n1"}"#,
            ),
        ] {
            let found = labels(path.as_bytes(), source.as_bytes(), is_rate);
            assert_eq!(found.to_string(), expected);
        }
    }

    #[test]
    fn paths_become_those_of_graphite() {
        assert_eq!(
            graphite(b"web1.org/cpu-0/cpu-idle.rrd", b"value"),
            "web1_org.cpu-0.cpu-idle"
        );
        assert_eq!(graphite(b"a b/c", b"x.y"), "a_b.c.x_y");
    }
}
