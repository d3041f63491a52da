"""Settings of a timed run of room ``join``."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import lcm
from typing import Annotated

from model.vocabulary import JoinConfig
from model.vocabulary.join import Apart, Band, Between, Equi, Ineq, Predicate
from model.vocabulary.join_load import Limits
from model.vocabulary.settings import JsonObject, Setting, Settings, pick, read_settings, schema
from sim.clusters import ClusterSettings, place_of
from sim.join.handshake import HandshakeChain
from sim.join.live_chain import LiveChain
from sim.join.machine import MachineOf
from sim.join.room import ChainRun, simulate
from sim.join.scenarios import KEYS, SCENARIOS, Rates, key_names
from sim.join.tuning import ChainTuning, Control, Costs
from sim.kernel.distributions import Constant
from sim.kernel.link import HERE, Place, Tiers
from sim.kernel.plan import Cluster, Plan
from sim.kernel.source import Source
from sim.kernel.trigger import At, Every

NEVER = "never"
PREDICATES: Mapping[str, Callable[[float], Predicate]] = {
    "band": partial(Band, "value"),
    "equi": lambda _: Equi("key"),
    "apart": partial(Apart, "value"),
    "less": lambda _: Ineq("value", "<", "value"),
    "above": lambda eps: Between("value", eps, None),
}
"""Predicates from an eps, by name; ``equi`` and ``less`` ignore it."""
ENGINES: Mapping[str, MachineOf] = {"chain": LiveChain, "handshake": HandshakeChain}


@dataclass(frozen=True, slots=True)
class StreamSettings(Settings):
    """Settings of the two streams."""

    scenario: Annotated[str, Setting("course of the rates", choices=SCENARIOS)] = "bursts"
    rate_r_hz: Annotated[float, Setting("tuples of R a second", above=0)] = 50.0
    rate_s_hz: Annotated[float, Setting("tuples of S a second", above=0)] = 50.0
    seconds: Annotated[float, Setting("duration of the streams", above=0)] = 60.0
    amplitude: Annotated[
        float, Setting("scenario waves: rise of a rate above its mean", above=0, below=1)
    ] = 0.5
    wave_us: Annotated[int, Setting("scenario waves: from one wave to the next", above=0)] = (
        10_000_000
    )

    keys: Annotated[int, Setting("different keys", above=0)] = len(KEYS)
    zipf: Annotated[float, Setting("exponent of the distribution of keys", at_least=0)] = 1.0

    @property
    def plan(self) -> Plan:
        """Plan of the sources and their links to the log."""
        rates = (self.rate_r_hz, self.rate_s_hz, self.seconds, self.amplitude, self.wave_us)
        plan = SCENARIOS[self.scenario](Rates(*rates))
        names = key_names(self.keys)
        sources = [
            replace(source, keys=names, zipf=self.zipf)
            for source in plan.sources
            if isinstance(source, Source)
        ]
        return replace(plan, sources=tuple(sources))


@dataclass(frozen=True, slots=True)
class ChainSettings(Settings):
    """Settings of queries and chain whose form differs from that in the objects of a run."""

    predicate: Annotated[str, Setting("kind of the queries", choices=PREDICATES)] = "band"
    eps: Annotated[float, Setting("eps of the first query; each further one has 1 more")] = 50.0
    queries: Annotated[int, Setting("number of queries that share the chain", above=0)] = 1
    tiers: Annotated[
        tuple[str, ...],
        Setting(
            "distances between neighbours, in turn; the log is next to the first worker",
            choices=Tiers._fields,
        ),
    ] = Tiers._fields
    tuple_us: Annotated[float, Setting("work of a tuple at speed 1")] = 0.2
    engine: Annotated[
        str, Setting("the chain of S2J, or a handshake join without an index", choices=ENGINES)
    ] = "chain"
    trigger_interval_us: Annotated[
        int | None, Setting("length of an epoch (the whole run is one)", above=0, none=NEVER)
    ] = 10_000_000
    control_us: Annotated[int, Setting("from one decision of the control to the next", above=0)] = (
        1_000_000
    )


SETTINGS: Mapping[str, Setting] = {
    **schema(StreamSettings, ChainSettings),
    **schema(
        JoinConfig, workers=4, window_us=2_000_000, block_size=32, credit=4, lateness_us=200_000
    ),
    **schema(ClusterSettings, without=("tiers", "service", "service_us")),
    **schema(Costs, ChainTuning, Control, Limits, capacity=200, blocks="adaptive"),
}

EXAMPLE = {
    "scenario": "bursts",
    "seconds": "30",
    "capacity": "500",
    "message_us": "250us",
    "tuple_us": "250us",
    "comparison_us": "50us",
    "faults": "slow worker-1 15s 5s 3; fail worker-2 25s 1s",
}


def from_settings(texts: Mapping[str, str], seed: int) -> ChainRun:
    """Run the room with these settings, and defaults for all others.

    Raise ``ValueError`` with one sentence that names the offending name or value.
    """
    return run_values(read_settings(texts, SETTINGS), seed)


def run_values(values: JsonObject, seed: int) -> ChainRun:
    """Run the room with the values of all settings."""
    machine = ENGINES[pick(ChainSettings, values).engine]
    return simulate(plan_of(values), config_of(values), seed, machine=machine)


def plan_of(values: JsonObject) -> Plan:
    """Return a plan of the streams and of the chain, from the values of all settings."""
    chain = pick(ChainSettings, values)
    hardware = pick(ClusterSettings, {each: values[each] for each in values if each != "tiers"})
    # After twice the common period of speeds and boundaries the places repeat, too.
    count = 2 * lcm(len(chain.tiers), len(hardware.speeds))
    interval_us = chain.trigger_interval_us
    control = pick(Control, values, limits=pick(Limits, values), every_us=chain.control_us)
    return replace(
        pick(StreamSettings, values).plan,
        cluster=Cluster(
            hardware.workers(_places(chain.tiers, count)),
            Constant(chain.tuple_us),
            hardware.tuple_bytes,
            hardware.noise,
        ),
        tuning=pick(
            ChainTuning,
            values,
            costs=pick(Costs, values),
            control=control,
        ),
        faults=hardware.schedule,
        trigger=At(()) if interval_us is None else Every(interval_us),
    )


def _places(tiers: Sequence[str], count: int) -> list[Place]:
    """Return places whose neighbours are at these distances from each other, in turn.

    From one place to the next the process, the node or the rack changes; it changes back later.
    """
    places = [HERE]
    for n in range(count - 1):
        step = place_of(tiers[n % len(tiers)], 0) or HERE
        places.append(Place(*[one ^ other for one, other in zip(places[-1], step, strict=True)]))
    return places


def config_of(values: JsonObject) -> JoinConfig:
    """Return the configuration of the chain, from the values of all settings."""
    chain = pick(ChainSettings, values)
    predicate = PREDICATES[chain.predicate]
    queries = tuple((f"q{n}", predicate(chain.eps + n)) for n in range(chain.queries))
    return pick(JoinConfig, values, queries=queries)
