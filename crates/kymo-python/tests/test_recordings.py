"""Opening, analyses, threads, forks, signals."""

import concurrent.futures
import datetime
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import textwrap
import warnings

import kymo
import numpy
import pandas
import pyarrow
import pytest
from conftest import EXAMPLES, printed


def test_info_classes_and_tracks(trace):
    recordings = kymo.open([trace])
    info = recordings.info()["recordings"]
    assert info[0]["environment"]["tracer_name"] == "lttng-ust"
    sched = next(one for one in recordings.classes if one.name == "demo:sched")
    assert "prev_comm" in sched.fields
    assert isinstance(recordings.tracks, list)
    assert recordings.has_zone and recordings.damage == []


def test_what_cannot_be_opened(tmp_path, trace):
    with pytest.raises(kymo.OpenError, match="nothing"):
        kymo.open(tmp_path / "nothing")
    with pytest.warns(kymo.DamageWarning, match="nothing"):
        assert kymo.open([trace, tmp_path / "nothing"]).paths
    with pytest.raises(kymo.OpenError):
        kymo.open([trace, tmp_path / "nothing"], strict=True)


def test_closing(trace):
    with kymo.open(trace) as recordings:
        events = recordings.events("demo:sched")
    with pytest.raises(ValueError, match="closed"):
        recordings.info()
    # What was made before goes on.
    assert pyarrow.table(events).num_rows > 0
    assert "closed" in repr(recordings)


def test_alignment(trace):
    shifted = kymo.open(trace, offsets={trace: "2s"})
    first = next(kymo.open(trace).iter()).timestamp
    assert next(shifted.iter()).timestamp == first + 2_000_000_000
    begin = datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc)
    placed = next(kymo.open(trace, align={trace: begin}).iter())
    assert placed.time.year == 2020 and placed.time.tzinfo is datetime.timezone.utc


def test_events(trace):
    event = next(kymo.open(trace).iter("demo:enums"))
    row = printed(trace, options=["--event", "demo:enums"])[0]
    assert event.timestamp == row["timestamp"]
    assert event["c8"] == row["payload"]["c8"]["value"]
    assert event.labels("c8") == row["payload"]["c8"]["labels"]
    assert "c8" in event and "x" not in event and event.get("x", 5) == 5
    assert list(event) == event.keys() and len(event) == len(event.items())
    assert event.name in repr(event)
    with pytest.raises(KeyError):
        event["x"]


@pytest.mark.parametrize("name", ["lttng-small", "kernel-small", "vpp-small.cpel"])
def test_fields_by_name(name):
    """Few are made one by one, more of them together: they are the same."""
    recordings = kymo.open(EXAMPLES / name)
    names = sorted({field for event in recordings.iter() for field in event})
    for number, (one, other) in enumerate(zip(recordings.iter(), recordings.iter())):
        first = number % len(names)
        for field in names[first:] + names[:first]:
            # A string of its own, not the one that the event knows.
            field = "".join(list(field))
            assert repr(one.get(field, "nothing")) == repr(other.fields.get(field, "nothing"))
        first = next(iter(other), None)
        assert first is None or repr(other[first]) == repr(one[first])
    event = next(recordings.iter())
    for missing in ["no such field", "", 1, None]:
        with pytest.raises(KeyError):
            event[missing]
    assert event.get("no such field") is None and event.get("no such field", 7) == 7


def test_damage_is_warned_of(tmp_path):
    source = EXAMPLES / "bitfield-le"
    target = tmp_path / "cut"
    target.mkdir()
    for file in source.iterdir():
        bytes = file.read_bytes()
        (target / file.name).write_bytes(bytes if file.name == "metadata" else bytes[: len(bytes) - 1])
    recordings = kymo.open(target)
    try:
        with pytest.warns(kymo.DamageWarning):
            list(recordings.iter())
    except BaseException:
        # Opening may have found it already.
        assert recordings.damage
    events = recordings.events()
    pyarrow.table(events)
    assert events.damage or recordings.damage


