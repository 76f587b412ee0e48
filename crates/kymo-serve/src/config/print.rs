//! A configuration as a file says it, with all values that are in effect.

use std::fmt::{Display, Write as _};
use std::path::Path;
use std::time::Duration;

use kymo_collectd::network::Security;
use kymo_rrd::file::convert::Target;
use kymo_time::CdTime;

use super::{Config, Listen};
use crate::listen::Access;
use crate::taking::LineListen;
use crate::taking::options::HttpListen;
use crate::taking::rules::{Seconds, Selector};

/// Lines of TOML.
#[derive(Default)]
pub(super) struct Printer(String);

impl Printer {
    pub(super) fn text(self) -> String {
        self.0
    }

    pub(super) fn table(&mut self, name: &str) {
        // Writing to a text cannot fail.
        let _ = writeln!(self.0, "\n[{name}]");
    }

    pub(super) fn element(&mut self, name: &str) {
        let _ = writeln!(self.0, "\n[[{name}]]");
    }

    pub(super) fn value(&mut self, name: &str, value: impl Display) {
        let _ = writeln!(self.0, "{name} = {value}");
    }

    pub(super) fn string(&mut self, name: &str, value: &str) {
        self.value(name, quoted(value));
    }

    pub(super) fn path(&mut self, name: &str, value: &Path) {
        self.string(name, &value.to_string_lossy());
    }

    pub(super) fn strings<T: Display>(&mut self, name: &str, values: impl IntoIterator<Item = T>) {
        let values = values.into_iter().map(|value| quoted(&value.to_string()));
        let values: Vec<_> = values.collect();
        self.value(name, format!("[{}]", values.join(", ")));
    }

    pub(super) fn numbers<T: Display>(&mut self, name: &str, values: &[T]) {
        let values: Vec<_> = values.iter().map(T::to_string).collect();
        self.value(name, format!("[{}]", values.join(", ")));
    }

    pub(super) fn seconds(&mut self, name: &str, value: Duration) {
        self.value(name, value.as_secs_f64());
    }

    fn mode(&mut self, name: &str, mode: u32) {
        self.value(name, format!("0o{mode:03o}"));
    }

    fn mib(&mut self, name: &str, bytes: u64) {
        self.value(name, bytes >> 20);
    }

    pub(super) fn listen(&mut self, listen: &Listen) {
        self.metrics(listen);
        self.seconds("idle-timeout", listen.idle_timeout);
    }

    fn metrics(&mut self, listen: &Listen) {
        if listen.is_set || !listen.addresses.is_empty() {
            self.strings("listen", &listen.addresses);
        }
        self.access(&listen.access);
        self.value("connections", listen.connections);
        self.tls(listen);
    }

    fn access(&mut self, access: &Access) {
        self.mode("mode", access.mode);
        if let Some(group) = &access.group {
            self.string("group", group);
        }
    }

    fn tls(&mut self, listen: &Listen) {
        if let Some(tls) = &listen.tls {
            self.path("certificate", &tls.certificate);
            self.path("key", &tls.key);
            if let Some(path) = &tls.client_ca {
                self.path("client-ca", path);
            }
        }
    }

    fn tokens(&mut self, listen: &Listen) {
        if let Some(path) = &listen.token_file {
            self.path("token-file", path);
        }
    }

    fn lines(&mut self, listen: &LineListen) {
        if !listen.is_empty() {
            self.strings("listen", listen.endpoints());
        }
        self.access(&listen.streams.access);
        self.value("connections", listen.streams.connections);
        self.tls(&listen.streams);
        self.seconds("idle-timeout", listen.idle_timeout);
        self.mib("receive-buffer-mib", listen.receive_buffer as u64);
    }

    fn http(&mut self, http: &HttpListen) {
        self.listen(&http.listen);
        self.tokens(&http.listen);
        self.mib("most-request-mib", http.most_request as u64);
        self.seconds("timeout", http.timeout);
    }

