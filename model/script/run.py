"""A run of the model: a workload through a sharing graph (docs/script.md, as a whole).

Rules of this file:

* This file only connects the parts: arrivals are admitted, the graph is computed from them, and
  outputs are recorded by workflow.
* The admitted tuples determine everything, so cuts, restarts and kills need nothing here.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

from model.script.evaluation import evaluate
from model.script.graph import Graph, Output, compile_graph
from model.script.intake import REDELIVERED, Intake
from model.script.placement import Placement, place
from model.script.rules import RULES, Rules
from model.script.silence import Silences
from model.script.stream import Point, Stream, before
from model.vocabulary import ScriptConfig, Step, System, Trace, Workload
from model.vocabulary.script.config import END_US, Hosted, Rejected, Result, Undefined

PRODUCER = "model"


class Records:
    """Maps windows and operations to the steps that are recorded, for all workflows."""

    def __init__(self, graph: Graph) -> None:
        self._named: dict[int, list[Output]] = {}
        self._written: dict[int, list[Output]] = {}
        for output in graph.outputs:
            if output.is_result:
                self._named.setdefault(output.node, []).append(output)
            for number in output.own:
                self._written.setdefault(number, []).append(output)

    def results(self, number: int, point: Point) -> list[Step]:
        """Return the results that record a tuple of a window or an operation."""
        named = self._named.get(number, ())
        return [Result(output.workflow, output.name, *point) for output in named]

    def undefined(self, number: int, stamps: Iterable[int]) -> list[Step]:
        """Return the steps that record stamps without a finite result."""
        written = self._written.get(number, ())
        return [
            Undefined(output.workflow, output.name, stamp) for stamp in stamps for output in written
        ]


def results(graph: Graph, streams: Sequence[Stream]) -> Iterator[Step]:
    """Yield the tuples of every computed name, and the times at which it was undefined."""
    records = Records(graph)
    # Several computations of a statement may be undefined at one stamp.
    undefined: dict[Step, None] = {}
    for number, stream in enumerate(streams):
        for point in stream.points:
            yield from records.results(number, point)
        undefined |= dict.fromkeys(records.undefined(number, stream.undefined))
    yield from undefined


def hosted_sensors(placement: Placement) -> Iterator[Hosted]:
    """Yield a step for each sensor that a worker is sent."""
    for worker, sensors in enumerate(placement.hosts):
        for each in sensors:
            yield Hosted(worker, placement.graph.nodes[each].sensor)


def run(workload: Workload, rules: Rules = RULES) -> Trace:
    """Return the reference trace of a workload.

    Raises ``ValueError`` with one sentence if the configuration is invalid.
    """
    config = ScriptConfig.from_json(workload.config)
    graph = compile_graph(config, rules)
    sensors, rejected = admit(workload, config, rules)
    streams = evaluate(graph, sensors, rules)
    placement = place(graph, config.workers, config.cap_percent, rules)
    return Trace(PRODUCER, [*rejected, *results(graph, streams), *hosted_sensors(placement)])


def admit(
    workload: Workload, config: ScriptConfig, rules: Rules
) -> tuple[Mapping[str, Stream], Sequence[Rejected]]:
    """Return the streams of all sensors, and the arrivals that are refused.

    The stream of a sensor that no script reads is empty.
    """
    asked_for = config.asked_for
    intake = Intake(config, rules, [sensor for sensor, _ in config.sensors])
    silences = Silences(config, rules)
    points: dict[str, list[Point]] = {sensor: [] for sensor in intake.clocks}
    rejected: list[Rejected] = []
    for event in workload.arrivals:
        if event.key in asked_for:
            reason = intake.why_not(event, silences.floor_us(event.key))
            if reason is None:
                points[event.key].append((event.event_time_us, event.value + 0.0))
            elif reason != REDELIVERED:
                rejected.append(Rejected(event.seq, reason))
        silences.take(event)
    for sensor, floor_us in silences.floors_us(intake.clocks).items():
        intake.raise_to(sensor, floor_us)
    sensors: dict[str, Stream] = {}
    for sensor, clock in intake.clocks.items():
        until_us = END_US if workload.flush else clock.watermark_us
        sensors[sensor] = Stream(tuple(before(sorted(points[sensor]), until_us)), until_us)
    return sensors, rejected


def system(rules: Rules) -> System:
    """Return a System that follows these rules."""
    return partial(run, rules=rules)


def make_system() -> System:
    """Return the reference as a System."""
    return system(RULES)
