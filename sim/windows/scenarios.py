"""Streams for windowed rooms: fitted scenarios, disorder processes, phases, words, and bursts."""

import platform
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from itertools import islice

from model.vocabulary.settings import look_up
from sim.kernel.disorder import Burst
from sim.kernel.distributions import Constant, Exponential, Pareto, Uniform
from sim.kernel.link import Place
from sim.kernel.plan import Plan
from sim.kernel.source import Source
from sim.scenarios import PROCESSES
from sim.scenarios import SCENARIOS as FITTED
from sim.words import read_words

SECOND_US = 1_000_000
MINUTE_US = 60 * SECOND_US


def bursts(_seed: int) -> Plan:
    """Return four sources at growing distance, with heavy-tailed delays and two late bursts.

    Each sends 3,000 tuples in about two minutes, with Poisson intervals, over a link of its tier.
    Ordinary delays are Pareto with shape 1.5, whose variance is infinite. In the first burst a
    fifth of all tuples takes another second on average; in the second burst one source is held up,
    for three seconds on average. The figures are invented.
    """
    places = (Place(), Place(process=1), Place(node=1), Place(rack=1))
    sources = tuple(
        Source(
            events=3_000,
            interval=Exponential(SECOND_US / 25),
            delay=Pareto(5_000, 1.5),
            keys=("a", "b", "c", "d", "e", "f", "g", "h"),
            zipf=1.0,
            place=place,
        )
        for place in places
    )
    disturbances = (
        Burst(30 * SECOND_US, 20 * SECOND_US, 0.2, Exponential(SECOND_US)),
        Burst(80 * SECOND_US, 10 * SECOND_US, 1.0, Exponential(3 * SECOND_US), source=3),
    )
    return Plan(sources, disturbances=disturbances, name="bursts, simulated")


def phases(
    _seed: int,
    disorder_us: int = 8 * SECOND_US,
    tuples: int = 12_000,
    rate_hz: int = 20,
    keys: int = 4,
    text: tuple[str, ...] = (),
) -> Plan:
    """Return a stream that is calm and in order, except for a storm in a third of every minute.

    In a storm half of the tuples take up to ``disorder_us`` longer, uniformly: that is how far a
    tuple may be displaced. The first minute begins with its calm. If there is a ``text``, its words
    are the keys, in their order.
    """
    third_us = MINUTE_US // 3
    delay = Uniform(0, disorder_us)
    storm = Burst(2 * third_us, third_us, 0.5, delay, every_us=MINUTE_US)
    names = text or tuple(f"key-{key}" for key in range(keys))
    interval = Constant(SECOND_US / rate_hz)
    source = Source(events=tuples, interval=interval, keys=names, in_turn=bool(text))
    name = f"phases, simulated, disorder {disorder_us / SECOND_US:g} s"
    return Plan((source,), disturbances=(storm,), name=name)


def words(seed: int) -> Plan:
    """Return :func:`phases` with the words of Python's standard library as keys, in their order.

    It is the stream of a count of words: after the last word comes the first one again.
    """
    text = tuple([word for word, _ in islice(read_words(), WORDS)])
    plan = phases(seed, tuples=WORDS, rate_hz=RATE_HZ, text=text)
    name = f"words of Python {platform.python_version()}, simulated times, disorder 8 s"
    return replace(plan, name=name)


DISORDERS_S = (3, 5, 8, 10, 12)
"""Disorders (s) of the published experiments with a dynamic watermark."""
TUPLES, RATE_HZ, KEYS = 30_000, 100, 640
"""Sizes of our stand-ins for their streams; with so many keys, each of 32 tasks has some."""
WORDS = 100_000
"""Number of words of a text."""


def _phases(disorder_s: int, seed: int, rate_hz: int = RATE_HZ) -> Plan:
    return phases(seed, disorder_s * SECOND_US, TUPLES, rate_hz, KEYS)


def _always(disorder_s: int, _seed: int) -> Plan:
    """Return a stream in which every tuple takes up to ``disorder_s`` longer, uniformly."""
    source = Source(
        events=TUPLES,
        interval=Constant(SECOND_US / RATE_HZ),
        delay=Uniform(0, disorder_s * SECOND_US),
        keys=tuple(f"key-{key}" for key in range(KEYS)),
    )
    return Plan((source,), name=f"always, simulated, disorder {disorder_s:g} s")


SCENARIOS: Mapping[str, Callable[[int], Plan]] = {
    **FITTED,
    "bursts": bursts,
    "phases": phases,
    **{f"phases-{each}s": partial(_phases, each) for each in DISORDERS_S},
    "phases-8s-1ms": partial(_phases, 8, rate_hz=1_000),
    **{f"always-{each}s": partial(_always, each) for each in DISORDERS_S},
    "words": words,
    **PROCESSES,
}
"""Functions from a seed to a plan."""


def scenario(name: str) -> Callable[[int], Plan]:
    """Return the scenario called ``name``; raise ``ValueError`` with a suggestion if unknown."""
    return look_up("scenario", name, SCENARIOS)
