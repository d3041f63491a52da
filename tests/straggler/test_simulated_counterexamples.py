"""A simulated cluster that breaks a promise: made small, stored with its plan, and run again."""

import json
from math import inf
from pathlib import Path

import pytest

from model.slack import make_system
from model.slack.variants import VARIANTS
from model.vocabulary import SlackConfig, Trace, Workload
from model.vocabulary.slack import WORDS
from sim.kernel.distributions import Exponential
from sim.kernel.faults import Duplicate, Fail, Lose, Pause
from sim.kernel.link import Place
from sim.kernel.plan import Cluster, Plan, Worker
from sim.kernel.source import Source
from straggler.judging.counterexamples import Counterexample, SimulatedCluster
from straggler.judging.plan_counterexamples import SeededPlan, describe, smallest
from straggler.judging.trial import Trial
from straggler.rooms import find_room
from tests.straggler.command import Straggler, assert_refused

BUGGY = "model.slack.variants:lost_update"
CONFIG = SlackConfig(9_000, 3_000, tasks=2, control="fixed", gamma_us=9_000).to_json()
EMPTY = {"is": "Plan", "sources": []}
CASE = SeededPlan(
    Plan(
        tuple(Source(30, Exponential(1_500.0), delay=Exponential(9_000.0)) for _ in range(3)),
        cluster=Cluster((Worker(place=Place(node=1)), Worker(0.2, queue_limit=3))),
        faults=(
            Fail("worker-0", 10_000, 4_000),
            Pause("worker-1", 5_000, 1_000),
            Duplicate("source-0", 3, 500),
        ),
    ),
    7,
)


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """Store the counterexample of a planted bug on this cluster."""
    slack = find_room("slack")
    trial = Trial(slack, VARIANTS["lost_update"].make_system(), BUGGY, WORDS)
    given = SimulatedCluster("slack", CONFIG, CASE)
    broken = trial.broken_cluster(given)
    assert broken, "the planted bug does not show on this cluster"
    lines = trial.report_cluster(given, tmp_path / "small")
    assert lines[-1].startswith("Stored in ")
    assert "It takes this cluster" in "\n".join(lines)
    small = Counterexample.load(next((tmp_path / "small").iterdir())).given
    assert isinstance(small, SimulatedCluster)
    assert trial.broken_cluster(small)
    assert len(small.case.plan.sources) == 1
    assert not small.case.plan.faults
    return Counterexample(BUGGY, given, ("result", "late"), broken).store(
        tmp_path / "counterexamples"
    )


def test_a_file_holds_the_plan_and_is_read_back_as_it_was(stored: Path) -> None:
    found = Counterexample.load(stored)
    assert found.given == SimulatedCluster("slack", CONFIG, CASE)
    record = json.loads(stored.read_text(encoding="utf-8"))
    assert record["counterexample"] == 2
    assert record["seed"] == 7
    assert record["plan"]["faults"][0] == {
        "is": "Fail",
        "worker": "worker-0",
        "at_us": 10_000,
        "for_us": 4_000,
    }
    assert "arrivals" not in record


def test_replay_describes_the_cluster_and_runs_it_again(stored: Path, straggler: Straggler) -> None:
    done = straggler("replay", f"counterexamples/{stored.name}", "--trust")
    assert done.code == 1
    assert "worker-0 fails from 10ms for 4ms." in done.out
    assert "source-0 sends 30 tuples, one every 1500us on average" in done.out
    assert "It still fails." in done.out
    mended = straggler(
        "replay", f"counterexamples/{stored.name}", "--system", "model.slack:make_system"
    )
    assert mended.code == 0
    assert "does not fail any more" in mended.out


def test_a_smaller_cluster_in_which_a_fault_has_no_target_is_passed_over() -> None:
    lossy = Plan(
        (Source(30), Source(30, place=Place(node=1))),
        faults=(Fail("worker-0", 10_000, 4_000), Lose("source-1>log", 3)),
    )

    def crashes(case: SeededPlan) -> bool:
        return bool(find_room("slack").simulate_plan(case.plan, CONFIG, case.seed).workload.faults)

    small = smallest(SeededPlan(lossy, 7), crashes, seconds=inf).plan
    assert len(small.sources) == 1
    assert [fault.kind for fault in small.faults] == ["fail"]


