"""What would take all day, or all memory, is refused before it is begun.

Rules of this file:

* How long the reference takes is estimated from above: by the tuples there are, how far they lie
  apart, and how many windows each of them is in.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from model.script.graph import CONSTANT, SENSOR, Graph, compile_graph
from model.script.slices import Cutting, choose
from model.vocabulary import Event, ScriptConfig, Workload
from model.vocabulary.script import MILLISECOND_US, TIME_END_US
from properties.errors import UsageError

RESULTS_MAX = 5_000_000
"""Of all computations together."""
FOLDS_MAX = 200_000_000
"""Slices that windows are made of, and operands that operations look at."""
NAIVE_MAX = 20_000_000
"""Values that are looked at where everything is computed from all tuples."""
WORKERS_MAX = 128
"""Each is a task in every micro-batch."""
CLUSTER_MAX = 10_000
"""Each arrival is compared with so many others."""


class Work(NamedTuple):
    """About how much there is to do."""

    results: int
    folds: int
    naive: int


def refuse_workload(workload: Workload) -> None:
    """Refuse a stored workload that nobody could run.

    Raises :class:`UsageError` with one sentence that names the offending value.
    """
    try:
        config = ScriptConfig.from_json(workload.config)
    except (TypeError, ValueError) as error:
        raise UsageError(str(error)) from error
    refuse(config, workload.arrivals, workload.name)


def refuse(config: ScriptConfig, arrivals: Sequence[Event], name: str) -> None:
    """Refuse what cannot be, and what would take too long to be compared."""
    refuse_impossible(config, arrivals, name)
    work = estimate(config, arrivals)
    if work.results > RESULTS_MAX:
        told = f"{name} would have up to {work.results:,} results of all computations"
        raise UsageError(f"{told}; at most {RESULTS_MAX:,} are compared: take longer slides")
    if work.folds > FOLDS_MAX:
        told = f"the windows over {name} are made of up to {work.folds:,} slices"
        raise UsageError(f"{told}; at most {FOLDS_MAX:,} are folded: take longer slides")


def refuse_impossible(config: ScriptConfig, arrivals: Sequence[Event], name: str) -> None:
    """Refuse event times that no tuple may have, too many workers and too large clusters."""
    if config.workers > WORKERS_MAX:
        raise UsageError(f"--workers is {config.workers}; at most {WORKERS_MAX} are allowed")
    if config.cluster > CLUSTER_MAX:
        raise UsageError(f"--cluster is {config.cluster}; at most {CLUSTER_MAX:,} are allowed")
    bad = next((each for each in arrivals if not 0 <= each.event_time_us < TIME_END_US), None)
    if bad is not None:
        told = f"row {bad.seq + 1} of {name} has the event time {bad.event_time_us} us"
        raise UsageError(f"{told}; it must be at least 0 (1970) and below 2^61")


def judged(workload: Workload) -> int:
    """Of how many arrivals everything can be computed naively, in a second or two."""
    config = ScriptConfig.from_json(workload.config)
    most = len(workload.arrivals)
    while most > 1 and estimate(config, workload.arrivals[:most]).naive > NAIVE_MAX:
        most //= 2
    return most


def estimate(config: ScriptConfig, arrivals: Sequence[Event]) -> Work:
    """What there is to do for these arrivals, from above."""
    counts = Counter(event.key for event in arrivals)
    times_us = [event.event_time_us for event in arrivals]
    lasting_ms = (max(times_us) - min(times_us)) // MILLISECOND_US + 1 if times_us else 0
    graph = compile_graph(config)
    rates = graph.per_hour
    cut = {each: choose(spans, rates[each]).cutting for each, spans in graph.spans().items()}
    sizes: list[int] = []
    results = folds = 0
    # Every arrival is compared with those of its sensor, which are looked at more than once.
    naive = sum(2 * counts[each] ** 2 for each in config.asked_for)
    if config.watermark != "fixed":
        # So are all pairs of a cluster, for every arrival.
        clusters = {each: min(config.cluster, counts[each]) for each in config.asked_for}
        naive += sum(counts[each] * size**2 // 2 for each, size in clusters.items())
    for number, node in enumerate(graph.nodes):
        read = [sizes[each] for each in node.inputs]
        size = _size(graph, number, counts, read, lasting_ms)
        sizes.append(size)
        if node.is_computed:
            results += size
            naive += size * sum(read)
        if node.span is not None:
            slices = min(read[0], _slices(graph, number, cut[node.inputs[0]]))
            folds += read[0] + size * slices
    return Work(results, folds, naive)


def _size(
    graph: Graph, number: int, counts: Mapping[str, int], read: Sequence[int], lasting_ms: int
) -> int:
    """Tuples that a node has, at most."""
    node = graph.nodes[number]
    if node.kind == SENSOR:
        return counts[node.sensor]
    if node.span is None:
        return 0 if node.kind == CONSTANT else sum(read)
    length_ms, slide_ms = node.span
    of_each = -(-length_ms // slide_ms)
    return min(read[0] * of_each, (lasting_ms + length_ms) // slide_ms + 1)


def _slices(graph: Graph, number: int, cutting: Cutting) -> int:
    """Pieces that a window is made of, at most."""
    span = graph.nodes[number].span
    assert span is not None
    return sum(span.length_ms // comb.every_ms + 1 for comb in cutting)
