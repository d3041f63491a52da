"""The decisions that a planted bug may replace, and the right ones.

Source: docs/script.md, sections 4, 5 and 8.
"""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rules:
    """The decisions about computations, watermarks and placements."""

    is_atomic: bool = True
    """True if all updates of a stamp are applied before an operation is computed."""
    watermark_us: Callable[[int, int], int] = max
    """Return the next watermark, from the one before and the latest event time less the wait."""
    is_charged: bool = True
    """True if a component adds its load to the worker that gets it."""


RULES = Rules()
