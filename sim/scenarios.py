"""Named plans: fits to recordings, and textbook disorder. All are simulated, as their names say.

``SCENARIOS`` are fitted to published or recorded figures. ``umts`` follows the figures of a
recording of phones that send a message every 500 ms over UMTS: W. Weiss, V. J. Exposito Jimenez,
H. Zeiner, "A Dataset and a Comparison of Out-of-Order Event Compensation Algorithms", IoTBDS 2017.
Its disorder lies between devices: each device's own messages stay in order, but delays differ by
device, and now and then one message gets stuck and holds up those behind it.

``game-1`` and ``game-2`` have the published disorder of two recordings of football games, on which
the hybrid processing model was tried: 57.6 and 66.8% of all tuples arrive after a tuple with a
later event time, by 34 and 64 ms on average over all tuples and by 14.2 and 17.1 s at most. Nothing
else is known of those recordings, so nothing else is fitted: neither their rate nor the times of
great and little disorder.

``PROCESSES`` put statistical promises to the test. Each is one Poisson source of ten tuples a
second. Values are whole numbers, uniform from 1 to a million, and independent of one another. They
are also independent of the delays, except in ``value-delay``: there a larger value takes longer, as
a larger message does. Delays are long compared with the mean interval of 100 ms, so that most
tuples are out of order; bursts and regimes go on for as long as the source sends.
"""

from collections.abc import Callable, Mapping
from functools import partial

from model.vocabulary.settings import require
from sim.kernel.disorder import Burst, Disturbance, Regime
from sim.kernel.distributions import (
    Constant,
    Distribution,
    Exponential,
    Lognormal,
    Mixture,
    Pareto,
    Sum,
    Uniform,
)
from sim.kernel.plan import Plan
from sim.kernel.seeds import Seeds
from sim.kernel.source import Source

SECOND_US = 1_000_000
MINUTE_US = 60 * SECOND_US

# --------------------------------------------------------------------------------- recordings

UMTS_INTERVAL_US = 500_000

# Median delays of devices; the first device is far slower than the others, and steadier.
_MEDIANS_US = (240_000, 102_000, 89_000, 139_000, 78_000, 114_000, 98_000, 95_000, 119_000)
_SIGMA, _SIGMA_OF_SLOW = 0.33, 0.12
_STUCK_SHARE = 0.001
_STUCK = Uniform(300_000, 5_000_000)


def umts(seed: int, devices: int = 8, messages: int = 1_200) -> Plan:
    """Return phones over UMTS: ``devices`` (7 to 9) with ``messages`` each (ten minutes).

    Fitted to: delay median 107 ms, 99% below 306 ms, the longest about 4.7 s; 16 to 34% late
    overall, none late within a device. The phase of each device within the interval comes from
    ``seed``; the share of late tuples depends on it.

    Raise ``ValueError`` for another number of devices.
    """
    require(7 <= devices <= len(_MEDIANS_US), "devices", devices, "7, 8 or 9")
    rng = Seeds(seed).stream("scenario/umts")
    step_us = UMTS_INTERVAL_US / devices
    phases = (rng.permutation(devices) + rng.random(devices)) * step_us
    sources = tuple(
        Source(
            events=messages,
            interval=Constant(UMTS_INTERVAL_US),
            start_us=int(phases[device]),
            delay=Sum((Lognormal(median_us, sigma), Mixture(_STUCK_SHARE, _STUCK))),
            in_order=True,
            keys=(f"dev_{device}",),
        )
        for device, (median_us, sigma) in enumerate(_parameters(devices))
    )
    return Plan(sources, name=f"umts, simulated, {devices} devices, seed {seed}")


def _parameters(devices: int) -> list[tuple[float, float]]:
    slow, *others = _MEDIANS_US[:devices]
    return [(slow, _SIGMA_OF_SLOW), *((median_us, _SIGMA) for median_us in others)]


GAME_HZ, GAME_TUPLES, GAME_SENSORS = 200, 24_000, 40


def _game(
    name: str, late_share: float, mean_us: float, stuck_share: float, longest_us: int, _seed: int
) -> Plan:
    """Return sensors on players and ball: many tuples a little late, very few stuck for seconds."""
    little, stuck = Exponential(mean_us), Uniform(0, longest_us)
    source = Source(
        events=GAME_TUPLES,
        interval=Constant(SECOND_US / GAME_HZ),
        delay=Sum((Mixture(late_share, little), Mixture(stuck_share, stuck))),
        keys=tuple([f"sensor-{number}" for number in range(GAME_SENSORS)]),
    )
    return Plan((source,), name=f"{name}, simulated")


SCENARIOS: Mapping[str, Callable[[int], Plan]] = {
    "umts": umts,
    "game-1": partial(_game, "game-1", 0.765, 45_000, 0.001, 14_400_000),
    "game-2": partial(_game, "game-2", 0.85, 68_000, 0.002, 17_200_000),
}
"""Functions from a seed to a plan, by name."""

# ------------------------------------------------------------------------- textbook disorder

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


# Every two minutes, for ten seconds, half of the tuples take another five seconds on average.
_BURSTS = Burst(MINUTE_US, 10 * SECOND_US, 0.5, Exponential(5 * SECOND_US), every_us=2 * MINUTE_US)


def _regimes() -> tuple[Disturbance, ...]:
    """Return regimes of five minutes each whose mean delays are 3 s, 0.2 s, 3 s, ..."""
    delays = (Exponential(3 * SECOND_US), Exponential(SECOND_US / 5))
    return tuple(Regime((n + 1) * 5 * MINUTE_US, delays[n % 2]) for n in range(REGIMES))


_PLANS: Mapping[str, Plan] = {
    "exponential": _plan("exponential", Exponential(SECOND_US)),
    "mixture": _plan("mixture", Mixture(0.2, Exponential(3 * SECOND_US))),
    "pareto-2.5": _plan("pareto-2.5", Pareto(SECOND_US / 2, 2.5)),
    "pareto-1.2": _plan("pareto-1.2", Pareto(SECOND_US / 10, 1.2)),
    "burst-train": _plan("burst-train", Exponential(SECOND_US / 5), _BURSTS),
    "regimes": _plan("regimes", Exponential(SECOND_US / 5), *_regimes()),
    "value-delay": _plan(
        "value-delay",
        Exponential(SECOND_US / 2),
        # The largest value takes ten seconds more than the smallest.
        delay_by_value_us=10 * SECOND_US / HIGHEST_VALUE,
    ),
}


def _fixed_plan(name: str, _seed: int) -> Plan:
    return _PLANS[name]


PROCESSES: Mapping[str, Callable[[int], Plan]] = {
    name: partial(_fixed_plan, name) for name in _PLANS
}
"""Functions from a seed to a plan, by name; every seed gets the same plan."""


def calm_start(calm_us: int) -> Plan:
    """Return a plan that is in order for ``calm_us``, then like ``exponential``."""
    disorder = Regime(calm_us, Exponential(SECOND_US))
    return _plan(f"in order for {calm_us / MINUTE_US:g} min", Constant(0), disorder)


DEPENDENT = "value-delay"
"""The process whose delays follow values: it violates the assumption of exchangeability."""

INDEPENDENT = tuple(name for name in PROCESSES if name != DEPENDENT)
