"""The decisions that a planted bug may replace, and the right ones.

Source: docs/script.md, sections 4, 5 and 8.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from model.vocabulary.script.config import MILLISECOND_US
from model.vocabulary.script.tree import Expression


@dataclass(frozen=True, slots=True)
class Rules:
    """The decisions about computations, watermarks and placements."""

    parts: Callable[[Sequence[Expression]], Sequence[Expression]] = tuple
    """Return the parts of a union whose tuples it has."""
    stamp_us: Callable[[int], int] = lambda end_us: end_us - MILLISECOND_US
    """Return the stamp of a window's result, by the end of the window."""
    is_atomic: bool = True
    """Whether all updates of a stamp are applied before an operation is computed."""
    watermark_us: Callable[[int, int], int] = max
    """Return the next watermark, from the one before and the latest event time less the wait."""
    follows_silence: bool = True
    """Whether the watermark of an idle sensor follows the other sensors."""
    is_charged: bool = True
    """Whether a component adds its load to the worker that gets it."""


RULES = Rules()
