"""babeltrace2's `bt2` module, as far as it reads: `import kymo.bt2 as bt2` carries scripts over.

There are `TraceCollectionMessageIterator`, messages, events, fields with the numeric behaviour of bt2's, packets, streams,
traces, and their classes. All objects are constant. What builds graphs, plugins and components is not there.
"""

from __future__ import annotations

from ._classes import (
    ClockClassOffset,
    EventClassLogLevel,
    IntegerDisplayBase,
    _ClockClassConst,
    _EventClassConst,
    _StreamClassConst,
    _TraceClassConst,
)
from ._field_classes import (
    _ArrayFieldClassConst,
    _BitArrayFieldClassConst,
    _BlobFieldClassConst,
    _BoolFieldClassConst,
    _DoublePrecisionRealFieldClassConst,
    _DynamicArrayFieldClassConst,
    _EnumerationFieldClassConst,
    _FieldClassConst,
    _IntegerFieldClassConst,
    _OptionFieldClassConst,
    _RealFieldClassConst,
    _SignedEnumerationFieldClassConst,
    _SignedIntegerFieldClassConst,
    _SinglePrecisionRealFieldClassConst,
    _StaticArrayFieldClassConst,
    _StringFieldClassConst,
    _StructureFieldClassConst,
    _UnsignedEnumerationFieldClassConst,
    _UnsignedIntegerFieldClassConst,
    _VariantFieldClassConst,
)
from ._fields import (
    _ArrayFieldConst,
    _BitArrayFieldConst,
    _BlobFieldConst,
    _BoolFieldConst,
    _DoublePrecisionRealFieldConst,
    _DynamicArrayFieldConst,
    _EnumerationFieldConst,
    _FieldConst,
    _IntegerFieldConst,
    _NumericFieldConst,
    _OptionFieldConst,
    _RealFieldConst,
    _SignedEnumerationFieldConst,
    _SignedIntegerFieldConst,
    _SinglePrecisionRealFieldConst,
    _StaticArrayFieldConst,
    _StringFieldConst,
    _StructureFieldConst,
    _UnsignedEnumerationFieldConst,
    _UnsignedIntegerFieldConst,
    _VariantFieldConst,
)
from ._messages import (
    AutoSourceComponentSpec,
    ComponentSpec,
    TraceCollectionMessageIterator,
    _ClockSnapshotConst,
    _DiscardedEventsMessageConst,
    _DiscardedPacketsMessageConst,
    _Error,
    _EventConst,
    _EventMessageConst,
    _MessageIteratorInactivityMessageConst,
    _PacketBeginningMessageConst,
    _PacketConst,
    _PacketEndMessageConst,
    _StreamBeginningMessageConst,
    _StreamConst,
    _StreamEndMessageConst,
    _TraceConst,
    _UnknownClockSnapshot,
)

#: The version of bt2 whose interface this is.
__version__ = "2.0.4"
