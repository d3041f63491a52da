"""What only room ``script`` asks of a plan."""

from dataclasses import dataclass
from typing import Annotated

from model.vocabulary.settings import Setting, Settings, require
from sim.kernel.plain import plain
from sim.script.placements import PLACEMENTS, PLAN


@plain
@dataclass(frozen=True, slots=True)
class ScriptTuning(Settings):
    """Settings of a plan that only this room has."""

    placement: Annotated[
        str, Setting("rule that places computations on workers", choices=PLACEMENTS)
    ] = PLAN
    result_us: Annotated[
        float,
        Setting("work of a result at speed 1: to compute it, or to take it in", at_least=0),
    ] = 100.0
    result_bytes: Annotated[
        int, Setting("size of a result, or of a notice that there is none, on a link", above=0)
    ] = 100
    period_us: int | None = None
    """How long sensors should send, from the start of the run; ``None``: unknown, and the number of
    sent tuples is not compared with their rates."""

    def _check_together(self) -> None:
        good = self.period_us is None or self.period_us > 0
        require(good, "period_us", self.period_us, "above 0, or None")
