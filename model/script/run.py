"""A workload through a sharing graph (docs/script.md, as a whole).

Rules of this file:

* It only carries things from one part to the next: arrivals are let in, the graph is computed from
  what they bring, and outputs are told by workflow.
* What has been let in determines everything, so cuts, restarts and kills need nothing here.
"""

from collections.abc import Iterable, Iterator
from math import isfinite

from model.script.evaluation import evaluate
from model.script.graph import SENSOR, Graph, compile_graph
from model.script.placement import Placement, place
from model.script.rules import RULES, Rules
from model.script.stream import Point, Stream, before
from model.vocabulary import Event, ScriptConfig, Step, System, Trace, Workload
from model.vocabulary.script import (
    END_US,
    REASON_LATE,
    REASON_NOT_FINITE,
    TIME_END_US,
    Hosted,
    Rejected,
    Result,
    Undefined,
)
from model.windows.cluster import Cluster, wait_us

PRODUCER = "model"


class Intake:
    """Sensors whose tuples are let in, or not."""

    def __init__(self, config: ScriptConfig, rules: Rules) -> None:
        self.config = config
        self.rules = rules
        self.asked_for = config.asked_for
        self.points: dict[str, list[Point]] = {each: [] for each, _ in config.sensors}
        self.ids: dict[str, set[int]] = {each: set() for each, _ in config.sensors}
        self.watermark_us = {each: 0 for each, _ in config.sensors}
        self.latest_us = {each: 0 for each, _ in config.sensors}
        self._is_following = config.watermark != "fixed"
        self.clusters: dict[str, Cluster] = {}
        """Where watermarks follow them."""
        self.rejected: list[Rejected] = []

    def asked(self, arrivals: Iterable[Event]) -> list[Event]:
        """Those of sensors that somebody asks for; the others are dropped."""
        asked_for = self.asked_for
        return [event for event in arrivals if event.key in asked_for]

    def take(self, asked: Iterable[Event]) -> list[int]:
        """Take the next arrivals; for each, the watermark of its sensor when it has been taken.

        Raises ``ValueError`` with one sentence for an event time that cannot be.
        """
        # A long workload comes through here tuple by tuple: what is the same for all is outside.
        watermark_us, ids, points, advance = self.watermark_us, self.ids, self.points, self._advance
        taken_us: list[int] = []
        for seq, source_id, sensor, stamp_us, value, _, _ in asked:
            if not 0 <= stamp_us < TIME_END_US:
                told = f"arrival {seq} has the event time {stamp_us}"
                msg = f"{told}; it must be at least 0 and below 2^61"
                raise ValueError(msg)
            if not isfinite(value):
                self.rejected.append(Rejected(seq, REASON_NOT_FINITE))
            elif stamp_us < watermark_us[sensor]:
                self.rejected.append(Rejected(seq, REASON_LATE))
                if self.rules.enters_late:
                    advance(sensor, stamp_us)
            elif source_id not in ids[sensor]:
                ids[sensor].add(source_id)
                points[sensor].append((stamp_us, value + 0.0))
                advance(sensor, stamp_us)
            taken_us.append(watermark_us[sensor])
        return taken_us

    def _advance(self, sensor: str, stamp_us: int) -> None:
        lateness_us = self.config.lateness_us
        if lateness_us is None:
            return
        if self._is_following:
            self._follow(sensor, stamp_us, lateness_us)
            return
        marks_us, reached_us = self.watermark_us, stamp_us - lateness_us
        if reached_us > marks_us[sensor]:
            marks_us[sensor] = reached_us
        if not self.rules.is_per_sensor:
            marks_us.update({each: max(mark, reached_us) for each, mark in marks_us.items()})

    def _follow(self, sensor: str, stamp_us: int, most_us: int) -> None:
        """One more arrival enters the cluster; the watermark is behind the latest by its wait."""
        whose = self.rules.cluster_of(sensor)
        cluster = self.clusters.setdefault(whose, Cluster(self.config.cluster))
        cluster.enter(stamp_us)
        latest_us = self.latest_us[sensor] = max(self.latest_us[sensor], stamp_us)
        reached_us = latest_us - wait_us(self.config.watermark, most_us, cluster)
        self.watermark_us[sensor] = self.rules.watermark_us(self.watermark_us[sensor], reached_us)

    def stream(self, sensor: str, flush: bool) -> Stream:
        """What is known of a sensor in the end."""
        until_us = END_US if flush else self.watermark_us[sensor]
        return Stream(tuple(before(sorted(self.points[sensor]), until_us)), until_us)


def results(graph: Graph, streams: list[Stream]) -> Iterator[Step]:
    """The tuples of every name that is computed, and where it could not be."""
    for output in graph.outputs:
        if output.is_result:
            for point in streams[output.node].points:
                yield Result(output.workflow, output.name, *point)
        for stamp in frozenset[int]().union(*(streams[each].undefined for each in output.own)):
            yield Undefined(output.workflow, output.name, stamp)


def hosted(placement: Placement) -> Iterator[Hosted]:
    """Which worker is sent which sensor."""
    for worker, sensors in enumerate(placement.hosts):
        for each in sensors:
            yield Hosted(worker, placement.graph.nodes[each].sensor)


def run(workload: Workload, rules: Rules = RULES) -> Trace:
    """The reference trace of a workload.

    Raises ``ValueError`` with one sentence for a configuration that cannot be.
    """
    config = ScriptConfig.from_json(workload.config)
    graph = compile_graph(config, rules)
    intake = Intake(config, rules)
    intake.take(intake.asked(workload.arrivals))
    sensors = {
        node.sensor: intake.stream(node.sensor, workload.flush)
        for node in graph.nodes
        if node.kind == SENSOR
    }
    streams = evaluate(graph, sensors, rules)
    placement = place(graph, config.workers, config.cap_percent, rules)
    steps: list[Step] = [*intake.rejected, *results(graph, streams), *hosted(placement)]
    return Trace(PRODUCER, steps)


def system(rules: Rules) -> System:
    """A System that follows these rules."""

    def run_with_rules(workload: Workload, /) -> Trace:
        return run(workload, rules)

    return run_with_rules


def make_system() -> System:
    """The reference as a System."""
    return system(RULES)
