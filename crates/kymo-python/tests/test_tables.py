"""Recordings as tables: every library reads what `kymo print --format json` prints."""

import os

import duckdb
import kymo
import numpy
import pandas
import polars
import pyarrow
import pytest
import round_trip
from conftest import CORPORA, EXAMPLES, printed


def test_every_library_takes_a_table(trace):
    events = kymo.open(trace).events("demo:sched", columns=["timestamp", "prev_comm", "next_prio", "event"])
    expected = printed(trace, options=["--event", "demo:sched"])
    assert expected
    times = [row["timestamp"] for row in expected]
    names = [row["payload"]["prev_comm"] for row in expected]
    numbers = [row["payload"]["next_prio"] for row in expected]

    table = pyarrow.table(events)
    assert table.column("timestamp").cast("int64").to_pylist() == times
    assert table.column("prev_comm").to_pylist() == names
    assert table.column("next_prio").to_pylist() == numbers
    assert set(table.column("event").to_pylist()) == {"demo:sched"}
    assert str(table.schema.field("timestamp").type) == "timestamp[ns, tz=UTC]"

    frame = pandas.DataFrame.from_arrow(events)
    assert frame["prev_comm"].tolist() == names
    assert frame["timestamp"].astype("int64").tolist() == times
    assert str(frame["timestamp"].dt.tz) == "UTC"

    frame = polars.DataFrame(events)
    assert frame["next_prio"].to_list() == numbers
    assert frame["timestamp"].dt.timestamp("ns").to_list() == times
    assert polars.LazyFrame(events).select(polars.len()).collect().item() == len(times)

    # DuckDB asks for the stream several times.
    rows = duckdb.sql("SELECT prev_comm, count(*) FROM events GROUP BY ALL ORDER BY ALL").fetchall()
    assert rows == sorted((name, names.count(name)) for name in set(names))

    arrays = events.to_numpy()
    assert arrays["timestamp"].astype("int64").tolist() == times
    assert arrays["next_prio"].dtype == numpy.int32
    assert arrays["prev_comm"].tolist() == names


@pytest.mark.parametrize("rows", [1, 7, None])
def test_numpy_has_the_values_of_arrow(trace, rows):
    """Columns grow batch by batch; fields that the first events lack are null there."""
    events = kymo.open(trace).events(batch_rows=rows)
    table = pyarrow.table(events)
    arrays = events.to_numpy()
    assert list(arrays) == table.column_names
    masked = 0
    for name, array in arrays.items():
        column = table.column(name)
        if pyarrow.types.is_timestamp(column.type):
            column, array = column.cast("int64"), array.astype("int64")
        assert repr(array.tolist()) == repr(column.to_pylist()), name
        masked += numpy.ma.isMaskedArray(array)
    assert masked > 10


@pytest.mark.parametrize("name", ["lttng-small", "rfc-small", "bitfield-le", "bitfield-be", "lttng-discarded"])
def test_all_values_are_those_of_json(name):
    assert round_trip.check(EXAMPLES / name) > 0
    assert round_trip.check_events(EXAMPLES / name) > 0


