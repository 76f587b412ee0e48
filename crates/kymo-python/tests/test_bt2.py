"""babeltrace2's interface: a script prints the same with both modules."""

import pathlib
import re
import subprocess
import sys

import kymo
import kymo.bt2 as bt2
import pytest
from conftest import CORPORA, EXAMPLES, debian, printed

DUMP = pathlib.Path(__file__).with_name("bt2_dump.py")
#: Traces that babeltrace2 reads as a whole; those that it refuses, kymo may read.
TRACES = [EXAMPLES / name for name in ("lttng-small", "bitfield-le", "bitfield-be", "lttng-discarded")]
if CORPORA.is_dir():
    found = sorted(path.parent for path in (CORPORA / "ctf" / "babeltrace").rglob("metadata"))
    # Of the large ones, few.
    TRACES += [path for path in found if "succeed" in str(path) and path.name not in ("kernel", "warnings")]
    TRACES += [CORPORA / "ctf" / "own" / name for name in ("rand-le-0", "rand-be-0")]


def dump(python, module, path):
    done = subprocess.run([python, DUMP, module, path], capture_output=True, text=True, check=False, timeout=120)
    return done.stdout, done.stderr, done.returncode


TEXT = re.compile(r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""")


def agree(our, their):
    """bt2 2.0.4 gives for a text sequence without characters the text before it."""
    ours, theirs = TEXT.split(our), TEXT.split(their)
    return len(ours) == len(theirs) and all(a == b or a == "''" for a, b in zip(ours, theirs))


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.name)
def test_scripts_print_the_same(path):
    python = debian()
    if python is None:
        pytest.skip("the system's Python has no bt2")
    theirs, problems, status = dump(python, "bt2", path)
    # It aborts if it meets metadata of CTF 2.
    if status != 0 or theirs.startswith("error"):
        pytest.skip("babeltrace2 does not read it")
    ours, problems, _ = dump(sys.executable, "kymo.bt2", path)
    assert not problems
    ours, theirs = ours.splitlines(), theirs.splitlines()
    assert len(ours) == len(theirs)
    for our, their in zip(ours, theirs):
        assert our == their or agree(our, their), (our, their)


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.name)
def test_fields_by_name(path):
    """Few are made one by one, more of them together: they are the same."""
    for number, message in enumerate(bt2.TraceCollectionMessageIterator(str(path))):
        if not isinstance(message, bt2._EventMessageConst):
            continue
        event = message.event
        names = list(event)
        scopes = [event.payload_field, event.specific_context_field, event.common_context_field]
        scopes = [scope for scope in [*scopes, event.packet.context_field] if scope is not None]
        first = number % max(1, len(names))
        for name in names[first:] + names[:first]:
            expected = next(scope[name] for scope in scopes if name in scope)
            found = event[name]
            assert type(found) is type(expected) and repr(found) == repr(expected), name
        with pytest.raises(KeyError):
            event["no such field"]
        if number == 1000:
            break


def test_selections(trace):
    all = printed(trace)
    begin = all[len(all) // 2]["timestamp"]
    spec = bt2.ComponentSpec.from_named_plugin_and_component_class("ctf", "fs", {"inputs": [str(trace)]})
    messages = bt2.TraceCollectionMessageIterator([spec], begin=begin / 1e9)
    events = [msg for msg in messages if isinstance(msg, bt2._EventMessageConst)]
    assert abs(len(events) - sum(row["timestamp"] >= begin for row in all)) <= 2
    auto = bt2.AutoSourceComponentSpec(str(trace))
    assert next(bt2.TraceCollectionMessageIterator(auto)) is not None


def test_errors(tmp_path):
    with pytest.raises(bt2._Error):
        bt2.TraceCollectionMessageIterator(str(tmp_path))
    assert issubclass(bt2._Error, kymo.Error)


def test_all_names_are_exported():
    """Type checkers take only these for a part of the module."""
    defined = {name for name, value in vars(bt2).items() if getattr(value, "__module__", "").startswith("kymo.bt2.")}
    assert defined | {"__version__"} == set(bt2.__all__)
