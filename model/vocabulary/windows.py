"""Half-open windows [j*slide, j*slide + size), aligned to the epoch, in integer microseconds."""

from math import gcd
from typing import NamedTuple


class WindowSpec(NamedTuple):
    """Sliding windows of one query.

    With ``slide_us > size_us`` some event times belong to no window.
    """

    size_us: int
    slide_us: int

    @property
    def pane_us(self) -> int:
        """Width of a pane: the largest interval that no window boundary ever cuts."""
        return gcd(self.size_us, self.slide_us)

    def first_index(self, event_time_us: int) -> int:
        """Index j of the earliest window that ends after ``event_time_us``."""
        return (event_time_us - self.size_us) // self.slide_us + 1

    def last_index(self, event_time_us: int) -> int:
        """Index j of the latest window that starts at or before ``event_time_us``."""
        return event_time_us // self.slide_us

    def indices(self, event_time_us: int) -> range:
        """Indices of the windows that contain ``event_time_us``, earliest first; may be empty."""
        return range(self.first_index(event_time_us), self.last_index(event_time_us) + 1)

    def start_us(self, index: int) -> int:
        """Start of window ``index`` (inclusive)."""
        return index * self.slide_us

    def end_us(self, index: int) -> int:
        """End of window ``index`` (exclusive)."""
        return index * self.slide_us + self.size_us

    def last_end_us(self, event_time_us: int) -> int:
        """End of the latest window that starts at or before ``event_time_us``."""
        return self.end_us(self.last_index(event_time_us))
