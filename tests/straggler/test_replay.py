"""Stored counterexamples: run again, refused if edited, made small with the plan of a cluster."""

import json
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from model.slack.variants import VARIANTS
from model.vocabulary import Event, JoinConfig, SlackConfig, Workload
from model.vocabulary.join import Equi
from model.vocabulary.slack import WORDS
from sim.kernel.distributions import Exponential
from sim.kernel.faults import Duplicate, Fail, Pause
from sim.kernel.link import Place
from sim.kernel.plan import Cluster, Plan, Worker
from sim.kernel.source import Source
from straggler.judging.counterexamples import Counterexample, SimulatedCluster
from straggler.judging.plan_counterexamples import SeededPlan
from straggler.judging.trial import Trial
from straggler.rooms import find_room
from tests.straggler.command import Straggler, assert_refused
from tests.straggler.small_workloads import windows

MODEL = "model.slack:make_system"
BUGGY = "model.slack.variants:lost_update"
CONFIG = SlackConfig(9_000, 3_000, tasks=2, control="fixed", gamma_us=9_000).to_json()
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
CLUSTER = SimulatedCluster("slack", CONFIG, CASE)


def stored(folder: Path, given: Workload | SimulatedCluster, system: str = MODEL) -> Path:
    return Counterexample(system, given, ("result", "late", "final"), ("it was.",)).store(folder)


def test_the_name_tells_room_system_and_claim_and_is_that_of_one_counterexample(
    tmp_path: Path,
) -> None:
    systems = ("exec:python3 ../a b.py", "exec:python3 ../a  b.py", "m:\x1b[2J", "m:\u202e")
    names = {stored(tmp_path, windows(), each).name for each in (*systems, *systems)}
    assert len(names) == len(systems)
    assert {Counterexample.load(tmp_path / name).system for name in names} == set(systems)
    assert sum(name.startswith("slack-python3-a-b-py-it-was-") for name in names) == 2


ROW = [0, 1, "", 2_000_000, 1.0, 2_000_000]
NO_PLAN: dict[str, Any] = {"is": "Plan", "sources": []}
EDITED: tuple[dict[str, Any], ...] = (
    {"workload": []},
    {"kinds": [1]},
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
EDITED_PLANS: tuple[dict[str, Any], ...] = (
    {"seed": -1},
    {"plan": {"is": "Place"}},
    {"plan": {**NO_PLAN, "faults": [{"is": "Fial"}]}},
    {"plan": {**NO_PLAN, "relays": [{"is": "Worker", "speed": 0}]}},
    {"plan": {**NO_PLAN, "faults": [{"is": "Fail", "worker": "w", "at_us": 5.5}]}},
    {"plan": {"is": "Plan", "sources": [{"is": "Source", "events": 1, "interval": 5}]}},
    {"plan": NO_PLAN},
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
    ("given", "edits"),
    [
        (windows(), (*EDITED, {"trouble": [TROUBLE]})),
        (CLUSTER, EDITED_PLANS),
        (CHAIN, EDITED_TROUBLE),
    ],
    ids=["workload", "plan", "chain"],
)
def test_an_edited_counterexample_is_refused(
    straggler: Straggler,
    tmp_path: Path,
    snapshot: SnapshotAssertion,
    given: Workload | SimulatedCluster,
    edits: tuple[dict[str, Any], ...],
) -> None:
    path = stored(tmp_path, given)
    whole, said = path.read_text(encoding="utf-8"), []
    assert Counterexample.load(path).given == given
    for changes in edits:
        record = json.loads(whole)
        # Cuts of the stored arrivals would lie behind the end of fewer ones.
        for name, value in {**changes, **({"cuts": []} if "arrivals" in changes else {})}.items():
            (record if name in (*record, "trouble") else record["workload"])[name] = value
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
    assert straggler("replay", path, "--system", MODEL).code == 0
    assert not (tmp_path / "ran").exists()
    assert straggler("replay", path, "--trust").code in (1, 2)
    assert (tmp_path / "ran").exists() == (system in ("exec:touch ran", "ran:make"))


def test_a_broken_cluster_is_made_small_stored_with_its_plan_and_run_again(
    straggler: Straggler, tmp_path: Path
) -> None:
    trial = Trial(find_room("slack"), VARIANTS["lost_update"].make_system(), BUGGY, WORDS)
    broken = trial.broken_cluster(CLUSTER)
    assert broken, "the planted bug does not show on this cluster"
    lines = trial.report_cluster(CLUSTER, tmp_path / "small")
    assert "It takes this cluster" in "\n".join(lines)
    small = Counterexample.load(next((tmp_path / "small").iterdir())).given
    assert isinstance(small, SimulatedCluster)
    assert trial.broken_cluster(small)
    assert (len(small.case.plan.sources), small.case.plan.faults) == (1, ())
    path = stored(tmp_path, CLUSTER, BUGGY)
    assert Counterexample.load(path).given == CLUSTER
    record = json.loads(path.read_text(encoding="utf-8"))
    assert (record["counterexample"], record["seed"], "arrivals" in record) == (2, 7, False)
    done = straggler("replay", path.name, "--trust")
    assert (done.code, "It still fails." in done.out) == (1, True)
    assert "worker-0 fails from 10ms for 4ms." in done.out
    assert straggler("replay", path.name, "--system", MODEL).code == 0
