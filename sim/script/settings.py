"""Settings of a run of room ``script``."""

from collections.abc import Mapping
from typing import NamedTuple

from model.vocabulary import ScriptConfig
from model.vocabulary.script import CLUSTER, WATERMARKS
from model.vocabulary.settings import require
from sim.kernel.distributions import Constant, Distribution, Exponential
from sim.kernel.log import Arrivals, simulate_arrivals
from sim.kernel.plan import Plan
from sim.script.crew import TIER_NAMES, Crew
from sim.script.placements import PLACEMENTS, PLAN
from sim.script.run import Run, simulate_arrived
from sim.script.scenarios import DISORDERS, Sending, plan_of
from sim.script.workflows import SETS, Asked, Wanted
from sim.settings import AUTO, NONE, Setting, Word, chosen, integer, number, with_defaults

SERVICES = ("exponential", "constant")

DEFAULTS: Mapping[str, Setting] = {
    "scenario": Word("bridge", SETS),  # what is asked for
    "sensors": 24,
    "workflows": AUTO,  # that are drawn; auto: as many as there are sensors
    "windows": 3,  # of a workflow that is drawn
    "shared": 8,  # sensors that are read by unions, too
    "together": 2,  # sensors of a union
    # What sensors send.
    "rates_hz": "20,10,5",  # of the sensors, in turn
    "seconds": 40,
    "disorder": Word("gaps-and-bursts", DISORDERS),
    "loss": 0.0,
    "sensor_tier": Word("rack", (*TIER_NAMES, NONE)),  # how far away sensors are; none: right there
    # Who computes.
    "workers": 4,
    "placement": Word(PLAN, PLACEMENTS),
    "cap_percent": 125,
    "lateness_us": 250_000,  # none: nothing is late, and only the end of the stream tells
    "watermark": Word("fixed", WATERMARKS),  # disorder, scaled: lateness_us is the longest wait
    "cluster": CLUSTER,  # arrivals of a sensor whose disorder says how long to wait
    "speeds": "1,0.5",  # of the workers, in turn
    "tiers": Word("node,rack", TIER_NAMES, is_list=True),  # of the workers, in turn
    "service": Word("exponential", SERVICES),
    "service_us": 3_000.0,  # mean, at speed 1
    "result_us": 3_000.0,
    "tuple_bytes": 100,
    "result_bytes": 100,
    # That stand side by side.
    "placements": Word("all", ("all", NONE, *PLACEMENTS), is_list=True),
}
"""Every setting with its default."""


class Given(NamedTuple):
    """A run that has been set and not been made."""

    plan: Plan
    config: ScriptConfig
    crew: Crew
    placement: str
    period_us: int

    def run(self, arrivals: Arrivals, placement: str) -> Run:
        """Make it, for what has arrived of the plan."""
        return simulate_arrived(
            arrivals,
            self.config,
            self.plan.epoch_us,
            crew=self.crew,
            placement=placement,
            period_us=self.period_us,
        )


def from_settings(settings: Mapping[str, str], seed: int) -> Run:
    """Run with :data:`DEFAULTS`, except for what ``settings`` say.

    Raises ``ValueError`` with one sentence that names the offending key or value.
    """
    asked = given(settings, seed)
    return asked.run(simulate_arrivals(asked.plan, seed), asked.placement)


def given(settings: Mapping[str, str], seed: int) -> Given:
    """What :func:`from_settings` runs."""
    texts = with_defaults(settings, DEFAULTS)
    config = config_of(settings, seed)
    seconds = integer("seconds", texts["seconds"])
    require(seconds > 0, "seconds", seconds, "above 0")
    loss = float(number("loss", texts["loss"], float))
    require(0 <= loss <= 1, "loss", texts["loss"], "from 0 to 1")
    numbers = {name: at for at, name in enumerate(TIER_NAMES)}
    away = texts["sensor_tier"]
    tier = None if away == NONE else numbers[away]
    crew = _crew(texts)
    sending = Sending(config.sensors, seconds, tier, loss, crew.tuple_bytes)
    plan = plan_of(sending, texts["disorder"])
    return Given(plan, config, crew, texts["placement"], sending.period_us)


def config_of(settings: Mapping[str, str], seed: int) -> ScriptConfig:
    """The workflows, sensors and workers of these settings."""
    texts = with_defaults(settings, DEFAULTS)
    asked = _asked(texts, seed)
    rates = [float(number("rates_hz", each, float)) for each in _parts(texts, "rates_hz")]
    per_hour = [round(3_600 * each) for each in rates]
    sensors = [(each, per_hour[n % len(per_hour)]) for n, each in enumerate(asked.sensors)]
    lateness = texts["lateness_us"]
    return ScriptConfig(
        asked.workflows,
        tuple(sensors),
        workers=integer("workers", texts["workers"]),
        lateness_us=None if lateness == NONE else int(number("lateness_us", lateness, int)),
        cap_percent=integer("cap_percent", texts["cap_percent"]),
        watermark=texts["watermark"],
        cluster=integer("cluster", texts["cluster"]),
    )


def _asked(texts: Mapping[str, str], seed: int) -> Asked:
    sensors = integer("sensors", texts["sensors"])
    require(sensors > 0, "sensors", sensors, "above 0")
    text, workflows = texts["workflows"], None
    if text != AUTO:
        workflows = int(number("workflows", text, int, other=AUTO))
        require(workflows > 0, "workflows", workflows, "above 0")
    sizes = {key: integer(key, texts[key]) for key in ("shared", "together", "windows")}
    make = chosen("scenario", texts["scenario"], SETS)
    return make(Wanted(sensors, seed, workflows=workflows, **sizes))


def _crew(texts: Mapping[str, str]) -> Crew:
    service_us = float(number("service_us", texts["service_us"], float))
    require(service_us > 0, "service_us", texts["service_us"], "above 0")
    service: Distribution = Constant(service_us)
    if texts["service"] == "exponential":
        service = Exponential(service_us)
    numbers = {name: at for at, name in enumerate(TIER_NAMES)}
    return Crew(
        speeds=tuple([float(number("speeds", each, float)) for each in _parts(texts, "speeds")]),
        tiers=tuple([chosen("tiers", each, numbers) for each in _parts(texts, "tiers")]),
        service=service,
        result_us=float(number("result_us", texts["result_us"], float)),
        tuple_bytes=integer("tuple_bytes", texts["tuple_bytes"]),
        result_bytes=integer("result_bytes", texts["result_bytes"]),
    )


def _parts(texts: Mapping[str, str], key: str) -> list[str]:
    return [each.strip() for each in texts[key].split(",")]
