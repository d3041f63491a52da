"""``straggler explore`` and ``straggler sim``: small scopes searched, and timed runs."""

import re
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
    assert "Every claim holds in 1,568 states." in done.out


def options(settings: str) -> list[str]:
    return [part for setting in settings.split() for part in ("--set", setting)]


@pytest.mark.parametrize(
    ("room", "settings", "words"),
    [
        ("join", "seconds=5 window_us=5", "that scheduling and batches could have changed: "),
        ("grouping", "tuples=300 batch_tuples=100 keys=20", "the cases that matter never came up"),
    ],
)
def test_a_run_in_which_nothing_happened_is_undetermined(
    straggler: Straggler, room: str, settings: str, words: str
) -> None:
    done = straggler("sim", room, *options(settings))
    assert (done.code, words in " ".join(done.out.split())) == (3, True), done


def test_faults_have_times_with_units_and_those_that_come_too_late_are_named(
    straggler: Straggler,
) -> None:
    def run(faults: str) -> str:
        size = "tuples=1500 window_tuples=500 batch_tuples=250 keys=60 instances=4"
        given = options(f"{size} policies=none tiers=node")
        return straggler("sim", "grouping", *given, "--set", f"faults={faults}").out

    plain = run("slow worker-1 1000000 9000 2.5; replay log>worker-1 3 1500")
    written = run("slow worker-1 1s 9ms 2.5; replay log>worker-1 3 1.5ms")
    assert written.rsplit("digest ", 1)[1] == plain.rsplit("digest ", 1)[1]
    late = run("slow worker-1 1 9 2; pause worker-0 700000000 5")
    assert "pause worker-0 at 700s changed nothing" in late
    assert "slow worker-1" not in late


def test_workers_without_work_and_faults_that_meet_none_are_named(straggler: Straggler) -> None:
    given = options("messages=100 keys=1 tasks=3")
    faults = "fail worker-0 5s 1s; fail worker-1 5s 1s; fail worker-2 5s 1s"
    said = straggler("sim", "slack", *given, "--set", f"faults={faults}").out
    assert "idle: 2 of 3 workers had no work: worker-" in said
    assert said.count(" at 5s changed nothing, because worker-") == 2


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
