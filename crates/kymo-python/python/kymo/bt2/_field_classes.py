"""Classes of fields."""

from __future__ import annotations

import collections.abc
from typing import Any, NamedTuple

from . import _fields as fields


class IntegerDisplayBase:
    """In which base an integer is shown."""

    BINARY = 2
    OCTAL = 8
    DECIMAL = 10
    HEXADECIMAL = 16


class _FieldClassConst:
    """A class of fields."""

    _field: Any = None

    def __init__(self, info: dict[str, Any]) -> None:
        self._info = info

    @property
    def user_attributes(self) -> dict[str, Any]:
        """Attributes of users: none."""
        return {}

    def _make(self, value: Any) -> Any:
        return self._field(self, value)


class _BoolFieldClassConst(_FieldClassConst):
    _field = fields._BoolFieldConst


class _BitArrayFieldClassConst(_FieldClassConst):
    _field = fields._BitArrayFieldConst

    @property
    def length(self) -> int:
        """Number of bits."""
        return self._info["bits"]


class _IntegerFieldClassConst(_FieldClassConst):
    @property
    def field_value_range(self) -> int:
        """Size of the values in bits."""
        return self._info["bits"]

    @property
    def preferred_display_base(self) -> int:
        """In which base values are shown."""
        return self._info["base"]


class _UnsignedIntegerFieldClassConst(_IntegerFieldClassConst):
    _field = fields._UnsignedIntegerFieldConst


class _SignedIntegerFieldClassConst(_IntegerFieldClassConst):
    _field = fields._SignedIntegerFieldConst


class _IntegerRange(NamedTuple):
    """An inclusive range of integers."""

    lower: int
    upper: int

    def contains(self, value: int) -> bool:
        """Whether a value is in it."""
        return self.lower <= value <= self.upper


class _Mapping(NamedTuple):
    """A label, and what it stands for."""

    label: str
    ranges: frozenset[_IntegerRange]


class _EnumerationFieldClassConst(_IntegerFieldClassConst, collections.abc.Mapping):  # type: ignore[type-arg]
    def __init__(self, info: dict[str, Any]) -> None:
        super().__init__(info)
        ranges: dict[str, list[_IntegerRange]] = {}
        for label, found in info["labels"]:
            ranges.setdefault(label, []).extend(_IntegerRange(*pair) for pair in found)
        self._mappings = {label: _Mapping(label, frozenset(found)) for label, found in ranges.items()}
        self._known: dict[int, list[str]] = {}

    def __len__(self) -> int:
        return len(self._mappings)

    def __iter__(self) -> Any:
        return iter(self._mappings)

    def __getitem__(self, label: str) -> _Mapping:
        return self._mappings[label]

    def mappings_for_value(self, value: int) -> list[_Mapping]:
        """The mappings that a value is in."""
        return [self._mappings[label] for label in self._labels(int(value))]

    def _labels(self, value: int) -> list[str]:
        labels = self._known.get(value)
        if labels is None:
            all = self._mappings.values()
            labels = [mapping.label for mapping in all if any(one.contains(value) for one in mapping.ranges)]
            if len(self._known) < 4096:
                self._known[value] = labels
        return list(labels)


class _UnsignedEnumerationFieldClassConst(_EnumerationFieldClassConst, _UnsignedIntegerFieldClassConst):
    _field = fields._UnsignedEnumerationFieldConst


class _SignedEnumerationFieldClassConst(_EnumerationFieldClassConst, _SignedIntegerFieldClassConst):
    _field = fields._SignedEnumerationFieldConst


class _RealFieldClassConst(_FieldClassConst):
    pass


class _SinglePrecisionRealFieldClassConst(_RealFieldClassConst):
    _field = fields._SinglePrecisionRealFieldConst


class _DoublePrecisionRealFieldClassConst(_RealFieldClassConst):
    _field = fields._DoublePrecisionRealFieldConst


class _StringFieldClassConst(_FieldClassConst):
    _field = fields._StringFieldConst


class _BlobFieldClassConst(_FieldClassConst):
    _field = fields._BlobFieldConst


class _Named(NamedTuple):
    """A member of a structure, or an option of a variant."""

    name: str | None
    field_class: _FieldClassConst


class _StructureFieldClassConst(_FieldClassConst, collections.abc.Mapping):  # type: ignore[type-arg]
    _field = fields._StructureFieldConst

    def __init__(self, info: dict[str, Any]) -> None:
        super().__init__(info)
        self._members = {name: make(child) for name, child in info["children"]}

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Any:
        return iter(self._members)

    def __getitem__(self, name: str) -> _Named:
        return _Named(name, self._members[name])

    def member_at_index(self, index: int) -> _Named:
        """A member by its position."""
        return self[list(self._members)[index]]


class _OptionFieldClassConst(_FieldClassConst):
    _field = fields._OptionFieldConst

    def __init__(self, info: dict[str, Any]) -> None:
        super().__init__(info)
        self.field_class = make(info["children"][0][1])


class _VariantFieldClassConst(_FieldClassConst, collections.abc.Mapping):  # type: ignore[type-arg]
    _field = fields._VariantFieldConst

    def __init__(self, info: dict[str, Any]) -> None:
        super().__init__(info)
        self._options = [_Named(name, make(child)) for name, child in info["children"]]

    def __len__(self) -> int:
        return len(self._options)

    def __iter__(self) -> Any:
        return (option.name for option in self._options)

    def __getitem__(self, name: str) -> _Named:
        for option in self._options:
            if option.name == name:
                return option
        raise KeyError(name)

    def option_at_index(self, index: int) -> _Named:
        """An option by its position."""
        return self._options[index]


class _ArrayFieldClassConst(_FieldClassConst):
    def __init__(self, info: dict[str, Any]) -> None:
        super().__init__(info)
        self.element_field_class = make(info["children"][0][1])


class _StaticArrayFieldClassConst(_ArrayFieldClassConst):
    _field = fields._StaticArrayFieldConst

    @property
    def length(self) -> int:
        """Number of elements."""
        return self._info["length"]


class _DynamicArrayFieldClassConst(_ArrayFieldClassConst):
    _field = fields._DynamicArrayFieldConst


def make(info: dict[str, Any]) -> _FieldClassConst:
    """The class of what the extension describes."""
    kind = info["kind"]
    if kind == "uint":
        return (_UnsignedEnumerationFieldClassConst if "labels" in info else _UnsignedIntegerFieldClassConst)(info)
    if kind == "sint":
        return (_SignedEnumerationFieldClassConst if "labels" in info else _SignedIntegerFieldClassConst)(info)
    if kind == "float":
        is_single = info["bits"] <= 32
        return (_SinglePrecisionRealFieldClassConst if is_single else _DoublePrecisionRealFieldClassConst)(info)
    if kind == "array":
        return (_DynamicArrayFieldClassConst if info["length"] is None else _StaticArrayFieldClassConst)(info)
    classes = {
        "bool": _BoolFieldClassConst,
        "bits": _BitArrayFieldClassConst,
        "text": _StringFieldClassConst,
        "blob": _BlobFieldClassConst,
        "struct": _StructureFieldClassConst,
        "optional": _OptionFieldClassConst,
        "variant": _VariantFieldClassConst,
    }
    return classes[kind](info)
