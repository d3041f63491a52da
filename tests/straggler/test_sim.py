"""``straggler explore`` and ``straggler sim``: small scopes searched, and timed runs."""

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sim.kernel.disorder import Burst
from sim.kernel.distributions import Constant
from sim.kernel.plan import Plan
from sim.kernel.source import Source
from straggler.cli import sim
from tests.straggler.command import Straggler


def test_a_scope_is_searched(straggler: Straggler) -> None:
    done = straggler("explore", "slack", "--scope", "conformal")
    assert done.code == 0
    assert "scope conformal: 1,568 states, 2,631 transitions, depth 18" in done.out
    assert done.out.startswith("Every claim holds in 1,568 states.\n")


def digest(said: str) -> str:
    """Return the digest of a run from the line behind its verdict."""
    _, compared, *_ = said.splitlines()
    assert re.search(r"without scheduling and batches, all [\d,]+ steps are the same\. ", compared)
    return compared.rsplit("digest ", 1)[1]


def options(settings: str) -> list[str]:
    return [part for setting in settings.split() for part in ("--set", setting)]


@pytest.mark.parametrize(
    ("room", "settings", "words"),
    [
        ("join", "seconds=5 window_us=5", "it tests too little; nothing matched in "),
        ("grouping", "tuples=300 batch_tuples=100 keys=20", "the cases that matter never came up"),
    ],
)
def test_a_run_in_which_nothing_happened_is_undetermined(
    straggler: Straggler, room: str, settings: str, words: str
) -> None:
    done = straggler("sim", room, *options(settings))
    assert (done.code, words in " ".join(done.out.split())) == (3, True), done


def test_the_verdict_comes_first_and_the_file_of_the_plot_last(
    straggler: Straggler, tmp_path: Path
) -> None:
    settings = options("messages=3000 keys=3")
    first, *_, last = straggler("sim", "slack", *settings, "--plot", "it.svg").out.splitlines()
    assert first.startswith("Every claim holds in this run; there were ")
    assert last == "it.svg: the plot of this run."
    assert (tmp_path / "it.svg").is_file()


def test_faults_have_times_with_units_and_those_that_come_too_late_are_named(
    straggler: Straggler,
) -> None:
    def run(faults: str) -> str:
        size = "tuples=1500 window_tuples=500 batch_tuples=250 keys=60 instances=4"
        given = options(f"{size} policies=none tiers=node")
        return straggler("sim", "grouping", *given, "--set", f"faults={faults}").out

    plain = run("slow worker-1 1000000 9000 2.5; replay log>worker-1 3 1500")
    written = run("slow worker-1 1s 9ms 2.5; replay log>worker-1 3 1.5ms")
    assert digest(written) == digest(plain)
    late = run("slow worker-1 1 9 2; pause worker-0 700000000 5")
    named = r"pause worker-0 at 700s changed nothing, because the run was over at \d{1,3}ms"
    assert re.search(named, late)
    assert "slow worker-1" not in late


def test_given_settings_are_laid_over_the_example(straggler: Straggler, tmp_path: Path) -> None:
    def figures(*given: str) -> dict[str, Any]:
        done = straggler("sim", "slack", *options(" ".join(given)), "--json", str(tmp_path / "it"))
        assert done.code in (0, 3)
        record: dict[str, Any] = json.loads((tmp_path / "it").read_text(encoding="utf-8"))
        return record

    changed = figures("control=max", "size=5s")
    assert (changed["input"], changed["control"]) == ("bursts, simulated", "max")
    assert changed["utilisation_0"] > 0.5
    assert changed["digest"] == figures("size_us=5000000", "control=max")["digest"]
    other = figures("scenario=umts")
    assert (other["input"][:4], other["served_again"]) == ("umts", 8)
    assert 0.2 < other["utilisation_0"] < other["utilisation_1"] < 0.8


def test_the_example_of_a_run_is_shown_as_far_as_it_holds(straggler: Straggler) -> None:
    said = straggler("sim", "slack", *options("messages=100 tasks=1 tiers=node")).out
    shown = "--set scenario=bursts --set service_us=10ms --set faults='fail worker-0 100s 4s'"
    assert f"From the example: {shown}\n" in said


def test_workers_without_work_and_faults_that_meet_none_are_named(straggler: Straggler) -> None:
    given = options("messages=100 keys=1 tasks=3")
    faults = "fail worker-0 2s 1s; fail worker-1 2s 1s; fail worker-2 2s 1s"
    said = straggler("sim", "slack", *given, "--set", f"faults={faults}").out
    assert "idle: 2 of 3 workers had no work: worker-" in said
    assert said.count(" at 2s changed nothing, because worker-") == 2


@pytest.mark.parametrize(
    ("room", "scenario", "times"),
    [("slack", "bursts", ["30s", "80s"]), ("watermark", "phases", ["40s"])],
)
def test_bursts_of_a_scenario_that_is_cut_short_are_named(
    straggler: Straggler, room: str, scenario: str, times: list[str]
) -> None:
    said = straggler("sim", room, *options(f"scenario={scenario} messages=20")).out
    assert re.findall(r"burst: the one at (\w+) is left out", " ".join(said.split())) == times


def test_a_burst_behind_the_last_tuple_of_its_own_source_is_named() -> None:
    short, long = (Source(events=events, interval=Constant(1_000_000)) for events in (5, 50))
    bursts = [Burst(10_000_000, 1, 1.0, Constant(0), source=source) for source in (0, 1, None)]
    plan = Plan((short, long), disturbances=tuple(bursts))
    timed: Any = SimpleNamespace(plan=plan, workload=SimpleNamespace(seed=0))
    assert [each.name for each in sim._too_late(timed)] == ["burst"]
