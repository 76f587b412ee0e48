"""Requests of Prometheus' HTTP API, as Grafana sends them and as nobody should, of `kymo serve` and of Prometheus."""

import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request

FOLDER = os.path.dirname(os.path.abspath(__file__))
# Seconds that no request may take, and MiB that `kymo serve` may have after all of them.
PATIENCE = 60
MOST_MEMORY = 512


def send(port, method, path, body=None):
    """Status, type of content and content of an answer."""
    data = None if body is None else body.encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, method=method)
    if body is not None:
        request.add_header("Content-Type", "application/x-www-form-urlencoded")
    try:
        answer = urllib.request.urlopen(request, timeout=PATIENCE)
    except urllib.error.HTTPError as error:
        answer = error
    text = answer.read().decode("utf-8", "replace")
    return answer.status, answer.headers.get("Content-Type"), text


def requests(first):
    """Method, path, form, and whether the data are the same, too, beside status and type of error."""
    at = first + 1000
    quote = urllib.parse.quote
    api = "/api/v1/"
    matcher = quote('{host="alpha"}')
    # What Grafana's data source asks: tests of the connection, lists for its editors, annotations, alerts.
    for path in [
        f"query?query=1%2B1&time={at}",
        f"series?match[]=rrd_value&start={at}&end={at + 100}",
        f"series?match[]=rrd_value&match[]=rrd_value_rate&start={at}&end={at + 100}",
        f"series?match[]={matcher}&start={at}",
        "series?match[]=rrd_value&start=1&end=1000",
        f"series?match[]=rrd_value&start={at}&end={at - 100}",
        "labels",
        "labels?match[]=rrd_value",
        f"labels?start={at}&end={at + 5}&match[]=rrd_value_rate",
        "label/host/values",
        "label/none/values",
        "label/host/values?match[]=nothing",
        "label/host/values?start=5&end=4",
        f"label/__name__/values?match[]={matcher}&start={at}&end={at + 100}",
        "metadata?metric=nothing",
        "metadata?limit=0",
        "rules",
        "rules?type=alert",
        "alerts",
        "alertmanagers",
        f"query_exemplars?query=rrd_value&start={at}&end={at + 100}",
        "format_query?query=sum(a)by(b)",
        f"query_range?query=rrd_value&start=-9e9&end=9e9&step=3w",
        "query_range?query=1&start=0&end=11000&step=1",
        "query?query=time()&time=1.0005",
        "query?query=time()&time=1.057",
        "query?query=time()&time=-1.5",
        "query?query=1&time=2020-09-13T12:26:40.123456%2B02:00",
        "query?query=1&query=2&time=1",
        "query?query=%22a%22&time=1",
        "query?query=1&timeout=1h30m&time=1",
    ]:
        yield "GET", api + path, None, True
    for path, form in [
        ("query", f"query=sum(rrd_value)&time={at}"),
        ("query?query=1&time=1", "query=2"),
        ("query?query=1&time=1", "time=2"),
        ("query_range", f"query=rrd_value&start={at}&end={at + 600}&step=15"),
        ("query_exemplars", f"query=rrd_value&start={at}&end={at + 600}"),
        ("series", "match[]=rrd_value"),
        ("labels", ""),
    ]:
        yield "POST", api + path, form, True
    # What is wrong with these has the same status and the same type of error.
    for path in [
        "query",
        "query?query=",
        "query?query=1&time=x",
        "query?query=1&time=2020-09-13",
        "query?query=1&timeout=x",
        "query?query=1&timeout=30m1h",
        "query?query=1&timeout=-1",
        "query?query=1&timeout=0",
        "query?query=(",
        "query_range",
        "query_range?query=1&start=1&end=1",
        "query_range?query=1&start=1&end=1&step=0",
        "query_range?query=1&start=1&end=1&step=-1",
        "query_range?query=1&start=1&end=1&step=NaN",
        "query_range?query=1&start=1&end=1&step=1e300",
        "query_range?query=1&start=1&end=1&step=inf",
        "query_range?query=1&start=2&end=1&step=1",
        "query_range?query=1&end=1&step=1",
        "query_range?query=1&start=0&end=11001&step=1",
        "query_range?query=1&start=-9e12&end=9e12&step=1",
        "query_range?query=rrd_value[5m]&start=1&end=2&step=1",
        "query_range?query=%22a%22&start=1&end=2&step=1",
        "series",
        "series?match[]=",
        "series?match[]={}",
        "series?match[]=up%20offset%205m",
        "series?match[]=rate(up[5m])",
        "series?match[]=rrd_value&start=x",
        "labels?match[]=x{",
        "labels?match[]={}",
        "label/1a/values",
        "label/a-b/values",
        "label/%FF/values",
        "metadata?limit=x",
        "rules?type=x",
        "query_exemplars",
        f"query_exemplars?query=rrd_value&start={at}&end={at - 1}",
        "query_exemplars?query=rrd_value(&start=1&end=2",
        "query_exemplars?query=rrd_value&start=x",
        "format_query",
        "format_query?query=(",
    ]:
        yield "GET", api + path, None, False
    yield "PUT", api + "query?query=1", None, None
    yield "HEAD", api + "query?query=1", None, None
    yield "GET", "/-/ready", None, None
    yield "GET", "/-/healthy", None, None


def ordered(data):
    """Lists of series and of strings come in any order."""
    if isinstance(data, list):
        return sorted((ordered(it) for it in data), key=lambda it: json.dumps(it, sort_keys=True))
    return data


