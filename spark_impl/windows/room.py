"""The part of a windowed query that differs between rooms: the waiting rule.

Rules of this file:

* Windows are filled, closed, missed and corrected in the same way in every room (docs/slack.md,
  sections 1 to 3 and 6). A rule decides how long a task waits and affects windows in no other way.
* A rule lives during one micro-batch; its memory lasts longer.
"""

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, asdict, dataclass
from functools import lru_cache
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from model.vocabulary import SlackConfig, Step, WatermarkConfig
from model.vocabulary.settings import JsonObject, pick
from model.vocabulary.windows import WindowQuery
from spark_impl.runtime.arrays import Bools, Ints, Records
from spark_impl.runtime.histories import VALUE
from spark_impl.windows.records import Memory, Rows

WindowConfig: TypeAlias = SlackConfig | WatermarkConfig
"""The configuration of a room with windows."""
ConfigT = TypeVar("ConfigT", bound=WindowConfig)
HOLDER = "holder"
"""Column of ``progress`` for queries with operators upstream: the one with the least watermark."""


@dataclass(frozen=True, slots=True)
class WindowSettings(WindowQuery):
    """The settings that do not depend on how long a room waits.

    The room decides about the fields below, except for ``value``, which belongs to the query.
    """

    _: KW_ONLY
    corrects: bool
    """True if late pairs are corrected; otherwise they are a side output."""
    upstreams: int = 0
    """Number of operators upstream; if > 0, a task gets the arrivals of all (``Rule.receive``)."""
    times_arrivals: bool = False
    """True if the watermarks from upstream depend on arrival times."""
    value: str | None = VALUE
    """The column of the history with the values; with None every arrival has the value 1."""


@lru_cache
def window_settings(config: WindowQuery, **decided: bool | int) -> WindowSettings:
    """Return the settings of a configuration and those on which the room decides."""
    return pick(WindowSettings, asdict(config), **decided)


class Path(NamedTuple):
    """The slack and the watermark of a task after each arrival of a stretch."""

    slack: Ints
    wm: Ints

    def head(self, size: int) -> "Path":
        """Return the path of the first ``size`` arrivals."""
        return Path(self.slack[:size], self.wm[:size])


class Stretch(NamedTuple):
    """A run of arrivals and its effect on the windows; a flush has no arrivals."""

    rows: Rows
    first: Ints
    """The first window of every arrival."""
    late: Ints
    """Positions of the arrivals that were late for windows."""
    until: Ints
    """The last window for which each of the late arrivals was late."""
    wm_us: int
    """The watermark before the stretch."""
    path: Path
    """One entry for each arrival, a single one for a flush."""
    closed: Records
    """``RESULT`` records of the windows that the stretch closed."""

    @property
    def size(self) -> int:
        """Number of arrivals."""
        return len(self.rows.seq)

    def before(self, arrivals: Ints) -> Ints:
        """Return the watermark before each of some arrivals."""
        wm: Ints = self.path.wm[arrivals - 1]
        wm[arrivals == 0] = self.wm_us
        return wm


class Rule(Protocol):
    """Decides how long one task waits, and keeps the room's own records of its windows."""

    def receive(self, rows: Rows, operator: Ints, mine: Bools) -> Rows:
        """Return the arrivals of the task, with the watermarks from upstream between them.

        ``rows`` are the arrivals of all tasks in a micro-batch, ``operator`` is the operator
        upstream of each, ``mine`` says which belong to the task. Only called with
        ``WindowSettings.upstreams``. A returned row with the key :data:`INSERTED` stands for a
        watermark, which is its event time.
        """
        del operator, mine
        return rows

    def look(self, rows: Rows, t_max: Ints) -> None:
        """Prepare for the next arrivals; ``t_max`` is right if none of them is dropped."""
        ...

    def path(self, start: int, wm_us: int) -> Path:
        """Return the path from arrival ``start`` on, as far as it is known or can be guessed.

        ``wm_us`` is the watermark before that arrival. The path has at least one arrival.
        """
        ...

    def settle(self, done: Stretch) -> int | None:
        """Update the rule by a stretch; return None if its whole path was right.

        Otherwise return the number of correctly guessed arrivals. The rule has then undone the
        stretch and expects a stretch of this number of arrivals.
        """
        del done
        return None

    def slack_us(self) -> int:
        """Return how long the task waits until the next arrival."""
        ...

    def memory(self) -> Memory:
        """Return the memory to keep until the next micro-batch, of the type of ``Room.memory``."""
        ...

    def progress(self) -> Mapping[str, float]:
        """Return the room's own columns of the table ``progress``."""
        return {}

    def records(self) -> Mapping[str, Records]:
        """Return the micro-batch's records for the room's own tables."""
        ...


@dataclass(frozen=True)
class WindowRoom(Generic[ConfigT]):
    """A room with windows: its rule, its tables and its words."""

    name: str
    read: Callable[[JsonObject], ConfigT]
    """Function that reads a configuration from plain data."""
    settings: Callable[[ConfigT], WindowSettings]
    rule: Callable[[ConfigT, int, int, Memory], Rule]
    """Function that makes the rule of a task from its configuration, its number, the number of keys
    that it knows now, and its memory."""
    memory: Memory
    """Memory of a new task: a NamedTuple of ints, floats and arrays. In arrays of records, the
    field ``key`` is a position in the task's list of keys."""
    progress: Mapping[str, pa.DataType]
    """The room's own columns of the table ``progress``."""
    records: Mapping[str, "np.dtype[np.void]"]
    """The room's own tables, and the dtype of their records in a task's output."""
    words: Mapping[str, type[Step]]
    """The room's own types of steps, by table."""
    upstream: "WindowRoom[ConfigT] | None" = None
    """The rule and the tables of queries with operators upstream."""

    def of(self, config: ConfigT) -> "WindowRoom[ConfigT]":
        """Return the room with the rule and the tables that a configuration needs."""
        return self.upstream if self.upstream and self.settings(config).upstreams else self


AnyRoom: TypeAlias = WindowRoom[Any]  # where the type of its configuration does not matter
