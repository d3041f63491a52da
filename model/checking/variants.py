"""What a room's variants have in common: rules that break a promise, and a workload that shows it.

Literal readings of a paper and planted bugs are the same machine with other rules. A room says
which: ``model/ROOM/variants.py``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from model.vocabulary import System, Workload

PLANTED = "planted bug"
Rules = TypeVar("Rules")


@dataclass(frozen=True, slots=True)
class Variant(Generic[Rules]):
    """Rules that break a promise."""

    name: str
    promise: str
    """The claim that it breaks."""
    mistake: str
    source: str
    """The paper that says it so, or :data:`PLANTED`."""
    corrected: str
    """The rule that keeps the promise."""
    rules: Rules
    example: Workload
    """A smallest one on which the reference keeps the promise and the variant does not."""
    system: Callable[[Rules], System]
    """What runs a workload by given rules."""

    @property
    def is_literal(self) -> bool:
        """Whether a paper says it so."""
        return self.source != PLANTED

    def make_system(self) -> System:
        """The variant as a System."""
        return self.system(self.rules)
