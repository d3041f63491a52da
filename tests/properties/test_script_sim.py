"""Timed runs of room ``script`` send what placements predict (docs/script.md)."""

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import pytest

from model.script.meaning import operation, union, window
from model.script.rules import RULES
from model.script.run import admit
from model.script.stream import Stream, before
from model.vocabulary import Event, ScriptConfig, Workload
from model.vocabulary.script.graph import SENSOR, UNION, Graph
from model.vocabulary.script.placement import Placement
from sim.kernel.plan import Plan
from sim.kernel.run import run as run_plan
from sim.script.cluster import ScriptCluster
from sim.script.host import ScriptTuning
from sim.script.placements import PLACEMENTS, compile_placed
from sim.script.scenarios import HOUR_US, SETS
from sim.script.settings import prepare
from sim.script.worker import Worker

SETTINGS = {"sensors": "10", "rates_hz": "10,5", "seconds": "20", "cap_percent": "110"}


class InspectedRun(NamedTuple):
    """A run with its room, whose messages are inspected."""

    room: ScriptCluster
    placed: Placement
    events: Sequence[Event]

    @property
    def graph(self) -> Graph:
        """The graph of all scripts."""
        return self.placed.graph

    @property
    def loads(self) -> list[int]:
        """Number of tuples sent to each worker, by worker index."""
        return [len(host.came_us) for host in self.room.hosts]

    @property
    def hours(self) -> Fraction:
        """Length of the period in which sensors should send."""
        assert self.room.tuning.period_us is not None
        return Fraction(self.room.tuning.period_us, HOUR_US)

    def results(self) -> int:
        """Return the results that workers sent to other workers within the period."""
        assert self.room.tuning.period_us is not None
        end_us = self.room.plan.epoch_us + self.room.tuning.period_us
        return sum(stamp_us < end_us for sent in self.room.sent() for stamp_us in sent.stamps_us)


def inspect_run(plan: Plan, config: ScriptConfig, seed: int) -> InspectedRun:
    scripts = compile_placed(config, plan.tuned(ScriptTuning()).placement)
    room, arrived = run_plan(
        plan, seed, lambda env, seeds: ScriptCluster(env, seeds, plan, scripts, Worker)
    )
    return InspectedRun(room, scripts.placement, arrived.events)


def evaluated(seen: InspectedRun) -> list[Stream]:
    """Evaluate scripts without numbers over all tuples at once, computation by computation."""
    config, flush = seen.room.config, seen.room.plan.flush
    workload = Workload("script", tuple(seen.events), config.to_json(), flush=flush)
    sensors, _ = admit(workload, config, RULES)
    streams: list[Stream] = []
    for node in seen.graph.nodes:
        inputs = {each: streams[each] for each in node.inputs}
        if node.kind == SENSOR:
            streams.append(sensors[node.sensor])
        elif node.span is not None:
            streams.append(window(node.op, node.span, streams[node.inputs[0]]))
        elif node.kind == UNION:
            streams.append(union([streams[each] for each in node.inputs]))
        else:
            until_us = min(each.until_us for each in inputs.values())
            points = {each: before(known.points, until_us) for each, known in inputs.items()}
            latest: dict[int, float | None] = dict.fromkeys(inputs)
            streams.append(operation(node.op, node.inputs, latest, points, until_us, RULES))
    return streams


def inspect_settings(seed: int, **settings: object) -> InspectedRun:
    texts = {**SETTINGS, **{key: str(value) for key, value in settings.items()}}
    return inspect_run(*prepare(texts, seed))


BY_DAY = ("plan", "by-unit")


@pytest.mark.parametrize(
    "way",
    [each if each in BY_DAY else pytest.param(each, marks=pytest.mark.long) for each in PLACEMENTS],
)
@pytest.mark.parametrize("scenario", SETS)
def test_loads_follow_from_the_rates(seed: int, scenario: str, way: str) -> None:
    # Sensors keep to their rates, and what delays them changes nothing.
    timed = inspect_settings(seed, scenario=scenario, placement=way, disorder="bursts")
    placed, graph = timed.placed, timed.graph
    assert timed.loads == [load * timed.hours for load in placed.loads]
    assert timed.room.tuning.period_us is not None
    end_us = timed.room.plan.epoch_us + timed.room.tuning.period_us
    streams = evaluated(timed)
    windows, others = Fraction(), Fraction()
    for number, readers in placed.readers.items():
        within = sum(stamp_us < end_us for stamp_us, _ in streams[number].points)
        times, predicted = len(readers) * within, len(readers) * graph.per_hour[number]
        # A window has a result each slide; an operation at most one whenever an input has.
        if graph.nodes[number].span is None:
            assert times <= predicted * timed.hours
            others += times
        else:
            assert times == predicted * timed.hours
            windows += times
    assert timed.results() == windows + others
    if scenario not in ("shared", "spans") and way in ("all-split", "by-unit", "by-sensor"):
        assert windows, "no result of a window was sent"
    if not others:
        assert timed.results() == placed.derived * timed.hours
