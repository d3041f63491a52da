"""Tables of docs/grouping-guide.md: ``python -m straggler.rooms.grouping.guide [TABLE ...]``.

* All policies of a comparison meet the same arrivals and the same work.
* Throughput is that of a backlog, as a share of the throughput of an ideal fluid. Times are
  measured between windows, unless a table says otherwise.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import partial

from model.grouping.machine import Machine
from model.grouping.rules import RULES
from model.grouping.variants import VARIANTS
from model.vocabulary.grouping import POLICIES
from sim.grouping.measurables import side_by_side
from sim.grouping.room import backlog_of, simulate
from sim.grouping.settings import TIMES, prepare
from sim.kernel.recorder import Summary
from straggler.pages import tables
from straggler.pages.tables import Row, Table

SEED = 1
BASE: Mapping[str, str] = {"tuples": "15000", "window_tuples": "2500", "batch_tuples": "500"}
NEAR: Mapping[str, str] = {"tiers": "node"}
SITUATIONS: Mapping[str, Mapping[str, str]] = {
    "alike": {**BASE, **NEAR, "speeds": "1", "zipf": "1", "load": "backlog"},
    "alike, z = 2": {**BASE, **NEAR, "speeds": "1", "zipf": "2", "load": "backlog"},
    "unequal": {**BASE, "tuples": "25000", "load": "0.7"},
}
"""Twice equal instances on near tiers; then the defaults: every second instance five times slower,
all tiers, and Zipf's exponent 1."""
TAGS = ("tag-literal", "tag")
WINDOWS = (250, 500, 1_000, 2_000)
SPELL = 2_000
"""Number of tuples for which each of six instances in turn is a straggler."""
SENDERS = (1, 4, 16, 64)


def _summaries(
    settings: Mapping[str, str], policies: Iterable[str], *, backlog: bool = True
) -> dict[str, Summary]:
    """Return the summary of each policy on the same arrivals."""
    asked = prepare(settings)
    plan = backlog_of(asked.plan, SEED) if backlog else asked.plan
    return {each: simulate(plan, asked.with_policy(each), SEED).summary for each in policies}


def _share(summary: Summary) -> float:
    """Return the throughput as a share of the ideal fluid's."""
    return float(summary["served_hz"]) / float(summary["ideal_hz"])


def policies() -> Iterator[Row]:
    """Yield the figures of every policy in the situations."""
    found = {name: side_by_side(settings, SEED) for name, settings in SITUATIONS.items()}
    for policy, *sides in zip(POLICIES, *found.values(), strict=True):
        unequal = sides[-1]
        latencies = [unequal.mean_latency_us, unequal.p99_latency_us]
        yield (
            f"`{policy}`",
            *(side.share_of_ideal for side in sides),
            *("-" if each is None else f"{each / 1e3:.1f}" for each in latencies),
            unequal.mean_rho,
            unequal.mean_imbalance,
            unequal.instances_a_key,
        )


def windows() -> Iterator[Row]:
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
        found = _summaries(settings, TAGS, backlog=False)
        yield (window, *(float(summary["mean_rho"]) for summary in found.values()))


def senders() -> Iterator[Row]:
    """Yield throughput and mean rho of ``tag``, by the number of senders. Times are given."""
    for number in SENDERS:
        settings = {**BASE, **NEAR, "speeds": "1,0.2", "times": "given", "senders": str(number)}
        summary = _summaries(settings, ["tag"])["tag"]
        yield (number, _share(summary), float(summary["mean_rho"]))


def swap() -> Iterator[Row]:
    """Yield mean latency of ``tag`` in the second half of a run, at whose start speeds swap."""
    for times in TIMES:
        settings = {**BASE, **NEAR, "scenario": "swap", "window_tuples": "1000", "times": times}
        summary = _summaries(settings, ["tag"], backlog=False)["tag"]
        yield (times, float(summary["settled_latency_us"]) / 1e3)


def propagation() -> Iterator[Row]:
    """Yield the throughput of ``tag`` if its times include or omit the way to the instance.

    Twelve equal instances are spread over all tiers; work is short compared with the longest ways.
    """
    asked = prepare({**BASE, "speeds": "1", "service_us": "80", "queue_limit": "50"})
    plan = backlog_of(asked.plan, SEED)
    with_it = VARIANTS["with_propagation"].rules
    for name, rules in (("left out", RULES), ("included", with_it)):
        machine = partial(Machine, rules=rules)
        summary = simulate(plan, asked.with_policy("tag"), SEED, machine=machine).summary
        yield (name, _share(summary), float(summary["mean_rho"]))


TABLES = {
    "policies": Table(
        {
            "policy": "",
            **dict.fromkeys(SITUATIONS, ".0%"),
            "latency, ms": "",
            "99%, ms": "",
            "rho": ".2f",
            "I": ".2f",
            "instances a key": ".2f",
        },
        policies,
    ),
    "windows": Table({"window, tuples": ",", **{f"`{each}`": ".2f" for each in TAGS}}, windows),
    "propagation": Table({"propagation": "", "throughput": ".0%", "rho": ".2f"}, propagation),
    "times": Table({"times": "", "mean latency, ms": ".1f"}, swap),
    "senders": Table({"senders": "", "throughput": ".0%", "rho": ".2f"}, senders),
}


if __name__ == "__main__":
    tables.run(TABLES, arguments=sys.argv[1:])
