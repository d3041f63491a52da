"""Words of room ``watermark``: the query's configuration and the steps of its traces.

Source: dynamic adjustment of the watermark by the disorder of a micro-cluster, the last k
arrivals. ``docs/watermark.md`` is the specification and defines M, N and ``inv``. Rooms
``watermark`` and ``slack`` share the steps in ``model.vocabulary.windows``.
"""

from dataclasses import KW_ONLY, dataclass
from typing import Annotated, NamedTuple

from model.vocabulary.settings import Setting
from model.vocabulary.windows import (
    Cleared,
    Correction,
    Final,
    Late,
    Rejected,
    Result,
    Revision,
    WindowQuery,
)

READINGS = ("disorder", "literal", "scaled", "fixed")
CLOCKS = ("arrivals", "batches")
TOO_LARGE = 1 << 63
"""Bound that M*k*(k-1) must stay below, because waits are computed with 64-bit integers."""


@dataclass(frozen=True, slots=True)
class WatermarkConfig(WindowQuery):
    """Settings of a windowed query whose watermark follows the disorder.

    Raise ``ValueError`` with one sentence that names the offending value.

    Examples:
        >>> WatermarkConfig.of(size="1 min", slide="1 min", max_wait="5 s").max_wait_us
        5000000
    """

    max_wait_us: Annotated[int, Setting("M, the longest wait", at_least=0)]
    _: KW_ONLY
    reading: Annotated[
        str, Setting("rule by which the wait follows the disorder", choices=READINGS)
    ] = "disorder"
    k: Annotated[int, Setting("arrivals of a micro-cluster", above=0)] = 50
    corrections: Annotated[
        bool, Setting("correct for late pairs; otherwise they are a side output")
    ] = False
    clocks: Annotated[
        str,
        Setting(
            "arrivals whose Clock is recorded: all, or the last one of each micro-batch",
            choices=CLOCKS,
        ),
    ] = "arrivals"
    upstreams: Annotated[
        int,
        Setting(
            "operators before the windows that insert watermarks; 0: none",
            at_least=0,
            at_most=10_000,
        ),
    ] = 0
    insert_every_us: Annotated[
        int,
        Setting("period of the insertions; 0: after every arrival", at_least=0),
    ] = 0
    idle_after_us: Annotated[
        int | None,
        Setting(
            "silence, by arrival times, after which an operator holds nothing back (never)",
            above=0,
            none="never",
        ),
    ] = None

    def _check_together(self) -> None:
        product = self.max_wait_us * self.k * (self.k - 1)
        if product >= TOO_LARGE:
            msg = (
                f"max_wait_us is {self.max_wait_us} with k {self.k}; "
                f"max_wait_us*k*(k-1) must be less than 2^63"
            )
            raise ValueError(msg)
        if self.insert_every_us and not self.upstreams:
            msg = f"insert_every_us is {self.insert_every_us}; with upstreams 0 it must be 0"
            raise ValueError(msg)
        if self.idle_after_us is not None and not self.upstreams:
            msg = f"idle_after_us is {self.idle_after_us}; with upstreams 0 it must be None"
            raise ValueError(msg)
        if self.upstreams and self.corrections:
            msg = f"corrections is True; with upstreams {self.upstreams} it must be False"
            raise ValueError(msg)
        if self.upstreams and self.clocks != "arrivals":
            msg = (
                f"clocks is {self.clocks!r}; with upstreams {self.upstreams} it must be 'arrivals'"
            )
            raise ValueError(msg)


class Clock(NamedTuple):
    """Clock of a task after an accepted arrival."""

    task: int
    seq: int
    """Position of the arrival."""
    batch: int
    t_max_us: int
    """N, the largest event time accepted so far."""
    inv: int
    """Number of out-of-order pairs in the micro-cluster."""
    wait_us: int
    wm_us: int


class Passing(NamedTuple):
    """Clock of an upstream operator after an arrival has passed it."""

    upstream: int
    seq: int
    """Position of the arrival."""
    batch: int
    t_max_us: int
    """N, the largest event time that has passed so far."""
    inv: int
    """Number of out-of-order pairs in the micro-cluster."""
    wait_us: int
    wm_us: int


class Inserted(NamedTuple):
    """Watermark that all tasks receive: the least of the upstream operators that are not idle."""

    seq: int
    """Position of the arrival at which the watermark was inserted."""
    batch: int
    t_max_us: int
    """Largest event time upstream at the insertion."""
    wm_us: int


WORDS: tuple[type, ...] = (
    Clock,
    Result,
    Late,
    Rejected,
    Correction,
    Cleared,
    Revision,
    Final,
    Passing,
    Inserted,
)
