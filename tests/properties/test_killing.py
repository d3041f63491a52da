"""Drivers that are started again, and those that are not."""

from pathlib import Path

import pytest

from properties import killing
from properties.killing import needs_proc, run_to_its_end

SLOW = """
import sys
from pathlib import Path
count = Path(sys.argv[1]) / "count"
starts = int(count.read_text()) + 1 if count.exists() else 1
count.write_text(str(starts))
print("begin", starts, flush=True)
if starts <= {failures}:
    sys.exit("SparkException: {reason}")
print("done")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setitem(killing.ENVIRONMENT, "PYTHONPATH", str(tmp_path))
    return tmp_path


def driver(folder: Path, failures: int, reason: str = killing.TOO_SLOW) -> None:
    text = SLOW.format(failures=failures, reason=reason)
    (folder / "slow_driver.py").write_text(text, encoding="utf-8")


@needs_proc
def test_driver_whose_worker_was_too_slow_starts_again(folder: Path) -> None:
    driver(folder, killing.STARTS - 1)
    assert run_to_its_end(folder, "slow_driver").lines == [f"begin {killing.STARTS}", "done"]


@needs_proc
def test_driver_whose_worker_is_always_too_slow_fails(folder: Path) -> None:
    driver(folder, killing.STARTS)
    with pytest.raises(pytest.fail.Exception, match="failed to connect back"):
        run_to_its_end(folder, "slow_driver")


@needs_proc
def test_driver_that_fails_otherwise_is_not_started_again(folder: Path) -> None:
    (folder / "stderr").write_text(f"of an earlier one: {killing.TOO_SLOW}\n", encoding="utf-8")
    driver(folder, 1, "Something else.")
    with pytest.raises(AssertionError, match="Something else"):
        run_to_its_end(folder, "slow_driver")
    assert (folder / "count").read_text(encoding="utf-8") == "1"
