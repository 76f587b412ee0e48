"""Messages, and what they are of."""

from __future__ import annotations

import collections.abc
import functools
import json
import numbers
import os
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

from .. import _kymo
from ._classes import (
    _ClockClassConst,
    _EventClassConst,
    _StreamClassConst,
    _TraceClassConst,
    _uuid,
)
from ._field_classes import make


class _Error(_kymo.Error):
    """What a trace could not be read for."""


@functools.total_ordering
class _ClockSnapshotConst:
    """What a clock showed."""

    __slots__ = ("_nanos", "clock_class", "value")

    def __init__(self, clock_class: _ClockClassConst, value: int, nanos: int | None = None) -> None:
        self.clock_class = clock_class
        #: In cycles.
        self.value = value
        self._nanos = nanos

    @property
    def ns_from_origin(self) -> int:
        """In nanoseconds from the clock's origin."""
        if self._nanos is None:
            return self.clock_class.cycles_to_ns_from_origin(self.value)
        return self._nanos

    def __eq__(self, other: object) -> bool:
        return self.value == int(other) if isinstance(other, numbers.Integral) else NotImplemented

    def __lt__(self, other: object) -> bool:
        return self.value < int(other) if isinstance(other, numbers.Integral) else NotImplemented

    __hash__ = None  # type: ignore[assignment]


class _UnknownClockSnapshot:
    """What a clock showed, if nobody knows."""


class _TraceConst(collections.abc.Mapping):  # type: ignore[type-arg]
    """A trace: a mapping from numbers to streams."""

    def __init__(self, collection: _Collection, position: int, description: dict[str, Any]) -> None:
        self.cls = _TraceClassConst()
        self.uuid = _uuid(description["uid"])
        self.environment = description.get("environment") or {}
        # As babeltrace2 calls traces that are opened by a path.
        hostname = self.environment.get("hostname", "")
        self.name = hostname if description["format"] == "ctf" and isinstance(hostname, str) else description["name"]
        self.user_attributes: dict[str, Any] = {}
        clocks = [_ClockClassConst(clock) for clock in description.get("clocks", ())]
        by_name = {clock.name: clock for clock in clocks}
        for stream_class in description.get("stream_classes", ()):
            clock = by_name.get(stream_class["clock"]) if stream_class["clock"] is not None or None in by_name else None
            made = _StreamClassConst(self.cls, stream_class, clock)
            made._load = functools.partial(collection.event_class, position)
            self.cls._streams[made.id] = made
        self._streams = []
        for number, stream in enumerate(description["streams"]):
            cls = self.cls._streams.get(stream.get("stream_class", 0))
            self._streams.append(_StreamConst(collection, self, cls, (position, number), stream))

    def __len__(self) -> int:
        return len(self._streams)

    def __iter__(self) -> Iterator[int | None]:
        return (stream.id for stream in self._streams)

    def __getitem__(self, id: int) -> _StreamConst:
        for stream in self._streams:
            if stream.id == id:
                return stream
        raise KeyError(id)


class _StreamConst:
    """A stream of events."""

    def __init__(
        self, collection: _Collection, trace: _TraceConst, cls: Any, place: tuple[int, int], description: dict[str, Any]
    ) -> None:
        self._collection = collection
        self._place = place
        self.trace = trace
        self.cls = cls
        self.id = description.get("stream")
        self.name = description.get("name")
        self.user_attributes: dict[str, Any] = {}
        context = collection.source._packet_fields(*place)
        self._context = None if context is None or not context["children"] else make(context)
        if cls is not None:
            cls.packet_context_field_class = self._context
            has_clock = cls.default_clock_class is not None
            facts = context or {}
            cls.packets_have_beginning_default_clock_snapshot = has_clock and facts.get("has_begin", False)
            cls.packets_have_end_default_clock_snapshot = has_clock and facts.get("has_end", False)
        #: The packet that was asked for last.
        self._packet: _PacketConst | None = None

    def _packet_at(self, number: int) -> _PacketConst:
        packet = self._packet
        if packet is None or packet._number != number:
            packet = self._packet = _PacketConst(self, number)
        return packet


