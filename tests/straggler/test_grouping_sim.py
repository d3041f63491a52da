"""``straggler sim grouping``: figures, policies side by side, plots, and what is refused."""

import json
from pathlib import Path

import pytest

from model.vocabulary.grouping import POLICIES
from tests.straggler.command import Straggler, assert_refused

SIZE = "tuples=1500 window_tuples=500 batch_tuples=250 keys=60 instances=4"


def options(settings: str) -> list[str]:
    return [part for setting in settings.split() for part in ("--set", setting)]


def test_all_policies_stand_side_by_side(straggler: Straggler, tmp_path: Path) -> None:
    done = straggler("sim", "grouping", "--seed", "2", *options(SIZE), "--json", "run.json")
    assert (done.code, done.err) == (0, "")
    assert "Scheduling and batches changed no step" in done.out
    lines = done.out.splitlines()
    for policy in POLICIES:
        assert any(line.startswith(f"{policy} ") and "%" in line for line in lines), policy
    record = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    assert record["verdict"] == "holds"
    sides = {side["policy"]: side for side in record["beside"]}
    assert tuple(sides) == POLICIES
    assert sides["tag"]["mean_rho"] == record["mean_rho"]
    # Latency of what cannot keep up is a dash, and null.
    slow = [line for line in lines if line.startswith("round-robin")]
    assert slow[0].split()[3] == "-"
    assert sides["round-robin"]["mean_latency_us"] is None


def test_a_run_is_drawn(straggler: Straggler, tmp_path: Path) -> None:
    given = options(f"{SIZE} scenario=swap policies=none")
    done = straggler("sim", "grouping", *given, "--plot", "run.svg")
    assert done.code == 0
    assert "side by side" not in done.out
    assert "swap of speeds" in (tmp_path / "run.svg").read_text(encoding="utf-8")


def test_a_single_window_has_no_table(straggler: Straggler) -> None:
    done = straggler("sim", "grouping", *options("tuples=300 batch_tuples=100 keys=20"))
    # Nothing was rebalanced.
    assert done.code == 3
    assert "of ideal" not in done.out


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("tuples=1e9", ("tuples is 1e9", "at most 200000")),
        ("batch_tuples=1", ("batch_tuples is 1", "too many micro-batches; at most 2,000")),
        ("instances=500", ("instances is 500", "at most 128")),
        ("loss=0.99", ("loss is 0.99", "at most 0.9")),
        ("faults=fail_worker-1", ("there is no fault 'fail_worker-1'", "pause, slow, fail")),
        ("polices=tag", ("'polices'", "did you mean 'policies'?")),
        ("policies=tag,pkq", ("policies is 'pkq'", "did you mean 'pkg'?")),
        ("speeds=fast", ("speeds is 'fast'",)),
        ("scenario=calm", ("scenario is 'calm'", "steady, drift, swap, stragglers")),
    ],
)
def test_bad_settings_are_refused_in_one_sentence(
    straggler: Straggler, settings: str, words: tuple[str, ...]
) -> None:
    assert_refused(straggler("sim", "grouping", *options(settings)), *words)


def test_a_fault_that_comes_too_late_is_named(straggler: Straggler) -> None:
    given = options(f"{SIZE} policies=none")
    faults = "faults=slow worker-1 1 9 2; pause worker-0 700000000 5"
    done = straggler("sim", "grouping", *given, "--set", faults)
    assert done.code == 0
    assert "pause worker-0 at 700000000 us changed nothing" in done.out
    assert "slow worker-1" not in done.out


def test_times_of_faults_may_have_units(straggler: Straggler) -> None:
    given = options(f"{SIZE} policies=none tiers=node")

    def digest(faults: str) -> str:
        done = straggler("sim", "grouping", *given, "--set", f"faults={faults}")
        return done.out.rsplit("digest ", 1)[1]

    plain = "slow worker-1 1000000 9000 2.5; replay log>worker-1 3 1500"
    assert digest("slow worker-1 1s 9ms 2.5; replay log>worker-1 3 1.5ms") == digest(plain)


@pytest.mark.parametrize(
    ("faults", "words"),
    [
        ("pause worker-1 1 2.5us", ("--set faults: '2.5us' is not a whole number",)),
        ("pause worker-1 1 2sec", ("--set faults: '2sec' is not a duration",)),
        ("pause worker-1 1s 2s 3s", ("is not a fault", "write pause worker at_us for_us")),
        ("pause worker-1 soon 2s", ("is not a fault", "write pause worker at_us for_us")),
        ("lose log>worker-1 7s", ("is not a fault", "write lose link nth")),
        ("paus worker-1 7s", ("there is no fault 'paus'; did you mean 'pause'?",)),
    ],
)
def test_bad_times_of_faults_are_refused(
    straggler: Straggler, faults: str, words: tuple[str, ...]
) -> None:
    assert_refused(straggler("sim", "grouping", "--set", f"faults={faults}"), *words)
