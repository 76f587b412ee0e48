"""Metrics that programs of others send arrive in kymo serve, and its queries show them.

usage: check_taking.py KYMO [PROMETHEUS]

Needs the packages of CLIENTS from PyPI; a client that is not installed is left out with a note.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

CLIENTS = [
    "graphyte",
    "statsd",
    "influxdb-client",
    "opentelemetry-sdk",
    "opentelemetry-exporter-otlp-proto-http",
    "prometheus-client",
]

passed, failed = 0, 0


def holds(what, is_so, detail=""):
    global passed, failed
    if is_so:
        passed += 1
    else:
        failed += 1
        print(f"FAILED: {what} {detail}")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def query(port, expression):
    url = f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode({"query": expression})
    try:
        with urllib.request.urlopen(url) as answer:
            result = json.load(answer)["data"]["result"]
    except urllib.error.HTTPError as error:
        return error.read().decode()
    return {
        json.dumps(it["metric"], sort_keys=True): float(it["value"][1]) for it in result
    }


def wait_for(what, port, expression, is_right, patience=40):
    """Asks until the answer is right: rows appear when a step has ended."""
    end = time.monotonic() + patience
    while True:
        found = query(port, expression)
        if is_right(found):
            return holds(what, True)
        if time.monotonic() > end:
            return holds(what, False, f"{expression}: {found}")
        time.sleep(0.3)


def one(value):
    def is_right(found):
        return isinstance(found, dict) and len(found) == 1 and abs(list(found.values())[0] - value) < 1e-9

    return is_right


def latest(name, labels=""):
    # `last_over_time` has no name in its answer, but the labels.
    return f'last_over_time({{__name__="{name}"{labels}}}[10m])'


def check_graphite(ports):
    import graphyte

    start = int(time.time()) - 60
    for protocol in ("tcp", "udp"):
        # Without an interval each message has a connection of its own, and these have no order.
        interval = 0.2 if protocol == "tcp" else None
        sender = graphyte.Sender(
            "127.0.0.1", port=ports["graphite"], protocol=protocol, prefix="g", interval=interval
        )
        for place in range(5):
            sender.send(f"{protocol}.load", 1.5 + place, timestamp=start + place)
            sender.send(f"{protocol}.tagged", place, timestamp=start + place, tags={"dc": "east"})
        sender.stop()
    for protocol in ("tcp", "udp"):
        wait_for(f"graphyte, {protocol}", ports["query"], latest(f"g.{protocol}.load"), one(5.5))
        wait_for(
            f"graphyte with tags, {protocol}",
            ports["query"],
            latest(f"g.{protocol}.tagged", ',dc="east"'),
            one(4),
        )
    url = f"http://127.0.0.1:{ports['query']}/render?target=g.tcp.load&from={start - 1}&until={start + 10}"
    with urllib.request.urlopen(url) as answer:
        points = json.load(answer)[0]["datapoints"]
    values = [value for value, _ in points if value is not None]
    holds("Graphite's render", values == [1.5, 2.5, 3.5, 4.5, 5.5], str(points))


def check_statsd(ports):
    import statsd

    client = statsd.StatsClient("127.0.0.1", ports["statsd"])
    pipe = client.pipeline()
    for value in (10, 20, 30):
        client.timing("work", value)
        client.incr("hits", 2)
    pipe.gauge("level", 40)
    pipe.gauge("level", -5, delta=True)
    pipe.set("users", "a")
    pipe.set("users", "b")
    pipe.send()
    tcp = statsd.TCPStatsClient("127.0.0.1", ports["statsd-tcp"])
    tcp.incr("tcp", 7)
    tcp.close()
    port = ports["query"]
    wait_for("statsd, gauges", port, latest("stats.gauges.level"), one(35))
    for name, value in (
        ("counters.hits.count", 6),
        ("counters.tcp.count", 7),
        ("timers.work.mean", 20),
        ("timers.work.upper", 30),
        ("timers.work.count", 3),
        ("sets.users.count", 2),
    ):
        expression = f'max_over_time({{__name__="stats.{name}"}}[10m])'
        # Flushes are at whole steps, so that each is a row of its own.
        wait_for(f"statsd, {name}", port, expression, one(value))


def check_influx(ports):
    from influxdb_client import InfluxDBClient, Point, WritePrecision
    from influxdb_client.client.write_api import SYNCHRONOUS

    start = int(time.time()) - 60
    for is_compressed in (False, True):
        client = InfluxDBClient(
            url=f"http://127.0.0.1:{ports['influx']}",
            token="t",
            org="o",
            enable_gzip=is_compressed,
        )
        holds("influxdb-client, ping", client.ping())
        name = f"cpu{int(is_compressed)}"
        points = [
            Point(name)
            .tag("host", "a b,c=d")
            .field("idle", 90.5 + place)
            .field("count", place)
            .field("note", "text")
            .time((start + place) * 10**9, WritePrecision.NS)
            for place in range(5)
        ]
        write = client.write_api(write_options=SYNCHRONOUS)
        write.write(bucket="metrics", record=points)
        labels = ',db="metrics",host="a b,c=d"'
        wait_for("influxdb-client, floats", ports["query"], latest(f"{name}_idle", labels), one(94.5))
        wait_for("influxdb-client, integers", ports["query"], latest(f"{name}_count", labels), one(4))
        try:
            write.write(bucket="metrics", record="bad line", write_precision=WritePrecision.S)
            holds("influxdb-client, faults", False, "no error")
        except Exception as error:
            holds("influxdb-client, faults", "partial write" in str(error), str(error))
        client.close()


def check_otlp(ports):
    from opentelemetry.exporter.otlp.proto.http import Compression
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.resources import Resource

    exporter = OTLPMetricExporter(
        endpoint=f"http://127.0.0.1:{ports['otlp']}/v1/metrics", compression=Compression.Gzip
    )
    reader = PeriodicExportingMetricReader(exporter, export_interval_millis=1000)
    resource = Resource.create({"service.name": "shop", "service.instance.id": "i1", "host.name": "h"})
    provider = MeterProvider(metric_readers=[reader], resource=resource)
    meter = provider.get_meter("check")
    counter = meter.create_counter("orders", unit="1")
    counter.add(5, {"kind": "new"})
    meter.create_up_down_counter("stock").add(-3)
    histogram = meter.create_histogram("pay.time", unit="s")
    for value in (0.5, 1.5, 20):
        histogram.record(value)
    time.sleep(2.5)
    provider.shutdown()
    port, labels = ports["query"], ',job="shop",instance="i1",host_name="h"'
    wait_for("OTLP, counters", port, latest("orders_total", labels + ',kind="new"'), one(5))
    wait_for("OTLP, sums", port, latest("stock", labels), one(-3))
    wait_for("OTLP, counts", port, latest("pay_time_seconds_count", labels), one(3))
    wait_for("OTLP, sums of histograms", port, latest("pay_time_seconds_sum", labels), one(22))
    wait_for("OTLP, buckets", port, latest("pay_time_seconds_bucket", labels + ',le="10"'), one(2))


def check_scraping(ports):
    port, labels = ports["query"], ',job="check",instance="127.0.0.1:%d"' % ports["target"]
    wait_for("scraping, up", port, latest("up", labels), one(1))
    wait_for("scraping, gauges", port, latest("check_level", labels + ',zone="x\\"y"'), one(2.5))
    wait_for("scraping, counters", port, latest("check_hits_total", labels), one(3))
    wait_for("scraping, a target that is gone", port, latest("up", ',job="gone"'), one(0))


def check_remote_write(ports, prometheus, directory):
    config = os.path.join(directory, "prometheus.yml")
    with open(config, "w") as file:
        file.write(
            f"""
