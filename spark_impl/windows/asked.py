"""What a query asks of its windows, whatever says how long to wait."""

from dataclasses import dataclass

from model.vocabulary import WindowSpec


@dataclass(frozen=True, slots=True)
class Asked:
    """The settings that rooms share; each room translates its own configuration into them."""

    size_us: int
    slide_us: int
    aggregate: str
    q: float
    """Rank of ``quantile``."""
    keyed: bool
    tasks: int
    dedup: bool
    """Whether redeliveries are recognised."""
    feedback_us: int
    """How long after the end of a tuple's last window its identity is remembered."""
    max_future_us: int | None
    """How far an event time may lie ahead of its arrival."""
    positive: bool
    """Whether negative values are rejected."""
    corrects: bool
    """Whether late pairs are corrected for; otherwise they are a side output."""
    correlates: bool
    """Whether corrections record how values go with delay."""
    gamma_us: int
    """The span of event time of pending pairs beyond which they are corrected."""
    max_age_us: int
    """... or how far behind the watermark the oldest of them lies then."""

    @property
    def windows(self) -> WindowSpec:
        """The windows of the query."""
        return WindowSpec(self.size_us, self.slide_us)
