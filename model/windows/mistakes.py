"""Decisions about windows that look right and are not, for the planted bugs of several rooms."""

from model.vocabulary import Event, WindowSpec
from model.windows.correction import Pending
from model.windows.query import Query
from model.windows.rules import LATE, Place, Stream, route


def one_tick_early(windows: WindowSpec, wm_us: int) -> int:
    """A window closes when the watermark has reached the last event time in it."""
    return windows.first_index(wm_us + 1)


def loses_mixed(task: Stream, index: int, event: Event) -> Place:
    """A tuple that still has an open window is late for none."""
    is_mixed = task.windows.last_index(event.event_time_us) >= task.first_open
    place = route(task, index, event)
    return Place(joins=False, is_late=False) if place == LATE and is_mixed else place


def reopens(task: Stream, index: int, event: Event) -> Place:
    """A late tuple joins its window, too."""
    return Place(joins=True, is_late=route(task, index, event).is_late)


def never_a_redelivery(_task: Stream, _event: Event) -> bool:
    """Every delivery is a new tuple."""
    return False


def without_age(config: Query, pending: Pending, _wm_us: int, is_flush: bool) -> str | None:
    """However old a pending pair is, nothing follows from that."""
    if is_flush:
        return "flush"
    return "gamma" if pending.newest_us - pending.oldest_us > config.gamma_us else None
