"""Disorder processes of the textbook kinds: what a statistical promise is put to. All simulated.

Each is one Poisson source of ten tuples a second, whose values (whole numbers, uniform from 1 to a
million) are independent of one another. In every process but ``value-delay`` they are independent
of the delays, too; in that one a larger value takes longer, as a larger message does.

Delays are long beside the mean interval of 100 ms, so that most tuples are out of order, and what
changes (bursts, regimes) goes on changing for as long as the source sends.
"""

from collections.abc import Callable, Mapping
from functools import partial

from sim.kernel.disorder import Burst, Disturbance, Regime
from sim.kernel.distributions import Constant, Distribution, Exponential, Mixture, Pareto
from sim.kernel.plan import Plan
from sim.kernel.source import Source

SECOND_US = 1_000_000
MINUTE_US = 60 * SECOND_US
INTERVAL_US = SECOND_US / 10
TUPLES = 30_000
HIGHEST_VALUE = 1_000_000
REGIMES = 80


def _plan(
    name: str,
    delay: Distribution,
    *disturbances: Disturbance,
    delay_by_value_us: float = 0.0,
) -> Plan:
    source = Source(
        events=TUPLES,
        interval=Exponential(INTERVAL_US),
        delay=delay,
        delay_by_value_us=delay_by_value_us,
        high=HIGHEST_VALUE,
    )
    return Plan((source,), disturbances=disturbances, name=f"{name}, simulated")


def _bursts() -> tuple[Disturbance, ...]:
    """Every two minutes, for ten seconds, half of the tuples take another five on average."""
    burst = Burst(
        MINUTE_US, 10 * SECOND_US, 0.5, Exponential(5 * SECOND_US), every_us=2 * MINUTE_US
    )
    return (burst,)


def _regimes() -> tuple[Disturbance, ...]:
    """Every five minutes the mean delay changes: 3 s, 0.2 s, 3 s, ..."""
    delays = (Exponential(3 * SECOND_US), Exponential(SECOND_US / 5))
    return tuple(Regime((n + 1) * 5 * MINUTE_US, delays[n % 2]) for n in range(REGIMES))


_PLANS = (
    _plan("exponential", Exponential(SECOND_US)),
    _plan("mixture", Mixture(0.2, Exponential(3 * SECOND_US))),
    _plan("pareto-2.5", Pareto(SECOND_US / 2, 2.5)),
    _plan("pareto-1.2", Pareto(SECOND_US / 10, 1.2)),
    _plan("burst-train", Exponential(SECOND_US / 5), *_bursts()),
    _plan("regimes", Exponential(SECOND_US / 5), *_regimes()),
    _plan(
        "value-delay",
        Exponential(SECOND_US / 2),
        # The largest value takes ten seconds more than the smallest.
        delay_by_value_us=10 * SECOND_US / HIGHEST_VALUE,
    ),
)


def _named(plan: Plan, _seed: int) -> Plan:
    return plan


PROCESSES: Mapping[str, Callable[[int], Plan]] = {
    plan.name.removesuffix(", simulated"): partial(_named, plan) for plan in _PLANS
}
"""By name: a function from a seed to a plan, here the same one for every seed."""


def calm_start(calm_us: int) -> Plan:
    """In order for ``calm_us``, then like ``exponential``."""
    disorder = Regime(calm_us, Exponential(SECOND_US))
    return _plan(f"in order for {calm_us / MINUTE_US:g} min", Constant(0), disorder)


DEPENDENT = "value-delay"
"""The process in which delay follows value: the assumption of exchangeability is false in it."""

INDEPENDENT = tuple(name for name in PROCESSES if name != DEPENDENT)