@pytest.mark.parametrize("name", ["spark", "model.slack:make_system"])
def test_a_promise_that_simulation_and_system_break_alike_is_stored(
    tmp_path: Path, name: str
) -> None:
    def few(workload: Workload, _: Trace) -> list[str]:
        return ["There are six tuples or more."] if len(workload.arrivals) > 5 else []

    trial = Trial(find_room("slack"), make_system(), name, WORDS, promise=few)
    lines = trial.report_cluster(SimulatedCluster("slack", CONFIG, CASE), tmp_path)
    found = Counterexample.load(next(tmp_path.iterdir()))
    assert lines[0] == found.broken[0] == "There are six tuples or more."
    assert isinstance(found.given, SimulatedCluster)
    sources = found.given.case.plan.sources
    assert sum(source.events for source in sources if isinstance(source, Source)) == 6


def test_a_cluster_that_breaks_nothing_alone_is_stored_with_what_was_seen(tmp_path: Path) -> None:
    trial = Trial(find_room("slack"), make_system(), "model.slack:make_system", WORDS)
    trial.report_cluster(
        SimulatedCluster("slack", CONFIG, CASE), tmp_path, ["It broke among others."]
    )
    assert Counterexample.load(next(tmp_path.iterdir())).broken == ("It broke among others.",)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"seed": -1}, "its seed is -1"),
        ({"config": [1]}, "its config is [1]"),
        ({"plan": {"is": "Place"}}, "which is no Plan"),
        (
            {"plan": {"is": "Plan", "sources": [], "faults": [{"is": "Fial"}]}},
            "did you mean 'Fail'?",
        ),
        (
            {"plan": {"is": "Plan", "sources": [], "relays": [{"is": "Worker", "speed": 0}]}},
            "speed is 0",
        ),
        (
            {"plan": {**EMPTY, "faults": [{"is": "Fail", "worker": "w", "at_us": 5.5}]}},
            "Fail.at_us is 5.5; it must be an integer",
        ),
        ({"plan": {**EMPTY, "faults": ["boom"]}}, "Plan.faults[0] is 'boom'; it must be Pause,"),
        (
            {"plan": {"is": "Plan", "sources": [{"is": "Source", "events": 1, "interval": 5}]}},
            "Source.interval is 5; it must be Constant,",
        ),
        ({"plan": {**EMPTY, "trigger": {"is": "At", "cuts": [9, 3]}}}, "At.cuts is [9, 3]"),
        ({"plan": EMPTY}, "its plan has no sources; it must have at least one"),
    ],
)
def test_an_edited_file_is_refused_with_one_sentence(
    stored: Path, straggler: Straggler, change: dict[str, object], words: str
) -> None:
    record = json.loads(stored.read_text(encoding="utf-8"))
    stored.write_text(json.dumps({**record, **change}), encoding="utf-8")
    assert_refused(straggler("replay", f"counterexamples/{stored.name}", "--trust"), words)


def test_a_cluster_is_made_as_small_as_what_it_shows() -> None:
    slack = find_room("slack")

    def fails(case: SeededPlan) -> bool:
        run = slack.simulate_plan(case.plan, CONFIG, case.seed)
        return int(run.summary["late_pairs"]) >= 1

    assert fails(CASE)
    small = smallest(CASE, fails, seconds=inf)
    assert fails(small)
    assert not small.plan.faults
    assert len(small.plan.sources) == 1
    assert sum(source.events for source in small.plan.sources if isinstance(source, Source)) <= 4
    assert small.plan.cluster.workers == (Worker(), Worker())
    assert small.seed == 0 or len(describe(small)) < 8


def test_a_cluster_of_large_values_is_shrunk_as_well() -> None:
    plan = Plan((Source(12, low=1 << 40, high=(1 << 40) + 100), Source(12)))

    def fails(case: SeededPlan) -> bool:
        run = find_room("slack").simulate_plan(case.plan, CONFIG, case.seed)
        return bool(run.workload.arrivals)

    (small,) = smallest(SeededPlan(plan, 7), fails, seconds=inf).plan.sources
    assert isinstance(small, Source)
    assert (small.low, small.high) == (Source(1).low, Source(1).high)
