"""Reads a trace with Perfetto's own schema, and says where it differs from the JSON lines that
`kymo print` shows of the same recordings.

    python check_perfetto.py TRACE LINES STATS [--track FIELD] [--slice BEGIN:END[:FIELD]]...
                             [--counter EVENT:FIELD]... [--flow FIELD]...

Counts, order, times, names, tracks and every field are compared, and how many events of each class
`kymo stats --json` (STATS) says there are. The options are those that the trace was made with: what
slices, counters and flows there have to be is found from the lines alone, and which event ends
which slice in the trace from the trace alone, as its viewers do.
"""

import argparse
import collections
import fnmatch
import json
import math
import re
import struct
import sys

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace

SCOPES = ("packet_context", "common_context", "specific_context")
OF_LOGS = ("track", "track_name", "event_class", "datum", "text")
NOTHING = object()
# So many slices lie within each other, as docs/convert.md says.
MOST_OPEN = 500


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


def field_of(line, name):
    """What a line has in a field, as conditions find it; `NOTHING` where it has none."""
    if name in line and "payload" not in line:
        return line[name]
    for scope in ("payload", *reversed(SCOPES)):
        if name in line.get(scope, {}):
            it = line[scope][name]
            return it["value"] if isinstance(it, dict) and "value" in it else it
    return NOTHING


def frozen(it):
    """A value as a key: 1 and true and 1.0 are three."""
    return (type(it).__name__, json.dumps(it))


def is_number(it):
    return isinstance(it, (int, float)) and not isinstance(it, bool)


class Slices:
    """Which slices the lines begin and end, by what docs/convert.md says."""

    def __init__(self, options):
        self.options = []
        for option in options:
            parts = [part.replace("\\:", ":") for part in re.split(r"(?<!\\):", option)]
            begin, end, *field = parts
            self.options.append((begin, end, field[0] if field else None))
        self.open = collections.defaultdict(list)
        self.refused = collections.defaultdict(collections.Counter)

    def match(self, name, part):
        for number, option in enumerate(self.options):
            if fnmatch.fnmatchcase(name, option[part]):
                return number
        return None

    def key(self, number, line):
        field = self.options[number][2]
        return frozen(field_of(line, field)) if field and field_of(line, field) is not NOTHING else None

    def place(self, track, number, line):
        """Which lines' slices an event ends before it, and whether it begins or ends one itself."""
        closed, phase, stack = [], "instant", self.open[track]
        refused = self.refused[track]
        begins, ends = self.match(line["event"], 0), self.match(line["event"], 1)
        if ends is not None:
            wanted = (ends, self.key(ends, line))
            if refused[wanted]:
                # It ends one that was too deep to begin.
                refused[wanted] -= 1
            elif any(what == wanted for what, _ in stack):
                refused.clear()
                while True:
                    what, begun = stack.pop()
                    closed.append(begun)
                    if what == wanted:
                        break
            if closed and begins is None:
                phase = "end"
        if begins is not None:
            slice_begun = (begins, self.key(begins, line))
            if len(stack) < MOST_OPEN:
                stack.append((slice_begun, number))
                phase = "begin"
            elif refused[slice_begun] or len(+refused) < MOST_OPEN:
                refused[slice_begun] += 1
        return closed, phase


