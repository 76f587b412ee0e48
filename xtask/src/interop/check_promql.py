#!/usr/bin/env python3
"""Compares the answers of `kymo serve` with those of Prometheus that has the same samples.

    check_promql.py KYMO PROMETHEUS PROMTOOL [--count N] [--seed N]

Databases are made twice: in one tree all is written, which `kymo rrd export` and `promtool tsdb
create-blocks-from openmetrics` bring to Prometheus; in the other one a third waits in the memory of `kymo serve`.
Then random expressions are asked of both, at one time and over a range of times. Exits with 1 if any answer
differs.
"""

import argparse
import json
import math
import os
import random
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

from promql_requests import compare_requests, fixed_expressions, hostile

STEP = 10
ROWS = 540


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("kymo")
    parser.add_argument("prometheus")
    parser.add_argument("promtool")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fixed", action="store_true", help="those of promql_expressions.txt, requests, hostile ones, too")
    parser.add_argument("--verbose", action="store_true")
    return parser.parse_args()


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def files(rng):
    """Paths with their data sources: (name, kind, how values go on)."""
    hosts = ["alpha", "beta", "gamma"]
    for host in hosts:
        yield f"{host}/load/load.rrd", [("shortterm", "GAUGE"), ("midterm", "GAUGE"), ("longterm", "GAUGE")]
        for cpu in range(2):
            for state in ("idle", "user"):
                yield f"{host}/cpu-{cpu}/cpu-{state}.rrd", [("value", "DERIVE")]
        for disk in ("root", "home"):
            for state in ("free", "used"):
                yield f"{host}/df-{disk}/df_complex-{state}.rrd", [("value", "GAUGE")]
        yield f"{host}/interface-eth0/if_octets.rrd", [("rx", "COUNTER"), ("tx", "COUNTER")]
        yield f"{host}/memory/memory-used.rrd", [("value", "GAUGE")]
    for name in ("one", "two", "three"):
        yield f"plain/{name}.rrd", [("a", "GAUGE"), ("b", "GAUGE")]
    yield "top.rrd", [("value", "ABSOLUTE")]


def readings(rng, kinds, first):
    """Lines of updates; now and then there is a gap, or a value that is unknown."""
    state = [rng.randrange(0, 100) for _ in kinds]
    style = rng.choice(["walk", "walk", "small", "steps", "saw"])
    lines = []
    skip = 0
    for row in range(1, ROWS + 1):
        if skip:
            skip -= 1
            continue
        if rng.random() < 0.01:
            skip = rng.choice([1, 2, 5, 40])
        values = []
        for place, (_, kind) in enumerate(kinds):
            if kind == "GAUGE":
                if style == "walk":
                    state[place] += rng.choice([-3.5, -1, 0, 0, 1, 2.25])
                elif style == "small":
                    state[place] = rng.choice([0, 1, 2])
                elif style == "steps" and rng.random() < 0.05:
                    state[place] = rng.randrange(-5, 50)
                elif style == "saw":
                    state[place] = (state[place] + 1) % 37
            elif kind == "ABSOLUTE":
                state[place] = rng.randrange(0, 50)
            else:
                state[place] += rng.randrange(0, 500)
            unknown = rng.random() < 0.01
            values.append("U" if unknown else str(state[place]))
        lines.append(f"{first + row * STEP}:{':'.join(values)}")
    return lines


def labels_of(path, source, is_rate):
    """What docs/serve.md says, written once more."""
    suffix = "_rate" if is_rate else ""
    parts = path.split("/")
    if len(parts) == 3:
        host, plugin, kind = parts[0], parts[1], parts[2][: -len(".rrd")]
        plugin, _, plugin_instance = plugin.partition("-")
        kind, _, type_instance = kind.partition("-")
        name = f"collectd_{plugin}" + (f"_{kind}" if kind != plugin else "")
        name += f"_{source}" if source != "value" else ""
        labels = {
            "host": host,
            "plugin": plugin,
            "plugin_instance": plugin_instance,
            "type": kind,
            "type_instance": type_instance,
            "ds": "" if source == "value" else source,
        }
        return name + suffix, {key: value for key, value in labels.items() if value}
    return f"rrd_value{suffix}", {"file": path, "ds": source}


