"""Named plans: fits to recordings, and textbook disorder. All are simulated, as their names say.

``SCENARIOS`` are fitted to published or recorded figures. ``umts`` follows the figures of a
recording of phones that send a message every 500 ms over UMTS: W. Weiss, V. J. Exposito Jimenez,
H. Zeiner, "A Dataset and a Comparison of Out-of-Order Event Compensation Algorithms", IoTBDS 2017.
Its disorder lies between devices: each device's own messages stay in order, but delays differ by
device, and now and then one message gets stuck and holds up those behind it.

``game-1`` and ``game-2`` have the published size and disorder of two recordings of football games,
on which the hybrid processing model was tried: 57.6 and 66.8% of all tuples arrive after a tuple
with a later event time, by 34 and 64 ms on average over all tuples and by 14.2 and 17.1 s at most.
Three things are not published and are chosen: 1,000 tuples a second, so that a run lasts the more
than 500 s that were shown; storms, because disorder is said to rise and fall; and how much of the
delay falls into storms, about half. ``game-1-steady`` and ``game-2-steady`` have the same disorder
without storms: each tuple is as likely to be stuck as any other.

``PROCESSES`` put statistical promises to the test. Each is one Poisson source of ten tuples a
second. Values are whole numbers, uniform from 1 to a million, and independent of one another. They
are also independent of the delays, except in ``value-delay``: there a larger value takes longer, as
a larger message does. Delays are long compared with the mean interval of 100 ms, so that most
tuples are out of order; bursts and regimes go on for as long as the source sends.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

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


GAME_HZ, GAME_SENSORS = 1_000, 40
STORM_US, STORM_EVERY_US, FIRST_STORM_US = 5 * SECOND_US, 50 * SECOND_US, 20 * SECOND_US
"""Length of a storm, time from one storm to the next, and start of the first one."""


class Game(NamedTuple):
    """The disorder of a football game."""

    tuples: int
    late_share: float
    """Share of the tuples with a little delay."""
    mean_us: float
    """Mean of the little delays."""
    stuck_share: float
    """Share of the tuples of a storm that are stuck, for any time up to the longest."""
    longest_us: int


def _game(name: str, game: Game, is_stormy: bool, seed: int) -> Plan:
    """Return sensors on players and ball: many tuples a little late, and some stuck.

    These are stuck in storms, or as many at any time. Names of sensors differ by ``seed``, because
    a hash of them decides which task has how many.
    """
    little, stuck = Mixture(game.late_share, Exponential(game.mean_us)), Uniform(0, game.longest_us)
    storms = Burst(FIRST_STORM_US, STORM_US, game.stuck_share, stuck, every_us=STORM_EVERY_US)
    rare = Mixture(game.stuck_share * STORM_US / STORM_EVERY_US, stuck)
    source = Source(
        events=game.tuples,
        interval=Constant(SECOND_US / GAME_HZ),
        delay=little if is_stormy else Sum((little, rare)),
        keys=tuple([f"sensor-{seed}-{number}" for number in range(GAME_SENSORS)]),
    )
    return Plan((source,), disturbances=(storms,) if is_stormy else (), name=f"{name}, simulated")


GAMES: Mapping[str, Game] = {
    "game-1": Game(544_223, 0.62, 30_500, 0.024, 14_200_000),
    "game-2": Game(559_211, 0.71, 47_500, 0.0375, 17_100_000),
}
SCENARIOS: Mapping[str, Callable[[int], Plan]] = {
    "umts": umts,
    **{name: partial(_game, name, game, True) for name, game in GAMES.items()},
    **{
        f"{name}-steady": partial(_game, f"{name}-steady", game, False)
        for name, game in GAMES.items()
    },
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
