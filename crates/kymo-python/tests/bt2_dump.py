"""Prints all that a module with bt2's interface tells of traces: `bt2_dump.py MODULE PATH`."""

import collections
import importlib
import sys

bt2 = importlib.import_module(sys.argv[1])


def show_class(cls, indent):
    # Whether a class is constant, and how a length or an option is selected, is told by names in bt2.
    kind = type(cls).__name__.replace("WithLengthField", "").replace("Const", "")
    kind = kind.replace("WithUnsignedIntegerSelector", "").replace("WithSignedIntegerSelector", "")
    facts = []
    for name in ("field_value_range", "preferred_display_base", "length"):
        value = getattr(cls, name, None)
        if value is not None:
            facts.append("%s=%s" % (name, int(value)))
    print(" " * indent + kind, " ".join(facts))
    if isinstance(cls, bt2._EnumerationFieldClassConst):
        for label in cls:
            ranges = sorted((one.lower, one.upper) for one in cls[label].ranges)
            print(" " * indent, repr(label), ranges)
    elif isinstance(cls, (bt2._StructureFieldClassConst, bt2._VariantFieldClassConst)):
        for name in cls:
            print(" " * indent, name)
            show_class(cls[name].field_class, indent + 2)
    elif isinstance(cls, bt2._ArrayFieldClassConst):
        show_class(cls.element_field_class, indent + 2)


def snapshot(make):
    try:
        shown = make()
    except ValueError:
        return "no clock"
    if isinstance(shown, bt2._UnknownClockSnapshot):
        return "unknown"
    return "%d %d" % (shown.value, shown.ns_from_origin)


def behaves(field):
    """What operators make of a field."""
    field = field.selected_option if isinstance(field, bt2._VariantFieldConst) else field
    if isinstance(field, bt2._EnumerationFieldConst):
        return [int(field), list(field.labels), field == int(field)]
    if isinstance(field, bt2._IntegerFieldConst):
        results = [field + 1, 1 + field, field // 3, -field, ~field, field & 0xFF, field >> 1, hash(field), field < 7]
        return [*results, "%d %s %r" % (field, field, field), range(10)[field % 10], {field: 1} == {int(field): 1}]
    if isinstance(field, bt2._RealFieldConst):
        return [field * 2, float(field), "%.3f" % field, field == float(field)]
    if isinstance(field, bt2._StringFieldConst):
        return [str(field), field == str(field), len(field), field[:2]]
    if isinstance(field, bt2._StructureFieldConst):
        return [len(field), list(field), bool(field)] + [behaves(field[name]) for name in field]
    if isinstance(field, bt2._ArrayFieldConst):
        return [len(field)] + [behaves(one) for one in field]
    return [repr(field)]


def show_trace(trace):
    print("trace", trace.name, trace.uuid, len(trace))
    for key in sorted(trace.environment):
        print(" ", key, trace.environment[key])
    for id in sorted(trace.cls):
        cls = trace.cls[id]
        clock = cls.default_clock_class
        print(" stream class", cls.id, cls.name, len(cls))
        if clock is not None:
            offset = clock.offset
            print(" ", clock.name, clock.uuid, clock.frequency, offset.seconds, offset.cycles, clock.precision)
            print(" ", clock.description, clock.origin_is_unix_epoch, clock.cycles_to_ns_from_origin(12345))
        # kymo.bt2 knows the packets of streams that there are.
        has_stream = any(stream.cls.id == id for stream in trace.values())
        if has_stream and cls.packet_context_field_class is not None:
            show_class(cls.packet_context_field_class, 3)
        for number in sorted(cls):
            event = cls[number]
            print("  event class", event.id, event.name, event.log_level, event.emf_uri)
            for part in (event.specific_context_field_class, event.payload_field_class):
                if part is not None:
                    show_class(part, 4)
    for stream in sorted(trace.values(), key=lambda one: str(one.name)):
        print(" stream", stream.id, stream.name, stream.cls.id)


seen = set()
counts = collections.Counter()
try:
    for msg in bt2.TraceCollectionMessageIterator(sys.argv[2:]):
        kind = type(msg).__name__
        counts[kind] += 1
        if isinstance(msg, bt2._StreamBeginningMessageConst):
            trace = msg.stream.trace
            if trace.uuid not in seen:
                seen.add(trace.uuid)
                show_trace(trace)
        if isinstance(msg, bt2._EventMessageConst):
            event = msg.event
            print(event.name, event.id, event.stream.id, snapshot(lambda: msg.default_clock_snapshot))
            for part in ("common_context_field", "specific_context_field", "payload_field"):
                field = getattr(event, part)
                if field is not None:
                    print(" ", part, repr(field), behaves(field))
                    for name in field:
                        assert event[name] is not None
            try:
                event["no such field"]
            except KeyError as error:
                assert error.args == ("no such field",)
        elif isinstance(msg, (bt2._PacketBeginningMessageConst, bt2._PacketEndMessageConst)):
            context = msg.packet.context_field
            cls = msg.packet.stream.cls
            is_begin = isinstance(msg, bt2._PacketBeginningMessageConst)
            has = cls.packets_have_beginning_default_clock_snapshot if is_begin else cls.packets_have_end_default_clock_snapshot
            time = snapshot(lambda: msg.default_clock_snapshot) if has else "no snapshot"
            print(kind, msg.packet.stream.id, time, repr(context))
        elif isinstance(msg, (bt2._DiscardedEventsMessageConst, bt2._DiscardedPacketsMessageConst)):
            begin = snapshot(lambda: msg.beginning_default_clock_snapshot)
            print(kind, msg.count, begin, snapshot(lambda: msg.end_default_clock_snapshot))
        elif isinstance(msg, (bt2._StreamBeginningMessageConst, bt2._StreamEndMessageConst)):
            print(kind, msg.stream.name, snapshot(lambda: msg.default_clock_snapshot))
        else:
            print(kind)
except bt2._Error:
    print("error")
print(sorted(counts.items()))
