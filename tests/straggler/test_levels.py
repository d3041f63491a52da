"""A foreign system is judged by its answers, unless ``--level steps`` asks for every step."""

import math
from collections.abc import Iterable
from typing import Any

import pytest

from model.checking.claims import Outcome
from model.vocabulary import Event, SlackConfig, System, Trace, Workload
from model.vocabulary.join import Match
from model.vocabulary.join import Rejected as NoPair
from model.vocabulary.settings import PlainData
from model.vocabulary.slack import Progress
from model.vocabulary.windows import Final
from straggler.errors import UsageError
from straggler.judging.judge import broken_sentences, compare_traces
from straggler.judging.levels import ANSWERS, STEPS, Scope
from straggler.judging.references import MODEL
from straggler.judging.workloads import judge_workload
from straggler.rooms import find_room, room_names
from tests.straggler.small_workloads import drawn, exact_windows, model, pairs, windows


def exact_pairs(workload: Workload) -> Trace:
    return Trace("exact", [each._replace(batch=0) for each in model(workload).of(Match)])


# ------------------------------------------------------------------------------- answers alone


def test_exact_windows_need_no_revisions() -> None:
    asked: dict[str, Any] = {"step_types": (Final,), "reference": MODEL}
    judged = judge_workload(windows(), exact_windows, level=ANSWERS, **asked)
    assert judged.outcome is Outcome.HOLDS, judged.broken
    steps = judge_workload(windows(), exact_windows, level=STEPS, **asked)
    assert any("revision is 0, expected" in sentence for sentence in steps.broken)


@pytest.mark.parametrize(("keyed", "outcome"), [(True, "holds"), (False, "broken")])
def test_an_answer_with_a_key_need_not_name_the_task(keyed: bool, outcome: str) -> None:
    config = {**windows().config, "tasks": 3, "keyed": keyed}
    events = [event._replace(key="abc"[event.seq % 3]) for event in windows().arrivals]
    workload = windows().with_(arrivals=tuple(events), config=config)

    def one_task(workload: Workload) -> Trace:
        steps: Iterable[Any] = model(workload).steps()
        return Trace("one task", [each._replace(task=0) for each in steps if "task" in dir(each)])

    judged = judge_workload(workload, one_task, level=ANSWERS, reference=MODEL)
    assert str(judged.outcome) == outcome, judged.broken


def test_an_exact_join_is_not_blamed_for_what_it_does_not_record() -> None:
    judged = judge_workload(pairs(), exact_pairs, step_types=(Match,), reference=MODEL)
    assert judged.outcome is Outcome.HOLDS, judged.broken
    (rejections,) = [each for each in judged.evidence.verdicts if each.claim.startswith("rejected")]
    assert rejections.outcome is Outcome.UNDETERMINED
    # Without --kinds it has to reject what is late.
    assert judge_workload(pairs(), exact_pairs, reference=MODEL).outcome is Outcome.BROKEN


@pytest.mark.parametrize("name", room_names())
def test_answers_of_the_model_break_nothing_and_a_lost_one_is_found_at_either_level(
    name: str, seed: int
) -> None:
    room = find_room(name)
    scope = Scope.of(room, None, ANSWERS)
    outcomes = set()
    for case in drawn(name, seed):
        verdicts = scope.check(case, scope.reduce(model(case), case)).verdicts
        assert not broken_sentences(verdicts)
        outcomes |= {each.outcome for each in verdicts}
    assert outcomes == {Outcome.HOLDS, Outcome.UNDETERMINED}
    for word in room.answers:
        cases = [each for each in drawn(name, seed) if each.flush and model(each).of(word)]
        for case in cases[:1]:
            steps = list(model(case).steps())
            steps.remove(model(case).of(word)[0])
            forgets = Trace("forgetful", steps)
            for level in (ANSWERS, STEPS):
                found = judge_workload(case, lambda _, t=forgets: t, level=level, reference=MODEL)
                assert found.outcome is Outcome.BROKEN, (word, level)


def test_a_level_or_a_step_type_that_is_not_compared_is_refused() -> None:
    with pytest.raises(UsageError, match="level is 'all'; it must be one of answers, steps"):
        judge_workload(windows(), model, level="all", reference=MODEL)
    with pytest.raises(UsageError, match="there is no kind 'progress' at level answers"):
        judge_workload(windows(), model, step_types=(Progress,), reference=MODEL)


# ---------------------------------------------------------------------------- steps of bad types


def records(**changes: PlainData) -> System:
    """Return a join whose matches and rejections have wrong fields."""

    def run(workload: Workload) -> Trace:
        found: list[Any] = [*model(workload).of(Match), *model(workload).of(NoPair)]
        (name,) = changes
        return Trace("bad", [each._replace(**changes) for each in found if name in each._fields])

    return run


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"query": 0}, "query of a match step is 0; it must be a text"),
        ({"r_id": "1"}, "r_id of a match step is '1'; it must be an integer"),
        ({"s_id": True}, "s_id of a match step is True; it must be an integer"),
        ({"seq": 1 << 63}, f"seq of a rejected step is {1 << 63}; it must be an integer"),
        ({"query": "\ud800"}, r"query of a match step is '\ud800'; it must be a text"),
        ({"reason": None}, "reason of a rejected step is None; it must be a text"),
    ],
)
def test_a_field_of_the_wrong_type_is_named(changes: dict[str, object], sentence: str) -> None:
    judged = judge_workload(pairs(), records(**changes), reference=MODEL)
    assert judged.outcome is Outcome.BROKEN
    assert any(sentence in each for each in judged.broken), judged.broken


# ------------------------------------------------------------------------------------- rounding


@pytest.mark.parametrize(
    ("observed", "is_right"),
    [
        (1 / 3, True),
        (math.nextafter(1 / 3, 1), True),
        (math.nextafter(1 / 3, 0), True),
        (1 / 3 + 1 / 1024 / 3, False),
        (1 / 3 + 1e-9, False),
        (math.inf, False),
    ],
)
def test_an_average_may_be_rounded_twice_and_no_more(observed: float, is_right: bool) -> None:
    config = SlackConfig(10, 10, aggregate="avg", control="fixed")
    arrivals = [Event(n, n, "k", 0, float(n == 0), 0) for n in range(3)]
    workload = Workload("slack", tuple(arrivals), config.to_json(), flush=True)
    scope = Scope.of(find_room("slack"), "final", ANSWERS)
    wanted, seen = (
        scope.reduce(Trace("other", [Final(0, 0, "k", value, 3, 0, True)]), workload)
        for value in (1 / 3, observed)
    )
    verdict, _ = compare_traces(scope.room, workload, wanted, seen, scope.step_types)
    assert (verdict.outcome is Outcome.HOLDS) == is_right
    claims = scope.check(workload, seen).verdicts
    assert any(each.outcome is Outcome.BROKEN for each in claims) != is_right
