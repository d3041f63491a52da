"""Only rounding is forgiven: a count, minimum or maximum is right to the last digit, or wrong."""

from collections import Counter
from dataclasses import replace
from math import inf, nextafter

from hypothesis import given
from hypothesis import strategies as st

from model.checking.claims import Outcome
from model.script import run
from model.script.claims import RESULTS, judge
from model.vocabulary import ScriptConfig, Trace, Workload
from model.vocabulary.script.config import Result
from model.vocabulary.script.tree import (
    Across,
    Arithmetic,
    Expression,
    Name,
    Number,
    Sensor,
    Statement,
    Window,
    Workflow,
)
from properties.stream_packs import collect
from straggler.rooms.script.room import compare
from straggler.strategies.script import SENSORS, SPANS_MS, cases

CASES = 60
"""Number of drawn cases that together have to contain a result of every statement."""
LARGE = 2_000_000.0
EXACT = ("number", "least", "apart", "highest")
"""Statements that no sum goes into."""


@st.composite
def large_cases(draw: st.DrawFn) -> Workload:
    """Draw streams of values near two millions, of which float64 rounds the sums."""
    case = draw(cases())
    sensors = [Sensor(draw(st.sampled_from(SENSORS))) for _ in range(3)]

    def window(op: str, at: int) -> Expression:
        return Window(op, sensors[at], draw(SPANS_MS), draw(SPANS_MS))

    expressions: dict[str, Expression] = {
        "mean": window(draw(st.sampled_from(["avg", "sum"])), 0),
        "number": window("count", 0),
        "least": window("min", 1),
        "apart": Arithmetic("+", Name("number"), Number(0.5)),
        "highest": Across("max", (Name("least"), window("max", 2))),
    }
    flow = Workflow("w", tuple(Statement(*each) for each in expressions.items()))
    config = replace(ScriptConfig.from_json(case.config), workflows=(flow,))
    arrivals = tuple(each._replace(value=LARGE + each.value / 10) for each in case.arrivals)
    return case.with_(arrivals=arrivals, config=config.to_json())


def is_forgiven(case: Workload, right: Trace, changed: Result, value: float) -> bool:
    """Return whether a result passes with another value; all judges have to agree."""
    steps = [each._replace(value=value) if each == changed else each for each in right.steps()]
    wrong = Trace("x", steps)
    (verdict,) = (each for each in judge(case, wrong).verdicts if each.claim == RESULTS)
    is_equal = not compare(case, right, wrong, (Result,)).mismatches
    assert is_equal == (verdict.outcome is not Outcome.BROKEN)
    return is_equal


def check(case: Workload, met: Counter[str]) -> None:
    """Change the first result of every statement a little."""
    right = run(case)
    for name in ("mean", *EXACT):
        found = [each for each in right.of(Result) if each.name == name]
        if not found:
            continue
        met[name] += 1
        value = found[0].value
        if name == "mean":
            assert is_forgiven(case, right, found[0], nextafter(value, inf))
            assert not is_forgiven(case, right, found[0], value * (1 + 1e-5))
        else:
            for wrong in (value + 1, value - 1, nextafter(value, inf)):
                assert not is_forgiven(case, right, found[0], wrong), name


@given(large_cases())
def test_what_no_sum_goes_into_is_compared_exactly(case: Workload) -> None:
    check(case, Counter())


def test_every_statement_has_results(seed: int) -> None:
    met = Counter[str]()
    for case in collect(large_cases(), CASES, seed):
        check(case, met)
    assert all(met[name] >= 3 for name in ("mean", *EXACT)), met