class _PacketConst:
    """A packet of a stream."""

    def __init__(self, stream: _StreamConst, number: int) -> None:
        self.stream = stream
        self._number = number

    @functools.cached_property
    def context_field(self) -> Any:
        """The fields of its context, or None."""
        stream = self.stream
        if stream._context is None:
            return None
        return stream._context._make(stream._collection.source._packet(*stream._place, self._number))


#: Whoever looks up more fields of an event than these gets them from a dictionary of all.
_FEW_FIELDS = 3


class _EventConst(collections.abc.Mapping):  # type: ignore[type-arg]
    """An event. Its fields are found by name in the payload, the contexts, and the packet's context."""

    __slots__ = ("_cls", "_collection", "_event", "_looked_up", "_scopes")

    def __init__(self, collection: _Collection, event: _kymo.Event) -> None:
        self._collection = collection
        self._event = event
        self._cls: _EventClassConst | None = None
        self._scopes: dict[str, Any] = {}
        self._looked_up = 0

    @property
    def cls(self) -> _EventClassConst:
        """The class of the event."""
        if self._cls is None:
            self._cls = self._collection.event_class(self._event.recording_index, self._event.class_index)
        return self._cls

    @property
    def name(self) -> str | None:
        """Name of its class."""
        return self.cls.name

    @property
    def id(self) -> int:
        """Number of its class."""
        return self.cls.id

    @property
    def stream(self) -> _StreamConst:
        """The stream it is of."""
        return self._collection.stream(self._event)

    @property
    def packet(self) -> _PacketConst:
        """The packet it is of."""
        return self.stream._packet_at(self._event.packet)

    def _scope(self, name: str, cls: Any) -> Any:
        if cls is None:
            return None
        scopes = self._scopes
        if name not in scopes:
            scopes[name] = cls._make(self._event._scope(name))
        return scopes[name]

    @property
    def payload_field(self) -> Any:
        """The fields of its payload."""
        return self._scope("payload", self.cls.payload_field_class)

    @property
    def specific_context_field(self) -> Any:
        """The fields of the context of its class."""
        return self._scope("specific_context", self.cls.specific_context_field_class)

    @property
    def common_context_field(self) -> Any:
        """The fields of the context that all events have."""
        return self._scope("common_context", self.cls._common_context_field_class)

    def _containers(self) -> Iterator[Any]:
        yield self.payload_field
        yield self.specific_context_field
        yield self.common_context_field
        yield self.packet.context_field

    def __getitem__(self, key: str) -> Any:
        if not isinstance(key, str):
            raise TypeError(f"'{type(key).__name__}' is not a 'str' object")
        place = self.cls._places.get(key)
        if place is not None:
            scope, member = place
            if self._looked_up < _FEW_FIELDS:
                self._looked_up += 1
                return member._make(self._event._member(scope, key))
            return getattr(self, f"{scope}_field")[key]
        fields = self.packet.context_field
        if fields is not None and key in fields:
            return fields[key]
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        seen = dict.fromkeys(key for fields in self._containers() if fields is not None for key in fields)
        return iter(seen)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__


class _MessageConst:
    """A message of a stream."""

    __slots__ = ("_collection", "_message")

    def __init__(self, collection: _Collection, message: _kymo.Event) -> None:
        self._collection = collection
        self._message = message

    def _clock(self) -> _ClockClassConst:
        cls = self._collection.stream(self._message).cls
        if cls is None or cls.default_clock_class is None:
            raise ValueError("cannot get default clock snapshot: stream class has no default clock class")
        return cls.default_clock_class


class _SnapshotMixin:
    __slots__ = ()

    @property
    def default_clock_snapshot(self) -> _ClockSnapshotConst:
        """What the default clock showed."""
        message = self._message  # type: ignore[attr-defined]
        return _ClockSnapshotConst(self._clock(), message.ticks, message.timestamp)  # type: ignore[attr-defined]


class _EventMessageConst(_SnapshotMixin, _MessageConst):
    """An event."""

    __slots__ = ("_event",)

    @property
    def event(self) -> _EventConst:
        """The event."""
        try:
            return self._event
        except AttributeError:
            self._event = _EventConst(self._collection, self._message)
            return self._event


