"""Planted bugs in a timed run of sensor scripts: its trace, or what is sent, gives them away."""

from collections.abc import Callable, Iterator

import pytest

from model.claims import Outcome
from model.script import make_system
from model.script.claims import judge
from model.script.rules import RULES, Rules
from model.script.variants import VARIANTS
from model.vocabulary import Workload
from model.vocabulary.script import END_US, Result
from sim.kernel.disorder import IntArray
from sim.kernel.log import simulate_arrivals
from sim.script.crew import Crew
from sim.script.knowing import Knowledge, Rise
from sim.script.run import trace_of
from sim.script.settings import given
from sim.script.timed import Message, Room

SETTINGS = {"sensors": "8", "rates_hz": "5", "seconds": "12", "workers": "3"}


def workload() -> Workload:
    asked = given(SETTINGS, 3)
    events = simulate_arrivals(asked.plan, 3).events
    return Workload("script", events, asked.config.to_json(), seed=3)


def room(case: Workload) -> Room:
    found = Room(case, Crew(), case.arrivals[0].arrival_us, "by-sensor")
    found.run()
    return found


def is_right() -> bool:
    """Whether the results are those of the model, whatever the placement."""
    case = workload()
    return trace_of(room(case)).of(Result) == make_system()(case).of(Result)


def test_nothing_is_found_where_nothing_is_planted() -> None:
    assert is_right()


@pytest.mark.parametrize("name", VARIANTS)
def test_rules_with_a_mistake_are_found(name: str) -> None:
    def broken(rules: Rules) -> list[str]:
        case = VARIANTS[name].example
        start_us = case.arrivals[0].arrival_us if case.arrivals else 0
        seen = Room(case, Crew(), start_us, rules=rules)
        seen.run()
        verdicts = judge(case, trace_of(seen)).verdicts
        return [each.claim for each in verdicts if each.outcome is Outcome.BROKEN]

    assert not broken(RULES)
    assert VARIANTS[name].promise in broken(VARIANTS[name].rules)


def _to_nobody(self: Room, message: Message) -> None:
    """Results stay where they are."""


def _never_ends(
    right: Callable[[Knowledge, int, int], Iterator[Rise]],
) -> Callable[[Knowledge, int, int], Iterator[Rise]]:
    def rise(self: Knowledge, stream: int, until_us: int) -> Iterator[Rise]:
        return iter(()) if until_us == END_US else right(self, stream, until_us)

    return rise


def _the_first_alone(
    right: Callable[[Knowledge, int, IntArray], IntArray],
) -> Callable[[Knowledge, int, IntArray], IntArray]:
    def moments(self: Knowledge, sensor: int, marks_us: IntArray) -> IntArray:
        return right(self, sensor, marks_us)[:1]

    return moments


@pytest.mark.parametrize(
    ("planted", "instead"),
    [
        ((Room, "_send"), _to_nobody),
        ((Knowledge, "rise"), _never_ends(Knowledge.rise)),
    ],
)
def test_a_mistake_in_who_knows_what_is_found(
    monkeypatch: pytest.MonkeyPatch, planted: tuple[type, str], instead: object
) -> None:
    monkeypatch.setattr(*planted, instead)
    assert not is_right()


def test_hearing_too_late_of_a_sensor_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    # All is there in the end: without an end it is not.
    begun = workload().with_(flush=False)
    expected = make_system()(begun).of(Result)
    assert trace_of(room(begun)).of(Result) == expected
    monkeypatch.setattr(Knowledge, "moments", _the_first_alone(Knowledge.moments))
    assert len(trace_of(room(begun)).of(Result)) < len(expected)