    fn selector(&mut self, name: &str, selector: &Selector) {
        self.string("name", name);
        if !selector.protocols.is_empty() {
            let protocols = selector.protocols.iter().map(|it| it.name());
            self.strings("protocol", protocols);
        }
        for (name, text) in selector.texts() {
            self.string(name, text);
        }
    }
}

/// A text in TOML's quotes.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for char in text.chars() {
        match char {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            char if char.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(char));
            }
            char => quoted.push(char),
        }
    }
    quoted.push('"');
    quoted
}

fn cdtime(time: CdTime) -> f64 {
    time.to_f64()
}

impl Config {
    /// The same as a file of configuration, with every value that is in effect.
    ///
    /// What a `collectd.conf` says is in the tables of collectd.
    pub fn to_toml(&self) -> String {
        let mut out = Printer::default();
        out.path("data", &self.data);
        out.value("anywhere", self.anywhere);
        let format = match self.target {
            Target::Portable => "portable",
            Target::Native(machine) => machine.name(),
        };
        out.string("format", format);
        if let Some(path) = &self.pid_file {
            out.path("pid-file", path);
        }
        let write = &self.write;
        out.table("write");
        out.seconds("timeout", write.timeout);
        out.seconds("jitter", write.jitter);
        out.seconds("flush", write.flush);
        out.value("threads", write.threads);
        out.value("open-files", write.open_files);
        out.mib("most-pending-mib", write.most_pending as u64);
        out.seconds("future-limit", write.future_limit);
        out.seconds("suspend-limit", write.suspend_limit);
        out.mib("least-free-mib", write.least_free);
        if let Some(journal) = &self.journal {
            out.table("journal");
            out.path("directory", &journal.directory);
            out.mib("most-mib", journal.most_bytes);
            out.value("durable", journal.durable);
            out.value("datagrams", journal.datagrams);
        }
        out.table("log");
        out.string("level", self.log.level.name());
        out.string("format", self.log.format.name());
        out.table("rrdcached");
        out.listen(&self.rrdcached);
        out.value("overwrite", self.rrdcached_overwrite);
        for socket in &self.rrdcached_sockets {
            out.element("rrdcached.socket");
            out.strings("listen", &socket.listen.addresses);
            out.access(&socket.listen.access);
            out.tls(&socket.listen);
            out.strings("commands", socket.commands.names());
        }
        out.table("metrics");
        out.metrics(&self.metrics);
        let query = &self.query;
        out.table("query");
        out.listen(&query.listen);
        out.tokens(&query.listen);
        out.seconds("timeout", query.timeout);
        out.value("concurrent", query.concurrent);
        out.value("most-samples", query.most_samples);
        out.value("most-points", query.most_points);
        out.mib("most-answer-mib", query.most_answer as u64);
        out.seconds("refresh", query.refresh);
        if let Some(collectd) = &self.collectd {
            print_collectd(collectd, &mut out);
        }
        print_taking(&self.taking, &mut out);
        for rule in &self.expire {
            out.element("expire");
            out.selector(&rule.name, &rule.selector);
            match rule.after {
                Some(after) => out.string("after", &Seconds(after).to_string()),
                None => out.value("keep", true),
            }
        }
        out.text()
    }
}

