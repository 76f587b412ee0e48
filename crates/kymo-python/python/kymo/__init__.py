"""Traces, round-robin databases and event logs as tables, and event by event.

>>> import kymo
>>> with kymo.open("trace/") as trace:
...     table = trace.events("sched_switch", columns=["timestamp", "next_comm"])
...     frame = pandas.DataFrame.from_arrow(table)

What `events` and `samples` return is read anew each time, without a copy, by everything that takes Arrow's
C stream interface: pandas, polars, DuckDB, pyarrow. `iter` gives events one by one.
"""

from __future__ import annotations

import html
import json
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple, Union

from . import _kymo
from ._kymo import DamageWarning, Error, OpenError, QueryError
from ._kymo import Event, __version__
from ._convert import convert

__all__ = [
    "ClassInfo",
    "DamageWarning",
    "Error",
    "Event",
    "Events",
    "OpenError",
    "QueryError",
    "Recordings",
    "Samples",
    "Track",
    "convert",
    "open",
]

Path = Union[str, bytes, "os.PathLike[str]"]
#: Nanoseconds, a `datetime`, or a text such as `2026-11-25 10:00:00.5`, `10:00` or seconds.
Time = Union[int, str, datetime, None]
Names = Union[str, Iterable[str], None]


class ClassInfo(NamedTuple):
    """A class of events."""

    name: str
    #: Position of its recording.
    recording: int
    #: Number of the class in its stream class.
    id: int
    stream_class: int
    log_level: int | None
    #: Names of the fields of the payload.
    fields: tuple[str, ...]


class Track(NamedTuple):
    """A track that is known from the metadata."""

    path: str
    name: str
    #: Position of its recording.
    recording: int
    unit: str | None


def _nanos(time: Any) -> int | str | None:
    """A time as the extension takes it."""
    if time is None or isinstance(time, str):
        return time
    if hasattr(time, "asm8"):
        # pandas.Timestamp: without a zone it is in UTC, as for pandas.
        time = time.asm8
    if type(time).__name__ == "datetime64":
        if time != time:
            raise ValueError("a time is NaT")
        nanos, seconds = time.astype("datetime64[ns]"), time.astype("datetime64[s]")
        if nanos.astype("datetime64[s]") == seconds:
            return int(nanos.astype("int64"))
        # It does not fit into nanoseconds.
        return int(seconds.astype("int64")) * 1_000_000_000
    if isinstance(time, datetime):
        if time.tzinfo is None:
            try:
                # As Python does it: local time.
                time = time.astimezone()
            except (OverflowError, ValueError):
                # The first and the last days have none.
                time = time.replace(tzinfo=timezone.utc)
        return _micros(time - datetime(1970, 1, 1, tzinfo=timezone.utc)) * 1000
    if hasattr(time, "__index__") and not isinstance(time, bool):
        return int(time)
    raise TypeError(f"a time is an int of nanoseconds, a str, or a datetime, not {type(time).__name__}")


def _micros(duration: timedelta) -> int:
    return duration // timedelta(microseconds=1)


def _names(names: Names) -> list[str]:
    if names is None:
        return []
    return [names] if isinstance(names, str) else list(names)


def _selection(names: Names, begin: Time, end: Time, where: str | None = None) -> _kymo.Selection:
    """Which events are meant, as the extension takes it."""
    listed = _names(names)
    for word in (*listed, where):
        if word is not None and not isinstance(word, str):
            raise TypeError(f"names of events and conditions are str, not {type(word).__name__}")
    return {"names": listed, "begin": _limit(begin), "end": _limit(end), "condition": where}


def _limit(time: Time) -> int | str | None:
    """A limit of a range: one that no time reaches serves as well as the first or the last time."""
    nanos = _nanos(time)
    return max(-(1 << 63), min(nanos, (1 << 63) - 1)) if isinstance(nanos, int) else nanos


def _text(value: Any) -> str:
    return html.escape(str(value))


