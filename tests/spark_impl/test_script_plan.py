"""Compiled workflows: nodes by hand, slices and placements against brute force."""

import random
from fractions import Fraction
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

from model.vocabulary import Event, ScriptConfig, task_of
from model.vocabulary.script.config import Hosted
from model.vocabulary.script.tree import (
    Across,
    Arithmetic,
    Expression,
    Name,
    Number,
    Sensor,
    Statement,
    Union,
    Window,
    Workflow,
)
from spark_impl.runtime.histories import history_schema
from spark_impl.script import compile_plan
from spark_impl.script.encoding import ARRIVAL
from spark_impl.script.explain import computations, cuttings, figures, workers
from spark_impl.script.graph import HOUR_MS, SENSOR, WINDOW, Graph, Node, make_graph
from spark_impl.script.router import Router, needed_since_us
from spark_impl.script.slices import Comb, cut
from tests.spark_impl.script_cases import random_config

A, B, C = Sensor("A"), Sensor("B"), Sensor("C")


def flow(name: str, *expressions: Expression) -> Workflow:
    return Workflow(name, tuple(Statement(f"s{n}", each) for n, each in enumerate(expressions)))


def graph(*expressions: Expression) -> Graph:
    return make_graph(ScriptConfig((flow("w", *expressions),), (("A", 1), ("B", 2), ("C", 4))))


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (Union((A, Union((B, A)))), Union((A, A, B)), True),
        (Union((A, A)), A, False),
        (Union((A,)), A, True),
        (Arithmetic("+", A, B), Arithmetic("+", B, A), True),
        (Arithmetic("*", A, Number(2.0)), Arithmetic("*", Number(2.0), A), True),
        (Arithmetic("-", A, B), Arithmetic("-", B, A), False),
        (Arithmetic("/", A, B), Arithmetic("/", B, A), False),
        (Across("max", (A, B, A)), Across("max", (B, A, A)), True),
        (Across("max", (A, B, A)), Across("max", (B, A)), False),
        (Across("sum", (A, B)), Arithmetic("+", A, B), False),
        (
            Arithmetic("+", Arithmetic("+", A, B), C),
            Arithmetic("+", A, Arithmetic("+", B, C)),
            False,
        ),
        (
            Arithmetic("*", A, Number(1.5)),
            Arithmetic("*", A, Arithmetic("/", Number(3.0), Number(2.0))),
            True,
        ),
        (Window("max", A, 4, 2), Window("max", Union((A,)), 4, 2), True),
        (Window("max", A, 4, 2), Window("max", A, 4, 4), False),
        (Window("max", A, 4, 2), Across("max", (A,)), False),
    ],
)
def test_equal_expressions_are_one_node(one: Expression, other: Expression, equal: bool) -> None:
    first, second = (output.node for output in graph(one, other).outputs)
    assert (first == second) == equal


def test_names_stand_for_what_they_name() -> None:
    mean = Window("avg", Union((A, B)), 4, 2)
    one = Workflow("one", (Statement("x", mean), Statement("y", Name("x"))))
    two = Workflow("two", (Statement("x", Union((mean,))), Statement("y", Name("x"))))
    made = make_graph(ScriptConfig((one, two), (("A", 1), ("B", 1))))
    assert [(each.node, each.recorded, each.own) for each in made.outputs] == [
        (3, True, (3,)),
        (3, True, ()),
        (3, False, (3,)),
        (3, False, ()),
    ]
    assert (made.written, made.computed) == (2, (3,))


def test_slices_by_hand() -> None:
    """W(997, 991): panes of a millisecond, or cuts at begins and ends."""
    node = Node(WINDOW, "max", (0,), 997, 991)
    often, seldom = (cut([node], Fraction(rate)) for rate in (3_600_000, 1))
    assert often.combs == (Comb(991, 0), Comb(991, 985))
    assert (seldom.is_panes, seldom.combs) == (True, (Comb(1, 0),))
    assert seldom.panes_cost == 1 + Fraction(997, 991)
    nested = [Node(WINDOW, op, (0,), 12, slide) for op, slide in (("max", 4), ("sum", 2))]
    assert cut(nested, Fraction(3_600)).combs == (Comb(2, 0),)


def test_windows_begin_and_end_at_cuts() -> None:
    draw, edges = random.Random(5), 0
    for _ in range(200):
        windows = [
            Node(WINDOW, "sum", (0,), draw.randint(1, 60), draw.randint(8, 60))
            for _ in range(draw.randint(1, 2))
        ]
        found = cut(windows, Fraction(draw.choice([10, HOUR_MS, HOUR_MS])))
        edges += not found.is_panes
        cuts = {ms for ms in range(200) for every, at in found.combs if ms % every == at % every}
        needed = {
            edge
            for window in windows
            for end in range(0, 300, window.slide_ms)
            for edge in (end, end - window.length_ms)
            if 0 <= edge < 200
        }
        assert needed <= cuts
        assert found.is_panes or needed == cuts
    assert edges > 20


def loads_of(units: list[frozenset[int]], rates: list[int], places: tuple[int, ...]) -> list[int]:
    sent = [
        frozenset().union(*(unit for unit, at in zip(units, places, strict=True) if at == worker))
        for worker in range(max(places) + 1)
    ]
    return [sum(rates[sensor] for sensor in each) for each in sent]


