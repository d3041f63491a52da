"""Experiments that show what settings of room ``grouping`` do, as figures by name.

Rules of this file:

* All policies of a comparison meet the same arrivals and the same work.
* Throughput is that of a backlog, as a share of the throughput of an ideal fluid. Times are
  measured between windows, unless an experiment says otherwise.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

from model.grouping.machine import Machine
from model.grouping.rules import RULES
from model.grouping.variants import VARIANTS
from sim.grouping.measurables import PolicyFigures, side_by_side
from sim.grouping.room import backlog_of, simulate
from sim.grouping.settings import TIMES, prepare
from sim.kernel.recorder import Summary

SEED = 1
BASE: Mapping[str, str] = {"tuples": "15000", "window_tuples": "2500", "batch_tuples": "500"}
NEAR: Mapping[str, str] = {"tiers": "node"}


def _summaries(
    settings: Mapping[str, str], policies: Iterable[str], seed: int = SEED, *, backlog: bool = True
) -> dict[str, Summary]:
    """Return the summary of each policy on the same arrivals."""
    asked = prepare(settings)
    plan = backlog_of(asked.plan, seed) if backlog else asked.plan
    return {each: simulate(plan, asked.with_policy(each), seed).summary for each in policies}


def _share(summary: Summary) -> float:
    """Return the throughput as a share of the ideal fluid's."""
    return float(summary["served_hz"]) / float(summary["ideal_hz"])


# ----------------------------------------------------------------------------------- all policies

SITUATIONS: Mapping[str, Mapping[str, str]] = {
    "alike": {**BASE, **NEAR, "speeds": "1", "zipf": "1", "load": "backlog"},
    "alike, skewed": {**BASE, **NEAR, "speeds": "1", "zipf": "2", "load": "backlog"},
    "unequal": {**BASE, "tuples": "25000", "load": "0.7"},
}
"""Twice equal instances on near tiers; then the defaults: every second instance five times slower,
all tiers, and Zipf's exponent 1."""


def policies() -> dict[str, tuple[PolicyFigures, ...]]:
    """Return the figures of all policies in every situation."""
    return {name: side_by_side(settings, SEED) for name, settings in SITUATIONS.items()}


TAGS = ("tag-literal", "tag")
WINDOWS = (250, 500, 1_000, 2_000)
SPELL = 2_000
"""Number of tuples for which each of six instances in turn is a straggler."""


def rho_over_windows() -> Iterator[tuple[str, float]]:
    """Yield mean rho with changing stragglers, by window length: times are one window old."""
    for window in WINDOWS:
        settings = {
            **NEAR,
            "scenario": "stragglers",
            "instances": "6",
            "tuples": str(6 * SPELL),
            "window_tuples": str(window),
            "batch_tuples": "250",
            "speeds": "1,0.2",
            "service": "constant",
        }
        for policy, summary in _summaries(settings, TAGS, backlog=False).items():
            yield f"rho, window {window}: {policy}", float(summary["mean_rho"])


SENDERS = (1, 4, 16, 64)


def rho_over_senders() -> Iterator[tuple[str, float]]:
    """Yield mean rho and throughput of ``tag``, by the number of senders. Times are given."""
    for senders in SENDERS:
        settings = {**BASE, **NEAR, "speeds": "1,0.2", "times": "given", "senders": str(senders)}
        summary = _summaries(settings, ["tag"])["tag"]
        yield f"senders {senders}: rho", float(summary["mean_rho"])
        yield f"senders {senders}: share", _share(summary)


def swap() -> Iterator[tuple[str, float]]:
    """Yield mean latency of ``tag`` in the second half of a run, at whose start speeds swap."""
    for times in TIMES:
        settings = {**BASE, **NEAR, "scenario": "swap", "window_tuples": "1000", "times": times}
        summary = _summaries(settings, ["tag"], backlog=False)["tag"]
        yield f"swap, times {times}: latency_us", float(summary["settled_latency_us"])


def propagation() -> Iterator[tuple[str, float]]:
    """Yield the throughput of ``tag`` if its times include or omit the way to the instance.

    Twelve equal instances are spread over all tiers; work is short compared with the longest ways.
    """
    asked = prepare({**BASE, "speeds": "1", "service_us": "80", "queue_limit": "50"})
    plan = backlog_of(asked.plan, SEED)
    with_it = VARIANTS["with_propagation"].rules
    for name, rules in (("left out", RULES), ("included", with_it)):
        machine = partial(Machine, rules=rules)
        summary = simulate(plan, asked.with_policy("tag"), SEED, machine=machine).summary
        yield f"propagation {name}: share", _share(summary)
        yield f"propagation {name}: rho", float(summary["mean_rho"])


def sides(found: Mapping[str, Sequence[PolicyFigures]]) -> Iterator[tuple[str, float | str]]:
    """Yield the figures of :func:`policies`, by name."""
    for situation, row in found.items():
        for side in row:
            figures = side._asdict()
            policy = figures.pop("policy")
            for name, figure in figures.items():
                yield f"{situation}, {policy}: {name}", "-" if figure is None else figure