def make(options, rng, directory, first):
    """Both trees, and what the daemon is to get: (path, lines)."""
    pending = []
    kinds = {}
    for path, sources in files(rng):
        lines = readings(rng, sources, first)
        whole, part = os.path.join(directory, "whole", path), os.path.join(directory, "part", path)
        for file in (whole, part):
            os.makedirs(os.path.dirname(file), exist_ok=True)
            words = [options.kymo, "rrd", "create", file, "--start", str(first), "--step", str(STEP)]
            words += [f"DS:{name}:{kind}:{2 * STEP}:U:U" for name, kind in sources]
            words += [f"RRA:AVERAGE:0.5:1:{ROWS + 60}"]
            subprocess.run(words, check=True)
        subprocess.run([options.kymo, "rrd", "update", whole, *lines], check=True)
        early = len(lines) * 2 // 3
        subprocess.run([options.kymo, "rrd", "update", part, *lines[:early]], check=True)
        pending.append((path, lines[early:]))
        for name, kind in sources:
            kinds[path, name] = kind
    return pending, kinds


def to_prometheus(options, directory, kinds):
    whole = os.path.join(directory, "whole")
    words = [options.kymo, "rrd", "export", "--to", "openmetrics", "."]
    text = subprocess.run(words, check=True, cwd=whole, capture_output=True, text=True).stdout
    metrics = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        found = re.fullmatch(r'rrd_value\{file="(?:\./)?(.*?)",ds="(.*?)",cf="AVERAGE",step="10"\} (\S+) (\d+)', line)
        path, source, value, when = found.groups()
        name, labels = labels_of(path, source, kinds[path, source] != "GAUGE")
        inside = ",".join(f'{key}="{text}"' for key, text in sorted(labels.items()))
        metrics.setdefault(name, []).append(f"{name}{{{inside}}} {value} {when}")
    exported = os.path.join(directory, "samples.txt")
    with open(exported, "w") as out:
        for name, lines in sorted(metrics.items()):
            out.write(f"# TYPE {name} gauge\n")
            out.write("\n".join(lines) + "\n")
        out.write("# EOF\n")
    blocks = os.path.join(directory, "blocks")
    words = [options.promtool, "tsdb", "create-blocks-from", "openmetrics", exported, blocks]
    subprocess.run(words, check=True, capture_output=True)
    return blocks, sum(map(len, metrics.values()))


def feed(path, pending):
    with socket.socket(socket.AF_UNIX) as one:
        one.connect(path)
        stream = one.makefile("rw")
        for file, lines in pending:
            stream.write(f"UPDATE {file} {' '.join(lines)}\n")
            stream.flush()
            answer = stream.readline()
            assert answer.startswith("0 errors"), answer


def ask(port, name, parameters):
    data = urllib.parse.urlencode(parameters).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}/api/v1/{name}", data)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        return json.load(error)


def wait_for(port, path="/-/ready"):
    for _ in range(300):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
                if answer.status == 200:
                    return
        except (OSError, urllib.error.HTTPError):
            pass
        time.sleep(0.1)
    raise SystemExit("a server does not answer")


