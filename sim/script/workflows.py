"""Sets of workflows to simulate, over any number of sensors. All made up.

Rules of this file:

* Sensors are named after the seed, so that what depends on the hash of their names can be averaged
  over many sets of names.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from model.vocabulary.script import (
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
from sim.kernel.seeds import Seeds

SECOND_MS = 1_000
SECTION = 4
"""Sensors that stand together."""
SPARE = 12
"""Of so many sensors one is asked for by nobody."""


class Wanted(NamedTuple):
    """What a set of workflows is made of."""

    sensors: int
    seed: int
    shared: int = 8
    """Sensors that unions read, too."""
    together: int = 2
    """Sensors of a union, or of a window that is drawn."""
    windows: int = 3
    """Of a workflow that is drawn."""
    workflows: int | None = None
    """That are drawn; nothing: as many as there are sensors."""


class Asked(NamedTuple):
    """Workflows, and the sensors that there are."""

    workflows: tuple[Workflow, ...]
    sensors: tuple[str, ...]


def names(wanted: Wanted) -> tuple[str, ...]:
    """The sensors that there are."""
    return tuple([f"8MD{wanted.seed}-{each}" for each in range(wanted.sensors)])


def average(sensors: Sequence[str], length_s: int, slide_s: int) -> Window:
    """A window over all tuples of some sensors."""
    parts = tuple([Sensor(each) for each in sensors])
    return Window("avg", Union(parts), length_s * SECOND_MS, slide_s * SECOND_MS)


def flow(name: str, said: Mapping[str, Expression]) -> Workflow:
    """A workflow with these statements."""
    return Workflow(name, tuple([Statement(each, means) for each, means in said.items()]))


def bridge(wanted: Wanted) -> Asked:
    """Sections of a bridge, four sensors each: a workflow for each, and one between every two.

    A section has a short window over each of its sensors, a long one over all, how far the largest
    of the short ones is above the long one, and the peak of its first sensor; two neighbours have
    the difference of their long ones. A sensor of twelve is asked for by nobody.
    """
    there = names(wanted)
    used = [each for number, each in enumerate(there) if number % SPARE != SPARE - 1]
    sections = [used[first : first + SECTION] for first in range(0, len(used), SECTION)]
    flows = [_section(number, sensors) for number, sensors in enumerate(sections)]
    for number, (left, right) in enumerate(pairwise(sections)):
        if number % 2 == 0:
            said: dict[str, Expression] = {"left": average(left, 10, 5)}
            said["right"] = average(right, 10, 5)
            said["lean"] = Arithmetic("-", Name("left"), Name("right"))
            flows.append(flow(f"between-{number}-{number + 1}", said))
    return Asked(tuple(flows), there)


def _section(number: int, sensors: Sequence[str]) -> Workflow:
    said: dict[str, Expression] = {
        f"short_{each}": average([sensor], 2, 1) for each, sensor in enumerate(sensors)
    }
    said["most"] = Across("max", tuple([Name(each) for each in said]))
    said["all"] = average(sensors, 10, 5)
    said["above"] = Arithmetic("-", Name("most"), Name("all"))
    said["peak"] = Window("max", Sensor(sensors[0]), 10 * SECOND_MS, SECOND_MS)
    return flow(f"section-{number}", said)


def shared(wanted: Wanted) -> Asked:
    """Equal sensors with a window each, some of which are read by windows over unions, too.

    A workflow for each window: the published experiment with 16 sensors.
    """
    there = names(wanted)
    require(0 <= wanted.shared <= len(there), "shared", wanted.shared, f"0 to {len(there)}")
    require(wanted.together >= 1, "together", wanted.together, "at least 1")
    read = [[each] for each in there]
    for first in range(0, wanted.shared, wanted.together):
        read.append(list(there[first : min(first + wanted.together, wanted.shared)]))
    flows = [flow(f"w{n}", {"x": average(sensors, 2, 1)}) for n, sensors in enumerate(read)]
    return Asked(tuple(flows), there)


def drawn(wanted: Wanted) -> Asked:
    """Workflows of a few windows, each over some sensors drawn at random, and their maximum."""
    there = names(wanted)
    require(wanted.together >= 1, "together", wanted.together, "at least 1")
    require(wanted.windows >= 1, "windows", wanted.windows, "at least 1")
    rng = Seeds(wanted.seed).stream("workflows")
    flows = []
    for number in range(len(there) if wanted.workflows is None else wanted.workflows):
        said: dict[str, Expression] = {}
        for each in range(wanted.windows):
            picked = rng.integers(len(there), size=wanted.together).tolist()
            said[f"q{each}"] = average([there[one] for one in picked], 4, 2)
        said["out"] = Across("max", tuple([Name(each) for each in said]))
        flows.append(flow(f"w{number}", said))
    return Asked(tuple(flows), there)


SETS: Mapping[str, Callable[[Wanted], Asked]] = {
    "bridge": bridge,
    "shared": shared,
    "drawn": drawn,
}
"""By name."""
