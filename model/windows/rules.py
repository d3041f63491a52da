"""Decisions about windows and corrections, one function each (docs/slack.md, sections 2 and 6).

Rules of this file:

* A decision reads state and changes nothing; ``machine`` and ``correction`` act on it.
* A room extends the table :class:`WindowRules`. A planted bug is that table with one entry
  replaced.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import NamedTuple

from model.vocabulary import Event, WindowSpec
from model.vocabulary.windows import REASON_NOT_FINITE, WindowQuery
from model.windows.state import Pair, Pending

# ------------------------------------------------------------------------------------ the stream


class Place(NamedTuple):
    """The destination of one (tuple, window) pair."""

    joins: bool
    """True if the tuple joins the open window."""
    is_late: bool
    """True if the pair is recorded as late."""


OPEN = Place(joins=True, is_late=False)
LATE = Place(joins=False, is_late=True)


class Stream:
    """The part of a task that decisions may read."""

    __slots__ = ("accepted", "config", "first_open", "t_max_us", "windows", "wm_us")

    config: WindowQuery
    windows: WindowSpec
    accepted: dict[int, int]
    """Event time of each accepted identity."""
    t_max_us: int
    """The largest event time accepted so far."""
    wm_us: int
    first_open: int
    """Index of the first window that is not closed."""


def reject(event: Event) -> str | None:
    """Return why an arrival is rejected; None if it takes part."""
    return None if isfinite(event.value) else REASON_NOT_FINITE


def is_redelivery(task: Stream, event: Event) -> bool:
    """Return whether the identity was accepted before and not forgotten since."""
    accepted_us = task.accepted.get(event.source_id)
    return (
        accepted_us is not None
        and task.config.dedup
        and task.windows.last_end_us(accepted_us) + task.config.feedback > task.wm_us
    )


def first_open(windows: WindowSpec, wm_us: int) -> int:
    """Return the index of the first open window; a window is closed if ``end <= wm``."""
    return windows.first_index(wm_us)


def route(task: Stream, index: int, _event: Event) -> Place:
    """Return where a tuple goes in a window; the watermark alone decides."""
    return LATE if index < task.first_open else OPEN


def flush_wm_us(task: Stream) -> int:
    """Return the watermark of a flush, behind which no window is open and no identity is kept."""
    return max(task.wm_us, task.windows.last_end_us(task.t_max_us) + task.config.feedback)


# ----------------------------------------------------------------------------------- corrections


def trigger(config: WindowQuery, pending: Pending, wm_us: int, is_flush: bool) -> str | None:
    """Return why a task with pending pairs is corrected at the end of a batch; None if it waits."""
    if is_flush:
        return "flush"
    if pending.newest_us - pending.oldest_us > config.gamma_us:
        return "gamma"
    if wm_us - pending.oldest_us > config.max_age:
        return "age"
    return None


def covered(planned: Collection[Pair], _all_pending: Collection[Pair]) -> Collection[Pair]:
    """Return the pairs that a finished correction clears: those it was planned for."""
    return planned


def incomplete(config: WindowQuery, event: Event) -> Sequence[int]:
    """Return the starts of the windows that lack a rejected arrival, and so are never exact."""
    spec = config.windows
    return [spec.start_us(index) for index in spec.indices(event.event_time_us)]


# ------------------------------------------------------------------------------------- the table


@dataclass(frozen=True, slots=True)
class CorrectionRules:
    """The decisions about corrections and exactness."""

    trigger: Callable[[WindowQuery, Pending, int, bool], str | None] = trigger
    covered: Callable[[Collection[Pair], Collection[Pair]], Collection[Pair]] = covered
    clears_first: bool = False
    """True if a correction clears pairs before the answers for them are written."""
    incomplete: Callable[[WindowQuery, Event], Sequence[int]] = incomplete


AS_SPECIFIED = CorrectionRules()


@dataclass(frozen=True, slots=True)
class WindowRules(CorrectionRules):
    """The decisions that every windowed room takes."""

    reject: Callable[[Event], str | None] = reject
    is_redelivery: Callable[[Stream, Event], bool] = is_redelivery
    wm_us: Callable[[int, int], int] = max
    """The next watermark from the one before and from t_max less the wait."""
    first_open: Callable[[WindowSpec, int], int] = first_open
    route: Callable[[Stream, int, Event], Place] = route
    flush_wm_us: Callable[[Stream], int] = flush_wm_us
