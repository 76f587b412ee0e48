"""Conversion of recordings to other formats."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Iterable
from typing import Any, Union

from ._kymo import DamageWarning, Error

__all__ = ["convert"]

Path = Union[str, "os.PathLike[str]"]


def convert(paths: Path | Iterable[Path], output: Path, to: str | None = None, **options: Any) -> None:
    """Converts recordings: what `kymo convert` does.

    `to` is the format (`parquet`, `arrow`, `ctf2`, `perfetto`, `jsonl`, `rrd`, ...); without it, the ending of `output`
    says it. Options have the names of the command line's, with `_` for `-`, and `where` and `from` as `where_` and
    `from_` too: `True` for one without a value, a list for one that is given several times:

    >>> kymo.convert("trace/", "tables/", to="parquet", event=["sched_*"], force=True)

    It runs in a process of its own, which Ctrl-C ends; nothing half-written is left. Damage that is skipped brings
    a `DamageWarning`, and what cannot be done an `Error` with the program's message.
    """
    several = [paths] if isinstance(paths, (str, bytes, os.PathLike)) else list(paths)
    words = [sys.executable, "-m", "kymo", "convert", "--output", os.fspath(output)]
    if to is not None:
        words += ["--to", to]
    for name, value in options.items():
        option = "--" + name.rstrip("_").replace("_", "-")
        if value is True:
            words.append(option)
        elif value is not None and value is not False:
            values = value if isinstance(value, (list, tuple)) else [value]
            words += [f"{option}={one}" for one in values]
    words += ["--", *(os.fspath(path) for path in several)]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    text = done.stderr.decode(errors="replace").strip()
    if done.returncode < 0:
        raise Error(f"the conversion was ended by signal {-done.returncode}")
    if done.returncode > 1 or (done.returncode == 1 and options.get("strict")):
        raise Error(text or f"the conversion failed with status {done.returncode}")
    if done.returncode == 1 and not os.path.lexists(os.fspath(output)):
        raise Error(text)
    for line in text.splitlines():
        warnings.warn(line, DamageWarning, stacklevel=2)
