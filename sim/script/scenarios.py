"""Scenarios of sensor scripts: sets of workflows, and simulated streams of their sensors.

Rules of this file:

* Sensors are named after the seed, so that figures that depend on the hash of the names can be
  averaged over many sets of names.
* Every sensor sends at its own rate, and starts a little after the sensor before it. A tuple leaves
  after a random delay (jitter), and then takes the sensor's own link to the log.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from model.vocabulary.script.tree import (
    Across,
    Arithmetic,
    Expression,
    Name,
    Sensor,
    Statement,
    Union,
    Window,
    Workflow,
)
from model.vocabulary.settings import require
from sim.clusters import place_of
from sim.kernel.disorder import Burst, Disturbance, Gap
from sim.kernel.distributions import Constant, Exponential
from sim.kernel.plan import Plan
from sim.kernel.seeds import Seeds
from sim.kernel.source import NO_DELAY, Source

SECOND_MS = 1_000
SECTION = 4
"""Number of sensors in a section of the bridge."""
SPANS_S = ((2, 1), (4, 4), (6, 2), (10, 1), (10, 5))
"""Lengths and slides (s) of the windows over a sensor, whose panes are a second wide."""
SPARE = 12
"""Distance between two sensors that no workflow reads."""


class WorkflowSizes(NamedTuple):
    """Sizes of a set of workflows."""

    sensors: int
    seed: int
    shared: int = 8
    """Number of sensors that unions read, too."""
    together: int = 2
    """Number of sensors of a union, or of a drawn window."""
    windows: int = 3
    """Number of windows of a drawn workflow."""
    workflows: int | None = None
    """Number of drawn workflows; ``None``: as many as there are sensors."""


class WorkflowSet(NamedTuple):
    """Workflows and all sensors."""

    workflows: tuple[Workflow, ...]
    sensors: tuple[str, ...]


def names(sizes: WorkflowSizes) -> tuple[str, ...]:
    """Return the names of all sensors."""
    return tuple([f"8MD{sizes.seed}-{each}" for each in range(sizes.sensors)])


def average(sensors: Sequence[str], length_s: int, slide_s: int) -> Window:
    """Return a window over all tuples of some sensors."""
    parts = tuple([Sensor(each) for each in sensors])
    return Window("avg", Union(parts), length_s * SECOND_MS, slide_s * SECOND_MS)


def flow(name: str, expressions: Mapping[str, Expression]) -> Workflow:
    """Return a workflow with a statement for each of the named expressions."""
    return Workflow(name, tuple([Statement(each, means) for each, means in expressions.items()]))


def bridge(sizes: WorkflowSizes) -> WorkflowSet:
    """Return workflows for sections of a bridge, four sensors each, and between every two of them.

    A section has a short window over each of its sensors, a long window over all of them, the
    excess of the largest short window over the long one, and the peak of its first sensor. Two
    neighbouring sections have the difference of their long windows. Every twelfth sensor is read by
    no workflow.
    """
    there = names(sizes)
    used = [each for number, each in enumerate(there) if number % SPARE != SPARE - 1]
    sections = [used[first : first + SECTION] for first in range(0, len(used), SECTION)]
    flows = [_section(number, sensors) for number, sensors in enumerate(sections)]
    for number, (left, right) in enumerate(pairwise(sections)):
        if number % 2 == 0:
            statements: dict[str, Expression] = {"left": average(left, 10, 5)}
            statements["right"] = average(right, 10, 5)
            statements["lean"] = Arithmetic("-", Name("left"), Name("right"))
            flows.append(flow(f"between-{number}-{number + 1}", statements))
    return WorkflowSet(tuple(flows), there)


def _section(number: int, sensors: Sequence[str]) -> Workflow:
    statements: dict[str, Expression] = {
        f"short_{each}": average([sensor], 2, 1) for each, sensor in enumerate(sensors)
    }
    statements["most"] = Across("max", tuple([Name(each) for each in statements]))
    statements["all"] = average(sensors, 10, 5)
    statements["above"] = Arithmetic("-", Name("most"), Name("all"))
    statements["peak"] = Window("max", Sensor(sensors[0]), 10 * SECOND_MS, SECOND_MS)
    return flow(f"section-{number}", statements)


def spans(sizes: WorkflowSizes) -> WorkflowSet:
    """Return workflows with windows of several lengths and slides over every sensor."""
    there = names(sizes)
    flows = [
        flow(
            f"w{n}-{length_s}-{slide_s}",
            {f"x{length_s}_{slide_s}": average([each], length_s, slide_s)},
        )
        for n, each in enumerate(there)
        for length_s, slide_s in SPANS_S
    ]
    return WorkflowSet(tuple(flows), there)


def shared(sizes: WorkflowSizes) -> WorkflowSet:
    """Return workflows over equal sensors: one window per sensor, and windows over unions of some.

    Each window is a workflow, as in the published experiment with 16 sensors.
    """
    there = names(sizes)
    require(0 <= sizes.shared <= len(there), "shared", sizes.shared, f"0 to {len(there)}")
    require(sizes.together >= 1, "together", sizes.together, "at least 1")
    read = [[each] for each in there]
    for first in range(0, sizes.shared, sizes.together):
        read.append(list(there[first : min(first + sizes.together, sizes.shared)]))
    flows = [flow(f"w{n}", {"x": average(sensors, 2, 1)}) for n, sensors in enumerate(read)]
    return WorkflowSet(tuple(flows), there)


def drawn(sizes: WorkflowSizes) -> WorkflowSet:
    """Return workflows of a few windows, each over sensors drawn at random, and their maximum."""
    there = names(sizes)
    require(sizes.together >= 1, "together", sizes.together, "at least 1")
    require(sizes.windows >= 1, "windows", sizes.windows, "at least 1")
    rng = Seeds(sizes.seed).stream("workflows")
    flows = []
    for number in range(len(there) if sizes.workflows is None else sizes.workflows):
        statements: dict[str, Expression] = {}
        for each in range(sizes.windows):
            picked = rng.integers(len(there), size=sizes.together).tolist()
            statements[f"q{each}"] = average([there[one] for one in picked], 4, 2)
        statements["out"] = Across("max", tuple([Name(each) for each in statements]))
        flows.append(flow(f"w{number}", statements))
    return WorkflowSet(tuple(flows), there)


SETS: Mapping[str, Callable[[WorkflowSizes], WorkflowSet]] = {
    "bridge": bridge,
    "shared": shared,
    "drawn": drawn,
    "spans": spans,
}
"""Sets of workflows."""


# ---------------------------------------------------------------------------------------- sensors

SECOND_US = 1_000_000
HOUR_US = 3_600 * SECOND_US
JITTER = Exponential(30_000)
BURST = Exponential(400_000)
NEAR = place_of("rack", 0)
"""Place of the sensors, in the rack of the log."""
CALM = "calm"
DISORDERS = (CALM, "jitter", "gaps", "bursts", "gaps-and-bursts")
"""Kinds of disorder; all but the first one have jitter."""


class Sending(NamedTuple):
    """Sensors that send for a while."""

    sensors: Sequence[tuple[str, int]]
    """Names of sensors, each with its tuples per hour."""
    seconds: int
    tuple_bytes: int = 100

    @property
    def period_us(self) -> int:
        """Time for which the sensors send."""
        return self.seconds * SECOND_US


def plan_of(sending: Sending, disorder: str) -> Plan:
    """Return the plan of sensors with a kind of disorder, one of :data:`DISORDERS`."""
    disturbances: tuple[Disturbance, ...] = _gaps(sending) if "gaps" in disorder else ()
    if "bursts" in disorder:
        disturbances += _bursts(sending)
    sources = []
    for number, (sensor, per_hour) in enumerate(sending.sensors):
        interval_us = HOUR_US / per_hour
        source = Source(
            events=per_hour * sending.seconds // 3_600,
            interval=Constant(interval_us),
            start_us=int(interval_us * number / len(sending.sensors)),
            delay=NO_DELAY if disorder == CALM else JITTER,
            keys=(sensor,),
            bits=8 * sending.tuple_bytes,
            place=NEAR,
        )
        sources.append(source)
    name = f"{disorder}, simulated"
    return Plan(tuple(sources), disturbances=disturbances, name=name)


def _gaps(sending: Sending) -> tuple[Disturbance, ...]:
    """Silence every third sensor for a sixth of the time."""
    start_us, length_us = sending.period_us // 2, max(1, sending.period_us // 6)
    return tuple([Gap(start_us, length_us, each) for each in range(0, len(sending.sensors), 3)])


def _bursts(sending: Sending) -> tuple[Disturbance, ...]:
    """Delay half of the tuples by 0.4 s on average, in two phases of a tenth of the time each."""
    period_us = sending.period_us
    length_us = max(1, period_us // 10)
    return tuple([Burst(period_us * at // 10, length_us, 0.5, BURST) for at in (3, 7)])
