"""Figures of a run of a chain: pairs and latencies, summary, series, and bandwidth.

Rules of this file, beside those of :mod:`sim.timed_figures`:

* Rates are taken over the time in which tuples came: a run goes on until its last epoch is over.
"""

from collections.abc import Sequence
from functools import cached_property
from math import ceil, nan
from typing import NamedTuple

import numpy as np

from model.vocabulary import Event
from model.vocabulary.join import STREAMS, Rejected
from sim.join.cluster import ChainCluster
from sim.join.content import NONE
from sim.join.load import Sample
from sim.kernel.disorder import IntArray
from sim.kernel.distributions import FloatArray
from sim.kernel.recorder import Series, Summary, ratio
from sim.kernel.run import Arrived
from sim.timed_figures import means, nonzero, number_columns, summarise_spread

ROWS = 300
"""Most rows of a series; a longer run has every second sample, every third, ... as a row."""


class Results(NamedTuple):
    """All pairs of a run as columns, in the order in which they came out."""

    at_us: FloatArray
    epoch: IntArray
    query: IntArray
    """Number of the query."""
    r_id: IntArray
    s_id: IntArray


class Deliveries(NamedTuple):
    """The deliveries of one stream's admitted tuples, ordered by identity."""

    source_id: IntArray
    arrival_us: FloatArray
    """Kernel time."""

    def arrival_of(self, source_id: IntArray) -> FloatArray:
        """Return when tuples arrived."""
        found: FloatArray = self.arrival_us[np.searchsorted(self.source_id, source_id)]
        return found


class FinishedRun:
    """A finished run: its cluster, with arrivals, pairs and latencies."""

    def __init__(self, cluster: ChainCluster, arrived: Arrived) -> None:
        self.cluster = cluster
        self.arrived = arrived
        shed = cluster.shedding.shed
        self.events: Sequence[Event] = arrived.events
        """Arrivals that were not shed, with their numbers in the log."""
        if shed:
            self.events = [event for event in arrived.events if event.seq not in shed]

    @cached_property
    def rejected(self) -> list[Rejected]:
        """Arrivals that were rejected, with their numbers in the log."""
        return [step for step in self.cluster.steps if isinstance(step, Rejected)]

    @cached_property
    def results(self) -> Results:
        """Every pair that came out."""
        emitted = self.cluster.emitted
        if not emitted:
            return Results(np.empty(0), NONE, NONE, NONE, NONE)
        at_us, epochs, parts = zip(*emitted, strict=True)
        queries, r, s = zip(*parts, strict=True)
        sizes = [len(each) for each in r]
        at, epoch, query = (np.repeat(each, sizes) for each in (at_us, epochs, queries))
        return Results(at, epoch, query, np.concatenate(r), np.concatenate(s))

    @cached_property
    def deliveries(self) -> dict[str, Deliveries]:
        """First deliveries of each stream's tuples that were neither shed nor rejected."""
        out = self.cluster.shedding.shed.union(step.seq for step in self.rejected)
        start_us = self.cluster.plan.epoch_us
        found = {}
        for stream, intake in self.cluster.intakes.items():
            events = [event for event in intake.events if event.seq not in out]
            ids = np.array([event.source_id for event in events], dtype=np.int64)
            arrival_us = np.array([event.arrival_us - start_us for event in events], dtype=float)
            distinct, first = np.unique(ids, return_index=True)
            found[stream] = Deliveries(distinct, arrival_us[first])
        return found

    @cached_property
    def latencies_us(self) -> FloatArray:
        """Time from the arrival of the later tuple of each pair until the pair came out."""
        at_us, _, _, r_id, s_id = self.results
        of_r, of_s = (self.deliveries[stream] for stream in STREAMS)
        latencies_us: FloatArray = at_us - np.maximum(of_r.arrival_of(r_id), of_s.arrival_of(s_id))
        return latencies_us

    @property
    def span_us(self) -> float:
        """Time at which the last tuple arrived."""
        events = self.arrived.events
        return float(events[-1].arrival_us - self.cluster.plan.epoch_us) if events else 0.0

    @property
    def lag_us(self) -> float:
        """Time from the last arrival until the end of the epoch before the flush."""
        commits_us = self.cluster.commits_us
        return commits_us[-2] - self.span_us if len(commits_us) > 1 else 0.0


# --------------------------------------------------------------------------------------- summary


def summary_of(run: FinishedRun) -> Summary:
    """Return all figures."""
    return {
        **_counts(run),
        **summarise_spread("latency_us", run.latencies_us),
        **_load(run),
        **_bandwidth(run),
    }


