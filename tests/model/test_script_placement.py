"""Computations that scripts share, and placements that are worked out by hand."""

from collections.abc import Mapping, Sequence
from fractions import Fraction

import pytest

from model.script.claims import least_makespan
from model.vocabulary.script.graph import Graph, compile_workflows
from model.vocabulary.script.placement import (
    place,
    place_whole,
)
from model.vocabulary.script.tree import Arithmetic, Sensor, Statement, Union, Window, Workflow
from straggler.rooms.script.language import parse

# ------------------------------------------------------------- expressions that are one computation


RATES = {"a": 3_600, "b": 7_200, "c": 1}


def graph_of_scripts(*scripts: str) -> Graph:
    flows = [parse(text, f"w{number}", RATES) for number, text in enumerate(scripts)]
    return compile_workflows(flows, RATES)


@pytest.mark.parametrize(
    "scripts",
    [
        ['x = max("a", 8, 4)', 'y = max("a", 8, 4)'],
        ['x = avg(union("a", "b"), 8, 4)', 'y = avg(union("b", union("a")), 8, 4)'],
        ['u = union("a", "b"); x = sum(u, 8, 4)', 'x = sum(union("b", "a"), 8, 4)'],
        ['x = "a" + "b"', 'x = "b" + "a"'],
        ['x = "a" * 2', 'x = 2 * "a"'],
        ['x = max("a", "b", "a")', 'x = max("a", "a", "b")'],
        ['x = "a" / (2 + 2)', 'x = "a" / 4'],
        ['x = max("a", 1, 1); y = x', 'z = max("a", 1, 1)'],
    ],
)
def test_equal_expressions_are_one_computation(scripts: Sequence[str]) -> None:
    graph = graph_of_scripts(*scripts)
    assert len(graph.computed) == 1
    assert graph.written == 2


@pytest.mark.parametrize(
    "scripts",
    [
        ['x = max("a", 8, 4)', 'x = max("b", 8, 4)'],
        ['x = max("a", 8, 4)', 'x = max("a", 8, 8)'],
        ['x = max("a", 8, 4)', 'x = min("a", 8, 4)'],
        ['x = avg(union("a", "a"), 8, 4)', 'x = avg("a", 8, 4)'],
        ['x = "a" - "b"', 'x = "b" - "a"'],
        ['x = "a" / "b"', 'x = "b" / "a"'],
        ['x = sum("a", "b")', 'x = "a" + "b"'],
        ['x = max("a")', 'x = max("a", "a")'],
        ['x = max("a", "b")', 'x = max(union("a", "b"), 1, 1)'],
    ],
)
def test_different_expressions_are_two_computations(scripts: Sequence[str]) -> None:
    assert len(graph_of_scripts(*scripts).computed) == 2


# --------------------------------------------------------------------------------------- placements


HOUR_MS = 3_600_000


def average(*sensors: str) -> Window:
    return Window("avg", Union(tuple(Sensor(each) for each in sensors)), HOUR_MS, HOUR_MS)


def graph_of(rates: Mapping[str, int], *read: Sequence[str]) -> Graph:
    """Return a graph with a window over each of these sets of sensors."""
    statements = tuple(Statement(f"x{n}", average(*sensors)) for n, sensors in enumerate(read))
    return compile_workflows([Workflow("w", statements)], rates)


def alone(*rates: int) -> Graph:
    """Return a graph of sensors with these rates that share nothing."""
    return graph_of(
        {f"s{n}": rate for n, rate in enumerate(rates)}, *((f"s{n}",) for n in range(len(rates)))
    )


def test_lpt_reaches_its_bound() -> None:
    # Graham's example: 11 instead of 9, which is 4/3 - 1/9 for 3 workers.
    graph = alone(5, 5, 4, 4, 3, 3, 3)
    assert max(place_whole(graph, 3, is_charged=True).loads) == 11
    assert least_makespan([Fraction(each) for each in (5, 5, 4, 4, 3, 3, 3)], 3) == 9


@pytest.mark.parametrize(("fast_rate", "slow_rate", "worker"), [(10, 1, 0), (1, 10, 1)])
def test_an_operation_is_where_most_of_its_results_are(
    fast_rate: int, slow_rate: int, worker: int
) -> None:
    # No worker may have more than 5.5 tuples an hour: the window over more tuples is on worker 0
    # and the other one on worker 1. One window has 3,600 results an hour, the other one has one.
    fast, slow = Window("avg", Sensor("fast"), 1_000, 1_000), average("slow")
    flow = Workflow("w", (Statement("x", Arithmetic("-", slow, fast)),))
    graph = compile_workflows([flow], {"fast": fast_rate, "slow": slow_rate})
    operation = max(graph.computed)
    rate_at = {
        placed_on: graph.per_hour[number]
        for number, placed_on in place(graph, 2, 100).worker.items()
        if number != operation
    }
    assert rate_at == {worker: 3_600, 1 - worker: 1}
    assert place(graph, 2, 100).worker[operation] == worker
