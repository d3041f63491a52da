"""The rule of a room: how long a task waits.

Rules of this file:

* Windows are filled, closed, missed and corrected in the same way in every room (docs/slack.md,
  sections 1 to 3 and 6). A rule says how long a task waits; nothing else of it reaches the windows.
* A rule lives as long as the work on one micro-batch; what it has to remember is its memory.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from spark_impl.runtime.arrays import Ints, Records
from spark_impl.windows.records import Rows


class Path(NamedTuple):
    """How long a task waits, and its watermark, after each arrival of a stretch."""

    slack: Ints
    wm: Ints

    def head(self, size: int) -> "Path":
        """The path up to an arrival."""
        return Path._make(column[:size] for column in self)


class Stretch(NamedTuple):
    """What some arrivals in a row did to the windows; none at all for a flush."""

    rows: Rows
    first: Ints
    """The first window of every arrival."""
    late: Ints
    """Positions of the arrivals that were late for windows."""
    until: Ints
    """The last window that each of these was late for."""
    wm_us: int
    """The watermark before the stretch."""
    path: Path
    """One entry for each arrival, a single one for a flush."""
    closed: Records
    """Windows that it closed, ``RESULT``."""

    @property
    def size(self) -> int:
        """Number of arrivals."""
        return len(self.rows.seq)

    def before(self, which: Ints) -> Ints:
        """The watermark before some of the arrivals."""
        found: Ints = self.path.wm[which - 1]
        found[which == 0] = self.wm_us
        return found


class Rule(Protocol):
    """How long one task waits, and what the room does besides with its windows."""

    def look(self, rows: Rows, t_max: Ints) -> None:
        """See the arrivals that come next if none of them turns out to be dropped."""
        ...

    def path(self, start: int, wm_us: int) -> Path:
        """The path from one of these arrivals on, as far as it is known or can be guessed.

        ``wm_us`` is the watermark before it. At least one arrival long.
        """
        ...

    def settle(self, done: Stretch) -> int | None:
        """Take note of what was done; None, or how many arrivals of the path were guessed right.

        Then the rule has forgotten what was done, and is given that many arrivals once more.
        """
        ...

    def slack_us(self) -> int:
        """How long the task waits until the next arrival."""
        ...

    def memory(self, wm_us: int) -> Any:
        """What to remember between two micro-batches, as ``Room.memory`` is."""
        ...

    def progress(self) -> Mapping[str, float]:
        """Where the rule stands: the room's own columns of the table ``progress``."""
        ...

    def records(self) -> Mapping[str, Records]:
        """The records that the micro-batch gave for the room's own tables."""
        ...
