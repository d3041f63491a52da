"""Disorder: disturbances of delays, as data.

A source has an ordinary delay (a distribution). The *disturbances* of a plan change it for some
time, for one source or for all. Times are event times in microseconds since the start of the run:
a burst delays the tuples that are created in it; one after the last tuple does nothing.
"""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from model.vocabulary.settings import require
from sim.kernel.distributions import Distribution, FloatArray, draw_us
from sim.kernel.seeds import Seeds

IntArray: TypeAlias = NDArray[np.int64]


class Burst(NamedTuple):
    """A period in which a ``share`` of the tuples takes ``extra`` longer."""

    start_us: int
    length_us: int
    share: float
    extra: Distribution
    source: int | None = None
    """Number of the source; ``None``: every source."""
    every_us: int | None = None
    """Time from the start of one burst to the start of the next; ``None``: there is one burst."""
    kind: Literal["burst"] = "burst"


class Regime(NamedTuple):
    """A new ordinary delay, from ``start_us`` on."""

    start_us: int
    delay: Distribution
    source: int | None = None
    kind: Literal["regime"] = "regime"


class Gap(NamedTuple):
    """A period in which no tuples are created."""

    start_us: int
    length_us: int
    source: int | None = None
    kind: Literal["gap"] = "gap"


Disturbance: TypeAlias = Burst | Regime | Gap


def check_disturbance(disturbance: Disturbance, sources: int) -> None:
    """Raise ``ValueError`` with one sentence that names an impossible value."""
    for name, value in disturbance._asdict().items():
        label = f"{disturbance.kind}.{name}"
        if name == "start_us":
            require(value >= 0, label, value, "at least 0")
        elif name == "length_us" or (name == "every_us" and value is not None):
            require(value > 0, label, value, "above 0")
        elif name == "share":
            require(0 <= value <= 1, label, value, "between 0 and 1")
        elif name == "source" and value is not None:
            require(0 <= value < sources, label, value, f"a source, 0..{sources - 1}")


def present(
    source: int, times_us: IntArray, disturbances: Iterable[Disturbance]
) -> NDArray[np.bool_]:
    """Return a mask of the tuples of a source that are created, outside its gaps."""
    kept = np.ones(len(times_us), dtype=np.bool_)
    for disturbance in disturbances:
        if isinstance(disturbance, Gap) and disturbance.source in (None, source):
            kept &= ~_within(times_us, disturbance.start_us, disturbance.length_us)
    return kept


def disturb(
    source: int,
    delays: FloatArray,
    times_us: IntArray,
    disturbances: Sequence[Disturbance],
    seeds: Seeds,
) -> FloatArray:
    """Return the delay (us) of each tuple of a source, given its ordinary delay and event time.

    Regimes replace the ordinary delay, bursts add to it. Each disturbance draws from its own
    stream, for every tuple: a change of one changes no draw of another.
    """
    bursts: list[FloatArray] = []
    for number, disturbance in enumerate(disturbances):
        if disturbance.source not in (None, source):
            continue
        name = f"source-{source}/disturbance-{number}"
        match disturbance:
            case Regime(start_us, changed):
                new = draw_us(changed, seeds, name, len(times_us))
                delays = np.where(times_us >= start_us, new, delays)
            case Burst(start_us, length_us, share, extra):
                hit = _within(times_us, start_us, length_us, disturbance.every_us)
                if share < 1:
                    hit &= seeds.stream(f"{name}/share").random(len(times_us)) < share
                bursts.append(np.where(hit, draw_us(extra, seeds, name, len(times_us)), 0.0))
            case Gap():
                pass
    return sum(bursts, delays)


def _within(
    times_us: IntArray, start_us: int, length_us: int, every_us: int | None = None
) -> NDArray[np.bool_]:
    since_us = times_us - start_us
    since_last_us = since_us if every_us is None else since_us % every_us
    return (since_us >= 0) & (since_last_us < length_us)
