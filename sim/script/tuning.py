"""What only room ``script`` asks of a plan."""

from dataclasses import dataclass
from math import inf

from model.vocabulary.settings import require
from sim.kernel.plain import plain
from sim.script.placements import PLAN, placing


@plain
@dataclass(frozen=True, slots=True)
class ScriptTuning:
    """What only this room asks. Raises ``ValueError`` with one sentence for a bad value."""

    placement: str = PLAN
    """Who computes what: a name in :data:`sim.script.placements.PLACEMENTS`."""
    result_us: float = 100.0
    """Work of a result at speed 1: to compute it, and to take one that another worker sends."""
    result_bytes: int = 100
    """Size of a result, or of a notice that there is none, on a link."""
    period_us: int | None = None
    """How long sensors should send, from the start of the run; ``None``: nobody knows, and what was
    sent is not compared with what rates predict."""

    def __post_init__(self) -> None:
        placing(self.placement)
        good = 0 <= self.result_us < inf
        require(good, "result_us", self.result_us, "finite and at least 0")
        require(self.result_bytes > 0, "result_bytes", self.result_bytes, "above 0")
        good = self.period_us is None or self.period_us > 0
        require(good, "period_us", self.period_us, "above 0, or None")
