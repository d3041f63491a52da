"""Judgements of a system, at the level of answers or steps, and stored counterexamples.

A counterexample is run again, and refused if edited.
"""

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from model.checking.claims import Outcome
from model.vocabulary import Event, JoinConfig, SlackConfig, Trace, Workload
from model.vocabulary.join import Equi, Match
from model.vocabulary.join import Rejected as NoPair
from model.vocabulary.windows import Final, Late
from sim.kernel.run import TimedRun
from straggler.judging.counterexamples import Counterexample
from straggler.judging.judge import MODEL, OURS, SILENT, compare_traces, judge_workload
from straggler.judging.levels import ANSWERS, STEPS, Scope
from straggler.judging.trial import describe, describe_plainer, with_hint_of
from straggler.rooms import find_room
from straggler.rooms.slack.room import ROOM as SLACK
from tests.straggler.command import Straggler, assert_refused
from tests.straggler.small_workloads import ASKED, exact_windows, model, pairs, windows


def exact_pairs(workload: Workload) -> Trace:
    return Trace("exact", [each._replace(batch=0) for each in model(workload).of(Match)])


def test_exact_windows_need_no_revisions() -> None:
    asked: dict[str, Any] = {"kinds": "final", "reference": MODEL}
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
    judged = judge_workload(pairs(), exact_pairs, kinds=["match"], reference=MODEL)
    assert judged.outcome is Outcome.HOLDS, judged.broken
    (rejections,) = [each for each in judged.evidence.verdicts if each.claim.startswith("rejected")]
    assert rejections.outcome is Outcome.UNDETERMINED
    # Without --kinds it has to reject what is late.
    assert judge_workload(pairs(), exact_pairs, reference=MODEL).outcome is Outcome.BROKEN


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
    run: TimedRun = SLACK.timed.replay(workload)
    steps = [step for step in run.trace.steps() if not isinstance(step, Late)]
    return replace(run, trace=Trace("sim", steps))


def plant(monkeypatch: pytest.MonkeyPatch, replay: Callable[[Workload], TimedRun]) -> None:
    """Have another simulation replay recordings of room ``slack``."""
    timed: Any = SimpleNamespace(replay=replay)
    monkeypatch.setattr("straggler.rooms.slack.room.ROOM", replace(SLACK, timed=timed))


def test_a_wrong_simulation_is_our_mistake(
    straggler: Straggler, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch, wrong)
    done = straggler(*ASK, "--system", f"{OWN}:forgets_late")
    ours = "the simulation (observed) differs from the model (expected), our mistake: "
    assert (done.code, ours in done.out) == (1, True)
    assert "the system differs" not in done.out  # it does what the simulation does
    (stored,) = (files / "counterexamples").iterdir()
    name = f"counterexamples/{stored.name}"
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
    assert done.code == 0
    (row,) = json.loads((files / "v.json").read_text(encoding="utf-8"))
    assert OURS not in [claim["claim"] for claim in row["claims"]]


def stored(folder: Path, workload: Workload, system: str = RIGHT) -> Path:
    return Counterexample(system, workload, ("result", "late", "final"), ("it was.",)).store(folder)


def test_the_name_tells_room_system_and_claim_and_is_that_of_one_counterexample(
    tmp_path: Path,
) -> None:
    systems = ("exec:python3 ../a b.py", "exec:python3 ../a  b.py", "m:\x1b[2J", "m:\u202e")
    names = {stored(tmp_path, windows(), each).name for each in (*systems, *systems)}
    assert len(names) == len(systems)
    assert {Counterexample.load(tmp_path / name).system for name in names} == set(systems)
    assert sum(name.startswith("slack-python3-a-b-py-it-was-") for name in names) == 2


