"""A foreign system is judged by its answers, unless ``--level steps`` asks for every step."""

import json
import math
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from model.checking.claims import Outcome
from model.vocabulary import Event, JoinConfig, SlackConfig, System, Trace, Workload
from model.vocabulary.join import Equi, Match
from model.vocabulary.join import Rejected as NoPair
from model.vocabulary.settings import PlainData
from model.vocabulary.slack import Progress
from model.vocabulary.trace import field_types
from model.vocabulary.windows import Final
from straggler.errors import UsageError
from straggler.judging.judge import broken_sentences, compare_traces
from straggler.judging.levels import ANSWERS, STEPS, Scope
from straggler.judging.references import MODEL
from straggler.judging.workloads import judge_workload
from straggler.rooms import find_room, room_names
from straggler.strategies.examples import cases_of, collect
from tests.straggler.command import Straggler, assert_refused

TIMES_S = (0, 4, 11, 3, 22, 1, 35, 12)
DRAWN = 40


def stream(*times_s: int) -> tuple[Event, ...]:
    return tuple(
        Event(seq, seq, "k", at_s * 1_000_000, 2.0, seq) for seq, at_s in enumerate(times_s)
    )


def windows() -> Workload:
    config = SlackConfig(10_000_000, 10_000_000, control="fixed", gamma_us=0, max_age_us=0)
    return Workload("slack", stream(*TIMES_S), config.to_json(), (2, 5))


def pairs(**settings: Any) -> Workload:
    config = JoinConfig(5_000_000, (("q", Equi("key")),), lateness_us=2_000_000)
    arrivals = [each._replace(stream="RS"[each.seq % 2]) for each in stream(*TIMES_S)]
    return Workload("join", tuple(arrivals), config.to_json(), (4,), **settings)


def model(workload: Workload) -> Trace:
    return find_room(workload.room).reference()(workload)


def drawn(room: str, seed: int) -> list[Workload]:
    return collect(cases_of(room), DRAWN, seed)


def exact_windows(workload: Workload) -> Trace:
    """Return the windows of an engine that sees all tuples at once, and revises nothing."""
    sums: dict[tuple[int, str], list[float]] = {}
    for event in workload.arrivals:
        start_us = event.event_time_us // 10_000_000 * 10_000_000
        sums.setdefault((start_us, event.key), []).append(event.value)
    found = (
        Final(0, start_us, key, sum(values), len(values), 0, True)
        for (start_us, key), values in sums.items()
    )
    return Trace("exact", found)


def exact_pairs(workload: Workload) -> Trace:
    return Trace("exact", [each._replace(batch=0) for each in model(workload).of(Match)])


# ------------------------------------------------------------------------------- answers alone


def test_a_single_different_step_is_in_the_singular() -> None:
    room, workload = find_room("slack"), windows()
    whole = room.reference()(workload)
    (left_out, *_) = whole.of(Final)
    less = Trace("less", [step for step in whole.steps() if step is not left_out])
    verdict, wrong = compare_traces(room, workload, whole, less, (Final,))
    assert wrong == 1
    assert verdict.sentence == "1 step is missing, not expected or different"


def test_exact_windows_need_no_revisions() -> None:
    judged = judge_workload(
        windows(), exact_windows, step_types=(Final,), level=ANSWERS, reference=MODEL
    )
    assert judged.outcome is Outcome.HOLDS, judged.broken
    steps = judge_workload(
        windows(), exact_windows, step_types=(Final,), level=STEPS, reference=MODEL
    )
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
    assert rejections.sentence == "It needs rejected steps, which are not recorded."
    # Without --kinds it has to reject what is late.
    assert judge_workload(pairs(), exact_pairs, reference=MODEL).outcome is Outcome.BROKEN


def test_a_claim_about_steps_says_which_would_decide_it() -> None:
    verdicts = judge_workload(windows(), model, reference=MODEL).evidence.verdicts
    said = {each.claim: each.sentence for each in verdicts if each.outcome is not Outcome.HOLDS}
    assert said["one writer"] == "Answers do not decide it; complete result steps would."
    assert said["watermark never decreases"].endswith("complete progress steps would.")
    assert "complete late, cleared and progress steps would" in said["corrections do not wait"]


@pytest.mark.parametrize("name", room_names())
def test_answers_of_the_model_break_nothing_without_their_other_fields(
    name: str, seed: int
) -> None:
    room = find_room(name)
    scope = Scope.of(room, None, ANSWERS)
    outcomes = set()
    for case in drawn(name, seed):
        expected = scope.reduce(model(case), case)
        verdicts = scope.check(case, expected).verdicts
        assert not broken_sentences(verdicts)
        outcomes |= {each.outcome for each in verdicts}
    assert outcomes == {Outcome.HOLDS, Outcome.UNDETERMINED}


@pytest.mark.parametrize("name", room_names())
def test_a_lost_answer_is_found_at_either_level(name: str, seed: int) -> None:
    room = find_room(name)
    for word in room.answers:
        cases = [each for each in drawn(name, seed) if each.flush and model(each).of(word)]
        if not cases:
            continue
        case = cases[0]
        steps = list(model(case).steps())
        steps.remove(model(case).of(word)[0])

        def forgets(_: Workload, kept: tuple[Any, ...] = tuple(steps)) -> Trace:
            return Trace("forgetful", kept)

        for level in (ANSWERS, STEPS):
            judged = judge_workload(case, forgets, level=level, reference=MODEL)
            assert judged.outcome is Outcome.BROKEN, (word, level)


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
        bad = [each._replace(**changes) for each in found if name in each._fields]
        return Trace("bad", bad)

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


