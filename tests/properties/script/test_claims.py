"""A claim notices every wrong step that it answers for, and only rounding is forgiven.

A count, minimum or maximum is right to the last digit, or wrong.
"""

import random
from collections import Counter
from dataclasses import replace
from math import inf, nextafter
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from model.checking.claims import Outcome
from model.script import run
from model.script.claims import HOSTS, REJECTIONS, RESULTS, UNDEFINED, judge
from model.vocabulary import ScriptConfig, Trace, Workload
from model.vocabulary.script.config import Hosted, Rejected, Result, Undefined
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
from properties.promised import Reached, promised
from straggler.rooms.script.room import compare
from straggler.strategies.script import SENSORS, SPANS_MS, cases

DROPPED, TWICE = "not recorded", "recorded twice"
LARGE = 100_000.0
"""Values from here on are so large that one more may count as rounding."""


class Answering(NamedTuple):
    """A claim that answers for some changes of one kind of step."""

    word: Any
    changes: tuple[str, ...]
    """Names of fields, or what happens to a step as a whole."""
    claim: str


ANSWERING = (
    Answering(Result, (DROPPED, TWICE, "ts_us", "value"), RESULTS),
    Answering(Undefined, (DROPPED, TWICE, "ts_us"), UNDEFINED),
    Answering(Rejected, (DROPPED, TWICE, "seq"), REJECTIONS),
    Answering(Hosted, (TWICE,), HOSTS),
)


def changed(step: Any, change: str) -> list[Any]:
    """Return what is recorded instead of a step."""
    if change in (DROPPED, TWICE):
        return [step] * (2 * (change == TWICE))
    value = getattr(step, change)
    other = -value if isinstance(value, float) and abs(value) >= LARGE else value + 1
    return [step._replace(**{change: other})]


def outcomes(case: Workload, steps: list[Any], most: int | None = None) -> dict[str, Outcome]:
    """Return the verdicts on some steps, by claim."""
    return {each.claim: each.outcome for each in judge(case, Trace("x", steps), most).verdicts}


def check_changes(case: Workload, rng: random.Random, met: Counter[str]) -> None:
    """Change a step of each kind, and ask the claim that answers for it."""
    steps: list[Any] = [*run(case).steps()]
    for word, changes, claim in ANSWERING:
        places = [n for n, step in enumerate(steps) if type(step) is word]
        if places:
            n, change = rng.choice(places), rng.choice(changes)
            wrong = [*steps[:n], *changed(steps[n], change), *steps[n + 1 :]]
            assert outcomes(case, wrong)[claim] is Outcome.BROKEN, (steps[n], change)
            met[claim] += 1


# Drawn scripts seldom divide by zero, so a case without a finite result need not occur.
@promised(RESULTS, REJECTIONS, HOSTS, examples=15)
@given(case=cases(), rng=st.randoms(use_true_random=False))
def test_a_wrong_step_breaks_the_claim_that_answers_for_it(
    reached: Reached, case: Workload, rng: random.Random
) -> None:
    met = Counter[str]()
    check_changes(case, rng, met)
    reached.add(met)


# -------------------------------------------------------------------------------------- rounding

MILLIONS = 2_000_000.0
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
    arrivals = tuple(each._replace(value=MILLIONS + each.value / 10) for each in case.arrivals)
    return case.with_(arrivals=arrivals, config=config.to_json())


def is_forgiven(case: Workload, right: Trace, changed: Result, value: float) -> bool:
    """Return whether a result passes with another value; all judges have to agree."""
    steps = [each._replace(value=value) if each == changed else each for each in right.steps()]
    wrong = Trace("x", steps)
    (verdict,) = (each for each in judge(case, wrong).verdicts if each.claim == RESULTS)
    is_equal = not compare(case, right, wrong, (Result,)).mismatches
    assert is_equal == (verdict.outcome is not Outcome.BROKEN)
    return is_equal


def check_rounding(case: Workload, met: Counter[str]) -> None:
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


@promised("mean", *EXACT, examples=15)
@given(case=large_cases())
def test_what_no_sum_goes_into_is_compared_exactly(reached: Reached, case: Workload) -> None:
    met = Counter[str]()
    check_rounding(case, met)
    reached.add(met)
