"""Decisions about windows and corrections, one function each (docs/slack.md, sections 2 and 6).

Rules of this file:

* A decision looks, it changes nothing.
* A room has a table of decisions of its own, in which these are entries.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from model.vocabulary import Event, WindowSpec
from model.windows.query import Query

if TYPE_CHECKING:
    from model.windows.correction import Pair, Pending

BEFORE_TIME_US = -(1 << 63)
"""The clock of a task that has accepted nothing; every event time lies behind it."""


class Place(NamedTuple):
    """Where a (tuple, window) pair goes."""

    joins: bool
    """The tuple joins the open window."""
    is_late: bool
    """The pair is recorded as late."""


OPEN = Place(joins=True, is_late=False)
LATE = Place(joins=False, is_late=True)


class Stream(Protocol):
    """What decisions see of a task."""

    @property
    def config(self) -> Query:
        """The query."""
        ...

    @property
    def windows(self) -> WindowSpec:
        """Its windows."""
        ...

    @property
    def accepted(self) -> Mapping[int, int]:
        """Event times by identity."""
        ...

    @property
    def t_max_us(self) -> int:
        """The largest event time accepted so far."""
        ...

    @property
    def wm_us(self) -> int:
        """The watermark."""
        ...

    @property
    def first_open(self) -> int:
        """Index of the first window that is not closed."""
        ...


def is_redelivery(task: Stream, event: Event) -> bool:
    """Whether the identity was accepted before and not forgotten since."""
    accepted_us = task.accepted.get(event.source_id)
    return (
        accepted_us is not None
        and task.config.dedup
        and task.windows.last_end_us(accepted_us) + task.config.feedback > task.wm_us
    )


def is_too_far_ahead(config: Query, event: Event) -> bool:
    """Whether the event time lies further ahead of the arrival than is allowed."""
    ahead_us = event.event_time_us - event.arrival_us
    return config.max_future_us is not None and ahead_us > config.max_future_us


def first_open(windows: WindowSpec, wm_us: int) -> int:
    """Index of the first window that is not closed: closed is ``end <= wm``."""
    return windows.first_index(wm_us)


def route(task: Stream, index: int, _event: Event) -> Place:
    """Nothing but the watermark decides."""
    return LATE if index < task.first_open else OPEN


def flush_wm_us(task: Stream) -> int:
    """The watermark of a flush: no window stays open, and nothing is remembered for one."""
    return max(task.wm_us, task.windows.last_end_us(task.t_max_us) + task.config.feedback)


class Correcting(Protocol):
    """The decisions of a correction."""

    @property
    def trigger(self) -> Callable[[Query, "Pending", int, bool], str | None]:
        """See :func:`trigger`."""
        ...

    @property
    def covered(self) -> Callable[[Collection["Pair"], Collection["Pair"]], Collection["Pair"]]:
        """See :func:`covered`."""
        ...

    @property
    def clears_first(self) -> bool:
        """Whether a correction clears pairs before the answers for them are written."""
        ...


def trigger(config: Query, pending: "Pending", wm_us: int, is_flush: bool) -> str | None:
    """Why a task with pending pairs is corrected at the end of a batch, if it is."""
    if is_flush:
        return "flush"
    if pending.newest_us - pending.oldest_us > config.gamma_us:
        return "gamma"
    if wm_us - pending.oldest_us > config.max_age:
        return "age"
    return None


def covered(planned: Collection["Pair"], _all_pending: Collection["Pair"]) -> Collection["Pair"]:
    """Pairs that a finished correction clears: those it was made for."""
    return planned


@dataclass(frozen=True, slots=True)
class CorrectionRules:
    """The decisions of a correction, as they are specified."""

    trigger: Callable[[Query, "Pending", int, bool], str | None] = trigger
    covered: Callable[[Collection["Pair"], Collection["Pair"]], Collection["Pair"]] = covered
    clears_first: bool = False


AS_SPECIFIED = CorrectionRules()
