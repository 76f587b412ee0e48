"""Makes the traces of these tests with Perfetto's own schema.

    python make.py DIR     (needs the Python package `perfetto`)
"""

import sys
import zlib

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

BOOT, REAL, MONO = 6, 1, 3


def packet(trace, time=None, sequence=1, flags=2):
    it = trace.packet.add()
    it.trusted_packet_sequence_id = sequence
    if flags:
        it.sequence_flags = flags
    if time is not None:
        it.timestamp = time
    return it


def event(trace, time, kind, track=None, name=None, **packet_options):
    it = packet(trace, time, **packet_options)
    it.track_event.type = getattr(TrackEvent, "TYPE_" + kind)
    if track is not None:
        it.track_event.track_uuid = track
    if name is not None:
        it.track_event.name = name
    return it.track_event


def slices():
    """Slices, instants, flows, annotations of all kinds, names interned; not in order of time."""
    trace = Trace()
    first = packet(trace, flags=1)
    first.first_packet_on_sequence = True
    first.track_descriptor.uuid = 10
    first.track_descriptor.process.pid = 7
    first.track_descriptor.process.process_name = "daemon"
    thread = packet(trace).track_descriptor
    thread.uuid, thread.parent_uuid = 11, 10
    thread.thread.pid, thread.thread.tid, thread.thread.thread_name = 7, 8, "worker"
    own = packet(trace).track_descriptor
    own.uuid, own.parent_uuid, own.name = 2**64 - 1, 10, "requests"
    it = packet(trace, 300)
    for kind, iid, name in (
        ("event_names", 1, "work"),
        ("event_categories", 1, "net"),
        ("event_categories", 2, "io"),
        ("debug_annotation_names", 1, "size"),
    ):
        entry = getattr(it.interned_data, kind).add()
        entry.iid, entry.name = iid, name
    text = it.interned_data.debug_annotation_string_values.add()
    text.iid, text.str = 1, b"a text that is told once"
    it.track_event.type = TrackEvent.TYPE_SLICE_BEGIN
    it.track_event.track_uuid, it.track_event.name_iid = 11, 1
    it.track_event.category_iids.extend([1, 2])
    size = it.track_event.debug_annotations.add()
    size.name_iid, size.uint_value = 1, 4096
    event(trace, 500, "SLICE_END", 11)
    it = event(trace, 400, "INSTANT", 11, "note")
    it.flow_ids.extend([1, 2**64 - 1])
    it.categories.append("own")
    for key, field, value in (
        ("b", "bool_value", True),
        ("u", "uint_value", 2**64 - 1),
        ("i", "int_value", -5),
        ("d", "double_value", 0.5),
        ("s", "string_value", 'quoted "text"'),
        ("p", "pointer_value", 0xDEAD),
        ("j", "legacy_json_value", '{"a":1}'),
        ("t", "string_value_iid", 1),
    ):
        annotation = it.debug_annotations.add()
        annotation.name = key
        setattr(annotation, field, value)
    nested = it.debug_annotations.add()
    nested.name = "n"
    one = nested.dict_entries.add()
    one.name_iid, one.int_value = 1, 1
    two = nested.dict_entries.add()
    two.name = "list"
    for number in (1.5, 2.5):
        two.array_values.add().double_value = number
    old = it.debug_annotations.add()
    old.name = "o"
    old.nested_value.nested_type = 1
    old.nested_value.dict_keys.append("k")
    value = old.nested_value.dict_values.add()
    value.nested_type = 2
    value.array_values.add().string_value = "v"
    it = event(trace, 450, "INSTANT", 11, "note")
    it.terminating_flow_ids.append(1)
    annotation = it.debug_annotations.add()
    annotation.name, annotation.int_value = "u", 3
    event(trace, 100, "INSTANT", 2**64 - 1, "early").correlation_id = 77
    event(trace, 110, "STATE", 2**64 - 1, "waiting")
    event(trace, 50, "INSTANT", 0, "nowhere")
    event(trace, 60, "INSTANT", 99, "undescribed")
    # A name that was never told.
    event(trace, 70, "INSTANT", 11).name_iid = 9
    # A sequence whose state was lost.
    event(trace, 80, "INSTANT", 11, "lost", sequence=2)
    # The rest of the trace is counted.
    packet(trace).trace_config.duration_ms = 5
    packet(trace).trace_stats.producers_connected = 1
    it = event(trace, 90, "INSTANT", 11, "located")
    it.source_location_iid = 3
    return trace


def counters():
    """Counters: with units, multipliers, of floating point numbers, incremental, extra ones."""
    trace = Trace()
    packet(trace, flags=1)
    for uuid, name, unit, multiplier, incremental in (
        (1, "memory", 3, 1024, False),
        (2, "load", None, None, False),
        (3, "events", 2, None, True),
    ):
        track = packet(trace).track_descriptor
        track.uuid, track.name = uuid, name
        track.counter.SetInParent()
        if unit:
            track.counter.unit = unit
        if multiplier:
            track.counter.unit_multiplier = multiplier
        track.counter.is_incremental = incremental
    track = packet(trace).track_descriptor
    track.uuid, track.name, track.counter.unit_name = 4, "heat", "K"
    for time, value in ((10, 4), (20, -8)):
        event(trace, time, "COUNTER", 1).counter_value = value
    event(trace, 15, "COUNTER", 2).double_counter_value = 0.25
    for time in (11, 12, 13):
        event(trace, time, "COUNTER", 3).counter_value = 5
    it = packet(trace)
    defaults = it.trace_packet_defaults.track_event_defaults
    defaults.track_uuid = 50
    defaults.extra_counter_track_uuids.extend([3, 1])
    defaults.extra_double_counter_track_uuids.append(4)
    it = event(trace, 30, "SLICE_BEGIN", name="defaults")
    it.extra_counter_values.extend([7, 1])
    it.extra_double_counter_values.append(300.5)
    event(trace, 31, "SLICE_END")
    return trace


