"""Limits of chains and of their timed runs: larger ones would not fit into memory."""

from collections.abc import Mapping

import numpy as np

from model.vocabulary import Event, JoinConfig, Workload
from model.vocabulary.durations import write_duration
from model.vocabulary.join import R
from model.vocabulary.join_predicates import check_values
from model.vocabulary.settings import read_settings
from sim.join import SETTINGS
from straggler.errors import UsageError
from straggler.wiring import read_config

WORKERS_MAX = 32
"""Most workers of a chain: all of them run at the same time, each as a task."""
TIME_US_MAX = 1 << 62
"""Twice the largest event time, so that its sum with the window stays within 64 bits."""
TUPLES_MAX = 200_000
"""Most tuples of a timed run."""
PAIRS_MAX = 30_000_000
"""Most pairs that the reference looks at."""
QUERIES_MAX = 1_000
"""Most queries of a timed run."""


def refuse_workload(workload: Workload) -> None:
    """Refuse a stored workload that is too large or not defined.

    Raise :class:`UsageError` with one sentence that names the offending value.
    """
    config = read_config(JoinConfig.from_json, workload)
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
    r_hz, s_hz, seconds, queries = (
        values[key] for key in ("rate_r_hz", "rate_s_hz", "seconds", "queries")
    )
    refuse_chain("workers", values["workers"], "window_us", values["window_us"])
    tuples = (r_hz + s_hz) * seconds
    if tuples > TUPLES_MAX:
        raise UsageError(
            f"seconds is {settings.get('seconds', seconds)}: {tuples:,.0f} tuples are too many;"
            f" at most {TUPLES_MAX:,} are simulated"
        )
    if queries > QUERIES_MAX:
        raise UsageError(f"queries is {queries}; at most {QUERIES_MAX:,} are allowed")


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
