"""Recordings through Parquet: pyarrow, polars and DuckDB read the values that `kymo print --format json` prints.

    python round_trip.py PATH...

checks each recording below the paths, and reports how many values were compared. Samples of databases and metrics are
checked, too. Of recordings with damage, what can be read is compared. `KYMO_TEST_PROGRAM` names a program to print and
convert with, in place of the package's.
"""

import collections
import json
import math
import pathlib
import sys
import tempfile
import urllib.parse
import warnings

import duckdb
import kymo
import polars
import pyarrow
import pyarrow.parquet
from conftest import printed, program

SCOPES = (("payload", "payload"), ("specific_context", "specific_context"), ("common_context", "context"))
OWN = ("timestamp", "ticks", "stream", "packet", "number", "track", "recording")


#: What every event of a log or of a notification has, beside its fields.
OF_EVENTS = ("timestamp", "recording", "kind", "schema", "event", "event_class")


def flat(row):
    """The fields of an event that are beside what every event has: those of logs and notifications."""
    if "trace" in row or "payload" in row:
        return None
    return {key: value for key, value in row.items() if key not in OF_EVENTS}


def of_json(value):
    """A value of JSON as columns have it."""
    if isinstance(value, dict):
        if set(value) in ({"value", "labels"}, {"value", "flags"}):
            return value["value"]
        if not value:
            # A structure without members says whether it is there.
            return True
        members = {key: of_json(one) for key, one in value.items()}
        return {key: one for key, one in members.items() if one is not None} or None
    if isinstance(value, list):
        return [of_json(one) for one in value]
    if value in ("NaN", "Infinity", "-Infinity"):
        return value
    return value


def of_column(value):
    """A value of a column as JSON has it."""
    if isinstance(value, dict):
        if not value:
            return True
        # Labels have a member beside the number.
        members = {key: of_column(one) for key, one in value.items() if not key.endswith(".labels")}
        return {key: one for key, one in members.items() if one is not None} or None
    if isinstance(value, (list, tuple)):
        return [of_column(one) for one in value]
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).hex()
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
    return value


def matches(column, expected):
    """Whether a value of a column is that of JSON."""
    if column == expected:
        return True
    if isinstance(expected, dict) and isinstance(column, dict):
        keys = set(column) | set(expected)
        if all(matches(column.get(key), expected.get(key)) for key in keys):
            return True
    if isinstance(column, dict) and len(column) == 1:
        # Of a variant, each option is a member.
        return matches(next(iter(column.values())), expected)
    if isinstance(expected, list) and isinstance(column, list):
        return len(expected) == len(column) and all(map(matches, column, expected))
    if isinstance(expected, bool) or isinstance(column, bool):
        # A structure without members says whether it is there.
        return bool(column) == (expected is not None if not isinstance(expected, bool) else expected) or column == expected
    if isinstance(column, float) and isinstance(expected, (int, float)):
        # 32 bits have fewer digits.
        return column == expected or pyarrow.scalar(float(expected), "float32").as_py() == column
    if isinstance(expected, str) and isinstance(column, str):
        # What is not UTF-8 is a lone surrogate in JSON.
        if expected.encode("utf-8", "surrogateescape").decode("utf-8", "replace") == column:
            return True
        if expected.startswith(("0x", "-0x")):
            size = len(column) // 2
            number = int.from_bytes(bytes.fromhex(column), "big")
            return number == int(expected, 16) or number - (1 << (8 * size)) == int(expected, 16) or (
                number & ((1 << (4 * (len(expected) - 2))) - 1)
            ) == int(expected, 16)
    if isinstance(column, str):
        try:
            # What is nested in too many others is a text of JSON.
            return of_json(json.loads(column)) == expected
        except ValueError:
            return False
    return False


def rows_of_json(rows):
    """Of each class of each recording, its rows: time, and the values by the names of columns."""
    classes = collections.defaultdict(list)
    for row in rows:
        if row.get("kind") != "event":
            continue
        values = {}
        for scope, prefix in SCOPES:
            found = row.get(scope)
            if scope == "payload":
                found = flat(row) if found is None else found
            if found is None:
                continue
            members = found.items() if isinstance(found, dict) else [(prefix, found)]
            for name, value in members:
                while name in values:
                    name = f"{prefix}.{name}"
                values[name] = of_json(value)
        name = row.get("event")
        if name is None and "severity" in row:
            name = "notification"
        name = str(row.get("event_class")) if name is None else name
        classes[name, row["recording"]].append((row["timestamp"], values))
    return classes


