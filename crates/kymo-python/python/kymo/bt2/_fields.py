"""Fields: values of events that know their classes."""

from __future__ import annotations

import collections.abc
import functools
import math
import numbers
import operator
from typing import Any


def _leaf(value: Any) -> Any:
    """What a variant or an optional holds."""
    while isinstance(value, (_VariantFieldConst, _OptionFieldConst)):
        value = value.selected_option if isinstance(value, _VariantFieldConst) else value.field
    return value


class _FieldConst:
    """A field: a class and a value."""

    __slots__ = ("_cls", "_value")

    def __init__(self, cls: Any, value: Any) -> None:
        self._cls = cls
        self._value = value

    @property
    def cls(self) -> Any:
        """The class of the field."""
        return self._cls

    def __eq__(self, other: object) -> bool:
        return self._equals(_leaf(other))

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment]

    def _equals(self, other: Any) -> bool:
        raise NotImplementedError

    def __repr__(self) -> str:
        return repr(self._value)


class _BitArrayFieldConst(_FieldConst):
    __slots__ = ()

    @property
    def value_as_integer(self) -> int:
        """The bits as a number."""
        return self._value

    def _equals(self, other: Any) -> bool:
        return type(other) is type(self) and self._value == other._value

    def __str__(self) -> str:
        return str(self._value)

    def __len__(self) -> int:
        return self._cls.length


def _number(other: Any) -> Any:
    """A plain number for one of any kind."""
    if isinstance(other, (bool, _BoolFieldConst)):
        return bool(other)
    for kind, plain in ((numbers.Integral, int), (numbers.Real, float), (numbers.Complex, complex)):
        if isinstance(other, kind):
            return plain(other)
    raise TypeError(f"'{type(other).__name__}' object is not a number object")


def _operators(names: str) -> dict[str, Any]:
    """Methods for binary operators, and the same with sides exchanged."""
    methods: dict[str, Any] = {}
    for name in names.split():
        function = getattr(operator, name if name != "divmod" else "floordiv")

        def straight(self: Any, other: Any, function: Any = function) -> Any:
            return function(self._value, _number(other))

        def reflected(self: Any, other: Any, function: Any = function) -> Any:
            return function(_number(other), self._value)

        plain = name.rstrip("_")
        methods[f"__{plain}__"] = straight
        methods[f"__r{plain}__"] = reflected
    return methods


_Arithmetic = type("_Arithmetic", (), {"__slots__": (), **_operators("add sub mul truediv floordiv mod pow")})
_Bitwise = type("_Bitwise", (), {"__slots__": (), **_operators("lshift rshift and_ or_ xor")})


@functools.total_ordering
class _NumericFieldConst(_Arithmetic, _FieldConst):  # type: ignore[misc,valid-type]
    __slots__ = ()

    def __int__(self) -> int:
        return int(self._value)

    def __float__(self) -> float:
        return float(self._value)

    def __bool__(self) -> bool:
        return bool(self._value)

    def __lt__(self, other: Any) -> bool:
        if not isinstance(other, numbers.Number):
            raise TypeError(f"unorderable types: {type(self).__name__}() < {type(other).__name__}()")
        return self._value < _number(other)

    def _equals(self, other: Any) -> bool:
        try:
            return self._value == _number(other)
        except TypeError:
            return False

    def __hash__(self) -> int:
        return hash(self._value)

    def __round__(self, ndigits: int | None = None) -> Any:
        return round(self._value) if ndigits is None else round(self._value, ndigits)

    def __ceil__(self) -> int:
        return math.ceil(self._value)

    def __floor__(self) -> int:
        return math.floor(self._value)

    def __trunc__(self) -> int:
        return int(self._value)

    def __abs__(self) -> Any:
        return abs(self._value)

    def __neg__(self) -> Any:
        return -self._value

    def __pos__(self) -> Any:
        return +self._value


class _IntegralFieldConst(_Bitwise, _NumericFieldConst, numbers.Integral):  # type: ignore[misc,valid-type]
    __slots__ = ()

    def __invert__(self) -> int:
        return ~self._value


class _BoolFieldConst(_IntegralFieldConst):
    __slots__ = ()


class _IntegerFieldConst(_IntegralFieldConst):
    __slots__ = ()


class _UnsignedIntegerFieldConst(_IntegerFieldConst):
    __slots__ = ()


class _SignedIntegerFieldConst(_IntegerFieldConst):
    __slots__ = ()


class _EnumerationFieldConst(_IntegerFieldConst):
    __slots__ = ()

    @property
    def labels(self) -> list[str]:
        """The labels of the value."""
        return self._cls._labels(self._value)

    def __repr__(self) -> str:
        return f"{self._value} ({', '.join(self.labels)})"


class _UnsignedEnumerationFieldConst(_EnumerationFieldConst, _UnsignedIntegerFieldConst):
    __slots__ = ()


class _SignedEnumerationFieldConst(_EnumerationFieldConst, _SignedIntegerFieldConst):
    __slots__ = ()