class Generator:
    """Random expressions of all that docs/serve.md lists."""

    METRICS = [
        ("collectd_load_shortterm", ["host"]),
        ("collectd_load_longterm", ["host"]),
        ("collectd_cpu_rate", ["host", "plugin_instance", "type_instance"]),
        ("collectd_df_df_complex", ["host", "plugin_instance", "type_instance"]),
        ("collectd_interface_if_octets_rx_rate", ["host"]),
        ("collectd_memory", ["host"]),
        ("rrd_value", ["file", "ds"]),
        ("rrd_value_rate", ["file"]),
    ]
    VALUES = {
        "host": ["alpha", "beta", "gamma", "none"],
        "plugin_instance": ["0", "1", "root", "home"],
        "type_instance": ["idle", "user", "free", "used"],
        "file": ["plain/one.rrd", "plain/two.rrd", "top.rrd"],
        "ds": ["a", "b"],
    }

    def __init__(self, rng, first):
        self.rng = rng
        self.first = first

    def label(self):
        return self.rng.choice(["host", "host", "plugin_instance", "type_instance", "file", "ds"])

    def matchers(self, labels):
        rng = self.rng
        parts = []
        for label in labels:
            if rng.random() < 0.6:
                continue
            operator = rng.choice(["=", "!=", "=~", "!~"])
            value = rng.choice(self.VALUES[label])
            if operator in ("=~", "!~"):
                value = rng.choice([f"{value}|{rng.choice(self.VALUES[label])}", f"{value[:2]}.*", f".*{value[-1]}", ".+", "[a-f].*"])
            parts.append(f'{label}{operator}"{value}"')
        return "{" + ",".join(parts) + "}" if parts else ""

    def modifiers(self):
        rng = self.rng
        text = ""
        if rng.random() < 0.15:
            text += rng.choice([" offset 5m", " offset 37s", " offset -90s", " offset 1h"])
        if rng.random() < 0.1:
            text += rng.choice([f" @ {self.first + rng.randrange(0, ROWS * STEP)}", " @ start()", " @ end()"])
        return text

    def selector(self):
        name, labels = self.rng.choice(self.METRICS)
        if self.rng.random() < 0.08:
            name, labels = '{__name__=~"collectd_load_.*"}', []
            return name + self.modifiers()
        return name + self.matchers(labels) + self.modifiers()

    def ranges(self, depth):
        rng = self.rng
        window = rng.choice(["20s", "45s", "1m", "2m30s", "5m", "20m"])
        if depth > 0 and rng.random() < 0.2:
            step = rng.choice(["", "7s", "30s", "1m"])
            return f"{self.vector(depth - 1)}[{window}:{step}]" + self.modifiers()
        name, labels = rng.choice(self.METRICS)
        return f"{name}{self.matchers(labels)}[{window}]" + self.modifiers()

    def scalar(self, depth):
        rng = self.rng
        choice = rng.randrange(6)
        if choice == 0 and depth > 0:
            return f"scalar({self.vector(depth - 1)})"
        if choice == 1:
            return "time()"
        if choice == 2 and depth > 0:
            return f"({self.scalar(depth - 1)} {rng.choice(['+', '-', '*', '/', '%', '^'])} {self.scalar(depth - 1)})"
        return rng.choice(["0", "1", "2.5", "-3", "100", "1e3", "0.1", "7"])

    def grouping(self):
        rng = self.rng
        if rng.random() < 0.25:
            return ""
        labels = sorted({self.label() for _ in range(rng.randrange(0, 3))})
        return f" {rng.choice(['by', 'without'])} ({', '.join(labels)}) "

    def aggregation(self, depth):
        rng = self.rng
        inner = self.vector(depth - 1)
        kind = rng.choice(
            ["sum", "avg", "min", "max", "count", "group", "stddev", "stdvar", "quantile", "topk", "bottomk", "count_values"]
        )
        grouping = self.grouping()
        if kind == "quantile":
            return f"quantile{grouping}({rng.choice(['0', '0.25', '0.5', '0.9', '1', '1.5', '-1'])}, {inner})"
        if kind in ("topk", "bottomk"):
            return f"{kind}{grouping}({rng.choice(['0', '1', '2', '3', '10'])}, {inner})"
        if kind == "count_values":
            return f'count_values{grouping}("value", round({inner}))'
        return f"{kind}{grouping}({inner})"

    def over_time(self, depth):
        rng = self.rng
        kind = rng.choice(
            ["rate", "irate", "increase", "delta", "idelta", "deriv", "changes", "resets"]
            + [f"{it}_over_time" for it in ("avg", "min", "max", "sum", "count", "stddev", "stdvar", "last", "present", "quantile", "absent")]
            + ["predict_linear", "holt_winters"]
        )
        ranges = self.ranges(depth)
        if kind == "quantile_over_time":
            return f"quantile_over_time({rng.choice(['0', '0.3', '0.5', '0.99', '1'])}, {ranges})"
        if kind == "predict_linear":
            # The window of Prometheus 2.42 moves on with the steps where `@` has fixed it.
            ranges = re.sub(r" @ (\d+|start\(\)|end\(\))", "", ranges)
            return f"predict_linear({ranges}, {rng.choice(['60', '3600', '-30'])})"
        if kind == "holt_winters":
            return f"holt_winters({ranges}, {rng.choice(['0.5', '0.1'])}, {rng.choice(['0.5', '0.9'])})"
        return f"{kind}({ranges})"

    def function(self, depth):
        rng = self.rng
        inner = self.vector(depth - 1)
        kind = rng.randrange(10)
        if kind < 4:
            names = ["abs", "ceil", "floor", "exp", "sqrt", "ln", "log2", "log10", "sgn", "sort", "sort_desc", "absent", "timestamp", "round"]
            return f"{rng.choice(names)}({inner})"
        if kind == 4:
            name = rng.choice(["day_of_week", "day_of_month", "day_of_year", "days_in_month", "hour", "minute", "month", "year"])
            return f"{name}({rng.choice(['', 'vector(time())', f'{inner} * 86400'])})"
        if kind == 5:
            return f"clamp({inner}, {self.scalar(0)}, {self.scalar(0)})"
        if kind == 6:
            return f"{rng.choice(['clamp_min', 'clamp_max', 'round'])}({inner}, {rng.choice(['1', '5', '0.3', '-2'])})"
        if kind == 7:
            return f"vector({self.scalar(depth - 1)})"
        if kind == 8:
            source = self.label()
            pattern, replacement = rng.choice([("(.*)", "x-$1"), ("(.)(.*)", "$2$1"), ("none", "y"), ("(a.*|b.*)", "")])
            return f'label_replace({inner}, "{rng.choice(["new", source])}", "{replacement}", "{source}", "{pattern}")'
        return f'label_join({inner}, "joined", "{rng.choice(["", "-"])}", "{self.label()}", "{self.label()}")'

    def binary(self, depth):
        rng = self.rng
        operator = rng.choice(["+", "-", "*", "/", "%", "^", "atan2", "==", "!=", ">", "<", ">=", "<=", "and", "or", "unless"])
        is_set = operator in ("and", "or", "unless")
        is_comparison = operator in ("==", "!=", ">", "<", ">=", "<=")
        truth = " bool" if is_comparison and rng.random() < 0.4 else ""
        if not is_set and rng.random() < 0.4:
            sides = [self.vector(depth - 1), self.scalar(depth - 1)]
            rng.shuffle(sides)
            return f"({sides[0]}) {operator}{truth} ({sides[1]})"
        matching = ""
        if rng.random() < 0.6:
            labels = sorted({self.label() for _ in range(rng.randrange(1, 3))})
            matching = f" {rng.choice(['on', 'ignoring'])} ({', '.join(labels)})"
            if not is_set and rng.random() < 0.4:
                extra = rng.choice(["", "", "type"])
                matching += f" {rng.choice(['group_left', 'group_right'])} ({extra})"
        return f"({self.vector(depth - 1)}) {operator}{truth}{matching} ({self.vector(depth - 1)})"

    def vector(self, depth):
        rng = self.rng
        if depth <= 0:
            return self.selector()
        choice = rng.randrange(10)
        if choice < 1:
            return self.selector()
        if choice < 4:
            return self.over_time(depth)
        if choice < 6:
            return self.aggregation(depth)
        if choice < 7:
            return self.function(depth)
        if choice < 9:
            return self.binary(depth)
        return f"-{self.vector(0)}"

    def expression(self):
        if self.rng.random() < 0.03:
            return self.scalar(2)
        return self.vector(self.rng.randrange(0, 4))


