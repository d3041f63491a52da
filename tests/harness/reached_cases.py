"""How often the cases that matter occurred on Spark, in one test of a promise."""

from collections import Counter
from collections.abc import Mapping, Sequence


class Reached:
    """A counter of interesting cases."""

    def __init__(self) -> None:
        self.counts = Counter[str]()

    def add(self, counts: Mapping[str, int]) -> None:
        """Count cases by name."""
        self.counts.update({name: count for name, count in counts.items() if count})

    def missing(self, needed: Sequence[str]) -> list[str]:
        """Return the needed cases that never occurred."""
        return [name for name in needed if not self.counts[name]]
