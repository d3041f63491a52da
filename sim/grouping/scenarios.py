"""Scenarios of room ``grouping``: skewed streams, and changes of the instances.

Keys are ``k0``, ``k1``, ...; the share of key number i, from 0, is proportional to
``(i + 1) ** -zipf``. Scenario ``words`` has real keys instead. Tuples come as a Poisson process and
reach the senders a little out of order.
"""

import platform
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import islice, pairwise
from pathlib import Path
from typing import NamedTuple

from sim.kernel.distributions import Exponential
from sim.kernel.faults import Slow
from sim.kernel.plan import Plan
from sim.kernel.source import Source
from sim.words import read_keys, read_words

SECOND_US = 1_000_000
DELAY = Exponential(2_000)
DRIFTS = 8
"""Number of parts of the run, each with other hot keys."""
TIMES_SLOWER = 5.0


class Size(NamedTuple):
    """Sizes that all scenarios share."""

    tuples: int
    keys: int
    zipf: float
    rate_hz: float
    speeds: tuple[float, ...]
    """Speed of each instance."""
    keys_file: str | None = None
    """File of keys (``words``)."""

    @property
    def duration_us(self) -> float:
        """Approximate time at which the last tuple comes."""
        return self.tuples / self.rate_hz * SECOND_US


def _source(size: Size, tuples: int, start_us: float = 0.0, shift: int = 0) -> Source:
    """Return a source whose keys have their ranks moved on by ``shift``."""
    return Source(
        events=tuples,
        interval=Exponential(SECOND_US / size.rate_hz),
        start_us=round(start_us),
        delay=DELAY,
        keys=tuple([f"k{(rank + shift) % size.keys}" for rank in range(size.keys)]),
        zipf=size.zipf,
    )


def steady(size: Size) -> Plan:
    """Return a stream in which nothing changes."""
    return Plan((_source(size, size.tuples),), name="steady, simulated")


def drift(size: Size) -> Plan:
    """Return a stream whose hot keys change from part to part."""
    part_us, shift = size.duration_us / DRIFTS, max(1, size.keys // DRIFTS)
    firsts = [n * size.tuples // DRIFTS for n in range(DRIFTS + 1)]
    sources = [
        _source(size, end - first, n * part_us, n * shift)
        for n, (first, end) in enumerate(pairwise(firsts))
    ]
    return Plan(tuple(sources), name="drift of keys, simulated")


def swap(size: Size) -> Plan:
    """Return a plan in which instances exchange speeds half way, the first with the last, etc."""
    at_us = round(size.duration_us / 2)
    pairs = zip(size.speeds, reversed(size.speeds), strict=True)
    faults = [
        Slow(f"worker-{i}", at_us, 1_000 * SECOND_US + 100 * at_us, before / after)
        for i, (before, after) in enumerate(pairs)
        if before != after
    ]
    return replace(steady(size), faults=tuple(faults), name="swap of speeds, simulated")


def stragglers(size: Size) -> Plan:
    """Return a plan in which each instance in turn is five times slower for a part of the run."""
    part_us = round(size.duration_us / len(size.speeds))
    faults = [
        Slow(f"worker-{i}", i * part_us, max(1, part_us), TIMES_SLOWER)
        for i in range(len(size.speeds))
    ]
    return replace(steady(size), faults=tuple(faults), name="stragglers in turn, simulated")


def words(size: Size) -> Plan:
    """Return a stream whose keys are the words of Python's standard library, in their order.

    The lines of a file may take their place; after the last one comes the first one again.
    """
    if size.keys_file is None:
        name = f"words of Python {platform.python_version()}"
        keys = tuple([word for word, _ in islice(read_words(), size.tuples)])
    else:
        name = f"keys of {Path(size.keys_file).name}"
        keys = tuple(read_keys(size.keys_file)[: size.tuples])
    source = replace(_source(size, size.tuples), keys=keys, in_turn=True)
    return Plan((source,), name=f"{name}, simulated times")


SCENARIOS: Mapping[str, Callable[[Size], Plan]] = {
    "steady": steady,
    "drift": drift,
    "swap": swap,
    "stragglers": stragglers,
    "words": words,
}