fn print_taking(taking: &crate::taking::Options, out: &mut Printer) {
    out.table("graphite");
    out.lines(&taking.graphite);
    out.table("statsd");
    let statsd = &taking.statsd;
    out.lines(&statsd.listen);
    out.seconds("interval", statsd.interval);
    out.string("prefix", &statsd.aggregator.prefix);
    out.numbers("percentiles", &statsd.aggregator.percentiles);
    out.value("most-names", statsd.aggregator.most_names);
    out.mib("most-values-mib", statsd.aggregator.most_value_bytes as u64);
    out.value("idle-flushes", statsd.aggregator.idle_flushes);
    let influx = &taking.influx;
    out.table("influx");
    out.http(&influx.http);
    if !influx.lines.is_empty() {
        out.strings("lines", influx.lines.endpoints());
    }
    out.mib("receive-buffer-mib", influx.lines.receive_buffer as u64);
    out.table("remote-write");
    out.http(&taking.remote_write);
    out.table("otlp");
    out.http(&taking.otlp.http);
    out.strings("attributes", &taking.otlp.attributes);
    for scrape in &taking.scrape {
        out.element("scrape");
        out.string("job", &scrape.job);
        out.strings("targets", scrape.targets.iter().map(|it| it.url()));
        out.seconds("interval", scrape.interval);
        out.seconds("timeout", scrape.timeout);
        let labels = scrape.labels.iter();
        out.strings(
            "labels",
            labels.map(|(name, value)| format!("{name}={value}")),
        );
        out.value("honor-labels", scrape.honor_labels);
        out.value("honor-timestamps", scrape.honor_timestamps);
        out.mib("most-answer-mib", scrape.most_answer as u64);
        for (name, path) in [
            ("token-file", &scrape.token_file),
            ("ca", &scrape.tls.ca),
            ("certificate", &scrape.tls.certificate),
            ("key", &scrape.tls.key),
        ] {
            if let Some(path) = path {
                out.path(name, path);
            }
        }
    }
    let limits = &taking.limits;
    out.table("series");
    out.value("most-series", limits.most_series);
    out.value("most-series-per-sender", limits.most_series_per_sender);
    out.mib("most-mib-per-sender", limits.most_bytes_per_sender);
    for rule in &taking.rules.paths {
        out.element("path");
        out.selector(&rule.name, &rule.selector);
        match &rule.template {
            Some(template) => out.string("path", &template.to_string()),
            None => out.value("drop", true),
        }
    }
    for rule in &taking.rules.storage {
        out.element("storage");
        out.selector(&rule.name, &rule.selector);
        let profile = &rule.profile;
        out.value("step", profile.step);
        out.value("heartbeat", profile.heartbeat);
        out.strings("archives", &profile.archives);
        out.strings("functions", profile.functions.iter().map(|it| it.name()));
        out.value("xff", profile.xff);
        if let Some(reading) = profile.reading {
            out.string("type", reading.name());
        }
    }
}

fn print_collectd(collectd: &crate::collectd::Options, out: &mut Printer) {
    out.table("collectd");
    if !collectd.types_db.is_empty() {
        out.strings("types-db", collectd.types_db.iter().map(|it| it.display()));
    }
    out.value("interval", cdtime(collectd.interval));
    if let Some(host) = &collectd.host {
        out.string("host", host);
    }
    out.value("most-series", collectd.most_series);
    out.value("most-series-per-sender", collectd.most_series_per_sender);
    out.mib("most-mib-per-sender", collectd.most_bytes_per_sender);
    let network = &collectd.network;
    out.value("threads", network.workers);
    out.mib("queue-mib", network.queue as u64);
    out.mib("receive-buffer-mib", network.receive_buffer as u64);
    out.value("deduplicate", network.deduplicate.unwrap_or(0));
    out.value("databases", collectd.databases.is_some());
    for listen in &network.listen {
        out.element("collectd.listen");
        remote(out, &listen.host, listen.port, listen.level);
        if let Some(path) = &listen.auth_file {
            out.path("auth-file", path);
        }
        if let Some(interface) = &listen.interface {
            out.string("interface", interface);
        }
        if let Some(window) = listen.replay_window {
            out.value("replay-window", cdtime(window));
        }
    }
    out.table("collectd.unixsock");
    out.listen(&collectd.unixsock);
    if let Some(databases) = &collectd.databases {
        out.table("collectd.rrd");
        out.path("directory", &databases.directory);
        let definitions = &databases.definitions;
        if let Some(step) = definitions.step {
            out.value("step", step);
        }
        if let Some(heartbeat) = definitions.heartbeat {
            out.value("heartbeat", heartbeat);
        }
        out.value("rows", definitions.rows);
        out.numbers("timespans", &definitions.timespans);
        out.value("xff", definitions.xff);
    }
    if let Some(csv) = &collectd.csv {
        out.table("collectd.csv");
        out.path("directory", &csv.directory);
        out.value("rates", csv.rates);
    }
    let forward = &collectd.forward;
    out.table("collectd.forward");
    out.value("received", forward.received);
    out.value("packet-size", forward.packet_size);
    if let Some(routers) = forward.time_to_live {
        out.value("time-to-live", routers);
    }
    for server in &forward.servers {
        out.element("collectd.forward.server");
        remote(out, &server.host, server.port, server.level);
        if let Some((user, _)) = &server.user {
            out.string("user", user);
            // It may be read by others than the file.
            out.value("password", "\"...\" # not shown");
        }
        if let Some(interface) = &server.interface {
            out.string("interface", interface);
        }
        if let Some(address) = &server.bind_address {
            out.string("bind-address", address);
        }
        if let Some(interval) = server.resolve_interval {
            out.seconds("resolve-interval", interval);
        }
    }
}

