"""``straggler plan``: output, files, and what it refuses."""

import json
from pathlib import Path

import pytest

from tests.sim.calibrations import CALIBRATION
from tests.straggler.command import Straggler, assert_refused

DEMAND = ("--rate", "2000", "--window", "10s", "--latency", "1min", "--selectivity", "0.8")


def test_a_plan_names_the_chain_and_the_one_that_fails(
    straggler: Straggler, tmp_path: Path
) -> None:
    file = tmp_path / "plan.json"
    done = straggler("plan", "join", *DEMAND, "--json", str(file))
    assert (done.code, done.err) == (0, "")
    plan = json.loads(file.read_text(encoding="utf-8"))
    chain, smaller = plan["chain"], plan["smaller"]
    assert chain["workers"] == smaller["workers"] + 1 > 1
    assert done.out.split()[:2] == ["workers", str(chain["workers"])]
    assert f"A chain of {smaller['workers']} worker" in done.out
    assert straggler("plan", "join", *DEMAND).out == done.out


def test_a_calibration_changes_the_plan(straggler: Straggler, tmp_path: Path) -> None:
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps(CALIBRATION.to_json()), encoding="utf-8")
    demand = ("--rate", "100", "--window", "10s", "--latency", "1min")
    done = straggler("plan", "join", *demand, "--calibration", str(file))
    assert (done.code, done.err) == (0, "")
    assert "measured on local[2]" in done.out
    assert "length of an epoch" in done.out


def test_what_no_chain_does_is_said(straggler: Straggler, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    demand = ("--rate", "20000", "--window", "5min", "--latency", "2s", "--selectivity", "0.001")
    done = straggler("plan", "join", *demand, "--json", str(file))
    assert (done.code, done.err) == (1, "")
    assert done.out.startswith("no chain does this: one worker would be busy for 721%")
    assert json.loads(file.read_text(encoding="utf-8"))["chain"] is None


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        (("--rate", "0"), "--rate is 0.0; it must be a finite number > 0"),
        (("--rate", "nan"), "--rate is nan"),
        (("--window", "0s"), "--window is 0s; it must be a duration > 0"),
        (("--window", "5 parsecs"), "--window: '5 parsecs' is not a duration"),
        (("--latency", "100us"), "--latency is 100us; it must be more than the link's, 200 us"),
        (("--selectivity", "2"), "--selectivity is 2.0; it must be"),
        (("--links", "100"), "--links: '100' is no bandwidth"),
        (("--links", "0Mb/s"), "--links: '0Mb/s' is no bandwidth"),
        (("--seed", "-1"), "--seed is -1; it must be an integer >= 0"),
        (("--calibration", "nowhere.json"), "there is no file 'nowhere.json'"),
    ],
)
def test_a_bad_value_is_refused_in_one_sentence(
    straggler: Straggler, tmp_path: Path, changed: tuple[str, str], sentence: str
) -> None:
    file = tmp_path / "plan.json"
    done = straggler("plan", "join", *DEMAND, *changed, "--json", str(file))
    assert_refused(done, sentence)
    assert not file.exists()


@pytest.mark.parametrize("name", ["--rate", "--window", "--latency"])
def test_a_missing_option_is_named(straggler: Straggler, name: str) -> None:
    at = DEMAND.index(name)
    done = straggler("plan", "join", *DEMAND[:at], *DEMAND[at + 2 :])
    assert_refused(done, f"{name} is missing")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "Expecting property name"),
        ("[]", "it holds no object"),
        ("{}", "the setting 'master' is missing"),
        (json.dumps({**CALIBRATION.to_json(), "version": 2}), "version is 2; it must be 1"),
    ],
)
def test_a_file_that_is_no_calibration_is_refused(
    straggler: Straggler, tmp_path: Path, text: str, sentence: str
) -> None:
    file = tmp_path / "cluster.json"
    file.write_text(text, encoding="utf-8")
    done = straggler("plan", "join", *DEMAND, "--calibration", str(file))
    assert_refused(done, "is no calibration", sentence)


def test_there_is_a_plan_of_one_room_only(straggler: Straggler) -> None:
    assert_refused(straggler("plan", "grouping"), "there is no plan of 'grouping', only of join")