def compare_requests(ours, theirs, first):
    """The number of requests, and what differs."""
    differences = []
    count = 0
    for method, path, form, wants_data in requests(first):
        count += 1
        one, other = send(ours, method, path, form), send(theirs, method, path, form)
        if method == "HEAD" and path.startswith("/api"):
            # Prometheus has no HEAD here; answers to it have no body.
            if one[2] != "":
                differences.append(f"{method} {path}: a body")
            continue
        if one[0] != other[0]:
            differences.append(f"{method} {path} {form}: {one} | {other}")
            continue
        if wants_data is None:
            continue
        if one[1] != other[1]:
            differences.append(f"{method} {path} {form}: {one[1]} | {other[1]}")
            continue
        left, right = json.loads(one[2]), json.loads(other[2])
        if left.get("errorType") != right.get("errorType") or left["status"] != right["status"]:
            differences.append(f"{method} {path} {form}: {left} | {right}")
        elif wants_data and ordered(left["data"]) != ordered(right["data"]):
            data = f"{ordered(left['data'])}"[:300], f"{ordered(right['data'])}"[:300]
            differences.append(f"{method} {path} {form}: {data[0]} | {data[1]}")
    return count, differences


def fixed_expressions():
    """Expressions of every kind, right and wrong."""
    with open(os.path.join(FOLDER, "promql_expressions.txt"), encoding="utf-8") as lines:
        return [line.rstrip("\n") for line in lines]


def hostile(port, process, first):
    """Requests that take what they can of `kymo serve` alone; what does not hold."""
    quote = urllib.parse.quote
    large = "|".join(f"h{number}" for number in range(5000))
    queries = [
        "(" * 60000,
        "-" * 60000 + "1",
        "abs(" * 5000 + "x" + ")" * 5000,
        "+".join(["x"] * 20000),
        "x[5m:1s]" + "[5m:1s]" * 1000,
        "sum_over_time(" * 30 + "x[1y:1s]" + "[1y:1s])" * 29 + ")",
        "count_over_time({__name__=~'.+'}[100y:1ms])",
        'x{a=~"' + "(a*)*" * 5000 + '"}',
        'x{a=~"' + "(x+x+)+" * 50 + 'y"}',
        'x{a=~"' + "((((a{100}){100}){100}){100})" + '"}',
        'x{a=~"(?i)\\\\pL{1000}"}',
        f'x{{a=~"{large}"}}',
        'label_replace(' * 60 + 'vector(1)' + ', "a", "$0$0$0$0$0$0$0$0", "a", ".*")' * 60,
        'label_join(' * 60 + 'vector(1)' + ', "a", "xxxxxxxxxxxxxxxx", "a", "a", "a", "a")' * 60,
        'count_values("v", {__name__=~".+"})' + ' or count_values("v", {__name__=~".+"})' * 200,
        '{__name__=~".+"} * on() group_left {__name__=~".+"}',
        "x offset 99999999999999999999y",
        "x @ 1e308",
        "\u0000",
        '"' + "\\x00" * 10000 + '"',
        'x{a="' + "b" * 60000 + '"}',
        "#" * 60000,
        "x[" + "9" * 50000 + "s]",
        "1e" + "9" * 50000,
        "topk(1e18, {__name__=~'.+'})",
        "quantile_over_time(NaN, rrd_value[100y])",
    ]
    differences = []
    for query in queries:
        for path in [
            f"/api/v1/query?time={first + 1000}",
            f"/api/v1/query_range?start={first}&end={first + 10999}&step=1&timeout=5s",
        ]:
            begun = time.monotonic()
            try:
                status, _, text = send(port, "POST", path, "query=" + quote(query))
            except OSError as error:
                differences.append(f"{path} {query[:80]}: {error}")
                continue
            taken = time.monotonic() - begun
            if status not in (200, 400, 422, 503) or taken > PATIENCE / 2:
                differences.append(f"{path} {query[:80]}: {status} after {taken:.1f} s: {text[:200]}")
    for path in [
        "/api/v1/query?" + "&".join(f"a{number}=1" for number in range(5000)),
        "/api/v1/label/" + "a" * 30000 + "/values",
        "/api/v1/series?" + "&".join(["match[]={__name__=~'.%2B'}"] * 900),
        "/metrics/find?query=" + "{a,b}" * 2000,
        "/metrics/find?query=" + "*." * 5000,
        "/metrics/find?query=" + "[a-z]*" * 5000,
        "/render?target=" + "scale(" * 5000 + "a" + ",1)" * 5000,
        "/render?target=sumSeries(*.*.*.*)&from=-100y&maxDataPoints=999999999",
        "/render?target=alpha.*.*.*&from=1&until=99999999999",
        "/render?target=a&from=-" + "9" * 3000 + "y",
        "/metrics/expand?query=" + "&query=".join(["*.*.*"] * 900),
    ]:
        begun = time.monotonic()
        try:
            status, _, text = send(port, "GET", path)
        except OSError as error:
            differences.append(f"{path[:80]}: {error}")
            continue
        taken = time.monotonic() - begun
        if status not in (200, 400, 422, 431, 503) or taken > PATIENCE / 2:
            differences.append(f"{path[:80]}: {status} after {taken:.1f} s: {text[:200]}")
    if process.poll() is not None:
        differences.append(f"kymo serve has ended: {process.returncode}")
    else:
        with open(f"/proc/{process.pid}/status", encoding="utf-8") as lines:
            memory = next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmRSS"))
        if memory > MOST_MEMORY:
            differences.append(f"kymo serve has {memory} MiB of memory")
    return 2 * len(queries) + 11, differences