def _counts(run: FinishedRun) -> Summary:
    cluster, counts = run.cluster, run.arrived.counts
    admitted = {stream: len(run.deliveries[stream].source_id) for stream in STREAMS}
    results, comparisons = len(run.results.r_id), cluster.line.comparisons
    kept, rejected = len(run.events), len(run.rejected)
    is_live, links = cluster.tuning.control.live, cluster.line.links.values()
    changes_us = [round(one.at_us - one.began_us) for one in cluster.resizings]
    return {
        "arrivals": counts["arrived"],
        **({"shed_at_log": counts["shed"]} if counts["shed"] else {}),
        "shed": counts["arrived"] - kept,
        "rejected": rejected,
        "redelivered": kept - rejected - sum(admitted.values()),
        "admitted_r": admitted["R"],
        "admitted_s": admitted["S"],
        "epochs": len(cluster.commits_us),
        "results": results,
        "comparisons": comparisons,
        **({"efficiency": results / comparisons} if comparisons else {}),
        "failures": cluster.failures,
        "arrivals_taken_again": cluster.taken_again,
        **nonzero(
            {
                "sent_again": sum(link.retried for link in links),
                "came_again": sum(link.replayed for link in links),
            }
        ),
        "resized": ", ".join([f"{one.before} to {one.after}" for one in cluster.resizings]) or "no",
        **({"longest_change_us": max(changes_us, default=0)} if is_live else {}),
    }


def _load(run: FinishedRun) -> Summary:
    """Return tuples held, utilisation, and shares of time in which workers worked."""
    cluster = run.cluster
    samples, now_us = cluster.load.samples, cluster.end_us
    held = [sample.held for sample in samples]
    means = [sample.mean for sample in samples]
    tau1 = cluster.tuning.control.limits.tau1
    full = [sample for sample in samples if sample.mean <= tau1 < sample.fullest]
    return {
        "duration_us": now_us,
        "mean_held": float(np.mean(held)),
        "peak_held": max(held),
        "peak_waiting": max(sample.waiting for sample in samples),
        "mean_utilisation": float(np.mean(means)),
        "peak_utilisation": max(means),
        "fullest_worker": max(sample.fullest for sample in samples),
        "moments_with_a_full_worker": len(full),
        **{f"busy_{n}": each.busy.mean(now_us) for n, each in enumerate(cluster.line.stations)},
    }


def _bandwidth(run: FinishedRun) -> Summary:
    """Return bytes between workers, against the formula of docs/join.md, section 8.

    A block has two headers for a hop: its own, and that of its acknowledgement.
    """
    cluster, span_us = run.cluster, run.span_us
    sent, tuples = cluster.line.sent, cluster.line.tuples_sent
    if not tuples or not span_us:
        return {}
    tuple_bytes, header_bytes = cluster.plan.cluster.tuple_bytes, cluster.tuning.costs.header_bytes
    headers = header_bytes * (sent["block"] + sent["ack"])
    payload = tuple_bytes * tuples
    mean_block = tuples / sent["block"]
    figures: Summary = {
        "blocks": sent["block"],
        "mean_block": mean_block,
        "bytes_per_s": (payload + headers) / span_us * 1e6,
        "hint_bytes_per_s": header_bytes * sent["hint"] / span_us * 1e6,
        "header_share": headers / payload,
    }
    # The formula assumes a fixed number of workers, and that tuples cross once.
    if cluster.resizings or cluster.failures:
        return figures
    admitted = sum(len(each.source_id) for each in run.deliveries.values())
    hops_per_s = admitted / span_us * 1e6 * (cluster.config.workers - 1)
    header_bytes_per_s = hops_per_s * (2 * header_bytes / mean_block)
    figures["bytes_per_s_bound"] = hops_per_s * tuple_bytes + header_bytes_per_s
    figures["header_share_bound"] = 2 * header_bytes / (mean_block * tuple_bytes)
    return figures


# ---------------------------------------------------------------------------------------- series


def series_of(run: FinishedRun) -> Series:
    """Return all columns.

    ``workers``; ``utilisation`` (mean), ``fullest``, ``smoothed``: tuples held by a worker divided
    by the capacity; ``held``: tuples in all stores; ``waiting``: arrivals not handed over yet;
    ``block_size``; ``shed``: share; ``watermark_lag_us``: how far the lower watermark of the two
    streams is behind the time; ``busy``: share of the interval in which workers worked;
    ``latency_us``: mean over the results of the interval. Of each worker ``queue_0``, ...: what
    waits or is in service; ``utilisation_0``, ...: share of the interval in which it worked.
    """
    cluster = run.cluster
    samples = cluster.load.samples[:: ceil(len(cluster.load.samples) / ROWS)]
    time_us, workers = _column(samples, "at_us"), _column(samples, "workers")
    stations = cluster.line.stations
    busy = [station.busy.means(time_us) for station in stations]
    columns: Series = {
        "time_us": time_us,
        "workers": workers,
        "utilisation": _column(samples, "mean"),
        "fullest": _column(samples, "fullest"),
        "smoothed": _column(samples, "smoothed"),
        "held": _column(samples, "held"),
        "waiting": _column(samples, "waiting"),
        "block_size": _column(samples, "block_size"),
        "shed": _column(samples, "share"),
        "watermark_lag_us": time_us + cluster.plan.epoch_us - _column(samples, "watermark_us"),
        "busy": ratio(np.sum(busy, axis=0), workers),
        "latency_us": means(run.results.at_us, run.latencies_us, time_us),
    }
    return {
        **columns,
        **number_columns("queue", [station.inside.at(time_us) for station in stations]),
        **number_columns("utilisation", busy),
    }


def _column(samples: list[Sample], name: str) -> FloatArray:
    found = [getattr(sample, name) for sample in samples]
    return np.array([nan if each is None else each for each in found], dtype=np.float64)
