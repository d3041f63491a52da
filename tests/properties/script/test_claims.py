"""A claim notices every wrong step that it answers for, in a whole workload and in a part of it."""

import random
from collections import Counter
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from model.checking.claims import Outcome
from model.script import run
from model.script.claims import HOSTS, REJECTIONS, RESULTS, UNDEFINED, judge
from model.vocabulary import ScriptConfig, Trace, Workload
from model.vocabulary.script.config import Hosted, Rejected, Result, Undefined
from properties.stream_packs import collect
from straggler.strategies.script import cases

CASES = 150
"""Number of drawn cases that together have to contain most kinds of steps."""
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


@given(cases(), st.randoms(use_true_random=False))
def test_a_wrong_step_breaks_the_claim_that_answers_for_it(
    case: Workload, rng: random.Random
) -> None:
    check_changes(case, rng, Counter())


def test_steps_of_the_kinds_that_occur_are_changed(seed: int) -> None:
    met = Counter[str]()
    # Drawn scripts seldom divide by zero, so a case without a finite result need not occur.
    wanted = {each.claim for each in ANSWERING} - {UNDEFINED}
    for case in collect(cases(), CASES, seed):
        check_changes(case, random.Random(seed), met)
        if {*met} >= wanted:
            break
    assert {*met} >= wanted


@given(cases(), st.data())
def test_a_part_of_the_arrivals_decides_what_came_before_it(
    case: Workload, data: st.DataObject
) -> None:
    most = data.draw(st.integers(1, len(case.arrivals) + 1))
    steps: list[Any] = [*run(case).steps()]
    assert Outcome.BROKEN not in outcomes(case, steps, most).values()
    results = [n for n, step in enumerate(steps) if type(step) is Result]
    if ScriptConfig.from_json(case.config).lateness_us is not None or not results:
        return
    # Without a lateness, the earliest tuples decide, to the whole millisecond.
    times_us = sorted(event.event_time_us for event in case.arrivals)
    is_whole = most >= len(times_us)
    n = data.draw(st.sampled_from(results))
    is_decided = is_whole or steps[n].ts_us < times_us[most] - times_us[most] % 1_000
    found = outcomes(case, [*steps[:n], *steps[n + 1 :]], most)
    assert (found[RESULTS] is Outcome.BROKEN) == is_decided
