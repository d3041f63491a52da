"""Words of room ``watermark``: the query's configuration and the steps of its traces.

Source: dynamic adjustment of the watermark by the disorder of a micro-cluster, the last k
arrivals. ``docs/watermark.md`` is the specification; names here follow it. Steps that mean the
same as in room ``slack`` are the same words, those of ``model.vocabulary.answers``.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple

from model.vocabulary.answers import (
    AGGREGATES,
    Cleared,
    Correction,
    Final,
    Late,
    Rejected,
    Result,
    Revision,
)
from model.vocabulary.settings import (
    is_number,
    one_of,
    require,
    require_integers,
    require_known,
)
from model.vocabulary.windows import WindowSpec

READINGS = ("disorder", "literal", "scaled", "fixed")
CLOCKS = ("arrivals", "batches")
TOO_LARGE = 1 << 63
"""M*k*(k-1) stays below, so that a wait is found with 64-bit integers."""


@dataclass(frozen=True, slots=True)
class WatermarkConfig:
    """What the user asks of a windowed query whose watermark follows the disorder.

    Raises ``ValueError`` with one sentence that names the offending value.
    """

    size_us: int
    """Window length W."""
    slide_us: int
    """Window slide s; tumbling windows have s = W."""
    max_wait_us: int
    """M, the largest wait."""
    reading: str = "disorder"
    """How the wait follows from the disorder: docs/watermark.md, section 2."""
    k: int = 50
    """Arrivals of a micro-cluster."""
    aggregate: str = "sum"
    q: float = 0.5
    """Rank of ``quantile``, taken as the decimal number written; ``median`` always has 0.5."""
    keyed: bool = True
    """Results per (task, key, window); otherwise per (task, window), with the key ``""``."""
    tasks: int = 1
    """Number of tasks; a tuple belongs to task ``task_of(key, tasks)``."""
    corrections: bool = False
    """Correct answers from history; otherwise late pairs are a side output."""
    clocks: str = "arrivals"
    """Whether a ``Clock`` is recorded for all ``arrivals``, or for the last one of ``batches``."""
    feedback_us: int | None = None
    """L: an identity is remembered so long after its last window's end; ``None``: W."""
    max_future_us: int | None = None
    """A tuple whose event time lies further than this ahead of its arrival is rejected."""
    gamma_us: int = 5_000_000
    """Gamma: a correction starts when the pending tuples span more event time than this."""
    max_age_us: int | None = None
    """... or when the oldest of them lies further than this behind the watermark; ``None``: 4 W."""
    dedup: bool = True
    """Recognise redeliveries; turn off only for a source that delivers every identity once."""

    def __post_init__(self) -> None:
        self._check_sizes()
        self._check_choices()
        product = self.max_wait_us * self.k * (self.k - 1)
        if product >= TOO_LARGE:
            msg = (
                f"max_wait_us is {self.max_wait_us} with k {self.k}; "
                f"max_wait_us*k*(k-1) must be less than 2^63"
            )
            raise ValueError(msg)

    @property
    def windows(self) -> WindowSpec:
        """The windows of the query."""
        return WindowSpec(self.size_us, self.slide_us)

    @property
    def feedback(self) -> int:
        """L in microseconds, default applied."""
        return self.size_us if self.feedback_us is None else self.feedback_us

    @property
    def max_age(self) -> int:
        """Age trigger in microseconds, default applied."""
        return 4 * self.size_us if self.max_age_us is None else self.max_age_us

    def to_json(self) -> dict[str, Any]:
        """Plain data; ``WatermarkConfig.from_json`` reads it back."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "WatermarkConfig":
        """Build from plain data; an unknown name or a missing one is a ``ValueError``."""
        known = {item.name for item in fields(cls)}
        require_known(data, known, ("size_us", "slide_us", "max_wait_us"))
        return cls(**data)

    def _check_sizes(self) -> None:
        require_integers(
            self,
            ("size_us", "slide_us", "tasks", "k"),
            ("max_wait_us", "gamma_us"),
            ("feedback_us", "max_future_us", "max_age_us"),
        )

    def _check_choices(self) -> None:
        for name, known in (("reading", READINGS), ("aggregate", AGGREGATES), ("clocks", CLOCKS)):
            require(getattr(self, name) in known, name, getattr(self, name), one_of(known))
        for name in ("keyed", "dedup", "corrections"):
            value = getattr(self, name)
            require(isinstance(value, bool), name, value, "True or False")
        require(is_number(self.q), "q", self.q, "a number")
        require(0 < self.q < 1, "q", self.q, "between 0 and 1, both excluded")


class Clock(NamedTuple):
    """Clock of a task after an accepted arrival."""

    task: int
    seq: int
    """Of the arrival."""
    batch: int
    t_max_us: int
    """N, the largest event time accepted so far."""
    inv: int
    """Pairs of the micro-cluster that are out of order."""
    wait_us: int
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
)
