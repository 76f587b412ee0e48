"""Reads a trace with Perfetto's own schema, and says where it differs from the JSON lines that
`kymo print` shows of the same recordings.

    python check_perfetto.py TRACE LINES

Counts, order, times, names, tracks and every field are compared.
"""

import json
import math
import struct
import sys

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace

SCOPES = ("packet_context", "common_context", "specific_context")
OF_LOGS = ("track", "track_name", "event_class", "datum", "text")
NOTHING = object()


class Names:
    """Names that were told once and are called by number."""

    def __init__(self):
        self.events = {}
        self.annotations = {}

    def learn(self, interned):
        for known, told in (
            (self.events, interned.event_names),
            (self.annotations, interned.debug_annotation_names),
        ):
            for name in told:
                assert name.iid not in known, f"iid {name.iid} is told twice"
                known[name.iid] = name.name

    def event(self, event):
        return self.events[event.name_iid] if event.name_iid else event.name

    def annotation(self, annotation):
        iid = annotation.name_iid
        return self.annotations[iid] if iid else annotation.name


def value(annotation, names):
    """What an annotation holds."""
    kind = annotation.WhichOneof("value")
    if kind is not None:
        return getattr(annotation, kind)
    if annotation.dict_entries:
        return {names.annotation(entry): value(entry, names) for entry in annotation.dict_entries}
    if annotation.array_values:
        return [value(element, names) for element in annotation.array_values]
    return NOTHING


def shown(text):
    """A text in which wrong bytes are no surrogates, but told."""
    return "".join(
        f"\\x{ord(letter) - 0xDC00:02x}" if 0xDC80 <= ord(letter) <= 0xDCFF else letter
        for letter in text
    )


def same(found, expected):
    """Whether an annotation is what JSON says."""
    if expected is None or expected == {} or expected == []:
        return found is NOTHING
    if isinstance(expected, dict):
        return (
            isinstance(found, dict)
            and found.keys() == expected.keys()
            and all(same(found[name], expected[name]) for name in expected)
        )
    if isinstance(expected, list):
        return (
            isinstance(found, list)
            and len(found) == len(expected)
            and all(map(same, found, expected))
        )
    if isinstance(expected, str):
        if isinstance(found, float):
            text = "NaN" if math.isnan(found) else "Infinity" if found > 0 else "-Infinity"
            return not math.isfinite(found) and text == expected
        return found == shown(expected)
    if isinstance(expected, float) and isinstance(found, float):
        # Of a number of 32 bits JSON has as many digits as tell it from its neighbours.
        return found in (expected, struct.unpack("f", struct.pack("f", expected))[0])
    return type(found) is not str and found == expected


def fields(line):
    """The annotations that an event of JSON shall have."""
    expected = {f"{scope}.{name}": it for scope in SCOPES for name, it in line.get(scope, {}).items()}
    expected.update(line.get("payload", {}))
    expected.update({name: line[name] for name in OF_LOGS if name in line and "payload" not in line})
    return expected


def main(trace_path, lines_path):
    trace = Trace()
    with open(trace_path, "rb") as file:
        trace.ParseFromString(file.read())
    with open(lines_path, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    names, tracks, count = Names(), {}, 0
    for number, packet in enumerate(trace.packet):
        assert packet.trusted_packet_sequence_id, f"packet {number} is of no sequence"
        names.learn(packet.interned_data)
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            assert track.uuid not in tracks, f"track {track.uuid} is told twice"
            tracks[track.uuid] = (track.name, track.parent_uuid)
        if not packet.HasField("track_event"):
            continue
        event = packet.track_event
        assert count < len(lines), f"there are more than {count} events"
        line = lines[count]
        count += 1
        where = f"event {count}"
        assert event.type == event.TYPE_INSTANT, f"{where}: type {event.type}"
        assert packet.timestamp == line["timestamp"], f"{where}: time {packet.timestamp}"
        assert names.event(event) == line["event"], f"{where}: name {names.event(event)}"
        name, parent = tracks[event.track_uuid]
        assert name == line.get("track_name", name), f"{where}: track {name}"
        assert parent in tracks, f"{where}: its track lies in none of a recording"
        root, above = tracks[parent]
        assert not above and line["recording"].endswith(root), f"{where}: recording {root}"
        found = [(names.annotation(it), value(it, names)) for it in event.debug_annotations]
        expected = fields(line)
        assert sorted(name for name, _ in found) == sorted(expected), f"{where}: {found}"
        for name, it in found:
            assert same(it, expected[name]), f"{where}: {name} is {it}, not {expected[name]}"
    assert count == len(lines), f"{count} events, not {len(lines)}"
    print(f"{count} events on {len(tracks)} tracks")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except AssertionError as difference:
        sys.exit(str(difference))
