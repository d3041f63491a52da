"""Wrong decisions that variants of windowed rooms share, and the workloads that show them."""

from collections.abc import Sequence
from math import nan

from model.vocabulary import Event, WindowSpec, Workload
from model.vocabulary.settings import JsonObject
from model.vocabulary.windows import WindowQuery
from model.windows.rules import LATE, Place, Stream, route
from model.windows.state import Pending

# --------------------------------------------------------------------------------- wrong decisions


def one_tick_early(windows: WindowSpec, wm_us: int) -> int:
    """Close a window when the watermark has reached the last event time in it."""
    return windows.first_index(wm_us + 1)


def loses_mixed(task: Stream, index: int, event: Event) -> Place:
    """Record no late pair of a tuple that still has an open window."""
    is_mixed = task.windows.last_index(event.event_time_us) >= task.first_open
    place = route(task, index, event)
    return Place(joins=False, is_late=False) if place == LATE and is_mixed else place


def reopens(task: Stream, index: int, event: Event) -> Place:
    """Let a late tuple join its window as well."""
    return Place(joins=True, is_late=route(task, index, event).is_late)


def never_a_redelivery(_task: Stream, _event: Event) -> bool:
    """Treat every delivery as a new tuple."""
    return False


def without_age(config: WindowQuery, pending: Pending, _wm_us: int, is_flush: bool) -> str | None:
    """Ignore the age of pending pairs."""
    if is_flush:
        return "flush"
    return "gamma" if pending.newest_us - pending.oldest_us > config.gamma_us else None


def lacks_nothing(_config: WindowQuery, _event: Event) -> Sequence[int]:
    """Treat a window as complete although an arrival of it was rejected."""
    return ()


# -------------------------------------------------------------------------------------- examples


def example(
    room: str,
    config: JsonObject,
    event_times_us: Sequence[int],
    values: Sequence[float],
    cuts: Sequence[int] = (),
    keys: str = "",
) -> Workload:
    """Return arrivals at these event times, one tick apart; the key is ``a`` unless given."""
    arrivals = tuple(
        Event(seq, seq, keys[seq] if keys else "a", event_time_us, value, 100 + seq)
        for seq, (event_time_us, value) in enumerate(zip(event_times_us, values, strict=True))
    )
    return Workload(room, arrivals, config, tuple(cuts))


def with_rejected(workload: Workload) -> Workload:
    """Return the workload with its last value missing."""
    *others, last = workload.arrivals
    return workload.with_(arrivals=(*others, last._replace(value=nan)))


def with_redelivery(workload: Workload) -> Workload:
    """Return the workload with its first tuple delivered again at the end."""
    again = workload.arrivals[0]._replace(seq=len(workload.arrivals), arrival_us=200)
    return workload.with_(arrivals=(*workload.arrivals, again))