class Reader:
    """The packets of a trace with events, and what is known of the tracks before each."""

    def __init__(self, packets):
        self.packets = packets
        self.names, self.tracks = Names(), {}
        # The lines whose slices are open, by track.
        self.open = collections.defaultdict(list)
        self.number = 0

    def next(self):
        """The time and the event of the next packet that has one, or nothing at the end."""
        for packet in self.packets:
            self.number += 1
            assert packet.trusted_packet_sequence_id, f"packet {self.number} is of no sequence"
            self.names.learn(packet.interned_data)
            if packet.HasField("track_descriptor"):
                track = packet.track_descriptor
                assert track.uuid not in self.tracks, f"track {track.uuid} is told twice"
                self.tracks[track.uuid] = track
            if packet.HasField("track_event"):
                return packet.timestamp, packet.track_event
        return None

    def event(self, line, where):
        """The next event, which is at the time of a line."""
        found = self.next()
        assert found, f"{where}: the trace has no more events"
        time, event = found
        assert time == line["timestamp"], f"{where}: time {time}"
        return event

    def recording(self, uuid, line, where):
        """Looks whether a track is that of the recording of a line."""
        assert uuid in self.tracks, f"{where}: its track lies in none of a recording"
        root = self.tracks[uuid]
        assert not root.parent_uuid, f"{where}: recording {root.name} lies in another track"
        assert line["recording"].endswith(root.name), f"{where}: recording {root.name}"

    def counter(self, line, where):
        """The track and the value of the next event, which has to be a counter's."""
        event = self.event(line, where)
        assert event.type == event.TYPE_COUNTER, f"{where}: type {event.type}, not a counter's"
        track = self.tracks[event.track_uuid]
        assert track.HasField("counter"), f"{where}: {track.name} is no track of a counter"
        kind = event.WhichOneof("counter_value_field")
        return track, getattr(event, kind)

    def ended(self, uuid, where):
        """The line whose slice ends with an event."""
        assert self.open[uuid], f"{where}: it ends a slice where none is open"
        return self.open[uuid].pop()


class OneToOne:
    """Pairs of which neither side has a second partner."""

    def __init__(self, what):
        self.what, self.there, self.back = what, {}, {}

    def hold(self, one, other, where):
        is_same = self.there.setdefault(one, other) == other and self.back.setdefault(other, one) == one
        assert is_same, f"{where}: {self.what} {other} is not that of {one} alone"


class Judge:
    """Compares line by line, and counts what it compared."""

    def __init__(self, reader, options):
        self.reader, self.options = reader, options
        self.slices = Slices(options.slice)
        self.tracks = OneToOne("track")
        self.counters = OneToOne("counter")
        self.flows = OneToOne("flow")
        self.joined = collections.Counter()
        self.begun = self.ended = self.counted = 0

    def track_of(self, line):
        """What tells the track of an event from all others, and its name where that is known."""
        if self.options.track:
            it = field_of(line, self.options.track)
            if it is not NOTHING:
                return (line["recording"], frozen(it)), f"{self.options.track} {it}"
        elif "track" in line:
            return (line["recording"], line["track"]), line["track_name"]
        return tuple(line.get(key) for key in ("recording", "trace", "stream_class", "stream")), None

    def sample(self, line, where):
        """A row of a database: a counter for each value that is known."""
        for source, it in line["payload"].items():
            if is_number(it):
                track, found = self.reader.counter(line, where)
                assert same(found, float(it)), f"{where}: {source} is {found}, not {it}"
                assert source in track.name and line["archive"] in track.name, f"{where}: {track.name}"
                self.counters.hold((line["recording"], line["archive_index"], source), track.uuid, where)
                self.reader.recording(track.parent_uuid, line, where)
                self.counted += 1

    def event(self, number, line, where):
        key, name = self.track_of(line)
        closed, phase = self.slices.place(key, number, line)
        # An event that ends a slice is the last end itself.
        before, last = (closed[:-1], closed[-1]) if phase == "end" else (closed, None)
        for begun in before:
            event = self.reader.event(line, where)
            assert event.type == event.TYPE_SLICE_END, f"{where}: type {event.type}, not an end's"
            assert not event.debug_annotations and not event.name_iid, f"{where}: more than an end"
            self.tracks.hold(key, event.track_uuid, where)
            found = self.reader.ended(event.track_uuid, where)
            assert found == begun, f"{where}: it ends the slice of line {found}, not {begun}"
            self.ended += 1
        parents = set()
        for option in self.options.counter:
            pattern, _, field = option.rpartition(":")
            it = field_of(line, field)
            if not fnmatch.fnmatchcase(line["event"], pattern) or not is_number(it):
                continue
            track, found = self.reader.counter(line, where)
            assert same(found, it) or found == float(it), f"{where}: {field} is {found}, not {it}"
            assert track.name == f"{line['event']} {field}", f"{where}: {track.name}"
            of_class = (line.get("stream_class"), line["event_class"])
            self.counters.hold((key, of_class, option), track.uuid, where)
            parents.add(track.parent_uuid)
            self.counted += 1
        event = self.reader.event(line, where)
        self.tracks.hold(key, event.track_uuid, where)
        assert parents <= {event.track_uuid}, f"{where}: a counter lies in another track"
        self.is_event(line, phase, event, where)
        if phase == "begin":
            self.reader.open[event.track_uuid].append(number)
            self.begun += 1
        if phase == "end":
            found = self.reader.ended(event.track_uuid, where)
            assert found == last, f"{where}: it ends the slice of line {found}, not {last}"
            self.ended += 1
        track = self.reader.tracks[event.track_uuid]
        assert name in (None, track.name), f"{where}: track {track.name}, not {name}"
        self.reader.recording(track.parent_uuid, line, where)

    def is_event(self, line, phase, event, where):
        """Compares what an event itself holds."""
        names = self.reader.names
        kinds = {"instant": event.TYPE_INSTANT, "begin": event.TYPE_SLICE_BEGIN, "end": event.TYPE_SLICE_END}
        assert event.type == kinds[phase], f"{where}: type {event.type} of an {phase}"
        found = [(names.annotation(it), value(it, names)) for it in event.debug_annotations]
        if phase == "end":
            assert not names.event(event), f"{where}: an end with a name"
            (label, called), *found = found
            assert label == "end", f"{where}: {label} comes before the name of an end"
        else:
            called = names.event(event)
        assert called == line["event"], f"{where}: name {called}"
        expected = fields(line)
        assert sorted(name for name, _ in found) == sorted(expected), f"{where}: {found}"
        for name, it in found:
            assert same(it, expected[name]), f"{where}: {name} is {it}, not {expected[name]}"
        asked = [(field, field_of(line, field)) for field in self.options.flow]
        wanted = [(field, frozen(it)) for field, it in asked if it is not NOTHING]
        assert len(event.flow_ids) == len(wanted), f"{where}: {len(event.flow_ids)} flows"
        for flow, its in zip(event.flow_ids, wanted):
            self.flows.hold(its, flow, where)
            self.joined[flow] += 1

    def finish(self):
        still_open = sum(map(len, self.slices.open.values()))
        assert self.begun == self.ended + still_open, "slices are neither ended nor open"
        assert still_open == sum(map(len, self.reader.open.values())), "other slices are open"


