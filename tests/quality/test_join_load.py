"""The source's rule for scaling in, read literally, and what it does."""

from model.join.load import Limits, workers_for

LIMITS = Limits(0.25, 0.75, 0.75)


def literally(workers: int, utilisation: float) -> int:
    """Scale in when the utilisation is *above* tau0 (for long enough)."""
    return workers_for(workers, utilisation, LIMITS) if utilisation > LIMITS.tau0 else workers


def test_an_idle_chain_never_shrinks() -> None:
    idle = LIMITS.tau0 / 2
    assert literally(8, idle) == 8
    assert workers_for(8, idle, LIMITS) < 8


def test_a_chain_between_its_limits_shrinks_without_need() -> None:
    busy = (LIMITS.tau0 + LIMITS.aim) / 2
    assert LIMITS.tau0 < busy < LIMITS.aim
    assert literally(8, busy) < 8
