"""Settings of timed runs of rooms ``slack`` and ``watermark``: arrivals and hardware."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated

from model.vocabulary.settings import (
    JsonObject,
    Setting,
    Settings,
    pick,
    settings_of,
)
from sim.clusters import ClusterSettings
from sim.kernel.plan import Plan
from sim.kernel.source import Source
from sim.kernel.trigger import Every
from sim.windows.cluster import WindowTuning
from sim.windows.scenarios import SCENARIOS, scenario


@dataclass(frozen=True, slots=True)
class StreamSettings(Settings):
    """Settings of the arrivals."""

    scenario: Annotated[str, Setting("named stream", choices=SCENARIOS)] = "umts"
    messages: Annotated[
        int | None, Setting("messages of each source (those of the scenario)", above=0)
    ] = None
    keys: Annotated[
        int | None,
        Setting("keys of each source, named anew by seed (those of the scenario)", above=0),
    ] = None

    def plan(self, seed: int) -> Plan:
        """Return a plan of the sources and their ways to the log."""
        plan = scenario(self.scenario)(seed)
        if self.messages is None and self.keys is None:
            return plan
        names = tuple([f"key-{seed}-{number}" for number in range(self.keys or 0)])
        sources = tuple(
            replace(source, events=self.messages or source.events, keys=names or source.keys)
            if isinstance(source, Source)
            else source
            for source in plan.sources
        )
        return replace(plan, sources=sources)


TRIGGER = Setting(
    "from one micro-batch to the next",
    name="trigger_interval_us",
    kind=int,
    above=0,
    default=1_000_000,
)
HARDWARE: Mapping[str, Setting] = {
    **settings_of(ClusterSettings),
    **settings_of(WindowTuning),
    TRIGGER.name: TRIGGER,
}
"""Settings of the workers of tasks, and of the worker that corrects."""


def plan_of(values: JsonObject, seed: int) -> Plan:
    """Return a plan of arrivals and hardware."""
    hardware = pick(ClusterSettings, values)
    return replace(
        pick(StreamSettings, values).plan(seed),
        cluster=hardware.cluster,
        faults=hardware.schedule,
        trigger=Every(values[TRIGGER.name]),
        tuning=pick(WindowTuning, values),
    )
