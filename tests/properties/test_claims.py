"""A claim notices every wrong step that it answers for.

Traces of the model are right; one recorded step is then changed. Tuples of windows come once and
the stream is flushed, so that a trace leaves no choice which delivery was late.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from model import grouping, join, script, slack, watermark
from model.checking.claims import Outcome, Verdict
from model.grouping import claims as grouping_claims
from model.join.replay import CLAIM as CONFORMS
from model.join.replay import validate_recording
from model.script import claims as script_claims
from model.script.claims import HOSTS, REJECTIONS, RESULTS, UNDEFINED
from model.slack import claims as slack_claims
from model.vocabulary import System, Trace, Workload
from model.vocabulary.grouping import Answer, Heavy, Partial, Route
from model.vocabulary.grouping import Rejected as Unfit
from model.vocabulary.join import PROTOCOL, Ack, Admit, Drop, Forward, Quiet, Receive
from model.vocabulary.script import config as words
from model.vocabulary.slack import CONTROLS, Progress
from model.vocabulary.windows import Cleared, Final, Late, Result, Revision
from model.watermark import claims as watermark_claims
from properties.promised import Reached, promised
from straggler.rooms import find_room
from straggler.strategies import grouping as grouping_strategies
from straggler.strategies import join as join_strategies
from straggler.strategies import script as script_strategies
from straggler.strategies import streams
from straggler.strategies import watermark as strategies

DROPPED, TWICE, ELSEWHERE = "not recorded", "recorded twice", "recorded of another window as well"
LARGE = 100_000.0
"""Results of scripts from here on are so large that one more may count as rounding."""
NEVER_US = (1 << 63) - 2
"""A watermark of a chain may be lower than it could be, and never higher."""


class Answering(NamedTuple):
    """A claim that answers for some changes of one kind of step."""

    word: Any
    changes: tuple[str, ...]
    """Names of fields, or what happens to a step as a whole."""
    claim: str

    @property
    def kind(self) -> str:
        """Name of the changes."""
        return f"{self.word.__name__} {self.changes[0]}: {self.claim}"


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


FOLLOWING: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (Admit, ("number", "first", "tuples", "pairs")),
    (Forward, ("number", "block", "seen", "first", "last", "tuples")),
    (Receive, ("number", "block", "copies", "pairs", "sent", "size")),
    (Ack, ("number", "block")),
    (Drop, ("number", "tuples")),
    (Quiet, ("number", "r_held", "s_held")),
    (Forward, ("wm_us",)),
    (Quiet, ("r_wm_us",)),
    (Quiet, ("s_wm_us",)),
)
"""Fields of the protocol of chains whose value follows from what came before."""


class Room(NamedTuple):
    """A producer of right traces, and the claims that judge them."""

    cases: st.SearchStrategy[Workload]
    run: System
    judge: Callable[[Workload, Trace], Sequence[Verdict]]
    answering: tuple[Answering, ...]


def once(case: Workload) -> Workload:
    """Return a case in which each tuple comes once, every clock is recorded, and the end is."""
    arrivals = tuple(streams.without_redeliveries(case.arrivals))
    cuts = tuple(min(cut, len(arrivals)) for cut in case.cuts)
    clocks = {"clocks": "arrivals"} if case.room == "watermark" else {}
    config = {**case.config, **clocks}
    return case.with_(arrivals=arrivals, cuts=cuts, config=config, flush=True)


def protocol_of(case: Workload) -> list[Any]:
    """Return the steps of the protocol that the workers of a chain take."""
    trace = join.run(case)
    kinds: Iterable[Any] = PROTOCOL
    return [step for kind in kinds for step in trace.of(kind)]


ROOMS = {
    "slack": Room(
        streams.cases(controls=[each for each in CONTROLS if each != "fixed"]).map(once),
        slack.run,
        lambda case, trace: slack_claims.judge(case, trace).verdicts,
        (
            *OF_CORRECTIONS,
            Answering(Progress, ("slack_us",), "slack follows alpha"),
        ),
    ),
    "watermark": Room(
        strategies.cases(corrections=(True,)).map(once),
        watermark.run,
        lambda case, trace: watermark_claims.judge(case, trace).verdicts,
        OF_CORRECTIONS,
    ),
    "script": Room(
        script_strategies.cases(),
        script.run,
        lambda case, trace: script_claims.judge(case, trace).verdicts,
        (
            Answering(words.Result, (DROPPED, TWICE, "ts_us", "value"), RESULTS),
            Answering(words.Undefined, (DROPPED, TWICE, "ts_us"), UNDEFINED),
            Answering(words.Rejected, (DROPPED, TWICE, "seq"), REJECTIONS),
            Answering(words.Hosted, (TWICE,), HOSTS),
        ),
    ),
    "grouping": Room(
        grouping_strategies.cases(),
        grouping.run,
        lambda case, trace: find_room("grouping").check(case, trace).verdicts,
        (
            Answering(Route, (DROPPED, TWICE, "seq", "sender"), grouping_claims.ONCE),
            Answering(Heavy, ("tuples",), grouping_claims.HEAVY),
            Answering(Partial, (DROPPED, TWICE, *Partial._fields), grouping_claims.PARTIALS),
            Answering(Answer, (DROPPED, TWICE, *Answer._fields[:-1]), grouping_claims.ANSWERS),
            Answering(Unfit, (DROPPED, TWICE, "seq"), grouping_claims.REJECTIONS),
        ),
    ),
    "join": Room(
        join_strategies.cases(),
        lambda case: Trace("x", protocol_of(case)),
        lambda case, trace: [validate_recording(case, trace)],
        tuple(Answering(word, fields, CONFORMS) for word, fields in FOLLOWING),
    ),
}
KINDS = {each.kind for room in ROOMS.values() for each in room.answering} - {
    f"Undefined {DROPPED}: {UNDEFINED}"  # drawn scripts seldom divide by zero
}


def changed(step: Any, change: str) -> list[Any]:
    """Return what is recorded instead of a step."""
    if change in (DROPPED, TWICE):
        return [step] * (2 * (change == TWICE))
    if change == ELSEWHERE:
        return [step, step._replace(start_us=step.start_us + 1)]
    value = getattr(step, change)
    if isinstance(value, bool):
        return [step._replace(**{change: not value})]
    if isinstance(step, Forward | Quiet) and change.endswith("wm_us"):
        return [step._replace(**{change: max(value, NEVER_US)})]
    if type(step) in (words.Result,) and isinstance(value, float) and abs(value) >= LARGE:
        return [step._replace(**{change: -value})]
    return [step._replace(**{change: value + ("!" if isinstance(value, str) else 1)})]


def in_flush(case: Workload, step: Any) -> bool:
    """Return whether a step of a chain belongs to its flush."""
    return case.flush and int(step.epoch) == sum(1 for _ in case.batches())


def check_changes(room: Room, case: Workload, rng: random.Random, reached: Reached) -> None:
    """Change a step of each kind, and ask the claim that answers for it."""
    trace = room.run(case)
    outcomes = {each.claim: each.outcome for each in room.judge(case, trace)}
    assert Outcome.BROKEN not in outcomes.values()
    steps = [*trace.steps()]
    places = defaultdict[Any, list[int]](list)
    for n, step in enumerate(steps):
        places[type(step)].append(n)
    for each in room.answering:
        # Without any step of a kind that it needs the verdict is undetermined.
        if len(places[each.word]) < 2 or outcomes.get(each.claim) is not Outcome.HOLDS:
            continue
        change, n = rng.choice(each.changes), rng.choice(places[each.word])
        if change == "exact" and (each.claim == ALL_ROWS) is not (ALL_ROWS in outcomes):
            continue  # one claim is about cases with rejected rows, the other about those without
        instead = changed(steps[n], change)
        if instead == [steps[n]]:
            continue  # a watermark that nothing exceeds
        if each.word in (Forward, Quiet) and change.endswith("wm_us") and in_flush(case, steps[n]):
            continue  # ends of streams are not recorded, so that a replay may put them first
        wrong = Trace("x", [*steps[:n], *instead, *steps[n + 1 :]])
        [verdict] = [found for found in room.judge(case, wrong) if found.claim == each.claim]
        assert verdict.outcome is Outcome.BROKEN, (steps[n], change, each.claim)
        reached.add({each.kind: 1})


@promised(*sorted(KINDS), examples=5)
@given(data=st.data())
def test_a_wrong_step_breaks_the_claim_that_answers_for_it(
    reached: Reached, data: st.DataObject
) -> None:
    rng = data.draw(st.randoms(use_true_random=False))
    for room in 2 * tuple(ROOMS.values()):
        check_changes(room, data.draw(room.cases), rng, reached)
