"""A driver runs to its end, or the failure of its test says why it did not."""

from pathlib import Path

import pytest

from tests.harness import driver_kills
from tests.harness.driver_kills import needs_proc, run_to_its_end

DRIVER = """
import sys
print("begin", 1, flush=True)
{failing}
print("done")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setitem(driver_kills.ENVIRONMENT, "PYTHONPATH", str(tmp_path))
    return tmp_path


def driver(folder: Path, failing: str = "") -> None:
    (folder / "made_up.py").write_text(DRIVER.format(failing=failing), encoding="utf-8")


@needs_proc
def test_lines_of_a_driver_are_returned(folder: Path) -> None:
    driver(folder)
    assert run_to_its_end(folder, "made_up").lines == ["begin 1", "done"]


@needs_proc
def test_a_driver_that_fails_says_why(folder: Path) -> None:
    (folder / "stderr").write_text("of an earlier one\n", encoding="utf-8")
    driver(folder, "sys.exit('SparkException: something')")
    with pytest.raises(AssertionError, match="something") as caught:
        run_to_its_end(folder, "made_up")
    assert "of an earlier one" not in str(caught.value)
