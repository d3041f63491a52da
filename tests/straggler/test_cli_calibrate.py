"""``straggler calibrate``: a calibration of this machine, and what is refused."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from straggler.inputs.calibrations import read_calibration
from straggler.inputs.schemas import FOLDER
from tests.straggler.command import Done, Straggler, assert_refused
from tests.straggler.json_schema import is_valid

PATIENCE_S = 240


def calibrate(folder: Path, *arguments: str) -> Done:
    """Run ``straggler calibrate`` in a process without a session, which it would take and end."""
    command = [sys.executable, "-m", "straggler.cli", "calibrate", *arguments]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("calibration")


@pytest.mark.timeout(PATIENCE_S)
def test_a_calibration_is_written_and_a_plan_reads_it(straggler: Straggler, folder: Path) -> None:
    file = folder / "here.json"
    done = calibrate(folder, "local[2]", "--seed", "3", "--output", str(file))
    assert (done.code, done.err) == (0, "")
    assert "Measured on local[2]: 2 slots on 1 host" in done.out
    found = read_calibration(file)
    assert (found.master, found.seed, len(found.speeds), found.hosts) == ("local[2]", 3, 2, (0, 0))
    assert max(found.speeds) == 1.0
    assert found.near == found.link
    for name in ("message_us", "tuple_us", "epoch_us", "batch_us", "latency_us"):
        assert found.typical(name) > 0, name
    schema = json.loads((FOLDER / "calibration.schema.json").read_text(encoding="utf-8"))
    assert is_valid(json.loads(file.read_text(encoding="utf-8")), schema)
    demand = ("--rate", "1000", "--window", "10s", "--latency", "2min")
    planned = straggler("plan", "join", *demand, "--calibration", str(file))
    assert (planned.code, planned.err) == (0, "")
    assert "measured on local[2]" in planned.out


@pytest.mark.timeout(PATIENCE_S)
def test_one_slot_is_too_few(folder: Path) -> None:
    done = calibrate(folder, "local[1]")
    assert_refused(done, "a calibration needs two task slots")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("local[2]", "--seed", "-1"), "--seed is -1; it must be an integer >= 0"),
        (("local[2]", "--comparison", "5"), "--comparison: '5' is not a duration"),
        (("local[2]", "--comparison", "-5us"), "--comparison is -5us; it must be at least 0"),
        (("local[2]", "--output", "no/such/folder/file"), "no/such/folder/file"),
        ((), "MASTER is missing"),
    ],
)
def test_a_bad_argument_is_refused_before_spark_starts(
    straggler: Straggler, arguments: tuple[str, ...], sentence: str
) -> None:
    assert_refused(straggler("calibrate", *arguments), sentence)