class _Table:
    """What `Events` and `Samples` have in common."""

    def __init__(self, source: _kymo.Table, first: Any) -> None:
        self._source = source
        #: Makes the same with few rows.
        self._first = first

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows in Arrow's C stream interface, read anew."""
        return self._source.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """The columns in Arrow's C data interface."""
        return self._source.__arrow_c_schema__()

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return [name for name, _ in self._source._fields()]

    @property
    def types(self) -> dict[str, str]:
        """Arrow's types of the columns."""
        return dict(self._source._fields())

    @property
    def damage(self) -> list[str]:
        """Damage that the last reading has met and skipped."""
        return self._source.damage

    def to_arrow(self) -> Any:
        """The rows as a `pyarrow.Table`."""
        import pyarrow

        return pyarrow.table(self)

    def to_numpy(self) -> dict[str, Any]:
        """The columns as arrays of NumPy; those with nulls are masked arrays, texts and compounds are objects."""
        import numpy

        arrays = {}
        for name, kind, values, nulls in self._source._numpy():
            if kind == "O":
                array = numpy.empty(len(values), dtype=object)
                array[:] = values
            else:
                array = numpy.frombuffer(values, dtype=kind)
            if nulls is not None:
                array = numpy.ma.masked_array(array, numpy.frombuffer(nulls, dtype=bool))
            arrays[name] = array
        return arrays

    def to_pandas(self) -> Any:
        """The rows as a `pandas.DataFrame`."""
        import pandas

        return pandas.DataFrame.from_arrow(self)

    def to_polars(self) -> Any:
        """The rows as a `polars.DataFrame`."""
        import polars

        return polars.DataFrame(self)

    def _repr_html_(self) -> str:
        columns = self._first()._source._numpy()
        head = "".join(f"<th>{_text(name)}</th>" for name, *_ in columns)
        rows = []
        values = []
        for _, kind, buffer, nulls in columns:
            column = list(buffer) if kind == "O" else _numbers(kind, buffer)
            values.append([None if nulls and nulls[row] else value for row, value in enumerate(column)])
        for row in zip(*values):
            rows.append("".join(f"<td>{_text('' if value is None else value)}</td>" for value in row))
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>The first {len(rows)} rows.</p>"

    def __repr__(self) -> str:
        columns = ", ".join(f"{name}: {kind}" for name, kind in self._source._fields())
        return f"<kymo.{type(self).__name__} {columns}>"


class Events(_Table):
    """Rows of events, read anew each time; made by `Recordings.events`."""


def _numbers(kind: str, buffer: bytearray) -> list[Any]:
    """Numbers of a buffer without NumPy."""
    letters = {"u1": "B", "u2": "H", "u4": "I", "u8": "Q", "i1": "b", "i2": "h", "i4": "i", "i8": "q", "f4": "f", "f8": "d"}
    return memoryview(buffer).cast(letters.get(kind[1:], "q")).tolist()


class Samples(_Table):
    """Values of databases and metrics, read anew each time; made by `Recordings.samples`."""


