"""``diff --reference``: the compared systems, and the prediction for the stated cluster."""

import gc
import json
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from model.checking.claims import Outcome
from model.slack import make_system
from model.vocabulary import Event, GroupingConfig, JoinConfig, SlackConfig, System, Trace, Workload
from model.vocabulary.join import Equi
from model.vocabulary.slack import WORDS
from model.vocabulary.windows import Late
from sim.clusters import STATED
from sim.grouping.room import stated_cluster
from sim.kernel.run import TimedRun
from straggler.errors import UsageError
from straggler.inputs.durations import write_short
from straggler.judging.references import BOTH, MODEL, OURS, REFERENCES, SIM, run_reference
from straggler.rooms import find_room, room_names
from straggler.rooms.grouping.room import ROOM as GROUPING
from straggler.rooms.join.room import ROOM as JOIN
from straggler.rooms.slack.room import ROOM as SLACK
from tests.straggler.command import Done, Straggler, assert_refused

RIGHT = "model.slack:make_system"
DISORDERED = (1, 2, 9, 3, 12, 30, 11, 40)
SCRIPT = 'x = avg("a", 10_000, 5_000)\n'


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Write a stream with late tuples, and two streams to be joined."""
    rows = "".join(f"{time},1,{'ab'[n % 2]}\n" for n, time in enumerate(DISORDERED))
    for name in ("stream", "r", "s"):
        (tmp_path / f"{name}.csv").write_text(f"event_time,value,key\n{rows}", encoding="utf-8")
    return tmp_path


ASK = ("--input", "stream.csv", "--time-unit", "s", "--batches", "3")
SLACK_ASK = ("diff", "slack", *ASK, "--control", "fixed", "--per", "task", "--aggregate", "sum")
STEPS = ("--level", "steps")


def forgets() -> System:
    """Return a System that loses late pairs."""
    right = make_system()

    def system(workload: Workload, /) -> Trace:
        steps = right(workload).steps()
        return Trace("forgets", [step for step in steps if not isinstance(step, Late)])

    return system


def wrong(workload: Workload) -> TimedRun:
    """Simulate the workload and lose the late pairs."""
    run = SLACK.replay(workload)
    steps = [step for step in run.trace.steps() if not isinstance(step, Late)]
    return replace(run, trace=Trace("sim", steps))


def plant(monkeypatch: pytest.MonkeyPatch, replay: Callable[[Workload], TimedRun]) -> None:
    """Have another simulation replay recordings of room ``slack``."""
    monkeypatch.setattr("straggler.rooms.slack.room.ROOM", replace(SLACK, replay=replay))


# --------------------------------------------------------------------------- who differs from whom


@pytest.mark.parametrize(
    ("reference", "compared"), [(SIM, "simulation"), (MODEL, "model"), (BOTH, "simulation")]
)
def test_a_wrong_system_is_named_and_leaves_a_counterexample(
    straggler: Straggler, files: Path, reference: str, compared: str
) -> None:
    done = straggler(*SLACK_ASK, "--system", f"{__name__}:forgets", "--reference", reference)
    assert done.code == 1
    differs = f"the system differs from the {compared}: "
    assert differs in done.out
    assert "our mistake" not in done.out
    assert f"1 of 1 comparison broken: {__name__}:forgets does not do what was" in done.out
    (stored,) = (files / "counterexamples").iterdir()
    record = json.loads(stored.read_text(encoding="utf-8"))
    assert record["reference"] == reference
    assert len(record["workload"]["arrivals"]) <= 3
    again = straggler("replay", f"counterexamples/{stored.name}", "--trust")
    assert again.code == 1
    assert differs in again.out
    assert straggler("replay", f"counterexamples/{stored.name}", "--system", RIGHT).code == 0


def test_a_wrong_simulation_is_our_mistake(
    straggler: Straggler, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch, wrong)
    done = straggler(*SLACK_ASK, "--system", f"{__name__}:forgets")
    assert done.code == 1
    ours = "the simulation (observed) differs from the model (expected), our mistake: "
    assert ours in done.out
    assert "the system differs" not in done.out  # it does what the simulation does
    (stored,) = (files / "counterexamples").iterdir()
    again = straggler("replay", f"counterexamples/{stored.name}", "--trust")
    assert again.code == 1
    assert ours in again.out
    monkeypatch.setattr("straggler.rooms.slack.room.ROOM", SLACK)
    assert straggler("replay", f"counterexamples/{stored.name}", "--system", RIGHT).code == 0


def test_a_system_is_not_blamed_for_the_simulation_alone(
    straggler: Straggler, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch, lambda workload: replace(SLACK.replay(workload), trace=Trace("sim", ())))
    kinds = ("--kinds", "late", *STEPS)
    done = straggler(*SLACK_ASK, *kinds, "--system", f"{__name__}:forgets")
    assert done.code == 1
    assert "our mistake and says nothing against" not in done.out  # a claim is broken, too
    silent = straggler(*SLACK_ASK, "--kinds", "final", "--system", f"{__name__}:says_nothing")
    assert silent.code == 1
    assert (
        "1 of 1 comparison broken: the simulation differs from the model, which is our"
        f" mistake and says nothing against {__name__}:says_nothing." in silent.out
    )


def says_nothing() -> System:
    """Return a System that records no step, so that no claim can be broken."""
    return lambda _: Trace("nothing", ())


def test_reference_model_runs_no_simulation(
    straggler: Straggler, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch, wrong)
    ask = ("--reference", MODEL, "--json", "v.json")
    done = straggler(*SLACK_ASK, "--system", RIGHT, *ask)
    assert done.code == 0, done.out
    assert "redicted" not in done.out
    (row,) = json.loads((files / "v.json").read_text(encoding="utf-8"))
    assert row["reference"] == MODEL
    assert {row[name] for name in row if name.startswith("predicted_")} == {None}
    assert OURS not in [claim["claim"] for claim in row["claims"]]


# ---------------------------------------------------------------------- workloads that systems get


def test_a_system_is_run_once_on_the_workload_of_the_simulation(
    straggler: Straggler, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sheds(workload: Workload) -> TimedRun:
        arrivals = [event for event in workload.arrivals if event.seq != 4]
        kept = tuple([event._replace(seq=seq) for seq, event in enumerate(arrivals)])
        return SLACK.replay(workload.with_(arrivals=kept, cuts=(3,)))

    plant(monkeypatch, sheds)
    GIVEN.clear()
    done = straggler(*SLACK_ASK, "--system", f"{__name__}:remembers")
    assert done.code == 0, done.out
    (given,) = GIVEN
    assert len(given.arrivals) == len(DISORDERED) - 1
    assert given.cuts == (3,)


GIVEN: list[Workload] = []


def remembers() -> System:
    """Return the model as a System that remembers its workloads."""
    right = make_system()

    def system(workload: Workload, /) -> Trace:
        GIVEN.append(workload)
        return right(workload)

    return system


def test_kinds_that_a_system_does_not_record_are_not_compared(
    straggler: Straggler, files: Path
) -> None:
    ask = (*SLACK_ASK, "--system", f"{__name__}:forgets")
    for reference in REFERENCES:
        done = straggler(*ask, "--kinds", "final,result", "--reference", reference)
        assert done.code == 0, done.out
        assert done.out.count("which are not recorded") == 0  # no claim on answers needs late pairs
        steps = straggler(*ask, "--kinds", "final,result", *STEPS, "--reference", reference)
        assert "differs from" not in steps.out


# ------------------------------------------------------------------------------------ all the rooms


def small_cases(files: Path, straggler: Straggler) -> dict[str, list[str]]:
    """Return the options of a small comparison, by room."""
    (files / "means.script").write_text(SCRIPT, encoding="utf-8")
    windows = [*ASK, "--window", "5s"]
    pair = ["--r", "r.csv", "--s", "s.csv", "--time-unit", "s", "--batches", "3"]
    script = ["--script", "means.script", *ASK, "--key", "key", "--lateness", "5s"]
    sets = ["--set", "window_tuples=4", "--set", "instances=4"]
    return {
        "slack": [*windows, "--per", "task", "--aggregate", "sum"],
        "watermark": windows,
        "join": [*pair, "--window", "5s", "--on", "key", "--lateness", "10s"],
        "grouping": ["--input", "stream.csv", "--time-unit", "s", *sets, "--policy", "tag"],
        "script": script,
    }


def test_a_replay_agrees_with_the_model_in_every_room(straggler: Straggler, files: Path) -> None:
    for name, options in small_cases(files, straggler).items():
        own = ("--system", f"model.{name}:make_system", "--json", f"{name}.json")
        done = straggler("diff", name, *options, *own)
        assert done.code in (0, 3), done
        assert "Predicted by a replay through workers " in done.out
        for row in json.loads((files / f"{name}.json").read_text(encoding="utf-8")):
            outcomes = {claim["claim"]: claim["outcome"] for claim in row["claims"]}
            assert outcomes[OURS] == "holds", (name, row["claims"])
            assert row["predicted_tuples_per_s"] > 0
            assert row["predicted_latency_p50_ms"] <= row["predicted_latency_p99_ms"]


@pytest.mark.parametrize("name", room_names())
def test_examples_of_planted_bugs_are_replayed_as_the_model_runs_them(name: str) -> None:
    chosen = find_room(name)
    for variant, bug in chosen.explorer.variants.items():
        found = run_reference(chosen, bug.example, BOTH, chosen.step_types)
        (verdict,) = found.simulated
        assert verdict.outcome is not Outcome.BROKEN, (variant, verdict)
        # As text, in which a value that is no number equals itself.
        assert repr(found.workload.arrivals) == repr(bug.example.arrivals)
        assert found.workload.faults == bug.example.faults
        nothing = run_reference(
            chosen, bug.example.with_(arrivals=(), cuts=()), BOTH, chosen.step_types
        )
        assert nothing.workload.arrivals == ()
        assert nothing.predicted.predicted_tuples_per_s is None


def test_a_replay_sheds_and_reorders_nothing() -> None:
    workload = recorded(300)
    found = run_reference(SLACK, workload, BOTH, WORDS)
    assert found.workload is workload
    assert [verdict.outcome for verdict in found.simulated] == [Outcome.HOLDS]


def recorded(n: int, apart_us: int = 1_000) -> Workload:
    """Return tuples that arrive at this distance, some of them late."""
    arrivals = tuple(
        Event(
            seq, seq, "ab"[seq % 2], (seq - 9 * (seq % 7 == 0)) * apart_us, 1.0, seq * apart_us, ""
        )
        for seq in range(n)
    )
    config = {**CONFIG, "size_us": 10 * apart_us, "slide_us": 5 * apart_us}
    return Workload("slack", arrivals, config, (n // 3, n // 2), name="recorded")


CONFIG = SlackConfig(9_000, 3_000, control="fixed").to_json()

# -------------------------------------------------------------------------------------- predictions


def test_the_rate_is_that_at_which_the_busiest_worker_never_rests() -> None:
    # Two tasks, one on each worker, take turns: the one of speed 0.5 takes 200 us a tuple.
    key_by_key = GroupingConfig(
        2, window_tuples=5_000, policy="round-robin", times_us=((0, (100, 200)),)
    )
    arrivals = tuple(
        Event(seq, seq, "a", seq * 1_000, 1.0, seq * 1_000, "") for seq in range(20_000)
    )
    workload = Workload("grouping", arrivals, key_by_key.to_json(), (5_000, 10_000, 15_000))
    predicted = run_reference(GROUPING, workload, SIM, GROUPING.step_types).predicted
    # Exponential service of 10,000 tuples: six standard errors are 6%.
    assert predicted.predicted_tuples_per_s == pytest.approx(10_000, rel=0.06)
    run = GROUPING.replay(workload)
    median_us = run.summary["median_latency_us"]
    assert predicted.predicted_latency_p50_ms == pytest.approx(float(median_us) / 1_000)


def test_instances_are_as_fast_as_the_query_says() -> None:
    config = GroupingConfig(3, times_us=((0, (10, 50, 20)), (2, (99, 1, 1))))
    cluster = stated_cluster(config)
    assert [worker.speed for worker in cluster.workers] == [1.0, 0.2, 0.5]
    assert [worker.place for worker in cluster.workers] == [
        STATED.worker(number).place for number in range(3)
    ]
    assert stated_cluster(GroupingConfig(3)) is STATED


def test_a_chain_looks_at_itself_less_often_in_a_recording_of_years() -> None:
    year_us = 31_536_000_000_000
    arrivals = tuple(
        Event(seq, seq // 2, "a", seq * year_us, 1.0, seq * year_us, "RS"[seq % 2])
        for seq in range(6)
    )
    config = JoinConfig(2 * year_us, (("key", Equi("key")),), workers=3)
    workload = Workload("join", arrivals, config.to_json(), name="years")
    run = JOIN.replay(workload)
    assert len(next(iter(run.series.values()))) < 20_000
    assert (
        run_reference(JOIN, workload, BOTH, JOIN.step_types).simulated[0].outcome is Outcome.HOLDS
    )


@pytest.mark.parametrize(
    ("duration_us", "text"),
    [
        (0.0, "0.00us"),
        (0.5, "0.50us"),
        (238.4, "238us"),
        (999.6, "1,000us"),
        (4_280.0, "4.28ms"),
        (-2_800_000.0, "-2.80s"),
        (90 * 60e6, "1.50h"),
        (400 * 86_400e6, "400d"),
    ],
)
def test_durations_are_written_with_three_digits(duration_us: float, text: str) -> None:
    assert write_short(duration_us) == text


# ----------------------------------------------------------------------------------------- refusals


def test_an_unknown_reference_is_refused(straggler: Straggler, files: Path) -> None:
    done = straggler(*SLACK_ASK, "--system", RIGHT, "--reference", "sims")
    assert_refused(done, "--reference", "'sims'", "both")


def test_an_impossible_replay_is_refused_in_one_sentence(
    straggler: Straggler, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(_: Workload) -> TimedRun:
        msg = "Plan.epoch_us is 7"
        raise ValueError(msg)

    plant(monkeypatch, refuses)
    done = straggler(*SLACK_ASK, "--system", RIGHT)
    assert_refused(done, "stream", "cannot be replayed", "Plan.epoch_us is 7", "--reference model")
    assert straggler(*SLACK_ASK, "--system", RIGHT, "--reference", MODEL).code == 0


def test_a_result_beyond_float64_is_refused_by_the_simulation_as_well() -> None:
    def overflows(_: Workload) -> TimedRun:
        raise OverflowError

    with pytest.raises(UsageError, match="recorded: a result leaves the range of float64"):
        run_reference(replace(SLACK, replay=overflows), recorded(3), SIM, WORDS)


def test_an_unknown_stored_reference_is_refused(straggler: Straggler, files: Path) -> None:
    straggler(*SLACK_ASK, "--system", f"{__name__}:forgets")
    (stored,) = (files / "counterexamples").iterdir()
    record = json.loads(stored.read_text(encoding="utf-8"))
    stored.write_text(json.dumps({**record, "reference": "sims"}), encoding="utf-8")
    assert_refused(
        straggler("replay", f"counterexamples/{stored.name}", "--trust"), "'sims'", "sim, model"
    )
    del record["reference"]  # as in files that older versions wrote
    stored.write_text(json.dumps(record), encoding="utf-8")
    again = straggler("replay", f"counterexamples/{stored.name}", "--trust")
    assert "the system differs from the model: " in again.out


def test_ctrl_c_ends_a_simulation(
    straggler: Straggler, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(workload: Workload) -> TimedRun:
        before = signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
        gc.disable()  # an interrupt inside a callback of the collector is swallowed
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        try:
            return SLACK.replay(recorded(200_000))
        finally:
            gc.enable()
            signal.signal(signal.SIGALRM, before)

    plant(monkeypatch, interrupted)
    heard = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        done = straggler(*SLACK_ASK, "--system", RIGHT)
    finally:
        signal.signal(signal.SIGINT, heard)
    assert done == Done(130, "", "straggler: interrupted.\n")