class _StreamMessageConst(_MessageConst):
    __slots__ = ()

    @property
    def stream(self) -> _StreamConst:
        """The stream."""
        return self._collection.stream(self._message)

    @property
    def default_clock_snapshot(self) -> _UnknownClockSnapshot:
        """What the default clock showed: unknown."""
        self._clock()
        return _UnknownClockSnapshot()


class _StreamBeginningMessageConst(_StreamMessageConst):
    """A stream begins."""

    __slots__ = ()


class _StreamEndMessageConst(_StreamMessageConst):
    """A stream ends."""

    __slots__ = ()


class _PacketMessageConst(_MessageConst):
    __slots__ = ()

    @property
    def default_clock_snapshot(self) -> _ClockSnapshotConst:
        """What the default clock showed."""
        message = self._message
        clock = self._clock()
        if message.ticks is None:
            raise ValueError("cannot get default clock snapshot: packets of this stream class have none")
        return _ClockSnapshotConst(clock, message.ticks, message.timestamp)

    @property
    def packet(self) -> _PacketConst:
        """The packet."""
        return self._collection.stream(self._message)._packet_at(self._message.packet)


class _PacketBeginningMessageConst(_PacketMessageConst):
    """A packet begins."""

    __slots__ = ()


class _PacketEndMessageConst(_PacketMessageConst):
    """A packet ends."""

    __slots__ = ()


class _DiscardedMessageConst(_MessageConst):
    __slots__ = ()

    @property
    def stream(self) -> _StreamConst:
        """The stream."""
        return self._collection.stream(self._message)

    @property
    def count(self) -> int | None:
        """How many were discarded, if it is known."""
        return self._message._lost[0]

    def _snapshot(self, ticks: int | None) -> _ClockSnapshotConst:
        if ticks is None:
            raise ValueError(
                "cannot get default clock snapshot: such a message has no clock snapshots for this stream class"
            )
        return _ClockSnapshotConst(self._clock(), ticks)

    @property
    def beginning_default_clock_snapshot(self) -> _ClockSnapshotConst:
        """What the clock showed before."""
        return self._snapshot(self._message._lost[1])

    @property
    def end_default_clock_snapshot(self) -> _ClockSnapshotConst:
        """What the clock showed after."""
        return self._snapshot(self._message._lost[2])


class _DiscardedEventsMessageConst(_DiscardedMessageConst):
    """Events were discarded."""

    __slots__ = ()


class _DiscardedPacketsMessageConst(_DiscardedMessageConst):
    """Packets were discarded."""

    __slots__ = ()


class _MessageIteratorInactivityMessageConst(_MessageConst):
    """Nothing happened; no recording has such messages."""

    __slots__ = ()


_KINDS = (
    _EventMessageConst,
    _StreamBeginningMessageConst,
    _StreamEndMessageConst,
    _PacketBeginningMessageConst,
    _PacketEndMessageConst,
    _DiscardedEventsMessageConst,
    _DiscardedPacketsMessageConst,
)


class _Collection:
    """Recordings, and their objects, made when they are asked for."""

    def __init__(self, source: _kymo.Recordings) -> None:
        self.source = source
        self.traces: list[_TraceConst] = []
        self._all = source._classes()
        self._classes: dict[tuple[int, int], _EventClassConst] = {}
        for position, description in enumerate(json.loads(source._info())["recordings"]):
            self.traces.append(_TraceConst(self, position, description))
        self._first: list[int] = []
        for number, (recording, position, _, id, stream_class, *_) in enumerate(self._all):
            if position == 0:
                self._first += [number] * (recording + 1 - len(self._first))
            cls = self.traces[recording].cls._streams.get(stream_class)
            if cls is not None:
                cls._events[id] = position

    def event_class(self, recording: int, position: int) -> _EventClassConst:
        """The class of events at a position."""
        place = (recording, position)
        made = self._classes.get(place)
        if made is None:
            values = self._all[self._first[recording] + position]
            stream_class = self.traces[recording].cls._streams.get(values[4])
            made = self._classes[place] = _EventClassConst(self.source, place, values, stream_class)
        return made

    def stream(self, message: _kymo.Event) -> _StreamConst:
        """The stream of a message."""
        return self.traces[message.recording_index]._streams[message.stream]


