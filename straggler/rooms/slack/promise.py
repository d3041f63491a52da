"""Measurement of the promise of quality: how often first answers are wrong (docs/slack.md, 7).

Rules of this file:

1. The truth is computed from the workload alone, whatever system recorded the trace.
2. Neighbouring windows are no independent trials: they share tuples, and a controller has a memory.
   Windows are counted in blocks of :data:`BLOCK_LENGTHS` window lengths.
3. A probability comes with two limits, and with the probability that a limit is wrong; between the
   limits the verdict is undetermined.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import ceil, floor, sqrt
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from model.checking.claims import Outcome
from model.vocabulary import Event, SlackConfig, Trace, Workload
from model.vocabulary.slack import Judged
from model.vocabulary.windows import Result
from model.windows.aggregates import as_written
from sim.kernel.log import simulate_arrivals
from sim.kernel.source import Source
from sim.scenarios import INDEPENDENT, PROCESSES, SECOND_US

Flags: TypeAlias = NDArray[np.bool_]
Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]

FAILURE = 0.01
"""Largest probability that any limit of the table fails."""
QUERY = SlackConfig(
    10 * SECOND_US,
    2 * SECOND_US,
    q=0.9,
    keyed=False,
    # A burst makes tuples five seconds late on average: it must be seen before the judgement.
    feedback_us=20 * SECOND_US,
)
AGGREGATES = ("sum", "count", "avg", "median", "quantile")
PROMISES = list(product(INDEPENDENT, AGGREGATES))
"""Every process whose values do not depend on delay, with every aggregate."""

BLOCK_LENGTHS = 20
"""Window lengths in a block. Two blocks share tuples of at most a twentieth of a block.

In every process the correlation between two windows ten lengths apart was below 0.03 in absolute
value (27,000 windows). That of neighbouring blocks was negative or within the noise of 0.1, because
the controller makes up for misses; so the limits are too wide rather than too close."""


def stream(process: str, tuples: int, seed: int) -> tuple[Event, ...]:
    """Return ``tuples`` arrivals of a disorder process (:mod:`sim.scenarios`)."""
    plan = PROCESSES[process](seed)
    sources = tuple(replace(s, events=tuples) for s in plan.sources if isinstance(s, Source))
    return simulate_arrivals(replace(plan, sources=sources), seed).events


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


def measured_misses(trace: Trace) -> Flags:
    """Return whether each judged window missed its requirement, by what its judgement knew."""
    judged = sorted(trace.of(Judged), key=lambda step: step.order)
    return np.array([step.miss for step in judged], dtype=np.bool_)


# -------------------------------------------------------------------------------- a probability


@dataclass(frozen=True, slots=True)
class Share:
    """Observed share of an event, and limits of its probability."""

    share: float
    low: float
    high: float
    failure: float
    """Probability that ``low`` is too high, and that ``high`` is too low."""
    windows: int
    blocks: int

    def at_most(self, promised: float) -> Outcome:
        """Judge that the probability is at most ``promised``."""
        if self.high <= promised:
            return Outcome.HOLDS
        return Outcome.BROKEN if self.low > promised else Outcome.UNDETERMINED

    def sentence(self, promised: float) -> str:
        """Return the observation as a sentence."""
        return (
            f"{self.share:.4f} of {self.windows} windows in {self.blocks} blocks, between"
            f" {self.low:.4f} and {self.high:.4f} (each limit fails with probability"
            f" {self.failure:.1g}); promised is {promised:g}"
        )


def share_of(happened: Flags, config: SlackConfig, failure: float) -> Share:
    """Estimate the probability that something happens to a window, from a long run of windows.

    The limits are Student-t limits over blocks. These assume means that are nearly normal, which
    means of rare events are not: so neither limit is closer than the Clopper-Pearson limit of as
    many independent windows as do not overlap.

    Raise ``ValueError`` for fewer than ten blocks.
    """
    overlap = ceil(config.size_us / config.slide_us)
    length = BLOCK_LENGTHS * overlap
    blocks = len(happened) // length
    if blocks < 10:
        msg = f"{len(happened)} windows are {blocks} blocks of {length}; at least 10 are needed"
        raise ValueError(msg)
    means = happened[: blocks * length].reshape(blocks, length).mean(axis=1)
    share, windows = float(means.mean()), blocks * length
    half = float(stats.t.isf(failure, blocks - 1) * means.std(ddof=1)) / sqrt(blocks)
    trials = windows // overlap
    fewest, most = floor(share * trials), ceil(share * trials)
    rare_low = float(stats.beta.ppf(failure, fewest, trials - fewest + 1)) if fewest else 0.0
    rare_high = float(stats.beta.isf(failure, most + 1, trials - most)) if most < trials else 1.0
    return Share(
        share=share,
        low=max(0.0, min(share - half, rare_low)),
        high=max(share + half, rare_high),
        failure=failure,
        windows=windows,
        blocks=blocks,
    )


def bonferroni(failure: float, tests: Sequence[object]) -> float:
    """Return the failure probability of each test, so that any of them fails with ``failure``."""
    return failure / len(tests)