ROW = [0, 1, "", 2_000_000, 1.0, 2_000_000]
EDITED: tuple[dict[str, Any], ...] = (
    {"workload": []},
    {"kinds": [1]},
    {"reference": "sims"},
    {"config": {"size_us": 0, "slide_us": 1}},
    {"config": {"size_us": 10**6, "slide_us": 1}},
    {"config": {"size_us": 1, "slide_us": 1, "tasks": 10**9}},
    {"arrivals": [[0, 1]]},
    {"arrivals": [[*ROW[:3], 0.5, 1, 0]]},
    {"arrivals": [[0, 2**63, *ROW[2:]]]},
    {"arrivals": [[3, *ROW[1:]]]},
    {"arrivals": [ROW, [1, 2, "", 0, 1.0, 0]]},
    {"faults": [["explode", 0]]},
    {"faults": [["kill", True]]},
)
CONFIG_OF_CHAIN = JoinConfig(5, (("q", Equi("key")),), lateness_us=5).to_json()
CHAIN = Workload("join", (Event(0, 0, "a", 0, 1.0, 0, "R"),), CONFIG_OF_CHAIN)
TROUBLE: dict[str, Any] = {"kind": "again", "sender": 0, "receiver": 1, "nth": 0, "for_s": 0.01}
EDITED_TROUBLE: tuple[dict[str, Any], ...] = (
    {"trouble": {}},
    *(
        {"trouble": [{**TROUBLE, **wrong}]}
        for wrong in ({"kind": "slow"}, {"sender": -1}, {"epoch": "x"}, {"for_s": -1.0}, {"x": 1})
    ),
    {"trouble": [{"kind": "late"}]},
)


@pytest.mark.parametrize(
    ("workload", "edits"),
    [
        (windows(), (*EDITED, {"trouble": [TROUBLE]})),
        (CHAIN, EDITED_TROUBLE),
    ],
    ids=["workload", "chain"],
)
def test_an_edited_counterexample_is_refused(
    straggler: Straggler,
    tmp_path: Path,
    snapshot: SnapshotAssertion,
    workload: Workload,
    edits: tuple[dict[str, Any], ...],
) -> None:
    path = stored(tmp_path, workload)
    whole, said = path.read_text(encoding="utf-8"), []
    assert Counterexample.load(path).workload == workload
    for changes in edits:
        record = json.loads(whole)
        of_file = {*record, "reference", "trouble"}
        # Cuts of the stored arrivals would lie behind the end of fewer ones.
        for name, value in {**changes, **({"cuts": []} if "arrivals" in changes else {})}.items():
            (record if name in of_file else record["workload"])[name] = value
        path.write_text(json.dumps(record), encoding="utf-8")
        done = straggler("replay", path.name, "--trust")
        assert_refused(done, path.name)
        sentence = done.err.removeprefix("straggler: ").replace(path.name, "FILE").rstrip()
        said += [f"{changes!r}", f"    {sentence}"]
    assert "\n".join(said) == snapshot


def test_trouble_on_the_connections_of_a_chain_is_stored(
    straggler: Straggler, tmp_path: Path
) -> None:
    whole = Counterexample("model.join:make_system", CHAIN, ("match",), ("x",), trouble=(TROUBLE,))
    path = whole.store(tmp_path)
    assert Counterexample.load(path) == whole
    assert straggler("replay", path.name, "--trust").code == 0


@pytest.mark.parametrize("system", ["exec:touch ran", "ran:make", "exec:", "spark:x"])
def test_replay_runs_what_a_file_names_only_if_it_is_trusted(
    straggler: Straggler, tmp_path: Path, system: str
) -> None:
    code = "import pathlib\npathlib.Path('ran').touch()\n"
    (tmp_path / "ran.py").write_text(code, encoding="utf-8")
    path = str(stored(tmp_path / "c", windows(), system))
    assert_refused(straggler("replay", path), f"names the system {system!r}", "--trust", "--system")
    assert straggler("replay", path, "--system", RIGHT).code == 0
    assert not (tmp_path / "ran").exists()
    assert straggler("replay", path, "--trust").code in (1, 2)
    assert (tmp_path / "ran").exists() == (system in ("exec:touch ran", "ran:make"))


def test_a_workload_is_described_as_people_write_it() -> None:
    whole = windows()
    head = describe(whole, {"size_us": 10_000_000, "slide_us": 1_500_000, "tasks": 1})[0]
    assert "with size=10s, slide=1500ms, tasks=1" in head
    assert describe_plainer(whole, whole) == []
    first = whole.arrivals[0]
    plainer = whole.with_(arrivals=(first._replace(value=first.value + 1),), cuts=())
    (told,) = describe_plainer(whole, plainer)
    assert told == "Values are made as plain as the failure allows; the input has others."


def test_a_small_workload_gives_no_hint_on_kinds_that_are_recorded() -> None:
    hint = SILENT.format("match")
    small = (f"1 step is missing{hint}", "match r_id 1 is missing.")
    assert with_hint_of(("2 steps are missing",), small) == ("1 step is missing", small[1])
    assert with_hint_of((f"2 steps are missing{hint}",), small) == small
