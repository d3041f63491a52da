"""Expressions that are one computation, and those that are not."""

from collections.abc import Sequence

import pytest

from model.script.graph import Graph, compile_workflows
from straggler.rooms.script.language import parse

RATES = {"a": 3_600, "b": 7_200, "c": 1}


def graph_of(*scripts: str) -> Graph:
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
    graph = graph_of(*scripts)
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
    assert len(graph_of(*scripts).computed) == 2


def test_sums_are_not_put_together_in_another_way() -> None:
    graph = graph_of('x = ("a" + "b") + "c"', 'x = "a" + ("b" + "c")')
    assert len(graph.computed) == 4


def test_rates_are_what_can_come_at_most() -> None:
    graph = graph_of('x = max(union("a", "b", "a"), 1_000, 60_000); y = x + "c"; z = x * x')
    by_name = {each.name: int(graph.per_hour[each.node]) for each in graph.outputs}
    assert by_name == {"x": 60, "y": 61, "z": 120}
    union = next(number for number, node in enumerate(graph.nodes) if node.kind == "union")
    assert graph.per_hour[union] == 14_400


def test_inputs_come_before_what_needs_them() -> None:
    graph = graph_of('x = max("a", 8, 4); y = x - "b"; z = avg(union(y, x), 8, 4) / 2')
    for number, node in enumerate(graph.nodes):
        assert all(each < number for each in node.inputs)
