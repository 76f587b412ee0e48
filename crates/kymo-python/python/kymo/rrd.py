"""Round-robin databases with the functions of rrdtool's Python module.

`import kymo.rrd as rrdtool` carries scripts over: the functions take the words of rrdtool's command lines, and return what
rrdtool's do. Nothing of rrdtool is needed. `fetch_numpy` and `fetch_arrow` return columns instead of tuples.
"""

from __future__ import annotations

import builtins
import json
import os
import sys
import warnings
from datetime import datetime
from typing import Any, Union

from . import _kymo
from ._kymo import __version__

__all__ = [
    "OperationalError",
    "ProgrammingError",
    "__version__",
    "create",
    "dump",
    "fetch",
    "fetch_arrow",
    "fetch_numpy",
    "first",
    "flushcached",
    "graph",
    "graphv",
    "info",
    "last",
    "lastupdate",
    "lib_version",
    "list",
    "resize",
    "restore",
    "tune",
    "update",
    "updatev",
    "xport",
]

Word = Union[str, bytes, "os.PathLike[str]", "builtins.list[str]", "tuple[str, ...]"]


class OperationalError(_kymo.RrdError):
    """What a command could not do, in rrdtool's words."""


class ProgrammingError(_kymo.RrdError):
    """A call that no command line is made of."""


def _words(words: tuple[Word, ...]) -> list[bytes]:
    flat: builtins.list[bytes] = []
    for word in words:
        if isinstance(word, (builtins.list, tuple)):
            flat += _words(tuple(word))
        elif isinstance(word, (str, bytes, os.PathLike)):
            flat.append(os.fsencode(word))
        else:
            raise TypeError(f"argument {len(flat)} must be a str, not {type(word).__name__}")
    return flat


def _run(name: str, *words: Word) -> bytes:
    try:
        out, told = _kymo.rrd_run([name.encode(), *_words(words)])
    except _kymo.RrdError as error:
        raise OperationalError(str(error)) from None
    for line in told.splitlines():
        warnings.warn(line.removeprefix("WARNING: "), RuntimeWarning, stacklevel=3)
    return out


def _text(name: str, *words: Word) -> str:
    return os.fsdecode(_run(name, *words))


def _value(text: str) -> Any:
    """A value as `info` shows it."""
    if text.startswith('"') and text.endswith('"') and len(text) > 1:
        return text[1:-1]
    try:
        return int(text)
    except ValueError:
        pass
    try:
        number = float(text)
    except ValueError:
        return text
    return None if number != number else number


def _facts(out: bytes) -> dict[str, Any]:
    """Lines of `key = value`; of a BLOB the size is told, and its bytes follow."""
    facts: dict[str, Any] = {}
    while out:
        line, _, out = out.partition(b"\n")
        key, found, value = line.partition(b" = ")
        if not found:
            continue
        if value.startswith(b"BLOB_SIZE:"):
            size = int(value[len(b"BLOB_SIZE:") :])
            facts[os.fsdecode(key)], out = out[:size], out[size:]
        else:
            facts[os.fsdecode(key)] = _value(os.fsdecode(value))
    return facts


def create(*words: Word) -> None:
    """Creates a database."""
    _run("create", *words)


def update(*words: Word) -> None:
    """Stores readings."""
    _run("update", *words)


def updatev(*words: Word) -> dict[str, Any]:
    """Stores readings; returns what was written to the archives."""
    return _facts(_run("updatev", *words))


def _fetch(words: tuple[Word, ...]) -> dict[str, Any]:
    return json.loads(_run("fetch", "--format", "json", *words))


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, str) else value


def fetch(*words: Word) -> tuple[tuple[int, int, int], tuple[str, ...], builtins.list[tuple[float | None, ...]]]:
    """The rows of a stretch of time: begin, end and step; names of the data sources; rows."""
    table = _fetch(words)
    rows = [tuple(map(_number, row[1:])) for row in table["rows"]]
    return (table["start"], table["end"], table["step"]), tuple(table["names"]), rows


