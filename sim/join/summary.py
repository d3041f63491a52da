"""A timed run of a chain in figures.

Rules of this file:

* Names end in their unit; shares and utilisation are fractions of 1.
* A figure of which nothing was seen is left out.
"""

from typing import TypeAlias

import numpy as np

from model.join.load import Traffic
from model.vocabulary.join import STREAMS
from sim.join.timed import Room

Figure: TypeAlias = float | int | str
Summary: TypeAlias = dict[str, Figure]


def summary_of(room: Room) -> Summary:
    """All figures."""
    return {**_counts(room), **_latencies(room), **_load(room), **_bandwidth(room)}


def _counts(room: Room) -> Summary:
    arrivals, shed = len(room.stream.arrivals), len(room.doors.shed)
    admitted = {name: len(room.gate.admitted[name].tuples) for name in STREAMS}
    results = len(room.results.r)
    comparisons = room.index.comparisons
    return {
        "arrivals": arrivals,
        "shed": shed,
        "rejected": len(room.gate.rejected),
        "redelivered": room.gate.redelivered,
        "admitted_r": admitted["R"],
        "admitted_s": admitted["S"],
        "epochs": len(room.commits_us),
        "results": results,
        "comparisons": comparisons,
        **({"efficiency": results / comparisons} if comparisons else {}),
        "failures": room.failures,
        "arrivals_taken_again": room.redone,
        "intake_pauses": sum(source.pauses for source in room.sources.values()),
        "resized": ", ".join(f"{before} to {after}" for _, before, after in room.resized) or "no",
    }


def _latencies(room: Room) -> Summary:
    _, latency_us = room.latencies_us
    if not len(latency_us):
        return {}
    return {
        "mean_latency_us": float(latency_us.mean()),
        "median_latency_us": float(np.median(latency_us)),
        "p99_latency_us": float(np.percentile(latency_us, 99)),
    }


def _load(room: Room) -> Summary:
    """Tuples held, utilisation, workers' time."""
    samples, now_us = room.samples, room.end_us
    held = [each.held for each in samples]
    moments = [each.moment for each in samples]
    means = [each.mean for each in moments]
    tau1 = room.control.limits.tau1
    full = [each for each in moments if each.mean <= tau1 < each.fullest]
    return {
        "duration_us": now_us,
        "mean_held": float(np.mean(held)),
        "peak_held": max(held),
        "peak_waiting": max(each.waiting for each in samples),
        "mean_utilisation": float(np.mean(means)),
        "peak_utilisation": max(means),
        "fullest_worker": max(each.fullest for each in moments),
        "moments_with_a_full_worker": len(full),
        **{f"busy_{n}": station.utilisation() for n, station in enumerate(room.line.stations)},
    }


def _bandwidth(room: Room) -> Summary:
    """Bytes between workers, against the formula of docs/join.md, section 8."""
    traffic, costs, now_us = room.line.traffic, room.crew.costs, room.end_us
    if not traffic.blocks or not now_us:
        return {}
    headers = costs.header_bytes * (traffic.blocks + traffic.acks)
    payload = costs.tuple_bytes * traffic.tuples
    mean_block = traffic.tuples / traffic.blocks
    figures: Summary = {
        "blocks": traffic.blocks,
        "mean_block": mean_block,
        "bytes_per_s": (payload + headers) / now_us * 1e6,
        "hint_bytes_per_s": costs.header_bytes * traffic.hints / now_us * 1e6,
        "header_share": headers / payload,
    }
    # The formula knows neither other numbers of workers nor tuples that cross twice.
    if room.resized or room.failures:
        return figures
    expected = traffic_of(room)
    figures["bytes_per_s_bound"] = expected.bytes_per_s(mean_block)
    figures["header_share_bound"] = expected.overhead_bound(mean_block)
    return figures


def traffic_of(room: Room) -> Traffic:
    """What the formula of docs/join.md, section 8, asks about a run."""
    costs = room.crew.costs
    admitted = sum(len(room.gate.admitted[name].tuples) for name in STREAMS)
    per_s = admitted / room.end_us * 1e6 if room.end_us else 0.0
    return Traffic(per_s, room.config.workers, costs.tuple_bytes, costs.header_bytes)