class Recordings:
    """Recordings on one time line; made by `open`.

    It is a context manager: `close` lets go of the files as soon as nothing reads them any more.
    """

    def __init__(self, source: _kymo.Recordings) -> None:
        self._source = source

    def close(self) -> None:
        """Closes the recordings. What is being read goes on."""
        self._source.close()

    def __enter__(self) -> Recordings:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def paths(self) -> list[str]:
        """Paths of the recordings."""
        return self._source._paths()

    @property
    def has_zone(self) -> bool:
        """Whether times count from 1970 in UTC, and not from an origin that is unknown."""
        return not self._source.is_relative

    @property
    def classes(self) -> list[ClassInfo]:
        """The classes of events."""
        all = []
        for recording, position, name, number, stream_class, log_level, _ in self._source._classes():
            payload = self._source._class_fields(recording, position, "payload") or {}
            fields = tuple(child for child, _ in payload.get("children", ()) if child is not None)
            all.append(ClassInfo(str(number) if name is None else name, recording, number, stream_class, log_level, fields))
        return all

    @property
    def tracks(self) -> list[Track]:
        """The tracks that are known from the metadata."""
        return [Track(path, name, recording, unit) for recording, path, name, unit in self._source._tracks()]

    @property
    def damage(self) -> list[dict[str, Any]]:
        """Damage that opening has found: path, offset, packet, event, field and message."""
        return self._source._faults()

    def info(self) -> dict[str, Any]:
        """What the recordings are: what `kymo info --json` prints."""
        info: dict[str, Any] = json.loads(self._source._info())
        return info

    def events(
        self,
        names: Names = None,
        *,
        columns: Iterable[str] | None = None,
        begin: Time = None,
        end: Time = None,
        where: str | None = None,
        limit: int | None = None,
        threads: int | None = None,
        batch_rows: int | None = None,
    ) -> Events:
        """A table of events.

        `names` are names of classes, or patterns (`sched_*`). `columns` are names of fields, as in conditions, and of
        the columns that all events have: `timestamp`, `ticks`, `stream`, `recording`, `event`; a field with one of
        these names has its scope before it (`payload.event`). Without `columns`, there are all. Rows come in the order
        of time, and are read when somebody takes them.
        """

        selection = _selection(names, begin, end, where)

        def make(limit: int | None) -> _kymo.Table:
            wanted = [columns] if isinstance(columns, str) else columns
            wanted = None if wanted is None else list(wanted)
            return self._source._events(selection, wanted, limit, threads, batch_rows)

        first = 10 if limit is None else min(limit, 10)
        return Events(make(limit), lambda: Events(make(first), None))

    def samples(self, *, begin: Time = None, end: Time = None, threads: int | None = None) -> Samples:
        """A table of the values of databases and metrics."""
        selection = _selection(None, begin, end)

        def make(limit: int | None) -> _kymo.Table:
            return self._source._samples(selection, limit, threads)

        return Samples(make(None), lambda: Samples(make(10), None))

    def iter(
        self,
        names: Names = None,
        *,
        begin: Time = None,
        end: Time = None,
        where: str | None = None,
        limit: int | None = None,
        threads: int | None = None,
        strict: bool = False,
    ) -> Iterator[Event]:
        """Events one by one, in the order of time.

        Damage is skipped with a `DamageWarning`; with `strict`, it raises `Error`.
        """
        return self._source._messages(_selection(names, begin, end, where), limit, threads, False, strict)

    def __iter__(self) -> Iterator[Event]:
        return self.iter()

    def _analyse(
        self, kind: str, names: Names, times: tuple[Time, Time], where: str | None, **options: Any
    ) -> dict[str, Any]:
        options = {"running": False, **options}
        text = self._source._analyse(kind, _selection(names, *times, where), options, None)
        answer: dict[str, Any] = json.loads(text)
        return answer

    def latency(
        self,
        start: str | None = None,
        stop: str | None = None,
        *,
        pair_by: str | None = None,
        track: str | None = None,
        worst: int = 10,
        begin: Time = None,
        end: Time = None,
        where: str | None = None,
    ) -> dict[str, Any]:
        """How long it takes from an event to another one: what `kymo latency --json` prints.

        Without `start` and `stop`, the recordings say which events begin and end slices.
        """
        return self._analyse(
            "latency", None, (begin, end), where, start=start, end=stop, pair_by=pair_by, track=track, worst=worst
        )

    def states(
        self,
        state: str,
        *,
        per: str | None = None,
        track: str | None = None,
        tracks: str | None = None,
        sort: str | None = None,
        begin: Time = None,
        end: Time = None,
        where: str | None = None,
    ) -> dict[str, Any]:
        """Time in states, from one event `state` to the next of its track: what `kymo states --json` prints.

        `tracks` is a pattern of the tracks that are listed.
        """
        return self._analyse(
            "states", None, (begin, end), where, state=state, per=per, track=track, sort=sort, where_state=tracks
        )

    def profile(
        self,
        enter: str | None = None,
        leave: str | None = None,
        *,
        key: str | None = None,
        track: str | None = None,
        running: bool = False,
        begin: Time = None,
        end: Time = None,
        where: str | None = None,
    ) -> dict[str, Any]:
        """Time within nested calls: what `kymo profile --json` prints."""
        return self._analyse(
            "profile", None, (begin, end), where, start=enter, end=leave, key=key, track=track, running=running
        )

    def stats(
        self, names: Names = None, *, begin: Time = None, end: Time = None, where: str | None = None
    ) -> dict[str, Any]:
        """How many events of which class there are: what `kymo stats --json` prints."""
        return self._analyse("stats", names, (begin, end), where)

    def check(self) -> dict[str, Any]:
        """Decodes everything and reports damage: what `kymo check --json` prints."""
        return self._analyse("check", None, (None, None), None)

    def summary(self, *, begin: Time = None, end: Time = None, width: int = 256) -> dict[str, Any]:
        """What happened on each track in spans of time, of which there are `width` to twice as many.

        `span` is their length in nanoseconds. `tracks` have `bins`, of each that has rows its `begin`, their `count`,
        and of series `min`, `max`, `mean` and `last`.
        """
        spans = [(one["begin"], one["end"]) for one in self.info()["recordings"] if one["begin"] is not None]
        if begin is None and spans:
            begin = min(begin for begin, _ in spans)
        if end is None and spans:
            end = max(end for _, end in spans)
        return self._source._summary(_selection(None, begin, end), width)

    def svg(
        self,
        names: Names = None,
        *,
        begin: Time = None,
        end: Time = None,
        where: str | None = None,
        per: str | None = None,
        width: int | None = None,
        height: int = 160,
        title: str | None = None,
    ) -> str:
        """A picture: series of databases and metrics, and rates of events, by track or by the field `per`."""
        return self._source._svg(_selection(names, begin, end, where), per, width, height, title)

    def _repr_html_(self) -> str:
        try:
            return self.svg()
        except Error as error:
            return f"<pre>{_text(repr(self))}\n{_text(error)}</pre>"

    def __repr__(self) -> str:
        try:
            return f"<kymo.Recordings {', '.join(self.paths)}>"
        except ValueError:
            return "<kymo.Recordings (closed)>"


