"""Settings of timed runs of rooms ``slack`` and ``watermark``: arrivals and hardware."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated

from model.vocabulary.durations import parse_duration_us, write_duration
from model.vocabulary.settings import (
    JsonObject,
    Setting,
    Settings,
    pick,
    settings_of,
)
from sim.clusters import ClusterSettings
from sim.kernel.distributions import mean_us
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


def fit_example(example: Mapping[str, str], scenario: str) -> Mapping[str, str]:
    """Return an example for another stream: work by its rate, faults as far into the stream.

    Workers are half as busy, because the keys of other streams are spread less evenly.
    """
    if scenario not in SCENARIOS or scenario == example["scenario"]:
        return example
    (usual_us, usual), (length_us, tuples) = map(_extent, (example["scenario"], scenario))
    longer = length_us / usual_us
    work_us = _stretch(example["service_us"], longer * usual / tuples / 2)
    return {**example, "service_us": work_us, "faults": _stretch(example["faults"], longer)}


def _extent(name: str) -> tuple[float, int]:
    """Return the length of a stream (us) and its number of tuples, on average."""
    sources = [each for each in scenario(name)(0).sources if isinstance(each, Source)]
    length_us = max(each.start_us + each.events * mean_us(each.interval) for each in sources)
    return length_us, sum(each.events for each in sources)


def _stretch(text: str, factor: float) -> str:
    """Return a text whose durations are multiplied, to two digits."""

    def stretched(found: re.Match[str]) -> str:
        us = round(parse_duration_us(found[0]) * factor)
        return write_duration(round(us, 2 - len(str(us))))

    return re.sub(r"\b\d+[a-z]+\b", stretched, text)


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
