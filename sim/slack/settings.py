"""Settings of a run of room ``slack``."""

from collections.abc import Mapping
from dataclasses import fields, replace

from model.vocabulary import SlackConfig
from sim.cluster import Worker
from sim.distributions import Constant, Distribution, Exponential, require
from sim.plan import Plan, Source
from sim.settings import AUTO, Setting, integer, is_yes, number, with_defaults
from sim.slack.run import Run, simulate
from sim.slack.scenarios import scenario

DEFAULTS: Mapping[str, Setting] = {
    "scenario": "umts",
    "messages": AUTO,  # of each source; auto: as many as the scenario says
    # The query, by the names of SlackConfig.
    "size_us": 10_000_000,
    "slide_us": 2_000_000,
    "aggregate": "sum",
    "q": 0.5,
    "keyed": "yes",
    "tasks": 2,
    "control": "conformal",
    "eps": 0.05,
    "delta": 0.05,
    "lambda_thr": AUTO,
    "method": "normal",
    "sampling": "exchangeable",
    "cv": AUTO,
    "fixed_slack_us": 0,
    "learning_rate": 0.05,
    "kp": 0.2,
    "kd": 4.0,
    "feedback_us": AUTO,
    "max_slack_us": AUTO,
    "max_future_us": AUTO,
    "gamma_us": 5_000_000,
    "max_age_us": AUTO,
    "dedup": "yes",
    # What it runs on.
    "speeds": "1,0.5",  # of the tasks' workers, in turn
    "service": "exponential",
    "service_us": 5_000.0,  # mean, at speed 1
    "batch_speed": 1.0,
    "correction_us": 100_000.0,
    "row_us": 1.0,
    "trigger_interval_us": 1_000_000,
}
"""Every setting with its default; ``auto`` is what docs/slack.md says happens by itself."""

_WHEN_NOT_AUTO: Mapping[str, type[int] | type[float]] = {
    "messages": int,
    "lambda_thr": float,
    "cv": float,
    "feedback_us": int,
    "max_slack_us": int,
    "max_future_us": int,
    "max_age_us": int,
}
_YES_OR_NO = ("keyed", "dedup")
_SERVICES = ("exponential", "constant")


def from_settings(settings: Mapping[str, str], seed: int) -> Run:
    """Run with :data:`DEFAULTS`, except for what ``settings`` say.

    Raises ``ValueError`` with one sentence that names the offending key or value.
    """
    given = with_defaults(settings, DEFAULTS)
    names = {field.name for field in fields(SlackConfig)}
    query = {key: _value(key, text) for key, text in given.items() if key in names}
    return simulate(
        _plan(given, seed),
        SlackConfig.from_json(query),
        seed,
        workers=_workers(given),
        batch_worker=Worker(speed=_speed("batch_speed", given["batch_speed"])),
        correction_us=number("correction_us", given["correction_us"], float),
        row_us=number("row_us", given["row_us"], float),
        trigger_interval_us=integer("trigger_interval_us", given["trigger_interval_us"]),
    )


def _value(key: str, text: str) -> int | float | str | bool | None:
    """A setting of the query."""
    default = DEFAULTS[key]
    if key in _YES_OR_NO:
        return is_yes(key, text)
    if key in _WHEN_NOT_AUTO:
        return None if text == AUTO else number(key, text, _WHEN_NOT_AUTO[key], other=AUTO)
    return text if isinstance(default, str) else number(key, text, type(default))


def _speed(key: str, text: str) -> float:
    speed = number(key, text, float)
    require(speed > 0, key, text, "above 0")
    return speed


def _workers(given: Mapping[str, str]) -> tuple[Worker, ...]:
    kind, service_us = given["service"], number("service_us", given["service_us"], float)
    require(kind in _SERVICES, "service", kind, " or ".join(_SERVICES))
    require(service_us > 0, "service_us", given["service_us"], "above 0")
    service: Distribution = Constant(service_us)
    if kind == "exponential":
        service = Exponential(service_us)
    return tuple(
        Worker(service, speed=_speed("speeds", text)) for text in given["speeds"].split(",")
    )


def _plan(given: Mapping[str, str], seed: int) -> Plan:
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
