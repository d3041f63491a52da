"""The decisions that a planted bug may replace, and the right ones.

Source: docs/script.md, sections 4 to 8.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import attrgetter

from model.script.slices import Choice, Cutting, Partial, Span, choose, mean
from model.vocabulary import Event
from model.vocabulary.script.config import MILLISECOND_US

COMMUTATIVE = frozenset({"+", "*", "max", "min", "avg", "sum"})
"""Operations whose operands may stand in any order."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The decisions about graphs, slices, computations, watermarks and placements."""

    commutative: frozenset[str] = COMMUTATIVE
    multiset: Callable[[Iterable[int]], tuple[int, ...]] = lambda parts: tuple(sorted(parts))
    """Return the parts of a union, in an order that does not depend on how it is written."""
    scope: Callable[[str], str] = lambda workflow: workflow
    """Return the scope in which a workflow's names are looked up."""
    choose: Callable[[Iterable[Span], Fraction], Choice] = choose
    origin_us: Callable[[int], int] = lambda _first_us: 0
    """Return the time from which slices are counted, given the first stamp of a stream."""
    stamp_us: Callable[[int], int] = lambda end_us: end_us - MILLISECOND_US
    """Return the stamp of a window's result, by the end of the window."""
    mean: Callable[[Sequence[Partial]], float] = mean
    is_atomic: bool = True
    """Whether all updates of a stamp are applied before an operation is computed."""
    is_per_sensor: bool = True
    """Whether a tuple is late by the progress of its own sensor alone."""
    enters_late: bool = True
    """Whether late arrivals enter the cluster of their sensor, too."""
    cluster_of: Callable[[str], str] = lambda sensor: sensor
    """Return the name of the cluster that a sensor's arrivals enter."""
    watermark_us: Callable[[int, int], int] = max
    """Return the next watermark, from the one before and the latest event time less the wait."""
    follows_silence: bool = True
    """Whether the watermark of an idle sensor follows the other sensors."""
    moment_us: Callable[[Event], int] = attrgetter("arrival_us")
    """Return the time of an arrival by the clock that measures silence."""
    hears_unasked: bool = True
    """Whether arrivals of sensors that nobody asks for move that clock, too."""
    keeps_floor: bool = True
    """Whether a watermark that silence has moved stays there when the sensor returns."""
    is_charged: bool = True
    """Whether a component adds its load to the worker that gets it."""


RULES = Rules()


def cutting_of(rules: Rules, spans: Iterable[Span], per_hour: Fraction) -> Cutting:
    """Return the cheaper cutting of a stream by these rules."""
    return rules.choose(spans, per_hour).cutting