def clocks():
    """Clocks: of the machine, of a sequence, incremental; names that are forgotten."""
    trace = Trace()
    it = packet(trace, flags=1)
    # Times without a clock come before the snapshot that places them.
    early = packet(trace, 900)
    early.timestamp_clock_id = MONO
    early.track_event.type, early.track_event.name = TrackEvent.TYPE_INSTANT, "monotonic"
    for boot, mono, real in ((2000, 1000, 10**18), (4010, 3000, 10**18 + 2010)):
        it = packet(trace)
        for clock, value in ((BOOT, boot), (MONO, mono), (REAL, real)):
            entry = it.clock_snapshot.clocks.add()
            entry.clock_id, entry.timestamp = clock, value
    it = packet(trace)
    for clock, value, multiplier, incremental in (
        (BOOT, 5000, 0, False),
        (64, 100, 1000, True),
        (65, 7, 10, False),
    ):
        entry = it.clock_snapshot.clocks.add()
        entry.clock_id, entry.timestamp = clock, value
        if multiplier:
            entry.unit_multiplier_ns = multiplier
        entry.is_incremental = incremental
    packet(trace).trace_packet_defaults.timestamp_clock_id = 64
    for name in ("one", "two"):
        event(trace, 3, "INSTANT", name=name)
    it = packet(trace, 9)
    it.timestamp_clock_id = 65
    it.track_event.type, it.track_event.name = TrackEvent.TYPE_INSTANT, "absolute"
    it = packet(trace, 2900)
    it.timestamp_clock_id = MONO
    it.track_event.type, it.track_event.name = TrackEvent.TYPE_INSTANT, "late"
    it = packet(trace, 12, flags=1)
    it.timestamp_clock_id = 77
    it.track_event.type, it.track_event.name = TrackEvent.TYPE_INSTANT, "unknown clock"
    return trace


def legacy():
    """Events with phases."""
    trace = Trace()
    it = packet(trace, flags=1)
    it.thread_descriptor.pid, it.thread_descriptor.tid = 3, 4
    it.thread_descriptor.reference_timestamp_us = 1000
    for phase, delta, more in (
        ("B", 5, {}),
        ("X", 1, {"duration_us": 20}),
        ("S", 1, {"unscoped_id": 0x10}),
        ("F", 1, {"unscoped_id": 0x10}),
        ("b", 1, {"local_id": 1}),
        ("I", 1, {"instant_event_scope": 2}),
        ("X", 1, {"duration_us": 1, "bind_id": 5, "flow_direction": 2}),
        ("I", 1, {"bind_id": 5, "flow_direction": 1}),
        ("E", 1, {}),
        ("(", 1, {}),
    ):
        it = packet(trace).track_event
        it.timestamp_delta_us, it.name = delta, "old " + phase
        it.categories.append("cat")
        it.legacy_event.phase = ord(phase)
        for key, value in more.items():
            setattr(it.legacy_event, key, value)
    return trace


def kernel():
    """ftrace: scheduling as events and in its compact form, prints, a process tree."""
    trace = Trace()
    it = packet(trace, flags=0)
    bundle = it.ftrace_events
    bundle.cpu = 1
    one = bundle.event.add()
    one.timestamp, one.pid = 100, 8
    switch = one.sched_switch
    switch.prev_comm, switch.prev_pid, switch.prev_prio, switch.prev_state = "worker", 8, 120, 1
    switch.next_comm, switch.next_pid, switch.next_prio = "swapper/1", 0, 120
    one = bundle.event.add()
    one.timestamp, one.pid = 90, 5
    wake = one.sched_waking
    wake.comm, wake.pid, wake.prio, wake.success, wake.target_cpu = "worker", 8, 120, 1, 1
    for time, text in (
        (80, "B|7|draw\n"),
        (81, "C|7|fps|60\n"),
        (85, "E|7\n"),
        (86, "free text\n"),
    ):
        one = bundle.event.add()
        one.timestamp, one.pid = time, 8
        one.print.buf = text
    bundle.event.add().cpu_idle.state = 1
    it = packet(trace, flags=0)
    bundle = it.ftrace_events
    bundle.cpu = 1
    compact = bundle.compact_sched
    compact.intern_table.extend(["worker", "other"])
    compact.switch_timestamp.extend([200, 10])
    compact.switch_prev_state.extend([0, 2])
    compact.switch_next_pid.extend([8, 9])
    compact.switch_next_prio.extend([120, 100])
    compact.switch_next_comm_index.extend([0, 1])
    compact.waking_timestamp.extend([195])
    compact.waking_pid.extend([8])
    compact.waking_target_cpu.extend([1])
    compact.waking_prio.extend([120])
    compact.waking_comm_index.extend([0])
    it = packet(trace, flags=0)
    process = it.process_tree.processes.add()
    process.pid = 7
    process.cmdline.append("/bin/daemon")
    thread = it.process_tree.threads.add()
    thread.tid, thread.tgid, thread.name = 8, 7, "worker"
    return trace


def main(directory):
    for make in (slices, counters, clocks, legacy, kernel):
        with open(f"{directory}/{make.__name__}.pftrace", "wb") as file:
            file.write(make().SerializeToString())
    plain = Trace()
    packet(plain, flags=0).compressed_packets = zlib.compress(kernel().SerializeToString())
    with open(f"{directory}/compressed.pftrace", "wb") as file:
        file.write(plain.SerializeToString())


if __name__ == "__main__":
    main(sys.argv[1])
