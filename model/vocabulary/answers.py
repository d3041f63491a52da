"""Words of every room that answers windows early and may correct them later.

Source: docs/slack.md, sections 2, 3 and 6.
"""

from typing import NamedTuple

AGGREGATES = ("sum", "count", "avg", "min", "max", "median", "quantile")

REASON_NOT_FINITE = "value is not a finite number"
REASON_FUTURE = "event time lies too far ahead of the arrival"


class Result(NamedTuple):
    """The stream's answer for a window, given once, when the window closed."""

    task: int
    start_us: int
    key: str
    batch: int
    value: float
    n_rcv: int
    slack_us: int
    """What the task waited when the window closed: K, or the wait of room ``watermark``."""
    wm_us: int
    """Watermark that closed it."""


class Late(NamedTuple):
    """A (tuple, window) pair whose window was closed when the tuple arrived."""

    task: int
    start_us: int
    key: str
    source_id: int
    event_time_us: int
    batch: int


class Rejected(NamedTuple):
    """An arrival that takes part in nothing, and why."""

    task: int
    seq: int
    source_id: int
    batch: int
    reason: str


class Correction(NamedTuple):
    """One correction of one task at the end of a batch."""

    task: int
    batch: int
    reason: str
    """``gamma``, ``age`` or ``flush``."""
    pairs: int
    windows: int


class Cleared(NamedTuple):
    """A pending pair that a correction covered."""

    task: int
    start_us: int
    key: str
    source_id: int
    batch: int


class Revision(NamedTuple):
    """What a correction wrote for one window."""

    task: int
    start_us: int
    key: str
    batch: int
    revision: int
    """1, 2, ... for a window; the stream's own answer counts as revision 0."""
    value: float
    n: int
    """Distinct accepted tuples of the window in the history when it was corrected."""


class Correlation(NamedTuple):
    """Rank correlation of delay and value in a corrected window, as exact sums.

    x of a tuple is the number of tuples with a smaller delay less the number with a larger one,
    y the same for values.
    """

    task: int
    start_us: int
    key: str
    batch: int
    revision: int
    n: int
    cross: int
    """Sum of x*y."""
    delay_spread: int
    """Sum of x*x."""
    value_spread: int
    """Sum of y*y."""


class Final(NamedTuple):
    """The answer that a user finds in the end."""

    task: int
    start_us: int
    key: str
    value: float
    n: int
    revision: int
    exact: bool
    """Whether no pair of this window is pending."""