def test_selections(trace):
    recordings = kymo.open(trace)
    all = printed(trace)
    middle = all[len(all) // 2]["timestamp"]
    assert len(pyarrow.table(recordings.events(begin=middle))) == sum(row["timestamp"] >= middle for row in all)
    early = recordings.events(end=pandas.Timestamp(middle, tz="UTC"), columns=["timestamp"])
    assert len(pyarrow.table(early)) == sum(row["timestamp"] <= middle for row in all)
    chosen = recordings.events(where="next_prio == 20", columns=["next_prio"], limit=3)
    assert set(pyarrow.table(chosen)["next_prio"].to_pylist()) <= {20}
    assert pyarrow.table(recordings.events("no such*")).num_rows == 0
    with pytest.raises(kymo.QueryError, match="unknown field"):
        recordings.events(where="nosuchfield == 1")
    with pytest.raises(kymo.QueryError, match="nosuch"):
        recordings.events(columns=["nosuch"])
    with pytest.raises(kymo.QueryError, match="did you mean `demo:sched`"):
        recordings.events("demo:shed")
    with pytest.raises(kymo.QueryError, match="no event is called"):
        next(recordings.iter("nosuch"))
    assert recordings.events("nosuch*").to_arrow().num_rows == 0
    with pytest.raises(kymo.QueryError):
        recordings.events(begin="not a time")


def test_tables_of_notebooks(trace):
    recordings = kymo.open(trace)
    assert recordings._repr_html_().startswith("<svg")
    html = recordings.events("demo:sched")._repr_html_()
    assert html.startswith("<table>") and "prev_comm" in html
    assert "demo:sched" in repr(recordings.classes)
    assert "next_comm: Utf8" in repr(recordings.events("demo:sched"))


def test_samples(tmp_path):
    import kymo.rrd as rrdtool

    path = str(tmp_path / "load.rrd")
    rrdtool.create(path, "--start", "1000000000", "--step", "10", "DS:a:GAUGE:20:U:U", "RRA:AVERAGE:0.5:1:10")
    rrdtool.update(path, "1000000010:1", "1000000020:2.5")
    samples = kymo.open(path).samples()
    frame = polars.DataFrame(samples).drop_nulls("value")
    assert frame["value"].to_list() == [1.0, 2.5]
    assert frame["heartbeat"].to_list() == [20, 20]
    assert frame["timestamp"].dt.timestamp("ms").to_list() == [1000000010000, 1000000020000]
    values = samples.to_numpy()["value"]
    assert values.compressed().tolist() == [1.0, 2.5]
    assert samples._repr_html_().startswith("<table>")
    fetched = rrdtool.fetch_arrow(path, "AVERAGE", "--start", "1000000000", "--end", "1000000020")
    assert pyarrow.table(fetched).num_rows > 0


def test_parquet_is_equal(trace, tmp_path):
    kymo.convert(trace, tmp_path / "tables", to="parquet")
    files = sorted((tmp_path / "tables").glob("class=*/*.parquet"))
    assert files
    pattern = str(tmp_path / "tables" / "class=demo%3Asched" / "*.parquet")
    names = [row["payload"]["prev_comm"] for row in printed(trace, options=["--event", "demo:sched"])]
    assert polars.read_parquet(pattern, hive_partitioning=False, glob=True)["prev_comm"].to_list() == names
    rows = duckdb.sql(f"SELECT prev_comm FROM read_parquet('{tmp_path}/tables/class=demo%3Asched/*.parquet')").fetchall()
    assert [name for (name,) in rows] == names


def test_streams_start_when_they_are_read(trace):
    import threading

    import pyarrow

    events = kymo.open(trace).events(columns=["timestamp"])
    before = threading.active_count(), len(os.listdir("/proc/self/task"))
    streams = [events.__arrow_c_stream__() for _ in range(50)]
    assert (threading.active_count(), len(os.listdir("/proc/self/task"))) == before
    read = [pyarrow.RecordBatchReader._import_from_c_capsule(stream).read_all().num_rows for stream in streams[:3]]
    assert read == [len(printed(trace))] * 3


def test_tables_are_recordings_again(trace, tmp_path):
    kymo.convert(trace, tmp_path / "tables", to="parquet")
    recordings = kymo.open(tmp_path / "tables")
    assert [event.fields for event in recordings.iter()] == [event.fields for event in kymo.open(trace).iter()]


#: A sample of them; `round_trip.py` checks all.
SAMPLED = ["ctf/own/rand-le-0", "ctf/own/rand-be-1", "ctf/babeltrace/field-traces"]


@pytest.mark.skipif(not CORPORA.is_dir(), reason="no corpora")
@pytest.mark.parametrize("name", SAMPLED)
def test_corpora(name):
    paths = sorted(file.parent for file in (CORPORA / name).rglob("metadata"))[::40]
    compared = 0
    for path in (path for path in paths if round_trip.opens(path) is False):
        compared += round_trip.check(path) + round_trip.check_events(path)
    assert compared > 0
