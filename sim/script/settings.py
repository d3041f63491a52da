"""Settings of a timed run of room ``script``."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple

from model.vocabulary import ScriptConfig
from model.vocabulary.settings import (
    JsonObject,
    Setting,
    Settings,
    pick,
    read_settings,
    schema,
    settings_of,
)
from sim.clusters import ClusterSettings
from sim.kernel.plan import Plan
from sim.kernel.run import TimedRun
from sim.kernel.trigger import Every
from sim.script.host import ScriptTuning
from sim.script.room import simulate
from sim.script.scenarios import DISORDERS, SETS, Sending, WorkflowSet, WorkflowSizes, plan_of


@dataclass(frozen=True, slots=True)
class SensorSettings(Settings):
    """Settings of the workflows and of the tuples that sensors send."""

    scenario: Annotated[str, Setting("set of workflows", choices=SETS)] = "bridge"
    sensors: Annotated[int, Setting("number of sensors", above=0)] = 24
    workflows: Annotated[
        int | None, Setting("workflows that are drawn (as many as sensors)", above=0)
    ] = None
    windows: Annotated[int, Setting("windows of a workflow that is drawn")] = 3
    shared: Annotated[int, Setting("sensors that unions read, too")] = 8
    together: Annotated[int, Setting("sensors of a union")] = 2
    rates_hz: Annotated[
        tuple[float, ...], Setting("tuples a second of the sensors, in turn", above=0)
    ] = (20.0, 10.0, 5.0)
    seconds: Annotated[int, Setting("duration of the stream", above=0)] = 40
    disorder: Annotated[str, Setting("disorder of the stream", choices=DISORDERS)] = (
        "gaps-and-bursts"
    )
    trigger_interval_us: Annotated[int, Setting("from one micro-batch to the next", above=0)] = (
        1_000_000
    )

    def drawn(self, seed: int) -> WorkflowSet:
        """Return the workflows and their sensors."""
        return SETS[self.scenario](
            WorkflowSizes(
                self.sensors,
                seed,
                workflows=self.workflows,
                shared=self.shared,
                together=self.together,
                windows=self.windows,
            )
        )


SETTINGS: Mapping[str, Setting] = {
    **schema(SensorSettings),
    **schema(ScriptConfig, workers=4, lateness_us=250_000),
    **schema(ClusterSettings, tiers=("node", "rack"), service_us=3_000.0),
    **schema(ScriptTuning, result_us=3_000.0),
}

EXAMPLE = {
    "seconds": "20",
    "service_us": "5ms",
    "result_us": "5ms",
    "faults": "slow worker-1 5s 4s 2; fail worker-2 14s 1s",
}


class ReadyRun(NamedTuple):
    """A run that is ready to start."""

    plan: Plan
    config: ScriptConfig
    seed: int

    def run(self, placement: str) -> TimedRun:
        """Simulate the run with a placement."""
        tuning = replace(self.plan.tuned(ScriptTuning()), placement=placement)
        return simulate(replace(self.plan, tuning=tuning), self.config, self.seed)


def from_settings(texts: Mapping[str, str], seed: int) -> TimedRun:
    """Run the room with these settings, and defaults for all others.

    Raise ``ValueError`` with one sentence that names the offending name or value.
    """
    return simulate(*prepare(texts, seed))


def prepare(texts: Mapping[str, str], seed: int) -> ReadyRun:
    """Return the run of these settings, before it starts."""
    values = read_settings(texts, SETTINGS)
    config = _config(values, seed)
    settings, hardware = pick(SensorSettings, values), pick(ClusterSettings, values)
    cluster = hardware.cluster
    sending = Sending(config.sensors, settings.seconds, cluster.tuple_bytes)
    plan = replace(
        plan_of(sending, settings.disorder),
        cluster=cluster,
        faults=hardware.schedule,
        trigger=Every(settings.trigger_interval_us),
        tuning=pick(ScriptTuning, values, period_us=sending.period_us),
    )
    return ReadyRun(plan, config, seed)


def config_of(texts: Mapping[str, str], seed: int) -> ScriptConfig:
    """Return the workflows, sensors and workers of these settings."""
    return _config(read_settings(texts, SETTINGS), seed)


def _config(values: JsonObject, seed: int) -> ScriptConfig:
    settings = pick(SensorSettings, values)
    drawn = settings.drawn(seed)
    per_hour = [round(3_600 * each) for each in settings.rates_hz]
    sensors = [(each, per_hour[n % len(per_hour)]) for n, each in enumerate(drawn.sensors)]
    known = settings_of(ScriptConfig)
    others = {name: values[name] for name in known}
    return ScriptConfig(drawn.workflows, tuple(sensors), **others)
