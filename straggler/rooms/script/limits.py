"""Limits of scripts and of their timed runs, which refuse anything that would take all day.

Rules of this file:

* The work has an upper bound: results of every computation, and slices that Spark's windows fold.
  It follows from the number of tuples, the time they span, and the number of windows that hold each
  tuple.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from model.vocabulary import Event, ScriptConfig, Workload
from model.vocabulary.script.config import MILLISECOND_US, TIME_END_US
from model.vocabulary.script.graph import CONSTANT, SENSOR, Graph, compile_graph
from model.vocabulary.script.slices import Cutting, choose
from model.vocabulary.settings import read_settings
from sim.script import SETTINGS
from straggler.errors import UsageError
from straggler.wiring import refuse_larger

RESULTS_MAX = 5_000_000
"""Most results of all computations together."""
FOLDS_MAX = 200_000_000
"""Most slices that windows fold, and operands that operations read."""
WORKERS_MAX = 128
"""Most workers: each is a task in every micro-batch."""
CLUSTER_MAX = 10_000
"""Most arrivals of a cluster: each arrival is compared with all of them."""
TUPLES_MAX = 200_000
"""Most tuples of a timed run."""
LARGEST = {
    "sensors": 1_000,
    "workflows": 2_000,
    "windows": 100,
    "together": 100,
    "workers": WORKERS_MAX,
    "seconds": 100_000,
    "service_us": 10**9,
    "result_us": 10**9,
    "tuple_bytes": 10**9,
    "result_bytes": 10**9,
}
"""Largest values of settings of a timed run."""


class Work(NamedTuple):
    """An upper bound of the work that a workload takes."""

    results: int
    folds: int


def refuse_workload(config: ScriptConfig, workload: Workload) -> None:
    """Refuse a stored workload that nobody could run.

    Raise :class:`UsageError` with one sentence that names the offending value.
    """
    refuse(config, workload.arrivals, workload.name)


def refuse(config: ScriptConfig, arrivals: Sequence[Event], name: str) -> None:
    """Raise :class:`UsageError` for impossible settings, and for too much work."""
    refuse_impossible(config, arrivals, name)
    work = estimate(config, arrivals)
    if work.results > RESULTS_MAX:
        text = f"{name} would have up to {work.results:,} results of all computations"
        raise UsageError(f"{text}; at most {RESULTS_MAX:,} are compared: take longer slides")
    if work.folds > FOLDS_MAX:
        text = f"the windows over {name} are made of up to {work.folds:,} slices"
        raise UsageError(f"{text}; at most {FOLDS_MAX:,} are folded: take longer slides")


def refuse_impossible(config: ScriptConfig, arrivals: Sequence[Event], name: str) -> None:
    """Raise :class:`UsageError` for bad event times, too many workers or too large clusters."""
    if config.workers > WORKERS_MAX:
        raise UsageError(f"--workers is {config.workers}; at most {WORKERS_MAX} are allowed")
    if config.cluster > CLUSTER_MAX:
        raise UsageError(f"--cluster is {config.cluster}; at most {CLUSTER_MAX:,} are allowed")
    bad = next((each for each in arrivals if not 0 <= each.event_time_us < TIME_END_US), None)
    if bad is not None:
        text = f"row {bad.seq + 1} of {name} has the event time {bad.event_time_us} us"
        raise UsageError(f"{text}; it must be at least 0 (1970) and below 2^61")


def estimate(config: ScriptConfig, arrivals: Sequence[Event]) -> Work:
    """Return an upper bound of the work that these arrivals take."""
    counts = Counter(event.key for event in arrivals)
    times_us = [event.event_time_us for event in arrivals]
    lasting_ms = (max(times_us) - min(times_us)) // MILLISECOND_US + 1 if times_us else 0
    graph = compile_graph(config)
    rates = graph.per_hour
    cut = {each: choose(spans, rates[each]).cutting for each, spans in graph.spans().items()}
    sizes: list[int] = []
    results = folds = 0
    for number, node in enumerate(graph.nodes):
        read = [sizes[each] for each in node.inputs]
        size = _size(graph, number, counts, read, lasting_ms)
        sizes.append(size)
        if node.is_computed:
            results += size
        if node.span is not None:
            slices = min(read[0], _slices(graph, number, cut[node.inputs[0]]))
            folds += read[0] + size * slices
    return Work(results, folds)


def _size(
    graph: Graph, number: int, counts: Mapping[str, int], read: Sequence[int], lasting_ms: int
) -> int:
    """Return the largest number of tuples that a node may have."""
    node = graph.nodes[number]
    if node.kind == SENSOR:
        return counts[node.sensor]
    if node.span is None:
        return 0 if node.kind == CONSTANT else sum(read)
    length_ms, slide_ms, zone = node.span
    of_each = -(-length_ms // slide_ms)
    # Clocks that change make room for one more calendar window.
    most = (lasting_ms + length_ms) // slide_ms + 1 + bool(zone)
    return min(read[0] * of_each, most)


def _slices(graph: Graph, number: int, cutting: Cutting) -> int:
    """Return the largest number of slices in one window of a node."""
    span = graph.nodes[number].span
    assert span is not None
    return sum(span.length_ms // comb.every_ms + 1 for comb in cutting)


def refuse_settings(settings: Mapping[str, str]) -> None:
    """Refuse settings of a timed run that would not end.

    Raise :class:`UsageError` with one sentence that names the offending value, and ``ValueError``
    for a value that is not allowed at all.
    """
    refuse_larger(settings, LARGEST)
    values = read_settings(settings, SETTINGS)
    seconds, rates_hz = values["seconds"], values["rates_hz"]
    rate_hz = values["sensors"] * sum(rates_hz) / len(rates_hz)
    if rate_hz * seconds > TUPLES_MAX:
        raise UsageError(
            f"seconds is {seconds}: with {rate_hz:,.0f} tuples a second that is too"
            f" many; at most {TUPLES_MAX:,} tuples are simulated"
        )