def number(text):
    return float(text)


def same(a, b):
    a, b = number(a), number(b)
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    if a == b:
        return True
    # A sum of many values differs in its last digits with their order; what is 0 in one may be tiny in the other.
    return abs(a - b) <= 1e-9 * max(abs(a), abs(b)) or abs(a - b) < 1e-9


def by_labels(result):
    return sorted(((json.dumps(it["metric"], sort_keys=True), it) for it in result), key=lambda it: it[0])


def difference(ours, theirs):
    """What is not the same; None if all is."""
    if ours["status"] != theirs["status"]:
        return f"status {ours.get('error', 'success')} | {theirs.get('error', 'success')}"
    if ours["status"] == "error":
        return None if ours["errorType"] == theirs["errorType"] else f"error {ours['error']} | {theirs['error']}"
    ours, theirs = ours["data"], theirs["data"]
    if ours["resultType"] != theirs["resultType"]:
        return f"type {ours['resultType']} | {theirs['resultType']}"
    if ours["resultType"] == "string":
        return None if ours["result"] == theirs["result"] else f"{ours['result']} | {theirs['result']}"
    if ours["resultType"] == "scalar":
        return None if same(ours["result"][1], theirs["result"][1]) else f"{ours['result']} | {theirs['result']}"
    left, right = by_labels(ours["result"]), by_labels(theirs["result"])
    if [it[0] for it in left] != [it[0] for it in right]:
        only = lambda a, b: [it[0] for it in a if it[0] not in {other[0] for other in b}][:3]
        return f"series {len(left)} | {len(right)}: only ours {only(left, right)}, only theirs {only(right, left)}"
    for (labels, one), (_, other) in zip(left, right):
        a = [one["value"]] if "value" in one else one["values"]
        b = [other["value"]] if "value" in other else other["values"]
        if [it[0] for it in a] != [it[0] for it in b]:
            missing = sorted({it[0] for it in a} ^ {it[0] for it in b})[:3]
            return f"{labels}: times differ at {missing}"
        for (when, x), (_, y) in zip(a, b):
            if not same(x, y):
                return f"{labels} @{when}: {x} | {y}"
    return None