class _RealFieldConst(_NumericFieldConst, numbers.Real):
    __slots__ = ()


class _SinglePrecisionRealFieldConst(_RealFieldConst):
    __slots__ = ()


class _DoublePrecisionRealFieldConst(_RealFieldConst):
    __slots__ = ()


@functools.total_ordering
class _StringFieldConst(_FieldConst):
    __slots__ = ()

    @staticmethod
    def _plain(other: Any) -> str:
        value = other._value if isinstance(other, _StringFieldConst) else other
        if not isinstance(value, str):
            raise TypeError("expecting a 'str' object")
        return value

    def _equals(self, other: Any) -> bool:
        try:
            return self._value == self._plain(other)
        except TypeError:
            return False

    def __lt__(self, other: Any) -> bool:
        return self._value < self._plain(other)

    def __bool__(self) -> bool:
        return bool(self._value)

    def __hash__(self) -> int:
        return hash(self._value)

    def __str__(self) -> str:
        return self._value

    def __getitem__(self, index: Any) -> str:
        return self._value[index]

    def __len__(self) -> int:
        # As bt2 counts: bytes.
        return len(self._value.encode())


class _BlobFieldConst(_FieldConst):
    __slots__ = ()

    def _equals(self, other: Any) -> bool:
        value = other._value if isinstance(other, _BlobFieldConst) else other
        return self._value == value

    def __bytes__(self) -> bytes:
        return self._value

    def __len__(self) -> int:
        return len(self._value)


class _ContainerFieldConst(_FieldConst):
    __slots__ = ()

    def __bool__(self) -> bool:
        return len(self) != 0  # type: ignore[arg-type]


class _StructureFieldConst(_ContainerFieldConst, collections.abc.Mapping):  # type: ignore[type-arg]
    __slots__ = ()

    def __len__(self) -> int:
        return len(self._cls)

    def __iter__(self) -> Any:
        return iter(self._cls)

    def __contains__(self, key: object) -> bool:
        return key in self._cls._members

    def __getitem__(self, key: str) -> Any:
        if not isinstance(key, str):
            raise TypeError(f"'{type(key).__name__}' is not a 'str' object")
        return self._cls._members[key]._make(self._value[key])

    def member_at_index(self, index: int) -> Any:
        """A member by its position."""
        names = list(self._cls)
        if not 0 <= index < len(names):
            raise IndexError
        return self[names[index]]

    def _equals(self, other: Any) -> bool:
        if not isinstance(other, collections.abc.Mapping) or len(self) != len(other):
            return False
        return all(key in other and self[key] == other[key] for key in self)

    def __repr__(self) -> str:
        return "{" + ", ".join(f"{key!r}: {value!r}" for key, value in self.items()) + "}"


class _OptionFieldConst(_FieldConst):
    __slots__ = ()

    @property
    def has_field(self) -> bool:
        """Whether it has a value."""
        return self._value is not None

    @property
    def field(self) -> Any:
        """What it holds, or None."""
        return None if self._value is None else self._cls.field_class._make(self._value[0])

    def _equals(self, other: Any) -> bool:
        return _leaf(self) == other

    def __bool__(self) -> bool:
        return self.has_field

    def __str__(self) -> str:
        return str(self.field)

    def __repr__(self) -> str:
        return repr(self.field)


class _VariantFieldConst(_ContainerFieldConst):
    __slots__ = ()

    def __len__(self) -> int:
        return len(self._cls)

    @property
    def selected_option_index(self) -> int:
        """Position of the option that is selected."""
        return self._value[0]

    @property
    def selected_option(self) -> Any:
        """The field that is selected."""
        position, value = self._value
        return self._cls._options[position][1]._make(value)

    def _equals(self, other: Any) -> bool:
        return _leaf(self) == other

    def __bool__(self) -> bool:
        raise NotImplementedError

    def __str__(self) -> str:
        return str(self.selected_option)

    def __repr__(self) -> str:
        return repr(self.selected_option)


class _ArrayFieldConst(_ContainerFieldConst, collections.abc.Sequence):  # type: ignore[type-arg]
    __slots__ = ()

    @property
    def length(self) -> int:
        """Number of elements."""
        return len(self._value)

    def __len__(self) -> int:
        return len(self._value)

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, numbers.Integral):
            raise TypeError(f"'{type(index).__name__}' is not an integral number object: invalid index")
        index = int(index)
        if not 0 <= index < len(self._value):
            raise IndexError("array field object index is out of range")
        return self._cls.element_field_class._make(self._value[index])

    def _equals(self, other: Any) -> bool:
        if not isinstance(other, collections.abc.Sequence) or len(self) != len(other):
            return False
        return all(a == b for a, b in zip(self, other))

    def __repr__(self) -> str:
        return "[" + ", ".join(map(repr, self)) + "]"


class _StaticArrayFieldConst(_ArrayFieldConst):
    __slots__ = ()


class _DynamicArrayFieldConst(_ArrayFieldConst):
    __slots__ = ()