def test_analyses(trace):
    recordings = kymo.open(trace)
    stats = recordings.stats()
    assert stats["events"] == sum(row["events"] for row in stats["event_classes"]) == len(printed(trace))
    latency = recordings.latency("demo:sched", "demo:ints", pair_by="track")
    assert latency["starts"] > 0
    assert recordings.states("demo:sched", per="next_comm")["count"] > 0
    with pytest.raises(kymo.QueryError):
        recordings.profile()
    summary = recordings.summary(width=16)
    assert sum(bin["count"] for track in summary["tracks"] for bin in track["bins"]) == len(printed(trace))
    assert recordings.check()


def test_conversion(trace, tmp_path):
    kymo.convert(trace, tmp_path / "small.jsonl", event="demo:ints")
    lines = (tmp_path / "small.jsonl").read_text().splitlines()
    assert len(lines) == len(printed(trace, options=["--event", "demo:ints"]))
    with pytest.raises(kymo.Error, match="small.jsonl"):
        kymo.convert(trace, tmp_path / "small.jsonl")
    kymo.convert(trace, tmp_path / "ctf2", to="ctf2")
    assert len(list(kymo.open(tmp_path / "ctf2").iter())) == len(printed(trace))
    with pytest.raises(kymo.Error):
        kymo.convert(tmp_path / "nothing", tmp_path / "x.jsonl")


def test_threads(trace):
    recordings = kymo.open(trace)
    events = recordings.events("demo:sched")
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        tables = list(pool.map(lambda _: pyarrow.table(events), range(16)))
        counts = list(pool.map(lambda _: sum(1 for _ in recordings.iter()), range(8)))
    assert all(table == tables[0] for table in tables)
    assert set(counts) == {len(printed(trace))}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_after_fork(trace):
    recordings = kymo.open(trace)
    begun = recordings.iter()
    next(begun)
    expected = sum(1 for _ in recordings.iter())
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = 0 if sum(1 for _ in recordings.iter()) == expected else 2
            # Even what it has read already is the parent's.
            next(begun)
            code = 4
        except RuntimeError as error:
            code = code or (0 if "forked" in str(error) else 3)
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_interrupts_end_work(trace):
    script = textwrap.dedent(
        """
        import kymo, os, signal, sys, threading
        recordings = kymo.open(sys.argv[1])
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            while True:
                recordings.stats()
                for event in recordings.iter():
                    pass
        except KeyboardInterrupt:
            print("interrupted")
        """
    )
    done = subprocess.run([sys.executable, "-c", script, trace], capture_output=True, text=True, timeout=60)
    assert done.stdout == "interrupted\n", done.stderr


def test_an_interrupt_ends_a_search_without_matches(tmp_path):
    """Nothing waits until all events have been looked at."""
    metadata = """/* CTF 1.8 */
typealias integer { size = 8; align = 8; signed = false; } := byte;
trace { major = 1; minor = 8; byte_order = le; };
event { name = "e"; fields := struct { byte value; }; };
"""
    (tmp_path / "metadata").write_text(metadata)
    (tmp_path / "stream").write_bytes(bytes(2_000_000))
    script = textwrap.dedent(
        """
        import kymo, os, signal, sys, threading, time
        def search():
            begun = time.monotonic()
            try:
                for event in kymo.open(sys.argv[1]).iter(where="value == 1", threads=1):
                    raise AssertionError(event)
            except KeyboardInterrupt:
                print("interrupted")
            return time.monotonic() - begun
        whole = search()
        threading.Timer(whole / 10, os.kill, (os.getpid(), signal.SIGINT)).start()
        part = search()
        assert part < whole / 2, (part, whole)
        """
    )
    done = subprocess.run([sys.executable, "-c", script, tmp_path], capture_output=True, text=True, timeout=300)
    assert (done.stdout, done.stderr) == ("interrupted\n", "")


def test_stubs_name_what_there_is():
    stub = (pathlib.Path(kymo.__file__).parent / "_kymo.pyi").read_text()
    for name in dir(kymo._kymo):
        if not name.startswith("__"):
            assert f" {name}" in stub, name
    assert (pathlib.Path(kymo.__file__).parent / "py.typed").exists()


def whole(trace, target):
    """A copy of a trace, its recordings, and its largest file."""
    shutil.copytree(trace, target)
    files = [path for path in target.rglob("*") if path.is_file()]
    return kymo.open(target), max(files, key=lambda path: path.stat().st_size)