def are_ties(query, ours, theirs):
    """Whether topk or bottomk has chosen others among series with the same values, which no order decides."""
    if "topk" not in query and "bottomk" not in query or ours["status"] == "error" or theirs["status"] == "error":
        return False

    def values(answer):
        for series in answer["data"]["result"]:
            for when, value in [series["value"]] if "value" in series else series["values"]:
                yield when, number(value)

    one, other = sorted(values(ours)), sorted(values(theirs))
    return len(one) == len(other) and all(a[0] == b[0] and same(a[1], b[1]) for a, b in zip(one, other))


def compare(options, rng, ours, theirs, first):
    generator = Generator(rng, first)
    last = first + ROWS * STEP
    counts = {"equal": 0, "empty": 0, "errors": 0, "ties": 0, "different": 0}
    fixed = fixed_expressions() if options.fixed else []
    for index in range(options.count + len(fixed)):
        query = generator.expression() if index < options.count else fixed[index - options.count]
        at = rng.randrange(first, last + 400)
        step = rng.choice([10, 30, 60, 17, 300])
        start = rng.randrange(first - 100, last - 1000)
        asked = [
            ("query", {"query": query, "time": at}),
            ("query_range", {"query": query, "start": start, "end": start + step * rng.randrange(1, 60), "step": step}),
        ]
        for name, parameters in asked:
            one, other = ask(ours, name, parameters), ask(theirs, name, parameters)
            found = difference(one, other)
            if found is not None and are_ties(query, one, other):
                counts["ties"] += 1
            elif found is not None:
                counts["different"] += 1
                print(f"DIFFERENT {index} {name} {parameters}\n    {found}")
            elif one["status"] == "error":
                counts["errors"] += 1
                if options.verbose:
                    print(f"error {index} {query}: {one['error']} | {other['error']}")
            elif not one["data"]["result"]:
                counts["empty"] += 1
            else:
                counts["equal"] += 1
    for name, parameters in [
        ("labels", {}),
        ("label/host/values", None),
        ("label/__name__/values", None),
        ("series", {"match[]": "rrd_value"}),
    ]:
        def get(port):
            if parameters is None:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/{name}", timeout=30) as answer:
                    return json.load(answer)
            return ask(port, name, parameters)

        key = lambda answer: sorted(json.dumps(it, sort_keys=True) for it in answer["data"])
        if key(get(ours)) != key(get(theirs)):
            counts["different"] += 1
            print(f"DIFFERENT {name}: {get(ours)} | {get(theirs)}")
    return counts


