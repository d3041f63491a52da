"""Settings of a run of room ``grouping``."""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from model.vocabulary import GroupingConfig
from model.vocabulary.grouping import POLICIES
from model.vocabulary.settings import require
from sim import clusters
from sim.grouping import instances
from sim.grouping.cluster import GroupingTuning
from sim.grouping.room import backlog_of, simulate
from sim.grouping.scenarios import SCENARIOS, Size
from sim.kernel.distributions import mean_us
from sim.kernel.plan import Plan
from sim.kernel.run import TimedRun
from sim.kernel.trigger import EveryTuples
from sim.settings import AUTO, BACKLOG, NONE, Setting, Word, chosen, integer, number, with_defaults

TIMES = ("measured", "given")

DEFAULTS: Mapping[str, Setting] = {
    "scenario": Word("steady", SCENARIOS),
    "tuples": 20_000,
    "keys": 1_000,
    "zipf": 1.0,
    "load": 0.7,  # of what the instances could do; backlog: everything is there at the start
    # The routers, by the names of GroupingConfig.
    "instances": 12,
    "policy": Word("tag", POLICIES),
    "senders": 1,
    "window_tuples": 5_000,
    "theta": AUTO,
    "eps": AUTO,
    "gamma": 0.2,
    "alpha": 0.5,
    "draw_tuples": AUTO,
    "hash_seed": 42,
    "times": Word("measured", TIMES),  # between windows; given: those that are true at the start
    "batch_tuples": 1_000,
    # What they route to: the instances, in turn.
    **clusters.DEFAULTS,
    "speeds": "1,0.2",
    "tiers": Word("process,node,rack,elsewhere", clusters.TIERS, is_list=True),
    "service_us": 200.0,
    "queue_limit": 100,
    # Policies that stand side by side.
    "policies": Word("all", ("all", NONE, *POLICIES), is_list=True),
}
"""Every setting with its default; ``auto`` is what docs/grouping.md says happens by itself."""


class Given(NamedTuple):
    """A run that has been set and not been made."""

    plan: Plan
    config: GroupingConfig
    is_backlog: bool
    """Whether everything is there when the run starts."""

    def plans(self, seed: int) -> Plan:
        """Return the plan of the run."""
        return backlog_of(self.plan, seed) if self.is_backlog else self.plan

    def of(self, policy: str) -> GroupingConfig:
        """Return the configuration of another policy."""
        return replace(self.config, policy=policy)


def from_settings(settings: Mapping[str, str], seed: int) -> TimedRun:
    """Run with :data:`DEFAULTS`, except for what ``settings`` say.

    Raises ``ValueError`` with one sentence that names the offending key or value.
    """
    asked = given(settings)
    return simulate(asked.plans(seed), asked.config, seed)


def given(settings: Mapping[str, str]) -> Given:
    """Return what :func:`from_settings` runs."""
    texts = with_defaults(settings, DEFAULTS)
    n = integer("instances", texts["instances"])
    require(n > 0, "instances", n, "greater than 0")
    # How fast a stream is follows from what serves it.
    hardware = Plan((), cluster=clusters.cluster_of(texts))
    instances.check(hardware)
    is_measured = texts["times"] == "measured"
    plan = chosen("scenario", texts["scenario"], SCENARIOS)(_size(texts, hardware, n))
    plan = replace(
        plan,
        cluster=hardware.cluster,
        tuning=GroupingTuning(measured=is_measured),
        faults=(*plan.faults, *clusters.faults_of(texts)),
        trigger=EveryTuples(integer("batch_tuples", texts["batch_tuples"])),
    )
    guess_us = (max(1, round(mean_us(plan.cluster.service))),) * n
    times_us = guess_us if is_measured else instances.times_us(hardware, n)
    return Given(plan, _config(texts, hardware, n, times_us), texts["load"] == BACKLOG)


def _real(texts: Mapping[str, str], key: str, *, above_0: bool = True) -> float:
    value = float(number(key, texts[key], float))
    require(value > 0 or not above_0, key, texts[key], "above 0")
    return value


def _size(texts: Mapping[str, str], hardware: Plan, n: int) -> Size:
    tuples, keys = (integer(key, texts[key]) for key in ("tuples", "keys"))
    for key, value in (("tuples", tuples), ("keys", keys)):
        require(value > 0, key, value, "above 0")
    load = 1.0
    if texts["load"] != BACKLOG:
        load = float(number("load", texts["load"], float, other=BACKLOG))
        require(0.001 <= load <= 1_000, "load", texts["load"], "from 0.001 to 1000")
    zipf = _real(texts, "zipf", above_0=False)
    require(zipf >= 0, "zipf", texts["zipf"], "at least 0")
    speeds = tuple([hardware.cluster.worker(i).speed for i in range(n)])
    return Size(tuples, keys, zipf, load * instances.ideal_hz(hardware, n), speeds)


def _config(
    texts: Mapping[str, str], hardware: Plan, n: int, times_us: tuple[int, ...]
) -> GroupingConfig:
    def optional(key: str, kind: type[int] | type[float]) -> float | None:
        return None if texts[key] == AUTO else number(key, texts[key], kind, other=AUTO)

    draw_tuples = optional("draw_tuples", int)
    return GroupingConfig(
        n,
        texts["policy"],
        ((0, times_us),),
        latency_us=instances.latency_us(hardware, n),
        senders=integer("senders", texts["senders"]),
        window_tuples=integer("window_tuples", texts["window_tuples"]),
        theta=optional("theta", float),
        eps=optional("eps", float),
        gamma=_real(texts, "gamma"),
        alpha=_real(texts, "alpha", above_0=False),
        draw_tuples=None if draw_tuples is None else int(draw_tuples),
        tiers=instances.tier_numbers(hardware, n),
        hash_seed=integer("hash_seed", texts["hash_seed"]),
    )
