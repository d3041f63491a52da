"""Meanings of sensor scripts that are worked out by hand."""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from model.script import run
from model.vocabulary import Event, ScriptConfig, Workload
from model.vocabulary.script.config import (
    REASON_LATE,
    Rejected,
    Result,
    Undefined,
)
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

A, B = Sensor("a"), Sensor("b")
MS = 1_000
Said = dict[str, Expression]
"""Expressions by name."""


def case(
    expression: Expression | Said,
    *tuples: tuple[str, float, float],
    lateness_us: int | None = None,
    flush: bool = True,
    **settings: Any,
) -> Workload:
    """Return a workload of statements (one is called x) and tuples (sensor, ms, value)."""
    named = expression if isinstance(expression, dict) else {"x": expression}
    flow = Workflow("w", tuple(Statement(name, each) for name, each in named.items()))
    config = ScriptConfig((flow,), (("a", 1), ("b", 1)), lateness_us=lateness_us, **settings)
    events = tuple(
        Event(seq, seq, sensor, int(at_ms * MS), value, int(at_ms * MS))
        for seq, (sensor, at_ms, value) in enumerate(tuples)
    )
    return Workload("script", events, config.to_json(), flush=flush)


def points(results: Iterable[Result], name: str = "x") -> list[tuple[float, float]]:
    """Return milliseconds and values of results."""
    return [(each.ts_us / MS, each.value) for each in results if each.name == name]


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("count", [(1, 1), (3, 3), (5, 2)]),
        ("sum", [(1, 2), (3, 13), (5, 11)]),
        ("avg", [(1, 2), (3, 13 / 3), (5, 5.5)]),
        ("max", [(1, 2), (3, 7), (5, 7)]),
        ("min", [(1, 2), (3, 2), (5, 4)]),
        ("stddev", [(1, 0), (3, (38 / 9) ** 0.5), (5, 1.5)]),
    ],
)
def test_windows(op: str, expected: list[tuple[float, float]]) -> None:
    # Ends at 2, 4, 6: [-2, 2) has 0; [0, 4) all of 0, 2 and 3.999; [2, 6) the last two.
    tuples = (("a", 0, 2.0), ("a", 2, 4.0), ("a", 3.999, 7.0))
    found = points(run(case(Window(op, A, 4, 2), *tuples)).of(Result))
    assert [at for at, _ in found] == [at for at, _ in expected]
    values = [value for _, value in expected]
    assert [value for _, value in found] == pytest.approx(values, rel=1e-15)


def test_a_union_is_a_bag() -> None:
    said = Window("avg", Union((A, Union((B, A)))), 1, 1)
    assert points(run(case(said, ("a", 0, 3.0), ("b", 0, 9.0))).of(Result)) == [(0, 5)]


def test_an_operation_waits_for_all_and_answers_once_a_stamp() -> None:
    said = Arithmetic("-", A, Arithmetic("*", B, Number(2)))
    tuples = [("a", 1, 5.0), ("b", 2, 1.0), ("a", 3, 7.0), ("b", 3, 2.0), ("b", 3, 3.0)]
    # At 3 the greatest of b is the latest.
    assert points(run(case(said, *tuples)).of(Result)) == [(2, 3), (3, 1)]


def test_a_division_by_zero_is_reported_and_the_previous_value_stays() -> None:
    said: Said = {"x": Arithmetic("/", Number(1), A), "y": Arithmetic("+", Name("x"), B)}
    found = run(case(said, ("a", 1, 2.0), ("b", 1, 1.0), ("a", 2, 0.0), ("b", 3, 5.0)))
    assert found.of(Undefined) == (Undefined("w", "x", 2 * MS),)
    assert points(found.of(Result), "y") == [(1, 1.5), (3, 5.5)]


def test_overflow_is_undefined_too() -> None:
    said: Said = {"x": Window("sum", A, 1, 1), "y": Across("sum", (A, A))}
    found = run(case(said, ("a", 0, 1e308), ("a", 0, 1.5e308)))
    assert [each.name for each in found.of(Undefined)] == ["x", "y"]
    assert not found.of(Result)


def test_sums_are_exact_and_zero_has_no_sign() -> None:
    said: Said = {"x": Window("sum", A, 1, 1), "y": Arithmetic("*", A, Number(0))}
    found = run(case(said, ("a", 0, 1e16), ("a", 0, 1.0), ("a", 0, -1e16), ("a", 1, -5.0)))
    assert points(found.of(Result)) == [(0, 1), (1, -5)]
    assert [str(value) for _, value in points(found.of(Result), "y")] == ["0.0", "0.0"]


# ------------------------------------------------------------------------------------- admission


def test_late_is_what_lies_below_the_watermark_of_its_sensor() -> None:
    said = Window("count", Union((A, B)), 100, 100)
    tuples = [("a", 10, 1.0), ("b", 1, 1.0), ("a", 8, 1.0), ("a", 7.999, 1.0), ("a", 9, 1.0)]
    found = run(case(said, *tuples, lateness_us=2 * MS))
    assert found.of(Rejected) == (Rejected(3, REASON_LATE),)
    assert points(found.of(Result)) == [(99, 4)]


def test_sensors_that_nobody_asks_for_are_dropped() -> None:
    said: Said = {"x": Window("max", A, 1, 1), "unused": Union((B, A))}
    found = run(case(said, ("b", 0, float("nan")), ("c", 0, 1.0), ("a", 0, 1.0)))
    assert len(found.of(Rejected)) == 0
    assert points(found.of(Result)) == [(0, 1)]


@pytest.mark.parametrize(
    "own", [{}, {"watermark": "scaled"}, {"cluster": 3}, {"idle_after_us": 1}], ids=str
)
def test_a_setting_is_written_unless_it_is_the_default(own: Mapping[str, Any]) -> None:
    written = case(Window("max", A, 1, 1), lateness_us=1, **own).config
    names = ("watermark", "cluster", "idle_after_us")
    assert {each: written[each] for each in names if each in written} == own


@pytest.mark.parametrize("at_us", [-1, 1 << 61])
def test_impossible_times_are_refused(at_us: int) -> None:
    workload = case(Window("max", A, 1, 1), ("a", 0, 1.0))
    event = workload.arrivals[0]._replace(event_time_us=at_us)
    with pytest.raises(ValueError, match=f"has the event time {at_us}; it must be"):
        run(workload.with_(arrivals=(event,)))