def main():
    options = parse_arguments()
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory(prefix="kymo-promql-") as directory:
        first = int(time.time()) // STEP * STEP - (ROWS + 60) * STEP
        pending, kinds = make(options, rng, directory, first)
        blocks, samples = to_prometheus(options, directory, kinds)
        ours, theirs = free_port(), free_port()
        config = os.path.join(directory, "prometheus.yml")
        open(config, "w").close()
        log = open(os.path.join(directory, "log"), "w")
        sock = os.path.join(directory, "sock")
        environment = dict(os.environ, XDG_RUNTIME_DIR=directory)
        servers = [
            subprocess.Popen(
                [
                    options.prometheus,
                    f"--config.file={config}",
                    f"--storage.tsdb.path={blocks}",
                    "--storage.tsdb.retention.time=100y",
                    f"--web.listen-address=127.0.0.1:{theirs}",
                ],
                stdout=log,
                stderr=log,
            ),
            subprocess.Popen(
                [
                    options.kymo,
                    "serve",
                    "--data",
                    os.path.join(directory, "part"),
                    "--rrdcached",
                    f"unix:{sock}",
                    "--query",
                    f"127.0.0.1:{ours}",
                ],
                stdout=log,
                stderr=log,
                env=environment,
            ),
        ]
        try:
            wait_for(ours)
            wait_for(theirs)
            feed(sock, pending)
            counts = compare(options, rng, ours, theirs, first)
            counts["tool"] = promtool(options, ours, first)
            if options.fixed:
                for what, (number, differences) in [
                    ("requests", compare_requests(ours, theirs, first)),
                    ("hostile", hostile(ours, servers[1], first)),
                ]:
                    counts[what] = number
                    counts["different"] += len(differences)
                    for difference in differences:
                        print(f"DIFFERENT {what}: {difference}")
        finally:
            for server in servers:
                server.terminate()
            for server in servers:
                server.wait()
    print(f"{samples} samples, {options.count} expressions twice: {json.dumps(counts)}")
    sys.exit(1 if counts["different"] else 0)


def promtool(options, port, first):
    """promtool's own queries of kymo."""
    url = f"http://127.0.0.1:{port}"
    at = str(first + 1000)
    commands = [
        ["query", "instant", "--time", at, url, "count(rrd_value)"],
        ["query", "range", "--start", at, "--end", str(first + 2000), "--step", "60s", url, "sum(rrd_value)"],
        ["query", "series", "--match", "rrd_value", "--start", at, url],
        ["query", "labels", url, "host"],
    ]
    for command in commands:
        done = subprocess.run([options.promtool, *command], capture_output=True, text=True)
        if done.returncode or not done.stdout.strip():
            raise SystemExit(f"promtool {command}: {done.stdout}{done.stderr}")
    return f"{len(commands)} queries of promtool answered"


if __name__ == "__main__":
    main()