global: {{scrape_interval: 1s, external_labels: {{cluster: c}}}}
scrape_configs:
  - job_name: self
    static_configs: [{{targets: ['127.0.0.1:{ports["prometheus"]}']}}]
remote_write:
  - url: http://127.0.0.1:{ports["remote-write"]}/api/v1/write
    queue_config: {{batch_send_deadline: 1s}}
"""
        )
    process = subprocess.Popen(
        [
            prometheus,
            f"--config.file={config}",
            f"--storage.tsdb.path={directory}/tsdb",
            f"--web.listen-address=127.0.0.1:{ports['prometheus']}",
            "--log.level=warn",
        ]
    )
    try:
        port, labels = ports["query"], ',job="self",cluster="c"'
        wait_for("remote write, up", port, latest("up", labels), one(1), patience=60)
        expression = 'count({job="self",cluster="c"})'
        wait_for(
            "remote write, all series",
            port,
            expression,
            lambda found: isinstance(found, dict) and list(found.values())[:1] > [300],
            patience=60,
        )
        theirs = query(ports["prometheus"], "prometheus_remote_storage_samples_failed_total")
        holds("remote write, nothing failed", set(theirs.values()) == {0.0}, str(theirs))
        # A counter has the same value at the same time: times are whole seconds of the scrape.
        theirs = query(ports["prometheus"], "prometheus_build_info")
        ours = query(port, latest("prometheus_build_info", labels))
        holds("remote write, values", list(ours.values()) == list(theirs.values()), f"{ours} {theirs}")
    finally:
        process.terminate()
        process.wait()


def main():
    kymo = sys.argv[1]
    prometheus = sys.argv[2] if len(sys.argv) > 2 else None
    names = "graphite statsd statsd-tcp influx otlp remote-write query target gone prometheus".split()
    ports = {name: free_port() for name in names}
    target = None
    try:
        import prometheus_client

        registry = prometheus_client.CollectorRegistry()
        gauge = prometheus_client.Gauge("check_level", "x", ["zone"], registry=registry)
        gauge.labels('x"y').set(2.5)
        prometheus_client.Counter("check_hits", "x", registry=registry).inc(3)
        target = prometheus_client.start_http_server(ports["target"], "127.0.0.1", registry=registry)
    except ImportError as error:
        print(f"note: scraping is left out: {error}")
    with tempfile.TemporaryDirectory() as directory:
        config = os.path.join(directory, "serve.toml")
        with open(config, "w") as file:
            file.write(
                f"""
