"""Settings of a timed run of room ``grouping``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple

from model.vocabulary import GroupingConfig
from model.vocabulary.grouping import POLICIES
from model.vocabulary.settings import (
    JsonObject,
    Setting,
    Settings,
    pick,
    read_settings,
    require,
    schema,
)
from sim.clusters import NONE, TIERS, ClusterSettings
from sim.grouping import instances
from sim.grouping.cluster import GroupingTuning
from sim.grouping.room import backlog_of, simulate
from sim.grouping.scenarios import SCENARIOS, Size
from sim.kernel.distributions import mean_us
from sim.kernel.plan import Plan
from sim.kernel.run import TimedRun
from sim.kernel.trigger import Every, EveryTuples, When

MEASURED = "measured"
TIMES = (MEASURED, "given")
ALL = "all"


@dataclass(frozen=True, slots=True)
class RunSettings(Settings):
    """Settings of the stream, and of the router's knowledge about the instances."""

    scenario: Annotated[str, Setting("course of the stream", choices=SCENARIOS)] = "steady"
    tuples: Annotated[int, Setting("tuples of the stream", above=0)] = 20_000
    keys: Annotated[int, Setting("different keys (but of words)", above=0)] = 1_000
    zipf: Annotated[
        float, Setting("exponent of the distribution of keys (but of words)", at_least=0)
    ] = 1.0
    keys_file: Annotated[
        str | None, Setting("scenario words: file with a key in each line, instead", none=NONE)
    ] = None
    load: Annotated[
        float | None,
        Setting(
            "rate of the stream, divided by the rate that the instances can serve (all tuples wait"
            " at the start)",
            at_least=0.001,
            at_most=1_000,
            none="backlog",
        ),
    ] = 0.7
    times: Annotated[
        str,
        Setting(
            "service times that the router uses: measured, or true at the start", choices=TIMES
        ),
    ] = MEASURED
    batch_tuples: Annotated[int, Setting("tuples of a micro-batch", above=0)] = 1_000
    batch_us: Annotated[
        int | None, Setting("time of a micro-batch, in place of its tuples", above=0, none=NONE)
    ] = None
    policies: Annotated[
        tuple[str, ...],
        Setting("policies that are compared on the same arrivals", choices=(ALL, NONE, *POLICIES)),
    ] = (ALL,)

    def _check_together(self) -> None:
        good = self.keys_file is None or self.scenario == "words"
        require(good, "keys_file", self.keys_file, "none, unless scenario is words")
        good = len(self.policies) == 1 or not {ALL, NONE}.intersection(self.policies)
        require(good, "policies", ",".join(self.policies), f"{ALL}, {NONE}, or names of policies")

    @property
    def trigger(self) -> When:
        """End of micro-batches."""
        return EveryTuples(self.batch_tuples) if self.batch_us is None else Every(self.batch_us)

    def size(self, rate_hz: float, speeds: tuple[float, ...]) -> Size:
        """Return the size of the stream for instances that can serve ``rate_hz``."""
        load = 1.0 if self.load is None else self.load
        rate_hz *= load
        return Size(self.tuples, self.keys, self.zipf, rate_hz, speeds, self.keys_file)


SETTINGS: Mapping[str, Setting] = {
    **schema(RunSettings),
    **schema(
        GroupingConfig,
        without=("latency_us", "tiers", "top"),
        instances=12,
        window_tuples=5_000,
    ),
    **schema(
        ClusterSettings,
        speeds=(1.0, 0.2),
        tiers=TIERS[1:],
        service_us=200.0,
        queue_limit=100,
    ),
}

EXAMPLE = {
    "scenario": "drift",
    "load": "0.6",
    "policies": "tag,pkg,key",
    "faults": "slow worker-0 300ms 200ms 4; fail worker-2 600ms 100ms",
}


class GroupingRun(NamedTuple):
    """A run that is ready to start."""

    plan: Plan
    config: GroupingConfig
    policies: Sequence[str]
    """Policies that are compared."""
    is_backlog: bool
    """True if all tuples wait when the run starts."""

    def plan_of(self, seed: int) -> Plan:
        """Return the plan of the run."""
        return backlog_of(self.plan, seed) if self.is_backlog else self.plan

    def with_policy(self, policy: str) -> GroupingConfig:
        """Return the configuration of another policy."""
        return replace(self.config, policy=policy)


def from_settings(texts: Mapping[str, str], seed: int) -> TimedRun:
    """Run the room with these settings, and defaults for all others.

    Raise ``ValueError`` with one sentence that names the offending name or value.
    """
    ready = prepare(texts)
    return simulate(ready.plan_of(seed), ready.config, seed)


def prepare(texts: Mapping[str, str]) -> GroupingRun:
    """Return the run of these settings, before it starts."""
    values = read_settings(texts, SETTINGS)
    settings, hardware = pick(RunSettings, values), pick(ClusterSettings, values)
    n = values["instances"]
    # The rate of the stream depends on the hardware.
    bare = Plan((), cluster=hardware.cluster)
    instances.check(bare)
    speeds = tuple([bare.cluster.worker(i).speed for i in range(n)])
    plan = SCENARIOS[settings.scenario](settings.size(instances.ideal_hz(bare, n), speeds))
    is_measured = settings.times == MEASURED
    plan = replace(
        plan,
        cluster=bare.cluster,
        tuning=GroupingTuning(measured=is_measured),
        faults=(*plan.faults, *hardware.schedule),
        trigger=settings.trigger,
    )
    every = {ALL: POLICIES, NONE: ()}
    policies = every.get(settings.policies[0], settings.policies)
    config = _config(values, bare, is_measured)
    return GroupingRun(plan, config, policies, settings.load is None)


def _config(values: JsonObject, bare: Plan, is_measured: bool) -> GroupingConfig:
    n = values["instances"]
    guess_us = (max(1, round(mean_us(bare.cluster.service))),) * n
    return pick(
        GroupingConfig,
        values,
        times_us=((0, guess_us if is_measured else instances.times_us(bare, n)),),
        latency_us=instances.latency_us(bare, n),
        tiers=instances.tier_numbers(bare, n),
    )
