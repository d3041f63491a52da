"""Watermarks that come from operators upstream of the windows (docs/watermark.md, section 11).

A room that has such operators gives :class:`model.windows.pipeline.WindowModel` an ``Upstream``.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from model.vocabulary import Event, Step


class Insertion(NamedTuple):
    """A watermark that every task receives, in the order of its tuples."""

    wm_us: int
    slack_us: int
    """Distance of the watermark from the largest event time upstream."""


class Passed(NamedTuple):
    """Result of an arrival that passes upstream."""

    steps: tuple[Step, ...] = ()
    insertion: Insertion | None = None
    """Watermark that the tasks receive before the arrival; None if nothing is inserted."""


Upstream: TypeAlias = Callable[[Event, int], Passed]
"""The operators before the windows: they take an arrival and its batch before the task does."""
