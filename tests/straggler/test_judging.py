"""Judgements of a system: at the level of answers or steps, and by one reference or both."""

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from model.checking.claims import Outcome
from model.vocabulary import Event, GroupingConfig, SlackConfig, Trace, Workload
from model.vocabulary.join import Match
from model.vocabulary.join import Rejected as NoPair
from model.vocabulary.windows import Final, Late
from sim.kernel.run import TimedRun
from straggler.judging.judge import broken_sentences, compare_traces
from straggler.judging.levels import ANSWERS, STEPS, Scope
from straggler.judging.references import BOTH, MODEL, OURS, SIM, run_reference
from straggler.judging.workloads import judge_workload
from straggler.rooms import find_room, room_names
from straggler.rooms.grouping.room import ROOM as GROUPING
from straggler.rooms.slack.room import ROOM as SLACK
from tests.straggler.command import Straggler, assert_refused
from tests.straggler.small_workloads import ASKED, drawn, exact_windows, model, pairs, windows


def exact_pairs(workload: Workload) -> Trace:
    return Trace("exact", [each._replace(batch=0) for each in model(workload).of(Match)])


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


def test_a_field_of_the_wrong_type_is_named() -> None:
    def bad(name: str, value: object, workload: Workload) -> Trace:
        found: list[Any] = [*model(workload).of(Match), *model(workload).of(NoPair)]
        return Trace("bad", [each._replace(**{name: value}) for each in found if name in dir(each)])

    for name, value, sentence in (
        ("r_id", "1", "r_id of a match step is '1'; it must be an integer"),
        ("seq", 1 << 63, f"seq of a rejected step is {1 << 63}; it must be an integer"),
        ("query", "\ud800", r"query of a match step is '\ud800'; it must be a text"),
    ):
        judged = judge_workload(pairs(), partial(bad, name, value), reference=MODEL)
        assert judged.outcome is Outcome.BROKEN
        assert any(sentence in each for each in judged.broken), judged.broken


@pytest.mark.parametrize(
    ("observed", "is_right"),
    [
        (1 / 3, True),
        (math.nextafter(1 / 3, 1), True),
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


# ------------------------------------------------------------------------------------- references

OWN = "tests.straggler.own_systems"
RIGHT = "model.slack:make_system"
ASK = ("diff", "slack", *ASKED["slack"].split(), "--batches", "3")


def wrong(workload: Workload) -> TimedRun:
    """Simulate the workload and lose the late pairs."""
    run = SLACK.replay(workload)
    steps = [step for step in run.trace.steps() if not isinstance(step, Late)]
    return replace(run, trace=Trace("sim", steps))


def plant(monkeypatch: pytest.MonkeyPatch, replay: Callable[[Workload], TimedRun]) -> None:
    """Have another simulation replay recordings of room ``slack``."""
    monkeypatch.setattr("straggler.rooms.slack.room.ROOM", replace(SLACK, replay=replay))


def counterexample(files: Path) -> tuple[str, Path]:
    (stored,) = (files / "counterexamples").iterdir()
    return f"counterexamples/{stored.name}", stored


@pytest.mark.parametrize(
    ("reference", "compared"), [(SIM, "simulation"), (MODEL, "model"), (BOTH, "simulation")]
)
def test_a_wrong_system_is_named_and_leaves_a_counterexample(
    straggler: Straggler, files: Path, reference: str, compared: str
) -> None:
    forgets = ("--system", f"{OWN}:forgets_late")
    done = straggler(*ASK, *forgets, "--reference", reference)
    differs = f"the system differs from the {compared}: "
    assert (done.code, differs in done.out, "our mistake" in done.out) == (1, True, False)
    name, stored = counterexample(files)
    record = json.loads(stored.read_text(encoding="utf-8"))
    assert record["reference"] == reference
    assert len(record["workload"]["arrivals"]) <= 3
    again = straggler("replay", name, "--trust")
    assert (again.code, differs in again.out) == (1, True)
    assert straggler("replay", name, "--system", RIGHT).code == 0
    stored.write_text(json.dumps({**record, "reference": "sims"}), encoding="utf-8")
    assert_refused(straggler("replay", name, "--trust"), "'sims'", "sim, model")
    del record["reference"]  # as in files that older versions wrote
    stored.write_text(json.dumps(record), encoding="utf-8")
    assert "the system differs from the model: " in straggler("replay", name, "--trust").out


def test_a_wrong_simulation_is_our_mistake(
    straggler: Straggler, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch, wrong)
    done = straggler(*ASK, "--system", f"{OWN}:forgets_late")
    ours = "the simulation (observed) differs from the model (expected), our mistake: "
    assert (done.code, ours in done.out) == (1, True)
    assert "the system differs" not in done.out  # it does what the simulation does
    name, _ = counterexample(files)
    again = straggler("replay", name, "--trust")
    assert (again.code, ours in again.out) == (1, True)
    monkeypatch.setattr("straggler.rooms.slack.room.ROOM", SLACK)
    assert straggler("replay", name, "--system", RIGHT).code == 0


def test_reference_model_runs_no_simulation(
    straggler: Straggler, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(_: Workload) -> TimedRun:
        msg = "Plan.epoch_us is 7"
        raise ValueError(msg)

    plant(monkeypatch, refuses)
    done = straggler(*ASK, "--system", RIGHT)
    assert_refused(done, "stream", "cannot be replayed", "Plan.epoch_us is 7", "--reference model")
    done = straggler(*ASK, "--system", RIGHT, "--reference", MODEL, "--json", "v.json")
    assert (done.code, "redicted" in done.out) == (0, False)
    (row,) = json.loads((files / "v.json").read_text(encoding="utf-8"))
    assert {row[name] for name in row if name.startswith("predicted_")} == {None}
    assert OURS not in [claim["claim"] for claim in row["claims"]]


def test_the_rate_is_that_at_which_the_busiest_worker_never_rests() -> None:
    # Two tasks, one on each worker, take turns: the one of speed 0.5 takes 200 us a tuple.
    times = ((0, (100, 200)),)
    config = GroupingConfig(2, window_tuples=5_000, policy="round-robin", times_us=times)
    arrivals = tuple(Event(n, n, "a", n * 1_000, 1.0, n * 1_000, "") for n in range(20_000))
    workload = Workload("grouping", arrivals, config.to_json(), (5_000, 10_000, 15_000))
    predicted = run_reference(GROUPING, workload, SIM, GROUPING.step_types).predicted
    # Exponential service of 10,000 tuples: six standard errors are 6%.
    assert predicted.predicted_tuples_per_s == pytest.approx(10_000, rel=0.06)
