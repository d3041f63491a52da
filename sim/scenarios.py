"""Named scenarios: plans fitted to published or recorded figures. Always simulated, and named so.

``umts`` follows the figures of a recording of phones that send a message every 500 ms over UMTS:
W. Weiss, V. J. Exposito Jimenez, H. Zeiner, "A Dataset and a Comparison of Out-of-Order Event
Compensation Algorithms", IoTBDS 2017. In it the disorder lies between devices: each device's own
messages stay in order, but their delays differ by device, and now and then one message gets stuck
and holds up those behind it.

``game-1`` and ``game-2`` have the disorder that is published of two recordings of football games,
on which the hybrid processing model was tried: 57.6 and 66.8% of all tuples behind an earlier one,
by 34 and 64 ms on the mean over all tuples and 14.2 and 17.1 s at most. Of those recordings nothing
else is known here, so that nothing else is fitted: not their rate, and not when their disorder was
great and when it was small.
"""

from collections.abc import Callable, Mapping
from functools import partial

from model.vocabulary.settings import require
from sim.kernel.distributions import Constant, Exponential, Lognormal, Mixture, Sum, Uniform
from sim.kernel.plan import Plan
from sim.kernel.seeds import Seeds
from sim.kernel.source import Source

SECOND_US = 1_000_000
UMTS_INTERVAL_US = 500_000

# Median delays of devices; one of them is far slower than the others, and steadier.
_MEDIANS_US = (240_000, 102_000, 89_000, 139_000, 78_000, 114_000, 98_000, 95_000, 119_000)
_SIGMA, _SIGMA_OF_SLOW = 0.33, 0.12
_STUCK_SHARE = 0.001
_STUCK = Uniform(300_000, 5_000_000)


def umts(seed: int, devices: int = 8, messages: int = 1_200) -> Plan:
    """Phones over UMTS: ``devices`` (7 to 9) with ``messages`` each, ten minutes by default.

    Fitted to: delay median 107 ms, 99% below 306 ms, the longest about 4.7 s; 16 to 34% late
    overall, none late within a device. The phase of each device within the interval comes from
    ``seed``; how much is late depends on it.

    Raises ``ValueError`` for another number of devices.
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
    """Sensors on players and ball: many tuples a little late, very few stuck for seconds."""
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
"""By name: a function from a seed to a plan."""