def own(column, names):
    """What one of kymo's own columns is called beside others."""
    while f"_{column}" in names:
        column = f"_{column}"
    return column


#: Traces that tables do not keep as a whole: members of event headers select what other fields are, and fields are nested
#: in more than 32 others.
NOT_KEPT = {"pass-vars", "nest-65"}


def comparable(row):
    """An event without what tables of a trace do not keep: where it was."""
    row = {key: value for key, value in row.items() if key not in ("recording", "trace")}
    if "checksum" in row.get("packet_context", {}):
        # What packets of RFC v1.1 say of themselves is not kept apart in CTF 2.
        del row["packet_context"]
        # There, a length lies before its elements and is not a field.
        for scope, _ in SCOPES:
            row[scope] = without_lengths(row[scope]) if scope in row else None
        row = {key: value for key, value in row.items() if value is not None}
    return row


def without_lengths(value):
    """A value of a trace of RFC v1.1 in CTF 2 without the fields that say how long others are."""
    if isinstance(value, dict):
        return {
            key: without_lengths(one)
            for key, one in value.items()
            if not (key.endswith("_length") and key.removesuffix("_length") in value)
        }
    if isinstance(value, list):
        return [without_lengths(one) for one in value]
    return value


def replaced(value):
    """A value without what is not UTF-8."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    if isinstance(value, list):
        return [replaced(one) for one in value]
    if isinstance(value, dict):
        return {key: replaced(one) for key, one in value.items()}
    return value


def converted(path, target, to):
    """Converts a recording, of which some may be damaged."""
    done = program("convert", "--to", to, "-o", str(target), "--", str(path))
    assert done.returncode in (0, 1), done.stderr.decode()


def check_samples(rows, target):
    """Compares the values of samples; returns their number."""
    expected = collections.Counter()
    for row in rows:
        if row.get("kind") != "sample":
            continue
        if "archive_index" in row:
            archive = f"archive {row['archive_index']} / "
            values = [(archive + name, value) for name, value in row["payload"].items()]
        else:
            several = len(row["values"]) > 1
            names = [f"{row['id']} / values" + (f"[{place}]" if several else "") for place in range(len(row["values"]))]
            values = zip(names, (value for _, value in row["values"]))
        for series, value in values:
            # What is unknown has no value.
            value = None if value is None or value == "NaN" else float(value)
            expected[row["timestamp"], row["recording"], series, value] += 1
    file = target / "samples/part-0.parquet"
    if not expected:
        assert not file.exists()
        return 0
    readers = (
        pyarrow.parquet.ParquetFile(file).read(),
        polars.read_parquet(file).to_arrow(),
        duckdb.sql(f"SELECT * FROM read_parquet('{file}')").to_arrow_table(),
    )
    for table in readers:
        columns = (table["timestamp"].cast("int64"), table["recording"], table["series"], table["value"])
        found = collections.Counter()
        for time, recording, series, value in zip(*(column.to_pylist() for column in columns)):
            found[time, recording, series, of_column(value)] += 1
        wanted = collections.Counter()
        for (time, recording, series, value), count in expected.items():
            wanted[time, recording, series, of_column(value)] += count
        assert found == wanted, (found - wanted, wanted - found)
    return 3 * sum(expected.values())


def check_back(source, rows, target):
    """Compares what is printed of the tables of traces with what is printed of these, and of a trace made of them."""
    expected = [replaced(comparable(row)) for row in rows]
    with tempfile.TemporaryDirectory() as place:
        trace, direct = pathlib.Path(place) / "trace", pathlib.Path(place) / "direct"
        converted(target, trace, "ctf2")
        if len(printed(target)) != len(expected):
            # Events that CTF 2 cannot hold, such as those without any bits.
            converted(source, direct, "ctf2")
            expected = [replaced(comparable(row)) for row in printed(direct)]
        for path in (target, trace):
            found = [comparable(row) for row in printed(path)]
            assert len(found) == len(expected), (path.name, len(found), len(expected))
            for one, other in zip(found, expected):
                assert one == other, (path.name, one, other)


def check(path, has_damage=False):
    """Compares the values of a recording; returns their number."""
    compared = 0
    printed_rows = printed(path)
    expected = rows_of_json(printed_rows)
    with tempfile.TemporaryDirectory() as place:
        target = pathlib.Path(place) / "tables"
        converted(path, target, "parquet")
        compared += check_samples(printed_rows, target)
        found = collections.defaultdict(lambda: ([], [], []))
        for file in sorted(target.glob("class=*/part-*.parquet")):
            name = urllib.parse.unquote(file.parent.name.removeprefix("class="))
            arrow = pyarrow.parquet.ParquetFile(file).read()
            assert arrow.num_rows > 0
            time, recording = own("timestamp", arrow.column_names), own("recording", arrow.column_names)
            readers = (
                arrow,
                polars.read_parquet(file, hive_partitioning=False).to_arrow(),
                duckdb.sql(f"SELECT * FROM read_parquet('{file}', hive_partitioning = false)").to_arrow_table(),
            )
            for position, table in enumerate(readers):
                columns = {name: table[name] for name in arrow.column_names}
                columns[time] = columns[time].cast("int64")
                lists = {name: column.to_pylist() for name, column in columns.items()}
                for row in range(table.num_rows):
                    values = {name: of_column(column[row]) for name, column in lists.items()}
                    key = (name, values[recording])
                    found[key][position].append((values[time], values))
        names = {name for name, _ in expected}
        for (name, recording), rows in expected.items():
            # Long names are cut.
            key = next((key for key in found if key == (name, recording)), None)
            if key is None:
                key = next(key for key in found if key[1] == recording and key[0] not in names and "~" in key[0])
            for reader in found.pop(key):
                assert len(reader) == len(rows), (name, len(reader), len(rows))
                order = lambda row: -1 if row[0] is None else row[0]
                for (time, values), (wanted_time, wanted) in zip(sorted(reader, key=order), sorted(rows, key=order)):
                    assert time == wanted_time
                    for column, value in wanted.items():
                        assert matches(values.get(column), value), (name, column, values.get(column), value)
                        compared += 1
        assert not found, list(found)
        is_trace = all(row.get("kind") == "event" and "trace" in row for row in printed_rows)
        if printed_rows and is_trace and not has_damage and path.name not in NOT_KEPT:
            check_back(path, printed_rows, target)
    return compared


def check_events(path):
    """Compares events one by one; returns the number of values."""
    compared = 0
    rows = [row for row in printed(path) if "kind" in row]
    if any(row["kind"] == "sample" or row.get("event") is None and "severity" in row for row in rows):
        # Metrics are values of series.
        return 0
    rows = [row for row in rows if row["kind"] == "event"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        events = list(kymo.open(path).iter())
    assert len(events) == len(rows)
    for event, row in zip(events, rows):
        assert event.timestamp == row["timestamp"]
        assert event.name == (str(row["event_class"]) if row["event"] is None else row["event"])
        for scope, _ in SCOPES:
            wanted = row.get(scope)
            if wanted is not None:
                assert matches(of_column(getattr(event, scope)), of_json(wanted)), (scope, getattr(event, scope), wanted)
                compared += 1
        for key, wanted in (flat(row) or {}).items():
            assert matches(of_column(event[key]), wanted), (key, event[key], wanted)
            compared += 1
    return compared


def opens(path):
    """Whether a recording can be opened: `None` if not, else whether it has damage."""
    for strict in (True, False):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                kymo.open(path, strict=strict).close()
            return not strict
        except kymo.Error:
            pass
    return None


#: The endings of files that are recordings.
ENDINGS = ("cpel", "elog", "rrd", "bin")


def main(paths):
    found = []
    for path in map(pathlib.Path, paths):
        found += [file.parent for file in sorted(path.rglob("metadata"))]
        for ending in ENDINGS:
            found += sorted(path.rglob(f"*.{ending}")) if path.is_dir() else [path] * path.name.endswith(f".{ending}")
    compared = read = failed = unread = 0
    for path in found:
        has_damage = opens(path)
        if has_damage is None:
            unread += 1
            continue
        try:
            compared += check(path, has_damage) + check_events(path)
            read += 1
        except Exception as error:
            failed += 1
            print(f"{path}: {type(error).__name__}: {str(error)[:300]}", flush=True)
    print(f"{read} recordings, {compared} values compared, {failed} failed, {unread} cannot be opened")
    return 1 if failed or not compared else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