def test_placements_keep_what_is_promised() -> None:
    ways = set()
    for seed in range(150):
        config = random_config(seed)
        plan = compile_plan(config)
        placed, made = plan.placement, plan.graph
        rates = [made.per_hour[node.sensor] if node.kind == SENSOR else 0 for node in made.nodes]
        hosts, sent = [set[int]() for _ in range(config.workers)], Fraction()
        others: dict[int, set[int]] = {}
        for number, streams in made.reads.items():
            for each in streams:
                at = placed.worker[number]
                if made.nodes[each].kind == SENSOR:
                    hosts[at].add(each)
                elif placed.worker[each] != at:
                    others.setdefault(each, set()).add(at)
        assert list(placed.hosts) == hosts
        assert list(placed.loads) == [sum(rates[each] for each in own) for own in hosts]
        sent += sum(placed.loads) + sum(len(at) * made.rates[n] for n, at in others.items())
        assert placed.communication == sent
        if placed.communication > plan.baseline.communication:
            assert max(plan.baseline.loads) > plan.cap
        if max(plan.baseline.loads) <= plan.cap:
            assert max(placed.loads) <= plan.cap
        assert {
            n: set(at) for w in range(plan.workers) for n, at in plan.share(w).sent.items()
        } == (others)
        ways.add(placed.way)
    assert len(ways) > 1


def test_lpt_is_within_its_bound() -> None:
    """Single windows are whole components; LPT is compared with all placements."""
    draw, above = random.Random(3), 0
    for _ in range(60):
        n = draw.choice([2, 3])
        rates = [draw.randint(1, 9) for _ in range(6)]
        sensors = tuple((f"S{number}", rate) for number, rate in enumerate(rates))
        windows = [Window("sum", Sensor(name), 4, 2) for name, _ in sensors]
        config = ScriptConfig((flow("w", *windows),), sensors, workers=n, cap_percent=10_000)
        found = max(compile_plan(config).placement.loads)
        units = [frozenset([number]) for number in range(6)]
        best = min(max(loads_of(units, rates, at)) for at in product(range(n), repeat=6))
        assert found <= (Fraction(4, 3) - Fraction(1, 3 * n)) * best
        above += found > best
    assert above, "LPT was always the best"


def test_workers_and_tables_by_hand() -> None:
    means = [Window("avg", Union((first, second)), 4, 2) for first, second in ((A, B), (B, C))]
    both = flow("w", *means, Arithmetic("-", Name("s0"), Name("s1")))
    config = ScriptConfig((both,), (("A", 8), ("B", 2), ("C", 8), ("D", 5)), workers=2)
    plan = compile_plan(config)
    assert plan.hosted() == [Hosted(0, "A"), Hosted(0, "B"), Hosted(1, "B"), Hosted(1, "C")]
    assert [
        (row["says"], row["names"], row["worker"], row["to"]) for row in computations(plan)
    ] == [
        ('avg(union("A", "B"), 4, 2)', ("w.s0",), 0, ()),
        ('avg(union("B", "C"), 4, 2)', ("w.s1",), 1, (0,)),
        ("w.s0 - w.s1", ("w.s2",), 0, ()),
    ]
    assert [row["stream"] for row in cuttings(plan)] == ['union("A", "B")', 'union("B", "C")']
    assert [row["per_hour"] for row in workers(plan)] == [10, 10]
    told = figures(plan)
    assert (told["sensors"], told["asked_for"], told["placement"]) == (4, 3, "large ones split")
    assert told["communication"] == 20 + HOUR_MS / 2


def test_sensors_that_are_hashed() -> None:
    """In the baseline a sensor goes to the hash of its name, and on to its readers."""
    name = next(f"S{n}" for n in range(99) if task_of(f"S{n}", 2) == 1)
    other = next(f"T{n}" for n in range(99) if task_of(f"T{n}", 2) == 0)
    window = Window("sum", Union((Sensor(name), Sensor(other))), 4, 2)
    config = ScriptConfig((flow("w", window),), ((name, 3), (other, 2)), workers=2)
    baseline = compile_plan(config).baseline
    # the window stands where the faster sensor is; the other one is sent to both
    assert (sorted(baseline.loads), baseline.communication) == ([2, 5], Fraction(7))


def test_how_far_back_a_change_reads() -> None:
    inner = Window("max", A, 10, 5)
    made = graph(Window("sum", Union((inner, B)), 6, 3), Arithmetic("+", C, Number(1.0)))
    numbers = {node.sensor: n for n, node in enumerate(made.nodes) if node.kind == SENSOR}
    found = needed_since_us(made, 50_000)
    assert {name: found[number] for name, number in numbers.items()} == {
        "A": 34_000,
        "B": 44_000,
        "C": 0,
    }


def test_only_what_is_needed_travels() -> None:
    """B goes to two workers, D to none; a script in force from 20 ms on reaches back to 16 ms."""
    windows = [Window("avg", Union((first, second)), 4, 2) for first, second in ((A, B), (B, C))]
    rates = (("A", 8), ("B", 2), ("C", 8), ("D", 5))
    plan = compile_plan(ScriptConfig((flow("w", *windows),), rates, workers=2))
    sent = [("A", 15_999), ("B", 16_000), ("B", 15_000), ("C", 30_000), ("D", 30_000)]
    events = [Event(n, n, key, ts, 1.0, 0)._asdict() for n, (key, ts) in enumerate(sent)]
    table = pa.Table.from_pylist(events, schema=history_schema())

    def travelling(since_us: int) -> dict[int, list[int]]:
        blocks = Router(plan, since_us).blocks(table)
        return {to: np.frombuffer(each, ARRIVAL)["seq"].tolist() for to, each in blocks.items()}

    assert travelling(0) == {0: [0, 1, 2], 1: [1, 2, 3]}
    assert travelling(20_000) == {0: [1], 1: [1, 3]}
