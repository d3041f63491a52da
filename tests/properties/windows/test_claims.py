"""A claim notices every wrong number that it answers for.

Traces of the model are right; one recorded step is then changed. Tuples come once and the stream is
flushed, so that a trace leaves no choice which delivery was late.
"""

import random
from collections import defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from model import slack, watermark
from model.checking.claims import Judgement, Outcome
from model.slack import claims as slack_claims
from model.vocabulary import System, Trace, Workload
from model.vocabulary.slack import CONTROLS, Judged, Progress
from model.vocabulary.watermark import Clock, Inserted, Passing
from model.vocabulary.windows import (
    Cleared,
    Correlation,
    Final,
    Late,
    Result,
    Revision,
)
from model.watermark import claims as watermark_claims
from properties.promised import Reached, promised
from straggler.strategies import streams
from straggler.strategies import watermark as strategies

DROPPED, TWICE, ELSEWHERE = "not recorded", "recorded twice", "recorded of another window as well"


class Answering(NamedTuple):
    """A claim that answers for some changes of one kind of step."""

    word: Any
    changes: tuple[str, ...]
    """Names of fields, or what happens to a step as a whole."""
    claim: str


EXACT, ALL_ROWS = "eventual exactness", "exact means all rows"
OF_ANSWERS = (
    Answering(Result, ("value", "n_rcv"), "each pair once"),
    Answering(Result, (TWICE,), "one writer"),
    Answering(Result, (ELSEWHERE,), "each pair once"),
    Answering(Late, (DROPPED, "start_us"), "each pair once"),
    Answering(Final, ("revision", "start_us", "value", "n"), "final answers are the latest"),
    Answering(Final, ("exact",), ALL_ROWS),
)
OF_CORRECTIONS = (
    *OF_ANSWERS,
    Answering(Final, (ELSEWHERE,), EXACT),
    Answering(Final, (DROPPED, TWICE, "start_us", "value", "n", "exact"), EXACT),
    Answering(Late, (DROPPED, "start_us", "source_id"), "nothing owed after the flush"),
    Answering(
        Cleared, (DROPPED, ELSEWHERE, "start_us", "source_id"), "nothing owed after the flush"
    ),
    Answering(Revision, (DROPPED, "value", "n"), "wrong answers are pending"),
    Answering(Revision, (TWICE, "revision"), "one writer"),
)


class Room(NamedTuple):
    """A producer of right traces, and the claims that judge them."""

    cases: st.SearchStrategy[Workload]
    run: System
    judge: Callable[[Workload, Trace], Judgement]
    answering: tuple[Answering, ...]


ROOMS = {
    "slack": Room(
        streams.cases(controls=[each for each in CONTROLS if each != "fixed"]),
        slack.run,
        slack_claims.judge,
        (
            *OF_CORRECTIONS,
            Answering(
                Correlation,
                (TWICE, ELSEWHERE, *Correlation._fields),
                "delay and value are compared as they came",
            ),
            Answering(
                Judged,
                (TWICE, "start_us", "n_rcv", "miss"),
                "judgements measure what was recorded",
            ),
            Answering(Progress, ("slack_us",), "slack follows alpha"),
        ),
    ),
    "watermark": Room(
        strategies.cases(corrections=(True,)),
        watermark.run,
        watermark_claims.judge,
        (
            *OF_CORRECTIONS,
            Answering(Clock, (DROPPED, "seq", "batch"), "every accepted arrival has a clock"),
            Answering(Clock, ("inv",), "pairs out of order are counted"),
            Answering(Clock, ("wait_us",), "the wait is that of the reading"),
            Answering(Clock, ("wm_us",), "watermark follows the wait"),
        ),
    ),
    "upstream": Room(
        strategies.cases(upstreams=(1, 2, 3)),
        watermark.run,
        watermark_claims.judge,
        (
            *OF_ANSWERS,
            Answering(Passing, (DROPPED, *Passing._fields), "upstream clocks follow the disorder"),
            Answering(Inserted, (DROPPED, *Inserted._fields), "the least watermark is inserted"),
            Answering(Late, ("batch",), "late means that a watermark was inserted"),
        ),
    ),
}


def once(case: Workload) -> Workload:
    """Return a case in which each tuple comes once, every clock is recorded, and the end is."""
    arrivals = tuple(streams.without_redeliveries(case.arrivals))
    cuts = tuple(min(cut, len(arrivals)) for cut in case.cuts)
    clocks = {"clocks": "arrivals"} if case.room == "watermark" else {}
    config = {**case.config, **clocks}
    return case.with_(arrivals=arrivals, cuts=cuts, config=config, flush=True)


def changed(step: Any, change: str) -> list[Any]:
    """Return what is recorded instead of a step."""
    if change in (DROPPED, TWICE):
        return [step] * (2 * (change == TWICE))
    if change == ELSEWHERE:
        return [step, step._replace(start_us=step.start_us + 1)]
    value = getattr(step, change)
    if isinstance(value, bool):
        return [step._replace(**{change: not value})]
    return [step._replace(**{change: value + ("!" if isinstance(value, str) else 1)})]


def check_changes(room: Room, case: Workload, rng: random.Random, reached: Reached) -> None:
    """Change a step of each kind, and ask the claim that answers for it."""
    trace = room.run(case)
    outcomes = {each.claim: each.outcome for each in room.judge(case, trace).verdicts}
    assert Outcome.BROKEN not in outcomes.values()
    steps = [*trace.steps()]
    places = defaultdict[Any, list[int]](list)
    for n, step in enumerate(steps):
        places[type(step)].append(n)
    for word, changes, claim in room.answering:
        # Without any step of a kind the verdict is undetermined.
        if len(places[word]) < 2:
            continue
        change, n = rng.choice(changes), rng.choice(places[word])
        if change == "exact" and (claim == ALL_ROWS) is not (ALL_ROWS in outcomes):
            continue  # one claim is about cases with rejected rows, the other about those without
        wrong = Trace("x", [*steps[:n], *changed(steps[n], change), *steps[n + 1 :]])
        [verdict] = [each for each in room.judge(case, wrong).verdicts if each.claim == claim]
        assert verdict.outcome is Outcome.BROKEN, (steps[n], change, claim)
        reached.add({f"{word.__name__}: {claim}": 1})


KINDS = {
    f"{each.word.__name__}: {each.claim}" for room in ROOMS.values() for each in room.answering
}


@promised(*sorted(KINDS), examples=12)
@given(data=st.data())
def test_a_wrong_number_breaks_the_claim_that_answers_for_it(
    reached: Reached, data: st.DataObject
) -> None:
    rng = data.draw(st.randoms(use_true_random=False))
    for room in ROOMS.values():
        check_changes(room, once(data.draw(room.cases)), rng, reached)
