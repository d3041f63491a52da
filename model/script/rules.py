"""The decisions that a planted bug may take otherwise, and the right ones.

Source: docs/script.md, sections 4 to 8.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from model.script.slices import Choice, Cutting, Partial, Span, choose, mean
from model.vocabulary.script import MILLISECOND_US

COMMUTATIVE = frozenset({"+", "*", "max", "min", "avg", "sum"})
"""Operations whose operands may stand in any order."""


@dataclass(frozen=True, slots=True)
class Rules:
    """How graphs are made, cut, computed and placed."""

    commutative: frozenset[str] = COMMUTATIVE
    multiset: Callable[[Iterable[int]], tuple[int, ...]] = lambda parts: tuple(sorted(parts))
    """The parts of a union, in an order that does not depend on how it is written."""
    scope: Callable[[str], str] = lambda workflow: workflow
    """Within what a name is looked up."""
    choose: Callable[[Iterable[Span], Fraction], Choice] = choose
    origin_us: Callable[[int], int] = lambda _first_us: 0
    """Where slices are counted from, by the first stamp of a stream."""
    stamp_us: Callable[[int], int] = lambda end_us: end_us - MILLISECOND_US
    """Of the result of a window that ends there."""
    mean: Callable[[Sequence[Partial]], float] = mean
    is_atomic: bool = True
    """Whether all updates of a stamp are applied before an operation is computed."""
    is_per_sensor: bool = True
    """Whether a tuple is late by the progress of its own sensor alone."""
    enters_late: bool = True
    """Whether the cluster of a sensor has its late arrivals, too."""
    cluster_of: Callable[[str], str] = lambda sensor: sensor
    """Whose arrivals are the cluster of a sensor."""
    watermark_us: Callable[[int, int], int] = max
    """By a cluster: from the one before, and the latest event time less the wait."""
    is_charged: bool = True
    """Whether a worker that gets a component has its load from then on."""


RULES = Rules()


def cutting_of(rules: Rules, spans: Iterable[Span], per_hour: Fraction) -> Cutting:
    """How a stream is cut."""
    return rules.choose(spans, per_hour).cutting
