"""The state of an operator or of a sender, as the bytes that a store or Spark keeps.

A state is made of plain values, named tuples of ours and arrays. The bytes name the classes of the
tuples, so only the version of a store that wrote them can read them; its number says so.
"""

import pickle
from collections.abc import Callable, Sequence
from importlib import import_module
from io import BytesIO
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa

from spark_impl.runtime.arrays import Column

_PROTOCOL = 5


def to_bytes(state: object) -> bytes:
    """Return a state as bytes."""
    out = BytesIO()
    _Writer(out, _PROTOCOL).dump(state)
    return out.getvalue()


def from_bytes(data: bytes) -> Any:
    """Return the state that :func:`to_bytes` wrote; its arrays may be read-only."""
    return _Reader(BytesIO(data)).load()


class _Writer(pickle.Pickler):
    """Writes arrays in a way that does not depend on the versions of numpy and pyarrow."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, tuple) and type(obj) is not tuple:
            return _record, (f"{type(obj).__module__}:{type(obj).__name__}", [*obj])
        if isinstance(obj, np.ndarray):
            if obj.dtype == object:
                return _objects, (obj.tolist(),)
            kind = obj.dtype.descr if obj.dtype.names else obj.dtype.str
            return _array, (kind, obj.tobytes())
        if isinstance(obj, np.generic):
            return _number, (obj.item(),)
        if isinstance(obj, pa.Array):
            return _texts, (obj.to_pylist(),)
        return NotImplemented


class _Reader(pickle.Unpickler):
    """Makes named tuples of ours and arrays only: others may write to the folder of a store."""

    def find_class(self, module: str, name: str) -> Any:
        if module == __name__ and name in _PARTS:
            return _PARTS[name]
        msg = f"a state has no part {module}.{name}"
        raise pickle.UnpicklingError(msg)


class _Part:
    """A function that bytes may call, and which they cannot change, as they can a class."""

    __slots__ = ("_make",)
    _make: Callable[..., object]

    def __init__(self, make: Callable[..., object]) -> None:
        object.__setattr__(self, "_make", make)

    def __call__(self, *given: Any) -> object:
        return self._make(*given)

    def __setattr__(self, name: str, _value: object) -> NoReturn:
        msg = f"a state sets {name}"
        raise pickle.UnpicklingError(msg)


def _record(name: str, values: Sequence[object]) -> object:
    module, _, kind = name.partition(":")
    if module.startswith("spark_impl."):
        found = vars(import_module(module)).get(kind)
        # Such a class only keeps its fields; one that inherits from it may do anything.
        if (
            isinstance(found, type)
            and found.__module__ == module
            and found.__bases__ == (tuple,)
            and "__getattr__" not in vars(found)
        ):
            made: object = found(*values)
            return made
    msg = f"a state has no part {name}"
    raise pickle.UnpicklingError(msg)


def _array(kind: Any, data: bytes) -> Column:
    found: Column = np.frombuffer(data, kind)
    return found


def _objects(values: list[object]) -> Column:
    return np.array(values, object)


def _number(value: float) -> float:
    return value


def _texts(values: list[str]) -> pa.StringArray:
    return pa.array(values, pa.string())


_PARTS = {each.__name__: _Part(each) for each in (_array, _objects, _number, _texts, _record)}
"""Functions that make the parts of a state, by name."""
