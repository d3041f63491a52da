"""Settings of a run of room ``grouping``."""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from model.grouping.rules import RULES
from model.grouping.table import Rules
from model.vocabulary import GroupingConfig
from model.vocabulary.grouping import POLICIES
from model.vocabulary.settings import require
from sim.grouping.crew import TIER_NAMES, Crew
from sim.grouping.run import Run, simulate_arrived
from sim.grouping.scenarios import SCENARIOS, Size
from sim.kernel.distributions import Constant, Distribution, Exponential, mean_us
from sim.kernel.log import Arrivals, simulate_arrivals
from sim.kernel.plan import Plan
from sim.settings import AUTO, BACKLOG, NONE, Setting, Word, chosen, integer, number, with_defaults

SERVICES = ("exponential", "constant")
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
    # What they route to.
    "batch_tuples": 1_000,
    # Of the instances, in turn.
    "speeds": "1,0.2",
    "tiers": Word("process,node,rack,elsewhere", TIER_NAMES, is_list=True),
    "service": Word("exponential", SERVICES),
    "service_us": 200.0,  # mean, at speed 1
    "tuple_bytes": 100,
    "queue_limit": 100,
    # That stand side by side.
    "policies": Word("all", ("all", NONE, *POLICIES), is_list=True),
}
"""Every setting with its default; ``auto`` is what docs/grouping.md says happens by itself."""


class Given(NamedTuple):
    """A run that has been set and not been made."""

    plan: Plan
    config: GroupingConfig
    crew: Crew
    batch_tuples: int
    measured: bool
    backlog: bool

    def run(self, arrivals: Arrivals, policy: str, *, backlog: bool, rules: Rules = RULES) -> Run:
        """Make it, for what has arrived of the plan."""
        return simulate_arrived(
            arrivals,
            replace(self.config, policy=policy),
            crew=self.crew,
            start_us=None if backlog else self.plan.epoch_us,
            batch_tuples=self.batch_tuples,
            measured=self.measured,
            rules=rules,
        )


def from_settings(settings: Mapping[str, str], seed: int) -> Run:
    """Run with :data:`DEFAULTS`, except for what ``settings`` say.

    Raises ``ValueError`` with one sentence that names the offending key or value.
    """
    asked = given(settings)
    arrivals = simulate_arrivals(asked.plan, seed)
    return asked.run(arrivals, asked.config.policy, backlog=asked.backlog)


def given(settings: Mapping[str, str]) -> Given:
    """What :func:`from_settings` runs."""
    texts = with_defaults(settings, DEFAULTS)
    crew, n = _crew(texts), integer("instances", texts["instances"])
    require(n > 0, "instances", n, "greater than 0")
    measured = texts["times"] == "measured"
    guess_us = (max(1, round(mean_us(crew.service))),) * n
    times_us = guess_us if measured else crew.times_us(n)
    size = _size(texts, crew, n)
    plan, faults = chosen("scenario", texts["scenario"], SCENARIOS)(size)
    return Given(
        plan,
        _config(texts, crew, n, times_us),
        replace(crew, faults=faults),
        integer("batch_tuples", texts["batch_tuples"]),
        measured,
        texts["load"] == BACKLOG,
    )


def _real(texts: Mapping[str, str], key: str, *, above_0: bool = True) -> float:
    value = float(number(key, texts[key], float))
    require(value > 0 or not above_0, key, texts[key], "above 0")
    return value


def _size(texts: Mapping[str, str], crew: Crew, n: int) -> Size:
    tuples, keys = (integer(key, texts[key]) for key in ("tuples", "keys"))
    for key, value in (("tuples", tuples), ("keys", keys)):
        require(value > 0, key, value, "above 0")
    load = 1.0
    if texts["load"] != BACKLOG:
        load = float(number("load", texts["load"], float, other=BACKLOG))
        require(0.001 <= load <= 1_000, "load", texts["load"], "from 0.001 to 1000")
    zipf = _real(texts, "zipf", above_0=False)
    require(zipf >= 0, "zipf", texts["zipf"], "at least 0")
    speeds = tuple([crew.speeds[i % len(crew.speeds)] for i in range(n)])
    return Size(tuples, keys, zipf, load * crew.ideal_hz(n), speeds)


def _crew(texts: Mapping[str, str]) -> Crew:
    service_us = _real(texts, "service_us")
    service: Distribution = Constant(service_us)
    if texts["service"] == "exponential":
        service = Exponential(service_us)
    numbers = {name: at for at, name in enumerate(TIER_NAMES)}
    return Crew(
        speeds=tuple([float(number("speeds", each, float)) for each in _parts(texts, "speeds")]),
        tiers=tuple([chosen("tiers", each, numbers) for each in _parts(texts, "tiers")]),
        service=service,
        tuple_bytes=integer("tuple_bytes", texts["tuple_bytes"]),
        queue_limit=integer("queue_limit", texts["queue_limit"]),
    )


def _parts(texts: Mapping[str, str], key: str) -> list[str]:
    return [each.strip() for each in texts[key].split(",")]


def _config(
    texts: Mapping[str, str], crew: Crew, n: int, times_us: tuple[int, ...]
) -> GroupingConfig:
    def optional(key: str, kind: type[int] | type[float]) -> float | None:
        return None if texts[key] == AUTO else number(key, texts[key], kind, other=AUTO)

    draw_tuples = optional("draw_tuples", int)
    return GroupingConfig(
        n,
        texts["policy"],
        ((0, times_us),),
        latency_us=crew.latency_us(n),
        senders=integer("senders", texts["senders"]),
        window_tuples=integer("window_tuples", texts["window_tuples"]),
        theta=optional("theta", float),
        eps=optional("eps", float),
        gamma=_real(texts, "gamma"),
        alpha=_real(texts, "alpha", above_0=False),
        draw_tuples=None if draw_tuples is None else int(draw_tuples),
        tiers=crew.tier_numbers(n),
        hash_seed=integer("hash_seed", texts["hash_seed"]),
    )
