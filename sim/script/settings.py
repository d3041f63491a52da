"""Settings of a run of room ``script``."""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from model.vocabulary import ScriptConfig
from model.vocabulary.script import CLUSTER, WATERMARKS
from model.vocabulary.settings import require
from sim import clusters
from sim.kernel.log import within_run
from sim.kernel.plan import Plan
from sim.kernel.trigger import Every
from sim.script.placements import PLACEMENTS, PLAN
from sim.script.room import ScriptRun, simulate
from sim.script.scenarios import DISORDERS, Sending, plan_of
from sim.script.tuning import ScriptTuning
from sim.script.workflows import SETS, Asked, Wanted
from sim.settings import AUTO, NONE, Setting, Word, chosen, integer, number, with_defaults

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
    "sensor_loss": 0.0,  # of what sensors send, for good
    "sensor_tier": Word("rack", clusters.TIERS),  # how far away sensors are; none: right there
    "trigger_interval_us": 1_000_000,
    # Who computes.
    "workers": 4,
    "placement": Word(PLAN, PLACEMENTS),
    "cap_percent": 125,
    "lateness_us": 250_000,  # none: nothing is late, and only the end of the stream tells
    "watermark": Word("fixed", WATERMARKS),  # disorder, scaled: lateness_us is the longest wait
    "cluster": CLUSTER,  # arrivals of a sensor whose disorder says how long to wait
    **clusters.DEFAULTS,
    "tiers": Word("node,rack", clusters.TIERS, is_list=True),  # of the workers, in turn
    "service_us": 3_000.0,  # mean work of a tuple, at speed 1
    "result_us": 3_000.0,
    "result_bytes": 100,
    # That stand side by side.
    "placements": Word("all", ("all", NONE, *PLACEMENTS), is_list=True),
}
"""Every setting with its default."""


class Given(NamedTuple):
    """A run that has been set and not been made."""

    plan: Plan
    config: ScriptConfig
    seed: int

    def run(self, placement: str) -> ScriptRun:
        """Make the run with a placement."""
        tuning = replace(self.plan.tuned(ScriptTuning()), placement=placement)
        return simulate(replace(self.plan, tuning=tuning), self.config, self.seed)


def from_settings(settings: Mapping[str, str], seed: int) -> ScriptRun:
    """Run with :data:`DEFAULTS`, except for what ``settings`` say.

    Raises ``ValueError`` with one sentence that names the offending key or value.
    """
    return simulate(*given(settings, seed))


def given(settings: Mapping[str, str], seed: int) -> Given:
    """Return what :func:`from_settings` runs."""
    texts = with_defaults(settings, DEFAULTS)
    config = config_of(settings, seed)
    seconds = integer("seconds", texts["seconds"])
    require(seconds > 0, "seconds", seconds, "above 0")
    loss = float(number("sensor_loss", texts["sensor_loss"], float))
    require(0 <= loss <= 1, "sensor_loss", texts["sensor_loss"], "from 0 to 1")
    place = clusters.place_of(texts["sensor_tier"], 0)
    cluster = clusters.cluster_of(texts)
    sending = Sending(config.sensors, seconds, place, loss, cluster.tuple_bytes)
    plan = replace(
        plan_of(sending, texts["disorder"]),
        cluster=cluster,
        faults=clusters.faults_of(texts),
        trigger=Every(integer("trigger_interval_us", texts["trigger_interval_us"])),
        tuning=ScriptTuning(
            texts["placement"],
            float(number("result_us", texts["result_us"], float)),
            integer("result_bytes", texts["result_bytes"]),
            sending.period_us,
        ),
    )
    return Given(within_run(plan, seed), config, seed)


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


def _parts(texts: Mapping[str, str], key: str) -> list[str]:
    return [each.strip() for each in texts[key].split(",")]
