"""Cases of drawn clusters: a plan with its seed, and a query on it."""

from typing import Generic, NamedTuple, TypeVar

from sim.kernel.plan import Plan

ConfigT = TypeVar("ConfigT")


class SeededPlan(NamedTuple):
    """A plan with its seed: everything but the query."""

    plan: Plan
    seed: int


class TimedCase(NamedTuple, Generic[ConfigT]):
    """A query, and the plan and seed of its timed run."""

    config: ConfigT
    timing: SeededPlan

    def __repr__(self) -> str:
        """Return one line, because the plan would fill a page."""
        return f"<cluster, seed {self.timing.seed}, for {self.config}>"