def fetch_numpy(*words: Word) -> dict[str, Any]:
    """The rows of a stretch of time as arrays of NumPy: `timestamp` (`datetime64[s]`, UTC), and the data sources by name,
    with NaN for what is unknown."""
    import numpy

    table = _fetch(words)
    columns = {"timestamp": numpy.array([row[0] for row in table["rows"]], dtype="datetime64[s]")}
    for position, name in enumerate(table["names"], 1):
        values = [_number(row[position]) for row in table["rows"]]
        columns[name] = numpy.array(values, dtype=float)
    return columns


def fetch_arrow(*words: Word) -> _kymo.Table:
    """The rows of a stretch of time as an object with `__arrow_c_stream__`: `timestamp` (UTC), and a column of doubles for
    each data source, with null for what is unknown."""
    table = _fetch(words)
    times = [row[0] for row in table["rows"]]
    columns = [[_number(row[position]) for row in table["rows"]] for position in range(1, len(table["names"]) + 1)]
    return _kymo.Table.of_series(times, table["names"], columns)


def info(*words: Word) -> dict[str, Any]:
    """Definitions and state of a database."""
    return _facts(_run("info", *words))


def first(*words: Word) -> int:
    """The time of the first row of an archive."""
    return int(_text("first", *words))


def last(*words: Word) -> int:
    """The time of the last update."""
    return int(_text("last", *words))


def lastupdate(*words: Word) -> dict[str, Any]:
    """The time and the readings of the last update: `date`, in local time, and `ds`."""
    names, _, readings = _text("lastupdate", *words).partition("\n")
    time, _, values = readings.strip().partition(":")
    numbers = [_value(value) for value in values.split()]
    known = [float(number) if isinstance(number, (int, float)) else None for number in numbers]
    return {"date": datetime.fromtimestamp(int(time)), "ds": dict(zip(names.split(), known))}


def graphv(*words: Word) -> dict[str, Any]:
    """Draws; returns sizes, limits and texts, and if the name of the file is `-`, the picture."""
    return _facts(_run("graphv", *words))


def graph(*words: Word) -> tuple[int, int, builtins.list[str] | None]:
    """Draws; returns width, height, and the texts of PRINT. If the name of the file is `-`, the picture is printed."""
    facts = graphv(*words)
    if "image" in facts:
        sys.stdout.buffer.write(facts["image"])
    printed = [str(value) for key, value in facts.items() if key.startswith("print[")]
    return facts.get("image_width", 0), facts.get("image_height", 0), printed or None


def xport(*words: Word) -> dict[str, Any]:
    """Series from files and expressions as a table: `meta`, and rows in `data`."""
    table = json.loads(_run("xport", "--json", *words))
    meta, data = table["meta"], [tuple(row) for row in table["data"]]
    step = meta["step"]
    columns = len(meta["legend"])
    data = [row[-columns:] for row in data]
    return {
        "meta": {
            "start": meta["start"] - step,
            "end": meta["end"],
            "step": step,
            "rows": len(data),
            "columns": columns,
            "legend": meta["legend"],
        },
        "data": data,
    }


def tune(*words: Word) -> None:
    """Changes definitions of a database."""
    _run("tune", *words)


def resize(*words: Word) -> None:
    """Adds rows to an archive, or removes some; the result is the file `resize.rrd`."""
    _run("resize", *words)


def dump(*words: Word) -> None:
    """Writes a database as XML to a file, or prints it."""
    out = _run("dump", *words)
    if out:
        sys.stdout.flush()
        sys.stdout.buffer.write(out)
        sys.stdout.buffer.flush()


def restore(*words: Word) -> None:
    """Makes a database of XML."""
    _run("restore", *words)


def flushcached(*words: Word) -> None:
    """Has a daemon write what it holds of files."""
    _run("flushcached", *words)


def list(*words: Word) -> builtins.list[str]:
    """Names of the databases and directories in a directory."""
    return _text("list", *words).splitlines()


def lib_version() -> str:
    """The version of rrdtool that commands and messages are those of."""
    return "1.9.0"
