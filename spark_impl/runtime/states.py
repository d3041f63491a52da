"""The state of an operator or of a sender, as the bytes that a store or Spark keeps.

A state is made of plain values, named tuples of ours and arrays. The bytes name the classes of the
tuples, so only the version of a store that wrote them can read them; its number says so.
"""

import pickle
from io import BytesIO
from typing import Any

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
        if module.startswith("spark_impl.") and "." not in name:
            found = super().find_class(module, name)
            if found in _PARTS or (isinstance(found, type) and issubclass(found, tuple)):
                return found
        msg = f"a state has no part {module}.{name}"
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


_PARTS = (_array, _objects, _number, _texts)
"""Functions that make the parts of a state."""
