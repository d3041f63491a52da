"""A timed run of a chain in figures.

Rules of this file:

* Names end in their unit; shares and utilisation are fractions of 1.
* A figure of which nothing was seen is left out.
* Rates are taken over the time in which tuples came: a run goes on until its last epoch is over.
"""

import numpy as np

from model.join.load import Traffic
from model.vocabulary.join import STREAMS
from sim.join.observed import Observed
from sim.kernel.recorder import Summary


def summary_of(run: Observed) -> Summary:
    """Return all figures."""
    return {**_counts(run), **_latencies(run), **_load(run), **_bandwidth(run)}


def _counts(run: Observed) -> Summary:
    room, counts = run.room, run.arrived.counts
    admitted = {stream: len(run.deliveries[stream].source_id) for stream in STREAMS}
    results, comparisons = len(run.results.r_id), room.line.comparisons
    kept, rejected = len(run.events), len(run.rejected)
    return {
        "arrivals": counts["arrived"],
        **({"shed_at_log": counts["shed"]} if counts["shed"] else {}),
        "shed": counts["arrived"] - kept,
        "rejected": rejected,
        "redelivered": kept - rejected - sum(admitted.values()),
        "admitted_r": admitted["R"],
        "admitted_s": admitted["S"],
        "epochs": len(room.commits_us),
        "results": results,
        "comparisons": comparisons,
        **({"efficiency": results / comparisons} if comparisons else {}),
        "failures": room.failures,
        "arrivals_taken_again": room.taken_again,
        **{name: count for name, count in _repeats(run).items() if count},
        "intake_pauses": sum(intake.pauses for intake in room.intakes.values()),
        "resized": ", ".join(f"{each.before} to {each.after}" for each in room.resized) or "no",
    }


def _repeats(run: Observed) -> dict[str, int]:
    """Return how many messages of the cluster's links were sent again, and how many came again."""
    links = run.room.line.links.values()
    return {
        "sent_again": sum(link.retried for link in links),
        "came_again": sum(link.replayed for link in links),
    }


def _latencies(run: Observed) -> Summary:
    latency_us = run.latencies_us
    if not len(latency_us):
        return {}
    return {
        "mean_latency_us": float(latency_us.mean()),
        "median_latency_us": float(np.median(latency_us)),
        "p99_latency_us": float(np.percentile(latency_us, 99)),
    }


def _load(run: Observed) -> Summary:
    """Tuples held, utilisation, workers' time."""
    room = run.room
    samples, now_us = room.load.samples, room.end_us
    held = [sample.held for sample in samples]
    moments = [sample.moment for sample in samples]
    means = [moment.mean for moment in moments]
    tau1 = room.tuning.control.limits.tau1
    full = [moment for moment in moments if moment.mean <= tau1 < moment.fullest]
    return {
        "duration_us": now_us,
        "mean_held": float(np.mean(held)),
        "peak_held": max(held),
        "peak_waiting": max(sample.waiting for sample in samples),
        "mean_utilisation": float(np.mean(means)),
        "peak_utilisation": max(means),
        "fullest_worker": max(moment.fullest for moment in moments),
        "moments_with_a_full_worker": len(full),
        **{f"busy_{n}": each.busy.mean(now_us) for n, each in enumerate(room.line.stations)},
    }


def _bandwidth(run: Observed) -> Summary:
    """Return bytes between workers, against the formula of docs/join.md, section 8."""
    room, span_us = run.room, run.span_us
    sent, tuples = room.line.sent, room.line.tuples_sent
    if not tuples or not span_us:
        return {}
    expected = traffic_of(run)
    headers = expected.header_bytes * (sent["block"] + sent["ack"])
    payload = expected.tuple_bytes * tuples
    mean_block = tuples / sent["block"]
    figures: Summary = {
        "blocks": sent["block"],
        "mean_block": mean_block,
        "bytes_per_s": (payload + headers) / span_us * 1e6,
        "hint_bytes_per_s": expected.header_bytes * sent["hint"] / span_us * 1e6,
        "header_share": headers / payload,
    }
    # The formula knows neither other numbers of workers nor tuples that cross twice.
    if room.resized or room.failures:
        return figures
    figures["bytes_per_s_bound"] = expected.bytes_per_s(mean_block)
    figures["header_share_bound"] = expected.overhead_bound(mean_block)
    return figures


def traffic_of(run: Observed) -> Traffic:
    """Return what the formula of docs/join.md, section 8, asks about a run."""
    room = run.room
    admitted = sum(len(run.deliveries[stream].source_id) for stream in STREAMS)
    per_s = admitted / run.span_us * 1e6 if run.span_us else 0.0
    tuple_bytes, header_bytes = room.plan.cluster.tuple_bytes, room.tuning.costs.header_bytes
    return Traffic(per_s, room.config.workers, tuple_bytes, header_bytes)
