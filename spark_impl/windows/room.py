"""What a room adds to the windows that rooms share: its rule of how long to wait, and its words."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import pyarrow as pa

from spark_impl.windows.asked import Asked
from spark_impl.windows.rule import Rule


class Config(Protocol):
    """A room's configuration."""

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        ...


ConfigT = TypeVar("ConfigT", bound=Config)


@dataclass(frozen=True)
class Room(Generic[ConfigT]):
    """One way to decide how long to wait."""

    name: str
    read: Callable[[Mapping[str, Any]], ConfigT]
    """Configuration from plain data."""
    asked: Callable[[ConfigT], Asked]
    rule: Callable[[ConfigT, int, int, Any], Rule]
    """The rule of a configuration for a task, given its number, how many keys it knows now, and
    its memory."""
    memory: Any
    """Memory of a task that has seen nothing: a NamedTuple of ints, floats and arrays. In arrays of
    records a field ``key`` is a position in the task's list of keys."""
    progress: Mapping[str, pa.DataType]
    """Columns of the table ``progress`` besides those that every room has."""
    records: Mapping[str, Any]
    """Tables of the room's own, and the dtype of their records as a task leaves them."""
    columns: Mapping[str, Mapping[str, pa.DataType]]
    """The columns of these tables behind the grouping columns and ``task``."""
    words: Mapping[str, Any]
    """The steps of the room's own, by the table whose rows they stand for."""
