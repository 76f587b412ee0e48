"""Compares kymo's analyses with what their definitions say, on traces that are made up.

usage: check_analyses.py KYMO ROUNDS SEED

The traces hold calls within calls on two tracks, of which beginnings and ends are lost at random, values of a field,
and times that are all different. Everything is computed here from the list of events, without kymo. Prints the number
of comparisons; ends with an exception at the first that fails.
"""

import csv
import io
import json
import math
import os
import random
import struct
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict

METADATA = """/* CTF 1.8 */
trace { major = 1; minor = 8; byte_order = le; };
clock { name = c; freq = 1000000000; };
typealias integer { size = 8; } := u8;
typealias integer { size = 64; map = clock.c.value; } := stamp;
typealias floating_point { exp_dig = 11; mant_dig = 53; align = 8; } := double;
stream { event.header := struct { u8 id; stamp timestamp; }; };
event { name = "begin"; id = 0; fields := struct { u8 key; string who; double value; }; };
event { name = "end"; id = 1; fields := struct { u8 key; }; };
event { name = "note"; id = 2; fields := struct { string who; double value; }; };
"""
BEGIN, END, NOTE = range(3)


def make(folder, rng):
    """Writes a trace; returns its events as (time, track, class, key, who, value)."""
    events, time, open_calls = [], 1000, [[], []]
    for _ in range(rng.randrange(50, 1500)):
        time += rng.randrange(1, 1 << rng.randrange(1, 20))
        track = rng.randrange(2)
        calls = open_calls[track]
        who = rng.choice(["a", "b", "c, d", 'e"'])
        value = rng.choice([rng.gauss(0, 50), float(rng.randrange(-20, 200)), rng.lognormvariate(3, 2)])
        kind = rng.random()
        if kind < 0.1:
            event = (time, track, NOTE, None, who, value)
        elif kind < 0.55 or not calls:
            key = rng.randrange(4)
            calls.append(key)
            event = (time, track, BEGIN, key, who, value)
        else:
            event = (time, track, END, calls.pop(), None, None)
        if rng.random() >= 0.08:
            events.append(event)
    with open(os.path.join(folder, "metadata"), "w") as out:
        out.write(METADATA)
    for track in range(2):
        data = b""
        for when, number, kind, key, who, value in events:
            if number != track:
                continue
            data += struct.pack("<BQ", kind, when)
            if key is not None:
                data += struct.pack("<B", key)
            if who is not None:
                data += who.encode() + b"\0" + struct.pack("<d", value)
        if data:
            with open(os.path.join(folder, f"track{track}"), "wb") as out:
                out.write(data)
    return events


def latencies(events, shared):
    """Pairs of an end with the last start before it that is like it: (start, end)."""
    found, open_starts, replaced, stray = [], {}, 0, 0
    for event in events:
        if event[2] == BEGIN:
            replaced += shared(event) in open_starts
            open_starts[shared(event)] = event
        elif event[2] == END:
            start = open_starts.pop(shared(event), None)
            if start:
                found.append((start, event))
            else:
                stray += 1
    return found, {"replaced": replaced, "open": len(open_starts), "unmatched_ends": stray}


def calls(events):
    """Ended calls with the time in each without what it calls: (enter, exit, self)."""
    found, stacks = [], defaultdict(list)
    for event in events:
        stack = stacks[event[1]]
        if event[2] == BEGIN:
            stack.append([event, 0])
        elif event[2] == END:
            places = [at for at, frame in enumerate(stack) if frame[0][3] == event[3]]
            if not places:
                continue
            at = places[-1]
            inner = sum(frame[1] for frame in stack[at:])
            enter = stack[at][0]
            del stack[at:]
            whole = event[0] - enter[0]
            if stack:
                stack[-1][1] += whole
            found.append((enter, event, whole - inner))
    return found


def percentile(values, share):
    return sorted(values)[max(math.ceil(len(values) * share), 1) - 1]


def near(found, exact, share):
    return abs(found - exact) <= abs(exact) * share + 1e-9


class Checks:
    def __init__(self, kymo, folder):
        self.kymo, self.folder, self.count = kymo, folder, 0

    def run(self, *args):
        command = [self.kymo, *args, self.folder]
        done = subprocess.run(command, capture_output=True, check=False)
        assert done.returncode == 0 and not done.stderr, (args, done.stderr)
        return done.stdout.decode()

    def json(self, *args):
        return json.loads(self.run(*args, "--json"))

    def same(self, what, found, exact, share=0.0):
        self.count += 1
        assert near(found, exact, share) if share else found == exact, (self.folder, what, found, exact)

    def groups(self, what, report, expected):
        """`expected`: by values of a group, (duration, begin) of each."""
        by = lambda group: tuple(group["by"].values())
        self.same((what, "groups"), {by(group) for group in report["groups"]}, set(expected))
        for group in report["groups"]:
            all_of = expected[by(group)]
            times = [duration for duration, _ in all_of]
            mean = sum(times) / len(times)
            tell = lambda key, exact, share=0.0: self.same((what, by(group), key), group[key], exact, share)
            tell("count", len(times))
            tell("total", sum(times))
            tell("min", min(times))
            tell("max", max(times))
            tell("mean", mean, 1e-9)
            if len(times) > 1:
                squares = sum((time - mean) ** 2 for time in times)
                tell("deviation", math.sqrt(squares / (len(times) - 1)), 1e-6)
            for key, share in [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)]:
                tell(key, percentile(times, share), 0.005)
            assert (max(times), group["max_at"]) in all_of, (what, by(group))