fn remote(out: &mut Printer, host: &str, port: u16, level: Security) {
    out.string("host", host);
    out.value("port", port);
    let level = match level {
        Security::None => "none",
        Security::Sign => "sign",
        Security::Encrypt => "encrypt",
    };
    out.string("security", level);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is printed is read as the same.
    #[test]
    fn printed_configurations_are_the_same() {
        for text in [
            "data = '/d'",
            r#"
            data = "/d \\ \" \t"
            anywhere = true
            format = "portable"
            pid-file = "/run/x"
            [write]
            timeout = 0.5
            [journal]
            directory = "/j"
            durable = true
            [rrdcached]
            listen = ["unix:/r", "[::1]:1"]
            mode = 0o600
            group = "g"
            idle-timeout = 7
            [[rrdcached.socket]]
            listen = "/ro"
            commands = ["read", "SUSPEND"]
            [log]
            format = "json"
            [metrics]
            listen = []
            [query]
            listen = "h:1"
            token-file = "/t"
            [collectd]
            types-db = "/t"
            interval = 0.1
            [[collectd.listen]]
            host = "::1"
            security = "sign"
            auth-file = "/a"
            replay-window = 60
            [collectd.unixsock]
            listen = "/u"
            [collectd.rrd]
            step = 1
            [collectd.csv]
            directory = "/c"
            [[collectd.forward.server]]
            host = "x"
            [graphite]
            listen = ["a", "udp:a", "unix:/g"]
            [statsd]
            listen = ["a", "unixgram:/s"]
            percentiles = [50, 99.5]
            [influx]
            listen = "a"
            lines = "udp:a:1"
            idle-timeout = 5
            [remote-write]
            listen = "a:1"
            [otlp]
            listen = "unix:/o"
            attributes = ["b", "c"]
            [[scrape]]
            job = "j"
            targets = "a:1"
            labels = ["a=b", "c=d"]
            interval = 0.5
            [series]
            most-series = 3
            [[path]]
            protocol = ["graphite", "statsd"]
            pattern = '^a\.'
            path = "x/{__path__}"
            [[expire]]
            match = '{job="ci"}'
            after = "36h"
            [[expire]]
            keep = true
            [[path]]
            name = "none"
            match = '{a="b"}'
            drop = true
            [[storage]]
            archives = ["1m:1d", "10m:10w"]
            functions = ["LAST"]
            type = "DERIVE"
            "#,
        ] {
            let config = Config::parse(text).unwrap();
            let printed = config.to_toml();
            assert_eq!(Config::parse(&printed).as_ref(), Ok(&config), "{printed}");
        }
    }
}
