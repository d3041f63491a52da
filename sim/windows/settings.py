"""Settings of timed runs of windowed rooms: what arrives, and what serves it."""

from collections.abc import Mapping
from dataclasses import fields, replace

from model.vocabulary.settings import require
from sim import clusters
from sim.kernel.log import within_run
from sim.kernel.plan import Plan, Worker
from sim.kernel.source import Source
from sim.kernel.trigger import Every
from sim.settings import AUTO, NO, YES, Setting, Word, integer, is_yes, number
from sim.windows.corrector import WindowTuning
from sim.windows.scenarios import scenario

CLUSTER_DEFAULTS: Mapping[str, Setting] = {
    **clusters.DEFAULTS,
    "batch_speed": 1.0,  # of the worker that makes corrections
    "correction_us": 100_000.0,
    "row_us": 1.0,
    "trigger_interval_us": 1_000_000,
}
"""What the tasks run on."""


def query_of(
    given: Mapping[str, str],
    config: type,
    defaults: Mapping[str, Setting],
    when_not_auto: Mapping[str, type[int] | type[float]],
) -> dict[str, int | float | str | bool | None]:
    """Return the settings that are fields of a configuration, each of the type of its default."""
    names = {field.name for field in fields(config)}
    return {
        key: _value(key, text, defaults[key], when_not_auto)
        for key, text in given.items()
        if key in names
    }


def _value(
    key: str, text: str, default: Setting, when_not_auto: Mapping[str, type[int] | type[float]]
) -> int | float | str | bool | None:
    if default in (YES, NO):
        return is_yes(key, text)
    if key in when_not_auto:
        return None if text == AUTO else number(key, text, when_not_auto[key], other=AUTO)
    return text if isinstance(default, str | Word) else number(key, text, type(default))


def plan_of(given: Mapping[str, str], seed: int) -> Plan:
    """Return what arrives and what serves it; ``ValueError`` naming the offending key or value."""
    batch_speed = float(number("batch_speed", given["batch_speed"], float))
    require(batch_speed > 0, "batch_speed", given["batch_speed"], "above 0")
    return replace(
        stream_of(given, seed),
        cluster=clusters.cluster_of(given),
        faults=clusters.faults_of(given),
        trigger=Every(integer("trigger_interval_us", given["trigger_interval_us"])),
        tuning=WindowTuning(
            Worker(batch_speed),
            float(number("correction_us", given["correction_us"], float)),
            float(number("row_us", given["row_us"], float)),
        ),
    )


def stream_of(given: Mapping[str, str], seed: int) -> Plan:
    """Return what arrives, by the settings ``scenario`` and ``messages``."""
    plan = scenario(given["scenario"])(seed)
    if given["messages"] == AUTO:
        return plan
    messages = int(number("messages", given["messages"], int, other=AUTO))
    require(messages > 0, "messages", messages, "above 0")
    sources = tuple(
        replace(source, events=messages) if isinstance(source, Source) else source
        for source in plan.sources
    )
    return within_run(replace(plan, sources=sources), seed)
