"""A timed run of senders and instances in figures.

Rules of this file:

* Names end in their unit; shares and utilisation are fractions of 1.
* A figure of which nothing was seen is left out.
* Balance is that of whole windows by the times that were true when they began, whatever times the
  senders went by, so that policies and measurements can be compared. A window is whole if it is
  full. The first one, in which nothing is known yet, stands by itself.
"""

from typing import TypeAlias

import numpy as np

from model.grouping.balance import imbalance, rho
from model.vocabulary.grouping import Heavy
from sim.grouping.timed import Room, Seen, Span
from sim.kernel.distributions import FloatArray

Figure: TypeAlias = float | int | str
Summary: TypeAlias = dict[str, Figure]


def summary_of(room: Room) -> Summary:
    """All figures."""
    seen = room.seen
    return {**_counts(room), **_rates(room, seen), **_balance(room, seen), **_load(room, seen)}


def _counts(room: Room) -> Summary:
    config, windows = room.config, len(room.spans)
    heavy = list(map(type, room.senders.steps)).count(Heavy)
    by_window = [list(each.values()) for each in room.senders.values.values()]
    places = sum(len(keys) for window in by_window for keys in window)
    keys = sum(len({key for keys in window for key in keys}) for window in by_window)
    return {
        "instances": config.instances,
        "senders": config.senders,
        "tuples": len(room.workload.arrivals),
        "windows": windows,
        **({"mean_heavy_keys": heavy / (windows - 1)} if windows > 1 else {}),
        **({"instances_a_key": places / keys} if keys else {}),
        "measurements": len(config.times_us) - 1,
    }


def _rates(room: Room, seen: Seen) -> Summary:
    """How many tuples a second, and how long they took."""
    if not len(seen.ended_us):
        return {}
    latency_us = seen.ended_us - seen.arrived_us
    came_us = float(seen.arrived_us[-1])
    return {
        "duration_us": float(seen.ended_us.max()),
        "ideal_hz": room.crew.ideal_hz(room.config.instances),
        **({"offered_hz": len(latency_us) / came_us * 1e6} if came_us else {}),
        "served_hz": _served_hz(room, seen),
        **_settled(latency_us),
        "mean_latency_us": float(latency_us.mean()),
        "median_latency_us": float(np.median(latency_us)),
        "p99_latency_us": float(np.percentile(latency_us, 99)),
    }


def _settled(latency_us: FloatArray) -> Summary:
    """Of the second half of the tuples: in the first one, queues of the first window run dry."""
    late_us = latency_us[len(latency_us) // 2 :]
    return {
        "settled_latency_us": float(late_us.mean()),
        "settled_p99_latency_us": float(np.percentile(late_us, 99)),
    }


def _served_hz(room: Room, seen: Seen) -> float:
    """Tuples a second, from the second window until there is nothing to send.

    The first window fills the queues, and at the end some instances have nothing to do. Where that
    is all there is, it is the rate of the whole run.
    """
    from_us, until_us = 0.0, float(seen.sent_us.max())
    if len(room.spans) > 1:
        from_us = room.spans[1].began_us
    if until_us <= from_us:
        from_us, until_us = 0.0, float(seen.ended_us.max())
    served = np.count_nonzero((from_us < seen.ended_us) & (seen.ended_us <= until_us))
    return served / (until_us - from_us) * 1e6


def counts_of(room: Room, seen: Seen, span: Span) -> list[int]:
    """Tuples of a window at each instance."""
    where = seen.instances[span.first : span.end]
    counts: list[int] = np.bincount(where, minlength=room.config.instances).tolist()
    return counts


def _balance(room: Room, seen: Seen) -> Summary:
    n, config = room.config.instances, room.config
    whole = [span for span in room.spans if span.end - span.first >= config.window_tuples]
    found = [
        (rho(counts, times_us), imbalance(counts, times_us))
        for span in whole
        for counts, times_us in (
            (counts_of(room, seen, span), room.crew.times_us(n, span.began_us)),
        )
    ]
    figures: Summary = {}
    if found:
        figures["first_rho"] = found[0][0]
    if len(found) > 1:
        rhos, imbalances = zip(*found[1:], strict=True)
        figures |= {"mean_rho": float(np.mean(rhos)), "largest_rho": max(rhos)}
        figures["mean_imbalance"] = float(np.mean(imbalances))
    return figures


def _load(room: Room, seen: Seen) -> Summary:
    """Instances and queues."""
    if not len(seen.ended_us):
        return {}
    n, duration_us = room.config.instances, float(seen.ended_us.max())
    busy = np.bincount(seen.instances, seen.ended_us - seen.began_us, minlength=n) / duration_us
    blocked = seen.sent_us > seen.arrived_us
    return {
        "busiest": float(busy.max()),
        "idlest": float(busy.min()),
        "had_to_wait": float(blocked.mean()),
        "peak_queue": max(_peak(seen, i) for i in range(n)),
    }


def _peak(seen: Seen, instance: int) -> int:
    """The most tuples under way to an instance or in it, when another one leaves for it."""
    here = seen.instances == instance
    sent_us, ended_us = seen.sent_us[here], seen.ended_us[here]
    # Both ascend with the order in which tuples left, which with several senders is not theirs.
    sent_us, ended_us = np.sort(sent_us), np.sort(ended_us)
    gone = np.searchsorted(ended_us, sent_us, side="right")
    return int((np.arange(1, len(sent_us) + 1) - gone).max(initial=0))
