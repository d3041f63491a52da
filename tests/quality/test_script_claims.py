"""A wrong change in one place of a right trace of scripts breaks the claim that must notice it."""

from collections.abc import Callable

import pytest

from model.checking.claims import Outcome
from model.script import run
from model.script.claims import HOSTS, UNDEFINED, judge
from model.vocabulary import Step, Trace, Workload
from model.vocabulary.script.config import Hosted, Undefined
from properties.script.strategies import cases
from tests.harness.stream_packs import collect

Change = Callable[[list[Step]], list[Step]]


def without_the_first(steps: list[Step]) -> list[Step]:
    return steps[1:]


CHANGES: dict[str, tuple[type, Change, str]] = {
    "a time without a finite result is not told": (Undefined, without_the_first, UNDEFINED),
    "a worker is not sent a sensor": (Hosted, without_the_first, HOSTS),
}


def broken(workload: Workload, trace: Trace) -> set[str]:
    verdicts = judge(workload, trace).verdicts
    return {each.claim for each in verdicts if each.outcome is Outcome.BROKEN}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_noticed(name: str) -> None:
    word, change, claim = CHANGES[name]
    telling = [
        (case, trace) for case in collect(cases(), 60, 0) if len((trace := run(case)).of(word)) > 1
    ]
    assert telling
    for case, trace in telling[:5]:
        assert not broken(case, trace)
        others = [step for step in trace.steps() if type(step) is not word]
        assert claim in broken(case, Trace("changed", [*others, *change(list(trace.of(word)))]))
