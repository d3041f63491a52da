"""Windows, settings of queries over windows, and the steps that record their answers.

Windows are half-open, [j*slide, j*slide + size), aligned to the epoch, in integer microseconds.
Rooms ``slack`` and ``watermark`` answer each window when it closes and may correct it later.

Source: docs/slack.md, sections 2, 3 and 6.
"""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from math import gcd
from typing import Annotated, ClassVar, NamedTuple

from model.vocabulary.settings import JsonObject, Setting, Settings

AGGREGATES = ("sum", "count", "avg", "min", "max", "median", "quantile")
"""Aggregates of windows; docs/architecture.md, "Which file answers it?", lists the parts that need
a rule for a new one."""
REASON_NOT_FINITE = "value is not a finite number"


class WindowSpec(NamedTuple):
    """Sliding windows of one query.

    With ``slide_us > size_us`` some event times belong to no window.
    """

    size_us: int
    slide_us: int

    @property
    def pane_us(self) -> int:
        """Width of a pane: the largest interval that no window boundary ever cuts."""
        return gcd(self.size_us, self.slide_us)

    def first_index(self, event_time_us: int) -> int:
        """Return index j of the earliest window that ends after ``event_time_us``."""
        return (event_time_us - self.size_us) // self.slide_us + 1

    def last_index(self, event_time_us: int) -> int:
        """Return index j of the latest window that starts at or before ``event_time_us``."""
        return event_time_us // self.slide_us

    def indices(self, event_time_us: int) -> range:
        """Return the indices of the windows that contain ``event_time_us``, earliest first."""
        return range(self.first_index(event_time_us), self.last_index(event_time_us) + 1)

    def start_us(self, index: int) -> int:
        """Return the start of window ``index`` (inclusive)."""
        return index * self.slide_us

    def end_us(self, index: int) -> int:
        """Return the end of window ``index`` (exclusive)."""
        return index * self.slide_us + self.size_us

    def last_end_us(self, event_time_us: int) -> int:
        """Return the end of the latest window that starts at or before ``event_time_us``."""
        return self.end_us(self.last_index(event_time_us))


@dataclass(frozen=True, slots=True)
class WindowQuery(Settings):
    """Settings that queries of rooms ``slack`` and ``watermark`` share."""

    size_us: Annotated[int, Setting("window length W", above=0)]
    slide_us: Annotated[int, Setting("window slide s", above=0)]
    _: KW_ONLY
    aggregate: Annotated[str, Setting("aggregate", choices=AGGREGATES)] = "sum"
    q: Annotated[
        float, Setting("rank of the aggregate quantile, as a decimal", above=0, below=1)
    ] = 0.5
    keyed: Annotated[
        bool, Setting("one result per (task, key, window); otherwise per (task, window)")
    ] = True
    tasks: Annotated[
        int, Setting("number of tasks; a tuple belongs to task_of(key, tasks)", above=0)
    ] = 1
    feedback_us: Annotated[
        int | None, Setting("L, how long after its end a window is known (W)", at_least=0)
    ] = None
    gamma_us: Annotated[
        int, Setting("event time pending before a correction starts", at_least=0)
    ] = 5_000_000
    max_age_us: Annotated[
        int | None, Setting("age of a pending tuple that starts a correction (4 W)", at_least=0)
    ] = None
    dedup: Annotated[bool, Setting("recognise redeliveries; no: every identity comes once")] = True

    gone: ClassVar[JsonObject] = {"max_future_us": None}

    @property
    def windows(self) -> WindowSpec:
        """Windows of the query."""
        return WindowSpec(self.size_us, self.slide_us)

    @property
    def feedback(self) -> int:
        """Time after its end at which a window is known, L (us), default applied."""
        return self.size_us if self.feedback_us is None else self.feedback_us

    @property
    def max_age(self) -> int:
        """Age of a pending tuple that starts a correction (us), default applied."""
        return 4 * self.size_us if self.max_age_us is None else self.max_age_us


# ------------------------------------------------------------------------------------- answers


class Result(NamedTuple):
    """First answer for a window; the stream gives it once, when the window closes."""

    task: int
    start_us: int
    key: str
    batch: int
    value: float
    n_rcv: int
    slack_us: int
    """Wait of the task when the window closed: K, or the wait of room ``watermark``."""
    wm_us: int
    """Watermark that closed the window."""


class Late(NamedTuple):
    """A late (tuple, window) pair: the window was closed when the tuple arrived."""

    task: int
    start_us: int
    key: str
    source_id: int
    event_time_us: int
    batch: int


class Rejected(NamedTuple):
    """An arrival that is in no answer, with the reason."""

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
    """Trigger of the correction: ``gamma``, ``age`` or ``flush``."""
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
    """Corrected answer for one window."""

    task: int
    start_us: int
    key: str
    batch: int
    revision: int
    """Number 1, 2, ... within the window; the first answer counts as revision 0."""
    value: float
    n: int
    """Distinct accepted tuples of the window in the history when it was corrected."""


class Final(NamedTuple):
    """Last answer for a window, which the user reads in the end."""

    task: int
    start_us: int
    key: str
    value: float
    n: int
    revision: int
    exact: bool
    """True if no pair of this window is pending, and no arrival of it was rejected."""


ANSWERS: Mapping[type, tuple[str, ...]] = {
    Result: ("task", "start_us", "key", "value", "n_rcv"),
    Late: ("task", "start_us", "key", "source_id"),
    Rejected: ("task", "seq", "source_id", "reason"),
    Final: ("task", "start_us", "key", "value", "n"),
}
"""Fields of answers: what was computed, from how many tuples, and which tuples it lacks."""
