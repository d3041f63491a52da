"""Settings of timed runs of windowed rooms: what arrives, and what serves it."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import NamedTuple

from sim.cluster import Worker
from sim.distributions import Constant, Distribution, Exponential, require
from sim.plan import Plan, Source
from sim.settings import AUTO, NO, YES, Setting, Word, integer, is_yes, number
from sim.windows.scenarios import scenario

_SERVICES = ("exponential", "constant")
CLUSTER_DEFAULTS: Mapping[str, Setting] = {
    "speeds": "1,0.5",  # of the tasks' workers, in turn
    "service": Word("exponential", _SERVICES),
    "service_us": 5_000.0,  # mean, at speed 1
    "batch_speed": 1.0,
    "correction_us": 100_000.0,
    "row_us": 1.0,
    "trigger_interval_us": 1_000_000,
}
"""What the tasks run on."""


class ClusterSettings(NamedTuple):
    """What the tasks run on; see :class:`sim.windows.timed.Cluster`."""

    workers: tuple[Worker, ...]
    batch_worker: Worker
    correction_us: float
    row_us: float
    trigger_interval_us: int


def cluster_of(given: Mapping[str, str]) -> ClusterSettings:
    """What the settings say; ``ValueError`` naming the offending key or value."""
    return ClusterSettings(
        _workers(given),
        Worker(speed=_speed("batch_speed", given["batch_speed"])),
        number("correction_us", given["correction_us"], float),
        number("row_us", given["row_us"], float),
        integer("trigger_interval_us", given["trigger_interval_us"]),
    )


def query_of(
    given: Mapping[str, str],
    config: type,
    defaults: Mapping[str, Setting],
    when_not_auto: Mapping[str, type[int] | type[float]],
) -> dict[str, int | float | str | bool | None]:
    """The settings that are fields of a configuration, each of the type of its default."""
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


def _speed(key: str, text: str) -> float:
    speed = number(key, text, float)
    require(speed > 0, key, text, "above 0")
    return speed


def _workers(given: Mapping[str, str]) -> tuple[Worker, ...]:
    kind, service_us = given["service"], number("service_us", given["service_us"], float)
    require(service_us > 0, "service_us", given["service_us"], "above 0")
    service: Distribution = Constant(service_us)
    if kind == "exponential":
        service = Exponential(service_us)
    return tuple(
        Worker(service, speed=_speed("speeds", text)) for text in given["speeds"].split(",")
    )


def plan_of(given: Mapping[str, str], seed: int) -> Plan:
    """What arrives, by the settings ``scenario`` and ``messages``."""
    plan = scenario(given["scenario"])(seed)
    if given["messages"] == AUTO:
        return plan
    messages = int(number("messages", given["messages"], int, other=AUTO))
    require(messages > 0, "messages", messages, "above 0")
    sources = tuple(
        replace(source, events=messages) if isinstance(source, Source) else source
        for source in plan.sources
    )
    return replace(plan, sources=sources)
