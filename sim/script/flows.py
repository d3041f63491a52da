"""When the tuples of sensors reach the workers: all at once, as arrays.

Rules of this file:

* What comes from sensors does not depend on what workers do: a line sends one tuple after the other
  at its bandwidth, and hands it over a latency later. So the times are a running maximum, and there
  is no event queue. ``tests/sim`` holds it to the links of the simulation.
* Everything on the way to a worker stays in order, so every worker has the tuples of a sensor as
  they arrived.
* Where sensors go by the hash of their names, what others need of them is sent on from there, as
  soon as it comes in.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from model.script.graph import SENSOR, Graph
from model.script.placement import BY_SENSOR, Placement, home
from model.script.run import Intake
from model.vocabulary import Event
from sim.kernel.disorder import IntArray
from sim.kernel.distributions import FloatArray
from sim.kernel.link import Tier
from sim.script.crew import Crew


class Flow(NamedTuple):
    """Tuples on their way into a worker, in the order in which they come."""

    due_us: FloatArray
    tuples: IntArray
    """Their positions among all that is sent."""


class Sent(NamedTuple):
    """The arrivals of sensors that are asked for."""

    arrived_us: FloatArray
    sensors: IntArray
    """The node of each one's sensor."""
    marks_us: IntArray
    """The watermark of each one's sensor when it has been taken."""


def taken(arrivals: Iterable[Event], graph: Graph, intake: Intake, start_us: int) -> Sent:
    """Let arrivals in, or not; both are sent on. None arrives before the run starts."""
    nodes = {node.sensor: number for number, node in enumerate(graph.nodes) if node.kind == SENSOR}
    asked = intake.asked(arrivals)
    marks_us = intake.take(asked)
    arrived_us = [event.arrival_us - start_us for event in asked]
    return Sent(
        np.maximum(np.array(arrived_us, dtype=np.float64), 0.0),
        np.array([nodes[event.key] for event in asked], dtype=np.int64),
        np.array(marks_us, dtype=np.int64),
    )


def over(tier: Tier, size_bytes: int, sent_us: FloatArray) -> FloatArray:
    """When messages of equal size arrive that were given to a line at these times, in order."""
    sending_us = 8 * size_bytes / tier.bandwidth_mbps
    earlier = np.arange(len(sent_us)) * sending_us
    free_us = np.maximum.accumulate(sent_us - earlier) + earlier + sending_us
    due_us: FloatArray = free_us + tier.latency_us
    return due_us


def flows(sent: Sent, placement: Placement, crew: Crew) -> list[Flow]:
    """What every worker is sent."""
    workers = range(len(placement.hosts))
    if placement.way != BY_SENSOR:
        return [_direct(sent, placement.hosts[each], crew, each) for each in workers]
    homes = {
        sensor: home(placement.graph, sensor, len(workers))
        for hosts in placement.hosts
        for sensor in hosts
    }
    at_home = [
        _direct(sent, [each for each in homes if homes[each] == worker], crew, worker)
        for worker in workers
    ]
    found = []
    for worker in workers:
        others = [
            _onward(sent, at_home[each], crew, (each, worker), needed)
            for each in workers
            if each != worker
            and (needed := [s for s in placement.hosts[worker] if homes[s] == each])
        ]
        found.append(_merged([at_home[worker], *others]))
    return found


def _direct(sent: Sent, sensors: Iterable[int], crew: Crew, worker: int) -> Flow:
    """From where the arrivals are."""
    tuples = np.flatnonzero(np.isin(sent.sensors, list(sensors)))
    due_us = over(crew.way_to(worker), crew.tuple_bytes, sent.arrived_us[tuples])
    return Flow(due_us, tuples)


def _onward(
    sent: Sent, come: Flow, crew: Crew, way: tuple[int, int], sensors: Iterable[int]
) -> Flow:
    """From the worker that they have come to, to another one."""
    kept = np.isin(sent.sensors[come.tuples], list(sensors))
    due_us = over(crew.between(*way), crew.tuple_bytes, come.due_us[kept])
    return Flow(due_us, come.tuples[kept])


def _merged(parts: list[Flow]) -> Flow:
    """What comes over several lines."""
    due_us, tuples = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.argsort(due_us, kind="stable")
    return Flow(due_us[order], tuples[order])