def test_files_that_are_truncated_while_they_are_read(trace, tmp_path):
    """They end no process (SIGBUS), and every reading says that something is missing."""
    recordings, file = whole(trace, tmp_path / "cut")
    whole_recordings, _ = whole(trace, tmp_path / "whole")
    begun = recordings.iter()
    next(begun)
    os.truncate(file, file.stat().st_size // 3)
    message = f"`{file}` was truncated while it was read"
    with pytest.warns(kymo.DamageWarning, match=message):
        list(begun)
    events = recordings.events(columns=["timestamp"])
    for _ in range(2):
        assert pyarrow.table(events).num_rows < len(printed(trace))
        assert [text for text in events.damage if message in text]
    for read in [recordings.stats, recordings.check, recordings.summary, recordings.svg]:
        with pytest.warns(kymo.DamageWarning, match=message):
            read()
    with pytest.raises(kymo.Error, match=message):
        list(recordings.iter(strict=True))
    # Others have nothing to do with it.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(list(whole_recordings.iter())) == whole_recordings.stats()["events"]


def test_an_iterator_in_several_threads(trace):
    events = kymo.open(trace).iter()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        read = list(pool.map(lambda _: [event.timestamp for event in events], range(8)))
    assert sorted(time for times in read for time in times) == [row["timestamp"] for row in printed(trace)]


def test_an_iterator_that_is_asked_while_it_reads(trace, tmp_path):
    """By what a warning runs."""
    recordings, file = whole(trace, tmp_path / "cut")
    os.truncate(file, file.stat().st_size // 3)
    events = recordings.iter()
    asked = []

    def ask(*_, **__):
        with pytest.raises(RuntimeError, match="while it reads"):
            next(events)
        asked.append(True)

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = ask
        list(events)
    assert asked


def test_times(trace):
    recordings = kymo.open(trace)
    all = [row["timestamp"] for row in printed(trace)]
    middle = all[len(all) // 2]
    utc = datetime.timezone.utc

    def count(**times):
        return sum(1 for _ in recordings.iter(**times))

    after = sum(time >= middle for time in all)
    for begin in [middle, numpy.int64(middle), numpy.datetime64(middle, "ns"), pandas.Timestamp(middle, tz="UTC")]:
        assert count(begin=begin) == after
    early = [-(1 << 80), datetime.datetime.min, datetime.datetime.min.replace(tzinfo=utc), pandas.Timestamp.min]
    early += [numpy.datetime64("1500-01-01"), numpy.datetime64("-1000000", "Y")]
    late = [1 << 64, datetime.datetime.max, datetime.datetime.max.replace(tzinfo=utc), pandas.Timestamp.max]
    late += [numpy.datetime64("2500-01-01"), numpy.datetime64("2500-01-01T00:00:00.000001")]
    for time in early:
        assert count(begin=time) == len(all) and count(end=time) == 0, time
    for time in late:
        assert count(begin=time) == 0 and count(end=time) == len(all), time
    for time in [pandas.NaT, numpy.datetime64("NaT")]:
        with pytest.raises(ValueError, match="NaT"):
            count(begin=time)
    # Seconds are meant: what `time.time()` returns.
    for time in [middle / 1e9, float("nan"), True, b"10:00", datetime.date(2020, 1, 1), datetime.timedelta(1)]:
        with pytest.raises(TypeError, match="a time is an int of nanoseconds, a str, or a datetime, not "):
            count(begin=time)


def test_arguments_of_other_types(trace):
    path = os.fsencode(trace)
    recordings = kymo.open(path, offsets={path: datetime.timedelta(milliseconds=-1.5)})
    assert next(recordings.iter()).timestamp == printed(trace)[0]["timestamp"] - 1_500_000
    assert recordings.events(columns="ticks").columns == ["ticks"]
    placed = kymo.open(trace, align={trace: -1_500_000_000})
    assert next(placed.iter()).timestamp >= -1_500_000_000
    with pytest.raises(kymo.OpenError, match="no path is given"):
        kymo.open([])
    for align in [5, {trace: None}]:
        with pytest.raises(TypeError, match="align"):
            kymo.open(trace, align=align)
    for names in [5, [5], b"demo:sched"]:
        with pytest.raises(TypeError):
            recordings.events(names)
    with pytest.raises(TypeError, match="not int"):
        recordings.iter(where=5)