def test_a_value_that_is_no_number_is_named() -> None:
    def run(workload: Workload) -> Trace:
        return Trace(
            "bad", [each._replace(value=float("nan")) for each in model(workload).of(Final)]
        )

    judged = judge_workload(windows(), run, step_types=(Final,), reference=MODEL)
    assert "key 'k', n 4) is NaN; it must be a finite number" in str(judged.broken)


def test_a_step_of_another_room_is_named() -> None:
    judged = judge_workload(pairs(), lambda _: model(windows()), reference=MODEL)
    assert any("one of the room's own: match, rejected, admit" in each for each in judged.broken)


NUMBERS: dict[type, list[Any]] = {
    int: [-1, 0, 99, (1 << 63) - 1, -(1 << 63)],
    float: [-1.0, 2.5, 1e308],
    str: ["", "elsewhere"],
    bool: [True, False],
}


@pytest.mark.parametrize("level", [ANSWERS, STEPS])
@pytest.mark.parametrize("name", room_names())
def test_no_step_of_the_right_types_stops_the_judge(name: str, level: str, seed: int) -> None:
    rng = random.Random(seed)
    for case in drawn(name, seed)[:20]:
        if name == "join" and not case.flush:
            continue
        steps: list[Any] = list(model(case).steps())
        for number in rng.sample(range(len(steps)), min(3, len(steps))):
            field, declared = rng.choice(list(field_types(type(steps[number])).items()))
            value = rng.choice(NUMBERS[declared.kind])
            spoilt = (value,) if declared.is_tuple else value
            steps[number] = steps[number]._replace(**{field: spoilt})
        judged = judge_workload(
            case, lambda _, found=tuple(steps): Trace("bad", found), level=level, reference=MODEL
        )
        assert judged.outcome in Outcome


# ----------------------------------------------------------------------------- the command line


def counting() -> System:
    """Return exact counts, one for all keys."""

    def run(workload: Workload) -> Trace:
        found = exact_windows(workload).of(Final)
        return Trace("exact", [each._replace(key="", value=float(each.n)) for each in found])

    return run


def counting_but_one() -> System:
    """Return exact counts without the last tuple."""
    right = counting()
    return lambda workload: right(workload.with_(arrivals=workload.arrivals[:-1], cuts=()))


def lines() -> str:
    return "event_time,value\n" + "".join(f"{at_s},2\n" for at_s in TIMES_S)


def test_windows_are_judged_by_their_answers(straggler: Straggler, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(lines(), encoding="utf-8")
    ask = ["diff", "slack", "--input", "t.csv", "--time-unit", "s", "--window", "10s"]
    ask += ["--slide", "10s", "--control", "fixed", "--per", "task", "--aggregate", "count"]
    own = [*ask, "--kinds", "final", "--json", "verdict.json", "--system"]
    done = straggler(*own, f"{__name__}:counting")
    assert (done.code, done.err) == (0, ""), done.out
    assert "slack, undetermined: " in done.out
    assert "Answers do not decide it; complete result steps would." in done.out
    (row,) = json.loads((tmp_path / "verdict.json").read_text(encoding="utf-8"))
    assert row["level"] == "answers"
    assert "revision is" in straggler(*own, f"{__name__}:counting", "--level", "steps").out
    wrong = straggler(*own, f"{__name__}:counting_but_one")
    assert wrong.code == 1
    stored, *_ = (
        each
        for each in (tmp_path / "counterexamples").iterdir()
        if '"level"' in each.read_text(encoding="utf-8")
    )
    assert straggler("replay", str(stored), "--trust").code == 1
    assert straggler("replay", str(stored), "--system", f"{__name__}:counting").code == 0
    refused = straggler(*ask, "--system", f"{__name__}:counting", "--kinds", "progress")
    assert_refused(refused, "'progress' at level answers", "only result, late, rejected, final")


# ------------------------------------------------------------------------------------- averages


def averages(rounded: float) -> Trace:
    """Return the answer of a window with three tuples whose average is 1/3."""
    return Trace("other", [Final(0, 0, "k", rounded, 3, 0, True)])


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
    wanted, seen = (scope.reduce(averages(value), workload) for value in (1 / 3, observed))
    verdict, _ = compare_traces(scope.room, workload, wanted, seen, scope.step_types)
    assert (verdict.outcome is Outcome.HOLDS) == is_right
    claims = scope.check(workload, seen).verdicts
    assert any(each.outcome is Outcome.BROKEN for each in claims) != is_right


def test_a_sum_has_to_be_exact() -> None:
    config = SlackConfig(10, 10, aggregate="sum", control="fixed")
    workload = Workload("slack", (Event(0, 0, "k", 0, 1.0, 0),), config.to_json(), flush=True)
    scope = Scope.of(find_room("slack"), "final", ANSWERS)
    observed = Trace("other", [Final(0, 0, "k", math.nextafter(1.0, 2.0), 1, 0, True)])
    wanted, seen = (scope.reduce(each, workload) for each in (model(workload), observed))
    verdict, _ = compare_traces(scope.room, workload, wanted, seen, scope.step_types)
    assert verdict.outcome is Outcome.BROKEN