def open(
    paths: Path | Iterable[Path],
    *,
    align: str | Mapping[Path, Any] | None = None,
    offsets: Mapping[Path, str | timedelta] | None = None,
    utc: bool = True,
    strict: bool = False,
    threads: int | None = None,
    clock_offset_ns: int = 0,
) -> Recordings:
    """Opens recordings: files, directories in which they are looked for, archives, compressed files.

    `align` is the name of an event that happened at the same time in the recordings of all paths, or a mapping from
    paths to the times at which they begin. `offsets` is a mapping from paths to what is added to their times (`"2s"`,
    `"-1.5ms"`, or a `timedelta`). Texts of times are in UTC, or with `utc=False` in local time.
    `threads` is how many threads decode
    [default: all cores].

    What cannot be opened beside something that can brings a `DamageWarning`; with `strict`, an `OpenError`. If nothing
    can be opened, it is an `OpenError`.
    """
    several = [paths] if isinstance(paths, (str, bytes, os.PathLike)) else list(paths)
    if not several:
        raise OpenError("no path is given")
    event, begins = None, []
    if isinstance(align, str):
        event = align
    elif isinstance(align, Mapping):
        begins = [(os.fsdecode(path), _moment(time)) for path, time in align.items()]
    elif align is not None:
        raise TypeError(f"align is the name of an event or a mapping, not {type(align).__name__}")
    source, problems = _kymo.open(
        [os.fsdecode(path) for path in several],
        offsets=[(os.fsdecode(path), _offset(offset)) for path, offset in (offsets or {}).items()],
        begins=begins,
        align_event=event,
        utc=utc,
        threads=threads,
        clock_offset_ns=clock_offset_ns,
    )
    if problems and strict:
        raise OpenError("\n".join(problems))
    for problem in problems:
        warnings.warn(problem, DamageWarning, stacklevel=2)
    return Recordings(source)


def _offset(offset: Any) -> str:
    """A duration as text."""
    return f"{_micros(offset)}us" if isinstance(offset, timedelta) else offset


def _moment(time: Any) -> str:
    """A time as text."""
    nanos = _nanos(time)
    if not isinstance(nanos, int):
        if nanos is None:
            raise TypeError("align maps paths to times, not None")
        return nanos
    seconds, rest = divmod(abs(nanos), 1_000_000_000)
    return f"{'-' if nanos < 0 else ''}{seconds}.{rest:09}"
