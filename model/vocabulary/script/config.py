"""Settings of workflows that run together, and the steps of their traces."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, NamedTuple

from model.vocabulary.durations import LONGEST_US
from model.vocabulary.script.problems import problems
from model.vocabulary.script.tree import (
    SENSOR,
    Expression,
    Name,
    Number,
    Sensor,
    Statement,
    Union,
    Workflow,
    children,
    expression_from_json,
    expression_to_json,
    walk,
)
from model.vocabulary.settings import JsonObject, PlainData, Setting, Settings, is_int, require
from model.vocabulary.trace import fields_of

MILLISECOND_US = 1_000
END_US = (1 << 63) - 1
"""Watermark of a stream that has ended: above every event time."""
TIME_END_US = 1 << 61
"""Upper bound (exclusive) of event times, which start at 0."""

REASON_NOT_FINITE = "value is not a finite number"
REASON_LATE = "event time lies below the watermark of the sensor"

PER_HOUR_MAX = 3_600_000_000
WATERMARKS = ("fixed", "disorder", "scaled")
CLUSTER = 50
"""Default of ``ScriptConfig.cluster``."""


@dataclass(frozen=True, slots=True)
class ScriptConfig(Settings):
    """Settings of workflows that run together: their sensors, their workers, their watermark.

    Raise ``ValueError`` with one sentence that names the offending value.

    Examples:
        >>> from straggler.rooms.script.language import parse
        >>> sensors = {"temp": 3_600}  # tuples an hour
        >>> mean = parse('mean = avg("temp", 10_000, 10_000)', "mine", sensors)
        >>> config = ScriptConfig((mean,), tuple(sensors.items()))
    """

    workflows: tuple[Workflow, ...]
    """Scripts, as ``straggler.rooms.script.language.parse`` reads them."""
    sensors: tuple[tuple[str, int], ...]
    """Sensors, each with the number of tuples that it sends in an hour."""
    workers: Annotated[int, Setting("number of workers", above=0, at_most=10_000)] = 1
    lateness_us: Annotated[
        int | None,
        Setting(
            "how far a tuple may lie behind the latest one of its sensor (nothing is late)",
            at_least=0,
            at_most=LONGEST_US,
            none="none",
        ),
    ] = None
    cap_percent: Annotated[
        int, Setting("most that a worker should have, as a share of an even split", at_least=100)
    ] = 125
    watermark: Annotated[
        str,
        Setting(
            "lag of a watermark: lateness_us, or a share of it that follows the disorder of the"
            " sensor's last arrivals",
            choices=WATERMARKS,
        ),
    ] = "fixed"
    cluster: Annotated[
        int, Setting("arrivals of a sensor that the disorder is measured over", above=0)
    ] = CLUSTER
    idle_after_us: Annotated[
        int | None,
        Setting(
            "silence, by arrival times, after which a sensor holds nothing back (never)",
            above=0,
            none="never",
        ),
    ] = None

    def _check_together(self) -> None:
        self._require_sensors()
        self._require_workflows()
        self._require_watermark()

    def _require_watermark(self) -> None:
        if self.idle_after_us is not None and self.lateness_us is None:
            msg = f"idle_after_us is {self.idle_after_us}; without lateness_us it must be None"
            raise ValueError(msg)
        if self.watermark == "fixed":
            return
        expected = f"an integer below 2^61 with the watermark {self.watermark!r}"
        limit_us = self.lateness_us
        require(limit_us is not None and limit_us < TIME_END_US, "lateness_us", limit_us, expected)
        if limit_us is not None and limit_us * self.cluster * (self.cluster - 1) >= 1 << 63:
            msg = f"lateness_us is {limit_us} with a cluster of {self.cluster}; lateness_us*"
            msg += "cluster*(cluster-1) must be less than 2^63"
            raise ValueError(msg)

    def _require_sensors(self) -> None:
        for pair in self.sensors:
            good = isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str)
            require(good, "an entry of sensors", pair, "a sensor and its tuples in an hour")
            sensor, per_hour = pair
            good = SENSOR.fullmatch(sensor) is not None
            require(good, "a sensor", sensor, "text without quotes and control characters")
            good = is_int(per_hour) and 0 < per_hour <= PER_HOUR_MAX
            expected = f"an integer from 1 to {PER_HOUR_MAX}"
            require(good, f"tuples of {sensor!r} in an hour", per_hour, expected)
        listed = Counter(sensor for sensor, _ in self.sensors)
        twice = next((sensor for sensor, times in listed.items() if times > 1), None)
        require(twice is None, "the sensor", twice, "listed once")

    def _require_workflows(self) -> None:
        require(bool(self.workflows), "workflows", self.workflows, "at least one")
        known = {sensor for sensor, _ in self.sensors}
        names = set()
        for workflow in self.workflows:
            require(isinstance(workflow, Workflow), "a workflow", workflow, "a Workflow")
            require(workflow.name not in names, "the workflow", workflow.name, "listed once")
            names.add(workflow.name)
            for problem in problems(workflow, known):
                msg = f"workflow {workflow.name!r}: {problem.sentence}"
                raise ValueError(msg)

    @property
    def asked_for(self) -> frozenset[str]:
        """Sensors that some workflow reads; tuples of other sensors are dropped at intake."""
        found: set[str] = set()
        for workflow in self.workflows:
            # Sensors that a name, or a union of names, stands for.
            plain: dict[str, frozenset[str]] = {}
            for statement in workflow.statements:
                plain[statement.name] = _plain(statement.expression, plain)
                for node, _ in walk(statement.expression):
                    if not isinstance(node, Union | Sensor | Name | Number):
                        found.update(*(_plain(child, plain) for child in children(node)))
        return frozenset(found)

    def to_json(self) -> dict[str, PlainData]:
        """Return plain data; ``ScriptConfig.from_json`` reads it back.

        Defaults of ``watermark``, ``cluster`` and ``idle_after_us`` are left out.
        """
        data = Settings.to_json(self)
        if self.watermark == "fixed":
            del data["watermark"]
        if self.idle_after_us is None:
            del data["idle_after_us"]
        if self.cluster == CLUSTER:
            del data["cluster"]
        data["sensors"] = [list(pair) for pair in self.sensors]
        data["workflows"] = [
            [
                each.name,
                *([item.name, expression_to_json(item.expression)] for item in each.statements),
            ]
            for each in self.workflows
        ]
        return data

    @classmethod
    def _decoded(cls, data: JsonObject) -> dict[str, PlainData]:
        try:
            sensors = tuple((sensor, per_hour) for sensor, per_hour in data["sensors"])
            listed = [(name, list(statements)) for name, *statements in data["workflows"]]
            pairs = [(name, [(left, right) for left, right in rows]) for name, rows in listed]
        except (TypeError, ValueError) as error:
            msg = "workflows and sensors must be lists: of names with statements, of pairs"
            raise ValueError(msg) from error
        workflows = tuple(
            Workflow(
                name, tuple(Statement(left, expression_from_json(right)) for left, right in rows)
            )
            for name, rows in pairs
        )
        return {**data, "workflows": workflows, "sensors": sensors}


def _plain(expression: Expression, names: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """Return the sensors whose tuples reach an expression unchanged."""
    if isinstance(expression, Sensor):
        return frozenset([expression.id])
    if isinstance(expression, Name):
        return names[expression.name]
    if isinstance(expression, Union):
        return frozenset().union(*(_plain(part, names) for part in expression.parts))
    return frozenset()


# --------------------------------------------------------------------------------------- steps


class Result(NamedTuple):
    """A computed tuple of a named stream; a window or arithmetic computes it."""

    workflow: str
    name: str
    ts_us: int
    value: float


class Undefined(NamedTuple):
    """A time at which the value of a statement is not a finite number."""

    workflow: str
    name: str
    ts_us: int


class Rejected(NamedTuple):
    """An arrival that is in no result, with the reason."""

    seq: int
    reason: str


class Hosted(NamedTuple):
    """A sensor with a worker that receives its tuples."""

    worker: int
    sensor: str


WORDS: tuple[type, ...] = (Result, Undefined, Rejected, Hosted)
ANSWERS: Mapping[type, tuple[str, ...]] = {
    word: fields_of(word) for word in (Result, Undefined, Rejected)
}
"""Fields of answers: the results, the times without one, and the arrivals in no result."""
