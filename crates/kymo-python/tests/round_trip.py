"""Recordings through Parquet: pyarrow, polars and DuckDB read the values that `kymo print --format json` prints.

    python round_trip.py PATH...

checks each recording below the paths, and tells how many values were compared.
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
from conftest import printed

SCOPES = (("payload", "payload"), ("specific_context", "specific_context"), ("common_context", "context"))
OWN = ("timestamp", "ticks", "stream", "packet", "number", "track", "recording")


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
        try:
            # What is nested in too many others is a text of JSON.
            return json.loads(column) == expected
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
            if found is None:
                continue
            members = found.items() if isinstance(found, dict) else [(prefix, found)]
            for name, value in members:
                while name in values:
                    name = f"{prefix}.{name}"
                values[name] = of_json(value)
        name = row.get("event")
        name = str(row.get("event_class")) if name is None else name
        classes[name, row["recording"]].append((row["timestamp"], values))
    return classes


def own(column, names):
    """What one of kymo's own columns is called beside others."""
    while f"_{column}" in names:
        column = f"_{column}"
    return column


#: Traces of which members of event headers select what other fields are: tables do not keep these members.
OF_HEADERS = {"pass-vars"}


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


def check_back(source, rows, target):
    """Compares what is printed of the tables of traces with what is printed of these, and of a trace made of them."""
    expected = [replaced(comparable(row)) for row in rows]
    with tempfile.TemporaryDirectory() as place:
        trace, direct = pathlib.Path(place) / "trace", pathlib.Path(place) / "direct"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kymo.convert(target, trace, to="ctf2")
            if len(printed(target)) != len(expected):
                # Events that CTF 2 cannot hold, such as those without any bits.
                kymo.convert(source, direct, to="ctf2")
                expected = [replaced(comparable(row)) for row in printed(direct)]
        for path in (target, trace):
            found = [comparable(row) for row in printed(path)]
            assert len(found) == len(expected), (path.name, len(found), len(expected))
            for one, other in zip(found, expected):
                assert one == other, (path.name, one, other)


def check(path):
    """Compares the values of a recording; returns their number."""
    compared = 0
    printed_rows = printed(path)
    expected = rows_of_json(printed_rows)
    with tempfile.TemporaryDirectory() as place:
        target = pathlib.Path(place) / "tables"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kymo.convert(path, target, to="parquet")
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
        if printed_rows and is_trace and path.name not in OF_HEADERS:
            check_back(path, printed_rows, target)
    return compared


def check_events(path):
    """Compares events one by one; returns the number of values."""
    compared = 0
    rows = [row for row in printed(path) if row.get("kind") == "event"]
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
    return compared


def is_whole(path):
    """Whether a recording can be opened without complaints."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kymo.open(path, strict=True).close()
    except kymo.Error:
        return False
    return True


def main(paths):
    metadata = [file.parent for path in paths for file in sorted(pathlib.Path(path).rglob("metadata"))]
    logs = [file for path in paths for ending in ("cpel", "elog") for file in sorted(pathlib.Path(path).rglob(f"*.{ending}"))]
    compared = read = failed = 0
    for path in metadata + logs:
        if not is_whole(path):
            continue
        try:
            compared += check(path) + check_events(path)
            read += 1
        except Exception as error:
            failed += 1
            print(f"{path}: {type(error).__name__}: {str(error)[:300]}")
    print(f"{read} recordings, {compared} values compared, {failed} failed")
    return 1 if failed or not compared else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
