"""A wrong change in one place of a right trace of scripts breaks the claim that must notice it."""

from collections.abc import Callable
from typing import Any

import pytest

from model.checking.claims import Outcome, Verdict
from model.script import run
from model.script.claims import (
    BOUNDS,
    CLAIMS,
    HOSTS,
    LOAD,
    REJECTIONS,
    RESULTS,
    UNDEFINED,
    judge,
)
from model.script.silence_claims import SILENCE
from model.vocabulary import Event, ScriptConfig, Step, Trace, Workload
from model.vocabulary.script.config import REASON_LATE, Hosted, Rejected, Result, Undefined
from straggler.rooms.script.language import parse

SCRIPT = """
total = sum("a", 4, 4)
again = sum("a", 4, 4)
ratio = "b" / "b"
"""
ROWS = (
    ("a", 1_000, 1.0),
    ("b", 1_000, 0.0),
    ("a", 9_000, 2.0),
    ("a", 8_000, 4.0),
    ("a", 3_000, 8.0),
    ("a", 9_000, float("nan")),
    ("b", 5_000, 3.0),
)
"""Sensor, event time (us) and value of each arrival; arrival 4 is late, and one is not finite."""
CONFIG = ScriptConfig(
    (parse(SCRIPT, "w"),), (("a", 1_000), ("b", 1_000)), workers=2, lateness_us=2_000
)
CASE = Workload(
    "script",
    tuple(Event(seq, seq, key, us, value, 10_000) for seq, (key, us, value) in enumerate(ROWS)),
    CONFIG.to_json(),
)

Change = Callable[[Any], list[Step]]
"""A function from a step to what stands instead of it."""


def to(**fields: Any) -> Change:
    return lambda step: [step._replace(**fields)]


def nothing(_step: Step) -> list[Step]:
    return []


CHANGES: dict[str, tuple[type, int, Change, str, str]] = {
    "a result is lost": (Result, 0, nothing, RESULTS, "There is no again = 1 of w at 3,000 us."),
    "a result is another one": (Result, 0, to(value=2.0), RESULTS, "There is no again = 1 of w"),
    "a time without a finite result is not told": (
        Undefined,
        0,
        nothing,
        UNDEFINED,
        "There is no undefined ratio of w at 1,000 us.",
    ),
    "a value that is not finite is not rejected": (
        Rejected,
        1,
        nothing,
        REJECTIONS,
        "There is no rejection of arrival 5: value is not a finite number.",
    ),
    "a late arrival is not rejected": (
        Rejected,
        0,
        nothing,
        BOUNDS,
        "Arrival 4 lies 6,000 us behind 'a', and is not late.",
    ),
    "an arrival that is ahead is late": (
        Rejected,
        1,
        to(seq=6, reason=REASON_LATE),
        BOUNDS,
        "Arrival 6 does not lie behind 'b', and is late.",
    ),
    "a worker is not sent a sensor": (Hosted, 0, nothing, HOSTS, "No worker is sent 'a'."),
    "a worker is sent everything": (
        Hosted,
        1,
        to(worker=0),
        LOAD,
        "Worker 0 is sent 2,000 tuples an hour, more than 1,166.67.",
    ),
}
"""Kind and number of the step, change, claim, and a part of its sentence, by name."""


def verdicts(trace: Trace) -> dict[str, Verdict]:
    return {each.claim: each for each in judge(CASE, trace).verdicts}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_noticed(name: str) -> None:
    word, number, change, claim, part = CHANGES[name]
    right = run(CASE)
    before = verdicts(right)
    assert all(each.outcome is not Outcome.BROKEN for each in before.values())
    assert before[claim].outcome is Outcome.HOLDS
    chosen: Any = right.of(word)[number]
    others = [step for step in right.steps() if step is not chosen]
    found = verdicts(Trace("changed", [*others, *change(chosen)]))[claim]
    assert found.outcome is Outcome.BROKEN
    assert part in found.sentence


def test_every_claim_is_broken_by_a_change() -> None:
    # No sensor falls silent here: tests/model/script/test_silence.py changes such traces.
    assert {claim for *_, claim, _ in CHANGES.values()} == {*CLAIMS.guards} - {SILENCE}
