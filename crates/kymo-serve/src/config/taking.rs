//! What the file says of metrics that are taken: the tables of protocols, `[series]`, `[[path]]` and `[[storage]]`.
//!
//! ```toml
//! [graphite]
//! listen = ["tcp:127.0.0.1:2003", "udp:127.0.0.1:2003"]
//!
//! [[path]]
//! pattern = '^servers\.'
//! path = "servers/{__path__}"
//!
//! [[storage]]
//! match = '{job="node"}'
//! archives = ["15s:1d", "5m:30d"]
//! ```

use kymo_rrd::model::Reading;
use kymo_time::Duration;

use super::{MIB, Section};
use crate::expire::ExpireRule;
use crate::taking::options::{
    Endpoint, HttpListen, LineListen, Options, Protocol, ScrapeOptions, Target,
};
use crate::taking::rules::{
    Archive, Function, LONGEST_STEP, PathRule, Profile, Selector, StorageRule, UNITS,
};
use crate::taking::template::Template;

/// Reads a table, or a list of them.
type ReadTable = fn(&mut Section<'_>, &mut Options) -> Result<(), String>;

/// The tables of protocols, `[series]`, `[[path]]` and `[[storage]]`, each by itself.
pub(super) const TABLES: [ReadTable; 9] = [
    graphite,
    statsd,
    influx,
    remote_write,
    otlp,
    scrapes,
    series,
    paths,
    storage,
];

fn graphite(section: &mut Section<'_>, options: &mut Options) -> Result<(), String> {
    if let Some(mut table) = section.section("graphite")? {
        lines(&mut table, Protocol::Graphite, &mut options.graphite)?;
        table.end()?;
    }
    Ok(())
}

fn statsd(section: &mut Section<'_>, options: &mut Options) -> Result<(), String> {
    if let Some(mut table) = section.section("statsd")? {
        let statsd = &mut options.statsd;
        lines(&mut table, Protocol::Statsd, &mut statsd.listen)?;
        table.set("interval", &mut statsd.interval, Section::period)?;
        let aggregator = &mut statsd.aggregator;
        if let Some((prefix, _)) = table.string("prefix")? {
            aggregator.prefix = prefix.to_owned();
        }
        if let Some(percentiles) = table.numbers("percentiles", 0.0..100.0)? {
            aggregator.percentiles = percentiles;
        }
        table.set("most-names", &mut aggregator.most_names, |table, name| {
            table.count(name, 1..=100_000_000)
        })?;
        table.set(
            "most-values-mib",
            &mut aggregator.most_value_bytes,
            super::collectd::mib,
        )?;
        table.set(
            "idle-flushes",
            &mut aggregator.idle_flushes,
            |table, name| {
                let count = table.count(name, 1..=1_000_000_000)?;
                Ok(count.map(|count| count as u32))
            },
        )?;
        table.end()?;
    }
    Ok(())
}

fn influx(section: &mut Section<'_>, options: &mut Options) -> Result<(), String> {
    if let Some(mut table) = section.section("influx")? {
        http(&mut table, Protocol::Influx, &mut options.influx.http)?;
        line_endpoints(
            &mut table,
            "lines",
            Protocol::Influx,
            &mut options.influx.lines,
        )?;
        line_limits(&mut table, &mut options.influx.lines)?;
        let (http, lines) = (&options.influx.http.listen, &mut options.influx.lines);
        lines.streams.access.clone_from(&http.access);
        lines.streams.tls.clone_from(&http.tls);
        table.end()?;
    }
    Ok(())
}

fn remote_write(section: &mut Section<'_>, options: &mut Options) -> Result<(), String> {
    if let Some(mut table) = section.section("remote-write")? {
        http(&mut table, Protocol::RemoteWrite, &mut options.remote_write)?;
        table.end()?;
    }
    Ok(())
}

fn otlp(section: &mut Section<'_>, options: &mut Options) -> Result<(), String> {
    if let Some(mut table) = section.section("otlp")? {
        http(&mut table, Protocol::Otlp, &mut options.otlp.http)?;
        let attributes = table.texts("attributes", "a text, or a list of such", |text| {
            Some(text.to_owned())
        })?;
        options.otlp.attributes = attributes.unwrap_or_default();
        table.end()?;
    }
    Ok(())
}

fn scrapes(section: &mut Section<'_>, options: &mut Options) -> Result<(), String> {
    for table in section.sections("scrape")? {
        options.scrape.push(scrape(table)?);
    }
    Ok(())
}

fn series(section: &mut Section<'_>, options: &mut Options) -> Result<(), String> {
    if let Some(mut table) = section.section("series")? {
        let limits = &mut options.limits;
        table.set("most-series", &mut limits.most_series, |table, name| {
            table.count(name, 1..=100_000_000)
        })?;
        table.set(
            "most-series-per-sender",
            &mut limits.most_series_per_sender,
            |table, name| table.count(name, 1..=100_000_000),
        )?;
        table.set(
            "most-mib-per-sender",
            &mut limits.most_bytes_per_sender,
            |table, name| {
                let mib = table.count(name, 1..=1 << 30)?;
                Ok(mib.map(|mib| mib as u64 * MIB))
            },
        )?;
        table.end()?;
    }
    Ok(())
}

fn http(table: &mut Section<'_>, protocol: Protocol, http: &mut HttpListen) -> Result<(), String> {
    super::read::http_keys(table, protocol.port(), &mut http.listen)?;
    table.set("most-request-mib", &mut http.most_request, |table, name| {
        let mib = table.count(name, 1..=1024)?;
        Ok(mib.map(|mib| mib.saturating_mul(MIB as usize)))
    })?;
    table.set("timeout", &mut http.timeout, Section::period)
}

fn scrape(mut table: Section<'_>) -> Result<ScrapeOptions, String> {
    let mut options = ScrapeOptions::default();
    let job = table.string("job")?;
    options.job = job.ok_or_else(|| table.missing("job"))?.0.to_owned();
    let expected = "HOST:PORT, http://HOST:PORT/PATH or https://HOST:PORT/PATH, or a list of such";
    let targets = table.texts("targets", expected, Target::parse)?;
    options.targets = targets.ok_or_else(|| table.missing("targets"))?;
    if !cfg!(feature = "tls") && options.targets.iter().any(|it| it.is_encrypted) {
        return Err(table.here(super::NO_TLS));
    }
    options.token_file = table.path("token-file")?;
    let tls = &mut options.tls;
    (tls.ca, tls.certificate, tls.key) = (
        table.path("ca")?,
        table.path("certificate")?,
        table.path("key")?,
    );
    if tls.certificate.is_some() != tls.key.is_some() {
        return Err(table.here("found one of `certificate` and `key`, expected both"));
    }
    let is_asked = tls.ca.is_some() || tls.certificate.is_some();
    if is_asked && !options.targets.iter().any(|it| it.is_encrypted) {
        return Err(table.here("found `ca` or `certificate`, but no target begins with https://"));
    }
    table.set("interval", &mut options.interval, Section::period)?;
    options.timeout = options.timeout.min(options.interval);
    table.set("timeout", &mut options.timeout, Section::period)?;
    table.set("honor-labels", &mut options.honor_labels, Section::boolean)?;
    table.set(
        "honor-timestamps",
        &mut options.honor_timestamps,
        Section::boolean,
    )?;
    let expected = "NAME=VALUE, or a list of such";
    let labels = table.texts("labels", expected, |text| {
        let (name, value) = text.split_once('=')?;
        (!name.is_empty()).then(|| (name.to_owned(), value.to_owned()))
    })?;
    options.labels = labels.unwrap_or_default();
    table.set(
        "most-answer-mib",
        &mut options.most_answer,
        |table, name| {
            let mib = table.count(name, 1..=1024)?;
            Ok(mib.map(|mib| mib.saturating_mul(MIB as usize)))
        },
    )?;
    table.end()?;
    Ok(options)
}

fn lines(
    table: &mut Section<'_>,
    protocol: Protocol,
    listen: &mut LineListen,
) -> Result<(), String> {
    line_endpoints(table, "listen", protocol, listen)?;
    super::read::access(table, &mut listen.streams.access)?;
    super::read::connections(table, &mut listen.streams)?;
    super::read::tls(table, &mut listen.streams)?;
    line_limits(table, listen)
}

fn line_endpoints(
    table: &mut Section<'_>,
    name: &'static str,
    protocol: Protocol,
    listen: &mut LineListen,
) -> Result<(), String> {
    let expected = "tcp:HOST:PORT, udp:HOST:PORT, unix:PATH or unixgram:PATH, or a list of such";
    let is_datagram = protocol == Protocol::Statsd;
    let endpoints = table.texts(name, expected, |text| {
        Endpoint::parse(text, protocol.port(), is_datagram)
    })?;
    for endpoint in endpoints.into_iter().flatten() {
        if listen.endpoints().any(|it| it == endpoint) {
            return Err(table.here(&format!("`{endpoint}` is specified twice")));
        }
        listen.add(endpoint);
    }
    Ok(())
}

fn line_limits(table: &mut Section<'_>, listen: &mut LineListen) -> Result<(), String> {
    table.set("idle-timeout", &mut listen.idle_timeout, Section::period)?;
    table.set(
        "receive-buffer-mib",
        &mut listen.receive_buffer,
        super::collectd::mib,
    )
}

fn paths(section: &mut Section<'_>, options: &mut Options) -> Result<(), String> {
    for (place, mut table) in section.sections("path")?.into_iter().enumerate() {
        let (name, selector) = selector(&mut table, place)?;
        let mut drops = false;
        table.set("drop", &mut drops, Section::boolean)?;
        let template = match table.string("path")? {
            Some((_, at)) if drops => {
                return Err(table.problem_of(
                    "path",
                    at,
                    "found beside `drop`, expected one of them",
                ));
            }
            Some((text, at)) => {
                let template = Template::parse(text);
                Some(template.map_err(|problem| table.problem_of("path", at, &problem))?)
            }
            None if drops => None,
            None => return Err(table.missing("path")),
        };
        options.rules.paths.push(PathRule {
            name,
            selector,
            template,
        });
        table.end()?;
    }
    Ok(())
}

fn storage(section: &mut Section<'_>, options: &mut Options) -> Result<(), String> {
    for (place, mut table) in section.sections("storage")?.into_iter().enumerate() {
        let (name, selector) = selector(&mut table, place)?;
        let profile = profile(&mut table)?;
        options.rules.storage.push(StorageRule {
            name,
            selector,
            profile,
        });
        table.end()?;
    }
    Ok(())
}

/// The rules of `[[expire]]`.
pub(super) fn expire(section: &mut Section<'_>) -> Result<Vec<ExpireRule>, String> {
    let mut rules = Vec::new();
    for (place, mut table) in section.sections("expire")?.into_iter().enumerate() {
        let (name, selector) = series_selector(&mut table, place)?;
        let mut keeps = false;
        table.set("keep", &mut keeps, Section::boolean)?;
        let after = match table.string("after")? {
            Some((_, at)) if keeps => {
                return Err(table.problem_of(
                    "after",
                    at,
                    "found beside `keep`, expected one of them",
                ));
            }
            Some((text, at)) => {
                let found = format!("`{text}`");
                let expected = format!("a time such as `30d` ({UNITS})");
                let problem = || table.found("after", at, &found, &expected);
                Some(Duration::parse_seconds(text).map_err(|_| problem())?)
            }
            None if keeps => None,
            None => return Err(table.missing("after")),
        };
        table.end()?;
        rules.push(ExpireRule {
            name,
            selector,
            after,
        });
    }
    Ok(rules)
}

/// The name of a rule, and which series it is for.
fn selector(table: &mut Section<'_>, place: usize) -> Result<(String, Selector), String> {
    let names: Vec<_> = Protocol::ALL.iter().map(|it| it.name()).collect();
    let expected = format!("{}, or a list of such", names.join(", "));
    let protocols = table.texts("protocol", &expected, Protocol::from_name)?;
    let (name, mut selector) = series_selector(table, place)?;
    selector.protocols = protocols.unwrap_or_default();
    Ok((name, selector))
}

/// The same of series whichever way they come.
fn series_selector(table: &mut Section<'_>, place: usize) -> Result<(String, Selector), String> {
    let name = table.string("name")?;
    let name = name.map_or_else(|| format!("rule {}", place + 1), |it| it.0.to_owned());
    let mut selector = Selector::default();
    if let Some((pattern, at)) = table.string("pattern")? {
        let added = selector.add_pattern(pattern);
        added.map_err(|problem| table.problem_of("pattern", at, &problem))?;
    }
    if let Some((text, at)) = table.string("match")? {
        let added = selector.add_match(text);
        added.map_err(|problem| table.problem_of("match", at, &problem))?;
    }
    Ok((name, selector))
}

fn profile(table: &mut Section<'_>) -> Result<Profile, String> {
    let mut profile = Profile::default();
    let expected = format!("RESOLUTION:SPAN such as `10s:6h`, or a list of such ({UNITS})");
    let archives = table.texts("archives", &expected, |text| Archive::parse(text).ok())?;
    if let Some(archives) = archives {
        // All have the same functions, so one of two would be useless.
        let rows = |it: &Archive| (it.resolution, it.rows());
        for (item, archive) in archives.iter().enumerate() {
            if archives[..item].iter().any(|it| rows(it) == rows(archive)) {
                let at = table.place_of_item("archives", item);
                let problem = format!("`{archive}` is specified twice");
                return Err(table.problem_of("archives", at, &problem));
            }
        }
        profile.archives = archives;
    }
    // As in storage-schemas.conf, the finest archive has a row for each step.
    let finest = profile.archives.iter().map(|it| it.resolution).min();
    profile.step = finest.unwrap_or(profile.step);
    let seconds = 1..=LONGEST_STEP as usize;
    if let Some(step) = table.count("step", seconds.clone())? {
        profile.step = step as u64;
    }
    profile.heartbeat = profile.heartbeat.max(2 * profile.step);
    if let Some(heartbeat) = table.count("heartbeat", seconds)? {
        profile.heartbeat = heartbeat as u64;
    }
    let functions = table.texts(
        "functions",
        "AVERAGE, MIN, MAX or LAST, or a list of such",
        |text| Function::ALL.into_iter().find(|it| it.name() == text),
    )?;
    if let Some(functions) = functions {
        profile.functions = functions;
    }
    table.set("xff", &mut profile.xff, Section::fraction)?;
    if let Some((name, at)) = table.string("type")? {
        let reading = Reading::ALL.into_iter().find(|it| it.name() == name);
        let names: Vec<_> = Reading::ALL.iter().map(|it| it.name()).collect();
        let (found, expected) = (format!("`{name}`"), format!("one of {}", names.join(", ")));
        let problem = || table.found("type", at, &found, &expected);
        profile.reading = Some(reading.ok_or_else(problem)?);
    }
    profile.check().map_err(|problem| table.here(&problem))?;
    Ok(profile)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::config::Config;

    fn parse(text: &str) -> Result<Options, String> {
        Ok(Config::parse(&format!("data = '/data'\n{text}"))?.taking)
    }

    #[test]
    fn all_that_can_be_said() {
        let options = parse(
            r#"
            [graphite]
            listen = ["127.0.0.1", "udp:127.0.0.1", "unix:/run/g"]
            mode = 0o600
            connections = 3
            idle-timeout = 5
            receive-buffer-mib = 1
            [statsd]
            listen = "127.0.0.1"
            interval = 1
            prefix = ""
            percentiles = [50, 99.9]
            most-names = 5
            most-values-mib = 2
            idle-flushes = 6
            [influx]
            listen = "127.0.0.1"
            lines = ["udp:127.0.0.1:8089", "127.0.0.1:8094"]
            most-request-mib = 2
            [remote-write]
            listen = "127.0.0.1:9091"
            timeout = 3
            [otlp]
            listen = "127.0.0.1"
            attributes = "host.name"
            [[scrape]]
            job = "node"
            targets = ["127.0.0.1:9100", "http://a/b"]
            interval = 5
            labels = "dc=east"
            honor-labels = true
            honor-timestamps = false
            most-answer-mib = 1
            [series]
            most-series = 7
            most-series-per-sender = 8
            most-mib-per-sender = 9
            [[path]]
            name = "servers"
            protocol = "graphite"
            pattern = '^servers\.'
            path = "s/{__path__}"
            [[path]]
            match = '{job="x"}'
            drop = true
            [[storage]]
            archives = ["1m:1d", "10:360"]
            heartbeat = 20
            functions = "LAST"
            xff = 0.25
            type = "COUNTER"
            "#,
        )
        .unwrap();
        assert_eq!(options.graphite.endpoints().count(), 3);
        assert_eq!(options.graphite.idle_timeout, Duration::from_secs(5));
        let statsd = &options.statsd;
        assert_eq!(
            statsd.listen.datagrams,
            [Endpoint::Udp("127.0.0.1".into(), 8125)]
        );
        assert_eq!(statsd.aggregator.percentiles, [50.0, 99.9]);
        assert_eq!(statsd.aggregator.most_value_bytes, 2 << 20);
        let influx = &options.influx;
        assert_eq!(
            influx.http.listen.addresses[0].to_string(),
            "127.0.0.1:8086"
        );
        assert_eq!(influx.lines.endpoints().count(), 2);
        assert_eq!(options.otlp.attributes, ["host.name"]);
        let scrape = &options.scrape[0];
        assert_eq!(scrape.timeout, Duration::from_secs(5));
        assert_eq!(scrape.labels, [("dc".to_owned(), "east".to_owned())]);
        assert_eq!(options.limits.most_bytes_per_sender, 9 << 20);
        let [servers, dropped] = &options.rules.paths[..] else {
            panic!("{options:?}");
        };
        assert_eq!(servers.selector.protocols, [Protocol::Graphite]);
        assert_eq!(
            (dropped.name.as_str(), &dropped.template),
            ("rule 2", &None)
        );
        let profile = &options.rules.storage[0].profile;
        assert_eq!((profile.step, profile.heartbeat), (10, 20));
        assert_eq!(profile.reading, Some(Reading::Counter));
        assert_eq!(parse(""), Ok(Options::default()));
    }

    #[test]
    fn what_is_wrong_is_shown_with_its_place() {
        for (text, problem) in [
            (
                "[graphite]\nlisten = ['x']\nx = 1",
                "line 4, column 1: found `graphite.x`, expected one of ",
            ),
            (
                "[graphite]\nlisten = ['a:b']",
                "line 3, column 11: `graphite.listen`: found `a:b`, expected tcp:HOST:PORT",
            ),
            (
                "[graphite]\nlisten = ['a', 'tcp:a:2003']",
                "line 2, column 1: `graphite`: `tcp:a:2003` is specified twice",
            ),
            (
                "[statsd]\npercentiles = [100]",
                "line 3, column 16: `statsd.percentiles`: found 100, expected numbers above 0 and below 100",
            ),
            (
                "[[path]]\npattern = '('\npath = '{__path__}'",
                "line 3, column 11: `path.pattern`: ",
            ),
            (
                "[[path]]\nname = 'x'",
                "line 2, column 1: `path`: there is no `path`",
            ),
            (
                "[[path]]\npath = '../{x}'",
                "line 3, column 8: `path.path`: the path has the segment `..`",
            ),
            (
                "[[path]]\nprotocol = 'x'\npath = '{x}'",
                "line 3, column 12: `path.protocol`: found `x`, expected graphite, ",
            ),
            (
                "[[storage]]\narchives = ['10s']",
                "line 3, column 13: `storage.archives`: found `10s`, expected RESOLUTION:SPAN",
            ),
            (
                "[[storage]]\narchives = ['10s:1h', '1m:1d', '60:1440']",
                "line 3, column 32: `storage.archives`: `1m:1d` is specified twice",
            ),
            (
                "[[storage]]\narchives = ['10s:1h', '15s:1d']",
                "line 2, column 1: `storage`: the resolution of `15s:1d` is not a multiple of the step, 10 s",
            ),
            (
                "[[storage]]\ntype = 'x'",
                "line 3, column 8: `storage.type`: found `x`, expected one of GAUGE, COUNTER",
            ),
            (
                "[[path]]\nmatch = '{'\npath = 'x'",
                "line 3, column 9: `path.match`: ",
            ),
            (
                "[[path]]\ndrop = true\npath = 'x'",
                "line 4, column 8: `path.path`: found beside `drop`",
            ),
            (
                "[[expire]]\nafter = 'soon'",
                "line 3, column 9: `expire.after`: found `soon`, expected a time such as `30d` (units: s, m or min, h, d, w, y)",
            ),
            (
                "[[expire]]\nafter = '1mon'",
                "line 3, column 9: `expire.after`: found `1mon`, expected a time such as `30d` (units: ",
            ),
            (
                "[[storage]]\narchives = ['10s:1h', '1ms:1d']",
                "line 3, column 23: `storage.archives`: found `1ms:1d`, expected RESOLUTION:SPAN such as `10s:6h`, or a list of such (units: ",
            ),
            (
                "[[expire]]\nafter = 5",
                "line 3, column 9: `expire.after`: found integer, expected a text",
            ),
        ] {
            let found = parse(text).unwrap_err();
            assert!(found.starts_with(problem), "{found}");
        }
    }
}