class AutoSourceComponentSpec:
    """A path whose format is found out."""

    def __init__(self, input: Any, params: Any = None, obj: Any = None, logging_level: Any = None) -> None:
        self.input = os.fspath(input)
        self.params = params
        self.obj = obj


class ComponentSpec:
    """A source component: `ctf.fs` with `inputs`."""

    def __init__(self, inputs: list[str]) -> None:
        self._inputs = inputs

    @classmethod
    def from_named_plugin_and_component_class(
        cls,
        plugin_name: str,
        component_class_name: str,
        params: Any = None,
        obj: Any = None,
        logging_level: Any = None,
    ) -> ComponentSpec:
        """The component of a plugin's class; there is `ctf`'s `fs`."""
        if plugin_name != "ctf":
            raise ValueError(f"no such plugin: {plugin_name}")
        if component_class_name != "fs":
            raise KeyError(f"source component class `{component_class_name}` not found in plugin `{plugin_name}`")
        if isinstance(params, str):
            return cls([params])
        unknown = set(params or ()) - {"inputs"}
        if unknown:
            raise ValueError(f"kymo.bt2 does not know these parameters of `ctf.fs`: {', '.join(sorted(unknown))}")
        return cls([str(path) for path in (params or {}).get("inputs", ())])


def _paths(specs: Any) -> list[str]:
    if isinstance(specs, (str, os.PathLike, AutoSourceComponentSpec, ComponentSpec)):
        specs = [specs]
    paths: list[str] = []
    for spec in specs:
        if isinstance(spec, ComponentSpec):
            paths += spec._inputs
        elif isinstance(spec, AutoSourceComponentSpec):
            paths.append(spec.input)
        elif isinstance(spec, (str, os.PathLike)):
            paths.append(os.fspath(spec))
        else:
            raise TypeError(f"'{type(spec).__name__}' object is not a source component spec")
    return paths


def _nanos(time: Any) -> int | None:
    """Nanoseconds of a time that is given in seconds, or as a `datetime`."""
    if time is None:
        return None
    if isinstance(time, numbers.Real):
        if isinstance(time, numbers.Integral):
            return int(time) * 1_000_000_000
        return int(float(time) * 1e9)
    if isinstance(time, datetime):
        if time.tzinfo is None:
            time = time.astimezone()
        since = time - datetime(1970, 1, 1, tzinfo=timezone.utc)
        return ((since.days * 86400 + since.seconds) * 1_000_000 + since.microseconds) * 1000
    raise TypeError(f"'{type(time).__name__}' object is not an integral number object, a real number object, or a datetime")


class TraceCollectionMessageIterator(Iterator[Any]):
    """The messages of traces, merged by time."""

    def __init__(
        self,
        source_component_specs: Any,
        filter_component_specs: Any = None,
        stream_intersection_mode: bool = False,
        begin: Any = None,
        end: Any = None,
        plugin_set: Any = None,
    ) -> None:
        if filter_component_specs:
            raise NotImplementedError("kymo.bt2 has no filter components")
        try:
            source, problems = _kymo.open(
                _paths(source_component_specs),
                offsets=[],
                begins=[],
                align_event=None,
                utc=True,
                threads=None,
                clock_offset_ns=0,
            )
            if problems:
                raise _Error("\n".join(problems))
            self._collection = _Collection(source)
            selection = {
                "names": [],
                "begin": _nanos(begin),
                "end": _nanos(end),
                "intersection": bool(stream_intersection_mode),
            }
            self._messages = source._messages(selection, None, None, True, True)
        except _Error:
            raise
        except _kymo.Error as error:
            raise _Error(str(error)) from None

    def __iter__(self) -> TraceCollectionMessageIterator:
        return self

    def __next__(self) -> Any:
        try:
            message = next(self._messages)
        except _kymo.Error as error:
            raise _Error(str(error)) from None
        return _KINDS[message._kind](self._collection, message)
