import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples"
#: Corpora beside the repository, where there are.
CORPORA = ROOT.parent / "shared" / "data"


@pytest.fixture
def trace():
    """A trace of LTTng with all kinds of fields."""
    return EXAMPLES / "lttng-small"


def program(*words):
    """Runs kymo: the package's, or another one that `KYMO_TEST_PROGRAM` names."""
    other = os.environ.get("KYMO_TEST_PROGRAM")
    start = [other] if other else [sys.executable, "-m", "kymo"]
    return subprocess.run([*start, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)


def printed(*paths, options=()):
    """What `kymo print --format json` prints."""
    done = program("print", "--format", "json", *options, "--", *map(str, paths))
    assert done.returncode in (0, 1), done.stderr.decode()
    return [json.loads(line) for line in done.stdout.splitlines()]


def debian():
    """Python of the system, where it has rrdtool's and babeltrace2's modules."""
    python = os.environ.get("KYMO_TEST_PYTHON", "/usr/bin/python3")
    found = subprocess.run([python, "-c", "import bt2, rrdtool"], stderr=subprocess.DEVNULL, check=False)
    return python if found.returncode == 0 else None