def grouped(items, key):
    groups = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return groups


def durations(pairs, key):
    groups = grouped(pairs, lambda pair: key(pair[0]))
    return {by: [(end[0] - start[0], start[0]) for start, end in pairs] for by, pairs in groups.items()}


def check(kymo, folder, events):
    checks = Checks(kymo, folder)
    who = lambda event: (event[4],)
    ends = ["--start", "begin", "--end", "end"]

    for pair_by, shared in [("key", lambda event: event[3]), ("track", lambda event: event[1]),
                            ("track,key", lambda event: (event[1], event[3]))]:
        pairs, unmatched = latencies(events, shared)
        report = checks.json("latency", *ends, "--pair-by", pair_by, "--by", "who")
        checks.same("pairs", report["pairs"], len(pairs))
        for key, exact in unmatched.items():
            checks.same((pair_by, key), report[key], exact)
        checks.groups(("latency", pair_by), report, durations(pairs, who))
    pairs, _ = latencies(events, lambda event: event[3])
    by_value = durations(pairs, lambda event: (event[3], "begin"))
    report = checks.json("latency", *ends, "--pair-by", "key", "--by", "key,name")
    checks.groups("key,name", report, by_value)

    # Every single one, and series.
    rows = list(csv.DictReader(io.StringIO(checks.run("latency", *ends, "--pair-by", "key", "--by", "who", "--all"))))
    found = sorted((int(row["begin"]), int(row["end"]), row["who"]) for row in rows)
    checks.same("all", found, sorted((start[0], end[0], start[4]) for start, end in pairs))
    step = 1 << 18
    series = checks.run("latency", *ends, "--pair-by", "key", "--by", "who", "--every", f"{step}ns", "--json")
    series = [json.loads(line) for line in series.splitlines()]
    exact = grouped(pairs, lambda pair: (pair[1][0] // step * step, pair[0][4]))
    found = {(row["begin"], row["by"]["who"]): (row["count"], row["total"], row["max"]) for row in series}
    times = lambda pairs: [end[0] - start[0] for start, end in pairs]
    checks.same("every", found, {key: (len(own), sum(times(own)), max(times(own))) for key, own in exact.items()})

    # States: one at a time, and by key.
    begins = [event for event in events if event[2] == BEGIN]
    for options, per in [([], lambda event: None), (["--per", "key"], lambda event: event[3])]:
        last, states = {}, []
        for event in begins:
            if per(event) in last:
                states.append((last[per(event)], event))
            last[per(event)] = event
        report = checks.json("states", "--state-event", "begin", "--by", "who", *options)
        checks.groups("states", report, durations(states, who))

    found = calls(events)
    groups = grouped(found, lambda call: (call[0][4],))
    exact = {by: [(own, enter[0]) for enter, _, own in group] for by, group in groups.items()}
    report = checks.json("profile", "--enter", "begin", "--exit", "end", "--key", "key", "--by", "who")
    checks.groups("profile", report, exact)

    # Events and values.
    report = checks.json("stats", "--by", "name,who")
    name = ["begin", "end", "note"]
    exact = grouped(events, lambda event: (name[event[2]], event[4]))
    found = {tuple(row["by"].values()): (row["events"], row["begin"], row["end"]) for row in report["groups"]}
    checks.same("stats", found, {by: (len(group), group[0][0], group[-1][0]) for by, group in exact.items()})

    valued = [event for event in events if event[5] is not None]
    report = checks.json("values", "--field", "value", "--by", "who", "--outliers", "2.5", "--worst", "100000")
    groups = grouped(valued, lambda event: event[4])
    outliers = []
    for group in report["groups"]:
        own = groups.pop(group["by"]["who"])
        values = [event[5] for event in own]
        mean = sum(values) / len(values)
        checks.same("count", group["count"], len(values))
        checks.same("min", group["min"], min(values))
        checks.same("max", group["max"], max(values))
        scale = max(abs(value) for value in values)
        assert abs(group["mean"] - mean) <= 1e-9 * scale
        for key, share in [("p1", 0.01), ("p25", 0.25), ("p50", 0.5), ("p95", 0.95), ("p99", 0.99)]:
            checks.same(key, group[key], percentile(values, share), 0.005)
        checks.same("histogram", sum(bar["count"] for bar in group["histogram"]), len(values))
        if len(values) > 1:
            deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))
            checks.same("deviation", group["deviation"], deviation, 1e-6)
            outliers += [event[0] for event in own if abs(event[5] - mean) > 2.5 * deviation]
    checks.same("groups of values", groups, {})
    checks.same("outliers", sorted(outlier["time"] for outlier in report["outliers"]), sorted(outliers))
    report = checks.json("values", "--field", "who")
    found = {row["text"]: row["count"] for row in report["groups"][0]["texts"]}
    checks.same("texts", found, dict(Counter(event[4] for event in valued)))
    return checks.count


def main():
    kymo, rounds, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    count = 0
    for number in range(rounds):
        rng = random.Random(f"{seed}/{number}")
        with tempfile.TemporaryDirectory() as folder:
            count += check(kymo, folder, make(folder, rng))
    print(count)


main()
