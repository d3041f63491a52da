"""Errors of first answers, from the workload alone (docs/slack.md, 7).

The truth does not depend on the system that recorded the trace.
"""

from math import ceil
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from model.vocabulary import SlackConfig, Trace, Workload
from model.vocabulary.windows import Result
from model.windows.aggregates import as_written

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]


def warm_up(config: SlackConfig) -> int:
    """Return the number of windows after which ``alpha`` has reached its working range.

    It starts at 1 and falls by ``learning_rate * delta/2`` a window unless one misses: after that
    many windows it has been at 0, or a window has missed.
    """
    return ceil(2 / (config.learning_rate * config.delta))


def first_errors(workload: Workload, trace: Trace) -> Floats:
    """Return the error of every first answer before the flush, in the order of their windows.

    It is relative; for quantiles it is the error in rank, as a share of the window's tuples. Raise
    ``ValueError`` for a query with several tasks or keys: each of them is a stream.
    """
    config = SlackConfig.from_json(workload.config)
    if config.tasks != 1 or config.keyed:
        msg = f"the query has {config.tasks} tasks and keyed={config.keyed}; one stream is needed"
        raise ValueError(msg)
    flush = len(tuple(workload.batches()))
    results = sorted(
        (step for step in trace.of(Result) if step.batch < flush), key=lambda step: step.start_us
    )
    start_us = np.array([step.start_us for step in results], dtype=np.int64)
    distinct = {event.source_id: event for event in reversed(workload.arrivals)}.values()
    time_us = np.array([event.event_time_us for event in distinct], dtype=np.int64)
    order = np.argsort(time_us, kind="stable")
    values = np.array([event.value for event in distinct], dtype=np.float64)[order]
    first = np.searchsorted(time_us[order], start_us)
    last = np.searchsorted(time_us[order], start_us + config.size_us)
    answer = np.array([step.value for step in results], dtype=np.float64)
    return _errors(config, answer, values, first, last)


def _errors(config: SlackConfig, answer: Floats, values: Floats, first: Ints, last: Ints) -> Floats:
    """Return the error of each answer; its window is ``values[first:last]``."""
    if config.aggregate in ("median", "quantile"):
        q = 0.5 if config.aggregate == "median" else config.q
        windows = zip(answer.tolist(), first.tolist(), last.tolist(), strict=True)
        return np.array([_rank_error(q, each, values[a:b]) for each, a, b in windows])
    n = (last - first).astype(np.float64)
    # Whole numbers: these sums are exact.
    total = np.concatenate([[0.0], np.cumsum(values)])
    truth = {"count": n, "sum": total[last] - total[first]}
    truth["avg"] = truth["sum"] / n
    exact = truth[config.aggregate]
    return np.asarray(np.abs(answer - exact) / exact, dtype=np.float64)


def _rank_error(q: float, answer: float, values: Floats) -> float:
    """Return the error of an answer in ranks, as a share; of several ranks the nearest counts."""
    aim = ceil(as_written(q) * len(values))
    below, upto = int((values < answer).sum()), int((values <= answer).sum())
    return max(below + 1 - aim, aim - upto, 0) / len(values)
