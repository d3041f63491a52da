"""What experiments with room ``grouping`` can run."""

from collections.abc import Mapping, Sequence

from sim.grouping.policies import side_by_side
from sim.grouping.room import simulate
from sim.grouping.settings import SETTINGS, from_settings, prepare
from sim.sweep.measurable import Figures, Measurable, Settings, moments


def timed(settings: Settings, seed: int) -> Figures:
    """The summary of one timed run."""
    return from_settings(settings, seed).summary


def timed_policies(settings: Settings, seed: int, policies: Sequence[str]) -> Sequence[Figures]:
    """The same of several policies, for which a backlog is simulated once."""
    asked = prepare(settings)
    plan = asked.plan_of(seed)
    return [simulate(plan, asked.with_policy(each), seed).summary for each in policies]


def side(settings: Settings, seed: int) -> Figures:
    """Throughput of a backlog, latency and balance of a stream; see :class:`Side`."""
    return sides(settings, seed, [settings.get("policy", SETTINGS["policy"].default)])[0]


def sides(settings: Settings, seed: int, policies: Sequence[str]) -> Sequence[Figures]:
    """The same of several policies, for which a backlog is simulated once."""
    asked = {**settings, "policies": ",".join(policies)}
    return [each._asdict() for each in side_by_side(asked, seed)]


MEASURABLES: Mapping[str, Measurable] = {
    "sim": Measurable(SETTINGS, timed, {"policy": timed_policies}),
    "sides": Measurable(SETTINGS, side, {"policy": sides}),
    "moments": moments(from_settings, SETTINGS),
}
"""By name."""
