"""``diff --reference``: the compared systems, and the prediction for the stated cluster."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from model.vocabulary import Event, GroupingConfig, Trace, Workload
from model.vocabulary.windows import Late
from sim.kernel.run import TimedRun
from straggler.judging.references import BOTH, MODEL, OURS, SIM, run_reference
from straggler.rooms import room_names
from straggler.rooms.grouping.room import ROOM as GROUPING
from straggler.rooms.slack.room import ROOM as SLACK
from tests.straggler.command import Straggler, assert_refused

OWN = "tests.straggler.own_systems"
RIGHT = "model.slack:make_system"
DISORDERED = (1, 2, 9, 3, 12, 30, 11, 40)
STREAM = ("--input", "stream.csv", "--time-unit", "s", "--batches", "3")
ASK = ("diff", "slack", *STREAM, "--control", "fixed", "--per", "task", "--aggregate", "sum")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Write a stream with late tuples, two streams to be joined, and a script."""
    rows = "".join(f"{time},1,{'ab'[n % 2]}\n" for n, time in enumerate(DISORDERED))
    for name in ("stream", "r", "s"):
        (tmp_path / f"{name}.csv").write_text(f"event_time,value,key\n{rows}", encoding="utf-8")
    (tmp_path / "means.script").write_text('x = avg("a", 10_000, 5_000)\n', encoding="utf-8")
    return tmp_path


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


# --------------------------------------------------------------------------- who differs from whom


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


# ------------------------------------------------------------------------------------ all the rooms

PAIR = ("--r", "r.csv", "--s", "s.csv", "--time-unit", "s", "--batches", "3", "--lateness", "10s")
SETS = ("--set", "window_tuples=4", "--set", "instances=4", "--policy", "tag")
SMALL = {
    "slack": (*STREAM, "--window", "5s", "--per", "task", "--aggregate", "sum"),
    "watermark": (*STREAM, "--window", "5s"),
    "join": (*PAIR, "--window", "5s", "--on", "key"),
    "grouping": (*STREAM[:4], *SETS),
    "script": ("--script", "means.script", *STREAM, "--key", "key", "--lateness", "5s"),
}


@pytest.mark.parametrize("name", room_names())
def test_a_replay_agrees_with_the_model(straggler: Straggler, files: Path, name: str) -> None:
    own = ("--system", f"model.{name}:make_system", "--json", "v.json")
    done = straggler("diff", name, *SMALL[name], *own)
    assert done.code in (0, 3), done
    for row in json.loads((files / "v.json").read_text(encoding="utf-8")):
        outcomes = {claim["claim"]: claim["outcome"] for claim in row["claims"]}
        assert outcomes[OURS] == "holds", (name, row["claims"])
        assert row["predicted_tuples_per_s"] > 0
        assert row["predicted_latency_p50_ms"] <= row["predicted_latency_p99_ms"]


# -------------------------------------------------------------------------------------- predictions


def test_the_rate_is_that_at_which_the_busiest_worker_never_rests() -> None:
    # Two tasks, one on each worker, take turns: the one of speed 0.5 takes 200 us a tuple.
    times = ((0, (100, 200)),)
    config = GroupingConfig(2, window_tuples=5_000, policy="round-robin", times_us=times)
    arrivals = tuple(Event(n, n, "a", n * 1_000, 1.0, n * 1_000, "") for n in range(20_000))
    workload = Workload("grouping", arrivals, config.to_json(), (5_000, 10_000, 15_000))
    predicted = run_reference(GROUPING, workload, SIM, GROUPING.step_types).predicted
    # Exponential service of 10,000 tuples: six standard errors are 6%.
    assert predicted.predicted_tuples_per_s == pytest.approx(10_000, rel=0.06)
