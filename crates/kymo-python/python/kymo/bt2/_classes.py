"""Classes of traces, streams, events and clocks."""

from __future__ import annotations

import collections.abc
import uuid
from typing import Any

from ._field_classes import IntegerDisplayBase as IntegerDisplayBase
from ._field_classes import make


class EventClassLogLevel:
    """Levels of event classes."""

    EMERGENCY = 0
    ALERT = 1
    CRITICAL = 2
    ERROR = 3
    WARNING = 4
    NOTICE = 5
    INFO = 6
    DEBUG_SYSTEM = 7
    DEBUG_PROGRAM = 8
    DEBUG_PROCESS = 9
    DEBUG_MODULE = 10
    DEBUG_UNIT = 11
    DEBUG_FUNCTION = 12
    DEBUG_LINE = 13
    DEBUG = 14


class ClockClassOffset:
    """From the origin of a clock to its cycle zero."""

    def __init__(self, seconds: int = 0, cycles: int = 0) -> None:
        self.seconds = seconds
        self.cycles = cycles

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ClockClassOffset):
            return False
        return (self.seconds, self.cycles) == (other.seconds, other.cycles)


def _nanos(cycles: int, frequency: int) -> int:
    """Cycles as nanoseconds, rounded as bt2 does it."""
    return cycles if frequency == 1_000_000_000 else int(1e9 * float(cycles) / float(frequency))


class _ClockClassConst:
    """A clock."""

    def __init__(self, description: dict[str, Any]) -> None:
        self.name = description["name"]
        self.description = description["description"]
        self.frequency = description["frequency"]
        self.precision = description["precision"] or 0
        self.offset = ClockClassOffset(description["offset_seconds"], description["offset_cycles"])
        self.origin_is_unix_epoch = description["origin"] == "unix-epoch"
        self._uid = description["uid"]
        self.user_attributes: dict[str, Any] = {}
        self._base = self.offset.seconds * 1_000_000_000 + _nanos(self.offset.cycles, self.frequency)

    @property
    def uuid(self) -> uuid.UUID | None:
        """Its UUID, if it has one."""
        return _uuid(self._uid)

    def cycles_to_ns_from_origin(self, cycles: int) -> int:
        """Nanoseconds from its origin to a number of cycles."""
        return self._base + _nanos(cycles, self.frequency)


def _uuid(text: str | None) -> uuid.UUID | None:
    try:
        return None if text is None else uuid.UUID(text)
    except ValueError:
        return None


class _EventClassConst:
    """A class of events."""

    def __init__(self, recordings: Any, place: tuple[int, int], values: tuple[Any, ...], stream_class: Any) -> None:
        _, _, self._name, self.id, _, self.log_level, self.emf_uri = values
        self.stream_class = stream_class
        self.user_attributes: dict[str, Any] = {}

        def scope(name: str) -> Any:
            described = recordings._class_fields(*place, name)
            return None if described is None else make(described)

        self.payload_field_class = scope("payload")
        self.specific_context_field_class = scope("specific_context")
        self._common_context_field_class = scope("common_context")
        #: The scope and the class of the field of each name.
        self._places: dict[str, tuple[str, Any]] = {}
        for name, fields in (
            ("common_context", self._common_context_field_class),
            ("specific_context", self.specific_context_field_class),
            ("payload", self.payload_field_class),
        ):
            if fields is not None:
                self._places.update((key, (name, cls)) for key, cls in fields._members.items())

    @property
    def name(self) -> str | None:
        """Its name."""
        return self._name


class _StreamClassConst(collections.abc.Mapping):  # type: ignore[type-arg]
    """A class of streams: a mapping from numbers to event classes."""

    assigns_automatic_event_class_id = False
    assigns_automatic_stream_id = False
    supports_packets = True

    def __init__(self, trace_class: Any, description: dict[str, Any], clock: _ClockClassConst | None) -> None:
        self.trace_class = trace_class
        self.id = description["stream_class"]
        self.name = description["name"]
        self.default_clock_class = clock
        self.user_attributes: dict[str, Any] = {}
        self.packet_context_field_class: Any = None
        self.supports_discarded_events = True
        self.supports_discarded_packets = True
        self.packets_have_beginning_default_clock_snapshot = clock is not None
        self.packets_have_end_default_clock_snapshot = clock is not None
        self.discarded_events_have_default_clock_snapshots = clock is not None
        self.discarded_packets_have_default_clock_snapshots = clock is not None
        self._load: Any = None
        self._events: dict[int, Any] = {}

    @property
    def event_common_context_field_class(self) -> Any:
        """The class of the context that all events have."""
        for number in self._events:
            return self[number]._common_context_field_class
        return None

    def __len__(self) -> int:
        return len(self._events)

    def __iter__(self) -> Any:
        return iter(self._events)

    def __getitem__(self, id: int) -> _EventClassConst:
        return self._load(self._events[id])


class _TraceClassConst(collections.abc.Mapping):  # type: ignore[type-arg]
    """A class of traces: a mapping from numbers to stream classes."""

    assigns_automatic_stream_class_id = False

    def __init__(self) -> None:
        self._streams: dict[int, _StreamClassConst] = {}
        self.user_attributes: dict[str, Any] = {}

    def __len__(self) -> int:
        return len(self._streams)

    def __iter__(self) -> Any:
        return iter(self._streams)

    def __getitem__(self, id: int) -> _StreamClassConst:
        return self._streams[id]