data = "{directory}/data"
[journal]
directory = "{directory}/journal"
[metrics]
listen = "unix:{directory}/metrics"
[query]
listen = "127.0.0.1:{ports["query"]}"
refresh = 0.2
[graphite]
listen = ["tcp:127.0.0.1:{ports["graphite"]}", "udp:127.0.0.1:{ports["graphite"]}"]
[statsd]
listen = ["udp:127.0.0.1:{ports["statsd"]}", "tcp:127.0.0.1:{ports["statsd-tcp"]}"]
interval = 1
[influx]
listen = "127.0.0.1:{ports["influx"]}"
[otlp]
listen = "127.0.0.1:{ports["otlp"]}"
attributes = "host.name"
[remote-write]
listen = "127.0.0.1:{ports["remote-write"]}"
[[scrape]]
job = "check"
targets = "127.0.0.1:{ports["target"]}"
interval = 1
[[scrape]]
job = "gone"
targets = "127.0.0.1:{ports["gone"]}"
interval = 1
[[storage]]
archives = "1s:1h"
"""
            )
        checked = subprocess.run([kymo, "serve", "--config", config, "--check"], capture_output=True)
        holds("serve --check", checked.returncode == 0, checked.stderr.decode())
        daemon = subprocess.Popen([kymo, "serve", "--config", config], stderr=subprocess.PIPE)
        try:
            end = time.monotonic() + 30
            while query_fails(ports["query"]) and time.monotonic() < end:
                time.sleep(0.05)
            for check in (check_graphite, check_statsd, check_influx, check_otlp):
                try:
                    check(ports)
                except ImportError as error:
                    print(f"note: {check.__name__} is left out: {error}")
            if target is not None:
                check_scraping(ports)
            if prometheus:
                check_remote_write(ports, prometheus, directory)
            else:
                print("note: remote write is left out: there is no prometheus")
        finally:
            daemon.terminate()
            _, messages = daemon.communicate()
            holds("the daemon ends", daemon.returncode == 0)
            if failed:
                print(messages.decode())
    print(f"taking: {passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


def query_fails(port):
    try:
        query(port, "vector(1)")
        return False
    except OSError:
        return True


if __name__ == "__main__":
    main()