def main():
    parser = argparse.ArgumentParser()
    for name in ("trace", "lines", "stats"):
        parser.add_argument(name)
    parser.add_argument("--track")
    for name in ("--slice", "--counter", "--flow"):
        parser.add_argument(name, action="append", default=[])
    options = parser.parse_args()
    trace = Trace()
    with open(options.trace, "rb") as file:
        trace.ParseFromString(file.read())
    with open(options.lines, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    with open(options.stats, encoding="utf-8") as file:
        stats = json.load(file)
    judge = Judge(Reader(iter(trace.packet)), options)
    names = collections.Counter()
    for number, line in enumerate(lines, 1):
        where = f"line {number}"
        if line["kind"] == "sample":
            names[line["archive"]] += 1
            judge.sample(line, where)
        else:
            names[line["event"]] += 1
            judge.event(number, line, where)
    assert judge.reader.next() is None, f"there are more events than those of {len(lines)} lines"
    judge.finish()
    told = collections.Counter()
    for of_class in stats["event_classes"]:
        told[of_class["event"]] += of_class["events"]
    assert told == names, f"`kymo stats` counts {told}, not {names}"
    parts = [f"{len(lines)} lines on {len(judge.reader.tracks)} tracks"]
    joined = sum(1 for count in judge.joined.values() if count > 1)
    for option, what in (
        (options.slice, f"{judge.begun} slices of which {judge.ended} end"),
        (judge.counted, f"{judge.counted} values of counters"),
        (options.flow, f"{joined} flows of several events"),
    ):
        if option:
            parts.append(what)
    # What was asked for is there to be compared.
    assert not options.slice or judge.ended, "no slice ends"
    assert not options.counter or judge.counted, "no counter has a value"
    assert not options.flow or joined, "no flow joins events"
    print(", ".join(parts))


if __name__ == "__main__":
    try:
        main()
    except AssertionError as difference:
        sys.exit(str(difference))
