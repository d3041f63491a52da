"""A timed run of senders and instances in figures.

Rules of this file:

* Names end in their unit; shares and utilisation are fractions of 1.
* A figure of which nothing was seen is left out.
* Balance is that of whole windows by the times that were true when they began, whatever times the
  senders went by, so that policies and measurements can be compared. A window is whole if it is
  full. The first one, in which nothing is known yet, stands by itself.
"""

import numpy as np

from model.grouping.balance import imbalance, rho
from model.vocabulary import Trace
from model.vocabulary.grouping import Answer, Heavy, Partial
from sim.grouping.cluster import GroupingCluster
from sim.grouping.instances import ideal_hz, times_us
from sim.grouping.record import Seen, Span
from sim.kernel.distributions import FloatArray
from sim.kernel.recorder import Summary
from sim.kernel.run import Arrived


def summary_of(room: GroupingCluster, seen: Seen, arrived: Arrived, trace: Trace) -> Summary:
    """Return all figures."""
    spans = room.record.spans
    counts = _counts(room, spans, arrived, trace)
    if not len(seen.ended_us):
        return counts
    rates, balance = _rates(room, seen, spans), _balance(room, seen, spans)
    return {**counts, **rates, **balance, **_load(room, seen)}


def _counts(room: GroupingCluster, spans: list[Span], arrived: Arrived, trace: Trace) -> Summary:
    config, windows, keys = room.config, len(spans), len(trace.of(Answer))
    troubles = {
        "shed": arrived.counts["shed"],
        "sent_again": sum(link.retried for link in room.links.values()),
        "served_again": sum(passage.services - 1 for passage in room.record.passages),
    }
    return {
        "instances": config.instances,
        "senders": config.senders,
        "tuples": room.arrivals,
        **{name: count for name, count in troubles.items() if count},
        "windows": windows,
        **({"mean_heavy_keys": len(trace.of(Heavy)) / (windows - 1)} if windows > 1 else {}),
        **({"instances_a_key": len(trace.of(Partial)) / keys} if keys else {}),
        "measurements": len(config.times_us) - 1,
    }


def _rates(room: GroupingCluster, seen: Seen, spans: list[Span]) -> Summary:
    """How many tuples a second, and how long they took."""
    latency_us = seen.ended_us - seen.arrived_us
    came_us = float(seen.arrived_us[-1])
    return {
        "duration_us": float(seen.ended_us.max()),
        "ideal_hz": ideal_hz(room.plan, room.config.instances),
        **({"offered_hz": len(latency_us) / came_us * 1e6} if came_us else {}),
        "served_hz": _served_hz(seen, spans),
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


def _served_hz(seen: Seen, spans: list[Span]) -> float:
    """Tuples a second, from the second window until there is nothing to send.

    The first window fills the queues, and at the end some instances have nothing to do. Where that
    is all there is, it is the rate of the whole run.
    """
    from_us, until_us = 0.0, float(seen.sent_us.max())
    if len(spans) > 1:
        from_us = spans[1].began_us
    if until_us <= from_us:
        from_us, until_us = 0.0, float(seen.ended_us.max())
    served = np.count_nonzero((from_us < seen.ended_us) & (seen.ended_us <= until_us))
    return float(served / (until_us - from_us) * 1e6)


def _balance(room: GroupingCluster, seen: Seen, spans: list[Span]) -> Summary:
    n = room.config.instances
    found = []
    for span in spans:
        if span.end - span.first >= room.config.window_tuples:
            counts, true_us = seen.counts(span, n), times_us(room.plan, n, span.began_us)
            found.append((rho(counts, true_us), imbalance(counts, true_us)))
    figures: Summary = {}
    if found:
        figures["first_rho"] = found[0][0]
    if len(found) > 1:
        rhos, imbalances = zip(*found[1:], strict=True)
        figures |= {"mean_rho": float(np.mean(rhos)), "largest_rho": max(rhos)}
        figures["mean_imbalance"] = float(np.mean(imbalances))
    return figures


def _load(room: GroupingCluster, seen: Seen) -> Summary:
    """Instances and queues."""
    duration_us = float(seen.ended_us.max())
    busy = [instance.station.busy.mean(duration_us) for instance in room.instances]
    return {
        "busiest": max(busy),
        "idlest": min(busy),
        "had_to_wait": float((seen.sent_us > seen.arrived_us).mean()),
        "peak_queue": max(_peak(seen, i) for i in range(room.config.instances)),
    }


def _peak(seen: Seen, instance: int) -> int:
    """The most tuples under way to an instance or in it, when another one leaves for it."""
    here = seen.instances == instance
    # Both ascend with the order in which tuples left, which with several senders is not theirs.
    sent_us, ended_us = np.sort(seen.sent_us[here]), np.sort(seen.ended_us[here])
    gone = np.searchsorted(ended_us, sent_us, side="right")
    return int((np.arange(1, len(sent_us) + 1) - gone).max(initial=0))
