"""Limits of chains and of their timed runs: anything that would take all day is refused."""

from collections.abc import Mapping

import numpy as np

from model.vocabulary import Event, JoinConfig, Workload
from model.vocabulary.durations import write_duration
from model.vocabulary.join import R
from model.vocabulary.join_predicates import check_values
from model.vocabulary.settings import JsonObject, pick, read_settings
from sim.clusters import ClusterSettings
from sim.join import SETTINGS
from sim.join.scenarios import HIGHEST_VALUE, SECOND_US
from sim.kernel.faults import Lasting
from straggler.errors import UsageError

WORKERS_MAX = 32
"""Most workers of a chain: all of them run at the same time, each as a task."""
TIME_US_MAX = 1 << 62
"""Twice the largest event time, so that its sum with the window stays within 64 bits."""
TUPLES_MAX = 200_000
"""Most tuples of a timed run."""
PAIRS_MAX = 30_000_000
"""Most pairs that the reference looks at."""
RESULTS_MAX = 1_000_000
"""Most results of a timed run: comparing and judging one takes 100 us."""
QUERIES_MAX = 1_000
"""Most queries of a timed run."""
TICKS_MAX = 1_000_000
"""Most repetitions of one periodic action in a timed run."""
PERIODS = ("control_us", "hint_us", "trigger_interval_us")
"""Settings that are the period of such an action."""


def refuse_workload(config: JoinConfig, workload: Workload) -> None:
    """Refuse a stored workload that is too large or not defined.

    Raise :class:`UsageError` with one sentence that names the offending value.
    """
    if not workload.flush:
        raise UsageError("flush is False; a workload of room 'join' has to end with a flush")
    refuse_chain("workers", config.workers, "window_us", config.window_us)
    for decision in config.decisions:
        name = f"workers from epoch {decision.epoch} on"
        refuse_chain(name, decision.workers, "window_us", config.window_us)
    for event in workload.arrivals:
        if abs(event.event_time_us) > TIME_US_MAX // 2:
            raise UsageError(
                f"event_time_us of arrival {event.seq} is {event.event_time_us};"
                f" it must be within +-{TIME_US_MAX // 2}"
            )
        _refuse_values(event, config)
    refuse_pairs(workload.arrivals, config, "window_us")


def _refuse_values(event: Event, config: JoinConfig) -> None:
    try:
        check_values(config.columns(event.stream), f"arrival {event.seq}", event.more)
    except ValueError as error:
        raise UsageError(str(error)) from error


def refuse_chain(workers_name: str, workers: int, window: str, window_us: int) -> None:
    """Refuse a chain or a window that is too long, in the user's names for these settings."""
    if workers > WORKERS_MAX:
        raise UsageError(f"{workers_name} is {workers}; at most {WORKERS_MAX} are allowed")
    if window_us > TIME_US_MAX // 2:
        longest = write_duration(TIME_US_MAX // 2)
        raise UsageError(f"{window} is {write_duration(window_us)}; at most {longest} is allowed")


def refuse_settings(settings: Mapping[str, str]) -> None:
    """Refuse settings of a timed run that would not end.

    Raise :class:`UsageError` with one sentence that names the offending value, and ``ValueError``
    for a value that is not allowed at all.
    """
    values = read_settings(settings, SETTINGS)
    r_hz, s_hz, seconds, workers, window_us = (
        values[key] for key in ("rate_r_hz", "rate_s_hz", "seconds", "workers", "window_us")
    )
    refuse_chain("workers", workers, "window_us", window_us)
    tuples = (r_hz + s_hz) * seconds
    if tuples > TUPLES_MAX:
        raise UsageError(
            f"seconds is {settings.get('seconds', seconds)}: {tuples:,.0f} tuples are too many;"
            f" at most {TUPLES_MAX:,} are simulated"
        )
    _refuse_ticks(values, tuples, seconds)
    _refuse_results(values, r_hz * s_hz * seconds * min(2 * window_us / SECOND_US, seconds))


def _refuse_ticks(values: JsonObject, tuples: float, seconds: float) -> None:
    seconds += _delays_us(values, tuples) / SECOND_US
    for key in PERIODS:
        every_us = values[key]
        if every_us is not None and every_us > 0 and seconds * SECOND_US / every_us > TICKS_MAX:
            raise UsageError(
                f"{key} is {every_us}: too often in {seconds:g} s;"
                f" at most {TICKS_MAX:,} times are simulated"
            )


def _delays_us(values: JsonObject, tuples: float) -> float:
    """Return the time by which a run may outlast its streams: epochs, faults and retries."""
    epoch_us, loss = values["trigger_interval_us"] or 0, values["loss"]
    retries = tuples * loss / (1 - loss) if 0 < loss < 1 else 0.0
    faults = pick(ClusterSettings, {"faults": values["faults"]}).schedule
    lasting_us = sum(fault.for_us for fault in faults if isinstance(fault, Lasting))
    return float(epoch_us + lasting_us + retries * values["retry_us"])


def _refuse_results(values: JsonObject, pairs: float) -> None:
    """Refuse too many results of steady streams; bursts give up to three times as many."""
    queries, predicate = values["queries"], values["predicate"]
    if queries > QUERIES_MAX:
        raise UsageError(f"queries is {queries}; at most {QUERIES_MAX:,} are allowed")
    eps = values["eps"] + np.arange(queries)
    within = np.minimum(2 * eps / HIGHEST_VALUE, 1.0)
    shares = {"band": within, "apart": 1 - within, "less": 0 * eps + 0.5, "equi": 0 * eps + 0.2}
    results = pairs * float(shares[predicate].sum())
    if results > RESULTS_MAX:
        raise UsageError(
            f"predicate is {predicate}: with these rates, window_us and queries it has"
            f" {results:,.0f} results or more; at most {RESULTS_MAX:,} are simulated"
        )


def refuse_pairs(arrivals: tuple[Event, ...], config: JoinConfig, window: str) -> None:
    """Refuse a join that makes the reference look at too many pairs."""
    r_us, s_us = (
        np.array([e.event_time_us for e in arrivals if (e.stream == R) == is_r], np.int64)
        for is_r in (True, False)
    )
    s_us.sort()
    first = np.searchsorted(s_us, r_us - config.window_us, "left")
    last = np.searchsorted(s_us, r_us + config.window_us, "right")
    pairs = int((last - first).sum())
    if pairs > PAIRS_MAX:
        raise UsageError(
            f"{pairs:,} pairs lie within {window} {write_duration(config.window_us)} of each"
            f" other; at most {PAIRS_MAX:,} are compared"
        )
