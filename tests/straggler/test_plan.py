"""``straggler plan`` and ``straggler calibrate``: the smallest chain that keeps up."""

import json
from pathlib import Path

import pytest

from straggler.inputs.calibrations import read_calibration
from straggler.inputs.schemas import FOLDER
from tests.sim.calibrations import CALIBRATION
from tests.straggler.command import Done, Straggler, assert_refused
from tests.straggler.json_schema import is_valid
from tests.straggler.processes import PATIENCE_S, start

DEMAND = ("--rate", "2000", "--window", "10s", "--latency", "1min", "--selectivity", "0.8")
SMALL = ("--rate", "100", "--window", "10s", "--latency", "1min")


def test_a_plan_names_the_chain_and_the_one_that_fails(
    straggler: Straggler, tmp_path: Path
) -> None:
    done = straggler("plan", "join", *DEMAND, "--json", "plan.json")
    assert (done.code, done.err) == (0, "")
    plan = json.loads((tmp_path / "plan.json").read_text(encoding="utf-8"))
    chain, smaller = plan["chain"], plan["smaller"]
    assert chain["workers"] == smaller["workers"] + 1 > 1
    assert done.out.split()[:2] == ["workers", str(chain["workers"])]
    assert f"A chain of {smaller['workers']} worker" in done.out


def test_a_calibration_changes_the_plan(straggler: Straggler, tmp_path: Path) -> None:
    text = json.dumps(CALIBRATION.to_json())
    (tmp_path / "cluster.json").write_text(text, encoding="utf-8")
    schema = json.loads((FOLDER / "calibration.schema.json").read_text(encoding="utf-8"))
    assert is_valid(json.loads(text), schema)
    stated = straggler("plan", "join", *SMALL)
    done = straggler("plan", "join", *SMALL, "--calibration", "cluster.json")
    assert (stated.code, done.code, done.err) == (0, 0, "")
    assert "measured on local[2]" in done.out
    assert "length of an epoch" in done.out
    assert stated.out != done.out


def test_what_no_chain_does_is_said(straggler: Straggler, tmp_path: Path) -> None:
    demand = ("--rate", "20000", "--window", "5min", "--latency", "2s", "--selectivity", "0.001")
    done = straggler("plan", "join", *demand, "--json", "plan.json")
    assert (done.code, done.err) == (1, "")
    assert done.out.startswith("no chain does this: one worker would be busy for 721%")
    assert json.loads((tmp_path / "plan.json").read_text(encoding="utf-8"))["chain"] is None


def calibrate(folder: Path, *arguments: str) -> Done:
    """Run ``straggler calibrate`` in a process without a session, which it would take and end."""
    with start(folder, "calibrate", *arguments) as running:
        out, err = running.communicate(timeout=PATIENCE_S)
    return Done(running.returncode, out, err)


@pytest.mark.long
@pytest.mark.timeout(2 * PATIENCE_S)
def test_a_calibration_is_written_and_a_plan_reads_it(straggler: Straggler, tmp_path: Path) -> None:
    done = calibrate(tmp_path, "local[2]", "--seed", "3", "--output", "here.json")
    assert (done.code, done.err) == (0, "")
    found = read_calibration(tmp_path / "here.json")
    assert (found.master, found.seed, len(found.speeds), found.hosts) == ("local[2]", 3, 2, (0, 0))
    assert max(found.speeds) == 1.0
    for name in ("message_us", "tuple_us", "epoch_us", "batch_us", "latency_us"):
        assert found.typical(name) > 0, name
    schema = json.loads((FOLDER / "calibration.schema.json").read_text(encoding="utf-8"))
    assert is_valid(json.loads((tmp_path / "here.json").read_text(encoding="utf-8")), schema)
    planned = straggler("plan", "join", *SMALL, "--calibration", "here.json")
    assert (planned.code, "measured on local[2]" in planned.out) == (0, True)
    assert_refused(calibrate(tmp_path, "local[1]"), "a calibration needs two task slots")
