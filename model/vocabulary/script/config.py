"""The settings of a set of workflows."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from model.vocabulary.script.problems import problems
from model.vocabulary.script.steps import TIME_END_US
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
from model.vocabulary.settings import is_int, require, require_known

PER_HOUR_MAX = 3_600_000_000
WATERMARKS = ("fixed", "disorder", "scaled")
CLUSTER = 50
"""Arrivals of a cluster, where nothing else is said."""


@dataclass(frozen=True, slots=True)
class ScriptConfig:
    """Workflows that run together, the sensors there are, and the workers.

    Raises ``ValueError`` with one sentence that names the offending value.
    """

    workflows: tuple[Workflow, ...]
    sensors: tuple[tuple[str, int], ...]
    """Each with the tuples it sends in an hour."""
    workers: int = 1
    lateness_us: int | None = None
    """How far a tuple may lie behind the latest one of its sensor; ``None``: nothing is late."""
    cap_percent: int = 125
    """The most that a worker should have, as a share of an even split."""
    watermark: str = "fixed"
    """How far a watermark lies behind: ``fixed`` by ``lateness_us``; ``disorder`` and ``scaled``
    by a share of it, by the disorder of the sensor's last arrivals."""
    cluster: int = CLUSTER
    """How many arrivals those are."""

    def __post_init__(self) -> None:
        self._require_sensors()
        self._require_workflows()
        good = is_int(self.workers) and 0 < self.workers <= 10_000
        require(good, "workers", self.workers, "an integer from 1 to 10000")
        good = self.lateness_us is None or (is_int(self.lateness_us) and self.lateness_us >= 0)
        require(good, "lateness_us", self.lateness_us, "an integer, at least 0, or nothing")
        good = is_int(self.cap_percent) and self.cap_percent >= 100
        require(good, "cap_percent", self.cap_percent, "an integer, at least 100")
        self._require_watermark()

    def _require_watermark(self) -> None:
        expected = f"one of {', '.join(WATERMARKS)}"
        require(self.watermark in WATERMARKS, "watermark", self.watermark, expected)
        good = is_int(self.cluster) and self.cluster >= 1
        require(good, "cluster", self.cluster, "an integer, at least 1")
        if self.watermark == "fixed":
            return
        told = f"an integer below 2^61 with the watermark {self.watermark!r}"
        limit_us = self.lateness_us
        require(limit_us is not None and limit_us < TIME_END_US, "lateness_us", limit_us, told)
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
        require(twice is None, "the sensor", twice, "there once")

    def _require_workflows(self) -> None:
        require(bool(self.workflows), "workflows", self.workflows, "one at least")
        known = {sensor for sensor, _ in self.sensors}
        names = set()
        for workflow in self.workflows:
            require(isinstance(workflow, Workflow), "a workflow", workflow, "a Workflow")
            require(workflow.name not in names, "the workflow", workflow.name, "there once")
            names.add(workflow.name)
            for problem in problems(workflow, known):
                msg = f"workflow {workflow.name!r}: {problem.sentence}"
                raise ValueError(msg)

    @property
    def asked_for(self) -> frozenset[str]:
        """Sensors from which something is computed; others are dropped where they come in."""
        found: set[str] = set()
        for workflow in self.workflows:
            plain: dict[str, frozenset[str]] = {}
            """Sensors that a name or a union of it stands for."""
            for statement in workflow.statements:
                plain[statement.name] = _plain(statement.expression, plain)
                for node, _ in walk(statement.expression):
                    if not isinstance(node, Union | Sensor | Name | Number):
                        found.update(*(_plain(child, plain) for child in children(node)))
        return frozenset(found)

    def to_json(self) -> dict[str, Any]:
        """Plain data; ``ScriptConfig.from_json`` reads it back.

        The choice of a watermark stands there if it is not the usual one.
        """
        data = {item.name: getattr(self, item.name) for item in fields(self)}
        if self.watermark == "fixed":
            del data["watermark"]
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
    def from_json(cls, data: Mapping[str, Any]) -> "ScriptConfig":
        """Build from plain data; an unknown or missing name is a ``ValueError``."""
        require_known(data, {item.name for item in fields(cls)}, ("workflows", "sensors"))
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
        return cls(**{**data, "workflows": workflows, "sensors": sensors})


def _plain(expression: Expression, names: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """The sensors whose tuples an expression has as they come."""
    if isinstance(expression, Sensor):
        return frozenset([expression.id])
    if isinstance(expression, Name):
        return names[expression.name]
    if isinstance(expression, Union):
        return frozenset().union(*(_plain(part, names) for part in expression.parts))
    return frozenset()
