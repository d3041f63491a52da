"""Variants: rules that break a promise, and a workload that shows it.

Literal readings of a paper and planted bugs are the same machine with other rules. Each room lists
its variants in ``model/ROOM/variants.py``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from model.vocabulary import System, Workload

PLANTED = "planted bug"
AGREEMENT = "equal to the reference"
"""In place of a promise, if no claim notices the mistake and a comparison does."""
Rules = TypeVar("Rules")


@dataclass(frozen=True, slots=True)
class Variant(Generic[Rules]):
    """Rules that break a promise."""

    name: str
    promise: str
    """Name of the claim that the rules break."""
    mistake: str
    source: str
    """Paper that states the mistaken rule, or :data:`PLANTED`."""
    corrected: str
    """The rule that keeps the promise."""
    rules: Rules
    example: Workload
    """Smallest workload on which the reference keeps the promise and the variant does not."""
    system: Callable[[Rules], System]
    """Return a System that runs workloads by the given rules."""

    def make_system(self) -> System:
        """Return the variant as a System."""
        return self.system(self.rules)
